#!/usr/bin/env python3
"""What the packages' own scripts do, without installing anything; scripts/package-test does that."""

import os
import shutil
import subprocess
import unittest

from profd_harness import IS_ROOT, REPO, main, scaled

POSTRM = os.path.join(REPO, "packaging", "debian", "profd.postrm")
DUMP = "PROF_000001_20261130183201067_KQPBRLRADDCILQKC"
# Nothing of this machine's is in reach of the script.
NAMESPACE = ["unshare", "--mount", "--propagation", "private", "sh", "-ec"]
MOUNTS = "for folder in /etc /run /var/lib; do mount -t tmpfs profd-test $folder; done\nmkdir /etc/profd /run/profd\n"


class Purge(unittest.TestCase):
    def setUp(self):
        if not IS_ROOT or not shutil.which("unshare") or subprocess.run(NAMESPACE + [MOUNTS], check=False, capture_output=True).returncode:
            self.skipTest("no tmpfs can be mounted here")

    def purge(self, before):
        """What the script said, and what is below /var/lib after it."""
        text = f"{MOUNTS}{before}\nsh {POSTRM} purge\n[ ! -e /etc/profd ]\n[ ! -e /run/profd ]\necho ---\ncd /var/lib\nfind . -mindepth 1"
        done = subprocess.run(NAMESPACE + [text], capture_output=True, text=True, check=False, timeout=scaled(60))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said, _, left = done.stdout.partition("---\n")
        return said, sorted(path.removeprefix("./") for path in left.splitlines())

    def test_without_dumps(self):
        said, left = self.purge("mkdir -p profd profd/.state/sessions profd/.removing_1 profd-archive/x".replace("profd", "/var/lib/profd"))
        self.assertEqual((said, left), ("", []))

    def test_with_dumps(self):
        for name in (DUMP, ".run_" + DUMP):
            said, left = self.purge(f"mkdir -p /var/lib/profd/.state /var/lib/profd/{name}")
            self.assertIn("dumps are kept in /var/lib/profd", said)
            self.assertEqual(left, sorted(["profd", "profd/.state", "profd/" + name]))

    def test_volumes(self):
        """What is mounted there stays, without what was profd's."""
        said, left = self.purge("for folder in /var/lib/profd /var/lib/profd-archive; do mkdir $folder; mount -t tmpfs profd-test $folder; done\n"
                                "mkdir /var/lib/profd/.state /var/lib/profd/lost+found /var/lib/profd-archive/copy")
        self.assertEqual((said, left), ("", ["profd", "profd-archive", "profd/lost+found"]))

    def test_a_link(self):
        said, left = self.purge(f"mkdir -p /var/lib/big/.state /var/lib/big/{DUMP}\nln -s big /var/lib/profd")
        self.assertIn("dumps are kept in /var/lib/profd", said)
        self.assertEqual(left, ["big", "big/.state", "big/" + DUMP, "profd"])
        said, left = self.purge("mkdir -p /var/lib/big/.state /var/lib/big/other\nln -s big /var/lib/profd")
        self.assertEqual((said, left), ("", ["big", "big/other", "profd"]))


if __name__ == "__main__":
    main()
