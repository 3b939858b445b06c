// A client of libmspti.so as a test drives it: buffers, records by kind, and a device to work on.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/testing/temp_dir.h"
#include "sim/ascendcl/ascendcl.h"
#include "sim/child_test_support.h"
#include "sim/mspti/mspti.h"

namespace profd::sim::mspti {

inline const Library& Acl() {
  static const Library* const library = new Library(PROFD_SIM_ASCENDCL);
  return *library;
}
inline const char*& MsptiPath() {
  static const char* path = PROFD_SIM_MSPTI;
  return path;
}
// Loaded with the first call, after the settings.
inline const Library& Mspti() {
  static const Library* const library = [] {
    Acl();
    const std::string folder = PROFD_SIM_ASCENDCL;
    ::setenv("ASCEND_HOME_PATH", folder.substr(0, folder.rfind('/')).c_str(), 1);
    return new Library(MsptiPath());
  }();
  return *library;
}
inline void Settings(const std::string& settings) {
  ::setenv("PROFD_SIM_APP", settings.c_str(), 1);
}
inline void OldLibrary(const std::string& profile) {
  MsptiPath() = PROFD_SIM_MSPTI_OLD_FILE;
  Settings("mspti.profile=" + profile);
}
inline void PretendPreload() { ::setenv("LD_PRELOAD", "/somewhere/libmspti.so", 1); }

// A record, its strings read.
struct Record {
  uint32_t kind = 0;
  std::vector<uint8_t> bytes;
  std::map<size_t, std::string> texts;  // by offset
  template <class T>
  T Get(size_t offset) const {
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
};

class Client {
 public:
  static Client& The() {
    static Client* const the = new Client;
    return *the;
  }

  // Subscribes, registers, enables.
  void Begin(const std::vector<uint32_t>& kinds) {
    EXPECT_EQ(CALL(Mspti(), msptiSubscribe)(&subscriber, nullptr, nullptr), kOk);
    EXPECT_EQ(CALL(Mspti(), msptiActivityRegisterCallbacks)(&OnRequest, &OnComplete), kOk);
    for (const uint32_t kind : kinds) {
      EXPECT_EQ(CALL(Mspti(), msptiActivityEnable)(kind), kOk) << kind;
    }
  }
  void Flush() { EXPECT_EQ(CALL(Mspti(), msptiActivityFlushAll)(1), kOk); }
  // Reads what the device has.
  int Unsubscribe() { return CALL(Mspti(), msptiUnsubscribe)(subscriber); }
  void End() {
    EXPECT_EQ(Unsubscribe(), kOk);
    Flush();
  }

  // All so far of a kind, after flushing until there are as many.
  std::vector<Record> Wait(uint32_t kind, size_t least) {
    EXPECT_TRUE(Eventually([&] {
      Flush();
      return Have(kind).size() >= least;
    })) << "kind "
        << kind << ": " << Have(kind).size();
    return Have(kind);
  }
  std::vector<Record> Have(uint32_t kind) {
    MutexLock lock(mutex);
    std::vector<Record> found;
    for (const Record& record : records) {
      if (record.kind == kind) found.push_back(record);
    }
    return found;
  }

  size_t Requests() {
    MutexLock lock(mutex);
    return requests;
  }
  std::vector<std::thread::id> CompletedOn() {
    MutexLock lock(mutex);
    return completed_on;
  }

  Subscriber* subscriber = nullptr;
  size_t buffer_size = 1 << 20;
  size_t misalignment = 0;  // of the buffers handed out
  std::atomic<bool> decline{false};
  std::function<void()> in_request, in_complete;
  Mutex mutex;
  std::vector<Record> records GUARDED_BY(mutex);
  std::vector<std::thread::id> completed_on GUARDED_BY(mutex);
  size_t requests GUARDED_BY(mutex) = 0;
  size_t empty_completes GUARDED_BY(mutex) = 0;
  size_t unknown_bytes GUARDED_BY(mutex) = 0;

 private:
  static void OnRequest(uint8_t** buffer, size_t* size, size_t* max_records) {
    Client& the = The();
    if (the.in_request) the.in_request();
    {
      MutexLock lock(the.mutex);
      ++the.requests;
    }
    *max_records = 0;
    *size = the.decline ? 0 : the.buffer_size;
    *buffer = the.decline ? nullptr : new uint8_t[the.buffer_size + 16] + the.misalignment;
  }
  static void OnComplete(uint8_t* buffer, size_t, size_t valid) {
    Client& the = The();
    if (the.in_complete) the.in_complete();
    MutexLock lock(the.mutex);
    the.completed_on.push_back(std::this_thread::get_id());
    if (buffer == nullptr) {
      ++the.empty_completes;
      return;
    }
    the.Walk({buffer, buffer + valid});
    delete[](buffer - the.misalignment);
  }

  struct Layout {
    size_t size;
    std::vector<size_t> texts;
  };
  static const Layout* LayoutOf(uint32_t kind) {
    static const std::map<uint32_t, Layout> layouts = {{kMarker, {56, {36, 44}}},
                                                       {kKernel, {56, {36, 44}}},
                                                       {kApi, {48, {36}}},
                                                       {kHccl, {56, {36, 44}}},
                                                       {kMemory, {64, {}}},
                                                       {kMemset, {56, {}}},
                                                       {kMemcpy, {56, {}}},
                                                       {kExternalCorrelation, {24, {}}},
                                                       {kCommunication, {72, {40, 48, 56}}},
                                                       {kAclApi, {48, {36}}},
                                                       {kNodeApi, {48, {36}}},
                                                       {kRuntimeApi, {48, {36}}}};
    const auto it = layouts.find(kind);
    return it == layouts.end() ? nullptr : &it->second;
  }
  void Walk(std::vector<uint8_t> bytes) REQUIRES(mutex) {
    for (size_t at = 0; at < bytes.size();) {
      Record record;
      std::memcpy(&record.kind, bytes.data() + at, 4);
      const Layout* const layout = LayoutOf(record.kind);
      if (layout == nullptr || at + layout->size > bytes.size()) {
        unknown_bytes += bytes.size() - at;
        return;
      }
      record.bytes.assign(bytes.begin() + static_cast<ptrdiff_t>(at),
                          bytes.begin() + static_cast<ptrdiff_t>(at + layout->size));
      for (const size_t offset : layout->texts) {
        record.texts[offset] = record.Get<const char*>(offset);
      }
      records.push_back(std::move(record));
      at += layout->size;
    }
  }
};

inline void BeginOn(int32_t device, const std::vector<uint32_t>& kinds) {
  CALL(Acl(), aclrtSetDevice)(device);
  Client::The().Begin(kinds);
}
inline void* NewStream() {
  void* stream = nullptr;
  CALL(Acl(), aclrtCreateStream)(&stream);
  return stream;
}
inline void Launch(const char* name, void* stream = nullptr, int64_t duration_ns = 20'000) {
  acl::Kernel kernel{name, "MatMulV2"};
  kernel.function = "aclnnMatmul";
  kernel.duration_ns = duration_ns;
  EXPECT_EQ(CALL(Acl(), simAclLaunch)(&kernel, stream), 0);
}
// That this process alone communicates in.
inline void* GroupOfOne() {
  const TempDir folder;
  return CALL(Acl(), simAclGroup)("dp_0", (folder / "group").c_str(), 1, 0);
}
inline int64_t Int(uint64_t value) { return static_cast<int64_t>(value); }
inline void Synchronize() { EXPECT_EQ(CALL(Acl(), aclrtSynchronizeDevice)(), 0); }
inline Counts ReadCounts() {
  Counts counts;
  CALL(Mspti(), simMsptiCounts)(&counts);
  return counts;
}
inline void Control(const char* settings) { CALL(Mspti(), simMsptiControl)(settings); }

}  // namespace profd::sim::mspti
