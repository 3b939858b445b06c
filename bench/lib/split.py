"""What the daemon's CPU goes into: threads by what they are for, and the pump's own by what is on its stack.

One thread reads, frames, decodes and hands over, so its CPU time alone says nothing about decoding: `perf` looks at its
stack some thousand times a second of its CPU. What is the simulator's is left out there as it is everywhere."""

import os
import re
import shutil
import subprocess
import tempfile

import rig

PUMP = "pump and decode"
PARTS = ((PUMP, r"profd-pump"), ("write", r"profd-writer|profd-sync"),
         ("host collectors", r"profd-sample"), ("DCMI", r"profd-dcmi"),
         ("control", r"profd-control|profd-npuN|profd$|profd-accept"),
         ("metrics and HTTP", r"profd-web"),
         ("jobs and attribution", r"profd-(?:proc|users|attr|attach|jobmap|hccn|dumps)"))

# The first that a stack has decides. What is left is reading, queues, routing and waking up.
ON_STACK = (("simulator", r"libascend_hal|libdcmi"), ("decode", r"Decode"),
            ("framing", r"\bFramer\b|IsPlausibleRecord"), ("latest values and streams", r"MetricStore|StreamHub"))
REST = "read and hand over"


def by_part(run):
    """Part: % of a core, the simulator's work excluded. What no part claims is gRPC's and its timers'."""
    shares = {name: 0.0 for name, _ in PARTS} | {"rpc and others": 0.0}
    for thread, row in run["threads"].items():
        part = next((name for name, pattern in PARTS if re.match(pattern, thread)), "rpc and others")
        shares[part] += row["cpu_percent"]
    if run.get("pump", {}).get("samples", 0) == 0:
        return shares
    of_pump = shares.pop(PUMP)
    return {name: of_pump * share for name, share in run["pump"]["shares"].items()} | shares


def part_of_stack(stack):
    return next((name for name, pattern in ON_STACK if re.search(pattern, stack)), REST)


def pump(pid, seconds):
    """Shares of the pump threads' own CPU time, by samples of their stacks; {"samples": 0, "note"} without perf."""
    perf = shutil.which("perf")
    if not perf:
        return {"samples": 0, "note": "no perf: the pump's CPU is not split up"}
    tids = [tid for tid in os.listdir(f"/proc/{pid}/task")
            if rig.read(f"/proc/{pid}/task/{tid}/comm").startswith("profd-pump")]
    with tempfile.TemporaryDirectory(prefix="profd-bench-perf-") as folder:
        data = os.path.join(folder, "data")
        done = subprocess.run([perf, "record", "-q", "-t", ",".join(tids), "-e", "cpu-clock", "-F", "4999",
                               "--call-graph", "dwarf,2048", "-o", data, "--", "sleep", str(seconds)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return {"samples": 0, "note": "perf: " + (done.stderr.strip().split("\n") or [""])[-1]}
        text = subprocess.run([perf, "script", "--no-inline", "-i", data, "-F", "ip,sym,dso"],
                              capture_output=True, text=True, check=False).stdout
    counts = dict.fromkeys([*(name for name, _ in ON_STACK), REST], 0)
    for stack in text.split("\n\n"):
        if stack.strip():
            counts[part_of_stack(stack)] += 1
    simulator = counts.pop("simulator")
    own = sum(counts.values())
    return {"samples": own, "samples_of_simulator": simulator,
            "shares": {name: count / max(own, 1) for name, count in counts.items()}}
