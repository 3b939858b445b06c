// What kinds of operators computing consists of, and what communication and free time do
// (analysis 1.3 and 1.4).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "analysis/rank.h"

namespace profd::analysis {

enum class ComputingKind : uint8_t {
  kFlashAttention,
  kConv,
  kMatmul,
  kVector,
  kTensorMove,
  kOtherCube,
  kPageAttention,
  kFusedWithCommunication
};
inline constexpr size_t kComputingKinds = 8;
// As in the table of the overall summary: "computing: conv".
std::string_view ComputingKindName(ComputingKind kind);

struct KindTime {
  double ms = 0;
  uint64_t executions = 0;
};
// Of all executions, each its own time: where they overlap, the sum is more than the time of
// computing.
std::array<KindTime, kComputingKinds> ComputingKindsOf(const Rank& rank);

// Of communication that nothing covers: waiting for other ranks, on the plane of each group that
// waits least, but for waits for what this rank sent over RDMA.
double UncoveredWaitMs(const Rank& rank);
// Of free time: copies on streams of operators.
double FreeCopiesMs(const Rank& rank);

}  // namespace profd::analysis
