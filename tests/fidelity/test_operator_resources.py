"""Memory and AI CPU records of the vendor's in-process profiler against the plan they were written from."""

import struct

import make_operators as made
import run_tests
from channels import BEGIN_US, HOST_RAW
from comparison import query
from profd_harness import profctl
from test_operators import Exported, OpenCase, us

KB = 1024


class ResourceOperators(made.Operators):
    """Operators, allocations between them, and what the AI CPU says of its nodes."""

    def host_wall_ns(self, count):
        return (count - made.HOST_COUNT) * 1000 // made.HOST_MHZ + BEGIN_US * 1000

    def memory(self, slot, at, address, size, name, allocated, reserved, tag="task_memory_info", device_type=20):
        body = struct.pack("<QqQQQII", address, size, self.hash_of(name), allocated, reserved, slot.device, device_type)
        self.record("aging", f"additional.{tag}", 256, "node", 6, slot, at, body)
        return self.host_wall_ns(self.host(slot.us + at))

    def planned(self, size, name, begin, end, graph):
        slot = self.slots[0]
        self.record("unaging", "additional.static_op_mem", 256, "node", 11, slot, 3, struct.pack(
            "<qQQQQQI", size, self.hash_of(name), begin, end, 0, 0, graph))

    def graph_name(self, name, graph, model):
        self.record("unaging", "additional.graph_id_map", 256, "model", 0, self.slots[0], 3,
                    struct.pack("<QII", self.hash_of(name), graph, model))

    def fused(self, name, originals, sizes, at):
        """In us of the host's counter."""
        slot = self.slots[0]
        body = struct.pack(f"<QI5Q{len(originals)}Q", self.hash_of(name), len(originals), *sizes,
                           *(self.hash_of(text) for text in originals))
        self.record("unaging", "additional.fusion_op_info", 256, "node", 2, slot, at - slot.us, body)

    def model_call(self, kind, model, begin, end):
        slot = self.slots[0]
        self.api("model", kind, slot, begin - slot.us, end - slot.us, item=model)

    l2_events = None

    def cache(self, slot, counts):
        self.add(slot.device, "l2_cache.data", struct.pack("<HHHH8Q", 0, slot.stream, slot.task, 0, *counts))

    def _write_controls(self, place):
        super()._write_controls(place)
        if self.l2_events is not None:
            self.change(place, "sample.json", lambda sample: sample.update(l2CacheTaskProfilingEvents=self.l2_events))

    def mark(self, start, end, text, kind=0, event=0, domain=None, mark=0, segment=0, category=4, payload=77):
        """One record of additional.msproftx, in us of the host's counter; its times as the CSV has them."""
        slot = self.slots[0]
        body = struct.pack("<HHIHHIIIIIQQQQQI156s", kind, segment, 0, 0, 0, 4242, 88, category, event, 2, payload,
                           self.host(start), self.host(end), mark, self.hash_of(domain), 1, text.encode())
        self.record("aging", "additional.msproftx", 256, "acl", 20500, slot, 1, body)
        return [us(self.host_wall_ns(self.host(at))) + "\t" for at in (start, end)]

    def cpu(self, device, kind, body):
        head = struct.pack("<HHIIIQ", 0x5A5A, 6000, kind, 1, len(body), HOST_RAW + 5_000_000)
        self.add(device, "aicpu.data", (head + body).ljust(256, b"\0"))

    def cpu_node(self, slot, start, end, compute, copy, dispatch, submitted, after_run):
        self.cpu(slot.device, 0, struct.pack("<HH12xQQQQ8xQIIQQ8xQIII", slot.stream, slot.task, start, 1000,
                                             1000 + compute, 1000 + compute + copy, end, 9, slot.device, submitted, 0,
                                             after_run, 0, dispatch, 0))


class ResourceTest(OpenCase):
    kind = ResourceOperators

    def test_memory_of_operators(self):
        for tag in ("task_memory_info", "memory_application"):
            dump = self.make()
            slot = dump.slots[3]
            taken = dump.memory(slot, 5, 0x1000, 4096, "MatMul_1", 8192, 65536, tag)
            kept = dump.memory(slot, 6, 0x2000, 512, None, 8704, 65536, tag)
            dump.memory(slot, 7, 0x3000, 512, "on the host", 1, 1, tag, device_type=0)
            freed = dump.memory(slot, 9, 0x1000, -4096, "MatMul_1", 4608, 65536, tag)
            again = dump.memory(slot, 11, 0x1000, 1024, "Add_2", 5632, 65536, tag)
            exported = self.export(dump)
            self.assertEqual(exported.rows("memory_record"), [
                ["Device_id", "Component", "Timestamp(us)", "Total Allocated(KB)", "Total Reserved(KB)", "Device"],
                ["host", "GE", us(taken) + "\t", "8.0", "64.0", "NPU:0"],
                ["host", "GE", us(kept) + "\t", "8.5", "64.0", "NPU:0"],
                ["host", "GE", us(freed) + "\t", "4.5", "64.0", "NPU:0"],
                ["host", "GE", us(again) + "\t", "5.5", "64.0", "NPU:0"]])
            self.assertEqual(exported.rows("operator_memory"), [
                ["Device_id", "Name", "Size(KB)", "Allocation Time(us)", "Duration(us)",
                 "Allocation Total Allocated(KB)", "Allocation Total Reserved(KB)", "Release Total Allocated(KB)",
                 "Release Total Reserved(KB)", "Device"],
                ["host", "MatMul_1", "4.0", us(taken) + "\t", "4.0", "8.0", "64.0", "4.5", "64.0", "NPU:0"],
                ["host", "N/A", "0.5", us(kept) + "\t", "0.0", "8.5", "64.0", "0.0", "0.0", "NPU:0"],
                ["host", "Add_2", "1.0", us(again) + "\t", "0.0", "5.5", "64.0", "0.0", "0.0", "NPU:0"]])

    def test_operators_without_inputs_or_outputs(self):
        dump = self.make(slots=2, kinds=("matmul",))
        for slot, output in zip(dump.slots, (True, False)):
            slot.tensors = [tensor for tensor in made.MATMUL if tensor.output == output]
        exported = self.export(dump)
        texts = [*["N/A"] * 3, '"1024,2048"', "FLOAT16", "ND"], ['"1024,512;512,2048"', "FLOAT16;FLOAT16", "ND;ND", *["N/A"] * 3]
        self.assertEqual([row[14:20] for row in exported.rows("op_summary")[1:]], list(texts))
        profctl("export", dump.path, "--format", "sqlite", "--out", dump.path + "-db")
        ids = dict(query(dump.path + "-db", "SELECT id, value FROM STRING_IDS"))
        rows = query(dump.path + "-db", "SELECT inputShapes, inputDataTypes, inputFormats, outputShapes, outputDataTypes, "
                                        "outputFormats FROM COMPUTE_TASK_INFO ORDER BY globalTaskId")
        self.assertEqual([[ids[cell] for cell in row] for row in rows], list(texts))

    def test_planned_memory_of_graphs(self):
        dump = self.make()
        dump.graph_name("resnet", 4, 9)
        dump.planned(7 * KB, "Conv_0", 1, 4294967295, 4)
        dump.planned(99 * KB + 5, None, 0, 8, 4)
        dump.planned(KB, "Conv_1", 2, 3, 5)
        self.assertEqual(self.export(dump).rows("static_op_mem"), [
            ["Device_id", "Op Name", "Model Name", "Graph ID", "Node Index Start", "Node Index End", "Size(KB)"],
            ["host", "Conv_0", "resnet", "4", "1", "4294967295", "7"],
            ["host", "TOTAL", "resnet", "4", "0", "8", "99"],
            ["host", "Conv_1", "N/A", "5", "2", "3", "1"]])

    def test_fused_operators(self):
        dump = self.make()
        dump.graph_name("resnet", 4, 9)
        dump.model_call(2, 9, 100, 200)
        dump.model_call(2, 12, 300, 400)
        dump.fused("Conv_Relu", ["Conv_0", "Relu_0"], [1024, 2048, 512, 0, 3584], 150)
        dump.fused("Add_N", [], [0, 0, 1, 0, 1], 350)  # of a model without a name
        dump.fused("nobody's", ["Mul_0"], [1, 1, 1, 1, 1], 250)
        self.assertEqual(self.export(dump).rows("fusion_op"), [
            ["Device_id", "Model Name", "Model ID", "Fusion Op", "Original Ops", "Memory Input(KB)", "Memory Output(KB)",
             "Memory Weight(KB)", "Memory Workspace(KB)", "Memory Total(KB)"],
            ["host", "resnet", "9", "Conv_Relu", "Conv_0;Relu_0", "1", "2", "0.5", "0", "3.5"],
            ["host", "N/A", "12", "Add_N", "", "0", "0", "0.001", "0", "0.001"]])

    def test_fused_operators_need_the_names_of_models(self):
        dump = self.make()
        dump.model_call(2, 9, 100, 200)
        dump.fused("Conv_Relu", ["Conv_0"], [1, 1, 1, 1, 1], 150)
        self.assertFalse(self.export(dump).has("fusion_op"))

    def test_cache_of_each_task(self):
        dump = self.make(slots=16, executions=2)
        dump.l2_events = "0xfb,0xfc,0x90,0x91,0x9c"
        matmuls = [slot for slot in dump.slots if slot.kind == "matmul"]
        for _ in range(3):  # once more than it ran
            for number, slot in enumerate(matmuls):
                dump.cache(slot, (92, 28, 32, 32, 17 * number, 0, 0, 0))
        dump.cache(matmuls[0], (0,) * 8)
        expected = [["0", str(s.stream), str(s.task), "N/A", repr(round(17 * i / 120, 6)), s.name if run < 2 else "N/A"]
                    for run in range(3) for i, s in enumerate(matmuls)]
        expected.append(["0", str(matmuls[0].stream), str(matmuls[0].task), "N/A", "N/A", "N/A"])
        header, *rows = self.export(dump).rows("l2_cache")
        self.assertEqual(header, ["Device_id", "Stream Id", "Task Id", "Hit Rate", "Victim Rate", "Op Name"])
        self.assertEqual(rows, expected)

    def test_cache_without_its_events(self):
        dump = self.make(slots=8)
        dump.cache(dump.slots[0], (1,) * 8)
        self.assertFalse(self.export(dump).has("l2_cache"))

    def test_nodes_of_the_ai_cpu(self):
        dump = self.make(executions=2)
        dump.fill()
        expected = [["Device_id", "Timestamp(us)", "Node", "Compute_time(us)", "Memcpy_time(us)", "Task_time(us)",
                     "Dispatch_time(us)", "Total_time(us)", "Stream ID", "Task ID"]]
        for slot in dump.slots:
            if slot.kind != "aicpu":
                continue
            for start, end in slot.runs:
                dump.cpu_node(slot, start + 50, end - 50, 11, 3, 4, start, end)
                expected.append(["0", us(dump.wall_ns(start + 50)) + "\t", slot.name, "11", "3",
                                 str(round((dump.wall_ns(end - 50) - dump.wall_ns(start + 50)) / 1000, 3)), "4",
                                 str(round((dump.wall_ns(end) - dump.wall_ns(start)) / 1000, 3)), str(slot.stream),
                                 str(slot.task)])
        self.assertGreater(len(expected), 5)
        dump.cpu_node(dump.slots[0], 0, 5, 1, 1, 1, 1, 1)  # without a start: no row
        dump.write()
        self.assertEqual(Exported(dump.path, dump.path + "-out", 0, ()).rows("aicpu"), expected)

    def test_the_data_pipeline(self):
        dump = self.make()
        dump.cpu(0, 1, struct.pack("<16s64sQQ", b"Last enqueue", b"dataset/GetNext, one", 3, 17))
        dump.cpu(0, 3, struct.pack("<I4xQQQ", 1, 6, 1234, 5678))
        dump.cpu(0, 11, b"")  # of another kind: no row, no damage
        exported = self.export(dump)
        self.assertEqual(exported.rows("dp")[1:], [
            ["0", us(BEGIN_US * 1000 + 5_000_000) + "\t", "Last enqueue", "dataset/GetNext, one", "17"]])
        self.assertEqual(exported.rows("aicpu_mi"), [
            ["Device_id", "Node Name", "Start Time(us)", "End Time(us)", "Queue Size"],
            ["0", "GetNext_dequeue_wait", "1234", "5678", "6"]])

    def test_waits_for_the_queue_of_earlier_releases(self):
        """Texts that end with a zero byte, their fields in either order (in-application 7.6); one that makes no sense costs itself."""
        dump = self.make(slices=3)
        texts = [f"Node:GetNext_{i}, Run start:{100 + i}, Run end:{150 + 2 * i}, queue size:{i}" for i in range(40)]
        texts[1] = "Node:GetNext_1, Run start:101, queue size:1, Run end:152"
        for text in texts + ["Node:none, Run start:x, Run end:1, queue size:1"]:
            dump.add(0, "DATA_PREPROCESS.AICPUMI", text.encode() + b"\0")
        exported = self.export(dump, expect=5)
        self.assertEqual(exported.rows("aicpu_mi")[1:], [["0", f"GetNext_{i}", str(100 + i), str(150 + 2 * i), str(i)] for i in range(40)])

    def test_marks_of_the_application(self):
        dump = self.make()
        point = dump.mark(3000, 3000, "here")
        pushed = dump.mark(3100, 3200.5, "load, then run", event=1, payload=5)
        ex = dump.mark(3300, 3300, "step 1", kind=1, event=3, domain="communication", mark=6)
        long = dump.mark(3400, 3500, "x" * 156, kind=1, event=2, domain=None, mark=7)
        dump.mark(3400, 3500, "yz", kind=1, event=2, domain=None, mark=7, segment=1)
        dump.fill()
        dump.write()
        exported = Exported(dump.path, dump.path + "-out", 0, ())
        self.assertEqual(exported.rows("msprof_tx"), [
            ["Device_id", "pid", "tid", "category", "event_type", "payload_type", "payload_value", "Start_time(us)",
             "End_time(us)", "message_type", "message", "domain", "Device Start_time(us)", "Device End_time(us)"],
            ["host", "4242", "88", "4", "marker", "2", "77", *point, "1", "here", "N/A", "N/A", "N/A"],
            ["host", "4242", "88", "4", "push/pop", "2", "5", *pushed, "1", "load, then run", "N/A", "N/A", "N/A"],
            ["host", "4242", "88", "N/A", "marker_ex", "N/A", "N/A", *ex, "N/A", "step 1", "communication", "N/A", "N/A"],
            ["host", "4242", "88", "N/A", "start/end", "N/A", "N/A", *long, "N/A", "x" * 156 + "yz", "default", "N/A",
             "N/A"]])
        profctl("export", dump.path, "--format", "sqlite", "--out", dump.path + "-db")
        rows = query(dump.path + "-db", "SELECT m.value, d.value, eventType, category, connectionId, startNs, endNs, globalTid "
                                        "FROM MSTX_EVENTS JOIN STRING_IDS m ON m.id = message "
                                        "JOIN STRING_IDS d ON d.id = domainId ORDER BY startNs")
        none, thread = 4294967295, 4242 << 32 | 88
        times = [[int(at.strip().replace(".", "")) for at in pair] for pair in (point, pushed, ex, long)]
        self.assertEqual(rows, [("here", "default", 0, 4, 4000000000, *times[0], thread),
                                ("load, then run", "default", 1, 4, 4000000000, *times[1], thread),
                                ("step 1", "communication", 3, none, 4000000007, *times[2], thread),
                                ("x" * 156 + "yz", "default", 2, none, 4000000008, *times[3], thread)])

    def test_records_cut_anywhere(self):
        whole = None
        for cut in (0, 1, 17, 128, 255):
            dump = self.make(slots=8)
            for i in range(4):
                dump.memory(dump.slots[i], 5, 0x1000 + i, 1024, "MatMul_1", 8192, 65536)
            records = dump.files["host", "aging.additional.task_memory_info"]
            if cut:
                records[-1] = records[-1][:cut]
            exported = self.export(dump, expect=5 if cut else 0)
            rows = exported.rows("memory_record")
            whole = whole or rows
            self.assertEqual(rows, whole[:len(whole) - 1] if cut else whole)


if __name__ == "__main__":
    run_tests.main()
