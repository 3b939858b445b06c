"""CSV tables from the rows of a Reference, cell by cell as text."""

import math
import sqlite3
from collections import defaultdict
from decimal import Decimal

MEGA = 1048576.0
V6 = (15, 16)
# PipeUtilization: event / cycles, or event / event.
METRICS = {
    False: (("vec_ratio", "0x8"), ("mac_ratio", "0xa"), ("scalar_ratio", "0x9"),
            ("mte1_ratio", "0xb"), ("mte2_ratio", "0xc"), ("mte3_ratio", "0xd"),
            ("icache_miss_rate", "0x55/0x54")),
    True: (("vec_ratio", "0x501"), ("mac_ratio", "0x301"), ("scalar_ratio", "0x1"),
           ("mte1_ratio", "0x701"), ("mte2_ratio", "0x202"), ("mte3_ratio", "0x203"),
           ("icache_miss_rate", "0x35/0x34"), ("fixpipe_ratio", "0x714")),
}
SO_CHIPS = (5, 15, 16)  # whose npu_mem tables the analyser's native part writes
MODULES = dict(pair.split(" ") for pair in """0 SLOG,1 IDEDD,2 SCC,3 HCCL,4 FMK,5 CCU,6 DVPP,7 RUNTIME,8 CCE,
9 HDC,10 DRV,11 NET,22 DEVMM,23 KERNEL,24 LIBMEDIA,25 CCECPU,27 ROS,28 HCCP,29 ROCE,30 TEFUSION,31 PROFILING,
32 DP,33 APP,34 TS,35 TSDUMP,36 AICPU,37 LP,38 TDT,39 FE,40 MD,41 MB,42 ME,43 IMU,44 IMP,45 GE,47 CAMERA,
48 ASCENDCL,49 TEEOS,50 ISP,51 SIS,52 HSM,60 TUNE,77 CUSTOM""".replace("\n", "").split(","))
ENGINES = ("VDEC", "JPEGD", "PNGD", "JPEGE", "VPC", "VENC", "SCD")


def micros(t):
    return f"{t // 1000}.{t % 1000:03d}"


def name_of(device):
    return "host" if device < 0 else str(device)


def by_device(rows):
    """Device -> rows, devices in the order of their folders' names."""
    groups = defaultdict(list)
    for row in rows:
        groups[row.device].append(row)
    return [(d, groups[d]) for d in sorted(groups, key=lambda d: "z" if d < 0 else str(d))]


def by_key(rows, *columns):
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row.values[c] for c in columns)].append(row.values)
    return sorted(groups.items())


def sql(values, formula):
    """One aggregate as the analyser's queries make it, of a REAL column v."""
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (v real)")
    connection.executemany("insert into t values (?)", [(v,) for v in values])
    result = connection.execute(f"select {formula} from t").fetchone()[0]
    connection.close()
    return result


def round3(value):
    return repr(round(float(value), 3))


def recommended(values):
    """[peak, the 98th percentile of those above 0 / 0.8]"""
    above = sorted(v for v in values if v > 0)
    rank = above[math.ceil((len(above) - 1) * 0.98)] if above else 0.0
    return [max(values), rank / 0.8]


class Csv:
    """name of table -> rows of texts; `sorted_only` names those whose order is not guaranteed."""

    sorted_only = ("npu_mem",)

    def __init__(self, reference):
        self._ref = reference
        self._rows = reference.rows
        self.chip = next((p.chip for p in reference.places), -1)
        self._begins = {p.device: p.clock.begin_us * 1000 for p in reference.places}
        self.tables = {}
        for name in ("hccs pcie nic roce dvpp llc hbm ddr npu_mem npu_module_mem cpu_usage "
                     "process_cpu_usage sys_mem process_mem host_cpu host_mem host_disk host_network "
                     "cores ub").split():
            getattr(self, f"_{name}")()

    def _put(self, name, header, rows):
        if rows:
            self.tables[name] = [["Device_id"] + header] + rows

    def _hccs(self):
        rows = []
        for device, group in by_device(self._rows["hccs"]):
            for column in ("tx", "rx"):
                values = [r.values[column] for r in group]
                rows.append([name_of(device), f"{column.title()} (MB/s)"] +
                            [repr(sql(values, f"round({f}(v), 3)")) for f in ("max", "min", "avg")])
        self._put("hccs", ["Mode", "Max", "Min", "Average"], rows)

    def _pcie(self):
        rows = []
        kinds = (("Tx_p", "tx_post"), ("Tx_np", "tx_nonpost"), ("Tx_cpl", "tx_cpl"),
                 ("Tx_latency", "tx_nonpost_latency"), ("Rx_p", "rx_post"), ("Rx_np", "rx_nonpost"),
                 ("Rx_cpl", "rx_cpl"))
        for device, group in by_device(self._rows["pcie"]):
            if self.chip == 5:
                group = sorted(group, key=lambda r: r.t)[-1:]
            else:
                group = [r for r in group if r.values["tx_post_max"] >= r.values["tx_post_min"]]
            if not group:
                continue
            for label, kind in kinds:
                cells = []
                for what in ("min", "max", "avg"):
                    values = [r.values[f"{kind}_{what}"] for r in group]
                    # difference: "CSV pcie": no smallest value is averaged as the 0 it is shown as
                    value = values[0] if self.chip == 5 else sql(values, "round(avg(v), 6)")
                    cells.append(round3(value / 1000 if "latency" in kind
                                        else value * (1e9 / 1000 / 1024.0 / 1024.0)))
                unit = "us" if "latency" in kind else "MB/s"
                rows.append([name_of(device), f"{label}_avg({unit})"] + cells)
        self._put("pcie", ["Mode", "Min", "Max", "Avg"], rows)

    def _network(self, table):
        """differences: "CSV nic, roce": time of the last sample, growth by real seconds, percents."""
        rows = []
        for device, group in by_device(self._rows[table]):
            for (port,), _ in by_key(group, "port"):
                own = [r for r in group if r.values["port"] == port]
                cells = [name_of(device), micros(max(r.t for r in own)) + "\t",
                         repr(float(own[0].values["bandwidth"]))]
                seconds = (max(r.t for r in own) - own[0].t) / 1e9
                speed = own[0].values["bandwidth"] * MEGA
                for side in ("rx", "tx"):
                    column = {c: [r.values[f"{side}_{c}"] for r in own]
                              for c in ("packet_rate", "byte_rate", "packets", "bytes", "errors",
                                        "dropped")}
                    if len(own) == 1:
                        grown = {c: v[0] for c, v in column.items()}
                        per_second = grown["byte_rate"]
                    else:
                        grown = {c: sum(max(b - a, 0) for a, b in zip(v, v[1:]))
                                 for c, v in column.items()}
                        per_second = grown["bytes"] / seconds if seconds > 0 else 0
                    cells.append(round3(per_second * 8 / speed if speed else 0))
                    cells.append(round3(sum(column["packet_rate"]) / len(own)))
                    for c in ("errors", "dropped"):
                        cells.append(round3(grown[c] / grown["packets"] * 100
                                            if grown["packets"] else 0))
                rows.append(cells + [str(port)])
        header = ["Timestamp(us)", "Bandwidth(MB/s)"]
        for side in ("Rx", "Tx"):
            low = side.lower()
            header += [f"{side} Bandwidth efficiency(%)", f"{low}Packet/s", f"{low}Error rate(%)",
                       f"{low}Dropped rate(%)"]
        self._put(table, header + ["funcId"], rows)

    def _nic(self):
        self._network("nic")

    def _roce(self):
        self._network("roce")

    def _dvpp(self):
        rows = []
        for device, group in by_device(self._rows["dvpp"]):
            for (dvpp, engine, instance), own in by_key(group, "dvpp", "engine", "engine_id"):
                grown = [repr(max(v[c] for v in own) - min(v[c] for v in own))
                         for c in ("all_time", "all_frame")]
                rows.append([name_of(device), str(dvpp), ENGINES[engine], str(instance)] + grown +
                            [str(int(own[-1]["all_utilization"]))])
        self._put("dvpp", ["Dvpp Id", "Engine Type", "Engine ID", "All Time(us)", "All Frame",
                           "All Utilization(%)"], rows)

    def _llc_bandwidth(self):
        """Chip 0: over the whole time, from the first row to the last."""
        rows = []
        for device, group in by_device(self._rows["llc"]):
            seconds = (max(r.t for r in group) - min(r.t for r in group)) / 1e9
            own = [[r.values for r in group if r.values["op"] == op] for op in (0, 1)]
            lines = [sum(v["lines"] for v in values) for values in own]
            hits = [sum(v["hits"] for v in values) for values in own]
            for label, cells in (
                    ("BandWidth(MB/s)", [n * 64.0 / seconds / MEGA if seconds else 0 for n in lines]),
                    ("Hit_Rate(%)", [round(h / n, 6) * 100 for h, n in zip(hits, lines)]),
                    ("Hit_BandWidth(MB/s)", [n * 64.0 / seconds / MEGA if seconds else 0
                                             for n in hits])):
                rows.append([name_of(device), label] + [round3(c) for c in cells])
        self._put("llc_bandwidth", ["Metric", "l3c_rd", "l3c_wr"], rows)

    def _llc(self):
        if self.chip == 0:
            self._llc_bandwidth()
            return
        rows = []
        for device, group in by_device(self._rows["llc"]):
            mode = ("read", "write")[group[0].values["op"]]
            own = [(str(i), sql([v["hit_ratio"] for v in vs], "round(avg(v), 6)") * 100,
                    sql([v["throughput"] for v in vs], "round(avg(v), 6)"))
                   for (i,), vs in by_key(group, "llc")]
            mean = ("Average", sum(o[1] for o in own) / len(own), sum(o[2] for o in own) / len(own))
            rows += [[name_of(device), mode, task, round3(hit), round3(rate)]
                     for task, hit, rate in [mean] + own]
        self._put("llc_read_write", ["Mode", "Task", "Hit Rate(%)", "Throughput(MB/s)"], rows)

    def _hbm(self):
        rows = []
        place = Decimal("0.000")
        for device, group in by_device(self._rows["hbm"]):
            own = []
            for (ident,), values in by_key(group, "hbm"):
                cells = []
                for direction in (0, 1):
                    rates = [v["bandwidth"] for v in values if v["direction"] == direction]
                    cells.append(sql(rates, "sum(v)") / len(rates) if rates else None)
                own.append((str(ident), cells))
            average = []
            for direction in (0, 1):
                # difference: "CSV hbm": of the stacks that have some
                values = [c[direction] for _, c in own if c[direction] is not None]
                total = sum((Decimal(str(v)) for v in values), Decimal(0)).quantize(place)
                average.append(str((total / len(values)).quantize(place)) if values else "0.000")
            rows.append([name_of(device), "Average"] + average)
            rows += [[name_of(device), ident] + ["" if v is None else round3(v) for v in cells]
                     for ident, cells in own]
        self._put("hbm", ["Metric", "Read(MB/s)", "Write(MB/s)"], rows)

    def _ddr(self):
        rows = []
        for device, group in by_device(self._rows["ddr"]):
            rows.append([name_of(device), "Average"] +
                        [round3(sum(r.values[c] for r in group) / len(group))
                         for c in ("read", "write")])
        self._put("ddr", ["Metric", "Read(MB/s)", "Write(MB/s)"], rows)

    def _from_begin(self, table):
        """The native part leaves out what is older than the session."""
        return [r for r in self._rows[table]
                if self.chip not in SO_CHIPS or r.t >= self._begins[r.device]]

    def _kilobytes(self, size):
        return str(size // 1024) if self.chip in SO_CHIPS else round3(size / 1024.0)

    def _npu_mem(self):
        rows = []
        for device, group in by_device(self._from_begin("npu_mem")):
            for row in group:
                v = row.values
                rows.append([name_of(device), ("APP", "Device")[v["kind"]]] +
                            [self._kilobytes(n) for n in (v["ddr"], v["hbm"], v["ddr"] + v["hbm"])] +
                            [micros(row.t) + "\t"])
        self._put("npu_mem", ["event", "ddr(KB)", "hbm(KB)", "memory(KB)", "timestamp(us)"], rows)

    def _npu_module_mem(self):
        rows = []
        groups = [r for _, g in by_device(self._from_begin("npu_module_mem")) for r in g]
        if self.chip in SO_CHIPS:
            groups.sort(key=lambda r: (r.values["module"], r.t))
        for row in groups:
            size = row.values["reserved"]
            rows.append([name_of(row.device), MODULES.get(str(row.values["module"]), "UNKNOWN"),
                         micros(row.t) + "\t", self._kilobytes(size) if size > 0 else str(size),
                         f"NPU:{row.device}"])
        self._put("npu_module_mem", ["Component", "Timestamp(us)", "Total Reserved(KB)", "Device"], rows)

    def _cpu_usage(self):
        rows = []
        columns = ("user", "system", "iowait", "irq", "softirq", "idle")
        for place in sorted(self._ref.places, key=lambda p: "z" if p.device < 0 else str(p.device)):
            group = [r.values for r in self._rows["sys_cpu"] if r.device == place.device]
            kinds = [("host", None)]
            if place.device >= 0:
                facts = (place.info.get("DeviceInfo") or [{}])[0]
                kinds = [(kind, [int(n) for n in facts.get(key, "").split(",") if n])
                         for kind, key in (("aicpu", "ai_cpu"), ("ctrlcpu", "ctrl_cpu"))]
            for kind, cpus in kinds:
                own = [v for v in group if v["cpu"] >= 0 and (cpus is None or v["cpu"] in cpus)]
                total = sum(sum(v.values()) - v["cpu"] for v in own)
                if own:
                    rows.append([name_of(place.device), kind] +
                                [round3(sum(v[c] for v in own) / total * 100) for c in columns])
        self._put("cpu_usage", ["Cpu Type", "User(%)", "Sys(%)", "IoWait(%)", "Irq(%)", "Soft(%)",
                                "Idle(%)"], rows)

    def _process_cpu_usage(self):
        rows = []
        for device, group in by_device(self._rows["proc_cpu"]):
            for (pid, name), own in by_key(group, "pid", "process"):
                usage = 100 * sum(v["process_jiffies"] / v["total_jiffies"] for v in own) / len(own)
                rows.append([name_of(device), str(pid), name, round3(usage)])
        self._put("process_cpu_usage", ["PID", "Name", "CPU(%)"], rows)

    def _sys_mem(self):
        rows = []
        columns = ("total", "free", "buffers", "cached", "shmem", "commit_limit", "committed_as",
                   "huge_pages_total", "huge_pages_free")
        for device, group in by_device(self._rows["sys_mem"]):
            rows.append([name_of(device)] +
                        [str(sum(r.values[c] for r in group) // len(group)) for c in columns])
        self._put("sys_mem", [
            "Memory Total(kB)", "Memory Free(kB)", "Buffers(kB)", "Cached(kB)", "Share Memory(kB)",
            "Commit Limit(kB)", "Committed AS(kB)", "Huge Pages Total(pages)",
            "Huge Pages Free(pages)"], rows)

    def _process_mem(self):
        rows = []
        for device, group in by_device(self._rows["proc_mem"]):
            for (pid, name), own in by_key(group, "pid", "process"):
                rows.append([name_of(device), str(pid), name] +
                            [str(sum(v[c] for v in own) // len(own))
                             for c in ("size", "resident", "shared")])
        self._put("process_mem", ["PID", "Name", "Size(pages)", "Resident(pages)", "Shared(pages)"],
                  rows)

    def _host_cpu(self):
        seen = defaultdict(float)
        for row in self._rows["host_cpu"]:
            if row.values["cpu"] >= 0:
                seen[row.values["cpu"]] = max(seen[row.values["cpu"]], row.values["usage"])
        if self._rows["host_cpu"]:
            busy = sum(1 for usage in seen.values() if usage > 0)
            self._put("host_cpu_usage", ["Total Cpu Numbers", "Occupied Cpu Numbers",
                                         "Recommend Cpu Numbers"],
                      [["host", str(self._ref.host.info["cpuNums"]), str(len(seen)), str(busy)]])

    def _host_mem(self):
        values = [r.values["usage"] for r in self._rows["host_mem"]]
        if values:
            total = self._ref.host.info["memoryTotal"]
            self._put("host_mem_usage", ["Total Memory(KB)", "Peak Used Memory(KB)",
                                         "Recommend Memory(KB)"],
                      [["host", str(total)] + [round3(v * total / 100) for v in recommended(values)]])

    def _host_disk(self):
        rows = self._rows["host_disk"]
        if rows:
            cells = recommended([r.values["read"] for r in rows])
            cells += recommended([r.values["write"] for r in rows])
            self._put("host_disk_usage",
                      [f"{k} Disk {d}(KB/s)" for d in ("Read", "Write") for k in ("Peak", "Recommend")],
                      [["host"] + [repr(c) for c in cells]])

    def _host_network(self):
        values = [r.values["speed"] for r in self._rows["host_network"]]
        if values:
            speed = sum(c["speed"] * 125000 / 1024.0 for c in self._ref.host.info["netCard"])
            self._put("host_network_usage", ["Netcard Speed(KB/s)", "Peak Used Speed(KB/s)",
                                             "Recommend Speed(KB/s)"],
                      [["host", repr(speed)] + [repr(v) for v in recommended(values)]])

    def _cores(self):
        """PipeUtilization: sum(event) / sum(cycles)."""
        for kind, table in ((0, "ai_core_utilization"), (1, "ai_vector_core_utilization")):
            rows = []
            names = METRICS[self.chip in V6]
            for device, group in by_device(self._rows["aicore_pmu"]):
                events = next(p for p in self._ref.places if p.device == device).sample[
                    "ai_core_profiling_events"].split(",")
                own = []
                for (core, core_kind), values in by_key(group, "core", "type"):
                    if core_kind != kind:
                        continue
                    total = {"cycles": sum(v["cycles"] for v in values)}
                    for i, event in enumerate(events):
                        total[event] = sum(v[f"event{i}"] for v in values)
                    cells = []
                    for _, formula in names:
                        top, _, base = formula.partition("/")
                        cells.append(round(total[top] / total[base or "cycles"], 3))
                    own.append([f"Core{core}"] + cells)
                if own:
                    own.append(["Average"] + [round(sum(r[i] for r in own) / len(own), 3)
                                              for i in range(1, len(names) + 1)])
                for cells in own:
                    by_name = dict(zip((n for n, _ in names), cells[1:]))
                    most = max(by_name["mac_ratio"], by_name["vec_ratio"])
                    bound = round(by_name["mte2_ratio"] / most, 3) if most else 0
                    texts = [repr(c) for c in cells[1:]]
                    if self.chip in (7, 8, 11):
                        texts[0] = "N/A"  # these have no counter of vector work
                    rows.append([name_of(device), cells[0]] + texts + [repr(bound)])
            self._put(table, ["Core ID"] + [n for n, _ in names] + ["memory_bound"], rows)

    def _ub(self):
        self._put("ub", ["PortId", "TimeStamp", "UBRxPortBandWidth(MB/s)", "UBTxPortBandWidth(MB/s)"], [
            [name_of(r.device), str(r.values["port"]), micros(r.t) + "\t", str(r.values["udma_rx_bind"]),
             str(r.values["udma_tx_bind"])] for r in self._rows["ub"]])
