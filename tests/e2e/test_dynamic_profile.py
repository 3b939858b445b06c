"""Requests to torch_npu's dynamic profile: what is written, and that it is written into one's own folder only."""

import os
import stat
import subprocess
import sys
import unittest

import profd_harness
from profd_harness import temp_folder
from python_package import PACKAGE
from text_files import read_json


class DynamicProfile(unittest.TestCase):
    def setUp(self):
        self.base = temp_folder(self)
        self.folder = os.path.join(self.base, "config")
        os.mkdir(self.folder, 0o755)
        self.file = os.path.join(self.folder, "profiler_config.json")

    def run_tool(self, *words, folder=None):
        return subprocess.run([sys.executable, "-B", "-m", "profd.dynamic_profile", *words, folder or self.folder],
                              env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, text=True, check=False)

    def request(self, *words):
        result = self.run_tool("--output", "/data/results", *words)
        self.assertEqual((result.returncode, result.stdout.strip(), result.stderr), (0, self.file, ""))
        return read_json(self.file)

    def refused(self, code, text, *words, folder=None):
        result = self.run_tool("--output", "/data/results", *words, folder=folder)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".")], [])

    def test_the_configuration_torch_npu_reads(self):
        request = self.request("--steps", "3", "--warmup", "1", "--with-stack", "--record-shapes", "--ranks", "0,2",
                           "--level", "Level1", "--aic-metrics", "PipeUtilization")
        # in-application.md 7.4
        self.assertEqual({key: request[key] for key in ("active", "warmup", "start_step", "prof_dir", "with_stack",
                                                       "record_shapes", "profile_memory", "is_rank", "rank_list")},
                         {"active": 3, "warmup": 1, "start_step": -1, "prof_dir": "/data/results", "with_stack": True,
                          "record_shapes": True, "profile_memory": False, "is_rank": True, "rank_list": [0, 2]})
        self.assertEqual(request["experimental_config"]["profiler_level"], "Level1")
        self.assertEqual(request["experimental_config"]["aic_metrics"], "PipeUtilization")
        self.assertEqual(stat.S_IMODE(os.stat(self.file).st_mode), 0o640)
        before = os.stat(self.file).st_ino
        self.assertFalse(self.request()["is_rank"])
        self.assertNotEqual(os.stat(self.file).st_ino, before, "replaced in one step")
        self.assertEqual(os.listdir(self.folder), ["profiler_config.json"])

    def test_wrong_arguments_are_all_named(self):
        result = self.run_tool("--output", "/x", "--steps", "0", "--level", "Level9", "--ranks", "-1")
        self.assertEqual(result.returncode, 3)
        for name in ("steps=0", "Level9", "ranks"):
            self.assertIn(name, result.stderr)
        self.refused(3, "invalid literal", "--ranks", "a")

    def test_links_are_not_followed(self):
        link = os.path.join(self.base, "link")
        os.symlink(self.folder, link)
        self.refused(1, "link", folder=link)
        elsewhere = os.path.join(self.base, "elsewhere")
        os.symlink(elsewhere, self.file)
        self.refused(1, "is not a regular file")
        self.assertFalse(os.path.exists(elsewhere))

    def test_only_ones_own_folder(self):
        os.chmod(self.folder, 0o777)
        self.refused(1, "can be written by others")
        os.chmod(self.folder, 0o755)
        if os.geteuid() == 0:
            os.chown(self.folder, 65534, -1)
            self.refused(1, "belongs to user 65534")
        self.refused(1, "No such file", folder=os.path.join(self.base, "missing"))


if __name__ == "__main__":
    profd_harness.main()
