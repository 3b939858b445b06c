"""A real job's operators (AlexNet on two ranks, PyTorch, in the data with known answers beside the project): its timeline
is written back into the records it was made of, and what profctl makes of these is compared with what PyTorch's profiler
made: operator_details.csv cell by cell, steps, and the events and arrows of trace_view.json."""

import glob
import math
import os
import struct
import unittest

import make_operators as made
import run_tests
from channels import BEGIN_US, DEVICE_COUNT, HOST_RAW
from comparison import events_of
from make_framework import Framework, Operator
from profd_harness import SHARED_DATA, profctl, temp_folder
from text_files import read_json, read_rows

DATA = os.path.join(SHARED_DATA, "pytorch",
                    "pt_text_level1")
# Task type: type of the runtime, core, type on the device.
TASKS = {"AI_CORE": (0, 0, 0), "AI_VECTOR_CORE": (66, 2, 2), "MIX_AIV": (66, 5, 2), "DSA_SQE": (7, 7, 15),
         "PCIE_DMA_SQE": (5, None, 11), "SDMA_SQE": (5, None, 11)}
COMMUNICATION = (1, 1, 1)  # as a kernel of an AI CPU: what it took counts in the same way
LEAD_NS = 1_000_000
CALL_NS = 50  # the timeline leaves most calls out


def ns(text):
    return int(text.replace(".", ""))


class Rank:
    """What one rank's timeline says; times in ns since the wall clock of the first event."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "ASCEND_PROFILER_OUTPUT")
        events = read_json(self.folder, "trace_view.json")
        layers = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        slices = [e for e in events if e["ph"] == "X"]
        self.operators = [e for e in slices if e.get("cat") == "cpu_op"]
        self.calls = [e for e in slices if e.get("cat") == "python_function"]
        self.halves = [e for e in slices if e.get("cat") in ("enqueue", "dequeue")]
        self.tasks = {(e["pid"], e["tid"], e["ts"]): e for e in slices if layers[e["pid"]] in ("Ascend Hardware", "HCCL")}
        self.flows = {}
        for e in events:
            if e["ph"] in "sf":
                self.flows.setdefault((e["cat"], e["id"]), {}).setdefault(e["ph"], []).append(e)
        self.base = min(ns(e["ts"]) for e in slices) // 10 * 10 - LEAD_NS  # whole counts of the host

    def launches(self):
        """(begin of the call, task): PyTorch's profiler looks at the first task of a launch only."""
        for (category, _), ends in self.flows.items():
            if category == "HostToDevice":
                first = min(ends["f"], key=lambda e: ns(e["ts"]))
                yield ends["s"][0], self.tasks[first["pid"], first["tid"], first["ts"]]

    def arrows(self, category):
        return sorted((ns(ends["s"][0]["ts"]) - self.base, ns(ends["f"][0]["ts"]) - self.base)
                      for (cat, _), ends in self.flows.items() if cat == category)


class Dump(made.Operators):
    """The records of a rank. Its device counts nanoseconds."""

    def __init__(self, parent, rank):
        super().__init__(parent, slots=0)
        self.rank = rank
        self.ids = {}
        for call, task in sorted(rank.launches(), key=lambda pair: ns(pair[0]["ts"])):
            self._launch(call, task)
        self.files[("host", "unaging.additional.hash_dic")] = [f"{n}:{text}\n".encode() for text, n in self.names.items()]
        types = ["10000_5:launch", "20000_196609:ACL_RTS", "5000_0:KERNEL_AICORE", "5000_66:KERNEL_AIVEC", "5000_1:KERNEL_AICPU",
                 "5000_7:STARS_COMMON", "5000_5:MEMCPY_ASYNC"]
        self.files[("host", "unaging.additional.type_info_dic")] = [f"{line}\n".encode() for line in types]
        self.files[(0, "stars_soc.data")].sort(key=lambda r: struct.unpack_from("<Q", r, 8)[0])

    def _launch(self, call, task):
        begin = ns(call["ts"]) - self.rank.base
        end = begin + CALL_NS
        node = task["name"] != "MEMCPY_ASYNC"
        runtime, core, sqe = TASKS.get(task["args"].get("Task Type"), COMMUNICATION)
        stream = task["args"].get("Physic Stream Id", 900)
        number = self.ids[stream] = self.ids.get(stream, 0) + 1
        head = lambda level, kind, at, size: struct.pack("<HHIIIQ", 0x5A5A, level, kind, call["tid"], size, self.host(at / 1000))
        self.add("host", "aging.api_event.data", struct.pack(
            "<HHIIIQQQ", 0x5A5A, 10000 if node else 20000, 5 if node else 0x30001, call["tid"], 0, self.host(begin / 1000),
            self.host(end / 1000), self.hash_of(task["name"])))
        self.add("host", "aging.compact.task_track", (head(5000, 802, begin + 10, 24) + struct.pack(
            "<HHHHQQ", 0, stream, number, 0, runtime, self.hash_of(task["name"]))).ljust(64, b"\0"))
        if core is not None:
            self.add("host", "aging.compact.node_basic_info", (head(10000, 0, begin + 10, 29) + struct.pack(
                "<QIQHHIB", self.hash_of(task["name"]), core, self.hash_of("type"), 1, 0, 0, 0)).ljust(64, b"\0"))
        start = DEVICE_COUNT + ns(task["ts"]) - self.rank.base
        for function, count in ((0, start), (1, start + round(task["dur"] * 1000))):
            self.add(0, "stars_soc.data", struct.pack("<HHHHQHHHH40x", function | sqe << 10, 0x6BD3, stream, number, count, 0, 0,
                                                      0, 0))

    def _write_controls(self, place):
        super()._write_controls(place)
        if place != "host":
            self.change(place, f"info.json.{place}", lambda info: info["DeviceInfo"][0].update(hwts_frequency="1000"))
            self.put(place, f"dev_start.log.{place}", f"clock_monotonic_raw: {HOST_RAW}\ncntvct: {DEVICE_COUNT}\n")


class RealFramework(Framework):
    end_key = 0xFEDCBA9876543210  # torch_npu gives all of them one, which no function has

    def __init__(self, dump):
        self.dump, self.counter, self.beside = dump, True, True
        rank = dump.rank
        us = lambda e: (ns(e["ts"]) - rank.base) / 1000
        raw = lambda args, key: args[key].replace(";\r\n", ";") if key in args else None
        self.operators = [
            Operator(e["name"], e["tid"], us(e), us(e) + e["dur"], sequence=e["args"]["Sequence number"],
                     forward_thread=e["args"]["Fwd thread id"], shapes=raw(e["args"], "Input Dims"),
                     types=raw(e["args"], "Input type"), stack=raw(e["args"], "Call stack")) for e in rank.operators]
        self.memory, self.collections = [], []
        keys = {}
        self.calls = [(e["tid"], e["name"], keys.setdefault(e["name"], len(keys) + 1), us(e), us(e) + e["dur"])
                      for e in rank.calls]
        self.marks = []
        for e in rank.halves:
            first = 0 if e["cat"] == "enqueue" else 2
            for category, at in ((first, us(e)), (first + 1, us(e) + e["dur"])):
                # A task has its number only once it is in the queue.
                number = e["args"]["correlation_id"] if category > 0 else 0
                self.marks.append((at, category, number, e["tid"], e["name"].partition("@")[2] or "x"))


@unittest.skipUnless(os.path.isdir(DATA), "the data with known answers is not there")
class RealFrameworkTest(unittest.TestCase):
    maxDiff = 4000

    def export(self, number):
        base = temp_folder(self)
        rank = Rank(os.path.join(DATA, f"rank{number}_ascend_pt"))
        dump = Dump(base, rank)
        dump.write()
        RealFramework(dump).write()
        out = os.path.join(base, "out")
        profctl("export", dump.path, "--format", "csv,trace", "--out", out)
        return rank, out

    @staticmethod
    def rows(path):
        return [[cell.replace("\r\n", "\n") for cell in row] for row in read_rows(glob.glob(path)[0])]

    def check_details(self, rank, out):
        have = self.rows(os.path.join(out, "operator_details_*.csv"))
        want = self.rows(os.path.join(rank.folder, "operator_details.csv"))
        self.assertGreater(len(want), 800)
        self.assertEqual([row[:3] for row in have], [row[:3] for row in want])
        for one, other in zip(have[1:], want[1:]):
            for a, b in zip(one[3:], other[3:]):
                # Its durations of kernels have fractions of a nanosecond.
                self.assertTrue(math.isclose(float(a), float(b), abs_tol=0.05, rel_tol=1e-5), (one[0], one[3:], other[3:]))

    def check_timeline(self, rank, out):
        events = events_of(out)
        since = lambda e: ns(e["ts"]) - BEGIN_US * 1000
        found = sorted((e["cat"], e["tid"], since(e), round(e["dur"] * 1000), e["name"], repr(e["args"]))
                       for e in events if e["ph"] == "X" and e.get("cat") in ("cpu_op", "enqueue", "dequeue"))
        want = sorted((e["cat"], e["tid"], ns(e["ts"]) - rank.base, round(e["dur"] * 1000), e["name"], repr(e["args"]))
                      for e in rank.operators + rank.halves)
        self.assertEqual(found, want)
        calls = sorted((e["tid"], since(e), round(e["dur"] * 1000), e["name"]) for e in events
                       if e["ph"] == "X" and e.get("cat") == "python_function")
        self.assertEqual(calls, sorted((e["tid"], ns(e["ts"]) - rank.base, round(e["dur"] * 1000), e["name"])
                                       for e in rank.calls))
        for category in ("async_npu", "async_task_queue", "fwdbwd"):
            ends = {}
            for e in events:
                if e["ph"] in "sf" and e["cat"] == category:
                    ends.setdefault(e["id"], {})[e["ph"]] = since(e)
            self.assertEqual(sorted((pair["s"], pair["f"]) for pair in ends.values()), rank.arrows(category), category)
            self.assertGreater(len(ends), 20)

    def check_steps(self, rank, out):
        have = self.rows(os.path.join(out, "kernel_details_*.csv"))
        want = self.rows(os.path.join(rank.folder, "kernel_details.csv"))
        column = {name: i for i, name in enumerate(want[0])}
        names = lambda rows: sorted((row[0], row[4]) for row in rows[1:] if row[column["Accelerator Core"]] != "HCCL")
        kernels = [row for row in have if row[7] != "AI_CPU"]
        self.assertEqual(names(kernels), names(want))

    def test_as_pytorch_shows_them(self):
        for number in (0, 1):
            with self.subTest(rank=number):
                rank, out = self.export(number)
                self.check_details(rank, out)
                self.check_timeline(rank, out)
                self.check_steps(rank, out)


if __name__ == "__main__":
    run_tests.main()
