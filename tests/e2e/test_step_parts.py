#!/usr/bin/env python3
"""Forward, backward and all-reduces of training steps in the step trace of an export, against the ground truth."""

import collections
import csv
import decimal
import glob
import os

from attach_client import raw_ns
from profd_harness import main, outcome
from test_activity import CLOCK_NS, ActivityCase

NO_MODEL = "4294967295"  # of training steps (dump-format 4); a graph has its own


class StepParts(ActivityCase):
    def rows(self, dump, *flags):
        """The training steps of an export's step_trace, by device and step; times in ns since 1970."""
        folder = os.path.join(self.folder, f"csv{len(os.listdir(self.folder))}")
        self.daemon.ctl("export", dump, "--format", "csv", "--out", folder, *flags)
        lines = []
        for path in glob.glob(os.path.join(folder, "**", "step_trace_[0-9]*.csv"), recursive=True):
            with open(path, encoding="utf-8", newline="") as file:
                header, *more = csv.reader(file)
                lines += [row for row in more if row[9] == NO_MODEL]
        def ns(text):
            return None if text == "N/A" else int(decimal.Decimal(text.strip()) * 1000)
        return {(int(row[0]), int(row[1])): dict(zip(header[2:9], map(ns, row[2:9])),
                                                 reduces=[(ns(row[i]), ns(row[i + 1]))
                                                          for i in range(10, len(row), 2) if row[i] != "N/A"])
                for row in lines}

    def recorded(self, job, ranks, session):
        """Lets it record; the time in which every kernel was, all of which the truth has then."""
        begin = raw_ns()
        job.until_written(ranks, begin + 10**9)
        end = raw_ns()
        dump = self.stop(session)["dump_path"]
        job.until_written(ranks, raw_ns())
        return (begin, end), dump

    def steps(self, job, rank, window):
        return {int(line["name"]): line for line in job.truth(rank, "step")
                if window[0] < line["begin_ns"] and line["end_ns"] < window[1]}

    def assert_ends_with(self, row, line, forward_ns):
        """The step ends with the truth's step, which was written after the call: a moment later, or much when the
        machine is busy."""
        after = (line["end_ns"] - forward_ns) - (row["Iteration End(us)"] - row["FP Start(us)"])
        self.assertGreater(after, -CLOCK_NS)
        self.assertLess(after, line["end_ns"] - line["begin_ns"])

    def assert_step_parts(self, job, dump, ranks, window):
        """Each step of the trace has the parts that the truth shows (operator-data e, mindspore-profiler)."""
        rows = self.rows(dump)
        steps = collections.Counter()
        for rank in ranks:
            kernels = sorted(job.truth(rank, "kernel"), key=lambda line: line["begin_ns"])
            reduces = sorted(job.truth(rank, "communication"), key=lambda line: line["begin_ns"])
            begun = self.steps(job, rank, window)
            for step in begun:
                row, device = rows[rank, step], rank
                steps[rank] += 1
                inside = [k for k in kernels if begun[step]["begin_ns"] <= k["begin_ns"] < begun[step]["end_ns"]]
                mine = [r for r in reduces if begun[step]["begin_ns"] <= r["begin_ns"] < begun[step]["end_ns"]]
                get_next = [k["end_ns"] for k in inside if k["name"] == "GetNext"]
                first = next(k for k in inside if not get_next or k["begin_ns"] >= get_next[0])
                last = [k for k in inside if k["begin_ns"] < mine[-1]["begin_ns"]][-1]
                end = row["Iteration End(us)"]
                # Between times of the device: what the truth says of the step's end was taken after the call.
                self.assert_ends_with(row, begun[step], first["begin_ns"])
                self.assertLess(abs(row["BP End(us)"] - row["FP Start(us)"] - last["end_ns"] + first["begin_ns"]), CLOCK_NS)
                self.assertEqual(row["FP to BP Time(us)"], row["BP End(us)"] - row["FP Start(us)"])
                self.assertEqual(row["Iteration Refresh(us)"], end - row["BP End(us)"])
                self.assertEqual(len(row["reduces"]), len(mine))
                for (start, length), line in zip(row["reduces"], mine):
                    self.assertLess(abs(start - row["FP Start(us)"] - line["begin_ns"] + first["begin_ns"]), CLOCK_NS)
                    self.assertLess(abs(length - (line["end_ns"] - line["begin_ns"])), CLOCK_NS)
                before = rows.get((device, step - 1))
                if before is not None:
                    self.assertEqual(row["Data Aug Bound(us)"], row["FP Start(us)"] - before["Iteration End(us)"])
        self.assertEqual(set(steps), set(ranks))
        self.assertGreater(min(steps.values()), 5)

    def test_parts_of_the_steps(self):
        """Without a provider that is named, they are among the operators of aclprof."""
        for flags, provider in ((("--provider", "mspti"), "mspti"), ((), "aclprof")):
            for name in ("conv-2", "graph-2"):
                with self.subTest(name, provider=provider):
                    job = self.train(job=name)
                    ranks = job.attached(self.daemon, 2)
                    session = self.daemon.ctl("start", "--job", job.job_id, "--training-trace", "on", *flags)
                    served = self.served(session["session_id"], "training_trace")
                    self.assertEqual(outcome(served, "training_trace")["detail"], "served by 2 of 2 processes")
                    self.assertEqual({one["collector"]["provider"] for one in served["processes"]}, {provider})
                    window, dump = self.recorded(job, ranks, session)
                    job.close()
                    self.assert_step_parts(job, dump, ranks, window)

    def test_points_that_are_named(self):
        for provider in ("mspti", "aclprof"):
            with self.subTest(provider):
                self.check_points_that_are_named(provider)

    def check_points_that_are_named(self, provider):
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--fp-point", "block_0/Relu",
                                  "--bp-point", "block_3/Conv2D_grad", "--provider", provider)
        self.served(session["session_id"], "fp_point")
        self.served(session["session_id"], "bp_point")
        window, dump = self.recorded(job, ranks, session)
        job.close()
        named = {name: sorted(k["begin_ns" if "Relu" in name else "end_ns"] for k in job.truth(0, "kernel")
                              if k["name"] == name) for name in ("block_0/Relu", "block_3/Conv2D_grad")}
        begun = self.steps(job, 0, window)
        self.assertGreater(len(begun), 5)
        rows = self.rows(dump)
        for step in begun:
            row = rows[0, step]
            forward, backward = ([t for t in named[name] if begun[step]["begin_ns"] <= t < begun[step]["end_ns"]]
                                 for name in ("block_0/Relu", "block_3/Conv2D_grad"))
            self.assertEqual((len(forward), len(backward)), (1, 1))
            self.assert_ends_with(row, begun[step], forward[0])
            self.assertLess(abs(row["BP End(us)"] - row["FP Start(us)"] - backward[0] + forward[0]), CLOCK_NS)
        (rank,) = [one for one in self.daemon.ctl("analyze", dump)["ranks"] if one["rank"] == 0]
        self.assertEqual(rank["step_points"], {"fp_start": "block_0/Relu", "bp_end": "block_3/Conv2D_grad"})
        analyzed = {step["step"]: step for step in rank["steps"]}
        for step in begun:
            row = rows[0, step]
            self.assertAlmostEqual(analyzed[step]["fp_and_bp_ms"], (row["BP End(us)"] - row["FP Start(us)"]) / 1e6, places=6)


if __name__ == "__main__":
    main()
