#include "export/control_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"

namespace profd::exporting {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxList = 4096;

std::string TextOf(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  auto it = object.find(key);
  if (it == object.end()) return {};
  if (it->is_string()) return it->get<std::string>();
  if (it->is_number_integer()) return std::to_string(it->get<int64_t>());
  if (it->is_number()) return std::to_string(it->get<double>());
  return {};
}

template <class T>
std::optional<T> NumberIn(std::string_view text) {
  T value{};
  if (!ParseNumber(Trim(text), &value)) return std::nullopt;
  return value;
}

std::optional<int64_t> IntOf(const Json& object, const char* key) {
  return NumberIn<int64_t>(TextOf(object, key));
}

std::optional<double> Positive(std::string_view text) {
  auto value = NumberIn<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0) return std::nullopt;
  return value;
}

std::optional<double> RealOf(const Json& object, const char* key) { return Positive(TextOf(object, key)); }

std::vector<std::string_view> Items(std::string_view list) {
  std::vector<std::string_view> items;
  for (std::string_view part; items.size() < kMaxList && NextPart(&list, ',', &part);) {
    if (const std::string_view item = Trim(part); !item.empty()) items.push_back(item);
  }
  return items;
}

std::vector<int> Ints(std::string_view list) {
  std::vector<int> values;
  for (std::string_view item : Items(list)) {
    if (auto value = NumberIn<int>(item)) values.push_back(*value);
  }
  return values;
}

std::vector<uint32_t> Events(std::string_view list) {
  std::vector<uint32_t> values;
  for (std::string_view item : Items(list)) {
    int base = 10;
    if (item.starts_with("0x") || item.starts_with("0X")) {
      item.remove_prefix(2);
      base = 16;
    }
    uint32_t value = 0;
    auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value, base);
    if (error == std::errc() && end == item.data() + item.size()) values.push_back(value);
  }
  return values;
}

// `key: value` lines; others are left out.
std::optional<int64_t> LineValue(std::string_view text, std::string_view key) {
  std::string_view line;
  while (NextLine(&text, &line)) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos || Trim(line.substr(0, colon)) != key) continue;
    std::string_view value = Trim(line.substr(colon + 1));
    if (auto number = NumberIn<int64_t>(value)) return number;
    // A counter may use all 64 bits.
    if (auto number = NumberIn<uint64_t>(value)) return static_cast<int64_t>(*number);
  }
  return std::nullopt;
}

void DeviceInfo(const Json& info, Place* place, std::string* missing) {
  auto list = info.find("DeviceInfo");
  if (list == info.end() || !list->is_array() || list->empty()) {
    *missing += " DeviceInfo";
    return;
  }
  const Json& device = list->front();
  if (auto mhz = RealOf(device, "hwts_frequency")) {
    place->clock.device_hz = *mhz * 1e6;
  } else {
    *missing += " hwts_frequency";
  }
  place->ai_cores = IntOf(device, "ai_core_num").value_or(0);
  place->aiv_cores = IntOf(device, "aiv_num").value_or(0);
  if (auto mhz = RealOf(device, "aic_frequency"); mhz && *mhz < 1e6) {
    place->aicore_mhz = static_cast<int64_t>(*mhz);
  }
  place->ctrl_cpus = Ints(TextOf(device, "ctrl_cpu"));
  place->ai_cpus = Ints(TextOf(device, "ai_cpu"));
}

void NodeInfo(const Json& info, DumpInfo* dump) {
  if (dump->hostname.empty()) dump->hostname = TextOf(info, "hostname");
  if (dump->pid == 0) dump->pid = IntOf(info, "pid").value_or(0);
  if (dump->job_id.empty()) dump->job_id = TextOf(info, "jobInfo");
  auto rank = IntOf(info, "rank_id");
  if (!dump->rank && rank && *rank >= 0 && *rank <= INT32_MAX) {
    dump->rank = static_cast<int>(*rank);
  }
  if (dump->memory_total_kb == 0) dump->memory_total_kb = IntOf(info, "memoryTotal").value_or(0);
  if (dump->cpu_count == 0) dump->cpu_count = IntOf(info, "cpuNums").value_or(0);
  if (auto hz = IntOf(info, "sysClockFreq"); hz && *hz > 0) dump->clock_ticks_hz = *hz;
  auto cards = info.find("netCard");
  if (!dump->cards.empty() || cards == info.end() || !cards->is_array()) return;
  for (const Json& card : *cards) {
    std::string name = TextOf(card, "netCardName");
    if (name.empty() || dump->cards.size() >= kMaxList) continue;
    dump->cards.push_back({name, IntOf(card, "speed").value_or(0)});
  }
}

}  // namespace

void ControlReader::Broken(const std::string& path, std::string what) {
  problems->push_back({path, std::move(what), true});
}

void ControlReader::InfoJson(const std::string& path, std::string_view text) {
  Json info = Json::parse(text, nullptr, false);
  if (!info.is_object()) return Broken(path, "is not a JSON object");
  std::string missing;
  if (auto chip = IntOf(info, "platform_version"); chip && *chip >= 0 && *chip < 64) {
    place->chip = static_cast<int>(*chip);
  } else {
    missing += " platform_version";
  }
  place->record_version = TextOf(info, "version");
  if (auto cpus = info.find("CPU"); cpus != info.end() && cpus->is_array() && !cpus->empty()) {
    HostFrequency(path, TextOf(cpus->front(), "Frequency"));
  } else {
    missing += " CPU";
  }
  if (place->kind == Place::Kind::kDevice) DeviceInfo(info, place, &missing);
  NodeInfo(info, dump);
  if (!missing.empty()) Broken(path, "lacks" + missing);
}

void ControlReader::HostFrequency(const std::string& path, std::string_view text) {
  const std::optional<double> mhz = Positive(text);
  // Empty, or the driver's answer 0: timestamps of the host are ns already.
  if (!mhz && !text.empty() && NumberIn<double>(text) != 0) return Broken(path, fmt::format("the CPU's Frequency \"{:.32}\" is no frequency", text));
  place->has_cpu = true;
  place->clock.host_hz = mhz.value_or(0) * 1e6;
}

void ControlReader::SampleJson(const std::string& path, std::string_view text) {
  place->has_sample = true;
  Json sample = Json::parse(text, nullptr, false);
  if (!sample.is_object()) return Broken(path, "is not a JSON object");
  if (std::string mode = TextOf(sample, "llc_profiling"); !mode.empty()) place->llc_mode = mode;
  const std::string streams = TextOf(sample, "qosEvents");
  for (std::string_view item : Items(streams)) place->qos_events.emplace_back(item);
  place->host_disk_hz = RealOf(sample, "host_disk_freq").value_or(0);
  place->aicore_mode = TextOf(sample, "ai_core_profiling_mode");
  place->aiv_mode = TextOf(sample, "aiv_profiling_mode");
  place->prof_level = TextOf(sample, "profLevel");
  if (place->prof_level.empty()) place->prof_level = TextOf(sample, "prof_level");
  place->aicore_metrics = TextOf(sample, "ai_core_metrics");
  place->aicore_events = Events(TextOf(sample, "ai_core_profiling_events"));
  place->aiv_metrics = TextOf(sample, "aiv_metrics");
  place->aiv_events = Events(TextOf(sample, "aiv_profiling_events"));
  place->l2_events = Events(TextOf(sample, "l2CacheTaskProfilingEvents"));
}

void ControlReader::StartInfo(const std::string& path, std::string_view text) {
  Json info = Json::parse(text, nullptr, false);
  auto begin = IntOf(info, "collectionTimeBegin");
  auto raw = IntOf(info, "clockMonotonicRaw");
  if (!begin || !raw || *begin <= 0 || *raw < 0) {
    return Broken(path, "lacks collectionTimeBegin or clockMonotonicRaw");
  }
  place->clock.begin_us = *begin;
  place->clock.begin_raw_ns = *raw;
}

void ControlReader::EndInfo(const std::string& path, std::string_view text) {
  Json info = Json::parse(text, nullptr, false);
  auto end = IntOf(info, "collectionTimeEnd");
  auto raw = IntOf(info, "clockMonotonicRaw");
  if (!end || !raw || *end <= 0 || *raw < 0) {
    return Broken(path, "lacks collectionTimeEnd or clockMonotonicRaw");
  }
  place->clock.end_us = *end;
  place->clock.end_raw_ns = *raw;
}

void ControlReader::HostStart(const std::string& path, std::string_view text) {
  auto raw = LineValue(text, "clock_monotonic_raw");
  auto count = LineValue(text, "cntvct");
  if (!raw || !count) return Broken(path, "lacks clock_monotonic_raw or cntvct");
  place->clock.host_ns = *raw;
  place->clock.host_count = static_cast<uint64_t>(*count);
  place->clock.host_count_diff =
      static_cast<uint64_t>(std::max<int64_t>(LineValue(text, "cntvct_diff").value_or(0), 0));
}

void ControlReader::DevStart(const std::string& path, std::string_view text) {
  auto raw = LineValue(text, "clock_monotonic_raw");
  auto count = LineValue(text, "cntvct");
  if (!raw || !count) return Broken(path, "lacks clock_monotonic_raw or cntvct");
  place->clock.device_ns = *raw;
  place->clock.device_count = static_cast<uint64_t>(*count);
}

}  // namespace profd::exporting
