#include "daemon/attribution/job_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/clock.h"
#include "base/dir_stream.h"
#include "base/fd.h"
#include "base/text.h"
#include "daemon/attribution/label_text.h"
#include "dump/dump_io.h"

namespace profd {
namespace {

constexpr int kMaxNpu = 1023;

int64_t ToNs(const timespec& time) {
  return int64_t{time.tv_sec} * kNsPerSecond + time.tv_nsec;
}

// "3" and "3.1": NPU 3.
bool ParseName(std::string_view name, int* npu) {
  size_t dot = std::min(name.find('.'), name.size());
  std::string_view part = name.substr(std::min(dot + 1, name.size()));
  int number = 0;
  if (dot < name.size() && (!ParseNumber(part, &number) || number < 0 || part.front() == '-')) {
    return false;
  }
  return name.front() != '-' && ParseNumber(name.substr(0, dot), npu) && *npu <= kMaxNpu;
}

Result<std::string> ReadMapFile(int folder, const std::string& name, int64_t oldest_wall_ns) {
  UniqueFd file(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return Status::FromErrno(errno, "open");
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Status::FromErrno(errno, "stat");
  if (!S_ISREG(info.st_mode)) return InvalidArgument("is not a regular file");
  if (info.st_size > 0 && ToNs(info.st_mtim) < oldest_wall_ns) {
    return FailedPrecondition("was written before this machine was started");
  }
  Result<std::string> text = ReadWhole(file.get(), kMaxMapFileBytes);
  if (text.status().code() == StatusCode::kOutOfRange) return OutOfRange("is longer than 16 KiB");
  return text;
}

// False when there are more jobs than are taken.
bool AddJobs(std::string_view text, std::vector<std::string>* jobs) {
  std::string_view line;
  while (NextLine(&text, &line)) {
    line = Trim(line);
    if (line.empty()) continue;
    std::string job = LabelText(line);
    if (std::ranges::find(*jobs, job) != jobs->end()) continue;
    if (jobs->size() == kMaxMapJobs) return false;
    jobs->push_back(std::move(job));
  }
  return true;
}

}  // namespace

Result<JobMap> ReadJobMap(const std::string& folder, int64_t oldest_wall_ns) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NONBLOCK));
  if (!fd.valid()) return Status::FromErrno(errno, folder);
  DirStream names{UniqueFd(::dup(fd.get()))};
  if (!names.valid()) return Status::FromErrno(errno, folder);
  JobMap map;
  size_t files = 0;
  while (const dirent* entry = names.Next()) {
    std::string name = entry->d_name;
    if (++files > kMaxMapFiles) {
      map.ignored.push_back(fmt::format("more than {} files: the others", kMaxMapFiles));
      break;
    }
    int npu = 0;
    // Prologs write "3.tmp" and rename it: other names are none of ours.
    if (!ParseName(name, &npu)) continue;
    Result<std::string> text = ReadMapFile(fd.get(), name, oldest_wall_ns);
    if (!text.ok()) {
      // Gone since it was listed: the job ended.
      if (text.status().code() == StatusCode::kNotFound) continue;
      map.ignored.push_back(fmt::format("{}: {}", LabelText(name), text.status().message()));
    } else if (!AddJobs(*text, &map.jobs[npu])) {
      map.ignored.push_back(fmt::format("{}: jobs beyond the first {}", LabelText(name), kMaxMapJobs));
    }
  }
  std::ranges::sort(map.ignored);
  return map;
}

int64_t MachineStartWallNs() {
  timespec wall{};
  timespec since{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_BOOTTIME, &since);
  return ToNs(wall) - ToNs(since);
}

}  // namespace profd
