"""Operator-level records of platform 1 (910A), whose scheduler is HWTS, against the plan they were written from."""

import struct

import make_hwts as made
import run_tests
from channels import AIC_MHZ
from comparison import events_of, query
from profd_harness import profctl
from test_operators import OperatorCase, executions, expected_summary, real, us

SHARES = {"vec": 8, "mac": 0xA, "scalar": 9, "mte1": 0xB, "mte2": 0xC, "mte3": 0xD}
RATIOS = {"mac_fp16_ratio": (0x49,), "mac_int8_ratio": (0x4A,), "vec_fp32_ratio": (0x4B,), "vec_fp16_ratio": (0x4C, 0x4D),
          "vec_int32_ratio": (0x4E,), "vec_misc_ratio": (0x4F,), "vec_bankgroup_cflt_ratio": (0x64,),
          "vec_bank_cflt_ratio": (0x65,), "vec_resc_cflt_ratio": (0x66,)}
SUMS = {"cube_fops": {0x49: 8192, 0x4A: 16384}, "vector_fops": {0x4B: 64, 0x4C: 128, 0x4D: 64, 0x4E: 64, 0x4F: 32},
        "r8": {8: 1}, "r3d": {0x3D: 1}}
V3_VECTOR = {**SUMS["vector_fops"], 0x4E: 16, 0x4F: 16}  # of chips 2 to 4
BITS = {"ub_read_bw": (0x15, 1024), "ub_write_bw": (0x16, 1024), "l1_read_bw": (0x31, 4096), "l1_write_bw": (0x32, 2048),
        "main_mem_read_bw": (0x12, 64), "main_mem_write_bw": (0x13, 64), "l0a_read_bw": (0x1B, 4096),
        "l0a_write_bw": (0x1C, 4096), "l0b_read_bw": (0x21, 2048), "l0b_write_bw": (0x22, 2048), "l0c_read_bw": (0x27, 2048),
        "l0c_write_bw": (0x29, 2048), "l0c_read_bw_cube": (0x28, 2048), "l0c_write_bw_cube": (0x2A, 2048),
        "ub_read_bw_vector": (0x43, 256), "ub_write_bw_vector": (0x44, 256), "ub_read_bw_scalar": (0x37, 128),
        "ub_write_bw_scalar": (0x38, 128)}
COLUMNS = {
    "PipeUtilization": [f"{n}_{what}" for n in SHARES for what in ("time(us)", "ratio")] + [
        "icache_miss_rate", "memory_bound", "cube_utilization(%)"],
    "ArithmeticUtilization": ["mac_fp16_ratio", "mac_int8_ratio", "vec_fp32_ratio", "vec_fp16_ratio", "vec_int32_ratio",
                              "vec_misc_ratio", "cube_fops", "vector_fops"],
    "Memory": [f"{n}(GB/s)" for n in list(BITS)[:6]],
    "MemoryL0": [f"{n}(GB/s)" for n in ("l0a_read_bw", "l0a_write_bw", "l0b_read_bw", "l0b_write_bw", "l0c_read_bw",
                                        "l0c_write_bw", "l0c_read_bw_cube", "l0c_write_bw_cube")],
    "MemoryUB": [f"{n}(GB/s)" for n in list(BITS)[14:]],
    "ResourceConflictRatio": list(RATIOS)[6:],
    "Custom:0x8,0x3d": ["r8", "r3d"],
}


def expected_counters(dump, slot, run, duration_us):
    """By the formulas of operator-data c.2."""
    cycles, counters = dump.counts[slot, run]
    events = [int(e, 16) for e in made.EVENTS[dump.metrics].split(",")]
    count = dict(zip(events, counters))
    mhz = float(AIC_MHZ[dump.chip])
    time = cycles / mhz / slot.blocks * -(-slot.blocks // made.CORES)
    cells = [f"{round(time, 2)}", str(cycles)]
    for name in COLUMNS[dump.metrics]:
        bare = name.removesuffix("(GB/s)")
        share = name.removesuffix("_time(us)").removesuffix("_ratio")
        if name == "cube_utilization(%)":
            cells.append(f"{cycles / (mhz * made.CORES) * 100 / duration_us:.3f}")
            continue
        if name in RATIOS:
            value = sum(count[e] for e in RATIOS[name]) / cycles
        elif name in SUMS:
            weights = V3_VECTOR if name == "vector_fops" and dump.chip != 1 else SUMS[name]
            value = float(sum(count[e] * weight for e, weight in weights.items()))
        elif bare in BITS:
            event, bits = BITS[bare]
            value = count[event] * bits / (cycles / (mhz * 1e6)) / 2**33
        elif name == "icache_miss_rate":
            value = count[0x55] / count[0x54]
        elif name == "memory_bound":
            value = count[0xC] / max(count[0xA], count[8])
        else:
            value = count[SHARES[share]] / cycles * (time if "time" in name else 1)
        cells.append(real(value))
    return cells


class HwtsTest(OperatorCase):
    kind = made.HwtsOperators

    def test_tasks(self):
        dump = self.make()
        exported = self.check(dump)
        self.assertEqual(exported.rows("task_time")[1:], sorted(
            (["0", slot.kernel or "N/A", slot.core or slot.runtime, str(slot.stream), str(slot.task), us(end - start),
              us(start) + "\t", us(end) + "\t"] for slot, start, end in executions(dump)), key=lambda row: row[6]))

    def test_devices_threads_batches_and_executions(self):
        for options in ({"devices": (0, 1)}, {"threads": (77, 78, 79)}, {"slots": 120, "wrap": 7}, {"executions": 3},
                        {"slices": 9}, {"level": "l0"}):
            with self.subTest(options):
                self.check(self.make(**options))

    def test_other_chips_with_hwts(self):
        """The records of chips 2 to 4 are the same (operator-data a.4)."""
        for chip in (2, 4):
            with self.subTest(chip):
                self.check(self.make(chip=chip))
                for metrics in ("PipeUtilization", "ArithmeticUtilization"):
                    self.check_counters(slots=24, executions=2, metrics=metrics, chip=chip)

    def test_a_lost_end(self):
        dump = self.make(slots=16, executions=2)
        slot = dump.slots[0]
        records = dump.files[0, "hwts.data"]
        mine = [i for i, r in enumerate(records) if (r[16], struct.unpack_from("<H", r, 6)[0]) == (slot.stream, slot.task)]
        del records[mine[1]], slot.runs[0]
        self.assertIn("1 tasks without their start or end: skipped", self.check(dump).text)

    def test_counters_of_tasks_that_are_not_known(self):
        dump = self.make(slots=16, metrics="Memory")
        for _ in range(3):
            dump.add(0, "aicore.data", struct.pack("<BB4xH8xQ8x8QI28x", 0, 0, 60_000, 1, *range(8), 2))
        self.assertIn("3 counters of no known task: skipped", self.export(dump).text)

    def test_counters_of_every_group(self):
        for metrics in made.EVENTS:
            with self.subTest(metrics):
                self.check_counters(slots=24, executions=2, metrics=metrics)

    def test_counters_where_ids_wrap(self):
        """An id is that of an operator of the AI Core, then of another task."""
        self.check_counters(slots=40, wrap=3, metrics="Memory")

    def check_counters(self, metrics, **options):
        dump = self.make(metrics=metrics, **options)
        header, *rows = self.export(dump).rows("op_summary")
        self.assertEqual(header[21:], ["aicore_time(us)", "total_cycles", *COLUMNS[metrics]])
        self.assertEqual([row[:21] for row in rows], expected_summary(dump))
        slots = {slot.name: slot for slot in dump.slots}
        seen = {}
        for row in rows:
            slot = slots[row[4]]
            run = seen[slot] = seen.get(slot, -1) + 1
            expected = ["N/A"] * len(header[21:])
            if slot.kind == "matmul":
                expected = expected_counters(dump, slot, run, float(row[9]))
            self.assertEqual(row[21:], expected, (slot.name, run))

    def test_timeline_and_database(self):
        dump = self.make(metrics="Memory")
        dump.write()
        out = dump.path + "-all"
        profctl("export", dump.path, "--format", "trace,sqlite", "--out", out)
        runs = sorted((start, end, slot.stream, slot.task) for slot, start, end in executions(dump))
        events = [e for e in events_of(out) if e["ph"] == "X" and "Physic Stream Id" in e.get("args", {})]
        self.assertEqual(sorted((int(e["ts"].replace(".", "")), int(e["ts"].replace(".", "")) + round(e["dur"] * 1000),
                                 e["tid"], e["args"]["Task Id"]) for e in events), runs)
        self.assertEqual({e["args"]["Task Type"] for e in events}, {"AI_CORE", "AI_CPU", "EVENT_RECORD", "UNKNOWN"})
        self.assertEqual(query(out, "SELECT startNs, endNs, streamId, taskId FROM TASK ORDER BY startNs"), runs)
        self.assertNotIn(("TASK_PMU_INFO",), query(out, "SELECT name FROM sqlite_master"))


if __name__ == "__main__":
    run_tests.main()
