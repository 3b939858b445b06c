"""One daemon in one state, each kind of one function's faults on a device of its own, and a neighbour
in good health: what was seen of every device, for the cells of the matrix to be judged by."""

import json
import os
import re
import signal
import time

import matrix
from fault_common import FILES, HZ, OK, PARTIAL, START, daemon, manifest, read_dump, start, stop, time_gaps
from matrix import CALLS, DROP, GARBAGE, HANG, SHORT
from profd_harness import eventually, outcome, replace_file, scaled

COLLECTORS = [file.split(".")[0] for file in FILES]
RECORDER = {"recorder": {"enabled": True, "collectors": [f"{name}={HZ}" for name in COLLECTORS],
                         "seconds": 30}}


def action(fault):
    return {HANG: "hang", SHORT: "short 7", GARBAGE: "garbage"}.get(fault, fault)


def rules(call, device, fault):
    """Lines of the script for libs/scripted.cc."""
    if fault == DROP:
        # What a driver says of a card that is no more.
        return [f"drvDeviceStatus {device} code 4", f"prof_channel_read {device} code -1",
                f"prof_drv_start {device} code 1", f"halGetDeviceInfo {device} code 4",
                f"halGetDeviceInfoByBuff {device} code 4", f"prof_drv_get_channels {device} code -1"]
    if call == "poll":
        return [f"prof_channel_poll -1 {action(fault)}"]
    return [f"{'*' if call == 'card' else CALLS[call]} {device} {action(fault)}"]


def scripted(devices, **how):
    d = daemon(devices=devices, library="scripted", **how)
    d.env["PROFD_FAULT_SCRIPT"] = os.path.join(d.base, "script")
    return d


def play(d, lines):
    replace_file(d.env["PROFD_FAULT_SCRIPT"], "".join(line + "\n" for line in lines))


def whole(dump, device):
    """What is wrong with a device's data, or ""."""
    for file in FILES:
        channel = dump.channel(file, device)
        if channel is None or len(channel) < 5:
            return f"{file} of device {device} has {0 if channel is None else len(channel)} records"
        found = time_gaps(dump, device, file)
        if found:
            return f"{len(found)} gaps in {file} of device {device}: {found[:3]}"
    return ""


def finish(d, session):
    """Stops it; the final session, how long that took, its dump and what verify says."""
    begin = time.monotonic()
    done = stop(d, session, expect=(OK, PARTIAL))
    return look_at(d, done, time.monotonic() - begin)


def problems_of(verified):
    """What `profctl verify` found, in lines."""
    try:
        return "".join(f"{one['where']}: {one['what']}\n" for dump in json.loads(verified.stdout)["dumps"]
                       for one in dump["problems"])
    except (ValueError, KeyError):
        return verified.stdout + verified.stderr or "verify failed"


def look_at(d, done, seconds=0.0):
    verified = d.run("verify", done["dump_path"])
    return {"session": done, "seconds": seconds, "dump": read_dump(done), "manifest": manifest(done),
            "verify": "" if verified.returncode == 0 else problems_of(verified)}


def everything_again(d):
    """The fault is over: a session on all devices begins, loses nothing and ends."""
    def begun():
        answer = d.run("start", *START, "--require-all")
        return json.loads(answer.stdout) if answer.returncode == OK else None

    session = eventually(begun, 90, what="all devices can be recorded again", every=0.2)
    # Of every channel: on a busy machine one device begins long after another.
    eventually(lambda: all(o["records"] >= 10 for o in d.show(session["session_id"])["outcomes"]), 60,
               what="records of every channel")
    return finish(d, session)


def results_of(view, device):
    return {o["result"] for o in view["outcomes"] if o["device"] == device}


def details_of(view, device):
    return " | ".join(o["detail"] for o in view["outcomes"] if o["device"] == device)


def value(metrics, name, device):
    return sum(v for (n, labels), v in metrics.items()
               if n == name and ("npu", str(device)) in labels)


def mismatch(expect, device, view, metrics):
    """What differs from the table while the fault is there, or ""."""
    results = results_of(view, device)
    if not results <= set(expect.results):
        return f"outcomes {results}, expected {expect.results}: {details_of(view, device)}"
    if expect.says.format(device=device) not in details_of(view, device):
        return f"details {details_of(view, device)!r} do not say {expect.says!r}"
    if expect.counted and not value(metrics, expect.counted, device):
        return f"{expect.counted} does not count it"
    return ""


class Pass:
    """run() plays it; then .seen[fault] has what is wrong ("" where nothing is) and .common the same of
    the daemon and the neighbour."""

    def __init__(self, call, state):
        self.call, self.state = call, state
        self.faults = matrix.faults_of(call)
        self.good = len(self.faults)
        self.devices = self.good + 1
        self.seen = {fault: [] for fault in self.faults}
        self.common = []

    def expect(self, fault):
        return matrix.in_state(self.call, fault, self.state)

    def check(self, fault, problem_text):
        if problem_text:
            (self.common if fault is None else self.seen[fault]).append(problem_text)

    def script(self):
        return [line for device, fault in enumerate(self.faults)
                for line in rules(self.call, device, fault)]

    def run(self):
        try:
            if self.call == "poll":
                self.polls()
            else:
                self.devices_at_once()
        except Exception as error:  # every cell of the pass is to say so
            self.common.append(f"{type(error).__name__}: {error}")
        return self

    def devices_at_once(self):
        early = self.state == "recorder on" and self.call == "start"
        d = scripted(self.devices, config=RECORDER if self.state == "recorder on" else None)
        if early:
            play(d, self.script())
        with d:
            getattr(self, self.state.replace(" ", "_"))(d)
            play(d, [])
            # The very next session: nothing that the driver still held of the last one is in it.
            self.judge_again(everything_again(d))
            self.end(d)

    def end(self, d):
        self.check(None, "" if d.alive() else "profd died")
        code = d.stop(signal.SIGTERM)
        self.check(None, "" if code == 0 else f"profd ended with {code}")

    def judge_again(self, seen):
        for device, fault in enumerate([*self.faults, None]):
            self.check(fault, whole(seen["dump"], device) and "afterwards: " + whole(seen["dump"], device))
        self.check(None, seen["verify"] and "afterwards: " + seen["verify"])

    def judge_dump(self, seen):
        """Of the dump that was written while the faults were there."""
        self.check(None, whole(seen["dump"], self.good))
        self.judge_verify(seen)

    def judge_verify(self, seen):
        for line in seen["verify"].splitlines():
            device = re.search(r"of device (\d+):", line)
            hit = int(device[1]) if device and int(device[1]) < len(self.faults) else None
            fault = None if hit is None else self.faults[hit]
            # Bytes that are not what the card measured: verify is right to doubt them.
            if fault is None or not (self.call == "read" and fault in (GARBAGE, "code 115")):
                self.check(fault, "verify: " + line)

    def judge_final(self, seen):
        self.judge_dump(seen)
        session = seen["session"]
        self.check(None, "" if session["state"] == "done" else f"state {session['state']}")
        self.check(None, "" if results_of(session, self.good) == {"finished"}
                   else f"the neighbour's outcomes: {details_of(session, self.good)}")
        for device, fault in enumerate(self.faults):
            expect = self.expect(fault)
            results = results_of(session, device)
            allowed = set(expect.final or expect.results)
            self.check(fault, "" if results <= allowed else
                       f"final outcomes {results}, expected {allowed}: {details_of(session, device)}")
            warned = [w for w in seen["manifest"]["warnings"] if w.startswith(f"device {device} ")]
            self.check(fault, "" if not expect.warns or warned or "failed" in results
                       else f"no warning of it: {seen['manifest']['warnings']}")
            self.check(fault, whole(seen["dump"], device) if expect.whole else "")

    # States -----------------------------------------------------------------------------------

    def idle(self, d):
        play(d, self.script())
        self.check(None, "" if len(d.ctl("devices")["devices"]) == self.devices
                   else "not all devices are listed")
        self.check(None, "" if d.scrape() else "nothing is scraped")
        session = start(d, devices=str(self.good))
        d.until_records(session["session_id"], 60)
        seen = finish(d, session)
        self.judge_dump(seen)

    def session(self, d):
        if self.call == "start":
            play(d, self.script())
            session = start(d, expect=(OK, PARTIAL))
        else:
            session = start(d)
            d.until_records(session["session_id"], 30 * self.devices)
            play(d, self.script())
        self.wait_for_expected(d, session)
        if self.call == "card":
            self.wait_for_return(d, session)
        self.judge_final(finish(d, session))

    def wait_for_expected(self, d, session):
        end = time.monotonic() + scaled(30)
        while True:
            view, metrics = d.show(session["session_id"]), d.scrape()
            wrong = {fault: mismatch(self.expect(fault), device, view, metrics)
                     for device, fault in enumerate(self.faults)}
            if not any(wrong.values()) or time.monotonic() > end:
                break
            time.sleep(0.2)
        for fault, text in wrong.items():
            self.check(fault, text)
        self.check(None, "" if results_of(view, self.good) == {"running"}
                   else f"the neighbour: {details_of(view, self.good)}")

    def wait_for_return(self, d, session):
        """The card is back: the same session records it again, and its gaps are reported."""
        play(d, [])
        before = d.show(session["session_id"])

        def more():
            view = d.show(session["session_id"])
            return all(outcome(view, name, device)["result"] == "running" and
                       outcome(view, name, device)["records"] >
                       outcome(before, name, device)["records"] + HZ // 2
                       for name in COLLECTORS for device in range(self.devices))

        eventually(more, 60, what="every card's data flows again")

    def stop_in_progress(self, d):
        session = start(d)
        d.until_records(session["session_id"], 30 * self.devices)
        play(d, self.script())
        self.judge_final(finish(d, session))

    def recorder_on(self, d):
        def held():
            recorder = d.ctl("status")["recorder"]
            return recorder["held_ns"] / 1e9 >= 1.5

        eventually(held, what="something is recorded")
        play(d, self.script())
        # The faults are there while the recorder continues, for a second or two of its own clock.
        begin = d.ctl("status")["recorder"]["held_ns"] / 1e9
        eventually(lambda: d.ctl("status")["recorder"]["held_ns"] / 1e9 > begin + 2, every=0.2,
                   what="the recorder continues")
        dumped = d.ctl("dump", "--last", "3s", "--devices", str(self.good))
        done = d.until_state(dumped["session_id"], "done", "failed")
        self.judge_dump(look_at(d, done))

    # Polls ------------------------------------------------------------------------------------

    def polls(self):
        """The function is the whole node's: one code after the other."""
        with scripted(2, config=RECORDER if self.state == "recorder on" else None) as d:
            for fault in self.faults:
                try:
                    self.good, self.devices = 1, 2
                    self.one_poll(d, fault)
                except Exception as error:  # the next codes are to be tried all the same
                    self.check(fault, f"{type(error).__name__}: {error}")
                    play(d, [])
                    for session in d.ctl("list", "--active")["sessions"]:
                        stop(d, session, expect=(OK, PARTIAL))
            self.end(d)

    def one_poll(self, d, fault):
        lines = rules("poll", -1, fault)
        if self.state == "idle":
            play(d, lines)
            self.check(fault, "" if d.scrape() else "nothing is scraped")
            play(d, [])
            session = start(d)
        else:
            session = start(d)
            d.until_records(session["session_id"], 60)
            play(d, lines)
            errors = matrix.code_of(fault) in (-1, -10)
            if self.state != "stop in progress":
                if fault == HANG:
                    eventually(lambda: d.metric("profd_pump_restarts_total"), what="the pump is replaced")
                elif errors:
                    eventually(lambda: d.metric("profd_pump_poll_errors_total", code=fault.split()[1]),
                               what="the code is counted")
                play(d, [])
        if self.state != "stop in progress":
            d.until_records(session["session_id"], d.show(session["session_id"])["records"] + 60)
        seen = finish(d, session)
        play(d, [])
        for device in range(2):
            self.check(fault, whole(seen["dump"], device))
        self.check(fault, seen["verify"])
        self.check(fault, "" if seen["session"]["state"] == "done" else seen["session"]["state"])
