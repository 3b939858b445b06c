#!/usr/bin/env python3
"""What an attacker on the node would try, against the real daemon; docs/security-model.md lists each with
its test. Needs root, to be several users."""

import contextlib
import glob
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import unittest

from attack_common import START, AttackCase, as_user, become_root_of_a_namespace, tree
from attach_client import Client, Forked
from profd_harness import (ALICE, BOB, IS_ROOT, PROFCTL, TEST_GROUP, Daemon, DaemonCase, demote, eventually, group_id,
                           is_sanitized, main, replace_file, scaled, temp_folder)
from text_files import read_text, write_text
from toml_files import scenario_text

ESCAPE = "\x1b]0;owned\x07\x1b[2J"
HOSTILE = 'a"} 1\natlas_npu_up{npu="0"} 0\n# ' + ESCAPE + "\\"
MIB = 1 << 20


def plant_links(dump, secret):
    """Everything in a dump becomes a link to `secret`, and its host folder one to the secret's folder."""
    for base, _, files in os.walk(dump, topdown=False):
        for name in files:
            os.unlink(os.path.join(base, name))
            os.symlink(secret, os.path.join(base, name))
    for name in ("profd_manifest.json.tmp", ".profd_manifest.json.tmp", "host/end_info", "host/end_info.done",
                 "device_0/end_info.0"):
        with contextlib.suppress(OSError):
            os.symlink(secret, os.path.join(dump, name))
    os.rename(os.path.join(dump, "host"), os.path.join(dump, "host-away"))
    os.symlink(os.path.dirname(secret), os.path.join(dump, "host"))


def squat(path, kind):
    """What a forked process does (Forked): listens where the daemon is about to."""
    def listen(keep):
        keep.append(s := socket.socket(socket.AF_UNIX, kind))
        s.bind(path)
        os.chmod(path, 0o666)
        s.listen(1)
        return "listening"
    return listen


def forge_credentials(path, job, claimed, in_namespace=False):
    """What a forked process does (Forked): a hello that claims to be another process, in words and in SCM_CREDENTIALS
    of pid, uid, gid. Answers the type of the reply, or that the kernel has refused it."""
    def hello(keep):
        if in_namespace:
            try:
                become_root_of_a_namespace()
            except OSError as error:
                return f"skip: {error}"
        keep.append(s := socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        s.settimeout(scaled(30))
        s.connect(path)
        packet = {"type": "hello", "version": 1, "pid": 1, "uid": 0, "user": "root", "job_id": job, "rank": 0}
        credentials = struct.pack("iII", *(claimed or (os.getpid(), os.getuid(), os.getgid())))
        try:
            s.sendmsg([json.dumps(packet).encode()],
                      [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)])
        except PermissionError:
            return "refused by the kernel"
        return json.loads(s.recv(65536))["type"]
    return hello


class Files(AttackCase):
    def test_links_planted_in_a_running_dump(self):
        """The owner swaps files and folders of the dump for links to root's, at every moment of a session."""
        session = self.ctl_as(ALICE, "start", *START)
        self.daemon.until_records(session["session_id"], 50)
        dump = session["dump_path"]
        self.assertEqual(as_user(ALICE, (), plant_links, dump, self.secret), "None")
        self.ctl_as(ALICE, "stop", session["session_id"], expect=(0, 3, 5))
        self.assert_untouched()
        out = temp_folder(self)
        os.chown(out, ALICE, ALICE)
        self.ctl_as(ALICE, "fetch", session["session_id"], "--out", out, expect=(0, 3, 4, 5))
        self.assert_nothing_leaked(out)
        self.ctl_as(ALICE, "rm", session["session_id"], expect=(0, 3, 4, 5))
        self.assert_untouched()
        self.assertTrue(self.daemon.alive())

    def test_links_planted_while_the_daemon_is_dead(self):
        """What a crash left is repaired: cut to whole records, completed, given away. Not what stands in its place."""
        for plant, more in ((os.link, ()), (os.symlink, ()), (os.link, ("profd_manifest.json", "host/profd/slices.tsv"))):
            session = self.ctl_as(ALICE, "start", *START)
            self.daemon.until_records(session["session_id"], 50)
            dump = session["dump_path"]
            slices = eventually(lambda path=dump: glob.glob(os.path.join(path, "device_0", "data", "*.slice_0")),
                                what="data in the dump")
            self.daemon.kill()
            # As root, for hard links of what is not their own users cannot even make (fs.protected_hardlinks).
            for path in [*slices, *(os.path.join(dump, name) for name in more)]:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
                    plant(self.secret, path)
            self.daemon.start()
            eventually(lambda: self.daemon.ctl("status"), what="it has started again")
            self.assert_untouched()
            self.daemon.run("rm", os.path.basename(dump), user=ALICE, groups=(self.group,))
            self.assert_untouched()
            self.assertTrue(self.daemon.alive())
            self.end_all()
            shutil.rmtree(dump, ignore_errors=True)

    def test_names_are_not_paths(self):
        """Job ids, labels and metadata with everything a path or a shell could make of them."""
        before = {path for path in tree(self.daemon.base) if not path.startswith(self.daemon.dump_root + "/PROF_")}
        for text in ("../../../../tmp/x", "a/../../b", "/etc/passwd", "$(id)", "`id`", "a;b", "-rf", "..", "%s%n",
                     "x" * 128, "x" * 129):
            # The rules: docs/security-model.md, "What is checked where".
            job = bool(re.fullmatch(r"[A-Za-z0-9._:/-]{1,128}", text))
            expected = {"job": 0 if job else 3, "label": 0 if len(text) <= 128 else 3, "metadata": 0}
            for name, order in (("job", ("--job", text)), ("label", ("--label", text)),
                                ("metadata", ("--job", "j", "--metadata", f"k={text}"))):
                answer = self.daemon.run("start", *order, *START, "--duration", "100ms", user=ALICE,
                                         groups=(self.group,))
                self.assertEqual(answer.returncode, expected[name], (order, answer.stdout, answer.stderr))
        eventually(lambda: {s["state"] for s in self.daemon.ctl("list")["sessions"]} == {"done"},
                   what="all have ended as they should")
        after = {path for path in tree(self.daemon.base) if not path.startswith(self.daemon.dump_root + "/PROF_")}
        self.assertEqual({path for path in after - before if "/.state" not in path}, set())
        for name in os.listdir(self.daemon.dump_root):
            self.assertRegex(name, r"^(PROF_\d{6}_\d{17}_[A-Z]{16}|\.state)$")
        self.assertFalse(os.path.exists("/tmp/x"))

    def test_a_dump_root_full_of_strangers_things(self):
        """Links, fifos, files and a folder of links with a dump's name in the root lead nowhere."""
        root = self.daemon.dump_root
        planted = [os.path.join(root, f"PROF_9990{i:02d}_20260101000000000_AAAAAAAAAAAAAAAA") for i in range(4)]
        os.symlink(self.vault, planted[0])
        os.mkfifo(planted[1])
        with open(planted[2], "w", encoding="utf-8"):
            pass
        os.mkdir(planted[3], 0o700)
        os.symlink(self.secret, os.path.join(planted[3], "profd_manifest.json"))
        self.addCleanup(lambda: [os.unlink(path) for path in planted[:3]]
                        + [shutil.rmtree(planted[3], ignore_errors=True)])
        self.daemon.restart()
        self.assertTrue(self.daemon.ctl("status"))
        self.daemon.ctl("list", "--dumps")
        for name in map(os.path.basename, planted[:3]):
            self.assertNotEqual(self.daemon.run("rm", name).returncode, 0, name)
        self.assert_untouched()
        self.assertTrue(os.path.islink(planted[0]))


class Identity(AttackCase):
    def test_root_of_a_user_namespace_is_an_ordinary_user(self):
        """A container's uid 0 is the kernel's word for the user who made it, and has that user's rights."""
        session = self.daemon.ctl("start", *START, "--label", "root's")
        command = ["unshare", "--user", "--map-root-user", "--", *self.daemon.ctl_command("status")]
        try:
            answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(60),
                                    preexec_fn=demote(ALICE, groups=(self.group,)))
        except OSError as error:
            self.skipTest(f"no user namespaces here: {error}")
        if "unshare" in answer.stderr:
            self.skipTest(f"no user namespaces here: {answer.stderr.strip()}")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        caller = json.loads(answer.stdout)["caller"]
        self.assertEqual((caller["uid"], caller["admin"]), (ALICE, False))
        command[4:] = self.daemon.ctl_command("stop", session["session_id"])
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(60),
                                preexec_fn=demote(ALICE, groups=(self.group,)))
        self.assertEqual(answer.returncode, 4, answer.stderr)
        self.daemon.ctl("stop", session["session_id"])

    def test_forged_credentials(self):
        """What a process says of itself, in words or in SCM_CREDENTIALS, changes nothing: not as a user, not as
        root of a container, whom the kernel lets claim what its namespace has, not as root, who may claim anything."""
        path = self.daemon.attach_socket
        self.assertEqual(as_user(ALICE, (self.group,), forge_credentials(path, "forged-0", (1, 0, 0)), []),
                         "refused by the kernel")
        liars = {"forged-user": (ALICE, False, None), "forged-container": (ALICE, True, None),
                 "forged-root": (0, False, (1, BOB, BOB))}
        for job, (uid, in_namespace, claimed) in liars.items():
            groups = (self.group,) if uid else ()
            with Forked(forge_credentials(path, job, claimed, in_namespace), uid, groups) as liar:
                if liar.answer.startswith("skip"):
                    continue
                self.assertEqual(liar.answer, "welcome", job)
                found = [(entry["uid"], process["pid"]) for entry in self.daemon.ctl("jobs")["jobs"]
                         if entry["job_id"] == job for process in entry["processes"]]
                self.assertEqual(found, [(uid, liar.pid)], job)

    def test_squatted_sockets(self):
        """Who was there first with a socket of that name does not get the daemon's clients: neither of the two."""
        for name, kind in (("s", socket.SOCK_STREAM), ("s", "file"), ("s", "link"),
                           ("attach.sock", socket.SOCK_SEQPACKET), ("attach.sock", "link")):
            with contextlib.ExitStack() as stack:
                d = Daemon()
                stack.callback(d.dispose)
                os.chmod(d.base, 0o1777)  # a folder that every user may write, as /tmp
                path = os.path.join(d.base, name)
                if kind == "file":
                    write_text(path, "precious")
                elif kind == "link":
                    os.symlink(self.secret, path)
                else:
                    self.assertEqual(stack.enter_context(Forked(squat(path, kind), ALICE)).answer, "listening")
                self.assertNotEqual(d.start_in_vain(), 0, (name, kind))
                self.assertIn(path, d.log(), (name, kind))
                if kind == "file":
                    self.assertEqual(read_text(path), "precious")
                if kind == "link":
                    self.assertTrue(os.path.islink(path))
                    self.assert_untouched()


@unittest.skipUnless(IS_ROOT, "only root can be several users")
class Output(DaemonCase):
    """What strangers name themselves reaches logs, terminals and /metrics as harmless text."""

    @classmethod
    def setUpClass(cls):
        cls.group = group_id()
        cls.folder = temp_folder(cls)
        cls.pids = os.path.join(cls.folder, "pids")
        replace_file(cls.pids, "")
        cls.daemon = Daemon(scenario_text=scenario_text(devices=1, processes_file=cls.pids), config={
            "daemon": {"socket_group": TEST_GROUP, "log_level": "debug"},
            "attribution": {"job_map_dir": cls.folder}}).start()

    def hostile_process(self):
        """A process on NPU 0 whose name and environment are an attack."""
        process = subprocess.Popen(["bash", "-c", "printf '%s' \"$NAME\" >/proc/$$/comm; read -r _"],
                                   stdin=subprocess.PIPE, preexec_fn=demote(ALICE), env={
                                       "NAME": 'q"} 0\x1b[31m\\', "SLURM_JOB_ID": HOSTILE, "RANK": "0",
                                       "SLURM_JOB_NAME": HOSTILE, "MS_ROLE": HOSTILE})
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        replace_file(self.pids, f"{process.pid} 0 1024\n")
        return process

    def test_terminal_log_and_metrics(self):
        process = self.hostile_process()
        write_text(os.path.join(self.folder, "0"), HOSTILE + "\n")
        path = self.daemon.attach_socket
        for job in (HOSTILE, "ok"):
            client = Client(path)
            self.addCleanup(client.socket.close)
            client.hello(job_id=job, framework=HOSTILE, rank=0, devices=[0], metadata={ESCAPE: ESCAPE})
        for text in (ESCAPE, f"x{ESCAPE}", "tab\there", "\u202eevil", "a" * 4096):
            for command in (("start", "--job", text, *START), ("start", "--label", text, *START),
                            ("start", "--label", "x", "--metadata", f"k={text}", *START, "--duration", "100ms"),
                            ("stop", text), ("show", text)):
                answer = self.daemon.run(*command, json_output=False, user=ALICE, groups=(self.group,))
                self.assert_harmless(answer.stdout + answer.stderr, command)

        def reported():
            return f'pid="{process.pid}"' in self.daemon.get("/metrics")
        eventually(reported, 60, what="the process is in /metrics")
        for command in (("jobs",), ("list",), ("status",), ("top", "--once")):
            self.assert_harmless(self.daemon.run(*command, json_output=False).stdout, command)
        self.assert_harmless(self.daemon.log(10000), "the log")
        self.assert_lines_of_metrics(self.daemon.get("/metrics"), process)

    def assert_harmless(self, text, where):
        for bad in ("\x1b", "\x07", "\u202e"):
            self.assertNotIn(bad, text, where)
        self.assertFalse([line for line in text.splitlines() if line.startswith("atlas_npu_up")], where)

    def assert_lines_of_metrics(self, text, process):
        self.assertNotIn("\x1b", text)
        for line in text.split("\n"):
            if line and not line.startswith("# "):
                self.assertRegex(line, r'^[a-z_:][a-z0-9_:]*(\{([a-z_][a-z0-9_]*="([^"\\]|\\.)*",?)*\})? '
                                       r'[-+0-9.eEInfNa]+$')
        self.assertFalse([line for line in text.split("\n")
                          if line.startswith('atlas_npu_up{npu="0"') and line.endswith(" 0")])
        # It did arrive: as the value of a label, with its quotes escaped.
        shown = [line for line in text.split("\n") if f'pid="{process.pid}"' in line and "process_info" in line]
        self.assertEqual(len(shown), 1, shown)
        self.assertIn('command="q\\"} 0?[31m\\\\"', shown[0])
        self.assertIn('job_id="a\\"} 1"', text)


class NarrowDaemon(Daemon):
    """One that may open few files."""

    def command(self):
        return ["prlimit", "--nofile=96:96", "--", *super().command()]


class Exhaustion(unittest.TestCase):
    def test_no_descriptors_left(self):
        """With every descriptor taken by idle connections, what runs continues, and it recovers."""
        with NarrowDaemon(config={"daemon": {"max_connections": 4096}}) as d:
            def hbm_bytes():
                return sum(map(os.path.getsize, glob.glob(os.path.join(
                    d.dump_root, "PROF_*", "device_0", "data", "hbm.data.0.slice_*"))))

            session = d.ctl("start", *START)["session_id"]
            # A collector's file is made with its first record.
            eventually(lambda: all(o["bytes"] > 0 for o in d.show(session)["outcomes"] if o["result"] == "running"),
                       what="all files of the dump are there")
            eventually(lambda: hbm_bytes() > 0, what="the first bytes are in the dump")
            flood = []
            try:
                for _ in range(200):
                    s = socket.socket(socket.AF_UNIX)
                    s.settimeout(1)
                    flood.append(s)
                    try:
                        s.connect(d.socket)
                    except OSError:
                        break
                self.assertGreater(len(flood), 96)
                # The session's own files are open; its records keep coming.
                before = hbm_bytes()
                eventually(lambda: hbm_bytes() > before, 60, what="the dump grows")
                self.assertTrue(d.alive())
            finally:
                for s in flood:
                    s.close()
            eventually(lambda: d.run("status").returncode == 0, 60, what="it answers again")
            final = d.ctl("stop", session)["sessions"][0]
            # Of files that were open; one that is made meanwhile counts its loss.
            lost = [outcome for outcome in final["outcomes"] if outcome["collector"] == "hbm" and outcome["dropped_records"] > 0]
            self.assertEqual((final["state"], lost), ("done", []))

    @unittest.skipUnless(shutil.which("zstd"), "no zstd to make a bomb with")
    @unittest.skipIf(is_sanitized(), "memory is measured")
    def test_decompression_bombs(self):
        """A slice of a few hundred KiB that unpacks to 2 GiB: readers stay small and end."""
        base = temp_folder(self)
        with Daemon() as d:
            session = d.ctl("start", *START, "--compress")["session_id"]
            d.until_records(session, 100)
            d.ctl("stop", session)
            eventually(lambda: glob.glob(os.path.join(d.dump_root, "PROF_*", "*", "data", "*.zst")), 60,
                       what="a compressed slice")
            dump = os.path.join(base, os.path.basename(glob.glob(os.path.join(d.dump_root, "PROF_*"))[0]))
            shutil.copytree(glob.glob(os.path.join(d.dump_root, "PROF_*"))[0], dump)
        victim = sorted(glob.glob(os.path.join(dump, "*", "data", "hbm*.zst"))
                        + glob.glob(os.path.join(dump, "*", "data", "*.zst")))[0]
        with open(victim, "wb") as out:
            zeros = subprocess.Popen(["head", "-c", str(2 << 30), "/dev/zero"], stdout=subprocess.PIPE)
            subprocess.run(["zstd", "-q", "-1", "-c"], stdin=zeros.stdout, stdout=out, check=True)
            zeros.stdout.close()
            zeros.wait()
        self.assertLess(os.path.getsize(victim), MIB)
        name = os.path.basename(victim)
        # An export of a damaged dump is made, and its code says so.
        for command, codes, said in (
                (["verify", dump], (5,), rf"{re.escape(name)}: is \d+ bytes long, the manifest has \d+; .*the manifest counts"),
                (["show", dump], (0,), rf"{name.split('.')[0]}\.data: .*\d{{8}}"),
                (["export", dump, "--format", "csv,sqlite", "--out", os.path.join(base, "out")], (5,),
                 rf"{name.split('.')[0]}\.data: .*\d{{8}}")):
            answer = subprocess.run(["prlimit", f"--data={512 * MIB}", PROFCTL, *command], capture_output=True,
                                    text=True, check=False, timeout=scaled(120))
            self.assertIn(answer.returncode, codes, (command, answer.stderr[-500:]))
            self.assertRegex(answer.stdout + answer.stderr, said)
        self.assertTrue(glob.glob(os.path.join(base, "out", "*.db")), "the rest is exported")
        made = sum(os.path.getsize(path) for path in tree(os.path.join(base, "out")) if os.path.isfile(path))
        self.assertLess(made, 256 * MIB)


if __name__ == "__main__":
    main()
