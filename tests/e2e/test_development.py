#!/usr/bin/env python3
"""What profd installs for programs that use it, from outside the tree: the CMake package, pkg-config, the protos, the
examples against a daemon; the Python package as pip installs it, and its types."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from profd_harness import BUILD, REPO, RUNNER, DaemonCase, is_sanitized, main, scaled, temp_folder
from python_package import PACKAGE, python_with
from text_files import files_below, read_text, write_text


def run(*command, cwd=None, expect=0, **env):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=scaled(300),
                          env={**os.environ, **env})
    if done.returncode != expect:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def project_version():
    return re.search(r"project\(profd VERSION (\S+)", read_text(REPO, "CMakeLists.txt"))[1]


def prefix_of_build():
    return re.search(r"^CMAKE_INSTALL_PREFIX:\w+=(.*)$", read_text(BUILD, "CMakeCache.txt"), re.M)[1]


def compiler_cache(folder):
    """Objects of earlier runs are taken, whatever the folder is called."""
    if not shutil.which("ccache"):
        return {}
    return {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1"}


@unittest.skipIf(is_sanitized() or RUNNER, "of this machine's ordinary build")
class Outside(DaemonCase):
    devices = 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = os.path.realpath(tempfile.mkdtemp(prefix="profd-outside-"))
        cls.addClassCleanup(shutil.rmtree, cls.root)
        run("cmake", "--install", BUILD, "--component", "development", DESTDIR=cls.root)
        cls.prefix = cls.root + prefix_of_build()
        cls.examples = os.path.join(cls.prefix, "share", "profd", "examples")
        cls.built = None

    def configure(self, source, *arguments):
        """The build folder, and what CMake said."""
        folder = tempfile.mkdtemp(dir=self.root)
        return folder, run("cmake", "-G", "Ninja", "-S", source, "-B", folder, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                           *arguments, **compiler_cache(self.root))

    def configure_lines(self, *lines, arguments=(), cmake="3.16", language="CXX"):
        """What CMake says of a project with these lines."""
        source = tempfile.mkdtemp(dir=self.root)
        head = (f"cmake_minimum_required(VERSION {cmake})", f"project(outside LANGUAGES {language})")
        write_text(os.path.join(source, "CMakeLists.txt"), "\n".join((*head, *lines)))
        return self.configure(source, *arguments)[1]

    def build(self):
        """The installed examples, by a project with warnings of its own; once."""
        if self.built is None:
            folder, _ = self.configure(self.examples, "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wconversion -Werror")
            run("cmake", "--build", folder, **compiler_cache(self.root))
            type(self).built = folder
        return self.built

    def assert_profiled(self, output, label):
        """The example says what the daemon knows of its session."""
        found = re.search(r"^session (\w+): STATE_DONE, (\d+) records in (\S+)$", output, re.M)
        self.assertIsNotNone(found, output)
        session = self.daemon.show(found[1])
        self.assertEqual((session["label"], session["state"], session["records"], session["dump_path"]),
                         (label, "done", int(found[2]), found[3]))
        self.assertGreater(session["records"], 0)
        self.assertGreater(session["lease_ms"], 0)
        self.assertIn("20 steps\n", output)

    def test_grpc_example(self):
        out = run(os.path.join(self.build(), "train_grpc"), PROFD_SOCKET=self.daemon.socket)
        self.assert_profiled(out, "train_grpc.cc")

    def test_grpc_example_without_a_daemon(self):
        out = run(os.path.join(self.build(), "train_grpc"), PROFD_SOCKET=os.path.join(self.root, "nothing"))
        self.assertIn("not profiled: ", out)
        self.assertIn("20 steps\n", out)

    def test_libprofd_example(self):
        out = run(os.path.join(self.build(), "train"), "--steps", "4", "--step-ms", "20", "--profile-steps", "2",
                  "--options", '{"sys_interconnection_freq": 50}',
                  PROFD_ATTACH_SOCKET=self.daemon.attach_socket)
        self.assertIn("attached: yes\n", out)
        self.assertEqual(json.loads(re.search(r"^session: (.*)$", out, re.M)[1])["state"], "done")

    def test_python_grpc_example(self):
        python = python_with("grpc", "google.protobuf")
        example = os.path.join(REPO, "client", "examples", "train_grpc.py")
        self.assert_profiled(run(python, "-B", example, PROFD_SOCKET=self.daemon.socket), "train_grpc.py")
        out = run(python, "-B", example, PROFD_SOCKET=os.path.join(self.root, "nothing"))
        self.assertIn("not profiled: ", out)
        self.assertIn("20 steps\n", out)

    def test_libprofd_needs_no_grpc(self):
        """As on a machine without it: libprofd is found, and what the stubs lack is named."""
        out = self.configure_lines(
            "find_package(profd REQUIRED)", "get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)",
            "message(STATUS \"targets: ${targets}\")", "find_package(profd QUIET COMPONENTS client)",
            "message(STATUS \"client: ${profd_FOUND}: ${profd_NOT_FOUND_MESSAGE}\")",
            arguments=[f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("gRPC", "Protobuf", "PkgConfig")])
        self.assertIn("-- profd: no profd::client, which needs gRPC and protobuf", out)
        self.assertIn("-- targets: profd::profd\n", out)
        self.assertRegex(out, "-- client: (FALSE|0): profd::client needs gRPC and protobuf")

    def test_a_project_in_c(self):
        """libprofd is plain C; the stubs are not for such a project."""
        out = self.configure_lines(
            "find_package(profd REQUIRED)", "file(TOUCH x.c)", "add_library(x STATIC x.c)", "target_link_libraries(x profd::profd)",
            "find_package(profd QUIET COMPONENTS client)", "message(STATUS \"client: ${profd_FOUND}: ${profd_NOT_FOUND_MESSAGE}\")",
            language="C")
        self.assertIn("-- profd: no profd::client, which needs a project with the language CXX\n", out)
        self.assertRegex(out, "-- client: (FALSE|0): profd::client needs a project with the language CXX\n")
        self.assertIn("Build files have been written", out)

    def test_a_project_for_an_older_cmake(self):
        out = self.configure_lines("find_package(profd REQUIRED COMPONENTS profd)", "get_target_property(kind profd::profd TYPE)",
                                   "message(STATUS \"kind: ${kind}\")", cmake="3.0")
        self.assertIn("-- kind: SHARED_LIBRARY\n", out)

    def test_grpc_by_pkg_config(self):
        """Distributions that build gRPC without CMake have its pkg-config file only."""
        # pkg-config resolves the hundreds of packages that it requires a dozen times.
        alone = re.sub(r"(?m)^Requires.*$", "", read_text(run("pkg-config", "--variable=pcfiledir", "grpc++").strip(), "grpc++.pc"))
        folder = tempfile.mkdtemp(dir=self.root)
        write_text(os.path.join(folder, "grpc++.pc"), alone)
        with mock.patch.dict(os.environ, PKG_CONFIG_PATH=folder):
            out = self.configure_lines(
                "find_package(profd REQUIRED COMPONENTS client)", "file(TOUCH x.cc)", "add_library(x STATIC x.cc)",
                "target_link_libraries(x profd::client)",
                "get_target_property(used profd::client INTERFACE_LINK_LIBRARIES)", "message(STATUS \"used: ${used}\")",
                arguments=["-DCMAKE_DISABLE_FIND_PACKAGE_gRPC=ON"])
        self.assertRegex(out, "-- used: .*PkgConfig")

    def test_versions(self):
        version = project_version()
        major, minor, _ = version.split(".")
        wanted = (version, f"{major}.{minor}", f"{major}.{int(minor) + 1}", f"{int(major) + 1}")
        lines = [line for number in wanted for line in (
            f"find_package(profd {number} QUIET COMPONENTS profd)", f"message(STATUS \"{number}: ${{profd_FOUND}}\")")]
        out = self.configure_lines(*lines, "if(TARGET profd::client)", "  message(STATUS \"stubs\")", "endif()")
        self.assertEqual([found in ("1", "TRUE") for found in re.findall(r"^-- [\d.]+: (\w*)$", out, re.M)],
                         [True, True, False, False], out)
        self.assertNotIn("-- stubs", out)  # only libprofd was asked for

    def test_pkg_config(self):
        folder = next(folder for folder, _, files in os.walk(self.prefix) if "libprofd.pc" in files)
        env = {"PKG_CONFIG_LIBDIR": folder, "PKG_CONFIG_SYSROOT_DIR": self.root, "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1",
               "PKG_CONFIG_ALLOW_SYSTEM_LIBS": "1"}
        source = os.path.join(self.root, "use.c")
        write_text(source, "#include <profd.h>\nint main(void) { return profd_version() == 0; }\n")
        flags = run("pkg-config", "--cflags", "--libs", "libprofd", **env).split()
        run("cc", "-o", os.path.join(self.root, "use"), source, *flags)
        self.assertEqual(run("pkg-config", "--modversion", "libprofd", **env).strip(), project_version())
        protos = run("pkg-config", "--variable=protodir", "libprofd", **env).strip()
        if not protos.startswith(self.root):
            protos = self.root + protos
        # The contract, and no more: what the daemon keeps for itself is not for others.
        self.assertEqual(sorted(os.listdir(os.path.join(protos, "profd", "v1"))), ["options.proto", "profd.proto"])


class Package(unittest.TestCase):
    """`pip install ./client/python`, without a network."""

    @classmethod
    def setUpClass(cls):
        cls.root = temp_folder(cls)
        python = python_with("setuptools", "wheel", "pip")  # Debian's setuptools wants to be before pip
        # pip builds where the sources are.
        sources = os.path.join(cls.root, "sources")
        shutil.copytree(PACKAGE, sources, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        cls.target = os.path.join(cls.root, "site")
        run(python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", "--no-compile",
            "--target", cls.target, sources, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_ROOT_USER_ACTION="ignore")

    def python(self, code, *modules):
        return run(python_with(*modules or ["json"]), "-B", "-c", code, cwd=self.root, PYTHONPATH=self.target)

    def test_metadata(self):
        said = json.loads(self.python("import json; from importlib.metadata import metadata; m = metadata('profd'); "
                                      "print(json.dumps({key: m.get_all(key) for key in set(m)}))"))
        keys = ("Name", "Version", "License", "Requires-Python", "Provides-Extra")
        self.assertEqual([said[key] for key in keys], [["profd"], [project_version()], ["Apache-2.0"], [">=3.8"], ["rpc"]])
        self.assertTrue(said["Summary"][0])
        # Nothing is needed but for profd.rpc.
        needed = {re.match(r"\w+", line)[0]: line for line in said["Requires-Dist"]}
        self.assertEqual(sorted(needed), ["grpcio", "protobuf"])
        for line in needed.values():
            self.assertRegex(line, r"extra == .rpc.")
        self.assertIn("License :: OSI Approved :: Apache Software License", said["Classifier"])

    def test_every_file_of_the_package(self):
        def files(folder):
            return sorted(os.path.relpath(path, folder) for path in files_below(folder) if not path.endswith(".pyc"))
        self.assertEqual(files(os.path.join(self.target, "profd")), files(os.path.join(PACKAGE, "profd")))
        self.assertTrue(os.path.exists(os.path.join(self.target, "profd", "py.typed")))

    def test_stubs(self):
        out = self.python("from profd import rpc; from profd.v1 import profd_pb2_grpc\nwith rpc.connect('x') as daemon:\n"
                          "  print(rpc.SessionSpec(lease={'lease_ms': 5}, options=rpc.ProfilingOptions()).lease.lease_ms, "
                          "isinstance(daemon, profd_pb2_grpc.DumpServiceStub), rpc.Session.State.Name(5))",
                          "grpc", "google.protobuf")
        self.assertEqual(out, "5 True STATE_DONE\n")

    def test_without_grpc(self):
        """Only profd.rpc is missing then, and says what it needs."""
        out = self.python("import sys; sys.modules['grpc'] = None\nimport profd; profd.step\n"
                          "try:\n  import profd.rpc\nexcept ImportError as error:\n  print(error)\n")
        self.assertRegex(out, r"^profd\.rpc needs grpcio and protobuf .*grpc")


class Types(unittest.TestCase):
    def mypy(self, *arguments, **how):
        tool = shutil.which("mypy")
        if tool is None:
            self.skipTest("no mypy here (scripts/install-deps --for test)")
        return run(tool, "--cache-dir", os.devnull, *arguments, **how)

    def test_the_package(self):
        self.mypy("-p", "profd", cwd=PACKAGE)  # strictly: pyproject.toml

    def test_a_script_with_mistakes(self):
        """The types say what is wrong with it, and nothing of what is right."""
        wrong = ["profd.step('one')", "profd.profile({}, durration=5)", "rpc.CollectorRequest(hz='5')"]
        right = ["import profd", "from profd import rpc",
                 "with profd.profile({'l2': True}, duration='5s') as p: print(p.summary.get('records'))",
                 "with profd.profile(schedule=profd.schedule(wait=1, warmup=1, active=1)) as q: q.step()",
                 "@profd.profile", "def train(n: int) -> int: return n", "print(train(1) + 1)",
                 "with rpc.connect() as daemon: daemon.GetNode(rpc.GetNodeRequest(), timeout=5)"]
        folder = temp_folder(self)
        script = os.path.join(folder, "script.py")
        write_text(script, "\n".join(right + wrong) + "\n")
        # As if it were installed: errors of generated files, of which mypy shows 200, would hide the script's.
        out = self.mypy("--strict", "--config-file", os.path.join(PACKAGE, "pyproject.toml"), script, expect=1,
                        MYPYPATH=PACKAGE)
        self.assertEqual(sorted({int(line) for line in re.findall(r"script\.py:(\d+): error", out)}),
                         [len(right) + 1 + n for n in range(len(wrong))], out)


if __name__ == "__main__":
    main()
