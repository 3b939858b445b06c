"""usage: summarize.py REPORT_DIR

Prints what scripts/test ran: steps with their time, then tests by suite. Suites are GoogleTest
executables with their cases, and ctest's other tests as they are. A test that failed and then passed
alone counts as passed and is listed as unsteady. A step that failed without a failed test to show for
it (a build, a check) counts as one failure. The last line is
"N passed, M failed"; exit code 1 if M is not 0.
"""

import os
import sys
import xml.etree.ElementTree as xml


def gtest_cases(path):
    """(passed, failed, skipped, names of failed) of one GoogleTest report; None if it is cut off."""
    try:
        root = xml.parse(path).getroot()
    except (OSError, xml.ParseError):
        return None
    passed = failed = skipped = 0
    names = []
    for case in root.iter("testcase"):
        if case.find("failure") is not None:
            failed += 1
            names.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.get("result") in ("skipped", "suppressed") or case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped, names


def passed_alone(folder):
    """Names of the tests that passed when those that had failed were run again, one at a time."""
    try:
        root = xml.parse(os.path.join(folder, "alone.xml")).getroot()
    except (OSError, xml.ParseError):
        return set()
    return {case.get("name") for case in root.iter("testcase") if case.get("status") == "run"}


def ctest_suites(folder):
    """[(name, passed, failed, skipped, seconds, details)] of one ctest run."""
    try:
        root = xml.parse(os.path.join(folder, "junit.xml")).getroot()
    except (OSError, xml.ParseError):
        return []
    suites = []
    alone = passed_alone(folder)
    for case in root.iter("testcase"):
        name, seconds, status = case.get("name"), float(case.get("time") or 0), case.get("status")
        cases = gtest_cases(os.path.join(folder, name + ".xml"))
        if status != "run" and name in alone:
            suites.append((name, 1, 0, 0, seconds, ["unsteady"]))
        elif status == "run":
            counts = cases[:3] if cases else (1, 0, 0)
            suites.append((name, *counts, seconds, []))
        elif status in ("notrun", "disabled") and case.find("skipped") is not None:
            suites.append((name, 0, 0, 1, seconds, []))
        else:
            # One that crashed left no report, or one without the case it crashed in.
            passed, failed, skipped, names = cases or (0, 0, 0, [])
            suites.append((name, passed, max(failed, 1), skipped, seconds, names))
    return suites


def main(report):
    total_passed = total_failed = 0
    failures = []
    print("\nsteps")
    with open(os.path.join(report, "steps"), encoding="utf-8") as file:
        steps = [line.rstrip("\n").split("\t") for line in file]
    for name, result, seconds in steps:
        print(f"  {result:8} {int(seconds):5d} s  {name}")
    print("\ntests                                    passed failed skipped      s")
    failed_runs, mended_runs = set(), set()
    unsteady = []
    for run in sorted(os.listdir(report)):
        folder = os.path.join(report, run)
        if not os.path.isdir(folder):
            continue
        for name, passed, failed, skipped, seconds, details in ctest_suites(folder):
            print(f"  {run + ': ' + name:38} {passed:6d} {failed:6d} {skipped:7d} {seconds:6.1f}")
            total_passed += passed
            total_failed += failed
            if details == ["unsteady"]:
                unsteady.append(f"{run}: {name}")
                mended_runs.add(run)
            if failed:
                failed_runs.add(run)
                failures.append(f"{run}: {name} {' '.join(details)}".rstrip())
    for name, result, _ in steps:
        if " tests" in name and ": build" not in name:  # "dev: unit tests" is the folder dev-unit
            run = name[:name.index(" tests")].replace(": ", "-")
            if result == "failed" and run not in failed_runs | mended_runs:
                total_failed += 1
                failures.append(name)
        elif result == "failed":
            total_failed += 1
            failures.append(name)
        elif result == "ok" and name.startswith("check-"):
            total_passed += 1
    try:
        with open(os.path.join(report, "notes"), encoding="utf-8") as file:
            notes = [line.rstrip("\n") for line in file]
    except FileNotFoundError:
        notes = []
    left_out = [name for name, result, _ in steps if result == "left-out"]
    print(f"\nsummary: {sum(int(s) for _, _, s in steps)} s")
    for note in notes:
        print(f"  {note}")
    for name in left_out:
        print(f"  left out for want of time: {name}")
    for name in unsteady:
        print(f"  unsteady: {name} failed in company and passed alone")
    for name in failures:
        print(f"  failed: {name}")
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
