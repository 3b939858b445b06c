#!/usr/bin/env python3
"""What training processes did in the last seconds, from the flight recorder, against the jobs' ground truth."""

import json
import os
import signal

import activity_files
from attach_client import raw_ns
from profd_harness import ALICE, UsersCase, eventually, main, outcome, scaled
from test_activity import CLOCK_NS, ActivityCase


class TruthNear:
    """A job's truth of a window and a second around it: what is compared shall not grow with the job's age."""

    def __init__(self, job, window):
        self.job = job
        self.window = window

    def truth(self, rank, *kinds):
        return [line for line in self.job.truth(rank, *kinds)
                if self.window[0] - 10**9 < line["begin_ns"] < self.window[1] + 10**9]


class RecordedCase(ActivityCase):
    recorder = {"enabled": True, "collectors": ["hbm=10"], "activity": "l1", "activity_memory_mb": 48}

    @classmethod
    def make_config(cls):
        return {"recorder": cls.recorder}

    def activity(self):
        return next(c for c in self.daemon.ctl("status")["recorder"]["channels"] if c["collector"] == "activity")

    def until_held(self, seconds):
        eventually(lambda: self.activity()["held_ns"] > seconds * 1e9, seconds=60, what=f"{seconds} s are held")

    def recorded(self):
        job = self.train()
        ranks = job.attached(self.daemon, 2)
        # What is held before is time without records.
        eventually(lambda: self.activity()["problem"] == "", seconds=60, what="both processes collect")
        self.until_held(2)
        job.until_written(ranks, raw_ns() + 2 * 10**9)  # of training, all of it recorded
        return job, ranks

    def dump(self, *how):
        # Only one dump of a user at a time.
        return self.daemon.ctl("dump", "--last", "1s", *how)

    def assert_true(self, job, ranks, records, what, window):
        self.assert_equal_to_truth(TruthNear(job, window), ranks, records, what, window,
                                   lambda line: (line["stream"], line["name"]))

    def window(self, manifest):
        session = manifest["session"]
        return session["start_raw_ns"] + CLOCK_NS, session["end_raw_ns"] - CLOCK_NS


class Recorded(RecordedCase):
    def test_kernels_of_the_last_seconds(self):
        job, ranks = self.recorded()
        self.assertEqual(self.activity()["problem"], "")
        done = self.dump("--reason", "slow step")
        job.until_written(ranks, raw_ns())
        job.close()
        dump = done["dump_path"]
        manifest = self.manifest(dump)
        window = self.window(manifest)
        self.assertGreater(window[1] - window[0], 1e9)
        kernels = activity_files.read(dump, "kernel")
        communications = activity_files.read(dump, "communication")
        for records, what in ((kernels, "kernel"), (communications, "communication")):
            self.assertTrue(records)
            self.assert_true(job, ranks, records, what, window)
        for record in kernels + communications:
            self.assertLessEqual(manifest["session"]["start_raw_ns"], record.start_ns)
            self.assertLessEqual(record.start_ns, manifest["session"]["end_raw_ns"])
        self.assertTrue(activity_files.read(dump, "api"))
        self.assertEqual({p["pid"]: p["rank"] for p in manifest["session"]["processes"]},
                         {pid: rank for rank, pid in ranks.items()})
        for process in manifest["session"]["processes"]:
            self.assertEqual(process["collector"]["provider"], "mspti")
        self.assertEqual(outcome(done, "activity_kernel")["records"], len(kernels))
        self.assertEqual(done["dropped_records"], 0)
        self.assert_verified(dump)
        self.assertEqual(sum(row["count"] for row in self.daemon.ctl("show", dump)["kernels"]), len(kernels))

    def test_a_session_beside_it(self):
        """What it ordered besides is not the recorder's, whose order remains when it ends."""
        job, ranks = self.recorded()
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--runtime-api", "on")
        self.served(session["session_id"])
        self.stop(session)
        after = raw_ns()
        eventually(lambda: raw_ns() > after + 10**9)
        past = self.dump()["dump_path"]
        job.until_written(ranks, raw_ns())
        job.close()
        self.assertEqual({call.level for call in activity_files.read(past, "api")}, {2})
        window = self.window(self.manifest(past))
        self.assertGreater(window[1], after)
        self.assert_true(job, ranks, activity_files.read(past, "kernel"), "kernel", window)

    def test_a_session_that_begins_in_the_past(self):
        """What the recorder held and what came afterwards, without a seam or anything twice."""
        job, ranks = self.recorded()
        ordered = raw_ns()
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10", "--since", "3s",
                                  "--detach")
        self.served(session["session_id"])
        job.until_written(ranks, raw_ns() + 10**9)
        end = raw_ns()
        done = self.stop(session)
        manifest = self.manifest(done["dump_path"])
        self.assertNotIn("past", " ".join(manifest["warnings"]))
        kernels = activity_files.read(done["dump_path"], "kernel")
        self.assertLess(min(k.start_ns for k in kernels), ordered)
        begin = manifest["session"]["start_raw_ns"]
        self.assertLessEqual(begin, min(k.start_ns for k in kernels))
        job.until_written(ranks, raw_ns())
        job.close()  # its truth grows no more
        # Around the order, where one could be missing or twice.
        window = (max(begin, ordered - 5 * 10**8) + CLOCK_NS, min(end, ordered + 5 * 10**8) - CLOCK_NS)
        around = [k for k in kernels if window[0] - 10**8 < k.start_ns < window[1] + 10**8]
        self.assert_true(job, ranks, around, "kernel", window)
        self.assertTrue(all(k.name for k in kernels))
        self.assertEqual(outcome(done, "task_time")["dropped_records"], 0)
        self.assert_verified(done["dump_path"])

    def test_a_session_that_needs_the_other_profiler(self):
        """The recorder gives way to it, and continues when it has ended."""
        job, ranks = self.recorded()
        session = self.daemon.ctl("start", "--job", job.job_id, "--l2", "on")
        self.served(session["session_id"], "l2")
        eventually(lambda: "busy: a session collects through aclprof" in self.activity()["problem"], what="the recorder says so")
        busy = [raw_ns(), raw_ns() + 10**9]
        eventually(lambda: raw_ns() > busy[1], what="a second of it")
        done = self.stop(session)
        self.assertEqual(outcome(done, "l2")["result"], "finished", done["outcomes"])
        files = self.manifest(os.path.join(done["dump_path"], os.path.basename(done["dump_path"])))["process_files"]
        self.assertEqual({one["pid"] for one in files}, set(ranks.values()))
        self.assertTrue(all(one["files"] > 0 for one in files), files)
        eventually(lambda: self.activity()["problem"] == "", seconds=60, what="it records again")
        after = raw_ns()
        eventually(lambda: raw_ns() > after + 3 * 10**9, seconds=20)
        past = self.dump()["dump_path"]
        with_gap = self.daemon.ctl("dump", "--last", "60s")["dump_path"]
        job.until_written(ranks, raw_ns())
        job.close()
        (channel,) = [one for one in self.manifest(with_gap)["channels"] if one["collector"] == "activity_kernel"]
        gaps = [gap for gap in channel["gaps"] if gap["reason"] == "profiler_busy"]
        self.assertEqual(len(gaps), 2, "one of each process")
        for gap in gaps:
            self.assertLessEqual(gap["from_ns"], busy[0])
            self.assertGreaterEqual(gap["host_ns"], busy[1])
        inside = [k for k in activity_files.read(with_gap, "kernel") if busy[0] < k.start_ns < busy[1]]
        self.assertEqual(inside, [])
        self.assert_verified(with_gap)
        window = self.window(self.manifest(past))
        self.assertGreater(window[1], after)
        self.assert_true(job, ranks, activity_files.read(past, "kernel"), "kernel", window)

    def test_a_process_that_was_killed(self):
        job, ranks = self.recorded()
        os.kill(ranks[1], signal.SIGKILL)
        eventually(lambda: not [p for p in self.daemon.processes() if p["pid"] == ranks[1] and p.get("attached")], what="it is gone")
        done = self.daemon.ctl("dump", "--last", "30s")
        job.close()
        kernels = [k for k in activity_files.read(done["dump_path"], "kernel") if k.process == ranks[1]]
        self.assertTrue(kernels)
        manifest = self.manifest(done["dump_path"])
        first = self.window(manifest)[0]
        last = max(k.start_ns for k in kernels)
        self.assert_true(job, {1: ranks[1]}, kernels, "kernel", (max(first, kernels[0].start_ns), last))
        self.assertEqual({p["pid"]: p["collector"]["state"] for p in manifest["session"]["processes"]}[ranks[1]],
                         "ended")
        self.assertIn("process_ended", [gap["reason"] for channel in manifest["channels"]
                                        for gap in channel["gaps"] if channel["collector"] == "activity_kernel"])
        self.assert_verified(done["dump_path"])

    def test_the_daemon_ends_while_a_dump_is_written(self):
        """The dump is completed before: here it waits for what the processes hand over."""
        job, _ = self.recorded()
        dumps = lambda: {name for name in os.listdir(self.daemon.dump_root) if name.startswith("PROF_")}
        before = dumps()
        request = self.daemon.spawn("dump", "--last", "1s")
        eventually(lambda: dumps() - before, what="the dump is begun")
        self.assertEqual(self.daemon.stop(), 0)
        answer, errors = request.communicate(timeout=scaled(60))
        self.assertEqual(request.returncode, 0, errors)
        done = json.loads(answer)
        self.assertEqual(done["state"], "done")
        self.assertTrue(activity_files.read(done["dump_path"], "kernel"))
        self.daemon.start()
        job.close()
        self.assert_verified(done["dump_path"])

    def test_a_process_that_forbids_it(self):
        job = self.train(env={"PROFD_COLLECT": "off"})
        job.attached(self.daemon, 2)
        eventually(lambda: "PROFD_COLLECT=off" in self.activity()["problem"], what="the reason")


class OtherUsers(UsersCase, RecordedCase):
    def test_ones_own_processes_only(self):
        self.recorded()
        theirs = self.ctl_as(ALICE, "dump", "--last", "1s")
        self.assertEqual(activity_files.read(theirs["dump_path"], "kernel"), [])
        self.assertEqual(activity_files.names_of(theirs["dump_path"]), {0: ""})
        self.assertEqual(self.manifest(theirs["dump_path"])["session"]["processes"], [])
        self.assertTrue(activity_files.read(self.dump()["dump_path"], "kernel"))


if __name__ == "__main__":
    main()
