"""Faults that a driver reports, or that are in its data: each on a device of its own, one neighbour
in good health, with sessions before, during and after."""

import json
import os

import profd_harness
from fault_common import (HZ, PARTIAL, REFUSED, START, FaultAhead, FaultCase, daemon, entry, manifest,
                          problem, read_dump, start, stop)
from profd_harness import eventually, outcome, temp_folder

# device: fault
MISSING, SICK, BUSY, ERRORS, SHORT, JUNK, FLIP, DCMI, GOOD = range(9)
CODES = {  # channel: (code, result, words of the reason)
    "hccs": (-10, "busy", "held by another process"),
    "hbm": (-3, "busy", "already running"),
    "llc": (-11, "busy", "virtual device"),
    "nic": (-7, "unsupported", "does not support"),
    "roce": (1, "failed", "device not found"),
    "pcie": (115, "failed", "task scheduler is unbound"),
    "qos": (-12, "denied", "container"),
    "soc_profile": (-1, "failed", "without a reason"),
    "dvpp": (-2, "failed", "did not answer the driver in time"),
}
ALL = ["--sys-hardware-mem-freq", HZ, "--llc-profiling", "read", "--sys-io-sampling-freq", HZ,
       "--sys-interconnection-freq", HZ, "--dvpp-freq", HZ]


def faults(at):
    # Long enough for the daemon to notice (a second or two) and for all of look() on a slow machine.
    until = {"at": at, "for_": profd_harness.scaled(6)}
    dvpp = (6, *range(135, 142))
    return [
        dict(kind="card_drop", mode="missing", device=MISSING, **until),
        dict(kind="throttle", device=SICK, mhz=700),
        dict(kind="slow_hccs", device=SICK, link=1, factor=0.1),
        dict(kind="roce_retrans", device=SICK, rate=5000),
        dict(kind="ecc", device=SICK, single=40),
        dict(kind="ecc", device=SICK, double=2),
        dict(kind="channel_busy", device=BUSY, channel="hccs", for_=at),
        *[dict(kind="start_error", device=ERRORS, channel=channel, code=CODES["dvpp"][0])
          for channel in dvpp],
        *[dict(kind="start_error", device=ERRORS, channel=channel, code=code)
          for channel, (code, _, _) in CODES.items() if channel != "dvpp"],
        dict(kind="short_read", device=SHORT, bytes=7),
        dict(kind="garbage", device=JUNK, mode="junk", every=10),
        dict(kind="garbage", device=FLIP, mode="flip", every=10),
        dict(kind="dcmi_error", device=DCMI, code=-8012, **until),
    ]


class ReportedFaults(FaultCase):
    """One long session over everything; its dump is looked at from all sides."""

    @classmethod
    def setUpClass(cls):
        cls.context = FaultAhead(faults, lambda d: start(d, *ALL, expect=PARTIAL), devices=9)
        cls.d, cls.session = cls.context.__enter__()
        try:
            cls.during = cls.look()
            cls.after = eventually(cls.all_back, 60, what="all devices are back")
            cls.final = stop(cls.d, cls.session)
            cls.facts = manifest(cls.final)
            cls.dump = read_dump(cls.final)
            cls.metrics = cls.d.scrape()
        except BaseException:
            cls.context.__exit__(None, None, None)
            raise

    @classmethod
    def tearDownClass(cls):
        cls.context.__exit__(None, None, None)

    @classmethod
    def look(cls):
        """The node while two cards are gone."""
        d = cls.d
        # libdcmi may say so first; the driver's own word for it comes with the next look at the session's devices.
        eventually(lambda: "lost communication" in (problem(d, MISSING) or ""), what="the missing card is noticed")
        eventually(lambda: d.metric("atlas_npu_up", npu=str(MISSING)) == 0 and
                   d.metric("atlas_npu_up", npu=str(DCMI)) == 0, what="both cards are down")
        found = {"session": d.show(cls.session["session_id"]), "problem": problem(d, MISSING),
                 "metrics": d.scrape()}
        found["start"] = d.run("start", *START, "--devices", str(MISSING))
        found["strict"] = d.run("start", *START, "--devices", f"{MISSING},{GOOD}", "--require-all")
        return found

    @classmethod
    def all_back(cls):
        view = cls.d.show(cls.session["session_id"])
        up = all(cls.d.metric("atlas_npu_up", npu=str(n)) == 1 for n in (MISSING, DCMI))
        running = [outcome(view, "hccs", n)["result"] == "running" for n in (MISSING, BUSY)]
        enough = outcome(view, "hccs", MISSING)["records"] > outcome(
            cls.during["session"], "hccs", MISSING)["records"] + HZ // 2
        return view if up and all(running) and enough else None

    def value(self, name, device, source=None, **labels):
        wanted = {("npu", str(device)), *labels.items()}
        values = [v for (n, have), v in (source or self.metrics).items()
                  if n == name and wanted <= set(have)]
        return sum(values) if values else None

    def test_alive_to_the_end(self):
        self.assertTrue(self.d.alive())
        self.assertEqual(self.final["state"], "done")
        self.assert_serves(self.d, GOOD)

    def test_every_refusal_has_its_own_reason(self):
        for collector, (code, result, words) in CODES.items():
            with self.subTest(collector):
                got = outcome(self.session, collector, ERRORS)
                self.assertEqual(got["result"], result)
                self.assertIn(words, got["detail"])
                self.assertIn(f"device {ERRORS}", got["detail"])
                self.assertIn(str(code), got["detail"])
                self.assertEqual(outcome(self.session, collector, GOOD)["result"], "running")
                states = {c["state"] for c in self.facts["channels"]
                          if (c["collector"], c["device"]) == (collector, ERRORS)}
                self.assertEqual(states, {result})

    def test_missing_card(self):
        self.assertIn("lost communication", self.during["problem"])
        got = outcome(self.during["session"], "hccs", MISSING)
        self.assertEqual(got["result"], "failed")
        self.assertIn("lost communication", got["detail"])
        self.assertEqual(outcome(self.during["session"], "hccs", GOOD)["result"], "running")
        self.assertEqual(self.value("atlas_npu_up", MISSING, self.during["metrics"]), 0)
        self.assertIsNone(self.value("atlas_npu_power_watts", MISSING, self.during["metrics"]))
        # Nothing of it could be collected: a refusal, with the reason.
        for answer in (self.during["start"], self.during["strict"]):
            self.assertEqual(answer.returncode, REFUSED, answer.stderr)
            self.assertIn(f"on device {MISSING}", answer.stdout + answer.stderr)

    def test_missing_card_returns(self):
        self.assertEqual(problem(self.d, MISSING), "")
        self.assertEqual(self.value("atlas_npu_up", MISSING), 1)
        for file, collector in (("hccs.data", "hccs"), ("hbm.data", "hbm"), ("pcie.data", "pcie")):
            found = self.assert_holes_told(self.final, self.dump, MISSING, file, collector)
            self.assertTrue(found, f"{file}: the card was gone")
        self.assert_serves(self.d, MISSING)

    def test_busy_channel_is_taken_when_it_is_free(self):
        self.assertEqual(outcome(self.session, "hccs", BUSY)["result"], "busy")
        self.assertIn("held by another process", outcome(self.session, "hccs", BUSY)["detail"])
        self.assertGreater(outcome(self.final, "hccs", BUSY)["records"], 0)
        gaps = entry(self.facts, "hccs", BUSY)["gaps"]
        self.assertEqual(len(gaps), 1, gaps)  # nothing before it was free
        self.assert_complete(self.dump, BUSY)

    def test_short_reads_lose_nothing(self):
        self.assert_complete(self.dump, SHORT)
        self.assertEqual(outcome(self.final, "hccs", SHORT)["garbage_bytes"], 0)

    def test_garbage_is_counted_and_left_out(self):
        for device in (JUNK, FLIP):
            with self.subTest(device):
                for collector in ("hccs", "pcie", "hbm"):
                    got = outcome(self.final, collector, device)
                    self.assertGreater(got["garbage_bytes"], 0)
                    self.assertGreater(got["records"], 0)
                    counted = self.value("profd_channel_garbage_bytes_total", device,
                                         channel=collector)
                    self.assertGreaterEqual(counted, got["garbage_bytes"])
                    self.assertGreater(
                        entry(self.facts, collector, device)["garbage_bytes"], 0)
        # Each channel of a collector has its own share in the manifest.
        shares = [c["garbage_bytes"] for c in self.facts["channels"]
                  if (c["collector"], c["device"]) == ("npu_mem", JUNK)]
        self.assertEqual(len(shares), 3)
        self.assertEqual(sum(shares), outcome(self.final, "npu_mem", JUNK)["garbage_bytes"])
        self.assertFalse(self.value("profd_channel_garbage_bytes_total", GOOD))
        # Junk comes after whole records, whose layout distinguishes them in binary channels.
        self.assert_complete(self.dump, JUNK, files=("hbm.data", "pcie.data"))

    def test_sick_device_shows_in_metrics(self):
        self.assertEqual(self.value("atlas_npu_up", SICK), 1)
        for name, labels, sick, good in (
                ("atlas_npu_health_status", {}, lambda v: v >= 2, lambda v: v == 0),
                ("atlas_npu_ecc_errors_total", {"memory": "hbm", "type": "single"},
                 lambda v: v == 40, lambda v: v == 0),
                ("atlas_npu_ecc_errors_total", {"memory": "hbm", "type": "double"},
                 lambda v: v == 2, lambda v: v == 0),
                ("atlas_npu_frequency_hertz", {"domain": "aicore"}, lambda v: v <= 700e6,
                 lambda v: v > 700e6),
                ("atlas_npu_throttle_reason", {"reason": "bit0"}, lambda v: v == 1, lambda v: not v),
                ("atlas_npu_hccs_retries_total", {"link": "1"}, lambda v: v > 0, lambda v: v == 0),
                ("atlas_npu_hccs_lanes_up", {"link": "1"}, lambda v: v < 4, lambda v: v == 4),
                ("atlas_npu_roce_retransmits_total", {}, lambda v: v > 0, lambda v: v == 0)):
            with self.subTest(name, **labels):
                self.assertTrue(sick(self.value(name, SICK, **labels)))
                self.assertTrue(good(self.value(name, GOOD, **labels)))
        self.assert_complete(self.dump, SICK)
        self.assert_complete(self.dump, DCMI)  # DCMI errors do not concern the channels

    def test_the_neighbour_has_everything(self):
        self.assert_complete(self.dump, GOOD)
        for got in self.final["outcomes"]:
            if got["device"] != GOOD:
                continue
            self.assertEqual((got["result"], got["detail"]), ("finished", ""))
            self.assertEqual((got["dropped_records"], got["garbage_bytes"]), (0, 0))
        for channel in self.facts["channels"]:
            if channel["device"] == GOOD:
                self.assertEqual(channel["gaps"], [], channel["collector"])


class NothingStarts(FaultCase):
    def test_busy_everywhere(self):
        with daemon(faults=[dict(kind="channel_busy", channel="hccs")]) as d:
            refused = d.run("start", "--collector", "hccs=50")
            self.assertEqual(refused.returncode, REFUSED)
            answer = json.loads(refused.stdout)["error"]
            self.assertIn("hccs on device 0", answer["message"])
            self.assertIn("hccs on device 1", answer["message"])
            self.assertIn("held by another process", answer["message"])
            eventually(lambda: os.listdir(d.dump_root) == [".state"], what="no dump of it is left")
            eventually(lambda: d.metric("profd_sessions_refused_total"), what="it is counted")
            strict = d.run("start", *START, "--require-all")
            self.assertEqual(strict.returncode, REFUSED)
            self.assertEqual(d.ctl("list", "--active")["sessions"], [])
            self.assert_clean_end(d)


class SlowStart(FaultCase):
    """One channel of a device takes long to start, so that the others begin long after their session."""

    def test_timestamps_since_a_channels_start_are_right(self):
        folder = temp_folder(self)
        script, starts = (os.path.join(folder, name) for name in ("script", "starts"))
        with open(script, "w", encoding="utf-8") as out:
            out.write("prof_drv_start 0 slow_start 1\n")  # HBM, the first of those requested
        with daemon(devices=1, library="scripted",
                    env={"PROFD_FAULT_SCRIPT": script, "PROFD_FAULT_STARTS": starts}) as d:
            session = start(d, "--collector", f"hbm={HZ}", "--collector", f"llc={HZ}",
                            "--collector", f"npu_mem={HZ}")
            eventually(lambda: all(outcome(d.show(session["session_id"]), name, 0)["records"] > 0
                                   for name in ("hbm", "llc", "npu_mem")))
            done = stop(d, session)
            facts, dump = manifest(done), read_dump(done)
            self.assert_clean_end(d)
        with open(starts, encoding="utf-8") as lines:
            began = {int(line.split()[1]): [int(ns) for ns in line.split()[2:]] for line in lines}
        to_wall = facts["session"]["start_wall_ns"] - facts["session"]["start_raw_ns"]
        for channel, file in ((8, "llc.data"), (131, "npu_mem.data")):
            # The first record is made one period after the driver began, which was during its call.
            first = dump.channel(file, 0).records[0].wall - to_wall - 1e9 / HZ
            before, after = began[channel]
            self.assertGreater(before, facts["session"]["start_raw_ns"] + 300_000_000)
            self.assertGreater(first, before - 1_000_000, file)
            self.assertLess(first, after + 1_000_000, file)


if __name__ == "__main__":
    profd_harness.main()
