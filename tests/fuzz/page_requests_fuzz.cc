// Input: a request to profctl serve: a byte that says whether a token is asked for, the first line's method and target,
// headers, an empty line, the body. It is answered, by the page of a folder without runs and as MindInsight's calls of a
// run with something of everything; answers are text that JSON can hold.
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "client/serve/mindinsight.h"
#include "client/serve/run_store.h"
#include "client/serve/site.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::client {
namespace {

using analysis::kNoText;
using analysis::Rank;

void AddPipeline(Rank* rank) {
  analysis::Pipeline& pipeline = rank->pipeline;
  pipeline.host = analysis::Pipeline::Queue{8, {1, 0, 8}};
  pipeline.device = analysis::Pipeline::Queue{std::nullopt, {0, 1.5, 2}};
  pipeline.get_next_ms = {0.5, 1};
  pipeline.total_ms = pipeline.push_ms = pipeline.get_ms = {2, 3};
  pipeline.operators.push_back({0, "Batch", 2, 8, {1, 7}, std::nullopt, {1}, std::nullopt});
  pipeline.operators.push_back({1, "Map", 4, std::nullopt, {}, 0, {}, std::nullopt});
}

analysis::Run SomeRun() {
  analysis::Run run;
  run.name = "run";
  for (int number = 0; number < 2; ++number) {
    auto rank = std::make_unique<Rank>();
    rank->rank = rank->device = number;
    const int32_t lane = rank->LaneOf("Ascend Hardware", "Stream 1");
    for (int i = 0; i < 8; ++i) {
      const int32_t op = rank->OperatorOf(i < 6 ? rank->Text("net/layer" + std::to_string(i % 3) + "/MatMul") : kNoText, rank->Text(i % 2 == 0 ? "MatMul" : "Add"),
                                          rank->Text("AI_CORE"), rank->Text("[1,2]"));
      rank->executions.push_back({1000 + i * 1000, 1800 + i * 1000, op, lane});
    }
    for (int i = 0; i < 3; ++i) {
      analysis::Step& step = rank->steps.emplace_back();
      step.number = i + 1;
      step.start_ns = 1000 + i * 3000;
      step.end_ns = step.start_ns + 3000;
      if (i > 0) step.fp_ns = step.start_ns + 100;
      if (i > 0) step.bp_ns = step.start_ns + 2000;
      step.reduces.push_back({i < 2 ? rank->Text("stream_4_parallel_0") : kNoText, step.start_ns + 200, step.start_ns + 900});
    }
    rank->cpu_operators.push_back({rank->Text("Cast"), 0.5, 0.1, 100, 200});
    AddPipeline(rank.get());
    run.ranks.push_back(std::move(rank));
  }
  return run;
}

WebRequest RequestOf(std::string_view text) {
  WebRequest request;
  std::string_view line;
  NextLine(&text, &line);
  const size_t blank = std::min(line.find(' '), line.size());
  request.method = std::string(line.substr(0, blank));
  request.SetTarget(line.substr(std::min(blank + 1, line.size())));
  while (NextLine(&text, &line) && !line.empty()) {
    const size_t colon = std::min(line.find(": "), line.size());
    request.headers[std::string(line.substr(0, colon))] = std::string(line.substr(std::min(colon + 2, line.size())));
  }
  request.body = std::string(text);
  return request;
}

void Ask(std::string_view text, bool with_token) {
  static const SystemClock* clock = new SystemClock;
  static const analysis::Run* run = new analysis::Run(SomeRun());
  RunStore::Options options;
  options.clock = clock;
  RunStore store(options);
  Site site(&store, with_token ? "0123456789abcdef0123456789abcdef" : "");
  site.SetPort(9466);
  const WebRequest request = RequestOf(text);
  const WebAnswer answer = site.Answer(request);
  FUZZ_EXPECT(answer.status >= 200 && answer.status < 600);
  if (!request.path.starts_with(kMindInsightPrefix)) return;
  const auto figures = AnswerAsMindInsight(request.path.substr(kMindInsightPrefix.size()), request, *run);
  if (!figures || figures->status != 200) return;
  FUZZ_EXPECT(!Json::parse(figures->body, nullptr, false).is_discarded());
}

}  // namespace
}  // namespace profd::client

void profd::fuzz::Run(Input input) {
  const bool with_token = input.Take<uint8_t>() % 2 == 1;
  client::Ask(input.rest(), with_token);
}
