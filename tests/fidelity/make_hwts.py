"""The operators of make_operators.py on a device with the HWTS scheduler (platform 1): `hwts.data`, and the counters of
`aicore.data` in task mode. Knows the description of the files alone (operator-data a.4)."""

import struct

import make_operators as made

EVENTS = {
    "PipeUtilization": "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55",
    "ArithmeticUtilization": "0x49,0x4a,0x4b,0x4c,0x4d,0x4e,0x4f",
    "Memory": "0x15,0x16,0x31,0x32,0xf,0x10,0x12,0x13",
    "MemoryL0": "0x1b,0x1c,0x21,0x22,0x27,0x28,0x29,0x2a",
    "MemoryUB": "0x10,0x13,0x37,0x38,0x3d,0x3e,0x43,0x44",
    "ResourceConflictRatio": "0x64,0x65,0x66",
    "Custom:0x8,0x3d": "0x8,0x3d",
}
CORES = 32
AI_CORE, AI_CPU, OTHER = 0, 1, 7


class HwtsOperators(made.Operators):
    def __init__(self, parent, kinds=("matmul", "aicpu", "memcpy", "event"), chip=1, **options):
        super().__init__(parent, chip=chip, kinds=kinds, **options)

    def fill(self):
        super().fill()
        for (_, base), records in self.files.items():
            if base == "hwts.data":
                records.sort(key=lambda r: struct.unpack_from("<Q", r, 8)[0])
        return self

    def _stars(self, slot, function, count, sqe, context, sub=0):
        kind = {"AI_CORE": AI_CORE, "AI_CPU": AI_CPU}.get(slot.sqe, OTHER)
        self.add(slot.device, "hwts.data", struct.pack("<BB4xHQI44x", function, kind, slot.task, count, slot.stream))

    def _counters(self, slot, run, start, end):
        cycles, counters = self._count(slot, run, 40_000, 1)
        self.counts[slot, run] = cycles, counters
        self.add(slot.device, "aicore.data", struct.pack("<BB4xH8xQ8x8QI28x", 0, 0, slot.task, cycles, *counters, slot.stream))

    def _write_controls(self, place):
        metrics, self.metrics = self.metrics, None
        super()._write_controls(place)
        self.metrics = metrics
        if metrics:
            self.change(place, "sample.json", lambda sample: sample.update(
                ai_core_metrics=metrics, ai_core_profiling_events=EVENTS[metrics], ai_core_profiling_mode="task-based"))
        if place != "host":
            self.change(place, f"info.json.{place}", lambda info: info["DeviceInfo"][0].update(ai_core_num=CORES))
