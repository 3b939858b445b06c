// FP and BP points by the vendor's rules: "the first operator after get_next", "the operator before the last all reduce".
#include "export/step_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace profd::exporting {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

struct Ran {
  std::string name;
  int64_t begin = 0, end = 0;
  int device = 0;
};

struct StepInput {
  std::vector<std::pair<int64_t, int64_t>> steps = {{1000, 2000}};
  std::vector<Ran> communication, kernels;
  StepPoints points;
};

StepPartFinder Found(StepInput given) {
  StepPartFinder finder(given.points);
  // Records come in nearly any order.
  std::shuffle(given.kernels.begin(), given.kernels.end(), std::minstd_rand(7));
  for (const auto& [begin, end] : given.steps) finder.AddStep(0, begin, end);
  finder.StepsDone();
  for (const Ran& ran : given.communication) finder.AddCommunication(ran.device, finder.ClassOf(ran.name), ran.begin, ran.end);
  for (const Ran& ran : given.kernels) finder.AddKernel(ran.device, finder.ClassOf(ran.name), ran.begin, ran.end);
  for (const Ran& ran : given.kernels) finder.AddKernelAgain(ran.device, finder.ClassOf(ran.name), ran.begin);
  finder.Finish();
  return finder;
}
StepParts Of(const StepInput& given, int64_t begin_ns = 1000) {
  const StepPartFinder finder = Found(given);
  const StepParts* const parts = finder.Find(0, begin_ns);
  EXPECT_NE(parts, nullptr);
  return parts != nullptr ? *parts : StepParts{};
}

StepInput Training() {
  StepInput given;
  given.kernels = {{"Cast", 1010, 1020},          {"IteratorGetNext", 1030, 1050}, {"conv", 1060, 1100},
                   {"conv_grad", 1300, 1400},     {"relu_grad", 1410, 1450},       {"ApplyMomentum", 1700, 1800}};
  given.communication = {{"hcom_allReduce__conv_1", 1460, 1600}, {"hcom_allReduce__relu_0", 1405, 1460}};
  return given;
}

TEST(StepParts, ForwardStartsAfterGetNextAndBackwardEndsBeforeTheLastAllReduce) {
  const StepParts parts = Of(Training());
  EXPECT_EQ(parts.fp_start_ns, 1060);
  EXPECT_EQ(parts.bp_end_ns, 1450);
  EXPECT_THAT(parts.reduces, ElementsAre(Pair(1405, 1460), Pair(1460, 1600)));
  EXPECT_THAT(parts.get_nexts, ElementsAre(Pair(1030, 1050)));
  EXPECT_EQ(parts.data_aug_ns, 0) << "no step before it";
}

TEST(StepParts, WithoutGetNextTheFirstOperatorIsIt) {
  StepInput given = Training();
  given.kernels.erase(given.kernels.begin() + 1);
  EXPECT_EQ(Of(given).fp_start_ns, 1010);
}

TEST(StepParts, ABatchThatIsFetchedAheadDoesNotCount) {
  StepInput given = Training();
  given.kernels.push_back({"GetNext", 1810, 1830});
  EXPECT_EQ(Of(given).fp_start_ns, 1060);
}

TEST(StepParts, WithoutAnAllReduceTheLastCommunicationAndWithoutThatTheLastOperator) {
  StepInput given = Training();
  given.communication = {{"hcom_reduceScatter__0", 1405, 1500}};
  EXPECT_EQ(Of(given).bp_end_ns, 1400);
  EXPECT_THAT(Of(given).reduces, IsEmpty());
  given.communication.clear();
  EXPECT_EQ(Of(given).bp_end_ns, 1800);
}

// Iteration Refresh = end - BP (dump-format 4) is a length.
TEST(StepParts, BackwardEndsWithItsStepAtTheLatest) {
  StepInput given = Training();
  given.communication.clear();
  given.kernels.push_back({"late_grad", 1950, 2100});
  EXPECT_EQ(Of(given).bp_end_ns, 2000);
}

TEST(StepParts, NamedOperatorsComeBeforeTheRules) {
  StepInput given = Training();
  given.kernels.push_back({"conv", 1200, 1250});
  given.points = {"conv", "conv_grad"};
  EXPECT_EQ(Of(given).fp_start_ns, 1060) << "the first of the name";
  EXPECT_EQ(Of(given).bp_end_ns, 1400);
  given.points = {"no_such", "no_such"};
  EXPECT_EQ(Of(given).fp_start_ns, 0) << "not guessed";
  EXPECT_EQ(Of(given).bp_end_ns, 0);
}

TEST(StepParts, TasksOutsideOfStepsAreLeftOut) {
  StepInput given;
  given.kernels = {{"before", 900, 1100}, {"at the begin", 1000, 1010}, {"at the end", 2000, 2010}, {"other", 1500, 1600, 1}};
  given.communication = {{"hcom_allReduce__", 2500, 2600}};
  const StepParts parts = Of(given);
  EXPECT_EQ(parts.fp_start_ns, 1000);
  EXPECT_EQ(parts.bp_end_ns, 1010);
  EXPECT_THAT(parts.reduces, IsEmpty());
}

TEST(StepParts, DataAugIsFromTheEndOfTheStepBefore) {
  StepInput given;
  given.steps = {{2100, 3000}, {1000, 2000}, {500, 900}};
  given.kernels = {{"a", 1010, 1020}, {"b", 2150, 2160}};
  EXPECT_EQ(Of(given, 1000).data_aug_ns, 110);
  EXPECT_EQ(Of(given, 2100).data_aug_ns, 150);
  const StepParts idle = Of(given, 500);
  EXPECT_EQ(idle.fp_start_ns, 0);
  EXPECT_EQ(idle.data_aug_ns, 0);
  EXPECT_EQ(Found(given).Find(0, 501), nullptr);
  EXPECT_EQ(Found(given).Find(1, 500), nullptr);
}

TEST(StepParts, PairsOfAStepAreBounded) {
  StepInput given;
  for (int64_t i = 0; i < 5000; ++i) given.communication.push_back({"allreduce", 1000 + i / 10, 1900});
  EXPECT_EQ(Of(given).reduces.size(), StepPartFinder::kMaxPairs);
}

}  // namespace
}  // namespace profd::exporting
