#!/usr/bin/env python3
"""The page of profctl report in a real Chromium: what it shows of a run whose numbers are known, by mouse and keyboard."""

import base64
import json
import os

import perfetto_reader
import web_driver
from profd_harness import eventually, main, profctl
from report_page import PageCase
from text_files import put, write_bytes

BEGIN_US = 1736408883000000
EVIL = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
PAGES = ("overview", "advice", "cluster", "steps", "operators", "pipeline", "communication", "memory", "hardware", "marks", "timeline", "compare")


CORES = {1: "AI_CPU", 2: "MIX_AIC", 3: "AI_VECTOR_CORE", 4: "AI_VECTOR_CORE"}  # of kernel_1, ...


def make_rank(parent, rank, kernels=500):
    """A PyTorch output: kernels of 1 to 9 us on two streams, a launch each, collectives, memory, a counter."""
    folder = os.path.join(parent, f"r{rank}_ascend_pt")
    output = os.path.join(folder, "ASCEND_PROFILER_OUTPUT")
    put(folder, f"profiler_info_{rank}.json", "{}")
    rows = ["Name,Type,Accelerator Core,Start Time(us),Duration(us),Stream ID,Input Shapes,aic_mac_ratio,aic_mte2_ratio"]
    events = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
              for pid, name in ((1, "Python"), (2, "CANN"), (3, "Ascend Hardware"), (4, "AI Core Freq"), (5, "Overlap Analysis"))]
    events += [{"ph": "M", "name": "thread_name", "pid": 3, "tid": s, "args": {"name": f"Stream {s}"}} for s in (0, 1)]
    events.append({"ph": "X", "name": "ProfilerStep#3", "pid": 1, "tid": 7, "ts": BEGIN_US, "dur": kernels * 10 + 50})
    for i in range(kernels):
        start = BEGIN_US + 20 + i * 10
        name = EVIL if i % 50 == 0 else f"kernel_{i % 25}"
        core = CORES.get(i % 25, "AI_CORE")
        rows.append(f'"{name}",Type{i % 25},{core},{start},{1 + i % 9},{i % 2},"""{i % 25},2""",0.{i % 10},0.{i * 7 % 10}')
        events.append({"ph": "X", "name": f"launch_{i % 25}", "pid": 2, "tid": 7, "ts": start - 15, "dur": 3})
        events.append({"ph": "s", "cat": "HostToDevice", "id": str(i), "name": "x", "pid": 2, "tid": 7, "ts": start - 15})
        events.append({"ph": "f", "cat": "HostToDevice", "id": str(i), "name": "x", "pid": 3, "tid": i % 2, "ts": start})
        events.append({"ph": "X", "name": "Computing", "pid": 5, "tid": 0, "ts": start, "dur": 1 + i % 9})
    events.append({"ph": "X", "name": "Free", "pid": 5, "tid": 3, "ts": BEGIN_US + 10000, "dur": 1000})
    events += [{"ph": "X", "name": f"mark_{i % 2}", "pid": 6, "tid": 9, "ts": BEGIN_US + 100 * i, "dur": 50 * (i % 2),
                "args": {"event_type": "start/end" if i % 2 else "marker_ex", "domain": "loader"}} for i in range(10)]
    events += [{"ph": "C", "name": "AI Core Freq", "pid": 4, "tid": 0, "ts": BEGIN_US + i * 100, "args": {"MHz": 1800 - i}} for i in range(50)]
    put(output, "kernel_details.csv", "\n".join(rows) + "\n")
    put(output, "trace_view.json", json.dumps(events))
    info = {"Communication Time Info": {"Start Timestamp(us)": BEGIN_US, "Elapse Time(ms)": 1.5, "Transit Time(ms)": 1, "Wait Time(ms)": 0.25,
                                        "Synchronization Time(ms)": 0.125, "Idle Time(ms)": 0.25},
            "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": 18, "Transit Time(ms)": 2, "Size Distribution": {"1": [3, 2]}}}}
    put(output, "communication.json", json.dumps({"step3": {"collective": {"hcom_allReduce__1_0_1@9": info}}}))
    pairs = {f"{rank}-{b}": {"Transport Type": "HCCS", "Transit Size(MB)": 10 * (rank + b), "Transit Time(ms)": 1} for b in (0, 1)}
    put(output, "communication_matrix.json", json.dumps({"step3": {"collective": {"allreduce-total@9": pairs}}}))
    put(output, "memory_record.csv", "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type\n" +
          "".join(f"PTA,{BEGIN_US + i * 10},{i},100,{i},1,NPU:{rank}\n" for i in range(60)))
    put(output, "operator_memory.csv", f"Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us)\naten::x,64,{BEGIN_US},,\n")


def make_idle(folder):
    """Memory of a device that ran nothing and whose rank is not known."""
    put(os.path.join(folder, "ASCEND_PROFILER_OUTPUT"), "memory_record.csv",
          f"Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB)\nPTA,{BEGIN_US},1,2,1\n")


def make_pipeline(folder):
    put(folder, "device_queue_profiling_0.txt", "".join(f"0 0 {s} 3\n0 1 {s} 2\n0 2 {s} 5\n1 64 {s} {0 if s <= 40 else 9}\n" for s in range(1, 101)))
    ops = [{"op_id": 0, "op_type": "Batch", "num_workers": 1, "children": [1], "metrics": {"output_queue": {"size": [1, 1], "length": 10}}},
           {"op_id": 1, "op_type": "Map", "num_workers": 4, "children": None, "metrics": {"output_queue": {"size": [9, 9], "length": 10}}}]
    put(folder, "pipeline_profiling_0.json", json.dumps({"op_info": ops}))
    put(folder, "minddata_cpu_utilization_0.json", json.dumps({"cpu_processor_num": 48, "op_info": [
        {"op_id": i, "metrics": {"user_utilization": [10 + i, 20 + i], "sys_utilization": [1, 2]}} for i in (-1, 0, 1)]}))


class Report(PageCase):
    @classmethod
    def make_pages(cls):
        for rank in (0, 1):
            make_rank(os.path.join(cls.folder, "run"), rank)
        make_pipeline(os.path.join(cls.folder, "minddata"))
        os.makedirs(os.path.join(cls.folder, "little"))
        put(os.path.join(cls.folder, "little", "r_ascend_pt", "ASCEND_PROFILER_OUTPUT"), "kernel_details.csv", "Name,Start Time(us),Duration(us)\n")
        for name in ("run", "minddata", "little"):
            cls.report(name)

    def open(self, name, page="overview"):
        super().open(name, page)
        self.browser.run("""window.problems = [];
            addEventListener('error', (event) => problems.push(event.message));
            addEventListener('unhandledrejection', (event) => problems.push(String(event.reason)));
            addEventListener('securitypolicyviolation', (event) => problems.push(event.violatedDirective + ' ' + event.blockedURI));""")

    def go(self, address):
        self.browser.run("document.querySelector('main').replaceChildren(); "
                         f"if (location.hash === {json.dumps(address)}) profd.show(); else location.hash = {json.dumps(address)}")
        self.shown()

    def text(self):
        return self.browser.run("return document.querySelector('main').innerText")

    def assert_quiet(self):
        self.assertEqual(self.browser.run("return problems"), [])
        self.assertEqual(self.browser.run("return performance.getEntriesByType('resource').map((each) => each.name)"), [])

    def test_every_page_of_every_run(self):
        for name in ("run", "minddata", "little"):
            self.open(name)
            for page in PAGES:
                with self.subTest(name=name, page=page):
                    self.go(f"#/{page}")
                    self.assertTrue(self.text().strip())
                    self.assertNotIn("undefined", self.text())
                    self.assertNotIn("NaN", self.text())
                    width = self.browser.run("return [document.documentElement.scrollWidth, innerWidth]")
                    self.assertLessEqual(width[0], width[1])
            self.assert_quiet()

    def test_a_narrow_overview(self):
        """A long path is broken, and the ring's legend does not take its space."""
        run = os.path.join(self.folder, "narrow", "x" * 100)
        make_rank(run, 0)
        report = os.path.join(self.folder, "narrow.html")
        profctl("report", run, "-o", report)
        with web_driver.Browser(500, 900) as browser:
            browser.open(f"file://{report}#/overview")
            eventually(lambda: browser.run("return window.profd && profd.charts.length > 0"), what="the ring is there")
            width = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
            self.assertLessEqual(width[0], width[1])
            self.assertEqual(browser.run("return profd.charts.find((each) => each.config.type === 'doughnut').options.plugins.legend.position"), "bottom")

    def test_numbers(self):
        self.open("run")
        data = json.loads(profctl("analyze", "--json", os.path.join(self.folder, "run")).stdout)
        rank = data["ranks"][0]
        self.assertIn(f"{rank['overall']['computing_ms']:.3f} ms", self.text())
        self.assertIn("500", self.text())
        self.go("#/operators?search=kernel_7")
        rows = [r for r in rank["operators"] if "kernel_7" in r["name"]]
        self.assertIn(f"{rows[0]['total_ms']:.3f}", self.text())
        self.go("#/communication")
        for number in ("1.500", "0.250", "9", "18"):  # elapsed, wait, GB/s, reference
            self.assertIn(number, self.text())
        self.go("#/memory")
        self.assertIn("59", self.text())
        self.go("#/pipeline")
        self.assertIn("not recorded", self.text())
        self.open("minddata", "pipeline")
        self.assertIn("Bottleneck: Data processing", self.text())
        self.go("#/overview")
        self.assertIn("The training waits for its input. Bottleneck: Data processing.", self.text())
        self.assertIn("Operators: not recorded.", self.text())
        self.assertNotIn("0.000 ms", self.text())  # of a timeline that is not there
        self.go("#/pipeline")
        self.assertIn("40 of 100 steps", self.text())
        self.assertIn("Batch 0", self.text())
        self.open("little")
        self.assertIn("there is nothing to judge", self.text())
        self.assertNotIn("Nothing stands out", self.text())

    def test_advice(self):
        """A summary first, then the parts of the report in their order."""
        self.open("run", "advice")
        self.assertEqual(self.browser.run("return document.querySelector('main section').id"), "advice-summary")
        modules = self.browser.run("return Array.from(document.querySelectorAll('main .module > h2')).map((each) => each.innerText)")
        self.assertEqual(modules[0], "Overall")
        self.assertEqual(modules, [name for name in ("Overall", "Comparison", "Performance problem analysis") if name in modules])
        heads = self.browser.run("return Array.from(document.querySelectorAll('#finding-slow_rank th')).map((each) => each.innerText)")
        self.assertEqual([head.strip() for head in heads[:4]], ["step", "rank", "computing (ms)", "uncovered communication (ms)"])

    def test_the_address_of_a_finding_shows_it(self):
        self.open("run", "advice?finding=ai_core_performance")
        seen = "const at = document.getElementById('finding-ai_core_performance').getBoundingClientRect(); return scrollY > 0 && at.top >= -1 && at.top < innerHeight - 50"
        eventually(lambda: self.browser.run(seen), what="the finding is seen")
        # Again by its link in the list, though the address stays.
        self.browser.run("window.scrollTo(0, 0)")
        self.assertFalse(self.browser.run(seen))
        self.browser.run("[...document.querySelectorAll('main td a')].find((each) => each.hash.endsWith('finding=ai_core_performance')).click()")
        eventually(lambda: self.browser.run(seen), what="the finding is seen again")
        self.assert_quiet()

    def test_urgent_advice_is_on_the_overview(self):
        collections = [{"ph": "X", "name": "GC", "cat": "GC", "pid": 1, "tid": 7, "ts": BEGIN_US + 10_000 * i, "dur": 3000} for i in range(3)]
        put(os.path.join(self.folder, "collections", "r0_ascend_pt", "ASCEND_PROFILER_OUTPUT"), "trace_view.json", json.dumps(collections))
        profctl("report", os.path.join(self.folder, "collections"), "-o", os.path.join(self.folder, "collections.html"))
        self.open("collections")
        self.assertEqual(self.browser.run("return document.querySelector('main .hints .priority').innerText"), "medium")
        self.browser.run("document.querySelector('main .hints a').click()")
        eventually(lambda: self.browser.run("return document.getElementById('finding-gc') !== null"), what="the advice")
        self.assertIn("finding=gc", self.browser.run("return location.hash"))
        self.assert_quiet()

    def test_the_file_of_advise_begins_with_the_advice(self):
        out = os.path.join(self.folder, "advice")
        profctl("advise", os.path.join(self.folder, "run"), "-o", out)
        self.browser.open("about:blank")
        self.browser.open(f"file://{out}/advice.html")
        self.shown()
        self.assertEqual(self.browser.run("return document.querySelector('main h2').innerText"), "Advice")
        self.go("#/overview")
        self.assertEqual(self.browser.run("return document.querySelector('main h2').innerText"), "Overview")

    def test_texts_of_durations(self):
        self.open("run")
        short = {0: "0 ns", 500: "500 ns", 1000: "1 us", 100_000: "100 us", 1_250_000: "1.25 ms", 150_000_000: "150 ms", 2_000_000_000: "2 s"}
        for ns, text in short.items():
            self.assertEqual(self.browser.run(f"return profd.shortDuration({ns})"), text)
    def test_kinds_of_cores(self):
        """A tab for each kind there is, with its types, operators and roofline."""
        self.open("run", "operators")
        tabs = self.browser.run("return Array.from(document.querySelectorAll('.tabs a')).map((each) => each.innerText)")
        self.assertEqual(tabs, ["All", "AI Core", "Vector", "Mixed", "AI CPU"])
        for tab, kernels in (("AI CPU", [1]), ("Mixed", [2]), ("Vector", [3, 4])):
            self.browser.run(f"Array.from(document.querySelectorAll('.tabs a')).find((each) => each.innerText === {json.dumps(tab)}).click()")
            eventually(lambda tab=tab: self.browser.run("return document.querySelector('.tabs a[aria-current]').innerText") == tab, what=tab)
            names = "return Array.from(document.querySelectorAll('.table')[%d].querySelectorAll('tbody tr td:first-child')).map((each) => each.innerText)"
            self.assertEqual(sorted(self.browser.run(names % 0)), [f"Type{i}" for i in kernels])
            self.assertEqual(sorted(self.browser.run(names % 1)), [f"kernel_{i}" for i in kernels])
            self.assertEqual(sorted(self.browser.run(names % 2)), [f"kernel_{i}" for i in kernels])
        self.assert_quiet()

    def chart(self):
        return json.loads(self.browser.run("const chart = profd.charts[0]; return JSON.stringify({type: chart.config.type, "
                                           "labels: chart.data.labels, data: chart.data.datasets[0].data})"))

    def test_most_types(self):
        """As MindInsight: pie or bars of the 19 types that took longest, and what is left."""
        rank = json.loads(profctl("analyze", "--json", os.path.join(self.folder, "run")).stdout)["ranks"][0]
        types = rank["operator_types"]
        self.assertEqual(len(types), 25)
        for address, kind in (("operators", "doughnut"), ("operators?graph=bar", "bar")):
            self.open("run", address)
            eventually(lambda: self.browser.run("return profd.charts.length > 0"), what="the graph")
            chart = self.chart()
            self.assertEqual((chart["type"], chart["labels"]), (kind, [t["type"] for t in types[:19]] + ["Other"]))
            for got, want in zip(chart["data"], [t["total_ms"] for t in types[:19]] + [sum(t["total_ms"] for t in types[19:])]):
                self.assertAlmostEqual(got, want, places=9)

    def test_roofline(self):
        self.open("run", "operators")
        self.assertIn("Roofline", self.text())
        rank = json.loads(profctl("analyze", "--json", os.path.join(self.folder, "run")).stdout)["ranks"][0]
        eventually(lambda: self.browser.run("return profd.charts.length > 1"), what="both graphs")
        points = json.loads(self.browser.run("return JSON.stringify(profd.charts[1].data.datasets.map((set) => set.data))"))
        limits = ["compute", "memory", "none"]
        for limit, drawn in zip(limits, points):
            want = {row["name"]: row for row in rank["roofline"] if row["limit"] == limit}
            self.assertEqual({point["name"] for point in drawn}, set(want))
            for point in drawn:
                self.assertAlmostEqual(point["y"], 100 * want[point["name"]]["compute"]["of_peak"], places=6)
                self.assertAlmostEqual(point["x"], 100 * want[point["name"]]["memory"]["of_peak"], places=6)
        self.assertGreater(sum(map(len, points)), 20)

    def test_marks(self):
        self.open("run", "marks")
        cells = self.browser.run("return Array.from(document.querySelectorAll('.table')[0].querySelectorAll('tbody tr')).map((row) => row.innerText.split('\\t'))")
        self.assertEqual([row[:4] for row in cells], [["mark_1", "loader", "5", "0.250"], ["mark_0", "loader", "5", "0.000"]])
        self.assertEqual(self.browser.run("return document.querySelectorAll('.table')[1].querySelectorAll('tbody tr').length"), 10)
        self.assert_quiet()

    def test_cpus_of_the_pipeline(self):
        self.open("minddata", "pipeline")
        for part in ("CPUs of the host", "48", "14.0 %", "1.5 %", "Map 1"):
            self.assertIn(part, self.text())
        self.assert_quiet()

    def test_cluster(self):
        """Of several ranks only there is the page; its tables have what the JSON has."""
        self.open("little", "overview")
        self.assertNotIn("Cluster", self.browser.run("return document.getElementById('nav').innerText"))
        self.open("run", "cluster")
        self.assertIn("Cluster", self.browser.run("return document.getElementById('nav').innerText"))
        cluster = json.loads(profctl("analyze", "--json", "--only", "cluster", os.path.join(self.folder, "run")).stdout)["cluster"]
        text = self.text()
        for heading in ("Ranks, a step on average", "Steps over all ranks", "Links between ranks", "Groups"):
            self.assertIn(heading, text)
        for each in cluster["rank_times"]:
            self.assertIn(f"{each['computing_ms']:.3f}", text)
        self.assert_quiet()

    def test_links_have_a_row_for_each_rank_that_sent(self):
        self.open("little")
        links = [{"src": 3, "dst": to, "transport": "HCCS", "bandwidth_gb_s": to} for to in (10, 1, 2)]
        cells = self.browser.run(f"return [...profd.heat({json.dumps(links)}, 'dp').querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.textContent))")
        self.assertEqual(cells, [["GB/s from, to", "1", "2", "10"], ["3", "1.00", "2.00", "10.00"]])

    def test_the_mean_of_the_steps_is_none_of_them(self):
        output = os.path.join(self.folder, "steps", "r_ascend_pt", "ASCEND_PROFILER_OUTPUT")
        put(output, "kernel_details.csv", f"Name,Start Time(us),Duration(us)\nMatMul,{BEGIN_US + 1},1\n")
        events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Python"}}]
        events += [{"ph": "X", "name": f"ProfilerStep#{i}", "pid": 1, "tid": 7, "ts": BEGIN_US + 100 * i, "dur": 90} for i in range(20)]
        put(output, "trace_view.json", json.dumps(events))
        text = profctl("analyze", os.path.join(self.folder, "steps")).stdout
        self.assertIn("Training steps, ms (15 of 20; all with --json)\n", text)
        self.assertEqual(text.count("  0.090  "), 16, text)

    def test_a_line_for_each_stream_of_reduces(self):
        """Also where MindInsight's names end in that of the operator."""
        self.open("little")
        names = ["stream_36_0_AllReduce-op4542", "stream_36_1_AllReduce-op4543", "stream_7_parallel_0", "stream_7_parallel_1", "Reduce_0_1", "Reduce_0_2"]
        reduces = [{"name": name, "start_ms": 2 + i, "duration_ms": 0.5} for i, name in enumerate(names)]
        step = {"total_ms": 10, "iteration_interval_ms": 1, "fp_and_bp_ms": 8, "tail_ms": 1, "reduces": reduces}
        lines = self.browser.run(f"return [...profd.stepGraph({json.dumps(step)}).children].map((line) => [...line.children].map((each) => each.title.split('  ')[0]))")
        self.assertEqual(lines, [["Step"], ["Interval", "Forward and backward", "Tail"], names[:2], names[2:4], names[4:]])

    def test_names_are_text(self):
        self.open("run", "operators?search=onerror")
        self.assertIn(EVIL, self.text())
        self.assertEqual(self.browser.run("return document.querySelectorAll('main img, main script').length"), 0)
        self.assert_quiet()

    def test_tables(self):
        """Sort, search, pages and a link, all by what a keyboard reaches."""
        self.open("run", "operators")
        table = "document.querySelectorAll('.table')[1]"
        first = f"return {table}.querySelector('tbody td').innerText"
        self.browser.run(f"const sort = {table}.querySelectorAll('th button')[0]; sort.focus(); sort.click(); sort.click();")
        self.browser.run(f"{table}.querySelectorAll('th button')[0].click()")
        names = [self.browser.run(first)]
        self.browser.run(f"{table}.querySelectorAll('th button')[0].click()")
        names.append(self.browser.run(first))
        self.assertNotEqual(*names)
        self.browser.run(f"const box = {table}.querySelector('input'); box.value = 'kernel_13'; box.dispatchEvent(new Event('input'))")
        self.assertEqual(self.browser.run(first), "kernel_13")
        self.assertIn("1 row", self.browser.run(f"return {table}.querySelector('.paging').innerText"))
        self.go("#/operators?type=Type4")
        self.assertIn("Operators of the type Type4", self.text())
        self.assertEqual(self.browser.run("return document.querySelectorAll('main a:not([href]), main [onclick]').length"), 0)

    def test_what_is_not_known_is_a_sentence(self):
        self.open("run", "cluster")
        # Steps that two ranks marked, of which no operator was recorded.
        self.browser.run("""for (const row of profd.data.cluster.rank_times) {
              Object.assign(row, {computing_ms: null, uncovered_communication_ms: null, free_ms: null, last_of: 0, votes: 0, operations: 0});
            }
            const rank = profd.data.ranks[0];
            rank.overall = null;
            document.querySelector('main').replaceChildren(profd.clusterPage().firstChild, profd.overallPanel(rank), profd.overallPanel(Object.assign({}, rank, {operators: []})))""")
        text = self.text()
        for part in ("Mean step by rank: not recorded.", "When the device communicated: not recorded.",
                     "Operators: not recorded. profctl start --task-time l1 records them."):
            self.assertIn(part, text)
        self.assertEqual(self.browser.run("return document.querySelectorAll('main canvas').length"), 0)
        self.assertNotIn("Comes last to", text)

    def test_a_column_has_one_number_of_decimals(self):
        self.open("run", "operators")
        for numbers, want in (([2500.5, 0.25, 0, None], ["2,500.500", "0.250", "0.000", "-"]), ([2500, 0], ["2,500", "0"]),
                              ([0.000001, 0.0995], ["0.000001", "0.099500"])):
            cells = self.browser.run("return [...profd.table([{name: 'x', value: (row) => row, number: true}], "
                                     f"{json.dumps(numbers)}).querySelectorAll('td')].map((cell) => cell.textContent)")
            self.assertEqual(cells, want)

    def test_a_name_of_ordinary_length_is_on_one_line(self):
        """However many columns stand beside it; a heading, too."""
        self.open("run", "operators")
        heights = self.browser.run("""const columns = [{name: 'a', value: () => 'ASCEND_GLOBAL_LOG_LEVEL'}, {name: 'b', value: () => 'x'.repeat(200)}, {name: 'Output shapes', value: () => null}];
            for (let i = 0; i < 20; ++i) columns.push({name: 'long heading ' + i, value: () => i, number: true});
            const table = profd.table(columns, [0]);
            document.querySelector('main').append(table);
            return [...table.querySelectorAll('td, th button')].map((cell) => { const range = document.createRange(); range.selectNodeContents(cell); return range.getClientRects().length; })""")
        headings, cells = heights[:23], heights[23:]
        self.assertEqual(headings, [1] * 23)
        self.assertEqual(cells[0], 1)
        self.assertGreater(cells[1], 1)

    def test_unknown_values_are_sorted_to_the_end(self):
        self.open("run", "operators")
        for clicks, want in ((1, ["3", "2", "1", "-"]), (2, ["1", "2", "3", "-"])):
            cells = self.browser.run("const table = profd.table([{name: 'x', value: (row) => row, number: true}], [2, null, 3, 1]); "
                                     f"document.querySelector('main').append(table); for (let i = 0; i < {clicks}; ++i) table.querySelector('th button').click(); "
                                     "return [...table.querySelectorAll('td')].map((cell) => cell.innerText)")
            self.assertEqual(cells, want)

    def test_timeline(self):
        self.open("run", "timeline?search=kernel_3")
        found = self.browser.run("return [profd.timeline.model.lanes.map((lane) => [lane.group, lane.name, lane.count]), profd.timeline.model.flows.size]")
        lanes = {(group, name): count for group, name, count in found[0]}
        self.assertEqual(lanes["Ascend Hardware", "Stream 0"] + lanes["Ascend Hardware", "Stream 1"], 500)
        self.assertEqual(found[1], 1000)
        # What is selected, what launched it, and the clock in its time.
        panel = self.browser.run("return document.getElementById('slice').innerText")
        for part in ("kernel_3", "launch_3", "ProfilerStep#3", "AI Core Freq", "MHz", "Type3"):
            self.assertIn(part, panel)
        keys = """const canvas = document.querySelector('canvas'); const t = profd.timeline; const before = [t.from, t.to];
            canvas.dispatchEvent(new KeyboardEvent('keydown', {key: '%s', bubbles: true})); return [before, [t.from, t.to]]"""
        for key, rule in (("w", lambda a, b: b[1] - b[0] < a[1] - a[0]), ("s", lambda a, b: b[1] - b[0] > a[1] - a[0]),
                          ("a", lambda a, b: b[0] < a[0]), ("d", lambda a, b: b[0] > a[0])):
            self.assertTrue(rule(*self.browser.run(keys % key)), key)
        self.browser.run("profd.timeline.show(0, profd.timeline.model.span)")
        self.assert_quiet()

    def test_files_of_the_timeline(self):
        self.open("run", "timeline")
        data = json.loads(self.browser.run("return JSON.stringify(profd.data.ranks[0].timeline_data)"))
        encoded = self.browser.run("const bytes = profd.perfettoTrace(profd.data.ranks[0].timeline_data); let text = ''; "
                                   "for (const byte of bytes) text += String.fromCharCode(byte); return btoa(text)")
        path = os.path.join(self.folder, "timeline.perfetto-trace")
        write_bytes(path, base64.b64decode(encoded))
        trace = perfetto_reader.Trace(path)
        self.assertEqual(trace.unbalanced(), set())
        want, chrome = [], []
        for lane in data["lanes"]:
            t = int(data["begin_ns"])
            for step, length, name in zip(lane["start"], lane["duration"], lane["name_id"]):
                t += step
                want.append((lane["group"], data["names"][name], t, t + length))
                chrome.append((lane["group"], data["names"][name], (t - int(data["begin_ns"])) / 1000, length / 1000))
        self.assertEqual(sorted((s[0], s[2], s[3], s[4]) for s in trace.slices()), sorted(want))
        flows = sorted(flow for s in trace.slices() for flow in s[6])
        self.assertEqual(flows, sorted(2 * list(range(1, len(data["flows"]) + 1))))
        values = [(timestamp, value) for _, track, kind, timestamp, value in trace.events if kind == "counter" and "AI Core Freq" in track]
        self.assertEqual([value for _, value in values], [1800 - i for i in range(50)])
        events = json.loads(self.browser.run("return profd.chromeTrace(profd.data.ranks[0].timeline_data)"))["traceEvents"]
        self.assertEqual(sorted((e["pid"], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"), sorted(chrome))
        self.assert_quiet()

    def test_many_slices(self):
        """Ten million slices are panned; how fast is printed, and decides nothing."""
        self.open("run", "timeline")
        self.browser.run("""
            const count = 1000000;
            const lanes = Array.from({length: 10}, (_, lane) => ({group: 'Ascend Hardware', name: 'Stream ' + lane, start: new Array(count).fill(1000),
              duration: new Array(count).fill(900), name_id: new Array(count).fill(lane)}));
            const data = {begin_ns: '0', span_ns: count * 1000, names: lanes.map((lane) => lane.name), lanes: lanes, counters: [], flows: []};
            const canvas = document.querySelector('canvas');
            window.many = new profd.Timeline(data, canvas, () => {});
            many.show(0, count * 1000 / 3);
            window.drawn = {frames: 0, rectangles: 0, ms: 0};
            const begin = performance.now();
            const step = () => {
              many.pan(0.01);
              many.draw();
              ++drawn.frames;
              drawn.rectangles = Math.max(drawn.rectangles, many.rectangles);
              drawn.ms = performance.now() - begin;
              if (drawn.ms < 2000) requestAnimationFrame(step);
            };
            step();""")
        drawn = eventually(lambda: next((drawn for drawn in [self.browser.run("return drawn")] if drawn["ms"] >= 2000), None),
                           what="two seconds of frames")
        print(f"10,000,000 slices: {drawn['frames'] / drawn['ms'] * 1000:.0f} frames/s, {drawn['rectangles']} rectangles a frame")
        # What a frame draws depends on the pixels, not on the slices.
        self.assertLess(drawn["rectangles"], 10 * 1400)
        self.assertGreater(drawn["frames"], 0)

    def test_phone_and_dark(self):
        self.browser.call("POST", f"/session/{self.browser.session}/window/rect", {"width": 500, "height": 800})
        try:
            self.open("run")
            # Chromium's window has a least width: the page is put into a narrower frame.
            for page in PAGES:
                self.go(f"#/{page}")
                self.browser.run("document.body.style.width = '360px'")
                wide = self.browser.run("""return Array.from(document.querySelectorAll('main section, main h2, nav, header')).filter(
                    (each) => each.getBoundingClientRect().right > 361).map((each) => each.tagName + ' ' + each.className)""")
                self.assertEqual(wide, [], page)
            self.browser.run("document.getElementById('theme').click()")
            back = self.browser.run("return getComputedStyle(document.body).backgroundColor")
            self.browser.run("document.getElementById('theme').click()")
            self.assertNotEqual(back, self.browser.run("return getComputedStyle(document.body).backgroundColor"))
        finally:
            self.browser.call("POST", f"/session/{self.browser.session}/window/rect", {"width": 1400, "height": 900})

    def test_command(self):
        out = os.path.join(self.folder, "again.html")
        for code, flags in ((0, ()), (3, ()), (0, ("--force",))):
            profctl("report", os.path.join(self.folder, "run"), "-o", out, *flags, expect=code)
        for flags in ((), ("--force",)):
            done = profctl("report", os.path.join(self.folder, "run"), "-o", self.folder, *flags, expect=3)
            self.assertIn(f"{self.folder} is a directory; name a file", done.stderr)
        # Root could replace /dev/null.
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        os.symlink(pipe, pipe + "_link")
        for path in (pipe, pipe + "_link"):
            done = profctl("report", os.path.join(self.folder, "run"), "-o", path, "--force", expect=3)
            self.assertIn(f"{path} is not a regular file; name another one", done.stderr)
        self.assertEqual([name for name in os.listdir(self.folder) if "unfinished" in name], [])
        done = profctl("report", self.folder, "--slices", "0", expect=2)
        self.assertIn("--slices", done.stderr)


if __name__ == "__main__":
    main()
