#include "driver/hccn_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/testing/eventually.h"
#include "driver/testing/script_tool.h"

namespace profd {
namespace {

using ::testing::HasSubstr;
using testing::ScriptFolder;

// Answers as the tool of A2 does; NPU 1 has no module, and "down" there makes its port fail.
constexpr const char* kTool = R"(
what=$3
case "$what" in
-link) echo "link status: UP";;
-speed) [ "$2" = 1 ] && echo "Unknown!" || echo "Speed: 200000 Mb/s";;
-link_stat) echo "[device $2]link up count : 3";;
-optical) [ "$2" = 1 ] && echo "present : not present" && exit 0
  echo "present : present"; echo "temperature : 47 C"; echo "Rx Power0 : 0.8 mW";;
*) exit 2;;
esac)";

constexpr int64_t kNever = 3600 * kNsPerSecond;

HccnReader::Options OptionsOf(std::string path, std::vector<HccnTarget> targets) {
  HccnReader::Options options;
  options.tool.path = std::move(path);
  options.tool.require_safe = false;
  options.tool.timeout_ns = 20 * kNsPerSecond;
  options.targets = std::move(targets);
  options.period_ns = kNever;
  options.pause_ns = 0;
  return options;
}

std::vector<HccnValues> AfterPass(HccnReader& reader, uint64_t pass) {
  std::vector<HccnValues> values;
  EXPECT_TRUE(Eventually([&] {
    reader.Refresh(&values);
    return !values.empty() && values.back().version >= pass;
  }));
  return values;
}

const HccnCommandCount& Of(const HccnCounts& counts, HccnCommand command) {
  return counts[static_cast<size_t>(command)];
}

TEST(HccnReader, QueriesEveryNpu) {
  ScriptFolder folder;
  SystemClock clock;
  HccnReader reader(OptionsOf(folder.Write("tool", kTool), {{0, 0, false}, {5, 1, false}}), clock);
  ASSERT_TRUE(reader.Usable().ok()) << reader.Usable().ToString();
  reader.Attach();
  const std::vector<HccnValues> values = AfterPass(reader, 1);
  ASSERT_EQ(values.size(), 2u);
  ASSERT_EQ(values[0].ports.size(), 1u);
  EXPECT_EQ(values[0].ports[0].port, "0");
  EXPECT_EQ(values[0].ports[0].link_up, true);
  EXPECT_EQ(values[0].ports[0].bytes_per_second, 25e9);
  EXPECT_EQ(values[0].link_ups, 3u);
  EXPECT_DOUBLE_EQ(values[0].ports[0].optical.rx_power_watts[0].value_or(0), 0.0008);
  EXPECT_TRUE(values[0].status.ok());
  // By its physical id; a speed that is unknown and a module that is missing are answers.
  EXPECT_EQ(values[1].device, 5);
  EXPECT_EQ(values[1].ports[0].bytes_per_second, std::nullopt);
  EXPECT_EQ(values[1].ports[0].optical.present, false);
  EXPECT_TRUE(values[1].status.ok()) << values[1].status.ToString();
  EXPECT_GT(values[1].time_ns, 0);
  const HccnCounts counts = reader.Counts();
  for (HccnCommand command :
       {HccnCommand::kLink, HccnCommand::kSpeed, HccnCommand::kLinkStat, HccnCommand::kOptical}) {
    EXPECT_EQ(Of(counts, command).runs, 2u);
    EXPECT_EQ(Of(counts, command).failures, 0u);
    EXPECT_GT(Of(counts, command).last_seconds, 0);
  }
  EXPECT_EQ(Of(counts, HccnCommand::kPorts).runs, 0u);
}

TEST(HccnReader, AnNpuThatHangsCostsOneTimeoutAndTheOthersContinue) {
  ScriptFolder folder;
  SystemClock clock;
  HccnReader::Options options =
      OptionsOf(folder.Write("tool", std::string("[ \"$2\" = 0 ] && exec sleep 1000\n") + kTool),
                {{0, 0, false}, {1, 1, false}});
  options.tool.timeout_ns = 5 * kNsPerSecond;  // enough for the scripts of the other one
  HccnReader reader(std::move(options), clock);
  reader.Attach();
  const std::vector<HccnValues> values = AfterPass(reader, 1);
  EXPECT_EQ(values[0].status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(values[0].status.message(), HasSubstr("NPU 0, -link"));
  EXPECT_EQ(values[0].ports[0].link_up, std::nullopt);
  EXPECT_EQ(values[1].ports[0].link_up, true);
  const HccnCounts counts = reader.Counts();
  EXPECT_EQ(Of(counts, HccnCommand::kLink).runs, 2u);
  EXPECT_EQ(Of(counts, HccnCommand::kLink).failures, 1u);
  EXPECT_EQ(Of(counts, HccnCommand::kOptical).runs, 1u);
}

TEST(HccnReader, AnswersThatAreNotUnderstoodAreFailures) {
  ScriptFolder folder;
  SystemClock clock;
  HccnReader reader(
      OptionsOf(folder.Write("tool", "[ $3 = -link ] && exit 3; head -c 3000 /dev/urandom"),
                {{0, 0, false}}),
      clock);
  reader.Attach();
  const std::vector<HccnValues> values = AfterPass(reader, 1);
  EXPECT_THAT(values[0].status.message(), HasSubstr("exit code 3"));
  const HccnCounts counts = reader.Counts();
  for (HccnCommand command : {HccnCommand::kLink, HccnCommand::kLinkStat, HccnCommand::kOptical}) {
    EXPECT_EQ(Of(counts, command).failures, 1u);
  }
}

TEST(HccnReader, ReadsAgainAfterThePeriodWhileASubscriberIsAttached) {
  ScriptFolder folder;
  SystemClock clock;
  HccnReader::Options options = OptionsOf(folder.Write("tool", kTool), {{0, 0, false}});
  options.period_ns = 0;
  HccnReader reader(std::move(options), clock);
  EXPECT_EQ(Of(reader.Counts(), HccnCommand::kLink).runs, 0u);
  reader.Attach();
  EXPECT_EQ(AfterPass(reader, 3)[0].link_ups, 3u);
  reader.Detach();
}

TEST(HccnReader, PortsOfA5) {
  ScriptFolder folder;
  SystemClock clock;
  HccnReader reader(OptionsOf(folder.Write("tool", R"(
case "$2" in
-dev_info) echo '| UdieID | PortID | Speed |'; echo '| 0 | 4 | 400G |'; echo '| 1 | 5 | 400G |';;
-link) [ "$6$8" = 04 ] && echo 'link status: UP' || echo 'link status: DOWN';;
-speed) echo 'Speed: 400000 Mb/s';;
-optical) echo 'present : present'; echo 'Tx Power0 : 0.00 dBm';;
*) exit 2;;
esac)"),
                              {{2, 9, true}}),
                    clock);
  reader.Attach();
  const HccnValues values = AfterPass(reader, 1).at(0);
  EXPECT_TRUE(values.status.ok()) << values.status.ToString();
  ASSERT_EQ(values.ports.size(), 2u);
  EXPECT_EQ(values.ports[0].port, "0/4");
  EXPECT_EQ(values.ports[0].link_up, true);
  EXPECT_EQ(values.ports[1].port, "1/5");
  EXPECT_EQ(values.ports[1].link_up, false);
  EXPECT_DOUBLE_EQ(values.ports[1].optical.tx_power_watts[0].value_or(0), 0.001);
  EXPECT_EQ(values.link_ups, std::nullopt);
}

TEST(HccnReader, ReportsWhyItIsNotUsable) {
  SystemClock clock;
  HccnReader missing(OptionsOf("/nowhere/hccn_tool", {{0, 0, false}}), clock);
  EXPECT_EQ(missing.Usable().code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.Usable().message(), HasSubstr("/nowhere/hccn_tool"));
  HccnReader empty(OptionsOf("/bin/true", {}), clock);
  EXPECT_EQ(empty.Usable().code(), StatusCode::kUnimplemented);
  HccnReader::Options options = OptionsOf("/bin/true", {{0, 0, false}});
  options.usable = FailedPrecondition("off");
  EXPECT_EQ(HccnReader(std::move(options), clock).Usable().message(), "off");
}

// Ends although the tool would hang for an hour.
TEST(HccnReader, EndsInTheMiddleOfARun) {
  ScriptFolder folder;
  SystemClock clock;
  HccnReader::Options options =
      OptionsOf(folder.Write("tool", "echo $$ > " + folder.Path("pid") + "; exec sleep 3600"),
                {{0, 0, false}});
  options.tool.timeout_ns = kNever;
  HccnReader reader(std::move(options), clock);
  reader.Attach();
  EXPECT_TRUE(Eventually([&] { return !folder.Read("pid").empty(); }));
}

}  // namespace
}  // namespace profd
