// The parts of THE list of decoders, each in the file that implements it: binary channels of a
// device, then its text channels, host/data with the CPU and memory files of devices, and
// host/profd/ with ts_track.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string_view>

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

// Rows of one table and of several devices, whose numbers are untrusted.
class DeviceRows {
 public:
  DeviceRows(const DecodeContext& context, TableId table)
      : table_(TableOf(table)), window_(context.window), sink_(*context.rows) {}

  // Null: more devices than a node has. Rows of one device mostly follow one another.
  BatchBuilder* Of(int device) {
    if (last_ != nullptr && device == last_device_) return last_;
    auto found = rows_.find(device);
    if (found == rows_.end()) {
      constexpr size_t kMaxDevices = 256;
      if (rows_.size() >= kMaxDevices) return nullptr;
      found = rows_.try_emplace(device, table_, device, window_, sink_).first;
    }
    last_ = &found->second;
    last_device_ = device;
    return last_;
  }
  void Flush() {
    for (auto& [device, rows] : rows_) rows.Flush();
  }

 private:
  const TableSpec& table_;
  TimeWindow window_;
  BatchSink& sink_;
  std::map<int, BatchBuilder> rows_;
  BatchBuilder* last_ = nullptr;
  int last_device_ = 0;
};

inline bool HasFile(const Place& place, std::string_view base) {
  return std::ranges::find(place.files, base, &DataFile::base) != place.files.end();
}

}  // namespace profd::exporting
