"""Communication of operator-level records against the plan they were written from (operator-data b.5, c)."""

from unittest import mock

import make_communication as made
import run_tests
from test_operators import OpenCase, OperatorCase, expected_summary, short, us


def expected_operations(dump, columns):
    rows = []
    for op, name, device, start, end in dump.operation_rows():
        row = [str(device), "4294967295", "N/A", "N/A", name, op.type if op.described else "N/A", "N/A",
               "COMMUNICATION", us(start) + "\t", us(end - start), None, "0"]
        rows.append((str(device), us(start), start, end, row + ["N/A"] * (columns - len(row))))
    return rows


class CommunicationTest(OpenCase):
    kind = made.CommunicationOperators

    def check(self, dump):
        exported = self.export(dump)
        rows = exported.rows("op_summary")
        mine = [row for row in rows[1:] if row[7] == "COMMUNICATION"]
        expected = [row[4] for row in sorted(expected_operations(dump, len(rows[0])), key=lambda r: r[:2])]
        for row in mine + expected:
            row[10] = None  # of the rows of all operators, elsewhere
        self.assertEqual(mine, expected)
        self.assertEqual(len(rows) - 1 - len(mine), len(expected_summary(dump)))
        return exported

    def test_operations_are_rows_of_their_own(self):
        dump = self.make()
        for i in range(6):
            dump.operation("hcom_allReduce_", "group_a", 20_000 + 1000 * i)
        self.check(dump)

    def test_waiting_is_from_row_to_row(self):
        dump = self.make(slots=4, kinds=("matmul",))
        dump.operation("hcom_allReduce_", "group_a", 1_250)
        rows = self.export(dump).rows("op_summary")[1:]
        before = None
        for row in rows:
            start, duration = float(row[8]), float(row[9])
            wait = 0.0 if before is None else max(0.0, start - before[0] - before[1])
            self.assertAlmostEqual(float(row[10]), wait, delta=0.26)
            before = start, duration
        self.assertIn("COMMUNICATION", [row[7] for row in rows[1:-1]])

    def test_groups_are_counted_apart(self):
        dump = self.make()
        for i in range(8):
            dump.operation("hcom_allGather_", f"group_{i % 3}", 20_000 + 1000 * i)
        self.check(dump)

    def test_kernels_of_an_ai_cpu_are_counted_apart(self):
        dump = self.make()
        for i, name in enumerate(("hcom_allReduce_", "hcom_allReduceAicpuKernel", "hcom_allReduce_")):
            dump.operation(name, "group_a", 20_000 + 1000 * i)
        self.check(dump)

    def test_a_graph_runs_its_operations_again(self):
        dump = self.make()
        for i in range(3):
            dump.operation("hcom_reduceScatter_", "group_a", 20_000 + 1000 * i, executions=3)
        self.check(dump)

    def test_an_operation_without_description(self):
        dump = self.make()
        dump.operation("hcom_broadcast_", "group_a", 20_000, described=False)
        dump.operation("hcom_broadcast_", "group_a", 22_000, described=False, infos=False)
        self.check(dump)

    def test_only_slaves_make_no_operation(self):
        dump = self.make()
        op = dump.operation("hcom_allReduce_", "group_a", 20_000)
        dump.files["host", "aging.api_event.data"] = [
            record.replace(made.MASTER.to_bytes(4, "little"), made.SLAVE.to_bytes(4, "little"), 1)
            for record in dump.files["host", "aging.api_event.data"]]
        self.assertTrue(op.tasks)
        rows = self.export(dump).rows("op_summary")[1:]
        self.assertNotIn("COMMUNICATION", [row[7] for row in rows])

    def test_master_tasks_are_known_by_the_name_of_their_type(self):
        """The number of a type is that of a release: what it means is in the dictionary."""
        with mock.patch.multiple(made, MASTER=made.SLAVE, SLAVE=0x10007):
            dump = self.make()
            for i in range(3):
                dump.operation("hcom_allReduce_", "group_a", 20_000 + 2000 * i)
            self.check(dump)

    def test_calls_are_counted_by_what_they_are_called(self):
        """Of communication by its tasks, of AscendCL by their types where they have no item, as the records of real runs."""
        dump = self.make(slots=4)
        dump.operation("hcom_allReduce_", "group_a", 20_000)
        dump.fill()
        for number in (2, 3, 3):
            dump.api("acl", 0x50000 + number, dump.slots[0], 80, 90)
        dump.files["host", "unaging.additional.type_info_dic"] += [b"20000_327682:aclnnMm\n", b"20000_327683:aclnnAddmm\n"]
        rows = [row[1:5] for row in OperatorCase.export(self, dump).rows("api_statistic")[1:]]
        counts = {row[1]: (row[0], row[3]) for row in rows}
        self.assertEqual(counts["aclnnMm"] + counts["aclnnAddmm"], ("acl", "1", "acl", "2"))
        self.assertEqual([row[1] for row in rows if row[0] == "communication"], ["Memcpy", "Notify_Record", "Notify_Wait"])

    def test_devices(self):
        dump = self.make(devices=(0, 1))
        for i in range(4):
            dump.operation("hcom_allReduce_", "group_a", 20_000 + 1000 * i, device=i % 2, thread=77 + 100 * (i % 2))
        self.check(dump)

    def test_communication_statistic(self):
        dump = self.make()
        for i in range(9):
            dump.operation(("hcom_allReduce_", "hcom_broadcast_")[i % 2], "group_a", 20_000 + 1000 * i)
        exported = self.check(dump)
        types = {}
        for op, _, _, start, end in dump.operation_rows():
            types.setdefault(op.type, []).append(end - start)
        total = sum(sum(times) for times in types.values())
        expected = [["Device_id", "OP Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)",
                     "Max Time(us)", "Ratio(%)"]]
        for kind, times in sorted(types.items(), key=lambda item: -sum(item[1])):
            expected.append(["0", kind, str(len(times)), short(sum(times) / 1000), short(min(times) / 1000),
                             short(sum(times) / len(times) / 1000), short(max(times) / 1000),
                             short(100 * sum(times) / total)])
        self.assertEqual(exported.rows("communication_statistic"), expected)

    def test_level_0_has_no_statistic(self):
        dump = self.make(level="l0")
        dump.operation("hcom_allReduce_", "group_a", 20_000)
        self.assertFalse(self.export(dump).has("communication_statistic"))

    def test_copies_and_notifies_have_their_times(self):
        dump = self.make(slots=0)
        dump.operation("hcom_allReduce_", "group_a", 20_000)
        rows = self.export(dump).rows("task_time")[1:]
        self.assertEqual(len(rows), 6)


if __name__ == "__main__":
    run_tests.main()
