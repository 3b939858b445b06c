#!/usr/bin/env python3
"""Exports of sessions started with `profctl start --job`: two ranks on one node, and a rank on each of
two. Which rank a row is of, steps counted once, what crosses the session's border, and every query of
docs/export.md."""

import collections
import glob
import json
import os
import re
import sqlite3
import subprocess
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
import attach_client
import perfetto_reader
from profd_harness import Daemon, main, profctl, scaled, temp_folder
from python_package import python_with
from test_jobs_sessions import Worker
from text_files import read_dicts, read_json, read_text
from toml_files import scenario_text

OPTIONS = ["--sys-interconnection-freq", "50", "--sys-hardware-mem-freq", "50", "--msproftx", "on",
           "--host-sys-usage", "cpu,mem"]
SCRIPT = "test_jobs_sessions.py"
WHOLE = 3  # steps of each rank that lie in the session
PANDAS = """
import json, pandas, sys
frame = pandas.read_csv(sys.argv[1], parse_dates=["time"])
print(json.dumps({
    "ranks": sorted(int(rank) for rank in set(frame["rank"].dropna())),
    "times": bool((frame["time"].astype("int64") == frame["time_ns"]).all()),
    "values": frame["value"].dtype.kind in "if"}))
"""
QUERY = re.compile(r"^```sql\n(.*?)^```", re.M | re.S)


def documented():
    return QUERY.findall(read_text(HERE, "..", "..", "docs", "export.md"))


def answer(database, query):
    cursor = database.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor]


def node(case, devices):
    daemon = Daemon(scenario_text=scenario_text(devices=devices))
    case.addClassCleanup(daemon.dispose)
    return daemon.start()


def run_job(case, ranks):
    """`ranks`: (daemon, rank, device) each. The dumps, one of each daemon."""
    workers = [Worker(daemon, rank=rank, devices=[device]) for daemon, rank, device in ranks]
    for worker in workers:
        case.addClassCleanup(lambda w=worker: w.process.poll() is None and w.kill())
        worker.step(1, True)  # begins before the session
    daemons = list(dict.fromkeys(daemon for daemon, _, _ in ranks))
    started = [daemon.ctl("start", "--job", "job", *OPTIONS)["session_id"] for daemon in daemons]
    for daemon, session in zip(daemons, started):
        daemon.until_records(session, 200)
    for worker in workers:
        worker.step(1, False)
    for step in range(2, 2 + WHOLE):
        for worker in workers:
            worker.step(step, True)
            worker.do("marks", kind=attach_client.PUSH, name="forward")
            worker.do("marks", kind=attach_client.POP)
        for daemon, session in zip(daemons, started):
            daemon.until_records(session, daemon.show(session)["records"] + 100)
        for worker in workers:
            worker.step(step, False)
    for worker in workers:
        worker.step(9, True)  # continues after it
    dumps = []
    for daemon, session in zip(daemons, started):
        daemon.ctl("stop", session)
        dumps.append(daemon.until_state(session, "done")["dump_path"])
    case.pids = {rank: worker.pid for (_, rank, _), worker in zip(ranks, workers)}
    times = [read_json(dump, "profd_manifest.json")["session"] for dump in dumps]
    case.stopped = [f"({t['end_wall_ns'] // 1000 * 1000}, {t['end_wall_ns'] - (t['end_raw_ns'] - t['stop_raw_ns'])})" for t in times]
    return dumps


def export(case, dumps):
    case.out = temp_folder(case)
    case.errors = profctl("export", *dumps, "--out", case.out, "--format", "csv,trace,perfetto,sqlite,jsonl,samples,openmetrics").stderr


class Checks:
    def one(self, pattern):
        found = glob.glob(os.path.join(self.out, pattern))
        self.assertEqual(len(found), 1, os.listdir(self.out))
        return found[0]

    def database(self):
        database = sqlite3.connect(self.one("*.db"))
        self.addCleanup(database.close)
        return database

    def test_border_crossings_are_one_line(self):
        # Of each rank step 1 and step 9, as its process marked them and as its device has them.
        self.assertEqual(self.errors,
                         "profctl: 8 begin/end marks crossed the session border and were clipped\n")

    def test_steps_are_counted_once(self):
        steps = answer(self.database(), documented()[0])
        self.assertEqual({row["rank"]: row["steps"] for row in steps}, {0: WHOLE, 1: WHOLE})

    def test_kinds_tell_marks_from_devices(self):
        rows = answer(self.database(), "SELECT kind, rank, device, pid, process, partial, count(*) AS n "
                                       "FROM profd_steps GROUP BY 1, 2, 3, 4, 5, 6")
        found = {(r["kind"], r["rank"], r["device"], r["pid"], r["process"], r["partial"]): r["n"]
                 for r in rows}
        expected = {}
        for rank, device in self.devices.items():
            for partial, count in ((0, WHOLE), (1, 2)):
                expected["step", rank, -1, self.pids[rank], SCRIPT, partial] = count
                expected["device_step", rank, device, 0, None, partial] = count
        self.assertEqual(found, expected)

    def test_partial_steps_are_clipped_and_called_so(self):
        # Where recording stopped. The end of a dump is a wall time, that of its marks of another clock: equal within a millisecond.
        rows = answer(self.database(), f"""
            SELECT s.name, s.rank, s.start_ns >= d.startNs AND s.end_ns <= d.endNs + 1000000 AS inside,
                   s.start_ns = d.startNs AS at_begin, abs(s.end_ns - t.column2) < 1000000 AS at_end
            FROM profd_steps s JOIN PROFD_DUMPS d ON d.startNs <= s.end_ns
            JOIN (VALUES {", ".join(self.stopped)}) t ON t.column1 = d.endNs
            WHERE s.kind = 'step' AND s.partial AND (at_begin OR at_end)""")
        self.assertEqual(sorted((r["rank"], r["name"]) for r in rows),
                         [(0, "Step 1 (partial)"), (0, "Step 9 (partial)"),
                          (1, "Step 1 (partial)"), (1, "Step 9 (partial)")])
        self.assertTrue(all(r["inside"] for r in rows), rows)

    def test_ranks_in_the_database(self):
        database = self.database()
        pairs = {(r["rankId"], r["deviceId"])
                 for r in answer(database, "SELECT rankId, deviceId FROM RANK_DEVICE_MAP")}
        self.assertLessEqual(set(self.devices.items()), pairs)
        self.assertTrue(all(rank in (-1, *self.devices) for rank, _ in pairs), pairs)
        ranks = {(r["rank"], r["device"]) for r in answer(
            database, "SELECT DISTINCT rank, device FROM profd_samples WHERE device >= 0")}
        self.assertEqual(ranks, set(self.devices.items()))
        marks = answer(database, "SELECT rank, pid, process, count(*) AS n FROM profd_marks "
                                 "WHERE name = 'forward' GROUP BY 1, 2, 3")
        self.assertEqual({(r["rank"], r["pid"], r["process"]): r["n"] for r in marks},
                         {(rank, pid, SCRIPT): WHOLE for rank, pid in self.pids.items()})

    def test_every_documented_query_gives_an_answer(self):
        database = self.database()
        queries = documented()
        self.assertGreater(len(queries), 10)
        by_rank = 0
        for query in queries:
            for row in answer(database, query):
                if "rank" in row and row.get("device", -1) is not None:
                    by_rank += row["rank"] is not None
        self.assertGreater(by_rank, 10)
        joined = [q for q in queries if "JOIN profd_samples" in q]
        self.assertEqual({row["rank"] for row in answer(database, joined[0].replace("LIMIT 4", ""))},
                         {0, 1})

    def test_durations(self):
        database = self.database()
        whole = answer(database, "SELECT rank, max(end_ns - start_ns) AS longest FROM profd_steps "
                                 "WHERE kind = 'step' AND NOT partial GROUP BY rank")
        rows = answer(database, "SELECT * FROM profd_durations WHERE kind IN ('step', 'range')")
        found = {(r["rank"], r["kind"], r["name"]): r for r in rows}
        self.assertEqual(set(found), {(rank, kind, name) for rank in (0, 1)
                                      for kind, name in (("step", ""), ("range", "forward"))})
        for row in whole:
            step = found[row["rank"], "step", ""]
            self.assertEqual((step["count"], step["max_ns"]), (WHOLE, row["longest"]))
            self.assertLessEqual(step["p50_ns"], step["p99_ns"])
        table = []
        for path in glob.glob(os.path.join(self.out, "**", "step_range_statistics_*.csv"),
                              recursive=True):
            table += [row for row in read_dicts(path) if row["Device_id"] == "host"]
        self.assertEqual({(int(r["Rank"]), r["Kind"], r["Name"]): round(float(r["P50(us)"]) * 1000)
                          for r in table}, {key: row["p50_ns"] for key, row in found.items()})

    def test_ranks_of_samples(self):
        with open(self.one("*.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual({(r["rank"], r["device"]) for r in lines if r["device"] is not None},
                         set(self.devices.items()))
        rows = read_dicts(self.one("samples_*.csv"))
        self.assertEqual(len(rows), len(lines))
        key = collections.Counter((r["time_ns"], r["rank"], r["device"], r["metric"], r["labels"],
                                   float(r["value"])) for r in rows)
        same = collections.Counter(
            (str(r["time_ns"]), "" if r["rank"] is None else str(r["rank"]),
             "" if r["device"] is None else str(r["device"]), r["metric"],
             ",".join(f"{k}={v}" for k, v in r["labels"].items()), float(r["value"]))
            for r in lines if r["value"] is not None)
        self.assertEqual(key, same)
        found = {(int(r), int(d))
                 for r, d in re.findall(r'rank="(\d+)",device="(\d+)"', read_text(self.one("*.om")))}
        self.assertEqual(found, set(self.devices.items()))

    def test_pandas_reads_the_samples(self):
        python = python_with("pandas")
        table = self.one("samples_*.csv")
        facts = json.loads(subprocess.run([python, "-c", PANDAS, table], capture_output=True,
                                          text=True, check=True, timeout=scaled(120)).stdout)
        self.assertEqual(facts, {"ranks": [0, 1], "times": True, "values": True})

    def test_names_of_the_timelines(self):
        processes = [f"rank {rank}, {SCRIPT}, pid {pid}" for rank, pid in self.pids.items()]
        trace = perfetto_reader.Trace(self.one("trace_*.perfetto-trace"))
        for process in processes:
            self.assertTrue(any(name.startswith(process) for name in trace.processes.values()),
                            trace.processes)
        names = set(trace.processes.values())
        for rank, device in self.devices.items():
            npu = [n for n in names if n.startswith(f"NPU {device} (") and f"rank {rank}" in n]
            self.assertEqual(len(npu), 1, names)
        steps = {(process, track) for process, track, kind, _, value in trace.events
                 if kind == "begin" and value.startswith("Step ")}
        self.assertEqual({track for _, track in steps}, {"Steps"})
        self.assertEqual(len(steps), 2)
        self.assertFalse([t for t in trace.tracks.values() if "4294967295" in t[1]])
        rows = {e["args"]["name"] for e in read_json(self.one("msprof_*.json")) if e["name"] == "thread_name"}
        for process in processes:
            self.assertIn(f"{process}: steps", rows)


class OneNode(Checks, unittest.TestCase):
    devices = {0: 0, 1: 2}  # by rank

    @classmethod
    def setUpClass(cls):
        daemon = node(cls, 3)
        export(cls, run_job(cls, [(daemon, rank, device) for rank, device in cls.devices.items()]))

    def test_host_has_no_one_rank(self):
        rows = answer(self.database(),
                      "SELECT DISTINCT rank FROM profd_samples WHERE device = -1")
        self.assertEqual(rows, [{"rank": None}])

    def test_show_has_statistics_for_each_rank(self):
        dump = answer(self.database(), "SELECT path FROM PROFD_DUMPS")[0]["path"]
        shown = profctl("show", dump, "--ascii").stdout
        lines = [line.split() for line in shown.splitlines()]
        self.assertEqual(sorted((int(l[0]), l[1], int(l[2])) for l in lines
                                if l[1:2] and l[1] in ("steps", "forward")),
                         [(0, "forward", WHOLE), (0, "steps", WHOLE), (1, "forward", WHOLE),
                          (1, "steps", WHOLE)])


class TwoNodes(Checks, unittest.TestCase):
    devices = {0: 0, 1: 1}

    @classmethod
    def setUpClass(cls):
        daemons = [node(cls, 2) for _ in cls.devices]
        export(cls, run_job(cls, [(daemons[rank], rank, device)
                                  for rank, device in cls.devices.items()]))

    def test_hosts_have_the_rank_of_their_process(self):
        rows = answer(self.database(),
                      "SELECT DISTINCT rank FROM profd_samples WHERE device = -1 ORDER BY 1")
        self.assertEqual(rows, [{"rank": 0}, {"rank": 1}])


if __name__ == "__main__":
    main()
