"""The database's tables of a framework's operators against the plan that FRAMEWORK was written from."""

import os

import make_operators as made
import run_tests
from channels import BEGIN_US, PID
from comparison import FolderCase
from make_framework import written
from test_operator_database import Exported
from test_operators import executions


def wall(us):
    return BEGIN_US * 1000 + round(us * 1000)


def listed(text):
    return None if text is None else text.replace(";", ";\r\n")


def allocations(framework):
    """By the time they were taken: name, bytes, ends (released, inactive), totals then and at the end, device."""
    found = []
    for slot, taker, _, size, taken, released in framework.memory:
        ends = (None, None) if released is None else (wall(released + 0.5), wall(released))
        less = (None,) * 3 if released is None else (9_000 + size, 1 << 21, 10_500 + size)
        found.append((wall(taken), (taker.name, size, ends, (10_000 + size, 1 << 21, 11_000 + size), less, slot.device)))
    return sorted(found)


class FrameworkDatabaseTest(FolderCase):
    def made(self, name="rank0", **options):
        return written(os.path.join(self.dir, f"{name}_ascend_pt"), **options)

    def check_rows(self, framework, exported, where=""):
        """PYTORCH_API with its texts, and STEP_TIME."""
        expected = []
        for op in framework.operators:
            expected.append((*op.wall_ns(), PID << 32 | op.thread, op.name, op.sequence, op.forward_thread,
                             listed(op.types), listed(op.shapes), 50001))
        for _, slot, put, taken in framework.queue:
            for name, (start, end, thread) in (("Enqueue", put), (f"Dequeue@{slot.name or slot.kind}", taken)):
                expected.append((wall(start), wall(end), PID << 32 | thread, name, None, None, None, None, 50002))
        for thread, name, start, end, _, _ in framework.python_calls():
            expected.append((start, end, PID << 32 | thread, name, None, None, None, None, 50003))
        found = exported.query(
            "SELECT startNs, endNs, globalTid, n.value, sequenceNumber, fwdThreadId, d.value, s.value, type FROM PYTORCH_API "
            "JOIN STRING_IDS n ON n.id = name LEFT JOIN STRING_IDS d ON d.id = inputDtypes "
            f"LEFT JOIN STRING_IDS s ON s.id = inputShapes {where}")
        self.assertEqual(sorted(found, key=repr), sorted(expected, key=repr))
        self.assertEqual(exported.query(f"SELECT id, startNs, endNs FROM STEP_TIME {where}"),
                         [(number, *op.wall_ns()) for number, op in framework.steps])

    def check_memory(self, framework, exported):
        reports = framework.reports()
        self.assertEqual(exported.query("SELECT value, timestamp, totalAllocated, totalReserved, totalActive, streamPtr, deviceId "
                                        "FROM MEMORY_RECORD JOIN STRING_IDS s ON s.id = component ORDER BY MEMORY_RECORD.rowid"),
                         [("PTA", wall(at), *totals, 4711, device) for at, _, _, _, totals, _, device in reports])
        expected = []
        for taken, (name, size, ends, totals, less, device) in allocations(framework):
            released, inactive = ends
            lasted = [None if end is None else end - taken for end in (released, inactive)]
            expected.append((name, size, taken, released, inactive, *lasted, *totals, *less, 4711, device))
        self.assertEqual(exported.query(
            "SELECT value, size, allocationTime, releaseTime, activeReleaseTime, duration, activeDuration, "
            "allocationTotalAllocated, allocationTotalReserved, allocationTotalActive, releaseTotalAllocated, "
            "releaseTotalReserved, releaseTotalActive, streamPtr, deviceId FROM OP_MEMORY JOIN STRING_IDS s ON s.id = name "
            "ORDER BY OP_MEMORY.rowid"), expected)
        self.assertEqual(exported.query("SELECT * FROM GC_RECORD"), [(wall(a), wall(b)) for a, b in framework.collections])

    def check_stacks(self, framework, exported):
        chains = {}
        for chain, frame, depth in exported.query(
                "SELECT c.id, s.value, c.stackDepth FROM PYTORCH_CALLCHAINS c JOIN STRING_IDS s ON s.id = c.stack"):
            chains.setdefault(chain, {})[depth] = frame
        found = {start: chains[chain] for start, chain in exported.query(
            "SELECT startNs, callchainId FROM PYTORCH_API WHERE callchainId IS NOT NULL")}
        self.assertEqual(found, {op.wall_ns()[0]: dict(enumerate(op.stack.split(";"))) for op in framework.operators
                                 if op.stack})

    def check_connections(self, framework, exported):
        """Ends of the same connection: the queue's two halves, forward and backward, an operator and its kernels."""
        kernels = exported.query("SELECT a.startNs, a.globalTid & 4294967295, t.startNs, t.deviceId FROM PYTORCH_API a "
                                 "JOIN CONNECTION_IDS c ON c.id = a.connectionId "
                                 "JOIN TASK t ON t.connectionId = c.connectionId")
        # The task around the contexts of a mix is a row of its own.
        want = {(framework.launcher[slot][0].wall_ns()[0], framework.launcher[slot][0].thread, start, slot.device)
                for slot, start, _ in executions(framework.dump) if slot.type}
        self.assertLessEqual(want, set(kernels))
        self.assertEqual({k[:2] for k in kernels}, {w[:2] for w in want})
        pairs = exported.query(
            "SELECT a.type, a.startNs, b.startNs FROM PYTORCH_API a JOIN CONNECTION_IDS c ON c.id = a.connectionId "
            "JOIN CONNECTION_IDS e ON e.connectionId = c.connectionId JOIN PYTORCH_API b ON b.connectionId = e.id AND b.rowid <> a.rowid "
            "WHERE a.startNs < b.startNs")
        queue = [(50002, wall(put[0]), wall(taken[0])) for _, _, put, taken in framework.queue]
        backward = []
        for op in framework.operators:
            if op.forward_thread:
                forward = max((o for o in framework.operators if o.sequence == op.sequence and not o.forward_thread),
                              key=lambda o: o.begin)
                backward.append((50001, forward.wall_ns()[0], op.wall_ns()[0]))
        self.assertEqual(sorted(pairs), sorted(queue + backward))

    def test_one_dump(self):
        framework = self.made()
        exported = Exported(framework.dump)
        self.assertEqual(exported.query("PRAGMA integrity_check"), [("ok",)])
        self.check_rows(framework, exported)
        self.check_stacks(framework, exported)
        self.check_connections(framework, exported)
        self.check_memory(framework, exported)

    def test_views(self):
        framework = self.made(slots=16)
        exported = Exported(framework.dump)
        found = exported.query("SELECT start_ns, device, stream, framework_name, framework_start_ns FROM "
                               "profd_framework_kernels")
        self.assertEqual(sorted(found), sorted(
            (start, slot.device, slot.stream, framework.launcher[slot][0].name, framework.launcher[slot][0].wall_ns()[0])
            for slot, start, _ in executions(framework.dump) if slot.type))
        self.assertEqual(exported.query("SELECT count(*), count(DISTINCT kind), min(pid) FROM profd_framework"),
                         [(len(framework.operators) + 2 * len(framework.queue) + len(framework.calls), 3, PID)])
        self.assertEqual(exported.query("SELECT frame FROM profd_framework_stacks s JOIN profd_framework f USING (callchain) "
                                        "WHERE f.name = 'aten::matmul' ORDER BY f.start_ns, depth LIMIT 3"),
                         [("train.py(0): forward",), ("model.py(12): __call__",), ("<string>(1): <module>",)])
        self.assertEqual(exported.query("SELECT step FROM profd_framework_steps ORDER BY 1"),
                         [(number,) for number, _ in framework.steps])

    def test_views_without_a_framework(self):
        dump = made.Operators(self.dir, slots=4).fill()
        dump.write()
        exported = Exported(dump)
        for view in ("profd_framework", "profd_framework_kernels", "profd_framework_stacks", "profd_framework_steps"):
            self.assertEqual(exported.query(f"SELECT * FROM {view}"), [])

    def test_schema(self):
        exported = Exported(self.made(slots=4).dump)
        schema = dict(exported.query("SELECT name, sql FROM sqlite_schema"))
        columns = {name: [c.split()[0] for c in sql.partition("(")[2].rstrip(")").split(", ")]
                   for name, sql in schema.items() if sql and sql.startswith("CREATE TABLE")}
        self.assertEqual(columns["PYTORCH_API"], [
            "startNs", "endNs", "globalTid", "connectionId", "name", "sequenceNumber", "fwdThreadId", "inputDtypes",
            "inputShapes", "callchainId", "type"])
        self.assertEqual(columns["PYTORCH_CALLCHAINS"], ["id", "stack", "stackDepth"])
        self.assertEqual(columns["CONNECTION_IDS"], ["id", "connectionId"])
        self.assertEqual(columns["STEP_TIME"], ["id", "startNs", "endNs"])
        self.assertEqual(columns["GC_RECORD"], ["startNs", "endNs"])
        self.assertEqual(exported.query("SELECT name FROM ENUM_API_TYPE WHERE id > 50000 ORDER BY id"), [("op",), ("queue",), ("trace",)])

    def test_several_dumps(self):
        """Their connections are apart."""
        first, second = self.made(slots=16), self.made("rank1", slots=8)
        exported = Exported(first.dump, paths=[first.dump.path, second.dump.path])
        for number, framework in enumerate((first, second)):
            self.check_rows(framework, exported, f"WHERE dumpId = {number}")
        apart = exported.query("SELECT count(*) FROM PYTORCH_API a JOIN CONNECTION_IDS c ON c.id = a.connectionId "
                               "JOIN TASK t ON t.connectionId = c.connectionId WHERE t.dumpId <> a.dumpId")
        self.assertEqual(apart, [(0,)])
        together = exported.query("SELECT count(*) FROM PYTORCH_API a JOIN CONNECTION_IDS c ON c.id = a.connectionId "
                                  "JOIN TASK t ON t.connectionId = c.connectionId JOIN COMPUTE_TASK_INFO USING (globalTaskId)")
        self.assertEqual(together, [(sum(1 for f in (first, second) for slot, _, _ in executions(f.dump) if slot.type),)])


if __name__ == "__main__":
    run_tests.main()
