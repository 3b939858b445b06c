"""Communication in the records of the vendor's in-process profiler: operations of several tasks on two streams, as
operator-data b.5 and g.1 describe them. Knows the description of the files alone."""

import struct

from make_operators import NONE, Operators, Slot

MASTER, SLAVE = 0x10001, 0x10002
NOTIFY_WAIT, SDMA, NOTIFY_RECORD = 7, 11, 6  # SQE types
# name, SQE type, bytes, RDMA type; then, unless it is HCCS to rank 1: link type, the other rank
TASKS = (("Notify_Wait", NOTIFY_WAIT, 0, 255), ("Memcpy", SDMA, 1 << 20, 255), ("Notify_Record", NOTIFY_RECORD, 0, 255))


class Task:
    """One task of an operation; `run` holds (start, end) of each execution, as counts of the device."""

    def __init__(self, op, name, sqe, size, rdma, plane, stream, task, context=NONE, link=1, remote=1):
        self.op, self.name, self.sqe, self.bytes, self.rdma = op, name, sqe, size, rdma
        self.plane, self.stream, self.task, self.context = plane, stream, task, context
        self.link, self.remote = link, remote
        self.master = plane == 0
        self.runs = []


class Operation:
    def __init__(self, number, name, group, us, thread, device):
        self.number, self.name, self.group, self.us, self.thread, self.device = number, name, group, us, thread, device
        self.type = name.rstrip("_") + "_"
        self.described = True
        self.tasks = []


class CommunicationOperators(Operators):
    """The operators of the base class, and operations between them."""

    def __init__(self, parent, **options):
        super().__init__(parent, **options)
        self.operations = []
        self.ids = {}

    def slot_of(self, operation):
        """What the writers of records ask for: time, thread and device."""
        slot = Slot(0, "event", operation.thread, 0, operation.device)
        slot.us = operation.us
        return slot

    def operation(self, name, group, us, thread=77, device=0, tasks=TASKS, planes=2, described=True, infos=True,
                  executions=1, apart_us=5000):
        op = Operation(len(self.operations), name, group, us, thread, device)
        op.described, op.infos = described, infos
        self.operations.append(op)
        slot = self.slot_of(op)
        self.api("acl", 0x70001, slot, 2, 90, self.hash_of("HcclAllReduce"))
        self.api("node", 5, slot, 10, 80, self.hash_of(name))
        if described:
            self.record("aging", "compact.node_basic_info", 64, "node", 0, slot, 79, struct.pack(
                "<QIQHHIB", self.hash_of(name), 9, self.hash_of(op.type), 0, 0, 0, 0))
            self.record("aging", "compact.hccl_op_info", 64, "node", 10, slot, 78, struct.pack(
                "<BBQQQ", 2, 4, self.hash_of("RING-RING"), 4096, self.hash_of(group)))
        at = 20
        apart = min(5, 55 / (planes * len(tasks)))  # us; all within the launch
        for plane in range(planes):
            for name_, sqe, size, rdma, *to in tasks:
                stream = 40 + plane
                ids = self.ids.setdefault((device, stream), 0)
                self.ids[device, stream] += 1
                task = Task(op, name_, sqe, size, rdma, plane, stream, ids, NONE, *to)
                op.tasks.append(task)
                self._host_of(task, slot, at, apart)
                at += apart
        for run in range(executions):
            self._run(op, op.us + 600 + run * apart_us)
        return op

    def _host_of(self, task, slot, at, apart):
        self.api("hccl", MASTER if task.master else SLAVE, slot, at, at + 0.8 * apart, self.hash_of(task.name))
        self.record("aging", "compact.task_track", 64, "runtime", 802, slot, at + 0.2 * apart, struct.pack(
            "<HHHHQQ", task.op.device, task.stream, task.task, 0, 14, 0), length=24)
        if not task.op.infos:
            return
        self.record("aging", "additional.hccl_info", 256, "hccl", 0, slot, at + 0.4 * apart, struct.pack(
            "<QQQIIIIIIQIIdQQQIIIIII", self.hash_of(task.name), 0, self.hash_of(task.op.group), 0, task.remote, 8, 0,
            task.plane, task.context, 7 + task.task, 0, 0, 1.5, 0, 0, task.bytes, 0, 4, task.link, 0, task.rdma, 0))

    def _run(self, op, us):
        for task in op.tasks:
            # Planes side by side, the second one us later.
            place = [t for t in op.tasks if t.plane == task.plane].index(task)
            start = self.device_count(us + place * 30 + task.plane)
            end = self.device_count(us + place * 30 + task.plane + 25 + op.number % 3)
            task.runs.append((start, end))
            for function, count in ((0, start), (1, end)):
                self.add(op.device, "stars_soc.data", struct.pack(
                    "<HHHHQHHHH40x", function | task.sqe << 10, 0x6BD3, task.stream, task.task, count, 0, 0, 0, 0))

    def fill(self):
        types = [f"5500_{MASTER}:master", f"5500_{SLAVE}:slave", "20000_458753:HOST_HCCL", "5000_14:NOTIFY_WAIT"]
        super().fill()
        self.files["host", "unaging.additional.type_info_dic"] += [f"{line}\n".encode() for line in types]
        return self

    def operation_rows(self):
        """Of each (operation, execution) in the order they begin on the device: (name, device, start, end)."""
        found = []
        for op in self.operations:
            for run in range(len(op.tasks[0].runs)):
                master = [t.runs[run] for t in op.tasks if t.master]
                first = min(t.runs[run][0] for t in op.tasks)
                found.append((op.device, first, op, run, min(s for s, _ in master), max(e for _, e in master)))
        counts = {}
        rows = []
        for device, _, op, run, start, end in sorted(found, key=lambda f: f[:2]):
            group = self.hash_of(op.group) if op.described or op.infos else None
            by_cpu = "AicpuKernel" in op.name
            number, last = counts.get((device, group, by_cpu), (-1, -1))
            if op.us > last:
                number, last = number + 1, op.us
            counts[device, group, by_cpu] = number, last
            tail = "N/A" if group is None else str(group)[-3:]
            rows.append((op, f"{op.name}_{tail}_{number}_{run + 1}", device, self.wall_ns(start), self.wall_ns(end)))
        return rows
