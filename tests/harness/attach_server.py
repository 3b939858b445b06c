"""The daemon's side of the attach socket, without a daemon: for tests that ask a process to collect."""

import array
import json
import os
import socket

from attach_client import HEADER_BYTES, SLOT
from profd_harness import scaled


class AttachServer:
    """Takes one process at a time; packets are answered and read in the test's order."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "attach.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen()
        self.listener.settimeout(scaled(60))
        self.process = None
        self.ring = None
        self.hello = None

    def close(self):
        for one in (self.process, self.listener):
            if one is not None:
                one.close()
        if self.ring is not None:
            os.close(self.ring)

    def welcome(self):
        """Waits for a process and welcomes it."""
        self.process, _ = self.listener.accept()
        self.process.settimeout(scaled(60))
        self.hello = self.receive()
        self.send({"type": "welcome", "version": 1, "daemon": "profd", "attach_id": 1, "takes_collector": True})

    def receive(self):
        data, ancillary, _, _ = self.process.recvmsg(1 << 18, socket.CMSG_SPACE(4))
        for _, _, descriptors in ancillary:
            numbers = array.array("i")
            numbers.frombytes(descriptors)
            if self.ring is None:
                self.ring = numbers[0]
            else:
                os.close(numbers[0])
        return json.loads(data) if data else None

    def receive_until(self, type_name, **members):
        """The next packet of this type with these members; None at the end of the connection."""
        while True:
            packet = self.receive()
            if packet is None or packet["type"] == type_name and members.items() <= packet.items():
                return packet

    def send(self, packet):
        self.process.send(json.dumps(packet).encode())

    def session(self, state, session_id="s", **members):
        self.send({"type": "session", "session_id": session_id, "state": state, **members})

    def marks(self):
        """[(kind, value, thread, name)] of all slots that were filled so far; nothing is taken out of the ring."""
        found = []
        slots = (os.fstat(self.ring).st_size - HEADER_BYTES) // SLOT.size
        for i in range(slots):
            sequence, _, value, thread, kind, length, _, name = SLOT.unpack(
                os.pread(self.ring, SLOT.size, HEADER_BYTES + i * SLOT.size))
            if sequence != i + 1:
                break
            found.append((kind, value, thread, name[:length].decode()))
        return found
