#!/usr/bin/env python3
"""The contract on the wire, by a client of its own (rpc_client.cc) against a running daemon."""

import contextlib
import os
import subprocess
import unittest

from profd_harness import BUILD, RUNNER, DaemonCase, eventually, main, scaled

CLIENT = os.path.join(BUILD, "tests", "e2e_rpc_client")


class Rpc(DaemonCase):
    devices = 2

    @unittest.skipUnless(os.path.exists(CLIENT), "e2e_rpc_client is not built")
    def test_client(self):
        files = self.daemon.fd_count()
        result = subprocess.run(RUNNER + [CLIENT, "--gtest_brief=1"], capture_output=True,
                                text=True, check=False, timeout=scaled(120),
                                env=dict(os.environ, PROFD_SOCKET=self.daemon.socket))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("PASSED", result.stdout)
        # A start that was given up may still be on its way in the daemon; its session is ended like any other.
        eventually(self.no_session_is_left, what="no session is left")
        # Nothing of it stays.
        eventually(lambda: self.daemon.metric("profd_rpc_connections") == 0)
        eventually(lambda: self.daemon.metric("profd_stream_subscribers") == 0)
        eventually(lambda: self.daemon.fd_count() <= files + 5)

    def no_session_is_left(self):
        self.end_all()
        return self.daemon.metric("profd_rpc_held_calls", call="unary") == 0 and not self.daemon.ctl("list", "--active")["sessions"]

    def test_grpc_rests_without_connections(self):
        """Its threads poll whether there is anything to do or not; the next call starts them again."""
        def pollers():
            tasks = f"/proc/{self.daemon.process.pid}/task"
            names = []
            for task in os.listdir(tasks):
                with contextlib.suppress(FileNotFoundError), open(f"{tasks}/{task}/comm", encoding="ascii") as name:
                    names.append(name.read().strip())
            self.assertIn("profd-control", names)
            return [name for name in names if name.startswith("nexting")]
        session = self.daemon.ctl("start", "--collector", "hccs=50", "--no-dump", "--detach")["session_id"]
        eventually(lambda: not pollers(), what="gRPC rests while a session runs")
        self.assertEqual(self.daemon.ctl("status")["active_sessions"], 1)
        self.daemon.ctl("stop", session)


if __name__ == "__main__":
    main()
