#!/usr/bin/env python3
"""The files of TLS: what the daemon refuses to start with, what `profctl tls init` makes."""

import json
import os
import re
import socket
import stat
import unittest

from profd_harness import PROFCTL, PROFD, Daemon, main, temp_folder
from text_files import files_below, read_text
from tls_files import OPENSSL, call, tls_init, tls_section


class Start(unittest.TestCase):
    def setUp(self):
        self.folder = temp_folder(self)
        self.made = tls_init(os.path.join(self.folder, "made"))

    def refused(self, **tls):
        """profd does not start, and --check-config says the same; the text."""
        daemon = Daemon(config={"tls": tls_section(self.made, **tls)})
        self.addCleanup(daemon.dispose)
        checked = call(PROFD, "--config", daemon.config_path, "--check-config")
        self.assertEqual(checked.returncode, 2, checked.stdout)
        self.assertEqual(daemon.start_in_vain(), 2)
        self.assertIn(checked.stderr.strip().splitlines()[0], daemon.log())
        return checked.stderr

    def test_good(self):
        with Daemon(config={"tls": tls_section(self.made)}) as daemon:
            self.assertIn(daemon.node["tls_address"], daemon.log())
            self.assertNotIn(":0 ", daemon.log())

    def test_off_by_default(self):
        with Daemon() as daemon:
            self.assertFalse(daemon.node["tls_address"])

    def test_every_problem(self):
        text = self.refused(certificate="/nonexistent/crt", client_ca=self.made + "/server.key",
                            users=["x=no-such-user-here", "y"], listen="nowhere")
        for part in ("tls.certificate", "/nonexistent/crt", "tls.client_ca", "no-such-user-here",
                     '"y"', "tls.listen"):
            self.assertIn(part, text)


class MakeCertificates(unittest.TestCase):
    def test_none_for_root(self):
        """tls.users cannot map to root (docs/many-nodes.md): the lines that are printed would be refused."""
        folder = temp_folder(self) + "/tls"
        answer = call(PROFCTL, "tls", "init", folder, "--hosts", "n1", "--users", "alice,root")
        self.assertEqual(answer.returncode, 2, answer.stderr)
        self.assertIn("--users: nodes give no certificate the rights of root; --admin NAME", answer.stderr)
        self.assertFalse(os.path.exists(folder))


class ManyNodes(unittest.TestCase):
    """What profctl says of nodes it cannot reach, and why: not in the words of its transport."""

    def setUp(self):
        self.folder = temp_folder(self)

    def status(self, *more):
        return call(PROFCTL, "--nodes", ",".join(self.nodes()), *more, "status")

    def nodes(self):
        """Two ports without listener."""
        ports = []
        for _ in range(2):
            kept = socket.socket()
            self.addCleanup(kept.close)
            kept.bind(("127.0.0.1", 0))
            ports.append(f"127.0.0.1:{kept.getsockname()[1]}")
        return ports

    def test_missing_files_are_reported_once(self):
        answer = self.status("--tls-dir", self.folder + "/nowhere")
        self.assertEqual(answer.returncode, 3, answer.stderr)
        self.assertEqual(answer.stdout, "")
        self.assertRegex(answer.stderr, r"^profctl: none of the 2 nodes was called: cannot read CA certificate "
                                        rf"{self.folder}/nowhere/ca.crt: No such file or directory\n")
        self.assertIn("profctl tls init", answer.stderr)

    def test_no_listener(self):
        made = tls_init(os.path.join(self.folder, "made"))
        answer = self.status("--tls-dir", made + "/clients/alice")
        self.assertEqual(answer.returncode, 6, answer.stderr)
        text = answer.stdout + answer.stderr
        said = re.findall(r"No process listens on 127\.0\.0\.1:\d+: profd does not run there", text)
        self.assertEqual(len(said), 2, text)
        self.assertNotIn("failed to connect", text)


class Init(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.join(temp_folder(self), "made")

    def contents(self):
        return {path: read_text(path) for path in files_below(self.folder)}

    def test_modes_and_force(self):
        old = os.umask(0)
        try:
            tls_init(self.folder)
        finally:
            os.umask(old)
        before = self.contents()
        self.assertEqual(len(before), 4 + 3 * 5)
        for path in before:
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
        again = call(PROFCTL, "tls", "init", self.folder, "--hosts", "h", "--users", "alice")
        self.assertEqual(again.returncode, 3, again.stdout)
        self.assertIn("--force", again.stderr)
        self.assertEqual(self.contents(), before)
        tls_init(self.folder, "--force")
        self.assertEqual(set(self.contents()), set(before))
        self.assertFalse(set(self.contents().values()) & set(before.values()))

    def test_reports_what_to_do(self):
        done = call(PROFCTL, "tls", "init", self.folder, "--hosts", "n1,10.0.0.7,fd00::7",
                    "--users", "alice", "--days", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("[tls]", "listen", "alice=alice", "ca.key", "--tls-dir"):
            self.assertIn(part, done.stdout)

    def test_certificates(self):
        done = call(PROFCTL, "--json", "tls", "init", self.folder, "--hosts", "*.x,n_1.y,10.0.0.7,::",
                    "--users", "ci@x", "--viewer", "a-b_c.d", "--days", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        made = json.loads(done.stdout)
        self.assertEqual(sorted(made["files"]), sorted(self.contents()))
        self.assertEqual([(c["name"], c["role"]) for c in made["clients"]],
                         [("ci@x", "profd-user"), ("a-b_c.d", "profd-viewer")])

        def text(name):
            return call(OPENSSL, "x509", "-in", f"{self.folder}/{name}", "-noout", "-text", "-nameopt", "RFC2253",
                        "-certopt", "no_pubkey,no_sigdump").stdout
        authority, node = text("ca.crt"), text("server.crt")
        self.assertRegex(authority, r"Basic Constraints: critical\s+CA:TRUE, pathlen:0")
        self.assertRegex(authority, r"Key Usage: critical\s+Certificate Sign, CRL Sign")
        self.assertRegex(node, r"Basic Constraints: critical\s+CA:FALSE")
        self.assertRegex(node, r"Extended Key Usage: \s+TLS Web Server Authentication\s")
        self.assertIn("DNS:*.x, DNS:n_1.y, IP Address:10.0.0.7, IP Address:0:0:0:0:0:0:0:0\n", node)
        user = text("clients/ci@x/client.crt")
        self.assertRegex(user, r"Subject: CN=ci@x,OU=profd-user\s")
        self.assertRegex(user, r"Extended Key Usage: \s+TLS Web Client Authentication\s")
        for path in made["files"]:
            if path.endswith(".crt"):
                verified = call(OPENSSL, "verify", "-x509_strict", "-CAfile", self.folder + "/ca.crt", path)
                self.assertEqual(verified.returncode, 0, verified.stderr)
                for seconds, lasts in ((3 * 86400 - 60, True), (3 * 86400 + 60, False)):
                    ends = call(OPENSSL, "x509", "-in", path, "-noout", "-checkend", seconds)
                    self.assertEqual(ends.returncode == 0, lasts, path)

    def test_writes_through_no_link(self):
        os.mkdir(self.folder)
        target = self.folder + "-target"
        os.symlink(target, self.folder + "/ca.key")
        for more in ([], ["--force"]):
            done = call(PROFCTL, "tls", "init", self.folder, "--hosts", "h", "--users", "a", *more)
            self.assertEqual(done.returncode, 0 if more else 3, done.stderr)
            self.assertFalse(os.path.exists(target))

    def test_completion(self):
        """Its options are offered, which are another program's."""
        options = re.findall(r"^  (?:-h,)?(--[a-z]+)", call(PROFCTL, "tls", "init", "--help").stdout, re.M)
        self.assertIn("--hosts", options)
        self.assertEqual(call(PROFCTL, "__complete", "tls", "init", "--").stdout.split(), options)

    def test_usage(self):
        # Names become directories and parts of openssl's configuration.
        names = [["--hosts", "h", "--users", name]
                 for name in ("../a", ".", "..", "a/b", "a b", "a=b", "a\nb", "\u00e9", "a,a", "a" * 65)]
        hosts = [["--hosts", host, "--users", "a"]
                 for host in ("h h", "*", "*.", "h,DNS:x\n", "a:b", "-a", ".a", "a/b", "fd00::1/64", "", "h,")]
        for arguments in [["--hosts", "h"], ["--users", "a"], ["--hosts", "h", "--users", "a", "--days", "0"],
                          ["--hosts", "h", "--users", "a", "--days"], ["other", "--hosts", "h", "--users", "a"],
                          ["--hosts", "h", "--users", "a", "--dyas", "3"]] + names + hosts:
            done = call(PROFCTL, "tls", "init", self.folder, *arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stdout))
            self.assertFalse(os.path.exists(self.folder))


if __name__ == "__main__":
    main()
