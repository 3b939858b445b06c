#!/usr/bin/env python3
"""The HTTP endpoint as scrapers, probes, browsers and strangers meet it: paths, compression, TLS and
passwords, limits, clients that are slow or gone, a card that hangs."""

import base64
import contextlib
import gzip
import os
import re
import shutil
import socket
import ssl
import unittest

from profd_harness import DEADLINE, PROFD, Daemon, eventually, main, parse_metrics, replace_file, scaled, temp_folder
from tls_files import OPENSSL, call, issue, tls_init
from toml_files import scenario_text

# "secret", bcrypt with the least cost: these tests are not about patience.
HASH = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"
PER_ADDRESS = 8
STUCK, GOOD = 1, 0
PLAIN = []


class Client:
    """One connection to the endpoint."""

    def __init__(self, daemon, tls=None):
        host, port = daemon.metrics_address.rsplit(":", 1)
        self.raw = socket.create_connection((host, int(port)), timeout=scaled(DEADLINE))
        if tls is not None:
            self.raw = tls.wrap_socket(self.raw, server_hostname="localhost")
        # One for all answers: what it has read of the next one must not be lost.
        self.file = self.raw.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.file.close()
        self.raw.close()

    def send(self, data):
        self.raw.sendall(data if isinstance(data, bytes) else data.encode())
        return self

    def request(self, path="/metrics", method="GET", **headers):
        lines = "".join(f"{k.replace('_', '-')}: {v}\r\n" for k, v in headers.items())
        return self.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n")

    def answer(self, method="GET"):
        """The next answer, read to its end: status, headers, body."""
        status = self.file.readline()
        if not status.startswith(b"HTTP/1.1 "):
            raise ConnectionError(f"no answer: {status!r}")
        headers = {}
        while (line := self.file.readline().strip()):
            name, value = line.decode().split(": ", 1)
            headers[name.lower()] = value
        body = b"" if method == "HEAD" else self.file.read(int(headers["content-length"]))
        return int(status.split()[1]), headers, body

    def closed(self):
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True


def ask(daemon, path="/metrics", method="GET", tls=None, **headers):
    with Client(daemon, tls) as client:
        return client.request(path, method, Connection="close", **headers).answer(method)


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def trusting(authority, client=None, version=None):
    context = ssl.create_default_context(cafile=authority + "/ca.crt")
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if client is not None:
        context.load_cert_chain(client + "/client.crt", client + "/client.key")
    if version is not None:
        context.maximum_version = version
    return context


@contextlib.contextmanager
def plain_daemon():
    # Later than everything that wants a whole card.
    text = scenario_text(faults=[dict(kind="card_drop", mode="hang", at=2, device=STUCK)])
    with Daemon(scenario_text=text, config={"metrics": {
            "max_connections_per_address": PER_ADDRESS}}) as daemon:
        yield daemon


def setUpModule():
    """The daemon of Plain, and three misbehaving clients, there all the time: one stops in the
    middle of its request, one is gone before its answer, one asks for megabytes and reads nothing."""
    stack = contextlib.ExitStack()
    unittest.addModuleCleanup(stack.close)
    daemon = stack.enter_context(plain_daemon())
    sender = stack.enter_context(Client(daemon)).send(b"GET /metr")
    gone = stack.enter_context(Client(daemon)).request()
    gone.raw.shutdown(socket.SHUT_WR)
    reader = stack.enter_context(Client(daemon))
    reader.raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.raw.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(500):
            reader.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    PLAIN.extend((daemon, sender))


class Plain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon, cls.sender = PLAIN
        eventually(lambda: ask(cls.daemon, "/readyz")[0] == 200, what="ready")

    def test_paths(self):
        status, headers, body = ask(self.daemon)
        self.assertEqual(status, 200)
        self.assertEqual(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
        self.assertEqual(parse_metrics(body.decode())[("profd_simulated", ())], 1)
        self.assertEqual(ask(self.daemon, "/healthz")[::2], (200, b"ok\n"))
        status, _, body = ask(self.daemon, "/readyz")
        self.assertEqual(status, 200)
        for part in (b"ready\n", b"sockets: ready", b"dumps: ready"):
            self.assertIn(part, body)
        # Its health is judged once a second.
        eventually(lambda: b"npu 0: ready" in ask(self.daemon, "/readyz")[2], what="the NPU's health")
        status, headers, body = ask(self.daemon, "/nowhere?x=y")
        self.assertEqual(status, 404)
        self.assertIn(b"/metrics", body)
        status, headers, body = ask(self.daemon, method="POST")
        self.assertEqual((status, headers["allow"]), (405, "GET, HEAD"))

    def test_page(self):
        status, headers, body = ask(self.daemon, "/")
        page = body.decode()
        self.assertEqual((status, headers["content-type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["content-security-policy"])
        for part in ("Simulated node", "2 NPUs", 'href="/metrics"', 'href="/readyz"', "Ascend910B",
                     "prefers-color-scheme: dark", "profctl"):
            self.assertIn(part, page)
        self.assertNotIn("<script", page)
        self.assertIsNone(re.search(r"(src|href)=\"?(https?:)?//", page))

    def test_names(self):
        ours = parse_metrics(ask(self.daemon, "/metrics?names=atlas")[2].decode())
        self.assertFalse([name for name, _ in ours if name.startswith(("npu_", "machine_npu"))])

        def theirs():
            names = {n for n, _ in parse_metrics(
                ask(self.daemon, "/metrics?names=npu-exporter")[2].decode())}
            return "npu_chip_info_health_status" in names and names

        self.assertFalse([n for n in eventually(theirs) if n.startswith(("atlas_", "profd_"))])
        both = {n for n, _ in parse_metrics(
            ask(self.daemon, "/metrics?names=atlas,npu-exporter")[2].decode())}
        self.assertLessEqual({"profd_simulated", "npu_chip_info_health_status"}, both)
        self.assertEqual(ask(self.daemon, "/metrics?names=dcgm")[0], 400)

    def test_gzip_is_the_same_text(self):
        # Two scrapes differ in values; the page of a quiet node does not.
        def same():
            plain = ask(self.daemon, "/")
            status, headers, packed = ask(self.daemon, "/", Accept_Encoding="br, gzip;q=0.8")
            self.assertEqual((status, headers["content-encoding"]), (200, "gzip"))
            self.assertLess(len(packed), len(plain[2]))
            self.assertNotIn("content-encoding", plain[1])
            self.assertEqual(plain[1]["vary"], "Accept-Encoding")
            return gzip.decompress(packed) == plain[2]

        eventually(same)
        names = parse_metrics(gzip.decompress(ask(self.daemon, Accept_Encoding="gzip")[2]).decode())
        self.assertIn(("profd_simulated", ()), names)
        self.assertNotIn("content-encoding", ask(self.daemon, Accept_Encoding="gzip;q=0")[1])

    def test_head(self):
        with Client(self.daemon) as client:
            status, headers, body = client.request("/healthz", "HEAD").answer("HEAD")
            self.assertEqual((status, headers["content-length"], body), (200, "3", b""))
            # The connection continues where the answer without a body ended.
            self.assertEqual(client.request("/healthz").answer()[2], b"ok\n")

    def test_keep_alive_and_pipelining(self):
        with Client(self.daemon) as client:
            client.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
            for _ in range(20):
                self.assertEqual(client.answer()[::2], (200, b"ok\n"))
            client.send(b"GET /healthz HTTP/1.0\r\n\r\n")
            self.assertEqual(client.answer()[1]["connection"], "close")
            self.assertTrue(client.closed())

    def test_invalid_requests(self):
        for data, status in ((b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 20000 + b"\r\n\r\n", 431),
                             (b"hello\r\n\r\n", 400),
                             (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
                             (b"GET metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
                             (b"GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
                             (b"GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 413),
                             (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413)):
            with Client(self.daemon) as client:
                self.assertEqual(client.send(data).answer()[0], status, data[:40])
                self.assertTrue(client.closed())
        self.assertEqual(ask(self.daemon, "/healthz")[0], 200)

    def test_limit_of_an_address(self):
        with contextlib.ExitStack() as stack:
            held = [stack.enter_context(Client(self.daemon)) for _ in range(PER_ADDRESS)]
            # Those before may still be on their way out.
            def refused():
                status, headers, _ = ask(self.daemon, "/healthz")
                return status == 429 and headers["retry-after"]

            eventually(refused, what="429")
            self.assertEqual(held[0].request("/healthz").answer()[0], 200)
        eventually(lambda: ask(self.daemon, "/healthz")[0] == 200, what="an answer again")
        eventually(lambda: self.daemon.metric("profd_http_refused_total",
                                              reason="connections_of_address") > 0)

    def test_z_slow_clients_are_cut_off(self):
        for _ in range(5):
            self.assertEqual(ask(self.daemon)[0], 200)
        self.assertTrue(self.sender.closed(), "the half request is cut off at its deadline")
        eventually(lambda: self.daemon.metric("profd_http_timeouts_total") >= 2)

    def test_hanging_card(self):
        eventually(lambda: self.daemon.metric("profd_device_stuck", npu=str(STUCK)) or None,
                   what="the hang is noticed")
        self.assertEqual(self.daemon.metric("atlas_npu_up", npu=str(GOOD)), 1)
        eventually(lambda: f"npu {STUCK}: down" in ask(self.daemon, "/readyz")[2].decode())
        self.assertEqual(ask(self.daemon, "/readyz")[0], 200)
        self.assertEqual(ask(self.daemon, "/healthz")[0], 200)
        eventually(lambda: "has not returned" in ask(self.daemon, "/")[2].decode())


class Guarded(unittest.TestCase):
    """TLS, client certificates and passwords from web.yml, and what happens when it changes."""

    def setUp(self):
        if OPENSSL is None:
            self.skipTest("no openssl")
        self.folder = temp_folder(self)
        self.made = tls_init(os.path.join(self.folder, "made"))
        self.web = os.path.join(self.folder, "web.yml")

    def write(self, text):
        """As an editor or a secret's mount does: the file is replaced, never half there."""
        replace_file(self.web, text)

    def replace(self, source, name):
        shutil.copy(source, os.path.join(self.made, "new"))
        os.chmod(os.path.join(self.made, "new"), 0o600)
        os.rename(os.path.join(self.made, "new"), os.path.join(self.made, name))

    def config(self, more="", users=f"basic_auth_users:\n  prom: {HASH}\n"):
        return ("tls_server_config:\n  cert_file: made/server.crt\n  key_file: made/server.key\n" +
                more + users)

    def test_everything(self):
        self.write(self.config("  min_version: TLS13\n") +
                   "http_server_config:\n  headers: {X-Frame-Options: deny}\n")
        with Daemon(config={"metrics": {"web_config": self.web}}) as daemon:
            tls = trusting(self.made)
            good = basic("prom", "secret")
            self.assertRegex(daemon.log(), "metrics address=.* tls=true authentication=true")
            self.assertIn(f"https://{daemon.metrics_address}/metrics",
                          daemon.run("status", json_output=False).stdout)

            # Passwords.
            status, headers, _ = ask(daemon, tls=tls)
            self.assertEqual(status, 401)
            self.assertIn("Basic", headers["www-authenticate"])
            for wrong in (basic("prom", "Secret"), basic("x", "secret"), "Basic !", "Bearer x"):
                self.assertEqual(ask(daemon, tls=tls, Authorization=wrong)[0], 401, wrong)
            for _ in range(2):  # computed, then remembered
                status, headers, body = ask(daemon, tls=tls, Authorization=good)
                self.assertEqual((status, headers["x-frame-options"]), (200, "deny"))
            parse_metrics(body.decode())  # raises where it is not what Prometheus reads
            for path in ("/healthz", "/readyz"):
                self.assertIn(ask(daemon, path, tls=tls)[0], (200, 503))
            self.assertEqual(ask(daemon, "/", tls=tls)[0], 401)

            # Plain HTTP, and an old version, get no further than they should.
            status, _, body = ask(daemon)
            self.assertEqual(status, 400)
            self.assertIn(b"https://", body)
            with self.assertRaises(OSError):
                ask(daemon, tls=trusting(self.made, version=ssl.TLSVersion.TLSv1_2))

            # One connection that stays, over what follows.
            with Client(daemon, tls) as kept:
                self.assertEqual(kept.request(Authorization=good).answer()[0], 200)
                self.rotate(daemon, good)
                # It sees the new passwords, and has to come back for the new certificate.
                self.write(self.config(users="basic_auth_users:\n  other: " + HASH + "\n"))
                eventually(lambda: ask(daemon, tls=self.new_tls, Authorization=good)[0] == 401)
                status, headers, _ = kept.request(Authorization=good).answer()
                self.assertEqual((status, headers["connection"]), (401, "close"))
            self.breaks(daemon)
            self.certificates(daemon)

    def rotate(self, daemon, good):
        """A new certificate and key, one after the other, without a restart."""
        other = tls_init(os.path.join(self.folder, "other"))
        before = daemon_serial(daemon)
        self.replace(other + "/server.crt", "server.crt")
        self.assertEqual(daemon_serial(daemon), before, "half a pair is not served")
        self.replace(other + "/server.key", "server.key")
        eventually(lambda: daemon_serial(daemon) != before, what="the new certificate")
        self.new_tls = trusting(other)
        text = ask(daemon, tls=self.new_tls, Authorization=good)[2].decode()
        metrics = eventually(lambda: self.seen(daemon, good, "profd_http_config_reloads_total",
                                               ("result", "ok")), what=text[:200])
        self.assertGreaterEqual(metrics, 1)
        self.assertGreater(self.seen(
            daemon, good, "profd_http_certificate_expiry_timestamp_seconds"), 1e9)

    def seen(self, daemon, authorization, name, *labels):
        text = ask(daemon, tls=self.new_tls, Authorization=authorization)[2].decode()
        return parse_metrics(text).get((name, labels))

    def breaks(self, daemon):
        """A wrong file leaves the earlier one in force, counted and logged."""
        other = basic("other", "secret")
        self.write("tls_server_config: {cert_file: nowhere}\nbasic_auth: 1\n")
        eventually(lambda: self.seen(daemon, other, "profd_http_config_reloads_total",
                                     ("result", "failed")), what="the failure is counted")
        self.assertIn("unknown key basic_auth", daemon.log())
        self.assertEqual(ask(daemon, tls=self.new_tls, Authorization=other)[0], 200)

    def certificates(self, daemon):
        """Clients that must show one."""
        other = os.path.join(self.folder, "other")
        shutil.copy(other + "/ca.crt", self.made + "/clients.crt")
        self.write(self.config("  client_ca_file: made/clients.crt\n"
                               "  client_auth_type: RequireAndVerifyClientCert\n", users=""))
        client = issue(other, os.path.join(self.folder, "client"), "/CN=prometheus", 2)
        stranger = issue(tls_init(os.path.join(self.folder, "third")),
                         os.path.join(self.folder, "stranger"), "/CN=prometheus", 2)

        def scraped(context):
            try:
                return ask(daemon, tls=context)[0]
            except OSError:
                return None

        eventually(lambda: scraped(trusting(other)) is None, what="a certificate is wanted")
        self.assertEqual(scraped(trusting(other, client)), 200)
        self.assertIsNone(scraped(trusting(other, stranger)))

    def refused(self, text, *parts):
        self.write(text)
        daemon = Daemon(config={"metrics": {"web_config": self.web}})
        self.addCleanup(daemon.dispose)
        checked = call(PROFD, "--config", daemon.config_path, "--check-config")
        self.assertEqual(checked.returncode, 2, checked.stdout)
        for part in parts:
            self.assertIn(part, checked.stderr)
        self.assertEqual(daemon.start_in_vain(), 2)
        self.assertIn(parts[0], daemon.log())

    def test_wrong_files_are_refused_with_every_problem(self):
        os.chmod(self.made + "/server.key", 0o644)
        self.refused(self.config("  cipher_suites: [x]\n  min_version: TLS11\n", "basic_auth_users:"
                                 "\n  a: b\nwhat: 1\n"),
                     f"{self.web}:4: cipher_suites is not supported", "TLS11", "bcrypt",
                     "unknown key what", "key_file", "0644")

    def test_compat(self):
        wrong = call(PROFD, "--compat", "dcgm-exporter", "--check-config")
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("npu-exporter=instead", wrong.stderr)
        with Daemon(args=["--compat", "npu-exporter=instead"]) as daemon:
            names = eventually(lambda: {name for name, _ in daemon.scrape()})
            self.assertFalse([n for n in names if n.startswith(("atlas_", "profd_"))])
            ours = parse_metrics(ask(daemon, "/metrics?names=atlas")[2].decode())
            self.assertTrue([n for n, _ in ours if n.startswith("profd_")])


def daemon_serial(daemon):
    """The certificate that is served right now."""
    host, port = daemon.metrics_address.rsplit(":", 1)
    return ssl.get_server_certificate((host, int(port)))


if __name__ == "__main__":
    main()
