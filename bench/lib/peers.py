"""Other daemons beside ours: started on ports of their own, with the host's metrics only, and what they cost."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import rig

TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def tree(pid):
    """A process and all that came from it."""
    parents = {}
    for name in os.listdir("/proc"):
        fields = rig.read(f"/proc/{name}/stat").rpartition(")")[2].split() if name.isdigit() else []
        if fields:
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def cpu_seconds(pid):
    """utime and stime of /proc/PID/stat and of children waited for. Where all threads still live their
    schedstat says the same in ns instead of ticks: the larger of both."""
    total = 0.0
    for one in tree(pid):
        fields = rig.read(f"/proc/{one}/stat").rpartition(")")[2].split()
        if not fields:
            continue
        own, children = (sum(map(int, fields[i:i + 2])) / TICKS for i in (11, 13))
        fine = 0.0
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                fine += int((rig.read(f"/proc/{one}/task/{task}/schedstat").split() or [0])[0]) / 1e9
        except OSError:
            pass
        total += (fine if fine > own - 1.5 / TICKS else own) + children
    return total


def rss_mib(pid):
    text = rig.read(f"/proc/{pid}/status")
    return next((int(line.split()[1]) / 1024 for line in text.splitlines()
                 if line.startswith("VmRSS")), 0.0)


def series_of(body):
    # A line with a blank: what frames a chunked answer has none.
    return sum(1 for line in body.split(b"\n") if line and line[0] != 35 and b" " in line)


class Peer:
    """A process of another program, in a folder of its own, until the block ends."""

    def __init__(self, name, command, address=None, folder=None):
        self.name, self.command, self.address, self.folder = name, command, address, folder

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True)
        self.pid = self.process.pid
        try:
            self._wait()
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def _wait(self):
        deadline = time.monotonic() + 15
        while self.address and time.monotonic() < deadline:
            try:
                if series_of(rig.scrape(self.address)[1]) > 0:
                    return
            except (OSError, RuntimeError):
                pass
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {' '.join(self.command)}")
            time.sleep(0.1)
        if self.address:
            raise RuntimeError(f"{self.name} does not answer: {' '.join(self.command)}")
        time.sleep(1)
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended: {' '.join(self.command)}")

    def __exit__(self, *_):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                pass
        self.process.wait()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


# What of the host profd reads: CPU, memory, network devices, disks, pressure, load.
NODE_EXPORTER = ("cpu", "stat", "meminfo", "netdev", "diskstats", "pressure", "loadavg")


def node_exporter(pad=b""):
    """None where it is not installed. `pad`: further series, from a text file."""
    path = program("prometheus-node-exporter") or program("node_exporter")
    if not path:
        return None
    address = ("127.0.0.1", free_port())
    folder = tempfile.mkdtemp(prefix="profd-bench-ne-")
    command = [path, f"--web.listen-address={address[0]}:{address[1]}", "--log.level=error", "--collector.disable-defaults",
               *(f"--collector.{name}" for name in NODE_EXPORTER), "--collector.textfile",
               f"--collector.textfile.directory={folder}"]
    if pad:
        with open(os.path.join(folder, "pad.prom"), "wb") as file:
            file.write(pad)
    return Peer("node_exporter", command, address, folder)


def pad_of(count):
    """Series as ours look: three labels, 16 to a family."""
    lines = []
    for i in range(count):
        if i % 16 == 0:
            lines.append(f"# HELP bench_pad_{i // 16}_total A counter that only fills.\n"
                         f"# TYPE bench_pad_{i // 16}_total counter\n")
        lines.append(f'bench_pad_{i // 16}_total{{npu="{i % 8}",link="{i % 16}",direction="transmit"}} '
                     f"{i * 7919}.25\n")
    return "".join(lines).encode()


COLLECTD_PLUGINS = ("cpu", "memory", "load", "interface", "disk", "vmem")


def collectd(hz):
    path = program("collectd")
    if not path:
        return None
    address = ("127.0.0.1", free_port())
    folder = tempfile.mkdtemp(prefix="profd-bench-collectd-")
    conf = os.path.join(folder, "collectd.conf")
    with open(conf, "w", encoding="utf-8") as file:
        file.write(f'Hostname "bench"\nFQDNLookup false\nBaseDir "{folder}"\nReadThreads 1\n'
                   f'WriteThreads 1\nPIDFile "{folder}/pid"\nInterval {1 / hz:g}\n'
                   + "".join(f"LoadPlugin {name}\n" for name in COLLECTD_PLUGINS)
                   + "LoadPlugin write_prometheus\n<Plugin write_prometheus>\n"
                   f'  Port "{address[1]}"\n</Plugin>\n')
    return Peer("collectd", [path, "-f", "-C", conf], address, folder)


def named(text):
    """--peer: (name, PID or command)."""
    name, _, what = text.partition("=")
    return name, what.strip()


def shares_of(texts, seconds, own_percent):
    """CPU of every --peer over some seconds, ours beside it; a note on one that does not run."""
    rows, notes = {}, []
    for text in texts:
        try:
            row = share_of(text, seconds)
        except (OSError, RuntimeError, ValueError) as error:
            notes.append(f"--peer {text}: {error}")
            continue
        row["profd_ratio"] = own_percent / max(row["percent"], 1e-9)
        rows[named(text)[0]] = row
    return rows, notes


def share_of(text, seconds):
    """CPU of a --peer over some seconds, with all it started: {"percent", "rss_mib"}."""
    name, what = named(text)

    def measure(pid):
        begin, before = time.monotonic(), cpu_seconds(pid)
        time.sleep(seconds)
        return {"percent": (cpu_seconds(pid) - before) / (time.monotonic() - begin) * 100,
                "rss_mib": rss_mib(pid)}

    if what.isdigit():
        if not os.path.exists(f"/proc/{what}"):
            raise RuntimeError("there is no such process")
        return measure(int(what))
    if not what:
        raise RuntimeError("name=PID or name=command")
    with Peer(name, shlex.split(what)) as peer:
        time.sleep(2)
        return measure(peer.pid)
