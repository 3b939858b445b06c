#!/usr/bin/env python3
"""What processes do, shown live: metrics, profctl stream --activity, profctl top. A test plays the processes."""

import json
import os
import struct
import time

from activity_ring import KERNEL, KERNEL_RECORD, ActivityRing
from attach_case import AttachCase
from attach_client import raw_ns
from profd_harness import eventually, main

SECOND = 10**9
COMMUNICATION = 3
COMMUNICATION_RECORD = struct.Struct("<IIIIQQIIIHHHHf")
KINDS = ("computation", "communication", "communication_not_overlapped", "free")


def until(second):
    while raw_ns() < second * SECOND:
        time.sleep(0.02)


class LiveActivity(AttachCase):
    def collecting(self, **hello):
        """A process whose collector works, its ring, and the first second that is watched whole."""
        ring = ActivityRing()
        self.addCleanup(ring.close)
        client = self.client().attach(**hello)
        client.send({"type": "collector", "session_id": "s", "provider": "mspti", "state": "on",
                     "kinds": ["kernel", "communication"], "has_ring": True}, [ring.fd])
        eventually(lambda: self.daemon.run("stream", "--activity", "--count", "1").returncode == 0,
                   what="a second is complete")
        ring.put_names(["MatMul", "Add", "hcom_allReduce_"])
        return client, ring

    @staticmethod
    def put_second(ring, second):
        """400 kernels of 1 ms, each 2 ms after the one before, on two streams; one of 150 ms from 820 ms on.
        Communication from 920 to 1020 ms: 80 ms of it in this second, 30 ms without a kernel."""
        begin = second * SECOND
        kernels = b"".join(KERNEL_RECORD.pack(2_000_000 * i, 1_000_000, 0, i % 2, i, 1, 0, 0, 0, 0, 0)
                           for i in range(400))
        kernels += KERNEL_RECORD.pack(820_000_000, 150_000_000, 0, 0, 400, 2, 0, 0, 0, 0, 0)
        ring.put_frame(KERNEL, 401, kernels, base_ns=begin)
        ring.put_frame(COMMUNICATION, 1, COMMUNICATION_RECORD.pack(
            0, 100_000_000, 0, 9, 7, 1024, 3, 0, 0, 0, 0, 0, 0, 0.0), base_ns=begin + 920_000_000)

    def stream(self, *args):
        result = self.daemon.run("stream", "--activity", *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def activity(self):
        return [p for p in self.daemon.ctl("top", "--once")["processes"] if p["pid"] == os.getpid()][-1]["activity"]

    def test_shares_of_a_second(self):
        client, ring = self.collecting(job_id="live", rank=3)
        second = raw_ns() // SECOND + 1
        until(second + 1.1)
        self.put_second(ring, second)
        spans = {span["begin_ns"] // SECOND: span for span in self.stream("--count", "6")}
        self.assertIn(second, spans)
        span = spans[second]
        self.assertEqual((span["pid"], span["job_id"], span["rank"]), (os.getpid(), "live", 3))
        for name, value in (("computation", 0.55), ("communication", 0.08), ("not_overlapped", 0.03),
                            ("free", 0.42)):
            self.assertAlmostEqual(span[f"{name}_ratio"], value, places=6, msg=name)
        self.assertEqual((span["kernels"], span["longest_kernel"], span["longest_kernel_ns"]),
                         (401, "Add", 150_000_000))
        self.assertEqual(span["kernels_per_second"], 401)
        # The next second has what remains of the communication.
        self.assertAlmostEqual(spans[second + 1]["not_overlapped_ratio"], 0.02, places=6)
        client.bye()

    def test_metrics_and_top(self):
        client, ring = self.collecting(job_id="live", rank=0)
        labels = {"job_id": "live", "rank": "0", "pid": str(os.getpid())}
        second = raw_ns() // SECOND
        until(second + 0.99)
        self.put_second(ring, second)
        eventually(lambda: {k["name"]: (k["count"], k["total_ns"]) for k in self.activity()["hottest_kernels"]}
                   == {"MatMul": (400, 400_000_000), "Add": (1, 150_000_000)}, what="top has the kernels")
        eventually(lambda: self.daemon.metric("atlas_npu_longest_kernel_seconds", **labels) == 0.15,
                   what="the kernel is in the metrics")
        shares = [self.daemon.metric("atlas_npu_activity_ratio", kind=kind, **labels) for kind in KINDS]
        self.assertAlmostEqual(shares[0] + shares[2] + shares[3], 1, places=6)
        self.assertGreater(shares[0], 0.05)
        self.assertGreater(self.daemon.metric("atlas_npu_kernels_per_second", **labels), 40)
        self.assertEqual(self.daemon.metric("atlas_npu_activity_lost_records_total", **labels), 0)
        # Its session has ended: nothing is known of it any more.
        client.send({"type": "collector", "session_id": "s", "provider": "mspti", "state": "off", "kinds": []})
        eventually(lambda: self.daemon.metric("atlas_npu_activity_ratio", **labels) is None,
                   what="the series end")
        self.assertIsNone(self.activity())
        client.bye()


if __name__ == "__main__":
    main()
