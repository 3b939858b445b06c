"""arrows.py TRACE NAME: the longest slice of this name in a timeline of `profctl export --format trace`, and what its arrows come
from, as a click on it shows in a viewer."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    events = json.load(file)
layer = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
slices = [event for event in events if event["ph"] == "X"]


def around(pid, tid, ts):
    """The innermost slice of the thread at that time."""
    inside = [each for each in slices if (each["pid"], each["tid"]) == (pid, tid) and float(each["ts"]) <= ts <= float(each["ts"]) + each["dur"]]
    return min(inside, key=lambda each: each["dur"])


def show(arrow, found):
    print(f"{arrow:<14}{layer[found['pid']]:<16} {found['name']:<28} {found['dur']:>10.0f} us")
    for frame in found["args"].get("Call stack", "").split(";"):
        if frame.strip():
            print(f"{'':30} {frame.strip()}")


longest = max((each for each in slices if each["name"] == sys.argv[2]), key=lambda each: each["dur"])
show("", longest)
for end in events:
    if end["ph"] == "f" and (end["pid"], end["tid"], end["ts"]) == (longest["pid"], longest["tid"], longest["ts"]):
        begin = next(event for event in events if event["ph"] == "s" and (event["cat"], event["id"]) == (end["cat"], end["id"]))
        show(begin["cat"], around(begin["pid"], begin["tid"], float(begin["ts"])))
