"""What somebody who floods the daemon costs the others: how long their stops take and how late the
sampler is, undisturbed and disturbed in turn, in one run. Numbers; only a stop that never answers or a
lost record makes it fail."""

import argparse
import json
import statistics
import sys
import threading
import time

import profd_harness
from fault_common import *
from profd_harness import ALICE, IS_ROOT, TEST_GROUP, group_id

FLOODERS = 4


class Flood:
    """An abusive client: calls as fast as it can, connections that are never used, streams never read."""

    def __init__(self, d, user, groups):
        self.d, self.user, self.groups = d, user, groups
        self.over = threading.Event()
        self.calls = 0

    def __enter__(self):
        self.idle = [self.d.connect() for _ in range(100)]
        self.frozen = [self.d.spawn("stream", "--interval", "10ms", user=self.user, groups=self.groups)
                       for _ in range(2)]
        self.threads = [threading.Thread(target=self.call, daemon=True) for _ in range(FLOODERS)]
        for thread in self.threads:
            thread.start()
        return self

    def call(self):
        while not self.over.is_set():
            self.d.run("start", "--no-dump", "--devices", "9", *ORDER, user=self.user, groups=self.groups)
            self.d.run("list", user=self.user, groups=self.groups)
            self.calls += 2

    def __exit__(self, *exc):
        self.over.set()
        for thread in self.threads:
            thread.join()
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
    alone, flooded = ([], [], 0), ([], [], 0)
    with daemon(devices=2, config=config) as d:
        ticks = [0.0, 0.0]
        # In turn, so that what else goes on in the machine hits both.
        for _ in range(2):
            before = missed(d)
            alone = tuple(a + b for a, b in zip(alone, stops(d, args.seconds / 4)))
            ticks[0] += missed(d) - before
            before = missed(d)
            with Flood(d, user, groups) as flood:
                flooded = tuple(a + b for a, b in zip(flooded, stops(d, args.seconds / 4)))
                calls = flood.calls
            ticks[1] += missed(d) - before
        alive = d.alive() and d.stop() == 0
    report = {"stop_ms_alone": spread(alone[0]), "stop_ms_flooded": spread(flooded[0]),
              "delay_ms_p50": statistics.median(flooded[0]) - statistics.median(alone[0]),
              "goal_delay_ms": 100, "late_ms_alone": spread(alone[1]), "late_ms_flooded": spread(flooded[1]),
              "missed_readings": {"alone": ticks[0], "flooded": ticks[1]},
              "lost_records": alone[2] + flooded[2], "calls_of_the_flood": calls,
              "note": "times include starting profctl, which the flood's own processes compete with"}
    print(json.dumps(report, indent=1))
    if args.report:
        with open(args.report, "w", encoding="utf-8") as out:
            json.dump(report, out)
    return 0 if alive and report["lost_records"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
