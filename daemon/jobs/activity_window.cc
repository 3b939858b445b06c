#include "daemon/jobs/activity_window.h"

#include <algorithm>
#include <cmath>

namespace profd {
namespace {

int64_t SecondOf(int64_t time_ns) { return time_ns / kNsPerSecond; }
int64_t BeginOf(int64_t second) { return second * kNsPerSecond; }

}  // namespace

ActivityWindow::ActivityWindow(int64_t now_ns)
    : now_ns_(now_ns),
      now_second_(SecondOf(now_ns)),
      first_(now_second_ + 1),
      closed_(now_second_ - kLateSeconds),
      half_second_(now_second_),
      half_before_(now_second_) {
  devices_.reserve(kMaxDevices);  // last_device_ stays valid
}

void ActivityWindow::Advance(int64_t now_ns) {
  now_ns_ = std::max(now_ns_, now_ns);
  const int64_t second = SecondOf(now_ns_);
  if (second == now_second_) return;
  for (int64_t s = std::max(now_second_ + 1, second - kSeconds + 1); s <= second; ++s) {
    seconds_[Index(s)] = {};
    for (Device& device : devices_) {
      for (auto& busy : device.busy_ns) busy[Index(s)] = 0;
    }
  }
  now_second_ = second;
  closed_ = second - kLateSeconds;
  for (Device& device : devices_) Close(&device, BeginOf(closed_));
  if (second - half_second_ < kHalfSeconds) return;
  half_ ^= 1;
  half_before_ = half_second_;
  half_second_ = second;
  for (NameTimes& name : names_) name.total_ns[half_] = name.count[half_] = 0;
}

void ActivityWindow::Take(std::span<const ActivityFrame> frames, uint64_t lost) {
  seconds_[Index(now_second_)].lost += lost;
  for (const ActivityFrame& frame : frames) {
    for (const auto& kernel : frame.As<attach::KernelRecord>()) AddKernel(kernel, frame.base_ns);
    for (const auto& record : frame.As<attach::CommunicationRecord>()) {
      const int64_t begin = std::min(frame.base_ns + record.start, now_ns_);
      const auto elapsed = static_cast<uint64_t>(now_ns_ - begin);
      const auto ns = static_cast<int64_t>(std::min(DurationOf(record), elapsed));
      if (Device* device = DeviceOf(record.device)) AddInterval(device, kCommunication, begin, begin + ns);
    }
  }
}

void ActivityWindow::AddKernel(const attach::KernelRecord& record, int64_t base_ns) {
  // What a process reports of the future did not happen.
  const int64_t begin = std::min(base_ns + record.start, now_ns_);
  const uint64_t ns = std::min(DurationOf(record), static_cast<uint64_t>(now_ns_ - begin));
  const int64_t end = begin + static_cast<int64_t>(ns);
  if (record.name >= names_.size()) names_.resize(record.name + size_t{1});
  NameTimes& name = names_[record.name];
  name.total_ns[half_] += ns;
  ++name.count[half_];
  if (Holds(SecondOf(end))) {
    Second& second = seconds_[Index(SecondOf(end))];
    ++second.kernels;
    if (ns > second.longest_ns) {
      second.longest_ns = ns;
      second.longest_name = record.name;
    }
  }
  if (Device* device = DeviceOf(record.device)) AddInterval(device, kComputation, begin, end);
}

void ActivityWindow::AddStep(int64_t end_ns) {
  if (Holds(SecondOf(end_ns))) ++seconds_[Index(SecondOf(end_ns))].steps;
}

ActivityWindow::Device* ActivityWindow::DeviceOf(uint16_t id) {
  if (last_device_ != nullptr && last_device_->id == id) return last_device_;
  for (Device& device : devices_) {
    if (device.id == id) return last_device_ = &device;
  }
  if (id == attach::kNoDevice || devices_.size() == kMaxDevices) return nullptr;
  devices_.emplace_back().id = id;
  return last_device_ = &devices_.back();
}

void ActivityWindow::AddInterval(Device* device, Kind kind, int64_t begin_ns, int64_t end_ns) {
  if (const int64_t open_ns = BeginOf(closed_); begin_ns < open_ns) {
    AddLate(device, kind, {begin_ns, std::min(end_ns, open_ns)});
    begin_ns = open_ns;
  }
  if (begin_ns >= end_ns) return;
  Device::Open& open = device->open[kind];
  if (!open.rest().empty()) {
    Interval& last = open.intervals.back();
    if (begin_ns >= last.begin_ns && begin_ns <= last.end_ns) {
      last.end_ns = std::max(last.end_ns, end_ns);
      return;
    }
    open.sorted = open.sorted && begin_ns > last.begin_ns;
  }
  if (open.rest().size() == kMaxIntervals) {
    for (int64_t gap_ns = 0; open.rest().size() > kMaxIntervals / 2; gap_ns = 2 * gap_ns + 1000) {
      Join(&open, gap_ns);
    }
    open.sorted = begin_ns > open.intervals.back().begin_ns;
  }
  open.intervals.push_back({begin_ns, end_ns});
}

// Before what it overlaps with is forgotten: what is new of it is spread over the rest of the second.
void ActivityWindow::AddLate(Device* device, Kind kind, Interval part) {
  const Kind other = kind == kComputation ? kCommunication : kComputation;
  part.begin_ns = std::max(part.begin_ns, BeginOf(now_second_ - kSeconds + 1));
  for (int64_t s = SecondOf(part.begin_ns); BeginOf(s) < part.end_ns; ++s) {
    const int64_t ns = std::min(part.end_ns, BeginOf(s + 1)) - std::max(part.begin_ns, BeginOf(s));
    int64_t& busy = device->busy_ns[kind][Index(s)];
    int64_t& both = device->busy_ns[kBoth][Index(s)];
    const int64_t free_ns = kNsPerSecond - busy;
    const int64_t added = std::min(ns, free_ns);
    if (added <= 0) continue;
    const int64_t alone = device->busy_ns[other][Index(s)] - both;
    both += std::llround(static_cast<double>(alone) * static_cast<double>(added) / static_cast<double>(free_ns));
    busy += added;
  }
}

void ActivityWindow::AddBusy(Device* device, Kind kind, Interval part) {
  part.begin_ns = std::max(part.begin_ns, BeginOf(now_second_ - kSeconds + 1));
  for (int64_t s = SecondOf(part.begin_ns); BeginOf(s) < part.end_ns; ++s) {
    device->busy_ns[kind][Index(s)] +=
        std::min(part.end_ns, BeginOf(s + 1)) - std::max(part.begin_ns, BeginOf(s));
  }
}

// In order, without overlaps, and without gaps that are not longer than `gap_ns`.
void ActivityWindow::Join(Device::Open* open, int64_t gap_ns) {
  const std::span<Interval> all = open->rest();
  if (all.empty() || (open->sorted && gap_ns == 0)) return;
  if (!open->sorted) {
    std::ranges::sort(all, {}, &Interval::begin_ns);
    open->sorted = true;
  }
  size_t last = 0;
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i].begin_ns <= all[last].end_ns + gap_ns) {
      all[last].end_ns = std::max(all[last].end_ns, all[i].end_ns);
    } else {
      all[++last] = all[i];
    }
  }
  open->intervals.resize(open->first + last + 1);
}

void ActivityWindow::Close(Device* device, int64_t until_ns) {
  for (Device::Open& open : device->open) Join(&open, 0);
  const std::span<const Interval> computation = device->open[kComputation].rest();
  const std::span<const Interval> communication = device->open[kCommunication].rest();
  const auto clipped = [until_ns](const Interval& i) {
    return Interval{i.begin_ns, std::min(i.end_ns, until_ns)};
  };
  for (size_t a = 0, b = 0; a < computation.size() && b < communication.size();) {
    const Interval both{std::max(computation[a].begin_ns, communication[b].begin_ns),
                        std::min(computation[a].end_ns, communication[b].end_ns)};
    if (both.begin_ns >= until_ns) break;
    if (both.begin_ns < both.end_ns) AddBusy(device, kBoth, clipped(both));
    if (computation[a].end_ns < communication[b].end_ns) {
      ++a;
    } else {
      ++b;
    }
  }
  for (Kind kind : {kComputation, kCommunication}) {
    Device::Open& open = device->open[kind];
    for (Interval& interval : open.rest()) {
      if (interval.begin_ns >= until_ns) break;
      AddBusy(device, kind, clipped(interval));
      if (interval.end_ns > until_ns) {
        interval.begin_ns = until_ns;
        break;
      }
      ++open.first;
    }
    if (open.first < open.rest().size()) continue;
    open.intervals.erase(open.intervals.begin(),
                         open.intervals.begin() + static_cast<std::ptrdiff_t>(open.first));
    open.first = 0;
  }
}

ActivityAccount ActivityWindow::Sum(int64_t from, int64_t to) const {
  ActivityAccount sum;
  if (from >= to) return sum;
  sum.begin_ns = BeginOf(from);
  sum.end_ns = BeginOf(to);
  sum.devices = static_cast<uint32_t>(devices_.size());
  std::array<int64_t, 3> busy_ns{};
  for (int64_t s = from; s < to; ++s) {
    const Second& second = seconds_[Index(s)];
    sum.kernels += second.kernels;
    sum.steps += second.steps;
    sum.lost += second.lost;
    if (second.longest_ns > sum.longest_ns) {
      sum.longest_ns = second.longest_ns;
      sum.longest_name = second.longest_name;
    }
    for (const Device& device : devices_) {
      for (size_t kind = 0; kind < busy_ns.size(); ++kind) busy_ns[kind] += device.busy_ns[kind][Index(s)];
    }
  }
  if (devices_.empty()) return sum;
  const double all = static_cast<double>(sum.end_ns - sum.begin_ns) * static_cast<double>(devices_.size());
  sum.computation = static_cast<double>(busy_ns[kComputation]) / all;
  sum.communication = static_cast<double>(busy_ns[kCommunication]) / all;
  sum.not_overlapped = static_cast<double>(busy_ns[kCommunication] - busy_ns[kBoth]) / all;
  sum.free = std::max(0.0, 1 - sum.computation - sum.not_overlapped);
  return sum;
}

ActivityAccount ActivityWindow::Last() const {
  return Sum(std::max(first_, closed_ - kWindowSeconds), closed_);
}

std::vector<ActivityAccount> ActivityWindow::SecondsFrom(int64_t begin_ns) const {
  std::vector<ActivityAccount> all;
  int64_t from = std::max(first_, closed_ - kWindowSeconds);
  while (from < closed_ && BeginOf(from) < begin_ns) ++from;
  for (; from < closed_; ++from) all.push_back(Sum(from, from + 1));
  return all;
}

size_t ActivityWindow::memory_bytes() const {
  size_t bytes = names_.capacity() * sizeof(NameTimes);
  for (const Device& device : devices_) {
    for (const Device::Open& open : device.open) bytes += open.intervals.capacity() * sizeof(Interval);
  }
  return bytes;
}

ActivityWindow::Hottest ActivityWindow::HottestKernels(size_t most) const {
  Hottest hottest;
  hottest.span_ns = static_cast<uint64_t>(std::max<int64_t>(now_ns_ - BeginOf(half_before_), 0));
  for (uint32_t id = 0; id < names_.size(); ++id) {
    const NameTimes& name = names_[id];
    const uint64_t total = name.total_ns[0] + name.total_ns[1];
    const uint64_t count = name.count[0] + name.count[1];
    hottest.total_ns += total;
    if (count > 0) hottest.kernels.push_back({id, total, count});
  }
  const auto end = hottest.kernels.begin() +
                   static_cast<std::ptrdiff_t>(std::min(most, hottest.kernels.size()));
  std::partial_sort(hottest.kernels.begin(), end, hottest.kernels.end(),
                    [](const HotKernel& a, const HotKernel& b) {
                      return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.name < b.name;
                    });
  hottest.kernels.erase(end, hottest.kernels.end());
  return hottest;
}

}  // namespace profd
