"""Simulated training jobs (sim/app) beside a daemon, and the ground truth they leave."""

import json
import os
import re
import subprocess

from profd_harness import BUILD, REPO, eventually
from text_files import write_text


class SimTrain:
    """A shipped job as a process group. `steps`: instead of the file's own; `sim`: PROFD_SIM_APP; `around`: a
    command that runs the job; `how`: for subprocess."""

    def __init__(self, attach_socket, folder, job="conv-2", steps=None, sim="", env=None, text=None, around=(), **how):
        if text is None:
            with open(os.path.join(REPO, "sim", "app", "jobs", job + ".toml"), encoding="utf-8") as file:
                text = file.read()
        if steps is not None:
            text = re.sub(r"(?m)^steps = \d+$", f"steps = {steps}", text)
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "job.toml")
        write_text(path, text)
        self.job_id = re.search(r'(?m)^name = "(.*)"$', text).group(1)
        environment = dict(os.environ, PROFD_ATTACH_SOCKET=attach_socket,
                           LD_LIBRARY_PATH=os.pathsep.join((os.path.join(BUILD, "sim"), os.path.join(BUILD, "lib"))))
        for name in ("PROFILING_OPTIONS", "PROFD_JOB_ID", "SLURM_JOB_ID", "PROFD_SIM_APP", "PROFD_COLLECT"):
            environment.pop(name, None)
        if sim:
            environment["PROFD_SIM_APP"] = sim
        environment.update(env or {})
        self.output = open(os.path.join(folder, "output"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([*around, os.path.join(BUILD, "sim", "sim_train"), path, folder], env=environment,
                                        stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True, **how)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
        self.process.wait()
        self.output.close()

    def wait(self, seconds=60):
        code = self.process.wait(seconds)
        if code != 0:
            self.output.seek(0)
            raise AssertionError(f"sim_train: {code}: {self.output.read()}")

    def attached(self, daemon, ranks):
        """Waits until so many ranks are attached, and returns their pids by rank."""
        def is_own(pid):  # not of a job of the same name that has just ended
            try:
                return os.getsid(pid) == self.process.pid
            except ProcessLookupError:
                return False

        def pids():
            found = {p["rank"]: p["pid"] for p in daemon.processes(self.job_id) if p.get("attached") and is_own(p["pid"])}
            return found if len(found) == ranks else None
        return eventually(pids, seconds=30, what=f"{ranks} ranks are attached")

    def until_written(self, ranks, time_ns):
        """Waits until the ranks' truth is complete up to this time of raw_ns(): it has a step that began later."""
        def written():
            return all(step["begin_ns"] > time_ns for rank in ranks for step in self.truth(rank, "step")[-1:] or [{"begin_ns": 0}])
        eventually(written, seconds=60, what=f"the truth has a step that began after {time_ns}", every=0.1)

    def truth(self, rank, *kinds):
        """The lines of these kinds, in the order of the file; a last line that is being written is left out."""
        with open(os.path.join(self.folder, f"truth_{rank}.jsonl"), encoding="utf-8") as file:
            # In one piece: a line that is being written would come in two.
            lines = file.read().split("\n")[:-1]
        # Each begins with its kind. Only these are parsed: a job writes a hundred thousand lines a second.
        wanted = tuple(f'{{"what":"{kind}",' for kind in kinds)
        return [json.loads(line) for line in lines if line.startswith(wanted)]
