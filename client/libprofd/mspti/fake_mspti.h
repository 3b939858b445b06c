// What tests order of the stand-in of libmspti.so (fake_mspti.cc), and what they see of it. The stand-in
// keeps to the vendor's rules of buffers and hand-over and to nothing else: records are what a test gives it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace profd::lib::mspti {

struct FakeMspti {
  // Requests. Results of functions; kinds by number.
  std::atomic<int> subscribe_result{0};
  std::atomic<int> unsubscribe_result{0};
  int enable_result[16] = {};
  std::atomic<bool> throws_on_subscribe{false};
  std::atomic<bool> throws_on_flush{false};
  bool frees_strings = false;   // when the complete callback has returned
  bool completes_late = false;  // once more after Unsubscribe
  bool made_by_flush = false;   // what holds the records is made by the first FlushAll, and gone when exit destroys it

  // What was done, in order: S subscribe, R register, + and the kind's letter (a = 0) for enable, - for
  // disable, U unsubscribe; flushes are not in it.
  char calls[256] = {};
  std::atomic<uint64_t> flushes{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> calls_inside_callbacks{0};  // of functions here, from within a callback: a deadlock
  bool enabled[16] = {};
};

// Of the stand-in, found with dlsym.
using FakeFunction = FakeMspti* (*)();
inline constexpr char kFakeName[] = "fakeMspti";
// Records one record of `bytes`, on the calling thread, as the vendor's library does. Pointers at the offsets
// `strings` (0 ends them) are to strings, which the stand-in copies.
using FakeRecordFunction = void (*)(const void* record, size_t bytes, const size_t* strings);
inline constexpr char kFakeRecordName[] = "fakeRecord";
// Waits for the threads that hand buffers over.
using FakeJoinFunction = void (*)();
inline constexpr char kFakeJoinName[] = "fakeJoin";

}  // namespace profd::lib::mspti
