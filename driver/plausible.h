// Cheap tests whether bytes can be a record of a channel (layouts: driver-abi 3.6). They distinguish
// garbage from records; they do not judge values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/line_shape.h"
#include "driver/abi/channels.h"

namespace profd {

inline constexpr size_t kMaxLineBytes = 4096;
// Of the nanoseconds of a line's timestamp, in dumps.
inline constexpr size_t kFractionDigits = 9;

// The fixed fields of one complete binary record (`record` has exactly format.record_size bytes).
bool IsPlausibleRecord(const abi::ChannelFormat& format, std::span<const std::byte> record);

// A record's timestamp, at its place in the format; 0 when the format has none.
uint64_t TimestampOf(const abi::ChannelFormat& format, std::span<const std::byte> record);

// Can `timestamp` come next after `previous` on a channel that runs without interruption: at most some
// seconds earlier (several series share a channel), at most some minutes later; 32-bit microseconds
// wrap. Always true for event-driven channels, whose records hold events of any age.
bool TimestampFollows(const abi::ChannelFormat& format, uint64_t previous, uint64_t timestamp);

// A line that is certainly plausible, by its shape. False means nothing: ask IsPlausibleLine.
bool IsPlainRecord(const abi::ChannelFormat& format, std::string_view line, const LineShape& shape);

// One text line without its newline: "sec:ns", then numbers, as many as the channel has.
bool IsPlausibleLine(const abi::ChannelFormat& format, std::string_view line);

// A driver may print nanoseconds without leading zeros; readers join both parts of a timestamp. Where in a plausible
// line its zeros belong, and how many.
struct FractionZeros {
  size_t at = 0;
  size_t count = 0;
};
FractionZeros ZerosMissing(std::string_view line);

}  // namespace profd
