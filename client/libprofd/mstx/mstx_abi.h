// What a library that MSTX_INJECTION_PATH names must know of mstx, MindStudio's marker interface
// (in-application.md 5.1; the vendor's ms_tools_ext.h). Each shared object that uses mstx has a table of functions
// of its own, which its first call has filled by InitInjectionMstx.
#pragma once

#include <cstdint>

namespace profd::mstx {

enum Module : int { kCore = 1, kDomain = 2, kMemory = 3 };

// Places in the tables; 0 is none.
enum CoreFunction : unsigned { kMark = 1, kRangeStart, kRangeEnd, kGetToolId, kCoreCount };
enum DomainFunction : unsigned {
  kCreate = 1,
  kDestroy,
  kDomainMark,
  kDomainRangeStart,
  kDomainRangeEnd,
  kDomainCount
};
// Heaps and regions of memory, registered and unregistered: 1 to 4.
inline constexpr unsigned kMemoryCount = 5;

using Function = void (*)();
// Answers 0 and the addresses of a module's functions, by their places; `size`: how many there are, with 0.
using GetTable = int (*)(int module, Function*** table, unsigned* size);
// 0 = the tables are filled. An entry that is not stays without effect for as long as the process lives.
using Init = int (*)(GetTable get_table);

using Stream = void*;        // aclrtStream; null = host only
using DomainHandle = void*;  // opaque

using MarkCall = void (*)(const char* message, Stream stream);
using RangeStartCall = uint64_t (*)(const char* message, Stream stream);  // 0 = no range
using RangeEndCall = void (*)(uint64_t id);
using CreateCall = DomainHandle (*)(const char* name);
using DestroyCall = void (*)(DomainHandle domain);
using DomainMarkCall = void (*)(DomainHandle domain, const char* message, Stream stream);
using DomainRangeStartCall = uint64_t (*)(DomainHandle domain, const char* message, Stream stream);
using DomainRangeEndCall = void (*)(DomainHandle domain, uint64_t id);

}  // namespace profd::mstx
