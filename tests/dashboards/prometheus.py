"""Debian's Prometheus on a port of its own, scraping the given targets, with the rules of dashboards/."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

from profd_harness import REPO, eventually, scaled
from text_files import read_text, write_text

RULES = os.path.join(REPO, "dashboards", "rules")


class Prometheus:
    """A context manager. Scrapes and evaluates once a second; hurried alerts do not wait for their "for". Without a
    target it scrapes nothing, and takes what is pushed to it by remote write."""

    def __init__(self, target=None, hurried=False):
        if not shutil.which("prometheus"):
            raise unittest.SkipTest("prometheus is not installed (scripts/install-deps --for demo)")
        self.base = tempfile.mkdtemp(prefix="profd-prometheus-")
        self.log_path = os.path.join(self.base, "log")
        for name in ("recording.yml", "alerts.yml"):
            text = read_text(RULES, name)
            write_text(os.path.join(self.base, name), re.sub(r"^( +for:) \S+$", r"\1 1s", text, flags=re.M) if hurried else text)
        with open(os.path.join(self.base, "prometheus.yml"), "w", encoding="utf-8") as file:
            file.write("global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
                       "rule_files: [recording.yml, alerts.yml]\n"
                       "scrape_configs:\n"
                       + (f"  - {{job_name: profd, static_configs: [{{targets: ['{target}']}}]}}\n" if target else ""))
        self.more = [] if target else ["--web.enable-remote-write-receiver"]

    def __enter__(self):
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.base}/prometheus.yml",
                 f"--storage.tsdb.path={self.base}/data", "--web.listen-address=127.0.0.1:0", *self.more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.url = "http://" + eventually(self._address, 60, what="prometheus listens")
            eventually(self._ready, 60, what="prometheus is ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(scaled(30))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.base, ignore_errors=True)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def _address(self):
        if self.process.poll() is not None:
            raise AssertionError(f"prometheus ended with {self.process.returncode}\n{self.log()}")
        found = re.search(r'msg="Listening on" address=(\S+)', self.log())
        return found[1] if found else None

    def _ready(self):
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(f"{self.url}/-/ready", timeout=scaled(10)).status == 200
        return False

    def get(self, path, **query):
        """The data of an answer of the API; AssertionError with Prometheus's own words otherwise."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=scaled(30)) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode(errors='replace')}") from None

    def query(self, expr):
        """The vector of an instant query."""
        return self.get("query", query=expr)["result"]
