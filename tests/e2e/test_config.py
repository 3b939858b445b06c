#!/usr/bin/env python3
"""Configuration, command line, reload; and a node that has no NPU driver at all."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest

import prof_reader
from profd_harness import PROFCTL, PROFD, RUNNER, Daemon, eventually, main, scaled, temp_folder
from text_files import read_text, write_text


def profd(*arguments):
    return subprocess.run(RUNNER + [PROFD, *arguments], capture_output=True, text=True,
                          check=False, timeout=scaled(60))


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(temp_folder(self), "profd.toml")

    def check(self, text, *arguments):
        write_text(self.path, text)
        return profd("--config", self.path, "--check-config", *arguments)

    def test_version(self):
        for binary in (PROFD, PROFCTL):
            answer = subprocess.run(RUNNER + [binary, "--version"], capture_output=True, text=True,
                                    check=False, timeout=scaled(60))
            self.assertEqual(answer.returncode, 0)
            self.assertRegex(answer.stdout, r"^prof(d|ctl) \d+\.\d+\.\d+")

    def test_usage(self):
        for arguments in (["--nosuch"], ["--config"], ["--config", "/nonexistent/profd.toml"],
                          ["--socket", "relative", "--check-config"]):
            answer = profd(*arguments)
            self.assertEqual(answer.returncode, 2, (arguments, answer.stdout, answer.stderr))
            self.assertTrue(answer.stderr)

    def test_check_config_finds_everything(self):
        answer = self.check('[daemon]\nlog_level = "loud"\nmax_connections = 0\ntypo = 1\n'
                            '[driver]\nstuck_after_ms = "soon"\nhal_library = "relative.so"\n'
                            '[dump]\nroot = ""\nmin_free_mb = -1\n[nonsense]\na = 1\n'
                            '[metrics]\nlisten = "nowhere"\n[limits]\nmax_sessions = 99999\n')
        self.assertEqual(answer.returncode, 2)
        for part in ("log_level", "max_connections", "daemon.typo", "stuck_after_ms",
                     "hal_library", "dump.root", "min_free_mb", "nonsense", "metrics.listen",
                     "max_sessions"):
            self.assertIn(part, answer.stderr)
        self.assertRegex(answer.stderr, r"profd\.toml:\d+: unknown key daemon\.typo")
        self.assertRegex(answer.stderr, r"profd\.toml:3: daemon\.max_connections = 0 must be")
        self.assertRegex(answer.stderr, r"profd\.toml:14: metrics\.listen = ")

    def test_check_config_names_the_line_once(self):
        answer = self.check('[metrics]\nweb_config = "relative.yml"\ndisable = ["nope"]\n'
                            '[daemon]\nsocket = "/tmp/p.sock"\n', "--socket", "relative")
        self.assertEqual(answer.returncode, 2)
        lines = [line.removeprefix(self.path) for line in answer.stderr.splitlines()]
        self.assertEqual(len(lines), 3, answer.stderr)
        self.assertIn(':2: metrics.web_config = "relative.yml": must be an absolute path', lines)
        self.assertIn('daemon.socket = "relative" must be an absolute path', lines)
        self.assertTrue(any(line.startswith(":3: metrics.disable: unknown") for line in lines), lines)

    def test_check_config_knows_addresses_that_cannot_be_served(self):
        """Also with keys of tls while tls is off."""
        for listen in ("127.0.0.1:99999", "300.0.0.1:9464"):
            answer = self.check(f'[metrics]\nlisten = "{listen}"\n[tls]\nusers = ["alice"]\n')
            self.assertEqual(answer.returncode, 2)
            self.assertIn(f'metrics.listen = "{listen}"', answer.stderr)
            self.assertIn('"127.0.0.1:9464"', answer.stderr)
            self.assertIn('tls.users: "alice" must be CN=USER', answer.stderr)
        answer = self.check('[tls]\nlisten = "300.0.0.1:9465"\nusers = ["alice"]\n')
        self.assertEqual(answer.stderr.count("tls.listen"), 1, answer.stderr)
        self.assertEqual(answer.stderr.count("tls.users"), 1, answer.stderr)

    def test_check_config_warns_of_accounts_that_are_not_there(self):
        """They may be made later: no reason to refuse the file."""
        answer = self.check('[daemon]\nsocket_group = "no-such-1"\nadmin_group = "no-such-2"\n'
                            '[archive]\nto = "clickhouse://db/profiles"\nuser = "no-such-3"\n')
        self.assertEqual((answer.returncode, answer.stdout), (0, "configuration ok\n"))
        for line, key, name in ((2, "daemon.socket_group", "group no-such-1"), (3, "daemon.admin_group", "group no-such-2"),
                                (6, "archive.user", "user no-such-3")):
            self.assertIn(f"warning: {self.path}:{line}: {key}: no {name}: ", answer.stderr)

    def test_check_config_refuses_what_fails_at_the_start(self):
        for text in ('[archive]\nto = "clickhouse://db:99999/profiles"\n', '[daemon]\nsocket = "/run/profd/"\n', '[dump]\nroot = "/"\n'):
            answer = self.check(text)
            self.assertEqual(answer.returncode, 2, text)
            self.assertIn(f"{self.path}:2: ", answer.stderr)

    def test_check_config_of_good_and_broken_files(self):
        self.assertEqual(self.check("").returncode, 0)
        self.assertEqual(self.check("[limits]\nmax_sessions = 7\n").returncode, 0)
        for text in ("[daemon\n", "a = \n", "\0\1\2", "[daemon]\nsocket = 'x'\nsocket = 'y'\n"):
            answer = self.check(text)
            self.assertEqual(answer.returncode, 2, text)
            self.assertIn("profd.toml", answer.stderr)

    def test_default_config_is_valid(self):
        answer = profd("--print-default-config")
        self.assertEqual(answer.returncode, 0)
        self.assertEqual(self.check(answer.stdout).returncode, 0)
        # Also with every key switched on.
        active = "\n".join(line[1:] if line.startswith("#") and " = " in line and
                           line[1:2] != " " else line for line in answer.stdout.splitlines())
        self.assertGreater(active.count(" = "), 20)
        checked = self.check(active)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_log_is_on_stderr(self):
        """Also in a terminal that a service has started, which inherits that service's variable."""
        with Daemon("devices = 1\n", env={"JOURNAL_STREAM": "8:1234567"}) as daemon:
            self.assertIn(" info serving ", daemon.log())

    def test_simulator_is_never_found_by_accident(self):
        """Only --simulate brings it in; the status says so in any case."""
        with Daemon("devices = 1\n") as daemon:
            self.assertTrue(daemon.node["simulated"])
            self.assertEqual(daemon.metric("profd_simulated"), 1)


class Reload(unittest.TestCase):
    def test_sighup(self):
        with Daemon("devices = 1\n", config={"limits": {"max_sessions": 1}}) as daemon:
            first = daemon.ctl("start", "--collector", "hccs")
            daemon.ctl("start", "--collector", "hccs", expect=3)
            daemon.write_config({"limits": {"max_sessions": 3}, "daemon": {"log_level": "debug"}})
            daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda: daemon.ctl("status")["max_sessions"] == 3)
            second = daemon.ctl("start", "--collector", "hccs")
            # A broken file changes nothing and is reported.
            daemon.write_config({"limits": {"max_sessions": 0}, "driver": {"buffer_mb": 0}})
            daemon.process.send_signal(signal.SIGHUP)
            # With a line for each problem.
            for key in ("limits.max_sessions", "driver.buffer_mb"):
                eventually(lambda key=key: re.search(rf'not reloaded problem="[^"]*profd.toml:\d+: {key} = 0 must be [^"\\]*"$', daemon.log(), re.M))
            self.assertEqual(daemon.ctl("status")["max_sessions"], 3)
            # What would wait for a writer is refused like any other broken file.
            text = read_text(daemon.config_path)
            os.unlink(daemon.config_path)
            os.mkfifo(daemon.config_path)
            daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda: "is not a regular file" in daemon.log())
            os.unlink(daemon.config_path)
            write_text(daemon.config_path, text)
            # Keys that need a restart are named.
            daemon.write_config({"limits": {"max_sessions": 4}, "driver": {"buffer_mb": 77}})
            daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda: daemon.ctl("status")["max_sessions"] == 4)
            self.assertIn("driver.buffer_mb", daemon.log())
            # The sessions never noticed.
            for session in (first, second):
                self.assertEqual(daemon.show(session["session_id"])["state"], "running")
                daemon.ctl("stop", session["session_id"])

    def test_many_sighups(self):
        with Daemon("devices = 1\n") as daemon:
            session = daemon.ctl("start", "--devices", "0", "--sys-interconnection-freq", "50")
            for _ in range(50):
                daemon.process.send_signal(signal.SIGHUP)
            daemon.until_records(session["session_id"], 50)
            final = daemon.ctl("stop", session["session_id"])["sessions"][0]
            dump = prof_reader.read_valid(final["dump_path"])
            self.assertEqual(prof_reader.time_gaps(dump[(0, "hccs.data")].timestamps(), 20_000_000), [])


class ServiceManager(unittest.TestCase):
    def test_time_to_end_sessions(self):
        """More than the unit's TimeoutStopSec, where sessions may take more."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            path = os.path.join(temp_folder(self), "notify")
            manager.bind(path)
            manager.settimeout(scaled(60))
            with Daemon("devices = 1\n", config={"limits": {"stop_deadline_s": 120}}, env={"NOTIFY_SOCKET": path}) as daemon:
                self.assertIn(b"READY=1", manager.recv(4096))
                self.assertEqual(daemon.stop(), 0)
            last = manager.recv(4096).decode()
        self.assertTrue(last.startswith("STOPPING=1\n"), last)
        self.assertGreater(int(re.search(r"^EXTEND_TIMEOUT_USEC=(\d+)$", last, re.M)[1]), 120_000_000)


class Socket(unittest.TestCase):
    def test_second_daemon(self):
        with Daemon("devices = 1\n") as daemon:
            other = Daemon("devices = 1\n")
            self.addCleanup(other.dispose)
            other.socket = daemon.socket
            self.assertEqual(other.start_in_vain(), 1)
            self.assertIn("another profd", other.log())
            self.assertEqual(daemon.run("status").returncode, 0)

    def test_stale_socket(self):
        daemon = Daemon("devices = 1\n")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stale:
            stale.bind(daemon.socket)
        with daemon:
            self.assertEqual(daemon.run("status").returncode, 0)

    def test_files_that_are_not_sockets_stay(self):
        daemon = Daemon("devices = 1\n")
        self.addCleanup(daemon.dispose)
        write_text(daemon.socket, "precious")
        self.assertEqual(daemon.start_in_vain(), 1)
        self.assertEqual(read_text(daemon.socket), "precious")

    def test_group_that_does_not_exist(self):
        config = {"daemon": {"socket_group": "no-such-group-here", "admin_group": "nor-this-one"}}
        with Daemon("devices = 1\n", config=config) as daemon:
            self.assertEqual(os.stat(daemon.socket).st_mode & 0o777, 0o600)
            for key, name in (("daemon.socket_group", "no-such-group-here"), ("daemon.admin_group", "nor-this-one")):
                self.assertEqual(daemon.log().count(f"{key}: no group {name}"), 1)
            daemon.write_config({"daemon": {"admin_group": "another-one"}})
            daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda: "daemon.admin_group: no group another-one" in daemon.log())


class NoDriver(unittest.TestCase):
    ARGUMENTS = ("--hal-library", "/nonexistent/libascend_hal.so",
                 "--dcmi-library", "/nonexistent/libdcmi.so")

    def test_host_only(self):
        with Daemon(simulate=False, args=self.ARGUMENTS) as daemon:
            driver = daemon.node["driver"]
            self.assertFalse(daemon.node["simulated"])
            self.assertEqual(daemon.node["devices"], [])
            self.assertIn("/nonexistent/libascend_hal.so", driver["hal_error"])
            self.assertIn("/nonexistent/libdcmi.so", driver["dcmi_error"])
            collectors = {c["name"]: c for c in daemon.ctl("collectors")["collectors"]}
            self.assertTrue(collectors["host_cpu"]["available"])
            for name in ("hbm", "hccs", "npu_state"):
                self.assertFalse(collectors[name]["available"], name)
                self.assertTrue(collectors[name]["reason"], name)
            self.assertIn("/nonexistent/libascend_hal.so", collectors["npu_optics"]["reason"])
            # No list of faults is not the same as none.
            faults = daemon.run("faults", json_output=False)
            self.assertEqual((faults.returncode, faults.stdout), (9, ""))
            self.assertIn("/nonexistent/libascend_hal.so", faults.stderr)
            session = daemon.record("--host-sys-usage", "cpu,mem", seconds=0.5)
            self.assertEqual(session["state"], "done")
            dump = prof_reader.read_valid(session["dump_path"])
            self.assertEqual(dump.devices, {})
            # What cannot be had is refused or said, never silently nothing.
            answer = daemon.run("start", "--sys-hardware-mem-freq", "50")
            self.assertIn(answer.returncode, (3, 5))
            self.assertTrue(answer.stdout + answer.stderr)
            named = ("--collector", "hbm=10", "--collector", "host_cpu=10")
            answer = daemon.run("start", "--all", "--require-all", *named)
            self.assertEqual(answer.returncode, 3, answer.stdout)
            self.assertIn("hbm: no devices on this node", answer.stdout + answer.stderr)
            outcomes = {o["collector"]: o["result"] for o in daemon.ctl("start", "--all", *named, expect=5)["outcomes"]}
            self.assertEqual(outcomes, {"hbm": "unsupported", "host_cpu": "running"})
            daemon.run("stop", "--all-mine")
            self.assertIsNone(daemon.metric("atlas_npu_power_watts"))
            self.assertIsNotNone(daemon.metric("atlas_host_cpu_seconds_total"))

    def test_dump_root_that_cannot_be_used(self):
        daemon = Daemon("devices = 1\n")
        self.addCleanup(daemon.dispose)
        daemon.dump_root = os.path.join(daemon.base, "log", "below-a-file")
        self.assertEqual(daemon.start_in_vain(), 1)
        self.assertIn("dump", daemon.log())


class Simulator(unittest.TestCase):
    def test_a_scenario_that_is_not_there(self):
        with tempfile.NamedTemporaryFile(suffix=".toml") as empty:
            result = profd("--config", empty.name, "--simulate", "/nonexistent/x.toml",
                           "--check-config")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("/nonexistent/x.toml", result.stderr + result.stdout)

    def test_a_scenario_that_is_wrong(self):
        d = Daemon("chp = \"910B\"\n")
        self.addCleanup(d.dispose)
        self.assertNotEqual(d.start_in_vain(), 0)
        self.assertIn("unknown key 'chp'", d.log())
        self.assertIn("no devices", d.log())


if __name__ == "__main__":
    main()
