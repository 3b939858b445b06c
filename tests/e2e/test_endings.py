#!/usr/bin/env python3
"""The daemon ends: asked to, in the middle of sessions, or shot. Nothing that was flushed is lost."""

import json
import os
import signal
import unittest

import prof_reader
from profd_harness import ALL_OPTIONS, Daemon, eventually, main, temp_folder

SCENARIO = "devices = 2\n"
EVERYTHING = ("--devices", "0,1", *ALL_OPTIONS)
HCCS = ("--devices", "0", "--sys-interconnection-freq", "50")


class Endings(unittest.TestCase):
    def test_sigterm_in_the_middle(self):
        with Daemon(SCENARIO) as daemon:
            sessions = [daemon.ctl("start", "--job", "long", *EVERYTHING),
                        daemon.ctl("start", "--job", "other", *HCCS),
                        daemon.ctl("start", "--no-dump", *HCCS)]
            daemon.until_records(sessions[0]["session_id"], 5000)
            daemon.until_records(sessions[1]["session_id"], 30)
            watch = daemon.spawn("watch", sessions[0]["session_id"])
            self.assertTrue(watch.stdout.readline())
            self.assertEqual(daemon.stop(signal.SIGTERM), 0, daemon.log())
            out, _ = watch.communicate(timeout=60)
            self.assertNotEqual(watch.returncode, None)
            for session in sessions[:2]:
                dump = prof_reader.read_valid(session["dump_path"], finished=True)
                self.assertEqual((dump.manifest["state"], dump.manifest["reason"]),
                                 ("done", "profd is stopping"))
                self.assertGreater(dump.manifest["session"]["end_wall_ns"], 0)
                self.assertEqual(prof_reader.time_gaps(dump[(0, "hccs.data")].timestamps(), 20_000_000), [])
                for entry in dump.manifest["channels"]:
                    # An event-driven channel may have had nothing to say: then there is no file.
                    if entry["device"] >= 0 and entry["state"] == "finished" and entry["records"]:
                        self.assertEqual(entry["records"],
                                         len(dump[(entry["device"], entry["file"])]))
            self.assertFalse(os.path.exists(daemon.socket))
            # A new daemon on the same root knows them.
            daemon.start()
            listed = {s["session_id"]: s for s in daemon.ctl("list")["sessions"]}
            ended = listed[sessions[0]["session_id"]]
            self.assertEqual((ended["state"], ended["reason"], ended["job_id"]), ("done", "profd is stopping", "long"))
            self.assertEqual(len(daemon.show(ended["session_id"])["segments"]), 1)
            self.assertNotIn(sessions[2]["session_id"], listed)

    def test_sigint_too(self):
        with Daemon(SCENARIO) as daemon:
            session = daemon.ctl("start", *HCCS)
            daemon.until_records(session["session_id"], 5)
            self.assertEqual(daemon.stop(signal.SIGINT), 0)
            self.assertEqual(prof_reader.read(session["dump_path"], finished=True).problems, [])

    def test_sigterm_while_starting_and_stopping(self):
        """No moment of a session's life makes the daemon hang or leave half a dump."""
        with Daemon(SCENARIO) as daemon:
            session = daemon.ctl("start", *ALL_OPTIONS)
            stop = daemon.spawn("stop", session["session_id"])
            starts = [daemon.spawn("start", *ALL_OPTIONS), daemon.spawn("start", *HCCS)]
            self.assertEqual(daemon.stop(signal.SIGTERM), 0, daemon.log())
            answered = {session["session_id"]}
            code, answer = self.ended(stop)
            if code == 0:
                self.assertEqual([s["state"] for s in answer["sessions"]], ["done"])
            else:
                self.assertEqual((code, answer["errors"][0]["code"]), (6, "unavailable"))
            for start in starts:
                code, answer = self.ended(start)
                if code == 0:
                    answered.add(answer["session_id"])
                elif code == 6:
                    self.assertEqual(answer["error"]["code"], "unavailable")
                else:
                    self.assertEqual((code, answer["error"]["code"]), (1, "aborted"))
                    self.assertIn("profd is stopping", answer["error"]["message"])
            found = set()
            for name in os.listdir(daemon.dump_root):
                if not name.startswith("PROF_"):
                    continue
                dump = prof_reader.read_valid(os.path.join(daemon.dump_root, name), finished=True)
                self.assertEqual(dump.manifest["state"], "done")
                self.assertIn(dump.manifest["reason"], ("profd is stopping", f"stopped by uid {os.getuid()}"))
                found.add(dump.manifest["session"]["id"])
            self.assertLessEqual(answered, found)

    def ended(self, client):
        """Exit code and answer of a profctl that was spawned."""
        out, err = client.communicate(timeout=60)
        self.assertTrue(out.strip(), err)
        return client.returncode, json.loads(out)

    def test_sigkill(self):
        config = {"dump": {"flush_interval_ms": 100, "resume": False}}
        with Daemon(SCENARIO, config=config) as daemon:
            session = daemon.ctl("start", "--job", "shot", "--label", "x", *EVERYTHING)
            session_id, path = session["session_id"], session["dump_path"]
            daemon.until_records(session_id, 8000)
            before = daemon.show(session_id)["records"]
            # What is counted as recorded before two flushes is on the disk after them.
            hbm = os.path.join(path, "device_0", "data", "hbm.data.0.slice_0")
            size = os.path.getsize(hbm)
            eventually(lambda: os.path.getsize(hbm) > size + 5000)
            daemon.kill()

            dump = prof_reader.read_valid(path, finished=False)
            self.assertEqual(dump.manifest["state"], "running")
            for device in (0, 1):
                for name, period in (("hbm.data", 10_000), ("hccs.data", 20_000_000)):
                    timestamps = dump[(device, name)].timestamps()
                    self.assertGreater(len(timestamps), 10)
                    self.assertEqual(prof_reader.time_gaps(timestamps, period), [], name)
            total = sum(len(c) for (device, _), c in dump.channels.items() if device >= 0)
            host = sum(len(blocks) for blocks in dump.blocks.values())
            self.assertGreater(total + host, before // 2)

            self.assertTrue(os.path.exists(daemon.socket))  # left behind; not in the way
            daemon.start()
            listed = daemon.ctl("list", "--job", "shot")["sessions"]
            self.assertEqual([(s["session_id"], s["state"], s["label"]) for s in listed],
                             [(session_id, "interrupted", "x")])
            self.assertIn("dump.resume is off", listed[0]["reason"])
            self.assertEqual(daemon.show(session_id)["dump_path"], path)
            self.assertEqual(daemon.run("watch", session_id).returncode, 5)
            out = temp_folder(self)
            answer = daemon.ctl("fetch", session_id, "--out", out)
            fetched = prof_reader.read_valid(answer["path"], finished=False)
            self.assertEqual(len(fetched[(0, "hbm.data")]), len(dump[(0, "hbm.data")]))
            # Other sessions continue beside it.
            again = daemon.record(*HCCS, seconds=0.3)
            self.assertNotEqual(os.path.basename(again["dump_path"]), os.path.basename(path))
            self.assertEqual(daemon.ctl("stop", session_id, expect=(0, 5))["sessions"][0]["state"],
                             "interrupted")
            daemon.ctl("rm", session_id)
            self.assertFalse(os.path.exists(path))

    def test_a_daemon_that_cannot_serve_leaves_sessions_to_the_next(self):
        with Daemon(SCENARIO) as daemon:
            session_id = daemon.ctl("start", *HCCS)["session_id"]
            daemon.kill()
            attach = daemon.attach_socket
            os.remove(attach)
            os.mkdir(attach)
            self.assertEqual(daemon.start_in_vain(), 1)
            self.assertIn("is not a socket", daemon.log())
            os.rmdir(attach)
            daemon.start()
            daemon.until_state(session_id, "running")
            self.assertEqual(daemon.ctl("stop", session_id)["sessions"][0]["state"], "done")

    def test_killed_at_any_moment(self):
        """Control files and manifest are complete whenever the daemon is killed."""
        for delay in range(4):
            with Daemon(SCENARIO, config={"dump": {"flush_interval_ms": 50, "resume": False}}) as daemon:
                client = daemon.spawn("start", *ALL_OPTIONS)
                if delay:
                    eventually(lambda: [n for n in os.listdir(daemon.dump_root) if n != ".state"])
                    if delay > 1:
                        client.wait(60)
                    if delay > 2:
                        eventually(lambda: daemon.metric("profd_dump_bytes_total"))
                daemon.kill()
                client.communicate(timeout=60)
                daemon.start()
                for session in daemon.ctl("list")["sessions"]:
                    self.assertEqual(session["state"], "interrupted")
                    daemon.ctl("rm", session["session_id"])
                session = daemon.record(*HCCS, seconds=0.2)
                self.assertEqual(session["state"], "done")

    def test_stop_while_a_client_holds_a_stream(self):
        with Daemon(SCENARIO) as daemon:
            session = daemon.ctl("start", *HCCS)
            stream = daemon.spawn("stream", "--interval", "10ms")
            self.assertTrue(stream.stdout.readline())
            stream.send_signal(signal.SIGSTOP)
            try:
                self.assertEqual(daemon.stop(signal.SIGTERM), 0)
            finally:
                stream.send_signal(signal.SIGCONT)
                stream.communicate(timeout=60)
            self.assertEqual(prof_reader.read(session["dump_path"], finished=True).problems, [])


if __name__ == "__main__":
    main()
