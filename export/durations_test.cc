#include "export/durations.h"

#include <gtest/gtest.h>

namespace profd::exporting {
namespace {

Event Span(EventKind kind, int64_t ns, std::optional<int> rank = {}, std::string name = {}) {
  Event event;
  event.kind = kind;
  event.dur_ns = ns;
  event.rank = rank;
  event.name = std::move(name);
  return event;
}

TEST(Durations, PercentilesAreTheValuesAtTheirRank) {
  Durations durations;
  for (int64_t ns = 200; ns > 0; --ns) durations.Add(ns);
  EXPECT_EQ(durations.count(), 200u);
  EXPECT_EQ(durations.mean(), 100.5);
  EXPECT_EQ(durations.Percentile(50), 100);
  EXPECT_EQ(durations.Percentile(99), 198);
  EXPECT_EQ(durations.Percentile(100), 200);
  EXPECT_EQ(durations.max(), 200);
  EXPECT_EQ(Durations().Percentile(50), 0);
}

TEST(Durations, ManyStayWithinAThousandth) {
  Durations durations, more;
  for (int64_t i = 1; i <= 300'000; ++i) (i % 2 == 0 ? durations : more).Add(i * 1'000'003);
  durations.Merge(more);
  EXPECT_EQ(durations.count(), 300'000u);
  EXPECT_NEAR(static_cast<double>(durations.Percentile(50)), 150'000 * 1'000'003.0, 150'000 * 1e3);
  EXPECT_NEAR(static_cast<double>(durations.Percentile(99)), 297'000 * 1'000'003.0, 297'000 * 1e3);
  EXPECT_EQ(durations.max(), 300'000ll * 1'000'003);
}

TEST(DurationStats, AreByRankAndName) {
  DurationStats stats, more;
  stats.Add(Span(EventKind::kStep, 10, 0, "Step 1"), 7);
  stats.Add(Span(EventKind::kStep, 30, 0, "Step 2"), 7);
  stats.Add(Span(EventKind::kStep, 50, {}, "Step 2"), 7);
  more.Add(Span(EventKind::kRange, 5, 0, "forward"), {});
  more.Add(Span(EventKind::kRange, 0, 0, "nothing"), {});
  more.Add(Span(EventKind::kMark, 0, 0, "epoch"), {});
  Event partial = Span(EventKind::kStep, 1000, 0, "Step 3");
  MarkPartial(&partial);
  more.Add(partial, {});
  stats.Merge(more);
  ASSERT_EQ(stats.groups().size(), 3u);
  const Durations& steps = stats.groups().at({0, -1, EventKind::kStep, ""});
  EXPECT_EQ(steps.count(), 2u);
  EXPECT_EQ(steps.mean(), 20);
  EXPECT_EQ(stats.groups().at({7, -1, EventKind::kStep, ""}).count(), 1u);
  EXPECT_EQ(stats.groups().at({0, -1, EventKind::kRange, "forward"}).max(), 5);
}

TEST(DurationStats, NamesAreBounded) {
  DurationStats stats;
  for (int i = 0; i < 5000; ++i) stats.Add(Span(EventKind::kRange, 1, 0, std::to_string(i)), {});
  EXPECT_EQ(stats.groups().size(), DurationStats::kMaxGroups);
  EXPECT_EQ(stats.left_out(), 5000 - DurationStats::kMaxGroups);
}

}  // namespace
}  // namespace profd::exporting
