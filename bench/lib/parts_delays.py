"""How long a user waits: until a dump is complete and verified, until a mark is in it, until the past is written, until
64 nodes have begun."""

import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import rig

RECORDED_S = 60


def summary(values):
    ordered = sorted(values)
    return {"p50_ms": statistics.median(ordered) * 1e3, "max_ms": ordered[-1] * 1e3, "count": len(ordered)}


def timed(call):
    begin = time.monotonic()
    answer = call()
    return time.monotonic() - begin, answer


def verified(build, dump):
    done = subprocess.run([build.profctl, "verify", "--quiet", dump], capture_output=True, text=True,
                          check=False)
    return done.returncode == 0


def stops(build, daemon, count, options, seconds=1.0):
    """Stop request to a dump that verify finds complete; the second: what verify itself takes of it."""
    complete, checks, incomplete = [], [], 0
    for _ in range(count):
        session = daemon.start_session(*options)
        time.sleep(seconds)
        begin = time.monotonic()
        daemon.stop_session(session)
        dump = daemon.dump_of(session)
        took, ok = timed(lambda path=dump: verified(build, path))
        complete.append(time.monotonic() - begin)
        checks.append(took)
        incomplete += not ok
    return summary(complete), summary(checks), incomplete


def file_grows_by(path, text, deadline):
    """When `text` is in the file."""
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if text in file.read():
                return time.monotonic()
        time.sleep(0.0005)
    return None


def marks(build, daemon, count):
    """profd_mark in a process of a job to its line in the dump's marks.tsv. This process is the job's."""
    os.environ.update(PROFD_LIBRARY=build.libprofd,
                      PROFD_ATTACH_SOCKET=os.path.join(daemon.dir, "attach.sock"))
    sys.path.insert(0, os.path.join(rig.ROOT, "client", "python"))
    import profd
    profd.init(job_id="bench", rank=0, world_size=1, devices=[0], wait=10)
    times, lost = [], 0
    with profd.Profile({"msproftx": "on", "sys_interconnection_freq": 50}, strict=True) as profile:
        path = os.path.join(profile.summary["dump_path"], "host", "profd", "marks.tsv")
        deadline = time.monotonic() + 10
        while not profd.active() and time.monotonic() < deadline:
            time.sleep(0.01)
        for i in range(count):
            time.sleep(0.037)  # no multiple of the flush interval
            text = f"bench mark {i}."
            begin = time.monotonic()
            profd.mark(text)
            seen = file_grows_by(path, text.encode(), begin + 5)
            if seen is None:
                lost += 1
            else:
                times.append(seen - begin)
    profd.shutdown()
    return (summary(times) if times else None), lost


def recorder(build, seconds):
    """The last `seconds` of eight devices into a dump, its size beside copying the same bytes."""
    config = "[recorder]\nenabled = true\nmemory_mb = 1024\n"
    with rig.Daemon(build, config=config) as daemon:
        deadline = time.monotonic() + seconds + 60
        while time.monotonic() < deadline:
            if daemon.ask("status")["recorder"]["held_ns"] / 1e9 >= seconds:
                break
            time.sleep(0.2)
        times = []
        for _ in range(5):
            took, answer = timed(lambda: daemon.ctl("dump", "--last", f"{seconds}s", "--json"))
            times.append(took)
        dump = json.loads(answer.stdout)["dump_path"]
        size = sum(os.path.getsize(os.path.join(top, name))
                   for top, _, names in os.walk(dump) for name in names)
        copied, _ = timed(lambda: shutil.copytree(dump, os.path.join(daemon.dir, "copy")))
        row = summary(times)
        row.update(seconds=seconds, dump_mb=size / 1e6, copy_ms=copied * 1e3,
                   ratio_to_copy=statistics.median(times) / copied, complete=verified(build, dump))
    return row


def delays(build, args):
    import parts
    count = args.sessions
    result = {}
    with rig.Daemon(build, config="[dump]\nflush_interval_ms = 50\n") as daemon:
        calls = summary([timed(lambda: daemon.ctl("status", "--json"))[0] for _ in range(count)])
        complete, checks, incomplete = stops(build, daemon, count, parts.DEVICE)
        mark, lost = marks(build, daemon, 20 if args.quick else 100)
    rows = {"a call (profctl status)": calls, "stop to a verified dump": complete,
            "of that, verify": checks, "mark to its line in the dump": mark}
    past = recorder(build, 6 if args.quick else RECORDED_S)
    rows[f"the last {past['seconds']} s into a dump"] = past
    result.update(rows={name: row for name, row in rows.items() if row}, incomplete=incomplete, marks_lost=lost,
                  recorder=past)
    return result


def print_delays(part):
    print(f"  {'':<36}{'count':>7}{'p50 ms':>10}{'max ms':>10}")
    for name, row in part["rows"].items():
        print(f"  {name:<36}{row['count']:>7}{row['p50_ms']:>10.1f}{row['max_ms']:>10.1f}")
    past = part["recorder"]
    print(f"  that dump: {past['dump_mb']:.1f} MB, {past['ratio_to_copy']:.2f} times a copy of it; "
          f"incomplete dumps {part['incomplete'] + (not past['complete'])}, marks lost {part['marks_lost']}")


def goals_delays(part, goal):
    goal("dumps that verify found incomplete", part["incomplete"] + (not part["recorder"]["complete"]), 0.0, "")
    goal("marks that did not reach the dump", part["marks_lost"], 0.0, "")
    mark = part["rows"].get("mark to its line in the dump")
    if mark:
        # The flush interval is 50 ms here; a mark waits for one flush and one reading of the ring.
        goal("mark to dump, p50 / flush interval", mark["p50_ms"] / 50, 4.0, "x")
    goal("flight recorder's dump / its seconds", part["recorder"]["p50_ms"] / 1e3
         / part["recorder"]["seconds"], 0.05, "")


# Many nodes ---------------------------------------------------------------------------------

NODES = 64
NODE_MIB = 40


def available_mib():
    found = re.search(r"MemAvailable:\s*(\d+)", rig.read("/proc/meminfo"))
    return int(found.group(1)) // 1024 if found else 0


def fleet_config(tls):
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    return ("[metrics]\nenabled = false\n"
            '[tls]\nlisten = "127.0.0.1:0"\n'
            f'certificate = "{tls}/server.crt"\nkey = "{tls}/server.key"\nclient_ca = "{tls}/ca.crt"\n'
            f'users = ["bench={uid}"]\n')


class Fleet:
    """Light daemons: one simulated device each, host collectors off outside sessions."""

    def __init__(self, build, count):
        self.build, self.stack = build, contextlib.ExitStack()
        self.folder = tempfile.mkdtemp(prefix="profd-bench-fleet-")
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        tls = os.path.join(self.folder, "tls")
        subprocess.run([build.profctl, "tls", "init", tls, "--hosts", "localhost,127.0.0.1", "--users",
                        "bench"], check=True, capture_output=True)
        self.tls = os.path.join(tls, "clients", "bench")
        self.daemons = []
        try:
            for _ in range(count):
                self.daemons.append(self.stack.enter_context(rig.Daemon(
                    build, config=fleet_config(tls), scenario='chip = "910B"\ndevices = 1\n', wait=False)))
            for daemon in self.daemons:
                daemon.wait_ready()
        except BaseException:
            self.stack.close()
            raise
        self.addresses = [daemon.node["tls_address"] for daemon in self.daemons]

    def call(self, count, *arguments):
        done = subprocess.run([self.build.profctl, "--nodes", ",".join(self.addresses[:count]), "--tls-dir",
                               self.tls, "--node-timeout", "60s", "--json", *arguments],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"profctl {' '.join(arguments)} on {count}: {done.stderr[-2000:]}")
        return json.loads(done.stdout)


def fanout(build, args):
    wanted = 8 if args.quick else NODES
    count = max(2, min(wanted, available_mib() // (2 * NODE_MIB)))
    rows, late = {}, 0
    fleet = Fleet(build, count)
    with fleet.stack:
        for nodes in sorted({1, count}):
            times = {"status": [], "start": [], "stop": []}
            for round_ in range(2 if args.quick else 5):
                job = f"bench-{nodes}-{round_}"
                times["status"].append(timed(lambda n=nodes: fleet.call(n, "status"))[0])
                took, answer = timed(lambda n=nodes, j=job: fleet.call(
                    n, "start", "--job", j, "--all", "--collector", "hccs=10"))
                times["start"].append(took)
                late += sum(bool(node.get("late")) for node in answer["nodes"])
                times["stop"].append(timed(lambda n=nodes, j=job: fleet.call(n, "stop", "--job", j))[0])
            rows[nodes] = {name: summary(values) for name, values in times.items()}
        rss = sum(daemon.rss_mib()["rss_mib"] for daemon in fleet.daemons) / count
    return {"nodes": count, "rows": {str(nodes): row for nodes, row in rows.items()}, "late": late,
            "rss_mib_each": rss,
            "note": "" if count >= wanted else f"memory is short: {count} daemons instead of {wanted}"}


def print_fanout(part):
    print(f"  {'nodes':>7}{'status p50 ms':>16}{'start p50 ms':>15}{'stop p50 ms':>14}{'start max ms':>15}")
    for nodes, row in part["rows"].items():
        print(f"  {nodes:>7}{row['status']['p50_ms']:>16.1f}{row['start']['p50_ms']:>15.1f}"
              f"{row['stop']['p50_ms']:>14.1f}{row['start']['max_ms']:>15.1f}")
    print(f"  {part['rss_mib_each']:.1f} MiB a daemon, {part['late']} nodes began after the common instant"
          + (f"; {part['note']}" if part["note"] else ""))


def goals_fanout(part, goal):
    many, one = part["rows"][str(part["nodes"])], part["rows"]["1"]
    for name in ("status", "start", "stop"):
        goal(f"{name} on {part['nodes']} nodes / as many single calls",
             many[name]["p50_ms"] / (one[name]["p50_ms"] * part["nodes"]), 1.0, "x")
