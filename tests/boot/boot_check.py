"""Runs inside the system that scripts/boot-test boots, as root, with systemd as PID 1: profd's unit from
the first start to its end, and what users do with it on the way. Each check prints one line; the number of
failures goes to /boot-test-out/failed.
"""

import contextlib
import ctypes
import json
import os
import pwd
import re
import signal
import stat
import sys
import threading
import time
import traceback

import sandbox_probe
import user_checks
from boot_tools import (START, OUT, UNIT, Failed, as_trainer, begin, ctl, drop_in, equal, eventually,
                        expect, finish, goes_on, journal, pid, run, running, scrape, series, show, status_of,
                        systemctl)

PROBE = "/run/profd/probe.json"
PROBE_SCRIPT = sandbox_probe.__file__
# Tenths; what `systemd-analyze security` may say at most of the unit, and of it as user profd.
MOST_EXPOSURE = {"root": 28, "profd": 25}
libc = ctypes.CDLL(None, use_errno=True)


# Checks, in this order --------------------------------------------------------------------------------


CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def prepare():
    for name, number in (("profd-forbidden", (10, 254)), ("davinci63", (10, 229))):
        with contextlib.suppress(FileExistsError):
            os.mknod(f"/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(*number))
    packages = "/boot-test/packages"
    if os.path.isdir(packages):
        debs = [os.path.join(packages, name) for name in sorted(os.listdir(packages))
                if not name.startswith("profd-sim")]
        run("apt-get", "install", "-y", *debs,
            env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"))
    else:
        systemctl("start", UNIT)
    run("useradd", "--create-home", "--groups", "HwHiAiUser", "trainer")


@check
def host_only():
    """A node without NPU: serves by itself, has the host's metrics, says that it is host only."""
    process = running()
    text = scrape()
    for name in ("profd_build_info", "atlas_host_memory_total_bytes"):
        expect(series(text, name), f"no {name} in /metrics")
    expect(not series(text, "atlas_npu_health_status"), "health of NPUs that are not there")
    status = show("StatusText")
    expect("host-only" in status, f"status says {status!r}")
    node = ctl("status")
    equal(node.get("devices", []), [], "devices")
    answer = run("profctl", "status").stdout
    expect("host only" in answer, f"profctl status does not say host only:\n{answer}")
    return f"pid {process}, {len(text.splitlines())} lines of metrics, \"{status}\""


@check
def sandbox_of_the_process():
    """What the unit asks for is what /proc says of the daemon."""
    process = running()
    facts = status_of(process)
    wanted = 0
    for name in show("CapabilityBoundingSet").split():
        wanted |= 1 << {"cap_chown": 0, "cap_dac_override": 1, "cap_sys_ptrace": 19}[name.lower()]
    for field in ("CapBnd", "CapEff", "CapPrm"):
        equal(int(facts[field], 16), wanted, field)
    for field, value in (("CapInh", "0" * 16), ("CapAmb", "0" * 16), ("NoNewPrivs", "1"),
                         ("Seccomp", "2"), ("Umask", "0027")):
        equal(facts[field], value, field)
    for space, own in (("mnt", True), ("pid", False), ("net", False)):
        same = os.readlink(f"/proc/{process}/ns/{space}") == os.readlink(f"/proc/1/ns/{space}")
        equal(same, not own, f"{space} namespace is PID 1's")
    with open(f"/proc/{process}/mountinfo", encoding="ascii") as file:
        mounts = {line.split()[4]: line.split()[5].split(",")[0] for line in file}
    equal((mounts["/"], mounts["/run/profd"], mounts["/var/lib/profd"]), ("ro", "rw", "rw"), "mounts")
    with open(f"/proc/{process}/limits", encoding="ascii") as file:
        limits = file.read()
    expect(re.search(r"Max core file size\s+0\s", limits), "core dumps are not off")
    return f"capabilities {wanted:#x}, {facts['Seccomp_filters']} seccomp filters"


@check
def sandbox_from_inside():
    drop_in("probe", f"SystemCallErrorNumber=EPERM\nExecStartPost=/usr/bin/python3 {PROBE_SCRIPT} {PROBE}")
    systemctl("restart", UNIT)
    with open(PROBE, encoding="ascii") as file:
        found = json.load(file)
    drop_in("probe", None)
    bad = [f"{name}: {found[name]} instead of {wanted}" for name, (_, wanted) in sandbox_probe.PROBES.items()
           if found[name] not in wanted.split()]
    expect(not bad, "; ".join(bad))
    return f"{len(sandbox_probe.PROBES)} tries"


@check
def resources():
    """As far as this kernel gives the container controllers: where the host holds them, none."""
    group = "/sys/fs/cgroup" + show("ControlGroup")
    with open("/sys/fs/cgroup/cgroup.controllers", encoding="ascii") as file:
        given = file.read().split()
    wanted = {"memory": ("memory.max", str(1 << 30)), "cpu": ("cpu.max", "100000 100000"),
              "pids": ("pids.max", "1024")}
    tried = [name for name in wanted if name in given]
    for name in tried:
        with open(os.path.join(group, wanted[name][0]), encoding="ascii") as file:
            equal(file.read().strip(), wanted[name][1], wanted[name][0])
    return ", ".join(tried) or "no controllers here, so no limits tried"


@check
def exposure():
    answer = run("systemd-analyze", "security", "--no-pager", f"--threshold={MOST_EXPOSURE['root']}", UNIT,
                 check=False)
    last = answer.stdout.strip().splitlines()[-1]
    equal(answer.returncode, 0, last)
    return last.lstrip("→ ")


@check
def simulated_node():
    """From here on a system call that the filter does not allow kills the daemon."""
    packages = "/boot-test/packages"
    if os.path.isdir(packages):
        run("apt-get", "install", "-y",
            *(os.path.join(packages, name) for name in os.listdir(packages)
              if name.startswith("profd-sim")))
    command = re.search(r"^ExecStart=(\S+)(.*)$", systemctl("cat", UNIT), re.M)
    drop_in("simulate", f"ExecStart=\nExecStart={command[1]} --simulate{command[2]}")
    # Read in the order of their names: a probe comes after it.
    drop_in("kill-on-denial", "SystemCallErrorNumber=kill")
    systemctl("restart", UNIT)
    node = ctl("status")
    equal(len(node["devices"]), 8, "devices")
    expect("8 devices" in show("StatusText"), f"status says {show('StatusText')!r}")
    eventually(lambda: len(series(scrape(), "atlas_npu_health_status")) == 8, "health of 8 NPUs")
    # A program's end by the filter would not be the daemon's.
    eventually(lambda: series(scrape(), "atlas_npu_optical_present"), "what only hccn_tool knows")


@check
def session():
    done = finish(begin())
    return f"{done['records']} records"


CHECKS += user_checks.CHECKS


@check
def restart():
    session_id = begin()
    before = pid()
    systemctl("restart", UNIT)
    expect(pid() != before, "the same process after a restart")
    goes_on(session_id, 2)
    done = finish(session_id)
    return f"{len(done['segments'])} segments, {done['records']} records"


@check
def kill():
    session_id = begin()
    before, restarts = pid(), int(show("NRestarts"))
    os.kill(before, signal.SIGKILL)
    running(other_than=before)
    equal(int(show("NRestarts")), restarts + 1, "restarts")
    goes_on(session_id, 2)
    finish(session_id)


@check
def reload():
    before = pid()
    systemctl("reload", UNIT)
    eventually(lambda: "configuration reloaded" in journal("-u", UNIT), "the reload is logged")
    running()
    equal(pid(), before, "the process after a reload")


def watched(hang):
    """`hang` makes the daemon hang; the watchdog must end that, and the session go on."""
    session_id = begin()
    before, restarts = pid(), int(show("NRestarts"))
    hang(before)
    running(other_than=before)
    equal(int(show("NRestarts")), restarts + 1, "restarts")
    expect("watchdog" in journal("-t", "systemd", "-u", UNIT).lower(), "no word of the watchdog")
    goes_on(session_id, 2)
    finish(session_id)


@check
def watchdog_frozen():
    drop_in("watchdog", "WatchdogSec=3")
    systemctl("restart", UNIT)
    watched(lambda process: os.kill(process, signal.SIGSTOP))


@check
def watchdog_control_strand():
    """Only the control strand hangs: a debugger holds its thread, all others go on."""
    def hold(process):
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/comm", encoding="ascii") as file:
                if not file.read().startswith("profd-control"):
                    continue
            libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
            equal(libc.ptrace(0x4206, int(task), None, None), 0, "PTRACE_SEIZE")
            equal(libc.ptrace(0x4207, int(task), None, None), 0, "PTRACE_INTERRUPT")
            os.waitpid(int(task), 0x40000000)
            expect("profd" in scrape(), "the others do not go on")
            # The end of a traced thread waits until its tracer has heard of it.
            threading.Thread(target=os.waitpid, args=(int(task), 0x40000000), daemon=True).start()
            return
        raise Failed("no thread of the name profd-control")

    watched(hold)


@check
def stop():
    drop_in("watchdog", None)
    systemctl("restart", UNIT)
    session_id = begin()
    began = time.monotonic()
    systemctl("stop", UNIT)
    took = time.monotonic() - began
    equal((show("ActiveState"), show("Result")), ("inactive", "success"), "state after stop")
    expect(took < 40, f"it took {took:.0f} s")
    equal(os.path.exists("/run/profd/profd.sock"), False, "the socket after stop")
    systemctl("start", UNIT)
    equal(ctl("show", session_id, **as_trainer())["state"], "done", "the session after stop")
    return f"{took:.1f} s"


@check
def upgrade():
    """A newer package while a session runs."""
    packages = "/boot-test/packages"
    if not os.path.isdir(packages):
        return "no packages here"
    session_id = begin()
    before = pid()
    debs = [os.path.join(packages, name) for name in sorted(os.listdir(packages))]
    run("apt-get", "install", "-y", "--reinstall", *debs,
        env=dict(os.environ, DEBIAN_FRONTEND="noninteractive"))
    expect(running(other_than=before) != before, "the same process after an upgrade")
    goes_on(session_id, 2)
    finish(session_id)
    return None


@check
def as_user_profd():
    """systemd/profd-unprivileged.conf, as it is installed."""
    with open("/usr/share/profd/systemd/profd-unprivileged.conf", encoding="utf-8") as file:
        drop_in("unprivileged", file.read().replace("[Service]\n", "", 1))
    session_id = begin()
    systemctl("restart", UNIT)
    facts = status_of(running())
    owner = pwd.getpwnam("profd")
    equal(facts["Uid"].split(), [str(owner.pw_uid)] * 4, "uids")
    equal((facts["CapEff"], facts["CapAmb"], facts["CapBnd"]), (f"{0x80003:016x}",) * 3, "capabilities")
    goes_on(session_id, 2)
    finish(session_id)
    equal(len(series(scrape(), "atlas_npu_health_status")), 8, "NPUs in /metrics")
    user_checks.demo_job()
    sandbox_from_inside()
    answer = run("systemd-analyze", "security", "--no-pager", f"--threshold={MOST_EXPOSURE['profd']}", UNIT,
                 check=False)
    last = answer.stdout.strip().splitlines()[-1]
    equal(answer.returncode, 0, last)
    return last.lstrip("→ ")


@check
def without_any_capability():
    """What docs/security-model.md says is left: metrics and live samples; a dump is refused in words."""
    # With nothing to reach into other users' folders, the dump root has to be profd's own.
    drop_in("without", "CapabilityBoundingSet=\nAmbientCapabilities=\nStateDirectory=profd")
    systemctl("restart", UNIT)
    equal(status_of(running())["CapEff"], "0" * 16, "capabilities")
    equal(len(series(scrape(), "atlas_npu_health_status")), 8, "NPUs in /metrics")
    refused = run("profctl", "start", *START, check=False, **as_trainer())
    equal(refused.returncode, 3, "profctl start")
    expect("without CAP_CHOWN and CAP_DAC_OVERRIDE" in refused.stderr, f"unclear: {refused.stderr}")
    session = ctl("start", "--no-dump", *START, expect_code=(0, 5), **as_trainer())
    ctl("stop", session["session_id"], expect_code=(0, 5), **as_trainer())
    drop_in("without", None)
    drop_in("unprivileged", None)
    run("chown", "-R", "root:", "/var/lib/profd")
    systemctl("restart", UNIT)
    finish(begin())


@check
def quiet():
    """A start is not worth a warning of systemd's, but for devices that are not there."""
    about = re.compile(r"profd|davinci|devmm|hisi_hdc")
    expected = re.compile("watchdog|signal|Main process exited|Killing process|Couldn't stat device", re.I)
    wrong = [line for line in journal("-t", "systemd", "-p", "warning").splitlines()
             if about.search(line) and not expected.search(line)]
    expect(not wrong, "\n".join(sorted(set(wrong))[:20]))


@check
def no_errors():
    wrong = journal(f"_SYSTEMD_UNIT={UNIT}", "-p", "err")
    expect(not wrong, f"the daemon's errors:\n{wrong}")
    wrong = [line for line in journal("-t", "systemd", "-u", UNIT).splitlines()
             if re.search(r"SYS|seccomp|core-dump", line)]
    expect(not wrong, f"a system call was denied: {wrong}")


def main():
    failed = 0
    began = time.monotonic()
    try:
        prepare()
        print(f"ok      installed and started ({time.monotonic() - began:.1f} s)")
    except Exception as error:  # everything below would fail with it
        print(f"FAILED  prepare: {error}")
        with open(f"{OUT}/failed", "w", encoding="ascii") as out:
            out.write("1")
        return
    for function in CHECKS:
        began = time.monotonic()
        name = function.__name__.replace("_", " ")
        try:
            note = function()
            print(f"ok      {name} ({time.monotonic() - began:.1f} s){': ' + note if note else ''}")
        except Exception as error:
            failed += 1
            print(f"FAILED  {name} ({time.monotonic() - began:.1f} s): {error}")
            if not isinstance(error, Failed):
                traceback.print_exc(file=sys.stdout)
    with open(f"{OUT}/failed", "w", encoding="ascii") as out:
        out.write(str(min(failed, 90)))


if __name__ == "__main__":
    main()
