// Each problem that can be switched on, by what it leaves in the ground truth.
#include <algorithm>
#include <functional>
#include <set>

#include "sim/app/sim_train_test_support.h"

namespace profd::sim::app {
namespace {

using nlohmann::json;

// Long enough against launch and gaps, so that what takes longer is seen.
constexpr char kJob[] = R"(
steps = 4
data_parallel = 2
launch_us = 0
link_latency_us = 0
[[layer]]
name = "block"
count = 2
gradient_mb = 2
[[layer.operator]]
type = "MatMulV2"
us = 100
backward_us = 200
shapes = [[64, 64], [64, 64]]
[[layer.operator]]
type = "Relu"
core = "aivec"
us = 40
[[optimizer]]
type = "ApplyAdam"
us = 50
[problems]
)";

class ProblemTest : public SimTrain {
 protected:
  void RunWith(const std::string& problem) {
    const ChildResult result = Run(WriteJob(kJob + problem + "\n"));
    ASSERT_EQ(result.exit_code, 0) << result.output;
  }
  size_t Count(const std::string& what, const std::function<bool(const json&)>& is) {
    const std::vector<json> lines = Truth(0, what);
    return static_cast<size_t>(std::count_if(lines.begin(), lines.end(), is));
  }
  static bool Named(const json& line, const std::string& name) { return line["name"] == name; }
  static int64_t Ns(const json& line) { return line["end_ns"].get<int64_t>() - line["begin_ns"].get<int64_t>(); }
  // Of the kernels of the rank in the steps, by their order.
  int64_t KernelNs(int rank, size_t from, size_t to) {
    const std::vector<json> kernels = Truth(rank, "kernel");
    int64_t sum = 0;
    for (size_t i = from * kernels.size() / 4; i < to * kernels.size() / 4; ++i) sum += Ns(kernels[i]);
    return sum;
  }
  // Once all have arrived: the last rank does not wait.
  std::vector<int64_t> TransferNs() {
    const std::vector<json> mine = Truth(0, "communication"), other = Truth(1, "communication");
    std::vector<int64_t> ns;
    for (size_t i = 0; i < std::min(mine.size(), other.size()); ++i) ns.push_back(std::min(Ns(mine[i]), Ns(other[i])));
    return ns;
  }
};

constexpr int64_t kTransferNs = 80'000;  // 2 MB at 25 bytes/ns

TEST_F(ProblemTest, None) {
  RunWith("");
  EXPECT_THAT(TransferNs(), testing::Each(kTransferNs));
  EXPECT_EQ(Count("kernel", [](const json& kernel) { return kernel["core"] == "aicpu"; }), 0u);
  EXPECT_EQ(Truth(0, "pause").size(), 0u);
  EXPECT_EQ(Count("api", [](const json& call) { return Named(call, "aclrtSynchronizeStream"); }), 4u);
}

TEST_F(ProblemTest, AicpuOperators) {
  RunWith("aicpu_operators = 1");
  EXPECT_EQ(Count("kernel", [](const json& kernel) { return kernel["core"] == "aicpu" && Ns(kernel) >= 2'000'000; }), 4u);
}

TEST_F(ProblemTest, DynamicShapes) {
  RunWith("dynamic_shapes = 1");
  EXPECT_EQ(Count("pause", [](const json& pause) { return Named(pause, "compile MatMulV2") && Ns(pause) >= 20'000'000; }),
            4u);
  std::set<std::string> shapes;
  for (const json& kernel : Truth(0, "kernel")) {
    if (kernel["name"] == "block_0/MatMulV2") shapes.insert(kernel["shapes"]);
  }
  EXPECT_EQ(shapes.size(), 4u) << "another one in each step";
}

TEST_F(ProblemTest, SyncStreams) {
  RunWith("sync_streams = 2");
  EXPECT_EQ(Count("api", [](const json& call) { return Named(call, "aclrtSynchronizeStream"); }), 4u * (1 + 3));
}

TEST_F(ProblemTest, GcGaps) {
  RunWith("gc_gaps = 15");
  EXPECT_EQ(Count("pause", [](const json& pause) { return Named(pause, "gc") && Ns(pause) >= 15'000'000; }), 1u);
}

TEST_F(ProblemTest, SmallPackets) {
  RunWith("small_packets = 4");
  const auto small = [](const json& reduction) { return reduction["bytes"] == 500'000; };
  EXPECT_EQ(Count("communication", small), 4u * 2 * 4);
}

TEST_F(ProblemTest, Contention) {
  RunWith("contention = 50");
  EXPECT_THAT(TransferNs(), testing::Each(kTransferNs * 3 / 2));
}

TEST_F(ProblemTest, Retransmission) {
  RunWith("retransmission = 50");
  EXPECT_THAT(TransferNs(), testing::AllOf(testing::Contains(kTransferNs), testing::Contains(kTransferNs * 5)));
}

TEST_F(ProblemTest, SlowLink) {
  RunWith("slow_link = 100");
  EXPECT_THAT(TransferNs(), testing::Each(kTransferNs * 2));
}

TEST_F(ProblemTest, SlowRank) {
  RunWith("slow_rank = 50");
  EXPECT_GT(KernelNs(1, 0, 4), KernelNs(0, 0, 4) * 14 / 10);
}

TEST_F(ProblemTest, FrequencyLoss) {
  RunWith("frequency_loss = 50");
  EXPECT_GT(KernelNs(0, 2, 4), KernelNs(0, 0, 2) * 19 / 10);
}

TEST_F(ProblemTest, MemoryStorm) {
  RunWith("memory_storm = 25");
  for (const char* function : {"aclrtMalloc", "aclrtFree"}) {
    EXPECT_EQ(Count("api", [&](const json& call) { return Named(call, function); }), 4u * 25) << function;
  }
}

TEST_F(ProblemTest, SlowDataLoader) {
  RunWith("slow_data_loader = 10");
  EXPECT_EQ(Count("pause", [](const json& pause) { return Named(pause, "dataloader") && Ns(pause) >= 10'000'000; }), 4u);
}

TEST_F(ProblemTest, SyncBatchNorm) {
  RunWith("sync_batch_norm = 2");
  const auto norm = [](const json& reduction) { return reduction["bytes"] == 2048 && reduction["group"] == "ep_0"; };
  EXPECT_EQ(Count("communication", norm), 4u * 2);
}

TEST_F(ProblemTest, UnfusedPatterns) {
  RunWith("unfused_patterns = 4");
  const auto part = [](const json& kernel) { return Named(kernel, "block_1/Relu_part3") && Ns(kernel) < 11'000; };
  EXPECT_EQ(Count("kernel", part), 4u);
}

TEST_F(ProblemTest, LowOccupancy) {
  RunWith("low_occupancy = 1");
  EXPECT_EQ(Count("kernel", [](const json& kernel) { return kernel["blocks"] == 1 && Ns(kernel) >= 800'000; }), 4u);
}

}  // namespace
}  // namespace profd::sim::app
