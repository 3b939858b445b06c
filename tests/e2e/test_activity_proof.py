#!/usr/bin/env python3
"""Sessions that record from inside processes, where it is hard: many of them, killed, forked, in containers, of
other users, beside other profilers, for a long time."""

import collections
import glob
import os
import shutil
import signal
import unittest

import activity_files
from app_process import AppProcess
from attach_client import raw_ns
from profd_harness import ALICE, BOB, BUILD, IS_ROOT, UsersCase, demote, eventually, is_sanitized, main, outcome
from processes import children, rss
from sim_train import SimTrain
from test_activity import CLOCK_NS, ActivityCase

# An operator on one device: 64 of these fit on two cores.
SMALL = """name = "{name}"
steps = {steps}
data_parallel = 1
data_ms = {data_ms}

[[layer]]
name = "layer"
gradient_mb = 1
[[layer.operator]]
type = "MatMulV2"
function = "aclnnMatmul"
us = 50
backward_us = 100
shapes = [[64, 64], [64, 64], [64, 64]]
"""
FULL = os.environ.get("PROFD_FAULTS") == "full"


def pid_of(job):
    """The one process of a job of one rank."""
    [pid] = children(job.process.pid)
    return pid


def small(name, steps=100_000, data_ms=5):
    return SMALL.format(name=name, steps=steps, data_ms=data_ms)


class Many(ActivityCase):
    def test_sixty_four_processes(self):
        before = self.daemon.rss()
        jobs = [self.train(text=small("many", data_ms=400), steps=None) for _ in range(64)]

        def attached():
            found = [p["pid"] for p in self.daemon.processes("many") if p.get("attached")]
            return found if len(found) == 64 else None
        pids = set(eventually(attached, seconds=120, what="64 processes are attached"))
        session = self.daemon.ctl("start", "--job", "many", "--task-time", "l1", "--collector", "hbm=10")

        def served():
            now = self.daemon.show(session["session_id"])
            return now if outcome(now, "task_time")["detail"] == "served by 64 of 64 processes" else None
        running = eventually(served, seconds=120, what="64 of 64 processes serve")
        self.assertEqual({p["pid"] for p in running["processes"] if p["collector"]["state"] == "on"}, pids)
        begin = raw_ns()
        for job in jobs:
            job.until_written([0], begin + 2 * 10**9)
        end = raw_ns()
        grown = self.daemon.rss() - before
        done = self.stop(session)
        kernels = activity_files.read(done["dump_path"], "kernel")
        self.assertEqual({k.process for k in kernels}, pids)
        for job in jobs:
            mine = sorted(k.start_ns for k in kernels if k.process == pid_of(job))
            truth = [line["begin_ns"] for line in job.truth(0, "kernel")
                     if begin + CLOCK_NS < line["begin_ns"] and line["end_ns"] < end - CLOCK_NS]
            self.assertTrue(truth)
            self.assertTrue(mine)
            inner = [t for t in mine if begin < t < end]
            for want in truth:
                self.assertLess(min(abs(want - t) for t in inner), CLOCK_NS, (job.folder, want))
        self.assertEqual({p["collector"]["state"] for p in self.manifest(done["dump_path"])["session"]["processes"]},
                         {"ended"})
        self.assertEqual(outcome(done, "task_time")["dropped_records"], 0)
        self.assert_verified(done["dump_path"])
        if not is_sanitized():
            # 8 MiB of each ring are the process's; the daemon maps them, and has pages of what it has read.
            self.assertLess(grown, 64 * (9 << 20), "the rings and 1 MiB for each process")


class Killed(ActivityCase):
    def killed(self, jobs, victims):
        """A session of these jobs, whose victims are killed in one moment with the daemon; its first dump."""
        eventually(lambda: len([p for p in self.daemon.processes("killed") if p.get("attached")]) == len(jobs),
                   what="all are attached")
        session = self.daemon.ctl("start", "--job", "killed", "--task-time", "l1", "--collector", "hbm=10")
        self.served(session["session_id"])
        dump = self.daemon.show(session["session_id"])["dump_path"]
        jobs[0].until_written([0], raw_ns() + 10**9)
        eventually(lambda: activity_files.processes(dump, "kernel"), what="kernels")
        self.daemon.process.send_signal(signal.SIGSTOP)  # so that it does not see them end
        for job in victims:
            os.killpg(job.process.pid, signal.SIGKILL)
        self.daemon.kill()
        kernels = activity_files.read(dump, "kernel")
        self.assertTrue(kernels and all(k.name for k in kernels), "readable, with names")
        self.daemon.start()
        self.assert_verified(dump)
        return session["session_id"], dump

    def test_a_process_and_the_daemon(self):
        jobs = [self.train(text=small("killed"), steps=None) for _ in range(2)]
        session, first = self.killed(jobs, jobs[:1])
        eventually(lambda: [o for o in self.daemon.show(session)["outcomes"] if o["collector"] == "task_time"
                            and o["detail"] == "served by 1 of 1 process"], what="the session continues")
        jobs[1].until_written([0], raw_ns())
        done = self.stop({"session_id": session})
        self.assertNotEqual(done["dump_path"], first)
        kernels = activity_files.read(done["dump_path"], "kernel")
        self.assertEqual({k.process for k in kernels}, {pid_of(jobs[1])}, "the one that lives")
        self.assertTrue(all(k.name for k in kernels), "its names came again")
        self.assert_verified(done["dump_path"])

    def test_all_processes_and_the_daemon(self):
        job = self.train(text=small("killed"), steps=None)
        session, _ = self.killed([job], [job])
        ended = self.daemon.show(session)
        self.assertEqual(ended["state"], "interrupted")
        self.assertIn("all processes of the job ended meanwhile", ended["reason"])


class Apps(ActivityCase):
    """Processes that are led by the test."""

    def start(self, name):
        app = AppProcess(self.daemon, name)
        self.addCleanup(app.close)
        eventually(lambda: [p for p in self.daemon.processes() if p["pid"] == app.pid and p.get("attached")],
                   what="it is attached")
        return app

    def begin(self, name):
        return self.daemon.ctl("start", "--job", name, "--devices", "0", "--task-time", "l1",
                               "--collector", "hbm=10")

    def test_a_fork_in_the_middle(self):
        app = self.start("forks")
        session = self.begin("forks")
        self.served(session["session_id"])
        self.assertEqual(app.do("launch", "before", 300), "0")
        child, status = app.do("fork").split()
        self.assertEqual(status, "0", "it ends, and by itself")
        self.assertEqual(app.do("launch", "after", 300), "0")
        done = self.stop(session)
        kernels = collections.Counter((k.process, k.name) for k in activity_files.read(done["dump_path"], "kernel"))
        self.assertEqual(kernels, {(app.pid, "before"): 300, (app.pid, "after"): 300})
        # It attaches for its marks, and its collector stays off: the vendor's libraries do not survive a fork.
        self.assertNotIn("on", [(p.get("collector") or {}).get("state") for p in done["processes"]
                                if p["pid"] == int(child)])
        self.assert_verified(done["dump_path"])

    def test_another_one_was_first_or_starts_meanwhile(self):
        """A client of MSPTI in one process, another profiler in the other: ours tries again each 10 s."""
        subscribed, profiled = self.start("subscribed"), self.start("profiled")
        self.assertEqual(subscribed.do("subscribe"), "0")
        sessions = self.begin("subscribed"), self.begin("profiled")
        busy = self.served(sessions[0]["session_id"], result="busy")
        self.assertIn("subscri", outcome(busy, "task_time")["detail"])
        self.served(sessions[1]["session_id"])
        profiled.do("launch", "ours", 50)
        self.assertEqual(profiled.do("profiler", "start"), "0")
        busy = self.served(sessions[1]["session_id"], result="busy")
        self.assertIn("another profiler", outcome(busy, "task_time")["detail"])
        for app in (subscribed, profiled):
            app.do("launch", "his", 50)
        self.assertEqual(subscribed.do("unsubscribe"), "0")
        self.assertEqual(profiled.do("profiler", "stop"), "0")
        found = []
        for app, session in zip((subscribed, profiled), sessions):
            self.served(session["session_id"])
            app.do("launch", "again", 50)
            found.append(collections.Counter(k.name for k in activity_files.read(self.stop(session)["dump_path"], "kernel")))
        self.assertEqual(found, [{"again": 50}, {"ours": 50, "again": 50}])


@unittest.skipUnless(IS_ROOT and shutil.which("unshare"), "needs root and unshare")
class Containers(ActivityCase):
    def contained(self):
        """A job that sees nothing of the daemon's folder, of /run and of /tmp but the attach socket."""
        inside = os.path.join(BUILD, f"contained-{os.getpid()}")
        os.makedirs(inside)
        self.addCleanup(shutil.rmtree, inside, ignore_errors=True)
        open(os.path.join(inside, "attach.sock"), "w", encoding="utf-8").close()
        script = f"""set -e
mount --bind {self.daemon.base}/attach.sock {inside}/attach.sock
mount -t tmpfs none /run
mount -t tmpfs none /tmp
test ! -e {self.daemon.base}
exec "$@"
"""
        job = SimTrain(os.path.join(inside, "attach.sock"), os.path.join(inside, "job"), steps=100_000,
                       around=("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"))
        self.addCleanup(job.close)
        return job

    def test_kernels(self):
        job = self.contained()
        ranks = job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10")
        self.served(session["session_id"])
        job.until_written(ranks, raw_ns())
        done = self.stop(session)
        self.assertEqual({k.process for k in activity_files.read(done["dump_path"], "kernel")}, set(ranks.values()))
        self.assert_verified(done["dump_path"])

    def test_files_of_aclprof(self):
        job = self.contained()
        ranks = job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--l2", "on", "--collector", "hbm=10")
        self.served(session["session_id"], "l2")
        job.until_written(ranks, raw_ns())
        done = self.stop(session)
        self.assertEqual(outcome(done, "l2")["result"], "finished", done)
        found = glob.glob(os.path.join(done["dump_path"], "**", "l2_cache.data.*"), recursive=True) + glob.glob(
            os.path.join(os.path.dirname(done["dump_path"]), "**", "l2_cache.data.*"), recursive=True)
        self.assertTrue([path for path in found if os.path.getsize(path) > 0])
        self.assert_verified(done["dump_path"])


class Users(UsersCase, ActivityCase):
    def test_whose_processes_a_session_records(self):
        """A job is one of its user: root's session may name it, another user's of that name is another job."""
        os.chmod(self.folder, 0o755)
        folder = os.path.join(self.folder, "alices")
        os.makedirs(folder)
        os.chown(folder, ALICE, ALICE)
        job = self.train(preexec_fn=demote(ALICE, groups=(self.group,)), folder=folder)
        ranks = job.attached(self.daemon, 2)
        started = {}
        flags = ("--job", job.job_id, "--task-time", "l1", "--collector", "hbm=10")
        refused = self.daemon.ctl("start", *flags, user=BOB, groups=(self.group,), expect=4)
        self.assertEqual(refused["error"]["code"], "not_found")
        # Naming the devices he gets them, and none of the processes.
        bobs = self.daemon.ctl("start", *flags, "--devices", "0,1", user=BOB, groups=(self.group,), expect=(0, 5))
        for who, how in (("alice", {"user": ALICE, "groups": (self.group,)}), ("root", {})):
            started[who] = self.daemon.ctl("start", *flags, **how)
            self.served(started[who]["session_id"])
        job.until_written(ranks, raw_ns())
        for who, session in started.items():
            found = activity_files.read(self.stop(session)["dump_path"], "kernel")
            self.assertEqual({k.process for k in found}, set(ranks.values()), who)
        done = self.stop(bobs)
        self.assertEqual(done.get("processes", []), [])
        self.assertEqual(activity_files.read(done["dump_path"], "kernel"), [])


class Long(ActivityCase):
    def test_an_hour_of_steps(self):
        """3600 steps, or 400 without PROFD_FAULTS=full, of some 20 ms: neither side keeps anything of them."""
        steps = 3600 if FULL else 400
        job = self.train(text=small("long", data_ms=15), steps=None)
        [pid] = job.attached(self.daemon, 1).values()
        session = self.daemon.ctl("start", "--job", "long", "--task-time", "l1", "--runtime-api", "on")
        self.served(session["session_id"])

        def done(count):
            return lambda: len(job.truth(0, "step")) >= count
        eventually(done(steps // 4), seconds=300, what="a quarter of the steps", every=0.2)
        before = self.daemon.rss(), rss(pid)
        eventually(done(steps), seconds=600, what=f"{steps} steps", every=0.2)
        after = self.daemon.rss(), rss(pid)
        self.stop(session)
        if not is_sanitized():
            # A kernel's record has 48 bytes: what is kept of it would be more than this in the full form.
            self.assertLess(after[0] - before[0], 8 << 20, f"daemon: {before} {after}")
            self.assertLess(after[1] - before[1], 4 << 20, f"process: {before} {after}")


if __name__ == "__main__":
    main()
