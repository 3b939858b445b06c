#!/usr/bin/env python3
"""TCP with mutual TLS: who gets in, as whom, and who does not; certificates that are replaced."""

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import unittest

import raw_http2
from profd_harness import ALICE, BOB, IS_ROOT, PROFCTL, RUNNER, DaemonCase, eventually, main, scaled, temp_folder
from text_files import write_text
from tls_files import OPENSSL, call, issue, openssl, tls_init, tls_section

HOST_CPU = ("--host-sys-usage", "cpu")
H2_PREFACE = raw_http2.PREFACE + raw_http2.frame(raw_http2.SETTINGS, 0, 0)
MAX_CONNECTIONS = 64


class TlsCase(DaemonCase):
    users = [f"alice={ALICE}", f"bob={BOB}"]

    @classmethod
    def setUpClass(cls):
        cls.folder = temp_folder(cls)
        cls.made = tls_init(os.path.join(cls.folder, "made"))
        cls.other = tls_init(os.path.join(cls.folder, "other"))
        # What the daemon reads, apart from what was made: tests replace it.
        cls.live = os.path.join(cls.folder, "live")
        os.mkdir(cls.live)
        cls.install(cls.made)
        super().setUpClass()
        cls.address = cls.daemon.node["tls_address"]

    @classmethod
    def make_config(cls, **more):
        return {"daemon": {"max_connections": MAX_CONNECTIONS,
                           "attach_socket": os.path.join(cls.folder, "attach")},
                "tls": tls_section(cls.live, users=cls.users) | more}

    @classmethod
    def install(cls, source, names=("ca.crt", "server.crt", "server.key")):
        for name in names:
            fresh = os.path.join(cls.live, name + ".new")
            shutil.copy(os.path.join(source, name), fresh)
            os.chmod(fresh, 0o600)
            os.rename(fresh, os.path.join(cls.live, name))

    def tearDown(self):
        super().tearDown()
        self.daemon.ctl("status")  # whatever was tried on the port, the socket answers

    def remote_command(self, who, *arguments, address=None, json_output=True):
        folder = who if os.path.isabs(who) else os.path.join(self.made, "clients", who)
        return RUNNER + [PROFCTL, "--address", address or self.address, "--tls-dir", folder] + (
            ["--json"] if json_output else []) + [str(a) for a in arguments]

    def remote(self, who, *arguments, expect=0, **how):
        """profctl over TLS with the folder of `who`; (parsed stdout, stderr)."""
        done = subprocess.run(self.remote_command(who, *arguments, **how), capture_output=True,
                              text=True, check=False, timeout=scaled(60),
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, expect, (who, arguments, done.stdout, done.stderr))
        return json.loads(done.stdout) if done.stdout.strip() else None, done.stderr

    def denied(self, who, *arguments):
        answer, text = self.remote(who, *arguments, expect=3)
        self.assertIn("permission_denied", str(answer))
        return text

    def context(self, who=None, low=None, authority=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations((authority or self.live) + "/ca.crt")
        context.set_alpn_protocols(["h2"])
        if who is not None:
            folder = who if os.path.isabs(who) else os.path.join(self.made, "clients", who)
            context.load_cert_chain(folder + "/client.crt", folder + "/client.key")
        if low is not None:
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version, context.maximum_version = low, low
        return context

    @contextlib.contextmanager
    def connected(self, context):
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=scaled(30)) as raw:
            with context.wrap_socket(raw, server_hostname="localhost") as connection:
                yield connection

    def speaks(self, context):
        """True when the node continues to HTTP/2, which it does for accepted certificates only."""
        try:
            with self.connected(context) as connection:
                connection.sendall(H2_PREFACE)
                answer = connection.recv(9)
                return len(answer) > 3 and answer[3] == 4  # a SETTINGS frame
        except OSError:  # ssl.SSLError is one
            return False

    def serial(self):
        with self.connected(self.context("alice")) as connection:
            return connection.getpeercert()["serialNumber"]


@unittest.skipUnless(IS_ROOT, "only root can work for several users")
class Roles(TlsCase):
    def test_identities_of_certificates(self):
        for who, uid, admin, viewer in (("alice", ALICE, False, False), ("bob", BOB, False, False),
                                        ("ops", 0, True, False)):
            caller = self.remote(who, "status")[0]["caller"]
            self.assertEqual((caller["uid"], caller["admin"], caller.get("viewer", False)),
                             (uid, admin, viewer))
            self.assertEqual(caller["pid"], 0)
            self.assertIn(f"CN={who}", caller["certificate"])
        caller = self.remote("graf", "status")[0]["caller"]
        self.assertTrue(caller["viewer"])
        self.assertFalse(caller["admin"])
        local = self.daemon.ctl("status")["caller"]
        self.assertGreater(local["pid"], 0)
        self.assertFalse(local["certificate"])

    def test_two_users_and_the_others(self):
        session, _ = self.remote("alice", "start", *HOST_CPU, "--label", "codename")
        key = session["session_id"]
        self.assertEqual(session["uid"], ALICE)
        self.assertEqual(os.stat(session["dump_path"]).st_uid, ALICE)
        for command in (["show", key], ["stop", key], ["watch", key], ["rm", key],
                        ["fetch", key, "--out", self.folder]):
            self.remote("bob", *command, expect=4)
        self.assertNotIn("codename", str(self.remote("bob", "list")[0]))
        self.assertIn(key, str(self.remote("graf", "list")[0]))
        self.assertEqual(self.remote("graf", "show", key)[0]["label"], "codename")
        for command in (["stop", key], ["stop", "--job", "j42"], ["stop", "--all-mine"], ["rm", key], ["fetch", key, "--out", self.folder],
                        ["start", *HOST_CPU]):
            text = self.denied("graf", *command)
            self.assertIn("profd-viewer", text)
            self.assertIn("OU=profd-user", text)
        self.daemon.until_records(key, 5)
        stopped = self.remote("ops", "stop", key)[0]["sessions"][0]
        self.assertEqual(stopped["state"], "done")
        out = temp_folder(self)
        fetched, _ = self.remote("alice", "fetch", key, "--out", out)
        self.assertTrue(os.listdir(fetched["path"]))
        self.remote("alice", "rm", key)

    def test_viewer_streams(self):
        session, _ = self.remote("alice", "start", *HOST_CPU)
        done = subprocess.run(self.remote_command("graf", "stream", "--collectors", "host_cpu",
                                                  "--count", "5"),
                              capture_output=True, text=True, check=False, timeout=scaled(60))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout)
        self.remote("alice", "stop", session["session_id"])
        self.remote("alice", "rm", session["session_id"])

    def test_a_user_without_a_uid(self):
        text = self.denied("mallory", "status")
        self.assertIn("mallory=USER", text)
        self.assertIn("tls.users", text)

    def test_users_are_reloaded(self):
        self.daemon.write_config(self.make_config(users=self.users + ["mallory=61003"]))
        self.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: subprocess.run(self.remote_command("mallory", "status"),
                                          capture_output=True, check=False).returncode == 0)
        # One who is unknown here changes nothing.
        self.daemon.write_config(self.make_config(users=["alice=no-such-user-here"]))
        self.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: "no-such-user-here" in self.daemon.log())
        self.remote("mallory", "status")
        self.daemon.write_config(self.make_config())
        self.daemon.process.send_signal(signal.SIGHUP)
        eventually(lambda: subprocess.run(self.remote_command("mallory", "status"),
                                          capture_output=True, check=False).returncode == 3)


class Handshakes(TlsCase):
    def test_versions(self):
        versions = ssl.TLSVersion
        self.assertTrue(self.speaks(self.context("graf", versions.TLSv1_2)))
        self.assertTrue(self.speaks(self.context("graf", versions.TLSv1_3)))
        for old in (versions.TLSv1, versions.TLSv1_1):
            self.assertFalse(self.speaks(self.context("graf", old)), old)

    def s_client(self, *options):
        """What openssl's own client meets, with a certificate that is good."""
        folder = os.path.join(self.made, "clients", "alice")
        return subprocess.run(
            ["openssl", "s_client", "-connect", self.address, "-CAfile", self.live + "/ca.crt", "-cert",
             folder + "/client.crt", "-key", folder + "/client.key", "-alpn", "h2", *options],
            stdin=subprocess.DEVNULL, capture_output=True, errors="replace", check=False, timeout=scaled(60))

    @unittest.skipUnless(shutil.which("openssl"), "no openssl")
    def test_downgrade(self):
        """Old versions, and ciphers that encrypt or prove nothing: the node's own alert says no, not the client."""
        for options in (("-tls1_3",), ("-tls1_2",)):
            done = self.s_client(*options)
            self.assertRegex(done.stdout, r"New, TLSv1\.[23], Cipher is TLS_|New, TLSv1\.2, Cipher is ECDHE",
                             (options, done.stderr))
        for options in (("-tls1",), ("-tls1_1",)):
            done = self.s_client(*options, "-cipher", "ALL:@SECLEVEL=0")
            self.assertNotIn("New, TLS", done.stdout, options)
            self.assertRegex(done.stderr, "alert|unexpected eof|no protocols available", options)
        for cipher in ("eNULL", "aNULL", "RC4", "EXPORT:DES:3DES"):
            done = self.s_client("-tls1_2", "-cipher", f"{cipher}:@SECLEVEL=0")
            self.assertNotIn("New, TLS", done.stdout, cipher)
            # What this openssl itself no longer knows it cannot offer.
            self.assertRegex(done.stderr, "alert|unexpected eof|no cipher match|no ciphers available", cipher)

    def test_no_certificate(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.assertFalse(self.speaks(self.context(None, version)))

    def test_plain_tcp(self):
        host, port = self.address.rsplit(":", 1)
        for text in (H2_PREFACE, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\0" * 70000):
            with socket.create_connection((host, int(port)), timeout=scaled(30)) as raw:
                with contextlib.suppress(OSError):
                    raw.sendall(text)
                answer = b""
                with contextlib.suppress(ConnectionError):
                    while part := raw.recv(4096):
                        answer += part
                # A TLS alert at most: never HTTP.
                self.assertNotIn(b"HTTP", answer)
                self.assertNotEqual(answer[3:4], b"\x04")

    def test_calls_of_one_connection(self):
        with self.connected(self.context("alice")) as connection:
            self.assertEqual(raw_http2.settings_of(connection)[raw_http2.MAX_CONCURRENT], 32)

    def test_wrong_authority(self):
        """Theirs for us, ours for them."""
        _, text = self.remote(self.other + "/clients/alice", "status", expect=6)
        self.assertIn("not signed by an authority", text)
        mixed = os.path.join(self.folder, "mixed")
        shutil.copytree(self.other + "/clients/alice", mixed)
        shutil.copy(self.made + "/ca.crt", mixed)
        _, text = self.remote(mixed, "status", expect=6)
        self.assertIn("does not accept your certificate", text)
        self.assertFalse(self.speaks(self.context(mixed)))

    @unittest.skipUnless(OPENSSL, "openssl is not installed")
    def test_expired_client(self):
        folder = issue(self.made, os.path.join(self.folder, "expired"),
                       "/OU=profd-viewer/CN=graf", -1)
        answer, _ = self.remote(folder, "status", expect=3)
        self.assertEqual(answer["error"]["code"], "unauthenticated")
        self.assertIn("expired on", answer["error"]["message"])
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.assertFalse(self.speaks(self.context(folder, version)))

    def test_names(self):
        port = self.address.rsplit(":", 1)[1]
        self.remote("graf", "status", address=f"localhost:{port}")
        _, text = self.remote("graf", "--tls-server-name", "node7", "status", expect=6)
        self.assertIn("not for the name node7", text)
        self.remote("graf", "--tls-server-name", "localhost", "status")

    def test_not_there(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
            _, text = self.remote("graf", "status", address=address, expect=6)
        self.assertIn("No process listens", text)

    def test_silent(self):
        """It takes the connection and does not answer, as a daemon that is stopped."""
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            _, text = self.remote("graf", "--timeout", "1s", "status", address=address, expect=6)
        self.assertIn(f"{address} takes the connection and does not answer", text)
        self.assertNotIn("certificate", text)

    def test_not_tls(self):
        _, text = self.remote("graf", "status", address=self.daemon.metrics_address, expect=6)
        self.assertIn("profd cannot be reached", text)

    def test_environment(self):
        env = dict(os.environ, PROFD_ADDRESS=self.address,
                   PROFD_TLS_DIR=self.made + "/clients/graf")
        done = call(PROFCTL, "status", "--json", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["address"], self.address)

    def test_flood(self):
        """More connections than allowed, all silent: the socket does not notice."""
        host, port = self.address.rsplit(":", 1)
        before = self.daemon.metric("profd_rpc_rejected_total", reason="tls_connection_limit") or 0
        with contextlib.ExitStack() as stack:
            for _ in range(2 * MAX_CONNECTIONS):
                with contextlib.suppress(OSError):
                    stack.enter_context(socket.create_connection((host, int(port)),
                                                                 timeout=scaled(30)))
            eventually(lambda: (self.daemon.metric("profd_rpc_rejected_total",
                                                   reason="tls_connection_limit") or 0) > before)
            self.assertLessEqual(self.daemon.metric("profd_tls_connections"), MAX_CONNECTIONS // 2)
            for _ in range(5):
                self.daemon.ctl("status")
        eventually(lambda: self.daemon.metric("profd_tls_connections") == 0)
        self.remote("graf", "status")

    def test_silence_ends(self):
        """A connection that never begins the handshake is closed by the node."""
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=scaled(60)) as raw:
            with contextlib.suppress(ConnectionError):
                self.assertEqual(raw.recv(1), b"")


class Rotation(TlsCase):
    def reloads(self, result):
        return self.daemon.metric("profd_tls_reloads_total", result=result) or 0

    def setUp(self):
        if not hasattr(self, "serial_of_made"):
            type(self).serial_of_made = self.serial()

    def restore(self):
        self.install(self.made)
        eventually(lambda: self.serial_or_none() == self.serial_of_made)

    def serial_or_none(self):
        try:
            return self.serial()
        except OSError:
            return None

    def test_new_certificate_while_connected(self):
        self.addCleanup(self.restore)
        before = self.reloads("ok")
        stream = subprocess.Popen(self.remote_command("graf", "stream", "--format", "csv",
                                                      json_output=False),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            for _ in range(3):
                self.assertTrue(stream.stdout.readline())
            # A renewed certificate of the same authority: made again, then only the pair is taken.
            renewed = os.path.join(self.folder, "renewed")
            os.makedirs(renewed, exist_ok=True)
            self.renew(renewed)
            self.install(renewed, ("server.crt", "server.key"))
            eventually(lambda: self.serial_or_none() not in (None, self.serial_of_made))
            eventually(lambda: self.reloads("ok") > before)
            self.remote("graf", "status")
            # The stream that was there continues.
            for _ in range(200):
                if not stream.stdout.readline():
                    self.fail(f"the stream ended: {stream.communicate()[1]}")
        finally:
            stream.kill()
            stream.communicate()

    def renew(self, folder):
        if OPENSSL is None:
            self.skipTest("openssl is not installed")
        key, request = folder + "/server.key", folder + "/request"
        extensions = folder + "/extensions"
        write_text(extensions, "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-keyout", key, "-out", request, "-subj", "/CN=localhost")
        openssl("x509", "-req", "-in", request, "-CA", self.made + "/ca.crt", "-CAkey",
                self.made + "/ca.key", "-CAcreateserial", "-days", "2", "-extfile", extensions,
                "-out", folder + "/server.crt")

    def test_broken_rotation_keeps_the_old(self):
        self.addCleanup(self.restore)
        for name, text in (("server.key", None), ("server.crt", "garbage"), ("ca.crt", "")):
            with self.subTest(name):
                before = self.reloads("failed")
                if text is None:
                    self.install(self.other, (name,))  # another pair's key
                else:
                    write_text(os.path.join(self.live, name), text)
                eventually(lambda: self.reloads("failed") > before)
                self.remote("graf", "status")
                self.assertIn("not usable", self.daemon.log())
                self.install(self.made)

    def test_key_that_becomes_readable(self):
        self.addCleanup(self.restore)
        before = self.reloads("failed")
        os.chmod(self.live + "/server.key", 0o644)
        eventually(lambda: self.reloads("failed") > before)
        self.remote("graf", "status")

    def test_new_authority(self):
        """Clients of the old one are out, also on connections that were made before."""
        self.addCleanup(self.restore)
        self.install(self.other)
        eventually(lambda: subprocess.run(
            self.remote_command(self.other + "/clients/graf", "status"), capture_output=True,
            check=False).returncode == 0)
        self.remote("graf", "status", expect=6)
        self.assertFalse(self.speaks(self.context("graf", authority=self.other)))

    def test_expiry_is_a_metric(self):
        self.assertGreater(self.daemon.metric("profd_tls_certificate_expiry_timestamp_seconds"),
                           1.7e9)


if __name__ == "__main__":
    main()
