#include "daemon/session/session_job.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// What a session shows and keeps of its processes; far beyond what a node runs.
constexpr size_t kMaxMembers = 4096;

std::tuple<int, uint64_t> CountingOrder(const TrainingProcess& process) {
  return {process.rank.value_or(std::numeric_limits<int>::max()), process.attach_id};
}

}  // namespace

SessionJob::SessionJob(JobDirectory* directory_or_null, SessionTargets targets,
                       const NodeProcesses& processes, std::string session_id)
    : directory_(directory_or_null),
      targets_(std::move(targets)),
      processes_(processes),
      session_id_(std::move(session_id)) {
  for (const TrainingProcess& process : targets_.processes) {
    members_[process.pid] = process;
    if (process.attached()) attached_.insert(process.attach_id);
  }
  for (pid_t pid : targets_.unknown_pids) {
    TrainingProcess process{.pid = pid, .start_ticks = processes_.StartTimeOf(pid).value_or(0)};
    members_.try_emplace(pid, process);
  }
}

void SessionJob::Watch(Listener* listener) {
  listener_ = listener;
  if (directory_ != nullptr) watch_ = directory_->Watch(this);
}

void SessionJob::OnAttached(const TrainingProcess& process) {
  if (!targets_.Matches(process)) return;
  if (members_.size() >= kMaxMembers && !members_.contains(process.pid)) return;
  // A job is one user's: a process of another that calls itself so is none of it.
  bool foreign = std::ranges::any_of(members_, [&process](const auto& member) {
    return member.second.attached() && member.second.uid != process.uid;
  });
  if (foreign && targets_.pids.empty()) return;
  TrainingProcess& member = members_[process.pid];
  silent_.erase(process.pid);
  attached_.erase(member.attach_id);
  member = process;
  attached_.insert(process.attach_id);
  if (notice_) directory_->Notify(process.attach_id, *notice_);
  if (listener_ != nullptr) listener_->OnCome();
}

void SessionJob::Notify(attach::SessionNotice notice) {
  notice.session_id = session_id_;
  notice_ = std::move(notice);
  if (directory_ == nullptr) return;
  for (const auto& [pid, process] : members_) {
    if (process.attached()) directory_->Notify(process.attach_id, *notice_);
  }
}

void SessionJob::Drain() {
  if (directory_ == nullptr) return;
  // Marks may make the session think of its members; it must not find the list changed under it.
  for (const TrainingProcess& process : Processes()) {
    if (process.attached()) directory_->Drain(process.attach_id);
  }
}

void SessionJob::Refresh() {
  bool unknown = std::ranges::any_of(members_, [](const auto& member) {
    return member.second.attached() && member.second.devices.empty();
  });
  if (!unknown || directory_ == nullptr) return;
  for (TrainingProcess& process : directory_->Processes()) {
    auto found = members_.find(process.pid);
    if (found == members_.end() || found->second.attach_id != process.attach_id) continue;
    found->second.devices = std::move(process.devices);
  }
}

void SessionJob::OnStep(uint64_t attach_id, const attach::StepReport& report) {
  if (!report.session_id.empty() && report.session_id != session_id_) return;
  const TrainingProcess* counting = CountingProcess();
  if (counting == nullptr || counting->attach_id != attach_id) return;
  // Reports that carry no session's id are of steps as they come.
  bool last = !report.begin && !report.session_id.empty();
  const TrainingProcess process = *counting;
  listener_->OnStep(process, report.step, report.begin, last);
}

void SessionJob::OnMarks(const MarkBatch& batch) {
  auto found = members_.find(batch.pid);
  if (found == members_.end() || !found->second.attached()) return;
  // The handlers may end the session: what they are given stays valid.
  const TrainingProcess process = found->second;
  listener_->OnMarks(process, batch);
}

void SessionJob::OnActivity(const ActivityBatch& batch) {
  if (attached_.contains(batch.attach_id)) listener_->OnActivity(batch);
}

void SessionJob::OnActivityGivenUp(uint64_t attach_id, const Status& why) {
  const std::optional<TrainingProcess> process = MemberOf(attach_id);
  if (process) listener_->OnActivityGivenUp(*process, why);
}

void SessionJob::OnCollector(uint64_t attach_id, const attach::CollectorReport& report) {
  if (report.session_id != session_id_) return;
  const std::optional<TrainingProcess> process = MemberOf(attach_id);
  if (process) listener_->OnCollector(*process, report);
}

bool SessionJob::OnFiles(uint64_t attach_id, const attach::CollectorReport& report,
                         std::shared_ptr<UniqueFd> directory) {
  if (report.session_id != session_id_) return false;
  const std::optional<TrainingProcess> process = MemberOf(attach_id);
  return process && listener_->OnFiles(*process, report, std::move(directory));
}

std::optional<TrainingProcess> SessionJob::MemberOf(uint64_t attach_id) const {
  const auto found = std::ranges::find_if(members_, [attach_id](const auto& member) {
    return member.second.attach_id == attach_id;
  });
  if (found == members_.end()) return std::nullopt;
  return found->second;
}

void SessionJob::OnDetached(const TrainingProcess& process, bool in_good_order) {
  auto found = members_.find(process.pid);
  if (found == members_.end() || found->second.attach_id != process.attach_id) return;
  found->second.attach_id = 0;
  attached_.erase(process.attach_id);
  if (!in_good_order && Lives(process.pid)) silent_.insert(process.pid);
  listener_->OnGone(process, process.attach_id, in_good_order);
}

const TrainingProcess* SessionJob::CountingProcess() const {
  const TrainingProcess* lowest = nullptr;
  for (const auto& [pid, process] : members_) {
    if (!process.attached()) continue;
    if (lowest == nullptr || CountingOrder(process) < CountingOrder(*lowest)) lowest = &process;
  }
  return lowest;
}

bool SessionJob::Lives(pid_t pid) const {
  const std::optional<uint64_t> begin = processes_.StartTimeOf(pid);
  const uint64_t known = members_.at(pid).start_ticks;
  return begin && (known == 0 || *begin == known);
}

bool SessionJob::ForgetEnded() {
  return std::erase_if(silent_, [this](pid_t pid) { return !Lives(pid); }) > 0;
}

bool SessionJob::AnyAlive() const {
  return std::ranges::any_of(members_, [this](const auto& member) { return Lives(member.first); });
}

std::vector<TrainingProcess> SessionJob::Processes() const {
  std::vector<TrainingProcess> result;
  result.reserve(members_.size());
  for (const auto& [pid, process] : members_) result.push_back(process);
  return result;
}

uint32_t SessionJob::ExpectedRanks() const {
  if (!targets_.bound || !targets_.ranks.empty() || !targets_.pids.empty()) return static_cast<uint32_t>(targets_.ranks.size());
  int world_size = 0;
  for (const auto& [pid, process] : members_) world_size = std::max(world_size, process.world_size);
  return static_cast<uint32_t>(world_size);
}

void SessionJob::Fill(v1::SessionStatus* out) const {
  for (const auto& [pid, process] : members_) {
    v1::SessionProcess& wire = *out->add_processes();
    wire.set_pid(pid);
    if (process.rank) wire.set_rank(*process.rank);
    wire.set_attached(process.attached());
  }
  if (const uint32_t expected = ExpectedRanks(); expected > 0) out->set_expected_ranks(expected);
}

}  // namespace profd
