"""Every value of every export, against a reference in plain Python that knows the format alone.

make_prof.py writes directories of all chips in the vendor collector's style and in profd's, and odd
ones; reference.py and expected_*.py say what must come out; profctl makes all formats; all is compared.
Only what docs/export.md lists may differ from the vendor's result (see "difference:" there).
"""

import json
import os
import random
import shutil
import struct
from collections import Counter

import channels
import make_prof
import run_tests
from comparison import Export, FidelityCase, compared
from make_prof import Options, Prof
from reference import Reference
from reference_steps import NO_MODEL, Steps


class ChipTest(FidelityCase):
    """All channels of each chip, as the vendor's collector writes them."""


def add_chip(chip):
    def test(self):
        self.check(Prof(self.folder, chip, Options()).fill())
    setattr(ChipTest, f"test_chip_{chip:02d}", test)


for number in channels.CHIPS:
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

    def each(self, chips, change=None, code=0, **options):
        """Of each chip a dump, to which `change(prof)` has been done."""
        for chip in chips:
            with self.subTest(chip=chip):
                shutil.rmtree(self.folder)
                os.makedirs(self.folder)
                prof = self.prof(chip, **options)
                if change:
                    change(prof)
                self.check(prof, code=code)

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

    def test_host_timestamps_are_ns(self):
        self.each((5,), host_mhz="")

    def test_two_timestamps_apart(self):
        self.each((0, 1, 5, 15), cntvct_diff=1234567)

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
        """The same timestamp twice, once with other counts."""
        def repeat(prof):
            for base in ("hccs.data", "hbm.data", "stars_soc_profile.data", "netdev_stats.data"):
                self.edit(prof, base, lambda records, rng: [
                    r for record in records for r in [record] * rng.choice((1, 1, 2))])

        self.each((4, 5, 15), repeat, code=5)

    def test_ids_missing(self):
        def thin(prof):
            for base in ("hbm.data", "llc.data", "ddr.data", "npu_mem.data", "nic.data",
                         "stars_soc_profile.data", "npu_module_mem.data"):
                self.edit(prof, base, lambda records, rng: [r for r in records if rng.random() > 0.1])

        self.each((4, 5, 15), thin)

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
        self.check(prof, code=5)

    def test_cut_at_the_end(self):
        prof = self.prof(5, slices=1)
        for base in ("pcie.data", "hbm.data", "llc.data", "qos.data", "npu_mem.data",
                     "npu_module_mem.data", "stars_soc_profile.data", "hccs.data", "nic.data"):
            self.edit(prof, base, lambda records, rng: records[:-1] + [records[-1][:13]])
        self.check(prof, code=5)

    def test_pcie_without_a_smallest(self):
        def change(records, rng):
            result = []
            for record in records:
                fields = list(struct.unpack("<Q22I", record))
                fields[2 + 3 * rng.randrange(1, 7)] = 0xFFFFF
                result.append(struct.pack("<Q22I", *fields))
            return result

        self.each((1, 5), lambda prof: self.edit(prof, "pcie.data", change), only=("pcie.data",))

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


class ComparisonTest(FidelityCase):
    """The comparison itself: one record that is another is seen in every format."""

    def test_a_difference_is_seen(self):
        prof = Prof(self.folder, 5, Options(samples=25), devices=(0,)).fill()
        export = self.check(prof)
        prof.files = {key: list(records) for key, records in prof.files.items()}
        record = prof.files[(0, "hbm.data")][15]
        at = struct.calcsize("<Q")
        count, = struct.unpack_from("<Q", record, at)
        prof.files[(0, "hbm.data")][15] = record[:at] + struct.pack("<Q", count + 7_000_000) + record[at + 8:]
        shutil.rmtree(prof.path)
        self.compare(export, Reference(prof.write()))
        line = "line of atlas_npu_hbm_bandwidth_bytes_per_second"
        self.assertEqual({what for what, _ in self.problems}, {"hbm.csv", "event of HBM", "HBM", line})


def tearDownModule():
    print("values compared:", dict(compared))


if __name__ == "__main__":
    run_tests.main()
