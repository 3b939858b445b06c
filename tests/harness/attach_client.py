"""A training process's side of the attach socket, without libprofd: packets, and a mark ring in a memfd.

docs/internals.md describes both. Everything is written by hand, so that a test can also do what no
library would.
"""

import array
import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time

MAGIC = 0x314B52414D465250
HEADER_BYTES = 4096
SLOT = struct.Struct("<QqqiHHQ88s")
TAIL, DROPPED, HEAD, ACTIVE = 64, 128, 192, 16
MARK, PUSH, POP, STEP_BEGIN, STEP_END = 1, 2, 3, 4, 5
F_ADD_SEALS = 1033
SEAL_SHRINK, SEAL_GROW = 2, 4
DEADLINE = 30.0


def raw_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def script(code):
    """The command of a process that can import this module; its arguments begin with sys.argv[1]."""
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n" + code]


class SharedMemory:
    """Memory of a ring that is handed to the daemon."""

    def __init__(self, name, size, seals):
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        fcntl.fcntl(self.fd, F_ADD_SEALS, seals)
        self.memory = mmap.mmap(self.fd, size)

    def word(self, offset):
        return struct.unpack_from("<Q", self.memory, offset)[0]

    def set_word(self, offset, value):
        # One aligned store, as a producer makes it.
        ctypes.c_uint64.from_buffer(self.memory, offset).value = value

    def close(self):
        self.memory.close()
        os.close(self.fd)


class Ring(SharedMemory):
    """One producer's view of a mark ring. Not for several threads at once."""

    def __init__(self, slots=256, seals=SEAL_SHRINK | SEAL_GROW, size=None, magic=MAGIC, version=1,
                 claimed_slots=None):
        self.slots = slots
        size = HEADER_BYTES + slots * SLOT.size if size is None else size
        super().__init__("marks", size, seals)
        struct.pack_into("<QII", self.memory, 0, magic, version,
                         slots if claimed_slots is None else claimed_slots)
        if size >= HEADER_BYTES + slots * SLOT.size:
            for i in range(slots):
                self.set_sequence(i, i)
        self.tail = 0
        self.dropped = 0

    def slot_at(self, position):
        return HEADER_BYTES + (position % self.slots) * SLOT.size

    def set_sequence(self, position, sequence):
        self.set_word(self.slot_at(position), sequence)

    def put(self, kind, name="", value=0, time_ns=None, name_bytes=None):
        """True if it went in; counts it as dropped otherwise."""
        at = self.slot_at(self.tail)
        if self.word(at) != self.tail:
            self.dropped += 1
            self.set_word(DROPPED, self.dropped)
            return False
        name = name.encode() if isinstance(name, str) else name
        fields = SLOT.pack(self.tail, raw_ns() if time_ns is None else time_ns, value,
                           threading.get_native_id(), kind,
                           len(name) if name_bytes is None else name_bytes, 0, name)
        self.memory[at + 8:at + SLOT.size] = fields[8:]
        self.set_word(TAIL, self.tail + 1)
        self.set_word(at, self.tail + 1)
        self.tail += 1
        return True

    def step(self, number, begin_ns=None, end_ns=None):
        self.put(STEP_BEGIN, value=number, time_ns=begin_ns)
        self.put(STEP_END, value=number, time_ns=end_ns)

    def taken(self):
        return self.word(HEAD)


class Client:
    """One connection. receive() returns parsed packets in the order of arrival."""

    def __init__(self, path, timeout=DEADLINE):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)
        self.socket.settimeout(timeout)
        self.welcome = None

    def send(self, packet, descriptors=()):
        data = packet if isinstance(packet, bytes) else json.dumps(packet).encode()
        ancillary = []
        if descriptors:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self.socket.sendmsg([data], ancillary)

    def receive(self):
        """The next packet; None at the end of the connection."""
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            return None
        return json.loads(data) if data else None

    def receive_until(self, type_name, **members):
        """The next packet of this type with these members; packets before it are lost."""
        while True:
            packet = self.receive()
            if packet is None:
                raise AssertionError(f"the connection ended before {type_name} {members} came")
            if packet["type"] == type_name and all(
                    packet.get(key) == value for key, value in members.items()):
                return packet

    def hello(self, ring=None, descriptors=None, **members):
        packet = {"type": "hello", "version": 1, "library": "attach_client", **members}
        if ring is not None:
            packet["has_ring"] = True
        if descriptors is None:
            descriptors = [] if ring is None else [ring.fd]
        # A process that was refused at once cannot send any more, but still reads why.
        with contextlib.suppress(BrokenPipeError):
            self.send(packet, descriptors)
        return self

    def attach(self, ring=None, **members):
        """Hello and welcome."""
        self.hello(ring, **members)
        answer = self.receive()
        if answer is None or answer["type"] != "welcome":
            raise AssertionError(f"no welcome but {answer}")
        self.welcome = answer
        return self

    def call(self, type_name, seq, **members):
        self.send({"type": type_name, "seq": seq, **members})
        return self.receive_until("reply", seq=seq)

    def bye(self):
        self.send({"type": "bye"})
        self.close()

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()


class Forked:
    """A fork()ed child that becomes another user, runs what(keep) and stays; its answer is JSON. What it
    appends to `keep` stays as long.

    Not a program of its own: the interpreter and this folder may be closed to other users.
    """

    def __init__(self, what, uid, groups=()):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(read)
                keep = []
                os.setgroups(list(groups))
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                os.write(write, json.dumps(what(keep)).encode() + b"\n")
                signal.pause()
            finally:
                os._exit(1)
        os.close(write)
        with os.fdopen(read) as answer:
            line = answer.readline()
        if not line:
            self.end()
            raise AssertionError("the child ended without an answer")
        self.answer = json.loads(line)

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.end()
