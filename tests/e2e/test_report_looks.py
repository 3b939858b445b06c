#!/usr/bin/env python3
"""The page of profctl report in a real Chromium: what stands within its frame, on paper, and in which colours."""

import csv
import io
import json
import os
import re

from profd_harness import eventually, main
from report_page import PageCase
from text_files import put

BEGIN_US = 1736408883000000
LONG = "domain" * 200


def write_late_collective(output):
    """A step of 1 ms, in which a collective begins that takes 20 ms; marks of two domains, one with a long name."""
    put(output, "kernel_details.csv", f"Name,Type,Accelerator Core,Start Time(us),Duration(us)\nk,Mul,AI_CORE,{BEGIN_US + 100},500\n")
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "Python"}},
              {"ph": "X", "name": "ProfilerStep#1", "pid": 1, "tid": 7, "ts": BEGIN_US, "dur": 1000}]
    events += [{"ph": "X", "name": "mark", "pid": 6, "tid": 9, "ts": BEGIN_US + i, "dur": 50, "args": {"event_type": "start/end", "domain": domain}}
               for i, domain in enumerate((LONG, "b"))]
    put(output, "trace_view.json", json.dumps(events))
    info = {"Communication Time Info": {"Start Timestamp(us)": BEGIN_US + 500, "Elapse Time(ms)": 20, "Transit Time(ms)": 20, "Wait Time(ms)": 0},
            "Communication Bandwidth Info": {}}
    put(output, "communication.json", json.dumps({"step1": {"collective": {"hcom_allReduce__1_0_1@9": info}}}))


def luminance(color):
    """Of #rrggbb or rgb(r, g, b)."""
    parts = [int(color[i:i + 2], 16) for i in (1, 3, 5)] if color[0] == "#" else [int(part) for part in re.findall(r"\d+", color)]
    linear = [part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class Looks(PageCase):
    @classmethod
    def make_pages(cls):
        for rank in (0, 1):
            folder = os.path.join(cls.folder, "run", f"r{rank}_ascend_pt")
            write_late_collective(os.path.join(folder, "ASCEND_PROFILER_OUTPUT"))
            put(folder, f"profiler_info_{rank}.json", "{}")
        cls.report("run")

    def test_what_is_long_stays_within_the_page(self):
        for page in ("overview", "steps", "marks"):
            with self.subTest(page=page):
                self.open("run", page)
                width = self.browser.run("return [document.documentElement.scrollWidth, innerWidth]")
                self.assertLessEqual(width[0], width[1])

    def media(self, name):
        self.browser.call("POST", f"/session/{self.browser.session}/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"media": name}})

    def test_what_paper_shows(self):
        """Headings of tables, all columns, and bars in their colours, which browsers leave out otherwise."""
        self.open("run", "operators")
        self.media("print")
        try:
            shown = self.browser.run("""const height = (each) => each.getBoundingClientRect().height;
                return {headings: [...document.querySelectorAll('th button')].map(height), navigation: height(document.getElementById('nav')),
                    scrolled: getComputedStyle(document.querySelector('.scroll')).overflowX, colors: getComputedStyle(document.body).printColorAdjust}""")
        finally:
            self.media("")
        self.assertGreater(min(shown["headings"]), 0)
        self.assertEqual([shown["navigation"], shown["scrolled"], shown["colors"]], [0, "visible", "exact"])

    def test_paper_is_light(self):
        """However dark the page is: what is printed is drawn with dark ink, and the page is dark again afterwards."""
        drawn = """return [document.documentElement.dataset.theme, profd.charts.map((chart) => [chart.legend.options.labels.color,
            ...Object.values(chart.scales).flatMap((scale) => [scale.options.ticks.color, scale.options.title.color, scale.options.grid.color])]),
            getComputedStyle(document.querySelector('dt')).color]"""
        self.open("run", "steps")
        eventually(lambda: self.browser.run("return profd.charts.length === 1"), what="the graph is there")
        light = self.browser.run(drawn)[1:]
        self.browser.run("document.documentElement.dataset.theme = 'dark'; profd.redraw()")
        dark = self.browser.run(drawn)
        for a, b in zip(dark[1][0] + [dark[2]], light[0][0] + [light[1]], strict=True):
            self.assertNotEqual(a, b)
        self.browser.run("window.dispatchEvent(new Event('beforeprint'))")
        self.assertEqual(self.browser.run(drawn)[1:], light)
        self.browser.run("window.dispatchEvent(new Event('afterprint'))")
        self.assertEqual(self.browser.run(drawn), dark)

    def test_texts_can_be_read_on_their_colours(self):
        """With a contrast of 4.5, as WCAG 2 (1.4.3) asks of small texts."""
        self.open("run", "overview")
        pairs = self.browser.run("""const links = Array.from({length: 21}, (_, i) => ({src: '0', dst: String(i), transport: 'HCCS', bandwidth_gb_s: i}));
            const cells = [...profd.heat(links, 'g').querySelectorAll('td')];
            document.querySelector('main').append(...cells);
            return [...profd.colors, ...Object.values(profd.priorityColors)].map((color) => [color, profd.inkOn(color)]).concat(
              cells.map((cell) => [getComputedStyle(cell).backgroundColor, getComputedStyle(cell).color]))""")
        self.assertEqual(len(pairs), 20 + 4 + 21)
        for pair in pairs:
            darker, lighter = sorted(map(luminance, pair))
            self.assertGreaterEqual((lighter + 0.05) / (darker + 0.05), 4.5, pair)

    def test_numbers_in_texts_are_sorted_as_numbers(self):
        self.open("run", "overview")
        for clicks, want in ((1, ["node10", "node2", "node1", "Add"]), (2, ["Add", "node1", "node2", "node10"])):
            shown = self.browser.run("const table = profd.table([{name: 'x', value: (row) => row}], ['node10', 'node1', 'Add', 'node2'], "
                                     "{filters: [{name: 'x', value: (row) => row}]}); "
                                     f"document.querySelector('main').append(table); for (let i = 0; i < {clicks}; ++i) table.querySelector('th button').click(); "
                                     "return [table.querySelectorAll('td'), table.querySelectorAll('option')].map((each) => [...each].map((one) => one.textContent))")
            self.assertEqual(shown, [want, ["x: all", "Add", "node1", "node2", "node10"]])

    def test_a_saved_table_has_the_cells_it_shows(self):
        """For a spreadsheet: quoted as in RFC 4180, and a text is no formula."""
        self.open("run")
        cells = ["a,b", 'q"uote', "line\nend", "carriage\rreturn", "", "=1+1", "-x", -5]
        saved = self.browser.run(f"return profd.csv([{{name: 'x', unit: 'ms', value: (row) => row}}, {{name: 'y', value: () => null}}], {json.dumps(cells)})")
        rows = list(csv.reader(io.StringIO(saved, newline=""), strict=True))
        self.assertEqual(rows, [["x (ms)", "y"]] + [[cell, ""] for cell in cells[:5] + ["'=1+1", "'-x", "-5"]])

    def test_outliers_that_are_not_listed_are_counted(self):
        self.open("run")
        self.browser.run("""profd.data.ranks[0].step_distribution =
              {min_ms: 1, p50_ms: 1, mean_ms: 1, p99_ms: 1, max_ms: 1, stddev_ms: 0, outliers: Array.from({length: 1060}, (_, i) => i)};
            location.hash = '#/steps';""")
        listed = "return [...document.querySelectorAll('main p')].map((each) => each.innerText).find((each) => each.startsWith('Outliers'))"
        shown = eventually(lambda: self.browser.run(listed), what="the page of steps")
        self.assertTrue(shown.startswith("Outliers: 0 1 2 ") and shown.endswith(" 49 and 1,010 more; profctl analyze --json has all"), shown)

    def test_the_keyboard_turns_pages(self):
        self.open("run", "overview")
        self.browser.run("""const rows = Array.from({length: 40}, (_, i) => i);
            document.querySelector('main').append(profd.table([{name: 'x', value: (row) => row, number: true}], rows, {size: 15}));
            [...document.querySelectorAll('.paging button')].find((each) => each.innerText === 'Next').focus()""")
        pressed = "document.activeElement.click(); return [document.activeElement.innerText, document.activeElement.parentElement.innerText.match(/page \\d/)[0]]"
        for want in (["Next", "page 2"], ["Back", "page 3"], ["Back", "page 2"], ["Next", "page 1"]):
            self.assertEqual(self.browser.run(pressed), want)
        looks = self.browser.run("return [...document.activeElement.parentElement.querySelectorAll('button')].map((each) => getComputedStyle(each).opacity)")
        self.assertEqual(looks, ["0.5", "1"])

    def test_the_link_to_the_content_stays_on_the_page(self):
        self.open("run", "operators")
        self.browser.run("document.querySelector('.skip').click()")
        # A change of the address would be heard of before this answers.
        where = self.browser.run("return new Promise((done) => setTimeout(() => done([location.hash, document.querySelector('main h2').innerText, document.activeElement.id])))")
        self.assertEqual(where, ["#/operators", "Operators", "content"])

    def test_the_focus_stays_on_what_chooses(self):
        for field, value, address in (("rank", "1", "#/steps?rank=1"), ("step", "1", "#/steps?step=1")):
            with self.subTest(field=field):
                self.open("run", "steps")
                self.browser.run(f"""const field = document.getElementById('{field}');
                    field.focus();
                    field.value = '{value}';
                    window.before = document.querySelector('main h2');
                    field.dispatchEvent(new Event('change'));""")
                eventually(lambda: self.browser.run("return !before.isConnected && document.querySelector('main h2') !== null"), what="the page is made anew")
                self.assertEqual(self.browser.run("return [location.hash, document.activeElement.id, document.activeElement.value]"), [address, field, value])

    def test_devices_of_several_nodes_have_names(self):
        self.open("run", "overview")
        ranks = [{"rank": 7, "device": 7, "host": "a"}, {"rank": None, "device": 0, "host": "a"}, {"rank": None, "device": 0, "host": "b"},
                 {"rank": None, "device": None, "host": None}]
        self.assertEqual(self.browser.run(f"return {json.dumps(ranks)}.map(profd.rankName)"), ["7", "device 0, a", "device 0, b", "unknown"])


if __name__ == "__main__":
    main()
