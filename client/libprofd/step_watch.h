// Which sessions wait for steps of this process, and which want its marks. Counts steps for each of
// them and returns what to report. Not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proto/attach/attach_protocol.h"

namespace profd::lib {

class StepWatch {
 public:
  // More sessions than any daemon allows a process; notices beyond are ignored.
  static constexpr size_t kMaxSessions = 256;

  static constexpr int64_t kNoStep = std::numeric_limits<int64_t>::min();

  // `last_step`: that has begun; kNoStep = none.
  void OnNotice(const attach::SessionNotice& notice, int64_t last_step = kNoStep);
  // What the sessions are notified of at this boundary. A session's first step is the first one that
  // begins at or after its start_step; its last one is the n-th distinct step from there.
  void OnStep(int64_t step, bool begin, int64_t now_ns, std::vector<attach::StepReport>* reports);
  void Clear() { sessions_.clear(); }
  // A profiler takes some time to begin, the first time in a process above all.
  static constexpr int64_t kWarmUpNs = 1'000'000'000;
  // Armed sessions that collect, and whose first step is the next one, or less than kWarmUpNs away by the last step's
  // length: once for each.
  std::vector<std::string> TakeDue() { return std::exchange(due_, {}); }
  bool has_due() const { return !due_.empty(); }

  bool wants_marks() const;
  // 0: no session wants call stacks; else another number whenever one begins to.
  int wants_stacks() const;
  bool wants_steps() const;

 private:
  struct Watched {
    bool running = false;
    bool marks = false;   // wants them, not only steps
    bool stacks = false;  // wants them, while it runs
    std::optional<int64_t> start_step;
    uint32_t steps = 0;
    bool warms_up = false;  // is not yet due

    bool begun = false;  // the begin was reported, or lies before the notice
    bool done = false;
    uint32_t seen = 0;   // distinct steps begun since
    uint32_t ended = 0;  // distinct steps ended since
    std::optional<int64_t> last_begun, last_ended;

    bool waits() const { return !done && (!begun || steps > 0); }
  };
  static void Begin(int64_t step, const std::string& id, Watched& session,
                    std::vector<attach::StepReport>* reports);
  void LookDue(int64_t step, int64_t now_ns);
  static void End(int64_t step, const std::string& id, Watched& session,
                  std::vector<attach::StepReport>* reports);

  std::map<std::string, Watched> sessions_;
  std::vector<std::string> due_;
  int stack_orders_ = 0;
  int64_t last_begin_ns_ = 0;  // 0 = not known
};

}  // namespace profd::lib
