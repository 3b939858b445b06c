"""What the tests of profctl analyze share."""

import json
import math
import os
import unittest

from profd_harness import profctl, temp_folder


def analyze(*arguments, code=0):
    return json.loads(profctl("analyze", "--json", *arguments, expect=code).stdout)


class AnalysisCase(unittest.TestCase):
    def setUp(self):
        self.folder = temp_folder(self)

    def write(self, *place, text):
        path = os.path.join(self.folder, *place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w" if isinstance(text, str) else "wb", **({"encoding": "utf-8"} if isinstance(text, str) else {})) as file:
            file.write(text)
        return path

    def assert_close(self, got, want, what=None):
        self.assertTrue(math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9), f"{what}: {got}, not {want}")

    def assert_same_times(self, got, want):
        """Of two ranks, in all and by step; `want` has steps."""
        for name, value in want["overall"].items():
            self.assert_close(got["overall"][name], value, name)
        self.assertEqual(got["step_points"], want["step_points"])
        self.assertTrue(want["steps"])
        for mine, other in zip(got["steps"], want["steps"], strict=True):
            for name in ("step", "start_ms", "total_ms", "fp_and_bp_ms", "tail_ms", "computing_ms", "free_ms"):
                self.assert_close(mine[name], other[name], name)
