#!/usr/bin/env python3
"""usage: clickhouse_scale.py [--ranks N] [--steps N] [--kernels K] [--profctl PATH]

Fills the tables of profctl export --to with a run of N ranks and steps, K kernels a step, by the server's own
numbers(), and measures what profctl analyze, advise and report --from take on it. Starts a ClickHouse of its own in a temporary
directory, which is removed at the end. Prints rows, bytes on disk and a line for each question.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "tests", "harness"), os.path.join(HERE, "..", "tests", "e2e")]
from clickhouse_server import ClickHouse
from test_report import make_rank

DATABASE, RUN = "profiles", "scale"
BEGIN_NS, STEP_NS = 1_700_000_000_000_000_000, 100_000_000
RANKS_AT_ONCE = 64
TAIL_BYTES = 10_000_000
LONG_S = 20  # what takes longer is not repeated
SLOW_RANK = 1234  # computes a fifth longer
DURATION = "toInt64((1000000 + (k * 7 % 5) * 200000) * if(rank = {slow}, 1.2, 1.0))"


def fill(server, ranks, steps, kernels):
    lanes = json.dumps([["Ascend Hardware", "Stream 1"]])
    head = f"'{RUN}' AS run, toInt32({{first}} + intDiv(number, {{per_rank}})) AS rank, toUInt64(1000000 + rank) AS load"
    duration = DURATION.format(slow=SLOW_RANK)
    busy = f"arraySum(k -> {duration}, range({kernels})) / 1e6"
    tables = {
        "kernels": (steps * kernels, f"toUInt32(number % {steps * kernels}) AS at, toInt64({BEGIN_NS} + intDiv(at, {kernels}) * {STEP_NS} + k * {STEP_NS // kernels}) AS start_ns, "
                    f"start_ns + {duration} AS end_ns, toInt64(intDiv(at, {kernels})) AS step, toUInt32(k) AS op, concat('aclnnMatmul_MatMulV2_', toString(k)) AS name, "
                    "concat('Type', toString(k % 8)) AS type, 'AI_CORE' AS core, 'Stream 1' AS stream, toInt32(0) AS lane, toUInt16(24) AS blocks, toUInt16(0) AS mix_blocks, "
                    "emptyArrayUInt32() AS launched_by, toUInt8(0) AS after_communication"),
        "steps": (steps, f"toInt64(number % {steps}) AS step, toUInt8(1) AS has_times, toInt64({BEGIN_NS} + step * {STEP_NS}) AS start_ns, start_ns + {STEP_NS} AS end_ns, NULL AS fp_ns, "
                  f"NULL AS bp_ns, toUInt8(1) AS has_shares, {busy} AS computing_ms, 20. AS communication_ms, 10. AS uncovered_ms, {STEP_NS / 1e6} - computing_ms - 10 AS free_ms, "
                  "emptyArrayString() AS reduce_names, emptyArrayInt64() AS reduce_start_ns, emptyArrayInt64() AS reduce_end_ns, NULL AS stage_ms, NULL AS bubble_ms, "
                  "NULL AS without_receive_ms, NULL AS preparing_ms, emptyArrayFloat64() AS begun_ms"),
        "operators": (kernels, f"toUInt32(number % {kernels}) AS op, concat('aclnnMatmul_MatMulV2_', toString(op)) AS name, concat('Type', toString(op % 8)) AS type, 'AI_CORE' AS core, "
                      f"'\"64,1024;1024,1024\"' AS input_shapes, 'FLOAT16;FLOAT16' AS input_types, '' AS output_shapes, '' AS output_types, '' AS input_formats, '' AS output_formats, emptyArrayFloat64() AS ratio_ns, 0. AS counted_ns, "
                      f"emptyArrayFloat64() AS unit_ns, toUInt64({steps}) AS executions, {duration.replace('k *', 'op *')} * {steps} AS total_ns, "
                      f"{duration.replace('k *', 'op *')} AS min_ns, min_ns AS max_ns"),
        "totals": (1, f"toInt64({BEGIN_NS}) AS begin_ns, toUInt8(1) AS has_overall, {steps * STEP_NS / 1e6} AS e2e_ms, {steps} * {busy} AS computing_ms, {20. * steps} AS communication_ms, "
                   f"{10. * steps} AS uncovered_ms, e2e_ms - computing_ms - uncovered_ms AS free_ms, toUInt64(1) AS streams, toUInt64({steps * kernels}) AS executions, toUInt64({steps}) AS steps"),
        "collectives": (steps, f"toUInt32(number % {steps}) AS at, toInt64({BEGIN_NS} + at * {STEP_NS} + {STEP_NS // 2}) AS start_ns, toInt64(at) AS step, 'hcom_allReduce__1' AS name, "
                        f"'hcom_allReduce_' AS type, concat('group', toString(intDiv(rank, 8))) AS group_name, 20. AS elapse_ms, toUInt8(1) AS has_parts, 12. AS transit_ms, "
                        f"if(rank = {SLOW_RANK}, 1., 8.) AS wait_ms, 4. AS synchronization_ms, 0. AS idle_ms, ['HCCS'] AS transports, [100.] AS sizes_mb, [12.] AS times_ms, "
                        "[toUInt64(10)] AS packets, [toUInt64(9)] AS large_packets, toUInt8(1) AS step_is_named, toUInt8(0) AS p2p, [0.9] AS large_ratios, "
                        "[toUInt32(0)] AS size_transports, [10.] AS size_packet_mb, [toUInt64(10)] AS size_packets, [12.] AS size_times_ms, toInt32(-1) AS between_first, toInt32(-1) AS between_second"),
        "links": (8, "concat('group', toString(intDiv(rank, 8))) AS group_name, toString(rank) AS src, toString(intDiv(rank, 8) * 8 + number % 8) AS dst, 'HCCS' AS transport, "
                     f"{100. * steps} AS size_mb, {6. * steps} AS time_ms, toUInt32(number % 8) AS at, toInt64(-1) AS step, 'allreduce-total' AS name, '' AS op_name, toUInt8(0) AS p2p, "
                     "toUInt8(0) AS part"),
        "facts": (3, f"arrayElement(['lanes', 'ratio_names', 'unit_names'], number % 3 + 1) AS name, arrayElement(['{lanes}', '[]', '[]'], number % 3 + 1) AS value"),
        # The last, as a loader does it.
        "loads": (1, "toString(rank) AS who, toUInt8(1) AS state, now() AS loaded_at, toInt32(rank % 8) AS device, concat('node', toString(intDiv(rank, 8))) AS host, 'made' AS source, "
                     f"'' AS path, toUInt64({steps * (kernels + 2) + kernels + 12}) AS row_count, toUInt64(0) AS source_stamp, toUInt32(1) AS source_ranks"),
    }
    for table, (per_rank, columns) in tables.items():
        names = [row[0] for row in server.rows(f"SELECT name FROM system.columns WHERE database = '{DATABASE}' AND table = '{table}'")]
        started = time.monotonic()
        for first in range(0, ranks, RANKS_AT_ONCE):
            some = min(RANKS_AT_ONCE, ranks - first)
            select = f"number % {kernels} AS k, {columns}" if table == "kernels" else columns
            server.ask(f"INSERT INTO {DATABASE}.{table} SELECT {', '.join(names)} FROM (SELECT {head.format(first=first, per_rank=per_rank)}, {select} "
                       f"FROM system.numbers LIMIT {some * per_rank})")
        print(f"filled {table}: {ranks * per_rank} rows in {time.monotonic() - started:.1f} s", flush=True)


def answer_in(output):
    """Of a long one the cost, which is its end: the memory of this process would count as that of the next child."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - TAIL_BYTES))
    text = output.read().decode(errors="replace")
    return json.loads(text) if size <= TAIL_BYTES else {"store": json.JSONDecoder().raw_decode(text[text.rindex('"store":') + 8:].lstrip())[0]}


def ask(profctl, what, *arguments, command="analyze"):
    best = None
    for _ in range(3):
        started = time.monotonic()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen([profctl, "--json", command, *arguments], stdout=output)
            _, code, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(code)
            seconds = time.monotonic() - started
            if process.returncode != 0:
                raise SystemExit(f"{what}: profctl ended with {process.returncode}")
            if best is None or seconds < best[0]:
                best = seconds, answer_in(output), used.ru_maxrss, used.ru_utime + used.ru_stime
        if seconds > LONG_S:
            break
    seconds, answer, most_kb, busy = best
    cost = answer["store"]
    print(f"{what}: {seconds:.2f} s ({busy:.2f} s of a core, server {cost['seconds']:.2f} s), {most_kb / 1024:.0f} MB of memory, {cost['queries']} queries, {cost['rows_read']} rows and "
          f"{cost['bytes_read'] / 1e6:.1f} MB read", flush=True)
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[2])
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--kernels", type=int, default=24)
    parser.add_argument("--advised", type=int, default=64, help="of how many ranks advise and report are asked")
    parser.add_argument("--profctl", default=os.path.join(HERE, "..", "build", "release", "bin", "profctl"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="profd-clickhouse-", ignore_cleanup_errors=True) as folder:
        # Merged parts are kept for eight minutes otherwise, which takes three times the disk.
        server = ClickHouse(os.path.join(folder, "server"), more="<merge_tree><old_parts_lifetime>5</old_parts_lifetime></merge_tree>")
        try:
            server.start()
            # Makes the tables.
            make_rank(os.path.join(folder, "little"), 0)
            subprocess.run([options.profctl, "export", os.path.join(folder, "little"), "--to", server.url(DATABASE), "--run", "little"], check=True, stdout=subprocess.DEVNULL)
            fill(server, options.ranks, options.steps, options.kernels)
            total = server.rows(f"SELECT table, sum(rows), sum(bytes) FROM system.parts WHERE active AND database = '{DATABASE}' GROUP BY table ORDER BY sum(bytes) DESC LIMIT 3")
            for table, rows, size in total:
                print(f"{table}: {rows} rows, {int(size) / 1e9:.2f} GB on disk")
            url = server.url(DATABASE) + "/" + RUN
            overview = ask(options.profctl, "overview of all ranks", "--from", url, "--overview")
            slowest = overview["slow_ranks"][0]["rank"]
            print(f"the slowest rank is {slowest}")
            ask(options.profctl, "64 ranks: overall, step averages, operators, communication", "--from", url, "--ranks", "0-63", "--only", "overall,step_average,operator_types,operators,communication")
            ask(options.profctl, "all ranks: overall, steps, step averages", "--from", url, "--only", "overall,steps,step_average")
            ask(options.profctl, "all ranks beside each other", "--from", url, "--only", "cluster", "--cluster-out", os.path.join(folder, "out"), "--force")
            ask(options.profctl, "all ranks: all analyses", "--from", url)
            ask(options.profctl, "1 rank: all analyses", "--from", url, "--ranks", str(min(SLOW_RANK, options.ranks - 1)))
            advised = range(0, options.ranks, max(1, options.ranks // options.advised))
            for part in (len(advised) // 2, len(advised)):
                some = ",".join(str(rank) for rank in advised[:part])
                ask(options.profctl, f"{part} ranks: advise", "--from", url, "--ranks", some, command="advise")
                ask(options.profctl, f"{part} ranks: report", "--from", url, "--ranks", some, "-o", os.path.join(folder, "page.html"), "--force", command="report")
            for what, select in (("all kernels by operator", f"SELECT op, count(), sum(end_ns - start_ns) FROM {DATABASE}.kernels WHERE run = '{RUN}' GROUP BY op"),
                                 ("all kernels by rank and operator", f"SELECT rank, op, count(), sum(end_ns - start_ns) FROM {DATABASE}.kernels WHERE run = '{RUN}' GROUP BY rank, op")):
                cost = json.loads(server.ask(f"{select} FORMAT JSONCompact"))["statistics"]
                print(f"SQL, {what}: {cost['elapsed']:.2f} s, {cost['rows_read']} rows and {cost['bytes_read'] / 1e6:.0f} MB read", flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
