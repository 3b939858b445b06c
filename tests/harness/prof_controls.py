"""The control files of a PROF directory: what the vendor's analyser needs of each, and what it would miss."""

import json
import os
import re
from fractions import Fraction

from text_files import read_bytes

# Deleting one of these keys loses the timeline, the DB or more (chip 5).
INFO_KEYS = ("platform_version", "CPU", "DeviceInfo", "netCard", "hostname", "pid", "memoryTotal")
INFO_HOST_KEYS = ("cpuNums", "sysClockFreq")
DEVICE_INFO_KEYS = ("hwts_frequency", "aic_frequency", "ctrl_cpu", "ai_cpu")
SAMPLE_KEYS = ("devices", "llc_profiling", "ai_core_profiling_mode", "hbm_profiling_events")


class Clock:
    """What turns timestamps of one device (or the host) into wall time."""

    def __init__(self):
        self.offset_ns = None   # wall - host monotonic raw
        self.host_ns = None     # H
        self.host_count = None
        self.host_hz = None     # None: host timestamps already are ns
        self.device_ns = None   # D
        self.device_count = None  # C
        self.device_hz = None

    def wall(self, kind, timestamp):
        if None in (self.offset_ns, self.host_ns):
            return None
        if kind == "host_ns":
            return timestamp + self.offset_ns
        if kind == "host_count":
            if self.host_hz is None:
                return timestamp + self.offset_ns
            return self._scaled(timestamp, self.host_count, self.host_hz)
        if kind == "device_ns":
            return None if self.device_ns is None else (
                timestamp + self.host_ns - self.device_ns + self.offset_ns)
        if kind == "micros":
            return timestamp * 1000 + self.host_ns + self.offset_ns
        if self.device_count is None or not self.device_hz:
            return None
        return self._scaled(timestamp, self.device_count, self.device_hz)

    def _scaled(self, timestamp, origin, hz):
        return int(Fraction(timestamp - origin) * 10**9 / hz) + self.host_ns + self.offset_ns


def one_line_json(dump, path, where):
    """The analyser takes the first line and nothing else."""
    try:
        text = read_bytes(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        dump.problem(where, f"cannot be read: {error}")
        return {}
    lines = text.split("\n")
    if len([line for line in lines if line.strip()]) != 1 or not lines[0].strip():
        dump.problem(where, "is not one line of JSON")
    try:
        value = json.loads(lines[0])
    except ValueError as error:
        dump.problem(where, f"first line is not JSON: {error}")
        return {}
    if not isinstance(value, dict):
        dump.problem(where, "is not a JSON object")
        return {}
    return value


def need(dump, where, value, keys):
    for key in keys:
        if key not in value:
            dump.problem(where, f"has no {key}")


def key_lines(dump, path, where):
    result = {}
    try:
        for line in read_bytes(path).decode("ascii").splitlines():
            name, colon, number = line.partition(": ")
            if colon and re.fullmatch(r"-?\d+", number.strip()):
                result[name] = int(number)
    except (OSError, UnicodeDecodeError) as error:
        dump.problem(where, f"cannot be read: {error}")
    for key in ("clock_monotonic_raw", "cntvct"):
        if key not in result:
            dump.problem(where, f"has no {key}")
    return result


def check_info(dump, info, where, is_host):
    need(dump, where, info, INFO_KEYS)
    if is_host:
        need(dump, where, info, INFO_HOST_KEYS)
        if info.get("DeviceInfo") != []:
            dump.problem(where, "DeviceInfo of the host must be []")
    elif len(info.get("DeviceInfo", [])) != 1:
        dump.problem(where, "DeviceInfo of a device must be one object")
    else:
        device = info["DeviceInfo"][0]
        need(dump, where + " DeviceInfo", device, DEVICE_INFO_KEYS)
        if not re.fullmatch(r"\d+", str(device.get("aic_frequency", ""))):
            dump.problem(where, "aic_frequency is not an integer text")
    for key in ("platform_version", "hostname", "pid"):
        if key in info and not isinstance(info[key], str):
            dump.problem(where, f"{key} must be text")
    for card in info.get("netCard", []):
        need(dump, where + " netCard", card, ("netCardName", "speed"))
    if not info.get("CPU"):
        dump.problem(where, "CPU is empty")
    for cpu in info.get("CPU", []):
        if not isinstance(cpu.get("Frequency"), str):
            dump.problem(where, "CPU Frequency must be text")


def host_frequency(info):
    text = (info.get("CPU") or [{}])[0].get("Frequency") or ""
    return Fraction(text) * 10**6 if re.fullmatch(r"\d+(\.\d+)?", text) else None


def read_controls(dump, folder, device):
    """The control files of host/ (device -1) or device_N/."""
    is_host = device < 0
    suffix = "" if is_host else f".{device}"
    short = os.path.basename(folder)

    def load(name):
        return one_line_json(dump, os.path.join(folder, name), f"{short}/{name}")

    entry = {"info": load("info.json" + suffix), "sample": load("sample.json"),
             "start": load("start_info" + suffix), "end": None}
    if os.path.exists(os.path.join(folder, "end_info" + suffix)):
        entry["end"] = load("end_info" + suffix)
        need(dump, f"{short}/end_info", entry["end"], ("collectionTimeEnd", "clockMonotonicRaw"))
    check_info(dump, entry["info"], f"{short}/info.json", is_host)
    need(dump, f"{short}/sample.json", entry["sample"],
         SAMPLE_KEYS + (("host_disk_freq",) if is_host else ()))
    if entry["sample"].get("devices") != ("64" if is_host else str(device)):
        dump.problem(f"{short}/sample.json", f"devices is {entry['sample'].get('devices')!r}")
    need(dump, f"{short}/start_info", entry["start"], ("collectionTimeBegin", "clockMonotonicRaw"))
    clock = Clock()
    entry["clock"] = clock
    for key in ("collectionTimeBegin", "clockMonotonicRaw"):
        if not re.fullmatch(r"\d+", str(entry["start"].get(key, ""))):
            dump.problem(f"{short}/start_info", f"{key} is not a number")
            return entry
    begin_ns = int(entry["start"]["collectionTimeBegin"]) * 1000
    clock.offset_ns = begin_ns - int(entry["start"]["clockMonotonicRaw"])
    entry["begin_ns"] = begin_ns
    host_log = f"host_start.log{suffix}"
    host = key_lines(dump, os.path.join(folder, host_log), f"{short}/{host_log}")
    tag = "[Host]" if is_host else f"[Device{device}]"
    if os.path.exists(os.path.join(folder, host_log)) and not read_bytes(
            os.path.join(folder, host_log)).decode().startswith(tag + "\n"):
        dump.problem(f"{short}/{host_log}", f"does not begin with {tag}")
    clock.host_ns = host.get("clock_monotonic_raw")
    clock.host_count = host.get("cntvct")
    clock.host_hz = host_frequency(entry["info"])
    if not is_host:
        device_log = f"dev_start.log{suffix}"
        pair = key_lines(dump, os.path.join(folder, device_log), f"{short}/{device_log}")
        clock.device_ns = pair.get("clock_monotonic_raw")
        clock.device_count = pair.get("cntvct")
        hwts = str((entry["info"].get("DeviceInfo") or [{}])[0].get("hwts_frequency", ""))
        if re.fullmatch(r"\d+(\.\d+)?", hwts):
            clock.device_hz = Fraction(hwts) * 10**6
        else:
            dump.problem(f"{short}/info.json", "hwts_frequency is not a number")
    return entry


def check_done(dump, folder, finished):
    for base, folders, names in os.walk(folder):
        if "profd" in folders:
            folders.remove("profd")  # profd's own files (docs/dumps.md) have none
        for name in names:
            path = os.path.join(base, name)
            short = os.path.relpath(path, dump.path)
            if name.endswith(".done"):
                if not os.path.exists(path[:-5]):
                    dump.problem(short, "belongs to no file")
                    continue
                match = re.match(r"filesize:(\d+)\n", read_bytes(path).decode("ascii", "replace"))
                if not match:
                    dump.problem(short, "does not begin with filesize:")
                elif int(match[1]) != os.path.getsize(path[:-5]):
                    dump.problem(short, f"says {match[1]}, the file has "
                                        f"{os.path.getsize(path[:-5])} bytes")
            elif finished and not os.path.exists(path + ".done"):
                dump.problem(short, "has no .done")


# Records ------------------------------------------------------------------------------------
