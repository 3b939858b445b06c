#!/usr/bin/env python3
"""Writes the golden files of the channel decoders: collectors/<name>/testdata/*.{in,expected}.

The expected samples are computed here, from the documented record formats and formulas and not from
the decoders, so that the two check each other. Run it from anywhere; commit what it writes.
"""
import collections
import os
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The clock pair of MakeTimeBase() in channel_fixture.cc.
HOST_NS = 5_000_000_000_000
DEVICE_NS = 1_000_000_000_000
DEVICE_COUNT, DEVICE_HZ = 50_000_000_000, 50e6
HOST_COUNT, HOST_HZ = 1_000_000_000, 100e6
START_NS = HOST_NS + 100_000_000


def from_us(us):
    return START_NS + us * 1000


def from_device_ns(ns):
    return ns + HOST_NS - DEVICE_NS


def from_count(count):
    return HOST_NS + int((count - DEVICE_COUNT) * 1e9 / DEVICE_HZ)


def from_host_count(count):
    return HOST_NS + int((count - HOST_COUNT) * 1e9 / HOST_HZ)


class Golden:
    def __init__(self, name):
        self.path = os.path.join(ROOT, name)
        self.data = b""
        self.lines = []

    def add(self, fmt, *values):
        self.data += struct.pack("=" + fmt, *values)

    def text(self, line):
        self.data += line.encode() + b"\n"

    def sample(self, metric, labels, time, value):
        inside = ",".join(f'{k}="{v}"' for k, v in [("npu", 0), *labels])
        self.lines.append(f"{metric}{{{inside}}} {time} {value:.15g}")

    def write(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path + ".in", "wb") as f:
            f.write(self.data)
        with open(self.path + ".expected", "w") as f:
            f.write("\n".join(sorted(self.lines)) + "\n")


def seconds(ns):
    return ns * 1e-9


def timestamp_text(ns):
    return f"{ns // 10**9}:{ns % 10**9:09d}"


def hbm():
    g = Golden("hbm/testdata/hbm")
    total = collections.Counter()
    for i in range(4):
        us = 10_000 + 20_000 * i
        for stack in range(4):
            for event, direction in enumerate(("read", "write")):
                count = 1_000_000 * (stack + 1) + 10_000 * i + event
                g.add("QQII", us, count, event, stack)
                if i > 0:
                    g.sample("atlas_npu_hbm_bandwidth_bytes_per_second",
                             [("hbm", stack), ("direction", direction)], from_us(us),
                             count * 32.0 / seconds(20_000_000))
                    total[stack, event] += count * 32
                    g.sample("atlas_npu_hbm_bytes_total",
                             [("hbm", stack), ("direction", direction)], from_us(us),
                             total[stack, event])
    g.write()


def ddr():
    for name, width in (("ddr_310p", 32.0), ("ddr_310b", 16.0)):
        g = Golden("ddr/testdata/" + name)
        total = collections.Counter()
        # Crosses the end of the 32-bit microseconds.
        for i in range(4):
            us = 2**32 - 15_000 + 10_000 * i
            for event, direction in enumerate(("read", "write")):
                count = 2_000_000 + 1000 * i + event
                g.add("5I", us % 2**32, count, event, 0, 0xFFFFFFFF)
                if i > 0:
                    g.sample("atlas_npu_ddr_bandwidth_bytes_per_second",
                             [("ddr", 0), ("direction", direction)], from_us(us),
                             count * width / seconds(10_000_000))
                    total[event] += count * width
                    g.sample("atlas_npu_ddr_bytes_total",
                             [("ddr", 0), ("direction", direction)], from_us(us), total[event])
        g.write()


def llc():
    codes = {"read": (0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36),
             "write": (0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37)}
    for op, slices in (("read", 2), ("write", 4)):
        g = Golden("llc/testdata/llc_" + op)
        total = 0
        for i in range(3):
            us = 10_000 + 20_000 * i
            time = from_us(us)
            hits = lookups = throughput = 0.0
            for s in range(slices):
                e = [100_000 * (k + 1) + 1000 * s + 10 * i for k in range(8)]
                for code, count in zip(codes[op], e):
                    g.add("QQII", us, count, code, s)
                slice_hits, slice_lookups = e[2] + e[3] + e[5] + e[7], e[4] + e[6]
                labels = [("op", op), ("llc", s)]
                g.sample("atlas_npu_llc_slice_hit_ratio", labels, time,
                         slice_hits / slice_lookups)
                hits += slice_hits
                lookups += slice_lookups
                if i > 0:
                    rate = (e[0] + e[1]) * 64.0 / seconds(20_000_000)
                    g.sample("atlas_npu_llc_slice_throughput_bytes_per_second", labels, time, rate)
                    throughput += rate
                    total += (e[0] + e[1]) * 64
            g.sample("atlas_npu_llc_hit_ratio", [("op", op)], time, hits / lookups)
            if i > 0:
                g.sample("atlas_npu_llc_throughput_bytes_per_second", [], time, throughput)
                g.sample("atlas_npu_llc_bytes_total", [], time, total)
        g.write()


def hccs():
    g = Golden("hccs/testdata/hccs")
    g.text("time_stamp(s):time_stamp(ns) send_amount receive_amount")
    last = None
    for ns, tx, rx in ((176167_909901260, 410297995834, 409914224447),
                       (176167_929901260, 410317995834, 409924224447),
                       (176168_391356200, 420317995834, 419924224447)):
        g.text(f"{timestamp_text(ns)} {tx} {rx}")
        time = from_device_ns(ns)
        for direction, value in (("tx", tx), ("rx", rx)):
            g.sample("atlas_npu_hccs_bytes_total", [("direction", direction)], time, value)
            if last:
                before = last[1] if direction == "tx" else last[2]
                g.sample("atlas_npu_hccs_bandwidth_bytes_per_second",
                         [("link", "all"), ("direction", direction)], time,
                         (value - before) / seconds(ns - last[0]))
        last = (ns, tx, rx)
    g.write()


def pcie():
    g = Golden("pcie/testdata/pcie")
    groups = (("tx", "posted"), ("tx", "nonposted"), ("tx", "completion"), None, ("rx", "posted"),
              ("rx", "nonposted"), ("rx", "completion"))
    rows = (
        # The documented example of a busy link, then an idle one: no minimum was ever lowered.
        (176168_304972690, [0, 1022, 17, 0, 8, 0, 0, 0, 0, 303, 308, 50, 0, 20, 0, 0, 0, 0, 0, 32, 0]),
        (176168_324972690, [0xFFFFF, 0, 0] * 7),
    )
    for ns, values in rows:
        g.add("QI21I", ns, 0, *values)
        for i, group in enumerate(groups):
            for k, stat in enumerate(("min", "max", "avg")):
                value = values[3 * i + k]
                if stat == "min" and value == 0xFFFFF:
                    value = 0
                if group:
                    g.sample("atlas_npu_pcie_bandwidth_bytes_per_second",
                             [("direction", group[0]), ("type", group[1]), ("stat", stat)],
                             from_device_ns(ns), value * 1e6)
                else:
                    g.sample("atlas_npu_pcie_read_latency_seconds", [("stat", stat)],
                             from_device_ns(ns), value * 1e-9)
    g.write()


def network(name, layer, ports, tokens):
    g = Golden(f"{name}/testdata/{name}_{tokens}")
    g.text("timestamp bandwidth rxPacket/s rxByte/s rxPackets rxBytes rxErrors rxDropped "
           "txPacket/s txByte/s txPackets txBytes txErrors txDropped funcId")
    for i in range(3):
        ns = 1_000_500_000_000 + 10_000_000 * i
        time = from_device_ns(ns)
        totals = {"rx": [0, 0], "tx": [0, 0]}
        for port in range(ports):
            fields = []
            for direction, base in (("rx", 1000), ("tx", 2000)):
                rate, byte_rate = base + port, (base + port) * 4096
                packets = 10**6 * base + 10 * i + port
                size = 4096 * packets
                errors, dropped = base + i, 7 * port + i
                fields += [rate, byte_rate, packets, size, errors, dropped]
                totals[direction][0] += packets
                totals[direction][1] += size
                labels = [("layer", layer), ("port", port), ("direction", direction)]
                for metric, value in (
                        ("packets_per_second", rate),
                        ("bandwidth_bytes_per_second", byte_rate),
                        ("utilization_ratio", byte_rate * 8 / (200000 * 2.0**20)),
                        ("packets_total", packets), ("bytes_total", size),
                        ("errors_total", errors), ("dropped_total", dropped)):
                    g.sample("atlas_npu_network_port_" + metric, labels, time, value)
            g.sample("atlas_npu_network_port_speed_bytes_per_second",
                     [("layer", layer), ("port", port)], time, 25e9)
            line = [timestamp_text(ns), 200000] + fields
            if tokens >= 15:
                line.append(port)
            if tokens >= 16:
                line.append(1)
            g.text(" ".join(map(str, line)))
        for direction, (packets, size) in totals.items():
            labels = [("direction", direction), ("layer", layer)]
            g.sample("atlas_npu_network_bytes_total", labels, time, size)
            g.sample("atlas_npu_network_packets_total", labels, time, packets)
    g.write()


def dvpp():
    engines = ("vdec", "jpegd", "pngd", "jpege", "vpc", "venc", "scd")
    for name, with_id in (("dvpp_11", False), ("dvpp_12", True)):
        g = Golden("dvpp/testdata/" + name)
        g.text("time_stamp " + ("dvpp_id " if with_id else "") + "engine_type engine_id all_time "
               "all_frame all_utilization(%) proc_time proc_frame proc_utilization(%) last_time "
               "last_frame")
        for i in range(3):
            ns = 1_000_200_000_000 + 20_000_000 * i
            time = from_device_ns(ns)
            for engine, kind in enumerate(engines):
                total = 0.0
                for instance in range(2):
                    percent = (10 * engine + 5 * instance + i) % 101
                    busy, frames = 200 * percent, 3 * percent
                    g.text(f"{timestamp_text(ns)} " + ("1 " if with_id else "") +
                           f"{engine} {instance} {busy} {frames} {percent}"
                           f"{'%' if with_id else ''} 0 0 0 {busy} {frames}")
                    labels = [("engine", kind), ("dvpp", int(with_id)), ("engine_id", instance)]
                    g.sample("atlas_npu_dvpp_engine_utilization_ratio", labels, time,
                             percent / 100)
                    g.sample("atlas_npu_dvpp_engine_busy_seconds", labels, time, busy * 1e-6)
                    g.sample("atlas_npu_dvpp_engine_frames", labels, time, frames)
                    total += percent / 100
                g.sample("atlas_npu_dvpp_utilization_ratio", [("engine", kind)], time, total / 2)
        g.write()


def aicore_freq():
    # Chips without voltages leave anything in the type; 910B distinguishes three kinds.
    for name, types in (("lpm_freq", (7,)), ("lpm_info", (0, 1, 2))):
        g = Golden("aicore_freq/testdata/" + name)
        for kind in types:
            values = (1850, 1650, 800)
            # The first two changes are from before the channel's start (100 ms after the pair).
            counts = (DEVICE_COUNT - 10**9, DEVICE_COUNT + 10**6, DEVICE_COUNT + 50 * 10**6)
            g.add("II", 3, kind)
            for count, value in zip(counts, values):
                g.add("QII", count, value, 0)
            g.data += b"\xEE" * (52 * 16)
            metric, label, scale = {
                1: ("atlas_npu_voltage_volts", ("rail", "aicore"), 1e-3),
                2: ("atlas_npu_voltage_volts", ("rail", "bus"), 1e-3),
            }.get(kind, ("atlas_npu_frequency_hertz", ("domain", "aicore"), 1e6))
            g.sample(metric, [label], START_NS, values[1] * scale)
            g.sample(metric, [label], from_count(counts[2]), values[2] * scale)
        g.write()


def npu_mem():
    for name, event, kind in (("npu_mem_app", 0, "app"), ("npu_mem_device", 1, "device")):
        g = Golden("npu_mem/testdata/" + name)
        for i in range(3):
            us, ddr_bytes, hbm_bytes = 5_000 + 20_000 * i, 4096 * i, 17_179_869_184 + 65536 * i
            g.add("IIQQQ", us, event, 0, ddr_bytes, hbm_bytes)
            for memory, value in (("ddr", ddr_bytes), ("hbm", hbm_bytes)):
                g.sample("atlas_npu_memory_used_bytes", [("kind", kind), ("memory", memory)],
                         from_us(us), value)
        g.write()
    g = Golden("npu_mem/testdata/npu_module_mem")
    for i in range(2):
        for module, name in ((0, "SLOG"), (3, "HCCL"), (45, "GE"), (61, "HSS"), (78, "MODULE_78")):
            count = HOST_COUNT + 10**7 + 10**6 * i
            size = 901_218_304 + module + i
            g.add("IIQQ", module, 0, count, size)
            g.sample("atlas_npu_module_memory_reserved_bytes", [("module", name)],
                     from_host_count(count), size)
        g.add("IIQQ", 7, 0, HOST_COUNT + 10**7, 2**64 - 1)  # RUNTIME does not know
    g.write()


def qos():
    g = Golden("qos/testdata/qos")
    for i in range(3):
        count = DEVICE_COUNT + 10**6 * (i + 1)
        slots = [100 + i, 0, 250 * i, 0, 0, 0, 0, 0, 0, 1]
        g.add("2I2Q10I", 0, 0, 0, count, *slots)
        for slot in (0, 2, 9):
            if slot == 2 and i == 0:
                continue  # nothing yet
            g.sample("atlas_npu_qos_bandwidth_bytes_per_second", [("die", "all"), ("stream", slot)],
                     from_count(count), slots[slot] * 2**20)
    g.write()


MAGIC = 0x6BD3
SIO_KINDS = ("req", "rsp", "snp", "dat")


def sio_samples(g, die, time, rx, tx):
    for direction, values in (("rx", rx), ("tx", tx)):
        for kind, value in zip(SIO_KINDS, values):
            g.sample("atlas_npu_sio_bandwidth_bytes_per_second",
                     [("die", die), ("kind", kind), ("direction", direction)], time,
                     value / seconds(20_000_000))


def soc_profile_common(g, i, count, time):
    """Acc PMU, SoC levels: the same on all chips."""
    for acc in (3, 5):
        values = (1000 + i, 2000 + acc, 30, 40 + i)
        g.add("HHLQHH3L4Q", 0b011010 | i << 6, MAGIC, 0, count, 0, acc, 0, 0, 0, *values)
        for metric, pair in (("bandwidth", values[:2]), ("outstanding", values[2:])):
            for direction, value in zip(("write", "read"), pair):
                g.sample("atlas_npu_acc_pmu_" + metric, [("acc", acc), ("direction", direction)],
                         time, value)
    g.add("HHLQ4LHH7L", 0b011100, MAGIC, 0, count, 0, 0, 0, 0, 0xF800 | 137 << 3 | 5, 0, *[0] * 7)
    g.sample("atlas_npu_soc_bandwidth_level", [("unit", "mata")], time, 5)
    g.sample("atlas_npu_soc_bandwidth_level", [("unit", "l2_buffer")], time, 137)


def soc_profile():
    g = Golden("soc_profile/testdata/soc_910b")
    for i in range(3):
        count = DEVICE_COUNT + 10**6 * (i + 1)  # 20 ms
        time = from_count(count)
        for die in (0, 1):
            rx = [2**20 * (die + 1) + k for k in range(4)]
            tx = [2**21 * (die + 1) + k for k in range(4)]
            g.add("HHIQHH11I", 0b011001, MAGIC, 0, count, 0, die, 9, 9, 9, *rx, *tx)
            if i > 0:
                sio_samples(g, die, time, rx, tx)
        for sub, kind, names in ((0b111111, "pa", ("rx", "tx")), (0b100010, "pcie", ("write", "read"))):
            g.add("2HLQ2H3L2Q4L", sub << 10 | 0b011011, MAGIC, 0, count, 0, 0xFFC0 | 2, 0, 0, 0,
                  7000 + i, 8000 + i, 0, 0, 0, 0)
            for name, value in zip(names, (7000 + i, 8000 + i)):
                g.sample("atlas_npu_chip_link_bandwidth",
                         [("kind", kind), ("link", 2), ("direction", name)], time, value)
        soc_profile_common(g, i, count, time)
        g.add("HH60s", 0b011110, MAGIC, b"")  # known to exist, not used
    g.write()

    g = Golden("soc_profile/testdata/soc_950")
    for i in range(3):
        count = DEVICE_COUNT + 10**6 * (i + 1)
        time = from_count(count)
        for die in (0, 2, 3):
            rx = [2**20 + die + k for k in range(4)]
            tx = [2**21 + die + k for k in range(4)]
            g.add("BBHIQQ10I", 0b011001, die << 2, MAGIC, 0, count, 0, 9, *rx, 9, *tx)
            if i > 0:
                sio_samples(g, die, time, rx, tx)
        write, read = 5000 + i, 2**64 - 1  # no reading
        g.add("2HI3Q8L", 1 << 10 | 0b011011, MAGIC, 0, count, write, read, *[0] * 8)
        g.sample("atlas_npu_chip_link_bandwidth",
                 [("kind", "pcie"), ("link", 1), ("direction", "write")], time, write)
        soc_profile_common(g, i, count, time)
        words = [100 + k for k in range(20)]
        words[11] = 1650 - i
        g.add("HHLQQ20H", 1 << 10 | 0b011101, MAGIC, 0, count, 0, *words)
        g.sample("atlas_npu_die_frequency_hertz", [("die", 1), ("domain", "aicore")], time,
                 words[11] * 1e6)
        for k in range(0, 20, 2):  # neighbours are swapped
            source, index = ("hard", k) if k < 10 else ("soft", k - 10)
            for index, value in ((index, words[k + 1]), (index + 1, words[k])):
                g.sample("atlas_npu_low_power_value",
                         [("die", 1), ("source", source), ("index", index)], time, value)
        streams = [11, 0, 0, 0, 0, 0, 0, 22]
        g.add("HHLQQ10L", 1 << 10 | 0b011000, MAGIC, 0, count, 0, 9, 9, *streams)
        for stream in (0, 7):
            g.sample("atlas_npu_qos_bandwidth_bytes_per_second", [("die", 1), ("stream", stream)],
                     time, streams[stream] * 2**20)
    g.write()


if __name__ == "__main__":
    hbm()
    ddr()
    llc()
    hccs()
    pcie()
    for count in (14, 15, 16):
        network("nic", "nic", 1 if count == 14 else 2, count)
    network("roce", "roce", 1, 16)
    dvpp()
    aicore_freq()
    npu_mem()
    qos()
    soc_profile()
