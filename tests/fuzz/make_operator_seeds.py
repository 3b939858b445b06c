"""make_operator_seeds.py DIRECTORY: seeds of fuzz_operators, from the dumps that tests/fidelity makes."""

import os
import struct
import sys
import tempfile

from text_files import write_bytes

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "harness"), os.path.join(HERE, "..", "fidelity")]
import make_communication
import make_hwts
import make_operators

# In the order of operators_fuzz.cc.
HOST = ("aging.api_event.data", "aging.compact.task_track", "aging.compact.node_basic_info",
        "unaging.compact.node_basic_info", "aging.additional.tensor_info", "unaging.additional.context_id_info",
        "aging.compact.expand_stream_spec", "aging.compact.capture_stream_info", "aging.additional.hccl_info",
        "aging.compact.hccl_op_info", "aging.compact.memcpy_info", "aging.additional.task_memory_info",
        "aging.additional.static_op_mem", "unaging.additional.graph_id_map", "unaging.additional.hash_dic",
        "unaging.additional.type_info_dic", "unaging.additional.fusion_op_info", "aging.compact.node_attr_info",
        "aging.additional.mc2_comm_info")
DEVICE = ("stars_soc.data", "ts_track.data", "ffts_profile.data", "aicpu.data", "hwts.data", "aicore.data", "l2_cache.data")


def seed(dump, detailed=1, longest=2, wide=0):
    made = bytes([detailed, longest, wide])
    places = [("host", base) for base in HOST] + [(0, base) for base in DEVICE]
    for index, place in enumerate(places):
        data = b"".join(dump.files.get(place, []))
        for at in range(0, len(data), 0xFF00):
            piece = data[at:at + 0xFF00]
            made += struct.pack("<BH", index, len(piece)) + piece
    return made


def other_records(dump):
    """One of each kind that the plan of operators does not have."""
    slot = dump.slots[0]
    dump.record("aging", "compact.expand_stream_spec", 64, "runtime", 804, slot, 5, bytes([1]))
    dump.record("aging", "compact.capture_stream_info", 64, "runtime", 803, slot, 5, struct.pack("<HHHHH", 0, 9, 2, 7, 0))
    dump.record("aging", "compact.memcpy_info", 64, "runtime", 801, slot, 20, struct.pack("<QQH", 4096, 4096, 1))
    for size in (8192, -8192):
        dump.record("aging", "additional.task_memory_info", 256, "node", 6, slot, 30, struct.pack(
            "<QqQQQII", 0x1000, size, dump.hash_of(slot.name), 8192, 1 << 20, 0, 20))
    dump.record("aging", "additional.static_op_mem", 256, "node", 11, slot, 30, struct.pack(
        "<qQQQQQI", 512, dump.hash_of(slot.name), 1, 9, 4096, 0, 3))
    dump.record("unaging", "additional.graph_id_map", 256, "model", 0, slot, 1, struct.pack("<QII", 77, 3, 4))
    dump.api("model", 2, slot, 0, 90, item=4)
    dump.record("unaging", "additional.fusion_op_info", 256, "node", 2, slot, 30, struct.pack(
        "<QI5QQ", dump.hash_of(slot.name), 1, 1, 2, 3, 4, 10, dump.hash_of("Conv_0")))
    dump.record("aging", "compact.node_attr_info", 64, "node", 9, slot, 57, struct.pack(
        "<QIQ", dump.hash_of(slot.name), 0, dump.hash_of("transpose:false")))
    dump.record("aging", "additional.mc2_comm_info", 256, "node", 10, slot, 30, struct.pack(
        "<QIIIIII", 77, 8, 1, 1, 3, 1, 2))
    dump.add(0, "l2_cache.data", struct.pack("<HHHH8Q", 0, slot.stream, slot.task, 0, *range(8)))
    for kind in (0, 1, 3):
        dump.add(0, "aicpu.data", struct.pack("<HHI", 0x5A5A, 6000, kind).ljust(256, b"\1"))
    return dump


def main():
    folder = os.path.join(sys.argv[1], "operators")
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as parent:
        options = {"kinds": tuple(make_operators.KINDS), "slots": 8}
        seeds = {
            "every_kind": seed(other_records(make_operators.Operators(parent, **options).fill())),
            "level_0": seed(make_operators.Operators(parent, level="l0", **options).fill(), detailed=0, longest=0),
            "batches": seed(make_operators.Operators(parent, slots=24, wrap=3, kinds=("matmul", "add")).fill()),
            "counters": seed(make_operators.Operators(parent, metrics="Memory", **options).fill()),
            "hwts": seed(make_hwts.HwtsOperators(parent, slots=16, metrics="Memory").fill()),
            "again": seed(make_operators.Operators(parent, executions=3, slots=4).fill(), wide=1),
        }
        dump = make_communication.CommunicationOperators(parent, **options)
        for number in range(3):
            dump.operation("hcom_allReduce_", "group", 1100 + 300 * number)
        seeds["communication"] = seed(dump.fill())
    for name, data in seeds.items():
        write_bytes(os.path.join(folder, name), data)


if __name__ == "__main__":
    main()
