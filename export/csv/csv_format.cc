#include "export/csv/csv_format.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "export/beside.h"
#include "export/csv/csv_writer.h"
#include "export/csv/pytorch_files.h"
#include "export/csv/operator_csv.h"
#include "export/formats.h"

namespace profd::exporting {
namespace {

class CsvFormat;

// One data file: a part for each CSV its rows belong to.
class CsvSink : public FormatSink {
 public:
  CsvSink(CsvFormat* format, size_t dump, const csv::PartContext& context)
      : format_(format), dump_(dump), context_(context) {}

  void Take(const Batch& batch) override {
    auto& parts = by_table_[static_cast<size_t>(batch.table->id)];
    if (parts.empty()) parts = csv::MakeParts(batch.table->id, context_);
    for (auto& part : parts) part->Take(batch);
  }
  void TakeEvent(const Event& event) override {
    durations_.Add(event, event.rank ? event.rank : context_.dump->RankOf(event.device));
    if (event.kind == EventKind::kIteration || event.kind == EventKind::kDeviceStep) {
      if (steps_ == nullptr) steps_ = std::make_unique<csv::StepTraceRows>(context_);
      steps_->Take(event);
    } else if (event.kind != EventKind::kLoss && event.kind != EventKind::kFrame) {
      if (marks_ == nullptr) marks_ = std::make_unique<csv::MsprofTxRows>(context_);
      marks_->Take(event);
    }
  }
  Status Finish() override;

 private:
  CsvFormat* format_;
  size_t dump_;
  csv::PartContext context_;
  std::array<std::vector<std::unique_ptr<csv::Part>>, kTableCount> by_table_;
  std::unique_ptr<csv::StepTraceRows> steps_;
  std::unique_ptr<csv::MsprofTxRows> marks_;
  DurationStats durations_;
};

class CsvFormat : public Format {
 public:
  explicit CsvFormat(const CsvLimits& limits) : limits_(limits) {}

  std::string_view name() const override { return "csv"; }
  bool Wants(TableId table) const override { return csv::HasCsv(table); }
  FormatWants wants() const override {
    return {.events = true, .step_parts = true, .operators = true, .runtime_apis = plan_ != nullptr && plan_->legacy_names};
  }

  Status Begin(const ExportPlan& plan) override {
    plan_ = &plan;
    {
      MutexLock lock(mutex_);
      parts_.resize(plan.dumps.size());
    }
    std::set<std::string> names;
    for (const DumpInfo* dump : plan.dumps) {
      std::string name = dump->name;
      for (int n = 2; !names.insert(name).second; ++n) name = dump->name + "_" + std::to_string(n);
      folders_.push_back(name);
    }
    auto spool = Spool::Create(plan.out_dir);
    if (!spool.ok()) return spool.status();
    spool_ = std::move(*spool);
    return Status::Ok();
  }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    csv::PartContext context = {plan_->dumps[task.dump], task.place, task.file, plan_->strings,
                                spool_.get(), plan_->compat_msprof};
    return std::unique_ptr<FormatSink>(std::make_unique<CsvSink>(this, task.dump, context));
  }
  Status TakeOperators(size_t dump, const operators::Model& model) override {
    const Place* place = plan_->dumps[dump]->ClockPlace();
    std::vector<OutputFile> files;
    auto target = TargetOf(dump);
    if (!target.ok()) return target.status();
    target->files = &files;
    csv::DumpParts parts;
    Status written = csv::WriteOperatorCsvs(model, place == nullptr ? 0 : place->clock.begin_us * 1000,
                                            plan_->threads, *target, &parts.operators);
    if (written.ok()) written = csv::WritePytorchFiles(
        model, StepsOf(dump, model), [&](int device) { return plan_->dumps[dump]->RankOf(device).value_or(-1); }, *target);
    made_.insert(made_.end(), files.begin(), files.end());
    RETURN_IF_ERROR(written);
    Keep(dump, std::move(parts));
    return Status::Ok();
  }
  Status End(bool complete, std::vector<OutputFile>* files) override {
    std::vector<OutputFile> made = std::move(made_);
    std::vector<csv::DumpParts> parts;
    {
      MutexLock lock(mutex_);
      parts.swap(parts_);
    }
    Status status = complete ? WriteAll(&parts, &made) : Status::Ok();
    parts.clear();  // they use the spool
    spool_.reset();
    if (!complete || !status.ok()) {
      for (const OutputFile& file : made) ::unlink(file.path.c_str());
      for (const std::string& dir : dirs_) ::rmdir(dir.c_str());
      return status;
    }
    files->insert(files->end(), made.begin(), made.end());
    return status;
  }

  void Keep(size_t dump, csv::DumpParts parts) {
    MutexLock lock(mutex_);
    csv::Join(&parts_[dump], std::move(parts));
  }

 private:
  StepSpans StepsOf(size_t dump, const operators::Model& model) {
    StepSpans steps = plan_->StepsOf(dump);
    if (model.framework != nullptr) model.framework->AddSteps(plan_->window, &steps);
    return steps;
  }
  // What one thread writes.
  struct Job {
    Status (*write)(csv::DumpParts*, const csv::CsvTarget&);
    csv::DumpParts* parts;
    csv::CsvTarget target;
    std::vector<OutputFile> files;
    Status status;
  };

  // Several dumps have a folder each, which is made when it is first needed.
  Result<csv::CsvTarget> TargetOf(size_t dump) {
    csv::CsvTarget target = {plan_->out_dir, plan_->timestamp, limits_.rows_per_file, nullptr, plan_->compat_msprof,
                             plan_->legacy_names, plan_->dumps[dump]->pid, plan_->go_on};
    if (plan_->dumps.size() == 1) return target;
    target.dir += "/" + folders_[dump];
    if (::mkdir(target.dir.c_str(), 0750) == 0) {
      dirs_.push_back(target.dir);
    } else if (errno != EEXIST) {
      return Status::FromErrno(errno, "creating " + target.dir);
    }
    return target;
  }
  Result<std::vector<Job>> MakeJobs(std::vector<csv::DumpParts>* parts) {
    std::vector<Job> jobs;
    for (size_t dump = 0; dump < parts->size(); ++dump) {
      const auto target = TargetOf(dump);
      if (!target.ok()) return target.status();
      jobs.push_back({csv::WriteOthers, &(*parts)[dump], *target, {}, {}});
      jobs.push_back({csv::WriteModules, &(*parts)[dump], *target, {}, {}});
    }
    return jobs;
  }
  static void Run(std::vector<Job>* jobs) {
    std::atomic<size_t> next{0};
    auto work = [&] {
      for (size_t i = next++; i < jobs->size(); i = next++) {
        Job& job = (*jobs)[i];
        job.target.files = &job.files;
        job.status = job.write(job.parts, job.target);
      }
    };
    RunBeside(std::clamp<size_t>(std::thread::hardware_concurrency(), 1, jobs->size()), [&](size_t) { work(); });
  }
  Status WriteAll(std::vector<csv::DumpParts>* parts, std::vector<OutputFile>* files) {
    auto jobs = MakeJobs(parts);
    if (!jobs.ok()) return jobs.status();
    if (jobs->empty()) return Status::Ok();
    Run(&*jobs);
    Status status;
    for (Job& job : *jobs) {
      files->insert(files->end(), job.files.begin(), job.files.end());
      if (status.ok()) status = job.status;
    }
    return status;
  }

  CsvLimits limits_;
  const ExportPlan* plan_ = nullptr;
  std::vector<std::string> folders_;  // by dump
  std::vector<std::string> dirs_;     // made
  std::vector<OutputFile> made_;      // before the end
  std::unique_ptr<Spool> spool_;
  Mutex mutex_;
  std::vector<csv::DumpParts> parts_ GUARDED_BY(mutex_);  // by dump
};

Status CsvSink::Finish() {
  Status status;
  auto note = [&status](Status next) {
    if (status.ok()) status = std::move(next);
  };
  csv::DumpParts kept;
  for (size_t table = 0; table < by_table_.size(); ++table) {
    for (auto& part : by_table_[table]) note(part->Finish());
    kept.tables[table] = std::move(by_table_[table]);
  }
  if (steps_ != nullptr) {
    note(steps_->Finish());
    kept.steps.push_back(std::move(steps_));
  }
  if (marks_ != nullptr) {
    note(marks_->Finish());
    kept.marks.push_back(std::move(marks_));
  }
  kept.durations = std::move(durations_);
  format_->Keep(dump_, std::move(kept));
  return status;
}

}  // namespace

std::unique_ptr<Format> MakeCsvFormat(const CsvLimits& limits) {
  return std::make_unique<CsvFormat>(limits);
}

std::unique_ptr<Format> MakeCsvFormat() { return MakeCsvFormat(CsvLimits{}); }

}  // namespace profd::exporting
