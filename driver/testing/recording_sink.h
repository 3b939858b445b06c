// Keeps what a pump delivers and lets a test wait for it. Tests only.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "driver/channel_pump.h"

namespace profd::testing {

// Registers a channel and reads it from now on.
inline Status StartReading(const ChannelPump& pump, uint32_t device, uint32_t channel,
                           const abi::ChannelFormat* format_or_null, uint32_t epoch) {
  RETURN_IF_ERROR(pump.table()->Add(device, channel, format_or_null, epoch));
  pump.table()->Open(device, channel);
  pump.alarm()->Wake();
  return {};
}

class RecordingSink final : public BlockSink {
 public:
  explicit RecordingSink(bool watched = true) : watched_(watched) {}

  bool Watched() const override { return watched_; }
  void OnBlock(BlockRef block) override {
    std::lock_guard lock(mutex_);
    if (keep_blocks_) blocks_.push_back(block);
    infos_.push_back(block.info());
    const std::byte* begin = block.bytes().data();
    bytes_.insert(bytes_.end(), begin, begin + block.bytes().size());
    changed_.notify_all();
  }
  void OnLoss(const BlockLoss& loss) override {
    std::lock_guard lock(mutex_);
    losses_.push_back(loss);
    changed_.notify_all();
  }
  void OnDeviceStuck(uint32_t device, std::string_view why) override {
    std::lock_guard lock(mutex_);
    events_.push_back("stuck " + std::to_string(device));
    why_ = why;
    changed_.notify_all();
  }
  void OnDeviceRecovered(uint32_t device) override {
    std::lock_guard lock(mutex_);
    events_.push_back("recovered " + std::to_string(device));
    changed_.notify_all();
  }

  // Waits for as long as a test may run; CTest's timeout is the judge.
  void WaitForRecords(uint64_t records) {
    Wait([&] { return Records() >= records; });
  }
  void WaitForBytes(size_t bytes) {
    Wait([&] { return bytes_.size() >= bytes; });
  }
  void WaitForLosses(size_t losses) {
    Wait([&] { return losses_.size() >= losses; });
  }
  void WaitForEvents(size_t events) {
    Wait([&] { return events_.size() >= events; });
  }
  // Lets blocks go back to the pool as soon as they were seen, or not.
  void set_keep_blocks(bool keep) {
    std::lock_guard lock(mutex_);
    keep_blocks_ = keep;
    if (!keep) blocks_.clear();
  }

  std::vector<BlockInfo> infos() { return Locked(infos_); }
  std::vector<BlockLoss> losses() { return Locked(losses_); }
  std::vector<std::byte> bytes() { return Locked(bytes_); }
  std::vector<std::string> events() { return Locked(events_); }
  std::string why() { return Locked(why_); }

 private:
  uint64_t Records() const {
    uint64_t records = 0;
    for (const BlockInfo& info : infos_) records += info.records;
    return records;
  }
  void Wait(const std::function<bool()>& until) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, until);
  }
  template <class T>
  T Locked(const T& value) {
    std::lock_guard lock(mutex_);
    return value;
  }

  const bool watched_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool keep_blocks_ = false;
  std::vector<BlockLoss> losses_;
  std::vector<BlockRef> blocks_;
  std::vector<BlockInfo> infos_;
  std::vector<std::byte> bytes_;
  std::vector<std::string> events_;
  std::string why_;
};

}  // namespace profd::testing
