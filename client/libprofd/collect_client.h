// What sessions want collected from inside this process, and the plug-ins that do it
// (collect_plugin.h): opened at the first request of a session, started and stopped by their requests, their state
// reported to each of them. One plug-in is at work at a time, since the vendor's profilers take each other's
// data: the other's requests wait. Of the thread that keeps the daemon's connection; nothing here waits but End.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
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
    int (*takes_marks)(void* user);
    void* user;
    const std::atomic<uint32_t>& allowed;  // profd_collect_allow
  };
  explicit CollectClient(Host host);
  CollectClient(const CollectClient&) = delete;
  CollectClient& operator=(const CollectClient&) = delete;

  // PROFD_COLLECT.
  void SetMode(std::string mode) { mode_ = std::move(mode); }
  void OnWelcome(const attach::Welcome& welcome);
  void OnNotice(const attach::SessionNotice& notice);
  // A request of this session is there, and nothing was reported of it.
  bool HasUnreported(const std::string& session_id) const {
    const auto found = requests_.find(session_id);
    return found != requests_.end() && found->second.sent.empty();
  }
  // A session that is armed is carried out from now on, as if it ran.
  void WarmUp(const std::string& session_id);
  void OnFilesTaken(const attach::FilesTaken& taken);
  // The daemon knows nothing of this connection's sessions any more.
  void OnDisconnected();

  // Sends one report, with a descriptor when fd >= 0. False: not now.
  using Send = std::function<bool(const attach::CollectorReport& report, int fd)>;
  // What has changed since, to every session that it concerns.
  void Report(const Send& send);
  // The process leaves the daemon: what was recorded is in the ring when this returns, or within wait_ms; or
  // its files are there, or not within files_ms.
  void End(uint32_t wait_ms, uint32_t files_ms);
  // The daemon has been sent files and has not yet answered.
  bool WaitsForCopy() const { return files_.valid(); }

 private:
  struct Plugin {
    attach::CollectProvider provider;
    const char* file;
    uint32_t allowed;  // by this bit of profd_collect_allow
    const profd_collect_calls* calls = nullptr;
    bool started = false;
    std::string problem = {};  // why it could not be opened or started
  };
  struct Request {
    attach::CollectRequest wanted;
    uint64_t number = 0;  // the first that arrived is served first
    bool recording = false;  // the flight recorder's, which gives way
    std::string sent;     // the last report
  };
  Plugin& PluginOf(const Request& request);
  const Plugin& PluginOf(const Request& request) const { return const_cast<CollectClient*>(this)->PluginOf(request); }
  // Why this request is not carried out; nothing: it is.
  std::optional<attach::CollectorReport> Refusal(const Request& request) const;
  bool IsCarriedOut(const Request& request) const { return !Refusal(request); }
  static profd_collect_report ReportOf(const Plugin& plugin);
  static bool IsAtWork(const Plugin& plugin);
  // The plug-in at work; null: none.
  Plugin* Holder();
  // Those that are carried out, the first first, the flight recorder's last.
  std::vector<std::map<std::string, Request>::iterator> InTurn();
  void Update();
  void UpdateMspti();
  void UpdateAclprof();
  static bool Load(Plugin& plugin);
  void Start(Plugin& plugin, profd_collect_config config);
  void StartMspti(attach::CollectKinds kinds);
  void StartAclprof(const std::string& session, const attach::AclprofRequest& request);
  bool IsOneWaiting();
  std::optional<attach::CollectorReport> StateFor(const std::string& id, const Request& request);
  void ReportTo(const std::string& id, Request& request, const Send& send);
  void ReportFiles(const Send& send);
  void ReportEnds(const Send& send);

  const Host host_;
  std::string mode_ = "auto";
  bool takes_collector_ = false;
  bool ring_sent_ = false;
  void Carry(const std::string& session_id, const attach::CollectRequest& wanted, bool recording = false);
  // Only the flight recorder keeps MSPTI at work, and a session waits for aclprof.
  bool MsptiGivesWay();

  std::map<std::string, Request> requests_;
  std::map<std::string, attach::CollectRequest> armed_;  // of sessions that have not begun
  uint64_t next_number_ = 0;
  struct Ending {
    const Plugin* plugin = nullptr;  // that served it; null: none did
    uint64_t starts = 0;             // of the plug-in, up to now
  };
  // Not yet notified that all their records are in the ring, or that there are no files.
  std::map<std::string, Ending> ended_;
  Plugin mspti_, aclprof_;
  std::string aclprof_session_;  // that has it
  bool stopping_sent_ = false, files_sent_ = false;  // of that session
  // Ours, until the daemon has answered: the plug-in may close its own.
  UniqueFd files_;
  bool start_again_ = false;  // once the end before is over
  uint32_t allowed_seen_ = 0;
};

}  // namespace profd::lib
