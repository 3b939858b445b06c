// The vendor's step trace (dump-format section 4): iterations of models with their forward and
// backward part, all-reduce and get-next, and training steps, out of the records of ts_track with tag
// 10. Times are cycles of the device's counter. One thread; the state is bounded whatever the input.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace profd::exporting {

struct StepTraceRecord {
  uint64_t cycles = 0;
  uint64_t index = 0;  // the step, of training steps
  uint64_t model = 0;
  uint16_t stream = 0;
  uint16_t tag = 0;
};

// A row of step_trace.csv.
struct StepTraceRow {
  bool training_step = false;  // of tags 60000 and 60001: no parts
  // Of a training step: the begin lies before the first record, the end behind the last one. Then
  // `start` or `end` is 0.
  bool begun_before = false;
  bool ends_after = false;
  uint64_t model = 0;
  uint64_t iteration = 0;  // counted per model from 1; the step, of a training step
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t fp_start = 0;  // 0 = unknown, as for the analyser
  uint64_t bp_end = 0;
  uint64_t data_aug = 0;  // cycles from the end of an earlier iteration to fp_start; 0 = unknown
  std::vector<std::pair<uint64_t, uint64_t>> reduce = {};    // stream by stream
  std::vector<std::pair<uint64_t, uint64_t>> get_next = {};  // by start
  bool operator==(const StepTraceRow&) const = default;
};

class StepTrace {
 public:
  // Rows come in the order of their ends, iterations and training steps each for themselves; of iterations of a model
  // that overlap, the later one behind the earlier.
  explicit StepTrace(std::function<void(const StepTraceRow&)> row) : row_(std::move(row)) {}

  // Records may be out of order, by kReorder records at most; those of training steps, which may be in files of their
  // own, are counted apart.
  void Add(const StepTraceRecord& record);
  // Iterations still open are dropped; training steps end after the last record, but for those of which only the end is
  // missing.
  void Finish();
  // Records that fit nowhere: too late, an end without a start, a step's half whose other one is lost.
  uint64_t dropped() const { return dropped_; }

  static constexpr size_t kReorder = 8192;

 private:
  static constexpr size_t kMaxModels = 1024;
  static constexpr size_t kMaxPairs = 4096;  // of one iteration
  static constexpr size_t kMaxEnds = 4096;
  static constexpr size_t kMaxSteps = 4096;
  static constexpr size_t kMaxOpen = 256;  // iterations of one model at once

  enum class State : uint8_t { kOutside, kModelStarted, kIterationEnded };
  struct Reduce {
    uint16_t stream;
    uint64_t start;
    uint64_t end;  // 0 = open
  };
  // An iteration in the order of begins; the records of all but the first wait, for iterations may overlap.
  struct Open {
    uint16_t first_tag;
    uint16_t last_tag;  // of model and iteration
    std::vector<StepTraceRecord> waiting;
  };
  struct Model {
    std::deque<Open> open;
    bool started = false;  // since the last model end the start of one was processed
    State state = State::kOutside;
    uint64_t iteration = 1;
    uint64_t start = 0;
    uint64_t fp_start = 0;
    uint64_t bp_end = 0;
    std::vector<Reduce> reduces;
    std::map<uint16_t, uint64_t> next_starts;  // by half the tag
    std::vector<std::pair<uint64_t, uint64_t>> next_pairs;
  };
  struct LaterRecord {
    bool operator()(const std::pair<uint64_t, StepTraceRecord>& a,
                    const std::pair<uint64_t, StepTraceRecord>& b) const {
      return a.second.cycles != b.second.cycles ? a.second.cycles > b.second.cycles
                                                : a.first > b.first;
    }
  };

  struct Lane {
    std::vector<std::pair<uint64_t, StepTraceRecord>> waiting;  // a heap; the number keeps equals in order
    uint64_t reached = 0;                                       // cycles of the latest record processed
  };

  void Pop(Lane* lane);
  void Process(const StepTraceRecord& record);
  void Order(const StepTraceRecord& record, Model* model);
  void Put(const StepTraceRecord& record, size_t at, Model* model);
  void Begin(const StepTraceRecord& record, Model* model);
  void EndModel(const StepTraceRecord& record, Model* model);
  void Advance(Model* model);
  void Settle(Model* model);
  void Apply(const StepTraceRecord& record, Model* model);
  void TrainingStep(const StepTraceRecord& record);
  void Part(const StepTraceRecord& record, Model* model);
  void Start(uint64_t cycles, Model* model);
  void End(const StepTraceRecord& record, Model* model);
  void Emit(StepTraceRow* row);

  std::function<void(const StepTraceRow&)> row_;
  Lane iteration_lane_;
  Lane step_lane_;
  uint64_t number_ = 0;
  std::map<uint64_t, Model> models_;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> steps_;  // index -> model, start
  std::map<uint64_t, uint64_t> ended_;  // by model: start of the latest training step that has both records
  std::deque<uint64_t> ends_;                                // of iterations, ascending
  bool step_seen_ = false;
  uint64_t dropped_ = 0;
};

}  // namespace profd::exporting
