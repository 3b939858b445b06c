"""The chip's own records (stars_soc_profile) and counters of cores, as rows of a Reference."""

import struct
from collections import defaultdict

from series import MEGA, V6, Later


class ChipParts:
    def _stars_soc_profile(self, place, slices):
        later = defaultdict(Later)
        v6 = place.chip in V6
        data = b"".join(slices)
        for at in range(0, len(data) // 64 * 64, 64):
            record = data[at:at + 64]
            head, magic = struct.unpack_from("<HH", record)
            if magic != 0x6BD3:
                continue
            count = struct.unpack_from("<Q", record, 8)[0]
            handler = {24: self._soc_qos, 25: self._sio, 26: self._acc, 27: self._trans, 28: self._level,
                       29: self._power}.get(head & 63)
            if handler is not None:
                handler(place, record, head, count, v6, later)

    def _sio(self, place, record, head, count, v6, series):
        if v6:
            fields = struct.unpack("<BBHIQQ10I", record)
            die, sizes = (fields[1] & 0xFC) >> 2, fields[7:11] + fields[12:16]
            count = fields[4]
        else:
            fields = struct.unpack("<HHIQHH11I", record)
            die, sizes = fields[5], fields[9:17]
        later = series[die]
        what = later.take(count)
        if what == "drop":
            return
        if what == "rate":
            real = place.clock.real_device_counter
            span = real(count) - real(later.last)
            names = ("req_rx", "rsp_rx", "snp_rx", "dat_rx", "req_tx", "rsp_tx", "snp_tx", "dat_tx")
            self._add("sio", place, place.clock.device_counter(count), die=die,
                      **{n: s * (1e9 / MEGA) / span for n, s in zip(names, sizes)})
        later.last = count

    def _acc(self, place, record, head, count, v6, _):
        f = struct.unpack("<HHLQHH3L4Q", record)
        self._add("acc_pmu", place, place.clock.device_counter(count), acc=f[5], read_bandwidth=f[10],
                  write_bandwidth=f[9], read_outstanding=f[12], write_outstanding=f[11])

    def _trans(self, place, record, head, count, v6, _):
        if v6:
            f = struct.unpack("<2HI3Q8L", record)
            self._add("chip_trans", place, place.clock.device_counter(count), kind=1, link=head >> 10,
                      rx_or_write=f[4], tx_or_read=f[5])
            return
        f = struct.unpack("<2HLQ2H3L2Q4L", record)
        kind = {0b111111: 0, 0b100010: 1}.get(head >> 10)
        if kind is not None:
            self._add("chip_trans", place, place.clock.device_counter(count), kind=kind,
                      link=f[5] & 63, rx_or_write=f[9], tx_or_read=f[10])

    def _soc_qos(self, place, record, head, count, v6, _):
        names = [n for n in place.sample.get("qosEvents", "").split(",") if n]
        f = struct.unpack("<HHLQQ10L", record)
        # Two slots of these records are not named.
        for name, value in zip(names, f[7:15] if v6 else f[5:15]):
            self._add("qos", place, place.clock.device_counter(count), stream=name, die=head >> 10,
                      bandwidth=value)

    def _level(self, place, record, head, count, v6, _):
        f = struct.unpack("<HHLQ4LHH7L", record)
        self._add("soc_level", place, place.clock.device_counter(count), l2_buffer=(f[8] & 0x7F8) >> 3,
                  mata=f[8] & 7)

    def _power(self, place, record, head, count, v6, _):
        f = struct.unpack("<HHLQQ20H", record)
        self._add("low_power", place, place.clock.device_counter(count), die=head >> 10,
                  **{f"v{i}": f[5 + (i ^ 1)] for i in range(20)})  # the halves of words are swapped

    def _pmu(self, place, slices, split):
        if place.sample.get("ai_core_profiling_mode") != "sample-based":
            return
        v6 = place.chip in V6
        events = 10 if v6 else 8
        for f in self._records(slices, f"<BBHHH{events}QQQBB6B"):
            if not f[0]:
                continue
            cycles, timestamp, number, core = f[5 + events:9 + events]
            t = place.clock.device_counter(timestamp) if v6 else place.clock.device(timestamp)
            values = {f"event{i}": f[5 + i] if i < events else 0 for i in range(10)}
            self._add("aicore_pmu", place, t, core=core, type=split(core), cycles=cycles,
                      count_num=number, mhz=int(place.info["DeviceInfo"][0]["aic_frequency"]), **values)

    def _aicore(self, place, slices):
        self._pmu(place, slices, lambda core: 0)

    def _aiVectorCore(self, place, slices):
        self._pmu(place, slices, lambda core: 1)

    def _ffts_profile(self, place, slices):
        edge = 35 if place.chip in V6 else 24
        self._pmu(place, slices, lambda core: int(core > edge))

    UNITS = ("vector", "scalar", "cube", "mte1", "mte2", "mte3")
    FLOWS = ("read_commands", "write_commands", "read_latency", "write_latency", "read_bandwidth", "write_bandwidth",
             "l2_read_bandwidth", "l2_write_bandwidth")

    def _instr(self, place, slices, group, core):
        """difference: "instruction profiling": the record's time; no cycles of the first record."""
        size = 64 if core else 96
        last = None
        for record, in self._records(slices, f"{size}s"):
            pieces = [record[i:i + 8] for i in range(32, size, 8)]
            bits = int.from_bytes(b"".join(pieces if core else pieces[1::2]), "little")
            numbers = [bits >> 12 * i & 4095 for i in range(20)]
            count = bits >> 240 << 48 | sum(numbers[i] << 12 * k for k, i in enumerate((7, 8, 14, 15)))
            if core == 0:
                flow = b"".join(pieces[::2])
                count, hits = struct.unpack_from("<QH", flow, 22)
                starts = (0, 2, 4, 7, 10, 13, 16, 19, 22)
                values = [int.from_bytes(flow[a:b], "little") for a, b in zip(starts, starts[1:])]
                self._add("instr_flow", place, place.clock.device_counter(count), core_group=group,
                          **dict(zip(self.FLOWS, values)), l2_hits=hits)
            if last is not None:
                self._add("instr_cycles", place, place.clock.device_counter(count), core_group=group, core_type=core,
                          **{unit: (now - then) % 4096 for unit, now, then in zip(self.UNITS, numbers, last)})
            last = numbers

    def _instr_group_2_aic(self, place, slices):
        self._instr(place, slices, 2, 0)

    def _instr_group_24_aiv0(self, place, slices):
        self._instr(place, slices, 24, 1)

    def _instr_group_24_aiv1(self, place, slices):
        self._instr(place, slices, 24, 2)

    UB = ("udma_rx_bind udma_tx_bind rx_bandwidth rx_packet_rate rx_bytes rx_packets rx_errors "
          "rx_dropped tx_bandwidth tx_packet_rate tx_bytes tx_packets tx_errors tx_dropped").split()

    def _ub(self, place, slices):
        for f in self._records(slices, "<4H15Q"):
            if f[0] == 0x5A5A:
                # Microseconds since the start, without the others' steps.
                self._add("ub", place, place.clock.device(f[4] * 1000 + place.clock.device_ns), port=f[2],
                          **dict(zip(self.UB, f[5:])))
