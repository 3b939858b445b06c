"""Exports of some steps, ranks, the longest operators or devices only, against the plan the records were written from."""

import glob
import os
import shutil
import struct

import make_communication as made
import run_tests
from comparison import FolderCase, events_of, one, query
from profd_harness import profctl
from test_operators import Exported, OperatorCase, executions, us
from text_files import read_dicts, read_json

STEP_US = 2000  # of ten slots


class Dump(made.CommunicationOperators):
    """Steps 5, 6, ... on the device, one behind the other, and a rank."""

    def __init__(self, parent, rank=None, steps=0, **options):
        super().__init__(parent, **options)
        self.rank = rank
        self.steps = {5 + i: (self.device_count(1000 + i * STEP_US), self.device_count(1000 + (i + 1) * STEP_US))
                      for i in range(steps)}

    def fill(self):
        for number, ends in self.steps.items():
            for tag, count in zip((60000, 60001), ends):
                self.add(0, "ts_track.data", struct.pack("<BBHIQQQHHH2x", 0, 10, 0, 0, count, number, 2**32 - 1, 0, 0, tag))
        return super().fill()

    def _write_controls(self, place):
        super()._write_controls(place)
        if self.rank is not None:
            self.change(place, "info.json" if place == "host" else f"info.json.{place}", lambda info: info.update(rank_id=self.rank))


class CutsTest(FolderCase):
    def make(self, **options):
        return Dump(self.fresh(), **options)

    def run_export(self, *arguments):
        return profctl("export", *arguments, expect=None)

    def export(self, *arguments):
        out = self.fresh()
        profctl("export", *arguments, "--out", out)
        return out

    def rows(self, out, table):
        return read_dicts(one(out, f"{table}_2*.csv"))

    def events(self, out):
        events = events_of(out)
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        layers = {}
        for event in events:
            if event["ph"] == "X":
                layers.setdefault(names[event["pid"]], []).append(event)
        return layers

    def test_steps(self):
        dump = self.make(slots=40, steps=4)
        dump.fill().write()
        out = self.export(dump.path, "--step", "6-7", "--format", "csv,trace")
        begin, end = dump.wall_ns(dump.steps[6][0]), dump.wall_ns(dump.steps[7][1])
        inside = [(slot.name or slot.kernel, us(start)) for slot, start, stop in executions(dump)
                  if begin <= start < end and slot.kind not in ("memcpy", "event")]
        self.assertTrue(10 < len(inside) < 20, "of 40 slots")
        found = [(row["Op Name"], row["Task Start Time(us)"].strip()) for row in self.rows(out, "op_summary")]
        self.assertEqual(sorted(found), sorted(inside))
        self.assertEqual([row["Iteration ID"] for row in self.rows(out, "step_trace")], ["6", "7"])
        shown = [e for e in self.events(out)["Ascend Hardware"] if e["args"].get("Task Type")]
        self.assertTrue(shown)
        self.assertTrue(all(begin <= float(e["ts"]) * 1000 + 300 and float(e["ts"]) * 1000 <= end for e in shown))

    def test_steps_that_the_range_cuts(self):
        """Their parts are no steps: step_trace_time and the collectives have those that lie in the range."""
        dump = self.make(slots=40, steps=4)
        for at in (1300, 3300, 5300, 7300):
            dump.operation("hcom_allReduce_", "group_a", at)
        dump.fill().write()

        def export(begin, end):
            out = self.export(dump.path, "--from", begin, "--to", end)
            return read_dicts(out, "step_trace_time.csv"), list(read_json(out, "communication.json"))

        whole = read_dicts(self.export(dump.path), "step_trace_time.csv")
        self.assertEqual([row["Step"] for row in whole], ["5", "6", "7", "8"])
        middle = {number: (dump.wall_ns(begin) + dump.wall_ns(end)) // 2 for number, (begin, end) in dump.steps.items()}
        self.assertEqual(export(middle[5], middle[7]), (whole[1:2], ["step6"]))
        ((row,), kinds) = export(dump.wall_ns(dump.steps[6][0]), middle[6])
        self.assertEqual((row["Step"], row["Preparing"], kinds), ("", "0.0", ["step"]), "of no step, as without any")

    def test_steps_before_the_first_record(self):
        """The vendor's profiler begins later than the session: what the device did in them is unknown, not nothing."""
        dump = self.make(slots=40, steps=4)
        dump.steps = {4: (dump.device_count(100), dump.device_count(900)), **dump.steps}
        dump.operation("hcom_allReduce_", "group_a", 3300)
        dump.fill().write()
        out = self.export(dump.path)
        self.assertEqual([row["Iteration ID"] for row in self.rows(out, "step_trace")], ["4", "5", "6", "7", "8"])
        self.assertEqual([row["Step"] for row in read_dicts(out, "step_trace_time.csv")], ["5", "6", "7", "8"])
        self.assertEqual(list(read_json(out, "communication.json")), ["step5", "step6", "step7", "step8"])

    def test_steps_that_are_not_there(self):
        dump = self.make(slots=4, steps=3)
        dump.fill().write()
        for wrong, words in (("9", "there is no such step; there are 5 to 7"), ("8-12", "there are 5 to 7"),
                             ("7-5", "the number of a step, or a range such as 3-7"), ("-1", "a range such as"),
                             ("x", '"x"')):
            run = self.run_export(dump.path, f"--step={wrong}", "--out", os.path.join(self.dir, "none"))
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(words, run.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.dir, "none")))
        run = self.run_export(dump.path, "--step", "5", "--from", "+1s")
        self.assertIn("leave out --from and --to", run.stderr)
        plain = self.make(slots=4)
        plain.fill().write()
        self.assertIn("have no training steps", self.run_export(plain.path, "--step", "5").stderr)

    def test_ranks(self):
        run = self.fresh()
        for rank in (0, 3, 4):
            Dump(os.path.join(run, f"node{rank}"), rank=rank, slots=4 + rank).fill().write()
        out = self.export(run, "--rank", "3-4")
        self.assertEqual(sorted(os.listdir(out)), ["rank3", "rank4"])
        self.assertEqual(len(self.rows(os.path.join(out, "rank3"), "task_time")), 7)
        out = self.export(run, "--rank", "4")
        self.assertEqual(len(self.rows(out, "task_time")), 8, "of one rank only: no folder")
        for wrong, words in (("0,7", "--rank 7: no dump is of it; there are 0, 3, 4"), ("x", '"x"'), ("3-1", '"3-1"')):
            refused = self.run_export(run, "--rank", wrong)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(words, refused.stderr)
        Dump(os.path.join(run, "node5"), rank=5, slots=4, devices=(1,)).fill().write()
        out = self.export(run, "--devices", "1")
        self.assertEqual([os.path.basename(path) for path in glob.glob(out + "/*") if os.listdir(path)], ["rank5"])
        self.assertEqual(len(self.rows(os.path.join(out, "rank5"), "task_time")), 4)
        alone = self.make(slots=4)
        alone.fill().write()
        self.assertIn("no dump records which ranks it is of", self.run_export(alone.path, "--rank", "0").stderr)

    def test_the_longest(self):
        dump = self.make(slots=16, kinds=("matmul", "add", "event", "memcpy"))
        for i, name in enumerate(("hcom_allReduce_", "hcom_broadcast_", "hcom_allReduce_")):
            dump.operation(name, "group_a", 20_000 + 1000 * i)
        dump.fill().write()
        whole = self.export(dump.path, "--format", "csv,trace")
        out = self.export(dump.path, "--format", "csv,trace", "--top", "1")
        total = {}
        for slot, start, end in executions(dump):
            if slot.type:
                total[slot.name] = total.get(slot.name, 0) + end - start
        longest = min(total, key=lambda name: (-total[name], name))
        found = [row["Op Name"] for row in self.rows(out, "op_summary")]
        collectives = [name for op, name, *_ in dump.operation_rows() if op.name == "hcom_allReduce_"]
        self.assertEqual(found, [longest] + collectives)
        every = self.rows(whole, "op_summary")
        for row in self.rows(out, "op_summary"):
            self.assertIn(row, every, "with the time since the row before, though that is left out")
        self.assertEqual([row["OP Type"] for row in self.rows(out, "communication_statistic")], ["hcom_allReduce_"])
        self.assertEqual(len(self.rows(out, "api_statistic")), 1)
        before, after = self.events(whole), self.events(out)
        self.assertEqual(after["Overlap Analysis"], before["Overlap Analysis"], "of all that ran")
        ran = [e for e in after["Ascend Hardware"] if e["name"] != longest]
        self.assertEqual(len(after["Ascend Hardware"]), len(ran) + 1)
        self.assertEqual(sorted(e["ts"] for e in ran), sorted(
            us(dump.wall_ns(start)) for op in dump.operations if op.name == "hcom_allReduce_"
            for task in op.tasks for start, _ in task.runs), "tasks of the collectives")
        calls = {(e["name"], e["args"]["item_id"]) for e in after["CANN"] if e["name"] == "Node@launch"}
        self.assertEqual(calls, {("Node@launch", longest), ("Node@launch", "hcom_allReduce_")})
        self.assertLess(len(after["CANN"]), len(before["CANN"]))
        self.assertEqual(len(self.rows(self.export(dump.path, "--top", "999"), "op_summary")),
                         len(self.rows(whole, "op_summary")))
        self.assertIn("a number from 1 on", self.run_export(dump.path, "--top", "0").stderr)


class PartsTest(OperatorCase):
    def test_without_the_host_tasks_have_no_names(self):
        dump = self.make(slots=48)
        dump.write()
        shutil.rmtree(os.path.join(dump.path, "host"))
        exported = Exported(dump.path, dump.path + "-out", more=("--format", "csv,trace,perfetto,sqlite"))
        self.assertIn("host: has no compact.task_track of device 0", exported.text)
        rows = exported.rows("task_time")[1:]
        self.assertEqual({row[1] for row in rows}, {"N/A"})
        times = sorted(us(start) + "\t" for _, start, _ in executions(dump))
        self.assertLessEqual(set(times), {row[6] for row in rows})
        tasks = sum(1 if slot.context is None else 2 for slot, _, _ in executions(dump))
        self.assertEqual(query(exported.out, "SELECT count(*) FROM TASK"), [(tasks,)])
        starts = {event["ts"] + "\t" for event in events_of(exported.out) if "Task Type" in event.get("args", {})}
        self.assertLessEqual(starts, {row[6] for row in rows})
        self.assertTrue(starts)

    def test_a_device_file_whose_first_slice_is_gone(self):
        """The rest of a record that began in it is left out; all behind it is right (operator-data a.6)."""
        dump = self.make(slots=20)
        dump.write()
        folder = os.path.join(dump.path, "device_0", "data")
        paths = [path for path in sorted(glob.glob(os.path.join(folder, "stars_soc.data.*"))) if not path.endswith(".done")]
        data = b"".join(open(path, "rb").read() for path in paths)
        for path in glob.glob(os.path.join(folder, "stars_soc.data.*")):
            os.remove(path)
        with open(os.path.join(folder, "stars_soc.data.0.slice_1"), "wb") as file:
            file.write(data[100:])  # the first execution's two records have 128 bytes
        rows = Exported(dump.path, dump.path + "-out", expect=5).rows("task_time")[1:]  # what was skipped is said
        self.assertEqual([row[6].strip() for row in rows], sorted(us(start) for slot, start, end in executions(dump) if slot.number > 0))

    def test_formats_that_show_no_operators_name_the_others(self):
        dump = self.make()
        dump.write()
        done = profctl("export", dump.path, "--format", "folded", "--out", dump.path + "-out", expect=4)
        self.assertIn("; folded cannot show records of the vendor's profiler, use --format csv or trace or perfetto or sqlite",
                      done.stderr)
        self.assertFalse(os.path.exists(dump.path + "-out"))


if __name__ == "__main__":
    run_tests.main()
