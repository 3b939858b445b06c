#include "client/libprofd/mspti/collector.h"

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <utility>

#include "base/fd.h"
#include "client/libprofd/mspti/collect_kinds.h"
#include "client/libprofd/profiler_observer.h"

namespace profd::lib::mspti {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kDefaultFlush{PROFD_COLLECT_FLUSH_MS};
constexpr std::chrono::milliseconds kLeastFlush{20};
constexpr std::chrono::milliseconds kAtExit{1000};
constexpr uint32_t kAllKinds = 127;

// The vendor's callbacks bring no pointer of ours. Nothing may be thrown into its library.
template <class Body>
void GuardedCallback(Body body) {
  try {
    if (PluginCollector* collector = PluginCollector::Instance()) body(static_cast<Collector&>(*collector));
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    // Only memory can be short; the buffer is lost.
  }
}

std::string NamesOf(uint32_t kinds) {
  std::string names;
  for (const KindsOfBit& each : kKindsOfBits) {
    if ((kinds & each.bit) != 0) names += (names.empty() ? "" : ", ") + std::string(each.name());
  }
  return names;
}

std::string LeftOutText(uint32_t kinds, const OverheadBudget& budget) {
  std::array<char, 96> share{};
  std::snprintf(share.data(), share.size(), "collecting took %.1f %% of a core, may take %.1f %%: left out ", 100 * budget.share(),
                100 * budget.limit());
  return share.data() + NamesOf(kinds);
}

std::string TextOf(const char* call, const Called& called) {
  if (!called.why.empty()) return std::string(call) + " threw: " + called.why;
  return std::string(call) + ": " + std::to_string(called.code);
}

extern "C" void ProfdMsptiRequest(uint8_t** buffer, size_t* size, size_t* max_records) {
  if (max_records != nullptr) *max_records = 0;
  GuardedCallback([&](Collector& collector) { collector.Request(buffer, size); });
}
extern "C" void ProfdMsptiComplete(uint8_t* buffer, size_t /*size*/, size_t valid) {
  GuardedCallback([&](Collector& collector) { collector.Complete(buffer, valid); });
}
}  // namespace

int Collector::MakeRing(uint64_t wish) {
  if (writer_ != nullptr) return 0;
  const uint64_t bytes = attach::ActivityBytesFor(wish);
  const size_t all = attach::ActivityRingBytes(bytes);
  UniqueFd memfd(::memfd_create("profd-activity", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memfd.valid() || ::ftruncate(memfd.get(), static_cast<off_t>(all)) != 0) return errno;
  void* memory =
      ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, memfd.get(), 0);
  if (memory == MAP_FAILED) return errno;
  if (::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    const int error = errno;
    ::munmap(memory, all);
    return error;
  }
  const ClockPair now = ClockPair::Now();
  writer_ = std::make_unique<attach::ActivityWriter>(memory, bytes, now.real_ns, now.raw_ns);
  {
    const MutexLock lock(walk_mutex_);
    translator_ = std::make_unique<Translator>(*writer_, VisibleDevices());
  }
  ring_fd_.store(memfd.Release(), std::memory_order_release);
  return 0;
}

int Collector::Start(const profd_collect_config& config) {
  if (dead()) return ECHILD;
  if ((config.kinds & kAllKinds) == 0) return EINVAL;
  MutexLock lock(mutex_);
  // One that is ending still has the vendor's library.
  if (stopping_) return EBUSY;
  if (const int error = MakeRing(config.ring_bytes)) return error;
  if (!pool_.Open()) return ENOMEM;
  config_ = config;
  has_news_ = true;
  ++starts_;
  changed_.NotifyAll();
  return running_ ? 0 : StartThread();
}

void Collector::Run() {
  for (;;) {
    uint32_t kinds = 0;
    uint32_t max_permille = 0;
    uint64_t start = 0;  // 0: none that is new
    Milliseconds flush = kDefaultFlush;
    {
      const MutexLock lock(mutex_);
      if (stopping_) break;
      if (std::exchange(has_news_, false)) {
        gave_up_ = false;
        start = starts_;
      }
      kinds = config_.kinds & kAllKinds;
      max_permille = config_.max_permille;
      if (config_.flush_ms > 0) flush = std::max(kLeastFlush, Milliseconds(config_.flush_ms));
    }
    Milliseconds pause = flush;
    try {
      UpdateBudget(kinds, max_permille);
      pause = Round(kinds, flush);
      if (start != 0) EndStart(start);
    } catch (const std::exception& thrown) {  // of memory; the vendor's are caught where it is called
      Fail("collect", {kInner, thrown.what()});
    }
    MutexLock lock(mutex_);
    changed_.WaitFor(lock, pause, [this]() REQUIRES(mutex_) { return stopping_ || has_news_; });
  }
  Detach();
  pool_.Trim();
}

// The new config may leave out a session that has ended while others remain: it gets what was recorded before.
void Collector::EndStart(uint64_t number) {
  if (subscribed_) {
    Rest(pauses_.settle);
    Flush();
  }
  {
    const MutexLock lock(mutex_);
    flushed_ = number;
  }
  CallOnChange();
}

// CPU time of this thread, and of callbacks that do its work. What the vendor's library itself takes is not seen.
void Collector::UpdateBudget(uint32_t kinds, uint32_t max_permille) {
  const int64_t cost_ns = ReadClock(CLOCK_THREAD_CPUTIME_ID) + callbacks_ns_.load(std::memory_order_relaxed);
  const auto is_asked = [kinds](uint32_t step) { return (step & kinds) != 0; };
  const auto steps = std::ranges::count_if(kLeftOutFirst, is_asked);
  budget_.SetLimit(max_permille / 1e3, static_cast<int>(steps));
  budget_.Update(ReadClock(CLOCK_MONOTONIC_RAW), cost_ns);
  left_out_ = 0;
  int left = budget_.step();
  for (const uint32_t step : kLeftOutFirst) {
    if (is_asked(step) && left-- > 0) left_out_ |= step & kinds;
  }
  writer_->SetCost(static_cast<uint64_t>(cost_ns));
}

Collector::Milliseconds Collector::Round(uint32_t kinds, Milliseconds flush) {
  const ProfilerObserver::OwnCalls own_calls;
  if (owes_unsubscribe_) {
    if (const Called called = Unsubscribe(); !called.ok() && !gave_up_) {
      SetState({PROFD_COLLECT_FAILED, called.code, 0, TextOf("msptiUnsubscribe", called)});
      return pauses_.busy;
    }
  }
  if (gave_up_) return pauses_.busy;
  if (!subscribed_) {
    const Milliseconds pause = Attach(kinds);
    if (!subscribed_) return pause;
  } else if (kinds != asked_ || left_out_ != served_.left_out) {
    DisableAllBut(kinds & ~left_out_);
    EnableKinds(kinds);
  }
  if (subscribed_ && ProfilerObserver::SeesAnother()) {
    // It gets nothing of the host's while we are subscribed, and would not say so.
    Detach();
    SetState({PROFD_COLLECT_BUSY, 0, 0, ProfilerObserver::kAnother});
    return pauses_.busy;
  }
  if (subscribed_) Flush();
  if (subscribed_) WatchSilence();
  return flush;
}

Collector::Milliseconds Collector::Attach(uint32_t kinds) {
  if (!IsMapped("libascendcl.so")) {
    SetState({PROFD_COLLECT_WAITING, 0, 0, "the process has not loaded libascendcl.so"});
    return pauses_.waiting;
  }
  if (ProfilerObserver::Register()) Rest(pauses_.settle);
  if (const std::string other = ProfilerObserver::Others(); !other.empty()) {
    SetState({PROFD_COLLECT_BUSY, 0, 0, other});
    return pauses_.busy;
  }
  if (!loaded_) {
    if (const std::string why = MsptiLibrary::Load(&library_); !why.empty()) {
      gave_up_ = true;
      SetState({PROFD_COLLECT_UNSUPPORTED, 0, 0, why});
      return pauses_.busy;
    }
    loaded_ = true;
    walks_in_callback_.store(!library_.has_is_enabled(), std::memory_order_relaxed);
    const MutexLock lock(mutex_);
    version_ = library_.has_is_enabled() ? "2026-05 or later" : "before 2026-05";
  }
  if (!Subscribe()) return pauses_.busy;
  EnableKinds(kinds);
  // Where MSPTI was the one to load it.
  ProfilerObserver::Register();
  return pauses_.busy;
}

bool Collector::Subscribe() {
  ProfilerObserver::ExpectMspti(true);
  const Called called = library_.Subscribe();
  if (!called.ok()) ProfilerObserver::ExpectMspti(false);
  if (called.code == kMultipleSubscribers) {
    SetState({PROFD_COLLECT_BUSY, called.code, 0, "another client of MSPTI has subscribed"});
    return false;
  }
  if (!called.ok()) {
    Fail("msptiSubscribe", called);
    return false;
  }
  subscribed_ = true;
  marks_taken_.reset();
  clock_note_.clear();
  {
    const MutexLock lock(walk_mutex_);
    translator_->StartClocks(ClockPair::Now());
  }
  CoverExit(ExitAfter::kSubscribe);
  const Called registered = library_.RegisterCallbacks(ProfdMsptiRequest, ProfdMsptiComplete);
  if (registered.ok()) return true;
  Fail("msptiActivityRegisterCallbacks", registered);
  return false;
}

// Where it fails MSPTI still has our subscription, and would take us for another client at the next: it is asked again.
Called Collector::Unsubscribe() {
  Called called = library_.Unsubscribe();
  owes_unsubscribe_ = !called.ok();
  if (called.ok()) ProfilerObserver::ExpectMspti(false);
  return called;
}

// After each of these calls MSPTI has more static objects; our handler must run before they are destroyed.
void Collector::CoverExit(ExitAfter what) {
  if (exit_after_ < what && RegisterAtExit()) exit_after_ = what;
}

bool Collector::EnableOne(uint32_t bit, Called* refused) {
  const auto* found = std::ranges::find(kKindsOfBits, bit, &KindsOfBit::bit);
  for (const Kind kind : found->kinds) {
    if (kind == kInvalid) break;
    if ((enabled_kinds_ & BitOf(kind)) != 0) continue;
    Called called = library_.Enable(kind);
    if (!called.ok() && called.code == kInvalidParameter &&
        (kind == kAclApi || kind == kNodeApi)) {
      // Before 2026-02 one kind is for both.
      called = (enabled_kinds_ & BitOf(kApi)) != 0 ? Called{} : library_.Enable(kApi);
      if (called.ok()) enabled_kinds_ |= BitOf(kApi);
    } else if (called.ok()) {
      enabled_kinds_ |= BitOf(kind);
    }
    if (called.ok()) continue;
    *refused = std::move(called);
    return false;
  }
  return true;
}

void Collector::EnableKinds(uint32_t kinds) {
  asked_ = kinds;
  for (const KindsOfBit& each : kKindsOfBits) {
    if ((kinds & each.bit) == 0) continue;
    for (const Kind kind : each.kinds) ever_enabled_ |= BitOf(kind);
  }
  State state;
  state.left_out = left_out_;
  bool needs_preload = false;
  for (const KindsOfBit& each : kKindsOfBits) {
    if ((kinds & ~left_out_ & each.bit) == 0) continue;
    Called refused;
    if (EnableOne(each.bit, &refused)) {
      state.kinds |= each.bit;
      continue;
    }
    if (state.code == 0) state.code = refused.code;
    needs_preload = needs_preload || refused.code == kWithoutLdPreload;
    state.detail += (state.detail.empty() ? "refused: " : ", ") + std::string(each.name());
    if (!refused.why.empty()) state.detail += " (" + refused.why + ")";
  }
  if (needs_preload) state.detail += "; LD_PRELOAD=libmspti.so is missing";
  if (left_out_ != 0) state.detail += (state.detail.empty() ? "" : "; ") + LeftOutText(left_out_, budget_);
  state.state = state.kinds == kinds ? PROFD_COLLECT_ON : PROFD_COLLECT_PARTIAL;
  if (state.kinds == 0 && (kinds & ~left_out_) != 0) {
    gave_up_ = true;
    const bool threw = state.code == kInner;
    state.state = threw ? PROFD_COLLECT_FAILED : PROFD_COLLECT_UNSUPPORTED;
    Detach();
  }
  if (state.kinds != 0) CoverExit(ExitAfter::kEnable);
  served_ = state;
  quiet_since_ = Clock::now();
  watched_seen_ = CountWatched();
  records_seen_ = records_.load(std::memory_order_relaxed);
  steps_seen_ = CountSteps();
  SetServed();
}

// Kinds that other sessions still collect stay enabled: one that is disabled, even briefly, loses records, and no count
// has them.
void Collector::DisableAllBut(uint32_t kinds) {
  uint32_t wanted = 0;
  for (const KindsOfBit& each : kKindsOfBits) {
    if ((kinds & each.bit) == 0) continue;
    for (const Kind kind : each.kinds) wanted |= BitOf(kind);
  }
  if ((wanted & (BitOf(kAclApi) | BitOf(kNodeApi))) != 0) wanted |= BitOf(kApi);  // as EnableOne does
  for (uint32_t kind = 1; kind < kKindCount; ++kind) {
    // What fails here fails again at Unsubscribe, which decides.
    if ((enabled_kinds_ & ~wanted & BitOf(static_cast<Kind>(kind))) != 0) {
      library_.Disable(static_cast<Kind>(kind));
    }
  }
  enabled_kinds_ &= wanted;
}

bool Collector::AreMarksTaken() {
  const MutexLock lock(mutex_);
  return config_.takes_marks == nullptr || config_.takes_marks(config_.user) != 0;
}

// The host's marks come by libprofd_mstx.so, while libprofd takes any: a flight recorder alone does not have it do so.
// What is about to be walked was made since the last look: what was so then counts, and now the first time.
// Before the vendor's library walks its buffers, which some versions do inside of FlushAll; not in its callbacks, as this
// takes the loader's lock.
void Collector::LookForMstx() {
  const bool are_taken = AreMarksTaken();
  const bool were_taken = std::exchange(marks_taken_, are_taken).value_or(are_taken);
  if ((ever_enabled_ & BitOf(kMarker)) == 0) return;
  is_mstx_mapped_ = IsMappedFile("libprofd_mstx.so");
  const MutexLock lock(walk_mutex_);
  translator_->LeaveOutHostMarkers(were_taken && is_mstx_mapped_);
}

void Collector::Flush() {
  LookForMstx();
  const Called called = library_.FlushAll();
  {
    const MutexLock lock(walk_mutex_);
    WalkReturned();
    translator_->NoteClock(ClockPair::Now());
    if (translator_->last_step().by_ns != 0) clock_note_ = translator_->last_step().Text();
    // Of what callbacks walk until the next look.
    translator_->LeaveOutHostMarkers(marks_taken_.value_or(false) && is_mstx_mapped_);
  }
  pool_.GrowIfShort();
  CoverExit(records_.load(std::memory_order_relaxed) > 0 ? ExitAfter::kRecords : ExitAfter::kFlush);
  if (!called.ok()) Fail("msptiActivityFlushAll", called);
}

// At most as many as there are: a process that fills buffers faster than they are walked would keep the round, and with it the
// look at its cost, from ending.
void Collector::WalkReturned() {
  BufferPool::Full full;
  for (int left = pool_.made(); left > 0 && pool_.Next(&full); --left) {
    translator_->Walk(full.data, full.valid, full.clock, full.lent_raw_ns);
    pool_.Free(full.index);
  }
  records_.store(translator_->records(), std::memory_order_relaxed);
  device_records_ = translator_->device_records();
  writer_->CountLostBytes(attach::LossReason::kNoBuffer, pool_.TakeLostBytes(),
                          ReadClock(CLOCK_MONOTONIC_RAW));
  writer_->Flush();
}

void Collector::SetServed() {
  State state = served_;
  if (!clock_note_.empty()) state.detail += (state.detail.empty() ? "" : "; ") + clock_note_;
  SetState(std::move(state));
}

uint64_t Collector::CountSteps() {
  const MutexLock lock(mutex_);
  return config_.steps == nullptr ? 0 : config_.steps(config_.user);
}

uint32_t Collector::DeviceKinds() const { return served_.kinds & (PROFD_COLLECT_KERNEL | PROFD_COLLECT_COMMUNICATION); }

// The host's records come also where the channels of the device belong to another process, and of chips that have none.
uint64_t Collector::CountWatched() const {
  return DeviceKinds() != 0 ? device_records_ : records_.load(std::memory_order_relaxed);
}

void Collector::WatchSilence() {
  if (served_.kinds == 0) return;  // all of it is left out
  const uint64_t records = records_.load(std::memory_order_relaxed);
  const uint64_t steps = CountSteps();
  const uint64_t watched = CountWatched();
  if (std::exchange(watched_seen_, watched) != watched) {
    records_seen_ = records;
    steps_seen_ = steps;
    quiet_since_ = Clock::now();
    return SetServed();
  }
  if (steps == steps_seen_ || Clock::now() - quiet_since_ < pauses_.silence) return;
  State state{PROFD_COLLECT_SILENT, 0, served_.kinds, "steps went by without a record"};
  state.silent = records == records_seen_ ? served_.kinds : DeviceKinds();
  const bool is_all = state.silent == served_.kinds;
  if (!is_all) state.detail += " of " + NamesOf(state.silent) + " among those of the host";
  state.detail += ": the device's channels may belong to another process, or ";
  if (is_all) {
    state.detail += "this version needs LD_PRELOAD=libmspti.so";
  } else {
    state.detail += state.silent == PROFD_COLLECT_COMMUNICATION ? "nothing communicates" : "MSPTI does not know the chip's";
  }
  if (!served_.detail.empty()) state.detail += "; " + served_.detail;
  SetState(std::move(state));
}

void Collector::Fail(const char* call, const Called& called) {
  gave_up_ = true;
  Detach();
  SetState({PROFD_COLLECT_FAILED, called.code, 0, TextOf(call, called)});
}

void Collector::Detach() {
  if (!std::exchange(subscribed_, false)) return;
  LookForMstx();
  const ProfilerObserver::OwnCalls own_calls;
  DisableAllBut(0);
  const auto walk = [this] {
    const MutexLock lock(walk_mutex_);
    const uint64_t before = records_.load(std::memory_order_relaxed);
    WalkReturned();
    return records_.load(std::memory_order_relaxed) != before;
  };
  const auto end = Clock::now() + pauses_.last_flush;
  library_.FlushAll();
  walk();
  // The driver's last records are on their way; they have come when two flushes brought nothing.
  for (int empty = 0; empty < 2 && Clock::now() < end;) {
    Rest(pauses_.settle);
    library_.FlushAll();
    empty = walk() ? 0 : empty + 1;
  }
  Unsubscribe();
  library_.FlushAll();
  walk();
}

void Collector::Request(uint8_t** buffer, size_t* size) {
  if (dead()) return;
  pool_.Lend(buffer, size);
}

void Collector::Complete(uint8_t* buffer, size_t valid) {
  if (dead()) return;
  if (!walks_in_callback_.load(std::memory_order_relaxed)) return pool_.TakeBack(buffer, valid);
  const int index = pool_.Claim(buffer, valid);
  if (index < 0) return;
  const ClockPair clock = ClockPair::Now();
  const int64_t begin_ns = ReadClock(CLOCK_THREAD_CPUTIME_ID);
  {
    const MutexLock lock(walk_mutex_);
    translator_->Walk(buffer, std::min(valid, BufferPool::kBufferBytes), clock, pool_.LentAt(index));
  }
  callbacks_ns_.fetch_add(ReadClock(CLOCK_THREAD_CPUTIME_ID) - begin_ns, std::memory_order_relaxed);
  pool_.Free(index);
}

void Collector::AtExit() {
  if (!dead() && !exits_.exchange(true, std::memory_order_relaxed)) Stop(kAtExit);
}

void Collector::AddToReport(profd_collect_report* report) {
  CopyText(version_, report->version);
  report->starts = starts_;
  report->flushed = flushed_;
  if (writer_ == nullptr) return;
  report->records = writer_->published();
  report->dropped = writer_->dropped();
  report->lost_bytes = writer_->lost_bytes();
}

}  // namespace profd::lib::mspti
