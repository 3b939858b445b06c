"""Ranks of a small cluster, made of random numbers: two nodes, tensor and data parallelism, two stages of a pipeline."""

import json
import random

from advise_case import AdviseCase

TRANSPORTS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")
STEP_COLUMNS = ("Computing", "Communication(Not Overlapped)", "Overlapped", "Communication", "Free", "Stage", "Bubble",
                "Communication(Not Overlapped and Exclude Receive)", "Preparing")
BEGIN_US = 1736408883000000


def group_name(identity):
    """Two hashes of 32 bits, as the collective library makes them."""
    high = low = 0
    for byte in identity.encode():
        high, low = (high * 29 + byte) % 2**32, (low * 131 + byte) % 2**32
    return str(high << 32 | low)


class ClusterRanks:
    """Eight ranks: 0-3 are the first stage, 4-7 the second; pairs (0, 1), (2, 3) are tensor parallel, rank r sends to r + 4."""
    RANKS = 8
    STEPS = (3, 4)

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.groups = {}  # name: (id, label, ranks, p2p)
        for label, sets, p2p in (("tp", [(0, 1), (2, 3), (4, 5), (6, 7)], False), ("dp", [(0, 2), (1, 3), (4, 6), (5, 7)], False),
                                 ("pp", [(r, r + 4) for r in range(4)], True)):
            for ranks in sets:
                identity = f"10.0.0.{ranks[0]}%eth0_6000{ranks[0]}_{label}"
                self.groups[group_name(identity)] = (identity, label, ranks, p2p)
        self.steps = {(rank, step): [self.us() for _ in STEP_COLUMNS] for rank in range(self.RANKS) for step in self.STEPS}
        self.operations = {}  # (group, step, op): {rank: info}
        self.links = {}       # (group, step, name): {rank: {(source, destination): link}}
        for group, (_, label, ranks, p2p) in self.groups.items():
            for step in self.STEPS:
                self.add_operations(group, label, ranks, p2p, step)

    def us(self):
        return self.rng.randrange(10**9) / 1000

    def transport(self):
        if self.rng.random() < 0.3:
            return {"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, "Large Packet Ratio": 0, "Size Distribution": {}}
        mb, ms = self.rng.random() * 100, self.rng.random() * 10 + 0.001
        sizes = {str(self.rng.random() * 8): [self.rng.randrange(1, 50), self.rng.random()] for _ in range(self.rng.randrange(3))}
        return {"Transit Size(MB)": mb, "Transit Time(ms)": ms, "Bandwidth(GB/s)": round(mb / ms, 4), "Large Packet Ratio": self.rng.random() if sizes else 0,
                "Size Distribution": sizes}

    def info(self):
        transit, wait, synchronization = (self.rng.random() * 5 for _ in range(3))
        return {"Communication Time Info": {"Start Timestamp(us)": BEGIN_US + self.rng.randrange(10**9) / 4, "Elapse Time(ms)": self.rng.random() * 20,
                                            "Transit Time(ms)": transit, "Wait Time(ms)": wait, "Synchronization Time(ms)": synchronization,
                                            "Idle Time(ms)": self.rng.random(), "Wait Time Ratio": round(wait / (wait + transit), 4),
                                            "Synchronization Time Ratio": round(synchronization / (synchronization + transit), 4)},
                "Communication Bandwidth Info": {name: self.transport() for name in TRANSPORTS}}

    def link(self, kind, name):
        mb, ms = self.rng.random() * 50, self.rng.random() + 0.001
        return {"Transport Type": kind, "Transit Size(MB)": mb, "Transit Time(ms)": ms, "Bandwidth(GB/s)": round(mb / ms, 4), "Op Name": name}

    def add_operations(self, group, label, ranks, p2p, step):
        for i in range(3):
            for rank in ranks:
                kind = ("send" if rank == ranks[0] else "receive") if p2p else {"tp": "allReduce", "dp": "allGather"}[label]
                name = f"hcom_{kind}__{group[-3:]}_{i}_1"
                self.operations.setdefault((group, step, name), {})[rank] = self.info()
        names = ["send-total"] if p2p else [f"{label}op-{part}" for part in ("top1", "middle", "total")]
        for name in names:
            for local, rank in enumerate(ranks):
                self.links.setdefault((group, step, name), {})[rank] = {
                    (local, other): self.link("LOCAL" if other == local else "HCCS", "" if name.endswith("total") else f"hcom_x__{group[-3:]}_0_1")
                    for other in range(len(ranks))}

    def of_rank(self, rank, what, key_of):
        found = {}
        for (group, step, name), by_rank in what.items():
            kind = "p2p" if self.groups[group][3] else "collective"
            kinds = found.setdefault(f"step{step}", {"collective": {}, "p2p": {}})
            if rank in by_rank:
                kinds[kind][f"{name}@{group}"] = key_of(by_rank[rank])
        return found

    def write(self, write, name):
        for rank in range(self.RANKS):
            folder = (name, f"node{rank // 4}_{1000 + rank}_20260101000000000_ascend_pt")
            write(*folder, f"profiler_info_{rank}.json", text="{}")
            write(*folder, "profiler_metadata.json", text=json.dumps({
                "distributed_args": {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "data_parallel_size": 2, "world_size": 8},
                "parallel_group_info": {identity: {"group_name": label, "group_rank": ranks.index(rank), "global_ranks": list(ranks)}
                                        for identity, label, ranks, _ in self.groups.values() if rank in ranks}}))
            rows = [",".join(("Step",) + STEP_COLUMNS)] + [",".join(map(str, [step, *self.steps[rank, step]])) for step in self.STEPS]
            out = (*folder, "ASCEND_PROFILER_OUTPUT")
            write(*out, "step_trace_time.csv", text="\n".join(rows) + "\n")
            write(*out, "communication.json", text=json.dumps(self.of_rank(rank, self.operations, lambda info: info)))
            write(*out, "communication_matrix.json", text=json.dumps(self.of_rank(rank, self.links, lambda links: {
                f"{source}-{destination}": link for (source, destination), link in links.items()})))


class ClusterCase(AdviseCase):
    """Runs of a few operations on some ranks."""

    def operations(self, name, ops, step_us=100_000, hosts=True, **more):
        """`ops`: {operation@group: {rank: (elapsed ms, {transport: (MB, ms)})}}."""
        ranks = sorted({rank for by_rank in ops.values() for rank in by_rank})
        for rank in ranks:
            folder = (name, f"node{rank // 8}_{1000 + rank}_20260101000000000_ascend_pt" if hosts else f"r{rank}_ascend_pt")
            self.write(*folder, f"profiler_info_{rank}.json", text="{}")
            out = (*folder, "ASCEND_PROFILER_OUTPUT")
            self.write(*out, "step_trace_time.csv",
                       text=f"Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n1,{step_us * 0.8},{step_us * 0.2},0,{step_us * 0.2},0\n")
            kinds = {"collective": {}, "p2p": {}}
            for i, (key, by_rank) in enumerate(ops.items()):
                if rank not in by_rank:
                    continue
                elapsed, transports = by_rank[rank]
                kinds["p2p" if "hcom_send" in key or "hcom_receive" in key else "collective"][key] = {
                    "Communication Time Info": {"Start Timestamp(us)": BEGIN_US + i * 1000, "Elapse Time(ms)": elapsed, "Transit Time(ms)": elapsed},
                    "Communication Bandwidth Info": {of: {"Transit Size(MB)": mb, "Transit Time(ms)": ms, "Size Distribution": {}} for of, (mb, ms) in transports.items()}}
            self.write(*out, "communication.json", text=json.dumps({"step1": kinds}))
            for file, made in more.items():
                self.write(*out, file.replace("__", "."), text=made(rank))
        return f"{self.folder}/{name}"
