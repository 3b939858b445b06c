"""Counter events of the timeline from the rows of a Reference."""

from collections import Counter, defaultdict

from expected_csv import V6, micros

SLOTS = {"AI Core Utilization": 4, "UB": 5, "Instruction Profiling": 5, "CPU Usage": 9, "Memory Usage": 10, "Network Usage": 11,
         "Disk Usage": 12, "AI Core Freq": 15,
         "NPU MEM": 17, "DDR": 18, "Acc PMU": 19, "HCCS": 20, "NIC": 21, "RoCE": 22, "PCIe": 23,
         "HBM": 24, "Stars Soc Info": 25, "Stars Chip Trans": 26, "LLC": 27, "SIO": 28, "QoS": 29}


class Timeline:
    """`events`: Counter of (process, device, tid, name, ts, args as sorted pairs)."""

    def __init__(self, reference):
        self.events = Counter()
        self._begins = {p.device: p.clock.begin_us * 1000 for p in reference.places}
        self.chip = next((p.chip for p in reference.places), -1)
        for table in reference.rows:
            method = getattr(self, f"_{table}", None)
            if method is not None:
                for row in reference.rows[table]:
                    if row.t >= self._begins[row.device]:
                        method(row, row.values)
        self._sio_rows(reference.rows["sio"])
        self._utilization(reference)

    def _put(self, process, row, name, args, tid=0):
        self.events[(process, row.device, tid, name, micros(row.t),
                     tuple(sorted((k, float(v)) for k, v in args.items())))] += 1

    def _utilization(self, reference):
        """Cycles of a core against those its clock had since the core's sample before.
        difference: "timeline AI Core Utilization": nothing for the first sample."""
        last, rounds = {}, defaultdict(list)
        for row in reference.rows["aicore_pmu"]:
            v = row.values
            core = (row.device, v["type"], v["core"])
            since = row.t - last.get(core, row.t)
            last[core] = row.t
            if since <= 0 or row.t < self._begins[row.device]:
                continue
            value = v["cycles"] * 100 / (v["mhz"] * since / 1000)
            self._put("AI Core Utilization", row, ("Core {}", "Vector Core {}")[v["type"]].format(v["core"]),
                      {"Utilization(%)": value})
            if v["type"] == 0:
                rounds[(row.device, row.t)].append((row, value))
        for cores in rounds.values():
            self._put("AI Core Utilization", cores[0][0], "Average",
                      {"Utilization(%)": sum(value for _, value in cores) / len(cores)})

    def _hccs(self, row, v):
        self._put("HCCS", row, "Tx", {"Tx(MB/s)": v["tx"]})
        self._put("HCCS", row, "Rx", {"Rx(MB/s)": v["rx"]})

    def _pcie(self, row, v):
        if v["tx_post_max"] < v["tx_post_min"]:
            return
        for kind in ("post", "nonpost", "cpl"):
            self._put("PCIe", row, f"PCIe_{kind}", {
                side.title(): v[f"{side}_{kind}_avg"] * 1000000 / 1024 / 1024 for side in ("tx", "rx")})
        self._put("PCIe", row, "PCIe_nonpost_latency",
                  {"Tx": v["tx_nonpost_latency_avg"] / 1000, "Rx": 0})

    def _ub(self, row, v):
        port = f"Port{v['port']:03d}"
        self._put("UB", row, f"UB {port}", {"bandwidth_rx(MB/s)": v["udma_rx_bind"],
                                            "bandwidth_tx(MB/s)": v["udma_tx_bind"]})
        # Ours.
        self._put("UB", row, f"UNIC-{port}", {"bandwidth_rx(MB/s)": v["rx_bandwidth"],
                                              "bandwidth_tx(MB/s)": v["tx_bandwidth"]})
        for name in ("packet_rate", "packets", "bytes", "errors", "dropped"):
            self._put("UB", row, f"{port} {name.replace('_', ' ')}",
                      {side: v[f"{side}_{name}"] for side in ("rx", "tx")})

    def _instr_cycles(self, row, v):
        name = ("AIC", "AIV0", "AIV1")[v["core_type"]]
        units = ("vector" if v["core_type"] else "cube", "scalar", "mte1", "mte2", "mte3")
        self._put("Instruction Profiling", row, f"Group {v['core_group']} {name} cycles",
                  {unit.title(): v[unit] for unit in units})

    def _instr_flow(self, row, v):
        for what in ("bandwidth", "latency"):
            for side in ("read", "write"):
                self._put("Instruction Profiling", row,
                          f"Group {v['core_group']} {what.title()} {side.title()}", {"flow": v[f"{side}_{what}"]})

    def _hbm(self, row, v):
        side = ("Read", "Write")[v["direction"]]
        self._put("HBM", row, f"HBM {v['hbm']}/{side}", {f"{side}(MB/s)": v["bandwidth"]})

    def _ddr(self, row, v):
        self._put("DDR", row, "DDR/Read", {"Read(MB/s)": v["read"]})
        self._put("DDR", row, "DDR/Write", {"Write(MB/s)": v["write"]})

    def _llc(self, row, v):
        side = ("Read", "Write")[v["op"]]
        self._put("LLC", row, f"LLC {v['llc']} {side}/Hit Rate", {"Hit Rate(%)": v["hit_ratio"]})
        self._put("LLC", row, f"LLC {v['llc']} {side}/Throughput", {"Throughput(MB/s)": v["throughput"]})

    def _port(self, process, row, v):
        if not v["bandwidth"]:
            return
        for side in ("rx", "tx"):
            s = side.title()
            self._put(process, row, f"Port {v['port']}/{s}", {
                f"{s} Bandwidth Efficiency": v[f"{side}_efficiency"],
                f"{s} Packets": v[f"{side}_packet_rate"],
                f"{s} Error Rate": v[f"{side}_error_ratio"],
                f"{s} Dropped Rate": v[f"{side}_dropped_ratio"]})

    def _nic(self, row, v):
        self._port("NIC", row, v)

    def _roce(self, row, v):
        self._port("RoCE", row, v)

    def _npu_mem(self, row, v):
        kind = ("APP", "Device")[v["kind"]]
        for name, size in (("DDR", v["ddr"]), ("HBM", v["hbm"]), ("Memory", v["ddr"] + v["hbm"])):
            self._put("NPU MEM", row, f"{kind}/{name}", {"KB": size / 1024})

    def _aicore_freq(self, row, v):
        die = f" Die {v['die']}" if v["die"] >= 0 else ""
        self._put("AI Core Freq", row, f"AI Core Freq{die}", {"MHz": v["mhz"]})

    def _qos(self, row, v):
        # difference: "QoS": each die has its own event
        die = f" Die {v['die']}" if v["die"] > 0 else ""
        self._put("QoS", row, f"QoS {v['stream']}{die}", {"value": v["bandwidth"]})

    def _sio_rows(self, rows):
        names = {0: "D-DIE0", 2: "U-DIE0", 3: "U-DIE1"} if self.chip in V6 else {0: "die 0", 1: "die 1"}
        together = defaultdict(dict)
        for row in rows:
            if row.values["die"] not in names or row.t < self._begins[row.device]:
                continue
            for counter in ("req_rx", "rsp_rx", "snp_rx", "dat_rx", "req_tx", "rsp_tx", "snp_tx",
                            "dat_tx"):
                together[(row.device, row.t, counter)][names[row.values["die"]]] = row.values[counter]
        for (device, t, counter), args in together.items():
            self.events[("SIO", device, 0, counter, micros(t),
                         tuple(sorted(args.items())))] += 1

    def _acc_pmu(self, row, v):
        for name, column in (("read_bandwidth", "read_bandwidth"), ("read_ost", "read_outstanding"),
                             ("write_bandwidth", "write_bandwidth"), ("write_ost", "write_outstanding")):
            # The vendor's accelerators overlay each other: docs/export.md.
            self._put("Acc PMU", row, f"Acc {v['acc']}/{name}", {"value": v[column]})

    def _chip_trans(self, row, v):
        if self.chip in V6:
            for name, column in (("PCIE Write Bandwidth", "rx_or_write"),
                                 ("PCIE Read Bandwidth", "tx_or_read")):
                self._put("Stars Chip Trans", row, name, {f"U-Die{v['link']}": v[column]}, 100010)
            return
        if v["kind"] == 0:
            for name, column in (("PA Link Rx", "rx_or_write"), ("PA Link Tx", "tx_or_read")):
                self._put("Stars Chip Trans", row, name, {"PA Link ID": v["link"], name: v[column]},
                          111111)
        else:
            for name, column in (("PCIE Write Bandwidth", "rx_or_write"),
                                 ("PCIE Read Bandwidth", "tx_or_read")):
                self._put("Stars Chip Trans", row, name, {"PCIE ID": v["link"], name: v[column]}, 100010)

    def _soc_level(self, row, v):
        self._put("Stars Soc Info", row, "L2 Buffer Bw Level", {"L2 Buffer Bw Level": v["l2_buffer"]})
        self._put("Stars Soc Info", row, "Mata Bw Level", {"Mata Bw Level": v["mata"]})

    def _host_cpu(self, row, v):
        cpu = "Avg" if v["cpu"] < 0 else v["cpu"]
        self._put("CPU Usage", row, f"CPU {cpu}", {"Usage(%)": v["usage"]})

    def _host_mem(self, row, v):
        self._put("Memory Usage", row, "Memory Usage", {"Usage(%)": v["usage"]})

    def _host_disk(self, row, v):
        self._put("Disk Usage", row, "Disk Usage", {"Usage(%)": v["usage"]})

    def _host_network(self, row, v):
        self._put("Network Usage", row, "Network Usage", {"Usage(%)": v["usage"]})
