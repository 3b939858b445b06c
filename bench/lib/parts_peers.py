"""profd on the host's metrics alone beside node_exporter and collectd doing the same; scrapes of as many
series."""

import re
import statistics
import threading
import time

import peers
import rig
import split

FAST_HZ = 50
# Of the answers, those about the host and not about the program that gives them.
HOST_SERIES = rb"^(?:node_(?!scrape_|textfile_|exporter_)|collectd_|atlas_host_)\w+[{ ]"


class Puller:
    """GETs at a rate; at 50 Hz it is how node_exporter samples at 50 Hz."""

    def __init__(self, address, hz):
        self.address, self.period, self.count, self.series, self.host = address, 1 / hz, 0, 0, 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        due = time.monotonic()
        while not self.stop.wait(max(0, due - time.monotonic())):
            _, body = rig.scrape(self.address)
            self.count += 1
            if not self.series:
                self.series, self.host = peers.series_of(body), len(re.findall(HOST_SERIES, body, re.MULTILINE))
            due = max(due + self.period, time.monotonic() - 1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def readings(address):
    """Samples the host's collectors have taken so far."""
    body = rig.scrape(address)[1].decode()
    return sum(float(value) for value in re.findall(
        r'^profd_collector_records_total\{collector="host_\w+"\} (\S+)', body, re.MULTILINE))


def cost(pid, address, pull_hz, seconds, samples):
    """`samples`: None = series of an answer times answers; else a function that answers how many so far."""
    with Puller(address, pull_hz) as puller:
        time.sleep(2)
        pulled, taken = puller.count, samples and samples()
        threads, begin, before = rig.Snapshot(pid), time.monotonic(), peers.cpu_seconds(pid)
        time.sleep(seconds)
        run = rig.share(threads, rig.Snapshot(pid))
        cpu, elapsed = peers.cpu_seconds(pid) - before, time.monotonic() - begin
        count = (samples() - taken) if samples else (puller.count - pulled) * puller.host
    return {"cpu_percent": cpu / elapsed * 100, "samples_per_s": count / elapsed,
            "ns_per_sample": cpu / max(count, 1) * 1e9, "series": puller.series,
            "host_series": puller.host, "rss_mib": peers.rss_mib(pid), "by_part": split.by_part(run)}


def profd_rows(build, seconds, rows):
    with rig.Daemon(build, simulate=False) as daemon:
        def taken():
            return readings(daemon.metrics)

        rows["profd", 1] = cost(daemon.pid, daemon.metrics, 1, seconds, taken)
        session = daemon.start_session("--collector", f"host_cpu={FAST_HZ}", "--collector",
                                       f"host_mem={FAST_HZ}", "--collector", "host_pressure=10",
                                       "--collector", "host_net=10", "--collector", "host_disk=10",
                                       "--no-dump")
        rows["profd", FAST_HZ] = cost(daemon.pid, daemon.metrics, 0.2, seconds, taken)
        daemon.stop_session(session)


def peer_rows(seconds, rows, notes):
    for hz in (1, FAST_HZ):
        peer = peers.node_exporter()
        if peer is None:
            notes.append("node_exporter is not installed: scripts/install-deps --for bench")
            break
        with peer:
            rows["node_exporter", hz] = cost(peer.pid, peer.address, hz, seconds, None)
    for hz in (1, FAST_HZ):
        peer = peers.collectd(hz)
        if peer is None:
            notes.append("collectd is not installed: scripts/install-deps --for bench")
            break
        with peer:
            row = cost(peer.pid, peer.address, 1 if hz == 1 else 0.2, seconds, None)
            # It samples by itself, whether it is scraped or not: every series once in its interval.
            row["samples_per_s"] = row["host_series"] * hz
            row["ns_per_sample"] = row["cpu_percent"] / 100 / max(row["samples_per_s"], 1) * 1e9
            rows["collectd", hz] = row


def timings(address, count):
    times, body = rig.times_of(address, count)
    series, p50 = peers.series_of(body), statistics.median(times)
    return {"series": series, "p50_ms": p50 * 1e3, "p99_ms": rig.percentile(times, 0.99) * 1e3,
            "us_per_series": p50 * 1e6 / max(1, series)}


def scrapes(build, count):
    rows = {}
    with rig.Daemon(build, simulate=False) as daemon:
        time.sleep(2)
        rows["profd, host alone"] = timings(daemon.metrics, count)
    with rig.Daemon(build) as daemon:
        time.sleep(3)
        rows["profd, 8 NPUs"] = timings(daemon.metrics, count)
    wanted = {"host alone": rows["profd, host alone"]["series"], "8 NPUs": rows["profd, 8 NPUs"]["series"]}
    for name, series in wanted.items():
        peer = peers.node_exporter()
        if peer is None:
            return rows
        with peer:
            bare = timings(peer.address, count)
        rows["node_exporter, bare"] = bare
        with peers.node_exporter(pad=peers.pad_of(max(0, series - bare["series"]))) as padded:
            rows[f"node_exporter, as many as {name}"] = timings(padded.address, count)
    return rows


def peers_part(build, args):
    rows, notes = {}, []
    profd_rows(build, args.seconds, rows)
    peer_rows(args.seconds, rows, notes)
    result = {"rows": {f"{name}, {hz} Hz": row for (name, hz), row in rows.items()},
              "scrapes": scrapes(build, args.scrapes)}
    result["named"], more = peers.shares_of(args.peer, args.seconds, rows["profd", 1]["cpu_percent"])
    result["notes"] = notes + more
    return result


def print_peers(part):
    print(f"  {'host metrics alone':<24}{'CPU %':>9}{'samples/s':>11}{'ns/sample':>11}{'series':>8}"
          f"{'of host':>9}{'RSS MiB':>9}")
    for name, row in part["rows"].items():
        print(f"  {name:<24}{row['cpu_percent']:>9.3f}{row['samples_per_s']:>11.0f}"
              f"{row['ns_per_sample']:>11.0f}{row['series']:>8}{row['host_series']:>9}"
              f"{row['rss_mib']:>9.1f}")
        if name.startswith("profd"):
            print("    by part: " + ", ".join(f"{part} {percent:.3f}" for part, percent
                                              in row["by_part"].items() if percent >= 0.0005))
    print(f"  {'scrape':<36}{'series':>8}{'p50 ms':>9}{'p99 ms':>9}{'us/series':>11}")
    for name, row in part["scrapes"].items():
        print(f"  {name:<36}{row['series']:>8}{row['p50_ms']:>9.2f}{row['p99_ms']:>9.2f}"
              f"{row['us_per_series']:>11.2f}")
    for name, row in part["named"].items():
        print(f"  peer {name}: {row['percent']:.3f} % of a core, {row['rss_mib']:.1f} MiB, profd/peer "
              f"{row['profd_ratio']:.2f}")
    for note in part["notes"]:
        print(f"  note: {note}")


def goals_peers(part, goal):
    rows = part["rows"]
    for name in ("node_exporter", "collectd"):
        for hz in (1, FAST_HZ):
            if f"{name}, {hz} Hz" in rows:
                goal(f"CPU per sample at {hz} Hz / {name}'s", rows[f"profd, {hz} Hz"]["ns_per_sample"]
                     / max(rows[f"{name}, {hz} Hz"]["ns_per_sample"], 1e-9), 1.0, "x")
    shown = part["scrapes"]
    for name in ("host alone", "8 NPUs"):
        other = shown.get(f"node_exporter, as many as {name}")
        if other:
            goal(f"scrape p50 / node_exporter's, series of {name}",
                 shown[f"profd, {name}"]["p50_ms"] / other["p50_ms"], 1.0, "x")
    for name, row in part["named"].items():
        if row["percent"] > 0.01:  # else it did nothing
            goal(f"CPU of profd, host alone at 1 Hz / {name}'s", row["profd_ratio"], 1.0, "x")
