#!/usr/bin/env python3
"""A real Slurm on this machine: srun profctl, --slurm, Prolog, TaskProlog and Epilog."""

import json
import os
import pwd
import shutil
import sys
import tempfile
import unittest

import slurm_cluster
from attach_client import Client
from profd_harness import PROFCTL, REPO, RUNNER, Daemon, demote, eventually, main, profctl, scaled, temp_folder
from text_files import read_text, write_text
from tls_files import tls_section

DEPLOY = os.path.join(REPO, "docs", "deploy")
HOST_CPU = ("--collector", "host_cpu=10")
# What the job runs: attaches as a training process does, prints so, and stays until it is ended.
TRAINING = """
import os, sys, time
sys.path.insert(0, {harness!r})
from attach_client import Client
with Client({attach!r}).attach(devices=[0]) as client:
    open({folder!r} + "/attached-" + os.environ["SLURM_PROCID"], "w").close()
    while not os.path.exists({folder!r} + "/end"):
        time.sleep(0.05)
"""


class SlurmCase(unittest.TestCase):
    """One Slurm and one profd for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        why = slurm_cluster.missing()
        if why and os.environ.get("CI") and "root" not in why:
            raise AssertionError(why)
        if why:
            raise unittest.SkipTest(why)
        if RUNNER:
            raise unittest.SkipTest("slurmd runs no binaries of another machine")
        cls.folder = temp_folder(cls)
        os.chmod(cls.folder, 0o777)
        cls.make_programs()
        cls.tls = os.path.join(cls.folder, "tls")
        profctl("tls", "init", cls.tls, "--hosts", "localhost,127.0.0.1", "--admin", "ops")
        cls.daemon = Daemon("devices = 2\n", config={
            "daemon": {"socket_group": cls.group()}, "tls": tls_section(cls.tls)})
        cls.addClassCleanup(cls.daemon.dispose)
        cls.daemon.start()
        cls.cluster = slurm_cluster.Cluster(cls.scripts())
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        cls.cluster.env["PROFD_SOCKET"] = cls.daemon.socket
        cls.cluster.env["PATH"] = cls.programs + ":" + cls.cluster.env["PATH"]

    @classmethod
    def make_programs(cls):
        """What jobs call profctl: Slurm's users may not be able to enter the build's folder."""
        cls.programs = os.path.join(cls.folder, "bin")
        os.mkdir(cls.programs)
        shutil.copy(PROFCTL, os.path.join(cls.programs, "profctl"))

    @classmethod
    def group(cls):
        return ""

    @classmethod
    def scripts(cls):
        return {}

    @classmethod
    def wrapper(cls, name, defaults=""):
        """slurmd gives its scripts no environment: what a node's /etc would say stands here."""
        path = os.path.join(cls.folder, name)
        write_text(path, f"#!/bin/sh\nexport PROFD_SOCKET={cls.daemon.socket}\n"
                         f"export PROFCTL={cls.programs}/profctl\n"
                         f"export PROFD_SLURM_DEFAULTS={defaults}\n"
                         f"echo \"$SLURM_JOB_ID\" >>{path}.ran\n"
                         f"exec {DEPLOY}/slurm/{name}\n")
        os.chmod(path, 0o755)
        return path

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            sys.stderr.write(f"{self.cluster.log()}\n--- profd\n{self.daemon.log()}\n")

    def training_script(self):
        """(The script of a task, the folder of its signs)."""
        folder = tempfile.mkdtemp(dir=self.folder)
        os.chmod(folder, 0o777)
        script = os.path.join(folder, "train.py")
        write_text(script, TRAINING.format(harness=os.path.join(REPO, "tests", "harness"), folder=folder,
                                           attach=self.daemon.node["attach_socket"]))
        return script, folder

    def training(self, tasks):
        """A running job of so many attached processes: (its id, what ends it)."""
        script, folder = self.training_script()
        job = self.cluster.popen("srun", "-n", tasks, "--overcommit", "--job-name", "train",
                                 sys.executable, script)
        self.addCleanup(self.end_process, job)

        def attached():
            self.assertIsNone(job.poll(), "the job ended")
            return all(os.path.exists(f"{folder}/attached-{i}") for i in range(tasks))

        eventually(attached, 120, what="the job's processes attach")
        # Those that have ended stay listed for a while.
        jobs = [j for j in self.daemon.ctl("jobs")["jobs"] if any(p["attached"] for p in j["processes"])]
        self.assertEqual(len(jobs), 1, jobs)

        def end():
            open(os.path.join(folder, "end"), "w", encoding="utf-8").close()
            self.assertEqual(job.wait(scaled(60)), 0, job.stderr.read())

        return jobs[0]["job_id"], end

    @staticmethod
    def end_process(process):
        process.kill()
        process.communicate()

    def sessions(self, job, *more):
        return self.daemon.ctl("list", "--job", job, *more)["sessions"]


class Srun(SlurmCase):

    def test_srun_profctl_start_in_a_running_job(self):
        job, end = self.training(2)
        ranks = sorted(p["rank"] for p in self.daemon.ctl("jobs", "--job", job)["jobs"][0]["processes"])
        self.assertEqual(ranks, [0, 1])
        step = ("srun", "--jobid", job, "--overlap", "-N1", "-n1")
        done = self.cluster.run(*step, "sh", "-c",
                                "exec profctl --json start --job $SLURM_JOB_ID --detach "
                                + " ".join(HOST_CPU))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        session = json.loads(done.stdout)
        self.assertEqual(session["job_id"], job)
        self.assertEqual(session["devices"], [0])
        self.assertEqual(sorted(p["rank"] for p in session["processes"]), [0, 1])
        # The step that started it is over; the session is not.
        self.daemon.until_records(session["session_id"], 1)
        done = self.cluster.run(*step, "sh", "-c", "exec profctl stop --job $SLURM_JOB_ID")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([s["state"] for s in self.sessions(job)], ["done"])
        end()

    def test_the_job_of_the_documents_has_one_session_a_node(self):
        script, folder = self.training_script()
        text = read_text(DEPLOY, "slurm", "train.sbatch")
        for was, here in (("--nodes=4", "--nodes=1"), ("--ntasks-per-node=8", "--ntasks-per-node=2"),
                          ("python train.py", f"{sys.executable} {script}"),
                          ("sleep 600", f"until [ -e {folder}/attached-0 -a -e {folder}/attached-1 ]; do sleep 0.1; done")):
            self.assertIn(was, text)
            text = text.replace(was, here)
        batch = os.path.join(folder, "train.sbatch")
        write_text(batch, text + f"touch {folder}/ended\n")
        done = self.cluster.run("sbatch", "--parsable", "--output", os.path.join(folder, "output"), batch)
        self.assertEqual(done.returncode, 0, done.stderr)
        job = done.stdout.strip()
        self.addCleanup(self.cluster.run, "scancel", job)
        eventually(lambda: self.sessions(job), 120, what="the job starts its session")
        write_text(os.path.join(folder, "end"), "")
        eventually(lambda: os.path.exists(os.path.join(folder, "ended")), 120, what="the job ends")
        self.assertEqual(len(self.sessions(job)), 1, read_text(folder, "output"))

    def test_nodes_of_a_slurm_job(self):
        job, end = self.training(1)
        port = self.daemon.node["tls_address"].rsplit(":", 1)[1]
        fleet = ("--slurm", job, "--node-port", port, "--tls-dir",
                 os.path.join(self.tls, "clients", "ops"))
        env = {key: value for key, value in self.cluster.env.items() if key != "PROFD_SOCKET"}
        done = self.cluster.run(PROFCTL, *fleet, "--json", "start", *HOST_CPU, env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["job_id"], job)
        self.assertEqual([node["node"] for node in answer["nodes"]], ["localhost"])
        session_id = answer["nodes"][0]["sessions"][0]["session_id"]
        self.daemon.until_records(session_id, 1)
        done = self.cluster.run(PROFCTL, *fleet, "stop", env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        out = os.path.join(self.folder, "out")
        done = self.cluster.run(PROFCTL, *fleet, "fetch", "--out", out, env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(os.listdir(out)), ["fleet.json", "rank_0"])
        with Client(self.daemon.node["attach_socket"]).attach(job_id="other", devices=[1]):
            for command, found in ((("jobs",), "jobs"), (("top", "--once"), "processes")):
                done = self.cluster.run(PROFCTL, *fleet, "--json", *command, env=env)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                listed = json.loads(done.stdout)["nodes"][0]["answer"][found]
                self.assertEqual([one["job_id"] for one in listed], [job], command)
        end()

    def test_a_job_slurm_does_not_know(self):
        done = self.cluster.run(PROFCTL, "--slurm", "999999", "status")
        self.assertEqual(done.returncode, 6, done.stderr)
        self.assertIn("Invalid job id", done.stderr)


class Prolog(SlurmCase):
    """The scripts of docs/deploy/slurm, run by slurmd for a user's job."""

    @classmethod
    def group(cls):
        return "nogroup"

    @classmethod
    def scripts(cls):
        defaults = os.path.join(cls.folder, "defaults")
        write_text(defaults, 'PROFD_SLURM_OPTIONS="--collector host_cpu=10"\n')
        return {"Prolog": cls.wrapper("profd-prolog.sh", defaults),
                "Epilog": cls.wrapper("profd-epilog.sh"),
                "TaskProlog": cls.wrapper("profd-task-prolog.sh"), "PrologFlags": "Alloc"}

    def as_nobody(self, *arguments, program="srun", **environment):
        nobody = pwd.getpwnam("nobody")
        return self.cluster.run(program, "-n1", "--chdir=/tmp", *arguments, cwd="/tmp",
                                preexec_fn=demote(nobody.pw_uid, nobody.pw_gid),
                                env=dict(self.cluster.env, HOME="/tmp", **environment))

    def ended(self, job):
        """The job's sessions once none is left."""
        eventually(lambda: self.sessions(job) and not self.sessions(job, "--active"), 120,
                   what=f"the Epilog ends the sessions of job {job}")
        return self.sessions(job)

    def test_every_job_has_its_session_and_none_outlives_it(self):
        done = self.as_nobody("sh", "-c", "echo $SLURM_JOB_ID; profctl --json list --active "
                              "--job $SLURM_JOB_ID")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        job, _, text = done.stdout.partition("\n")
        during = json.loads(text)["sessions"]
        self.assertEqual([s["label"] for s in during], ["slurm-prolog"])
        self.assertEqual(during[0]["uid"], pwd.getpwnam("nobody").pw_uid)
        after = self.ended(job)
        self.assertEqual([s["session_id"] for s in after], [during[0]["session_id"]])
        self.assertEqual(after[0]["state"], "done")

    def test_a_user_asks_for_more(self):
        done = self.as_nobody("sh", "-c", "echo $SLURM_JOB_ID; echo $PROFD_JOB_ID",
                              PROFD_SLURM="--collector host_mem=1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        job, reported = done.stdout.split()
        self.assertEqual(reported, job)
        self.assertEqual(sorted(s["label"] for s in self.ended(job)),
                         ["slurm-prolog", "slurm-task-prolog"])

    def test_the_steps_of_a_job_share_its_session(self):
        # The batch script is a task, too.
        script, output = (os.path.join(self.folder, name) for name in ("steps.sh", "steps-output"))
        write_text(script, "#!/bin/sh\nsrun -n1 true\nsrun -n1 sh -c 'echo $PROFD_JOB_ID'\n")
        done = self.as_nobody("--wait", "--parsable", "--output", output, script, program="sbatch",
                              PROFD_SLURM="--collector host_mem=1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        job = done.stdout.strip()
        self.assertEqual(read_text(output).split(), [job])
        self.assertEqual(sorted(s["label"] for s in self.ended(job)), ["slurm-prolog", "slurm-task-prolog"])

    def test_jobs_that_cannot_be_profiled_run_with_a_message(self):
        done = self.as_nobody("sh", "-c", "echo it runs", PROFD_SLURM="--collector no_such_thing")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("it runs", done.stdout)
        self.assertIn("no_such_thing", done.stdout)

    def test_without_profd_jobs_run_and_nodes_stay(self):
        self.daemon.stop()
        try:
            done = self.as_nobody("sh", "-c", "echo it runs")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("it runs", done.stdout)
            eventually(lambda: self.cluster.run("sinfo", "-h", "-o", "%T").stdout.strip() == "idle", 120,
                       what="the node is idle, not drained")
        finally:
            self.daemon.start()


if __name__ == "__main__":
    main()
