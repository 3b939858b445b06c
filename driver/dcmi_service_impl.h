// Shared by the .cc files of DcmiService only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/mutex.h"
#include "driver/dcmi_service.h"

namespace profd {

// Devices we keep state for: 64 cards is the driver's own limit, some carry two chips.
inline constexpr size_t kMaxDcmiDevices = 128;

struct DcmiService::State {
  State(DcmiLibrary lib, const Clock& c) : library(std::move(lib)), clock(c) {}

  // What is known of a device; slot 0 is the node, device i has slot i + 1.
  struct Slot {
    int physical_id = -1;
    bool in_flight = false;
    bool stuck = false;
    DcmiCall call{};
    int64_t since_ns = 0;
    int64_t answered_ns = 0;  // CLOCK_MONOTONIC_RAW
    int down_code = 0;        // what the last query of health returned, if it failed
    std::array<int, kDcmiCallCount> refused{};  // the code that ended all asking; 0 = ask
    // Energy, fault events and the 16-bit SIO counters live here because always-on collection and
    // sessions read the same device and must show one and the same counter.
    int64_t power_ns = -1;
    double watts = 0;
    double joules = 0;
    bool sio_known = false;
    uint16_t sio_tx = 0;
    uint16_t sio_rx = 0;
    DcmiSioErrors sio;
    DcmiFaultCounter fault_events;

    // What health says. A device that is lost may come back reset: its counters begin at zero, which must not look
    // like a wrap.
    void SetDown(int code) {
      down_code = code;
      if (code != 0) sio_known = false;
    }
  };

  // An NPU that was found, with what was learned about asking it.
  struct FoundNpu {
    DcmiDevice device;
    Slot slot;
  };
  // One attempt to find the NPUs of a card, on a thread of its own.
  struct Search {
    explicit Search(int c) : card(c) {}
    const int card;
    Slot calls;                // those that are not about one NPU
    std::vector<FoundNpu> found;  // the thread's until `done`
    bool failed = false;  // by an error that may be gone at the next search: there may be more on the card
    bool done = false;
  };
  struct Card {
    int id = 0;  // v2: the NPU's logical id
    bool answered = false;
    // Until then, not to have answered says nothing: the library has only just listed it.
    int64_t awaited_until_ns = 0;
    int64_t next_try_ns = 0;
    std::vector<std::shared_ptr<Search>> searches;  // that have not been looked at
  };

  // Initialising the library and asking for its cards, on a thread of its own: also the first attempt may hang.
  struct Listing {
    Slot calls;
    // What follows is the thread's until `done`.
    int code = abi::kDcmiOk;
    const char* what = "";  // that failed
    std::vector<int> cards;
    std::string dcmi_version;
    std::string driver_version;
    bool done = false;
  };

  // Calls the library, unless that is known to be pointless.
  int Run(Slot& slot, DcmiCall call, void* closure, ErasedFn fn);
  template <class Fn>
  int Run(Slot& slot, DcmiCall call, Fn&& fn) {
    using Closure = std::remove_reference_t<Fn>;
    return Run(slot, call, const_cast<std::remove_const_t<Closure>*>(&fn),
               [](void* closure) { return (*static_cast<Closure*>(closure))(); });
  }
  // `fn(address, out)` makes the call. Everything it uses is on this thread's stack or in State, so
  // that a call that hangs finds it in place whenever it returns.
  template <class T, class Fn>
  DcmiAnswer<T> Query(const DcmiDevice& d, Slot& slot, DcmiCall call, const T& initial, Fn&& fn);
  void CountEnergy(const DcmiDevice& d, int deciwatts);
  // Where it lies, which does not change, needs no lock; what it holds does.
  Slot& SlotAt(size_t index) UNCHECKED_LOCKING { return slots[index]; }
  Slot& SlotOf(const DcmiDevice& d) { return SlotAt(static_cast<size_t>(d.index + 1)); }

  // Start-up: dcmi_identity.cc.
  void List(Listing& listing);
  // False: none has ended.
  bool TakeListing(int64_t next_ns, int64_t awaited_until_ns) REQUIRES(mutex);
  bool IsPending() const REQUIRES(mutex);
  std::string WhyPending(const Options& options) const REQUIRES(mutex);
  const Card* SilentCardOf(int logical_id) const REQUIRES(mutex);
  int Initialise(Listing& listing);
  int ListCards(Listing& listing);
  void ReadVersions(Listing& listing);
  // One card.
  void FindOnCard(Search& search);
  // An answer that is not a number of a device counts as none: the logical id.
  int PhysicalId(Search& search, abi::DcmiConvertIdFn convert, int logical_id);
  void AddNpu(Search& search, int chip, int logical_id, int physical_id);
  // Query for what is read once.
  template <class T, class Fn>
  DcmiAnswer<T> QueryFact(FoundNpu& found, DcmiCall call, Fn&& fn);
  void ReadIdentity(FoundNpu& found);
  void ReadLabels(FoundNpu& found);

  const DcmiLibrary library;
  const Clock& clock;
  std::atomic<DcmiApi> api = DcmiApi::kNone;  // kNone: not initialised

  mutable Mutex mutex;  // held for nanoseconds, never during a call
  std::array<Slot, kMaxDcmiDevices + 1> slots GUARDED_BY(mutex);
  std::array<DcmiCallStatistics, kDcmiCallCount> statistics GUARDED_BY(mutex);
  std::array<bool, kDcmiCallCount> denied GUARDED_BY(mutex) = {};
  std::vector<DcmiDenial> denials GUARDED_BY(mutex);  // not taken yet
  std::vector<Card> cards GUARDED_BY(mutex);
  bool listed GUARDED_BY(mutex) = false;                 // `cards` is what the library answered
  Listing facts GUARDED_BY(mutex);                       // the last one that has ended
  std::shared_ptr<Listing> attempt GUARDED_BY(mutex);    // under way; null: none
  bool no_thread GUARDED_BY(mutex) = false;              // for the last attempt: it did not begin
  int64_t next_listing_ns GUARDED_BY(mutex) = 0;
};

// Drivers disagree about the size of some structs (dcmi-and-metrics 1.4): what they fill is zeroed
// and has space behind it.
inline constexpr size_t kDcmiSlack = 512;
template <class T>
class DcmiBuffer {
 public:
  explicit DcmiBuffer(const T& initial) { std::memcpy(bytes_, &initial, sizeof initial); }
  T* get() { return reinterpret_cast<T*>(bytes_); }
  T value() const {
    T copy;
    std::memcpy(&copy, bytes_, sizeof copy);
    return copy;
  }

 private:
  alignas(alignof(std::max_align_t)) std::byte bytes_[sizeof(T) + kDcmiSlack] = {};
};

template <class T, class Fn>
DcmiAnswer<T> DcmiService::State::Query(const DcmiDevice& d, Slot& slot, DcmiCall call,
                                        const T& initial, Fn&& fn) {
  const DcmiAddress address{api, d.card, d.chip, d.logical_id};
  DcmiBuffer<T> buffer(initial);
  auto ask = [&] { return fn(address, buffer.get()); };
  DcmiAnswer<T> answer;
  answer.code = Run(slot, call, ask);
  if (answer.ok()) answer.value = buffer.value();
  return answer;
}

template <class Fn>
int DcmiService::RunNode(DcmiCall call, Fn&& fn) {
  const std::shared_ptr<State> state = state_;  // *this may be gone when a hung call returns
  return state->Run(state->SlotAt(0), call, fn);
}

template <class T, class Fn>
DcmiAnswer<T> DcmiService::Query(const DcmiDevice& d, DcmiCall call, const T& initial, Fn&& fn) {
  const std::shared_ptr<State> state = state_;
  return state->Query<T>(d, state->SlotOf(d), call, initial, fn);
}

}  // namespace profd
