"""libprofd.so.0 by ctypes: finding it, its functions, its errors as exceptions."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

OK, DISABLED, NO_DAEMON, TIMEOUT, INVALID, REFUSED, NO_SESSION, NO_MEMORY = (
    0, -1, -2, -3, -4, -5, -6, -7)
_NAMES = {DISABLED: "disabled", NO_DAEMON: "no daemon", TIMEOUT: "timeout", INVALID: "invalid",
          REFUSED: "refused", NO_SESSION: "no session", NO_MEMORY: "no memory"}


_HERE = os.path.dirname(os.path.abspath(__file__))


def warn(message: str, category: Type[Warning] = RuntimeWarning) -> None:
    """A warning about the line that called into this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and os.path.dirname(os.path.abspath(frame.f_code.co_filename)) == _HERE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class ProfdError(RuntimeError):
    """What the daemon or the library refused; `code` is one of libprofd's (profd.h), `reason` its name."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text or _NAMES.get(code, f"error {code}"))
        self.code = code
        self.reason = _NAMES.get(code, str(code))


class Config(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("job_id", ctypes.c_char_p), ("rank", ctypes.c_int32),
                ("local_rank", ctypes.c_int32), ("world_size", ctypes.c_int32),
                ("devices", ctypes.POINTER(ctypes.c_int32)), ("device_count", ctypes.c_size_t),
                ("framework", ctypes.c_char_p), ("ring_slots", ctypes.c_uint32),
                ("wait_ms", ctypes.c_uint32)]


class StartArgs(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("options_json", ctypes.c_char_p),
                ("label", ctypes.c_char_p), ("duration_ms", ctypes.c_uint64),
                ("start_step", ctypes.c_int64), ("steps", ctypes.c_uint32),
                ("no_dump", ctypes.c_int32), ("best_effort", ctypes.c_int32),
                ("collectors", ctypes.c_char_p), ("timeout_ms", ctypes.c_uint32)]


class _Counters(ctypes.Structure):
    _fields_ = [("published", ctypes.c_uint64), ("dropped", ctypes.c_uint64),
                ("reconnects", ctypes.c_uint64)]


_SIGNATURES: Dict[str, Tuple[Any, List[Any]]] = {
    "profd_init": (ctypes.c_int, [ctypes.POINTER(Config)]),
    "profd_attach": (ctypes.c_int, [ctypes.c_uint32]),
    "profd_shutdown": (None, []),
    "profd_start_with": (ctypes.c_int, [ctypes.POINTER(StartArgs)]),
    "profd_stop_session": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_uint32]),
    "profd_step_begin": (None, [ctypes.c_int64]),
    "profd_step_end": (None, [ctypes.c_int64]),
    "profd_mark": (None, [ctypes.c_char_p]),
    "profd_range_push": (None, [ctypes.c_char_p]),
    "profd_range_pop": (None, []),
    "profd_mark_in": (None, [ctypes.c_char_p, ctypes.c_char_p]),
    "profd_range_start": (ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_char_p]),
    "profd_range_end": (None, [ctypes.c_uint64]),
    "profd_stacks_wanted": (ctypes.c_int, [ctypes.c_int, ctypes.c_uint32]),
    "profd_stack_frame": (ctypes.c_int, [ctypes.c_uint32, ctypes.c_uint32, ctypes.c_char_p]),
    "profd_stack_sample": (ctypes.c_int, [ctypes.c_uint32, ctypes.c_int32]),
    "profd_stacks_asked": (ctypes.c_int, []),
    "profd_stacks_answer": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_int]),
    "profd_set_metadata": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p]),
    "profd_collect_allow": (None, [ctypes.c_uint32]),
    "profd_active": (ctypes.c_int, []),
    "profd_connected": (ctypes.c_int, []),
    "profd_session_json": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint32]),
    "profd_get_counters": (None, [ctypes.POINTER(_Counters)]),
    "profd_last_error": (ctypes.c_char_p, []),
    "profd_version": (ctypes.c_char_p, []),
}


class _Absent:
    """Stands in for the library where there is none: every call is a no-op that reports it."""

    path: Optional[str] = None

    def __init__(self, why: str, code: int) -> None:
        self.why, self.code = why, code

    def __getattr__(self, name: str) -> Callable[..., Any]:
        restype = _SIGNATURES[name][0]
        if name == "profd_last_error":
            return lambda: self.why.encode()
        if name == "profd_version":
            return lambda: b""
        if name in ("profd_active", "profd_connected", "profd_range_start", "profd_stacks_asked"):
            return lambda *_: 0
        return (lambda *_: None) if restype is None else (lambda *_: self.code)


def _candidates() -> List[str]:
    explicit = os.environ.get("PROFD_LIBRARY")
    if explicit:
        return [explicit]  # this one or none: a wrong path must not go unnoticed
    return [os.path.join(_HERE, "libprofd.so.0"), "libprofd.so.0"]


def is_disabled() -> bool:
    """As libprofd reads it."""
    return os.environ.get("PROFD_DISABLE", "") not in ("", "0")


def _load() -> Any:
    if is_disabled():
        return _Absent("PROFD_DISABLE is set", DISABLED)
    why = []
    for candidate in _candidates():
        try:
            library: Any = ctypes.CDLL(candidate)
            for name, (restype, argtypes) in _SIGNATURES.items():
                function = getattr(library, name)
                function.restype, function.argtypes = restype, argtypes
            library.path = candidate
            return library
        except (OSError, AttributeError) as error:
            why.append(str(error))
    text = ("libprofd.so.0 not found; nothing is profiled (install profd, or set PROFD_LIBRARY): "
            + "; ".join(why))
    warn(text)
    return _Absent(text, NO_DAEMON)


_lock = threading.RLock()  # the handler of a signal may come here, too
_library: Any = None


def _after_fork() -> None:
    """Another thread may have been loading: its lock would be held in the child for ever."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def lib() -> Any:
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = _load()
    return _library


def is_loaded() -> bool:
    return _library is not None


def text(value: Optional[object]) -> Optional[bytes]:
    """To what a char* parameter takes; None stays NULL."""
    return None if value is None else str(value).encode("utf-8", "replace")


def last_error() -> str:
    return str((lib().profd_last_error() or b"").decode("utf-8", "replace"))


def check(code: int) -> None:
    if code != OK:
        raise ProfdError(code, last_error())


def version() -> str:
    """Version of the library; "" without one."""
    return str(lib().profd_version().decode())


def library_path() -> Optional[str]:
    """The file that was loaded; None without one."""
    path: Optional[str] = lib().path
    return path


def counters() -> Dict[str, int]:
    """Marks handed over and lost so far: {"published": ..., "dropped": ..., "reconnects": ...}."""
    values = _Counters()
    lib().profd_get_counters(ctypes.byref(values))
    return {name: getattr(values, name) for name, _ in _Counters._fields_}
