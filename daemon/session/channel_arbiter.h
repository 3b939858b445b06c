// Shares the driver's channels between sessions: a channel has one owner in the driver, which is us;
// it runs at the fastest rate requested, slower sessions get a thinned view, latecomers a
// rebased one. Every channel is brought step by step from what it is to what its users want
// (Reconcile), so that starts, stops, joins and failures may come in any order.
//
// A channel that is made faster for a newcomer is restarted (the others see a short gap, listed in
// their manifest); it is not slowed down again when the newcomer leaves.
//
// Lives on the control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strand.h"
#include "collectors/collector.h"
#include "daemon/data/channel_router.h"
#include "daemon/data/dump_writer.h"
#include "driver/channel_pump.h"
#include "driver/device_control.h"
#include "profd/v1/profd.pb.h"

namespace profd {

struct ClaimRequest {
  int device = 0;
  CollectorIndex collector = 0;
  ChannelOptions options = {};
  std::string owner = {};                     // session id, for messages to others
  std::shared_ptr<WriterSession> dump = {};   // null: no dump
  int64_t session_start_ns = 0;          // H of this device in the dump
  int64_t since_ns = 0;  // with a dump: begins with what the flight recorder holds since then
  // The flight recorder's: stays for good, and alone it gets back the rate it asked for.
  bool resident = false;
};

// What a dump of the channel is to be like: file, clocks and the rates it gets.
FeedOptions ChannelFeed(const Host& host, const DeviceInfo& device, CollectorIndex collector,
                        uint32_t channel, const ChannelOptions& options);

struct ClaimAnswer {
  v1::Outcome::Result state = v1::Outcome::RESULT_UNSPECIFIED;  // not known yet
  std::string detail;
  double hz = 0;
  uint64_t garbage_bytes = 0;
  std::string holder = {};  // RESULT_BUSY: the session that has it, if one does
  struct Channel {
    v1::Outcome::Result state = v1::Outcome::RESULT_UNSPECIFIED;
    std::string detail;
    uint64_t garbage_bytes = 0;
  };
  std::map<uint32_t, Channel> channels{};  // of collectors that read channels
};

class ChannelArbiter {
 public:
  struct Device {
    const DeviceInfo* info = nullptr;
    DeviceControl* control = nullptr;
  };
  struct Deps {
    Strand& control;
    const Host& host;
    MetricStore& store;
    ChannelRouter& router;
    ChannelPump& pump;
  };
  using ClaimId = uint64_t;

  ChannelArbiter(const Deps& deps, std::vector<Device> devices);

  // Takes the collector's channels on one device. `settled` runs once, when every channel has
  // answered; afterwards AnswerOf has the state.
  ClaimId Claim(const ClaimRequest& request, std::function<void()> settled);
  // Gives them back. `done` runs when no block of them can reach the claim's feeds any more, with the bytes of each
  // channel that were no record of it: the last ones come with the stop.
  using GarbageBytes = std::map<uint32_t, uint64_t>;
  void Release(ClaimId claim, std::function<void(const GarbageBytes&)> done);

  ClaimAnswer AnswerOf(ClaimId claim) const;
  std::vector<const DumpFeed*> FeedsOf(ClaimId claim) const;

  // Gives the channel up to another tool until TakeBack: stops it, and answers its users "busy" with `why`. `done` runs
  // once the driver has stopped it, or has refused to.
  void HandOver(int device, uint32_t channel, std::string why, std::function<void(const Status&)> done);
  void TakeBack(int device, uint32_t channel);
  // Owners of the claims on it; those of the flight recorder are left out.
  std::vector<std::string> SessionsOn(int device, uint32_t channel) const;

  // About once a second: retries what is busy or failed, looks for lost devices and silent channels.
  void Tick();
  void OnDeviceStuck(uint32_t device, const std::string& why);
  void OnDeviceRecovered(uint32_t device);
  // The device's clocks as last correlated; used for all timestamps from now on.
  void SetClock(int device, const ClockPair& pair);
  // Null before the first.
  const ClockPair* ClockOf(int device) const {
    auto found = clocks_.find(device);
    return found == clocks_.end() ? nullptr : &found->second;
  }

  struct ChannelStatus {
    int device = 0;
    uint32_t channel = 0;
    v1::Channel::State state = v1::Channel::STATE_IDLE;
    std::string detail;
    double hz = 0;
    uint32_t users = 0;
  };
  std::vector<ChannelStatus> Channels(int device) const;
  // Why the device cannot be used right now; empty if it can.
  std::string ProblemOf(int device) const;

 private:
  enum class Phase : uint8_t { kIdle, kStarting, kRunning, kStopping };
  // One claim's share in one channel.
  struct Participant {
    ClaimId claim = 0;
    std::string owner;
    ChannelOptions options;
    double hz = 0;  // what this claim gets after rounding
    FeedTarget target;
    bool attached = false;
    bool begun = false;  // was there when the present run was begun, or has joined it
    bool ran = false;    // has seen a run that the driver started
    v1::Outcome::Result state = v1::Outcome::RESULT_UNSPECIFIED;
    std::string detail;
    uint64_t garbage_before = 0;
    int64_t since_ns = 0;
    bool resident = false;
  };
  struct PendingDetach {
    FeedTarget target;
    ClaimId claim = 0;
    uint64_t garbage_before = 0;
  };
  struct Slot {
    int device = 0;
    uint32_t channel = 0;
    CollectorIndex collector = 0;
    Phase phase = Phase::kIdle;
    uint32_t epoch_number = 0;
    std::shared_ptr<ChannelEpoch> epoch;
    ChannelRequest request;
    ChannelOptions running;
    std::vector<Participant> parts;
    std::vector<PendingDetach> pending_detaches;
    Status last_error;
    int64_t retry_at_ns = 0;
    int64_t backoff_ns = 0;
    bool restart = false;
    bool doubtful = false;  // the device was away while this ran
    // A stop was not answered: the driver may still be sampling, and would refuse a start.
    bool unstopped = false;
  };
  struct HandedOver {
    std::string why;
    std::vector<std::function<void(const Status&)>> waiting;  // for the stop
  };
  struct ClaimRecord {
    ClaimRequest request;
    std::vector<std::pair<int, uint32_t>> channels;
    std::function<void()> settled;
    std::function<void(const GarbageBytes&)> released;
    GarbageBytes garbage;  // of channels that are released
    size_t waiting = 0;    // pending_detaches not yet gone
    ClaimAnswer fixed;   // when no channel was taken at all
  };

  Slot& SlotOf(int device, uint32_t channel, CollectorIndex collector);
  const Device& DeviceOf(int device) const;
  std::vector<ChannelRequest> PlanFor(int device, CollectorIndex collector,
                                      ChannelOptions options) const;
  bool RequestFor(const Slot& slot, const ChannelOptions& options, ChannelRequest* out) const;
  const Participant* Conflict(const Slot& slot, const ChannelOptions& options) const;
  void PushOutResident(Slot& slot, const ClaimRequest& request);
  Participant MakePart(ClaimId id, const ClaimRequest& request, const ChannelRequest& planned) const;
  ChannelOptions MergedOf(const Slot& slot) const;

  void Reconcile(Slot& slot);
  void StayAway(Slot& slot, HandedOver& away);
  void Start(Slot& slot, const ChannelRequest& request, const ChannelOptions& options);
  void Stop(Slot& slot);
  void OnStarted(Slot& slot, const Status& status, int64_t start_ns);
  void OnStopped(Slot& slot, const StopOutcome& outcome);
  void NoteDataLost(const Slot& slot);
  void NoteUnread(const Slot& slot, const Status& why);
  void RetryLater(Slot& slot, const Status& why) const;
  void SetRunning(Participant& part);
  void Answer(Participant& part, v1::Outcome::Result state, std::string detail);
  void AnswerFailure(Slot& slot);
  // What the driver holds by now is still the detached claim's: reads it, then detaches.
  void FetchFor(Slot& slot, ClaimId claim);
  void OnFetched(Slot& slot, ClaimId claim, const Status& status);
  void DetachPending(Slot& slot);
  void Detach(Slot& slot, const PendingDetach& detach);
  void CheckSettled(ClaimId id);
  void PushEpoch(Slot& slot, Participant& part);
  void CheckSilence(Slot& slot, int64_t now_ns);
  bool IsInDoubt(int device, int64_t now_ns) const;
  void CheckDevice(int device);
  TimeBase TimeBaseOf(int device) const;
  void MoveStarts(int device, const ClockPair& before, const ClockPair& now);

  Deps deps_;
  std::vector<Device> devices_;
  std::map<std::pair<int, uint32_t>, std::unique_ptr<Slot>> slots_;
  std::map<std::pair<int, uint32_t>, HandedOver> handed_over_;
  std::map<ClaimId, ClaimRecord> claims_;
  std::map<int, std::string> problems_;
  std::map<int, ClockPair> clocks_;
  std::map<int, bool> querying_;
  ClaimId next_claim_ = 1;
};

}  // namespace profd
