"""The database's tables of operators against the plan that their records were written from."""

import json
import struct

import make_communication
import make_operators as made
import run_tests
from channels import AIC_MHZ
from comparison import FolderCase, one, query
from profd_harness import profctl
from test_operators import PMU_HEADERS, counter_cell, executions, expected_counters, tensors_of

NONE = 4294967295
TASK = ("startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, "
        "globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER")
COMPUTE = ("name, globalTaskId, blockNum, mixBlockNum, taskType, opType, inputFormats, inputDataTypes, inputShapes, "
           "outputFormats, outputDataTypes, outputShapes, attrInfo, opState, hf32Eligible, gridDim, blockDim")


# Columns that op_summary leaves out (the vendor's UNSUPPORTED_HEADER), the database does not.
HIDDEN = {
    "PipeUtilizationExct": [f"aiv_{n}_{what}" for n in ("mac", "mte1") for what in ("time(us)", "ratio")],
    "ArithmeticUtilization": ["aic_vec_fp32_ratio", "aic_vec_fp16_ratio", "aic_vec_int32_ratio", "aic_vec_misc_ratio",
                              "aic_vector_fops", "aiv_mac_fp16_ratio", "aiv_mac_int8_ratio", "aiv_cube_fops"],
    "Memory": [f"{n}_bw(GB/s)" for n in ("aic_ub_read", "aic_ub_write", "aiv_l1_read", "aiv_l1_write")],
    "MemoryL0": [f"{n}(GB/s)" for n in ("aic_l0c_read_bw", "aic_l0c_write_bw", "aiv_l0a_read_bw", "aiv_l0a_write_bw",
                                        "aiv_l0b_read_bw", "aiv_l0b_write_bw", "aiv_l0c_read_bw_cube",
                                        "aiv_l0c_write_bw_cube")],
    "MemoryUB": [f"aic_ub_{n}_bw_vector(GB/s)" for n in ("read", "write")],
    "ResourceConflictRatio": [f"aic_vec_{n}_cflt_ratio" for n in ("bankgroup", "bank", "resc")],
}


def is_operator(slot):
    return slot.kind not in ("memcpy", "event")


class Exported:
    def __init__(self, dump, more=(), paths=None):
        out = dump.path + "-out"
        profctl("export", *(paths or [dump.path]), "--format", "sqlite", "--out", out, *more)
        self.path = one(out, "msprof_*.db")

    def query(self, sql):
        return query(self.path, sql)


class OperatorDatabaseTest(FolderCase):
    def make(self, **options):
        return made.Operators(self.fresh(), **options).fill()

    def export(self, dump, more=()):
        dump.write()
        exported = Exported(dump, more)
        self.assertEqual(exported.query("PRAGMA integrity_check"), [("ok",)])
        return exported

    @staticmethod
    def tasks(exported):
        return exported.query(
            "SELECT startNs, endNs, deviceId, globalTaskId, s.value, contextId, streamId, taskId, modelId "
            "FROM TASK JOIN STRING_IDS s ON s.id = taskType")

    def check_tasks(self, dump, exported):
        """Also that numbers are those of distinct tasks."""
        numbers = {}
        expected = []
        found = self.tasks(exported)
        self.assertEqual([row[0] for row in found], sorted(row[0] for row in found))
        for slot, start, end in executions(dump):
            expected.append((start, end, slot.device, slot.runtime, NONE if slot.context is None else slot.context,
                             slot.stream, slot.task, NONE))
            numbers[start, slot.device, slot.stream] = (slot.device, slot.stream, slot.batch, slot.task, slot.context)
        inner = [row for row in found if (row[0], row[2], row[6]) in numbers]
        self.assertEqual(sorted(row[:3] + row[4:] for row in inner), sorted(expected))
        by_task = {}
        for row in inner:
            by_task.setdefault(numbers[row[0], row[2], row[6]], set()).add(row[3])
        self.assertEqual({len(ids) for ids in by_task.values()}, {1})
        self.assertEqual(len(set().union(*by_task.values())), len(by_task))
        every = sorted({row[3] for row in found})
        self.assertEqual(every, list(range(len(every))))

    def check_operators(self, dump, exported):
        texts = dict(exported.query("SELECT id, value FROM STRING_IDS"))
        plain = (1, 2, 3)
        found = [tuple(cell if i in plain else texts[cell] for i, cell in enumerate(row))
                 for row in exported.query(f"SELECT {COMPUTE} FROM COMPUTE_TASK_INFO")]
        ids = {(row[0], row[2], row[6]): row[3] for row in self.tasks(exported)}
        expected = {}
        for slot, start, _ in executions(dump):
            if not is_operator(slot):
                continue
            described = bool(slot.type)
            inputs, outputs = (tensors_of(slot, False), tensors_of(slot, True)) if described else (["N/A"] * 3,) * 2
            number = ids[start, slot.device, slot.stream]
            expected[number] = (
                slot.name or slot.kernel, number, slot.blocks if described else NONE,
                (slot.blocks * 2 if slot.kind == "mix" else 0) if described else NONE,
                slot.core or "AI_VECTOR_CORE", slot.type or slot.kernel, *inputs[::-1], *outputs[::-1], "N/A",
                ("static" if slot.unaging else "dynamic") if described else "N/A",
                ("YES" if slot.hf32 else "NO") if described else "N/A", "N/A", "N/A")
        self.assertEqual(found, [expected[number] for number in sorted(expected)])

    def test_tasks_and_operators(self):
        dump = self.make()
        exported = self.export(dump)
        self.check_tasks(dump, exported)
        self.check_operators(dump, exported)

    def test_schema(self):
        exported = self.export(self.make())
        schema = dict(exported.query("SELECT name, sql FROM sqlite_schema"))
        self.assertEqual(schema["TASK"], f"CREATE TABLE TASK ({TASK})")
        self.assertEqual(schema["TaskIndex"], "CREATE INDEX TaskIndex ON TASK (startNs, globalTaskId)")
        self.assertIn("globalTaskId INTEGER PRIMARY KEY", schema["COMPUTE_TASK_INFO"])
        self.assertIn("connectionId INTEGER PRIMARY KEY", schema["CANN_API"])
        self.assertNotIn("TASK_PMU_INFO", schema)

    def test_several_devices_and_wraps(self):
        dump = self.make(devices=(0, 1), slots=60, wrap=7)
        exported = self.export(dump)
        self.check_tasks(dump, exported)
        self.check_operators(dump, exported)

    def test_a_static_graph_has_one_number_for_all_executions(self):
        dump = self.make(slots=16, executions=4)
        exported = self.export(dump)
        self.check_tasks(dump, exported)
        self.check_operators(dump, exported)

    def test_calls_and_what_they_launched(self):
        dump = self.make(threads=(77, 78))
        exported = self.export(dump)
        texts = dict(exported.query("SELECT id, value FROM STRING_IDS"))
        calls = exported.query("SELECT startNs, endNs, type, globalTid, connectionId, name FROM CANN_API")
        pid = int(exported.query("SELECT DISTINCT globalPid FROM TASK")[0][0])
        found = sorted((start, end, level, tid, texts[name]) for start, end, level, tid, _, name in calls)
        expected = []
        for slot in dump.slots:
            def call(level, begin, end, name, slot=slot):
                ticks = [round((slot.us + us) * made.HOST_MHZ) for us in (begin, end)]
                expected.append((*(made.BEGIN_US * 1000 + t * 1000 // made.HOST_MHZ for t in ticks),
                                 made.LEVELS[level], pid << 32 | slot.thread, name))
            if slot.type:
                call("acl", 2, 70, f"aclnn{slot.type}")
                call("node", 10, 60, "launch")
            call("runtime", 19, 40, "KernelLaunch")
        self.assertEqual(found, sorted(expected))
        names = exported.query(
            "SELECT o.name, l.level, l.tid, l.start_ns < o.start_ns FROM profd_operators o "
            "JOIN profd_launches l USING (connection) WHERE o.type <> o.name")
        self.assertEqual(sorted(names), sorted(
            (slot.name, "node", slot.thread, 1) for slot, _, _ in executions(dump) if slot.type))

    def check_counters(self, dump, exported):
        ids = {(row[0], row[2], row[6]): row[3] for row in self.tasks(exported)}
        found = {}
        for number, name, value in exported.query(
                "SELECT globalTaskId, s.value, p.value FROM TASK_PMU_INFO p JOIN STRING_IDS s ON s.id = p.name "
                "ORDER BY p.rowid"):
            found.setdefault((number, name), []).append(value)
        expected = {}
        for slot in dump.slots:
            for run, (start, _) in enumerate(slot.runs):
                self.add_counters(expected, dump, slot, run, ids[dump.wall_ns(start), slot.device, slot.stream],
                                  [n for n in PMU_HEADERS[dump.metrics] if n != "cube_utilization(%)"]
                                  + HIDDEN.get(dump.metrics, []))
        self.assertEqual(found.keys(), expected.keys())
        for key, values in expected.items():
            self.assertEqual(len(found[key]), len(values), key)
            for value, wanted in zip(found[key], values):
                self.assertAlmostEqual(value, wanted, delta=max(abs(wanted) * 1e-9, 1e-9), msg=str(key))

    @staticmethod
    def add_counters(expected, dump, slot, run, number, names):
        if expected_counters(dump, slot, names, run)[0] == "N/A":
            return
        mhz = float(AIC_MHZ[5])
        for core, cores in (("aic", made.AIC_CORES), ("aiv", made.AIV_CORES)):
            cycles, counters = dump.counts.get((slot, run, core), (0, [0] * 8))
            events = [int(e, 16) for e in made.EVENTS[dump.metrics][0 if core == "aic" else 1].split(",")]
            blocks = slot.blocks * 2 if core == "aiv" and slot.context is not None else slot.blocks
            time = cycles / mhz / blocks * -(-blocks // cores) if blocks and slot.type else 0
            values = {f"{core}_total_time": time * 1e3, f"{core}_total_cycles": cycles}
            for name in names:
                if not name.startswith(core + "_") or name == "aiv_time(us)" or name.split("(")[0] in values:
                    continue
                value = counter_cell(name, core, events, cycles, counters, time, mhz)
                factor = 1e3 if name.endswith("(us)") else 1e9 if name.endswith("(GB/s)") else 1
                values[name.split("(")[0]] = value * factor
            for name, value in values.items():
                expected.setdefault((number, name), []).append(value)

    def test_names_of_counters_are_the_vendors(self):
        """Those of a real database (pt_db_level1), in its order."""
        dump = self.make(metrics="PipeUtilizationExct", slots=8)
        exported = self.export(dump)
        pairs = {"aic": ("mac", "scalar", "mte1", "mte2", "fixpipe"), "aiv": ("vec", "mac", "scalar", "mte1", "mte2", "mte3")}
        expected = [f"{core}_{name}" for core, pipes in pairs.items() for name in
                    ("total_time", "total_cycles", *(f"{p}_{what}" for p in pipes for what in ("time", "ratio")),
                     "icache_miss_rate")]
        found = exported.query("SELECT s.value FROM TASK_PMU_INFO p JOIN STRING_IDS s ON s.id = p.name WHERE globalTaskId = "
                               "(SELECT min(globalTaskId) FROM TASK_PMU_INFO) ORDER BY p.rowid")
        self.assertEqual([name for name, in found], expected)

    def test_counters_of_every_group(self):
        for metrics in made.EVENTS:
            with self.subTest(metrics):
                dump = self.make(metrics=metrics, executions=2)
                self.check_counters(dump, self.export(dump))

    def test_several_dumps_in_one_database(self):
        dumps = [self.make(slots=24), self.make(slots=16, devices=(0, 1))]
        for dump in dumps:
            dump.write()
        exported = Exported(dumps[0], paths=[dump.path for dump in dumps])
        self.assertEqual(exported.query("PRAGMA integrity_check"), [("ok",)])
        rows = exported.query("SELECT dumpId, count(DISTINCT globalTaskId), min(globalTaskId) FROM TASK GROUP BY 1")
        self.assertEqual(rows[1][2], rows[0][1])
        self.assertEqual(exported.query(
            "SELECT count(*) FROM TASK t JOIN CANN_API a USING (connectionId) WHERE t.dumpId <> a.dumpId"), [(0,)])
        self.assertEqual(exported.query("SELECT count(*) FROM profd_operators"), [
            (sum(len(slot.runs) for dump in dumps for slot in dump.slots if is_operator(slot)),)])

    def communication(self, count=6, **options):
        dump = make_communication.CommunicationOperators(self.fresh(), **options)
        for i in range(count):
            dump.operation(("hcom_allReduce_", "hcom_broadcast_")[i % 2], f"group_{i % 2}", 20_000 + 1000 * i)
        return dump.fill()

    def test_collectives(self):
        dump = self.communication()
        exported = self.export(dump)
        found = exported.query(
            "SELECT startNs, endNs, n.value, t.value, g.value, a.value, count, relay, retry, d.name, deviceId, rankSize "
            "FROM COMMUNICATION_OP o JOIN STRING_IDS n ON n.id = opName JOIN STRING_IDS t ON t.id = opType "
            "JOIN STRING_IDS g ON g.id = groupName JOIN STRING_IDS a ON a.id = algType "
            "JOIN ENUM_HCCL_DATA_TYPE d ON d.id = dataType ORDER BY startNs")
        self.assertEqual(found, [
            (start, end, name, op.type, op.group, "RING-RING", 4096, 0, 1, "FP32", device, 8)
            for op, name, device, start, end in sorted(dump.operation_rows(), key=lambda row: row[3])])
        launched = exported.query("SELECT c.name, l.level, l.name FROM profd_collectives c JOIN profd_launches l "
                                  "USING (connection) ORDER BY c.start_ns")
        self.assertEqual(launched, [(row[2], "node", "launch") for row in found])

    def test_tasks_of_collectives(self):
        dump = self.communication()
        exported = self.export(dump)
        found = exported.query(
            "SELECT t.startNs, t.endNs, n.value, y.value, t.streamId, planeId, g.value, notifyId, r.name, srcRank, dstRank, "
            "p.name, size, d.name, l.name, o.value, isMaster, round(bandwidth / 1e9, 6) "
            "FROM COMMUNICATION_TASK_INFO c JOIN TASK t USING (globalTaskId) JOIN STRING_IDS n ON n.id = c.name "
            "JOIN STRING_IDS y ON y.id = c.taskType "
            "JOIN STRING_IDS g ON g.id = c.groupName JOIN ENUM_HCCL_RDMA_TYPE r ON r.id = rdmaType "
            "JOIN ENUM_HCCL_TRANSPORT_TYPE p ON p.id = transportType JOIN ENUM_HCCL_DATA_TYPE d ON d.id = c.dataType "
            "JOIN ENUM_HCCL_LINK_TYPE l ON l.id = linkType JOIN COMMUNICATION_OP k ON k.opId = c.opId "
            "JOIN STRING_IDS o ON o.id = k.opName")
        expected = []
        for op, name, _, _, _ in dump.operation_rows():
            for task in op.tasks:
                start, end = (dump.wall_ns(count) for count in task.runs[0])
                expected.append((start, end, name, task.name, task.stream, task.plane, op.group, 7 + task.task, "RESERVED", 0, 1,
                                 "SDMA", task.bytes, "FP32", "HCCS", name, int(task.master), round(task.bytes / (end - start), 6)))
        self.assertEqual(sorted(found), sorted(expected))

    def test_tasks_of_the_longest_collectives(self):
        dump = self.communication()
        exported = self.export(dump, ("--top", "1"))
        described, = exported.query("SELECT count(*) FROM COMMUNICATION_TASK_INFO")
        self.assertGreater(described[0], 0)
        self.assertEqual(exported.query("SELECT count(*) FROM COMMUNICATION_TASK_INFO JOIN TASK USING (globalTaskId)"),
                         [described])

    def test_copies(self):
        dump = self.make(slots=32)
        copies = [slot for slot in dump.slots if slot.kind == "memcpy"]
        directions = (1, 2, 9)
        for i, slot in enumerate(copies[:-1]):  # the last one is not described
            dump.record("aging", "compact.memcpy_info", 64, "runtime", 801, slot, 20,
                        struct.pack("<QQH", 1000 + i, 1 << 40, directions[i % 3]))
        exported = self.export(dump)
        found = exported.query("SELECT startNs, size, e.name FROM MEMCPY_INFO JOIN TASK USING (globalTaskId) "
                               "JOIN ENUM_MEMCPY_OPERATION e ON e.id = memcpyOperation ORDER BY 1")
        names = ("host to device", "device to host", "other")
        expected = [(dump.wall_ns(slot.runs[0][0]), 1000 + i, names[i % 3]) for i, slot in enumerate(copies)]
        expected[-1] = (expected[-1][0], 0, "other")
        self.assertEqual(found, expected)

    def test_overlap_of_computing_and_communication(self):
        dump = self.communication(4)
        exported = self.export(dump)
        found = exported.query("SELECT startNs, endNs FROM OVERLAP_ANALYSIS JOIN ENUM_OVERLAP_ANALYSIS_TYPE e "
                               "ON e.id = type WHERE e.name = 'COMMUNICATION'")
        self.assertEqual(found, sorted((start, end) for _, _, _, start, end in dump.operation_rows()))
        # The four kinds together: nothing is both, or neither.
        total, = exported.query("SELECT sum(CASE e.name WHEN 'COMMUNICATION' THEN 0 ELSE endNs - startNs END), "
                                "max(endNs) - min(startNs) FROM OVERLAP_ANALYSIS JOIN ENUM_OVERLAP_ANALYSIS_TYPE e "
                                "ON e.id = type")
        self.assertEqual(total[0], total[1])

    def test_show_has_the_operators(self):
        dump = self.communication(4)
        dump.write()
        done = profctl("show", dump.path, "--json")
        shown = json.loads(done.stdout)
        kernels, collectives = {}, {}
        for slot, start, end in executions(dump):
            if is_operator(slot):
                kernels.setdefault(slot.name or slot.kernel, []).append(end - start)
        for op, _, _, start, end in dump.operation_rows():
            collectives.setdefault(op.type, []).append(end - start)
        for found, expected in ((shown["kernels"], kernels), (shown["communication"], collectives)):
            self.assertEqual({row["name"]: (row["count"], row["total_ns"], row["max_ns"]) for row in found},
                             {name: (len(ns), sum(ns), max(ns)) for name, ns in expected.items()})


if __name__ == "__main__":
    run_tests.main()
