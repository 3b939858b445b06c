"""A timeline in chrome://tracing's viewer, in a headless Chromium."""

import contextlib
import glob
import os
import shutil
import tempfile

import web_driver
from profd_harness import RUNNER, eventually

# chrome://tracing is a page around this viewer. Debian's Chromium comes without it (the page answers
# ERR_FAILED), its Go sources bring it.
VIEWER = sorted(glob.glob("/usr/share/go-*/src/cmd/trace/static/trace_viewer_full.html"))
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "trace_viewer")


def missing():
    """Why there is no viewer here; None if there is one."""
    if RUNNER:
        return "not under emulation"
    return web_driver.missing() or (None if VIEWER else "no trace viewer (scripts/install-deps --for browser)")


@contextlib.contextmanager
def opened(trace):
    """A browser with the JSON file `trace` read: the script's `model` is what the viewer has of it."""
    with tempfile.TemporaryDirectory(prefix="profd-viewer-") as folder:
        page = shutil.copytree(PAGE, os.path.join(folder, "page"))
        for name in ("trace_viewer_full.html", "webcomponents.min.js"):
            shutil.copy(os.path.join(os.path.dirname(VIEWER[-1]), name), page)
        shutil.copy(trace, os.path.join(page, "trace.json"))
        with web_driver.served(page) as address, web_driver.Browser() as browser:
            browser.open(address + "/index.html")
            eventually(lambda: browser.run("return loaded || failure !== null"), 180,
                       what="the viewer has loaded the trace", every=0.2)
            assert browser.run("return failure") is None, browser.run("return failure")
            yield browser
