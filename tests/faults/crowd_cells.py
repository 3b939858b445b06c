"""Cells of the matrix where there are very many: processes in /proc, clients at the sockets."""

import contextlib
import os
import subprocess
import sys
import unittest

from cell_common import EVERYBODY, HOST, MIB, assert_whole, cells
from driver_passes import finish
from fault_common import REFUSED, START, daemon, start
from profd_harness import ALICE, IS_ROOT, TEST_GROUP, Daemon, eventually, group_id, is_sanitized, outcome

# /proc ----------------------------------------------------------------------------------------

# Children that live a moment (or, with 0, until they are ended), many at a time.
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
        session = start(d, *START, *EVERYBODY)
        d.until_records(session["session_id"], 800)
        seen = finish(d, session)
        case.assertEqual(seen["session"]["state"], "done")
        assert_whole(case, seen, (0, 1))
        case.assert_clean_end(d)


@cells("proc_4_000")
def very_many_processes(case, cell):
    with daemon() as d, crowd(4000):
        session = start(d, *START, *EVERYBODY)
        d.until_records(session["session_id"], 1500)
        seen = finish(d, session)
        case.assertEqual(seen["session"]["state"], "done")
        assert_whole(case, seen, (0, 1))
        case.assertIsNotNone(d.metric("profd_collector_missed_ticks_total", collector="host_cpu"))
        case.assert_clean_end(d)


# A /proc of its own for the program that follows: a hundred thousand processes that are files, and the real
# files of the machine and of the program itself beside them.
MANY_PROCESSES = """
import os, subprocess, sys
root, count = sys.argv[1], int(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=0,size=4g,mode=755", "tmpfs", root], check=True)
own = str(os.getpid())
with open(root + "/statm", "w") as file: file.write("2560 640 320 1 0 900 0\\n")
stat = "{0} (worker {0}) S 1 {0} {0} 0 -1 4194560 100 0 0 0 50 10 0 0 20 0 1 0 1000 10485760 640 " + "0 " * 26 + "0 0 0\\n"
for pid in range(100_000, 100_000 + count):
    os.mkdir(f"{root}/{pid}")
    with open(f"{root}/{pid}/stat", "w") as file: file.write(stat.format(pid))
    os.link(root + "/statm", f"{root}/{pid}/statm")
def bind(name):
    if os.path.isdir("/proc/" + name): os.mkdir(f"{root}/{name}")
    else: open(f"{root}/{name}", "w").close()
    subprocess.run(["mount", "--bind", "/proc/" + name, f"{root}/{name}"], check=True)
for name in (own, "stat", "meminfo", "uptime", "cpuinfo", "sys", "loadavg", "vmstat", "diskstats", "version"): bind(name)
os.symlink(own, root + "/self")
os.symlink("self/net", root + "/net")
os.symlink("self/mounts", root + "/mounts")
subprocess.run(["mount", "--move", root, "/proc"], check=True)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class CrowdedProc(Daemon):
    def command(self):
        root = os.path.join(self.base, "proc")
        os.makedirs(root, exist_ok=True)
        return ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", MANY_PROCESSES, root,
                "100000", *super().command()]


@cells("proc_100_000")
def hundred_thousand_processes(case, cell):
    if not IS_ROOT:
        case.skipTest("only root can mount")
    with daemon(kind=CrowdedProc) as d:
        session = start(d, *START, *EVERYBODY, "--detach")  # its starter is hidden, too
        d.until_records(session["session_id"], 1500, seconds=120)
        left_out = r"9\d{4} processes are left out: no more than 4096 are watched"
        for name in ("host_cpu", "host_mem"):
            reported = eventually(lambda: outcome(d.show(session["session_id"]), name, -1)["detail"], 120, what=name)
            case.assertRegex(reported, left_out)
            eventually(lambda: outcome(d.show(session["session_id"]), name, -1)["records"] > 2, 120, what=name)
        peak = d.rss()
        seen = finish(d, session)
        case.assertEqual(seen["session"]["state"], "done")
        assert_whole(case, seen, (0, 1))
        if not is_sanitized():
            case.assertLess(peak, 256 * MIB)
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
    d = daemon(kind=OwnProc)
    d.mount = mount
    if user:
        d.write_config({**d.config, "daemon": {"socket_group": ""}})
        for path in (d.base, d.dump_root):
            os.chown(path, user, user)
        os.chmod(d.base, 0o777)
        d.mount += f" && set -- setpriv --reuid {user} --regid {user} --clear-groups \"$@\""
    with d:
        if user:
            # Its starter is hidden, too: no lease can be watched.
            refused = d.run("start", *START)
            case.assertEqual(refused.returncode, REFUSED)
            case.assertIn("the process is hidden from profd: /proc is mounted with hidepid", refused.stdout)
            case.assertIn("CAP_SYS_PTRACE", refused.stdout)
            case.assertIn("--detach", refused.stdout)
        session = d.ctl("start", *START, *HOST, "--detach", user=user)
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


# Clients --------------------------------------------------------------------------------------


@cells("clients_flood")
def flood_of_calls(case, cell):
    with daemon() as d:
        session = start(d)
        done = []
        floods = [d.spawn("status", stdout=subprocess.DEVNULL) for _ in range(4)]
        while d.show(session["session_id"])["records"] < 400 or len(done) < len(floods):
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


# Opens connections from its arguments' addresses, prints how many, and holds what is left of them until it is killed.
CONNECTIONS = """
import contextlib, os, resource, socket, sys, time
address, count, user, group, sources = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5:]
resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, max(count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
if user:
    os.setgroups([group])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
kept = []
for n in range(count):
    one = socket.socket(socket.AF_INET if sources else socket.AF_UNIX)
    if sources: one.bind((sources[n % len(sources)], 0))
    host, _, port = address.rpartition(":")
    with contextlib.suppress(ConnectionError):
        one.connect((host, int(port)) if sources else address)
    kept.append(one)
print(len(kept), flush=True)
time.sleep(3600)
"""


@contextlib.contextmanager
def held_connections(address, count, sources=(), user=0):
    """`count` sockets of another process that stay open on its side, whatever the daemon did to them."""
    with subprocess.Popen([sys.executable, "-c", CONNECTIONS, address, str(count), str(user), str(group_id() if user else 0),
                           *sources], text=True, stdout=subprocess.PIPE) as holder:
        try:
            yield holder
        finally:
            holder.kill()


@cells("clients_10_000")
def many_connections(case, cell):
    if not IS_ROOT:
        case.skipTest("the crowd is another user's")
    with daemon(config={"daemon": {"socket_group": TEST_GROUP}}) as d:
        session = start(d)
        d.until_records(session["session_id"], 50)
        before = d.rss()
        sources = [f"127.0.0.{n}" for n in range(2, 12)]
        with held_connections(d.socket, 8000, user=ALICE) as local, \
                held_connections(d.metrics_address, 2000, sources) as remote:
            case.assertEqual(local.stdout.readline(), "8000\n")
            case.assertEqual(remote.stdout.readline(), "2000\n")
            # All 10,000 are open on the other side now. Half of the places are left for others.
            for _ in range(5):
                d.ctl("status")
            scraped = eventually(lambda: with_scrape(d), what="a scrape beside 2,000 connections")
            sums = {wanted: sum(value for (name, _), value in scraped.items() if name == wanted)
                    for wanted in ("profd_rpc_connections", "profd_rpc_rejected_total")}
            case.assertLessEqual(sums["profd_rpc_connections"], 256)
            case.assertGreater(sums["profd_rpc_rejected_total"], 7000)
            case.assertLess(d.fd_count(), 1000)
            if not is_sanitized():
                case.assertLess(d.rss() - before, 32 * MIB)
        eventually(lambda: d.metric("profd_rpc_connections") == 0, what="connections are forgotten")
        assert_whole(case, finish(d, session), (0, 1))
        case.assert_clean_end(d)


def with_scrape(d):
    with contextlib.suppress(OSError):
        return d.scrape()
    return None
