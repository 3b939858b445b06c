// The stand-in of the vendor's library as a test has it, the ring as a daemon has it, and a process with
// the runtime loaded.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/eventually.h"
#include "client/libprofd/mspti/collector.h"
#include "client/libprofd/mspti/mspti_abi.h"
#include "client/libprofd/mspti/fake_mspti.h"

namespace profd::lib::mspti {

// Generous: no test passes or fails by how long something took.
inline constexpr std::chrono::seconds kPatience{60};

// Takes all of a ring, without a daemon's distrust.
class RingView {
 public:
  RingView() = default;
  // Open, and its records so far taken.
  explicit RingView(int fd) {
    Open(fd);
    Take();
  }
  void Open(int fd) {
    struct stat info {};
    ASSERT_EQ(::fstat(fd, &info), 0);
    memory_ = ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ | PROT_WRITE, MAP_SHARED,
                     fd, 0);
    ASSERT_NE(memory_, MAP_FAILED);
  }
  attach::ActivityRing& ring() { return *static_cast<attach::ActivityRing*>(memory_); }

  void Take() {
    if (memory_ == nullptr) return;
    const std::byte* frames = static_cast<std::byte*>(memory_) + attach::kActivityHeaderBytes;
    uint64_t tail = ring().tail;
    const uint64_t head = ring().head.load(std::memory_order_acquire);
    while (tail < head) {
      const std::byte* at = frames + tail % ring().bytes;
      attach::FrameHead frame{};
      std::memcpy(&frame, at, attach::kPadHeadBytes);
      tail += frame.length;
      if (frame.type == 0) continue;
      std::memcpy(&frame, at, sizeof frame);
      TakeFrame(frame, at + sizeof frame);
    }
    ring().tail.store(tail, std::memory_order_release);
  }
  template <class Record>
  struct Taken {
    int64_t start_ns = 0;
    Record record;
  };
  std::vector<Taken<attach::KernelRecord>> kernels;
  std::vector<Taken<attach::ApiRecord>> apis;
  std::vector<Taken<attach::MarkerRecord>> markers;
  std::vector<Taken<attach::LossRecord>> losses;
  std::vector<Taken<attach::ClockRecord>> clocks;
  std::map<uint32_t, std::string> names;

 private:
  template <class Record>
  static void Append(const attach::FrameHead& frame, const std::byte* at,
                     std::vector<Taken<Record>>* to) {
    for (uint16_t i = 0; i < frame.count; ++i, at += sizeof(Record)) {
      Taken<Record> taken;
      std::memcpy(&taken.record, at, sizeof(Record));
      if constexpr (requires { taken.record.start; }) {
        taken.start_ns = frame.base_ns + taken.record.start;
      }
      to->push_back(taken);
    }
  }
  void TakeFrame(const attach::FrameHead& frame, const std::byte* at) {
    using attach::ActivityType;
    switch (static_cast<ActivityType>(frame.type)) {
      case ActivityType::kNames:
        for (uint16_t i = 0; i < frame.count; ++i) {
          attach::NameHead head{};
          std::memcpy(&head, at, sizeof head);
          names[head.id] = {reinterpret_cast<const char*>(at) + sizeof head, head.bytes};
          at += sizeof head + attach::AlignedUp8(head.bytes);
        }
        return;
      case ActivityType::kKernel:
        return Append(frame, at, &kernels);
      case ActivityType::kApi:
        return Append(frame, at, &apis);
      case ActivityType::kMarker:
        return Append(frame, at, &markers);
      case ActivityType::kLoss:
        return Append(frame, at, &losses);
      case ActivityType::kClock:
        return Append(frame, at, &clocks);
      default:
        FAIL() << "frame of type " << frame.type;
    }
  }

  void* memory_ = nullptr;
};

class FakeLibrary {
 public:
  FakeLibrary() = default;
  explicit FakeLibrary(const std::string& home) { Load(home); }
  // Loads it, as nothing but the collector does in a process.
  void Load(const std::string& home) {
    const std::string path = home + "/lib64/libmspti.so";
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NODELETE);
    ASSERT_NE(handle, nullptr) << ::dlerror();
    orders = reinterpret_cast<FakeFunction>(::dlsym(handle, kFakeName))();
    record_ = reinterpret_cast<FakeRecordFunction>(::dlsym(handle, kFakeRecordName));
    join = reinterpret_cast<FakeJoinFunction>(::dlsym(handle, kFakeJoinName));
  }
  void Reset() const {
    orders->~FakeMspti();
    new (orders) FakeMspti{};
  }
  // A kernel of 1 us that begins now.
  void Kernel(uint64_t correlation, const char* name = "MatMul", uint32_t device = 0) {
    const auto start = static_cast<uint64_t>(ReadClock(CLOCK_REALTIME));
    Kernel(correlation, name, device, start, start + 1000);
  }
  void Kernel(uint64_t correlation, const char* name, uint32_t device, uint64_t start, uint64_t end) {
    const KernelRecord record{kKernel, start, end, device, 9, correlation, "KERNEL_AICORE", name};
    const size_t strings[] = {offsetof(KernelRecord, type), offsetof(KernelRecord, name), 0};
    record_(&record, sizeof record, strings);
  }
  void Api(uint64_t correlation) {
    const auto now = static_cast<uint64_t>(ReadClock(CLOCK_REALTIME));
    const ApiRecord record{kAclApi, now, now, 0, 0, correlation, "aclnnMatmul"};
    const size_t strings[] = {offsetof(ApiRecord, name), 0};
    record_(&record, sizeof record, strings);
  }
  void Unknown() {
    const ExternalCorrelationRecord record{kKindCount, 0, 0, 0};
    const size_t none = 0;
    record_(&record, sizeof record, &none);
  }

  FakeMspti* orders = nullptr;
  FakeJoinFunction join = nullptr;

 private:
  FakeRecordFunction record_ = nullptr;
};

}  // namespace profd::lib::mspti
