"""What users do on the booted system: the demo job with its operators, advice, page, selftest, the archive.
Checks as those of boot_check.py, which runs them."""

import contextlib
import gzip
import json
import os
import pwd
import re
import signal
import subprocess
import time
import urllib.request

import clickhouse_server
from boot_tools import (OUT, UNIT, as_trainer, begin, ctl, equal, eventually, expect, finish, journal, run,
                        status_of, systemctl)

SIM = "/usr/lib/profd/sim"
JOB, RANKS = "conv", 2
CONFIG = "/etc/profd/profd.toml"
ARCHIVE = "profd-archive.service"
ARCHIVE_DROP_INS = f"/run/systemd/system/{ARCHIVE}.d"
ARCHIVE_ENV = "/etc/profd/archive.env"
CLICKHOUSE = "/boot-test/clickhouse"


@contextlib.contextmanager
def training():
    """The demo job as a user starts it who has installed libprofd: nothing says where profd is. Its last rank
    is slower than the other one."""
    home = as_trainer()["cwd"]
    with open(f"/usr/share/profd/jobs/{JOB}-{RANKS}.toml", encoding="utf-8") as file:
        text = re.sub(r"(?m)^steps = \d+$", "steps = 1000000", file.read())
    with open(f"{home}/job.toml", "w", encoding="utf-8") as file:
        file.write(text + "\n[problems]\nslow_rank = 50\n")
    with open(f"{OUT}/job", "wb") as said:
        job = subprocess.Popen([f"{SIM}/sim_train", f"{home}/job.toml", f"{home}/job"], stdin=subprocess.DEVNULL,
                               stdout=said, stderr=said, start_new_session=True,
                               env=dict(os.environ, LD_LIBRARY_PATH=SIM), **as_trainer())
    try:
        eventually(lambda: len(attached()) == RANKS, "all ranks are attached")
        yield job
        expect(job.poll() is None, f"the job ended by itself with {job.poll()}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def attached():
    return [process["pid"] for job in ctl("jobs", **as_trainer())["jobs"] if job["job_id"] == JOB
            for process in job["processes"] if process.get("attached")]


def served(session_id, option):
    def now():
        session = ctl("show", session_id, **as_trainer())
        outcome = next(each for each in session["outcomes"] if each["collector"] == option)
        return outcome["result"] == "running" and outcome
    return eventually(now, f"{option} runs in the job")


def profile(provider):
    """Operators and channels in one session; the user's copy of its dump."""
    started = ctl("start", "--job", JOB, "--provider", provider, "--task-time", "l1", "--sys-hardware-mem-freq",
                  "50", expect_code=(0, 5), **as_trainer())
    outcome = served(started["session_id"], "task_time")
    expect(f"{RANKS} of {RANKS} processes" in outcome["detail"], f"task_time: {outcome}")
    time.sleep(3)
    ctl("stop", started["session_id"], **as_trainer())
    session = eventually(lambda: (lambda s: s if s["state"] == "done" else None)(
        ctl("show", started["session_id"], **as_trainer())), "the session is done")
    [copy] = ctl("fetch", started["session_id"], "--out", "dumps", **as_trainer())["paths"]
    copy = os.path.join(as_trainer()["cwd"], copy)
    run("profctl", "verify", copy, **as_trainer())
    return session, copy


def steps_of(dump):
    """Of all ranks, and how long their operators took."""
    ranks = ctl("analyze", dump, **as_trainer())["ranks"]
    equal([rank["rank"] for rank in ranks], list(range(RANKS)), "ranks in the dump")
    for rank in ranks:
        expect(rank["overall"]["computing_ms"] > 0, f"no operators of rank {rank['rank']}")
    return ", ".join(f"rank {rank['rank']} computed {rank['overall']['computing_ms']:.0f} ms" for rank in ranks)


def demo_job():
    """Kernels and communication of the installed demo job by each of the vendor's profilers, beside channels."""
    said = []
    with training():
        for provider in ("mspti", "aclprof"):
            _, dump = profile(provider)
            said.append(f"{provider}: {steps_of(dump)}")
    return "; ".join(said)


def advice():
    """Of what was recorded, and of what runs: the slower rank is named."""
    with training():
        _, dump = profile("mspti")
        run("profctl", "advise", "--live", **as_trainer())
    findings = {each["check"]: each for each in ctl("advise", dump, **as_trainer())["findings"]}
    expect("wait_for_rank" in findings, f"no wait_for_rank among {sorted(findings)}")
    title = findings["wait_for_rank"]["title"]
    expect(f"rank {RANKS - 1} " in title, f"another rank than the slower one: {title}")
    expect(findings["wait_for_rank"]["advice"], "a finding without advice")
    return title


def page():
    """profctl report's file, and profctl serve over the user's folder and the daemon's dumps."""
    home = as_trainer()["cwd"]
    [dump] = run("sh", "-c", "ls -d dumps/PROF_* | tail -1", **as_trainer()).stdout.split()
    run("profctl", "report", dump, "-o", "report.html", "--force", **as_trainer())
    with open(f"{home}/report.html", encoding="utf-8") as file:
        text = file.read()
    expect(text.rstrip().endswith("</html>"), "the report is cut off")
    server = subprocess.Popen(["profctl", "serve", "--json", "--listen", "127.0.0.1:0", "dumps"], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, **as_trainer())
    try:
        url, _, token = json.loads(server.stdout.readline())["url"].partition("?token=")

        def get(path):
            asked = urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token})
            with urllib.request.urlopen(asked, timeout=60) as answer:
                text = answer.read()
                return (gzip.decompress(text) if answer.headers["Content-Encoding"] == "gzip" else text).decode()
        expect("</html>" in get(""), "no page")
        runs = json.loads(get("api/runs"))["runs"]
        mine = next((each for each in runs if each["name"] == os.path.basename(dump)), None)
        expect(mine, f"{dump} is not among {[each['name'] for each in runs]}")
        ranks = len(json.loads(get("api/run/" + mine["id"]))["ranks"])
        expect(ranks > 0, "no ranks on the page")
    finally:
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=30)
    equal((server.returncode, err), (0, ""), "end of profctl serve")
    return f"{len(text) >> 10} KiB of report, {len(runs)} runs, {ranks} ranks"


def selftest():
    """As the user who trains, with the probe where the package puts it."""
    expected = {
        "hal_is_real": "no", "hal_complete": "yes", "chips_known": "yes", "calls_return": "yes",
        "hal_for_users": "yes", "mspti_there": "yes", "mspti_new": "yes", "aclprof_there": "yes", "observer": "yes",
        "record_layouts": "yes", "mspti_late": "yes", "mspti_keeps_up": "yes", "mspti_beside": "yes",
        "aclprof_thread": "yes"}
    before = [each["session_id"] for each in ctl("list", **as_trainer())["sessions"]]
    how = dict(as_trainer(), env=dict(os.environ, LD_LIBRARY_PATH=SIM))
    with training():
        report = ctl("selftest", "--active", "--job", JOB, "-o", "selftest.json", **how)
    answers = {each["id"]: each["answer"] for each in report["answers"]}
    wrong = [f"{each['id']}: {each['answer']}, {each['why']}" for each in report["answers"]
             if expected.get(each["id"], each["answer"]) != each["answer"]]
    expect(not wrong, "; ".join(wrong))
    with open(f"{as_trainer()['cwd']}/selftest.json", encoding="utf-8") as file:
        equal(json.load(file), report, "the report's file")
    equal([each["session_id"] for each in ctl("list", **as_trainer())["sessions"]], before, "sessions afterwards")
    return ", ".join(f"{list(answers.values()).count(word)} {word}" for word in ("yes", "no", "open"))


def archive_off():
    """The package brings the unit; without a database's password it does not run."""
    expect(not os.path.exists(ARCHIVE_ENV), f"{ARCHIVE_ENV} is there already")
    run("systemctl", "start", ARCHIVE)
    state = run("systemctl", "show", ARCHIVE, "--value", "-p", "ActiveState", "-p", "ConditionResult").stdout.split()
    equal(sorted(state), ["inactive", "no"], "state and condition")


def archive():
    """A finished dump ends up in a real database by the unit, under its full sandbox; profd's own queue, too."""
    if not os.path.isdir(CLICKHOUSE):
        return "no ClickHouse here"
    clickhouse_server.SERVER = f"{CLICKHOUSE}/clickhouse-server"
    server = clickhouse_server.ClickHouse("/run/clickhouse-of-test")
    os.environ["LD_LIBRARY_PATH"] = CLICKHOUSE
    try:
        server.start()
    finally:
        del os.environ["LD_LIBRARY_PATH"]
    with open(CONFIG, encoding="utf-8") as file:
        config = file.read()
    try:
        with open(CONFIG, "w", encoding="utf-8") as file:
            file.write(re.sub(r"(?m)^\[archive\]$",
                              f'[archive]\nto = "clickhouse://127.0.0.1:{server.http}/profiles"', config))
        with open(os.open(ARCHIVE_ENV, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            file.write(f'PROFCTL_CLICKHOUSE_USER={clickhouse_server.USER}\n'
                       f'PROFCTL_CLICKHOUSE_PASSWORD="{clickhouse_server.PASSWORD}"\n')
        os.makedirs(ARCHIVE_DROP_INS, exist_ok=True)
        with open(f"{ARCHIVE_DROP_INS}/kill-on-denial.conf", "w", encoding="ascii") as file:
            file.write("[Service]\nSystemCallErrorNumber=kill\n")
        systemctl("daemon-reload")
        systemctl("reload", UNIT)
        systemctl("enable", "--now", ARCHIVE)
        session = finish(begin())
        name = os.path.basename(session["dump_path"])

        def loaded():
            [dump] = [each for each in ctl("list", "--dumps")["dumps"] if each["name"] == name]
            return (dump.get("archive") or {}).get("state") == "loaded" and dump["archive"]
        entry = eventually(loaded, "the dump is in the database", 90)
        rows = server.number("SELECT sum(row_count) FROM profiles.loads WHERE state = 1 AND "
                             f"run = '{entry['run']}'")
        equal(rows, int(entry["rows"]), "rows in the database")
        process = int(run("systemctl", "show", ARCHIVE, "--value", "-p", "MainPID").stdout)
        facts = status_of(process)
        equal(facts["Uid"].split(), [str(pwd.getpwnam("profd-archive").pw_uid)] * 4, "the archive's uids")
        equal((facts["CapEff"], facts["CapBnd"]), ("0" * 16,) * 2, "the archive's capabilities")
        expect(not os.listdir("/var/lib/profd-archive/dumps"), "the copy is still there")
        wrong = journal(f"_SYSTEMD_UNIT={ARCHIVE}", "-p", "err")
        expect(not wrong, f"the archive's errors: {wrong}")
        equal(run("systemctl", "show", ARCHIVE, "--value", "-p", "NRestarts").stdout.strip(), "0", "its restarts")
        return f"{rows} rows of {name} in run {entry['run']}"
    finally:
        run("systemctl", "disable", "--now", ARCHIVE)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(ARCHIVE_ENV)
        with open(CONFIG, "w", encoding="utf-8") as file:
            file.write(config)
        systemctl("reload", UNIT)
        server.stop()


CHECKS = [demo_job, advice, page, selftest, archive_off, archive]
