#!/usr/bin/env python3
"""One user who wants all there is: connections, sessions, space for dumps, memory by way of compressed messages.
Needs root, to be several users."""

import contextlib
import json
import os
import socket
import tempfile
import time
import zlib
from unittest import mock

import processes
import raw_http2
from attack_common import START, AttackCase, Attacker, as_user, tree
from attach_client import Forked
from profd_harness import ALICE, ALL_OPTIONS, BOB, DaemonCase, eventually, is_sanitized, main, memory_root, scaled, temp_folder

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
        return int(processes.status(self.daemon.pid, "VmHWM")) // 1024

    def assert_small_while(self, what):
        before = self.peak()
        what()
        self.assertTrue(self.daemon.alive())
        self.assertTrue(self.daemon.ctl("status"))
        if not is_sanitized():
            self.assertLess(self.peak() - before, 32, "MiB more at the peak")

    def test_grpc_message_that_unpacks_to_gigabytes(self):
        """250 KiB of gzip are 250 MiB: refused before they are unpacked."""
        bomb = gzip_bomb(250)
        self.assertLess(len(bomb), 256 * 1024)

        def attack():
            for _ in range(3):
                with raw_http2.connect(self.daemon.socket) as raw:
                    raw.settimeout(scaled(30))
                    # The connection may also just end: it is not answered in any case.
                    with contextlib.suppress(ConnectionError):
                        connection = raw_http2.Connection(raw)
                        answer = connection.call("/profd.v1.NodeService/GetNode", bomb)
                        text = b"".join(body for kind, body in answer if kind == raw_http2.HEADERS)
                        self.assertIn(b"grpc-status\x02" + UNIMPLEMENTED, text)
                        # An honest call of the same client is served.
                        answer = connection.call("/profd.v1.NodeService/GetNode", b"", False, "identity")
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
        """Alice requests many sessions at once: two run, the minute has twelve starts, and Bob has his own."""
        crowd = [self.daemon.spawn("start", "--no-dump", *START, user=ALICE, groups=(self.group,))
                 for _ in range(4)]
        crowd_codes = sorted(child.wait(scaled(60)) for child in crowd)
        for child in crowd:
            child.communicate()
        self.assertEqual(crowd_codes, [0, 0, 3, 3])
        self.assertEqual(len(self.ctl_as(ALICE, "list", "--active")["sessions"]), 2)
        self.ctl_as(BOB, "start", "--no-dump", *START)
        # One after the other, then: each start counts, whether it is carried out or not.
        for session in self.ctl_as(ALICE, "list", "--active")["sessions"]:
            self.ctl_as(ALICE, "stop", session["session_id"])
        for _ in range(14):
            answer = self.daemon.run("start", "--no-dump", *START, user=ALICE, groups=(self.group,))
            if answer.returncode:
                break
            self.ctl_as(ALICE, "stop", json.loads(answer.stdout)["session_id"])
        self.assertEqual(answer.returncode, 3, answer.stderr)
        self.assertIn("max_starts_per_minute", answer.stdout + answer.stderr)
        self.ctl_as(BOB, "start", "--no-dump", *START)

    def test_limits_of_one_user(self):
        """Alice's sessions may use up her limit; Bob's continues."""
        bobs = self.ctl_as(BOB, "start", *START)["session_id"]
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


NODE, SESSION, DUMP = ("/profd.v1.%sService/" % name for name in ("Node", "Session", "Dump"))
TEXT = 0x0A  # field 1, a text: what every request begins with that names a session


def request_for(session):
    return bytes((TEXT, len(session))) + session.encode()


class Calls(AttackCase):
    """One user with more calls than needed, none of which is read. docs/configuration.md has the numbers, and
    names these tests."""

    # Per user, as the document says.
    STREAMS, WATCHES, FETCHES, UNARY = 64, 256, 16, 512
    CROWD = 600

    def setUp(self):
        super().setUp()
        self.before = self.refused()

    def held(self, call, what="calls"):
        return self.daemon.metric(f"profd_rpc_held_{what}", call=call)

    def refused(self):
        kinds = ("unary", "watch", "stream", "fetch")
        return {call: self.daemon.metric("profd_rpc_refused_total", call=call, limit="user") or 0 for call in kinds}

    def crowd(self, method, message, calls, ended):
        """Alice's, until so many of her calls have been ended. The answer of the last of those."""
        def attack(keep):
            keep.append(crowd := raw_http2.Crowd(self.daemon.connect))
            crowd.call(method, message, calls)
            done = crowd.until(lambda c: c.ended >= ended, scaled(60))
            return {"done": done, "ended": crowd.ended, "text": crowd.texts[0] if crowd.texts else ""}
        return Forked(attack, ALICE, (self.group,))

    def assert_refused(self, call, what, limit, crowd):
        self.assertEqual(crowd.answer["ended"], self.CROWD - limit, crowd.answer)
        self.assertIn(f"too many {what}: uid {ALICE} has {limit} open, the limit for one user", crowd.answer["text"])
        eventually(lambda: self.held(call) == limit, what=f"{limit} {what} are held")
        # Of streams also what their buffers would have had.
        eventually(lambda: self.refused()[call] - self.before[call] >= self.CROWD - limit, what="the others are counted")

    def assert_all_gone(self, call):
        eventually(lambda: (self.held(call), self.held(call, "bytes")) == (0, 0), what="all is given back")

    def test_streams_of_one_user(self):
        """600 streams of Alice's: 64 are served, in 16 MiB; the daemon stays small, and Bob has his own."""
        bobs = self.ctl_as(BOB, "start", *START)["session_id"]
        before = self.daemon.rss()
        with self.crowd(NODE + "StreamSamples", b"", self.CROWD, self.CROWD - self.STREAMS) as alice:
            self.assert_refused("stream", "live streams", self.STREAMS, alice)
            records = self.daemon.show(bobs)["records"]
            # While her buffers fill.
            self.daemon.until_records(bobs, records + 400)
            answer = self.daemon.run("stream", "--count", "20", user=BOB, groups=(self.group,))
            self.assertEqual(answer.returncode, 0, answer.stderr)
            self.assertLessEqual(self.held("stream", "bytes"), 17 * MIB)
            if not is_sanitized():
                self.assertLess(self.daemon.rss() - before, 96 * MIB)
        self.assert_all_gone("stream")
        self.assertEqual(self.ctl_as(BOB, "stop", bobs)["sessions"][0]["dropped_records"], 0)

    def test_watches_of_one_user(self):
        own = self.ctl_as(ALICE, "start", *START)["session_id"]
        before = self.daemon.rss()
        with self.crowd(SESSION + "WatchSession", request_for(own), self.CROWD, self.CROWD - self.WATCHES) as alice:
            self.assert_refused("watch", "watches", self.WATCHES, alice)
            bobs = self.ctl_as(BOB, "start", *START, "--duration", "1s")["session_id"]
            self.assertEqual(self.daemon.run("watch", bobs, user=BOB, groups=(self.group,)).returncode, 0)
            if not is_sanitized():
                self.assertLess(self.daemon.rss() - before, 96 * MIB)
        self.assert_all_gone("watch")

    def test_fetches_of_one_user(self):
        """Fetches that are not read hold their chunk and names, and keep no other user from fetching."""
        ended = {user: self.ctl_as(user, "start", *START, "--duration", "500ms")["session_id"] for user in (ALICE, BOB)}
        for session in ended.values():
            self.daemon.until_state(session, "done")
        with self.crowd(DUMP + "FetchDump", request_for(ended[ALICE]), self.CROWD, self.CROWD - self.FETCHES) as alice:
            self.assert_refused("fetch", "fetches of dumps", self.FETCHES, alice)
            out = temp_folder(self)
            os.chown(out, BOB, BOB)
            answer = self.daemon.run("fetch", ended[BOB], "--out", out, user=BOB, groups=(self.group,))
            self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assert_all_gone("fetch")

    def test_unread_answers_of_one_user(self):
        """An answer is memory until it has been taken."""
        before = self.daemon.rss()
        with self.crowd(NODE + "ListOptions", b"", 4 * self.CROWD, 4 * self.CROWD - self.UNARY) as alice:
            self.assertGreaterEqual(alice.answer["ended"], 4 * self.CROWD - self.UNARY, alice.answer)
            self.assertRegex(alice.answer["text"], rf"(too many|no memory for more) calls: (those of )?uid {ALICE} ")
            eventually(lambda: self.held("unary") >= 1, what="answers are held")
            self.assertLessEqual(self.held("unary"), self.UNARY)
            self.assertLessEqual(self.held("unary", "bytes"), 33 * MIB)
            self.ctl_as(BOB, "options")
            if not is_sanitized():
                self.assertLess(self.daemon.rss() - before, 128 * MIB)
        self.assert_all_gone("unary")

    def test_request_that_is_too_long(self):
        for size, ok in ((200 * 1024, True), (257 * 1024, False)):
            with self.daemon.connect() as raw:
                # Field 15 is unknown to GetNode, and so left alone.
                message = b"\x7a" + self.varint(size) + bytes(size)
                answer = raw_http2.Connection(raw).call(NODE + "GetNode", message, False, "identity")
                self.assertEqual(any(kind == raw_http2.DATA for kind, _ in answer), ok, size)

    def test_texts_that_are_not_utf8_do_not_fill_the_log(self):
        with self.daemon.connect() as raw:
            connection = raw_http2.Connection(raw)
            for _ in range(3):
                # The spec's label.
                connection.call(SESSION + "StartSession", b"\x0a\x05\x22\x03\xff\xfe\xfd", False, "identity")
        self.assertTrue(self.daemon.ctl("status"))
        self.assertNotIn("libprotobuf", self.daemon.log())

    @staticmethod
    def varint(number):
        out = b""
        while number >= 128:
            out += bytes((number & 127 | 128,))
            number >>= 7
        return out + bytes((number,))

    def test_calls_of_one_connection(self):
        with self.daemon.connect() as raw:
            self.assertEqual(raw_http2.settings_of(raw)[raw_http2.MAX_CONCURRENT], 64)


class CrowdedDumps(AttackCase):
    """Alice's finished dump is hers to fill with files. Reading it never delays records."""

    devices = 2

    @classmethod
    def setUpClass(cls):
        in_memory = mock.patch.object(tempfile, "tempdir", memory_root())
        in_memory.start()
        cls.addClassCleanup(in_memory.stop)
        super().setUpClass()

    def make_dump(self, files):
        """A finished dump of Alice's with so many empty files of hers more."""
        session = self.ctl_as(ALICE, "start", *START, "--duration", "300ms")["session_id"]
        self.daemon.until_state(session, "done")
        path = self.daemon.show(session)["dump_path"]

        def fill():
            for i in range(files):
                os.close(os.open(f"{path}/host/empty_{i:06d}", os.O_CREAT | os.O_WRONLY, 0o640))
        self.assertEqual(as_user(ALICE, (), fill), "None")
        return session

    def test_fetching_30000_files_loses_no_record(self):
        crowded = self.make_dump(30000)
        bobs = self.ctl_as(BOB, "start", *ALL_OPTIONS)["session_id"]

        def fetch_all():
            crowd = raw_http2.Crowd(self.daemon.connect, window=None)
            try:
                crowd.call(DUMP + "FetchDump", request_for(crowded), 320)
                crowd.until(lambda c: c.ended >= 320, scaled(5))
            finally:
                crowd.close()

        with Attacker(ALICE, fetch_all, groups=(self.group,)) as alice:
            records = self.daemon.show(bobs)["records"]
            self.daemon.until_records(bobs, records + 20000, seconds=120)
            # limits.stop_deadline_s is a promise.
            begin = time.monotonic()
            ended = self.ctl_as(BOB, "stop", bobs)["sessions"][0]
            self.assertLess(time.monotonic() - begin, scaled(10))
        self.assertGreater(alice.rounds, 0)
        self.assertEqual((ended["state"], ended["dropped_records"]), ("done", 0))
        self.assertGreater(self.refused_fetches(), 0)
        # And it can be fetched.
        out = temp_folder(self)
        os.chown(out, ALICE, ALICE)
        answer = eventually(lambda: self.fetched(crowded, out), what="her earlier fetches have ended")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertEqual(len([path for path in tree(out) if "/empty_" in path]), 30000)

    def refused_fetches(self):
        return self.daemon.metric("profd_rpc_refused_total", call="fetch", limit="user") or 0

    def fetched(self, session, out):
        answer = self.daemon.run("fetch", session, "--out", out, user=ALICE, groups=(self.group,))
        return None if "too many fetches" in answer.stderr else answer

    def test_dump_with_too_many_files(self):
        crowded = self.make_dump(65600)
        out = temp_folder(self)
        os.chown(out, ALICE, ALICE)
        answer = self.daemon.run("fetch", crowded, "--out", out, user=ALICE, groups=(self.group,))
        self.assertEqual(answer.returncode, 3, answer.stderr)
        self.assertIn("at most 65536 entries", answer.stdout + answer.stderr)


if __name__ == "__main__":
    main()
