#!/usr/bin/env python3
"""Sessions of jobs: their processes and devices, starts to come, steps, leases, marks, priorities.

Training processes are processes of their own here (this file with --worker), so that each has its pid,
its user and its end.
"""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

import attach_client
import prof_reader
from profd_harness import (ALICE, BOB, BUILD, DEADLINE, RUNNER, Daemon, DaemonCase, UsersCase, demote, eventually, main,
                           scaled)

# Other users may not reach the interpreter that runs the tests.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
RPC = os.path.join(BUILD, "tests", "e2e_rpc_call")
HCCS = {"sys_interconnection_freq": 50, "msproftx": "on"}
INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, EXHAUSTED, PRECONDITION = 3, 5, 7, 8, 9


def worker(path, hello):
    """A training process that carries out requests: one JSON object a line in; packets and answers out."""
    ring = attach_client.Ring(slots=256)
    client = attach_client.Client(path, timeout=None)
    client.attach(ring, **hello)
    lock = threading.Lock()

    def say(thing):
        with lock:
            print(json.dumps(thing), flush=True)

    def listen():
        while True:
            packet = client.receive()
            if packet is None:
                return
            say(packet)

    say(client.welcome)
    threading.Thread(target=listen, daemon=True).start()
    for line in sys.stdin:
        request = json.loads(line)
        what = request.pop("do")
        if what == "step":
            client.send({"type": "step", "session_id": "", **request})
        elif what == "marks":
            count = request.pop("count", 1)
            for _ in range(count):
                ring.put(**request)
        say({"type": "done", "dropped": ring.dropped, "time_ns": attach_client.raw_ns()})


class Worker:
    """The test's end of such a process."""

    def __init__(self, daemon, job="job", rank=0, devices=(0,), user=None, groups=()):
        hello = {"job_id": job, "rank": rank, "devices": list(devices)}
        path = daemon.attach_socket
        self.process = subprocess.Popen(
            [sys.executable if user is None else PYTHON, os.path.abspath(__file__), "--worker", path, json.dumps(hello)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            preexec_fn=demote(user, groups=groups) if user is not None else None)
        self.packets = queue.Queue()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        self.welcome = self.next("welcome")

    def _read(self):
        for line in self.process.stdout:
            self.packets.put(json.loads(line))

    @property
    def pid(self):
        return self.process.pid

    def next(self, type_name, **members):
        end = time.monotonic() + scaled(DEADLINE)
        while True:
            packet = self.packets.get(timeout=max(0.01, end - time.monotonic()))
            if packet["type"] == type_name and all(packet.get(k) == v for k, v in members.items()):
                return packet

    def do(self, what, **members):
        self.process.stdin.write(json.dumps({"do": what, **members}) + "\n")
        return self.next("done")

    def step(self, number, begin):
        """Both ways in which the daemon learns of a step."""
        kind = attach_client.STEP_BEGIN if begin else attach_client.STEP_END
        self.do("marks", kind=kind, value=number)
        return self.do("step", step=number, begin=begin)

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        self.process.stdin.close()
        self.process.wait(scaled(DEADLINE))
        self.thread.join(scaled(DEADLINE))
        self.process.stdout.close()


def call(daemon, method, request, user=None, groups=()):
    """(status code, text, answers) of one call."""
    result = subprocess.run(RUNNER + [RPC, daemon.socket, method], input=json.dumps(request),
                            capture_output=True, text=True, check=False, timeout=scaled(150),
                            preexec_fn=demote(user, groups=groups) if user is not None else None)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    return result.returncode, result.stderr, answers


GROUPS = {"target": ("job_id", "devices", "all", "ranks", "pids", "rank"),
          "schedule": ("start_at_ns", "start_in_ms", "start_step", "duration_ms", "steps", "since_ms", "end_with_pid"),
          "lease": ("lease_ms", "starter_pid")}


def spec_of(fields):
    """A SessionSpec, whose fields are in the groups they belong to."""
    spec = dict(fields)
    for group, names in GROUPS.items():
        of_group = {name: spec.pop(name) for name in names if name in spec}
        if of_group:
            spec[group] = of_group
    return spec


def flat(session):
    """A session's status, and beside it what the tests ask of its spec."""
    spec = session["spec"]
    return {**session["status"], **spec.get("schedule", {}), "session_id": session["session_id"],
            "metadata": spec["metadata"]}


class Calls:
    """Requests in all their fields."""

    def start(self, expect=0, user=None, groups=(), options=None, **request):
        request["options"] = HCCS if options is None else options
        code, text, answers = call(self.daemon, "StartSession", {"spec": spec_of(request)}, user, groups)
        self.assertEqual(code, expect, text)
        return flat(answers[0]) if code == 0 else text

    def get(self, session_id):
        code, text, answers = call(self.daemon, "GetSession", {"session_id": session_id})
        self.assertEqual(code, 0, text)
        return flat(answers[0])

    def stop(self, session_id):
        code, text, answers = call(self.daemon, "StopSession", {"session_id": session_id})
        self.assertEqual(code, 0, text)
        return flat(answers[0])

    def until(self, session_id, *states):
        def reached():
            session = self.get(session_id)
            return session if session["state"] in states else None

        return eventually(reached, 60, what=f"{session_id} is {states}", every=0.1)

    @contextlib.contextmanager
    def workers(self, *requests):
        with contextlib.ExitStack() as stack:
            result = []
            for request in requests:
                one = Worker(self.daemon, **request)
                stack.callback(lambda w=one: w.process.poll() is None and w.kill())
                result.append(one)
            yield result


class JobSessions(Calls, DaemonCase):
    devices = 3

    def tearDown(self):
        super().tearDown()
        self.end_all()

    def test_a_job_means_its_devices_and_processes(self):
        with self.workers({"rank": 0, "devices": [0]}, {"rank": 1, "devices": [2]},
                          {"job": "other", "rank": 0, "devices": [1]}) as (first, second, third):
            session = self.start(job_id="job")
            self.assertEqual(session["devices"], [0, 2])
            self.assertEqual([(p["pid"], p["rank"], p["attached"]) for p in session["processes"]],
                             sorted([(first.pid, 0, True), (second.pid, 1, True)]))
            first.next("session", state="running", session_id=session["session_id"])
            second.next("session", state="running")
            final = self.stop(session["session_id"])
            first.next("session", state="ended", session_id=session["session_id"])
            dump = prof_reader.read_valid(final["dump_path"])
            self.assertEqual(sorted(dump.devices), [0, 2])
            self.assertEqual(len(dump.manifest["session"]["processes"]), 2)
            narrow = self.start(job_id="job", ranks=[1])
            self.assertEqual(narrow["devices"], [2])
            self.assertIn("no rank 7", self.start(job_id="job", ranks=[1, 7],
                                                  expect=INVALID_ARGUMENT))
            by_pid = self.start(job_id="job", pids=[first.pid])
            self.assertEqual(by_pid["devices"], [0])
            text = self.start(job_id="job", pids=[third.pid, os.getpid()], expect=NOT_FOUND)
            self.assertIn(f"pids = {third.pid}: is none of the processes of job job (it is one of job other)", text)
            self.assertIn(f"pids = {os.getpid()}: is none of the processes of job job;", text)
            whole = self.start(job_id="job", all=True)
            self.assertEqual(whole["devices"], [0, 1, 2])
            text = self.start(job_id="nobody", expect=NOT_FOUND)
            self.assertIn("job (2 processes)", text)
            self.assertIn("other (1 process)", text)
            self.assertIn("use all or devices", text)

    def test_ends_with_its_processes(self):
        with self.workers({"rank": 0}, {"rank": 1, "devices": [1]}) as (first, second):
            bound = self.start(job_id="job")["session_id"]
            whole = self.start(job_id="job", all=True)["session_id"]
            first.kill()
            self.daemon.until_records(bound, 150)  # a second or more
            self.assertEqual(self.get(bound)["state"], "STATE_RUNNING")
            second.kill()
            final = self.until(bound, "STATE_DONE")
            self.assertEqual(final["reason"], "all processes of the job have ended")
            self.assertEqual(self.get(whole)["state"], "STATE_RUNNING")
            dump = prof_reader.read(final["dump_path"], finished=True)
            self.assertEqual(dump.problems, [])

    def test_latecomers_join(self):
        with self.workers({"rank": 0}) as (first,):
            session = self.start(job_id="job")["session_id"]
            with self.workers({"rank": 1}) as (late,):
                late.next("session", state="running", session_id=session)
                late.do("marks", kind=attach_client.MARK, name="late")
                final = self.stop(session)
            self.assertEqual({p["pid"] for p in final["processes"]}, {first.pid, late.pid})
            self.assertEqual([m["name"] for m in prof_reader.marks_tsv(final["dump_path"])],
                             ["late"])

    def test_marks_are_in_the_dump(self):
        with self.workers({"rank": 3, "devices": [1]}) as (process,):
            session = self.start(job_id="job")["session_id"]
            process.next("session", state="running")
            process.do("marks", kind=attach_client.PUSH, name="forward pass")
            process.do("marks", kind=attach_client.POP)
            for step in (7, 8):
                process.do("marks", kind=attach_client.STEP_BEGIN, value=step)
                process.do("marks", kind=attach_client.STEP_END, value=step)
            final = self.stop(session)
            self.assertEqual((int(final["marks"]), int(final["dropped_marks"])), (6, 0))
            dump = prof_reader.read_valid(final["dump_path"], finished=True)
            marks = prof_reader.marks_tsv(final["dump_path"])
            self.assertEqual([(m["kind"], m["name"], m["value"]) for m in marks], [
                ("push", "forward pass", "0"), ("pop", "", "0"), ("step_begin", "", "7"),
                ("step_end", "", "7"), ("step_begin", "", "8"), ("step_end", "", "8")])
            self.assertEqual({(m["pid"], m["rank"]) for m in marks}, {(str(process.pid), "3")})
            # The vendor's input says the same, by the device's clock.
            steps = dump[(1, "ts_track.data")].records
            self.assertEqual([r.key for r in steps], [("begin", 7), ("end", 7), ("begin", 8),
                                                      ("end", 8)])
            of_steps = [m for m in marks if m["kind"].startswith("step")]
            for mark, record in zip(of_steps, steps):
                wall = dump.devices[1]["clock"].wall("host_ns", int(mark["time_ns"]))
                self.assertLess(abs(record.wall - wall), 2000)
            self.assertNotIn((0, "ts_track.data"), dump.channels)
            entry = {c["collector"]: c for c in dump.manifest["channels"]}["marks"]
            self.assertEqual((entry["file"], entry["records"], entry["dropped"]),
                             ("marks.tsv", 6, []))

    def test_lost_marks_are_counted(self):
        with self.workers({"rank": 0}) as (process,):
            session = self.start(job_id="job")["session_id"]
            process.next("session", state="running")
            # Four rings full at once: most of it has no place.
            asked = 5000
            lost = process.do("marks", count=asked, kind=attach_client.MARK, name="x")["dropped"]
            final = self.stop(session)
            marks = prof_reader.marks_tsv(final["dump_path"])
            self.assertEqual(int(final["marks"]), len(marks))
            self.assertEqual(int(final["dropped_marks"]), lost)
            self.assertEqual(len(marks) + lost, asked)
            dump = prof_reader.read(final["dump_path"])
            entry = {c["collector"]: c for c in dump.manifest["channels"]}["marks"]
            self.assertEqual(sum(d["records"] for d in entry["dropped"]), lost)

    def test_starts_at_a_step_and_lasts_steps(self):
        with self.workers({"rank": 1, "devices": [1]}, {"rank": 0}) as (other, counting):
            session = self.start(job_id="job", start_step=11, steps=2)
            self.assertEqual((session["state"], session["start_step"]), ("STATE_SCHEDULED", "11"))
            notice = counting.next("session", state="armed")
            self.assertEqual((notice["start_step"], notice["steps"]), (11, 2))
            session_id = session["session_id"]
            counting.step(10, True)
            counting.step(10, False)
            other.step(11, True)  # not the one that counts
            other.do("marks", kind=attach_client.MARK, name="too early")
            self.assertEqual(self.get(session_id)["state"], "STATE_SCHEDULED")
            counting.step(11, True)
            self.until(session_id, "STATE_RUNNING")
            counting.next("session", state="running")
            counting.step(11, False)
            counting.step(12, True)
            counting.do("marks", kind=attach_client.MARK, name="in step 12")
            eventually(lambda: self.get(session_id)["steps_done"] == 1)
            counting.step(12, False)
            final = self.until(session_id, "STATE_DONE")
            self.assertEqual((final["reason"], final["steps_done"]), ("2 steps (11..12)", 2))
            dump = prof_reader.read_valid(final["dump_path"], finished=True)
            keys = [r.key for r in dump[(0, "ts_track.data")].records]
            self.assertEqual(keys, [("begin", 11), ("end", 11), ("begin", 12), ("end", 12)])
            self.assertEqual((dump.manifest["session"]["start_step"],
                              dump.manifest["session"]["steps_done"]), (11, 2))
            text = self.start(job_id="job", start_step=12, expect=PRECONDITION)
            self.assertIn("has begun step 12 already", text)

    def test_next_rank_counts_when_the_first_ends(self):
        with self.workers({"rank": 0}, {"rank": 1, "devices": [1]}) as (first, second):
            session = self.start(job_id="job", start_step=5)["session_id"]
            gone = self.start(job_id="job", start_step=6, ranks=[0])["session_id"]
            first.kill()
            self.assertIn("before it started", self.until(gone, "STATE_DONE")["reason"])
            self.assertEqual(self.get(session)["state"], "STATE_SCHEDULED")
            second.step(5, True)
            self.until(session, "STATE_RUNNING")

    def test_common_instant(self):
        at_ns = time.time_ns() + int(scaled(5) * 1e9)  # two calls are made until then
        requests = [self.start(start_at_ns=at_ns) for _ in range(2)]
        ids = [request["session_id"] for request in requests]
        self.assertEqual({request["state"] for request in requests}, {"STATE_SCHEDULED"})
        self.assertEqual({request["start_at_ns"] for request in requests}, {str(at_ns)})
        for session_id in ids:
            session = self.until(session_id, "STATE_RUNNING")
            self.assertEqual(session["started_ns"], str(at_ns))
            self.daemon.until_records(session_id, 20)
            dump = prof_reader.read_valid(self.stop(session_id)["dump_path"])
            # The driver timestamps with the points of its own grid: the first may lie a period before.
            for record in dump[(0, "hccs.data")].records:
                self.assertGreater(record.wall, at_ns - 20_000_000)

    def test_watching_a_start_to_come(self):
        code, text, seen = call(self.daemon, "WatchSession", {"session_id": self.start(
            start_in_ms=round(scaled(5000)), duration_ms=500)["session_id"]})
        self.assertEqual(code, 0, text)
        states = [view["status"]["state"] for view in seen]
        self.assertEqual(states[0], "STATE_SCHEDULED")
        self.assertEqual(states[-1], "STATE_DONE")

    def test_scheduled_can_be_stopped(self):
        session = self.start(start_in_ms=600_000)["session_id"]
        final = self.stop(session)
        self.assertEqual((final["state"], final["dump_path"]), ("STATE_DONE", ""))
        self.assertIn("before it started", final["reason"])
        text = self.start(start_at_ns=time.time_ns() - int(60e9), expect=INVALID_ARGUMENT)
        self.assertIn("ago", text)

    def test_lease_ends_with_the_starter(self):
        with subprocess.Popen(["sleep", "600"]) as starter:
            session = self.start(lease_ms=1000, starter_pid=starter.pid)["session_id"]
            detached = self.start()["session_id"]
            renewed = self.start(lease_ms=int(scaled(60) * 1000), starter_pid=starter.pid)
            self.daemon.until_records(session, 20)
            self.assertEqual(self.get(session)["state"], "STATE_RUNNING")
            starter.kill()
        self.assertIn("lease expired", self.until(session, "STATE_DONE")["reason"])
        eventually(lambda: int(self.get(renewed["session_id"]).get("lease_left_ms", 0)) > 0)
        code, text, answers = call(self.daemon, "RenewLease",
                                   {"session_id": renewed["session_id"]})
        self.assertEqual((code, text), (0, ""))
        self.assertGreater(int(answers[0]["left_ms"]), 1000)
        # Its starter has gone, and it has no lease: it continues.
        self.assertEqual(self.get(detached)["state"], "STATE_RUNNING")

    def test_a_process_keeps_the_lease(self):
        with self.workers({"rank": 0}) as (process,):
            session = self.start(job_id="job", all=True, lease_ms=1000)["session_id"]
            self.daemon.until_records(session, 150)  # three seconds' worth
            self.assertEqual(self.get(session)["state"], "STATE_RUNNING")
            process.kill()
        self.assertIn("lease expired", self.until(session, "STATE_DONE")["reason"])

    def test_preempting_what_excludes_it(self):
        reads = {"sys_hardware_mem_freq": 10, "llc_profiling": "read"}
        writes = {"sys_hardware_mem_freq": 10, "llc_profiling": "write"}
        low = self.start(options=reads, devices=[0], priority=3, duration_ms=600_000)["session_id"]
        busy = self.start(options=writes, devices=[0])
        details = [o["detail"] for o in busy["outcomes"] if o["result"] == "RESULT_BUSY"]
        self.assertEqual(len(details), 1)
        self.assertIn(low, details[0])
        self.assertIn("ends in", details[0])
        self.stop(busy["session_id"])
        taken = self.start(options=writes, devices=[0], preempt=True)
        self.assertNotIn("RESULT_BUSY", {o["result"] for o in taken["outcomes"]})
        self.assertEqual(self.get(low)["reason"], "preempted by uid 0")

    def test_all_problems_of_an_order(self):
        text = self.start(options={"sys_interconnection_freq": 51}, priority=10, steps=2,
                          lease_ms=5, start_in_ms=1, since_ms=1, expect=INVALID_ARGUMENT)
        for part in ("sys_interconnection_freq", "priority = 10", "steps: needs job_id or pids", "lease_ms = 5",
                     "since_ms: goes with a start now"):
            self.assertIn(part, text)

    def test_stopping_a_job_stops_all_of_it(self):
        ids = [self.start(job_id="pair", all=True)["session_id"] for _ in range(2)]
        code, text, answers = call(self.daemon, "StopSession", {"job_id": "pair"})
        self.assertEqual(code, 0, text)
        other = [i for i in ids if i != answers[0]["session_id"]]
        self.assertEqual(len(other), 1)
        self.assertIn(other[0], flat(answers[0])["warnings"][-1])
        self.assertEqual({self.get(i)["state"] for i in ids}, {"STATE_DONE"})


class Restarts(Calls, unittest.TestCase):
    def test_daemon_shot_with_a_job_running(self):
        with Daemon("devices = 1\n", config={"dump": {"flush_interval_ms": 100}}) as self.daemon:
            with self.workers({"rank": 0}) as (process,):
                session = self.start(job_id="job", metadata={"run": "7"})
                scheduled = self.start(start_in_ms=600_000)["session_id"]
                process.next("session", state="running")
                process.do("marks", kind=attach_client.MARK, name="before")
                eventually(lambda: [m["name"] for m in prof_reader.marks_tsv(
                    session["dump_path"])] == ["before"])
                self.daemon.kill()
                dump = prof_reader.read_valid(session["dump_path"], finished=False)
                self.daemon.start()
                # It continues as another segment, for its process lives.
                eventually(lambda: self.get(session["session_id"])["state"] == "STATE_RUNNING", what="it runs again")
                view = self.get(session["session_id"])
                self.assertEqual(view["metadata"], {"run": "7"})
                self.assertEqual(len(view["processes"]), 1)
                self.assertEqual(self.get(scheduled)["state"], "STATE_SCHEDULED")
                dump = prof_reader.read(session["dump_path"], finished=False)
                self.assertEqual(dump.manifest["state"], "interrupted")


class JobsOfUsers(Calls, UsersCase):
    devices = 2
    config = {"limits": {"max_starts_per_minute": 5, "max_sessions": 3}}

    def as_user(self, uid):
        return {"user": uid, "groups": (self.group,)}

    def test_users(self):
        alice, bob = self.as_user(ALICE), self.as_user(BOB)
        with self.workers({"job": "hers", "devices": [0], **alice},
                          {"job": "his", "devices": [1], **bob}) as (hers, his):
            text = self.start(job_id="hers", expect=NOT_FOUND, **bob)
            self.assertIn("his (1 process)", text)
            self.assertNotIn("hers (", text)
            self.start(pids=[hers.pid], expect=PERMISSION_DENIED, **bob)
            self.start(lease_ms=1000, starter_pid=hers.pid, expect=PERMISSION_DENIED, **bob)
            self.start(priority=6, expect=PERMISSION_DENIED, **bob)
            self.start(preempt=True, expect=PERMISSION_DENIED, **bob)
            # A label that happens to be another's job takes nothing of hers.
            label = self.start(job_id="hers", all=True, **bob)
            self.assertEqual(label.get("processes", []), [])
            mine = self.start(job_id="hers", **alice)
            self.assertEqual([p["pid"] for p in mine["processes"]], [hers.pid])
            hers.next("session", state="running", session_id=mine["session_id"])
            root = self.start(job_id="his")
            self.assertEqual([p["pid"] for p in root["processes"]], [his.pid])
            # The node is full: who it is, as far as one may know.
            text = self.start(expect=EXHAUSTED, **alice)
            self.assertIn("1 is yours, 2 of other users", text)
            self.assertIn(f"1 of uid {BOB}", self.start(expect=EXHAUSTED))
            # The lowest, youngest goes: all have the default priority, the request has more.
            urgent = self.start(priority=9, preempt=True)
            self.assertEqual(self.get(root["session_id"])["reason"], "preempted by uid 0")
            for session in (label, mine, urgent):
                self.stop(session["session_id"])
            for _ in range(4):
                self.stop(self.start(**alice)["session_id"])
            text = self.start(expect=EXHAUSTED, **alice)
            self.assertIn("limits.max_starts_per_minute", text)
            self.stop(self.start(**bob)["session_id"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        worker(sys.argv[2], json.loads(sys.argv[3]))
    else:
        main()
