#!/usr/bin/env python3
"""Two hundred sessions in a row: nothing grows, nothing stays."""

import os
import shutil

from profd_harness import DaemonCase, eventually, is_sanitized, main

WARM_UP = 20
SESSIONS = 200
KEPT = 12
KINDS = (
    ("--devices", "0", "--sys-interconnection-freq", "50"),
    ("--devices", "1", "--collector", "hbm=100", "--collector", "llc=100"),
    ("--devices", "1", "--sys-io-sampling-freq", "100", "--host-sys-usage", "mem"),
    ("--devices", "0", "--dvpp-freq", "100", "--collector", "host_net=10"),
    ("--no-dump", "--devices", "0", "--sys-interconnection-freq", "50"),
)


class Endurance(DaemonCase):
    devices = 2
    config = {"limits": {"keep_finished": KEPT}}

    def one(self, number):
        daemon = self.daemon
        session = daemon.ctl("start", "--job", f"run-{number % 7}", *KINDS[number % len(KINDS)])
        if number % 10 == 0:
            daemon.until_records(session["session_id"], 1)
        final = daemon.ctl("stop", session["session_id"])["sessions"][0]
        self.assertEqual((final["state"], final["dropped_records"]), ("done", 0))
        self.finished.append(session["session_id"])
        if len(self.finished) == 10:
            daemon.ctl("rm", *self.finished)
            self.finished = []

    def facts(self):
        daemon = self.daemon
        daemon.scrape()
        return {"rss": daemon.rss(), "fds": daemon.fd_count(), "threads": daemon.thread_count(),
                "series": daemon.metric("profd_series")}

    def settled(self):
        """After connections, channels and buffers of the last session are gone."""
        eventually(lambda: self.daemon.metric("profd_rpc_connections") == 0)
        eventually(lambda: all(c["users"] == 0 for d in self.daemon.ctl("devices", "--channels")
                               ["devices"] for c in d["channels"]))
        return self.facts()

    def test_two_hundred_sessions(self):
        self.finished = []
        dumps = set(os.listdir(self.daemon.dump_root))
        for number in range(WARM_UP):
            self.one(number)
        before = self.settled()
        for number in range(WARM_UP, WARM_UP + SESSIONS):
            self.one(number)
        after = self.settled()
        self.assertEqual(set(os.listdir(self.daemon.dump_root)), dumps)
        self.assertEqual(self.daemon.ctl("list")["sessions"], [])
        # Descriptors and threads may breathe with gRPC's pools, not grow with sessions.
        self.assertLessEqual(after["fds"], before["fds"] + 5, (before, after))
        self.assertLessEqual(after["threads"], before["threads"] + 5, (before, after))
        # What the last ones measured leaves /metrics a while after them.
        eventually(lambda: self.facts()["series"] <= before["series"] + 20, 60, what=f"as few series: {before}, {after}")
        if not is_sanitized():
            # 40 KiB for each session would be a leak of one small object per collector.
            self.assertLess(after["rss"] - before["rss"], SESSIONS * 40 * 1024, (before, after))
        # The daemon's own figures are a second old at most.
        eventually(lambda: self.daemon.metric("profd_sessions", state="running") == 0,
                   what="no session is counted as running")

    def test_finished_sessions_are_forgotten(self):
        """keep_finished bounds the list; dumps stay on the disk."""
        dumps = []
        for _ in range(KEPT + 3):
            session = self.daemon.ctl("start", "--devices", "0", "--collector", "hccs")
            dumps.append(session["dump_path"])
            self.daemon.ctl("stop", session["session_id"])
        self.assertEqual(len(self.daemon.ctl("list")["sessions"]), KEPT)
        for path in dumps:
            self.assertTrue(os.path.isdir(path))
        for session in self.daemon.ctl("list")["sessions"]:
            self.daemon.ctl("rm", session["session_id"])

    def test_removed_while_listed(self):
        """A dump that was removed by hand does not keep its session from being removed."""

        session = self.daemon.record("--devices", "0", "--collector", "hccs", seconds=0.2)
        shutil.rmtree(session["dump_path"])
        self.daemon.ctl("fetch", session["session_id"], "--out", self.daemon.base, expect=(4, 5))
        self.daemon.ctl("rm", session["session_id"])
        self.daemon.ctl("show", session["session_id"], expect=4)


if __name__ == "__main__":
    main()
