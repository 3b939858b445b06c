#!/usr/bin/env python3
"""Training jobs as the daemon makes them out: who belongs to which, on which devices, for whose eyes."""

import json
import os
import subprocess
import unittest

from attach_client import Client, Forked, script
from profd_harness import ALICE, BOB, Daemon, DaemonCase, UsersCase, eventually, main, replace_file, temp_folder
from toml_files import scenario_text

# A process that attaches and stays until its standard input ends.
ATTACHED = """
import json
from attach_client import Client
client = Client(sys.argv[1]).attach(**json.loads(sys.argv[2]))
print(json.dumps(client.welcome), flush=True)
sys.stdin.read()
"""
# What a launcher sets; the environment of the tests themselves has none of it.
LAUNCHER_NAMES = ("SLURM", "RANK", "LOCAL_", "WORLD_", "OMPI_", "PMI", "ASCEND_", "DEVICE_ID",
                  "TORCHELASTIC", "PROFD_JOB", "JOB_ID", "MS_", "PBS_", "LSB_", "MA_JOB")


def clean_environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(LAUNCHER_NAMES)}
    env.update(more)
    return env


class Process:
    """A process of its own that is attached, with the environment given."""

    def __init__(self, path, env=None, **hello):
        self.process = subprocess.Popen(
            [*script(ATTACHED), path, json.dumps(hello)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=clean_environment(**(env or {})))
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"did not attach: {self.process.wait()}")
        self.welcome = json.loads(line)

    def end(self, kill=False):
        if kill:
            self.process.kill()
        else:
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        if not self.process.stdin.closed:
            self.process.stdin.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.end(kill=True)


class JobCase(DaemonCase):
    def jobs(self, *args, **how):
        return self.daemon.ctl("jobs", *args, **how)["jobs"]

    def process_of(self, pid, **how):
        for job in self.jobs(**how):
            for process in job["processes"]:
                if process["pid"] == pid:
                    return dict(process, job_id=job["job_id"], job=job)
        return None


class Detection(JobCase):
    devices = 4

    def expect(self, process, **members):
        found = self.process_of(process.pid)
        self.assertIsNotNone(found)
        for key, value in members.items():
            self.assertEqual(found[key], value, key)
        return found

    def test_slurm(self):
        with Process(self.daemon.attach_socket, env={"SLURM_JOB_ID": "4711", "SLURM_PROCID": "9",
                                     "SLURM_LOCALID": "1", "SLURM_NTASKS": "16"}) as p:
            found = self.expect(p, job_id="4711", rank=9, local_rank=1, devices=[1],
                                slurm_job="4711", attached=True, found_by="attached", uid=os.getuid())
            self.assertEqual(found["job"]["world_size"], 16)
            self.assertTrue(found["command"].startswith("python"), found["command"])
            self.assertGreater(found["attached_ns"], 0)
            self.assertEqual((p.welcome["job_id"], p.welcome["rank"], p.welcome["devices"]),
                             ("4711", 9, [1]))

    def test_reports_of_the_process_have_precedence(self):
        with Process(self.daemon.attach_socket, job_id="mine", rank=1, devices=[2], framework="x",
                     env={"SLURM_JOB_ID": "4711", "SLURM_PROCID": "9", "DEVICE_ID": "0"}) as p:
            self.expect(p, job_id="mine", rank=1, devices=[2], framework="x")

    def test_nothing_is_known(self):
        with Process(self.daemon.attach_socket) as p:
            self.expect(p, job_id="", rank=None, devices=[], framework="")

    def test_devices_this_node_lacks(self):
        with Process(self.daemon.attach_socket, devices=[1, 63]) as p:
            self.expect(p, devices=[1])

    def test_one_job_in_the_table(self):
        env = {"SLURM_JOB_ID": "77", "SLURM_NTASKS": "4"}
        with Process(self.daemon.attach_socket, env=dict(env, SLURM_PROCID="1", SLURM_LOCALID="1")) as b, \
                Process(self.daemon.attach_socket, env=dict(env, SLURM_PROCID="0", SLURM_LOCALID="0")) as a:
            job = self.jobs("--job", "77")[0]
            self.assertEqual([p["pid"] for p in job["processes"]], [a.pid, b.pid])
            text = self.daemon.run("jobs", json_output=False).stdout
            line = next(line for line in text.splitlines() if line.startswith("77 "))
            self.assertIn("0,1 of 4", line)
            self.assertIn("2 attached", line)
            session = self.daemon.ctl("start", "--job", "77", "--devices", "0",
                                      "--sys-interconnection-freq", "10")
            self.assertEqual(self.jobs("--job", "77")[0]["sessions"], [session["session_id"]])
            self.daemon.ctl("stop", session["session_id"])
            self.assertEqual(self.jobs("--job", "77")[0]["sessions"], [])
            self.assertEqual(self.daemon.run("jobs", "--job", "no-such").returncode, 4)

    def test_a_process_that_ends_is_gone(self):
        p = Process(self.daemon.attach_socket, job_id="short")
        self.assertIsNotNone(self.process_of(p.pid))
        p.end(kill=True)
        eventually(lambda: self.process_of(p.pid) is None, what="the dead process is forgotten")

    def test_a_process_that_lost_its_connection_is_silent(self):
        code = ATTACHED.replace("sys.stdin.read()", "client.close(); sys.stdin.read()")
        with subprocess.Popen([*script(code), self.daemon.attach_socket, '{"job_id": "lost"}'],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env=clean_environment()) as process:
            process.stdout.readline()

            def silent():
                found = self.process_of(process.pid)
                return found if found and not found["attached"] else None

            found = eventually(silent, what="the process is shown as silent")
            self.assertGreater(found["silent_ns"], 0)
            self.assertEqual(found["job_id"], "lost")
            process.stdin.close()
            process.wait()
            eventually(lambda: self.process_of(process.pid) is None, what="it ended")

    def test_status_counts_processes(self):
        with Process(self.daemon.attach_socket):
            node = self.daemon.ctl("status")
            self.assertGreaterEqual(node["attached_processes"], 1)
            self.assertEqual(node["attach_socket"], self.daemon.attach_socket)


class DeviceUsers(unittest.TestCase):
    """Processes that use a device without having attached, as the driver lists them."""

    def setUp(self):
        self.pids = os.path.join(temp_folder(self), "pids")
        replace_file(self.pids, "")
        self.daemon = Daemon(scenario_text=scenario_text(processes_file=self.pids)).start()
        self.addCleanup(self.daemon.dispose)

    def process_of(self, pid):
        return next((p for p in self.daemon.processes() if p["pid"] == pid), None)

    def test_found_matched_and_forgotten(self):
        env = clean_environment(SLURM_JOB_ID="12", SLURM_PROCID="3")
        with subprocess.Popen(["sleep", "600"], env=env) as worker:
            # The second pid is of no process of this machine, as out of a container or just ended.
            replace_file(self.pids, f"{worker.pid} 0\n{worker.pid} 1\n{2**22 + 5} 1\n")
            found = eventually(lambda: self.process_of(worker.pid), what="the worker is found")
            self.assertEqual((found["job_id"], found["rank"], found["devices"]), ("12", 3, [0, 1]))
            self.assertEqual((found["attached"], found["found_by"], found["command"]),
                             (False, "device_process_list", "sleep"))
            self.assertIsNone(self.process_of(2**22 + 5))
            self.assertEqual(self.daemon.ctl("jobs", "--attached")["jobs"], [])
            worker.kill()
            worker.wait()
            eventually(lambda: self.process_of(worker.pid) is None, what="the worker is forgotten")

    def test_the_driver_knows_better_than_the_environment(self):
        path = self.daemon.attach_socket
        with Process(path, env={"LOCAL_RANK": "0"}) as p, Process(path, devices=[0]) as reported:
            self.assertEqual(self.process_of(p.pid)["devices"], [0])
            replace_file(self.pids, f"{p.pid} 1\n{reported.pid} 1\n")
            eventually(lambda: self.process_of(p.pid)["devices"] == [1], what="the driver's word")
            self.assertEqual(self.process_of(reported.pid)["devices"], [0])
            self.assertTrue(self.process_of(p.pid)["attached"])


class TwoUsers(UsersCase, JobCase):
    devices = 2

    def attached_as(self, uid, job):
        def attach(keep):
            keep.append(Client(self.daemon.attach_socket).attach(job_id=job, rank=0))
            return keep[0].welcome["rank"]

        return Forked(attach, uid, (self.group,))

    def test_the_same_name_is_another_job(self):
        groups = (self.group,)
        with self.attached_as(ALICE, "same") as a, self.attached_as(BOB, "same") as b:
            for user, mine in ((ALICE, a), (BOB, b)):
                jobs = [j for j in self.jobs(user=user, groups=groups) if j["job_id"] != "shared"]
                self.assertEqual([(j["job_id"], j["uid"]) for j in jobs], [("same", user)])
                self.assertEqual([p["pid"] for p in jobs[0]["processes"]], [mine.pid])
            self.assertEqual(sorted((j["uid"], len(j["processes"])) for j in self.jobs("--job", "same")),
                             [(ALICE, 1), (BOB, 1)])

    def test_socket(self):
        info = os.stat(self.daemon.attach_socket)
        self.assertEqual((info.st_gid, info.st_mode & 0o7777), (self.group, 0o660))

    def test_processes_are_not_notified_of_sessions_of_others(self):
        groups = (self.group,)
        with self.attached_as(ALICE, "shared"), self.attached_as(BOB, "shared"):
            session = self.daemon.ctl("start", "--job", "shared", "--devices", "0",
                                      "--sys-interconnection-freq", "10", user=ALICE, groups=groups)
            for user, sessions in ((ALICE, [session["session_id"]]), (BOB, [])):
                jobs = self.jobs("--job", "shared", user=user, groups=groups)
                self.assertEqual([j["sessions"] for j in jobs], [sessions])
            self.daemon.ctl("stop", session["session_id"])


if __name__ == "__main__":
    main()
