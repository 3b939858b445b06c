#!/usr/bin/env python3
"""sim_framework's directories, read back by the tables of what frameworks write (in-application 7.2, 7.6)."""

import json
import os
import struct
import subprocess
import sys
import unittest

from profd_harness import BUILD, temp_folder
from text_files import read_bytes, read_json

# Files with records of type, length, fixed part and fields: outer type, format, index of the name's field.
TORCH = {
    "torch.op_range": (1, "<3q4Q2B", 2),
    "torch.op_mark": (2, "<q4Q", 1),
    "torch.memory_usage": (3, "<7qb4B2Q", None),
    "torch.python_tracer_hash": (4, "<Q", 1),
    "torch.param_tensor_info": (5, "<Q", 1),
}
# Without lengths.
TORCH_RAW = {"torch.python_tracer_func": "<4QB", "torch.gc_record": "<Q2q"}
MINDSPORE = {
    "mindspore.op_range": (0, "<5Qi3Hb3B", 13),
    "mindspore.py_stack": (1, "<5Qi3Hb3B", 13),
    "mindspore.memory_usage": (2, "<i11QI4B", 13),
    "mindspore.record_shapes": (3, "<", 0),
}
LAYOUTS = {
    "torch": TORCH,
    "torch-57": dict(TORCH, **{"torch.op_range": (1, "<3q4QB", 2)}),
    "mindspore": MINDSPORE,
    "mindspore-57": {"op_range_0": (1, "<3q4Q?", 3)},
    "mindspore-73": {"op_range_0": (1, "<3q6Q?", 3)},
    "mindspore-74": {"op_range_0": (1, "<3q6Qb?", 3)},
}
SIZES = {"torch": 58, "torch-57": 57, "mindspore": 54, "mindspore-57": 57, "mindspore-73": 73, "mindspore-74": 74}
# Where begin and end are in the fixed part.
TIMES = {"torch.op_range": (0, 1), "torch.op_mark": (0,), "torch.memory_usage": (1,), "torch.python_tracer_func": (0,),
         "torch.gc_record": (1, 2), "mindspore.op_range": (3, 4), "mindspore.py_stack": (3, 4),
         "mindspore.memory_usage": (3,), "op_range_0": (0, 1)}


class Framework(unittest.TestCase):
    def setUp(self):
        self.base = temp_folder(self)

    def make(self, *args):
        """The files by name, the truth by file, and profiler_info."""
        folder = os.path.join(self.base, "_".join(args))
        subprocess.run([os.path.join(BUILD, "sim", "sim_framework"), args[0], folder, *args[1:]], check=True)
        files = {}
        for name in os.listdir(os.path.join(folder, "FRAMEWORK")):
            files[name] = read_bytes(folder, "FRAMEWORK", name)
        truth = {name: [] for name in files}
        with open(os.path.join(folder, "truth.jsonl"), encoding="utf-8") as lines:
            for line in lines:
                line = json.loads(line)
                truth[line["file"]].append(line)
        return files, truth, read_json(folder, "profiler_info_0.json")

    def records(self, data, outer, layout):
        """Whole records as (fixed part, fields), and how many bytes are left over."""
        found, at, head, fixed = [], 0, struct.Struct("<HI"), struct.Struct(layout)
        while at + head.size <= len(data):
            kind, length = head.unpack_from(data, at)
            if at + head.size + length > len(data):
                break
            self.assertEqual(kind, outer)
            body, fields = data[at + head.size:at + head.size + length], {}
            inner = fixed.size
            while inner < len(body):
                field, size = head.unpack_from(body, inner)
                fields[field] = body[inner + head.size:inner + head.size + size]
                self.assertEqual(len(fields[field]), size)
                inner += head.size + size
            self.assertEqual(inner, len(body))
            found.append((fixed.unpack_from(body), fields))
            at += head.size + length
        return found, len(data) - at

    def monotonic_ns(self, info, value):
        start = info["start_info"]
        if not start["syscnt_enable"]:
            return value
        return (value - start["start_cnt"]) * 1000 // start["freq"] + start["start_monotonic"]

    def read_all(self, layout, made):
        """All files against the truth; how many bytes of each are of no whole record."""
        files, truth, info = made
        raw = TORCH_RAW if layout.startswith("torch") else {}
        self.assertEqual(set(files), set(LAYOUTS[layout]) | set(raw))
        rest = {}
        for name, data in files.items():
            if name in raw:
                size = struct.calcsize(raw[name])
                found = [(struct.unpack_from(raw[name], data, i * size), {}) for i in range(len(data) // size)]
                rest[name], text = len(data) % size, None
            else:
                outer, fixed, text = LAYOUTS[layout][name]
                found, rest[name] = self.records(data, outer, fixed)
            self.assertEqual(len(found), len(truth[name]), name)
            for (fixed, fields), line in zip(found, truth[name]):
                keys = ("begin_ns", "end_ns") if "begin_ns" in line else ("time_ns",)
                for index, key in zip(TIMES.get(name, ()), keys):
                    self.assertEqual(self.monotonic_ns(info, fixed[index]), line[key], name)
                if text is not None and "name" in line:
                    self.assertEqual(fields[text].decode("latin-1"), line["name"])
        return rest

    def test_every_layout_in_both_clocks(self):
        for layout in LAYOUTS:
            for clock in ("raw", "counter"):
                with self.subTest(layout=layout, clock=clock):
                    made = self.make(layout, "none", clock)
                    self.assertEqual(set(self.read_all(layout, made).values()), {0})
                    self.assertEqual(made[2]["start_info"]["syscnt_enable"], clock == "counter")
                    name = next(n for n in LAYOUTS[layout] if "op_range" in n)
                    self.assertEqual(struct.calcsize(LAYOUTS[layout][name][1]), SIZES[layout])
                    self.assertEqual(len(made[1][name]), 20)

    def test_sizes_of_the_fixed_parts(self):
        sizes = {name: struct.calcsize(layout) for name, (_, layout, _) in {**TORCH, **MINDSPORE}.items()}
        self.assertEqual(sizes, {"torch.op_range": 58, "torch.op_mark": 40, "torch.memory_usage": 77,
                                 "torch.python_tracer_hash": 8, "torch.param_tensor_info": 8, "mindspore.op_range": 54,
                                 "mindspore.py_stack": 54, "mindspore.memory_usage": 100, "mindspore.record_shapes": 0})
        self.assertEqual({name: struct.calcsize(layout) for name, layout in TORCH_RAW.items()},
                         {"torch.python_tracer_func": 33, "torch.gc_record": 24})

    def test_data_of_operators(self):
        files, truth, _ = self.make("torch")
        found, _ = self.records(files["torch.op_range"], *TORCH["torch.op_range"][:2])
        for (fixed, fields), line in zip(found, truth["torch.op_range"]):
            self.assertEqual(fixed[2], line["sequence"])
            self.assertEqual(fields[4].decode(), line["shapes"])
            self.assertEqual(fields[8].decode(), line["stack"])
            self.assertIn(";", line["stack"])
        marks, _ = self.records(files["torch.op_mark"], *TORCH["torch.op_mark"][:2])
        by_correlation = {}
        for fixed, _ in marks:
            by_correlation.setdefault(fixed[2], []).append((fixed[1], fixed[3]))
        self.assertEqual({category for category, _ in by_correlation.pop(0)}, {0}, "not in the queue yet")
        for categories in by_correlation.values():
            self.assertEqual([category for category, _ in categories], [1, 2, 3])
            self.assertEqual(len({thread for _, thread in categories}), 2, "put and taken by two threads")
        self.assertEqual({line["tag"] for line in truth["torch.python_tracer_func"]}, {0, 1})
        keys = [{line["key"] for line in truth["torch.python_tracer_func"] if line["tag"] == tag} for tag in (0, 1)]
        self.assertEqual(len(keys[1] - keys[0]), 1, "all ends have one, which no call has")
        self.assertEqual(len(keys[1]), 1)

    def test_cut_in_the_middle_of_a_record(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                rest = self.read_all(layout, self.make(layout, "cut"))
                self.assertTrue(all(size > 0 for size in rest.values()), rest)

    def test_lengths_beyond_the_end(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                rest = self.read_all(layout, self.make(layout, "length"))
                self.assertTrue(all(size > 6 for name, size in rest.items() if name not in TORCH_RAW), rest)

    def test_names_that_are_not_text(self):
        for layout in LAYOUTS:
            with self.subTest(layout):
                made = self.make(layout, "names")
                self.assertEqual(set(self.read_all(layout, made).values()), {0})
                name = next(n for n in LAYOUTS[layout] if "op_range" in n)
                self.assertIn(b"\xff\xc3(\x80", made[0][name])
                with self.assertRaises(UnicodeDecodeError):
                    made[0][name].decode()

    def test_a_seed_decides_every_byte(self):
        first = self.make("torch", "none", "raw", "7")[0]
        again = subprocess.run([os.path.join(BUILD, "sim", "sim_framework"), "torch", os.path.join(self.base, "again"),
                                "none", "raw", "7"], check=True)
        self.assertEqual(again.returncode, 0)
        for name, data in first.items():
            with open(os.path.join(self.base, "again", "FRAMEWORK", name), "rb") as file:
                self.assertEqual(file.read(), data, name)
        self.assertNotEqual(self.make("torch", "none", "raw", "8")[0], first)

    def test_orders_that_make_no_sense(self):
        for args in (["tensorflow", "x"], ["torch", "x", "burnt"], ["torch", "x", "none", "sundial"], ["torch"]):
            result = subprocess.run([os.path.join(BUILD, "sim", "sim_framework"), *args], cwd=self.base, capture_output=True,
                                    text=True, check=False)
            self.assertEqual(result.returncode, 2, args)
            self.assertIn("usage: sim_framework", result.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
