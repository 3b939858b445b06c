#!/usr/bin/env python3
"""One user who wants all there is: connections, sessions, room for dumps, memory by way of compressed messages.
Needs root, to be several users."""

import contextlib
import json
import os
import re
import socket
import sys
import unittest
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import raw_http2
from attack_common import ORDER, AttackCase
from attach_client import Forked
from profd_harness import ALICE, BOB, IS_ROOT, DaemonCase, eventually, is_sanitized, main, scaled

MIB = 1 << 20
CONNECTIONS = 16
UNIMPLEMENTED = b"12"


def gzip_bomb(mib):
    """As many MiB of zeros, about a thousandth in bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(mib)) + packer.flush()


class Bombs(DaemonCase):
    devices = 1

    def peak(self):
        return int(re.search(r"VmHWM:\s+(\d+)", self.daemon.proc("status"))[1]) // 1024

    def assert_small_while(self, what):
        before = self.peak()
        what()
        self.assertTrue(self.daemon.alive())
        self.assertTrue(self.daemon.ctl("status"))
        if not is_sanitized():
            self.assertLess(self.peak() - before, 32, "MiB more at the peak")

    def test_grpc_message_that_unpacks_to_gigabytes(self):
        """250 KiB of gzip are 250 MiB: refused before anybody unpacks them."""
        bomb = gzip_bomb(250)
        self.assertLess(len(bomb), 256 * 1024)

        def attack():
            for _ in range(3):
                with raw_http2.connect(self.daemon.socket) as raw:
                    raw.settimeout(scaled(30))
                    # The connection may also just end: it is not answered in any case.
                    with contextlib.suppress(ConnectionError):
                        connection = raw_http2.Connection(raw)
                        answer = connection.call("/profd.v1.Profd/GetNode", bomb)
                        text = b"".join(body for kind, body in answer if kind == raw_http2.HEADERS)
                        self.assertIn(b"grpc-status\x02" + UNIMPLEMENTED, text)
                        # An honest call of the same client is served.
                        answer = connection.call("/profd.v1.Profd/GetNode", b"", False, "identity")
                        self.assertTrue([body for kind, body in answer if kind == raw_http2.DATA])
        self.assert_small_while(attack)

    def test_http_body_that_unpacks_to_gigabytes(self):
        """Requests have no bodies, whatever they are packed with."""
        bomb = gzip_bomb(64)

        def attack():
            for head in (f"Content-Length: {len(bomb)}", "Transfer-Encoding: gzip, chunked"):
                host, _, port = self.daemon.metrics_address.rpartition(":")
                with socket.create_connection((host, int(port)), timeout=scaled(30)) as raw:
                    with contextlib.suppress(OSError):
                        raw.sendall(f"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n{head}\r\n\r\n"
                                    .encode() + bomb)
                    answer = b""
                    with contextlib.suppress(ConnectionError):
                        while part := raw.recv(65536):
                            answer += part
                    self.assertNotIn(b" 200 ", answer[:20])
        self.assert_small_while(attack)


@unittest.skipUnless(IS_ROOT, "only root can be several users")
class Quotas(AttackCase):
    @classmethod
    def make_config(cls):
        config = super().make_config()
        config["daemon"]["max_connections"] = CONNECTIONS
        return {**config, "limits": {"max_sessions_per_uid": 2, "max_starts_per_minute": 12,
                                     "max_dump_mb_per_uid": 8}}

    def test_connections_of_one_user(self):
        """Alice takes every connection she can get; Bob and root are served all the while."""
        def hold(keep):
            for _ in range(3 * CONNECTIONS):
                raw = socket.socket(socket.AF_UNIX)
                keep.append(raw)
                raw.settimeout(scaled(30))
                raw.connect(self.daemon.socket)
                with contextlib.suppress(OSError):
                    raw.sendall(raw_http2.PREFACE + raw_http2.frame(raw_http2.SETTINGS, 0, 0))
            open_ = 0
            for raw in keep:
                with contextlib.suppress(OSError):
                    open_ += bool(raw.recv(1))
            return open_

        with Forked(hold, ALICE, (self.group,)) as alice:
            self.assertEqual(alice.answer, CONNECTIONS // 2)
            for _ in range(3):
                self.ctl_as(BOB, "list")
                self.daemon.ctl("status")
            self.assertEqual(self.daemon.run("list", "--timeout", "20s", user=ALICE,
                                             groups=(self.group,)).returncode, 6)
        eventually(lambda: self.daemon.run("list", user=ALICE, groups=(self.group,)).returncode == 0,
                   what="Alice is served again")

    def test_sessions_of_one_user(self):
        """Alice orders sessions in a crowd: two run, the minute has twelve starts, and Bob has his own."""
        crowd = [self.daemon.spawn("start", "--no-dump", *ORDER, user=ALICE, groups=(self.group,))
                 for _ in range(4)]
        crowd_codes = sorted(child.wait(scaled(60)) for child in crowd)
        for child in crowd:
            child.communicate()
        self.assertEqual(crowd_codes, [0, 0, 3, 3])
        self.assertEqual(len(self.ctl_as(ALICE, "list", "--active")["sessions"]), 2)
        self.ctl_as(BOB, "start", "--no-dump", *ORDER)
        # One after the other, then: each start counts, whether it is carried out or not.
        for session in self.ctl_as(ALICE, "list", "--active")["sessions"]:
            self.ctl_as(ALICE, "stop", session["session_id"])
        for _ in range(14):
            answer = self.daemon.run("start", "--no-dump", *ORDER, user=ALICE, groups=(self.group,))
            if answer.returncode:
                break
            self.ctl_as(ALICE, "stop", json.loads(answer.stdout)["session_id"])
        self.assertEqual(answer.returncode, 3, answer.stderr)
        self.assertIn("max_starts_per_minute", answer.stdout + answer.stderr)
        self.ctl_as(BOB, "start", "--no-dump", *ORDER)

    def test_room_of_one_user(self):
        """What Alice's sessions may write is hers to use up, and nobody else's: Bob's goes on."""
        bobs = self.ctl_as(BOB, "start", *ORDER)["session_id"]
        everything = ("--sys-hardware-mem-freq", "100", "--sys-io-sampling-freq", "100", "--dvpp-freq", "100",
                      "--sys-interconnection-freq", "50", "--llc-profiling", "read", "--storage-limit", "200MB")
        answer = self.daemon.run("start", *everything, user=ALICE, groups=(self.group,))
        if answer.returncode == 0:
            ended = self.daemon.until_state(json.loads(answer.stdout)["session_id"], "done", "failed", seconds=120)
            self.assertIn("max_dump_mb_per_uid", ended["reason"])
            self.assertLess(ended["bytes"], 12 * MIB)
        else:
            self.assertIn("max_dump_mb_per_uid", answer.stdout + answer.stderr)
        records = self.daemon.show(bobs)["records"]
        self.daemon.until_records(bobs, records + 20)
        self.assertEqual(self.ctl_as(BOB, "stop", bobs)["sessions"][0]["state"], "done")


if __name__ == "__main__":
    main()
