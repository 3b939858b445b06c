#include "client/serve/mindinsight.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>

#include "analysis/run.h"

namespace profd::client {
namespace {

using analysis::Pipeline;

class MindInsightTest : public ::testing::Test {
 protected:
  MindInsightTest() { run_.ranks.push_back(std::make_unique<analysis::Rank>()); }
  analysis::Rank& rank() { return *run_.ranks.front(); }

  WebAnswer AnswerOf(std::string_view path, const std::map<std::string, std::string>& query, const std::string& body = "") {
    WebRequest request;
    request.method = body.empty() ? "GET" : "POST";
    request.query = query;
    request.body = body;
    auto answer = AnswerAsMindInsight(path, request, run_);
    EXPECT_TRUE(answer.has_value()) << path;
    return std::move(answer).value_or(WebAnswer{});
  }
  Json Ask(std::string_view path, const std::map<std::string, std::string>& query, const std::string& body = "") {
    return Json::parse(AnswerOf(path, query, body).body, nullptr, false);
  }
  int StatusOf(std::string_view path, const std::map<std::string, std::string>& query, const std::string& body = "") {
    return AnswerOf(path, query, body).status;
  }

  void Add(int64_t id, std::string type, std::vector<int64_t> children, bool queue) {
    Pipeline::Operator op;
    op.id = id;
    op.type = std::move(type);
    op.workers = 4;
    op.children = std::move(children);
    if (queue) {
      op.queue_length = 10;
      op.queue_sizes = {2, 4};
    }
    rank().pipeline.operators.push_back(std::move(op));
  }

  analysis::Run run_;
};

TEST_F(MindInsightTest, OperatorsWithoutAQueueArePassedOver) {
  rank().pipeline.sampling_ms = 10;
  Add(0, "Batch", {1}, false);
  Add(1, "Rename", {2}, false);
  Add(2, "Zip", {3, 4}, false);
  Add(3, "Map", {5}, true);
  Add(4, "TFReader", {}, true);
  Add(5, "Shuffle", {}, true);
  const Json got = Ask("minddata-pipeline/op-queue", {}, R"({"filter_condition": {"is_display_op_detail": true}})");
  EXPECT_EQ(got["col_name"], Json::parse(R"(["op_id", "op_type", "num_workers", "output_queue_size", "output_queue_average_size", "output_queue_length",
                                            "output_queue_usage_rate", "sample_interval", "parent_id", "children_id"])"));
  EXPECT_EQ(got["object"], Json::parse(R"([[0, "Batch", 4, null, null, null, null, 10, null, [3, 4]], [3, "Map", 4, [2.0, 4.0], 3.0, 10, 0.3, 10, 0, [5]],
                                          [4, "TFReader", 4, [2.0, 4.0], 3.0, 10, 0.3, 10, 0, null], [5, "Shuffle", 4, [2.0, 4.0], 3.0, 10, 0.3, 10, 3, null]])"));
  EXPECT_EQ(got["size"], 4);
  const Json brief = Ask("minddata-pipeline/op-queue", {}, R"({"filter_condition": {"op_id": {"in": [3]}}})");
  EXPECT_EQ(brief["object"], Json::parse(R"([[3, "Map", 3.0, 10, 0.3, 10, 0, [5]]])"));
  EXPECT_EQ(brief["col_name"].size(), 8u);
  const Json queue = Ask("minddata-pipeline/queue", {{"op_id", "3"}});
  EXPECT_EQ(queue["parent_op"], Json::parse(R"({"op_id": 0, "op_type": "Batch", "num_workers": 4})"));
  EXPECT_EQ(queue["queue_info"]["sample_interval"], 10);
  const Json root = Ask("minddata-pipeline/queue", {{"op_id", "0"}});
  EXPECT_EQ(root["current_op"]["op_type"], "Batch");
  EXPECT_TRUE(root["parent_op"].is_null() && root["queue_info"].is_null());
}

// Files are not trusted.
TEST_F(MindInsightTest, PipelinesThatGoRound) {
  Add(0, "Batch", {1, 0}, true);
  Add(1, "Map", {0, 1, 7}, false);
  EXPECT_EQ(Ask("minddata-pipeline/op-queue", {}, "{}")["size"], 1);
}

TEST_F(MindInsightTest, NoGapBeforeAReduceThatBeginsEarlier) {
  analysis::Step step{1, 0, 10'000'000, 1'000'000, 8'000'000, {}};
  step.reduces.push_back({rank().Text("stream_3_0"), 2'000'000, 6'000'000});
  step.reduces.push_back({rank().Text("stream_3_1"), 3'000'000, 5'000'000});
  rank().steps.push_back(step);
  const Json line = Ask("training-trace/graph", {{"type", "1"}})["training_trace_graph"][2];
  ASSERT_EQ(line.size(), 5u);
  EXPECT_EQ(line[2], Json::parse(R"({"name": "", "start": 6.0, "duration": 0.0})"));
  EXPECT_EQ(line[3], Json::parse(R"({"name": "stream_3_1", "start": 3.0, "duration": 2.0})"));
  EXPECT_EQ(line[4], Json::parse(R"({"name": "", "start": 6.0, "duration": 4.0})"));
}

TEST_F(MindInsightTest, StreamsOfReducesByTheirNumber) {
  analysis::Step step{1, 0, 10'000'000, 0, 8'000'000, {}};
  for (const auto& [name, start] : {std::pair("stream_36_0_AllReduce-op4542", 1'000'000), std::pair("stream_36_1_AllReduce-op4543", 3'000'000),
                                    std::pair("stream_7_parallel_0", 5'000'000)}) {
    step.reduces.push_back({rank().Text(name), start, start + 1'000'000});
  }
  rank().steps.push_back(step);
  const Json graph = Ask("training-trace/graph", {{"type", "1"}})["training_trace_graph"];
  ASSERT_EQ(graph.size(), 4u) << "a line for each stream";
  EXPECT_EQ(graph[2].size(), 5u) << "two reduces and the gaps around them";
  const int32_t op = rank().OperatorOf(rank().Text("Default/Mul-op1"), rank().Text("Mul"), rank().Text("AI_CORE"));
  rank().operators[0].input_shapes = rank().Text("2,3;4");
  rank().operators[0].output_shapes = rank().Text("5");
  rank().executions.push_back({0, 1000, op, rank().LaneOf("Ascend Hardware", "Stream 9")});
  const Json events = Ask("timeline", {});
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["tid"], 36);
  EXPECT_EQ(events[3]["tid"], 9);
  EXPECT_EQ(events[3]["args"], Json::parse(R"({"type": "Mul", "fullname": "Default/Mul-op1", "input_0": {"shape": "2,3"}, "input_1": {"shape": "4"}, "output_0": {"shape": "5"}})"));
}

// Steps may begin before it, and what assigns does not count (analysis 4.2).
TEST_F(MindInsightTest, TheTimelineBeginsWithTheFirstOperator) {
  analysis::Step step{1, 1'000, 90'000, 2'000, 80'000, {}};
  step.reduces.push_back({rank().Text("stream_7_parallel_0"), 30'000, 40'000});
  rank().steps.push_back(step);
  const int32_t lane = rank().LaneOf("Ascend Hardware", "Stream 9");
  for (const auto& [name, start] : {std::pair("assign_1", 10'000), std::pair("Default/Mul-op1", 20'000), std::pair("Default/Mul-op2", 50'000)}) {
    const int32_t op = rank().OperatorOf(rank().Text(name), rank().Text("Mul"), rank().Text("AI_CORE"));
    rank().executions.push_back({start, start + 5'000, op, lane});
  }
  const Json events = Ask("timeline", {});
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["ts"], 10.0);
  EXPECT_EQ(events[1]["ts"], -10.0);
  EXPECT_EQ(events[2]["ts"], 0.0);
  EXPECT_EQ(events[3]["ts"], 30.0);
}

// Analysis 4.2 and 4.5.
TEST_F(MindInsightTest, WhatIsNotThereIsAnError) {
  rank().steps.push_back({1, 0, 10'000'000, 0, 8'000'000, {}});
  const std::string search = "ops/search";
  EXPECT_EQ(StatusOf("devices", {{"device_id", "7"}}), 200) << "no rank has the number of a device";
  rank().device = 1;
  EXPECT_EQ(StatusOf("training-trace/graph", {{"device_id", "1"}, {"type", "1"}}), 200);
  EXPECT_EQ(StatusOf("training-trace/graph", {{"device_id", "7"}, {"type", "1"}}), 404);
  EXPECT_EQ(StatusOf(search, {}, R"({"device_id": "7"})"), 404);
  EXPECT_EQ(StatusOf(search, {}, R"({"device_id": 1, "op_type": "aicpu_detail"})"), 200);
  EXPECT_EQ(StatusOf(search, {}, R"({"device_id": null, "op_type": "aicpu_detail"})"), 200);
  // Two nodes have a device 1 each.
  run_.ranks.push_back(std::make_unique<analysis::Rank>());
  run_.ranks.back()->device = 1;
  EXPECT_EQ(StatusOf("training-trace/graph", {{"device_id", "1"}, {"type", "1"}}), 400);
  EXPECT_EQ(StatusOf("training-trace/graph", {{"type", "1"}}), 200) << "the first rank";
  run_.ranks.pop_back();
  for (const char* type : {R"("gpu_op_type")", R"("zzz")", "3"}) {
    EXPECT_EQ(StatusOf(search, {}, fmt::format(R"({{"op_type": {}}})", type)), 400) << type;
  }
  for (const auto& [group, status] : {std::pair(R"({"limit": 1, "offset": 0})", 200), std::pair(R"({"limit": 100, "offset": 1000000})", 200), std::pair(R"({"limit": 0})", 400),
                                      std::pair(R"({"limit": 101})", 400), std::pair(R"({"limit": "a"})", 400), std::pair(R"({"offset": 1000001})", 400),
                                      std::pair(R"({"offset": -1})", 400), std::pair("[]", 400)}) {
    for (const char* path : {"ops/search", "minddata-pipeline/op-queue"}) {
      EXPECT_EQ(StatusOf(path, {}, fmt::format(R"({{"op_type": "aicore_type", "group_condition": {}}})", group)), status) << path << group;
    }
  }
  for (const auto& [type, status] : {std::pair("", 200), std::pair("0", 200), std::pair("1", 200), std::pair("abc", 400), std::pair("-1", 400), std::pair("11", 400)}) {
    EXPECT_EQ(StatusOf("training-trace/graph", {{"type", type}}), status) << type;
  }
  EXPECT_EQ(StatusOf("training-trace/target-time-info", {{"type", "tail"}}), 200);
  EXPECT_EQ(StatusOf("training-trace/target-time-info", {{"type", "xx"}}), 400);
  EXPECT_EQ(StatusOf("queue_info", {{"type", "device_queue"}}), 200);
  EXPECT_EQ(StatusOf("queue_info", {{"type", "xx"}}), 400);
}

// Analysis 4.2: what is not understood is no result. The message names what was asked for.
TEST_F(MindInsightTest, ConditionsThatAreNotUnderstoodAreErrors) {
  Add(0, "Batch", {1}, false);
  Add(1, "Map", {}, true);
  const std::string search = "ops/search";
  const std::string pipeline = "minddata-pipeline/op-queue";
  for (const auto& [path, condition, names] :
       {std::tuple(search, R"("filter_condition": {"op_type": {"like": ["a"]}})", "like"), std::tuple(search, R"("filter_condition": {"nocol": {"in": ["a"]}})", "nocol"),
        std::tuple(search, R"("filter_condition": "x")", "filter_condition"), std::tuple(search, R"("filter_condition": {"op_type": {"in": "Cast"}})", "Cast"),
        std::tuple(search, R"("filter_condition": {"op_type": ["Cast"]})", "op_type"), std::tuple(search, R"("filter_condition": {"is_display_detail": 3})", "is_display_detail"),
        std::tuple(search, R"("sort_condition": {"name": "nocol"})", "nocol"), std::tuple(search, R"("sort_condition": {"name": "op_type", "type": "sideways"})", "sideways"),
        std::tuple(search, R"("sort_condition": [])", "sort_condition"), std::tuple(pipeline, R"("filter_condition": {"nocol": {"in": ["a"]}})", "nocol"),
        std::tuple(pipeline, R"("filter_condition": {"is_display_op_detail": "yes"})", "yes"), std::tuple(pipeline, R"("sort_condition": {"name": "execution_time"})", "execution_time")}) {
    const WebAnswer answer = AnswerOf(path, {}, fmt::format(R"({{"op_type": "aicore_type", {}}})", condition));
    EXPECT_EQ(answer.status, 400) << path << condition;
    EXPECT_NE(answer.body.find(names), std::string::npos) << answer.body;
  }
  EXPECT_NE(AnswerOf(search, {}, "{}").body.find("op_type is missing"), std::string::npos);
  EXPECT_EQ(StatusOf(search, {}, "{}"), 400);
  for (const char* id : {"99", "x", ""}) EXPECT_EQ(StatusOf("minddata-pipeline/queue", {{"op_id", id}}), 400) << id;
  EXPECT_EQ(StatusOf("minddata-pipeline/queue", {}), 400);
  EXPECT_EQ(StatusOf("minddata-pipeline/queue", {{"op_id", "1"}}), 200);
}

// What MindInsight's validator takes and its page and scripts send.
TEST_F(MindInsightTest, ConditionsOfMindInsightAreTaken) {
  for (const char* condition : {R"("filter_condition": {})", R"("filter_condition": {"op_type": {}})", R"("filter_condition": {"op_type": {"in": []}, "op_name": {"partial_match_str_in": ["a"]}})",
                                R"("filter_condition": {"op_type": {"not_in": ["a"]}, "is_display_detail": false, "is_display_full_op_name": false})", R"("sort_condition": {})",
                                R"("sort_condition": {"name": "op_type"})", R"("sort_condition": {"name": "op_type", "type": "ascending"})",
                                R"("sort_condition": {"name": "op_type", "type": "descending"})", R"("sort_condition": {"name": "op_type", "type": null})"}) {
    for (const char* type : {"aicore_type", "aicore_detail", "aicpu_type", "aicpu_detail"}) {
      EXPECT_EQ(StatusOf("ops/search", {}, fmt::format(R"({{"op_type": "{}", {}}})", type, condition)), 200) << type << condition;
    }
  }
  for (const char* condition : {R"("filter_condition": {"op_id": {"in": [1]}, "op_type": {"in": ["Map"]}, "is_display_op_detail": false})",
                                R"("sort_condition": {"name": "num_workers", "type": "descending"})"}) {
    EXPECT_EQ(StatusOf("minddata-pipeline/op-queue", {}, fmt::format("{{{}}}", condition)), 200) << condition;
  }
}

// docs/analysis.md: each is {"error": {"code", "message"}}, with MindInsight's error_msg beside it.
TEST_F(MindInsightTest, ErrorsHaveOneForm) {
  rank().device = 1;
  for (const auto& [path, query, body, status, code] :
       {std::tuple("ops/search", "", "", 405, "invalid_argument"), std::tuple("devices", "", "{}", 405, "invalid_argument"),
        std::tuple("ops/search", "", "[1]", 400, "invalid_argument"), std::tuple("ops/search", "", R"({"op_type": 7})", 400, "invalid_argument"),
        std::tuple("devices", "7", "", 404, "not_found"), std::tuple("devices", "\xff\"<", "", 404, "not_found")}) {
    const WebAnswer answer = AnswerOf(path, {{"device_id", query}}, body);
    EXPECT_EQ(answer.status, status) << path << body;
    EXPECT_EQ(answer.type, "application/json");
    const Json error = Json::parse(answer.body, nullptr, false);
    ASSERT_TRUE(error.is_object()) << answer.body;
    EXPECT_EQ(error["error"]["code"], code);
    EXPECT_FALSE(error["error"]["message"].get<std::string>().empty());
    EXPECT_EQ(error["error_msg"], error["error"]["message"]);
  }
}

// A body of the longest that the server takes would need more than a thread's stack.
TEST_F(MindInsightTest, DeepBodiesAreRefused) {
  const auto nested = [](size_t depth) { return R"({"op_type": "aicore_type", "device_id": )" + std::string(depth, '[') + std::string(depth, ']') + "}"; };
  EXPECT_EQ(StatusOf("ops/search", {}, nested(30'000)), 400);
  EXPECT_EQ(StatusOf("ops/search", {}, nested(10)), 200) << "no rank has the number of a device";
}

// As real framework_raw_1.csv has Mul-op182: a scalar is an input like others.
TEST_F(MindInsightTest, TensorsOfAnOperator) {
  const int32_t op = rank().OperatorOf(rank().Text("Gradients/x/Mul-op182"), rank().Text("Mul"), rank().Text("AI_CORE"));
  analysis::Operator& mul = rank().operators[static_cast<size_t>(op)];
  mul.input_shapes = rank().Text(";16000,2496");
  mul.input_types = rank().Text("NUMBER_TYPE_FLOAT32;NUMBER_TYPE_FLOAT16");
  mul.input_formats = rank().Text("DefaultFormat;FRACTAL_NZ");
  mul.output_shapes = rank().Text("");
  mul.output_types = rank().Text("NUMBER_TYPE_FLOAT32");
  mul.output_formats = rank().Text("DefaultFormat");
  rank().executions.push_back({0, 2000, op, rank().LaneOf("Ascend Hardware", "Stream 9")});
  const Json info = Json::parse(R"({"input_0": {"format": "DefaultFormat", "data_type": "NUMBER_TYPE_FLOAT32", "shape": ""},
                                    "input_1": {"format": "FRACTAL_NZ", "data_type": "NUMBER_TYPE_FLOAT16", "shape": "16000,2496"},
                                    "output_0": {"format": "DefaultFormat", "data_type": "NUMBER_TYPE_FLOAT32", "shape": ""}})");
  const Json rows = Ask("ops/search", {}, R"({"op_type": "aicore_detail"})")["object"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0], Json::array({"Mul-op182", "Mul", 0.002, "Gradients", "Gradients/x/Mul-op182", info}));
  const Json events = Ask("timeline", {});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["args"]["input_0"], info["input_0"]);
  EXPECT_EQ(events[0]["args"]["output_0"], info["output_0"]);
}

TEST_F(MindInsightTest, DetailsAndFullNamesAreLeftOutOnRequest) {
  const int32_t op = rank().OperatorOf(rank().Text("Default/x/Mul-op1"), rank().Text("Mul"), rank().Text("AI_CORE"));
  rank().executions.push_back({0, 2000, op, rank().LaneOf("Ascend Hardware", "Stream 9")});
  const auto ask = [this](const std::string& filter) { return Ask("ops/search", {}, R"({"op_type": "aicore_detail", "filter_condition": )" + filter + "}"); };
  const Json brief = ask(R"({"is_display_detail": false, "is_display_full_op_name": false})");
  EXPECT_EQ(brief["col_name"], Json::parse(R"(["op_name", "op_type", "avg_execution_time", "subgraph"])"));
  EXPECT_EQ(brief["object"], Json::parse(R"([["Mul-op1", "Mul", 0.002, "Default"]])"));
  EXPECT_EQ(ask(R"({"is_display_detail": false, "is_display_full_op_name": true})")["object"], Json::parse(R"([["Mul-op1", "Mul", 0.002, "Default", "Default/x/Mul-op1"]])"));
  EXPECT_EQ(ask(R"({"is_display_full_op_name": false})")["col_name"].back(), "op_info");
  EXPECT_EQ(Ask("ops/search", {}, R"({"op_type": "aicore_type", "filter_condition": {"is_display_detail": false}})")["col_name"].size(), 4u);
}

}  // namespace
}  // namespace profd::client
