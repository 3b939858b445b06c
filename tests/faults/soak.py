"""A daemon with eight devices and faults that come and go, and all clients at once: sessions, scrapes, streams,
attached processes, exports. Afterwards: does anything grow, and is every record received or reported as lost?

The device side is played --scale times as fast (sim/README.md, time_scale), so that a minute is an hour of
its time: so many times the records, wrap-arounds and drift. The daemon's CLOCK_MONOTONIC_RAW runs with it
(libs/fast_clock.cc); its timers, and everything that is asked of it, stay in real time.

Counted three times: what the simulator's ledger says was made and read against the daemon's own counters, of
all channels; what it made of one channel in each of many sessions against that session's records and losses;
and `profctl verify` looks for gaps that nothing explains in every dump."""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

import profd_harness
from attach_client import Client, Ring
from fault_common import LIBS, OK, PARTIAL, REFUSED, daemon, manifest, stop
from profd_harness import PROFCTL, RUNNER, is_sanitized
from text_files import write_text

DEVICES = 8
SCALE_OF_TIME = 60


def flags(**hz):
    return [word for name, rate in hz.items() for word in ("--collector", f"{name}={rate}")]


MUCH = [*flags(hbm=5, llc=1, nic=10, roce=10, dvpp=5, qos=5, npu_mem=5, hccs=10), "--host-sys-usage", "cpu,mem"]
KINDS = [[*flags(hbm=20, hccs=50), "--devices", "0-3"], [*flags(roce=50, host_cpu=50), "--devices", "4-7"],
         MUCH, [*MUCH, "--no-dump"], flags(host_mem=20, host_net=10), [*flags(hccs=20, npu_mem=20), "--compress"]]
# One whose records are counted: no other session starts its channel, so a session is one run of it, or several.
COUNTED, COUNTED_HZ, COUNTED_CHANNEL, COUNTED_BYTES = "pcie", 50, 3, 96
# Of these devices nothing may be missing at all; of the others what is gone with the card.
WHOLE = (0, 1, 4, 6, 7)
# Those that go, hang, or do not stop.
LEAVING = (2, 3, 7)
GARBLED = 5
# By how much the floor of the last third may lie above that of the first. Floors: between the peaks of what is
# going on, and of a machine that others use, lies what stays.
# Memory: what the pool of buffers, three sessions' queues and the simulator's rings may fill of their limits.
ALLOWED = {"rss_mib": 48.0, "fds": 10.0, "threads": 6.0, "series": 60.0}
LATENCIES = ("start_ms", "stop_ms", "scrape_ms")
EDGE_SECONDS = 5.0  # dump/verify_channels.cc, kEdgeNs
WARM_UP = 0.15  # of the time, before the first third begins
SHORT_THIRD = 60.0  # seconds; below, buffers and caches are still being filled
LEDGER_HEAD, LEDGER_ROW, CHANNELS = 16, 64, 160


def faults(seconds, scale):
    """Each of them on and off all the time, out of step, and two devices in good health. Three seconds of the
    machine's each, however fast the devices' time runs."""
    found, number = [], 0
    kinds = [dict(kind="card_drop", mode="missing", device=2), dict(kind="card_drop", mode="hang", device=3),
             dict(kind="dcmi_error", code=-8012, device=4), dict(kind="garbage", mode="junk", every=10, device=5),
             dict(kind="short_read", bytes=7, device=6), dict(kind="stop_hang", channel="hccs", device=7),
             dict(kind="throttle", mhz=900, device=1)]
    at = 5.0
    while at < seconds and number < 60:
        found.append(dict(kinds[number % len(kinds)], at=round(at * scale, 1), for_=3.0 * scale))
        number += 1
        at += max(4.0, seconds / 60)
    return found


class Ledger:
    """What the simulator made, and what became of it (sim/ledger.h)."""
    FIELDS = ("runs", "records", "bytes", "dropped", "read", "left", "earlier_records", "earlier_bytes")

    def __init__(self, path):
        self.path = path

    def row(self, device, channel):
        with open(self.path, "rb") as file:
            file.seek(LEDGER_HEAD + LEDGER_ROW * (device * CHANNELS + channel))
            return dict(zip(self.FIELDS, struct.unpack("=8Q", file.read(LEDGER_ROW))))

    def rows(self):
        return {(device, channel): self.row(device, channel)
                for device in range(DEVICES) for channel in range(CHANNELS)}


class Soak:
    def __init__(self, d, seconds, seed, ledger, scale):
        self.d, self.dice, self.ledger, self.scale = d, random.Random(seed), ledger, scale
        self.end = time.monotonic() + seconds
        self.begin = time.monotonic()
        self.series = {name: [] for name in (*ALLOWED, *LATENCIES)}
        self.lock = threading.Lock()
        self.counts = dict.fromkeys(("sessions", "refused", "dumps_verified", "scrapes", "streams", "attached",
                                     "exports", "late_host_readings", "edges_by_scale", "garbled_timestamps",
                                     "losses_by_number", "counted_sessions"), 0)
        self.records = {"received": 0, "lost": 0}
        self.counted = {"made": 0, "written": 0, "lost": 0, "told_by_gaps": 0}
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
            except Exception as error:  # reported at the end; the soak continues
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

    def counted_sessions(self, dice):
        """The simulator's count of a channel against the dump's, device by device."""
        before = {n: self.ledger.row(n, COUNTED_CHANNEL) for n in range(DEVICES)}
        answer = self.d.run("start", "--collector", f"{COUNTED}={COUNTED_HZ}", "--label", "soak-counted")
        if answer.returncode not in (OK, PARTIAL):
            self.count("refused")
            return
        session = json.loads(answer.stdout)
        time.sleep(dice.uniform(0.5, 6.0))  # how long it lasts
        done = stop(self.d, session, expect=(OK, PARTIAL))
        self.count("counted_sessions")
        if self.d.run("verify", done["dump_path"]).returncode != OK:
            self.judge_verify(self.d.run("verify", done["dump_path"]).stdout, manifest(done))
        facts = manifest(done)
        for device, old in before.items():
            new = self.ledger.row(device, COUNTED_CHANNEL)
            grown = {name: new[name] - old[name] for name in new}
            # What a failed stop left running went on into this session's time; it was reported with the session before.
            if device in LEAVING and grown["runs"] < 2:
                for name in ("records", "bytes"):
                    grown[name] = new[name] - new[f"earlier_{name}"] if grown["runs"] else 0
            self.balance(device, grown, facts)
        self.d.ctl("rm", session["session_id"], expect=(OK, 4))

    def balance(self, device, grown, facts):
        ours = [c for c in facts["channels"] if (c["collector"], c["device"]) == (COUNTED, device)]
        written = sum(c["records"] for c in ours)
        lost = sum(loss["records"] for c in ours for loss in c["dropped"])
        # By bytes, which also show what did not fit into the ring; between junk only records can be counted.
        made = grown["records"] if device == GARBLED else grown["bytes"] // COUNTED_BYTES
        rest = made - written - lost
        with self.lock:
            for name, value in (("made", made), ("written", written), ("lost", lost),
                                ("told_by_gaps", rest if device not in WHOLE else 0)):
                self.counted[name] += value
        listed = any(c["gaps"] for c in ours) or not ours
        # A card that was away made nothing; the gaps in its records are losses all the same.
        if grown["runs"] == 0 and any(c["state"] == "finished" for c in ours):
            self.problem(f"device {device}: nothing ran, {ours}")
        invented = written > made and device != GARBLED
        if invented or (rest < 0 and device in WHOLE) or (rest > 0 and (device in WHOLE or not listed)):
            self.problem(f"device {device}: {grown} made by the simulator, {written} written, {lost} lost: "
                         f"{rest} records are unaccounted for; {[c['gaps'][-3:] for c in ours]} {facts['warnings']}")

    def check_dump(self, done, dice):
        verified = self.d.run("verify", done["dump_path"])
        self.count("dumps_verified")
        if verified.returncode != OK:
            self.judge_verify(verified.stdout, manifest(done))
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

    def judge_verify(self, text, facts):
        problems = [one for dump in json.loads(text)["dumps"] for one in dump["problems"]]
        # A reading of a host collector that was late by more than half a period looks like one left out,
        # which timestamps alone cannot distinguish: reported as a number. In fast motion they show nothing, for what
        # is polled in real time is not on the grid of the clock that timestamps it.
        late = [one for one in problems if one["check"] == "accounting" and "device" not in one["where"] and
                (self.scale > 1 or re.match(r"[12] of \d+ records are missing", one["what"]))]
        self.count("late_host_readings", len(late))
        # What verify allows between a session's ends and its records is meant in the machine's time.
        edges = [one for one in problems for found in [re.match(r"(?:begins|ends) ([\d.]+) s", one["what"])]
                 if found and float(found[1]) < EDGE_SECONDS * self.scale]
        self.count("edges_by_scale", len(edges))
        # Junk before a line of text can make another timestamp of its own.
        garbled = [one for one in problems if one["check"] == "order" and f"of device {GARBLED}" in one["where"]]
        self.count("garbled_timestamps", len(garbled))
        # A loss is reported by when it was noticed. What took the machine a tenth of a second is seconds of the
        # devices' time before, further away than verify looks: then the numbers must agree.
        elsewhere = [one for one in problems if self.scale > 1 and self.is_told(one, facts)]
        self.count("losses_by_number", len(elsewhere))
        for one in problems:
            if all(one not in known for known in (late, edges, garbled, elsewhere)):
                self.problem(f"verify: {one['where']}: {one['what']}")

    @staticmethod
    def is_told(problem, facts):
        """True if the manifest knows of at least as many lost records of that channel as are missing."""
        place = re.match(r"(\S+) of device (\d+)$", problem["where"])
        missing = re.match(r"(\d+) of \d+ records are missing and", problem["what"])
        if not place or not missing:
            return False
        ours = [c for c in facts["channels"] if (c["file"], c["device"]) == (place[1], int(place[2]))]
        return sum(loss["records"] for c in ours for loss in c["dropped"]) >= int(missing[1]) or any(
            gap["lost_records"] == 0 for c in ours for gap in c["gaps"])

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
            with Client(self.d.attach_socket, timeout=20) as client:
                client.attach(ring=ring, job_id=f"soak-{dice.randrange(5)}", rank=dice.randrange(8))
                for step in range(dice.randrange(200)):
                    ring.step(step + 1)
                    time.sleep(0.005)
        finally:
            ring.close()
        self.count("attached")

    def run(self):
        threads = [threading.Thread(target=self.guarded, args=(work, random.Random(self.dice.random())))
                   for work in (self.sessions, self.sessions, self.counted_sessions, self.scrapes, self.streams,
                                self.attaches)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # What came of it --------------------------------------------------------------------------

    def close_the_books(self):
        """Nothing runs any more: what the simulator says was read against what the daemon says it read."""
        before = self.ledger.rows()  # the recorder's channels go on
        time.sleep(3)  # counters of profd's own are brought up to date about once a second
        metrics = {(dict(labels)["npu"], dict(labels)["channel"]): value for (name, labels), value
                   in self.d.scrape().items() if name == "profd_channel_bytes_total"}
        daemon_read = sum(metrics.values())
        rows = self.ledger.rows()
        played = {"records": sum(row["records"] for row in rows.values()),
                  "bytes": sum(row["bytes"] for row in rows.values()), "read_bytes": sum(row["read"] for row in rows.values()),
                  "overflow_bytes": sum(row["dropped"] for row in rows.values()),
                  "left_bytes": sum(row["left"] for row in rows.values()), "daemon_read_bytes": int(daemon_read)}
        for device in range(DEVICES):
            least, most = (sum(row["read"] for (n, _), row in when.items() if n == device) for when in (before, rows))
            taken = sum(value for (npu, _), value in metrics.items() if npu == str(device))
            if not least <= taken <= most:
                self.problem(f"device {device}: {least} to {most} bytes were read of the simulator, {taken:.0f} by "
                             "profd's count")
        return played

    def growth(self):
        """The floor of each series in the first and in the last third, warm-up left out."""
        found, whole = {}, self.end - self.begin
        begin = WARM_UP * whole
        third = (whole - begin) / 3
        for name, points in self.series.items():
            first = [v for t, v in points if begin <= t < begin + third]
            last = [v for t, v in points if begin + 2 * third <= t]
            if len(first) < 5 or len(last) < 5:
                continue
            by = min(last) - min(first)
            found[name] = {"floor_first_third": round(min(first), 2), "floor_last_third": round(min(last), 2),
                           "max": round(max(v for _, v in points), 2), "samples": len(points)}
            most = 100.0 + min(first) if name in LATENCIES else ALLOWED[name]
            if by > most and third >= SHORT_THIRD and not (name == "rss_mib" and is_sanitized()):
                self.problem(f"{name} grows: its floor by {by:.1f} from the first to the last third of {whole:.0f} s")
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=int, default=SCALE_OF_TIME, help="how many times as fast devices' time runs")
    parser.add_argument("--report", default="")
    args = parser.parse_args()
    profd_harness.raise_file_limit()
    config = {"limits": {"max_starts_per_minute": 100000, "keep_finished": 20},
              "dump": {"flush_interval_ms": 200, "queue_mb": 8},
              "driver": {"buffer_mb": 16},  # the pool fills up to that, and keeps it
              "recorder": {"enabled": True, "collectors": ["hbm=2", "hccs=10", "npu_mem=1", "host_cpu=1"], "seconds": 1200,
                           "memory_mb": 8}}
    scale = 1 if is_sanitized() else args.scale
    books = os.path.join(tempfile.mkdtemp(prefix="profd-soak-"), "ledger")
    env = {"PROFD_SIM_LEDGER": books, "PROFD_SIM_TIME_SCALE": str(scale)}
    if scale != 1:
        env["LD_PRELOAD"] = os.path.join(LIBS, "libfast_clock.so")
    with daemon(devices=DEVICES, faults=faults(args.seconds, scale), config=config, env=env) as d:
        soak = Soak(d, args.seconds, args.seed, Ledger(books), scale)
        soak.run()
        growth = soak.growth()
        played = {}
        if not d.alive():
            soak.problem("profd died")
        else:
            played = soak.close_the_books()
            if d.stop() != 0:
                soak.problem(f"profd ended with {d.exit_code}")
    shutil.rmtree(os.path.dirname(books), ignore_errors=True)
    hours = args.seconds * scale / 3600
    report = {"time": {"scale": scale, "hours_played": round(hours, 2), "device_hours": round(hours * DEVICES, 1)},
              "counts": soak.counts, "records": soak.records, "counted": soak.counted, "simulator": played, **growth,
              "problems": soak.problems}
    print(json.dumps(report, indent=1))
    if args.report:
        write_text(args.report, json.dumps(report))
    return 1 if soak.problems else 0


if __name__ == "__main__":
    sys.exit(main())
