#include "export/decode/step_trace.h"

#include <algorithm>
#include <utility>

namespace profd::exporting {
namespace {

constexpr uint16_t kModelStart = 0;
constexpr uint16_t kModelEnd = 1;
constexpr uint16_t kFpStart = 2;
constexpr uint16_t kBpEnd = 3;
constexpr uint16_t kIterationEnd = 4;
constexpr uint16_t kReduceFirst = 10000;
constexpr uint16_t kGetNextFirst = 20000;
constexpr uint16_t kStepStart = 60000;
constexpr uint16_t kStepEnd = 60001;

bool IsTrainingStep(const StepTraceRecord& record) { return record.tag == kStepStart || record.tag == kStepEnd; }

}  // namespace

void StepTrace::Add(const StepTraceRecord& record) {
  Lane& lane = IsTrainingStep(record) ? step_lane_ : iteration_lane_;
  lane.waiting.emplace_back(number_++, record);
  std::ranges::push_heap(lane.waiting, LaterRecord());
  if (lane.waiting.size() > kReorder) Pop(&lane);
}

void StepTrace::Finish() {
  for (Lane* lane : {&iteration_lane_, &step_lane_}) {
    while (!lane->waiting.empty()) Pop(lane);
  }
  for (auto& [number, model] : models_) {
    while (!model.open.empty()) Advance(&model);
  }
  for (const auto& [index, begun] : steps_) {
    const auto ended = ended_.find(begun.first);
    if (ended != ended_.end() && ended->second > begun.second) {
      ++dropped_;  // its end is lost: a later one has ended
      continue;
    }
    StepTraceRow row;
    row.training_step = true;
    row.ends_after = true;
    row.model = begun.first;
    row.iteration = index;
    row.start = begun.second;
    row_(row);
  }
  steps_.clear();
  models_.clear();
}

void StepTrace::Pop(Lane* lane) {
  std::ranges::pop_heap(lane->waiting, LaterRecord());
  StepTraceRecord record = lane->waiting.back().second;
  lane->waiting.pop_back();
  if (record.cycles < lane->reached) {
    ++dropped_;
    return;
  }
  lane->reached = record.cycles;
  Process(record);
}

void StepTrace::Process(const StepTraceRecord& record) {
  if (IsTrainingStep(record)) return TrainingStep(record);
  auto it = models_.find(record.model);
  if (it == models_.end()) {
    if (models_.size() >= kMaxModels) {
      ++dropped_;
      return;
    }
    it = models_.try_emplace(record.model).first;
  }
  Order(record, &it->second);
}

// As the vendor's analyser: a model's and an iteration's records belong to the first iteration that lacks them, a
// reduce to the first that has not ended, a get-next to the last. A reduce behind the end of the last one, which the
// analyser loses, belongs to what follows.
void StepTrace::Order(const StepTraceRecord& record, Model* model) {
  std::deque<Open>& open = model->open;
  if (record.tag == kModelStart) return Begin(record, model);
  if (record.tag == kModelEnd) return EndModel(record, model);
  if (record.tag >= kReduceFirst) {
    if (open.empty()) return;
    auto of = open.end();
    if (record.tag < kGetNextFirst) {
      of = std::ranges::find_if(open, [](const Open& each) { return each.last_tag != kIterationEnd; });
    }
    return Put(record, static_cast<size_t>((of == open.end() ? of - 1 : of) - open.begin()), model);
  }
  if (record.tag > kIterationEnd) return;
  const auto lacking = std::ranges::find_if(open, [&](const Open& each) { return each.last_tag < record.tag; });
  if (lacking == open.end()) return Begin(record, model);
  lacking->last_tag = record.tag;
  Put(record, static_cast<size_t>(lacking - open.begin()), model);
  Settle(model);
}

void StepTrace::Put(const StepTraceRecord& record, size_t at, Model* model) {
  if (at == 0) return Apply(record, model);
  std::vector<StepTraceRecord>& waiting = model->open[at].waiting;
  if (waiting.size() < kMaxPairs) {
    waiting.push_back(record);
  } else {
    ++dropped_;
  }
}

void StepTrace::Begin(const StepTraceRecord& record, Model* model) {
  model->open.push_back({record.tag, record.tag, {}});
  if (model->open.size() == 1) model->started = model->started || record.tag == kModelStart;
  Put(record, model->open.size() - 1, model);
  Settle(model);
}

// It ends the first model that started and what began before the second.
void StepTrace::EndModel(const StepTraceRecord& record, Model* model) {
  bool started = model->started && !model->open.empty() && model->open.front().first_tag != kModelStart;
  while (!model->open.empty()) {
    if (model->open.front().first_tag == kModelStart && std::exchange(started, true)) break;
    // The next one's records come behind the end if it is another start.
    const bool is_last = model->open.size() == 1 || (started && model->open[1].first_tag == kModelStart);
    if (is_last) {
      model->open.pop_front();
      break;
    }
    Advance(model);
  }
  Apply(record, model);
  model->started = false;
  if (model->open.empty()) return;
  model->started = model->open.front().first_tag == kModelStart;
  for (const StepTraceRecord& waiting : std::exchange(model->open.front().waiting, {})) Apply(waiting, model);
  Settle(model);
}

// The first one is complete: the next one's records may be processed.
void StepTrace::Advance(Model* model) {
  model->open.pop_front();
  if (model->open.empty()) return;
  if (model->open.front().first_tag == kModelStart) model->started = true;
  for (const StepTraceRecord& waiting : std::exchange(model->open.front().waiting, {})) Apply(waiting, model);
}

// Leaves the first iteration that still lacks records. A second start waits for the model's end.
void StepTrace::Settle(Model* model) {
  std::deque<Open>& open = model->open;
  while (open.size() > 1 && ((open.front().last_tag == kIterationEnd && !(model->started && open[1].first_tag == kModelStart)) ||
                             open.size() > kMaxOpen)) {
    Advance(model);
  }
}

void StepTrace::Apply(const StepTraceRecord& record, Model* model) {
  switch (record.tag) {
    case kModelStart:
      if (model->state == State::kModelStarted) return;
      Start(record.cycles, model);
      model->state = State::kModelStarted;
      return;
    case kModelEnd:
      // After an iteration's end it ends nothing; what opened there is begun anew by the next
      // start.
      if (model->state != State::kModelStarted) return;
      End(record, model);
      model->state = State::kOutside;
      return;
    case kIterationEnd:
      if (model->state == State::kOutside) return;
      End(record, model);
      Start(record.cycles, model);
      model->state = State::kIterationEnded;
      return;
    default:
      if (model->state != State::kOutside) Part(record, model);
  }
}

void StepTrace::TrainingStep(const StepTraceRecord& record) {
  auto it = steps_.find(record.index);
  const bool first = !std::exchange(step_seen_, true);
  if (record.tag == kStepStart) {
    if (it != steps_.end() || steps_.size() >= kMaxSteps) ++dropped_;
    if (it == steps_.end() && steps_.size() >= kMaxSteps) return;
    steps_[record.index] = {record.model, record.cycles};
    return;
  }
  if (it == steps_.end() && !first) {
    ++dropped_;
    return;
  }
  StepTraceRow row;
  row.training_step = true;
  row.model = record.model;
  row.iteration = record.index;
  row.end = record.cycles;
  if (it == steps_.end()) {
    row.begun_before = true;
  } else {
    row.model = it->second.first;
    row.start = it->second.second;
    steps_.erase(it);
    if (ended_.size() < kMaxModels || ended_.contains(row.model)) ended_[row.model] = std::max(ended_[row.model], row.start);
  }
  row_(row);
}

void StepTrace::Part(const StepTraceRecord& record, Model* model) {
  if (record.tag == kFpStart) {
    model->fp_start = record.cycles;
  } else if (record.tag == kBpEnd) {
    model->bp_end = record.cycles;
  } else if (record.tag >= kReduceFirst && record.tag < kGetNextFirst) {
    if (record.tag % 2 == 0) {
      if (model->reduces.size() < kMaxPairs) {
        model->reduces.push_back({record.stream, record.cycles, 0});
      } else {
        ++dropped_;
      }
      return;
    }
    auto last = std::find_if(model->reduces.rbegin(), model->reduces.rend(),
                             [&](const Reduce& reduce) { return reduce.stream == record.stream; });
    if (last == model->reduces.rend()) {
      ++dropped_;
    } else {
      last->end = record.cycles;
    }
  } else if (record.tag >= kGetNextFirst && record.tag < kStepStart) {
    auto key = static_cast<uint16_t>(record.tag / 2);
    if (record.tag % 2 == 0) {
      if (model->next_starts.size() < kMaxPairs) model->next_starts[key] = record.cycles;
      return;
    }
    auto start = model->next_starts.find(key);
    if (start == model->next_starts.end() || model->next_pairs.size() >= kMaxPairs) {
      ++dropped_;
      return;
    }
    model->next_pairs.emplace_back(start->second, record.cycles);
    model->next_starts.erase(start);
  }
}

void StepTrace::Start(uint64_t cycles, Model* model) {
  model->start = cycles;
  model->fp_start = 0;
  model->bp_end = 0;
  model->reduces.clear();
  model->next_starts.clear();
  model->next_pairs.clear();
}

void StepTrace::End(const StepTraceRecord& record, Model* model) {
  StepTraceRow row;
  row.model = record.model;
  row.iteration = model->iteration++;
  row.start = model->start;
  row.end = record.cycles;
  row.fp_start = model->fp_start;
  row.bp_end = model->bp_end;
  // Streams in the order in which they first appear.
  std::vector<uint16_t> streams;
  for (const Reduce& reduce : model->reduces) {
    if (std::ranges::find(streams, reduce.stream) == streams.end())
      streams.push_back(reduce.stream);
  }
  for (uint16_t stream : streams) {
    for (const Reduce& reduce : model->reduces) {
      if (reduce.stream == stream && reduce.end != 0)
        row.reduce.emplace_back(reduce.start, reduce.end);
    }
  }
  row.get_next = model->next_pairs;
  std::ranges::sort(row.get_next);
  Emit(&row);
}

void StepTrace::Emit(StepTraceRow* row) {
  if (row->fp_start != 0) {
    auto after = std::ranges::lower_bound(ends_, row->fp_start);
    if (after != ends_.begin()) row->data_aug = row->fp_start - *(after - 1);
  }
  ends_.insert(std::ranges::upper_bound(ends_, row->end), row->end);
  if (ends_.size() > kMaxEnds) ends_.pop_front();
  row_(*row);
}

}  // namespace profd::exporting
