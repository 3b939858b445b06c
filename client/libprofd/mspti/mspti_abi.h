// The vendor's MSPTI interface as far as profd uses it: results, kinds, functions and the
// layout of each record. libmspti.so is opened at run time, so only types and numbers are here;
// every fact is from the vendor's public headers (mspti_activity.h, mspti_callback.h,
// mspti_result.h).
//
// Records are packed and aligned to 8: fields lie at odd offsets, sizes are rounded up to 8. They may be at any address:
// Read() copies one. All times are CLOCK_REALTIME nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace profd::lib::mspti {

inline constexpr char kLibrary[] = "libmspti.so";

enum Result : int {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMultipleSubscribers = 2,
  kQueueEmpty = 5,
  kWithoutLdPreload = 6,  // since 2026-03-02, of MEMORY, MEMSET, MEMCPY and HCCL unless LD_PRELOAD has "libmspti.so"
  kInner = 999,
};

// int-sized in the vendor's functions; a uint32_t at the beginning of each record.
enum Kind : uint32_t {
  kInvalid = 0,
  kMarker = 1,
  kKernel = 2,
  kApi = 3,
  kHccl = 4,
  kMemory = 5,
  kMemset = 6,
  kMemcpy = 7,
  kExternalCorrelation = 8,
  kCommunication = 9,
  kAclApi = 10,  // 10 to 12 since 2026-02-09
  kNodeApi = 11,
  kRuntimeApi = 12,
  kKindCount = 13,
};

inline constexpr uint32_t kSourceDevice = 1;  // of a marker; 0: the host
inline constexpr uint32_t kRelease = 1;       // of an operation on memory; 0: allocation
inline constexpr uint32_t kInvalidDataType = 0xFFFF;
inline constexpr uint32_t kInvalidDevice = 0xFFFFFFFF;

// Memory given to the request callback: aligned to 8; what is smaller than this the vendor's
// library warns about.
inline constexpr size_t kBufferAlignment = 8;
inline constexpr size_t kLeastBuffer = 2u << 20;

using Text = const char*;  // of the vendor's library
#define PROFD_MSPTI_RECORD struct __attribute__((packed, aligned(8)))

PROFD_MSPTI_RECORD MarkerRecord {
  uint32_t kind, flag, source;
  uint64_t timestamp, id;
  uint32_t process_or_device, thread_or_stream;  // by `source`
  Text name, domain;
};

PROFD_MSPTI_RECORD KernelRecord {
  uint32_t kind;
  uint64_t start, end;
  uint32_t device, stream;
  uint64_t correlation;
  Text type, name;
};

// kApi, kAclApi, kNodeApi, kRuntimeApi.
PROFD_MSPTI_RECORD ApiRecord {
  uint32_t kind;
  uint64_t start, end;
  uint32_t process, thread;
  uint64_t correlation;
  Text name;
};

PROFD_MSPTI_RECORD HcclRecord {
  uint32_t kind;
  uint64_t start, end;
  uint32_t device, stream;
  double bandwidth;
  Text name, communicator;
};

PROFD_MSPTI_RECORD MemoryRecord {
  uint32_t kind, operation, memory_kind;
  uint64_t correlation, start, end, address, bytes;
  uint32_t process, device, stream;
};

PROFD_MSPTI_RECORD MemsetRecord {
  uint32_t kind, value;
  uint64_t bytes, start, end;
  uint32_t device, stream;
  uint64_t correlation;
  uint8_t is_async;
};

PROFD_MSPTI_RECORD MemcpyRecord {
  uint32_t kind, copy_kind;
  uint64_t bytes, start, end;
  uint32_t device, stream;
  uint64_t correlation;
  uint8_t is_async;
};

PROFD_MSPTI_RECORD ExternalCorrelationRecord {
  uint32_t kind, external_kind;
  uint64_t external_id, correlation;
};

PROFD_MSPTI_RECORD CommunicationRecord {
  uint32_t kind, data_type;
  uint64_t count;
  uint32_t device, stream;
  uint64_t start, end;
  Text algorithm, name, communicator;
  uint64_t correlation;
};
#undef PROFD_MSPTI_RECORD

// The caller has seen that all its bytes are there.
template <class T>
T Read(const uint8_t* record) {
  T value;
  std::memcpy(&value, record, sizeof value);
  return value;
}

// Bytes of a record of this kind; 0 = unknown here: what follows it in the buffer cannot be found.
constexpr size_t RecordSize(uint32_t kind) {
  constexpr std::array<size_t, kKindCount> kSizes = {
      0,
      sizeof(MarkerRecord),
      sizeof(KernelRecord),
      sizeof(ApiRecord),
      sizeof(HcclRecord),
      sizeof(MemoryRecord),
      sizeof(MemsetRecord),
      sizeof(MemcpyRecord),
      sizeof(ExternalCorrelationRecord),
      sizeof(CommunicationRecord),
      sizeof(ApiRecord),
      sizeof(ApiRecord),
      sizeof(ApiRecord),
  };
  return kind < kKindCount ? kSizes[kind] : 0;
}

// Functions of libmspti.so; each may be missing, and each may throw although it is extern "C".
// There is no version function: the presence of IsEnabled means 2026-05-28 or later.
struct Subscriber;  // opaque
using RequestFunction = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using CompleteFunction = void (*)(uint8_t* buffer, size_t size, size_t valid_size);
using CallbackFunction = void (*)(void* user_data, int domain, uint32_t id, const void* data);

using SubscribeFunction = int (*)(Subscriber** subscriber, CallbackFunction callback,
                                  void* user_data);
using UnsubscribeFunction = int (*)(Subscriber* subscriber);
using RegisterCallbacksFunction = int (*)(RequestFunction request, CompleteFunction complete);
using KindFunction = int (*)(Kind kind);  // Enable, Disable
using IsEnabledFunction = bool (*)(Kind kind);
using FlushAllFunction = int (*)(uint32_t ignored);

}  // namespace profd::lib::mspti
