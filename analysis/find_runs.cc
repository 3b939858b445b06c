#include "analysis/find_runs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <system_error>

#include "analysis/read/readers.h"
#include "dump/data_name.h"
#include "dump/reader.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 100'000;

int64_t ChangedAt(const fs::path& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_mtim.tv_sec : 0;
}

// The profiler's directory that an output or an export is in, also those of older releases of msprof.
fs::path ProfilerDirectoryOf(const Source& source) {
  fs::path known = source.path;
  if (source.kind == SourceKind::kDatabase) known = known.parent_path();
  const std::string name = known.filename().string();
  const bool output = name == "ASCEND_PROFILER_OUTPUT" || name == "mindstudio_profiler_output";
  if (output && known.has_parent_path()) return known.parent_path();
  const fs::path above = known.parent_path();
  if (name == "timeline" && above.filename().native().starts_with("device_")) return above.parent_path();
  return name.starts_with("PROF_") ? known : source.path;
}

// What people know a source by: its profiler's directory, where it is in one.
fs::path KnownAs(const Source& source) {
  fs::path known = ProfilerDirectoryOf(source);
  // What a framework's profiler has not analysed yet.
  const std::string above = known.parent_path().filename().string();
  const bool of_framework = above.ends_with("_ascend_pt") || above.ends_with("_ascend_ms");
  return of_framework && known.filename().native().starts_with("PROF_") ? known.parent_path() : known;
}

std::string_view KindOf(SourceKind kind) {
  switch (kind) {
    case SourceKind::kDump:
      return "dump";
    case SourceKind::kText:
      return "profiler output";
    case SourceKind::kDatabase:
      return "database";
    case SourceKind::kMindSpore:
      return "MindSpore logs";
    case SourceKind::kCluster:
      return "cluster analysis";
    case SourceKind::kEmpty:
      break;
  }
  return "";
}

// Runs that are one larger run together, by its name.
struct Group {
  std::string kind;
  std::string name;
  std::vector<const FoundRun*> members;
};
using Groups = std::map<std::pair<std::string, std::string>, Group>;

void AddTo(Groups* groups, const std::string& kind, const std::string& key, const std::string& name, const FoundRun& member) {
  Group& group = (*groups)[{kind, key}];
  group.kind = kind;
  group.name = name;
  group.members.push_back(&member);
}

void AddRank(const FoundRun& run, Groups* groups) { AddTo(groups, "ranks", run.place, fs::path(run.place).filename().string(), run); }

void AddDump(const FoundRun& run, Groups* groups) {
  const auto dump = DumpReader::OpenPath(run.paths.front());
  if (!dump.ok()) return;
  const auto manifest = dump->ReadManifest();
  if (!manifest.ok()) {
    std::error_code error;
    const fs::path path = run.paths.front();
    const bool damaged = fs::exists(path / kOwnPrefix, error) || fs::exists(path / kOldOwnPrefix, error);
    // The vendor's profiler writes none. It makes a directory for each rank.
    if (!damaged) AddRank(run, groups);
    return;
  }
  const std::string& job = manifest->job_id;
  const std::string& session = manifest->session_id;
  if (!job.empty()) AddTo(groups, "job", job, "job " + job, run);
  if (!session.empty()) AddTo(groups, "session", session, "session " + session, run);
}

FoundRun Together(const Group& group) {
  FoundRun run;
  run.kind = group.kind;
  run.name = group.name;
  run.place = group.members.front()->place;
  for (const FoundRun* member : group.members) {
    run.paths.insert(run.paths.end(), member->paths.begin(), member->paths.end());
    run.changed_s = std::max(run.changed_s, member->changed_s);
  }
  return run;
}

std::vector<FoundRun> Singles(const std::vector<std::string>& paths) {
  std::vector<FoundRun> runs;
  std::set<std::string> known;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path absolute = fs::absolute(path, error).lexically_normal();
    if (error) continue;
    for (const Source& source : FindSources(absolute)) {
      if (source.kind == SourceKind::kEmpty || runs.size() == kMostRuns || !known.insert(source.path.string()).second) continue;
      const fs::path as = KnownAs(source);
      FoundRun& run = runs.emplace_back();
      run.name = as.filename().string();
      run.kind = KindOf(source.kind);
      run.paths = {source.path.string()};
      run.place = as.parent_path().string();
      run.changed_s = std::max(ChangedAt(as), ChangedAt(source.path));
    }
  }
  return runs;
}

}  // namespace

std::vector<FoundRun> FindRuns(const std::vector<std::string>& paths) {
  std::vector<FoundRun> runs = Singles(paths);
  Groups groups;
  for (const FoundRun& run : runs) {
    if (run.kind == KindOf(SourceKind::kDump)) {
      AddDump(run, &groups);
    } else {
      AddRank(run, &groups);
    }
  }
  std::vector<FoundRun> larger;
  std::set<std::vector<std::string>> known;
  for (const auto& [key, group] : groups) {
    if (group.members.size() < 2) continue;
    FoundRun run = Together(group);
    // A job of one session is known as a job already.
    if (known.insert(run.paths).second) larger.push_back(std::move(run));
  }
  std::ranges::move(larger, std::back_inserter(runs));
  std::ranges::stable_sort(runs, std::ranges::greater(), &FoundRun::changed_s);
  for (FoundRun& run : runs) {
    std::string all = run.kind;
    for (const std::string& path : run.paths) all += '\0' + path;
    run.id = fmt::format("{:016x}", std::hash<std::string>()(all));
  }
  return runs;
}

uint64_t TimestampOf(const FoundRun& run) {
  uint64_t timestamp = 0;
  size_t files = 0;
  const auto add = [&timestamp](const fs::path& path) {
    struct stat facts {};
    if (::lstat(path.c_str(), &facts) != 0) return;
    const std::string text = fmt::format("{} {} {}.{}", path.string(), facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
    timestamp += std::hash<std::string>()(text);  // in any order
  };
  for (const std::string& path : run.paths) {
    add(path);
    std::error_code error;
    fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error);
    for (; !error && it != fs::recursive_directory_iterator() && files < kMostFiles; it.increment(error), ++files) add(it->path());
  }
  return timestamp;
}

}  // namespace profd::analysis
