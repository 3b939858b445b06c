#!/usr/bin/env python3
"""What the flight recorder writes a dump for: conditions of metrics, faults, and what happens to attached processes."""

import os
import signal
import subprocess

from attach_client import Client, Ring, raw_ns, script
from profd_harness import eventually, main, scaled
from test_recorder import RecorderCase, until_held
from text_files import read_json


class Triggers(RecorderCase):
    devices = 2
    faults = ({"kind": "ecc", "device": 1, "double": 1, "at": 5},)  # DCMI's list of faults is read each 10 s
    always = "atlas_host_load1 >= 0"
    own = "profd_recorder_enabled == 1"

    @classmethod
    def make_config(cls):
        return cls.config_with(["error_code"])

    @staticmethod
    def config_with(triggers, cooldown_s=0, max_dumps=2):
        return {"recorder": {"enabled": True, "collectors": ["hccs=10", "npu_state=1"],
                             "triggers": triggers, "dump_seconds": 10, "cooldown_s": cooldown_s,
                             "max_dumps": max_dumps}}

    def reload(self, *args, **how):
        """New triggers begin anew, so a condition that always holds fires once more."""
        self.daemon.write_config(self.config_with(*args, **how))
        self.daemon.process.send_signal(signal.SIGHUP)

    def dumps(self, kind):
        return [s for s in self.daemon.ctl("list")["sessions"] if s["label"] == f"trigger: {kind}" and s["state"] == "done"]

    def count(self, reason):
        return self.daemon.metric("profd_recorder_dumps_total", reason=reason) or 0

    def test_1_fault(self):
        """The simulator's card reports a fault: a dump of what led to it, the daemon's own."""
        found = eventually(lambda: self.dumps("error_code"), seconds=120, what="a dump of the fault")
        self.assertEqual(found[0]["uid"], os.getuid())
        self.assertIn("atlas_npu_", found[0]["reason"])
        self.assertIn('npu="1"', found[0]["reason"])
        dump = self.read(found[0])
        self.assertGreater(len(dump[(1, "hccs.data")].records), 20)
        self.assertIn("error_code", dump.manifest["session"]["requested"]["reason"])
        eventually(lambda: self.count("error_code") >= 1)

    def test_2_cap(self):
        """The oldest goes when there are too many."""
        seen = []
        for i in range(4):
            self.reload([(self.always, self.own)[i % 2] + " for 0s" * (i // 2)])
            # The label says which; what it replaced is gone from the list and the disk.
            new = eventually(lambda: [s for s in self.dumps("threshold")
                                      if s["session_id"] not in [o["session_id"] for o in seen]],
                             what=f"dump {i}")
            seen += new
        eventually(lambda: self.count("threshold") >= 4)
        left = eventually(lambda: len(self.dumps("threshold")) == 2 and self.dumps("threshold"))
        self.assertEqual([s["session_id"] for s in left], [s["session_id"] for s in seen[-2:]])
        eventually(lambda: not os.path.exists(seen[0]["dump_path"]))
        self.assertIn(self.always, left[0]["reason"])
        self.assertIn(self.own, left[1]["reason"])

    def test_2_removed(self):
        """A dump that its user has removed does not push out an older one, and a user's is never taken for a trigger's."""
        def fire(number):
            known = {s["session_id"] for s in self.dumps("threshold")}
            self.reload([f"{self.always} for {number}ms"])
            return eventually(lambda: [s["session_id"] for s in self.dumps("threshold") if s["session_id"] not in known],
                              what=f"dump {number}")[0]

        first, second = fire(1), fire(2)
        self.daemon.ctl("rm", second)
        third = fire(3)
        # What has to go is no dump any more when the new one is listed.
        kept = {dump["session_id"] for dump in self.daemon.ctl("list", "--dumps")["dumps"]}
        self.assertEqual(kept, {first, third})
        refused = self.daemon.run("dump", "--label", "trigger: mine")
        self.assertEqual(refused.returncode, 3)
        self.assertIn('must not begin with "trigger: "', refused.stderr)

    def test_3_cool_down(self):
        self.reload([self.always], cooldown_s=3600)
        before = eventually(lambda: self.count("threshold"))
        self.reload([self.always + " for 0s"], cooldown_s=3600)
        self.reload([self.always], cooldown_s=3600)
        eventually(lambda: self.daemon.metric("profd_recorder_suppressed_total"),
                   what="a trigger is suppressed")
        self.assertLessEqual(self.count("threshold"), before + 1)

    def test_4_bad_triggers(self):
        """Every mistake is reported, and what ran before continues."""
        self.reload(["no_such_metric > 1", "step > 1x median"])
        eventually(lambda: "configuration not reloaded" in self.daemon.log())
        log = self.daemon.log()
        self.assertIn("no_such_metric", log)
        self.assertIn("median", log)


class Processes(RecorderCase):
    """What happens to attached processes triggers, too."""

    devices = 2
    config = {"recorder": {"enabled": True, "collectors": ["hccs=10"], "cooldown_s": 0,
                           "triggers": ["crash", "step > 3x median"]}}

    def labelled(self, kind):
        return [s for s in self.daemon.ctl("list")["sessions"] if s["label"] == f"trigger: {kind}" and s["state"] == "done"]

    def client(self):
        client = Client(self.daemon.attach_socket, timeout=scaled(30))
        self.addCleanup(client.close)
        return client

    def test_crash(self):
        until_held(self.daemon, 1)
        self.client().attach(job_id="fine", rank=0).bye()
        # This process lost its connection, and still runs.
        self.client().attach(job_id="cut-off", rank=1).close()
        code = ("import os, signal\n"
                "from attach_client import Client\n"
                "Client(sys.argv[1]).attach(job_id='crashed', rank=3)\n"
                "os.kill(os.getpid(), signal.SIGKILL)\n")
        ended = subprocess.run([*script(code), self.daemon.attach_socket],
                               check=False, timeout=scaled(60))
        self.assertEqual(ended.returncode, -signal.SIGKILL)
        found = eventually(lambda: self.labelled("crash"), what="a dump of the crash")
        self.assertEqual(found[0]["job_id"], "crashed")
        self.assertIn("rank 3", found[0]["reason"])
        self.assertEqual(len(found), 1)
        self.read(found[0])

    def test_slow_step(self):
        until_held(self.daemon, 1)
        ring = Ring(256)
        self.addCleanup(ring.close)
        client = self.client().attach(ring, job_id="slow", rank=0)
        at = raw_ns() - 10_000_000_000
        for step in range(12):
            ring.step(step, at, at + 100_000_000)
            at += 200_000_000
        ring.step(12, at, at + 900_000_000)
        found = eventually(lambda: self.labelled("slow_step"), what="a dump of the slow step")
        self.assertIn("step 12", found[0]["reason"])
        self.assertEqual(found[0]["job_id"], "slow")
        client.bye()

    def test_dump_of_a_job(self):
        until_held(self.daemon, 1)
        client = self.client().attach(job_id="half", rank=0, devices=[1])
        eventually(lambda: any(j["job_id"] == "half" for j in self.daemon.ctl("jobs")["jobs"]))
        made = self.daemon.ctl("dump", "--job", "half")
        self.assertEqual(set(self.read(made).devices), {1})
        # Nothing is recorded inside the process; that it is rank 0 on device 1 is known all the same.
        processes = read_json(made["dump_path"], "profd_manifest.json")["session"]["processes"]
        self.assertEqual([(p["pid"], p["rank"], p["devices"]) for p in processes], [(os.getpid(), 0, [1])])
        # So a fetch from many nodes knows its rank.
        self.assertEqual([(p["pid"], p["rank"], p["attached"]) for p in made["processes"]], [(os.getpid(), 0, True)])
        refused = self.daemon.run("dump", "--job", "whole")
        self.assertEqual(refused.returncode, 4)
        self.assertIn("half", refused.stderr)
        client.bye()


if __name__ == "__main__":
    main()
