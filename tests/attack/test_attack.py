#!/usr/bin/env python3
"""What an attacker on the node would try, against the real daemon; docs/security-model.md lists each with
its test. Needs root, to be several users."""

import contextlib
import glob
import json
import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from attach_client import Client
from profd_harness import (ALICE, IS_ROOT, PROFCTL, TEST_GROUP, Daemon, DaemonCase, demote, eventually,
                           group_id, is_sanitized, main, scaled)

ORDER = ("--devices", "0", "--sys-hardware-mem-freq", "50", "--sys-interconnection-freq", "50")
ESCAPE = "\x1b]0;owned\x07\x1b[2J"
MIB = 1 << 20


def as_user(uid, groups, what, *args):
    """what(*args) in a child that is this user; what it returns, or the error it ended with as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            demote(uid, groups=groups)()
            answer = what(*args)
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, str(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        answer = file.read()
    os.waitpid(child, 0)
    return answer


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


def forge_credentials(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(path)
        hello = json.dumps({"type": "hello", "version": 1, "pid": 1, "uid": 0, "job_id": "forged", "rank": 0})
        try:
            s.sendmsg([hello.encode()],
                      [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("iII", 1, 0, 0))])
        except PermissionError:
            s.settimeout(20)
            return "refused by the kernel"
        return s.recv(65536).decode()


def tree(root):
    """Every path below root, without what sockets and logs do by themselves."""
    return {os.path.join(base, name) for base, folders, files in os.walk(root) for name in folders + files}


@unittest.skipUnless(IS_ROOT, "only root can be several users")
class Files(DaemonCase):
    devices = 1

    @classmethod
    def make_config(cls):
        cls.group = group_id()
        return {"daemon": {"socket_group": TEST_GROUP}}

    def ctl_as(self, uid, *args, **how):
        return self.daemon.ctl(*args, user=uid, groups=(self.group,), **how)

    def setUp(self):
        self.vault = tempfile.mkdtemp(prefix="profd-vault-")
        self.addCleanup(shutil.rmtree, self.vault)
        self.secret = os.path.join(self.vault, "secret")
        with open(self.secret, "w", encoding="utf-8") as out:
            out.write("root's own\n")
        os.chmod(self.secret, 0o600)
        self.before = os.stat(self.secret)

    def assert_untouched(self):
        after = os.stat(self.secret)
        for member in ("st_ino", "st_size", "st_mtime_ns", "st_uid", "st_gid", "st_mode"):
            self.assertEqual(getattr(after, member), getattr(self.before, member), member)

    def test_links_planted_in_a_running_dump(self):
        """The owner swaps files and folders of the dump for links to root's, at every moment of a session."""
        session = self.ctl_as(ALICE, "start", *ORDER)
        self.daemon.until_records(session["session_id"], 50)
        dump = session["dump_path"]
        self.assertEqual(as_user(ALICE, (), plant_links, dump, self.secret), "None")
        vault = tree(self.vault)
        self.ctl_as(ALICE, "stop", session["session_id"], expect=(0, 3, 5))
        self.assert_untouched()
        out = tempfile.mkdtemp(prefix="profd-out-")
        self.addCleanup(shutil.rmtree, out)
        os.chown(out, ALICE, ALICE)
        self.ctl_as(ALICE, "fetch", session["session_id"], "--out", out, expect=(0, 3, 4, 5))
        for path in tree(out):
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    self.assertNotIn(b"root's own", file.read(), path)
        self.ctl_as(ALICE, "rm", session["session_id"], expect=(0, 3, 4, 5))
        self.assert_untouched()
        self.assertEqual(tree(self.vault), vault)
        self.assertTrue(self.daemon.alive())

    def test_hard_links_are_not_handed_over(self):
        """A file with a second name elsewhere must not change hands or be written through that name."""
        target = os.path.join(self.daemon.dump_root, "linked")
        with open(target, "w", encoding="utf-8") as out:
            out.write("x" * 4096)
        os.chmod(target, 0o600)
        self.addCleanup(os.unlink, target)
        session = self.ctl_as(ALICE, "start", *ORDER)
        self.daemon.until_records(session["session_id"], 10)
        manifest = os.path.join(session["dump_path"], "profd_manifest.json")
        # As root, which a user could not even do (fs.protected_hardlinks): the worst case.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(manifest)
        os.link(target, manifest)
        self.ctl_as(ALICE, "stop", session["session_id"], expect=(0, 3, 5))
        info = os.stat(target)
        self.assertEqual((info.st_uid, stat.S_IMODE(info.st_mode), info.st_size), (0, 0o600, 4096))
        self.ctl_as(ALICE, "rm", session["session_id"], expect=(0, 3, 4, 5))
        self.assertTrue(os.path.exists(target))

    def test_names_are_no_paths(self):
        """Job ids, labels and metadata with everything a path or a shell could make of them."""
        before = {path for path in tree(self.daemon.base) if not path.startswith(self.daemon.dump_root + "/PROF_")}
        for text in ("../../../../tmp/x", "a/../../b", "/etc/passwd", "$(id)", "`id`", "a;b", "-rf", "..", "%s%n",
                     "x" * 128):
            for order in (("--job", text), ("--label", text), ("--job", "j", "--metadata", f"k={text}")):
                answer = self.daemon.run("start", *order, *ORDER, "--duration", "100ms", user=ALICE,
                                         groups=(self.group,))
                self.assertIn(answer.returncode, (0, 2, 3), (order, answer.stderr))
        eventually(lambda: {s["state"] for s in self.daemon.ctl("list")["sessions"]} <= {"done", "failed"},
                   what="all have ended")
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


@unittest.skipUnless(IS_ROOT, "only root can be several users")
class Identity(DaemonCase):
    devices = 1

    @classmethod
    def make_config(cls):
        cls.group = group_id()
        return {"daemon": {"socket_group": TEST_GROUP}}

    def test_root_of_a_user_namespace_is_nobody_special(self):
        """A container's uid 0 is the kernel's word for the user who made it, and has that user's rights."""
        session = self.daemon.ctl("start", *ORDER, "--label", "root's")
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
        """SCM_CREDENTIALS are the sender's own word, checked by the kernel or not: they change nothing."""
        path = os.path.join(os.path.dirname(self.daemon.socket), "attach.sock")
        answer = as_user(ALICE, (self.group,), forge_credentials, path)
        self.assertEqual(answer, "refused by the kernel")
        jobs = json.dumps(self.daemon.ctl("jobs"))
        if "forged" in jobs:
            self.assertNotIn('"uid": 0', jobs.split("forged")[1][:400])

    def test_squatted_sockets(self):
        """Who was there first with a socket of that name does not get the daemon's clients."""
        for kind in ("listening socket", "file", "link"):
            base = tempfile.mkdtemp(prefix="profd-squat-")
            self.addCleanup(shutil.rmtree, base)
            os.chmod(base, 0o755)
            d = Daemon(base=base)
            squatter = None
            if kind == "listening socket":
                squatter = socket.socket(socket.AF_UNIX)
                squatter.bind(d.socket)
                squatter.listen(1)
            elif kind == "file":
                with open(d.socket, "w", encoding="utf-8") as file:
                    file.write("precious")
            else:
                os.symlink("/etc/hostname", d.socket)
            d.start(ready=False)
            try:
                self.assertNotEqual(d.process.wait(scaled(60)), 0, kind)
                self.assertIn(d.socket, d.log(), kind)
                if kind == "file":
                    with open(d.socket, encoding="utf-8") as file:
                        self.assertEqual(file.read(), "precious")
                if kind == "link":
                    self.assertTrue(os.path.islink(d.socket))
            finally:
                d.process = None
                if squatter is not None:
                    squatter.close()


@unittest.skipUnless(IS_ROOT, "only root can be several users")
class Output(DaemonCase):
    """What strangers name themselves reaches logs, terminals and /metrics as harmless text."""

    devices = 1

    @classmethod
    def make_config(cls):
        cls.group = group_id()
        return {"daemon": {"socket_group": TEST_GROUP}}

    def test_terminal_log_and_metrics(self):
        hostile = 'a"} 1\natlas_npu_up{npu="0"} 0\n# ' + ESCAPE + "\\"
        path = os.path.join(os.path.dirname(self.daemon.socket), "attach.sock")
        client = Client(path)
        with contextlib.suppress(Exception):
            client.hello(job_id=hostile, framework=hostile, rank=0, devices=[0])
        named = Client(path)
        with contextlib.suppress(Exception):
            named.hello(job_id="ok", framework="x", rank=0, devices=[0])
        sleeper = subprocess.Popen(["bash", "-c", f"exec -a $'{'x' * 20}\\e[31m\"}}' sleep 60"],
                                   env={**os.environ, "RANK": "0", "SLURM_JOB_ID": hostile.replace("\n", " ")})
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        for text in (ESCAPE, f"x{ESCAPE}", "tab\there", "\u202eevil", "a" * 4096):
            for command in (("start", "--job", text, *ORDER), ("start", "--label", text, *ORDER),
                            ("stop", text), ("show", text)):
                answer = self.daemon.run(*command, json_output=False, user=ALICE, groups=(self.group,))
                self.assertNotIn("\x1b", answer.stdout + answer.stderr, command)
                self.assertNotIn("\x07", answer.stdout + answer.stderr, command)
        for command in (("jobs",), ("list",), ("status",), ("top", "--once")):
            self.assertNotIn("\x1b", self.daemon.run(*command, json_output=False).stdout, command)
        self.assertNotIn("\x1b", self.daemon.log(10000))
        with urllib.request.urlopen(f"http://{self.daemon.metrics_address}/metrics", timeout=scaled(20)) as answer:
            text = answer.read().decode()
        self.assertNotIn("\x1b", text)
        for line in text.splitlines():
            if not line.startswith("#"):
                self.assertRegex(line, r'^[a-z_:][a-z0-9_:]*(\{([a-z_][a-z0-9_]*="([^"\\]|\\.)*",?)*\})? '
                                       r'[-+0-9.eEInfNa]+$')
        self.assertNotIn('atlas_npu_up{npu="0"} 0', text)
        client.socket.close()
        named.socket.close()


class NarrowDaemon(Daemon):
    """One that may open few files."""

    def command(self):
        return ["prlimit", "--nofile=96:96", "--", *super().command()]


class Exhaustion(unittest.TestCase):
    def test_no_descriptors_left(self):
        """With every descriptor taken by idle connections, what runs goes on, and it recovers."""
        with NarrowDaemon(config={"daemon": {"max_connections": 4096}}) as d:
            def hbm_bytes():
                return sum(map(os.path.getsize, glob.glob(os.path.join(
                    d.dump_root, "PROF_*", "device_0", "data", "hbm.data.0.slice_*"))))

            session = d.ctl("start", *ORDER)["session_id"]
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
            self.assertEqual((final["state"], final["dropped_records"]), ("done", 0))

    @unittest.skipUnless(shutil.which("zstd"), "no zstd to make a bomb with")
    @unittest.skipIf(is_sanitized(), "memory is measured")
    def test_decompression_bombs(self):
        """A slice of a few hundred KiB that unpacks to 2 GiB: readers stay small and end."""
        base = tempfile.mkdtemp(prefix="profd-bomb-")
        self.addCleanup(shutil.rmtree, base)
        with Daemon() as d:
            session = d.ctl("start", *ORDER, "--compress")["session_id"]
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
        for command in (["verify", dump], ["show", dump],
                        ["export", dump, "--format", "csv,sqlite", "--out", os.path.join(base, "out")]):
            answer = subprocess.run(["prlimit", f"--data={512 * MIB}", PROFCTL, *command], capture_output=True,
                                    text=True, check=False, timeout=scaled(120))
            self.assertIn(answer.returncode, (0, 3, 5), (command, answer.stderr[-500:]))
            self.assertNotRegex(answer.stderr, r"bad_alloc|terminate")
        made = sum(os.path.getsize(path) for path in tree(os.path.join(base, "out")) if os.path.isfile(path))
        self.assertLess(made, 256 * MIB)


if __name__ == "__main__":
    main()
