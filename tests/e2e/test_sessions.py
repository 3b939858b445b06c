#!/usr/bin/env python3
"""What can be started, how sessions end, what is refused, and profctl's exit codes."""

import contextlib
import json
import os
import signal
import subprocess
import time

import prof_reader
from profd_harness import BUILD, PROFCTL, RUNNER, DaemonCase, eventually, main, scaled, temp_folder

HCCS = ("--sys-interconnection-freq", "50")


class Sessions(DaemonCase):
    devices = 2
    config = {"limits": {"max_duration_s": 3600, "max_sessions": 5}}
    faults = ({"kind": "channel_busy", "device": 1, "channel": "pcie"},)

    def setUp(self):
        self.end_all()

    def session(self, *options, expect=0):
        return self.daemon.ctl("start", "--devices", "0", *HCCS, *options, expect=expect)

    # Ends -----------------------------------------------------------------------------------

    def test_duration(self):
        session = self.session("--duration", "700ms")
        final = self.daemon.until_state(session["session_id"], "done")
        self.assertEqual(final["reason"], "duration")
        self.assertEqual(final["duration_ms"], 700)
        self.assertGreaterEqual(final["ended_ns"] - final["started_ns"], 600_000_000)
        prof_reader.read_valid(final["dump_path"])

    def test_end_with_pid(self):
        with subprocess.Popen(["sleep", "600"]) as process:
            session = self.session("--end-with-pid", process.pid)
            self.daemon.until_records(session["session_id"], 5)
            self.assertEqual(self.daemon.show(session["session_id"])["state"], "running")
            process.kill()
        final = self.daemon.until_state(session["session_id"], "done")
        self.assertIn(str(process.pid), final["reason"])

    def test_end_with_pid_that_is_gone(self):
        with subprocess.Popen(["true"]) as process:
            process.wait()
        answer = self.session("--end-with-pid", process.pid, expect=3)
        self.assertEqual(answer["error"]["code"], "invalid_argument")

    def test_stop_job(self):
        mine = [self.session("--job", "many") for _ in range(2)]
        other = self.session("--job", "other")
        stopped = self.daemon.ctl("stop", "--job", "many")
        self.assertEqual(sorted(s["session_id"] for s in stopped["sessions"]),
                         sorted(s["session_id"] for s in mine))
        for session in mine:
            self.assertEqual(self.daemon.show(session["session_id"])["state"], "done")
        self.assertEqual(self.daemon.show(other["session_id"])["state"], "running")
        self.daemon.ctl("stop", "--job", "many", expect=4)
        self.daemon.ctl("stop", "--all-mine")
        self.assertEqual(self.daemon.show(other["session_id"])["state"], "done")

    def test_stop_twice(self):
        session = self.session()
        first = self.daemon.ctl("stop", session["session_id"])["sessions"][0]
        again = self.daemon.ctl("stop", session["session_id"])["sessions"][0]
        self.assertEqual((first["state"], first["ended_ns"]), (again["state"], again["ended_ns"]))

    def test_several_at_once(self):
        """Of several ids the worst code counts, and the others are done all the same."""
        session = self.session()
        answer = self.daemon.ctl("stop", "nonsense", session["session_id"], expect=4)
        self.assertEqual(answer["sessions"][0]["state"], "done")
        self.assertEqual(answer["errors"][0]["code"], "not_found")
        answer = self.daemon.ctl("rm", session["session_id"], "nonsense", expect=4)
        self.assertEqual(answer["removed"][0]["session_id"], session["session_id"])

    def test_no_dump(self):
        session = self.session("--no-dump")
        self.assertEqual(session["dump_path"], "")
        eventually(lambda: self.daemon.show(session["session_id"])["records"] or
                   self.daemon.metric("profd_collector_records_total", collector="hccs"))
        before = os.listdir(self.daemon.dump_root)
        self.daemon.ctl("stop", session["session_id"])
        self.assertEqual(os.listdir(self.daemon.dump_root), before)
        self.daemon.ctl("rm", session["session_id"])

    # Partial and refused --------------------------------------------------------------------

    def test_partial(self):
        answer = self.daemon.ctl("start", *HCCS, expect=5)
        self.assertTrue(answer["partial"])
        self.assertEqual(answer["state"], "running")
        results = {(o["collector"], o["device"]): o for o in answer["outcomes"]}
        self.assertEqual(results[("pcie", 0)]["result"], "running")
        self.assertEqual(results[("pcie", 1)]["result"], "busy")
        self.assertTrue(results[("pcie", 1)]["detail"])
        self.daemon.until_records(answer["session_id"], 20)
        self.daemon.ctl("stop", answer["session_id"])
        dump = prof_reader.read_valid(self.daemon.show(answer["session_id"])["dump_path"])
        self.assertIn((0, "pcie.data"), dump.channels)
        self.assertNotIn((1, "pcie.data"), dump.channels)
        entry = next(c for c in dump.manifest["channels"]
                     if (c["collector"], c["device"]) == ("pcie", 1))
        self.assertEqual(entry["state"], "busy")

    def test_require_all(self):
        dumps = set(os.listdir(self.daemon.dump_root))
        answer = self.daemon.ctl("start", *HCCS, "--require-all", expect=3)
        self.assertIn("pcie", answer["error"]["message"])
        self.assertIn("device 1", answer["error"]["message"])
        self.assertEqual(self.daemon.ctl("list", "--active")["sessions"], [])
        channels = self.daemon.ctl("devices", "--channels")["devices"][0]["channels"]
        eventually(lambda: all(c["users"] == 0 for c in self.daemon.ctl("devices", "--channels")
                               ["devices"][0]["channels"]))
        self.assertTrue(channels)
        eventually(lambda: set(os.listdir(self.daemon.dump_root)) == dumps,
                   what="nothing is left of a refused start")
        self.daemon.ctl("stop", self.session("--require-all")["session_id"])

    def test_running_sessions_are_not_fetched_or_removed(self):
        session = self.session()
        for command in ("fetch", "rm"):
            answer = self.daemon.run(command, session["session_id"], cwd=self.daemon.base)
            self.assertEqual(answer.returncode, 3, answer.stdout)
            self.assertIn("running", answer.stdout + answer.stderr)

    # Exit codes -----------------------------------------------------------------------------

    def test_problems_speak_of_flags(self):
        """The daemon's fields, as profctl's user wrote them."""
        answer = self.daemon.run("start", "--duration", "1000000h", "--at", "2020-01-01T00:00:00Z")
        self.assertEqual(answer.returncode, 3)
        self.assertRegex(answer.stderr, r"--duration 1000000h: at most \d+[hms]+ here")
        self.assertRegex(answer.stderr, r"--at 2020-01-01T00:00:00Z: \d+d \d+h ago by")
        for field in ("duration_ms", "start_at_ns"):
            self.assertNotIn(field, answer.stderr)

    def test_not_found(self):
        for command in ("show", "stop", "watch", "fetch", "rm"):
            answer = self.daemon.run(command, "0123456789ab", cwd=self.daemon.base)
            self.assertEqual(answer.returncode, 4, command)

    def test_unreachable(self):
        for socket, word in (("/nonexistent/s", "/nonexistent/s"), (self.daemon.base, "")):
            answer = subprocess.run(RUNNER + [PROFCTL, "--socket", socket, "status"], check=False,
                                    capture_output=True, text=True, timeout=scaled(60))
            self.assertEqual(answer.returncode, 6, answer.stderr)
            self.assertIn(word, answer.stderr)

    # watch, stream --------------------------------------------------------------------------

    def test_watch(self):
        session = self.session()
        watch = self.daemon.spawn("watch", session["session_id"], "--interval", "100ms")
        lines = [json.loads(watch.stdout.readline()) for _ in range(3)]
        self.daemon.ctl("stop", session["session_id"])
        out, err = watch.communicate(timeout=scaled(60))
        self.assertEqual(watch.returncode, 0, err)
        lines += [json.loads(line) for line in out.splitlines()]
        self.assertEqual(lines[-1]["state"], "done")
        records = [line["records"] for line in lines]
        self.assertEqual(records, sorted(records))

    def test_stream(self):
        session = self.session()
        stream = self.daemon.run("stream", "--collectors", "hccs", "--devices", "0", "--count",
                                 "40", "--interval", "50ms")
        self.assertEqual(stream.returncode, 0, stream.stderr)
        samples = [json.loads(line) for line in stream.stdout.splitlines()]
        self.assertEqual(len(samples), 40)
        for sample in samples:
            self.assertEqual((sample["collector"], sample["device"]), ("hccs", 0))
            self.assertTrue(sample["metric"].startswith("atlas_npu_hccs"))
            self.assertLess(abs(sample["wall_ns"] - time.time_ns()), 600e9)
        series = {}
        for sample in samples:
            series.setdefault((sample["metric"], str(sample["labels"])), []).append(
                sample["time_ns"])
        self.assertGreaterEqual(len(series), 2)
        for times in series.values():
            self.assertEqual(times, sorted(set(times)))
            self.assertGreater(len(times), 5)
        csv = self.daemon.run("stream", "--collectors", "hccs", "--count", "3", "--format", "csv",
                              json_output=False)
        self.assertEqual(csv.stdout.splitlines()[0], "time,value,metric,device,labels,collector")
        self.assertEqual(len(csv.stdout.splitlines()), 4)
        self.assertEqual(self.daemon.run("stream", "--collectors", "nosuch").returncode, 3)
        self.daemon.ctl("stop", session["session_id"])

    def test_stream_ends_with_interrupt(self):
        self.session()
        stream = self.daemon.spawn("stream", "--collectors", "hccs")
        self.assertTrue(stream.stdout.readline())
        stream.send_signal(signal.SIGINT)
        stream.communicate(timeout=scaled(30))
        self.assertEqual(stream.returncode, 0)

    # run ------------------------------------------------------------------------------------

    def run_command(self, *command, options=()):
        return self.daemon.run("run", "--devices", "0", *HCCS, *options, "--", *command, seconds=60)

    def run_facts(self, result):
        return json.loads(result.stderr.strip().splitlines()[-1])

    def test_run(self):
        result = self.run_command("sh", "-c", "echo out; sleep 0.5; exit 7",
                                  options=("--job", "runner"))
        self.assertEqual((result.returncode, result.stdout), (7, "out\n"))
        facts = self.run_facts(result)
        self.assertEqual((facts["command_exit_code"], facts["state"], facts["job_id"]),
                         (7, "done", "runner"))
        final = self.daemon.show(facts["session_id"])
        self.assertEqual(final["state"], "done")
        dump = prof_reader.read_valid(final["dump_path"])
        self.assertGreater(len(dump[(0, "hccs.data")]), 5)

    def test_run_of_steps(self):
        """The command is held until the session waits for its steps, and attaches then."""
        attach = dict(os.environ, PROFD_ATTACH_SOCKET=self.daemon.attach_socket, RANK="0", WORLD_SIZE="1")
        train = os.path.join(BUILD, "bin", "train_example")
        result = self.daemon.run("run", "--devices", "0", *HCCS, "--start-step", "5", "--steps", "2", "--", train, "--steps", "20", "--step-ms", "50",
                                 seconds=60, env=attach)
        self.assertEqual(result.returncode, 0, result.stderr)
        facts = self.run_facts(result)
        self.assertEqual((facts["state"], facts["reason"]), ("done", "2 steps (5..6)"))

    def test_killed_run_leaves_command_and_session(self):
        """profctl dies, the command continues, and the session ends with it."""
        folder = temp_folder(self)
        pid_file = os.path.join(folder, "pid")

        def written():
            with contextlib.suppress(OSError), open(pid_file, encoding="utf-8") as file:
                return file.read().strip()

        runner = self.daemon.spawn("run", "--job", "orphan", "--devices", "0", *HCCS, "--",
                                   "sh", "-c", f"echo $$ > {pid_file}; exec sleep 600",
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            pid = int(eventually(written))
            runner.kill()
            runner.wait()
            session = self.daemon.ctl("list", "--job", "orphan")["sessions"][0]
            self.assertEqual(session["state"], "running")
            os.kill(pid, 0)
        finally:
            if written():
                os.kill(int(written()), signal.SIGTERM)
        final = self.daemon.until_state(session["session_id"], "done")
        self.assertEqual(prof_reader.read(final["dump_path"]).problems, [])


class LostDevice(DaemonCase):
    """A device that was lost when profd started is in the answer of every session that asks for it."""
    devices = 2
    faults = ({"kind": "card_drop", "device": 1},)

    def test_what_is_missing_of_it_is_reported(self):
        answer = self.daemon.ctl("start", "--all", *HCCS, expect=5)
        results = {(o["collector"], o["device"]): o for o in answer["outcomes"]}
        self.assertEqual(results[("hccs", 0)]["result"], "running")
        self.assertEqual(results[("hccs", 1)]["result"], "failed")
        self.assertIn("communication with it is lost", results[("hccs", 1)]["detail"])
        self.assertNotIn(("ddr", 1), results)
        self.daemon.ctl("stop", answer["session_id"])
        answer = self.daemon.ctl("start", "--all", *HCCS, "--require-all", expect=3)
        self.assertIn("communication with it is lost", answer["error"]["message"])


if __name__ == "__main__":
    main()
