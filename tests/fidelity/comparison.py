"""Exports a directory in all formats and compares every value with a Reference."""

import contextlib
import gc
import glob
import json
import math
import os
import sqlite3
import tempfile
import unittest
from collections import Counter, defaultdict

import make_prof
from expected_csv import Csv
from expected_rows import Database, metrics, table_columns
from expected_timeline import SLOTS, Timeline
from perfetto_reader import Trace
from profd_harness import REPO, profctl, temp_folder
from reference import Reference
from text_files import read_json, read_rows, read_text

FORMATS = "csv,trace,perfetto,sqlite,jsonl"
OURS = {"step_range_statistics"}  # tables the vendor has none for
compared = Counter()
# Nothing here refers to itself; to look for what does takes a fifth of the time.
gc.disable()


def close(a, b):
    """Sums and quotients may be taken in another order: the last bits of a double are no promise."""
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a == b
    return a == b or math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)


def same_cell(have, want):
    """Texts are equal. Where the exact value lies between two thousandths the last digit is that of
    the double, which depends on the order of a sum."""
    if have == want:
        return True
    try:
        a, b = float(have), float(want)
    except ValueError:
        return False
    return ("." in have and "." in want and len(have.split(".")[1]) > 6 and
            math.isclose(a, b, rel_tol=1e-14))


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03}"


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def short(value):
    text = f"{value:.3f}".rstrip("0")
    return text[:-1] if text.endswith(".") else text


def union(parts):
    """Intervals that meet or overlap as one."""
    joined = []
    for begin, end in sorted(parts):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def one(folder, pattern):
    """The path of the one file of this name."""
    found = glob.glob(os.path.join(folder, pattern))
    if len(found) != 1:
        raise AssertionError(f"{pattern}: {found} of {os.listdir(folder)}")
    return found[0]


def events_of(folder, pattern="msprof_*.json"):
    return read_json(one(folder, pattern))


def trace_of(folder):
    return Trace(one(folder, "trace_*"))


def query(path, sql):
    """The rows; `path` is a database, or the folder that it lies in."""
    with contextlib.closing(sqlite3.connect(one(path, "*.db") if os.path.isdir(path) else path)) as database:
        return database.execute(sql).fetchall()


class FolderCase(unittest.TestCase):
    """Each test has a folder, `dir`."""

    maxDiff = 4000

    def setUp(self):
        self.dir = temp_folder(self)

    def fresh(self):
        """A folder in it, for each call another."""
        return tempfile.mkdtemp(dir=self.dir)


class Export:
    """What profctl made of a directory."""

    def __init__(self, path, out):
        self.path = path
        self._out = out
        run = profctl("--json", "export", path, "--format", FORMATS, "--out", out, expect=None)
        self.code = run.returncode
        self.errors = run.stderr
        self.summary = json.loads(run.stdout) if run.stdout.strip().startswith("{") else {}

    def one(self, pattern):
        names = glob.glob(os.path.join(self._out, pattern))
        return names[0] if names else None

    def csv(self):
        tables = {}
        for name in glob.glob(os.path.join(self._out, "*.csv")):
            tables[os.path.basename(name).rsplit("_", 1)[0]] = read_rows(name)
        return tables

    def events(self):
        name = self.one("msprof_*.json")
        if name is None:
            return []
        return read_json(name)

    def database(self):
        connection = sqlite3.connect(self.one("msprof_*.db"))
        connection.row_factory = sqlite3.Row
        return connection

    def lines(self):
        name = self.one("samples_*.jsonl")
        if name is None:
            return []
        with open(name, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class FidelityCase(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.columns = table_columns(read_text(REPO, "export/table.cc"))

    def setUp(self):
        self.folder = temp_folder(self)

    def check(self, prof, code=0):
        """Exports what `prof` wrote, and compares all. `code` 5: some of it cannot be decoded."""
        path = prof.write()
        export = Export(path, os.path.join(self.folder, "out"))
        self.assertEqual(export.code, code, export.errors)
        self.compare(export, Reference(path))
        if self.problems:
            # A few of each kind.
            kinds = defaultdict(list)
            for what, text in self.problems:
                kinds[what].append(text)
            self.fail(f"{len(self.problems)} differ:\n" + "\n".join(
                f"{what} ({len(texts)}): {text}" for what, texts in kinds.items()
                for text in texts[:2]))
        return export

    def compare(self, export, reference):
        """Leaves what differs in `problems`."""
        self.problems = []
        self.compare_csv(export.csv(), Csv(reference))
        events = export.events()
        self.compare_events(events, Timeline(reference))
        self.compare_perfetto(export.one("trace_*"), events)
        self.compare_database(export.database(), Database(reference))
        self.compare_lines(export.lines(), reference)

    def say(self, what, want, have, where=""):
        self.problems.append((what, f"{where}\n    want {want}\n    have {have}"))

    def compare_csv(self, have, want):
        for name in sorted((set(have) | set(want.tables)) - OURS):
            if name not in have or name not in want.tables:
                self.say(f"{name}.csv", want.tables.get(name), have.get(name))
                continue
            ours, theirs = have[name], want.tables[name]
            if name in want.sorted_only:
                ours, theirs = [ours[0]] + sorted(ours[1:]), [theirs[0]] + sorted(theirs[1:])
            if len(ours) != len(theirs):
                self.say(f"{name}.csv rows", len(theirs), len(ours))
            for a, b in zip(ours, theirs):
                compared["csv"] += len(b)
                if len(a) != len(b) or not all(map(same_cell, a, b)):
                    self.say(f"{name}.csv", b, a)

    def compare_events(self, events, timeline):
        processes = {}
        devices = {}
        for event in events:
            if event["name"] == "process_name":
                processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "process_labels":
                label = event["args"]["labels"].split()
                devices[event["pid"]] = int(label[1]) if label[0] == "NPU" else -1
        have = defaultdict(list)
        for event in events:
            process = processes.get(event["pid"])
            if event["ph"] != "C" or process not in SLOTS:
                continue
            device = devices[event["pid"]]
            slot = make_prof.PID << 10 | SLOTS[process] << 5 | (device if device >= 0 else 31)
            if event["pid"] != slot:
                self.say(f"pid of {process}", slot, event["pid"])
            args = tuple(sorted((k, float(v)) for k, v in event["args"].items()))
            have[(process, device, event["tid"], event["name"], event["ts"])].append(args)
        want = defaultdict(list)
        for (*key, args), count in timeline.events.items():
            want[tuple(key)] += [args] * count
        for key in {**want, **have}:
            a, b = sorted(have.get(key, [])), sorted(want.get(key, []))
            compared["events"] += sum(map(len, b))
            same = len(a) == len(b) and all(
                len(x) == len(y) and all(p[0] == q[0] and close(p[1], q[1]) for p, q in zip(x, y))
                for x, y in zip(a, b))
            if not same:
                self.say(f"event of {key[0]}", b, a, key)

    def compare_perfetto(self, name, events):
        """The native trace has the JSON's counters, each value on its own track."""
        if name is None:
            return
        trace = Trace(name)
        processes = {e["pid"]: [e["args"]["name"], ""] for e in events if e["name"] == "process_name"}
        for event in events:
            if event["name"] == "process_labels":
                processes[event["pid"]][1] = event["args"]["labels"]
        ids = ("PA Link ID", "PCIE ID")
        want = Counter()
        for event in events:
            if event["ph"] != "C":
                continue
            process = "{} ({})".format(*processes[event["pid"]])
            timestamp = int(event["ts"].replace(".", ""))
            for arg, value in event["args"].items():
                # A counter of the vendor's that is always 0 has no track.
                constant = event["name"] == "PCIe_nonpost_latency" and arg == "Rx"
                if arg not in ids and not constant:
                    want[(process, timestamp, float(value))] += 1
        # "NPU 0 (rank 3)", "HBM > HBM 0/Read"
        have = Counter()
        for process, track, kind, timestamp, value in trace.events:
            if kind == "counter":
                place = process.partition(" (")[0].replace("Host", "CPU")
                have[(f"{track.partition(' > ')[0]} ({place})", timestamp, float(value))] += 1
        compared["perfetto"] += sum(want.values())
        for key in list(((want - have) + (have - want)))[:5]:
            self.say("native trace", want[key], have[key], key)

    def compare_database(self, connection, database):
        strings = dict(tuple(r) for r in connection.execute("select id, value from STRING_IDS"))
        texts = {"HBM": ("type",), "LLC": ("mode",), "NPU_MEM": ("type",), "QOS": ("eventName",),
                 "SIO": ("name",), "SAMPLE_PMU_TIMELINE": ("coreType",),
                 "SAMPLE_PMU_SUMMARY": ("metric", "coreType")}
        known = ("HCCS PCIE HBM DDR LLC NIC ROCE NPU_MEM NPU_MODULE_MEM QOS AICORE_FREQ ACC_PMU "
                 "SOC_BANDWIDTH_LEVEL SIO NETDEV_STATS CPU_USAGE HOST_MEM_USAGE HOST_DISK_USAGE "
                 "HOST_NETWORK_USAGE SAMPLE_PMU_TIMELINE SAMPLE_PMU_SUMMARY UB").split()
        own = [f"PROFD_{'UB_PORT' if name == 'ub' else name.upper()}" for name in database.OWN]
        own_texts = {"PROFD_DVPP": ("engine",), "PROFD_VOLTAGE": ("rail",),
                     "PROFD_CHIP_TRANS": ("kind",), "PROFD_PROC_CPU": ("process",),
                     "PROFD_PROC_MEM": ("process",), "PROFD_AICORE_PMU": ("type",),
                     "PROFD_INSTR_CYCLES": ("coreType",)}
        texts.update(own_texts)
        there = {r[0] for r in connection.execute("select name from sqlite_master where type='table'")}
        for table in known + own:
            want = [dict(row) for row in database.tables.get(table, [])]
            have = []
            if table in there:
                have = [dict(row) for row in connection.execute(f"select * from {table}")]
            for row in have:
                for column in texts.get(table, ()):
                    row[column] = strings.get(row[column])
                if table == "SIO":
                    del row["name"]
            for row in want if table == "SIO" else ():
                del row["die"]  # in the name

            def order(row):
                return tuple((k, str(row[k]) if not isinstance(row[k], (int, float)) else
                              f"{row[k]:030.3f}") for k in sorted(row))
            have.sort(key=order)
            want.sort(key=order)
            if len(have) != len(want):
                self.say(f"{table} rows", len(want), len(have))
            for a, b in zip(have, want):
                compared["sqlite"] += len(b)
                # Chip 0, whose rates are not rounded, has no database of the vendor's.
                slack = 1 if table == "LLC" and database.chip == 0 else 0
                if set(a) != set(b) or not all(
                        close(a[k], b[k]) or (k == "throughput" and abs(a[k] - b[k]) <= slack)
                        for k in b):
                    self.say(table, b, a)
        connection.close()

    def compare_lines(self, lines, reference):
        want = defaultdict(list)
        for t, device, metric, labels, value in metrics(reference, self.columns):
            want[(t, device, metric, labels)].append(float(value))
        have = defaultdict(list)
        for line in lines:
            device = -1 if line["device"] is None else line["device"]
            labels = tuple(sorted(line["labels"].items()))
            have[(line["time_ns"], device, line["metric"], labels)].append(float(line["value"]))
        for key in {**want, **have}:
            a, b = sorted(have.get(key, [])), sorted(want.get(key, []))
            compared["jsonl"] += len(b)
            if len(a) != len(b) or not all(map(close, a, b)):
                self.say(f"line of {key[2]}", b, a, key)
