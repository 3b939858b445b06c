"""Call stacks of Python: sampled ones of the training threads, and ranges of a model's modules by its hooks."""

import contextlib
import os
import subprocess
import sys
import textwrap
import threading
import types
import unittest
from unittest import mock

import profd_harness
from attach_server import AttachServer
from profd_harness import DaemonCase, eventually, profctl, temp_folder
from python_package import PACKAGE, answer, environment, python

sys.dont_write_bytecode = True
sys.path.insert(0, PACKAGE)
import profd  # noqa: E402
from profd import _lib, _modules, _stacks  # noqa: E402
from text_files import read_json, read_text

FRAME, STACK = 8, 9
ON = {"TORCH_CALL_STACK": "on"}

TRAINING = """
    import os, threading, time, profd
    from profd import _stacks

    def innermost():
        time.sleep(0.002)
    def train(n):
        with profd.step(n):
            innermost()
    def other():
        over.wait()
    def loader():
        profd.step(0)
        over.wait()

    over = threading.Event()
    profd.attach()
    assert "torch" not in __import__("sys").modules
    threads = [threading.Thread(target=target) for target in (other, loader)]
    for thread in threads:
        thread.start()
    n = 0
    while os.path.exists("run"):
        n += 1
        train(n)
    print(os.getpid(), *(thread.native_id for thread in threads), _stacks.wanted, flush=True)
    over.set()
"""


class Tree:
    """The stacks of a ring, as a reader has them."""

    def __init__(self, marks):
        self.names, self.callers, self.stacks, self.frames = {}, {}, [], 0
        for kind, value, thread, name in marks:
            if kind == FRAME:
                self.names[value & 0xFFFFFFFF], self.callers[value & 0xFFFFFFFF] = name, value >> 32
                self.frames += 1
            elif kind == STACK:
                self.stacks.append((thread, self.path(value)))

    def path(self, frame):
        names = []
        while frame:
            names.insert(0, self.names[frame])  # every frame was sent before
            frame = self.callers[frame]
        return names


class Sampled(unittest.TestCase):
    def setUp(self):
        self.folder = temp_folder(self)
        self.server = AttachServer(self.folder)
        self.addCleanup(self.server.close)

    def train(self):
        open(os.path.join(self.folder, "run"), "w", encoding="utf-8").close()
        process = self.enterContext(subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(TRAINING)], env=environment(PROFD_ATTACH_SOCKET=self.server.path),
            cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        self.addCleanup(process.kill)
        self.server.welcome()
        return process

    def finish(self, process):
        """What the script printed: its main thread, a thread that does not train, one that does, what was wanted."""
        os.remove(os.path.join(self.folder, "run"))
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, ""))
        return [int(word) for word in out.split()]

    def stacks(self, least):
        return eventually(lambda: (lambda tree: tree if len(tree.stacks) >= least else None)(Tree(self.server.marks())))

    def test_training_threads(self):
        process = self.train()
        self.server.session("running", options=ON)
        tree = self.stacks(40)
        main, other, loader, _ = self.finish(process)
        by_thread = {thread: [path for of, path in tree.stacks if of == thread] for thread, _ in tree.stacks}
        self.assertEqual(set(by_thread), {main, loader}, f"{other} does not train")
        names = [[name.rsplit(":", 1)[0] for name in path] for path in by_thread[main]]
        self.assertIn(["<string>:<module>", "<string>:train", "<string>:innermost"], names)
        self.assertTrue(all(":wait" in path[-1] or len(path) > 1 for path in by_thread[loader]))
        for name in tree.names.values():
            self.assertRegex(name, r"^[^:]+:[^;]+:\d+$")

    def test_sessions(self):
        process = self.train()
        self.server.session("running", "a", options={"msproftx": "on"})
        eventually(lambda: len(self.server.marks()) > 20, what="steps are recorded")
        self.assertEqual(Tree(self.server.marks()).frames, 0, "no session wants stacks")
        self.server.session("running", "b", options=ON)
        before = self.stacks(3)
        # One that begins later has none of the frames.
        self.server.session("running", "c", options=ON)

        def sent_again():
            tree = Tree(self.server.marks())
            return tree.frames >= 2 * len(before.names)
        eventually(sent_again, what="frames are sent again")
        for name in ("a", "b", "c"):
            self.server.session("ended", name)
        eventually(lambda: self.quiet(), what="nothing is sampled")
        self.assertEqual(self.finish(process)[3], 0)

    def quiet(self):
        """Of the last marks none is a stack, so many steps have gone by since."""
        kinds = [mark[0] for mark in self.server.marks()]
        return len(kinds) > 60 and STACK not in kinds[-60:]


class Rate(unittest.TestCase):
    """50 samples a second (docs/api.md), also while another thread keeps the interpreter's lock for 5 ms at a time."""

    class Library:
        def __init__(self):
            self.now, self.samples = 1000.0, 0

        def profd_stacks_asked(self):
            return 0

        def profd_stacks_wanted(self, known, timeout_ms):
            if known:
                self.now += timeout_ms / 1000 + 0.005
            return 1 if self.now < 1002 else -1

        def profd_stack_frame(self, *_):
            return 1

        def profd_stack_sample(self, *_):
            self.samples += 1
            return 1

    def test_keeps_its_rate(self):
        library = self.Library()
        with mock.patch.object(_stacks, "lib", lambda: library), \
                mock.patch.object(_stacks, "time", types.SimpleNamespace(monotonic=lambda: library.now), create=True):
            _stacks._run(_stacks._begun)
        self.assertAlmostEqual(library.samples, 100, delta=3)


class Ended(unittest.TestCase):
    def test_a_thread_that_has_ended(self):
        """The next thread may have its identifier, and is another thread for the kernel."""
        before, noted = dict(_stacks._stepping), []
        thread = threading.Thread(target=lambda: (_stacks.note_step(), noted.append(dict(_stacks._stepping))))
        thread.start()
        thread.join()
        self.assertEqual(noted, [{**before, thread.ident: thread.native_id}])
        self.assertEqual(_stacks._stepping, before)


class InADump(DaemonCase):
    """By the daemon into the dump, and out of it."""

    SCRIPT = """
        import json, time, profd
        def innermost():
            time.sleep(0.05)
        def train(n):
            with profd.step(n):
                innermost()
        profd.attach()  # of what is published two marks are a step
        profiler = profd.Profiler(hardware=False, with_stack={with_stack}, strict=True)
        end = time.monotonic() + 60
        n = 0
        while n < 10 or {with_stack} and time.monotonic() < end and profd.counters()["published"] - 2 * n < 50:
            n += 1
            train(n)
        print(json.dumps(profiler.analyse()))
    """

    devices = 1

    def profile(self, with_stack):
        summary = answer(python(self.SCRIPT.format(with_stack=with_stack), self.daemon))
        self.assertEqual(summary["state"], "done", summary)
        outcome = next((o for o in summary["outcomes"] if o["collector"] == "TORCH_CALL_STACK"), None)
        options = self.daemon.ctl("show", summary["session_id"])["effective_options"]
        notes = [option["note"] for option in options if option["key"] == "TORCH_CALL_STACK"]
        self.assertEqual(notes, [""])
        return summary["dump_path"], outcome

    def test_with_stack(self):
        dump, outcome = self.profile(True)
        self.assertEqual((outcome["result"], outcome["detail"]), ("finished", "ranges of modules, and sampled call stacks"))
        lines = read_text(dump, "host", "profd", "stacks.tsv").splitlines()
        self.assertEqual(len(lines) - 1, outcome["records"])
        profctl("verify", dump)
        out = temp_folder(self)
        profctl("export", dump, "--format", "folded,trace", "--out", out)
        [folded] = [name for name in os.listdir(out) if name.endswith(".folded")]
        stacks = dict(line.rsplit(" ", 1) for line in read_text(out, folded).splitlines())
        samples = sum("\tstack\t" in line for line in lines)
        self.assertEqual(sum(int(count) for count in stacks.values()), samples)
        inside = [stack for stack in stacks if ":train:" in stack and ":innermost:" in stack.rsplit(";", 1)[1]]
        self.assertTrue(inside, stacks)
        self.assertRegex(inside[0], r"^[^;]+;thread \d+;<string>:<module>:\d+;<string>:train:\d+;")
        [trace] = [name for name in os.listdir(out) if name.endswith(".json")]
        events = read_json(out, trace)
        names = {event["name"].rsplit(":", 1)[0] for event in events if event.get("ph") == "X"}
        self.assertLessEqual({"<string>:train", "<string>:innermost"}, names)

    def test_profiling_options(self):
        """Nothing in the script but that it uses the package."""
        result = python("""
            import time, profd
            end, n = time.monotonic() + 60, 0
            while time.monotonic() < end and profd.counters()["published"] - 2 * n < 50:
                with profd.step(n):
                    time.sleep(0.02)
                n += 1
        """, self.daemon, env={"PROFILING_OPTIONS": '{"TORCH_CALL_STACK": "on"}', "SLURM_JOB_ID": "77002",
                          "SLURM_PROCID": "0", "PROFD_STACK_HZ": "100"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        session = eventually(lambda: next((s for s in self.daemon.ctl("list")["sessions"]
                                           if s["job_id"] == "77002" and s["state"] == "done"), None))
        self.assertTrue(os.path.getsize(os.path.join(session["dump_path"], "host", "profd", "stacks.tsv")))

    def test_without(self):
        dump, outcome = self.profile(False)
        self.assertIsNone(outcome)
        self.assertFalse(os.path.exists(os.path.join(dump, "host", "profd", "stacks.tsv")))


class Library:
    """Takes the calls of the package."""

    path = "stand-in"

    def __init__(self):
        self.calls, self.takes, self.next = [], True, 0

    def profd_stack_frame(self, number, caller, name):
        self.calls.append(("frame", number, caller, name))
        return int(self.takes)

    def profd_range_start(self, domain, name):
        self.next += 1
        self.calls.append((f"+{self.next}", domain.decode(), name.decode()))
        return self.next

    def profd_range_end(self, number):
        self.calls.append(f"-{number}")

    def profd_step_begin(self, number):
        self.calls.append(f"step {number}")

    def profd_step_end(self, number):
        pass


class WithStandIn(unittest.TestCase):
    def setUp(self):
        self.stand_in = Library()
        for owner, name, value in ((_lib, "_library", self.stand_in), (_stacks, "_thread", object()),
                                   (_stacks, "wanted", 1)):
            self.addCleanup(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)

    def open(self):
        """Ranges that have begun and not ended."""
        begun = {call[0][1:] for call in self.stand_in.calls if isinstance(call, tuple)}
        return begun - {call[1:] for call in self.stand_in.calls if isinstance(call, str)}

    def began(self):
        return [call[1:] for call in self.stand_in.calls if isinstance(call, tuple)]


class Frames(WithStandIn):
    def test_dropped_frames_are_sent_with_the_next_sample(self):
        tree, stack = _stacks._Tree(), [(compile("", "f.py", "exec"), 1), (compile("", "g.py", "exec"), 2)]
        self.stand_in.takes = False
        self.assertEqual(tree.send(self.stand_in, stack), 0)
        self.stand_in.takes = True
        leaf = tree.send(self.stand_in, stack)
        self.assertEqual([call[1:3] for call in self.stand_in.calls], [(1, 0), (1, 0), (2, 1)])
        self.assertEqual(leaf, 2)
        self.assertEqual(tree.send(self.stand_in, stack), 2)
        self.assertEqual(len(self.stand_in.calls), 3, "once")

    def test_names_fit_a_mark(self):
        code = compile("", "/a/long/path/" + "f" * 60 + ";.py", "exec")
        name = _stacks._name(code, 123456)
        self.assertLessEqual(len(name), 88)
        self.assertTrue(name.endswith(b":123456") and b";" not in name, name)

    def test_depth_is_bounded(self):
        def deep(n):
            return deep(n - 1) if n else _stacks._stack(sys._getframe())
        stack = deep(400)
        self.assertEqual(len(stack), 200)
        self.assertEqual(stack[0][0].co_name, "<module>", "the outermost are kept")


class Handle:
    def __init__(self, hooks, hook):
        self.hooks, self.hook = hooks, hook
        hooks.append(hook)

    def remove(self):
        self.hooks.remove(self.hook)


class Module:
    """What torch.nn.Module has of hooks; `old`: forward hooks are not called when forward raises."""

    def __init__(self, old=False, **children):
        self.children, self.old = children, old
        self.before, self.after, self.before_backward, self.after_backward = [], [], [], []

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, child in self.children.items():
            yield from child.named_modules(f"{prefix}.{name}" if prefix else name)

    def register_forward_pre_hook(self, hook):
        return Handle(self.before, hook)

    def register_forward_hook(self, hook, **how):
        if self.old and how:
            raise TypeError("always_call")
        return Handle(self.after, hook)

    def register_full_backward_pre_hook(self, hook):
        return Handle(self.before_backward, hook)

    def register_full_backward_hook(self, hook):
        return Handle(self.after_backward, hook)

    def hooks(self):
        return sum((len(m.before) + len(m.after) + len(m.before_backward) + len(m.after_backward)
                    for _, m in self.named_modules()))

    def __call__(self, raises=()):
        for hook in GLOBAL.before + self.before:
            hook(self, ())
        try:
            for name, child in self.children.items():
                child(raises)
            if self in raises:
                raise ArithmeticError
        except ArithmeticError:
            if not self.old:
                self.end()
            raise
        self.end()

    def end(self):
        for hook in GLOBAL.after + self.after:
            hook(self, (), None)

    def backward(self):
        for hook in self.before_backward:
            hook(self, ())
        for child in reversed(self.children.values()):
            child.backward()
        for hook in self.after_backward:
            hook(self, (), ())


class Global(types.ModuleType):
    """torch.nn.modules.module, as far as its hooks for all modules go."""

    def __init__(self):
        super().__init__("torch.nn.modules.module")
        self.before, self.after = [], []

    def register_module_forward_pre_hook(self, hook):
        return Handle(self.before, hook)

    def register_module_forward_hook(self, hook, *, always_call=False):
        self.always_call = always_call
        return Handle(self.after, hook)


GLOBAL = Global()


class Modules(WithStandIn):
    def setUp(self):
        super().setUp()
        self.addCleanup(_modules._traced.clear)
        self.addCleanup(_modules.follow, 0)

    def step(self, number=1):
        profd.step(number)

    def test_forward_and_backward(self):
        model = Module(layers=Module(first=Module(), second=Module()))
        profd.trace_modules(model, "net")
        self.assertEqual(model.hooks(), 0, "none before a step of a session")
        self.step()
        model()
        model.backward()
        paths = ["net", "net.layers", "net.layers.first", "net.layers.second"]
        self.assertEqual(self.began(), [("module", path) for path in paths] +
                         [("module.backward", paths[n]) for n in (0, 1, 3, 2)])
        self.assertEqual(self.stand_in.calls[:9], [
            "step 1", ("+1", "module", "net"), ("+2", "module", "net.layers"), ("+3", "module", "net.layers.first"),
            "-3", ("+4", "module", "net.layers.second"), "-4", "-2", "-1"])
        self.assertEqual(self.open(), set())

    def test_an_old_torch_has_no_begin_of_the_backward(self):
        class Old(Module):
            register_full_backward_pre_hook = property()
        model = Old()
        profd.trace_modules(model)
        self.step()
        self.assertEqual((len(model.before), len(model.after), model.after_backward), (1, 1, []))

    def test_hooks_are_taken_away(self):
        model = Module(layer=Module())
        profd.trace_modules(model)
        self.step()
        self.assertEqual(model.hooks(), 8)
        _stacks.wanted = 0
        self.step(2)
        self.assertEqual(model.hooks(), 0)
        model()
        self.assertEqual(self.began(), [])

    def test_a_forward_that_raises(self):
        for old in (False, True):
            with self.subTest(old=old):
                inner = Module(old=old)
                model = Module(old=old, layer=Module(old=old, inner=inner))
                profd.trace_modules(model, "net")
                self.step()
                self.assertRaises(ArithmeticError, model, {inner})
                self.step(2)
                self.assertEqual(self.open(), set())
                # Caught inside: what is around it ends what was left.
                self.stand_in.calls.clear()
                for hook in model.before:
                    hook(model, ())
                with contextlib.suppress(ArithmeticError):
                    model.children["layer"]({inner})
                model.end()
                self.assertEqual(self.open(), set())
                self.assertEqual(self.stand_in.calls[-1], "-" + self.stand_in.calls[0][0][1:])
                _modules._traced.clear()
                _modules.follow(0)

    def test_an_imported_torch_needs_no_call(self):
        sys.modules["torch.nn.modules.module"] = GLOBAL
        self.addCleanup(sys.modules.pop, "torch.nn.modules.module")
        model = Module(layer=Module())
        self.step()
        self.assertTrue(GLOBAL.always_call)
        model()
        self.assertEqual(self.began(), [("module", "Module"), ("module", "Module.layer")])
        self.assertEqual(self.open(), set())
        _stacks.wanted = 0
        self.step(2)
        self.assertEqual((GLOBAL.before, GLOBAL.after), ([], []))


if __name__ == "__main__":
    profd_harness.main()
