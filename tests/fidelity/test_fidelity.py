"""Every value of every export, against a reference in plain Python that knows the format alone.

make_prof.py writes directories of all chips in the vendor collector's style and in profd's, and odd
ones; reference.py and expected_*.py say what must come out; profctl makes all formats; all is compared.
Only what docs/export-differences.md lists may differ from the vendor's result (see "difference:" there).
"""

import csv
import glob
import json
import math
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import tempfile
import unittest
from collections import Counter, defaultdict

import make_prof
from expected_csv import Csv
from expected_rows import Database, metrics, table_columns
from expected_timeline import SLOTS, Timeline
from make_prof import Options, Prof
from perfetto_reader import Trace
from reference import Reference
from reference_steps import NO_MODEL, Steps

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROFCTL = os.path.join(os.environ.get("PROFD_BUILD_DIR", os.path.join(ROOT, "build/dev")), "bin/profctl")
RUNNER = os.environ.get("PROFD_RUNNER", "").split()
FORMATS = "csv,trace,perfetto,sqlite,jsonl"
compared = Counter()


def close(a, b):
    """Sums and quotients may be taken in another order: the last bits of a double are no promise."""
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a == b
    return a == b or math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)


def same_cell(have, want):
    """Texts are equal. Where the exact value lies between two thousandths the last digit is that of
    the double, which depends on the order of a sum."""
    if have == want:
        return True
    try:
        a, b = float(have), float(want)
    except ValueError:
        return False
    return ("." in have and "." in want and len(have.split(".")[1]) > 6 and
            math.isclose(a, b, rel_tol=1e-14))


class Export:
    """What profctl made of a directory."""

    def __init__(self, path, out):
        self.path = path
        self._out = out
        run = subprocess.run(RUNNER + [PROFCTL, "--json", "export", path, "--format", FORMATS, "--out", out],
                             capture_output=True, text=True, timeout=120)
        self.code = run.returncode
        self.errors = run.stderr
        self.summary = json.loads(run.stdout) if run.stdout.strip().startswith("{") else {}

    def one(self, pattern):
        names = glob.glob(os.path.join(self._out, pattern))
        return names[0] if names else None

    def csv(self):
        tables = {}
        for name in glob.glob(os.path.join(self._out, "*.csv")):
            with open(name, newline="", encoding="utf-8") as file:
                tables[os.path.basename(name).rsplit("_", 1)[0]] = list(csv.reader(file))
        return tables

    def events(self):
        name = self.one("msprof_*.json")
        if name is None:
            return []
        with open(name, encoding="utf-8") as file:
            return json.load(file)

    def database(self):
        connection = sqlite3.connect(self.one("msprof_*.db"))
        connection.row_factory = sqlite3.Row
        return connection

    def lines(self):
        name = self.one("samples_*.jsonl")
        if name is None:
            return []
        with open(name, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class FidelityCase(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with open(os.path.join(ROOT, "export/table.cc"), encoding="utf-8") as file:
            cls.columns = table_columns(file.read())

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fidelity-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def check(self, prof):
        """Exports what `prof` wrote, and compares all."""
        path = prof.write()
        export = Export(path, os.path.join(self.folder, "out"))
        self.assertEqual(export.code, 0, export.errors)
        reference = Reference(path)
        self.problems = []
        self.compare_csv(export.csv(), Csv(reference))
        events = export.events()
        self.compare_events(events, Timeline(reference))
        self.compare_perfetto(export.one("trace_*"), events)
        self.compare_database(export.database(), Database(reference))
        self.compare_lines(export.lines(), reference)
        if self.problems:
            # A few of each kind.
            kinds = defaultdict(list)
            for what, text in self.problems:
                kinds[what].append(text)
            self.fail(f"{len(self.problems)} differ:\n" + "\n".join(
                f"{what} ({len(texts)}): {text}" for what, texts in kinds.items()
                for text in texts[:2]))
        return export

    def say(self, what, want, have, where=""):
        self.problems.append((what, f"{where}\n    want {want}\n    have {have}"))

    def compare_csv(self, have, want):
        for name in sorted(set(have) | set(want.tables)):
            if name not in have or name not in want.tables:
                self.say(f"{name}.csv", want.tables.get(name), have.get(name))
                continue
            ours, theirs = have[name], want.tables[name]
            if name in want.sorted_only:
                ours, theirs = [ours[0]] + sorted(ours[1:]), [theirs[0]] + sorted(theirs[1:])
            if len(ours) != len(theirs):
                self.say(f"{name}.csv rows", len(theirs), len(ours))
            for a, b in zip(ours, theirs):
                compared["csv"] += len(b)
                if len(a) != len(b) or not all(map(same_cell, a, b)):
                    self.say(f"{name}.csv", b, a)

    def compare_events(self, events, timeline):
        processes = {}
        devices = {}
        for event in events:
            if event["name"] == "process_name":
                processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "process_labels":
                label = event["args"]["labels"].split()
                devices[event["pid"]] = int(label[1]) if label[0] == "NPU" else -1
        have = defaultdict(list)
        for event in events:
            process = processes.get(event["pid"])
            if event["ph"] != "C" or process not in SLOTS:
                continue
            device = devices[event["pid"]]
            slot = make_prof.PID << 10 | SLOTS[process] << 5 | (device if device >= 0 else 31)
            if event["pid"] != slot:
                self.say(f"pid of {process}", slot, event["pid"])
            args = tuple(sorted((k, float(v)) for k, v in event["args"].items()))
            have[(process, device, event["tid"], event["name"], event["ts"])].append(args)
        want = defaultdict(list)
        for (*key, args), count in timeline.events.items():
            want[tuple(key)] += [args] * count
        for key in sorted(set(have) | set(want), key=str):
            a, b = sorted(have.get(key, [])), sorted(want.get(key, []))
            compared["events"] += sum(map(len, b))
            same = len(a) == len(b) and all(
                len(x) == len(y) and all(p[0] == q[0] and close(p[1], q[1]) for p, q in zip(x, y))
                for x, y in zip(a, b))
            if not same:
                self.say(f"event of {key[0]}", b, a, key)

    def compare_perfetto(self, name, events):
        """The native trace has the JSON's counters, each value on its own track."""
        if name is None:
            return
        trace = Trace(name)
        processes = {e["pid"]: [e["args"]["name"], ""] for e in events if e["name"] == "process_name"}
        for event in events:
            if event["name"] == "process_labels":
                processes[event["pid"]][1] = event["args"]["labels"]
        ids = ("acc_id", "PA Link ID", "PCIE ID")
        want = Counter()
        for event in events:
            if event["ph"] != "C":
                continue
            process = "{} ({})".format(*processes[event["pid"]])
            stamp = int(event["ts"].replace(".", ""))
            for arg, value in event["args"].items():
                # A counter of the vendor's that is always 0 has no track.
                constant = event["name"] == "PCIe_nonpost_latency" and arg == "Rx"
                if arg not in ids and not constant:
                    want[(process, stamp, float(value))] += 1
        have = Counter((p, t, float(v)) for p, _, kind, t, v in trace.events if kind == "counter")
        compared["perfetto"] += sum(want.values())
        for key in list(((want - have) + (have - want)))[:5]:
            self.say("native trace", want[key], have[key], key)

    def compare_database(self, connection, database):
        strings = dict(tuple(r) for r in connection.execute("select id, value from STRING_IDS"))
        texts = {"HBM": ("type",), "LLC": ("mode",), "NPU_MEM": ("type",), "QOS": ("eventName",),
                 "SIO": ("name",)}
        known = ("HCCS PCIE HBM DDR LLC NIC ROCE NPU_MEM NPU_MODULE_MEM QOS AICORE_FREQ ACC_PMU "
                 "SOC_BANDWIDTH_LEVEL SIO NETDEV_STATS CPU_USAGE HOST_MEM_USAGE HOST_DISK_USAGE "
                 "HOST_NETWORK_USAGE").split()
        own = [f"PROFD_{name.upper()}" for name in database.OWN]
        own_texts = {"PROFD_DVPP": ("engine",), "PROFD_VOLTAGE": ("rail",),
                     "PROFD_CHIP_TRANS": ("kind",), "PROFD_PROC_CPU": ("process",),
                     "PROFD_PROC_MEM": ("process",)}
        texts.update(own_texts)
        there = {r[0] for r in connection.execute("select name from sqlite_master where type='table'")}
        for table in known + own:
            want = [dict(row) for row in database.tables.get(table, [])]
            have = []
            if table in there:
                have = [dict(row) for row in connection.execute(f"select * from {table}")]
            for row in have:
                for column in texts.get(table, ()):
                    row[column] = strings.get(row[column])
                if table == "SIO":
                    del row["name"]
            for row in want if table == "SIO" else ():
                del row["die"]  # in the name

            def order(row):
                return tuple((k, str(row[k]) if not isinstance(row[k], (int, float)) else
                              f"{row[k]:030.3f}") for k in sorted(row))
            have.sort(key=order)
            want.sort(key=order)
            if len(have) != len(want):
                self.say(f"{table} rows", len(want), len(have))
            for a, b in zip(have, want):
                compared["sqlite"] += len(b)
                # Chip 0, whose rates are not rounded, has no database of the vendor's.
                slack = 1 if table == "LLC" and database.chip == 0 else 0
                if set(a) != set(b) or not all(
                        close(a[k], b[k]) or (k == "throughput" and abs(a[k] - b[k]) <= slack)
                        for k in b):
                    self.say(table, b, a)
        connection.close()

    def compare_lines(self, lines, reference):
        want = defaultdict(list)
        for t, device, metric, labels, value in metrics(reference, self.columns):
            want[(t, device, metric, labels)].append(float(value))
        have = defaultdict(list)
        for line in lines:
            device = -1 if line["device"] is None else line["device"]
            labels = tuple(sorted(line["labels"].items()))
            have[(line["time_ns"], device, line["metric"], labels)].append(float(line["value"]))
        for key in sorted(set(have) | set(want), key=str):
            a, b = sorted(have.get(key, [])), sorted(want.get(key, []))
            compared["jsonl"] += len(b)
            if len(a) != len(b) or not all(map(close, a, b)):
                self.say(f"line of {key[2]}", b, a, key)


class ChipTest(FidelityCase):
    """All channels of each chip, as the vendor's collector writes them."""


def add_chip(chip):
    def test(self):
        self.check(Prof(self.folder, chip, Options()).fill())
    setattr(ChipTest, f"test_chip_{chip:02d}", test)


for number in make_prof.CHIPS:
    add_chip(number)


class OddTest(FidelityCase):
    """Few samples, jitter, wraps, gaps, repeats, cuts, garbage, missing files."""

    def prof(self, chip, **options):
        options.setdefault("samples", 25)
        return Prof(self.folder, chip, Options(**options), devices=(0,)).fill()

    def edit(self, prof, base, change):
        """`change(records, rng)` gives the records of a channel anew."""
        for key in prof.files:
            if key[1] == base:
                prof.files[key] = change(prof.files[key], random.Random(7))

    def each(self, chips, **options):
        for chip in chips:
            with self.subTest(chip=chip):
                shutil.rmtree(self.folder)
                os.makedirs(self.folder)
                self.check(self.prof(chip, **options))

    def test_one_sample(self):
        self.each((0, 4, 5, 15), samples=1)

    def test_two_samples(self):
        self.each((0, 4, 5, 15), samples=2)

    def test_no_sample(self):
        prof = self.prof(5, samples=0)
        for key in prof.files:
            prof.files[key] = []
        self.check(prof)

    def test_jitter(self):
        self.each((1, 5, 7, 16), jitter=0.45, period_ns=10_007_013)

    def test_before_the_begin(self):
        absolute = ("hccs.data", "pcie.data", "nic.data", "netdev_stats.data", "qos.data",
                    "npu_module_mem.data", "stars_soc_profile.data", "host_mem.data",
                    "host_cpu.data", "lpmFreqConv.data")
        self.each((1, 5, 7, 15), first_ns=-10_500_000, period_ns=1_000_000, only=absolute)

    def test_version_two(self):
        self.each((5, 15), version="2.0", llc_mode="write")

    def test_one_direction(self):
        self.each((5,), hbm_events="read", llc_mode="write")

    def test_host_stamps_are_ns(self):
        self.each((5,), host_mhz="")

    def test_minimal_controls(self):
        self.each((3, 5), minimal=True, end_info=False)

    def test_as_profd_writes(self):
        self.each((5, 15), style="profd")

    def test_historical_names(self):
        self.each((5,), names="inference")
        self.each((5,), names="training")

    def test_slices_cut_anywhere(self):
        self.each((1, 5, 15), cut="anywhere", slices=4)

    def test_micros_wrap(self):
        self.each((4,), first_ns=(1 << 32) * 1000 - 200_000_000)

    def test_core_counters(self):
        self.each((1, 2, 4, 5, 7, 15), pmu=True)

    def test_records_repeated(self):
        """The same stamp twice, once with other counts."""
        for chip in (4, 5, 15):
            with self.subTest(chip=chip):
                shutil.rmtree(self.folder)
                os.makedirs(self.folder)
                prof = self.prof(chip)
                for base in ("hccs.data", "hbm.data", "stars_soc_profile.data", "netdev_stats.data"):
                    self.edit(prof, base, lambda records, rng: [
                        r for record in records for r in [record] * rng.choice((1, 1, 2))])
                self.check(prof)

    def test_ids_missing(self):
        for chip in (4, 5, 15):
            with self.subTest(chip=chip):
                shutil.rmtree(self.folder)
                os.makedirs(self.folder)
                prof = self.prof(chip)
                for base in ("hbm.data", "llc.data", "ddr.data", "npu_mem.data", "nic.data",
                             "stars_soc_profile.data", "npu_module_mem.data"):
                    self.edit(prof, base, lambda records, rng: [r for r in records if rng.random() > 0.1])
                self.check(prof)

    def test_counters_fall(self):
        """HCCS, network and process counters that begin anew."""
        prof = self.prof(5)

        def lines(columns):
            def change(records, rng):
                result = []
                for i, line in enumerate(records):
                    words = line.split()
                    if i >= len(records) // 2:
                        for c in columns:
                            words[c] = b"%d" % (int(words[c]) % 1000 + i * 7)
                    result.append(b" ".join(words) + b"\n")
                return result
            return change

        self.edit(prof, "hccs.data", lines((1, 2)))
        self.edit(prof, "netdev_stats.data", lines(range(1, 16)))
        for base in ("nic.data", "roce.data"):
            self.edit(prof, base, lines((4, 5, 6, 7, 10, 11, 12, 13)))
        self.check(prof)

    def test_headers_anywhere(self):
        prof = self.prof(5)
        for base, header in make_prof.HEADERS.items():
            self.edit(prof, base, lambda records, rng, header=header: [
                r for record in records for r in ([header, record] if rng.random() < 0.1 else [record])])
        self.check(prof)

    def test_garbage_between(self):
        """Lines and records that are none leave the rest as it is."""
        prof = self.prof(5)
        trash = [b"\n", b"garbage\n", b"1:2:3 x y\n", b"176167:000000001 -\n", b"\xff\xfe\x00\n"]
        for base in make_prof.HEADERS:
            self.edit(prof, base, lambda records, rng: [
                r for record in records for r in ([rng.choice(trash), record]
                                                  if rng.random() < 0.1 else [record])])
        bad = {
            "hbm.data": struct.pack("<QQII", 50_000, 1, 77, 0),
            "llc.data": struct.pack("<QQII", 50_000, 1, 0x99, 0),
            "npu_mem.data": struct.pack("<IIQQQ", 50_000, 9, 0, 1, 1),
            "stars_soc_profile.data": struct.pack("<HHIQ12I", 25, 0x1234, 0, 1 << 45, *[5] * 12),
        }
        for base, record in bad.items():
            self.edit(prof, base, lambda records, rng, record=record: [
                r for kept in records for r in ([record, kept] if rng.random() < 0.1 else [kept])])
        self.check(prof)

    def test_cut_at_the_end(self):
        prof = self.prof(5, slices=1)
        for base in ("pcie.data", "hbm.data", "llc.data", "qos.data", "npu_mem.data",
                     "npu_module_mem.data", "stars_soc_profile.data", "hccs.data", "nic.data"):
            self.edit(prof, base, lambda records, rng: records[:-1] + [records[-1][:13]])
        self.check(prof)

    def test_pcie_without_a_smallest(self):
        for chip in (1, 5):
            with self.subTest(chip=chip):
                shutil.rmtree(self.folder)
                os.makedirs(self.folder)
                prof = self.prof(chip, only=("pcie.data",))

                def change(records, rng):
                    result = []
                    for record in records:
                        fields = list(struct.unpack("<Q22I", record))
                        fields[2 + 3 * rng.randrange(1, 7)] = 0xFFFFF
                        result.append(struct.pack("<Q22I", *fields))
                    return result

                self.edit(prof, "pcie.data", change)
                self.check(prof)

    def test_unknown_files(self):
        prof = self.prof(5)
        prof.put(0, "data/strange.data.0.slice_0", b"what is this")
        prof.put(0, "data/hbm.data.7.slice_0", b"another device's")
        prof.put("host", "data/notes.txt", b"text")
        export = self.check(prof)
        self.assertIn("strange", json.dumps(export.summary))

    def test_without_host(self):
        prof = self.prof(5)
        prof.write()
        shutil.rmtree(prof.folder("host"))
        prof.write = lambda: prof.path
        self.check(prof)

    def test_host_alone(self):
        prof = self.prof(5)
        prof.write()
        shutil.rmtree(prof.folder(0))
        prof.write = lambda: prof.path
        self.check(prof)

    def test_without_end(self):
        self.each((5, 15), end_info=False)


class StepTest(FidelityCase):
    """Iterations of models and training steps from ts_track.data."""

    def records(self, chip, rng):
        mhz = float(make_prof.HWTS_MHZ[chip])

        def one(us, index, model, stream, tag):
            count = make_prof.DEVICE_COUNT + int(us * mhz)
            if chip in make_prof.V6:
                return struct.pack("<BBHLQQQHHI", 0, 10, 40, 0, count, index, model, tag, stream, 0)
            return struct.pack("<BBHLQQQHHHH", 0, 10, 40, 0, count, index, model, stream, 0, tag, 0)

        result = [one(1000, 0, 1, 1, 0)]
        at = 1000
        for k in range(12):
            marks = sorted(at + rng.randrange(10, 900) for _ in range(6))
            if k % 4 != 3:
                result += [one(marks[0], k, 1, 1, 2), one(marks[5], k, 1, 1, 3)]
            for i in range(k % 3):
                result += [one(marks[1] + i, k, 1, 3 + i, 10000 + 2 * i),
                           one(marks[2] + i, k, 1, 3 + i, 10001 + 2 * i)]
            at += 1000
            result.append(one(at, k, 1, 1, 4))
        result += [one(at + 50, 0, 1, 1, 1), one(20000, 0, 2, 1, 0), one(20700, 0, 2, 1, 1),
                   one(21000, 0, 3, 1, 0), one(21500, 0, 3, 1, 4)]
        for step in range(5):
            result += [one(30000 + step * 100, step, NO_MODEL, 1, 60000),
                       one(30060 + step * 100, step, NO_MODEL, 1, 60001)]
        return result

    def test_iterations(self):
        for chip in (1, 5, 7, 15):
            with self.subTest(chip=chip):
                shutil.rmtree(self.folder)
                os.makedirs(self.folder)
                prof = Prof(self.folder, chip, Options(only=()), devices=(0,)).fill()
                prof.files[(0, "ts_track.data")] = self.records(chip, random.Random(chip))
                export = Export(prof.write(), os.path.join(self.folder, "out"))
                self.assertEqual(export.code, 0, export.errors)
                steps = Steps(Reference(prof.path).places[0])
                want = steps.csv()
                compared["csv"] += sum(map(len, want))
                self.assertEqual(export.csv()["step_trace"], want)
                have = Counter((e["name"], e["tid"] - 70000 & 0xFFFFFFFF, e["ts"], e["dur"])
                               for e in export.events() if e["ph"] == "X")
                compared["events"] += sum(have.values())
                self.assertEqual(have, steps.slices())


def tearDownModule():
    print("values compared:", dict(compared))


if __name__ == "__main__":
    unittest.main()
