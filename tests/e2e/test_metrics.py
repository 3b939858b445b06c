#!/usr/bin/env python3
"""/metrics: readings that failed are absent, a scrape never waits for a driver. Names and labels are the
matter of test_metrics_golden.py."""

import math
import unittest

from profd_harness import ALL_OPTIONS, Daemon, DaemonCase, eventually, main, parse_metrics
from toml_files import toml


class Metrics(DaemonCase):
    devices = 2

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.session = cls.daemon.ctl("start", "--job", "m", "--devices", "0,1", *ALL_OPTIONS)
        # Everything has spoken: channels, pollers (npu_state once a second), the session itself.
        cls.daemon.until_records(cls.session["session_id"], 5000)
        eventually(lambda: cls.daemon.metric("atlas_npu_power_watts") and
                   cls.daemon.metric("atlas_npu_energy_joules_total") is not None and
                   cls.daemon.metric("profd_dump_bytes_total"))
        cls.text = cls.daemon.get("/metrics")
        cls.samples = parse_metrics(cls.text)

    def test_no_impossible_values(self):
        for (name, labels), value in self.samples.items():
            self.assertFalse(math.isnan(value), (name, labels))
            if name.endswith(("_total", "_bytes", "_ratio", "_watts", "_hertz")):
                self.assertGreaterEqual(value, 0, (name, labels))
            if name.endswith("_ratio"):
                self.assertLessEqual(value, 1, (name, labels))

    def test_every_npu_speaks(self):
        uuids = {d["id"]: d["uuid"] for d in self.daemon.node["devices"]}
        for name in ("atlas_npu_hccs_bandwidth_bytes_per_second", "atlas_npu_power_watts",
                     "atlas_npu_temperature_celsius", "atlas_npu_up"):
            seen = {dict(labels)["npu"]: dict(labels).get("uuid")
                    for (n, labels) in self.samples if n == name}
            self.assertEqual(set(seen), {"0", "1"}, name)
            for npu, uuid in seen.items():
                if uuid is not None:
                    self.assertEqual(uuid, uuids[int(npu)])

    def test_job_and_session_are_not_labels_of_counters(self):
        """Unbounded label values would grow the server's index with every job."""
        for (name, labels) in self.samples:
            self.assertFalse({"session", "session_id", "job", "pid"} & set(dict(labels)), name)

    def test_self_metrics(self):
        daemon = self.daemon
        self.assertEqual(daemon.metric("profd_simulated"), 1)
        self.assertEqual(daemon.metric("profd_sessions", state="running"), 1)
        self.assertEqual(daemon.metric("profd_sessions_started_total"), 1)
        self.assertGreater(daemon.metric("profd_collector_records_total", collector="hbm"), 0)
        self.assertEqual(daemon.metric("profd_channel_dropped_bytes_total") or 0, 0)
        self.assertGreater(daemon.metric("process_resident_memory_bytes"), 1 << 20)
        self.assertEqual(daemon.metric("profd_dump_dropped_bytes_total"), 0)
        self.assertEqual(daemon.metric("profd_collector_available", collector="hbm"), 1)

    def test_counters_never_go_back(self):
        first = self.daemon.scrape()
        eventually(lambda: self.daemon.show(self.session["session_id"])["records"] > 20000)
        second = self.daemon.scrape()
        for key, value in first.items():
            if key[0].endswith("_total") and key in second:
                self.assertGreaterEqual(second[key], value, key)


class BeforeAnySession(DaemonCase):
    devices = 2

    def test_counters_exist_from_the_start(self):
        eventually(lambda: self.daemon.metric("atlas_npu_power_watts"))
        samples = self.daemon.scrape()
        names = {name for name, _ in samples}
        for name in ("profd_sessions_started_total", "profd_dump_bytes_total",
                     "profd_rpc_rejected_total", "profd_dump_dropped_bytes_total",
                     "profd_stream_dropped_samples_total", "profd_pump_restarts_total"):
            self.assertIn(name, names)
        # What was never measured is absent, not zero.
        self.assertNotIn("atlas_npu_hccs_bandwidth_bytes_per_second", names)


class TwoSources(DaemonCase):
    """A session's channels show what DCMI shows too."""
    devices = 2

    def test_no_counter_falls_when_sessions_come_and_go(self):
        network = {"npu": "0", "direction": "tx", "layer": "nic"}
        eventually(lambda: self.daemon.metric("atlas_npu_network_bytes_total", **network))
        before, fallen = self.daemon.scrape(), []

        def look():
            """Bytes of the network: a counter from DCMI changes with each of its samples only, every 10 s."""
            nonlocal before
            now = self.daemon.scrape()
            fallen.extend((key, before[key], value) for key, value in now.items()
                          if key[0].endswith("_total") and value < before.get(key, value))
            before = now
            return sum(value for (name, labels), value in now.items()
                       if name == "atlas_npu_network_bytes_total" and network.items() <= dict(labels).items())

        for _ in range(2):
            session = self.daemon.ctl("start", "--devices", "0,1", *ALL_OPTIONS)
            self.daemon.until_records(session["session_id"], 1000)
            read = look()
            eventually(lambda: look() > read, every=0.3, what="DCMI reads while the session runs")
            self.daemon.ctl("stop", session["session_id"])
            eventually(lambda: look() and self.daemon.metric("profd_sessions", state="running") == 0, every=0.3, what="it is over")
        self.assertEqual(fallen, [])


class Failing(unittest.TestCase):
    def test_failed_readings_are_absent(self):
        scenario = toml({"": {"devices": 2},
                         "fault": [{"kind": "dcmi_error", "device": 1, "code": -8005}]})
        with Daemon(scenario) as daemon:
            eventually(lambda: daemon.metric("atlas_npu_power_watts", npu="0"))
            samples = daemon.scrape()
            for (name, labels), value in samples.items():
                if name.startswith("atlas_"):
                    self.assertGreaterEqual(value, 0, (name, labels))
            self.assertIsNone(daemon.metric("atlas_npu_power_watts", npu="1"))
            self.assertIsNone(daemon.metric("atlas_npu_temperature_celsius", npu="1"))
            self.assertGreater(daemon.metric("profd_dcmi_call_errors_total"), 0)

    def test_scrape_does_not_wait_for_a_hung_card(self):
        scenario = toml({"": {"devices": 2}, "fault": [
            {"kind": "card_drop", "mode": "hang", "device": 1, "at": 1.5, "for": 3600}]})
        daemon = Daemon(scenario, config={"driver": {"stuck_after_ms": 300}}).start()
        try:
            eventually(lambda: daemon.metric("atlas_npu_power_watts", npu="1"))
            daemon.ctl("start", "--devices", "0", "--sys-interconnection-freq", "50")
            # The hang is noticed; until then and afterwards every scrape answers.
            def noticed():
                daemon.scrape()
                stuck = daemon.metric("profd_device_stuck", npu="1")
                return stuck or "stuck" in daemon.log()

            eventually(noticed, what="the hung card is noticed")
            before = daemon.metric("profd_collector_records_total", collector="hccs")
            eventually(lambda: daemon.metric("profd_collector_records_total", collector="hccs") >
                       before, what="the other card continues")
        finally:
            # A thread hangs in the driver for an hour; how the end deals with it is another test's.
            daemon.kill()
            daemon.dispose()

    def test_unified_bus_extras_and_fault_events(self):
        scenario = toml({"": {"chip": "950", "devices": 2}, "fault": [
            {"kind": "ecc", "device": 1, "double": 1, "at": 4}]})
        with Daemon(scenario, config={"metrics": {"npu_extra": ["serdes"]}}) as daemon:
            eventually(lambda: daemon.metric("atlas_npu_ub_flits_total", npu="1", udie="1", port="8",
                                             direction="tx", kind="busy"), what="Unified Bus")
            eventually(lambda: daemon.metric("atlas_npu_ub_link_up", npu="0", port="3") == 1, what="its links")
            eventually(lambda: (daemon.metric("atlas_npu_serdes_snr", npu="0", macro="0", lane="0") or 0) > 0, what="SerDes")
            age = eventually(lambda: daemon.metric("profd_sample_age_seconds", collector="npu_state",
                                                   npu="0"), what="the age of samples")
            self.assertLess(age, 60)
            eventually(lambda: daemon.metric("profd_dcmi_call_duration_seconds_count",
                                             call="dcmi_get_device_health"), what="durations")
            # The list of faults is read every ten seconds; the second reading finds a new one.
            raised = dict(severity="major", assertion="raised")
            eventually(lambda: daemon.metric("atlas_npu_fault_events_total", npu="1", **raised) == 1,
                       what="the fault is counted")
            self.assertEqual(daemon.metric("atlas_npu_fault_events_total", npu="0", **raised), 0)

    def test_collectors_of_a_session_have_no_state_when_it_is_over(self):
        with Daemon("devices = 1\n", config={"metrics": {"disable": ["host_mem"]}}) as daemon:
            def states():
                return {name: daemon.metric("profd_collector_success", collector=name) for name in ("host_mem", "npu_state", "hccs")}

            eventually(lambda: states() == {"host_mem": None, "npu_state": 1, "hccs": None})
            # Two at once: the first one's end leaves it to the second.
            sessions = [daemon.ctl("start", "--devices", "0", "--collector", "host_mem=10", "--collector", "hccs=50",
                                   "--collector", "npu_state=1")["session_id"] for _ in range(2)]
            eventually(lambda: states() == {"host_mem": 1, "npu_state": 1, "hccs": 1})
            daemon.ctl("stop", sessions.pop())
            records = daemon.metric("profd_collector_records_total", collector="host_mem")
            eventually(lambda: daemon.metric("profd_collector_records_total", collector="host_mem") > records)
            self.assertEqual(states(), {"host_mem": 1, "npu_state": 1, "hccs": 1})
            daemon.ctl("stop", sessions.pop())
            eventually(lambda: states() == {"host_mem": None, "npu_state": 1, "hccs": None})
            self.assertGreater(daemon.metric("profd_collector_readings_total", collector="host_mem"), 0)

    def test_switched_off(self):
        with Daemon("devices = 1\n", config={"metrics": {"enabled": False}}) as daemon:
            self.assertEqual(daemon.metrics_address, "")


if __name__ == "__main__":
    main()
