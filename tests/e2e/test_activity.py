#!/usr/bin/env python3
"""What sessions bring home from inside simulated training jobs, against the jobs' ground truth."""

import bisect
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

import activity_files
import perfetto_reader
import prof_reader
from attach_client import raw_ns
from profd_harness import DaemonCase, eventually, main, outcome, temp_folder
from sim_train import SimTrain
from text_files import read_json

# The vendor's library timestamps with CLOCK_REALTIME in steps of up to 5 us (in-application 2.7); its pairs with the
# host's clock are read 0.5 s apart.
CLOCK_NS = 50_000


class ActivityCase(DaemonCase):
    devices = 2

    def setUp(self):
        self.folder = temp_folder(self)

    def train(self, folder=None, **how):
        how.setdefault("steps", 100_000)
        folder = folder or os.path.join(self.folder, f"job{len(os.listdir(self.folder))}")
        job = SimTrain(self.daemon.attach_socket, folder, **how)
        self.addCleanup(job.close)
        return job

    def served(self, session_id, option="task_time", result="running"):
        def reached():
            session = self.daemon.show(session_id)
            return session if outcome(session, option)["result"] == result else None
        return eventually(reached, seconds=30, what=f"{option} is {result}")

    def stop(self, session):
        self.daemon.ctl("stop", session["session_id"])
        return self.daemon.show(session["session_id"])

    def assert_shown_alike_by_the_next_daemon(self, shown):
        def facts(session):
            outcomes = {(o["collector"], o.get("device")): {key: o[key] for key in ("result", "detail", "records", "bytes")}
                        for o in session["outcomes"]}
            inside = {p["pid"]: {key: p["collector"][key] for key in ("provider", "state", "detail")} for p in session["processes"]}
            return [outcomes, inside, *(session[key] for key in ("state", "reason", "expected_ranks", "statistics"))]
        self.daemon.restart()
        self.assertTrue(shown["statistics"])
        again = self.daemon.show(shown["session_id"])
        self.assertEqual(facts(again), facts(shown))
        self.assertLessEqual(set(shown["warnings"]), set(again["warnings"]), "the dump may have more")

    def manifest(self, dump):
        return read_json(dump, "profd_manifest.json")

    def assert_verified(self, dump):
        report = self.daemon.run("verify", dump)
        self.assertEqual(report.returncode, 0, report.stdout + report.stderr)

    def assert_equal_to_truth(self, job, ranks, records, what, window, key):
        """Every record is one of the truth, and none of the truth in the window is missing."""
        for rank, pid in ranks.items():
            begins = collections.defaultdict(list)
            for line in job.truth(rank, what):
                begins[key(line)].append(line)
            found = collections.defaultdict(list)
            for record in records:
                if record.process == pid:
                    found[(record.stream, record.name)].append(record)
            for of_key, mine in found.items():
                truth = sorted(begins[of_key], key=lambda line: line["begin_ns"])
                timestamps = [line["begin_ns"] for line in truth]
                taken = set()
                for record in mine:
                    after = bisect.bisect(timestamps, record.start_ns)
                    near = min(range(max(0, after - 1), min(after + 1, len(truth))),
                               key=lambda i: abs(timestamps[i] - record.start_ns), default=None)
                    self.assertIsNotNone(near, (rank, of_key))
                    self.assertLess(abs(timestamps[near] - record.start_ns), CLOCK_NS, (rank, of_key))
                    self.assertNotIn(near, taken, f"twice: {record}")
                    taken.add(near)
                    length = truth[near]["end_ns"] - truth[near]["begin_ns"]
                    self.assertLess(abs(length - record.duration_ns), CLOCK_NS)
                    self.assertEqual(record.logical_device, truth[near]["device"])
                missing = [line for i, line in enumerate(truth)
                           if i not in taken and window[0] < line["begin_ns"] and line["end_ns"] < window[1]]
                self.assertEqual(missing, [], f"rank {rank}, {of_key}")
            in_window = {of_key for of_key, truth in begins.items()
                         if any(window[0] < line["begin_ns"] and line["end_ns"] < window[1] for line in truth)}
            self.assertLessEqual(in_window, set(found))


class OneStep(ActivityCase):
    """Sessions of one step that is over in some milliseconds: collecting begins before it, and what was recorded before
    is left out."""

    def truth_of_step(self, lines, number):
        [step] = [line for line in lines if line["what"] == "step" and line["name"] == str(number)]
        kernels = [line["begin_ns"] for line in lines if line["what"] == "kernel"
                   and step["begin_ns"] <= line["begin_ns"] and line["end_ns"] <= step["end_ns"]]
        return step, sorted(kernels)

    def test_from_its_begin(self):
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        # Of an earlier job of the name processes may still be listed.
        eventually(lambda: len([p for p in self.daemon.processes() if p["pid"] in ranks.values() and p["step"] is not None]) == 2,
                   what="steps are counted")
        sessions = []
        for _ in range(2):
            session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--start-step", "+150", "--steps", "1",
                                      "--detach")
            sessions.append(self.daemon.until_state(session["session_id"], "done", seconds=120))
        job.until_written(ranks, raw_ns())
        job.close()
        for rank, pid in ranks.items():
            lines = job.truth(rank, "step", "kernel")
            for done in sessions:
                self.assert_whole_step(done, pid, lines)

    def assert_whole_step(self, done, pid, lines):
        self.assertEqual(outcome(done, "task_time")["result"], "finished", done["outcomes"])
        number = int(done["start_step"])
        step, truth = self.truth_of_step(lines, number)
        self.assertGreater(len(truth), 50)
        mine = sorted(k.start_ns for k in activity_files.read(done["dump_path"], "kernel") if k.process == pid)
        self.assertGreater(mine[0], step["begin_ns"] - CLOCK_NS, "of steps before")
        missing = [t for t in truth if min(abs(t - m) for m in mine) > CLOCK_NS]
        self.assertEqual(missing, [], f"process {pid}: of {len(truth)} kernels of step {number}")
        begins = [m for m in prof_reader.marks_tsv(done["dump_path"]) if m["pid"] == str(pid) and m["kind"] == "step_begin"]
        self.assertEqual(begins[0]["value"], str(number))
        self.assertTrue(step["begin_ns"] <= int(begins[0]["time_ns"]) <= truth[0], (begins[0], step, truth[0]))
        self.assert_verified(done["dump_path"])


class Sessions(ActivityCase):
    def test_operators_of_two_ranks(self):
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10")
        running = self.served(session["session_id"])
        self.assertEqual(outcome(running, "task_time")["detail"], "served by 2 of 2 processes")
        # The daemon, which these tests share, may still list processes of an earlier job of that name.
        states = {p["rank"]: p["collector"]["state"] for p in running["processes"] if p["pid"] in ranks.values()}
        self.assertEqual(states, {0: "on", 1: "on"})
        begin = raw_ns()
        job.until_written(ranks, begin + 5 * 10**8)
        end = raw_ns()
        done = self.stop(session)
        job.until_written(ranks, raw_ns())
        job.close()
        dump = done["dump_path"]
        manifest = self.manifest(dump)
        kernels = activity_files.read(dump, "kernel")
        window = (begin + CLOCK_NS, end - CLOCK_NS)
        self.assert_equal_to_truth(job, ranks, kernels, "kernel", window, lambda k: (k["stream"], k["name"]))
        communications = activity_files.read(dump, "communication")
        self.assert_equal_to_truth(job, ranks, communications, "communication", window,
                                   lambda c: (c["stream"], c["name"]))
        calls = activity_files.read(dump, "api")
        self.assertEqual({call.level for call in calls}, {2}, "launches")
        # Each kernel has the call that launched it.
        launches = {(call.process, call.correlation) for call in calls}
        inner = [k for k in kernels if window[0] + 10**8 < k.start_ns < window[1]]
        self.assertTrue(inner)
        self.assertEqual([k for k in inner if (k.process, k.correlation) not in launches], [])
        for record in kernels + communications:
            self.assertLessEqual(manifest["session"]["start_raw_ns"], record.start_ns)
            self.assertLessEqual(record.start_ns, manifest["session"]["stop_raw_ns"])
        self.assertEqual({p["pid"]: p["collector"]["state"] for p in manifest["session"]["processes"]},
                         {pid: "ended" for pid in ranks.values()})
        operators = outcome(done, "task_time")
        self.assertEqual((operators["result"], operators["dropped_records"]), ("finished", 0))
        self.assertEqual(operators["records"], len(kernels) + len(communications) + len(calls))
        self.assertEqual(done.get("warnings", []), [])
        self.assert_verified(dump)
        self.assert_shown(dump, ranks, kernels, communications)
        self.assert_on_the_timelines(dump, ranks, kernels, communications, calls)
        self.assert_shown_alike_by_the_next_daemon(done)

    def assert_shown(self, dump, ranks, kernels, communications):
        """profctl show: every name of every rank, with its sums."""
        shown = self.daemon.ctl("show", dump)
        rank_of = {pid: rank for rank, pid in ranks.items()}
        for key, records in (("kernels", kernels), ("communication", communications)):
            lengths = collections.defaultdict(list)
            for record in records:
                lengths[rank_of[record.process], record.name].append(record.duration_ns)
            self.assertEqual({(row["rank"], row["name"]): (row["count"], row["total_ns"], row["min_ns"], row["max_ns"])
                              for row in shown[key]},
                             {of: (len(ns), sum(ns), min(ns), max(ns)) for of, ns in lengths.items()})
        self.assertEqual({step["rank"] for step in shown["steps"]}, set(ranks))
        for rank in ranks:
            # Kernels of a step may overlap, and begin in one but end in the next.
            mine = sum(step["computing_us"] for step in shown["steps"] if step["rank"] == rank)
            of_rank = sum(k.duration_ns for k in kernels if rank_of[k.process] == rank) / 1000
            self.assertTrue(0 < mine < of_rank + 0.001, (mine, of_rank))
        text = self.daemon.run("show", dump, json_output=False).stdout
        self.assertIn("COMPUTING", text)
        longest = collections.Counter()
        for kernel in kernels:
            longest[kernel.name] += kernel.duration_ns
        table = text[text.index("OPERATOR"):].partition("COMMUNICATION")[0].splitlines()
        self.assertEqual([line.split()[1] for line in table if line.split()[:1] == ["all"]],
                         [name for name, _ in longest.most_common(10)])

    def assert_on_the_timelines(self, dump, ranks, kernels, communications, calls):
        """One slice for each record, and an arrow from each call to what it launched; in both formats."""
        folder = os.path.join(self.folder, "export")
        self.daemon.ctl("export", dump, "--format", "trace,perfetto", "--out", folder)
        [path] = glob.glob(os.path.join(folder, "msprof_*.json"))
        events = read_json(path)
        slices = [e for e in events if e["ph"] == "X" and "correlation" in e.get("args", {})]
        records = [r for r in kernels + communications + calls if r.correlation != 0]
        self.assertEqual(collections.Counter((e["name"], e["args"]["correlation"], e["args"]["pid"]) for e in slices),
                         collections.Counter((r.name, r.correlation, r.process) for r in records))
        launched = [r for r in kernels + communications if r.correlation != 0]
        self.assertEqual(sum(e["ph"] == "f" for e in events), len(launched))
        [path] = glob.glob(os.path.join(folder, "trace_*"))
        trace = perfetto_reader.Trace(path)
        self.assertEqual(trace.unbalanced(), set())
        if shutil.which("protoc"):
            with open(path, "rb") as file:
                read = subprocess.run(["protoc", "--decode_raw"], stdin=file, capture_output=True, check=False, timeout=60)
            self.assertEqual(read.returncode, 0, read.stderr[-500:])
            self.assertEqual(len(re.findall(rb"^1 \{$", read.stdout, re.M)), trace.packets)
        native = [s for s in trace.slices() if "correlation" in s[5]]
        # The same slices at the same times with the same args ...
        def ns(micros):
            return round(float(micros) * 1000)

        self.assertEqual(
            collections.Counter((name, begin, end - begin, tuple(sorted(args.items())))
                                for _, _, name, begin, end, args, _, _ in native),
            collections.Counter((e["name"], int(e["ts"].replace(".", "")), ns(e["dur"]),
                                 tuple(sorted(e["args"].items()))) for e in slices))
        # ... on rows that say whose they are ...
        rank_of = {pid: rank for rank, pid in ranks.items()}
        for process, track, name, _, _, args, _, _ in native:
            if "level" in args:
                self.assertIn(f"pid {args['pid']}", process)
                self.assertRegex(track, r"^API calls of thread \d+$")
            else:
                self.assertEqual(process, f"NPU {rank_of[args['pid']]} (rank {rank_of[args['pid']]})", name)
                of = "Communication, " if "communicator" in args else ""
                self.assertRegex(track, rf"^{of}Stream {args['stream']}( \(\d+\))?$")
        # ... and each arrow leads from the calls that launched something: of those with a number the one that ended first, and
        # those around it. The others have the number of what their thread launched before (in-application 2.6).
        first = {}
        for call in calls:
            key = (call.process, call.thread, call.correlation)
            if key not in first or call.start_ns + call.duration_ns < first[key][1]:
                first[key] = call.start_ns, call.start_ns + call.duration_ns
        launchers = collections.Counter()
        for call in calls:
            begin, end = first[call.process, call.thread, call.correlation]
            if call.correlation != 0 and call.start_ns <= begin and call.start_ns + call.duration_ns >= end:
                launchers[call.name, call.process, call.correlation] += 1
        ids = collections.defaultdict(set)
        leaving = collections.Counter()
        for _, _, name, _, _, args, flows, ended in native:
            self.assertLessEqual(len(flows), int("level" in args), args)
            self.assertEqual(len(ended), int("level" not in args), args)
            if flows:
                leaving[name, args["pid"], args["correlation"]] += 1
            ids[args["pid"], args["correlation"]].update(flows + ended)
        self.assertEqual(leaving, launchers)
        self.assertEqual({len(flows) for flows in ids.values()}, {1}, "one flow for a correlation")
        self.assertEqual(len(set.union(*ids.values())), len(ids), "and one correlation for a flow")

    def test_options_of_the_job_itself(self):
        earlier = {s["session_id"] for s in self.daemon.ctl("list")["sessions"]}
        job = self.train(env={"PROFILING_OPTIONS": json.dumps({"task_trace": "l0", "runtime_api": "on"})}, steps=60)
        job.wait()
        session = next(s for s in self.daemon.ctl("list")["sessions"] if s["session_id"] not in earlier)
        session = self.daemon.until_state(session["session_id"], "done")
        dump = session["dump_path"]
        kernels = activity_files.read(dump, "kernel")
        self.assertTrue(kernels)
        self.assertEqual(activity_files.read(dump, "communication"), [], "l0")
        self.assertEqual({call.level for call in activity_files.read(dump, "api")}, {2, 3})
        self.assert_verified(dump)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one CPU only")
    def test_cpus_of_the_thread_that_launches(self):
        first, second = sorted(os.sched_getaffinity(0))[:2]
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        pids = list(ranks.values())
        for pid in pids:
            for thread in map(int, os.listdir(f"/proc/{pid}/task")):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(thread, {first if thread == pid else second})
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--runtime-api", "on")
        self.served(session["session_id"])
        job.until_written(ranks, raw_ns())
        dump = self.stop(session)["dump_path"]
        processes = {process["pid"]: process for process in read_json(dump, "profd_manifest.json")["session"]["processes"]}
        calls = collections.defaultdict(collections.Counter)
        for call in activity_files.read(dump, "api"):
            calls[call.process][call.thread] += 1
        for pid in pids:
            launcher = calls[pid].most_common(1)[0][0]
            self.assertEqual(processes[pid]["cpus"], str(first))
            self.assertEqual(processes[pid]["launch_cpus"], str(first if launcher == pid else second), calls[pid])

    def test_a_job_that_profctl_run_names(self):
        job = self.train(env={"PROFD_JOB_ID": "launched", "SLURM_JOB_ID": "4711"})
        job.job_id = "launched"
        job.attached(self.daemon, 2)

    def test_what_was_not_requested_is_not_collected(self):
        job = self.train()
        job.attached(self.daemon, 2)
        for flags in (("--collector", "hbm=10"), ("--task-time", "l1", "--provider", "off", "--collector", "hbm=10")):
            session = self.daemon.ctl("start", "--job", job.job_id, *flags)
            self.assertFalse(any(p.get("collector") for p in session["processes"]), flags)
            done = self.stop(session)
            self.assertEqual(activity_files.read(done["dump_path"], "kernel"), [])

    def test_two_sessions_share_a_process(self):
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        wide = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--runtime-api", "on")
        self.served(wide["session_id"])
        narrow = self.daemon.ctl("start", "--job", job.job_id, "--hccl", "on")
        self.served(narrow["session_id"], "hccl")
        job.until_written(ranks, raw_ns())
        done = self.stop(narrow)
        self.assertTrue(activity_files.read(done["dump_path"], "communication"))
        self.assertEqual(activity_files.read(done["dump_path"], "kernel"), [])
        self.assertEqual(activity_files.read(done["dump_path"], "api"), [])
        self.assertEqual(outcome(self.daemon.show(wide["session_id"]), "task_time")["result"], "running")
        self.stop(wide)


class Endings(ActivityCase):
    def test_a_rank_that_is_killed_leaves_a_gap(self):
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10")
        self.served(session["session_id"])
        dump = self.daemon.show(session["session_id"])["dump_path"]
        eventually(lambda: activity_files.processes(dump, "kernel")[ranks[1]], what="kernels of rank 1")
        os.kill(ranks[1], signal.SIGKILL)
        eventually(lambda: not [p for p in self.daemon.show(session["session_id"])["processes"]
                                if p["pid"] == ranks[1] and p.get("attached")], what="rank 1 is gone")
        done = self.stop(session)
        self.assertIn(f"process {ranks[1]} (rank 1) ended without handing over its last records", done.get("warnings", []))
        [kernels] = [c for c in self.manifest(done["dump_path"])["channels"] if c["collector"] == "activity_kernel"]
        self.assertIn("process_ended", [gap["reason"] for gap in kernels["gaps"]])
        self.assertTrue([k for k in activity_files.read(done["dump_path"], "kernel") if k.process == ranks[1]])
        self.assert_verified(done["dump_path"])

    def test_a_rank_that_ends_by_itself_hands_over_all(self):
        job = self.train(steps=300)  # some seconds: it must still run when it is recorded
        ranks = job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10")
        self.served(session["session_id"])
        job.wait()
        done = self.daemon.until_state(session["session_id"], "done")
        kernels = activity_files.read(done["dump_path"], "kernel")
        self.assertEqual({k.process for k in kernels}, set(ranks.values()))
        self.assertEqual([w for w in done.get("warnings", []) if "last records" in w], [])
        last = {rank: max(line["begin_ns"] for line in job.truth(rank, "kernel")) for rank in ranks}
        for rank, pid in ranks.items():
            self.assertLess(abs(last[rank] - max(k.start_ns for k in kernels if k.process == pid)), CLOCK_NS)

    def test_the_daemon_is_killed(self):
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10")
        self.served(session["session_id"])
        first = self.daemon.show(session["session_id"])["dump_path"]
        job.until_written(ranks, raw_ns() + 2 * 10**9)
        eventually(lambda: activity_files.processes(first, "kernel"), what="kernels")
        self.daemon.kill()
        before = activity_files.read(first, "kernel")
        self.assertTrue(before, "readable although nothing was ended")
        self.assertTrue(all(k.name for k in before), "with their names")
        self.daemon.start()
        again = self.served(session["session_id"])
        self.assert_verified(first)
        job.until_written(ranks, raw_ns())
        done = self.stop(session)
        self.assertNotEqual(done["dump_path"], first)
        after = activity_files.read(done["dump_path"], "kernel")
        self.assertTrue(after)
        self.assertTrue(all(k.name for k in after), "names came again")
        self.assertEqual(len(again["segments"]) or len(done["segments"]), len(done["segments"]))
        self.assert_verified(done["dump_path"])


class Providers(ActivityCase):
    def test_unavailable_kinds_are_reported(self):
        for sim, result, detail in (
                ("mspti.silent=1", "partial", "silent: steps went by without a record: "),
                ("mspti.chip=1", "partial", "silent: steps went by without a record of kernel, communication among"),
                ("mspti.throw=msptiSubscribe", "failed", "failed: msptiSubscribe threw")):
            with self.subTest(sim):
                job = self.train(sim=sim)
                job.attached(self.daemon, 2)
                session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10")
                eventually(lambda: detail in outcome(self.daemon.show(session["session_id"]),
                                                          "task_time")["detail"], what=detail)
                self.assertEqual(outcome(self.daemon.show(session["session_id"]), "task_time")["result"], result)
                processes = self.manifest(self.stop(session)["dump_path"])["session"]["processes"]
                self.assertIn(detail.split(": ", 1)[1], str(processes))
                job.close()

    def test_a_process_that_does_not_allow_it(self):
        job = self.train(env={"PROFD_COLLECT": "off"})
        job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10")
        off = self.served(session["session_id"], result="off")
        self.assertIn("PROFD_COLLECT=off", outcome(off, "task_time")["detail"])

    def test_options_the_chosen_provider_does_not_measure(self):
        job = self.train()
        job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--aic-metrics", "PipeUtilization", "--l2", "on",
                                  "--training-trace", "on", "--provider", "mspti", "--collector", "hbm=10",
                                  expect=(0, 5))
        self.assertEqual({o["collector"]: o["result"] for o in session["outcomes"] if "_" in o["collector"]
                          or o["collector"] == "l2"}, {"aic_metrics": "unsupported", "l2": "unsupported",
                                                       "training_trace": "waiting"})
        self.served(session["session_id"], "training_trace")
        self.assertEqual(outcome(self.stop(session), "aic_metrics")["result"], "unsupported", "at the end, too")


if __name__ == "__main__":
    main()
