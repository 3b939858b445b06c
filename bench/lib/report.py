"""The table on the terminal, and whether the goals were met."""

import json
import os

import parts_activity
import parts_cluster
import parts_delays
import parts_export
import parts_operators
import parts_peers
import parts_precision
import parts_scale
import split

# Parts with a table of their own: their module has print_<part> and goals_<part>.
MODULES = {"export": parts_export, "ingest": parts_export, "operators": parts_operators, "cluster": parts_cluster, "peers": parts_peers,
           "precision": parts_precision, "delays": parts_delays, "fanout": parts_delays,
           "scale": parts_scale, "activity": parts_activity}

DEVICE_THREADS = ("profd-pump", "profd-writer", "profd-sync", "profd-control", "profd-npuN", "profd")
THREAD_COLUMNS = (("cpu_percent", "% core"), ("simulator_percent", "sim %"),
                  ("switches_per_s", "switches/s"), ("allocations_per_s", "allocs/s"))


def print_facts(facts):
    for key, value in facts.items():
        print(f"{key:>12}: {value}")


def _threads(run, indent="  "):
    print(f"{indent}{'thread':<16}" + "".join(f"{title:>12}" for _, title in THREAD_COLUMNS))
    rows = sorted(run["threads"].items(), key=lambda item: -item[1]["cpu_percent"])
    rows = [(name, row) for name, row in rows
            if max(row[key] for key, _ in THREAD_COLUMNS) >= 0.0005]
    for name, row in rows + [("total", run["total"])]:
        print(f"{indent}{name:<16}" + "".join(f"{row[key]:>12.3f}" for key, _ in THREAD_COLUMNS))
    rest = [f"{key} {run[key]:.1f}" for key in ("rss_mib", "peak_mib", "anonymous_mib",
                                                "records_per_s", "dump_bytes_per_s",
                                                "dropped_records", "ns_per_record") if key in run]
    print(indent + ", ".join(rest))
    print(indent + "by part: " + ", ".join(f"{part} {percent:.3f}" for part, percent
                                           in split.by_part(run).items() if percent >= 0.0005))
    if "write_floor_percent" in run:
        print(f"{indent}floor of writing: as many bytes into {run['files']} files {run['write_floor_percent']:.3f}, into one "
              f"for each device {run['write_floor_per_device_percent']:.3f}")
    if run.get("pump", {}).get("note"):
        print(f"{indent}note: {run['pump']['note']}")


def _scalars(part):
    for key, value in part.items():
        if isinstance(value, float):
            print(f"  {key:<28}{value:>14.3f}")
        elif isinstance(value, (int, str)):
            print(f"  {key:<28}{value:>14}")


def print_part(name, part):
    print(f"\n== {name}")
    if name == "micro":
        print(f"  {'benchmark':<44}{'ns/item':>10}{'floor ns':>10}{'ratio':>8}  floor")
        for row_name, row in part.items():
            ratio = f"{row['ratio']:8.2f}" if row["ratio"] else f"{'-':>8}"
            print(f"  {row_name:<44}{row['ns_per_item']:>10.2f}{row['floor_ns']:>10.2f}{ratio}"
                  f"  {row['floor']}"
                  + (f"; p99.9 {row['p999_ns']:.0f} ns, max {row['max_ns']:.0f} ns" if "max_ns" in row else ""))
        return
    if name == "marks":
        print(f"  {'':<44}{'p50 ns':>10}{'p99 ns':>10}{'p99.9 ns':>12}{'max ns':>14}")
        for row_name, row in part.items():
            if isinstance(row, dict):
                print(f"  {row_name:<44}{row['p50']:>10.1f}{row['p99']:>10.1f}{row['p999']:>12.1f}"
                      f"{row['max']:>14.1f}")
        _scalars(part)
        return
    if name in MODULES:
        getattr(MODULES[name], "print_" + name)(part)
        return
    if "threads" in part:
        _threads(part)
        return
    for key, value in part.items():
        if isinstance(value, dict) and "threads" in value:
            print(f"  -- {key}")
            _threads(value, "    ")
    _scalars(part)
    for peer, row in part.get("peers", {}).items():
        print(f"  peer {peer}: {row['percent']:.3f} % of a core, profd/peer {row['profd_ratio']:.2f}")
    for note in part.get("notes", []):
        print(f"  note: {note}")


def _goal(goals, name, value, limit, unit):
    goals.append({"goal": name, "value": value, "limit": limit, "unit": unit,
                  "met": value <= limit})


def fairness(root):
    """What scripts/torture found last, if it did."""
    path = os.path.join(root, "build", "torture", "fairness.json")
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def goals(parts, fair=None):
    found = []
    if "device" in parts:
        run = parts["device"]
        ours = sum(row["cpu_percent"] for name, row in run["threads"].items()
                   if name in DEVICE_THREADS)
        _goal(found, "device side, simulator excluded", ours, 1.0, "% of a core")
    if "all" in parts:
        _goal(found, "resident memory, everything on", parts["all"]["rss_mib"], 64, "MiB")
    if "host" in parts:
        host = parts["host"]
        _goal(found, "host_cpu and host_mem above the floor, no dump",
              host["no_dump_above_floor_percent"], 1.0, "% of a core")
        _goal(found, "host_cpu and host_mem above the floor, dump written",
              host["dump_above_floor_percent"], 1.0, "% of a core")
        _goal(found, "host sampling / floor, no dump", host["no_dump_ratio"], 1.3, "x")
    if "marks" in parts:
        run = parts["marks"]
        _goal(found, "p99 of profd_mark without a session, 1 thread",
              run["no session, 1 thread"]["p99"], 50, "ns")
        _goal(found, "p99 of profd_mark with a session, 1 thread",
              run["session, 1 thread"]["p99"], 1000, "ns")
    if "micro" in parts:
        parts_activity.goals_micro(parts["micro"], lambda *row: _goal(found, *row))
    for name, module in MODULES.items():
        if name in parts:
            getattr(module, "goals_" + name)(parts[name], lambda *row: _goal(found, *row))
    if "alloc" in parts:
        _goal(found, "allocations per record in steady state",
              parts["alloc"]["allocations_per_record"], 0.0, "")
    if fair:
        _goal(found, "a flood delays another's stop, p50 (last scripts/torture)", fair["delay_ms_p50_with_processes"],
              fair["goal_delay_ms"], "ms")
        _goal(found, "likewise, beyond what as many processes cost that ask nothing", fair["delay_ms_p50"],
              fair["goal_delay_ms"], "ms")
        readings = fair["missed_readings"]
        _goal(found, "readings a flood makes the sampler miss (likewise)",
              readings["flooded"] - readings["alone"], 0, "")
    return found


def print_goals(found):
    if not found:
        return
    print("\n== goals")
    for goal in found:
        verdict = "met" if goal["met"] else f"missed by {goal['value'] - goal['limit']:.3f}"
        print(f"  {goal['goal']:<58}{goal['value']:>10.3f} <= {goal['limit']:g} {goal['unit']}: "
              f"{verdict}")
