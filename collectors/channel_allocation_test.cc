// Decoders run for every record of every device: once their series are known they must not
// allocate.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "base/testing/temp_dir.h"
#include "collectors/collector.h"
#include "collectors/proc/testing/count_allocations.h"
#include "collectors/testing/channel_fixture.h"

namespace profd {
namespace {

struct Capture {
  std::string_view collector;
  uint32_t channel;
  int chip;
  const char* name;
};

constexpr auto kCaptures = std::to_array<Capture>({
    {"hbm", 1, 5, "hbm/testdata/hbm"},
    {"pcie", 3, 5, "pcie/testdata/pcie"},
    {"nic", 4, 5, "nic/testdata/nic_15"},
    {"dvpp", 6, 5, "dvpp/testdata/dvpp_12"},
    {"ddr", 7, 4, "ddr/testdata/ddr_310p"},
    {"llc", 8, 5, "llc/testdata/llc_read"},
    {"hccs", 9, 5, "hccs/testdata/hccs"},
    {"soc_profile", 52, 5, "soc_profile/testdata/soc_910b"},
    {"soc_profile", 52, 15, "soc_profile/testdata/soc_950"},
    {"roce", 129, 5, "roce/testdata/roce_16"},
    {"npu_mem", 130, 5, "npu_mem/testdata/npu_mem_app"},
    {"npu_mem", 142, 5, "npu_mem/testdata/npu_module_mem"},
    {"aicore_freq", 132, 5, "aicore_freq/testdata/lpm_info"},
    {"qos", 133, 5, "qos/testdata/qos"},
});

TEST(ChannelDecoders, AllocateNothingOnceTheirSeriesAreKnown) {
  for (const Capture& capture : kCaptures) {
    SCOPED_TRACE(capture.name);
    const std::string bytes = ReadText(std::string("collectors/") + capture.name + ".in");
    ASSERT_FALSE(bytes.empty());
    const CollectorEntry* entry = FindCollector(capture.collector);
    ASSERT_NE(entry, nullptr);
    testing::DecoderRig rig(*entry, testing::MakeDevice(capture.chip), capture.channel);
    SampleBatch batch;
    rig.decoder().Decode(AsBytes(bytes), rig.time(), batch);
    size_t samples = batch.samples().size();
    batch.Clear();
    rig.decoder().Reset();

    uint64_t before = testing::Allocations();
    rig.decoder().Decode(AsBytes(bytes), rig.time(), batch);
    EXPECT_EQ(testing::Allocations(), before);
    EXPECT_GE(batch.samples().size(), samples);
    EXPECT_GT(samples, 0u);
    EXPECT_GT(before, 0u) << "nothing counts";
  }
}

}  // namespace
}  // namespace profd
