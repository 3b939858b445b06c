#include "export/trace/process_ids.h"

#include <fmt/format.h>

namespace profd::exporting {
namespace {

constexpr uint32_t kBaseBits = 22;  // of info.pid: Linux has no longer ones
constexpr uint32_t kBaseMask = (1U << kBaseBits) - 1;
constexpr uint32_t kHostLane = 31;
// Devices beyond these groups share the last one's ids: there are no such machines.
constexpr int kMaxGroup = 1024;

int GroupOf(int device) { return device < 0 ? 0 : std::min(device / 31, kMaxGroup); }

uint32_t LowBits(int device, const ProcessSpec& process) {
  auto slot = static_cast<uint32_t>(process.slot);
  // On the host other slots are free than on a device.
  if (device < 0 && process.own && slot < 14) slot += 14;
  uint32_t lane = device < 0 ? kHostLane : static_cast<uint32_t>(device % 31);
  return slot << 5 | lane;
}

}  // namespace

ProcessIds::ProcessIds(const std::vector<const DumpInfo*>& dumps) : dumps_(dumps) {
  for (size_t i = 0; i < dumps.size(); ++i) BaseOf(i, -1);
}

uint32_t ProcessIds::BaseOf(size_t dump, int device) {
  MutexLock lock(mutex_);
  auto [it, added] = bases_.try_emplace({dump, GroupOf(device)});
  if (!added) return it->second;
  uint32_t pid = static_cast<uint32_t>(dumps_[dump]->pid) & kBaseMask;
  if (GroupOf(device) > 0) pid = kBaseMask;
  while (!taken_.insert(pid).second) pid = (pid == 0 ? kBaseMask : pid - 1) & kBaseMask;
  it->second = pid;
  return it->second;
}

uint32_t ProcessIds::Pid(size_t dump, int device, const ProcessSpec& process) {
  return BaseOf(dump, device) << 10 | LowBits(device, process);
}

std::string ProcessIds::Label(size_t dump, int device) const {
  std::string label = device < 0 ? "CPU" : fmt::format("NPU {}", device);
  if (dumps_.size() < 2) return label;
  const DumpInfo& info = *dumps_[dump];
  label += ' ';
  label += info.NodeName();
  if (std::optional<int> rank = info.RankOf(device)) label += fmt::format(" rank {}", *rank);
  return label;
}

}  // namespace profd::exporting
