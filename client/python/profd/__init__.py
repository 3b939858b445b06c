"""profd: profile a training loop on an Ascend/Atlas node, from Python.

    import profd

    with profd.profile(options={"sys_hardware_mem_freq": 50}, steps=2) as p:
        for n, batch in enumerate(batches):
            profd.step(n)
            train(batch)
    print(p.summary.get("dump_path", "not profiled"))

Needs libprofd.so.0 (ctypes; no compiler). Without the library or without a daemon nothing happens and
training continues: only calls with `strict=True` raise. PROFD_DISABLE=1 turns all of it
into no-ops.
"""

from __future__ import annotations

from ._lib import ProfdError, counters, library_path, version
from ._marks import Step, annotate, mark, range_end, range_pop, range_push, range_start, step
from ._modules import trace_modules
from ._profile import Profile, active, attach, collect_allow, init, session, set_metadata, shutdown
from ._schedule import ProfilerAction, ScheduledProfile, profile, schedule
from .profiler import Profiler

record_function = annotate  # the name PyTorch's users know

__all__ = [
    "Profile", "ProfdError", "Profiler", "ProfilerAction", "ScheduledProfile", "Step", "active", "annotate",
    "attach", "collect_allow", "counters", "init", "library_path", "mark", "profile", "range_end", "range_pop", "range_push",
    "range_start", "record_function", "schedule", "session", "set_metadata", "shutdown", "step", "trace_modules",
    "version",
]


def __getattr__(name: str) -> str:
    if name == "__version__":  # of the library, which is loaded at the first use, not at the import
        return version()
    raise AttributeError(name)
