#!/usr/bin/env python3
"""profctl analyze over what profd recorded of simulated training jobs, against their ground truth."""

import glob
import os
from statistics import mean

from attach_client import raw_ns
from profd_harness import main
from test_activity import CLOCK_NS, ActivityCase

STOPS = """
name = "stops"
steps = 100000
[[layer]]
name = "layer"
count = 2
[[layer.operator]]
type = "MatMulV2"
function = "aclnnMatmul"
us = 1000
backward_us = 2000
shapes = [[2048, 4096], [4096, 4096], [2048, 4096]]
[problems]
sync_streams = 1
gc_gaps = 15
dynamic_shapes = 1
"""


class Analyze(ActivityCase):
    devices = 4  # two of them beside the job

    def record(self, job, ranks, *flags, seconds=1):
        """Some of it: the time in which every kernel was recorded, that in which any was, and the dump."""
        outer = raw_ns()
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--training-trace", "on", "--provider", "mspti",
                                  "--collector", "hbm=20", "--collector", "npu_state=5", *flags)
        self.served(session["session_id"], "task_time")
        begin = raw_ns()
        job.until_written(ranks, begin + seconds * 10**9)
        end = raw_ns()
        dump = self.stop(session)["dump_path"]
        outer = outer, raw_ns()
        job.until_written(ranks, outer[1])
        return (begin, end), outer, dump

    def truth_by_name(self, job, rank, kind, window):
        found = {}
        for line in job.truth(rank, kind):
            if window[0] <= line["begin_ns"] and line["end_ns"] <= window[1]:
                found.setdefault(line["name"], []).append(line["end_ns"] - line["begin_ns"])
        return found

    def assert_rows(self, rows, inner, outer, total):
        """Each name as often as the truth has it, and as long."""
        self.assertLessEqual(set(inner), set(rows))
        for name, row in rows.items():
            most = outer.get(name, [])
            least = inner.get(name, [])
            self.assertGreaterEqual(row["count"], len(least), name)
            self.assertLessEqual(row["count"], len(most), name)
            self.assertGreaterEqual(row[total], sum(least) / 1e6 - 0.001 * len(least), name)
            self.assertLessEqual(row[total], sum(most) / 1e6 + 0.001 * len(most), name)

    def assert_scaled(self, counters, text):
        """Bytes stand in the unit that suits the counter's largest value."""
        units = {"kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
        counter = next(row for row in counters if row["unit"] == "B/s" and row["max"] >= 1000)
        row = next(line for line in text.splitlines() if line.lstrip().startswith(counter["name"] + " "))
        unit, least, mean, most = row.split()[-4:]
        self.assertLess(float(most), 1000)
        self.assertGreaterEqual(float(most), 1)
        for shown, key in ((least, "min"), (mean, "mean"), (most, "max")):
            self.assertAlmostEqual(float(shown), counter[key] / units[unit], delta=0.001)

    def test_ground_truth(self):
        job = self.train(job="conv-2")
        ranks = job.attached(self.daemon, 2)
        inner, outer, dump = self.record(job, ranks)
        job.close()
        got = self.daemon.ctl("analyze", dump)
        self.assert_scaled(got["ranks"][0]["hardware"], self.daemon.run("analyze", dump, json_output=False).stdout)
        self.assertEqual([rank["rank"] for rank in got["ranks"]], sorted(ranks))
        for mine in got["ranks"]:
            number = mine["rank"]
            self.assert_rows({row["name"]: row for row in mine["operators"]},
                             self.truth_by_name(job, number, "kernel", inner), self.truth_by_name(job, number, "kernel", outer), "total_ms")
            self.assert_rows({row["name"]: row for row in mine["communication"]},
                             self.truth_by_name(job, number, "communication", inner),
                             self.truth_by_name(job, number, "communication", outer), "elapse_ms")
            steps = {int(line["name"]): line for line in job.truth(number, "step")}
            whole = 0
            for step in mine["steps"]:
                line = steps[step["step"]]
                # What the truth says of a step's end was written after the call.
                self.assertLess(abs(step["total_ms"] * 1e6 - (line["end_ns"] - line["begin_ns"])), 2e7, step["step"])
                if step["free_ms"] is not None:
                    self.assertAlmostEqual(step["computing_ms"] + step["uncovered_communication_ms"] + step["free_ms"],
                                           step["total_ms"], delta=1e-6)
                if inner[0] < line["begin_ns"] and line["end_ns"] < inner[1]:
                    whole += 1
                    self.assertGreater(step["computing_ms"], 0)
                    self.assertGreater(step["fp_and_bp_ms"], 0)
                    self.assertTrue(step["reduces"])
            self.assertGreater(whole, 5)
            self.assertTrue(any(row["name"].startswith("hbm") and row["unit"] == "B/s" for row in mine["hardware"]),
                            [row["name"] for row in mine["hardware"]])
            overall = mine["overall"]
            self.assertLess(abs(overall["e2e_ms"] - overall["computing_ms"] - overall["uncovered_communication_ms"] - overall["free_ms"]),
                            CLOCK_NS / 1e6)

    def test_of_an_export_is_as_of_the_dump(self):
        """The database has all that is analysed of a dump."""
        job = self.train(job="conv-2")
        ranks = job.attached(self.daemon, 2)
        dump = self.record(job, ranks, "--acl", "ACL_PROF_ACL_API=on", "--msproftx", "on")[-1]
        job.close()
        out = os.path.join(self.folder, "out")
        self.daemon.ctl("export", dump, "--format", "sqlite", "--out", out)
        of_dump = self.daemon.ctl("analyze", dump)["ranks"]
        of_export = self.daemon.ctl("analyze", *glob.glob(os.path.join(out, "msprof_*.db")))["ranks"]
        self.assertEqual(len(of_dump), 2)
        for want, got in zip(of_dump, of_export, strict=True):
            self.assertEqual(got["rank"], want["rank"])
            for view, fields in (("operators", ("name", "core", "count", "total_ms")), ("communication", ("name", "group", "count", "elapse_ms")),
                                 ("steps", ("step", "total_ms", "fp_and_bp_ms", "computing_ms", "uncovered_communication_ms", "free_ms"))):
                # Sums may be taken in another order.
                rows = [sorted([round(row[field], 6) if isinstance(row[field], float) else row[field] for field in fields] for row in rank[view]) for rank in (got, want)]
                self.assertEqual(*rows, view)
                self.assertTrue(rows[0], view)
            self.assertEqual(got["overall"], want["overall"])
            self.assertEqual([mark["count"] for mark in got["marks"]["names"]], [mark["count"] for mark in want["marks"]["names"]])
            # What the node samples has the same names.
            sampled = [[row["name"] for row in rank["hardware"] if " npu=" in row["name"]] for rank in (got, want)]
            self.assertEqual(*map(sorted, sampled))
            self.assertTrue(sampled[0])

    def test_marks_of_the_application(self):
        """What the host does instead of launching is found by the ranges that say it, with its cost."""
        job = self.train(text=STOPS, steps=None)
        ranks = job.attached(self.daemon, 1)
        inner, _, dump = self.record(job, ranks, "--acl", "ACL_PROF_ACL_API=on", "--msproftx", "on", seconds=4)
        job.close()
        found = {each["check"]: each for each in self.daemon.ctl("advise", dump)["findings"]}
        self.assertIn("synchronize_stream", found)
        pauses = [line for line in job.truth(0, "pause") if inner[0] <= line["begin_ns"] and line["end_ns"] <= inner[1]]
        steps = (inner[1] - inner[0]) / mean([line["end_ns"] - line["begin_ns"] for line in job.truth(0, "step")])
        for check, name in (("gc", "gc"), ("operator_dispatch", "compile ")):
            cost = sum(line["end_ns"] - line["begin_ns"] for line in pauses if line["name"].startswith(name)) / 1e6 / steps
            self.assertAlmostEqual(found[check]["cost_ms"], cost, delta=0.1 * cost, msg=check)
        self.assertNotIn("conjectured_gc", found, "it is known where the gaps come from")


if __name__ == "__main__":
    main()
