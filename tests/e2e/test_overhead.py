#!/usr/bin/env python3
"""What profd may cost: above its budget the daemon reads less often, and processes leave kinds out; both say it."""

import os
import signal
import tempfile
import unittest

from profd_harness import Daemon, eventually, main
from sim_train import SimTrain
from text_files import read_json, write_text

# Above one percent of a core on any machine, in whatever build.
HOST = ("host_cpu=50", "host_mem=50", "host_net=10")
# Many short kernels, which the host launches one by one.
JOB = """
name = "busy"
steps = 1000000
data_parallel = 1
[[layer]]
name = "block"
count = 50
[[layer.operator]]
type = "Add"
core = "aivec"
us = 20
backward_us = 20
"""


def losses(manifest, reason):
    return {channel["collector"]: loss for channel in manifest["channels"] for loss in channel["dropped"] if loss["reason"] == reason}


def manifest_of(session):
    return read_json(session["dump_path"], "profd_manifest.json")


class Overhead(unittest.TestCase):
    def test_daemon(self):
        with Daemon(config={"overhead": {"max_daemon_permille": 10, "max_process_permille": 0}}) as d:
            session = d.ctl("start", *(f"--collector={one}" for one in HOST), "--detach")["session_id"]
            eventually(lambda: (d.metric("profd_collector_pace") or 1) > 1, seconds=60, every=0.5, what="it reads less often")
            self.assertGreater(d.metric("profd_overhead_cores"), 0.01)
            self.assertEqual(d.metric("profd_overhead_limit_cores"), 0.01)
            overhead = d.ctl("status")["overhead"]
            self.assertGreater(overhead["pace"], 1)
            self.assertRegex(d.run("status", json_output=False).stdout,
                             r"overhead +\d+\.\d % of a core, 1 % allowed; over it: host and DCMI collectors are read at 1/[248] of their rates")
            self.assertRegex(d.log(1000), r"profd is over its budget.*max_daemon_permille=10\b")
            eventually(lambda: (d.metric("profd_collector_left_out_ticks_total", collector="host_cpu") or 0) > 50,
                       what="readings are left out")
            # Without a limit everything is read again, at once.
            d.write_config({"overhead": {"max_daemon_permille": 0, "max_process_permille": 0}})
            d.process.send_signal(signal.SIGHUP)
            eventually(lambda: d.metric("profd_collector_pace") == 1, what="it reads all again")
            d.ctl("stop", session)
            ended = d.until_state(session, "done")
            for outcome in ended["outcomes"]:
                self.assertRegex(outcome["detail"], r"\d+ samples left out \(profd over its budget\)", outcome)
            lost = losses(manifest_of(ended), "over_budget")
            self.assertEqual(set(lost), {one.split("=")[0] for one in HOST})
            self.assertGreater(lost["host_cpu"]["records"], 50)
            self.assertEqual(d.ctl("verify", ended["dump_path"])["ok"], True)
            self.assertRegex(d.run("show", ended["dump_path"], json_output=False).stdout,
                             r"host host_cpu: \d+ samples left out \(profd over its budget\)")

    def test_process(self):
        with tempfile.TemporaryDirectory(prefix="profd-overhead-") as folder, \
                Daemon(config={"overhead": {"max_daemon_permille": 0, "max_process_permille": 1}}) as d:
            job = SimTrain(d.attach_socket, os.path.join(folder, "busy"), text=JOB)
            self.addCleanup(job.close)
            pids = job.attached(d, 1)
            session = d.ctl("start", "--job", "busy", "--task-time", "l1", "--runtime-api", "on", "--detach")["session_id"]

            def calls():
                return [outcome for outcome in d.show(session)["outcomes"] if outcome["collector"] == "runtime_api"][0]

            eventually(lambda: "left out runtime_api" in calls()["detail"], seconds=60, every=0.5, what="calls are left out")
            self.assertEqual(calls()["result"], "partial")
            self.assertRegex(calls()["detail"], r"served by 1 of 1 process; rank 0: partial: .*collecting took \d+\.\d % of a core, may take 0\.1 %")
            d.ctl("stop", session)
            ended = d.until_state(session, "done")
            manifest = manifest_of(ended)
            lost = losses(manifest, "over_budget")
            self.assertIn("activity_api", lost)
            self.assertEqual(lost["activity_api"]["records"], 0)
            self.assertLess(lost["activity_api"]["from_ns"], lost["activity_api"]["to_ns"])
            collectors = {process["pid"]: process["collector"] for process in manifest["session"]["processes"]}
            # 0.1 % of a core for the 10 s that it took to see it.
            self.assertGreater(collectors[pids[0]]["cpu_ns"], 10e6)
            limits = os.path.join(folder, "limits.toml")
            write_text(limits, "[host_profiling]\ncpus = 0.0001\n")
            found = {f["check"]: f for f in d.ctl("advise", ended["dump_path"], "--limits", limits)["findings"]}
            seconds = (manifest["session"]["end_raw_ns"] - manifest["session"]["start_raw_ns"]) / 1e9
            row, = found["host_profiling"]["table"]["rows"]
            self.assertAlmostEqual(row[1], collectors[pids[0]]["cpu_ns"] / 1e9 / seconds, places=9)
            self.assertEqual(d.ctl("verify", ended["dump_path"])["ok"], True)


if __name__ == "__main__":
    main()
