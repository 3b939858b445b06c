#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "collectors/metric_table.h"
#include "daemon/health/health_board.h"
#include "daemon/metrics/metric_store.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HealthFacts Healthy(int device = 0) {
  return {.device = device, .npu = std::to_string(device), .up = true, .health_status = 0, .faults_known = true};
}

const FaultFact kEccFault{"0x80E01801", "HBM multi-bit ECC error", "major"};
const FaultFact kHot{"0x80C98009", "", "minor"};

TEST(Judge, ValuesWithoutASourceAreUnknown) {
  EXPECT_EQ(Judge({}).verdict, Verdict::kUnknown);
  EXPECT_THAT(Judge({}).reasons, IsEmpty()) << "profd has just started";
  HealthFacts alone{.not_read = "libdcmi.so: not found"};
  EXPECT_EQ(Judge(alone).verdict, Verdict::kUnknown);
  EXPECT_THAT(Judge(alone).reasons, ElementsAre(alone.not_read));
  // What the other library knows is known.
  alone.stuck_call = "a call has not returned for 9 s";
  EXPECT_EQ(Judge(alone).verdict, Verdict::kDegraded);
  EXPECT_THAT(Judge(alone).reasons, ElementsAre(alone.stuck_call));
  EXPECT_EQ(Judge(Healthy()).verdict, Verdict::kOk);
  EXPECT_THAT(Judge(Healthy()).flags, IsEmpty());
}

TEST(Judge, AnswersWithoutAHealthStatusAreNotOk) {
  HealthFacts mute;
  mute.up = true;
  EXPECT_EQ(Judge(mute).verdict, Verdict::kUnknown);
  EXPECT_THAT(Judge(mute).reasons, ElementsAre(HasSubstr("does not report its health status")));
}

TEST(Judge, ACardThatDoesNotAnswerIsDownWhateverWasReadBefore) {
  HealthFacts gone = Healthy();
  gone.up = false;
  gone.uncorrected_errors = 3;
  EXPECT_EQ(Judge(gone).verdict, Verdict::kDown);
  EXPECT_THAT(Judge(gone).flags, ElementsAre(v1::Health::FLAG_GONE));
  // One library that says so is enough.
  HealthFacts lost = Healthy();
  lost.problem = "the driver has lost communication with device 0";
  EXPECT_EQ(Judge(lost).verdict, Verdict::kDown);
  EXPECT_THAT(Judge(lost).reasons, ElementsAre(lost.problem));
  HealthFacts hung = Healthy();
  hung.hangs = true;
  EXPECT_EQ(Judge(hung).verdict, Verdict::kDown);
  EXPECT_THAT(Judge(hung).flags, ElementsAre(v1::Health::FLAG_HUNG));
}

// docs/profctl.md: unknown is what cannot be read. The library fails to start in a container without device nodes.
TEST(Judge, ALibraryThatFailsMakesNoNpuDown) {
  HealthFacts unread;
  unread.up = false;
  unread.unreadable = "dcmi_init: internal error of the driver (-8005); tried again every 10 s";
  EXPECT_EQ(Judge(unread).verdict, Verdict::kUnknown);
  EXPECT_THAT(Judge(unread).flags, IsEmpty());
  EXPECT_THAT(Judge(unread).reasons, ElementsAre(unread.unreadable));
  // The other library may know more.
  unread.problem = "the driver has lost communication with device 0";
  EXPECT_THAT(Judge(unread).flags, ElementsAre(v1::Health::FLAG_GONE));
}

TEST(Judge, OneCallThatHangsLeavesTheRest) {
  HealthFacts facts = Healthy();
  facts.stuck_call = "stopping channel hccs of device 0 has not returned for 9 s";
  EXPECT_EQ(Judge(facts).verdict, Verdict::kDegraded);
  EXPECT_THAT(Judge(facts).flags, ElementsAre(v1::Health::FLAG_STUCK));
  EXPECT_THAT(Judge(facts).reasons, ElementsAre(facts.stuck_call));
}

TEST(Judge, AThrottledNpuIsDegraded) {
  HealthFacts facts = Healthy();
  facts.health_status = 1;
  facts.throttle_reasons = {"bit0", "bit2"};
  DeviceHealth health = Judge(facts);
  EXPECT_EQ(health.verdict, Verdict::kDegraded);
  EXPECT_THAT(health.flags, ElementsAre(v1::Health::FLAG_THROTTLED, v1::Health::FLAG_ALARM));
  EXPECT_THAT(health.reasons[0], HasSubstr("bit0, bit2"));
}

TEST(Judge, UncorrectedMemoryErrorsAreFaulty) {
  HealthFacts facts = Healthy();
  facts.uncorrected_errors = 2;
  facts.faults = {kEccFault};
  facts.health_status = 2;
  DeviceHealth health = Judge(facts);
  EXPECT_EQ(health.verdict, Verdict::kFaulty);
  EXPECT_THAT(health.flags, ElementsAre(v1::Health::FLAG_ECC, v1::Health::FLAG_FAULT, v1::Health::FLAG_ALARM));
  EXPECT_EQ(health.reasons[1], "fault 0x80E01801 (major: HBM multi-bit ECC error)");
}

TEST(Judge, SeveritiesOfFaults) {
  const std::pair<const char*, Verdict> cases[] = {{"warning", Verdict::kOk},
                                                   {"minor", Verdict::kDegraded},
                                                   {"unknown", Verdict::kDegraded},
                                                   {"major", Verdict::kFaulty},
                                                   {"critical", Verdict::kFaulty}};
  for (const auto& [severity, verdict] : cases) {
    HealthFacts facts = Healthy();
    facts.faults = {{"0x1", "", severity}};
    EXPECT_EQ(Judge(facts).verdict, verdict) << severity;
    EXPECT_THAT(Judge(facts).flags, ElementsAre(v1::Health::FLAG_FAULT)) << severity;
  }
}

TEST(Judge, TheWorseOfTwo) {
  const Verdict order[] = {Verdict::kOk, Verdict::kUnknown, Verdict::kDegraded, Verdict::kFaulty,
                           Verdict::kDown};
  for (size_t a = 0; a < std::size(order); ++a) {
    for (size_t b = 0; b < std::size(order); ++b) {
      EXPECT_EQ(Worse(order[a], order[b]), order[std::max(a, b)]);
    }
  }
}

TEST(StoredFacts, EachDeviceGetsItsOwn) {
  constexpr int64_t kNow = 100 * kNsPerSecond;
  MetricStore store;
  auto put = [&store](MetricId metric, int device, std::vector<std::string_view> labels,
                      double value) {
    Sample sample{store.Intern(metric, device, labels), kNow, value};
    store.Write(std::span(&sample, 1));
  };
  for (int device : {3, 5}) {
    store.SetDeviceLabels(device, std::to_string(device + 8), "");
    put(MetricByName("atlas_npu_up"), device, {}, 1);
    put(MetricByName("atlas_npu_health_status"), device, {}, device == 5 ? 2 : 0);
  }
  put(MetricByName("atlas_npu_fault_active"), 5, {"0x80E01801", "major", "HBM multi-bit ECC error"}, 1);
  put(MetricByName("atlas_npu_throttle_reason"), 5, {"bit0"}, 1);
  put(MetricByName("atlas_npu_throttle_reason"), 5, {"bit2"}, 0);
  put(MetricByName("atlas_npu_ecc_errors_current"), 5, {"hbm", "double"}, 2);
  put(MetricByName("atlas_npu_ecc_errors_current"), 5, {"hbm", "single"}, 40);
  put(MetricByName("atlas_npu_temperature_celsius"), 5, {"chip"}, 50);
  std::vector<HealthFacts> facts(3);
  facts[0].device = 3;
  facts[1].device = 5;
  facts[2].device = 6;
  AddStoredFacts(store, kNow, &facts);
  EXPECT_EQ(Judge(facts[0]).verdict, Verdict::kOk);
  EXPECT_THAT(facts[0].faults, IsEmpty());
  EXPECT_EQ(facts[1].health_status, 2);
  EXPECT_THAT(facts[1].faults, ElementsAre(kEccFault));
  EXPECT_THAT(facts[1].throttle_reasons, ElementsAre("bit0"));
  EXPECT_EQ(facts[1].uncorrected_errors, 2);
  EXPECT_EQ(Judge(facts[2]).verdict, Verdict::kUnknown);
  // Outdated samples are ignored.
  std::vector<HealthFacts> later(1);
  later[0].device = 5;
  AddStoredFacts(store, kNow + 400 * kNsPerSecond, &later);
  EXPECT_EQ(Judge(later[0]).verdict, Verdict::kUnknown);
}

std::vector<std::string> Events(const std::vector<HealthChange>& changes) {
  std::vector<std::string> texts;
  for (const HealthChange& change : changes) {
    std::string text = change.event;
    for (const auto& [key, value] : change.fields) {
      if (key != "why" && key != "name") text += " " + key + "=" + value;
    }
    texts.push_back(text);
  }
  return texts;
}

TEST(HealthBoard, AHealthyNodeReportsNothing) {
  HealthBoard board;
  EXPECT_EQ(board.node(), Verdict::kUnknown);
  EXPECT_THAT(board.Update({{}}, 1), IsEmpty());  // nothing read yet
  EXPECT_THAT(board.Update({Healthy(0), Healthy(1)}, 2), IsEmpty());
  EXPECT_EQ(board.node(), Verdict::kOk);
  EXPECT_EQ(board.Of(1)->since_ns, 0);
  EXPECT_EQ(board.Of(7), nullptr);
}

TEST(HealthBoard, EveryChangeIsReportedOnce) {
  HealthBoard board;
  (void)board.Update({Healthy()}, 1);
  HealthFacts hot = Healthy();
  hot.health_status = 1;
  hot.throttle_reasons = {"bit0"};
  hot.faults = {kHot};
  EXPECT_THAT(Events(board.Update({hot}, 5)),
              ElementsAre("NPU health changed npu=0 from=ok to=degraded",
                          "NPU alarm level changed npu=0 from=0 to=1",
                          "NPU fault raised npu=0 code=0x80C98009 severity=minor"));
  EXPECT_EQ(board.Of(0)->since_ns, 5);
  EXPECT_EQ(board.Of(0)->faults[0].since_ns, 5);
  EXPECT_THAT(board.Update({hot}, 6), IsEmpty());
  EXPECT_EQ(board.Of(0)->since_ns, 5);
  EXPECT_EQ(board.node(), Verdict::kDegraded);
  EXPECT_THAT(Events(board.Update({Healthy()}, 9)),
              ElementsAre("NPU health changed npu=0 from=degraded to=ok",
                          "NPU alarm level changed npu=0 from=1 to=0",
                          "NPU fault cleared npu=0 code=0x80C98009 severity=minor"));
  EXPECT_EQ(board.Of(0)->since_ns, 9);
}

TEST(HealthBoard, StatesAtTheStartAreReportedToo) {
  HealthBoard board;
  HealthFacts bad = Healthy();
  bad.health_status = 2;
  bad.faults = {kEccFault};
  std::vector<HealthChange> changes = board.Update({bad}, 5);
  EXPECT_THAT(Events(changes),
              ElementsAre("NPU health changed npu=0 from=unknown to=faulty",
                          "NPU alarm level changed npu=0 from=unknown to=2",
                          "NPU fault raised npu=0 code=0x80E01801 severity=major"));
  EXPECT_EQ(changes[2].verdict, Verdict::kFaulty);
  EXPECT_EQ(board.Of(0)->since_ns, 0);
  EXPECT_EQ(board.Of(0)->faults[0].since_ns, 0);
}

// A card that drops takes its readings with it; they are no news when it is back.
TEST(HealthBoard, ACardThatIsBackHasTheFaultsItHad) {
  HealthBoard board;
  HealthFacts bad = Healthy();
  bad.faults = {kEccFault};
  (void)board.Update({bad}, 5);
  HealthFacts gone = Healthy();
  gone.up = false;
  gone.health_status.reset();
  gone.faults_known = false;
  EXPECT_THAT(Events(board.Update({gone}, 6)),
              ElementsAre("NPU health changed npu=0 from=faulty to=down"));
  EXPECT_THAT(board.Of(0)->faults, IsEmpty());
  EXPECT_EQ(board.node(), Verdict::kDown);
  HealthFacts unread;
  unread.npu = "0";
  EXPECT_THAT(board.Update({unread}, 7), IsEmpty());
  EXPECT_THAT(Events(board.Update({bad}, 8)),
              ElementsAre("NPU health changed npu=0 from=down to=faulty"));
  EXPECT_EQ(board.Of(0)->faults[0].since_ns, 0);
}

}  // namespace
}  // namespace profd
