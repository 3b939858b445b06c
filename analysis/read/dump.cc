// Dumps, through the decoders of the exports: one pass over all of them. What profd recorded itself and what the
// vendor's profiler left in the same session become one rank.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/read/dump_sink.h"
#include "analysis/read/operators.h"
#include "analysis/read/readers.h"
#include "analysis/read/recorded.h"
#include "base/count_text.h"
#include "base/mutex.h"
#include "export/engine.h"
#include "export/operators/step_shares.h"
#include "export/rows/series.h"
#include "export/step_spans.h"

namespace profd::analysis {
namespace {

using exporting::DumpInfo;
using exporting::Event;
using exporting::EventKind;
using exporting::StepSpan;
using exporting::TableId;

class AnalysisFormat : public exporting::Format {
 public:
  AnalysisFormat(const ReadContext& context, Ranks* ranks) : context_(context), ranks_(*ranks) {}

  std::string_view name() const override { return "analysis"; }
  bool Wants(TableId table) const override {
    return table == TableId::kKernel || table == TableId::kCommunication || table == TableId::kApi ||
           (!exporting::IsActivity(table) && !exporting::MetricColumns(exporting::TableOf(table)).empty());
  }
  exporting::FormatWants wants() const override {
    return {.events = true,
            .step_parts = true,
            .step_parts_of_operators = false,  // FindPoints has each rank's
            .operators = true,
            .operator_details = context_.detail.operators};
  }

  Status Begin(const exporting::ExportPlan& plan) override {
    plan_ = &plan;
    strings_ = plan.strings;
    window_ = plan.window;
    dumps_ = plan.dumps;
    MutexLock lock(mutex_);
    gathered_.parts.resize(dumps_.size());
    gathered_.marks.resize(dumps_.size());
    return {};
  }
  Result<std::unique_ptr<exporting::FormatSink>> Open(const exporting::ExportTask& task) override {
    return MakeDumpSink(task.dump, *strings_, &gathered_, &mutex_);
  }

  Status TakeOperators(size_t dump, const exporting::operators::Model& model) override {
    MutexLock lock(mutex_);
    exporting::StepSpans spans = plan_->StepsOf(dump);
    if (model.framework != nullptr) model.framework->AddSteps(window_, &spans);
    std::set<int> devices;
    for (const auto& row : model.rows) devices.insert(row.device);
    std::map<const Rank*, std::set<int>> ranks;
    for (const int device : devices) ranks[RankOf(dump, device)].insert(device);
    for (const int device : devices) {
      Rank* rank = RankOf(dump, device);
      devices_of_[rank].insert(device);
      const std::set<int>& of_rank = ranks[rank];
      if (device != *of_rank.begin()) continue;
      const auto steps = NewSteps(spans.For(device, rank->rank.value_or(-1)), *rank);
      AddOperators(model, of_rank, steps, context_, rank);
      AddSteps(steps, gathered_.parts[dump], device, rank);
      if (!rank->executions.empty()) with_operators_.insert(rank);
    }
    return {};
  }

  Status End(bool, std::vector<exporting::OutputFile>*) override {
    MutexLock lock(mutex_);
    for (auto& [key, device] : gathered_.devices) {
      const auto [dump, number] = key;
      if (number >= 0) AddDevice(dump, number, &device);
    }
    for (auto& [key, device] : gathered_.devices) {
      if (key.second < 0) AddHost(key.first, &device);
    }
    for (size_t dump = 0; dump < dumps_.size(); ++dump) AddMarks(dump);
    for (const auto& rank : ranks_) {
      for (const auto& series : rank->hardware) series->Sort();
      const std::set<int>& devices = devices_of_[rank.get()];
      if (devices.size() < 2) continue;
      context_.AddProblem(rank->path, fmt::format("has kernels of the devices {}: they are read as one rank", fmt::join(devices, ", ")));
    }
    if (gathered_.left_out > 0) {
      context_.AddProblem("activity", fmt::format("{} rows beyond {} are left out", gathered_.left_out, kMaxRows));
    }
    const SinkLimits limits;
    if (gathered_.left_out_events > 0) {
      context_.AddProblem("marks", fmt::format("{} steps, marks and losses are left out: of a dump {} steps and {} of the others are read",
                                                         gathered_.left_out_events, limits.steps, limits.marks));
    }
    if (gathered_.left_out_samples > 0) {
      context_.AddProblem("counters", fmt::format("{} rows of counters are left out: of a dump {} series are read", gathered_.left_out_samples, limits.series));
    }
    return {};
  }

 private:
  // That of a rank is the same in all dumps of a run.
  Rank* RankOf(size_t dump, int device) {
    const std::optional<int> number = dumps_[dump]->RankOf(device);
    const auto key = number ? std::tuple(true, size_t{0}, *number) : std::tuple(false, dump, device);
    Rank*& rank = by_key_[key];
    if (rank != nullptr) {
      dumps_of_[rank].insert(dump);
      return rank;
    }
    rank = ranks_.emplace_back(std::make_unique<Rank>()).get();
    rank->rank = number;
    rank->device = device;
    rank->host = dumps_[dump]->hostname;
    rank->path = dumps_[dump]->path;
    rank->source = "dump";
    dumps_of_[rank].insert(dump);
    if (dumps_[dump]->manifest) AddFacts(*dumps_[dump]->manifest, rank);
    if (const exporting::Place* place = dumps_[dump]->Find(exporting::Place::Kind::kDevice, device)) {
      rank->cube_cores = static_cast<int>(place->ai_cores);
      rank->vector_cores = static_cast<int>(place->aiv_cores);
      rank->core_mhz = static_cast<double>(place->aicore_mhz);
    }
    return rank;
  }

  static void AddFacts(const Manifest& manifest, Rank* rank) {
    const auto add = [rank](std::string_view name, const std::string& value) {
      if (!value.empty()) rank->facts[std::string(name)] = value;
    };
    add("session", manifest.session_id);
    add("job", manifest.job_id);
    add("label", manifest.label);
    add("reason", manifest.reason);
    add("profd_version", manifest.profd_version);
    add("driver_version", manifest.driver_version);
    add("dcmi_version", manifest.dcmi_version);
    for (const ManifestOption& option : manifest.options) {
      add("option." + option.key, option.value);
      if (option.value.empty()) continue;
      if (option.key == "fp_point") rank->fp_point = rank->Text(option.value);
      if (option.key == "bp_point") rank->bp_point = rank->Text(option.value);
    }
    const auto process = std::ranges::find(manifest.processes, rank->rank, &ManifestProcess::rank);
    if (process != manifest.processes.end()) {
      add(kCollectingCpus, CollectingCpus(*process, manifest.end_raw_ns - manifest.start_raw_ns));
      add(kProcessCpus, process->cpus);
      add(kLaunchCpus, process->launch_cpus);
    }
    const auto device = std::ranges::find(manifest.devices, rank->device, &ManifestDevice::id);
    if (device != manifest.devices.end()) add(kLocalCpus, device->local_cpus);
  }

  // What collecting took in the process, in CPUs over the recording; empty: it is not known.
  static std::string CollectingCpus(const ManifestProcess& process, int64_t recorded_ns) {
    if (process.collector_cpu_ns == 0 || recorded_ns <= 0) return {};
    return fmt::format("{}", static_cast<double>(process.collector_cpu_ns) / static_cast<double>(recorded_ns));
  }

  void AddDevice(size_t dump, int number, OfDevice* device) REQUIRES(mutex_) {
    Rank* rank = RankOf(dump, number);
    for (auto& [name, series] : device->series) rank->hardware.push_back(std::move(series));
    const auto steps = NewSteps(plan_->StepsOf(dump).For(number, rank->rank.value_or(-1)), *rank);
    AddSteps(steps, gathered_.parts[dump], number, rank);
    // Both record the same tasks.
    if (with_operators_.contains(rank) || (device->kernels.empty() && device->collectives.empty())) return;
    devices_of_[rank].insert(number);
    Intervals computing;
    Intervals communication;
    RecordedOf(rank).AddDevice(*device, number, &computing, &communication);
    AddOverlap(exporting::operators::MakeOverlap(std::move(computing), std::move(communication), {}), {}, steps, rank);
  }

  RecordedOfRank& RecordedOf(Rank* rank) {
    return recorded_.try_emplace(rank, [this](int64_t id) { return strings_->Text(id); }, rank).first->second;
  }

  std::vector<Rank*> OnHostOf(size_t dump) const {
    std::vector<Rank*> here;
    for (const auto& rank : ranks_) {
      if (rank->host == dumps_[dump]->hostname) here.push_back(rank.get());
    }
    return here;
  }
  // What a process did is of its rank, or of the only one there is; null: of none.
  static Rank* OfProcess(const std::vector<Rank*>& here, std::optional<int> number) {
    const auto found = std::ranges::find_if(here, [number](const Rank* rank) { return number && rank->rank == number; });
    return found != here.end() ? *found : here.size() == 1 ? here.front() : nullptr;
  }

  // A mark is of its process's rank; a loss of its device's, one of the host of all ranks of the dump.
  void AddMarks(size_t dump) REQUIRES(mutex_) {
    const std::vector<Rank*> here = OnHostOf(dump);
    for (const Event& event : gathered_.marks[dump]) {
      if (event.kind == EventKind::kLoss) {
        AddLoss(dump, event);
        continue;
      }
      Rank* rank = OfProcess(here, event.rank ? event.rank : dumps_[dump]->RankOf(event.device));
      int64_t end_ns = 0;
      if (rank == nullptr || __builtin_add_overflow(event.t_ns, event.dur_ns, &end_ns)) continue;
      const Mark mark{event.t_ns, end_ns, rank->Text(event.name), event.domain.empty() ? kNoText : rank->Text(event.domain),
                      event.kind == EventKind::kMark, event.tid};
      rank->AddMark(mark);
      rank->slices.push_back({mark.start_ns, mark.end_ns, mark.name, rank->LaneOf("Marks", fmt::format("Thread {}", event.tid))});
    }
  }
  void AddLoss(size_t dump, const Event& event) REQUIRES(mutex_) {
    for (const auto& [key, rank] : by_key_) {
      if (event.device >= 0 && event.device != rank->device) continue;
      if (dumps_of_[rank].contains(dump)) rank->losses.push_back({event.t_ns, event.dur_ns, event.value, rank->Text(event.name)});
    }
  }

  void AddHost(size_t dump, OfDevice* host) {
    const std::vector<Rank*> here = OnHostOf(dump);
    const auto& apis = exporting::TableOf(TableId::kApi);
    const exporting::Column& levels = apis.columns[static_cast<size_t>(exporting::ColumnIndex(apis, "level"))];
    for (Rank* rank : here) {
      for (const auto& [name, series] : host->series) rank->hardware.push_back(series);
    }
    const Launchers launchers(host->calls);
    for (const Recorded& call : host->calls) {
      Rank* rank = OfProcess(here, call.rank);
      if (rank == nullptr) continue;
      RecordedOf(rank).AddCall(call, exporting::KeyText(levels, call.other) == "node", launchers);
    }
  }

  // Without those whose numbers another recording of the rank gave to other steps.
  static std::vector<StepSpan> NewSteps(std::vector<StepSpan> spans, const Rank& rank) {
    std::multimap<int64_t, const Step*> known;  // models have iterations of the same
    for (const Step& step : rank.steps) known.emplace(step.number, &step);
    std::erase_if(spans, [&known](const StepSpan& span) {
      const auto [first, last] = known.equal_range(span.number);
      return first != last && std::none_of(first, last, [&span](const auto& step) {
               return step.second->start_ns < span.end_ns && span.start_ns < step.second->end_ns;
             });
    });
    return spans;
  }

  const ReadContext& context_;
  Ranks& ranks_;
  Mutex mutex_;
  const exporting::ExportPlan* plan_ = nullptr;
  const exporting::Strings* strings_ = nullptr;
  exporting::TimeWindow window_;
  std::vector<const DumpInfo*> dumps_;
  Gathered gathered_ GUARDED_BY(mutex_);
  std::map<std::tuple<bool, size_t, int>, Rank*> by_key_;
  std::map<const Rank*, std::set<size_t>> dumps_of_;
  std::map<const Rank*, std::set<int>> devices_of_;  // that ran kernels
  std::set<const Rank*> with_operators_;             // of the vendor's profiler
  std::map<const Rank*, RecordedOfRank> recorded_;
};

}  // namespace

Status ReadDumps(const std::vector<std::filesystem::path>& dumps, const ReadContext& context, Ranks* ranks) {
  exporting::ExportOptions options;
  for (const std::filesystem::path& dump : dumps) options.dumps.push_back(dump.string());
  std::vector<std::unique_ptr<exporting::Format>> formats;
  formats.push_back(std::make_unique<AnalysisFormat>(context, ranks));
  const auto report = exporting::RunExportInto(options, std::move(formats), [&context](const exporting::ExportProgress&) {
    return !*context.progress || (*context.progress)();
  });
  if (!report.ok()) return report.status();
  for (const std::string& dump : report->unfinished) context.AddProblem(dump, std::string(kUnfinished));
  for (const DumpInfo::Problem& problem : report->problems) {
    if (problem.broken) context.AddProblem(problem.file, problem.what);
  }
  for (const exporting::ChannelReport& channel : report->channels) {
    if (channel.bad_records == 0) continue;
    context.AddProblem(channel.dump + "/" + channel.file, CountText(channel.bad_records, "record") + " could not be decoded");
  }
  return Status::Ok();
}

}  // namespace profd::analysis
