"""The daemon is killed at random instants under full load: start, recovery, running, stopping. Every
dump it leaves is completed by its successor and valid, every session continues or has a reason why not.

PROFD_CRASH_KILLS   how often (default 15; 500 take about 7 minutes on two cores)
PROFD_CRASH_SEED    of the instants (default: another one each time, printed)
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

import prof_reader
import profd_harness
from attach_client import Client, Ring
from fault_common import OK, PARTIAL, FaultCase, daemon
from profd_harness import PROFCTL, RUNNER, scaled
from text_files import files_below, read_json

KILLS = int(os.environ.get("PROFD_CRASH_KILLS", "15"))
SEED = int(os.environ.get("PROFD_CRASH_SEED", str(random.SystemRandom().randrange(1 << 30))))
MUCH = ["--sys-hardware-mem-freq", "100", "--llc-profiling", "read", "--sys-io-sampling-freq", "100",
        "--sys-interconnection-freq", "50", "--dvpp-freq", "100"]
STARTS = [
    [*MUCH, "--host-sys-usage", "cpu,mem", "--all", "--job", "crash"],
    [*MUCH, "--storage-limit", "200MB", "--devices", "0-3"],
    ["--collector", "hbm=100", "--collector", "hccs=50", "--devices", "4-7", "--duration", "3s"],
    ["--collector", "host_cpu=50", "--in", "400ms", "--duration", "2s"],
]
ENDED = ("done", "failed", "interrupted")


class Marker(threading.Thread):
    """A training process that marks and steps for as long as its daemon lives."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path = path
        self.over = threading.Event()

    def run(self):
        # The daemon is killed under it: whatever fails then is expected.
        with contextlib.suppress(Exception):
            ring = Ring()
            try:
                with Client(self.path, timeout=5) as client:
                    client.attach(ring=ring, job_id="crash", rank=0)
                    step = 0
                    while not self.over.wait(0.005):
                        step += 1
                        ring.step(step)
            finally:
                ring.close()


class Crash(FaultCase):
    def test_killed_at_any_instant(self):
        print(f"PROFD_CRASH_SEED={SEED} PROFD_CRASH_KILLS={KILLS}", file=sys.stderr)
        self.dice = random.Random(SEED)
        self.verified = self.killed_early = self.continued = 0
        config = {"dump": {"flush_interval_ms": 100},
                  "limits": {"max_starts_per_minute": 100000}}
        with daemon(devices=8, config=config) as d:
            self.daemon = d
            self.known = {}  # sessions that were answered, and their last state
            begun = time.monotonic()
            for cycle in range(KILLS):
                self.one_life(d, cycle)
                if time.monotonic() - begun > 3600:
                    self.fail("this takes too long")
            d.restart() if d.alive() else d.start()
            self.check_sessions(d)
            self.verify_ended(d)
            for session in d.ctl("list", "--active")["sessions"]:
                d.ctl("stop", session["session_id"], expect=(OK, PARTIAL))
            self.verify_ended(d)
            self.assertEqual(os.listdir(os.path.join(d.dump_root, ".state", "sessions")), [])
            print(f"{KILLS} kills in {time.monotonic() - begun:.0f} s, {self.killed_early} of them "
                  f"before the daemon answered; {self.verified} dumps verified, "
                  f"{self.continued} sessions seen to go on", file=sys.stderr)

    def one_life(self, d, cycle):
        if d.process is not None:
            d.kill()
        d.start(ready=False)
        if self.dice.random() < 0.25:
            # In the middle of its start: recovery, continuing.
            time.sleep(self.dice.uniform(0, 0.25))
            if d.run("status").returncode != 0:
                self.killed_early += 1
            d.kill()
            return
        d.wait_ready()
        self.check_sessions(d)
        marker = Marker(d.attach_socket)
        marker.start()
        active = d.ctl("list", "--active")["sessions"]
        helpers = []
        for flags in STARTS[len(active):] if len(active) < len(STARTS) else []:
            helpers.append(d.spawn("start", *flags))
        if active and self.dice.random() < 0.3:
            # One that is stopped before its start leaves nothing to be found again.
            victim = self.dice.choice(active)["session_id"]
            self.known.pop(victim, None)
            helpers.append(d.spawn("stop", victim))
        time.sleep(self.dice.uniform(0, 0.8))
        d.kill()
        marker.over.set()
        marker.join()
        for helper in helpers:
            out, _ = helper.communicate(timeout=scaled(60))
            with contextlib.suppress(ValueError, KeyError):
                answer = json.loads(out)
                if answer.get("session_id"):
                    self.known[answer["session_id"]] = answer["state"]
        if cycle % 5 == 4:
            d.start()
            self.check_sessions(d)
            self.verify_ended(d)

    def check_sessions(self, d):
        """A session that was answered is not lost."""
        sessions = {s["session_id"]: s for s in d.ctl("list")["sessions"]}
        for session_id in list(self.known):
            self.assertIn(session_id, sessions)
            session = sessions[session_id]
            if session["state"] in ENDED:
                self.assertTrue(session["reason"], session)
                # It was answered; without a dump the next daemon does not know it any more.
                self.known.pop(session_id)
            elif len(session["segments"]) > 1:
                self.continued += 1
                for segment in session["segments"][:-1]:
                    self.assertEqual(segment["state"], "interrupted", session)

    def verify_ended(self, d):
        """Every dump that is complete, by both checkers; then it is deleted."""
        dumps = d.ctl("list", "--dumps")["dumps"]
        live = {s["dump_path"] for s in d.ctl("list", "--active")["sessions"]}
        ended = []
        for dump in dumps:
            path = os.path.join(d.dump_root, dump["name"])
            if dump["state"] != "running" and path not in live:
                self.assertIn(dump["state"], ENDED)
                ended.append(path)
        if ended:
            result = subprocess.run(RUNNER + [PROFCTL, "--json", "verify", *ended], text=True,
                                    capture_output=True, check=False, timeout=scaled(600))
            if result.returncode != 0:
                broken = [one for one in json.loads(result.stdout)["dumps"] if one.get("problems")]
                self.keep(broken, d)
                self.fail(json.dumps(broken, indent=1)[:6000] + result.stderr)
        for path in ended:
            self.check_by_hand(path)
            self.verified += 1
        for session in d.ctl("list")["sessions"]:
            if session["state"] in ENDED:
                self.known.pop(session["session_id"], None)
                d.ctl("rm", session["session_id"], expect=(OK, 4))
        for path in ended:
            if os.path.exists(path):
                d.run("rm", os.path.basename(path))

    def check_by_hand(self, path):
        """Slices, their .done, control files and manifest agree, by a reader of another hand."""
        facts = read_json(path, "profd_manifest.json")
        self.assertIn(facts["state"], ENDED, path)
        self.assertEqual([n for n in os.listdir(path) if n.startswith(".")], [], path)
        listed = {file["path"]: file["bytes"] for file in facts["files"]}
        for whole in files_below(path):
            relative = os.path.relpath(whole, path)
            if ".slice_" not in os.path.basename(whole):
                continue
            if whole.endswith(".done"):
                self.assertTrue(os.path.exists(whole[:-5]), relative)
                continue
            size = os.path.getsize(whole)
            self.assertEqual(listed.get(relative), size, relative)
            with open(whole + ".done", encoding="ascii") as done:
                self.assertEqual(done.readline(), f"filesize:{size}\n", relative)
        if facts["state"] == "interrupted":
            for channel in facts["channels"]:
                self.assertNotEqual(channel["state"], "running", path)
        dump = prof_reader.read(path)
        problems = [p for p in dump.problems if "no data" not in p]
        host_losses = [c for c in facts["channels"] if c["device"] < 0 and c["dropped"]]
        if host_losses:
            # A block that was dropped leaves its number out.
            problems = [p for p in problems if "Index" not in p]
        if problems:
            self.keep([{"name": os.path.basename(path)}], self.daemon)
        self.assertEqual(problems, [], (path, facts["warnings"], host_losses))

    def keep(self, broken, d):
        """They may be wanted later."""
        folder = os.environ.get("PROFD_CRASH_KEEP")
        if not folder:
            return
        for one in broken:
            name = os.path.basename(one.get("name") or one.get("dump") or "")
            shutil.copytree(os.path.join(d.dump_root, name), os.path.join(folder, name),
                            dirs_exist_ok=True)


if __name__ == "__main__":
    profd_harness.main()
