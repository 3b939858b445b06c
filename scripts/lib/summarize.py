"""usage: summarize.py REPORT_DIR

Prints what scripts/test ran: what the failed tests printed, steps with their time, then tests by suite, then
every skipped test with its reason. Suites are GoogleTest executables and files of Python tests with their cases, and ctest's other tests
as they are. A step that failed without a failed test to show for it (a build, a check) counts as one failure.
With CI in the environment, a skip that the machine does not explain (skips.py) is a failure.
The last line is "N passed, M failed", with ", K skipped" if there were any; exit code 1 if M is not 0.
"""

import dataclasses
import os
import re
import sys
import xml.etree.ElementTree as xml

import skips

OUTPUT_LINES = 40  # of a failed test


@dataclasses.dataclass
class Suite:
    run: str
    name: str
    seconds: float
    passed: int = 0
    failed: list = dataclasses.field(default_factory=list)   # names
    output: list = dataclasses.field(default_factory=list)   # (name, what it printed)
    skipped: list = dataclasses.field(default_factory=list)  # (name, reason)


def reason_of(message):
    """GoogleTest puts file:line above the test's message."""
    lines = [line.strip() for line in (message or "").splitlines()]
    lines = [line for line in lines if line and not re.fullmatch(r"\S+:\d+", line)]
    return " ".join(lines) or "no reason given"


def read_cases(path, suite):
    """Adds the cases of a GoogleTest report, or one of tests/harness/run_tests.py; False if it is cut off."""
    try:
        root = xml.parse(path).getroot()
    except (OSError, xml.ParseError):
        return False
    for case in root.iter("testcase"):
        name, skipped = f"{case.get('classname')}.{case.get('name')}", case.find("skipped")
        failure = case.find("failure")
        if failure is not None:
            suite.failed.append(name)
            suite.output.append((name, failure.text or failure.get("message") or ""))
        elif skipped is not None or case.get("result") in ("skipped", "suppressed"):
            suite.skipped.append((name, reason_of(skipped.get("message") if skipped is not None else "")))
        else:
            suite.passed += 1
    return True


def skipped_by_itself(case):
    """The reason why a ctest test was skipped; None if it did not run for another reason."""
    skipped = case.find("skipped")
    if skipped is None or not (skipped.get("message") or "").startswith("SKIP_"):
        return None
    output = case.findtext("system-out") or ""
    found = re.findall(r"^skipped: (.*)$", output, re.M)
    return found[-1] if found else reason_of(output)


def ctest_suites(report, run):
    """The suites of one ctest run."""
    folder = os.path.join(report, run)
    try:
        root = xml.parse(os.path.join(folder, "junit.xml")).getroot()
    except (OSError, xml.ParseError):
        return []
    suites = []
    for case in root.iter("testcase"):
        suite = Suite(run, case.get("name"), float(case.get("time") or 0))
        suites.append(suite)
        has_cases = read_cases(os.path.join(folder, suite.name + ".xml"), suite)
        if case.get("status") == "run":
            if not has_cases:
                suite.passed = 1
            continue
        reason = skipped_by_itself(case)
        if reason is None:
            # One that crashed left no report, or one without the case it crashed in; one that could not be
            # started left nothing.
            if not suite.failed:
                suite.output.append(("", case.findtext("system-out") or ""))
            suite.failed = suite.failed or [""]
        elif not has_cases:
            suite.skipped.append(("", reason))
    return suites


def read_lines(report, name):
    try:
        with open(os.path.join(report, name), encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file]
    except FileNotFoundError:
        return []


def failed_steps(steps, failed_runs):
    """Steps that failed, without those of tests whose failures are known by name."""
    for name, result, _ in steps:
        if result != "failed":
            continue
        run = name[:name.index(" tests")].replace(": ", "-") if " tests" in name else ""  # "dev: unit tests"
        if run not in failed_runs:
            yield name


def by_reason(suites):
    """{(reason, run): names of the tests that were skipped for it}"""
    found = {}
    for suite in suites:
        for name, reason in suite.skipped:
            found.setdefault((reason, suite.run), []).append(f"{suite.name} {name}".rstrip())
    return found


def main(report, in_ci):
    steps = [line.split("\t") for line in read_lines(report, "steps")]
    runs = [name for name in sorted(os.listdir(report)) if os.path.isdir(os.path.join(report, name))]
    suites = [suite for run in runs for suite in ctest_suites(report, run)]
    for suite in suites:
        for name, output in suite.output:
            print(f"\nfailed: {suite.run}: {suite.name} {name}".rstrip())
            for line in output.strip().splitlines()[-OUTPUT_LINES:]:
                print(f"  {line}")
    print("\nsteps")
    for name, result, seconds in steps:
        print(f"  {result:8} {int(seconds):5d} s  {name}")
    print("\ntests                                    passed failed skipped      s")
    for suite in suites:
        print(f"  {suite.run + ': ' + suite.name:38} {suite.passed:6d} {len(suite.failed):6d} "
              f"{len(suite.skipped):7d} {suite.seconds:6.1f}")
    failures = [f"{suite.run}: {suite.name} {' '.join(suite.failed)}".rstrip() for suite in suites if suite.failed]
    failed = sum(len(suite.failed) for suite in suites)
    other = list(failed_steps(steps, {suite.run for suite in suites if suite.failed}))
    passed = sum(suite.passed for suite in suites)
    passed += sum(result == "ok" and name.startswith("check-") for name, result, _ in steps)
    failed += len(other)
    skipped = sum(len(suite.skipped) for suite in suites)
    print(f"\nsummary: {sum(int(seconds) for _, _, seconds in steps)} s")
    for note in read_lines(report, "notes"):
        print(f"  {note}")
    for name, result, _ in steps:
        if result == "left-out":
            print(f"  left out for want of time: {name}")
        elif result == "full-only":
            print(f"  left out, --full runs it: {name}")
        elif result == "apart":
            print(f"  left out, a command of its own: {name}")
    for (reason, run), names in by_reason(suites).items():
        fails = in_ci and not skips.is_explained(reason, run)
        print(f"  skipped: {run}: {reason}: {', '.join(names)}")
        if fails:
            print("    this machine does not explain it (scripts/lib/skips.py), so it counts as failed")
            failed += len(names)
            skipped -= len(names)
    for name in failures + other:
        print(f"  failed: {name}")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], bool(os.environ.get("CI"))))
