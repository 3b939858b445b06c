#!/usr/bin/env python3
"""Whose work an NPU does, in /metrics: Slurm-like processes, processes the driver lists, the scheduler's
job map, and that all of it goes when they do."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from profd_harness import Daemon, eventually, main, scenario

HARNESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness")
# Attaches, tells a few steps, and stays until its standard input ends.
TRAINING = """
import sys
sys.path.insert(0, sys.argv[1])
from attach_client import Client, Ring, raw_ns
ring = Ring()
client = Client(sys.argv[2]).attach(ring=ring)
now = raw_ns()
for number in range(5):
    ring.step(number, now - (5 - number) * 200_000_000, now - (5 - number) * 200_000_000 + 100_000_000)
print("attached", flush=True)
sys.stdin.read()
"""
SECRET = 'x"} 1\nevil_metric{a="b'


def user_name():
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


class Attribution(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="profd-e2e-attr-")
        cls.pids = os.path.join(cls.folder, "pids")
        cls.map = os.path.join(cls.folder, "jobs")
        os.mkdir(cls.map)
        cls.list_pids("")
        path = scenario(os.path.join(cls.folder, "scenario.toml"), devices=4, processes_file=cls.pids)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        cls.daemon = Daemon(scenario_text=text, config={
            "attribution": {"job_map_dir": cls.map, "max_processes": 8, "max_jobs": 8,
                            "pod_resources_socket": "", "cri_socket": ""}}).start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.dispose()
        shutil.rmtree(cls.folder)

    @classmethod
    def list_pids(cls, text):
        with open(cls.pids + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(cls.pids + ".new", cls.pids)

    def series(self, name):
        """The samples of a metric: their labels without uuid, and the value."""
        return [({k: v for k, v in labels if k != "uuid"}, value)
                for (have, labels), value in self.daemon.scrape().items() if have == name]

    def find(self, name, **labels):
        """The value of the one series with these labels; None if there is none."""
        found = [value for have, value in self.series(name) if labels.items() <= have.items()]
        self.assertLessEqual(len(found), 1, (name, labels))
        return found[0] if found else None

    def training(self, rank, **env):
        process = subprocess.Popen(
            [sys.executable, "-c", TRAINING, HARNESS, os.path.join(self.daemon.base, "attach.sock")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "4711", "SLURM_PROCID": str(rank),
                 "SLURM_LOCALID": str(rank), "MS_ROLE": "w", **env})
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), "attached\n")
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if not pipe.closed:
                pipe.close()

    def test_ranks_of_a_slurm_job_side_by_side(self):
        ranks = [self.training(rank) for rank in range(2)]
        for rank, process in enumerate(ranks):
            labels = {"npu": str(rank), "job_id": "4711", "rank": str(rank), "pid": str(process.pid)}
            eventually(lambda: self.find("atlas_npu_step", **labels) == 4, what="the steps are told")
            self.assertEqual(self.find("atlas_npu_steps_total", **labels), 5)
            self.assertAlmostEqual(self.find("atlas_npu_step_duration_seconds", **labels), 0.1, places=6)
            eventually(lambda: self.find("atlas_npu_process_info", user=user_name(),
                                         framework="mindspore", **labels) == 1)
            eventually(lambda: self.find("atlas_npu_job_info", npu=str(rank), job_id="4711",
                                         user=user_name(), scheduler="slurm") == 1)
        # Nothing of them is a label of what is measured.
        for (name, labels) in self.daemon.scrape():
            if not name.startswith("atlas_npu_") or name.endswith("_info") or "_step" in name:
                continue
            self.assertFalse({"job_id", "user", "rank"} & set(dict(labels)), name)
        # One ends in good order, one is killed: nothing of either is left.
        ranks[0].stdin.close()
        ranks[1].kill()
        for name in ("atlas_npu_step", "atlas_npu_steps_total", "atlas_npu_step_duration_seconds",
                     "atlas_npu_process_info", "atlas_npu_job_info"):
            eventually(lambda: not self.series(name), what=f"{name} is gone")

    def test_processes_of_the_drivers_list(self):
        process = subprocess.Popen(["sleep", "600"], env={
            "PATH": os.environ["PATH"], "PBS_JOBID": "17.server", "RANK": "2"})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.list_pids(f"{process.pid} 2 1024\n")
        self.addCleanup(self.list_pids, "")
        labels = {"npu": "2", "pid": str(process.pid)}
        eventually(lambda: self.find("atlas_npu_process_info", job_id="17.server", rank="2",
                                     command="sleep", **labels) == 1, what="the process is found")
        self.assertEqual(self.find("atlas_npu_job_info", npu="2", job_id="17.server",
                                   scheduler="pbs"), 1)
        # Its memory gets the job's name, and is there once.
        eventually(lambda: self.find("atlas_npu_process_memory_bytes", job="17.server",
                                     **labels) == 1 << 30, seconds=60, what="its memory has its job")
        process.kill()
        process.wait()
        self.list_pids("")
        for name in ("atlas_npu_process_info", "atlas_npu_process_memory_bytes"):
            eventually(lambda: self.find(name, **labels) is None, seconds=60, what=f"{name} is gone")

    def test_job_map(self):
        for name, text in (("3", f"4712\n{SECRET}\n"), ("63", "4713\n"), ("note", "4714\n")):
            with open(os.path.join(self.map, name), "w", encoding="utf-8") as file:
                file.write(text)
        eventually(lambda: self.find("atlas_npu_job_info", npu="3", job_id="4712", user="",
                                     scheduler="job_map") == 1, what="the map is read")
        self.assertEqual(self.daemon.metric("profd_attribution_source_up", source="job_map"), 1)
        self.assertEqual(self.daemon.metric("profd_attribution_ignored_files"), 1)
        self.assertIn("this node has no NPU 63", self.daemon.log(1000))
        # Whatever stands in it: three lines are three labels, and no line of ours.
        jobs = {labels["job_id"] for labels, _ in self.series("atlas_npu_job_info")
                if labels["npu"] == "3"}
        self.assertEqual(len(jobs), 3, jobs)
        self.assertEqual(self.series("evil_metric"), [])
        for name in ("3", "63", "note"):
            os.remove(os.path.join(self.map, name))
        eventually(lambda: self.find("atlas_npu_job_info", npu="3", job_id="4712") is None,
                   what="the epilog's word is heard")

    def test_limits(self):
        self.assertEqual(self.daemon.metric("profd_attribution_hidden_jobs"), 0)
        with open(os.path.join(self.map, "1"), "w", encoding="utf-8") as file:
            file.write("".join(f"many-{i}\n" for i in range(50)))
        eventually(lambda: self.daemon.metric("profd_attribution_hidden_jobs"),
                   what="more jobs than there is room for")
        self.assertLessEqual(len(self.series("atlas_npu_job_info")), 8 * 4)
        os.remove(os.path.join(self.map, "1"))
        eventually(lambda: self.daemon.metric("profd_attribution_hidden_jobs") == 0)


if __name__ == "__main__":
    main()
