#include "daemon/session/local_cpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "collectors/collector.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"
#include "driver/rooted_fs.h"
#include "dump/test_support.h"

namespace profd {
namespace {

class Tree {
 public:
  void Write(const std::filesystem::path& file, std::string_view text) {
    std::filesystem::create_directories((std::filesystem::path(dir_.path()) / file).parent_path());
    std::ofstream(std::filesystem::path(dir_.path()) / file) << text;
  }
  RootedFs Open() const { return RootedFs::OpenRoot(dir_.path()).value(); }

 private:
  TempDir dir_;
};

TEST(LocalCpus, OfTheNodeThatDcmiNames) {
  Tree sys;
  sys.Write("devices/system/node/node1/cpulist", "32-63\n");
  const RootedFs fs = sys.Open();
  const SystemClock clock;
  const Host host{clock, fs, fs, nullptr, {}, 0};
  MetricStore store;
  store.SetDeviceLabels(0, "0", "DIE0");
  store.SetDeviceLabels(1, "1", "DIE1");
  const auto info = [&store, &clock](int device, std::string_view numa_node) {
    const SeriesId id = store.Intern(MetricByName("atlas_npu_info"), device,
                                     {"0", "0", "0", "Atlas 800T A2", "Ascend910B3", "V1", "SN", "0000:c1:00.0", "0x34", "", numa_node});
    store.Write(std::vector<Sample>{{id, clock.MonotonicRawNs(), 1}});
  };
  info(0, "1");
  info(1, "");
  EXPECT_EQ(LocalCpusOf(host, store, 0), "32-63");
  EXPECT_EQ(LocalCpusOf(host, store, 1), "") << "the kernel has no such file";
  EXPECT_EQ(LocalCpusOf(host, store, 2), "") << "no such device";
}

}  // namespace
}  // namespace profd
