#include "export/find_steps.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "export/operators/model.h"
#include "export/step_spans.h"

namespace profd::exporting {
namespace {

struct Steps {
  std::optional<StepNumbers> all;
  std::optional<TimeWindow> window;

  void Add(int64_t number, const TimeWindow* span) {
    if (!all) all = StepNumbers{number, number};
    all->first = std::min(all->first, number);
    all->last = std::max(all->last, number);
    if (span == nullptr) return;
    if (!window) window = *span;
    window->from_ns = std::min(window->from_ns, span->from_ns);
    window->to_ns = std::max(window->to_ns, span->to_ns);
  }
};

using StepsBySource = std::array<Steps, kStepSources>;

// Steps of recorded events, or those that only a framework's profiler knows, as operators of its own.
class StepFormat : public Format {
 public:
  StepFormat(const StepNumbers& wanted, const FormatWants& wants, FoundSteps* found) : wanted_(wanted), wants_(wants), found_(found) {}

  std::string_view name() const override { return "steps"; }
  bool Wants(TableId) const override { return false; }
  FormatWants wants() const override { return wants_; }
  Status Begin(const ExportPlan&) override { return Status::Ok(); }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask&) override {
    return wants_.events ? std::make_unique<Sink>(this) : std::unique_ptr<FormatSink>();
  }
  Status TakeOperators(size_t, const operators::Model& model) override {
    MutexLock lock(mutex_);
    for (const operators::FrameworkStep& step : model.framework->steps) Add(step.number, step.begin, step.end, &steps_.front());
    return Status::Ok();
  }
  Status End(bool, std::vector<OutputFile>*) override {
    MutexLock lock(mutex_);
    const auto source = std::ranges::find_if(steps_, [](const Steps& steps) { return steps.all.has_value(); });
    if (source != steps_.end()) *found_ = {source->window, source->all};
    return Status::Ok();
  }

 private:
  class Sink : public FormatSink {
   public:
    explicit Sink(StepFormat* format) : format_(format) {}
    void Take(const Batch&) override {}
    void TakeEvent(const Event& event) override {
      const auto step = StepOf(event);
      if (!step) return;
      const auto& [source, span] = *step;
      format_->Add(span.number, span.start_ns, span.end_ns, &mine_[static_cast<size_t>(source)]);
    }
    Status Finish() override {
      format_->Merge(mine_);
      return Status::Ok();
    }

   private:
    StepFormat* format_;
    StepsBySource mine_;
  };

  void Add(int64_t number, int64_t start_ns, int64_t end_ns, Steps* to) const {
    const bool wanted = number >= wanted_.first && number <= wanted_.last;
    // The next step may begin when this one ends.
    const TimeWindow window{start_ns, std::max(start_ns, end_ns - 1)};
    to->Add(number, wanted ? &window : nullptr);
  }

  void Merge(const StepsBySource& other) {
    MutexLock lock(mutex_);
    for (size_t i = 0; i < kStepSources; ++i) {
      if (!other[i].all) continue;
      const TimeWindow* span = other[i].window ? &*other[i].window : nullptr;
      steps_[i].Add(other[i].all->first, span);
      steps_[i].Add(other[i].all->last, nullptr);
    }
  }

  const StepNumbers wanted_;
  const FormatWants wants_;
  FoundSteps* const found_;
  Mutex mutex_;
  StepsBySource steps_ GUARDED_BY(mutex_);
};

}  // namespace

Result<FoundSteps> FindSteps(const ExportOptions& options, const StepNumbers& wanted) {
  ExportOptions in_them;
  in_them.dumps = options.dumps;
  in_them.ranks = options.ranks;
  in_them.start_clock = options.start_clock;
  in_them.threads = options.threads;
  FoundSteps found;
  const auto look = [&](const FormatWants& wants) {
    std::vector<std::unique_ptr<Format>> formats;
    formats.push_back(std::make_unique<StepFormat>(wanted, wants, &found));
    return RunExportInto(in_them, std::move(formats), {}).status();
  };
  in_them.channels = {std::string(kEventsChannel)};
  RETURN_IF_ERROR(look({.events = true}));
  if (found.all) return found;
  in_them.channels.clear();
  RETURN_IF_ERROR(look({.operators = true, .only_framework = true}));
  return found;
}

}  // namespace profd::exporting
