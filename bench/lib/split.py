"""Threads of the daemon by what they are for. Decoding is the pump's: one thread reads, frames and decodes."""

import re

PARTS = (("pump and decode", r"profd-pump"), ("write", r"profd-writer|profd-sync"),
         ("host collectors", r"profd-sample"), ("DCMI", r"profd-dcmi"),
         ("control", r"profd-control|profd-npuN|profd$|profd-accept"),
         ("metrics and HTTP", r"profd-web"),
         ("jobs and attribution", r"profd-(?:proc|users|attr|attach|jobmap|hccn|dumps)"))


def by_part(run):
    """Part: % of a core, the simulator's work excluded. What no part claims is gRPC's and its timers'."""
    shares = {name: 0.0 for name, _ in PARTS} | {"rpc and others": 0.0}
    for thread, row in run["threads"].items():
        part = next((name for name, pattern in PARTS if re.match(pattern, thread)), "rpc and others")
        shares[part] += row["cpu_percent"]
    return shares
