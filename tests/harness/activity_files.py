"""What training processes did, as a dump keeps it: docs/dumps.md, read by its tables alone."""

import collections
import glob
import os
import struct
from collections import namedtuple
from text_files import read_bytes, read_text

Kernel = namedtuple("Kernel", "start_ns duration_ns correlation stream name type thread process device "
                              "logical_device")
Communication = namedtuple("Communication", "start_ns duration_ns correlation count stream name communicator "
                                            "algorithm process bandwidth device logical_device data_type reserved")
Api = namedtuple("Api", "start_ns duration_ns correlation thread name process level reserved")
Marker = namedtuple("Marker", "time_ns id name domain thread stream process flag source device logical_device "
                              "reserved")
Memory = namedtuple("Memory", "start_ns duration_ns correlation bytes address stream process operation is_async "
                              "detail device logical_device")
NAMES = "activity_names.tsv"
FORMATS = {
    "kernel": (Kernel, "<qQQIIIIIHH", ("name", "type")),
    "communication": (Communication, "<qQQQIIIIIfHHHH", ("name", "communicator", "algorithm")),
    "api": (Api, "<qQQIIIHH", ("name",)),
    "marker": (Marker, "<qQIIIIIHHHHI", ("name", "domain")),
    "memory": (Memory, "<qQQQQIIBBHHH", ()),
}


def names_of(dump):
    path = os.path.join(dump, "host", "profd", NAMES)
    if not os.path.exists(path):
        return {0: ""}
    lines = read_text(path).splitlines()
    assert lines[0] == "id\tname", lines[0]
    names = {0: ""}
    for line in lines[1:]:
        number, name = line.split("\t")
        assert int(number) not in names, line
        names[int(number)] = name
    return names


def slices_of(dump, kind):
    slices = [p for p in glob.glob(os.path.join(dump, "host", "data", f"activity_{kind}.data.slice_*"))
              if not p.endswith(".done")]
    return sorted(slices, key=lambda p: int(p.rsplit("_", 1)[1]))


def processes(dump, kind):
    """How many records of a kind each process has in a dump that is being written."""
    row, layout, _ = FORMATS[kind]
    size = struct.calcsize(layout)
    found = collections.Counter()
    for path in slices_of(dump, kind):
        data = read_bytes(path)
        found.update(row(*fields).process for fields in struct.iter_unpack(layout, data[:len(data) // size * size]))
    return found


def read(dump, kind):
    """All records of a kind, oldest slice first, with texts in place of their ids."""
    row, layout, texts = FORMATS[kind]
    names = names_of(dump)
    records = []
    for path in slices_of(dump, kind):
        data = read_bytes(path)
        assert len(data) % struct.calcsize(layout) == 0, path
        records += [row(*fields) for fields in struct.iter_unpack(layout, data)]
    return [r._replace(**{field: names[getattr(r, field)] for field in texts}) for r in records]
