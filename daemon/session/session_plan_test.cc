#include "daemon/session/session_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "daemon/session/session.h"
#include "profd/v1/profd.pb.h"
#include "proto/options/options_message.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class SessionPlanTest : public ::testing::Test {
 protected:
  SessionPlanTest() {
    for (int id = 0; id < 4; ++id) devices_.push_back(Device(id, 5));
    peer_.uid = 1000;
  }

  // As the vendor's own simulator lists the channels of 910 (1) and 910B (5): driver-abi 2.4.
  static DeviceInfo Device(int id, int chip_id) {
    DeviceInfo device;
    device.id = device.physical_id = id;
    device.chip_id = chip_id;
    device.chip_name = chip_id == 1 ? "Ascend910" : "Ascend910B";
    auto add = [&device](uint32_t first, uint32_t last) {
      for (uint32_t channel = first; channel <= last; ++channel) device.channels.push_back(channel);
    };
    add(1, 1), add(3, 4), add(6, 6), add(8, 10);
    if (chip_id == 1) add(7, 7), add(43, 47), add(129, 131);
    if (chip_id == 5) add(11, 42), add(44, 44), add(47, 47), add(50, 50), add(52, 84), add(86, 98);
    if (chip_id == 5) add(129, 142);
    return device;
  }

  Result<SessionPlan> Plan() const {
    PlanContext context{config_,
                        devices_,
                        Collectors(),
                        peer_,
                        [](pid_t pid) -> Result<uint32_t> {
                          if (pid == 10) return 1000U;
                          if (pid == 20) return 2000U;
                          return NotFound("gone");
                        },
                        [this](const DeviceInfo& device) {
                          return device.id == closed_device_ ? PermissionDenied("closed")
                                                             : Status::Ok();
                        },
                        [](const CollectorEntry& entry, const DeviceInfo* device) {
                          if (device == nullptr) return Status::Ok();
                          ChannelOptions everything;
                          everything.mpam_ids = {0};
                          everything.soc_memory = everything.soc_interconnect = true;
                          return entry.plan(*device, everything).empty()
                                     ? Unimplemented("not supported on X: no channel")
                                     : Status::Ok();
                        },
                        free_bytes_,
                        [this](const SessionPlan&) { return attached_; }};
    return PlanSession(request_, context);
  }
  std::string Problems() const {
    Result<SessionPlan> plan = Plan();
    EXPECT_FALSE(plan.ok());
    return plan.status().ToString();
  }
  static std::vector<std::string> Named(const SessionPlan& plan) {
    std::vector<std::string> names;
    for (const PlannedCollector& planned : plan.collectors) {
      if (planned.named) names.emplace_back(Collectors()[planned.index].spec->name);
    }
    return names;
  }
  static const PlannedCollector& Of(const SessionPlan& plan, std::string_view name) {
    return *std::find_if(plan.collectors.begin(), plan.collectors.end(),
                         [name](const PlannedCollector& planned) {
                           return Collectors()[planned.index].spec->name == name;
                         });
  }

  static const options::Effective& Option(const SessionPlan& plan, std::string_view key) {
    return *std::find_if(plan.options.begin(), plan.options.end(),
                         [key](const options::Effective& option) { return option.key == key; });
  }

  DaemonConfig config_;
  std::vector<DeviceInfo> devices_;
  Peer peer_;
  int closed_device_ = -1;
  uint64_t free_bytes_ = 0;
  bool attached_ = false;
  v1::StartSessionRequest request_;
};

TEST_F(SessionPlanTest, EveryProblemIsNamedAtOnce) {
  request_.set_job_id("no spaces");
  request_.add_devices(9);
  request_.mutable_options()->set_sys_hardware_mem_freq(101);
  request_.mutable_options()->set_sys_interconnection_freq(51);
  request_.mutable_options()->set_host_sys("cpu,disk");
  request_.mutable_options()->set_host_sys_usage_freq(10);
  request_.mutable_options()->set_storage_limit("10MB");
  request_.add_pids(4711);
  request_.add_collectors()->set_name("gpu");
  EXPECT_THAT(Problems(),
              AllOf(HasSubstr("job_id"), HasSubstr("no device 9"), HasSubstr("0, 1, 2, 3"),
                    HasSubstr("sys_hardware_mem_freq = \"101\": must be a whole number 1..100"),
                    HasSubstr("sys_interconnection_freq = \"51\": must be a whole number 1..50"),
                    HasSubstr("host_sys = \"cpu,disk\""), HasSubstr("host_sys_usage_freq = \"10\": does nothing"),
                    HasSubstr("storage_limit = \"10MB\""), HasSubstr("200MB..4294967295MB"),
                    HasSubstr("pids = 4711: no such process"), HasSubstr("collector gpu")));
}

// An order of a quarter of a megabyte must not make an answer of many.
TEST_F(SessionPlanTest, TheListOfProblemsIsShortHoweverLongTheOrder) {
  request_.mutable_options()->set_storage_limit(std::string(100'000, 'x'));
  for (uint32_t id = 100; id < 50'000; ++id) request_.add_devices(id);
  EXPECT_LT(Problems().size(), 6000u);
  EXPECT_THAT(Problems(), AllOf(HasSubstr("no device 100 "), HasSubstr("more")));
}

// A rate whose period is no number (1e9 / hz ns) must not get as far as a timer or a driver.
TEST_F(SessionPlanTest, RatesByNameAreBounded) {
  for (double hz : {1e-300, 1e-4, -1.0, 1e300, std::numeric_limits<double>::infinity(),
                    std::numeric_limits<double>::quiet_NaN()}) {
    for (const CollectorEntry& entry : Collectors()) {
      request_.Clear();
      v1::CollectorOrder* order = request_.add_collectors();
      order->set_name(std::string(entry.spec->name));
      order->set_hz(hz);
      EXPECT_THAT(Problems(), HasSubstr("must be at least 0.001")) << entry.spec->name << " " << hz;
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
          EXPECT_THAT(Problems(), HasSubstr(fmt::format("{}..{}", option.min, option.max)));
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
  EXPECT_TRUE(Of(*plan, "soc_profile").channel.soc_interconnect);
  EXPECT_FALSE(Of(*plan, "soc_profile").channel.soc_memory);
  EXPECT_EQ(Of(*plan, "hccs").hz, 50);

  request_.Clear();
  request_.mutable_options()->set_sys_hardware_mem_freq(100);
  request_.mutable_options()->set_llc_profiling("write");
  plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(Named(*plan),
              UnorderedElementsAre("hbm", "ddr", "llc", "npu_mem", "qos", "soc_profile"));
  EXPECT_TRUE(Of(*plan, "llc").channel.llc_write);

  request_.Clear();
  request_.mutable_options()->set_sys_io_sampling_freq(100);
  plan = Plan();
  EXPECT_THAT(Named(*plan), UnorderedElementsAre("nic", "roce"));
}

TEST_F(SessionPlanTest, WithoutOptionsEverythingRunsButNothingIsDemanded) {
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->collectors.size(), Collectors().size());
  EXPECT_TRUE(Named(*plan).empty());
  EXPECT_THAT(plan->devices, ElementsAre(0, 1, 2, 3));
}

TEST_F(SessionPlanTest, HostOptionsNeedTheirCompanions) {
  request_.mutable_options()->set_host_sys("cpu,mem");
  EXPECT_THAT(Problems(), HasSubstr("needs a process"));
  request_.add_pids(10);
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(Named(*plan), UnorderedElementsAre("host_cpu", "host_mem"));
  EXPECT_THAT(Of(*plan, "host_cpu").poll.processes.pids, ElementsAre(10));
  EXPECT_EQ(Of(*plan, "host_cpu").poll.processes.only_uid, 1000U);
  request_.mutable_options()->set_llc_profiling("read");
  EXPECT_THAT(Problems(), HasSubstr("does nothing without sys_hardware_mem_freq"));
}

TEST_F(SessionPlanTest, OthersProcessesAndDevicesAreDenied) {
  request_.add_pids(20);
  EXPECT_THAT(Problems(), AllOf(HasSubstr("not allowed"), HasSubstr("uid 2000")));
  peer_.admin = true;
  EXPECT_TRUE(Plan().ok());
  peer_.admin = false;
  request_.Clear();
  closed_device_ = 2;
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->devices, ElementsAre(0, 1, 3));  // "all" is all that may be used
  request_.add_devices(2);
  EXPECT_THAT(Problems(), HasSubstr("closed"));
}

TEST_F(SessionPlanTest, NamedCollectorsKeepTheirRateAndItsLimit) {
  v1::CollectorOrder* order = request_.add_collectors();
  order->set_name("hccs");
  order->set_hz(20);
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Of(*plan, "hccs").hz, 20);
  EXPECT_THAT(Named(*plan), ElementsAre("hccs"));
  order->set_hz(50.5);
  EXPECT_THAT(Problems(), HasSubstr("at most 50"));
  order->set_hz(-1);
  EXPECT_THAT(Problems(), HasSubstr("at least 0.001"));
  order->set_hz(20);
  *request_.add_collectors() = *order;
  EXPECT_THAT(Problems(), HasSubstr("named twice"));
}

TEST_F(SessionPlanTest, StorageLimitIsTheSmallerOfTheTwo) {
  request_.mutable_options()->set_storage_limit("200MB");
  ASSERT_TRUE(Plan().ok());
  EXPECT_EQ(Plan()->max_bytes, 200ULL << 20);
  EXPECT_TRUE(Plan()->storage_limited);
  request_.mutable_options()->set_storage_limit("300");
  EXPECT_EQ(Plan()->max_bytes, 300ULL << 20);
  for (const char* bad : {"199MB", "4294967296MB", "-1MB", "200 MB", "200mb", "MB", "2e3MB"}) {
    request_.mutable_options()->set_storage_limit(bad);
    EXPECT_FALSE(Plan().ok()) << bad;
  }
}

TEST_F(SessionPlanTest, DurationHasTheConfiguredLimit) {
  config_.max_duration_s = 10;
  request_.set_duration_ms(10000);
  EXPECT_TRUE(Plan().ok());
  request_.set_duration_ms(10001);
  EXPECT_THAT(Problems(), HasSubstr("at most 10000"));
}

// ---- what options turn on, on which chip ----

struct Support {
  int chip;
  const char* json;
  const char* why;  // nullptr: supported
};

TEST_F(SessionPlanTest, WhatAChipCannotDoIsAnAnswerOfItsOwn) {
  const Support kCases[] = {
      {1, R"({"sys_hardware_mem_freq":50})", nullptr},
      {1, R"({"sys_io_sampling_freq":100})", nullptr},
      {1, R"({"sys_interconnection_freq":50})", nullptr},
      {1, R"({"dvpp_freq":100})", nullptr},
      {1, R"({"sys_hardware_mem_freq":50,"llc_profiling":"write"})", nullptr},
      {1, R"({"sys_hardware_mem_freq":50,"l2":"on"})", nullptr},
      {1, R"({"sys_hardware_mem_freq":50,"aic_metrics":"Memory"})", nullptr},
      {1, R"({"sys_hardware_mem_freq":50,"aic_metrics":"L2Cache"})", "L2Cache events do not exist"},
      {1, R"({"instr_profiling_freq":300})", "Ascend910B (A2) only"},
      {5, R"({"sys_hardware_mem_freq":50,"aic_metrics":"L2Cache"})", nullptr},
      {5, R"({"sys_io_sampling_freq":100,"l2":"on"})", nullptr},
      {5, R"({"instr_profiling_freq":300})", "no collector"},
  };
  for (const Support& one : kCases) {
    SCOPED_TRACE(fmt::format("chip {}: {}", one.chip, one.json));
    devices_ = {Device(0, one.chip)};
    request_.set_options_json(one.json);
    Result<SessionPlan> plan = Plan();
    ASSERT_EQ(plan.ok(), one.why == nullptr) << plan.status().ToString();
    if (one.why == nullptr) continue;
    EXPECT_EQ(plan.status().code(), StatusCode::kUnimplemented);
    EXPECT_THAT(plan.status().message(), AllOf(HasSubstr(one.why), HasSubstr("not supported on")));
  }
}

TEST_F(SessionPlanTest, EveryOptionWithoutItsChannelsIsUnsupported) {
  devices_[0].channels = {2, 5};
  devices_.resize(1);
  for (const char* json :
       {R"({"sys_hardware_mem_freq":1})", R"({"sys_io_sampling_freq":1})",
        R"({"sys_interconnection_freq":1})", R"({"dvpp_freq":1})", R"({"l2":"on"})"}) {
    request_.set_options_json(json);
    Result<SessionPlan> plan = Plan();
    EXPECT_EQ(plan.status().code(), StatusCode::kUnimplemented) << json;
    EXPECT_THAT(plan.status().message(), HasSubstr("not supported on Ascend910B")) << json;
  }
  devices_.clear();
  request_.set_options_json(R"({"training_trace":"on","host_sys_usage":"cpu"})");
  EXPECT_THAT(Problems(), HasSubstr("no devices on this node"));
  request_.set_options_json(R"({"msproftx":"on","host_sys_usage":"cpu"})");
  EXPECT_TRUE(Plan().ok()) << Plan().status().ToString();
}

// Both kinds are listed; the code tells whether leaving out what this chip lacks would be enough.
TEST_F(SessionPlanTest, UnsupportedIsTheCodeOnlyWhenNothingElseIsWrong) {
  devices_ = {Device(0, 1)};
  request_.set_options_json(R"({"instr_profiling_freq":300})");
  EXPECT_EQ(Plan().status().code(), StatusCode::kUnimplemented);
  request_.set_label("two\nlines");
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Plan().status().message(), AllOf(HasSubstr("instr_profiling_freq"), HasSubstr("label")));
  request_.clear_label();
  request_.set_options_json(R"({"instr_profiling_freq":300,"dvpp_freq":101})");
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Plan().status().message(),
              AllOf(HasSubstr("instr_profiling_freq"), HasSubstr("dvpp_freq")));
  request_.add_pids(20);
  EXPECT_EQ(Plan().status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(Plan().status().message(), AllOf(HasSubstr("uid 2000"), HasSubstr("dvpp_freq")));
}

TEST_F(SessionPlanTest, BestEffortTurnsUnsupportedAndOnlyThatIntoWarnings) {
  devices_ = {Device(0, 1)};
  request_.set_best_effort(true);
  request_.set_options_json(R"({"sys_io_sampling_freq":50,"aic_metrics":"L2Cache"})");
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(Named(*plan), UnorderedElementsAre("nic", "roce"));
  EXPECT_THAT(plan->warnings, Contains(HasSubstr("aic_metrics = \"L2Cache\"")));
  EXPECT_EQ(Option(*plan, "aic_metrics").value, "off");
  EXPECT_EQ(Option(*plan, "aic_metrics").asked, "L2Cache");
  EXPECT_THAT(Option(*plan, "aic_metrics").note, HasSubstr("not supported on Ascend910"));
  EXPECT_FALSE(plan->application_options.contains("aic_metrics"));
  request_.set_options_json(R"({"sys_io_sampling_freq":101,"aic_metrics":"L2Cache"})");
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  // Nothing is left of the order: it must not become an order of everything.
  request_.set_options_json(R"({"instr_profiling_freq":300})");
  EXPECT_EQ(Plan().status().code(), StatusCode::kUnimplemented);
}

// ---- the three forms ----

TEST_F(SessionPlanTest, TheThreeFormsMeanTheSame) {
  request_.mutable_options()->set_aicpu("on");
  request_.mutable_options()->set_dvpp_freq(10);
  Result<SessionPlan> fields = Plan();
  request_.Clear();
  request_.set_options_json(R"({"aicpu":"on","dvpp_freq":"10"})");
  Result<SessionPlan> json = Plan();
  request_.Clear();
  (*request_.mutable_acl_switches())["ACL_PROF_AICPU"] = "on";
  request_.mutable_options()->set_dvpp_freq(10);
  Result<SessionPlan> switches = Plan();
  ASSERT_TRUE(fields.ok() && json.ok() && switches.ok()) << switches.status().ToString();
  for (const Result<SessionPlan>* plan : {&fields, &json, &switches}) {
    EXPECT_EQ((*plan)->application_options.at("aicpu"), "on");
    EXPECT_THAT((*plan)->awaited_options, ElementsAre("aicpu"));
    EXPECT_THAT(Named(**plan), ElementsAre("dvpp"));
  }
  // The switches have defaults of their own, which nobody asked for.
  EXPECT_EQ(switches->application_options.at("hccl"), "on");
  EXPECT_FALSE(fields->application_options.contains("hccl"));
  request_.set_options_json(R"({"dvpp_freq":20})");
  EXPECT_THAT(Problems(), HasSubstr("dvpp_freq"));
  request_.set_options_json(R"({"dvpp_freq":10})");
  EXPECT_TRUE(Plan().ok());
  request_.set_options_json("{\"dvpp_freq\":10,}");
  EXPECT_EQ(Plan().status().code(), StatusCode::kInvalidArgument);
  request_.set_options_json(R"({"dvpp_frq":10})");
  EXPECT_THAT(Problems(), HasSubstr("dvpp_freq"));
}

// ---- effective options ----

TEST_F(SessionPlanTest, RatesAreToldAsTheDriverRunsThem) {
  struct {
    const char* key;
    uint32_t asked;
    const char* value;
    const char* note;
  } const kCases[] = {
      {"sys_io_sampling_freq", 100, "100", ""},
      {"sys_io_sampling_freq", 80, "83.3333", "every 12 ms"},
      {"sys_io_sampling_freq", 1, "1", ""},
      {"sys_interconnection_freq", 30, "30.303", "every 33 ms"},
      {"dvpp_freq", 99, "100", "every 10 ms"},
      {"sys_hardware_mem_freq", 100, "100", ""},
      {"sys_hardware_mem_freq", 60, "62.5", "every 16 ms"},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(fmt::format("{} = {}", one.key, one.asked));
    request_.Clear();
    options::SetField(one.key, std::to_string(one.asked), request_.mutable_options());
    Result<SessionPlan> plan = Plan();
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_EQ(Option(*plan, one.key).value, one.value);
    EXPECT_EQ(Option(*plan, one.key).asked, std::to_string(one.asked));
    EXPECT_EQ(Option(*plan, one.key).note, one.note);
  }
  EXPECT_EQ(Plan()->options.size(), options::Table().size());
}

TEST_F(SessionPlanTest, HostRatesAreToldWhereOneReadingServesTwo) {
  request_.mutable_options()->set_host_sys_usage("cpu,mem");
  request_.mutable_options()->set_host_sys_usage_freq(10);
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Option(*plan, "host_sys_usage_freq").value, "10");
  EXPECT_EQ(Of(*plan, "host_mem").hz, 10);
  request_.mutable_options()->set_host_sys("cpu");
  request_.add_pids(10);
  plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Of(*plan, "host_cpu").hz, 50);
  EXPECT_EQ(Of(*plan, "host_mem").hz, 10);
  EXPECT_TRUE(Of(*plan, "host_cpu").poll.system);
  EXPECT_EQ(Option(*plan, "host_sys_usage_freq").value, "50");
}

TEST_F(SessionPlanTest, UsersRatesAreLimitedAdministratorsAreNot) {
  config_.max_user_hz = 40;
  request_.mutable_options()->set_sys_io_sampling_freq(40);
  EXPECT_TRUE(Plan().ok());
  request_.mutable_options()->set_sys_io_sampling_freq(41);
  EXPECT_THAT(Problems(), AllOf(HasSubstr("sys_io_sampling_freq = 41: at most 40 Hz"),
                                HasSubstr("limits.max_user_hz")));
  request_.Clear();
  v1::CollectorOrder* order = request_.add_collectors();
  order->set_name("hbm");
  order->set_hz(41);
  EXPECT_THAT(Problems(), HasSubstr("limits.max_user_hz"));
  order->set_hz(0);
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(Of(*plan, "hbm").hz, 40);  // its default is 50
  EXPECT_THAT(plan->warnings, Contains(HasSubstr("limits.max_user_hz")));
  order->set_hz(41);
  peer_.admin = true;
  EXPECT_TRUE(Plan().ok());
}

// ---- data from inside the application ----

TEST_F(SessionPlanTest, ApplicationOptionsAreCarriedAndNoted) {
  request_.set_options_json(
      R"({"training_trace":"on","task_trace":"l0","fp_point":"conv1","sys_io_sampling_freq":10})");
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_FALSE(plan->application_only);
  EXPECT_THAT(plan->awaited_options, ElementsAre("training_trace", "task_trace", "fp_point"));
  EXPECT_EQ(plan->application_options.at("task_time"), "l0");  // the other name of task_trace
  EXPECT_EQ(plan->application_options.at("fp_point"), "conv1");
  EXPECT_FALSE(plan->application_options.contains("msproftx"));
  for (const auto& [key, value] : plan->application_options) {
    EXPECT_THAT(Option(*plan, key).note, HasSubstr(std::string(kNeedsProcess))) << key;
  }
  // A default is never awaited, but it is in force and says what it lacks.
  request_.set_options_json(R"({"sys_io_sampling_freq":10})");
  plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->awaited_options.empty());
  EXPECT_EQ(Option(*plan, "task_time").value, "l1");
  EXPECT_EQ(Option(*plan, "task_time").note, kNeedsProcess);
}

TEST_F(SessionPlanTest, ApplicationOptionsAloneNeedAProcess) {
  for (const char* json : {R"({"msproftx":"on"})", R"({"training_trace":"on","task_trace":"on"})",
                           R"({"aic_metrics":"Memory"})", R"({"l2":"on","output":"/tmp/x"})"}) {
    SCOPED_TRACE(json);
    attached_ = false;
    request_.set_options_json(json);
    Result<SessionPlan> plan = Plan();
    EXPECT_EQ(plan.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(plan.status().message(),
                AllOf(HasSubstr("inside the application"), HasSubstr("sys_io_sampling_freq")));
    attached_ = true;
    plan = Plan();
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    EXPECT_TRUE(plan->application_only);
    EXPECT_TRUE(plan->collectors.empty());
  }
  EXPECT_EQ(Option(*Plan(), "l2").note, kNeedsProcess);
  request_.set_options_json(R"({"msproftx":"on"})");
  EXPECT_EQ(Option(*Plan(), "msproftx").note, "");
  // Switched off is nothing at all, attached or not; and only that.
  request_.set_options_json(R"({"task_trace":"off"})");
  EXPECT_THAT(Problems(), HasSubstr("nothing would be collected"));
  request_.set_options_json(R"({"output":"/tmp/x","storage_limit":"200MB"})");
  EXPECT_EQ(Plan()->collectors.size(), Collectors().size());
}

// ---- storage ----

TEST_F(SessionPlanTest, WithoutAStorageLimitItIsNineTenthsOfWhatIsFree) {
  free_bytes_ = 1000ULL << 20;
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->max_bytes >> 20, 900u);
  EXPECT_FALSE(plan->storage_limited);
  EXPECT_EQ(Option(*plan, "storage_limit").value, "900MB");
  EXPECT_EQ(Option(*plan, "storage_limit").note, "90 % of what is free");
  config_.max_session_mb = 100;
  EXPECT_EQ(Plan()->max_bytes, 100ULL << 20);
  EXPECT_EQ(Option(*Plan(), "storage_limit").note, "dump.max_session_mb");
  request_.mutable_options()->set_storage_limit("200MB");
  EXPECT_EQ(Plan()->max_bytes, 100ULL << 20);
  EXPECT_THAT(Plan()->warnings, Contains(HasSubstr("lowered to 100 MB")));
}

// ---- sample.json ----

TEST_F(SessionPlanTest, SampleFactsTellEachOptionItsOwnRate) {
  request_.set_options_json(R"({"sys_hardware_mem_freq":10,"sys_interconnection_freq":50,
      "llc_profiling":"write","host_sys_usage":"mem","host_sys_usage_freq":5,
      "msproftx":"on","task_time":"l0","storage_limit":"200MB"})");
  Result<SessionPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  SampleOptions facts = SampleFactsOf(*plan);
  EXPECT_EQ(facts.hardware_mem_hz, 10);
  EXPECT_EQ(facts.interconnect_hz, 50);
  EXPECT_EQ(facts.io_hz, 0);
  EXPECT_TRUE(facts.llc_write);
  EXPECT_TRUE(facts.aicore_lpm);  // comes with any option of the devices
  EXPECT_TRUE(facts.host_usage_mem);
  EXPECT_FALSE(facts.host_usage_cpu);
  EXPECT_FALSE(facts.host_sys_mem);
  EXPECT_EQ(facts.host_usage_hz, 5);
  EXPECT_FALSE(facts.host_network);
  EXPECT_EQ(facts.storage_limit_mb, 200u);
  // Of the application's options those that were asked for, not the defaults.
  EXPECT_THAT(facts.application,
              UnorderedElementsAre(Pair("msproftx", "on"), Pair("task_time", "l0")));
  EXPECT_EQ(facts.asked.at("sys_hardware_mem_freq"), "10");

  request_.Clear();
  facts = SampleFactsOf(*Plan());  // no options at all: everything runs
  EXPECT_TRUE(facts.host_network);
  EXPECT_EQ(facts.io_hz, 100);
  EXPECT_TRUE(facts.application.empty());
}

}  // namespace
}  // namespace profd
