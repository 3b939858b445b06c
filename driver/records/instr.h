// Instruction profiling of the 910B: what the units of a core were busy with, and what an AI Core moved. The layout is
// what the vendor's analyser reads (msparser/biu_perf and profiling_bean/biu_perf of msprof), but for the first 32
// bytes of a record, which it leaves out.
#pragma once

#include <array>
#include <cstring>

#include "driver/records/record.h"

namespace profd::records {

// A part of a record.
struct InstrBlock {
  static constexpr size_t kSize = 32;
  std::array<std::byte, kSize> bytes;

  uint32_t Number(size_t offset, size_t width) const {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + offset, width);
    return value;
  }
};

// Busy cycles, counted modulo 4096; in the block are 20 numbers of 12 bits, and one of 16.
struct InstrCycles {
  static constexpr uint32_t kModulo = 4096;

  explicit InstrCycles(const InstrBlock& block) {
    auto number = [&block](size_t i) { return block.Number(i / 2 * 3, 3) >> i % 2 * 12 & 0xFFF; };
    for (size_t i = 0; i < units.size(); ++i) units[i] = static_cast<uint16_t>(number(i));
    timestamp = uint64_t{block.Number(30, 2)} << 48 | uint64_t{number(15)} << 36 | uint64_t{number(14)} << 24 |
                number(8) << 12 | number(7);
  }

  std::array<uint16_t, 6> units;  // vector, scalar, cube, MTE1, MTE2, MTE3
  uint64_t timestamp;             // without meaning in records of AI Cores
};

// Traffic of an AI Core's bus interface in a period. Units are not known.
struct InstrFlow {
  explicit InstrFlow(const InstrBlock& block)
      : read_commands(block.Number(0, 2)),
        write_commands(block.Number(2, 2)),
        read_latency(block.Number(4, 3)),
        write_latency(block.Number(7, 3)),
        read_flow(block.Number(10, 3)),
        write_flow(block.Number(13, 3)),
        l2_read_flow(block.Number(16, 3)),
        l2_write_flow(block.Number(19, 3)),
        timestamp(block.Number(22, 4) | uint64_t{block.Number(26, 4)} << 32),
        l2_hits(block.Number(30, 2)) {}

  uint32_t read_commands;
  uint32_t write_commands;
  uint32_t read_latency;
  uint32_t write_latency;
  uint32_t read_flow;
  uint32_t write_flow;
  uint32_t l2_read_flow;
  uint32_t l2_write_flow;
  uint64_t timestamp;  // taken for cycles of the device's counter: nothing says what it counts
  uint32_t l2_hits;
};

// Of an AI Core: 8 bytes of the one block and 8 of the other by turns.
class InstrCubeRecord {
 public:
  static constexpr uint16_t kSize = 96;

  explicit InstrCubeRecord(Bytes record) : flow_(Part(record, 32)), cycles_(Part(record, 40)) {}

  const InstrFlow& flow() const { return flow_; }
  const InstrCycles& cycles() const { return cycles_; }
  uint64_t timestamp() const { return flow_.timestamp; }

 private:
  static InstrBlock Part(Bytes record, size_t offset) {
    InstrBlock block;
    for (size_t i = 0; i < InstrBlock::kSize; i += 8) {
      std::memcpy(block.bytes.data() + i, record.data() + offset + 2 * i, 8);
    }
    return block;
  }

  InstrFlow flow_;
  InstrCycles cycles_;
};

// Of an AI Vector core.
class InstrVectorRecord {
 public:
  static constexpr uint16_t kSize = 64;

  explicit InstrVectorRecord(Bytes record) : cycles_(Read<InstrBlock>(record.subspan(32))) {}

  const InstrCycles& cycles() const { return cycles_; }
  uint64_t timestamp() const { return cycles_.timestamp; }

 private:
  InstrCycles cycles_;
};

}  // namespace profd::records
