// Makes records of what the host reports through libprofapi and what the device logs: names of the
// one with times of the other, by device, stream and task.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "sim/ascendcl/ascendcl.h"
#include "sim/mspti/mspti.h"
#include "sim/profapi/profapi.h"

namespace profd::sim::mspti {

class Join {
 public:
  static Join& The();

  void set_enabled(uint32_t kind, bool on) { enabled_[kind] = on; }
  bool enabled(uint32_t kind) const { return enabled_[kind]; }

  // Of chip 15: a task is known by its device and its own id.
  void set_streams_left_out(bool on) { streams_left_out_ = on; }

  void AddName(std::string_view text);
  void AddType(uint16_t level, uint32_t type, std::string_view name);
  void OnApi(const prof::Api& api);
  // aging 0: of a graph, whose tasks come again each time it runs.
  void OnCompact(uint32_t aging, const prof::Compact& record);
  void OnLog(uint32_t device, const acl::LogRecord& record);
  // Host records of the device that wait for its log.
  size_t waiting() const;

  // Ids of outside: one stack per kind for the process, whatever thread it is.
  int PushExternal(int kind, uint64_t id);
  int PopExternal(int kind, uint64_t* last);
  uint64_t host_reports() const { return host_reports_; }
  // What the calling thread's last kernel had.
  uint64_t CorrelationOf(uint32_t thread);

 private:
  struct Key {
    uint32_t device, stream, task;
    auto operator<=>(const Key&) const = default;
  };
  struct Times {
    int64_t begin_ns, end_ns;
  };
  struct Track {
    std::string type;
    uint64_t name = 0;
    uint64_t correlation = 0;
    uint32_t stream = 0;
    bool repeats = false;
  };
  struct Collective {
    prof::HcclOpInfo info;
    uint64_t name = 0;
    uint64_t correlation = 0;
    uint32_t stream = 0;
    bool repeats = false;
    Key first{}, last{};
    std::optional<int64_t> begin_ns, end_ns;
  };
  struct Reported {
    uint64_t time;
    uint32_t stream;
    Key key;
  };
  struct Thread {
    uint64_t correlation = 0;
    std::deque<Reported> tracks;
    prof::Api launch;  // the last of the node level
  };

  static constexpr size_t kUnmatched = 65536;  // of finished tasks without a host record

  Key KeyOf(uint32_t device, uint32_t stream, uint32_t task) const;
  void OnTrack(const prof::Compact& record, bool repeats) REQUIRES(mutex_);
  void OnCollective(const prof::Compact& record, bool repeats) REQUIRES(mutex_);
  void OnFinished(const Key& key, const Times& times) REQUIRES(mutex_);
  // True: it has no more records.
  bool PutIfWhole(Collective& collective) REQUIRES(mutex_);
  bool Fill(Collective& collective, const Key& key, const Times& times) REQUIRES(mutex_);
  void PutKernel(const Key& key, const Track& track, const Times& times) REQUIRES(mutex_);
  void PutCollective(const Collective& collective) REQUIRES(mutex_);
  void PutApi(uint32_t kind, const prof::Api& api, const std::string& name) REQUIRES(mutex_);
  void PutExternal(uint64_t correlation) REQUIRES(mutex_);
  std::string NameOf(uint64_t id);
  std::string TypeOf(uint16_t level, uint32_t type);

  std::array<std::atomic<bool>, kKinds> enabled_{};
  std::atomic<uint64_t> host_reports_{0};
  std::atomic<bool> streams_left_out_{false};
  // Names are registered under any lock of the client's or ours: this one is held for nothing else.
  Mutex names_mutex_;
  mutable Mutex mutex_;
  std::unordered_map<uint64_t, std::string> names_ GUARDED_BY(names_mutex_);
  std::map<std::pair<uint16_t, uint32_t>, std::string> types_ GUARDED_BY(names_mutex_);
  std::map<Key, Track> tracks_ GUARDED_BY(mutex_);
  std::map<Key, int64_t> begun_ GUARDED_BY(mutex_);
  std::map<Key, Times> finished_ GUARDED_BY(mutex_);
  std::deque<Key> finished_order_ GUARDED_BY(mutex_);
  std::deque<Collective> collectives_ GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, Thread> threads_ GUARDED_BY(mutex_);
  std::array<std::vector<uint64_t>, kExternalKinds> external_ GUARDED_BY(mutex_);
  uint64_t correlation_ GUARDED_BY(mutex_) = 0;
};

}  // namespace profd::sim::mspti
