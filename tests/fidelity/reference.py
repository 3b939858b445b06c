"""What the exports of a PROF directory must hold, worked out slowly from its bytes.

From the description of the format and of what the vendor's analyser does with it, and nothing of the
code under test. `Reference(path)` has `rows` (name of table -> list of Row), from which
expected_*.py make tables, events and metrics. Where a row of docs/export.md says ours is
another, the place has a comment "difference:" with the row's first words.
"""

import os
import re
import struct
from collections import defaultdict, namedtuple
from decimal import Decimal

from places import Place
from reference_chip import ChipParts
from reference_host import HostParts
from series import MEGA, V6, Later, Unwrap

LLC_EVENTS = {"read": (0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36),
              "write": (0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37)}
LLC_IDS = {5: 2, 7: 1, 8: 1, 11: 1}

# One row: wall clock in ns, device (-1 = host), values by column.
Row = namedtuple("Row", "device t values")


def quantize3(number):
    """The analyser's decimals: three places, half to even."""
    return float(number.quantize(Decimal("0.000")))


class Reference(ChipParts, HostParts):
    def __init__(self, path):
        self.rows = defaultdict(list)
        self.places = []
        for name in sorted(os.listdir(path)):
            match = re.fullmatch(r"device_(\d+)", name)
            if match:
                self.places.append(Place(os.path.join(path, name), int(match[1])))
        if os.path.isdir(os.path.join(path, "host")):
            self.places.append(Place(os.path.join(path, "host"), -1))
        self.host = next((p for p in self.places if p.device < 0), None)
        for place in self.places:
            for base in sorted(place.files):
                self._read(place, base)
            if place.device >= 0:
                self._frequency(place)

    def _read(self, place, base):
        name = re.sub(r"^\d+-", "pid_", base).replace(".data", "").replace(".", "_")
        method = getattr(self, f"_{name}", None)
        if method is not None:
            method(place, place.files[base])

    def _add(self, table, place, t, **values):
        self.rows[table].append(Row(place.device, t, values))

    # Text -----------------------------------------------------------------------------------------

    @staticmethod
    def _lines(slices):
        for line in b"".join(slices).decode("latin-1").split("\n"):
            if line.strip():
                yield line.split()

    @staticmethod
    def _timestamp(text):
        match = re.fullmatch(r"(\d+):(\d{1,9})", text)
        return int(match[1]) * 10**9 + int(match[2]) if match else None

    @classmethod
    def _numbers(cls, words):
        try:
            return [int(word.rstrip("%")) for word in words]
        except ValueError:
            return None

    def _hccs(self, place, slices):
        samples = []
        for words in self._lines(slices):
            timestamp = self._timestamp(words[0])
            numbers = self._numbers(words[1:])
            # difference: "HCCS": headers are known by what they say, wherever they are.
            if timestamp is not None and numbers is not None and len(numbers) == 2:
                samples.append((timestamp, *numbers))
        kept = []
        later = Later()
        for sample in samples:
            # difference: "all channels with rates": an earlier timestamp is left out; an equal one is not
            if later.last is None or sample[0] >= later.last or later.take(sample[0]) == "first":
                kept.append(sample)
                later.last, later.dropped = sample[0], 0
        # Each against the one before, and the first against the last; then the last row goes.
        result = []
        for now, before in zip(kept[1:] + kept[:1], kept):
            if now[1] < before[1] or now[2] < before[2]:
                continue
            span = (now[0] - before[0]) / (1e9 / 1024.0 / 1024.0)
            result.append((now[0], *(quantize3(Decimal(now[i] - before[i]) / Decimal(str(span)))
                                     if span else 0.0 for i in (1, 2))))
        if len(result) > 1 or (result and len(kept) > 1 and result[0][0] == kept[0][0]):
            # difference: "HCCS": no row of the first sample against the last
            result.pop()
        for timestamp, tx, rx in result:
            self._add("hccs", place, place.clock.device(timestamp), tx=tx, rx=rx)

    def _network(self, place, slices, table):
        for words in self._lines(slices):
            timestamp = self._timestamp(words[0])
            numbers = self._numbers(words[1:])
            if timestamp is None or numbers is None or len(numbers) not in (13, 14, 15):
                continue
            port = numbers[13] if len(numbers) > 13 else 0
            n = numbers
            values = {"port": port, "bandwidth": n[0]}
            for side, at in (("rx", 1), ("tx", 7)):
                rate, byte_rate, packets, total, errors, dropped = n[at:at + 6]
                values.update({
                    f"{side}_packet_rate": float(rate), f"{side}_byte_rate": float(byte_rate),
                    f"{side}_packets": float(packets), f"{side}_bytes": float(total),
                    f"{side}_errors": float(errors), f"{side}_dropped": float(dropped),
                    f"{side}_efficiency": round(byte_rate * 8.0 / (n[0] * MEGA), 3) if n[0] else 0.0,
                    f"{side}_utilization_ratio": byte_rate * 8.0 / (n[0] * MEGA) if n[0] else 0.0,
                    f"{side}_error_ratio": errors / packets if packets else 0.0,
                    f"{side}_dropped_ratio": dropped / packets if packets else 0.0})
            self._add(table, place, place.clock.device(timestamp), **values)

    def _nic(self, place, slices):
        self._network(place, slices, "nic")

    def _roce(self, place, slices):
        self._network(place, slices, "roce")

    def _dvpp(self, place, slices):
        for words in self._lines(slices):
            timestamp = self._timestamp(words[0])
            numbers = self._numbers(words[1:])
            # difference: "DVPP": 11 or 12 columns on every chip
            if timestamp is None or numbers is None or len(numbers) not in (10, 11):
                continue
            n = numbers if len(numbers) == 11 else [0] + numbers
            if n[1] > 6:
                continue
            names = ("all_time", "all_frame", "all_utilization", "proc_time", "proc_frame",
                     "proc_utilization", "last_time", "last_frame")
            self._add("dvpp", place, place.clock.device(timestamp), dvpp=n[0], engine=n[1], engine_id=n[2],
                      **{name: float(v) for name, v in zip(names, n[3:])})

    def _netdev_stats(self, place, slices):
        clock = self.host.clock if self.host else place.clock
        before = None
        for words in self._lines(slices):
            n = self._numbers(words)
            if n is None or len(n) != 16:
                continue
            if before is not None and n[0] > before[0]:
                d = [max(a - b, 0) for a, b in zip(n[1:], before[1:])]
                seconds = (n[0] - before[0]) / 1e9
                names = ("mac_tx_pfc_packets mac_rx_pfc_packets mac_tx_bytes mac_rx_bytes "
                         "mac_tx_bad_bytes mac_rx_bad_bytes roce_tx_packets roce_rx_packets "
                         "roce_tx_errors roce_rx_errors roce_tx_cnp_packets roce_rx_cnp_packets "
                         "roce_new_packet_retries nic_tx_bytes nic_rx_bytes").split()
                values = dict(zip(names, d))
                for name in ("mac_tx", "mac_rx", "nic_tx", "nic_rx"):
                    values[f"{name}_bandwidth"] = values[f"{name}_bytes"] / seconds
                self._add("netdev", place, clock.host(n[0]), **values)
            elif before is not None:
                continue
            before = n

    # Records --------------------------------------------------------------------------------------

    @staticmethod
    def _records(slices, layout):
        data = b"".join(slices)
        size = struct.calcsize(layout)
        return struct.iter_unpack(layout, data[:len(data) // size * size])

    def _pcie(self, place, slices):
        names = ("tx_post", "tx_nonpost", "tx_cpl", "tx_nonpost_latency", "rx_post", "rx_nonpost",
                 "rx_cpl")
        for fields in self._records(slices, "<Q22I"):
            values = {}
            for i, name in enumerate(names):
                low, high, average = fields[2 + 3 * i:5 + 3 * i]
                low = 0 if low == 0xFFFFF else low  # no smallest value
                values.update({f"{name}_min": low, f"{name}_max": high, f"{name}_avg": average})
            self._add("pcie", place, place.clock.device(fields[0]), **values)

    def _new(self, place):
        return place.info.get("version") == "2.0"

    def _hbm(self, place, slices):
        new = self._new(place)
        series = defaultdict(Later)
        for fields in self._records(slices, "<IIIIQQ" if new else "<QQII"):
            if new:
                event, ident, count, timestamp = fields[2:]
                t = timestamp
            else:
                timestamp, count, event, ident = fields
                t = place.clock.micros(timestamp)
            if event > 1:
                continue
            # difference: "HBM": time since the last record of the same stack and direction
            later = series[(ident, event)]
            what = later.take(t)
            if what == "drop":
                continue
            # Spans are those of the stored timestamps, which have steps.
            rate = 0.0 if what == "first" else (
                count * 0.000030517578125 / float(t - later.last) * 1e9)
            later.last = t
            self._add("hbm", place, t, hbm=ident, direction=event, bandwidth=rate)

    def _ddr(self, place, slices):
        unwrap = Unwrap()
        width = 256 if place.chip in (1, 2, 3, 4) else 128
        groups = {}
        for low, count, event, ident, _ in self._records(slices, "<5I"):
            if event > 1:
                continue
            us = unwrap(low)
            groups.setdefault((us, ident), [0, 0])[event] += count
        series = defaultdict(Later)
        for (us, ident), counts in groups.items():
            later = series[ident]
            what = later.take(us)
            if what == "drop":
                continue
            # The first span is the one since the device's start.
            span = us if what == "first" else us - later.last
            later.last = us
            rates = [c * width / (span * 1000.0 * 1024.0 * 1024.0 * 8) * 1e9 if span else 0.0
                     for c in counts]
            # The time is not stored with steps here.
            self._add("ddr", place, place.clock.device(us * 1000 + place.clock.device_ns), ddr=ident,
                      read=rates[0], write=rates[1])

    def _llc(self, place, slices):
        if place.chip == 0:
            self._llc_text(place, slices)
            return
        new = self._new(place)
        mode = place.sample.get("llc_profiling", "read")
        order = {code: i for i, code in enumerate(LLC_EVENTS[mode])}
        groups = {}
        for fields in self._records(slices, "<IIIIQ" if new else "<QQII"):
            if new:
                _, count, event, ident, timestamp = fields
            else:
                timestamp, count, event, ident = fields
            if event not in order or ident >= LLC_IDS.get(place.chip, 4):
                continue
            groups.setdefault((ident, timestamp), {})[order[event]] = count
        series = defaultdict(Later)
        for (ident, timestamp), e in groups.items():
            t = timestamp if new else place.clock.micros(timestamp)
            later = series[ident]
            what = later.take(t)
            if what == "drop":
                continue
            # difference: "LLC": an instant that lacks an event has no row
            if len(e) < 8:
                later.last = t
                continue
            base = e[4] + e[6]
            hits = sum(e[i] for i in (2, 3, 5, 7))
            ratio = quantize3(Decimal(hits) / Decimal(base)) if base else 0.0
            rate = 0.0
            if what == "rate":
                # difference: "LLC throughput": a line is 64 bytes
                rate = quantize3(Decimal((e[0] + e[1]) * 64 * 10**9) /
                                 Decimal((t - later.last) * 1024 * 1024))
            later.last = t
            self._add("llc", place, t, llc=ident,
                      op=("read", "write").index(mode), hit_ratio=ratio, throughput=rate,
                      exact_hit_ratio=hits / base if base else 0.0)

    def _llc_text(self, place, slices):
        """Chip 0: seconds since the start, count, event; all events of one time together."""
        groups = {}
        for words in self._lines(slices):
            match = re.fullmatch(r"hisi_l3[tc](\d+)/(\w+)/", words[-1]) if len(words) == 3 else None
            if match:
                groups.setdefault((Decimal(words[0]), int(match[1])), {})[match[2]] = int(words[1])
        last = defaultdict(Decimal)
        for (at, ident), counts in groups.items():
            for op, name in enumerate(("read", "write")):
                lines = counts[f"{name}_allocate"] + counts[f"{name}_noallocate"]
                hits = counts[f"{name}_hit"]
                # difference: "LLC of chip 0": the first row is of the time since the start
                rate = lines * 64.0 / float(at - last[ident]) / MEGA
                self._add("llc", place, place.clock.device(int(at * 10**9) + place.clock.device_ns),
                          llc=ident, op=op, hit_ratio=hits / lines, throughput=rate, lines=lines,
                          hits=hits, exact_hit_ratio=hits / lines)
            last[ident] = at

    def _npu_memory(self, place, slices):
        unwrap = Unwrap()
        for low, kind, third, ddr, hbm in self._records(slices, "<IIQQQ"):
            if kind > 1:
                continue
            t = third if self._new(place) else place.clock.micros(unwrap(low))
            self._add("npu_mem", place, t, kind=kind, ddr=ddr, hbm=hbm)

    _npu_mem = _npu_memory
    _npu_mem_app = _npu_memory

    def _npu_module_mem(self, place, slices):
        clock = self.host.clock if self.host else place.clock
        for module, _, count, size in self._records(slices, "<IIQQ"):
            self._add("npu_module_mem", place, clock.host_counter(count), module=module,
                      reserved=size if size < 1 << 63 else -1)

    def _lpm_entries(self, place, base):
        for fields in self._records(place.files.get(base, []), "<II" + "QII" * 55):
            if fields[0] > 55:
                continue
            for i in range(fields[0]):
                yield fields[1], fields[2 + 3 * i], fields[3 + 3 * i]

    def _frequency(self, place):
        """AI Core frequency: points at the session's begin, at the device's start, and the end."""
        clock = place.clock
        # difference: "AI Core frequency": one source, and low power where there is no file
        if place.chip in V6 + (8, 11) or (place.chip == 7 and "lpmFreqConv.data" not in place.files):
            powers = [r for r in self.rows["low_power"] if r.device == place.device]
            for row in powers:
                self._add("aicore_freq", place, row.t, die=row.values["die"],
                          mhz=float(row.values["v10"]))
            return
        entries = list(self._lpm_entries(place, "lpmFreqConv.data"))
        entries += list(self._lpm_entries(place, "lpmInfoConv.data"))
        default = float((place.info.get("DeviceInfo") or [{}])[0].get("aic_frequency", 0))
        # difference: "AI Core frequency": without a file there are no points of the default
        if entries and place.chip in (4, 5, 7):
            first = default
            points = []
            for kind, count, value in entries:
                if kind != 0:
                    continue
                if count < clock.device_count:
                    first = float(value)
                    continue
                points.append((clock.device_counter(count), float(value)))
            points = [(clock.device_counter(clock.device_count), first)] + points if entries else []
            begin = clock.begin_us * 1000
            at_begin = default
            rest = []
            for t, mhz in points:
                if t < begin:
                    at_begin = mhz
                else:
                    rest.append((t, mhz))
            last = points[-1][1] if points else default
            result = [(begin, at_begin)] + rest
            if "collectionTimeEnd" in place.end:
                result.append((int(place.end["collectionTimeEnd"]) * 1000, last))
            for t, mhz in result:
                self._add("aicore_freq", place, t, die=-1, mhz=mhz)
        for rail, kind in ((0, 1), (1, 2)):
            points = [(c, v) for k, c, v in entries if k == kind]
            if points:
                self._voltage_points(place, rail, points)

    def _voltage_points(self, place, rail, points):
        clock = place.clock
        first = 900.0
        for count, value in points:
            if count < clock.device_count:
                first = float(value)
        self._add("voltage", place, clock.device_counter(clock.device_count), rail=rail, mv=first)
        for count, value in points:
            if count >= clock.device_count:
                self._add("voltage", place, clock.device_counter(count), rail=rail, mv=float(value))
        if "collectionTimeEnd" in place.end:
            self._add("voltage", place, int(place.end["collectionTimeEnd"]) * 1000, rail=rail,
                      mv=float(points[-1][1]))

    def _qos(self, place, slices):
        names = [n for n in place.sample.get("qosEvents", "").split(",") if n]
        for fields in self._records(slices, "<2I2Q10I"):
            t = place.clock.device_counter(fields[3])
            for name, value in zip(names, fields[4:14]):
                self._add("qos", place, t, stream=name, die=-1, bandwidth=value)
