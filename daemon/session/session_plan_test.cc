#include "daemon/session/session_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "daemon/session/plan_test_support.h"
#include "proto/options/options_message.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// An Ascend310B: its SoC channel has no links between dies or chips (driver-abi 2.4).
TEST_F(SessionPlanTest, AChipWithoutLinksHasNoInterconnection) {
  devices_ = {{.chip_id = 7, .chip_name = "Ascend310B", .channels = {4, 6, 7, 8, 52, 130, 131}}};
  request_.set_options_json(R"({"sys_interconnection_freq":50})");
  EXPECT_THAT(Problems(), HasSubstr("sys_interconnection_freq = 50: not supported on Ascend310B"));
  request_.set_options_json(R"({"sys_hardware_mem_freq":50})");
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(Named(*plan), Contains("soc_profile"));
}

TEST_F(SessionPlanTest, EveryProblemIsNamedAtOnce) {
  request_.mutable_target()->set_job_id("no spaces");
  request_.mutable_target()->add_devices(9);
  request_.mutable_options()->set_sys_hardware_mem_freq(101);
  request_.mutable_options()->set_sys_interconnection_freq(51);
  request_.mutable_options()->set_host_sys("cpu,disk");
  request_.mutable_options()->set_host_sys_usage_freq(10);
  request_.mutable_options()->set_storage_limit("10MB");
  request_.mutable_target()->add_pids(4711);
  request_.add_collectors()->set_name("gpu");
  request_.add_collectors()->set_name("hbm=abc");
  EXPECT_THAT(Problems(),
              AllOf(HasSubstr("job_id"), HasSubstr("no device 9"), HasSubstr("0, 1, 2, 3"),
                    HasSubstr("sys_hardware_mem_freq = 101: must be an integer from 1 to 100"),
                    HasSubstr("sys_interconnection_freq = 51: must be an integer from 1 to 50"),
                    HasSubstr("host_sys = \"cpu,disk\""), HasSubstr("host_sys_usage_freq = 10: does nothing"),
                    HasSubstr("storage_limit = \"10MB\""), HasSubstr("200MB..4294967295MB"),
                    HasSubstr("pids = 4711: no such process"), HasSubstr("collector = \"gpu\": no such collector"),
                    HasSubstr("hbm=abc\": the rate must be a number of Hz above zero")));
}

TEST_F(SessionPlanTest, RegistersOfOnesOwnAreReportedBeforeTheSessionStarts) {
  const std::string why(options::kNoRegisters);
  for (const bool attached : {false, true}) {
    attached_ = attached;
    request_.set_options_json(R"({"aic_metrics":"Custom:8","dvpp_freq":10})");
    Result<SessionPlan> plan = Plan();
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_THAT(plan->warnings, Contains(HasSubstr(why)));
    EXPECT_EQ(Option(*plan, "aic_metrics").note, why) << "no process would change it";
    request_.set_options_json(R"({"aic_metrics":"Custom:8"})");
    EXPECT_EQ(Plan().status().code(), StatusCode::kUnimplemented) << "nothing is left to record";
    EXPECT_THAT(Problems(), HasSubstr(why));
    // A process that starts the session itself has its marks.
    request_.set_marks(true);
    EXPECT_EQ(Plan().ok(), attached);
    request_.set_marks(false);
  }
  request_.set_options_json(R"({"aic_metrics":"Custom:8","l2":"on"})");
  ASSERT_TRUE(Plan().ok());
  EXPECT_EQ(Plan()->aclprof->bits & 0x4u, 0u);
}

TEST_F(SessionPlanTest, LabelsAreMeasuredInBytes) {
  std::string label;
  for (int i = 0; i < 42; ++i) label += "训";
  request_.set_label(label + "ab");
  EXPECT_TRUE(Plan().ok()) << Plan().status().ToString();
  request_.set_label(label + "训");
  EXPECT_THAT(Problems(), HasSubstr("label: at most 128 bytes of UTF-8 without control characters"));
}

TEST_F(SessionPlanTest, AProviderOfALaterContractIsRefused) {
  request_.set_provider(static_cast<v1::SessionSpec::Provider>(99));
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Problems(), HasSubstr("provider = 99"));
}

// An order of a quarter of a megabyte must not make an answer of many.
TEST_F(SessionPlanTest, TheListOfProblemsIsShortForAnyRequest) {
  request_.mutable_options()->set_storage_limit(std::string(100'000, 'x'));
  for (uint32_t id = 100; id < 50'000; ++id) request_.mutable_target()->add_devices(id);
  EXPECT_LT(Problems().size(), 6000u);
  EXPECT_THAT(Problems(), AllOf(HasSubstr("no device 100 "), HasSubstr("more")));
}

// A rate whose period is not a number (1e9 / hz ns) must not get as far as a timer or a driver.
TEST_F(SessionPlanTest, RatesByNameAreBounded) {
  for (double hz : {1e-300, 1e-4, -1.0, 1e300, std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::quiet_NaN()}) {
    for (const CollectorEntry& entry : Collectors()) {
      request_.Clear();
      v1::CollectorRequest* request = request_.add_collectors();
      request->set_name(std::string(entry.spec->name));
      request->set_hz(hz);
      EXPECT_THAT(Problems(), HasSubstr(entry.spec->default_hz > 0 ? "must be at least 0.001"
                                                                   : "has no rate in Hz"))
          << entry.spec->name << " " << hz;
    }
  }
  request_.Clear();
  request_.add_collectors()->set_name("host_cpu");
  request_.mutable_collectors(0)->set_hz(0.001);
  EXPECT_TRUE(Plan().ok());
}

// Both ends of every range, and one beyond, in every form; the range itself is the table's.
TEST_F(SessionPlanTest, RangesHoldAtTheirEnds) {
  for (const options::Option& option : options::Table()) {
    if (option.type != options::Type::kFrequency) continue;
    for (uint32_t hz : {option.min - 1, option.min, option.max, option.max + 1}) {
      SCOPED_TRACE(fmt::format("{} = {}", option.key, hz));
      bool fits = hz >= option.min && hz <= option.max;
      std::string usage = option.key == "host_sys_usage_freq" ? ",\"host_sys_usage\":\"cpu\"" : "";
      request_.Clear();
      ASSERT_TRUE(options::SetField(option.key, std::to_string(hz), request_.mutable_options()));
      if (!usage.empty()) request_.mutable_options()->set_host_sys_usage("cpu");
      EXPECT_EQ(Plan().ok(), fits);
      for (std::string value : {std::to_string(hz), fmt::format("\"{}\"", hz)}) {
        request_.Clear();
        request_.set_options_json(fmt::format("{{\"{}\":{}{}}}", option.key, value, usage));
        EXPECT_EQ(Plan().ok(), fits) << value;
        if (!fits) {
          EXPECT_THAT(Problems(), HasSubstr(fmt::format("from {} to {}", option.min, option.max)));
        }
      }
    }
  }
}

TEST_F(SessionPlanTest, OptionsTurnOnTheirCollectors) {
  request_.mutable_options()->set_sys_interconnection_freq(50);
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(Named(*plan), UnorderedElementsAre("hccs", "pcie", "soc_profile"));
  EXPECT_EQ(Of(*plan, "soc_profile").channel.values[0], 0);  // memory part
  EXPECT_EQ(Of(*plan, "soc_profile").channel.values[1], 50);
  EXPECT_EQ(Of(*plan, "hccs").hz, 50);

  request_.Clear();
  request_.mutable_options()->set_sys_hardware_mem_freq(100);
  request_.mutable_options()->set_llc_profiling("write");
  plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(Named(*plan),
              UnorderedElementsAre("hbm", "ddr", "llc", "npu_mem", "qos", "soc_profile"));
  EXPECT_EQ(Of(*plan, "llc").channel.values[1], 1);

  request_.Clear();
  request_.mutable_options()->set_sys_io_sampling_freq(100);
  plan = Plan();
  EXPECT_THAT(Named(*plan), UnorderedElementsAre("nic", "roce"));
}

TEST_F(SessionPlanTest, WithoutOptionsEverythingRunsButNothingIsDemanded) {
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok());
  // But for what is collected on request only.
  EXPECT_EQ(plan->collectors.size() + 1, Collectors().size());
  EXPECT_TRUE(Named(*plan).empty());
  EXPECT_THAT(plan->devices, ElementsAre(0, 1, 2, 3));
}

TEST_F(SessionPlanTest, HostOptionsNeedTheirCompanions) {
  request_.mutable_options()->set_host_sys("cpu,mem");
  EXPECT_THAT(Problems(), HasSubstr("needs a process"));
  request_.mutable_target()->add_pids(10);
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(Named(*plan), UnorderedElementsAre("host_cpu", "host_mem"));
  EXPECT_THAT(Of(*plan, "host_cpu").poll.processes.pids, ElementsAre(10));
  EXPECT_EQ(Of(*plan, "host_cpu").poll.processes.only_uid, 1000U);
  request_.mutable_options()->set_llc_profiling("read");
  EXPECT_THAT(Problems(), HasSubstr("does nothing without sys_hardware_mem_freq"));
}

TEST_F(SessionPlanTest, HostSysOfAJobWithoutProcessesIsWarnedOf) {
  request_.mutable_options()->set_host_sys("cpu");
  request_.mutable_target()->set_job_id("j42");
  request_.mutable_target()->set_all(true);
  ASSERT_TRUE(Plan().ok()) << Problems();
  EXPECT_THAT(Plan()->warnings, ElementsAre(HasSubstr("host_sys: no process of job j42 is known here")));
  request_.mutable_target()->add_pids(10);
  ASSERT_TRUE(Plan().ok()) << Problems();
  EXPECT_THAT(Plan()->warnings, IsEmpty());
  request_.mutable_target()->clear_pids();
  request_.mutable_options()->clear_host_sys();
  request_.mutable_options()->set_host_sys_usage("cpu");
  ASSERT_TRUE(Plan().ok()) << Problems();
  EXPECT_THAT(Plan()->warnings, IsEmpty());
}

TEST_F(SessionPlanTest, OthersProcessesAndDevicesAreDenied) {
  request_.mutable_target()->add_pids(20);
  EXPECT_THAT(Problems(), AllOf(HasSubstr("not allowed"), HasSubstr("uid 2000")));
  peer_.admin = true;
  EXPECT_TRUE(Plan().ok());
  peer_.admin = false;
  request_.Clear();
  node_devices_.closed = 2;
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->devices, ElementsAre(0, 1, 3));  // "all" is all that may be used
  request_.mutable_target()->add_devices(2);
  EXPECT_THAT(Problems(), HasSubstr("closed"));
}

TEST_F(SessionPlanTest, NamedCollectorsKeepTheirRateAndItsLimit) {
  v1::CollectorRequest* request = request_.add_collectors();
  request->set_name("hccs");
  request->set_hz(20);
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Of(*plan, "hccs").hz, 20);
  EXPECT_THAT(Named(*plan), ElementsAre("hccs"));
  request->set_hz(50.5);
  EXPECT_THAT(Problems(), HasSubstr("at most 50"));
  request->set_hz(-1);
  EXPECT_THAT(Problems(), HasSubstr("at least 0.001"));
  request->set_hz(20);
  *request_.add_collectors() = *request;
  EXPECT_THAT(Problems(), HasSubstr("named twice"));
}

TEST_F(SessionPlanTest, AnOptionSaysWhichCollectorHasARateOfItsOwn) {
  request_.mutable_options()->set_sys_hardware_mem_freq(50);
  v1::CollectorRequest* request = request_.add_collectors();
  request->set_name("hbm");
  const auto note = [this] {
    Result<SessionPlan> plan = Plan();
    if (!plan.ok()) return plan.status().ToString();
    const auto found = std::ranges::find(plan->options, "sys_hardware_mem_freq", &options::Effective::key);
    return found == plan->options.end() ? "not in force" : found->note;
  };
  request->set_hz(10);
  EXPECT_EQ(Of(Plan().value(), "hbm").hz, 10);
  EXPECT_THAT(note(), HasSubstr("hbm at 10 Hz, by its name"));
  request->set_hz(50);
  EXPECT_THAT(note(), Not(HasSubstr("by its name")));
  request_.clear_collectors();
  EXPECT_THAT(note(), Not(HasSubstr("by its name")));
}

// Processes may be attached: a request that names neither a job nor one of them has none all the same.
TEST_F(SessionPlanTest, ARequestOfNoProcessHasNothingOfTheApplication) {
  request_.set_options_json(R"({"msproftx":"on"})");
  EXPECT_THAT(Problems(), AllOf(HasSubstr("names none of its processes; give job_id or pids"), Not(HasSubstr("attached"))));
  request_.mutable_target()->set_job_id("j");
  EXPECT_THAT(Problems(), HasSubstr("no process of this job is attached; attach one"));
}

TEST_F(SessionPlanTest, StorageLimitIsTheSmallerOfTheTwo) {
  request_.mutable_options()->set_storage_limit("200MB");
  ASSERT_TRUE(Plan().ok());
  EXPECT_EQ(Plan()->max_bytes, 200ULL << 20);
  EXPECT_TRUE(Plan()->storage_limited);
  request_.mutable_options()->set_storage_limit("300");
  EXPECT_EQ(Plan()->max_bytes, 300ULL << 20);
  // It is the caller's limit also where the daemon's is not higher.
  for (const int64_t most : {300, 250}) {
    config_.max_session_mb = most;
    EXPECT_EQ(Plan()->max_bytes, static_cast<uint64_t>(most) << 20);
    EXPECT_TRUE(Plan()->storage_limited);
    EXPECT_EQ(std::ranges::find(Plan()->options, "storage_limit", &options::Effective::key)->note,
              most == 300 ? "" : "dump.max_session_mb");
  }
  for (const char* bad : {"199MB", "4294967296MB", "-1MB", "200 MB", "200mb", "MB", "2e3MB"}) {
    request_.mutable_options()->set_storage_limit(bad);
    EXPECT_FALSE(Plan().ok()) << bad;
  }
}

TEST_F(SessionPlanTest, DurationHasTheConfiguredLimit) {
  config_.max_duration_s = 10;
  request_.mutable_schedule()->set_duration_ms(10000);
  EXPECT_TRUE(Plan().ok());
  request_.mutable_schedule()->set_duration_ms(10001);
  EXPECT_THAT(Problems(), HasSubstr("at most 10s here (limits.max_duration_s)"));
}

}  // namespace
}  // namespace profd
