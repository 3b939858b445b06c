"""The kinds of panels that contents.py puts together. Queries are written as there."""

RED, YELLOW, GREEN, GREY = "red", "yellow", "green", "#808080"
HEALTH = [(0, "healthy", GREEN), (1, "minor", YELLOW), (2, "major", "orange"), (3, "critical", RED)]
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


def stat(title, *queries, **more):
    return panel("stat", title, *queries, **{"w": 4, "h": 4, **more})


def states(title, *queries, **more):
    return panel("state-timeline", title, *queries, **more)


def table(title, keep, columns, **more):
    """columns: {heading: (query, {steps, unit})}"""
    out = panel("table", title, *[query for query, _ in columns.values()], **{"w": 24, **more})
    out.update({"keep": keep, "columns": {name: extra for name, (_, extra) in columns.items()}})
    return out


def npu_graph(title, query, legend="NPU {{npu}}", **more):
    return graph(title, (query, legend), **more)


def band(title, query, what):
    """Least, mean and most of each chosen NPU, from a metric of the windows since the last scrape."""
    return graph(title + ", NPU $npu", (f"max by (stat) ({query})", "{{stat}}"), w=6, repeat="npu", band=True,
                 description=f"{what}: least, mean and most since the previous scrape, so that a dip between two "
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
                 keep=keep, hide_value=True, description="What fires now; docs/runbook.md says what to do.",
                 **{"w": 12, **more})
