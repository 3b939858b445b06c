"""What the tests of the attach socket share: a daemon, and clients and rings that go with the test."""

import contextlib
import os

from attach_client import Client, Ring
from profd_harness import DaemonCase, eventually, scaled


class AttachCase(DaemonCase):
    devices = 2

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    @property
    def path(self):
        return os.path.join(self.daemon.base, "attach.sock")

    def client(self):
        return self.stack.enter_context(Client(self.path, timeout=scaled(30)))

    def ring(self, *args, **how):
        ring = Ring(*args, **how)
        self.stack.callback(ring.close)
        return ring

    def process(self):
        """This process as the daemon lists it (the newest attachment)."""
        found = [p for p in self.daemon.processes() if p["pid"] == os.getpid()]
        return found[-1] if found else None

    def attached(self):
        return self.daemon.ctl("status")["attached_processes"]

    def no_process_left(self):
        eventually(lambda: self.attached() == 0, seconds=60, what="no process is attached")
