// Input: the files of a run that another program wrote (file_tree.h): outputs of frameworks' profilers, MindSpore's raw
// logs, databases. Whatever they hold, it is analysed, or said why not; what the page draws lies within its time.
#include "analysis/checks/advise.h"
#include "analysis/report.h"
#include "analysis/run.h"
#include "tests/fuzz/analysed_rank.h"
#include "tests/fuzz/file_tree.h"

namespace profd::analysis {
namespace {

void CheckDrawn(const Json& data) {
  if (data.is_null()) return;
  for (const Json& lane : data["lanes"]) {
    FUZZ_EXPECT(lane["start"].size() == lane["duration"].size() && lane["start"].size() == lane["name_id"].size());
    for (const Json& start : lane["start"]) FUZZ_EXPECT(start.get<int64_t>() >= 0);
    for (const Json& name : lane["name_id"]) FUZZ_EXPECT(name.get<size_t>() < data["names"].size());
  }
  for (const Json& flow : data["flows"]) {
    FUZZ_EXPECT(flow[1].get<size_t>() < data["lanes"][flow[0].get<size_t>()]["start"].size());
    FUZZ_EXPECT(flow[3].get<size_t>() < data["lanes"][flow[2].get<size_t>()]["start"].size());
  }
}

void Analyze(std::string_view text) {
  static fuzz::TreeDirectory* directory = new fuzz::TreeDirectory;
  directory->Clear();
  fuzz::ForEachFile(text, [&](std::string_view path, std::string_view content) { directory->Write(path, content); });
  Result<Run> run = LoadRun({directory->path()}, {});
  if (!run.ok()) {
    FUZZ_EXPECT(!run.status().message().empty());
    return;
  }
  for (const auto& rank : run->ranks) {
    CheckRank(*rank);
    for (const auto& series : rank->hardware) FUZZ_EXPECT(series->points.size() <= series->MostPoints());
  }
  const Json data = PageData(*run, &*run, Advise(*run, nullptr, Limits()), 1000, 1767225600);
  for (const Json& rank : data["ranks"]) CheckDrawn(rank["timeline_data"]);
  FUZZ_EXPECT(data["compare"]["difference_ms"] == 0.0);
  FUZZ_EXPECT(PackedJson(data).ok());
}

}  // namespace
}  // namespace profd::analysis

void profd::fuzz::Run(Input input) { analysis::Analyze(input.rest()); }
