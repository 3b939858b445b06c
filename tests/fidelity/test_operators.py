"""Operator-level records of the vendor's in-process profiler against the plan they were written from."""

import glob
import math
import os
import shutil
import struct
from decimal import ROUND_HALF_UP, Decimal

import make_operators as made
import run_tests
from channels import AIC_MHZ, BEGIN_US
from comparison import FolderCase, seconds, short, us
from profd_harness import profctl
from text_files import read_rows

DATA_TYPES = {0: "FLOAT", 1: "FLOAT16", 27: "DT_BF16"}
FORMATS = {2: "ND", 29: "FRACTAL_NZ", 47: "NCL"}


def tensors_of(slot, output):
    mine = [t for t in slot.tensors if t.output == output]
    shapes = ";".join(",".join(str(d) for d in t.shape) for t in mine)
    forms = ";".join(FORMATS[t.form] + (f":{t.sub}" if t.sub else "") for t in mine)
    return [f'"{shapes}"', ";".join(DATA_TYPES[t.data_type] for t in mine), forms]


def executions(dump):
    """(slot, start, end) in wall time, each as it ran."""
    for slot in dump.slots:
        for start, end in slot.runs:
            yield slot, dump.wall_ns(start), dump.wall_ns(end)


def expected_summary(dump):
    rows = []
    for slot, start, end in executions(dump):
        detailed = dump.level != "l0"
        if slot.kind in ("memcpy", "event"):
            continue
        name = slot.name or slot.kernel
        described = slot.type and detailed
        kind = {"KERNEL_AIVEC": "AI_VECTOR_CORE"}.get(slot.runtime)
        blocks = [str(slot.blocks), str(slot.blocks * 2 if slot.kind == "mix" else 0)] if described else (
            ["N/A", "N/A"] if detailed else ["0", "0"])
        rows.append((str(slot.device), us(start), start, end, [
            "4294967295", str(slot.task), str(slot.stream), name,
            (slot.type or name) if detailed else "N/A",
            ("static" if slot.unaging else "dynamic") if described else "N/A",
            (slot.core or kind) if detailed else "N/A", us(start) + "\t", us(end - start), None, *blocks,
            ("YES" if slot.hf32 else "NO") if described else "N/A",
            *(tensors_of(slot, False) + tensors_of(slot, True) if described else ["N/A"] * 6),
            "N/A" if slot.context is None else str(slot.context)]))
    rows.sort(key=lambda row: row[:2])
    result = []
    before = None
    for device, _, start, end, cells in rows:
        wait = "0"
        if before is not None:
            gap = start / 1000 - before[0] / 1000 - (before[1] - before[0]) / 1000
            wait = f"{max(0.0, gap):.6f}"
        cells[9] = wait
        before = (start, end)
        result.append([device] + cells)
    return result


PIPE = {"aic": ["mac", "scalar", "mte1", "mte2", "fixpipe"], "aiv": ["vec", "scalar", "mte2", "mte3"]}
AFTER_CYCLES = {
    "ArithmeticUtilization": (["mac_fp16_ratio", "mac_int8_ratio", "cube_fops"],
                              ["vec_fp32_ratio", "vec_fp16_ratio", "vec_int32_ratio", "vec_misc_ratio", "vector_fops"]),
    "Memory": ([f"{n}_bw(GB/s)" for n in ("l1_read", "l1_write", "main_mem_read", "main_mem_write", "l2_read",
                                          "l2_write")],
               [f"{n}_bw(GB/s)" for n in ("ub_read", "ub_write", "main_mem_read", "main_mem_write", "l2_read",
                                          "l2_write")]),
    "MemoryL0": ([f"{n}(GB/s)" for n in ("l0a_read_bw", "l0a_write_bw", "l0b_read_bw", "l0b_write_bw",
                                         "l0c_read_bw_cube", "l0c_write_bw_cube")],
                 ["l0c_read_bw(GB/s)", "l0c_write_bw(GB/s)"]),
    "MemoryUB": (["ub_read_bw_scalar(GB/s)", "ub_write_bw_scalar(GB/s)"],
                 [f"{n}(GB/s)" for n in ("ub_read_bw_vector", "ub_write_bw_vector", "ub_read_bw_scalar",
                                         "ub_write_bw_scalar")]),
    "ResourceConflictRatio": ([], ["vec_bankgroup_cflt_ratio", "vec_bank_cflt_ratio", "vec_resc_cflt_ratio"]),
    "L2Cache": (["write_cache_hit", "write_cache_miss_allocate", "r0_read_cache_hit", "r0_read_cache_miss_allocate",
                 "r1_read_cache_hit", "r1_read_cache_miss_allocate"],) * 2,
    "MemoryAccess": ([f"{n}_datas(KB)" for n in ("read_main_memory", "write_main_memory", "GM_to_L1", "L0C_to_L1",
                                                 "L0C_to_GM", "GM_to_UB", "UB_to_GM")],) * 2,
    "Custom:0x8,0x3d": (["r8", "r3d"],) * 2,
    "PipeUtilizationExct": tuple(
        [f"{n}_{what}" for n in PIPE[core] for what in ("time(us)", "ratio")] + ["icache_miss_rate"]
        for core in ("aic", "aiv")),
}
PMU_HEADERS = {
    name: (["aicore_time(us)", "aic_total_cycles"] + [f"aic_{n}" for n in aic]
           + ["aiv_time(us)", "aiv_total_cycles"] + [f"aiv_{n}" for n in aiv]
           + (["cube_utilization(%)"] if name.startswith("Pipe") else []))
    for name, (aic, aiv) in AFTER_CYCLES.items()}
RATIOS = {"mac": (0x416, 0x417), "vec": (8,), "scalar": (9,), "mte1": (0x302,), "mte2": (0xC,), "mte3": (0xD,),
          "fixpipe": (0x303,), "mac_fp16": (0x49,), "mac_int8": (0x4A,), "vec_fp32": (0x4B,),
          "vec_fp16": (0x4C, 0x4D), "vec_int32": (0x4E,), "vec_misc": (0x4F,), "vec_bankgroup_cflt": (0x64,),
          "vec_bank_cflt": (0x65,), "vec_resc_cflt": (0x66,), ("aiv", "mac"): (0xA,), ("aiv", "mte1"): (0xB,)}
SUMS = {"cube_fops": {0x49: 8192, 0x4A: 16384},
        "vector_fops": {0x4B: 64, 0x4C: 128, 0x4D: 64, 0x4E: 64, 0x4F: 32},
        "write_cache_hit": {0x500: 1}, "write_cache_miss_allocate": {0x502: 1}, "r0_read_cache_hit": {0x504: 1},
        "r0_read_cache_miss_allocate": {0x506: 1}, "r1_read_cache_hit": {0x508: 1},
        "r1_read_cache_miss_allocate": {0x50A: 1}, "r8": {8: 1}, "r3d": {0x3D: 1},
        "read_main_memory_datas(KB)": {0x50D: .125, 0x50E: .125}, "write_main_memory_datas(KB)": {0x50C: .125},
        "GM_to_L1_datas(KB)": {0x32: .25, 0x206: -.25}, "L0C_to_L1_datas(KB)": {0x206: .125},
        "L0C_to_GM_datas(KB)": {0x20C: .125, 0x206: -.125}, "GM_to_UB_datas(KB)": {0x3E: .125},
        "UB_to_GM_datas(KB)": {0x3D: .125}}
BANDWIDTHS = {"ub_read": (0x15, 256 * 4), "ub_write": (0x16, 256 * 4), "l1_read": (0x31, 256 * 16),
              "l1_write": (0x32, 128 * 8), "main_mem_read": (0x12, 64), "main_mem_write": (0x13, 64),
              "l2_read": (0xF, 256 * 8), "l2_write": (0x10, 256 * 8), "l0a_read": (0x1B, 256 * 16),
              "l0a_write": (0x1C, 256 * 16), "l0b_read": (0x21, 256 * 16), "l0b_write": (0x22, 256 * 8),
              "l0c_read": (0x27, 256 * 8), "l0c_write": (0x29, 256 * 8), "l0c_read_cube": (0x28, 256 * 32),
              "l0c_write_cube": (0x2A, 256 * 32), "ub_read_vector": (0x43, 256), "ub_write_vector": (0x44, 256),
              "ub_read_scalar": (0x37, 128), "ub_write_scalar": (0x38, 128)}


def real(value, step="0.001"):
    """Rounded half away from zero to 3 decimals, in the shortest form with one decimal at least."""
    text = str(Decimal(repr(value)).quantize(Decimal(step), ROUND_HALF_UP).normalize())
    text = f"{Decimal(text):f}"
    return text if "." in text else text + ".0"


def counter_cell(name, core, events, cycles, counters, time, mhz):
    count = dict(zip(events, counters))
    name = name.removeprefix(core + "_")
    if name == "icache_miss_rate":
        return count[0x55] / count[0x54] if count.get(0x54) and count.get(0x55) else 0
    if name in SUMS:
        return sum(count[e] * weight for e, weight in SUMS[name].items())
    if name.endswith("(GB/s)"):
        event, bits = BANDWIDTHS[name.removesuffix("(GB/s)").replace("_bw", "")]
        return count[event] * bits / (cycles / (mhz * 1e6)) / 2**33 if cycles else 0
    share = name.removesuffix("_ratio").removesuffix("_time(us)")
    ratio = sum(count[e] for e in RATIOS.get((core, share)) or RATIOS[share]) / cycles if cycles else 0
    return ratio * time if name.endswith("time(us)") else ratio


def expected_counters(dump, slot, names, run=0):
    if not any((slot, run, core) in dump.counts for core in ("aic", "aiv")):
        return ["N/A"] * len(names)
    mhz = float(AIC_MHZ[5])
    cells = []
    for core, cores in (("aic", made.AIC_CORES), ("aiv", made.AIV_CORES)):
        cycles, counters = dump.counts.get((slot, run, core), (0, [0] * 8))
        events = [int(e, 16) for e in made.EVENTS[dump.metrics][0 if core == "aic" else 1].split(",")]
        blocks = slot.blocks * 2 if core == "aiv" and slot.context is not None else slot.blocks
        described = slot.type is not None
        time = cycles / mhz / blocks * math.ceil(blocks / cores) if blocks and described else 0
        first = "aicore_time(us)" if core == "aic" else "aiv_time(us)"
        for name in names:
            if name == first:
                cells += [real(time, "0.01" if dump.metrics.startswith("Custom") else "0.001"), str(cycles)]
            elif name.startswith(core + "_") and name not in (first, f"{core}_total_cycles"):
                cells.append(real(counter_cell(name, core, events, cycles, counters, time, mhz)))
    if "cube_utilization(%)" in names:
        start, end = slot.runs[run]
        duration = (dump.wall_ns(end) - dump.wall_ns(start)) / 1000
        cycles = dump.counts.get((slot, run, "aic"), (0, []))[0]
        cells.append(f"{cycles / (mhz * made.AIC_CORES) * 100 / duration:.3f}")
    return cells


class Exported:
    """The CSVs of one dump."""

    def __init__(self, path, out, expect=0, more=()):
        formats = () if "--format" in more else ("--format", "csv")
        done = profctl("export", path, *formats, "--out", out, *more, expect=expect)
        self.text = done.stdout + done.stderr
        self.out = out

    def rows(self, name):
        found = glob.glob(os.path.join(self.out, f"{name}_[0-9]*.csv"))
        if len(found) != 1:
            raise AssertionError(f"{name}: {found}; {self.text}")
        return read_rows(found[0])

    def has(self, name):
        return bool(glob.glob(os.path.join(self.out, f"{name}_[0-9]*.csv")))


class OperatorCase(FolderCase):
    """Dumps of the class `kind`, exported as CSV."""

    kind = made.Operators

    def make(self, **options):
        return self.kind(self.fresh(), **options).fill()

    def export(self, dump, expect=0, more=()):
        dump.write()
        return Exported(dump.path, dump.path + "-out", expect, more)

    def check(self, dump):
        exported = self.export(dump)
        self.assertEqual(exported.rows("op_summary")[1:], expected_summary(dump))
        return exported


class OpenCase(OperatorCase):
    """Dumps that a test adds to before they are filled."""

    def make(self, **options):
        return self.kind(self.fresh(), **options)

    def export(self, dump, expect=0, more=()):
        return super().export(dump.fill(), expect, more)


class OperatorTest(OperatorCase):
    def test_every_kind_of_launch(self):
        exported = self.check(self.make())
        self.assertEqual(exported.rows("op_summary")[0], (
            "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),"
            "Task Duration(us),Task Wait Time(us),Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,"
            "Input Formats,Output Shapes,Output Data Types,Output Formats,Context ID").split(","))

    def test_other_chips_with_stars(self):
        """Files of the same names are read alike."""
        for chip in (7, 8):
            with self.subTest(chip):
                self.check(self.make(chip=chip))

    def test_devices_are_joined_apart(self):
        self.check(self.make(devices=(0, 1)))

    def test_only_some_devices(self):
        dump = self.make(devices=(0, 1))
        rows = self.export(dump, more=("--devices", "1")).rows("op_summary")[1:]
        self.assertEqual([row[:9] for row in rows], [row[:9] for row in expected_summary(dump) if row[0] == "1"])

    def test_only_some_time(self):
        dump = self.make()
        starts = sorted(start for _, start, _ in executions(dump))
        begin, end = starts[10], starts[20]
        rows = self.export(dump, more=("--from", seconds(begin), "--to", seconds(end))).rows("task_time")[1:]
        self.assertEqual([row[6] for row in rows], [us(start) + "\t" for start in starts[10:21]])

    def test_other_channels_only(self):
        dump = self.make()
        dump.write()
        done = profctl("export", dump.path, "--format", "csv", "--channels", "hbm", "--out", dump.path + "-out", expect=4)
        self.assertIn("nothing to export", done.stderr)

    def test_a_task_that_runs_at_the_end_is_not_damage(self):
        dump = self.make()
        dump.files[0, "stars_soc.data"].pop()
        exported = self.export(dump)
        self.assertIn("1 tasks without their start or end: skipped", exported.text)

    def test_counters_of_a_task_without_its_records(self):
        dump = self.make(slots=16, metrics="Memory")
        slot = next(slot for slot in dump.slots if slot.kind == "matmul")
        records = dump.files[0, "stars_soc.data"]
        records[:] = [r for r in records if struct.unpack_from("<HH", r, 4) != (slot.stream, slot.task)]
        self.assertIn("1 counters of no known task: skipped", self.export(dump).text)

    def swap(self, dump, slot, order):
        """The records of `slot` in the file, which lie by time, in another order."""
        records = dump.files[0, "stars_soc.data"]
        mine = [i for i, r in enumerate(records) if struct.unpack_from("<HH", r, 4) == (slot.stream, slot.task)]
        self.assertEqual(len(mine), len(order))
        for at, record in zip(mine, [records[mine[i]] for i in order]):
            records[at] = record

    def test_records_out_of_order(self):
        """As many starts as ends of a task belong together in the order of their times."""
        for order in ((1, 0, 2, 3), (0, 2, 1, 3), (0, 3, 2, 1), (3, 2, 1, 0)):
            with self.subTest(order):
                dump = self.make(slots=16, executions=2)
                self.swap(dump, dump.slots[1], order)
                self.check(dump)

    def test_a_lost_record_costs_one_execution(self):
        """Not as many starts as ends: each end belongs to the start right before it."""
        for lost, execution in ((0, 0), (1, 0), (2, 1), (3, 1)):
            with self.subTest(lost):
                dump = self.make(slots=16, executions=3)
                slot = dump.slots[1]
                records = dump.files[0, "stars_soc.data"]
                mine = [i for i, r in enumerate(records) if struct.unpack_from("<HH", r, 4) == (slot.stream, slot.task)]
                del records[mine[lost]], slot.runs[execution]
                self.assertIn("1 tasks without their start or end: skipped", self.check(dump).text)

    def test_lost_records_of_two_batches(self):
        """As many starts as ends, but of an id in three batches: the lost end is of one, the lost start of another."""
        dump = self.make(slots=48, wrap=7)
        first, between, last = [s for s in dump.slots if s.stream == 2 and s.task == 3 and s.context is None][:3]
        self.assertEqual((between.batch, last.batch), (first.batch + 1, first.batch + 2))
        records = dump.files[0, "stars_soc.data"]
        records.remove(next(r for r in records if struct.unpack_from("<Q", r, 8)[0] == first.runs[0][1]))
        records.remove(next(r for r in records if struct.unpack_from("<Q", r, 8)[0] == last.runs[0][0]))
        del first.runs[0], last.runs[0]
        self.assertTrue(between.runs)
        self.assertIn("2 tasks without their start or end: skipped", self.check(dump).text)

    def test_task_types_of_older_writers(self):
        """A hash instead of a number, of flips as well."""
        dump = self.make(slots=60, wrap=7)
        base = "host", "aging.compact.task_track"
        names = {number: name for name, number in made.RUNTIME.items()}
        dump.files[base] = [
            r[:32] + struct.pack("<Q", dump.hash_of(names[struct.unpack_from("<Q", r, 32)[0]])) + r[40:]
            for r in dump.files[base]]
        dump.files["host", "unaging.additional.hash_dic"] = [
            f"{number}:{text}\n".encode() for text, number in dump.names.items()]
        self.check(dump)

    def test_task_ids_that_wrap(self):
        dump = self.make(slots=120, wrap=7)
        self.assertGreater(max(slot.batch for slot in dump.slots), 5)
        self.check(dump)

    def test_other_bits_of_the_stream_of_flips(self):
        """A stream has 11 bits where there are no wide ones; the word's others are not part of it (operator-data a.4)."""
        dump = self.make(slots=60, wrap=7)
        dump.files[0, "ts_track.data"] = [
            r[:16] + struct.pack("<H", struct.unpack_from("<H", r, 16)[0] | 0x8800) + r[18:]
            for r in dump.files[0, "ts_track.data"]]
        self.check(dump)

    def test_launching_threads(self):
        self.check(self.make(slots=60, threads=(77, 78, 79)))

    def test_slices(self):
        self.check(self.make(slots=80, slices=9))

    def test_a_launch_of_lccl_describes_no_operator(self):
        """Its kernel is named and described by itself (operator-data b.1, 4)."""
        dump = made.Operators(self.fresh(), slots=3, kinds=("matmul",))
        dump.slots[1].name = "LcclAllReduce"
        rows = self.export(dump.fill()).rows("op_summary")
        found = [dict(zip(rows[0], row)) for row in rows[1:]]
        self.assertEqual([row["Op Name"] for row in found], [dump.slots[0].name, dump.slots[1].kernel, dump.slots[2].name])
        other = found[1]
        self.assertEqual((other["OP Type"], other["OP State"], other["Input Shapes"]), (dump.slots[1].kernel, "N/A", "N/A"))

    def test_a_static_graph_runs_again_and_again(self):
        dump = self.make(slots=16, executions=4)
        self.assertEqual(len(expected_summary(dump)), 4 * 12)
        self.check(dump)

    def test_level_0_has_the_names_of_launches(self):
        exported = self.check(self.make(level="l0"))
        self.assertFalse(exported.has("op_statistic"))

    def test_op_statistic(self):
        dump = self.make(slots=80)
        groups = {}
        for slot, start, end in executions(dump):
            if slot.kind in ("memcpy", "event"):
                continue
            kind = (slot.type or slot.kernel, slot.core or "AI_VECTOR_CORE")
            groups.setdefault(kind, []).append(end - start)
        total = sum(sum(values) for values in groups.values())
        rows = self.export(dump).rows("op_statistic")
        self.assertEqual(rows[0], "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),"
                                  "Max Time(us),Ratio(%)".split(","))
        self.assertEqual(sorted(rows[1:]), sorted(
            ["0", *key, str(len(ns)), short(sum(ns) / 1e3), short(min(ns) / 1e3), short(sum(ns) / len(ns) / 1e3),
             short(max(ns) / 1e3), short(100 * sum(ns) / total)] for key, ns in groups.items()))
        totals = [float(row[4]) for row in rows[1:]]
        self.assertEqual(totals, sorted(totals, reverse=True))

    def test_task_time_has_every_task(self):
        dump = self.make(slots=48)
        rows = self.export(dump).rows("task_time")
        self.assertEqual(rows[0], "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),"
                                  "task_stop(us)".split(","))
        expected = []
        for slot, start, end in executions(dump):
            kind = slot.core or ("AI_VECTOR_CORE" if slot.kind == "bare" else slot.runtime)
            expected.append(["0", slot.kernel or "N/A", kind, str(slot.stream), str(slot.task), us(end - start),
                             us(start) + "\t", us(end) + "\t"])
        self.assertEqual(rows[1:], sorted(expected, key=lambda row: row[6]))

    def test_api_statistic(self):
        dump = self.make(slots=40)
        rows = {(row[1], row[2]): row for row in self.export(dump).rows("api_statistic")[1:]}
        launches = [slot for slot in dump.slots if slot.type]
        self.assertEqual(rows["node", "launch"], ["host", "node", "launch", short(50 * len(launches)),
                                                  str(len(launches)), "50", "50", "50", "0"])
        self.assertEqual(rows["runtime", "KernelLaunch"][3:5], [short(21 * 40), "40"])
        matmuls = [slot for slot in launches if slot.kind == "matmul"]
        self.assertEqual(rows["acl", "aclnnMatMulV2"][4:6], [str(len(matmuls)), "68"])
        names = [row[2] for row in self.export_rows(dump)]
        self.assertEqual(names, sorted(names))

    def export_rows(self, dump):
        return Exported(dump.path, os.path.join(self.dir, "again")).rows("api_statistic")[1:]

    def test_counters_of_every_group(self):
        """Each cell by the formulas of operator-data c.2, of every row and group."""
        for metrics in made.EVENTS:
            with self.subTest(metrics):
                dump = self.make(slots=24, metrics=metrics)
                exported = self.export(dump)
                header, *rows = exported.rows("op_summary")
                names = header[21:]
                self.assertEqual(names, PMU_HEADERS[metrics])
                self.assertEqual([row[:21] for row in rows], expected_summary(dump))
                by_name = {slot.name or slot.kernel: slot for slot in dump.slots}
                for row in rows:
                    slot = by_name[row[4]]
                    self.assertEqual(row[21:], expected_counters(dump, slot, names), (slot.kind, names))

    def test_counters_of_each_execution(self):
        dump = self.make(slots=16, executions=3, metrics="MemoryAccess")
        header, *rows = self.export(dump).rows("op_summary")
        slots = {slot.name or slot.kernel: slot for slot in dump.slots}
        seen = {}
        for row in rows:
            slot = slots[row[4]]
            run = seen[slot] = seen.get(slot, -1) + 1
            self.assertEqual(row[21:], expected_counters(dump, slot, header[21:], run))
        self.assertEqual(set(seen.values()), {2})

    def test_devices_that_count_different_groups(self):
        groups = ("Memory", "ArithmeticUtilization")
        dump = self.make(slots=12, devices=(0, 1), metrics=groups[0])
        dump.metrics_of[1] = groups[1]
        header, *rows = self.export(dump).rows("op_summary")
        self.assertEqual(header[21:], list(dict.fromkeys(name for group in groups for name in PMU_HEADERS[group])))
        for row in rows:
            slot = next(s for s in dump.slots if [str(s.device), s.name or s.kernel] == [row[0], row[4]])
            dump.metrics = groups[slot.device]
            own = dict(zip(PMU_HEADERS[dump.metrics], expected_counters(dump, slot, PMU_HEADERS[dump.metrics])))
            self.assertEqual(row[21:], [own.get(name, "N/A") for name in header[21:]])

    def test_an_event_that_was_not_counted(self):
        """N/A; the vendor's analyser leaves out all tables of operators, and so do we when asked to."""
        dump = self.make(slots=24, metrics="Memory")
        counted = made.EVENTS["Memory"]
        made.EVENTS["Memory"] = tuple(events.replace("0x31", "0x99") for events in counted)
        try:
            dump.write()
        finally:
            made.EVENTS["Memory"] = counted
        exported = Exported(dump.path, os.path.join(self.dir, "ours"))
        header, *rows = exported.rows("op_summary")
        self.assertEqual([row[:21] for row in rows], expected_summary(dump))
        self.assertEqual({row[header.index("aic_l1_read_bw(GB/s)")] for row in rows}, {"N/A"})
        exported = Exported(dump.path, os.path.join(self.dir, "theirs"), more=("--compat", "msprof"))
        for name in ("op_summary", "op_statistic", "task_time", "communication_statistic"):
            self.assertFalse(exported.has(name), name)
        self.assertTrue(exported.has("api_statistic"))

    def test_a_cut_record_costs_one_record(self):
        """The vendor's analyser loses the whole type."""
        for base, lost in (("aging.compact.task_track", 1), ("unaging.compact.node_basic_info", 1)):
            with self.subTest(base):
                dump = made.Operators(self.dir).fill()
                records = dump.files["host", base]
                records[-1] = records[-1][:-10]
                dump.write()
                out = os.path.join(self.dir, "cut-" + base)
                exported = Exported(dump.path, out, expect=5)
                self.assertIn(f"host {base}: 1 record (54 bytes) could not be decoded", exported.text)
                whole = expected_summary(made.Operators(self.dir).fill())
                self.assertGreaterEqual(len(exported.rows("op_summary")) - 1, len(whole) - lost)
                shutil.rmtree(dump.path)

    def test_garbage_is_counted(self):
        dump = self.make()
        dump.files["host", "aging.api_event.data"].insert(3, b"\xff" * 40)
        dump.files[0, "stars_soc.data"].insert(3, b"\xff" * 64)
        exported = self.export(dump, expect=5)
        self.assertEqual(exported.rows("op_summary")[1:], expected_summary(dump))
        self.assertIn("aging.api_event.data: 1 record (40 bytes) could not be decoded", exported.text)

    def test_times_before_the_collection_are_left_out(self):
        dump = self.make()
        first = dump.slots[0]
        first.runs = [(start - 10**8, end - 10**8) for start, end in first.runs]
        dump.files[0, "stars_soc.data"] = []
        for slot in dump.slots:
            runs, slot.runs = slot.runs, []
            for start, end in runs:
                slot.runs.append((start, end))
                for function, count in ((0, start), (1, end)):
                    dump._stars(slot, function, count, made.SQE[slot.sqe], 0)
                if slot.context is not None:
                    for function, count in ((0b100010, start), (0b100011, end)):
                        dump._stars(slot, function, count, 0, slot.context, sub=6)
        self.assertLess(dump.wall_ns(first.runs[0][1]), BEGIN_US * 1000)
        rows = self.export(dump).rows("op_summary")[1:]
        expected = [row for row in expected_summary(dump) if row[4] != first.name]
        self.assertEqual([row[:10] for row in rows], [row[:10] for row in expected])
        self.assertTrue(math.isclose(float(rows[0][10]), 0))


if __name__ == "__main__":
    run_tests.main()
