"""What sessions may record from inside a Python process, as the script and the environment allow it."""

import contextlib
import tempfile
import threading
import unittest

import profd_harness
from attach_server import AttachServer
from python_package import python

SCRIPT = """
    import time, profd
    {}
    profd.attach()
    while profd.attach(0):
        time.sleep(0.01)
"""


class Allowed(unittest.TestCase):
    def state(self, before, env=None):
        """The collector's answer to a session's request."""
        with contextlib.ExitStack() as stack:
            server = AttachServer(stack.enter_context(tempfile.TemporaryDirectory()))
            results = []
            thread = threading.Thread(target=lambda: results.append(python(
                SCRIPT.format(before), env={"PROFD_ATTACH_SOCKET": server.path, **(env or {})})))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.close)
            server.welcome()
            server.session("running", collect={"kinds": ["kernel"], "flush_ms": 20})
            return server.receive_until("collector")

    def test_script(self):
        report = self.state("profd.collect_allow()")
        self.assertEqual((report["state"], "profd_collect_allow" in report["detail"]), ("off", True), report)
        report = self.state('profd.collect_allow("mspti")')
        self.assertEqual(report["state"], "waiting", report)

    def test_environment(self):
        report = self.state('profd.collect_allow("all")', env={"PROFD_COLLECT": "off"})
        self.assertEqual((report["state"], report["detail"]), ("off", "PROFD_COLLECT=off"))

    def test_names(self):
        result = python("""
            import profd
            try:
                profd.collect_allow("msprof")
            except ValueError as error:
                print(error)
            profd.collect_allow("mspti", "aclprof")
        """, env={"PROFD_DISABLE": "1"})
        self.assertIn("one of mspti, aclprof, all", result.stdout + result.stderr)

    def test_without_a_library(self):
        result = python("""
            import profd
            profd.collect_allow("all")
            print(profd.range_start("r"))
        """, env={"PROFD_LIBRARY": "/nonexistent/libprofd.so.0"})
        self.assertEqual((result.returncode, result.stdout.strip()), (0, "0"), result.stderr)


if __name__ == "__main__":
    profd_harness.main()
