// From the bytes of one data file to rows. A decoder lives as long as its file is read, on one thread,
// and is fed complete records (or lines) in the file's order. Bytes are untrusted: what makes no sense is
// counted and left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "export/batch.h"
#include "export/clock_map.h"
#include "export/dump_info.h"
#include "export/event.h"
#include "export/step_parts.h"
#include "export/strings.h"

namespace profd::exporting {

// What a decoder works with; all of it outlives the decoder.
struct DecodeContext {
  const DumpInfo* dump = nullptr;
  const Place* place = nullptr;
  const DataFile* file = nullptr;
  ClockMap clock;  // of the place
  TimeWindow window;
  std::set<int> ranks = {};  // whose processes; empty = all
  Strings* strings = nullptr;
  BatchSink* rows = nullptr;
  std::function<void(const Event&)> event;  // may be empty
  const StepPartFinder* step_parts = nullptr;  // of the dump's steps, when they were looked for
  std::function<std::string(uint64_t hash)> name_of;  // where DecoderSpec::wants_names; else empty
  // The device's half of a mark, the same.
  std::function<std::optional<Event::Recorded::OnDevice>(uint64_t mark)> on_device = {};
  // FirstBytes of another file of the place; may be empty.
  std::function<std::string(std::string_view base)> first_bytes_of = {};
};

struct DecodeStats {
  uint64_t records = 0;      // understood
  uint64_t bad_records = 0;  // complete, but invalid
  uint64_t bad_bytes = 0;    // of those, and of records cut off by the end of the file
  uint64_t skipped = 0;      // in order, but of a kind nothing is made of
  uint64_t clipped = 0;      // begins and ends whose other half lies outside of the session
  uint64_t unpaired = 0;     // and those whose other half was lost
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Whole records, or complete lines with their '\n' (the last line of a file may lack it).
  // `slice_start`: the first of them begins a slice.
  virtual void Feed(std::span<const std::byte> bytes, bool slice_start) = 0;
  // Of text: a heading or a complete line, without its '\n'? From this the feeder knows a slice whose last line lacks its
  // end from one that was cut within the line; false where lines look like parts of lines.
  virtual bool IsLine(std::string_view /*line*/) const { return false; }
  // After the last byte: rows that waited for a successor, Flush of the builders.
  virtual void Finish() = 0;
  const DecodeStats& stats() const { return stats_; }
  DecodeStats& stats() { return stats_; }

 protected:
  DecodeStats stats_;
};

struct DecoderSpec {
  // The base name, or with '*' for digits: "hbm.data", "*-CpuUsage.data", "instr.group_*_aic".
  std::string_view base;
  Place::Kind kind;
  // Chips the vendor's analyser reads it on (dump-format 2.17), bit N = platform_version N; others'
  // files are decoded too, and reported as unusual.
  uint32_t chips;
  uint16_t record_size;     // 0 = text
  uint16_t record_size_v6;  // of chips 15 and 16; 0 = the same
  std::span<const TableId> tables;  // what may come out; empty = events only
  std::unique_ptr<Decoder> (*make)(const DecodeContext& context);
  uint16_t record_size_v2 = 0;  // where Place::record_version is "2.0"; 0 = the same
  // Where sample.json does not say "sample-based": counters of tasks, not samples; 0 = the same.
  uint16_t record_size_task = 0;
  bool rows_have_devices = false;  // not those of the place
  bool wants_names = false;        // of the dictionary of host/data
};
// Chips 15 and 16: other layouts in several channels.
constexpr bool IsV6(int chip) { return chip == 15 || chip == 16; }

// THE list, of decode/decoder_table.cc.
std::span<const DecoderSpec> Decoders();
// Counters of tasks, in a file that may have samples.
inline bool HasTaskCounters(const DecoderSpec& spec, const Place& place) {
  const bool is_vector = spec.base == "aiVectorCore.data" && !place.aiv_mode.empty();
  return spec.record_size_task != 0 && (is_vector ? place.aiv_mode : place.aicore_mode) != "sample-based";
}
// Bytes of one record in a file of this place; 0 = text.
inline size_t RecordSizeOf(const DecoderSpec& spec, const Place& place) {
  if (HasTaskCounters(spec, place)) return spec.record_size_task;
  if (IsV6(place.chip) && spec.record_size_v6 != 0) return spec.record_size_v6;
  if (place.record_version == "2.0" && spec.record_size_v2 != 0) return spec.record_size_v2;
  return spec.record_size;
}
// Null: such a file is not decoded. Where chips have different formats under one name (`llc.data`), the
// one of `chip` (Place::chip; -1 = unknown).
const DecoderSpec* FindDecoder(std::string_view base, Place::Kind kind, int chip = -1);

}  // namespace profd::exporting
