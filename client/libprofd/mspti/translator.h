// Walks buffers of the vendor's records and puts what is in them into the activity ring: times to
// CLOCK_MONOTONIC_RAW, strings to numbers, devices as the process sees them to those of the node. One
// thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/libprofd/mspti/clock_pair.h"
#include "proto/attach/activity_writer.h"

namespace profd::lib::mspti {

class Translator {
 public:
  // `visible_devices`: the node's devices in the order in which the process numbers them; empty = all.
  Translator(attach::ActivityWriter& writer, std::vector<uint16_t> visible_devices)
      : writer_(writer), visible_devices_(std::move(visible_devices)) {}

  // `clock`: of when the buffer was returned; what is in it was recorded after it had been lent. Does not use
  // msptiActivityGetNextRecord, which keeps its place in a variable of the thread: a record of unknown kind ends the
  // walk, what is behind it is counted.
  void Walk(const uint8_t* data, size_t valid, const ClockPair& clock, int64_t lent_raw_ns);

  // Of now: so that a step of CLOCK_REALTIME is seen soon also when no buffer comes.
  void NoteClock(const ClockPair& clock);
  // What was noted before is of long ago.
  void StartClocks(const ClockPair& now);
  struct ClockStep {
    int64_t by_ns = 0;  // 0: there was none
    int64_t from_raw_ns = 0, to_raw_ns = 0;  // it was between these
    std::string Text() const;
  };
  const ClockStep& last_step() const { return step_; }

  uint64_t records() const { return records_; }
  // Of them, what the device measured: kernels and communication.
  uint64_t device_records() const { return device_records_; }

  // Markers come by libprofd_mstx.so, too: what the host made of them is left out. The device's half, which has no
  // strings, is given those of the host's.
  void LeaveOutHostMarkers(bool leave_out) { leaves_out_host_markers_ = leave_out; }

 private:
  // Of markers on a stream whose device's half is to come; it may never. More than that are forgotten, oldest first.
  static constexpr size_t kMaxAwaited = 4096;
  struct MarkerTexts {
    uint32_t name;
    uint32_t domain;
  };
  struct Times {
    int64_t start_ns;
    uint64_t duration;
  };
  // How long the vendor's library may use a pair that was read last: it takes one every 7 s, and reads are 2 s apart.
  static constexpr int64_t kKeptNs = 10'000'000'000;
  static constexpr size_t kMostClocks = 16;
  const ClockPair& ClockOf(uint32_t kind, const uint8_t* record, const ClockPair& clock);
  void Put(uint32_t kind, const uint8_t* record, const ClockPair& clock);
  void PutKernel(const uint8_t* record, const ClockPair& clock);
  void PutCommunication(const uint8_t* record, const ClockPair& clock);
  void PutHccl(const uint8_t* record, const ClockPair& clock);
  void PutApi(uint32_t kind, const uint8_t* record, const ClockPair& clock);
  void PutMarker(const uint8_t* record, const ClockPair& clock);
  void AwaitDevice(const attach::MarkerRecord& host);
  void TakeTexts(attach::MarkerRecord* device);
  void PutExternal(const uint8_t* record, const ClockPair& clock);
  // What allocations, sets and copies have in common.
  template <class Record>
  void AddMemory(const Record& record, attach::MemoryOperation operation, attach::MemoryRecord memory, const ClockPair& clock);
  void PutMemory(const uint8_t* record, const ClockPair& clock);
  void PutMemset(const uint8_t* record, const ClockPair& clock);
  void PutMemcpy(const uint8_t* record, const ClockPair& clock);
  Times TimesOf(uint64_t start, uint64_t end, const ClockPair& clock);
  template <class Record>
  void AddTimed(const Times& times, Record record);
  template <class Record>
  void SetDevice(uint32_t logical, Record* record) const;

  attach::ActivityWriter& writer_;
  std::vector<uint16_t> visible_devices_;
  uint64_t records_ = 0;
  uint64_t device_records_ = 0;
  bool leaves_out_host_markers_ = false;

  std::vector<ClockPair> clocks_;  // the last before each step of CLOCK_REALTIME, and the last of all
  ClockStep step_;
  // Of the buffer that is walked.
  size_t oldest_clock_ = 0;  // of clocks_: that the vendor's library may have used
  int64_t lent_raw_ns_ = 0, returned_raw_ns_ = 0;
  // Of clocks_: with which times taken on the host and on the device were made; the two follow a step apart.
  std::array<size_t, 2> clock_in_use_{};

  std::map<uint64_t, MarkerTexts> awaited_;  // by the marker's id, which rises
};

// The physical devices that this process sees, in its numbering; empty: its environment has no list of them.
std::vector<uint16_t> VisibleDevices();

}  // namespace profd::lib::mspti
