#include "sim/scenario.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

namespace profd::sim {
namespace {

TEST(Scenario, EmptyTextIsTheDefault) {
  const Result<Scenario> scenario = ParseScenario("");
  ASSERT_TRUE(scenario.ok());
  EXPECT_EQ(scenario->chip, "910B");
  EXPECT_EQ(scenario->devices, 8);
  EXPECT_TRUE(scenario->faults.empty());
}

TEST(Scenario, ReadsEverything) {
  const Result<Scenario> scenario = ParseScenario(R"(
chip = "A3"
devices = 4
seed = 77
step_ms = 1000
processes_file = "/tmp/pids"
[phases]
forward_ms = 10
backward_ms = 20
all_reduce_ms = 10
update_ms = 5
data_wait_ms = 5
[[process]]
pid = 4242
device = 2
memory_mb = 100
[[fault]]
kind = "slow_hccs"
at = 1.5
for = 2
device = 3
link = 7
factor = 0.5
[[fault]]
kind = "channel_busy"
device = "all"
channel = "roce"
)");
  ASSERT_TRUE(scenario.ok()) << scenario.status().message();
  EXPECT_EQ(scenario->devices, 4);
  EXPECT_EQ(scenario->seed, 77u);
  EXPECT_EQ(scenario->phase_ns[kForward], 200'000'000);  // 50 ms stretched to 1 s
  EXPECT_EQ(scenario->phase_ns[kBackward], 400'000'000);
  ASSERT_EQ(scenario->processes.size(), 1u);
  EXPECT_EQ(scenario->processes[0].memory_bytes, 100u << 20);
  ASSERT_EQ(scenario->faults.size(), 2u);
  EXPECT_EQ(scenario->faults[0].begin_ns, 1'500'000'000);
  EXPECT_EQ(scenario->faults[0].end_ns, 3'500'000'000);
  EXPECT_EQ(scenario->faults[0].link, 7u);
  EXPECT_EQ(scenario->faults[1].device, kAllDevices);
  EXPECT_EQ(scenario->faults[1].channel, 129u);
  EXPECT_EQ(scenario->faults[1].end_ns, kForever);
}

TEST(Scenario, RefusesWithTheLine) {
  struct Case {
    const char* text;
    const char* expected;
  };
  const Case cases[] = {
      {"chip = \"910C\"", "unknown chip '910C'"},
      {"\ndevices = 65", "line 2: 'devices' must be an integer in 1..64"},
      {"time_scale = 0", "'time_scale' must be an integer in 1..1000"},
      {"devices = \"8\"", "'devices' must be an integer"},
      {"chip = \"A3\"\ndevices = 3", "pairs"},
      {"speed = 3", "unknown key 'speed'"},
      {"chip = ", "line 1"},
      {"[phases]\nforward = 3", "unknown key 'forward' in [phases]"},
      {"[phases]\nforward_ms = -1", "'forward_ms' must be a number"},
      {"[phases]\nforward_ms = 0\nbackward_ms = 0\nall_reduce_ms = 0\nupdate_ms = 0\n"
       "data_wait_ms = 0",
       "at least 1 ms"},
      {"[[fault]]\nkind = \"fire\"", "unknown fault kind 'fire'"},
      {"[[fault]]\nkind = \"throttle\"\nlink = 1", "unknown key 'link' in [[fault]]"},
      {"[[fault]]\nkind = \"throttle\"\ndevice = 8", "'device' must be an integer in 0..7"},
      {"[[fault]]\nkind = \"slow_hccs\"\nlink = 0", "'link' must be an integer in 1..7"},
      {"[[fault]]\nkind = \"short_read\"\nchannel = \"hbmm\"", "unknown channel 'hbmm'"},
      {"[[fault]]\nkind = \"card_drop\"\nmode = \"gone\"", "'mode' must be"},
      {"[[fault]]\nkind = \"optical\"\nmode = \"dim\"", "'mode' must be"},
      {"[[fault]]\nkind = \"hccn_tool\"\nmode = \"sleep\"", "'mode' must be"},
      {"[[fault]]\nkind = \"optical\"\nlane = 4", "'lane' must be an integer in 0..3"},
      {"[[fault]]\nkind = \"link_down\"\nflap = 0", "'flap' must be a number"},
      {"[[fault]]\nkind = \"ecc\"", "ecc needs"},
      {"[[fault]]\nkind = \"ecc\"\nsingle = 1\nfor = 0", "'for' must be"},
      {"[fault]\nkind = \"ecc\"", "must be written as [[fault]]"},
      {"[[process]]\ndevice = 1", "needs 'pid'"},
      {"seed = nan", "'seed' must be an integer"},
  };
  for (const Case& c : cases) {
    const Result<Scenario> scenario = ParseScenario(c.text);
    ASSERT_FALSE(scenario.ok()) << c.text;
    EXPECT_NE(scenario.status().message().find(c.expected), std::string::npos)
        << c.text << "\n  said: " << scenario.status().message();
  }
}

TEST(Scenario, MissingFileIsNamed) {
  const Result<Scenario> scenario = LoadScenario("/nonexistent/x.toml");
  ASSERT_FALSE(scenario.ok());
  EXPECT_NE(scenario.status().message().find("/nonexistent/x.toml"), std::string::npos);
}

TEST(Scenario, ADirectoryIsNoFile) {
  const Result<Scenario> scenario = LoadScenario("sim/scenarios");
  ASSERT_FALSE(scenario.ok());
  EXPECT_EQ(scenario.status().message(), "cannot read sim/scenarios");
}

// The files we ship parse, and between them show every fault kind.
TEST(Scenario, ShippedFilesAreValid) {
  std::set<FaultKind> kinds;
  std::set<DropMode> drops;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("sim/scenarios")) {
    const Result<Scenario> scenario = LoadScenario(entry.path().string());
    ASSERT_TRUE(scenario.ok()) << scenario.status().message();
    const bool is_fault = entry.path().filename().string().starts_with("fault-");
    EXPECT_EQ(is_fault, !scenario->faults.empty()) << entry.path();
    for (const Fault& fault : scenario->faults) {
      kinds.insert(fault.kind);
      if (fault.kind == FaultKind::kCardDrop) drops.insert(fault.drop);
    }
    ++files;
  }
  EXPECT_GE(files, 16);
  EXPECT_EQ(kinds.size(), static_cast<size_t>(FaultKind::kHccnTool) + 1);
  EXPECT_EQ(drops.size(), 3u);
  const Result<Scenario> shipped = LoadScenario("sim/scenarios/default-910b-8.toml");
  const Scenario builtin;
  EXPECT_EQ(shipped->chip, builtin.chip);
  EXPECT_EQ(shipped->devices, builtin.devices);
  EXPECT_EQ(shipped->seed, builtin.seed);
  EXPECT_EQ(shipped->phase_ns, builtin.phase_ns);
}

}  // namespace
}  // namespace profd::sim
