#!/usr/bin/env python3
"""profctl selftest on the simulator: what it can find out there, and that it changes nothing unless requested."""

import json
import os
import unittest

from profd_harness import ALICE, BUILD, IS_ROOT, TEST_GROUP, group_id, main
from test_activity import ActivityCase
from text_files import read_text

# What the simulator is: a 910B with its driver's functions, ids and channels. Without --active nothing has run.
PASSIVE = {"hal_is_real": "no", "hal_complete": "yes", "hal_gates": "yes", "chips_known": "yes", "logical_ids": "yes", "task_channels": "yes",
           "channels_free": "open", "calls_return": "yes"}
LIBRARY = {"hal_for_users": "yes", "whole_chips": "yes", "mspti_there": "yes", "mspti_new": "yes", "aclprof_there": "yes", "observer": "yes"}
ACTIVE = {"record_layouts": "yes", "channels_free": "yes", "clock_pairs": "yes"}
# Each rank has a device of its own there.
JOB = {"mspti_late": "yes", "mspti_two": "open", "mspti_keeps_up": "yes", "mspti_records": "yes", "mspti_beside": "yes", "aclprof_thread": "yes",
       "clock_steps": "open", "graph_mode": "open"}


class Selftest(ActivityCase):
    config = {"daemon": {"socket_group": TEST_GROUP}} if IS_ROOT else {}

    def ask(self, *arguments, as_user=False, expect=0):
        """Answers by id, and the whole report."""
        path = os.pathsep.join((os.path.join(BUILD, "sim"), os.path.join(BUILD, "lib")))
        how = {"user": ALICE, "groups": [group_id()]} if as_user and IS_ROOT else {}
        done = self.daemon.run("selftest", *arguments, env={**os.environ, "LD_LIBRARY_PATH": path, "PROFD_SIM_SCENARIO": self.daemon.scenario_path}, **how)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        return {answer["id"]: answer["answer"] for answer in report["answers"]}, report, done.stderr

    def assert_answers(self, report, answers, expected):
        why = {answer["id"]: answer["why"] for answer in report["answers"]}
        self.assertEqual({each: answers[each] for each in expected}, expected, {each: why[each] for each in expected if answers[each] != expected[each]})

    def test_reads_only(self):
        before = self.daemon.ctl("list")
        answers, report, err = self.ask(as_user=True)
        self.assert_answers(report, answers, PASSIVE)
        self.assert_answers(report, answers, LIBRARY)
        self.assertEqual({answers[each["id"]] for each in report["answers"] if each["needs"] in ("active", "job", "person")}, {"open"})
        self.assertEqual(err, "")
        self.assertEqual(self.daemon.ctl("list"), before)
        running = [channel for device in self.daemon.ctl("devices")["devices"] for channel in device["channels"] if channel["state"] != "idle"]
        self.assertEqual(running, [])

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_as_root_no_library_is_loaded(self):
        answers, report, _ = self.ask()
        self.assertEqual({answers[each] for each in LIBRARY}, {"open"})
        self.assertIn("not as root", next(answer["why"] for answer in report["answers"] if answer["id"] == "mspti_there"))
        # It starts nothing then, and announces nothing.
        answers, _, err = self.ask("--active", "--only", "outside_start")
        self.assertEqual((answers, err), ({"outside_start": "open"}, ""))

    def test_inside_a_job(self):
        job = self.train()
        job.attached(self.daemon, 2)
        out = os.path.join(self.folder, "report.json")
        answers, report, err = self.ask("--active", "--job", job.job_id, "-o", out)
        self.assert_answers(report, answers, {**{each: PASSIVE[each] for each in ("hal_complete", "chips_known")}, **ACTIVE, **JOB})
        self.assertIn("starts a session of 5 s inside the processes of job", err)
        text = read_text(out)
        self.assertEqual(json.loads(text), report)
        for name in (job.job_id, self.daemon.node["hostname"]):
            self.assertNotIn(name, text)
        # Nothing of it stays, and the job continues.
        self.assertEqual(self.daemon.ctl("list")["sessions"], [])
        self.assertEqual(self.daemon.ctl("list", "--dumps")["dumps"], [])
        self.assertIsNone(job.process.poll())

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_starts_from_outside(self):
        answers, report, _ = self.ask("--active", "--only", "observer_taken,outside_start,outside_start_set", as_user=True)
        # Its channels start for everybody: only a driver's TS knows whose process it is.
        self.assertEqual(answers, {"observer_taken": "yes", "outside_start": "yes", "outside_start_set": "yes"}, report)
        starts = report["answers"][1]["evidence"]["starts"]
        self.assertEqual([start["channel"] for start in starts], ["44", "50"])


if __name__ == "__main__":
    main()
