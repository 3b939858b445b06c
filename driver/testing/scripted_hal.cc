#include "driver/testing/scripted_hal.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace profd::testing {
namespace {

// The C functions find the test's object here; leaves with it.
std::mutex g_mutex;
ScriptedHal* g_current = nullptr;

// A poll without news: short, so that tests do not wait for it.
constexpr auto kPollWait = std::chrono::milliseconds(20);

}  // namespace

struct ScriptedHal::Entry {
  Entry() {
    std::lock_guard lock(g_mutex);
    hal = g_current;
    if (hal == nullptr) return;
    std::lock_guard inner(hal->mutex_);
    ++hal->inside_;
  }
  ~Entry() {
    if (hal == nullptr) return;
    std::lock_guard inner(hal->mutex_);
    --hal->inside_;
    hal->changed_.notify_all();
  }
  ScriptedHal* hal;
};

ScriptedHal::ScriptedHal() {
  std::lock_guard lock(g_mutex);
  g_current = this;
}

ScriptedHal::~ScriptedHal() {
  {
    std::lock_guard lock(g_mutex);
    g_current = nullptr;
  }
  std::unique_lock lock(mutex_);
  leaving_ = true;
  holds_.clear();
  changed_.notify_all();
  changed_.wait(lock, [this] { return inside_ == 0; });
}

HalSymbols ScriptedHal::Symbols() {
  HalSymbols symbols;
  symbols.prof_drv_start = &Start;
  symbols.prof_stop = &Stop;
  symbols.prof_channel_read = &Read;
  symbols.prof_channel_poll = &Poll;
  symbols.hal_prof_data_flush = &Flush;
  symbols.hal_get_device_info = &GetInfo;
  symbols.drv_device_status = &GetStatus;
  return symbols;
}

void ScriptedHal::PutData(Key key, Bytes bytes) {
  Channel& channel = channels_[key];
  channel.reads.emplace_back(0, std::move(bytes));
  channel.reported = false;
  changed_.notify_all();
}

void ScriptedHal::Data(uint32_t device, uint32_t channel, Bytes bytes) {
  std::lock_guard lock(mutex_);
  PutData({device, channel}, std::move(bytes));
}

void ScriptedHal::ReadCode(uint32_t device, uint32_t channel, int code) {
  std::lock_guard lock(mutex_);
  channels_[{device, channel}].reads.emplace_back(code, Bytes());
  channels_[{device, channel}].reported = false;
  changed_.notify_all();
}

void ScriptedHal::PollCodes(std::vector<int> codes) {
  std::lock_guard lock(mutex_);
  poll_codes_.insert(poll_codes_.end(), codes.begin(), codes.end());
  changed_.notify_all();
}

void ScriptedHal::Phantom(uint32_t device, uint32_t channel) {
  std::lock_guard lock(mutex_);
  phantoms_.insert({device, channel});
  changed_.notify_all();
}

void ScriptedHal::Hold(Call call, int device) {
  std::lock_guard lock(mutex_);
  holds_.insert({call, device});
  changed_.notify_all();
}

void ScriptedHal::Release(Call call, int device) {
  std::lock_guard lock(mutex_);
  holds_.erase({call, device});
  changed_.notify_all();
}

void ScriptedHal::WaitUntilHeld(int count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return held_ >= count; });
}

void ScriptedHal::HoldIfAsked(std::unique_lock<std::mutex>& lock, Call call, uint32_t device) {
  auto asked = [&] {
    return holds_.count({call, -1}) != 0 || holds_.count({call, static_cast<int>(device)}) != 0;
  };
  if (!asked()) return;
  ++held_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !asked(); });
  --held_;
  changed_.notify_all();
}

int ScriptedHal::Start(unsigned device, unsigned channel, abi::ProfStartPara* para) {
  Entry entry;
  if (entry.hal == nullptr) return -1;
  std::unique_lock lock(entry.hal->mutex_);
  std::string user_data;
  const auto* bytes = static_cast<const unsigned char*>(para->user_data);
  for (uint32_t i = 0; i < para->user_data_size; ++i) user_data += fmt::format("{:02x}", bytes[i]);
  entry.hal->log_.push_back(fmt::format("start {}/{} type {} period {} real {} data {}", device,
                                        channel, para->channel_type, para->sample_period,
                                        para->real_time, user_data));
  entry.hal->HoldIfAsked(lock, Call::kStart, device);
  return entry.hal->codes_[Call::kStart];
}

int ScriptedHal::Stop(unsigned device, unsigned channel) {
  Entry entry;
  if (entry.hal == nullptr) return -1;
  std::unique_lock lock(entry.hal->mutex_);
  entry.hal->log_.push_back(fmt::format("stop {}/{}", device, channel));
  entry.hal->HoldIfAsked(lock, Call::kStop, device);
  if (entry.hal->forgets_at_stop_) entry.hal->channels_[{device, channel}].reads.clear();
  auto last = entry.hal->on_stop_.find({device, channel});
  if (last != entry.hal->on_stop_.end()) entry.hal->PutData({device, channel}, last->second);
  return entry.hal->codes_[Call::kStop];
}

int ScriptedHal::Flush(unsigned device, unsigned channel, unsigned* length) {
  Entry entry;
  if (entry.hal == nullptr) return -1;
  std::unique_lock lock(entry.hal->mutex_);
  entry.hal->log_.push_back(fmt::format("flush {}/{}", device, channel));
  entry.hal->HoldIfAsked(lock, Call::kFlush, device);
  auto last = entry.hal->on_flush_.find({device, channel});
  if (last != entry.hal->on_flush_.end()) {
    *length = static_cast<unsigned>(last->second.size());
    entry.hal->PutData({device, channel}, last->second);
  }
  return entry.hal->codes_[Call::kFlush];
}

int ScriptedHal::Read(unsigned device, unsigned channel, char* buffer, unsigned size) {
  Entry entry;
  if (entry.hal == nullptr) return -1;
  std::unique_lock lock(entry.hal->mutex_);
  entry.hal->HoldIfAsked(lock, Call::kRead, device);
  ++entry.hal->read_calls_;
  auto& reads = entry.hal->channels_[{device, channel}].reads;
  if (reads.empty()) return entry.hal->empty_code_;
  auto& [code, bytes] = reads.front();
  if (code != 0) {
    int answer = code;
    reads.pop_front();
    return answer;
  }
  if (entry.hal->uncut_.has_value() && size < bytes.size()) return *entry.hal->uncut_;
  size_t count = std::min<size_t>(size, bytes.size());
  std::memcpy(buffer, bytes.data(), count);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
  if (bytes.empty()) reads.pop_front();
  return static_cast<int>(count);
}

int ScriptedHal::CollectReady(abi::ProfPollInfo* out, int num) {
  int count = 0;
  for (const Key& key : phantoms_) {
    if (count < num) out[count++] = {key.first, key.second};
  }
  for (auto& [key, channel] : channels_) {
    if (count >= num) break;
    if (channel.reads.empty() || (edge_triggered_ && channel.reported)) continue;
    channel.reported = true;
    out[count++] = {key.first, key.second};
  }
  return count;
}

int ScriptedHal::Poll(abi::ProfPollInfo* out, int num, int timeout) {
  static_cast<void>(timeout);
  Entry entry;
  if (entry.hal == nullptr) return -1;
  std::unique_lock lock(entry.hal->mutex_);
  entry.hal->HoldIfAsked(lock, Call::kPoll, 0);
  if (!entry.hal->poll_codes_.empty()) {
    int code = entry.hal->poll_codes_.front();
    entry.hal->poll_codes_.pop_front();
    return code;
  }
  int ready = entry.hal->CollectReady(out, num);
  if (ready > 0) return ready;
  entry.hal->changed_.wait_for(lock, kPollWait);
  return entry.hal->leaving_ ? 0 : entry.hal->CollectReady(out, num);
}

int ScriptedHal::GetInfo(uint32_t device, int32_t module, int32_t info, int64_t* value) {
  Entry entry;
  if (entry.hal == nullptr) return -1;
  std::unique_lock lock(entry.hal->mutex_);
  entry.hal->HoldIfAsked(lock, Call::kInfo, device);
  auto found = entry.hal->infos_.find({module, info});
  if (found == entry.hal->infos_.end()) return abi::kDrvErrorNotSupport;
  *value = found->second.second;
  return found->second.first;
}

int ScriptedHal::GetStatus(uint32_t device, int* status) {
  Entry entry;
  if (entry.hal == nullptr) return -1;
  std::unique_lock lock(entry.hal->mutex_);
  ++entry.hal->status_calls_;
  entry.hal->HoldIfAsked(lock, Call::kStatus, device);
  *status = abi::kDrvStatusWork;
  return entry.hal->codes_[Call::kStatus];
}

}  // namespace profd::testing
