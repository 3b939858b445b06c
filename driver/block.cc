#include "driver/block.h"

#include <array>
#include <atomic>
#include <new>

#include "base/mutex.h"

namespace profd {
namespace internal {

constexpr std::array<size_t, 6> kClassBytes = {512,   4096,  8192,
                                               16384, 32768, BlockPool::kMaxBlockBytes};
constexpr std::align_val_t kAlign{64};

struct BlockHeader {
  std::shared_ptr<PoolState> pool;  // only while in use
  BlockHeader* next_free = nullptr;
  std::atomic<uint32_t> refs{0};
  uint32_t size_class = 0;
  size_t used = 0;
  BlockInfo info;
};

// The payload follows its header in the same allocation, aligned like it.
constexpr size_t kHeaderBytes = (sizeof(BlockHeader) + 63) / 64 * 64;
constexpr size_t Footprint(uint32_t size_class) { return kHeaderBytes + kClassBytes[size_class]; }

std::byte* Payload(BlockHeader* header) {
  return reinterpret_cast<std::byte*>(header) + kHeaderBytes;
}

struct FreeList {
  Mutex mutex;
  BlockHeader* head GUARDED_BY(mutex) = nullptr;
};

struct PoolState {
  explicit PoolState(size_t limit) : max_bytes(limit) {}
  ~PoolState() {
    for (uint32_t c = 0; c < kClassBytes.size(); ++c) {
      while (BlockHeader* header = Pop(c)) Free(header);
    }
  }

  BlockHeader* Pop(uint32_t size_class) {
    FreeList& list = free_lists[size_class];
    MutexLock lock(list.mutex);
    BlockHeader* header = list.head;
    if (header != nullptr) list.head = header->next_free;
    return header;
  }
  void Push(BlockHeader* header) {
    FreeList& list = free_lists[header->size_class];
    MutexLock lock(list.mutex);
    header->next_free = list.head;
    list.head = header;
  }
  bool Reserve(size_t bytes) {
    size_t held = allocated.load(std::memory_order_relaxed);
    do {
      if (bytes > max_bytes || held > max_bytes - bytes) return false;
    } while (!allocated.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  void Free(BlockHeader* header) {
    allocated.fetch_sub(Footprint(header->size_class), std::memory_order_relaxed);
    header->~BlockHeader();
    ::operator delete(header, kAlign);
  }
  // Memory parked in other classes is given back for this one, largest first: the mix of sizes
  // changes when sessions come and go.
  bool ReleaseOther(uint32_t size_class) {
    for (size_t c = kClassBytes.size(); c-- > 0;) {
      if (c == size_class) continue;
      while (BlockHeader* header = Pop(static_cast<uint32_t>(c))) {
        Free(header);
        if (Reserve(Footprint(size_class))) return true;
      }
    }
    return false;
  }
  BlockHeader* Allocate(uint32_t size_class) {
    if (!Reserve(Footprint(size_class)) && !ReleaseOther(size_class)) return nullptr;
    void* memory = ::operator new(Footprint(size_class), kAlign, std::nothrow);
    if (memory == nullptr) {
      allocated.fetch_sub(Footprint(size_class), std::memory_order_relaxed);
      return nullptr;
    }
    auto* header = ::new (memory) BlockHeader;
    header->size_class = size_class;
    return header;
  }

  const size_t max_bytes;
  std::atomic<size_t> allocated{0};
  std::atomic<size_t> in_use{0};
  std::atomic<uint64_t> refused{0};
  std::array<FreeList, kClassBytes.size()> free_lists;
};

static void Return(BlockHeader* header) {
  // The last block of a pool that is gone takes the pool's memory with it.
  std::shared_ptr<PoolState> pool = std::move(header->pool);
  pool->in_use.fetch_sub(Footprint(header->size_class), std::memory_order_relaxed);
  pool->Push(header);
}

}  // namespace internal

using internal::BlockHeader;

BlockRef::BlockRef(const BlockRef& other) : header_(other.header_) {
  if (header_ != nullptr) header_->refs.fetch_add(1, std::memory_order_relaxed);
}

void BlockRef::Reset() {
  BlockHeader* header = std::exchange(header_, nullptr);
  if (header == nullptr) return;
  if (header->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) internal::Return(header);
}

const BlockInfo& BlockRef::info() const { return header_->info; }

std::span<const std::byte> BlockRef::bytes() const {
  return {internal::Payload(header_), header_->used};
}

size_t BlockRef::footprint() const { return internal::Footprint(header_->size_class); }

BlockBuilder::~BlockBuilder() {
  if (header_ != nullptr) internal::Return(header_);
}

std::span<std::byte> BlockBuilder::buffer() {
  return {internal::Payload(header_), internal::kClassBytes[header_->size_class]};
}

BlockRef BlockBuilder::Finish(const BlockInfo& info, size_t used) && {
  BlockHeader* header = std::exchange(header_, nullptr);
  header->info = info;
  header->used = used;
  header->refs.store(1, std::memory_order_relaxed);
  return BlockRef(header);
}

BlockPool::BlockPool(size_t max_bytes) : state_(std::make_shared<internal::PoolState>(max_bytes)) {}

BlockPool::~BlockPool() = default;

BlockBuilder BlockPool::Get(size_t size, size_t leave_bytes) {
  uint32_t size_class = 0;
  while (size_class < internal::kClassBytes.size() && internal::kClassBytes[size_class] < size) {
    ++size_class;
  }
  if (size_class == internal::kClassBytes.size()) return {};
  const size_t in_use = state_->in_use.load(std::memory_order_relaxed);
  const bool leaves = leave_bytes == 0 || in_use + internal::Footprint(size_class) + leave_bytes <= state_->max_bytes;
  BlockHeader* header = leaves ? state_->Pop(size_class) : nullptr;
  if (header == nullptr && leaves) header = state_->Allocate(size_class);
  if (header == nullptr) {
    state_->refused.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  header->pool = state_;
  state_->in_use.fetch_add(internal::Footprint(size_class), std::memory_order_relaxed);
  return BlockBuilder(header);
}

size_t BlockPool::max_bytes() const { return state_->max_bytes; }

void BlockPool::Trim(size_t keep_bytes) {
  auto too_much = [&] {
    const size_t in_use = state_->in_use.load(std::memory_order_relaxed);
    return state_->allocated.load(std::memory_order_relaxed) > in_use + keep_bytes;
  };
  for (size_t c = internal::kClassBytes.size(); c-- > 0;) {
    while (too_much()) {
      BlockHeader* header = state_->Pop(static_cast<uint32_t>(c));
      if (header == nullptr) break;
      state_->Free(header);
    }
  }
}

BlockPool::Stats BlockPool::stats() const {
  return {state_->allocated.load(std::memory_order_relaxed),
          state_->in_use.load(std::memory_order_relaxed),
          state_->refused.load(std::memory_order_relaxed)};
}

}  // namespace profd
