#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using exporting::operators::OverlapKind;

constexpr int64_t kMs = 1'000'000;

class HintsTest : public testing::Test {
 protected:
  // Computes the first `busy_ms` of 100 ms.
  Rank& AddRank(int number, int64_t busy_ms) {
    auto rank = std::make_unique<Rank>();
    rank->rank = number;
    rank->span = Interval{0, 100 * kMs};
    rank->overlap[OverlapKind::kComputing].push_back({0, busy_ms * kMs});
    run_.ranks.push_back(std::move(rank));
    return *run_.ranks.back();
  }

  // A step of 20 ms whose forward pass begins after 4 ms, `communication_ms` of which are communication.
  Rank& AddRankWithInterval(int64_t communication_ms) {
    Rank& rank = AddRank(0, 100);
    Step step;
    step.end_ns = 20 * kMs;
    step.fp_ns = 4 * kMs;
    rank.steps.push_back(step);
    rank.overlap[OverlapKind::kCommunication].push_back({0, communication_ms * kMs});
    return rank;
  }

  static void AddLink(Rank& rank, const char* to, double mb) {
    Link link;
    link.source = rank.Text("0");
    link.destination = rank.Text(to);
    link.transport = rank.Text("HCCS");
    link.size_mb = mb;
    link.time_ms = 1000;
    rank.links.push_back(link);
  }

  // "text | evidence" of all.
  std::vector<std::string> Get() const {
    std::vector<std::string> hints;
    for (const Json& hint : Hints(run_, RunJson(run_, {}))) {
      hints.push_back(hint["text"].get<std::string>() + " | " + hint["evidence"].get<std::string>());
    }
    return hints;
  }

  analysis::Run run_;
};

TEST_F(HintsTest, ManyRanksWithTheSameOneAreOneHintOfTheWorst) {
  for (int number = 0; number < 64; ++number) AddRank(number, number == 40 ? 50 : 85);
  const auto hints = Get();
  EXPECT_THAT(hints, Contains(HasSubstr("The device often waits: look at what the host does then, and at the data pipeline. "
                                        "| rank 40: free 50.000 ms of 100.000 ms (50.0 %); and 63 other ranks")));
  EXPECT_THAT(hints, Contains("The ranks differ in computing: rank 63 has most. | 50.000 ms to 85.000 ms"));
  EXPECT_LE(hints.size(), 3U);
}

TEST_F(HintsTest, RankAndDeviceOfAFileCanBeUnknown) {
  AddRank(0, 50).rank.reset();
  EXPECT_THAT(Get(), Contains(HasSubstr("| unknown rank: free 50.000 ms of 100.000 ms (50.0 %)")));
}

TEST_F(HintsTest, LongIntervalIsInput) {
  AddRankWithInterval(1);
  EXPECT_THAT(Get(), Contains("The interval between steps is long: data processing, its transfer or get_next is slow. "
                              "| rank 0: 4.000 ms on average"));
}

// As of the second stage of a pipeline, which receives what the first one has computed.
TEST_F(HintsTest, LongIntervalOfCommunicationIsWaitingForARank) {
  AddRankWithInterval(3);
  EXPECT_THAT(Get(), Contains("The interval between steps is long, and is communication: the step begins with waiting for another rank. "
                              "| rank 0: 4.000 ms on average, of them 3.000 ms communication"));
  EXPECT_THAT(Get(), Not(Contains(HasSubstr("data processing"))));
}

TEST_F(HintsTest, SlowLinksAreOneHintOfTheSlowest) {
  Rank& rank = AddRank(0, 100);
  AddLink(rank, "1", 5000);
  EXPECT_THAT(Get(), Contains("The link 0 to 1 (HCCS) is slow. | rank 0: 5.00 GB/s, reference 18.0 GB/s"));
  AddLink(rank, "2", 4000);
  AddLink(rank, "3", 18'000);
  EXPECT_THAT(Get(), Contains("2 links are slow, 0 to 2 (HCCS) most. | rank 0: 4.00 GB/s, reference 18.0 GB/s"));
}

// Of what was recorded without steps no step is known.
TEST_F(HintsTest, WhereARankHasNoStepsAllOfItIsCompared) {
  for (const bool marked : {true, false}) {
    Rank& rank = AddRank(marked ? 0 : 1, 0);
    rank.span = Interval{0, 200 * kMs};
    rank.overlap[OverlapKind::kComputing] = {{0, 95 * kMs}, {100 * kMs, 195 * kMs}};
    for (int64_t number = 0; marked && number < 2; ++number) {
      Step& step = rank.steps.emplace_back();
      step.number = number;
      step.start_ns = number * 100 * kMs;
      step.end_ns = step.start_ns + 100 * kMs;
    }
  }
  EXPECT_THAT(Get(), Not(Contains(HasSubstr("The ranks differ"))));
}

// One has recorded two steps, the other one of them.
TEST_F(HintsTest, RanksAreComparedByAStep) {
  for (const int64_t steps : {2, 1}) {
    Rank& rank = AddRank(static_cast<int>(steps), 0);
    rank.span = Interval{0, steps * 100 * kMs};
    rank.overlap[OverlapKind::kComputing].clear();
    for (int64_t number = 0; number < steps; ++number) {
      Step& step = rank.steps.emplace_back();
      step.number = number;
      step.start_ns = number * 100 * kMs;
      step.end_ns = step.start_ns + 100 * kMs;
      rank.overlap[OverlapKind::kComputing].push_back({step.start_ns, step.start_ns + 95 * kMs});
    }
  }
  EXPECT_THAT(Get(), Not(Contains(HasSubstr("The ranks differ"))));
}

TEST_F(HintsTest, NothingStandsOut) {
  AddRank(0, 95);
  AddRank(1, 95);
  EXPECT_THAT(Get(), testing::IsEmpty());
}

}  // namespace
}  // namespace profd::analysis
