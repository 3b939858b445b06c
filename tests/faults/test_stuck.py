"""A driver that does not come back: from any call for a card, or from stop."""

import signal
import time

import profd_harness
from fault_common import (FILES, HZ, OK, PARTIAL, REFUSED, START, FaultAhead, FaultCase, daemon, entry, manifest,
                          problem, read_dump, start, stop)
from profd_harness import eventually, outcome

STUCK_DEVICE, GOOD = 0, 1


def stuck(d, device, library="hal"):
    return d.metric("profd_device_stuck", npu=str(device), library=library)


def hang(at, seconds=None):
    end = {} if seconds is None else {"for_": profd_harness.scaled(seconds)}
    return [dict(kind="card_drop", mode="hang", at=at, device=STUCK_DEVICE, **end)]


def stop_hang(at, seconds=None):
    end = {} if seconds is None else {"for_": at + profd_harness.scaled(seconds)}
    return [dict(kind="stop_hang", channel="hccs", device=STUCK_DEVICE, **end)]


class HangingCard(FaultCase):
    def until_stuck(self, d):
        eventually(lambda: problem(d, STUCK_DEVICE), what="the hang is noticed")
        eventually(lambda: stuck(d, STUCK_DEVICE) == 1 and stuck(d, STUCK_DEVICE, "dcmi") == 1,
                   what="profd_device_stuck")

    def test_session_survives_and_data_resumes(self):
        with FaultAhead(lambda at: hang(at, 8), start) as (d, session):
            self.until_stuck(d)
            self.assertEqual(stuck(d, GOOD), 0)
            # The text is made once a second; whichever library noticed first is in it by then.
            eventually(lambda: f"device {STUCK_DEVICE} has not returned" in problem(d, STUCK_DEVICE),
                       what="the driver's call in the device's problem")
            view = d.show(session["session_id"])
            self.assertEqual(outcome(view, "hccs", STUCK_DEVICE)["result"], "failed")
            self.assertIn("has not returned", outcome(view, "hccs", STUCK_DEVICE)["detail"])
            self.assertEqual(outcome(view, "hccs", GOOD)["result"], "running")
            self.assertEqual(d.metric("atlas_npu_up", npu=str(STUCK_DEVICE)), 0)
            self.assertEqual(d.metric("atlas_npu_up", npu=str(GOOD)), 1)
            self.assert_serves(d, GOOD)
            # A session that begins meanwhile gets the card when it is back.
            late = start(d, expect=PARTIAL)
            self.assertEqual(outcome(late, "hccs", GOOD)["result"], "running")
            self.assertIn("has not returned", outcome(late, "hccs", STUCK_DEVICE)["detail"])

            eventually(lambda: problem(d, STUCK_DEVICE) == "", 60, what="the card is back")
            for one in (session, late):
                before = outcome(d.show(one["session_id"]), "hccs", STUCK_DEVICE)["records"]
                eventually(lambda: outcome(d.show(one["session_id"]), "hccs", STUCK_DEVICE)[
                    "records"] > before + HZ // 2, what="data flows again")
            eventually(lambda: stuck(d, STUCK_DEVICE) == 0 and stuck(d, STUCK_DEVICE, "dcmi") == 0)
            eventually(lambda: d.metric("atlas_npu_up", npu=str(STUCK_DEVICE)) == 1)
            for one in (session, late):
                done = stop(d, one)
                dump = read_dump(done)
                self.assert_complete(dump, GOOD)
                for file in FILES:
                    self.assert_holes_told(done, dump, STUCK_DEVICE, file, file.split(".")[0])
                listed = entry(manifest(done), "hccs", STUCK_DEVICE)
                self.assertGreaterEqual(listed["gap_count"], 1)
                self.assertEqual(listed["gaps"][0]["reason"], "channel_restart")
                self.assertEqual(entry(manifest(done), "hccs", GOOD)["gap_count"], 0)
            self.assert_clean_end(d)

    def test_idle_card_hangs(self):
        with daemon(faults=hang(profd_harness.scaled(1.5))) as d:
            eventually(lambda: stuck(d, STUCK_DEVICE, "dcmi") == 1, what="DCMI notices")
            # A machine under load may not have read the card once before it hung.
            eventually(lambda: d.metric("atlas_npu_up", npu=str(STUCK_DEVICE)) == 0, what="the hang in atlas_npu_up")
            self.assertEqual(d.metric("atlas_npu_up", npu=str(GOOD)), 1)
            partial = start(d, expect=PARTIAL)
            got = outcome(partial, "hccs", STUCK_DEVICE)
            self.assertEqual(got["result"], "failed")
            self.assertIn(f"device {STUCK_DEVICE}", got["detail"])
            refused = d.run("start", *START, "--devices", str(STUCK_DEVICE))
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            self.assertIn("has not returned", refused.stdout)
            stop(d, partial)
            self.assert_serves(d, GOOD)
            self.assert_clean_end(d)

    def test_dcmi_hangs_from_the_beginning(self):
        """Only this card is not there, and it is there when it answers."""
        faults = [dict(kind="card_drop", mode="dcmi_hang", device=1, for_=profd_harness.scaled(10))]
        begin = time.monotonic()
        with daemon(devices=3, faults=faults) as d:
            def up(npu):
                return d.metric("atlas_npu_up", npu=str(npu))
            eventually(lambda: up(0) == 1 and up(2) == 1, what="the other cards are up")
            self.assertLess(time.monotonic() - begin, profd_harness.scaled(5))
            eventually(lambda: stuck(d, 1, "dcmi") == 1, what="profd_device_stuck")
            self.assertEqual(up(1), 0)
            self.assertEqual(problem(d, 1), "npu 1 does not answer DCMI calls; retried every 30 s")
            self.assertEqual(problem(d, 0), "")
            self.assertIn("npu 1 does not answer DCMI calls", d.log())
            self.assertEqual(d.ctl("status")["driver"].get("dcmi_error", ""), "")
            self.assert_serves(d, 1)  # its channels work
            eventually(lambda: up(1) == 1, 60, what="the card is found")
            eventually(lambda: stuck(d, 1, "dcmi") == 0)
            eventually(lambda: problem(d, 1) == "", what="its health is judged anew")
            self.assertTrue(d.ctl("devices")["devices"][1]["uuid"])
            self.assert_clean_end(d)

    def test_hangs_from_the_beginning(self):
        """Neither library answers for one card: the others are profiled."""
        with daemon(devices=2, faults=hang(0)) as d:
            self.assertIn("did not answer the driver", problem(d, STUCK_DEVICE))
            self.assertIn("does not answer DCMI calls", problem(d, STUCK_DEVICE))
            self.assertEqual(problem(d, GOOD), "")
            self.assert_serves(d, GOOD)
            self.assert_clean_end(d)

    def test_stopped_while_it_hangs(self):
        with FaultAhead(hang, start) as (d, session):
            self.until_stuck(d)
            done = stop(d, session)
            self.assertEqual(done["state"], "done")
            self.assertEqual(outcome(done, "hccs", STUCK_DEVICE)["result"], "failed")
            self.assertEqual(outcome(done, "hccs", GOOD)["result"], "finished")
            facts = manifest(done)
            self.assertEqual(entry(facts, "hccs", STUCK_DEVICE)["state"], "failed")
            self.assertIn("has not returned", entry(facts, "hccs", STUCK_DEVICE)["detail"])
            self.assertTrue([w for w in facts["warnings"]
                             if w.startswith(f"device {STUCK_DEVICE} ")], facts["warnings"])
            dump = read_dump(done)
            self.assert_complete(dump, GOOD)
            self.assert_complete(dump, STUCK_DEVICE, at_least=1)
            self.assert_clean_end(d)

    def test_sigterm_while_it_hangs(self):
        with FaultAhead(hang, start) as (d, session):
            self.until_stuck(d)
            view = d.show(session["session_id"])
            self.assertEqual(d.stop(signal.SIGTERM, seconds=30), 0, d.log())
            self.assertEqual(manifest(view)["state"], "done")
            self.assertIn("stopping", manifest(view)["reason"])
            self.assert_complete(read_dump(view), GOOD)

    def test_hangs_at_the_very_beginning(self):
        """The first question to the driver is never answered: a node without devices, but a node."""
        with daemon(library="init_hangs") as d:
            status = d.ctl("status")
            self.assertIn("did not answer", status["driver"]["hal_error"])
            self.assertEqual(d.ctl("devices")["devices"], [])
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED)
            host = d.record("--collector", "host_cpu")
            self.assertEqual(host["state"], "done")
            self.assert_clean_end(d)


class HangingStop(FaultCase):
    def test_stop_ends_in_time_and_the_channel_recovers(self):
        with daemon(faults=stop_hang(0, 9)) as d:
            session = start(d)
            d.until_records(session["session_id"], 100)
            done = stop(d, session)
            self.assertEqual(done["state"], "done")
            warnings = manifest(done)["warnings"]
            self.assertTrue([w for w in warnings if "stopping channel hccs of device 0" in w],
                            warnings)
            self.assertFalse([w for w in warnings if w.startswith("device 1 ")], warnings)
            dump = read_dump(done)
            self.assert_complete(dump, GOOD)
            self.assert_complete(dump, STUCK_DEVICE)
            # What we could not stop ourselves is not reported as held by another process.
            again = start(d, expect=(OK, PARTIAL))
            got = outcome(again, "hccs", STUCK_DEVICE)
            if got["result"] != "running":
                self.assertEqual(got["result"], "failed")
                self.assertIn("stopping channel hccs", got["detail"])
            eventually(lambda: {outcome(d.show(again["session_id"]), c, STUCK_DEVICE)["result"]
                                for c in ("hccs", "pcie", "hbm")} == {"running"}, 60,
                       what="the channels are stopped and started again")
            d.until_records(again["session_id"], 100)
            self.assertEqual(outcome(stop(d, again), "hccs", STUCK_DEVICE)["result"], "finished")
            self.assert_clean_end(d)

    def test_only_its_channel_waits(self):
        with daemon(faults=stop_hang(0)) as d:
            session = start(d)
            d.until_records(session["session_id"], 100)
            done = stop(d, session)
            warnings = manifest(done)["warnings"]
            self.assertTrue([w for w in warnings if "stopping channel hccs of device 0" in w], warnings)
            self.assertFalse([w for w in warnings if "pcie" in w or "hbm" in w], warnings)
            again = start(d, expect=PARTIAL)
            for name in ("pcie", "hbm"):
                self.assertEqual(outcome(again, name, STUCK_DEVICE)["result"], "running")
            got = outcome(again, "hccs", STUCK_DEVICE)
            self.assertEqual(got["result"], "failed")
            self.assertIn("stopping channel hccs of device 0 has not returned", got["detail"])
            self.assertEqual(outcome(again, "hccs", GOOD)["result"], "running")
            self.assertEqual(problem(d, STUCK_DEVICE), "")
            d.until_records(again["session_id"], 100)
            dump = read_dump(stop(d, again))
            self.assert_complete(dump, GOOD)
            self.assert_complete(dump, STUCK_DEVICE, ("pcie.data", "hbm.data"))
            self.assert_clean_end(d)

    def test_sigterm_while_stop_hangs(self):
        with daemon(faults=stop_hang(0)) as d:
            session = start(d)
            d.until_records(session["session_id"], 100)
            waiting = d.spawn("stop", session["session_id"])
            eventually(lambda: d.show(session["session_id"])["state"] != "running",
                       what="the stop is under way")
            self.assert_serves_while_stopping(d)
            self.assertEqual(d.stop(signal.SIGTERM, seconds=40), 0, d.log())
            waiting.communicate(timeout=profd_harness.scaled(30))
            self.assertEqual(manifest(session)["state"], "done")
            self.assert_complete(read_dump(session), GOOD)

    def assert_serves_while_stopping(self, d):
        self.assertEqual(len(d.ctl("devices")["devices"]), 2)
        self.assertTrue(d.scrape())


if __name__ == "__main__":
    profd_harness.main()
