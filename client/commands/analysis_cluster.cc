// The ranks of a run beside each other.
#include <algorithm>
#include <functional>
#include <vector>

#include "client/commands/analysis_tables.h"
#include "client/commands/analyze.h"

namespace profd::client {
namespace {

// Of an object in a row: its field.
Column Part(std::string heading, const char* object, const char* name) {
  return {">" + std::move(heading), [object, name](const Json& row) {
            const auto found = row.find(object);
            return found == row.end() || !found->is_object() ? "-" : Number(*found, name);
          }};
}
Column Count(std::string heading, const char* list) {
  return {">" + std::move(heading), [list](const Json& row) { return std::to_string(row[list].size()); }};
}

}  // namespace

void PrintCluster(const Io& io, const Json& cluster) {
  // Of many the first rows are shown: those that others wait for.
  std::vector<Json> ranks(cluster["rank_times"].begin(), cluster["rank_times"].end());
  if (ranks.size() > kMostRanksInFull) {
    std::ranges::stable_sort(ranks, std::greater<>(), [](const Json& rank) { return rank["others_wait_ms"].is_number() ? rank["others_wait_ms"].get<double>() : 0; });
  }
  PrintList(io, "Steps over all ranks, ms", cluster["steps"],
            {Plain("STEP", "step"), Plain(">RANKS", "ranks"), Part("COMPUTING, MIN", "computing_ms", "min"), Part("MEAN", "computing_ms", "mean"),
             Part("MAX", "computing_ms", "max"), {">OF RANK", [](const Json& row) { return Text(row["computing_ms"], "max_rank"); }},
             Part("NOT OVERLAPPED, MEAN", "uncovered_communication_ms", "mean"), Part("MAX", "uncovered_communication_ms", "max"),
             Part("FREE, MEAN", "free_ms", "mean"), Part("MAX", "free_ms", "max")});
  PrintList(io, "Ranks, ms of a step", Json(ranks),
            {Plain("RANK", "rank"), Plain("HOST", "host"), Plain("STAGE", "stage"), Ms("COMPUTING", "computing_ms"), Ms("NOT OVERLAPPED", "uncovered_communication_ms"),
             Ms("FREE", "free_ms"), Ms("WAITS FOR OTHERS", "waits_ms"), Ms("OTHERS WAIT FOR IT", "others_wait_ms"), Plain(">LAST OF", "last_of"),
             Plain(">OUTLIER OF", "votes"), Plain(">OPERATIONS", "operations")});
  PrintList(io, "Stages of the pipeline, ms of a step", cluster["stages"],
            {Plain("STAGE", "stage"), Count("RANKS", "ranks"), Part("COMPUTING, MEAN", "computing_ms", "mean"), Part("MAX", "computing_ms", "max"),
             Part("NOT OVERLAPPED, MEAN", "uncovered_communication_ms", "mean"), Part("FREE, MEAN", "free_ms", "mean")});
  PrintList(io, "Who waits for whom", cluster["waits"],
            {Plain("STEP", "step"), Plain(">RANK", "rank"), Plain("HOST", "host"), Plain(">WAITS FOR RANK", "for_rank"), Plain("HOST", "for_host"), Ms("MS", "wait_ms"),
             Plain(">OPERATIONS", "operations")});
  PrintList(io, "Operations that differ from others of their type and size", cluster["slow_operations"],
            {Plain("OPERATION", "operation"), Plain("GROUP", "group"), Plain("STEP", "step"), Plain(">RANKS", "ranks"), Ms("MB", "size_mb"), Ms("MS", "transit_ms"),
             Ms("MEAN", "mean_ms"), Ms("DEVIATIONS", "score")});
  PrintList(io, "Links between ranks, slowest beside their mean first", cluster["pairs"],
            {Plain(">FROM", "src"), Plain("HOST", "src_host"), Plain(">TO", "dst"), Plain("HOST", "dst_host"), Plain("TRANSPORT", "transport"), Ms("GB/s", "bandwidth_gb_s"),
             Ms("MEAN", "mean_gb_s"), Ms("DEVIATIONS", "score")});
  PrintList(io, "Load of experts, a step", cluster["experts"],
            {Plain("GROUP", "group"), Plain(">RANK", "rank"), Plain("HOST", "host"), Ms("MB", "size_mb"), Ms("MS", "transit_ms"),
             {">BESIDE MEAN", [](const Json& row) { return Share(row, "beside_mean"); }}});
}

}  // namespace profd::client
