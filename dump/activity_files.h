// What training processes did (kernels, communication, API calls, markers, memory) as a dump keeps it:
// files host/data/activity_<type>.data in slices, records of fixed size, and their names in
// host/profd/activity_names.tsv. docs/dumps.md describes them for readers.
//
// Little-endian, no padding. Times are CLOCK_MONOTONIC_RAW of the host, in ns; records are in the order of arrival
// from its process: nearly, but not quite in the order of time. Records of all processes share a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace profd {

// Strings (name, type, communicator, algorithm, domain) are ids of activity_names.tsv; 0 = none, or one too
// many. The same string has one id in the dump. `process`: pid as the host sees it (manifest `processes`).
// device: physical id; logical_device: as the process numbers it; 0xFFFF = none. stream 0xFFFFFFFF = none.
struct StoredKernel {
  int64_t start_ns;
  uint64_t duration_ns;
  uint64_t correlation;  // that of the API call that launched it; 0 = none
  uint32_t stream;
  uint32_t name;
  uint32_t type;    // a name: KERNEL_AICORE, ...
  uint32_t thread;  // that launched it; 0 = not known
  uint32_t process;
  uint16_t device;
  uint16_t logical_device;
};
struct StoredCommunication {
  int64_t start_ns;
  uint64_t duration_ns;
  uint64_t correlation;
  uint64_t count;  // elements
  uint32_t stream;
  uint32_t name;
  uint32_t communicator;
  uint32_t algorithm;
  uint32_t process;
  float bandwidth;  // as the vendor's library gives it; 0 = not known
  uint16_t device;
  uint16_t logical_device;
  uint16_t data_type;  // HCCL's number; 0xFFFF = not known
  uint16_t reserved;
};
struct StoredApi {
  int64_t start_ns;
  uint64_t duration_ns;
  uint64_t correlation;
  uint32_t thread;
  uint32_t name;
  uint32_t process;
  uint16_t level;  // attach::ApiLevel: 0 unknown, 1 acl, 2 node, 3 runtime
  uint16_t reserved;
};
struct StoredMarker {
  int64_t time_ns;
  uint64_t id;  // of both ends and both halves of one mark
  uint32_t name;
  uint32_t domain;
  uint32_t thread;  // of the host's half
  uint32_t stream;  // of the device's half
  uint32_t process;
  uint16_t flag;    // 1 instant, 2 start, 4 end; times 8 with a device's half
  uint16_t source;  // 0 host, 1 device
  uint16_t device;
  uint16_t logical_device;
  uint32_t reserved;
};
struct StoredMemory {
  int64_t start_ns;
  uint64_t duration_ns;
  uint64_t correlation;
  uint64_t bytes;
  uint64_t address;  // of an allocation; what a set fills with
  uint32_t stream;
  uint32_t process;
  uint8_t operation;  // attach::MemoryOperation: 1 allocate, 2 release, 3 set, 4 copy
  uint8_t is_async;
  uint16_t detail;  // the vendor's kind of memory or of copy
  uint16_t device;
  uint16_t logical_device;
};
static_assert(sizeof(StoredKernel) == 48);
static_assert(sizeof(StoredCommunication) == 64);
static_assert(sizeof(StoredApi) == 40);
static_assert(sizeof(StoredMarker) == 48);
static_assert(sizeof(StoredMemory) == 56);
static_assert(std::is_trivially_copyable_v<StoredKernel>);

// THE table of these files, in the order of attach::ActivityType.
struct ActivityFile {
  std::string_view collector;  // in outcomes and in the manifest: "activity_kernel"
  std::string_view file;       // base name in host/data: "activity_kernel.data"
  size_t record_bytes;
};
enum class ActivityFileId : uint8_t { kKernel, kCommunication, kApi, kMarker, kMemory };
inline constexpr size_t kActivityFiles = 5;
std::span<const ActivityFile, kActivityFiles> ActivityFiles();
inline const ActivityFile& FileOf(ActivityFileId id) {
  return ActivityFiles()[static_cast<size_t>(id)];
}
// By base name; null for other files.
const ActivityFile* FindActivityFile(std::string_view base);
// A slice of these files is this many times as long as one of other files: they grow about ten times as fast, and each
// slice costs two files, a sync and a line of the journal.
inline constexpr uint64_t kActivitySlice = 8;

// One of our own files. Lines "<id>\t<text>"; ids from 1, each once, in any order. A name may come after
// records that have its id, and after a crash it may be missing.
inline constexpr std::string_view kActivityNamesFile = "activity_names.tsv";
inline constexpr std::string_view kActivityNamesHeading = "id\tname\n";
// Tabs and control bytes become spaces.
void AppendActivityName(uint32_t id, std::string_view name, std::string* out);

}  // namespace profd
