"""What the fault tests share: a daemon on a faulty node, and looking for gaps in dumps."""

import os
import time
import unittest

import prof_reader
from profd_harness import BUILD, Daemon, scaled
from text_files import read_json
from toml_files import merged, scenario_text

LIBS = os.path.join(BUILD, "tests", "faults")
SIM_HAL = os.path.join(BUILD, "sim", "libascend_hal.so")

# Quick to call a device stuck: the faults last seconds, not minutes.
STUCK = {"driver": {"stuck_after_ms": 500}}
HZ = 50
START = ["--collector", f"hccs={HZ}", "--collector", f"pcie={HZ}", "--collector", f"hbm={HZ}"]
FILES = ("hccs.data", "pcie.data", "hbm.data")
OK, REFUSED, PARTIAL = 0, 3, 5


def daemon(devices=2, faults=(), config=None, library=None, chip="910B", env=None, kind=Daemon, **how):
    """A Daemon (not started) on a simulated node with these faults, perhaps under a broken driver; `kind`: its class."""
    text = scenario_text(chip=chip, devices=devices, faults=faults)
    env = dict(env or {})
    args = list(how.pop("args", ()))
    if library is not None:
        args += ["--hal-library", os.path.join(LIBS, f"lib{library}.so")]
        env["PROFD_FAULT_REAL_HAL"] = SIM_HAL
    return kind(scenario_text=text, config=merged(STUCK, config or {}), env=env, args=args, **how)


class FaultAhead:
    """A daemon with `prepare` done before its faults begin, however slow the machine is.

    `faults(at)` gives the faults for a beginning at `at` seconds of scenario time; when preparing took
    longer than that, all is tried again with more time.
    """

    def __init__(self, faults, prepare, seconds=2.0, **how):
        self.faults, self.prepare, self.seconds, self.how = faults, prepare, seconds, how
        self.daemon = None

    def __enter__(self):
        at = scaled(self.seconds)
        for _ in range(4):
            begin = time.monotonic()  # scenario time 0 is later than this
            self.daemon = daemon(faults=self.faults(at), **self.how)
            self.daemon.__enter__()
            try:
                prepared = self.prepare(self.daemon)
            except BaseException:
                self.daemon.dispose()
                raise
            if time.monotonic() - begin < at:
                return self.daemon, prepared
            self.daemon.dispose()
            at *= 3
        raise unittest.SkipTest("this machine is too busy to be ready before the fault begins")

    def __exit__(self, *exc):
        return self.daemon.__exit__(*exc)


def start(d, *flags, expect=OK, devices=None):
    options = list(flags or START) + (["--devices", devices] if devices else [])
    return d.ctl("start", *options, expect=expect)


def stop(d, session, expect=OK):
    return d.ctl("stop", session["session_id"], expect=expect)["sessions"][0]


def problem(d, device):
    return {x["id"]: x for x in d.ctl("devices")["devices"]}[device]["problem"]


def manifest(session):
    return read_json(session["dump_path"], "profd_manifest.json")


def entry(facts, collector, device):
    found = [c for c in facts["channels"] if (c["collector"], c["device"]) == (collector, device)]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} manifest entries for {collector} on device {device}")
    return found[0]


def read_dump(session):
    return prof_reader.read(session["dump_path"])


def time_gaps(dump, device, file, hz=HZ):
    """[(wall ns before, wall ns after)] of every place where grid points are missing."""
    channel = dump.channel(file, device)
    if channel is None or not channel.records:
        raise AssertionError(f"device {device} has nothing in {file}")
    walls = []
    for record in channel.records:
        if not walls or record.wall != walls[-1]:
            walls.append(record.wall)
    period = 1e9 / hz
    return [(a, b) for a, b in zip(walls, walls[1:]) if b - a > 1.5 * period]


class FaultCase(unittest.TestCase):
    def assert_complete(self, dump, device, files=FILES, at_least=5):
        for file in files:
            self.assertEqual(time_gaps(dump, device, file), [], f"gaps in {file} of device {device}")
            self.assertGreaterEqual(len(dump.channel(file, device)), at_least)

    def assert_holes_told(self, session, dump, device, file, collector):
        """Every gap between records lies within one of the manifest."""
        facts = manifest(session)
        offset = facts["session"]["start_wall_ns"] - facts["session"]["start_raw_ns"]
        slack = 2e9 / HZ
        gaps = [(gap["from_ns"] + offset - slack, gap["host_ns"] + offset + slack)
                for gap in entry(facts, collector, device)["gaps"]]
        found = time_gaps(dump, device, file)
        for begin, end in found:
            self.assertTrue(any(a <= begin and end <= b for a, b in gaps),
                            f"gap {begin}..{end} in {file} is in none of {gaps}")
        return found

    def assert_serves(self, d, device):
        """Other clients and devices are served: a session on `device` starts, records and stops."""
        session = start(d, devices=str(device))
        d.until_records(session["session_id"], 30)
        done = stop(d, session)
        self.assertEqual(done["state"], "done")
        self.assertEqual({o["result"] for o in done["outcomes"]}, {"finished"})
        return done

    def assert_clean_end(self, d):
        self.assertTrue(d.alive(), "profd died")
        self.assertEqual(d.stop(), 0, d.log())


__all__ = [name for name in dir() if not name.startswith("_")]
