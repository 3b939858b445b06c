#!/usr/bin/env python3
"""What only the vendor's aclprof measures: its files, from simulated training jobs into the session's dump."""

import glob
import json
import os
import re
import shutil
import subprocess

from attach_client import raw_ns
from test_activity import ActivityCase
from profd_harness import REPO, eventually, main, outcome
from text_files import files_below, read_bytes, read_dicts, read_text, write_bytes

PROF = re.compile(r"PROF_\d{1,10}_\d{1,20}_[A-Z0-9]{5,20}$")  # dump-format 1.1


class FilesCase(ActivityCase):
    def start(self, job, *options):
        return self.daemon.ctl("start", "--job", job.job_id, "--collector", "hbm=10", *options)

    def one_rank(self, **how):
        text = read_text(REPO, "sim", "app", "jobs", "conv-2.toml").replace("data_parallel = 2", "data_parallel = 1")
        return self.train(text=text, **how)

    def names_below(self, folder):
        return {os.path.basename(path): os.path.getsize(path) for path in files_below(folder)}

    def process_files(self, prof):
        return self.manifest(prof)["process_files"]

    def own(self, dump):
        """profd's own PROF directory of a run."""
        return os.path.join(dump, os.path.basename(dump))

    def assert_operators(self, folder, rank):
        files = self.names_below(folder)
        for name, record in (("aging.compact.task_track.slice_0", 64), (f"stars_soc.data.{rank}.slice_0", 64),
                             (f"ffts_profile.data.{rank}.slice_0", 128), (f"l2_cache.data.{rank}.slice_0", 72)):
            self.assertIn(name, files)
            self.assertGreater(files[name], 0, name)
            self.assertEqual(files[name] % record, 0, name)

    def assert_operators_exported(self, job, folder):
        """op_summary: the kernels of the job's truth, one after the other, with their counters."""
        (path,) = glob.glob(os.path.join(folder, "op_summary_*.csv"))
        rows = read_dicts(path)
        self.assertGreater(len(rows), 100)
        truth = sorted(job.truth(0, "kernel"), key=lambda line: line["begin_ns"])
        def is_run(begin):  # steps repeat the names, not the durations
            return all(row["Op Name"] == line["name"] and
                       abs(float(row["Task Duration(us)"]) - (line["end_ns"] - line["begin_ns"]) / 1e3) < 0.1
                       for row, line in zip(rows, truth[begin:]))
        first = next((i for i in range(len(truth) - len(rows) + 1) if is_run(i)), None)
        self.assertIsNotNone(first, "the rows are no run of the kernels")
        drift = None
        for row, line in zip(rows, truth[first:]):
            self.assertEqual(row["Stream ID"], str(line["stream"]), line)
            apart = round(float(row["Task Start Time(us)"]) * 1e3) - line["begin_ns"]
            drift = apart if drift is None else drift
            self.assertAlmostEqual(apart, drift, delta=50_000, msg="one clock for all of them")
            if row["Task Type"] in ("AI_CORE", "AI_VECTOR_CORE"):
                self.assertNotIn("N/A", list(row.values())[21:], row)

    def assert_no_foreign_folders(self, prof):
        """The vendor's analyser descends into every folder that it does not know, and then exports nothing."""
        folders = [name for name in os.listdir(prof) if os.path.isdir(os.path.join(prof, name))]
        self.assertTrue(folders)
        for name in folders:
            self.assertRegex(name, r"^(host|device_\d+)$")


class LayoutTest(FilesCase):
    def test_one_process_shares_the_directory_of_profd(self):
        job = self.one_rank()
        pid = job.attached(self.daemon, 1)[0]
        session = self.start(job, "--aic-metrics", "PipeUtilization", "--l2", "on", "--task-time", "l1")
        self.served(session["session_id"], "aic_metrics")
        job.until_written([0], raw_ns() + 10**9)  # of training
        ended = self.stop(session)
        job.until_written([0], raw_ns())
        self.assertEqual(ended["state"], "done", ended)
        dump = ended["dump_path"]
        (facts,) = self.process_files(dump)
        self.assertEqual((facts["pid"], facts["layout"], facts["state"], facts["problem"]), (pid, "merged", "complete", ""),
                         facts)
        self.assertEqual(facts["directory"], os.path.basename(dump))
        self.assert_operators(dump, 0)
        self.assert_no_foreign_folders(dump)
        self.assertEqual([name for name in os.listdir(os.path.join(dump, "host", "profd")) if "aclprof" in name], [])
        # Both on one timeline: one pair of clocks, and what each of them recorded.
        self.assertIn("hbm.data.0.slice_0", os.listdir(os.path.join(dump, "device_0", "data")))
        for place in ("host", "device_0"):
            lines = read_text(dump, place, "sample.json").splitlines()
            self.assertEqual(len(lines), 1)
            sample = json.loads(lines[0])
            self.assertEqual((sample["ai_core_metrics"], sample["taskTime"], sample["prof_level"]),
                             ("PipeUtilizationExct", "on", "l1"))
            self.assertIn("hbmInterval", sample)
        size = sum(map(os.path.getsize, files_below(dump)))
        self.assertAlmostEqual(int(ended["dump_bytes"]), size, delta=size // 10, msg="what was copied counts")
        of_process = [file for file in self.manifest(dump)["files"] if file.get("pid") == pid]
        self.assertTrue(all("crc32c" in file for file in of_process) and of_process)
        self.assert_verified(dump)
        report = self.daemon.run("export", dump, "--out", os.path.join(self.folder, "exported"))
        self.assertEqual(report.returncode, 0, report.stdout + report.stderr)
        self.assert_operators_exported(job, os.path.join(self.folder, "exported"))
        self.assertEqual(self.daemon.run("show", dump).returncode, 0)
        with open(os.path.join(dump, "device_0", "data", "stars_soc.data.0.slice_0"), "r+b") as file:
            file.write(b"\xff")
        self.assertEqual(self.daemon.run("verify", dump).returncode, 5)

    def test_iterations_of_a_graph_beside_steps_that_profd_records(self):
        job = self.train(text=read_text(REPO, "sim", "app", "jobs", "graph-2.toml").replace("data_parallel = 2", "data_parallel = 1"))
        job.attached(self.daemon, 1)
        session = self.start(job, "--training-trace", "on")
        self.served(session["session_id"], "training_trace")
        job.until_written([0], raw_ns() + 10**9)  # of training
        dump = self.stop(session)["dump_path"]
        (facts,) = self.process_files(dump)
        self.assertEqual((facts["layout"], facts["state"], facts["problem"]), ("merged", "complete", ""), facts)
        slices = [name for name in os.listdir(os.path.join(dump, "device_0", "data")) if re.match(r"ts_track\.data\.0\.slice_\d+$", name)]
        self.assertGreater(len(slices), 1)
        self.assert_verified(dump)
        folder = os.path.join(self.folder, "csv")
        self.daemon.ctl("export", dump, "--format", "csv", "--out", folder)
        (path,) = glob.glob(os.path.join(folder, "step_trace_[0-9]*.csv"))
        rows = read_dicts(path)
        steps = [row for row in rows if row["Model ID"] == "4294967295"]
        iterations = [row for row in rows if row["Model ID"] != "4294967295"]
        self.assertGreater(min(len(steps), len(iterations)), 5)
        def end_us(row):
            return float(row["Iteration End(us)"])
        for row in iterations:
            self.assertNotIn("N/A", (row["FP Start(us)"], row["BP End(us)"]), "as the graph says")
        last = max(end_us(row) for row in steps)
        for row in iterations:
            begin = float(row["FP Start(us)"])
            self.assertTrue(begin > last or any(end_us(step) - float(step["Iteration Time(us)"]) <= begin < end_us(step)
                                                for step in steps), row)

    def test_several_processes_are_a_run(self):
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        session = self.start(job, "--aic-metrics", "PipeUtilization", "--l2", "on", "--task-time", "l1")
        running = self.served(session["session_id"], "aic_metrics")
        self.assertEqual({p["collector"]["provider"] for p in running["processes"]}, {"aclprof"})
        job.until_written(ranks, raw_ns() + 10**9)  # of training
        ended = self.stop(session)
        self.assertEqual(ended["state"], "done", ended)
        dump = ended["dump_path"]
        self.assertEqual(dump, running["dump_path"], "the path does not change")
        files = outcome(ended, "aic_metrics")
        self.assertEqual(files["result"], "finished", files)
        self.assertGreater(int(files["bytes"]), 0)
        self.assertEqual(len(os.listdir(dump)), 3)
        facts = {one["pid"]: one for one in self.process_files(self.own(dump))}
        self.assertEqual(sorted(facts), sorted(ranks.values()))
        for rank, pid in ranks.items():
            self.assertEqual((facts[pid]["rank"], facts[pid]["layout"], facts[pid]["state"]), (rank, "beside", "complete"))
            self.assert_operators(os.path.join(dump, facts[pid]["directory"]), rank)
            self.assertIn(facts[pid]["directory"], files["detail"])
        for name in os.listdir(dump):
            self.assertRegex(name, PROF)
            self.assert_no_foreign_folders(os.path.join(dump, name))
        self.assert_verified(dump)
        rows = [line.split()[0] for line in self.daemon.run("verify", dump, json_output=False).stdout.splitlines() if line.startswith("  ")]
        self.assertIn("host/end_info", rows)
        self.assertTrue(any(row.startswith("device_1/") for row in rows), rows)
        self.assertFalse([row for row in rows if row.startswith(("host/host/", "host/device_"))])
        self.assert_shown_alike_by_the_next_daemon(ended)
        self.fetch_export_and_remove(ended, facts)

    def fetch_export_and_remove(self, ended, facts):
        session_id, dump = ended["session_id"], ended["dump_path"]
        listed = [one for one in self.daemon.ctl("list", "--dumps")["dumps"] if one["session_id"] == session_id]
        self.assertEqual(len(listed), 1, "one dump")
        size = sum(self.names_below(os.path.join(dump, name))[file] for name in os.listdir(dump)
                   for file in ("info.json",))
        self.assertGreater(int(listed[0]["bytes"]), sum(one["bytes"] for one in facts.values()) + size)
        there = os.path.join(self.folder, "fetched")
        os.mkdir(there)
        self.daemon.ctl("fetch", session_id, "--out", there)
        copy = os.path.join(there, os.path.basename(dump))
        self.assertEqual(sorted(os.listdir(copy)), sorted(os.listdir(dump)))
        self.assert_verified(copy)
        shown = self.daemon.run("show", copy)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        picture = json.loads(shown.stdout)
        self.assertEqual({one["pid"]: one["directory"] for one in picture["process_files"]},
                         {pid: one["directory"] for pid, one in facts.items()})
        self.assertIn("stars_soc.data", {one["file"] for one in picture["files"]}, "those of the processes, too")
        text = self.daemon.run("show", copy, json_output=False)
        for one in facts.values():
            self.assertIn(one["directory"], text.stdout)
        self.assertNotIn("no single rank", text.stderr)
        exported = os.path.join(self.folder, "exported")
        report = self.daemon.run("export", copy, "--out", exported)
        self.assertEqual(report.returncode, 0, report.stdout + report.stderr)
        for one in facts.values():
            steps = [row["Step"] for row in read_dicts(exported, f"rank{one['rank']}", "step_trace_time.csv")]
            self.assertGreater(len(steps), 5, "the steps are in profd's directory, the operators in the process's")
            self.assertNotIn("", steps)
        victim = os.path.join(copy, next(iter(facts.values()))["directory"])
        shutil.rmtree(victim)
        self.assertEqual(self.daemon.run("verify", copy).returncode, 5, "one of its directories is missing")
        self.daemon.ctl("rm", session_id)
        self.assertFalse(os.path.exists(dump))

    def test_a_process_that_ends_first_leaves_them_too(self):
        job = self.train(steps=300)  # some seconds: it must still run when it is recorded
        ranks = job.attached(self.daemon, 2)
        session = self.start(job, "--aicpu", "on")
        self.served(session["session_id"], "aicpu")
        job.wait()
        ended = self.stop(session)
        self.assertEqual(ended["state"], "done", ended)
        facts = self.process_files(self.own(ended["dump_path"]))
        self.assertEqual(sorted(one["pid"] for one in facts), sorted(ranks.values()))
        self.assertTrue(all(one["files"] > 0 for one in facts), facts)

    def test_files_that_profd_records_itself_stay_apart(self):
        collected = os.path.join(self.folder, "collected")
        os.mkdir(collected)
        job = self.one_rank(env={"PROFD_COLLECT_DIR": collected})
        pid = job.attached(self.daemon, 1)[0]
        session = self.start(job, "--l2", "on")
        self.served(session["session_id"], "l2")
        data = eventually(lambda: glob.glob(os.path.join(collected, f"profd-*-{pid}", "PROF_*", "device_0", "data")),
                          what="the profiler's directory")[0]
        write_bytes(os.path.join(data, "hbm.data.0.slice_0"), b"not profd's")
        eventually(lambda: int(self.daemon.show(session["session_id"]).get("records", 0)) > 0, what="records of HBM")
        os.symlink("/etc/passwd", os.path.join(data, "linked.data.0.slice_0"))
        os.mkdir(os.path.join(data, "..", "..", "foreign"))
        ended = self.stop(session)
        dump = ended["dump_path"]
        (facts,) = self.process_files(dump)
        self.assertEqual((facts["pid"], facts["layout"], facts["state"], facts["refused"]), (pid, "merged", "partial", 1))
        why = {os.path.basename(example["path"]): example["why"] for example in facts["examples"]}
        self.assertEqual(why, {"hbm.data.0.slice_0": "profd records this itself", "linked.data.0.slice_0": "a symbolic link"})
        self.assertEqual(len(read_bytes(dump, "device_0", "data", "hbm.data.0.slice_0")) % 24, 0, "profd's own")
        kept = glob.glob(os.path.join(dump, "host", "profd", "aclprof_*", "PROF_*", "device_0", "data", "*"))
        self.assertEqual([os.path.basename(path) for path in kept], ["hbm.data.0.slice_0"])
        self.assert_no_foreign_folders(dump)
        self.assert_verified(dump)


class OutcomeTest(FilesCase):
    def collecting(self, session):
        shown = self.daemon.show(session["session_id"])
        return shown if shown.get("collecting_files") else None

    def test_a_profiler_that_is_busy(self):
        job = self.train(sim="aclprof.commanded=1")
        job.attached(self.daemon, 2)
        session = self.start(job, "--l2", "on")
        busy = self.served(session["session_id"], "l2", "busy")
        self.assertIn("msprof", outcome(busy, "l2")["detail"])
        self.assertEqual(self.stop(session)["state"], "done")

    def test_a_full_disk_is_reported(self):
        job = self.train(sim="aclprof.disk_bytes=9000")
        ranks = job.attached(self.daemon, 2)
        session = self.start(job, "--l2", "on")
        self.served(session["session_id"], "l2")
        ended = self.stop(session)
        files = outcome(ended, "l2")
        self.assertIn("500005", files["detail"])
        self.assertEqual(files["result"], "partial", files)
        warnings = "\n".join(self.manifest(self.own(ended["dump_path"]))["warnings"])
        self.assertEqual(warnings.count("its files are not complete: aclprofStop: 500005"), 2, warnings)
        facts = self.process_files(self.own(ended["dump_path"]))
        self.assertEqual(sorted(one["pid"] for one in facts), sorted(ranks.values()))
        self.assertTrue(all(one["state"] == "partial" and one["files"] > 0 for one in facts), facts)

    def test_kill_9_of_the_daemon_while_it_collects(self):
        job = self.train(sim="aclprof.stop_ms=20000")
        job.attached(self.daemon, 2)
        session = self.start(job, "--l2", "on")
        self.served(session["session_id"], "l2")
        dump = session["dump_path"]
        with subprocess.Popen(self.daemon.ctl_command("stop", session["session_id"]), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as stop:
            ending = eventually(lambda: self.collecting(session), what="it collects files")
            self.assertEqual((ending["state"], ending["collecting_files"]["processes"]), ("stopping", 2))
            self.assertLessEqual(int(ending["collecting_files"]["left_ms"]), 100_000)
            shown = self.daemon.run("show", session["session_id"], json_output=False)
            self.assertIn("stopping, collecting files", shown.stdout)
            self.assertRegex(shown.stdout, r"files +of 2 processes, for at most \d+ s")
            self.daemon.kill()
            stop.wait(60)
        self.daemon.restart()
        eventually(lambda: self.manifest(dump)["state"] == "interrupted", seconds=30, what="the dump is completed")
        self.assert_verified(dump)


class LimitTest(FilesCase):
    config = {"dump": {"max_session_mb": 1}}

    def test_files_beyond_the_limit_are_refused_and_counted(self):
        job = self.one_rank(sim="aclprof.slice_bytes=100000")
        job.attached(self.daemon, 1)
        session = self.daemon.ctl("start", "--job", job.job_id, "--collector", "hbm=1", "--aic-metrics", "Memory", "--l2",
                                  "on", "--task-time", "l1")
        self.served(session["session_id"], "aic_metrics")
        job.until_written([0], raw_ns() + 4 * 10**9)  # of training: some MB
        ended = self.stop(session)
        dump = ended["dump_path"]
        (facts,) = self.process_files(dump)
        self.assertEqual(facts["state"], "partial", facts)
        self.assertGreater(facts["refused"], 0)
        self.assertGreater(facts["refused_bytes"], 0)
        self.assertIn("the dump may hold", facts["problem"])
        self.assertLessEqual(sum(map(os.path.getsize, files_below(dump))), 1 << 20)
        self.assertIn("the dump may hold", outcome(ended, "aic_metrics")["detail"])
        self.assert_verified(dump)


if __name__ == "__main__":
    main()
