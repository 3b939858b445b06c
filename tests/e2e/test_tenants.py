#!/usr/bin/env python3
"""Two users on one node: neither sees, stops, watches, fetches or removes what is the other's."""

import os
import stat
import subprocess

import prof_reader
from profd_harness import ALICE, BOB, MALLORY, TEST_GROUP, UsersCase, demote, main, temp_folder

HCCS = ("--devices", "0", "--sys-interconnection-freq", "50")


class Tenants(UsersCase):
    devices = 1
    config = {"limits": {"max_sessions_per_uid": 2}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.alices = cls.ctl_as(ALICE, "start", "--job", "secret", "--label", "alice", *HCCS)
        cls.bobs = cls.ctl_as(BOB, "start", "--job", "secret", "--label", "bob", *HCCS)
        for session in (cls.alices, cls.bobs):
            cls.daemon.until_records(session["session_id"], 10)

    def run_as(self, uid, *args, **how):
        return self.daemon.run(*args, user=uid, groups=(self.group,), **how)

    def test_socket(self):
        info = os.stat(self.daemon.socket)
        self.assertEqual((info.st_uid, info.st_gid, stat.S_IMODE(info.st_mode)),
                         (0, self.group, 0o660))

    def test_identities_the_daemon_sees(self):
        for uid, groups, admin in ((ALICE, (self.group,), False), (0, (), True)):
            caller = self.daemon.ctl("status", user=uid, groups=groups)["caller"]
            self.assertEqual((caller["uid"], caller["admin"]), (uid, admin))
            self.assertGreater(caller["pid"], 0)

    def test_outside_the_group(self):
        answer = self.daemon.run("status", user=MALLORY)
        self.assertEqual(answer.returncode, 6)
        self.assertIn(TEST_GROUP, answer.stderr)

    def test_lists_are_ones_own(self):
        for uid, session in ((ALICE, self.alices), (BOB, self.bobs)):
            listed = self.ctl_as(uid, "list")["sessions"]
            self.assertEqual({s["session_id"] for s in listed} & {
                self.alices["session_id"], self.bobs["session_id"]}, {session["session_id"]})
            self.assertEqual({s["uid"] for s in listed}, {uid})
            self.assertNotIn("alice" if uid == BOB else "bob", str(listed))
        everything = {s["session_id"] for s in self.daemon.ctl("list")["sessions"]}
        self.assertLessEqual({self.alices["session_id"], self.bobs["session_id"]}, everything)

    def test_others_sessions_do_not_exist(self):
        """Same answer, to the byte, as for an id that never was."""
        theirs, never = self.alices["session_id"], "00000000beef"
        out = temp_folder(self)
        os.chmod(out, 0o777)
        for command in (["show"], ["stop"], ["watch"], ["rm"], ["fetch", "--out", out]):
            answer = self.run_as(BOB, command[0], theirs, *command[1:], cwd="/")
            baseline = self.run_as(BOB, command[0], never, *command[1:], cwd="/")
            self.assertEqual(answer.returncode, 4, command)
            self.assertEqual(answer.stdout.replace(theirs, never), baseline.stdout)
            self.assertEqual(answer.stderr.replace(theirs, never), baseline.stderr)
        self.assertEqual(os.listdir(out), [])
        self.assertEqual(self.daemon.show(theirs)["state"], "running")

    def test_job_names_are_not_shared(self):
        """Both have a job "secret": stopping it means one's own."""
        mine = self.ctl_as(BOB, "start", "--job", "secret-2", *HCCS)
        theirs = self.ctl_as(ALICE, "start", "--job", "secret-2", *HCCS)
        stopped = self.ctl_as(BOB, "stop", "--job", "secret-2")["sessions"]
        self.assertEqual([s["session_id"] for s in stopped], [mine["session_id"]])
        self.assertEqual(self.daemon.show(theirs["session_id"])["state"], "running")
        # For administrators, too, --job and --all-mine mean their own.
        self.daemon.ctl("stop", "--job", "secret-2", expect=4)
        self.daemon.ctl("stop", "--all-mine", expect=(0, 4))
        self.assertEqual(self.daemon.show(theirs["session_id"])["state"], "running")
        # By id they may.
        final = self.daemon.ctl("stop", theirs["session_id"])["sessions"][0]
        self.assertEqual((final["state"], final["reason"]), ("done", "stopped by uid 0"))
        self.ctl_as(ALICE, "rm", theirs["session_id"])
        self.ctl_as(BOB, "rm", mine["session_id"])

    def test_dumps_belong_to_their_owner(self):
        path = self.alices["dump_path"]
        for base, _, names in os.walk(path):
            info = os.stat(base)
            self.assertEqual((info.st_uid, info.st_gid), (ALICE, ALICE), base)
            self.assertEqual(stat.S_IMODE(info.st_mode), 0o750, base)
            for name in names:
                info = os.stat(os.path.join(base, name))
                self.assertEqual((info.st_uid, stat.S_IMODE(info.st_mode)), (ALICE, 0o640), name)
        for uid, expected in ((ALICE, 0), (BOB, 2)):
            listing = subprocess.run(["ls", path], capture_output=True, check=False,
                                     preexec_fn=demote(uid, groups=(self.group,)))
            self.assertEqual(listing.returncode, expected, uid)

    def test_fetch_is_for_the_owner(self):
        session = self.ctl_as(ALICE, "start", "--duration", "300ms", *HCCS)
        self.daemon.until_state(session["session_id"], "done")
        out = temp_folder(self)
        os.chmod(out, 0o777)
        answer = self.ctl_as(ALICE, "fetch", session["session_id"], "--out", out)
        self.assertEqual(os.stat(answer["path"]).st_uid, ALICE)
        # Folders without a file are not sent (test_clients.Fetched): a session without host
        # collectors has an empty host/data.
        os.makedirs(os.path.join(answer["path"], "host", "data"), exist_ok=True)
        self.assertEqual(prof_reader.read(answer["path"]).problems, [])
        self.assertEqual(self.run_as(BOB, "fetch", session["session_id"], "--out", out)
                         .returncode, 4)
        self.ctl_as(BOB, "rm", session["session_id"], expect=4)
        self.ctl_as(ALICE, "rm", session["session_id"])

    def test_processes_of_others_are_refused(self):
        with subprocess.Popen(["sleep", "600"], preexec_fn=demote(ALICE)) as alices, \
                subprocess.Popen(["sleep", "600"]) as roots:
            try:
                for pid in (alices.pid, roots.pid, 1):
                    for option in ("--pid", "--end-with-pid"):
                        answer = self.ctl_as(BOB, "start", "--host-sys", "cpu", option, pid,
                                             "--job", "x", expect=3)
                        self.assertEqual(answer["error"]["code"], "permission_denied")
                        self.assertIn(str(pid), answer["error"]["message"])
                session = self.ctl_as(ALICE, "start", "--host-sys", "cpu", "--pid", alices.pid)
                self.ctl_as(ALICE, "stop", session["session_id"])
                session = self.daemon.ctl("start", "--host-sys", "cpu", "--pid", alices.pid)
                self.daemon.ctl("stop", session["session_id"])
            finally:
                alices.kill()
                roots.kill()

    def test_streams_show_ones_own_processes(self):
        with subprocess.Popen(["sleep", "600"], preexec_fn=demote(ALICE)) as alices:
            try:
                session = self.ctl_as(ALICE, "start", "--host-sys", "cpu,mem", "--pid", alices.pid)
                seen = {}
                # Bob gets the node's samples alone, which come once a second: his are two of every series.
                for who, uid, groups, count in (("alice", ALICE, (self.group,), 500), ("bob", BOB, (self.group,), 60),
                                                ("root", 0, (), 500)):
                    answer = self.daemon.run("stream", "--collectors", "host_cpu,host_mem", "--count", count,
                                             user=uid, groups=groups)
                    seen[who] = (f'"{alices.pid}"' in answer.stdout, "atlas_host_cpu" in answer.stdout)
                self.assertEqual(seen, {"alice": (True, True), "bob": (False, True), "root": (True, True)})
                self.ctl_as(ALICE, "stop", session["session_id"])
            finally:
                alices.kill()

    def test_limit_per_user(self):
        session = self.ctl_as(ALICE, "start", *HCCS)
        answer = self.ctl_as(ALICE, "start", *HCCS, expect=3)
        self.assertEqual(answer["error"]["code"], "resource_exhausted")
        self.assertNotIn(str(BOB), answer["error"]["message"])
        other = self.ctl_as(BOB, "start", *HCCS)  # has a limit of his own
        self.ctl_as(BOB, "stop", other["session_id"])
        self.ctl_as(ALICE, "stop", session["session_id"])

    def test_conflicts_do_not_tell_names(self):
        """Who is in the way may be said by id; label and job of others never appear."""
        reads = self.ctl_as(ALICE, "start", "--label", "codename", "--job", "hush", "--devices",
                            "0", "--sys-hardware-mem-freq", "10", "--llc-profiling", "read")
        answer = self.ctl_as(BOB, "start", "--devices", "0", "--sys-hardware-mem-freq", "10",
                             "--llc-profiling", "write", expect=5)
        self.assertNotIn("codename", str(answer))
        self.assertNotIn("hush", str(answer))
        self.ctl_as(BOB, "stop", answer["session_id"])
        self.ctl_as(ALICE, "stop", reads["session_id"])

    def test_environment_of_others_is_not_followed(self):
        """PROFD_JOB_ID in a process of another user does not bring it into one's session."""
        env = dict(os.environ, PROFD_JOB_ID="lure")
        with subprocess.Popen(["sleep", "600"], env=env, preexec_fn=demote(ALICE)) as alices, \
                subprocess.Popen(["sleep", "600"], env=env, preexec_fn=demote(BOB)) as bobs:
            try:
                session = self.ctl_as(BOB, "start", "--job", "lure", "--devices", "0",
                                      "--host-sys", "cpu,mem")
                self.daemon.until_records(session["session_id"], 20)
                self.ctl_as(BOB, "stop", session["session_id"])
                dump = prof_reader.read_valid(self.daemon.show(session["session_id"])["dump_path"])
                seen = {line.split()[0] for record in dump[(-1, "host_cpu.data")].records
                        for line in record.values["lines"][1:]}
                self.assertIn(str(bobs.pid), seen)
                self.assertNotIn(str(alices.pid), seen)
                self.ctl_as(BOB, "rm", session["session_id"])
            finally:
                alices.kill()
                bobs.kill()

    def test_zz_removed_user_keeps_nothing(self):
        for uid, session in ((ALICE, self.alices), (BOB, self.bobs)):
            self.ctl_as(uid, "stop", session["session_id"])
            self.ctl_as(uid, "rm", session["session_id"])
            self.assertFalse(os.path.exists(session["dump_path"]))


class Administrators(UsersCase):
    devices = 1
    config = {"daemon": {"admin_group": TEST_GROUP}}

    def test_admin_group_sees_all(self):
        session = self.daemon.ctl("start", "--label", "roots", *HCCS)
        listed = self.daemon.ctl("list", user=ALICE, groups=(self.group,))["sessions"]
        self.assertEqual([s["session_id"] for s in listed], [session["session_id"]])
        self.daemon.ctl("stop", session["session_id"], user=ALICE, groups=(self.group,))
        self.assertEqual(self.daemon.show(session["session_id"])["reason"],
                         f"stopped by uid {ALICE}")


if __name__ == "__main__":
    main()
