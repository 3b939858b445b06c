"""The folders of a PROF directory: control files, clocks, bytes of the channels."""

import json
import os
import re
from collections import defaultdict
from decimal import Decimal

from text_files import read_bytes


class Clock:
    """Timestamps to wall clock. Doubles where the analyser has doubles."""

    def __init__(self, info, start, host, device):
        self.begin_us = int(start.get("collectionTimeBegin", 0))
        self.raw_ns = int(start.get("clockMonotonicRaw", 0))
        self.offset = self.begin_us * 1000 - self.raw_ns
        self.host_ns = host.get("clock_monotonic_raw", 0)
        self.host_count = host.get("cntvct", 0)
        text = (info.get("CPU") or [{}])[0].get("Frequency", "")
        self.host_mhz = float(text) if text else 0.0
        if self.host_mhz and host.get("cntvct_diff", 0) > 0:
            self.host_ns += int(host["cntvct_diff"] * 1000 / self.host_mhz)
        self.device_ns = device.get("clock_monotonic_raw", 0)
        self.device_count = device.get("cntvct", 0)
        text = (info.get("DeviceInfo") or [{}])[0].get("hwts_frequency", "") if info.get(
            "DeviceInfo") else ""
        self.device_mhz = float(text) if text else 0.0

    def device(self, ns):
        return ns + self.host_ns - self.device_ns + self.offset

    def host(self, ns):
        return ns + self.offset

    def micros(self, us):
        # Stored as REAL between the stages: steps of 256 ns.
        delta = (self.host_ns / 1e9 - self.device_ns / 1e9) * 1e9
        wall = (float(self.begin_us) - float(self.raw_ns) / 1000) * 1000
        return int(float(us * 1000 + self.device_ns) + delta + wall)

    def _count(self, count, origin, mhz):
        micros = Decimal(f"{abs(count - origin) / mhz:.6f}") * 1000
        total = self.host_ns + self.offset + (micros if count >= origin else -micros)
        return int(total // 1)

    def real_device_counter(self, count):
        """Between the stages of the analyser: ns as a double."""
        origin, host = self.device_count / 1e9, self.host_ns / 1e9
        return float(count - origin * 1e9) / (self.device_mhz * 1e6) * 1e9 + host * 1e9

    def device_counter(self, count):
        return self._count(count, self.device_count, self.device_mhz)

    def host_counter(self, count):
        if not self.host_mhz:
            return self.host(count)
        return self._count(count, self.host_count, self.host_mhz)


class Place:
    """host/ or device_N/ with its control files and data files."""

    def __init__(self, path, device):
        self.device = device
        suffix = "" if device < 0 else f".{device}"
        self._path = path
        self.info = self._json("info.json" + suffix)
        self.sample = self._json("sample.json")
        self.start = self._json("start_info" + suffix)
        self.end = self._json("end_info" + suffix)
        self.chip = int(self.info.get("platform_version", -1))
        self.clock = Clock(self.info, self.start, self._pairs("host_start.log" + suffix),
                           self._pairs("dev_start.log" + suffix) if device >= 0 else {})
        self.files = self._data()

    def _read(self, name):
        try:
            return read_bytes(self._path, name)
        except OSError:
            return b""

    def _json(self, name):
        return json.loads(self._read(name).split(b"\n")[0] or b"{}")

    def _pairs(self, name):
        return {k: int(v) for k, v in re.findall(r"(\w+): *(\d+)", self._read(name).decode())}

    def _data(self):
        """base name -> [bytes of each slice]"""
        slices = defaultdict(dict)
        folder = os.path.join(self._path, "data")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        for name in names:
            if name.endswith((".done", ".complete", ".zip")):
                continue
            if self.device < 0:
                match = re.fullmatch(r"([\w-]+\.data)\.slice_(\d+)", name)
            else:
                match = (re.fullmatch(rf"([\w-]+\.\w+)\.{self.device}\.slice_(\d+)", name) or
                         re.fullmatch(rf"([\w-]+\.\w+)\.\d+\.{self.device}\.(\d+)", name) or
                         re.fullmatch(rf"([\w-]+\.\w+)\.\d+\.dev\.profiler_default_tag\."
                                      rf"{self.device}\.slice_(\d+)", name))
            if match:
                slices[match[1]][int(match[2])] = self._read(os.path.join("data", name))
        return {base: [parts[k] for k in sorted(parts)] for base, parts in slices.items()}
