"""The Python package over libprofd, as a training script uses it: real library, real daemon."""

import contextlib
import json
import os
import subprocess
import sys
import unittest

import profd_harness
from prof_reader import marks_by_time
from profd_harness import BUILD, REPO, DaemonCase, eventually, scaled, temp_folder
from python_package import answer, environment, python


LOOP = """
    import json, time, profd
    with profd.profile({"sys_interconnection_freq": 50}, strict=True) as p:
        for n in range(5):
            with profd.step(n):
                with profd.annotate("forward"):
                    time.sleep(0.02)
                profd.mark(f"mark {n}")
    print(json.dumps(p.summary))
"""


class Python(DaemonCase):
    def test_context_manager(self):
        summary = answer(python(LOOP, self.daemon))
        self.assertEqual(summary["state"], "done")
        self.assertGreater(summary["records"], 0)
        found = marks_by_time(summary["dump_path"])
        steps = [int(e["value"]) for e in found if e["kind"] == "step_begin"]
        self.assertEqual(steps, list(range(5)))
        self.assertEqual([e["name"] for e in found if e["kind"] == "mark"],
                         [f"mark {n}" for n in range(5)])
        self.assertEqual(len([e for e in found if e["kind"] == "push"]), 5)
        self.assertEqual(len([e for e in found if e["kind"] == "pop"]), 5)

    def test_children_that_are_forked_when_a_session_reaches_the_process(self):
        """The library's thread opens a plug-in then, whose locks the child must not need."""
        session = self.daemon.ctl("start", "--all", "--job", "forks", "--msproftx", "on", "--host-sys-usage", "mem")
        self.addCleanup(self.daemon.ctl, "stop", session["session_id"])
        script = """
            import json, os, time, profd
            profd.attach(10)
            children = []
            for _ in range(20):
                children.append(os.fork())
                if children[-1] == 0:
                    profd.attach(10)
                    until = time.monotonic() + 20
                    while not profd.active() and time.monotonic() < until:
                        time.sleep(0.005)
                    os._exit(0 if profd.active() else 1)
            print(json.dumps([os.waitpid(child, 0)[1] for child in children]))
        """
        for _ in range(3):  # not every time a fork meets it
            result = python(script, self.daemon, {"PROFD_JOB_ID": "forks"})
            self.assertEqual(answer(result), [0] * 20, result.stderr)

    def test_forked_children_that_call_nothing_do_not_attach(self):
        result = python("""
            import os, sys, profd
            profd.attach(10)
            for _ in range(3):
                child = os.fork()
                if child == 0:
                    sys.exit(0)  # with what is to be done at the exit
                os.waitpid(child, 0)
        """, self.daemon, {"PROFD_LOG": "1"})
        self.assertEqual((result.returncode, result.stderr.count("attached to")), (0, 1), result.stderr)

    def test_steps(self):
        summary = answer(python("""
            import json, time, profd
            profd.attach()
            p = profd.Profile({"sys_interconnection_freq": 50}, start_step=3, steps=2, strict=True)
            p.start()
            for n in range(8):
                profd.step(n)
                time.sleep(0.1)
            print(json.dumps(p.stop()))
        """, self.daemon))
        self.assertEqual(summary["state"], "done", summary)
        begun = [int(e["value"]) for e in marks_by_time(summary["dump_path"]) if e["kind"] == "step_begin"]
        # How late the daemon hears of the end decides how many follow.
        self.assertEqual((summary["reason"], begun[:2]), ("2 steps (3..4)", [3, 4]))

    def test_schedule(self):
        """Two windows of two steps, as torch.profiler.schedule's documentation counts them."""
        out = answer(python("""
            import json, time, profd
            ready = []
            with profd.profile({"sys_interconnection_freq": 50, "msproftx": "on"}, strict=True,
                               schedule=profd.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1),
                               on_trace_ready=lambda p: ready.append((p.step_num, p.summary))) as prof:
                for n in range(12):
                    with profd.record_function(f"forward {n}"):
                        time.sleep(0.02)
                    prof.step()
            print(json.dumps([ready, prof.summaries]))
        """, self.daemon))
        ready, summaries = out
        self.assertEqual([step for step, _ in ready], [4, 8])
        self.assertEqual([summary for _, summary in ready], summaries)
        for summary, steps in zip(summaries, ([3, 4], [7, 8])):
            self.assertEqual(summary["state"], "done")
            found = marks_by_time(summary["dump_path"])
            for kind in ("step_begin", "step_end"):
                self.assertEqual([int(e["value"]) for e in found if e["kind"] == kind], steps)
            self.assertEqual([e["name"] for e in found if e["kind"] == "push"], [f"forward {n}" for n in steps])

    def test_a_loop_that_ends_before_the_first_window(self):
        """Warned of once; not of a loop that failed, nor where profiling is switched off."""
        code = """
            import profd
            prof = profd.profile({"sys_interconnection_freq": 50}, schedule=profd.schedule(wait=2, warmup=1, active=2))
            with prof:
                for n in range(2):
                    prof.step()
            prof.stop()
            try:
                with profd.profile(schedule=profd.schedule(wait=2, warmup=1, active=2)):
                    raise KeyError("mine")
            except KeyError:
                print(prof.summaries)
        """
        result = python(code, self.daemon)
        self.assertEqual((result.returncode, result.stdout.strip()), (0, "[]"), result.stderr)
        self.assertEqual(result.stderr.count("RuntimeWarning: nothing was recorded: step() was called 2 times"), 1, result.stderr)
        self.assertEqual(result.stderr.count("Warning"), 1, result.stderr)
        self.assertEqual(python(code, env={"PROFD_DISABLE": "1"}).stderr, "")

    def test_a_window_that_is_open_at_the_end(self):
        """The loop ends in it, by an exception: it is complete, and the exception comes through."""
        result = python("""
            import json, profd
            try:
                with profd.profile({"sys_interconnection_freq": 50}, strict=True,
                                   on_trace_ready=lambda p: print(json.dumps(p.summary))) as prof:
                    prof.step()
                    raise KeyError("mine")
            except KeyError as error:
                assert str(error) == "'mine'"
        """, self.daemon)
        summary = answer(result)
        self.assertEqual(summary["state"], "done")
        begun = [int(e["value"]) for e in marks_by_time(summary["dump_path"]) if e["kind"] == "step_begin"]
        self.assertEqual(begun, [0, 1])

    def test_durations_and_switches_as_python_has_them(self):
        summary = answer(python("""
            import json, time, profd
            p = profd.Profile({"sys_interconnection_freq": 50, "msproftx": True}, duration="300ms",
                              strict=True).start()
            for wrong in ("soon", "10"):
                try:
                    profd.Profile(duration=wrong)
                    raise SystemExit(f"{wrong} was taken")
                except ValueError as error:
                    assert wrong in str(error), error
            for wrong, allowed in (({"steps": -1}, "0 to 4294967295"), ({"steps": 2**32 + 3}, "0 to 4294967295"),
                                   ({"start_step": -5}, "-1 to 9223372036854775807"),
                                   ({"start_step": 2**64 + 3}, "-1 to 9223372036854775807"),
                                   ({"duration": -1}, "1 ms or more"), ({"duration": 0.0001}, "1 ms or more"),
                                   ({"duration": 1e30}, "1 ms or more"), ({"duration": float("nan")}, "1 ms or more"),
                                   ({"timeout": -1}, "0 to 4294967"), ({"timeout": float("inf")}, "0 to 4294967")):
                try:
                    profd.Profile(**wrong)
                    raise SystemExit(f"{wrong} was taken")
                except ValueError as error:
                    assert next(iter(wrong)) in str(error) and allowed in str(error), error
            while profd.session(refresh=0.1)["state"] != "done":
                time.sleep(0.05)
            print(json.dumps(p.stop()))
        """, self.daemon))
        self.assertEqual((summary["state"], summary["reason"]), ("done", "duration"))
        self.assertEqual(summary["effective_options"]["msproftx"], "on")

    def test_warnings_are_about_the_callers_line(self):
        script = """
            import warnings
            import profd

            def mine():
                with profd.profile(timeout=0.01):  # line 6
                    pass

            def direct():
                profd.Profile(timeout=0.01).start()  # line 10

            @profd.profile(timeout=0.01)
            def decorated():
                pass

            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                mine()
                direct()
                decorated()  # line 20
            print([(w.filename == "<string>" or w.filename, w.lineno) for w in seen])
        """
        result = python(script, env={"PROFD_ATTACH_SOCKET": "/nonexistent/attach.sock"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.strip(), "[(True, 6), (True, 10), (True, 20)]", result.stderr)

    def test_decorator(self):
        result = python("""
            import profd
            @profd.profile({"sys_interconnection_freq": 50}, label="decorated", strict=True)
            def train(n):
                return n + 1
            assert train(1) == 2 and train(2) == 3
        """, self.daemon)
        self.assertEqual(result.returncode, 0, result.stderr)
        labels = [s["label"] for s in self.daemon.ctl("list")["sessions"]]
        self.assertEqual(labels.count("decorated"), 2)

    def test_decorated_coroutine(self):
        """The session ends when it has been awaited, not when it has been made."""
        result = python("""
            import asyncio
            import profd
            @profd.profile({"sys_interconnection_freq": 50}, label="awaited", strict=True)
            async def train(n):
                await asyncio.sleep(0)
                return n, profd.session(refresh=5.0)["state"]
            print(*asyncio.run(train(1)))
        """, self.daemon)
        self.assertEqual((result.returncode, result.stdout), (0, "1 running\n"), result.stderr)

    def test_profiler(self):
        folder = temp_folder(self)
        summary = answer(python("""
            import json, sys, time
            from profd import Profiler
            profiler = Profiler(output_path="out", aicpu=True)
            time.sleep(0.3)
            print(json.dumps(profiler.analyse()))
        """, self.daemon, {"PROFILING_FP_START": "first", "PROFILING_BP_END": "not this", "BP_POINT": "last"}, cwd=folder))
        self.assertEqual(summary["state"], "done")
        self.assertTrue(summary["output"].startswith(folder), summary)
        with open(os.path.join(summary["output"], "profd_manifest.json"), encoding="utf-8") as file:
            options = {option["key"]: option["value"] for option in json.load(file)["session"]["options"]}
        self.assertEqual([options.get("fp_point"), options.get("bp_point")], ["first", "last"])
        self.assertTrue(summary["outcomes"])

    def test_the_output_is_where_the_script_began(self):
        script = """
            import json, os, time, profd
            with profd.profile({options}, strict=True) as p:
                os.makedirs("elsewhere", exist_ok=True)
                os.chdir("elsewhere")
                time.sleep(0.1)
            print(json.dumps(p.summary))
        """
        for options, env, wanted in (({"output": "out"}, {}, "out"), ({}, {"ASCEND_WORK_PATH": "work"}, "work/profiling_data")):
            folder = temp_folder(self)
            text = script.replace("{options}", json.dumps({"sys_interconnection_freq": 50, **options}))
            summary = answer(python(text, self.daemon, env, cwd=folder))
            self.assertEqual(os.path.dirname(summary["output"]), os.path.join(os.path.realpath(folder), wanted))

    def test_bad_options_are_all_named(self):
        result = python("""
            import profd
            try:
                profd.Profile({"sys_io_sampling_freq": 101, "dvpp_freq": 0, "nonsense": 1},
                              strict=True).start()
            except profd.ProfdError as error:
                print(error.reason, error)
        """, self.daemon)
        self.assertTrue(result.stdout.startswith("invalid "), result.stdout + result.stderr)
        for word in ("sys_io_sampling_freq", "dvpp_freq", "nonsense"):
            self.assertIn(word, result.stdout)

    def test_exception_in_the_loop_is_not_hidden(self):
        result = python("""
            import profd
            with profd.profile({"sys_interconnection_freq": 50}, strict=True):
                raise KeyError("mine")
        """, self.daemon)
        self.assertIn("KeyError: 'mine'", result.stderr)
        eventually(lambda: not self.daemon.ctl("list", "--active")["sessions"], what="the session ended")

    def test_profiling_options_in_the_environment(self):
        result = python("""
            import time, profd
            profd.attach()
            while profd.session(1).get("state") != "running":
                time.sleep(0.01)
            for n in range(3):
                with profd.step(n), profd.annotate("not asked for"):
                    time.sleep(0.05)
            print(profd.active(), profd.counters()["published"])
        """, self.daemon, env={"PROFILING_OPTIONS": '{"sys_interconnection_freq": 50}',
                          "SLURM_JOB_ID": "77001", "SLURM_PROCID": "0"})
        self.assertEqual((result.returncode, result.stdout), (0, "False 6\n"), result.stderr)
        session = eventually(lambda: next(
            (s for s in self.daemon.ctl("list")["sessions"]
             if s["job_id"] == "77001" and s["state"] == "done"), None))
        found = marks_by_time(session["dump_path"])
        self.assertEqual([int(e["value"]) for e in found if e["kind"] == "step_begin"], [0, 1, 2])
        self.assertEqual({e["kind"] for e in found}, {"step_begin", "step_end"}, "msproftx is off")

    def test_refused_options_of_the_environment_are_a_warning_at_the_exit(self):
        result = python("""
            import ctypes, profd
            from profd import _lib
            print(profd.attach(10))
            while "bogus" not in _lib.last_error():  # the daemon has answered
                _lib.lib().profd_session_json(ctypes.create_string_buffer(64), 64, 50)
            with profd.step(1):
                pass
        """, self.daemon, env={"PROFILING_OPTIONS": '{"bogus": "l1"}'})
        self.assertEqual((result.returncode, result.stdout), (0, "True\n"), result.stderr)
        self.assertRegex(result.stderr, r"RuntimeWarning: .*PROFILING_OPTIONS.*bogus")
        self.assertEqual(result.stderr.count("RuntimeWarning"), 1)

    def test_example(self):
        result = subprocess.run(
            [sys.executable, os.path.join(REPO, "client", "examples", "train.py"), "--steps", "8",
             "--step-ms", "30", "--profile-from", "2", "--profile-steps", "3", "--wait", "20"],
            env=environment(self.daemon, PYTHONPATH=""),  # it finds the package itself
            capture_output=True, text=True, check=False, timeout=scaled(120))
        out = answer(result)
        self.assertEqual(out["session"]["state"], "done", out)
        self.assertEqual(out["marks"]["dropped"], 0)

    def test_ranks_of_the_example_wait_for_each_other(self):
        """One in C++ with short steps, one in Python with long ones: both are on the same step."""
        env = environment(self.daemon, WORLD_SIZE="2", PROFD_JOB_ID="ranks", TZ="UTC")
        commands = ([os.path.join(BUILD, "bin", "train_example"), "--step-ms", "2"],
                    [sys.executable, os.path.join(REPO, "client", "examples", "train.py"), "--step-ms", "40"])
        with contextlib.ExitStack() as stack:
            for rank, command in enumerate(commands):
                process = stack.enter_context(subprocess.Popen(
                    command + ["--steps", "1000000"], env={**env, "RANK": str(rank)},
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                stack.callback(process.kill)

            def steps():
                processes = [p for job in self.daemon.ctl("jobs", "--job", "ranks", expect=(0, 4)).get("jobs", ())
                             for p in job["processes"] if p["step"] is not None]
                found = {p["rank"]: p["step"] for p in processes}
                return found if len(found) == 2 and found[1] > 20 else None

            found = eventually(steps, 60)
        # What the daemon has read of both is not of one instant.
        self.assertLess(abs(found[0] - found[1]), 15, found)

    def test_strict_after_shutdown(self):
        """Only PROFD_DISABLE asks for a profile that is none."""
        result = python("""
            import profd
            profd.profile().start()
            profd.shutdown()
            try:
                profd.profile(strict=True).start()
            except profd.ProfdError as error:
                print(error)
        """, self.daemon)
        self.assertEqual((result.returncode, result.stdout.strip()),
                         (0, "libprofd is not initialised: call profd_init"), result.stderr)


class Alone(unittest.TestCase):
    """Training continues whatever is missing."""

    def test_no_daemon(self):
        result = python("""
            import profd
            with profd.profile({"sys_interconnection_freq": 50}, timeout=0.2) as p:
                for n in range(3):
                    profd.step(n)
            print(p.started, p.summary)
        """, env={"PROFD_ATTACH_SOCKET": "/nonexistent/attach.sock"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("False {}", result.stdout)
        self.assertIn("not profiled", result.stderr)

    def test_a_missing_library_is_reported_once(self):
        result = python("""
            import profd
            for n in range(2):
                with profd.profile({"sys_interconnection_freq": 50}, timeout=0.2) as p:
                    profd.step(n)
            print(p.started, p.summary)
        """, env={"PROFD_LIBRARY": "/nonexistent/libprofd.so.0"})
        self.assertEqual((result.returncode, result.stdout.strip()), (0, "False {}"), result.stderr)
        self.assertEqual(result.stderr.count("RuntimeWarning"), 1, result.stderr)

    def test_schedule_without_a_daemon(self):
        result = python("""
            import profd
            with profd.profile({"sys_interconnection_freq": 50}, timeout="200ms",
                               schedule=profd.schedule(wait=1, warmup=1, active=2),
                               on_trace_ready=lambda p: print("called")) as prof:
                for n in range(4):
                    prof.step()
            print(prof.step_num, prof.summaries)
        """, env={"PROFD_ATTACH_SOCKET": "/nonexistent/attach.sock"})
        self.assertEqual((result.returncode, result.stdout.strip()), (0, "4 []"), result.stderr)
        self.assertIn("not profiled", result.stderr)

    def test_actions(self):
        """As PyTorch's documentation has them; nothing is needed for that."""
        result = python("""
            from profd import profile, schedule
            print("".join("-wrS"[a(n).value] for a in [schedule(skip_first=2, wait=1, warmup=1, active=3, repeat=2)]
                          for n in range(14)))
            print("".join("-wrS"[a(n).value] for a in [schedule(wait=0, warmup=0, active=1)] for n in range(3)))
            for wrong in (lambda: schedule(wait=0, warmup=0, active=0), lambda: schedule(wait=-1, warmup=0, active=1),
                          lambda: profile(schedule=schedule(wait=0, warmup=0, active=1), steps=2)):
                try:
                    wrong()
                    print("taken")
                except ValueError:
                    print("refused")
        """, env={"PROFD_DISABLE": "1"})
        self.assertEqual(result.stdout.split(), ["---wrrS-wrrS--", "SSS", "refused", "refused", "refused"], result.stderr)

    def test_no_library(self):
        result = python("""
            import profd
            profd.mark("x")
            with profd.step(1), profd.annotate("y"):
                pass
            print("through")
        """, env={"PROFD_LIBRARY": "/nonexistent/libprofd.so.0"})
        self.assertEqual((result.returncode, result.stdout.strip()), (0, "through"), result.stderr)
        self.assertIn("libprofd.so.0 not found", result.stderr)

    def test_disabled(self):
        for word in ("1", "true"):
            result = python("""
                import json, profd
                with profd.profile({"nonsense": 1}, strict=True) as p:
                    profd.step(1)
                print(json.dumps(p.summary), profd.active())
            """, env={"PROFD_DISABLE": word})
            self.assertEqual((result.returncode, result.stdout.strip(), result.stderr),
                             (0, "{} False", ""))


if __name__ == "__main__":
    profd_harness.main()
