// Finished dumps on their way into a database: wiring of the queue to retention, processes, RPC, the state folder and
// metrics.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/app_impl.h"

namespace profd {

void App::Impl::BuildArchive() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"localhost"};
  ArchiveQueue::Deps deps{*control, clock, *retention, host.data(), nullptr,
                          [this](pid_t pid) { return node->StartTimeOf(pid); }};
  deps.save = [this](std::string text) {
    writer->Post([this, text = std::move(text)] {
      if (Status saved = state_store->SaveArchive(text); !saved.ok()) {
        log::Warning("what waits for the database would not survive a crash of profd", {{"why", saved.ToString()}});
      }
    });
  };
  const Result<std::string> saved = state_store->LoadArchive();
  if (!saved.ok()) log::Error("what waits for the database cannot be read", {{"why", saved.status().ToString()}});
  archive = std::make_unique<ArchiveQueue>(std::move(deps), options.config, saved.value_or(""));
}

AcceptorOptions App::Impl::AcceptorOptionsNow() const {
  const DaemonConfig& config = options.config;
  // While nothing is archived, that user is one as all others.
  return {config.socket, config.socket_group, config.admin_group, static_cast<int>(config.max_connections),
          config.archive_to.empty() ? "" : config.archive_user};
}

void App::Impl::AnswerArchive(RpcDeps* deps) {
  using Finish = std::function<void(const Status&)>;
  deps->take_archive = [this](const Peer& peer, const v1::ClaimArchiveUploadRequest&, v1::ClaimArchiveUploadResponse* out,
                              const Finish& finish) { finish(archive->Take(peer, out)); };
  deps->archive_dumps = [this](const Peer& peer, const v1::ArchiveDumpsRequest& request, v1::ArchiveDumpsResponse* out,
                               const Finish& finish) { finish(archive->Request(peer, request, out)); };
  deps->report_archive = [this](const Peer&, const v1::ReportArchiveRequest& request, v1::ReportArchiveResponse*,
                                const Finish& finish) { finish(archive->Report(request)); };
}

// Of all users' dumps those that wait, by name.
Result<std::vector<std::string>> App::Impl::MayArchive(const v1::FetchDumpRequest& request_untrusted) const {
  if (!archive->IsWaiting(request_untrusted.dump())) {
    return PermissionDenied("only dumps that wait for the database, by name");
  }
  Peer administrator;
  administrator.admin = true;
  return sessions->DumpsOf(administrator, "", request_untrusted.dump());
}

void App::Impl::DescribeArchive(v1::Node* out) const {
  if (archive->on()) archive->Describe(out->mutable_archive());
}

void App::Impl::UpdateArchiveMetrics() {
  if (!archive->on()) return;
  const auto set = [this](MetricId metric, auto value, std::string_view reason = {}) {
    self->Set(metric, static_cast<double>(value), reason);
  };
  const ArchiveQueue::Waiting waiting = archive->waiting();
  set(MetricByName("profd_archive_waiting_dumps"), waiting.dumps);
  set(MetricByName("profd_archive_waiting_bytes"), waiting.bytes);
  const int64_t age = waiting.oldest_wall_ns == 0 ? 0 : std::max<int64_t>(0, clock.WallNs() - waiting.oldest_wall_ns);
  set(MetricByName("profd_archive_oldest_waiting_seconds"), static_cast<double>(age) / kNsPerSecond);
  const ArchiveQueue::Counts& counts = archive->counts();
  set(MetricByName("profd_archive_loaded_total"), counts.loaded);
  set(MetricByName("profd_archive_loaded_bytes_total"), counts.loaded_bytes);
  for (const auto& [reason, count] : counts.failures) set(MetricByName("profd_archive_failures_total"), count, reason);
  for (const auto& [reason, count] : counts.lost) set(MetricByName("profd_archive_lost_total"), count, reason);
}

}  // namespace profd
