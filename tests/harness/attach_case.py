"""What the tests of the attach socket share: a daemon, and clients and rings that go with the test."""

import os

from attach_client import Client, Ring
from profd_harness import DaemonCase, eventually, scaled


class AttachCase(DaemonCase):
    devices = 2

    def client(self):
        return self.enterContext(Client(self.daemon.attach_socket, timeout=scaled(30)))

    def ring(self, *args, **how):
        ring = Ring(*args, **how)
        self.addCleanup(ring.close)
        return ring

    def process(self):
        """This process as the daemon lists it (the newest attachment)."""
        found = [p for p in self.daemon.processes() if p["pid"] == os.getpid()]
        return found[-1] if found else None

    def attached(self):
        return self.daemon.ctl("status")["attached_processes"]

    def no_process_left(self):
        eventually(lambda: self.attached() == 0, seconds=60, what="no process is attached")
