"""A recorded dump in every format: what other programs make of the files, and `profctl show DUMP`."""

import glob
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import run_tests  # noqa: E402
from profd_harness import ALL_OPTIONS, DaemonCase, profctl, scaled  # noqa: E402
from text_files import read_json, read_rows, write_bytes


class ExportTest(DaemonCase):
    dump = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.session = cls.daemon.record("--all", *ALL_OPTIONS, "--label", "exported", seconds=2)
        cls.dump = cls.session["dump_path"]

    def export(self, *args):
        """--json summary, and the files by their suffix."""
        out = os.path.join(self.daemon.base, self.id().rsplit(".", 1)[-1])
        summary = json.loads(profctl("export", self.dump, "--out", out, "--json", *args).stdout)
        self.assertTrue(summary["ok"])
        self.assertEqual(summary["failed"], [])
        listed = {output["path"] for output in summary["outputs"]}
        there = set(glob.glob(os.path.join(out, "*")))
        self.assertEqual(listed, there)
        for output in summary["outputs"]:
            self.assertEqual(os.path.getsize(output["path"]), output["bytes"], output["path"])
        return summary, {os.path.basename(path): path for path in there}

    def one(self, files, suffix):
        found = [path for name, path in files.items() if name.endswith(suffix)]
        self.assertEqual(len(found), 1, files)
        return found[0]

    def test_nothing_bad_in_what_we_wrote(self):
        summary, _ = self.export("--format", "jsonl")
        self.assertEqual([p for p in summary["problems"] if p["broken"]], [])
        for channel in summary["channels"]:
            self.assertEqual(channel["bad_bytes"], 0, channel)
            self.assertGreater(channel["records"], 0, channel)

    def test_csv(self):
        _, files = self.export("--format", "csv")
        kinds = {name.rsplit("_", 1)[0] for name in files}
        self.assertLessEqual({"hccs", "hbm", "pcie", "npu_mem", "llc_read_write"}, kinds)
        for path in files.values():
            rows = read_rows(path)
            self.assertGreater(len(rows), 1, path)
            self.assertEqual(rows[0][0], "Device_id")
            self.assertEqual({len(row) for row in rows}, {len(rows[0])}, path)

    def test_sqlite(self):
        _, files = self.export("--format", "sqlite")
        with sqlite3.connect(self.one(files, ".db")) as db:
            self.assertEqual(db.execute("PRAGMA integrity_check").fetchone()[0], "ok")
            self.assertGreater(db.execute("SELECT count(*) FROM HCCS").fetchone()[0], 0)
            self.assertGreater(db.execute("SELECT count(*) FROM profd_samples").fetchone()[0], 1000)

    def test_json_lines(self):
        summary, files = self.export("--format", "jsonl", "--devices", "0,host")
        fields = {"time_ns", "time", "node", "job", "rank", "device", "metric", "labels", "value"}
        devices = set()
        count = 0
        with open(self.one(files, ".jsonl"), encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                self.assertEqual(set(row), fields)
                devices.add(row["device"])
                count += 1
        self.assertEqual(devices, {0, None})
        self.assertEqual(count, summary["outputs"][0]["rows"])

    def test_samples_are_called_what_metrics_calls_them(self):
        """What /metrics has too has its labels, without those that name the NPU."""
        with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
            rows = [line.split(" | ") for line in file if line.startswith("| `atlas_npu_")]
        metrics = {row[0].strip("|` "): set(row[3].replace("`", "").split()) - {"npu", "uuid"} for row in rows}
        _, files = self.export("--format", "jsonl")
        exported = {}
        with open(self.one(files, ".jsonl"), encoding="utf-8") as file:
            for row in map(json.loads, file):
                if row["metric"].startswith("atlas_npu_"):
                    exported.setdefault(row["metric"], set()).add(frozenset(set(row["labels"]) - {"npu", "uuid"}))
        for name in ("atlas_npu_hccs_bandwidth_bytes_per_second", "atlas_npu_pcie_bandwidth_bytes_per_second",
                     "atlas_npu_pcie_read_latency_seconds", "atlas_npu_frequency_hertz"):
            self.assertIn(name, exported)
        for name, labels in exported.items():
            if name in metrics:
                self.assertEqual(labels, {frozenset(metrics[name])}, name)
            else:
                self.assertIn(name, ("atlas_npu_aicore_cycles",), "a metric that /metrics does not have")

    @unittest.skipUnless(shutil.which("promtool"), "no promtool here")
    def test_open_metrics(self):
        _, files = self.export("--format", "openmetrics")
        blocks = os.path.join(self.daemon.base, "blocks")
        made = subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics",
                               self.one(files, ".om"), blocks], capture_output=True, text=True,
                              check=False, timeout=scaled(120))
        self.assertEqual(made.returncode, 0, made.stdout[-2000:] + made.stderr[-2000:])
        self.assertTrue(os.listdir(blocks))

    def test_windows_and_channels(self):
        whole, _ = self.export("--format", "jsonl", "--channels", "hbm")
        out = os.path.join(self.daemon.base, "part")
        part = json.loads(profctl("export", self.dump, "--out", out, "--json", "--format",
                                  "jsonl", "--channels", "hbm", "--from", "+500ms", "--to", "-500ms").stdout)
        rows = part["outputs"][0]["rows"]
        self.assertTrue(0 < rows < whole["outputs"][0]["rows"])
        self.assertEqual({channel["file"] for channel in part["channels"]}, {"hbm.data"})

    def test_two_dumps_on_one_timeline(self):
        other = self.daemon.record("--all", *ALL_OPTIONS, seconds=1)["dump_path"]
        out = os.path.join(self.daemon.base, "both")
        summary = json.loads(profctl("export", self.dump, other, "--out", out, "--json",
                                     "--format", "csv,trace,sqlite,jsonl").stdout)
        self.assertEqual(len({channel["dump"] for channel in summary["channels"]}), 2)
        self.assertGreater(len(read_json(glob.glob(os.path.join(out, "msprof_*.json"))[0])), 0)

    def test_damage_costs_what_is_damaged(self):
        copy = os.path.join(self.daemon.base, "copy", os.path.basename(self.dump))
        shutil.copytree(self.dump, copy)
        data = os.path.join(copy, "device_0", "data")
        with open(os.path.join(data, "hbm.data.0.slice_0"), "ab") as file:
            file.write(b"xyz")
        write_bytes(os.path.join(data, "nonsense"), b"x")
        os.remove(os.path.join(copy, "device_1", "dev_start.log.1"))
        out = os.path.join(self.daemon.base, "damaged")
        result = profctl("export", copy, "--out", out, "--format", "jsonl", expect=5)
        self.assertIn("nonsense", result.stderr)
        self.assertRegex(result.stderr, r"hbm\.data: .*\(3 bytes\) could not be decoded")
        profctl("export", copy, "--out", out, "--format", "jsonl", "--force", "--allow-damaged")

    def test_a_limit_of_file_sizes_costs_the_formats_it_hits(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 10, 512 << 10))

        out = os.path.join(self.daemon.base, "limited")
        # The counters alone make more lines than that; folded has none.
        summary = json.loads(profctl("export", self.dump, "--out", out, "--json", "--format", "jsonl,folded",
                                     expect=5, preexec_fn=limit).stdout)
        self.assertEqual([failed["format"] for failed in summary["failed"]], ["jsonl"])
        self.assertIn("File too large", summary["failed"][0]["error"])
        self.assertEqual([name.rsplit(".", 1)[1] for name in os.listdir(out)], ["folded"])

    def test_show(self):
        shown = profctl("show", self.dump, "--ascii").stdout
        self.assertIn(self.session["session_id"], shown)
        for channel in ("hccs", "hbm", "pcie", "npu_mem"):
            self.assertIn("\n" + channel + " ", shown)
        self.assertTrue(shown.isascii())
        picture = profctl("show", self.dump, env=dict(os.environ, LC_ALL="C.UTF-8")).stdout
        self.assertTrue(set("▁▂▃▄▅▆▇█") & set(picture))
        self.assertNotIn("\033", picture)
        answer = json.loads(profctl("show", self.dump, "--json").stdout)
        self.assertEqual(answer["session_id"], self.session["session_id"])
        self.assertEqual(answer["state"], "done")
        self.assertGreater(len(answer["series"]), 20)
        for series in answer["series"]:
            self.assertTrue(series["min"] <= series["mean"] * (1 + 1e-9), series)
            self.assertTrue(series["mean"] <= series["max"] * (1 + 1e-9), series)


if __name__ == "__main__":
    run_tests.main()
