#!/usr/bin/env python3
"""profctl channels: driver channels that are released to other tools for a time."""

import unittest

from profd_harness import ALICE, BOB, IS_ROOT, TEST_GROUP, Daemon, eventually, group_id, main, outcome
from text_files import read_json

USAGE, REFUSED, PARTIAL = 2, 3, 5


def daemon(devices, **config):
    return Daemon(f"devices = {devices}\n", config={"dump": {"flush_interval_ms": 100}, **config})


def gaps(dump):
    """(collector, device): reasons of its gaps."""
    channels = read_json(dump, "profd_manifest.json")["channels"]
    return {(one["collector"], one["device"]): [gap["reason"] for gap in one["gaps"]] for one in channels}


def states(d, device=0):
    listed = d.ctl("channels")["devices"][device]["channels"]
    return {one["name"]: one["state"] for one in listed if one["name"]}


def outcome_now(d, session, collector, device=0):
    return outcome(d.show(session), collector, device)


class Channels(unittest.TestCase):
    def test_a_session_has_a_gap_and_continues(self):
        with daemon(devices=2) as d:
            session = d.ctl("start", "--devices", "0,1", "--collector", "hbm=20", "--collector", "hccs=20",
                            "--detach")["session_id"]
            eventually(lambda: outcome_now(d, session, "hbm")["records"] > 20, what="records")
            released = d.ctl("channels", "release", "hbm", "--devices", "0", "--for", "30s")["released"]
            self.assertEqual([(one["device"], one["name"], one["sessions"], one["problem"]) for one in released],
                             [(0, "hbm", [session], "")])
            self.assertEqual(states(d)["hbm"], "released")
            self.assertEqual(states(d)["hccs"], "running")
            self.assertEqual(states(d, 1)["hbm"], "running")
            busy = outcome_now(d, session, "hbm")
            self.assertEqual(busy["result"], "busy")
            self.assertIn("released to other tools by uid", busy["detail"])
            # The driver has stopped it: another tool can have it, and nothing more comes to profd.
            held = busy["records"]
            other = outcome_now(d, session, "hbm", 1)["records"]
            eventually(lambda: outcome_now(d, session, "hbm", 1)["records"] > other + 20, what="the other device")
            self.assertEqual(outcome_now(d, session, "hbm")["records"], held)
            acquired = d.ctl("channels", "acquire", "--devices", "0")["acquired"]
            self.assertEqual([one["name"] for one in acquired], ["hbm"])
            eventually(lambda: outcome_now(d, session, "hbm")["records"] > held + 20, what="records again")
            d.ctl("stop", session)
            dump = d.show(session)["dump_path"]
            d.ctl("verify", dump)
            self.assertEqual(gaps(dump), {("hbm", 0): ["channel_released"], ("hbm", 1): [], ("hccs", 0): [],
                                          ("hccs", 1): []})

    def test_released_to_the_end_of_the_session(self):
        with daemon(devices=1) as d:
            session = d.ctl("start", "--all", "--collector", "hbm=20", "--detach")["session_id"]
            eventually(lambda: outcome_now(d, session, "hbm")["records"] > 10, what="records")
            d.ctl("channels", "release", "1", "--devices", "0")
            d.ctl("stop", session)
            dump = d.show(session)["dump_path"]
            d.ctl("verify", dump)
            self.assertEqual(gaps(dump), {("hbm", 0): ["channel_released"]})

    def test_a_dump_of_the_recorder_has_a_gap(self):
        with daemon(devices=1, recorder={"enabled": True, "collectors": ["hbm=20", "hccs=20"]}) as d:
            def held():
                return d.ctl("status")["recorder"]["held_ns"] / 1e9

            eventually(lambda: held() > 1, what="a recorded second")
            d.ctl("channels", "release", "hbm", "--devices", "0")
            until = held() + 9
            eventually(lambda: held() > until, seconds=60, what="9 s without hbm")
            dump = d.ctl("dump")["dump_path"]
            d.ctl("verify", dump)
            self.assertEqual(gaps(dump), {("hbm", 0): ["channel_silent"], ("hccs", 0): []})

    @unittest.skipUnless(IS_ROOT, "needs root to be two users")
    def test_users(self):
        group = group_id()
        with daemon(devices=1, daemon={"socket_group": TEST_GROUP}) as d:
            alice = {"user": ALICE, "groups": (group,)}
            bob = {"user": BOB, "groups": (group,)}
            d.ctl("start", "--devices", "0", "--collector", "hbm=10", "--detach", **alice)
            refused = d.run("channels", "release", "hbm", "--devices", "0", **bob)
            self.assertEqual(refused.returncode, REFUSED)
            self.assertIn("only an administrator", refused.stderr)
            self.assertEqual(states(d)["hbm"], "running")
            d.ctl("channels", "release", "hbm", "--devices", "0", **alice)
            self.assertEqual(d.run("channels", "acquire", "hbm", "--devices", "0", **bob).returncode, REFUSED)
            self.assertEqual(states(d)["hbm"], "released")

    def test_it_survives_the_daemon_and_ends_by_itself(self):
        with daemon(devices=1) as d:
            d.ctl("channels", "release", "hbm", "--devices", "0", "--for", "20s")
            d.ctl("channels", "release", "hccs", "--devices", "0", "--for", "2s")
            d.restart()
            self.assertEqual(states(d)["hbm"], "released")
            eventually(lambda: states(d)["hccs"] == "idle", what="the end of two seconds")
            session = d.ctl("start", "--devices", "0", "--collector", "hbm=10", "--collector", "hccs=10",
                            "--detach", expect=PARTIAL)["session_id"]
            self.assertEqual(outcome_now(d, session, "hbm")["result"], "busy")
            self.assertEqual(outcome_now(d, session, "hccs")["result"], "running")

    def test_wrong_arguments(self):
        with daemon(devices=1) as d:
            for arguments, says in ((("release",), "--devices"), (("release", "nonsense", "--devices", "0"), "nonsense"),
                                    (("release", "--devices", "0", "--for", "soon"), "--for")):
                wrong = d.run("channels", *arguments)
                self.assertEqual(wrong.returncode, USAGE, wrong.stderr)
                self.assertIn(says, wrong.stderr)
            self.assertEqual(d.run("channels", "release", "--devices", "5").returncode, REFUSED)


if __name__ == "__main__":
    main()
