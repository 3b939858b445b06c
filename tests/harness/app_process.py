"""A training process that a test leads by the hand: Python with the simulated runtime and libprofd."""

import os
import subprocess
import sys

from profd_harness import BUILD
from python_package import environment

SCRIPT = r'''
import ctypes, os, struct, sys, time
import profd

acl = ctypes.CDLL("libascendcl.so", ctypes.RTLD_GLOBAL)
stream = ctypes.c_void_p()
assert acl.aclInit(None) == 0 and acl.aclrtSetDevice(0) == 0 and acl.aclrtCreateStream(ctypes.byref(stream)) == 0
profd.attach()
subscriber = ctypes.c_void_p()

class Kernel(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("function", ctypes.c_char_p),
                ("kernel_name", ctypes.c_char_p), ("task_type", ctypes.c_uint32), ("block_dim", ctypes.c_uint32),
                ("duration_ns", ctypes.c_int64), ("tensors", ctypes.c_void_p), ("tensor_count", ctypes.c_uint32)]

def launch(name, count):
    kernel = Kernel(name.encode(), b"MatMulV2", b"aclnnMatmul", b"", 0, 1, 20000, None, 0)
    for _ in range(int(count)):
        assert acl.simAclLaunch(ctypes.byref(kernel), stream) == 0
    return acl.aclrtSynchronizeStream(stream)

def fork():
    """A child as a data loader has them: it marks, and ends without destructors."""
    child = os.fork()
    if child == 0:
        profd.mark("in the child")
        profd.step(1)
        os._exit(0)
    for _ in range(1000):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return f"{child} {status}"
        time.sleep(0.01)
    os.kill(child, 9)
    return f"{child} hangs"

def subscribe():
    return ctypes.CDLL("libmspti.so").msptiSubscribe(ctypes.byref(subscriber), None, None)

def unsubscribe():
    return ctypes.CDLL("libmspti.so").msptiUnsubscribe(subscriber)

def profiler(command):
    """What another profiler's START and STOP send to all modules."""
    data = bytearray(5424)
    struct.pack_into("<QQII", data, 0, 0x802, 0, 1, 0)
    struct.pack_into("<II", data, 276, 0xFFFFFFFF, {"start": 1, "stop": 2}[command])
    buffer = (ctypes.c_char * len(data)).from_buffer(data)
    return ctypes.CDLL("libprofapi.so").profSetProfCommand(buffer, len(data))

print("ready", flush=True)
for line in sys.stdin:
    name, *words = line.split()
    print("done", globals()[name](*words), flush=True)
'''


class AppProcess:
    def __init__(self, daemon, job_id):
        paths = os.pathsep.join((os.path.join(BUILD, "sim"), os.path.join(BUILD, "lib")))
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT], env=environment(daemon, LD_LIBRARY_PATH=paths, SLURM_JOB_ID=job_id),
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answer("ready")

    @property
    def pid(self):
        return self.process.pid

    def answer(self, word):
        # The stand-in of MSPTI writes to stdout when it is loaded, as the vendor's does.
        for line in self.process.stdout:
            if line.startswith(word):
                return line[len(word):].strip()
        raise AssertionError(f"the process ended with {self.process.wait()}")

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.answer("done")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.kill()
        self.process.wait()
