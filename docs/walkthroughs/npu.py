"""What the walkthroughs need of a framework on an NPU, over the simulated runtime (libascendcl.so of sim/): operators that are
launched, take their time on the device, and are waited for. Nothing is computed."""

import ctypes
import json
import os
import struct
import sys
import tempfile
import threading
import time

import profd

CORES = {"aicore": 0, "aicpu": 1, "aivec": 66}
_runtime = ctypes.CDLL("libascendcl.so")
_stream = ctypes.c_void_p()


class Tensor(ctypes.Structure):
    _fields_ = [("output", ctypes.c_uint32), ("format", ctypes.c_uint32), ("type", ctypes.c_uint32), ("shape", ctypes.c_uint32 * 8)]


class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("function", ctypes.c_char_p), ("kernel_name", ctypes.c_char_p),
                ("core", ctypes.c_uint32), ("blocks", ctypes.c_uint32), ("duration_ns", ctypes.c_int64),
                ("tensors", ctypes.POINTER(Tensor)), ("tensor_count", ctypes.c_uint32)]


class Communication(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("function", ctypes.c_char_p), ("algorithm", ctypes.c_char_p),
                ("data_type", ctypes.c_uint8), ("count", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("duration_ns", ctypes.c_int64)]


def _check(code):
    if code != 0:
        raise RuntimeError(f"the runtime answers {code}")


def set_device(device):
    _check(_runtime.aclInit(None))
    _check(_runtime.aclrtSetDevice(device))
    _check(_runtime.aclrtCreateStream(ctypes.byref(_stream)))


def synchronize():
    _check(_runtime.aclrtSynchronizeDevice())


def launch(kind, us, *shapes, name=None, core="aicore", operator=None):
    """Launches an operator of this type from within the framework's `operator`. The last shape is the output's."""
    tensors = (Tensor * len(shapes))(*(Tensor(i == len(shapes) - 1, 2, 0, (ctypes.c_uint32 * 8)(*shape)) for i, shape in enumerate(shapes)))
    kernel = Kernel((name or kind).encode(), kind.encode(), b"aclnn" + kind.encode(), b"", CORES[core], 24, us * 1000, tensors, len(shapes))
    operator = operator or name or kind
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    with profd.annotate(operator):
        _check(_runtime.simAclLaunch(ctypes.byref(kernel), _stream))
    if FrameworkProfiler.running:
        FrameworkProfiler.running.launched(operator, begin, shapes)


def all_reduce(name, megabytes, us, group=[]):
    """An all-reduce of a rank with itself: there is no other rank to wait for."""
    if not group:
        file = tempfile.mktemp(prefix="npu-group-")
        _runtime.simAclGroup.restype = ctypes.c_void_p
        group.append(ctypes.c_void_p(_runtime.simAclGroup(b"hccl_world_group", file.encode(), 1, 0)))
    size = int(megabytes * 1e6)
    operation = Communication(name.encode(), b"hcom_allReduce_", b"HcclAllReduce", b"RING", 4, size // 4, size, us * 1000)
    _check(_runtime.simAclCommunicate(ctypes.byref(operation), group[0], _stream))


def wait_until_collecting(seconds=30):
    """A session requests operators from this process when it starts; the vendor's profiler needs some time to begin."""
    end = time.monotonic() + seconds
    while any(outcome["result"] == "waiting" for outcome in profd.session(refresh=1.0).get("outcomes", ())) and time.monotonic() < end:
        time.sleep(0.01)


class FrameworkProfiler:
    """The half of torch_npu's profiler that records the framework's operators with their call stacks, in its files."""

    running = None

    def __init__(self, folder):
        self.folder, self.records, self.start = folder, [], time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

    def __enter__(self):
        FrameworkProfiler.running = self

    def launched(self, name, begin, shapes):
        end, frame, frames = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), sys._getframe(2), []
        while frame:
            frames.append(f"{os.path.basename(frame.f_code.co_filename)}({frame.f_lineno}): {frame.f_code.co_name}")
            frame = frame.f_back
        thread = threading.get_native_id()
        fixed = struct.pack("<3q4Q2B", begin, end, -1, os.getpid(), thread, thread, 0, 0, 0)
        fields = ((2, name), (4, ";".join(",".join(map(str, shape)) for shape in shapes[:-1])), (8, ";".join(frames)))
        body = fixed + b"".join(struct.pack("<HI", number, len(text)) + text.encode() for number, text in fields)
        self.records.append(struct.pack("<HI", 1, len(body)) + body)

    def __exit__(self, *_):
        FrameworkProfiler.running = None
        os.makedirs(os.path.join(self.folder, "FRAMEWORK"))
        with open(os.path.join(self.folder, "FRAMEWORK", "torch.op_range"), "wb") as file:
            file.write(b"".join(self.records))
        ends = {"collectionTimeEnd": time.time_ns(), "MonotonicTimeEnd": time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)}
        with open(os.path.join(self.folder, "profiler_info_0.json"), "w", encoding="utf-8") as file:
            json.dump({"config": {"common_config": {"with_stack": True}}, "rank_id": 0, "end_info": ends,
                       "start_info": {"syscnt_enable": False, "freq": 100, "start_cnt": 0, "start_monotonic": self.start}}, file)
