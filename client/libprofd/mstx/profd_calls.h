// The functions of libprofd that marks need, from the libprofd.so.0 of this process: the one that is loaded, else the
// one that PROFD_LIBRARY names, the one beside this library, or the system's.
#pragma once

#include <cstdint>

namespace profd::mstx {

struct ProfdCalls {
  void (*mark_in)(const char* domain, const char* name) = nullptr;
  uint64_t (*range_start)(const char* domain, const char* name) = nullptr;
  void (*range_end)(uint64_t id) = nullptr;
};

// All of them, or none where there is no libprofd.
ProfdCalls FindProfd();

}  // namespace profd::mstx
