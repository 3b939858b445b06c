// What an export makes of operators, and of steps and operators together.
#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/mutex.h"
#include "export/beside.h"
#include "export/export_run.h"
#include "export/large.h"
#include "export/operators/model.h"
#include "export/step_parts_pass.h"

namespace profd::exporting {

void ExportRun::LookForStepParts() {
  step_parts_.resize(dumps_.size());
  const auto wants = [](const auto& format) { return format->events() && format->format().wants().step_parts; };
  // The vendor's analyser knows no parts of training steps.
  if (options_.compat_msprof || !filter_.events || std::ranges::none_of(formats_, wants)) return;
  const bool operators = std::ranges::any_of(
      formats_, [&](const auto& format) { return wants(format) && format->format().wants().step_parts_of_operators; });
  RunSpilling([this, operators] {
    for (size_t i = 0; i < dumps_.size(); ++i) {
      step_parts_[i] = FindStepParts({&dumps_[i], dumps_, find_, [this](const Place& place) { return ClockOf(place); },
                                      [this] { return !Progress(0); }, operators});
    }
  });
}

StepSpans ExportRun::StepsOfSession(const DumpInfo& dump) {
  StepSpans steps;
  const MutexLock lock(steps_mutex_);
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (AreOfOneSession(dump, dumps_[i].info())) steps.Merge(steps_[i]);
  }
  return steps;
}

void ExportRun::RunSpilling(const std::function<void()>& load) const {
  // Less fits into the memory that an export may take.
  constexpr uint64_t kMostInMemory = 1'500'000'000;
  constexpr auto kTrimPeriod = std::chrono::milliseconds(30);
  if (operator_bytes_ <= kMostInMemory) return load();
  const SpillScope spill(options_.out_dir.empty() ? "/var/tmp" : options_.out_dir);
  Mutex mutex;
  CondVar changed;
  bool done = false;
  RunBeside(2, [&](size_t part) {
    if (part == 0) {
      load();
      const MutexLock lock(mutex);
      done = true;
      changed.NotifyAll();
      return;
    }
    MutexLock lock(mutex);
    while (!changed.WaitFor(lock, kTrimPeriod, [&done] { return done; })) spill.Trim();
  });
}

void ExportRun::TakeOperators() {
  const auto wants = [](const auto& format) { return !format->failed() && format->format().wants().operators; };
  const bool runtime_apis = std::ranges::any_of(
      formats_, [&](const auto& format) { return wants(format) && format->format().wants().runtime_apis; });
  const bool only_framework = std::ranges::all_of(
      formats_, [&](const auto& format) { return !wants(format) || format->format().wants().only_framework; });
  for (size_t i = 0; operators_ && i < dumps_.size(); ++i) {
    if (cancelled_ || std::ranges::none_of(formats_, wants)) return;
    // Its host is not requested by the devices of another.
    const auto is_requested = [&](const Place& place) { return filters_[i].HasDevice(place.device); };
    if (std::ranges::none_of(dumps_[i].info().places, is_requested)) continue;
    operators::LoadReport loaded;
    const auto model = operators::LoadModel(
        {dumps_[i].reader(), dumps_[i].info(), filters_[i], runtime_apis, operator_details_, only_framework, options_.longest,
         [this](const Place& place) { return ClockOf(place); },
         [this](uint64_t bytes) { return Progress(bytes); }},
        &loaded);
    for (const DumpInfo::Problem& problem : loaded.problems) Problem(i, problem.file, problem.what, problem.broken);
    for (const operators::LoadReport::File& file : loaded.files) {
      ChannelReport channel;
      channel.dump = dumps_[i].info().name;
      channel.device = file.device;
      channel.file = file.base;
      channel.bytes = file.bytes;
      channel.records = file.records;
      channel.bad_records = file.bad_records;
      channel.bad_bytes = file.bad_bytes;
      Add(i, std::move(channel));
    }
    if (model == nullptr || cancelled_) continue;
    std::atomic<size_t> next = 0;
    RunBeside(std::min<size_t>(plan_.threads, formats_.size()), [&](size_t) {
      for (size_t at = next++; at < formats_.size(); at = next++) {
        RunningFormat& format = *formats_[at];
        if (format.failed() || !format.format().wants().operators) continue;
        if (Status taken = format.format().TakeOperators(i, *model); !taken.ok()) format.Fail(taken);
      }
    });
  }
}

}  // namespace profd::exporting
