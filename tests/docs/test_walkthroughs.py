#!/usr/bin/env python3
"""Every command of docs/walkthroughs, as a reader types it, on the simulated node: what it prints is what stands there.

Commands stand in blocks marked ```console behind `$ `, what they print below them. All of a document run in one shell, in
a folder of their own, with bin/ of the build in PATH and $BUILD, its folder. Of the output each line must come, in this
order; `...` stands for any lines. Numbers, sizes, times and ids may differ; words may not. A command ends with code 0
unless it ends in `# exit N`."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from profd_harness import BUILD, REPO, main, scaled

FOLDER = os.path.join(REPO, "docs", "walkthroughs")
SECONDS = 240  # of one document


def commands(text):
    """[(command, [line of the output, ...]), ...]"""
    found = []
    for block in re.findall(r"^```console\n(.*?)\n```$", text, re.M | re.S):
        for line in block.split("\n"):
            if line.startswith("$ "):
                found.append([line[2:], []])
            elif found and found[-1][0].endswith("\\") and not found[-1][1]:
                found[-1][0] = found[-1][0][:-1] + line.strip()
            else:
                found[-1][1].append(line)
    return [tuple(one) for one in found]


def plain(line):
    """What of a line does not depend on the run."""
    line = re.sub(r"PROF_\d+_\d+_[A-Z]+", "PROF", line)
    line = re.sub(r"\b[0-9a-f]{12}\b", "ID", line)
    line = re.sub(r"(?:/[\w.+-]+)+/", "/", line)
    line = re.sub(r"[-+]?\d[\d.,:]*(?:e[-+]?\d+)?", "#", line)
    line = re.sub(r"# ?(?:[KMGT]i?B|B|ns|us|ms|s|m|h)\b", "#", line)
    line = re.sub(r"[█▉▊▋▌▍▎▏▁▂▃▄▅▆▇░]+", "", line)
    return " ".join(line.split())


def missing(expected, printed):
    """The first expected line that does not come; None: all do."""
    rest = [plain(line) for line in printed]
    for line in expected:
        wanted = plain(line)
        if wanted in ("...", ""):
            continue
        if wanted not in rest:
            return line
        rest = rest[rest.index(wanted) + 1:]
    return None


class Walkthroughs(unittest.TestCase):
    def walk(self, name):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            steps = commands(file.read())
        self.assertGreater(len(steps), 5, "a walkthrough has commands")
        folder = tempfile.mkdtemp(prefix="profd-walk-")
        try:
            self.run_steps(steps, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run_steps(self, steps, folder):
        script = ["cd " + folder]
        for number, (command, _) in enumerate(steps):
            script += [f"echo '@@begin {number}'", command, f"echo \"@@end {number} $?\""]
        # What still runs at the end of a document goes with its shell.
        script.append("kill $(jobs -p) 2>/dev/null; wait 2>/dev/null")
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("PROFD_", "PROFILING_"))}
        environment.update(BUILD=BUILD, REPO=REPO, PATH=os.path.join(BUILD, "bin") + ":" + os.environ["PATH"],
                           LC_ALL="C.UTF-8", COLUMNS="160")
        shell = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env=environment, capture_output=True,
                               text=True, timeout=scaled(SECONDS), check=False, start_new_session=True)
        for number, (command, expected) in enumerate(steps):
            part = re.search(rf"^@@begin {number}\n(.*?)^@@end {number} (\d+)$", shell.stdout, re.M | re.S)
            self.assertIsNotNone(part, f"$ {command}\ndid not run\n{shell.stdout[-3000:]}\n{shell.stderr[-3000:]}")
            code = re.search(r"# exit (\d+)$", command)
            said = f"$ {command}\n{part[1]}\n--- stderr of all commands\n{shell.stderr[-3000:]}"
            self.assertEqual(int(part[2]), int(code[1]) if code else 0, said)
            absent = missing(expected, part[1].split("\n"))
            self.assertIsNone(absent, f"{absent!r} is not in the output of\n{said}")


def test_of(name):
    return lambda self: self.walk(name)


for document in sorted(os.listdir(FOLDER)):
    if document.endswith(".md") and document != "README.md":
        setattr(Walkthroughs, "test_" + re.sub(r"\W", "_", document[:-3]), test_of(document))


class Rules(unittest.TestCase):
    def test_what_may_differ(self):
        self.assertEqual(plain("session 0acebb5ed79a  done in 3.4 s"), plain("session 1acebb5ed79b  done in 12 ms"))
        self.assertNotEqual(plain("session 0acebb5ed79a  done"), plain("session 0acebb5ed79a  failed"))

    def test_a_line_that_does_not_come_is_found(self):
        self.assertIsNone(missing(["a 1", "...", "b"], ["a 2", "x", "b"]))
        self.assertEqual(missing(["b", "a"], ["a", "b"]), "a")
        self.assertEqual(commands("```console\n$ one \\\n  two\nout\n$ three\n```"),
                         [("one two", ["out"]), ("three", [])])


if __name__ == "__main__":
    main()
