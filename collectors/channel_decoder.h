// What the decoders of all channels share: walking records or lines, bounded tables of ids found
// in records, and knowing when all records of one instant have arrived. The hot paths allocate
// nothing.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/line_shape.h"
#include "base/text.h"
#include "collectors/record_timestamp.h"
#include "collectors/collector.h"
#include "driver/records/record.h"

namespace profd {

constexpr double kMebi = 1048576;  // what the driver's MB and Mb are of

// `Record`: of driver/records. Derived: `bool DecodeRecord(const Record&, const TimeBase&, SampleBatch&)`;
// false = the record makes no sense (or its interval cannot be used) and is counted as bad.
template <class Derived, class Record>
class BinaryDecoder : public ChannelDecoder {
 public:
  void Decode(std::span<const std::byte> records_untrusted, const TimeBase& time,
              SampleBatch& out) final {
    constexpr size_t kRecordSize = records::SizeOf<Record>();
    while (records_untrusted.size() >= kRecordSize) {
      ++records_;
      if (!static_cast<Derived*>(this)->DecodeRecord(records::Read<Record>(records_untrusted), time,
                                                     out)) {
        ++bad_records_;
      }
      records_untrusted = records_untrusted.subspan(kRecordSize);
    }
    if (!records_untrusted.empty()) CountTruncated();
  }

 private:
  void CountTruncated() {
    ++records_;
    ++bad_records_;
  }
};

// One line cut into blank-separated tokens; one with more than any channel has fits no count.
class LineTokens {
 public:
  static constexpr size_t kMax = 20;
  explicit LineTokens(std::string_view line) : line_(line) {
    std::string_view rest = line;
    for (std::string_view token = NextToken(&rest); !token.empty(); token = NextToken(&rest)) {
      if (count_ == kMax) {
        count_ = kMax + 1;  // too many: no expected count matches
        return;
      }
      const auto begin = static_cast<size_t>(token.data() - line.data());
      edges_[2 * count_] = static_cast<uint32_t>(begin);
      edges_[2 * count_ + 1] = static_cast<uint32_t>(begin + token.size());
      ++count_;
    }
  }
  // The same, of a line whose shape is known; as fast as it gets.
  LineTokens(std::string_view line, const LineShape& shape) : line_(line) {
    // A word begins or ends where its bit differs from the one before.
    const Bits128 edges = shape.solid ^ (shape.solid << 1);
    size_t at = 0;
    for (auto low = static_cast<uint64_t>(edges); low != 0; low &= low - 1) {
      edges_[at++] = static_cast<uint32_t>(std::countr_zero(low));
    }
    for (auto high = static_cast<uint64_t>(edges >> 64); high != 0; high &= high - 1) {
      edges_[at++] = static_cast<uint32_t>(64 + std::countr_zero(high));
    }
    count_ = std::min(at / 2, kMax + 1);
  }
  size_t size() const { return count_; }
  std::string_view operator[](size_t i) const {
    if (i >= kMax || i >= count_) return "";
    return line_.substr(edges_[2 * i], edges_[2 * i + 1] - edges_[2 * i]);
  }
  // Counters and ids: digits only.
  [[nodiscard]] bool Get(size_t i, uint64_t* out) const {
    if (i >= count_ || i >= kMax) return false;
    return ParseDigitsWithin(line_.data(), edges_[2 * i], edges_[2 * i + 1], out) ||
           ParseNumber((*this)[i], out);
  }
  // Gauges: finite, not negative.
  [[nodiscard]] bool Get(size_t i, double* out) const { return GetGauge(i, 0, out); }
  // The same, with or without a percent sign at its end.
  [[nodiscard]] bool GetPercent(size_t i, double* out) const {
    if (i >= count_ || i >= kMax) return false;
    return GetGauge(i, line_[edges_[2 * i + 1] - 1] == '%' ? 1 : 0, out);
  }
  // "sec:ns", as TimestampFromText.
  [[nodiscard]] std::optional<Timestamp> GetTimestamp(size_t i, const TimeBase& time) const {
    const std::string_view text = (*this)[i];
    constexpr size_t kFraction = 9;
    uint64_t seconds = 0;
    uint64_t ns = 0;
    const size_t colon = text.size() - kFraction - 1;
    if (text.size() <= kFraction + 1 || text[colon] != ':' ||
        !ParseDigitsAhead(text.data(), colon, &seconds) ||
        !ParseDigitsWithin(text.data(), colon + 1, text.size(), &ns)) {
      return TimestampFromText(text, time);
    }
    return TimestampFromSeconds(seconds, ns, time);
  }

 private:
  // Without its last `suffix` characters.
  bool GetGauge(size_t i, size_t suffix, double* out) const {
    if (i >= count_ || i >= kMax) return false;
    const size_t begin = edges_[2 * i];
    const size_t end = edges_[2 * i + 1] - suffix;
    uint64_t whole = 0;
    // Up to 16 digits: the nearest double, as from_chars would find it.
    if (ParseDigitsWithin(line_.data(), begin, end, &whole)) {
      *out = static_cast<double>(whole);
      return true;
    }
    return ParseNumber(line_.substr(begin, end - begin), out) && std::isfinite(*out) && *out >= 0;
  }

  std::string_view line_;
  // Begin and end of each; as many as a shape can have.
  std::array<uint32_t, LineShape::kMaxSize + 1> edges_;
  size_t count_ = 0;
};

// Derived: `bool DecodeLine(const LineTokens&, const TimeBase&, SampleBatch&)`, as above. Header
// lines (those containing the channel's header token) and blank lines are not records.
template <class Derived>
class TextDecoder : public ChannelDecoder {
 public:
  explicit TextDecoder(std::string_view header_token) : header_token_(header_token) {}
  void Decode(std::span<const std::byte> records_untrusted, const TimeBase& time,
              SampleBatch& out) final {
    std::string_view text = AsText(records_untrusted);
    LineShape shape;
    while (!text.empty()) {
      // Records begin with their timestamp, headers with a word.
      if (text[0] < '0' || text[0] > '9' || !ScanLine(text, &shape)) {
        DecodeAnyLine(&text, time, out);
        continue;
      }
      ++records_;
      const LineTokens tokens(text.substr(0, shape.size), shape);
      if (!static_cast<Derived*>(this)->DecodeLine(tokens, time, out)) ++bad_records_;
      text.remove_prefix(shape.size + 1);
    }
  }

 private:
  void DecodeAnyLine(std::string_view* text, const TimeBase& time, SampleBatch& out) {
    // A line without its end may be half a number: better none than a wrong one.
    const size_t before = text->size();
    std::string_view line;
    if (!NextLine(text, &line)) return;
    bool complete = before - text->size() > line.size();
    bool may_be_header = line.empty() || line[0] < '0' || line[0] > '9';
    if (may_be_header &&
        (line.find(header_token_) != std::string_view::npos || Trim(line).empty())) {
      return;
    }
    ++records_;
    if (!complete || !static_cast<Derived*>(this)->DecodeLine(LineTokens(line), time, out)) {
      ++bad_records_;
    }
  }

  std::string_view header_token_;
};

// More than any memory moves. Only a damaged record has more, and it must not spoil a sum permanently.
inline constexpr double kMaxPlausibleBytesPerSecond = 1e14;

// State per id found in records. An id costs series, so only the first kMaxIds are taken; a flood
// of others is refused (null) and grows nothing.
template <class State>
class IdTable {
 public:
  static constexpr size_t kMaxIds = 64;
  IdTable() {
    keys_.reserve(kMaxIds);
    states_.reserve(kMaxIds);
  }
  State* Find(uint64_t key) {
    // Ids come in the same order each time: most often it is the one behind the last.
    if (++last_ >= keys_.size()) last_ = 0;
    if (last_ < keys_.size() && keys_[last_] == key) return &states_[last_];
    for (size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i] != key) continue;
      last_ = i;
      return &states_[i];
    }
    return nullptr;
  }
  // `make()` gives the state of an id seen for the first time. Pointers stay valid.
  template <class Make>
  State* FindOrAdd(uint64_t key, Make make) {
    if (State* known = Find(key)) return known;
    if (keys_.size() == kMaxIds) return nullptr;
    keys_.push_back(key);
    states_.push_back(make());
    return &states_.back();
  }
  std::span<State> states() { return states_; }

 private:
  std::vector<uint64_t> keys_;
  std::vector<State> states_;
  size_t last_ = 0;  // found by the last call
};

// Determines when the records of one instant are complete, so that a device's total can be emitted. The
// instant is complete when as many parts have arrived as the previous one had, or when a record of
// another instant arrives; the first one only by the latter.
class InstantGroup {
 public:
  // Before adding a part taken at `source_ns`: true = the open instant ended without being complete
  // by count, and must be closed now.
  bool Begin(int64_t source_ns) {
    if (parts_ > 0 && source_ns == now_ns_) return false;
    bool unfinished = parts_ > 0 && !emitted_;
    if (parts_ > 0) expected_ = parts_;
    now_ns_ = source_ns;
    parts_ = 0;
    emitted_ = false;
    return unfinished;
  }
  // After adding it: true = that was the last one, close now.
  bool Add() {
    ++parts_;
    if (emitted_ || parts_ != expected_) return false;
    emitted_ = true;
    return true;
  }
  // How many parts the open instant has; 0 right after Begin opened it.
  size_t parts() const { return parts_; }
  void Reset() { *this = {}; }

 private:
  int64_t now_ns_ = 0;
  size_t parts_ = 0;
  size_t expected_ = 0;
  bool emitted_ = false;
};

// make_decoder of a collector whose channels all have the same decoder, made of the device or its id.
template <class Decoder>
std::unique_ptr<ChannelDecoder> MakeDecoderOf(const DeviceInfo& device, uint32_t, SeriesRegistry& registry) {
  if constexpr (std::is_constructible_v<Decoder, const DeviceInfo&, SeriesRegistry&>) {
    return std::make_unique<Decoder>(device, registry);
  } else {
    return std::make_unique<Decoder>(device.id, registry);
  }
}

}  // namespace profd
