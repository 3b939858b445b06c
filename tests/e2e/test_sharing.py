#!/usr/bin/env python3
"""Sessions that share the driver's channels: each gets its own rate, its own start and right
numbers, in any order of starting."""

import bisect

import prof_reader
from profd_harness import DaemonCase, eventually, main, outcome

# Correlating a device's clock twice gives two answers; both are good to some microseconds, and the
# simulator's clocks drift by tens of ppm.
CLOCK_SLACK_NS = 200_000


class Sharing(DaemonCase):
    devices = 3

    def tearDown(self):
        self.end_all()
        super().tearDown()

    def start(self, *options):
        return self.daemon.ctl("start", *options)

    def finish(self, *sessions):
        """Stops in this order; returns (session, dump) each."""
        result = []
        for session in sessions:
            self.daemon.ctl("stop", session["session_id"])
            final = self.daemon.show(session["session_id"])
            self.assertEqual(final["state"], "done")
            dump = prof_reader.read_valid(final["dump_path"])
            result.append((final, dump))
        return result

    def until(self, session, collector, device, records):
        def enough():
            return outcome(self.daemon.show(session["session_id"]), collector,
                           device)["records"] >= records

        eventually(enough, what=f"{collector} has {records} records")

    def count_same_instants(self, slow, fast, channel, device):
        """Both dumps hold records of one channel. Where the slow one's lie in the fast one's time, the
        fast one has a record at the same wall time: how many were compared."""
        walls = sorted(r.wall for r in fast[(device, channel)].records)
        compared = 0
        for record in slow[(device, channel)].records:
            if not walls[0] <= record.wall <= walls[-1]:
                continue
            at = bisect.bisect_left(walls, record.wall - CLOCK_SLACK_NS)
            self.assertLessEqual(abs(walls[at] - record.wall), CLOCK_SLACK_NS, (channel, compared))
            compared += 1
        return compared

    def test_slow_beside_fast(self):
        """Thinned: exactly the slow grid; joined late: timestamps from its own start; sums conserved."""
        fast = self.start("--job", "fast", "--devices", "0,1", "--sys-hardware-mem-freq", "100",
                          "--sys-interconnection-freq", "50")
        self.until(fast, "hbm", 1, 400)
        slow = self.start("--job", "slow", "--devices", "1,2", "--sys-hardware-mem-freq", "10",
                          "--sys-interconnection-freq", "10")
        self.until(slow, "hbm", 1, 8 * 12)
        self.until(slow, "hbm", 2, 8 * 12)
        (slow_s, slow_d), (fast_s, fast_d) = self.finish(slow, fast)

        joined, alone = outcome(slow_s, "hbm", 1), outcome(slow_s, "hbm", 2)
        self.assertEqual((joined["thinned"], joined["rebased"]), (True, True))
        self.assertFalse(alone["thinned"])
        self.assertEqual((joined["hz"], alone["hz"]), (10, 10))
        self.assertFalse(outcome(fast_s, "hbm", 1)["thinned"])

        # Exactly the grid, on the shared device and on the one of its own.
        for device in (1, 2):
            self.assertEqual(prof_reader.time_gaps(slow_d[(device, "hbm.data")].timestamps(), 100_000), [])
            self.assertEqual(
                prof_reader.time_gaps(slow_d[(device, "hccs.data")].timestamps(), 100_000_000), [])
            self.assertEqual(
                prof_reader.time_gaps(slow_d[(device, "pcie.data")].timestamps(), 100_000_000), [])
        for device in (0, 1):
            self.assertEqual(prof_reader.time_gaps(fast_d[(device, "hbm.data")].timestamps(), 10_000), [])
            self.assertEqual(
                prof_reader.time_gaps(fast_d[(device, "hccs.data")].timestamps(), 20_000_000), [])

        # Rebased: the first record is at most two of its periods from its own start.
        first = slow_d[(1, "hbm.data")].records[0]
        self.assertLess(first.timestamp, 250_000)
        self.assertGreater(fast_d[(1, "hbm.data")].records[-1].timestamp, 500_000)
        entry = next(c for c in slow_d.manifest["channels"]
                     if (c["collector"], c["device"]) == ("hbm", 1))
        self.assertTrue(entry["thinned"] and entry["rebased"])
        self.assertLess(entry["rebase_us"], 0)
        self.assertEqual((entry["hz_effective"], entry["channel_hz"]), (10, 100))
        self.assertGreater(entry["thinned_records"], 0)

        self.check_conservation(slow_d, fast_d)
        # The same instants have the same wall time in both dumps.
        for channel in ("hccs.data", "pcie.data", "qos.data", "npu_module_mem.data"):
            self.assertGreater(self.count_same_instants(slow_d, fast_d, channel, 1), 5, channel)
        # And where both have the record, it holds the same values.
        theirs = {r.timestamp: r.values for r in fast_d[(1, "hccs.data")].records}
        for record in slow_d[(1, "hccs.data")].records:
            self.assertEqual(theirs.get(record.timestamp), record.values)

    def test_microsecond_timestamps_agree(self):
        """Timestamps that count from a channel's start are rebased to each session's own start. How near to the
        truth the start is known depends on the machine's load, so one good try of several will do."""
        worst = {}
        for _ in range(5):
            fast = self.start("--devices", "0", "--sys-hardware-mem-freq", "100")
            self.until(fast, "hbm", 0, 8 * 10)
            slow = self.start("--devices", "0", "--sys-hardware-mem-freq", "50")
            self.until(slow, "hbm", 0, 8 * 20)
            (_, slow_d), (_, fast_d) = self.finish(slow, fast)
            worst = {channel: self.farthest(slow_d, fast_d, channel, 0)
                     for channel in ("hbm.data", "llc.data", "npu_mem.data")}
            if max(worst.values()) <= 1_000_000:
                return
        self.fail(f"instants differ by up to (ns): {worst}")

    def farthest(self, slow, fast, channel, device):
        """How far the slow dump's records lie from the nearest of the fast one's, at most."""
        walls = sorted(r.wall for r in fast[(device, channel)].records)
        inside = [r.wall for r in slow[(device, channel)].records if walls[0] <= r.wall <= walls[-1]]
        self.assertGreater(len(inside), 5)
        return max(min(abs(wall - other) for other in walls) for wall in inside)

    def check_conservation(self, slow, fast):
        """Between two kept timestamps the slow dump's count is the sum of the fast one's."""
        slow_by, fast_by = (next(c["rebase_us"] for c in dump.manifest["channels"]
                                 if (c["collector"], c["device"]) == ("hbm", 1))
                            for dump in (slow, fast))
        checked = 0
        for key, records in slow[(1, "hbm.data")].series().items():
            # Both files count microseconds of one channel: the manifest says how far apart.
            series = fast[(1, "hbm.data")].series()[key]
            for before, record in zip(records, records[1:]):
                low = before.timestamp - slow_by + fast_by
                high = record.timestamp - slow_by + fast_by
                parts = [r.values["count"] for r in series if low < r.timestamp <= high]
                self.assertEqual(len(parts), 10)
                self.assertEqual(sum(parts), record.values["count"], key)
                checked += 1
        self.assertGreater(checked, 50)

    def test_rates_that_do_not_divide(self):
        fast = self.start("--devices", "0", "--sys-hardware-mem-freq", "50")
        slow = self.start("--devices", "0", "--sys-hardware-mem-freq", "20")
        self.until(slow, "hbm", 0, 8 * 15)
        (_, slow_d), (_, fast_d) = self.finish(slow, fast)
        timestamps = slow_d[(0, "hbm.data")].timestamps()
        # Each kept record is the nearest to a point of the 50 ms grid, never further than half a step.
        for index, timestamp in enumerate(timestamps):
            self.assertLessEqual(abs(timestamp - timestamps[0] - index * 50_000), 10_001, timestamps[:9])
        self.assertEqual(prof_reader.time_gaps(fast_d[(0, "hbm.data")].timestamps(), 20_000), [])

    def test_records_thinning_leaves_out_are_not_lost(self):
        """12 ms out of 10 ms: neighbours are 10 or 20 ms apart, and nothing is lost."""
        fast = self.start("--devices", "0", "--collector", "nic=100", "--collector", "hccs=50")
        slow = self.start("--devices", "0", "--collector", "nic=83", "--collector", "hccs=30")
        self.until(slow, "nic", 0, 300)
        self.assertTrue(outcome(self.daemon.show(slow["session_id"]), "nic", 0)["thinned"])
        for final, dump in self.finish(slow, fast):
            verified = self.daemon.run("verify", final["dump_path"])
            self.assertEqual(verified.returncode, 0, verified.stdout)
            for channel in dump.manifest["channels"]:
                self.assertEqual((channel["dropped"], channel["gaps"]), ([], []), channel["collector"])

    def test_faster_newcomer(self):
        """The channel is restarted for the newcomer; both dumps stay right, the first says its gap."""
        slow = self.start("--devices", "0", "--sys-interconnection-freq", "10",
                          "--sys-hardware-mem-freq", "10")
        self.until(slow, "hbm", 0, 8 * 5)
        fast = self.start("--devices", "0", "--sys-interconnection-freq", "50",
                          "--sys-hardware-mem-freq", "100")
        at = self.daemon.show(slow["session_id"])
        self.until(slow, "hbm", 0, outcome(at, "hbm", 0)["records"] + 8 * 8)
        self.until(fast, "hbm", 0, 8 * 60)
        (fast_s, fast_d), (slow_s, slow_d) = self.finish(fast, slow)
        self.assertEqual(prof_reader.time_gaps(fast_d[(0, "hbm.data")].timestamps(), 10_000), [])
        self.assertEqual(prof_reader.time_gaps(fast_d[(0, "hccs.data")].timestamps(), 20_000_000), [])
        self.assertFalse(outcome(fast_s, "hbm", 0)["thinned"])
        self.assertTrue(outcome(slow_s, "hbm", 0)["thinned"])
        # One break in the slow one's grid, nothing out of order, walls agree after it.
        for name, period in (("hbm.data", 100_000), ("hccs.data", 100_000_000)):
            timestamps = slow_d[(0, name)].timestamps()
            odd = [step for step in prof_reader.steps(timestamps) if abs(step - period) > period / 4]
            self.assertLessEqual(len(odd), 1, name)
        for name in ("hccs.data", "qos.data"):
            self.assertGreater(self.count_same_instants(slow_d, fast_d, name, 0), 5)
        # HBM counts are per interval: the first record after the break covers only its own.
        rate = [r.values["count"] for r in slow_d[(0, "hbm.data")].records]
        self.assertLess(max(rate), 4e12 / 32 * 0.3)

    def test_llc_conflict(self):
        """Reads and writes cannot be counted at once: the second is refused with the session that counts."""
        first = self.start("--label", "reads", "--devices", "0", "--sys-hardware-mem-freq", "10",
                           "--llc-profiling", "read")
        second = self.daemon.ctl("start", "--devices", "0,1", "--sys-hardware-mem-freq", "10",
                                 "--llc-profiling", "write", expect=5)
        busy = outcome(second, "llc", 0)
        self.assertEqual(busy["result"], "busy")
        self.assertIn(first["session_id"], busy["detail"])
        self.assertEqual(outcome(second, "llc", 1)["result"], "running")
        self.assertEqual(outcome(second, "hbm", 0)["result"], "running")
        self.assertTrue(second["partial"])
        refused = self.daemon.run("start", "--devices", "0", "--sys-hardware-mem-freq", "10",
                                  "--llc-profiling", "write", "--require-all")
        self.assertEqual(refused.returncode, 3)
        self.assertIn(first["session_id"], refused.stdout + refused.stderr)
        # The same direction is not a conflict.
        third = self.start("--devices", "0", "--sys-hardware-mem-freq", "10", "--llc-profiling",
                           "read")
        self.until(first, "llc", 0, 16 * 3)
        self.until(third, "llc", 0, 16 * 3)
        self.finish(third, second, first)

    def test_session_without_dump_lends_its_channels(self):
        quiet = self.start("--no-dump", "--devices", "0", "--sys-interconnection-freq", "50")
        self.assertEqual(quiet["dump_path"], "")
        loud = self.start("--devices", "0", "--sys-interconnection-freq", "50")
        self.until(loud, "hccs", 0, 20)
        self.daemon.ctl("stop", quiet["session_id"])
        records = outcome(self.daemon.show(loud["session_id"]), "hccs", 0)["records"]
        self.until(loud, "hccs", 0, records + 20)
        ((_, dump),) = self.finish(loud)
        self.assertEqual(prof_reader.time_gaps(dump[(0, "hccs.data")].timestamps(), 20_000_000), [])
        self.daemon.ctl("fetch", quiet["session_id"], expect=4)

    def test_many_at_one_channel(self):
        """Sixteen sessions with rates of their own on one device; every one has its grid."""
        rates = [1, 2, 4, 5, 10, 20, 25, 50] * 2
        sessions = [self.start("--devices", "0", "--collector", f"hccs={hz}") for hz in rates]
        self.until(sessions[0], "hccs", 0, 2)
        status = self.daemon.ctl("devices")["devices"][0]
        hccs = next(c for c in status["channels"] if c["name"] == "hccs")
        self.assertEqual((hccs["users"], hccs["hz"]), (16, 50))
        for session, hz in zip(sessions, rates):
            ((final, dump),) = self.finish(session)
            if session in sessions[8:]:  # started when the channel already ran at 50 Hz
                timestamps = dump[(0, "hccs.data")].timestamps()
                self.assertEqual(prof_reader.time_gaps(timestamps, 1_000_000_000 // hz), [], hz)
            self.assertEqual(final["dropped_records"], 0)
        status = self.daemon.ctl("devices")["devices"][0]
        hccs = next(c for c in status["channels"] if c["name"] == "hccs")
        self.assertEqual((hccs["users"], hccs["state"]), (0, "idle"))


if __name__ == "__main__":
    main()
