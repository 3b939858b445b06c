#!/usr/bin/env python3
"""profctl analyze over what profd recorded of simulated training jobs, against their ground truth."""

import time

from profd_harness import main
from test_activity import CLOCK_NS, ActivityCase


class Analyze(ActivityCase):
    devices = 4  # two of them beside the job

    def record(self, job, *flags):
        """A second of it: the time in which every kernel was recorded, that in which any was, and the dump."""
        outer = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--training-trace", "on", "--provider", "mspti",
                                  "--collector", "hbm=20", "--collector", "npu_state=5", *flags)
        self.served(session["session_id"], "task_time")
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        time.sleep(1)
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        dump = self.stop(session)["dump_path"]
        return (begin, end), (outer, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)), dump

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

    def test_ground_truth(self):
        job = self.train(job="conv-2")
        ranks = job.attached(self.daemon, 2)
        inner, outer, dump = self.record(job)
        job.close()
        got = self.daemon.ctl("analyze", dump)
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


if __name__ == "__main__":
    main()
