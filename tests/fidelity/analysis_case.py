"""What the tests of profctl analyze share."""

import json
import math
import os
import shutil
import subprocess
import tempfile
import unittest

from comparison import PROFCTL, ROOT, RUNNER

DATA = os.environ.get("PROFD_SHARED_DATA", os.path.join(os.path.dirname(ROOT), "shared", "data"))


def analyze(*arguments, code=0):
    done = subprocess.run([*RUNNER, PROFCTL, "analyze", "--json", *arguments], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: {done.returncode}: {done.stdout} {done.stderr}")
    return json.loads(done.stdout)


class AnalysisCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="profd-analysis-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, *place, text):
        path = os.path.join(self.folder, *place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w" if isinstance(text, str) else "wb", **({"encoding": "utf-8"} if isinstance(text, str) else {})) as file:
            file.write(text)
        return path

    def assert_close(self, got, want, what=None):
        self.assertTrue(math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9), f"{what}: {got}, not {want}")
