"""The kinds of panels that contents.py puts together. Queries are written as there."""

RED, YELLOW, GREEN, GREY = "red", "yellow", "green", "#808080"
# Where a value begins to matter; `top` colours temperatures at the same ones.
HOT = [(85, YELLOW), (95, RED)]
FULL = [(0.9, YELLOW), (0.97, RED)]
ANY = [(1, RED)]
# -10 dBm is AtlasOpticalPowerLow.
DARK = {"base": RED, "steps": [(-10, YELLOW), (-7, GREEN)]}
HEALTH = [(0, "healthy", GREEN), (1, "minor", YELLOW), (2, "major", "orange"), (3, "critical", RED)]
VERDICT = [(0, "ok", GREEN), (1, "degraded", YELLOW), (2, "faulty", RED), (3, "down", RED), (4, "unknown", GREY)]
YES_GOOD = [(1, "yes", GREEN), (0, "no", RED)]
NODE_LINK = [("Node", "/d/profd-node?${datasource:queryparam}&var-instance=${__data.fields.instance}"
                      "&${__url_time_range}")]
NODE_LINK_SERIES = [("Node", "/d/profd-node?${datasource:queryparam}&var-instance=${__field.labels.instance}"
                             "&${__url_time_range}")]


def panel(kind, title, *queries, w=8, h=8, **more):
    pairs = [(query, "") if isinstance(query, str) else query for query in queries]
    return {"type": kind, "title": title, "queries": pairs, "w": w, "h": h, **more}


def graph(title, *queries, **more):
    return panel("timeseries", title, *queries, **more)


def gauge(title, query, **more):
    """One dial for each NPU."""
    return panel("gauge", title, (query, "NPU {{npu}}"), **{"w": 6, "h": 7, **more})


def dbm(query):
    """Optical power as the data sheets of modules have it; 0 W is not a power that has a logarithm."""
    return f"10 * log10(1000 * ({query} > 0))"


def stat(title, *queries, **more):
    return panel("stat", title, *queries, **{"w": 4, "h": 4, **more})


def states(title, *queries, **more):
    return panel("state-timeline", title, *queries, **more)


def table(title, keep, columns, **more):
    """columns: {heading: (query, {steps, unit, values})}"""
    out = panel("table", title, *[query for query, _ in columns.values()], **{"w": 24, **more})
    out.update({"keep": keep, "columns": {name: extra for name, (_, extra) in columns.items()}})
    return out


def npu_graph(title, query, legend="NPU {{npu}}", **more):
    return graph(title, (query, legend), **more)


def band(title, query, what):
    """Min, mean and max of each chosen NPU, from a metric of the windows since the last scrape."""
    return graph(title + ", NPU $npu", (f"max by (stat) ({query})", "{{stat}}"), w=6, repeat="npu", band=True,
                 description=f"{what}: min, mean and max since the previous scrape, so that a dip between two "
                             "scrapes shows.")


def of_job(query):
    """Of a query with labels instance and npu: the NPUs of the chosen jobs."""
    return f"{query} and on (instance, npu) atlas_npu_job_info{{@j}}"


def job_graph(title, query, legend="{{instance}} NPU {{npu}}", **more):
    return graph(title, (of_job(query), legend), **{"link": NODE_LINK_SERIES, **more})


def rank_graph(title, query, **more):
    return graph(title, (query, "rank {{rank}} ({{instance}} pid {{pid}})"), **{"link": NODE_LINK_SERIES, **more})


def row(title, *panels, collapsed=False):
    return {"title": title, "panels": list(panels), "collapsed": collapsed}


def alerts(where, keep, **more):
    return panel("table", "Alerts", f'ALERTS{{{where},alertname=~"Atlas.*|Profd.*",alertstate="firing"}}',
                 keep=keep, hide_value=True, description="Alerts that fire now; the runbook that each links to describes what to do.",
                 **{"w": 12, **more})
