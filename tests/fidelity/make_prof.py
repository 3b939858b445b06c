"""Writes PROF directories with known records, the way the vendor's collector does, or profd.

Knows the description of the format alone. Values come from a seeded generator; what is odd about a
directory (cuts, garbage, missing ids, ...) is said by the case that asks for it.
"""

import json
import os
import random

from channels import (AIC_MHZ, BEGIN_US, DEVICE_COUNT, DEVICE_NS, HAS, HEADERS, HOST_COUNT,
                      HOST_MAKERS, HOST_RAW, HWTS_MHZ, MAKERS, ONE_SLICE, PID, PMU_FILES, V6)
from text_files import read_json, write_bytes


class Options:
    """What is special about a directory. Times: `samples` of each channel, `period_ns` apart with
    `jitter` (a fraction of the period); `first_ns` after the start of the session."""

    def __init__(self, **changes):
        self.samples = 60
        self.period_ns = 20_000_000
        self.jitter = 0.0
        self.first_ns = 40_000_000
        self.llc_mode = "read"
        self.hbm_events = "read,write"
        self.qos_events = "SDMA,AIC,AIV,DVPP"
        self.version = "1.0"
        self.pmu = False        # sample-based AI Core counters
        self.host_mhz = "100.000000"
        self.cntvct_diff = 0    # host counts between its two timestamps
        self.minimal = False    # control files with the needed keys only
        self.style = "vendor"   # or "profd": manifest, one slice
        self.slices = 3
        self.cut = "record"     # or "anywhere"
        self.names = "slice"    # or "inference", "training": historical names
        self.end_info = True
        self.only = None        # these channels only
        self.__dict__.update(changes)


class Clock:
    """Timestamps of one device: sample i is at begin + first + i * period."""

    def __init__(self, options, chip, rng):
        self.options = options
        self.mhz = float(HWTS_MHZ[chip])
        self._rng = rng

    def offsets(self, count=None):
        """ns since the session's start."""
        o = self.options
        result = []
        for i in range(o.samples if count is None else count):
            shift = int(self._rng.uniform(-o.jitter, o.jitter) * o.period_ns) if o.jitter else 0
            result.append(o.first_ns + i * o.period_ns + shift)
        return result

    def counter(self, offset):
        return DEVICE_COUNT + int(offset * self.mhz / 1000)


PMU_EVENTS = {False: "0x8,0xa,0x9,0xb,0xc,0xd,0x54,0x55",
              True: "0x501,0x301,0x1,0x701,0x202,0x203,0x34,0x35,0x714"}


class Prof:
    def __init__(self, parent, chip, options, seed=1, devices=(0, 1), number=1):
        self.options = options
        self.chip = chip
        self.devices = devices
        name = f"PROF_{number:06d}_20260101080000000_" + "ABCDEFGHIJKLMNOP"
        self.path = os.path.join(parent, name)
        self._rng = random.Random(seed * 1000 + chip)
        self.files = {}  # (place, base) -> list of records

    def fill(self):
        """Makes the records of all channels the chip has."""
        o = self.options
        for device in self.devices:
            clock = Clock(o, self.chip, self._rng)
            for base, make in MAKERS.items():
                if self.chip not in HAS[base] or (base in PMU_FILES) != o.pmu:
                    continue
                if o.only is not None and base not in o.only:
                    continue
                self.files[(device, base)] = make(o, self.chip, clock, self._rng, device)
        clock = Clock(o, self.chip, self._rng)
        for base, make in HOST_MAKERS.items():
            if o.only is None or base in o.only:
                self.files[("host", base)] = make(o, clock, self._rng)
        return self

    def write(self):
        for device in self.devices:
            self._write_controls(device)
        self._write_controls("host")
        for (place, base), records in self.files.items():
            self._write_channel(place, base, records)
        return self.path

    def folder(self, place):
        return os.path.join(self.path, "host" if place == "host" else f"device_{place}")

    def put(self, place, name, data):
        path = os.path.join(self.folder(place), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_bytes(path, data if isinstance(data, bytes) else data.encode())

    def change(self, place, name, how):
        """A control file that is written already."""
        data = read_json(self.folder(place), name)
        how(data)
        self.put(place, name, json.dumps(data))

    def _file_name(self, place, base, slice_number):
        if place == "host":
            return f"data/{base}.slice_{slice_number}"
        if self.options.names == "inference":
            return f"data/{base}.0.{place}.{slice_number}"
        if self.options.names == "training":
            return f"data/{base}.0.dev.profiler_default_tag.{place}.slice_{slice_number}"
        return f"data/{base}.{place}.slice_{slice_number}"

    def _write_channel(self, place, base, records):
        o = self.options
        parts = 1 if base in ONE_SLICE or o.style == "profd" else max(1, min(o.slices, len(records)))
        header = HEADERS.get(base, b"")
        if o.cut == "anywhere":
            data = header + b"".join(records)
            marks = [len(data) * i // parts for i in range(parts + 1)]
            chunks = [data[marks[i] + (3 if 0 < i else 0):marks[i + 1] + (3 if i + 1 < parts else 0)]
                      for i in range(parts)]
        else:
            marks = [len(records) * i // parts for i in range(parts + 1)]
            chunks = [b"".join(records[marks[i]:marks[i + 1]]) for i in range(parts)]
            if header:
                chunks = [header + chunk if base == "hccs.data" or i == 0 else chunk
                          for i, chunk in enumerate(chunks)]
        for i, chunk in enumerate(chunks):
            name = self._file_name(place, base, i)
            self.put(place, name, chunk)
            self.put(place, name + ".done", f"filesize:{len(chunk)}\n")

    def _write_controls(self, place):
        host = place == "host"
        suffix = "" if host else f".{place}"
        o = self.options
        info = {
            "platform_version": str(self.chip), "CPU": [{"Frequency": o.host_mhz}],
            "DeviceInfo": [], "netCard": [{"netCardName": "eth0", "speed": 10000}],
            "hostname": "node-1", "pid": str(PID), "memoryTotal": 1583221744,
        }
        sample = {"ai_core_profiling_mode": "sample-based" if o.pmu else "task-based",
                  "devices": "64" if host else str(place),
                  "llc_profiling": "bandwidth" if self.chip == 0 else o.llc_mode}
        if host:
            info.update(cpuNums=192, sysClockFreq=100)
            sample.update(host_disk_freq=50)
        else:
            info["DeviceInfo"] = [{"ctrl_cpu": "0", "ai_cpu": "2,3,4,5,6,7",
                                   "hwts_frequency": HWTS_MHZ[self.chip],
                                   "aic_frequency": AIC_MHZ[self.chip]}]
            sample.update(hbm_profiling_events=o.hbm_events, qosEvents=o.qos_events)
        if o.version != "1.0" or not o.minimal:
            info["version"] = o.version
        if o.pmu and not host:
            events = PMU_EVENTS[self.chip in V6]
            for core in ("ai_core", "aiv"):
                sample.update({f"{core}_profiling_mode": "sample-based",
                               f"{core}_metrics": "PipeUtilization",
                               f"{core}_profiling_events": events})
        if not o.minimal:
            info.update(jobInfo="job", OS="Linux", hwtype="x", platform="", pid_name="python3",
                        upTime="1 2", cpuCores=1, netCardNums=1, rank_id=-1, drvVersion=467473)
            info.setdefault("devices", "64" if host else str(place))
            sample.update(ddr_profiling_events="read,write", hbmInterval=20, result_dir="x",
                          jobInfo="job", prof_level="l1", ai_core_profiling="on")
        self.put(place, "info.json" + suffix, json.dumps(info))
        self.put(place, "sample.json", json.dumps(sample))
        self.put(place, "start_info" + suffix, json.dumps(
            {"collectionTimeBegin": str(BEGIN_US), "clockMonotonicRaw": str(HOST_RAW)}))
        if o.end_info:
            span = 30_000_000
            self.put(place, "end_info" + suffix, json.dumps(
                {"collectionTimeEnd": str(BEGIN_US + span),
                 "clockMonotonicRaw": str(HOST_RAW + span * 1000)}))
        tag = "[Host]" if host else f"[Device{place}]"
        self.put(place, "host_start.log" + suffix,
                 f"{tag}\nclock_monotonic_raw: {HOST_RAW}\ncntvct: {HOST_COUNT}\n"
                 f"cntvct_diff: {o.cntvct_diff}\n")
        if not host:
            self.put(place, "dev_start.log" + suffix,
                     f"clock_monotonic_raw: {DEVICE_NS}\ncntvct: {DEVICE_COUNT}\n")
