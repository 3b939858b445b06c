#!/usr/bin/env python3
"""The names, types and labels of /metrics are a contract: tests/golden/metrics/, one file for our names and one for
npu-exporter's. A line without "|" holds for all chip scenarios of the simulator (sim/scenarios without its faults),
others for those behind it. Values are left out, and so is what depends on the machine the test runs on.

    PROFD_UPDATE_GOLDEN=1 python3 tests/e2e/test_metrics_golden.py

writes both files anew (PYTHONPATH=tests/harness; PROFD_BUILD_DIR where the build is not build/dev)."""

import contextlib
import glob
import os
import re
import shutil
import subprocess
import time
import unittest

from attach_client import Client, Ring
from profd_harness import (ALL_OPTIONS, REPO, Daemon, eventually, main, parse_metrics, scaled)
from text_files import read_text

GOLDEN = os.path.join(REPO, "tests", "golden", "metrics")
UPDATE = bool(os.environ.get("PROFD_UPDATE_GOLDEN"))
CHIPS = sorted(os.path.basename(path)[:-len(".toml")]
               for path in glob.glob(os.path.join(REPO, "sim", "scenarios", "*.toml"))
               if not os.path.basename(path).startswith("fault-"))
# What depends on the machine that runs the test, not on us.
OF_THE_MACHINE = re.compile(r"^atlas_host_(rdma|pressure|disk|numa|network)_")
# What only appears with something that can go wrong any time on a slow machine.
OF_THE_MOMENT = re.compile(r"^profd_pump_poll_errors_total$|^profd_collector_(errors|bad_records|stale_records)_total$"
                           r"|^profd_channel_(dropped_bytes|garbage_bytes|read_errors|discarded_bytes)_total$")
# A card that reports what healthy ones do not have, and a process that holds memory of it.
TROUBLE = """
[[fault]]
kind = "ecc"
double = 1
device = 0

[[fault]]
kind = "throttle"
device = 0

[[process]]
pid = {pid}
device = 0
"""


def contract(text):
    """name type label,label: one line a metric. le and quantile belong to the format."""
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    labels = {}
    for (name, pairs) in parse_metrics(text):
        base = name
        for suffix in ("_bucket", "_sum", "_count"):
            if name not in types and name.endswith(suffix):
                base = name[:-len(suffix)]
        keys = {k for k, _ in pairs if k not in ("le", "quantile")}
        labels.setdefault(base, set()).add(",".join(sorted(keys)))
    return [f"{name} {kind} {variant}".rstrip() for name, kind in sorted(types.items())
            for variant in sorted(labels.get(name, ("",)))
            if not OF_THE_MACHINE.match(name) and not OF_THE_MOMENT.match(name)]


def scenario_text(name):
    """The chip's scenario with two devices: more have the same names."""
    text = re.sub(r"^devices = \d+$", "devices = 2", read_text(REPO, "sim", "scenarios", name + ".toml"), flags=re.M)
    return text + TROUBLE.format(pid=os.getpid())


class Node:
    """A daemon on one chip, a session over all its collectors, this process attached and training."""

    def __init__(self, name):
        self.name = name
        self.daemon = Daemon(scenario_text(name)).start(ready=False)  # the others start meanwhile

    def begin(self, test):
        self.daemon.wait_ready()
        ring = Ring(256)
        test.addClassCleanup(ring.close)
        client = test.enterClassContext(Client(self.daemon.attach_socket))
        client.attach(ring, job_id="golden", rank=0, devices=[0])
        for step in range(20):
            ring.step(step)
        self.daemon.ctl("start", "--job", "m", "--devices", "0,1", *ALL_OPTIONS)

    def scrape(self, names):
        return self.daemon.get(f"/metrics?names={names}")


def golden_lines(names, chip):
    rows = [line.partition(" | ") for line in read_text(GOLDEN, names + ".txt").splitlines() if not line.startswith("#")]
    return [line for line, bar, chips in rows if not bar or chip in chips.split()]


def golden_rows(lines_of):
    """{chip: lines} as the rows of a file."""
    for line in sorted(set().union(*lines_of.values())):
        chips = [chip for chip, lines in lines_of.items() if line in lines]
        yield line if len(chips) == len(lines_of) else f"{line} | {' '.join(chips)}"


def npu_exporter_contract():
    """{(name, labels)} as tests/golden/npu_exporter_names.txt has them."""
    rows = [line.split("|") for line in read_text(REPO, "tests", "golden", "npu_exporter_names.txt").splitlines() if not line.startswith("#")]
    return {(name, ",".join(sorted(labels.split(",")))) for name, labels, _ in rows}


class Golden(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.nodes = []
        for name in CHIPS:
            cls.nodes.append(Node(name))
            cls.addClassCleanup(cls.nodes[-1].daemon.dispose)
        for node in cls.nodes:
            node.begin(cls)
        if UPDATE:
            cls.update()

    @classmethod
    def update(cls):
        """Writes the files when nothing new has come for some seconds."""
        have, since = None, time.monotonic()
        while time.monotonic() - since < scaled(8):
            now = {names: {node.name: contract(node.scrape(names)) for node in cls.nodes} for names in ("atlas", "npu-exporter")}
            if now != have:
                have, since = now, time.monotonic()
            time.sleep(0.5)
        for names, lines_of in have.items():
            with open(os.path.join(GOLDEN, names + ".txt"), "w", encoding="utf-8") as file:
                file.write("# name type labels | chips; see tests/e2e/test_metrics_golden.py\n")
                file.writelines(row + "\n" for row in golden_rows(lines_of))

    def check(self, names):
        def differences():
            found = []
            for node in self.nodes:
                have, want = contract(node.scrape(names)), golden_lines(names, node.name)
                found += [f"{node.name}: new: {line}" for line in have if line not in want]
                found += [f"{node.name}: gone: {line}" for line in want if line not in have]
            return found

        with contextlib.suppress(AssertionError):
            eventually(lambda: not differences(), every=0.5)
        self.assertEqual(differences(), [], "meant so? PROFD_UPDATE_GOLDEN=1 writes it down")

    def test_our_names(self):
        self.assertGreaterEqual(len(CHIPS), 3)
        self.check("atlas")

    def test_npu_exporters_names(self):
        self.check("npu-exporter")

    def test_npu_exporters_names_are_its_own(self):
        known = npu_exporter_contract()
        for node in self.nodes:
            for line in contract(node.scrape("npu-exporter")):
                name, kind, *labels = line.split(" ")
                self.assertEqual(kind, "gauge", name)
                self.assertIn((name, labels[0] if labels else ""), known, node.name)

    def test_schedulers_read_the_same_values(self):
        """As HAMi and its like do: percent and MB, one sample for each NPU."""
        def differences(node):
            found = []
            samples = parse_metrics(node.scrape("atlas,npu-exporter"))
            for theirs, ours, labels, factor in (
                    ("npu_chip_info_utilization", "atlas_npu_utilization_ratio",
                     {"unit": "aicore"}, 100),
                    ("npu_chip_info_hbm_used_memory", "atlas_npu_hbm_used_bytes", {}, 2.0 ** -20)):
                values = {dict(l)["id"]: v for (n, l), v in samples.items() if n == theirs}
                expected = {dict(l)["npu"]: v for (n, l), v in samples.items()
                            if n == ours and labels.items() <= dict(l).items()}
                self.assertEqual(set(values), set(expected), (node.name, theirs))
                found += [(theirs, npu, value, expected[npu] * factor) for npu, value in values.items()
                          if abs(value - expected[npu] * factor) > 1e-9]
                for value in values.values():
                    self.assertEqual(value, round(value), "DCMI reports integer percent and MB")
            return found

        for node in self.nodes:
            # A value may be renewed between two lines of one scrape, but not again and again.
            wrong = [differences(node) for _ in range(3)]
            self.assertIn([], wrong, node.name)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool(self):
        for node in self.nodes:
            for names, accepted in (("atlas", (0,)), ("npu-exporter", (0, 3))):
                # 3: understood, but npu-exporter's names are not as promtool would have them.
                check = subprocess.run(["promtool", "check", "metrics"], input=node.scrape(names),
                                       text=True, capture_output=True, check=False)
                self.assertIn(check.returncode, accepted,
                              (node.name, names, check.stdout + check.stderr))


if __name__ == "__main__":
    main()
