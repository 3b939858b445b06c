#!/usr/bin/env python3
"""docs/api.md: its commands and its program as they stand there, with the Python and the compilers of the
distribution; reflection and health as grpcurl asks for them."""

import os
import re
import shutil
import subprocess

from profd_harness import REPO, DaemonCase, main, scaled, temp_folder
from python_package import PACKAGE, python_with
from text_files import read_text

INSTALLED = "/usr/share/profd/proto"

# Reflection and health without generated modules: field numbers of their public protos.
ASK = r"""
import sys
import grpc
from google.protobuf import descriptor_pb2
from perfetto_reader import fields

SYMBOL, FILE, LIST = 4, 3, 7


def field(number, text):
    return bytes((number << 3 | 2, len(text))) + text.encode()


with grpc.insecure_channel("unix:" + sys.argv[1]) as channel:
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    for service in ("", "profd.v1.NodeService", "profd.v1.SessionService", "profd.v1.DumpService"):
        print("health", repr(service), check(field(1, service) if service else b"", timeout=30).hex())
    try:
        check(field(1, "profd.v1.Nothing"), timeout=30)
    except grpc.RpcError as error:
        print("health of nothing", error.code().name)
    reflect = channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")

    def ask(number, text):
        # 4: descriptors, 6: services
        answer = next(iter(reflect(iter([field(number, text)]), timeout=30)))
        return {kind: [part for _, part in fields(body)] for kind, body in fields(answer) if kind in (4, 6)}

    for service in ask(LIST, "*")[6]:
        print("service", next(body for number, body in fields(service) if number == 1).decode())
    file = descriptor_pb2.FileDescriptorProto.FromString(ask(SYMBOL, "profd.v1.SessionService")[4][0])
    print("methods", *sorted(method.name for service in file.service for method in service.method))
    for name in file.dependency:
        print("imports", descriptor_pb2.FileDescriptorProto.FromString(ask(FILE, name)[4][0]).name)
"""


def blocks(language):
    section = read_text(REPO, "docs", "api.md").split("\n## gRPC\n")[1]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.M | re.S)


class Grpc(DaemonCase):
    devices = 1

    def setUp(self):
        self.base = temp_folder(self)

    def run_in(self, command, **env):
        result = subprocess.run(command, cwd=self.base, capture_output=True, text=True, check=False,
                                timeout=scaled(120), env={**os.environ, **env})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def generate(self):
        """As the document says."""
        if shutil.which("protoc") is None or shutil.which("grpc_python_plugin") is None:
            self.skipTest("no protoc with gRPC's plugins")
        command = next(block for block in blocks("sh") if re.search(r"^protoc ", block, re.M))
        self.assertIn(INSTALLED, command)
        self.run_in(["sh", "-ec", command.replace(INSTALLED, os.path.join(REPO, "proto"))])
        return os.path.join(self.base, "generated")

    def try_program(self, python, path):
        program = next(block for block in blocks("python") if "StartSession" in block)
        before = {session["session_id"] for session in self.daemon.ctl("list")["sessions"]}
        out = self.run_in([python, "-B", "-c", program], PYTHONPATH=path, PROFD_SOCKET=self.daemon.socket)
        new = [s for s in self.daemon.ctl("list")["sessions"] if s["session_id"] not in before]
        self.assertEqual([(s["state"], s["label"]) for s in new], [("done", "from Python")], out)
        self.assertRegex(out, rf"^session {new[0]['session_id']} dump {new[0]['dump_path']}\n(STATE_RUNNING \d+ records\n)+"
                              rf"STATE_DONE {new[0]['records']} records \d+ bytes\n$")

    def test_program_with_protoc(self):
        self.try_program(python_with("grpc", "google.protobuf"), self.generate())

    def test_beside_the_package_profd(self):
        """The package of docs/api.md has the generated one's name, and its own stubs."""
        python = python_with("grpc", "google.protobuf")
        generated = self.generate()
        for path in (f"{generated}:{PACKAGE}", f"{PACKAGE}:{generated}"):
            out = self.run_in([python, "-B", "-c", "import profd; from profd.v1 import profd_pb2; "
                               "print(profd.profile.__name__, profd_pb2.__file__)"], PYTHONPATH=path)
            self.assertEqual(out, f"profile {PACKAGE}/profd/v1/profd_pb2.py\n")

    def test_a_refusal_is_reported(self):
        python = python_with("grpc", "google.protobuf")
        program = next(block for block in blocks("python") if "StartSession" in block)
        result = subprocess.run([python, "-B", "-c", program.replace('"sys_hardware_mem_freq": 50', '"gpu": 1')],
                                capture_output=True, text=True, check=False, timeout=scaled(60),
                                env={**os.environ, "PYTHONPATH": self.generate(),
                                     "PROFD_SOCKET": self.daemon.socket})
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^INVALID_ARGUMENT: .*gpu")

    def test_problems_are_data(self):
        program = """
import grpc
from profd import rpc
with rpc.connect() as daemon:
    try:
        daemon.StartSession(rpc.StartSessionRequest(spec=rpc.SessionSpec(
            schedule={"since_ms": 5000}, target={"rank": -1}, no_dump=True,
            options_json='{"dvpp_freq": 0, "gpu": 1}')), timeout=60)
    except grpc.RpcError as error:
        for problem in rpc.problems(error):
            print(rpc.Problem.Kind.Name(problem.kind), problem.field, repr(problem.value), problem.text[:40])
        print(error.details())
"""
        out = self.run_in([python_with("grpc", "google.protobuf"), "-B", "-c", program], PYTHONPATH=PACKAGE,
                          PROFD_SOCKET=self.daemon.socket).splitlines()
        for line in ("KIND_INVALID rank '-1' must not be negative",
                     "KIND_INVALID since_ms '5000' needs a dump to put the past into, and {",
                     "KIND_INVALID dvpp_freq '0' must be an integer from 1 to 100 Hz",
                     "rank = -1: must not be negative",
                     "since_ms = 5000: needs a dump to put the past into, and no_dump is given"):
            self.assertTrue(any(found.startswith(line) for found in out), (line, out))
        self.assertTrue(any(found.startswith("KIND_INVALID gpu '1' unknown option") for found in out), out)

    def test_reflection_and_health(self):
        out = self.run_in([python_with("grpc", "google.protobuf"), "-B", "-c", ASK, self.daemon.socket],
                          PYTHONPATH=os.path.join(REPO, "tests", "harness"))
        lines = dict.fromkeys(out.splitlines())
        for line in ("health '' 0801", "health 'profd.v1.NodeService' 0801", "health 'profd.v1.SessionService' 0801",
                     "health 'profd.v1.DumpService' 0801", "health of nothing NOT_FOUND", "service profd.v1.NodeService",
                     "service profd.v1.SessionService", "service profd.v1.DumpService",
                     "service grpc.health.v1.Health", "imports profd/v1/options.proto"):
            self.assertIn(line, lines)
        proto = os.path.join(REPO, "proto", "profd", "v1", "profd.proto")
        methods = sorted(re.findall(r"^  rpc (\w+)\(", read_text(proto), re.M))
        self.assertIn("methods " + " ".join(methods), lines)


if __name__ == "__main__":
    main()
