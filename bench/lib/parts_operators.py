"""What it costs to export operators: a PROF directory of a million tasks (bench/make_operators) in each format, beside
reading the same bytes and writing the same output, and, where a path to it is given, beside the vendor's analyser."""

import os
import shutil
import subprocess
import sys
import time

import parts_export

FORMATS = ("csv", "trace", "perfetto", "sqlite")
TASKS = 1_000_000
# What the vendor's analyser calls them.
PEER_EXPORTS = {"csv": "summary", "trace": "timeline", "sqlite": "db"}


def make(build, folder, tasks):
    made = subprocess.run([build.make_operators, folder, str(tasks)], check=True, capture_output=True,
                          text=True).stdout.splitlines()
    return made[0]


def measure(build, folder, tasks, names):
    dump = make(build, os.path.join(folder, "in"), tasks)
    data = parts_export.files_below(dump)
    result = {"tasks": tasks, "input_mb": parts_export.size_of(data) / 1e6,
              "read_floor_s": parts_export.best_of_two(["cat", *data])["wall_s"], "rows": {}}
    for name, formats in names.items():
        row = parts_export.one_format(build, dump, os.path.join(folder, "out"), formats)
        row["tasks_per_s"] = tasks / row["wall_s"]
        row["to_write_floor"] = row["wall_s"] / max(row["write_floor_s"], 1e-9)
        result["rows"][name] = row
    result["analyze"] = parts_export.best_of_two([build.profctl, "analyze", dump, "--only", "overall"])
    shutil.rmtree(os.path.join(folder, "in"))
    return result


def peer(build, args, folder, tasks):
    """Seconds of the vendor's analyser for each format; each in a directory of its own, for it reads one only once."""
    rows = {}
    for name, export in PEER_EXPORTS.items():
        dump = make(build, os.path.join(folder, "peer"), tasks)
        begin = time.monotonic()
        done = subprocess.run([sys.executable, args.peer_analyser, "export", export, "-dir", dump],
                              capture_output=True, text=True, check=False)
        made = [path for path in parts_export.files_below(dump) if "mindstudio_profiler_output" in path
                or path.endswith(".db")]
        if done.returncode != 0 or not made:
            rows[name] = {"error": (done.stdout + done.stderr)[-500:]}
        else:
            rows[name] = {"wall_s": time.monotonic() - begin}
        shutil.rmtree(os.path.join(folder, "peer"))
    return rows


def operators(build, args):
    folder = os.path.join(args.work, "operators")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    tasks = TASKS // 10 if args.quick else TASKS
    names = {name: [name] for name in FORMATS} | {"all four": list(FORMATS)}
    result = measure(build, folder, tasks, names)
    if args.full:
        result["large"] = measure(build, folder, 5 * tasks, {"csv": ["csv"]})
    if args.peer_analyser:
        result["peer"] = peer(build, args, folder, tasks)
    shutil.rmtree(folder)
    return result


def print_operators(part):
    for run in (part, part.get("large")):
        if run is None:
            continue
        print(f"  {run['tasks']} tasks, {run['input_mb']:.0f} MB; cat of it {run['read_floor_s']:.3f} s")
        print(f"  {'':<13}{'wall s':>9}{'CPU s':>9}{'tasks/s':>10}{'RSS MiB':>9}{'output MB':>11}{'/ write':>9}")
        for name, row in run["rows"].items():
            print(f"  {name:<13}{row['wall_s']:>9.2f}{row['cpu_s']:>9.2f}{row['tasks_per_s']:>10.0f}"
                  f"{row['rss_mib']:>9.0f}{row['output_mb']:>11.0f}{row['to_write_floor']:>9.2f}")
        row = run["analyze"]
        print(f"  {'analyze':<13}{row['wall_s']:>9.2f}{row['cpu_s']:>9.2f}{run['tasks'] / row['wall_s']:>10.0f}{row['rss_mib']:>9.0f}")
    for name, row in part.get("peer", {}).items():
        ours = part["rows"][name]["wall_s"]
        print(f"  {name}, the vendor's analyser: " +
              (f"{row['wall_s']:.1f} s, {row['wall_s'] / ours:.0f} times ours" if "wall_s" in row else row["error"]))


def goals_operators(part, goal):
    million = part["tasks"] / 1e6
    rows = part["rows"]
    goal("CSVs of a million tasks with counters", rows["csv"]["wall_s"] / million, 3.0, "s")
    goal("all formats of a million tasks", rows["all four"]["wall_s"] / million, 10.0, "s")
    goal("profctl analyze of a million tasks", part["analyze"]["wall_s"] / million, 2.0, "s")
    if million >= 1:
        goal("peak memory of profctl analyze, a million tasks", part["analyze"]["rss_mib"], 512, "MiB")
        goal("peak memory of a million tasks", max(row["rss_mib"] for row in rows.values()), 512, "MiB")
    if "large" in part:
        large = part["large"]["rows"]["csv"]["wall_s"] / rows["csv"]["wall_s"]
        goal("five times the tasks, per task", large / 5, 1.1, "x")
    for name, least in (("csv", 100), ("trace", 20), ("sqlite", 20)):
        row = part.get("peer", {}).get(name, {})
        if "wall_s" in row:
            goal(f"{name}: share of the vendor's analyser's time", 100 * rows[name]["wall_s"] / row["wall_s"],
                 100 / least, "%")
