"""Marks, ranges and steps: the calls made inside the training loop, kept short."""

from __future__ import annotations

import contextlib
import threading

from . import _modules, _stacks
from ._lib import lib, text

_open = threading.local()  # the step this thread has begun and not ended


class Step:
    """A step that has begun; ends with the `with` block, or when the next one begins."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def end(self) -> None:
        if getattr(_open, "step", None) is self:
            _open.step = None
            lib().profd_step_end(self.number)

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def step(number: int) -> Step:
    """Step `number` begins here; the one this thread began before ends, unless it has.

    Either a line at the top of the loop's body, or `with profd.step(n): ...`.
    """
    end_step()
    this = Step(int(number))
    _open.step = this
    _stacks.note_step()
    if _modules.hooked:
        _modules.end_open()
    if bool(_stacks.wanted) != _modules.hooked:
        _modules.follow(_stacks.wanted)
    lib().profd_step_begin(this.number)
    _stacks.watch()
    return this


def end_step() -> None:
    """Ends the step of this thread that is open, if any."""
    before = getattr(_open, "step", None)
    if before is not None:
        before.end()


def mark(name: str, domain: str = "") -> None:
    """An instant in the profile."""
    lib().profd_mark_in(text(domain), text(name))
    _stacks.watch()


def range_push(name: str) -> None:
    """A range of this thread begins; ranges nest."""
    lib().profd_range_push(text(name))
    _stacks.watch()


def range_pop() -> None:
    """The innermost range of this thread ends."""
    lib().profd_range_pop()


def range_start(name: str, domain: str = "") -> int:
    """A range begins that need not nest, and may end on another thread: its id, for range_end."""
    return int(lib().profd_range_start(text(domain), text(name)) or 0)


def range_end(range_id: int) -> None:
    """The range of this id ends."""
    lib().profd_range_end(range_id)


class annotate(contextlib.ContextDecorator):  # noqa: N801: used like a function
    """A range around a block or a function: `with annotate("load"):` or `@annotate("load")`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _recreate_cm(self) -> annotate:
        return annotate(self.name)

    def __enter__(self) -> annotate:
        range_push(self.name)
        return self

    def __exit__(self, *_: object) -> None:
        range_pop()
