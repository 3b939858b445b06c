"""Python stacks: sampled ones of the training threads, while a session wants them (TORCH_CALL_STACK), and of all
threads at once when `profctl stacks` requests it.

A daemon thread waits in libprofd, without the interpreter's lock, until one does. Frames are sent once to each session
and numbered: a stack is the number of its innermost frame.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any, Dict, List, Optional, Set, Tuple

from ._lib import lib

_DEFAULT_HZ, _MOST_HZ = 50, 100
_WAIT_MS = 60_000
_MOST_FRAMES = 65_536  # kept apart; what is called by more of them counts as theirs
_MOST_DEPTH = 200
_NAME_BYTES = 88  # of a mark
# What `profctl stacks` is answered with. 512 bytes of UTF-8 are at most 128 characters of four.
_ANSWER_THREADS, _ANSWER_FRAMES, _ANSWER_CHARS, _ANSWER_BYTES = 128, 100, 128, 60_000

wanted = 0  # 0: by no session; another number whenever one begins to
_lock = threading.RLock()  # the handler of a signal may come here, too
_thread: Optional[threading.Thread] = None
_begun = 0  # how often profd was begun again: a thread that finds it shut down ends when it knew of all of them
_ended = False
_stepping: Dict[int, int] = {}  # threads that have begun a step: identifier -> the kernel's


class _Stepping:
    """In such a thread for as long as it lives: the next thread may have its identifier."""

    def __init__(self) -> None:
        self.ident = threading.get_ident()
        _stepping[self.ident] = threading.get_native_id()

    def __del__(self, forget: Any = _stepping.pop) -> None:
        forget(self.ident, None)


_here = threading.local()


def watch(again: bool = False) -> None:
    """To be called once the library runs: from here on sessions are heard. `again`: also after a shutdown."""
    global _thread, _begun, _ended
    if _thread is not None and not again or lib().path is None:
        return
    with _lock:
        _begun += again
        if _thread is None or again and (_ended or not _thread.is_alive()):
            _ended = False
            _thread = threading.Thread(target=_run, args=(_begun,), name="profd-stacks", daemon=True)
            _thread.start()


def note_step() -> None:
    """This thread begins a step: it is one of those that train."""
    if not hasattr(_here, "stepping"):
        _here.stepping = _Stepping()


def _rate() -> int:
    try:
        return min(_MOST_HZ, max(1, int(os.environ.get("PROFD_STACK_HZ", _DEFAULT_HZ))))
    except ValueError:
        return _DEFAULT_HZ


def _run(begun: int) -> None:
    global wanted, _ended
    library, period, tree = lib(), 1 / _rate(), _Tree()
    due = 0.0
    while True:
        if library.profd_stacks_asked():
            library.profd_stacks_answer(*_answer())
        heard = library.profd_stacks_wanted(wanted, _wait_ms(due) if wanted else _WAIT_MS)
        if heard < 0:  # profd was shut down
            wanted = 0
            with _lock:
                if begun == _begun:
                    _ended = True
                    return
                begun = _begun
            continue
        if heard != wanted:
            wanted = heard
            tree.sent.clear()
        if wanted and time.monotonic() >= due:
            # By the clock: a thread that computes keeps the interpreter's lock for some milliseconds each time.
            due = max(due + period, time.monotonic() + period / 2)
            _sample(library, tree)


def _wait_ms(due: float) -> int:
    return max(1, math.ceil((due - time.monotonic()) * 1000))


def _sample(library: Any, tree: _Tree) -> None:
    main = threading.main_thread()
    threads = dict(_stepping)
    if main.ident is not None and main.native_id is not None:
        threads[main.ident] = main.native_id
    frames = sys._current_frames()
    for ident, native in threads.items():
        frame = frames.get(ident)
        if frame is None:
            continue  # it has ended meanwhile
        leaf = tree.send(library, _stack(frame))
        if leaf:
            library.profd_stack_sample(leaf, native)


def _answer() -> Tuple[bytes, int]:
    """Where all threads stand, training ones first, as profd_stacks_answer takes it."""
    frames = sys._current_frames()
    main = threading.main_thread()
    own = threading.get_ident()
    names: Dict[int, str] = {}
    natives: Dict[int, int] = {}
    for thread in threading.enumerate():
        if thread.ident is not None:
            names[thread.ident], natives[thread.ident] = thread.name, thread.native_id or 0
    natives.update(_stepping)
    # Those of C++ that run Python, autograd's for one.
    natives.update((ident, 0) for ident in frames if ident not in natives)
    order = sorted((ident for ident in natives if ident in frames),
                   key=lambda ident: (ident != main.ident, ident not in _stepping))
    threads: List[Dict[str, Any]] = []
    left_out, size = len(order) > _ANSWER_THREADS, 0
    for ident in order[:_ANSWER_THREADS]:
        stack: List[Tuple[str, str, int]] = []
        frame: Optional[FrameType] = None if ident == own else frames[ident]
        while frame is not None:
            code = frame.f_code
            entry = (_shown(code.co_filename), _shown(getattr(code, "co_qualname", code.co_name)), frame.f_lineno or 0)
            size += sum(len(name.encode()) for name in entry[:2]) + 20
            if len(stack) == _ANSWER_FRAMES or size > _ANSWER_BYTES:
                left_out = True
                break
            stack.append(entry)
            frame = frame.f_back
        threads.append({"thread": natives[ident], "name": _shown(names.get(ident, "")),
                        "trains": ident in _stepping, "frames": stack})
    return json.dumps(threads, ensure_ascii=False).encode("utf-8", "replace"), int(left_out)


def _shown(name: str) -> str:
    """Its end, where a file's and a method's own names are; nothing that JSON would make longer."""
    return "".join(c if c.isprintable() and c not in '"\\' else "?" for c in name[-_ANSWER_CHARS:])


def _stack(frame: Optional[FrameType]) -> List[Tuple[CodeType, int]]:
    """Outermost first; what is too deep is its caller's."""
    stack: List[Tuple[CodeType, int]] = []
    while frame is not None:
        stack.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return stack[:-_MOST_DEPTH - 1:-1]


def _name(code: CodeType, line: int) -> bytes:
    """ "file.py:function:line", with nothing in it that separates frames; a long function loses its begin."""
    end = f":{line}".encode()
    file = os.path.basename(code.co_filename).encode("utf-8", "replace")[:40]
    function = getattr(code, "co_qualname", code.co_name).encode("utf-8", "replace")
    space = _NAME_BYTES - len(end) - len(file) - 1
    text = file + b":" + function[-space:] + end
    return text.decode("utf-8", "ignore").replace(";", ",").replace(" ", "_").encode()


class _Tree:
    """The frames seen so far, each below the one that called it."""

    def __init__(self) -> None:
        self.numbers: Dict[Tuple[int, CodeType, int], int] = {}
        self.sent: Set[int] = set()  # to the sessions that are

    def send(self, library: Any, stack: List[Tuple[CodeType, int]]) -> int:
        """The number of the stack's innermost frame; 0 when some frame could not be sent (the ring counts it)."""
        caller = 0
        for code, line in stack:
            number = self._number(caller, code, line)
            if number == 0:
                break
            if number not in self.sent:
                if not library.profd_stack_frame(number, caller, _name(code, line)):
                    return 0
                self.sent.add(number)
            caller = number
        return caller

    def _number(self, caller: int, code: CodeType, line: int) -> int:
        key = (caller, code, line)
        number = self.numbers.get(key)
        if number is None:
            if len(self.numbers) >= _MOST_FRAMES:
                return 0
            number = self.numbers[key] = len(self.numbers) + 1
        return number


def _after_fork() -> None:
    global wanted, _thread, _lock, _here
    wanted, _thread, _lock, _here = 0, None, threading.RLock(), threading.local()
    _stepping.clear()


os.register_at_fork(after_in_child=_after_fork)
