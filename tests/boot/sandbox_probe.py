"""Runs as the unit's own ExecStartPost: tries from inside the sandbox what it allows and what it forbids, and
writes what came of it, as JSON, to the file that is named.
"""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import socket
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)
INIT_MODULE = {"x86_64": 175, "aarch64": 105}[os.uname().machine]


def outcome(action):
    """What came of it: "ok", or the name of the error."""
    try:
        result = action()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    if isinstance(result, int) and result < 0:
        return errno.errorcode.get(ctypes.get_errno(), "?")
    return "ok"


def make_writable_code():
    with contextlib.closing(mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)):
        return 0


def set_uid_bit():
    path = "/run/profd/probe-suid"
    with open(path, "w", encoding="ascii"):
        pass
    try:
        os.chmod(path, 0o4755)
    finally:
        os.unlink(path)


def netlink():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0):
        return 0


def open_it(path, flags=os.O_RDWR):
    os.close(os.open(path, flags))
    return 0


PROBES = {
    # What profd lives on.
    "write the runtime directory": (lambda: open_it("/run/profd/probe", os.O_CREAT | os.O_WRONLY), "ok"),
    "write the state directory": (lambda: open_it("/var/lib/profd/.probe", os.O_CREAT | os.O_WRONLY),
                                  "ok"),
    "see other processes": (lambda: open_it("/proc/1/stat", os.O_RDONLY), "ok"),
    "a unix socket": (lambda: socket.socket(socket.AF_UNIX).close(), "ok"),
    "a TCP socket": (lambda: socket.socket(socket.AF_INET6).close(), "ok"),
    "a shared device node": (lambda: open_it("/dev/null"), "ok"),
    # What it must not do.
    "write /etc": (lambda: open_it("/etc/probe", os.O_CREAT | os.O_WRONLY), "EROFS"),
    "write /usr": (lambda: open_it("/usr/probe", os.O_CREAT | os.O_WRONLY), "EROFS"),
    "write /proc/sys": (lambda: open_it("/proc/sys/kernel/hostname", os.O_WRONLY), "EROFS EACCES"),
    "write cgroups": (lambda: os.mkdir("/sys/fs/cgroup/probe"), "EROFS"),
    "read a home": (lambda: os.listdir("/home/trainer"), "EACCES ENOENT"),
    "a netlink socket": (netlink, "EAFNOSUPPORT"),
    "a namespace": (lambda: libc.unshare(0x00020000), "EPERM"),
    "a mount": (lambda: libc.mount(b"none", b"/run/profd", b"tmpfs", 0, None), "EPERM"),
    "another user": (lambda: os.setuid(65534), "EPERM"),
    "another root": (lambda: os.chroot("/"), "EPERM"),
    "a kernel module": (lambda: libc.syscall(INIT_MODULE, None, 0, b""), "EPERM"),
    "ptrace": (lambda: libc.ptrace(16, 1, None, None), "EPERM"),
    "real time": (lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)), "EPERM"),
    "another personality": (lambda: libc.personality(0x0008), "EPERM"),
    "code that can be written": (make_writable_code, "EPERM EACCES"),
    "a set-user-id file": (set_uid_bit, "EPERM"),
    "a device node": (lambda: os.mknod("/run/profd/probe-dev", stat.S_IFCHR | 0o600, os.makedev(1, 3)),
                      "EPERM"),
    "a device that is not listed": (lambda: open_it("/dev/profd-forbidden"), "EPERM"),
    "a device that is listed": (lambda: open_it("/dev/davinci63"), "ok ENXIO"),
}


def main(path):
    found = {name: outcome(action) for name, (action, _) in PROBES.items()}
    with open(path, "w", encoding="ascii") as out:
        json.dump(found, out)


if __name__ == "__main__":
    main(sys.argv[1])
