"""Certificates for tests: made by profctl, and by openssl where profctl rightly makes none."""

import os
import shutil
import subprocess

from profd_harness import PROFCTL, RUNNER, scaled

OPENSSL = shutil.which("openssl")


def call(*arguments, **how):
    return subprocess.run(RUNNER + [str(a) for a in arguments], capture_output=True, text=True,
                          check=False, timeout=scaled(60), stdin=subprocess.DEVNULL, **how)


def tls_init(folder, *more):
    made = call(PROFCTL, "tls", "init", folder, "--hosts", "localhost,127.0.0.1",
                "--users", "alice,bob,mallory", "--admin", "ops", "--viewer", "graf", *more)
    assert made.returncode == 0, made.stderr
    return folder


def tls_section(folder, **more):
    """profd's [tls] with what tls_init() has made there."""
    return {"listen": "127.0.0.1:0", "certificate": folder + "/server.crt", "key": folder + "/server.key",
            "client_ca": folder + "/ca.crt", **more}


def openssl(*arguments):
    done = call(OPENSSL, *arguments)
    assert done.returncode == 0, done.stderr


def issue(authority, folder, subject, days):
    """A client's folder, signed by the authority with openssl's own tool."""
    os.makedirs(folder)
    key, request = os.path.join(folder, "client.key"), os.path.join(folder, "request")
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-out", request, "-subj", subject)
    os.chmod(key, 0o600)
    openssl("x509", "-req", "-in", request, "-CA", authority + "/ca.crt", "-CAkey",
            authority + "/ca.key", "-CAcreateserial", "-days", str(days), "-out",
            os.path.join(folder, "client.crt"))
    shutil.copy(authority + "/ca.crt", folder)
    return folder
