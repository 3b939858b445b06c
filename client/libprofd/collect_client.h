// What sessions want collected from inside this process, and the plug-in that does it
// (collect_plugin.h): opened when a session first asks, started and stopped by their orders, its state
// reported to each of them. Of the thread that keeps the daemon's connection; nothing here waits but End.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "client/libprofd/collect_plugin.h"
#include "proto/attach/attach_protocol.h"

namespace profd::lib {

class CollectClient {
 public:
  // More sessions than any daemon allows a process; notices beyond are ignored.
  static constexpr size_t kMaxSessions = 256;

  struct Host {
    // The plug-in's state has changed: Report is to be called. On any thread.
    void (*wake)(void* user);
    uint64_t (*steps)(void* user);
    void* user;
    const std::atomic<uint32_t>& allowed;  // profd_collect_allow
  };
  explicit CollectClient(Host host) : host_(host) {}

  // PROFD_COLLECT.
  void SetMode(std::string mode) { mode_ = std::move(mode); }
  void OnWelcome(const attach::Welcome& welcome);
  void OnNotice(const attach::SessionNotice& notice);
  // The daemon knows nothing of this connection's sessions any more.
  void OnDisconnected();

  // Sends one report, with a descriptor when fd >= 0. False: not now.
  using Send = std::function<bool(const attach::CollectorReport& report, int fd)>;
  // What has changed since, to every session that it concerns.
  void Report(const Send& send);
  // The process leaves the daemon: what was recorded is in the ring when this returns, or within wait_ms.
  void End(uint32_t wait_ms);

 private:
  struct Order {
    attach::CollectOrder order;
    uint32_t kinds = 0;  // that we know
    std::string sent;    // the last report
  };
  // Why this order is not carried out; empty: it is.
  attach::CollectorReport Refusal(const Order& order) const;
  bool IsCarriedOut(const Order& order) const { return Refusal(order).state.empty(); }
  void Update();
  void Load();
  void Start(uint32_t kinds);
  attach::CollectorReport StateFor(const Order& order, const profd_collect_report& report) const;
  void ReportTo(const std::string& id, Order& order, const Send& send);
  void ReportEnds(const Send& send);
  profd_collect_report PluginReport() const;

  const Host host_;
  std::string mode_ = "auto";
  bool takes_collector_ = false;
  bool ring_sent_ = false;
  std::map<std::string, Order> orders_;
  std::set<std::string> ended_;  // not yet told that their records are all in the ring
  const profd_collect_calls* calls_ = nullptr;
  bool started_ = false;
  bool start_again_ = false;  // once the end before is over
  uint32_t allowed_seen_ = 0;
  std::string problem_;  // why the plug-in could not be opened or started
};

}  // namespace profd::lib
