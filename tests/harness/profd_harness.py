"""Starts the daemon on the simulated node and talks to it the way a user does.

Only real processes and sockets: `profd`, `profctl`, HTTP. Every wait has a generous deadline and ends
as soon as its condition holds; no test passes or fails by how long something took.

Environment:
  PYTHONPATH        this folder, for every test that is run by hand
  PROFD_BUILD_DIR   build tree with bin/ and sim/ (default: build/dev of this repository)
  PROFD_RUNNER      prefix for every binary of ours, e.g. "qemu-aarch64 -L /usr/aarch64-linux-gnu"
  PROFD_TIME_SCALE  factor on every deadline (sanitizers, emulation)
"""

import contextlib
import grp
import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import processes
import run_tests
from text_files import read_text, write_text
from toml_files import merged, scenario_text, toml

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("PROFD_BUILD_DIR", os.path.join(REPO, "build", "dev")))
RUNNER = shlex.split(os.environ.get("PROFD_RUNNER", ""))
SCALE = float(os.environ.get("PROFD_TIME_SCALE", "1"))
PROFD = os.path.join(BUILD, "bin", "profd")
PROFCTL = os.path.join(BUILD, "bin", "profctl")
# Data with known answers, where it is there.
SHARED_DATA = os.environ.get("PROFD_SHARED_DATA", os.path.join(os.path.dirname(REPO), "shared", "data"))
IS_ROOT = os.geteuid() == 0

# Two users and the group both are in. Numbers, not accounts: nothing is added to /etc/passwd.
ALICE = 61001
BOB = 61002
MALLORY = 61003
TEST_GROUP = "profd-e2e"
# A request for everything.
ALL_OPTIONS = [
    "--sys-hardware-mem-freq", "100", "--llc-profiling", "read", "--sys-io-sampling-freq", "100",
    "--sys-interconnection-freq", "50", "--dvpp-freq", "100", "--host-sys-usage", "cpu,mem",
]
DEADLINE = 30.0


class Refused(AssertionError):
    """profctl ended with another code than the test expected."""


def scaled(seconds):
    return seconds * SCALE


def eventually(condition, seconds=DEADLINE, what=None, every=None):
    """Returns the first true value of condition(); fails when there was none before the deadline. Without `every` it looks
    ever less often: a look may be a process, and others need the processors."""
    begin = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        waited = time.monotonic() - begin
        if waited > scaled(seconds):
            raise AssertionError(f"not within {scaled(seconds):.0f} s: {what or condition}")
        time.sleep(every or min(max(0.02, waited / 10), 0.2))


def profctl(*arguments, expect=0, seconds=120, **how):
    """profctl by itself; the finished process, which ended with this code (None: any)."""
    done = subprocess.run(RUNNER + [PROFCTL, *map(str, arguments)], capture_output=True, text=True, check=False,
                          timeout=scaled(seconds), stdin=subprocess.DEVNULL, **how)
    if expect not in (None, done.returncode):
        raise Refused(f"profctl {' '.join(map(str, arguments))}: {done.returncode}, expected {expect}\n"
                      f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done


def temp_folder(test):
    """A folder until this test, or this class of tests, has ended."""
    folder = tempfile.mkdtemp(prefix="profd-test-")
    (test.addClassCleanup if isinstance(test, type) else test.addCleanup)(shutil.rmtree, folder, ignore_errors=True)
    return folder


def memory_root():
    """Where folders are in memory, if there is enough of it (None: nowhere): a disk takes seconds to make thousands of small
    files, and again to remove them."""
    shm = "/dev/shm"
    return shm if os.access(shm, os.W_OK) and shutil.disk_usage(shm).free > 2 << 30 else None


def demote(uid, gid=None, groups=()):
    """A preexec_fn that makes the child another user for good."""
    gid = uid if gid is None else gid

    def run():
        os.setgroups(list(groups))
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)

    return run


def group_id(name=TEST_GROUP):
    """gid of the tests' group, made on first use. Skips the test where that is impossible."""
    for attempt in (1, 2):
        with contextlib.suppress(KeyError):
            return grp.getgrnam(name).gr_gid
        tool = shutil.which("groupadd") or "/usr/sbin/groupadd"
        if attempt == 2 or not IS_ROOT or not os.path.exists(tool):
            raise unittest.SkipTest(f"no group {name} and no right or tool to add it")
        # Another test file may be adding it in this moment: the second look decides.
        subprocess.run([tool, "--system", name], capture_output=True, check=False)
    raise AssertionError("unreachable")


def replace_file(path, text):
    """Its readers see the old text or the new one."""
    write_text(path + ".new", text)
    os.rename(path + ".new", path)


def parse_metrics(text):
    """Prometheus text -> {(name, ((label, value), ...)): float}."""
    samples = {}
    line_format = re.compile(r"^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?$")
    label_format = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        match = line_format.match(line)
        if not match:
            raise AssertionError(f"not a sample: {line!r}")
        labels = tuple(sorted(label_format.findall(match[2] or "")))
        key = (match[1], labels)
        if key in samples:
            raise AssertionError(f"twice in one scrape: {line!r}")
        samples[key] = float(match[3])
    return samples


class Daemon:
    """One profd on a folder of its own. Use as a context manager, or start()/stop()."""

    def __init__(self, scenario_text=None, config=None, args=(), simulate=True, env=None,
                 base=None):
        self.base = base or tempfile.mkdtemp(prefix="profd-e2e-")
        # Other users must reach the socket; what is below it has modes of its own.
        os.chmod(self.base, 0o755)
        self.socket = os.path.join(self.base, "s")
        self.attach_socket = os.path.join(self.base, "attach.sock")
        self.dump_root = os.path.join(self.base, "dumps")
        self.log_path = os.path.join(self.base, "log")
        self.config_path = os.path.join(self.base, "profd.toml")
        os.makedirs(self.dump_root, exist_ok=True)
        self.config = config or {}
        self.write_config(self.config)
        self.simulate = simulate
        self.scenario_path = None
        if scenario_text is not None:
            self.scenario_path = os.path.join(self.base, "scenario.toml")
            write_text(self.scenario_path, scenario_text)
        self.args = list(args)
        self.env = dict(os.environ, **(env or {}))
        self.process = None
        self.metrics_address = ""
        self.exit_code = None

    def write_config(self, config):
        with open(self.config_path, "w", encoding="utf-8") as out:
            # On a machine that is busy with tests, and in builds that check themselves, any budget is exceeded.
            out.write(toml({"overhead": {"max_daemon_permille": 0, "max_process_permille": 0}} | config))

    def command(self):
        command = RUNNER + [PROFD, "--config", self.config_path, "--socket", self.socket,
                            "--dump-root", self.dump_root, "--metrics-listen", "127.0.0.1:0"]
        if self.simulate:
            command += ["--simulate"] + ([self.scenario_path] if self.scenario_path else [])
        return command + self.args

    def start(self, ready=True):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.env)
        if ready:
            self.wait_ready()
        return self

    def start_in_vain(self):
        """Starts it; the code with which it ends by itself."""
        self.start(ready=False)
        self.exit_code = self.process.wait(scaled(60))
        self.process = None
        return self.exit_code

    def wait_ready(self):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"profd ended with {self.process.returncode}\n{self.log()}")
            result = self.run("status")
            return json.loads(result.stdout) if result.returncode == 0 else None

        try:
            self.node = eventually(ready, what="profd answers")
        except AssertionError:
            self.dispose()
            raise
        self.metrics_address = self.node["metrics_address"]

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind is not None and kind is not unittest.SkipTest:
            sys.stderr.write(f"--- log of profd ({self.log_path})\n{self.log()}\n---\n")
        self.dispose()

    # Processes ------------------------------------------------------------------------------

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self, number=signal.SIGTERM, seconds=60):
        """Ends the daemon by a signal and returns its exit code."""
        if self.process is None:
            return self.exit_code
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.exit_code = self.process.wait(scaled(seconds))
        self.process = None
        return self.exit_code

    def kill(self):
        return self.stop(signal.SIGKILL)

    def restart(self):
        """The same folder, socket and dumps under a new process."""
        if self.process is not None:
            self.stop()
        return self.start()

    def dispose(self):
        """Ends the daemon however it feels about it and removes its folder."""
        try:
            if self.process is not None:
                code = self.stop()
                if code != 0 and sys.exc_info()[0] is None:
                    raise AssertionError(f"profd ended with {code}\n{self.log()}")
        except subprocess.TimeoutExpired:
            log = self.log()
            self.kill()
            raise AssertionError(f"profd did not end\n{log}") from None
        finally:
            shutil.rmtree(self.base, ignore_errors=True)

    def log(self, lines=60):
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                return "\n".join(log.read().splitlines()[-lines:])
        except OSError as error:
            return str(error)

    def rss(self):
        return processes.rss(self.pid)

    def thread_count(self):
        return int(processes.status(self.pid, "Threads"))

    def fd_count(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def cpu_seconds(self):
        return processes.cpu_seconds(self.pid)

    # profctl --------------------------------------------------------------------------------

    def ctl_command(self, *args, json_output=True):
        return RUNNER + [PROFCTL, "--socket", self.socket] + (["--json"] if json_output else []) + [
            str(arg) for arg in args]

    def run(self, *args, user=None, groups=(), json_output=True, seconds=120, cwd=None, env=None,
            input=None):
        """profctl with these arguments; the finished process, whatever its code."""
        return subprocess.run(
            self.ctl_command(*args, json_output=json_output), capture_output=True, text=True,
            check=False, timeout=scaled(seconds), cwd=cwd, env=env, input=input,
            stdin=None if input is not None else subprocess.DEVNULL,
            preexec_fn=demote(user, groups=groups) if user is not None else None)

    def ctl(self, *args, expect=0, **how):
        """profctl --json; parsed stdout (None if empty). Fails on another exit code."""
        result = self.run(*args, **how)
        accepted = expect if isinstance(expect, (tuple, list, set)) else (expect,)
        if result.returncode not in accepted:
            raise Refused(f"profctl {' '.join(map(str, args))}: {result.returncode}, expected "
                          f"{expect}\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}")
        return json.loads(result.stdout) if result.stdout.strip() else None

    def spawn(self, *args, user=None, groups=(), json_output=True, **how):
        """profctl in the background."""
        return subprocess.Popen(
            self.ctl_command(*args, json_output=json_output), text=True,
            stdin=how.pop("stdin", subprocess.DEVNULL),
            stdout=how.pop("stdout", subprocess.PIPE), stderr=how.pop("stderr", subprocess.PIPE),
            preexec_fn=demote(user, groups=groups) if user is not None else None, **how)

    def show(self, session_id, **how):
        return self.ctl("show", session_id, **how)

    def processes(self, job_id=None):
        """Those of all jobs, or of one, each with the `job_id`."""
        return [dict(process, job_id=job["job_id"]) for job in self.ctl("jobs")["jobs"]
                if job_id in (None, job["job_id"]) for process in job["processes"]]

    def until_state(self, session_id, *states, seconds=60):
        def reached():
            session = self.show(session_id)
            return session if session["state"] in states else None

        return eventually(reached, seconds, what=f"{session_id} is {' or '.join(states)}")

    def until_records(self, session_id, records, seconds=60):
        """Waits until the session has recorded at least so many records."""
        def reached():
            session = self.show(session_id)
            return session if session["records"] >= records else None

        return eventually(reached, seconds, what=f"{session_id} has {records} records")

    def record(self, *options, seconds=1.0, **how):
        """start, run until the daemon's own clock says so, stop: the final session."""
        session = self.ctl("start", *options, "--duration", f"{int(seconds * 1000)}ms", **how)
        return self.until_state(session["session_id"], "done", "failed")

    # /metrics -------------------------------------------------------------------------------

    def get(self, path, **headers):
        request = urllib.request.Request(f"http://{self.metrics_address}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=scaled(20)) as answer:
            return answer.read().decode()

    def scrape(self, **headers):
        return parse_metrics(self.get("/metrics", **headers))

    def metric(self, name, **labels):
        """Sum of the samples of this name that carry these labels; None if there is none."""
        wanted = set(labels.items())
        found = [v for (n, have), v in self.scrape().items() if n == name and wanted <= set(have)]
        return sum(found) if found else None

    def connect(self):
        """A raw connection to the daemon's socket."""
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # A full backlog makes a caller with a timeout fail at once: wait for it without one.
        raw.connect(self.socket)
        raw.settimeout(scaled(DEADLINE))
        return raw


def outcome(session, collector, device=None):
    """That of a collector, on this device where there may be several."""
    for entry in session["outcomes"]:
        if entry["collector"] == collector and device in (None, entry["device"]):
            return entry
    raise AssertionError(f"no outcome of {collector} on device {device}")


class DaemonCase(unittest.TestCase):
    """A test case with a daemon for all of its tests (setUpClass) and its log on failure."""

    devices = 2
    config = {}
    faults = ()
    daemon_args = ()
    chip = "910B"
    daemon = None

    @classmethod
    def setUpClass(cls):
        text = scenario_text(chip=cls.chip, devices=cls.devices, faults=cls.faults)
        cls.daemon = Daemon(scenario_text=text, config=cls.make_config(), args=cls.daemon_args)
        cls.daemon.start()

    @classmethod
    def make_config(cls):
        return cls.config

    @classmethod
    def tearDownClass(cls):
        if cls.daemon is not None:
            cls.daemon.dispose()

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before and self.daemon:
            sys.stderr.write(f"--- log of profd, {self.id()}\n{self.daemon.log()}\n---\n")

    def tearDown(self):
        if self.daemon.process is not None:
            self.assertTrue(self.daemon.alive(), "profd died")

    def end_all(self):
        """No session of an earlier test is left."""
        for session in self.daemon.ctl("list", "--active")["sessions"]:
            self.daemon.ctl("stop", session["session_id"])


@unittest.skipUnless(IS_ROOT, "only root can be several users")
class UsersCase(DaemonCase):
    """Users of the tests' group share the daemon. First of the base classes, if there are several."""

    @classmethod
    def setUpClass(cls):
        cls.group = group_id()
        super().setUpClass()

    @classmethod
    def make_config(cls):
        return merged({"daemon": {"socket_group": TEST_GROUP}}, super().make_config())

    @classmethod
    def ctl_as(cls, uid, *args, **how):
        return cls.daemon.ctl(*args, user=uid, groups=(cls.group,), **how)


def raise_file_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def is_sanitized():
    """True when the build under test carries a sanitizer: its memory says nothing about ours."""
    try:
        return bool(re.search(r"^PROFD_SANITIZE:STRING=\S", read_text(BUILD, "CMakeCache.txt"), re.M))
    except OSError:
        return False


def main():
    raise_file_limit()
    for binary in (PROFD, PROFCTL):
        if not os.path.exists(binary):
            raise SystemExit(f"{binary} is missing; build the targets profd and profctl first")
    run_tests.main()
