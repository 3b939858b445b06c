#include "client/libprofd/collect_client.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client/libprofd/path_beside.h"
#include "client/libprofd/profd.h"

namespace profd::lib {
namespace {

constexpr char kMsptiPlugin[] = "libprofd_mspti.so";
constexpr char kMspti[] = "mspti";

struct KindName {
  uint32_t bit;
  const char* name;
};
constexpr KindName kKindNames[] = {
    {PROFD_COLLECT_KERNEL, "kernel"},           {PROFD_COLLECT_COMMUNICATION, "communication"},
    {PROFD_COLLECT_ACL_API, "acl_api"},         {PROFD_COLLECT_NODE_API, "node_api"},
    {PROFD_COLLECT_RUNTIME_API, "runtime_api"}, {PROFD_COLLECT_MARKER, "marker"},
    {PROFD_COLLECT_MEMORY, "memory"},
};
// By profd_collect_state.
constexpr const char* kStateNames[] = {"off",  "waiting", "on",          "partial",
                                       "silent", "busy",    "unsupported", "failed"};

uint32_t BitsOf(const std::vector<std::string>& kinds) {
  uint32_t bits = 0;
  for (const KindName& known : kKindNames) {
    if (std::find(kinds.begin(), kinds.end(), known.name) != kinds.end()) bits |= known.bit;
  }
  return bits;
}

std::vector<std::string> NamesOf(uint32_t bits) {
  std::vector<std::string> names;
  for (const KindName& known : kKindNames) {
    if ((bits & known.bit) != 0) names.emplace_back(known.name);
  }
  return names;
}

attach::CollectorReport Saying(const char* state, std::string detail) {
  attach::CollectorReport report;
  report.provider = kMspti;
  report.state = state;
  report.detail = std::move(detail);
  return report;
}

}  // namespace

void CollectClient::OnWelcome(const attach::Welcome& welcome) {
  takes_collector_ = welcome.takes_collector;
  ring_sent_ = false;
}

void CollectClient::OnNotice(const attach::SessionNotice& notice) {
  if (!takes_collector_) return;
  if (notice.state == "running" && notice.collect) {
    if (orders_.size() >= kMaxSessions && !orders_.contains(notice.session_id)) return;
    Order& order = orders_[notice.session_id];
    order.order = *notice.collect;
    order.kinds = BitsOf(notice.collect->kinds);
    ended_.erase(notice.session_id);
  } else if (orders_.erase(notice.session_id) > 0 && ended_.size() < kMaxSessions) {
    ended_.insert(notice.session_id);
  }
  Update();
}

void CollectClient::OnDisconnected() {
  orders_.clear();
  ended_.clear();
  takes_collector_ = false;
  if (calls_ != nullptr) Update();
}

attach::CollectorReport CollectClient::Refusal(const Order& order) const {
  const std::string& provider = order.order.provider;
  if (mode_ == "off") return Saying("off", "PROFD_COLLECT=off");
  if (mode_ != "auto" && mode_ != kMspti && mode_ != "aclprof") {
    return Saying("off", "PROFD_COLLECT has to be auto, mspti, aclprof or off");
  }
  if ((host_.allowed.load(std::memory_order_relaxed) & PROFD_ALLOW_MSPTI) == 0) {
    return Saying("off", "the application does not allow it (profd_collect_allow)");
  }
  if (mode_ == "aclprof" || (provider != "auto" && provider != kMspti)) {
    return Saying("unsupported", "this libprofd collects through mspti only");
  }
  if (order.kinds == 0) return Saying("unsupported", "this libprofd knows none of the kinds");
  return {};
}

void CollectClient::Update() {
  uint32_t kinds = 0;
  for (const auto& [id, order] : orders_) {
    if (IsCarriedOut(order)) kinds |= order.kinds;
  }
  allowed_seen_ = host_.allowed.load(std::memory_order_relaxed);
  start_again_ = false;
  if (kinds == 0) {
    // Without a deadline: its thread ends by itself and calls wake.
    if (std::exchange(started_, false)) calls_->stop(0);
    return;
  }
  problem_.clear();
  if (calls_ == nullptr) Load();
  if (calls_ != nullptr) Start(kinds);
}

void CollectClient::Load() {
  void* handle = ::dlopen(PathBeside(kMsptiPlugin).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    problem_ = ::dlerror();
    return;
  }
  const auto function = reinterpret_cast<decltype(&profd_collect_plugin)>(
      ::dlsym(handle, PROFD_COLLECT_PLUGIN_FUNCTION));
  const profd_collect_calls* calls = function == nullptr ? nullptr : function();
  if (calls == nullptr || calls->version != PROFD_COLLECT_PLUGIN_VERSION) {
    problem_ = std::string(kMsptiPlugin) + " is of another version than libprofd";
    return;
  }
  calls_ = calls;
}

void CollectClient::Start(uint32_t kinds) {
  profd_collect_config config = {};
  config.size = sizeof config;
  config.kinds = kinds;
  for (const auto& [id, order] : orders_) {
    if (!IsCarriedOut(order)) continue;
    const uint32_t flush_ms = order.order.flush_ms;
    if (flush_ms > 0 && (config.flush_ms == 0 || flush_ms < config.flush_ms)) {
      config.flush_ms = flush_ms;
    }
    config.ring_bytes = std::max(config.ring_bytes, order.order.ring_bytes);
  }
  config.on_change = host_.wake;
  config.steps = host_.steps;
  config.user = host_.user;
  const int error = calls_->start(&config);
  if (error == EBUSY) {
    start_again_ = true;
  } else if (error == ECHILD) {
    problem_ = "this process was forked from one that was being collected from";
  } else if (error != 0) {
    problem_ = std::string("no memory for the activity ring: ") + std::strerror(error);
  }
  started_ = error == 0;
}

profd_collect_report CollectClient::PluginReport() const {
  profd_collect_report report = {};
  report.size = sizeof report;
  if (calls_ != nullptr) calls_->report(&report);
  return report;
}

attach::CollectorReport CollectClient::StateFor(const Order& order,
                                                const profd_collect_report& report) const {
  attach::CollectorReport state = Refusal(order);
  if (!state.state.empty()) return state;
  if (!problem_.empty()) return Saying("unsupported", problem_);
  if (!started_) return Saying("waiting", "the collector is ending the session before");
  if (report.state <= PROFD_COLLECT_OFF || report.state > PROFD_COLLECT_FAILED) return {};
  const bool all = (order.kinds & ~report.kinds) == 0;
  state = Saying(kStateNames[report.state], report.detail);
  // What another session asked for may have been refused.
  if (report.state == PROFD_COLLECT_PARTIAL && all) state = Saying("on", "");
  state.code = state.state == "on" ? 0 : report.code;
  state.kinds = NamesOf(order.kinds & report.kinds);
  state.version = report.version;
  return state;
}

void CollectClient::ReportTo(const std::string& id, Order& order, const Send& send) {
  attach::CollectorReport state = StateFor(order, PluginReport());
  if (state.state.empty()) return;  // has only just begun
  state.session_id = id;
  const std::string text = attach::Encode(attach::ToDaemon(state));
  if (text == order.sent) return;
  const int ring = started_ && !ring_sent_ ? calls_->ring() : -1;
  state.has_ring = ring >= 0;
  if (!send(state, ring)) return;
  ring_sent_ = ring_sent_ || ring >= 0;
  order.sent = text;
}

void CollectClient::ReportEnds(const Send& send) {
  // One that goes on for others has no last flush; what is younger than its flush interval is missing.
  if (!started_ && PluginReport().state != PROFD_COLLECT_OFF) return;
  for (auto it = ended_.begin(); it != ended_.end();) {
    attach::CollectorReport state = Saying("off", "");
    state.session_id = *it;
    if (!send(state, -1)) return;
    it = ended_.erase(it);
  }
}

void CollectClient::Report(const Send& send) {
  if (!takes_collector_) return;
  const bool allowed_changed = allowed_seen_ != host_.allowed.load(std::memory_order_relaxed);
  if (start_again_ || (allowed_changed && !orders_.empty())) Update();
  ReportEnds(send);
  for (auto& [id, order] : orders_) ReportTo(id, order, send);
}

void CollectClient::End(uint32_t wait_ms) {
  orders_.clear();
  if (std::exchange(started_, false)) calls_->stop(wait_ms);
}

}  // namespace profd::lib
