#!/usr/bin/env python3
"""Ranks of a job that attach while a session of it runs: their NPUs join."""

import attach_client
import prof_reader
from profd_harness import DaemonCase, eventually, main, profctl
from test_jobs_sessions import Calls
from text_files import read_json


class Joining(Calls, DaemonCase):
    devices = 2

    def test_a_session_waits_for_its_job(self):
        d = self.daemon
        refused = d.run("start", "--job", "job", "--collector", "hccs=50")
        self.assertNotEqual(refused.returncode, 0)
        session = d.ctl("start", "--job", "job", "--follow", "--collector", "hccs=50", "--msproftx", "on",
                        "--detach")["session_id"]
        self.assertEqual(d.show(session)["state"], "running")
        self.assertEqual(self.get(session)["devices"], [])
        with self.workers({"rank": 0, "devices": [1]}) as (worker,):
            worker.next("session", state="running")
            eventually(lambda: self.get(session)["devices"] == [1])
            worker.do("marks", kind=attach_client.MARK, name="here")
            eventually(lambda: any(o.get("device") == 1 and o["collector"] == "hccs" and int(o["records"]) > 20
                                   for o in self.get(session)["outcomes"]))
        # Its processes have ended, and so it has.
        final = d.until_state(session, "done")
        self.assertIn("all processes of the job have ended", final["reason"])
        dump = prof_reader.read_valid(final["dump_path"], finished=True)
        self.assertGreater(len(dump[(1, "hccs.data")].records), 20)

    def test_a_session_that_waited_resumes_with_the_devices_of_its_job(self):
        d = self.daemon
        session = d.ctl("start", "--job", "job", "--follow", "--sys-interconnection-freq", "50", "--detach")["session_id"]
        with self.workers({"rank": 0, "devices": [1]}):
            d.until_records(session, 20)
            stored = (d.dump_root, ".state", "sessions", session + ".json")
            eventually(lambda: read_json(*stored)["targets"].get("processes"), what="the state has the process")
            d.kill()
            d.start()
            resumed = d.show(session)
            self.assertEqual((resumed["state"], resumed["devices"]), ("running", [1]), resumed["reason"])
            d.ctl("stop", session)

    def test_follow_needs_a_job(self):
        wrong = self.daemon.run("start", "--follow", "--all")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("job", wrong.stderr)

    def tearDown(self):
        super().tearDown()
        self.end_all()

    def test_devices_join_as_ranks_attach(self):
        with self.workers({"rank": 0, "devices": [0]}) as (first,):
            session = self.start(job_id="job")["session_id"]
            self.assertEqual(self.get(session)["devices"], [0])
            first.do("marks", kind=attach_client.MARK, name="alone")
            self.daemon.until_records(session, 20)
            with self.workers({"rank": 1, "devices": [1]}) as (second,):
                second.next("session", state="running")
                eventually(lambda: self.get(session)["devices"] == [0, 1])
                eventually(lambda: any(o.get("device") == 1 and o["collector"] == "hccs" and
                                       int(o["records"]) > 20 for o in self.get(session)["outcomes"]))
                second.step(7, True)
                second.step(7, False)
                final = self.stop(session)
        self.assertEqual((final["state"], final["devices"]), ("STATE_DONE", [0, 1]))
        dump = prof_reader.read_valid(final["dump_path"], finished=True)
        first, second = (dump[(device, "hccs.data")].records for device in (0, 1))
        self.assertGreater(len(second), 20)
        # It has nothing of the time before it joined, and both are on one clock.
        nodes = dump.manifest["node"]["devices"]
        joined = dump.host["clock"].wall("host_ns", nodes[1]["joined_raw_ns"])
        self.assertGreater(second[0].wall, first[0].wall)
        # The driver timestamps with the points of its own grid: the first may lie a period before.
        self.assertGreater(second[0].wall, joined - 20_000_000)
        self.assertLess(second[-1].wall, int(final["ended_ns"]) + 20_000_000)
        self.assertEqual([r.key for r in dump[(1, "ts_track.data")].records],
                         [("begin", 7), ("end", 7)])
        self.assertEqual([d["id"] for d in nodes], [0, 1])
        self.assertNotIn("joined_raw_ns", nodes[0])
        self.assertGreater(nodes[1]["joined_raw_ns"], dump.manifest["session"]["start_raw_ns"])
        profctl("verify", final["dump_path"])


if __name__ == "__main__":
    main()
