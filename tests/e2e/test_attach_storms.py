#!/usr/bin/env python3
"""Many processes attach and vanish; either side is killed at any moment; the daemon comes back."""

import contextlib
import json
import os
import random
import subprocess
import unittest

import prof_reader
from attach_case import AttachCase
from attach_client import Client, Ring, script
from attach_storm import Storm
from profd_harness import Daemon, eventually, is_sanitized, main

HCCS = json.dumps({"sys_interconnection_freq": 50})

# A training loop in miniature: a session through the hello, marks and steps until it is killed.
# argv: socket, options.
TRAINING = """
from attach_client import MARK, Client, Ring
ring = Ring(1024)
client = Client(sys.argv[1]).attach(ring, job_id="doomed", devices=[0], options_json=sys.argv[2])
print(client.receive_until("reply", seq=0)["session"]["session_id"], flush=True)
step = 0
while True:
    ring.put(4, value=step)
    for i in range(20):
        ring.put(MARK, f"mark {i}")
    ring.put(5, value=step)
    step += 1
"""


class Storms(AttachCase):
    PROCESSES = 500

    def storm(self, count):
        return Storm(self.daemon.attach_socket, [{"job_id": "storm", "rank": i} for i in range(count)], leaving=True)

    def figures(self):
        self.no_process_left()
        self.daemon.ctl("jobs")
        return self.daemon.fd_count(), self.daemon.thread_count(), self.daemon.rss()

    def test_processes_come_and_vanish(self):
        self.storm(20).end()
        self.figures()
        settled = None
        for round_number in range(3):
            storm = self.storm(self.PROCESSES)
            if round_number != 1:
                listed = self.daemon.ctl("jobs", "--job", "storm")["jobs"]
                self.assertGreater(len(listed[0]["processes"]), self.PROCESSES // 2)
            storm.end()
            now = self.figures()
            settled = settled or now
        self.assertLessEqual(now[0], settled[0] + 2)
        self.assertLessEqual(now[1], settled[1] + 1)
        if not is_sanitized():
            self.assertLess(now[2], settled[2] + (16 << 20))

    def test_connections_come_and_vanish(self):
        before = self.figures()
        rng = random.Random(3)
        for _ in range(5):
            clients = []
            for _ in range(200):
                client = Client(self.daemon.attach_socket)
                with contextlib.suppress(OSError):
                    if rng.random() < 0.7:
                        client.hello(job_id="c")
                    if rng.random() < 0.3:
                        client.send({"type": "bye"})
                    if rng.random() < 0.3:
                        client.send(rng.randbytes(rng.randrange(1, 2000)))
                clients.append(client)
                if rng.random() < 0.5:
                    clients.pop(rng.randrange(len(clients))).close()
            for client in clients:
                client.close()
        # Connections without hello are not listed: a slow daemon still closes theirs.
        eventually(lambda: self.figures()[0] <= before[0] + 2, 60, what="all connections are closed")
        self.assertLessEqual(self.figures()[1], before[1] + 1)


class Killed(AttachCase):
    """kill -9 of the process, at random moments, with a session running."""

    def test_processes_at_random_moments(self):
        rng = random.Random(11)
        sessions = []
        for _ in range(6):
            with subprocess.Popen([*script(TRAINING), self.daemon.attach_socket, HCCS],
                                  stdout=subprocess.PIPE, text=True) as process:
                sessions.append(process.stdout.readline().strip())
                self.assertTrue(sessions[-1])
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(rng.random() / 2)
                process.kill()
        for session in sessions:
            final = self.daemon.until_state(session, "done", "failed")
            self.assertEqual(final["state"], "done", final)
            self.assertEqual(prof_reader.read(final["dump_path"]).problems, [])
        self.no_process_left()

    def test_daemons_at_random_moments(self):
        """The process continues; the dump that was being written is readable; it can attach again."""
        rng = random.Random(13)
        for _ in range(3):
            with subprocess.Popen([*script(TRAINING), self.daemon.attach_socket, HCCS],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True) as process:
                session = process.stdout.readline().strip()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(rng.random() / 2)
                self.daemon.kill()
                self.assertIsNone(process.poll(), "the training process ended with the daemon")
                process.kill()
            self.daemon.start()
            shown = self.daemon.show(session)
            self.assertEqual(shown["state"], "interrupted")
            self.assertTrue(os.path.isdir(shown["dump_path"]))
            self.client().attach(job_id="again").bye()


class Restart(unittest.TestCase):
    def test_attached_processes_come_back(self):
        with Daemon() as daemon:
            path = daemon.attach_socket
            ring = Ring()
            client = Client(path).attach(ring, job_id="phoenix", devices=[0])
            for step in range(10):
                ring.step(step)
            eventually(lambda: ring.taken() == 20, what="the first daemon has read")
            for end in (daemon.kill, daemon.stop):
                end()
                self.assertIsNone(client.receive())
                client.close()
                for step in range(3):
                    ring.step(100 + step)
                taken = ring.taken()
                daemon.start()
                # As a library does that finds the daemon again: the same ring.
                client = Client(path).attach(ring, job_id="phoenix", devices=[0])
                eventually(lambda: ring.taken() == taken + 6, what="the new daemon continues")
                process = daemon.ctl("jobs", "--job", "phoenix")["jobs"][0]["processes"][0]
                self.assertEqual((process["step"], process["marks"]), (102, 6))
            client.bye()

    def test_off(self):
        with Daemon(config={"daemon": {"attach_socket": "off"}}) as daemon:
            self.assertFalse(os.path.exists(daemon.attach_socket))
            self.assertEqual(daemon.node["attach_socket"], "")
            self.assertEqual(daemon.ctl("jobs")["jobs"], [])


if __name__ == "__main__":
    main()
