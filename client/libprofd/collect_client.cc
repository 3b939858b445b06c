#include "client/libprofd/collect_client.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "client/libprofd/path_beside.h"
#include "client/libprofd/profd.h"

namespace profd::lib {
namespace {

using attach::CollectKind;
using attach::CollectKinds;
using attach::CollectProvider;
using attach::CollectState;
using enum attach::CollectProvider;

constexpr char kForked[] = "this process was forked from one that was being collected from";

// The process that has opened a plug-in. In a child that was forked meanwhile any lock of it may be held, and the loader
// may be in the midst of it: only this number is safe to look at there.
std::atomic<pid_t> g_opened_by{0};

// The plug-ins' numbers are those of the protocol.
static_assert(CollectKinds{CollectKind::kKernel}.bits() == PROFD_COLLECT_KERNEL);
static_assert(CollectKinds{CollectKind::kCommunication}.bits() == PROFD_COLLECT_COMMUNICATION);
static_assert(CollectKinds{CollectKind::kAclApi}.bits() == PROFD_COLLECT_ACL_API);
static_assert(CollectKinds{CollectKind::kNodeApi}.bits() == PROFD_COLLECT_NODE_API);
static_assert(CollectKinds{CollectKind::kRuntimeApi}.bits() == PROFD_COLLECT_RUNTIME_API);
static_assert(CollectKinds{CollectKind::kMarker}.bits() == PROFD_COLLECT_MARKER);
static_assert(CollectKinds{CollectKind::kMemory}.bits() == PROFD_COLLECT_MEMORY);
static_assert(static_cast<int>(CollectState::kOff) == PROFD_COLLECT_OFF);
static_assert(static_cast<int>(CollectState::kWaiting) == PROFD_COLLECT_WAITING);
static_assert(static_cast<int>(CollectState::kOn) == PROFD_COLLECT_ON);
static_assert(static_cast<int>(CollectState::kPartial) == PROFD_COLLECT_PARTIAL);
static_assert(static_cast<int>(CollectState::kSilent) == PROFD_COLLECT_SILENT);
static_assert(static_cast<int>(CollectState::kBusy) == PROFD_COLLECT_BUSY);
static_assert(static_cast<int>(CollectState::kUnsupported) == PROFD_COLLECT_UNSUPPORTED);
static_assert(static_cast<int>(CollectState::kFailed) == PROFD_COLLECT_FAILED);
static_assert(static_cast<int>(CollectState::kStopping) == PROFD_COLLECT_STOPPING);
static_assert(static_cast<int>(CollectState::kFiles) == PROFD_COLLECT_FILES);

attach::CollectorReport Reporting(CollectProvider provider, CollectState state, std::string detail) {
  attach::CollectorReport report;
  report.provider = provider;
  report.state = state;
  report.detail = std::move(detail);
  return report;
}

// As aclprof's plug-in reads it.
std::string ItemLines(const std::map<std::string, std::string>& items) {
  std::string lines;
  for (const auto& [name, value] : items) {
    if (name.find('\n') != std::string::npos || value.find('\n') != std::string::npos) continue;
    lines.append(name).append("=").append(value).append("\n");
  }
  return lines;
}

}  // namespace

CollectClient::CollectClient(Host host)
    : host_(host),
      mspti_{kMspti, "libprofd_mspti.so", PROFD_ALLOW_MSPTI},
      aclprof_{kAclprof, "libprofd_aclprof.so", PROFD_ALLOW_ACLPROF} {}

void CollectClient::OnWelcome(const attach::Welcome& welcome) {
  takes_collector_ = welcome.takes_collector;
  ring_sent_ = false;
}

void CollectClient::OnNotice(const attach::SessionNotice& notice) {
  if (!takes_collector_) return;
  const std::string& id = notice.session_id;
  const auto known = requests_.find(id);
  const bool recording = notice.state == attach::kRecording;
  armed_.erase(id);
  if (notice.state == "armed" && notice.collect) {
    if (armed_.size() < kMaxSessions) armed_[id] = *notice.collect;
    return;
  }
  if ((notice.state == "running" || recording) && notice.collect) return Carry(id, *notice.collect, recording);
  if (known == requests_.end()) return;
  Ending end;
  if (&PluginOf(known->second) == &mspti_ || id == aclprof_session_) end.plugin = &PluginOf(known->second);
  requests_.erase(known);
  Update();
  if (end.plugin != nullptr) end.starts = ReportOf(*end.plugin).starts;
  if (ended_.size() < kMaxSessions) ended_[id] = end;
}

void CollectClient::Carry(const std::string& session_id, const attach::CollectRequest& wanted, bool recording) {
  const bool is_new = !requests_.contains(session_id);
  if (is_new && requests_.size() >= kMaxSessions) return;
  Request& request = requests_[session_id];
  if (is_new) request.number = next_number_++;
  request.wanted = wanted;
  request.recording = recording;
  ended_.erase(session_id);
  Update();
}

void CollectClient::WarmUp(const std::string& session_id) {
  const auto armed = armed_.extract(session_id);
  if (!armed.empty()) Carry(session_id, armed.mapped());
}

void CollectClient::OnFilesTaken(const attach::FilesTaken& taken) {
  if (aclprof_.calls == nullptr || taken.session_id != aclprof_session_) return;
  files_.Reset();
  aclprof_.calls->files_taken();
}

void CollectClient::OnDisconnected() {
  requests_.clear();
  armed_.clear();
  ended_.clear();
  takes_collector_ = false;
  if (mspti_.calls != nullptr || aclprof_.calls != nullptr) Update();
  // They have no receiver any more: another daemon knows nothing of the session.
  files_.Reset();
  if (aclprof_.calls != nullptr) aclprof_.calls->files_taken();
}

CollectClient::Plugin& CollectClient::PluginOf(const Request& request) {
  const CollectProvider provider = request.wanted.provider;
  const bool chosen_here = provider == kAuto && mode_ == WordOf(kAclprof) && request.wanted.aclprof;
  return provider == kAclprof || chosen_here ? aclprof_ : mspti_;
}

std::optional<attach::CollectorReport> CollectClient::Refusal(const Request& request) const {
  const Plugin& plugin = PluginOf(request);
  const CollectProvider provider = request.wanted.provider;
  const auto refuse = [&](CollectState state, std::string detail) -> std::optional<attach::CollectorReport> {
    return Reporting(plugin.provider, state, std::move(detail));
  };
  if (mode_ == "off") return refuse(CollectState::kOff, "PROFD_COLLECT=off");
  if (mode_ != WordOf(kAuto) && mode_ != WordOf(kMspti) && mode_ != WordOf(kAclprof)) {
    return refuse(CollectState::kOff, "PROFD_COLLECT has to be auto, mspti, aclprof or off");
  }
  if (provider != kAuto && provider != plugin.provider) {
    return refuse(CollectState::kUnsupported, "this libprofd collects through mspti and aclprof only");
  }
  if (mode_ != WordOf(kAuto) && mode_ != WordOf(plugin.provider)) return refuse(CollectState::kOff, "PROFD_COLLECT=" + mode_);
  if ((host_.allowed.load(std::memory_order_relaxed) & plugin.allowed) == 0) {
    return refuse(CollectState::kOff, "the application does not allow it (profd_collect_allow)");
  }
  if (&plugin == &aclprof_) {
    if (!request.wanted.aclprof) return refuse(CollectState::kUnsupported, "the request names nothing that aclprof is to collect");
  } else if (request.wanted.kinds.empty()) {
    return refuse(CollectState::kUnsupported, "this libprofd knows none of the kinds");
  }
  return std::nullopt;
}

profd_collect_report CollectClient::ReportOf(const Plugin& plugin) {
  profd_collect_report report = {};
  report.size = sizeof report;
  if (plugin.calls != nullptr) plugin.calls->report(&report);
  return report;
}

bool CollectClient::IsAtWork(const Plugin& plugin) {
  return plugin.started || ReportOf(plugin).state != PROFD_COLLECT_OFF;
}

CollectClient::Plugin* CollectClient::Holder() {
  if (IsAtWork(mspti_)) return &mspti_;
  return IsAtWork(aclprof_) ? &aclprof_ : nullptr;
}

std::vector<std::map<std::string, CollectClient::Request>::iterator> CollectClient::InTurn() {
  std::vector<std::map<std::string, Request>::iterator> all;
  for (auto it = requests_.begin(); it != requests_.end(); ++it) {
    if (IsCarriedOut(it->second)) all.push_back(it);
  }
  std::ranges::sort(all, [](auto a, auto b) {
    return std::pair(a->second.recording, a->second.number) < std::pair(b->second.recording, b->second.number);
  });
  return all;
}

void CollectClient::Update() {
  allowed_seen_ = host_.allowed.load(std::memory_order_relaxed);
  start_again_ = false;
  const auto update = [this](const Plugin* plugin) { plugin == &mspti_ ? UpdateMspti() : UpdateAclprof(); };
  if (const Plugin* const holder = Holder(); holder != nullptr) return update(holder);
  for (const auto& request : InTurn()) {
    update(&PluginOf(request->second));
    // One whose plug-in is still ending keeps its turn.
    if (Holder() != nullptr || start_again_) return;
  }
}

bool CollectClient::MsptiGivesWay() {
  const auto requests = InTurn();
  const auto wants = [this](const Plugin& plugin) {
    return [this, &plugin](const auto& request) { return !request->second.recording && &PluginOf(request->second) == &plugin; };
  };
  return aclprof_.problem.empty() && std::ranges::any_of(requests, wants(aclprof_)) && std::ranges::none_of(requests, wants(mspti_));
}

void CollectClient::UpdateMspti() {
  CollectKinds kinds;
  for (const auto& [id, request] : requests_) {
    if (IsCarriedOut(request) && &PluginOf(request) == &mspti_) kinds |= request.wanted.kinds;
  }
  if (MsptiGivesWay()) kinds = {};
  if (kinds.empty()) {
    // Without a deadline: its thread ends by itself and calls wake.
    if (std::exchange(mspti_.started, false)) mspti_.calls->stop(0);
    return;
  }
  if (Load(mspti_)) StartMspti(kinds);
}

void CollectClient::UpdateAclprof() {
  const auto current = requests_.find(aclprof_session_);
  const bool wanted = current != requests_.end() && IsCarriedOut(current->second);
  if (aclprof_.started) {
    if (wanted) return;
    aclprof_.started = false;
    aclprof_.calls->stop(0);
    return;
  }
  if (IsAtWork(aclprof_)) return;  // ends
  for (const auto& request : InTurn()) {
    if (&PluginOf(request->second) != &aclprof_) continue;
    if (Load(aclprof_)) StartAclprof(request->first, *request->second.wanted.aclprof);
    return;
  }
}

bool CollectClient::Load(Plugin& plugin) {
  plugin.problem.clear();
  if (plugin.calls != nullptr) return true;
  pid_t opened_by = 0;
  if (!g_opened_by.compare_exchange_strong(opened_by, ::getpid()) && opened_by != ::getpid()) {
    plugin.problem = kForked;
    return false;
  }
  void* handle = ::dlopen(PathBeside(plugin.file).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    plugin.problem = ::dlerror();
    return false;
  }
  const auto function = reinterpret_cast<decltype(&profd_collect_plugin)>(
      ::dlsym(handle, PROFD_COLLECT_PLUGIN_FUNCTION));
  const profd_collect_calls* calls = function == nullptr ? nullptr : function();
  if (calls == nullptr || calls->version != PROFD_COLLECT_PLUGIN_VERSION) {
    plugin.problem = std::string(plugin.file) + " is of another version than libprofd";
    return false;
  }
  plugin.calls = calls;
  return true;
}

void CollectClient::Start(Plugin& plugin, profd_collect_config config) {
  config.size = sizeof config;
  config.on_change = host_.wake;
  config.steps = host_.steps;
  config.takes_marks = host_.takes_marks;
  config.user = host_.user;
  const int error = plugin.calls->start(&config);
  if (error == EBUSY) {
    start_again_ = true;
  } else if (error == ECHILD) {
    plugin.problem = kForked;
  } else if (error == EINVAL) {
    plugin.problem = "this libprofd knows nothing of what is requested";
  } else if (error != 0) {
    plugin.problem = "cannot collect: " + std::generic_category().message(error);
  }
  plugin.started = error == 0;
}

void CollectClient::StartMspti(CollectKinds kinds) {
  profd_collect_config config = {};
  config.kinds = kinds.bits();
  bool limited = true;
  for (const auto& [id, request] : requests_) {
    if (!IsCarriedOut(request) || &PluginOf(request) != &mspti_) continue;
    // A request without an interval means the default one, also beside a request with a longer one.
    const uint32_t flush_ms = request.wanted.flush_ms > 0 ? request.wanted.flush_ms : uint32_t{PROFD_COLLECT_FLUSH_MS};
    if (config.flush_ms == 0 || flush_ms < config.flush_ms) config.flush_ms = flush_ms;
    config.ring_bytes = std::max(config.ring_bytes, request.wanted.ring_bytes);
    limited = limited && request.wanted.max_permille > 0;  // 0 = no limit
    config.max_permille = std::max(config.max_permille, request.wanted.max_permille);
  }
  if (!limited) config.max_permille = 0;
  Start(mspti_, config);
}

void CollectClient::StartAclprof(const std::string& session, const attach::AclprofRequest& request) {
  aclprof_session_ = session;
  stopping_sent_ = files_sent_ = false;
  const std::string items = ItemLines(request.config);
  profd_collect_config config = {};
  config.session = session.c_str();
  config.aclprof_bits = request.bits;
  config.aclprof_metrics = request.metrics;
  config.aclprof_config = items.c_str();
  Start(aclprof_, config);
}

std::optional<attach::CollectorReport> CollectClient::StateFor(const std::string& id, const Request& request) {
  if (std::optional<attach::CollectorReport> refusal = Refusal(request)) return refusal;
  const Plugin& plugin = PluginOf(request);
  if (!plugin.problem.empty()) return Reporting(plugin.provider, CollectState::kUnsupported, plugin.problem);
  const Plugin* const holder = Holder();
  if (holder != nullptr && holder != &plugin) {
    return Reporting(plugin.provider, CollectState::kBusy,
                  "a session collects through " + std::string(WordOf(holder->provider)) + " in this process, until it ends");
  }
  if (&plugin == &aclprof_ && holder != nullptr && id != aclprof_session_) {
    return Reporting(kAclprof, CollectState::kBusy, "session " + aclprof_session_ + " has this process's profiler until it ends");
  }
  if (!plugin.started) return Reporting(plugin.provider, CollectState::kWaiting, "the collector is ending the session before");
  const profd_collect_report report = ReportOf(plugin);
  if (report.state <= PROFD_COLLECT_OFF || report.state > PROFD_COLLECT_FAILED) return std::nullopt;
  const auto collected = CollectKinds::OfBits(report.kinds);
  const CollectKinds& wanted = request.wanted.kinds;
  const bool all = &plugin == &mspti_ && (wanted - collected).empty();
  const bool collects = report.state == PROFD_COLLECT_ON || report.state == PROFD_COLLECT_PARTIAL || report.state == PROFD_COLLECT_SILENT;
  // It may not have looked at this request yet.
  if (&plugin == &mspti_ && collects && !all && report.flushed < report.starts) return std::nullopt;
  attach::CollectorReport state = Reporting(plugin.provider, static_cast<CollectState>(report.state), report.detail);
  // What another session requested may be silent, or have been refused.
  if (state.state == CollectState::kSilent && (wanted & CollectKinds::OfBits(report.silent)).empty()) state.state = CollectState::kPartial;
  if (state.state == CollectState::kPartial && all) state = Reporting(plugin.provider, CollectState::kOn, "");
  state.code = state.state == CollectState::kOn ? 0 : report.code;
  state.kinds = wanted & collected;
  state.left_out = wanted & CollectKinds::OfBits(report.left_out);
  state.version = report.version;
  return state;
}

void CollectClient::ReportTo(const std::string& id, Request& request, const Send& send) {
  std::optional<attach::CollectorReport> state = StateFor(id, request);
  if (!state) return;  // has only just begun
  state->session_id = id;
  const std::string text = attach::Encode(attach::ToDaemon(*state));
  if (text == request.sent) return;
  const int ring = mspti_.started && !ring_sent_ ? mspti_.calls->ring() : -1;
  state->has_ring = ring >= 0;
  if (!send(*state, ring)) return;
  ring_sent_ = ring_sent_ || ring >= 0;
  request.sent = text;
}

void CollectClient::ReportFiles(const Send& send) {
  const profd_collect_report report = ReportOf(aclprof_);
  const bool stopping = report.state == PROFD_COLLECT_STOPPING;
  const bool files = report.state == PROFD_COLLECT_FILES && !files_sent_;
  if (!files && (!stopping || stopping_sent_)) return;
  attach::CollectorReport state = Reporting(kAclprof, static_cast<CollectState>(report.state), report.detail);
  state.session_id = aclprof_session_;
  state.code = report.code;
  if (files) files_.Reset(::fcntl(aclprof_.calls->files(), F_DUPFD_CLOEXEC, 0));
  if (files && !files_.valid()) {
    state.state = CollectState::kFailed;
    state.detail = "the directory of the files: " + std::generic_category().message(errno);
    aclprof_.calls->files_taken();
  }
  state.has_files = files_.valid();
  if (!send(state, files_.get())) return files_.Reset();
  if (stopping) stopping_sent_ = true;
  if (!files) return;
  files_sent_ = true;
  // What it has left is the last word of the session.
  ended_.erase(aclprof_session_);
}

void CollectClient::ReportEnds(const Send& send) {
  for (auto it = ended_.begin(); it != ended_.end();) {
    const Plugin* const plugin = it->second.plugin;
    // A collector that other sessions keep running puts what it has recorded into the ring at its next start.
    const bool waits = plugin != nullptr && (plugin->started ? ReportOf(*plugin).flushed < it->second.starts
                                                             : IsAtWork(*plugin));
    if (waits) {
      ++it;
      continue;
    }
    attach::CollectorReport state = Reporting(plugin == nullptr ? kMspti : plugin->provider, CollectState::kOff, "");
    state.session_id = it->first;
    if (!send(state, -1)) return;
    it = ended_.erase(it);
  }
}

bool CollectClient::IsOneWaiting() {
  if (Holder() != nullptr) return false;
  const auto requests = InTurn();
  return std::ranges::any_of(requests, [this](const auto& request) { return PluginOf(request->second).problem.empty(); });
}

void CollectClient::Report(const Send& send) {
  if (!takes_collector_) return;
  const bool allowed_changed = allowed_seen_ != host_.allowed.load(std::memory_order_relaxed);
  if (start_again_ || (allowed_changed && !requests_.empty()) || IsOneWaiting()) Update();
  ReportFiles(send);
  ReportEnds(send);
  for (auto& [id, request] : requests_) ReportTo(id, request, send);
}

void CollectClient::End(uint32_t wait_ms, uint32_t files_ms) {
  requests_.clear();
  if (std::exchange(mspti_.started, false)) mspti_.calls->stop(wait_ms);
  aclprof_.started = false;
  if (IsAtWork(aclprof_)) aclprof_.calls->stop(files_ms);
}

}  // namespace profd::lib
