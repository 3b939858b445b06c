// The parts of THE list of decoders, each in the file that implements it: binary channels of a
// device, then its text channels, host/data with the CPU and memory files of devices, and
// host/profd/ with ts_track.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>

#include "driver/abi/channel_format.h"
#include "export/decoder.h"

#define PROFD_DECODER_GROUPS(X) \
  X(PcieDecoders)               \
  X(HbmDecoders)                \
  X(LlcDecoders)                \
  X(DdrDecoders)                \
  X(NpuMemDecoders)             \
  X(LpmDecoders)                \
  X(SocProfileDecoders)         \
  X(AicorePmuDecoders)          \
  X(UbDecoders)                 \
  X(InstrDecoders)              \
  X(HccsDecoders)               \
  X(NetworkDecoders)            \
  X(DvppDecoders)               \
  X(NetdevDecoders)             \
  X(LlcTextDecoders)            \
  X(HostBlockDecoders)          \
  X(HostCpuDecoders)            \
  X(HostFileDecoders)           \
  X(SamplesDecoders)            \
  X(MarksDecoders)              \
  X(StacksDecoders)             \
  X(StepDecoders)               \
  X(TxDecoders)                 \
  X(ActivityDecoders)

namespace profd::exporting {

#define PROFD_DECLARE(group) std::span<const DecoderSpec> group();
PROFD_DECODER_GROUPS(PROFD_DECLARE)
#undef PROFD_DECLARE

// For DecoderSpec::chips; which they are: dump-format 2.17.
inline constexpr uint32_t kAnyChip = ~uint32_t{0};
constexpr uint32_t Chips(std::initializer_list<int> chips) {
  uint32_t mask = 0;
  for (int chip : chips) mask |= uint32_t{1} << chip;
  return mask;
}
// For DecoderSpec::tables.
template <TableId... kIds>
inline constexpr std::array kTables = {kIds...};
// For DecoderSpec::make.
template <class T, auto... kArguments>
std::unique_ptr<Decoder> MakeDecoder(const DecodeContext& context) {
  return std::make_unique<T>(context, kArguments...);
}
// Of a binary channel that profd collects, too.
constexpr DecoderSpec ChannelDecoder(const abi::ChannelFormat& format, uint32_t chips,
                                     std::span<const TableId> tables,
                                     std::unique_ptr<Decoder> (*make)(const DecodeContext&),
                                     uint16_t size_v2 = 0) {
  return {format.file, Place::Kind::kDevice, chips, format.record_size, 0, tables, make, size_v2};
}

// One whose rows are all of one table.
class TableDecoder : public Decoder {
 public:
  TableDecoder(const DecodeContext& context, TableId table)
      : clock_(context.clock), rows_(TableOf(table), context.place->device, context.window, *context.rows) {}
  void Finish() override { rows_.Flush(); }

 protected:
  ClockMap clock_;
  BatchBuilder rows_;
};

}  // namespace profd::exporting
