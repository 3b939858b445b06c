from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class ProfilingOptions(_message.Message):
    __slots__ = ["aic_metrics", "aicpu", "bp_point", "dvpp_freq", "fp_point", "hccl", "host_sys", "host_sys_usage", "host_sys_usage_freq", "instr_profiling_freq", "l2", "llc_profiling", "msproftx", "output", "runtime_api", "storage_limit", "sys_hardware_mem_freq", "sys_interconnection_freq", "sys_io_sampling_freq", "task_time", "task_trace", "training_trace"]
    AICPU_FIELD_NUMBER: _ClassVar[int]
    AIC_METRICS_FIELD_NUMBER: _ClassVar[int]
    BP_POINT_FIELD_NUMBER: _ClassVar[int]
    DVPP_FREQ_FIELD_NUMBER: _ClassVar[int]
    FP_POINT_FIELD_NUMBER: _ClassVar[int]
    HCCL_FIELD_NUMBER: _ClassVar[int]
    HOST_SYS_FIELD_NUMBER: _ClassVar[int]
    HOST_SYS_USAGE_FIELD_NUMBER: _ClassVar[int]
    HOST_SYS_USAGE_FREQ_FIELD_NUMBER: _ClassVar[int]
    INSTR_PROFILING_FREQ_FIELD_NUMBER: _ClassVar[int]
    L2_FIELD_NUMBER: _ClassVar[int]
    LLC_PROFILING_FIELD_NUMBER: _ClassVar[int]
    MSPROFTX_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_API_FIELD_NUMBER: _ClassVar[int]
    STORAGE_LIMIT_FIELD_NUMBER: _ClassVar[int]
    SYS_HARDWARE_MEM_FREQ_FIELD_NUMBER: _ClassVar[int]
    SYS_INTERCONNECTION_FREQ_FIELD_NUMBER: _ClassVar[int]
    SYS_IO_SAMPLING_FREQ_FIELD_NUMBER: _ClassVar[int]
    TASK_TIME_FIELD_NUMBER: _ClassVar[int]
    TASK_TRACE_FIELD_NUMBER: _ClassVar[int]
    TRAINING_TRACE_FIELD_NUMBER: _ClassVar[int]
    aic_metrics: str
    aicpu: str
    bp_point: str
    dvpp_freq: int
    fp_point: str
    hccl: str
    host_sys: str
    host_sys_usage: str
    host_sys_usage_freq: int
    instr_profiling_freq: int
    l2: str
    llc_profiling: str
    msproftx: str
    output: str
    runtime_api: str
    storage_limit: str
    sys_hardware_mem_freq: int
    sys_interconnection_freq: int
    sys_io_sampling_freq: int
    task_time: str
    task_trace: str
    training_trace: str
    def __init__(self, output: _Optional[str] = ..., storage_limit: _Optional[str] = ..., training_trace: _Optional[str] = ..., task_trace: _Optional[str] = ..., task_time: _Optional[str] = ..., hccl: _Optional[str] = ..., aicpu: _Optional[str] = ..., fp_point: _Optional[str] = ..., bp_point: _Optional[str] = ..., aic_metrics: _Optional[str] = ..., l2: _Optional[str] = ..., msproftx: _Optional[str] = ..., runtime_api: _Optional[str] = ..., sys_hardware_mem_freq: _Optional[int] = ..., llc_profiling: _Optional[str] = ..., sys_io_sampling_freq: _Optional[int] = ..., sys_interconnection_freq: _Optional[int] = ..., dvpp_freq: _Optional[int] = ..., instr_profiling_freq: _Optional[int] = ..., host_sys: _Optional[str] = ..., host_sys_usage: _Optional[str] = ..., host_sys_usage_freq: _Optional[int] = ...) -> None: ...
