// Input: what a database answers that should hold a run: text whose lines "=== TABLE" each begin the rows of an answer,
// as JSON, or all of the answer if it begins with "{". Several of one table are answered by turns. Whatever it answers,
// the run is analysed, or said why not; what the page draws lies within its time.
#include <map>
#include <string>
#include <vector>

#include "analysis/checks/advise.h"
#include "analysis/report.h"
#include "analysis/store/fetch.h"
#include "analysis/store/overview.h"
#include "analysis/views/views.h"
#include "tests/fuzz/analysed_rank.h"
#include "tests/fuzz/file_tree.h"

namespace profd::analysis {
namespace {

class Answers : public StoreServer {
 public:
  explicit Answers(std::string_view text) {
    fuzz::ForEachFile(text, [this](std::string_view table, std::string_view rows) { tables_[std::string(table)].push_back(rows); });
  }

  Result<std::string> Send(std::string_view statement, std::string_view) override {
    const size_t from = statement.find(" FROM db.");
    FUZZ_EXPECT(from != std::string_view::npos);
    const std::string_view rest = statement.substr(from + std::string_view(" FROM db.").size());
    const std::string table(rest.substr(0, rest.find(' ')));
    const auto found = tables_.find(table);
    if (found == tables_.end()) return std::string(R"({"data": []})");
    const std::string_view rows = found->second[asked_[table]++ % found->second.size()];
    if (rows.starts_with('{')) return std::string(rows);
    return R"({"meta": [], "data": )" + std::string(rows) + R"(, "statistics": {"elapsed": 1, "rows_read": 2, "bytes_read": 3}})";
  }
  const std::string& database() const override { return database_; }
  void Pause(int) override {}

 private:
  std::string database_ = "db";
  std::map<std::string, std::vector<std::string_view>> tables_;
  std::map<std::string, size_t> asked_;
};

void Fetch(std::string_view text, bool complete) {
  Answers server(text);
  FetchRequest request;
  request.run = "run";
  request.complete = complete;
  const Result<Run> run = FetchRun(&server, request);
  if (!run.ok()) {
    FUZZ_EXPECT(!run.status().message().empty());
    return;
  }
  for (const auto& rank : run->ranks) CheckRank(*rank);
  FUZZ_EXPECT(!RunJson(*run, {}).dump(-1, ' ', true, Json::error_handler_t::replace).empty());
  if (complete) FUZZ_EXPECT(PackedJson(PageData(*run, &*run, Advise(*run, nullptr, Limits()), 1000, 1767225600)).ok());
}

}  // namespace
}  // namespace profd::analysis

void profd::fuzz::Run(Input input) {
  const std::string_view text = input.rest();
  analysis::Fetch(text, true);
  analysis::Fetch(text, false);
  analysis::Answers server(text);
  const auto overview = analysis::StoreOverview(&server, "run", {});
  FUZZ_EXPECT(overview.ok() || !overview.status().message().empty());
}
