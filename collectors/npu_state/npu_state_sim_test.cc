// npu_state on the simulator's libdcmi.so, loaded the way the daemon loads the vendor's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "collectors/collector_list.h"
#include "collectors/npu_state/npu_state.h"
#include "collectors/proc/testing/fake_tree.h"
#include "collectors/testing/fake_registry.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

using testing::FakeRegistry;
using testing::FakeTree;
using ::testing::HasSubstr;
using ::testing::Not;

struct NullSink final : RawSink {
  void WriteHostFile(std::string_view, std::string_view) override {}
};

// A node of its own: the library keeps one scenario for each file it was loaded from.
class SimulatedNpus {
 public:
  explicit SimulatedNpus(std::string_view scenario) {
    tree_.Write("scenario.toml", scenario);
    const std::string copy = tree_.root() + "/libdcmi.so";
    std::filesystem::copy_file(PROFD_SIM_DCMI, copy);
    setenv("PROFD_SIM_SCENARIO", (tree_.root() + "/scenario.toml").c_str(), 1);
    auto library = LoadDcmiLibrary(copy, true);
    EXPECT_TRUE(library.ok()) << library.status().ToString();
    if (!library.ok()) return;
    missing = library->missing;
    dcmi = std::make_unique<DcmiService>(std::move(library).value(), clock_);
    EXPECT_TRUE(dcmi->Start().ok());
    host_.emplace(Host{clock_, *sys_, *sys_, dcmi.get(), {}, 0});
    auto made = kNpuStateCollector.make_poller(*host_, {}, registry);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    collector_ = std::move(made).value();
  }

  std::string Poll(int64_t second) {
    batch.Clear();
    PollOutput out{batch, sink_};
    status = collector_->Poll({second * kNsPerSecond, second * kNsPerSecond, 0}, out);
    return registry.PrintValues(batch);
  }

  FakeRegistry registry;
  SampleBatch batch;
  Status status;
  std::unique_ptr<DcmiService> dcmi;
  std::vector<std::string> missing;

 private:
  FakeTree tree_;
  Result<RootedFs> opened_ = RootedFs::OpenRoot(tree_.root());
  const RootedFs* sys_ = &*opened_;
  SystemClock clock_;
  NullSink sink_;
  std::optional<Host> host_;
  std::unique_ptr<PolledCollector> collector_;
};

double LargestPlausible(const std::string& name) {
  const auto has = [&](const char* unit) { return name.find(unit) != std::string::npos; };
  if (has("_ratio{")) return 1;
  if (has("_watts{")) return 1000;
  if (has("_celsius{")) return 130;
  if (has("_volts{")) return 2;
  return HUGE_VAL;
}

struct Chip {
  const char* scenario;
  size_t npus;
  const char* has;
  const char* has_not;
};

class NpuStateOnChip : public ::testing::TestWithParam<Chip> {};

TEST_P(NpuStateOnChip, ReadsPlausibleValuesAndNothingTheChipLacks) {
  SimulatedNpus sim(GetParam().scenario);
  ASSERT_EQ(sim.dcmi->devices().size(), GetParam().npus);
  for (const DcmiDevice& device : sim.dcmi->devices()) {
    EXPECT_EQ(device.uuid.size(), 44u) << device.uuid;
  }
  sim.Poll(0);
  const std::string text = sim.Poll(10);
  EXPECT_TRUE(sim.status.ok()) << sim.status.ToString();
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(GetParam().has));
  EXPECT_THAT(text, Not(HasSubstr(GetParam().has_not)));
  EXPECT_GT(sim.batch.samples().size(), 60 * GetParam().npus);
  for (const Sample& sample : sim.batch.samples()) {
    const std::string name = sim.registry.Name(sample.series);
    EXPECT_TRUE(std::isfinite(sample.value)) << name;
    EXPECT_GE(sample.value, 0) << name;
    EXPECT_LE(sample.value, LargestPlausible(name)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Chips, NpuStateOnChip,
    ::testing::Values(
        Chip{"chip = \"910\"", 8, "atlas_npu_ddr_size_bytes{", "atlas_npu_hccs_flits_total{"},
        Chip{"chip = \"910B\"", 8, "atlas_npu_hccs_flits_total{", "atlas_npu_ddr_size_bytes{"},
        Chip{"chip = \"A3\"", 16, "atlas_npu_sio_crc_errors_total{", "atlas_npu_ddr_size_bytes{"},
        Chip{"chip = \"A3\"", 16, "atlas_npu_hccs_credits{", "atlas_npu_ub_"},
        Chip{"chip = \"910B\"", 8, "atlas_npu_network_fec_codewords_total{", "atlas_npu_vnpu_"},
        Chip{"chip = \"910\"\n[[vnpu]]\nid = 100\n", 8, "atlas_npu_vnpu_memory_bytes{",
             "atlas_npu_network_tc_packets_total{"}),
    [](const auto& test) { return "Npus" + std::to_string(test.index); });

TEST(NpuStateOnSimulator, UnifiedBusOfTheNewestChip) {
  SimulatedNpus sim("chip = \"950\"\ndevices = 2\n");
  EXPECT_EQ(sim.dcmi->api_name(), "v2");
  const std::string text = sim.Poll(0);
  EXPECT_TRUE(sim.status.ok()) << sim.status.ToString();
  EXPECT_THAT(text, HasSubstr("atlas_npu_power_watts{npu=\"1\",scope=\"chip\"}"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_ub_link_up{npu=\"1\",udie=\"\",port=\"8\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("atlas_npu_ub_crc_errors_total{npu=\"1\",udie=\"1\",port=\"8\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_ub_ethernet_pause_frames_total{npu=\"1\",udie=\"1\","
                              "port=\"8\",direction=\"rx\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_hccs_")));
}

TEST(NpuStateOnSimulator, FaultEventsAreCountedFromTheListsOfFaults) {
  // A state that is present at the first poll is not an event.
  SimulatedNpus sim("[[fault]]\nkind = \"ecc\"\ndevice = 1\ndouble = 2\n");
  sim.Poll(0);
  EXPECT_THAT(sim.Poll(10), HasSubstr("atlas_npu_fault_events_total{npu=\"1\",severity=\"major\","
                                      "assertion=\"raised\"} 0\n"));
}

TEST(NpuStateOnSimulator, ADroppedCardIsDownAndTheOthersAreNot) {
  SimulatedNpus sim("[[fault]]\nkind = \"card_drop\"\ndevice = 1\n");
  const std::string text = sim.Poll(0);
  EXPECT_TRUE(sim.status.ok());
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"1\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_up{npu=\"2\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("atlas_npus{state=\"unknown\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_power_watts{npu=\"1\"")));
}

TEST(NpuStateOnSimulator, FaultsShow) {
  SimulatedNpus sim(
      "[[fault]]\nkind = \"throttle\"\ndevice = 3\nmhz = 900\ncause = 5\n"
      "[[fault]]\nkind = \"ecc\"\ndevice = 1\nsingle = 7\ndouble = 2\n");
  const std::string text = sim.Poll(0);
  EXPECT_THAT(text, HasSubstr("atlas_npu_frequency_hertz{npu=\"3\",domain=\"aicore\"} 900000000"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_throttle_reason{npu=\"3\",reason=\"bit0\"} 1"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_throttle_reason{npu=\"3\",reason=\"bit2\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("atlas_npu_throttle_reason{npu=\"2\"")));
  EXPECT_THAT(text, HasSubstr("atlas_npu_ecc_errors_total{npu=\"1\",memory=\"hbm\","
                              "type=\"single\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("atlas_npu_fault_active{npu=\"1\",code="));
  EXPECT_THAT(text, HasSubstr("atlas_npu_health_status{npu=\"1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("atlas_npus{state=\"unhealthy\"} 2\n"));
}

TEST(NpuStateOnSimulator, TheLibraryIsCheckedBeforeItIsLoaded) {
  FakeTree tree;
  const std::string copy = tree.root() + "/libdcmi.so";
  std::filesystem::copy_file(PROFD_SIM_DCMI, copy);
  std::filesystem::permissions(copy, std::filesystem::perms::all);
  auto library = LoadDcmiLibrary(copy, false);
  EXPECT_EQ(library.status().code(), StatusCode::kPermissionDenied);
  auto nothing = LoadDcmiLibrary(tree.root() + "/none.so", true);
  EXPECT_FALSE(nothing.ok());
  EXPECT_THAT(nothing.status().message(), HasSubstr("none.so"));
}

}  // namespace
}  // namespace profd
