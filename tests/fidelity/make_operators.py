"""Writes PROF directories with operator-level records as the vendor's in-process profiler leaves them, beside the plan
that says what was done: which launch, on which stream, when the device ran it, with what tensors.

Knows the description of the files alone (operator-data, sections a and g.1). One slot is one launch.
"""

import struct

from channels import BEGIN_US, DEVICE_COUNT, HOST_COUNT, HOST_RAW, HWTS_MHZ
from make_prof import Options, Prof

HOST_MHZ = 100
NONE = 0xFFFFFFFF
LEVELS = {"acl": 20000, "model": 15000, "node": 10000, "hccl": 5500, "runtime": 5000}
RUNTIME = {"KERNEL_AICORE": 0, "KERNEL_AICPU": 1, "EVENT_RECORD": 2, "MEMCPY_ASYNC": 5, "FFTS_PLUS": 52,
           "KERNEL_AIVEC": 66, "TASK_FLIP": 98, "KERNEL_MIX_AIC": 108}
CORE = {"AI_CORE": 0, "AI_CPU": 1, "AI_VECTOR_CORE": 2, "MIX_AIC": 4, "FFTS_PLUS": 6}
SQE = {"AI_CORE": 0, "AI_CPU": 1, "AIV_SQE": 2, "EVENT_RECORD_SQE": 4, "SDMA_SQE": 11}
AIC_CORES, AIV_CORES = 20, 40
# Events of the cube and of the vector cores, in the order of the counters.
EVENTS = {
    "PipeUtilizationExct": ("0x416,0x417,0x9,0x302,0xc,0x303,0x54,0x55", "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55"),
    "ArithmeticUtilization": ("0x49,0x4a,0x4b,0x4c,0x4d,0x4e,0x4f",) * 2,
    "Memory": ("0x15,0x16,0x31,0x32,0xf,0x10,0x12,0x13",) * 2,
    "MemoryL0": ("0x1b,0x1c,0x21,0x22,0x27,0x28,0x29,0x2a",) * 2,
    "MemoryUB": ("0x10,0x13,0x37,0x38,0x3d,0x3e,0x43,0x44",) * 2,
    "ResourceConflictRatio": ("0x64,0x65,0x66",) * 2,
    "L2Cache": ("0x500,0x502,0x504,0x506,0x508,0x50a",) * 2,
    "MemoryAccess": ("0x32,0x3d,0x3e,0x206,0x20c,0x50c,0x50d,0x50e",) * 2,
    "Custom:0x8,0x3d": ("0x8,0x3d",) * 2,
}
PHASE = 0x10001  # type of the first phase of an operator
SLOT_US = 200
DEVICE_AFTER_US = 505


class Tensor:
    def __init__(self, shape, data_type, form, sub=0, output=False):
        self.shape, self.data_type, self.form, self.sub, self.output = shape, data_type, form, sub, output

    def record(self):
        return struct.pack("<III8I", int(self.output), self.form | self.sub << 8, self.data_type,
                           *(list(self.shape) + [0] * 8)[:8])


MATMUL = [Tensor((1024, 512), 1, 2), Tensor((512, 2048), 1, 2), Tensor((1024, 2048), 1, 2, output=True)]
ADD = [Tensor((1024, 2048), 0, 2), Tensor((), 0, 2), Tensor((1024, 2048), 0, 2, output=True)]
SOFTMAX = [Tensor((8, i + 1), 27, 29, sub=i) for i in range(6)] + [Tensor((8, 8), 27, 47, output=True)]

# kind: operator type, core type, runtime type, device type, blocks, tensors, HF32
KINDS = {
    "matmul": ("MatMulV2", "AI_CORE", "KERNEL_AICORE", "AI_CORE", 24, MATMUL, True),
    "add": ("Add", "AI_VECTOR_CORE", "KERNEL_AIVEC", "AIV_SQE", 48, ADD, False),
    "softmax": ("SoftmaxV2", "AI_VECTOR_CORE", "KERNEL_AIVEC", "AIV_SQE", 40, SOFTMAX, False),
    "mix": ("FlashAttentionScore", "MIX_AIC", "KERNEL_MIX_AIC", "AI_CORE", 20, MATMUL, False),
    "aicpu": ("TopKV2", "AI_CPU", "KERNEL_AICPU", "AI_CPU", 1, ADD, False),
    "bare": (None, None, "KERNEL_AIVEC", "AIV_SQE", 8, [], False),
    "memcpy": (None, None, "MEMCPY_ASYNC", "SDMA_SQE", 0, [], False),
    "event": (None, None, "EVENT_RECORD", "EVENT_RECORD_SQE", 0, [], False),
}


class Slot:
    """One launch and what the device made of it."""

    def __init__(self, number, kind, thread, stream, device):
        self.number, self.kind, self.thread, self.stream, self.device = number, kind, thread, stream, device
        (self.type, self.core, self.runtime, self.sqe, self.blocks, self.tensors, self.hf32) = KINDS[kind]
        self.name = f"aclnn{self.type}_{self.type}_{number}" if self.type else None
        self.kernel = f"kernel_{kind}_{number}" if self.runtime.startswith("KERNEL") else None
        self.us = 1000 + number * SLOT_US
        self.task = self.batch = 0
        self.context = 0 if kind == "mix" else None
        self.runs = []  # (start, end) as counts of the device
        self.unaging = kind != "add"


class Operators(Prof):
    """`wrap`: task ids begin again after so many. `executions`: how often each slot runs on the device. `phases`: what the
    graph engine does for an operator before it launches it, a us each."""

    def __init__(self, parent, chip=5, slots=40, kinds=tuple(KINDS), devices=(0,), threads=(77,), streams=(2, 3),
                 wrap=None, level="l1", executions=1, metrics=None, phases=(), **options):
        super().__init__(parent, chip, Options(only=(), **options), devices=devices)
        self.level, self.wrap, self.executions, self.phases = level, wrap, executions, phases
        self.metrics = metrics  # None: no counters; else the group, of EVENTS
        self.metrics_of = {}    # of devices that count another one
        self.counts = {}        # (slot, execution, "aic"/"aiv"): (cycles, counters, MHz)
        self.mhz = float(HWTS_MHZ[chip])
        self.names = {}
        self.slots = []
        for device in devices:
            ids = {}
            for i in range(slots):
                slot = Slot(i, kinds[i % len(kinds)], threads[i % len(threads)] + 100 * device, streams[i % len(streams)], device)
                count = ids.get(slot.stream, 0)
                ids[slot.stream] = count + 1
                slot.task = count % wrap if wrap else count
                slot.batch = count // wrap if wrap else 0
                self.slots.append(slot)

    def hash_of(self, text):
        if text is None:
            return 0
        return self.names.setdefault(text, 0x1234567800000001 + 7919 * len(self.names))

    @staticmethod
    def host(us):
        return HOST_COUNT + round(us * HOST_MHZ)

    def device_count(self, us):
        return DEVICE_COUNT + round(us * self.mhz)

    def add(self, place, base, record):
        self.files.setdefault((place, base), []).append(record)

    def api(self, level, kind, slot, begin, end, item=0, request=0):
        self.add("host", "aging.api_event.data", struct.pack(
            "<HHIIIQQQ", 0x5A5A, LEVELS[level], kind, slot.thread, request, self.host(slot.us + begin),
            self.host(slot.us + end), item))

    def record(self, age, tag, size, level, kind, slot, at, body, length=None):
        head = struct.pack("<HHIIIQ", 0x5A5A, LEVELS[level], kind, slot.thread,
                           len(body) if length is None else length, self.host(slot.us + at))
        self.add("host", f"{age}.{tag}", (head + body).ljust(size, b"\0"))

    def fill(self):
        """Records of all slots."""
        types = ["5000_1003:KernelLaunch", "10000_5:launch", "20000_327681:ACL_NN"]
        types += [f"5000_{number}:{name}" for name, number in RUNTIME.items()]
        types += [f"10000_{PHASE + i}:{name}" for i, name in enumerate(self.phases)]
        for slot in self.slots:
            self._host(slot)
            self._device(slot)
        self.files[("host", "unaging.additional.type_info_dic")] = [f"{line}\n".encode() for line in types]
        self.files[("host", "unaging.additional.hash_dic")] = [
            f"{number}:{text}\n".encode() for text, number in self.names.items()]
        for (place, base), records in self.files.items():
            if base == "stars_soc.data":
                records.sort(key=lambda r: struct.unpack_from("<Q", r, 8)[0])
        return self

    def _host(self, slot):
        age = "unaging" if slot.unaging else "aging"
        if slot.type:
            self.api("acl", 0x50001, slot, 2, 70, self.hash_of(f"aclnn{slot.type}"))
            for i in range(len(self.phases)):
                self.api("node", PHASE + i, slot, 3 + i, 4 + i, self.hash_of(slot.name))
            self.api("node", 5, slot, 10, 60, self.hash_of(slot.name))
        self.api("runtime", 1003, slot, 19, 40)
        if self.wrap and slot.task == 0 and slot.batch > 0:
            self._task_track(slot, "TASK_FLIP", 19.5, 0, slot.batch, None)
            self.add(slot.device, "ts_track.data", struct.pack(
                "<BBHIQHHHHI12x", 0, 14, 0, 0, self.device_count(slot.us + DEVICE_AFTER_US - 1), slot.stream, slot.batch,
                0, 0, 0))
        self._task_track(slot, slot.runtime, 20, slot.task, 0, slot.kernel)
        if slot.type and self.level != "l0":
            self.record(age, "compact.node_basic_info", 64, "node", 0, slot, 59, struct.pack(
                "<QIQHHIB", self.hash_of(slot.name), CORE[slot.core], self.hash_of(slot.type), slot.blocks,
                2 if slot.kind == "mix" else 0, int(slot.hf32), 0))
            for first in range(0, len(slot.tensors), 5):
                part = slot.tensors[first:first + 5]
                self.record(age, "additional.tensor_info", 256, "node", 1, slot, 58, struct.pack(
                    "<QI", self.hash_of(slot.name), len(part)) + b"".join(t.record() for t in part))
        if slot.context is not None:
            self.record(age, "additional.context_id_info", 256, "node", 4, slot, 56, struct.pack(
                "<QII", self.hash_of(slot.name), 1, slot.context))

    def _task_track(self, slot, kind, at, task, flip, kernel):
        body = struct.pack("<HHHHQQ", slot.device, slot.stream, task, flip, RUNTIME[kind], self.hash_of(kernel))
        self.record("aging", "compact.task_track", 64, "runtime", 802, slot, at, body, length=24)

    def _device(self, slot):
        for run in range(self.executions):
            start_us = slot.us + DEVICE_AFTER_US + run * (len(self.slots) + 10) * SLOT_US
            start = self.device_count(start_us)
            end = self.device_count(start_us + 20 + slot.number % 7 + 0.18)
            slot.runs.append((start, end))
            for function, count in ((0, start - 5), (1, end + 5)) if slot.context is not None else ((0, start), (1, end)):
                self._stars(slot, function, count, SQE[slot.sqe], 0)
            if slot.context is not None:
                for function, count in ((0b100010, start), (0b100011, end)):
                    self._stars(slot, function, count, 0, slot.context, sub=6)
            if self.metrics and slot.sqe in ("AI_CORE", "AIV_SQE"):
                self._counters(slot, run, start, end)

    def _counters(self, slot, run, start, end):
        """Of the task, and for one on both kinds of core of each block on the vector cores."""
        vector = slot.sqe == "AIV_SQE"
        mix = slot.context is not None
        cycles, counters = self._count(slot, run, 40_000, 1)
        self.counts[slot, run, "aiv" if vector else "aic"] = (cycles, counters)
        self._profile(slot, 0b101000, 6 if mix else 0, 0, 4 << 13 if mix else int(vector) << 13, cycles, counters,
                      start, end)
        if not mix:
            return
        sums = (0, [0] * 8)
        for block in range(slot.blocks * 2):
            one = self._count(slot, run, 700, block + 2)
            sums = (sums[0] + one[0], [a + b for a, b in zip(sums[1], one[1])])
            self._profile(slot, 0b101001, 6, 0, 1 | block << 1 | (4 << 13), *one, start + 1, end - 1)
        self.counts[slot, run, "aiv"] = sums

    @staticmethod
    def _count(slot, run, scale, salt):
        cycles = scale * (slot.blocks or 1) + 37 * slot.number + 11 * run + salt
        return cycles, [cycles * (i + 1) // (9 + (slot.number + salt) % 5) for i in range(8)]

    def _profile(self, slot, function, sub, context, kind, cycles, counters, start, end):
        self.add(slot.device, "ffts_profile.data", struct.pack(
            "<HHHHQHHHHQQQ8QQQ", function, 0x6BD3, slot.stream, slot.task, 0, sub, context, kind, 0, 0, cycles, 0,
            *counters, start, end))

    def _stars(self, slot, function, count, sqe, context, sub=0):
        self.add(slot.device, "stars_soc.data", struct.pack(
            "<HHHHQHHHH40x", function | sqe << 10, 0x6BD3, slot.stream, slot.task, count, sub, context, 0, 0))

    def _write_controls(self, place):
        super()._write_controls(place)
        sample = {"prof_level": self.level}
        metrics = self.metrics_of.get(place, self.metrics)
        if metrics:
            sample.update(ai_core_metrics=metrics, aiv_metrics=metrics,
                          ai_core_profiling_events=EVENTS[metrics][0], aiv_profiling_events=EVENTS[metrics][1])
        self.change(place, "sample.json", lambda written: written.update(sample))
        if place != "host":
            self.change(place, f"info.json.{place}",
                        lambda info: info["DeviceInfo"][0].update(ai_core_num=AIC_CORES, aiv_num=AIV_CORES))

    def wall_ns(self, count):
        """Of a device's count: one sum in doubles, cut to ns."""
        ns = float(count - DEVICE_COUNT) * 1000.0 / self.mhz + float(HOST_RAW)
        return int(ns) + BEGIN_US * 1000 - HOST_RAW
