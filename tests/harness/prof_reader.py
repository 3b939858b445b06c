"""Reads a PROF directory the way the vendor's analyser does, and says what that would choke on.

Written from the description of the format alone: it shares nothing with the code that writes dumps.
`read(path)` gives a Dump with `problems` (what would cost somebody an export), `notes` (what would
cost a few rows), the parsed control files and, channel by channel, records with their time on the wall clock.
"""

import json
import os
import re
import struct
from collections import defaultdict, namedtuple
from fractions import Fraction

# One record. `stamp` is as the file has it (ns, us or cycles), `wall` ns since the epoch (None where
# clocks are missing), `key` what tells series apart, `values` a dict.
Record = namedtuple("Record", "stamp wall key values slice")

TEXT_STAMP = re.compile(r"^(\d+):(\d{9})$")
TOP_NAME = re.compile(r"^PROF_\d{1,10}_\d{1,20}_[A-Z0-9]{5,20}$")
HCCS_HEADER = "time_stamp(s):time_stamp(ns) send_amount receive_amount"
U32 = 1 << 32

LLC_EVENTS = {
    "read": (0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36),
    "write": (0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37),
}
LLC_IDS = {5: 2, 7: 1, 8: 1, 11: 1}
# Deleting one of these keys loses the timeline, the DB or more (chip 5).
INFO_KEYS = ("platform_version", "CPU", "DeviceInfo", "netCard", "hostname", "pid", "memoryTotal")
INFO_HOST_KEYS = ("cpuNums", "sysClockFreq")
DEVICE_INFO_KEYS = ("hwts_frequency", "aic_frequency", "ctrl_cpu", "ai_cpu")
SAMPLE_KEYS = ("devices", "llc_profiling", "ai_core_profiling_mode", "hbm_profiling_events")
# Files the reader may have in one slice only: it keeps the last, or loses what lies on the cut.
ONE_SLICE = ("roce.data", "dvpp.data", "host_cpu.data", "host_network.data", "host_disk.data")
SOC_MAGIC = 0x6BD3


class Channel:
    """All slices of one file, in order."""

    def __init__(self, name, device):
        self.name = name
        self.device = device
        self.records = []
        self.bytes = 0
        self.slices = 0

    def __len__(self):
        return len(self.records)

    def series(self):
        """key -> list of its records."""
        result = defaultdict(list)
        for record in self.records:
            result[record.key].append(record)
        return dict(result)

    def stamps(self, key=None):
        """Distinct stamps in the order they came (of one series)."""
        seen = []
        for record in self.records:
            if key is not None and record.key != key:
                continue
            if not seen or seen[-1] != record.stamp:
                seen.append(record.stamp)
        return seen


class Clock:
    """What turns stamps of one device (or the host) into wall time."""

    def __init__(self):
        self.offset_ns = None   # wall - host monotonic raw
        self.host_ns = None     # H
        self.host_count = None
        self.host_hz = None     # None: host stamps already are ns
        self.device_ns = None   # D
        self.device_count = None  # C
        self.device_hz = None

    def wall(self, kind, stamp):
        if None in (self.offset_ns, self.host_ns):
            return None
        if kind == "host_ns":
            return stamp + self.offset_ns
        if kind == "host_count":
            if self.host_hz is None:
                return stamp + self.offset_ns
            return self._scaled(stamp, self.host_count, self.host_hz)
        if kind == "device_ns":
            return None if self.device_ns is None else (
                stamp + self.host_ns - self.device_ns + self.offset_ns)
        if kind == "micros":
            return stamp * 1000 + self.host_ns + self.offset_ns
        if self.device_count is None or not self.device_hz:
            return None
        return self._scaled(stamp, self.device_count, self.device_hz)

    def _scaled(self, stamp, origin, hz):
        return int(Fraction(stamp - origin) * 10**9 / hz) + self.host_ns + self.offset_ns


class Dump:
    def __init__(self, path):
        self.path = path
        self.problems = []
        self.notes = []
        self._count = defaultdict(int)
        self.manifest = None
        self.devices = {}   # id -> {"info", "sample", "start", "end", "clock"}
        self.host = None
        self.channels = {}  # (device, base name) -> Channel; device -1 = host
        self.blocks = {}    # name of a host /proc file -> list of (ns, index, body)

    def problem(self, where, text):
        # A thousand records with one fault are one finding: the first few say which.
        self._count[where] += 1
        if self._count[where] <= 5:
            self.problems.append(f"{where}: {text}")

    def channel(self, name, device=0):
        return self.channels.get((device, name))

    def __getitem__(self, key):
        return self.channels[key]


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def one_line_json(dump, path, where):
    """The analyser takes the first line and nothing else."""
    try:
        text = _read(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        dump.problem(where, f"cannot be read: {error}")
        return {}
    lines = text.split("\n")
    if len([line for line in lines if line.strip()]) != 1 or not lines[0].strip():
        dump.problem(where, "is not one line of JSON")
    try:
        value = json.loads(lines[0])
    except ValueError as error:
        dump.problem(where, f"first line is no JSON: {error}")
        return {}
    if not isinstance(value, dict):
        dump.problem(where, "is no JSON object")
        return {}
    return value


def need(dump, where, value, keys):
    for key in keys:
        if key not in value:
            dump.problem(where, f"has no {key}")


def key_lines(dump, path, where):
    result = {}
    try:
        for line in _read(path).decode("ascii").splitlines():
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
            dump.problem(where, "aic_frequency is no integer text")
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
            dump.problem(f"{short}/start_info", f"{key} is no number")
            return entry
    begin_ns = int(entry["start"]["collectionTimeBegin"]) * 1000
    clock.offset_ns = begin_ns - int(entry["start"]["clockMonotonicRaw"])
    entry["begin_ns"] = begin_ns
    host_log = f"host_start.log{suffix}"
    host = key_lines(dump, os.path.join(folder, host_log), f"{short}/{host_log}")
    tag = "[Host]" if is_host else f"[Device{device}]"
    if os.path.exists(os.path.join(folder, host_log)) and not _read(
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
            dump.problem(f"{short}/info.json", "hwts_frequency is no number")
    return entry


def check_done(dump, folder, finished):
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(base, name)
            short = os.path.relpath(path, dump.path)
            if name.endswith(".done"):
                if not os.path.exists(path[:-5]):
                    dump.problem(short, "belongs to no file")
                    continue
                match = re.match(r"filesize:(\d+)\n", _read(path).decode("ascii", "replace"))
                if not match:
                    dump.problem(short, "does not begin with filesize:")
                elif int(match[1]) != os.path.getsize(path[:-5]):
                    dump.problem(short, f"says {match[1]}, the file has "
                                        f"{os.path.getsize(path[:-5])} bytes")
            elif finished and not os.path.exists(path + ".done"):
                dump.problem(short, "has no .done")


# Records ------------------------------------------------------------------------------------


def text_stamp(token):
    match = TEXT_STAMP.match(token)
    return int(match[1]) * 10**9 + int(match[2]) if match else None


def integers(tokens):
    return [int(token.rstrip("%")) for token in tokens]


def hccs_line(tokens, _):
    tx, rx = integers(tokens)
    return 0, {"tx": tx, "rx": rx}


NET_COLUMNS = ("bandwidth rxPacket/s rxByte/s rxPackets rxBytes rxErrors rxDropped txPacket/s "
               "txByte/s txPackets txBytes txErrors txDropped").split()


def net_line(tokens, _):
    if len(tokens) not in (13, 14, 15):
        raise ValueError(f"{len(tokens) + 1} columns")
    numbers = integers(tokens)
    return (numbers[13] if len(numbers) > 13 else 0), dict(zip(NET_COLUMNS, numbers))


def dvpp_line(tokens, chip):
    wide = chip in (1, 5, 7, 8, 11, 15, 16)
    if len(tokens) != (11 if wide else 10):
        raise ValueError(f"{len(tokens) + 1} columns")
    dvpp = int(tokens[0]) if wide else 0
    engine_type, engine, all_time, frames, use, *_ = integers(tokens[1:] if wide else tokens)
    if engine_type > 6:
        raise ValueError(f"engine type {engine_type}")
    return (dvpp, engine_type, engine), {"all_time": all_time, "frames": frames, "utilization": use}


def pcie(fields, device, _):
    if fields[1] != device:
        raise ValueError(f"device {fields[1]} in the file of {device}")
    names = ("tx_post", "tx_nonpost", "tx_cpl", "latency", "rx_post", "rx_nonpost", "rx_cpl")
    values = {name: fields[2 + 3 * i:5 + 3 * i] for i, name in enumerate(names)}
    if values["tx_post"][1] < values["tx_post"][0]:
        raise ValueError("tx_post max below min")
    return fields[0], 0, values


def hbm(fields, _, __):
    us, count, event, hbm_id = fields
    if event > 1 or hbm_id > 3:
        raise ValueError(f"event {event} hbm id {hbm_id}")
    return us, (hbm_id, event), {"count": count}


def ddr(fields, _, __):
    us, count, event, ddr_id, master = fields
    if event > 1:
        raise ValueError(f"event {event}")
    return us, (ddr_id, event, master), {"count": count}


def llc(fields, _, sample):
    us, count, event, l3t = fields
    mode = sample.get("llc_profiling")
    if event not in LLC_EVENTS.get(mode, ()):
        raise ValueError(f"event {event:#x} does not belong to llc_profiling={mode}")
    return us, (l3t, event), {"count": count}


def npu_mem(fields, _, __):
    us, event, _, ddr_bytes, hbm_bytes = fields
    if event > 1:
        raise ValueError(f"event {event}")
    return us, event, {"ddr": ddr_bytes, "hbm": hbm_bytes}


def module_mem(fields, _, __):
    return fields[2], fields[0], {"bytes": fields[3]}


def frequency(fields, _, __):
    count, kind = fields[0], fields[1]
    if not 0 < count <= 55:
        raise ValueError(f"{count} entries")
    entries = [(fields[2 + 3 * i], fields[3 + 3 * i]) for i in range(count)]
    return entries[0][0], kind, {"entries": entries}


def qos(fields, _, sample):
    names = [name for name in sample.get("qosEvents", "").split(",") if name]
    if not names:
        raise ValueError("sample.json names no qosEvents: the channel is lost")
    return fields[3], 0, dict(zip(names, fields[4:14]))


def soc(fields, _, __):
    head, magic = fields[0], fields[1]
    kind, count, sub = head & 63, head >> 6 & 15, head >> 10
    if magic != SOC_MAGIC:
        raise ValueError(f"magic {magic:#x}")
    words = fields[4:]
    ident = words[0] >> 16
    values = {"head_count": count}
    if kind == 25:
        names = ("req_rx", "rsp_rx", "snp_rx", "dat_rx", "req_tx", "rsp_tx", "snp_tx", "dat_tx")
        # u16 reserved, u16 die, then 11 words of which 3..10 are used
        values.update(zip(names, words[4:12]))
        key = (kind, ident)
    elif kind == 27:
        key = (kind, sub, ident & 63)
    elif kind == 26:
        key = (kind, ident)
    elif kind in (24, 28, 29):
        key = (kind, sub)
    else:
        raise ValueError(f"type {kind}")
    return fields[3], key, values


TEXT = {  # base name -> (line parser, header token, header mandatory)
    "hccs.data": (hccs_line, HCCS_HEADER, True),
    "nic.data": (net_line, "rxPacket/s", False),
    "roce.data": (net_line, "rxPacket/s", False),
    "dvpp.data": (dvpp_line, "engine_type", False),
}
BINARY = {  # base name -> (struct, parser, kind of stamp)
    "pcie.data": ("<Q22I", pcie, "device_ns"),
    "hbm.data": ("<QQII", hbm, "micros"),
    "ddr.data": ("<5I", ddr, "micros"),
    "llc.data": ("<QQII", llc, "micros"),
    "npu_mem.data": ("<IIQQQ", npu_mem, "micros"),
    "npu_mem.app": ("<IIQQQ", npu_mem, "micros"),
    "npu_module_mem.data": ("<IIQQ", module_mem, "host_count"),
    "lpmFreqConv.data": ("<II" + "QII" * 55, frequency, "device_count"),
    "lpmInfoConv.data": ("<II" + "QII" * 55, frequency, "device_count"),
    "qos.data": ("<2I2Q10I", qos, "device_count"),
    "stars_soc_profile.data": ("<HHIQ12I", soc, "device_count"),
}
# Per-engine DVPP files: lines like dvpp.data's; no parser of the vendor's reads them.
for _engine in ("vdec", "jpegd", "jpege", "png", "scd", "venc", "vpc"):
    TEXT[f"dvpp.{_engine}"] = (dvpp_line, "engine_type", False)

DEVICE_FILE = re.compile(r"^(\w+\.\w+)\.(\d+)\.slice_(\d+)$")
HOST_FILE = re.compile(r"^([\w-]+\.data)\.slice_(\d+)$")
HOST_BLOCKS = re.compile(r"^(host_sys_cpu|host_sys_mem|\d+-CpuUsage|\d+-Memory)\.data$")


def read_text(dump, channel, data, number, entry, where):
    parse, token, mandatory = TEXT[channel.name]
    if data and not data.endswith(b"\n"):
        dump.problem(where, "ends inside a line")
    lines = data.decode("ascii", "replace").split("\n")[:-1]
    chip = int(entry["info"].get("platform_version", "5") or 5)
    headers = [i for i, line in enumerate(lines) if token in line]
    if mandatory and headers != [0]:
        dump.problem(where, f"header lines at {headers[:5]}, expected one, at the start")
    if not mandatory and any(headers[1:]):
        dump.problem(where, f"header lines inside, at {headers[1:6]}")
    for i, line in enumerate(lines):
        if i in headers:
            continue
        stamp_text, *tokens = line.split()
        stamp = text_stamp(stamp_text)
        if stamp is None:
            dump.problem(where, f"line {i + 1}: stamp {stamp_text!r} is not sec:nnnnnnnnn")
            continue
        try:
            key, values = parse(tokens, chip)
        except ValueError as error:
            dump.problem(where, f"line {i + 1}: {error}: {line[:80]!r}")
            continue
        wall = entry["clock"].wall("device_ns", stamp)
        channel.records.append(Record(stamp, wall, key, values, number))


def read_binary(dump, channel, data, number, entry, where):
    layout, parse, kind = BINARY[channel.name]
    size = struct.calcsize(layout)
    if len(data) % size:
        dump.problem(where, f"{len(data)} bytes are no whole number of {size} byte records")
    for i, fields in enumerate(struct.iter_unpack(layout, data[:len(data) // size * size])):
        try:
            stamp, key, values = parse(fields, channel.device, entry["sample"])
        except ValueError as error:
            dump.problem(where, f"record {i}: {error}")
            continue
        channel.records.append(
            Record(stamp, entry["clock"].wall(kind, stamp), key, values, number))


def read_blocks(dump, name, data, where):
    """TimeStamp/Index/DataLen blocks of /proc files."""
    rest = data
    blocks = []
    head = re.compile(rb"TimeStamp:(\d+)\nIndex:(\d+)\nDataLen:(\d+)\n")
    while rest:
        match = head.match(rest)
        if not match:
            dump.problem(where, f"no block head at {len(data) - len(rest)}")
            break
        end = match.end() + int(match[3])
        body = rest[match.end():end]
        if len(body) != int(match[3]) or rest[end:end + 2] != b"\n\n":
            dump.problem(where, f"block {match[2].decode()} does not end where DataLen says")
            break
        rest = rest[end + 2:]
        blocks.append((int(match[1]), int(match[2]), body.decode("utf-8", "replace")))
    if [block[1] for block in blocks] != list(range(len(blocks))):
        dump.problem(where, "Index does not count up from 0 by one")
    dump.blocks.setdefault(name, []).extend(blocks)


def read_host_file(dump, name, data, entry, where):
    if HOST_BLOCKS.match(name):
        read_blocks(dump, name, data, where)
        return
    if data and not data.endswith(b"\n"):
        dump.problem(where, "ends inside a line")
    channel = dump.channels.setdefault((-1, name), Channel(name, -1))
    channel.bytes += len(data)
    channel.slices += 1
    lines = data.decode("utf-8", "replace").splitlines()
    if name in ("host_cpu.data", "host_network.data"):
        for line in lines:
            if line.startswith("time "):
                stamp = int(line[5:])
                channel.records.append(
                    Record(stamp, entry["clock"].wall("host_ns", stamp), 0, {"lines": []}, 0))
            elif not channel.records:
                dump.problem(where, "does not begin with a time line")
            else:
                channel.records[-1].values["lines"].append(line)
    elif name == "host_mem.data":
        for i, line in enumerate(lines):
            fields = line.split()
            if len(fields) != 8 or not all(f.isdigit() for f in fields):
                dump.problem(where, f"line {i + 1}: {line[:60]!r}")
                continue
            stamp = int(fields[0])
            channel.records.append(Record(stamp, entry["clock"].wall("host_ns", stamp), 0,
                                          {"statm": [int(f) for f in fields[1:]]}, 0))
    else:
        dump.problem(where, "no file the analyser knows")


def read_data(dump, folder, device, entry):
    data_folder = os.path.join(folder, "data")
    if not os.path.isdir(data_folder):
        dump.problem(os.path.basename(folder), "has no data/")
        return
    slices = defaultdict(dict)
    for name in os.listdir(data_folder):
        if name.endswith(".done"):
            continue
        where = f"{os.path.basename(folder)}/data/{name}"
        match = DEVICE_FILE.match(name) if device >= 0 else HOST_FILE.match(name)
        if not match:
            dump.problem(where, "name is none the analyser takes")
            continue
        if device >= 0 and int(match[2]) != device:
            dump.problem(where, f"file of device {match[2]} in {os.path.basename(folder)}")
            continue
        slices[match[1]][int(match[match.lastindex])] = os.path.join(data_folder, name)
    for base, files in sorted(slices.items()):
        if sorted(files) != list(range(len(files))):
            dump.problem(f"{os.path.basename(folder)}/{base}", f"slices {sorted(files)}")
        if base in ONE_SLICE and len(files) > 1:
            dump.problem(f"{os.path.basename(folder)}/{base}", "more than one slice loses samples")
        for number in sorted(files):
            where = os.path.relpath(files[number], dump.path)
            data = _read(files[number])
            if device < 0:
                read_host_file(dump, base, data, entry, where)
                continue
            channel = dump.channels.setdefault((device, base), Channel(base, device))
            channel.bytes += len(data)
            channel.slices += 1
            if base in TEXT:
                read_text(dump, channel, data, number, entry, where)
            elif base in BINARY:
                read_binary(dump, channel, data, number, entry, where)
            else:
                dump.problem(where, "no file of the vendor's")


# What must hold across records ------------------------------------------------------------------


def check_groups(dump, channel, keys, what):
    """Every stamp has exactly these keys, in the same order each time."""
    where = f"device_{channel.device}/{channel.name}"
    groups = []
    for record in channel.records:
        if not groups or groups[-1][0] != record.stamp:
            groups.append((record.stamp, []))
        groups[-1][1].append(record.key)
    order = groups[0][1] if groups else []
    for stamp, have in groups:
        if sorted(have) != sorted(keys):
            dump.problem(where, f"{what} at {stamp}: {sorted(have)[:9]}...")
            return
        if have != order:
            dump.problem(where, f"order of ids changes at {stamp}")
            return


def check_channel(dump, channel, entry):
    where = f"device_{channel.device}/{channel.name}"
    for key, records in channel.series().items():
        last = None
        for record in records:
            if last is not None and record.stamp <= last:
                dump.problem(where, f"{key}: stamp {record.stamp} after {last}")
                break
            last = record.stamp
    begin = entry.get("begin_ns")
    if begin is not None and channel.name not in ("lpmInfoConv.data", "lpmFreqConv.data"):
        early = sum(1 for r in channel.records if r.wall is not None and r.wall < begin - 1000)
        if early:
            # The analyser leaves them out of timelines; nothing else suffers.
            dump.notes.append(f"{where}: {early} records are older than collectionTimeBegin")
    if channel.name == "hbm.data":
        events = entry["sample"].get("hbm_profiling_events", "read").split(",")
        check_groups(dump, channel, [(i, e) for i in range(4) for e in range(len(events))],
                     "not 4 ids x events")
    if channel.name == "llc.data":
        chip = int(entry["info"].get("platform_version", 0))
        mode = LLC_EVENTS.get(entry["sample"].get("llc_profiling"), ())
        check_groups(dump, channel, [(i, e) for i in range(LLC_IDS.get(chip, 4)) for e in mode],
                     "not 8 events of each id")
    if channel.name == "hccs.data":
        for name in ("tx", "rx"):
            values = [record.values[name] for record in channel.records]
            if any(b < a for a, b in zip(values, values[1:])):
                dump.problem(where, f"{name} goes back: rows are dropped")


def read(path, finished=None):
    """Reads and judges one PROF directory. `finished`: whether it claims to be complete (default:
    what its manifest says)."""
    dump = Dump(path)
    if not TOP_NAME.match(os.path.basename(path)):
        dump.problem(os.path.basename(path), "name is none the analyser finds")
    try:
        with open(os.path.join(path, "profd_manifest.json"), encoding="utf-8") as file:
            dump.manifest = json.load(file)
    except (OSError, ValueError) as error:
        dump.problem("profd_manifest.json", str(error))
    if finished is None:
        finished = bool(dump.manifest) and dump.manifest.get("state") == "done"
    folders = sorted(os.listdir(path))
    for name in folders:
        folder = os.path.join(path, name)
        match = re.fullmatch(r"device_(\d+)", name)
        if name == "host" or match:
            device = int(match[1]) if match else -1
            entry = read_controls(dump, folder, device)
            if device < 0:
                dump.host = entry
            else:
                dump.devices[device] = entry
            if finished and entry["end"] is None:
                dump.problem(name, "has no end_info")
            check_done(dump, folder, finished)
            read_data(dump, folder, device, entry)
        elif name not in ("profd_manifest.json", "profd"):
            dump.problem(name, "is no part of a dump")
    if dump.host is None:
        dump.problem(path, "has no host/")
    for (device, _), channel in dump.channels.items():
        if device >= 0:
            check_channel(dump, channel, dump.devices[device])
    return dump


def steps(stamps):
    """Differences of neighbours."""
    return [b - a for a, b in zip(stamps, stamps[1:])]


def holes(stamps, period, tolerance=0.25):
    """Places where a grid of this period lacks points: list of (after which stamp, points missing).
    The grid must hold by itself: no step that is no multiple of the period is accepted."""
    missing = []
    for before, step in zip(stamps, steps(stamps)):
        points = round(step / period)
        if points < 1 or abs(step - points * period) > tolerance * period:
            raise AssertionError(f"step {step} after {before} is no multiple of {period}")
        if points > 1:
            missing.append((before, points - 1))
    return missing


def samples_tsv(path):
    """profd/samples.tsv of a dump: list of dicts."""
    with open(os.path.join(path, "profd", "samples.tsv"), encoding="utf-8") as file:
        heading = file.readline().rstrip("\n").split("\t")
        return [dict(zip(heading, line.rstrip("\n").split("\t"))) for line in file]


if __name__ == "__main__":
    import sys

    for argument in sys.argv[1:]:
        read_dump = read(argument.rstrip("/"))
        for (dev, base_name), chan in sorted(read_dump.channels.items()):
            print(f"{dev:3} {base_name:28} {len(chan):8} records {chan.bytes:10} bytes")
        print("\n".join(read_dump.problems) or "no problems")
