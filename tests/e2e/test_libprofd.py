#!/usr/bin/env python3
"""libprofd inside a real training process (client/examples/train.cc) under a real daemon."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from prof_reader import marks_by_time
from processes import children
from profd_harness import BUILD, REPO, RUNNER, Daemon, eventually, is_sanitized, main, scaled, temp_folder
from python_package import LIBRARY
from text_files import read_json, read_text

TRAIN = os.path.join(BUILD, "bin", "train_example")
OPTIONS = json.dumps({"sys_interconnection_freq": 50, "msproftx": "on"})
FOREVER = ("--steps", "1000000", "--step-ms", "10")


MSTX_LIBRARY = os.path.join(BUILD, "lib", "libprofd_mstx.so")
# A job that knows nothing of profd: it uses mstx as the vendor's header compiles it into frameworks and HCCL, with
# a table of functions that the library named by MSTX_INJECTION_PATH fills.
MSTX_JOB = """
import ctypes, os, threading, time
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_uint, c_uint64, c_void_p
tables = {module: (c_void_p * 8)() for module in (1, 2, 3)}
places = {module: (c_void_p * 8)(*[ctypes.addressof(table) + 8 * i for i in range(8)])
          for module, table in tables.items()}
@CFUNCTYPE(c_int, c_int, POINTER(c_void_p), POINTER(c_uint))
def get_table(module, table, size):
    table[0], size[0] = ctypes.addressof(places[module]), {1: 5, 2: 6, 3: 5}[module]
    return 0
assert ctypes.CDLL(os.environ["MSTX_INJECTION_PATH"]).InitInjectionMstx(get_table) == 0
mark = CFUNCTYPE(None, c_char_p, c_void_p)(tables[1][1])
create = CFUNCTYPE(c_void_p, c_char_p)(tables[2][1])
start = CFUNCTYPE(c_uint64, c_void_p, c_char_p, c_void_p)(tables[2][4])
end = CFUNCTYPE(None, c_void_p, c_uint64)(tables[2][5])
communication = create(b"communication")
while True:
    mark(b"dataloader", None)
    outer = start(communication, b"all-reduce", None)
    inner = start(communication, b"broadcast", None)
    time.sleep(0.01)
    end(communication, outer)
    other = threading.Thread(target=end, args=(communication, inner))
    other.start()
    other.join()
"""


class Training:
    """One process of the example. Lines of its standard output are read as they come."""

    def __init__(self, attach_socket, *args, cwd=None, **env):
        self.log = tempfile.NamedTemporaryFile("r", prefix="profd-train-")
        environment = {**os.environ, "PROFD_ATTACH_SOCKET": attach_socket, "PROFD_LOG": "1", **env}
        with open(self.log.name, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(RUNNER + [TRAIN, *map(str, args)], env=environment,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=cwd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    @property
    def pid(self):
        return self.process.pid

    def output(self):
        return read_text(self.log.name)

    def finish(self):
        """Its output; it must have ended by itself and well."""
        try:
            code = self.process.wait(scaled(120))
        except subprocess.TimeoutExpired:
            code = "no end"
        if code != 0:
            raise AssertionError(f"train_example: {code}\n{self.output()}")
        return self.output()

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.wait(scaled(60))

    def steps(self):
        return len(re.findall(r"^step \d+", self.output(), re.M))

    def goes_on(self):
        """It makes steps from now on."""
        before = self.steps()
        eventually(lambda: self.steps() > before + 2 and self.process.poll() is None,
                   what="the training continues")


def session_of(output):
    found = re.search(r"^session: (.*)$", output, re.M)
    if found is None:
        raise AssertionError(output)
    return json.loads(found[1])


class LibprofdCase(unittest.TestCase):
    def daemon(self):
        daemon = Daemon("devices = 2\n")
        self.addCleanup(daemon.dispose)
        return daemon.start()

    @staticmethod
    def sessions(daemon):
        return daemon.ctl("list")["sessions"]

    def running_with_marks(self, daemon):
        """The session that runs and has marks."""
        def found():
            for session in self.sessions(daemon):
                if session["state"] != "running":
                    continue
                if daemon.show(session["session_id"]).get("marks", 0) > 20:
                    return session["session_id"]
            return None

        return eventually(found, 60, what="a session with marks")

    def assert_marks(self, entries, pid):
        """What one process recorded, wherever it was cut: steps in order, ranges and marks between."""
        self.assertTrue(entries)
        self.assertEqual({int(entry["pid"]) for entry in entries}, {pid})
        begun = [int(entry["value"]) for entry in entries if entry["kind"] == "step_begin"]
        self.assertGreater(len(begun), 1)
        self.assertEqual(begun, list(range(begun[0], begun[0] + len(begun))))
        self.assertLessEqual({entry["name"] for entry in entries if entry["kind"] == "push"},
                             {"forward", "backward", "optimizer"})
        self.assertIn("gradients ready",
                      {entry["name"] for entry in entries if entry["kind"] == "mark"})


class InTraining(LibprofdCase):
    def test_the_environment_profiles_it(self):
        daemon = self.daemon()
        with Training(daemon.attach_socket, *FOREVER, PROFILING_OPTIONS=OPTIONS) as training:
            session = self.running_with_marks(daemon)
            training.end()
        done = daemon.until_state(session, "done")
        self.assertGreater(done["records"], 0)
        self.assert_marks(marks_by_time(done["dump_path"]), training.pid)

    def test_modes_that_keep_the_environment_from_it(self):
        daemon = self.daemon()
        for mode in ("false", "dynamic"):
            with Training(daemon.attach_socket, "--steps", 3, "--step-ms", 5,
                          PROFILING_OPTIONS=OPTIONS, PROFILING_MODE=mode) as training:
                self.assertIn("attached: yes", training.finish())
        self.assertEqual(self.sessions(daemon), [])

    def test_from_inside_at_steps(self):
        daemon = self.daemon()
        with Training(daemon.attach_socket, "--steps", 12, "--step-ms", 150, "--profile-from", 3,
                      "--profile-steps", 4, "--options", OPTIONS) as training:
            output = training.finish()
        session = session_of(output)
        self.assertEqual(session["state"], "done", output)
        self.assertEqual(self.sessions(daemon)[0]["label"], "train_example")
        entries = marks_by_time(session["dump_path"])
        self.assert_marks(entries, training.pid)
        begun = [int(entry["value"]) for entry in entries if entry["kind"] == "step_begin"]
        # How late the daemon hears of the end decides how many follow.
        self.assertEqual((session["reason"], begun[:4]), ("4 steps (3..6)", [3, 4, 5, 6]))
        self.assertIn("example", json.dumps(read_json(session["dump_path"], "profd_manifest.json")))  # profd_set_metadata

    def test_as_many_steps_as_requested_from_now_on(self):
        """Steps so short that some pass before the process hears of the session."""
        daemon = self.daemon()
        with Training(daemon.attach_socket, "--steps", 100000, "--step-ms", 2, PROFD_JOB_ID="short"):
            eventually(lambda: daemon.ctl("jobs")["jobs"])
            for _ in range(5):
                session = daemon.ctl("start", "--job", "short", "--devices", "0", "--collector", "hccs=10", "--steps", "5")
                done = daemon.until_state(session["session_id"], "done")
                first, last = map(int, re.fullmatch(r"5 steps \((\d+)\.\.(\d+)\)", done["reason"]).groups())
                self.assertEqual((last - first + 1, done["steps_done"]), (5, 5), done["reason"])

    def test_wrong_options_do_not_stop_the_training(self):
        daemon = self.daemon()
        with Training(daemon.attach_socket, "--steps", 3, "--step-ms", 5, "--profile-steps", 2,
                      "--options", '{"nonsense":1,"dvpp_freq":1000}') as training:
            output = training.finish()
        self.assertIn("not profiled:", output)
        self.assertIn("nonsense", output)
        self.assertIn("dvpp_freq", output)
        self.assertEqual(self.sessions(daemon), [])

    def test_a_killed_process_leaves_its_dump(self):
        daemon = self.daemon()
        with Training(daemon.attach_socket, *FOREVER, PROFILING_OPTIONS=OPTIONS) as training:
            session = self.running_with_marks(daemon)
            training.end(signal.SIGKILL)
        done = daemon.until_state(session, "done")
        self.assert_marks(marks_by_time(done["dump_path"]), training.pid)
        # And the next one is served.
        with Training(daemon.attach_socket, "--steps", 2, "--step-ms", 5) as training:
            self.assertIn("attached: yes", training.finish())

    def test_the_dump_of_a_killed_process_is_fetched_to_its_output(self):
        daemon = self.daemon()
        folder = temp_folder(self)
        where = {"PATH": os.path.join(BUILD, "bin") + ":" + os.environ["PATH"], "PROFD_SOCKET": daemon.socket,
                 "ASCEND_WORK_PATH": os.path.join(folder, "work")}
        for output, wanted in (({"output": "made/by/it"}, "made/by/it"), ({}, "work/profiling_data")):
            options = json.dumps({"sys_interconnection_freq": 50, "msproftx": "on", **output})
            with Training(daemon.attach_socket, *FOREVER, PROFILING_OPTIONS=options, cwd=folder, **where) as training:
                session = self.running_with_marks(daemon)
                self.assertEqual(children(training.pid), [], "the program has no child that it does not know")
                training.end(signal.SIGKILL)
            copy = os.path.join(folder, wanted, os.path.basename(daemon.until_state(session, "done")["dump_path"]))
            eventually(lambda: os.path.exists(os.path.join(copy, "profd_manifest.json")), what="the copy")
            eventually(lambda: daemon.run("verify", copy).returncode == 0, what="all of it")

    def test_no_copy_where_none_is_wanted(self):
        daemon = self.daemon()
        folder = temp_folder(self)
        options = json.dumps({"sys_interconnection_freq": 50, "msproftx": "on", "output": folder})
        where = {"PATH": os.path.join(BUILD, "bin") + ":" + os.environ["PATH"], "PROFD_SOCKET": daemon.socket}
        with Training(daemon.attach_socket, *FOREVER, PROFILING_OPTIONS=options, PROFD_FETCH="0", **where) as training:
            session = self.running_with_marks(daemon)
            training.end()
        daemon.until_state(session, "done")
        self.assertEqual(os.listdir(folder), [])
        # By hand, of a session that still runs.
        with Training(daemon.attach_socket, *FOREVER, PROFILING_OPTIONS=options, PROFD_FETCH="0", **where) as training:
            session = self.running_with_marks(daemon)
            waiting = daemon.spawn("fetch", session, "--wait")
            training.goes_on()
            self.assertIsNone(waiting.poll())
            training.end()
            self.assertEqual(waiting.wait(scaled(60)), 0, waiting.stderr.read())
        self.assertEqual(len(os.listdir(folder)), 1)

    def test_a_killed_daemon_is_found_again(self):
        daemon = self.daemon()
        with Training(daemon.attach_socket, *FOREVER, PROFILING_OPTIONS=OPTIONS) as training:
            first = self.running_with_marks(daemon)
            daemon.kill()
            training.goes_on()
            daemon.start()
            # What PROFILING_OPTIONS requests was not ended: it continues in another dump.
            self.assertEqual(self.running_with_marks(daemon), first)
            before = daemon.show(first)["dump_path"]
            training.goes_on()
            training.end()
        done = daemon.until_state(first, "done")
        self.assertEqual(len(self.sessions(daemon)), 1)
        self.assertEqual(before, done["dump_path"])
        self.assert_marks(marks_by_time(done["dump_path"]), training.pid)

    def test_a_session_ended_by_a_stopped_daemon_does_not_begin_again(self):
        daemon = self.daemon()
        with Training(daemon.attach_socket, *FOREVER, PROFILING_OPTIONS=OPTIONS, SLURM_JOB_ID="4712",
                      ASCEND_DEVICE_ID="0") as training:
            first = self.running_with_marks(daemon)
            daemon.restart()
            eventually(lambda: training.output().count("attached to profd") == 2,
                       what="it attaches again")
            # Asked from outside it is profiled, so the process has come to rest.
            second = daemon.ctl("start", "--job", "4712",
                                "--sys-interconnection-freq", 50)["session_id"]
            self.assertEqual(self.running_with_marks(daemon), second)
            self.assertEqual({session["session_id"] for session in self.sessions(daemon)},
                             {first, second})
            self.assertEqual(daemon.show(first)["state"], "done")

    def test_a_restarted_daemon_is_attached_to_again(self):
        daemon = self.daemon()
        with Training(daemon.attach_socket, *FOREVER, SLURM_JOB_ID="4711", SLURM_PROCID="0",
                      ASCEND_DEVICE_ID="1") as training:
            def attached():
                """The job it attached as."""
                return next((p["job_id"] for p in daemon.processes() if p["pid"] == training.pid and p["attached"]), None)

            eventually(attached)
            for _ in range(2):
                daemon.restart()
                eventually(attached, what="it attaches again")
                training.goes_on()
            session = daemon.ctl("start", "--job", attached(), "--msproftx", "on",
                                 "--sys-interconnection-freq", 50)["session_id"]
            eventually(lambda: daemon.show(session).get("marks", 0) > 20, 60)
            daemon.ctl("stop", session)
            done = daemon.until_state(session, "done")
            # What is not requested is not sent.
            eventually(lambda: not training.output().rstrip().endswith("profiled"))
        self.assert_marks(marks_by_time(done["dump_path"]), training.pid)

    @unittest.skipIf(is_sanitized() or RUNNER, "of this machine's ordinary build")
    def test_marks_of_mstx(self):
        daemon = self.daemon()
        environment = {**os.environ, "PROFD_ATTACH_SOCKET": daemon.attach_socket, "PROFILING_OPTIONS": OPTIONS,
                       "MSTX_INJECTION_PATH": MSTX_LIBRARY}
        with subprocess.Popen([sys.executable, "-c", MSTX_JOB], env=environment) as job:
            try:
                session = self.running_with_marks(daemon)
            finally:
                job.kill()
        done = daemon.until_state(session, "done")
        entries = marks_by_time(done["dump_path"])
        seen = {(entry["kind"], entry["domain"], entry["name"]) for entry in entries}
        self.assertEqual(seen, {("mark", "", "dataloader"), ("range_start", "communication", "all-reduce"),
                                ("range_start", "communication", "broadcast"), ("range_end", "", "")})
        # Both ranges of a round are open at a time, and one ends on another thread: two rows on the timeline.
        out = temp_folder(self)
        daemon.ctl("export", done["dump_path"], "--format", "trace", "--out", out)
        [path] = glob.glob(os.path.join(out, "**", "*.json"), recursive=True)
        events = read_json(path)
        events = events["traceEvents"] if isinstance(events, dict) else events
        rows = {event["args"]["name"].split(": ", 1)[1] for event in events
                if event.get("name") == "thread_name" and "Ranges" in event["args"]["name"]}
        self.assertEqual(rows, {"Ranges: communication", "Ranges: communication (2)"})
        slices = [event for event in events if event.get("name") == "all-reduce"]
        self.assertGreater(len(slices), 5)
        self.assertTrue(all(event["cat"] == "communication" and event["dur"] > 5000 for event in slices), slices)

    def test_without_a_daemon_and_disabled(self):
        folder = temp_folder(self)
        path = os.path.join(folder, "none.sock")
        with Training(path, "--steps", 3, "--step-ms", 5, "--wait-ms", 10, "--profile-steps", 1,
                      PROFILING_OPTIONS=OPTIONS) as training:
            self.assertIn("not profiled: connect to", training.finish())
        daemon = self.daemon()
        with Training(daemon.attach_socket, "--steps", 3, "--step-ms", 5, PROFD_DISABLE="1",
                      PROFILING_OPTIONS=OPTIONS) as training:
            self.assertIn("PROFD_DISABLE", training.finish())
        self.assertEqual(self.sessions(daemon), [])


class Binary(unittest.TestCase):
    """What a training process gets along with the library: nothing."""

    @unittest.skipIf(is_sanitized() or RUNNER, "of this machine's ordinary build")
    def test_only_the_c_api_is_exported(self):
        if shutil.which("nm") is None:
            self.skipTest("no nm")
        listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True,
                                text=True, check=True).stdout
        exported = {line.split()[2].split("@")[0] for line in listed.splitlines()
                    if line.split()[1] != "A"}
        declared = set(re.findall(r"^PROFD_API [\w ]+?\*?\s*(profd_\w+)\(", read_text(REPO, "client", "libprofd", "profd.h"), re.M))
        self.assertGreater(len(declared), 15)
        self.assertEqual(exported, declared)

    @unittest.skipIf(is_sanitized() or RUNNER, "of this machine's ordinary build")
    def test_it_needs_the_c_and_cxx_libraries_only(self):
        if shutil.which("readelf") is None:
            self.skipTest("no readelf")
        text = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True,
                              check=True).stdout
        needed = set(re.findall(r"NEEDED.*\[(.*?)\.so", text))
        self.assertLessEqual({name for name in needed if not name.startswith("ld-linux")},
                             {"libstdc++", "libgcc_s", "libc", "libm", "libpthread"})
        self.assertIn("libprofd.so.0", re.search(r"SONAME.*\[(.*)\]", text)[1])
        self.assertIn("NODELETE", text)

    @unittest.skipIf(is_sanitized() or RUNNER, "of this machine's ordinary build")
    def test_unloading_it_is_harmless(self):
        code = ("import _ctypes, ctypes, sys, time\n"
                "library = ctypes.CDLL(sys.argv[1])\n"
                "assert library.profd_init(None) == 0\n"
                "library.profd_attach(50)\n"
                "_ctypes.dlclose(library._handle)\n"
                "library.profd_mark(b'still there')\n"
                "time.sleep(0.3)\n")  # its thread tries again meanwhile
        done = subprocess.run([sys.executable, "-c", code, LIBRARY], text=True, capture_output=True,
                              env={**os.environ, "PROFD_ATTACH_SOCKET": "/nonexistent"}, check=False,
                              timeout=scaled(60))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_manual_page_has_all_of_the_header(self):
        header = read_text(REPO, "client", "libprofd", "profd.h").split("namespace profd")[0]
        page = read_text(REPO, "client", "libprofd", "libprofd.3")
        functions = re.findall(r"^PROFD_API [\w ]+?\*?\s*(profd_\w+)\(", header, re.M)
        for name in functions:
            self.assertRegex(page, rf"(?m)^\.Fn {name} \"")
        names = re.findall(r"^  (PROFD_\w+) = -?\d", header, re.M) + re.findall(r"^ \*   (PROF\w+)", header, re.M)
        names += re.findall(r"^  (?:const )?\w+\*? (\w+);", header, re.M)
        self.assertGreater(len(names), 35)
        self.assertEqual([name for name in names if not re.search(rf"\b{name}\b", page)], [])

    def test_the_header_is_plain_c(self):
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            self.skipTest("no C compiler")
        code = ('#include "client/libprofd/profd.h"\n'
                "int f(void) { profd_config c = PROFD_CONFIG_INIT;\n"
                "  profd_start_args a = PROFD_START_ARGS_INIT;\n"
                "  return profd_init(&c) + profd_start_with(&a); }\n")
        done = subprocess.run([compiler, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
                               "-fsyntax-only", "-I", REPO, "-x", "c", "-"], input=code, text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
