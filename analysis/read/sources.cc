// Which of the readers a path is for.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "analysis/read/readers.h"
#include "base/fd.h"
#include "base/text.h"
#include "dump/dump_io.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 4;
constexpr size_t kMostEntries = 100'000;

bool IsDirectory(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Of profd or of the vendor's collector; under a name of its user's, too.
bool IsDump(const fs::path& path) {
  std::error_code error;
  if (!path.filename().native().starts_with("PROF")) return fs::is_regular_file(path / "host" / "info.json", error);
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == "host" || name == "profd" || name.starts_with("device_")) return true;
  }
  return false;
}

std::vector<fs::path> Entries(const fs::path& directory, bool directories) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end && found.size() < kMostEntries;
       it.increment(error)) {
    std::error_code ignored;
    if (it->symlink_status(ignored).type() == (directories ? fs::file_type::directory : fs::file_type::regular)) {
      found.push_back(it->path());
    }
  }
  std::ranges::sort(found);
  return found;
}

// A file of an export: `<kind>_<time>`, `<kind>_slice_<k>_<time>` or `<kind>_<time>_slice_<k>` (operator-data d).
struct ExportFile {
  std::string kind;  // with the ending
  uint64_t slice = 0;
  int64_t time_s = 0;  // only good for comparisons; 0: there is none
};

ExportFile ExportFileOf(const fs::path& path) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kSlice = "_slice_";
  constexpr size_t kTimeDigits = 14;
  constexpr int64_t kUnits[kTimeDigits / 2] = {100, 100, 12, 31, 24, 60, 60};  // years have two
  ExportFile file{path.filename().string()};
  // Takes the number behind `prefix` out of the name.
  const auto take = [&](size_t at, std::string_view prefix) {
    const size_t begin = at + prefix.size();
    std::string digits = file.kind.substr(begin, file.kind.find_first_not_of(kDigits, begin) - begin);
    if (!digits.empty()) file.kind.erase(at, prefix.size() + digits.size());
    return digits;
  };
  const size_t slice = file.kind.find(kSlice);
  if (slice != std::string::npos && !ParseNumber(take(slice, kSlice), &file.slice)) file.slice = 0;
  for (size_t at = file.kind.find('_'); at != std::string::npos; at = file.kind.find('_', at + 1)) {
    const size_t end = std::min(file.kind.find_first_not_of(kDigits, at + 1), file.kind.size());
    if (end - at - 1 != kTimeDigits) continue;
    const std::string digits = take(at, "_");
    for (size_t i = 0; i < kTimeDigits; i += 2) {
      file.time_s = file.time_s * kUnits[i / 2] + (digits[i] - '0') * 10 + (digits[i + 1] - '0');
    }
    break;
  }
  return file;
}

// What a framework's profiler analysed is better than what it was made of.
bool AddOutput(const fs::path& directory, std::vector<Source>* sources) {
  const size_t before = sources->size();
  std::vector<fs::path> databases;
  for (const fs::path& file : Entries(directory, false)) {
    if (IsDatabase(file)) databases.push_back(file);
  }
  // Elsewhere they may be of several runs.
  const std::string name = NamedPathOf(directory).filename().string();
  std::vector<std::string> left_out;
  if (name.starts_with("PROF_") || name == "mindstudio_profiler_output") databases = NewestOf(databases, &left_out);
  for (const fs::path& file : databases) sources->push_back({SourceKind::kDatabase, file});
  if (!databases.empty()) sources->back().left_out = std::move(left_out);
  if (sources->size() == before && IsProfilerOutput(directory)) sources->push_back({SourceKind::kText, directory});
  return sources->size() > before;
}

void Find(const fs::path& path, int depth, std::vector<Source>* sources) {
  const std::string name = path.filename().string();
  if (name == "ASCEND_PROFILER_OUTPUT" || name == "mindstudio_profiler_output") {
    AddOutput(path, sources);
    return;
  }
  if (IsDirectory(path / "ASCEND_PROFILER_OUTPUT") && AddOutput(path / "ASCEND_PROFILER_OUTPUT", sources)) return;
  if (IsDump(path)) {
    const size_t before = sources->size();
    // A PROF directory without raw data has only what msprof made of it: tables and timelines, or a database.
    const bool raw = !Entries(path / "host", false).empty() || std::ranges::any_of(Entries(path, true), [](const fs::path& each) {
      return each.filename().native().starts_with("device_") && IsDirectory(each / "data");
    });
    if (!raw && IsDirectory(path / "mindstudio_profiler_output")) AddOutput(path / "mindstudio_profiler_output", sources);
    for (const fs::path& device : Entries(path, true)) {
      // Older releases of msprof.
      const bool timeline = !raw && device.filename().native().starts_with("device_") && IsDirectory(device / "timeline");
      if (timeline && sources->size() == before) AddOutput(device / "timeline", sources);
    }
    if (!raw && sources->size() == before && !IsDirectory(path / "profd")) AddOutput(path, sources);
    if (sources->size() == before) sources->push_back({SourceKind::kDump, path});
    return;
  }
  if (IsCluster(path)) {
    sources->push_back({SourceKind::kCluster, path});
    return;
  }
  if (IsMindSpore(path)) {
    sources->push_back({SourceKind::kMindSpore, path});
    return;
  }
  if (AddOutput(path, sources)) return;
  const size_t before = sources->size();
  if (depth > 0) {
    for (const fs::path& each : Entries(path, true)) Find(each, depth - 1, sources);
  }
  if (sources->size() == before && HasRecordedTables(path)) sources->push_back({SourceKind::kText, path});
  // Of a rank without raw data beside it nothing is left.
  const fs::path output = path / "ASCEND_PROFILER_OUTPUT";
  if (sources->size() == before && IsDirectory(output)) sources->push_back({SourceKind::kEmpty, output});
}

}  // namespace

std::vector<Source> FindSources(const fs::path& path) {
  std::vector<Source> sources;
  if (IsDatabase(path) && !IsDirectory(path)) {
    sources.push_back({SourceKind::kDatabase, path});
  } else if (path.filename() == kClusterDatabase && !IsDirectory(path)) {
    sources.push_back({SourceKind::kCluster, fs::absolute(path).lexically_normal().parent_path()});
  } else {
    fs::path clean = path.lexically_normal();
    if (!clean.has_filename()) clean = clean.parent_path();
    Find(clean, kDepth, &sources);
  }
  // What was put together of ranks that are there is nothing new. Without them it stands for those that are empty.
  const auto is_cluster = [](const Source& each) { return each.kind == SourceKind::kCluster; };
  const auto is_empty = [](const Source& each) { return each.kind == SourceKind::kEmpty; };
  const bool has_ranks = std::ranges::any_of(sources, [&](const Source& each) { return !is_cluster(each) && !is_empty(each); });
  if (has_ranks) {
    std::erase_if(sources, is_cluster);
  } else if (std::ranges::any_of(sources, is_cluster)) {
    std::erase_if(sources, is_empty);
  }
  return sources;
}

std::vector<fs::path> NewestOf(const std::vector<fs::path>& files, std::vector<std::string>* left_out) {
  std::vector<ExportFile> parsed;
  std::map<std::string_view, std::set<int64_t>> exports;  // times of the first slices
  std::ranges::transform(files, std::back_inserter(parsed), ExportFileOf);
  for (const ExportFile& file : parsed) {
    if (file.slice == 0) exports[file.kind].insert(file.time_s);
  }
  // A slice is of the export whose first slice was written at about its time. None of an earlier export stays for one
  // that the newest, having fewer, does not have.
  const auto is_of_newest = [&exports](const ExportFile& file) {
    const std::set<int64_t>& times = exports[file.kind];
    const auto off = [&file](int64_t time_s) { return std::abs(file.time_s - time_s); };
    return std::ranges::none_of(times, [&](int64_t each) { return off(each) < off(*times.rbegin()); });
  };
  std::map<std::pair<std::string_view, uint64_t>, int64_t> newest;  // by kind and slice
  for (const ExportFile& file : parsed) {
    int64_t& time_s = newest[{file.kind, file.slice}];
    if (is_of_newest(file)) time_s = std::max(time_s, file.time_s);
  }
  std::vector<fs::path> found;
  for (size_t i = 0; i < files.size(); ++i) {
    const ExportFile& file = parsed[i];
    if (is_of_newest(file) && file.time_s == newest[{file.kind, file.slice}]) {
      found.push_back(files[i]);
    } else if (left_out != nullptr) {
      left_out->push_back(files[i].filename().string());
    }
  }
  return found;
}

void ReportMissingSlices(uint64_t next, uint64_t number, const fs::path& file, const ReadContext& context) {
  if (number == next + 1) context.AddProblem(file, fmt::format("slice {} before it is missing", next));
  if (number > next + 1) context.AddProblem(file, fmt::format("slices {} to {} before it are missing", next, number - 1));
}

void ReportMissingSlices(const std::vector<fs::path>& files, const ReadContext& context) {
  std::map<std::string, std::map<uint64_t, fs::path>> slices;  // by kind
  for (const fs::path& path : files) {
    const ExportFile file = ExportFileOf(path);
    slices[file.kind].emplace(file.slice, path);
  }
  for (const auto& [kind, by_number] : slices) {
    uint64_t next = 0;
    for (const auto& [number, path] : by_number) {
      ReportMissingSlices(next, number, path, context);
      next = number + 1;
    }
  }
}

std::string EarlierExports(const std::vector<std::string>& left_out) {
  return fmt::format("files of earlier exports are left out: {}", fmt::join(left_out, ", "));
}

fs::path NamedPathOf(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path clean = (error ? path : absolute).lexically_normal();
  return clean.has_filename() ? clean : clean.parent_path();
}

Result<UniqueFd> OpenPlain(const fs::path& file, int flags) {
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return Status::FromErrno(errno, "open");
  if (!S_ISREG(facts.st_mode)) return InvalidArgument("not a plain file");
  return fd;
}

Result<std::string> ReadWhole(const fs::path& file, uint64_t most) {
  const Result<UniqueFd> fd = OpenPlain(file, O_NOFOLLOW);
  if (!fd.ok()) return fd.status();
  struct stat facts {};
  if (::fstat(fd->get(), &facts) != 0) return Status::FromErrno(errno, "open");
  const auto bytes = static_cast<uint64_t>(facts.st_size);
  if (bytes > most) return InvalidArgument(fmt::format("{} bytes; at most {} are read", bytes, most));
  return profd::ReadWhole(fd->get(), most);
}

}  // namespace profd::analysis
