// A JobDirectory whose processes a test makes up: they attach, report, mark and end when the test calls for it.
// Like the real one it lives on the control strand.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/jobs/job_directory.h"

namespace profd::testing {

class FakeJobDirectory final : public JobDirectory {
 public:
  struct Sent {
    uint64_t attach_id = 0;
    attach::SessionNotice notice;
  };

  std::vector<TrainingProcess> Processes() const override { return processes; }
  LiveActivity FindActivity(uint64_t) const override { return {}; }
  void LookupThreads(uint64_t, std::function<void(Result<ProcessThreads>)>) override {}
  void Notify(uint64_t attach_id, const attach::SessionNotice& notice) override {
    sent_.push_back({attach_id, notice});
  }
  void NotifyTaken(uint64_t attach_id, const attach::FilesTaken& taken) override {
    taken_.emplace_back(attach_id, taken);
  }
  std::shared_ptr<void> Watch(JobWatcher* watcher) override {
    uint64_t key = next_++;
    watchers_[key] = watcher;
    return std::shared_ptr<void>(this, [key](FakeJobDirectory* self) { self->watchers_.erase(key); });
  }
  void Drain(uint64_t attach_id) override {
    auto waiting = std::move(rings_[attach_id]);
    rings_.erase(attach_id);
    for (const auto& [mark, name] : waiting) {
      const auto found = Find(attach_id);
      if (mark.kind == attach::MarkKind::kStepBegin && found != processes.end()) found->step = mark.value;
      Hand(attach_id, mark, name, 0);
    }
  }

  // Known, whether attached (attach_id) or only found.
  void Add(const TrainingProcess& process) { processes.push_back(process); }
  void Attach(const TrainingProcess& process) {
    Add(process);
    ForWatchers([&](JobWatcher& watcher) { watcher.OnAttached(process); });
  }
  void Detach(uint64_t attach_id, bool in_good_order = true) {
    auto found = Find(attach_id);
    if (found == processes.end()) return;
    TrainingProcess gone = *found;
    processes.erase(found);
    ForWatchers([&](JobWatcher& watcher) { watcher.OnDetached(gone, in_good_order); });
  }
  void Report(uint64_t attach_id, const attach::StepReport& report) {
    ForWatchers([&](JobWatcher& watcher) { watcher.OnStep(attach_id, report); });
  }
  void ReportCollector(uint64_t attach_id, const attach::CollectorReport& report) {
    ForWatchers([&](JobWatcher& watcher) { watcher.OnCollector(attach_id, report); });
  }
  // A process hands its files over; true: a watcher takes them.
  bool HandFiles(uint64_t attach_id, const attach::CollectorReport& report, const std::shared_ptr<UniqueFd>& directory) {
    bool taken = false;
    ForWatchers([&](JobWatcher& watcher) { taken = taken || watcher.OnFiles(attach_id, report, directory); });
    return taken;
  }
  void Step(uint64_t attach_id, int64_t step, bool begin) { Report(attach_id, {"", step, begin}); }
  // A mark that is handed over at once.
  void Hand(uint64_t attach_id, Mark mark, const std::string& name, uint64_t dropped) {
    auto found = Find(attach_id);
    if (found == processes.end()) return;
    mark.name = name;
    MarkBatch batch{found->pid, found->rank, {&mark, 1}, dropped};
    ForWatchers([&](JobWatcher& watcher) {
      if (watcher.Wants(attach_id)) watcher.OnMarks(batch);
    });
  }
  void Hand(const ActivityBatch& batch) {
    ForWatchers([&](JobWatcher& watcher) {
      if (watcher.Wants(batch.attach_id)) watcher.OnActivity(batch);
    });
  }
  void GiveUp(uint64_t attach_id, const Status& why) {
    ForWatchers([&](JobWatcher& watcher) { watcher.OnActivityGivenUp(attach_id, why); });
  }
  // One that lies in its ring until it is drained.
  void Keep(uint64_t attach_id, const Mark& mark, const std::string& name) {
    rings_[attach_id].emplace_back(mark, name);
  }

  // The notices that the processes got, in order: "7 running", "7 ended".
  std::vector<std::string> Heard() const {
    std::vector<std::string> lines;
    for (const Sent& sent : sent_) {
      lines.push_back(std::to_string(sent.attach_id) + " " + sent.notice.state);
    }
    return lines;
  }
  const std::vector<Sent>& sent() const { return sent_; }
  const std::vector<std::pair<uint64_t, attach::FilesTaken>>& taken() const { return taken_; }
  size_t watchers() const { return watchers_.size(); }
  bool hurries() const {
    return std::ranges::any_of(watchers_, [](const auto& each) { return each.second->Hurries(); });
  }

  std::vector<TrainingProcess> processes;

 private:
  std::vector<TrainingProcess>::iterator Find(uint64_t attach_id) {
    return std::ranges::find(processes, attach_id, &TrainingProcess::attach_id);
  }
  // Watchers may come and go while one is called.
  template <class Call>
  void ForWatchers(Call call) const {
    for (const auto& [key, watcher] : std::map(watchers_)) {
      if (watchers_.contains(key)) call(*watcher);
    }
  }

  std::map<uint64_t, JobWatcher*> watchers_;
  std::map<uint64_t, std::vector<std::pair<Mark, std::string>>> rings_;
  std::vector<Sent> sent_;
  std::vector<std::pair<uint64_t, attach::FilesTaken>> taken_;
  uint64_t next_ = 1;
};

}  // namespace profd::testing
