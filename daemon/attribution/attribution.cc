#include "daemon/attribution/attribution.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "collectors/metric_table.h"
#include "daemon/attribution/attribution_rows.h"
#include "daemon/attribution/source.h"
#include "daemon/attribution/user_names.h"

namespace profd {
namespace {

constexpr int64_t kMapPeriodNs = 5 * kNsPerSecond;
constexpr int64_t kKubePeriodNs = 10 * kNsPerSecond;
// A container the runtime does not know (Docker's beside Kubernetes) is requested again after so long.
constexpr int64_t kUnknownContainerNs = 60 * kNsPerSecond;
constexpr size_t kMaxSaid = 256;

// Where runtimes have their socket, for cri_socket = "auto".
constexpr std::array kRuntimeSockets = {
    "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/isulad.sock",
    "/run/cri-dockerd.sock", "/run/k3s/containerd/containerd.sock"};

std::vector<std::string> SocketsOf(const std::string& cri_socket) {
  if (cri_socket.empty()) return {};
  if (cri_socket != "auto") return {cri_socket};
  return {kRuntimeSockets.begin(), kRuntimeSockets.end()};
}

using Names = std::map<std::string, ContainerNames>;

Result<Names> AskFirst(const std::vector<std::string>& sockets, uid_t own_uid,
                       const std::set<std::string>& ids) {
  Status none = NotFound("no container runtime");
  for (const std::string& socket : sockets) {
    Result<Names> names = AskRuntime(socket, own_uid, ids);
    if (names.ok() || names.status().code() != StatusCode::kNotFound) return names;
    none = names.status();
  }
  return none;
}

}  // namespace

struct Attribution::Impl {
  Impl(Deps d, const DaemonConfig& c);
  void Tick();
  uint64_t Troubles() const;
  void AskForMap();
  void AskForPods();
  void AskForNames();
  std::set<std::string> UnknownContainers();
  void ForgetContainers(const std::set<std::string>& in_use);
  AttributionRows Describe();
  void AddSelf(AttributionRows* rows);
  void Publish(const AttributionRows& rows);
  void SayIgnored(const std::vector<std::string>& ignored);

  const Deps deps;
  const DaemonConfig config;
  const std::vector<std::string> cri_sockets;
  std::vector<TrainingProcess> processes;  // of this round
  JobMap map;
  bool has_map = false;
  std::vector<PodDevice> pods;
  Names names;                              // of containers in use
  std::map<std::string, int64_t> nameless;  // requested in vain; when to request again
  std::set<std::string> said;
  size_t ignored_files = 0;
  std::map<SeriesKey, SeriesId> series;
  std::vector<Sample> batch;
  bool stopped = false;
  bool news = true;  // a source has reported since the last round
  uint64_t told_troubles = 0;
  // Last: what runs on them refers to nothing above, and late reports have no receiver.
  UserNames users;
  std::optional<GuardedThread> map_thread;
  std::optional<GuardedThread> kube_thread;
  std::optional<Source<JobMap>> map_source;
  std::optional<Source<std::vector<PodDevice>>> pod_source;
  std::optional<Source<Names>> name_source;
};

Attribution::Impl::Impl(Deps d, const DaemonConfig& c)
    : deps(std::move(d)),
      config(c),
      cri_sockets(SocketsOf(config.cri_socket)),
      users(deps.control, deps.clock, &UserNames::FromSystem) {
  if (!config.job_map_dir.empty()) {
    map_thread.emplace("profd-jobmap", deps.clock);
    map_source.emplace(deps.control, deps.clock, *map_thread,
                       Source<JobMap>::Options{"job_map", kMapPeriodNs, kMapPeriodNs}, deps.notice);
  }
  if (config.pod_resources_socket.empty() && cri_sockets.empty()) return;
  kube_thread.emplace("profd-attr", deps.clock);
  if (!config.pod_resources_socket.empty()) {
    pod_source.emplace(deps.control, deps.clock, *kube_thread,
                       Source<std::vector<PodDevice>>::Options{"kubelet", kKubePeriodNs},
                       deps.notice);
  }
  if (!cri_sockets.empty()) {
    name_source.emplace(deps.control, deps.clock, *kube_thread,
                        Source<Names>::Options{"cri", kKubePeriodNs}, deps.notice);
  }
}

void Attribution::Impl::Tick() {
  if (stopped) return;
  int64_t now = deps.clock.SteadyNs();
  users.Tick();
  if (map_thread) map_thread->CheckDeadlines(now);
  if (kube_thread) kube_thread->CheckDeadlines(now);
  const bool idle = processes.empty();
  processes = deps.jobs.Processes();
  AskForMap();
  AskForPods();
  AskForNames();
  const uint64_t troubles = Troubles();
  // Nothing new: the same again, with the time of now.
  if (idle && processes.empty() && !news && troubles == told_troubles) {
    for (Sample& sample : batch) sample.time_ns = deps.clock.MonotonicRawNs();
    deps.store.Write(batch);
    return;
  }
  news = false;
  told_troubles = troubles;
  AttributionRows rows = Describe();
  AddSelf(&rows);
  Publish(rows);
  if (deps.names_or_null != nullptr) deps.names_or_null->Replace(std::move(rows.process_names));
}

// Changes when a source fails or answers again.
uint64_t Attribution::Impl::Troubles() const {
  uint64_t all = users.errors() * 2 + (users.up() ? 1 : 0);
  auto add = [&all](const auto& source) {
    if (!source) return;
    const SourceState& state = source->state();
    all = all * 31 + state.errors * 4 + (state.up ? 2 : 0) + (state.in_use ? 1 : 0);
  };
  add(map_source);
  add(pod_source);
  add(name_source);
  return all;
}

void Attribution::Impl::AskForMap() {
  if (!map_source) return;
  if (map_source->IsStale() && std::exchange(has_map, false)) {
    map = {};
    news = true;
  }
  if (!map_source->IsDue()) return;
  map_source->Ask(
      [folder = config.job_map_dir]() -> Result<JobMap> {
        Result<JobMap> found = ReadJobMap(folder, MachineStartWallNs());
        // It is configured: a missing one is a failure.
        if (!found.ok() && found.status().code() == StatusCode::kNotFound) {
          return Unavailable(found.status().message());
        }
        return found;
      },
      [this](JobMap found) {
        map = std::move(found);
        has_map = news = true;
      });
}

void Attribution::Impl::AskForPods() {
  if (!pod_source) return;
  if (pod_source->IsStale() && !pods.empty()) {
    pods.clear();
    news = true;
  }
  if (!pod_source->IsDue()) return;
  pod_source->Ask(
      [socket = config.pod_resources_socket, own = deps.own_uid] {
        return AskKubelet(socket, own);
      },
      [this](std::vector<PodDevice> found) {
        pods = std::move(found);
        news = true;
      });
}

std::set<std::string> Attribution::Impl::UnknownContainers() {
  std::set<std::string> in_use;
  for (const TrainingProcess& process : processes) {
    if (!process.container_id.empty()) in_use.insert(process.container_id);
  }
  ForgetContainers(in_use);
  int64_t now = deps.clock.SteadyNs();
  std::erase_if(in_use, [&](const std::string& id) {
    auto at = nameless.find(id);
    return names.contains(id) || (at != nameless.end() && now < at->second);
  });
  return in_use;
}

void Attribution::Impl::ForgetContainers(const std::set<std::string>& in_use) {
  std::erase_if(names, [&](const auto& entry) { return !in_use.contains(entry.first); });
  std::erase_if(nameless, [&](const auto& entry) { return !in_use.contains(entry.first); });
}

// A container's names never change: it is requested once.
void Attribution::Impl::AskForNames() {
  if (!name_source) return;
  std::set<std::string> unknown = UnknownContainers();
  if (unknown.empty() || !name_source->IsDue()) return;
  name_source->Ask([sockets = cri_sockets, own = deps.own_uid,
                    unknown] { return AskFirst(sockets, own, unknown); },
                   [this, unknown](Names found) {
                     int64_t again = deps.clock.SteadyNs() + kUnknownContainerNs;
                     for (const std::string& id : unknown) {
                       if (!found.contains(id)) nameless[id] = again;
                     }
                     names.merge(found);
                     news = true;
                   });
}

AttributionRows Attribution::Impl::Describe() {
  std::vector<DeviceInfo> devices(deps.host.devices.begin(), deps.host.devices.end());
  if (deps.more_devices) std::ranges::move(deps.more_devices(), std::back_inserter(devices));
  AttributionRows rows = DescribeAttribution(AttributionInput{
      processes, devices, [this](uint32_t uid) { return users.Of(uid); }, map, pods, names,
      static_cast<size_t>(config.attribution_max_processes),
      static_cast<size_t>(config.attribution_max_jobs)});
  std::vector<std::string> ignored = map.ignored;
  ignored.insert(ignored.end(), rows.ignored.begin(), rows.ignored.end());
  ignored_files = ignored.size();
  SayIgnored(ignored);
  return rows;
}

void Attribution::Impl::SayIgnored(const std::vector<std::string>& ignored) {
  std::erase_if(said, [&](const std::string& what) {
    return std::ranges::find(ignored, what) == ignored.end();
  });
  for (const std::string& what : ignored) {
    if (said.size() >= kMaxSaid || !said.insert(what).second) continue;
    if (deps.notice) deps.notice("job_map", "not used: " + what);
  }
}

void Attribution::Impl::AddSelf(AttributionRows* rows) {
  auto put = [rows](MetricId metric, auto value, std::vector<std::string> labels = {}) {
    rows->series[SeriesKey{metric, kHostDevice, std::move(labels)}] = static_cast<double>(value);
  };
  auto put_source = [&](const std::string& name, const SourceState& state) {
    if (!state.in_use && state.errors == 0) return;
    put(MetricByName("profd_attribution_source_up"), state.up ? 1 : 0, {name});
    put(MetricByName("profd_attribution_source_errors_total"), state.errors, {name});
  };
  put_source("users", {true, users.up(), users.errors()});
  if (map_source) {
    put_source(map_source->name(), map_source->state());
    put(MetricByName("profd_attribution_ignored_files"), ignored_files);
  }
  if (pod_source) put_source(pod_source->name(), pod_source->state());
  if (name_source) put_source(name_source->name(), name_source->state());
  put(MetricByName("profd_attribution_hidden_processes"), rows->hidden_processes);
  put(MetricByName("profd_attribution_hidden_jobs"), rows->hidden_jobs);
  put(MetricByName("profd_attribution_hidden_containers"), rows->hidden_containers);
}

void Attribution::Impl::Publish(const AttributionRows& rows) {
  std::erase_if(series, [&](const auto& entry) {
    if (rows.series.contains(entry.first)) return false;
    deps.store.Release(entry.second);
    return true;
  });
  int64_t now = deps.clock.MonotonicRawNs();
  batch.clear();
  for (const auto& [key, value] : rows.series) {
    auto [at, is_new] = series.try_emplace(key, kNoSeries);
    // A full store may have space again.
    if (at->second == kNoSeries) {
      std::vector<std::string_view> labels(key.labels.begin(), key.labels.end());
      at->second = deps.store.Intern(key.metric, key.device, labels);
    }
    if (at->second != kNoSeries) batch.push_back({at->second, now, value});
  }
  deps.store.Write(batch);
  news = news || batch.size() < rows.series.size();
}

Attribution::Attribution(Deps deps, const DaemonConfig& config)
    : impl_(std::make_unique<Impl>(std::move(deps), config)) {}

Attribution::~Attribution() = default;

void Attribution::Tick() {
  DCHECK_ON(impl_->deps.control);
  impl_->Tick();
}

void Attribution::Stop() {
  DCHECK_ON(impl_->deps.control);
  impl_->stopped = true;
}

}  // namespace profd
