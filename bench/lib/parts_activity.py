"""What it takes until records come from inside a process that trains: a session's request, written to the process as the
daemon writes it, to the collector's report and to the first record in the activity ring."""

import array
import contextlib
import json
import mmap
import os
import signal
import socket
import statistics
import struct
import subprocess
import tempfile
import time

import rig

PATIENCE = 60.0
HEAD = 64  # of the ring (proto/attach/activity_ring.h): bytes published
JOB = """
name = "bench"
steps = 1000000
[[layer]]
name = "block"
count = 8
[[layer.operator]]
type = "MatMulV2"
us = 100
backward_us = 200
shapes = [[64, 2048], [2048, 1000], [64, 1000]]
"""


@contextlib.contextmanager
def training(build, folder, text, socket_path, *ranks):
    """sim_train with this job until the block ends; it attaches to that socket."""
    job = os.path.join(folder, "job.toml")
    with open(job, "w", encoding="utf-8") as file:
        file.write(text)
    libraries = ":".join(os.path.join(build.folder, part) for part in ("sim", "lib"))
    process = subprocess.Popen([os.path.join(build.folder, "sim", "sim_train"), job, os.path.join(folder, "out"), *ranks],
                               env={**os.environ, "LD_LIBRARY_PATH": libraries, "PROFD_ATTACH_SOCKET": socket_path},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class Connection:
    """One process on an attach socket; the order and its answers."""

    def __init__(self, listener):
        self.socket, _ = listener.accept()
        self.socket.settimeout(PATIENCE)
        self.ring = None
        self.receive()  # hello, with the ring of marks
        self.send({"type": "welcome", "version": 1, "daemon": "bench", "attach_id": 1, "takes_collector": True})

    def close(self):
        self.socket.close()

    def send(self, packet):
        self.socket.send(json.dumps(packet).encode())

    def receive(self):
        data, ancillary, _, _ = self.socket.recvmsg(1 << 18, socket.CMSG_SPACE(4))
        if not data:
            raise RuntimeError("the training process is gone")
        packet = json.loads(data)
        for _, _, raw in ancillary:
            fd = array.array("i", raw)[0]
            if packet["type"] == "collector":
                self.ring = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
            os.close(fd)
        return packet

    def state(self, state):
        while True:
            packet = self.receive()
            if packet["type"] == "collector" and packet["state"] == state:
                return time.monotonic()

    def head(self):
        return 0 if self.ring is None else struct.unpack_from("<Q", self.ring, HEAD)[0]


def one_start(connection, name, flush_ms, provider="auto"):
    """Seconds from the order to the report and to bytes in the ring (None where nothing is collected)."""
    before = connection.head()
    begin = time.monotonic()
    connection.send({"type": "session", "session_id": name, "state": "running",
                     "collect": {"kinds": ["kernel", "communication"], "flush_ms": flush_ms, "provider": provider}})
    answered = connection.state("on" if provider == "auto" else "unsupported") - begin
    first = None
    while provider == "auto" and first is None:
        if connection.head() > before:
            first = time.monotonic() - begin
        elif time.monotonic() > begin + PATIENCE:
            raise RuntimeError("no record was received")
        else:
            time.sleep(0.0005)
    connection.send({"type": "session", "session_id": name, "state": "ended"})
    if provider == "auto":
        connection.state("off")
    return answered, first


def activity(build, args):
    return {**starts(build, args), "node": node_rate(build, args), "kernels_alone": node_rate(build, args, "training_trace", "on")}


NODE_JOB = """
name = "rate"
steps = 1000000000
truth = false
launch_us = 0
data_parallel = {ranks}
[[layer]]
name = "block"
count = {layers}
[[layer.operator]]
type = "Add"
core = "aivec"
us = {us}
backward_us = {us}
shapes = [[1024], [1024], [1024]]
"""
NODE_RANKS, NODE_KERNELS = 8, 320_000
# Of a record in the ring and in the dump: half of them kernels, half their launches; or kernels alone.
RECORD_BYTES = {"task_time": (36, 44), "training_trace": (40, 48)}
GAP_US = 0.5  # between two kernels of the simulator's device (sim/ascendcl/device.cc)


def node_rate(build, args, option="task_time", value="l0"):
    """The daemon beside eight ranks that together run 320,000 kernels a second, or as many as the machine manages: each
    with its launch, or, with training_trace, without."""
    seconds = 20 if args.quick else 60
    us = 1e6 * NODE_RANKS / NODE_KERNELS - GAP_US
    with rig.Daemon(build) as daemon, tempfile.TemporaryDirectory() as folder:
        text = NODE_JOB.format(ranks=NODE_RANKS, layers=1000, us=us)
        with training(build, folder, text, daemon.ask("status")["attach_socket"]):
            wait_attached(daemon, NODE_RANKS)
            session = daemon.start_session("--job", "rate", f"--{option.replace('_', '-')}", value, "--provider", "mspti", "--storage-limit", "2048MB")
            time.sleep(5)
            first, before, memory = records(daemon, session, option), rig.Snapshot(daemon), []
            for _ in range(seconds):
                time.sleep(1)
                memory.append(daemon.rss_mib()["rss_mib"])
            after, last = rig.Snapshot(daemon), records(daemon, session, option)
            per_s = (last[0] - first[0]) / rig.share(before, after)["seconds"]
            floor = ring_floor(build, daemon, per_s, RECORD_BYTES[option], seconds // 3)
            daemon.stop_session(session)
            lost = records(daemon, session, option)[1]
            share = share_of_kernels(daemon, session)
    cost = rig.share(before, after)
    third = seconds // 3
    return {"records_per_s": per_s, "kernels_per_s": per_s * share, "lost_records": lost,
            "daemon_percent": cost["total"]["cpu_percent"], "floor_percent": floor,
            "daemon_by_floor": cost["total"]["cpu_percent"] / floor, "seconds": cost["seconds"],
            "rss_first_third_mib": max(memory[:third]), "rss_last_third_mib": max(memory[-third:]),
            "threads": {name: row["cpu_percent"] for name, row in cost["threads"].items() if row["cpu_percent"] > 0.05}}


def ring_floor(build, daemon, records_per_s, record_bytes, seconds):
    """CPU of ring_floor for the same bytes per second, in % of a core, while the ranks and the daemon run."""
    done = subprocess.run([build.ring_floor, daemon.dumps, *(str(int(records_per_s * size)) for size in record_bytes), str(seconds)],
                          check=True, capture_output=True, text=True)
    return int(done.stdout) / 1e7 / seconds


def share_of_kernels(daemon, session):
    """Of all records of the session: the others are launches."""
    channels = [c for c in rig.manifest_of(daemon.dump_of(session))["channels"] if c["collector"].startswith("activity_")]
    counts = {c["collector"]: c["records"] + c["aged"]["records"] for c in channels}
    return counts["activity_kernel"] / sum(counts.values())


def records(daemon, session, option):
    """(recorded, lost) so far."""
    rows = [outcome for outcome in daemon.ask("show", session)["outcomes"] if outcome["collector"] == option]
    return sum(row["records"] for row in rows), sum(row["dropped_records"] for row in rows)


def wait_attached(daemon, ranks):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        jobs = daemon.ask("jobs")["jobs"]
        if sum(bool(process.get("attached")) for job in jobs for process in job["processes"]) >= ranks:
            return
        time.sleep(0.1)
    raise RuntimeError("the ranks did not attach")


def starts(build, args):
    flush_ms = 200  # as with a live viewer
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        path = os.path.join(folder, "attach.sock")
        listener.bind(path)
        listener.listen()
        listener.settimeout(PATIENCE)
        firsts, agains, refusals = [], [], []
        for _ in range(3 if args.quick else 10):
            with training(build, folder, JOB, path, "0"):
                connection = Connection(listener)
                time.sleep(0.5)  # steps are under way
                refusals.append(one_start(connection, "floor", flush_ms, "aclprof")[0])
                firsts.append(one_start(connection, "first", flush_ms))
                agains.append(one_start(connection, "again", flush_ms))
                connection.close()
    result = {"processes": len(firsts), "flush_ms": flush_ms,
              "refusal_floor_p50_ms": statistics.median(refusals) * 1e3}
    for name, rows in (("first", firsts), ("again", agains)):
        for what, column in (("report", 0), ("record", 1)):
            values = [row[column] for row in rows]
            result[f"{name}_{what}_p50_ms"] = statistics.median(values) * 1e3
            result[f"{name}_{what}_max_ms"] = max(values) * 1e3
    result["first_record_beyond_flush_ms"] = result["first_record_p50_ms"] - flush_ms
    return result


def print_activity(part):
    of_nodes = [(f"{name}_{key}", value) for name in ("node", "kernels_alone") for key, value in part[name].items()]
    for key, value in [*part.items(), *of_nodes]:
        if isinstance(value, dict):
            continue
        print(f"  {key:<32}{value:>12.3f}" if isinstance(value, float) else f"  {key:<32}{value:>12}")


def goals_activity(part, goal):
    goal("order in a running process to its first record, worst", part["first_record_max_ms"] / 1e3, 1.0, "s")
    for name, what in (("kernels_alone", "kernels/s"), ("node", "kernels/s with their launches")):
        node = part[name]
        per_kernel = node["daemon_percent"] / max(1, node["kernels_per_s"])
        goal(f"the daemon at 320,000 {what} of a node, by what it took at the rate that came", per_kernel * NODE_KERNELS, 3.0, "% of a core")
        goal(f"records lost at 320,000 {what}", node["lost_records"], 0, "")


def goals_micro(rows, goal):
    """Of the micro benchmarks, what the process and the daemon may spend on activity."""
    if "ActivityWrite" not in rows:
        return
    goal("a kernel record into the activity ring, beyond MSPTI", rows["ActivityWrite"]["ns_per_item"], 60, "ns")
    goal("the daemon's part of 320,000 kernel records/s, taken from rings",
         rows["ActivityRead"]["ns_per_item"] * 320_000 / 1e9 * 100, 3.0, "% of a core")
    goal("a request callback of MSPTI, p99.9, 4 threads", rows["ActivityLend/threads:4"]["p999_ns"] / 1e3, 10, "us")
