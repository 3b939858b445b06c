"""The measurements. Each takes (build, args) and answers a dictionary for the table and the JSON."""

import glob
import json
import os
import re
import statistics
import subprocess
import threading
import time

import parts_activity
import parts_cluster
import parts_delays
import parts_export
import parts_operators
import parts_peers
import parts_precision
import parts_scale
import peers
import rig
import split

# Every option at its maximum (docs: shared with the vendor's option ranges).
DEVICE = ["--sys-hardware-mem-freq", "100", "--sys-io-sampling-freq", "100",
          "--sys-interconnection-freq", "50", "--dvpp-freq", "100", "--llc-profiling", "read"]
HOST = ["--host-sys-usage", "cpu,mem", "--host-sys-usage-freq", "50"]
# What no option names, at its own maximum.
EVERYTHING_ELSE = [word for order in ("aicore_freq=100", "npu_state=10", "host_net=10",
                                      "host_disk=10", "host_pressure=10")
                   for word in ("--collector", order)]
SCRAPE_HZ = 0.2  # Prometheus' part: a GET every 5 s


def steady(daemon, seconds, options=(), warm_up=3.0, look_into=False):
    """The shares while a session with `options` runs (none: no session), after a warm-up. `look_into`: what of the
    pump is decoding too, from a look of its own afterwards, so that it costs the figures nothing."""
    with parts_peers.Puller(daemon.metrics, SCRAPE_HZ):
        session = daemon.start_session(*options) if options else None
        time.sleep(warm_up)
        before = rig.Snapshot(daemon)
        records = session and progress(daemon, session)
        time.sleep(seconds)
        after = rig.Snapshot(daemon)
        result = rig.share(before, after)
        result.update(daemon.rss_mib())
        if session:
            more = progress(daemon, session)
            result["records_per_s"] = (more[0] - records[0]) / result["seconds"]
            result["dump_bytes_per_s"] = (more[1] - records[1]) / result["seconds"]
            result["dropped_records"] = more[2]
            result["ns_per_record"] = (result["total"]["cpu_percent"] / 100 * 1e9
                                       / max(1, result["records_per_s"]))
            if look_into:
                result["pump"] = split.pump(daemon.pid, max(3, min(6, seconds / 3)))
            daemon.stop_session(session)
    return result


def progress(daemon, session):
    """(records written, bytes written, records dropped) so far."""
    outcomes = daemon.ask("show", session)["outcomes"]
    return tuple(sum(outcome[key] for outcome in outcomes) for key in ("records", "bytes", "dropped_records"))


def idle(build, args):
    with rig.Daemon(build) as daemon:
        return steady(daemon, args.seconds)


def device(build, args):
    """The node's devices at their maximum, the host's collectors only as always on."""
    with rig.Daemon(build) as daemon:
        result = steady(daemon, args.seconds, DEVICE + ["--collector", "aicore_freq=100"], look_into=True)
        channels = [path for path in glob.glob(f"{daemon.dumps}/*/device_*/data/*.slice_0") if os.path.getsize(path) > 0]
        devices = len({os.path.dirname(path) for path in channels})
        result["files"] = len(channels)
        for name, files in (("write_floor_percent", len(channels)), ("write_floor_per_device_percent", devices)):
            cpu_ns, rounds = (int(word) for word in subprocess.run(
                [build.write_floor, daemon.dumps, str(files), str(int(result["dump_bytes_per_s"])), str(int(args.seconds))],
                capture_output=True, text=True, check=True).stdout.split())
            result[name] = cpu_ns / 1e9 / rounds * 100
    return result


def everything(build, args):
    with rig.Daemon(build) as daemon:
        return steady(daemon, args.seconds, DEVICE + HOST + EVERYTHING_ELSE, look_into=True)


def alloc(build, args):
    """Allocations per second, the daemon's own, by thread. A run of its own: counting costs."""
    with rig.Daemon(build, count_allocations=True) as daemon:
        quiet = steady(daemon, max(5, args.seconds / 2))
        busy = steady(daemon, max(5, args.seconds / 2), DEVICE + HOST + EVERYTHING_ELSE,
                      warm_up=15.0)  # the slowest DCMI values come every 10 s
    per_record = busy["total"]["allocations_per_s"] / max(1, busy["records_per_s"])
    return {"idle": quiet, "session": busy, "allocations_per_record": per_record}


class BytesServer:
    """Floor of a scrape: the same bytes over the same kind of connection, nothing computed."""

    def __init__(self, body):
        import socket
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.answer = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: "
                       + str(len(body)).encode() + b"\r\n\r\n" + body)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            peer, _ = self.listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(self.answer)


def scrape(build, args):
    with rig.Daemon(build) as daemon:
        session = daemon.start_session(*DEVICE, *HOST, *EVERYTHING_ELSE)
        time.sleep(3)
        before = rig.Snapshot(daemon)
        own, body = rig.times_of(daemon.metrics, args.scrapes)
        after = rig.Snapshot(daemon)
        daemon.stop_session(session)
    floor, _ = rig.times_of(BytesServer(body).address, args.scrapes)
    series = peers.series_of(body)
    web = [row for name, row in rig.share(before, after)["threads"].items()
           if name == "profd-web"]
    cpu = sum(row["cpu_percent"] for row in web) / 100 * (after.time - before.time) / args.scrapes
    return {"scrapes": args.scrapes, "series": series, "bytes": len(body),
            "p50_ms": statistics.median(own) * 1e3, "p99_ms": rig.percentile(own, 0.99) * 1e3,
            "cpu_ms_per_scrape": cpu * 1e3, "ns_per_series": statistics.median(own) / series * 1e9,
            "floor_p50_ms": statistics.median(floor) * 1e3,
            "p50_ratio_to_floor": statistics.median(own) / statistics.median(floor)}


def first_record(folder, known, deadline):
    """When some data file of a dump in `folder` that is not `known` first had bytes in it."""
    while time.monotonic() < deadline:
        for dump in set(os.listdir(folder)) - known:
            for top, _, files in os.walk(os.path.join(folder, dump)):
                if not top.endswith("/data"):
                    continue
                for name in files:
                    if not name.endswith(".done") and os.stat(os.path.join(top, name)).st_size > 0:
                        return time.monotonic()
        time.sleep(0.001)
    return None


def latency(build, args):
    """Start order to the first record in a file, stop order to its answer; 20 sessions."""
    starts, stops, answers, calls = [], [], [], []
    # The least flush interval there is: else it alone would be measured.
    with rig.Daemon(build, config="[dump]\nflush_interval_ms = 50\n") as daemon:
        for _ in range(args.sessions):
            begin = time.monotonic()
            daemon.ctl("status", "--json")
            calls.append(time.monotonic() - begin)
            seen, known = [], set(os.listdir(daemon.dumps))
            watcher = threading.Thread(target=lambda: seen.append(
                first_record(daemon.dumps, known, time.monotonic() + 10)))
            watcher.start()
            begin = time.monotonic()
            session = daemon.start_session(*DEVICE)
            answers.append(time.monotonic() - begin)
            watcher.join()
            if seen[0] is not None:
                starts.append(seen[0] - begin)
            begin = time.monotonic()
            daemon.stop_session(session)
            stops.append(time.monotonic() - begin)
    floor = statistics.median(calls)
    result = {"sessions": args.sessions, "call_floor_p50_ms": floor * 1e3}
    for name, values in (("start_answer", answers), ("first_record", starts), ("stop", stops)):
        result[f"{name}_p50_ms"] = statistics.median(values) * 1e3
        result[f"{name}_max_ms"] = max(values) * 1e3
        result[f"{name}_ratio_to_call"] = statistics.median(values) / floor
    return result


def host(build, args, processes=300, hz=50):
    """host_cpu and host_mem of 300 sleeping processes at 50 Hz, above an idle daemon and against
    the same files read by a loop that looks at nothing."""
    with parts_scale.Sleepers(processes), rig.Daemon(build, simulate=False) as daemon:
        quiet = steady(daemon, args.seconds)
        # No dump: what reading and decoding cost; with one: all of it.
        plain = steady(daemon, args.seconds, HOST + ["--no-dump"])
        written = steady(daemon, args.seconds, HOST)
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
        floor_run = subprocess.run([build.proc_floor, str(hz), str(int(args.seconds)), *pids],
                                   capture_output=True, text=True, check=True)
    cpu_ns, rounds, files = (int(word) for word in floor_run.stdout.split())
    floor = cpu_ns / 1e9 / (rounds / hz) * 100
    base = quiet["total"]["cpu_percent"]

    def above(run):
        return run["total"]["cpu_percent"] - base

    result = {"processes": len(pids), "sleepers": processes, "hz": hz, "floor_files": files,
              "floor_percent": floor, "idle": quiet, "no_dump": plain, "dump": written,
              "no_dump_percent": above(plain), "dump_percent": above(written),
              "no_dump_ratio": above(plain) / floor, "dump_ratio": above(written) / floor,
              "no_dump_above_floor_percent": above(plain) - floor,
              "dump_above_floor_percent": above(written) - floor}
    result["peers"], result["notes"] = peers.shares_of(args.peer, args.seconds, above(plain))
    return result


def micro(build, args):
    """profd_bench: every figure beside its floor of the same run. A benchmark NAME/... has its floor
    in its counter "floor" (ns per item, measured in the same process)."""
    command = [build.micro, "--benchmark_format=json"]
    command.append("--benchmark_min_time=" + ("0.01" if args.quick else "0.2"))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = {}
    for run in json.loads(done.stdout)["benchmarks"]:
        if run.get("error_occurred"):
            continue  # a channel that the simulated chip lacks
        items = run.get("items_per_second")
        ns = 1e9 / items if items else run["cpu_time"]
        floor = run.get("floor_ns", 0)
        rows[re.sub(r"/real_time$", "", run["name"])] = {
            "ns_per_item": ns, "floor_ns": floor, "floor": run.get("label", ""),
            "ratio": ns / floor if floor else None, "cpu_ns_per_call": run["cpu_time"],
            **{key: run[key] for key in ("p999_ns", "max_ns") if key in run}}
    return rows


def marks(build, args):
    """profd_bench_marks: percentiles of single calls of profd_mark in ns, the timer's own cost taken
    off; the floor is of the same run."""
    command = [build.marks, "5000" if args.quick else "100000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


PARTS = {"micro": micro, "marks": marks, "idle": idle, "device": device, "all": everything, "alloc": alloc,
         "scrape": scrape, "latency": latency, "host": host, "export": parts_export.export,
         "operators": parts_operators.operators, "cluster": parts_cluster.cluster, "ingest": parts_export.ingest, "peers": parts_peers.peers_part,
         "precision": parts_precision.precision, "delays": parts_delays.delays,
         "fanout": parts_delays.fanout, "scale": parts_scale.scale, "activity": parts_activity.activity}
