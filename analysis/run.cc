#include "analysis/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "analysis/find_points.h"
#include "analysis/read/readers.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

std::string NameOf(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return (clean.has_filename() ? clean : clean.parent_path()).filename().string();
}

Status ReadOne(const Source& source, const ReadOrder& order, Ranks* ranks) {
  switch (source.kind) {
    case SourceKind::kText:
      return ReadProfilerOutput(source.path, order, ranks);
    case SourceKind::kDatabase:
      return ReadDatabase(source.path, order, ranks);
    case SourceKind::kMindSpore:
      return ReadMindSpore(source.path, order, ranks);
    case SourceKind::kCluster:
      return ReadCluster(source.path, order, ranks);
    case SourceKind::kDump:
      break;
  }
  return Status::Ok();
}

}  // namespace

Result<Run> LoadRun(const std::vector<std::string>& paths, const Progress& progress, HostCalls calls) {
  Run run;
  run.inputs = paths;
  if (!paths.empty()) run.name = NameOf(paths.front());
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::exists(path, error)) return NotFound(path + ": there is no such file or directory");
    std::vector<Source> found = FindSources(path);
    if (found.empty()) {
      return InvalidArgument(path +
                             ": no run: neither a dump (PROF_*), nor ASCEND_PROFILER_OUTPUT or mindstudio_profiler_output, "
                             "nor a database (msprof_*.db, ascend_*_profiler*.db), nor cluster_analysis_output, nor MindSpore's raw logs are there or below");
    }
    std::ranges::move(found, std::back_inserter(sources));
  }
  const ReadOrder order{&run.problems, &progress, calls};
  std::vector<fs::path> dumps;
  for (const Source& source : sources) {
    if (source.kind == SourceKind::kDump) dumps.push_back(source.path);
    const Status read = ReadOne(source, order, &run.ranks);
    if (!read.ok()) run.problems.push_back({source.path.string(), read.message()});
    if (progress && !progress()) return Status(StatusCode::kCancelled, "interrupted");
  }
  if (!dumps.empty()) {
    const Status read = ReadDumps(dumps, order, &run.ranks);
    if (read.code() == StatusCode::kCancelled) return read;
    if (!read.ok()) run.problems.push_back({dumps.front().string(), read.message()});
  }
  if (run.ranks.empty()) {
    const std::string why = run.problems.empty() ? "" : ": " + run.problems.front().what;
    return InvalidArgument(run.name + ": nothing in it could be read" + why);
  }
  for (const auto& rank : run.ranks) FindPoints(rank.get());
  std::ranges::stable_sort(run.ranks, {}, [](const std::unique_ptr<Rank>& each) {
    return std::pair(!each->rank.has_value(), each->rank.value_or(each->device.value_or(0)));
  });
  return run;
}

}  // namespace profd::analysis
