#!/usr/bin/env python3
"""Dashboards and rules against a real Prometheus that scrapes a simulated node: every query is understood
and answers with data. Besides: promtool's tests of the alerts, the dashboards' form, the runbook."""

import functools
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from profd_harness import ALL_OPTIONS, REPO, Daemon, eventually, main, temp_folder
from prometheus import RULES, Prometheus
from sim_train import SimTrain
from text_files import read_json, read_text, write_text
from toml_files import toml

DASHBOARDS = os.path.join(REPO, "dashboards")
# Metrics without a series on the healthy 910B of this test, and why.
NO_DATA = {
    "atlas_npu_throttle_reason": "only while a clock is lowered",
    "atlas_npu_ddr_bandwidth_bytes_per_second": "chips with DDR only (910)",
    "atlas_npu_ddr_used_bytes": "chips with DDR only (910)",
    "atlas_npu_sio_crc_errors_total": "chips of two dies only (A3)",
    "atlas_npu_hccs_credits": "A3 only",
    "atlas_host_rdma_port_data_bytes_total": "hosts with an RDMA device",
    "profd_dump_aged_records_total": "only when storage_limit removed something",
    "profd_pump_poll_errors_total": "only when poll failed",
    "profd_advice": "only while a live check finds something",
    "profd_tls_connections": "TLS is off",
    "profd_tls_certificate_expiry_timestamp_seconds": "TLS is off",
    "profd_http_certificate_expiry_timestamp_seconds": "TLS is off",
    "ALERTS": "only while an alert fires",
    "atlas_npu_fault_active": "only while an NPU reports a fault",
}
# What a kernel may lack, and what there is when the tests run in a container.
OF_THE_MACHINE = re.compile(r"^atlas_host_(pressure|numa|disk|network)_|^atlas_npu_container_info$")
# Counters whose series begin with the first event, which a busy machine may have.
OF_EVENTS = re.compile(r"^profd_collector_(errors|bad_records|stale_records)_total$"
                       r"|^profd_channel_(dropped_bytes|garbage_bytes|read_errors|discarded_bytes)_total$")
# What only chips have that the simulator does not play (A5).
OTHER_CHIPS = re.compile(r"^atlas_npu_ub_")
# Queries that are empty while all is well, by their text.
EMPTY_WHEN_WELL = ("changes(profd_start_time_seconds{",)
# Units of Grafana's list (packages/grafana-data/src/valueFormats/categories.ts) that we use.
GRAFANA_UNITS = {"short", "percentunit", "bytes", "Bps", "s", "hertz", "watt", "joule", "volt", "celsius", "pps",
                 "cps", "dBm"}
PANEL_TYPES = {"row", "timeseries", "stat", "gauge", "table", "state-timeline", "text"}
# Counters that are read once a minute: an interval of four scrapes sees them grow once or not at all.
ONCE_A_MINUTE = re.compile(r"\b(?:atlas_npu_ub_\w+|atlas_npu_pcie_errors|atlas_npu_network_link_up_transitions|profd_hccn_tool_\w+)_total"
                           r"\{[^}]*\}\[\$__rate_interval\]")
METRIC = re.compile(r"\b(?:(?:npu|instance|job|jobnpu|rank):[\w:]+|(?:atlas|profd|process)_\w+|ALERTS|up)\b")


def load():
    out = {}
    for path in sorted(glob.glob(os.path.join(DASHBOARDS, "grafana", "*.json"))):
        out[os.path.basename(path)] = read_json(path)
    return out


def panels_of(dashboard):
    """All panels; those of closed rows as well."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", ())


def queries_of(dashboard):
    """(where, PromQL) of panels, annotations and variables."""
    for panel in panels_of(dashboard):
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield "annotation " + annotation["name"], annotation["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
            yield "variable " + variable["name"], f"count by ({label}) ({metric})"


def filled(expr):
    """A query as Grafana sends it with everything chosen."""
    for name, value in (("$cluster", ".*"), ("$instance", ".+"), ("$npu", ".+"), ("$job_id", ".+"), ("$__rate_interval", "20s"),
                        ("$__range", "1h")):
        expr = expr.replace(name, value)
    return expr


def bare(expr):
    """Without what is quoted, in braces or a list of labels: metrics and functions are left."""
    return re.sub(r'"[^"]*"|\{[^}]*\}|\b(?:by|without|on|ignoring) ?\([^)]*\)', " ", expr)


def may_be_empty(expr):
    names = METRIC.findall(bare(expr))
    return (any(name in NO_DATA or OF_THE_MACHINE.match(name) for name in names)
            or any(OTHER_CHIPS.match(name) or OF_EVENTS.match(name) for name in names) or expr.startswith(EMPTY_WHEN_WELL))


def start_rank(daemon, job, rank, device):
    return subprocess.Popen([sys.executable, os.path.join(REPO, "tests", "dashboards", "rank.py"), daemon.node["attach_socket"], job,
                             str(rank), str(device)], stdin=subprocess.DEVNULL)


ALERT_NAMES = re.findall(r"^ +- alert: (\w+)$", read_text(RULES, "alerts.yml"), re.M)


class Definitions(unittest.TestCase):
    """What needs no daemon."""

    @classmethod
    def setUpClass(cls):
        cls.dashboards = load()

    def test_up_to_date(self):
        result = subprocess.run([sys.executable, os.path.join(DASHBOARDS, "generate.py"), "--check"],
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(set(self.dashboards), {f"profd-{name}.json" for name in
                                                ("cluster", "node", "job", "self")})

    def test_form(self):
        uids = {d["uid"] for d in self.dashboards.values()}
        self.assertEqual(len(uids), len(self.dashboards))
        for name, dashboard in self.dashboards.items():
            with self.subTest(name):
                self.assertGreaterEqual(dashboard["schemaVersion"], 36)
                self.assertIsNone(dashboard["id"])
                self.assertTrue(dashboard["title"] and dashboard["description"] and dashboard["tags"])
                variables = [v["name"] for v in dashboard["templating"]["list"]]
                self.assertEqual(variables[:3], ["datasource", "cluster", "instance"])
                # All nodes are more than those that have answered in the time shown, and alerts of jobs have none; all jobs
                # may be none.
                every = {v["name"]: v.get("allValue") for v in dashboard["templating"]["list"] if v.get("includeAll")}
                wanted = {"cluster": ".*", "instance": ".*", "job_id": ".+", "npu": None}
                self.assertEqual(every, {name: wanted[name] for name in every})
                self.assertEqual({link["url"].removeprefix("/d/") for link in dashboard["links"]},
                                 uids - {dashboard["uid"]})
                self.assertIn("Sessions", [a["name"] for a in dashboard["annotations"]["list"]])
                ids = [panel["id"] for panel in panels_of(dashboard)]
                self.assertEqual(len(ids), len(set(ids)))
                self.check_grid(dashboard)
                for panel in panels_of(dashboard):
                    with self.subTest(panel["title"]):
                        self.check_panel(panel, variables)
                for where, expr in queries_of(dashboard):
                    self.assertIsNone(ONCE_A_MINUTE.search(expr), where)
                    # Not $__interval: at its least it is the scrape interval and holds one sample, in which nothing changes.
                    used = set(re.findall(r"\$\{?(\w+)", expr))
                    self.assertLessEqual(used - {"__rate_interval", "__range"}, set(variables), where)

    def check_grid(self, dashboard):
        taken = {}
        for panel in panels_of(dashboard):
            grid = panel["gridPos"]
            self.assertLessEqual(grid["x"] + grid["w"], 24, panel["title"])
            self.assertGreater(min(grid["w"], grid["h"]), 0, panel["title"])
            for x in range(grid["x"], grid["x"] + grid["w"]):
                for y in range(grid["y"], grid["y"] + grid["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} lies on {taken.get((x, y))}")
                    taken[(x, y)] = panel["title"]

    def check_panel(self, panel, variables):
        self.assertIn(panel["type"], PANEL_TYPES)
        self.assertTrue(panel["title"])
        if panel["type"] == "row":
            self.assertEqual(bool(panel["panels"]), panel["collapsed"])
            return
        if panel["type"] == "text":
            self.assertTrue(panel["options"]["content"])
            return
        self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"})
        self.assertTrue(panel["description"].endswith("."), panel["description"])
        self.assertTrue(panel["targets"])
        refs = [target["refId"] for target in panel["targets"]]
        self.assertEqual(len(refs), len(set(refs)))
        for target in panel["targets"]:
            self.assertEqual(target["datasource"], panel["datasource"])
        units = [panel["fieldConfig"]["defaults"]["unit"]]
        for override in panel["fieldConfig"]["overrides"]:
            units += [p["value"] for p in override["properties"] if p["id"] == "unit"]
        self.assertLessEqual(set(units), GRAFANA_UNITS)
        if "repeat" in panel:
            self.assertIn(panel["repeat"], variables)
        # A legend may only name labels that the query can leave.
        kept = re.match(r"^(?:sum|max|min|avg) by \(([^)]*)\)", panel["targets"][0]["expr"])
        if kept:
            shown = set(re.findall(r"\{\{(\w+)\}\}", panel["targets"][0]["legendFormat"]))
            self.assertLessEqual(shown, set(kept[1].split(", ")))

    def test_legends_name_every_label(self):
        """Of series that a query takes as they are; else two of them would look alike."""
        documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in
                      re.findall(r"^\| `(\w+)` \|[^|]*\|[^|]*\|([^|]*)\|", read_text(REPO, "docs", "metrics.md"), re.M)}
        as_it_is = re.compile(r"(?:\w+\()?(\w+)\{([^}]*)\}(?:\[[^]]*\]\))?")
        looked_at = 0
        for dashboard in self.dashboards.values():
            for panel in panels_of(dashboard):
                for target in panel.get("targets", ()):
                    query = as_it_is.fullmatch(target["expr"])
                    if panel["type"] == "table" or not query or query[1] not in documented:
                        continue
                    looked_at += 1
                    shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                    # A pid is one process; an NPU has its own power or its card's; the ports of cards have no die.
                    implied = {"npu", "job_id", "job", "container"} if "pid" in shown else set()
                    implied |= {"atlas_npu_power_watts": {"scope"}, "atlas_npu_ub_link_up": {"udie"}}.get(query[1], set())
                    chosen = set(re.findall(r'(\w+)="', query[2]))
                    self.assertEqual(documented[query[1]] - shown - chosen - implied - {"uuid"}, set(), panel["title"])
        self.assertGreater(looked_at, 120)

    def test_runbook_has_every_alert(self):
        with open(os.path.join(REPO, "docs", "runbook.md"), encoding="utf-8") as file:
            text = file.read()
        parts = re.split(r"^### ", text, flags=re.M)[1:]
        self.assertEqual(sorted(part.split("\n", 1)[0] for part in parts), sorted(ALERT_NAMES))
        for part in parts:
            self.assertGreater(len(part), 200, part)
        base = '{{ or $externalLabels.runbook_base "file:///usr/share/doc/profd/runbook.md" }}'
        urls = re.findall(r"^ +runbook_url: (.+)$", read_text(RULES, "alerts.yml"), re.M)
        self.assertEqual(urls, [f"'{base}#{name.lower()}'" for name in ALERT_NAMES])

    def test_every_alert_is_tested(self):
        self.assertEqual(len(ALERT_NAMES), len(set(ALERT_NAMES)))
        tested = {}
        for path in glob.glob(os.path.join(RULES, "tests", "*.yml")):
            with open(path, encoding="utf-8") as file:
                for part in file.read().split("  - name: ")[1:]:
                    tested[part.split("\n", 1)[0]] = part
        self.assertEqual(sorted(tested), sorted(ALERT_NAMES))
        for name, part in tested.items():
            with self.subTest(name):
                self.assertIn("value: 1}", part, "never fires")
                self.assertIn("exp_samples: []", part, "is never silent")
                self.assertIn(f'alertname="{name}"', part)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool(self):
        rules = sorted(glob.glob(os.path.join(RULES, "*.yml")))
        tests = sorted(glob.glob(os.path.join(RULES, "tests", "*.yml")))
        example = os.path.join(DASHBOARDS, "prometheus.yml")
        for command in (["check", "rules", *rules], ["test", "rules", *tests], ["check", "config", example]):
            result = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


class AgainstPrometheus(unittest.TestCase):
    """One node of eight NPUs with the ranks of two jobs on them, a session and the flight recorder running."""

    @classmethod
    def setUpClass(cls):
        Faults.begin()
        cls.base = temp_folder(cls)
        # Who is on which NPU; read again at every query.
        on_npus = os.path.join(cls.base, "processes")
        write_text(on_npus, f"{os.getpid()} 7\n")
        scenario = toml({"": {"chip": "910B", "devices": 8, "seed": 1, "processes_file": on_npus}})
        cls.daemon = Daemon(scenario_text=scenario, config={"recorder": {"enabled": True}, "archive": {"to": "clickhouse://127.0.0.1:1/profiles"}})
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.dispose)
        for rank in range(4):
            process = start_rank(cls.daemon, f"job-{rank // 3}", rank, device=rank)
            cls.addClassCleanup(process.wait)
            cls.addClassCleanup(process.kill)
            with open(on_npus, "a", encoding="utf-8") as file:
                file.write(f"{process.pid} {rank}\n")
        cls.daemon.ctl("start", "--all", "--label", "dashboards", *ALL_OPTIONS, expect=(0, 5))
        # Whose kernels a session collects.
        job = SimTrain(cls.daemon.node["attach_socket"], os.path.join(cls.base, "train"), steps=1_000_000)
        cls.addClassCleanup(job.close)
        job.attached(cls.daemon, 2)
        cls.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--no-dump")
        cls.prometheus = Prometheus(cls.daemon.metrics_address).__enter__()
        cls.addClassCleanup(cls.prometheus.__exit__)

    def until_answered(self, queries):
        """Waits until each of {name: query} has answered with data once."""
        left = dict(queries)

        def all_answered():
            for name in list(left):
                if self.prometheus.query(left[name]):
                    del left[name]
            return not left

        try:
            eventually(all_answered, seconds=120, every=1)
        except AssertionError:
            self.fail("without data:\n" + "\n".join(f"  {n}: {q}" for n, q in left.items()))

    def test_dashboards(self):
        wanted = {}
        for name, dashboard in load().items():
            for where, expr in queries_of(dashboard):
                query = filled(expr)
                self.prometheus.query(query)  # fails when it is not understood
                if not may_be_empty(query):
                    wanted[f"{name} {where}: {query}"] = query
        self.assertGreater(len(wanted), 150)
        self.until_answered(wanted)

    def test_series_of_a_panel_differ_in_their_legends(self):
        """Nor has one of ours the label that names the node, which Prometheus would rename. Two jobs share NPUs here."""
        self.until_answered({"engines": "atlas_npu_dvpp_engine_frames",
                             "jobs": "count(count by (job_id) (jobnpu:atlas_npu_aicore_utilization:deviation)) == 3"})
        for name, dashboard in load().items():
            for panel in panels_of(dashboard):
                for target in panel.get("targets", ()):
                    found = [series["metric"] for series in self.prometheus.query(filled(target["expr"]))]
                    where = f"{name} {panel['title']}: {target['expr']}"
                    self.assertNotIn("exported_instance", {label for series in found for label in series}, where)
                    if panel["type"] == "table" or target["legendFormat"] == "__auto":
                        continue
                    shown = [re.sub(r"\{\{(\w+)\}\}", lambda label: series.get(label[1], ""), target["legendFormat"]) for series in found]
                    self.assertEqual(len(shown), len(set(shown)), f"{where}\n{sorted(shown)}")

    def test_recorded(self):
        names = re.findall(r"^ +- record: (\S+)$", read_text(RULES, "recording.yml"), re.M)
        self.until_answered({name: name for name in names})

    def test_alerts_name_what_is_there(self):
        """An alert on a metric that is not exported would be silent for ever."""
        groups = self.prometheus.get("rules", type="alert")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        self.assertEqual(sorted(rule["name"] for rule in rules), sorted(ALERT_NAMES))
        names = {name for rule in rules for name in METRIC.findall(bare(rule["query"]))}
        self.until_answered({name: name for name in names if name not in NO_DATA and not OF_EVENTS.match(name)})
        documented = set(re.findall(r"^\| `(\w+)` \|", read_text(REPO, "docs", "metrics.md"), re.M))
        self.assertLessEqual({name for name in names if ":" not in name} - {"up"}, documented)

    def test_rules_are_healthy_and_hardware_is_quiet(self):
        def evaluated():
            groups = self.prometheus.get("rules")["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            return rules if all(rule["health"] != "unknown" for rule in rules) else None

        for rule in eventually(evaluated, 60, what="all rules were evaluated"):
            self.assertEqual((rule["name"], rule["health"]), (rule["name"], "ok"), rule.get("lastError"))
        firing = self.prometheus.query('ALERTS{alertname=~"Atlas.*",alertstate="firing"}')
        self.assertEqual([alert["metric"] for alert in firing], [])

    def test_listed_as_empty_is_empty(self):
        """The list of exceptions holds nothing that has data after all."""
        self.until_answered({"up": 'up{job="profd"} == 1'})
        # A busy machine gives its jobs free time, which is an advice.
        for name in set(NO_DATA) - {"ALERTS", "atlas_npu_throttle_reason", "profd_advice"}:
            with self.subTest(name):
                if name.startswith("atlas_host_"):
                    continue  # the machine's business
                self.assertEqual(self.prometheus.query(f"count({name} != 0)"), [])


class Faults(unittest.TestCase):
    """The simulator's faults reach the operator, and name the NPU they are on."""

    FAULTS = (
        {"kind": "ecc", "at": 20, "for": 200, "device": 1, "single": 800, "double": 40},
        # Again and again: Prometheus must have seen the link when it was well.
        *({"kind": "slow_hccs", "at": at, "for": 20, "device": 2, "link": 4} for at in range(20, 500, 40)),
        {"kind": "throttle", "at": 20, "device": 3, "mhz": 1000},
        {"kind": "roce_retrans", "at": 20, "device": 5, "rate": 20000},
        {"kind": "card_drop", "at": 20, "device": 6, "mode": "missing"},
        {"kind": "optical", "mode": "low_power", "lane": 1, "device": 2},
        {"kind": "link_down", "at": 20, "device": 1},
    )
    EXPECTED = {
        ("AtlasNpuEccGrowing", "1"), ("AtlasNpuEccUncorrectable", "1"), ("AtlasNpuUnhealthy", "1"),
        ("AtlasHccsLinkDegraded", "2"), ("AtlasHccsErrors", "2"),
        ("AtlasNpuThrottled", "3"), ("AtlasNpuStraggler", "3"),
        ("AtlasRoceRetransmissions", "5"), ("AtlasPfcStorm", "5"),
        ("AtlasNpuDown", "6"), ("AtlasOpticalPowerLow", "2"), ("AtlasNpuLinkDown", "1"), ("AtlasNpuNetworkDown", "1"),
        ("AtlasJobRankBehind", "5"),
    }

    @classmethod
    @functools.cache
    def begin(cls):
        """Optics are read once a minute: this node begins before the tests of the other classes, which run meanwhile."""
        scenario = toml({"": {"chip": "910B", "devices": 8, "seed": 1}, "fault": list(cls.FAULTS)})
        daemon = Daemon(scenario_text=scenario).start()
        unittest.addModuleCleanup(daemon.dispose)
        prometheus = Prometheus(daemon.metrics_address, hurried=True).__enter__()
        unittest.addModuleCleanup(prometheus.__exit__)
        for rank, device in enumerate((1, 5)):
            process = start_rank(daemon, "job-9", rank, device)
            unittest.addModuleCleanup(process.wait)
            unittest.addModuleCleanup(process.kill)
        # The last one stops in the middle of a step, as one does that waits for ever.
        eventually(lambda: (daemon.metric("atlas_npu_step", rank="1") or 0) > 3, 60, what="rank 1 makes steps")
        process.send_signal(signal.SIGSTOP)
        return daemon, prometheus

    def test_each_alert_fires(self):
        daemon, prometheus = self.begin()
        seen = {}

        def all_fire():
            for alert in prometheus.get("alerts")["alerts"]:
                if alert["state"] == "firing":
                    key = (alert["labels"]["alertname"], alert["labels"].get("npu", ""))
                    seen[key] = alert
            return self.EXPECTED <= set(seen)

        try:
            eventually(all_fire, 240, every=1)
        except AssertionError:
            self.fail(f"not fired: {sorted(self.EXPECTED - set(seen))}; fired: {sorted(seen)}\n{daemon.log()}")
        # Those that nothing happened to. Without the "for", a moment's dip may look like a throttle.
        quiet = {key for key in seen if key[1] in ("0", "4", "7") and key[0] != "AtlasNpuThrottled"}
        self.assertEqual(quiet, set())
        for alert in seen.values():
            for text in alert["annotations"].values():
                self.assertNotIn("<no value>", text)
                self.assertNotIn("error expanding", text)
        daemon.stop()
        eventually(lambda: all_fire() and ("ProfdDown", "") in seen, 60, what="ProfdDown fires")


if __name__ == "__main__":
    main()
