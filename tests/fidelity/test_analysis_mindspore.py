"""profctl analyze over MindSpore's raw logs and those of its input pipeline, written here from a plan (analysis 4), and over
the runs with known answers beside the project."""

import glob
import json
import os
import random
import struct
import unittest

import run_tests
from analysis_case import AnalysisCase, analyze
from profd_harness import SHARED_DATA, profctl
from text_files import read_bytes, read_json


class MindSporeCase(AnalysisCase):
    """Raw logs of MindSpore's first releases; times are counts of 10 ns."""

    def write_trace(self, steps, end_tag=255, streams=(20, 22), cut=0):
        records = []
        for step in steps:
            records.append((10010, 1, step["begin"]))
            records.append((1, 0, step["fp"]))
            for i, stream in enumerate(streams):
                a, b = step["reduces"][i]
                records += [(3 + 2 * i, stream, a), (4 + 2 * i, stream, b)]
            records += [(2, 0, step["bp"]), (end_tag, 0, step["end"])]
        data = b"".join(struct.pack("<QHHQ", tag, 9, stream, count) for tag, stream, count in records)
        size = len(data) // 220 * 20
        for i in range(11):  # the last name sorts behind the second one
            self.write(f"training_trace.46.dev.profiler_default_tag.3.slice_{i}", text=data[size * i:size * (i + 1) if i < 10 else len(data) - cut])

    def plan(self, steps):
        rng, t, plan = random.Random(9), 10**9, []
        for _ in range(steps):
            begin = t
            fp = begin + rng.randrange(1, 5000)
            bp = fp + rng.randrange(10**5, 10**6)
            reduces = [(fp + rng.randrange(1000), bp + rng.randrange(1000)) for _ in range(2)]
            t = bp + rng.randrange(2000, 10**5)
            plan.append({"begin": begin, "fp": fp, "bp": bp, "end": t, "reduces": reduces})
        return plan

    def test_step_trace(self):
        plan = self.plan(30)
        self.write_trace(plan)
        [got] = analyze(self.folder)["ranks"]
        self.assertEqual((got["rank"], got["device"], len(got["steps"])), (3, 3, 30))
        for i, (row, step) in enumerate(zip(got["steps"], plan)):
            start = plan[i - 1]["end"] if i > 0 else step["fp"]
            want = {"total_ms": step["end"] - start, "iteration_interval_ms": step["fp"] - start,
                    "fp_and_bp_ms": step["bp"] - step["fp"], "tail_ms": step["end"] - step["bp"]}
            self.assertEqual(row["step"], i + 1)
            for field, counts in want.items():
                self.assert_close(row[field], counts / 1e5, (i, field))
            self.assertEqual([r["name"] for r in row["reduces"]], ["stream_20_parallel_0", "stream_22_parallel_0"])
            for reduce, (a, b) in zip(row["reduces"], step["reduces"]):
                self.assert_close(reduce["duration_ms"], (b - a) / 1e5)
        average = got["step_average"]
        self.assertEqual(average["steps"], 29)  # the first begins with forward
        for field in ("total_ms", "iteration_interval_ms", "fp_and_bp_ms", "tail_ms"):
            counts = sum(round(row[field] * 1e5) for row in got["steps"][1:]) / 29
            self.assertAlmostEqual(average[field] * 1e5, round(counts), delta=0.51 if counts % 1 == 0.5 else 1e-4)

    def test_later_end_tag_and_a_cut(self):
        plan = self.plan(5)
        self.write_trace(plan, end_tag=65535, cut=7)
        got = analyze(self.folder)
        self.assertEqual(len(got["ranks"][0]["steps"]), 4)
        self.assertIn("13 bytes of a record", got["problems"][0]["what"])

    def test_a_point_with_the_earlier_end_tag(self):
        """Where any step ends with 65535, 255 is a point of a stream like others."""
        plan = self.plan(3)
        self.write_trace(plan, end_tag=65535)
        first = "training_trace.46.dev.profiler_default_tag.3.slice_0"
        data = read_bytes(self.folder, first)
        points = b"".join(struct.pack("<QHHQ", tag, 9, 40, plan[0]["fp"] + tag) for tag in (255, 256))
        self.write(first, text=data[:40] + points + data[40:])
        [got] = analyze(self.folder)["ranks"]
        self.assertEqual(len(got["steps"]), 3)
        self.assertEqual([r["name"] for r in got["steps"][0]["reduces"]], ["stream_20_parallel_0", "stream_22_parallel_0", "stream_40_parallel_0"])

    def test_operators_of_the_ai_cpu(self):
        log = ("[1] Node:GetNext, Run start:10, Run end:20\nThread[ 1] is running, dispatchTime=87 us, totalTime=989 us\n"
               "[2] Node:Cast, Run start:30, Run end:40\nThread[ 1] is running, dispatch time = 5 us, total time = 50 us\n")
        self.write("DATA_PREPROCESS.dev.AICPU.3.slice_0", text=log)
        self.write_trace(self.plan(2))
        got = analyze(self.folder)
        self.assertEqual([(op["type"], op["total_ms"], op["dispatch_ms"]) for op in got["ranks"][0]["ai_cpu"]], [("GetNext", 0.989, 0.087), ("Cast", 0.05, 0.005)])
        self.assertEqual(got["problems"], [])

    def test_operators(self):
        """An execution is a start that the end of the same operator follows; small task ids belong to their stream."""
        ops = [("Default/Conv-op1", "Conv2D", 5, 7), ("Default/Add-op2", "Add", 5, 8), ("Default/Mul-op3", "Mul", 30001, 7)]
        self.write("Framework.host.vm.task_desc_info.3.slice_0",
                   text="".join(f"{name} 2 {task} {stream}\n" for name, _, task, stream in ops))
        self.write("Framework.host.vm.graph_desc_info.3.slice_0", text="".join(
            f'op_name:{name} op_type:{kind} input_id:0 input_shape:"2,3" output_id:0 output_shape:"6"\n' for name, kind, _, _ in ops))
        self.write("Framework.host.vm.point.3.slice_0", text="1 Default/Conv-op1\n2 Default/Mul-op3\n3 x\n")
        rng, records, want, t = random.Random(4), [], {name: [] for name, *_ in ops}, 5 * 10**8
        def record(kind, task, stream, count):
            return struct.pack("<BBHHHQI", kind | 0x30, 0, 0, 0, task, count, stream) + bytes(44)
        for _ in range(100):
            name, _, task, stream = rng.choice(ops)
            length = rng.randrange(1, 9000)
            records += [record(0, task, stream, t), record(2, task, stream, t), record(1, task, stream, t + length)]
            want[name].append(length)
            t += length + 10
        records.append(record(0, 5, 7, t))  # a start without its end
        records.append(record(1, 5, 8, t + 5))
        records.append(record(0, 77, 7, t))  # of no operator
        self.write("data", "hwts.log.data.45.dev.profiler_default_tag.3.slice_0", text=b"".join(records))
        [got] = analyze(self.folder)["ranks"]
        self.assertEqual(got["timeline"], {"streams": 2, "operators": 3, "executions": 100, "total_ms": got["timeline"]["total_ms"]})
        self.assert_close(got["timeline"]["total_ms"], sum(map(sum, want.values())) / 1e5)
        for row in got["operators"]:
            self.assertEqual(row["count"], len(want[row["name"]]))
            self.assert_close(row["total_ms"], sum(want[row["name"]]) / 1e5)
            self.assertEqual((row["input_shapes"], row["output_shapes"]), ("2,3", "6"))
        types = {row["type"]: row for row in got["operator_types"]}
        for name, kind, _, _ in ops:
            self.assert_close(types[kind]["execution_time_ms"], sum(want[name]) / len(want[name]) / 1e5)
        self.assertEqual(got["step_points"], {"fp_start": "Default/Conv-op1", "bp_end": "Default/Mul-op3"})


class PipelineCase(AnalysisCase):
    """The rules of both generations, on each side of their limits (analysis 4.3)."""

    def verdict(self, host_empty, chip_empty=None, steps=100):
        for name in os.listdir(self.folder):
            os.remove(os.path.join(self.folder, name))
        lines = []
        for step in range(1, steps + 1):
            size = 0 if step <= host_empty else 5
            lines.append(f"0 0 {step} 3\n0 1 {step} 2\n0 2 {step} 5\n1 64 {step} {size}\n")
        self.write("device_queue_profiling_0.txt", text="".join(lines))
        if chip_empty is not None:
            self.write("minddata_aicpu_0.txt", text="node_name start_time end_time queue_size\n---- --- --- ---\n" + "".join(
                f"GetNext_dequeue_wait  {step * 1000}  {step * 1000 + 250}  {0 if step <= chip_empty else 7}\n"
                for step in range(1, steps + 1)))
        got = analyze(self.folder)["ranks"][0]["data_pipeline"]
        def warns(stages):
            return {s["stage"] for s in stages if s["status"] == "warning"}
        return warns(got["stages"]), warns(got["rules_1_0"]["stages"]), got["bottleneck"]

    def test_limits(self):
        cases = {
            (30, 0): ({"device_queue_warning"}, set(), None),
            (31, 0): ({"data_process"}, set(), "data_process"),
            (30, 1): ({"data_transmission"}, {"device_queue_op", "tdt"}, "data_transmission"),
            (70, 1): ({"data_process"}, {"device_queue_op", "tdt"}, "data_process"),
            (71, 1): ({"data_process"}, {"data_process"}, "data_process"),
            (71, 0): ({"data_process"}, set(), "data_process"),
            (30, None): ({"device_queue_warning"}, set(), None),
            (70, None): ({"data_process"}, set(), "data_process"),
            (71, None): ({"data_process"}, {"data_process"}, "data_process"),
        }
        for (host, chip), want in cases.items():
            self.assertEqual(self.verdict(host, chip), want, (host, chip))

    def operators(self, uses):
        """A chain, the root first."""
        info = [{"op_id": i, "op_type": kind, "num_workers": 2, "children": [i + 1] if i + 1 < len(uses) else None,
                 "metrics": None if use is None else {"output_queue": {"size": [use * 100] * 3, "length": 100}}}
                for i, (kind, use) in enumerate(uses)]
        self.write("pipeline_profiling_0.json", text=json.dumps({"sampling_interval": 10, "op_info": info}))
        got = analyze(self.folder)["ranks"][0]["data_pipeline"]
        return got["bottleneck_operators"], got["rules_1_0"]["bottleneck_operators"], got["suggestions"]

    def test_cpus_of_the_host(self):
        """Of the process and of each operator; advice from 80 % on (analysis 4.3)."""
        def cpu(user):
            infos = [(-1, user), (0, [1, 2]), (1, [10, 20])]
            self.write("minddata_cpu_utilization_0.json", text=json.dumps({"cpu_processor_num": 96, "op_info": [
                {"op_id": i, "metrics": {"user_utilization": values, "sys_utilization": [0.5, 1.5]}} for i, values in infos]}))
            self.operators([("Batch", 0.9), ("Map", 0.9)])
            return analyze(self.folder)["ranks"][0]["data_pipeline"]
        got = cpu([78, 80])
        self.assertEqual(got["cpu"], {"user_percent": 79, "sys_percent": 1, "user": [78, 80], "sys": [0.5, 1.5], "processors": 96})
        self.assertEqual([op["cpu"] for op in got["operators"]], [{"user_percent": 1.5, "sys_percent": 1}, {"user_percent": 15, "sys_percent": 1}])
        self.assertEqual([text for text in got["suggestions"] if "CPU" in text], [])
        [advice] = [text for text in cpu([78, 80.5])["suggestions"] if "CPU" in text]
        self.assertIn("80 %", advice)

    def test_operators(self):
        for uses, now, first in (
                ([("Batch", None), ("Map", 0.19), ("TFReader", 0.8)], ["Map 1"], ["Map 1"]),
                ([("Batch", None), ("Map", 0.2), ("TFReader", 0.8)], ["Map 1"], []),
                ([("Batch", None), ("Map", 0.71), ("TFReader", 0.8)], [], []),
                ([("Batch", None), ("Map", 0.69), ("TFReader", 0.8)], ["Map 1"], []),
                ([("Batch", None), ("Map", 0.7), ("TFReader", 0.6)], [], []),
                ([("Batch", None), ("Map", 0.7), ("TFReader", 0.59)], ["TFReader 2"], []),
                ([("Batch", None), ("Map", 0.1), ("TFReader", 0.1)], ["TFReader 2"], ["TFReader 2"]),
                ([("Batch", None), ("Map", 0.9), ("TFReader", 0.9)], [], ["Batch 0"])):
            self.assertEqual(self.operators(uses)[:2], (now, first), uses)
        # On a terminal the advice of both, each once.
        shown = profctl("analyze", self.folder, "--only", "data_pipeline").stdout
        self.assertIn("Batch 0: change prefetch_size (by the rules of MindInsight 1.0)\n", shown)
        self.operators([("Batch", None), ("Map", 0.19), ("TFReader", 0.8)])
        self.assertNotIn("MindInsight 1.0", profctl("analyze", self.folder, "--only", "data_pipeline").stdout)
        advice = self.operators([("Batch", 0.1), ("GeneratorOp", 0.9)])[2]
        self.assertEqual(len(advice), 1)
        self.assertIn("prefetch_size", advice[0])


@unittest.skipUnless(os.path.isdir(SHARED_DATA), "the data with known answers is not there")
class KnownCase(unittest.TestCase):
    def answers(self, *place):
        with open(os.path.join(SHARED_DATA, *place, "answers.json"), encoding="utf-8") as file:
            return json.load(file)["values"]

    def test_mindspore_job(self):
        for name in ("JOB3", "run_1"):  # raw, and what MindInsight made of it
            with self.subTest(name=name):
                self.check_job(name)

    def check_job(self, name):
        want = self.answers("mindinsight", name)
        [got] = analyze(os.path.join(SHARED_DATA, "mindinsight", name))["ranks"]
        self.assertEqual(len(got["steps"]), want["step_count"])
        average = got["step_average"]
        for ours, theirs in (("total_ms", "total_ms"), ("iteration_interval_ms", "iteration_interval_ms"),
                             ("fp_and_bp_ms", "fp_and_bp_ms"), ("tail_ms", "tail_ms")):
            self.assertEqual(round(average[ours], 4), want["average_row"][theirs])
        self.assertEqual(got["step_points"], want["point_info"])
        reduces = {r["name"]: r for r in average["reduces"]}
        for name, counts in want["average_row_counts_10ns"].items():
            if name.endswith("_parallel_0"):
                self.assertAlmostEqual(reduces[name]["duration_ms"], int(counts) / 1e5, places=4)
        types = {row["type"]: row for row in got["operator_types"]}
        self.assertEqual(set(types), {row["op_type"] for row in want["op_types"]})
        means = sum(row["execution_time_ms"] for row in got["operator_types"])
        for row in want["op_types"]:
            mine = types[row["op_type"]]
            self.assertEqual(mine["operators"], row["execution_frequency"])
            self.assertAlmostEqual(mine["execution_time_ms"], row["execution_time_ms"], places=5)
            self.assertAlmostEqual(mine["execution_time_ms"] / means * 100, row["percent"], delta=0.0051)
        timeline = want["timeline_summary"]
        self.assertEqual((got["timeline"]["streams"], got["timeline"]["operators"], got["timeline"]["executions"]),
                         (timeline["num_of_streams"], timeline["num_of_ops"], timeline["op_exe_times"]))
        self.assertAlmostEqual(got["timeline"]["total_ms"] * 1000, timeline["total_time_us"], places=3)
        self.assertEqual(len(got["operators"]), want["op_count"])

    def test_old_timeline(self):
        want = self.answers("mindinsight", "msprof_10steps_rank0")
        run = os.path.join(SHARED_DATA, "mindinsight", "msprof_10steps_rank0")
        [got] = analyze(run)["ranks"]
        self.assertEqual((got["device"], len(got["steps"])), (0, 10))
        [trace] = glob.glob(os.path.join(run, "PROF_*", "device_0", "timeline", "step_trace_0_2_1.json"))
        events = {e["name"]: {"start_us": e["ts"], "duration_us": e["dur"]} for e in read_json(trace) if e["ph"] == "X"}
        for event in want["step_trace_events_us"][0]:  # of the first three
            self.assertEqual(events[event["name"]]["duration_us"], event["duration_us"])
        for step in got["steps"]:
            number = step["step"]
            iteration, both = events[f"Iteration {number}"], events[f"FP_BP Time {number}"]
            self.assertAlmostEqual(step["total_ms"] * 1000, iteration["duration_us"], places=2)
            self.assertAlmostEqual(step["fp_and_bp_ms"] * 1000, both["duration_us"], places=2)
            self.assertAlmostEqual(step["tail_ms"] * 1000, events[f"Iteration Refresh {number}"]["duration_us"], places=2)
            self.assertAlmostEqual(step["iteration_interval_ms"] * 1000, both["start_us"] - iteration["start_us"], places=2)
            [reduce] = step["reduces"]
            self.assertAlmostEqual(reduce["duration_ms"] * 1000, events[f"Reduce_{number}_0"]["duration_us"], places=2)
        kernels = 0
        for path in glob.glob(os.path.join(run, "PROF_*", "device_0", "timeline", "msprof_*.json")):
            kernels += sum(e["ph"] == "X" and e.get("args", {}).get("Task Type", "").startswith(("AI_", "MIX_")) for e in read_json(path))
        self.assertEqual(got["timeline"]["executions"], kernels)

    def test_pipelines(self):
        for case in ("healthy", "data_processing_slow", "transmission_slow", "no_get_next_log_slow"):
            want = self.answers("made_minddata", case)
            got = analyze(os.path.join(SHARED_DATA, "made_minddata", case))["ranks"][0]["data_pipeline"]
            for rules, stages in (("head_2025-06", got["stages"]), ("v1.0.0", got["rules_1_0"]["stages"])):
                reported = {name: part["status"] for name, part in want[rules]["process_summary"].items() if "status" in part}
                self.assertEqual({s["stage"]: s["status"] for s in stages}, reported, (case, rules))
            queues = {q["queue"]: q for q in got["queues"]}
            for queue, name in (("host", "device_queue_info"), ("device", "get_next_queue_info")):
                summary = want["v1.0.0"]["process_summary"].get(name)
                if summary is None:
                    continue
                self.assertEqual(queues[queue]["empty"], summary["summary"]["empty_batch_count"])
                self.assertEqual(queues[queue]["total"], summary["summary"]["total_batch"])
                if "full_batch_count" in summary["summary"]:
                    self.assertEqual(queues[queue]["full"], summary["summary"]["full_batch_count"])
        for device in (0, 1):
            want = self.answers("mindinsight", f"minddata_pipeline_{device}")
            got = analyze(os.path.join(SHARED_DATA, "mindinsight", f"minddata_pipeline_{device}"))["ranks"][0]["data_pipeline"]
            self.assertEqual(got["rules_1_0"]["bottleneck_operator"], want["bottleneck_operator"])

    def test_real_ranks(self):
        for case in ("pt_text_level1", "pt_db_level1", "pt_db_level0"):
            want = self.answers("pytorch", case)
            got = analyze(os.path.join(SHARED_DATA, "pytorch", case))
            self.assertEqual([r["rank"] for r in got["ranks"]], [0, 1])
            for rank in got["ranks"]:
                reported = want[f"rank{rank['rank']}"]["overall"]
                for ours, theirs in (("e2e_ms", "e2e_time_ms"), ("computing_ms", "computing_time_ms"),
                                     ("uncovered_communication_ms", "uncovered_communication_time_ms"), ("free_ms", "free_time_ms")):
                    self.assertAlmostEqual(rank["overall"][ours], reported[theirs], delta=0.00061, msg=(case, theirs))


if __name__ == "__main__":
    run_tests.main()
