#include "dump/stream_filter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/text.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/soc_profile.h"

namespace profd {
namespace {

using abi::Framing;
using abi::Thinning;
using abi::TimeKind;

// Where in a record the bytes of an inter-die link are.
template <class Sio>
constexpr std::array<uint16_t, 8> SioWords() {
  std::array<uint16_t, 8> words{};
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t direction = i < 4 ? offsetof(Sio, rx) : offsetof(Sio, tx);
    words[i] = static_cast<uint16_t>(sizeof(records::SocRecord::Head) + direction +
                                     i % 4 * sizeof(uint32_t));
  }
  return words;
}

// Beyond it (73 years) a timestamp is garbage; below it grid arithmetic cannot overflow.
constexpr int64_t kMaxTimestampNs = int64_t{1} << 61;
constexpr int64_t kMaxMicros = kMaxTimestampNs / 1000;

uint64_t SaturatingAdd(uint64_t a, uint64_t b, uint64_t most) {
  uint64_t sum = a + b;
  return sum < a || sum > most ? most : sum;
}

// "sec:nnnnnnnnn ..." as ns.
bool ParseTextTimestamp(std::string_view line, int64_t* ns) {
  std::string_view token = NextToken(&line);
  size_t colon = token.find(':');
  int64_t seconds = 0;
  int64_t fraction = 0;
  if (colon == std::string_view::npos || !ParseNumber(token.substr(0, colon), &seconds) ||
      !ParseNumber(token.substr(colon + 1), &fraction) || seconds < 0 || fraction < 0 ||
      fraction >= kNsPerSecond || seconds >= kMaxTimestampNs / kNsPerSecond) {
    return false;
  }
  *ns = seconds * kNsPerSecond + fraction;
  return true;
}

}  // namespace

StreamFilter::StreamFilter(const StreamFilterOptions& options) : options_(options) {
  const abi::ChannelFormat& format = *options_.format;
  bool comparable = format.time != TimeKind::kNone && format.thinning != Thinning::kEvent &&
                    (format.time != TimeKind::kDeviceCounter || options_.device_counter_hz > 0);
  if (format.id == 52) {
    for (size_t i = 0; i < soc_grids_.size(); ++i) {
      const SocRate& rate = options_.soc[i];
      if (comparable) {
        soc_grids_[i].channel_period_ns = rate.channel_period_ns;
        soc_grids_[i].session_period_ns = rate.session_period_ns;
      }
      thins_ = thins_ || !rate.wanted || soc_grids_[i].thins();
    }
  } else if (comparable) {
    grid_.channel_period_ns = options_.channel_period_ns;
    grid_.session_period_ns = options_.session_period_ns;
    thins_ = grid_.thins();
  }
  rebases_ = format.time == TimeKind::kMicrosSinceStart && options_.rebase_us != 0;
  last_micros_ = options_.channel_age_us;
  if (thins_) series_.reserve(kMaxSeries);
}

StreamFilter::Output StreamFilter::Filter(std::span<const std::byte> block_untrusted,
                                          uint64_t records) {
  if (verbatim()) {
    counters_.records_in += records;
    counters_.records_out += records;
    return {block_untrusted, records};
  }
  if (out_.size() < block_untrusted.size()) out_.resize(block_untrusted.size());
  return options_.format->framing == Framing::kText ? FilterText(block_untrusted)
                                                    : FilterBinary(block_untrusted);
}

StreamFilter::Output StreamFilter::FilterBinary(std::span<const std::byte> block) {
  const size_t size = options_.format->record_size;
  Output output;
  size_t used = 0;
  size_t offset = 0;
  for (; offset + size <= block.size(); offset += size) {
    std::memcpy(out_.data() + used, block.data() + offset, size);
    std::span<std::byte> record(out_.data() + used, size);
    ++counters_.records_in;
    if (options_.format->id == 52 ? TakeSocRecord(record) : TakeRecord(record)) {
      used += size;
      ++output.records;
    }
  }
  if (offset < block.size()) counters_.malformed_bytes += block.size() - offset;
  counters_.records_out += output.records;
  output.bytes = std::span<const std::byte>(out_.data(), used);
  return output;
}

StreamFilter::Output StreamFilter::FilterText(std::span<const std::byte> block) {
  static constexpr Counts kNoCounts;
  Output output;
  size_t used = 0;
  std::string_view rest = AsText(block);
  while (!rest.empty()) {
    std::string_view before = rest;
    std::string_view line;
    NextLine(&rest, &line);
    std::string_view whole = before.substr(0, before.size() - rest.size());
    std::string_view token = options_.format->header_token;
    bool header = !token.empty() && line.find(token) != std::string_view::npos;
    int64_t timestamp_ns = 0;
    if (!header) {
      const bool timed = whole.back() == '\n' && ParseTextTimestamp(line, &timestamp_ns);
      const bool record = timed || !options_.format->opaque;
      counters_.records_in += record ? 1 : 0;
      if (record && !timed) {
        Malformed(whole.size());
        continue;
      }
      if (record && !Decide(grid_, 0, timestamp_ns, kNoCounts, {})) continue;
      output.records += record ? 1 : 0;
    }
    std::memcpy(out_.data() + used, whole.data(), whole.size());
    used += whole.size();
  }
  counters_.records_out += output.records;
  output.bytes = std::span<const std::byte>(out_.data(), used);
  return output;
}

bool StreamFilter::TakeRecord(std::span<std::byte> record) {
  const abi::ChannelFormat& format = *options_.format;
  int64_t timestamp_ns = 0;
  if (format.time == TimeKind::kMicrosSinceStart) {
    // No instant of any session: kept as it is, as where the channel runs at the session's rate. Decoders count it as bad.
    if (records::LoadField(record, format.timestamp) > static_cast<uint64_t>(kMaxMicros)) return true;
    if (!RebaseMicros(record, &timestamp_ns)) return false;
  } else {
    const uint64_t raw = records::LoadField(record, format.timestamp);
    if (format.time == TimeKind::kDeviceCounter) {
      timestamp_ns = CyclesToNs(raw, options_.device_counter_hz);
    } else if (format.time == TimeKind::kHostCounter && options_.host_counter_hz > 0) {
      timestamp_ns = CyclesToNs(raw, options_.host_counter_hz);
    } else {
      timestamp_ns = static_cast<int64_t>(std::min(raw, static_cast<uint64_t>(kMaxTimestampNs)));
    }
  }
  if (!thins_) return true;
  uint64_t key = 0;
  std::memcpy(&key, record.data() + format.key_offset,
              std::min<size_t>(format.key_length, sizeof key));
  Counts counts;
  if (format.thinning == Thinning::kSum) {
    counts.offset[0] = format.count.offset;
    counts.width = format.count.width;
    counts.size = 1;
  }
  return Decide(grid_, key, timestamp_ns, counts, record);
}

bool StreamFilter::TakeSocRecord(std::span<std::byte> record) {
  const auto soc = records::Read<records::SocRecord>(record);
  if (soc.magic() != abi::kSocProfileMagic) {
    Malformed(record.size());
    return false;
  }
  const uint8_t type = soc.type();
  size_t index = size_t{type} - StreamFilterOptions::kFirstSocType;
  if (type < StreamFilterOptions::kFirstSocType || index >= soc_grids_.size()) return true;
  if (!options_.soc[index].wanted) {
    ++counters_.thinned;
    return false;
  }
  Grid& grid = soc_grids_[index];
  if (!grid.thins()) return true;
  const bool is_950 = abi::Is950Class(options_.chip_id);
  Counts counts;
  if (type == static_cast<uint8_t>(abi::SocProfileType::kSio)) {
    static constexpr auto kWords = SioWords<records::SocSio>();
    static constexpr auto kWords950 = SioWords<records::SocSioV6>();
    counts.offset = is_950 ? kWords950 : kWords;
    counts.size = kSumWords;
  }
  int64_t timestamp_ns = CyclesToNs(soc.timestamp(), options_.device_counter_hz);
  return Decide(grid, soc.SeriesKey(is_950), timestamp_ns, counts, record);
}

bool StreamFilter::Decide(Grid& grid, uint64_t key, int64_t timestamp_ns, const Counts& counts,
                          std::span<std::byte> record) {
  Series* series = FindSeries(key);
  if (!series) return true;
  bool keep = IsDue(grid, *series, timestamp_ns);
  const uint64_t most = counts.width == 4 ? std::numeric_limits<uint32_t>::max()
                                          : std::numeric_limits<uint64_t>::max();
  for (size_t i = 0; i < counts.size; ++i) {
    const abi::Field field{counts.offset[i], counts.width};
    uint64_t sum = SaturatingAdd(series->sum[i], records::LoadField(record, field), most);
    series->sum[i] = keep ? 0 : sum;
    if (keep) records::StoreField(record, field, sum);
  }
  if (!keep) ++counters_.thinned;
  return keep;
}

bool StreamFilter::IsDue(Grid& grid, Series& series, int64_t timestamp_ns) {
  const int64_t period = grid.session_period_ns;
  const int64_t half_step = grid.channel_period_ns / 2;
  if (!grid.anchored) {
    grid.origin_ns = timestamp_ns;
    grid.anchored = true;
  }
  // Records of one instant share its fate even if their timestamps differ a little.
  if (series.kept && timestamp_ns >= series.kept_ns &&
      timestamp_ns - series.kept_ns < grid.channel_period_ns / 4) {
    return true;
  }
  // The clock went back, or a garbage timestamp had sent the series far ahead.
  if (series.started && timestamp_ns < series.due_ns - 2 * period) series.started = false;
  if (!series.started) {
    if (timestamp_ns < grid.origin_ns) grid.origin_ns = timestamp_ns;
    // The first point of the grid for which this record may still be the nearest.
    int64_t ahead = timestamp_ns - half_step - grid.origin_ns;
    int64_t index = ahead <= 0 ? 0 : (ahead + period - 1) / period;
    series.due_ns = grid.origin_ns + index * period;
    series.started = true;
  }
  if (timestamp_ns < series.due_ns - half_step) return false;
  int64_t index = (timestamp_ns - grid.origin_ns + period / 2) / period;
  series.due_ns = std::max(series.due_ns + period, grid.origin_ns + (index + 1) * period);
  series.kept = true;
  series.kept_ns = timestamp_ns;
  return true;
}

bool StreamFilter::RebaseMicros(std::span<std::byte> record, int64_t* timestamp_ns) {
  const abi::Field& field = options_.format->timestamp;
  int64_t micros = 0;
  if (field.width == 4) {
    // The nearest instant that shows these 32 bits.
    auto raw = static_cast<uint32_t>(records::LoadField(record, field));
    micros = last_micros_ + static_cast<int32_t>(raw - static_cast<uint32_t>(last_micros_));
    if (micros < 0) micros = raw;
    last_micros_ = micros;
  } else {
    micros = static_cast<int64_t>(records::LoadField(record, field));
  }
  micros += options_.rebase_us;
  if (micros < 0) {
    ++counters_.before_start;
    return false;
  }
  // A 32-bit timestamp wraps as the driver's own would.
  records::StoreField(record, field, static_cast<uint64_t>(micros));
  *timestamp_ns = std::min(micros, kMaxMicros) * 1000;
  return true;
}

void StreamFilter::Malformed(size_t bytes) {
  ++counters_.malformed;
  counters_.malformed_bytes += bytes;
}

StreamFilter::Series* StreamFilter::FindSeries(uint64_t key) {
  for (Series& series : series_) {
    if (series.key == key) return &series;
  }
  if (series_.size() == kMaxSeries) return nullptr;
  series_.emplace_back();
  series_.back().key = key;
  return &series_.back();
}

int64_t StreamFilter::CyclesToNs(uint64_t cycles, double hz) {
  // Relative to the first one, so that double keeps every ns for as long as a channel runs.
  if (!has_first_cycles_) {
    has_first_cycles_ = true;
    first_cycles_ = cycles;
  }
  double ns = static_cast<double>(static_cast<int64_t>(cycles - first_cycles_)) * 1e9 / hz;
  constexpr auto kMost = static_cast<double>(kMaxTimestampNs);
  return static_cast<int64_t>(std::clamp(ns, -kMost, kMost));
}

}  // namespace profd
