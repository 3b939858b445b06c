#include "analysis/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "analysis/cluster/cluster.h"
#include "analysis/details.h"
#include "analysis/find_points.h"
#include "analysis/find_runs.h"
#include "analysis/read/readers.h"
#include "analysis/views/views.h"
#include "export/beside.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

std::string NameOf(const std::string& path) {
  const fs::path clean = fs::path(path).lexically_normal();
  return (clean.has_filename() ? clean : clean.parent_path()).filename().string();
}

// Whether its directory has the same as text, too. With other databases beside it the text may be of those.
bool HasTextBeside(const fs::path& database) {
  size_t databases = 0;
  std::error_code error;
  for (fs::directory_iterator it(AboveOf(database), error), end; !error && it != end; it.increment(error)) databases += IsDatabase(it->path()) ? 1 : 0;
  return databases == 1 && IsProfilerOutput(AboveOf(database));
}

// The error is the database's in any case.
Status ReadDatabaseOrText(const fs::path& database, const ReadContext& context, Ranks* ranks) {
  Status status = ReadDatabase(database, context, ranks);
  if (status.ok() || !HasTextBeside(database)) return status;
  RETURN_IF_ERROR(ReadProfilerOutput(AboveOf(database), context, ranks));
  return InvalidArgument(status.message() + ": the text beside it is read instead");
}

Status ReadOne(const Source& source, const ReadContext& context, Ranks* ranks) {
  switch (source.kind) {
    case SourceKind::kText:
      return ReadProfilerOutput(source.path, context, ranks);
    case SourceKind::kDatabase:
      return ReadDatabaseOrText(source.path, context, ranks);
    case SourceKind::kMindSpore:
      return ReadMindSpore(source.path, context, ranks);
    case SourceKind::kCluster:
      return ReadCluster(source.path, context, ranks);
    case SourceKind::kEmpty:
      return InvalidArgument("neither a database nor CSV or JSON of an export is in it");
    case SourceKind::kDump:
      break;
  }
  return Status::Ok();
}

// A device that the job does not use, which the node's counters describe. Of files the sums of steps are of a rank, too.
bool IsBeside(const Rank& rank) {
  const bool of_node = rank.source == "dump" || rank.source.ends_with("database");
  return !rank.rank && rank.executions.empty() && rank.collectives.empty() && (of_node || rank.shares.empty());
}

// What was read of a source.
struct Read {
  Ranks ranks;
  std::vector<Problem> problems;
  Status status;
};

// All sources but dumps, on several threads; what they were read into is in their order.
Status ReadSources(const std::vector<Source>& sources, const Progress& progress, const ReadDetail& detail, Run* run) {
  constexpr size_t kMostThreads = 8;
  std::vector<Read> read(sources.size());
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = false;
  Details details;
  const size_t threads = std::min({sources.size(), kMostThreads, static_cast<size_t>(std::max(std::thread::hardware_concurrency(), 1u))});
  exporting::RunBeside(threads, [&](size_t thread) {
    // Only the caller's thread asks whether to go on.
    const Progress beside = [&, thread] {
      if (thread == 0 && progress && !progress()) stopped = true;
      return !stopped;
    };
    for (size_t i = next++; i < sources.size() && beside(); i = next++) {
      Read& mine = read[i];
      mine.status = ReadOne(sources[i], {&mine.problems, &beside, detail}, &mine.ranks);
      for (const auto& rank : mine.ranks) details.Add(rank.get());
    }
  });
  if (stopped) return Status(StatusCode::kCancelled, "interrupted");
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].left_out.empty()) {
      run->problems.push_back({sources[i].path.parent_path().string(), EarlierExports(sources[i].left_out)});
    }
    std::ranges::move(read[i].problems, std::back_inserter(run->problems));
    if (!read[i].status.ok()) run->problems.push_back({sources[i].path.string(), read[i].status.message()});
    std::ranges::move(read[i].ranks, std::back_inserter(run->ranks));
  }
  if (const size_t left_out = details.Finish(); left_out > 0) {
    run->problems.push_back({run->name, DetailsLeftOut(left_out)});
  }
  return Status::Ok();
}

Result<std::vector<Source>> SourcesOf(const std::vector<std::string>& paths) {
  std::vector<Source> sources;
  std::set<fs::path> known;  // what is given twice counts once
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::exists(path, error)) return NotFound(path + ": there is no such file or directory");
    std::vector<Source> found = FindSources(path);
    if (found.empty()) {
      const fs::directory_iterator listed(path, error);
      if (error == std::errc::permission_denied) {
        return PermissionDenied(path + ": Permission denied; its owner and root can read it, and profctl fetch brings a copy");
      }
      return InvalidArgument(path +
                             ": no run: neither a dump (PROF_*), nor ASCEND_PROFILER_OUTPUT or mindstudio_profiler_output, "
                             "nor a database (msprof_*.db, ascend_*_profiler*.db), nor cluster_analysis_output, nor MindSpore's raw logs are there or below");
    }
    std::ranges::copy_if(found, std::back_inserter(sources), [&](const Source& each) {
      const fs::path real = fs::canonical(each.path, error);
      return known.insert(error ? NamedPathOf(each.path) : real).second;
    });
  }
  return sources;
}

// Ranks by number: of several with one number, which would count as several ranks, the one stays that began last.
void LeaveOutTwins(Run* run) {
  const auto is_twin = [](const auto& a, const auto& b) { return a->rank && a->rank == b->rank; };
  const auto began = [](const auto& each) { return std::pair(BeginOf(*each), std::string_view(each->path)); };
  for (auto first = run->ranks.begin(); first != run->ranks.end(); ++first) {
    const auto end = std::find_if_not(std::next(first), run->ranks.end(), [&](const auto& each) { return is_twin(*first, each); });
    if (end == std::next(first)) continue;
    std::iter_swap(first, std::ranges::max_element(first, end, {}, began));
    for (auto twin = std::next(first); twin != end; ++twin) {
      const bool of_one_file = (*twin)->path == (*first)->path && (*twin)->device && (*first)->device;
      run->problems.push_back({(*twin)->path, of_one_file ? fmt::format("device {} of rank {} is left out: the rank is read from device {}",
                                                                        *(*twin)->device, *(*first)->rank, *(*first)->device)
                                                          : fmt::format("rank {} is left out: it is read from {}", *(*first)->rank, (*first)->path)});
    }
    run->ranks.erase(std::next(first), end);
  }
}

// Of ranks that communicated in several steps the cluster needs the times of the steps, too.
void ReportMissingSteps(Run* run) {
  if (run->ranks.size() < 2) return;
  const Rank* first = nullptr;
  size_t ranks = 0;
  for (const auto& rank : run->ranks) {
    const bool has_times = !rank->steps.empty() || std::ranges::any_of(rank->shares, [](const auto& of_step) { return of_step.first >= 0; });
    if (has_times) continue;
    std::set<int64_t> steps;
    for (const Collective& each : rank->collectives) {
      if (each.step >= 0) steps.insert(each.step);
    }
    if (steps.size() < 2) continue;
    if (ranks++ == 0) first = rank.get();
  }
  if (first == nullptr) return;
  run->problems.push_back({first->path, fmt::format("{} communicated in several steps whose times are missing: steps of the cluster are without {}, other times are of all "
                                                    "steps together; step_trace_time.csv has them (analysis.db beside a database, cluster_step_trace_time.csv of a "
                                                    "cluster analysis): copy it from the node, or run the profiler's own analysis again",
                                                    ranks == 1 ? RankName(*first) : fmt::format("{} ranks, the first {},", ranks, RankName(*first)),
                                                    ranks == 1 ? "it" : "them")});
}

// Into ranks and problems of `run`; what cannot be read is a problem.
Status ReadAll(const std::vector<Source>& sources, const Progress& progress, const ReadDetail& detail, Run* run) {
  std::vector<fs::path> dumps;
  std::vector<Source> others;
  for (const Source& source : sources) {
    if (source.kind == SourceKind::kDump) {
      dumps.push_back(source.path);
    } else {
      others.push_back(source);
    }
  }
  RETURN_IF_ERROR(ReadSources(others, progress, detail, run));
  const ReadContext context{&run->problems, &progress, detail};
  if (!dumps.empty()) {
    Status read = ReadDumps(dumps, context, &run->ranks);
    if (read.code() == StatusCode::kCancelled) return read;
    if (!read.ok()) run->problems.push_back({dumps.front().string(), read.message()});
  }
  if (run->ranks.empty()) {
    const std::string why = run->problems.empty() ? "" : fmt::format(": {}: {}", run->problems.front().where, run->problems.front().what);
    // As an export of it says.
    if (why.empty() && others.empty()) return NotFound(run->name + ": it holds no records to analyse");
    return InvalidArgument(run->name + ": nothing in it could be read" + why);
  }
  if (std::ranges::any_of(run->ranks, [](const auto& each) { return each->rank.has_value(); })) {
    std::erase_if(run->ranks, [](const auto& each) { return IsBeside(*each); });
  }
  for (const auto& rank : run->ranks) FindPoints(rank.get());
  std::ranges::stable_sort(run->ranks, {}, [](const std::unique_ptr<Rank>& each) {
    return std::pair(!each->rank.has_value(), each->rank.value_or(each->device.value_or(0)));
  });
  LeaveOutTwins(run);
  ReportMissingSteps(run);
  return {};
}

}  // namespace

Result<Run> LoadRun(const std::vector<std::string>& paths, const Progress& progress, const ReadDetail& detail) {
  Run run;
  run.inputs = paths;
  if (!paths.empty()) run.name = NameOf(paths.front());
  const Result<std::vector<Source>> sources = SourcesOf(paths);
  if (!sources.ok()) return sources.status();
  RETURN_IF_ERROR(ReadAll(*sources, progress, detail, &run));
  return run;
}

Status LoadBySource(const std::vector<std::string>& paths, const Progress& progress, const SourceCalls& calls) {
  const Result<std::vector<Source>> sources = SourcesOf(paths);
  if (!sources.ok()) return sources.status();
  std::vector<std::vector<Source>> groups;
  std::vector<Source> dumps;
  for (const Source& source : *sources) {
    if (source.kind == SourceKind::kDump) {
      dumps.push_back(source);
    } else if (source.kind != SourceKind::kEmpty) {
      groups.push_back({source});
    }
  }
  if (!dumps.empty()) groups.push_back(std::move(dumps));
  for (const std::vector<Source>& group : groups) {
    FoundRun files;
    for (const Source& source : group) files.paths.push_back(source.path.string());
    const uint64_t timestamp = TimestampOf(files);
    if (!calls.wants(timestamp)) continue;
    Run run;
    run.name = NameOf(files.paths.front());
    run.inputs = files.paths;
    RETURN_IF_ERROR(ReadAll(group, progress, {}, &run));
    RETURN_IF_ERROR(calls.take(run, timestamp));
  }
  return {};
}

}  // namespace profd::analysis
