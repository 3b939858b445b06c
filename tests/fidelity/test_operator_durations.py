"""Durations where the device's clock has no whole frequency, as on every real device (49.999001 MHz): tables and
timelines have the difference of two times that were not yet cut to ns, op_summary that of times that were (operator-data
c.1, c.3)."""

from unittest import mock

import make_operators as made
import run_tests
from channels import DEVICE_COUNT, HOST_RAW, HWTS_MHZ
from comparison import FolderCase, events_of
from profd_harness import profctl
from test_operators import Exported, us


class DurationsTest(FolderCase):
    def setUp(self):
        super().setUp()
        with mock.patch.dict(HWTS_MHZ, {5: "49.999001"}):
            self.dump = made.Operators(self.dir, slots=60, kinds=("matmul", "add", "memcpy")).fill()
            self.dump.write()
        self.runs = sorted(slot.runs[0] for slot in self.dump.slots)

    def exact_ns(self, count):
        return float(count - DEVICE_COUNT) * 1000.0 / self.dump.mhz + float(HOST_RAW)

    def test_tables(self):
        exported = Exported(self.dump.path, self.dump.path + "-out")
        exact = [int(self.exact_ns(end) - self.exact_ns(start)) for start, end in self.runs]
        cut = [self.dump.wall_ns(end) - self.dump.wall_ns(start) for start, end in self.runs]
        self.assertNotEqual(exact, cut)
        self.assertEqual([row[5] for row in exported.rows("task_time")[1:]], [us(ns) for ns in exact])
        starts = {us(self.dump.wall_ns(start)) + "\t": us(ns) for (start, _), ns in zip(self.runs, cut)}
        for row in exported.rows("op_summary")[1:]:
            self.assertEqual(row[9], starts[row[8]])

    def test_timeline(self):
        out = self.dump.path + "-trace"
        profctl("export", self.dump.path, "--format", "trace", "--out", out)
        found = {e["ts"]: e["dur"] for e in events_of(out) if e["ph"] == "X" and "Physic Stream Id" in e["args"]}
        self.assertEqual(found, {us(self.dump.wall_ns(start)): (self.exact_ns(end) - self.exact_ns(start)) / 1000.0
                                 for start, end in self.runs})


if __name__ == "__main__":
    run_tests.main()
