// What sessions ask for, in the vendor's kinds.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "client/libprofd/collect_plugin.h"
#include "client/libprofd/mspti/mspti_abi.h"
#include "proto/attach/collecting.h"

namespace profd::lib::mspti {

// In sets of kinds.
constexpr uint32_t BitOf(Kind kind) { return uint32_t{1} << kind; }

struct KindsOfBit {
  uint32_t bit;
  std::array<Kind, 3> kinds;  // kInvalid: none
  std::string_view name() const { return attach::WordOf(static_cast<attach::CollectKind>(std::countr_zero(bit))); }
};
inline constexpr KindsOfBit kKindsOfBits[] = {
    {PROFD_COLLECT_KERNEL, {kKernel}},
    {PROFD_COLLECT_COMMUNICATION, {kCommunication}},
    {PROFD_COLLECT_ACL_API, {kAclApi}},
    {PROFD_COLLECT_NODE_API, {kNodeApi}},
    {PROFD_COLLECT_RUNTIME_API, {kRuntimeApi}},
    {PROFD_COLLECT_MARKER, {kMarker}},
    {PROFD_COLLECT_MEMORY, {kMemory, kMemset, kMemcpy}},
};

// What is left out where collecting costs more than it may, in this order: what is there only beside kernels goes before
// them, the most records for the least information first. docs/jobs.md has the same order.
inline constexpr std::array<uint32_t, 5> kLeftOutFirst = {
    PROFD_COLLECT_RUNTIME_API, PROFD_COLLECT_ACL_API | PROFD_COLLECT_NODE_API, PROFD_COLLECT_MEMORY, PROFD_COLLECT_MARKER,
    PROFD_COLLECT_KERNEL | PROFD_COLLECT_COMMUNICATION};

}  // namespace profd::lib::mspti
