"""profctl advise: checks of operators and of the hardware on both sides of each of their limits (analysis 1.3, 1.6, 1.8)."""

import json
import os

import run_tests
from advise_case import BEGIN, AdviseCase, found, x


class AdviseDevice(AdviseCase):
    def test_aicpu(self):
        run = lambda name, us, core="AI_CPU", types="DOUBLE": self.run_of([], name=name, kernel_details__csv=self.kernels(
            ("a", "Index", core, us, 0.9, "static", types), *[(f"n{i}", "Mul", "AI_VECTOR_CORE", 10, 0.9, "static", "FLOAT") for i in range(3)]))
        got = self.assert_limit("aicpu", run("a", 19.99), run("b", 20), "high", cost=0.02, rows=1)
        self.assertTrue(any("DOUBLE" in line for line in got["advice"]))
        self.assertFalse(any("DOUBLE" in line for line in found(run("c", 20, types="FLOAT"))["aicpu"]["advice"]))
        self.assertNotIn("aicpu", found(run("d", 20, core="AI_CORE")))
        # The second call of one name and shape takes it.
        rows = self.kernels(*[("a", "Cast", "AI_CPU", 20, 0, "static", types) for types in ("FLOAT", "DOUBLE")])
        self.assertTrue(any("DOUBLE" in line for line in found(self.run_of([], name="later", kernel_details__csv=rows))["aicpu"]["advice"]))
        # The longest task may be one of communication.
        rows = self.kernels(("a", "Index", "AI_CPU", 5, 0.9, "static", "F"), ("hcom_allReduce__1_0_1", "hcom_allReduce_", "HCCL", 20, 0, "N/A", "N/A"))
        self.assertIn("aicpu", found(self.run_of([], name="hccl", kernel_details__csv=rows)))
        self.assertNotIn("aicpu", found(self.run_of([], name="short", kernel_details__csv=rows.replace(",20,", ",19,"))))
        # Its share is of the time of all tasks, those of communication too (analysis 1.2): 5 of 100 us, and of 101.
        for name, us, priority in (("five", 95, "high"), ("less", 96, "medium")):
            of = self.run_of([], name=name, kernel_details__csv=rows.replace(",20,", f",{us},"))
            self.assertEqual(found(of)["aicpu"]["priority"], priority)
        # CANN 7.0.RC1 makes BOOL of Equal on the AI Core (analysis 1.5).
        rows = f'Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Data Types,Output Data Types\na,Equal,AI_CPU,{BEGIN},20,"""FLOAT;FLOAT""","""FLOAT"""\n'
        typed = self.run_of([], name="typed", kernel_details__csv=rows)
        self.write("typed", "r0_ascend_pt", "profiler_info_0.json", text='{"cann_version": "7.0.RC1"}')
        self.assertTrue(any(line.startswith("Equal: with an output of FLOAT") for line in found(typed)["aicpu"]["advice"]))
        kinds = ("Index", "IndexPutV2", "NonZero", "ArgMin")
        rows = self.kernels(*[(f"n{i}", kind, "AI_CPU", 20, 0.9, "static", "FLOAT") for i, kind in enumerate(kinds + ("Unique",))])
        advice = found(self.run_of([], name="e", kernel_details__csv=rows))["aicpu"]["advice"]
        self.assertEqual(sum(any(line.startswith(kind.removesuffix("V2") + ":") for line in advice) for kind in kinds), 4, advice)
        self.assertEqual(len(advice), 5, "and the general one")
        self.assertIn("update the toolkit if it is older", "".join(advice), "the version may be unknown, or later")

    def test_shapes_and_bounds(self):
        run = lambda name, ratio, us, *states: self.run_of([], name=name, kernel_details__csv=self.kernels(
            *[(f"n{i}", "Mul", "AI_VECTOR_CORE", us, ratio, state, "FLOAT") for i, state in enumerate(states)]))
        self.assert_limit("dynamic_shape", run("a", 0.9, 5, "static", "dynamic"), run("b", 0.9, 5, "dynamic", "dynamic"), "low")
        self.assertNotIn("dynamic_shape", found(run("c", 0.9, 5, "N/A")))
        self.assert_limit("operator_no_bound", run("d", 0.801, 30, "static"), run("e", 0.8, 30, "static"), "low", rows=1)
        self.assert_limit("operator_no_bound", run("f", 0.5, 20, "static"), run("g", 0.5, 20.01, "static"), "low", rows=1)
        self.assertNotIn("operator_no_bound", found(run("h", 0, 30, "static")))
        self.assertNotIn("operator_no_bound", found(run("i", 0.5, 30, "dynamic")))

    def test_block_dim(self):
        def run(name, core, blocks, mix=1, state="static"):
            text = (f"Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Block Dim,Mix Block Dim\n"
                    f"a,Mul,{state},{core},{BEGIN},500,{blocks},{mix}\na,Mul,{state},{core},{BEGIN + 9000},300,{blocks},{mix}\n")
            self.device(name, 24, 48)
            return self.run_of([], name=name, kernel_details__csv=text)
        for n, (core, good, bad) in enumerate((("AI_CORE", 48, 25), ("AI_VECTOR_CORE", 48, 24), ("MIX_AIC", 48, 24))):
            got = self.assert_limit("block_dim", run(f"a{n}", core, good), run(f"b{n}", core, bad), "low", rows=1)
            self.assertEqual(got["table"]["rows"][0][:6], ["Mul", "a", core, bad, 2, 0.8])
        for n, more in enumerate(({"blocks": 24, "mix": 48, "core": "MIX_AIC"}, {"blocks": 24, "mix": 0, "core": "MIX_AIC"}, {"blocks": 25, "core": "AI_CPU"}, {"blocks": 0, "core": "AI_CORE"},
                                  {"blocks": 25, "core": "AI_CORE", "state": "dynamic"})):
            self.assertNotIn("block_dim", found(run(f"c{n}", **more)))
        self.assertNotIn("block_dim", found(self.run_of([], name="d", kernel_details__csv="Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim\n"
                                                        f"a,Mul,AI_CORE,{BEGIN},500,25\n")))
        self.device("e", 24, 48)
        self.assertIn("block_dim", found(self.run_of([], name="e", kernel_details__csv="Name,Type,Accelerator Core,Start Time(us),Duration(us),Block Dim\n"
                                                     f"a,Mul,MIX_AIC,{BEGIN},500,24\n")), "nothing says how many of the other kind")

    def test_device_facts_of_the_vendors_own_export(self):
        """Below a PROF directory without raw data: op_summary beside device_<n>/info.json.<n> (analysis 2)."""
        self.write("raw", "PROF_1", "device_0", "info.json.0", text=json.dumps({"DeviceInfo": [{"ai_core_num": 24, "aiv_num": 48}]}))
        self.write("raw", "PROF_1", "mindstudio_profiler_output", "op_summary_1.csv", text=(
            "Op Name,OP Type,OP State,Task Type,Task Start Time(us),Task Duration(us),Block Dim,Mix Block Dim\n"
            f"a,Mul,static,AI_VECTOR_CORE,{BEGIN},500,25,0\n"))
        self.assertIn("block_dim", found(os.path.join(self.folder, "raw", "PROF_1")))

    def test_frequency(self):
        def run(name, *mhz, core="AI_CORE"):
            rows = self.kernels(("a", "Mul", core, 100, 0, "static", "F"))
            # From before the operator, while it runs, and behind it.
            events = [{"ph": "C", "name": "AI Core Freq", "pid": 9, "tid": 0, "ts": BEGIN - 50 + i * 100, "args": {"MHz": value}}
                      for i, value in enumerate(mhz)]
            self.device(name, 24, 48, 1000)
            return self.run_of(events, name=name, kernel_details__csv=rows)
        got = self.assert_limit("ai_core_frequency", run("a", 1000, 951, 1), run("b", 1000, 950, 1), "high", cost=0.005, rows=1)
        self.assertEqual(got["table"]["rows"][0], ["a", 1, 100, 0.05, 950, 950, 950])
        self.assertIn("ai_core_frequency", found(run("c", 500)))  # it holds until the next
        rows = self.kernels(*[("a", "Mul", "AI_CORE", 100, 0, "static", "F")] * 7)
        self.device("calls", 24, 48, 1500)
        events = [{"ph": "C", "name": "AI Core Freq", "pid": 9, "tid": 0, "ts": BEGIN, "args": {"MHz": 1425}}]
        self.assertIn("ai_core_frequency", found(self.run_of(events, name="calls", kernel_details__csv=rows)))  # 5 % of each of the seven
        self.assertNotIn("ai_core_frequency", found(run("d", 500, core="AI_VECTOR_CORE")))
        # The kind of task on the timeline decides, where the operator is there.
        def with_task(name, core, task):
            self.device(name, 24, 48, 1000)
            rows = "Name,Type,Accelerator Core,Start Time(us),Duration(us),Stream ID\n" + f"a,Mul,{core},{BEGIN},100,2\n"
            events = [{"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": {"name": "Ascend Hardware"}},
                      {"ph": "M", "name": "thread_name", "pid": 3, "tid": 7, "args": {"name": "Stream 2"}}, x("a", 0, 100, pid=3, args={"Task Type": task}),
                      {"ph": "C", "name": "AI Core Freq", "pid": 9, "tid": 0, "ts": BEGIN - 50, "args": {"MHz": 500}}]
            return found(self.run_of(events, name=name, kernel_details__csv=rows))
        self.assertIn("ai_core_frequency", with_task("e", "AI_VECTOR_CORE", "AI_CORE"))
        self.assertNotIn("ai_core_frequency", with_task("f", "AI_CORE", "AI_VECTOR_CORE"))

    def test_a_frequency_that_falls_between_operators(self):
        """Thousands of times, so that there are more samples than are kept of other counters."""
        self.device("busy", 24, 48, 1800)
        events = [{"ph": "M", "name": "process_name", "pid": 3, "tid": 0, "args": {"name": "Ascend Hardware"}}]
        for i in range(8200):
            clock = lambda start, mhz: {"ph": "C", "name": "AI Core Freq", "pid": 9, "tid": 0, "ts": BEGIN + start, "args": {"MHz": mhz}}
            events += [clock(i * 1000, 1800), clock(i * 1000 + 500, 800), x("a", i * 1000 + 100, 300, pid=3, args={"Task Type": "AI_CORE"})]
        self.assertNotIn("ai_core_frequency", found(self.run_of(events, name="busy")))

    def test_order_of_frequencies(self):
        """Of operators that took as long, the one that ran slower is the first."""
        rows = self.kernels(*[(name, "Mul", "AI_CORE", 100, 0, "static", "F") for name in "abc"])
        self.device("run", 24, 48, 1000)
        events = [{"ph": "C", "name": "AI Core Freq", "pid": 9, "tid": 0, "ts": BEGIN + i * 10**6 - 50, "args": {"MHz": mhz}} for i, mhz in enumerate((700, 500, 600))]
        got = found(self.run_of(events, kernel_details__csv=rows))["ai_core_frequency"]["table"]["rows"]
        self.assertEqual([row[0] for row in got], ["b", "c", "a"])

    def test_core_performance(self):
        columns = ("aic_mac_ratio", "aic_mte2_ratio", "aic_fixpipe_ratio", "aiv_vec_ratio", "aiv_mte2_ratio", "aiv_mte3_ratio")
        def run(name, kind, core, inputs, outputs="4096,4096", op="a", us=100, **ratios):
            text = "Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Output Shapes," + ",".join(columns) + "\n"
            text += f'{op},{kind},static,{core},{BEGIN},{us},"""{inputs}""","""{outputs}""",' + ",".join(str(ratios.get(c[:-6], 0)) for c in columns) + "\n"
            return self.run_of([], name=name, kernel_details__csv=text)
        def verdict(*args, **kwargs):
            self.number = getattr(self, "number", 0) + 1
            rows = found(run(f"n{self.number}", *args, **kwargs)).get("ai_core_performance", {"table": {"rows": []}})["table"]["rows"]
            return rows[0][1:4] if rows else None
        cube = lambda inputs="4096,4096;4096,4096", **more: verdict("MatMulV2", "AI_CORE", inputs, **more)
        # 2 bytes x (4096 x 4096 + 2 x 4096 x 4352) / 2^20: 100 MB and 98 MB
        self.assertIsNone(cube("4096,4096;4096,4096", outputs="4096,4095", aic_mac=0.5))
        self.assertEqual(cube("4096,4352;4352,4096", aic_mac=0.5, aic_mte2=0.9), ["improvable", "", 0.3])
        big = "4096,8192;8192,4096"
        self.assertEqual(cube(big, aic_mac=0.8, aic_mte2=0.95), ["bound", "mac and mte2", None])
        self.assertEqual(cube(big, aic_mac=0.95, aic_mte2=0.94), ["bound", "mac", None])
        self.assertEqual(cube(big, aic_mac=0.79, aic_mte2=0.95), ["bound", "mte2", None])
        self.assertEqual(cube(big, aic_mac=0.79, aic_mte2=0.94), ["improvable", "", 0.01])
        self.assertEqual(cube("4096,8191;8191,4096", aic_mac=1)[0], "not affine")
        self.assertEqual(cube("64,512,16,16;64,512,16,16;1,1", outputs="16384,4096", aic_mac=0.95)[0], "bound")
        self.assertEqual(cube("64,511,15,16;64,512,16,16;1,1", outputs="16384,4096", aic_mac=0.95)[0], "not affine")
        attention = lambda inputs, kind="FlashAttentionScore", **more: verdict(kind, "MIX_AIC", inputs, **more)
        self.assertEqual(attention("1,8,4096,128", aic_mte2=0.8, aiv_vec=0.75), ["bound", "mte2 and vec", None])
        self.assertEqual(attention("1,8,4096,128", aic_mte2=0.79, aiv_vec=0.75), ["bound", "vec", None])
        self.assertEqual(attention("1,8,4096,128", aic_mte2=0.79, aiv_vec=0.5), ["improvable", "", 0.25])
        self.assertEqual(attention("1,8,4096,128", kind="FlashAttentionScoreGrad", aic_mte2=0.5, aic_fixpipe=0.75), ["bound", "fixpipe", None])
        self.assertEqual(attention("1,8,4096,64", aic_mte2=0.9)[0], "not affine")
        self.assertEqual(attention("1,8,4095,128", aic_mte2=0.9)[0], "not affine")
        # Where the layout does not say where the sequence is, softmax_max (B, N, S, 8) does.
        self.assertEqual(attention("2,4096,1024", outputs="2,8,4096,8", aic_mte2=0.9)[0], "bound")
        self.assertEqual(attention("2,4095,1024", outputs="2,8,4095,8", aic_mte2=0.9)[0], "not affine")
        for op in ("x_varlen", "aclnnFlashAttentionVarLenScore", "x_Varlen"):
            self.assertEqual(attention("4095,2,512", op=op, aic_mte2=0.9)[0], "bound")
        vector = lambda **more: verdict("Add", "AI_VECTOR_CORE", "1,1", **more)
        # The mean of two calls, of which one is longer: 0.7 (analysis 1.6).
        text = "Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Output Shapes,aiv_mte2_ratio\n"
        text += "".join(f"a,Add,static,AI_VECTOR_CORE,{BEGIN + 1000 * i},{us},1,1,{ratio}\n" for i, (us, ratio) in enumerate(((10, 0.8), (90, 0.6))))
        self.assertEqual(found(self.run_of([], name="mean", kernel_details__csv=text))["ai_core_performance"]["table"]["rows"][0][1:3], ["bound", "mte2"])
        # 1 % of the time of all tasks: 10 us beside 990, and beside 991.
        for us, rows in ((990, 1), (991, 0)):
            text = (f"Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Output Shapes,aiv_vec_ratio\n"
                    f"a,Add,static,AI_VECTOR_CORE,{BEGIN},10,1,1,0.5\nhcom_allReduce__1_0_1,hcom_allReduce_,N/A,COMMUNICATION,{BEGIN + 100},{us},1,1,N/A\n")
            got = found(self.run_of([], name=f"share{us}", kernel_details__csv=text)).get("ai_core_performance", {"table": {"rows": []}})
            self.assertEqual(len(got["table"]["rows"]), rows)
        self.assertEqual(vector(aiv_vec=0.5, aiv_mte2=0.3, aiv_mte3=0.1), ["bound", "vec, mte2 and mte3", None])
        self.assertEqual(vector(aiv_vec=0.1, aiv_mte2=0.7, aiv_mte3=0), ["bound", "mte2", None])
        self.assertEqual(vector(aiv_vec=0.1, aiv_mte2=0.6, aiv_mte3=0.1), ["improvable", "", 0.6])

    def test_byte_alignment(self):
        def run(name, *moves):
            events = [{"ph": "M", "name": "process_name", "pid": 6, "tid": 0, "args": {"name": "Communication"}}, x("hcom_a__1_0_1", 0, 1000, pid=6)]
            events += [x(kind, 10 * i, us, pid=6, args={"transport type": of, "link type": link, "size(Byte)": size})
                       for i, (kind, of, link, size, us) in enumerate(moves)]
            return self.run_of(events, name=name)
        good, bad = ("Memcpy", "SDMA", "HCCS", 1024, 2), ("Reduce_inline", "SDMA", "HCCS", 1025, 2)
        got = self.assert_limit("byte_alignment", run("a", good), run("b", good, bad), "medium", rows=1)
        self.assertEqual(got["table"]["rows"][0], ["hcom_a__1_0_1", 2049, 4, 2, 2049 / 4000])
        for n, (priority, us) in enumerate((("low", 0.24), ("medium", 0.25), ("medium", 2.3), ("high", 2.4))):
            self.assertEqual(found(run(f"c{n}", ("Memcpy", "SDMA", "HCCS", 1024, 1), bad[:4] + (us,)))["byte_alignment"]["priority"], priority)
        for n, other in enumerate((("Memcpy", "SDMA", "HCCS", 511, 2), ("Memcpy", "SDMA", "ON_CHIP", 1025, 2), ("Memcpy", "RDMA", "HCCS", 1025, 2),
                                   ("Notify_Wait", "SDMA", "HCCS", 1025, 2))):
            self.assertNotIn("byte_alignment", found(run(f"d{n}", other)))

    def test_byte_alignment_of_groups_at_the_same_time(self):
        """A task is under the collective of its own group, though one of another group began later."""
        name = lambda tid, text: {"ph": "M", "name": "thread_name", "pid": 6, "tid": tid, "args": {"name": text}}
        move = lambda tid, size: x("Memcpy", 60, 10, pid=6, tid=tid, args={"transport type": "SDMA", "link type": "HCCS", "size(Byte)": size})
        events = [{"ph": "M", "name": "process_name", "pid": 6, "tid": 0, "args": {"name": "Communication"}},
                  name(0, "Group 0 Communication"), name(1, "Plane 0"), name(2, "Group 1 Communication"), name(3, "Plane 0"),
                  x("hcom_odd__1_0_1", 0, 100, pid=6, tid=0), x("hcom_even__2_0_1", 50, 100, pid=6, tid=2), move(1, 1025), move(3, 2048)]
        [row] = found(self.run_of(events, name="groups"))["byte_alignment"]["table"]["rows"]
        self.assertEqual(row[:4], ["hcom_odd__1_0_1", 1025, 10, 10])

    def test_fusible_operators(self):
        def run(name, times, us, gap=100, moved=0, between="AI_CORE"):
            rows = ["Name,Type,Accelerator Core,Start Time(us),Duration(us),aicore_time(us),aic_mte2_time(us)"]
            for i in range(times):
                for k, op in enumerate("abc"):
                    rows.append(f"{op},{op},AI_CORE,{BEGIN + i * 1000 + k * gap},{us},10,{moved}")
                rows.append(f"d{i},D,{between},{BEGIN + i * 1000 + 900},1,0,0")
            return self.run_of([], name=name, kernel_details__csv="\n".join(rows) + "\n")
        # From the start of the first to the end of the last: 200 us and one operator's; three of 53 us are 0.63 of it, of 20 us 0.27.
        got = self.assert_limit("fusible_operators", run("a", 5, 20), run("b", 6, 20), "low", rows=1)
        self.assertEqual(got["table"]["rows"][0], [0, 2, 6 * 220, 6 * 60, 0, 6, False, True, "a, b, c"])
        self.assertNotIn("fusible_operators", found(run("c", 6, 53)))
        self.assert_limit("fusible_operators", run("d", 6, 90, moved=8), run("e", 6, 90, moved=8.1), "low", rows=1)
        # From begin to end they are 820 of each 1000 us; 1320 of 5901 us above.
        self.assertEqual(found(run("most", 6, 20, gap=400))["fusible_operators"]["priority"], "high")
        self.assertEqual(found(run("half", 6, 20, gap=240))["fusible_operators"]["priority"], "medium")
        run("steps", 6, 20)
        steps = [x(f"ProfilerStep#{i}", i * 1000 + 150, 1000) for i in range(-1, 6)]  # another one begins between b and c
        self.assertIn("fusible_operators", found(self.run_of(steps, name="steps")))
        self.assertIn("fusible_operators", found(run("f", 6, 20, between="AI_CPU")))
        self.assertIn("fusible_operators", found(run("g", 6, 20, between="HCCL")))

    def beside(self, name, series, events=(), **files):
        """A run with counters that have the same value all the time: 20 samples, 10 ms apart."""
        samples = [{"ph": "C", "name": counter, "pid": 9, "tid": 0, "ts": BEGIN + i * 10_000, "args": {"value": value}}
                   for counter, value in series.items() for i in range(20)]
        return self.run_of([*events, *samples], name=name, **files)

    def test_counters_of_the_hardware(self):
        work = [x("Computing", 0, 100_000, pid=5), x("Free", 100_000, 50_000, pid=5)]
        rows = (("hardware_throttle", "throttle_reason npu=0 reason=bit0", 0.009, 0.01, "high"),
                ("hardware_hbm", "hbm_bandwidth_utilization_ratio npu=0", 0.89, 0.9, "low"),
                ("hardware_hccs", "hccs_retries_total npu=0 link=1", 0.9, 1, "high"), ("hardware_hccs", "hccs_crc_errors_total npu=0 link=1", 0.9, 1, "high"),
                ("hardware_roce", "roce_retransmits_total npu=0", 0.9, 1, "high"), ("hardware_roce", "netdev_mac_pfc_packets_delta direction=rx", 99, 100, "high"),
                ("hardware_roce", "network_port_dropped_total port=0 layer=roce direction=rx", 0.9, 1, "high"))
        for n, (check, counter, below, above, priority) in enumerate(rows):
            with self.subTest(counter=counter):
                got = self.assert_limit(check, self.beside(f"a{n}", {counter: below}, work), self.beside(f"b{n}", {counter: above}, work), priority, rows=1)
                self.assertEqual([got["table"]["rows"][0][0], got["table"]["rows"][0][3]], [counter, above])
        self.assertNotIn("hardware_roce", found(self.beside("c", {"network_port_dropped_total port=0 layer=nic direction=rx": 9}, work)))
        self.assertNotIn("hardware_hbm", found(self.beside("d", {"hbm_bandwidth_utilization_ratio npu=0": 1})))
        lanes = [{"ph": "C", "name": "hccs_lanes_up npu=0 link=2", "pid": 9, "tid": 0, "ts": BEGIN + i, "args": {"value": 4 - i}} for i in range(2)]
        self.assertIn("hardware_hccs", found(self.run_of(lanes, name="e")))
        process = lambda *pids: {f"process_memory_bytes npu=0 pid={pid} job= container=": 1 << 20 for pid in pids}
        self.assert_limit("hardware_other_process", self.beside("f", process(7)), self.beside("g", process(7, 8)), "medium", rows=2)
        self.assertNotIn("hardware_other_process", found(self.beside("h", process(7) | {"process_memory_bytes npu=0 pid=8": 1000})))

    def test_throttled_operators(self):
        """One cause, one finding."""
        self.device("run", 24, 48, 1000)
        run = self.beside("run", {"AI Core Freq": 0, "throttle_reason npu=0 reason=bit5": 1, "power_watts npu=0 scope=chip": 310},
                          kernel_details__csv=self.kernels(("a", "Mul", "AI_CORE", 100, 0, "static", "F")))
        got = found(run)
        self.assertNotIn("hardware_throttle", got)
        self.assertIn("throttled (reason=bit5) in 100 % of the samples", got["ai_core_frequency"]["evidence"])
        self.assertIn("power scope=chip at most 310", got["ai_core_frequency"]["evidence"])

    def test_waiting_of_the_host(self):
        # The device is free from 100 to 150 ms of 200.
        work = [x("Computing", 0, 100_000, pid=5), x("Free", 100_000, 50_000, pid=5), x("Computing", 150_000, 50_000, pid=5)]
        for n, (check, resource, limit) in enumerate((("host_cpu", "cpu", 0.3), ("host_memory", "memory", 0.1), ("host_storage", "io", 0.3))):
            counter = f"atlas_host_pressure_waiting_seconds_total resource={resource}"
            self.assert_limit(check, self.beside(f"a{n}", {counter: limit - 0.001}, work), self.beside(f"b{n}", {counter: limit}, work),
                              "high" if limit == 0.3 else "low", cost=50 * limit, rows=1)
            # Only what is in the gap counts; a sample is of the time before it.
            outside = [{"ph": "C", "name": counter, "pid": 9, "tid": 0, "ts": BEGIN + i * 10_000, "args": {"value": 0 if 10 < i <= 15 else 1}} for i in range(20)]
            self.assertNotIn(check, found(self.run_of(work + outside, name=f"c{n}")))
            inside = [sample | {"args": {"value": 1 - sample["args"]["value"]}} for sample in outside]
            self.assertEqual(found(self.run_of(work + inside, name=f"d{n}"))[check]["table"]["rows"][0][2], 1)


if __name__ == "__main__":
    run_tests.main()
