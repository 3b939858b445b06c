#!/usr/bin/env python3
"""The flight recorder: dumps of the past, sessions that begin in the past, limits."""

import json
import os
import time
import unittest

import prof_reader
from attach_client import raw_ns
from profd_harness import ALICE, BOB, Daemon, DaemonCase, UsersCase, eventually, main, scaled, temp_folder
from text_files import read_bytes, read_json, write_bytes
from toml_files import scenario_text

# What the default configuration records on every device, with the distance of its timestamps at 10 Hz.
PERIODIC = {"hbm.data": 100_000, "hccs.data": 100_000_000, "pcie.data": 100_000_000,
            "roce.data": 100_000_000, "nic.data": 100_000_000}
# A joiner's clocks and the recorder's were read at different times.
CLOCK_SLACK_NS = 4_000_000


def held(daemon):
    return daemon.ctl("status")["recorder"]


def until_held(daemon, seconds):
    eventually(lambda: held(daemon)["held_ns"] / 1e9 >= seconds, seconds=60 + seconds,
               what=f"{seconds} s are recorded")


class RecorderCase(DaemonCase):
    def read(self, session):
        self.assertEqual(session["state"], "done")
        dump = prof_reader.read_valid(session["dump_path"])
        verified = self.daemon.run("verify", session["dump_path"])
        self.assertEqual(verified.returncode, 0, verified.stdout)
        return dump

    def no_holes(self, dump, device, name, period):
        """Every timestamp once, none missing, ascending."""
        timestamps = dump[(device, name)].timestamps()
        self.assertEqual(timestamps, sorted(set(timestamps)), (device, name))
        self.assertEqual(prof_reader.time_gaps(timestamps, period), [], (device, name))
        return timestamps

    def join(self, *options):
        """A session that begins 3 s ago and ends when it has run a while."""
        until_held(self.daemon, 4)
        session = self.daemon.ctl("start", "--since", "3s", *options)
        start = session["started_ns"]

        def records():
            return {(o["collector"], o["device"]): o["records"]
                    for o in self.daemon.show(session["session_id"])["outcomes"]}

        # The past is in first; then the present has come too, on every channel.
        eventually(lambda: time.time_ns() > start + 1_000_000_000)
        before = records()
        eventually(lambda: all(count >= before[key] + 3 for key, count in records().items()),
                   60, what="every channel continues")
        eventually(lambda: held(self.daemon)["held_ns"] / 1e9 > 0)
        self.daemon.ctl("stop", session["session_id"])
        final = self.daemon.show(session["session_id"])
        self.assertGreater(final["since_ns"], 0)
        return start, final, self.read(final)


class Past(RecorderCase):
    devices = 2
    config = {"recorder": {"enabled": True}}

    def test_dump_of_the_past(self):
        until_held(self.daemon, 5)
        session = self.daemon.ctl("dump", "--last", "4s", "--reason", "slow step", "--label", "mine")
        dump = self.read(session)
        self.assertEqual(session["label"], "mine")
        self.assertIn("slow step", session["reason"])
        self.assertEqual(session["warnings"], [])
        for device in range(self.devices):
            for name, period in PERIODIC.items():
                self.assertGreaterEqual(len(self.no_holes(dump, device, name, period)), 25)
                # When exactly a channel began is known as well as the driver answers promptly; a machine
                # that is short of time delays that too.
                slack = scaled(1e9)
                for record in dump[(device, name)].records:
                    self.assertLessEqual(session["started_ns"] - slack, record.wall)
                    self.assertLessEqual(record.wall, session["ended_ns"] + slack)
        times = [block[0] for block in dump.blocks["host_sys_cpu.data"]]
        self.assertGreaterEqual(len(times), 2)
        self.assertEqual(times, sorted(times))
        requested = dump.manifest["session"]["requested"]
        self.assertEqual(requested["flight_recorder"], "last 4 s")
        self.assertEqual(requested["reason"], "slow step")
        # Several pairs of clocks would give what drift there was; one is always there.
        self.assertIn("start", [clock["when"] for clock in dump.manifest["clocks"]])
        # An ordinary session: listed, shown, fetched, removed.
        listed = [s["session_id"] for s in self.daemon.ctl("list")["sessions"]]
        self.assertIn(session["session_id"], listed)
        out = temp_folder(self)
        fetched = self.daemon.ctl("fetch", session["session_id"], "--out", out)
        self.assertEqual(prof_reader.read(fetched["path"]).problems, [])
        both = self.daemon.ctl("dump", "--last", "1s", "--devices", "1", "--out", out)
        again = prof_reader.read_valid(both["fetched_to"])
        self.assertEqual(set(again.devices), {1})
        self.daemon.ctl("rm", session["session_id"])
        self.assertFalse(os.path.exists(session["dump_path"]))

    def test_more_than_is_held(self):
        until_held(self.daemon, 1)
        session = self.daemon.ctl("dump", "--last", "1h")
        self.assertIn("are held", " ".join(session["warnings"]))
        self.assertIn("are held", " ".join(self.read(session).manifest["warnings"]))

    def test_refusals(self):
        self.assertIn("no device 7", self.daemon.run("dump", "--devices", "7").stderr)
        self.assertEqual(self.daemon.run("dump", "--job", "none").returncode, 4)
        self.assertEqual(self.daemon.run("dump", "--last", "soon").returncode, 2)
        self.assertIn("--last 9999h: must be 1ms..24h", self.daemon.run("dump", "--last", "9999h").stderr)
        self.assertEqual(self.daemon.run("dump", "--reason", "x" * 129).returncode, 3)
        refused = self.daemon.run("start", "--collector", "hccs", "--since", "3s", "--no-dump")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("since", refused.stderr)

    def test_since_has_no_seam(self):
        options = ["--collector", "host_cpu=1"]
        for name in ("hbm", "hccs", "pcie", "roce", "nic"):
            options += ["--collector", f"{name}=10"]
        start, final, dump = self.join(*options)
        self.assertEqual(final["warnings"], [])
        for device in range(self.devices):
            for name, period in PERIODIC.items():
                self.no_holes(dump, device, name, period)
                walls = [r.wall for r in dump[(device, name)].records]
                self.assertLess(walls[0], start - 2_000_000_000, name)
                self.assertGreaterEqual(walls[0], final["since_ns"] - CLOCK_SLACK_NS, name)
                self.assertGreater(walls[-1], start, name)
        times = [block[0] for block in dump.blocks["host_sys_cpu.data"]]
        self.assertEqual(times, sorted(set(times)))
        self.assertGreaterEqual(len(times), 3)
        # Timestamps that count from a channel's start are right: the recorder's own dump has the same values
        # at the same time on the wall clock.
        recorded = self.read(self.daemon.ctl("dump", "--last", "60s"))
        theirs = {}
        for record in recorded[(0, "hbm.data")].records:
            theirs.setdefault((record.key, str(record.values)), []).append(record.wall)
        compared = 0
        for record in dump[(0, "hbm.data")].records:
            walls = theirs.get((record.key, str(record.values)), [])
            if walls:
                self.assertLessEqual(min(abs(w - record.wall) for w in walls), CLOCK_SLACK_NS)
                compared += 1
        self.assertGreater(compared, 50)

    def test_since_thinned(self):
        _, final, dump = self.join("--devices", "0", "--collector", "hbm=5", "--collector", "hccs=5")
        self.no_holes(dump, 0, "hbm.data", 200_000)
        self.no_holes(dump, 0, "hccs.data", 200_000_000)
        outcome = next(o for o in final["outcomes"] if o["collector"] == "hbm")
        self.assertTrue(outcome["thinned"] and outcome["rebased"])

    def test_since_names_no_collector_the_chip_lacks(self):
        """sys_hardware_mem_freq turns on DDR, too, of which this chip has no channel (driver-abi 2.4)."""
        until_held(self.daemon, 2)
        session = self.daemon.ctl("start", "--since", "1s", "--devices", "0", "--sys-hardware-mem-freq", "10")
        self.daemon.ctl("stop", session["session_id"])
        self.assertNotIn("ddr", {outcome["collector"] for outcome in session["outcomes"]})
        without = next(warning for warning in session["warnings"] if "without a past" in warning)
        self.assertNotIn("ddr", without)
        self.assertIn("qos", without)

    def test_since_without_options(self):
        """Without options a session has all collectors that run here, of which the recorder holds a part."""
        until_held(self.daemon, 2)
        session = self.daemon.ctl("start", "--since", "1s", "--devices", "0")
        self.daemon.ctl("stop", session["session_id"])
        running = {outcome["collector"] for outcome in session["outcomes"] if outcome["result"] == "running"}
        without = running - {channel["collector"] for channel in held(self.daemon)["channels"]}
        self.assertIn("llc", without)
        warning = next(warning for warning in session["warnings"] if "without a past: " in warning)
        self.assertEqual(set(warning.split(": ")[1].split(", ")) - {"operators"}, without)

    def test_since_of_what_is_not_recorded(self):
        """What the recorder does not hold begins with the request, and the manifest reports since when it is missing."""
        until_held(self.daemon, 9)
        session = self.daemon.ctl("start", "--since", "8s", "--devices", "0", "--collector", "hccs=5",
                                  "--collector", "npu_mem=10", "--collector", "qos=10")
        self.assertIn("without a past: npu_mem, qos", " ".join(session["warnings"]))

        def records(collector):
            return sum(o["records"] for o in self.daemon.show(session["session_id"])["outcomes"]
                       if o["collector"] == collector)

        eventually(lambda: records("npu_mem") > 20 and records("qos") > 20, what="the present is recorded")
        self.daemon.ctl("stop", session["session_id"])
        dump = self.read(self.daemon.show(session["session_id"]))
        gaps = {c["collector"]: [g["reason"] for g in c["gaps"]] for c in dump.manifest["channels"]}
        self.assertEqual((gaps["hccs"], gaps["npu_mem"], gaps["qos"]), ([], ["not_recorded"], ["not_recorded"]))

    def test_status_and_metrics(self):
        until_held(self.daemon, 1)
        recorder = held(self.daemon)
        self.assertTrue(recorder["enabled"])
        self.assertEqual({c["problem"] for c in recorder["channels"]}, {""})
        self.assertIn("recorder", self.daemon.run("status", json_output=False).stdout)
        eventually(lambda: self.daemon.metric("profd_recorder_bytes"))
        self.assertEqual(self.daemon.metric("profd_recorder_enabled"), 1)


class Rates(RecorderCase):
    devices = 1
    config = {"recorder": {"enabled": True, "collectors": ["pcie=30", "aicore_freq", "host_cpu=1"]}}

    def test_rates_are_the_effective_ones(self):
        """As in the answer of a session: 30 Hz are a period of 33 ms, changes of the frequency have none."""
        rates = {"pcie": 1000 / 33, "aicore_freq": 0, "host_cpu": 1}
        until_held(self.daemon, 2)
        self.assertEqual({c["collector"]: c["hz"] for c in held(self.daemon)["channels"]}, rates)
        dumped = self.daemon.ctl("dump")
        self.assertEqual({o["collector"]: o["hz"] or 0 for o in dumped["outcomes"]}, rates)


class Faster(RecorderCase):
    devices = 1
    config = {"recorder": {"enabled": True}}

    def test_since_faster_and_back(self):
        """The channel is made faster for the session: the restart is the one gap, and is said."""
        _, final, dump = self.join("--devices", "0", "--collector", "pcie=50", "--collector", "qos=50")
        timestamps = dump[(0, "pcie.data")].timestamps()
        self.assertEqual(timestamps, sorted(set(timestamps)))
        steps = {round((b - a) / 1e6) for a, b in zip(timestamps, timestamps[1:])}
        self.assertTrue({100, 20} <= steps, steps)
        entry = next(c for c in dump.manifest["channels"] if c["collector"] == "pcie")
        self.assertEqual([g["reason"] for g in entry["gaps"]], ["channel_restart"])
        self.assertIn("qos", " ".join(final["warnings"]))  # not recorded: without a past

        def slow_again():
            device = self.daemon.ctl("devices")["devices"][0]
            return any(c["name"] == "pcie" and c["hz"] == 10 for c in device["channels"])

        eventually(slow_again, what="the recorder alone runs at its own rate")
        # And the recorder's dump holds both runs completely.
        self.read(self.daemon.ctl("dump"))

    def test_host_collector_faster_than_the_recorder(self):
        """The recorder's part is judged by the recorder's rate, the session's by the session's."""
        requested_ns, _, dump = self.join("--collector", "host_cpu=50")  # verifies the dump
        entry = next(c for c in dump.manifest["channels"] if c["collector"] == "host_cpu")
        self.assertEqual((entry["past_hz"], entry["hz_effective"]), (1, 50))
        offset = dump.manifest["session"]["start_wall_ns"] - dump.manifest["session"]["start_raw_ns"]
        seam = entry["past_until_ns"]
        self.assertLess(abs(seam + offset - requested_ns), 2_000_000_000)
        times = [block[0] for block in dump.blocks["host_sys_cpu.data"]]
        past = [ns for ns in times if ns < seam]
        self.assertGreaterEqual(len(past), 2)
        self.assertTrue(all(b - a > 100_000_000 for a, b in zip(past, past[1:])), past)
        # A reading that is missing after the seam is still found.
        at = next(i for i, ns in enumerate(times) if ns > seam) + 20
        self.cut_blocks(dump, "host_sys_cpu.data", at, 3)
        broken = self.daemon.run("verify", dump.path)
        self.assertEqual(broken.returncode, 5, broken.stdout)
        self.assertIn("are missing", broken.stdout)

    def cut_blocks(self, dump, name, at, count):
        """Removes `count` readings from a host file of the dump."""
        path = os.path.join(dump.path, "host", "data", f"{name}.slice_0")
        blocks = read_bytes(path).split(b"TimeStamp:")
        del blocks[1 + at:1 + at + count]
        write_bytes(path, b"TimeStamp:".join(blocks))


class Off(RecorderCase):
    devices = 1

    def test_calls_are_refused(self):
        answer = self.daemon.run("dump", "--last", "10s")
        self.assertEqual(answer.returncode, 3)
        self.assertIn("recorder.enabled", answer.stderr)
        answer = self.daemon.run("start", "--collector", "hccs", "--since", "10s")
        self.assertEqual(answer.returncode, 3)
        self.assertIn("--since 10s: the flight recorder is off here (recorder.enabled)", answer.stderr)
        self.assertFalse(held(self.daemon)["enabled"])
        self.assertEqual(self.daemon.metric("profd_recorder_enabled"), 0)
        # Nothing runs for it.
        states = {c["state"] for c in self.daemon.ctl("devices")["devices"][0]["channels"]}
        self.assertEqual(states, {"idle"})


class Resumed(unittest.TestCase):
    def test_the_past_is_no_part_of_the_duration(self):
        with Daemon(scenario_text=scenario_text(devices=1), config={"recorder": {"enabled": True}}) as daemon:
            until_held(daemon, 4)
            before = raw_ns()
            session = daemon.ctl("start", "--since", "4s", "--collector", "hbm=10", "--duration", "1h", "--detach")
            after = raw_ns()
            session_id = session["session_id"]
            self.assertGreaterEqual(session["started_ns"] - session["since_ns"], 4_000_000_000)
            state = os.path.join(daemon.dump_root, ".state", "sessions", session_id + ".json")
            eventually(lambda: "started_raw_ns" in read_json(state), what="the start is saved")
            daemon.kill()
            stored = read_json(state)
            self.assertTrue(before <= int(stored["started_raw_ns"]) <= after, (before, stored["started_raw_ns"], after))
            daemon.start()
            shown = daemon.show(session_id)
            self.assertEqual((shown["since_ns"], shown["started_ns"]), (session["since_ns"], session["started_ns"]))
            daemon.ctl("stop", session_id)


class Limits(unittest.TestCase):
    """At the highest rates there are, both limits hold at every look."""

    FASTEST = ["hbm=100", "hccs=50", "pcie=50", "roce=100", "nic=100", "llc=100", "qos=100",
               "soc_profile=100", "npu_mem=100", "dvpp=100", "host_cpu=50", "host_mem=50",
               "npu_state=10"]

    def watch(self, memory_mb, seconds, reason):
        config = {"recorder": {"enabled": True, "collectors": self.FASTEST, "seconds": seconds,
                               "memory_mb": memory_mb}}
        text = scenario_text(devices=4)
        with Daemon(scenario_text=text, config=config) as daemon:
            def look():
                metrics = daemon.scrape()
                get = lambda name, *labels: metrics.get((name, labels), 0)
                self.assertLessEqual(get("profd_recorder_bytes"), memory_mb << 20)
                self.assertLessEqual(get("profd_recorder_seconds"), seconds)
                self.assertEqual(get("profd_recorder_dropped_total"), 0)
                return get("profd_recorder_evicted_total", ("reason", reason))

            # Round after round, not just once over the edge.
            eventually(lambda: look() > 2000, seconds=120, what=f"blocks leave because of {reason}")
            recorder = held(daemon)
            self.assertLessEqual(recorder["held_bytes"], memory_mb << 20)
            self.assertLessEqual(recorder["held_ns"] / 1e9, seconds)
            session = daemon.ctl("dump")
            dump = prof_reader.read_valid(session["dump_path"])
            self.assertGreater(session["records"], 100)
            self.assertTrue(prof_reader.samples_tsv(session["dump_path"]))
            return session, dump

    def test_memory(self):
        session, _ = self.watch(1, 3600, "memory")
        self.assertEqual(session["dropped_records"], 0)

    def test_age(self):
        _, dump = self.watch(256, 5, "age")
        for device in range(4):
            for name, period in (("hbm.data", 10_000), ("hccs.data", 20_000_000)):
                timestamps = dump[(device, name)].timestamps()
                self.assertEqual(timestamps, sorted(set(timestamps)))
                self.assertEqual(prof_reader.time_gaps(timestamps, period), [])


class OtherKind(RecorderCase):
    """While a session measures LLC writes, the recorder, which records reads, holds nothing of the channel."""
    devices = 1
    config = {"recorder": {"enabled": True, "collectors": ["llc=20"]}}

    def test_its_dump_has_reads_only(self):
        until_held(self.daemon, 2)
        session = self.daemon.ctl("start", "--all", "--sys-hardware-mem-freq", "50", "--llc-profiling", "write",
                                  "--since", "1s")
        eventually(lambda: [o["records"] for o in self.daemon.show(session["session_id"])["outcomes"]
                            if o["collector"] == "llc"][0] > 200, what="LLC writes are recorded")
        self.daemon.ctl("stop", session["session_id"])
        self.read(self.daemon.show(session["session_id"]))

        def reads_again():
            device = self.daemon.ctl("devices")["devices"][0]
            return any(c["name"] == "llc" and c["hz"] == 20 for c in device["channels"])

        eventually(reads_again, what="the recorder has the channel back")
        dump = self.read(self.daemon.ctl("dump"))
        self.assertIn((0, "llc.data"), dump.channels)


class Users(UsersCase, RecorderCase):
    devices = 1
    config = {"recorder": {"enabled": True, "cooldown_s": 3600, "triggers": ["atlas_host_load1 >= 0"]}}

    def test_dumps_are_ones_own(self):
        until_held(self.daemon, 1)
        mine = self.ctl_as(ALICE, "dump", "--reason", "alice")
        self.assertEqual((mine["uid"], mine["state"]), (ALICE, "done"))
        self.assertEqual(os.stat(mine["dump_path"]).st_uid, ALICE)
        self.read(mine)
        # Nothing of single processes is in it: they may be any user's.
        self.assertFalse([n for n in prof_reader.read(mine["dump_path"]).blocks if n[0].isdigit()])
        eventually(lambda: [s for s in self.daemon.ctl("list")["sessions"]
                            if s["label"] == "trigger: threshold"], what="the daemon's own dump")
        for uid, own in ((ALICE, [mine["session_id"]]), (BOB, [])):
            self.assertEqual([s["session_id"] for s in self.ctl_as(uid, "list")["sessions"]], own)
        out = temp_folder(self)
        os.chmod(out, 0o777)
        for command in (("show",), ("fetch", "--out", out), ("rm",)):
            self.ctl_as(BOB, command[0], mine["session_id"], *command[1:], expect=4)
        self.assertEqual(json.dumps(self.ctl_as(BOB, "list")).find("alice"), -1)


if __name__ == "__main__":
    main()
