#include "daemon/data/last_changes.h"

#include <algorithm>
#include <utility>

#include "driver/abi/channels.h"

namespace profd {
namespace {

using records::LpmRecord;

// It has no number: none is missing behind it.
class OneBlock final : public BlockSource {
 public:
  OneBlock(uint32_t route, const BlockInfo& info, std::vector<std::byte> bytes)
      : route_(route), info_(info), bytes_(std::move(bytes)) {}
  bool Next(ReplayBlock* out) override {
    *out = {};
    out->route = route_;
    out->info = info_;
    out->bytes = bytes_;
    return !std::exchange(done_, true);
  }
  bool lost_end() const override { return false; }

 private:
  const uint32_t route_;
  const BlockInfo info_;
  const std::vector<std::byte> bytes_;
  bool done_ = false;
};

}  // namespace

bool LastChanges::Are(uint32_t channel) {
  const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
  return format != nullptr && format->thinning == abi::Thinning::kEvent;
}

void LastChanges::Take(std::span<const std::byte> records) {
  for (; records.size() >= LpmRecord::kSize; records = records.subspan(LpmRecord::kSize)) {
    const LpmRecord record(records.first(LpmRecord::kSize));
    if (record.count() == 0) continue;
    // Chips without voltages leave the type undefined.
    const uint32_t kind = record.type() < LpmRecord::kTypes ? record.type() : LpmRecord::kFrequencyMhz;
    std::erase_if(kept_, [kind](const Kept& one) { return one.kind == kind; });
    kept_.push_back({kind, {}});
    std::ranges::copy(records.first(LpmRecord::kSize), kept_.back().record.begin());
  }
}

std::shared_ptr<BlockSource> LastChanges::Source(int64_t host_ns, uint32_t route) const {
  if (kept_.empty()) return nullptr;
  std::vector<std::byte> bytes;
  for (const Kept& one : kept_) bytes.insert(bytes.end(), one.record.begin(), one.record.end());
  const BlockInfo info{.records = static_cast<uint32_t>(kept_.size()), .host_ns = host_ns};
  return std::make_shared<OneBlock>(route, info, std::move(bytes));
}

}  // namespace profd
