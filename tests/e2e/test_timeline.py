#!/usr/bin/env python3
"""Timelines of a recorded dump: a strict reader of the trace JSON, a reader of our own for Perfetto's
protocol buffers, and chrome://tracing's viewer in a headless Chromium (docs/export.md)."""

import collections
import glob
import json
import os
import re
import shutil
import struct
import subprocess

import attach_client
import perfetto_reader
import trace_viewer
from profd_harness import BUILD, DaemonCase, eventually, main, scaled, temp_folder
from text_files import read_bytes

SORT_INDEX = {"AI Core Freq": 15, "NPU MEM": 17, "Acc PMU": 19, "HCCS": 20, "NIC": 21, "RoCE": 22,
              "PCIe": 23, "HBM": 24, "Stars Soc Info": 25, "Stars Chip Trans": 26, "LLC": 27,
              "SIO": 28, "QoS": 29, "CPU Usage": 9, "Memory Usage": 10}
DEVICE_PROCESSES = ["HBM", "LLC", "NPU MEM", "HCCS", "PCIe", "NIC", "RoCE", "QoS", "SIO"]
OPTIONS = ["--sys-hardware-mem-freq", "20", "--llc-profiling", "read", "--sys-io-sampling-freq", "20",
           "--sys-interconnection-freq", "20", "--host-sys-usage", "cpu,mem"]
COUNTERS = ("HBM 0/Read", "HBM 3/Write", "LLC 0 Read/Hit Rate", "Tx", "PCIe_post", "Port 0/Rx",
            "Device/HBM", "req_rx")


def strict(path):
    """JSON as the standard has it: no NaN, no key twice."""
    def constant(name):
        raise ValueError(name)

    def pairs(items):
        keys = [key for key, _ in items]
        if len(set(keys)) != len(keys):
            raise ValueError(f"keys twice: {keys}")
        return dict(items)

    with open(path, encoding="utf-8") as file:
        return json.load(file, parse_constant=constant, object_pairs_hook=pairs)


class Timeline(DaemonCase):
    devices = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        d = cls.daemon
        cls.out = temp_folder(cls)
        cls.dump = cls.record()["dump_path"]
        for name, more in (("plain", []), ("packed", ["--gzip"])):
            made = d.run("export", cls.dump, "--format", "trace,perfetto", "--out",
                         os.path.join(cls.out, name), *more)
            assert made.returncode == 0, made.stdout + made.stderr
        cls.json_path = cls.only("plain", "msprof_*.json")
        cls.perfetto_path = cls.only("plain", "trace_*.perfetto-trace")
        cls.events = strict(cls.json_path)
        cls.processes = {e["pid"]: e["args"]["name"] for e in cls.events
                         if e["name"] == "process_name"}

    @classmethod
    def record(cls):
        """A job of this process, which marks two steps."""
        ring = attach_client.Ring()
        cls.addClassCleanup(ring.close)
        path = cls.daemon.attach_socket
        with attach_client.Client(path, timeout=scaled(30)) as client:
            client.attach(ring, job_id="timeline", rank=3, devices=[0, 1])
            session = cls.daemon.ctl("start", "--job", "timeline", "--msproftx", "on",
                                     *OPTIONS)["session_id"]
            cls.daemon.until_records(session, 1000)
            for step in (1, 2):
                ring.put(attach_client.STEP_BEGIN, value=step)
                ring.put(attach_client.PUSH, "forward")
                ring.put(attach_client.MARK, "batch \N{SNOWMAN} \"read\"")
                ring.put(attach_client.POP)
                ring.put(attach_client.STEP_END, value=step)
            eventually(lambda: ring.taken() >= 10, what="the marks are taken")
            cls.daemon.until_records(session, 8000)
            cls.daemon.ctl("stop", session)
            return cls.daemon.until_state(session, "done")

    @classmethod
    def only(cls, *pattern):
        found = glob.glob(os.path.join(cls.out, *pattern))
        assert len(found) == 1, (pattern, os.listdir(cls.out))
        return found[0]

    def info_pid(self, device):
        with open(os.path.join(self.dump, f"device_{device}", f"info.json.{device}"),
                  encoding="utf-8") as file:
            return int(json.load(file)["pid"])

    def counters(self):
        return [e for e in self.events if e["ph"] == "C"]

    def test_json_is_what_viewers_expect(self):
        self.assertGreater(len(self.events), 1000)
        meta = collections.Counter()
        for event in self.events:
            self.assertIn(event["ph"], ("M", "C", "X", "I", "s", "t"), event)
            self.assertIn(event["pid"], self.processes, event)
            self.assertLess(event["pid"], 1 << 32)
            if event["ph"] == "M":
                meta[event["pid"], event["tid"], event["name"]] += 1
                continue
            self.assertIsNotNone(re.fullmatch(r"\d{16}\.\d{3}", event["ts"]), event)
            if event["ph"] == "C":
                self.assertTrue(event["args"], event)
                for value in event["args"].values():
                    self.assertIn(type(value), (int, float), event)
        self.assertEqual(set(meta.values()), {1}, "metadata is written once")

    def test_processes_are_the_vendors(self):
        labels = {e["pid"]: e["args"]["labels"] for e in self.events if e["name"] == "process_labels"}
        sort = {e["pid"]: e["args"]["sort_index"] for e in self.events
                if e["name"] == "process_sort_index"}
        for device in range(self.devices):
            for name in DEVICE_PROCESSES:
                pid = self.info_pid(device) << 10 | SORT_INDEX[name] << 5 | device
                self.assertEqual(self.processes.get(pid), name)
                self.assertEqual(labels[pid], f"NPU {device}")
                self.assertEqual(sort[pid], SORT_INDEX[name])
        self.assertIn("CPU", labels.values())

    def test_nothing_is_there_twice(self):
        # Links of one timestamp are distinguished by an arg, as the vendor has it.
        seen = collections.Counter(
            (e["pid"], e["name"], e["ts"], tuple(v for k, v in e["args"].items() if k.endswith("ID")))
            for e in self.counters())
        self.assertEqual([key for key, count in seen.items() if count > 1], [])

    def test_values_are_the_records(self):
        """NPU memory: no differences, no rates; every record is an event."""
        for device in range(self.devices):
            records = b""
            for k in range(100):
                path = os.path.join(self.dump, f"device_{device}", "data",
                                    f"npu_mem.data.{device}.slice_{k}")
                if not os.path.exists(path):
                    break
                records += read_bytes(path)
            expected = [hbm / 1024 for _, event, _, _, hbm in struct.iter_unpack("<IIQQQ", records)
                        if event == 1]
            pid = self.info_pid(device) << 10 | SORT_INDEX["NPU MEM"] << 5 | device
            got = [e["args"]["KB"] for e in self.counters()
                   if e["pid"] == pid and e["name"] == "Device/HBM"]
            self.assertGreater(len(expected), 10)
            self.assertEqual(got, expected)

    def test_perfetto_holds_the_same(self):
        trace = perfetto_reader.Trace(self.perfetto_path)
        self.assertEqual(trace.unbalanced(), set())
        plain = collections.Counter()
        for process, track, kind, timestamp, value in trace.events:
            if kind == "counter":
                plain[track.partition(" > ")[0], timestamp, value] += 1
        wanted = collections.Counter()
        for event in self.counters():
            timestamp = int(event["ts"].replace(".", ""))
            name = self.processes[event["pid"]]
            for key, value in event["args"].items():
                # Ids are part of a track's name there; the latency has no Rx.
                if key.endswith(" ID"):
                    continue
                if event["name"] == "PCIe_nonpost_latency" and key == "Rx":
                    continue
                wanted[name, timestamp, float(value)] += 1
        self.assertEqual(sum((wanted - plain).values()), 0, list((wanted - plain).items())[:5])
        self.assertEqual(sum((plain - wanted).values()), 0, list((plain - wanted).items())[:5])

    def test_marks_and_steps_are_slices(self):
        pids = [pid for pid, name in self.processes.items() if name == "Marks"]
        self.assertEqual(len(pids), 1)
        slices = [e for e in self.events if e["pid"] == pids[0] and e["ph"] != "M"]
        count = collections.Counter((e["ph"], e["name"]) for e in slices)
        self.assertEqual(count, {("X", "Step 1"): 1, ("X", "Step 2"): 1, ("X", "forward"): 2,
                                 ("I", 'batch \N{SNOWMAN} "read"'): 2})
        times = {(e["name"], e["ts"]): float(e.get("dur", 0)) for e in slices}
        steps = sorted((float(ts), float(ts) + dur) for (name, ts), dur in times.items()
                       if name.startswith("Step"))
        for (name, ts), dur in times.items():
            self.assertTrue(any(begin - 1 <= float(ts) and float(ts) + dur <= end + 1
                                for begin, end in steps), (name, ts, dur, steps))
        iterations = [e for e in self.events if e["ph"] == "X" and
                      self.processes[e["pid"]] == "Step Trace"]
        self.assertEqual(sorted({e["name"] for e in iterations}), ["Iteration 1", "Iteration 2"])
        trace = perfetto_reader.Trace(self.perfetto_path)
        kinds = collections.Counter((kind, value) for _, _, kind, _, value in trace.events
                                    if kind != "counter")
        self.assertEqual(kinds["begin", "Step 1"], 1)
        self.assertEqual(kinds["begin", "forward"], 2)
        self.assertEqual(kinds["instant", 'batch \N{SNOWMAN} "read"'], 2)

    def test_gzip_holds_the_same(self):
        packed = perfetto_reader.Trace(self.only("packed", "trace_*.perfetto-trace.gz"))
        trace = perfetto_reader.Trace(self.perfetto_path)
        self.assertEqual(sorted(packed.events), sorted(trace.events))

    def test_protoc_reads_it(self):
        protoc = shutil.which("protoc")
        if protoc is None:
            self.skipTest("SKIPPED: no protoc")
        with open(self.perfetto_path, "rb") as trace:
            read = subprocess.run([protoc, "--decode_raw"], stdin=trace, capture_output=True,
                                  check=False, timeout=scaled(120))
        self.assertEqual(read.returncode, 0, read.stderr[-500:])
        packets = len(re.findall(rb"^1 \{$", read.stdout, re.M))
        self.assertEqual(packets, perfetto_reader.Trace(self.perfetto_path).packets)

    def test_chromes_viewer_loads_it(self):
        if why := trace_viewer.missing():
            self.skipTest("SKIPPED: " + why)
        with trace_viewer.opened(self.json_path) as browser:
            self.check_model(browser)
            image = browser.screenshot(os.path.join(BUILD, "browser", "trace.png"))
            self.assertTrue(image.startswith(b"\x89PNG"))
            self.assertGreater(len(image), 20000, "the picture is empty")

    def check_model(self, browser):
        self.assertEqual(browser.run("return model.importWarnings.map(w => w.message)"), [])
        model = browser.run("""
            return Object.values(model.processes).map(p => ({
              pid: p.pid, name: p.name, labels: p.labels, sort: p.sortIndex,
              slices: Object.values(p.threads).map(t => t.sliceGroup.slices.length)
                  .reduce((a, b) => a + b, 0),
              counters: Object.values(p.counters).map(c => [c.name, c.numSeries, c.numSamples])}));""")
        found = {p["pid"]: p for p in model}
        self.assertEqual({pid: p["name"] for pid, p in found.items()}, self.processes)
        samples = {name: 0 for name in COUNTERS}
        expected = {name: 0 for name in COUNTERS}
        for process in model:
            for name, series, count in process["counters"]:
                self.assertGreater(series, 0, name)
                if name in samples:
                    samples[name] += count
        for event in self.counters():
            if event["name"] in expected:
                expected[event["name"]] += 1
        self.assertEqual(samples, expected)
        slices = collections.Counter(e["pid"] for e in self.events if e["ph"] in ("X", "I"))
        self.assertEqual({p["pid"]: p["slices"] for p in model if p["slices"]}, slices)
        for device in range(self.devices):
            pid = self.info_pid(device) << 10 | SORT_INDEX["HBM"] << 5 | device
            self.assertEqual(found[pid]["labels"], [f"NPU {device}"])
            self.assertEqual(found[pid]["sort"], SORT_INDEX["HBM"])


if __name__ == "__main__":
    main()
