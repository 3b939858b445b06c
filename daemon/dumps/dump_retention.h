// All dumps there are on the disk: those being written and those of earlier sessions and daemons. It
// completes what a crash left (on a thread of its own, newest first), removes the oldest finished
// ones when there is too much (dump_quota.h), and remembers what is pinned.
//
// Lives on the control strand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/strand.h"
#include "daemon/dumps/dump_quota.h"
#include "daemon/dumps/state_saver.h"
#include "daemon/dumps/state_store.h"
#include "dump/dump_root.h"
#include "dump/recovery.h"

namespace profd {

class SelfMetrics;

class DumpRemover {
 public:
  // With the bytes freed, on the control strand; may be null.
  using Removed = std::function<void(Result<uint64_t>)>;

  virtual ~DumpRemover() = default;
  virtual void Remove(const std::string& name, std::string_view reason, Removed done) = 0;
};

class DumpRetention final : public DumpRemover {
 public:
  struct Deps {
    Strand& control;
    const Clock& clock;
    StateStore& store;   // pins are loaded from
    StateSaver& states;  // and kept by
    std::string root;  // path of the dump root
  };
  // A dump of an earlier run of the daemon, completed.
  struct RecoveredDump {
    KeptDump dump;
    Manifest manifest;
    Status problem;  // why it could not be completed; what is known is in `dump`
  };
  // What becomes of the dumps, for who watches them; on the control strand. A watcher overrides what it wants to know of.
  class Watcher {
   public:
    virtual void OnFound(const RecoveredDump& /*found*/) {}
    // The dump is not there any more, or will not be soon.
    virtual void OnRemoved(const std::string& /*name*/, std::string_view /*reason*/) {}
    // A dump of this daemon's is complete.
    virtual void OnClosed(const KeptDump& /*dump*/) {}
    // Those that were to be looked at first have been found, then all that there were. Once each.
    virtual void OnFirstComplete() {}
    virtual void OnComplete() {}

   protected:
    ~Watcher() = default;
  };

  DumpRetention(Deps deps, const QuotaLimits& limits);
  ~DumpRetention() override;

  // Before Begin. Notified in this order; outlives the control strand's tasks.
  void Watch(Watcher* watcher) { watchers_.push_back(watcher); }
  void SetLimits(const QuotaLimits& limits) { limits_ = limits; }

  // Looks at `names`, the dumps there were before the first session: `first` of them before all
  // others, with the session each belongs to and whether the machine ran on. Once.
  struct FirstDump {
    std::string session_id;
    bool same_boot = true;
  };
  void Begin(std::vector<std::string> names, std::map<std::string, FirstDump> first);
  bool complete() const { return left_ == 0; }
  void Stop();

  // A dump of this daemon's: begun, grown, complete.
  void Opened(KeptDump dump);
  // `queued` bytes wait to be written to it, as they do where the disk is slow: they will be, even if it ends now.
  void Grown(std::string_view name, uint64_t bytes, uint64_t queued = 0);
  void Closed(const std::string& name, DumpState state, uint64_t bytes);

  // Whether it waits for the database; not where there is none of that name.
  void SetWaiting(std::string_view name, bool waiting);

  // The end of a dump could not be written: it is completed as `manifest` has it when the disk takes it again,
  // which Tick (about once a second) looks for. Until then it counts as being written. Dumps of earlier daemons that
  // could not be completed for lack of space are tried again, too.
  void CompleteLater(const std::string& name, Manifest manifest);
  void Tick();
  // For the next daemon, in the dump's manifest: why the session of a dump that was found did not resume.
  void KeepReason(const std::string& name, const std::string& reason);

  // Null if there is none, or its removal has been requested.
  const KeptDump* Find(std::string_view name) const;
  std::vector<const KeptDump*> All() const;  // oldest first
  uint64_t total_bytes() const;
  // Of dumps that are being written, pinned, neither. Summed up anew only after something changed.
  struct Sums {
    uint64_t running = 0;
    uint64_t pinned = 0;
    uint64_t finished = 0;
    uint64_t queued = 0;  // waits to be written to the running ones
    size_t writing = 0;   // how many are running, those that are being removed too
    uint64_t total() const { return running + pinned + finished; }
  };
  const Sums& sums() const;
  const QuotaLimits& limits() const { return limits_; }

  void Remove(const std::string& name, std::string_view reason, Removed done) override;
  // kResourceExhausted when the owner would have too much pinned (unless `unlimited`).
  Status Pin(const std::vector<std::string>& names, bool pinned, bool unlimited);

  // May another dump begin? Removes what has to go for it. kResourceExhausted names the
  // limit when all that is left is pinned or being written.
  Status CheckStart(uint32_t uid);
  // Frees space for what is being written. What it returns as `over_*` can only be freed by ending sessions.
  QuotaPlan Enforce();
  void UpdateMetrics(SelfMetrics* self) const;

  uint64_t recovered() const { return recovered_; }
  // Whether one is being tried again right now.
  bool trying() const {
    return std::ranges::any_of(unended_, [](const auto& dump) { return dump.second.trying; });
  }

 private:
  struct Disk;
  // The end of a dump could not be written: how it is tried again.
  struct Unended {
    RecoveryOptions options;
    bool found = false;  // of an earlier daemon
    bool trying = false;
    int64_t next_ns = 0;  // not before
  };
  void NoteProgress(bool first_complete);
  void Take(RecoveredDump found, RecoveryOptions options);
  uint64_t BytesAhead(double seconds) const;
  Headroom HeadroomNow() const;
  bool FarBelow(uint64_t bytes) const;
  void Apply(const QuotaPlan& plan);
  void SavePins();
  void TryToComplete(const std::string& name, Unended& dump);
  void Measure(const std::string& name);
  void LoadPins();

  Deps deps_;
  QuotaLimits limits_;
  std::vector<Watcher*> watchers_;
  std::map<std::string, KeptDump, std::less<>> dumps_;
  uint64_t changes_ = 1;  // of dumps_
  mutable uint64_t summed_changes_ = 0;
  mutable Sums sums_;
  std::set<std::string, std::less<>> pinned_;  // dumps, whether found yet or not
  std::map<std::string, uint64_t, std::less<>> removed_;  // so far, by reason
  uint64_t recovered_ = 0;
  std::map<std::string, Unended, std::less<>> unended_;
  size_t left_ = 0;
  size_t first_left_ = 0;
  // How fast the running dumps grow.
  int64_t grown_at_ns_ = 0;
  uint64_t grown_ = 0;  // by what was written, or waits to be
  uint64_t grown_before_ = 0;
  double bytes_per_s_ = 0;
  Executor executor_{"profd-dumps", 1};
  Strand disk_{executor_};
};

}  // namespace profd
