"""The fault matrix, cell by cell (matrix.py has the table, driver_passes.py and the modules of CELLS what is
done). PROFD_FAULTS=full runs all of it, else what the table calls the short form."""

import ast
import concurrent.futures
import os
import unittest

import cell_common
import crowd_cells
import matrix
import other_cells
import profd_harness
from driver_passes import Pass
from fault_common import FaultCase
from profd_harness import REPO
from text_files import read_text

FULL = os.environ.get("PROFD_FAULTS") == "full"
WORKERS = int(os.environ.get("PROFD_FAULTS_WORKERS", "3"))
CELLS = (other_cells, crowd_cells)  # each notes its functions in cell_common
PASSES = {}
ENDS = {}
RESULTS = {}  # "passed", "failed" or "skipped: why", by the cell's name


def passes():
    wanted = [(call, state) for call in matrix.CALLS for state in matrix.STATES
              if FULL or (call, state) in matrix.CI_PASSES]
    # The longest first.
    return sorted(wanted, key=lambda one: (one[0] not in ("poll", "read"), one))


def own_cells():
    return [cell for cell in matrix.other_cells() if not cell.test and (FULL or cell.ci)]


def outcome_of(cell):
    """What the cell's function ended with; None when all is well."""
    try:
        cell_common.of(cell)(FaultCase(), cell)
    except Exception as error:  # failure, error or skip: the cell's method says which
        return error
    return None


def setUpModule():
    """Every pass once, several at a time; the cells look at what they have seen."""
    profd_harness.raise_file_limit()
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        jobs = [pool.submit(Pass(*key).run) for key in passes()]
        for cell in own_cells():
            if cell.area != "memory":
                ENDS[cell.name] = pool.submit(outcome_of, cell)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # What the simulator keeps while no reader comes in time is in the same process: alone, then.
        for cell in own_cells():
            if cell.area == "memory":
                ENDS[cell.name] = pool.submit(outcome_of, cell)
    for job in jobs:
        PASSES[job.result().call, job.result().state] = job.result()


def tearDownModule():
    """The table with the results, for people."""
    path = os.path.join(profd_harness.BUILD, "reports", "fault-matrix.md")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in matrix.report(RESULTS))


def recorded(name, check):
    """The test method `check`, with its result in RESULTS."""
    def run(self):
        RESULTS[name] = "failed"
        try:
            check(self)
        except unittest.SkipTest as skip:
            RESULTS[name] = f"skipped: {skip}"
            raise
        RESULTS[name] = "passed"

    return run


class Driver(unittest.TestCase):
    """One method for each cell, made below."""


class Others(FaultCase):
    """The cells that have a daemon of their own, made below."""


def driver_method(call, fault, state):
    def run(self):
        seen = PASSES[call, state]
        self.assertEqual(seen.common, [])
        self.assertEqual(seen.seen[fault], [])

    return run


def other_method(name):
    def run(self):
        error = ENDS[name].result()
        if error is not None:
            raise error

    return run


for _call in matrix.CALLS:
    for _state in matrix.STATES:
        for _fault in matrix.faults_of(_call):
            if (_call, _state) in passes():
                _name = matrix.identifier(_call, _fault, _state)
                setattr(Driver, "test_" + _name, recorded(_name, driver_method(_call, _fault, _state)))
for _cell in own_cells():
    setattr(Others, "test_" + _cell.name, recorded(_cell.name, other_method(_cell.name)))


def exists(reference):
    """True if the file has the class and the method."""
    path, _, name = reference.partition(":")
    tree = ast.parse(read_text(REPO, path))
    if not name:
        return any(isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
                   for node in ast.walk(tree))
    group, method = name.split(".")
    return any(isinstance(node, ast.ClassDef) and node.name == group and
               any(isinstance(one, ast.FunctionDef) and one.name == method for one in node.body)
               for node in ast.walk(tree))


class Table(unittest.TestCase):
    def test_every_cell_has_a_test(self):
        for cell in matrix.other_cells():
            with self.subTest(cell.name):
                if cell.test:
                    self.assertTrue(exists(cell.test), f"{cell.test} is not a test")
                else:
                    self.assertTrue(callable(cell_common.of(cell)))

    def test_names_are_unique(self):
        names = [cell.name for cell in matrix.cells()]
        self.assertEqual(len(names), len(set(names)))

    def test_report_has_a_row_for_each_cell(self):
        names = [cell.name for cell in matrix.cells()]
        rows = [line.split(" | ") for line in matrix.report({names[0]: "passed"}) if line.startswith("| ")]
        rows = [row for row in rows if row[0] != "| fault"]
        self.assertEqual(len(rows), len(names))
        self.assertEqual(rows[0][-1], "passed |")
        self.assertNotIn("passed |", [row[-1] for row in rows[1:]])


if __name__ == "__main__":
    profd_harness.main()
