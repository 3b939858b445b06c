// Checks of the advisor (analysis 1): each a function of a run, or of one rank of it, in a file of its own; all of them in
// one table (checks.cc). A finding is data; its texts are for people.
#pragma once

#include <nlohmann/json.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/checks/translated_text.h"
#include "analysis/cluster/cluster.h"
#include "analysis/rank.h"
#include "analysis/rules/limits.h"
#include "analysis/run.h"

namespace profd::analysis {

using Json = nlohmann::ordered_json;

enum class Priority : uint8_t { kHigh, kMedium, kLow, kInfo };
std::string_view PriorityWord(Priority priority);

struct Finding {
  Priority priority = Priority::kInfo;
  std::optional<double> cost_ms = std::nullopt;  // of a step; of all that was recorded where the run has none
  TranslatedText title = {};
  TranslatedText evidence = {};
  std::vector<TranslatedText> advice = {};
  std::vector<std::string_view> code = {};  // to paste
  std::vector<std::string> columns = {};
  std::vector<Json> rows = {};  // each a list; the most important first; a text that is translated is a CellOf()
  std::vector<std::string> stacks = {};  // of what it is about, frames parted by ';'; the most important first
  std::optional<int64_t> step = std::nullopt;
  std::optional<int64_t> at_ns = std::nullopt;  // where to look on the rank's timeline
};

struct CheckInput {
  const Run& run;
  const Rank& rank;  // the one to look at; of checks of a complete run its first
  const Limits& limits;
  // What is compared: the ranks of the run and of the baseline; without one the slowest and the fastest rank of the run.
  // Empty: there is nothing to compare with.
  std::vector<const Rank*> compared = {};
  std::vector<const Rank*> compared_with = {};
  std::string compared_name = {};
  std::string compared_with_name = {};
  const Cluster* cluster = nullptr;  // of the run; always there where checks are called
  const Step* step = nullptr;        // of the rank: the one by which it was chosen, for checks of events; null: all of them

  bool IsInStep(int64_t start_ns, int64_t end_ns) const { return step == nullptr || (start_ns >= step->start_ns && end_ns <= step->end_ns); }
  std::optional<int64_t> StepNumber() const { return step == nullptr ? std::nullopt : std::optional(step->number); }
};

enum class Dimension : uint8_t { kOverall, kComparison, kComputation, kSchedule, kCommunication, kMemory, kDataloader };
std::string_view DimensionWord(Dimension dimension);

struct Check {
  std::string_view id;
  Dimension dimension;
  Text needs;   // what must have been recorded
  Text what;    // what it looks for
  bool of_run;  // once for all ranks; others look at the rank that their dimension chooses
  std::optional<Finding> (*find)(const CheckInput& input);
};
std::span<const Check> Checks();

std::optional<Finding> CheckOverall(const CheckInput& input);
std::optional<Finding> CheckSlowRank(const CheckInput& input);
std::optional<Finding> CheckSlowLink(const CheckInput& input);
std::optional<Finding> CheckEnvironment(const CheckInput& input);
std::optional<Finding> CheckKernelCompare(const CheckInput& input);
std::optional<Finding> CheckApiCompare(const CheckInput& input);
std::optional<Finding> CheckAiCoreFrequency(const CheckInput& input);
std::optional<Finding> CheckAiCpu(const CheckInput& input);
std::optional<Finding> CheckDynamicShape(const CheckInput& input);
std::optional<Finding> CheckBlockDim(const CheckInput& input);
std::optional<Finding> CheckAiCorePerformance(const CheckInput& input);
std::optional<Finding> CheckAffinityApi(const CheckInput& input);
std::optional<Finding> CheckFusibleOperators(const CheckInput& input);
std::optional<Finding> CheckStageImbalance(const CheckInput& input);
std::optional<Finding> CheckWaitForRank(const CheckInput& input);
std::optional<Finding> CheckExpertImbalance(const CheckInput& input);
std::optional<Finding> CheckBandwidthImbalance(const CheckInput& input);
std::optional<Finding> CheckByteAlignment(const CheckInput& input);
std::optional<Finding> CheckOperatorNoBound(const CheckInput& input);
std::optional<Finding> CheckSynchronizeStream(const CheckInput& input);
std::optional<Finding> CheckGc(const CheckInput& input);
std::optional<Finding> CheckConjecturedGc(const CheckInput& input);
std::optional<Finding> CheckOperatorDispatch(const CheckInput& input);
std::optional<Finding> CheckSyncBatchNorm(const CheckInput& input);
std::optional<Finding> CheckPacket(const CheckInput& input);
std::optional<Finding> CheckBandwidthContention(const CheckInput& input);
std::optional<Finding> CheckRetransmission(const CheckInput& input);
std::optional<Finding> CheckMemory(const CheckInput& input);
std::optional<Finding> CheckDataloader(const CheckInput& input);
std::optional<Finding> CheckThrottle(const CheckInput& input);
std::optional<Finding> CheckHbm(const CheckInput& input);
std::optional<Finding> CheckHccs(const CheckInput& input);
std::optional<Finding> CheckRoce(const CheckInput& input);
std::optional<Finding> CheckOtherProcess(const CheckInput& input);
std::optional<Finding> CheckHostCpu(const CheckInput& input);
std::optional<Finding> CheckHostMemory(const CheckInput& input);
std::optional<Finding> CheckHostStorage(const CheckInput& input);
std::optional<Finding> CheckHostAffinity(const CheckInput& input);
std::optional<Finding> CheckPcie(const CheckInput& input);
std::optional<Finding> CheckProfiling(const CheckInput& input);

// Parts of several checks.

inline constexpr Text kGcAdvice("Raise the threshold (gc.set_threshold), or switch it off and collect between steps.", "提高阈值（gc.set_threshold），或关闭自动回收并在 step 之间手动回收。");
inline constexpr std::string_view kGcCode =
    "import gc\n"
    "gc.disable()  # before the first step\n"
    "gc.collect()  # between steps, where a pause does no harm";
inline constexpr Text kStaticCompileAdvice("Put these lines at the begin of the script, in each process of a distributed training.", "在训练脚本开头加入以下代码；分布式训练须保证每个进程都执行。");
inline constexpr std::string_view kStaticCompileCode =
    "import torch_npu\n"
    "torch_npu.npu.set_compile_mode(jit_compile=False)\n"
    "torch_npu.npu.config.allow_internal_format = False";

// By the time rule (1.2): of what takes `ms` in a step of `step_ms`.
Priority PriorityOf(double ms, double step_ms, const Limits& limits);
// Quotients, means and sums of shares are rounded: three of 0.3 reach 0.9, and 0.005 of 0.1 ms is 5 %. What must be above
// a limit is what the limit does not reach.
bool Reaches(double share, double limit);
// Of `input.step`, else of the last step; 0: there is none.
double StepLengthMs(const CheckInput& input);
// Of all that was recorded, a step's part.
double PerStep(const Rank& rank, double ms);
// The same of events within `input.step`.
inline double CostOf(const CheckInput& input, double ms) { return input.step == nullptr ? PerStep(input.rank, ms) : ms; }
// What is compared: those ranks of both sides that have it, and what their sums are divided by: steps, of ranks that have
// steps; where a side has none, ranks.
struct Sides {
  std::vector<const Rank*> mine;
  std::vector<const Rank*> other;
  bool of_steps = false;
  double mine_per = 0;
  double other_per = 0;
};
Sides SidesOf(const CheckInput& input, bool (*has)(const Rank& rank));
// The cost of `slower_ms`; of a step nothing is known where only the run has steps.
std::optional<double> ComparedCost(const CheckInput& input, const Sides& sides, double slower_ms);
// Marks may have been recorded for longer than the device was: whether what began then is a part of those steps.
bool IsInSteps(const Rank& rank, int64_t start_ns);
// All calls on the host whose names are meant, within `input.step`.
struct Calls {
  uint64_t count = 0;
  int64_t ns = 0;
  std::optional<int64_t> first_ns = std::nullopt;
};
Calls CallsOf(const CheckInput& input, const std::function<bool(std::string_view name)>& is_one);
// What went over a transport ("SDMA"), in all; and GB/s.
Transport SumOf(const Rank& rank, std::string_view transport);
double SpeedOf(const Transport& sum);
// Name of the API behind its layer: "aclrtFree" of "AscendCL@aclrtFree"; of other names nothing is cut.
std::string_view ApiOf(std::string_view name);
// Of what was measured in two runs, four decimals; null: the other has none of it.
Json RatioOf(double mine, double other);
// Not one operator was compiled for a static shape.
bool ShapesAreDynamic(const Rank& rank);
// "rank 3 on node7", "device 0"
std::string NameOf(const Rank& rank);

}  // namespace profd::analysis
