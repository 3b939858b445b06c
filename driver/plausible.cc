#include "driver/plausible.h"

#include <algorithm>
#include <bit>

#include "base/bytes.h"
#include "base/text.h"

namespace profd {
namespace {

// "sec:ns", the second part with or without leading zeros (driver-abi 3.6).
bool IsTimestampToken(std::string_view token) {
  size_t colon = token.find(':');
  return colon != std::string_view::npos && colon <= 12 && IsDigits(token.substr(0, colon)) &&
         token.size() - colon <= 1 + kFractionDigits && IsDigits(token.substr(colon + 1));
}

// Digits with an optional sign, one decimal point and a percent sign ("-1", "69.5", "90%").
bool IsNumberToken(std::string_view token) {
  if (!token.empty() && token.back() == '%') token.remove_suffix(1);
  if (!token.empty() && token.front() == '-') token.remove_prefix(1);
  if (token.empty() || token.size() > 32) return false;
  size_t dot = token.find('.');
  if (dot == std::string_view::npos) return IsDigits(token);
  return IsDigits(token.substr(0, dot)) && IsDigits(token.substr(dot + 1));
}

size_t FirstBit(Bits128 bits) {
  const auto low = static_cast<uint64_t>(bits);
  if (low != 0) return static_cast<size_t>(std::countr_zero(low));
  return 64 + static_cast<size_t>(std::countr_zero(static_cast<uint64_t>(bits >> 64)));
}

bool BitAt(Bits128 bits, size_t at) { return static_cast<uint64_t>(bits >> at) & 1; }

// Has the line a word of more than 31 characters?
bool HasLongWord(Bits128 solid) {
  for (int length = 1; length < 32; length *= 2) solid &= solid >> length;
  return solid != 0;
}

// The odd characters behind the timestamp: percent signs at the end of a number and decimal points
// inside one, no more than one in each.
bool AreNumberMarks(std::string_view line, const LineShape& shape, Bits128 odd) {
  const Bits128 digits = shape.solid & ~shape.odd;
  size_t last_point = 0;
  for (; odd != 0; odd &= odd - 1) {
    const size_t at = FirstBit(odd);
    if (!BitAt(digits, at - 1)) return false;
    if (line[at] == '%' && !BitAt(shape.solid, at + 1)) continue;
    if (line[at] != '.' || !BitAt(digits, at + 1)) return false;
    const Bits128 between = (Bits128{1} << at) - (Bits128{1} << last_point);
    if (last_point != 0 && (~shape.solid & between) == 0) return false;
    last_point = at;
  }
  return true;
}

// Steps back this large are ordinary: several series share a channel, each with its own period.
int64_t BackwardBound(abi::TimeKind time) {
  switch (time) {
    case abi::TimeKind::kMicrosSinceStart:
      return 10'000'000;  // 10 s
    case abi::TimeKind::kDeviceMonotonicNs:
      return 10'000'000'000;
    default:
      return int64_t{1} << 34;  // cycles: 5 s at 3 GHz, minutes at 50 MHz
  }
}

int64_t ForwardBound(abi::TimeKind time) {
  switch (time) {
    case abi::TimeKind::kMicrosSinceStart:
      return int64_t{1} << 29;  // 9 min
    case abi::TimeKind::kDeviceMonotonicNs:
      return int64_t{1} << 39;  // 9 min
    default:
      return int64_t{1} << 40;  // cycles: 6 min at 3 GHz, 6 h at 50 MHz
  }
}

}  // namespace

bool IsPlausibleRecord(const abi::ChannelFormat& format, std::span<const std::byte> record) {
  if (record.size() < format.record_size) return false;
  if (format.timestamp.width == 8 &&
      LoadUnchecked<uint64_t>(record, format.timestamp.offset) > records::kMaxTimestamp) {
    return false;
  }
  return format.plausible == nullptr || format.plausible(record);
}

uint64_t TimestampOf(const abi::ChannelFormat& format, std::span<const std::byte> record) {
  return format.timestamp.width == 0 ? 0 : records::LoadField(record, format.timestamp);
}

bool TimestampFollows(const abi::ChannelFormat& format, uint64_t previous, uint64_t timestamp) {
  if (format.timestamp.width == 0 || format.thinning == abi::Thinning::kEvent) return true;
  auto step = static_cast<int64_t>(timestamp - previous);
  if (format.timestamp.width == 4) step = static_cast<int32_t>(static_cast<uint32_t>(step));
  return step >= -BackwardBound(format.time) && step <= ForwardBound(format.time);
}

bool IsPlainRecord(const abi::ChannelFormat& format, std::string_view line,
                   const LineShape& shape) {
  if (shape.odd == 0) return false;
  const size_t colon = FirstBit(shape.odd);
  const size_t end = colon + 1 + kFractionDigits;
  if (colon == 0 || colon > 12 || line[colon] != ':' || end > line.size()) return false;
  // No blank and nothing odd from the beginning to the end of the timestamp, and a blank behind it.
  const Bits128 timestamp = (Bits128{1} << end) - 1;
  const Bits128 marks = shape.odd & (shape.odd - 1);
  if ((~shape.solid & timestamp) != 0 || (marks & timestamp) != 0 || BitAt(shape.solid, end)) return false;
  const auto words = static_cast<int>(shape.words());
  return words >= format.words.min && words <= format.words.max &&
         AreNumberMarks(line, shape, marks) && !HasLongWord(shape.solid);
}

bool IsPlausibleLine(const abi::ChannelFormat& format, std::string_view line) {
  std::string_view rest = line;
  if (!IsTimestampToken(NextToken(&rest))) return false;
  if (format.opaque) return true;
  int tokens = 1;
  for (std::string_view token = NextToken(&rest); !token.empty(); token = NextToken(&rest)) {
    if (++tokens > format.words.max || !IsNumberToken(token)) return false;
  }
  return tokens >= format.words.min;
}

FractionZeros ZerosMissing(std::string_view line) {
  const size_t begin = std::min(line.find(':'), line.size() - 1) + 1;
  size_t digits = 0;
  while (begin + digits < line.size() && line[begin + digits] >= '0' && line[begin + digits] <= '9') ++digits;
  return {begin, kFractionDigits - std::min(digits, kFractionDigits)};
}

}  // namespace profd
