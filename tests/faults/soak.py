"""A daemon with eight devices and faults that come and go, and everybody at it: sessions, scrapes, streams,
attached processes, exports. Afterwards: does anything grow, and is every record received or told as lost?
In real time: the simulator's clock is the machine's, for channels cannot run faster than what reads them."""

import argparse
import contextlib
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time

import profd_harness
from attach_client import Client, Ring
from fault_common import *
from profd_harness import PROFCTL, RUNNER, is_sanitized

DEVICES = 8
MUCH = ["--sys-hardware-mem-freq", "100", "--llc-profiling", "read", "--sys-io-sampling-freq", "100",
        "--sys-interconnection-freq", "50", "--dvpp-freq", "100", "--host-sys-usage", "cpu,mem"]
KINDS = [["--collector", "hbm=100", "--collector", "hccs=50", "--devices", "0-3"],
         ["--collector", "pcie=50", "--collector", "host_cpu=50", "--devices", "4-7"],
         [*MUCH, "--all"], [*MUCH, "--no-dump"], ["--collector", "host_mem=20", "--collector", "host_net=10"],
         [*ORDER, "--compress"]]
# What may have grown at the end, by the slope over the last two thirds.
ALLOWED = {"rss_mib": 8.0, "fds": 10.0, "threads": 6.0, "series": 60.0}
LATENCIES = ("start_ms", "stop_ms", "scrape_ms")


def faults(seconds):
    """Each of them on and off all the time, out of step, and two devices in good health."""
    found, number = [], 0
    kinds = [dict(kind="card_drop", mode="missing", device=2), dict(kind="card_drop", mode="hang", device=3),
             dict(kind="dcmi_error", code=-8012, device=4), dict(kind="garbage", mode="junk", every=10, device=5),
             dict(kind="short_read", bytes=7, device=6), dict(kind="stop_hang", channel="hccs", device=7),
             dict(kind="throttle", mhz=900, device=1)]
    at = 5.0
    while at < seconds and number < 60:
        found.append(dict(kinds[number % len(kinds)], at=round(at, 1), for_=3.0))
        number += 1
        at += max(4.0, seconds / 60)
    return found


def slope(points):
    """Theil-Sen: the median of all slopes, which a few outliers do not move."""
    points = points[-400:]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for i, a in enumerate(points) for b in points[i + 1:]
              if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0.0


class Soak:
    def __init__(self, d, seconds, seed):
        self.d, self.dice = d, random.Random(seed)
        self.end = time.monotonic() + seconds
        self.begin = time.monotonic()
        self.series = {name: [] for name in (*ALLOWED, *LATENCIES)}
        self.lock = threading.Lock()
        self.counts = {"sessions": 0, "refused": 0, "dumps_verified": 0, "scrapes": 0, "streams": 0,
                       "attached": 0, "exports": 0, "late_host_readings": 0}
        self.records = {"received": 0, "lost": 0}
        self.problems = []

    def over(self):
        return time.monotonic() >= self.end or len(self.problems) > 20

    def note(self, name, value):
        with self.lock:
            self.series[name].append((time.monotonic() - self.begin, value))

    def count(self, name, by=1):
        with self.lock:
            self.counts[name] += by

    def problem(self, text):
        with self.lock:
            self.problems.append(text[:1500])

    @contextlib.contextmanager
    def timed(self, name):
        begin = time.monotonic()
        yield
        self.note(name, 1e3 * (time.monotonic() - begin))

    def guarded(self, work, dice):
        while not self.over():
            try:
                work(dice)
            except Exception as error:  # told at the end; the soak goes on
                self.problem(f"{work.__name__}: {type(error).__name__}: {error}")
                time.sleep(1)

    # Who is at it -----------------------------------------------------------------------------

    def sessions(self, dice):
        with self.timed("start_ms"):
            answer = self.d.run("start", *dice.choice(KINDS), "--label", f"soak-{dice.randrange(5)}")
        if answer.returncode not in (OK, PARTIAL):
            self.count("refused")
            if answer.returncode != REFUSED:
                self.problem(f"start: {answer.returncode} {answer.stderr}")
            return
        session = json.loads(answer.stdout)
        time.sleep(dice.uniform(0.2, 3.0))  # how long it lasts
        with self.timed("stop_ms"):
            done = stop(self.d, session, expect=(OK, PARTIAL))
        self.count("sessions")
        if done["state"] != "done":
            self.problem(f"session {done['session_id']}: {done['state']} {done['reason']}")
        with self.lock:
            self.records["received"] += done["records"]
            self.records["lost"] += done["dropped_records"]
        if done["dump_path"]:
            self.check_dump(done, dice)
        self.d.ctl("rm", session["session_id"], expect=(OK, 4))

    def check_dump(self, done, dice):
        verified = self.d.run("verify", done["dump_path"])
        self.count("dumps_verified")
        if verified.returncode != OK:
            self.judge_verify(verified.stdout)
        facts = manifest(done)
        # A reading of a host collector is one record, and several rows of the manifest.
        if done["dropped_records"] == 0 and all(c["device"] >= 0 for c in facts["channels"]):
            written = sum(c["records"] for c in facts["channels"])
            if written != done["records"]:
                self.problem(f"{done['dump_path']}: {done['records']} received, {written} written, 0 lost")
        if dice.random() < 0.2:
            with tempfile.TemporaryDirectory() as out:
                made = subprocess.run(RUNNER + [PROFCTL, "export", done["dump_path"], "--format", "csv", "--out",
                                                os.path.join(out, "x")], capture_output=True, text=True, check=False)
                self.count("exports")
                if made.returncode not in (OK, PARTIAL):
                    self.problem(f"export: {made.returncode} {made.stderr}")

    def judge_verify(self, text):
        problems = [one for dump in json.loads(text)["dumps"] for one in dump["problems"]]
        # A reading of a host collector that was late by more than half a period looks like one left out,
        # which stamps alone cannot tell apart: told as a number.
        late = [one for one in problems if one["check"] == "accounting" and "device" not in one["where"] and
                re.match(r"[12] of \d+ records are missing", one["what"])]
        self.count("late_host_readings", len(late))
        for one in problems:
            if one not in late:
                self.problem(f"verify: {one['where']}: {one['what']}")

    def scrapes(self, dice):
        with self.timed("scrape_ms"):
            metrics = self.d.scrape()
        self.count("scrapes")
        self.note("rss_mib", self.d.rss() / (1 << 20))
        self.note("fds", self.d.fd_count())
        self.note("threads", self.d.thread_count())
        self.note("series", len(metrics))
        time.sleep(0.5 + 0.1 * dice.random())

    def streams(self, dice):
        if dice.random() < 0.5:
            frozen = self.d.spawn("stream", "--interval", "20ms", stdout=subprocess.DEVNULL)
            time.sleep(dice.uniform(0.1, 1.5))
            frozen.kill()
            frozen.communicate()
        else:
            self.d.run("stream", "--count", "20", "--interval", "50ms")
        self.count("streams")

    def attaches(self, dice):
        ring = Ring()
        try:
            with Client(os.path.join(self.d.base, "attach.sock"), timeout=20) as client:
                client.attach(ring=ring, job_id=f"soak-{dice.randrange(5)}", rank=dice.randrange(8))
                for step in range(dice.randrange(200)):
                    ring.step(step + 1)
                    time.sleep(0.005)
        finally:
            ring.close()
        self.count("attached")

    def run(self):
        threads = [threading.Thread(target=self.guarded, args=(work, random.Random(self.dice.random())))
                   for work in (self.sessions, self.sessions, self.scrapes, self.streams, self.attaches)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # What came of it --------------------------------------------------------------------------

    def growth(self):
        """What each series would have grown in the time it was watched, warm-up left out."""
        found = {}
        for name, points in self.series.items():
            settled = [p for p in points if p[0] > (self.end - self.begin) / 3]
            if len(settled) < 10:
                continue
            # Of what sessions take while they run, only what stays between them is growth.
            floor = [min(settled[i:i + 8], key=lambda p: p[1]) for i in range(0, len(settled) - 7, 8)]
            by = slope(floor if name in ALLOWED else settled) * (settled[-1][0] - settled[0][0])
            found[name] = {"begin": statistics.median(v for _, v in settled[:10]),
                           "end": statistics.median(v for _, v in settled[-10:]), "growth": round(by, 3),
                           "p50": statistics.median(v for _, v in settled), "max": max(v for _, v in settled)}
            if name in ALLOWED and len(floor) >= 10 and by > ALLOWED[name] and not (name == "rss_mib" and is_sanitized()):
                self.problem(f"{name} grows: by {by:.1f} in {settled[-1][0] - settled[0][0]:.0f} s")
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", default="")
    args = parser.parse_args()
    profd_harness.raise_file_limit()
    config = {"limits": {"max_starts_per_minute": 100000, "keep_finished": 20},
              "dump": {"flush_interval_ms": 200},
              "recorder": {"enabled": True, "collectors": ["hbm=10", "hccs=10", "host_cpu=1"], "seconds": 20,
                           "memory_mb": 8}}
    with daemon(devices=DEVICES, faults=faults(args.seconds), config=config) as d:
        soak = Soak(d, args.seconds, args.seed)
        soak.run()
        growth = soak.growth()
        if not d.alive():
            soak.problem("profd died")
        elif d.stop() != 0:
            soak.problem(f"profd ended with {d.exit_code}")
    report = {"time": "real", "counts": soak.counts, "records": soak.records, **growth,
              "problems": soak.problems}
    print(json.dumps(report, indent=1))
    if args.report:
        with open(args.report, "w", encoding="utf-8") as out:
            json.dump(report, out)
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
