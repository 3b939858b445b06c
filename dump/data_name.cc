#include "dump/data_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "dump/activity_files.h"
#include "dump/slice_journal.h"

namespace profd {
namespace {

// Chips whose low power channel carries voltages too call this one abi::kLpInfoFile.
constexpr std::string_view kLpFile = "lpmFreqConv.data";
// In front of the device: `hbm.data.<job>.dev.profiler_default_tag.<device>.slice_<k>`.
constexpr std::string_view kTrainingTag = ".dev.profiler_default_tag";

// Takes ".<digits>" off the end.
template <class T>
bool TakeNumber(std::string_view* name, T* out) {
  size_t dot = name->rfind('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  T value{};
  if (!ParseNumber(name->substr(dot + 1), &value) || value < 0) return false;
  *out = value;
  *name = name->substr(0, dot);
  return true;
}

std::optional<DataName> Sliced(std::string_view name, size_t at) {
  DataName result;
  std::string_view digits = name.substr(at + kSliceMark.size());
  // Collectors may append to a slice's number; only the digits matter.
  size_t length = 0;
  while (length < digits.size() && IsDigit(digits[length])) ++length;
  if (!ParseNumber(digits.substr(0, length), &result.slice)) return std::nullopt;
  name = name.substr(0, at);
  if (TakeNumber(&name, &result.device) && name.ends_with(kTrainingTag)) {
    name.remove_suffix(kTrainingTag.size());
    int64_t job = 0;
    if (!TakeNumber(&name, &job)) return std::nullopt;
  }
  if (name.empty()) return std::nullopt;
  result.base = name;
  return result;
}

// `hbm.data.<job>.<device>.<k>`
std::optional<DataName> Inference(std::string_view name) {
  DataName result;
  int64_t job = 0;
  if (!TakeNumber(&name, &result.slice) || !TakeNumber(&name, &result.device) ||
      !TakeNumber(&name, &job) || name.empty()) {
    return std::nullopt;
  }
  result.base = name;
  return result;
}

// The analyser's skip list, less what it takes for its own and may empty.
constexpr std::array<std::string_view, 3> kSkippedFolders = {"log", ".profiler", "query"};
constexpr std::string_view kDeviceFolder = "device_";

}  // namespace

bool IsTopFolder(std::string_view name) {
  if (name == kHostFolder) return true;
  if (!name.starts_with(kDeviceFolder)) return std::ranges::find(kSkippedFolders, name) != kSkippedFolders.end();
  name.remove_prefix(kDeviceFolder.size());
  return !name.empty() && std::ranges::all_of(name, IsDigit);
}

std::string FolderOf(int device) {
  return device < 0 ? std::string(kHostFolder) : fmt::format("{}{}", kDeviceFolder, device);
}

std::optional<int> DeviceOfFolder(std::string_view name) {
  if (name == kHostFolder) return -1;
  int device = 0;
  if (!IsTopFolder(name) || !name.starts_with(kDeviceFolder)) return std::nullopt;
  return ParseNumber(name.substr(kDeviceFolder.size()), &device) ? std::optional(device) : std::nullopt;
}

std::string TodaysPath(std::string path) {
  if (path.starts_with(kOldOwnPrefix)) path.replace(0, kOldOwnPrefix.size(), kOwnPrefix);
  return path;
}

std::string_view OwnFileName(std::string_view path) {
  return path.starts_with(kOwnPrefix) ? path.substr(kOwnPrefix.size()) : std::string_view();
}

std::optional<DataName> ParseDataName(std::string_view name) {
  if (name.starts_with('.')) return std::nullopt;
  bool compressed = name.ends_with(kCompressedSuffix);
  if (compressed) name.remove_suffix(kCompressedSuffix.size());
  size_t at = name.rfind(kSliceMark);
  std::optional<DataName> result =
      at == std::string_view::npos ? Inference(name) : Sliced(name, at);
  if (result) result->compressed = compressed;
  return result;
}

const abi::ChannelFormat* FormatOfFile(std::string_view base) {
  if (base == abi::kLpInfoFile) base = kLpFile;
  auto format = std::ranges::find(abi::kChannelFormats, base, &abi::ChannelFormat::file);
  return format == abi::kChannelFormats.end() ? nullptr : &*format;
}

HostFile HostFileOf(std::string_view base) {
  if (base == "host_sys_cpu.data") return {"host_cpu", true};
  if (base == "host_sys_mem.data") return {"host_mem", true};
  if (base == "host_network.data") return {"host_net", true};
  if (base == "host_cpu.data" || base.ends_with("-CpuUsage.data")) return {"host_cpu"};
  if (const ActivityFile* activity = FindActivityFile(base)) return {activity->collector};
  if (base == "host_mem.data" || base.ends_with("-Memory.data")) return {"host_mem"};
  return {};
}

bool HasHostFiles(std::string_view collector) {
  const auto activity = ActivityFiles();
  if (std::ranges::find(activity, collector, &ActivityFile::collector) != activity.end()) return true;
  return collector == "host_cpu" || collector == "host_mem" || collector == "host_net";
}

bool IsNoteName(std::string_view name) {
  return name.ends_with(kDoneSuffix) || name.ends_with(".complete") || name.ends_with(".zip");
}

}  // namespace profd
