#!/usr/bin/env python3
"""Metrics that are pushed: to a real Prometheus by remote write, to a small collector by OTLP/HTTP, with and without
TLS, and to receivers that are slow, broken or away."""

import gzip
import http.server
import os
import shutil
import socket
import ssl
import struct
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dashboards"))
from perfetto_reader import varint
from prometheus import Prometheus
from profd_harness import Daemon, eventually, main, temp_folder
from text_files import files_below
from tls_files import tls_init

# Field numbers of OTLP's metrics, as opentelemetry-proto 1.x has them: {number: (name, what it is)}.
KEY_VALUE = {1: ("key", "text"), 2: ("value", {1: ("text", "text")})}
NUMBER = {2: ("start", "fixed"), 3: ("time", "fixed"), 4: ("value", "double"), 7: ("attributes", KEY_VALUE)}
BUCKETS = {2: ("start", "fixed"), 3: ("time", "fixed"), 4: ("count", "fixed"), 5: ("sum", "double"),
           6: ("counts", "<Q"), 7: ("bounds", "<d"), 9: ("attributes", KEY_VALUE)}
METRIC = {1: ("name", "text"), 2: ("help", "text"), 3: ("unit", "text"), 5: ("gauge", {1: ("points", NUMBER)}),
          7: ("sum", {1: ("points", NUMBER), 2: ("temporality", "number"), 3: ("monotonic", "number")}),
          9: ("histogram", {1: ("points", BUCKETS), 2: ("temporality", "number")})}
REQUEST = {1: ("resources", {1: ("resource", {1: ("attributes", KEY_VALUE)}),
                             2: ("scopes", {1: ("scope", {1: ("name", "text"), 2: ("version", "text")}),
                                            2: ("metrics", METRIC)})})}
CUMULATIVE = 2


def decode(data, fields):
    """{name: [values]} of a protobuf message; a field that is not in `fields` is an error."""
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(data, at)
        name, kind = fields[tag >> 3]
        if tag & 7 == 0:
            value, at = varint(data, at)
            assert kind == "number", name
        elif tag & 7 == 1:
            value = struct.unpack_from("<d" if kind == "double" else "<Q", data, at)[0]
            assert kind in ("double", "fixed"), name
            at += 8
        else:
            assert tag & 7 == 2, (name, tag)
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if kind == "text":
                value = value.decode()
            elif isinstance(kind, str):  # packed numbers
                value = [number for number, in struct.iter_unpack(kind, value)]
            else:
                value = decode(value, kind)
        found.setdefault(name, []).append(value)
    return found


def attributes(message):
    return {pair["key"][0]: pair.get("value", [{}])[0].get("text", [""])[0] for pair in message.get("attributes", [])}


class Collector:
    """Takes OTLP over HTTP and keeps every message; `status` is what it answers."""

    def __init__(self, tls=None):
        self.status, self.messages, self.heads = 200, [], []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.heads.append((self.path, dict(self.headers)))
                if collector.status == 200:
                    collector.messages.append(decode(gzip.decompress(body), REQUEST))
                self.send_response(collector.status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls + "/server.crt", tls + "/server.key")
            context.load_verify_locations(tls + "/ca.crt")
            context.verify_mode = ssl.CERT_REQUIRED
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def metrics(self):
        """{name: metric} of everything that has come."""
        return {metric["name"][0]: metric for message in list(self.messages) for resource in message["resources"]
                for scope in resource["scopes"] for metric in scope["metrics"]}


class Push(unittest.TestCase):
    def daemon(self, **push):
        daemon = Daemon(config={"push": {"interval_s": 1, **push}})
        self.addCleanup(daemon.dispose)
        daemon.start()
        return daemon

    def pushed(self, daemon, sink):
        return daemon.metric("profd_push_messages_total", sink=sink) or 0

    def test_off_by_default(self):
        with Daemon() as daemon:
            self.assertEqual([name for name, _ in daemon.scrape() if name.startswith("profd_push")], [])

    def test_prometheus_receives_what_a_scrape_shows(self):
        with Prometheus() as prometheus:
            daemon = self.daemon(remote_write_url=f"{prometheus.url}/api/v1/write", labels=["cluster=c 1"])
            eventually(lambda: prometheus.query('atlas_npu_temperature_celsius{job="profd"}'), what="temperatures")
            temperature = prometheus.query("atlas_npu_temperature_celsius")
            names = {(name, dict(labels).get("npu")) for name, labels in daemon.scrape()
                     if name == "atlas_npu_temperature_celsius"}
            self.assertGreater(len(names), 0)
            self.assertLessEqual({npu for _, npu in names}, {row["metric"]["npu"] for row in temperature})
            for row in temperature:
                self.assertEqual((row["metric"]["cluster"], row["metric"]["instance"]), ("c 1", socket.gethostname()))
            # All of them, and a value that a scrape shows too.
            eventually(lambda: int(prometheus.query('count({job="profd"})')[0]["value"][1]) > 0.8 * len(daemon.scrape()), what="all of them")
            build = prometheus.query("profd_build_info")[0]
            self.assertEqual(build["value"][1], "1")
            self.assertEqual(build["metric"]["version"], daemon.node["version"])
            self.assertRegex(build["metric"].get("revision", ""), r"^([0-9a-f]{12,40}(-dirty)?)?$")  # an empty label is none
            # It continues: every interval is another sample.
            eventually(lambda: int(prometheus.query("count_over_time(profd_build_info[1m])")[0]["value"][1]) >= 3,
                       what="three samples")
            self.assertIsNone(daemon.metric("profd_push_failures_total", sink="remote_write"))

    def test_otlp(self):
        with Collector() as collector, tempfile.NamedTemporaryFile("w", suffix=".headers") as headers:
            headers.write("Authorization: Bearer secret-token\n")
            headers.flush()
            daemon = self.daemon(otlp_url=f"http://127.0.0.1:{collector.port}", headers_file=headers.name,
                                 labels=["rack=7"])
            # Names of a scrape, without those of histograms' parts.
            eventually(lambda: len((scraped := {name for name, _ in daemon.scrape()}) & set(collector.metrics())) > 0.8 * len(scraped), what="all of them")
            metrics = eventually(lambda: {**collector.metrics()} if len(collector.messages) >= 4 else None)
            path, head = collector.heads[0]
            self.assertEqual((path, head["Content-Type"]), ("/v1/metrics", "application/x-protobuf"))
            self.assertEqual(head["Authorization"], "Bearer secret-token")
            self.assertNotIn("secret-token", daemon.log(10000))
            resource = collector.messages[0]["resources"][0]
            about = attributes(resource["resource"][0])
            self.assertEqual((about["service.name"], about["host.name"], about["rack"]),
                             ("profd", socket.gethostname(), "7"))
            self.assertEqual(about["service.version"], daemon.node["version"])
            self.assertEqual(resource["scopes"][0]["scope"][0]["name"], ["profd"])
            temperature = metrics["atlas_npu_temperature_celsius"]
            self.assertEqual(temperature["unit"], ["Cel"])
            self.assertEqual({attributes(point)["npu"] for point in temperature["gauge"][0]["points"]},
                             {dict(labels)["npu"] for name, labels in daemon.scrape()
                              if name == "atlas_npu_temperature_celsius"})
            cpu = metrics["process_cpu_seconds_total"]["sum"][0]
            self.assertEqual((cpu["temporality"], cpu["monotonic"]), ([CUMULATIVE], [1]))
            point = cpu["points"][0]
            self.assertLess(0, point["start"][0])
            self.assertLess(point["start"][0], point["time"][0])
            self.assertGreater(point["value"][0], 0)
            for metric in metrics.values():
                for kind in ("gauge", "sum"):  # a point without a value is invalid in OTLP, and 0 is a value
                    for point in metric.get(kind, [{"points": []}])[0]["points"]:
                        self.assertIn("value", point, metric["name"])
                for point in metric.get("histogram", [{"points": []}])[0]["points"]:
                    self.assertIn("sum", point, metric["name"])
                    # Without buckets (metrics.npu_extra) a histogram has its count and sum only.
                    bounds, counts = point.get("bounds", [()])[0], point.get("counts", [()])[0]
                    if counts:
                        self.assertEqual(len(bounds) + 1, len(counts), metric["name"])
                        self.assertEqual(sum(counts), point["count"][0] if "count" in point else 0)

    def test_tls_with_a_client_certificate(self):
        base = temp_folder(self)
        tls = tls_init(base + "/tls")
        files = {"ca": tls + "/ca.crt"}
        client = {"certificate": self.find(tls, "client.crt"), "key": self.find(tls, "client.key")}
        server = os.path.dirname(self.find(tls, "server.crt"))
        if not os.path.exists(server + "/ca.crt"):
            shutil.copy(tls + "/ca.crt", server)
        with Collector(tls=server) as collector:
            url = f"https://127.0.0.1:{collector.port}"
            # Not without it; and not to a receiver of a foreign authority.
            for more in (files, client):
                daemon = self.daemon(otlp_url=url, **more)
                eventually(lambda d=daemon: d.metric("profd_push_failures_total", sink="otlp"), what="it fails")
                self.assertEqual(collector.messages, [])
                daemon.dispose()
            self.daemon(otlp_url=url, **files, **client)
            eventually(lambda: collector.messages, what="a message by TLS")

    def find(self, folder, name):
        found = sorted(path for path in files_below(folder) if os.path.basename(path) == name)
        self.assertTrue(found, f"no {name} in {folder}")
        return found[0]

    def test_a_receiver_that_starts_later_loses_nothing(self):
        with Collector() as collector:
            collector.status = 503
            daemon = self.daemon(otlp_url=f"http://127.0.0.1:{collector.port}")
            eventually(lambda: daemon.metric("profd_push_failures_total", sink="otlp", reason="status_503"))
            self.assertGreater(daemon.metric("profd_push_queue_bytes", sink="otlp"), 0)
            collector.status = 200
            eventually(lambda: self.pushed(daemon, "otlp") >= 4, what="it has caught up")
            self.assertIsNone(daemon.metric("profd_push_dropped_samples_total", sink="otlp"))
            times = [scope["metrics"][0].get("gauge", scope["metrics"][0].get("sum"))[0]["points"][0]["time"][0]
                     for message in collector.messages for scope in message["resources"][0]["scopes"]]
            self.assertEqual(times, sorted(times))
            self.assertIn("metrics are pushed again", daemon.log())

    def test_a_silent_receiver_delays_nothing_else(self):
        """It takes connections and says nothing: sessions, scrapes and the end go on as ever."""
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(64)
            port = silent.getsockname()[1]
            daemon = self.daemon(otlp_url=f"http://127.0.0.1:{port}", remote_write_url=f"http://127.0.0.1:{port}/w",
                                 timeout_ms=60000)
            session = daemon.ctl("start", "--sys-hardware-mem-freq", "50", "--devices", "0")["session_id"]
            daemon.until_records(session, 100)
            self.assertEqual(daemon.ctl("stop", session)["sessions"][0]["state"], "done")
            self.assertGreater(len(daemon.scrape()), 100)
            self.assertEqual(self.pushed(daemon, "otlp"), 0)
            self.assertEqual(daemon.stop(seconds=30), 0)

    def test_problems_are_reported_at_once(self):
        daemon = Daemon(config={"push": {"otlp_url": "collector:4317", "remote_write_url": "http://h:x/",
                                         "labels": ["a"], "interval_s": 0}})
        self.addCleanup(daemon.dispose)
        self.assertEqual(daemon.start_in_vain(), 2)
        for text in ("push.otlp_url", "push.remote_write_url", "push.labels", "push.interval_s"):
            self.assertIn(text, daemon.log())


if __name__ == "__main__":
    main()
