// Decodes records made up in a test and keeps the rows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "export/decoder.h"

namespace profd::exporting {

// The clocks of dump-format 7.2.
inline constexpr int64_t kBegin = 1767225600000000000;
inline constexpr int64_t kDeviceStartNs = 176167889901260;
inline constexpr uint64_t kDeviceStartCount = 8808394495063;
inline constexpr uint64_t kHostStartCount = 87611720866377;

struct Row {
  int64_t t_ns = 0;  // since kBegin
  std::vector<double> cells;
  bool operator==(const Row&) const = default;
};
inline void PrintTo(const Row& row, std::ostream* out) {
  *out << row.t_ns << " {";
  for (double cell : row.cells) *out << testing::PrintToString(cell) << ", ";
  *out << "}";
}

// Packs values as they are given.
class Bytes {
 public:
  template <class... T>
  Bytes& Add(T... values) {
    (Append(&values, sizeof values), ...);
    return *this;
  }
  Bytes& Zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  Bytes& Append(const Bytes& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
    return *this;
  }
  std::span<const std::byte> get() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

 private:
  void Append(const void* data, size_t size) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  std::vector<std::byte> bytes_;
};

class DeviceDecodeTest : public testing::Test, protected BatchSink {
 protected:
  DeviceDecodeTest() {
    place_.kind = Place::Kind::kDevice;
    place_.device = 3;
    place_.chip = 5;
    place_.clock.begin_us = kBegin / 1000;
    place_.clock.begin_raw_ns = 876117208663770;
    place_.clock.host_ns = 876117208663770;
    place_.clock.host_count = kHostStartCount;
    place_.clock.device_ns = kDeviceStartNs;
    place_.clock.device_count = kDeviceStartCount;
    place_.clock.device_hz = 50e6;
    place_.clock.host_hz = 100e6;
    place_.aicore_mhz = 1800;
  }

  // Feeds all in pieces of `piece` bytes; 0 = at once.
  void Decode(std::string_view base, const Bytes& bytes, size_t piece = 0) {
    rows_.clear();
    file_.base = base;
    DecodeContext context;
    context.dump = &dump_;
    context.place = &place_;
    context.file = &file_;
    context.clock = ClockMap(place_.clock);
    context.window = window_;
    context.strings = &strings_;
    context.rows = this;
    const DecoderSpec* spec = Spec(base);
    ASSERT_NE(spec, nullptr);
    auto decoder = spec->make(context);
    std::span<const std::byte> rest = bytes.get();
    decoder->Feed({}, true);
    bool first = true;
    while (!rest.empty()) {
      size_t size = piece == 0 ? rest.size() : std::min(piece, rest.size());
      decoder->Feed(rest.first(size), first);
      rest = rest.subspan(size);
      first = false;
    }
    decoder->Finish();
    stats_ = decoder->stats();
  }
  static const DecoderSpec* Spec(std::string_view base) {
    return FindDecoder(base, Place::Kind::kDevice);
  }
  const std::vector<Row>& Rows(TableId table) { return rows_[table]; }

  DumpInfo dump_;
  Place place_;
  TimeWindow window_;
  Strings strings_;
  DecodeStats stats_;

 private:
  void Take(const Batch& batch) override {
    EXPECT_EQ(batch.device, place_.device);
    for (size_t i = 0; i < batch.rows(); ++i) {
      Row row{batch.t_ns[i] - kBegin, {}};
      for (size_t c = 0; c < batch.table->columns.size(); ++c) {
        row.cells.push_back(batch.Number(c, i));
      }
      rows_[batch.table->id].push_back(std::move(row));
    }
  }

  DataFile file_;
  std::map<TableId, std::vector<Row>> rows_;
};

}  // namespace profd::exporting
