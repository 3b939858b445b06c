"""How the tests are counted: the runner of Python tests, the summary of scripts/test, the list of skips."""

import os
import subprocess
import sys
import textwrap
import unittest
from unittest import mock

import run_tests
from profd_harness import temp_folder
from text_files import read_text, write_text

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIB = os.path.join(ROOT, "scripts", "lib")
sys.path.insert(0, LIB)
import skips  # noqa: E402

HEAD = """
    import unittest, run_tests
"""
MIXED = HEAD + """
    class A(unittest.TestCase):
        def test_good(self):
            pass
        def test_also_good(self):
            for n in range(3):
                with self.subTest(n=n):
                    pass
        def test_bad(self):
            for n in range(3):
                with self.subTest(n=n):
                    self.assertEqual(n, 0, "\\x1b[1mred")
        def test_left_out(self):
            self.skipTest("only root can do this")
    @unittest.skip("no such thing")
    class B(unittest.TestCase):
        def test_it(self):
            pass
    run_tests.main()
"""
SKIPPED = HEAD + """
    class A(unittest.TestCase):
        @classmethod
        def setUpClass(cls):
            raise unittest.SkipTest("no such thing")
        def test_it(self):
            pass
    run_tests.main()
"""
EMPTY = HEAD + """
    run_tests.main()
"""
GTEST = """<testsuites><testsuite name="S">
  <testcase name="Good" classname="S" status="run" result="completed"/>
  <testcase name="Bad" classname="S" status="run" result="completed"><failure message="no"/></testcase>
  <testcase name="Out" classname="S" status="run" result="skipped"><skipped message="/a/b_test.cc:12&#x0A;needs root"/></testcase>
</testsuite></testsuites>"""
GOOD_GTEST = '<testsuites><testsuite><testcase name="G" classname="S" status="run" result="completed"/></testsuite></testsuites>'


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = temp_folder(self)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_text(path, text)
        return path


class Runner(Folder):
    def run_file(self, code):
        """The exit code, and the report's words."""
        path = self.write("test_it.py", textwrap.dedent(code))
        environment = {**os.environ, "PYTHONPATH": os.path.dirname(run_tests.__file__), "PROFD_TEST_NAME": "it",
                       "GTEST_OUTPUT": f"xml:{self.folder}/"}
        done = subprocess.run([sys.executable, "-B", path], env=environment, capture_output=True, text=True,
                              check=False, timeout=60)
        return done.returncode, read_text(self.folder, "it.xml")

    def test_every_case_is_reported_once(self):
        code, report = self.run_file(MIXED)
        self.assertEqual(code, 1)
        self.assertEqual([report.count(part) for part in ("<testcase ", "<failure", "<skipped ")], [5, 1, 2])
        self.assertIn('message="only root can do this"', report)
        self.assertIn("1 != 0 : ?[1mred", report)

    def test_all_skipped_is_not_a_pass(self):
        code, report = self.run_file(SKIPPED)
        self.assertEqual(code, 77)
        self.assertIn('message="no such thing"', report)

    def test_no_tests_is_not_a_pass(self):
        self.assertEqual(self.run_file(EMPTY)[0], 1)


class Summary(Folder):
    def summary(self, steps="", junit="", ci=False, **reports):
        self.write("steps", steps)
        self.write("dev-e2e/junit.xml", f"<testsuite>{junit}</testsuite>")
        for name, text in reports.items():
            self.write(f"dev-e2e/{name}.xml", text)
        environment = {key: value for key, value in os.environ.items() if key != "CI"}
        done = subprocess.run([sys.executable, "-B", os.path.join(LIB, "summarize.py"), self.folder], check=False,
                              env={**environment, **({"CI": "true"} if ci else {})}, capture_output=True, text=True,
                              timeout=60)
        return done.returncode, done.stdout.splitlines()[-1] if done.stdout else done.stderr, done.stdout

    RAN = '<testcase name="{}" time="1" status="run"/>'
    NOT_RUN = '<testcase name="{}" time="0" status="notrun"><skipped message="{}"/><system-out>{}</system-out></testcase>'

    def test_cases_are_counted(self):
        code, last, text = self.summary("dev: e2e tests\tfailed\t3\ncheck-x\tok\t1\n",
                                        self.RAN.format("b") + '<testcase name="a" time="1" status="fail"/>', a=GTEST,
                                        b=GOOD_GTEST)
        self.assertEqual((code, last), (1, "3 passed, 1 failed, 1 skipped"))
        self.assertIn("  skipped: dev-e2e: needs root: a S.Out\n", text)
        self.assertIn("  failed: dev-e2e: a S.Bad\n", text)
        self.assertTrue(text.startswith("\nfailed: dev-e2e: a S.Bad\n  no\n\nsteps\n"), text)

    def test_the_output_of_a_crash_is_shown(self):
        crash = '<testcase name="c" time="1" status="fail"><system-out>first\nSegmentation fault\n</system-out></testcase>'
        text = self.summary(junit=crash)[2]
        self.assertIn("failed: dev-e2e: c\n  first\n  Segmentation fault\n", text)

    def test_nothing_skipped_is_not_mentioned(self):
        self.assertEqual(self.summary(junit=self.RAN.format("b"), b=GOOD_GTEST)[:2], (0, "1 passed, 0 failed"))

    def test_a_script_that_skips_itself(self):
        junit = self.NOT_RUN.format("packages", "SKIP_RETURN_CODE=77", "x\nskipped: no lintian here\n")
        code, last, text = self.summary(junit=junit)
        self.assertEqual((code, last), (0, "0 passed, 0 failed, 1 skipped"))
        self.assertIn("skipped: dev-e2e: no lintian here: packages\n", text)

    def test_a_test_that_could_not_be_started_has_failed(self):
        junit = self.NOT_RUN.format("gone", "Unable to find executable", "")
        self.assertEqual(self.summary(junit=junit)[:2], (1, "0 passed, 1 failed"))

    def test_a_crash_counts(self):
        code, last, _ = self.summary(junit='<testcase name="a" time="1" status="fail"/>')
        self.assertEqual((code, last), (1, "0 passed, 1 failed"))

    def test_no_second_chance(self):
        """What a run of those that failed would leave behind changes nothing."""
        self.write("dev-e2e/alone.xml", f"<testsuite>{self.RAN.format('a')}</testsuite>")
        code, last, _ = self.summary(junit='<testcase name="a" time="1" status="fail"/>')
        self.assertEqual((code, last), (1, "0 passed, 1 failed"))

    def test_in_ci_a_skip_wants_an_explanation(self):
        junit = self.NOT_RUN.format("packages", "SKIP_RETURN_CODE=77", "skipped: no lintian here\n")
        code, last, text = self.summary(junit=junit, ci=True)
        self.assertEqual((code, last), (1, "0 passed, 1 failed"))
        self.assertIn("this machine does not explain it", text)

    def test_a_failed_step_counts_once(self):
        code, last, _ = self.summary("dev: build\tfailed\t3\ndev: e2e tests\tfailed\t3\n",
                                     '<testcase name="a" time="1" status="fail"/>')
        self.assertEqual((code, last), (1, "0 passed, 2 failed"))


class Explained(unittest.TestCase):
    def test_the_machine_has_the_last_word(self):
        rows = [(r"needs root", lambda run: run == "here")]
        self.assertTrue(skips.is_explained("this needs root", "here", rows))
        self.assertFalse(skips.is_explained("this needs root", "elsewhere", rows))
        self.assertFalse(skips.is_explained("no lintian here", "here", rows))

    def test_rights(self):
        for uid, explained in ((0, False), (1000, True)):
            with mock.patch("os.geteuid", return_value=uid):
                self.assertEqual(skips.is_explained("only root can mount", "dev-e2e"), explained)

    def test_sanitizers(self):
        self.assertTrue(skips.is_explained("memory is measured", "asan-san"))
        self.assertFalse(skips.is_explained("memory is measured", "dev-e2e"))

    def test_every_probe_answers(self):
        for pattern, probe in skips.EXPLAINED:
            self.assertIn(probe("dev-e2e"), (True, False), pattern)


if __name__ == "__main__":
    run_tests.main()
