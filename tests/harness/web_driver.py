"""A headless Chromium over chromedriver's HTTP interface, and a folder served to it."""

import base64
import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

from profd_harness import eventually, scaled
from text_files import write_bytes


def missing():
    """Why there is no browser here; None if there is one."""
    for tool in ("chromium", "chromedriver"):
        if shutil.which(tool) is None:
            return f"no {tool} (scripts/install-deps --for browser)"
    return None


def require():
    """Without a browser the test, or the class whose set-up this is, is skipped."""
    why = missing()
    if why:
        raise unittest.SkipTest(why)


class Browser:
    """Use as a context manager."""

    def __init__(self, width=1600, height=1000):
        self.size = (width, height)
        self.folder = tempfile.mkdtemp(prefix="profd-browser-")
        self.process = None
        self.session = None

    def __enter__(self):
        log = open(os.path.join(self.folder, "log"), "wb")
        with log:
            self.process = subprocess.Popen(["chromedriver", "--port=0"], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT)
        try:
            self.port = eventually(self._port, what="chromedriver listens")
            answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "browserName": "chrome", "goog:chromeOptions": {
                    "binary": shutil.which("chromium"),
                    "args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                             "--disable-dev-shm-usage", "--no-first-run",
                             "--user-data-dir=" + os.path.join(self.folder, "profile"),
                             "--window-size={},{}".format(*self.size)]}}}})
        except BaseException:
            self.__exit__()
            raise
        self.session = answer["sessionId"]
        self.version = answer["capabilities"]["browserVersion"]
        return self

    def __exit__(self, *_):
        if self.session:
            with contextlib.suppress(OSError):
                self.call("DELETE", f"/session/{self.session}")
        self.process.terminate()
        try:
            self.process.wait(scaled(20))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _port(self):
        if self.process.poll() is not None:
            raise AssertionError("chromedriver ended:\n" + self.log())
        words = self.log().partition("started successfully on port ")[2].split()
        return int(words[0].rstrip(".")) if words else None

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=scaled(180)) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode(errors="replace")[:2000]) from None

    def open(self, url):
        self.call("POST", f"/session/{self.session}/url", {"url": url})

    def run(self, script):
        """The value a script returns."""
        return self.call("POST", f"/session/{self.session}/execute/sync",
                         {"script": script, "args": []})

    def screenshot(self, path):
        image = base64.b64decode(self.call("GET", f"/session/{self.session}/screenshot"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_bytes(path, image)
        return image


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The folder at the address this yields."""
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
