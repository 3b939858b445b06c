// Bytes of one channel as the driver gave them: written once, then shared by all consumers, immutable.
// Memory is from a pool with a hard limit; in steady state nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace profd {

struct BlockInfo {
  uint32_t device = 0;
  uint32_t channel = 0;
  uint64_t seq = 0;          // per (device, channel), from 1, never repeats while profd runs; a BlockLoss takes one, too
  uint32_t epoch = 0;        // n-th start of the channel, as given to Add
  uint32_t records = 0;      // complete records or lines in here; 0 for channels without a format
  int64_t host_ns = 0;       // CLOCK_MONOTONIC_RAW when the bytes were read
};

// What was read and could not be kept, for want of a block. Garbage that was skipped is not in here.
struct BlockLoss {
  uint32_t device = 0;
  uint32_t channel = 0;
  uint32_t epoch = 0;    // as BlockInfo's
  int64_t host_ns = 0;   // CLOCK_MONOTONIC_RAW when the bytes were read
  uint64_t records = 0;  // 0 for channels without a format
  uint64_t bytes = 0;
};

namespace internal {
struct PoolState;
struct BlockHeader;
}  // namespace internal

// A share in a block. Thread-safe like a shared_ptr: distinct BlockRefs may be used anywhere. May
// outlive the pool.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(const BlockRef& other);
  BlockRef(BlockRef&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(header_, other.header_);
    return *this;
  }
  ~BlockRef() { Reset(); }

  explicit operator bool() const { return header_ != nullptr; }
  void Reset();
  // Only of a non-empty ref.
  const BlockInfo& info() const;
  std::span<const std::byte> bytes() const;
  // What the block really occupies in the pool; for those who keep blocks under a limit.
  size_t footprint() const;

 private:
  friend class BlockBuilder;
  explicit BlockRef(internal::BlockHeader* header) : header_(header) {}
  internal::BlockHeader* header_ = nullptr;
};

// A block not yet published; goes back to the pool if it never is.
class BlockBuilder {
 public:
  BlockBuilder() = default;
  BlockBuilder(BlockBuilder&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  BlockBuilder& operator=(BlockBuilder&& other) noexcept {
    std::swap(header_, other.header_);
    return *this;
  }
  ~BlockBuilder();

  explicit operator bool() const { return header_ != nullptr; }
  std::span<std::byte> buffer();
  // Publishes the first `used` bytes of buffer(). The builder is empty afterwards.
  BlockRef Finish(const BlockInfo& info, size_t used) &&;

 private:
  friend class BlockPool;
  explicit BlockBuilder(internal::BlockHeader* header) : header_(header) {}
  internal::BlockHeader* header_ = nullptr;
};

class BlockPool {
 public:
  static constexpr size_t kMaxBlockBytes = 256 * 1024;

  struct Stats {
    size_t allocated_bytes = 0;  // held from the system, never above max_bytes
    size_t in_use_bytes = 0;     // of these, in builders and blocks that are in use
    uint64_t refused = 0;        // Get calls that found the limit reached
  };

  explicit BlockPool(size_t max_bytes);
  ~BlockPool();  // blocks still referred to keep their memory until they are let go
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // A buffer of at least `size` bytes (512 B, 4, 8, 16, 32 or 256 KiB); empty when the limit is reached or
  // `size` exceeds kMaxBlockBytes. `leave_bytes`: so much must remain for others. Thread-safe.
  BlockBuilder Get(size_t size, size_t leave_bytes = 0);
  size_t max_bytes() const;
  // Gives memory of unused blocks back to the system, the largest first, until no more than
  // `keep_bytes` of it are left. Thread-safe.
  void Trim(size_t keep_bytes);
  Stats stats() const;

 private:
  std::shared_ptr<internal::PoolState> state_;
};

}  // namespace profd
