"""Which skipped tests this machine explains: the one list of them.

Each row is the skip's message (a regular expression) and a probe that looks whether it is true here. In CI
a skip without a row, or whose probe is false, is a failure (summarize.py). What scripts/install-deps installs
for scripts/test has no row: where it is missing, the installation has failed.
"""

import os
import re
import resource
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def not_root(_run):
    return os.geteuid() != 0


def sanitized(run):
    return run.startswith(("asan", "tsan"))


def emulated(run):
    return run.startswith("aarch64")


def other_build(run):
    return sanitized(run) or emulated(run)


def fails(*command):
    """A probe: the command is missing or ends with an error."""
    def probe(_run):
        return shutil.which(command[0]) is None or subprocess.run(
            command, capture_output=True, check=False, timeout=60).returncode != 0
    return probe


def no_memory_controller(_run):
    folder = "/sys/fs/cgroup/memory/profd-probe"
    try:
        os.mkdir(folder)
    except OSError:
        return True
    os.rmdir(folder)
    return False


def no_choice_of_pids(_run):
    return not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK)


def few_processes(_run):
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as file:
        limits = [int(file.read()), resource.getrlimit(resource.RLIMIT_NPROC)[0]]
    return any(0 < limit < 131072 for limit in limits)


def open_build_tree(_run):
    """A user other than root may write to a folder above the build tree."""
    folder = os.path.join(ROOT, "build")
    while True:
        facts = os.stat(folder)
        if facts.st_uid != 0 or facts.st_mode & 0o022:
            return True
        if folder == "/":
            return False
        folder = os.path.dirname(folder)


def busy(_run):
    return os.getloadavg()[2] > (os.cpu_count() or 1)


def no_known_answers(_run):
    return not os.path.isdir(os.environ.get("PROFD_SHARED_DATA", os.path.join(os.path.dirname(ROOT), "shared", "data")))


def measured(_run):
    """The test has measured it itself."""
    return True


EXPLAINED = [
    (r"only root |needs root|for root's sake|the crowd is another user's|no right or tool to add it", not_root),
    (r"a preloaded library comes before the sanitizer's|not with AddressSanitizer|memory is measured|"
     r"a sanitizer's memory is not ours|a sanitizer makes calls of its own|"
     r"the child of a process with threads may start none", sanitized),
    (r"of this machine's ordinary build", other_build),
    (r"not under emulation|no binaries of another machine", emulated),
    (r"no tmpfs can be mounted here|not possible here: mount|no overlay file system here",
     fails("unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt")),
    (r"no user namespaces here", fails("unshare", "--user", "--map-root-user", "true")),
    (r"strace may not trace here", fails("strace", "-o", "/dev/null", "true")),
    (r"no control group can be made|has no memory controller", no_memory_controller),
    (r"process numbers cannot be chosen here", no_choice_of_pids),
    (r"no \d+ processes can be made here", few_processes),
    (r"the build tree itself is not safe", open_build_tree),
    (r"the data with known answers is not there", no_known_answers),
    (r"too busy to be ready before the fault begins|takes the number each time", busy),
    (r"this machine writes faster than the simulator delivers", measured),
]


def is_explained(reason, run, rows=None):
    """True if the list has `reason` and the machine agrees. `run`: folder of the report, e.g. asan-san."""
    return any(re.search(pattern, reason) and probe(run) for pattern, probe in rows or EXPLAINED)
