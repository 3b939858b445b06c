#!/usr/bin/env python3
"""How many series a busy node has: 16 NPUs, processes and jobs that come and go. The bounds are those of
docs/metrics-guide.md, which this test reads.

PROFD_CARDINALITY=full runs 500 processes of 200 jobs at once, three times over; without it 170 processes of
67 jobs, so that 500 and 200 have come and gone in the end. Either prints what it counted when it is set."""

import contextlib
import os
import re
import subprocess
import unittest

from attach_storm import Storm
from profd_harness import ALL_OPTIONS, REPO, Daemon, eventually, is_sanitized, main, raise_file_limit, replace_file, temp_folder
from text_files import read_text

FULL = os.environ.get("PROFD_CARDINALITY") == "full"
NPUS = 16
WAVES = 3
PROCESSES, JOBS = (500, 200) if FULL else (170, 67)
# Not attached, but in DCMI's list, until the first wave ends: it is read every ten seconds. Their jobs are
# those their environment names.
LISTED, LISTED_JOBS = 32, 8
SERIES_OF_WORK = ("atlas_npu_process_info", "atlas_npu_job_info", "atlas_npu_process_memory_bytes",
                  "atlas_npu_step", "atlas_npu_steps_total", "atlas_npu_step_duration_seconds")


def bounds():
    """{what: most series of one} as docs/metrics-guide.md has them."""
    rows = re.findall(r"^\| (\w[\w ,]*?) \| (\d+) \|", read_text(REPO, "docs", "metrics-guide.md"), re.M)
    return {what: int(most) for what, most in rows}


class Cardinality(unittest.TestCase):
    def setUp(self):
        raise_file_limit()
        self.list_path = None
        self.daemon = None

    def start(self):
        folder = temp_folder(self)
        self.list_path = os.path.join(folder, "processes")
        end_listed = self.begin_listed()
        text = f'chip = "A3"\ndevices = {NPUS}\nprocesses_file = "{self.list_path}"\n'
        # No user's series are cut off before the bound is reached.
        config = {"attribution": {"max_processes": 2000, "max_jobs": 1000}}
        self.daemon = self.enterContext(Daemon(text, config=config))
        return end_listed

    def list_processes(self, pids):
        replace_file(self.list_path, "".join(f"{pid} {i % NPUS} 64\n" for i, pid in enumerate(pids)))

    def scrape(self):
        samples = self.daemon.scrape()
        counts = {}
        for name, _ in samples:
            counts[name] = counts.get(name, 0) + 1
        return samples, counts

    def begin_listed(self):
        """Processes in DCMI's list from the daemon's first reading on; the answer ends them."""
        processes = [subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL,
                                      env={"PROFD_JOB_ID": f"listed-{i % LISTED_JOBS}"})
                     for i in range(LISTED)]
        self.list_processes([process.pid for process in processes])

        def end():
            self.list_processes([])
            for process in processes:
                process.kill()
                process.wait()

        self.addCleanup(end)
        return end

    @contextlib.contextmanager
    def attached(self, wave):
        storm = Storm(self.daemon.attach_socket,
                      [{"job_id": f"wave{wave}-{i % JOBS}", "rank": i, "devices": [i % 16]} for i in range(PROCESSES)])
        try:
            yield
        finally:
            storm.end()

    def all_there(self, listed):
        _, counts = self.scrape()
        return (counts.get("atlas_npu_process_info") == PROCESSES + listed and
                counts.get("atlas_npu_step_duration_seconds") == PROCESSES and
                counts.get("atlas_npu_process_memory_bytes", 0) == listed)

    def all_gone(self):
        _, counts = self.scrape()
        return not set(counts) & set(SERIES_OF_WORK)

    def check_node(self, samples):
        """Series that are there whatever runs."""
        npu = sum(1 for name, labels in samples
                  if "npu" in dict(labels) and name not in SERIES_OF_WORK)
        node = sum(1 for name, labels in samples if "npu" not in dict(labels))
        self.say(f"{npu / NPUS:.1f} for each NPU, {node} of the node")
        self.assertLessEqual(npu, NPUS * self.most["NPU"])
        self.assertLessEqual(node, self.most["node"])
        self.assertEqual(samples["profd_series_refused_total", ()], 0)

    def check_work(self, listed):
        samples, counts = self.scrape()
        self.check_node(samples)
        of_jobs = counts["atlas_npu_job_info"]
        of_processes = sum(counts.get(name, 0) for name in SERIES_OF_WORK) - of_jobs
        self.say(f"{of_processes} of processes, {of_jobs} of jobs, {self.daemon.rss() >> 20} MiB")
        self.assertLessEqual(of_processes, PROCESSES * self.most["process, attached"] +
                             listed * self.most["process, not attached"])
        self.assertLessEqual(of_jobs, (PROCESSES + listed) * self.most["job on an NPU"])
        jobs = {dict(labels)["job_id"] for name, labels in samples if name == "atlas_npu_job_info"}
        self.assertEqual(len(jobs), JOBS + (LISTED_JOBS if listed else 0))
        self.assertEqual(samples["profd_attribution_hidden_processes", ()], 0)
        self.assertEqual(samples["profd_attribution_hidden_jobs", ()], 0)

    def say(self, text):
        if os.environ.get("PROFD_CARDINALITY"):
            print(text)

    def run_session(self):
        """A session over everything: all channels have their series."""
        options = ["10" if option.isdigit() else option for option in ALL_OPTIONS]
        session = self.daemon.ctl("start", "--job", "m", "--all", *options)["session_id"]
        seen = []

        def nothing_new():
            seen.append(len(self.daemon.scrape()))
            return len(seen) > 4 and seen[-1] == seen[-5] and self.daemon.metric(
                "atlas_npu_hccs_bandwidth_bytes_per_second")

        eventually(nothing_new, seconds=60, every=0.5)
        self.check_node(self.daemon.scrape())
        self.daemon.ctl("stop", session)

    def test_work_starts_and_ends(self):
        end_listed = self.start()
        self.most = bounds()
        self.run_session()
        settled = None
        for wave in range(WAVES):
            listed = LISTED if wave == 0 else 0
            with self.attached(wave):
                eventually(lambda: self.all_there(listed), seconds=90, every=0.3,
                           what="all processes are shown")
                self.check_work(listed)
            if listed:
                end_listed()
            eventually(self.all_gone, seconds=90, every=0.3, what="what is gone has no series")
            eventually(lambda: self.daemon.metric("profd_attached_processes") == 0)
            now = self.daemon.scrape()["profd_series", ()], self.daemon.rss()
            self.say(f"afterwards {now[0]:.0f} series, {now[1] >> 20} MiB")
            settled = settled or now
        # Names of what is gone take no memory: neither in the store nor anywhere else.
        # (a failed call of libdcmi may have got its counter meanwhile)
        self.assertLessEqual(now[0], settled[0] + 32)
        if not is_sanitized():
            grown = now[1] - settled[1]
            self.assertLess(grown, (8 << 20) + (WAVES - 1) * PROCESSES * (4 << 10))


if __name__ == "__main__":
    main()
