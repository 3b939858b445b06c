"""Libraries that are missing, incomplete, unsafe, hanging or strange."""

import os
import shutil
import tempfile
import unittest

import profd_harness
from fault_common import LIBS, PARTIAL, REFUSED, SIM_HAL, START, FaultCase, daemon, problem, read_dump, start, stop
from profd_harness import outcome
from text_files import write_bytes


class Libraries(FaultCase):
    def assert_host_only(self, d, words):
        """No devices, the reason said, and everything else at work."""
        status = d.ctl("status")
        self.assertIn(words, status["driver"]["hal_error"])
        self.assertEqual(d.ctl("devices")["devices"], [])
        collectors = {c["name"]: c for c in d.ctl("collectors")["collectors"]}
        self.assertFalse(collectors["hccs"]["available"])
        self.assertTrue(collectors["hccs"]["reason"])
        refused = d.run("start", "--collector", "hccs=50")
        self.assertEqual(refused.returncode, REFUSED, refused.stdout)
        self.assertEqual(d.record("--collector", "host_cpu")["state"], "done")
        self.assertTrue(d.scrape())

    def test_missing(self):
        with daemon(args=["--hal-library", "/nonexistent/libascend_hal.so",
                          "--dcmi-library", "/nonexistent/libdcmi.so"]) as d:
            self.assert_host_only(d, "/nonexistent/libascend_hal.so")
            self.assertIn("/nonexistent/libdcmi.so", d.ctl("status")["driver"]["dcmi_error"])
            collectors = {c["name"]: c for c in d.ctl("collectors")["collectors"]}
            self.assertFalse(collectors["npu_state"]["available"])
            self.assertIsNone(d.metric("atlas_npu_up"))
            self.assert_clean_end(d)

    def test_no_library_at_all(self):
        d = daemon()
        junk = os.path.join(d.base, "junk.so")
        write_bytes(junk, b"\x7fELF and no more")
        d.args += ["--hal-library", junk]
        with d:
            self.assert_host_only(d, "junk.so")
            self.assertEqual(d.metric("atlas_npu_up", npu="0"), 1)  # DCMI is another library
            self.assert_clean_end(d)

    def test_dcmi_missing_leaves_the_channels(self):
        with daemon(args=["--dcmi-library", "/nonexistent/libdcmi.so"]) as d:
            self.assert_serves(d, 1)
            self.assert_clean_end(d)

    def test_some_symbols_missing(self):
        with daemon(library="without_symbols") as d:
            missing = d.ctl("status")["driver"]["missing_symbols"]
            self.assertEqual(set(missing),
                             {"halProfDataFlush", "drvDeviceStatus", "halGetAPIVersion",
                              "drvGetDeviceSplitMode", "drvDeviceGetPhyIdByIndex"})
            done = self.assert_serves(d, 1)
            self.assert_complete(read_dump(done), 1)
            self.assert_clean_end(d)

    def test_almost_all_symbols_missing(self):
        with daemon(library="few_functions") as d:
            self.assertIn("prof_drv_start", d.ctl("status")["driver"]["missing_symbols"])
            devices = d.ctl("devices")["devices"]
            self.assertEqual([x["id"] for x in devices], [0, 1])
            self.assertTrue(all(x["problem"] for x in devices), devices)
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED, refused.stdout)
            self.assertEqual(d.record("--collector", "host_cpu")["state"], "done")
            self.assert_clean_end(d)

    def test_dcmi_init_hangs(self):
        """The daemon serves all the same after its deadline, and reports why the NPUs' health is unknown."""
        with daemon(args=["--dcmi-library", os.path.join(LIBS, "libdcmi_hangs.so")]) as d:
            self.assertIn("dcmi_init has not returned", d.ctl("status")["driver"]["dcmi_error"])
            self.assertIn("dcmi_init has not returned", d.log())
            self.assert_serves(d, 0)
            self.assert_clean_end(d)


@unittest.skipUnless(profd_harness.IS_ROOT, "only root is picky about libraries")
class Trust(FaultCase):
    def setUp(self):
        # Not below /tmp: every user may write there, which alone is a reason to refuse.
        os.makedirs(LIBS, exist_ok=True)
        self.folder = tempfile.mkdtemp(prefix="trust-", dir=LIBS)
        self.addCleanup(shutil.rmtree, self.folder)
        self.hal = os.path.join(self.folder, "libascend_hal.so")
        shutil.copy(SIM_HAL, self.hal)
        os.chmod(self.hal, 0o755)

    def hal_error(self, **driver):
        with daemon(simulate=False, config={"driver": driver},
                    args=["--hal-library", self.hal, "--dcmi-library", "/nonexistent"]) as d:
            error = d.ctl("status")["driver"]["hal_error"]
            found = len(d.ctl("devices")["devices"])
            self.assert_clean_end(d)
        return error, found

    def test_writable_by_others_is_refused(self):
        error, found = self.hal_error()
        if error:
            self.skipTest(f"the build tree itself is not safe: {error}")
        self.assertGreater(found, 0)
        os.chmod(self.hal, 0o666)
        error, found = self.hal_error()
        self.assertIn(self.hal, error)
        self.assertIn("writable by others", error)
        self.assertEqual(found, 0)
        error, found = self.hal_error(require_safe_library=False)
        self.assertEqual(error, "")
        self.assertGreater(found, 0)

    def test_of_another_owner_is_refused(self):
        os.chown(self.hal, profd_harness.MALLORY, 0)
        error, found = self.hal_error()
        self.assertTrue("belongs to uid" in error or "writable" in error, error)
        self.assertEqual(found, 0)


class Inventory(FaultCase):
    def inventory(self, devices=2, **env):
        return daemon(devices=devices, library="odd_inventory",
                      env={f"PROFD_FAULT_{name}": str(value) for name, value in env.items()})

    def test_no_devices(self):
        with self.inventory(DEVICES=0) as d:
            self.assertEqual(d.ctl("devices")["devices"], [])
            refused = d.run("start", *START)
            self.assertEqual(refused.returncode, REFUSED)
            self.assert_clean_end(d)

    def test_more_devices_than_there_can_be(self):
        with self.inventory(DEVICES=65) as d:
            self.assertIn("65 devices", d.ctl("status")["driver"]["hal_error"])
            self.assertEqual(d.ctl("devices")["devices"], [])
            self.assert_clean_end(d)

    def test_ids_with_gaps(self):
        with self.inventory(devices=6, ODD_IDS=1) as d:
            self.assertEqual([x["id"] for x in d.ctl("devices")["devices"]], [1, 3, 5])
            session = start(d)
            d.until_records(session["session_id"], 200)
            done = stop(d, session)
            self.assertEqual({o["device"] for o in done["outcomes"]}, {1, 3, 5})
            dump = read_dump(done)
            for device in (1, 3, 5):
                self.assert_complete(dump, device)
            self.assertEqual(sorted(n for n in os.listdir(done["dump_path"])
                                    if n.startswith("device_")),
                             ["device_1", "device_3", "device_5"])
            wrong = d.run("start", *START, "--devices", "0,2")
            self.assertEqual(wrong.returncode, REFUSED)
            self.assertIn("0", wrong.stdout)
            self.assert_clean_end(d)

    def test_channels_cannot_be_listed_for_one_device(self):
        for name in ("NO_CHANNELS", "MANY_CHANNELS"):
            with self.subTest(name), self.inventory(**{name: 1}) as d:
                self.assertEqual(problem(d, 0), "")
                self.assertIn("device 1", problem(d, 1))
                self.assertIn("channels", problem(d, 1))
                partial = start(d, expect=PARTIAL)
                self.assertEqual(outcome(partial, "hccs", 0)["result"], "running")
                self.assertNotEqual(outcome(partial, "hccs", 1)["result"], "running")
                self.assertTrue(outcome(partial, "hccs", 1)["detail"])
                stop(d, partial)
                self.assert_serves(d, 0)
                self.assert_clean_end(d)

    def test_names_without_an_end(self):
        with self.inventory(RAW_NAMES=1) as d:
            text = d.run("devices", "--channels", json_output=False).stdout
            self.assertNotIn("\x1b", text)
            self.assert_serves(d, 0)
            self.assert_clean_end(d)


if __name__ == "__main__":
    profd_harness.main()
