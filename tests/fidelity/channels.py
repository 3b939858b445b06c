"""Known records of every channel of a device, and of the host."""

import struct

BEGIN_US = 1767225600000000
HOST_RAW = 876117208663770
HOST_COUNT = 87611720866377
DEVICE_NS = 176167889901260
DEVICE_COUNT = 8808394495063
PID = 4242

HWTS_MHZ = {0: "19.2", 1: "100", 2: "38.4", 3: "38.4", 4: "38.4", 5: "50", 7: "48", 8: "48",
            9: "48", 11: "48", 15: "1000", 16: "1000"}
AIC_MHZ = {0: "680", 1: "800", 2: "960", 3: "1150", 4: "1150", 5: "1800", 7: "1250", 8: "1250",
           9: "1250", 11: "1250", 15: "1650", 16: "1650"}
CHIPS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16)
V6 = (15, 16)
# Which chips have which channel (dump-format 2.1-2.17).
HAS = {
    "hccs.data": (0, 1, 2, 3, 4, 5),
    "pcie.data": (0, 1, 2, 3, 4, 5, 15, 16),
    "nic.data": (0, 1, 5, 7, 8, 11),
    "roce.data": (0, 1, 5),
    "dvpp.data": (0, 1, 5, 7, 8, 11, 15, 16),
    "llc.data": (0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16),
    "hbm.data": (0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16),
    "ddr.data": (0, 1, 2, 3, 4, 7, 8, 11),
    "npu_mem.data": (0, 1, 3, 4, 5, 7, 8, 11, 15, 16),
    "npu_mem.app": (0, 1, 3, 4, 5, 7, 8, 11, 15, 16),
    "npu_module_mem.data": (1, 2, 3, 4, 5, 7, 8, 11, 15, 16),
    "lpmFreqConv.data": (7,),
    "lpmInfoConv.data": (5,),
    "qos.data": (5,),
    "stars_soc_profile.data": (5, 7, 8, 11, 15, 16),
    "netdev_stats.data": (0, 1, 2, 3, 4, 5, 7, 8, 11),
    "SystemCpuUsage.data": (0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16),
    "Memory.data": (0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16),
    "4242-CpuUsage.data": (0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16),
    "4242-Memory.data": (0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16),
    "aicore.data": (0, 1, 2, 3, 4),
    "aiVectorCore.data": (2, 3, 4),
    "ffts_profile.data": (5, 7, 8, 11, 15, 16),
    "ub.data": (15, 16),
    "instr.group_2_aic": (5, 7, 8, 11),
    "instr.group_24_aiv0": (5, 7, 8, 11),
    "instr.group_24_aiv1": (5, 7, 8, 11),
}
LLC_EVENTS = {"read": (0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36),
              "write": (0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37)}
LLC_IDS = {5: 2, 7: 1, 8: 1, 11: 1}
HCCS_HEADER = b"time_stamp(s):time_stamp(ns) send_amount receive_amount\n"
NIC_HEADER = (b"timestamp bandwidth rxPacket/s rxByte/s rxPackets rxBytes rxErrors rxDropped "
              b"txPacket/s txByte/s txPackets txBytes txErrors txDropped funcId\n")
DVPP_HEADER = (b"timestamp dvpp_id engine_type engine_id all_time all_frame all_utilization "
               b"proc_time proc_frame proc_utilization last_time last_frame\n")


def timestamp(ns):
    return f"{ns // 10**9}:{ns % 10**9:09d}"


# Channels: each gives a list of (record bytes) ---------------------------------------------------


def hccs(o, chip, clock, rng, dev):
    tx = rng.randrange(1 << 40)
    rx = rng.randrange(1 << 40)
    lines = []
    for offset in clock.offsets():
        lines.append(f"{timestamp(DEVICE_NS + offset)} {tx} {rx}\n".encode())
        tx += rng.randrange(1 << 30)
        rx += rng.randrange(1 << 29)
    return lines


def pcie(o, chip, clock, rng, dev):
    records = []
    for i, offset in enumerate(clock.offsets()):
        values = []
        for group in range(7):
            low = rng.randrange(2000)
            average = low + rng.randrange(1500)
            values += [low, average + rng.randrange(900), average]
        if i % 7 == 3:
            values[9] = 0xFFFFF  # no smallest latency
        records.append(struct.pack("<QI21I", DEVICE_NS + offset, dev, *values))
    return records


def network(ports, speed):
    def make(o, chip, clock, rng, dev):
        state = {p: [rng.randrange(10**6) for _ in range(8)] for p in range(ports)}
        lines = []
        for offset in clock.offsets():
            for port in range(ports):
                counters = state[port]
                rate = [rng.randrange(5000), rng.randrange(10**9), rng.randrange(5000),
                        rng.randrange(10**9)]
                # rxPackets rxBytes rxErrors rxDropped txPackets txBytes txErrors txDropped
                for j, most in enumerate((9000, 10**8, 30, 20, 9000, 10**8, 10, 5)):
                    counters[j] += rng.randrange(1, most)
                c = counters
                lines.append((f"{timestamp(DEVICE_NS + offset)} {speed} {rate[0]} {rate[1]} {c[0]} {c[1]} "
                              f"{c[2]} {c[3]} {rate[2]} {rate[3]} {c[4]} {c[5]} {c[6]} {c[7]} "
                              f"{port}\n").encode())
        return lines
    return make


def dvpp(o, chip, clock, rng, dev):
    wide = chip in (1, 5, 7, 8, 11, 15, 16)
    engines = [(d, t, e) for d in ((0, 1) if wide else (0,)) for t in (0, 1, 4) for e in (0, 1)]
    state = {key: [rng.randrange(1000), rng.randrange(100)] for key in engines}
    lines = []
    for offset in clock.offsets():
        for key in engines:
            s = state[key]
            s[0] += rng.randrange(20000)
            s[1] += rng.randrange(50)
            use = rng.randrange(101)
            head = f"{key[0]} " if wide else ""
            lines.append((f"{timestamp(DEVICE_NS + offset)} {head}{key[1]} {key[2]} {s[0]} {s[1]} {use}% "
                          f"{rng.randrange(9999)} {rng.randrange(99)} {rng.randrange(101)}% "
                          f"{rng.randrange(9999)} {rng.randrange(99)}\n").encode())
    return lines


def llc(o, chip, clock, rng, dev):
    if chip == 0:
        return llc_text(o, clock, rng)
    records = []
    for offset in clock.offsets():
        for ident in range(LLC_IDS.get(chip, 4)):
            for event in LLC_EVENTS[o.llc_mode]:
                count = rng.randrange(1, 4_000_000)
                if o.version == "2.0":
                    records.append(struct.pack("<IIIIQ", 0, count, event, ident,
                                               BEGIN_US * 1000 + offset))
                else:
                    records.append(struct.pack("<QQII", offset // 1000, count, event, ident))
    return records


LLC_TEXT_EVENTS = [f"{op}_{what}" for op in ("read", "write")
                   for what in ("allocate", "noallocate", "hit")]


def llc_text(o, clock, rng):
    lines = []
    for offset in clock.offsets():
        for event in LLC_TEXT_EVENTS:
            count = rng.randrange(1, 10**6)
            lines.append(f"  {offset // 10**9}.{offset % 10**9:09d}   {count}  hisi_l3t0/{event}/\n".encode())
    return lines


def hbm(o, chip, clock, rng, dev):
    records = []
    events = range(len(o.hbm_events.split(",")))
    for offset in clock.offsets():
        for ident in range(4):
            for event in events:
                count = rng.randrange(1, 50_000_000)
                if o.version == "2.0":
                    records.append(struct.pack("<IIIIQQ", 0, 0, event, ident, count,
                                               BEGIN_US * 1000 + offset))
                else:
                    records.append(struct.pack("<QQII", offset // 1000, count, event, ident))
    return records


def ddr(o, chip, clock, rng, dev):
    records = []
    for offset in clock.offsets():
        for event in (0, 1):
            records.append(struct.pack("<5I", offset // 1000 & 0xFFFFFFFF, rng.randrange(1, 9_000_000),
                                       event, 0, 0xFFFFFFFF))
    return records


def npu_mem(kind):
    def make(o, chip, clock, rng, dev):
        records = []
        for offset in clock.offsets():
            ddr_bytes, hbm_bytes = rng.randrange(1 << 33), rng.randrange(1 << 35)
            if o.version == "2.0":
                records.append(struct.pack("<IIQQQ", 0, kind, BEGIN_US * 1000 + offset, ddr_bytes,
                                           hbm_bytes))
            else:
                records.append(struct.pack("<IIQQQ", offset // 1000 & 0xFFFFFFFF, kind, 0, ddr_bytes,
                                           hbm_bytes))
        return records
    return make


def module_mem(o, chip, clock, rng, dev):
    records = []
    scale = float(o.host_mhz) / 1000 if o.host_mhz else 1
    base = HOST_COUNT if o.host_mhz else HOST_RAW
    for i, offset in enumerate(clock.offsets()):
        for module in (0, 3, 7, 10, 22, 45, 48, 60, 77):
            size = rng.randrange(1 << 32)
            if i % 11 == 5 and module == 7:
                size = 0xFFFFFFFFFFFFFFFF
            records.append(struct.pack("<IIQQ", module, 0, base + int(offset * scale), size))
    return records


def lpm(kinds):
    def make(o, chip, clock, rng, dev):
        records = []
        offsets = clock.offsets()
        for kind in kinds:
            for at in range(0, len(offsets), 20):
                entries = []
                for offset in offsets[at:at + 20]:
                    value = rng.choice((800, 1000, 1650, 1800)) if kind == 0 else rng.randrange(700, 900)
                    entries += [clock.counter(offset), value, 0]
                count = len(entries) // 3
                entries += [0] * (3 * (55 - count))
                records.append(struct.pack("<II" + "QII" * 55, count, kind, *entries))
        return records
    return make


def qos(o, chip, clock, rng, dev):
    return [struct.pack("<2I2Q10I", 0, 0, 0, clock.counter(offset),
                        *[rng.randrange(90_000) for _ in range(10)]) for offset in clock.offsets()]


def soc(o, chip, clock, rng, dev):
    records = []
    v6 = chip in V6
    for i, offset in enumerate(clock.offsets()):
        count = clock.counter(offset)

        def head(kind, sub):
            return kind | (i & 15) << 6 | sub << 10

        for die in (0, 1):
            sizes = [rng.randrange(1 << 31) for _ in range(8)]
            if v6:
                acc = die + 2
                records.append(struct.pack("<BBHIQQ10I", head(25, 0) & 255, acc << 2, 0x6BD3, 0, count,
                                           0, 0, *sizes[:4], 0, *sizes[4:]))
            else:
                records.append(struct.pack("<HHIQHH11I", head(25, 0), 0x6BD3, 0, count, 0, die, 0, 0, 0,
                                           *sizes))
        if not v6:
            levels = [rng.randrange(9999) for _ in range(4)]
            records.append(struct.pack("<HHLQHH3L4Q", head(26, 0), 0x6BD3, 0, count, 0, 3, 0, 0, 0,
                                       *levels))
            link = [rng.randrange(1 << 20) for _ in range(4)]
            records.append(struct.pack("<2HLQ2H3L2Q4L", head(27, 0b111111), 0x6BD3, 0, count, 0, 2, 0, 0,
                                       0, link[0], link[1], 0, 0, 0, 0))
            records.append(struct.pack("<2HLQ2H3L2Q4L", head(27, 0b100010), 0x6BD3, 0, count, 0, 1, 0, 0,
                                       0, link[2], link[3], 0, 0, 0, 0))
            level = rng.randrange(8) | rng.randrange(256) << 3
            records.append(struct.pack("<HHLQ4LHH7L", head(28, 0), 0x6BD3, 0, count, 0, 0, 0, 0, level, 0,
                                       *[0] * 7))
        if v6:
            for die in (0, 1):
                records.append(struct.pack("<2HI3Q8L", head(27, die), 0x6BD3, 0, count,
                                           rng.randrange(1 << 20), rng.randrange(1 << 20), *[0] * 8))
                records.append(struct.pack("<HHLQQ10L", head(24, die), 0x6BD3, 0, count, 0,
                                           *[rng.randrange(90_000) for _ in range(10)]))
        for die in (0, 1):
            values = [rng.randrange(2000) for _ in range(20)]
            records.append(struct.pack("<HHLQQ20H", head(29, die), 0x6BD3, 0, count, 0, *values))
    return records


def netdev(o, chip, clock, rng, dev):
    state = [rng.randrange(10**9) for _ in range(15)]
    lines = []
    for offset in clock.offsets():
        lines.append((" ".join(str(v) for v in [HOST_RAW + offset] + state) + "\n").encode()
                     if False else
                     (" ".join(str(v) for v in [HOST_RAW + offset] + state[:15]) + "\n").encode())
        state = [v + rng.randrange(10**7) for v in state]
    return lines


def block(ns, index, body):
    data = body.encode()
    return f"TimeStamp:{ns}\nIndex:{index}\nDataLen:{len(data)}\n".encode() + data + b"\n\n"


def sys_cpu(o, chip, clock, rng, dev, cpus=8):
    state = [[rng.randrange(10**5) for _ in range(10)] for _ in range(cpus)]
    blocks = []
    for i, offset in enumerate(clock.offsets(min(o.samples, 12))):
        lines = []
        total = [sum(s[j] for s in state) for j in range(10)]
        lines.append("cpu  " + " ".join(map(str, total)))
        for cpu, values in enumerate(state):
            lines.append(f"cpu{cpu} " + " ".join(map(str, values)))
        blocks.append(block(DEVICE_NS + offset if dev is not None else HOST_RAW + offset, i,
                            "\n".join(lines)))
        state = [[v + rng.randrange(20) for v in s] for s in state]
    return blocks


def sys_mem(o, chip, clock, rng, dev):
    blocks = []
    for i, offset in enumerate(clock.offsets(min(o.samples, 12))):
        names = ("MemFree", "Buffers", "Cached", "Shmem", "CommitLimit", "Committed_AS")
        body = ["MemTotal:       64000000 kB"]
        body += [f"{n}: {rng.randrange(10**8):12d} kB" for n in names]
        body += [f"HugePages_Total: {15:7d}", f"HugePages_Free: {rng.randrange(15):7d}"]
        blocks.append(block(DEVICE_NS + offset if dev is not None else HOST_RAW + offset, i,
                            "\n".join(body)))
    return blocks


def proc_cpu(o, chip, clock, rng, dev):
    jiffies = [rng.randrange(1000) for _ in range(4)]
    total = [rng.randrange(10**6) for _ in range(10)]
    blocks = []
    for i, offset in enumerate(clock.offsets(min(o.samples, 12))):
        stat = f"{PID} (python3) S 1 {PID} {PID} 0 -1 4194560 9 0 0 0 {jiffies[0]} {jiffies[1]} " \
               f"{jiffies[2]} {jiffies[3]} 20 0 1 0 99 1000 500"
        body = f"{stat}\nProcessName:python3\ncpu  " + " ".join(map(str, total))
        blocks.append(block(DEVICE_NS + offset if dev is not None else HOST_RAW + offset, i, body))
        jiffies = [v + rng.randrange(9) for v in jiffies]
        total = [v + rng.randrange(90) for v in total]
    return blocks


def proc_mem(o, chip, clock, rng, dev):
    blocks = []
    for i, offset in enumerate(clock.offsets(min(o.samples, 12))):
        statm = " ".join(str(rng.randrange(90_000)) for _ in range(7))
        blocks.append(block(DEVICE_NS + offset if dev is not None else HOST_RAW + offset, i,
                            f"{statm}\nProcessName:python3"))
    return blocks


def ub(o, chip, clock, rng, dev):
    return [struct.pack("<4H15Q", 0x5A5A, dev, port, 0, offset // 1000,
                        *(rng.randrange(1 << 40) for _ in range(14)))
            for offset in clock.offsets() for port in (0, 3, 12)]


def pmu(cores):
    def make(o, chip, clock, rng, dev):
        records = []
        v6 = chip in V6
        for offset in clock.offsets():
            for core in cores(chip):
                cycles = rng.randrange(10**6, 3 * 10**7)
                events = [rng.randrange(cycles) for _ in range(10 if v6 else 8)]
                if v6:
                    records.append(struct.pack("<BBHHH10QQQBB6B", 1, 0, 0, 0, 0, *events, cycles,
                                               clock.counter(offset), 10, core, *[0] * 6))
                else:
                    records.append(struct.pack("<BBHHH8QQQBB6B", 1, 0, 0, 0, 0, *events, cycles,
                                               DEVICE_NS + offset, 8, core, *[0] * 6))
        return records
    return make


def packed(*fields):
    """(bits, value) without gaps, low bits first."""
    value = at = 0
    for bits, field in fields:
        value |= (field & (1 << bits) - 1) << at
        at += bits
    return value.to_bytes(at // 8, "little")


def instr(core):
    """Instruction profiling of one core: a block of cycles; an AI Core's has one of traffic besides."""
    def make(o, chip, clock, rng, dev):
        units = [rng.randrange(4096) for _ in range(6)]
        records = []
        for offset in clock.offsets():
            count = clock.counter(offset)
            now = count if core else rng.randrange(1 << 64)
            fields = units + [rng.randrange(4096), now, now >> 12] + [rng.randrange(4096) for _ in range(5)]
            fields += [now >> 24, now >> 36] + [rng.randrange(4096) for _ in range(4)]
            cycles = packed(*((12, field) for field in fields), (16, now >> 48))
            flow = packed(*((bits, rng.randrange(1 << bits)) for bits in (16, 16) + (24,) * 6), (64, count),
                          (16, rng.randrange(1 << 16)))
            head = bytes(rng.randrange(256) for _ in range(32))
            records.append(head + (cycles if core else b"".join(
                flow[i:i + 8] + cycles[i:i + 8] for i in range(0, 32, 8))))
            units = [unit + rng.randrange(4096) & 4095 for unit in units]
        return records
    return make


MAKERS = {
    "hccs.data": hccs, "pcie.data": pcie, "nic.data": network(2, 100000),
    "roce.data": network(2, 200000), "dvpp.data": dvpp, "llc.data": llc, "hbm.data": hbm,
    "ddr.data": ddr, "npu_mem.data": npu_mem(1), "npu_mem.app": npu_mem(0),
    "npu_module_mem.data": module_mem, "lpmFreqConv.data": lpm((0,)),
    "lpmInfoConv.data": lpm((0, 1, 2)), "qos.data": qos, "stars_soc_profile.data": soc,
    "netdev_stats.data": netdev, "SystemCpuUsage.data": sys_cpu, "Memory.data": sys_mem,
    f"{PID}-CpuUsage.data": proc_cpu, f"{PID}-Memory.data": proc_mem,
    "aicore.data": pmu(lambda chip: (0, 1, 5)),
    "aiVectorCore.data": pmu(lambda chip: (0, 3)),
    "ffts_profile.data": pmu(lambda chip: (0, 2, 40, 41) if chip in V6 else (0, 2, 25, 26)),
}
MAKERS["ub.data"] = ub
MAKERS.update({"instr.group_2_aic": instr(0), "instr.group_24_aiv0": instr(1), "instr.group_24_aiv1": instr(2)})
PMU_FILES = ("aicore.data", "aiVectorCore.data", "ffts_profile.data")
HEADERS = {"hccs.data": HCCS_HEADER, "nic.data": NIC_HEADER, "roce.data": NIC_HEADER,
           "dvpp.data": DVPP_HEADER}


# The host ----------------------------------------------------------------------------------------


def host_cpu(o, clock, rng):
    records = []
    threads = {PID: [0, 0], PID + 1: [5, 9], PID + 2: [7, 7]}
    for i, offset in enumerate(clock.offsets()):
        ticks = 100000 + offset / 10_000_000
        lines = [f"time {HOST_RAW + offset}", f"{ticks / 100:.2f} 999.99"]
        for tid, used in threads.items():
            fields = [str(tid), "(python3)", "S"] + ["0"] * 49
            fields[13], fields[14] = str(used[0]), str(used[1])
            fields[38] = str((tid + i // 9) % 4)
            lines.append(" ".join(fields))
            used[0] += rng.randrange(2)
            used[1] += rng.randrange(2)
        records.append(("\n".join(lines) + "\n").encode())
    return records


def host_mem(o, clock, rng):
    return [(f"{HOST_RAW + offset} " + " ".join(str(rng.randrange(10**7)) for _ in range(7)) +
             "\n").encode() for offset in clock.offsets()]


def host_disk(o, clock, rng):
    lines = [b"   TIME    PID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND\n"]
    units = ("B/s", "K/s", "M/s")
    for i in range(o.samples):
        lines.append((f"12:00:{i % 60:02d} {PID} be/4 root {rng.randrange(9999) / 100:.2f} "
                      f"{rng.choice(units)} {rng.randrange(9999) / 100:.2f} {rng.choice(units)} 0.00 % "
                      f"{rng.randrange(10000) / 100:.2f} % python3\n").encode())
    lines.append(f"start_time {HOST_RAW + o.first_ns}\n".encode())
    return lines


def host_network(o, clock, rng):
    state = {"eth0": [rng.randrange(10**9) for _ in range(16)],
             "lo": [rng.randrange(10**9) for _ in range(16)]}
    records = []
    for offset in clock.offsets():
        lines = [f"time {HOST_RAW + offset}"]
        for card, values in state.items():
            lines.append(f"{card}: " + " ".join(map(str, values)))
        records.append(("\n".join(lines) + "\n").encode())
        for values in state.values():
            values[0] += rng.randrange(10**6)
            values[8] += rng.randrange(10**6)
    return records


HOST_MAKERS = {
    "host_cpu.data": host_cpu, "host_mem.data": host_mem, "host_disk.data": host_disk,
    "host_network.data": host_network,
    "host_sys_cpu.data": lambda o, clock, rng: sys_cpu(o, 5, clock, rng, None),
    "host_sys_mem.data": lambda o, clock, rng: sys_mem(o, 5, clock, rng, None),
}
ONE_SLICE = ("roce.data", "dvpp.data", "host_disk.data", "host_cpu.data", "host_network.data")
