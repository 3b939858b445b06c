"""What the checks of the booted system (boot_check.py, user_checks.py) share."""

import contextlib
import json
import os
import pwd
import re
import stat
import subprocess
import time
import urllib.request

UNIT = "profd.service"
OUT = "/boot-test-out"
DROP_INS = f"/run/systemd/system/{UNIT}.d"
METRICS = "http://127.0.0.1:9464"
START = ("--all", "--job", "boot", "--sys-interconnection-freq", "50", "--sys-hardware-mem-freq", "50",
         "--host-sys", "cpu,mem")


class Failed(Exception):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


def equal(got, wanted, what):
    expect(got == wanted, f"{what}: {got!r}, expected {wanted!r}")


def eventually(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def run(*command, check=True, **how):
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300,
                            stdin=subprocess.DEVNULL, **how)
    if check and result.returncode != 0:
        raise Failed(f"{' '.join(command)}: {result.returncode}\n{result.stdout[-1500:]}"
                     f"\n{result.stderr[-1500:]}")
    return result


def systemctl(*words, **how):
    return run("systemctl", *words, **how).stdout


def show(name):
    return systemctl("show", UNIT, "--value", "-p", name).strip()


def pid():
    return int(show("MainPID"))


def running(other_than=0):
    """The pid of a daemon that is up, and is another than that."""
    def up():
        if show("ActiveState") == "failed":
            raise Failed(f"the unit failed: {show('Result')}")
        return show("SubState") == "running" and pid() not in (0, other_than) and pid()

    return eventually(up, "the unit is running")


def as_trainer():
    entry = pwd.getpwnam("trainer")
    groups = os.getgrouplist("trainer", entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups, "cwd": entry.pw_dir}


def ctl(*words, expect_code=(0,), **how):
    result = run("profctl", "--json", *words, check=False, **how)
    expect(result.returncode in expect_code,
           f"profctl {' '.join(words)}: {result.returncode}\n{result.stdout[-800:]}{result.stderr[-800:]}")
    return json.loads(result.stdout) if result.stdout.strip() else {}


def scrape():
    with urllib.request.urlopen(f"{METRICS}/metrics", timeout=30) as answer:
        return answer.read().decode()


def series(text, name):
    return re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M)


def drop_in(name, text):
    """Writes (or with None removes) a drop-in; the next start sees it."""
    os.makedirs(DROP_INS, exist_ok=True)
    path = os.path.join(DROP_INS, f"{name}.conf")
    if text is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    else:
        with open(path, "w", encoding="ascii") as out:
            out.write("[Service]\n" + text + "\n")
    systemctl("daemon-reload")


def status_of(process):
    with open(f"/proc/{process}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def journal(*words):
    return run("journalctl", "--no-pager", "-q", "-o", "cat", *words).stdout


def records(session_id, at_least):
    return eventually(lambda: (lambda s: s if int(s["records"]) >= at_least else None)(
        ctl("show", session_id, **as_trainer())), f"session {session_id} has {at_least} records")


def begin(*flags):
    session = ctl("start", *(flags or START), expect_code=(0, 5), **as_trainer())
    records(session["session_id"], 100)
    return session["session_id"]


def goes_on(session_id, segments):
    session = eventually(
        lambda: (lambda s: s if len(s["segments"]) >= segments and s["state"] == "running" else None)(
            ctl("show", session_id, **as_trainer())), f"session {session_id} continues")
    return records(session_id, int(session["records"]) + 100)


def finish(session_id):
    """Ends it, takes the dumps away and verifies them."""
    ctl("stop", session_id, expect_code=(0, 5), **as_trainer())
    session = ctl("show", session_id, **as_trainer())
    equal(session["state"], "done", "the session")
    fetched = ctl("fetch", session_id, "--out", "dumps", **as_trainer())["paths"]
    equal(len(fetched), len(session["segments"]), "dumps")
    run("profctl", "verify", *fetched, **as_trainer())
    for segment in session["segments"]:
        owner = os.stat(segment["dump_path"])
        equal((owner.st_uid, stat.S_IMODE(owner.st_mode)), (as_trainer()["user"], 0o750),
              "owner and mode of the dump")
    return session
