#include "daemon/session/earlier_runs.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "daemon/session/session_recovered.h"
#include "daemon/session/session_state_file.h"
#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

// How long the daemon waits with its first session until those that were running have been looked
// at, and with its first answer until all earlier dumps have.
constexpr auto kPatience = std::chrono::seconds(10);

}  // namespace

Result<std::unique_ptr<EarlierRuns>> EarlierRuns::Find(const DumpRoot& root, StateStore& store) {
  std::unique_ptr<EarlierRuns> earlier(new EarlierRuns);
  Result<std::vector<std::string>> dumps = root.Names();
  if (!dumps.ok()) return dumps.status().Annotate("dump.root");
  earlier->dumps_ = std::move(dumps).value();
  Result<std::map<std::string, std::string>> sessions = store.LoadSessions();
  if (!sessions.ok()) return sessions.status().Annotate("dump.state_dir");
  earlier->sessions_ = std::move(sessions).value();
  return earlier;
}

v1::Session SessionOf(const DumpRetention::RecoveredDump& found, const std::string& root) {
  v1::Session session = SessionFromManifest(found.manifest, root + "/" + found.dump.name, found.dump.bytes);
  session.set_session_id(found.dump.session_id);
  session.mutable_owner()->set_uid(found.dump.uid);
  return session;
}

void EarlierRuns::Begin(Strand& control, DumpRetention* retention, const std::string& boot_id) {
  retention->Watch(this);
  std::map<std::string, DumpRetention::FirstDump> first;
  for (const auto& [id, text] : sessions_) {
    state::StoredSession stored;
    if (!ParseStateFile(text, &stored)) continue;
    const bool same_boot = !boot_id.empty() && stored.boot_id() == boot_id;
    if (!stored.dump().empty()) first[stored.dump()] = {id, same_boot};
    const bool has_begun = stored.has_started_ns() || !IsScheduled(stored.spec());
    dumps_unknown_ = dumps_unknown_ || (stored.dump().empty() && !stored.spec().no_dump() && has_begun);
    // Their former segments are complete, and wanted at once to be shown with them.
    for (const v1::Segment& segment : stored.segments()) {
      first[std::string(BaseName(segment.dump_path()))] = {id, same_boot};
    }
  }
  control.Post([this, retention, first = std::move(first)]() mutable {
    retention->Begin(std::move(dumps_), std::move(first));
  });
}

void EarlierRuns::Resume(Strand& control, EarlierSessions& sessions) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const std::shared_future<void> all = found_all_.get_future().share();
  const bool found = (dumps_unknown_ ? all : found_sessions_.get_future().share()).wait_until(until) == std::future_status::ready;
  if (!found) log::Warning("dumps of sessions that were running are not completed yet");
  control.RunAndWait([this, &sessions] {
    for (const auto& [id, text] : sessions_) sessions.Resume(id, text);
    sessions_.clear();
  });
  if (all.wait_until(until) != std::future_status::ready) {
    log::Info("earlier dumps are being looked through in the background");
  }
}

}  // namespace profd
