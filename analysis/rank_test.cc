#include "analysis/rank.h"

#include <gtest/gtest.h>

#include "analysis/report.h"
#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

TEST(SeriesTest, KeepsMeansWhereThereAreTooManySamples) {
  Series series;
  constexpr size_t kSamples = Series::kMaxPoints * 5;
  for (size_t i = 0; i < kSamples; ++i) series.Add(static_cast<int64_t>(i), static_cast<double>(i));
  EXPECT_EQ(series.count, kSamples);
  EXPECT_EQ(series.min, 0);
  EXPECT_EQ(series.max, kSamples - 1);
  EXPECT_LE(series.points.size(), Series::kMaxPoints);
  EXPECT_GT(series.points.size(), Series::kMaxPoints / 4);
  // Each point is the mean of what it stands for: that of a straight line is its middle.
  const int64_t step = series.points[1].t_ns - series.points[0].t_ns;
  for (size_t i = 0; i + 1 < series.points.size(); ++i) {
    EXPECT_EQ(series.points[i].t_ns, static_cast<int64_t>(i) * step);
    EXPECT_DOUBLE_EQ(series.points[i].value, static_cast<double>(series.points[i].t_ns) + static_cast<double>(step - 1) / 2);
  }
}

// It is high while operators run and low between them, thousands of times in a run.
TEST(SeriesTest, ChangesOfTheCoreClockAreKept) {
  Series series;
  series.name = "AI Core Freq";
  const auto add = [&series](size_t until) {
    for (size_t i = series.count; i < until; ++i) series.Add(static_cast<int64_t>(i), i % 2 == 0 ? 1800 : 800);
  };
  add(Series::kMaxChanges);
  ASSERT_EQ(series.points.size(), Series::kMaxChanges);
  EXPECT_EQ(series.MeanByTime({20'000, 20'001}), 1800);
  EXPECT_EQ(series.MeanByTime({20'001, 20'002}), 800);
  add(Series::kMaxChanges + 4);
  EXPECT_EQ(series.points.size(), Series::kMaxChanges / 2 + 2);
  EXPECT_EQ(series.points.front().value, 1800);
  EXPECT_EQ(series.points.back().value, 1800);
}

TEST(SeriesTest, MeanOfATimeHasItsBeginAndNotItsEnd) {
  Series series;
  for (const int64_t t : {30, 10, 20}) series.Add(t, static_cast<double>(t));
  series.Sort();
  EXPECT_EQ(series.Mean({10, 30}), 15);
  EXPECT_EQ(series.Mean({10, 31}), 20);
  EXPECT_EQ(series.Mean({31, 40}), std::nullopt);
}

TEST(SeriesTest, SamplesOfTheCoreClockHoldUntilTheNext) {
  Series series;
  for (const auto& [t, mhz] : {std::pair(-1, 1800.0), {3, 800.0}, {7, 1800.0}, {12, 1000.0}, {18, 1800.0}}) series.Add(t, mhz);
  EXPECT_EQ(series.MeanByTime({0, 10}), 1400);
  EXPECT_EQ(series.MeanByTime({5, 6}), 800);
  EXPECT_EQ(series.MeanByTime({15, 19}), 1200);
  EXPECT_EQ(series.MeanByTime({-3, 4}), (1800.0 * 4 + 800) / 5) << "before the first nothing is known";
  EXPECT_EQ(series.MeanByTime({-5, -1}), std::nullopt);
  const auto is_clock = [&series](const char* name) {
    series.name = name;
    return series.IsCoreClock();
  };
  EXPECT_TRUE(is_clock("AI Core Freq"));
  EXPECT_TRUE(is_clock("AI Core Freq Die 1"));
  EXPECT_TRUE(is_clock("frequency_hertz domain=aicore"));
  EXPECT_FALSE(is_clock("frequency_hertz npu=0 domain=aicore"));
}

// Of a run of 100 ns: 1800 MHz for 10 of them, then 800; what other counters say is of their samples.
TEST(HardwareTest, MeanOfTheCoreClockIsByTime) {
  Rank rank;
  rank.steps.push_back({1, 0, 100, {}, {}, {}});
  for (const char* name : {"AI Core Freq", "HBM"}) {
    Series& series = *rank.hardware.emplace_back(std::make_shared<Series>());
    series.name = name;
    series.Add(0, 1800);
    series.Add(10, 800);
  }
  Json counters = HardwareView(rank);
  EXPECT_EQ(counters[0]["mean"], 900);
  EXPECT_EQ(counters[0]["by_step"][0]["mean"], 900);
  EXPECT_EQ(counters[1]["mean"], 1300);
  rank.recorded = {0, 210};
  EXPECT_EQ(HardwareView(rank)[0]["mean"], (1800.0 * 10 + 800 * 200) / 210);
  rank.recorded.reset();
  rank.steps.clear();
  EXPECT_EQ(HardwareView(rank)[0]["mean"], 1800) << "the last one is known of no time";
  rank.hardware[0]->points.resize(1);
  EXPECT_EQ(HardwareView(rank)[0]["mean"], 1300) << "of samples, where no time is known";
}

// docs/analysis.md: of the samples while an operator ran, or of the sample before. Operators of two streams overlap.
TEST(HardwareTest, MeansWhileOperatorsRun) {
  Rank rank;
  const int32_t longer = rank.OperatorOf(rank.Text("longer"), rank.Text("Mul"), kNoText, rank.Text("1"));
  const int32_t shorter = rank.OperatorOf(rank.Text("shorter"), rank.Text("Mul"), kNoText, rank.Text("1"));
  rank.executions = {{1000, 1100, longer}, {1010, 1020, shorter}};
  Series& series = *rank.hardware.emplace_back(std::make_shared<Series>());
  series.name = "HBM";
  series.Add(1005, 100);
  series.Add(1090, 900);
  EXPECT_EQ(HardwareView(rank)[0]["by_operator"], Json::parse(R"([{"operator": "longer", "mean": 500}, {"operator": "shorter", "mean": 100}])"));
  // 100 ns while both samples were taken, 300 ns behind them.
  rank.executions.push_back({2000, 2300, rank.OperatorOf(rank.Text("longer"), rank.Text("Mul"), kNoText, rank.Text("2"))});
  EXPECT_EQ(HardwareView(rank)[0]["by_operator"], Json::parse(R"([{"operator": "longer", "mean": 800}, {"operator": "shorter", "mean": 100}])"))
      << "an operator is one, whatever its shapes are";
}

// docs/analysis.md: each of the ten longest operators, as `operators` has them.
TEST(HardwareTest, TheTenLongestOperators) {
  Rank rank;
  rank.hardware.emplace_back(std::make_shared<Series>())->Add(0, 1);
  int64_t t = 10;
  const auto run = [&rank, &t](const std::string& name, const std::string& shape, int64_t ns) {
    rank.executions.push_back({t, t + ns, rank.OperatorOf(rank.Text(name), rank.Text("Mul"), kNoText, rank.Text(shape))});
    t += ns;
  };
  for (int i = 0; i < 10; ++i) run(std::string(1, static_cast<char>('a' + i)), "1", 100 - i);
  for (int shape = 0; shape < 20; ++shape) run("k", std::to_string(shape), 50);
  const Json longest = OperatorsView(rank);
  const Json counters = HardwareView(rank)[0]["by_operator"];
  ASSERT_EQ(counters.size(), 10u);
  EXPECT_EQ(counters[0]["operator"], "k") << "1000 ns";
  for (size_t i = 0; i < counters.size(); ++i) EXPECT_EQ(counters[i]["operator"], longest[i]["name"]);
}

// docs/analysis.md: each step, at most 200,000 means of all counters, and a problem where that leaves steps out.
TEST(HardwareTest, MeansOfAllSteps) {
  profd::analysis::Run run;
  Rank& rank = *run.ranks.emplace_back(std::make_unique<Rank>());
  rank.path = "/run";
  for (const char* name : {"HBM", "DDR"}) {
    Series& series = *rank.hardware.emplace_back(std::make_shared<Series>());
    series.name = name;
    for (int64_t t = 0; t < 4000; t += 10) series.Add(t, static_cast<double>(t));
  }
  for (int64_t step = 0; step < 400; ++step) rank.steps.push_back({step, step * 10, step * 10 + 10, {}, {}, {}});
  const Json counters = HardwareView(rank);
  ASSERT_EQ(counters[0]["by_step"].size(), 400u);
  EXPECT_EQ(counters[1]["by_step"][399]["mean"], 3990);
  EXPECT_EQ(ProblemsJson(run, nullptr).size(), 0u);
  rank.steps.resize(100'001, rank.steps.back());
  EXPECT_EQ(HardwareView(rank)[1]["by_step"].size(), 100'000u);
  ASSERT_EQ(ProblemsJson(run, nullptr).size(), 1u);
  EXPECT_EQ(ProblemsJson(run, nullptr)[0]["where"], "/run");
  EXPECT_EQ(ProblemsJson(run, nullptr)[0]["what"], "means of the hardware's counters are of the first 100000 of 100001 steps");
}

TEST(RankTest, OperatorsAndLanesAreOnce) {
  Rank rank;
  const TextId a = rank.Text("a");
  const TextId b = rank.Text("b");
  const int32_t first = rank.OperatorOf(a, b, a);
  EXPECT_EQ(rank.OperatorOf(a, b, a), first);
  EXPECT_NE(rank.OperatorOf(a, b, b), first);
  EXPECT_NE(rank.OperatorOf(b, a, a), first);
  EXPECT_NE(rank.OperatorOf(kNoText, b, a), first);
  EXPECT_NE(rank.OperatorOf(a, b, a, b), first);
  EXPECT_EQ(rank.LaneOf("x", "y"), rank.LaneOf("x", "y"));
  EXPECT_NE(rank.LaneOf("x", "y"), rank.LaneOf("xy", ""));
}

TEST(RankTest, StepsCountAsFarAsTheDeviceWasRecordedInThem) {
  Rank rank;
  EXPECT_DOUBLE_EQ(StepsOf(rank), 1) << "what is per step is then of all";
  for (int64_t i = 0; i < 6; ++i) rank.steps.push_back({i, 100 * i, 100 * i + 100, {}, {}, {}});
  EXPECT_DOUBLE_EQ(StepsOf(rank), 6);
  rank.recorded = {350, 590};
  EXPECT_DOUBLE_EQ(StepsOf(rank), 0.5 + 1 + 0.9);
  rank.recorded = {310, 320};
  EXPECT_DOUBLE_EQ(StepsOf(rank), 1);
  Rank added_up;
  added_up.shares = {{-1, {}}, {4, {}}, {5, {}}};
  EXPECT_DOUBLE_EQ(StepsOf(added_up), 2) << "the first is of no step";
}

// Steps that do not touch: what lies between them is of none.
TEST(RankTest, SharesOfAStepAreWhatLiesInIt) {
  constexpr int64_t kMs = 1'000'000;
  Rank rank;
  for (const int64_t start : {0, 10, 24}) rank.steps.push_back({start, start * kMs, (start + 4) * kMs, {}, {}, {}});
  rank.overlap = exporting::operators::MakeOverlap({{1 * kMs, 3 * kMs}, {11 * kMs, 12 * kMs}, {25 * kMs, 26 * kMs}}, {}, {});
  std::map<int64_t, Shares> shares = StepSharesOf(rank);
  EXPECT_DOUBLE_EQ(shares[0].free, 2);
  EXPECT_DOUBLE_EQ(shares[10].free, 3);
  EXPECT_DOUBLE_EQ(shares[24].free, 3);
  // A kernel that ends in the next step is of both.
  rank.overlap = exporting::operators::MakeOverlap({{1 * kMs, 13 * kMs}}, {{12 * kMs, 14 * kMs}}, {});
  shares = StepSharesOf(rank);
  EXPECT_DOUBLE_EQ(shares[0].computing, 3);
  EXPECT_DOUBLE_EQ(shares[10].computing, 3);
  EXPECT_DOUBLE_EQ(shares[10].communication, 2);
  EXPECT_DOUBLE_EQ(shares[10].uncovered, 1);
  EXPECT_DOUBLE_EQ(shares[10].free, 0);
  EXPECT_FALSE(shares.contains(24)) << "nothing ran in it";
  // As another tool's table says.
  rank.source = "PyTorch, text";
  rank.shares[0].free = 7;
  EXPECT_DOUBLE_EQ(StepSharesOf(rank).at(0).free, 7);
}

TEST(LinksTest, RanksAreInTheOrderOfTheirNumbers) {
  Rank rank;
  for (const char* to : {"10", "2", "1"}) {
    Link link;
    link.source = rank.Text("0");
    link.destination = rank.Text(to);
    rank.links.push_back(link);
  }
  const Json links = LinksView(rank);
  ASSERT_EQ(links.size(), 3u);
  EXPECT_EQ(links[0]["dst"], "1");
  EXPECT_EQ(links[1]["dst"], "2");
  EXPECT_EQ(links[2]["dst"], "10");
  EXPECT_EQ(links[2]["src"], "0");
}

TEST(TimelineDataTest, KeepsTheLongestAndTheirFlows) {
  Rank rank;
  const int32_t op = rank.OperatorOf(rank.Text("op"), kNoText, kNoText);
  const int32_t stream = rank.LaneOf("Ascend Hardware", "Stream 0");
  const int32_t thread = rank.LaneOf("CANN", "Thread 1");
  for (int64_t i = 0; i < 10; ++i) rank.executions.push_back({1000 * i, 1000 * i + 100 + i, op, stream});
  rank.slices.push_back({500, 900, rank.Text("launch"), thread});
  rank.flows.push_back({0, 9});
  rank.flows.push_back({0, 0});
  const Json data = TimelineData(rank, 3);
  EXPECT_EQ(data["left_out"], 8);
  EXPECT_EQ(data["begin_ns"], "500");
  ASSERT_EQ(data["lanes"].size(), 2u);
  EXPECT_EQ(data["lanes"][0]["group"], "CANN");  // above what it launches
  EXPECT_EQ(data["lanes"][1]["start"], Json::array({7500, 1000}));
  EXPECT_EQ(data["lanes"][1]["duration"], Json::array({108, 109}));
  EXPECT_EQ(data["flows"], Json::array({Json::array({0, 0, 1, 1})}));  // the other one's end is left out
}

// Those behind the first 64 only where a finding is of them or names them.
TEST(ReportTest, SaysOfWhichRanksItShowsLittle) {
  analysis::Run run;
  for (int number = 0; number < 70; ++number) {
    run.ranks.push_back(std::make_unique<Rank>());
    run.ranks.back()->rank = number;
  }
  const Json findings = Json::array({{{"rank", nullptr}, {"evidence", "rank 66 is slower than rank 670"}}, {{"rank", 68}, {"evidence", ""}}});
  const Json data = PageData(run, nullptr, findings, 10, 0);
  for (const size_t full : {0u, 63u, 66u, 68u}) EXPECT_FALSE(data["ranks"][full].contains("brief")) << full;
  for (const size_t brief : {64u, 67u, 69u}) EXPECT_EQ(data["ranks"][brief].value("brief", false), true) << brief;
}

TEST(ReportTest, NothingInTheDataEndsTheScript) {
  const std::string page = PageHtml("</script><script>");
  const std::string begin = "type=\"application/gzip;base64\">";
  const size_t at = page.find(begin);
  ASSERT_NE(at, std::string::npos);
  const size_t end = page.find("</script>", at);
  EXPECT_EQ(page.substr(at + begin.size(), end - at - begin.size()), "PC9zY3JpcHQ+PHNjcmlwdD4=");
  EXPECT_EQ(PageHtml("").find(begin), std::string::npos);
  // All marks are filled.
  EXPECT_EQ(page.find("<!--profd:"), std::string::npos);
}

}  // namespace
}  // namespace profd::analysis
