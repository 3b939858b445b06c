// A libdcmi made of values and npu_state on top of it, for its tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/npu_state/npu_state.h"
#include "collectors/proc/testing/fake_tree.h"
#include "collectors/testing/fake_registry.h"
#include "driver/rooted_fs.h"
#include "driver/testing/fake_dcmi.h"

namespace profd::testing {

struct NullSink final : RawSink {
  void WriteHostFile(std::string_view, std::string_view) override {}
};

// Every line of `text` that begins with `prefix`, sorted.
inline std::vector<std::string> Lines(const std::string& text, std::string_view prefix = "") {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(prefix)) lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

class NpuStateTest : public ::testing::Test {
 protected:
  void Start(int cards, const NpuStateOptions& options = {}) {
    if (!fake) fake.emplace(cards);
    dcmi.emplace(fake->V1(), clock);
    ASSERT_TRUE(dcmi->Start().ok());
    host.emplace(Host{clock, *sys, *sys, &*dcmi, {}, 0});
    collector = MakeNpuState(*host, options, registry);
  }
  // One tick at `second` seconds after the first; its samples without their times.
  std::string PollAt(int64_t second) {
    clock.raw_ns = kStart + second * kNsPerSecond;
    clock.steady_ns = clock.raw_ns.load();
    batch.Clear();
    PollOutput out{batch, sink};
    last = collector->Poll({clock.raw_ns, clock.raw_ns, 0}, out);
    return registry.PrintValues(batch);
  }

  static constexpr int64_t kStart = 1000 * kNsPerSecond;
  ManualClock clock;
  FakeTree tree;
  Result<RootedFs> opened = RootedFs::OpenRoot(tree.root());
  const RootedFs* sys = &*opened;
  std::optional<FakeDcmi> fake;
  std::optional<DcmiService> dcmi;
  std::optional<Host> host;
  FakeRegistry registry;
  NullSink sink;
  SampleBatch batch;
  Status last;
  std::unique_ptr<PolledCollector> collector;
};

}  // namespace profd::testing
