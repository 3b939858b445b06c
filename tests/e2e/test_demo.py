#!/usr/bin/env python3
"""The whole path once: start with everything, record, stop, look, fetch, remove. And every byte of
the dump against an independent reader. With --short: two devices, for builds that are slow."""

import os
import stat
import sys

import prof_reader
from profd_harness import ALL_OPTIONS, DaemonCase, main, scaled, temp_folder
from text_files import files_below, read_bytes

SHORT = "--short" in sys.argv
# name -> (period of the timestamps in ns, us or counter cycles, records per timestamp and device)
PERIODIC = {
    "hccs.data": (20_000_000, 1),
    "pcie.data": (20_000_000, 1),
    "nic.data": (10_000_000, 1),
    "roce.data": (10_000_000, 1),
    "dvpp.data": (10_000_000, 14),
    "hbm.data": (10_000, 8),
    "llc.data": (10_000, 16),
    "npu_mem.data": (10_000, 1),
    "npu_mem.app": (10_000, 1),
    "qos.data": (500_000, 1),
}
SECONDS = 2


class DemoPath(DaemonCase):
    devices = 2 if SHORT else 8

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        d = cls.daemon
        d.ctl("start", "--job", "demo-1", "--devices", f"0-{cls.devices - 1}",
              "--label", "first try", "--rank", "3", *ALL_OPTIONS)
        sessions = d.ctl("list", "--job", "demo-1")["sessions"]
        cls.session_id = sessions[0]["session_id"]
        # Enough of everything: the fastest collectors have made two seconds' worth.
        wanted = SECONDS * cls.devices * 100 * 24
        cls.while_running = d.until_records(cls.session_id, wanted)
        cls.stopped = d.ctl("stop", cls.session_id)["sessions"][0]
        cls.session = d.show(cls.session_id)
        cls.dump = prof_reader.read(cls.session["dump_path"])

    def test_session_answers(self):
        running, session = self.while_running, self.session
        self.assertEqual(running["state"], "running")
        self.assertEqual((session["state"], session["reason"]), ("done", "stopped by uid 0"))
        self.assertEqual((session["job_id"], session["rank"], session["label"]),
                         ("demo-1", 3, "first try"))
        self.assertEqual(session["devices"], list(range(self.devices)))
        self.assertEqual(self.stopped["session_id"], self.session_id)
        self.assertEqual(session["dropped_records"], 0)
        self.assertGreater(session["ended_ns"], session["started_ns"])
        results = {}
        for outcome in session["outcomes"]:
            results.setdefault(outcome["collector"], set()).add(outcome["result"])
        unsupported = {name for name, result in results.items() if result == {"unsupported"}}
        self.assertLessEqual(unsupported, {"ddr"})
        for name, result in results.items():
            if name not in unsupported:
                self.assertEqual(result, {"finished"}, name)
        for name in ("hbm", "llc", "hccs", "pcie", "nic", "roce", "dvpp", "npu_mem", "qos",
                     "soc_profile", "aicore_freq", "host_cpu", "host_mem"):
            self.assertIn(name, results)

    def test_listed_and_filtered(self):
        listed = self.daemon.ctl("list")["sessions"]
        self.assertIn(self.session_id, [s["session_id"] for s in listed])
        self.assertEqual(self.daemon.ctl("list", "--job", "other")["sessions"], [])
        self.assertEqual(self.daemon.ctl("list", "--active")["sessions"], [])

    def test_reader_is_happy(self):
        self.assertEqual(self.dump.problems, [])
        self.assertEqual(self.dump.notes, [])

    def test_every_channel_is_there(self):
        names = set(PERIODIC) | {"npu_module_mem.data", "stars_soc_profile.data",
                                 "lpmInfoConv.data"}
        for device in range(self.devices):
            have = {name for (dev, name), ch in self.dump.channels.items()
                    if dev == device and len(ch)}
            self.assertLessEqual(names, have, device)
        for name in ("host_sys_cpu.data", "host_sys_mem.data", "1-CpuUsage.data", "1-Memory.data"):
            self.assertIn(name, self.dump.blocks)

    def test_no_grid_point_is_missing(self):
        """The lossless claim: what the driver made from start to stop is in the dump."""
        duration = self.session["ended_ns"] - self.session["started_ns"]
        for device in range(self.devices):
            for name, (period, per_timestamp) in PERIODIC.items():
                with self.subTest(device=device, channel=name):
                    channel = self.dump[(device, name)]
                    timestamps = channel.timestamps()
                    self.assertEqual(prof_reader.time_gaps(timestamps, period), [])
                    self.assertEqual(len(channel), len(timestamps) * per_timestamp)
                    # The grid covers the session: what is outside is start and stop themselves.
                    unit = {10_000: 1000, 500_000: 20}.get(period, 1)
                    span = (timestamps[-1] - timestamps[0]) * unit
                    self.assertLess(span, duration)
                    self.assertGreater(span, duration - scaled(1.5e9))

    def test_soc_records_lack_nothing(self):
        for device in range(self.devices):
            channel = self.dump[(device, "stars_soc_profile.data")]
            counts = {}
            for record in channel.records:
                counts.setdefault(record.key[0], []).append(record)
            self.assertLessEqual({25, 26, 27, 28}, set(counts))
            for key, records in channel.series().items():
                with self.subTest(device=device, key=key):
                    period = {25: 1_000_000, 27: 1_000_000}.get(key[0], 500_000)
                    if key[0] == 26:
                        period = prof_reader.steps([r.timestamp for r in records])[0]
                    self.assertEqual(prof_reader.time_gaps([r.timestamp for r in records], period), [])

    def test_manifest_counts_what_the_reader_counts(self):
        manifest = self.dump.manifest
        self.assertEqual((manifest["profd_manifest"], manifest["state"]), (1, "done"))
        self.assertEqual(manifest["session"]["job_id"], "demo-1")
        seen = 0
        for entry in manifest["channels"]:
            if entry["device"] < 0 or entry["state"] == "unsupported":
                continue
            with self.subTest(device=entry["device"], file=entry["file"]):
                channel = self.dump[(entry["device"], entry["file"])]
                self.assertEqual(entry["records"], len(channel))
                self.assertEqual(entry["bytes"], channel.bytes)
                self.assertEqual(entry["state"], "finished")
                self.assertEqual((entry["dropped"], entry["gaps"], entry["garbage_bytes"]),
                                 ([], [], 0))
                if entry["collector"] != "aicore_freq":
                    self.assertGreater(entry["hz_asked"], 0)
                    self.assertEqual(entry["hz_asked"], entry["hz_effective"])
                seen += 1
        self.assertGreaterEqual(seen, 14 * self.devices)
        files = {f["path"]: f["bytes"] for f in manifest["files"]}
        on_disk = {os.path.relpath(path, self.dump.path): os.path.getsize(path) for path in files_below(self.dump.path)
                   if not path.endswith((".done", "/profd_manifest.json"))}
        self.assertEqual(files, on_disk)
        self.assertEqual(manifest["data_bytes"], sum(on_disk.values()))

    def test_outcomes_agree_with_the_dump(self):
        for outcome in self.session["outcomes"]:
            device = -1 if outcome["device"] is None else outcome["device"]
            entries = [e for e in self.dump.manifest["channels"]
                       if (e["collector"], e["device"]) == (outcome["collector"], device)]
            self.assertEqual(outcome["records"], sum(e["records"] for e in entries), outcome)

    def test_wall_times_lie_inside_the_session(self):
        start, end = self.session["started_ns"], self.session["ended_ns"]
        for (device, name), channel in self.dump.channels.items():
            if name.startswith("lpm") or not channel.records:
                continue  # may begin with the value that held before
            for record in (channel.records[0], channel.records[-1]):
                self.assertIsNotNone(record.wall, (device, name))
                # Correlation is good to microseconds; a millisecond would be a wrong formula.
                self.assertGreaterEqual(record.wall, start - 1_000_000, (device, name))
                self.assertLessEqual(record.wall, end + 1_000_000, (device, name))

    def test_values_are_plausible(self):
        for device in range(self.devices):
            hccs = self.dump[(device, "hccs.data")].records
            self.assertGreater(hccs[-1].values["tx"], hccs[0].values["tx"])
            for name in ("nic.data", "roce.data"):
                records = self.dump[(device, name)].records
                for column in ("rxPackets", "rxBytes", "txPackets", "txBytes"):
                    values = [r.values[column] for r in records]
                    self.assertEqual(values, sorted(values), (device, name, column))
                self.assertGreater(records[-1].values["txBytes"], records[0].values["txBytes"])
            hbm = self.dump[(device, "hbm.data")]
            total = sum(r.values["count"] for r in hbm.records) * 32
            span = (hbm.records[-1].timestamp - hbm.records[0].timestamp) / 1e6
            self.assertTrue(1e9 < total / span < 4e12, f"{total / span:.3g} B/s")
            for record in self.dump[(device, "lpmInfoConv.data")].records:
                for _, value in record.values["entries"]:
                    low, high = (100, 2500) if record.key == 0 else (300, 15000)
                    self.assertTrue(low <= value <= high, (record.key, value))
            memory = self.dump[(device, "npu_mem.data")].records
            self.assertTrue(all(0 < r.values["hbm"] < 128 << 30 for r in memory))
            busy = [r.values["utilization"] for r in self.dump[(device, "dvpp.data")].records]
            self.assertTrue(all(0 <= value <= 100 for value in busy))
            self.assertTrue(self.dump[(device, "qos.data")].records[0].values)

    def test_modes(self):
        for base, _, names in os.walk(self.dump.path):
            self.assertEqual(stat.S_IMODE(os.stat(base).st_mode), 0o750, base)
            for name in names:
                self.assertEqual(stat.S_IMODE(os.stat(os.path.join(base, name)).st_mode), 0o640,
                                 name)

    def test_show_for_people(self):
        text = self.daemon.run("show", self.session_id, json_output=False)
        self.assertEqual(text.returncode, 0)
        self.assertIn("first try", text.stdout)
        self.assertIn("hccs", text.stdout)
        self.assertNotIn("\x1b", text.stdout)

    def test_zz_fetch_and_remove(self):
        out = temp_folder(self)
        answer = self.daemon.ctl("fetch", self.session_id, "--out", out)
        path = os.path.join(out, answer["dump_name"])
        self.assertEqual(answer["path"], path)
        for original in files_below(self.dump.path):
            copy = os.path.join(path, os.path.relpath(original, self.dump.path))
            self.assertEqual(read_bytes(original), read_bytes(copy), copy)
        prof_reader.read_valid(path)
        # Not again over what is there.
        self.daemon.ctl("fetch", self.session_id, "--out", out, expect=(1, 3, 5))
        before = sum(f["bytes"] for f in self.dump.manifest["files"])
        removed = self.daemon.ctl("rm", self.session_id)["removed"]
        self.assertEqual(removed[0]["session_id"], self.session_id)
        self.assertGreaterEqual(removed[0]["freed_bytes"], before)
        self.assertFalse(os.path.exists(self.dump.path))
        self.daemon.ctl("show", self.session_id, expect=4)
        self.daemon.ctl("rm", self.session_id, expect=4)
        self.daemon.ctl("fetch", self.session_id, expect=4)


class RateOfAnything(DaemonCase):
    """Other chips: what each has comes out, and nothing the analyser does not take from it."""

    chip = "A3"

    def check(self, dump, names):
        self.assertEqual(dump.problems, [])
        have = {name for (device, name), ch in dump.channels.items() if device == 0 and len(ch)}
        self.assertLessEqual(set(names), have)

    def test_a3(self):
        session = self.daemon.record(*ALL_OPTIONS, seconds=1)
        self.check(prof_reader.read(session["dump_path"]), PERIODIC)


class Older(RateOfAnything):
    chip = "910"

    def test_a3(self):
        session = self.daemon.record(*ALL_OPTIONS, seconds=1)
        dump = prof_reader.read(session["dump_path"])
        self.check(dump, ["ddr.data", "hbm.data", "hccs.data", "pcie.data"])
        self.assertEqual((dump.host["info"]["platform_version"], dump.devices[0]["info"]["platform_version"]), ("1", "1"))
        self.assertNotIn((0, "stars_soc_profile.data"), dump.channels)


if SHORT:
    sys.argv.remove("--short")
    del RateOfAnything, Older

if __name__ == "__main__":
    main()
