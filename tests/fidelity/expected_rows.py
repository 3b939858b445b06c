"""Rows of the database, and metrics of generic readers, from the rows of a Reference."""

import re
from collections import defaultdict

from expected_csv import METRICS, V6

MEGA = 1048576.0


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


class Database:
    """name of table -> list of dicts by column; ids of STRING_IDS as their texts."""

    def __init__(self, reference):
        self.tables = defaultdict(list)
        begins = {p.device: p.clock.begin_us * 1000 for p in reference.places}
        self.chip = next((p.chip for p in reference.places), -1)
        self._own_tables(reference)
        self._cores(reference)
        for table, rows in reference.rows.items():
            method = getattr(self, f"_{table}", None)
            if method is not None:
                for row in rows:
                    if row.t >= begins[row.device]:
                        method(row, row.values)

    CORES = ("AIC", "AIV")

    def _cores(self, reference):
        """Samples and sums of cores. difference: a core's first sample has no usage; the vendor's interval is 1 ns."""
        last, sums = {}, {}
        for row in reference.rows["aicore_pmu"]:
            v = row.values
            core = (row.device, v["type"], v["core"], v["mhz"])
            since = row.t - last[core] if core in last else None
            last[core] = row.t
            if since != 0:
                self._put("SAMPLE_PMU_TIMELINE", row, totalCycle=v["cycles"], freq=v["mhz"],
                          usage=since and v["cycles"] * 1000 / (v["mhz"] * since) * 100, coreId=v["core"],
                          coreType=self.CORES[v["type"]])
            total = sums.setdefault(core, defaultdict(int))
            for name in v:
                total[name] += v[name]
        for (device, kind, core, mhz), total in sums.items():
            place = next(p for p in reference.places if p.device == device)
            events = place.sample["ai_core_profiling_events"].split(",")
            values = {"total_time": total["cycles"] * 1000 / (mhz * 1000000.0) * 1000000}
            counts = {event: total[f"event{i}"] for i, event in enumerate(events)}
            for metric, formula in METRICS[self.chip in V6]:
                top, _, base = formula.partition("/")
                values[metric] = counts[top] / (counts[base] if base else total["cycles"])
            for metric, value in values.items():
                self.tables["SAMPLE_PMU_SUMMARY"].append(
                    {"deviceId": device, "metric": metric, "value": value, "coreId": core,
                     "coreType": self.CORES[kind]})

    OWN = ("dvpp", "voltage", "chip_trans", "low_power", "sys_cpu", "sys_mem", "proc_cpu", "proc_mem",
           "aicore_pmu", "ub", "instr_cycles", "instr_flow")
    TEXTS = {"engine": ("vdec", "jpegd", "pngd", "jpege", "vpc", "venc", "scd"),
             "rail": ("aicore", "bus"), "kind": ("pa", "pcie"), "type": ("aic", "aiv"),
             "core_type": ("aic", "aiv0", "aiv1")}

    def _own_tables(self, reference):
        """What the vendor's database has no table for: all columns, of all rows."""
        for table in self.OWN:
            for row in reference.rows[table]:
                values = {camel(name): self.TEXTS[name][value] if name in self.TEXTS else value
                          for name, value in row.values.items() if name != "mhz"}
                self.tables["PROFD_" + ("UB_PORT" if table == "ub" else table.upper())].append(
                    dict(values, deviceId=row.device, timestampNs=row.t))

    def _put(self, table, row, **values):
        if row.device >= 0:
            values["deviceId"] = row.device
        values["timestampNs"] = row.t
        self.tables[table].append(values)

    @staticmethod
    def _bytes(mega):
        return int(mega * MEGA)

    def _hccs(self, row, v):
        self._put("HCCS", row, txThroughput=self._bytes(v["tx"]), rxThroughput=self._bytes(v["rx"]))

    def _pcie(self, row, v):
        if v["tx_post_max"] < v["tx_post_min"]:
            return
        self._put("PCIE", row, **{
            camel(name): value if "latency" in name else value * 1000000 for name, value in v.items()})

    def _ub(self, row, v):
        self._put("UB", row, portId=v["port"], rxUdmaBind=v["udma_rx_bind"], txUdmaBind=v["udma_tx_bind"])

    def _hbm(self, row, v):
        self._put("HBM", row, bandwidth=self._bytes(v["bandwidth"]), hbmId=v["hbm"],
                  type=("read", "write")[v["direction"]])

    def _ddr(self, row, v):
        self._put("DDR", row, read=self._bytes(v["read"]), write=self._bytes(v["write"]))

    def _llc(self, row, v):
        self._put("LLC", row, llcId=v["llc"], hitRate=v["hit_ratio"] * 100,
                  throughput=self._bytes(v["throughput"]), mode=("read", "write")[v["op"]])

    def _port(self, table, row, v):
        values = {camel(n): int(x) for n, x in v.items()
                  if not n.endswith(("ratio", "efficiency")) and n not in ("port", "bandwidth")}
        self._put(table, row, bandwidth=v["bandwidth"] * 1048576, funcId=v["port"], **values)

    def _nic(self, row, v):
        self._port("NIC", row, v)

    def _roce(self, row, v):
        self._port("ROCE", row, v)

    def _npu_mem(self, row, v):
        self._put("NPU_MEM", row, type=("app", "device")[v["kind"]], ddr=v["ddr"], hbm=v["hbm"])

    def _npu_module_mem(self, row, v):
        self._put("NPU_MODULE_MEM", row, moduleId=v["module"], totalReserved=v["reserved"])

    def _qos(self, row, v):
        self._put("QOS", row, eventName="QoS " + v["stream"], bandwidth=self._bytes(v["bandwidth"]),
                  dieId=v["die"])

    def _aicore_freq(self, row, v):
        self._put("AICORE_FREQ", row, freq=v["mhz"], dieId=v["die"])

    def _acc_pmu(self, row, v):
        self._put("ACC_PMU", row, accId=v["acc"], readBwLevel=v["read_bandwidth"],
                  writeBwLevel=v["write_bandwidth"], readOstLevel=v["read_outstanding"],
                  writeOstLevel=v["write_outstanding"])

    def _soc_level(self, row, v):
        self._put("SOC_BANDWIDTH_LEVEL", row, l2BufferBwLevel=v["l2_buffer"], mataBwLevel=v["mata"])

    def _sio(self, row, v):
        self._put("SIO", row, die=v["die"], **{
            side + kind.title(): v[f"{kind}_{side}"] * MEGA
            for side in ("rx", "tx") for kind in ("req", "rsp", "snp", "dat")})

    NETDEV = {"mac_tx_pfc_packets": "macTxPfcPkt", "mac_rx_pfc_packets": "macRxPfcPkt",
              "mac_tx_bytes": "macTxByte", "mac_rx_bytes": "macRxByte",
              "mac_tx_bad_bytes": "macTxBadByte", "mac_rx_bad_bytes": "macRxBadByte",
              "roce_tx_packets": "roceTxPkt", "roce_rx_packets": "roceRxPkt",
              "roce_tx_errors": "roceTxErrPkt", "roce_rx_errors": "roceRxErrPkt",
              "roce_tx_cnp_packets": "roceTxCnpPkt", "roce_rx_cnp_packets": "roceRxCnpPkt",
              "roce_new_packet_retries": "roceNewPktRty", "nic_tx_bytes": "nicTxByte",
              "nic_rx_bytes": "nicRxByte", "mac_tx_bandwidth": "macTxBandwidth",
              "mac_rx_bandwidth": "macRxBandwidth", "nic_tx_bandwidth": "nicTxBandwidth",
              "nic_rx_bandwidth": "nicRxBandwidth"}

    def _netdev(self, row, v):
        self._put("NETDEV_STATS", row, **{self.NETDEV[n]: x for n, x in v.items()})

    def _host_cpu(self, row, v):
        if v["cpu"] >= 0:  # the average is in the timeline only
            self._put("CPU_USAGE", row, cpuId=v["cpu"], usage=v["usage"])

    def _host_mem(self, row, v):
        self._put("HOST_MEM_USAGE", row, usage=v["usage"])

    def _host_disk(self, row, v):
        self._put("HOST_DISK_USAGE", row, readRate=v["read"] * 1024, writeRate=v["write"] * 1024,
                  usage=v["usage"])

    def _host_network(self, row, v):
        self._put("HOST_NETWORK_USAGE", row, usage=v["usage"], speed=v["speed"] * 1024)


def table_columns(source):
    """The contract of generic readers, from export/table.cc: table -> [(column, type, metric, labels,
    scale, texts, none, metric_of_die)]."""
    lists = {}
    for name, body in re.findall(r"constexpr auto (k\w+Columns) = std::to_array<Column>\(\{(.*?)\}\);",
                                 source, re.S):
        columns = []
        for entry in re.findall(r"\{([^{}]*)\}", body):
            parts = [p.strip() for p in re.findall(r'"[^"]*"|[^,\s][^,]*', entry)]
            text = [p.strip('"') for p in parts]
            text += [""] * (9 - len(text))
            scale = {"": 1.0, "kMega": MEGA}.get(text[5]) or float(text[5])
            columns.append((text[0], text[1], text[3], text[4], scale, *text[6:]))
        lists[name] = columns
    # A table's own labels stand before the column's.
    return {name: [(*c[:3], ",".join(filter(None, (labels, c[3]))), *c[4:]) for c in lists[columns]]
            for name, columns, labels in re.findall(r'\{TableId::k\w+, "(\w+)", (k\w+)(?:, "([^"]*)")?\}', source)}


def metrics(reference, columns):
    """[(time, device, metric, labels, value)] of each row's columns that have a metric."""
    result = []
    for table, rows in reference.rows.items():
        for row in rows:
            keys = {}
            for name, kind, _, _, _, texts, none, _ in columns[table]:
                if kind in ("kKey", "kName"):
                    value = row.values[name]
                    if kind == "kKey" and value == -1:
                        value = none
                    elif texts and isinstance(value, int):
                        value = texts.split(",")[value]
                    if value != "":
                        keys[name] = str(value)
            for name, kind, metric, labels, scale, _, _, metric_of_die in columns[table]:
                if metric_of_die and "die" in keys:
                    metric = metric_of_die
                if metric:
                    own = dict(keys)
                    own.update(label.split("=") for label in labels.split(",") if label)
                    result.append((row.t, row.device, metric, tuple(sorted(own.items())),
                                   row.values[name] * scale))
    return result
