#!/usr/bin/env python3
"""Live advice: simulated jobs with one problem each beside a job that is well; each problem is found under its check,
where users, operators and the flight recorder see it. All of them run at the same time."""

import json
import os
import signal
import subprocess
import unittest

from attach_client import raw_ns
from profd_harness import BUILD, PROFCTL, RUNNER, Daemon, eventually, main, temp_folder
from sim_train import SimTrain
from text_files import write_text
from toml_files import scenario

# A step of about 260 ms: what a busy machine adds is a small part of it. Communication is not hidden entirely.
JOB = """
name = "NAME"
steps = 100000
data_parallel = 2
link_gb_s = 5
[[layer]]
name = "block"
count = 4
gradient_mb = 160
[[layer.operator]]
type = "MatMulV2"
us = 15000
backward_us = 30000
[[layer.operator]]
type = "Gelu"
core = "aivec"
us = 2000
backward_us = 4000
[[optimizer]]
type = "ApplyAdamW"
core = "aivec"
us = 8000
[problems]
PROBLEM
"""
# After the job has learned what is usual.
FAULT_AT = 20
SLOW_HCCS = {"kind": "slow_hccs", "at": FAULT_AT, "device": 1, "link": 2, "factor": 0.25}
THROTTLE = {"kind": "throttle", "at": FAULT_AT, "device": 1, "mhz": 1000}
SECONDS = 90
# What a busy machine adds to a step of a job that is well lies below; the problems of the others far above.
LIMITS = ["live.clear_s=5", "hang.least_s=4", "slow_rank.difference=0.12", "free_time.grown=0.25"]


class LiveAdvice(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = temp_folder(cls)
        cls.jobs = {}
        cls.node = cls.start_daemon({"recorder": {"enabled": True, "collectors": ["npu_state=1"],
                                                  "triggers": ["advice hang"], "seconds": 60}})
        for name, problem in (("well", ""), ("slow_rank", "slow_rank = 30"), ("gc", "gc_gaps = 600"),
                              ("loader", "slow_data_loader = 80")):
            cls.start_job(cls.node, name, problem)
        cls.throttled = cls.start_daemon({}, THROTTLE)
        cls.start_job(cls.throttled, "throttled", "")
        cls.linked = cls.start_daemon({}, SLOW_HCCS)
        cls.start_job(cls.linked, "linked", "")
        cls.start_spread_job(cls.node, cls.linked)

    @classmethod
    def start_spread_job(cls, *daemons):
        """One rank of a job on each of these nodes."""
        folder = os.path.join(cls.folder, "spread")
        os.mkdir(folder)
        path = os.path.join(cls.folder, "spread.toml")
        write_text(path, JOB.replace("NAME", "spread").replace("PROBLEM", "slow_rank = 30"))
        cls.spread = []
        for rank, daemon in enumerate(daemons):
            env = dict(os.environ, PROFD_ATTACH_SOCKET=daemon.attach_socket,
                       LD_LIBRARY_PATH=os.pathsep.join((os.path.join(BUILD, "sim"), os.path.join(BUILD, "lib"))))
            process = subprocess.Popen([os.path.join(BUILD, "sim", "sim_train"), path, folder, str(rank)], env=env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            cls.addClassCleanup(process.wait)
            cls.addClassCleanup(process.kill)
            cls.spread.append(process)
        for daemon in daemons:
            eventually(lambda daemon=daemon: any(job["job_id"] == "spread" for job in daemon.ctl("jobs")["jobs"]), what="its rank is there")
            daemon.ctl("start", "--job", "spread", "--task-time", "l1", "--detach")

    @classmethod
    def start_daemon(cls, config, *faults):
        daemon = Daemon(config=dict(config, advice={"limits": LIMITS}))
        daemon.job_env = {}
        if faults:
            daemon.scenario_path = scenario(os.path.join(daemon.base, "scenario.toml"), faults=faults)
            daemon.job_env = {"PROFD_SIM_SCENARIO": daemon.scenario_path, "PROFD_SIM_EPOCH": str(raw_ns())}
            daemon.env["PROFD_SIM_EPOCH"] = daemon.job_env["PROFD_SIM_EPOCH"]
        cls.enterClassContext(daemon)
        return daemon

    @classmethod
    def start_job(cls, daemon, name, problem):
        job = SimTrain(daemon.attach_socket, os.path.join(cls.folder, name), env=daemon.job_env,
                       text=JOB.replace("NAME", name).replace("PROBLEM", problem))
        cls.addClassCleanup(job.close)
        job.pids = job.attached(daemon, 2)
        daemon.ctl("start", "--job", name, "--task-time", "l1", "--msproftx", "on", "--detach")
        # It looks once a second; a job that it has not seen yet is not found.
        eventually(lambda: any(rank["job_id"] == name for rank in daemon.ctl("advise", "--live")["ranks"]), what=f"{name} is watched")
        cls.jobs[name] = job

    def advice(self, daemon, job):
        return daemon.ctl("advise", "--live", "--job", job)["advice"]

    def found(self, daemon, job, check):
        """Waits for the advice, and returns it."""
        def is_there():
            for advice in self.advice(daemon, job):
                if advice["check"] == check:
                    return advice
            return None
        return eventually(is_there, seconds=SECONDS, every=0.3, what=f"{check} of {job}: {self.advice(daemon, job)}")

    def test_slow_rank(self):
        advice = self.found(self.node, "slow_rank", "slow_rank")
        self.assertEqual((advice["rank"], advice["device"], advice["pid"]), (1, 1, self.jobs["slow_rank"].pids[1]))
        # 30 % of 212 ms, less what hides behind communication.
        self.assertGreater(advice["cost_ns"], 20e6)
        self.assertIn("the same kernels take 1.3", " ".join(advice["evidence"]))
        self.assertLessEqual(advice["since_ns"], advice["raised_ns"])
        ranks = self.node.ctl("advise", "--live", "--job", "slow_rank")["ranks"]
        self.assertEqual([rank["rank"] for rank in ranks], [0, 1])
        self.assertGreater(ranks[0]["shares"]["wait_ns"], ranks[1]["shares"]["wait_ns"])

    def test_garbage_collection(self):
        # 600 ms in every fourth step, less what the device has to do meanwhile; a mean over the last steps.
        eventually(lambda: 40e6 < self.found(self.node, "gc", "gc")["cost_ns"] < 160e6, seconds=SECONDS, every=0.3,
                   what="a cost of 40 to 160 ms per step")

    def test_data_loader(self):
        # A mean over the last steps: while they are few, one more or less changes it.
        eventually(lambda: abs(self.found(self.node, "loader", "dataloader")["cost_ns"] / 1e6 - 80) <= 10, seconds=SECONDS, every=0.3,
                   what="a cost of 80 ms per step")

    def test_lost_frequency(self):
        advice = self.found(self.throttled, "throttled", "computation_slower")
        self.assertEqual(advice["rank"], 1)
        evidence = " ".join(advice["evidence"])
        self.assertIn("NPU 1: its AI Cores run at 1000 of ", evidence)
        self.assertIn("throttled", evidence)
        self.assertEqual(advice["confidence"], "high")
        slower = self.found(self.throttled, "throttled", "steps_slower")
        self.assertGreater(slower["step"], 10)
        self.assertFalse(any(a["check"] == "communication_slower" for a in self.advice(self.throttled, "throttled")))

    def test_slow_link(self):
        advice = self.found(self.linked, "linked", "communication_slower")
        self.assertIsNone(advice["rank"])
        eventually(lambda: "NPU 1, HCCS link 2: " in " ".join(self.found(self.linked, "linked", "communication_slower")["evidence"]),
                   seconds=SECONDS, every=0.5, what="the counters of the link are in the evidence")
        advice = self.found(self.linked, "linked", "communication_slower")
        self.assertEqual(advice["confidence"], "high")
        self.assertFalse(any(a["check"] == "computation_slower" for a in self.advice(self.linked, "linked")))

    def test_many_nodes(self):
        """A job with a rank on each of two nodes: only the client sees both."""
        nodes = [f"unix:{daemon.socket}" for daemon in (self.node, self.linked)]

        def waited():
            answer = json.loads(call(*nodes, json_output=True))
            self.assertEqual([node["node"] for node in answer["nodes"]], nodes)
            return {one["job_id"]: one for one in answer["waited_for"]}.get("spread")

        def call(*names, json_output=False):
            command = RUNNER + [PROFCTL] + (["--json"] if json_output else []) + ["--nodes", ",".join(names), "advise", "--live"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        one = eventually(waited, seconds=SECONDS, every=0.5, what="a rank is waited for")
        self.assertEqual((one["rank"], one["node"], one["pid"]), (1, nodes[1], self.spread[1].pid))
        self.assertGreater(one["cost_ms"], 20)
        self.assertRegex(call(*nodes), r"job spread: the others wait for rank 1 on unix:")

    def test_where_it_is_seen(self):
        self.found(self.node, "loader", "dataloader")
        eventually(lambda: self.node.metric("profd_advice", check="dataloader", job_id="loader", rank="0") == 1,
                   what="the metric is there")
        self.assertGreaterEqual(self.node.metric("profd_advice_raised_total", check="dataloader"), 1)
        top = self.node.ctl("top", "--once")
        self.assertIn("dataloader", [a["check"] for a in top["advice"]])
        self.assertTrue(any("dataloader" in p["advice"] for p in top["processes"] if p["job_id"] == "loader"))
        text = self.node.run("top", "--once", json_output=False).stdout
        self.assertIn("ADVICE", text)
        self.assertRegex(text, r"dataloader: job loader, rank \d: the step waits")
        shown = self.node.run("advise", "--live", "--job", "loader", json_output=False).stdout
        self.assertRegex(shown, r"(?m)^dataloader +loader +\d")
        self.assertIn("  - Use more workers", shown)
        self.assertRegex(self.node.log(1000), r'check=dataloader where="job loader, rank \d, device \d"')

        eventually(lambda: "<h2>Advice</h2>" in (text := self.node.get("/")) and "job loader" in text,
                   what="the page of the node has it")

    @staticmethod
    def next_of(watch, check):
        """What happens next to this advice; a machine that is busy may raise others."""
        return next(line["change"] for line in map(json.loads, watch.stdout) if line["advice"]["check"] == check)

    def test_watch_and_hang(self):
        """The job that is well has no advice until one of its processes is stopped; then a hang, and a dump for it."""
        for daemon, job, check in ((self.node, "gc", "gc"), (self.linked, "linked", "communication_slower")):
            self.found(daemon, job, check)
        self.assertEqual(self.advice(self.node, "well"), [])
        self.assertNotIn("job well", "\n".join(line for line in self.node.log(1000).splitlines() if "advice" in line))
        job = self.jobs["well"]
        watch = self.node.spawn("advise", "--live", "--watch", "--job", "well")
        self.addCleanup(watch.kill)
        os.kill(job.pids[1], signal.SIGSTOP)
        try:
            self.assertEqual(self.next_of(watch, "hang"), "raised")
            advice = self.found(self.node, "well", "hang")
            self.assertEqual((advice["rank"], advice["pid"], advice["confidence"]), (1, job.pids[1], "high"))
            self.assertIn("stopped by a signal", " ".join(advice["evidence"]))
        finally:
            os.kill(job.pids[1], signal.SIGCONT)
        self.assertEqual(self.next_of(watch, "hang"), "cleared")
        watch.send_signal(signal.SIGINT)
        self.assertEqual(watch.wait(20), 0)
        eventually(lambda: any(s["label"] == "trigger: advice" and s["state"] == "done" for s in self.node.ctl("list")["sessions"]),
                   what="the recorder has written a dump for it")


if __name__ == "__main__":
    main()
