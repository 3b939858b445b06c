"""Several sessions of one Python process at the same time, and one of two programs in a process."""

import os
import sys
import textwrap
import unittest

import profd_harness
from prof_reader import marks_by_time
from profd_harness import DaemonCase, is_sanitized, scaled, temp_folder
from python_package import answer, environment, python
from text_files import write_text


class Overlapping(DaemonCase):
    def test_each_ends_its_own(self):
        """The first to begin is the first to end."""
        ended = answer(python("""
            import json, profd
            first, second = (profd.profile({"msproftx": "on"}, label=label, strict=True).start() for label in "ab")
            begun = [p.summary["session_id"] for p in (first, second)]
            profd.mark("both")
            ends = [first.stop()]
            profd.mark("second")
            ends.append(second.stop())
            print(json.dumps([begun, ends]))
        """, self.daemon))
        begun, ends = ended
        self.assertEqual([s["session_id"] for s in ends], begun)
        self.assertEqual([[e["name"] for e in marks_by_time(s["dump_path"])] for s in ends], [["both"], ["both", "second"]])

    def test_numbers_of_metrics(self):
        """As MindSpore's Profiler counts them, which is as aiCoreMetricsType does."""
        sessions = answer(python("""
            import json
            from profd import Profiler
            print(json.dumps([Profiler(aicore_metrics=number).analyse()["session_id"] for number in range(6)]))
        """, self.daemon))
        found = [option["value"] for session in sessions for option in self.daemon.show(session)["effective_options"] if option["key"] == "aic_metrics"]
        self.assertEqual(found, ["ArithmeticUtilization", "PipeUtilization", "Memory", "MemoryL0", "ResourceConflictRatio", "MemoryUB"])

    def test_a_script_that_begins_nothing_does_not_attach_at_its_exit(self):
        result = python("""
            import profd
            print(profd.version() != "", profd.active())
        """, self.daemon, env={"PROFD_LOG": "1", "PROFILING_OPTIONS": '{"sys_interconnection_freq": 50}', "SLURM_JOB_ID": "77003"})
        self.assertEqual((result.stdout, result.stderr), ("True False\n", ""))
        self.assertEqual([s for s in self.daemon.ctl("list")["sessions"] if s["job_id"] == "77003"], [])

    def test_threads(self):
        found = answer(python("""
            import json, threading, profd
            found, together = [], threading.Barrier(4)
            def run():
                for _ in range(5):
                    together.wait(60)
                    with profd.profile({"msproftx": "on"}, strict=True) as p:
                        begun = p.summary["session_id"]
                        together.wait(60)
                    found.append([begun, p.summary["session_id"], p.summary["state"]])
            threads = [threading.Thread(target=run) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print(json.dumps(found))
        """, self.daemon))
        self.assertEqual(len({begun for begun, _, _ in found}), 20)
        self.assertEqual([[ended, state] for _, ended, state in found], [[begun, "done"] for begun, _, _ in found])

    def test_steps_of_a_program_that_the_process_executes(self):
        """It attaches anew, and the session waits for that."""
        script = os.path.join(temp_folder(self), "train.py")
        write_text(script, textwrap.dedent("""
            import os, sys, time, profd
            profd.attach(10)
            for n in range(int(sys.argv[1])):
                with profd.step(n):
                    time.sleep(0.02)
            if sys.argv[2:]:
                os.execv(sys.executable, [sys.executable, sys.argv[0], *sys.argv[2:]])
        """))
        done = self.daemon.run("run", "--start-step", 5, "--steps", 4, "--msproftx", "on", "--", sys.executable, script, 3, 100,
                          env=environment(self.daemon))
        self.assertEqual(done.returncode, 0, done.stderr)
        [session] = [s for s in self.daemon.ctl("list")["sessions"] if s["start_step"] == 5]
        self.assertRegex(session["reason"], r"^4 steps \(\d+\.\.\d+\)$")

    def test_why_a_session_was_not_ended(self):
        """Its summary is requested afterwards, which has a result of its own."""
        result = python("""
            import profd
            from profd import _lib
            class Library:
                path, error = "stub", b""
                def profd_session_json(self, buffer, *_):
                    self.error, buffer.value = b"", b'{"session_id": "s"}'
                    return len(buffer.value)
                def profd_stop_session(self, *_):
                    self.error = b"the daemon has not answered in time"
                    return _lib.TIMEOUT
                def profd_last_error(self):
                    return self.error
                def profd_stacks_wanted(self, *_):
                    return _lib.DISABLED
                def __getattr__(self, name):
                    return lambda *_: 0
            _lib._library = Library()
            with profd.profile():
                pass
        """)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("profile not ended in order: the daemon has not answered in time", result.stderr)


class Alone(unittest.TestCase):
    """Without a daemon."""

    @unittest.skipIf(is_sanitized(), "the child of a process with threads may start none")
    def test_forks_while_another_thread_holds_a_lock(self):
        result = python(f"""
            import os, signal, threading, profd
            from profd import _lib, _modules, _stacks
            for lock in (_lib._lock, _modules._lock, _stacks._lock):
                held, free = threading.Event(), threading.Event()
                def hold():
                    with lock:
                        held.set()
                        free.wait()
                thread = threading.Thread(target=hold)
                thread.start()
                held.wait()
                child = os.fork()
                if child == 0:
                    signal.alarm({round(scaled(30))})
                    profd.trace_modules(object)
                    profd.mark("in the child")
                    os._exit(0)
                print(os.waitpid(child, 0)[1])
                free.set()
                thread.join()
        """)
        self.assertEqual(result.stdout.split(), ["0", "0", "0"], result.stderr)

    def test_the_thread_of_stacks_outlives_a_restart(self):
        result = python("""
            import sys, profd
            from profd import _stacks
            sys.setswitchinterval(1e-5)
            profd.init()
            for _ in range(300):
                profd.shutdown()
                profd.init()
                _stacks._thread.join(0.005)
                assert _stacks._thread.is_alive()
        """)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    profd_harness.main()
