#!/usr/bin/env python3
"""Activity files that their owner has spoilt: verify says so, show and every export go on and say what was lost."""

import contextlib
import glob
import os
import shutil
import sqlite3
import struct

import activity_files
import perfetto_reader
from profd_harness import DaemonCase, main, temp_folder
from sim_train import SimTrain
from text_files import read_bytes, read_json, write_bytes

FORMATS = ("csv", "trace", "perfetto", "sqlite", "jsonl", "samples", "openmetrics", "folded")
KERNEL = struct.Struct(activity_files.FORMATS["kernel"][1])


class Hostile(DaemonCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = temp_folder(cls)
        job = SimTrain(cls.daemon.attach_socket, os.path.join(cls.folder, "job"), steps=100_000)
        try:
            job.attached(cls.daemon, 2)
            session = cls.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10",
                                     "--duration", "500ms")
            cls.dump = cls.daemon.until_state(session["session_id"], "done")["dump_path"]
        finally:
            job.close()
        cls.kernels = activity_files.read(cls.dump, "kernel")
        assert len(cls.kernels) > 100, len(cls.kernels)

    def setUp(self):
        self.spoilt = os.path.join(self.folder, self._testMethodName, os.path.basename(self.dump))
        shutil.copytree(self.dump, self.spoilt)
        self.slice = os.path.join(self.spoilt, "host", "data", "activity_kernel.data.slice_0")
        self.names = os.path.join(self.spoilt, "host", "profd", activity_files.NAMES)

    def verify_says(self, *words):
        report = self.daemon.run("verify", self.spoilt, json_output=False)
        self.assertNotEqual(report.returncode, 0, report.stdout)
        for word in words:
            self.assertIn(word, report.stdout + report.stderr)

    def shown(self):
        """The operators by name, all ranks together; text and JSON are both there."""
        text = self.daemon.run("show", self.spoilt, json_output=False)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertNotRegex(text.stdout, r"[\x00-\x09\x0b-\x1f\x7f]")
        totals = {}
        for row in self.daemon.ctl("show", self.spoilt)["kernels"]:
            totals[row["name"]] = totals.get(row["name"], 0) + row["count"]
        return totals

    def exported(self, kernels, *says, database=None):
        """Every format, readable, with so many kernels; the exit code and these words say what is lost."""
        out = os.path.join(self.folder, self._testMethodName, "out")
        report = self.daemon.run("export", self.spoilt, "--format", ",".join(FORMATS), "--out", out)
        self.assertEqual(report.returncode, 5, report.stderr)
        for words in says:
            self.assertIn(words, report.stderr)
        files = {os.path.basename(path): path for path in glob.glob(os.path.join(out, "**", "*"), recursive=True)}
        [path] = [p for name, p in files.items() if name.startswith("msprof_") and name.endswith(".json")]
        events = [e for e in read_json(path) if e["ph"] == "X" and "type" in e.get("args", {})]
        self.assertEqual(len(events), kernels)
        [path] = [p for name, p in files.items() if name.endswith(".perfetto-trace")]
        trace = perfetto_reader.Trace(path)
        self.assertEqual(trace.unbalanced(), set())
        self.assertEqual(sum("type" in s[5] for s in trace.slices()), kernels)
        [path] = [p for name, p in files.items() if name.endswith(".db")]
        with contextlib.closing(sqlite3.connect(path)) as tables:
            self.assertEqual(tables.execute("pragma integrity_check").fetchone(), ("ok",))
            self.assertEqual(tables.execute("select count(*) from profd_kernels").fetchone(), (database or kernels,))
        for name, path in files.items():
            if name.endswith((".jsonl", ".csv", ".txt", ".folded")):
                read_bytes(path).decode("utf-8")

    def test_a_slice_that_is_cut(self):
        data = read_bytes(self.slice)
        write_bytes(self.slice, data[:-20])
        left = len(self.kernels) - 1
        self.verify_says("activity_kernel.data.slice_0")
        self.assertEqual(sum(self.shown().values()), left)
        self.exported(left, "shorter than written (20 bytes)", f"({KERNEL.size - 20} bytes) could not be decoded")

    def test_a_slice_of_another_record_size(self):
        write_bytes(self.slice, read_bytes(self.slice) + bytes(13))
        self.verify_says("activity_kernel.data.slice_0")
        self.exported(len(self.kernels), "longer than written", "(13 bytes) could not be decoded")

    def test_times_beyond_the_session(self):
        records = [list(r) for r in KERNEL.iter_unpack(read_bytes(self.slice))]
        records[0][0] = 2**63 - 1
        records[1][0] = -1
        records[2][1] = 2**64 - 1
        records[3][0] = 0  # long before the begin of the session
        write_bytes(self.slice, b"".join(KERNEL.pack(*r) for r in records))
        self.verify_says("activity_kernel.data.slice_0")
        self.assertEqual(sum(self.shown().values()), len(self.kernels) - 3)
        # The database has the one of long before; timelines begin with the session, as the vendor's.
        self.exported(len(self.kernels) - 4, "3 records (144 bytes) could not be decoded", database=len(self.kernels) - 3)

    def test_names_that_are_none(self):
        lines = read_bytes(self.names).splitlines(keepends=True)
        names = {k.name for k in self.kernels}
        first, second = [i for i, line in enumerate(lines) if line.decode().rstrip("\n").split("\t")[1] in names][:2]
        lost = lines[second].decode().split("\t")[0]
        lines[first] = lines[first].split(b"\t")[0] + b"\t\x1b[31m\x00\xff\xfeMatMul\n"
        lines[second] = b"4294967296\ttoo large\n"
        lines.insert(second, b"no tab\n")
        write_bytes(self.names, b"".join(lines))
        self.verify_says("activity_names.tsv")
        shown = self.shown()
        self.assertEqual(sum(shown.values()), len(self.kernels))
        self.assertIn(f"name {lost}", shown, "whose line is none")
        self.assertEqual(len(set(shown) - names), 2, "and the spoilt one")
        self.exported(len(self.kernels), "activity_names.tsv: 2 lines are not names")

    def test_no_names_at_all(self):
        os.remove(self.names)
        self.verify_says("activity_names.tsv")
        shown = self.shown()
        self.assertTrue(all(name.startswith("name ") for name in shown), shown)
        self.exported(len(self.kernels), "activity_names.tsv: damaged: 1 of 1 files missing")

    def test_a_folder_and_a_link_in_place_of_files(self):
        os.remove(self.slice)
        os.symlink("/etc/passwd", self.slice)
        os.remove(self.names)
        os.mkdir(self.names)
        self.verify_says("activity_kernel.data.slice_0")
        self.assertEqual(self.shown(), {})
        self.exported(0, "activity_kernel.data", "activity_names.tsv")

    def test_nothing_but_noise(self):
        write_bytes(self.slice, os.urandom(len(self.kernels) * KERNEL.size))
        self.verify_says("activity_kernel.data.slice_0")
        known = sum(self.shown().values())
        self.assertLess(known, len(self.kernels))
        report = self.daemon.run("export", self.spoilt, "--format", ",".join(FORMATS), "--out", self.spoilt + ".out")
        self.assertEqual(report.returncode, 5, report.stderr)
        self.assertIn(f"{len(self.kernels) - known} records", report.stderr)


if __name__ == "__main__":
    main()
