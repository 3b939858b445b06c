// When a session begins and ends, and the clocks that its timestamps are relative to: the host's and its devices', read
// at the start, from time to time, and at the end. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/strand.h"
#include "daemon/data/dump_writer.h"
#include "daemon/data/replay.h"
#include "daemon/node/node_access.h"
#include "daemon/session/channel_arbiter.h"

namespace profd {

class SessionClocks final : public std::enable_shared_from_this<SessionClocks> {
 public:
  // References outlive the object.
  struct Deps {
    Strand& control;
    const Clock& clock;
    const NodeDevices& devices;
    ChannelArbiter& arbiter;
  };
  explicit SessionClocks(const Deps& deps) : deps_(deps) {}

  // The session begins now.
  void Begin();
  // It begins at `wall_ns`, which is `left_ns` ahead.
  void BeginAt(int64_t wall_ns, int64_t left_ns);
  // It was requested just now, and begins earlier: the clocks are those of then, as far as `past` has them.
  void MoveBack(int64_t raw_ns, const RecorderHistory& past);
  void TakePast(const RecorderHistory& past);
  // Its collectors stop now; it ends now, or when its dump is closed.
  void Stop() { stop_raw_ns_ = deps_.clock.MonotonicRawNs(); }
  void End() { end_wall_ns_ = deps_.clock.WallNs(); }

  // Reads the clocks of `devices` in parallel, then calls `done`. What cannot be read is tried again with Tick.
  void ReadFirst(const std::vector<int>& devices, std::function<void()> done);
  // What is read goes into the manifest of the dump; `when`: as it is called there.
  void ReadAgain(const std::vector<int>& devices, const char* when, std::shared_ptr<WriterSession> dump_or_null,
                 std::function<void()> done);
  // While the session runs: reads them again when it is time. The longer it has run, the fewer of them go into the manifest.
  void Tick(const std::vector<int>& devices, const std::shared_ptr<WriterSession>& dump_or_null);
  // The clocks of a device that comes later.
  void Add(int device, const Result<ClockPair>& pair);

  // The start is known; it may be to come.
  bool begun() const { return start_wall_ns_ != 0; }
  int64_t start_wall_ns() const { return start_wall_ns_; }
  int64_t start_raw_ns() const { return start_raw_ns_; }
  // When it was requested, if the start lies before that; 0 if it does not.
  int64_t requested_wall_ns() const { return requested_wall_ns_; }
  int64_t stop_raw_ns() const { return stop_raw_ns_; }
  int64_t end_wall_ns() const { return end_wall_ns_; }
  const ClockPair& host() const { return host_; }
  // At the start; null: they could not be read.
  const ClockPair* Of(int device) const;

 private:
  using Take = std::function<void(int device, const Result<ClockPair>& pair)>;
  void Read(const std::vector<int>& devices, Take take, std::function<void()> done);
  int64_t PauseNs() const;

  const Deps deps_;
  int64_t start_wall_ns_ = 0;
  int64_t start_raw_ns_ = 0;
  int64_t requested_wall_ns_ = 0;
  int64_t stop_raw_ns_ = 0;
  int64_t end_wall_ns_ = 0;
  ClockPair host_;
  std::map<int, ClockPair> pairs_;
  std::set<int> unread_;  // devices whose clocks could not be read so far
  int64_t next_ns_ = 0;
  int64_t next_kept_ns_ = 0;  // no pair goes into the manifest before
};

}  // namespace profd
