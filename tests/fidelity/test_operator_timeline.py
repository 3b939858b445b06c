"""The timelines of operator-level records against the plan they were written from: every event of the layers CANN, Ascend
Hardware and Overlap Analysis, every flow, in the JSON and in Perfetto's trace."""

import os
from collections import Counter

import make_communication
import make_operators as made
import run_tests
import trace_viewer
from channels import BEGIN_US
from comparison import FolderCase, events_of, one, trace_of, union
from profd_harness import BUILD, profctl
from test_operators import seconds

SLOTS = {"CANN": 7, "Ascend Hardware": 14, "Overlap Analysis": 31}
THREADS = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")
NONE = 2**32 - 1
KERNELS = ("KERNEL_AICORE", "KERNEL_AIVEC", "FFTS_PLUS", "KERNEL_MIX_AIC", "KERNEL_MIX_AIV")


def wall(slot, at):
    """Of the host: its counter begins with the collection."""
    return BEGIN_US * 1000 + round((slot.us + at) * 1000)


class Expected:
    """X events as (layer, device, tid, name, start, end, args without connection ids, the launch's key), and the flows."""

    def __init__(self, dump, begin=None, end=None):
        self.whole = begin is None and end is None
        self.within = lambda t: (begin is None or t >= begin) and (end is None or t <= end)
        self.events, self.starts, self.ends = [], [], []
        self.rows = []
        for slot in dump.slots:
            self._apis(slot)
            for run in slot.runs:
                self._task(dump, slot, *map(dump.wall_ns, run))
        for device in {slot.device for slot in dump.slots}:
            self._overlap(device)

    def _apis(self, slot):
        name = f"aclnn{slot.type}"
        apis = [("Runtime", "runtime", "KernelLaunch", "KernelLaunch", "0", "0", 19, 40)]
        if slot.type:
            apis += [("AscendCL", "acl", name, "ACL_NN", name, name, 2, 70),
                     ("Node", "node", "launch", "launch", "0", slot.name, 10, 60)]
        for shown, level, title, mode, text, item, begin, end in apis:
            start = wall(slot, begin)
            if not self.within(start):
                continue
            args = [("Thread Id", slot.thread), ("Mode", mode), ("level", level), ("id", text), ("item_id", item)]
            self.events.append(("CANN", -1, slot.thread, f"{shown}@{title}", start, wall(slot, end), tuple(args)))
            if level == "node":
                self.starts.append((start, (slot.thread, slot.name)))

    def _task(self, dump, slot, start, end):
        if not self.within(start):
            return
        self.rows.append((slot, start, end))
        detailed = dump.level != "l0"
        operator = slot.type is not None or slot.kernel is not None
        kind = (slot.core or {"KERNEL_AIVEC": "AI_VECTOR_CORE"}[slot.runtime]) if operator and detailed else slot.runtime
        if slot.kind == "memcpy":
            kind = slot.sqe
        name = (slot.name or slot.kernel) if operator else slot.runtime
        args = [("Model Id", NONE), ("Task Type", kind), ("Physic Stream Id", slot.stream), ("Task Id", slot.task),
                ("Batch Id", slot.batch), ("Subtask Id", NONE if slot.context is None else slot.context)]
        self.events.append(("Ascend Hardware", slot.device, slot.stream, name, start, end, tuple(args)))
        if operator or slot.kind == "memcpy":
            self.ends.append((slot.device, slot.stream, start, (slot.thread, slot.name) if slot.name else None))

    def _overlap(self, device):
        rows = [row for row in self.rows if row[0].device == device]
        computing = union((start, end) for slot, start, end in rows if slot.kind not in ("memcpy", "event"))
        # Also the task around the contexts: its host type is that of a kernel.
        bounds = [(start, end) for slot, start, end in rows if slot.runtime not in KERNELS] + computing
        at, free = min(b for b, _ in bounds), []
        for begin, end in computing + [[max(e for _, e in bounds)] * 2]:
            if begin > at:
                free.append((at, begin))
            at = max(at, end)
        for tid, parts in ((0, computing), (3, free)):
            for begin, end in parts:
                self.events.append(("Overlap Analysis", device, tid, THREADS[tid], begin, end, ()))


class TimelineTest(FolderCase):
    def export(self, dump, more=()):
        dump.write()
        out = os.path.join(self.dir, "out")
        profctl("export", dump.path, "--format", "trace,perfetto", "--out", out, *more)
        return events_of(out), trace_of(out)

    def check(self, more=(), window=None, **options):
        dump = made.Operators(self.dir, **options).fill()
        expected = Expected(dump, *(window(dump) if window else ()))
        more = list(more)
        if window:
            begin, end = window(dump)
            more += ["--from", seconds(begin), "--to", seconds(end)]
        events, trace = self.export(dump, more)
        self.check_json(events, expected)
        self.check_perfetto(trace, expected)
        return events

    def check_json(self, events, expected):
        with_pid = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        bases = {pid >> 10 for pid in with_pid}
        self.assertEqual(len(bases), 1)
        found, calls, launches = [], {}, {}
        for e in events:
            layer = with_pid[e["pid"]]
            if e["ph"] != "X" or layer not in SLOTS:
                continue
            self.assertEqual(e["pid"] >> 5 & 31, SLOTS[layer])
            device = -1 if e["pid"] & 31 == 31 else e["pid"] & 31
            start = int(e["ts"].replace(".", ""))
            args = list(e["args"].items())
            if layer != "Overlap Analysis":
                self.assertEqual(args[-1][0], "connection_id")
                args.pop()
            found.append((layer, device, e["tid"], e["name"], start, start + round(e["dur"] * 1000), tuple(args)))
            title = threads[e["pid"], e["tid"]]
            self.assertEqual(title, {"CANN": f"Thread {e['tid']}", "Ascend Hardware": f"Stream {e['tid']}",
                                     "Overlap Analysis": THREADS[e["tid"] & 3]}[layer])
            if layer == "CANN":
                self.assertNotIn(e["args"]["connection_id"], calls)
                calls[e["args"]["connection_id"]] = e
                if e["args"]["level"] == "node":
                    launches[e["tid"], e["args"]["item_id"]] = e["args"]["connection_id"]
        self.assertEqual(sorted(map(repr, found)), sorted(map(repr, expected.events)))
        self.check_flows(events, expected, launches)

    def check_flows(self, events, expected, launches):
        """Both ends have the id of the launch's connection, shifted."""
        flows = {"s": [], "f": []}
        for e in events:
            if e["ph"] in flows and e.get("cat") == "HostToDevice":
                self.assertEqual(e["name"], "HostToDevice" + e["id"])
                self.assertEqual(e.get("bp"), "e" if e["ph"] == "f" else None)
                flows[e["ph"]].append((e["pid"] & 31, e["tid"], int(e["ts"].replace(".", "")), e["id"]))
        self.assertEqual(sorted(flows["s"]), sorted(
            (31, launch[0], start, str(launches[launch] << 32)) for start, launch in expected.starts))
        none = str(2**64 - 2**32)  # of a kernel that no API put there
        known = {e[3] for e in flows["s"]} | {none}
        ends = [(device, stream, start, str(launches[launch] << 32) if launch else none)
                for device, stream, start, launch in expected.ends if launch is None or launch in launches]
        self.assertEqual(sorted(e for e in flows["f"] if e[3] in known), sorted(ends))
        # A window cuts calls off: what they launched in it has no arrow.
        self.assertEqual(len(flows["f"]), len(expected.ends if expected.whole else ends))

    def check_perfetto(self, trace, expected):
        self.assertEqual(trace.unbalanced(), set())
        found, launches, arrivals = Counter(), {}, Counter()
        for process, track, name, begin, end, args, ids, ended in trace.slices():
            layer, _, thread = track.rpartition(" > ")
            layer = layer or "Ascend Hardware"
            if layer not in SLOTS:
                continue
            self.assertEqual(ended, [])
            args.pop("connection_id", None)
            device = -1 if process == "Host" else int(process.split()[1])
            thread = thread.partition(" (")[0] if layer != "Overlap Analysis" else thread
            found[layer, device, thread, name, begin, end, tuple(args.items())] += 1
            for flow in ids:
                if device < 0:
                    launches[flow] = (args["Thread Id"], args["item_id"])
                else:
                    arrivals[flow] += 1
        titles = {"CANN": "Thread {}", "Ascend Hardware": "Stream {}"}
        want = Counter()
        for layer, device, tid, *more in expected.events:
            want[(layer, device, titles[layer].format(tid) if layer in titles else THREADS[tid], *more)] += 1
        self.assertEqual(found, want)
        starts = [launch for _, launch in expected.starts]
        self.assertEqual(sorted(launches.values()), sorted(starts))
        self.assertEqual(Counter({launches[flow]: n for flow, n in arrivals.items() if flow in launches}),
                         Counter(launch for _, _, _, launch in expected.ends if launch in starts))

    def operations(self, **options):
        """Of two groups, beside operators; as the layer Communication shows them: (thread, name, start, end, args)."""
        dump = make_communication.CommunicationOperators(self.dir, slots=4, **options)
        for i in range(4):
            dump.operation("hcom_allReduce_", f"group_{i % 2}", 1_250 + 1000 * i, infos=i != 3)
        dump.fill()
        expected = []
        tids = {}
        for op, name, _, start, end in dump.operation_rows():
            # The second group is behind the operations and two planes of the first.
            first = tids.setdefault(op.group, 3 * len(tids))
            expected.append((first, f"Group {op.group} Communication", name, start, end, (
                ("rank_size", 8 if op.infos else 0), ("model id", NONE), ("data_type", "FP32"), ("alg_type", "RING-RING"),
                ("count", 4096), ("relay", "no"), ("retry", "yes"))))
            for task in op.tasks if op.infos else ():
                begin, last = map(dump.wall_ns, task.runs[0])
                expected.append((first + 1 + task.plane, f"Plane {task.plane}", task.name, begin, last, (
                    ("notify_id", str(7 + task.task)), ("duration estimated(us)", 1.5), ("stream id", task.stream),
                    ("task id", task.task), ("context id", NONE), ("task type", task.name), ("src rank", 0),
                    ("dst rank", 1), ("transport type", "SDMA"), ("size(Byte)", task.bytes), ("data type", "FP32"),
                    ("link type", "HCCS"), ("bandwidth(GB/s)", task.bytes / (last - begin)), ("model id", NONE))))
        return dump, expected

    def test_communication_by_group_and_plane(self):
        dump, expected = self.operations()
        events, trace = self.export(dump)
        pid = next(e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == "Communication")
        self.assertEqual(pid & 1023, 16 << 5)
        threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == pid}
        found, ends = [], []
        calls = {e["args"]["connection_id"]: e for e in events if e["ph"] == "X" and "item_id" in e["args"]}
        for e in events:
            if e["pid"] != pid or e["ph"] not in "Xf":
                continue
            start = int(e["ts"].replace(".", ""))
            if e["ph"] == "f":
                ends.append((e["tid"], start, int(e["id"]) >> 32))
                continue
            connection = e["args"].pop("connection_id", None)
            found.append((e["tid"], threads[e["tid"]], e["name"], start, start + round(e["dur"] * 1000),
                          tuple(e["args"].items())))
            if connection is not None:
                self.assertEqual(calls[connection]["name"], "Node@launch")
                self.assertIn((e["tid"], start, connection), ends + [
                    (f["tid"], int(f["ts"].replace(".", "")), int(f["id"]) >> 32) for f in events if f["ph"] == "f"])
        expected.sort(key=repr)
        self.assertEqual(sorted(e for e in found if "N/A" not in e[2]), expected)
        native = Counter()
        for process, track, name, begin, end, *_ in trace.slices():
            if track.startswith("Communication > ") and name != "N/A":
                native[track.partition(" > ")[2], name, begin, end] += 1
        self.assertEqual(native, Counter((thread, name, begin, end) for _, thread, name, begin, end, _ in expected))

    def test_calls_are_named_by_their_types_where_they_have_no_item(self):
        """As the records of real runs: the dictionary has a name for each call of AscendCL, and its class is the mode."""
        dump = made.Operators(self.dir, slots=8)
        event = next(slot for slot in dump.slots if slot.kind == "event")
        for kind, begin in ((0x30002, 10), (0x50002, 60)):
            dump.api("acl", kind, event, begin, begin + 40)
        dump.fill()
        dump.files["host", "unaging.additional.type_info_dic"] += [b"20000_196610:aclrtRecordEvent\n", b"20000_327682:aclnnMm\n"]
        events, _ = self.export(dump)
        calls = {e["name"]: e for e in events if e["ph"] == "X" and e["args"].get("item_id") == "0" and e["args"]["level"] == "acl"}
        self.assertEqual({name: (e["args"]["Mode"], e["args"]["id"]) for name, e in calls.items()},
                         {"AscendCL@aclrtRecordEvent": ("ACL_RTS", "aclrtRecordEvent"), "AscendCL@aclnnMm": ("ACL_NN", "aclnnMm")})
        connection = calls["AscendCL@aclrtRecordEvent"]["args"]["connection_id"]
        flow = {e["ph"]: (e["tid"], e["ts"]) for e in events if e.get("id") == str(connection << 32)}
        start = dump.wall_ns(event.runs[0][0])
        self.assertEqual(flow, {"s": (event.thread, calls["AscendCL@aclrtRecordEvent"]["ts"]),
                                "f": (event.stream, f"{start // 1000}.{start % 1000:03}")})

    def test_calls_of_communication_have_the_names_of_their_tasks(self):
        dump, _ = self.operations()
        events, _ = self.export(dump)
        self.assertEqual({(e["name"], e["args"]["item_id"], e["args"]["Mode"]) for e in events
                          if e["ph"] == "X" and e["args"].get("level") == "communication"},
                         {(f"Communication@{name}", name, mode) for name in ("Notify_Wait", "Memcpy", "Notify_Record")
                          for mode in ("master", "slave")})

    def test_payloads_in_a_row_share_the_time_up_to_what_closes_them(self):
        """That is the second task behind those of sends and receives, else the fourth (operator-data b.5)."""
        payload, notify, wait = (("RDMASend", make_communication.SDMA, size, rdma) for size, rdma in ((1 << 20, 1), (0, 0), (0, 255)))
        dump = make_communication.CommunicationOperators(self.dir, slots=4)
        closed = [(dump.operation(name, "group_a", 20_000 + 1000 * i, tasks=(payload, payload, notify, wait, wait, wait), planes=1),
                   closing)
                  for i, (name, closing) in enumerate((("hcom_send_", 3), ("hcom_batchSendRecv_", 3), ("hcom_allReduce_", 5)))]
        events, _ = self.export(dump.fill())
        rates = []
        for op, closing in closed:
            begin, end = dump.wall_ns(op.tasks[0].runs[0][0]), dump.wall_ns(op.tasks[closing].runs[0][1])
            rates += [(2 << 20) / (end - begin)] * 2
        self.assertEqual([e["args"]["bandwidth(GB/s)"] for e in events if e["ph"] == "X" and e["args"].get("size(Byte)")], rates)

    def test_communication_beside_computing(self):
        dump, _ = self.operations()
        events, _ = self.export(dump)
        pid = next(e["pid"] for e in events if e["name"] == "process_name" and e["args"]["name"] == "Overlap Analysis")
        parts = {name: set() for name in THREADS}
        for e in events:
            if e["pid"] == pid and e["ph"] == "X":
                start = int(e["ts"].replace(".", ""))
                parts[e["name"]].add((start, start + round(e["dur"] * 1000)))
        operations = union((start, end) for _, _, _, start, end in dump.operation_rows())
        self.assertEqual(sorted(parts["Communication"]), operations)
        computing = union((dump.wall_ns(start), dump.wall_ns(end)) for slot in dump.slots
                          if slot.kind not in ("memcpy", "event") for start, end in slot.runs)
        self.assertEqual(sorted(parts["Computing"]), computing)
        alone = []
        for begin, end in operations:
            for start, last in computing:
                if last > begin and start < end:
                    if start > begin:
                        alone.append((begin, start))
                    begin = max(begin, last)
            if begin < end:
                alone.append((begin, end))
        self.assertEqual(sorted(parts["Communication(Not Overlapped)"]), alone)
        self.assertNotEqual(alone, operations)

    def test_chromes_viewer_shows_the_layers(self):
        """The viewer finds the same slices and arrows as are in the file."""
        if why := trace_viewer.missing():
            self.skipTest("SKIPPED: " + why)
        dump, _ = self.operations()
        events, _ = self.export(dump)
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        slices = Counter(names[e["pid"]] for e in events if e["ph"] in "Xi")
        for layer in (*SLOTS, "Communication"):
            self.assertGreater(slices[layer], 0, layer)
        with trace_viewer.opened(one(os.path.join(self.dir, "out"), "msprof_*.json")) as browser:
            self.assertEqual(browser.run("return model.importWarnings.map(w => w.message)"), [])
            found = browser.run("""
                return Object.values(model.processes).map(p => [p.name, Object.values(p.threads).map(
                    t => t.sliceGroup.slices.length).reduce((a, b) => a + b, 0)]);""")
            self.assertEqual({name: count for name, count in found if count}, slices)
            arrows = browser.run("return model.flowEvents.map(f => [f.startSlice.title, f.endSlice.title])")
            self.assertEqual(len(arrows), sum(e["ph"] == "f" for e in events))
            self.assertEqual({start for start, _ in arrows}, {"Node@launch"})
            browser.screenshot(os.path.join(BUILD, "browser", "operators.png"))

    def test_every_kind_of_launch(self):
        self.check()

    def test_devices(self):
        events = self.check(devices=(0, 1))
        labels = {e["args"]["labels"] for e in events if e["name"] == "process_labels"}
        self.assertEqual(labels, {"CPU", "NPU 0", "NPU 1"})

    def test_threads_and_batches(self):
        self.check(slots=60, threads=(77, 78, 79), wrap=7)

    def test_a_static_graph_runs_again(self):
        self.check(slots=16, executions=3)

    def test_level_0(self):
        self.check(level="l0")

    def test_a_window_cuts_all_layers(self):
        def window(dump):
            starts = sorted(dump.wall_ns(start) for slot in dump.slots for start, _ in slot.runs)
            return starts[4], starts[20]
        self.check(window=window)


if __name__ == "__main__":
    run_tests.main()
