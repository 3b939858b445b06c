"""Reads Perfetto's native traces: protocol buffers by hand, the way its trace processor does.

Knows the wire format and the public field numbers only, nothing of the code that wrote the file.
"""

import gzip
import struct

TYPES = {1: "begin", 2: "end", 3: "instant", 4: "counter"}
REALTIME, BOOTTIME = 1, 6


def fields(data):
    """Yields (number, value): ints, 8 raw bytes, or the bytes of a nested message."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = data[at:at + 8], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {kind} of field {tag >> 3}")
        if at > end:
            raise ValueError(f"field {tag >> 3} goes beyond the end")
        yield tag >> 3, value


def varint(data, at):
    value, shift, at = data[at], 7, at + 1
    if value < 0x80:  # most of them
        return value, at
    value &= 0x7F
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a varint is too long")


def first(data, number, default=None):
    return next((value for key, value in fields(data) if key == number), default)


def text(data):
    return data.decode("utf-8")


def annotations(event):
    """The args by name of a track event's fields, and the ids of its flows: those that go on, and those that end."""
    args, flows = {}, {47: [], 48: []}
    for number, value in event:
        if number == 4:
            arg = dict(fields(value))
            if 4 in arg:
                args[text(arg[10])] = arg[4] - (1 << 64) if arg[4] >> 63 else arg[4]
            else:
                args[text(arg[10])] = text(arg[6]) if 6 in arg else struct.unpack("<d", arg[5])[0]
        elif number in flows:
            flows[number].append(struct.unpack("<Q", value)[0])
    return args, flows[47], flows[48]


class Trace:
    """packets: their number; processes: {pid: name}; events: one tuple each, see below."""

    def __init__(self, path):
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rb") as file:
            data = file.read()
        self.processes = {}
        # uuid -> (process, name, unit, is a counter); the name begins with its groups': "HBM > HBM 0/Read"
        self.tracks = {}
        # (process, track, type, ns since the epoch, value or name)
        self.events = []
        # Beside each event: its args, and the ids of the flows that go on and that end with it.
        self.more = []
        self._clocks = {}  # sequence -> now
        packets = []
        for number, packet in fields(data):
            if number != 1:
                raise ValueError(f"field {number} in a trace")
            packets.append(dict(fields(packet)))
        self.packets = len(packets)
        self._describe([dict(fields(p[60])) for p in packets if 60 in p])
        for packet in packets:
            self._walk(packet)

    def _describe(self, descriptors):
        names = {}
        rows = {}
        for track in descriptors:
            if 3 in track:
                process = dict(fields(track[3]))
                if process[1] in self.processes:
                    raise ValueError(f"pid {process[1]} is described twice")
                names[track[1]] = self.processes[process[1]] = text(process[6])
                continue
            if track[1] in rows:
                raise ValueError(f"track {track[1]} is described twice")
            rows[track[1]] = track
        for uuid, track in rows.items():
            unit = text(first(track[8], 6, b"")) if 8 in track else ""
            name, parent = text(track[2]), track[5]
            while parent in rows:
                name = text(rows[parent][2]) + " > " + name
                parent = rows[parent][5]
            self.tracks[uuid] = (names[parent], name, unit, 8 in track)

    def _walk(self, packet):
        sequence = packet[10]
        if 6 in packet:
            clocks = {first(c, 1): first(c, 2) for number, c in fields(packet[6]) if number == 1}
            if clocks[REALTIME] != clocks[BOOTTIME] or packet[13] != 1:
                raise ValueError("trace time is not wall clock")
            self._clocks[sequence] = clocks[first(packet[59], 58)]
        if 11 not in packet:
            return
        if packet[13] != 2:
            raise ValueError("an event that does not ask for its sequence's clock")
        if 58 in packet:
            if packet[58] != BOOTTIME:
                raise ValueError(f"clock {packet[58]}")
            timestamp = packet[8]
        else:
            timestamp = self._clocks[sequence] = self._clocks[sequence] + packet[8]
        of_event = list(fields(packet[11]))
        event = dict(of_event)
        process, track, _, counter = self.tracks[event[11]]
        kind = TYPES[event[9]]
        if (kind == "counter") != counter:
            raise ValueError(f"{kind} on {track}")
        value = struct.unpack("<d", event[44])[0] if counter else text(event.get(23, b""))
        self.events.append((process, track, kind, timestamp, value))
        self.more.append(annotations(of_event))

    def slices(self):
        """What the trace processor makes of begins and ends: (process, track, name, begin, end, args, flows, ended)."""
        open_ones = {}
        found = []
        # By time; packets of one timestamp in the order of the file.
        for (process, track, kind, timestamp, name), more in sorted(zip(self.events, self.more), key=lambda e: e[0][3]):
            stack = open_ones.setdefault((process, track), [])
            if kind == "begin":
                stack.append((process, track, name, timestamp, *more))
            elif kind == "end":
                process, track, name, begin, args, flows, ended = stack.pop()
                found.append((process, track, name, begin, timestamp, args, flows, ended))
        return found

    def unbalanced(self):
        """Tracks whose slices do not end, or end before they begin."""
        depth = {}
        broken = set()
        for process, track, kind, timestamp, _ in sorted(self.events, key=lambda e: e[3]):
            if kind in ("begin", "end"):
                key = (process, track)
                depth[key] = depth.get(key, 0) + (1 if kind == "begin" else -1)
                if depth[key] < 0:
                    broken.add(key)
        return broken | {key for key, left in depth.items() if left}
