#!/usr/bin/env python3
"""Finished sessions go into ClickHouse by themselves: [archive], profctl archive as a user without rights, and a real server."""

import contextlib
import json
import os
import signal
import time
import unittest

from clickhouse_server import PASSWORD, USER, Gate, needs_engine, needs_server, started
from free_ports import free_ports
from profd_harness import (ALICE, BOB, IS_ROOT, TEST_GROUP, Daemon, eventually, group_id, main, scaled,
                           temp_folder)
from text_files import files_below
from toml_files import merged, scenario_text

OK, REFUSED, PARTIAL, UNREACHABLE = 0, 3, 5, 6
MB = 1 << 20
MUCH = ["--sys-hardware-mem-freq", "100", "--sys-interconnection-freq", "50", "--host-sys-usage", "cpu,mem"]
ENV = {**os.environ, "PROFCTL_CLICKHOUSE_USER": USER, "PROFCTL_CLICKHOUSE_PASSWORD": PASSWORD}


@needs_engine
class ArchiveCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = temp_folder(cls)
        os.chmod(cls.folder, 0o755)
        cls.server = started(cls, cls.folder)

    def setUp(self):
        self.database = self.id().rsplit(".", 1)[1]
        self.work = os.path.join(self.folder, "work-" + self.database)
        os.mkdir(self.work, 0o700)
        self.how = {}
        if IS_ROOT:
            os.chown(self.work, ALICE, ALICE)
            self.how = {"user": ALICE, "groups": [group_id()]}
        self.output = os.path.join(self.folder, "out-" + self.database)

    def url(self, port=None):
        return f"clickhouse://127.0.0.1:{port or self.server.http}/{self.database}"

    def config(self, port=None, more=None, **archive):
        config = {"dump": {"flush_interval_ms": 100},
                  "archive": {"to": self.url(port), "retry_first_s": 1, "retry_longest_s": 1, **archive}}
        if IS_ROOT:
            config["daemon"] = {"socket_group": TEST_GROUP}
            config["archive"]["user"] = str(ALICE)
        return merged(config, more or {})

    def daemon(self, devices=2, **how):
        return Daemon(scenario_text=scenario_text(devices=devices), config=self.config(**how))

    def reload(self, d, **how):
        """Another configuration of a running daemon."""
        before = d.log(10_000).count("configuration reloaded")
        d.write_config(self.config(**how))
        os.kill(d.pid, signal.SIGHUP)
        eventually(lambda: d.log(10_000).count("configuration reloaded") > before, what="the configuration is reloaded")

    @contextlib.contextmanager
    def companion(self, d):
        with open(self.output, "ab") as out:
            process = d.spawn("archive", "--work-dir", self.work, "--every", "200ms", env=ENV, stdout=out, stderr=out, **self.how)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                self.assertIn(process.wait(scaled(30)), (OK, PARTIAL), self.said())

    def said(self):
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]

    def once(self, d, expect=OK, **how):
        """profctl archive --once: what became of each dump."""
        done = d.run("archive", "--once", "--work-dir", self.work, env=ENV, **{**self.how, **how})
        self.assertIn(done.returncode, expect if isinstance(expect, tuple) else (expect,), done.stdout + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def once_due(self, d):
        """The same, when the pause after a failure is over, or the end of the process that had it is noticed."""
        eventually(lambda: self.once(d, expect=(OK, PARTIAL)), what="it is due again")

    def record(self, d, label="", seconds=1.0, **how):
        """A finished session's dump, by name."""
        session = d.record(*MUCH, "--all", "--job", "train", *(["--label", label] if label else []), seconds=seconds, expect=(OK, PARTIAL), **how)
        name = os.path.basename(session["dump_path"])
        eventually(lambda: self.dump(d, name)["state"] == "done", what="the dump is complete")
        return name

    def dump(self, d, name):
        return next((dump for dump in d.ctl("list", "--dumps")["dumps"] if dump["name"] == name), None)

    def state(self, d, name):
        return (self.dump(d, name).get("archive") or {}).get("state")

    def until_archived(self, d, *names):
        try:
            eventually(lambda: all(self.state(d, name) == "loaded" for name in names), seconds=90, what="the dumps are archived")
        except AssertionError as error:
            raise AssertionError(f"{error}: {d.ctl('list', '--dumps')} {self.said()}") from error

    def committed(self):
        """run: {who: rows}, of loads that count."""
        runs = {}
        for run, who, rows in self.server.rows(f"SELECT run, who, argMax(row_count, load) FROM {self.database}.loads WHERE state = 1 GROUP BY run, who"):
            runs.setdefault(run, {})[who] = int(rows)
        return runs

    def assert_once(self, d, *names):
        """Each dump is in the database, in full and once."""
        committed = self.committed()
        self.assertEqual(len(committed), len(names))
        for name in names:
            archive = self.dump(d, name)["archive"]
            self.assertEqual(sum(committed[archive["run"]].values()), int(archive["rows"]))
            counted = self.server.number(
                f"SELECT count() FROM {self.database}.samples WHERE run = '{archive['run']}' AND load IN (SELECT max(load) FROM "
                f"{self.database}.loads WHERE run = '{archive['run']}' AND state = 1 GROUP BY who)")
            self.assertGreater(counted, 0)

    def lost(self, d, reason):
        return d.metric("profd_archive_lost_total", reason=reason) or 0


class Loading(ArchiveCase):
    def test_sessions_end_up_in_the_database(self):
        with self.daemon() as d:
            self.assertEqual(d.ctl("status")["archive"]["waiting"], 0)
            with self.companion(d):
                first = self.record(d)
                second = self.record(d, label="second")
                self.until_archived(d, first, second)
                self.assert_once(d, first, second)
            listed = d.ctl("list", "--dumps")["dumps"]
            self.assertEqual([dump["archive"]["run"] for dump in listed], [f"{dump['uid']}-train-{dump['session_id']}" for dump in listed])
            self.assertIn("archived", d.run("list", "--dumps", json_output=False).stdout)
            status = d.ctl("status")["archive"]
            self.assertEqual((status["loaded"], status["waiting"], status["lost"]), (2, 0, 0))
            self.assertIn("2 loaded into clickhouse://", d.run("status", json_output=False).stdout)
            eventually(lambda: d.metric("profd_archive_loaded_total") == 2)
            self.assertEqual(d.metric("profd_archive_waiting_dumps"), 0)
            self.assertEqual(d.metric("profd_archive_oldest_waiting_seconds"), 0)
            self.assertEqual(os.listdir(os.path.join(self.work)), ["lock"], "nothing of a dump stays")
            # The analyses read it, and a new daemon does not load it again.
            answer = d.run("analyze", "--from", self.url(), "--run", listed[0]["archive"]["run"], env=ENV)
            self.assertEqual(answer.returncode, OK, answer.stderr)
            d.restart()
            self.assertEqual(self.once(d), [])
            self.assertEqual(self.state(d, first), "loaded")
            self.assertNotIn("not_archived", json.dumps(d.ctl("rm", first)))

    def test_another_database(self):
        """What went where is known after archive.to was changed, and of a damaged dump what is wrong with it."""
        with self.daemon() as d:
            first = self.record(d, seconds=0.5)
            self.assertTrue(self.once(d)[0]["loaded"])
            before = self.database
            self.assertEqual(self.server.rows(f"SELECT DISTINCT path FROM {before}.loads"), [[first]])
            self.database += "_2"
            self.reload(d)
            second = self.record(d, seconds=0.5)
            largest = max((path for path in files_below(d.dump_root, second) if "hbm.data" in path and not path.endswith(".done")),
                          key=os.path.getsize)
            os.truncate(largest, os.path.getsize(largest) // 2)
            done, = self.once(d)
            self.assertIn("hbm.data: damaged", done["damage"])
            for restart in (False, True):
                if restart:
                    d.restart()
                to = [self.dump(d, name)["archive"]["to"] for name in (first, second)]
                self.assertEqual(to, [f"clickhouse://127.0.0.1:{self.server.http}/{name}" for name in (before, self.database)])
                self.assertIn("could not be read", self.dump(d, second)["archive"]["problem"])
                self.assertIn("could not be read", d.run("list", "--dumps", json_output=False).stdout)
                if not restart:
                    status = d.run("status", json_output=False).stdout
                    for name in (before, self.database):
                        self.assertIn(f"; 1 loaded into clickhouse://127.0.0.1:{self.server.http}/{name}", status + ";")
            self.assertIn(f"problem.{second}/device_", json.dumps(self.server.rows(f"SELECT name FROM {self.database}.facts WHERE name LIKE 'problem.%'")))

    def test_a_session_that_is_resumed_replaces_nothing(self):
        with self.daemon() as d:
            session = d.ctl("start", *MUCH, "--all", "--job", "train", expect=(OK, PARTIAL))["session_id"]

            def on_disk():
                return sum(os.path.getsize(path) for path in files_below(d.show(session)["dump_path"]) if "hbm.data" in path)

            # Something of each segment has reached the disk.
            eventually(lambda: on_disk() > 20_000, what="records are written")
            d.kill()
            d.start()
            eventually(lambda: on_disk() > 20_000, what="records are written again")
            d.ctl("stop", session, expect=(OK, PARTIAL))
            names = [os.path.basename(segment["dump_path"]) for segment in d.show(session)["segments"]]
            self.assertEqual(len(names), 2)
            eventually(lambda: all(self.state(d, name) == "waiting" for name in names), what="both wait")
            done = self.once(d)
            self.assertEqual([each["loaded"] for each in done], [True, True], done)
            self.assertEqual(sorted(self.committed()), sorted([done[0]["run"], done[0]["run"] + ".2"]))
            self.assert_once(d, *names)

    def test_the_recorders_own_limit_leaves_what_waits(self):
        def how(number):
            return {"which": ["recorder"], "more": {"recorder": {
                "enabled": True, "collectors": ["hbm=10", "host_mem=1"], "seconds": 5, "memory_mb": 4, "dump_seconds": 1,
                "triggers": [f"atlas_host_load1 < {100_000 + number}"], "cooldown_s": 0, "max_dumps": 1}}}

        with self.daemon(**how(-100_000)) as d:
            def states():
                return [dump["archive"]["state"] for dump in d.ctl("list", "--dumps")["dumps"] if dump["archive"]]

            # A dump of nothing would not be loaded.
            eventually(lambda: all(channel["bytes"] > 0 for channel in d.ctl("status")["recorder"]["channels"]), what="the recorder has data")
            self.reload(d, **how(0))
            # A condition that always holds fires once; another one begins anew.
            for number in (1, 2, 3):
                eventually(lambda least=number: states().count("waiting") >= least, what=f"{number} dumps of triggers wait")
                self.reload(d, **how(number))
            eventually(lambda: states().count("waiting") == 4, what="four dumps of triggers wait")
            done = self.once(d)
            self.assertEqual([each["loaded"] for each in done], [True] * 4, done)
            # With the next one those that are loaded go.
            self.reload(d, **how(4))
            eventually(lambda: states() == ["waiting"], what="the recorder's limit holds again")
            self.assertEqual(self.lost(d, "request"), 0)
            self.assertIsNone(self.dump(d, self.record(d, seconds=0.3))["archive"], "a session's is not meant")

    def test_the_limit_of_bytes_per_second(self):
        with self.daemon(mb_per_s=1) as d:
            name = self.record(d, seconds=0.2)
            size = self.dump(d, name)["bytes"]
            done, = self.once(d)
            self.assertTrue(done["loaded"], done)
            # What is announced of the dump may be less than it is, never more than a quarter: a lower bound of what was moved.
            self.assertGreaterEqual(done["seconds"], (0.75 * size + done["bytes"]) / MB, (done, size))


class Failures(ArchiveCase):
    def test_waiting_dumps_are_kept_although_the_quota_is_small(self):
        dead = free_ports(1)[0]
        how = {"which": ["label=keep"], "more": {"dump": {"flush_interval_ms": 100, "max_total_mb": 16}}}
        with self.daemon(devices=8, port=dead, **how) as d, self.companion(d):
            kept = self.record(d, label="keep")
            eventually(lambda: (d.metric("profd_archive_failures_total", reason="unreachable") or 0) >= 2, what="it is tried again")
            for _ in range(30):
                self.record(d, label="other")
                if (d.metric("profd_dumps_removed_total", reason="max_total") or 0) >= 2:
                    break
            self.assertGreaterEqual(d.metric("profd_dumps_removed_total", reason="max_total"), 2, "the quota removed younger ones")
            self.assertEqual(self.state(d, kept), "waiting")
            self.assertIn("unreachable", self.dump(d, kept)["archive"]["problem"])
            self.assertIn("failing for", d.run("status", json_output=False).stdout)
            self.assertEqual(self.lost(d, "max_total"), 0)
            self.assertGreater(d.metric("profd_archive_oldest_waiting_seconds"), 0)
            self.assertEqual(d.metric("profd_archive_waiting_dumps"), 1)
            # It continues where the server is said to be now.
            self.reload(d, **how)
            self.until_archived(d, kept)
            self.assertNotIn("failing for", d.run("status", json_output=False).stdout)
            # Nothing protects it any more.
            for _ in range(30):
                self.record(d, label="other")
                if self.dump(d, kept) is None:
                    break
            self.assertIsNone(self.dump(d, kept))
            self.assertEqual(self.lost(d, "max_total"), 0)

    @needs_server
    def test_a_database_that_refuses_is_not_reported_as_unreachable(self):
        with self.daemon(cluster="nowhere") as d:
            name = self.record(d, seconds=0.3)
            done, = self.once(d, expect=PARTIAL)
            self.assertIn("cluster 'nowhere' not found", done["problem"])
            self.assertIn("refused: ", self.dump(d, name)["archive"]["problem"])
            eventually(lambda: d.metric("profd_archive_failures_total", reason="refused") == 1)

    def test_killed_in_the_middle(self):
        with self.daemon(devices=8, mb_per_s=1) as d:
            name = self.record(d, seconds=3.0)
            self.assertGreater(self.dump(d, name)["bytes"], 2 * MB, "it takes seconds")
            folder = os.path.join(self.work, "dumps")

            def fetching():
                """The files that are there, by what no other file has."""
                found = set()
                for path in files_below(folder):
                    with contextlib.suppress(OSError):
                        status = os.stat(path)
                        found.add((status.st_ino, status.st_ctime_ns))
                return found

            # The companion, while it fetches.
            with self.companion(d) as process:
                eventually(fetching, what="it is being fetched")
                process.kill()
                process.wait(scaled(30))
                left = fetching()
                self.assertTrue(left, "it was killed in the middle")
            self.assertEqual(self.state(d, name), "waiting")
            # The daemon, while it is fetched by the next one.
            with self.companion(d):
                eventually(lambda: (now := fetching()) and not now & left, what="it is fetched anew, and what the first one left is gone",
                           every=0.001)
                d.kill()
                d.start()
                self.assertEqual(self.state(d, name), "waiting")
            # And another one while it sends rows: the server does not answer after the first rank's beginning.
            gate = Gate(self.server.http, statements=11)
            self.addCleanup(gate.stop)
            self.reload(d, port=gate.port)
            with self.companion(d) as process:
                self.assertTrue(gate.held.wait(scaled(60)), self.said())
                process.kill()
                process.wait(scaled(30))
            self.assertGreater(self.server.number(f"SELECT count() FROM {self.database}.loads WHERE state = 0"), 0, "it had begun")
            self.assertEqual(self.committed(), {})
            self.reload(d)
            self.once_due(d)
            self.assertEqual(self.state(d, name), "loaded")
            self.assert_once(d, name)
            self.assertEqual(self.once(d), [])

    def test_a_report_waits_for_the_daemon(self):
        gate = Gate(self.server.http, statements=1000)
        self.addCleanup(gate.stop)
        with self.daemon(port=gate.port) as d:
            name = self.record(d)
            with self.companion(d):
                eventually(lambda: self.server.rows(f"SELECT count() FROM system.tables WHERE database = '{self.database}' AND name = 'loads'") == [["1"]]
                           and self.committed(), what="it is loaded", every=0.001)
                d.kill()
                time.sleep(0.5)
                d.start()
                self.until_archived(d, name)
            self.assert_once(d, name)

    def test_beyond_its_bound_the_oldest_lose_their_protection(self):
        with self.daemon(max_waiting=2) as d:
            names = [self.record(d, seconds=0.3) for _ in range(3)]
            self.assertEqual([self.state(d, name) for name in names], ["lost", "waiting", "waiting"])
            self.assertIn("archive.max_waiting", self.dump(d, names[0])["archive"]["problem"])
            eventually(lambda: self.lost(d, "max_waiting") == 1)
            self.assertIn("waits for the database no longer", d.log())
            self.assertIn("profctl archive has not connected yet", d.run("status", json_output=False).stdout)
            # Its owner may remove what waits, and is warned.
            removed = d.run("rm", names[1])
            self.assertEqual(removed.returncode, OK)
            self.assertIn("was not in the database yet", removed.stderr)
            self.assertEqual(json.loads(removed.stdout)["removed"][0]["not_archived"], [names[1]])
            eventually(lambda: self.lost(d, "request") == 1)
            d.kill()
            d.start()
            self.assertEqual([self.state(d, names[0]), self.state(d, names[2])], ["lost", "waiting"])
            self.assertEqual([each["dump"] for each in self.once(d)], [names[2]])

    def test_a_wrong_password(self):
        with self.daemon() as d:
            name = self.record(d, seconds=0.3)
            wrong = {**ENV, "PROFCTL_CLICKHOUSE_PASSWORD": "wrong"}
            done = d.run("archive", "--once", "--work-dir", self.work, env=wrong, **self.how)
            self.assertEqual(done.returncode, PARTIAL, done.stdout + done.stderr)
            self.assertNotIn(PASSWORD, done.stdout + done.stderr + d.log())
            self.assertEqual(self.state(d, name), "waiting")
            eventually(lambda: d.metric("profd_archive_failures_total", reason="denied") == 1)
            self.once_due(d)
            self.assertEqual(self.state(d, name), "loaded")


@unittest.skipUnless(IS_ROOT, "needs root to become another user")
class Rights(ArchiveCase):
    def test_the_archive_user_may_do_nothing_else(self):
        with self.daemon(which=["label=keep"]) as d:
            waits = self.record(d, label="keep", seconds=0.3)
            private = self.record(d, label="other", seconds=0.3)
            groups = [group_id()]
            # Another user has no order and reports nothing; work is not even begun.
            bobs = os.path.join(self.folder, "bobs")
            os.mkdir(bobs, 0o700)
            os.chown(bobs, BOB, BOB)
            refused = d.run("archive", "--once", "--work-dir", bobs, env=ENV, user=BOB, groups=groups)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout + refused.stderr)
            self.assertIn("administrators", refused.stderr)
            self.assertNotEqual(d.run("fetch", waits, "--out", bobs, user=BOB, groups=groups).returncode, OK)
            # The archive's user fetches what waits, and is refused everything else.
            for command in (["list"], ["list", "--dumps"], ["status"], ["start", *MUCH], ["rm", waits], ["pin", waits], ["stop", "--all-mine"],
                            ["fetch", private, "--out", self.work], ["fetch", "0123456789ab", "--out", self.work]):
                answer = d.run(*command, **self.how)
                self.assertEqual(answer.returncode, REFUSED, (command, answer.stdout, answer.stderr))
            fetched = d.run("fetch", waits, "--out", os.path.join(self.work, "by-hand"), **self.how)
            self.assertEqual(fetched.returncode, OK, fetched.stderr)
            self.assertEqual([each["loaded"] for each in self.once(d)], [True])
            # Once it is loaded, not any more.
            again = d.run("fetch", waits, "--out", os.path.join(self.work, "again"), **self.how)
            self.assertEqual(again.returncode, REFUSED, again.stdout + again.stderr)
            # Two of them do not get in each other's way.
            before = d.ctl("status")["archive"]["asked_ns"]
            with self.companion(d):
                eventually(lambda: d.ctl("status")["archive"]["asked_ns"] > before, what="the other one runs")
                done = d.run("archive", "--once", "--work-dir", self.work, env=ENV, **self.how)
                self.assertEqual(done.returncode, REFUSED)
                self.assertIn("another profctl archive works there", done.stderr)

    def test_off_it_is_a_user_as_all_others(self):
        config = self.config()
        config["archive"]["to"] = ""
        with Daemon(config=config) as d:
            self.assertIsNone(d.ctl("status", user=ALICE, groups=[group_id()])["archive"])
            off = d.run("archive", "--once", "--work-dir", self.work, env=ENV)
            self.assertEqual(off.returncode, REFUSED, off.stdout + off.stderr)
            self.assertIn("archive.to is not set", off.stderr)
            self.assertIsNone(d.metric("profd_archive_waiting_dumps"))


if __name__ == "__main__":
    main()
