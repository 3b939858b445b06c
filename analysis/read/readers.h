// What a run is read from: a reader per kind of directory or file. Each fills a rank with what is there; what cannot be
// read is a problem and costs itself only. Everything in the files is untrusted.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rank.h"
#include "analysis/run.h"
#include "base/fd.h"
#include "base/status.h"

namespace profd::exporting {
struct Event;
struct StepSpan;
}  // namespace profd::exporting

namespace profd::analysis {

struct ReadContext {
  std::vector<Problem>* problems = nullptr;
  const Progress* progress = nullptr;  // may be empty
  ReadDetail detail = {};

  void AddProblem(const std::filesystem::path& of, std::string what) const { problems->push_back({of.string(), std::move(what)}); }
  // None where it is ok.
  void AddProblem(const std::filesystem::path& of, const Status& status) const {
    if (!status.ok()) AddProblem(of, status.message());
  }
};

using Ranks = std::vector<std::unique_ptr<Rank>>;

// What a directory holds of the kinds below.
enum class SourceKind : uint8_t {
  kDump, kText, kDatabase, kMindSpore, kCluster,
  kEmpty,  // a profiler's output directory without what any reader knows: only a problem
};
struct Source {
  SourceKind kind = SourceKind::kDump;
  std::filesystem::path path;
  std::vector<std::string> left_out = {};  // of earlier exports beside it
};
// All at `path` and below, to a depth of a few directories; links below it are not followed.
std::vector<Source> FindSources(const std::filesystem::path& path);

// Dumps of profd and raw PROF directories, all of them together: a session's and those of its processes are one rank.
Status ReadDumps(const std::vector<std::filesystem::path>& dumps, const ReadContext& context, Ranks* ranks);

// `ASCEND_PROFILER_OUTPUT` and `mindstudio_profiler_output` with CSV and JSON.
Status ReadProfilerOutput(const std::filesystem::path& directory, const ReadContext& context, Ranks* ranks);
bool IsProfilerOutput(const std::filesystem::path& directory);
// The tables of an export of what profd recorded itself; there may be dumps beside them, which have more.
bool HasRecordedTables(const std::filesystem::path& directory);

// `ascend_pytorch_profiler_<rank>.db`, `msprof_<timestamp>.db`, ...: one rank per device.
Status ReadDatabase(const std::filesystem::path& file, const ReadContext& context, Ranks* ranks);
bool IsDatabase(const std::filesystem::path& file);
// Its counters of the device, and of the host.
class Database;
class CheckedNumbers;
class TraceCounters;
void ReadDatabaseCounters(const Database& database, const std::string& where, int device, const ReadContext& context,
                          CheckedNumbers* numbers, Rank* rank);
// Its steps: of an export of ours those that the dumps have, with their parts, else those of the framework. Executions are
// there already.
void ReadDatabaseSteps(const Database& database, const std::string& where, int device, const ReadContext& context, Rank* rank);
// `analysis.db` beside it: what is added to a rank that was read.
void ReadAnalysisDatabase(const std::filesystem::path& file, const ReadContext& context, Rank* rank);

// MindSpore's raw logs up to 1.x, and the logs of its input pipeline: one rank per device.
Status ReadMindSpore(const std::filesystem::path& directory, const ReadContext& context, Ranks* ranks);
bool IsMindSpore(const std::filesystem::path& directory);

// `cluster_analysis_output`: one rank for each that was analysed. Only where the ranks themselves are not there.
inline constexpr std::string_view kClusterSteps = "cluster_step_trace_time.csv";
inline constexpr std::string_view kClusterDatabase = "cluster_analysis.db";
inline constexpr std::string_view kClusterSource = "cluster analysis";  // Rank::source
Status ReadCluster(const std::filesystem::path& directory, const ReadContext& context, Ranks* ranks);
bool IsCluster(const std::filesystem::path& directory);

// Parts of several readers.

// Steps of a device as the events of a dump report them, but those whose numbers the rank has; `events`: iterations and steps
// of devices, which have parts.
void AddSteps(const std::vector<exporting::StepSpan>& spans, const std::vector<exporting::Event>& events, int device, Rank* rank);

// Of the files of several exports in one directory those of the newest, in their order; `left_out` (may be null) gets
// the names of the others. The 14 digits of a file's time say which export it is of; slices of one export may have
// different ones.
std::vector<std::filesystem::path> NewestOf(const std::vector<std::filesystem::path>& files,
                                            std::vector<std::string>* left_out);
// Slices are numbered from 0. A problem if those from `next` on are missing before `file`, which is `number`.
void ReportMissingSlices(uint64_t next, uint64_t number, const std::filesystem::path& file, const ReadContext& context);
// The same of all slices of an export.
void ReportMissingSlices(const std::vector<std::filesystem::path>& files, const ReadContext& context);
// The problem that it is.
std::string EarlierExports(const std::vector<std::string>& left_out);

// What MindInsight made of MindSpore's raw logs, of a device.
void ReadMindInsight(const std::filesystem::path& directory, int device, const ReadContext& context, Rank* rank);

// communication.json and communication_matrix.json, from their text.
void ReadCommunication(std::string_view json, std::string_view where, const ReadContext& context, Rank* rank);
void ReadCommunicationMatrix(std::string_view json, std::string_view where, const ReadContext& context, Rank* rank);
// The same of a cluster, where they are by rank; null: no such rank.
using RankOf = std::function<Rank*(std::string_view number)>;
void ReadClusterCommunication(std::string_view json, std::string_view where, const ReadContext& context, const RankOf& rank_of);
void ReadClusterMatrix(std::string_view json, std::string_view where, const ReadContext& context, const RankOf& rank_of);
// What a table has of an operation, but its times.
struct OperationKey {
  std::string_view name;
  std::string_view group;
  int64_t step = -1;
  bool p2p = false;
};
Collective CollectiveOf(const OperationKey& key, Rank* rank);

// "hcom_allReduce_" of "hcom_allReduce__586_0_1"
std::string_view CollectiveTypeOf(std::string_view name);
bool IsSend(std::string_view name);
bool IsSendOrReceive(std::string_view name);
// Of the links of an operation: of one of its executions, not of all.
bool IsPartOfTotal(std::string_view name);
// Number of "step12"; -1: there is none.
int64_t StepNumberOf(std::string_view text);
// None: out of range.
std::optional<int64_t> MicrosAsNs(double us);
// How many packets a file reports; not more than any file has.
uint64_t CountOf(double count);
// One size of packets of an operation, as a database has a row of it; with a count of 0 only the transport.
struct TransportRow {
  std::string_view name;
  double size_mb = 0;
  double time_ms = 0;
  double large_ratio = 0;
};
void AddPackets(const TransportRow& transport, const PacketSize& size, Collective* op);
// trace_view.json or msprof_<timestamp>.json. `kernels`: executions are read from it too.
void ReadTrace(const std::filesystem::path& file, bool kernels, const ReadContext& context, TraceCounters* counters, Rank* rank);
// What the input pipeline of a device left in the directory.
void ReadPipeline(const std::filesystem::path& directory, int device, const ReadContext& context, Rank* rank);
// profiler_info_<rank>.json and profiler_metadata.json beside an output.
void ReadProfilerInfo(const std::filesystem::path& directory, const ReadContext& context, Rank* rank);
// PROF_*/device_<n>/info.json.<n> beside an output: how many cores the device has, and how fast they are.
void ReadDeviceFacts(const std::filesystem::path& directory, const ReadContext& context, Rank* rank);
// PROF_*/host/sqlite/ge_info.db beside an output: states of shapes of CANN before 8, whose tables of kernels have none.
void ReadShapeStates(const std::filesystem::path& directory, const ReadContext& context, Rank* rank);
// A value of profiler_metadata.json or META_DATA, as JSON: ENV_VARIABLES, parallel_group_info, distributed_args.
void AddMetadata(std::string_view name, std::string_view json, Rank* rank);
// The text of profiler_info_<rank>.json; false: it is no object.
bool AddProfilerInfo(std::string_view json, Rank* rank);

// With the names that "." and ".." stand for, without a '/' behind.
std::filesystem::path NamedPathOf(const std::filesystem::path& path);
inline std::filesystem::path AboveOf(const std::filesystem::path& path) { return NamedPathOf(path).parent_path(); }

// A unit's share of the core's time: none works that many times as long as the core; some writers may mean percent.
inline constexpr double kMostRatio = 100;

// Shapes and types of tensors, which some writers quote once more; empty: "N/A".
inline std::string_view Unquoted(std::string_view text) {
  if (text.size() > 1 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text == "N/A" ? std::string_view() : text;
}

// A plain file to read from: a pipe would wait for its writer. Errors do not name it.
Result<UniqueFd> OpenPlain(const std::filesystem::path& file, int flags = 0);

// Levels of JSON that are read; deeper files are refused, since values are copied and printed recursively.
inline constexpr int kDeepestJson = 64;

// The complete file; an error where it has more than `most` bytes. Errors do not name it: callers say which.
Result<std::string> ReadWhole(const std::filesystem::path& file, uint64_t most);

}  // namespace profd::analysis
