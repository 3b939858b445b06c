#!/usr/bin/env python3
"""The attach socket: sessions from inside a process, and everything a process should not do."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import prof_reader
from attach_case import AttachCase
from attach_client import DROPPED, MARK, SLOT, STEP_BEGIN, Client, Forked, Ring, raw_ns, script
from profd_harness import ALICE, BOB, UsersCase, eventually, main, scaled

HCCS = json.dumps({"sys_interconnection_freq": 50})
INVALID, NOT_FOUND = 3, 5


class Sessions(AttachCase):
    def test_start_status_stop(self):
        client = self.client().attach(job_id="train", rank=2, devices=[1])
        reply = client.call("start", 7, options_json=HCCS, label="from inside")
        self.assertEqual(reply["code"], 0, reply)
        session = reply["session"]
        self.assertEqual(session["state"], "running")
        self.assertEqual({o["collector"] for o in session["outcomes"] if o["result"] == "running"}
                         & {"hccs", "pcie"}, {"hccs", "pcie"})
        self.assertEqual({o["device"] for o in session["outcomes"] if o["collector"] == "hccs"}, {1})
        shown = self.daemon.until_records(session["session_id"], 10)
        self.assertEqual((shown["job_id"], shown["rank"], shown["label"], shown["pid"], shown["devices"]),
                         ("train", 2, "from inside", os.getpid(), [1]))
        status = client.call("status", 8)
        self.assertGreaterEqual(status["session"]["records"], 10)
        job = next(j for j in self.daemon.ctl("jobs")["jobs"] if j["job_id"] == "train")
        self.assertEqual(job["sessions"], [session["session_id"]])
        final = client.call("stop", 9)["session"]
        self.assertEqual((final["session_id"], final["state"]), (session["session_id"], "done"))
        self.assertEqual(prof_reader.read(final["dump_path"]).problems, [])
        client.bye()

    def test_a_start_whose_process_has_detached_meanwhile_is_ended(self):
        client = self.client().attach(job_id="hurried", devices=[0])
        client.send({"type": "start", "seq": 1, "options_json": HCCS})
        client.send({"type": "bye"})

        def states():
            return [s["state"] for s in self.daemon.ctl("list")["sessions"] if s["job_id"] == "hurried"]
        eventually(lambda: states() == ["done"], what="its session has ended")

    def test_a_socket_that_is_removed_comes_back(self):
        first = self.client().attach(job_id="before")
        os.unlink(self.daemon.attach_socket)
        os.unlink(self.daemon.socket)
        for name in ("attach", "daemon"):
            eventually(lambda: f"removed or replaced; bound again socket={name} " in self.daemon.log(), what=name)
        second = self.client().attach(job_id="after")
        self.assertEqual({j["job_id"] for j in self.daemon.ctl("jobs")["jobs"]} & {"before", "after"}, {"before", "after"})
        first.bye()
        second.bye()

    def test_options_in_the_hello_start_a_session(self):
        client = self.client().attach(job_id="env", devices=[0], options_json=HCCS)
        reply = client.receive_until("reply", seq=0)
        self.assertEqual((reply["code"], reply["session"]["state"]), (0, "running"))
        self.assertEqual(client.call("stop", 1)["session"]["state"], "done")

    def test_wrong_requests_start_nothing(self):
        client = self.client().attach(devices=[0])
        reply = client.call("start", 1, options_json='{"sys_interconnection_freq": 5000}')
        self.assertEqual(reply["code"], INVALID)
        self.assertIn("sys_interconnection_freq", reply["message"])
        self.assertEqual(client.call("stop", 2)["code"], NOT_FOUND)
        self.assertEqual(client.call("status", 3, session_id="nope")["code"], NOT_FOUND)

    def test_the_session_ends_with_its_process(self):
        code = ("from attach_client import Client\n"
                "c = Client(sys.argv[1]).attach(devices=[0])\n"
                "print(c.call('start', 1, options_json=sys.argv[2])['session']['session_id'], flush=True)\n"
                "sys.stdin.read()\n")
        with subprocess.Popen([*script(code), self.daemon.attach_socket, HCCS],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            session = process.stdout.readline().strip()
            self.daemon.until_state(session, "running")
            process.kill()
            self.daemon.until_state(session, "done")

    def test_steps_are_known_without_a_session(self):
        ring = self.ring()
        client = self.client().attach(ring, job_id="steps")
        begin = raw_ns() - 10**9
        for step in range(5):
            ring.step(step, begin + step * 10**8, begin + step * 10**8 + 4 * 10**7)
        found = eventually(lambda: (lambda p: p if p and p["step"] == 4 else None)(self.process()),
                           what="step 4")
        self.assertEqual(found["step_ns"], 40_000_000)
        self.assertEqual(found["marks"], 10)
        eventually(lambda: ring.taken() == 10, what="the ring says where its reader is")
        client.bye()

    def test_metadata_is_in_the_manifest(self):
        client = self.client().attach(devices=[0], metadata={"model": "x1"})
        client.send({"type": "metadata", "key": "epoch", "value": "3"})
        reply = client.call("start", 1, options_json=HCCS)
        self.assertEqual(reply["code"], 0, reply)
        shown = self.daemon.show(reply["session"]["session_id"])
        self.assertEqual({k: shown["metadata"].get(k) for k in ("model", "epoch")},
                         {"model": "x1", "epoch": "3"})
        client.call("stop", 2)

    def test_timestamps_from_the_future(self):
        before = self.daemon.metric("profd_marks_clamped_total") or 0
        ring = self.ring()
        self.client().attach(ring)
        ring.put(STEP_BEGIN, value=9, time_ns=2**62)
        eventually(lambda: (self.daemon.metric("profd_marks_clamped_total") or 0) == before + 1,
                   what="the timestamp is counted")


class Misbehaviour(AttachCase):
    """Whatever is sent: a reason, an end, and a daemon that continues."""

    def refused(self, client, code=INVALID):
        answer = client.receive()
        self.assertEqual((answer["type"], answer["code"]), ("refused", code), answer)
        self.assertIsNone(client.receive())

    def test_a_job_id_with_control_characters(self):
        client = self.client().hello(job_id="a b\033[2J")
        self.refused(client)
        self.no_process_left()

    def test_descriptors(self):
        before = None
        for _ in range(3):
            read, write = os.pipe()
            ring = Ring()
            for descriptors, has_ring in (([], True), ([read], True), ([ring.fd, read], True),
                                          ([read, write, ring.fd] * 20, True),
                                          ([ring.fd] * 2, False)):
                client = self.client()
                client.hello(descriptors=descriptors, has_ring=has_ring)
                self.refused(client)
                client.close()
            client = self.client().attach(ring)
            client.socket.sendmsg([b'{"type":"status","seq":1}'],
                                  [(socket.SOL_SOCKET, socket.SCM_RIGHTS, read.to_bytes(4, sys.byteorder))])
            self.assertEqual(client.receive()["code"], INVALID)
            client.close()
            os.close(read)
            os.close(write)
            ring.close()
            self.no_process_left()
            if before is None:
                before = self.daemon.fd_count()
        eventually(lambda: self.daemon.fd_count() <= before, what="no descriptor is left behind")

    def broken_ring(self, spoil):
        ring = self.ring()
        client = self.client().attach(ring)
        ring.put(MARK, "fine")
        eventually(lambda: ring.taken() == 1, what="the first mark is taken")
        spoil(ring)
        answer = client.receive()
        self.assertEqual((answer["type"], answer["seq"]), ("reply", 0))
        self.assertIn("ring", answer["message"])
        # The process stays attached.
        self.assertEqual(client.call("status", 5)["code"], NOT_FOUND)
        client.bye()

    def test_rings_that_break(self):
        def wild_sequence(ring):
            ring.set_sequence(1, 1 << 60)

        def long_name(ring):
            ring.put(MARK, "x", name_bytes=65535)

        def losses_backwards(ring):
            ring.set_word(DROPPED, 10)
            eventually(lambda: self.process()["dropped_marks"] == 10, what="the losses are seen")
            ring.set_word(DROPPED, 3)

        for spoil in (wild_sequence, long_name, losses_backwards):
            self.broken_ring(spoil)
        self.assertIn("ring of a process given up", self.daemon.log(400))

    def test_a_connection_that_overtakes_the_end_of_the_one_before(self):
        """A process that detaches and attaches again has the same ring, and the daemon may hear of both in any order."""
        ring = self.ring()
        names = ("profd_marks_total", "profd_marks_dropped_total", "profd_mark_rings_broken_total")
        begun = [self.daemon.metric(name) or 0 for name in names]

        def counted():
            return [(self.daemon.metric(name) or 0) - base for name, base in zip(names, begun)]
        connections = []
        for n in range(1, 5):
            connections.append(self.client().attach(ring))
            ring.put(MARK, str(n))
            eventually(lambda: sum(counted()) >= n, what="it is read")
        for client in connections:
            client.close()
        self.no_process_left()
        self.assertEqual(counted(), [4, 0, 0])

    def test_random_rings(self):
        """Nothing a ring holds makes the daemon stumble."""
        rng = random.Random(7)
        for _ in range(30):
            ring = self.ring()
            client = self.client().attach(ring)
            for _ in range(rng.randrange(1, 30)):
                ring.put(rng.randrange(8), rng.randbytes(rng.randrange(89)),
                         rng.getrandbits(63), rng.getrandbits(63), rng.choice([None, None, 88, 500]))
            for _ in range(rng.randrange(3)):
                at = 4096 + rng.randrange(256 * SLOT.size)
                ring.memory[at:at + 8] = rng.randbytes(8)[:max(0, min(8, 4096 + 256 * SLOT.size - at))]
            client.close()
        self.no_process_left()

    def test_a_reader_that_sleeps(self):
        client = self.client().attach()
        sent = 0
        client.socket.setblocking(False)
        deadline = time.monotonic() + scaled(60)
        # Every call is answered; the answers are not read.
        before = self.daemon.metric("profd_attach_slow_disconnects_total") or 0
        while time.monotonic() < deadline:
            try:
                client.send({"type": "status", "seq": sent + 1})
                sent += 1
            except BlockingIOError:
                time.sleep(0.01)
            except (BrokenPipeError, ConnectionResetError):
                break
        else:
            self.fail("still connected")
        eventually(lambda: self.daemon.metric("profd_attach_slow_disconnects_total") == before + 1)
        self.assertGreater(sent, 100)

    def test_a_flood_slows_only_itself(self):
        flood = self.client().attach()
        flood.socket.setblocking(False)
        other = self.client().attach()
        packet = json.dumps({"type": "metadata", "key": "k", "value": "v" * 1000}).encode()
        end = time.monotonic() + 2
        seq = 0
        while time.monotonic() < end:
            with contextlib.suppress(BlockingIOError):
                for _ in range(100):
                    flood.socket.send(packet)
            seq += 1
            self.assertEqual(other.call("status", seq)["code"], NOT_FOUND)
        self.assertEqual(self.daemon.run("status").returncode, 0)

    def test_children_do_not_keep_a_dead_process_attached(self):
        """A fork()ed child inherits the connection; the process is gone all the same."""
        code = ("import os, time\n"
                "from attach_client import Client\n"
                "c = Client(sys.argv[1]).attach(job_id='forker')\n"
                "child = os.fork()\n"
                "if child == 0:\n"
                "  os.close(1)\n"
                "  time.sleep(600)\n"
                "print(child, flush=True)\n"
                "os._exit(0)\n")
        process = subprocess.run([*script(code), self.daemon.attach_socket], text=True,
                                 stdout=subprocess.PIPE, check=True, timeout=scaled(60))
        child = int(process.stdout)
        try:
            eventually(lambda: not any(j["job_id"] == "forker" for j in self.daemon.ctl("jobs")["jobs"]),
                       what="the parent is forgotten")
        finally:
            os.kill(child, signal.SIGKILL)


class UserLimit(UsersCase, AttachCase):
    config = {"daemon": {"max_attached": 8}}

    def attach_as(self, uid, count):
        """How many of `count` connections of this user got a welcome; they stay until the test ends."""
        def attach(keep):
            keep += [Client(self.daemon.attach_socket).hello() for _ in range(count)]
            return [client.receive()["type"] for client in keep].count("welcome")

        child = self.enterContext(Forked(attach, uid, (self.group,)))
        return child.answer

    def test_one_user_cannot_keep_the_others_out(self):
        self.assertEqual(self.attach_as(ALICE, 6), 4)
        self.assertEqual(self.attach_as(BOB, 2), 2)
        self.assertGreaterEqual(
            eventually(lambda: self.daemon.metric("profd_attach_refused_total", reason="user_limit")),
            2)


if __name__ == "__main__":
    main()
