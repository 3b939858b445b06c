#!/usr/bin/env python3
"""The page of profctl report in a real Chromium: parts of a step, the data pipeline and tuning, as MindSpore's and AOE's users know them."""

import json
import os

from profd_harness import main
from report_page import PageCase
from text_files import put, write_text

# MindInsight's file of a step of 100 ms, in its counts of 10 ns: forward begins after 10 ms, backward ends after 70 ms.
STEPS = """step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail,stream_5_0_start_point,stream_5_0_end_point,stream_5_0
1,1000000,11000000,10000000,2000000,8000000,1000000,6000000,3000000,8000000,8500000,500000
2,11000000,21000000,10000000,12000000,18000000,1000000,6000000,3000000,18000000,18500000,500000
-,,,10000000,,,1000000,6000000,3000000,,,500000
"""
# The data go from 3 over 4 and 1 to 0.
OPERATORS = [(0, "Batch", [1]), (1, "Shuffle", [2, 4]), (2, "TFReader", None), (3, "TFReader", None), (4, "Map", [3])]
TASK = [{"basic": {"tuning_name": "net", "tuning_time(s)": 19}},
        {"SGAT": {"model_baseline_performance(ms)": 5.600486, "model_performance_improvement": "55.11%", "model_result_performance(ms)": 3.610442,
                  "repo_modified_subgraphs": {}, "repo_summary": {}}}]


class Training(PageCase):
    @classmethod
    def make_pages(cls):
        run = os.path.join(cls.folder, "run")
        put(run, "step_trace_raw_0_detail_time.csv", STEPS)
        put(run, "device_queue_profiling_0.txt", "".join(
            f"0 0 {step} 3\n0 1 {step} 2\n0 2 {step} 5\n1 64 {step} {0 if step <= 40 else 9}\n" for step in range(1, 101)))
        put(run, "pipeline_profiling_0.json", json.dumps({"op_info": [
            {"op_id": number, "op_type": kind, "num_workers": 1, "children": children, "metrics": {"output_queue": {"size": [1, 1], "length": 10}}}
            for number, kind, children in OPERATORS]}))
        results = os.path.join(cls.folder, "aoe_result_sgat_20260101000000000_pid1.json")
        write_text(results, '{"report_20260101000000000_7": ' + json.dumps(TASK) + ', "report_20260101000000001_8": [')
        cls.report("run", "--tuning", results)

    def texts(self, selector):
        return self.browser.run(f"return [...document.querySelectorAll({json.dumps(selector)})].map((each) => each.textContent)")

    def rows(self, heading):
        """The cells of the table with this heading; what is folded, too."""
        return self.browser.run("""const table = [...document.querySelectorAll('main table')].find((each) => each.tHead.textContent.includes(arguments[0]));
            return [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent))""".replace("arguments[0]", json.dumps(heading)))

    def test_begin_and_end_of_each_part_of_a_step(self):
        self.open("run", "steps?step=2")
        parts = {row[0]: [float(cell) for cell in row[1:]] for row in self.rows("Part")}
        self.assertEqual(parts, {"Step": [0, 100, 100], "Interval": [0, 10, 10], "Forward and backward": [10, 70, 60], "Tail": [70, 100, 30],
                                 "stream_5_0": [70, 75, 5]})

    def test_the_overview_counts_the_steps_with_an_empty_queue(self):
        self.open("run", "overview")
        self.assertIn("Queue on the host, empty40 of 100 steps", self.texts("main dl > div"))

    def test_operators_stand_in_the_order_of_the_data(self):
        self.open("run", "pipeline")
        self.assertEqual(self.texts(".pipeline strong"), ["TFReader 3", "Map 4", "TFReader 2", "Shuffle 1", "Batch 0"])

    def test_the_last_operator_is_slow_where_all_queues_before_it_are_full(self):
        full = os.path.join(self.folder, "full")
        os.makedirs(full)
        put(full, "pipeline_profiling_0.json", json.dumps({"op_info": [
            {"op_id": 0, "op_type": "Batch", "num_workers": 1, "children": [1], "metrics": None},
            {"op_id": 1, "op_type": "Map", "num_workers": 1, "children": None, "metrics": {"output_queue": {"size": [9, 9], "length": 10}}}]}))
        self.report("full")
        self.open("full", "pipeline")
        self.assertIn("Batch 0: change prefetch_size", self.texts("main li"))
        self.open("run", "pipeline")
        self.assertNotIn("By the rules of MindInsight 1.0 also:", self.texts("main p"))

    def test_what_tuning_gained_for_the_model(self):
        self.open("run", "tuning")
        tasks = {row[0]: row for row in self.rows("Model gain")}
        self.assertIn("55.11", tasks["net"])
        self.assertIn("report_20260101000000001_8", tasks)  # cut before its name


if __name__ == "__main__":
    main()
