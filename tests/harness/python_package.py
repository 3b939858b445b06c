"""Scripts that use the Python package, over the library of the build, and interpreters for them."""

import json
import os
import re
import subprocess
import sys
import textwrap
import unittest

from profd_harness import BUILD, REPO, is_sanitized, scaled

PACKAGE = os.path.join(REPO, "client", "python")
LIBRARY = os.path.join(BUILD, "lib", "libprofd.so.0")


def runtime_of_sanitizer():
    """A sanitized library wants its runtime to be there before Python is, whose leaks are not ours."""
    if not is_sanitized():
        return {}
    needed = subprocess.run(["ldd", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"=> (\S+/lib[atu]b?san\.so\S*)", needed)
    return {"LD_PRELOAD": ":".join(found), "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def environment(d=None, **more):
    """Of a script that uses the package, with this daemon."""
    attach = {"PROFD_ATTACH_SOCKET": d.attach_socket} if d is not None else {}
    return {**os.environ, "PYTHONPATH": PACKAGE, "PYTHONWARNINGS": "default", "PYTHONDONTWRITEBYTECODE": "1",
            "PROFD_LIBRARY": LIBRARY, **runtime_of_sanitizer(), **attach, **more}


def python(code, d=None, env=None, **how):
    """Runs the script (with the package on its path) to its end."""
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment(d, **(env or {})),
                          capture_output=True, text=True, check=False, timeout=scaled(120), **how)


def answer(result):
    if result.returncode != 0:
        raise AssertionError(f"{result.returncode}\n{result.stdout}\n{result.stderr}")
    return json.loads(result.stdout.strip().splitlines()[-1])


def python_with(*modules):
    """The first interpreter that has these modules: ours, or Debian's own, which has the packages."""
    for python in (sys.executable, "/usr/bin/python3"):
        command = [python, "-c", "import " + ", ".join(modules)]
        if os.path.exists(python) and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return python
    raise unittest.SkipTest(f"no Python with {' and '.join(modules)} (scripts/install-deps --for test)")
