#!/usr/bin/env python3
"""Clients that misbehave: vanish, never read, come in crowds, speak nonsense. The daemon serves the
others all the while and keeps nothing of them."""

import contextlib
import os
import random
import select
import signal
import socket
import unittest

import prof_reader
from profd_harness import ALL_OPTIONS, DaemonCase, eventually, main, scaled, temp_folder
from raw_http2 import PREFACE

HCCS = ("--devices", "0", "--sys-interconnection-freq", "50")


class Clients(DaemonCase):
    devices = 2
    config = {"daemon": {"max_connections": 24}}

    def setUp(self):
        self.end_all()

    def connections(self):
        return self.daemon.metric("profd_rpc_connections")

    def settle(self):
        """All connections of the past are forgotten: what is left is the looking itself."""
        eventually(lambda: self.connections() == 0, what="no connection is left")

    # Vanishing ------------------------------------------------------------------------------

    def test_killed_in_the_middle_of_start(self):
        """Whatever the moment: the session is either there, complete and stoppable, or not at all."""
        for attempt in range(8):
            client = self.daemon.spawn("start", "--job", f"vanish-{attempt}", *HCCS)
            # The moment differs from attempt to attempt: the answer's first byte ends the race.
            select.select([client.stdout], [], [], 0.004 * attempt)
            client.kill()
            client.communicate()
        # Nothing hangs in between.
        eventually(lambda: all(s["state"] == "running"
                               for s in self.daemon.ctl("list", "--active")["sessions"]))
        for session in self.daemon.ctl("list", "--active")["sessions"]:
            stopped = self.daemon.ctl("stop", session["session_id"])["sessions"][0]
            self.assertEqual(stopped["state"], "done")
            self.assertEqual(prof_reader.read(stopped["dump_path"]).problems, [])
        self.settle()

    def test_killed_in_the_middle_of_stop(self):
        session = self.daemon.ctl("start", *ALL_OPTIONS)
        client = self.daemon.spawn("stop", session["session_id"])
        eventually(lambda: self.daemon.show(session["session_id"])["state"] != "running")
        client.kill()
        client.communicate()
        final = self.daemon.until_state(session["session_id"], "done")
        self.assertEqual(prof_reader.read(final["dump_path"]).problems, [])

    def test_killed_watch_and_stream(self):
        session = self.daemon.ctl("start", *HCCS)
        for command in (("watch", session["session_id"], "--interval", "100ms"),
                        ("stream", "--interval", "10ms")):
            client = self.daemon.spawn(*command)
            self.assertTrue(client.stdout.readline())
            client.kill()
            client.communicate()
        eventually(lambda: self.daemon.metric("profd_stream_subscribers") == 0)
        self.settle()
        self.assertEqual(self.daemon.show(session["session_id"])["state"], "running")

    def test_killed_fetch(self):
        session = self.daemon.record(*ALL_OPTIONS, seconds=1)
        out = temp_folder(self)
        client = self.daemon.spawn("fetch", session["session_id"], "--out", out)
        eventually(lambda: os.listdir(out) or client.poll() is not None)
        client.kill()
        client.communicate()
        self.settle()
        # The dump is neither locked nor harmed.
        out = temp_folder(self)
        answer = self.daemon.ctl("fetch", session["session_id"], "--out", out)
        self.assertEqual(prof_reader.read(answer["path"]).problems, [])
        self.daemon.ctl("rm", session["session_id"])

    def test_killed_watcher_of_a_session_that_ends(self):
        session = self.daemon.ctl("start", *HCCS)
        watchers = [self.daemon.spawn("watch", session["session_id"]) for _ in range(5)]
        for watcher in watchers:
            self.assertTrue(watcher.stdout.readline())
        for watcher in watchers[:2]:
            watcher.kill()
        self.daemon.ctl("stop", session["session_id"])
        for watcher in watchers:
            watcher.communicate(timeout=scaled(60))
        self.assertEqual([w.returncode for w in watchers[2:]], [0, 0, 0])

    # Slow -----------------------------------------------------------------------------------

    def test_stream_that_is_never_read(self):
        """A stopped reader loses samples, counted; the session and other streams lose nothing."""
        session = self.daemon.ctl("start", *ALL_OPTIONS)
        frozen = self.daemon.spawn("stream", "--interval", "10ms")
        self.assertTrue(frozen.stdout.readline())
        frozen.send_signal(signal.SIGSTOP)
        try:
            memory = self.daemon.rss()
            eventually(lambda: self.daemon.metric("profd_stream_dropped_samples_total"),
                       what="losses of the frozen stream are counted")
            fluent = self.daemon.run("stream", "--collectors", "hccs", "--count", "100",
                                     "--interval", "50ms")
            self.assertEqual(fluent.returncode, 0)
            self.assertNotIn("lost", fluent.stderr)
            self.assertLess(self.daemon.rss() - memory, 96 << 20)
            final = self.daemon.ctl("stop", session["session_id"])["sessions"][0]
            self.assertEqual(final["dropped_records"], 0)
        finally:
            frozen.send_signal(signal.SIGCONT)
            frozen.kill()
            frozen.communicate()
        dump = prof_reader.read_valid(final["dump_path"])
        for device in range(self.devices):
            self.assertEqual(prof_reader.time_gaps(dump[(device, "hbm.data")].timestamps(), 10_000), [])
        eventually(lambda: self.daemon.metric("profd_stream_subscribers") == 0)

    def test_frozen_fetch_and_watch(self):
        session = self.daemon.record(*ALL_OPTIONS, seconds=1)
        running = self.daemon.ctl("start", *HCCS)
        out = temp_folder(self)
        frozen = [self.daemon.spawn("fetch", session["session_id"], "--out", out),
                  self.daemon.spawn("watch", running["session_id"], "--interval", "100ms")]
        for client in frozen:
            client.send_signal(signal.SIGSTOP)
        try:
            before = running["records"]
            self.daemon.until_records(running["session_id"], before + 50)
            self.daemon.ctl("stop", running["session_id"])
        finally:
            for client in frozen:
                client.send_signal(signal.SIGCONT)
            codes = [client.communicate(timeout=scaled(60)) and client.returncode
                     for client in frozen]
        self.assertEqual(codes, [0, 0])

    # Crowds ---------------------------------------------------------------------------------

    def test_more_connections_than_allowed(self):
        self.settle()
        session = self.daemon.ctl("start", *HCCS)
        watch = self.daemon.spawn("watch", session["session_id"], "--interval", "100ms")
        self.assertTrue(watch.stdout.readline())
        rejected = self.daemon.metric("profd_rpc_rejected_total") or 0
        crowd = []
        try:
            for _ in range(60):
                raw = self.daemon.connect()
                crowd.append(raw)
                with contextlib.suppress(ConnectionError):  # turned away already
                    raw.sendall(PREFACE)
            eventually(lambda: self.daemon.metric("profd_rpc_rejected_total") - rejected >= 60 - 24,
                       what="the crowd is turned away")
            self.assertLessEqual(self.connections(), 24)
            # Who was there is served.
            lines = [watch.stdout.readline() for _ in range(5)]
            self.assertTrue(all(lines))
            # A newcomer gets an answer, and is not left waiting.
            self.assertEqual(self.daemon.run("status", "--timeout", "20s").returncode, 6)
        finally:
            for raw in crowd:
                raw.close()
        eventually(lambda: self.daemon.run("status").returncode == 0)
        self.daemon.ctl("stop", session["session_id"])
        watch.communicate(timeout=scaled(60))
        self.assertEqual(watch.returncode, 0)
        self.settle()

    def test_connections_come_and_go(self):
        self.settle()
        files = self.daemon.fd_count()
        for _ in range(300):
            self.daemon.connect().close()
        self.settle()
        eventually(lambda: self.daemon.fd_count() <= files + 2, what="descriptors are given back")

    # Nonsense -------------------------------------------------------------------------------

    def test_garbage(self):
        source = random.Random(20)
        for size in (1, 9, 24, 1000, 100_000):
            for start in (b"", PREFACE, PREFACE + b"\0\0\0\4\0\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n"):
                with self.daemon.connect() as raw, contextlib.suppress(OSError):
                    raw.sendall(start + source.randbytes(size))
                    raw.shutdown(socket.SHUT_WR)
                    while raw.recv(65536):
                        pass
        self.assertEqual(self.daemon.run("status").returncode, 0)
        self.settle()

    def test_frames_that_lie(self):
        """HTTP/2 frames whose length, type, stream or order make no sense."""
        source = random.Random(21)
        for _ in range(40):
            frame = (source.choice((0, 1, 9, 16384, 1 << 23)).to_bytes(3, "big") +
                     bytes((source.randrange(256), source.randrange(256))) +
                     source.randrange(1 << 32).to_bytes(4, "big") + source.randbytes(64))
            with self.daemon.connect() as raw, contextlib.suppress(OSError):
                raw.sendall(PREFACE + b"\0\0\0\4\0\0\0\0\0" + frame)
                raw.settimeout(0.05)
                raw.recv(65536)
        self.assertEqual(self.daemon.run("status").returncode, 0)
        self.settle()

    def test_half_open(self):
        """Connections that say nothing, or half a word, cost a descriptor each and no service."""
        silent = []
        for text in (b"", b"P", PREFACE[:10], PREFACE, PREFACE + b"\0\0"):
            raw = self.daemon.connect()
            raw.sendall(text)
            silent.append(raw)
        session = self.daemon.ctl("start", *HCCS)
        self.daemon.until_records(session["session_id"], 20)
        self.daemon.ctl("stop", session["session_id"])
        for raw in silent:
            raw.shutdown(socket.SHUT_WR)
        for raw in silent:
            raw.close()
        self.settle()


class Fetched(DaemonCase):
    devices = 1

    @unittest.expectedFailure  # FetchDump sends files, not folders: a session without host
    # collectors has an empty host/data/ that the fetched copy lacks. The analyser expects one.
    def test_empty_folders_arrive(self):
        session = self.daemon.record(*HCCS, seconds=0.3)
        self.assertEqual(prof_reader.read(session["dump_path"]).problems, [])
        out = temp_folder(self)
        answer = self.daemon.ctl("fetch", session["session_id"], "--out", out)
        self.assertEqual(prof_reader.read(answer["path"]).problems, [])


if __name__ == "__main__":
    main()
