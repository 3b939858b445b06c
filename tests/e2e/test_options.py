#!/usr/bin/env python3
"""The vendor's options: what they turn on, how they are answered, what is refused and why."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess

import prof_reader
from profd_harness import ALICE, BUILD, RUNNER, DaemonCase, UsersCase, eventually, main, profctl
from text_files import read_json

NEEDS_PROCESS = "needs an attached process that reports it"


class OptionCase(DaemonCase):
    devices = 2

    def setUp(self):
        self.end_all()

    def start(self, options, *more, expect=0):
        return self.daemon.ctl("start", "--options-json", json.dumps(options), *more,
                               expect=expect)

    def record(self, options, *more, expect=0):
        session = self.start(options, *more, "--duration", "900ms", expect=expect)
        return self.daemon.until_state(session["session_id"], "done", "failed")

    def refusal(self, options, *more, code):
        """The daemon's text; nothing was started and nothing is left of it."""
        before = sorted(os.listdir(self.daemon.dump_root))
        answer = self.start(options, *more, expect=3)
        self.assertEqual(answer["error"]["code"], code, answer)
        self.assertEqual(self.daemon.ctl("list", "--active")["sessions"], [])
        self.assertEqual(sorted(os.listdir(self.daemon.dump_root)), before)
        return answer["error"]["message"]

    @staticmethod
    def effective(session):
        return {one["key"]: one for one in session["effective_options"]}

    @staticmethod
    def outcomes(session):
        return {(o["collector"], o["device"]): o for o in session["outcomes"]}

    def manifest_options(self, dump):
        return {one["key"]: one for one in dump.manifest["session"]["options"]}


class A2(OptionCase):
    """On Ascend910B."""

    def test_hardware_options(self):
        """Rates after rounding are in the reply, in the manifest and in sample.json."""
        requested = {
            "sys_hardware_mem_freq": 40, "llc_profiling": "write", "sys_io_sampling_freq": "80",
            "sys_interconnection_freq": 50, "dvpp_freq": 10, "host_sys_usage": "cpu,mem",
            "host_sys_usage_freq": 20, "storage_limit": "300MB",
        }
        session = self.record(requested)
        self.assertEqual(session["state"], "done")
        effective = self.effective(session)
        expected = {
            "sys_hardware_mem_freq": "40", "llc_profiling": "write", "sys_io_sampling_freq": "83.3333",
            "sys_interconnection_freq": "50", "dvpp_freq": "10", "host_sys_usage": "cpu,mem",
            "host_sys_usage_freq": "20", "storage_limit": "300MB",
        }
        for key, value in expected.items():
            self.assertEqual(effective[key]["value"], value, key)
            self.assertEqual(effective[key]["asked"], str(requested[key]), key)
        self.assertEqual(effective["sys_io_sampling_freq"]["note"], "every 12 ms")
        ran = {o["collector"] for o in session["outcomes"] if o["result"] == "finished"}
        self.assertLessEqual({"hbm", "llc", "npu_mem", "nic", "roce", "hccs", "pcie", "dvpp",
                              "soc_profile", "host_cpu", "host_mem", "aicore_freq"}, ran)
        dump = prof_reader.read_valid(session["dump_path"])
        self.assertEqual(self.manifest_options(dump), effective)
        sample = dump.devices[0]["sample"]
        self.assertEqual(sample["io_sampling_interval"], 12)
        self.assertEqual(sample["hardware_mem_sampling_interval"], 25000)
        self.assertEqual(sample["hbmInterval"], 25)
        self.assertEqual(sample["hccsInterval"], 20)
        self.assertEqual(sample["dvpp_sampling_interval"], 100)
        self.assertEqual(sample["llc_profiling"], "write")
        self.assertEqual(sample["hostSysUsage"], "cpu,mem")
        self.assertEqual(sample["hostProfilingSamplingInterval"], 50)
        self.assertEqual(sample["storageLimit"], "300MB")
        self.assertEqual(json.loads(sample["profiling_options"]),
                         {key: str(value) for key, value in requested.items()})
        # The records come at the rate in the answer.
        hz = {c["collector"]: c["hz_effective"] for c in dump.manifest["channels"]
              if c["device"] == 0 and c["state"] == "finished"}
        self.assertAlmostEqual(hz["nic"], 1000 / 12, places=3)
        self.assertAlmostEqual(hz["hbm"], 40, places=3)

    def test_one_option_turns_on_its_own_and_nothing_else(self):
        cases = {
            "sys_hardware_mem_freq": (10, {"hbm", "llc", "npu_mem", "qos", "soc_profile"}),
            "sys_io_sampling_freq": (10, {"nic", "roce"}),
            "sys_interconnection_freq": (10, {"hccs", "pcie", "soc_profile"}),
            "dvpp_freq": (10, {"dvpp"}),
        }
        for key, (hz, collectors) in cases.items():
            with self.subTest(key):
                session = self.start({key: hz})
                ran = {o["collector"] for o in session["outcomes"]}
                self.assertEqual(ran - {"aicore_freq", "ddr"}, collectors)
                self.assertIn("aicore_freq", ran)
                self.daemon.ctl("stop", session["session_id"])
        session = self.start({"host_sys_usage": "mem"})
        self.assertEqual({o["collector"] for o in session["outcomes"]}, {"host_mem"})

    def test_check_takes_collectors(self):
        alone = "a session of these options alone is refused"
        for more, refused in (((), True), (("--collector", "hbm=10"), False)):
            answer = self.daemon.ctl("check", "--task-time", "l1", *more)
            self.assertEqual(any(alone in warning for warning in answer["warnings"]), refused, answer["warnings"])
        problems = self.daemon.ctl("check", "--collector", "hbn", "--collector", "hccs=5000", "--dvpp-freq", "101", expect=3)["problems"]
        text = "\n".join(problem["field"] + problem["text"] for problem in problems)
        for part in ("dvpp_freq", "no such collector", "collector hccs = 5000 Hz: must be at least"):
            self.assertIn(part, text)

    def test_all_problems_at_once_and_nothing_starts(self):
        text = self.refusal(
            {"sys_hardware_mem_freq": 101, "sys_interconnection_freq": 0, "dvpp_freq": 1.5,
             "llc_profiling": "both", "host_sys_usage": "cpu,", "storage_limit": "199MB",
             "aic_metrics": "Custom:0x6F", "gpu_freq": 1, "l2": True, "host_sys": "cpu"},
            "--label", "x" * 200, code="invalid_argument")
        for part in ("sys_hardware_mem_freq", "from 1 to 100", "sys_interconnection_freq", "from 1 to 50",
                     "dvpp_freq", "llc_profiling", "read, write", "host_sys_usage",
                     "storage_limit", "200MB..4294967295MB", "aic_metrics", "0x6E", "gpu_freq",
                     "l2", "host_sys", "label"):
            self.assertIn(part, text)
        lines = text.splitlines()
        self.assertGreaterEqual(len(lines), 11)
        for device in self.daemon.ctl("status")["devices"]:
            for channel in device["channels"]:
                self.assertNotEqual(channel["state"], "running", channel)
        self.assertIn("line 2", self.daemon.ctl("start", "--options-json", "{\n \"l2\" \"on\"}",
                                                expect=3)["error"]["message"])

    def test_two_forms_must_agree(self):
        self.refusal({"dvpp_freq": 10}, "--dvpp-freq", "20", code="invalid_argument")
        session = self.start({"dvpp_freq": 10}, "--dvpp-freq", "10")
        self.assertEqual(self.effective(session)["dvpp_freq"]["value"], "10")

    def test_application_options_beside_the_nodes(self):
        session = self.record({"training_trace": "on", "task_trace": "l0", "aic_metrics": "MemoryL0",
                               "l2": "on", "runtime_api": "on", "msproftx": "on",
                               "sys_io_sampling_freq": 10}, expect=(0, 5))
        self.assertEqual(session["state"], "done")
        outcomes = self.outcomes(session)
        for key in ("training_trace", "task_trace", "aic_metrics", "l2", "runtime_api", "msproftx"):
            self.assertEqual(outcomes[key, None]["result"], "needs_process", key)
            self.assertEqual(outcomes[key, None]["detail"], NEEDS_PROCESS)
            self.assertIn(NEEDS_PROCESS, self.effective(session)[key]["note"])
        self.assertNotIn(("hccl", None), outcomes)
        dump = prof_reader.read_valid(session["dump_path"])
        for sample in (dump.devices[0]["sample"], dump.host["sample"]):
            for key in ("taskTrace", "taskTime", "ts_fw_training", "ai_core_profiling",
                        "l2CacheTaskProfiling", "runtimeApi", "msproftx"):
                self.assertEqual(sample[key], "on", key)
            self.assertEqual(sample["prof_level"], "l0")
            self.assertEqual(sample["ai_core_metrics"], "MemoryL0")
            self.assertEqual(sample["ai_core_profiling_mode"], "task-based")
        self.assertEqual(self.manifest_options(dump)["l2"]["note"], NEEDS_PROCESS)

    def test_defaults_are_reported_but_claimed_nowhere(self):
        session = self.record({"sys_io_sampling_freq": 10})
        effective = self.effective(session)
        self.assertEqual(effective["task_time"],
                         {"key": "task_time", "value": "l1", "asked": "", "note": NEEDS_PROCESS})
        self.assertEqual(effective["l2"]["value"], "off")
        # Whichever is smaller on this machine.
        self.assertRegex(effective["storage_limit"]["note"], "90 % of|dump.max_session_mb")
        self.assertRegex(effective["storage_limit"]["value"], r"^\d+MB$")
        self.assertNotIn(("task_time", None), self.outcomes(session))
        sample = prof_reader.read(session["dump_path"]).devices[0]["sample"]
        self.assertEqual((sample["taskTime"], sample["ai_core_profiling"]), ("off", "off"))

    def test_application_options_alone_are_refused(self):
        text = self.refusal({"training_trace": "on", "task_trace": "on", "output": "/tmp/x"},
                            code="failed_precondition")
        for part in ("training_trace", "task_trace", "inside the application", "names none of its processes",
                     "sys_hardware_mem_freq"):
            self.assertIn(part, text)
        self.assertIn("nothing would be collected",
                      self.refusal({"task_time": "off"}, code="invalid_argument"))

    def test_pytorch_switches(self):
        session = self.daemon.ctl("start", "--acl", "ACL_PROF_L2CACHE=on", "--acl",
                                  "aiCoreMetricsType=2", "--dvpp-freq", "10", expect=(0, 5))
        effective = self.effective(session)
        self.assertEqual(effective["l2"]["value"], "on")
        self.assertEqual(effective["aic_metrics"]["value"], "Memory")
        self.assertEqual(effective["aicpu"]["value"], "on")  # a default of the switches
        self.assertEqual(effective["aicpu"]["asked"], "")
        waiting = {key for (key, device), o in self.outcomes(session).items()
                   if o["result"] == "needs_process"}
        # The defaults of the switches are recorded, too; those that are given as off take something away from them.
        self.assertEqual(waiting, {"l2", "aic_metrics", "task_time", "hccl", "aicpu", "ACL_PROF_ACL_API"})
        session = self.daemon.ctl("start", "--acl", "ACL_PROF_AICPU=off", "--dvpp-freq", "10", expect=(0, 5))
        self.assertEqual({key for (key, device), o in self.outcomes(session).items() if o["result"] == "needs_process"},
                         {"aic_metrics", "task_time", "hccl", "ACL_PROF_ACL_API"})
        answer = self.daemon.ctl("start", "--acl", "ACL_PROF_GPU=on", "--acl",
                                 "aiCoreMetricsType=6", expect=3)
        for part in ("ACL_PROF_GPU", "aiCoreMetricsType", "0..5"):
            self.assertIn(part, answer["error"]["message"])

    def test_instructions_are_kept_as_delivered(self):
        """One file for each core of each group, of whole records; verify counts them."""
        session = self.record({"instr_profiling_freq": 300})
        self.assertEqual([o["result"] for (key, _), o in self.outcomes(session).items()
                          if key == "instr"], ["finished", "finished"])
        self.assertGreater(self.outcomes(session)[("instr", 0)]["records"], 75)
        for device in (0, 1):
            folder = os.path.join(session["dump_path"], f"device_{device}")
            sample = read_json(folder, "sample.json")
            self.assertEqual((sample["instrProfiling"], sample["instrProfilingFreq"]), ("on", 300))
            sizes = {name: os.path.getsize(os.path.join(folder, "data", name))
                     for name in os.listdir(os.path.join(folder, "data")) if name.startswith("instr.") and not name.endswith(".done")}
            self.assertEqual(set(sizes), {f"instr.group_{group}_{core}.{device}.slice_0"
                                          for group in range(25) for core in ("aic", "aiv0", "aiv1")})
            for name, size in sizes.items():
                self.assertGreater(size, 0, name)
                self.assertEqual(size % (96 if "_aic." in name else 64), 0, name)
        profctl("verify", session["dump_path"])

    def test_instructions_are_exported(self):
        """A row for each record but a core's first; no unit is busier than there are cycles."""
        dump = self.record({"instr_profiling_freq": 300})["dump_path"]
        records = {}
        for device in (0, 1):
            folder = os.path.join(dump, f"device_{device}", "data")
            for name in os.listdir(folder):
                match = re.fullmatch(r"instr\.group_(\d+)_(\w+)\.\d\.slice_0", name)
                if match:
                    size = 96 if match[2] == "aic" else 64
                    records[(device, int(match[1]), match[2])] = os.path.getsize(os.path.join(folder, name)) // size
        self.assertEqual(len(records), 150)
        out = os.path.join(self.daemon.base, "instructions")
        summary = json.loads(profctl("--json", "export", dump, "--format", "sqlite", "--out", out).stdout)
        self.assertEqual([p for p in summary["problems"] if "instr" in p["file"]], [])
        with contextlib.closing(sqlite3.connect(summary["outputs"][0]["path"])) as database:
            ask = lambda sql: database.execute(sql).fetchall()
            begin, end = ask("SELECT startTimeNs, endTimeNs FROM SESSION_TIME_INFO")[0]
            rows = ask("SELECT deviceId, coreGroup, value, count(*) FROM PROFD_INSTR_CYCLES JOIN STRING_IDS ON "
                       "id = coreType GROUP BY 1, 2, 3")
            self.assertEqual({tuple(row[:3]): row[3] for row in rows},
                             {core: count - 1 for core, count in records.items()})
            flows = ask("SELECT deviceId, coreGroup, 'aic', count(*) FROM PROFD_INSTR_FLOW GROUP BY 1, 2")
            self.assertEqual({tuple(row[:3]): row[3] for row in flows},
                             {core: count for core, count in records.items() if core[2] == "aic"})
            busiest, first, last = ask("SELECT max(max(vector, scalar, cube, mte1, mte2, mte3)), min(timestampNs), "
                                       "max(timestampNs) FROM PROFD_INSTR_CYCLES")[0]
            self.assertTrue(0 < busiest <= 301, busiest)
            self.assertTrue(begin <= first < last <= end, (begin, first, last, end))

    def test_instructions_at_another_period_are_busy(self):
        first = self.start({"instr_profiling_freq": 300})
        second = self.start({"instr_profiling_freq": 500}, expect=5)
        for device in (0, 1):
            outcome = self.outcomes(second)[("instr", device)]
            self.assertEqual(outcome["result"], "busy")
            self.assertIn(f"session {first['session_id']} profiles instructions every 300 cycles",
                          outcome["detail"])
        self.daemon.ctl("stop", first["session_id"])
        text = self.daemon.ctl("start", "--collector", "instr=50", expect=3)["error"]["message"]
        self.assertIn("instr_profiling_freq", text)

    def test_options_the_chip_never_has_are_one_line(self):
        answer = self.daemon.ctl("start", "--collector", "ddr", expect=3)
        self.assertEqual(answer["error"]["code"], "unimplemented")
        self.assertRegex(answer["error"]["message"],
                         r"nothing could be collected: ddr: not supported on Ascend910B: no channel 7$")

    def test_a_recovered_dump_has_its_options(self):
        session = self.record({"sys_io_sampling_freq": 80})
        self.daemon.restart()
        recovered = self.daemon.show(session["session_id"])
        self.assertEqual(self.effective(recovered), self.effective(session))


class Attached(OptionCase):
    """With a training process that reports marks, and nothing else yet."""

    def setUp(self):
        super().setUp()
        env = {**os.environ, "SLURM_JOB_ID": "4711", "SLURM_PROCID": "0", "ASCEND_DEVICE_ID": "0",
               "PROFD_ATTACH_SOCKET": self.daemon.attach_socket}
        command = RUNNER + [os.path.join(BUILD, "bin", "train_example"), "--steps", "100000",
                            "--step-ms", "20"]
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
        self.addCleanup(self.end_process)
        attached = eventually(lambda: [p for p in self.daemon.processes() if p["pid"] == self.process.pid and p["attached"]],
                              what="the process attaches")
        self.job = attached[0]["job_id"]

    def end_process(self):
        self.process.kill()
        self.process.wait()

    def test_application_options_alone(self):
        """Nothing runs in the node; marks are recorded; what is not reported is noted."""
        session = self.start({"msproftx": "on", "aic_metrics": "Memory"}, "--job", self.job,
                             expect=(0, 5))
        outcomes = self.outcomes(session)
        self.assertEqual(set(outcomes), {("msproftx", None), ("aic_metrics", None)})
        self.assertEqual(outcomes["msproftx", None]["result"], "running")
        self.assertEqual(outcomes["aic_metrics", None]["result"], "waiting")  # for its answer
        self.assertEqual(self.effective(session)["msproftx"]["note"], "")
        final = eventually(lambda: self.show_with_marks(session["session_id"]))
        final = self.daemon.ctl("stop", session["session_id"], expect=(0, 5))["sessions"][0]
        self.assertEqual(final["state"], "done")
        self.assertGreater(final["marks"], 0)
        self.assertEqual(self.outcomes(final)["msproftx", None]["result"], "finished")
        dump = prof_reader.read_valid(final["dump_path"])
        self.assertEqual(dump.host["sample"]["msproftx"], "on")
        self.assertEqual(self.manifest_options(dump)["msproftx"]["note"], "")

    def show_with_marks(self, session_id):
        session = self.daemon.show(session_id)
        return session if session.get("marks", 0) > 0 else None

    def test_the_nodes_and_the_applications(self):
        session = self.start({"msproftx": "on", "sys_io_sampling_freq": 10}, "--job", self.job)
        self.assertEqual(self.outcomes(session)["msproftx", None]["result"], "running")
        self.assertTrue(any(o["collector"] == "nic" for o in session["outcomes"]))


class A1(OptionCase):
    """On Ascend910, which lacks some of it."""

    chip = "910"

    def test_unsupported_is_an_answer_of_its_own(self):
        text = self.refusal({"aic_metrics": "L2Cache", "dvpp_freq": 10}, code="unimplemented")
        self.assertIn("not supported on Ascend910", text)
        text = self.refusal({"instr_profiling_freq": 300}, code="unimplemented")
        self.assertIn("A2", text)
        text = self.refusal({"aic_metrics": "L2Cache", "dvpp_freq": 101}, code="invalid_argument")
        self.assertIn("not supported on Ascend910", text)
        self.assertIn("dvpp_freq", text)

    def test_best_effort_forgives_that_and_nothing_else(self):
        session = self.record({"aic_metrics": "L2Cache", "dvpp_freq": 10}, "--best-effort",
                              expect=(0, 5))
        self.assertEqual(session["state"], "done")
        self.assertTrue(any("L2Cache" in warning for warning in session["warnings"]), session)
        effective = self.effective(session)["aic_metrics"]
        self.assertEqual((effective["value"], effective["asked"]), ("off", "L2Cache"))
        self.assertIn("not supported on Ascend910", effective["note"])
        dump = prof_reader.read(session["dump_path"])
        self.assertEqual(self.manifest_options(dump)["aic_metrics"], effective)
        noted = dump.manifest["warnings"]
        self.assertEqual(len([warning for warning in noted if "L2Cache" in warning]), 1, noted)
        self.assertEqual(dump.devices[0]["sample"]["ai_core_profiling"], "off")
        self.refusal({"aic_metrics": "L2Cache", "dvpp_freq": 101}, "--best-effort",
                     code="invalid_argument")
        # All of it refused is nothing, not everything.
        self.refusal({"instr_profiling_freq": 300}, "--best-effort", code="unimplemented")

    def test_options_of_this_chip(self):
        answer = self.daemon.ctl("options")
        known = {one["key"]: one for one in answer["options"]}
        self.assertEqual(answer["chips"], ["Ascend910"])
        self.assertEqual(len(known), 22)
        self.assertFalse(known["instr_profiling_freq"].get("supported"))
        self.assertIn("A2", known["instr_profiling_freq"]["reason"])
        for key in ("sys_hardware_mem_freq", "sys_io_sampling_freq", "l2", "llc_profiling",
                    "aic_metrics", "host_sys_usage", "storage_limit", "output"):
            self.assertTrue(known[key]["supported"], known[key])
        self.assertEqual(known["sys_interconnection_freq"]["range"], "1..50")

    def test_check_reports_what_start_would(self):
        requested = {"dvpp_freq": 101, "aic_metrics": "L2Cache", "llc_profiling": "write"}
        checked = self.daemon.ctl("check", "--options-json", json.dumps(requested), expect=3)
        refused = self.start(requested, expect=3)["error"]
        problems = checked["problems"]
        self.assertEqual(refused["problems"], problems)
        for problem in problems:
            self.assertIn(f"{problem['field']} = ", refused["message"])
            self.assertIn(f": {problem['text']}", refused["message"])
        self.assertEqual({p["field"]: p["kind"] for p in problems},
                         {"dvpp_freq": "invalid", "aic_metrics": "unsupported",
                          "llc_profiling": "conflict"})
        checked = self.daemon.ctl("check", "--options-json", json.dumps({"dvpp_freq": 80}))
        self.assertEqual(checked["problems"], [])
        started = self.start({"dvpp_freq": 80})
        listed = {one["key"]: one for one in checked["effective_options"]}
        self.assertEqual(listed["dvpp_freq"], self.effective(started)["dvpp_freq"])


class UserRates(UsersCase, OptionCase):
    config = {"limits": {"max_user_hz": 20}}

    def test_administrators_have_no_limit_users_do(self):
        requested = {"sys_io_sampling_freq": 80, "host_sys_usage": "cpu"}
        session = self.start(requested)
        self.assertEqual(self.effective(session)["sys_io_sampling_freq"]["value"], "83.3333")
        alice = {"user": ALICE, "groups": (self.group,)}
        for command in ("start", "check"):
            answer = self.daemon.ctl(command, "--options-json", json.dumps(requested), expect=3, **alice)
            text = json.dumps(answer)
            problems = answer["problems"] if command == "check" else answer["error"]["problems"]
            self.assertEqual([(p["field"], p["value"]) for p in problems], [("sys_io_sampling_freq", "80")])
            self.assertIn("at most 20 Hz", text)
            self.assertIn("limits.max_user_hz", text)
        # What she did not ask for is lowered, and said.
        requested["sys_io_sampling_freq"] = 20
        session = self.daemon.ctl("start", "--options-json", json.dumps(requested), **alice)
        self.assertEqual(self.outcomes(session)["host_cpu", None]["hz"], 20)
        self.assertTrue(any("max_user_hz" in warning for warning in session["warnings"]), session)


if __name__ == "__main__":
    main()
