"""Reads a PROF directory the way the vendor's analyser does, and reports what that cannot read.

Written from the description of the format alone: it shares nothing with the code that writes dumps.
`read(path)` gives a Dump with `problems` (what would cost an export), `notes` (what would
cost a few rows), the parsed control files and, channel by channel, records with their time on the wall clock.
"""

import functools
import os
import re
import struct
from collections import defaultdict, namedtuple

from prof_controls import check_done, read_controls
from prof_records import BINARY, LLC_EVENTS, TEXT, UNKNOWN_FORM, step_trace, text_timestamp
from text_files import read_bytes, read_json

# One record. `timestamp` is as the file has it (ns, us or cycles), `wall` ns since the epoch (None where
# clocks are missing), `key` what distinguishes series, `values` a dict.
Record = namedtuple("Record", "timestamp wall key values slice")

# What a writer that was killed may leave beside the manifest: the next one, before its rename.
NEXT_MANIFEST = re.compile(r"^\.profd_manifest\.json\.(next|tmp)$")

TOP_NAME = re.compile(r"^PROF_\d{1,10}_\d{1,20}_[A-Z0-9]{5,20}$")

LLC_IDS = {5: 2, 7: 1, 8: 1, 11: 1}
# Files the reader may have in one slice only: it keeps the last, or loses what lies on the cut.
ONE_SLICE = ("roce.data", "dvpp.data", "host_cpu.data", "host_network.data", "host_disk.data")


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

    def timestamps(self):
        """Distinct timestamps in the order of arrival."""
        seen = []
        for record in self.records:
            if not seen or seen[-1] != record.timestamp:
                seen.append(record.timestamp)
        return seen


class Dump:
    def __init__(self, path):
        self.path = path
        self.problems = []
        self.notes = []
        # A write that kill -9 cut short ends a file; recovery takes such an end off.
        self.may_be_cut = False
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

    def cut(self, where, text):
        """The file ends inside something."""
        if self.may_be_cut:
            self.notes.append(f"{where}: {text}")
        else:
            self.problem(where, text)

    def channel(self, name, device=0):
        return self.channels.get((device, name))

    def __getitem__(self, key):
        return self.channels[key]


DEVICE_FILE = re.compile(r"^(\w+\.\w+)\.(\d+)\.slice_(\d+)$")
HOST_FILE = re.compile(r"^([\w-]+\.data)\.slice_(\d+)$")
HOST_BLOCKS = re.compile(r"^(host_sys_cpu|host_sys_mem|\d+-CpuUsage|\d+-Memory)\.data$")


def read_text(dump, channel, data, number, entry, where):
    parse, token, mandatory = TEXT[channel.name]
    unknown_form = channel.name in UNKNOWN_FORM
    if data and not data.endswith(b"\n"):
        dump.cut(where, "ends inside a line")
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
        timestamp_text, *tokens = line.split() or [""]
        timestamp = text_timestamp(timestamp_text)
        if timestamp is None and unknown_form:
            continue
        if timestamp is None:
            dump.problem(where, f"line {i + 1}: timestamp {timestamp_text!r} is not sec:nnnnnnnnn")
            continue
        try:
            key, values = parse(tokens, chip)
        except ValueError as error:
            if not unknown_form:
                dump.problem(where, f"line {i + 1}: {error}: {line[:80]!r}")
            continue
        wall = entry["clock"].wall("device_ns", timestamp)
        channel.records.append(Record(timestamp, wall, key, values, number))


def read_binary(dump, channel, data, number, entry, where):
    layout, parse, kind = BINARY[channel.name]
    size = struct.calcsize(layout)
    if len(data) % size:
        dump.cut(where, f"{len(data)} bytes are not a multiple of {size} byte records")
    for i, fields in enumerate(struct.iter_unpack(layout, data[:len(data) // size * size])):
        try:
            if parse is step_trace:
                chip = int(entry["info"].get("platform_version", "5") or 5)
                timestamp, key, values = step_trace(fields, chip)
            else:
                timestamp, key, values = parse(fields, channel.device, entry["sample"])
        except ValueError as error:
            dump.problem(where, f"record {i}: {error}")
            continue
        channel.records.append(
            Record(timestamp, entry["clock"].wall(kind, timestamp), key, values, number))


def read_blocks(dump, name, data, where):
    """TimeStamp/Index/DataLen blocks of /proc files. A slice's indices follow those of the one before."""
    rest = data
    blocks = []
    earlier = len(dump.blocks.get(name, []))
    head = re.compile(rb"TimeStamp:(\d+)\nIndex:(\d+)\nDataLen:(\d+)\n")
    while rest:
        match = head.match(rest)
        if not match:
            # Shorter than any head, or without the end of one: nothing but a cut can follow it.
            is_cut = rest.count(b"\n") < 3
            (dump.cut if is_cut else dump.problem)(where, f"no block head at {len(data) - len(rest)}")
            break
        end = match.end() + int(match[3])
        body = rest[match.end():end]
        if end + 2 > len(rest):
            dump.cut(where, f"block {match[2].decode()} does not end where DataLen says")
            break
        if rest[end:end + 2] != b"\n\n":
            dump.problem(where, f"block {match[2].decode()} does not end where DataLen says")
            break
        rest = rest[end + 2:]
        blocks.append((int(match[1]), int(match[2]), body.decode("utf-8", "replace")))
    if [block[1] for block in blocks] != list(range(earlier, earlier + len(blocks))):
        dump.problem(where, "Index does not count up from 0 by one")
    dump.blocks.setdefault(name, []).extend(blocks)


def read_host_file(dump, name, data, entry, where):
    if HOST_BLOCKS.match(name):
        read_blocks(dump, name, data, where)
        return
    if data and not data.endswith(b"\n"):
        dump.cut(where, "ends inside a line")
    channel = dump.channels.setdefault((-1, name), Channel(name, -1))
    channel.bytes += len(data)
    channel.slices += 1
    lines = data.decode("utf-8", "replace").splitlines()
    if name in ("host_cpu.data", "host_network.data"):
        for line in lines:
            if line.startswith("time "):
                timestamp = int(line[5:])
                channel.records.append(
                    Record(timestamp, entry["clock"].wall("host_ns", timestamp), 0, {"lines": []}, 0))
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
            timestamp = int(fields[0])
            channel.records.append(Record(timestamp, entry["clock"].wall("host_ns", timestamp), 0,
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
            data = read_bytes(files[number])
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
    """Every timestamp has exactly these keys, in the same order each time; the last one of a dump that was cut has the first of them."""
    where = f"device_{channel.device}/{channel.name}"
    groups = []
    for record in channel.records:
        if not groups or groups[-1][0] != record.timestamp:
            groups.append((record.timestamp, []))
        groups[-1][1].append(record.key)
    order = groups[0][1] if groups else []
    if dump.may_be_cut and len(groups) > 1 and groups[-1][1] == order[:len(groups[-1][1])]:
        groups.pop()
    for timestamp, have in groups:
        if sorted(have) != sorted(keys):
            dump.problem(where, f"{what} at {timestamp}: {sorted(have)[:9]}...")
            return
        if have != order:
            dump.problem(where, f"order of ids changes at {timestamp}")
            return


def check_channel(dump, channel, entry):
    where = f"device_{channel.device}/{channel.name}"
    for key, records in channel.series().items():
        last = None
        for record in records:
            if last is not None and record.timestamp <= last:
                dump.problem(where, f"{key}: timestamp {record.timestamp} after {last}")
                break
            last = record.timestamp
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


@functools.cache
def schema():
    """Of the manifest, as it is documented."""
    import jsonschema  # here: what other users run with this module may lack it

    return jsonschema.Draft202012Validator(read_json(os.path.dirname(__file__), "../../docs/manifest.schema.json"))


def read(path, finished=None):
    """Reads and judges one PROF directory. `finished`: whether it claims to be complete (default:
    what its manifest says)."""
    dump = Dump(path)
    if not TOP_NAME.match(os.path.basename(path)):
        dump.problem(os.path.basename(path), "name is none the analyser finds")
    try:
        dump.manifest = read_json(path, "profd_manifest.json")
    except (OSError, ValueError) as error:
        dump.problem("profd_manifest.json", str(error))
    else:
        for error in schema().iter_errors(dump.manifest):
            dump.problem("profd_manifest.json", f"{error.json_path}: {error.message}")
    if finished is None:
        finished = bool(dump.manifest) and dump.manifest.get("state") == "done"
    dump.may_be_cut = not finished
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
        elif name != "profd_manifest.json" and not (dump.may_be_cut and NEXT_MANIFEST.match(name)):
            dump.problem(name, "is not part of a dump")
    if dump.host is None:
        dump.problem(path, "has no host/")
    for (device, _), channel in dump.channels.items():
        if device >= 0:
            check_channel(dump, channel, dump.devices[device])
    return dump


def read_valid(path, finished=None):
    """The same of a directory that has no problem."""
    dump = read(path, finished)
    if dump.problems:
        raise AssertionError(f"{path}: {dump.problems}")
    return dump


def steps(timestamps):
    """Differences of neighbours."""
    return [b - a for a, b in zip(timestamps, timestamps[1:])]


def time_gaps(timestamps, period, tolerance=0.25):
    """Places where a grid of this period lacks points: list of (after which timestamp, points missing).
    The grid must hold by itself: no step that is not a multiple of the period is accepted."""
    missing = []
    for before, step in zip(timestamps, steps(timestamps)):
        points = round(step / period)
        if points < 1 or abs(step - points * period) > tolerance * period:
            raise AssertionError(f"step {step} after {before} is not a multiple of {period}")
        if points > 1:
            missing.append((before, points - 1))
    return missing


OWN = os.path.join("host", "profd")


def own_lines(path, name):
    """One of profd's own files in a dump: list of dicts."""
    with open(os.path.join(path, OWN, name), encoding="utf-8", newline="\n") as file:
        heading = file.readline().rstrip("\n").split("\t")
        return [dict(zip(heading, line.rstrip("\n").split("\t"))) for line in file]


def samples_tsv(path):
    """host/profd/samples.tsv of a dump."""
    return own_lines(path, "samples.tsv")


def marks_tsv(path):
    """host/profd/marks.tsv of a dump; empty if nothing was marked."""
    if not os.path.exists(os.path.join(path, OWN, "marks.tsv")):
        return []
    return own_lines(path, "marks.tsv")


def marks_by_time(path):
    return sorted(marks_tsv(path), key=lambda mark: int(mark["time_ns"]))


if __name__ == "__main__":
    import sys

    for argument in sys.argv[1:]:
        read_dump = read(argument.rstrip("/"))
        for (dev, base_name), chan in sorted(read_dump.channels.items()):
            print(f"{dev:3} {base_name:28} {len(chan):8} records {chan.bytes:10} bytes")
        print("\n".join(read_dump.problems) or "no problems")
