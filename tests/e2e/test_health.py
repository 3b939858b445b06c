#!/usr/bin/env python3
"""How the NPUs are, on a node where one is throttled, one has memory errors, one has dropped off the bus and one
hangs: devices, health, faults, top, the page, /readyz and the metrics say the same, and the log says each change
once."""

import json
import unittest

from profd_harness import Daemon, eventually, main
from toml_files import toml

OK, HOT, ECC, GONE, HUNG = range(5)
WANT = {OK: "ok", HOT: "degraded", ECC: "faulty", GONE: "down", HUNG: "down"}
NUMBERS = {"ok": 0, "degraded": 1, "faulty": 2, "down": 3, "unknown": 4}
FAULTS = [{"kind": "throttle", "at": 0, "device": HOT, "mhz": 990, "cause": 1},
          {"kind": "ecc", "at": 0, "device": ECC, "double": 2},
          {"kind": "card_drop", "at": 3, "device": GONE, "mode": "missing"},
          {"kind": "card_drop", "at": 5, "device": HUNG, "mode": "hang"}]


def node(devices, faults):
    return toml({"": {"chip": "910B", "devices": devices, "seed": 1}, "fault": faults})


class Health(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(node(5, FAULTS), config={"driver": {"stuck_after_ms": 1000}})
        cls.daemon.start()
        cls.addClassCleanup(cls.daemon.dispose)
        eventually(lambda: cls.verdicts() == WANT, 60, what="every NPU is judged")

    @classmethod
    def health(cls):
        return cls.daemon.ctl("health", expect=8)

    @classmethod
    def verdicts(cls):
        answer = cls.daemon.run("health")
        return {d["id"]: d["verdict"] for d in json.loads(answer.stdout)["devices"]}

    def test_all_views_agree(self):
        devices = {d["id"]: d["health"]["verdict"] for d in self.daemon.ctl("devices")["devices"]}
        self.assertEqual(devices, WANT)
        top = self.daemon.ctl("top", "--once")
        self.assertEqual({d["id"]: d["health"] for d in top["devices"]}, WANT)
        page = self.daemon.get("/")
        ready = self.daemon.get("/readyz")
        for device, verdict in WANT.items():
            with self.subTest(device):
                self.assertIn(f"npu {device}: " + ("ready" if verdict == "ok" else verdict), ready)
                self.assertIn(f"<td>{device}</td><td>Ascend910B</td>", page)
                row = page.split(f"<td>{device}</td><td>Ascend910B</td>")[1].split("</tr>")[0]
                self.assertIn(f">{verdict}</span>", row)
                self.assertEqual(self.daemon.metric("atlas_npu_verdict", npu=str(device)), NUMBERS[verdict])

    def test_flags_and_faults(self):
        flags = {d["id"]: d["flags"] for d in self.health()["devices"]}
        self.assertEqual(flags[OK], [])
        self.assertIn("throttled", flags[HOT])
        self.assertIn("ecc", flags[ECC])
        self.assertEqual((flags[GONE], flags[HUNG]), (["gone"], ["hung"]))
        faults = {f["device"]: f for f in self.daemon.ctl("faults")["faults"]}
        self.assertEqual(sorted(faults), [HOT, ECC])
        self.assertEqual((faults[ECC]["code"], faults[ECC]["severity"]), ("0x80E01801", "major"))
        self.assertIn("ECC", faults[ECC]["name"])
        text = self.daemon.run("devices", json_output=False).stdout
        for part in ("HEALTH", "FLAGS", "throttled", "ecc 0x80E01801"):
            self.assertIn(part, text)
        # A reason has a line of its own: the table stays narrow.
        for line in text.splitlines():
            if not line.startswith("NPU "):
                self.assertLess(len(line), 140, line)

    def test_exit_codes(self):
        for device, code in ((OK, 0), (HOT, 7), (ECC, 8), (GONE, 8)):
            self.assertEqual(self.daemon.run("health", "--devices", str(device)).returncode, code, device)

    def test_each_change_is_logged_once(self):
        lines = self.daemon.log(10_000).splitlines()
        for device, verdict in WANT.items():
            reported = [line for line in lines if "NPU health changed" in line and f"npu={device} " in line
                    and f"to={verdict} " in line]
            self.assertEqual(len(reported), 0 if verdict == "ok" else 1, (device, reported))
        raised = [line for line in lines if "NPU fault raised" in line and "code=0x80E01801" in line]
        self.assertEqual(len(raised), 1, raised)

    def test_topology(self):
        topology = {d["id"]: d for d in self.daemon.ctl("topology")["devices"]}
        paths = {n["physical_id"]: n["type"] for n in topology[OK]["neighbours"]}
        self.assertEqual(paths[HOT], "hccs")
        links = [link for link in topology[OK]["links"] if link["kind"] == "hccs" and link["name"] != "all"]
        self.assertTrue(links)
        self.assertTrue(all(link["up"] and link["lanes"] for link in links), links)
        text = self.daemon.run("topology", "--links", json_output=False).stdout
        self.assertIn("HCCS", text)
        self.assertIn("hccs 1", text)


class WithoutHal(unittest.TestCase):
    def test_what_libdcmi_knows_is_judged_for_the_metric(self):
        with Daemon(node(5, FAULTS), config={"driver": {"stuck_after_ms": 1000}},
                    args=("--hal-library", "/nonexistent/libascend_hal.so")) as daemon:
            def verdicts():
                return {device: daemon.metric("atlas_npu_verdict", npu=str(device)) for device in WANT}
            eventually(lambda: verdicts() == {device: NUMBERS[want] for device, want in WANT.items()}, 60,
                       what="every NPU is judged")
            health = daemon.ctl("health", expect=9)
            self.assertEqual((health["verdict"], health["devices"]), ("unknown", []))


class ComesBack(unittest.TestCase):
    def test_a_card_that_drops_and_returns(self):
        faults = [{"kind": "card_drop", "at": 3, "for": 4, "device": 1, "mode": "missing"}]
        with Daemon(node(2, faults)) as daemon:
            def events():
                return [line for line in daemon.log(10_000).splitlines() if "NPU health changed" in line]
            eventually(lambda: len(events()) >= 2, 60, what="gone and back")
            self.assertEqual(len(events()), 2, events())
            self.assertIn("to=down", events()[0])
            self.assertIn("from=down", events()[1])
            self.assertIn("to=ok", events()[1])
            self.assertEqual(daemon.run("health").returncode, 0)
            self.assertEqual(daemon.ctl("faults")["faults"], [])


if __name__ == "__main__":
    main()
