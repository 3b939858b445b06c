"""Cells of the matrix beside the driver's functions: each is a function (case, cell), found by name. What
comes in crowds, processes and clients, is in crowd_cells.py."""

import contextlib
import os
import signal
import threading
import time
import unittest

import processes
from cell_common import HOST, MIB, MUCH, assert_whole, cells
from driver_passes import RECORDER, finish, look_at
from fault_common import LIBS, OK, PARTIAL, START, daemon, start, stop
from profd_harness import IS_ROOT, Daemon, eventually, is_sanitized, replace_file, scaled
from text_files import write_text


def preloaded(library, **how):
    if is_sanitized():
        raise unittest.SkipTest("a preloaded library comes before the sanitizer's")
    return daemon(env={"LD_PRELOAD": os.path.join(LIBS, f"lib{library}.so")}, **how)


# Libraries ------------------------------------------------------------------------------------


@cells("driver_library_missing")
def library_missing(case, cell):
    config = {"recorder": {"enabled": True, "collectors": ["host_cpu=10"]}}
    with daemon(config=config, args=["--hal-library", "/nonexistent/libascend_hal.so"]) as d:
        if cell.state == "recorder on":
            eventually(lambda: d.ctl("status")["recorder"]["held_ns"] / 1e9 >= 2, what="something is held")
            done = d.until_state(d.ctl("dump", "--last", "1s")["session_id"], "done", "failed")
        else:
            session = d.ctl("start", *HOST)
            eventually(lambda: d.show(session["session_id"])["records"] > 20)
            done = stop(d, session)
        case.assertEqual(done["state"], "done")
        case.assertEqual(look_at(d, done)["verify"], "")
        case.assert_clean_end(d)


@cells("driver_symbols_missing")
def symbols_missing(case, cell):
    config = RECORDER if cell.state == "recorder on" else None
    with daemon(library="without_symbols", config=config) as d:
        if cell.state == "recorder on":
            eventually(lambda: d.ctl("status")["recorder"]["held_ns"] / 1e9 >= 2, what="something is held")
            done = d.until_state(d.ctl("dump", "--last", "2s")["session_id"], "done", "failed")
            assert_whole(case, look_at(d, done), (0, 1))
        else:
            session = start(d)
            d.until_records(session["session_id"], 100)
            assert_whole(case, finish(d, session), (0, 1))
        case.assert_clean_end(d)


# DCMI -----------------------------------------------------------------------------------------

DCMI_SEEN = {}
DCMI_LOCK = threading.Lock()


def dcmi_seen():
    """All codes at once, each on a card of its own; 16 cards is what the simulator has."""
    import matrix  # pylint: disable=import-outside-toplevel
    if not DCMI_SEEN:
        codes = matrix.DCMI_CODES
        faults = [dict(kind="dcmi_error", device=n, code=code) for n, code in enumerate(codes)]
        with daemon(devices=len(codes) + 1, chip="910B", faults=faults) as d:
            session = start(d)
            d.until_records(session["session_id"], 45 * (len(codes) + 1))
            eventually(lambda: d.metric("atlas_npu_up", npu=str(len(codes))) == 1)
            metrics = eventually(lambda: all_counted(d, codes), what="every code is counted")
            DCMI_SEEN.update(finish(d, session), metrics=metrics, alive=d.alive(),
                             listed=len(d.ctl("devices")["devices"]))
            DCMI_SEEN["code"] = d.stop()
    return DCMI_SEEN


def all_counted(d, codes):
    metrics = d.scrape()
    reported = {dict(labels).get("code") for name, labels in metrics if name == "profd_dcmi_call_errors_total"}
    unsupported = {dict(labels)["npu"] for name, labels in metrics if name == "profd_dcmi_unsupported"}
    return metrics if all(str(code) in reported or str(npu) in unsupported
                          for npu, code in enumerate(codes)) else None


@cells("DCMI_code")
def dcmi_code(case, cell):
    import matrix  # pylint: disable=import-outside-toplevel
    with DCMI_LOCK:
        seen = dcmi_seen()
    device = matrix.DCMI_CODES.index(int(cell.fault.split()[1]))
    case.assertTrue(seen["alive"])
    case.assertEqual((seen["code"], seen["listed"]), (0, len(matrix.DCMI_CODES) + 1))
    assert_whole(case, seen, (device, len(matrix.DCMI_CODES)))
    invented = [name for (name, labels) in seen["metrics"] if ("npu", str(device)) in labels and
                name in ("atlas_npu_temperature_celsius", "atlas_npu_power_watts")]
    case.assertEqual(invented, [])


# Disk -----------------------------------------------------------------------------------------


@cells("disk_slow")
def slow_disk(case, cell):
    config = {"dump": {"flush_interval_ms": 100, "queue_mb": 1}}
    with preloaded("bad_disk", devices=8, config=config) as d:
        d.stop()
        control = os.path.join(d.base, "errno")
        d.env["PROFD_FAULT_DISK"] = control
        replace_file(control, str(-1_000_000))
        d.start()
        live = d.ctl("start", *START, "--no-dump")
        session = start(d, *MUCH, expect=(OK, PARTIAL))
        eventually(lambda: d.show(session["session_id"])["dropped_records"] > 0, 90, what="the disk is too slow")
        seen = finish(d, session)
        done, facts = seen["session"], seen["manifest"]
        case.assertEqual(done["state"], "done")
        case.assertEqual(seen["verify"], "")
        case.assertEqual(sum(c["records"] for c in facts["channels"]), done["records"])
        case.assertEqual(sum(loss["records"] for c in facts["channels"] for loss in c["dropped"]
                             if loss["reason"] != "late"), done["dropped_records"])
        reasons = {loss["reason"] for c in facts["channels"] for loss in c["dropped"]}
        case.assertLessEqual(reasons, {"queue_full", "no_buffer", "driver", "late"})
        case.assertIn("queue_full", reasons)
        case.assertEqual(stop(d, live)["dropped_records"], 0)
        os.unlink(control)
        case.assert_serves(d, 1)
        case.assert_clean_end(d)


# Clock ----------------------------------------------------------------------------------------


@cells("clock_wall_time_stepped_forward", "clock_wall_time_stepped_back", "clock_suspend")
def clock(case, cell):
    wall, boot = {"wall time stepped forward": (86_400, 0), "wall time stepped back": (-86_400, 0),
                  "suspend": (7_200, 7_200)}[cell.fault]
    with preloaded("odd_clock") as d:
        d.stop()
        control = os.path.join(d.base, "clock")
        d.env["PROFD_FAULT_CLOCK"] = control
        replace_file(control, "0 0")
        d.start()
        timed = d.ctl("start", *HOST, "--duration", "1h")
        session = start(d)
        d.until_records(session["session_id"], 150)
        replace_file(control, f"{wall} {boot}")
        d.until_records(session["session_id"], 400)
        case.assertEqual(d.show(timed["session_id"])["state"], "running")
        seen = finish(d, session)
        case.assertEqual(seen["session"]["state"], "done")
        assert_whole(case, seen, (0, 1))
        case.assertEqual(stop(d, timed)["state"], "done")
        again = start(d)
        # The daemon's wall clock is what was made of it, else nothing was tried.
        case.assertAlmostEqual(again["started_ns"] / 1e9, time.time() + wall, delta=scaled(600))
        d.until_records(again["session_id"], 100)
        assert_whole(case, finish(d, again), (0, 1))
        case.assert_clean_end(d)


# Memory ---------------------------------------------------------------------------------------


def anonymous_peak(d):
    """Bytes that a limit counts and the kernel cannot take back."""
    return int(processes.status(d.pid, "RssAnon")) * 1024


@cells("memory_anonymous")
def anonymous_memory(case, cell):
    if is_sanitized():
        case.skipTest("memory is measured")
    with daemon(devices=8, config={"driver": {"buffer_mb": 16}}) as d:
        session = start(d, *MUCH, expect=(OK, PARTIAL))
        peak = 0
        for goal in range(5_000, 60_000, 5_000):
            d.until_records(session["session_id"], goal)
            d.scrape()
            peak = max(peak, anonymous_peak(d))
        case.assertEqual(finish(d, session)["verify"], "")
        case.assertLess(peak, 64 * MIB)
        case.assert_clean_end(d)


@contextlib.contextmanager
def control_group(case):
    """A control group with 64 MiB: below the one that is named, else one of our own beside the others."""
    named = os.environ.get("PROFD_TEST_CGROUP")
    parent = named or "/sys/fs/cgroup/memory"
    if not IS_ROOT and not named:
        case.skipTest("only root can make a control group; name one that is delegated in PROFD_TEST_CGROUP")
    folder = os.path.join(parent, f"profd-test-{os.getpid()}")
    try:
        os.mkdir(folder)
    except OSError as error:
        case.skipTest(f"no control group can be made: {error}")
    try:
        limits = [name for name in ("memory.max", "memory.limit_in_bytes") if os.path.exists(os.path.join(folder, name))]
        if not limits:
            case.skipTest(f"{parent} has no memory controller")
        write_text(os.path.join(folder, limits[0]), str(64 * MIB))
        yield folder
    finally:
        eventually(lambda: removed(folder), what="the control group is empty")


def removed(folder):
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        return True
    return False


class Limited(Daemon):
    """All of it within a control group from its first page on."""
    group = ""

    def command(self):
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.group, *super().command()]


@cells("memory_cgroup")
def cgroup_limit(case, cell):
    if is_sanitized():
        case.skipTest("a sanitizer's memory is not ours")
    with control_group(case) as folder:
        d = daemon(kind=Limited, devices=8, config={"driver": {"buffer_mb": 16}})
        d.group = folder
        with d:
            session = start(d, *MUCH, expect=(OK, PARTIAL))
            d.until_records(session["session_id"], 60_000, seconds=180)
            seen = finish(d, session)
            case.assertEqual((seen["session"]["state"], seen["verify"]), ("done", ""))
            # It is the one that was started: nothing was killed, and it serves.
            case.assert_serves(d, 1)
            case.assert_clean_end(d)
        with open(os.path.join(folder, "memory.oom_control" if "memory.oom_control" in os.listdir(folder) else
                               "memory.events"), encoding="ascii") as file:
            case.assertRegex(file.read(), r"(?m)^oom_kill 0$")


# Signals --------------------------------------------------------------------------------------


@cells("signals_storm")
def signal_storm(case, cell):
    with daemon() as d:
        session = start(d)
        numbers = (signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG,
                   signal.SIGSTOP, signal.SIGCONT)
        for n in range(30):
            for number in numbers:
                d.process.send_signal(number)
            d.until_records(session["session_id"], 10 * n)
        seen = finish(d, session)
        case.assertEqual(seen["session"]["state"], "done")
        assert_whole(case, seen, (0, 1))
        case.assert_clean_end(d)
