"""The output of a training on many ranks, as PyTorch's profiler leaves it in text form: eight ranks of tensor parallelism on
a node, eight stages of a pipeline, the rest data parallelism with experts. One rank is slow, one link too."""

import json
import multiprocessing
import os

TENSOR, STAGES, PER_NODE = 8, 8, 8
STEPS = 2
OPERATIONS = {"allReduce": 96, "reduceScatter": 8, "allGather": 8, "alltoallv": 32}
MESSAGES = 16
KERNELS = 500
BEGIN_US = 1736408883000000
SLOW_RANK, SLOW_MS = 77, 0.5  # later than the others in each operation of its groups
SLOW_PAIR = (9, 10)


class Layout:
    def __init__(self, ranks):
        self.ranks = ranks
        self.data = max(ranks // (TENSOR * STAGES), 1)

    def place(self, rank):
        return rank % TENSOR, rank // TENSOR % self.data, rank // (TENSOR * self.data)

    def rank(self, tensor, data, stage):
        return (stage * self.data + data) * TENSOR + tensor

    def groups(self, rank):
        """By kind: its name and ranks."""
        tensor, data, stage = self.place(rank)
        return {"tp": (f"1{stage:03}{data:03}", [self.rank(i, data, stage) for i in range(TENSOR)]),
                "ep": (f"2{stage:03}{tensor:03}", [self.rank(tensor, i, stage) for i in range(self.data)])}

    def neighbours(self, rank):
        """Groups of two with the stages before and behind."""
        tensor, data, stage = self.place(rank)
        for first in (stage - 1, stage):
            if 0 <= first < self.ranks // (TENSOR * self.data) - 1:
                other = self.rank(tensor, data, first + 1 if first == stage else first)
                yield f"3{first:03}{data:03}{tensor:03}", other, first == stage


def noise(*numbers):
    """0 to 1, the same each time."""
    value = 0x9E3779B9
    for number in numbers:
        value = ((value ^ number) * 0x85EBCA6B + 0xC2B2AE35) & 0xFFFFFFFF
        value ^= value >> 13
    return value / 0xFFFFFFFF


def transport(mb, ms, packets=0):
    sizes = {str(mb / packets): [packets, ms]} if packets else {}
    return {"Transit Size(MB)": mb, "Transit Time(ms)": ms, "Bandwidth(GB/s)": round(mb / ms, 4) if ms else 0, "Large Packet Ratio": 0,
            "Size Distribution": sizes}


def operation(start, elapse, transit, mb, rdma):
    wait = elapse - transit
    none = transport(0, 0)
    moved = transport(mb, transit, 4)
    return {"Communication Time Info": {"Start Timestamp(us)": start, "Elapse Time(ms)": elapse, "Transit Time(ms)": transit, "Wait Time(ms)": wait,
                                        "Synchronization Time(ms)": wait, "Idle Time(ms)": 0, "Wait Time Ratio": round(wait / elapse, 4),
                                        "Synchronization Time Ratio": round(wait / elapse, 4)},
            "Communication Bandwidth Info": {"RDMA": moved if rdma else none, "HCCS": none if rdma else moved, "PCIE": none,
                                             "SDMA": none if rdma else transport(mb, transit), "SIO": none}}


def communication(layout, rank, step):
    collective, p2p, at = {}, {}, BEGIN_US + step * 10**6
    groups = layout.groups(rank)
    for kind, count in OPERATIONS.items():
        name, ranks = groups["tp" if kind == "allReduce" else "ep"]
        for i in range(count):
            transit = 1 + 0.02 * noise(len(name), i, step)
            late = SLOW_MS if SLOW_RANK in ranks and rank != SLOW_RANK else 0
            elapse = transit + 0.05 + 0.01 * noise(rank, i, step) + late
            collective[f"hcom_{kind}__{name[-3:]}_{i}_1@{name}"] = operation(at, elapse, transit, 16.0 + len(ranks), kind != "allReduce")
            at += 2000.25
    for name, other, sends in layout.neighbours(rank):
        for i in range(MESSAGES):
            transit = 0.5 + 0.01 * noise(i, step)
            elapse = transit + 0.02 + 0.01 * noise(rank, other, i)
            p2p[f"hcom_{'send' if sends else 'receive'}__{name[-3:]}_{i}_1@{name}"] = operation(at, elapse, transit, 8.0, True)
            at += 1000.5
    return {"collective": collective, "p2p": p2p}


def link(kind, mb, ms, op):
    return {"Transport Type": kind, "Transit Size(MB)": mb, "Transit Time(ms)": ms, "Bandwidth(GB/s)": round(mb / ms, 4), "Op Name": op}


def matrix(layout, rank, step):
    collective, p2p = {}, {}
    groups = layout.groups(rank)
    for kind in OPERATIONS:
        name, ranks = groups["tp" if kind == "allReduce" else "ep"]
        mine = ranks.index(rank)
        for part in ("top1", "top2", "top3", "middle", "bottom1", "bottom2", "bottom3", "total"):
            pairs = {}
            for other, number in enumerate(ranks):
                local = number == rank
                ms = (1 + 0.05 * noise(rank, number, step)) * (4 if (rank, number) == SLOW_PAIR else 1)
                pairs[f"{mine}-{other}"] = link("LOCAL" if local else "HCCS" if kind == "allReduce" else "RDMA", 10.0, 0.05 if local else ms,
                                                "" if part == "total" else f"hcom_{kind}__{name[-3:]}_0_1")
            collective[f"{kind.lower()}-{part}@{name}"] = pairs
    for name, _, sends in layout.neighbours(rank):
        if sends:
            for i in range(MESSAGES):
                p2p[f"hcom_send__{name[-3:]}_{i}_1@{name}"] = {"0-0": link("LOCAL", 8.0, 0.03, ""), "0-1": link("RDMA", 8.0, 0.5, "")}
    return {"collective": collective, "p2p": p2p}


def write(folder, layout, rank):
    top = os.path.join(folder, f"node{rank // PER_NODE:03}_{10000 + rank}_20260101000000000_ascend_pt")
    out = os.path.join(top, "ASCEND_PROFILER_OUTPUT")
    os.makedirs(out)
    files = {os.path.join(top, f"profiler_info_{rank}.json"): "{}",
             os.path.join(top, "profiler_metadata.json"): json.dumps({"distributed_args": {
                 "tensor_model_parallel_size": TENSOR, "pipeline_model_parallel_size": layout.ranks // (TENSOR * layout.data),
                 "data_parallel_size": layout.data, "context_parallel_size": 1, "world_size": layout.ranks}})}
    rows = ["Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
            "Communication(Not Overlapped and Exclude Receive),Preparing"]
    for step in range(STEPS):
        computing = 400000 + 1000 * noise(rank, step) + (SLOW_MS * 1000 * OPERATIONS["allReduce"] if rank == SLOW_RANK else 0)
        uncovered, free = 100000 + 1000 * noise(step, rank), 20000 + 500 * noise(7, step, rank)
        rows.append(f"{step},{computing},{uncovered},50000,{uncovered + 50000},{free},{computing + uncovered + free - 8000},8000,{uncovered - 8000},100")
    files[os.path.join(out, "step_trace_time.csv")] = "\n".join(rows) + "\n"
    files[os.path.join(out, "communication.json")] = json.dumps({f"step{step}": communication(layout, rank, step) for step in range(STEPS)})
    files[os.path.join(out, "communication_matrix.json")] = json.dumps({f"step{step}": matrix(layout, rank, step) for step in range(STEPS)})
    rows = ["Step Id,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,Input Shapes,Input Data Types,Output Shapes,"
            "aicore_time(us),aic_mac_ratio,aic_mte2_ratio,aiv_vec_ratio,Stream ID"]
    for i in range(KERNELS):
        kind = ("MatMulV2", "Add", "Mul", "LayerNorm", "SoftmaxV2")[i % 5]
        us = 100 + 700 * noise(i)
        rows.append(f'{i % STEPS},{kind}_{i % 50},{kind},static,{"AI_CORE" if i % 5 == 0 else "AI_VECTOR_CORE"},{BEGIN_US + i * 2000}.250,{us:.3f},1,24,'
                    f'"{1024 + i % 50},4096;4096,4096",FLOAT16;FLOAT16,"{1024 + i % 50},4096",{us:.3f},0.6,0.2,0.1,{i % 3}')
    files[os.path.join(out, "kernel_details.csv")] = "\n".join(rows) + "\n"
    for path, text in files.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def make(folder, ranks):
    """Directories of so many ranks, a multiple of 64."""
    layout = Layout(ranks)
    with multiprocessing.Pool(os.cpu_count()) as pool:
        pool.starmap(write, [(folder, layout, rank) for rank in range(ranks)], chunksize=8)
