"""Sessions: `profile` as a context manager and a decorator, and the few calls about the process."""

from __future__ import annotations

import atexit
import ctypes
import functools
import inspect
import json
import os
import re
import shutil
import threading
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Type, TypeVar, Union, cast

from . import _lib, _marks, _stacks
from ._lib import ProfdError, check, last_error, lib, text, warn

_START_MS = 10_000
_STOP_MS = 60_000

Options = Union[Mapping[str, Any], str, None]
Duration = Union[float, str]
Summary = Dict[str, Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def init(job_id: Optional[str] = None, rank: Optional[int] = None, local_rank: Optional[int] = None,
         world_size: Optional[int] = None, devices: Optional[Sequence[int]] = None, framework: str = "python",
         wait: Duration = 0.0) -> bool:
    """Describes this process to the daemon; what is left out is taken from the environment.

    `devices`: physical ids (/dev/davinciN). `wait`: seconds to wait for the daemon.
    """
    config = _lib.Config(size=ctypes.sizeof(_lib.Config), job_id=text(job_id), rank=_or(rank, -1),
                         local_rank=_or(local_rank, -1), world_size=_or(world_size, 0),
                         framework=text(framework), wait_ms=_wait_ms(wait, "wait"))
    if devices:
        ids = (ctypes.c_int32 * len(devices))(*devices)
        config.devices, config.device_count = ids, len(devices)
    code = lib().profd_init(ctypes.byref(config))
    _stacks.watch(again=True)
    return bool(code == _lib.OK)


def attach(timeout: Duration = 10.0) -> bool:
    """Waits for the daemon; True when attached."""
    attached = bool(lib().profd_attach(_wait_ms(timeout, "timeout")) == _lib.OK)
    _stacks.watch()
    return attached


def shutdown() -> None:
    """Detaches; sessions this process started end."""
    session()  # reports it if PROFILING_OPTIONS had no effect
    lib().profd_shutdown()


def active() -> bool:
    """True while a session takes marks of this process."""
    return bool(lib().profd_active())


def set_metadata(key: str, value: str) -> bool:
    """Into the manifest of sessions that start from now on. The key has letters, digits and any of . _ - : /."""
    return bool(lib().profd_set_metadata(text(key), text(value)) == _lib.OK)


_PROVIDERS = {"mspti": 1, "aclprof": 2, "all": 0xFFFFFFFF}


def collect_allow(*providers: str) -> None:
    """How sessions may record kernels, communication and API calls from inside this process: "mspti", "aclprof" or
    "all", which holds until it is called; without an argument not at all. PROFD_COLLECT=off overrules."""
    allowed = 0
    for provider in providers:
        if provider not in _PROVIDERS:
            raise ValueError(f"collect_allow({provider!r}): one of {', '.join(_PROVIDERS)}")
        allowed |= _PROVIDERS[provider]
    lib().profd_collect_allow(allowed)


def session(refresh: Duration = 0.0) -> Summary:
    """What is known of the last session this process started, as a dict; {} when there is none.

    `refresh`: seconds to wait for news from the daemon.
    """
    size = 64 * 1024
    refresh_ms = _wait_ms(refresh, "refresh")
    for _ in range(3):
        buffer = ctypes.create_string_buffer(size)
        length = lib().profd_session_json(buffer, size, refresh_ms)
        if length < 0:
            _warn_of_options()
            return {}
        if length < size:
            return cast(Summary, json.loads(buffer.value.decode("utf-8", "replace") or "{}"))
        size = length + 4096
    return {}


_refused_options = ""  # what has been warned of


def _warn_of_options() -> None:
    """PROFILING_OPTIONS was refused, and no call could have returned it."""
    global _refused_options
    error = last_error()
    if "PROFILING_OPTIONS" in error and error != _refused_options and os.environ.get("PROFILING_OPTIONS", "").strip():
        _refused_options = error
        warn(error)


@atexit.register
def _at_exit() -> None:
    """Most programs only mark steps, which reports nothing. One that has not begun profd does not begin it now."""
    if _lib.is_loaded() and lib().profd_stacks_wanted(0, 0) >= 0:
        session()


def _or(value: Optional[int], default: int) -> int:
    return default if value is None else int(value)


_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def _seconds(value: Duration, name: str) -> float:
    """A number of seconds, or text as profctl takes it: "500ms", "10s", "5m", "1h"."""
    if isinstance(value, str):
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h)", value.strip())
        if not found:
            raise ValueError(f'{name}={value!r}: a number of seconds, or text as in "500ms", "10s", "5m"')
        return float(found[1]) * _UNITS[found[2]]
    return float(value or 0)


def _whole(value: Any, name: str, least: int, most: int) -> int:
    """A whole number that the library's type holds: ctypes would cut off what is beyond it."""
    number = int(value)
    if not least <= number <= most:
        raise ValueError(f"{name}={value!r}: must be {least} to {most}")
    return number


def _duration_ms(value: Duration) -> int:
    seconds = _seconds(value, "duration")
    if seconds != 0 and not 0.001 <= seconds < 2**53:
        raise ValueError(f"duration={value!r}: must be 0 (as long as the block), or 1 ms or more")
    return int(seconds * 1000)


def _wait_s(value: Duration, name: str) -> float:
    """A time to wait that the library's milliseconds hold: a negative one would be 49 days."""
    seconds = _seconds(value, name)
    if not 0 <= seconds <= 4294967:
        raise ValueError(f"{name}={value!r}: must be 0 to 4294967 seconds")
    return seconds


def _wait_ms(value: Duration, name: str) -> int:
    return int(_wait_s(value, name) * 1000)


def _options_text(options: Options) -> Optional[str]:
    if options is None or isinstance(options, str):
        return options
    words = {True: "on", False: "off"}
    return json.dumps({key: words[value] if isinstance(value, bool) else value
                       for key, value in options.items()})


def _output_folder(options_text: Optional[str]) -> Optional[str]:
    """Where the caller wants dumps: the option `output`, else $ASCEND_WORK_PATH/profiling_data; None = left at the node."""
    try:
        output = json.loads(options_text or "{}").get("output")
    except (ValueError, AttributeError):
        return None  # the daemon reports what is wrong with it
    work = os.environ.get("ASCEND_WORK_PATH")
    folder = str(output) if output else os.path.join(work, "profiling_data") if work else None
    return os.path.abspath(folder) if folder else None


# libprofd has the summary of the last session that was started or stopped: no other thread may come between.
_last_session = threading.RLock()


def _after_fork() -> None:
    global _last_session
    _last_session = threading.RLock()
    if _lib.is_loaded():  # PROFILING_OPTIONS is not this process's, and one that calls nothing shall not attach
        atexit.unregister(_at_exit)


os.register_at_fork(after_in_child=_after_fork)


class Profile:
    """One session of this process: started on entry, stopped on exit.

    options      PROFILING_OPTIONS as a dict (True and False are "on" and "off") or as JSON text; None =
                 every collector at its default
    collectors   names, with a rate where wanted: ["hccs=50", "host_cpu"]; instead of or beside options
    steps        ends after so many steps (profd.step); 0 = with the block
    start_step   begins with that step; None = at once
    duration     ends after so many seconds, or "500ms", "10s", "5m"; 0 = with the block
    label        shown in lists
    best_effort  what this chip cannot do becomes a warning
    dump         False: only for /metrics and live streams
    strict       True: raise ProfdError when it cannot start; otherwise warn and go on without
    timeout      seconds to wait for the daemon at the start

    `started` is whether it runs; `summary` is the session as the daemon ended it (dump_path,
    records, outcomes, warnings, ...), {} without one. With the option `output` (or ASCEND_WORK_PATH in
    the environment) the dump is copied there at the end, as this user: summary["output"].
    """

    def __init__(self, options: Options = None, *, collectors: Union[str, Iterable[str], None] = None, steps: int = 0,
                 start_step: Optional[int] = None, duration: Duration = 0.0, label: Optional[str] = None,
                 best_effort: bool = False, dump: bool = True, strict: bool = False,
                 timeout: Duration = 10.0) -> None:
        self._again = functools.partial(
            Profile, options, collectors=collectors, steps=steps, start_step=start_step,
            duration=duration, label=label, best_effort=best_effort, dump=dump, strict=strict,
            timeout=timeout)
        self._args: Dict[str, Any] = dict(options=_options_text(options), collectors=collectors,
                          steps=_whole(steps, "steps", 0, 2**32 - 1),
                          start_step=_whole(_or(start_step, -1), "start_step", -1, 2**63 - 1),
                          duration_ms=_duration_ms(duration), label=label, best_effort=best_effort, dump=dump)
        self._strict = strict
        self._timeout = _wait_s(timeout, "timeout")
        self.started = False
        self.summary: Summary = {}
        self._output: Optional[str] = None

    def start(self) -> Profile:
        a = self._args
        self._output = _output_folder(a["options"])  # relative to where the script is now: it may go elsewhere
        collectors = a["collectors"]
        if collectors is not None and not isinstance(collectors, str):
            collectors = ",".join(collectors)
        attach(self._timeout)
        args = _lib.StartArgs(
            size=ctypes.sizeof(_lib.StartArgs), options_json=text(a["options"]),
            label=text(a["label"]), duration_ms=a["duration_ms"],
            start_step=a["start_step"], steps=a["steps"], no_dump=int(not a["dump"]),
            best_effort=int(a["best_effort"]), collectors=text(collectors),
            timeout_ms=max(1, int(self._timeout * 1000)) if self._timeout else _START_MS)
        with _last_session:
            code = lib().profd_start_with(ctypes.byref(args))
            if code == _lib.OK:
                self.started = True
                self.summary = session()
                return self
        if code == _lib.DISABLED and _lib.is_disabled():
            pass  # requested
        elif self._strict:
            check(code)
        elif not isinstance(lib(), _lib._Absent):  # of a missing library was warned when it was looked for
            warn(f"not profiled: {last_error()}")
        return self

    def stop(self) -> Summary:
        """Ends the session and waits for its dump; returns the summary."""
        if not self.started:
            return self.summary
        self.started = False
        _marks.end_step()
        own = self.summary.get("session_id")
        with _last_session:
            code = lib().profd_stop_session(text(own), _STOP_MS)
            why = last_error()
            found = session(refresh=1.0)
        if found.get("session_id") == own:
            self.summary = found
        if code not in (_lib.OK, _lib.NO_SESSION):
            if self._strict:
                raise ProfdError(code, why)
            warn(f"profile not ended in order: {why}")
        self._bring_dump()
        return self.summary

    def _bring_dump(self) -> None:
        folder, dump = self._output, self.summary.get("dump_path")
        if not folder or not dump or self.summary.get("state") not in ("done", "failed"):
            return
        try:
            os.makedirs(folder, exist_ok=True)
            target = os.path.join(folder, os.path.basename(dump))
            shutil.copytree(dump, target)
            self.summary["output"] = target
        except (OSError, shutil.Error) as error:
            if self._strict:
                raise
            warn(f"dump {dump} not brought to {folder}: {error}")

    def __call__(self, function: _Function) -> _Function:
        """As a decorator: a session of its own for every call; of a coroutine, until it has been awaited."""
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await function(*args, **kwargs)
            return cast(_Function, awaited)

        @functools.wraps(function)
        def profiled(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)
        return cast(_Function, profiled)

    def __enter__(self) -> Profile:
        return self.start()

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        strict, self._strict = self._strict, self._strict and kind is None  # never hide an exception
        try:
            self.stop()
        finally:
            self._strict = strict
