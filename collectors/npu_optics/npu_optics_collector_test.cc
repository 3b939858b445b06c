#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/testing/eventually.h"
#include "collectors/collector_list.h"
#include "collectors/proc/testing/host_fixture.h"
#include "driver/hccn_reader.h"
#include "driver/testing/script_tool.h"

namespace profd {
namespace {

using testing::FakeHost;
using testing::FakeRegistry;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::NullSink;
using testing::ScriptFolder;
using testing::TickAt;

// A collector on a tool of the test's; the reader goes round as fast as it can.
class Rig {
 public:
  explicit Rig(const std::string& body, int npus = 1) {
    HccnReader::Options options;
    options.tool.path = folder.Write("tool", body);
    options.tool.require_safe = false;
    options.tool.timeout_ns = 60 * kNsPerSecond;
    for (int i = 0; i < npus; ++i) options.targets.push_back({i, i, false});
    options.period_ns = 0;
    options.pause_ns = 0;
    reader.emplace(std::move(options), clock);
    host.emplace(fake.host());
    host->hccn_or_null = &*reader;
    auto made = kNpuOpticsCollector.make_poller(*host, {}, registry);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (made.ok()) collector = std::move(made).value();
  }

  // What polls bring until one of them has `text`.
  ::testing::AssertionResult Brings(const std::string& text) {
    std::string seen;
    const bool found = Eventually([&] {
      batch.Clear();
      PollOutput out{batch, sink};
      status = collector->Poll(TickAt(0), out);
      const std::string printed = registry.PrintValues(batch);
      if (printed.find("npu=") != std::string::npos) seen = printed;
      return printed.find(text) != std::string::npos;
    });
    if (found) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "no " << text << " in\n" << seen;
  }
  std::string Printed() const { return registry.PrintValues(batch); }

  ScriptFolder folder;
  SystemClock clock;
  FakeHost fake;
  FakeRegistry registry;
  std::optional<HccnReader> reader;
  std::optional<Host> host;
  std::unique_ptr<PolledCollector> collector;
  SampleBatch batch;
  NullSink sink;
  Status status;
};

constexpr const char* kAnswers = R"(
case "$3" in
-link) echo "link status: UP";;
-speed) echo "Speed: 200000 Mb/s";;
-link_stat) echo "[device 0]link up count : 3";;
-optical) echo "present : present"; echo "temperature : 47 C"; echo "Vcc : 3300 mV"
  echo "Tx Power0 : 1.0 mW"; echo "Rx Power1 : 0.5 mW";;
esac)";

TEST(NpuOptics, TheTablesMetrics) {
  Rig rig(kAnswers);
  ASSERT_TRUE(rig.Brings("optical_present"));
  const std::string text = rig.Printed();
  for (const char* line : {
           "atlas_npu_network_link_up_transitions_total{npu=\"0\"} 3\n",
           "atlas_npu_network_link_up{npu=\"0\",port=\"0\"} 1\n",
           "atlas_npu_network_speed_bytes_per_second{npu=\"0\",port=\"0\"} 25000000000\n",
           "atlas_npu_optical_present{npu=\"0\",port=\"0\"} 1\n",
           "atlas_npu_optical_temperature_celsius{npu=\"0\",port=\"0\"} 47\n",
           "atlas_npu_optical_supply_volts{npu=\"0\",port=\"0\"} 3.3\n",
           "atlas_npu_optical_power_watts{npu=\"0\",port=\"0\",direction=\"tx\",lane=\"0\"} "
           "0.001\n",
           "atlas_npu_optical_power_watts{npu=\"0\",port=\"0\",direction=\"rx\",lane=\"1\"} "
           "0.0005\n",
           "profd_hccn_tool_failures_total{command=\"optical\"} 0\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("direction=\"tx\",lane=\"1\"")));
  EXPECT_TRUE(rig.status.ok());
  rig.collector.reset();
  EXPECT_EQ(rig.registry.live(), 0u);
}

TEST(NpuOptics, CountsAreThereFromTheStart) {
  Rig rig(kAnswers);
  ASSERT_TRUE(rig.Brings("profd_hccn_tool_runs_total{command=\"dev_info\"} 0\n"));
  EXPECT_THAT(rig.Printed(), HasSubstr("profd_hccn_tool_failures_total{command=\"link\"} 0\n"));
}

// A value that can no longer be read is absent, not old.
TEST(NpuOptics, ValuesTheToolNoLongerReportsDisappear) {
  Rig rig(std::string("[ -e $0.gone ] && exit 1\n") + kAnswers);
  ASSERT_TRUE(rig.Brings("optical_present"));
  EXPECT_GT(rig.registry.live(), 3 * kHccnCommands);
  rig.folder.Write("tool.gone", "");
  // The pass that runs meanwhile may still bring some of it.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(rig.Brings("runs_total"));
    return !rig.status.ok() && rig.registry.live() == 3 * kHccnCommands;
  }));
  EXPECT_EQ(rig.status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(rig.status.message(), HasSubstr("exit code 1"));
  // What is left are the counts.
  EXPECT_EQ(rig.registry.live(), 3 * kHccnCommands);
}

TEST(NpuOptics, OneNpuThatFailsIsNotTheCollectorsFailure) {
  Rig rig(std::string("[ $2 = 1 ] && exit 1\n") + kAnswers, 2);
  std::vector<HccnValues> values;
  ASSERT_TRUE(Eventually([&] {
    rig.reader->Refresh(&values);
    return values[1].version > 0;
  }));
  EXPECT_TRUE(rig.Brings("npu=\"0\""));
  EXPECT_TRUE(rig.status.ok()) << rig.status.ToString();
  EXPECT_FALSE(values[1].status.ok());
}

TEST(NpuOptics, ProbeReportsWhyNot) {
  FakeHost fake;
  Host host = fake.host();
  EXPECT_EQ(kNpuOpticsCollector.probe_host(host).code(), StatusCode::kUnimplemented);
  SystemClock clock;
  HccnReader::Options options;
  options.tool.path = "/nowhere/hccn_tool";
  options.targets.push_back({0, 0, false});
  HccnReader reader(std::move(options), clock);
  host.hccn_or_null = &reader;
  Status status = kNpuOpticsCollector.probe_host(host);
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/hccn_tool"));
  FakeRegistry registry;
  EXPECT_FALSE(kNpuOpticsCollector.make_poller(host, {}, registry).ok());
}

}  // namespace
}  // namespace profd
