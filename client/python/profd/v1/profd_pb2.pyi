from google.protobuf import any_pb2 as _any_pb2
from google.protobuf import descriptor_pb2 as _descriptor_pb2
from profd.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
FOR_ARCHIVE_FIELD_NUMBER: int
LEAST_ROLE_FIELD_NUMBER: int
ROLE_ADMIN: Role
ROLE_UNSPECIFIED: Role
ROLE_USER: Role
ROLE_VIEWER: Role
for_archive: _descriptor.FieldDescriptor
least_role: _descriptor.FieldDescriptor

class AcquireChannelsRequest(_message.Message):
    __slots__ = ["channels", "devices"]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedScalarFieldContainer[int]
    devices: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, devices: _Optional[_Iterable[int]] = ..., channels: _Optional[_Iterable[int]] = ...) -> None: ...

class AcquireTuningLeaseRequest(_message.Message):
    __slots__ = ["check_only", "devices", "duration_ms", "job_id", "mode", "pid"]
    CHECK_ONLY_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    check_only: bool
    devices: _containers.RepeatedScalarFieldContainer[int]
    duration_ms: int
    job_id: str
    mode: TuningLease.Mode
    pid: int
    def __init__(self, devices: _Optional[_Iterable[int]] = ..., pid: _Optional[int] = ..., job_id: _Optional[str] = ..., mode: _Optional[_Union[TuningLease.Mode, str]] = ..., duration_ms: _Optional[int] = ..., check_only: bool = ...) -> None: ...

class ActivitySpan(_message.Message):
    __slots__ = ["begin_ns", "communication_ratio", "computation_ratio", "devices", "end_ns", "free_ratio", "kernels", "longest_kernel", "longest_kernel_ns", "lost_records", "not_overlapped_ratio", "steps"]
    BEGIN_NS_FIELD_NUMBER: _ClassVar[int]
    COMMUNICATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    COMPUTATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    END_NS_FIELD_NUMBER: _ClassVar[int]
    FREE_RATIO_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_KERNEL_FIELD_NUMBER: _ClassVar[int]
    LONGEST_KERNEL_NS_FIELD_NUMBER: _ClassVar[int]
    LOST_RECORDS_FIELD_NUMBER: _ClassVar[int]
    NOT_OVERLAPPED_RATIO_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    begin_ns: int
    communication_ratio: float
    computation_ratio: float
    devices: int
    end_ns: int
    free_ratio: float
    kernels: int
    longest_kernel: str
    longest_kernel_ns: int
    lost_records: int
    not_overlapped_ratio: float
    steps: int
    def __init__(self, begin_ns: _Optional[int] = ..., end_ns: _Optional[int] = ..., devices: _Optional[int] = ..., computation_ratio: _Optional[float] = ..., communication_ratio: _Optional[float] = ..., not_overlapped_ratio: _Optional[float] = ..., free_ratio: _Optional[float] = ..., kernels: _Optional[int] = ..., steps: _Optional[int] = ..., longest_kernel_ns: _Optional[int] = ..., longest_kernel: _Optional[str] = ..., lost_records: _Optional[int] = ...) -> None: ...

class Advice(_message.Message):
    __slots__ = ["advice", "check", "confidence", "cost_ns", "device", "evidence", "id", "job_id", "pid", "raised_ns", "rank", "since_ns", "step", "uid", "what"]
    class Confidence(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_HIGH: Advice.Confidence
    CONFIDENCE_LOW: Advice.Confidence
    CONFIDENCE_MEDIUM: Advice.Confidence
    CONFIDENCE_UNSPECIFIED: Advice.Confidence
    COST_NS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    RAISED_NS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    advice: _containers.RepeatedScalarFieldContainer[str]
    check: str
    confidence: Advice.Confidence
    cost_ns: int
    device: int
    evidence: _containers.RepeatedScalarFieldContainer[str]
    id: int
    job_id: str
    pid: int
    raised_ns: int
    rank: int
    since_ns: int
    step: int
    uid: int
    what: str
    def __init__(self, id: _Optional[int] = ..., check: _Optional[str] = ..., job_id: _Optional[str] = ..., uid: _Optional[int] = ..., rank: _Optional[int] = ..., pid: _Optional[int] = ..., device: _Optional[int] = ..., what: _Optional[str] = ..., evidence: _Optional[_Iterable[str]] = ..., advice: _Optional[_Iterable[str]] = ..., cost_ns: _Optional[int] = ..., confidence: _Optional[_Union[Advice.Confidence, str]] = ..., since_ns: _Optional[int] = ..., raised_ns: _Optional[int] = ..., step: _Optional[int] = ...) -> None: ...

class ArchiveDumpsRequest(_message.Message):
    __slots__ = ["ids", "job_id", "only_look", "run", "to"]
    IDS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ONLY_LOOK_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    job_id: str
    only_look: bool
    run: str
    to: str
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., job_id: _Optional[str] = ..., to: _Optional[str] = ..., run: _Optional[str] = ..., only_look: bool = ...) -> None: ...

class ArchiveDumpsResponse(_message.Message):
    __slots__ = ["archive", "dumps", "unfinished"]
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    DUMPS_FIELD_NUMBER: _ClassVar[int]
    UNFINISHED_FIELD_NUMBER: _ClassVar[int]
    archive: ArchiveStatus
    dumps: _containers.RepeatedCompositeFieldContainer[Dump]
    unfinished: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, dumps: _Optional[_Iterable[_Union[Dump, _Mapping]]] = ..., unfinished: _Optional[_Iterable[str]] = ..., archive: _Optional[_Union[ArchiveStatus, _Mapping]] = ...) -> None: ...

class ArchiveFailed(_message.Message):
    __slots__ = ["message", "reason"]
    class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_DENIED: ArchiveFailed.Reason
    REASON_FETCH: ArchiveFailed.Reason
    REASON_FIELD_NUMBER: _ClassVar[int]
    REASON_REFUSED: ArchiveFailed.Reason
    REASON_UNREACHABLE: ArchiveFailed.Reason
    REASON_UNREADABLE: ArchiveFailed.Reason
    REASON_UNSPECIFIED: ArchiveFailed.Reason
    message: str
    reason: ArchiveFailed.Reason
    def __init__(self, reason: _Optional[_Union[ArchiveFailed.Reason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class ArchiveLoaded(_message.Message):
    __slots__ = ["bytes", "damage", "ranks", "rows"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DAMAGE_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    damage: str
    ranks: int
    rows: int
    def __init__(self, ranks: _Optional[int] = ..., rows: _Optional[int] = ..., bytes: _Optional[int] = ..., damage: _Optional[str] = ...) -> None: ...

class ArchiveState(_message.Message):
    __slots__ = ["attempts", "problem", "rows", "run", "since_ns", "state", "to"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_LOADED: ArchiveState.State
    STATE_LOST: ArchiveState.State
    STATE_UNSPECIFIED: ArchiveState.State
    STATE_WAITING: ArchiveState.State
    TO_FIELD_NUMBER: _ClassVar[int]
    attempts: int
    problem: str
    rows: int
    run: str
    since_ns: int
    state: ArchiveState.State
    to: str
    def __init__(self, state: _Optional[_Union[ArchiveState.State, str]] = ..., run: _Optional[str] = ..., problem: _Optional[str] = ..., attempts: _Optional[int] = ..., since_ns: _Optional[int] = ..., rows: _Optional[int] = ..., to: _Optional[str] = ...) -> None: ...

class ArchiveStatus(_message.Message):
    __slots__ = ["asked_ns", "failing_since_ns", "loaded", "loaded_elsewhere", "lost", "oldest_ns", "problem", "to", "waiting", "waiting_bytes"]
    class LoadedElsewhereEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    ASKED_NS_FIELD_NUMBER: _ClassVar[int]
    FAILING_SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    LOADED_ELSEWHERE_FIELD_NUMBER: _ClassVar[int]
    LOADED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    OLDEST_NS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    WAITING_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    asked_ns: int
    failing_since_ns: int
    loaded: int
    loaded_elsewhere: _containers.ScalarMap[str, int]
    lost: int
    oldest_ns: int
    problem: str
    to: str
    waiting: int
    waiting_bytes: int
    def __init__(self, to: _Optional[str] = ..., waiting: _Optional[int] = ..., waiting_bytes: _Optional[int] = ..., oldest_ns: _Optional[int] = ..., loaded: _Optional[int] = ..., lost: _Optional[int] = ..., failing_since_ns: _Optional[int] = ..., problem: _Optional[str] = ..., asked_ns: _Optional[int] = ..., loaded_elsewhere: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ArchiveUpload(_message.Message):
    __slots__ = ["attempt", "cluster", "dump", "max_bytes_per_s", "run", "to"]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    DUMP_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_PER_S_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    attempt: int
    cluster: str
    dump: Dump
    max_bytes_per_s: int
    run: str
    to: str
    def __init__(self, dump: _Optional[_Union[Dump, _Mapping]] = ..., to: _Optional[str] = ..., run: _Optional[str] = ..., cluster: _Optional[str] = ..., max_bytes_per_s: _Optional[int] = ..., attempt: _Optional[int] = ...) -> None: ...

class Caller(_message.Message):
    __slots__ = ["admin", "certificate", "pid", "uid", "viewer"]
    ADMIN_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    VIEWER_FIELD_NUMBER: _ClassVar[int]
    admin: bool
    certificate: str
    pid: int
    uid: int
    viewer: bool
    def __init__(self, pid: _Optional[int] = ..., uid: _Optional[int] = ..., admin: bool = ..., viewer: bool = ..., certificate: _Optional[str] = ...) -> None: ...

class Channel(_message.Message):
    __slots__ = ["bytes", "detail", "garbage_bytes", "hz", "id", "name", "records", "state", "users"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    GARBAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    HZ_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    STATE_BUSY: Channel.State
    STATE_FAILED: Channel.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_IDLE: Channel.State
    STATE_RELEASED: Channel.State
    STATE_RUNNING: Channel.State
    STATE_UNSPECIFIED: Channel.State
    USERS_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    detail: str
    garbage_bytes: int
    hz: float
    id: int
    name: str
    records: int
    state: Channel.State
    users: int
    def __init__(self, id: _Optional[int] = ..., name: _Optional[str] = ..., state: _Optional[_Union[Channel.State, str]] = ..., detail: _Optional[str] = ..., hz: _Optional[float] = ..., users: _Optional[int] = ..., bytes: _Optional[int] = ..., records: _Optional[int] = ..., garbage_bytes: _Optional[int] = ...) -> None: ...

class ChannelRelease(_message.Message):
    __slots__ = ["channel", "device", "name", "problem", "sessions", "uid", "until_ns"]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    channel: int
    device: int
    name: str
    problem: str
    sessions: _containers.RepeatedScalarFieldContainer[str]
    uid: int
    until_ns: int
    def __init__(self, device: _Optional[int] = ..., channel: _Optional[int] = ..., name: _Optional[str] = ..., uid: _Optional[int] = ..., until_ns: _Optional[int] = ..., sessions: _Optional[_Iterable[str]] = ..., problem: _Optional[str] = ...) -> None: ...

class ChannelReleases(_message.Message):
    __slots__ = ["releases"]
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    releases: _containers.RepeatedCompositeFieldContainer[ChannelRelease]
    def __init__(self, releases: _Optional[_Iterable[_Union[ChannelRelease, _Mapping]]] = ...) -> None: ...

class CheckOptionsRequest(_message.Message):
    __slots__ = ["spec"]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    spec: SessionSpec
    def __init__(self, spec: _Optional[_Union[SessionSpec, _Mapping]] = ...) -> None: ...

class CheckOptionsResponse(_message.Message):
    __slots__ = ["effective_options", "problems", "warnings"]
    EFFECTIVE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    effective_options: _containers.RepeatedCompositeFieldContainer[EffectiveOption]
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ..., warnings: _Optional[_Iterable[str]] = ..., effective_options: _Optional[_Iterable[_Union[EffectiveOption, _Mapping]]] = ...) -> None: ...

class ClaimArchiveUploadRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ClaimArchiveUploadResponse(_message.Message):
    __slots__ = ["upload", "waiting"]
    UPLOAD_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    upload: ArchiveUpload
    waiting: int
    def __init__(self, upload: _Optional[_Union[ArchiveUpload, _Mapping]] = ..., waiting: _Optional[int] = ...) -> None: ...

class ClockPair(_message.Message):
    __slots__ = ["device_count", "device_ns", "host_count", "host_ns", "uncertainty_ns"]
    DEVICE_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NS_FIELD_NUMBER: _ClassVar[int]
    HOST_COUNT_FIELD_NUMBER: _ClassVar[int]
    HOST_NS_FIELD_NUMBER: _ClassVar[int]
    UNCERTAINTY_NS_FIELD_NUMBER: _ClassVar[int]
    device_count: int
    device_ns: int
    host_count: int
    host_ns: int
    uncertainty_ns: int
    def __init__(self, host_ns: _Optional[int] = ..., device_ns: _Optional[int] = ..., device_count: _Optional[int] = ..., host_count: _Optional[int] = ..., uncertainty_ns: _Optional[int] = ...) -> None: ...

class CollectingFiles(_message.Message):
    __slots__ = ["left_ms", "processes"]
    LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    left_ms: int
    processes: int
    def __init__(self, processes: _Optional[int] = ..., left_ms: _Optional[int] = ...) -> None: ...

class CollectorInfo(_message.Message):
    __slots__ = ["always_on_hz", "available", "default_hz", "devices", "errors", "last_duration_ns", "last_error", "late_ticks", "left_out_ticks", "max_hz", "name", "option", "overview", "reason", "samples", "source", "summary"]
    class Source(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ALWAYS_ON_HZ_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_HZ_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    LAST_DURATION_NS_FIELD_NUMBER: _ClassVar[int]
    LAST_ERROR_FIELD_NUMBER: _ClassVar[int]
    LATE_TICKS_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_TICKS_FIELD_NUMBER: _ClassVar[int]
    MAX_HZ_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    OPTION_FIELD_NUMBER: _ClassVar[int]
    OVERVIEW_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_DCMI: CollectorInfo.Source
    SOURCE_DRIVER_CHANNEL: CollectorInfo.Source
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_HOST: CollectorInfo.Source
    SOURCE_UNSPECIFIED: CollectorInfo.Source
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    always_on_hz: float
    available: bool
    default_hz: float
    devices: _containers.RepeatedScalarFieldContainer[int]
    errors: int
    last_duration_ns: int
    last_error: str
    late_ticks: int
    left_out_ticks: int
    max_hz: float
    name: str
    option: str
    overview: bool
    reason: str
    samples: int
    source: CollectorInfo.Source
    summary: str
    def __init__(self, name: _Optional[str] = ..., summary: _Optional[str] = ..., source: _Optional[_Union[CollectorInfo.Source, str]] = ..., option: _Optional[str] = ..., default_hz: _Optional[float] = ..., max_hz: _Optional[float] = ..., always_on_hz: _Optional[float] = ..., devices: _Optional[_Iterable[int]] = ..., available: bool = ..., reason: _Optional[str] = ..., samples: _Optional[int] = ..., errors: _Optional[int] = ..., late_ticks: _Optional[int] = ..., last_error: _Optional[str] = ..., last_duration_ns: _Optional[int] = ..., left_out_ticks: _Optional[int] = ..., overview: bool = ...) -> None: ...

class CollectorRequest(_message.Message):
    __slots__ = ["hz", "name"]
    HZ_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    hz: float
    name: str
    def __init__(self, name: _Optional[str] = ..., hz: _Optional[float] = ...) -> None: ...

class DeleteDumpRequest(_message.Message):
    __slots__ = ["dump", "session_id"]
    DUMP_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    dump: str
    session_id: str
    def __init__(self, session_id: _Optional[str] = ..., dump: _Optional[str] = ...) -> None: ...

class DeleteDumpResponse(_message.Message):
    __slots__ = ["freed_bytes", "not_archived"]
    FREED_BYTES_FIELD_NUMBER: _ClassVar[int]
    NOT_ARCHIVED_FIELD_NUMBER: _ClassVar[int]
    freed_bytes: int
    not_archived: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, freed_bytes: _Optional[int] = ..., not_archived: _Optional[_Iterable[str]] = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ["channels", "chip", "chip_id", "clock", "counter_hz", "health", "id", "physical_id", "problem", "uuid"]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    CHIP_FIELD_NUMBER: _ClassVar[int]
    CHIP_ID_FIELD_NUMBER: _ClassVar[int]
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    COUNTER_HZ_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_ID_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedCompositeFieldContainer[Channel]
    chip: str
    chip_id: int
    clock: ClockPair
    counter_hz: float
    health: Health
    id: int
    physical_id: int
    problem: str
    uuid: str
    def __init__(self, id: _Optional[int] = ..., physical_id: _Optional[int] = ..., chip: _Optional[str] = ..., chip_id: _Optional[int] = ..., uuid: _Optional[str] = ..., counter_hz: _Optional[float] = ..., channels: _Optional[_Iterable[_Union[Channel, _Mapping]]] = ..., problem: _Optional[str] = ..., clock: _Optional[_Union[ClockPair, _Mapping]] = ..., health: _Optional[_Union[Health, _Mapping]] = ...) -> None: ...

class DeviceStatistics(_message.Message):
    __slots__ = ["device", "ecc_corrected", "ecc_uncorrected", "energy_joules", "mean_utilization_ratio", "peak_memory_bytes"]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    ECC_CORRECTED_FIELD_NUMBER: _ClassVar[int]
    ECC_UNCORRECTED_FIELD_NUMBER: _ClassVar[int]
    ENERGY_JOULES_FIELD_NUMBER: _ClassVar[int]
    MEAN_UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    device: int
    ecc_corrected: int
    ecc_uncorrected: int
    energy_joules: float
    mean_utilization_ratio: float
    peak_memory_bytes: int
    def __init__(self, device: _Optional[int] = ..., energy_joules: _Optional[float] = ..., peak_memory_bytes: _Optional[int] = ..., mean_utilization_ratio: _Optional[float] = ..., ecc_corrected: _Optional[int] = ..., ecc_uncorrected: _Optional[int] = ...) -> None: ...

class DeviceTopology(_message.Message):
    __slots__ = ["cpus", "id", "links", "neighbours", "numa_node", "pci_bus_id", "physical_id"]
    CPUS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODE_FIELD_NUMBER: _ClassVar[int]
    PCI_BUS_ID_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_ID_FIELD_NUMBER: _ClassVar[int]
    cpus: str
    id: int
    links: _containers.RepeatedCompositeFieldContainer[Link]
    neighbours: _containers.RepeatedCompositeFieldContainer[Neighbour]
    numa_node: int
    pci_bus_id: str
    physical_id: int
    def __init__(self, id: _Optional[int] = ..., physical_id: _Optional[int] = ..., pci_bus_id: _Optional[str] = ..., numa_node: _Optional[int] = ..., cpus: _Optional[str] = ..., neighbours: _Optional[_Iterable[_Union[Neighbour, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ...) -> None: ...

class DriverInfo(_message.Message):
    __slots__ = ["dcmi_error", "dcmi_path", "dcmi_version", "driver_version", "hal_api_version", "hal_error", "hal_path", "missing_symbols"]
    DCMI_ERROR_FIELD_NUMBER: _ClassVar[int]
    DCMI_PATH_FIELD_NUMBER: _ClassVar[int]
    DCMI_VERSION_FIELD_NUMBER: _ClassVar[int]
    DRIVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    HAL_API_VERSION_FIELD_NUMBER: _ClassVar[int]
    HAL_ERROR_FIELD_NUMBER: _ClassVar[int]
    HAL_PATH_FIELD_NUMBER: _ClassVar[int]
    MISSING_SYMBOLS_FIELD_NUMBER: _ClassVar[int]
    dcmi_error: str
    dcmi_path: str
    dcmi_version: str
    driver_version: str
    hal_api_version: int
    hal_error: str
    hal_path: str
    missing_symbols: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hal_path: _Optional[str] = ..., dcmi_path: _Optional[str] = ..., hal_error: _Optional[str] = ..., dcmi_error: _Optional[str] = ..., hal_api_version: _Optional[int] = ..., dcmi_version: _Optional[str] = ..., driver_version: _Optional[str] = ..., missing_symbols: _Optional[_Iterable[str]] = ...) -> None: ...

class Dump(_message.Message):
    __slots__ = ["archive", "bytes", "ended_ns", "fleet_id", "job_id", "name", "pinned", "segment", "session_id", "started_ns", "state", "uid"]
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    ENDED_NS_FIELD_NUMBER: _ClassVar[int]
    FLEET_ID_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    STARTED_NS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    archive: ArchiveState
    bytes: int
    ended_ns: int
    fleet_id: str
    job_id: str
    name: str
    pinned: bool
    segment: int
    session_id: str
    started_ns: int
    state: Session.State
    uid: int
    def __init__(self, name: _Optional[str] = ..., uid: _Optional[int] = ..., session_id: _Optional[str] = ..., job_id: _Optional[str] = ..., state: _Optional[_Union[Session.State, str]] = ..., started_ns: _Optional[int] = ..., ended_ns: _Optional[int] = ..., bytes: _Optional[int] = ..., pinned: bool = ..., segment: _Optional[int] = ..., archive: _Optional[_Union[ArchiveState, _Mapping]] = ..., fleet_id: _Optional[str] = ...) -> None: ...

class DumpChunk(_message.Message):
    __slots__ = ["data", "dump_name", "last", "path", "total_bytes"]
    DATA_FIELD_NUMBER: _ClassVar[int]
    DUMP_NAME_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    dump_name: str
    last: bool
    path: str
    total_bytes: int
    def __init__(self, path: _Optional[str] = ..., data: _Optional[bytes] = ..., last: bool = ..., dump_name: _Optional[str] = ..., total_bytes: _Optional[int] = ...) -> None: ...

class DumpRecorderRequest(_message.Message):
    __slots__ = ["devices", "job_id", "label", "last_ms", "reason"]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    LAST_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedScalarFieldContainer[int]
    job_id: str
    label: str
    last_ms: int
    reason: str
    def __init__(self, last_ms: _Optional[int] = ..., job_id: _Optional[str] = ..., devices: _Optional[_Iterable[int]] = ..., reason: _Optional[str] = ..., label: _Optional[str] = ...) -> None: ...

class EffectiveOption(_message.Message):
    __slots__ = ["asked", "key", "note", "value"]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    asked: str
    key: str
    note: str
    value: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ..., asked: _Optional[str] = ..., note: _Optional[str] = ...) -> None: ...

class Fault(_message.Message):
    __slots__ = ["code", "name", "severity", "since_ns"]
    class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CODE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_CRITICAL: Fault.Severity
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_MAJOR: Fault.Severity
    SEVERITY_MINOR: Fault.Severity
    SEVERITY_UNKNOWN: Fault.Severity
    SEVERITY_UNSPECIFIED: Fault.Severity
    SEVERITY_WARNING: Fault.Severity
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    code: str
    name: str
    severity: Fault.Severity
    since_ns: int
    def __init__(self, code: _Optional[str] = ..., name: _Optional[str] = ..., severity: _Optional[_Union[Fault.Severity, str]] = ..., since_ns: _Optional[int] = ...) -> None: ...

class FetchDumpRequest(_message.Message):
    __slots__ = ["dump", "session_id"]
    DUMP_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    dump: str
    session_id: str
    def __init__(self, session_id: _Optional[str] = ..., dump: _Optional[str] = ...) -> None: ...

class GetActivityRequest(_message.Message):
    __slots__ = ["from_ns", "job_id", "kernels", "pids"]
    FROM_NS_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    from_ns: int
    job_id: str
    kernels: int
    pids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, job_id: _Optional[str] = ..., pids: _Optional[_Iterable[int]] = ..., kernels: _Optional[int] = ..., from_ns: _Optional[int] = ...) -> None: ...

class GetActivityResponse(_message.Message):
    __slots__ = ["processes", "wall_offset_ns"]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    WALL_OFFSET_NS_FIELD_NUMBER: _ClassVar[int]
    processes: _containers.RepeatedCompositeFieldContainer[ProcessActivity]
    wall_offset_ns: int
    def __init__(self, processes: _Optional[_Iterable[_Union[ProcessActivity, _Mapping]]] = ..., wall_offset_ns: _Optional[int] = ...) -> None: ...

class GetAdviceRequest(_message.Message):
    __slots__ = ["job_id", "ranks"]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    ranks: bool
    def __init__(self, job_id: _Optional[str] = ..., ranks: bool = ...) -> None: ...

class GetAdviceResponse(_message.Message):
    __slots__ = ["advice", "ranks"]
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    advice: _containers.RepeatedCompositeFieldContainer[Advice]
    ranks: _containers.RepeatedCompositeFieldContainer[RankStep]
    def __init__(self, advice: _Optional[_Iterable[_Union[Advice, _Mapping]]] = ..., ranks: _Optional[_Iterable[_Union[RankStep, _Mapping]]] = ...) -> None: ...

class GetNodeRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GetSessionRequest(_message.Message):
    __slots__ = ["session_id"]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class GetStacksRequest(_message.Message):
    __slots__ = ["job_id", "pids", "ranks"]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PIDS_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    pids: _containers.RepeatedScalarFieldContainer[int]
    ranks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, job_id: _Optional[str] = ..., ranks: _Optional[_Iterable[int]] = ..., pids: _Optional[_Iterable[int]] = ...) -> None: ...

class GetStacksResponse(_message.Message):
    __slots__ = ["left_out", "processes"]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    left_out: int
    processes: _containers.RepeatedCompositeFieldContainer[ProcessStacks]
    def __init__(self, processes: _Optional[_Iterable[_Union[ProcessStacks, _Mapping]]] = ..., left_out: _Optional[int] = ...) -> None: ...

class GetTimeRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class GetTimeResponse(_message.Message):
    __slots__ = ["raw_ns", "wall_ns"]
    RAW_NS_FIELD_NUMBER: _ClassVar[int]
    WALL_NS_FIELD_NUMBER: _ClassVar[int]
    raw_ns: int
    wall_ns: int
    def __init__(self, wall_ns: _Optional[int] = ..., raw_ns: _Optional[int] = ...) -> None: ...

class GetTopologyRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Health(_message.Message):
    __slots__ = ["faults", "flags", "health_status", "reasons", "since_ns", "verdict"]
    class Flag(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    FLAG_ALARM: Health.Flag
    FLAG_ECC: Health.Flag
    FLAG_FAULT: Health.Flag
    FLAG_GONE: Health.Flag
    FLAG_HUNG: Health.Flag
    FLAG_NO_NPU: Health.Flag
    FLAG_STUCK: Health.Flag
    FLAG_THROTTLED: Health.Flag
    FLAG_UNSPECIFIED: Health.Flag
    HEALTH_STATUS_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_DEGRADED: Health.Verdict
    VERDICT_DOWN: Health.Verdict
    VERDICT_FAULTY: Health.Verdict
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    VERDICT_OK: Health.Verdict
    VERDICT_UNKNOWN: Health.Verdict
    VERDICT_UNSPECIFIED: Health.Verdict
    faults: _containers.RepeatedCompositeFieldContainer[Fault]
    flags: _containers.RepeatedScalarFieldContainer[Health.Flag]
    health_status: int
    reasons: _containers.RepeatedScalarFieldContainer[str]
    since_ns: int
    verdict: Health.Verdict
    def __init__(self, verdict: _Optional[_Union[Health.Verdict, str]] = ..., flags: _Optional[_Iterable[_Union[Health.Flag, str]]] = ..., reasons: _Optional[_Iterable[str]] = ..., health_status: _Optional[int] = ..., faults: _Optional[_Iterable[_Union[Fault, _Mapping]]] = ..., since_ns: _Optional[int] = ...) -> None: ...

class HotKernel(_message.Message):
    __slots__ = ["count", "name", "total_ns"]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    count: int
    name: str
    total_ns: int
    def __init__(self, name: _Optional[str] = ..., total_ns: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Job(_message.Message):
    __slots__ = ["job_id", "processes", "sessions", "uid", "world_size"]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    processes: _containers.RepeatedCompositeFieldContainer[JobProcess]
    sessions: _containers.RepeatedScalarFieldContainer[str]
    uid: int
    world_size: int
    def __init__(self, job_id: _Optional[str] = ..., uid: _Optional[int] = ..., world_size: _Optional[int] = ..., processes: _Optional[_Iterable[_Union[JobProcess, _Mapping]]] = ..., sessions: _Optional[_Iterable[str]] = ...) -> None: ...

class JobProcess(_message.Message):
    __slots__ = ["attached", "attached_ns", "command", "devices", "dropped_marks", "found_by", "framework", "local_rank", "marks", "pid", "pod_uid", "rank", "silent_ns", "slurm_job", "step", "step_ns", "uid"]
    class FoundBy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_NS_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_MARKS_FIELD_NUMBER: _ClassVar[int]
    FOUND_BY_ATTACHED: JobProcess.FoundBy
    FOUND_BY_DEVICE_PROCESS_LIST: JobProcess.FoundBy
    FOUND_BY_FIELD_NUMBER: _ClassVar[int]
    FOUND_BY_UNSPECIFIED: JobProcess.FoundBy
    FRAMEWORK_FIELD_NUMBER: _ClassVar[int]
    LOCAL_RANK_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SILENT_NS_FIELD_NUMBER: _ClassVar[int]
    SLURM_JOB_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    attached: bool
    attached_ns: int
    command: str
    devices: _containers.RepeatedScalarFieldContainer[int]
    dropped_marks: int
    found_by: JobProcess.FoundBy
    framework: str
    local_rank: int
    marks: int
    pid: int
    pod_uid: str
    rank: int
    silent_ns: int
    slurm_job: str
    step: int
    step_ns: int
    uid: int
    def __init__(self, pid: _Optional[int] = ..., uid: _Optional[int] = ..., rank: _Optional[int] = ..., local_rank: _Optional[int] = ..., devices: _Optional[_Iterable[int]] = ..., framework: _Optional[str] = ..., command: _Optional[str] = ..., attached: bool = ..., found_by: _Optional[_Union[JobProcess.FoundBy, str]] = ..., attached_ns: _Optional[int] = ..., step: _Optional[int] = ..., step_ns: _Optional[int] = ..., marks: _Optional[int] = ..., dropped_marks: _Optional[int] = ..., pod_uid: _Optional[str] = ..., slurm_job: _Optional[str] = ..., silent_ns: _Optional[int] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ["bytes_per_second", "errors", "kind", "lanes", "name", "up"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class ErrorsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KIND_HCCS: Link.Kind
    KIND_NETWORK: Link.Kind
    KIND_PCIE: Link.Kind
    KIND_SIO: Link.Kind
    KIND_UB: Link.Kind
    KIND_UNSPECIFIED: Link.Kind
    LANES_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    bytes_per_second: float
    errors: _containers.ScalarMap[str, int]
    kind: Link.Kind
    lanes: int
    name: str
    up: bool
    def __init__(self, kind: _Optional[_Union[Link.Kind, str]] = ..., name: _Optional[str] = ..., up: bool = ..., bytes_per_second: _Optional[float] = ..., lanes: _Optional[int] = ..., errors: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ListDumpsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ListDumpsResponse(_message.Message):
    __slots__ = ["dumps", "incomplete", "max_kept_bytes", "max_pinned_bytes", "max_total_bytes", "total_bytes"]
    DUMPS_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_FIELD_NUMBER: _ClassVar[int]
    MAX_KEPT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_PINNED_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    dumps: _containers.RepeatedCompositeFieldContainer[Dump]
    incomplete: bool
    max_kept_bytes: int
    max_pinned_bytes: int
    max_total_bytes: int
    total_bytes: int
    def __init__(self, dumps: _Optional[_Iterable[_Union[Dump, _Mapping]]] = ..., total_bytes: _Optional[int] = ..., max_total_bytes: _Optional[int] = ..., max_kept_bytes: _Optional[int] = ..., max_pinned_bytes: _Optional[int] = ..., incomplete: bool = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ["attached_only", "job_id"]
    ATTACHED_ONLY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    attached_only: bool
    job_id: str
    def __init__(self, job_id: _Optional[str] = ..., attached_only: bool = ...) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ["jobs"]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[Job]
    def __init__(self, jobs: _Optional[_Iterable[_Union[Job, _Mapping]]] = ...) -> None: ...

class ListOptionsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ListOptionsResponse(_message.Message):
    __slots__ = ["chips", "options"]
    CHIPS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    chips: _containers.RepeatedScalarFieldContainer[str]
    options: _containers.RepeatedCompositeFieldContainer[OptionInfo]
    def __init__(self, options: _Optional[_Iterable[_Union[OptionInfo, _Mapping]]] = ..., chips: _Optional[_Iterable[str]] = ...) -> None: ...

class ListSessionsRequest(_message.Message):
    __slots__ = ["active_only", "job_id"]
    ACTIVE_ONLY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    active_only: bool
    job_id: str
    def __init__(self, job_id: _Optional[str] = ..., active_only: bool = ...) -> None: ...

class ListSessionsResponse(_message.Message):
    __slots__ = ["sessions"]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[Session]
    def __init__(self, sessions: _Optional[_Iterable[_Union[Session, _Mapping]]] = ...) -> None: ...

class ListTuningLeasesRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class ListTuningLeasesResponse(_message.Message):
    __slots__ = ["leases"]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    leases: _containers.RepeatedCompositeFieldContainer[TuningLease]
    def __init__(self, leases: _Optional[_Iterable[_Union[TuningLease, _Mapping]]] = ...) -> None: ...

class Neighbour(_message.Message):
    __slots__ = ["physical_id", "type"]
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    PHYSICAL_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TYPE_HCCS: Neighbour.Type
    TYPE_HCCS_SW: Neighbour.Type
    TYPE_PHB: Neighbour.Type
    TYPE_PIX: Neighbour.Type
    TYPE_PXB: Neighbour.Type
    TYPE_SIO: Neighbour.Type
    TYPE_SYS: Neighbour.Type
    TYPE_UB: Neighbour.Type
    TYPE_UNKNOWN: Neighbour.Type
    TYPE_UNSPECIFIED: Neighbour.Type
    physical_id: int
    type: Neighbour.Type
    def __init__(self, physical_id: _Optional[int] = ..., type: _Optional[_Union[Neighbour.Type, str]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ["active_sessions", "archive", "attach_socket", "attached_processes", "build", "caller", "collectors", "devices", "driver", "dump_free_bytes", "dump_root", "health", "hostname", "max_sessions", "metrics_address", "metrics_tls", "missing_rights", "overhead", "recorder", "simulated", "tls_address", "tuning_leases", "uptime_ns", "version"]
    ACTIVE_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    ARCHIVE_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_PROCESSES_FIELD_NUMBER: _ClassVar[int]
    ATTACH_SOCKET_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    CALLER_FIELD_NUMBER: _ClassVar[int]
    COLLECTORS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DRIVER_FIELD_NUMBER: _ClassVar[int]
    DUMP_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DUMP_ROOT_FIELD_NUMBER: _ClassVar[int]
    HEALTH_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    MAX_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    METRICS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    METRICS_TLS_FIELD_NUMBER: _ClassVar[int]
    MISSING_RIGHTS_FIELD_NUMBER: _ClassVar[int]
    OVERHEAD_FIELD_NUMBER: _ClassVar[int]
    RECORDER_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    TLS_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TUNING_LEASES_FIELD_NUMBER: _ClassVar[int]
    UPTIME_NS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    active_sessions: int
    archive: ArchiveStatus
    attach_socket: str
    attached_processes: int
    build: str
    caller: Caller
    collectors: _containers.RepeatedCompositeFieldContainer[CollectorInfo]
    devices: _containers.RepeatedCompositeFieldContainer[Device]
    driver: DriverInfo
    dump_free_bytes: int
    dump_root: str
    health: Health
    hostname: str
    max_sessions: int
    metrics_address: str
    metrics_tls: bool
    missing_rights: _containers.RepeatedScalarFieldContainer[str]
    overhead: Overhead
    recorder: Recorder
    simulated: bool
    tls_address: str
    tuning_leases: _containers.RepeatedCompositeFieldContainer[TuningLease]
    uptime_ns: int
    version: str
    def __init__(self, hostname: _Optional[str] = ..., version: _Optional[str] = ..., build: _Optional[str] = ..., uptime_ns: _Optional[int] = ..., driver: _Optional[_Union[DriverInfo, _Mapping]] = ..., devices: _Optional[_Iterable[_Union[Device, _Mapping]]] = ..., collectors: _Optional[_Iterable[_Union[CollectorInfo, _Mapping]]] = ..., dump_root: _Optional[str] = ..., dump_free_bytes: _Optional[int] = ..., simulated: bool = ..., metrics_address: _Optional[str] = ..., active_sessions: _Optional[int] = ..., max_sessions: _Optional[int] = ..., caller: _Optional[_Union[Caller, _Mapping]] = ..., recorder: _Optional[_Union[Recorder, _Mapping]] = ..., attached_processes: _Optional[int] = ..., attach_socket: _Optional[str] = ..., tls_address: _Optional[str] = ..., metrics_tls: bool = ..., missing_rights: _Optional[_Iterable[str]] = ..., health: _Optional[_Union[Health, _Mapping]] = ..., overhead: _Optional[_Union[Overhead, _Mapping]] = ..., tuning_leases: _Optional[_Iterable[_Union[TuningLease, _Mapping]]] = ..., archive: _Optional[_Union[ArchiveStatus, _Mapping]] = ...) -> None: ...

class OptionInfo(_message.Message):
    __slots__ = ["conflicts", "default_value", "effect", "key", "range", "reason", "source", "supported", "type", "unit"]
    class Source(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    RANGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_APPLICATION: OptionInfo.Source
    SOURCE_CLIENT: OptionInfo.Source
    SOURCE_DEVICE: OptionInfo.Source
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_HOST: OptionInfo.Source
    SOURCE_UNSPECIFIED: OptionInfo.Source
    SUPPORTED_FIELD_NUMBER: _ClassVar[int]
    TYPE_CHOICE: OptionInfo.Type
    TYPE_CYCLES: OptionInfo.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FREQUENCY: OptionInfo.Type
    TYPE_LEVEL: OptionInfo.Type
    TYPE_LIST: OptionInfo.Type
    TYPE_PATH: OptionInfo.Type
    TYPE_SIZE: OptionInfo.Type
    TYPE_SWITCH: OptionInfo.Type
    TYPE_TEXT: OptionInfo.Type
    TYPE_UNSPECIFIED: OptionInfo.Type
    UNIT_FIELD_NUMBER: _ClassVar[int]
    conflicts: str
    default_value: str
    effect: str
    key: str
    range: str
    reason: str
    source: OptionInfo.Source
    supported: bool
    type: OptionInfo.Type
    unit: str
    def __init__(self, key: _Optional[str] = ..., type: _Optional[_Union[OptionInfo.Type, str]] = ..., range: _Optional[str] = ..., default_value: _Optional[str] = ..., unit: _Optional[str] = ..., effect: _Optional[str] = ..., conflicts: _Optional[str] = ..., source: _Optional[_Union[OptionInfo.Source, str]] = ..., supported: bool = ..., reason: _Optional[str] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ["bytes", "collector", "detail", "device", "dropped_bytes", "dropped_records", "garbage_bytes", "holder", "hz", "rebased", "records", "result", "thinned"]
    class Result(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    BYTES_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    DROPPED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    GARBAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    HZ_FIELD_NUMBER: _ClassVar[int]
    REBASED_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    RESULT_BUSY: Outcome.Result
    RESULT_DENIED: Outcome.Result
    RESULT_FAILED: Outcome.Result
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RESULT_FINISHED: Outcome.Result
    RESULT_NEEDS_PROCESS: Outcome.Result
    RESULT_OFF: Outcome.Result
    RESULT_PARTIAL: Outcome.Result
    RESULT_RUNNING: Outcome.Result
    RESULT_UNSPECIFIED: Outcome.Result
    RESULT_UNSUPPORTED: Outcome.Result
    RESULT_WAITING: Outcome.Result
    THINNED_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    collector: str
    detail: str
    device: int
    dropped_bytes: int
    dropped_records: int
    garbage_bytes: int
    holder: str
    hz: float
    rebased: bool
    records: int
    result: Outcome.Result
    thinned: bool
    def __init__(self, collector: _Optional[str] = ..., device: _Optional[int] = ..., result: _Optional[_Union[Outcome.Result, str]] = ..., detail: _Optional[str] = ..., hz: _Optional[float] = ..., records: _Optional[int] = ..., bytes: _Optional[int] = ..., dropped_records: _Optional[int] = ..., dropped_bytes: _Optional[int] = ..., garbage_bytes: _Optional[int] = ..., thinned: bool = ..., rebased: bool = ..., holder: _Optional[str] = ...) -> None: ...

class Overhead(_message.Message):
    __slots__ = ["cores", "max_cores", "max_process_cores", "pace"]
    CORES_FIELD_NUMBER: _ClassVar[int]
    MAX_CORES_FIELD_NUMBER: _ClassVar[int]
    MAX_PROCESS_CORES_FIELD_NUMBER: _ClassVar[int]
    PACE_FIELD_NUMBER: _ClassVar[int]
    cores: float
    max_cores: float
    max_process_cores: float
    pace: int
    def __init__(self, cores: _Optional[float] = ..., max_cores: _Optional[float] = ..., max_process_cores: _Optional[float] = ..., pace: _Optional[int] = ...) -> None: ...

class PinDumpRequest(_message.Message):
    __slots__ = ["dump", "session_id"]
    DUMP_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    dump: str
    session_id: str
    def __init__(self, session_id: _Optional[str] = ..., dump: _Optional[str] = ...) -> None: ...

class PinDumpResponse(_message.Message):
    __slots__ = ["dumps"]
    DUMPS_FIELD_NUMBER: _ClassVar[int]
    dumps: _containers.RepeatedCompositeFieldContainer[Dump]
    def __init__(self, dumps: _Optional[_Iterable[_Union[Dump, _Mapping]]] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ["field", "holder", "kind", "left_out", "text", "value"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    FIELD_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    KIND_BUSY: Problem.Kind
    KIND_CONFLICT: Problem.Kind
    KIND_DENIED: Problem.Kind
    KIND_FAILED: Problem.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    KIND_INVALID: Problem.Kind
    KIND_NEEDS_PROCESS: Problem.Kind
    KIND_UNSPECIFIED: Problem.Kind
    KIND_UNSUPPORTED: Problem.Kind
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    field: str
    holder: str
    kind: Problem.Kind
    left_out: int
    text: str
    value: str
    def __init__(self, kind: _Optional[_Union[Problem.Kind, str]] = ..., field: _Optional[str] = ..., value: _Optional[str] = ..., text: _Optional[str] = ..., holder: _Optional[str] = ..., left_out: _Optional[int] = ...) -> None: ...

class Problems(_message.Message):
    __slots__ = ["problems"]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    problems: _containers.RepeatedCompositeFieldContainer[Problem]
    def __init__(self, problems: _Optional[_Iterable[_Union[Problem, _Mapping]]] = ...) -> None: ...

class ProcessActivity(_message.Message):
    __slots__ = ["job_id", "kernels", "kernels_span_ns", "kernels_total_ns", "lost_bytes", "lost_records", "pid", "rank", "spans", "uid", "unreadable_bytes"]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    KERNELS_FIELD_NUMBER: _ClassVar[int]
    KERNELS_SPAN_NS_FIELD_NUMBER: _ClassVar[int]
    KERNELS_TOTAL_NS_FIELD_NUMBER: _ClassVar[int]
    LOST_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOST_RECORDS_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    UNREADABLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    kernels: _containers.RepeatedCompositeFieldContainer[HotKernel]
    kernels_span_ns: int
    kernels_total_ns: int
    lost_bytes: int
    lost_records: int
    pid: int
    rank: int
    spans: _containers.RepeatedCompositeFieldContainer[ActivitySpan]
    uid: int
    unreadable_bytes: int
    def __init__(self, pid: _Optional[int] = ..., uid: _Optional[int] = ..., job_id: _Optional[str] = ..., rank: _Optional[int] = ..., spans: _Optional[_Iterable[_Union[ActivitySpan, _Mapping]]] = ..., kernels: _Optional[_Iterable[_Union[HotKernel, _Mapping]]] = ..., kernels_span_ns: _Optional[int] = ..., kernels_total_ns: _Optional[int] = ..., lost_records: _Optional[int] = ..., lost_bytes: _Optional[int] = ..., unreadable_bytes: _Optional[int] = ...) -> None: ...

class ProcessCollector(_message.Message):
    __slots__ = ["code", "detail", "kinds", "provider", "state", "version"]
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    KIND_ACL_API: ProcessCollector.Kind
    KIND_COMMUNICATION: ProcessCollector.Kind
    KIND_KERNEL: ProcessCollector.Kind
    KIND_MARKER: ProcessCollector.Kind
    KIND_MEMORY: ProcessCollector.Kind
    KIND_NODE_API: ProcessCollector.Kind
    KIND_RUNTIME_API: ProcessCollector.Kind
    KIND_UNSPECIFIED: ProcessCollector.Kind
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    STATE_BUSY: ProcessCollector.State
    STATE_ENDED: ProcessCollector.State
    STATE_FAILED: ProcessCollector.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_OFF: ProcessCollector.State
    STATE_ON: ProcessCollector.State
    STATE_PARTIAL: ProcessCollector.State
    STATE_SILENT: ProcessCollector.State
    STATE_STOPPING: ProcessCollector.State
    STATE_UNSPECIFIED: ProcessCollector.State
    STATE_UNSUPPORTED: ProcessCollector.State
    STATE_WAITING: ProcessCollector.State
    VERSION_FIELD_NUMBER: _ClassVar[int]
    code: int
    detail: str
    kinds: _containers.RepeatedScalarFieldContainer[ProcessCollector.Kind]
    provider: SessionSpec.Provider
    state: ProcessCollector.State
    version: str
    def __init__(self, provider: _Optional[_Union[SessionSpec.Provider, str]] = ..., state: _Optional[_Union[ProcessCollector.State, str]] = ..., code: _Optional[int] = ..., detail: _Optional[str] = ..., kinds: _Optional[_Iterable[_Union[ProcessCollector.Kind, str]]] = ..., version: _Optional[str] = ...) -> None: ...

class ProcessStacks(_message.Message):
    __slots__ = ["command", "frames_left_out", "job_id", "pid", "problem", "python", "rank", "step", "threads", "threads_left_out", "uid"]
    class Python(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    FRAMES_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    PYTHON_ANSWERED: ProcessStacks.Python
    PYTHON_FIELD_NUMBER: _ClassVar[int]
    PYTHON_NONE: ProcessStacks.Python
    PYTHON_NOT_ATTACHED: ProcessStacks.Python
    PYTHON_SILENT: ProcessStacks.Python
    PYTHON_UNSPECIFIED: ProcessStacks.Python
    RANK_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    THREADS_LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    command: str
    frames_left_out: bool
    job_id: str
    pid: int
    problem: str
    python: ProcessStacks.Python
    rank: int
    step: int
    threads: _containers.RepeatedCompositeFieldContainer[ThreadStack]
    threads_left_out: int
    uid: int
    def __init__(self, pid: _Optional[int] = ..., uid: _Optional[int] = ..., job_id: _Optional[str] = ..., rank: _Optional[int] = ..., command: _Optional[str] = ..., step: _Optional[int] = ..., python: _Optional[_Union[ProcessStacks.Python, str]] = ..., threads: _Optional[_Iterable[_Union[ThreadStack, _Mapping]]] = ..., threads_left_out: _Optional[int] = ..., frames_left_out: bool = ..., problem: _Optional[str] = ...) -> None: ...

class RankStep(_message.Message):
    __slots__ = ["devices", "job_id", "pid", "rank", "shares", "step", "step_ns", "uid"]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    STEP_NS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedScalarFieldContainer[int]
    job_id: str
    pid: int
    rank: int
    shares: StepShares
    step: int
    step_ns: int
    uid: int
    def __init__(self, job_id: _Optional[str] = ..., uid: _Optional[int] = ..., pid: _Optional[int] = ..., rank: _Optional[int] = ..., devices: _Optional[_Iterable[int]] = ..., step: _Optional[int] = ..., step_ns: _Optional[int] = ..., shares: _Optional[_Union[StepShares, _Mapping]] = ...) -> None: ...

class Recorder(_message.Message):
    __slots__ = ["channels", "dumps", "enabled", "evicted_early", "held_bytes", "held_ns", "limit_bytes", "limit_ms", "suppressed", "triggers"]
    class DumpsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    DUMPS_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    EVICTED_EARLY_FIELD_NUMBER: _ClassVar[int]
    HELD_BYTES_FIELD_NUMBER: _ClassVar[int]
    HELD_NS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_MS_FIELD_NUMBER: _ClassVar[int]
    SUPPRESSED_FIELD_NUMBER: _ClassVar[int]
    TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedCompositeFieldContainer[RecorderChannel]
    dumps: _containers.ScalarMap[str, int]
    enabled: bool
    evicted_early: int
    held_bytes: int
    held_ns: int
    limit_bytes: int
    limit_ms: int
    suppressed: int
    triggers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, enabled: bool = ..., limit_ms: _Optional[int] = ..., limit_bytes: _Optional[int] = ..., held_ns: _Optional[int] = ..., held_bytes: _Optional[int] = ..., evicted_early: _Optional[int] = ..., channels: _Optional[_Iterable[_Union[RecorderChannel, _Mapping]]] = ..., dumps: _Optional[_Mapping[str, int]] = ..., suppressed: _Optional[int] = ..., triggers: _Optional[_Iterable[str]] = ...) -> None: ...

class RecorderChannel(_message.Message):
    __slots__ = ["bytes", "collector", "device", "held_ns", "hz", "problem"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    HELD_NS_FIELD_NUMBER: _ClassVar[int]
    HZ_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    collector: str
    device: int
    held_ns: int
    hz: float
    problem: str
    def __init__(self, collector: _Optional[str] = ..., device: _Optional[int] = ..., hz: _Optional[float] = ..., bytes: _Optional[int] = ..., held_ns: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class ReleaseChannelsRequest(_message.Message):
    __slots__ = ["channels", "devices", "duration_ms"]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    channels: _containers.RepeatedScalarFieldContainer[int]
    devices: _containers.RepeatedScalarFieldContainer[int]
    duration_ms: int
    def __init__(self, devices: _Optional[_Iterable[int]] = ..., channels: _Optional[_Iterable[int]] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class ReleaseTuningLeaseRequest(_message.Message):
    __slots__ = ["lease_id"]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    lease_id: str
    def __init__(self, lease_id: _Optional[str] = ...) -> None: ...

class ReleaseTuningLeaseResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class RenewLeaseRequest(_message.Message):
    __slots__ = ["session_id"]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class RenewLeaseResponse(_message.Message):
    __slots__ = ["left_ms"]
    LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    left_ms: int
    def __init__(self, left_ms: _Optional[int] = ...) -> None: ...

class ReportArchiveRequest(_message.Message):
    __slots__ = ["dump", "failed", "loaded"]
    DUMP_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    LOADED_FIELD_NUMBER: _ClassVar[int]
    dump: str
    failed: ArchiveFailed
    loaded: ArchiveLoaded
    def __init__(self, dump: _Optional[str] = ..., loaded: _Optional[_Union[ArchiveLoaded, _Mapping]] = ..., failed: _Optional[_Union[ArchiveFailed, _Mapping]] = ...) -> None: ...

class ReportArchiveResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class SampleChunk(_message.Message):
    __slots__ = ["dropped", "samples", "series", "wall_offset_ns"]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    WALL_OFFSET_NS_FIELD_NUMBER: _ClassVar[int]
    dropped: int
    samples: _containers.RepeatedCompositeFieldContainer[SampleValue]
    series: _containers.RepeatedCompositeFieldContainer[SeriesInfo]
    wall_offset_ns: int
    def __init__(self, series: _Optional[_Iterable[_Union[SeriesInfo, _Mapping]]] = ..., samples: _Optional[_Iterable[_Union[SampleValue, _Mapping]]] = ..., dropped: _Optional[int] = ..., wall_offset_ns: _Optional[int] = ...) -> None: ...

class SampleValue(_message.Message):
    __slots__ = ["series", "time_ns", "value"]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    TIME_NS_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    series: int
    time_ns: int
    value: float
    def __init__(self, series: _Optional[int] = ..., time_ns: _Optional[int] = ..., value: _Optional[float] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ["bytes", "dump_path", "ended_ns", "number", "reason", "records", "started_ns", "state"]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    DUMP_PATH_FIELD_NUMBER: _ClassVar[int]
    ENDED_NS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    STARTED_NS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    bytes: int
    dump_path: str
    ended_ns: int
    number: int
    reason: str
    records: int
    started_ns: int
    state: Session.State
    def __init__(self, dump_path: _Optional[str] = ..., state: _Optional[_Union[Session.State, str]] = ..., reason: _Optional[str] = ..., started_ns: _Optional[int] = ..., ended_ns: _Optional[int] = ..., bytes: _Optional[int] = ..., records: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class SeriesInfo(_message.Message):
    __slots__ = ["collector", "device", "id", "labels", "metric"]
    class LabelsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    COLLECTOR_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    collector: str
    device: int
    id: int
    labels: _containers.ScalarMap[str, str]
    metric: str
    def __init__(self, id: _Optional[int] = ..., metric: _Optional[str] = ..., device: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., collector: _Optional[str] = ...) -> None: ...

class Session(_message.Message):
    __slots__ = ["owner", "session_id", "spec", "status"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class Owner(_message.Message):
        __slots__ = ["pid", "uid"]
        PID_FIELD_NUMBER: _ClassVar[int]
        UID_FIELD_NUMBER: _ClassVar[int]
        pid: int
        uid: int
        def __init__(self, uid: _Optional[int] = ..., pid: _Optional[int] = ...) -> None: ...
    OWNER_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_DONE: Session.State
    STATE_FAILED: Session.State
    STATE_INTERRUPTED: Session.State
    STATE_RUNNING: Session.State
    STATE_SCHEDULED: Session.State
    STATE_STARTING: Session.State
    STATE_STOPPING: Session.State
    STATE_UNSPECIFIED: Session.State
    STATUS_FIELD_NUMBER: _ClassVar[int]
    owner: Session.Owner
    session_id: str
    spec: SessionSpec
    status: SessionStatus
    def __init__(self, session_id: _Optional[str] = ..., owner: _Optional[_Union[Session.Owner, _Mapping]] = ..., spec: _Optional[_Union[SessionSpec, _Mapping]] = ..., status: _Optional[_Union[SessionStatus, _Mapping]] = ...) -> None: ...

class SessionProcess(_message.Message):
    __slots__ = ["attached", "collector", "pid", "rank"]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    COLLECTOR_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    attached: bool
    collector: ProcessCollector
    pid: int
    rank: int
    def __init__(self, pid: _Optional[int] = ..., rank: _Optional[int] = ..., attached: bool = ..., collector: _Optional[_Union[ProcessCollector, _Mapping]] = ...) -> None: ...

class SessionSpec(_message.Message):
    __slots__ = ["acl_switches", "best_effort", "collectors", "compress", "label", "lease", "marks", "metadata", "no_dump", "options", "options_json", "preempt", "priority", "provider", "require_all", "schedule", "target"]
    class Provider(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    class AclSwitchesEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class Lease(_message.Message):
        __slots__ = ["lease_ms", "starter_pid"]
        LEASE_MS_FIELD_NUMBER: _ClassVar[int]
        STARTER_PID_FIELD_NUMBER: _ClassVar[int]
        lease_ms: int
        starter_pid: int
        def __init__(self, lease_ms: _Optional[int] = ..., starter_pid: _Optional[int] = ...) -> None: ...
    class MetadataEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class Schedule(_message.Message):
        __slots__ = ["duration_ms", "end_with_pid", "since_ms", "start_at_ns", "start_in_ms", "start_in_steps", "start_step", "steps"]
        DURATION_MS_FIELD_NUMBER: _ClassVar[int]
        END_WITH_PID_FIELD_NUMBER: _ClassVar[int]
        SINCE_MS_FIELD_NUMBER: _ClassVar[int]
        START_AT_NS_FIELD_NUMBER: _ClassVar[int]
        START_IN_MS_FIELD_NUMBER: _ClassVar[int]
        START_IN_STEPS_FIELD_NUMBER: _ClassVar[int]
        START_STEP_FIELD_NUMBER: _ClassVar[int]
        STEPS_FIELD_NUMBER: _ClassVar[int]
        duration_ms: int
        end_with_pid: int
        since_ms: int
        start_at_ns: int
        start_in_ms: int
        start_in_steps: int
        start_step: int
        steps: int
        def __init__(self, start_at_ns: _Optional[int] = ..., start_in_ms: _Optional[int] = ..., start_step: _Optional[int] = ..., start_in_steps: _Optional[int] = ..., duration_ms: _Optional[int] = ..., steps: _Optional[int] = ..., since_ms: _Optional[int] = ..., end_with_pid: _Optional[int] = ...) -> None: ...
    class Target(_message.Message):
        __slots__ = ["all", "devices", "follow", "job_id", "pids", "rank", "ranks"]
        ALL_FIELD_NUMBER: _ClassVar[int]
        DEVICES_FIELD_NUMBER: _ClassVar[int]
        FOLLOW_FIELD_NUMBER: _ClassVar[int]
        JOB_ID_FIELD_NUMBER: _ClassVar[int]
        PIDS_FIELD_NUMBER: _ClassVar[int]
        RANKS_FIELD_NUMBER: _ClassVar[int]
        RANK_FIELD_NUMBER: _ClassVar[int]
        all: bool
        devices: _containers.RepeatedScalarFieldContainer[int]
        follow: bool
        job_id: str
        pids: _containers.RepeatedScalarFieldContainer[int]
        rank: int
        ranks: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, job_id: _Optional[str] = ..., devices: _Optional[_Iterable[int]] = ..., all: bool = ..., ranks: _Optional[_Iterable[int]] = ..., pids: _Optional[_Iterable[int]] = ..., rank: _Optional[int] = ..., follow: bool = ...) -> None: ...
    ACL_SWITCHES_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    COLLECTORS_FIELD_NUMBER: _ClassVar[int]
    COMPRESS_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    NO_DUMP_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_JSON_FIELD_NUMBER: _ClassVar[int]
    PREEMPT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_ACLPROF: SessionSpec.Provider
    PROVIDER_AUTO: SessionSpec.Provider
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_MSPTI: SessionSpec.Provider
    PROVIDER_OFF: SessionSpec.Provider
    PROVIDER_UNSPECIFIED: SessionSpec.Provider
    REQUIRE_ALL_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    acl_switches: _containers.ScalarMap[str, str]
    best_effort: bool
    collectors: _containers.RepeatedCompositeFieldContainer[CollectorRequest]
    compress: bool
    label: str
    lease: SessionSpec.Lease
    marks: bool
    metadata: _containers.ScalarMap[str, str]
    no_dump: bool
    options: _options_pb2.ProfilingOptions
    options_json: str
    preempt: bool
    priority: int
    provider: SessionSpec.Provider
    require_all: bool
    schedule: SessionSpec.Schedule
    target: SessionSpec.Target
    def __init__(self, target: _Optional[_Union[SessionSpec.Target, _Mapping]] = ..., schedule: _Optional[_Union[SessionSpec.Schedule, _Mapping]] = ..., lease: _Optional[_Union[SessionSpec.Lease, _Mapping]] = ..., label: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., collectors: _Optional[_Iterable[_Union[CollectorRequest, _Mapping]]] = ..., options: _Optional[_Union[_options_pb2.ProfilingOptions, _Mapping]] = ..., options_json: _Optional[str] = ..., acl_switches: _Optional[_Mapping[str, str]] = ..., best_effort: bool = ..., require_all: bool = ..., marks: bool = ..., no_dump: bool = ..., compress: bool = ..., priority: _Optional[int] = ..., preempt: bool = ..., provider: _Optional[_Union[SessionSpec.Provider, str]] = ...) -> None: ...

class SessionStatus(_message.Message):
    __slots__ = ["collecting_files", "devices", "dropped_bytes", "dropped_marks", "dropped_records", "dump_bytes", "dump_path", "effective_options", "ended_ns", "expected_ranks", "lease_left_ms", "marks", "outcomes", "pinned", "processes", "reason", "records", "removed_for_space", "removed_records", "segments", "since_ns", "started_ns", "state", "statistics", "steps_done", "warnings"]
    COLLECTING_FILES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_BYTES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_MARKS_FIELD_NUMBER: _ClassVar[int]
    DROPPED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    DUMP_BYTES_FIELD_NUMBER: _ClassVar[int]
    DUMP_PATH_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ENDED_NS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_RANKS_FIELD_NUMBER: _ClassVar[int]
    LEASE_LEFT_MS_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FOR_SPACE_FIELD_NUMBER: _ClassVar[int]
    REMOVED_RECORDS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    STARTED_NS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    STEPS_DONE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    collecting_files: CollectingFiles
    devices: _containers.RepeatedScalarFieldContainer[int]
    dropped_bytes: int
    dropped_marks: int
    dropped_records: int
    dump_bytes: int
    dump_path: str
    effective_options: _containers.RepeatedCompositeFieldContainer[EffectiveOption]
    ended_ns: int
    expected_ranks: int
    lease_left_ms: int
    marks: int
    outcomes: _containers.RepeatedCompositeFieldContainer[Outcome]
    pinned: bool
    processes: _containers.RepeatedCompositeFieldContainer[SessionProcess]
    reason: str
    records: int
    removed_for_space: int
    removed_records: int
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    since_ns: int
    started_ns: int
    state: Session.State
    statistics: _containers.RepeatedCompositeFieldContainer[DeviceStatistics]
    steps_done: int
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, state: _Optional[_Union[Session.State, str]] = ..., reason: _Optional[str] = ..., started_ns: _Optional[int] = ..., ended_ns: _Optional[int] = ..., since_ns: _Optional[int] = ..., devices: _Optional[_Iterable[int]] = ..., outcomes: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ..., effective_options: _Optional[_Iterable[_Union[EffectiveOption, _Mapping]]] = ..., processes: _Optional[_Iterable[_Union[SessionProcess, _Mapping]]] = ..., expected_ranks: _Optional[int] = ..., steps_done: _Optional[int] = ..., lease_left_ms: _Optional[int] = ..., dump_path: _Optional[str] = ..., dump_bytes: _Optional[int] = ..., records: _Optional[int] = ..., dropped_records: _Optional[int] = ..., dropped_bytes: _Optional[int] = ..., marks: _Optional[int] = ..., dropped_marks: _Optional[int] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., pinned: bool = ..., statistics: _Optional[_Iterable[_Union[DeviceStatistics, _Mapping]]] = ..., warnings: _Optional[_Iterable[str]] = ..., collecting_files: _Optional[_Union[CollectingFiles, _Mapping]] = ..., removed_records: _Optional[int] = ..., removed_for_space: _Optional[int] = ...) -> None: ...

class StackFrame(_message.Message):
    __slots__ = ["file", "function", "line"]
    FILE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    LINE_FIELD_NUMBER: _ClassVar[int]
    file: str
    function: str
    line: int
    def __init__(self, file: _Optional[str] = ..., function: _Optional[str] = ..., line: _Optional[int] = ...) -> None: ...

class StartSessionRequest(_message.Message):
    __slots__ = ["spec"]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    spec: SessionSpec
    def __init__(self, spec: _Optional[_Union[SessionSpec, _Mapping]] = ...) -> None: ...

class StatusDetails(_message.Message):
    __slots__ = ["code", "details", "message"]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: int
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    message: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class StepShares(_message.Message):
    __slots__ = ["communication_ns", "computation_ns", "free_ns", "wait_ns"]
    COMMUNICATION_NS_FIELD_NUMBER: _ClassVar[int]
    COMPUTATION_NS_FIELD_NUMBER: _ClassVar[int]
    FREE_NS_FIELD_NUMBER: _ClassVar[int]
    WAIT_NS_FIELD_NUMBER: _ClassVar[int]
    communication_ns: int
    computation_ns: int
    free_ns: int
    wait_ns: int
    def __init__(self, computation_ns: _Optional[int] = ..., communication_ns: _Optional[int] = ..., wait_ns: _Optional[int] = ..., free_ns: _Optional[int] = ...) -> None: ...

class StopSessionRequest(_message.Message):
    __slots__ = ["job_id", "session_id"]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    session_id: str
    def __init__(self, session_id: _Optional[str] = ..., job_id: _Optional[str] = ...) -> None: ...

class StreamSamplesRequest(_message.Message):
    __slots__ = ["collectors", "devices", "devices_only", "interval_ms", "max_samples"]
    COLLECTORS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_ONLY_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    collectors: _containers.RepeatedScalarFieldContainer[str]
    devices: _containers.RepeatedScalarFieldContainer[int]
    devices_only: bool
    interval_ms: int
    max_samples: int
    def __init__(self, collectors: _Optional[_Iterable[str]] = ..., devices: _Optional[_Iterable[int]] = ..., devices_only: bool = ..., interval_ms: _Optional[int] = ..., max_samples: _Optional[int] = ...) -> None: ...

class ThreadStack(_message.Message):
    __slots__ = ["file", "frames", "kernel_function", "name", "state", "system_call", "thread", "trains"]
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    FILE_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FUNCTION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_BLOCKED: ThreadStack.State
    STATE_ENDED: ThreadStack.State
    STATE_FIELD_NUMBER: _ClassVar[int]
    STATE_RUNNING: ThreadStack.State
    STATE_SLEEPING: ThreadStack.State
    STATE_STOPPED: ThreadStack.State
    STATE_UNSPECIFIED: ThreadStack.State
    SYSTEM_CALL_FIELD_NUMBER: _ClassVar[int]
    THREAD_FIELD_NUMBER: _ClassVar[int]
    TRAINS_FIELD_NUMBER: _ClassVar[int]
    file: str
    frames: _containers.RepeatedCompositeFieldContainer[StackFrame]
    kernel_function: str
    name: str
    state: ThreadStack.State
    system_call: str
    thread: int
    trains: bool
    def __init__(self, thread: _Optional[int] = ..., name: _Optional[str] = ..., state: _Optional[_Union[ThreadStack.State, str]] = ..., kernel_function: _Optional[str] = ..., system_call: _Optional[str] = ..., file: _Optional[str] = ..., trains: bool = ..., frames: _Optional[_Iterable[_Union[StackFrame, _Mapping]]] = ...) -> None: ...

class Topology(_message.Message):
    __slots__ = ["devices"]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[DeviceTopology]
    def __init__(self, devices: _Optional[_Iterable[_Union[DeviceTopology, _Mapping]]] = ...) -> None: ...

class TuningLease(_message.Message):
    __slots__ = ["devices", "job_id", "lease_id", "mode", "pid", "since_ns", "uid", "until_ns"]
    class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = []
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MODE_OPERATOR: TuningLease.Mode
    MODE_SUBGRAPH: TuningLease.Mode
    MODE_UNSPECIFIED: TuningLease.Mode
    PID_FIELD_NUMBER: _ClassVar[int]
    SINCE_NS_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    UNTIL_NS_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedScalarFieldContainer[int]
    job_id: str
    lease_id: str
    mode: TuningLease.Mode
    pid: int
    since_ns: int
    uid: int
    until_ns: int
    def __init__(self, lease_id: _Optional[str] = ..., devices: _Optional[_Iterable[int]] = ..., uid: _Optional[int] = ..., pid: _Optional[int] = ..., job_id: _Optional[str] = ..., mode: _Optional[_Union[TuningLease.Mode, str]] = ..., since_ns: _Optional[int] = ..., until_ns: _Optional[int] = ...) -> None: ...

class UnpinDumpRequest(_message.Message):
    __slots__ = ["dump", "session_id"]
    DUMP_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    dump: str
    session_id: str
    def __init__(self, session_id: _Optional[str] = ..., dump: _Optional[str] = ...) -> None: ...

class UnpinDumpResponse(_message.Message):
    __slots__ = ["dumps"]
    DUMPS_FIELD_NUMBER: _ClassVar[int]
    dumps: _containers.RepeatedCompositeFieldContainer[Dump]
    def __init__(self, dumps: _Optional[_Iterable[_Union[Dump, _Mapping]]] = ...) -> None: ...

class WatchAdviceRequest(_message.Message):
    __slots__ = ["interval_ms", "what"]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    interval_ms: int
    what: GetAdviceRequest
    def __init__(self, what: _Optional[_Union[GetAdviceRequest, _Mapping]] = ..., interval_ms: _Optional[int] = ...) -> None: ...

class WatchSessionRequest(_message.Message):
    __slots__ = ["interval_ms", "session_id"]
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    interval_ms: int
    session_id: str
    def __init__(self, session_id: _Optional[str] = ..., interval_ms: _Optional[int] = ...) -> None: ...

class Role(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = []
