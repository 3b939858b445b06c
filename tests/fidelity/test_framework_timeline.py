"""Operators of a framework on the timelines, against the plan: every event of the process Python, every arrow from an
operator over the queue and the launch to what ran on a device, in the JSON and in Perfetto's trace."""

import json
import os
import subprocess
from collections import Counter

import make_operators as made
import run_tests
from channels import BEGIN_US, HOST_COUNT, HOST_RAW
from comparison import FolderCase, events_of, seconds, trace_of
from make_framework import written
from profd_harness import BUILD, profctl
from test_operators import executions

SIM = os.path.join(BUILD, "sim", "sim_framework")


def wall(us):
    return BEGIN_US * 1000 + round(us * 1000)


class Expected:
    """Slices as (tid, name, start, end, category, args); arrows as pairs of (layer, device, tid, start)."""

    def __init__(self, framework, begin=0):
        dump = framework.dump
        self.slices, self.arrows = [], {"async_npu": [], "async_task_queue": [], "fwdbwd": []}
        for op in framework.operators:
            args = [("Sequence number", op.sequence), ("Fwd thread id", op.forward_thread)]
            for key, text in (("Input Dims", op.shapes), ("Input type", op.types), ("Call stack", op.stack)):
                if text is not None:
                    args.append((key, text.replace(";", ";\r\n")))
            if op.wall_ns()[0] >= begin:
                self.slices.append((op.thread, op.name, *op.wall_ns(), "cpu_op", tuple(args)))
        for thread, name, start, end, number, parent in framework.python_calls():
            if start >= begin:
                self.slices.append((thread, name, start, end, "python_function", (("Python id", number),
                                                                                   ("Python parent id", parent))))
        for first, last in framework.collections:
            if wall(first) >= begin:
                self.slices.append((0, "GC", wall(first), wall(last), "GC", ()))
        for correlation, slot, put, taken in framework.queue:
            shown = []
            for name, category, (start, end, thread) in (("Enqueue", "enqueue", put),
                                                         (f"Dequeue@{slot.name or slot.kind}", "dequeue", taken)):
                if wall(start) >= begin:
                    self.slices.append((thread, name, wall(start), wall(end), category, (("correlation_id", correlation),)))
                    shown.append(("Python", -1, thread, wall(start)))
            if len(shown) == 2:
                self.arrows["async_task_queue"].append(tuple(shown))
        for slot, start, _ in executions(dump):
            inner = framework.launcher[slot][0]
            if slot.type and inner.wall_ns()[0] >= begin and start >= begin:
                self.arrows["async_npu"].append((("Python", -1, inner.thread, inner.wall_ns()[0]),
                                                 ("Ascend Hardware", slot.device, slot.stream, start)))
        sequences = {op.sequence for op in framework.operators if op.forward_thread}
        for sequence in sequences:
            both = [op for op in framework.operators if op.sequence == sequence and op.wall_ns()[0] >= begin]
            forward = [op for op in both if not op.forward_thread]
            backward = [op for op in both if op.forward_thread]
            if forward and backward:
                ends = max(forward, key=lambda op: op.begin), min(backward, key=lambda op: op.begin)
                self.arrows["fwdbwd"].append(tuple(("Python", -1, op.thread, op.wall_ns()[0]) for op in ends))


class FrameworkTimelineTest(FolderCase):
    def check(self, window=None, **options):
        framework = written(self.dir, **options)
        dump = framework.dump
        begin = window(framework) if window else 0
        out = os.path.join(self.dir, "out")
        more = ["--from", seconds(begin)] if begin else []
        profctl("export", dump.path, "--format", "trace,perfetto", "--out", out, *more)
        events = events_of(out)
        expected = Expected(framework, begin)
        self.assertTrue(all(expected.arrows.values()))
        self.check_json(events, expected)
        self.check_perfetto(trace_of(out), expected)
        return framework, events

    def check_json(self, events, expected):
        layers = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        found, arrows = [], {}
        for e in events:
            if e["ph"] == "M":
                continue
            layer, start = layers[e["pid"]], int(e["ts"].replace(".", ""))
            if e["ph"] == "X" and layer == "Python":
                self.assertEqual(e["pid"] & 1023, 31)
                found.append((e["tid"], e["name"], start, start + round(e["dur"] * 1000), e["cat"], tuple(e["args"].items())))
            if e["ph"] in "sf" and e["cat"] != "HostToDevice":
                names = {"async_npu": "torch_to_npu", "async_task_queue": "enqueue_to_dequeue", "fwdbwd": "fwdbwd"}
                self.assertEqual(e["name"], names[e["cat"]])
                device = -1 if e["pid"] & 31 == 31 else e["pid"] & 31
                ends = arrows.setdefault((e["cat"], e["id"]), {})
                self.assertNotIn(e["ph"], ends)
                ends[e["ph"]] = (layer, device, e["tid"], start)
        self.assertEqual(sorted(found), sorted(expected.slices))
        for category, want in expected.arrows.items():
            have = sorted((ends.get("s"), ends.get("f")) for (cat, _), ends in arrows.items() if cat == category)
            self.assertEqual(have, sorted(want), category)

    def check_perfetto(self, trace, expected):
        self.assertEqual(trace.unbalanced(), set())
        found, flows = Counter(), {}
        for process, track, name, begin, end, args, ids, ended in trace.slices():
            layer, _, thread = track.rpartition(" > ")
            if layer == "Python":
                thread = "Thread 0" if thread == "GC" else thread.partition(" (")[0]  # (2): what overlaps
                tid = int(thread.removeprefix("Thread "))
                found[tid, name, begin, end, tuple(args.items())] += 1
                place = ("Python", -1, tid, begin)
            elif not layer and thread.startswith("Stream "):
                place = ("Ascend Hardware", int(process.split()[1]), int(thread.removeprefix("Stream ")), begin)
            else:
                continue
            for flow in ids + ended:
                flows.setdefault(flow, []).append(place)
        self.assertEqual(found, Counter((tid, name, begin, end, args) for tid, name, begin, end, _, args in expected.slices))
        want = Counter(tuple(sorted(pair)) for pairs in expected.arrows.values() for pair in pairs)
        # The rest are the arrows from the API calls.
        have = Counter(tuple(sorted(places)) for places in flows.values() if any(p[0] == "Python" for p in places))
        self.assertEqual(have, want)

    def test_operators_and_arrows(self):
        framework, events = self.check()
        layers = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        launches = [(e["tid"], int(e["ts"].replace(".", ""))) for e in events
                    if e["ph"] == "X" and layers[e["pid"]] == "CANN" and e["name"] == "Node@launch"]
        # From the queue to the launch: it lies in what was taken out.
        for _, slot, _, (begin, end, thread) in framework.queue:
            inside = [at for tid, at in launches if tid == thread and wall(begin) <= at <= wall(end)]
            self.assertEqual(len(inside), 1 if slot.type else 0)

    def test_devices_and_executions(self):
        self.check(devices=(0, 1), executions=2, slots=16, kinds=("matmul", "add", "mix"))

    def test_a_window_cuts_both_ends(self):
        self.check(window=lambda framework: sorted(op.wall_ns()[0] for op in framework.operators)[24])

    def test_calls_of_python_are_a_tree(self):
        framework, _ = self.check(slots=8)
        calls = framework.python_calls()
        self.assertGreater(len({parent for *_, parent in calls}), 3)
        self.assertIn("7", {name for _, name, *_ in calls})

    def test_names_of_earlier_releases(self):
        """--names legacy: parts of the timeline as files of their own."""
        out = os.path.join(self.dir, "out")
        profctl("export", written(self.dir).dump.path, "--format", "trace", "--out", out, "--names", "legacy")

        def slices_of(pattern):
            events = events_of(out, pattern)
            layers = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
            return [(layers[e["pid"]], e) for e in events if e["ph"] == "X"]

        everything = slices_of("msprof_[0-9]*.json")
        for name, belongs in (
                ("thread_group_[0-9]*", lambda layer, e: layer == "CANN"),
                ("task_time_[0-9]*", lambda layer, e: layer == "Ascend Hardware"),
                ("acl_[0-9]*", lambda layer, e: layer == "CANN" and e["args"]["level"] == "acl"),
                ("runtime_api_[0-9]*", lambda layer, e: layer == "CANN" and e["args"]["level"] == "runtime"),
                ("task_queue", lambda layer, e: layer == "Python" and e["cat"] in ("enqueue", "dequeue"))):
            expected = [one for one in everything if belongs(*one)]
            self.assertTrue(expected, name)
            self.assertEqual(slices_of(name + ".json"), expected, name)
        self.assertFalse(os.path.exists(os.path.join(out, "msprof_tx.json")), "there are no marks")

    def test_every_layout_in_both_clocks(self):
        """What sim_framework makes of each framework's release. Its own pair of clocks counts where the dump has none."""
        start_ns, start_count = 5_000_000_000_000, 700_000_000
        for layout in ("torch", "torch-57", "mindspore", "mindspore-57", "mindspore-73", "mindspore-74"):
            for clock, host_mhz in (("raw", "100.000000"), ("counter", "100.000000"), ("counter", "")):
                with self.subTest(layout=layout, clock=clock, host_mhz=host_mhz):
                    base = self.fresh()
                    dump = made.Operators(base, slots=1, host_mhz=host_mhz).fill()
                    dump.write()
                    subprocess.run([SIM, layout, base, "none", clock], check=True)
                    out = os.path.join(base, "out")
                    profctl("export", dump.path, "--format", "trace", "--out", out)
                    found = [(e["name"], int(e["ts"].replace(".", "")), round(e["dur"] * 1000), e["tid"])
                             for e in events_of(out) if e.get("cat") == "cpu_op"]
                    shift = BEGIN_US * 1000 - HOST_RAW
                    if clock == "counter" and host_mhz:
                        shift = BEGIN_US * 1000 + (start_count - HOST_COUNT) * 10 - start_ns
                    with open(os.path.join(base, "truth.jsonl"), encoding="utf-8") as lines:
                        truth = [json.loads(line) for line in lines]
                    expected = [(line["name"], line["begin_ns"] + shift, line["end_ns"] - line["begin_ns"], 4242)
                                for line in truth if line["file"] in ("torch.op_range", "mindspore.op_range", "op_range_0")]
                    self.assertEqual((len(expected), len(found)), (20, 20))
                    # Far before the start pair, doubles are 10 ns apart.
                    for have, want in zip(sorted(found), sorted(expected)):
                        self.assertEqual((have[0], have[3]), (want[0], want[3]))
                        self.assertLessEqual(max(abs(have[i] - want[i]) for i in (1, 2)), 20 if host_mhz else 0)


if __name__ == "__main__":
    run_tests.main()
