"""What the kernel says of a process."""

import os
import re

from text_files import read_bytes


def proc(pid, name):
    return read_bytes("/proc", str(pid), name).decode(errors="replace")


def status(pid, key):
    return re.search(rf"^{key}:\s+(\S+)", proc(pid, "status"), re.M)[1]


def rss(pid):
    return int(status(pid, "VmRSS")) * 1024


def cpu_seconds(pid):
    fields = proc(pid, "stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    return [int(child) for child in proc(pid, f"task/{pid}/children").split()]


def blocks(pid, signal):
    """Whether its main thread takes the signal only when it looks for it."""
    return bool(int(status(pid, "SigBlk"), 16) >> (signal - 1) & 1)
