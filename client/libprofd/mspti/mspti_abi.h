// The vendor's MSPTI interface as far as profd uses it: results, kinds, functions and where the
// fields of each record lie. libmspti.so is opened at run time, so only types and numbers are here;
// every fact is from the vendor's public headers (mspti_activity.h, mspti_callback.h,
// mspti_result.h).
//
// The vendor's structs are packed and aligned to 8: fields lie at odd offsets, sizes are rounded up
// to 8. And a client may be given records of a version that is newer than these lines. Hence no
// structs here: a field is read by its offset with memcpy, from any address. All times are
// CLOCK_REALTIME nanoseconds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace profd::lib::mspti {

inline constexpr char kLibrary[] = "libmspti.so";
// MEMORY, MEMSET, MEMCPY and HCCL are refused (kWithoutLdPreload) unless LD_PRELOAD has this text.
inline constexpr char kPreloadText[] = "libmspti.so";

enum Result : int {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMultipleSubscribers = 2,
  kMaxLimitReached = 3,  // the end of a buffer
  kDeviceOffline = 4,
  kQueueEmpty = 5,
  kWithoutLdPreload = 6,  // since 2026-03-02
  kInner = 999,
  kResultForceInt = 0x7fffffff,
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

enum SourceKind : uint32_t { kSourceHost = 0, kSourceDevice = 1 };

enum MarkerFlag : uint32_t {
  kMarkerNone = 0,
  kMarkerInstant = 1,
  kMarkerStart = 2,
  kMarkerEnd = 4,
  kMarkerInstantWithDevice = 8,
  kMarkerStartWithDevice = 16,
  kMarkerEndWithDevice = 32,
};

enum ExternalKind : uint32_t {
  kExternalInvalid = 0,
  kExternalUnknown = 1,
  kExternalCustom0 = 2,
  kExternalCustom1 = 3,
  kExternalCustom2 = 4,
};

enum MemoryOperation : uint32_t { kAllocation = 0, kRelease = 1 };
enum MemoryKind : uint32_t { kMemoryUnknown = 0, kMemoryDevice = 1 };
enum CopyKind : uint32_t {
  kCopyUnknown = 0,
  kCopyHostToHost = 1,
  kCopyHostToDevice = 2,
  kCopyDeviceToHost = 3,
  kCopyDeviceToDevice = 4,
  kCopyDefault = 5,
};

enum DataType : uint32_t {
  kInt8 = 0,
  kInt16 = 1,
  kInt32 = 2,
  kFp16 = 3,
  kFp32 = 4,
  kInt64 = 5,
  kUint64 = 6,
  kUint8 = 7,
  kUint16 = 8,
  kUint32 = 9,
  kFp64 = 10,
  kBfp16 = 11,
  kInt128 = 12,
  kHif8 = 14,
  kFp8E4m3 = 15,
  kFp8E5m2 = 16,
  kFp8E8m0 = 17,
  kInvalidDataType = 0xFFFF,
};

inline constexpr uint32_t kInvalidDevice = 0xFFFFFFFF;
inline constexpr uint32_t kInvalidStream = 0xFFFFFFFF;
inline constexpr uint64_t kInvalidCorrelation = 0;

// Memory given to the request callback: aligned to 8; what is smaller than this the vendor's
// library warns about.
inline constexpr size_t kBufferAlignment = 8;
inline constexpr size_t kLeastBuffer = 2u << 20;

// A field of a record: a number, or a pointer to a string of the vendor's library.
template <class T>
struct Field {
  static_assert(std::is_trivially_copyable_v<T>);
  size_t offset;

  constexpr size_t end() const { return offset + sizeof(T); }
  // `record` may be at any address; the caller has seen that end() bytes are there.
  T Read(const void* record) const {
    T value;
    std::memcpy(&value, static_cast<const unsigned char*>(record) + offset, sizeof(T));
    return value;
  }
};
using Text = const char*;

inline constexpr Field<uint32_t> kKindField{0};

struct MarkerRecord {
  static constexpr size_t kSize = 56;
  static constexpr Field<uint32_t> kFlag{4};
  static constexpr Field<uint32_t> kSource{8};  // decides which two of the four ids below are there
  static constexpr Field<uint64_t> kTimestamp{12};
  static constexpr Field<uint64_t> kId{20};
  static constexpr Field<uint32_t> kProcess{28};  // kSourceHost
  static constexpr Field<uint32_t> kThread{32};
  static constexpr Field<uint32_t> kDevice{28};  // kSourceDevice
  static constexpr Field<uint32_t> kStream{32};
  static constexpr Field<Text> kName{36};
  static constexpr Field<Text> kDomain{44};
};

struct KernelRecord {
  static constexpr size_t kSize = 56;
  static constexpr Field<uint64_t> kStart{4};
  static constexpr Field<uint64_t> kEnd{12};
  static constexpr Field<uint32_t> kDevice{20};
  static constexpr Field<uint32_t> kStream{24};
  static constexpr Field<uint64_t> kCorrelation{28};
  static constexpr Field<Text> kType{36};
  static constexpr Field<Text> kName{44};
};

// kApi, kAclApi, kNodeApi, kRuntimeApi.
struct ApiRecord {
  static constexpr size_t kSize = 48;
  static constexpr Field<uint64_t> kStart{4};
  static constexpr Field<uint64_t> kEnd{12};
  static constexpr Field<uint32_t> kProcess{20};
  static constexpr Field<uint32_t> kThread{24};
  static constexpr Field<uint64_t> kCorrelation{28};
  static constexpr Field<Text> kName{36};
};

struct HcclRecord {
  static constexpr size_t kSize = 56;
  static constexpr Field<uint64_t> kStart{4};
  static constexpr Field<uint64_t> kEnd{12};
  static constexpr Field<uint32_t> kDevice{20};
  static constexpr Field<uint32_t> kStream{24};
  static constexpr Field<double> kBandwidth{28};
  static constexpr Field<Text> kName{36};
  static constexpr Field<Text> kCommunicator{44};
};

struct MemoryRecord {
  static constexpr size_t kSize = 64;
  static constexpr Field<uint32_t> kOperation{4};
  static constexpr Field<uint32_t> kMemoryKind{8};
  static constexpr Field<uint64_t> kCorrelation{12};
  static constexpr Field<uint64_t> kStart{20};
  static constexpr Field<uint64_t> kEnd{28};
  static constexpr Field<uint64_t> kAddress{36};
  static constexpr Field<uint64_t> kBytes{44};
  static constexpr Field<uint32_t> kProcess{52};
  static constexpr Field<uint32_t> kDevice{56};
  static constexpr Field<uint32_t> kStream{60};
};

struct MemsetRecord {
  static constexpr size_t kSize = 56;
  static constexpr Field<uint32_t> kValue{4};
  static constexpr Field<uint64_t> kBytes{8};
  static constexpr Field<uint64_t> kStart{16};
  static constexpr Field<uint64_t> kEnd{24};
  static constexpr Field<uint32_t> kDevice{32};
  static constexpr Field<uint32_t> kStream{36};
  static constexpr Field<uint64_t> kCorrelation{40};
  static constexpr Field<uint8_t> kIsAsync{48};
};

struct MemcpyRecord {
  static constexpr size_t kSize = 56;
  static constexpr Field<uint32_t> kCopyKind{4};
  static constexpr Field<uint64_t> kBytes{8};
  static constexpr Field<uint64_t> kStart{16};
  static constexpr Field<uint64_t> kEnd{24};
  static constexpr Field<uint32_t> kDevice{32};
  static constexpr Field<uint32_t> kStream{36};
  static constexpr Field<uint64_t> kCorrelation{40};
  static constexpr Field<uint8_t> kIsAsync{48};
};

struct ExternalCorrelationRecord {
  static constexpr size_t kSize = 24;
  static constexpr Field<uint32_t> kExternalKind{4};
  static constexpr Field<uint64_t> kExternalId{8};
  static constexpr Field<uint64_t> kCorrelation{16};
};

struct CommunicationRecord {
  static constexpr size_t kSize = 72;
  static constexpr Field<uint32_t> kDataType{4};
  static constexpr Field<uint64_t> kCount{8};
  static constexpr Field<uint32_t> kDevice{16};
  static constexpr Field<uint32_t> kStream{20};
  static constexpr Field<uint64_t> kStart{24};
  static constexpr Field<uint64_t> kEnd{32};
  static constexpr Field<Text> kAlgorithm{40};
  static constexpr Field<Text> kName{48};
  static constexpr Field<Text> kCommunicator{56};
  static constexpr Field<uint64_t> kCorrelation{64};
};

// Bytes of a record of this kind; 0 = unknown here: what follows it in the buffer cannot be found.
constexpr size_t RecordSize(uint32_t kind) {
  constexpr std::array<size_t, kKindCount> kSizes = {
      0,
      MarkerRecord::kSize,
      KernelRecord::kSize,
      ApiRecord::kSize,
      HcclRecord::kSize,
      MemoryRecord::kSize,
      MemsetRecord::kSize,
      MemcpyRecord::kSize,
      ExternalCorrelationRecord::kSize,
      CommunicationRecord::kSize,
      ApiRecord::kSize,
      ApiRecord::kSize,
      ApiRecord::kSize,
  };
  return kind < kKindCount ? kSizes[kind] : 0;
}

// The fields in order: no gap between two, and the last one's end, rounded up to 8, is the size.
template <class... Fields>
constexpr bool IsPacked(size_t size, Fields... fields) {
  size_t end = kKindField.end();
  bool adjoining = true;
  ((adjoining = adjoining && fields.offset == end, end = fields.end()), ...);
  return adjoining && (end + 7) / 8 * 8 == size;
}
#define PROFD_MSPTI_IS_PACKED(record, ...)  \
  static_assert([] {                        \
    using R = record;                       \
    return IsPacked(R::kSize, __VA_ARGS__); \
  }())
PROFD_MSPTI_IS_PACKED(MarkerRecord, R::kFlag, R::kSource, R::kTimestamp, R::kId, R::kProcess,
                      R::kThread, R::kName, R::kDomain);
PROFD_MSPTI_IS_PACKED(KernelRecord, R::kStart, R::kEnd, R::kDevice, R::kStream, R::kCorrelation,
                      R::kType, R::kName);
PROFD_MSPTI_IS_PACKED(ApiRecord, R::kStart, R::kEnd, R::kProcess, R::kThread, R::kCorrelation,
                      R::kName);
PROFD_MSPTI_IS_PACKED(HcclRecord, R::kStart, R::kEnd, R::kDevice, R::kStream, R::kBandwidth,
                      R::kName, R::kCommunicator);
PROFD_MSPTI_IS_PACKED(MemoryRecord, R::kOperation, R::kMemoryKind, R::kCorrelation, R::kStart,
                      R::kEnd, R::kAddress, R::kBytes, R::kProcess, R::kDevice, R::kStream);
PROFD_MSPTI_IS_PACKED(MemsetRecord, R::kValue, R::kBytes, R::kStart, R::kEnd, R::kDevice,
                      R::kStream, R::kCorrelation, R::kIsAsync);
PROFD_MSPTI_IS_PACKED(MemcpyRecord, R::kCopyKind, R::kBytes, R::kStart, R::kEnd, R::kDevice,
                      R::kStream, R::kCorrelation, R::kIsAsync);
PROFD_MSPTI_IS_PACKED(ExternalCorrelationRecord, R::kExternalKind, R::kExternalId, R::kCorrelation);
PROFD_MSPTI_IS_PACKED(CommunicationRecord, R::kDataType, R::kCount, R::kDevice, R::kStream,
                      R::kStart, R::kEnd, R::kAlgorithm, R::kName, R::kCommunicator,
                      R::kCorrelation);
#undef PROFD_MSPTI_IS_PACKED

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
using MarkerDomainFunction =
    int (*)(const char* domain);  // EnableMarkerDomain, DisableMarkerDomain
using FlushAllFunction = int (*)(uint32_t ignored);
using FlushPeriodFunction = int (*)(uint32_t milliseconds);
using PushExternalFunction = int (*)(ExternalKind kind, uint64_t id);
using PopExternalFunction = int (*)(ExternalKind kind,
                                    uint64_t* last_id);  // NULL is kInvalidParameter

inline constexpr char kSubscribeName[] = "msptiSubscribe";
inline constexpr char kUnsubscribeName[] = "msptiUnsubscribe";
inline constexpr char kRegisterCallbacksName[] =
    "msptiActivityRegisterCallbacks";  // absent: not MSPTI
inline constexpr char kEnableName[] = "msptiActivityEnable";
inline constexpr char kDisableName[] = "msptiActivityDisable";
inline constexpr char kIsEnabledName[] = "msptiActivityIsEnabled";
inline constexpr char kEnableMarkerDomainName[] = "msptiActivityEnableMarkerDomain";
inline constexpr char kDisableMarkerDomainName[] = "msptiActivityDisableMarkerDomain";
inline constexpr char kFlushAllName[] = "msptiActivityFlushAll";
inline constexpr char kFlushPeriodName[] = "msptiActivityFlushPeriod";
inline constexpr char kPushExternalName[] = "msptiActivityPushExternalCorrelationId";
inline constexpr char kPopExternalName[] = "msptiActivityPopExternalCorrelationId";

}  // namespace profd::lib::mspti
