#!/usr/bin/env python3
"""The vendor's options on profctl's side: ways to give them, check, options, output, leases."""

import json
import os
import subprocess
import time

import prof_reader
from profd_harness import PROFCTL, RUNNER, DaemonCase, eventually, main, profctl, scaled, temp_folder
from text_files import write_text

HCCS = ("--devices", "0", "--sys-interconnection-freq", "50")
# A fetched dump has no folder without a file.
WHOLE = (*HCCS, "--host-sys-usage", "cpu")


class ProfctlOptions(DaemonCase):
    devices = 2

    def setUp(self):
        self.end_all()
        self.folder = os.path.realpath(temp_folder(self))

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        write_text(path, text)
        return path

    def environment(self, **more):
        return {**os.environ, **more}

    # check and options ----------------------------------------------------------------------

    def test_check(self):
        good = self.file("good.json", '{"task_trace":"on","sys_io_sampling_freq":"10"}')
        answer = self.daemon.ctl("check", "--options-json", good)
        self.assertTrue(answer["ok"])
        bad = self.file("bad.json", '{"l2":true,"gpu":1,"sys_io_sampling_freq":101,"l2":"on"}')
        answer = self.daemon.ctl("check", "--options-json", bad, "--acl", "aiCoreMetricsType=9",
                                 "--dvpp-freq", "fast", expect=3)
        self.assertEqual(len(answer["problems"]), 6, answer)
        for problem in answer["problems"]:
            self.assertTrue(problem["text"])
        from_stdin = self.daemon.run("check", "--options-json", "-", input='{"l2":"on"}')
        self.assertEqual(from_stdin.returncode, 0, from_stdin.stderr)
        self.assertEqual(self.daemon.ctl("list", "--active")["sessions"], [])

    def test_output_that_is_cut_is_no_success(self):
        for command, code in ((("options", "--offline"), 5), (("check", "--offline", "--l2", "sometimes", "--json"), 3)):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([*RUNNER, PROFCTL, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                                      timeout=scaled(60))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("standard output could not be written", done.stderr)

    def test_check_reports_what_start_reports(self):
        """The daemon, the offline check and start answer with the same words."""
        text = '{"llc_profiling":"read","host_sys_usage_freq":5,"task_trace":"on","training_trace":"off"}'
        here = self.daemon.ctl("check", "--options-json", text, expect=3)
        offline = self.daemon.ctl("check", "--options-json", text, "--offline", expect=3)
        refused = self.daemon.ctl("start", "--options-json", text, expect=3)
        self.assertEqual([p["text"] for p in here["problems"]],
                         [p["text"] for p in offline["problems"]])
        self.assertEqual(len(here["problems"]), 3)
        for problem in here["problems"]:
            self.assertIn(problem["text"], refused["error"]["message"])

    def test_check_without_a_daemon(self):
        for more, code in (((), 6), (("--offline",), 0)):
            socket = os.path.join(self.folder, "none.sock")
            profctl("--socket", socket, "check", "--options-json", "{}", *more, expect=code)

    def test_options(self):
        answer = self.daemon.ctl("options")
        self.assertEqual(answer["chips"], ["Ascend910B"])
        by_key = {option["key"]: option for option in answer["options"]}
        self.assertEqual(len(by_key), 22)
        self.assertEqual(by_key["instr_profiling_freq"]["range"], "300..30000")
        offline = self.daemon.ctl("options", "--offline", "--chip", "910B")
        for option in offline["options"]:
            for field in ("type", "range", "default_value", "unit", "effect", "source"):
                self.assertEqual(option[field], by_key[option["key"]][field], option["key"])

    # Ways to give them ----------------------------------------------------------------------

    def test_environment(self):
        session = self.daemon.ctl(
            "start", "--devices", "0", "--options-env", "--duration", "500ms",
            env=self.environment(PROFILING_OPTIONS='{"sys_interconnection_freq":"50"}'))
        values = {one["key"]: one for one in session["effective_options"]}
        self.assertEqual(values["sys_interconnection_freq"]["asked"], "50")
        self.assertIn("hccs", {o["collector"] for o in session["outcomes"]})

    # Output ---------------------------------------------------------------------------------

    def test_start_output_is_where_fetch_puts_it(self):
        session = self.daemon.ctl("start", *WHOLE, "--output", "mine/here", "--duration", "500ms",
                                  cwd=self.folder)
        wanted = os.path.join(self.folder, "mine", "here")
        self.assertEqual(session["metadata"]["output"], wanted)
        self.daemon.until_state(session["session_id"], "done")
        fetched = self.daemon.ctl("fetch", session["session_id"])
        self.assertEqual(os.path.dirname(fetched["path"]), wanted)
        self.assertEqual(prof_reader.read(fetched["path"]).problems, [])

    def test_run_brings_the_dump(self):
        for name, more, env in (
                ("option", ("--output", os.path.join(self.folder, "option")), {}),
                ("json", ("--options-json", json.dumps({"output": "json"})), {}),
                ("work/profiling_data", (),
                 {"ASCEND_WORK_PATH": os.path.join(self.folder, "work")})):
            with self.subTest(name):
                result = self.daemon.run("run", *WHOLE, "--job", "not-known", *more, "--", "sleep",
                                         "0.5", cwd=self.folder, env=self.environment(**env))
                self.assertEqual(result.returncode, 0, result.stderr)
                answer = json.loads(result.stderr.strip().splitlines()[-1])
                wanted = os.path.join(self.folder, name)
                self.assertEqual(os.path.dirname(answer["output"]), wanted)
                self.assertEqual(prof_reader.read(answer["output"]).problems, [])

    # Start and end --------------------------------------------------------------------------

    def shell(self, script):
        """A shell that runs the script and then waits; its first line of output is a session."""
        command = " ".join(f"'{word}'" for word in self.daemon.ctl_command("start", *HCCS))
        shell = subprocess.Popen(["bash", "-c", script.replace("START", command)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(shell.stdout.close)
        self.addCleanup(shell.stdin.close)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        session_id = json.loads(shell.stdout.readline())["session_id"]
        return shell, session_id

    def test_lease_ends_with_the_starter(self):
        """Also where profctl's parent is a shell's copy of itself that ends at once."""
        for script in ("START --lease 1s | tr -d '\\n'; echo; read line",
                       "id=$(START --lease 1s | tr -d '\\n'); echo $id; read line"):
            with self.subTest(script):
                shell, session_id = self.shell(script)
                self.assertEqual(self.daemon.show(session_id)["lease_ms"], 1000)
                began = time.monotonic()
                eventually(lambda: time.monotonic() - began > 3, what="three leases have passed")
                self.assertEqual(self.daemon.show(session_id)["state"], "running")
                shell.kill()
                shell.wait(scaled(30))
                final = self.daemon.until_state(session_id, "done")
                self.assertIn("lease", final["reason"])
                self.assertIn(str(shell.pid), final["reason"])

    def test_detached(self):
        shell, session_id = self.shell("START --detach | tr -d '\\n'; echo; read line")
        self.assertIsNone(self.daemon.show(session_id)["lease_ms"])
        shell.kill()
        shell.wait(scaled(30))
        self.assertEqual(self.daemon.show(session_id)["state"], "running")


if __name__ == "__main__":
    main()
