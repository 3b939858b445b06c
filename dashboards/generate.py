#!/usr/bin/env python3
"""usage: generate.py [--check] [--out DIR]

Writes Grafana's dashboards (DIR: dashboards/grafana) from contents.py, which lists what they show. Units and
descriptions of panels come from docs/metrics.md, so that what a metric means stands in one place: run this
again whenever that document has changed. --check compares instead, and fails when a file is not up to date.
"""

import argparse
import json
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
METRICS = os.path.join(HERE, "..", "docs", "metrics.md")
RULES = os.path.join(HERE, "rules", "recording.yml")
# Of Grafana 10.4; newer ones migrate it by themselves.
SCHEMA_VERSION = 39
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
GRID = 24

# The unit column of docs/metrics.md -> Grafana's unit id, as it is and per second.
UNITS = {
    "": ("short", "cps"),
    "ratio": ("percentunit", None),
    "bytes": ("bytes", "Bps"),
    "seconds": ("s", "percentunit"),
    "hertz": ("hertz", None),
    "watts": ("watt", None),
    "joules": ("joule", "watt"),
    "volts": ("volt", None),
    "celsius": ("celsius", None),
    "bytes per second": ("Bps", None),
    "packets per second": ("pps", None),
    "packets": ("short", "pps"),
    "frames": ("short", "cps"),
    "level": ("short", None),
}
# Recorded series: from the last part of their name, unless named in full.
RECORDED_UNITS = {
    "ratio": "percentunit", "ratio_rate5m": "percentunit", "avg5m": "percentunit", "avg": "percentunit",
    "median": "percentunit", "deviation": "percentunit", "count": "short", "rate5m": "cps", "sum": "watt",
    "max": "short", "behind": "short", "increase15m": "short",
    "npu:atlas_npu_hccs_link_bytes:rate5m": "Bps", "job:atlas_npu_step_duration_seconds:median": "s",
}
PER_SECOND = re.compile(r"\b(?:rate|irate|deriv)\(([a-z_0-9]+)")


class Facts:
    """What the repository knows about its metrics: units, meanings, recorded names."""

    def __init__(self):
        self.units, self.meanings = {}, {}
        with open(METRICS, encoding="utf-8") as file:
            for line in file:
                cells = [cell.strip() for cell in line.split("|")[1:-1]]
                if len(cells) == 6 and re.fullmatch(r"`\w+`", cells[0]):
                    name = cells[0].strip("`")
                    self.units[name], self.meanings[name] = cells[2], cells[4]
        with open(RULES, encoding="utf-8") as file:
            self.recorded = set(re.findall(r"^\s+- record: (\S+)$", file.read(), re.M))

    def metrics_of(self, expr):
        """The metrics a query names, in their order. A name that is not exported is a mistake."""
        bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring) ?\([^)]*\)", " ", expr)
        found = re.findall(r"\b(?:(?:npu|instance|job|jobnpu|rank):[\w:]+|(?:atlas|profd|process)_\w+|ALERTS|up)\b", bare)
        # A histogram's parts are described by its own line.
        found = [name if name in self.units else re.sub("_(?:bucket|sum|count)$", "", name) for name in found]
        for name in found:
            if name not in self.units and name not in self.recorded and name not in ("ALERTS", "up"):
                raise SystemExit(f"generate.py: neither docs/metrics.md nor a rule has {name}\n  {expr}")
        return found

    def unit(self, expr):
        names = self.metrics_of(expr)
        if not names or names[0] in ("ALERTS", "up") or expr.startswith("count"):
            return "short"
        name = names[0]
        if name in self.recorded:
            return RECORDED_UNITS.get(name) or RECORDED_UNITS[name.rsplit(":", 1)[1]]
        plain, per_second = UNITS[self.units[name]]
        return per_second if PER_SECOND.search(expr) else plain

    def meaning(self, expr):
        names = [name for name in self.metrics_of(expr) if name in self.meanings]
        return self.meanings[names[0]] + "." if names else ""


def mappings(values):
    """[(value, text, color)] in Grafana's form."""
    return [{"type": "value", "options": {str(value): {"text": text, "color": color, "index": at}
                                          for at, (value, text, color) in enumerate(values)}}]


class Builder:
    """Turns one dashboard of contents.py into Grafana's model."""

    def __init__(self, facts, where):
        self.facts = facts
        self.where = where  # the selectors that {@}, {@n} and {@j} stand for
        self.next_id = 0

    def expr(self, text):
        """{@...} takes the dashboard's selector, [@] is the interval a rate needs."""
        text = re.sub(r"\{@([nj]?)(,?)", lambda m: "{" + self.where[m[1]] + m[2], text)
        return text.replace("[@]", "[$__rate_interval]")

    def targets(self, panel):
        table = panel["type"] == "table"
        out = []
        for at, (query, legend) in enumerate(panel["queries"]):
            out.append({
                "refId": chr(ord("A") + at), "datasource": DATASOURCE, "expr": self.expr(query),
                "legendFormat": legend or "__auto", "editorMode": "code", "range": not table,
                "instant": table, **({"format": "table"} if table else {}),
            })
        return out

    def defaults(self, panel):
        first = panel["queries"][0][0]
        field = {"unit": panel.get("unit") or self.facts.unit(first)}
        for key in ("min", "max", "decimals"):
            if key in panel:
                field[key] = panel[key]
        if field["unit"] == "percentunit" and "deviation" not in first:
            field.setdefault("min", 0)
        steps = [{"color": panel.get("base", "green"), "value": None}]
        steps += [{"color": color, "value": value} for value, color in panel.get("steps", ())]
        field["thresholds"] = {"mode": "absolute", "steps": steps}
        field["color"] = {"mode": "thresholds" if panel["type"] != "timeseries" else "palette-classic"}
        if "values" in panel:
            field["mappings"] = mappings(panel["values"])
        if panel["type"] == "timeseries":
            field["custom"] = {"lineWidth": 1, "fillOpacity": 30 if panel.get("stack") else 0,
                               "showPoints": "never", "spanNulls": False,
                               "stacking": {"mode": "normal" if panel.get("stack") else "none"},
                               "thresholdsStyle": {"mode": "line" if panel.get("steps") else "off"}}
        if "link" in panel:
            field["links"] = [{"title": title, "url": url} for title, url in panel["link"]]
        return field

    def options(self, panel):
        if panel["type"] == "timeseries":
            return {"legend": {"displayMode": "table", "placement": "bottom", "showLegend": True,
                               "calcs": ["mean", "max", "lastNotNull"]},
                    "tooltip": {"mode": "multi", "sort": "desc"}}
        if panel["type"] == "gauge":
            return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                    "showThresholdLabels": False, "showThresholdMarkers": True, "orientation": "auto"}
        if panel["type"] == "stat":
            return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
                    "colorMode": "background" if panel.get("steps") or panel.get("values") else "value",
                    "graphMode": "area" if panel.get("area") else "none", "textMode": "auto"}
        if panel["type"] == "state-timeline":
            return {"showValue": "never", "mergeValues": True, "rowHeight": 0.9,
                    "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}}
        return {"showHeader": True, "cellHeight": "sm"}

    def overrides(self, panel):
        """Columns of a table: each query's own name, unit and colours. Of a band: the area between its edges."""
        if panel.get("band"):
            edge = {"id": "custom.lineWidth", "value": 0}
            return [{"matcher": {"id": "byName", "options": "max"}, "properties": [
                        edge, {"id": "custom.fillBelowTo", "value": "min"},
                        {"id": "custom.fillOpacity", "value": 20}]},
                    {"matcher": {"id": "byName", "options": "min"}, "properties": [edge]}]
        out = []
        for at, (name, more) in enumerate(panel.get("columns", {}).items()):
            query = panel["queries"][at][0]
            properties = [{"id": "displayName", "value": name},
                          {"id": "unit", "value": more.get("unit") or self.facts.unit(query)}]
            if "steps" in more:
                steps = [{"color": "transparent", "value": None}]
                steps += [{"color": color, "value": value} for value, color in more["steps"]]
                properties += [{"id": "thresholds", "value": {"mode": "absolute", "steps": steps}},
                               {"id": "custom.cellOptions", "value": {"type": "color-background"}}]
            if "values" in more:
                properties += [{"id": "mappings", "value": mappings(more["values"])},
                               {"id": "custom.cellOptions", "value": {"type": "color-background"}}]
            out.append({"matcher": {"id": "byName", "options": f"Value #{chr(ord('A') + at)}"},
                        "properties": properties})
        return out

    def transformations(self, panel):
        if panel["type"] != "table":
            return []
        keep = panel["keep"]
        values = ([f"Value #{chr(ord('A') + at)}" for at in range(len(panel["queries"]))]
                  if len(panel["queries"]) > 1 else ["Value"])
        names = keep + ([] if panel.get("hide_value") else values)
        return [{"id": "merge", "options": {}},
                {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
                {"id": "organize", "options": {
                    "indexByName": {name: at for at, name in enumerate(names)},
                    "excludeByName": {}, "renameByName": {}}}]

    def panel(self, panel, x, y):
        self.next_id += 1
        out = {
            "id": self.next_id, "type": panel["type"], "title": panel["title"],
            "gridPos": {"x": x, "y": y, "w": panel["w"], "h": panel["h"]},
        }
        if panel["type"] == "text":
            return {**out, "options": {"mode": "markdown", "content": panel["text"]}}
        description = panel.get("description")
        if description is None:
            description = self.facts.meaning(panel["queries"][0][0])
            # What is shown is the labels, or words, not the number.
            if panel.get("hide_value"):
                description = re.sub(r"^Always 1; (\w)", lambda m: m[1].upper(), description)
            elif "values" in panel:
                description = re.sub(r"^1 (if|while) ", r"Yes \1 ", description)
        out.update({
            "description": description, "datasource": DATASOURCE, "targets": self.targets(panel),
            "fieldConfig": {"defaults": self.defaults(panel), "overrides": self.overrides(panel)},
            "options": self.options(panel), "transformations": self.transformations(panel),
        })
        if "repeat" in panel:
            out.update({"repeat": panel["repeat"], "repeatDirection": "h", "maxPerRow": GRID // panel["w"]})
        return out

    def rows(self, rows):
        out, y = [], 0
        for row in rows:
            self.next_id += 1
            head = {"id": self.next_id, "type": "row", "title": row["title"], "collapsed": row["collapsed"],
                    "gridPos": {"x": 0, "y": y, "w": GRID, "h": 1}, "panels": []}
            y += 1
            inside, y = self.flow(row["panels"], y)
            # A closed row holds its panels, an open one is followed by them.
            if row["collapsed"]:
                head["panels"] = inside
                out.append(head)
            else:
                out += [head, *inside]
        return out

    def flow(self, panels, y):
        out, x, height = [], 0, 0
        for panel in panels:
            if x + panel["w"] > GRID:
                x, y, height = 0, y + height, 0
            out.append(self.panel(panel, x, y))
            # One that is repeated has its line for itself.
            x = GRID if "repeat" in panel else x + panel["w"]
            height = max(height, panel["h"])
        return out, y + height


def variable(name, label, query, where, multi, every=None):
    """`every`: what "All" stands for instead of the values that are listed, which are those of the time shown."""
    return {
        "name": name, "label": label, "type": "query", "datasource": DATASOURCE, "hide": 0,
        "query": {"query": query.replace("@", where), "refId": "variable"},
        "definition": query.replace("@", where), "refresh": 2, "sort": 3, "multi": multi,
        "includeAll": multi, "current": {"text": ["All"], "value": ["$__all"]} if multi else {},
        "options": [], "regex": "", "skipUrlSync": False, **({"allValue": every} if multi and every else {}),
    }


def annotation(name, expr, color, title):
    return {"name": name, "datasource": DATASOURCE, "enable": True, "hide": False, "iconColor": color,
            "expr": expr, "step": "15s", "titleFormat": title, "textFormat": "", "tagKeys": "",
            "useValueForTime": False}


def dashboard(facts, content, every):
    one, npus, jobs = content["instances"] == "one", content["npus"], content.get("jobs", False)
    where = 'cluster=~"$cluster",instance=~"$instance"'
    builder = Builder(facts, {"": where, "n": where + ',npu=~"$npu"' if npus else where,
                              "j": where + ',job_id=~"$job_id"'})
    variables = [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0,
         "current": {}, "options": [], "regex": "", "multi": False, "includeAll": False, "refresh": 1,
         "skipUrlSync": False},
        # A site with one cluster need not label it: no label matches as well.
        variable("cluster", "Cluster", "label_values(profd_build_info, cluster)", "", True, ".*"),
        # A node that has been down for longer than the time shown is not listed, but counts; alerts of jobs have no node.
        variable("instance", "Node" if one else "Nodes",
                 'label_values(profd_build_info{cluster=~"$cluster"}, instance)', "", not one, ".*"),
    ]
    if jobs:
        # Without a job, what has none must not be shown instead.
        variables.append(variable("job_id", "Job", "label_values(atlas_npu_job_info{@}, job_id)", where, True, ".+"))
    if npus:
        variables.append(variable("npu", "NPUs", "label_values(atlas_npu_info{@}, npu)", where, True))
    links = [{"type": "link", "title": other["title"], "url": f"/d/{other['uid']}", "icon": "dashboard",
              "tags": [], "asDropdown": False, "includeVars": True, "keepTime": True, "targetBlank": False,
              "tooltip": other["description"]} for other in every if other["uid"] != content["uid"]]
    return {
        "uid": content["uid"], "title": content["title"], "description": content["description"],
        "tags": ["profd", "atlas"], "schemaVersion": SCHEMA_VERSION, "version": 1, "editable": True,
        "id": None, "graphTooltip": 1, "refresh": "30s", "timezone": "browser", "fiscalYearStartMonth": 0,
        "liveNow": False, "weekStart": "", "style": "dark",
        "time": {"from": "now-1h", "to": "now"}, "timepicker": {}, "links": links,
        "templating": {"list": variables},
        "annotations": {"list": [
            annotation("Sessions", builder.expr('sum by (instance) (profd_sessions{@,state="running"}) > 0'),
                       "blue", "session running on {{instance}}"),
            annotation("Restarts", builder.expr("changes(profd_start_time_seconds{@}[@]) > 0"),
                       "purple", "profd restarted on {{instance}}"),
            annotation("Alerts", builder.expr(
                'ALERTS{@,alertname=~"Atlas.*|Profd.*",alertstate="firing"} > 0'),
                       "red", "{{alertname}} {{instance}} {{npu}}"),
        ]},
        "panels": builder.rows(content["rows"]),
    }


def files():
    """name -> text of every dashboard."""
    sys.path.insert(0, HERE)
    import contents
    facts = Facts()
    every = contents.DASHBOARDS
    return {content["uid"] + ".json": json.dumps(dashboard(facts, content, every), indent=1,
                                                 ensure_ascii=False) + "\n" for content in every}


def main():
    parser = argparse.ArgumentParser(description="Writes Grafana's dashboards.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--out", default=os.path.join(HERE, "grafana"))
    args = parser.parse_args()
    wrong = []
    for name, text in files().items():
        path = os.path.join(args.out, name)
        if args.check:
            have = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
            wrong += [name] if have != text else []
        else:
            os.makedirs(args.out, exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    if wrong:
        raise SystemExit(f"not up to date: {', '.join(wrong)}; run dashboards/generate.py")


if __name__ == "__main__":
    main()
