"""minddata.py FOLDER HOST DEVICE [TYPE=USE...]: logs of MindSpore's data pipeline over 100 steps, as its profiler leaves them. The
host's queue is empty in HOST of the steps, the device's in DEVICE. Operators follow from the last to the first one, each with the
use of its output queue in percent."""

import json
import os
import sys

folder, host, device = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
operators = [operator.split("=") for operator in sys.argv[4:]]
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "device_queue_profiling_0.txt"), "w", encoding="ascii") as file:
    for step in range(1, 101):  # kind, what (get, push, both in ms; size of a queue of 64), step, value
        file.write(f"0 0 {step} 3\n0 1 {step} 2\n0 2 {step} 5\n1 64 {step} {0 if step <= host else 40}\n")
with open(os.path.join(folder, "minddata_aicpu_0.txt"), "w", encoding="ascii") as file:
    file.write("node_name             start_time  end_time  queue_size\n--------------------  ----------  --------  ----------\n")
    for step in range(1, 101):
        file.write(f"GetNext_dequeue_wait  {step * 1000}  {step * 1000 + 250}  {0 if step <= device else 8}\n")
if operators:
    chain = [{"op_id": number, "op_type": kind, "num_workers": 2, "children": [number + 1] if number + 1 < len(operators) else None,
              "metrics": {"output_queue": {"size": [int(use)] * 10, "length": 100}}} for number, (kind, use) in enumerate(operators)]
    with open(os.path.join(folder, "pipeline_profiling_0.json"), "w", encoding="ascii") as file:
        json.dump({"sampling_interval": 10, "op_info": chain}, file)
