"""Windows of steps, in the shape of torch.profiler: schedule(), profile(schedule=...), prof.step()."""

from __future__ import annotations

import enum
from typing import Any, Callable, Iterable, List, Optional, Type, TypeVar, Union, overload

from . import _marks
from ._lib import _Absent, lib, warn
from ._profile import Duration, Options, Profile, Summary, _wait_s, attach

# Its result: a ProfilerAction, or PyTorch's, which has the same names.
Schedule = Callable[[int], Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])


class ProfilerAction(enum.Enum):
    """What is done during a step."""
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3  # the last step of a window


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0,
             skip_first: int = 0) -> Callable[[int], ProfilerAction]:
    """The action of every step: after `skip_first` steps, cycles of `wait` steps without, `warmup` steps in which
    the daemon is attached to, and `active` steps that are recorded; `repeat` cycles, 0 = without end."""
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError("schedule: active must be at least 1, the others at least 0")
    cycle = wait + warmup + active

    def action_of(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        number, at = divmod(step - skip_first, cycle)
        if (repeat and number >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == cycle - 1 else ProfilerAction.RECORD

    return action_of


def _always(_step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class ScheduledProfile:
    """One session for every window of active steps.

    schedule        step number -> action: profd.schedule(...), torch.profiler.schedule(...) or a function of yours;
                    None = all steps in one window
    on_trace_ready  called with this object when a window's dump is complete; `summary` is then that window's
    options, how    as for Profile

    step() ends a step and begins the next; it marks them, so that profd.step() is not needed besides. A window
    begins and ends inside step(), which waits for the daemon. `summaries` has all windows; `step_num` is the
    number of the current step.
    """

    def __init__(self, options: Options = None, *, schedule: Optional[Schedule] = None,
                 on_trace_ready: Optional[Callable[[ScheduledProfile], Any]] = None, **how: Any) -> None:
        for name in ("steps", "start_step", "duration"):
            if how.get(name):
                raise ValueError(f"profile: {name} and schedule exclude each other")
        self._schedule = schedule or _always
        self._on_trace_ready = on_trace_ready
        self._new_window: Callable[[], Profile] = lambda: Profile(options, **how)
        self._timeout = _wait_s(how.get("timeout", 10.0), "timeout")
        self._window: Optional[Profile] = None
        self._reached = False  # a step that is recorded
        self.step_num = 0
        self.summaries: List[Summary] = []

    @property
    def summary(self) -> Summary:
        """Of the last window; {} before it."""
        return self.summaries[-1] if self.summaries else {}

    def start(self) -> ScheduledProfile:
        self.step_num = 0
        self._begin_step()
        return self

    def step(self) -> None:
        """The current step ends here, the next begins."""
        _marks.end_step()
        if self._action() == "RECORD_AND_SAVE":
            self._end_window()
        self.step_num += 1
        self._begin_step()

    def stop(self) -> Summary:
        """Ends the window that is open, if any; returns the last summary."""
        self.__exit__(None)
        return self.summary

    def _action(self) -> str:
        return str(self._schedule(self.step_num).name)  # PyTorch's own actions have the same names

    def _begin_step(self) -> None:
        action = self._action()
        if action == "WARMUP":
            attach(self._timeout)
        elif action in ("RECORD", "RECORD_AND_SAVE"):
            self._reached = True
            if self._window is None:
                self._window = self._new_window().start()
        else:
            self._end_window()  # of a schedule that ends windows without RECORD_AND_SAVE
        _marks.step(self.step_num)

    def _end_window(self, exception: Optional[Type[BaseException]] = None) -> None:
        window, self._window = self._window, None
        if window is None or not window.started:
            return
        window.__exit__(exception)
        self.summaries.append(window.summary)
        if self._on_trace_ready is not None:
            self._on_trace_ready(self)

    def __enter__(self) -> ScheduledProfile:
        return self.start()

    def __exit__(self, exception: Optional[Type[BaseException]], *_: object) -> None:
        _marks.end_step()
        self._end_window(exception)
        if exception is None and not self._reached and not isinstance(lib(), _Absent):
            self._reached = True  # once
            warn(f"nothing was recorded: step() was called {self.step_num} times, which reaches no active step of the schedule")


@overload
def profile(options: _Function) -> _Function: ...
@overload
def profile(options: Options = None, *, schedule: Optional[Schedule],
            on_trace_ready: Optional[Callable[[ScheduledProfile], Any]] = None, **how: Any) -> ScheduledProfile: ...
@overload
def profile(options: Options = None, *, on_trace_ready: Callable[[ScheduledProfile], Any],
            **how: Any) -> ScheduledProfile: ...
@overload
def profile(options: Options = None, *, collectors: Union[str, Iterable[str], None] = None, steps: int = 0,
            start_step: Optional[int] = None, duration: Duration = 0.0, label: Optional[str] = None,
            best_effort: bool = False, dump: bool = True, strict: bool = False,
            timeout: Duration = 10.0) -> Profile: ...
def profile(options: Any = None, *, schedule: Optional[Schedule] = None,
            on_trace_ready: Optional[Callable[[ScheduledProfile], Any]] = None, **how: Any) -> Any:
    """`with profile(options={...}, steps=2): ...`, `@profile(...)`, or in PyTorch's shape
    `with profile(schedule=schedule(...), on_trace_ready=f) as prof:`; arguments: Profile, ScheduledProfile."""
    if schedule is not None or on_trace_ready is not None:
        return ScheduledProfile(options, schedule=schedule, on_trace_ready=on_trace_ready, **how)
    if callable(options) and not how:  # @profile without arguments
        return Profile()(options)
    return Profile(options, **how)
