"""The records of each channel of a PROF directory, as the format's description has them.

A line or an unpacked record is passed in, its timestamp, key and values are returned; ValueError has what is wrong.
"""

import re

TEXT_STAMP = re.compile(r"^(\d+):(\d{9})$")
HCCS_HEADER = "time_stamp(s):time_stamp(ns) send_amount receive_amount"
LLC_EVENTS = {
    "read": (0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36),
    "write": (0x00, 0x01, 0x03, 0x14, 0x21, 0x23, 0x35, 0x37),
}
SOC_MAGIC = 0x6BD3


def text_timestamp(token):
    match = TEXT_STAMP.match(token)
    return int(match[1]) * 10**9 + int(match[2]) if match else None


def integers(tokens):
    return [int(token.rstrip("%")) for token in tokens]


def hccs_line(tokens, _):
    tx, rx = integers(tokens)
    return 0, {"tx": tx, "rx": rx}


NET_COLUMNS = ("bandwidth rxPacket/s rxByte/s rxPackets rxBytes rxErrors rxDropped txPacket/s "
               "txByte/s txPackets txBytes txErrors txDropped").split()


def net_line(tokens, _):
    if len(tokens) not in (13, 14, 15):
        raise ValueError(f"{len(tokens) + 1} columns")
    numbers = integers(tokens)
    return (numbers[13] if len(numbers) > 13 else 0), dict(zip(NET_COLUMNS, numbers))


def dvpp_line(tokens, chip):
    wide = chip in (1, 5, 7, 8, 11, 15, 16)
    if len(tokens) != (11 if wide else 10):
        raise ValueError(f"{len(tokens) + 1} columns")
    dvpp = int(tokens[0]) if wide else 0
    engine_type, engine, all_time, frames, use, *_ = integers(tokens[1:] if wide else tokens)
    if engine_type > 6:
        raise ValueError(f"engine type {engine_type}")
    return (dvpp, engine_type, engine), {"all_time": all_time, "frames": frames, "utilization": use}


def pcie(fields, device, _):
    if fields[1] != device:
        raise ValueError(f"device {fields[1]} in the file of {device}")
    names = ("tx_post", "tx_nonpost", "tx_cpl", "latency", "rx_post", "rx_nonpost", "rx_cpl")
    values = {name: fields[2 + 3 * i:5 + 3 * i] for i, name in enumerate(names)}
    if values["tx_post"][1] < values["tx_post"][0]:
        raise ValueError("tx_post max below min")
    return fields[0], 0, values


def hbm(fields, _, __):
    us, count, event, hbm_id = fields
    if event > 1 or hbm_id > 3:
        raise ValueError(f"event {event} hbm id {hbm_id}")
    return us, (hbm_id, event), {"count": count}


def ddr(fields, _, __):
    us, count, event, ddr_id, master = fields
    if event > 1:
        raise ValueError(f"event {event}")
    return us, (ddr_id, event, master), {"count": count}


def llc(fields, _, sample):
    us, count, event, l3t = fields
    mode = sample.get("llc_profiling")
    if event not in LLC_EVENTS.get(mode, ()):
        raise ValueError(f"event {event:#x} does not belong to llc_profiling={mode}")
    return us, (l3t, event), {"count": count}


def npu_mem(fields, _, __):
    us, event, _, ddr_bytes, hbm_bytes = fields
    if event > 1:
        raise ValueError(f"event {event}")
    return us, event, {"ddr": ddr_bytes, "hbm": hbm_bytes}


def module_mem(fields, _, __):
    return fields[2], fields[0], {"bytes": fields[3]}


def frequency(fields, _, __):
    count, kind = fields[0], fields[1]
    if not 0 < count <= 55:
        raise ValueError(f"{count} entries")
    entries = [(fields[2 + 3 * i], fields[3 + 3 * i]) for i in range(count)]
    return entries[0][0], kind, {"entries": entries}


def qos(fields, _, sample):
    names = [name for name in sample.get("qosEvents", "").split(",") if name]
    if not names:
        raise ValueError("sample.json names no qosEvents: the channel is lost")
    return fields[3], 0, dict(zip(names, fields[4:14]))


def soc(fields, _, __):
    head, magic = fields[0], fields[1]
    kind, count, sub = head & 63, head >> 6 & 15, head >> 10
    if magic != SOC_MAGIC:
        raise ValueError(f"magic {magic:#x}")
    words = fields[4:]
    ident = words[0] >> 16
    values = {"head_count": count}
    if kind == 25:
        names = ("req_rx", "rsp_rx", "snp_rx", "dat_rx", "req_tx", "rsp_tx", "snp_tx", "dat_tx")
        # u16 reserved, u16 die, then 11 words of which 3..10 are used
        values.update(zip(names, words[4:12]))
        key = (kind, ident)
    elif kind == 27:
        key = (kind, sub, ident & 63)
    elif kind == 26:
        key = (kind, ident)
    elif kind in (24, 28, 29):
        key = (kind, sub)
    else:
        raise ValueError(f"type {kind}")
    return fields[3], key, values


STEP_TAGS = {60000: "begin", 60001: "end"}
NO_MODEL = 4294967295


def step_trace(fields, chip):
    """A record of ts_track: only training steps are known here. On the newest chips the tag stands
    before stream and task."""
    kind, timestamp, step, model = fields[1], fields[4], fields[5], fields[6]
    tag = fields[7] if chip in (15, 16) else fields[9]
    if kind != 10:
        raise ValueError(f"type {kind}")
    if tag not in STEP_TAGS:
        raise ValueError(f"tag {tag}")
    if model != NO_MODEL:
        raise ValueError(f"model {model}")
    return timestamp, (STEP_TAGS[tag], step), {"step": step, "what": STEP_TAGS[tag]}


TEXT = {  # base name -> (line parser, header token, header mandatory)
    "hccs.data": (hccs_line, HCCS_HEADER, True),
    "nic.data": (net_line, "rxPacket/s", False),
    "roce.data": (net_line, "rxPacket/s", False),
    "dvpp.data": (dvpp_line, "engine_type", False),
}
BINARY = {  # base name -> (struct, parser, kind of timestamp)
    "pcie.data": ("<Q22I", pcie, "device_ns"),
    "hbm.data": ("<QQII", hbm, "micros"),
    "ddr.data": ("<5I", ddr, "micros"),
    "llc.data": ("<QQII", llc, "micros"),
    "npu_mem.data": ("<IIQQQ", npu_mem, "micros"),
    "npu_mem.app": ("<IIQQQ", npu_mem, "micros"),
    "npu_module_mem.data": ("<IIQQ", module_mem, "host_count"),
    "lpmFreqConv.data": ("<II" + "QII" * 55, frequency, "device_count"),
    "lpmInfoConv.data": ("<II" + "QII" * 55, frequency, "device_count"),
    "qos.data": ("<2I2Q10I", qos, "device_count"),
    "stars_soc_profile.data": ("<HHIQ12I", soc, "device_count"),
    "ts_track.data": ("<BBHLQQQHHHH", step_trace, "device_count"),
}
# Files of single DVPP engines: no parser of the vendor's reads them, and nothing says what is in them (driver-abi 3.6).
# What has the form of dvpp.data's lines is a record here, all else may be there.
UNKNOWN_FORM = tuple(f"dvpp.{engine}" for engine in ("vdec", "jpegd", "jpege", "png", "scd", "venc", "vpc"))
for _name in UNKNOWN_FORM:
    TEXT[_name] = (dvpp_line, "engine_type", False)
