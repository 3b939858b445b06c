"""A training process's end of an activity ring (docs/internals.md), written by hand like attach_client's."""

import struct

from attach_client import SEAL_GROW, SEAL_SHRINK, SharedMemory, raw_ns

MAGIC = 0x3156544341465250
HEADER_BYTES = 4096
BYTES, HEAD, DROPPED, LOST_BYTES, TAIL, GENERATION = 16, 64, 80, 160, 192, 200
NAMES, KERNEL, API = 1, 2, 4
FRAME = struct.Struct("<IHHq")
KERNEL_RECORD = struct.Struct("<IIIIQIIHHHH")


class ActivityRing(SharedMemory):
    def __init__(self, data_bytes=1 << 20, seals=SEAL_SHRINK | SEAL_GROW):
        super().__init__("activity", HEADER_BYTES + data_bytes, seals)
        struct.pack_into("<QIIQ", self.memory, 0, MAGIC, 1, 0, data_bytes)
        self.head = 0

    def put_frame(self, frame_type, count, records, length=None, base_ns=None):
        """Without wrapping: a test writes less than a ring."""
        size = FRAME.size + len(records)
        at = HEADER_BYTES + self.head
        head = FRAME.pack(size if length is None else length, frame_type, count,
                          raw_ns() if base_ns is None else base_ns)
        self.memory[at:at + size] = head + records
        self.head += size
        self.set_word(HEAD, self.head)

    def put_names(self, names):
        records = b""
        for number, name in enumerate(names, 1):
            text = name.encode()
            records += struct.pack("<IHH", number, len(text), 0) + text + bytes(-len(text) % 8)
        self.put_frame(NAMES, len(names), records)

    def put_kernels(self, count, name=1, **how):
        one = KERNEL_RECORD.pack(0, 1000, 0, 3, 7, name, 0, 0, 0, 0, 0)
        self.put_frame(KERNEL, count, one * count, **how)

    def taken(self):
        return self.word(TAIL)
