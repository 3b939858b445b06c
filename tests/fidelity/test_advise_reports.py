"""The reports of profctl advise: workbook, languages, JSON by its schema, the form for editors, findings of one cause."""

import ast
import base64
import gzip
import json
import os
import re
import signal
import subprocess

import run_tests
from advise_case import BEGIN, AdviseCase, advise, found, x
from json_schema import errors
from profd_harness import PROFCTL, REPO, RUNNER, profctl, scaled
from text_files import read_json, read_text
from xlsx_reader import Workbook

CHINESE = re.compile("[\u4e00-\u9fff]")
STACK = "/usr/lib/python3/site-packages/torch/nn/functional.py(12): gelu;\r\n/job/my model.py(7): forward;\r\ntrain.py(40): main;"


class Reports(AdviseCase):
    def rich(self, name="run"):
        """A run with findings of every dimension of one rank, with tables, stacks and text that looks like a formula."""
        events = [x("ProfilerStep#1", 0, 1_000_000), x("Computing", 0, 400_000, pid=5), x("Free", 400_000, 500_000, pid=5)]
        events += [x("GC", 10_000 * i, 5000 + i, cat="GC") for i in range(30)]
        events += [x("aten::gelu", 50 * i, 20, args={"Call stack": STACK}) for i in range(3)]
        events += [x("AscendCL@aclrtFree", 500_000, 60_000, pid=2), x("enumerate(DataLoader)#x", 600_000, 20_000)]
        rows = self.kernels(("=1+1", "Index", "AI_CPU", 5000, 0, "dynamic", "DOUBLE"), ("a,b", "Mul", "AI_VECTOR_CORE", 100, 0.9, "dynamic", "F"))
        ops = self.collectives(("hcom_a__1_1_1", 5, {"SDMA": (1, 2.5)}, 0))
        self.write(name, "r0_ascend_pt", "profiler_metadata.json", text=json.dumps({"ENV_VARIABLES": {"ASCEND_LAUNCH_BLOCKING": "1"}}))
        return self.run_of(events, name=name, kernel_details__csv=rows, communication__json=ops)

    def report(self, run, *flags):
        out = os.path.join(self.folder, "out" + "".join(flags).replace("-", ""))
        return advise(run, "-o", out, *flags), out

    def assert_same(self, cell, value):
        """A number of a workbook has 16 digits."""
        if isinstance(value, float):
            self.assertAlmostEqual(cell, value, delta=abs(value) * 1e-14)
        else:
            self.assertEqual(cell, value)

    def test_workbook(self):
        got, out = self.report(self.rich())
        book = Workbook(os.path.join(out, "advice.xlsx"))
        findings = {finding["check"]: finding for finding in got["findings"]}
        problems = book.sheets[0]
        self.assertEqual(problems.name, "problems")
        self.assertEqual(problems.rows[0][:5], ["category", "description", "suggestion", "problem count", "cost (ms per step)"])
        self.assertEqual(len(problems.rows), 1 + len(got["findings"]))
        for row, finding in zip(problems.rows[1:], got["findings"]):
            self.assertEqual(row[0], finding["dimension"])
            self.assertEqual(row[1], finding["title"] + "\n" + finding["evidence"])
            self.assertEqual(row[2], "\n".join(finding["advice"]) or None)
            self.assertEqual(row[3], max(1, len(finding["table"]["rows"])))
            self.assert_same(row[4], finding["cost_ms"])
        names = {"gc": "GC Analysis", "aicpu": "AICPU Issues", "memory": "Memory Operator Issues", "packet": "Packet Analysis",
                 "environment": "Environment Variable Issues", "affinity_api": "Affinity API Issues", "overall_summary": "Overall Summary"}
        for check, name in names.items():
            sheet, table = book[name], findings[check]["table"]
            self.assertEqual(sheet.rows[0], [column.replace("_", " ") for column in table["columns"]])
            want = [["\n".join(cell.splitlines()) if isinstance(cell, str) else cell for cell in row] for row in table["rows"]]
            short = lambda row: row[:max((i for i, cell in enumerate(row) if cell is not None), default=-1) + 1]
            self.assertEqual(len(sheet.rows), 1 + len(want), name)  # all 30 collections, not ten
            for row, wanted in zip(sheet.rows[1:], want):
                self.assertEqual(len(short(row)), len(short(wanted)), name)
                for mine, value in zip(row, wanted):
                    self.assert_same(mine, value)
        self.assertEqual(len(book["GC Analysis"].rows), 31)
        sheets_with_rows = [finding for finding in got["findings"] if finding["table"]["rows"]]
        self.assertEqual(len(book.sheets), 1 + len(sheets_with_rows))
        for sheet in book.sheets:
            self.assertLessEqual(len(sheet.name), 31)
            self.assertEqual(sheet.formulas, [])  # "=1+1" is a name
            self.assertEqual(sheet.frozen, ("frozen", "1"))
            last = chr(ord("A") + len(sheet.rows[0]) - 1)
            self.assertEqual(sheet.filter, f"A1:{last}{len(sheet.rows)}")
            fill, font = sheet.formats[0][0][1:]
            self.assertEqual(book.fills[fill], ["FF187498"])
            self.assertEqual(book.fonts[font], ("Arial", True))
            self.assertEqual(set(sheet.widths), set(range(len(sheet.rows[0]))))
        self.assertIn("=1+1", [row[1] for row in book["AICPU Issues"].rows])
        self.assertGreater(book["GC Analysis"].widths[1], len("duration us"))
        self.assertEqual([kind[0] for kind in book["GC Analysis"].formats[1]], ["#,##0.000", "#,##0.000"])
        summary = book["Overall Summary"]
        self.assertIn(summary.formats[1][2][0], (10, "0.00%"))

    def test_costs_of_runs_without_steps_are_of_all_that_was_recorded(self):
        events = [x("GC", 10_000 * i, 3000, cat="GC") for i in range(3)]
        steps = [x(f"ProfilerStep#{i}", 20_000 * i, 20_000) for i in range(2)]
        for name, more, of, cost, column, words in (("bare", [], "run", 9, "cost (ms in all)", "(9.000 ms in all)"),
                                                    ("steps", steps, "step", 4.5, "cost (ms per step)", "(4.500 ms per step)")):
            run = self.run_of(events + more, name=name)
            got, out = self.report(run, "--force")
            [finding] = got["findings"]
            self.assertEqual((finding["cost_of"], finding["cost_ms"]), (of, cost))
            problems = Workbook(os.path.join(out, "advice.xlsx")).sheets[0]
            self.assertEqual((problems.rows[0][4], problems.rows[1][4]), (column, cost))
            [result] = read_json(out, "advice.sarif")["runs"][0]["results"]
            self.assertIn(words, result["message"]["text"])
            self.assertEqual(result["properties"]["cost_of"], of)
            chinese = json.loads(profctl("advise", run, "--format", "sarif", "--language", "zh").stdout)
            self.assertIn("毫秒（全程）" if of == "run" else "毫秒/step", chinese["runs"][0]["results"][0]["message"]["text"])

    def test_values_too_long_for_a_cell(self):
        name = "n" * 40_000
        run = self.run_of([], kernel_details__csv=self.kernels((name, "Index", "AI_CPU", 5000, 0, "static", "F")))
        _, out = self.report(run)
        book = Workbook(os.path.join(out, "advice.xlsx"))
        cell = book["AICPU Issues"].rows[1][1]
        self.assertEqual(len(cell), 32_767)
        self.assertTrue(cell.startswith("nnn") and cell.endswith("(cut; 40000 characters)"))
        self.assertIn("40000 characters is cut to 32767", book["notices"].rows[1][0])
        self.assertIn(name, read_text(out, "advice.json"))

    def test_files(self):
        run = self.rich()
        _, out = self.report(run)
        self.assertEqual(sorted(os.listdir(out)), ["advice.html", "advice.json", "advice.sarif", "advice.xlsx"])
        os.unlink(os.path.join(out, "advice.json"))
        os.unlink(os.path.join(out, "advice.sarif"))
        self.assertIn("advice.xlsx is there already", advise(run, "-o", out, code=3)["error"]["message"])
        advise(run, "-o", out, "--force")
        self.assertEqual(len(os.listdir(out)), 4)

    def test_an_interrupt_behind_the_reading_ends_the_command(self):
        """Where its output is waited for, all has been read."""
        rows = self.kernels(*((f"k{i}", "Index", "AI_CPU", 5000, 0, "dynamic", "F") for i in range(2000)))
        run = self.run_of([x("ProfilerStep#1", 0, 1_000_000)], kernel_details__csv=rows)
        for command in ("analyze", "advise"):
            with subprocess.Popen([*RUNNER, PROFCTL, command, run, "--json"], stdout=subprocess.PIPE) as process:
                self.assertEqual(process.stdout.read(1), b"{")  # the rest does not fit into a pipe
                process.send_signal(signal.SIGINT)
                try:
                    self.assertEqual(process.wait(timeout=scaled(60)), -signal.SIGINT, command)
                finally:
                    process.kill()

    def test_schema(self):
        schema = read_json(REPO, "docs", "advice.schema.json")
        other = self.rich("other")
        for arguments in ((self.rich(),), (self.rich(), "--language", "zh"), (self.rich(), "--baseline", other), (self.run_of([], name="little"),)):
            got = advise(*arguments)
            self.assertEqual(errors(got, schema), [])
            for finding in got["findings"]:
                self.assertTrue(all(len(row) == len(finding["table"]["columns"]) for row in finding["table"]["rows"]))
        self.assertIn("$.findings[0]: no check", errors({"version": 1, "language": "en", "run": {"name": "", "inputs": [], "ranks": 1}, "findings": [{}], "problems": []}, schema))
        listed = {check["check"] for check in advise("--list")["checks"]}
        self.assertTrue(all(re.search(schema["properties"]["findings"]["items"]["properties"]["check"]["pattern"], check) for check in listed))

    def test_live_advice_takes_no_options_of_runs(self):
        """They would be ignored: it is in English, and --json is what prints JSON."""
        for option, value in (("--format", "sarif"), ("--language", "zh"), ("--from", "clickhouse://localhost/runs"), ("--run", "a"), ("--ranks", "0"), ("--limits", "limits.toml")):
            error = profctl("--socket", os.path.join(self.folder, "none.sock"), "advise", "--live", option, value, expect=2).stderr
            self.assertRegex(error, f"--live excludes {option}|{option} excludes --live")

    def test_chinese(self):
        run = self.rich()
        english, (chinese, out) = advise(run), self.report(run, "--language", "zh")
        self.assertEqual(chinese["language"], "zh")
        for a, b in zip(english["findings"], chinese["findings"]):
            for same in ("check", "dimension", "priority", "rank", "cost_ms", "code", "places", "at_ns"):
                self.assertEqual(a[same], b[same])
            self.assertEqual(a["table"]["columns"], b["table"]["columns"])
            self.assert_translated(a, b)
        environment = next(finding for finding in chinese["findings"] if finding["check"] == "environment")
        self.assertTrue(all(CHINESE.search(cell) for cell in environment["table"]["rows"][0][2:]))
        book = Workbook(os.path.join(out, "advice.xlsx"))
        self.assertEqual(book.sheets[0].name, "问题综述")
        self.assertIn("垃圾回收分析", [sheet.name for sheet in book.sheets])
        text = profctl("advise", run, "--language", "zh").stdout
        self.assertIn("Python 垃圾回收有 30 次", text)
        self.assertIn("--language", advise(run, "--language", "fr", code=2)["error"]["message"])

    def test_places(self):
        """Of a call stack the innermost frame that is the user's own."""
        place = found(self.rich())["affinity_api"]["places"][0]
        self.assertEqual((place["file"], place["line"], place["function"]), ("/job/my model.py", 7, "forward"))
        self.assertEqual([frame["line"] for frame in place["stack"]], [12, 7, 40])
        events = [x("aten::add", 0, 9000, args={"Call stack": "a.py(1): f; b.py(2): g"}), x("aten::mul", 900, 100, args={"Call stack": "c.py(3): h"}),
                  x("GC", 950, 2000, cat="GC"), x("aten::div", 20_000, 10, args={"Call stack": "d.py(4): i"})]
        self.assertEqual([each["file"] for each in found(self.run_of(events, name="around"))["gc"]["places"]], ["c.py"])
        launched = [x("aten::index", 0, 100, args={"Call stack": "e.py(5): j"}), {"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": {"name": "Ascend Hardware"}},
                    x("k", 1000, 50, pid=3, args={"Task Type": "AI_CPU"}), {"ph": "s", "id": "1", "name": "async_npu", "cat": "async_npu", "pid": 1, "tid": 7, "ts": BEGIN},
                    {"ph": "f", "id": "1", "name": "async_npu", "cat": "async_npu", "pid": 3, "tid": 7, "ts": BEGIN + 1000}]
        self.assertEqual([(each["file"], each["line"]) for each in found(self.run_of(launched, name="launched"))["aicpu"]["places"]], [("e.py", 5)])
        odd = self.run_of([x("aten::gelu", 0, 10, args={"Call stack": "no frame;(3): x;y.py(z): w;;" + "q(" * 100})], name="odd")
        self.assertEqual(found(odd)["affinity_api"]["places"], [])

    def test_sarif(self):
        run = self.rich()
        got, out = self.report(run)
        printed = profctl("advise", run, "--format", "sarif").stdout
        self.assertEqual(read_json(out, "advice.sarif"), json.loads(printed))
        sarif = json.loads(printed)
        self.assertEqual((sarif["version"], len(sarif["runs"])), ("2.1.0", 1))
        results, rules = sarif["runs"][0]["results"], sarif["runs"][0]["tool"]["driver"]["rules"]
        self.assertEqual([rule["id"] for rule in rules], [check["check"] for check in advise("--list")["checks"]])
        # Descriptions of checks are in the report's language, as in --list.
        for rule, check in zip(json.loads(profctl("advise", run, "--format", "sarif", "--language", "zh").stdout)["runs"][0]["tool"]["driver"]["rules"], advise("--list", "--language", "zh")["checks"]):
            self.assertEqual(rule["shortDescription"]["text"], check["what"])
            self.assertRegex(check["what"], "[\u4e00-\u9fff]")
        levels = {"high": "error", "medium": "warning", "low": "note", "info": "none"}
        for finding in got["findings"]:
            own = [result for result in results if result["ruleId"] == finding["check"]]
            self.assertEqual(len(own), max(1, len(finding["places"])))
            for result in own:
                self.assertEqual(rules[result["ruleIndex"]]["id"], finding["check"])
                self.assertEqual(result["level"], levels[finding["priority"]])
                self.assertEqual(result["kind"] == "informational", finding["priority"] == "info")
                self.assertIn(finding["evidence"], result["message"]["text"])
                self.assertEqual("locations" in result, bool(finding["places"]))
        place = next(result for result in results if result["ruleId"] == "affinity_api")
        location = place["locations"][0]
        self.assertEqual(location["physicalLocation"], {"artifactLocation": {"uri": "file:///job/my%20model.py"}, "region": {"startLine": 7}})
        self.assertEqual(location["logicalLocations"][0]["fullyQualifiedName"], "forward")
        self.assertEqual(place["stacks"][0]["frames"][2]["location"]["physicalLocation"]["artifactLocation"]["uri"], "train.py")
        self.assertIn("--format", advise(run, "--format", "xml", code=2)["error"]["message"])

    def test_code(self):
        got = found(self.rich())
        self.assertIn("unset ASCEND_LAUNCH_BLOCKING", got["environment"]["code"])
        self.assertIn("gc.disable()", got["gc"]["code"][0])
        self.assertEqual(got["dynamic_shape"]["code"][0].splitlines()[1:], ["torch_npu.npu.set_compile_mode(jit_compile=False)", "torch_npu.npu.config.allow_internal_format = False"])
        forward = found(self.run_of([x("SyncBatchNorm", i * 1000, 10) for i in range(20)], name="norm"))["sync_batch_norm"]["code"][0]
        for code in (got["gc"]["code"][0], got["dynamic_shape"]["code"][0], forward):
            ast.parse(code)
        names = {node.name for node in ast.walk(ast.parse(forward)) if isinstance(node, ast.FunctionDef)}
        self.assertEqual(names, {"forward"})
        self.assertTrue(forward.endswith("torch.nn.SyncBatchNorm.forward = forward"))

    def test_page(self):
        for language in ("en", "zh"):
            got, out = self.report(self.rich(language), "--language", language)
            page = read_text(out, "advice.html")
            packed = re.search('<script id="profd-data"[^>]*>([^<]*)</script>', page).group(1)
            data = json.loads(gzip.decompress(base64.b64decode(packed)))
            self.assertEqual((data["language"], data["findings"]), (language, got["findings"]))
        script = read_text(REPO, "analysis", "page", "pages_advice.js")
        words = re.findall(r"\{en: '([^']*)', zh: '([^']*)'", script)
        self.assertEqual(len(words), script.count("en: "))
        self.assertTrue(all(english and (CHINESE.search(chinese) or chinese == english) for english, chinese in words))
        order = re.findall("'(overall|comparison|computation|schedule|communication|memory|dataloader)'", script[script.index("adviceModules = "):script.index("adviceWords = ")])
        self.assertEqual(order, ["overall", "comparison", "computation", "schedule", "communication", "memory", "dataloader"])
        for color in ("#B5495B", "#fcaf17", "#65c294"):
            self.assertIn(color, script)

    def test_one_cause(self):
        compiled = [x("ProfilerStep#1", 0, 100_000)] + [x("AscendCL@aclopCompileAndExecute", i * 1000, 100, pid=2) for i in range(20)]
        rows = lambda state: self.kernels(("a", "Mul", "AI_VECTOR_CORE", 5, 0.9, state, "F"))
        got = found(self.run_of(compiled, kernel_details__csv=rows("dynamic")))
        self.assertNotIn("dynamic_shape", got)
        self.assertEqual([each["check"] for each in got["operator_dispatch"]["merged"]], ["dynamic_shape"])
        self.assertEqual(len(got["operator_dispatch"]["advice"]), 1)  # both say the same
        self.assertEqual(found(self.run_of(compiled, name="static", kernel_details__csv=rows("static")))["operator_dispatch"]["merged"], [])
        # A gap without calls is not garbage where the host waited for a CPU.
        gap = [x("Computing", 0, 100_000, pid=5), x("Free", 100_000, 300_000, pid=5), x("AscendCL@other", 10**7, 5, pid=2)]
        waits = lambda value: [{"ph": "C", "name": "atlas_host_pressure_waiting_seconds_total resource=cpu", "pid": 9, "tid": 0, "ts": BEGIN + i * 10_000,
                                "args": {"value": value}} for i in range(41)]
        got = found(self.run_of(gap + waits(0.5), name="waits"))
        self.assertNotIn("conjectured_gc", got)
        self.assertEqual([each["check"] for each in got["host_cpu"]["merged"]], ["conjectured_gc"])
        self.assertIn("conjectured_gc", found(self.run_of(gap + waits(0.1), name="little")))


if __name__ == "__main__":
    run_tests.main()
