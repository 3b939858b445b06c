#!/usr/bin/env python3
"""Attackers who swap files and folders under the daemon's hands all the while it works, and numbers of users and
processes that change hands. Needs root, to be several users."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess

from attack_common import START, AttackCase, Attacker, exchange, next_slices, tree
from attach_client import Client
from profd_harness import ALICE, BOB, demote, eventually, main, scaled, temp_folder
from text_files import write_text

CYCLES = int(os.environ.get("PROFD_RACE_CYCLES", "2"))
LAST_PID = "/proc/sys/kernel/ns_last_pid"


def swap_for_links(dump, secret):
    """One round over everything in a dump: each name is a link to the secret for a moment, folders are links to
    its folder, and names that the writer will want are taken."""
    away = os.path.join(dump, "away")
    for path in next_slices(dump):
        with contextlib.suppress(OSError):
            os.symlink(secret, path)
    for path in sorted(tree(dump)):
        target = os.path.dirname(secret) if os.path.isdir(path) else secret
        with contextlib.suppress(OSError):
            os.symlink(target, away)
            exchange(away, path)
            exchange(away, path)
        with contextlib.suppress(OSError):
            os.unlink(away)
    # And for good: what was there is gone.
    for path in glob.glob(os.path.join(dump, "*", "data", "*.done")):
        with contextlib.suppress(OSError):
            os.unlink(path)
            os.symlink(secret, path)


def swap_for_hard_links(dump, secret):
    """The same with further names of the secret itself. Only root can make them where fs.protected_hardlinks is
    set, so this attacker is root's helper: the worst case."""
    away = os.path.join(dump, "hard")
    for path in next_slices(dump):
        with contextlib.suppress(OSError):
            os.link(secret, path)
    for path in sorted(path for path in tree(dump) if os.path.isfile(path)):
        with contextlib.suppress(OSError):
            os.link(secret, away)
            exchange(away, path)
            exchange(away, path)
        with contextlib.suppress(OSError):
            os.unlink(away)


class Links(AttackCase):
    @classmethod
    def make_config(cls):
        # Many flushes, so many chances.
        return {**super().make_config(), "dump": {"flush_interval_ms": 50, "sync_interval_ms": 50}}

    def cycle(self, *how):
        """A session from its start to its removal; whatever the commands answer."""
        session = self.ctl_as(ALICE, "start", *START, *how)
        yield session["dump_path"]
        eventually(lambda: self.daemon.show(session["session_id"])["state"] != "running"
                   or self.daemon.show(session["session_id"])["records"] > 200, what="it records, or has ended")
        self.ctl_as(ALICE, "stop", session["session_id"], expect=(0, 3, 5))
        out = temp_folder(self)
        os.chown(out, ALICE, ALICE)
        self.ctl_as(ALICE, "fetch", session["session_id"], "--out", out, expect=(0, 1, 3, 4, 5))
        self.assert_nothing_leaked(out)
        self.ctl_as(ALICE, "rm", session["session_id"], expect=(0, 1, 3, 4, 5))

    def race(self, uid, attack):
        rounds = 0
        for number in range(CYCLES):
            steps = self.cycle(*(("--compress",) if number % 2 else ()))
            dump = next(steps)
            with Attacker(uid, attack, dump, self.secret) as attacker:
                self.assertEqual(list(steps), [])
            rounds += attacker.rounds
            self.assert_untouched()
            shutil.rmtree(dump, ignore_errors=True)
        self.assertGreater(rounds, CYCLES)
        self.assertTrue(self.daemon.alive())
        # And it works as before.
        session = self.ctl_as(BOB, "start", *START)
        self.daemon.until_records(session["session_id"], 20)
        self.assertEqual(self.ctl_as(BOB, "stop", session["session_id"])["sessions"][0]["state"], "done")

    def test_symbolic_links_swapped_all_the_while(self):
        self.race(ALICE, swap_for_links)

    def test_hard_links_swapped_all_the_while(self):
        self.race(0, swap_for_hard_links)
        # Its only name is the old one: nothing was kept, and nothing given away.
        self.assertEqual(os.stat(self.secret).st_uid, 0)


class Reuse(AttackCase):
    def process_of(self, uid, pid=None):
        """A sleeping process of this user, with this number if it is given and free."""
        for _ in range(200):
            if pid is not None:
                try:
                    write_text(LAST_PID, str(pid - 1))
                except OSError as error:
                    self.skipTest(f"process numbers cannot be chosen here: {error}")
            process = subprocess.Popen(["sleep", "600"], preexec_fn=demote(uid), env={"PROFD_JOB_ID": "mine"})
            if pid is None or process.pid == pid:
                self.addCleanup(process.wait)
                self.addCleanup(process.kill)
                return process
            process.kill()
            process.wait()
        self.skipTest("another process takes the number each time")
        return None

    def test_a_reused_pid(self):
        """A session that follows a process of Alice's does not follow Bob's of the same number."""
        alices = self.process_of(ALICE)
        session = self.ctl_as(ALICE, "start", "--pid", str(alices.pid), "--end-with-pid", str(alices.pid),
                              "--devices", "0", "--host-sys", "cpu,mem")
        self.daemon.until_records(session["session_id"], 20)
        os.kill(self.daemon.pid, signal.SIGSTOP)  # it sees nothing of what happens now
        try:
            alices.kill()
            alices.wait()
            bobs = self.process_of(BOB, alices.pid)
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)
        self.assertEqual(bobs.pid, alices.pid)
        ended = self.daemon.until_state(session["session_id"], "done", "failed")
        self.assertIn(str(alices.pid), ended["reason"])
        # Alice may not name Bob's process.
        answer = self.ctl_as(ALICE, "start", "--pid", str(bobs.pid), "--devices", "0", "--host-sys", "cpu",
                             expect=(3, 4))
        self.assertIn("error", answer)

    def test_a_reused_uid(self):
        """What a number owns is its owner's; no process gets more by having had the number, or the name."""
        session = self.ctl_as(ALICE, "start", *START, "--job", "reused")
        self.daemon.until_records(session["session_id"], 20)
        path = self.daemon.attach_socket
        with Client(path, timeout=scaled(30)) as roots:
            roots.attach(job_id="reused", rank=0)
            # Root's job of the same name is another job: Alice's session has not become its session.
            jobs = [job for job in self.daemon.ctl("jobs")["jobs"] if job["job_id"] == "reused"]
            self.assertEqual({job["uid"] for job in jobs if job["processes"]}, {0})
        self.ctl_as(ALICE, "stop", session["session_id"])
        # Everything of the number's belongs to the number, and is open to no other.
        for base, _, files in os.walk(session["dump_path"]):
            for name in ["", *files]:
                info = os.lstat(os.path.join(base, name))
                self.assertEqual((info.st_uid, info.st_mode & 0o007), (ALICE, 0), name)
        for command in (("fetch", "--out", self.vault), ("rm",), ("pin",), ("show",)):
            self.ctl_as(BOB, command[0], session["session_id"], *command[1:], expect=4)
        # Its groups are those of the connection, not of the name: without them it does not even come in.
        self.assertEqual(self.daemon.run("list", user=ALICE).returncode, 6)


if __name__ == "__main__":
    main()
