"""What the attacks share: other users' processes, and a file of root's that must stay as it is."""

import contextlib
import ctypes
import glob
import os
import shutil
import signal
import tempfile

from profd_harness import UsersCase, demote
from text_files import read_bytes, read_text, write_text

START = ("--devices", "0", "--sys-hardware-mem-freq", "50", "--sys-interconnection-freq", "50")
# Neither complete records nor complete lines: a repair would cut it.
SECRET_TEXT = "root's own\n" * 9 + "end"
CLONE_NEWUSER = 0x10000000
RENAME_EXCHANGE = 2
AT_FDCWD = -100
LIBC = ctypes.CDLL(None, use_errno=True)


def as_user(uid, groups, what, *args):
    """what(*args) in a child that is this user; what it returns, or the error it ended with as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            demote(uid, groups=groups)()
            answer = what(*args)
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, str(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as file:
        answer = file.read()
    os.waitpid(child, 0)
    return answer


def become_root_of_a_namespace():
    """This process, an ordinary user's, is uid 0 of a user namespace of its own: what a container's root is."""
    uid, gid = os.getuid(), os.getgid()
    # A process that changed its uid cannot be written to by its own /proc otherwise.
    LIBC.prctl(4, 1, 0, 0, 0)
    if LIBC.unshare(CLONE_NEWUSER) != 0:
        raise PermissionError(ctypes.get_errno(), "no user namespaces here")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        # No open(): the interpreter's own folder may be closed to this user, and so its encodings.
        file = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(file, text.encode())
        os.close(file)


def exchange(one, other):
    """Swaps two names in one step."""
    if LIBC.renameat2(AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def tree(root):
    """Every path below root, without what sockets and logs do by themselves."""
    return {os.path.join(base, name) for base, folders, files in os.walk(root) for name in folders + files}


class Attacker:
    """A process of a user's that does one thing over and over until the block ends. `rounds` afterwards."""

    def __init__(self, uid, attack, *args, groups=()):
        self.uid, self.attack, self.args, self.groups, self.rounds = uid, attack, args, groups, 0

    def __enter__(self):
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            self._loop(writer)
        os.close(writer)
        self.reader = reader
        os.read(reader, 1)  # the first round is done
        return self

    def _loop(self, writer):
        over = []
        signal.signal(signal.SIGTERM, lambda *_: over.append(True))
        if self.uid != os.getuid():
            demote(self.uid, groups=self.groups)()
        rounds = 0
        while not over:
            with contextlib.suppress(OSError):
                self.attack(*self.args)
            rounds += 1
            if rounds == 1:
                os.write(writer, b"+")
        os.write(writer, str(rounds).encode())
        os._exit(0)

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        with os.fdopen(self.reader, encoding="ascii") as file:
            self.rounds = int(file.read() or 0)


class AttackCase(UsersCase):
    """A daemon for the tests' group, and a vault with a file of root's."""

    devices = 1
    config = {"limits": {"max_starts_per_minute": 600}}

    def tearDown(self):
        super().tearDown()
        self.end_all()

    def setUp(self):
        # Beside the dumps: hard links lead nowhere else.
        self.vault = tempfile.mkdtemp(prefix="vault-", dir=self.daemon.base)
        self.addCleanup(shutil.rmtree, self.vault, ignore_errors=True)
        os.chmod(self.vault, 0o755)
        self.secret = os.path.join(self.vault, "secret")
        write_text(self.secret, SECRET_TEXT)
        os.chmod(self.secret, 0o600)
        self.before = os.stat(self.secret)
        self.vault_before = tree(self.vault)

    def assert_untouched(self):
        after = os.stat(self.secret)
        for member in ("st_ino", "st_size", "st_mtime_ns", "st_uid", "st_gid", "st_mode"):
            self.assertEqual(getattr(after, member), getattr(self.before, member), member)
        self.assertEqual(tree(self.vault), self.vault_before)
        self.assertEqual(read_text(self.secret), SECRET_TEXT)

    def assert_nothing_leaked(self, folder):
        for path in tree(folder):
            if os.path.isfile(path) and not os.path.islink(path):
                self.assertNotIn(SECRET_TEXT.encode(), read_bytes(path), path)


def next_slices(dump):
    """Names that the writer will make soon."""
    names = [os.path.join(dump, "device_0", name) for name in ("end_info.0", "end_info.0.done")]
    names += [os.path.join(dump, "host", name) for name in ("end_info", "end_info.done")]
    names += [os.path.join(dump, name) for name in ("profd_manifest.json", ".profd_manifest.json.next")]
    for path in glob.glob(os.path.join(dump, "device_0", "data", "*.slice_*")):
        base, _, number = path.removesuffix(".done").rpartition("_")
        if number.isdigit():
            names += [f"{base}_{int(number) + 1}", f"{base}_{int(number) + 1}.done", f"{base}_{number}.done"]
    return names
