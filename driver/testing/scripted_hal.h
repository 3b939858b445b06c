// A driver that does what a test scripts, behind the function pointers of HalSymbols. Tests
// only.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "driver/hal_library.h"

namespace profd::testing {

using Bytes = std::vector<std::byte>;
enum class Call { kPoll, kRead, kStart, kStop, kFlush, kInfo, kStatus };

// One at a time: C functions have no object, so the newest one answers them.
class ScriptedHal {
 public:
  ScriptedHal();
  // Lets held calls go and waits until all have left. Calls that come later answer -1.
  ~ScriptedHal();
  ScriptedHal(const ScriptedHal&) = delete;
  ScriptedHal& operator=(const ScriptedHal&) = delete;

  static HalSymbols Symbols();
  std::shared_ptr<const HalLibrary> Library() const {
    return std::make_shared<const HalLibrary>(Symbols());
  }

  // Bytes that one read gives (or the next ones, if the caller's buffer is smaller).
  void Data(uint32_t device, uint32_t channel, Bytes bytes);
  // Reads never cut the bytes of one Data call: a buffer too small for them is answered with `code`, 0 or -9.
  void set_uncut(int code) { Locked([&] { uncut_ = code; }); }
  // A code that one read gives.
  void ReadCode(uint32_t device, uint32_t channel, int code);
  // What a read gives when there is nothing: 0, or -4.
  void set_empty_code(int code) { Locked([&] { empty_code_ = code; }); }
  // What the next polls give; then ready channels are reported.
  void PollCodes(std::vector<int> codes);
  // Pairs a poll reports although there is nothing to read.
  void Phantom(uint32_t device, uint32_t channel);
  // Report a channel once per Data call instead of as long as there is data.
  void set_edge_triggered(bool on) { Locked([&] { edge_triggered_ = on; }); }
  // Bytes that appear when the channel is flushed or stopped.
  void OnFlush(uint32_t device, uint32_t channel, Bytes bytes) {
    Locked([&] { on_flush_[{device, channel}] = std::move(bytes); });
  }
  void OnStop(uint32_t device, uint32_t channel, Bytes bytes) {
    Locked([&] { on_stop_[{device, channel}] = std::move(bytes); });
  }
  // A stop discards what was not read before it.
  void set_forgets_at_stop(bool on) { Locked([&] { forgets_at_stop_ = on; }); }
  // What start, stop, flush and status answer.
  void Code(Call call, int code) { Locked([&] { codes_[call] = code; }); }
  void Info(abi::HalModule module, abi::HalInfo info, int code, int64_t value) {
    Locked([&] { infos_[{module, info}] = {code, value}; });
  }

  // Calls of this kind (of this device, if not negative) do not return until Release.
  void Hold(Call call, int device = -1);
  void Release(Call call, int device = -1);
  // Waits until `count` calls are being held.
  void WaitUntilHeld(int count);
  int held() { return Locked([&] { return held_; }); }
  int status_calls() { return Locked([&] { return status_calls_; }); }
  int read_calls() { return Locked([&] { return read_calls_; }); }
  // "start 0/1 period 20", "stop 0/1", ... in order.
  std::vector<std::string> log() { return Locked([&] { return log_; }); }
  bool drained(uint32_t device, uint32_t channel) {
    return Locked([&] { return channels_[{device, channel}].reads.empty(); });
  }

 private:
  struct Entry;  // one call inside the fake
  struct Channel {
    std::deque<std::pair<int, Bytes>> reads;  // code < 0, or bytes
    bool reported = false;
  };
  using Key = std::pair<uint32_t, uint32_t>;

  static int Start(unsigned device, unsigned channel, abi::ProfStartPara* para);
  static int Stop(unsigned device, unsigned channel);
  static int Read(unsigned device, unsigned channel, char* buffer, unsigned size);
  static int Poll(abi::ProfPollInfo* out, int num, int timeout);
  static int Flush(unsigned device, unsigned channel, unsigned* length);
  static int GetInfo(uint32_t device, int32_t module, int32_t info, int64_t* value);
  static int GetStatus(uint32_t device, int* status);

  template <class Do>
  std::invoke_result_t<Do> Locked(Do what) {
    std::lock_guard lock(mutex_);
    return what();
  }
  void HoldIfAsked(std::unique_lock<std::mutex>& lock, Call call, uint32_t device);
  int CollectReady(abi::ProfPollInfo* out, int num);
  void PutData(Key key, Bytes bytes);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Channel> channels_;
  std::map<Key, Bytes> on_flush_, on_stop_;
  std::set<Key> phantoms_;
  std::deque<int> poll_codes_;
  std::map<Call, int> codes_;
  std::map<std::pair<int, int>, std::pair<int, int64_t>> infos_;
  std::set<std::pair<Call, int>> holds_;
  std::vector<std::string> log_;
  bool edge_triggered_ = false;
  bool forgets_at_stop_ = false;
  int empty_code_ = 0;
  std::optional<int> uncut_;
  bool leaving_ = false;
  int held_ = 0;
  int inside_ = 0;
  int status_calls_ = 0;
  int read_calls_ = 0;
};

}  // namespace profd::testing
