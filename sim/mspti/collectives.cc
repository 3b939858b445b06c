#include "sim/mspti/collectives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "sim/mspti/buffers.h"
#include "sim/mspti/join.h"
#include "sim/mspti/mspti.h"
#include "sim/mspti/real_time.h"
#include "sim/mspti/vendor.h"

namespace profd::sim::mspti {
namespace {

// Of the stand-in: begin, and one more for the end.
constexpr uint16_t kBeginTag = 30;
constexpr size_t kMostOpen = 65536;
constexpr std::array<std::pair<std::string_view, uint32_t>, 12> kCallbacks = {
    {{"HcclAllReduce", 1}, {"HcclBroadcast", 2}, {"HcclAllGather", 3}, {"HcclReduceScatter", 4},
     {"HcclReduce", 5}, {"HcclAlltoAll", 6}, {"HcclAlltoAllV", 7}, {"HcclBarrier", 8},
     {"HcclScatter", 9}, {"HcclSend", 10}, {"HcclRecv", 11}, {"HcclBatchSendRecv", 12}}};

}  // namespace

uint32_t CollectiveCallback(std::string_view function) {
  const auto* const found = std::ranges::find(kCallbacks, function, [](const auto& known) { return known.first; });
  return found == kCallbacks.end() ? 0 : found->second;
}

Collectives& Collectives::The() {
  static Collectives* const the = new Collectives;
  return *the;
}

uint64_t Collectives::Begin(const acl::Communication& communication, const void* group, void* stream) {
  if (!Join::The().enabled(kHccl) || group == nullptr) return 0;
  const uint64_t mark = next_++;
  {
    MutexLock lock(mutex_);
    if (open_.size() >= kMostOpen) open_.erase(open_.begin());
    open_[mark] = {communication.name, ASCENDCL(simAclGroupName)(group), communication.bytes, 0};
  }
  ASCENDCL(simAclTrace)(mark, kBeginTag, stream);
  return mark;
}

void Collectives::End(uint64_t mark, void* stream) {
  if (mark != 0) ASCENDCL(simAclTrace)(mark, kBeginTag + 1, stream);
}

void Collectives::OnLog(uint32_t device, const acl::LogRecord& record) {
  if (record.tag != kBeginTag && record.tag != kBeginTag + 1) return;
  MutexLock lock(mutex_);
  const auto it = open_.find(record.value);
  if (it == open_.end()) return;
  if (record.tag == kBeginTag) {
    it->second.begin_ns = record.time_ns;
    return;
  }
  const Open done = std::move(it->second);
  open_.erase(it);
  if (done.begin_ns == 0 || !Join::The().enabled(kHccl)) return;
  HcclRecord result{};
  result.kind = kHccl;
  result.start = RealTime::The().FromRaw(done.begin_ns);
  result.end = RealTime::The().FromRaw(record.time_ns);
  result.device = device;
  result.stream = record.stream;
  const int64_t ns = record.time_ns - done.begin_ns;
  if (ns > 0) result.bandwidth = static_cast<double>(done.bytes) / static_cast<double>(ns);  // GB/s
  Buffers::The().Put(result, {{offsetof(HcclRecord, name), done.name}, {offsetof(HcclRecord, group), done.group}});
}

}  // namespace profd::sim::mspti
