"""The files of earlier releases of the vendor's analyser (--names legacy, ge_op_execute), beside those of today."""

import glob
import os
from unittest import mock

import make_communication
import make_hwts
import make_operators as made
import run_tests
from channels import BEGIN_US
from comparison import FolderCase, seconds
from make_prof import PID
from profd_harness import profctl
from test_operator_resources import ResourceOperators as Resources
from test_operators import Exported, expected_summary, short, us
from text_files import read_json

LEGACY = ("--names", "legacy")


def at(slot, offset):
    return us((slot.us + offset) * 1000 + BEGIN_US * 1000) + "\t"


class Rules:
    """The vendor's rules over the rows of op_summary: conditions make sets of names, a rule is what is in all of them."""

    def __init__(self, header, rows, cores):
        self.cores = cores  # for matrices, as info.json has them
        self.rows = [dict(zip(header, row)) for row in rows]

    def number(self, row, *columns):
        """The largest of the columns whose core ran. On chips with one core they have no prefix."""
        found = []
        for column in columns:
            for name, cycles in ((column, column[:4] + "total_cycles"), (column[4:], "total_cycles")):
                if name in row and row[cycles] not in ("N/A", "0"):
                    found.append(float(row[name]))
        return max(found, default=None)

    def where(self, condition):
        return {row["Op Name"] for row in self.rows if condition(row)}

    def above(self, limit, *columns):
        return self.where(lambda row: (self.number(row, *columns) or 0) > limit)

    def below(self, limit, *columns):
        return self.where(lambda row: (self.number(row, *columns) if self.number(row, *columns) is not None else 9) < limit)

    def total(self, column, names=None):
        return sum(float(row[column]) for row in self.rows if names is None or row["Op Name"] in names)

    def operators(self):
        """(type, subtype) -> sets of names, in the order of the vendor's rules."""
        mac, vec, scalar = ("aic_mac_ratio",), ("aiv_vec_ratio",), ("aic_scalar_ratio", "aiv_scalar_ratio")
        cpu = self.where(lambda row: row["Task Type"] == "AI_CPU")
        long = self.where(lambda row: float(row["Task Duration(us)"]) > 20)
        waits = self.where(lambda row: float(row["Task Wait Time(us)"]) > 10)
        trans = [row["Op Name"] for row in self.rows if row["OP Type"] == "TransData"]
        whole = self.total("Task Duration(us)") + self.total("Task Wait Time(us)")
        bound = {row["Op Name"] for row in self.rows
                 if self.number(row, *mac) is not None and self.number(row, *vec) is not None and self.number(row, *vec) > max(
                     self.number(row, *mac), self.number(row, "aic_mte2_ratio", "aiv_mte2_ratio") or 0)}
        memory = self.where(lambda row: float(row.get("memory_bound", "N/A").replace("N/A", "0")) > 1)
        return [
            ("Operator Processing", "", self.where(
                lambda row: row["Block Num"] != "N/A" and int(row["Block Num"]) < self.cores) & self.above(0, *mac)),
            ("Memory", "", bound),
            ("Computation", "Cube", self.above(0.8, *vec) & self.above(0, *mac) & long),
            ("Computation", "Scalar", self.above(0.8, *scalar)),
            ("Memory", "", memory if self.total("Task Duration(us)", memory) > 0.5 * self.total("Task Duration(us)") else set()),
            ("Computation", "Vector", self.above(0.04, "aiv_vec_bankgroup_cflt_ratio")),
            ("Computation", "Vector", self.above(0.04, "aiv_vec_bank_cflt_ratio")),
            ("Computation", "Vector", self.below(0.8, *vec)),
            ("Computation", "Cube", self.below(0.8, *mac)),
            ("Operator Processing", "", set(trans) if len(trans) > 2 else set()),
            ("Operator Processing", "", cpu),
            ("Operator Processing", "", long & cpu & self.where(lambda row: "INT64" in row["Input Data Types"])),
            ("Operator Processing", "", long & cpu & self.where(lambda row: "StridedSliceGrad" in row["Op Name"])),
            ("Operator Schedule", "", waits if self.total("Task Wait Time(us)", waits) > 0.03 * whole else set()),
        ]

    def sections(self):
        sections = {}
        for kind, subtype, names in self.operators():
            if names:
                sections.setdefault(kind, []).append((subtype, sorted(names)))
        return sections


class LegacyTest(FolderCase):
    def plan(self, **options):
        """Its slots can be changed before `fill`."""
        return made.Operators(self.fresh(), **options)

    def make(self, **options):
        return self.plan(**options).fill()

    def export(self, dump):
        dump.write()
        return Exported(dump.path, dump.path + "-out", 0, LEGACY)

    def rules_of(self, exported):
        rules = read_json(exported.out, "prof_rule_0.json")
        self.assertEqual(rules["status"], 0)
        self.assertEqual([section["Rule Type"] for section in rules["data"]],
                         ["Computation", "Memory", "Operator Schedule", "Operator Processing", "Operator Metrics",
                          "Operator Parallelism", "Model Bottleneck Analysis"])
        return {section["Rule Type"]: section["result"] for section in rules["data"]}

    def check_rules(self, dump, cores=made.AIC_CORES):
        exported = self.export(dump)
        self.header, *self.rows = exported.rows("op_summary")
        expected = Rules(self.header, self.rows, cores).sections()
        found = self.rules_of(exported)
        operators = {kind: [(each["Rule Subtype"], each["Tuning Data"]) for each in results]
                     for kind, results in found.items() if results and not kind.startswith(("Operator Par", "Model"))}
        self.assertEqual(operators, expected)
        return found, expected

    def test_events_of_unequal_numbers_leave_out_the_tables(self):
        """With one more for vector cores than for cube cores the analyser stops, though it has all that it needs."""
        same = made.EVENTS["ResourceConflictRatio"]
        for events, there in ((same, True), ((same[0], same[1] + ",0x8"), False)):
            with mock.patch.dict(made.EVENTS, {"ResourceConflictRatio": events}):
                dump = made.Operators(self.fresh(), slots=8, metrics="ResourceConflictRatio").fill()
                dump.write()
            exported = Exported(dump.path, dump.path + "-out", more=("--compat", "msprof"))
            for name in ("op_summary", "op_statistic", "task_time"):
                self.assertEqual(exported.has(name), there, name)

    def test_calls(self):
        dump = self.make(slots=40)
        exported = self.export(dump)
        launches = [slot for slot in dump.slots if slot.type]
        self.assertEqual(exported.rows("acl"), [["Name", "Type", "Start Time", "Duration(us)", "Process ID", "Thread ID"]] + [
            [f"aclnn{slot.type}", "ACL_NN", at(slot, 2), "68.000", str(PID), str(slot.thread)] for slot in launches])
        header, *rows = exported.rows("acl_statistic")
        self.assertEqual(header, ["Name", "Type", "Time(%)", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Process ID",
                                  "Thread ID"])
        counts = {}
        for slot in launches:
            key = (f"aclnn{slot.type}", str(slot.thread))
            counts[key] = counts.get(key, 0) + 1
        self.assertEqual(sorted(rows), sorted(
            [name, "ACL_NN", short(count / len(launches) * 100), short(68 * count), str(count), "68", "68", "68", str(PID), thread]
            for (name, thread), count in counts.items()))
        self.assertEqual([float(row[3]) for row in rows], sorted((68.0 * n for n in counts.values()), reverse=True))
        self.assertEqual(exported.rows("runtime_api"), [
            ["Name", "Stream ID", "Time(%)", "Time(ns)", "Calls", "Avg(ns)", "Min(ns)", "Max(ns)", "Process ID", "Thread ID"],
            ["KernelLaunch", "N/A", "100", str(21_000 * 40), "40", "21000", "21000", "21000", str(PID), "77"]])
        self.assertEqual(exported.rows("op_summary")[1:], expected_summary(dump))
        self.assertFalse(exported.has("ge_op_execute"))

    def test_threads_are_apart(self):
        dump = self.make(slots=12, threads=(77, 78))
        rows = self.export(dump).rows("runtime_api")[1:]
        self.assertEqual([(row[2], row[4], row[9]) for row in rows], [("50", "6", "77"), ("50", "6", "78")])

    def test_phases_of_operators(self):
        dump = self.make(slots=16, phases=("InferShape", "Tiling"))
        expected = [["Thread ID", "OP Name", "OP Type", "Event Type", "Start Time", "Duration(us)"]] + [
            [str(slot.thread), slot.name, slot.type, phase, at(slot, 3 + i), "1.000"]
            for slot in dump.slots if slot.type for i, phase in enumerate(dump.phases)]
        dump.write()
        for more in ((), LEGACY, (*LEGACY, "--compat", "msprof")):
            self.assertEqual(Exported(dump.path, f"{dump.path}-{len(more)}", 0, more).rows("ge_op_execute"), expected)
        self.assertFalse(Exported(dump.path, dump.path + "-compat", 0, ("--compat", "msprof")).has("ge_op_execute"))

    def test_only_some_time(self):
        dump = self.make(slots=16, phases=("Tiling",))
        begin = BEGIN_US * 1000 + dump.slots[8].us * 1000
        dump.write()
        cut = Exported(dump.path, dump.path + "-out", 0, (*LEGACY, "--from", seconds(begin)))
        rows = cut.rows("ge_op_execute")
        self.assertEqual([row[1] for row in rows[1:]], [slot.name for slot in dump.slots[8:] if slot.type])

    def test_without_operators(self):
        exported = self.export(self.make(slots=4, kinds=("memcpy",)))
        self.assertEqual(glob.glob(os.path.join(exported.out, "prof_rule_*")), [])
        self.assertFalse(exported.has("acl"))

    def test_rules_of_units(self):
        found, expected = self.check_rules(self.make(metrics="PipeUtilizationExct", executions=2))
        self.assertIn("Computation", expected)
        times = found["Model Bottleneck Analysis"][0]["Tuning Data"]
        self.assertEqual(list(times), ["Cube Utilization", "Vector Utilization", "Scalar Utilization", "MTE Utilization"])
        self.assertGreater(sum(times.values()), 0)

    def test_rules_of_conflicts(self):
        _, expected = self.check_rules(self.make(metrics="ResourceConflictRatio"))
        self.assertEqual([subtype for subtype, _ in expected["Computation"]], ["Vector", "Vector"])

    def test_rules_on_one_core(self):
        """Of the 910A, where cube and vector unit are one core."""
        for kinds in (("matmul",), ("matmul", "aicpu", "aicpu", "aicpu")):
            with self.subTest(kinds):
                dump = make_hwts.HwtsOperators(self.fresh(), metrics="PipeUtilization", kinds=kinds).fill()
                _, expected = self.check_rules(dump, make_hwts.CORES)
                bound = [float(row[self.header.index("memory_bound")].replace("N/A", "0")) for row in self.rows]
                self.assertTrue(any(each > 1 for each in bound))
                self.assertEqual("Memory" in expected, len(kinds) == 1)

    def test_rules_without_counters(self):
        found, expected = self.check_rules(self.make(kinds=("matmul", "aicpu")))
        self.assertEqual(set(expected), {"Operator Processing", "Operator Schedule"})
        self.assertEqual(found["Model Bottleneck Analysis"], [])
        parallel = found["Operator Parallelism"][0]["Tuning Data"]
        self.assertEqual(parallel["Concurrent AI Core and AI CPU Execution Time(us)"], 0)
        runs = {"AI_CPU": 0, "AI_CORE": 0}
        for row in self.rows:
            runs[row[self.header.index("Task Type")]] += float(row[self.header.index("Task Duration(us)")])
        self.assertAlmostEqual(parallel["AI CPU Execution Time(us)"], runs["AI_CPU"], places=3)
        self.assertAlmostEqual(parallel["AI Core Execution Time(us)"], runs["AI_CORE"], places=3)

    def test_memory_of_its_own(self):
        dump = Resources(self.fresh(), slots=8, kinds=("matmul",))
        names = [slot.name for slot in dump.slots]
        dump.fused(names[3], ["a"], [1, 1, 1, 4096, 4099], 150)
        dump.fused(names[5], ["a"], [1, 1, 1, 0, 3], 250)
        dump.fused("elsewhere", ["a"], [1, 1, 1, 4096, 4099], 350)
        found = self.rules_of(self.export(dump.fill()))["Operator Metrics"]
        self.assertEqual([(each["Rule Subtype"], each["Tuning Data"]) for each in found], [("Memory", [names[3]])])

    def test_units_at_the_same_time(self):
        dump = self.plan(slots=2, kinds=("matmul", "aicpu"), threads=(77, 78))
        dump.slots[1].us = dump.slots[0].us + 10
        found = self.rules_of(self.export(dump.fill()))["Operator Parallelism"]
        times = found[0]["Tuning Data"]
        for name, expected in (("AI Core Execution Time(us)", 10), ("AI CPU Execution Time(us)", 11),
                               ("Concurrent AI Core and AI CPU Execution Time(us)", 10.18)):
            self.assertAlmostEqual(times[name], expected, places=2)

    def test_units_one_behind_the_other_for_little(self):
        """The AI CPU alone takes less than a twentieth: nothing to say."""
        found = self.rules_of(self.export(self.make(slots=30, kinds=("matmul",) * 29 + ("aicpu",))))
        self.assertEqual(found["Operator Parallelism"], [])

    def test_only_collectives(self):
        dump = make_communication.CommunicationOperators(self.fresh(), slots=4, kinds=("memcpy",))
        dump.operation("hcom_allReduce_", "group_a", 20_000)
        exported = self.export(dump.fill())
        self.assertTrue(exported.has("communication_statistic"))
        self.assertEqual(glob.glob(os.path.join(exported.out, "prof_rule_*")), [])

    def test_conversions_of_the_format(self):
        for count, found in ((2, False), (3, True)):
            with self.subTest(count):
                dump = self.plan(slots=8, kinds=("matmul",))
                for slot in dump.slots[:count]:
                    slot.type = "TransData"
                _, expected = self.check_rules(dump.fill())
                names = [each for _, each in expected.get("Operator Processing", [])]
                self.assertEqual([sorted(slot.name for slot in dump.slots[:count])] if found else [], names)

    def test_operators_on_the_ai_cpu(self):
        dump = self.plan(slots=8, kinds=("aicpu",))
        dump.slots[0].tensors = [made.Tensor((4, 4), 9, 2)]
        dump.slots[1].name = "Default/StridedSliceGrad-op7"
        _, expected = self.check_rules(dump.fill())
        self.assertEqual(len(expected["Operator Processing"]), 3)

    def test_only_with_csv(self):
        dump = self.make(slots=8)
        dump.write()
        out = os.path.join(self.dir, "only-trace")
        profctl("export", dump.path, "--format", "trace", "--out", out, *LEGACY)
        self.assertEqual(glob.glob(os.path.join(out, "prof_rule_*")), [])

    def test_no_other_names(self):
        dump = self.make(slots=4)
        dump.write()
        done = profctl("export", dump.path, "--names", "old", "--out", self.dir + "/x", expect=2)
        self.assertIn('--names "old": must be legacy', done.stderr)


if __name__ == "__main__":
    run_tests.main()
