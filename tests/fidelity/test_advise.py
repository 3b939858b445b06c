"""profctl advise: checks of the host, of communication and of ranks on both sides of each of their limits (analysis 1.2, 1.3),
over outputs that are written here, and the answers of the vendor's advisor beside the project."""

import json
import os
import unittest

import run_tests
from advise_case import BEGIN, AdviseCase, advise, found, x
from analysis_case import analyze
from profd_harness import SHARED_DATA, profctl
from text_files import read_json, read_text, write_text

# Sections of the advisor's report, and its sheets.
SECTIONS = {"slow rank": "slow_rank", "slow link": "slow_link", "Environment Variable Issues": "environment", "AICPU Issues": "aicpu",
            "Operator Dynamic Shape Issues": "dynamic_shape", "Operator No Bound Issues": "operator_no_bound",
            "Synchronize Stream Issues": "synchronize_stream", "GC Analysis": "gc", "Conjectured GC Analysis": "conjectured_gc",
            "Operator Dispatch Issues": "operator_dispatch", "SyncBatchNorm Issues": "sync_batch_norm", "Packet Analysis": "packet",
            "Memory Operator Issues": "memory", "Slow Dataloader Issues": "dataloader", "Block Dim Issues": "block_dim",
            "AI Core Frequency Issues": "ai_core_frequency", "AI Core Performance Analysis": "ai_core_performance",
            "Byte Alignment Analysis": "byte_alignment"}
SHEETS = SECTIONS | {"ConjecturedGcAnalysis": "conjectured_gc"}


class Advise(AdviseCase):
    def test_gc(self):
        events = lambda *us: [x("GC", i * 10**6, length, cat="GC") for i, length in enumerate(us)]
        got = self.assert_limit("gc", self.run_of(events(999, 500)), self.run_of(events(999, 1000, 3000), name="b"), "medium", cost=4, rows=2)
        self.assertEqual([row[1] for row in got["table"]["rows"]], [3000, 1000])

    def test_conjectured_gc(self):
        free = lambda us, *calls: [x("Free", 0, us, pid=5), x("AscendCL@other", 10**7, 5, pid=2), *calls]
        self.assert_limit("conjectured_gc", self.run_of(free(200_000)), self.run_of(free(200_001), name="b"), "medium", cost=200.001, rows=1)
        # So much of the gap in calls, or so many of them, is not garbage collection.
        before = [x("AscendCL@a", -500, 3500, pid=2), x("AscendCL@b", -400, 10, pid=2)]  # 3000 us of a call that began before the gap
        for n, calls in enumerate(([x("AscendCL@a", 100, 3000, pid=2)], [x("AscendCL@a", i, 1, pid=2) for i in range(30)], before)):
            self.assertNotIn("conjectured_gc", found(self.run_of(free(300_000, *calls), name=f"c{n}")))
        self.assertIn("conjectured_gc", found(self.run_of(free(300_000, x("AscendCL@a", -500, 3499, pid=2)), name="less")))
        self.assertNotIn("conjectured_gc", found(self.run_of(free(300_000, x("GC", 0, 5, cat="GC")), name="d")))
        # Operators of the framework with such names are no calls of AscendCL.
        operators = [x("aclnnAdd", i, 1, cat="cpu_op") for i in range(30)]
        self.assertIn("conjectured_gc", found(self.run_of(free(300_000, *operators), name="e")))
        self.assertNotIn("conjectured_gc", found(self.run_of([x("Free", 0, 300_000, pid=5), *operators[:1]], name="f")))

    def test_operator_dispatch(self):
        step = [x("ProfilerStep#1", 0, 100_000)]
        calls = lambda count, us: step + [x("AscendCL@aclopCompileAndExecute", i * 1000, us, pid=2) for i in range(count)]
        self.assert_limit("operator_dispatch", self.run_of(calls(19, 200)), self.run_of(calls(20, 149), name="b"), "low", cost=2.98)
        for name, us, priority in (("c", 150, "medium"), ("d", 249, "medium"), ("e", 250, "high")):
            self.assertEqual(found(self.run_of(calls(20, us), name=name))["operator_dispatch"]["priority"], priority)
        by_id = step + [x("AscendCL@opcompile", i * 1000, 10, pid=2, args={"id": "aclopCompileAndExecute"}) for i in range(20)]
        self.assertIn("operator_dispatch", found(self.run_of(by_id, name="f")))

    def test_sync_batch_norm(self):
        calls = lambda count: [x("SyncBatchNorm", i * 1000, 10) for i in range(count)]
        self.assert_limit("sync_batch_norm", self.run_of(calls(19)), self.run_of(calls(20), name="b"), "high", cost=0.2)
        self.assertNotIn("sync_batch_norm", found(self.run_of([x("SyncBatchNormal", i, 1) for i in range(30)], name="c")))

    def test_synchronize_stream(self):
        def calls(waits):
            events = []
            for i in range(20):
                events.append(x("Node@launch", i * 100, 10, pid=2))
                if i < waits:
                    events.append(x("AscendCL@aclrtSynchronizeStreamWithTimeout", i * 100 + 20, 10, pid=2))
            return events
        self.assert_limit("synchronize_stream", self.run_of(calls(10)), self.run_of(calls(11), name="b"), "high")

    def test_memory(self):
        step = [x("ProfilerStep#1", 0, 1_000_000)]
        calls = lambda api, us: [x(f"AscendCL@{api}", i * 10_000, us / 2, pid=2) for i in range(2)]
        for n, (api, us, priority) in enumerate((("aclMallocMemInner", 10_000, "low"), ("aclrtFree", 30_000, "medium"), ("aclrtFreePhysical", 50_000, "high"))):
            self.assert_limit("memory", self.run_of(step + calls(api, 9999), name=f"a{n}"), self.run_of(step + calls(api, us), name=f"b{n}"), priority,
                              cost=us / 1000, rows=1)
        self.assertEqual(found(self.run_of(calls("aclrtFree", 10_000), name="c"))["memory"]["priority"], "high")
        self.assertNotIn("memory", found(self.run_of(step + calls("aclrtFreeHost", 90_000), name="d")))

    def test_steps_of_the_framework_and_of_the_device(self):
        """A graph's iterations are parts of the steps that the framework marked, not steps beside them."""
        name = lambda kind, tid, text: {"ph": "M", "name": kind, "pid": 4, "tid": tid, "args": {"name": text}}
        events = [name("process_name", 0, "Step Trace"), name("thread_name", 7, "Step Trace(Model ID:1)")]
        for number in range(1, 4):
            start = number * 100_000
            events += [x(f"ProfilerStep#{number + 6}", start, 100_000), x(f"Iteration {number}", start + 2000, 98_000, pid=4), x(f"FP_BP Time {number}", start + 3000, 80_000, pid=4),
                       x(f"Reduce_{number}_0", start + 4000, 1000, pid=4), x("AscendCL@aclrtFree", start + 50, 20_000, pid=2)]
        run = self.run_of(events, name="both")
        self.assertEqual(found(run)["memory"]["cost_ms"], 20)
        [rank] = analyze(run, "--only", "steps")["ranks"]
        self.assertEqual([(step["step"], step["total_ms"], step["iteration_interval_ms"], step["fp_and_bp_ms"], len(step["reduces"])) for step in rank["steps"]],
                         [(number, 100, 3, 80, 1) for number in (7, 8, 9)])

    def test_dataloader(self):
        call = lambda us, name="enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__": [x(name, 0, us)]
        got = self.assert_limit("dataloader", self.run_of(call(9999)), self.run_of(call(10_000), name="b"), "high", cost=10, rows=1)
        single = found(self.run_of(call(10_000, "_SingleProcessDataLoaderIter"), name="c"))["dataloader"]
        self.assertLess(len(single["advice"]), len(got["advice"]))
        # The first call is the earliest, wherever it is in the file.
        mixed = found(self.run_of([x("_MultiProcessingDataLoaderIter", 10**6, 20_000), *call(10_000, "_SingleProcessDataLoaderIter")], name="d"))["dataloader"]
        self.assertIn("the first 10.000 ms", mixed["evidence"])
        self.assertEqual(mixed["advice"], single["advice"])

    def test_environment(self):
        bad = {"ASCEND_GLOBAL_LOG_LEVEL": "1", "ASCEND_ENHANCE_ENABLE": "0", "HCCL_RDMA_TC": "1", "HCCL_RDMA_SL": "1", "ACLNN_CACHE_LIMIT": "9999", "HOST_CACHE_CAPACITY": "0",
               "PYTORCH_NPU_ALLOC_CONF": "max_split_size_mb:1", "ASCEND_LAUNCH_BLOCKING": "1", "HCCL_ALGO": "x"}
        good = {"ASCEND_GLOBAL_LOG_LEVEL": "2", "ASCEND_ENHANCE_ENABLE": "1", "HCCL_RDMA_TC": "", "HCCL_RDMA_SL": "", "ACLNN_CACHE_LIMIT": "10000", "HOST_CACHE_CAPACITY": "20",
                "PYTORCH_NPU_ALLOC_CONF": "a:1,expandable_segments:True", "ASCEND_LAUNCH_BLOCKING": "0", "HCCL_ALGO": ""}
        self.write("mindspore", "r0_ascend_ms", "profiler_metadata.json", text=json.dumps({"ENV_VARIABLES": bad}))
        self.write("mindspore", "r0_ascend_ms", "ASCEND_PROFILER_OUTPUT", "trace_view.json", text=json.dumps([x("GC", 0, 5000, cat="GC")]))
        self.assertFalse({"environment", "gc"} & set(found(os.path.join(self.folder, "mindspore"))))
        # The name of the folder says it, however the folder is called.
        done = profctl("advise", "--json", ".", cwd=os.path.join(self.folder, "mindspore", "r0_ascend_ms", "ASCEND_PROFILER_OUTPUT"))
        self.assertNotIn("environment", {finding["check"] for finding in json.loads(done.stdout)["findings"]})
        self.run_of([])
        for name, value in bad.items():
            with self.subTest(name=name):
                for values, wrong in ((good, []), (good | {name: value}, [name]), ({name: value}, [name])):
                    self.write("run", "r0_ascend_pt", "profiler_metadata.json", text=json.dumps({"ENV_VARIABLES": values}))
                    self.run_of([x("a", 0, 1)])
                    finding = found(os.path.join(self.folder, "run")).get("environment", {"table": {"rows": []}, "code": []})
                    self.assertEqual([row[0] for row in finding["table"]["rows"]], wrong)
                    self.assertTrue(all(name in line for name, line in zip(wrong, finding["code"], strict=True)))

    def test_affinity_api(self):
        def run(name, *ops):
            stack = {"args": {"Call stack": "train.py(7): forward"}}
            return self.run_of([x(op, i * 100, 10, **stack) for i, op in enumerate(ops)], name=name)
        def api(*ops):
            got = found(run("_".join(ops).replace(":", ""), *ops)).get("affinity_api", {"table": {"rows": []}})
            return [row[0].split(".")[-1] for row in got["table"]["rows"]]
        a = lambda text: [f"aten::{name}" for name in text.split()]
        for ops, want in (("permute contiguous view", "npu_confusion_transpose"), ("reshape transpose", "npu_confusion_transpose"), ("gelu", "fast_gelu"),
                          ("softmax mul add", "npu_scaled_masked_softmax"), ("chunk neg cat mul add", "npu_rotary_mul"), ("slice neg cat add", "npu_rotary_mul"),
                          ("pow mean add rsqrt mul type_as", "npu_rms_norm"), ("rsqrt mul", "npu_rms_norm"), ("silu chunk mul", "npu_swiglu"),
                          ("mul sigmoid slice mul", "npu_swiglu"), ("group_norm silu", "npu_group_norm_silu"), ("mul mul add", "addmm"),
                          ("add layer_norm", "npu_add_layer_norm"), ("add reciprocal mul", "clip_grad_norm_fused_"), ("matmul add", "npu_matmul_add"),
                          ("argsort argsort index_select", "npu_moe_token_permute"),
                          ("index_select mul reduce_sum", "npu_moe_token_unpermute")):
            with self.subTest(ops=ops):
                self.assertEqual(api(*a(ops)), [want])
        self.assertIn("npu_fusion_attention", api(*a("matmul add mul masked_fill_ softmax dropout matmul")))
        self.assertIn("npu_fusion_attention", api(*a("matmul softmax matmul")))
        self.assertEqual(sorted(api(*a("slice gelu mul"))), ["fast_gelu", "npu_geglu"])
        self.assertEqual(api(*a("mul add layer_normal rsqrt")), [])
        self.assertEqual(api("Optimizer.step#AdamW.step", "Optimizer.step#Mine.step"), ["NpuFusedAdamW"])
        # A version has the rules of those before (analysis 1.7); another one all.
        geglu = run("versions", *a("slice gelu mul"))
        for version, want in (("7.0.0", ["fast_gelu"]), ("8.0.RC1", ["fast_gelu", "npu_geglu"]), ("8.0.0", ["fast_gelu", "npu_geglu"]), ("9.1.0", ["fast_gelu", "npu_geglu"])):
            self.write("versions", "r0_ascend_pt", "profiler_info_0.json", text=json.dumps({"cann_version": version}))
            self.assertEqual(sorted(row[0].split(".")[-1] for row in found(geglu)["affinity_api"]["table"]["rows"]), want, version)
        got = found(self.run_of([x("aten::outer", 0, 100), x("aten::gelu", 10, 10)], name="inner"))
        self.assertNotIn("affinity_api", got)  # not called by the program itself
        # What else the arguments have hides none of them.
        nested = {"Extra": {"Call stack": "other.py(1): f", "Shape": [[2, "x"]]}, "Call stack": "train.py(7): forward"}
        [row] = found(self.run_of([x("aten::gelu", 0, 10, args=nested)], name="nested"))["affinity_api"]["table"]["rows"]
        self.assertEqual(row[3], "train.py(7): forward")
        twice = found(run("twice", "aten::gelu", "aten::x", "aten::gelu"))["affinity_api"]
        self.assertEqual(twice["table"]["rows"], [["torch_npu.fast_gelu", "gelu", 2, "train.py(7): forward"]])
        # As the vendor's report does, with its document of how code is changed ("API instruction" of the requirement).
        self.assertRegex(twice["advice"][-1], r"https://gitcode\.com/Ascend/msprof-analyze/.*/fused_operator_api_replacement_example\.md$")

    def test_stage_imbalance(self):
        def run(name, computing, op="hcom_send_"):
            made = lambda rank: self.collectives((f"{op}_1_1_1", 1, {"HCCS": (1, 1)}, 0))
            return self.ranks(name, [(us, 0, 100) for us in computing], communication__json=made)
        got = self.assert_limit("stage_imbalance", run("a", (97_500, 102_500)), run("b", (97_400, 102_600)), "high", cost=2.6, rows=2)
        self.assertEqual([row[:3] for row in got["table"]["rows"]], [[0, 0, 97.4], [0, 1, 102.6]])
        self.assertNotIn("stage_imbalance", found(run("c", (50_000, 100_000), op="hcom_allReduce_")))
        self.assertNotIn("stage_imbalance", found(run("rounded", (40_092, 42_148))))  # 2.056 of 41.120 ms

    def test_api_compare(self):
        def run(name, inner, times=1, steps=0):
            events = [x(f"ProfilerStep#{i}", i * 1000, 1000, cat="cpu_op") for i in range(steps)]
            for i in range(times):
                events += [x("aten::linear", i * 1000, 100 + inner, cat="cpu_op"), x("aten::mm", i * 1000 + 10, inner, cat="cpu_op"),
                           x("TBackward0", i * 1000 + 400, 5, cat="cpu_op"), x("torch::f", i * 1000 + 500, 5, cat="python_function")]
            return self.run_of(events, name=name)
        base = run("base", 50)
        self.assertNotIn("api_compare", found(base))
        got = found(run("run", 200, 2), "--baseline", base)["api_compare"]
        rows = {row[0]: dict(zip(got["table"]["columns"], row)) for row in got["table"]["rows"]}
        self.assertEqual([rows["aten::linear"][c] for c in ("total_ms", "self_ms", "mean_ms", "calls", "baseline_self_ms", "total_ratio", "calls_ratio")],
                         [0.6, 0.2, 0.3, 2, 0.1, 4, 2])
        self.assertEqual(set(rows), {"aten::linear", "aten::mm", "TBackward0"})
        self.assert_close(got["cost_ms"], 0.455)  # 0.1, 0.35 and 0.005 more
        # Of twice as many steps: ratios are of one.
        got = found(run("longer", 200, 2, steps=2), "--baseline", run("shorter", 50, 1, steps=1))["api_compare"]
        rows = {row[0]: dict(zip(got["table"]["columns"], row)) for row in got["table"]["rows"]}
        self.assertNotIn("ProfilerStep#0", rows)
        self.assertEqual([rows["aten::linear"][c] for c in ("calls", "baseline_calls", "total_ratio", "self_ratio", "calls_ratio")], [2, 1, 2, 1, 1])

    def test_slow_beside_fast_rank(self):
        rows = lambda us: self.kernels(("a", "Mul", "AI_VECTOR_CORE", us, 0.9, "static", "F"))
        for name, computing in (("a", 52_000), ("b", 53_000)):
            self.ranks(name, [(50_000, 1, 1), (computing, 1, 1)], kernel_details__csv=lambda rank: rows(100 + 200 * rank))
        self.assertNotIn("kernel_compare", found(os.path.join(self.folder, "a")))
        got = found(os.path.join(self.folder, "b"))["kernel_compare"]
        self.assertIn("rank 1 beside rank 0", got["evidence"])
        self.assert_close(got["cost_ms"], 0.2)

    def test_packet(self):
        def run(name, of, small, size, large):
            ops = [(f"hcom_x__1_{i}_1", 1, {of: (size if i < small else large, 2)}, i * 100) for i in range(100)]
            return self.run_of([], name=name, communication__json=self.collectives(*ops))
        for of, edge in (("SDMA", 16), ("RDMA", 1)):
            got = self.assert_limit("packet", run("a" + of, of, 20, edge - 0.01, edge), run("b" + of, of, 21, edge - 0.01, edge), "low", cost=42, rows=1)
            self.assertEqual(got["table"]["rows"], [[of, 100, 21, 0.21, 42]])

    def test_bandwidth_contention(self):
        def run(name, mb, start, ms=1):
            rows = self.kernels(("m", "MatMulV2", "AI_CORE", 100, 0, "static", "FLOAT"))
            return self.run_of([], name=name, kernel_details__csv=rows, communication__json=self.collectives(("hcom_a__1_1_1", 1, {"SDMA": (mb, ms)}, start)))
        self.assertNotIn("bandwidth_contention", found(run("rounded", 1.44, 50, ms=0.1)))  # 14.4 GB/s
        self.assert_limit("bandwidth_contention", run("a", 14.4, 50), run("b", 14.3, 50), "low", rows=1)
        self.assertNotIn("bandwidth_contention", found(run("c", 1, 100)))
        self.assertNotIn("bandwidth_contention", found(run("d", 1, -1000)))
        self.assertIn("bandwidth_contention", found(run("e", 1, -999)))

    def ranks(self, name, shares, **files):
        for rank, (computing, alone, free) in enumerate(shares):
            text = f"Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n1,{computing},{alone},0,{alone},{free}\n"
            self.run_of([], rank=rank, name=name, step_trace_time__csv=text, **{key: made(rank) for key, made in files.items()})
        return os.path.join(self.folder, name)

    def test_slow_rank(self):
        even = found(self.ranks("a", [(50_000, 30_000, 20_000), (55_000, 30_000, 15_000)]))["slow_rank"]  # 5 of 100 ms
        self.assertEqual((even["priority"], even["evidence"], even["cost_ms"]), ("info", "No rank is slow", None))
        even = found(self.ranks("rounded", [(55.652, 0, 442.388), (80.554, 0, 417.486)]))["slow_rank"]  # 24.902 of 498.040 us
        self.assertEqual(even["evidence"], "No rank is slow")
        slow = found(self.ranks("b", [(50_000, 30_000, 20_000), (55_200, 30_000, 15_000)]))["slow_rank"]
        self.assert_close(slow["cost_ms"], 5.2)
        self.assertIn("Computing differs by 5.200 ms", slow["evidence"])
        self.assertNotIn("Free", slow["evidence"])
        self.assertEqual(slow["table"]["rows"], [[1, 0, 50, 30, 20], [1, 1, 55.2, 30, 15]])

    def test_steps_without_records(self):
        got = found(self.ranks("a", [(50_000, 30_000, 20_000), (0, 0, 100_000)]))["slow_rank"]
        self.assertEqual(got["table"]["rows"], [[1, 0, 50, 30, 20]])

    def test_links_and_retransmission(self):
        def run(name, elapsed, rdma):
            made = lambda rank: self.collectives(("hcom_a__1_1_1", elapsed[rank], {"RDMA": (100, rdma[rank]), "SDMA": (36, 2)}, 0))
            return self.ranks(name, [(1, 1, 1)] * 2, communication__json=made)
        self.assert_limit("retransmission", run("a", (3999, 9000), (4001, 10)), run("b", (4000, 9000), (4001, 10)), "high", cost=4001, rows=1)
        self.assertNotIn("retransmission", found(run("c", (4000, 9000), (4000, 10))))
        link = found(run("d", (5, 5), (50, 25)))["slow_link"]
        rows = [dict(zip(link["table"]["columns"], row)) for row in link["table"]["rows"]]
        self.assertEqual([list(row.values())[1:] for row in rows], [[0, 2, 100, 50, 18, 36, 2], [1, 4, 100, 25, 18, 36, 2]])
        self.assertRegex(link["evidence"], r"most 4\.000 on rank 1.*, least 2\.000 on rank 0.*, 2\.000 between them")

    def test_ranks_with_slow_links(self):
        """A rank is compared with the median of those that move about as much: 100 MB in 25 ms are 4 GB/s, of which 0.8 are 31.25 ms."""
        def run(name, ms, mb=100):
            made = lambda rank: self.collectives(("hcom_a__1_1_1", 5, {"RDMA": ((mb, ms) if rank == 2 else (100, 25))}, 0))
            return self.ranks(name, [(50_000, 30_000, 20_000)] * 4, communication__json=made)
        got = self.assert_limit("bandwidth_imbalance", run("even", 31.25), run("slow", 31.5), "high", cost=6.5, rows=1)
        self.assertRegex(got["evidence"], r"^RDMA of rank 2.*: 3\.175 GB/s, 4\.000 is usual$")
        self.assertEqual(dict(zip(got["table"]["columns"], got["table"]["rows"][0]))["extra_ms_per_step"], 6.5)
        self.assertNotIn("bandwidth_imbalance", found(run("little", 31.5, 49)))

    def test_links_by_step(self):
        """A link that is slow in one step only; the communication checks look at the slowest rank of their transport."""
        def ops(*steps):
            return json.dumps({f"step{number}": {"collective": {f"hcom_a__{number}_1_1@9": {
                "Communication Time Info": {"Start Timestamp(us)": BEGIN + number * 1000, "Elapse Time(ms)": 5},
                "Communication Bandwidth Info": {of: {"Transit Size(MB)": mb, "Transit Time(ms)": ms, "Size Distribution": {}} for of, (mb, ms) in parts.items()}}}}
                for number, parts in steps})
        made = (ops((1, {"SDMA": (36, 2)}), (2, {"SDMA": (36, 2)})), ops((1, {"SDMA": (36, 2)}), (2, {"SDMA": (36, 12)})))
        link = found(self.ranks("steps", [(1, 1, 1)] * 2, communication__json=lambda rank: made[rank]))["slow_link"]
        self.assertEqual([(row[0], row[1], row[5]) for row in link["table"]["rows"]], [(1, 0, 18), (1, 1, 18), (2, 0, 18), (2, 1, 3)])
        self.assertIn("least 3.000 on rank 1, step 2, 15.000 between them", link["evidence"])

    def test_kernel_compare_of_runs_of_other_lengths(self):
        """Each side is a mean of its own steps: twice as many of the same are not slower."""
        def run(name, steps, us=100):
            rows = self.kernels(*[("a", "Mul", "AI_VECTOR_CORE", us, 0.9, "static", "F")] * steps)
            return self.run_of([x(f"ProfilerStep#{i}", i * 10**6, 10**6) for i in range(steps)], name=name, kernel_details__csv=rows)
        for name, us, cost_ms, ratio in (("same", 100, 0, 1), ("slow", 300, 0.2, 3)):
            got = found(run(name, 2, us), "--baseline", run(name + "-base", 1))["kernel_compare"]
            self.assert_close(got["cost_ms"], cost_ms)
            row = dict(zip(got["table"]["columns"], got["table"]["rows"][0]))
            self.assertEqual((row["calls"], row["baseline_calls"], row["total_ratio"]), (2, 1, ratio))

    def test_runs_are_compared_as_wholes_where_one_has_no_steps(self):
        """Ten times the same, with and without steps; a rank without operators is none of them."""
        def run(name, steps, us):
            rows = self.kernels(*[("a", "Mul", "AI_VECTOR_CORE", us, 0.9, "static", "F")] * 10)
            host = [x("aten::mul", i * 10**6, us, cat="cpu_op") for i in range(10)]
            self.run_of([], rank=1, name=name)
            return self.run_of(host + [x(f"ProfilerStep#{i}", i * 10**6, 10**6) for i in range(steps)], name=name, kernel_details__csv=rows)
        bare, slow, steps = run("bare", 0, 100), run("slow", 0, 150), run("steps", 10, 100)
        for mine, other, cost, ratio in ((bare, steps, 0, 1), (slow, steps, 0.5, 1.5), (steps, bare, None, 1), (slow, bare, 0.5, 1.5)):
            got = found(mine, "--baseline", other)
            for check, words in (("kernel_compare", "what is slower takes"), ("api_compare", "what the host spends more on takes")):
                row = dict(zip(got[check]["table"]["columns"], got[check]["table"]["rows"][0]))
                self.assert_close(row["total_ratio"], ratio, check)
                if cost is None:
                    self.assertIsNone(got[check]["cost_ms"])
                else:
                    self.assert_close(got[check]["cost_ms"], cost, check)
                self.assertIn(f"{words} {cost or 0:.3f} ms more of all that a rank recorded", got[check]["evidence"])

    def test_kernel_compare(self):
        rows = lambda us: self.kernels(("a", "Mul", "AI_VECTOR_CORE", us, 0.9, "static", "F"), ("b", "Add", "AI_VECTOR_CORE", 10, 0.9, "static", "F"))
        base, run = self.run_of([], name="base", kernel_details__csv=rows(100)), self.run_of([], kernel_details__csv=rows(300))
        self.assertNotIn("kernel_compare", found(run))
        got = found(run, "--baseline", base)["kernel_compare"]
        self.assert_close(got["cost_ms"], 0.2)
        first = dict(zip(got["table"]["columns"], got["table"]["rows"][0]))
        self.assertEqual((first["type"], first["calls"], first["baseline_calls"], first["total_ratio"], first["mean_ratio"]), ("Mul", 1, 1, 3, 3))

    def test_which_rank(self):
        """Of a cluster the rank that stands out is looked at; where none does, the first."""
        for name, free, want in (("a", 20_000, 0), ("b", 40_000, 1)):
            self.ranks(name, [(50_000, 1000, 20_000), (50_000, 1000, free)])
            for rank in (0, 1):
                self.write(name, f"r{rank}_ascend_pt", "ASCEND_PROFILER_OUTPUT", "trace_view.json", text=json.dumps([x("GC", 0, 5000, cat="GC")]))
            self.assertEqual(found(os.path.join(self.folder, name))["gc"]["rank"], want)

    def test_which_step(self):
        """The row of a step and rank that stands out says which; events of that step only count."""
        free = ((20_000, 20_000), (20_000, 60_000))  # by rank, of two steps
        for rank in (0, 1):
            events = [x(f"ProfilerStep#{n}", n * 100_000, 100_000) for n in (1, 2)]
            events += [x("AscendCL@aclrtFree", n * 100_000 + i * 10_000, us, pid=2) for n, us in ((1, 9000), (2, 2000)) for i in range(3)]
            events += [x("aten::gelu", n * 100_000 + 50 * i, 10) for i, n in enumerate((1, 2, 2))] + [x("GC", n * 100_000, 5000, cat="GC") for n in (1, 2)]
            steps = "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n" + "".join(
                f"{n},30000,1,0,1,{free[rank][n - 1]}\n" for n in (1, 2))
            self.run_of(events, rank=rank, name="steps", step_trace_time__csv=steps)
        got = found(os.path.join(self.folder, "steps"))
        self.assertNotIn("memory", got)  # 6 ms in the second step
        self.assertEqual([(got[check]["rank"], got[check]["step"]) for check in ("affinity_api", "gc")], [(1, 2), (1, None)])
        self.assertEqual([row[2] for row in got["affinity_api"]["table"]["rows"]], [2])
        self.assertEqual(len(got["gc"]["table"]["rows"]), 2)  # of all steps
        # One rank alone has no step that stands out.
        self.assertEqual(found(os.path.join(self.folder, "steps", "r1_ascend_pt"))["memory"]["table"]["rows"], [["aclrtFree", 6, 33]])

    def test_limits_of_the_user(self):
        run = self.run_of([x("GC", 0, 500, cat="GC")])
        limits = self.write("limits.toml", text="[gc]\nleast_us = 500\n")
        self.assertIn("gc", found(run, "--limits", limits))
        wrong = self.write("wrong.toml", text="[gc]\nleast = 500\nleast_us = 'x'\n[none]\na = 1\n")
        error = advise(run, "--limits", wrong, code=3)["error"]["message"]
        for part in ("gc.least", "gc.least_us", "none.a"):
            self.assertIn(part, error)
        self.assertIn("limits.toml:1", advise(run, "--limits", self.write("b", "limits.toml", text="[gc\n"), code=3)["error"]["message"])

    def test_commands(self):
        run = self.run_of([x("GC", 0, 5000, cat="GC")])
        advise(run, "--fail-on", "high")
        advise(run, "--fail-on", "medium", code=7)
        advise(run, "--fail-on", "worst", code=2)
        advise(code=2)
        out = os.path.join(self.folder, "out")
        advise(run, "-o", out)
        self.assertEqual(read_json(out, "advice.json")["findings"][0]["check"], "gc")
        self.assertIn("profd-data", read_text(out, "advice.html"))
        self.assertIn("--force", advise(run, "-o", out, code=3)["error"]["message"])
        listed = advise("--list")["checks"]
        self.assertEqual({limit["name"]: limit["value"] for check in listed if check["check"] == "gc" for limit in check["limits"]}, {"least_us": 1000})
        limits = os.path.join(self.folder, "limits.toml")
        write_text(limits, "[gc]\nleast_us = 500\n[priority]\nhigh = 0.125\n")
        listed = advise("--list", "--limits", limits)
        self.assertEqual([each["value"] for check in listed["checks"] if check["check"] == "gc" for each in check["limits"]], [500])
        self.assertEqual([each["value"] for each in listed["limits"] if (each["check"], each["name"]) == ("priority", "high")], [0.125])
        self.assertRegex(profctl("advise", "--list", "--limits", limits).stdout, r"\npriority\.high +0\.125 ")
        advise("--list", "--limits", os.path.join(self.folder, "none"), code=4)
        text = profctl("advise", run).stdout
        self.assertIn("Python collected garbage 1 time for", text)
        self.assertIn("- ", text)


@unittest.skipUnless(os.path.isdir(SHARED_DATA), "the data with known answers is not there")
class KnownAdvice(unittest.TestCase):
    def cases(self, group):
        """What the advisor said of each, what is said here, and the priorities of its sections by check."""
        for case in sorted(os.listdir(os.path.join(SHARED_DATA, group))):
            folder = os.path.join(SHARED_DATA, group, case)
            if not os.path.isdir(folder):
                continue
            want = read_json(folder, "answers.json")["values"]
            reported = {SECTIONS[name]: priority or "info" for name, priority in want["report_sections_priority"].items() if name in SECTIONS}
            yield case, want, found(folder), reported

    def priorities(self, got):
        # Of fusible operators and slow links the advisor's report has no section; the summary is one of many.
        return {check: finding["priority"] for check, finding in got.items() if check not in ("overall_summary", "fusible_operators", "bandwidth_imbalance")}

    def test_unit(self):
        """Inputs of the advisor's own unit tests."""
        for case, want, got, reported in self.cases("ut"):
            if case != "ai_core_performance":
                reported.pop("dynamic_shape", None)  # the advisor takes shapes whose state was not recorded for dynamic
            self.assertEqual(self.priorities(got), reported, case)
            for sheet, sheet_rows in want.get("sheets_as_reported", {}).items():
                self.check_sheet(sheet, sheet_rows.get("rows", []), got)

    def check_sheet(self, sheet, want, got):
        if sheet == "AI Core Frequency Issues":
            rows = got["ai_core_frequency"]["table"]["rows"]
            self.assertEqual([[r[0], r[1], r[2], f"{r[3] * 100:.2f}%", *r[4:]] for r in rows], want)
        elif sheet == "Byte Alignment Analysis":
            self.assertEqual([[r[0], *(round(value, 4) for value in r[1:])] for r in got["byte_alignment"]["table"]["rows"]],
                             [[r[0], *(round(value, 4) for value in r[1:])] for r in want])
        elif sheet == "AICPU Issues":  # one row for each call; here one for each operator
            self.assertEqual(sum(row[2] for row in got["aicpu"]["table"]["rows"]), len(want))
        elif sheet.startswith("OPERATOR SEQUENCE"):
            rows = [row[:-1] for row in got["fusible_operators"]["table"]["rows"]]
            for row in want[1:]:  # the first explains the columns
                self.assertIn([round(value, 2) for value in row], [[round(value, 2) for value in mine] for mine in rows])
        elif sheet.endswith("Operator Perf Analysis"):
            of = {"Cube": "cube", "FA": "attention", "Vector": "vector"}[sheet.split()[0]]
            rows = [row for row in got.get("ai_core_performance", {"table": {"rows": []}})["table"]["rows"] if row[0] == of]
            verdicts = {"set of performance optimization operators": "improvable", "set of bound operators": "bound", "set of unaffine operators": "not affine"}
            for kind, text in want:
                for line in filter(None, text.split("\n")):
                    name = line.split(" Op shape: ")[0]
                    improvement = line.split("Optimization Space: ")[1].rstrip("%") if "Optimization Space: " in line else None
                    fits = [row for row in rows if row[1] == verdicts[kind] and row[5] == name and f"Op shape: {row[8]} " in line]
                    self.assertEqual(len(fits), 1, line)
                    if improvement is not None:
                        self.assertAlmostEqual(fits[0][3] * 100, float(improvement), places=2)

    def test_core_performance_beside_communication(self):
        """Types of vector operators are looked at by their share of all tasks: in a real run collectives take most."""
        sheet = "Vector Operator Perf Analysis"
        for form in ("pt_text_level1", "pt_db_level1"):
            want = read_json(SHARED_DATA, "pytorch", form, "answers.json")["values"]
            for number in range(2):
                rows = want[f"rank{number}"]["sheets_as_reported"][sheet]["rows"]
                got = found(os.path.join(SHARED_DATA, "pytorch", form, f"rank{number}_ascend_pt"))
                self.check_sheet(sheet, rows, got)
                listed = sum(len(list(filter(None, text.split("\n")))) for _, text in rows)
                self.assertEqual(sum(row[0] == "vector" for row in got["ai_core_performance"]["table"]["rows"]), listed)

    def test_api_compare(self):
        rank = lambda number: os.path.join(SHARED_DATA, "pytorch", "pt_text_level1", f"rank{number}_ascend_pt")
        want = read_json(SHARED_DATA, "pytorch", "pt_text_level1", "answers.json")["values"]["comparison_rank1_against_rank0"]
        rows = {row[0]: row for row in found(rank(1), "--baseline", rank(0))["api_compare"]["table"]["rows"]}
        self.assertEqual(len(rows), want["issues_row_count"]["Api compare of Target and Bench"])
        for row in want["sheets_as_reported"]["Api compare of Target and Bench"]["rows"]:
            mine = rows[row[1]]
            self.assertEqual((mine[4], mine[8]), (row[5], row[9]))
            for got, reported in zip((mine[1], mine[2], mine[5], mine[6]), (row[2], row[3], row[6], row[7])):
                self.assertAlmostEqual(got, reported, delta=0.0051, msg=row[1])

    def test_made(self):
        for case, want, got, reported in self.cases("made"):
            self.assertEqual(self.priorities(got), reported, case)
            self.assertEqual("bandwidth_imbalance" in got, case == "cluster_slow_link", case)
            rows = {SHEETS[sheet]: count for sheet, count in want["issues_row_count"].items() if sheet in SHEETS}
            self.assertEqual({check: len(got[check]["table"]["rows"]) for check in rows}, rows, case)
            for row in want.get("slow_rank", []):
                mine = next(r for r in got["slow_rank"]["table"]["rows"] if r[:2] == [row["step"], row["rank"]])
                self.assertEqual([round(ms * 1000) for ms in mine[2:]], [row["computing_us"], row["uncovered_communication_us"], row["free_us"]])
            for row in want.get("slow_link", []):
                mine = dict(zip(got["slow_link"]["table"]["columns"], next(r for r in got["slow_link"]["table"]["rows"] if r[1] == row["rank"])))
                for of in ("rdma", "sdma"):
                    self.assertAlmostEqual(mine[f"{of}_bandwidth_gb_s"], row[f"{of}_bandwidth_gb_per_s"], places=4)
                    for field in ("size_mb", "time_ms"):  # the advisor adds the total once more (9)
                        self.assertAlmostEqual(mine[f"{of}_{field}"], row[f"{of}_{field}"] / 2, places=4)


if __name__ == "__main__":
    run_tests.main()
