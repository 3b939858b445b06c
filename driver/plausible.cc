#include "driver/plausible.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/bytes.h"
#include "base/text.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

using Bytes = std::span<const std::byte>;

// More memory than any device has, with room to grow: 256 TiB.
constexpr uint64_t kMaxMemoryBytes = uint64_t{1} << 48;
constexpr uint32_t kMaxDeviceId = 1024;
constexpr uint32_t kMaxModuleId = 4096;
constexpr uint32_t kMaxHbmId = 64;
constexpr uint32_t kMaxDdrId = 64;
constexpr uint32_t kMaxL3Id = 16;
constexpr uint32_t kMaxLpEntries = 55;
constexpr uint32_t kMaxLpType = 2;
constexpr uint32_t kMaxLpValue = 1'000'000;  // MHz or mV
constexpr uint32_t kPcieWords = 21;
constexpr uint32_t kMaxPcieWord = 1u << 24;  // bytes/us or ns: 16 TB/s, 17 ms
constexpr uint32_t kQosSlots = 10;
constexpr uint32_t kMaxQosMegabytes = 1u << 22;  // MB/s of one stream: 4 TB/s
// Stamps this large are not times: half the range of int64.
constexpr uint64_t kMaxStamp = uint64_t{1} << 62;

// Read and write event codes of the LLC PMU (driver-abi 3.6).
constexpr std::array<uint32_t, 14> kLlcEvents = {0x00, 0x01, 0x02, 0x03, 0x13, 0x14, 0x20,
                                                 0x21, 0x22, 0x23, 0x34, 0x35, 0x36, 0x37};

bool IsSocProfileType(uint8_t type) {
  return type >= static_cast<uint8_t>(abi::SocProfileType::kQos) &&
         type <= static_cast<uint8_t>(abi::SocProfileType::kLowPower);
}

// An empty record says nothing, and the zeros behind a record's last entry look like one.
bool IsPlausibleLp(Bytes record) {
  auto count = LoadUnchecked<uint32_t>(record, 0);
  if (count == 0 || count > kMaxLpEntries) return false;
  if (LoadUnchecked<uint32_t>(record, 4) > kMaxLpType) return false;
  for (uint32_t i = 0; i < count; ++i) {
    auto stamp = LoadUnchecked<uint64_t>(record, 8 + 16 * i);
    if (stamp == 0 || stamp > kMaxStamp) return false;
    if (LoadUnchecked<uint32_t>(record, 16 + 16 * i) > kMaxLpValue) return false;
  }
  return true;
}

bool IsPlausibleQos(Bytes record) {
  for (uint32_t i = 0; i < kQosSlots; ++i) {
    if (LoadUnchecked<uint32_t>(record, 24 + 4 * i) > kMaxQosMegabytes) return false;
  }
  return true;
}

bool IsPlausibleModuleMem(Bytes record) {
  auto total = LoadUnchecked<uint64_t>(record, 16);
  bool means_unknown = total > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return LoadUnchecked<uint32_t>(record, 0) < kMaxModuleId &&
         (means_unknown || total < kMaxMemoryBytes);
}

bool IsPlausibleNpuMem(Bytes record) {
  return LoadUnchecked<uint32_t>(record, 4) <= 1 &&
         LoadUnchecked<uint64_t>(record, 16) < kMaxMemoryBytes &&
         LoadUnchecked<uint64_t>(record, 24) < kMaxMemoryBytes;
}

bool IsPlausibleSocProfile(Bytes record) {
  return LoadUnchecked<uint16_t>(record, 2) == abi::kSocProfileMagic &&
         IsSocProfileType(abi::SocProfileTypeOf(LoadUnchecked<uint16_t>(record, 0)));
}

bool IsDigits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "sec:nnnnnnnnn": the analyser joins both parts, so the second has its nine digits.
bool IsStampToken(std::string_view token) {
  size_t colon = token.find(':');
  return colon != std::string_view::npos && colon <= 12 && IsDigits(token.substr(0, colon)) &&
         token.size() - colon == 10 && IsDigits(token.substr(colon + 1));
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

bool IsWordToken(std::string_view token) {
  return !token.empty() && token.size() <= 16 &&
         std::all_of(token.begin(), token.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
         });
}

struct TokenRange {
  int min;
  int max;
  int words;  // tokens that may be a word instead of a number (DVPP's engine type)
};

TokenRange TokensOf(const abi::ChannelFormat& format) {
  switch (format.id) {
    case abi::kChannelHccs:
      return {3, 3, 0};
    case abi::kChannelNic:
    case abi::kChannelRoce:
      return {14, 16, 0};
    default:
      return {11, 12, 1};  // DVPP: without and with dvpp_id
  }
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

bool IsPlausiblePcie(Bytes record) {
  if (LoadUnchecked<uint32_t>(record, 8) >= kMaxDeviceId) return false;
  for (uint32_t i = 0; i < kPcieWords; ++i) {
    if (LoadUnchecked<uint32_t>(record, 12 + 4 * i) > kMaxPcieWord) return false;
  }
  return true;
}

}  // namespace

bool IsPlausibleRecord(const abi::ChannelFormat& format, Bytes record) {
  if (record.size() < format.record_size) return false;
  if (format.stamp.width == 8 && format.id != abi::kChannelLp &&
      LoadUnchecked<uint64_t>(record, format.stamp.offset) > kMaxStamp) {
    return false;
  }
  switch (format.id) {
    case abi::kChannelHbm:
      return LoadUnchecked<uint32_t>(record, 16) <= 1 &&
             LoadUnchecked<uint32_t>(record, 20) < kMaxHbmId;
    case abi::kChannelDdr:
      return LoadUnchecked<uint32_t>(record, 8) <= 1 &&
             LoadUnchecked<uint32_t>(record, 12) < kMaxDdrId;
    case abi::kChannelLlc:
      return LoadUnchecked<uint32_t>(record, 20) < kMaxL3Id &&
             std::binary_search(kLlcEvents.begin(), kLlcEvents.end(),
                                LoadUnchecked<uint32_t>(record, 16));
    case abi::kChannelPcie:
      return IsPlausiblePcie(record);
    case abi::kChannelStarsSocProfile:
      return IsPlausibleSocProfile(record);
    case abi::kChannelNpuAppMem:
    case abi::kChannelNpuMem:
      return IsPlausibleNpuMem(record);
    case abi::kChannelNpuModuleMem:
      return IsPlausibleModuleMem(record);
    case abi::kChannelLp:
      return IsPlausibleLp(record);
    case abi::kChannelQos:
      return IsPlausibleQos(record);
    default:
      return true;
  }
}

uint64_t StampOf(const abi::ChannelFormat& format, Bytes record) {
  if (format.stamp.width == 8) return LoadUnchecked<uint64_t>(record, format.stamp.offset);
  if (format.stamp.width == 4) return LoadUnchecked<uint32_t>(record, format.stamp.offset);
  return 0;
}

bool StampFollows(const abi::ChannelFormat& format, uint64_t previous, uint64_t stamp) {
  if (format.stamp.width == 0 || format.thinning == abi::Thinning::kEvent) return true;
  auto step = static_cast<int64_t>(stamp - previous);
  if (format.stamp.width == 4) step = static_cast<int32_t>(static_cast<uint32_t>(step));
  return step >= -BackwardBound(format.time) && step <= ForwardBound(format.time);
}

bool IsPlainRecord(const abi::ChannelFormat& format, std::string_view line,
                   const LineShape& shape) {
  constexpr size_t kFraction = 9;
  if (shape.odd == 0) return false;
  const size_t colon = FirstBit(shape.odd);
  const size_t end = colon + 1 + kFraction;
  if (colon == 0 || colon > 12 || line[colon] != ':' || end > line.size()) return false;
  // No blank and nothing odd from the beginning to the end of the timestamp, and a blank behind it.
  const Bits128 stamp = (Bits128{1} << end) - 1;
  const Bits128 marks = shape.odd & (shape.odd - 1);
  if ((~shape.solid & stamp) != 0 || (marks & stamp) != 0 || BitAt(shape.solid, end)) return false;
  const auto words = static_cast<int>(shape.words());
  const TokenRange range = TokensOf(format);
  return words >= range.min && words <= range.max && AreNumberMarks(line, shape, marks) &&
         !HasLongWord(shape.solid);
}

bool IsPlausibleLine(const abi::ChannelFormat& format, std::string_view line) {
  std::string_view rest = line;
  if (!IsStampToken(NextToken(&rest))) return false;
  TokenRange range = TokensOf(format);
  int tokens = 1;
  int words = 0;
  for (std::string_view token = NextToken(&rest); !token.empty(); token = NextToken(&rest)) {
    if (++tokens > range.max) return false;
    if (IsNumberToken(token)) continue;
    if (!IsWordToken(token) || ++words > range.words) return false;
  }
  return tokens >= range.min;
}

}  // namespace profd
