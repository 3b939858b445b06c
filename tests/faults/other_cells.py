"""Cells of the matrix beside the driver's functions: each is a function (case, cell), found by name."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from driver_passes import RECORDER, finish, look_at, whole
from fault_common import *
from profd_harness import ALICE, IS_ROOT, Daemon, is_sanitized

MIB = 1 << 20
HOST = ["--collector", "host_cpu=20", "--collector", "host_mem=20"]
MUCH = ["--sys-hardware-mem-freq", "100", "--llc-profiling", "read", "--sys-io-sampling-freq", "100",
        "--sys-interconnection-freq", "50", "--dvpp-freq", "100", "--host-sys-usage", "cpu,mem"]
FUNCTIONS = {}


def cells(*prefixes):
    def note(function):
        for prefix in prefixes:
            FUNCTIONS[prefix] = function
        return function

    return note


def of(cell):
    """The function of a cell, by the longest prefix of its name."""
    found = [prefix for prefix in FUNCTIONS if cell.name.startswith(prefix)]
    return FUNCTIONS[max(found, key=len)] if found else None


def assert_whole(case, seen, devices):
    case.assertEqual(seen["verify"], "")
    for device in devices:
        case.assertEqual(whole(seen["dump"], device), "")


def preloaded(library, **how):
    if is_sanitized():
        raise unittest.SkipTest("a preloaded library comes before the sanitizer's")
    return daemon(env={"LD_PRELOAD": os.path.join(LIBS, f"lib{library}.so")}, **how)


def write_control(path, text):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.rename(path + ".new", path)


# Libraries ------------------------------------------------------------------------------------


@cells("driver_library_missing")
def library_missing(case, cell):
    config = {"recorder": {"enabled": True, "collectors": ["host_cpu=10"]}}
    with daemon(config=config, args=["--hal-library", "/nonexistent/libascend_hal.so"]) as d:
        if cell.state == "recorder on":
            eventually(lambda: d.ctl("status")["recorder"]["held_s"] >= 2, what="something is held")
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
            eventually(lambda: d.ctl("status")["recorder"]["held_s"] >= 2, what="something is held")
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
    told = {dict(labels).get("code") for name, labels in metrics if name == "profd_dcmi_call_errors_total"}
    unsupported = {dict(labels)["npu"] for name, labels in metrics if name == "profd_dcmi_unsupported"}
    return metrics if all(str(code) in told or str(npu) in unsupported
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


# /proc ----------------------------------------------------------------------------------------

# Children that live a moment (or, with 0, until they are told), many at a time.
CROWD = """
import os, signal, sys, time
count, life = int(sys.argv[1]), float(sys.argv[2])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
kids = []
def child():
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(life) if life else signal.pause()
        os._exit(0)
    kids.append(pid)
try:
    for _ in range(count): child()
    print("here", flush=True)
    while True:
        if life:
            os.wait(); child()
        else: signal.pause()
finally:
    for pid in kids:
        try: os.kill(pid, signal.SIGTERM)
        except ProcessLookupError: pass
"""


@contextlib.contextmanager
def crowd(count, life=0.0):
    with subprocess.Popen([sys.executable, "-c", CROWD, str(count), str(life)],
                          stdout=subprocess.PIPE, text=True) as parent:
        try:
            if parent.stdout.readline() != "here\n":
                raise unittest.SkipTest(f"no {count} processes can be made here")
            yield parent
        finally:
            parent.terminate()


@cells("proc_process")
def processes_come_and_go(case, cell):
    with daemon() as d, crowd(40, 0.02):
        session = start(d, *ORDER, *HOST)
        d.until_records(session["session_id"], 800)
        seen = finish(d, session)
        case.assertEqual(seen["session"]["state"], "done")
        assert_whole(case, seen, (0, 1))
        case.assert_clean_end(d)


@cells("proc_very_many")
def very_many_processes(case, cell):
    with daemon() as d, crowd(4000):
        session = start(d, *ORDER, *HOST)
        d.until_records(session["session_id"], 1500)
        seen = finish(d, session)
        case.assertEqual(seen["session"]["state"], "done")
        assert_whole(case, seen, (0, 1))
        case.assertIsNotNone(d.metric("profd_collector_missed_ticks_total", collector="host_cpu"))
        case.assert_clean_end(d)


class OwnProc(Daemon):
    """A daemon that sees another /proc, perhaps as a user."""
    mount = ""

    def command(self):
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", self.mount + ' && exec "$@"',
                "sh", *super().command()]


def with_proc(case, mount, user=None):
    if not IS_ROOT:
        case.skipTest("only root can mount")
    if subprocess.run(["unshare", "--mount", "sh", "-c", mount], capture_output=True, check=False).returncode:
        case.skipTest(f"not possible here: {mount}")
    plain = daemon()
    d = OwnProc(scenario_text=open(plain.scenario_path, encoding="utf-8").read(), config=plain.config)
    plain.dispose()
    d.mount = mount
    if user:
        d.write_config({**d.config, "daemon": {"socket_group": ""}})
        for path in (d.base, d.dump_root):
            os.chown(path, user, user)
        os.chmod(d.base, 0o777)
        d.mount += f" && set -- setpriv --reuid {user} --regid {user} --clear-groups \"$@\""
    with d:
        if user:
            # Whoever starts it is hidden, too: no lease can be watched.
            refused = d.run("start", *ORDER)
            case.assertEqual(refused.returncode, REFUSED)
            case.assertIn("no such process", refused.stdout)
        session = d.ctl("start", *ORDER, *HOST, "--detach", user=user)
        d.until_records(session["session_id"], 200)
        seen = finish(d, session)
        case.assertEqual(seen["session"]["state"], "done")
        for name in ("host_cpu", "host_mem"):
            got = outcome(seen["session"], name, -1)
            case.assertEqual(got["result"], "finished")
            case.assertGreater(got["records"], 0)
        assert_whole(case, seen, (0, 1))
        case.assert_clean_end(d)


@cells("proc_hidepid")
def hidepid(case, cell):
    with_proc(case, "mount -t proc -o hidepid=2 proc /proc", user=ALICE)


@cells("proc_read_only")
def proc_read_only(case, cell):
    with_proc(case, "mount -o remount,ro,bind /proc")


# Disk -----------------------------------------------------------------------------------------


@cells("disk_slow")
def slow_disk(case, cell):
    config = {"dump": {"flush_interval_ms": 100, "queue_mb": 1}}
    with preloaded("bad_disk", devices=8, config=config) as d:
        d.stop()
        control = os.path.join(d.base, "errno")
        d.env["PROFD_FAULT_DISK"] = control
        write_control(control, str(-1_000_000))
        d.start()
        live = d.ctl("start", *ORDER, "--no-dump")
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


# Clients --------------------------------------------------------------------------------------


@cells("clients_flood")
def flood_of_calls(case, cell):
    with daemon() as d:
        session = start(d)
        done = []
        floods = [d.spawn("status", stdout=subprocess.DEVNULL) for _ in range(4)]
        while d.show(session["session_id"])["records"] < 400:
            for n, one in enumerate(floods):
                if one.poll() is not None:
                    done.append(one.wait())
                    one.stderr.close()
                    floods[n] = d.spawn(*(("list",), ("devices", "--channels"), ("collectors",),
                                          ("status",))[n], stdout=subprocess.DEVNULL)
        for one in floods:
            one.communicate()
        case.assertEqual(set(done), {0})
        assert_whole(case, finish(d, session), (0, 1))
        case.assert_clean_end(d)


@cells("clients_10_000")
def many_connections(case, cell):
    with daemon() as d:
        session = start(d)
        most = 0
        for _ in range(40):
            crowd_of = []
            with contextlib.suppress(OSError):
                for _ in range(250):
                    one = socket.socket(socket.AF_UNIX)
                    one.settimeout(1)
                    crowd_of.append(one)
                    one.connect(d.socket)
            most = max(most, d.metric("profd_rpc_connections"))
            for one in crowd_of:
                one.close()
        case.assertLessEqual(most, 256)
        eventually(lambda: d.run("status").returncode == 0, what="it answers")
        eventually(lambda: d.metric("profd_rpc_connections") == 0, what="connections are forgotten")
        assert_whole(case, finish(d, session), (0, 1))
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
        write_control(control, "0 0")
        d.start()
        timed = d.ctl("start", *HOST, "--duration", "1h")
        session = start(d)
        d.until_records(session["session_id"], 150)
        write_control(control, f"{wall} {boot}")
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
    return d._status("RssAnon") * 1024  # pylint: disable=protected-access


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


@cells("memory_cgroup")
def cgroup_limit(case, cell):
    folder = os.environ.get("PROFD_TEST_CGROUP")
    if not folder:
        case.skipTest("no control group to limit: name one that is delegated to the tests in PROFD_TEST_CGROUP")
    for name in ("memory.max", "memory.limit_in_bytes"):
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(str(64 * MIB))
            break
    else:
        case.skipTest(f"{folder} has no memory limit")
    with daemon(devices=8) as d:
        with open(os.path.join(folder, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(d.pid))
        session = start(d, *MUCH, expect=(OK, PARTIAL))
        d.until_records(session["session_id"], 100_000, seconds=180)
        seen = finish(d, session)
        case.assertEqual((seen["session"]["state"], seen["verify"]), ("done", ""))
        case.assertEqual(seen["session"]["dropped_records"], 0)
        case.assert_clean_end(d)


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
