#include "daemon/session/tuning_leases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>

#include "base/log.h"
#include "base/problem.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/metrics/self_metrics.h"
#include "daemon/session/session_plan.h"
#include "daemon/session/session_records.h"
#include "daemon/session/stored_session.pb.h"

namespace profd {
namespace {

constexpr uint32_t kVersion = 1;
constexpr uint32_t kRoot = 0;
constexpr int kMaxDevices = 64;

std::string Names(std::span<const uint32_t> devices) {
  return fmt::format("NPU {}", fmt::join(devices.begin(), devices.end(), ","));
}

std::span<const uint32_t> DevicesOf(const v1::TuningLease& lease) {
  return {lease.devices().data(), static_cast<size_t>(lease.devices_size())};
}

bool Overlap(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return std::ranges::any_of(a, [&b](uint32_t device) { return std::ranges::find(b, device) != b.end(); });
}

}  // namespace

Status TuningLeases::MayUse(const Peer& peer, uint32_t device) const {
  const auto found = std::ranges::find_if(deps_.devices, [device](const DeviceInfo& each) { return static_cast<uint32_t>(each.id) == device; });
  if (found == deps_.devices.end()) return {StatusCode::kNotFound, NoSuchDevice(device, deps_.devices)};
  return deps_.node_devices.MayUse(peer, *found);
}

Result<TuningLeases::Lease> TuningLeases::Checked(const Peer& peer, const v1::AcquireTuningLeaseRequest& request) const {
  ProblemList problems;
  const auto refuse = [&problems](const char* field, std::string value, std::string text) {
    problems.Add({.field = field, .value = std::move(value), .text = std::move(text)});
  };
  Lease lease;
  std::vector<uint32_t> devices(request.devices().begin(), request.devices().end());
  std::ranges::sort(devices);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  if (devices.empty() || devices.size() > kMaxDevices) {
    refuse("devices", "", fmt::format("1 to {} devices are kept for tuning, not {}", kMaxDevices, devices.size()));
    devices.clear();
  }
  for (const uint32_t device : devices) lease.facts.add_devices(device);
  if (!request.job_id().empty() && !IsJobId(request.job_id())) {
    refuse("job_id", "", "a job is at most 128 letters, digits and any of . _ - : /");
  }
  if (!v1::TuningLease::Mode_IsValid(request.mode())) {
    refuse("mode", std::to_string(request.mode()), "must be MODE_OPERATOR or MODE_SUBGRAPH");
  }
  const uint64_t ms = request.has_duration_ms() ? request.duration_ms() : kDefaultMs;
  if (ms < 1000 || ms > kMaxMs) refuse("duration_ms", std::to_string(ms), "must be 1 s to 30 days");
  const pid_t pid = request.has_pid() ? request.pid() : peer.pid;
  const std::optional<uint64_t> start = pid > 0 ? deps_.processes.StartTimeOf(pid) : std::nullopt;
  if (peer.remote) {
    refuse("pid", "", "a lease lives with a process of this node; acquire it there, over the unix socket");
  } else if (!start) {
    refuse("pid", std::to_string(pid), "no such process");
  }
  if (!problems.empty()) return Status(StatusCode::kInvalidArgument, std::move(problems).Take());
  for (const uint32_t device : devices) RETURN_IF_ERROR(MayUse(peer, device));
  const Result<uint32_t> owner = deps_.processes.OwnerOf(pid);
  if (!owner.ok()) return InvalidArgument(fmt::format("pid {}: {}", pid, WhyNoOwner(owner.status())));
  if (!peer.Owns(*owner)) {
    return PermissionDenied(fmt::format("process {} belongs to uid {}, you are uid {}", pid, *owner, peer.uid));
  }
  lease.start_ticks = *start;
  lease.facts.set_uid(*owner);
  lease.facts.set_pid(pid);
  lease.facts.set_job_id(request.job_id());
  lease.facts.set_mode(request.mode());
  lease.facts.set_since_ns(deps_.clock.WallNs());
  lease.facts.set_until_ns(deps_.clock.WallNs() + static_cast<int64_t>(ms) * kNsPerMs);
  return lease;
}

const TuningLeases::Lease* TuningLeases::HolderOf(std::span<const uint32_t> devices, std::optional<uint32_t> other_than) const {
  for (const auto& [id, lease] : leases_) {
    if (other_than && lease.facts.uid() == *other_than) continue;
    if (Overlap(DevicesOf(lease.facts), devices)) return &lease;
  }
  return nullptr;
}

std::string TuningLeases::Describe(const Peer& peer, const Lease& lease) const {
  const v1::TuningLease& facts = lease.facts;
  std::string who = "another user";
  if (peer.Owns(facts.uid())) {
    who = fmt::format("process {} of {}{}", facts.pid(), facts.uid() == peer.uid ? "yours" : fmt::format("uid {}", facts.uid()),
                      facts.job_id().empty() ? "" : ", job " + facts.job_id());
  }
  return fmt::format("{} {} kept for tuning by {} (lease {})", Names(DevicesOf(facts)), facts.devices_size() == 1 ? "is" : "are", who,
                     facts.lease_id());
}

Status TuningLeases::CheckConflicts(const Peer& peer, std::span<const uint32_t> devices) const {
  if (const Lease* holder = HolderOf(devices, peer.uid); holder != nullptr) {
    return ResourceExhausted(Describe(peer, *holder) + "; two users cannot tune on one device");
  }
  if (leases_.size() >= kMaxPerNode) {
    return ResourceExhausted(fmt::format("{} tuning leases are held, the limit of this node", leases_.size()));
  }
  const auto own = static_cast<size_t>(std::ranges::count_if(leases_, [&peer](const auto& each) { return each.second.facts.uid() == peer.uid; }));
  if (peer.uid != kRoot && own >= kMaxPerUser) {
    return ResourceExhausted(fmt::format("you hold {} tuning leases, the limit for one user", own));
  }
  const std::string profiled = deps_.profiled_by(peer, devices);
  if (profiled.empty()) return Status::Ok();
  return FailedPrecondition(fmt::format("{} profiles inside an application on {}, which spoils tuning; it must end first", profiled, Names(devices)));
}

Result<TuningLeases::Lease> TuningLeases::Admit(const Peer& peer, const v1::AcquireTuningLeaseRequest& request) const {
  Result<Lease> lease = Checked(peer, request);
  if (!lease.ok()) return lease;
  RETURN_IF_ERROR(CheckConflicts(peer, DevicesOf(lease->facts)));
  return lease;
}

void TuningLeases::Acquire(const Peer& peer, const v1::AcquireTuningLeaseRequest& request_untrusted, v1::TuningLease* out, Finish finish) {
  DCHECK_ON(deps_.control);
  Result<Lease> lease = Admit(peer, request_untrusted);
  if (lease.ok() && request_untrusted.check_only()) {
    *out = lease->facts;
    return finish(Status::Ok());
  }
  if (!lease.ok()) {
    if (!request_untrusted.check_only()) ++refused_;
    return finish(lease.status());
  }
  const std::string random = NewId();
  const std::string id = "t" + random;
  if (random.empty() || leases_.contains(id)) return finish(Unavailable("no randomness for a lease's id; try again"));
  lease->facts.set_lease_id(id);
  *out = lease->facts;
  log::Info("devices kept for tuning", {{"lease", id}, {"uid", lease->facts.uid()}, {"pid", lease->facts.pid()}, {"devices", Names(DevicesOf(lease->facts))}});
  leases_.emplace(id, std::move(*lease));
  ++acquired_;
  // What is answered is stored.
  Save([finish = std::move(finish)] { finish(Status::Ok()); });
}

Status TuningLeases::Release(const Peer& peer, const std::string& id_untrusted) {
  DCHECK_ON(deps_.control);
  const auto found = leases_.find(id_untrusted);
  if (found == leases_.end() || !peer.Owns(found->second.facts.uid())) {
    return NotFound(fmt::format("tuning lease {} not found, or not owned by you", log::Quote(id_untrusted)));
  }
  End(id_untrusted, "released");
  return Status::Ok();
}

v1::TuningLease TuningLeases::Shown(const Peer& peer, const Lease& lease) {
  v1::TuningLease shown = lease.facts;
  if (peer.Sees(lease.facts.uid())) return shown;
  shown.clear_uid();
  shown.clear_pid();
  shown.clear_job_id();
  return shown;
}

void TuningLeases::List(const Peer& peer, google::protobuf::RepeatedPtrField<v1::TuningLease>* out) const {
  DCHECK_ON(deps_.control);
  for (const auto& [id, lease] : leases_) *out->Add() = Shown(peer, lease);
}

Status TuningLeases::MayProfile(const Peer& peer, std::span<const int> devices) const {
  DCHECK_ON(deps_.control);
  std::vector<uint32_t> ids;
  for (const int device : devices) {
    if (device >= 0) ids.push_back(static_cast<uint32_t>(device));
  }
  const Lease* holder = HolderOf(ids, std::nullopt);
  if (holder == nullptr) return Status::Ok();
  return {StatusCode::kFailedPrecondition,
          Problem{.kind = Problem::Kind::kConflict,
                  .text = Describe(peer, *holder) + ": nothing is profiled inside applications there until it ends; "
                          "channels and DCMI can be sampled with {provider} off"}};
}

void TuningLeases::End(const std::string& id, std::string_view why) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  log::Info("tuning lease ended", {{"lease", id}, {"uid", found->second.facts.uid()}, {"why", why}});
  leases_.erase(found);
  Save([] {});
}

void TuningLeases::Tick() {
  DCHECK_ON(deps_.control);
  std::vector<std::pair<std::string, const char*>> over;
  for (const auto& [id, lease] : leases_) {
    if (deps_.processes.StartTimeOf(lease.facts.pid()) != lease.start_ticks) {
      over.emplace_back(id, "its process has ended");
    } else if (deps_.clock.WallNs() >= lease.facts.until_ns()) {
      over.emplace_back(id, "its time is over");
    }
  }
  for (const auto& [id, why] : over) End(id, why);
}

void TuningLeases::Save(std::function<void()> done) {
  state::StoredTuningLeases stored;
  stored.set_version(kVersion);
  stored.set_boot_id(deps_.boot_id);
  for (const auto& [id, lease] : leases_) {
    state::StoredTuningLease& one = *stored.add_leases();
    *one.mutable_lease() = lease.facts;
    one.set_start_ticks(lease.start_ticks);
  }
  std::string text;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  if (const auto made = google::protobuf::util::MessageToJsonString(stored, &text, options); !made.ok()) {
    log::Warning("tuning leases are not saved", {{"why", made.ToString()}});
    return done();
  }
  deps_.states.Save(kTuningFile, std::move(text), std::move(done));
}

void TuningLeases::Load(std::string_view text) {
  if (text.empty()) return;
  state::StoredTuningLeases stored;
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  const auto parsed = google::protobuf::util::JsonStringToMessage(std::string(text), &stored, lenient);
  if (!parsed.ok() || stored.version() != kVersion) {
    log::Warning("saved tuning leases cannot be read", {{"why", parsed.ok() ? "another version" : parsed.ToString()}});
    return;
  }
  // Process ids mean something in one boot.
  if (deps_.boot_id.empty() || stored.boot_id() != deps_.boot_id) return;
  for (const state::StoredTuningLease& one : stored.leases()) {
    if (one.lease().lease_id().empty() || leases_.size() >= kMaxPerNode) continue;
    leases_[one.lease().lease_id()] = {one.lease(), one.start_ticks()};
  }
  Tick();
}

void TuningLeases::UpdateMetrics(SelfMetrics* self) const {
  self->Set(MetricByName("profd_tuning_leases"), leases_.size());
  self->Set(MetricByName("profd_tuning_leases_acquired_total"), acquired_);
  self->Set(MetricByName("profd_tuning_leases_refused_total"), refused_);
}

}  // namespace profd
