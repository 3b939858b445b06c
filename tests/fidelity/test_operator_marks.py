"""Marks of the application that devices have, too: their tables, timelines and database against the plan."""

import struct

import run_tests
from comparison import FolderCase, events_of, query, trace_of
from profd_harness import profctl
from test_operator_resources import ResourceOperators
from test_operators import Exported, us

NONE = 2**32 - 1
FIRST = 4_000_000_001


class MarkOperators(ResourceOperators):
    def on_device(self, mark, at, stream, task, tag=11, device=0):
        """The record of a mark's begin or end, `at` us of the device; its wall time in ns."""
        count = self.device_count(at)
        self.add(device, "ts_track.data", struct.pack(
            "<BBHIQQQHHH2x", 0, 10, 0, 0, count, mark, NONE, stream, task, tag))
        return self.wall_ns(count)


class MarkTest(FolderCase):
    """Of every kind: a point, a range, one that no device has, and one of a device alone."""

    def make(self, **options):
        dump = MarkOperators(self.fresh(), **options)
        self.host = [dump.mark(3300, 3300, "step 1", kind=1, event=3, mark=6),
                     dump.mark(3400, 3500, "a long one", kind=1, event=2, mark=7),
                     dump.mark(3600, 3600, "on the host", kind=1, event=3, mark=8),
                     dump.mark(3700, 3700, "plain, with the number of one", event=0, mark=6)]
        return dump

    def marked(self, tags=(11, 11), **options):
        dump = self.make(**options)
        self.point = dump.on_device(6, 4000, 2, 500)
        self.begin = dump.on_device(7, 4010, 3, 501, tags[0])
        self.end = dump.on_device(7, 4125.5, 3, 502, tags[1])
        self.alone = dump.on_device(99, 4200, 9, 7)
        return dump

    def write(self, dump):
        dump.fill()
        dump.write()
        return dump

    def events(self, dump):
        out = dump.path + "-trace"
        profctl("export", dump.path, "--format", "trace", "--out", out)
        return events_of(out)

    def test_table(self):
        """All with one tag, as at first, or with one for points and one for ranges."""
        for tags in ((11, 11), (12, 12)):
            dump = self.write(self.marked(tags))
            rows = Exported(dump.path, dump.path + "-out", 0, ()).rows("msprof_tx")
            self.assertEqual(rows[0][-2:], ["Device Start_time(us)", "Device End_time(us)"])
            point, begin, end = (us(at) + "\t" for at in (self.point, self.begin, self.end))
            self.assertEqual([row[-4:] for row in rows[1:]], [
                ["step 1", "default", point, point], ["a long one", "default", begin, end],
                ["on the host", "default", "N/A", "N/A"], ["plain, with the number of one", "N/A", "N/A", "N/A"]])

    def test_two_devices(self):
        dump = self.make(devices=(0, 1))
        second = dump.on_device(6, 4000, 2, 500, device=1)
        first = dump.on_device(6, 4100, 2, 500, device=0)
        self.write(dump)
        rows = Exported(dump.path, dump.path + "-out", 0, ()).rows("msprof_tx")
        self.assertEqual(rows[1][-2:], [us(first) + "\t"] * 2, "those of the first device")
        slices = [e for e in self.events(dump) if e["ph"] == "X" and e["name"] == "step 1"]
        self.assertEqual([e["ts"] for e in slices], [us(first), us(second)])

    def test_chosen_devices(self):
        """Marks are of the process, whichever they are; times on devices are of those."""
        dump = self.make(devices=(0, 1))
        dump.on_device(6, 4000, 2, 500, device=0)
        second = dump.on_device(6, 4100, 2, 500, device=1)
        self.write(dump)
        rows = Exported(dump.path, dump.path + "-out", 0, ("--devices", "1")).rows("msprof_tx")
        self.assertEqual([row[-4] for row in rows[1:]], ["step 1", "a long one", "on the host", "plain, with the number of one"])
        self.assertEqual(rows[1][-2:], [us(second) + "\t"] * 2)

    def test_timeline(self):
        dump = self.write(self.marked())
        events = self.events(dump)
        hardware = next(e["pid"] for e in events
                        if e["name"] == "process_name" and e["args"]["name"] == "Ascend Hardware")
        found = [(e["name"], e["tid"], e["ts"], e["dur"], e["args"]) for e in events
                 if e["ph"] == "X" and e["pid"] == hardware and "Task Type" not in e["args"]]
        self.assertEqual(sorted(found, key=lambda e: e[2]), [
            ("step 1", 2, us(self.point), 0, {"Physic Stream Id": 2, "Task Id": 500}),
            ("a long one", 3, us(self.begin), (self.end - self.begin) / 1000, {"Physic Stream Id": 3, "Task Id": 501}),
            ("N/A", 9, us(self.alone), 0, {"Physic Stream Id": 9, "Task Id": 7})])
        flows = [(e["ph"], e["name"], e["id"], e["ts"]) for e in events if e.get("cat") == "MsTx"]
        starts = {6: self.host[0][0].strip(), 7: self.host[1][0].strip()}
        ends = {6: self.point, 7: self.begin, 99: self.alone}
        expected = [("s", f"MsTx_{FIRST + mark}", str(FIRST + mark), at) for mark, at in starts.items()]
        expected += [("f", f"MsTx_{FIRST + mark}", str(FIRST + mark), us(at)) for mark, at in ends.items()]
        self.assertEqual(sorted(flows), sorted(expected))

    def test_args_of_the_application(self):
        events = self.events(self.write(self.marked()))
        args = {e["name"]: e["args"] for e in events if e["ph"] in "IX" and "event_type" in e["args"]}
        self.assertEqual(args, {
            "step 1": {"event_type": "marker_ex", "domain": "default"},
            "a long one": {"event_type": "start/end", "domain": "default", "thread": 88},
            "on the host": {"event_type": "marker_ex", "domain": "default"},
            "plain, with the number of one": {"Category": "4", "event_type": "marker", "Payload_type": 2,
                                              "Payload_value": 77, "Message_type": 1}})

    def test_perfetto(self):
        dump = self.write(self.marked())
        out = dump.path + "-perfetto"
        profctl("export", dump.path, "--format", "perfetto", "--out", out)
        trace = trace_of(out)
        self.assertEqual(trace.unbalanced(), set())
        flows = {}
        for (_, track, kind, timestamp, name), (_, on, _) in zip(trace.events, trace.more):
            if kind in ("begin", "instant") and name in ("step 1", "a long one", "on the host"):
                flows.setdefault(name, []).append(("Stream" in track, timestamp, on))
        for name, at in (("step 1", self.point), ("a long one", self.begin)):
            (_, _, leaves), (_, timestamp, arrives) = sorted(flows[name])
            self.assertEqual(timestamp, at)
            self.assertEqual(len(leaves), 1)
            self.assertEqual(leaves, arrives)
        self.assertEqual([on for _, _, on in flows["on the host"]], [[]])

    def test_database(self):
        dump = self.write(self.marked())
        out = dump.path + "-db"
        profctl("export", dump.path, "--format", "sqlite", "--out", out)
        tasks = query(out, "SELECT startNs, endNs, deviceId, connectionId, contextId, streamId, taskId, modelId FROM TASK "
                           "JOIN STRING_IDS s ON s.id = taskType WHERE s.value = 'MsTx' ORDER BY startNs")
        order = [row[0] for row in query(out, "SELECT startNs FROM TASK ORDER BY rowid")]
        numbers = [row[0] for row in query(out, "SELECT DISTINCT globalTaskId FROM TASK ORDER BY 1")]
        joined = query(out, "SELECT v.value, t.startNs FROM MSTX_EVENTS m JOIN TASK t USING (connectionId) "
                            "JOIN STRING_IDS v ON v.id = message ORDER BY t.startNs")
        self.assertEqual(tasks, [(self.point, self.point, 0, FIRST + 6, NONE, 2, 500, NONE),
                                 (self.begin, self.end, 0, FIRST + 7, NONE, 3, 501, NONE),
                                 (self.alone, self.alone, 0, FIRST + 99, NONE, 9, 7, NONE)])
        self.assertEqual(order, sorted(order))
        self.assertEqual(numbers, list(range(len(numbers))))
        self.assertEqual(joined, [("step 1", self.point), ("a long one", self.begin)])


if __name__ == "__main__":
    run_tests.main()
