"""Runs of a few events and rows for the tests of profctl advise, and what it finds in them."""

import json
import os
import re

from analysis_case import AnalysisCase
from profd_harness import profctl

BEGIN = 1736408883000000
CHINESE = re.compile("[\u4e00-\u9fff]")


def advise(*args, code=0):
    return json.loads(profctl("advise", "--json", *args, expect=code).stdout)


def found(*args):
    return {finding["check"]: finding for finding in advise(*args)["findings"]}


def x(name, start, length, pid=1, **more):
    return {"ph": "X", "name": name, "pid": pid, "tid": 7, "ts": BEGIN + start, "dur": length, **more}


class AdviseCase(AnalysisCase):
    def run_of(self, events, rank=0, name="run", **files):
        """A rank's output of these events, and files by name."""
        folder = f"r{rank}_ascend_pt"
        names = {1: "Python", 2: "CANN", 5: "Overlap Analysis"}
        head = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": text}} for pid, text in names.items()]
        self.write(name, folder, f"profiler_info_{rank}.json", text="{}")
        self.write(name, folder, "ASCEND_PROFILER_OUTPUT", "trace_view.json", text=json.dumps(head + events))
        for file, text in files.items():
            self.write(name, folder, "ASCEND_PROFILER_OUTPUT", file.replace("__", "."), text=text)
        return os.path.join(self.folder, name)

    def device(self, name, cube, vector, mhz=1800):
        self.write(name, "r0_ascend_pt", "PROF_1", "device_0", "info.json.0",
                   text=json.dumps({"DeviceInfo": [{"ai_core_num": cube, "aiv_num": vector, "aic_frequency": str(mhz)}]}))

    def kernels(self, *rows):
        """kernel_details.csv of (name, type, core, us, vec ratio, state, input types)."""
        text = ["Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Input Data Types,aiv_vec_ratio,aic_mac_ratio"]
        for i, (name, kind, core, us, ratio, state, types) in enumerate(rows):
            text.append(f"{name},{kind},{state},{core},{BEGIN + i * 10**6},{us},{types},{ratio},0")
        return "\n".join(text) + "\n"

    def collectives(self, *ops):
        """communication.json of (name, elapsed ms, {transport: (MB, ms)}, start)."""
        return json.dumps({"step1": {"collective": {f"{name}@9": {
            "Communication Time Info": {"Start Timestamp(us)": BEGIN + start, "Elapse Time(ms)": elapsed},
            "Communication Bandwidth Info": {of: {"Transit Size(MB)": mb, "Transit Time(ms)": ms, "Size Distribution": {}} for of, (mb, ms) in parts.items()}}
            for name, elapsed, parts, start in ops}}})

    def assert_limit(self, check, below, above, priority, cost=None, rows=None):
        self.assertNotIn(check, found(below))
        got = found(above)[check]
        self.assertEqual(got["priority"], priority)
        if cost is not None:
            self.assert_close(got["cost_ms"], cost, check)
        if rows is not None:
            self.assertEqual(len(got["table"]["rows"]), rows)
        for row in got["table"]["rows"]:
            self.assertEqual(len(row), len(got["table"]["columns"]))
        self.assertTrue(got["title"] and got["evidence"] and got["advice"])
        self.assert_translated(got, found(above, "--language", "zh")[check])
        return got

    def assert_translated(self, english, chinese):
        """Each text is there in Chinese, with the same numbers."""
        numbers = lambda text: sorted(re.findall(r"\d+(?:\.\d+)?", text))
        self.assertEqual(len(english["advice"]), len(chinese["advice"]))
        for a, b in ((english["title"], chinese["title"]), (english["evidence"], chinese["evidence"]), *zip(english["advice"], chinese["advice"])):
            self.assertRegex(b, CHINESE)
            self.assertNotRegex(a, CHINESE)
        self.assertEqual(numbers(english["evidence"]), numbers(chinese["evidence"]))
