"""Dumps outlive the daemon: sessions that go on, quota, pins, dumps by name, compression."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

import prof_reader
import profd_harness
from profd_harness import ALICE, BOB, IS_ROOT, TEST_GROUP, Daemon, eventually, group_id, scaled, temp_folder
from text_files import files_below, read_json, read_text, write_text
from toml_files import merged, scenario_text

OK, REFUSED, NOT_FOUND, PARTIAL = 0, 3, 4, 5
MB = 1 << 20
START = ["--collector", "hbm=100", "--collector", "hccs=50", "--collector", "pcie=50"]
# Some megabytes in a second.
MUCH = ["--sys-hardware-mem-freq", "100", "--sys-interconnection-freq", "50", "--host-sys-usage",
        "cpu,mem"]


def daemon(devices=2, config=None, **how):
    config = merged({"dump": {"flush_interval_ms": 100}}, config or {})
    return Daemon(scenario_text=scenario_text(devices=devices), config=config, **how)


def dumps_of(d):
    return sorted(name for name in os.listdir(d.dump_root) if name.startswith("PROF_"))


def bytes_of(d):
    """Everything of every dump, as another user sees it."""
    total = 0
    for name in dumps_of(d):
        for path in files_below(d.dump_root, name):
            with contextlib.suppress(OSError):  # removed in this moment
                total += os.path.getsize(path)
    return total


def manifest(segment):
    return read_json(segment["dump_path"] + "/profd_manifest.json")


class Punctual:
    """How long the daemon took to answer. Where its CPUs are all taken, its checks of limits are late, too, and
    may come when more has been written (docs/dumps.md)."""

    LATE = 0.25  # seconds; checks are 0.2 apart, and leave half a second to spare

    def __init__(self, d):
        self.show, self.longest = d.show, 0
        d.show = self.timed

    def timed(self, session_id):
        begin = time.monotonic()
        session = self.show(session_id)
        self.longest = max(self.longest, time.monotonic() - begin)
        return session

    def __bool__(self):
        return self.longest < self.LATE


class Dumps(unittest.TestCase):
    def start(self, d, *flags, **how):
        return d.ctl("start", *(flags or START), expect=(OK, PARTIAL), **how)["session_id"]

    def stop(self, d, session_id):
        d.ctl("stop", session_id, expect=(OK, PARTIAL))
        return d.show(session_id)

    def verify(self, d, *paths):
        result = d.run("verify", *paths)
        self.assertEqual(result.returncode, OK, result.stdout[-4000:] + result.stderr)

    # Going on -------------------------------------------------------------------------------

    def test_a_session_continues_after_a_crash(self):
        with daemon() as d:
            session_id = self.start(d, *START, "--all", "--job", "train", "--label", "mine")
            before = d.until_records(session_id, 100)
            d.kill()
            d.start()
            session = d.show(session_id)
            self.assertEqual(session["state"], "running")
            self.assertEqual(session["label"], "mine")
            self.assertEqual(session["started_ns"], before["started_ns"])
            self.assertEqual([s["state"] for s in session["segments"]], ["interrupted", "running"])
            first, second = session["segments"]
            self.assertEqual(first["dump_path"], before["dump_path"])
            self.assertNotEqual(first["dump_path"], second["dump_path"])
            facts = manifest(first)
            self.assertEqual(facts["state"], "interrupted")
            for channel in facts["channels"]:
                self.assertEqual([g["reason"] for g in channel["gaps"]][-1:], ["daemon_ended"], channel)
            d.until_records(session_id, first["records"] + 100)
            done = self.stop(d, session_id)
            self.assertEqual(done["state"], "done")
            self.assertEqual(sum(s["records"] for s in done["segments"]), done["records"])
            self.assertEqual([s["number"] for s in done["segments"]], [1, 2])
            facts = manifest(second)
            self.assertEqual(facts["segment"], 2)
            self.assertEqual(facts["continues"], os.path.basename(first["dump_path"]))
            self.verify(d, first["dump_path"], second["dump_path"])
            out = temp_folder(self)
            fetched = d.ctl("fetch", session_id, "--out", out)
            self.assertEqual([os.path.basename(p) for p in fetched["paths"]],
                             [os.path.basename(s["dump_path"]) for s in done["segments"]])
            self.verify(d, *fetched["paths"])
            # A new daemon still knows that the two belong together.
            d.restart()
            self.assertEqual(len(d.show(session_id)["segments"]), 2)
            self.assertEqual(d.show(session_id)["state"], "done")
            d.ctl("rm", session_id)
            self.assertEqual(dumps_of(d), [])

    def test_again_and_again(self):
        with daemon() as d:
            session_id = self.start(d)
            for segments in (2, 3, 4):
                d.until_records(session_id, d.show(session_id)["records"] + 50)
                d.kill()
                d.start()
                eventually(lambda segments=segments: len(d.show(session_id)["segments"]) == segments, what=f"{segments} segments")
            self.assertEqual(self.stop(d, session_id)["state"], "done")

    def test_a_finished_session_is_shown_as_before(self):
        with daemon() as d:
            session_id = self.start(d)
            d.until_records(session_id, 50)
            before = self.stop(d, session_id)
            d.restart()
            after = d.show(session_id)
            rows = [{(o["collector"], o["device"]): o for o in session["outcomes"]} for session in (before, after)]
            self.assertEqual(rows[0].keys(), rows[1].keys())
            for key, row in rows[0].items():
                again = rows[1][key]
                # Files have header lines besides.
                self.assertTrue(row["bytes"] <= again["bytes"] <= row["bytes"] + 200, key)
                self.assertEqual({**row, "detail": "", "bytes": 0}, {**again, "detail": "", "bytes": 0}, key)
            self.assertEqual((before["records"], before["state"]), (after["records"], after["state"]))

    def test_a_restart_leaves_the_session_to_the_next_daemon(self):
        # SIGUSR2 is the unit's RestartKillSignal. Nothing is flushed in time: it has to be at the end.
        with daemon(config={"dump": {"flush_interval_ms": 60000}}) as d:
            session_id = self.start(d)
            before = d.until_records(session_id, 100)
            self.assertEqual(d.stop(signal.SIGUSR2), 0)
            d.start()
            session = d.until_state(session_id, "running")
            first = session["segments"][0]
            self.assertGreaterEqual(first["records"], before["records"])
            d.until_records(session_id, first["records"] + 50)
            done = self.stop(d, session_id)
            self.verify(d, *(segment["dump_path"] for segment in done["segments"]))

    def test_a_state_that_was_saved_before_the_dump_was_made(self):
        """Killed so soon that the state names no dump: it is the session's first segment all the same."""
        with daemon() as d:
            session_id = self.start(d)
            d.until_records(session_id, 50)
            d.kill()
            path = os.path.join(d.dump_root, ".state", "sessions", session_id + ".json")
            state = read_json(path)
            del state["dump"]
            write_text(path, json.dumps(state))
            d.start()
            self.assertEqual(len(d.show(session_id)["segments"]), 2)
            self.assertEqual(self.stop(d, session_id)["state"], "done")

    def test_not_beyond_its_own_end(self):
        child = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        with daemon() as d:
            short = self.start(d, *START, "--duration", "300ms", "--devices", "0")
            tied = self.start(d, *START, "--end-with-pid", str(child.pid), "--devices", "1")
            d.kill()
            child.kill()
            child.wait()
            time.sleep(0.5)  # the duration ends meanwhile
            d.start()
            reasons = {}
            for session_id, why in ((short, "duration"), (tied, f"process {child.pid} ended")):
                session = d.show(session_id)
                if session["state"] == "done":
                    continue  # it had ended before the kill
                self.assertEqual(session["state"], "interrupted", session)
                self.assertIn("not continued", session["reason"])
                self.assertIn(why, session["reason"])
                reasons[session_id] = session["reason"]
                eventually(lambda session=session: manifest(session["segments"][0])["reason"] == session["reason"])
            self.assertEqual(d.ctl("list", "--active")["sessions"], [])
            self.assertEqual(os.listdir(os.path.join(d.dump_root, ".state", "sessions")), [])
            d.kill()
            d.start()
            self.assertEqual({session_id: d.show(session_id)["reason"] for session_id in reasons}, reasons)

    def test_a_start_to_come_survives(self):
        with daemon() as d:
            session_id = d.ctl("start", *START, "--in", "4s", "--detach")["session_id"]
            d.kill()
            d.start()
            session = d.show(session_id)
            self.assertIn(session["state"], ("scheduled", "starting", "running"))
            self.assertLessEqual(len(session["segments"]), 1)
            session = d.until_state(session_id, "running")
            self.assertGreaterEqual(session["started_ns"], session["start_at_ns"])
            d.until_records(session_id, 20)
            self.assertEqual(self.stop(d, session_id)["state"], "done")

    def test_state_that_is_damaged_is_reported(self):
        with daemon() as d:
            d.kill()
            for name in ("pins.json", "archive.json"):
                write_text(os.path.join(d.dump_root, ".state", name), '{"pinned": ["PROF_')
            d.start()
            self.assertRegex(d.log(), 'error pins could not be read: pinned dumps are not protected why="pins.json is damaged"')
            self.assertRegex(d.log(), 'error what waits for the database cannot be read why="archive.json is damaged"')

    def test_one_daemon_at_a_time(self):
        with daemon() as d:
            session_id = self.start(d)
            other = d.command()
            at = other.index("--socket") + 1
            other[at] = os.path.join(d.base, "other")
            result = subprocess.run(other, capture_output=True, text=True, timeout=scaled(60),
                                    check=False)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("another profd", result.stdout + result.stderr)
            self.assertEqual(self.stop(d, session_id)["state"], "done")

    # Untrusted dumps ------------------------------------------------------------------------

    def test_changes_of_owners_to_their_dumps(self):
        with daemon() as d:
            session_id = self.start(d)
            d.until_records(session_id, 50)
            path = d.show(session_id)["dump_path"]
            d.kill()
            victim = os.path.join(d.base, "victim")
            write_text(victim, "precious")
            data = os.path.join(path, "device_0", "data")
            for name in os.listdir(data):
                os.unlink(os.path.join(data, name))
                os.symlink(victim, os.path.join(data, name))
            os.mkfifo(os.path.join(path, "device_0", "data", "hbm.data.0.slice_9"))
            shutil.rmtree(os.path.join(path, "host"))
            os.symlink("/etc", os.path.join(path, "host"))
            d.start()
            self.assertEqual(read_text(victim), "precious")
            self.assertFalse(os.path.exists("/etc/end_info"))
            self.assertEqual(d.show(session_id)["segments"][0]["state"], "interrupted")
            self.stop(d, session_id)

    # Space ----------------------------------------------------------------------------------

    def test_the_oldest_go_first_and_pinned_ones_stay(self):
        limit = 12
        with daemon(devices=8, config={"dump": {"max_total_mb": limit}}) as d:
            pinned = self.start(d, *MUCH)
            d.until_records(pinned, 3000)
            self.stop(d, pinned)
            self.assertTrue(d.ctl("pin", pinned)["dumps"][0]["pinned"])
            self.assertTrue(d.show(pinned)["pinned"])
            seen = [pinned]
            punctual = Punctual(d)
            most = 0
            for _ in range(30):
                session_id = self.start(d, *MUCH)
                end = time.monotonic() + 60
                while time.monotonic() < end:
                    session = d.show(session_id)
                    most = max(most, bytes_of(d) if punctual else 0)
                    if session["records"] > 16000 or session["state"] in ("done", "failed"):
                        break
                self.stop(d, session_id)
                seen.append(session_id)
                removed = d.metric("profd_dumps_removed_total", reason="max_total")
                if removed and removed >= 2:
                    break
            self.assertLessEqual(most, limit * MB)
            self.assertTrue(eventually(
                lambda: d.metric("profd_dumps_removed_total", reason="max_total")))
            left = d.ctl("list", "--dumps")
            names = [dump["session_id"] for dump in left["dumps"]]
            self.assertIn(pinned, names)
            self.assertNotIn(seen[1], names)
            self.assertIn("removed by retention", " ".join(d.show(seen[1])["warnings"]))
            self.assertEqual(left["max_total_bytes"], limit * MB)
            self.assertEqual(d.run("rm", pinned).returncode, REFUSED)
            d.ctl("unpin", pinned)
            d.ctl("rm", pinned)

    def test_nothing_left_to_remove(self):
        with daemon(devices=2, config={"dump": {"max_total_mb": 6}}) as d:
            session_id = self.start(d, *MUCH)
            punctual = Punctual(d)
            done = d.until_state(session_id, "done", "failed")
            self.assertEqual(done["state"], "done")
            self.assertIn("dump.max_total_mb", done["reason"])
            if punctual:
                self.assertLessEqual(bytes_of(d), 6 * MB)
            d.ctl("pin", session_id)
            # Perhaps one more still fits, and it ends at once; then there is none.
            for _ in range(20):
                refused = d.run("start", *MUCH)
                if refused.returncode == REFUSED:
                    break
                other = json.loads(refused.stdout)["session_id"]
                d.until_state(other, "done", "failed")
                d.run("pin", other)
            self.assertEqual(refused.returncode, REFUSED)
            self.assertIn("dump.max_total_mb", json.loads(refused.stdout)["error"]["message"])
            if punctual:
                self.assertLessEqual(bytes_of(d), 6 * MB)

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_users(self):
        config = {"daemon": {"socket_group": TEST_GROUP},
                  "limits": {"max_kept_mb_per_uid": 4, "max_pinned_mb_per_uid": 1}}
        gid = group_id()
        with daemon(devices=4, config=config) as d:
            alice = {"user": ALICE, "groups": [gid]}
            bob = {"user": BOB, "groups": [gid]}
            first = self.start(d, *MUCH, **alice)
            done = d.until_state(first, "done", "failed")
            self.assertIn("limits.max_kept_mb_per_uid", done["reason"])
            name = os.path.basename(done["dump_path"])
            # Others' dumps do not exist.
            self.assertEqual(d.run("pin", first, **bob).returncode, NOT_FOUND)
            self.assertEqual(d.run("pin", name, **bob).returncode, NOT_FOUND)
            self.assertEqual(d.run("rm", name, **bob).returncode, NOT_FOUND)
            self.assertEqual(d.ctl("list", "--dumps", **bob)["dumps"], [])
            # "done" of the session comes before its dump is complete.
            hers = eventually(lambda: [x["name"] for x in d.ctl("list", "--dumps", **alice)["dumps"]
                                       if x["state"] != "running"])
            self.assertEqual(hers, [name])
            refused = d.run("pin", first, **alice)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            self.assertIn("limits.max_pinned_mb_per_uid", refused.stderr)
            # Only her own dumps are removed.
            others = self.start(d, **bob)
            self.stop(d, others)
            second = self.start(d, *MUCH, **alice)
            eventually(lambda: d.metric("profd_dumps_removed_total", reason="max_kept_per_uid"))
            d.run("stop", second)  # or it has met the limit as well by now
            d.until_state(second, "done", "failed")
            kept = [x["session_id"] for x in d.ctl("list", "--dumps")["dumps"]]
            self.assertEqual(sorted(kept), sorted([others, second]))

    # By name --------------------------------------------------------------------------------

    def test_dumps_the_list_has_forgotten(self):
        with daemon(config={"limits": {"keep_finished": 1}}) as d:
            first = self.start(d)
            d.until_records(first, 20)
            name = os.path.basename(self.stop(d, first)["dump_path"])
            second = self.start(d)
            self.stop(d, second)
            eventually(lambda: d.run("show", first).returncode == NOT_FOUND)
            self.assertIn(name, [x["name"] for x in d.ctl("list", "--dumps")["dumps"]])
            d.ctl("pin", name)
            d.ctl("unpin", name)
            out = temp_folder(self)
            self.verify(d, d.ctl("fetch", name, "--out", out)["path"])
            d.ctl("rm", name)
            self.assertNotIn(name, dumps_of(d))
            self.assertEqual(d.run("rm", name).returncode, NOT_FOUND)
            self.assertEqual(d.run("rm", "PROF_../../etc").returncode, NOT_FOUND)

    # The vendor's layout --------------------------------------------------------------------

    def test_a_dump_of_an_earlier_version_is_fetched_with_todays_layout(self):
        """Earlier versions had profd/ directly in the dump, where the vendor's analyser stumbles over it."""
        out = temp_folder(self)
        with daemon() as d:
            session_id = self.start(d, *START, "--collector", "npu_state=5", "--collector", "host_mem=5")
            d.until_records(session_id, 50)
            done = self.stop(d, session_id)
            dump = done["dump_path"]
            os.rename(os.path.join(dump, "host", "profd"), os.path.join(dump, "profd"))
            with open(os.path.join(dump, "profd_manifest.json"), "r+", encoding="utf-8") as file:
                text = file.read().replace('"host/profd/', '"profd/')
                file.seek(0)
                file.write(text)
                file.truncate()
            self.verify(d, dump)
            fetched = d.ctl("fetch", session_id, "--out", out)["path"]
            self.assertEqual(sorted(name for name in os.listdir(fetched) if os.path.isdir(os.path.join(fetched, name))),
                             ["device_0", "device_1", "host"])
            self.assertEqual(sorted(os.listdir(os.path.join(fetched, "host", "profd"))), ["samples.tsv", "slices.tsv"])
            self.verify(d, fetched)
            self.assertEqual(prof_reader.read(fetched).problems, [])

    # Verifying ------------------------------------------------------------------------------

    def test_a_running_dump_is_consistent_so_far(self):
        """Whatever is opened, closed, compressed and removed by the limit meanwhile."""
        with daemon() as d:
            session_id = self.start(d, *MUCH, "--storage-limit", "200MB", "--compress")
            dump = d.show(session_id)["dump_path"]
            d.until_records(session_id, 50)
            for _ in range(5):
                result = d.run("verify", dump, json_output=False)
                self.assertEqual(result.returncode, OK, result.stdout[-4000:] + result.stderr)
                self.assertIn(": running, consistent so far, ", result.stdout)
            self.verify(d, self.stop(d, session_id)["dump_path"])

    # Compression ----------------------------------------------------------------------------

    def test_compressed(self):
        with daemon(devices=2) as d:
            session_id = self.start(d, *START, "--compress")
            d.until_records(session_id, 2000)
            done = self.stop(d, session_id)
            paths = files_below(done["dump_path"])
            self.assertTrue(any(path.endswith(".zst") for path in paths), paths)
            self.verify(d, done["dump_path"])


if __name__ == "__main__":
    profd_harness.main()
