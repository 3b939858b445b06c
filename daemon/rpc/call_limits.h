// What the calls of clients may hold in memory: THE table of limits, printed into docs/configuration.md, and the
// ledger that keeps to it. Every call takes a hold before its handler runs and gives it back when gRPC is
// done with the call; what grows on the way (buffers, lists, answers) is admitted first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "daemon/session/peer.h"

namespace profd::rpc {

enum class CallKind : uint8_t { kUnary, kWatch, kStream, kFetch };

struct CallLimit {
  CallKind kind;
  std::string_view label;  // in metrics
  std::string_view what;   // in sentences, plural
  std::string_view methods;
  uint64_t base_bytes;     // a call that has not grown: its objects here and in gRPC
  uint64_t bytes_per_user;
  uint64_t bytes_per_node;
  uint32_t calls_per_user;
  uint32_t calls_per_node;
  std::string_view held;    // what is counted beside the base
  std::string_view advice;  // what the caller can do about a refusal
  std::string_view test;    // as docs/security-model.md names tests
};
std::span<const CallLimit> CallLimits();

// Sizes that do not depend on who calls; in the same document.
inline constexpr int kMaxReceiveBytes = 256 * 1024;
inline constexpr int kMaxStreamsPerConnection = 64;
inline constexpr int kMaxTlsStreamsPerConnection = 32;
inline constexpr size_t kGrpcQuotaBytes = 64 << 20;
inline constexpr size_t kTlsQuotaBytes = 32 << 20;
// One live stream.
inline constexpr size_t kStreamRing = 65536;
// One dump that is fetched; more is for the owner's own copy of it.
inline constexpr size_t kMaxFetchEntries = 65536;
inline constexpr size_t kMaxFetchNameBytes = 4 << 20;

// A section of docs/configuration.md.
std::string LimitsDocument();

// The memory of one call. Goes back with the last reference; any thread.
class CallHold {
 public:
  ~CallHold();
  CallHold(const CallHold&) = delete;
  CallHold& operator=(const CallHold&) = delete;

  // kResourceExhausted, as a text for the caller: which limit, whose, and what to do. Counted.
  Status Grow(uint64_t bytes);
  void Shrink(uint64_t bytes);

 private:
  friend class CallLedger;
  struct Account;
  explicit CallHold(std::unique_ptr<Account> account);
  std::unique_ptr<Account> account_;
};

class CallLedger {
 public:
  CallLedger();
  ~CallLedger();

  // `bytes` beside the base. Administrators are not refused for what others hold: their own limit alone
  // counts, so that they can always stop another user's session.
  Result<std::shared_ptr<CallHold>> Take(CallKind kind, const Peer& peer, uint64_t bytes = 0);

  struct Usage {
    uint64_t calls = 0;
    uint64_t bytes = 0;
    uint64_t refused_user = 0;
    uint64_t refused_node = 0;
  };
  Usage usage(CallKind kind) const;

 private:
  friend class CallHold;
  struct State;
  std::shared_ptr<State> state_;  // holds outlive the ledger where a call does
};

}  // namespace profd::rpc
