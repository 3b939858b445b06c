"""What it costs to look at many ranks at the same time: profctl advise and profctl analyze over 1,024 directories of
PyTorch's profiler (make_cluster.py), beside reading the same bytes."""

import json
import os
import shlex
import shutil
import subprocess

import make_cluster
import parts_export

RANKS = 1024
PEER_RANKS = 8


def check(build, folder):
    """That the slow rank and the slow link are found: a measurement of something else says nothing."""
    done = subprocess.run([build.profctl, "advise", folder, "--json"], check=True, capture_output=True, text=True)
    found = {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}
    slow = f"rank {make_cluster.SLOW_RANK} "
    if slow not in found["wait_for_rank"]["title"] + " ":
        raise RuntimeError(f"advise does not name the slow {slow}: {found['wait_for_rank']['title']}")
    if "Rank {} to {} ".format(*make_cluster.SLOW_PAIR) not in found["slow_link"]["evidence"]:
        raise RuntimeError(f"advise does not name the slow link: {found['slow_link']['evidence']}")


def peer(build, args, folder):
    """Both over the same ranks, all checks and the reports: the vendor's advisor takes minutes for many."""
    data, out = os.path.join(folder, "peer"), os.path.join(folder, "peer-out")
    make_cluster.make(data, PEER_RANKS)
    ours = parts_export.timed([build.profctl, "advise", "-o", out, "--force", data])
    try:
        theirs = parts_export.timed([*shlex.split(args.peer_advisor), "advisor", "all", "-d", data, "-o", out])
    except (OSError, RuntimeError) as error:
        return {"ranks": PEER_RANKS, "profctl": ours, "error": str(error)[-500:]}
    return {"ranks": PEER_RANKS, "profctl": ours, "advisor": theirs, "times_faster": theirs["wall_s"] / ours["wall_s"]}


def cluster(build, args):
    folder = os.path.join(args.work, "cluster")
    shutil.rmtree(folder, ignore_errors=True)
    ranks = RANKS // 16 if args.quick else RANKS
    make_cluster.make(os.path.join(folder, "in"), ranks)
    data = parts_export.files_below(os.path.join(folder, "in"))
    out = os.path.join(folder, "out")
    result = {"ranks": ranks, "input_mb": parts_export.size_of(data) / 1e6,
              "read_floor_s": parts_export.best_of_two(["cat", *data])["wall_s"], "rows": {}}
    check(build, os.path.join(folder, "in"))
    for name, command in {"advise": ["advise"], "analyze": ["analyze"], "analyze --json": ["analyze", "--json"],
                          "analyze --cluster-out": ["analyze", "--only", "cluster", "--cluster-out", out, "--force"],
                          "advise -o": ["advise", "-o", out, "--force"]}.items():
        result["rows"][name] = parts_export.timed([build.profctl, *command, os.path.join(folder, "in")])
    written = os.path.join(out, "cluster_analysis_output")
    result["rows"]["advise of --cluster-out"] = parts_export.timed([build.profctl, "advise", written])
    if args.peer_advisor:
        result["peer"] = peer(build, args, folder)
    shutil.rmtree(folder)
    return result


def print_cluster(part):
    print(f"  {part['ranks']} ranks, {part['input_mb']:.0f} MB; cat of it {part['read_floor_s']:.3f} s")
    print(f"  {'':<26}{'wall s':>9}{'CPU s':>9}{'RSS MiB':>9}")
    for name, row in part["rows"].items():
        print(f"  {name:<26}{row['wall_s']:>9.2f}{row['cpu_s']:>9.2f}{row['rss_mib']:>9.0f}")
    if "peer" in part:
        other = part["peer"]
        how = f"failed: {other['error']}" if "error" in other else f"{other['advisor']['wall_s']:.2f} s, {other['times_faster']:.0f} times as long"
        print(f"  advise -o of {other['ranks']} ranks {other['profctl']['wall_s']:.2f} s; the vendor's advisor {how}")


def goals_cluster(part, goal):
    if "times_faster" in part.get("peer", {}):
        goal("the vendor's advisor, share of its time", 1 / part["peer"]["times_faster"], 1 / 20, "")
    if part["ranks"] < RANKS:
        return
    for name in ("advise", "analyze"):
        goal(f"profctl {name} of {part['ranks']} ranks", part["rows"][name]["wall_s"], 60, "s")
        goal(f"peak memory of profctl {name}, {part['ranks']} ranks", part["rows"][name]["rss_mib"], 2048, "MiB")
