// A decoder on a string, its rows and events collected. For tests.
#pragma once

#include <bit>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "export/decode/decoder_groups.h"

namespace profd::exporting {

struct SeenRow {
  TableId table;
  int device;
  int64_t t_ns;
  std::vector<uint64_t> cells;
  std::vector<double> numbers = {};  // the same by their columns' types

  int64_t Int(size_t column) const { return static_cast<int64_t>(cells[column]); }
  double Real(size_t column) const { return std::bit_cast<double>(cells[column]); }
};

class RowCollector : public BatchSink {
 public:
  void Take(const Batch& batch) override {
    for (size_t row = 0; row < batch.rows(); ++row) {
      SeenRow seen{batch.table->id, batch.device, batch.t_ns[row], {}};
      for (size_t column = 0; column < batch.table->columns.size(); ++column) {
        seen.cells.push_back(batch.cells[column * batch.stride + row]);
        seen.numbers.push_back(batch.Number(column, row));
      }
      rows.push_back(std::move(seen));
    }
  }
  std::vector<SeenRow> rows;
};

// Of each row: ns since a time, then its cells.
using Numbers = std::vector<std::vector<double>>;

// Clocks: wall = raw + 1e18; a device's clock is the host's less 1000 ns; its counter has 50 MHz
// and was 1000 at host raw 5000 ns.
class DecodeRun {
 public:
  static constexpr int64_t kWall = 1'000'000'000'000'000'000;
  static constexpr int64_t kDeviceWall = kWall + 1000;

  explicit DecodeRun(std::string_view base, Place::Kind kind = Place::Kind::kDevice, int chip = 5) {
    file_.base = base;
    place_.kind = kind;
    place_.device = kind == Place::Kind::kDevice ? 3 : -1;
    place_.chip = chip;
    place_.host_disk_hz = 50;
    place_.clock.begin_us = kWall / 1000 + 2;
    place_.clock.begin_raw_ns = 2000;
    place_.clock.host_ns = 5000;
    place_.clock.device_ns = 4000;
    place_.clock.device_count = 1000;
    place_.clock.device_hz = 50e6;
    dump_.memory_total_kb = 1'000'000;
    dump_.cpu_count = 4;
    dump_.clock_ticks_hz = 100;
    dump_.cards = {{"eth0", 1000}, {"eth1", 2000}};
  }

  Place& place() { return place_; }
  DumpInfo& dump() { return dump_; }
  TimeWindow window;
  std::set<int> ranks;

  // Each of `chunks` is fed as a slice.
  void Feed(const std::vector<std::string>& chunks) {
    DecodeContext context;
    context.dump = &dump_;
    context.place = &place_;
    context.file = &file_;
    context.clock = ClockMap(place_.clock);
    context.window = window;
    context.ranks = ranks;
    context.strings = &strings;
    context.rows = &collector_;
    context.event = [this](const Event& event) { events.push_back(event); };
    auto decoder = FindDecoder(file_.base, place_.kind, place_.chip)->make(context);
    for (const std::string& chunk : chunks) {
      decoder->Feed(std::as_bytes(std::span(chunk)), true);
    }
    decoder->Finish();
    stats = decoder->stats();
    is_line = [decoder = std::shared_ptr(std::move(decoder))](std::string_view line) { return decoder->IsLine(line); };
    rows = collector_.rows;
  }

  Numbers Since(int64_t t_ns) const {
    Numbers all;
    for (const SeenRow& row : rows) {
      all.push_back({static_cast<double>(row.t_ns - t_ns)});
      all.back().insert(all.back().end(), row.numbers.begin(), row.numbers.end());
    }
    return all;
  }

  std::vector<SeenRow> rows;
  std::vector<Event> events;
  DecodeStats stats;
  std::function<bool(std::string_view)> is_line;  // of the decoder that was fed
  Strings strings;

 private:
  Place place_;
  DumpInfo dump_;
  DataFile file_;
  RowCollector collector_;
};

}  // namespace profd::exporting
