#!/usr/bin/env python3
"""Link, speed and optics of the network ports: the daemon runs the simulator's stand-in for hccn_tool, also
where that hangs, writes nonsense or far too much, or fails."""

import glob
import os
import signal

from profd_harness import DaemonCase, eventually, main

LIT, HANGS, NOISE, FLOODS, FAILS, DIM, EMPTY, DOWN = range(8)


def children(pid):
    """[(pid, state, name)] of a process's children; those that end meanwhile may be missing."""
    out = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                head, tail = file.read().rsplit(")", 1)
        except OSError:
            continue
        fields = tail.split()
        if int(fields[1]) == pid:
            out.append((int(head.split(" ", 1)[0]), fields[0], head.split("(", 1)[1]))
    return out


class Optics(DaemonCase):
    devices = 8
    faults = (
        {"kind": "hccn_tool", "mode": "hang", "device": HANGS},
        {"kind": "hccn_tool", "mode": "garbage", "device": NOISE},
        {"kind": "hccn_tool", "mode": "flood", "device": FLOODS},
        {"kind": "hccn_tool", "mode": "exit", "code": 7, "device": FAILS},
        {"kind": "optical", "mode": "low_power", "lane": 2, "factor": 0.01, "device": DIM},
        {"kind": "optical", "mode": "missing", "device": EMPTY},
        {"kind": "link_down", "device": DOWN},
    )

    def value(self, name, npu, **labels):
        return self.daemon.metric(name, npu=str(npu), **labels)

    def test_1_a_pass(self):
        # The hanging one comes early: the others wait for its deadline and are read all the same.
        eventually(lambda: children(self.daemon.pid), what="the tool runs")
        eventually(lambda: self.daemon.metric("profd_hccn_tool_runs_total", command="link") == 8, 120,
                   what="all NPUs were asked")
        eventually(lambda: self.value("atlas_npu_network_link_up", DOWN) is not None, what="the last one is read")
        for npu in (LIT, DIM):
            self.assertEqual(self.value("atlas_npu_network_link_up", npu, port="0"), 1)
            self.assertEqual(self.value("atlas_npu_network_link_up_transitions_total", npu), 1)
            self.assertEqual(self.value("atlas_npu_network_speed_bytes_per_second", npu, port="0"), 25e9)
            self.assertEqual(self.value("atlas_npu_optical_present", npu), 1)
            self.assertTrue(30 < self.value("atlas_npu_optical_temperature_celsius", npu) < 70)
            self.assertAlmostEqual(self.value("atlas_npu_optical_supply_volts", npu), 3.3, delta=0.03)
        for lane in range(4):
            lit = self.value("atlas_npu_optical_power_watts", LIT, direction="rx", lane=str(lane))
            dim = self.value("atlas_npu_optical_power_watts", DIM, direction="rx", lane=str(lane))
            self.assertAlmostEqual(lit, 0.0008, delta=0.0002)
            self.assertEqual(dim < 0.0001, lane == 2)
        # What is not known is absent.
        self.assertEqual(self.value("atlas_npu_network_link_up", EMPTY), 0)
        self.assertEqual(self.value("atlas_npu_optical_present", EMPTY), 0)
        self.assertIsNone(self.value("atlas_npu_optical_power_watts", EMPTY))
        self.assertEqual(self.value("atlas_npu_network_link_up", DOWN), 0)
        self.assertIsNone(self.value("atlas_npu_network_speed_bytes_per_second", DOWN))
        for npu in (HANGS, NOISE, FLOODS, FAILS):
            self.assertIsNone(self.value("atlas_npu_network_link_up", npu), npu)
            self.assertIsNone(self.value("atlas_npu_optical_present", npu), npu)

    def test_2_failures_are_counted_and_nothing_is_left(self):
        eventually(lambda: self.daemon.metric("profd_hccn_tool_runs_total", command="optical") == 7, 120)
        failures = {command: self.daemon.metric("profd_hccn_tool_failures_total", command=command)
                    for command in ("link", "speed", "link_stat", "optical", "dev_info")}
        # The one that hangs is asked once, the other three for everything.
        self.assertEqual(failures, {"link": 4, "speed": 3, "link_stat": 3, "optical": 3, "dev_info": 0})
        eventually(lambda: not children(self.daemon.pid), what="no tool and no zombie")
        self.assertLess(self.daemon.rss(), 500 << 20)

    def test_3_the_driver_s_own_check_agrees(self):
        eventually(lambda: self.value("atlas_npu_network_health", DOWN) == 0)
        self.assertEqual(self.value("atlas_npu_network_health", LIT), 1)

    def test_4_it_ends_while_the_tool_hangs(self):
        self.daemon.restart()
        tool = eventually(lambda: [pid for pid, state, name in children(self.daemon.pid)
                                   if state != "Z" and name == "hccn_tool"
                                   and f"\0{HANGS}\0" in command_line(pid)], what="the hanging run")[0]
        self.assertEqual(self.daemon.stop(signal.SIGTERM), 0, self.daemon.log())
        eventually(lambda: not os.path.exists(f"/proc/{tool}"), what="the tool is gone with the daemon")
        # Switched off: not run, and the reason is given.
        self.daemon.write_config({"metrics": {"hccn_tool": "off"}})
        self.daemon.start()
        collector = next(c for c in self.daemon.ctl("collectors")["collectors"] if c["name"] == "npu_optics")
        self.assertFalse(collector.get("available"))
        self.assertIn('metrics.hccn_tool is "off"', collector["reason"])
        self.assertEqual(self.daemon.metric("profd_collector_available", collector="npu_optics"), 0)
        self.assertIsNone(self.daemon.metric("profd_hccn_tool_runs_total"))


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


if __name__ == "__main__":
    main()
