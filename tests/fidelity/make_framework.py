"""Writes the FRAMEWORK directory of a made PROF directory (make_operators), beside the plan that says which operator of
the framework launched what.

Knows the description of the files alone (in-application 7.1, 7.2). Each slot of the plan is launched within one operator
of PyTorch: on the operator's own thread, or through the task queue on the thread of the launch.
"""

import json
import os
import struct

from channels import BEGIN_US, HOST_COUNT, HOST_RAW, PID
from make_operators import HOST_MHZ, Operators
from text_files import write_bytes, write_text

QUEUE_THREAD_OF = 5000  # the thread of Python is that of the launch and so many more
STEP_SLOTS = 8
STACK = "train.py({}): forward;model.py(12): __call__;<string>(1): <module>"


class Operator:
    """One operator; times in us since the collection began."""

    def __init__(self, name, thread, begin, end, **more):
        self.name, self.thread, self.begin, self.end = name, thread, begin, end
        self.sequence, self.forward_thread, self.pid = -1, 0, PID
        self.types = self.shapes = self.stack = self.modules = None
        self.__dict__.update(more)

    def wall_ns(self):
        return BEGIN_US * 1000 + round(self.begin * 1000), BEGIN_US * 1000 + round(self.end * 1000)


class Framework:
    """`queued`: which slots go through the queue. `counter`: timestamps are counts, as the host's records; else ns."""

    end_key = None  # of the ends of Python's calls; none: that of their call

    def __init__(self, dump, counter=True, queued=lambda slot: slot.number % 3 != 0, beside=True):
        self.dump, self.counter, self.beside = dump, counter, beside
        self.operators, self.marks, self.launcher, self.queue = [], [], {}, []
        self.calls = []        # (thread, name or None, key, begin, end or None)
        self.memory = []       # (slot, taker, address, bytes, taken, released or None); us
        self.collections = [(120.0, 180.5), (900.25, 2900.75)]
        for slot in dump.slots:
            self._slot(slot, queued(slot))
        self._steps()
        self.calls.append((self.operators[0].thread, "<string>(1): <module>", 1, 20, None))

    def _slot(self, slot, queued):
        """aten::x around the CANN operator: 300 us before the launch where it is queued, else around it."""
        thread = slot.thread + QUEUE_THREAD_OF if queued else slot.thread
        at = slot.us - 90 if queued else slot.us + 1
        sequence = slot.number + 1000 * slot.device
        spans = ((0, 80), (5, 70)) if queued else ((-1, 80), (0, 75))
        outer = Operator(f"aten::{slot.kind}", thread, at + spans[0][0], at + spans[0][1], sequence=sequence,
                         shapes="2,3;4;;", types="float;long int;Scalar;None", stack=STACK.format(slot.number % 5),
                         modules=f"Net/{slot.kind}")
        inner = Operator(slot.name or slot.kind, thread, at + spans[1][0], at + spans[1][1])
        self.operators += [outer, inner]
        self.launcher[slot] = (inner, outer)
        key = 100 + slot.number % 3
        self.calls.append((thread, f"model.py({key}): forward", key, outer.begin - 3, outer.end + 3))
        self.calls.append((thread, None, 7, outer.begin - 2, outer.begin - 1))
        taken = outer.begin + 0.5
        if queued and slot.number % 5 == 0:  # the allocator's own operator is not whose memory it is
            self.operators.append(Operator("empty_tensor", thread, outer.begin + 1, outer.begin + 4))
            taken = outer.begin + 2
        released = None if slot.number % 4 == 3 else taken + 60_000
        self.memory.append((slot, outer, 0x12c100000000 + 0x1000 * (slot.number % 6), 512 * (slot.number + 1), taken, released))
        if slot.number % 4 == 1:  # a backward operator long after, on a thread of its own
            backward = Operator(f"{slot.kind}Backward0", thread + 7, slot.us + 100_000, slot.us + 100_050,
                                sequence=sequence, forward_thread=1)
            self.operators.append(backward)
        if queued:
            correlation = 8000 + slot.number + 1000 * slot.device
            put, taken = (at + 20, at + 25, thread), (slot.us - 1, slot.us + 75, slot.thread)
            self.queue.append((correlation, slot, put, taken))
            for category, (time, tid) in enumerate(((put[0], thread), (put[1], thread), (taken[0], slot.thread),
                                                    (taken[1], slot.thread))):
                self.marks.append((time, category, correlation, tid, slot.name or slot.kind))

    def _steps(self):
        """ProfilerStep#n on the thread of the first operator, each over STEP_SLOTS slots."""
        thread = self.operators[0].thread
        slots = self.dump.slots
        self.steps = []
        numbers = sorted({slot.number for slot in slots})
        for step, first in enumerate(numbers[::STEP_SLOTS]):
            last = numbers[min(len(numbers) - 1, step * STEP_SLOTS + STEP_SLOTS - 1)]
            begin = min(slot.us for slot in slots if slot.number == first) - 95
            end = min(slot.us for slot in slots if slot.number == last) + 100
            self.steps.append((step + 50, Operator(f"ProfilerStep#{step + 50}", thread, begin, end)))
        self.operators += [op for _, op in self.steps]

    def step_of(self, op):
        return next((number for number, step in self.steps if step.begin <= op.begin <= step.end), None)

    def timestamp(self, us):
        return HOST_COUNT + round(us * HOST_MHZ) if self.counter else HOST_RAW + round(us * 1000)

    @staticmethod
    def field(kind, text):
        text = text if isinstance(text, bytes) else text.encode()
        return struct.pack("<HI", kind, len(text)) + text

    def record(self, kind, fixed, fields):
        body = fixed + b"".join(self.field(number, text) for number, text in fields if text is not None)
        return struct.pack("<HI", kind, len(body)) + body

    def files(self):
        ranges = [self.record(1, struct.pack(
            "<3q4Q2B", self.timestamp(op.begin), self.timestamp(op.end), op.sequence, op.pid, op.thread, op.thread,
            op.forward_thread, 0, 0), ((2, op.name), (3, op.types), (4, op.shapes), (8, op.stack), (9, op.modules)))
            for op in sorted(self.operators, key=lambda op: op.end)]
        marks = [self.record(2, struct.pack("<q4Q", self.timestamp(time), category, correlation, thread, PID), ((1, name),))
                 for time, category, correlation, thread, name in self.marks]
        return {"torch.op_range": ranges, "torch.op_mark": marks, **self._python_files(), **self._memory_files()}

    def _python_files(self):
        # At one time what ends comes before what begins, inner before outer.
        events = [(end, 0, -begin, 1, thread, self.end_key or key) for thread, _, key, begin, end in self.calls if end is not None]
        events += [(begin, 1, -(end or 1e12), 0, thread, key) for thread, _, key, begin, end in self.calls]
        events.append((5, 0, 0, 3, 99, 7))  # the end of what began before the collection
        functions = [struct.pack("<4QB", self.timestamp(at), thread, PID, key, tag)
                     for at, _, _, tag, thread, key in sorted(events)]
        names = sorted({(key, name) for _, name, key, _, _ in self.calls if name})
        return {"torch.python_tracer_func": functions,
                "torch.python_tracer_hash": [self.record(4, struct.pack("<Q", key), ((1, name),)) for key, name in names],
                "torch.gc_record": [struct.pack("<Q2q", PID, self.timestamp(a), self.timestamp(b)) for a, b in self.collections],
                "torch.param_tensor_info": [self.record(5, struct.pack("<Q", 1), ((1, "conv1.weight"),))]}

    def reports(self):
        """(time in us, kind, address, bytes, totals, thread, device) of the allocator, by time. An address is given again."""
        found = []
        for slot, taker, address, size, taken, released in self.memory:
            totals = (10_000 + size, 1 << 21, 11_000 + size)
            found.append((taken, 0, address + (slot.number // 6) * 0x100, size, totals, taker.thread, slot.device))
            if released is not None:
                less = (9_000 + size, 1 << 21, 10_500 + size)
                found.append((released, 2, address + (slot.number // 6) * 0x100, -size, less, taker.thread, slot.device))
                found.append((released + 0.5, 1, address + (slot.number // 6) * 0x100, -size, less, taker.thread, slot.device))
        found.append((30, 1, 0x99, -512, (1, 2, 3), 77, 0))  # taken before the collection
        return sorted(found)

    def _memory_files(self):
        def record(at, kind, address, size, totals, thread, device, device_type=20):
            return self.record(3, struct.pack("<7qb4B2Q", address, self.timestamp(at), size, *totals, 4711, device_type, device, 0,
                                              kind, 0, thread, PID), ())
        return {"torch.memory_usage": [record(*report) for report in self.reports()] + [
            record(40, 0, 0x77, 512, (1, 2, 3), 77, 0, 0)]}

    def python_calls(self):
        """(thread, name, begin, end) in wall time, in the order of their numbers, each with its parent's number."""
        last = max(at for _, _, _, begin, end in self.calls for at in (begin, end) if at is not None)
        wall = lambda us: BEGIN_US * 1000 + round(us * 1000)
        rows = sorted(((thread, wall(begin), -wall(last if end is None else end), name or str(key))
                       for thread, name, key, begin, end in self.calls))
        result = []
        for number, (thread, begin, minus_end, name) in enumerate(rows):
            around = [i for i, (t, b, e, _) in enumerate(rows[:number]) if t == thread and b <= begin and -e >= -minus_end]
            result.append((thread, name, begin, -minus_end, number, max(around, default=number)))
        return result

    def write(self):
        """After the dump's own files."""
        base = os.path.dirname(self.dump.path) if self.beside else self.dump.path
        folder = os.path.join(base, "FRAMEWORK")
        os.makedirs(folder)
        for name, records in self.files().items():
            write_bytes(os.path.join(folder, name), b"".join(records))
        info = {"config": {"common_config": {"with_stack": True}},
                "start_info": {"syscnt_enable": self.counter, "freq": HOST_MHZ, "start_cnt": HOST_COUNT,
                               "start_monotonic": HOST_RAW},
                "end_info": {"collectionTimeEnd": BEGIN_US * 1000 + 10**9, "MonotonicTimeEnd": HOST_RAW + 10**9},
                "rank_id": 0}
        write_text(os.path.join(base, "profiler_info_0.json"), json.dumps(info))
        return folder


def written(parent, counter=True, beside=True, queued=None, **options):
    """Of a dump of made.Operators, both as they are in this folder."""
    os.makedirs(parent, exist_ok=True)
    dump = Operators(parent, **options).fill()
    framework = Framework(dump, counter=counter, beside=beside, **({} if queued is None else {"queued": queued}))
    dump.write()
    framework.write()
    return framework
