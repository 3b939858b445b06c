"""What a client that floods the daemon costs the others: how long their stops take and how late the
sampler is, in one run, in turn: undisturbed; beside as many processes as the flood has, which do not find a
daemon and so cost others what processes cost; and flooded. Numbers; only a stop that never answers or a lost
record makes it fail."""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time

import profd_harness
from fault_common import START, daemon, start, stop
from profd_harness import ALICE, IS_ROOT, PROFCTL, RUNNER, TEST_GROUP, demote, group_id
from text_files import write_text

FLOODERS = 4


class Crowd:
    """Processes as many and as fast as those of the flood; none of them reaches the daemon."""

    def __init__(self, d, user, groups):
        self.d, self.user, self.groups = d, user, groups
        self.over = threading.Event()
        self.calls = 0

    def __enter__(self):
        self.threads = [threading.Thread(target=self.go_on, daemon=True) for _ in range(FLOODERS)]
        for thread in self.threads:
            thread.start()
        return self

    def go_on(self):
        while not self.over.is_set():
            self.call()

    def call(self):
        nobody = os.path.join(self.d.base, "nobody")
        subprocess.run(RUNNER + [PROFCTL, "--socket", nobody, "list"], capture_output=True, check=False,
                       preexec_fn=demote(self.user, groups=self.groups) if self.user is not None else None)
        self.calls += 1

    def __exit__(self, *exc):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Flood(Crowd):
    """An abusive client: calls as fast as it can, connections that are never used, streams never read."""

    def __enter__(self):
        self.idle = [self.d.connect() for _ in range(100)]
        self.frozen = [self.d.spawn("stream", "--interval", "10ms", user=self.user, groups=self.groups)
                       for _ in range(2)]
        return super().__enter__()

    def call(self):
        self.d.run("start", "--no-dump", "--devices", "9", *START, user=self.user, groups=self.groups)
        self.d.run("list", user=self.user, groups=self.groups)
        self.calls += 2

    def __exit__(self, *exc):
        super().__exit__(*exc)
        for one in self.frozen:
            one.kill()
            one.communicate()
        for one in self.idle:
            one.close()


def stops(d, seconds):
    """Durations of a victim's stops in ms, and how late the sampler was in ms, for so long."""
    taken, late, lost = [], [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(taken) < 5:
        session = start(d, "--collector", "hccs=50", "--devices", "0")
        d.until_records(session["session_id"], 10)
        late.append(1e3 * max([v for (name, _), v in d.scrape().items()
                              if name == "profd_collector_lateness_seconds"] or [0.0]))
        begin = time.monotonic()
        done = stop(d, session)
        taken.append(1e3 * (time.monotonic() - begin))
        lost += done["dropped_records"]
        d.ctl("rm", session["session_id"])
    return taken, late, lost


def missed(d):
    return d.metric("profd_collector_missed_ticks_total") or 0


def spread(values):
    values = sorted(values)
    return {"p50": statistics.median(values), "max": values[-1], "n": len(values)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--report", default="")
    args = parser.parse_args()
    profd_harness.raise_file_limit()
    user = ALICE if IS_ROOT else None
    groups = (group_id(),) if IS_ROOT else ()
    config = {"limits": {"max_starts_per_minute": 100000},
              "daemon": {"socket_group": TEST_GROUP} if IS_ROOT else {}}
    found = {name: ([], [], 0) for name in ("alone", "crowd", "flooded")}
    ticks, calls = dict.fromkeys(found, 0.0), dict.fromkeys(found, 0)
    with daemon(devices=2, config=config) as d:
        # In turn, so that other load of the machine affects all.
        for name in [*found] * 2:
            kind = {"crowd": Crowd, "flooded": Flood}.get(name)
            with kind(d, user, groups) if kind else contextlib.nullcontext() as crowd:
                before = missed(d)
                found[name] = tuple(a + b for a, b in zip(found[name], stops(d, args.seconds / 6)))
                ticks[name] += missed(d) - before
            calls[name] += crowd.calls if crowd else 0
        alive = d.alive() and d.stop() == 0
    p50 = {name: statistics.median(taken) for name, (taken, _, _) in found.items()}
    report = {"stop_ms": {name: spread(taken) for name, (taken, _, _) in found.items()},
              "delay_ms_p50": p50["flooded"] - p50["crowd"], "delay_ms_p50_with_processes": p50["flooded"] - p50["alone"],
              "goal_delay_ms": 100, "late_ms": {name: spread(late) for name, (_, late, _) in found.items()},
              "missed_readings": ticks, "lost_records": sum(lost for _, _, lost in found.values()), "calls": calls,
              "note": "the times include starting a profctl, which competes with the processes of crowd and flood"}
    print(json.dumps(report, indent=1))
    if args.report:
        write_text(args.report, json.dumps(report))
    return 0 if alive and report["lost_records"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
