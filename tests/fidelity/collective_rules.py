"""What PyTorch's profiler sums up of communication, from operations and their tasks: the rules of docs/export.md in
Python, without a look at the exporter."""

LARGE_MB = {"RDMA": 0.5, "HCCS": 32, "PCIE": 32, "SIO": 32}
LINKS = ("RDMA", "HCCS", "PCIE", "SDMA", "SIO")


class Task:
    """`us`: how long; `link`: of TRANSPORTS or None; `pair`: (source, destination)."""

    def __init__(self, name, start, us, plane, link, pair, size):
        self.name, self.start, self.us, self.plane, self.link, self.pair, self.size = (
            name, start, us, plane, link, pair, size)


class Operation:
    def __init__(self, name, group, start_us, us, tasks):
        self.name, self.group, self.start_us, self.us = name, group, start_us, us
        self.tasks = sorted(tasks, key=lambda t: t.start)


def ratio(part, rest):
    return round(part / (part + rest), 4) if part + rest else 0.0


def add(sizes, key, count, ms):
    entry = sizes.setdefault(key, [0, 0.0])
    entry[0] += count
    entry[1] += ms


def times_of(operation):
    planes = {}
    for task in operation.tasks:
        plane = planes.setdefault(task.plane, [0.0, 0.0, 0.0, False])  # transit, wait, synchronization, counts
        if task.name == "Notify_Wait":
            plane[1] += task.us / 1000
            plane[2] += 0 if plane[0] else task.us / 1000
            plane[3] = True
        elif task.link in LARGE_MB:
            plane[0] += task.us / 1000
            plane[3] = True
    transit, wait, synchronization = next((p[:3] for _, p in sorted(planes.items()) if p[3]), (0.0, 0.0, 0.0))
    elapse = operation.us / 1000
    return {"Start Timestamp(us)": operation.start_us, "Elapse Time(ms)": elapse, "Transit Time(ms)": transit,
            "Wait Time(ms)": wait, "Synchronization Time(ms)": synchronization,
            "Idle Time(ms)": elapse - transit - wait, "Wait Time Ratio": ratio(wait, transit),
            "Synchronization Time Ratio": ratio(synchronization, transit)}


def bandwidth_of(operation):
    links = {name: {"Transit Size(MB)": 0, "Transit Time(ms)": 0, "Bandwidth(GB/s)": 0, "Large Packet Ratio": 0,
                    "Size Distribution": {}} for name in LINKS}
    large = {}
    for task in operation.tasks:
        if task.link not in LARGE_MB:
            continue
        link = links[task.link]
        mb, ms = task.size / 1e6, task.us / 1000
        link["Transit Size(MB)"] += mb
        link["Transit Time(ms)"] += ms
        add(link["Size Distribution"], repr(mb), 1, ms)
        large.setdefault(task.link, []).append(mb > LARGE_MB[task.link])
    for name in ("HCCS", "PCIE", "SIO"):
        for key in ("Transit Size(MB)", "Transit Time(ms)"):
            links["SDMA"][key] += links[name][key]
    for name, link in links.items():
        if link["Transit Time(ms)"]:
            link["Bandwidth(GB/s)"] = round(link["Transit Size(MB)"] / link["Transit Time(ms)"], 4)
        if name in large:
            link["Large Packet Ratio"] = round(sum(large[name]) / len(large[name]), 4)
    return links


def total_of(entries):
    times = {key: sum(e["Communication Time Info"][key] for e in entries)
             for key in ("Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)",
                         "Idle Time(ms)")}
    times["Wait Time Ratio"] = ratio(times["Wait Time(ms)"], times["Transit Time(ms)"])
    times["Synchronization Time Ratio"] = ratio(times["Synchronization Time(ms)"], times["Transit Time(ms)"])
    links = {}
    for name in LINKS:
        parts = [e["Communication Bandwidth Info"][name] for e in entries]
        sizes = {}
        for part in parts:
            for key, (count, ms) in part["Size Distribution"].items():
                add(sizes, key, count, ms)
        links[name] = {"Transit Time(ms)": sum(p["Transit Time(ms)"] for p in parts),
                       "Transit Size(MB)": sum(p["Transit Size(MB)"] for p in parts), "Size Distribution": sizes}
    return {"Communication Time Info": times, "Communication Bandwidth Info": links}


def is_p2p(operation):
    return any(word in operation.name.lower() for word in ("send", "receive"))


def communication(operations):
    """Of one step."""
    made = {"p2p": {}, "collective": {}}
    for operation in sorted(operations, key=lambda o: o.start_us):
        made["p2p" if is_p2p(operation) else "collective"][f"{operation.name}@{operation.group}"] = {
            "Communication Time Info": times_of(operation), "Communication Bandwidth Info": bandwidth_of(operation)}
    for kind in made.values():
        if kind:
            kind["Total Op Info"] = total_of(list(kind.values()))
    return made


def matrix(operations):
    made = {"p2p": {}, "collective": {}}
    found = {}
    for operation in sorted(operations, key=lambda o: o.start_us):
        short = operation.name.lower().removeprefix("hcom_").split("_")[0]
        sums = {}
        for task in operation.tasks:
            if task.link is None:
                continue
            entry = sums.setdefault("-".join(map(str, task.pair)), [task.link, 0.0, 0.0])
            entry[1] += task.size / 1e6
            entry[2] += task.us / 1000
        for pair, (link, mb, ms) in sums.items():
            found.setdefault(("p2p" if is_p2p(operation) else "collective", short, operation.group), {}).setdefault(
                pair, []).append((link, mb, ms, operation.name))

    def entry(link, mb, ms, name=None):
        made = {"Transport Type": link, "Transit Size(MB)": mb, "Transit Time(ms)": ms,
                "Bandwidth(GB/s)": round(mb / ms, 4) if ms else 0.0}
        return made | ({"Op Name": name} if name else {})

    for (kind, short, group), pairs in found.items():
        for pair, each in pairs.items():
            each.sort(key=lambda e: -round(e[1] / e[2], 4))
            picks = {"top1": each[0], "middle": each[len(each) // 2], "bottom1": each[-1],
                     "total": (each[0][0], sum(e[1] for e in each), sum(e[2] for e in each))}
            for i in (2, 3):
                if i <= len(each):
                    picks[f"bottom{i}"] = each[-i]
            for pick, values in picks.items():
                made[kind].setdefault(f"{short}-{pick}@{group}", {})[pair] = entry(*values)
    return made
