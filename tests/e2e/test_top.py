#!/usr/bin/env python3
"""profctl top in a real terminal (tmux): what it shows, what keys do, and that the terminal is as before
when it has gone, however it went."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from processes import children
from profd_harness import DaemonCase, eventually, main, scaled
from test_jobs import Process

DEVICES = 4
PROMPT = "ready>"


class Terminal:
    """A shell in a tmux of its own: one that leaves the terminal's settings alone (Debian's sh)."""

    def __init__(self, columns=80, rows=24, **env):
        self.base = tempfile.mkdtemp(prefix="profd-top-")
        self.environment = dict(os.environ, LC_ALL="C.UTF-8", PS1=PROMPT, **env)
        for name in ("TMUX", "NO_COLOR"):
            if name not in env:
                self.environment.pop(name, None)
        self.tmux("new-session", "-d", "-x", columns, "-y", rows, "/bin/sh")
        self.type(f"PS1='{PROMPT}'; clear\n")
        eventually(lambda: self.text().startswith(PROMPT), what="the shell's prompt")
        self.settings = self.stty()

    def tmux(self, *arguments):
        return subprocess.run(
            ["tmux", "-u", "-S", os.path.join(self.base, "s"), "-f", "/dev/null",
             *map(str, arguments)],
            env=self.environment, check=True, capture_output=True, text=True, encoding="utf-8",
            timeout=scaled(60)).stdout

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def key(self, name):
        self.tmux("send-keys", name)

    def text(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def lines(self):
        return self.text().splitlines()

    def ask(self, what):
        return self.tmux("display-message", "-p", "#{%s}" % what).strip()

    def until(self, *words, absent=()):
        def shown():
            text = self.text()
            there = all(word in text for word in words)
            return text if there and not any(word in text for word in absent) else None

        try:
            return eventually(shown, what=f"{words} without {absent}")
        except AssertionError:
            sys.stderr.write(self.text())
            raise

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", columns, "-y", rows)

    def stty(self):
        return subprocess.run(["stty", "-a", "-F", self.ask("pane_tty")], check=True,
                              capture_output=True, text=True).stdout.split("\n", 1)[1]

    def child(self):
        """The program that runs in the shell; None when there is none."""
        return next(reversed(children(self.ask("pane_pid"))), None)

    def end(self):
        try:
            self.tmux("kill-server")
        finally:
            shutil.rmtree(self.base, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.end()


@unittest.skipUnless(shutil.which("tmux"), "no tmux here")
class Top(DaemonCase):
    devices = DEVICES

    def top(self, terminal, *arguments, before=""):
        command = self.daemon.ctl_command("top", *arguments, json_output=False)
        terminal.type(before + shlex.join(command) + "\n")
        terminal.until("NPU", "UTIL", "q quit", "%")

    def rows(self, terminal):
        """{id: row} of the devices, in the order of the screen."""
        rows = {}
        for line in terminal.lines()[3:]:
            match = re.match(r"^\s{0,3}(\d+)\s+(?:[a-z]+\s+)?\S*(?:%|-)\s", line)
            if not match:
                break
            rows[int(match[1])] = line
        return rows

    def until_order(self, terminal, *ids):
        eventually(lambda: list(self.rows(terminal)) == list(ids),
                   what=f"{ids}\n{terminal.text()}")

    def expect_restored(self, terminal):
        eventually(lambda: terminal.child() is None, what="profctl ends")
        terminal.until(PROMPT, absent=["q quit"])
        self.assertEqual(terminal.ask("alternate_on"), "0")
        self.assertEqual(terminal.ask("cursor_flag"), "1")
        eventually(lambda: terminal.stty() == terminal.settings,
                   what=f"{terminal.settings}\n{terminal.stty()}")
        # And it is usable: typed text is echoed, wraps, and runs.
        terminal.type("echo still $((40+2)) here\n")
        terminal.until("still 42 here")

    def test_shows_what_a_node_has_at_80x24(self):
        with Terminal() as terminal:
            self.top(terminal)
            self.until_order(terminal, 0, 1, 2, 3)
            text = terminal.until("W ", "C ", "/64.0G")
            header = text.splitlines()[2]
            for column in ("NPU", "UTIL", "HBM", "POWER", "TEMP", "FREQ", "HCCS", "ROCE", "PCIE"):
                self.assertIn(column, header)
            self.assertIn("AI Core utilisation", text)
            self.assertIn("COMMAND", text)
            self.assertIn("█", text)
            self.assertEqual(terminal.ask("alternate_on"), "1")
            self.assertEqual(terminal.ask("cursor_flag"), "0")
            terminal.key("q")
            self.expect_restored(terminal)

    def test_sorts(self):
        with Terminal() as terminal:
            self.top(terminal)
            self.until_order(terminal, 0, 1, 2, 3)
            terminal.key("r")
            self.until_order(terminal, 3, 2, 1, 0)
            terminal.key("m")
            terminal.until("vHBM")

            def most_first():
                used = [float(value) for value in re.findall(r"([\d.]+)/64", terminal.text())]
                return len(used) == DEVICES and used == sorted(used, reverse=True)

            eventually(most_first, what="most memory first")
            terminal.key("Right")
            terminal.until("vPOWER")
            terminal.key("C-c")
            self.expect_restored(terminal)

    def test_pauses_filters_and_resizes(self):
        with Terminal() as terminal:
            self.top(terminal, "--interval", "200ms")
            terminal.key("Space")
            terminal.until("PAUSED")
            before = terminal.text()
            # Time for several refreshes, by the daemon's own samples.
            self.daemon.ctl("top", "--once", "--interval", "1s")
            self.assertEqual(terminal.text(), before)
            terminal.key("Space")
            terminal.until("UTIL", absent=["PAUSED"])
            eventually(lambda: terminal.lines()[0] != before.splitlines()[0], what="time continues")

            terminal.type("/npuü訓")
            terminal.until("/npuü訓_")
            terminal.key("BSpace")
            terminal.key("BSpace")
            terminal.type("2")
            terminal.until("/npu2_")
            terminal.key("Enter")
            self.until_order(terminal, 2)
            terminal.key("Escape")
            self.until_order(terminal, 0, 1, 2, 3)

            terminal.resize(140, 45)
            wide = terminal.until("HISTORY", "JOB", "HBM used")
            self.assertGreater(len(wide.splitlines()[2]), 80)
            terminal.resize(60, 12)
            terminal.until("NPU", "HCCS", absent=["PCIE", "HISTORY"])
            terminal.resize(20, 5)
            terminal.until("at least", absent=["NPU"])
            terminal.resize(80, 24)
            terminal.until("PCIE", "COMMAND")
            terminal.key("h")
            terminal.until("sort by the next")
            terminal.key("q")
            self.expect_restored(terminal)

    def test_keys_that_are_not_characters(self):
        socket = self.daemon.attach_socket
        with contextlib.ExitStack() as stack:
            pids = [stack.enter_context(Process(socket, env={"RANK": str(rank), "TORCHELASTIC_RUN_ID": "run8"})).pid
                    for rank in range(3)]
            terminal = stack.enter_context(Terminal(80, 10))  # one row for processes
            self.top(terminal)
            terminal.until(f" {pids[0]} ")
            for key, gone in (("Down", True), ("Up", False), ("NPage", True), ("PPage", False), ("Down", True),
                              ("Home", False)):
                terminal.key(key)
                terminal.until("COMMAND", absent=[f" {pids[0]} "] if gone else [])
                if not gone:
                    terminal.until(f" {pids[0]} ")
            terminal.key("Tab")
            terminal.until("AI Core utilisation", absent=["COMMAND"])
            terminal.key("Left")
            terminal.until("sort:hbm-temp")
            terminal.key("C-s")  # no key, and nothing that stops the terminal
            terminal.key("C-l")
            terminal.key("C-d")
            self.expect_restored(terminal)

    def test_a_terminal_and_a_locale_that_are_not_installed(self):
        with Terminal() as terminal:
            self.top(terminal, before="TERM=unheard-of LC_ALL=xx_XX.UTF-8 ")
            terminal.key("Right")
            terminal.until("vUTIL", "█")
            terminal.key("q")
            self.expect_restored(terminal)

    def test_a_terminal_that_cannot_show_it(self):
        with Terminal() as terminal:
            terminal.type("TERM=dumb " + shlex.join(self.daemon.ctl_command("top", json_output=False)) + "\n")
            terminal.until("TERM is not set, or dumb; use --once")

    def test_signals_restore_the_terminal(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            with self.subTest(number), Terminal() as terminal:
                self.top(terminal)
                os.kill(terminal.child(), number)
                self.expect_restored(terminal)

    def test_suspends_and_resumes(self):
        with Terminal() as terminal:
            self.top(terminal)
            terminal.key("C-z")
            terminal.until("Stopped", absent=["q quit"])
            self.assertEqual(terminal.ask("cursor_flag"), "1")
            eventually(lambda: terminal.stty() == terminal.settings, what="settings of before")
            terminal.type("fg\n")
            terminal.until("q quit", "UTIL")
            self.until_order(terminal, 0, 1, 2, 3)
            terminal.key("q")
            self.expect_restored(terminal)

    def test_survives_a_restart_of_the_daemon(self):
        with Terminal() as terminal:
            self.top(terminal, "--interval", "200ms")
            self.daemon.kill()
            terminal.until("NOT CONNECTED", "trying again")
            self.until_order(terminal, 0, 1, 2, 3)
            self.daemon.start()
            terminal.until("UTIL", absent=["NOT CONNECTED"])
            self.until_order(terminal, 0, 1, 2, 3)
            terminal.key("q")
            self.expect_restored(terminal)

    def test_a_hanging_daemon_is_reported_and_keys_work_meanwhile(self):
        with Terminal() as terminal:
            self.top(terminal)
            os.kill(self.daemon.pid, signal.SIGSTOP)
            try:
                terminal.until("silent for")
                terminal.key("r")
                self.until_order(terminal, 3, 2, 1, 0)
                terminal.key("Space")
                terminal.until("PAUSED", "silent for")
                terminal.key("Space")
            finally:
                os.kill(self.daemon.pid, signal.SIGCONT)
            terminal.until("UTIL", absent=["silent for", "PAUSED"])
            terminal.key("q")
            self.expect_restored(terminal)

    def test_jobs_and_their_processes(self):
        socket = self.daemon.attach_socket
        first = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "run7"}
        with Process(socket, env=first) as one, Process(
                socket, env={"SLURM_JOB_ID": "4711", "SLURM_PROCID": "9", "SLURM_LOCALID": "3",
                             "SLURM_NTASKS": "16"}) as other, Terminal(120, 40) as terminal:
            self.top(terminal)
            terminal.until(f" {one.pid} ", f" {other.pid} ", "run7", "4711", "attached", "python")
            terminal.type("/run7")
            terminal.key("Enter")
            terminal.until(f" {one.pid} ", absent=[f" {other.pid} "])
            self.until_order(terminal, 1)
            terminal.key("q")
            self.expect_restored(terminal)
            found = self.daemon.ctl("top", "--once", "--job", "4711")
            self.assertEqual([process["pid"] for process in found["processes"]], [other.pid])
            self.assertEqual([device["id"] for device in found["devices"]], [3])

    def test_colours_only_where_they_are_wanted(self):
        coloured = "\x1b[32m"
        with Terminal() as terminal:
            self.top(terminal)
            self.assertIn(coloured, terminal.text("-e"))
        for environment, arguments in (({"NO_COLOR": "1"}, ()), ({}, ("--no-color",))):
            with Terminal(**environment) as terminal:
                self.top(terminal, *arguments)
                self.assertNotRegex(terminal.text("-e"), r"\x1b\[[0-9;]*3[0-7]m")
        with Terminal(LC_CTYPE="C") as terminal:
            self.top(terminal, "--ascii")
            self.assertTrue(terminal.text().isascii())

    def test_sessions_bring_their_channels(self):
        session = self.daemon.ctl("start", "--all", "--no-dump", "--detach", "--label", "seen in top",
                                  "--collector", "pcie", "--collector", "roce",
                                  "--collector", "hccs")["session_id"]
        try:
            with Terminal() as terminal:
                self.top(terminal)
                terminal.until(session, "seen in top", "running")

                def all_there():
                    return all(re.search(r"(\d[\d.]*[KMG]\s*){3}$", row)
                               for row in self.rows(terminal).values())

                eventually(all_there, what=f"HCCS, RoCE, PCIe\n{terminal.text()}")
            found = self.daemon.ctl("top", "--once", "--sort", "pcie")
            self.assertEqual([s["session_id"] for s in found["sessions"]], [session])
        finally:
            self.daemon.ctl("stop", session)

    # Without a terminal -----------------------------------------------------------------------

    def test_once(self):
        text = self.daemon.run("top", "--once", json_output=False)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertRegex(text.stdout, r"(?m)^ *NPU +CHIP +UTIL")
        self.assertEqual(len(re.findall(r"(?m)^ *\d  Ascend910B .*\d%", text.stdout)), DEVICES)
        self.assertNotIn("\x1b", text.stdout)
        found = self.daemon.ctl("top", "--once", "--sort", "power", "--devices", "1-3")
        self.assertTrue(found["connected"])
        power = [device["power_watts"] for device in found["devices"]]
        self.assertEqual(len(power), 3)
        self.assertEqual(power, sorted(power, reverse=True))

    def test_json_is_an_object_per_refresh(self):
        process = self.daemon.spawn("top", "--interval", "200ms")
        try:
            objects = [json.loads(process.stdout.readline()) for _ in range(4)]
            for found in objects:
                self.assertEqual(len(found["devices"]), DEVICES)
                for device in found["devices"]:
                    self.assertIsNotNone(device["utilization_ratio"])
            times = [found["time_ns"] for found in objects]
            self.assertEqual(times, sorted(times))
            # The daemon goes and comes back: the objects say so.
            self.daemon.kill()
            states = (json.loads(line)["connected"] for line in process.stdout)
            self.assertFalse(next(state for state in states if not state))
            self.daemon.start()
            self.assertTrue(next(state for state in states if state))
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=scaled(60))
            self.assertEqual(process.returncode, 0)
        finally:
            process.kill()
            process.communicate()


if __name__ == "__main__":
    main()
