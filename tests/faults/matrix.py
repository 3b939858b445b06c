"""THE table of what may go wrong and what has to come of it: one cell for each fault and each state the
daemon is in then. test_matrix.py is the test of every cell, and writes the table with the results of the run to
reports/fault-matrix.md in the build directory.
"""

import dataclasses
import itertools
import re

# What a driver's function may do. "code N": it answers N and does nothing.
CODES = (-1, -2, -4, -5, -10, 115)
HANG, SHORT, GARBAGE, DROP = "hang", "short read", "garbage", "drop and return"
STATES = ("idle", "session", "stop in progress", "recorder on")
# Row of the table: function of the driver.
CALLS = {
    "start": "prof_drv_start",
    "read": "prof_channel_read",
    "stop": "prof_stop",
    "flush": "halProfDataFlush",
    "status": "drvDeviceStatus",
    "channels": "prof_drv_get_channels",
    "info": "halGetDeviceInfo",
    "info by buffer": "halGetDeviceInfoByBuff",
    "card": "every function",
    "poll": "prof_channel_poll",
}
OTHERS = "other devices lose nothing"


@dataclasses.dataclass(frozen=True)
class Expect:
    """What the collectors of the device that is hit say, and what counts it."""
    results: tuple           # of the outcomes while the fault is there
    says: str = ""           # within the outcome's detail
    counted: str = ""        # a metric of the device that is above 0
    final: tuple = ()        # of the outcomes after the session; empty: as before
    warns: bool = False      # the dump's manifest warns of the device
    whole: bool = False      # the device loses nothing either


@dataclasses.dataclass(frozen=True)
class Cell:
    name: str
    area: str
    fault: str
    state: str
    expect: object           # an Expect, or words
    test: str = ""           # "file:Class.test" that was there before; empty: test_matrix.py
    ci: bool = False         # part of the short form


GOES_ON = Expect(("running",), final=("finished",), whole=True)
STUCK = "profd_device_stuck"


def code_of(fault):
    return int(fault.split()[1]) if fault.startswith("code ") else None


def while_recording(call, fault):
    """The device's session while `fault` is there (for start: a session that begins then)."""
    code = code_of(fault)
    if call == "start":
        if fault == HANG:
            return Expect(("failed",), "has not returned", STUCK)
        return Expect(("busy",), "held by another process") if code == -10 else Expect(
            ("failed",), "device {device}: channel")
    if call == "read":
        if fault == HANG:
            return Expect(("failed",), "has not returned", STUCK)
        if fault == SHORT:
            return GOES_ON
        if code == 115:  # what the buffer held before may even look like records
            return Expect(("running",), "", "profd_channel_garbage_bytes_total", ("finished",))
        if fault == GARBAGE:
            return Expect(("running",), "has delivered nothing",
                          "profd_channel_garbage_bytes_total", final=("finished",))
        # -4: the channel has nothing more, which is not an error.
        return Expect(("running",), "has delivered nothing",
                      "" if code == -4 else "profd_channel_read_errors_total", final=("finished",))
    if call == "status":
        # Whose data arrives is not asked how it is; on a slow machine it may seem silent, and is.
        return Expect(("running", "failed"), final=("finished", "failed"))
    if call == "card":
        # The card comes back before the session ends.
        return Expect(("failed",), "has not returned", STUCK, ("finished",)) if fault == HANG else Expect(
            ("failed",), "device {device}", final=("finished",))
    return GOES_ON  # asked once, or at the end only


def in_state(call, fault, state):
    if state == "session":
        return while_recording(call, fault)
    if state == "stop in progress":
        if call == "poll":
            return GOES_ON
        if fault == HANG:
            return Expect((), final=("finished", "failed"),
                          warns=call in ("stop", "read", "card", "flush"))
        return Expect((), final=("finished", "failed") if call in ("status", "card")
                      else ("finished",))
    return Expect(())


# What the cells of one state have in common, in words.
STATE_WORDS = {
    "idle": "the daemon answers and serves /metrics; a session on the other devices is complete; when the "
            "fault is over a session on all of them is",
    "session": "",
    "stop in progress": "stop answers, the session is done, its dump verifies",
    "recorder on": "a dump of the past verifies; when the fault is over a session on all devices is "
                   "whole",
}
# Which cells CI has: everything of the calls a session lives by.
CI_PASSES = {("read", "session"), ("start", "session"), ("stop", "stop in progress"),
             ("card", "recorder on"), ("status", "idle"), ("poll", "session")}


def faults_of(call):
    codes = [f"code {code}" for code in CODES]
    if call == "read":
        return [HANG, *codes, SHORT, GARBAGE]
    if call == "card":
        return [HANG, DROP]
    return [HANG, *codes]


def identifier(*words):
    text = "_".join(words)
    text = re.sub(r"(?<=[ _])-(?=\d)", "minus ", text)
    return re.sub(r"\W+|_+", "_", text)


def driver_cells():
    for call, state in itertools.product(CALLS, STATES):
        for fault in faults_of(call):
            yield Cell(identifier(call, fault, state), "driver", f"{CALLS[call]}: {fault}", state,
                       in_state(call, fault, state), ci=(call, state) in CI_PASSES)


STUCK_PY, LIBRARY_PY, DISK_PY = ("tests/faults/test_stuck.py", "tests/faults/test_library.py",
                                 "tests/faults/test_disk.py")
CLIENTS_PY, TLS_PY, METRICS_PY = ("tests/e2e/test_clients.py", "tests/e2e/test_tls.py",
                                  "tests/e2e/test_metrics.py")
DCMI_CODES = (-8001, -8002, -8003, -8005, -8006, -8007, -8008, -8009, -8010, -8012, -8013, -8016,
              -8017, -8020, -8255)


def other_cells():
    def cell(area, fault, state, expect, test="", ci=False):
        return Cell(identifier(area.strip("/"), fault, state), area, fault, state, expect, test, ci)

    nothing_of_npus = "no devices, the reason in status, NPU collectors refused (exit 3)"
    yield cell("driver", "library missing", "idle", nothing_of_npus,
               f"{LIBRARY_PY}:Libraries.test_missing")
    yield cell("driver", "library missing", "session", nothing_of_npus + "; a session of host_cpu is done",
               f"{LIBRARY_PY}:Libraries.test_missing")
    for state in ("stop in progress", "recorder on"):
        yield cell("driver", "library missing", state,
                   "host collectors go on: session done, the recorder's dump holds them", ci=True)
    yield cell("driver", "symbols missing: a few", "session",
               "named in status; sessions lose nothing", f"{LIBRARY_PY}:Libraries.test_some_symbols_missing")
    yield cell("driver", "symbols missing: most", "idle",
               "devices are listed with the problem; requests are refused (exit 3)",
               f"{LIBRARY_PY}:Libraries.test_almost_all_symbols_missing")
    for state in ("stop in progress", "recorder on"):
        yield cell("driver", "symbols missing: a few", state,
                   "stop answers, dumps verify, " + OTHERS)
    yield cell("driver", "first call hangs", "idle", "no devices, the reason in status; host collectors work",
               f"{STUCK_PY}:HangingCard.test_hangs_at_the_very_beginning")
    yield cell("driver", "SIGTERM while a card hangs", "session", "exit 0, dump complete",
               f"{STUCK_PY}:HangingCard.test_sigterm_while_it_hangs")
    yield cell("driver", "poll answers more pairs, read more bytes than the buffer holds", "session",
               "profd_pump_poll_errors_total, profd_channel_read_errors_total; " + OTHERS,
               "tests/faults/test_poll.py:Liars.test_more_bytes_than_the_buffer_holds")

    yield cell("DCMI", "hang of a card", "idle", "atlas_npu_up 0 and profd_device_stuck 1 of that card only",
               f"{STUCK_PY}:HangingCard.test_idle_card_hangs")
    yield cell("DCMI", "hang of a card", "session", "data resumes when it returns; gaps are reported; " + OTHERS,
               f"{STUCK_PY}:HangingCard.test_session_survives_and_data_resumes")
    yield cell("DCMI", "hang of a card", "scrape", "/metrics does not wait for it",
               f"{METRICS_PY}:Failing.test_scrape_does_not_wait_for_a_hung_card")
    yield cell("DCMI", "hang of a card when profd starts", "idle",
               "the other cards are up at once; the card is looked for again and found when it answers",
               f"{STUCK_PY}:HangingCard.test_dcmi_hangs_from_the_beginning")
    yield cell("driver", "a card hangs when profd starts", "idle", "only this card cannot be used",
               f"{STUCK_PY}:HangingCard.test_hangs_from_the_beginning")
    yield cell("DCMI", "hang in dcmi_init", "idle", "the reason in status; channels work",
               f"{LIBRARY_PY}:Libraries.test_dcmi_init_hangs")
    yield cell("DCMI", "library missing", "session", "the reason in status; channels work",
               f"{LIBRARY_PY}:Libraries.test_dcmi_missing_leaves_the_channels")
    for code in DCMI_CODES:
        yield cell("DCMI", f"code {code}", "session",
                   "profd_dcmi_call_errors_total by code, or not supported and not asked again; no value is "
                   "invented; channels of the card lose nothing", ci=True)

    yield cell("/proc", "process exits mid-read", "session", "its data ends there; the session continues",
               "tests/e2e/test_host.py:HostSide.test_process_that_ends_midway")
    yield cell("/proc", "processes come and go all the time", "session",
               "the session is done, the dump verifies, nothing of the channels is lost", ci=True)
    yield cell("/proc", "4,000 processes", "session",
               "readings that are late are counted (profd_collector_missed_ticks_total), channels lose nothing")
    yield cell("/proc", "100,000 processes", "session",
               "4,096 are watched, the outcome says how many are left out; below 256 MiB; channels lose nothing")
    yield cell("/proc", "hidepid=2, daemon not root", "session",
               "requests for a process that profd cannot see are refused (exit 3); without (--detach) host_cpu and "
               "host_mem are done with what may be seen (docs/security-model.md)")
    yield cell("/proc", "read-only", "session", "nothing changes: profd writes nothing there")

    yield cell("disk", "full", "session", "ends as done, \"dump volume full\"; complete until then; exit 3 for starts",
               f"{DISK_PY}:Volume.test_full_to_the_last_byte")
    yield cell("disk", "full", "idle", "start refused (exit 3), profd_sessions_refused_total",
               f"{DISK_PY}:Volume.test_no_space_to_start")
    yield cell("disk", "EIO", "session", "the session says so, what is dropped is counted; others go on",
               f"{DISK_PY}:BadDisk.test_errors")
    yield cell("disk", "quota", "session", "as EIO", f"{DISK_PY}:BadDisk.test_errors")
    yield cell("disk", "read-only", "idle", "start refused (exit 3) with the reason",
               f"{DISK_PY}:Volume.test_becomes_read_only")
    yield cell("disk", "vanished", "session", "the session ends with the reason; starts are refused (exit 3); made again "
               "when it can be", f"{DISK_PY}:Limits.test_root_removed_underneath")
    yield cell("disk", "moved", "session", "the session ends with the reason; its dump is complete where it was moved to",
               f"{DISK_PY}:Limits.test_root_moved_underneath")
    yield cell("disk", "unmounted", "session", "the session ends with the reason; starts are refused (exit 3); nothing is "
               "written below the mount point", f"{DISK_PY}:Volume.test_unmounted_underneath")
    yield cell("disk", "does not answer", "stop in progress", "the session ends interrupted within limits.stop_deadline_s; "
               "its dump is completed later", f"{DISK_PY}:StuckDisk.test_a_stop_is_bounded")
    yield cell("disk", "takes not even the manifest", "stop in progress", "the dump is completed when the disk takes it again",
               f"{DISK_PY}:BadDisk.test_dumps_that_could_not_be_ended_are_completed_later")
    yield cell("disk", "slow: 1 MB/s", "session",
               "received = written + dropped, counted as queue_full (where the machine is busy: no_buffer, "
               "driver); stop ends; a session without dump loses nothing",
               ci=True)

    yield cell("clients", "vanish in any call", "session", "the session is there or not at all",
               f"{CLIENTS_PY}:Clients.test_killed_in_the_middle_of_start")
    yield cell("clients", "vanish in stop", "stop in progress", "the session is done, its dump whole",
               f"{CLIENTS_PY}:Clients.test_killed_in_the_middle_of_stop")
    yield cell("clients", "never read a stream", "session", "profd_stream_dropped_samples_total; the session loses nothing",
               f"{CLIENTS_PY}:Clients.test_stream_that_is_never_read")
    yield cell("clients", "never read fetch, watch", "session", "others are served",
               f"{CLIENTS_PY}:Clients.test_frozen_fetch_and_watch")
    yield cell("clients", "flood of calls", "session", "the session loses nothing, others are served", ci=True)
    yield cell("clients", "more connections than allowed", "session", "profd_rpc_rejected_total; who is there is served",
               f"{CLIENTS_PY}:Clients.test_more_connections_than_allowed")
    yield cell("clients", "10,000 connections", "session",
               "at once, 8,000 local ones of one user and 2,000 to the metrics from ten addresses: half of "
               "max_connections stay for others, who are answered; 32 MiB at most; the session loses nothing")
    yield cell("clients", "giant messages", "session", "refused: resource_exhausted",
               "tests/e2e/test_rpc.py:Rpc.test_client")
    yield cell("clients", "half-open TLS", "idle", "closed by the node; profd_rpc_rejected_total",
               f"{TLS_PY}:Handshakes.test_silence_ends")
    yield cell("clients", "half-open TLS, many", "idle", "the unix socket does not notice",
               f"{TLS_PY}:Handshakes.test_flood")
    yield cell("clients", "no descriptors left", "session", "the session loses nothing; it answers afterwards",
               "tests/attack/test_attack.py:Exhaustion.test_no_descriptors_left")
    yield cell("clients", "attached processes that flood and die", "session", "counted, others unharmed",
               "tests/e2e/test_attach_storms.py:")

    for fault in ("wall time stepped forward", "wall time stepped back", "suspend"):
        yield cell("clock", fault, "session",
                   "no gap in any channel; the dump verifies; durations are not changed by it", ci=fault != "wall time stepped back")
    yield cell("memory", "anonymous memory, everything at the highest rate", "session",
               "below 64 MiB with driver.buffer_mb = 16 on a machine that keeps up, so such a limit kills nothing")
    yield cell("memory", "cgroup limit of 64 MiB", "session",
               "with driver.buffer_mb = 16: no kill, the session is done, its dump verifies, the next one is served")
    yield cell("signals", "SIGKILL at any moment", "all", "the next daemon completes every dump; sessions go on",
               "tests/faults/test_crash.py:Crash.test_killed_at_any_instant")
    yield cell("signals", "SIGTERM at any moment", "stop in progress", "exit 0, dumps complete",
               "tests/e2e/test_endings.py:Endings.test_sigterm_while_starting_and_stopping")
    yield cell("signals", "SIGINT", "session", "exit 0, dumps complete",
               "tests/e2e/test_endings.py:Endings.test_sigint_too")
    yield cell("signals", "storm of HUP, PIPE, CHLD, WINCH, URG, STOP and CONT", "session",
               "the session is done; what a stopped daemon missed is a reported gap, else nothing is lost", ci=True)


def cells():
    return [*driver_cells(), *other_cells()]


def words(expect, state):
    if isinstance(expect, str):
        return expect
    said = []
    if expect.whole:
        said.append("nothing is lost")
    if expect.results and not expect.whole:
        said.append(f"{'/'.join(expect.results)}" + (
            f', "{expect.says.format(device="N")}"' if expect.says else ""))
    if expect.counted:
        said.append(f"`{expect.counted}`")
    if expect.final and not expect.whole:
        said.append(f"in the end {' or '.join(expect.final)}")
    if expect.warns:
        said.append("the dump warns")
    if STATE_WORDS.get(state):
        said.append(STATE_WORDS[state])
    return "; ".join(said)


def report(results):
    """The table as lines of Markdown. `results`: the outcome of each cell that was run, by its name."""
    yield "# Fault matrix"
    yield ""
    yield "Every row is tested: by the test it names, else by the method of that name in"
    yield "`tests/faults/test_matrix.py`. A run without `PROFD_FAULTS=full` leaves out what is marked `full form`;"
    yield "`scripts/torture` runs all of it."
    yield ""
    yield "Of every row: the daemon stays alive, answers, ends with exit code 0 on SIGTERM, and a stop answers in"
    yield "time; other devices lose nothing; after the fault the device records again."
    area = None
    for cell in cells():
        if cell.area != area:
            area = cell.area
            yield from ("", f"## {area}", "", "| fault | state | expected | test | result |", "|---|---|---|---|---|")
        test = f"`{cell.test.rstrip(':')}`" if cell.test else f"`{cell.name}`"
        result = results.get(cell.name) or ("in that test" if cell.test else "not run" if cell.ci else "full form")
        yield f"| {cell.fault} | {cell.state} | {words(cell.expect, cell.state)} | {test} | {result} |"
