"""findings.py FOLDER: for each check of `profctl advise` the smallest run in which it finds something, in FOLDER/<check>/run, in the
files of torch_npu's profiler; where it compares with another run, that is FOLDER/<check>/baseline.
findings.py FOLDER DUMP: one that needs a dump of profd, too, of a copy of this one."""

import json
import os
import shutil
import sys

BEGIN = 1736408883000000  # us
PROCESSES = {1: "Python", 2: "CANN", 3: "Ascend Hardware", 5: "Overlap Analysis", 6: "Communication", 9: "Counters"}
COLUMNS = "Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Input Shapes,Output Shapes,Input Data Types,Block Dim,Mix Block Dim"
RATIOS = "aicore_time(us),aic_mac_ratio,aic_mte2_time(us),aic_mte2_ratio,aiv_vec_ratio"


def x(name, start, length, pid=1, **args):
    """A slice of the timeline; us."""
    return {"ph": "X", "name": name, "pid": pid, "tid": 7, "ts": BEGIN + start, "dur": length, "args": args}


def counter(name, value, key="value"):
    """Twenty samples, 10 ms apart."""
    return [{"ph": "C", "name": name, "pid": 9, "tid": 0, "ts": BEGIN + 10_000 * i, "args": {key: value}} for i in range(20)]


def kernels(*rows, gap=1000):
    """(name, type, core, us, further columns by name), one after the other."""
    lines = [f"{COLUMNS},{RATIOS}"]
    for i, (name, kind, core, us, *more) in enumerate(rows):
        values = dict.fromkeys((COLUMNS + "," + RATIOS).split(","), "") | {"OP State": "static", "Block Dim": 24, "Mix Block Dim": 0} | (more[0] if more else {})
        values |= {"Name": name, "Type": kind, "Accelerator Core": core, "Start Time(us)": BEGIN + i * gap, "Duration(us)": us}
        lines.append(",".join(f'"{value}"' for value in values.values()))
    return {"kernel_details.csv": "\n".join(lines) + "\n"}


def collectives(*operations):
    """(name, elapsed ms, {transport: (MB, ms)})"""
    info = {f"{name}@9": {"Communication Time Info": {"Start Timestamp(us)": BEGIN + i * 1000, "Elapse Time(ms)": elapsed, "Transit Time(ms)": elapsed},
                          "Communication Bandwidth Info": {of: {"Transit Size(MB)": mb, "Transit Time(ms)": ms, "Size Distribution": {}}
                                                           for of, (mb, ms) in parts.items()}} for i, (name, elapsed, parts) in enumerate(operations)}
    return {"communication.json": json.dumps({"step1": {"collective": info}})}


def step(computing, alone, free):
    """step_trace_time.csv; us."""
    return {"step_trace_time.csv": f"Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n1,{computing},{alone},0,{alone},{free}\n"}


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def run(folder, *ranks):
    """Each rank is (events, files by name); a name with a / is beside ASCEND_PROFILER_OUTPUT."""
    head = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}} for pid, name in PROCESSES.items()]
    for rank, (events, files) in enumerate(ranks):
        output = os.path.join(folder, f"r{rank}_ascend_pt")
        write(os.path.join(output, f"profiler_info_{rank}.json"), "{}")
        device = {"DeviceInfo": [{"ai_core_num": 24, "aiv_num": 48, "aic_frequency": "1800"}]}
        write(os.path.join(output, "PROF_1", "device_0", "info.json.0"), json.dumps(device))
        for name, text in ({"trace_view.json": json.dumps(head + list(events))} | files).items():
            write(os.path.join(output, *([] if "/" in name else ["ASCEND_PROFILER_OUTPUT"]), name), text)


WORK = [x("ProfilerStep#1", 0, 200_000), x("Computing", 0, 100_000, 5), x("Free", 100_000, 50_000, 5), x("Computing", 150_000, 50_000, 5)]
STACK = {"Call stack": "train.py(7): forward;\r\ntrain.py(40): main"}
OPERATOR = {"cat": "cpu_op"}
WAITING = "atlas_host_pressure_waiting_seconds_total resource="


def waits(resource):
    return (WORK + counter(WAITING + resource, 0.6), {})


def all_to_all(mb):
    return [([], step(80_000, 20_000, 0) | collectives(("hcom_alltoallv__1_0_1", 10 + (each > 100), {"SDMA": (each, 1)}))) for each in mb]


RUNS = {
    "overall_summary": [(WORK, {})],
    "slow_rank": [([], step(50_000, 30_000, 20_000)), ([], step(70_000, 10_000, 20_000))],
    "slow_link": [([], step(1, 1, 1) | collectives(("hcom_a__1_1_1", 5, {"RDMA": (100, ms), "SDMA": (36, 2)}))) for ms in (50, 25)],
    "environment": [([x("a", 0, 1)], {"./profiler_metadata.json": json.dumps({"ENV_VARIABLES": {
        "ASCEND_GLOBAL_LOG_LEVEL": "1", "HCCL_RDMA_TC": "1", "HCCL_RDMA_SL": "1", "ACLNN_CACHE_LIMIT": "100", "HOST_CACHE_CAPACITY": "0",
        "ASCEND_ENHANCE_ENABLE": "0", "PYTORCH_NPU_ALLOC_CONF": "max_split_size_mb:1", "ASCEND_LAUNCH_BLOCKING": "1"}})})],
    "stage_imbalance": [([], step(us, 0, 100) | collectives(("hcom_send__1_1_1", 1, {"HCCS": (1, 1)}))) for us in (90_000, 110_000)],
    "wait_for_rank": [([], step(80_000, 20_000, 0) | collectives(("hcom_allReduce__1_0_1", ms, {}))) for ms in (16, 1, 16)],
    "bandwidth_imbalance": [([], step(80_000, 20_000, 0) | collectives(("hcom_a__1_1_1", 5, {"RDMA": (100, ms)}))) for ms in (50, 25, 25)],
    "expert_imbalance": all_to_all((100, 150, 100)),
    "kernel_compare": [([], kernels(("a", "Mul", "AI_VECTOR_CORE", 300)))],
    "api_compare": [([x("aten::linear", 0, 300) | OPERATOR, x("aten::mm", 10, 200) | OPERATOR], {})],
    "ai_core_frequency": [(counter("AI Core Freq", 1200, "MHz"), kernels(("a", "FlashAttentionScore", "AI_CORE", 5000)))],
    "aicpu": [([], kernels(("a", "Index", "AI_CPU", 500, {"Input Data Types": "DOUBLE"}), ("b", "Mul", "AI_VECTOR_CORE", 100)))],
    "dynamic_shape": [([], kernels(("a", "Mul", "AI_VECTOR_CORE", 5, {"OP State": "dynamic"})))],
    "operator_no_bound": [([], kernels(("a", "Mul", "AI_VECTOR_CORE", 30, {"aiv_vec_ratio": 0.5})))],
    "block_dim": [([], kernels(("a", "MatMulV2", "AI_CORE", 500, {"Block Dim": 25})))],
    "ai_core_performance": [([], kernels(("a", "MatMulV2", "AI_CORE", 500, {
        "Input Shapes": "4096,8191;8191,4096", "Output Shapes": "4096,4096", "aic_mac_ratio": 0.5})))],
    "hardware_throttle": [(WORK + counter("throttle_reason npu=0 reason=bit0", 1), {})],
    "hardware_hbm": [(WORK + counter("hbm_bandwidth_utilization_ratio npu=0", 0.95), {})],
    "hardware_other_process": [(WORK + [each for pid in (7, 8) for each in counter(f"process_memory_bytes npu=0 pid={pid} job= container=", 1 << 30)], {})],
    "synchronize_stream": [([event for i in range(20) for event in (x("Node@launch", i * 100, 10, 2), x("AscendCL@aclrtSynchronizeStream", i * 100 + 20, 10, 2))], {})],
    "gc": [([x("GC", 10_000 * i, 3000) | {"cat": "GC"} for i in range(3)], {})],
    "conjectured_gc": [([x("Free", 0, 300_000, 5), x("AscendCL@other", 10**7, 5, 2)], {})],
    "operator_dispatch": [([x("ProfilerStep#1", 0, 100_000)] + [x("AscendCL@aclopCompileAndExecute", i * 1000, 300, 2) for i in range(20)], {})],
    "sync_batch_norm": [([x("SyncBatchNorm", i * 1000, 10) for i in range(20)], {})],
    "affinity_api": [([x("aten::gelu", i * 100, 10, **STACK) for i in range(3)] + [x("aten::rsqrt", 400, 5, **STACK), x("aten::mul", 410, 5, **STACK)], {})],
    "fusible_operators": [([], kernels(*[(name, name, "AI_CORE", 20, {"aicore_time(us)": 10, "aic_mte2_time(us)": 0}) for _ in range(8) for name in "abc"], gap=100))],
    "host_cpu": [waits("cpu")],
    "host_memory": [waits("memory")],
    "host_storage": [waits("io")],
    "hardware_pcie": [(WORK + counter("pcie_bandwidth_bytes_per_second direction=tx type=posted stat=avg", 18e9), {})],
    "host_profiling": [(counter("atlas_host_process_cpu_seconds_total pid=7 comm=profd", 0.2), {})],
    "packet": [([], collectives(*[(f"hcom_x__1_{i}_1", 1, {"SDMA": (1, 0.1)}) for i in range(10)]))],
    "bandwidth_contention": [([], kernels(("m", "MatMulV2", "AI_CORE", 800)) | collectives(("hcom_a__1_1_1", 1, {"SDMA": (5, 1)})))],
    "byte_alignment": [([x("hcom_a__1_0_1", 0, 1000, 6)] + [x("Memcpy", 10, 200, 6, **{"transport type": "SDMA", "link type": "HCCS", "size(Byte)": 1025})], {})],
    "retransmission": [([], step(1, 1, 1) | collectives(("hcom_a__1_1_1", 4500, {"RDMA": (100, 4400)}))) for _ in range(2)],
    "hardware_hccs": [(WORK + counter("hccs_retries_total npu=0 link=1", 20), {})],
    "hardware_roce": [(WORK + counter("roce_retransmits_total npu=0", 50), {})],
    "memory": [([x("ProfilerStep#1", 0, 1_000_000)] + [x("AscendCL@aclrtFree", 10_000 * i, 1000, 2) for i in range(60)], {})],
    "dataloader": [([x("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 0, 25_000)], {})],
}
BASELINES = {
    "kernel_compare": [([], kernels(("a", "Mul", "AI_VECTOR_CORE", 100)))],
    "api_compare": [([x("aten::linear", 0, 100) | OPERATOR, x("aten::mm", 10, 50) | OPERATOR], {})],
}


def far_from_npu(dump, folder):
    """A copy of a dump of profd, on a node with two sockets; the process is bound to the wrong one."""
    copy = os.path.join(folder, os.path.basename(dump))
    shutil.copytree(dump, copy)
    path = os.path.join(copy, "profd_manifest.json")
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    for device in manifest["node"]["devices"]:
        device["local_cpus"] = "0-31"
    for process in manifest["session"]["processes"]:
        process["cpus"] = "32-63"
    write(path, json.dumps(manifest))


if __name__ == "__main__":
    for what, runs in (("run", RUNS), ("baseline", BASELINES)):
        for check, ranks in runs.items():
            run(os.path.join(sys.argv[1], check, what), *ranks)
    if len(sys.argv) > 2:
        far_from_npu(sys.argv[2], os.path.join(sys.argv[1], "host_affinity", "run"))
