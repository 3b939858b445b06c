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
