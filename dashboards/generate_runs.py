#!/usr/bin/env python3
"""usage: generate_runs.py [--check]

Writes dashboards/clickhouse/profd-runs.json: Grafana over the tables that profctl export --to fills, through Grafana's
own data source for ClickHouse (grafana-clickhouse-datasource). --check compares instead.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(HERE, "clickhouse", "profd-runs.json")
SCHEMA_VERSION = 39
DATASOURCE = {"type": "grafana-clickhouse-datasource", "uid": "${datasource}"}
TIME_SERIES, TABLE = 0, 1
GRID = 24

# Rows of loads that count: {rows} in queries below.
ROWS = ("run = ${run:sqlstring} AND load GLOBAL IN (SELECT max(load) FROM ${database}.loads WHERE run = ${run:sqlstring} AND state = 1 "
        "GROUP BY who)")
SECOND = "toDateTime(intDiv(start_ns, 1000000000)) AS time"
MS, MB, SHARE, GBS, COUNT = "ms", "decmbytes", "percentunit", "GBs", "short"

# (kind, title, width, unit, what it says, query)
PANELS = [
    ("stat", "Ranks", 4, COUNT, "Ranks that are loaded.", "SELECT count() AS ranks FROM {t}.totals WHERE {rows}"),
    ("stat", "Executions", 5, COUNT, "Operators that ran on devices.", "SELECT sum(executions) AS executions FROM {t}.totals WHERE {rows}"),
    ("stat", "Step", 5, MS, "Mean of all steps of all ranks.", "SELECT avg(end_ns - start_ns) / 1e6 AS step FROM {t}.steps WHERE {rows} AND has_times = 1"),
    ("stat", "Slowest rank computes longer by", 5, SHARE, "The rank with the most computing per step, against the mean of all ranks.",
     "SELECT max(ms) / avg(ms) - 1 AS longer FROM (SELECT avg(computing_ms) AS ms FROM {t}.steps WHERE {rows} AND has_shares = 1 GROUP BY load)"),
    ("stat", "Lost records", 5, COUNT, "Records that are missing in the dumps.", "SELECT sum(lost) AS lost FROM {t}.losses WHERE {rows}"),
    ("timeseries", "Computing of the ten slowest ranks", 12, MS, "Per step, of the ranks that compute longest.",
     "SELECT " + SECOND + ", concat('rank ', toString(rank)) AS label, avg(computing_ms) AS computing FROM {t}.steps WHERE {rows} AND has_times = 1 AND has_shares = 1 AND rank GLOBAL IN "
     "(SELECT rank FROM {t}.steps WHERE {rows} AND has_times = 1 AND has_shares = 1 GROUP BY rank ORDER BY avg(computing_ms) DESC, rank LIMIT 10) GROUP BY time, label ORDER BY time, label"),
    ("timeseries", "Parts of a step", 12, MS, "Mean over the ranks.",
     "SELECT " + SECOND + ", avg(computing_ms) AS computing, avg(uncovered_ms) AS communication, avg(free_ms) AS free FROM {t}.steps "
     "WHERE {rows} AND has_times = 1 AND has_shares = 1 GROUP BY time ORDER BY time"),
    ("table", "Ranks, by computing per step", 12, MS, "A slow rank computes long; the others wait for it in communication.",
     "SELECT rank, count() AS steps, avg(end_ns - start_ns) / 1e6 AS total, avgIf(computing_ms, has_shares = 1) AS computing, "
     "avgIf(uncovered_ms, has_shares = 1) AS communication, avgIf(free_ms, has_shares = 1) AS free FROM {t}.steps WHERE {rows} AND has_times = 1 "
     "GROUP BY load, rank ORDER BY computing DESC, rank LIMIT 200"),
    ("table", "Links, the slowest first", 12, MB, "Traffic between ranks. A link that is slower than others of its transport slows all its group.",
     "SELECT src, dst, transport, group_name, sum(size_mb) AS size, sum(size_mb) / sum(time_ms) AS gb_per_second FROM {t}.links "
     "WHERE {rows} AND time_ms > 0 AND part = 0 AND src != dst GROUP BY src, dst, transport, group_name ORDER BY gb_per_second, src, dst LIMIT 200"),
    ("piechart", "Operators by share", 8, MS, "The time of all executions of all ranks, by type.",
     "SELECT type, sum(total_ns) / 1e6 AS total FROM {t}.operators WHERE {rows} AND executions > 0 GROUP BY type ORDER BY total DESC, type LIMIT 15"),
    ("table", "Operators", 16, MS, "Of all ranks together.",
     "SELECT name, type, core, sum(executions) AS number, sum(total_ns) / 1e6 AS total, sum(total_ns) / sum(executions) / 1e6 AS mean, max(max_ns) / 1e6 AS longest "
     "FROM {t}.operators WHERE {rows} AND executions > 0 GROUP BY name, type, core ORDER BY total DESC, name LIMIT 200"),
    ("table", "Communication", 12, MS, "By type and group, of all ranks together.",
     "SELECT type, group_name, count() AS number, sum(elapse_ms) AS elapsed, sum(transit_ms) AS transit, sum(wait_ms) AS wait, "
     "sum(synchronization_ms) AS synchronization FROM {t}.collectives WHERE {rows} GROUP BY type, group_name ORDER BY elapsed DESC, type LIMIT 200"),
    ("table", "Findings", 12, MS, "What profctl advise found when the ranks were loaded.",
     "SELECT priority, check_id, title, count() AS ranks, max(cost_ms) AS cost, any(evidence) AS evidence FROM {t}.findings WHERE {rows} "
     "GROUP BY priority, check_id, title ORDER BY cost DESC, check_id LIMIT 200"),
    ("timeseries", "Counter $counter", 24, COUNT, "Samples of one counter of the hardware, the mean of each second, by rank.",
     "SELECT toDateTime(intDiv(t_ns, 1000000000)) AS time, concat('rank ', toString(rank)) AS label, avg(value) AS mean FROM {t}.samples "
     "WHERE {rows} AND name = ${counter:sqlstring} GROUP BY time, label ORDER BY time, label"),
]
HEIGHTS = {"stat": 4, "timeseries": 9, "table": 10, "piechart": 10}
VARIABLES = {
    "run": ("Run", "SELECT run FROM {t}.loads WHERE state = 1 GROUP BY run ORDER BY max(load) DESC LIMIT 1000"),
    "counter": ("Counter", "SELECT DISTINCT name FROM {t}.counters WHERE {rows} ORDER BY name"),
}


def sql(text):
    return text.replace("{rows}", ROWS).replace("{t}", "${database}")


def panel(number, row, x, y):
    kind, title, width, unit, what, query = row
    form = TIME_SERIES if kind == "timeseries" else TABLE
    target = {"refId": "A", "datasource": DATASOURCE, "editorType": "sql", "queryType": "timeseries" if form == TIME_SERIES else "table",
              "format": form, "rawSql": sql(query)}
    out = {"id": number, "type": kind, "title": title, "description": what, "datasource": DATASOURCE, "targets": [target],
           "gridPos": {"x": x, "y": y, "w": width, "h": HEIGHTS[kind]}, "fieldConfig": {"defaults": {"unit": unit}, "overrides": []}, "options": {}}
    if kind == "table":
        whole = {"id": "unit", "value": COUNT}
        out["fieldConfig"]["overrides"] = [{"matcher": {"id": "byRegexp", "options": "^(rank|steps|number|ranks)$"}, "properties": [whole]},
                                           {"matcher": {"id": "byName", "options": "gb_per_second"}, "properties": [{"id": "unit", "value": GBS}]}]
    if kind == "piechart":
        out["options"] = {"reduceOptions": {"calcs": ["lastNotNull"], "values": True}, "legend": {"displayMode": "table", "placement": "right", "values": ["percent"]}}
    return out


def dashboard():
    panels, x, y, height = [], 0, 0, 0
    for number, row in enumerate(PANELS, 1):
        if x + row[2] > GRID:
            x, y, height = 0, y + height, 0
        panels.append(panel(number, row, x, y))
        x += row[2]
        height = max(height, HEIGHTS[row[0]])
    variables = [{"name": "datasource", "label": "ClickHouse", "type": "datasource", "query": "grafana-clickhouse-datasource", "hide": 0, "current": {},
                  "options": [], "regex": "", "multi": False, "includeAll": False, "refresh": 1, "skipUrlSync": False},
                 {"name": "database", "label": "Database", "type": "textbox", "query": "profiles", "hide": 0,
                  "current": {"text": "profiles", "value": "profiles"}, "options": [], "skipUrlSync": False}]
    for name, (label, query) in VARIABLES.items():
        variables.append({"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "query": sql(query), "definition": sql(query), "refresh": 2,
                          "sort": 0, "multi": False, "includeAll": False, "current": {}, "options": [], "regex": "", "hide": 0, "skipUrlSync": False})
    return {"uid": "profd-runs", "title": "profd: runs in ClickHouse", "description": "Runs that profctl export --to loaded: slow ranks, operators, links.",
            "tags": ["profd", "atlas"], "schemaVersion": SCHEMA_VERSION, "version": 1, "editable": True, "id": None, "graphTooltip": 1, "refresh": "",
            "timezone": "browser", "time": {"from": "now-24h", "to": "now"}, "templating": {"list": variables}, "annotations": {"list": []}, "panels": panels}


def text():
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


def main():
    if sys.argv[1:] == ["--check"]:
        with open(PATH, encoding="utf-8") as file:
            if file.read() != text():
                raise SystemExit("dashboards/clickhouse/profd-runs.json is not up to date; run dashboards/generate_runs.py")
        return
    os.makedirs(os.path.dirname(PATH), exist_ok=True)
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(text())


if __name__ == "__main__":
    main()
