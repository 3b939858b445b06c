"""step_trace_time.csv, communication.json and communication_matrix.json against the plan the records were written from;
and the rules that are used here against files of PyTorch's profiler, where those are there."""

import glob
import os
import unittest

import collective_rules as rules
import make_communication as made
import run_tests
from comparison import FolderCase, union
from profd_harness import SHARED_DATA, profctl
from same import assert_same
from test_operator_cuts import Dump
from test_operators import executions
from text_files import read_json, read_rows, read_text

ON_CHIP, HCCS, PCIE, ROCE, SIO, HCCS_SW = 0, 1, 2, 3, 4, 5
LINK_OF = {ON_CHIP: "LOCAL", HCCS: "HCCS", PCIE: "PCIE", SIO: "SIO", HCCS_SW: "HCCS"}
NO_RANK = 2**32 - 1
WAIT, COPY, RECORD = made.TASKS
RICH = (("Memcpy", made.SDMA, 4 << 20, 255, ON_CHIP, NO_RANK), RECORD, WAIT,
        ("Reduce_Inline", made.SDMA, 40 << 20, 255, HCCS, 3), WAIT, ("Memcpy", made.SDMA, 2 << 20, 255, PCIE, 2),
        ("Memcpy", made.SDMA, 3 << 20, 255, SIO, 1), ("Memcpy", made.SDMA, 5 << 20, 255, HCCS_SW, 1))
PAYLOAD = (("RDMASend", made.SDMA, 1 << 20, 1, ROCE, 9), WAIT)
REAL = os.path.join(SHARED_DATA, "pytorch",
                    "pt_text_level1")
KERNELS = ("KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_MIX_AIC")


def without(parts, others):
    left = []
    for begin, end in parts:
        for low, high in others:
            if high <= begin or low >= end:
                continue
            if low > begin:
                left.append((begin, low))
            begin = max(begin, high)
        if begin < end:
            left.append((begin, end))
    return left


def operations_of(dump):
    """As the rules want them."""
    counts = {}
    for op, name, _, start, end in dump.operation_rows():
        run = counts[op] = counts.get(op, -1) + 1
        tasks = []
        for task in op.tasks:
            begin, stop = map(dump.wall_ns, task.runs[run])
            remote = 0 if task.remote == NO_RANK else task.remote
            link = LINK_OF.get(task.link) if task.name in ("Memcpy", "Reduce_Inline") else None
            if task.name == "RDMASend":
                link = "RDMA"
            tasks.append(rules.Task(task.name, begin, (stop - begin) / 1000, task.plane, link, (0, remote), task.bytes))
        yield start, rules.Operation(name, dump.hash_of(op.group), start / 1000, (end - start) / 1000, tasks)


def times_of(dump):
    """Kinds of intervals, as operator-data d.5 has them."""
    computing, bounds = [], []
    for slot, start, end in executions(dump):
        if slot.kind not in ("memcpy", "event"):
            computing.append((start, end))
        if slot.runtime not in KERNELS:
            bounds.append((start, end))
    communication = [(start, end) for *_, start, end in dump.operation_rows()]
    for op in dump.operations:
        bounds += [tuple(map(dump.wall_ns, run)) for task in op.tasks for run in task.runs]
    computing, communication = union(computing), union(communication)
    busy = union(computing + communication)
    everything = busy + bounds
    window = (min(b for b, _ in everything), max(e for _, e in everything))
    return computing, communication, without(communication, computing), without([window], busy)


class CollectivesTest(FolderCase):
    def export(self, dump):
        dump.fill().write()
        out = self.fresh()
        profctl("export", dump.path, "--out", out)
        return out

    def rich(self, **options):
        dump = Dump(self.fresh(), **options)
        for i in range(5):
            dump.operation("hcom_allReduce_", f"group_{i % 2}", 1_300 + 1_600 * i, tasks=RICH[i % 3:], planes=2)
        dump.operation("hcom_send_", "group_a", 8_900, tasks=PAYLOAD, planes=1)
        dump.operation("hcom_receive_", "group_a", 9_100, planes=1)
        return dump

    def check_step(self, out, dump, steps):
        for name, rule in (("communication.json", rules.communication), ("communication_matrix.json", rules.matrix)):
            want = {}
            for number, begin, end in steps:
                mine = [op for start, op in operations_of(dump) if begin <= start < end]
                want[f"step{number}"] = rule(mine)
            assert_same(read_json(out, name), want, name)

    def check_times(self, out, dump, steps):
        kinds = times_of(dump)
        receives = [(start, end) for op, _, _, start, end in dump.operation_rows() if op.name == "hcom_receive_"]
        rows = read_rows(out, "step_trace_time.csv")
        self.assertEqual(rows[0], ["Step", "Computing", "Communication(Not Overlapped)", "Overlapped", "Communication",
                                   "Free", "Stage", "Bubble", "Communication(Not Overlapped and Exclude Receive)",
                                   "Preparing"])
        self.assertEqual(len(rows), 1 + len(steps))
        for row, (number, begin, end) in zip(rows[1:], steps):
            inside = [[i for i in kind if begin <= i[0] < end] for kind in kinds]
            computing, communication, uncovered, free = [sum((e - b) / 1000 for b, e in kind) for kind in inside]
            flat = [i for kind in inside for i in kind]
            bubble = sum((e - b) / 1000 for b, e in receives if begin <= b < end)
            whole = max(e for _, e in flat) / 1000 - min(b for b, _ in flat) / 1000
            before = 0 if number == "" else min(b for kind in inside[:3] for b, _ in kind) / 1000 - begin / 1000
            want = [computing, uncovered, communication - uncovered, communication, free, whole - bubble, bubble,
                    uncovered - bubble, before]
            self.assertEqual(row[0], str(number))
            for have, value in zip(row[1:], want):
                self.assertAlmostEqual(float(have), value, delta=0.3 if value == want[5] or value == before else 1e-6)

    def test_of_each_step(self):
        dump = self.rich(slots=44, steps=5)
        out = self.export(dump)
        steps = [(number, *map(dump.wall_ns, ends)) for number, ends in dump.steps.items()]
        self.check_step(out, dump, steps)
        self.check_times(out, dump, steps)
        self.assertTrue(read_json(out, "communication.json")["step9"]["p2p"])

    def test_without_steps(self):
        dump = self.rich(slots=44)
        out = self.export(dump)
        self.check_step(out, dump, [("", 0, 2**63)])
        self.check_times(out, dump, [("", 0, 2**63)])

    def test_devices(self):
        dump = Dump(self.fresh(), slots=4, devices=(0, 1))
        for device in (0, 1):
            dump.operation("hcom_allReduce_", "group_a", 2_000, device=device, thread=77 + 100 * device)
        out = self.export(dump)
        lines = read_text(out, "step_trace_time.csv").splitlines()
        self.assertTrue(lines[0].startswith("Device_id,Step,"))
        self.assertEqual([line[:3] for line in lines[1:]], ["0,,", "1,,"])
        self.assertEqual(len(read_json(out, "communication_0.json")["step"]["collective"]), 2)
        self.assertTrue(os.path.exists(os.path.join(out, "communication_matrix_1.json")))

    def test_nothing_without_communication(self):
        dump = Dump(self.fresh(), slots=4)
        out = self.export(dump)
        self.assertFalse(glob.glob(os.path.join(out, "communication*.json")))
        self.assertTrue(os.path.exists(os.path.join(out, "step_trace_time.csv")))

    @unittest.skipUnless(os.path.isdir(REAL), "the data with known answers is not there")
    def test_the_rules_are_those_of_real_files(self):
        for rank in (0, 1):
            folder = os.path.join(REAL, f"rank{rank}_ascend_pt", "ASCEND_PROFILER_OUTPUT")
            events = read_json(folder, "trace_view.json")
            layers = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
            shown = [e for e in events if e.get("ph") == "X" and layers.get(e["pid"]) == "HCCL"]
            want = read_json(folder, "communication.json")
            group = next(iter(want["step50"]["collective"])).split("@")[1]
            operations = []
            for op in (e for e in shown if e["tid"] == 0):
                begin = float(op["ts"])
                tasks = []
                for task in shown:
                    args = task["args"]
                    if task["tid"] == 0 or not begin - .3 <= float(task["ts"]) <= begin + op["dur"] + .3:
                        continue
                    other = args["src rank"] if args["dst rank"] == NO_RANK else args["dst rank"]
                    link = {"ON_CHIP": "LOCAL", "HCCS": "HCCS"}.get(args["link type"])
                    tasks.append(rules.Task(task["name"], float(task["ts"]), task["dur"], task["tid"], link,
                                            (args["src rank"], other), args["size(Byte)"]))
                operations.append(rules.Operation(op["name"], group, begin, op["dur"], tasks))
            made_here = {"p2p": rules.communication(operations)["p2p"],
                         "collective": rules.communication(operations)["collective"]}
            assert_same(made_here["collective"], want["step50"]["collective"], f"rank {rank}")
            links = read_json(folder, "communication_matrix.json")["step50"]["collective"]
            mine = rules.matrix(operations)["collective"]
            self.assertEqual(list(mine), list(links))
            for key, pairs in links.items():
                for pair, entry in pairs.items():
                    assert_same(mine[key][pair], entry, f"rank {rank} {key} {pair}")


if __name__ == "__main__":
    run_tests.main()
