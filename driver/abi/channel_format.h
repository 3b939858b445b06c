// What a sampling channel's format consists of. The formats themselves: driver/records, one header
// per kind of record; all of them: channels.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace profd::abi {

enum class Framing : uint8_t {
  kBinary,  // fixed-size records, `record_size` bytes each
  kText,    // lines ending in '\n'; a line containing `header_token` is a header, not a record
};

// What a record's timestamp counts.
enum class TimeKind : uint8_t {
  kNone,
  kMicrosSinceStart,   // us since prof_drv_start of this channel (relative: rebased for late
                       // joiners)
  kDeviceMonotonicNs,  // ns of the device's CLOCK_MONOTONIC_RAW ("sec:nnnnnnnnn" in text channels)
  kDeviceCounter,      // cycles of the device's system counter
  kHostCounter,        // cycles of the host's counter (cntvct_el0 / TSC)
};

// How a slower session's view is made of a channel that runs faster.
enum class Thinning : uint8_t {
  kPick,   // gauges and cumulative counters: the record nearest the slower grid is kept
  kSum,    // counts per interval: counts of the intervals left out are added to the record kept
  kEvent,  // event driven: every record is kept
};

// A field inside a binary record; width 0 = absent.
struct Field {
  uint16_t offset = 0;
  uint8_t width = 0;  // bytes: 4 or 8
};

// Words of a text channel's line, its timestamp included.
struct LineWords {
  uint8_t min = 0;
  uint8_t max = 0;
};

struct ChannelFormat {
  uint32_t id;
  std::string_view name;  // unique, as users see it: "hbm", "dvpp_venc"
  std::string_view file;  // base of the dump's file name: <file>.<device>.slice_<k>
  Framing framing;
  uint16_t record_size = 0;  // binary only
  TimeKind time;
  Field timestamp = {};  // binary only
  Thinning thinning;
  Field count = {};  // kSum only: what is added up
  // Of channels with several records per instant: records with equal key bytes form one series,
  // whose timestamps never go back. Offset and length of the key inside the record; length 0 = one
  // series.
  uint16_t key_offset = 0;
  uint8_t key_length = 0;
  std::string_view header_token = {};  // text only
  std::string_view slice_header = {};  // text only: the line every slice must begin with
  bool single_slice = false;           // the vendor's reader keeps only the last slice
  LineWords words = {};                // text only
  // Binary only: can these be a record's fixed fields, its timestamp aside? Null: nothing is known of
  // them. Others are the driver's all the same in step with their neighbours: decoders check them, too.
  bool (*plausible)(std::span<const std::byte> record) = nullptr;
  // Binary only: what `plausible` looks at is a mark that each record has: without it, no neighbour makes it one.
  bool marked = false;
  // Binary only: are its values, too, such as hardware measures? Others are the driver's all the same, unless
  // records with such values begin beside them. Null: as `plausible`.
  bool (*usual)(std::span<const std::byte> record) = nullptr;
  // Text only: what the lines say is not specified, nor whether they are lines. Those that begin with a timestamp
  // are records; all else passes as it is.
  bool opaque = false;
};

}  // namespace profd::abi
