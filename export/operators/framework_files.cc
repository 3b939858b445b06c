#include "export/operators/framework_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "dump/dump_io.h"

namespace profd::exporting::operators {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMostInfoBytes = 4u << 20;

std::optional<FrameworkFiles::Timestamps> TimestampsIn(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("start_info") || !json["start_info"].is_object()) return std::nullopt;
  const Json& start = json["start_info"];
  const auto number = [&start](const char* key) {
    const auto found = start.find(key);
    return found != start.end() && found->is_number() ? *found : Json(0);
  };
  FrameworkFiles::Timestamps timestamps;
  timestamps.counter = start.contains("syscnt_enable") && start["syscnt_enable"] == true;
  timestamps.mhz = number("freq").get<double>();
  const Json count = number("start_cnt");
  const Json raw = number("start_monotonic");
  if (count.is_number_integer()) timestamps.start_count = count.get<int64_t>();
  if (raw.is_number_integer()) timestamps.start_raw_ns = raw.get<int64_t>();
  if (!std::isfinite(timestamps.mhz) || timestamps.mhz < 0) timestamps.mhz = 0;
  return timestamps;
}

// profiler_info.json or profiler_info_<rank>.json beside the directory; of several the first by name.
void ReadInfo(const fs::path& folder, FrameworkFiles* found) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(kFrameworkInfo) && name.ends_with(".json")) names.push_back(name);
  }
  if (names.empty()) return;
  const std::string name = *std::ranges::min_element(names);
  const Result<DumpReader> reader = DumpReader::OpenPath(folder.string());
  Result<UniqueFd> fd = reader.ok() ? reader->OpenFile(name) : Result<UniqueFd>(reader.status());
  const Result<std::string> text =
      fd.ok() ? ReadWhole(fd->get(), kMostInfoBytes) : Result<std::string>(fd.status());
  if (text.ok()) found->timestamps = TimestampsIn(*text);
  if (found->timestamps) return;
  found->problems.push_back({name, text.ok() ? "no start_info in it" : text.status().message(), true});
}

}  // namespace

bool FrameworkFiles::AreCounts(const ClockMap& host, std::optional<int64_t> first) const {
  if (timestamps) return timestamps->counter;
  if (host.facts().host_hz <= 0) return false;
  if (!first || host.facts().begin_us <= 0) return true;
  const auto off = [begin_ns = static_cast<double>(host.facts().begin_us) * 1000](int64_t t_ns) {
    return std::fabs(static_cast<double>(t_ns) - begin_ns);
  };
  return off(host.HostRecord(static_cast<uint64_t>(*first))) <= off(host.HostNs(*first));
}

std::function<int64_t(int64_t)> FrameworkFiles::ClockOf(const ClockMap& host, bool are_counts) const {
  if (!are_counts) return [host](int64_t ns) { return host.HostNs(ns); };
  if (host.facts().host_hz > 0) return [host](int64_t count) { return host.HostRecord(static_cast<uint64_t>(count)); };
  if (!timestamps || timestamps->mhz <= 0) return [host](int64_t ns) { return host.HostNs(ns); };
  return [host, start = *timestamps](int64_t count) {
    const double ns = (static_cast<double>(count) - static_cast<double>(start.start_count)) * 1000 / start.mhz;
    constexpr double kMostNs = 4e18;
    const auto since = static_cast<uint64_t>(static_cast<int64_t>(std::clamp(ns, -kMostNs, kMostNs)));
    return host.HostNs(static_cast<int64_t>(since + static_cast<uint64_t>(start.start_raw_ns)));
  };
}

std::optional<FrameworkFiles> FindFramework(const std::string& dump_path) {
  std::error_code error;
  const fs::path dump = fs::canonical(dump_path, error);
  if (error) return std::nullopt;
  for (const fs::path& folder : {dump, dump.parent_path()}) {
    const fs::path path = folder / kFrameworkFolder;
    if (!fs::is_directory(fs::symlink_status(path, error))) continue;
    Result<DumpReader> reader = DumpReader::OpenPath(path.string());
    if (!reader.ok()) continue;
    Result<std::vector<DumpReader::File>> files = reader->Files();
    FrameworkFiles found{std::move(*reader), {}, std::nullopt, {}};
    if (!files.ok()) {
      found.problems.push_back({std::string(kFrameworkFolder), files.status().message(), true});
      return found;
    }
    for (const DumpReader::File& file : *files) {
      found.files.push_back({file.path, {{file.path, file.bytes, 0, false}}, file.bytes});
    }
    ReadInfo(folder, &found);
    return found;
  }
  return std::nullopt;
}

}  // namespace profd::exporting::operators
