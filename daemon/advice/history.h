// What is kept of each attached process for the live checks: its last steps, what its marks say of the host, sums of
// its activity, and what each of these was in the past. Bounded for each process; control strand.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rules/host_work.h"
#include "base/clock.h"
#include "daemon/advice/baseline.h"
#include "daemon/advice/facts.h"
#include "daemon/jobs/activity_window.h"
#include "daemon/jobs/job_directory.h"

namespace profd {

using analysis::HostWork;

// Sums of the last seconds.
class HostSeconds {
 public:
  static constexpr int64_t kWindow = 10;

  struct Sum {
    std::array<double, 4> ms{};       // by HostWork
    std::array<double, 4> longest{};  // the same
    double aicpu_ms = 0;
    uint64_t aicpu_kernels = 0;
    double compile_ms = 0;  // calls of the API
    uint64_t compilations = 0;
    uint64_t steps = 0;
  };

  // Of the second of `time_ns`; null: it is too old.
  Sum* At(int64_t time_ns);
  // The last kWindow complete seconds.
  Sum Last(int64_t now_ns);

 private:
  static constexpr size_t kSeconds = 16;
  void Advance(int64_t second);

  std::array<Sum, kSeconds> seconds_{};
  int64_t newest_ = 0;
};

class RankHistory {
 public:
  static constexpr size_t kSteps = 128;
  static constexpr size_t kKernels = 20;
  // From how much above its past on a value is suspicious, for how long it may be so.
  struct Rules {
    double steps = 0;
    double kernels = 0;
    double shares = 0;
    int64_t forget_ns = 0;
  };

  void TakeMarks(std::span<const Mark> marks);
  void TakeActivity(const ActivityBatch& batch);
  // The ids of names mean something else now.
  void ForgetNames();
  // About once a second. `live`: of its window, as far as it is collected from.
  RankFacts Facts(const TrainingProcess& process, const LiveActivity& live, int64_t now_ns, const Rules& rules);

 private:
  static constexpr size_t kMaxDepth = 64;
  struct OpenRange {
    HostWork work = HostWork::kNone;
    int64_t begin_ns = 0;
  };

  void TakeStep(const Mark& mark);
  void TakeRange(const Mark& mark);
  void AddStep(int64_t step, int64_t begin_ns, int64_t end_ns);
  void FillSteps(RankFacts* facts, int64_t now_ns, const Rules& rules);
  void FillShares(const LiveActivity& live, RankFacts* facts, int64_t now_ns, const Rules& rules);
  double StepsIn(int64_t begin_ns, int64_t end_ns, uint64_t ended) const;
  void FillKernels(const LiveActivity& live, int64_t now_ns, const Rules& rules);
  void FillHost(RankFacts* facts, int64_t now_ns);
  // Whether a name has `part` in it; `known` by id: 0 not yet, 1 yes, -1 no. Inline, as it is called for every record.
  static bool IsNamed(uint32_t id, std::string_view part, const ActivityNameTable& names, std::vector<int8_t>* known) {
    const int8_t is = id < known->size() ? (*known)[id] : int8_t{0};
    return is != 0 ? is > 0 : LookUp(id, part, names, known);
  }
  static bool LookUp(uint32_t id, std::string_view part, const ActivityNameTable& names, std::vector<int8_t>* known);

  // Steps.
  std::optional<int64_t> step_;
  bool open_ = false;
  int64_t begin_ns_ = 0;
  int64_t last_ns_ = 0;
  uint64_t done_ = 0;
  uint64_t done_before_ = 0;  // at the last look
  std::array<StepTime, kSteps> steps_{};  // a ring: done_ % kSteps is next
  Baseline step_past_;
  // Ranges of the thread that makes the steps.
  std::optional<int32_t> thread_;
  std::vector<OpenRange> ranges_;
  size_t deeper_ = 0;  // those beyond kMaxDepth
  HostSeconds host_;
  // Activity.
  std::vector<int8_t> aicpu_types_;    // by id of a name: 0 not known, 1 it is, -1 it is not
  std::vector<int8_t> compile_names_;  // the same
  int64_t last_kernel_ns_ = 0;
  int64_t shares_end_ns_ = 0;
  std::array<Baseline, 4> share_past_{};
  std::map<std::string, Baseline, std::less<>> kernel_past_;
  std::vector<KernelTime> kernels_;
  int64_t next_kernels_ns_ = 0;
};

}  // namespace profd
