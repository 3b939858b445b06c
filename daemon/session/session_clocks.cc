#include "daemon/session/session_clocks.h"

#include <algorithm>
#include <utility>

namespace profd {
namespace {

constexpr int64_t kIntervalNs = 300 * kNsPerSecond;
// While a device's clocks could not be read at all.
constexpr int64_t kRetryNs = 5 * kNsPerSecond;
// Of its age, a session's manifest has no two pairs closer than this part: some 100 for each time that the age triples.
constexpr int64_t kPartOfAge = 100;

}  // namespace

void SessionClocks::Begin() {
  host_ = CorrelateHostClock(deps_.clock);
  start_raw_ns_ = host_.host_ns;
  start_wall_ns_ = deps_.clock.WallNs() - (deps_.clock.MonotonicRawNs() - start_raw_ns_);
}

void SessionClocks::BeginAt(int64_t wall_ns, int64_t left_ns) {
  Begin();
  start_wall_ns_ = wall_ns;
  start_raw_ns_ += left_ns;
}

void SessionClocks::MoveBack(int64_t raw_ns, const RecorderHistory& past) {
  requested_wall_ns_ = start_wall_ns_;
  start_wall_ns_ -= start_raw_ns_ - raw_ns;
  start_raw_ns_ = raw_ns;
  past.ClockAt(kHostDevice, raw_ns, &host_);
  host_.host_ns = raw_ns;
}

// Without one of then the pair read just now has to do; it is as right, but for the clocks' drift.
void SessionClocks::TakePast(const RecorderHistory& past) {
  for (auto& [device, pair] : pairs_) {
    ClockPair then;
    if (past.ClockAt(device, start_raw_ns_, &then)) pair = then;
  }
}

void SessionClocks::Read(const std::vector<int>& devices, Take take, std::function<void()> done) {
  DCHECK_ON(deps_.control);
  if (devices.empty()) return done();
  struct Round {
    size_t left;
    Take take;
    std::function<void()> done;
  };
  auto round = std::make_shared<Round>(Round{devices.size(), std::move(take), std::move(done)});
  for (int device : devices) {
    deps_.devices.ControlOf(device)->CorrelateClock([self = shared_from_this(), device, round](const Result<ClockPair>& pair) {
      self->deps_.control.Post([self, device, round, pair] {
        if (pair.ok()) {
          self->unread_.erase(device);
          self->deps_.arbiter.SetClock(device, *pair);
        }
        round->take(device, pair);
        if (--round->left == 0) round->done();
      });
    });
  }
}

void SessionClocks::ReadFirst(const std::vector<int>& devices, std::function<void()> done) {
  const auto take = [this](int device, const Result<ClockPair>& pair) {
    if (pair.ok()) {
      pairs_[device] = *pair;
    } else {
      unread_.insert(device);
    }
  };
  Read(devices, take, [this, done = std::move(done)] {
    next_ns_ = start_raw_ns_ + PauseNs();
    done();
  });
}

void SessionClocks::ReadAgain(const std::vector<int>& devices, const char* when,
                              std::shared_ptr<WriterSession> dump_or_null, std::function<void()> done) {
  const auto take = [when, dump = std::move(dump_or_null)](int device, const Result<ClockPair>& pair) {
    if (!pair.ok() || dump == nullptr) return;
    dump->EditManifest([device, when, clocks = ForDump(*pair)](Manifest& manifest) {
      manifest.clocks.push_back({device, when, clocks});
    });
  };
  Read(devices, take, std::move(done));
}

void SessionClocks::Tick(const std::vector<int>& devices, const std::shared_ptr<WriterSession>& dump_or_null) {
  const int64_t now_ns = deps_.clock.MonotonicRawNs();
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + PauseNs();
  const bool kept = now_ns >= next_kept_ns_ || !unread_.empty();
  if (kept) next_kept_ns_ = now_ns + std::max(kIntervalNs, (now_ns - start_raw_ns_) / kPartOfAge);
  ReadAgain(devices, "periodic", kept ? dump_or_null : nullptr, [] {});
}

void SessionClocks::Add(int device, const Result<ClockPair>& pair) {
  if (!pair.ok()) {
    unread_.insert(device);
    return;
  }
  pairs_[device] = *pair;
  deps_.arbiter.SetClock(device, *pair);
}

int64_t SessionClocks::PauseNs() const { return unread_.empty() ? kIntervalNs : kRetryNs; }

const ClockPair* SessionClocks::Of(int device) const {
  const auto found = pairs_.find(device);
  return found == pairs_.end() ? nullptr : &found->second;
}

}  // namespace profd
