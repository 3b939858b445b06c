"""FRAMEWORK directories of PyTorch and MindSpore beside operator-level records, against the plan both were written from."""

import json
import os
import shutil
import subprocess

import run_tests
from analysis_case import analyze
from comparison import FolderCase, one, seconds
from make_framework import written
from profd_harness import BUILD, profctl
from test_framework_database import allocations, wall
from test_operators import executions, expected_summary, short, us
from text_files import read_dicts, read_rows, write_bytes

DAMAGED = 5
SIM = os.path.join(BUILD, "sim", "sim_framework")


class FrameworkTest(FolderCase):
    maxDiff = 6000

    def made(self, **options):
        return written(os.path.join(self.dir, "node_4242_20260101_ascend_pt"), **options)

    def export(self, dump, formats="csv", more=(), code=0):
        out = os.path.join(self.dir, "out")
        shutil.rmtree(out, ignore_errors=True)
        done = profctl("--json", "export", dump.path, "--format", formats, "--out", out, *more, expect=code)
        return out, json.loads(done.stdout)

    def channels(self, summary):
        return {c["file"]: c for c in summary["channels"] if c["file"].startswith("FRAMEWORK/")}

    def test_found_in_the_dump_and_beside_it(self):
        for beside in (True, False):
            with self.subTest(beside=beside):
                framework = self.made(beside=beside)
                _, summary = self.export(framework.dump)
                found = {name: c["records"] for name, c in self.channels(summary).items()}
                self.assertEqual(found, {f"FRAMEWORK/{name}": len(records) for name, records in framework.files().items()})
                self.assertEqual([(p["file"].partition("/")[2], p["what"], p["broken"]) for p in summary["problems"]], [
                    ("FRAMEWORK", "1 ends of Python's calls without their begin: skipped", False)])
                shutil.rmtree(os.path.dirname(framework.dump.path))

    def test_an_analysis_of_the_export_has_each_execution_once(self):
        """kernel_details and op_summary, which have the same, lie beside each other there."""
        framework = self.made()
        out, _ = self.export(framework.dump, "csv,trace")
        [rank] = analyze(out)["ranks"]
        self.assertEqual({op["name"]: op["count"] for op in rank["operators"]},
                         {slot.name or slot.kernel: 1 for slot in framework.dump.slots if slot.name or slot.kernel})

    def test_none_is_not_a_problem(self):
        framework = self.made()
        shutil.rmtree(os.path.join(os.path.dirname(framework.dump.path), "FRAMEWORK"))
        _, summary = self.export(framework.dump)
        self.assertEqual(self.channels(summary), {})

    def test_damages_are_counted(self):
        for damage in ("cut", "length", "names"):
            with self.subTest(damage):
                framework = self.made()
                folder = os.path.join(os.path.dirname(framework.dump.path), "FRAMEWORK")
                shutil.rmtree(folder)
                subprocess.run([SIM, "torch", os.path.join(self.dir, "sim"), damage], check=True)
                shutil.copytree(os.path.join(self.dir, "sim", "FRAMEWORK"), folder)
                with open(os.path.join(self.dir, "sim", "truth.jsonl"), encoding="utf-8") as lines:
                    truth = [json.loads(line)["file"] for line in lines]
                _, summary = self.export(framework.dump, code=0 if damage == "names" else DAMAGED)
                for name, channel in self.channels(summary).items():
                    self.assertEqual(channel["records"], truth.count(name.removeprefix("FRAMEWORK/")), name)
                    has_lengths = "python_tracer_func" not in name and "gc_record" not in name
                    bad = damage == "cut" or (damage == "length" and has_lengths)
                    self.assertEqual(channel.get("bad_records", 0), bad, name)
                shutil.rmtree(os.path.join(self.dir, "sim"))
                shutil.rmtree(os.path.dirname(framework.dump.path))

    def test_an_unknown_file_is_named(self):
        framework = self.made()
        write_bytes(os.path.join(os.path.dirname(framework.dump.path), "FRAMEWORK", "torch.new"), b"x")
        _, summary = self.export(framework.dump)
        self.assertEqual([(p["file"].partition("/")[2], p["what"], p["broken"]) for p in summary["problems"][:1]], [
            ("FRAMEWORK/torch.new", "nothing here reads it: skipped", False)])

    def rows_of(self, out, name):
        return read_rows(one(out, f"{name}_*.csv"))

    def check_kernel_details(self, framework, out):
        """op_summary of all devices, with the step of the operator that launched it."""
        dump = framework.dump
        summary = expected_summary(dump)
        several = len({row[0] for row in summary}) > 1
        header, *rows = self.rows_of(out, "kernel_details")
        self.assertEqual(header[:13 + several], ["Step Id", *["Device_id"] * several, "Model ID", "Task ID", "Stream ID", "Name",
                                                "Type", "OP State", "Accelerator Core", "Start Time(us)", "Duration(us)",
                                                "Wait Time(us)", "Block Num", "Mix Block Num"])
        expected = []
        for device, *cells in summary:
            slot = next((s for s in dump.slots if (s.name or s.kernel) == cells[3] and str(s.device) == device), None)
            step = framework.step_of(framework.launcher[slot][0]) if slot.type else None
            expected.append(["" if step is None else str(step), *[device] * several, *cells])
        self.assertTrue(any(row[0] for row in expected))
        self.assertEqual(rows, expected)

    @staticmethod
    def listed(text):
        return (text or "").replace(";", ";\r\n")

    def check_operator_details(self, framework, out):
        dump, times = framework.dump, {}
        for slot, start, end in executions(dump):
            if slot.type:
                inner, outer = framework.launcher[slot]
                core = (slot.core if dump.level != "l0" else slot.runtime) in ("AI_CORE", "AI_VECTOR_CORE", "KERNEL_AICORE",
                                                                               "KERNEL_AIVEC")
                times.setdefault(inner, []).append((end - start, core, True))
                times.setdefault(outer, []).append((end - start, core, False))
        expected = []
        for op in framework.operators:
            if op in [step for _, step in framework.steps]:
                continue
            begin, end = op.wall_ns()
            inside = [o for o in framework.operators if o.thread == op.thread and o is not op and begin <= o.wall_ns()[0]
                      and o.wall_ns()[1] <= end]
            mine = times.get(op, [])
            cells = [end - begin - sum(o.wall_ns()[1] - o.wall_ns()[0] for o in inside), end - begin,
                     sum(ns for ns, _, own in mine if own), sum(ns for ns, _, _ in mine),
                     sum(ns for ns, core, own in mine if own and core), sum(ns for ns, core, _ in mine if core)]
            expected.append(((begin, -end, op.thread), [op.name, self.listed(op.shapes), self.listed(op.stack),
                                                        *(short(ns / 1000) for ns in cells)]))
        header, *rows = self.rows_of(out, "operator_details")
        self.assertEqual(header, [
            "Name", "Input Shapes", "Call Stack", "Host Self Duration(us)", "Host Total Duration(us)",
            "Device Self Duration(us)", "Device Total Duration(us)", "Device Self Duration With AICore(us)",
            "Device Total Duration With AICore(us)"])
        self.assertEqual(rows, [cells for _, cells in sorted(expected, key=lambda e: e[0])])

    def check_memory(self, framework, out):
        header, *rows = self.rows_of(out, "framework_memory_record")
        self.assertEqual(header, ["Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)",
                                  "Stream Ptr", "Device Type"])
        self.assertEqual(rows, [["PTA", us(wall(at)) + "\t", *(repr(total / 2**20) for total in totals), "4711", f"NPU:{device}"]
                                for at, _, _, _, totals, _, device in framework.reports()])
        header, *rows = self.rows_of(out, "framework_operator_memory")
        self.assertEqual(header, [
            "Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Active Release Time(us)", "Duration(us)",
            "Active Duration(us)", "Allocation Total Allocated(MB)", "Allocation Total Reserved(MB)",
            "Allocation Total Active(MB)", "Release Total Allocated(MB)", "Release Total Reserved(MB)",
            "Release Total Active(MB)", "Stream Ptr", "Device Type"])
        expected = []
        for taken, (name, size, ends, totals, less, device) in allocations(framework):
            times = [*ends, *(None if end is None else end - taken for end in ends)]
            expected.append([name, repr(size / 1024), us(taken) + "\t", *("" if t is None else us(t) + "\t" for t in times),
                             *("" if total is None else repr(total / 2**20) for total in (*totals, *less)), "4711",
                             f"NPU:{device}"])
        self.assertEqual(rows, expected)

    def check(self, **options):
        framework = self.made(**options)
        out, _ = self.export(framework.dump)
        self.check_kernel_details(framework, out)
        self.check_operator_details(framework, out)
        self.check_memory(framework, out)

    def test_through_the_queue_and_beside_it(self):
        self.check()

    def test_all_through_the_queue(self):
        self.check(queued=lambda slot: True)

    def test_without_a_queue(self):
        self.check(queued=lambda slot: False)

    def test_timestamps_in_nanoseconds(self):
        self.check(counter=False)

    def test_timestamps_that_nothing_explains(self):
        for counter in (True, False):
            with self.subTest(counter=counter):
                framework = self.made(counter=counter)
                os.remove(os.path.join(os.path.dirname(framework.dump.path), "profiler_info_0.json"))
                out, summary = self.export(framework.dump)
                self.check_operator_details(framework, out)
                self.assertIn(("FRAMEWORK", "no profiler_info*.json says what its timestamps are: taken for "
                               f"{'counts' if counter else 'ns'}, by the begin of the collection", False),
                              [(p["file"].partition("/")[2], p["what"], p["broken"]) for p in summary["problems"]])
                shutil.rmtree(os.path.dirname(framework.dump.path))

    def test_level_0_and_two_devices(self):
        self.check(level="l0", devices=(0, 1), threads=(77, 78), streams=(2, 3))

    def test_several_executions(self):
        self.check(executions=3, kinds=("matmul", "add", "mix"), slots=12)

    def test_a_window(self):
        framework = self.made()
        begin = sorted(op.wall_ns()[0] for op in framework.operators)[20]
        out, _ = self.export(framework.dump, more=["--from", seconds(begin)])
        rows = self.rows_of(out, "operator_details")[1:]
        self.assertEqual(len(rows), sum(op.wall_ns()[0] >= begin for op in framework.operators if
                                        not op.name.startswith("ProfilerStep")))

    def test_the_longest_alone(self):
        """Of the framework's operators those that launched them; times are as without the cut."""
        framework = self.made()
        out, _ = self.export(framework.dump)
        every = self.rows_of(out, "operator_details")[1:]
        out, _ = self.export(framework.dump, more=["--top", "2"])
        rows = self.rows_of(out, "operator_details")[1:]
        self.assertTrue(0 < len(rows) < len(every), (len(rows), len(every)))
        self.assertTrue(all(float(row[6]) > 0 for row in rows))
        self.assertTrue(all(row[:5] in [other[:5] for other in every] for row in rows))

    def test_steps(self):
        """Those of the framework are what --step and step_trace_time take where nothing else reports steps."""
        framework = self.made()
        spans = {number: op.wall_ns() for number, op in framework.steps}
        number, (begin, end) = sorted(spans.items())[1]
        out, _ = self.export(framework.dump, more=["--step", str(number)])
        starts = [us(start) for _, start, _ in executions(framework.dump) if begin <= start < end]
        self.assertTrue(starts)
        self.assertEqual([row[6] for row in self.rows_of(out, "task_time")[1:]], [start + "\t" for start in sorted(starts)])
        self.assertEqual([row["Step"] for row in read_dicts(out, "step_trace_time.csv")], [str(number)])
        out, _ = self.export(framework.dump)
        self.assertEqual([row["Step"] for row in read_dicts(out, "step_trace_time.csv")], [str(n) for n in sorted(spans)])
        done = profctl("export", framework.dump.path, "--format", "csv", "--out", out, "--force", "--step", "99", expect=3)
        self.assertIn(f"there is no such step; there are {min(spans)} to {max(spans)}", done.stderr)


if __name__ == "__main__":
    run_tests.main()
