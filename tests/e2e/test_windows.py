#!/usr/bin/env python3
"""Windowed metrics show what happened between two scrapes; summed counters outlive sessions; what was
measured on a card that dropped off the bus is not shown any longer."""

import itertools
import unittest

from profd_harness import ALL_OPTIONS, Daemon, DaemonCase, eventually, main
from toml_files import toml

HCCS = "atlas_npu_hccs_bandwidth_bytes_per_second"
HCCS_WINDOW = "atlas_npu_hccs_bandwidth_window_bytes_per_second"
HBM_TOTAL = "atlas_npu_hbm_bytes_total"


def value(samples, name, **labels):
    wanted = set(labels.items())
    found = [v for (n, have), v in samples.items() if n == name and wanted <= set(have)]
    return found[0] if len(found) == 1 else None


def total(samples, name, **labels):
    wanted = set(labels.items())
    return sum(v for (n, have), v in samples.items() if n == name and wanted <= set(have))


class Windows(DaemonCase):
    """Devices that exchange data all the time but for 60 ms every two seconds."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(toml({
            "": {"devices": 2},
            "phases": {"forward_ms": 0, "backward_ms": 0, "all_reduce_ms": 1900, "update_ms": 40,
                       "data_wait_ms": 60}}))
        cls.daemon.start()
        cls.agents = itertools.count()
        cls.session = cls.start()

    @classmethod
    def start(cls):
        return cls.daemon.ctl("start", "--devices", "0,1", *ALL_OPTIONS)["session_id"]

    def scrape_anew(self):
        """As a scraper never seen before: its window reaches back 15 s."""
        return self.daemon.scrape(**{"User-Agent": f"test/{next(self.agents)}"})

    def test_a_short_dip_that_the_gauge_misses_is_in_the_window(self):
        def dip_between_scrapes():
            samples = self.scrape_anew()
            now = value(samples, HCCS, npu="0", link="all", direction="tx")
            least, mean, most = (value(samples, HCCS_WINDOW, npu="0", link="all", direction="tx",
                                       stat=stat) for stat in ("min", "avg", "max"))
            if now is None or least is None:
                return None
            self.assertLessEqual(least, now)
            self.assertLessEqual(now, most)
            return now > most / 2 and least < most / 10 and mean > most / 2

        eventually(dip_between_scrapes, what="a dip that is over when /metrics is scraped")

    def test_every_kind_of_window_is_there(self):
        kinds = {"atlas_npu_utilization_window_ratio", "atlas_npu_frequency_window_hertz",
                 "atlas_npu_power_window_watts", "atlas_npu_hbm_bandwidth_window_bytes_per_second",
                 "atlas_npu_llc_throughput_window_bytes_per_second", HCCS_WINDOW,
                 "atlas_npu_pcie_bandwidth_window_bytes_per_second",
                 "atlas_npu_network_port_bandwidth_window_bytes_per_second"}
        eventually(lambda: kinds <= {name for name, _ in self.scrape_anew()}, what=f"all of {kinds}")
        by_series = {}
        for (name, labels), figure in self.scrape_anew().items():
            if name in kinds:
                rest = tuple(pair for pair in labels if pair[0] != "stat")
                by_series.setdefault((name, rest), {})[dict(labels)["stat"]] = figure
        for series, figures in by_series.items():
            self.assertEqual(set(figures), {"min", "avg", "max"}, series)
            self.assertLessEqual(figures["min"], figures["avg"], series)
            self.assertLessEqual(figures["avg"], figures["max"], series)

    def test_summed_bytes_go_on_in_the_next_session(self):
        eventually(lambda: total(self.scrape_anew(), HBM_TOTAL, npu="0") > 0, what="bytes")
        before = total(self.scrape_anew(), HBM_TOTAL, npu="0")
        self.end_all()
        self.daemon.until_state(self.session, "done")
        eventually(lambda: not total(self.scrape_anew(), HBM_TOTAL), what="nothing counts")
        type(self).session = self.start()
        after = eventually(lambda: total(self.scrape_anew(), HBM_TOTAL, npu="0"), what="bytes again")
        self.assertGreaterEqual(after, before)


class DroppedCard(unittest.TestCase):
    def test_nothing_measured_before_is_shown(self):
        daemon = Daemon(toml({"": {"devices": 2}, "fault": [
            {"kind": "card_drop", "mode": "missing", "device": 1, "at": 5}]})).start()
        try:
            # A session's decoders own series of the device, also those that only DCMI feeds.
            daemon.ctl("start", "--devices", "0,1", *ALL_OPTIONS)
            eventually(lambda: daemon.metric("atlas_npu_up", npu="1") == 0, what="the drop shows")
            samples = daemon.scrape()
            shown = {name for (name, labels) in samples if ("npu", "1") in labels}
            for name in ("atlas_npu_llc_hit_ratio", "atlas_npu_voltage_volts", "atlas_npu_power_watts",
                         "atlas_npu_frequency_hertz", HCCS, HCCS_WINDOW, HBM_TOTAL):
                self.assertNotIn(name, shown)
                self.assertTrue(any(n == name and ("npu", "0") in labels for n, labels in samples),
                                f"{name} of the other card")
            self.assertIn("atlas_npu_info", shown)
            # Who asks for the node reads what has happened and what to do.
            # Health is judged once a second.
            def problems():
                return {one["id"]: one["problem"] for one in daemon.ctl("status")["devices"]}
            eventually(lambda: problems()[1] != "", what="the problem shows")
            self.assertEqual(problems()[0], "")
            self.assertRegex(problems()[1], "NPU 1 does not answer .*dmesg")
        finally:
            daemon.kill()
            daemon.dispose()


if __name__ == "__main__":
    main()
