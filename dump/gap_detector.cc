#include "dump/gap_detector.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "driver/records/soc_profile.h"

namespace profd {
namespace {

constexpr int64_t kNoTimestamp = std::numeric_limits<int64_t>::min();
// Fewer do not show a period.
constexpr size_t kFewestSteps = 3;
// Far beyond any clock, and far from overflowing when two are subtracted.
constexpr int64_t kMaxTimestampNs = int64_t{1} << 61;

// "sec:nnnnnnnnn" at the beginning of a line; kNoTimestamp if there is none. `*size` is the timestamp's.
int64_t TextTimestamp(std::string_view line, size_t* size) {
  int64_t seconds = 0;
  int64_t ns = 0;
  const char* end = line.data() + line.size();
  auto first = std::from_chars(line.data(), end, seconds);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') return kNoTimestamp;
  auto second = std::from_chars(first.ptr + 1, end, ns);
  if (second.ec != std::errc() || ns < 0 || ns >= 1'000'000'000) return kNoTimestamp;
  if (seconds < 0 || seconds >= kMaxTimestampNs / 1'000'000'000) return kNoTimestamp;
  *size = static_cast<size_t>(second.ptr - line.data());
  return seconds * 1'000'000'000 + ns;
}

int64_t CyclesToNs(uint64_t cycles, uint64_t origin, double hz) {
  if (hz <= 0) return kNoTimestamp;
  double ns = static_cast<double>(static_cast<int64_t>(cycles - origin)) * 1e9 / hz;
  constexpr auto kMost = static_cast<double>(kMaxTimestampNs);
  return static_cast<int64_t>(std::clamp(ns, -kMost, kMost));
}

// Where the tokens of a line begin that say which of several it is, of one instant; how many they are.
// driver-abi 3.6: lines of NIC and RoCE end in the port, those of DVPP begin with the engine.
std::string_view LineKey(const abi::ChannelFormat& format, uint32_t chip_id, std::string_view line) {
  size_t first = 0;
  size_t count = 0;
  if (format.header_token == "engine_type") {
    first = 1;
    count = abi::HasDvppId(chip_id) ? 3 : 2;
  } else if (format.header_token == "rxPacket/s") {
    first = 14;
    count = 1;
  } else {
    return {};
  }
  auto skip = [&line](size_t from, size_t tokens) {
    for (; tokens > 0 && from < line.size(); ++from) tokens -= line[from] == ' ' ? 1 : 0;
    return from;
  };
  const size_t begin = skip(0, first);
  return line.substr(begin, skip(begin, count) - begin);
}

uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) {
    if (c != ' ' && c != '\r') hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

bool HasTimestamps(const abi::ChannelFormat* format) {
  return format != nullptr && (format->framing == abi::Framing::kText || format->timestamp.width != 0);
}

// Grid and timestamps are of different clocks, which run up to 500 ppm apart (NTP slews no faster): by so
// many parts of a period the grid is let run behind, per period.
constexpr int64_t kDriftPart = 2000;
// So a sample may seem to be a little before its point.
constexpr int64_t kEarlyPart = 200;

uint64_t Steps(int64_t dt, int64_t period) {
  return static_cast<uint64_t>((dt + period / 2) / period);
}

}  // namespace

GapDetector::GapDetector(const Options& options, OnGap on_gap)
    : options_(options), on_gap_(std::move(on_gap)) {}

void GapDetector::Feed(std::span<const std::byte> bytes) {
  if (!HasTimestamps(options_.format)) {
    if (options_.format != nullptr) records_ += bytes.size() / options_.format->record_size;
    return;
  }
  if (options_.format->framing == abi::Framing::kText) {
    FeedText(bytes);
  } else {
    FeedBinary(bytes);
  }
}

void GapDetector::FeedBinary(std::span<const std::byte> bytes) {
  const size_t size = options_.format->record_size;
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    const std::byte* record = bytes.data() + at;
    ++records_;
    int64_t timestamp = TimestampOf(record);
    if (timestamp == kNoTimestamp) {
      ++unreadable_;
    } else {
      Take(KeyOf(record), timestamp);
    }
  }
}

void GapDetector::FeedText(std::span<const std::byte> bytes) {
  std::string_view text = AsText(bytes);
  std::string_view timestamped;  // the last timestamp as text, with the character that ends it
  int64_t timestamp = kNoTimestamp;
  for (std::string_view line; NextLine(&text, &line);) {
    // A header, or nothing.
    if (line.empty() || line[0] < '0' || line[0] > '9') continue;
    if (timestamped.empty() || !line.starts_with(timestamped)) {
      size_t size = 0;
      timestamp = TextTimestamp(line, &size);
      timestamped = size > 0 && size < line.size() ? line.substr(0, size + 1) : std::string_view();
    }
    if (timestamp == kNoTimestamp && options_.format->opaque) continue;  // no record
    ++records_;
    if (timestamp == kNoTimestamp) {
      ++unreadable_;
    } else {
      Take(HashOf(LineKey(*options_.format, options_.chip_id, line)), timestamp);
    }
  }
}

uint64_t GapDetector::KeyOf(const std::byte* record) const {
  const abi::ChannelFormat& format = *options_.format;
  if (format.id == abi::kSocProfileChannel) {
    return records::Read<records::SocRecord>({record, format.record_size})
        .SeriesKey(abi::Is950Class(options_.chip_id));
  }
  uint64_t key = 0;
  std::memcpy(&key, record + format.key_offset, std::min<size_t>(format.key_length, sizeof key));
  return key;
}

int64_t GapDetector::TimestampOf(const std::byte* record) {
  const abi::ChannelFormat& format = *options_.format;
  std::span<const std::byte> bytes(record, format.record_size);
  if (format.id == abi::kSocProfileChannel &&
      records::Read<records::SocRecord>(bytes).magic() != abi::kSocProfileMagic) {
    return kNoTimestamp;
  }
  const uint64_t raw = records::LoadField(bytes, format.timestamp);
  switch (format.time) {
    case abi::TimeKind::kMicrosSinceStart:
      if (format.timestamp.width == 4) {
        // The nearest instant that shows these 32 bits.
        int64_t micros = static_cast<int64_t>(raw);
        if (has_micros_) {
          micros = last_micros_ + static_cast<int32_t>(static_cast<uint32_t>(raw) -
                                                       static_cast<uint32_t>(last_micros_));
        }
        has_micros_ = true;
        last_micros_ = micros;
        return micros * 1000;
      }
      return raw > static_cast<uint64_t>(kMaxTimestampNs / 1000) ? kNoTimestamp
                                                             : static_cast<int64_t>(raw) * 1000;
    case abi::TimeKind::kDeviceCounter:
      return CyclesToNs(raw, options_.origin_count, options_.device_counter_hz);
    case abi::TimeKind::kHostCounter:
      if (options_.host_counter_hz > 0) {
        return CyclesToNs(raw, options_.origin_count, options_.host_counter_hz);
      }
      break;
    default:
      break;
  }
  return raw > static_cast<uint64_t>(kMaxTimestampNs) ? kNoTimestamp : static_cast<int64_t>(raw);
}

void GapDetector::Take(uint64_t key, int64_t timestamp_ns) {
  if (!has_first_) first_ns_ = last_ns_ = timestamp_ns;
  has_first_ = true;
  first_ns_ = std::min(first_ns_, timestamp_ns);
  last_ns_ = std::max(last_ns_, timestamp_ns);
  while (!in_last_run() && timestamp_ns >= options_.runs_ns[run_]) BeginRun();
  Series* found = SeriesOf(key);
  if (found == nullptr) return;
  Series& series = *found;
  const bool has_last = std::exchange(series.has_last, true);
  const int64_t last = std::exchange(series.last_ns, timestamp_ns);
  if (!has_last) return;
  if (timestamp_ns < last) {
    ++backwards_;
    series.point_ns = -1;
    // The timestamp before was the odd one, if it seemed to come after a gap.
    if (series.pending.to_ns == last) series.pending = {};
    if (series.learned > 0 && series.steps[series.learned - 1].to_ns == last) --series.learned;
    return;
  }
  // Several lines of one instant.
  if (timestamp_ns == last) return;
  Step(series, {last, timestamp_ns, 0});
}

// What is missing between two runs is judged by the rate of the second.
void GapDetector::BeginRun() {
  for (auto& [key, series] : series_) {
    // Fewer steps say nothing about the rate of their run.
    if (series.period_ns == 0 && series.learned >= kFewestSteps) Learn(series);
    Report(std::exchange(series.pending, {}));
    if (series.period_ns > 0) series.period_ns = 0;
    series.learned = 0;
  }
  ++run_;
}

// Records of several series come in the same order each time, so the next one is most often known.
GapDetector::Series* GapDetector::SeriesOf(uint64_t key) {
  Series* guess = latest_ != nullptr ? latest_->next : nullptr;
  if (guess != nullptr && guess->key == key) return latest_ = guess;
  auto it = series_.find(key);
  if (it == series_.end()) {
    if (series_.size() >= kMaxSeries) return nullptr;
    it = series_.emplace(key, Series{}).first;
    it->second.key = key;
    if (options_.format != nullptr && options_.format->thinning == abi::Thinning::kEvent) {
      it->second.period_ns = -1;
    }
  }
  if (latest_ != nullptr) latest_->next = &it->second;
  return latest_ = &it->second;
}

void GapDetector::Step(Series& series, const Gap& step) {
  if (series.period_ns < 0) return;
  if (series.period_ns > 0) {
    Judge(series, step);
    return;
  }
  series.steps[series.learned++] = step;
  if (series.learned == kLearn) Learn(series);
}

// The median step, when most steps are like it; else what the caller knows.
void GapDetector::Learn(Series& series) {
  const size_t count = std::exchange(series.learned, 0);
  int64_t period = options_.period_ns;
  const bool known = period > 0 && options_.source_period_ns > 0 && in_last_run();
  if (count >= kFewestSteps && !known) {
    std::array<int64_t, kLearn> sorted = {};
    for (size_t i = 0; i < count; ++i) sorted[i] = series.steps[i].to_ns - series.steps[i].from_ns;
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(count);
    std::sort(sorted.begin(), end);
    const int64_t median = sorted[count / 2];
    auto alike = std::count_if(sorted.begin(), end, [median](int64_t dt) {
      return std::abs(dt - median) <= median / 4;
    });
    if (static_cast<size_t>(alike) * 4 >= count * 3) period = std::max<int64_t>(median, 1);
  }
  // Too few to say; more may come.
  if (period == 0 && count < kLearn) return;
  series.on_grid = options_.polled && options_.period_ns > 0 &&
                   std::abs(period - options_.period_ns) <= options_.period_ns / 10;
  if (series.on_grid) period = options_.period_ns;
  series.period_ns = period > 0 ? period : -1;
  if (series.period_ns < 0) return;
  const auto steps = series.steps;
  for (size_t i = 0; i < count; ++i) Judge(series, steps[i]);
}

// The poller serves each point of its grid once, at or after its time, and none it is late for by a
// period: so a sample belongs to the last point before it, or, being late for an earlier one, stands for
// it. The grid is as early as its most punctual sample, and follows a clock that runs away from it.
void GapDetector::JudgeOnGrid(Series& series, const Gap& step) {
  const int64_t period = series.period_ns;
  if (series.point_ns < 0) series.point_ns = step.from_ns;
  series.point_ns += period / kDriftPart;
  const int64_t since = step.to_ns - series.point_ns;
  const int64_t steps = (since + period / kEarlyPart) / period;
  Gap before = std::exchange(series.pending, {});
  // Two samples at one point: the one before was not early for it, but late for the point before.
  const bool was_late = steps == 0 && before.missing > 0 && series.in_doubt;
  if (was_late) --before.missing;
  Report(before);
  series.point_ns += std::max<int64_t>(steps, was_late ? 0 : 1) * period;
  series.point_ns = std::min(series.point_ns, step.to_ns);
  if (steps < 2) return;
  series.pending = {step.from_ns, step.to_ns, static_cast<uint64_t>(steps - 1)};
  series.in_doubt = since < steps * period;
}

void GapDetector::Judge(Series& series, const Gap& step) {
  if (series.on_grid) {
    JudgeOnGrid(series, step);
    return;
  }
  const int64_t period = series.period_ns;
  const int64_t dt = step.to_ns - step.from_ns;
  const int64_t source = options_.source_period_ns;
  // One period, as nearly as there were records.
  const bool one = dt + period / 2 < 2 * period || (source > 0 && dt <= period + source + source / 2);
  // Nothing to decide.
  if (series.pending.missing == 0 && one) return;
  if (series.pending.missing > 0) {
    Gap gap = std::exchange(series.pending, {});
    if (gap.to_ns == step.from_ns) {
      const uint64_t both = Steps(step.to_ns - gap.from_ns, period);
      const uint64_t here = std::max<uint64_t>(Steps(dt, period), 1);
      gap.missing = std::min(gap.missing, both > here ? both - here - 1 : 0);
    }
    Report(gap);
  }
  if (!one) series.pending = {step.from_ns, step.to_ns, Steps(dt, period) - 1};
}

void GapDetector::Report(const Gap& gap) {
  if (gap.missing == 0) return;
  missing_ += gap.missing;
  if (on_gap_) on_gap_(gap);
}

void GapDetector::Resync() {
  Finish();
  for (auto& [key, series] : series_) {
    series.has_last = false;
    series.point_ns = -1;
  }
  has_micros_ = false;
}

void GapDetector::Restart(int64_t period_ns) {
  Finish();
  series_.clear();
  latest_ = nullptr;
  has_micros_ = false;
  options_.period_ns = period_ns;
}

void GapDetector::Finish() {
  for (auto& [key, series] : series_) {
    if (series.period_ns == 0 && series.learned > 0) Learn(series);
    Report(std::exchange(series.pending, {}));
  }
}

}  // namespace profd
