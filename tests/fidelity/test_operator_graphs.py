"""What describes operators beside their launches (attributes, memory, what serves collectives) against the
plan it was written from."""

import struct

import make_communication
import run_tests
import test_operator_database
from test_operator_resources import ResourceOperators
from test_operators import OpenCase, executions


class GraphOperators(ResourceOperators, make_communication.CommunicationOperators):
    def damaged_fused(self, slot, at):
        """That says it is made of more operators than a record holds."""
        self.record("unaging", "additional.fusion_op_info", 256, "node", 2, slot, at, struct.pack("<QI", 1, 9))

    def attributes(self, slot, name, text, at=57):
        self.record("aging", "compact.node_attr_info", 64, "node", 9, slot, at, struct.pack(
            "<QIQ", self.hash_of(name), 0, self.hash_of(text)))


class GraphTest(OpenCase):
    kind = GraphOperators

    def database(self, dump):
        dump.fill()
        dump.write()
        return test_operator_database.Exported(dump)

    def test_more_originals_than_a_record_holds(self):
        dump = self.make(slots=4)
        dump.model_call(2, 9, 100, 200)
        dump.graph_name("resnet", 4, 9)
        dump.fused("conv_bn", ["conv"], [0] * 5, 150)
        dump.damaged_fused(dump.slots[0], -140)
        rows = self.export(dump, expect=5).rows("fusion_op")
        self.assertEqual([row[3] for row in rows[1:]], ["conv_bn"])

    def test_attributes(self):
        dump = self.make(slots=6, kinds=("matmul", "add", "bare"))
        dump.attributes(dump.slots[0], dump.slots[0].name, "transpose_x1:false")
        dump.attributes(dump.slots[3], dump.slots[3].name, "transpose_x1:true")
        dump.attributes(dump.slots[1], "another operator", "of another name")
        found = self.database(dump).query(
            "SELECT n.value, a.value FROM COMPUTE_TASK_INFO JOIN STRING_IDS n ON n.id = name "
            "JOIN STRING_IDS a ON a.id = attrInfo")
        expected = {slot.name or slot.kernel: "N/A" for slot in dump.slots}
        expected[dump.slots[0].name] = "transpose_x1:false"
        expected[dump.slots[3].name] = "transpose_x1:true"
        expected[dump.slots[1].name] = "of another name"
        self.assertEqual(dict(found), expected)

    def test_memory_in_the_database(self):
        dump = self.make(slots=12)
        slot = dump.slots[3]
        taken = dump.memory(slot, 5, 0x7000_0000_1000, 4096, "MatMul_1", 8192, 65536)
        dump.memory(slot, 7, 0x3000, 512, "on the host", 1, 1, device_type=0)
        freed = dump.memory(slot, 9, 0x7000_0000_1000, -4096, None, 4096, 65536)
        found = self.database(dump).query(
            "SELECT n.value, addr, t.value, size, timestampNs, globalTid & 4294967295, totalAllocate, totalReserve, "
            "c.value, deviceId FROM NPU_OP_MEM JOIN STRING_IDS n ON n.id = operatorName "
            "JOIN STRING_IDS t ON t.id = type JOIN STRING_IDS c ON c.id = component")
        at = 0x7000_0000_1000
        self.assertEqual(found, [
            ("MatMul_1", at, "allocate", 4096, taken, slot.thread, 8192, 65536, "GE", 0),
            ("N/A", at, "release", 4096, freed, slot.thread, 4096, 65536, "GE", 0)])

    def test_kernels_of_the_ai_cpu_for_collectives(self):
        """Those that schedule have a table of their own, by their names; no view shows the others as operators."""
        dump = self.make(slots=24)
        cpu, other = [slot for slot in dump.slots if slot.kind == "aicpu"][:2]
        dump.api("hccl", make_communication.MASTER, cpu, 18, 45, dump.hash_of("RunAicpuKernel"))
        dump.api("hccl", make_communication.MASTER, other, 18, 45, dump.hash_of("RunKfc"))
        exported = self.database(dump)
        found = exported.query(
            "SELECT n.value, k.value, o.value, startNs FROM COMMUNICATION_SCHEDULE_TASK_INFO s "
            "JOIN STRING_IDS n ON n.id = name JOIN STRING_IDS k ON k.id = s.taskType "
            "JOIN STRING_IDS o ON o.id = opType JOIN TASK USING (globalTaskId)")
        start = next(start for slot, start, _ in executions(dump) if slot is cpu)
        self.assertEqual(found, [("RunAicpuKernel", "HCCL_AI_CPU", cpu.type, start)])
        described = exported.query("SELECT value FROM COMPUTE_TASK_INFO JOIN STRING_IDS ON id = name")
        self.assertNotIn(("RunAicpuKernel",), described)
        self.assertIn(("RunKfc",), described)
        self.assertEqual(exported.query("SELECT count(*) FROM profd_operators WHERE name = 'RunKfc'"), [(0,)])

    def test_streams_that_serve_fused_communication(self):
        """Their tasks are not computing."""
        dump = self.make(slots=8, kinds=("matmul", "aicpu"), streams=(2, 3))
        dump.record("aging", "additional.mc2_comm_info", 256, "node", 10, dump.slots[0], 30, struct.pack(
            "<QIIIIII", dump.hash_of("group"), 8, 1, 1, 3, 1, 2))
        exported = self.database(dump)
        found = exported.query("SELECT startNs, endNs FROM OVERLAP_ANALYSIS WHERE type = 0 ORDER BY startNs")
        self.assertEqual(found, sorted((s, e) for slot, s, e in executions(dump) if slot.stream == 2))
        self.assertEqual(exported.query("SELECT DISTINCT streamId FROM COMMUNICATION_SCHEDULE_TASK_INFO JOIN TASK "
                                        "USING (globalTaskId)"), [(3,)])


if __name__ == "__main__":
    run_tests.main()
