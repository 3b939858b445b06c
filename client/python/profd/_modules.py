"""Ranges of the modules of a model, by the hooks that torch.nn.Module has, while a session wants call stacks.

Hooks are set and taken away between two steps, on a thread that trains; without a session there are none. torch is not
imported: only one that the script has imported is hooked, or what is given to trace_modules.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from functools import partial
from typing import Any, Callable, List, MutableMapping, Tuple

from . import _stacks
from ._lib import lib, text

_MOST_OPEN = 512  # in a thread

hooked = False
_lock = threading.RLock()  # the handler of a signal may come here, too
_handles: List[Any] = []
_traced: List[Tuple[weakref.ref[Any], str]] = []  # by trace_modules
_names: MutableMapping[Any, str] = weakref.WeakKeyDictionary()


class _Open(threading.local):
    """The ranges of this thread that have begun and not ended, outermost first."""

    def __init__(self) -> None:
        self.ranges: List[Tuple[bytes, int, int]] = []


_open = _Open()


def trace_modules(model: Any, name: str = "") -> None:
    """Forward and backward of each module of `model` become ranges, named by their path ("GPT.layers.0.attention"),
    in sessions that want call stacks. `model`: a torch.nn.Module, or what has its named_modules and hooks.

    Without this call the modules of an imported torch have ranges of their forward; the hooks of the backward change
    the graph of autograd a little (torch's documentation: register_full_backward_hook), so that they are requested here.
    """
    with _lock:
        _traced.append((weakref.ref(model), name or type(model).__name__))
        if hooked:
            _hook_model(model, name or type(model).__name__)


def follow(wanted: int) -> None:
    """Between two steps: hooks as sessions want them."""
    global hooked
    with _lock:
        if bool(wanted) == hooked:
            return
        hooked = bool(wanted)
        if not hooked:
            for handle in _handles:
                handle.remove()
            _handles.clear()
            return
        _traced[:] = [(model, name) for model, name in _traced if model() is not None]
        for reference, name in _traced:
            model = reference()
            if model is not None:
                _hook_model(model, name)
        torch = sys.modules.get("torch.nn.modules.module")
        if torch is not None and not _traced:
            _set(torch, "register_module_forward_pre_hook", _begin_forward)
            _set(torch, "register_module_forward_hook", _end_forward, always_call=True)


def end_open() -> None:
    """A step begins: what is still open in this thread was left by an exception."""
    _close(0)


def _set(owner: Any, register: str, hook: Callable[..., None], **how: Any) -> None:
    function = getattr(owner, register, None)
    if function is None:
        return
    try:
        _handles.append(function(hook, **how))
    except TypeError:  # before torch 2.0 a hook is not called when forward raises
        _handles.append(function(hook))


def _hook_model(model: Any, root: str) -> None:
    for path, module in model.named_modules():
        name = f"{root}.{path}" if path else root
        _names[module] = name
        _set(module, "register_forward_pre_hook", _begin_forward)
        _set(module, "register_forward_hook", _end_forward, always_call=True)
        if hasattr(module, "register_full_backward_pre_hook"):  # since torch 2.0; the end alone is not a range
            _set(module, "register_full_backward_pre_hook", _begin_backward)
            _set(module, "register_full_backward_hook", _end_backward)


def _name_of(module: Any) -> str:
    name = _names.get(module)
    if name is None:
        root = type(module).__name__
        _names[module] = root
        if not _open.ranges:  # the outermost: paths begin here
            for path, inner in module.named_modules():
                _names[inner] = f"{root}.{path}" if path else root
        name = _names[module]
    return name


def _begin(domain: bytes, module: Any, *_: Any) -> None:
    if not _stacks.wanted:
        return
    key, ranges = id(module), _open.ranges
    # It has begun before and never ended: an exception was caught in between.
    for depth, opened in enumerate(ranges):
        if opened[:2] == (domain, key):
            _close(depth)
            break
    if len(ranges) < _MOST_OPEN:
        name = text(_name_of(module))
        ranges.append((domain, key, lib().profd_range_start(domain, name)))


def _end(domain: bytes, module: Any, *_: Any) -> None:
    key, ranges = id(module), _open.ranges
    for depth in range(len(ranges) - 1, -1, -1):
        if ranges[depth][:2] == (domain, key):
            return _close(depth)  # with what its exceptions left open inside


def _close(depth: int) -> None:
    ranges = _open.ranges
    while len(ranges) > depth:
        lib().profd_range_end(ranges.pop()[2])


_begin_forward, _end_forward = partial(_begin, b"module"), partial(_end, b"module")
_begin_backward, _end_backward = partial(_begin, b"module.backward"), partial(_end, b"module.backward")


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
