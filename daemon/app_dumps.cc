// Dumps: what earlier runs of the daemon left, room for new ones, and calls about them.
#include <fcntl.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <utility>

#include "base/log.h"
#include "daemon/app_impl.h"
#include "daemon/session/session_recovered.h"
#include "daemon/session/stored_session.pb.h"
#include "dump/dump_io.h"
#include "profd/v1/profd.pb.h"

#include <google/protobuf/util/json_util.h>

namespace profd {
namespace {

// How long the daemon waits with its first session until those that were running have been looked
// at, and with its first answer until all earlier dumps have.
constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

std::string BootId(const Node& node) {
  Result<std::string> text = node.host().proc.ReadFile("sys/kernel/random/boot_id", 64);
  if (!text.ok()) return {};
  std::string id = std::move(text).value();
  while (!id.empty() && id.back() <= ' ') id.pop_back();
  return id;
}

QuotaLimits QuotaOf(const DaemonConfig& config) {
  QuotaLimits limits;
  limits.total = static_cast<uint64_t>(config.max_total_mb) << 20;
  limits.per_uid = static_cast<uint64_t>(config.max_kept_mb_per_uid) << 20;
  limits.pinned_per_uid = static_cast<uint64_t>(config.max_pinned_mb_per_uid) << 20;
  return limits;
}

// The lock is held: no other daemon works here, so unfinished dumps may be completed.
Status App::Impl::OpenState(const DumpRoot& root) {
  state_store = std::make_unique<StateStore>(StateDirOf(options.config));
  if (Status locked = state_store->Lock(); !locked.ok()) return locked.Annotate("dump.state_dir");
  Result<std::vector<std::string>> names = root.Names();
  if (!names.ok()) return names.status().Annotate("dump.root");
  old_dumps = std::move(names).value();
  Result<std::map<std::string, std::string>> sessions_found = state_store->LoadSessions();
  if (!sessions_found.ok()) return sessions_found.status().Annotate("dump.state_dir");
  old_sessions = std::move(sessions_found).value();
  return Status::Ok();
}

void App::Impl::KeepSessions(SessionManager::Deps* deps) {
  deps->dumps_or_null = retention.get();
  deps->boot_id = BootId(*node);
  // On the writer's thread, so that it is there before the dump is, and gone after it is complete.
  deps->save_session = [this](const std::string& id, std::string text) {
    writer->Post([this, id, text = std::move(text)] {
      if (Status saved = state_store->SaveSession(id, text, false); !saved.ok()) {
        log::Warning("session would not survive a crash of profd",
                     {{"session", id}, {"why", saved.ToString()}});
      }
    });
  };
  deps->on_begun = [this] { CheckDeadlinesSoon(); };
  deps->drop_session = [this](const std::string& id) {
    writer->Post([this, id] {
      if (Status dropped = state_store->DropSession(id); !dropped.ok()) {
        log::Warning("state of a session not removed",
                     {{"session", id}, {"why", dropped.ToString()}});
      }
    });
  };
}

// Dumps of earlier runs stay listed, fetched and removed like any other; what a crash left
// unfinished is completed. Goes on in the background where there is much of it.
void App::Impl::RecoverDumps() {
  found_sessions = std::make_shared<std::promise<void>>();
  found_all = std::make_shared<std::promise<void>>();
  retention->SetHooks({[this](const DumpRetention::Found& found) {
                      archive->OnFound(found.dump);
                      if (found.dump.session_id.empty()) return;
                      v1::Session session = SessionFromManifest(
                          found.manifest, options.config.dump_root + "/" + found.dump.name,
                          found.dump.bytes);
                      session.set_session_id(found.dump.session_id);
                      session.mutable_owner()->set_uid(found.dump.uid);
                      sessions->AddFound(std::move(session));
                    },
                    [this](const std::string& name, std::string_view reason) {
                      archive->OnRemoved(name, reason);
                      sessions->OnDumpRemoved(name, reason);
                    },
                    [this, done = found_all] {
                      archive->OnComplete();
                      WebSawDumps();
                      done->set_value();
                    },
                    [this](const KeptDump& dump) { archive->OnClosed(dump); }});
  std::map<std::string, DumpRetention::FirstDump> first;
  const std::string boot_id = BootId(*node);
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  for (const auto& [id, text] : old_sessions) {
    state::StoredSession stored;
    if (!google::protobuf::util::JsonStringToMessage(text, &stored, lenient).ok()) continue;
    const bool same_boot = !boot_id.empty() && stored.boot_id() == boot_id;
    if (!stored.dump().empty()) first[stored.dump()] = {id, same_boot};
    const bool has_begun = stored.has_started_ns() || !IsScheduled(stored.spec());
    dumps_unknown = dumps_unknown || (stored.dump().empty() && !stored.spec().no_dump() && has_begun);
    // Their former segments are complete, and wanted at once to be shown with them.
    for (const v1::Segment& segment : stored.segments()) {
      const std::string& path = segment.dump_path();
      first[path.substr(path.rfind('/') + 1)] = {id, same_boot};
    }
  }
  control->Post([this, first = std::move(first)]() mutable {
    retention->Begin(std::move(old_dumps), std::move(first),
                  [done = found_sessions] { done->set_value(); });
  });
}

// Before the first request.
void App::Impl::ContinueSessions() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const std::shared_future<void> all = found_all->get_future().share();
  const bool found = (dumps_unknown ? all : found_sessions->get_future().share()).wait_until(until) == std::future_status::ready;
  if (!found) log::Warning("dumps of sessions that were running are not completed yet");
  auto done = std::make_shared<std::promise<void>>();
  control->Post([this, done] {
    for (const auto& [id, text] : old_sessions) sessions->Resume(id, text);
    old_sessions.clear();
    done->set_value();
  });
  done->get_future().wait();
  if (all.wait_until(until) != std::future_status::ready) {
    log::Info("earlier dumps are being looked through in the background");
  }
}

void App::Impl::AnswerDumps(RpcDeps* deps) {
  using Finish = std::function<void(const Status&)>;
  deps->delete_dump = [this](const Peer& peer, const v1::DeleteDumpRequest& request,
                             v1::DeleteDumpResponse* out, const Finish& finish) {
    std::vector<std::string> waited = sessions->DumpsOf(peer, request.session_id(), request.dump()).value_or({});
    std::erase_if(waited, [this](const std::string& name) { return !archive->IsWaiting(name); });
    sessions->Delete(peer, request.session_id(), request.dump(),
                     [out, finish, waited](const Result<uint64_t>& freed) {
                       if (freed.ok()) {
                         out->set_freed_bytes(*freed);
                         out->mutable_not_archived()->Assign(waited.begin(), waited.end());
                       }
                       finish(freed.status());
                     });
  };
  deps->list_dumps = [this](const Peer& peer, const v1::ListDumpsRequest&,
                            v1::ListDumpsResponse* out, const Finish& finish) {
    *out = sessions->ListDumps(peer);
    for (v1::Dump& dump : *out->mutable_dumps()) archive->Describe(&dump);
    finish(Status::Ok());
  };
  deps->pin_dump = [this](const Peer& peer, const v1::PinDumpRequest& request,
                          v1::PinDumpResponse* out, const Finish& finish) {
    finish(sessions->Pin(peer, request, out));
  };
  deps->unpin_dump = [this](const Peer& peer, const v1::UnpinDumpRequest& request,
                            v1::UnpinDumpResponse* out, const Finish& finish) {
    finish(sessions->Unpin(peer, request, out));
  };
  deps->dumps_to_fetch = [this](const Peer& peer, const v1::FetchDumpRequest& request) -> Result<std::vector<std::string>> {
    if (peer.archiver) return MayArchive(request);
    return sessions->DumpsOf(peer, request.session_id(), request.dump());
  };
}

void App::Impl::LeaveSessions() {
  std::promise<size_t> active;
  control->Post([this, &active] { active.set_value(sessions->active()); });
  if (active.get_future().get() == 0) return;
  ::sd_notify(0, "STOPPING=1");
  if (acceptor != nullptr) acceptor->Stop();
  auto flushed = std::make_shared<std::promise<void>>();
  writer->Flush([flushed] { flushed->set_value(); });
  bool clean = flushed->get_future().wait_for(kPatience) == std::future_status::ready;
  log::Info("stopped; sessions resume at the next start", {{"flushed", clean}});
  std::_Exit(0);
}

void App::Impl::UpdateDumpMetrics() {
  const DumpRetention::Sums& sums = retention->sums();
  constexpr MetricId kBytes = MetricByName("profd_dump_root_bytes");
  self->Set(kBytes, static_cast<double>(sums.running), "running");
  self->Set(kBytes, static_cast<double>(sums.finished), "finished");
  self->Set(kBytes, static_cast<double>(sums.pinned), "pinned");
  constexpr MetricId kRemoved = MetricByName("profd_dumps_removed_total");
  for (std::string_view reason : {std::string_view("request"), kReasonTotal, kReasonPerUid}) {
    auto found = retention->removed().find(reason);
    self->Set(kRemoved, found == retention->removed().end() ? 0 : static_cast<double>(found->second),
              reason);
  }
  self->Set(MetricByName("profd_dumps_recovered_total"), static_cast<double>(retention->recovered()));
}

}  // namespace profd
