#!/usr/bin/env python3
"""Activity rings of processes that a test plays itself: they are emptied, counted, and given up when they break."""

import contextlib
import os
import struct

import activity_ring
from activity_ring import ActivityRing
from attach_case import AttachCase
from attach_client import SEAL_GROW, SEAL_SHRINK
from profd_harness import eventually, main
from text_files import read_json

INVALID, NOT_FOUND, EXHAUSTED, DATA_LOSS = 3, 5, 8, 15


class ActivityRings(AttachCase):
    def collecting(self):
        """A process whose collector has just reported, and its ring."""
        ring = ActivityRing()
        self.addCleanup(ring.close)
        client = self.client().attach()
        self.assertTrue(client.welcome["takes_collector"])
        self.report(client, [ring.fd])
        eventually(lambda: ring.word(activity_ring.GENERATION) == 1, what="the ring is mapped")
        return client, ring

    @staticmethod
    def report(client, descriptors, **members):
        client.send({"type": "collector", "session_id": "s", "provider": "mspti", "state": "on",
                     "kinds": ["kernel"], "has_ring": True, **members}, descriptors)

    def metric(self, name):
        return self.daemon.metric(f"profd_activity_{name}_total") or 0

    def test_records_are_taken_without_a_session(self):
        before = self.metric("records")
        client, ring = self.collecting()
        ring.put_names(["MatMul"])
        ring.put_kernels(300)
        eventually(lambda: ring.taken() == ring.head, what="the ring is empty")
        eventually(lambda: self.metric("records") == before + 300, what="the records are counted")
        client.bye()

    def test_a_process_that_never_hands_over(self):
        """One that hangs, or is stopped: its session ends without its last records, and the dump is complete."""
        client = self.client().attach(job_id="hangs", rank=0, devices=[0])
        session = client.call("start", 1, options_json='{"task_time": "l1"}')["session"]["session_id"]
        ring = ActivityRing()
        self.addCleanup(ring.close)
        self.report(client, [ring.fd], session_id=session)
        ring.put_names(["MatMul"])
        ring.put_kernels(50)
        eventually(lambda: ring.taken() == ring.head, what="the ring is empty")
        ended = self.daemon.ctl("stop", session)
        ended = ended["sessions"][0] if "sessions" in ended else ended
        self.assertEqual((ended["state"], ended["records"]), ("done", 50), ended)
        self.assertEqual(ended["warnings"], [f"process {os.getpid()} did not hand over the last records in time"])
        self.assertEqual(read_json(ended["dump_path"], "profd_manifest.json")["state"], "done")
        client.bye()

    def test_losses_are_counted(self):
        dropped, lost, clamped = (self.metric(n) for n in ("dropped", "lost_bytes", "clamped"))
        client, ring = self.collecting()
        ring.set_word(activity_ring.DROPPED + 8 * activity_ring.KERNEL, 5)
        ring.set_word(activity_ring.DROPPED + 8 * activity_ring.API, 2)
        ring.set_word(activity_ring.LOST_BYTES, 56)
        ring.put_kernels(3, base_ns=2**62)
        eventually(lambda: (self.metric("dropped"), self.metric("lost_bytes"), self.metric("clamped"))
                   == (dropped + 7, lost + 56, clamped + 3), what="what was lost is counted")
        client.bye()

    def test_rings_that_break(self):
        def long_frame(ring):
            ring.put_kernels(1, length=1 << 20)

        def wild_name(ring):
            ring.put_kernels(1, name=1 << 20)

        def head_runs_away(ring):
            ring.set_word(activity_ring.HEAD, 1 << 60)

        def name_changes(ring):
            ring.put_names(["a"])
            ring.put_names(["b"])

        for spoil in (long_frame, wild_name, head_runs_away, name_changes):
            with self.subTest(spoil.__name__):
                before = self.metric("rings_broken")
                client, ring = self.collecting()
                spoil(ring)
                answer = client.receive()
                self.assertEqual((answer["type"], answer["seq"], answer["code"]), ("reply", 0, DATA_LOSS))
                self.assertIn("activity ring", answer["message"])
                # The process stays attached.
                self.assertEqual(client.call("status", 5)["code"], NOT_FOUND)
                eventually(lambda: self.metric("rings_broken") == before + 1, what="it is counted")
                client.bye()

    def test_what_one_user_holds_is_limited(self):
        """192 MiB: a name with the last number makes a table of 65534 entries of 32 bytes, 2 MiB."""
        before = self.metric("rings_broken")
        clients = [self.collecting() for _ in range(110)]
        for _, ring in clients:
            ring.put_frame(activity_ring.NAMES, 1, struct.pack("<IHH", 65534, 8, 0) + b"the last")
        eventually(lambda: self.metric("rings_broken") >= before + 110 - 96, what="the rings beyond the limit are given up")
        refused = []

        def answered():
            for client, _ in clients:
                client.socket.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    refused.append(client.receive()["code"])
            return len(refused) >= 110 - 96
        eventually(answered, what="their processes are notified")
        self.assertEqual(refused, [EXHAUSTED] * (110 - 96))
        for client, _ in clients:
            client.close()
        self.no_process_left()
        client, ring = self.collecting()
        ring.put_frame(activity_ring.NAMES, 1, struct.pack("<IHH", 65534, 8, 0) + b"the last")
        eventually(lambda: ring.taken() == ring.head, what="there is space again")
        self.assertEqual(client.call("status", 5)["code"], NOT_FOUND)
        client.bye()

    def test_rings_that_could_be_cut(self):
        """Without its seals a memfd is refused: a read beyond its new end would be SIGBUS. With them it cannot be cut."""
        client, ring = self.collecting()
        self.assertRaises(PermissionError, os.ftruncate, ring.fd, 0)
        for seals in (0, SEAL_SHRINK, SEAL_GROW):
            loose = ActivityRing(seals=seals)
            self.addCleanup(loose.close)
            self.report(client, [loose.fd])
            answer = client.receive()
            self.assertEqual((answer["seq"], answer["code"]), (0, INVALID), answer)
            self.assertIn("not sealed", answer["message"])
            if not seals & SEAL_SHRINK:
                os.ftruncate(loose.fd, 0)
        before = self.metric("records")
        ring.put_names(["MatMul"])
        ring.put_kernels(7)
        eventually(lambda: self.metric("records") == before + 7, what="the sealed one is still read")
        client.bye()


if __name__ == "__main__":
    main()
