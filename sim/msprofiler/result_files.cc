#include "sim/msprofiler/result_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "sim/msprofiler/config.h"

namespace profd::sim::aclprof {
namespace {

namespace fs = std::filesystem;

// The vendor's rule: half of the limit for each directory, less 20 MiB.
constexpr uint64_t kSpareMb = 20;

bool IsAged(const std::string& name) {
  constexpr std::array<std::string_view, 3> kNever = {"unaging", "hash_dic", "fusion_op_info"};
  return std::ranges::none_of(kNever, [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

}  // namespace

Result<ResultFiles> ResultFiles::Make(const std::string& folder, std::string suffix, uint64_t storage_limit_mb) {
  std::error_code failed;
  fs::create_directories(folder + "/data", failed);
  if (failed) return Unavailable(folder + ": " + failed.message());
  ResultFiles files;
  files.folder_ = folder;
  files.suffix_ = std::move(suffix);
  const auto megabyte = static_cast<uint64_t>(Settings::The().megabyte.load());
  if (storage_limit_mb / 2 > kSpareMb) files.limit_bytes_ = (storage_limit_mb / 2 - kSpareMb) * megabyte;
  return files;
}

void ResultFiles::Write(const std::string& path, std::string_view bytes) {
  std::atomic<int64_t>& left = Settings::The().disk_bytes;
  const int64_t space = left.load();
  if (disk_full_ || (space >= 0 && static_cast<uint64_t>(space) < bytes.size())) {
    disk_full_ = true;
    return;
  }
  if (space >= 0) left.store(space - static_cast<int64_t>(bytes.size()));
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  disk_full_ = disk_full_ || !out;
}

void ResultFiles::PutControl(const std::string& name, const std::string& text) {
  const std::string path = folder_ + "/" + name + (name == "sample.json" ? "" : suffix_);
  Write(path, text);
  Write(path + ".done", fmt::format("filesize:{}\n", text.size()));
}

void ResultFiles::Append(const std::string& name, std::string_view record) {
  Growing& growing = growing_[name];
  growing.bytes.append(record);
  if (growing.bytes.size() >= static_cast<uint64_t>(Settings::The().slice_bytes.load())) CloseSlice(name, growing);
}

void ResultFiles::CloseSlice(const std::string& name, Growing& growing) {
  const std::string path = fmt::format("{}/data/{}{}.slice_{}", folder_, name, suffix_, growing.slice++);
  const std::string done = fmt::format("filesize:{}\n", growing.bytes.size());
  Write(path, growing.bytes);
  Write(path + ".done", done);
  const uint64_t bytes = growing.bytes.size() + done.size();
  growing.bytes.clear();
  stored_ += bytes;
  if (!IsAged(name)) return;
  closed_.push_back({name, path, bytes});
  Age();
}

void ResultFiles::Age() {
  for (auto it = closed_.begin(); limit_bytes_ > 0 && stored_ > limit_bytes_ && it != closed_.end();) {
    const bool last = std::ranges::count_if(closed_, [&](const Closed& closed) {
      return closed.file == it->file;
    }) == 1;
    if (last) {
      ++it;
      continue;
    }
    std::error_code ignored;
    fs::remove(it->path, ignored);
    fs::remove(it->path + ".done", ignored);
    stored_ -= it->bytes;
    it = closed_.erase(it);
  }
}

void ResultFiles::Flush() {
  for (auto& [name, growing] : growing_) {
    if (!growing.bytes.empty()) CloseSlice(name, growing);
  }
}

}  // namespace profd::sim::aclprof
