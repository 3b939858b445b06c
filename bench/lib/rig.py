"""What the measurements stand on: the build, a private daemon, and the kernel's counters of it."""

import json
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Build:
    """The binaries of one preset."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.profd = os.path.join(self.folder, "bin", "profd")
        self.profctl = os.path.join(self.folder, "bin", "profctl")
        self.alloc_counter = os.path.join(self.folder, "bench", "liballoc_counter.so")
        self.proc_floor = os.path.join(self.folder, "bench", "proc_floor")
        self.ring_floor = os.path.join(self.folder, "bench", "ring_floor")
        self.write_floor = os.path.join(self.folder, "bench", "write_floor")
        self.micro = os.path.join(self.folder, "bench", "profd_bench")
        self.ingest = os.path.join(self.folder, "bench", "ingest")
        self.make_dump = os.path.join(self.folder, "bench", "make_dump")
        self.make_operators = os.path.join(self.folder, "bench", "make_operators")
        self.libprofd = os.path.join(self.folder, "lib", "libprofd.so.0")
        self.marks = os.path.join(self.folder, "bench", "profd_bench_marks")

    def missing(self):
        return [path for path in (self.profd, self.profctl, self.alloc_counter, self.proc_floor, self.ring_floor, self.write_floor)
                if not os.path.exists(path)]

    def cache(self, key):
        try:
            with open(os.path.join(self.folder, "CMakeCache.txt"), encoding="utf-8") as file:
                found = re.search(rf"^{key}:\w+=(.*)$", file.read(), re.MULTILINE)
        except OSError:
            return ""
        return found.group(1) if found else ""


def machine_facts(build):
    cpu, implementer = "", ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                cpu = value.strip()
            elif key.strip() == "CPU part":
                implementer = value.strip()
    compiler = build.cache("CMAKE_CXX_COMPILER")
    version = subprocess.run([compiler or "c++", "--version"], capture_output=True, text=True,
                             check=False).stdout.split("\n")[0]
    return {"cpu": cpu or f"CPU part {implementer}", "cores": os.cpu_count(),
            "machine": platform.machine(), "kernel": platform.release(),
            "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
            "compiler": version, "build_type": build.cache("CMAKE_BUILD_TYPE"),
            "load_before": os.getloadavg()[0],
            "profd": subprocess.run([build.profd, "--version"], capture_output=True, text=True,
                                    check=False).stdout.strip()}


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class Snapshot:
    """CPU, switches and counters of one process, thread by thread, at one instant."""

    def __init__(self, daemon):
        pid = daemon.pid if hasattr(daemon, "pid") else daemon
        self.time = time.monotonic()
        self.threads = {}
        for tid in os.listdir(f"/proc/{pid}/task"):
            base = f"/proc/{pid}/task/{tid}/"
            schedstat = read(base + "schedstat").split()
            if len(schedstat) >= 1 and int(schedstat[0]) > 0:
                cpu = int(schedstat[0]) / 1e9
            else:  # a kernel without schedstats: 10 ms ticks
                fields = read(base + "stat").rpartition(")")[2].split()
                cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0
            switches = sum(int(n) for n in re.findall(r"ctxt_switches:\s*(\d+)",
                                                      read(base + "status")))
            self.threads[int(tid)] = (read(base + "comm").strip(), cpu, switches)
        self.sim = getattr(daemon, "sim_account", dict)()
        self.allocations = getattr(daemon, "allocations", dict)()


def share(before, after):
    """Per thread name: percent of a core (own, simulator's), switches/s, allocations/s."""
    seconds = after.time - before.time
    rows = {}
    for tid, (name, cpu, switches) in after.threads.items():
        _, cpu0, switches0 = before.threads.get(tid, (name, 0, 0))
        busy, calls, sim_allocations = (
            a - b for a, b in zip(after.sim.get(tid, (0, 0, 0)), before.sim.get(tid, (0, 0, 0))))
        allocations = (after.allocations.get(tid, 0) - before.allocations.get(tid, 0)
                       - sim_allocations)
        row = rows.setdefault(re.sub(r"\d+$", "N", name), {
            "cpu_percent": 0, "simulator_percent": 0, "switches_per_s": 0, "sim_calls_per_s": 0,
            "allocations_per_s": 0, "threads": 0})
        row["threads"] += 1
        row["cpu_percent"] += (cpu - cpu0 - busy / 1e9) / seconds * 100
        row["simulator_percent"] += busy / 1e9 / seconds * 100
        row["switches_per_s"] += (switches - switches0) / seconds
        row["sim_calls_per_s"] += calls / seconds
        row["allocations_per_s"] += allocations / seconds
    total = {key: sum(row[key] for row in rows.values())
             for key in next(iter(rows.values()))}
    return {"seconds": seconds, "threads": rows, "total": total}


class Daemon:
    """A profd on the simulated node, in a folder of its own."""

    def __init__(self, build, config="", count_allocations=False, simulate=True,
                 scenario="", wait=True):
        self.build = build
        self.dir = tempfile.mkdtemp(prefix="profd-bench-")
        self.account = os.path.join(self.dir, "sim.account")
        self.alloc_account = os.path.join(self.dir, "alloc.account")
        self.socket = os.path.join(self.dir, "s")
        self.dumps = os.path.join(self.dir, "dumps")
        os.mkdir(self.dumps)
        conf = os.path.join(self.dir, "profd.toml")
        with open(conf, "w", encoding="utf-8") as file:
            file.write("[daemon]\nsocket_group = \"\"\nadmin_group = \"\"\nlog_level = \"warning\"\n"
                       "[driver]\nrequire_safe_library = false\n" + config)
        env = dict(os.environ, PROFD_SIM_ACCOUNT=self.account)
        if count_allocations:
            env.update(LD_PRELOAD=build.alloc_counter, PROFD_ALLOC_ACCOUNT=self.alloc_account)
        command = [build.profd, "--config", conf, "--socket", self.socket, "--dump-root",
                   self.dumps, "--metrics-listen", "127.0.0.1:0"]
        self.log = open(os.path.join(self.dir, "log"), "wb")
        if simulate:
            command.append("--simulate")
        if scenario:  # the text of a scenario: sim/README.md
            command.append(os.path.join(self.dir, "scenario.toml"))
            with open(command[-1], "w", encoding="utf-8") as file:
                file.write(scenario)
        self.process = subprocess.Popen(command, env=env, stderr=self.log, stdout=self.log)
        self.pid = self.process.pid
        self.metrics = self.wait_ready() if wait else None

    def wait_ready(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if os.path.exists(self.socket):
                done = self.ctl("status", "--json", check=False)
                if done.returncode == 0:
                    self.node = json.loads(done.stdout)
                    text = self.node.get("metrics_address", "")
                    if not text:
                        return None
                    host, _, port = text.rpartition(":")
                    return host, int(port)
            time.sleep(0.05)
        raise RuntimeError("profd did not start: " + read(os.path.join(self.dir, "log")))

    def ctl(self, *arguments, check=True):
        done = subprocess.run([self.build.profctl, "--socket", self.socket, *arguments],
                              capture_output=True, text=True, check=False)
        if check and done.returncode not in (0, 5):
            raise RuntimeError(f"profctl {' '.join(arguments)}: {done.stderr or done.stdout}")
        return done

    def ask(self, *arguments):
        return json.loads(self.ctl(*arguments, "--json").stdout)

    def start_session(self, *options):
        return self.ask("start", *options)["session_id"]

    def stop_session(self, session):
        self.ctl("stop", session)

    def dump_of(self, session):
        return self.ask("show", session)["dump_path"]

    def sim_account(self):
        """Thread id: (CPU ns, calls, allocations) of the simulator; sim/account.h."""
        return {tid: (busy, calls, allocations) for tid, busy, calls, allocations
                in _slots(self.account, 0x41534650, "<IIQQQ", skip=1)}

    def allocations(self):
        return {tid: count for tid, count, _ in _slots(self.alloc_account, 0x41434650, "<IIQQ",
                                                       skip=1)}

    def rss_mib(self):
        text = read(f"/proc/{self.pid}/status")
        return {key: int(re.search(rf"{field}:\s*(\d+)", text).group(1)) / 1024
                for key, field in (("rss_mib", "VmRSS"), ("peak_mib", "VmHWM"),
                                   ("anonymous_mib", "RssAnon"))}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)


def _slots(path, magic, layout, skip):
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return
    if len(data) < 16 or struct.unpack_from("<I", data)[0] != magic:
        return
    used = struct.unpack_from("<I", data, 4)[0]
    size = struct.calcsize(layout)
    for index in range(min(used, (len(data) - 16) // size)):
        fields = struct.unpack_from(layout, data, 16 + index * size)
        yield (fields[0], *fields[1 + skip:])


def manifest_of(dump):
    with open(os.path.join(dump, "profd_manifest.json"), encoding="utf-8") as file:
        return json.load(file)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def scrape(address):
    """One GET /metrics on a connection of its own (the server keeps none): (seconds, body)."""
    begin = time.perf_counter()
    with socket.create_connection(address, timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
        received = []
        while piece := connection.recv(1 << 18):
            received.append(piece)
    seconds = time.perf_counter() - begin
    head, _, body = b"".join(received).partition(b"\r\n\r\n")
    if not re.match(rb"HTTP/1\.[01] 200", head):
        raise RuntimeError("GET /metrics: " + head.split(b"\r\n")[0].decode())
    return seconds, body


def times_of(address, count):
    """Seconds of so many scrapes, and what the last answered."""
    seconds, body = [], b""
    for _ in range(count):
        took, body = scrape(address)
        seconds.append(took)
    return seconds, body
