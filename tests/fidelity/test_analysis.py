"""profctl analyze, number by number: outputs of PyTorch's profiler that are written here, with what must come out computed
from the plan they are written from (analysis 2)."""

import glob
import json
import math
import os
import random
import shutil
import sqlite3
import struct

import make_operators
import run_tests
from analysis_case import AnalysisCase, analyze
from profd_harness import profctl

BEGIN_NS = 1736408883000000000


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03d}"


def union(intervals):
    total, end = 0, None
    for a, b in sorted(intervals):
        a = a if end is None else max(a, end)
        total += max(0, b - a)
        end = b if end is None else max(end, b)
    return total


class TextCase(AnalysisCase):
    """ASCEND_PROFILER_OUTPUT of two ranks."""

    def plan(self, seed):
        rng = random.Random(seed)
        kernels, t = [], BEGIN_NS + rng.randrange(10**6)
        for i in range(200):
            length = rng.randrange(1, 400_000)
            kernels.append({"name": f"op_{i % 17}", "type": f"Type{i % 5}", "core": ("AI_CORE", "AI_VECTOR_CORE")[i % 5 % 2],
                            "start": t, "end": t + length, "stream": 3 + i % 2, "shape": f"{i % 17},8",
                            "ratio": rng.randrange(1000) / 1000})
            t += rng.randrange(length // 2, length + 300_000)
        collectives, at = [], BEGIN_NS + 2_000_000
        for i in range(9):
            length = rng.randrange(10_000, 3_000_000)
            parts = [rng.randrange(1, 10**6) / 1e6 for _ in range(3)]
            collectives.append({"name": f"hcom_allReduce__586_{i}_1", "start": at, "end": at + length, "parts": parts,
                                "mb": rng.randrange(1, 40), "ms": rng.randrange(1, 5000) / 1000, "count": rng.randrange(1, 20)})
            at += length + rng.randrange(1_000_000)
        return kernels, collectives

    def write_rank(self, rank, plan, trace=True):
        kernels, collectives = plan
        place = (f"rank{rank}_ascend_pt", "ASCEND_PROFILER_OUTPUT")
        header = ("Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
                  "Wait Time(us),Block Dim,Input Shapes,Input Data Types,Output Shapes,aic_mac_ratio,aiv_vec_ratio\n")
        rows = [f'1,{rank},7,{i},{k["stream"]},{k["name"]},{k["type"]},dynamic,{k["core"]},{us(k["start"])}\t,'
                f'{us(k["end"] - k["start"])},0,8,"""{k["shape"]}""",FLOAT,"""1""",{k["ratio"]},0\n' for i, k in enumerate(kernels)]
        self.write(*place, "kernel_details.csv", text=header + "".join(rows))
        self.write(f"rank{rank}_ascend_pt", f"profiler_info_{rank}.json", text="{}")
        ops = {}
        for c in collectives:
            transit, wait, synchronization = c["parts"]
            ops[c["name"] + "@17"] = {
                "Communication Time Info": {"Start Timestamp(us)": c["start"] / 1000, "Elapse Time(ms)": (c["end"] - c["start"]) / 1e6,
                                            "Transit Time(ms)": transit, "Wait Time(ms)": wait,
                                            "Synchronization Time(ms)": synchronization, "Idle Time(ms)": 0},
                "Communication Bandwidth Info": {
                    "HCCS": {"Transit Size(MB)": c["mb"], "Transit Time(ms)": c["ms"], "Bandwidth(GB/s)": c["mb"] / c["ms"],
                             "Large Packet Ratio": 0, "Size Distribution": {"1.0": [c["count"], c["ms"]]}},
                    "RDMA": {"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Size Distribution": {}}}}
        ops["Total Op Info"] = {"Communication Time Info": {"Elapse Time(ms)": 1e9}}
        self.write(*place, "communication.json", text=json.dumps({"step1": {"p2p": {}, "collective": ops}}))
        pair = {"Transport Type": "HCCS", "Transit Size(MB)": 30.5, "Transit Time(ms)": 2.0, "Bandwidth(GB/s)": 15.25}
        self.write(*place, "communication_matrix.json", text=json.dumps({"step1": {"p2p": {}, "collective": {
            "allreduce-total@17": {"0-1": pair}, "allreduce-top1@17": {"0-1": pair}}}}))
        self.write(*place, "memory_record.csv", text="Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),"
                   f"Total Active(MB),Stream Ptr,Device Type\nPTA,{us(BEGIN_NS)}\t,10.5,20,10.5,1,NPU:{rank}\n"
                   f"PTA,{us(BEGIN_NS + 5000)}\t,15,20,14,1,NPU:{rank}\nAPP,{us(BEGIN_NS)}\t,,2109.5,,,NPU:{rank}\n")
        self.write(*place, "operator_memory.csv", text="Name,Size(KB),Allocation Time(us),Release Time(us),Duration(us)\n"
                   f"aten::a,512,{us(BEGIN_NS)}\t,{us(BEGIN_NS + 4000)}\t,4\naten::b,1024.5,{us(BEGIN_NS + 1000)}\t,,\n")
        if trace:
            self.write(*place, "trace_view.json", text=json.dumps(self.trace(plan)))

    def trace(self, plan):
        kernels, collectives = plan
        def x(name, pid, tid, start, end, **args):
            return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": us(start), "dur": (end - start) / 1000, "args": args}
        events = []
        for k in kernels:
            events.append(x("Computing", 9, 0, k["start"], k["end"]))
        for c in collectives:
            events.append(x("Communication", 9, 1, c["start"], c["end"]))
        free = (kernels[-1]["end"], kernels[-1]["end"] + 777_000)
        events.append(x("Free", 9, 3, *free))
        events.append(x("ProfilerStep#7", 1, 1, BEGIN_NS, free[1], **{"Call stack": "a;\r\nb", "nested": {"ph": "X", "name": "no"}}))
        events.append(x("Node@launch", 2, 5, kernels[0]["start"] - 500, kernels[0]["start"] - 100))
        events += [{"ph": "s", "cat": "HostToDevice", "id": "1", "name": "f", "pid": 2, "tid": 5, "ts": us(kernels[0]["start"] - 500)},
                   {"ph": "f", "cat": "HostToDevice", "id": "1", "name": "f", "pid": 3, "tid": kernels[0]["stream"],
                    "ts": us(kernels[0]["start"])}]
        events += [{"ph": "C", "name": "AI Core Freq", "pid": 4, "tid": 0, "ts": us(BEGIN_NS + i * 10**7), "args": {"MHz": mhz}}
                   for i, mhz in enumerate((1800, 1600, 800))]
        names = {9: "Overlap Analysis", 1: "Python", 2: "CANN", 3: "Ascend Hardware", 4: "AI Core Freq"}
        events += [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}} for pid, name in names.items()]
        events += [{"ph": "M", "name": "thread_name", "pid": 3, "tid": s, "args": {"name": f"Stream {s}"}} for s in (3, 4)]
        return events

    def assert_rank(self, got, number, plan):
        kernels, collectives = plan
        self.assertEqual((got["rank"], got["device"], got["source"]), (number, number, "PyTorch, text"))
        whole = sum(k["end"] - k["start"] for k in kernels) / 1e6
        for of, key in (("operator_types", ("type", "core")), ("operators", ("name", "type", "core"))):
            want = {}
            for k in kernels:
                want.setdefault(tuple(k[f] for f in key), []).append((k["end"] - k["start"]) / 1e6)
            self.assertEqual([tuple(row[f] for f in key) for row in got[of]],
                             sorted(want, key=lambda name, of=want: -sum(of[name])))
            for row in got[of]:
                times = want[tuple(row[f] for f in key)]
                self.assertEqual(row["count"], len(times))
                for field, value in (("total_ms", sum(times)), ("min_ms", min(times)), ("max_ms", max(times)),
                                     ("mean_ms", sum(times) / len(times)), ("share", sum(times) / whole)):
                    self.assert_close(row[field], value, (of, field))
        for row in got["operators"]:
            mine = [k for k in kernels if k["name"] == row["name"] and k["type"] == row["type"]]
            spent = sum(k["end"] - k["start"] for k in mine)
            ratio = sum(k["ratio"] * (k["end"] - k["start"]) for k in mine) / spent
            self.assert_close(row["ratios"]["aic_mac"], ratio)
            self.assertEqual(row["bound"], None if ratio <= 0 else "mac" if ratio > 0.8 else "none")
            self.assertEqual(row["input_shapes"], mine[0]["shape"])
        self.assertEqual(got["timeline"]["executions"], len(kernels))
        self.assertEqual(got["timeline"]["streams"], 2)
        self.assert_close(got["timeline"]["total_ms"], whole)
        rows = {row["name"]: row for row in got["communication"]}
        self.assertEqual(set(rows), {c["name"] for c in collectives})
        for c in collectives:
            row = rows[c["name"]]
            self.assertEqual((row["group"], row["type"], row["count"]), ("17", "hcom_allReduce_", 1))
            self.assert_close(row["elapse_ms"], (c["end"] - c["start"]) / 1e6)
            self.assertEqual([row["transit_ms"], row["wait_ms"], row["synchronization_ms"]], c["parts"])
            self.assert_close(row["wait_ratio"], c["parts"][1] / (c["parts"][0] + c["parts"][1]))
            [transport] = row["transports"]
            self.assertEqual((transport["transport"], transport["packets"], transport["reference_gb_s"]), ("HCCS", c["count"], 18))
            self.assert_close(transport["bandwidth_gb_s"], c["mb"] / c["ms"])
        [link] = got["links"]
        self.assertEqual((link["src"], link["dst"], link["size_mb"], link["bandwidth_gb_s"]), ("0", "1", 30.5, 15.25))
        memory = {c["component"]: c for c in got["memory"]["components"]}
        self.assertEqual((memory["PTA"]["peak_allocated_mb"], memory["PTA"]["peak_active_mb"], memory["APP"]["peak_reserved_mb"]),
                         (15, 14, 2109.5))
        self.assertIsNone(memory["APP"]["peak_allocated_mb"])
        self.assertEqual(got["memory"]["at_peak"], [{"name": "aten::b", "size_kb": 1024.5}])
        self.assert_close(got["memory"]["fragmentation"], 1 - 15 / 20)

    def assert_kinds(self, got, kernels):
        want = {}
        for k in kernels:
            want.setdefault({"AI_CORE": "ai_core", "AI_VECTOR_CORE": "vector"}[k["core"]], []).append(k)
        self.assertEqual({row["kind"] for row in got["operator_kinds"]}, set(want))
        for row in got["operator_kinds"]:
            mine = want[row["kind"]]
            self.assertEqual((row["count"], row["types"], row["operators"]),
                             (len(mine), len({k["type"] for k in mine}), len({(k["name"], k["type"]) for k in mine})))
            self.assert_close(row["total_ms"], sum(k["end"] - k["start"] for k in mine) / 1e6)
        for row in got["operators"] + got["operator_types"]:
            self.assertEqual(row["kind"], {"AI_CORE": "ai_core", "AI_VECTOR_CORE": "vector"}[row["core"]])

    def assert_roofline(self, got, kernels):
        self.assertGreater(len(got["roofline"]), 10)
        for row in got["roofline"]:
            mine = [k for k in kernels if (k["name"], k["type"]) == (row["name"], row["type"])]
            spent = sum(k["end"] - k["start"] for k in mine)
            ratio = sum(k["ratio"] * (k["end"] - k["start"]) for k in mine) / spent
            self.assertEqual(row["compute"]["unit"], "mac")
            self.assert_close(row["compute"]["of_peak"], ratio)
            self.assertIsNone(row["memory"])
            self.assertEqual(row["limit"], "compute" if ratio > 0.8 else "none")
            self.assert_close(row["at_peak_ms"], spent * ratio / 1e6)

    def test_every_number(self):
        plans = [self.plan(1), self.plan(2)]
        for rank, plan in enumerate(plans):
            self.write_rank(rank, plan)
        got = analyze(self.folder)
        self.assertEqual(got["problems"], [])
        self.assertEqual(len(got["ranks"]), 2)
        for rank, plan in enumerate(plans):
            kernels, collectives = plan
            mine = got["ranks"][rank]
            self.assert_rank(mine, rank, plan)
            overall = mine["overall"]
            computing = sum(k["end"] - k["start"] for k in kernels) / 1e6
            end = max(kernels[-1]["end"] + 777_000, collectives[-1]["end"])
            begin = min(kernels[0]["start"], collectives[0]["start"])
            self.assert_close(overall["computing_ms"], computing)  # as the timeline has it
            self.assert_close(overall["e2e_ms"], (end - begin) / 1e6)
            [step] = mine["steps"]
            self.assertEqual(step["step"], 7)
            self.assert_close(step["total_ms"], (kernels[-1]["end"] + 777_000 - BEGIN_NS) / 1e6)
            # Forward starts with the first operator, backward ends with the last one before the last all-reduce.
            last = max(c["start"] for c in collectives)
            backward = max((k for k in kernels if k["start"] < last), key=lambda k: k["start"])
            self.assert_close(step["iteration_interval_ms"], (kernels[0]["start"] - BEGIN_NS) / 1e6)
            self.assert_close(step["fp_and_bp_ms"], (backward["end"] - kernels[0]["start"]) / 1e6)
            self.assert_close(step["tail_ms"], (kernels[-1]["end"] + 777_000 - backward["end"]) / 1e6)
            self.assertEqual([(r["name"], round(r["duration_ms"] * 1e6)) for r in step["reduces"]],
                             [(f"reduce_{i}", c["end"] - c["start"]) for i, c in enumerate(collectives)])
            self.assertEqual(mine["step_points"], {"fp_start": kernels[0]["name"], "bp_end": backward["name"]})
            self.assert_kinds(mine, kernels)
            self.assert_roofline(mine, kernels)
            [series] = mine["hardware"]
            self.assertEqual((series["name"], series["unit"], series["min"], series["max"]), ("AI Core Freq", "MHz", 800, 1800))

            def held(until):
                """Each clock holds until the next, the last one until the end."""
                return sum(mhz * max(0, (min(until, (i + 1) * 10**7) if i < 2 else until) - i * 10**7) for i, mhz in enumerate((1800, 1600, 800))) / until
            self.assert_close(series["mean"], held(end - BEGIN_NS))
            self.assert_close(series["by_step"][0]["mean"], held(kernels[-1]["end"] + 777_000 - BEGIN_NS))

    def test_without_a_timeline(self):
        """What the device did is then added up from its kernels and collectives."""
        plan = self.plan(3)
        self.write_rank(0, plan, trace=False)
        [got] = analyze(os.path.join(self.folder, "rank0_ascend_pt"))["ranks"]
        self.assert_rank(got, 0, plan)
        kernels, collectives = plan
        computing = union((k["start"], k["end"]) for k in kernels)
        both = union([(k["start"], k["end"]) for k in kernels] + [(c["start"], c["end"]) for c in collectives])
        self.assert_close(got["overall"]["computing_ms"], computing / 1e6)
        self.assertTrue(math.isclose(got["overall"]["uncovered_communication_ms"], (both - computing) / 1e6, abs_tol=2e-3))

    def test_only_some(self):
        self.write_rank(0, self.plan(4))
        got = analyze(self.folder, "--only", "overall,steps")
        self.assertEqual(list(got["ranks"][0]), ["rank", "device", "host", "source", "path", "overall", "steps"])
        error = analyze(self.folder, "--only", "overall,nothing", code=2)["error"]
        self.assertIn('"nothing"', error["message"])
        self.assertIn("operator_types", error["message"])

    def test_damage_costs_itself_only(self):
        self.write_rank(0, self.plan(5))
        output = os.path.join(self.folder, "rank0_ascend_pt", "ASCEND_PROFILER_OUTPUT")
        for name in ("trace_view.json", "communication.json", "kernel_details.csv"):
            with open(os.path.join(output, name), "rb+") as file:
                file.truncate(os.path.getsize(os.path.join(output, name)) * 2 // 3)
        got = analyze(self.folder)
        reported = {os.path.basename(p["where"]) for p in got["problems"]}
        self.assertIn("trace_view.json", reported)
        self.assertIn("communication.json", reported)
        self.assertGreater(got["ranks"][0]["timeline"]["executions"], 100)
        self.assertEqual(got["ranks"][0]["communication"], [])

    def test_rows_of_several_devices(self):
        """Of one output they are one rank, which is said."""
        rows = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Device_id\n" + "".join(f"a,Mul,AI_CORE,{10 * i},5,{device}\n" for i, device in enumerate((0, 1, 0)))
        self.write("r_ascend_pt", "ASCEND_PROFILER_OUTPUT", "kernel_details.csv", text=rows)
        got = analyze(self.folder)
        self.assertEqual([problem["what"] for problem in got["problems"]], ["has rows of the devices 0, 1: they are read as one rank"])
        self.assertEqual([rank["device"] for rank in got["ranks"]], [0])
        self.write("r_ascend_pt", "ASCEND_PROFILER_OUTPUT", "kernel_details.csv", text=rows.replace(",1\n", ",0\n"))
        self.assertEqual(analyze(self.folder)["problems"], [])
        rows = "".join(f"{device},{step},{1000 * (device + step)},0,0,0\n" for device in (0, 1) for step in (1, 2))
        self.write("r_ascend_pt", "ASCEND_PROFILER_OUTPUT", "step_trace_time.csv", text="Device_id,Step,Computing,Communication(Not Overlapped),Communication,Free\n" + rows)
        got = analyze(self.folder)
        self.assertEqual([problem["what"] for problem in got["problems"]], ["has rows of the devices 0, 1: those of device 0 are read"])
        self.assertEqual([(step["step"], step["computing_ms"]) for step in got["ranks"][0]["steps"]], [(1, 1), (2, 2)])

    def test_paths_that_are_not_runs(self):
        os.makedirs(os.path.join(self.folder, "empty"))
        self.assertIn("no run", analyze(os.path.join(self.folder, "empty"), code=3)["error"]["message"])
        self.assertIn("no such file", analyze(os.path.join(self.folder, "missing"), code=4)["error"]["message"])

    def test_compare(self):
        slow, fast = self.plan(6), self.plan(6)
        for k in slow[0]:
            if k["type"] == "Type1":
                k["end"] = k["start"] + 3 * (k["end"] - k["start"])
        self.write_rank(0, fast, trace=False)
        shutil.move(os.path.join(self.folder, "rank0_ascend_pt"), os.path.join(self.folder, "fast"))
        self.write_rank(0, slow, trace=False)
        got = analyze(os.path.join(self.folder, "rank0_ascend_pt"), "--baseline", os.path.join(self.folder, "fast"))["compare"]
        types = {d["name"]: d for d in got["differences"] if d["what"] == "operator_type"}
        before = sum(k["end"] - k["start"] for k in fast[0] if k["type"] == "Type1") / 1e6
        self.assert_close(types["Type1"]["baseline"], before)
        self.assert_close(types["Type1"]["difference"], 2 * before)
        self.assertEqual({name for name, d in types.items() if abs(d["difference"]) > 1e-9}, {"Type1"})


    def test_marks(self):
        plan = self.plan(9)
        self.write_rank(0, plan)
        events = self.trace(plan)
        ranges = [("load", "io", 1_500), ("load", "io", 2_500), ("save", None, 9_000)]
        for i, (name, domain, ns) in enumerate(ranges):
            args = {"event_type": "start/end"} | ({"domain": domain} if domain else {})
            events.append({"ph": "X", "name": name, "pid": 6, "tid": 11, "ts": us(BEGIN_NS + 10_000 * i), "dur": ns / 1000, "args": args})
        events.append({"ph": "X", "name": "here", "pid": 6, "tid": 11, "ts": us(BEGIN_NS + 50_000), "dur": 0, "args": {"event_type": "marker_ex"}})
        self.write("rank0_ascend_pt", "ASCEND_PROFILER_OUTPUT", "trace_view.json", text=json.dumps(events))
        marks = analyze(self.folder, "--only", "marks")["ranks"][0]["marks"]
        self.assertEqual([(m["name"], m["domain"], m["count"], m["total_ms"], m["min_ms"], m["mean_ms"], m["max_ms"]) for m in marks["names"]],
                         [("save", None, 1, 0.009, 0.009, 0.009, 0.009), ("load", "io", 2, 0.004, 0.0015, 0.002, 0.0025),
                          ("here", None, 1, 0, None, None, None)])
        self.assertEqual([(m["name"], m["duration_ms"]) for m in marks["list"]],
                         [("load", 0.0015), ("load", 0.0025), ("save", 0.009), ("here", None)])
        self.assertEqual([m["start_ms"] - marks["list"][0]["start_ms"] for m in marks["list"]], [0, 0.01, 0.02, 0.05])
        self.assertEqual(marks["left_out"], 0)

    def test_environment(self):
        self.write_rank(0, self.plan(7), trace=False)
        variables = {"HCCL_RDMA_TC": "132", "TASK_QUEUE_ENABLE": "2"}
        self.write("rank0_ascend_pt", "profiler_metadata.json", text=json.dumps({"ENV_VARIABLES": variables, "other": 1}))
        self.assertEqual(analyze(self.folder)["ranks"][0]["environment"], variables)


class ClusterCase(AnalysisCase):
    """cluster_analysis_output (2.4)."""

    def write_cluster(self):
        rng = random.Random(8)
        shares, lines = {}, ["Step,Type,Index,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble"]
        for step in (4, 5):
            for rank in range(3):
                computing, alone, both, free = (rng.randrange(10**6) / 8 for _ in range(4))
                shares[rank, step] = computing, alone, both, free
                lines.append(f"{step},rank,{rank},{computing},{alone},{both},{alone + both},{free},1,0")
            lines.append(f'{step},stage,"(0, 1, 2)",1,2,3,4,5,6,7')
        self.write("run", "cluster_analysis_output", "cluster_step_trace_time.csv", text="\n".join(lines) + "\n")
        op = {str(rank): {"Communication Time Info": {"Start Timestamp(us)": 1.5, "Elapse Time(ms)": 2.5 + rank, "Transit Time(ms)": 1, "Wait Time(ms)": rank,
                                                      "Synchronization Time(ms)": 0, "Idle Time(ms)": 0.5},
                          "Communication Bandwidth Info": {"RDMA": {"Transit Size(MB)": 25, "Transit Time(ms)": 5, "Size Distribution": {}}}}
              for rank in range(3)}
        self.write("run", "cluster_analysis_output", "cluster_communication.json", text=json.dumps(
            {"(0, 1, 2)": {"step4": {"hcom_allReduce__1_0_1@77": op, "Total Op Info@77": op}}}))
        pair = {"Transport Type": "RDMA", "Transit Size(MB)": 8, "Transit Time(ms)": 2}
        self.write("run", "cluster_analysis_output", "cluster_communication_matrix.json", text=json.dumps(
            {"(0, 1, 2)": {"step4": {"allreduce-top1@77": {"0-1": pair}, "allreduce-total@77": {"0-1": pair, "1-2": pair}, "Total Op Info@77": {"0-1": pair}}}}))
        return shares

    def test_ranks(self):
        shares = self.write_cluster()
        got = analyze(self.folder)
        self.assertEqual(got["problems"], [])
        self.assertEqual([rank["rank"] for rank in got["ranks"]], [0, 1, 2])
        for rank in got["ranks"]:
            number = rank["rank"]
            self.assertEqual([step["step"] for step in rank["steps"]], [4, 5])
            for step in rank["steps"]:
                computing, alone, both, free = shares[number, step["step"]]
                for field, us_ in (("computing_ms", computing), ("uncovered_communication_ms", alone), ("overlapped_ms", both), ("free_ms", free),
                                   ("total_ms", computing + alone + free)):
                    self.assert_close(step[field], us_ / 1000, field)
            self.assert_close(rank["overall"]["computing_ms"], sum(shares[number, step][0] for step in (4, 5)) / 1000)
            [op] = rank["communication"]
            self.assertEqual((op["name"], op["group"], op["elapse_ms"], op["wait_ms"]), ("hcom_allReduce__1_0_1", "77", 2.5 + number, number))
            self.assertEqual(op["transports"][0]["bandwidth_gb_s"], 5)
        links = [(link["src"], link["dst"], link["bandwidth_gb_s"]) for rank in got["ranks"] for link in rank["links"]]
        self.assertEqual(links, [("0", "1", 4), ("1", "2", 4)])

    def test_only_where_the_ranks_are_not(self):
        self.write_cluster()
        self.write("run", "r0_ascend_pt", "ASCEND_PROFILER_OUTPUT", "kernel_details.csv", text="Name,Start Time(us),Duration(us)\nk,1,2\n")
        [rank] = analyze(self.folder)["ranks"]
        self.assertEqual(rank["source"], "PyTorch, text")


class DumpCase(AnalysisCase):
    def test_views_without_details_are_as_of_all_data(self):
        """Neither counters nor shapes are read for them."""
        dump = make_operators.Operators(self.folder, threads=(77, 78), metrics="ArithmeticUtilization").fill()
        dump.write()
        [rank] = analyze(dump.path)["ranks"]
        self.assertTrue(any(op["ratios"] for op in rank["operators"]))
        brief = "overall,steps,step_average,operator_kinds,operator_types,timeline"
        [got] = analyze(dump.path, "--only", brief)["ranks"]
        for view in brief.split(","):
            self.assertEqual(got[view], rank[view], view)
        [some] = analyze(dump.path, "--only", "operators")["ranks"]
        self.assertEqual(some["operators"], rank["operators"])
        details = [path for path in glob.glob(os.path.join(dump.path, "*", "data", "*")) if "tensor_info" in path or "ffts_profile" in path]
        self.assertTrue(any("tensor_info" in path for path in details) and any("ffts_profile" in path for path in details))
        for path in details:
            if not path.endswith(".done"):
                with open(path, "r+b") as file:
                    file.write(bytes(os.path.getsize(path)))
        self.assertTrue(analyze(dump.path)["problems"])
        again = analyze(dump.path, "--only", brief)
        self.assertEqual((again["ranks"][0]["operator_types"], again["problems"]), (rank["operator_types"], []))

    def recording(self, name, number, first_us, devices=(0,), rank=0):
        """From `first_us` on; with devices one after the other. Two steps, the first of number `number`."""
        dump = make_operators.Operators(os.path.join(self.folder, name), slots=4, kinds=("matmul", "add"), devices=devices)
        for slot in dump.slots:
            slot.us += first_us + 20_000 * slot.device
        dump.fill()
        starts = [dump.slots[0].runs[0][0], dump.slots[2].runs[0][0], dump.slots[3].runs[0][1] + 1]
        self.steps = {number + i: starts[i:i + 2] for i in range(2)}
        for step, ends in self.steps.items():
            for tag, count in zip((60000, 60001), ends):
                dump.add(devices[0], "ts_track.data", struct.pack("<BBHIQQQHHHH", 0, 10, 40, 0, count, step, 0xFFFFFFFF, 0, 0, tag, 0))
        dump.write()
        self.write(name, f"profiler_info_{rank}.json", text="{}")
        self.runs = {device: [tuple(map(dump.wall_ns, run)) for slot in dump.slots if slot.device == device for run in slot.runs]
                     for device in devices}
        return dump

    def test_recordings_of_a_rank(self):
        """One after the other: all steps, and times are the sums of both; what lies between them is not free."""
        all_runs, recorded, steps = [], 0, {}
        for name, number, first_us in (("a", 1, 0), ("b", 7, 50_000)):
            dump = self.recording(name, number, first_us)
            runs = self.runs[0]
            all_runs += runs
            recorded += max(end for _, end in runs) - min(start for start, _ in runs)
            for step, (begin, end) in self.steps.items():
                steps[step] = sum(b - a for a, b in runs if dump.wall_ns(begin) <= a < dump.wall_ns(end))
        got = analyze(self.folder)
        [rank] = got["ranks"]
        self.assertEqual(got["problems"], [])
        self.assertEqual((rank["rank"], rank["timeline"]["executions"]), (0, 8))
        self.assert_close(rank["overall"]["computing_ms"], sum(b - a for a, b in all_runs) / 1e6)
        self.assert_close(rank["overall"]["e2e_ms"], recorded / 1e6)
        self.assertEqual([step["step"] for step in rank["steps"]], [1, 2, 7, 8])
        for step in rank["steps"]:
            self.assert_close(step["computing_ms"], steps[step["step"]] / 1e6, step["step"])

    def test_devices_of_a_rank(self):
        """Are read as one, which is said: what any of them computed, and streams of each."""
        self.recording("a", 1, 0, devices=(0, 1))
        got = analyze(self.folder)
        [rank] = got["ranks"]
        self.assertEqual([problem["what"] for problem in got["problems"]], ["has kernels of the devices 0, 1: they are read as one rank"])
        self.assertEqual((rank["timeline"]["executions"], rank["timeline"]["streams"]), (8, 4))
        self.assert_close(rank["overall"]["computing_ms"], union(self.runs[0] + self.runs[1]) / 1e6)
        out = os.path.join(self.folder, "out")
        profctl("export", os.path.join(self.folder, "a"), "--format", "sqlite", "--out", out)
        got = analyze(*glob.glob(os.path.join(out, "msprof_*.db")))
        self.assertEqual([problem["what"] for problem in got["problems"]], ["device 1 of rank 0 is left out: the rank is read from device 0"])

    def test_ranks_on_devices_of_one_number(self):
        """Of two nodes, in one database: each has its own rows."""
        self.recording("run/a", 1, 0)
        self.recording("run/b", 1, 50_000, rank=1)
        run, out = (os.path.join(self.folder, name) for name in ("run", "out"))
        profctl("export", run, "--format", "sqlite", "--out", out)
        [database] = glob.glob(os.path.join(out, "msprof_*.db"))
        of_dumps, of_database = (analyze(path)["ranks"] for path in (run, database))
        self.assertEqual([(rank["rank"], rank["device"], rank["timeline"]["executions"]) for rank in of_database], [(0, 0, 4), (1, 0, 4)])
        for want, got in zip(of_dumps, of_database):
            self.assert_same_times(got, want)


class DatabaseCase(AnalysisCase):
    def test_numbers(self):
        path = os.path.join(self.folder, "ascend_pytorch_profiler_4.db")
        with sqlite3.connect(path) as database:
            database.executescript("""
                CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);
                CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER,
                  globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);
                CREATE TABLE COMPUTE_TASK_INFO(name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockNum INTEGER, mixBlockNum INTEGER,
                  taskType INTEGER, opType INTEGER, inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER,
                  outputFormats INTEGER, outputDataTypes INTEGER, outputShapes INTEGER);
                CREATE TABLE COMMUNICATION_OP(opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER,
                  groupName INTEGER, opId INTEGER PRIMARY KEY, opType INTEGER);
                CREATE TABLE STEP_TIME(id INTEGER, startNs INTEGER, endNs INTEGER);
                CREATE TABLE RANK_DEVICE_MAP(rankId INTEGER, deviceId INTEGER);
                CREATE TABLE AICORE_FREQ(deviceId INTEGER, timestampNs NUMERIC, freq INTEGER);
                INSERT INTO STRING_IDS VALUES(1, 'op_a'), (2, 'MatMul'), (3, 'AI_CORE'), (4, 'hcom_allReduce__1_0_1'), (5, 'g'),
                  (6, 'hcom_allReduce_'), (7, '2,2');
                INSERT INTO RANK_DEVICE_MAP VALUES(4, 1);
                INSERT INTO STEP_TIME VALUES(11, 1000000, 9000000);
                INSERT INTO TASK VALUES(100, 200, 1, 0, 0, 1, 3, 0, 2, 1, 0), (1500000, 2500000, 1, 7, 1, 1, 3, 0, 2, 2, 0),
                  (3000000, 3500000, 1, 8, 2, 1, 3, 0, 2, 3, 0), (7000000, 8000000, 1, 9, 3, 1, 3, 0, 5, 4, 0);
                INSERT INTO COMPUTE_TASK_INFO VALUES(1, 1, 1, 0, 3, 2, 0, 0, 7, 0, 0, 7), (1, 2, 1, 0, 3, 2, 0, 0, 7, 0, 0, 7);
                INSERT INTO COMMUNICATION_OP VALUES(4, 2000000, 6000000, 10, 5, 1, 6);
                INSERT INTO AICORE_FREQ VALUES(1, 0, 1800), (1, 2000000, 1000);
            """)
        database.close()
        [got] = analyze(path)["ranks"]
        self.assertEqual((got["rank"], got["device"]), (4, 1))
        # From the first to the last task within the step.
        self.assertEqual(got["overall"], {"e2e_ms": 6.5, "computing_ms": 1.5, "communication_ms": 4.0,
                                          "uncovered_communication_ms": 3.0, "overlapped_ms": 1.0, "free_ms": 2.0})
        [op] = got["operators"]
        self.assertEqual((op["name"], op["type"], op["core"], op["count"], op["total_ms"], op["input_shapes"]),
                         ("op_a", "MatMul", "AI_CORE", 2, 1.5, "2,2"))
        [step] = got["steps"]
        self.assertEqual((step["step"], step["total_ms"], step["computing_ms"]), (11, 8.0, 1.5))
        self.assertEqual(got["communication"][0]["elapse_ms"], 4.0)
        # The first execution ran for 0.5 ms at 1800 MHz and 0.5 ms at 1000 MHz, the second for 0.5 ms at 1000 MHz.
        [clock] = got["hardware"][0]["by_operator"]
        self.assertEqual(clock["operator"], "op_a")
        self.assert_close(clock["mean"], (1800 * 0.5 + 1000 * 1) / 1.5)


if __name__ == "__main__":
    run_tests.main()
