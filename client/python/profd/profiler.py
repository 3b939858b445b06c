"""The two lines a MindSpore user knows:

    profiler = Profiler()
    ...
    summary = profiler.analyse()
"""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional, Union

from ._lib import warn
from ._profile import Profile, Summary

_HARDWARE = {"sys_hardware_mem_freq": 50, "sys_io_sampling_freq": 50, "sys_interconnection_freq": 50,
             "dvpp_freq": 50}
# Arguments of MindSpore's Profiler that have an option here.
_SWITCHES = {"l2_cache": "l2", "hccl": "hccl", "aicpu": "aicpu", "mstx": "msproftx", "with_stack": "TORCH_CALL_STACK"}
# Its numbers for aic_metrics, which are those of aiCoreMetricsType and aclprof.
_METRICS: Dict[Union[int, str], str] = {
    0: "ArithmeticUtilization", 1: "PipeUtilization", 2: "Memory", 3: "MemoryL0", 4: "ResourceConflictRatio",
    5: "MemoryUB", 6: "L2Cache"}

_POINTS = {"fp_point": ("FP_POINT", "PROFILING_FP_START"), "bp_point": ("BP_POINT", "PROFILING_BP_END")}


class Profiler:
    """Profiles from here to analyse().

    output_path        the dump is copied there at the end (the option `output`)
    start_profile      False: not before start()
    aicore_metrics     number or name (the option aic_metrics)
    l2_cache, hccl, aicpu, mstx, with_stack, hardware
                       True/False for the option of that data; hardware=False leaves out the device's
                       bandwidth and memory channels
    options            PROFILING_OPTIONS, over all of these

    FP_POINT and BP_POINT in the environment are passed on, or what MindSpore itself reads in their
    place: PROFILING_FP_START and PROFILING_BP_END. Unknown arguments are warned about and
    ignored, so that scripts written for the framework's own class keep running.
    """

    def __init__(self, output_path: Optional[str] = None, start_profile: bool = True,
                 aicore_metrics: Union[int, str, None] = None, hardware: bool = True,
                 options: Optional[Mapping[str, Any]] = None, **others: Any) -> None:
        wanted: Dict[str, Any] = dict(_HARDWARE) if hardware else {}
        wanted["training_trace"] = "on"
        if output_path:
            wanted["output"] = os.path.abspath(output_path)
        for option, names in _POINTS.items():
            point = next(filter(None, map(os.environ.get, names)), None)
            if point:
                wanted[option] = point
        for name, key in _SWITCHES.items():
            if name in others:
                wanted[key] = "on" if others.pop(name) else "off"
        if aicore_metrics is not None and aicore_metrics != -1:
            wanted["aic_metrics"] = _METRICS.get(aicore_metrics, aicore_metrics)
        strict = others.pop("strict", False)
        if others:
            warn("Profiler: ignored: " + ", ".join(sorted(others)), UserWarning)
        wanted.update(options or {})
        self._profile = Profile(wanted, label="Profiler", best_effort=True, strict=strict)
        if start_profile:
            self.start()

    def start(self) -> None:
        if not self._profile.started:
            self._profile.start()

    def stop(self) -> None:
        self._profile.stop()

    def analyse(self, *_: object, **__: object) -> Summary:
        """Ends the profile; returns the dump's summary: {"dump_path": ..., "records": ...,
        "outcomes": [...], "warnings": [...], ...}; {} when nothing was profiled."""
        return self._profile.stop()
