"""The one way to run a file of Python tests: main() at its end, in place of unittest.main().

Every case goes into a report for scripts/lib/summarize.py, beside GoogleTest's, if GTEST_OUTPUT names their
folder ("xml:FOLDER/"). The exit code is 77 if all tests were skipped: that is not a pass.
"""

import os
import re
import sys
import unittest
import xml.etree.ElementTree as xml

ALL_SKIPPED = 77
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Result(unittest.TextTestResult):
    def __init__(self, *arguments, **how):
        super().__init__(*arguments, **how)
        self.passed = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(test)

    def failed(self):
        """{name: what was printed}, each test once, however many of its parts have failed."""
        found = {}
        for test, text in self.failures + self.errors + [(test, "passed") for test in self.unexpectedSuccesses]:
            found.setdefault(name_of(test), []).append(text)
        return {name: "\n".join(found[name]) for name in sorted(found)}


def name_of(test):
    """Class and method; of a part of a test (subTest) the test's; of setUpClass what unittest calls it."""
    whole = getattr(test, "test_case", test)
    return whole.id().replace("__main__.", "", 1)


def write_report(result, path):
    suite = xml.Element("testsuite")

    def add(name):
        return xml.SubElement(suite, "testcase", classname=name.rpartition(".")[0], name=name.rpartition(".")[2])

    for test in result.passed + [test for test, _ in result.expectedFailures]:
        add(name_of(test))
    for name, text in result.failed().items():
        xml.SubElement(add(name), "failure").text = NOT_IN_XML.sub("?", text)
    for test, reason in result.skipped:
        xml.SubElement(add(name_of(test)), "skipped", message=reason)
    xml.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def exit_code(result):
    if not result.wasSuccessful():
        return 1
    if result.passed or result.expectedFailures:
        return 0
    return ALL_SKIPPED if result.skipped else 1  # no test at all is not a pass either


def main():
    runner = unittest.TextTestRunner(resultclass=Result, verbosity=2)
    result = unittest.main(testRunner=runner, exit=False).result
    kind, _, folder = os.environ.get("GTEST_OUTPUT", "").partition(":")
    name = os.environ.get("PROFD_TEST_NAME")
    if kind == "xml" and folder.endswith("/") and name:
        write_report(result, os.path.join(folder, name + ".xml"))
    sys.exit(exit_code(result))
