"""A Slurm of one node, on this machine and below one folder: munged, slurmctld, slurmd.

Debian's packages slurmctld, slurmd, slurm-client and munge (scripts/install-deps --for slurm); needs
root, as slurmd does. Nothing of the system's own Slurm or MUNGE is touched: own key, own socket, own
ports, SLURM_CONF points at the folder.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile

from free_ports import free_ports
from profd_harness import eventually, scaled
from text_files import write_text

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo")
SEARCH_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin"


def missing():
    """Why there can be no Slurm here; empty when there can."""
    if os.geteuid() != 0:
        return "slurmd needs root"
    absent = [name for name in PROGRAMS if shutil.which(name, path=SEARCH_PATH) is None]
    if absent:
        return f"no {', '.join(absent)}: scripts/install-deps --for slurm"
    return ""


class Cluster:
    """Use as a context manager. `scripts`: {"Prolog": path, ...} for slurm.conf."""

    def __init__(self, scripts=None):
        self.folder = tempfile.mkdtemp(prefix="profd-slurm-")
        # Users read the configuration and reach MUNGE's socket.
        os.chmod(self.folder, 0o755)
        for name in ("state", "spool", "run", "munge"):
            os.mkdir(self.path(name), 0o755)
        os.chmod(self.path("munge"), 0o700)
        self.scripts = dict(scripts or {})
        self.processes = []
        self.env = dict(os.environ, PATH=SEARCH_PATH, SLURM_CONF=self.path("slurm.conf"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write_config(self):
        ctld, node = free_ports(2)
        host = socket.gethostname().split(".")[0]
        lines = [
            "ClusterName=test",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={ctld}",
            f"SlurmdPort={node}",
            "AuthType=auth/munge",
            "CredType=cred/munge",
            f"AuthInfo=socket={self.path('run/munge')}",
            "SlurmUser=root",
            "SlurmdUser=root",
            f"StateSaveLocation={self.path('state')}",
            f"SlurmdSpoolDir={self.path('spool')}",
            f"SlurmctldPidFile={self.path('run/slurmctld.pid')}",
            f"SlurmdPidFile={self.path('run/slurmd.pid')}",
            # No cgroups: a container has none to give.
            "ProctrackType=proctrack/pgid",
            "TaskPlugin=task/none",
            "JobAcctGatherType=jobacct_gather/none",
            "MpiDefault=none",
            "SelectType=select/cons_tres",
            "SlurmdParameters=config_overrides",
            "ReturnToService=2",
            "NodeName=localhost NodeAddr=127.0.0.1 CPUs=16 RealMemory=1024 State=UNKNOWN",
            "PartitionName=all Nodes=ALL Default=YES OverSubscribe=FORCE:8 MaxTime=INFINITE State=UP",
        ] + [f"{key}={value}" for key, value in self.scripts.items()]
        write_text(self.path("slurm.conf"), "\n".join(lines) + "\n")

    def spawn(self, name, *arguments):
        with open(self.path(name + ".log"), "ab") as log:
            # A group of its own: proctrack/pgid identifies jobs by theirs.
            process = subprocess.Popen([shutil.which(name, path=SEARCH_PATH), *arguments], env=self.env,
                                       stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       start_new_session=True)
        self.processes.append(process)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def start(self):
        key = self.path("munge/key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o400), "wb") as out:
            out.write(os.urandom(128))
        self.spawn("munged", "-F", "--force", "--num-threads=2", f"--key-file={key}",
                   f"--socket={self.path('run/munge')}", f"--pid-file={self.path('run/munged.pid')}",
                   f"--log-file={self.path('munge/log')}", f"--seed-file={self.path('munge/seed')}")
        eventually(lambda: os.path.exists(self.path("run/munge")), 60, what="munged listens")
        self.write_config()
        self.spawn("slurmctld", "-D", "-c", "-f", self.path("slurm.conf"))
        self.spawn("slurmd", "-D", "-N", "localhost", "-f", self.path("slurm.conf"))

        def idle():
            for process in self.processes:
                if process.poll() is not None:
                    raise AssertionError(f"{process.args[0]} ended\n{self.log()}")
            done = self.run("sinfo", "-h", "-o", "%T")
            return done.stdout.strip() == "idle"

        eventually(idle, 120, what="the node is idle", every=0.2)

    def run(self, name, *arguments, seconds=120, **how):
        return subprocess.run([name, *map(str, arguments)], env=how.pop("env", self.env), check=False,
                              capture_output=True, text=True, timeout=scaled(seconds),
                              stdin=subprocess.DEVNULL, **how)

    def popen(self, name, *arguments, **how):
        return subprocess.Popen([name, *map(str, arguments)], env=how.pop("env", self.env), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **how)

    def log(self, lines=40):
        texts = []
        for name in ("munged", "slurmctld", "slurmd"):
            try:
                with open(self.path(name + ".log"), encoding="utf-8", errors="replace") as file:
                    texts.append(f"--- {name}\n" + "\n".join(file.read().splitlines()[-lines:]))
            except OSError:
                continue
        return "\n".join(texts)

    def stop(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(scaled(30))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def __exit__(self, kind, value, trace):
        self.stop()
