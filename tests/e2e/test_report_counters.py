#!/usr/bin/env python3
"""The page of profctl report in a real Chromium: what has the same name, the same time or the same ends, or one file alone."""

import json
import os

from profd_harness import eventually, main
from report_page import PageCase
from text_files import put

BEGIN_US = 1736408883000000


def write_changing_clock(output):
    """A kernel of 100 us that nothing launched: the clock changes after 75 us of it, bandwidth is measured every 50 us."""
    put(output, "kernel_details.csv", f"Name,Type,Accelerator Core,Start Time(us),Duration(us)\nk,Mul,AI_CORE,{BEGIN_US},100\n")
    events = [{"ph": "C", "name": "AI Core Freq", "pid": 7, "tid": 0, "ts": BEGIN_US + at, "args": {"MHz": mhz}} for at, mhz in ((-10, 1800), (75, 800))]
    events += [{"ph": "C", "name": "HBM 0/Read", "pid": 7, "tid": 0, "ts": BEGIN_US + at, "args": {"Read(MB/s)": value}}
               for at, value in ((-50, 70), (0, 10), (50, 30), (100, 90))]
    put(output, "trace_view.json", json.dumps(events))


class SameNames(PageCase):
    @classmethod
    def make_pages(cls):
        output = os.path.join(cls.folder, "run", "r0_ascend_pt", "ASCEND_PROFILER_OUTPUT")
        put(output, "kernel_details.csv", f"Name,Type,Accelerator Core,Start Time(us),Duration(us)\nk,Mul,AI_CORE,{BEGIN_US},100\n")
        events = []
        for device, mhz in ((0, 1800), (1, 800)):
            process = 7 << 10 | device
            events.append({"ph": "M", "name": "process_labels", "pid": process, "tid": 0, "args": {"labels": f"NPU {device}"}})
            events += [{"ph": "C", "name": "AI Core Freq", "pid": process, "tid": 0, "ts": BEGIN_US + i * 10, "args": {"MHz": mhz}} for i in range(3)]
        put(output, "trace_view.json", json.dumps(events))
        links = {kind: {"0-1": {"Transport Type": transport, "Transit Size(MB)": size, "Transit Time(ms)": 10}}
                 for kind, transport, size in (("allreduce-total@g", "HCCS", 100), ("allgather-total@g", "RDMA", 30))}
        put(output, "communication_matrix.json", json.dumps({"step1": {"collective": links}}))
        write_changing_clock(os.path.join(cls.folder, "clock", "r0_ascend_pt", "ASCEND_PROFILER_OUTPUT"))
        output = os.path.join(cls.folder, "steps", "r0_ascend_pt", "ASCEND_PROFILER_OUTPUT")
        put(output, "step_trace_time.csv", "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage\n"
                   "5,10,20,0,20,70,100\n6,10,20,0,20,70,100\n")
        for name in ("run", "clock", "steps"):
            cls.report(name)

    def cells(self, selector):
        return self.browser.run(f"return [...document.querySelectorAll({json.dumps(selector)})].map((row) => [...row.children].map((cell) => cell.textContent))")

    def test_a_counter_of_two_devices(self):
        self.open("run", "hardware")
        self.assertEqual(self.cells("tbody tr")[-2:], [["AI Core Freq", str(device), "3"] + [f"{mhz} MHz"] * 3
                                                       for device, mhz in ((0, "1,800.00"), (1, "800.00"))])
        self.browser.run("document.querySelectorAll('tr.link')[1].click()")
        eventually(lambda: self.browser.run("return document.querySelector('main h3').textContent === 'AI Core Freq, device 1'"), what="the counter of device 1")
        rows = self.cells("tbody tr")
        self.assertEqual(rows[0], ["k", "800.00 MHz"], rows)

    def test_counters_of_two_devices_on_the_timeline(self):
        self.open("run", "timeline")
        names = ["AI Core Freq, device 0", "AI Core Freq, device 1"]
        self.assertEqual(self.browser.run("return profd.timeline.model.counters.map((each) => each.name)"), names)
        events = json.loads(self.browser.run("return profd.chromeTrace(profd.data.ranks[0].timeline_data)"))["traceEvents"]
        self.assertEqual([(each["name"], each["args"]["MHz"]) for each in events if each["ph"] == "C"], [(names[0], 1800)] * 3 + [(names[1], 800)] * 3)

    def test_counters_in_the_time_of_a_kernel(self):
        """As the means of operators and steps: the clock by the time that each value held, others of the samples in it."""
        self.open("clock", "timeline?search=k")
        rows = {row[0].split()[0]: row[1:] for row in self.cells("#slice tbody tr")}
        mean = (1800 * 75 + 800 * 25) / 100
        self.assertEqual(rows["AI"], ["800.00 MHz", f"{mean:,.2f} MHz", "1,800.00 MHz", "1"])
        self.assertEqual([cell.split()[0] for cell in rows["HBM"]], ["10.00", "20.00", "30.00", "2"])

    def test_a_slice_that_nothing_launched(self):
        self.open("clock", "timeline?search=k")
        panel = self.browser.run("return document.getElementById('slice').innerText")
        self.assertTrue(panel.startswith("k\n"), panel)
        self.assertNotIn("null", panel)

    def test_steps_of_a_table_alone(self):
        self.open("steps", "overview")
        text = self.browser.run("return document.querySelector('main').innerText")
        self.assertIn("All steps", text)
        self.assertNotIn("Steps: not recorded", text)
        self.assertNotIn("Neither steps", text)

    def test_a_link_of_two_transports(self):
        self.open("run", "communication")
        self.assertEqual(self.cells("table.heat tr"), [["GB/s from, to", "1"], ["0", "HCCS 10.00, RDMA 3.00"]])

    def test_slices_that_overlap_without_being_nested(self):
        """Each keeps its own begin and end; one that lies within another is below it, and rows are used again."""
        self.open("run", "timeline")
        slices = [("a", 0, 100), ("b", 10, 20), ("c", 15, 200), ("d", 30, 40), ("e", 50, 250), ("f", 110, 120), ("g", 300, 310)]
        starts = [start for _, start, _ in slices]
        lane = {"group": "g", "name": "l", "start": [b - a for a, b in zip([0] + starts, starts)],
                "duration": [end - start for _, start, end in slices], "name_id": list(range(len(slices)))}
        rows = self.browser.run(f"return profd.timelineRows({json.dumps(lane)}).map((row) => Array.from(row.start).map((start, i) => "
                                f"[{json.dumps([name for name, _, _ in slices])}[row.name[i]], start, row.end[i]]))")
        self.assertEqual(sorted(map(tuple, sum(rows, []))), slices)
        depth = {name: i for i, row in enumerate(rows) for name, _, _ in row}
        self.assertEqual(depth, {"a": 0, "b": 1, "c": 2, "d": 3, "e": 1, "f": 3, "g": 0})


if __name__ == "__main__":
    main()
