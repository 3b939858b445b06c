"""The dump volume: full, read-only, gone, limited, too slow."""

import contextlib
import ctypes
import errno
import json
import os
import resource
import subprocess
import tempfile
import unittest

import processes
import profd_harness
from fault_common import (FILES, LIBS, OK, PARTIAL, REFUSED, START, FaultCase, daemon, manifest, read_dump, start,
                          stop, time_gaps)
from profd_harness import eventually, is_sanitized, replace_file
from text_files import files_below

MS_RDONLY, MS_NOSUID, MS_REMOUNT, MNT_DETACH = 1, 2, 32, 2
LIBC = ctypes.CDLL(None, use_errno=True)
MB = 1 << 20
# Some 6 MB/s on eight devices.
MUCH = ["--sys-hardware-mem-freq", "100", "--llc-profiling", "read", "--sys-io-sampling-freq", "100",
        "--sys-interconnection-freq", "50", "--dvpp-freq", "100"]


def mount(path, options, flags=MS_NOSUID):
    if LIBC.mount(b"none", path.encode(), b"tmpfs", flags, options.encode()) != 0:
        return os.strerror(ctypes.get_errno())
    return ""


class Volume(FaultCase):
    """Dumps on a volume of their own."""

    def volume(self, megabytes, **how):
        config = {"dump": {"min_free_mb": 4, "flush_interval_ms": 100, **how.pop("dump", {})}}
        d = daemon(config=config, **how)
        problem_text = mount(d.dump_root, f"size={megabytes}m,mode=0711")
        if problem_text:
            d.dispose()
            self.skipTest(f"no tmpfs can be mounted here: {problem_text}")
        self.addCleanup(LIBC.umount2, d.dump_root.encode(), MNT_DETACH)
        dispose = d.dispose

        def unmount_and_dispose():
            # The daemon's folder goes with it, which takes the volume away first.
            if d.process is not None:
                d.stop()
            LIBC.umount2(d.dump_root.encode(), MNT_DETACH)
            dispose()

        d.dispose = unmount_and_dispose
        return d

    def fill(self, d, leave):
        """Another program takes the volume's space, but for `leave` bytes."""
        stat = os.statvfs(d.dump_root)
        with open(os.path.join(d.dump_root, "ballast"), "wb") as file:
            with contextlib.suppress(OSError):  # the daemon may have taken some of it meanwhile
                file.write(bytes(max(0, stat.f_bavail * stat.f_frsize - leave)))

    def on_disk(self, session, file, device):
        """Bytes of a data file that have reached the volume."""
        folder = os.path.join(session["dump_path"], f"device_{device}", "data")
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)
                   if name.startswith(file + ".") and not name.endswith(".done"))

    def test_no_space_to_start(self):
        with self.volume(16, dump={"min_free_mb": 100}) as d:
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            error = json.loads(refused.stdout)["error"]
            self.assertEqual(error["code"], "resource_exhausted")
            self.assertRegex(error["message"], "1[56] MB free")
            self.assertIn("100 MB needed", error["message"])
            self.assertEqual(os.listdir(d.dump_root), [".state"])
            # Without a dump there is nothing that needs space.
            session = d.ctl("start", *START, "--no-dump")
            self.assertEqual(stop(d, session)["state"], "done")
            eventually(lambda: d.metric("profd_dump_free_bytes") <= 16 * MB)
            eventually(lambda: d.metric("profd_sessions_refused_total") == 1, what="it is counted")
            self.assert_clean_end(d)

    def test_low_in_mid_session(self):
        with self.volume(24) as d:
            session = start(d)
            d.until_records(session["session_id"], 100)
            self.fill(d, 3 * MB)
            done = d.until_state(session["session_id"], "done", "failed")
            self.assertIn("dump volume full", done["reason"])
            self.assertIn("4 MB needed", done["reason"])
            facts = manifest(done)
            self.assertIn("dump volume full", facts["reason"])
            self.assertEqual(facts["state"], "done")
            dump = read_dump(done)
            self.assertEqual(dump.problems, [])
            self.assert_complete(dump, 0)
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED)
            os.unlink(os.path.join(d.dump_root, "ballast"))
            self.assert_serves(d, 1)
            self.assert_clean_end(d)

    def test_full_to_the_last_byte(self):
        with self.volume(24, devices=8) as d:
            session = start(d, *MUCH, expect=(OK, PARTIAL))
            eventually(lambda: all(self.on_disk(session, file, 0) >= 4096 for file in FILES),
                       what="something of every file is on the disk")
            self.fill(d, 0)
            done = d.until_state(session["session_id"], "done", "failed")
            self.assertTrue("dump volume full" in done["reason"] or "space" in done["reason"],
                            done["reason"])
            self.assert_complete(read_dump(done), 0)
            self.assertTrue(manifest(done)["channels"])
            self.assertTrue(d.ctl("status"))
            # What was dropped is reported, and with free space the daemon is healthy again.
            # (Not quite full any more where the oldest slices have gone first.)
            eventually(lambda: d.metric("profd_dump_free_bytes") < 4 * MB)
            os.unlink(os.path.join(d.dump_root, "ballast"))
            self.assert_serves(d, 1)
            self.assert_clean_end(d)

    def test_unmounted_underneath(self):
        with self.volume(24) as d:
            session = start(d)
            d.until_records(session["session_id"], 100)
            self.assertEqual(LIBC.umount2(d.dump_root.encode(), MNT_DETACH), 0)
            ended = d.until_state(session["session_id"], "done", "failed")
            self.assertIn("has been unmounted", ended["reason"])
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            self.assertIn("has been unmounted", json.loads(refused.stdout)["error"]["message"])
            stop(d, d.ctl("start", *START, "--no-dump"))
            self.assertEqual(os.listdir(d.dump_root), [], "below the mount point")
            self.assertEqual(mount(d.dump_root, "size=24m,mode=0711"), "")
            self.assert_serves(d, 1)
            self.assert_clean_end(d)

    def aged(self, d):
        return d.metric("profd_dump_aged_records_total") or 0

    def assert_aged(self, d, done, limit):
        """What has gone is counted: here + gone = received, and the dump holds."""
        facts = manifest(done)
        gone = sum(c["aged"]["records"] for c in facts["channels"])
        self.assertGreater(gone, 0)
        self.assertEqual(sum(c["records"] for c in facts["channels"]) + gone, done["records"])
        self.assertEqual(done["dropped_records"], 0)
        for c in facts["channels"]:
            gaps = [gap for gap in c["gaps"] if gap["reason"] == "aged"]
            self.assertEqual(len(gaps), min(c["aged"]["slices"], 1), c["collector"])
            self.assertEqual(sum(gap["lost_records"] for gap in gaps), c["aged"]["records"])
        eventually(lambda: self.aged(d) == gone, what="the metric says the same")
        self.assertLessEqual(self.size(done), limit)
        # The first slices are gone; files that have one slice while there is space were removed, too.
        self.assertEqual([one for one in read_dump(done).problems
                          if "more than one slice" not in one and ": slices [" not in one], [])
        check = d.run("verify", done["dump_path"])
        self.assertEqual(check.returncode, OK, check.stdout + check.stderr)

    def size(self, session):
        total = 0
        for path in files_below(session["dump_path"]):
            with contextlib.suppress(FileNotFoundError):
                total += os.path.getsize(path)
        return total

    def test_the_oldest_is_removed_at_the_limit(self):
        """Without storage_limit 90 % of what is free is the limit; it holds while the dump is
        written, and the session continues."""
        with self.volume(24, devices=4) as d:
            session = start(d, *MUCH, expect=(OK, PARTIAL))
            limit = manifest(session)["limit_bytes"]
            self.assertGreater(limit, 15 * MB)
            self.assertLess(limit, 24 * MB)
            biggest = 0
            while self.aged(d) == 0:
                biggest = max(biggest, self.size(session))
                self.assertEqual(d.show(session["session_id"])["state"], "running")
            for _ in range(20):
                biggest = max(biggest, self.size(session))
            self.assertLessEqual(biggest, limit)
            done = stop(d, session)
            self.assertEqual(done["state"], "done")
            self.assertEqual(manifest(done)["limit_action"], "age")
            self.assert_aged(d, done, limit)
            self.assert_clean_end(d)

    def test_the_oldest_is_removed_on_a_full_volume(self):
        with self.volume(40, devices=4) as d:
            session = start(d, *MUCH, expect=(OK, PARTIAL))
            eventually(lambda: self.size(session) > 15 * MB, 60, what="slices are closed")
            self.fill(d, 3 * MB)
            eventually(lambda: self.aged(d) > 0, what="the oldest goes")
            self.assertEqual(d.show(session["session_id"])["state"], "running")
            done = stop(d, session)
            self.assertEqual(done["state"], "done")
            self.assert_aged(d, done, 40 * MB)
            self.assert_clean_end(d)

    def test_becomes_read_only(self):
        with self.volume(24) as d:
            session = start(d)
            d.until_records(session["session_id"], 100)
            # Open files keep a mount from being made read-only, so the ordinary way is refused; a
            # volume whose device fails is read-only for new files at least.
            if mount(d.dump_root, "", MS_REMOUNT | MS_RDONLY):
                os.chmod(d.dump_root, 0o711)
                stop(d, session)
                self.assertEqual(mount(d.dump_root, "", MS_REMOUNT | MS_RDONLY), "")
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            self.assertIn("dump volume read-only", json.loads(refused.stdout)["error"]["message"])
            self.assertEqual(mount(d.dump_root, "size=24m", MS_REMOUNT), "")
            self.assert_serves(d, 1)
            self.assert_clean_end(d)

    def test_no_space_for_the_state_either(self):
        """What the daemon keeps of a session cannot be saved: the session runs, and is only not resumed."""
        with self.volume(24) as d:
            session = start(d)
            d.until_records(session["session_id"], 100)
            self.fill(d, 0)
            d.until_state(session["session_id"], "done", "failed")
            other = d.ctl("start", *START, "--no-dump")
            self.assertEqual(other["state"], "running")
            d.kill()
            os.unlink(os.path.join(d.dump_root, "ballast"))
            d.start()
            self.assertIn(d.show(session["session_id"])["state"], ("done", "failed", "interrupted"))
            self.assert_serves(d, 1)
            self.assert_clean_end(d)


@contextlib.contextmanager
def bad_disk(devices=2, dump=None, **config):
    """A daemon whose disk does what the file says that comes with it (libs/bad_disk.cc)."""
    with tempfile.TemporaryDirectory() as folder:
        control = os.path.join(folder, "disk")
        env = {"LD_PRELOAD": os.path.join(LIBS, "libbad_disk.so"), "PROFD_FAULT_DISK": control}
        with daemon(devices=devices, config={"dump": {"flush_interval_ms": 100, **(dump or {})}, **config}, env=env) as d:
            yield d, control


def dump_state(d, session):
    name = os.path.basename(session["dump_path"])
    return {dump["name"]: dump["state"] for dump in d.ctl("list", "--dumps")["dumps"]}[name]


@unittest.skipIf(is_sanitized(), "a preloaded library comes before the sanitizer's")
class BadDisk(FaultCase):
    """A disk that answers writes with an error, by a library in front of libc's."""

    def test_errors(self):
        with bad_disk() as (d, control):
            live = d.ctl("start", *START, "--no-dump")
            refused = 0
            for error, word in ((errno.EIO, "input/output error"), (errno.EDQUOT, "quota")):
                session = start(d)
                d.until_records(session["session_id"], 100)
                replace_file(control, str(error))
                done = d.until_state(session["session_id"], "done", "failed")
                self.assertIn(word, done["reason"].lower() + " ".join(done["warnings"]).lower())
                facts = manifest(done)
                self.assertNotEqual(facts["state"], "running")
                self.assertEqual(sum(loss["records"] for c in facts["channels"]
                                     for loss in c["dropped"] if loss["reason"] != "late"),
                                 done["dropped_records"])
                refused += sum(loss["bytes"] for c in facts["channels"] for loss in c["dropped"]
                               if loss["reason"] == "write_error")
                eventually(lambda: d.metric("profd_dump_dropped_bytes_total", reason="write_error") == refused,
                           what="the metric has what was given up at the end, too")
                # A session that writes nothing continues.
                self.assertEqual(d.show(live["session_id"])["state"], "running")
                os.unlink(control)
                self.assert_serves(d, 1)
            self.assert_clean_end(d)

    def test_dumps_that_could_not_be_ended_are_completed_later(self):
        """Not even the manifest can be written. When the disk takes it again the dump is completed at once."""
        with bad_disk() as (d, control):
            session = start(d)
            d.until_records(session["session_id"], 100)
            replace_file(control, f"+{errno.ENOSPC}")
            done = d.until_state(session["session_id"], "done", "failed")
            self.assertEqual((manifest(done)["state"], dump_state(d, done)), ("running", "running"))
            os.unlink(control)
            eventually(lambda: dump_state(d, done) == "done", what="the dump is completed")
            facts = manifest(done)
            self.assertEqual((facts["state"], facts["reason"]), ("done", done["reason"]))
            self.assertEqual(read_dump(done).problems, [])
            verified = d.run("verify", done["dump_path"])
            self.assertEqual(verified.returncode, OK, verified.stdout)
            self.assert_serves(d, 1)
            self.assert_clean_end(d)


@unittest.skipIf(is_sanitized(), "a preloaded library comes before the sanitizer's")
class StuckDisk(FaultCase):
    """A disk that does not answer for as long as a test wants."""

    def test_a_stop_is_bounded(self):
        with bad_disk(limits={"stop_deadline_s": 2}) as (d, control):
            session = start(d)
            d.until_records(session["session_id"], 100)
            replace_file(control, "-1")
            ended = stop(d, session, expect=PARTIAL)
            self.assertEqual(ended["state"], "interrupted")
            self.assertIn("limits.stop_deadline_s", " ".join(ended["warnings"]))
            self.assertEqual(dump_state(d, ended), "running")
            refused = d.run("fetch", session["session_id"], "--out", d.base)
            self.assertEqual(refused.returncode, REFUSED, refused.stderr)
            self.assertIn("still being completed", refused.stderr + refused.stdout)
            # The others are served: what needs no disk at all starts and stops.
            stop(d, d.ctl("start", *START, "--no-dump"))
            os.unlink(control)
            eventually(lambda: dump_state(d, ended) == "done", what="the dump is completed")
            self.assertEqual(manifest(ended)["state"], "done")
            verified = d.run("verify", ended["dump_path"])
            self.assertEqual(verified.returncode, OK, verified.stdout)
            shown = d.show(session["session_id"])
            self.assertEqual(shown["state"], "interrupted")
            self.assertIn("the dump was completed later", shown["warnings"])
            self.assert_serves(d, 1)
            self.assert_clean_end(d)

    def test_bytes_waiting_for_the_disk_count(self):
        """It will be written although the session ends: the limit holds for it, too."""
        with bad_disk(devices=8, dump={"max_total_mb": 12}, limits={"stop_deadline_s": 120}) as (d, control):
            session = start(d, *MUCH, expect=(OK, PARTIAL))
            d.until_records(session["session_id"], 100)
            replace_file(control, "-1")
            eventually(lambda: d.show(session["session_id"])["state"] != "running",
                       what="the session ends for what waits to be written")
            os.unlink(control)
            done = d.until_state(session["session_id"], "done", "failed")
            self.assertEqual(done["state"], "done")
            self.assertIn("dump.max_total_mb", done["reason"])
            # On a node whose checks are late it may be too large all the same, and goes then (docs/dumps.md).
            if os.path.exists(os.path.join(done["dump_path"], "host")):
                self.assert_complete(read_dump(done), 0)
            self.assert_clean_end(d)


class Limits(FaultCase):
    def test_a_session_that_cannot_have_its_files_is_refused(self):
        # An idle daemon has some 50 open.
        few = daemon(devices=4)
        command = few.command
        few.command = lambda: ["prlimit", "--nofile=112:112", *command()]
        with few as d:
            refused = d.run("start", *MUCH)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            error = json.loads(refused.stdout)["error"]
            self.assertEqual(error["code"], "resource_exhausted")
            self.assertIn("file descriptors", error["message"])
            self.assertIn("LimitNOFILE", error["message"])
            self.assertEqual([name for name in os.listdir(d.dump_root) if name.startswith("PROF_")], [])
            # A small one has its files, ends, and the daemon still answers.
            done = self.assert_serves(d, 1)
            self.assertEqual(manifest(done)["state"], "done")
            self.assertTrue(d.ctl("status"))
            self.assert_clean_end(d)

    @unittest.skipIf(is_sanitized(), "a sanitizer's memory is not ours")
    def test_too_little_address_space(self):
        with daemon() as d:
            used = int(processes.status(d.pid, "VmSize")) * 1024
            resource.prlimit(d.pid, resource.RLIMIT_AS, (used + 80 * MB, resource.RLIM_INFINITY))
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            self.assertIn("ulimit -v", json.loads(refused.stdout)["error"]["message"])
            resource.prlimit(d.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
            self.assert_serves(d, 1)
            self.assert_clean_end(d)

    def test_root_removed_underneath(self):
        with daemon() as d:
            session = start(d)
            d.until_records(session["session_id"], 50)
            subprocess.run(["rm", "-rf", d.dump_root], check=True)
            with open(d.dump_root, "w", encoding="utf-8"):
                pass  # something else is in its place
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            self.assertRegex(json.loads(refused.stdout)["error"]["message"], f"{d.dump_root}.*restart profd")
            done = d.until_state(session["session_id"], "done", "failed")
            self.assertRegex(done["reason"], "PROF_.* was removed while it was written; start another session")
            self.assertTrue(done["warnings"], "the dump is gone, without a warning")
            session = d.ctl("start", *START, "--no-dump")
            stop(d, session)
            os.unlink(d.dump_root)
            self.assert_complete(read_dump(self.assert_serves(d, 1)), 1)  # made again
            self.assert_clean_end(d)

    def test_root_moved_underneath(self):
        """Its files are open and grow on, where they are not found any more."""
        with daemon() as d:
            session = start(d)
            path = d.until_records(session["session_id"], 50)["dump_path"]
            away = d.dump_root + ".away"
            os.rename(d.dump_root, away)
            done = d.until_state(session["session_id"], "done", "failed")
            self.assertIn(f"{path} was moved away", done["reason"])
            os.rename(away, d.dump_root)
            self.assertEqual(manifest(done)["state"], "done")
            eventually(lambda: d.ctl("list", "--dumps")["dumps"][0]["state"] == "done", what="it is found again")
            os.rename(d.dump_root, away)
            self.assert_complete(read_dump(self.assert_serves(d, 1)), 1)  # made again
            self.assert_clean_end(d)

    def test_storage_limit(self):
        # A request's own limit is at least 200 MB, too much to wait for; the node's works the same way.
        limit = 4 * MB
        config = {"dump": {"flush_interval_ms": 100, "max_session_mb": limit // MB}}
        with daemon(devices=8, config=config) as d:
            session = start(d, *MUCH, expect=(OK, PARTIAL))
            done = d.until_state(session["session_id"], "done", "failed")
            self.assertEqual(done["state"], "done")
            self.assertIn("storage_limit", done["reason"])
            self.assertIn(str(limit), done["reason"])
            size = sum(map(os.path.getsize, files_below(done["dump_path"])))
            self.assertLessEqual(size, limit)
            self.assertGreater(size, limit // 2)
            self.assertLessEqual(done["dump_bytes"], limit)
            facts = manifest(done)
            self.assertIn("storage_limit", facts["reason"])
            reasons = {loss["reason"] for c in facts["channels"] for loss in c["dropped"]}
            self.assertLessEqual(reasons, {"storage_limit"})
            lost = sum(loss["records"] for c in facts["channels"] for loss in c["dropped"])
            self.assertEqual(lost, done["dropped_records"])
            self.assertEqual(sum(c["records"] for c in facts["channels"]), done["records"])
            self.assert_complete(read_dump(done), 0)
            self.assert_clean_end(d)

    def test_queue_too_small(self):
        """Everything at the highest rates through a queue of one megabyte: what is lost is counted,
        and what is counted is what is missing."""
        config = {"dump": {"queue_mb": 1, "flush_interval_ms": 5000},
                  "driver": {"poll_interval_ms": 100}}
        with daemon(devices=16, config=config) as d:
            session = start(d, *MUCH, expect=(OK, PARTIAL))
            eventually(lambda: d.show(session["session_id"])["dropped_records"] > 0 or
                       d.show(session["session_id"])["records"] > 400000, 60)
            done = stop(d, session)
            facts = manifest(done)
            lost = sum(loss["records"] for c in facts["channels"] for loss in c["dropped"])
            lost_bytes = sum(loss["bytes"] for c in facts["channels"] for loss in c["dropped"])
            self.assertEqual(lost, done["dropped_records"])
            self.assertEqual(lost_bytes, done["dropped_bytes"])
            if lost == 0:
                self.skipTest("this machine writes faster than the simulator delivers")
            eventually(lambda: d.metric("profd_dump_dropped_bytes_total", reason="queue_full") ==
                       lost_bytes, what="the metric says the same")
            dump = read_dump(done)
            for c in facts["channels"]:
                located = sum(gap["lost_records"] for gap in c["gaps"])
                if c["gap_count"] == len(c["gaps"]):
                    self.assertEqual(located, sum(x["records"] for x in c["dropped"]))
                if c["file"] in FILES and not c["dropped"]:
                    self.assertEqual(time_gaps(dump, c["device"], c["file"], c["hz_effective"]), [])
            self.assert_clean_end(d)


if __name__ == "__main__":
    profd_harness.main()
