#include "daemon/recorder/trigger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "collectors/metric_table.h"
#include "daemon/recorder/trigger_watch.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr int64_t kSecond = kNsPerSecond;

Trigger Good(std::string_view text) {
  Result<Trigger> trigger = ParseTrigger(text);
  EXPECT_TRUE(trigger.ok()) << text << ": " << trigger.status().ToString();
  return trigger.ok() ? *trigger : Trigger{};
}

TEST(ParseTrigger, Thresholds) {
  struct Case {
    std::string_view text;
    std::string_view metric;
    TriggerOp op;
    double value;
    int64_t for_ns;
  };
  const Case cases[] = {
      {"atlas_npu_temperature_celsius > 90 for 10s", "atlas_npu_temperature_celsius",
       TriggerOp::kAbove, 90, 10 * kSecond},
      {"  atlas_npu_power_watts>=350.5  ", "atlas_npu_power_watts", TriggerOp::kAtLeast, 350.5, 0},
      {"atlas_npu_up == 0 for 2m", "atlas_npu_up", TriggerOp::kEqual, 0, 120 * kSecond},
      {"atlas_npu_up != 1 for 500ms", "atlas_npu_up", TriggerOp::kNotEqual, 1, kSecond / 2},
      {"atlas_host_load1 < -1e3 for 1h", "atlas_host_load1", TriggerOp::kBelow, -1000,
       3600 * kSecond},
      {"atlas_host_load1 <= 0 for 0s", "atlas_host_load1", TriggerOp::kAtMost, 0, 0},
  };
  for (const Case& one : cases) {
    Trigger trigger = Good(one.text);
    EXPECT_EQ(trigger.kind, TriggerKind::kThreshold) << one.text;
    EXPECT_EQ(kMetrics[trigger.metric].name, one.metric) << one.text;
    EXPECT_EQ(trigger.op, one.op) << one.text;
    EXPECT_EQ(trigger.value, one.value) << one.text;
    EXPECT_EQ(trigger.for_ns, one.for_ns) << one.text;
    EXPECT_THAT(trigger.labels, IsEmpty());
  }
}

TEST(ParseTrigger, LabelsAndTheOthers) {
  Trigger trigger =
      Good(R"(atlas_npu_temperature_celsius{npu="3", sensor="a \"b\\"} > 90 for 10s)");
  EXPECT_THAT(trigger.labels, ElementsAre(Pair("npu", "3"), Pair("sensor", "a \"b\\")));
  EXPECT_EQ(Good("error_code").kind, TriggerKind::kErrorCode);
  EXPECT_EQ(Good(" crash ").kind, TriggerKind::kCrash);
  EXPECT_EQ(Good("advice").kind, TriggerKind::kAdvice);
  EXPECT_EQ(Good("advice").check, "");
  EXPECT_EQ(Good("advice hang").check, "hang");
  Trigger step = Good("step > 2.5x median");
  EXPECT_EQ(step.kind, TriggerKind::kSlowStep);
  EXPECT_EQ(step.factor, 2.5);
  EXPECT_EQ(Good("step>2x median").factor, 2);
  EXPECT_THAT(Good("atlas_host_load1{} > 1").labels, IsEmpty());
}

TEST(ParseTrigger, EveryMistakeHasItsText) {
  struct Case {
    std::string text;
    std::string_view said;
  };
  const Case cases[] = {
      {"", "no metric"},
      {"nonsense > 3", "no metric"},
      {"atlas_npu_up", "> >= <"},
      {"atlas_npu_up => 3", "> >= <"},
      {"atlas_npu_up > ", "a number"},
      {"atlas_npu_up > hot", "a number"},
      {"atlas_npu_up > nan", "a number"},
      {"atlas_npu_up > inf", "a number"},
      {"atlas_npu_up > 1e999", "a number"},
      {"atlas_npu_up > 1 for", "duration"},
      {"atlas_npu_up > 1 for 10", "duration"},
      {"atlas_npu_up > 1 for 61m", "duration"},
      {"atlas_npu_up > 1 for 99999999999999999999s", "duration"},
      {"atlas_npu_up > 1 for 10sec", "duration"},
      {"atlas_npu_up > 1 or else", "too much"},
      {"profd_dcmi_call_duration_seconds > 1", "is a histogram"},
      {"atlas_npu_power_window_watts > 1", "use atlas_npu_power_watts"},
      {"atlas_npu_up{color=\"red\"} > 1", "no label color; it has npu, uuid"},
      {"atlas_host_load1{npu=\"0\"} > 1", "it has none"},
      {"atlas_npu_up{npu=0} > 1", "labels are written"},
      {"atlas_npu_up{npu=\"0 > 1", "labels are written"},
      {"atlas_npu_up{npu=\"0\" > 1", "labels are written"},
      {"atlas_npu_up{npu=\"0\\", "labels are written"},
      {"step", "written \"step > 2x median\""},
      {"step > 1x median", "above 1"},
      {"step > 2000x median", "at most 1000"},
      {"step > 2 median", "written"},
      {"step > 2x mean", "written"},
      {"crash now", "too much"},
      {"crashes", "no metric"},
      {"advice hung", "no check hung; there are hang, slow_rank"},
      {"advice hang now", "too much"},
      {std::string(600, 'a'), "longer than"},
  };
  for (const Case& one : cases) {
    Result<Trigger> trigger = ParseTrigger(one.text);
    ASSERT_FALSE(trigger.ok()) << one.text;
    EXPECT_THAT(trigger.status().message(), HasSubstr(one.said)) << one.text;
  }
}

TEST(ParseWantedCollector, RatesWithinTheCollectorsLimits) {
  Result<WantedCollector> wanted = ParseWantedCollector("hbm=10");
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(Collectors()[wanted->collector].spec->name, "hbm");
  EXPECT_EQ(wanted->hz, 10);
  EXPECT_EQ(ParseWantedCollector("hbm")->hz, FindCollector("hbm")->spec->default_hz);
  for (std::string_view bad : {"", "hbn", "hbm=", "hbm=0", "hbm=x", "hbm=1e9", "hbm=-1", "hbm=nan"}) {
    EXPECT_FALSE(ParseWantedCollector(bad).ok()) << bad;
  }
  std::string most = "hbm=" + std::to_string(FindCollector("hbm")->spec->max_hz);
  EXPECT_TRUE(ParseWantedCollector(most).ok());
}

TEST(ValidateRecorder, ReportsEveryProblemAtOnce) {
  std::vector<std::string> problems;
  ValidateRecorder({"hbm=10", "hbn", "hbm=5"}, {"crash", "crush", "step > 1x median"}, &problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("no collector hbn"), HasSubstr("twice"), HasSubstr("crush"),
                                    HasSubstr("step")));
}

// Each would write a dump of its own for one event.
TEST(ValidateRecorder, ATriggerIsNamedOnceHoweverItIsWritten) {
  std::vector<std::string> problems;
  ValidateRecorder({}, {"crash", "step > 2x median", "step > 3x median", "atlas_npu_temperature_celsius > 90",
                        "atlas_npu_temperature_celsius > 90 for 10s", "advice", "advice hang"}, &problems);
  EXPECT_THAT(problems, IsEmpty());
  ValidateRecorder({}, {"crash", "step > 2x median", " crash", "step  >  2.0x median"}, &problems);
  EXPECT_THAT(problems, ElementsAre("recorder.triggers: \" crash\": named twice",
                                    "recorder.triggers: \"step  >  2.0x median\": named twice"));
}

// ---- the watch

constexpr MetricId kTemperature = MetricByName("atlas_npu_temperature_celsius");
constexpr MetricId kHealth = MetricByName("atlas_npu_health_status");
constexpr MetricId kFault = MetricByName("atlas_npu_fault_active");
constexpr MetricId kUp = MetricByName("atlas_npu_up");

struct Series {
  MetricId metric;
  std::vector<std::pair<std::string, std::string>> labels;
  double value;
};

class TriggerWatchTest : public ::testing::Test {
 protected:
  void Watch(std::initializer_list<std::string_view> texts) {
    std::vector<Trigger> triggers;
    for (std::string_view text : texts) triggers.push_back(Good(text));
    watch_.SetTriggers(std::move(triggers));
  }
  // A second later.
  std::vector<Firing> Look(const std::vector<Series>& series) {
    now_ += kSecond;
    return watch_.Look(now_, [&](const auto& take) {
      for (const Series& one : series) take({one.metric, one.labels, one.value});
    });
  }
  static Series Hot(double celsius, std::string npu = "0") {
    return {kTemperature, {{"npu", std::move(npu)}, {"uuid", "u"}, {"sensor", "hbm"}}, celsius};
  }

  int64_t now_ = 100 * kSecond;
  TriggerWatch watch_;
};

TEST_F(TriggerWatchTest, HoldsForSoLongAndFiresOnce) {
  Watch({"atlas_npu_temperature_celsius > 90 for 3s"});
  EXPECT_TRUE(watch_.WantsMetrics());
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Look({Hot(91)}), IsEmpty()) << i;
  std::vector<Firing> fired = Look({Hot(95)});
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].kind, TriggerKind::kThreshold);
  EXPECT_EQ(fired[0].trigger, "atlas_npu_temperature_celsius > 90 for 3s");
  EXPECT_EQ(fired[0].detail, "atlas_npu_temperature_celsius{npu=\"0\",sensor=\"hbm\"} = 95");
  for (int i = 0; i < 5; ++i) EXPECT_THAT(Look({Hot(99)}), IsEmpty());
  // It must cease before it can begin again.
  EXPECT_THAT(Look({Hot(90)}), IsEmpty());
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Look({Hot(91)}), IsEmpty());
  EXPECT_THAT(Look({Hot(91)}), SizeIs(1));
}

TEST_F(TriggerWatchTest, InterruptionsAndAbsenceStartAnew) {
  Watch({"atlas_npu_temperature_celsius > 90 for 2s"});
  EXPECT_THAT(Look({Hot(91)}), IsEmpty());
  EXPECT_THAT(Look({Hot(91)}), IsEmpty());
  EXPECT_THAT(Look({}), IsEmpty());  // the reading failed
  EXPECT_THAT(Look({Hot(91)}), IsEmpty());
  EXPECT_THAT(Look({Hot(91)}), IsEmpty());
  EXPECT_THAT(Look({Hot(91)}), SizeIs(1));
}

TEST_F(TriggerWatchTest, EachSeriesByItself) {
  Watch({"atlas_npu_temperature_celsius{npu=\"1\"} > 90"});
  EXPECT_THAT(Look({Hot(99, "0")}), IsEmpty());
  EXPECT_THAT(Look({Hot(99, "0"), Hot(99, "1")}), SizeIs(1));
  Watch({"atlas_npu_temperature_celsius > 90"});
  EXPECT_THAT(Look({Hot(99, "0"), Hot(99, "1")}), SizeIs(2));
  EXPECT_THAT(Look({Hot(99, "0"), Hot(99, "1"), Hot(99, "2")}), SizeIs(1));
}

TEST_F(TriggerWatchTest, NewFaultsWorseHealthLostCards) {
  Watch({"error_code"});
  Series sick{kHealth, {{"npu", "0"}}, 1};
  Series fault{kFault, {{"npu", "0"}, {"code", "80E0"}, {"severity", "major"}}, 1};
  Series up{kUp, {{"npu", "0"}}, 1};
  // There when we came: no news.
  EXPECT_THAT(Look({fault, sick, up}), IsEmpty());
  EXPECT_THAT(Look({fault, sick, up}), IsEmpty());
  Series another = fault;
  another.labels[1].second = "80E1";
  std::vector<Firing> fired = Look({fault, another, sick, up});
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].kind, TriggerKind::kErrorCode);
  EXPECT_THAT(fired[0].detail, HasSubstr("80E1"));
  sick.value = 2;
  EXPECT_THAT(Look({fault, another, sick, up}), SizeIs(1));
  sick.value = 0;  // recovers
  EXPECT_THAT(Look({sick, up}), IsEmpty());
  up.value = 0;
  EXPECT_THAT(Look({up}), SizeIs(1));
  EXPECT_THAT(Look({up}), IsEmpty());
  up.value = 1;
  EXPECT_THAT(Look({up}), IsEmpty());
}

TEST_F(TriggerWatchTest, SlowSteps) {
  Watch({"step > 2x median"});
  EXPECT_FALSE(watch_.WantsMetrics());
  watch_.Name(5, "pid 42", "j1");
  EXPECT_THAT(watch_.OnStep(6, 1, true, now_), IsEmpty());  // no process
  int64_t step = 0;
  auto run = [&](int64_t took) {
    std::vector<Firing> fired = watch_.OnStep(5, ++step, true, now_);
    now_ += took;
    for (const Firing& late : watch_.LookAtSteps(now_)) fired.push_back(late);
    for (const Firing& end : watch_.OnStep(5, step, false, now_)) fired.push_back(end);
    now_ += kSecond;  // between steps
    return fired;
  };
  EXPECT_THAT(run(50 * kSecond), IsEmpty());  // the first compiles
  for (int i = 0; i < 8; ++i) EXPECT_THAT(run(kSecond), IsEmpty());
  EXPECT_THAT(run(2 * kSecond), IsEmpty());
  std::vector<Firing> fired = run(2 * kSecond + 1);
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].kind, TriggerKind::kSlowStep);
  EXPECT_EQ(fired[0].job_id, "j1");
  EXPECT_THAT(fired[0].detail, HasSubstr("step 11 of pid 42 takes 2 s, the median is 1 s"));
  // One that never ends is noticed while it hangs, once.
  watch_.OnStep(5, ++step, true, now_);
  EXPECT_THAT(watch_.LookAtSteps(now_ + kSecond), IsEmpty());
  EXPECT_THAT(watch_.LookAtSteps(now_ + 3 * kSecond), SizeIs(1));
  EXPECT_THAT(watch_.LookAtSteps(now_ + 4 * kSecond), IsEmpty());
}

// Each of two threads reports every step of a second, the other one a little later: none is slow.
TEST_F(TriggerWatchTest, StepsThatSeveralThreadsReport) {
  Watch({"step > 2x median"});
  watch_.Name(5, "pid 42", "j1");
  constexpr int64_t kLater = kSecond / 1000;
  for (int64_t step = 1; step <= 20; ++step, now_ += 2 * kSecond) {
    EXPECT_THAT(watch_.OnStep(5, step, true, now_), IsEmpty());
    EXPECT_THAT(watch_.OnStep(5, step, true, now_ + kLater), IsEmpty());
    EXPECT_THAT(watch_.OnStep(5, step, false, now_ + kSecond), IsEmpty()) << step;
    EXPECT_THAT(watch_.OnStep(5, step, false, now_ + kSecond + kLater), IsEmpty()) << step;
  }
  watch_.OnStep(5, 21, true, now_);
  EXPECT_THAT(watch_.OnStep(5, 20, false, now_ + kLater), IsEmpty()) << "of the step before";
  EXPECT_THAT(watch_.OnStep(5, 21, false, now_ + 3 * kSecond), SizeIs(1));
}

TEST_F(TriggerWatchTest, Advice) {
  Watch({"crash", "advice hang", "advice hang"});
  EXPECT_THAT(watch_.OnAdvice("gc", "x", "j1"), IsEmpty());
  const std::vector<Firing> fired = watch_.OnAdvice("hang", "no step ends", "j1");
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].kind, TriggerKind::kAdvice);
  EXPECT_EQ(fired[0].trigger, "advice hang");
  EXPECT_EQ(fired[0].detail, "hang: no step ends");
  EXPECT_EQ(fired[0].job_id, "j1");
  Watch({"advice"});
  EXPECT_THAT(watch_.OnAdvice("gc", "x", "j1"), SizeIs(1));
}

TEST_F(TriggerWatchTest, Crashes) {
  Watch({"crash"});
  std::vector<Firing> fired = watch_.OnCrashed("pid 43", "j2");
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].kind, TriggerKind::kCrash);
  EXPECT_EQ(fired[0].job_id, "j2");
  Watch({"error_code"});
  EXPECT_THAT(watch_.OnCrashed("pid 43", "j2"), IsEmpty());
}

}  // namespace
}  // namespace profd
