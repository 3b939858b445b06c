#!/usr/bin/env python3
"""Whose work an NPU does, in /metrics: Slurm-like processes, processes the driver lists, the scheduler's
job map, and that all of it goes when they do."""

import os
import pwd
import socket
import subprocess
import unittest

from attach_client import script
from profd_harness import REPO, Daemon, eventually, main, replace_file, temp_folder
from text_files import read_text, write_text
from toml_files import scenario_text

# Attaches, reports a few steps, and stays until its standard input ends.
TRAINING = """
from attach_client import Client, Ring, raw_ns
ring = Ring()
client = Client(sys.argv[1]).attach(ring=ring)
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


class JobMapScript(unittest.TestCase):
    """docs/deploy/slurm/profd-job-map.sh, as prolog and epilog call it."""

    def run_script(self, folder, verb, job, gpus=""):
        done = subprocess.run(
            ["sh", os.path.join(REPO, "docs", "deploy", "slurm", "profd-job-map.sh"), verb],
            env={"SLURM_JOB_ID": job, "SLURM_JOB_GPUS": gpus, "JOB_MAP_DIR": os.path.join(folder, "map"),
                 "DEVICES": folder}, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @staticmethod
    def files(folder):
        found = {}
        for name in sorted(os.listdir(os.path.join(folder, "map"))):
            if name != ".lock":
                found[name] = read_text(folder, "map", name)
        return found

    def test_jobs_share_and_leave(self):
        folder = temp_folder(self)
        for name in ("davinci0", "davinci1", "davinci_manager"):
            open(os.path.join(folder, name), "w", encoding="utf-8").close()
        self.run_script(folder, "begin", "11")  # the whole node
        self.assertEqual(self.files(folder), {"0": "11\n", "1": "11\n"})
        self.run_script(folder, "begin", "12", gpus="1,3")
        self.run_script(folder, "begin", "12", gpus="1,3")
        self.assertEqual(self.files(folder), {"0": "11\n", "1": "11\n12\n", "3": "12\n"})
        self.run_script(folder, "end", "11")
        self.assertEqual(self.files(folder), {"1": "12\n", "3": "12\n"})
        self.run_script(folder, "end", "12")
        self.assertEqual(self.files(folder), {})


class Attribution(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = temp_folder(cls)
        cls.pids = os.path.join(cls.folder, "pids")
        cls.map = os.path.join(cls.folder, "jobs")
        os.mkdir(cls.map)
        replace_file(cls.pids, "")
        # A kubelet that hangs: it costs nothing but what it would have said.
        cls.kubelet = socket.socket(socket.AF_UNIX)
        cls.kubelet.bind(os.path.join(cls.folder, "kubelet.sock"))
        cls.kubelet.listen()
        cls.daemon = Daemon(scenario_text=scenario_text(devices=4, processes_file=cls.pids), config={
            "attribution": {"job_map_dir": cls.map, "max_processes": 8, "max_jobs": 8,
                            "pod_resources_socket": cls.kubelet.getsockname(),
                            "cri_socket": ""}}).start()

    @classmethod
    def tearDownClass(cls):
        cls.daemon.dispose()
        cls.kubelet.close()

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
            [*script(TRAINING), self.daemon.attach_socket],
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

    def write_map(self, name, text):
        write_text(os.path.join(self.map, name), text)

    def check_training(self, rank, process):
        labels = {"npu": str(rank), "job_id": "4711", "rank": str(rank), "pid": str(process.pid)}
        eventually(lambda: self.find("atlas_npu_step", **labels) == 4, what="the steps are reported")
        self.assertEqual(self.find("atlas_npu_steps_total", **labels), 5)
        self.assertAlmostEqual(self.find("atlas_npu_step_duration_seconds", **labels), 0.1, places=6)
        eventually(lambda: self.find("atlas_npu_process_info", user=user_name(), framework="mindspore",
                                     **labels) == 1, what="the process is reported")
        self.assertEqual(self.find("atlas_npu_job_info", npu=str(rank), job_id="4711",
                                   user=user_name(), scheduler="slurm"), 1)

    def check_listed(self, process):
        labels = {"npu": "2", "pid": str(process.pid)}
        eventually(lambda: self.find("atlas_npu_process_info", job_id="17.server", rank="2",
                                     command="sleep", **labels) == 1, what="the process is found")
        self.assertEqual(self.find("atlas_npu_job_info", npu="2", job_id="17.server",
                                   scheduler="pbs"), 1)
        # Its memory gets the job's name, and is there once.
        eventually(lambda: self.find("atlas_npu_process_memory_bytes", job="17.server",
                                     **labels) == 1 << 30, seconds=60, what="its memory has its job")

    def check_map(self):
        eventually(lambda: self.find("atlas_npu_job_info", npu="3", job_id="4712", user="",
                                     scheduler="job_map") == 1, what="the map is read")
        self.assertEqual(self.daemon.metric("profd_attribution_source_up", source="job_map"), 1)
        self.assertEqual(self.daemon.metric("profd_attribution_ignored_files"), 1)
        self.assertIn("this node has no NPU 63", self.daemon.log(1000))
        # Whatever stands in it: a line is a label, and no line of ours.
        jobs = {labels["job_id"] for labels, _ in self.series("atlas_npu_job_info")
                if labels["npu"] == "3"}
        self.assertEqual({'x"} 1'.replace('"', '\\"'), 'evil_metric{a=\\"b', "4712", "many-0"} - jobs,
                         set(), jobs)
        self.assertEqual(self.series("evil_metric"), [])
        # More jobs than are shown: no other user's are among the hidden.
        self.assertEqual(len({(labels["job_id"], labels["user"])
                              for labels, _ in self.series("atlas_npu_job_info")}), 8)
        self.assertEqual(self.daemon.metric("profd_attribution_hidden_jobs"), 55 - 8)

    def test_jobs_come_and_go(self):
        """One story: each wait costs seconds, as the driver and the folder are asked every few."""
        self.write_map("3", f"4712\n{SECRET}\n" + "".join(f"many-{i}\n" for i in range(50)))
        self.write_map("63", "4713\n")
        self.write_map("note", "4714\n")
        listed = subprocess.Popen(["sleep", "600"], env={
            "PATH": os.environ["PATH"], "PBS_JOBID": "17.server", "RANK": "2"})
        self.addCleanup(listed.wait)
        self.addCleanup(listed.kill)
        replace_file(self.pids, f"{listed.pid} 2 1024\n")
        ranks = [self.training(rank) for rank in range(2)]
        for rank, process in enumerate(ranks):
            self.check_training(rank, process)
        self.check_listed(listed)
        self.check_map()
        # Nothing of them is a label of what is measured.
        for (name, labels) in self.daemon.scrape():
            if name.startswith("atlas_npu_") and not name.endswith("_info") and "_step" not in name:
                self.assertFalse({"job_id", "user", "rank"} & set(dict(labels)), name)
        eventually(lambda: self.daemon.metric("profd_attribution_source_errors_total", source="kubelet"),
                   what="the kubelet is found to hang")
        self.assertEqual(self.daemon.metric("profd_attribution_source_up", source="kubelet"), 0)
        # One ends in good order, the others are killed; the epilog clears the map.
        ranks[0].stdin.close()
        ranks[1].kill()
        listed.kill()
        listed.wait()
        replace_file(self.pids, "")
        for name in ("3", "63", "note"):
            os.remove(os.path.join(self.map, name))
        for name in ("atlas_npu_step", "atlas_npu_steps_total", "atlas_npu_step_duration_seconds",
                     "atlas_npu_process_info", "atlas_npu_job_info", "atlas_npu_process_memory_bytes"):
            eventually(lambda: not self.series(name), seconds=60, what=f"{name} is gone")
        self.assertEqual(self.daemon.metric("profd_attribution_hidden_jobs"), 0)
        self.assertEqual(self.daemon.metric("profd_attribution_ignored_files"), 0)


if __name__ == "__main__":
    main()
