#!/usr/bin/env python3
"""Runs of several ranks: analyze, advise and report --from a real ClickHouse say the same as of the files, in all their output."""

import base64
import gzip
import json
import math
import os
import re
import sqlite3
import sys
import unittest

import same
from clickhouse_server import needs_engine, started
from profd_harness import REPO, SHARED_DATA, main, profctl, temp_folder
from test_activity import ActivityCase
from test_clickhouse import DATABASE, profctl_json
from text_files import read_dicts, read_text

sys.path.insert(0, os.path.join(REPO, "tests", "fidelity"))
from advise_case import x
from cluster_case import BEGIN_US, ClusterCase, ClusterRanks

WALKTHROUGHS = os.path.join(REPO, "docs", "walkthroughs")
OUT = "cluster_analysis_output"

# What may differ, by name in the JSON: where a run comes from and what it was called there, and what the database says of its work.
OF_THE_PLACE = {"run", "inputs", "path", "cluster_out", "store"}
# Numbers with a fraction: the server reads their decimal digits to the last bit but one (18.16), and adds up in an order of its own.
# Nothing else may differ: no order, no whole number, no text.
RELATIVE = 1e-12
NUMBER = re.compile(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)")


def is_close(got, want):
    return math.isclose(got, want, rel_tol=RELATIVE, abs_tol=RELATIVE)


def page_data(path):
    """What a page of profctl report shows."""
    [packed] = re.findall(r'<script id="profd-data" type="application/gzip;base64">([^<]*)</script>', read_text(path))
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def assert_same(got, want, where="$"):
    same.assert_same(got, want, where, RELATIVE, OF_THE_PLACE)


class Same(unittest.TestCase):
    def assert_same_text(self, got, want, where):
        got, want = NUMBER.split(got), NUMBER.split(want)
        self.assertEqual(len(got), len(want), where)
        for number, (mine, other) in enumerate(zip(got, want)):
            if number % 2 == 1 and ("." in mine or "." in other) and is_close(float(mine), float(other)):
                continue
            self.assertEqual(mine, other, f"{where}, part {number}: behind {''.join(want[max(0, number - 8):number])}")

    def assert_same_files(self, got, want):
        """Of cluster_analysis_output: the text files, the database row by row."""
        self.assertEqual(sorted(os.listdir(got)), sorted(os.listdir(want)))
        for name in sorted(os.listdir(want)):
            if name.endswith(".db"):
                with sqlite3.connect(os.path.join(got, name)) as mine, sqlite3.connect(os.path.join(want, name)) as other:
                    tables = [row[0] for row in other.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
                    self.assertTrue(tables)
                    for table in tables:
                        rows = [[list(row) for row in database.execute(f"SELECT * FROM {table}")] for database in (mine, other)]
                        assert_same(*rows, where=table)
                continue
            with open(os.path.join(got, name), encoding="utf-8") as mine, open(os.path.join(want, name), encoding="utf-8") as other:
                self.assert_same_text(mine.read(), other.read(), name)

    def assert_all_same(self, folder, paths, url):
        """Of a run that is loaded: everything that profctl can say of it."""
        local, fetched = os.path.join(folder, "local"), os.path.join(folder, "fetched")
        want = profctl_json("analyze", *paths, "--cluster-out", local)
        got = profctl_json("analyze", "--from", url, "--cluster-out", fetched)
        assert_same(got, want)
        self.assert_same_files(os.path.join(fetched, OUT), os.path.join(local, OUT))
        # The files do not depend on which analyses are printed, nor these on each other.
        profctl_json("analyze", "--from", url, "--only", "overall", "--cluster-out", fetched, "--force")
        self.assert_same_files(os.path.join(fetched, OUT), os.path.join(local, OUT))
        for only in ("cluster", "communication,links", "steps,overall"):
            assert_same(profctl_json("analyze", "--from", url, "--only", only), profctl_json("analyze", *paths, "--only", only))
        assert_same(profctl_json("advise", "--from", url), profctl_json("advise", *paths))
        page, other = (os.path.join(folder, name + ".html") for name in ("local", "fetched"))
        profctl("report", *paths, "-o", page)
        profctl("report", "--from", url, "-o", other)
        assert_same(page_data(other), page_data(page))
        return got

    def load(self, server, name, paths):
        profctl("export", *paths, "--to", server.url(DATABASE), "--run", name)
        return f"{server.url(DATABASE)}/{name}"


@needs_engine
class MadeRuns(Same, ClusterCase):
    @classmethod
    def setUpClass(cls):
        cls.server = started(cls, temp_folder(cls))

    def test_ranks_of_a_pipeline(self):
        """Links in both directions and in parts, packets by size, groups with names, steps with stage and bubble, parallel sizes."""
        ClusterRanks(18).write(self.write, "ranks")
        paths = [os.path.join(self.folder, "ranks")]
        got = self.assert_all_same(self.folder, paths, self.load(self.server, "ranks", paths))
        self.assertEqual(len(got["cluster"]["stages"]), 2)
        self.assertTrue(all(row["Stage"] and row["Bubble"] for row in read_dicts(self.folder, "fetched", OUT, "cluster_step_trace_time.csv")))

        # What a cluster analysis has put together already, with indexes of parallelism.
        paths = [os.path.join(self.folder, "local")]
        got = self.assert_all_same(os.path.join(self.folder, "again"), paths, self.load(self.server, "again", paths))
        self.assertEqual({(rank["dp"], rank["pp"], rank["tp"]) for rank in got["cluster"]["rank_times"]}, {(d, p, t) for d in (0, 1) for p in (0, 1) for t in (0, 1)})

    def test_advice_that_waits_and_copies_change(self):
        """Where uncovered communication and free time went, and whether PCIe was full while the device copied."""
        names = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}} for pid, name in ((3, "Ascend Hardware"), (6, "Communication"))]
        events = [*names, x("Computing", 0, 1000, pid=5), x("Communication(Not Overlapped)", 1000, 1000, pid=5), x("Free", 2000, 198_000, pid=5),
                  x("hcom_a__1_0_1", 900, 1100, pid=6) | {"tid": 9}, x("k", 0, 1000, pid=3, args={"Task Type": "AI_CORE"})]
        # 18 GB/s from 100 to 150 ms, which is little on average.
        counter = "pcie_bandwidth_bytes_per_second direction=tx type=posted stat=avg"
        events += [{"ph": "C", "name": counter, "pid": 9, "tid": 0, "ts": BEGIN_US + i * 10_000, "args": {"value": 18e9 if 10 < i <= 15 else 0}} for i in range(20)]
        waits = [x("Notify_Wait", 900, 400, pid=6) | {"tid": 1}, x("RDMASend", 1400, 10, pid=6) | {"tid": 1}, x("Notify_Wait", 1410, 50, pid=6) | {"tid": 1}]
        copies = [x("copy", 100_000, 50_000, pid=3, args={"Task Type": "PCIE_DMA_SQE"})]
        advice = {}
        for name, more in (("neither", []), ("waits", waits), ("copies", copies), ("both", waits + copies)):
            with self.subTest(name):
                paths = [self.run_of(events + more, name=name)]
                url = self.load(self.server, name, paths)
                assert_same(profctl_json("advise", "--from", url), profctl_json("advise", *paths))
                found = {finding["check"]: finding for finding in profctl_json("advise", "--from", url)["findings"]}
                parts = {row[0]: round(row[1], 6) for row in found["overall_summary"]["table"]["rows"] if row[0].startswith(("uncovered communication: ", "free: "))}
                advice[name] = parts, found.get("hardware_pcie", {}).get("cost_ms")
        # 300 us of the first wait lie in uncovered communication; the second follows what was sent. The copy lies in free time.
        waited, copied = {"uncovered communication: wait": 0.3, "uncovered communication: transmit": 0.7}, {"free: SDMA": 50, "free: free": 148}
        self.assertEqual(advice, {"neither": ({}, None), "waits": (waited, None), "copies": (copied, 50), "both": (waited | copied, 50)})

    @unittest.skipUnless(os.path.isdir(SHARED_DATA), "the data with known answers is not there")
    def test_known_data(self):
        for number, path in enumerate((("pytorch", "pt_text_level1"), ("pytorch", "pt_db_level1"), ("mindinsight", "JOB1"), ("mindinsight", "cluster_propose"),
                                       ("made", "cluster_slow_link"), ("made", "gc_at_1000us"))):
            with self.subTest(path=path):
                paths = [os.path.join(SHARED_DATA, *path)]
                self.assert_all_same(os.path.join(self.folder, str(number)), paths, self.load(self.server, f"known{number}", paths))


@needs_engine
class RecordedJobs(ActivityCase, Same):
    """Dumps of profd."""

    def test_jobs_of_the_walkthroughs(self):
        server = started(self, self.folder)
        for name, ranks in (("cluster", 4), ("pipeline", 2)):
            with self.subTest(name), open(os.path.join(WALKTHROUGHS, name + ".toml"), encoding="utf-8") as file:
                job = self.train(text=file.read())
                job.attached(self.daemon, ranks)
                session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--aic-metrics", "PipeUtilization", "--hccl", "on",
                                          "--training-trace", "on", "--msproftx", "on", "--provider", "mspti", "--collector", "npu_state=5", "--duration", "1s")
                dump = self.daemon.until_state(session["session_id"], "done")["dump_path"]
                job.close()
                folder = os.path.join(self.folder, name)
                got = self.assert_all_same(folder, [dump], self.load(server, name, [dump]))
                self.assertEqual(len(got["ranks"]), ranks)
                self.assertTrue(got["cluster"]["groups"] and got["cluster"]["steps"])


if __name__ == "__main__":
    main()
