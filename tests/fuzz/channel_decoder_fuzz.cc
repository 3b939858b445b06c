// Input: the channel, the chip, the kind of time base, then runs of "length of
// the block" and its bytes. Blocks are cut to whole records or lines only by the seeds: a decoder
// must take anything.
#include <memory>
#include <vector>

#include "collectors/channel_decoder.h"
#include "collectors/channel_options.h"
#include "collectors/collector.h"
#include "driver/abi/channels.h"
#include "driver/chips.h"
#include "tests/fuzz/bounded_registry.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

// Ids come from records: every table of a decoder is bounded, and so is what it interns.
constexpr size_t kMaxSeries = 4096;

// The collectors that have this channel started on one chip or another.
std::vector<const CollectorEntry*> CollectorsOf(uint32_t channel) {
  std::vector<const CollectorEntry*> found;
  for (const CollectorEntry& entry : Collectors()) {
    if (entry.plan == nullptr) continue;
    ChannelOptions options;
    SetEverything(*entry.spec, 50, &options);
    for (const ChipFacts& chip : kChips) {
      DeviceInfo device;
      device.chip_id = static_cast<int>(chip.id);
      device.channels = {channel};
      device.mpam_ids = {1, 2};
      if (entry.plan(device, options).empty()) continue;
      found.push_back(&entry);
      break;
    }
  }
  return found;
}

TimeBase TakeTimeBase(fuzz::Input& input) {
  TimeBase time;
  const auto kind = input.Take<uint8_t>();
  time.host_ns = 5'000'000'000'000;
  time.device_ns = 1'000'000'000'000;
  time.device_count = 50'000'000'000;
  time.device_counter_hz = (kind & 1) != 0 ? 0 : 50e6;
  time.host_count = 1'000'000'000;
  time.host_counter_hz = (kind & 2) != 0 ? 0 : 100e6;
  time.channel_start_ns = time.host_ns + 100'000'000;
  return time;
}

void Feed(const CollectorEntry& entry, const DeviceInfo& device, uint32_t channel, const TimeBase& time, fuzz::Input input) {
  fuzz::BoundedRegistry registry(kMaxSeries);
  std::unique_ptr<ChannelDecoder> decoder = entry.make_decoder(device, channel, registry);
  if (decoder == nullptr) return;
  SampleBatch batch;
  while (!input.empty()) {
    const auto length = input.Take<uint16_t>();
    if (length == UINT16_MAX) decoder->Reset();
    const std::string_view block = input.TakePiece(length);
    batch.Clear();
    decoder->Decode(AsBytes(block), time, batch);
    registry.Check(batch);
    FUZZ_EXPECT(decoder->bad_records() <= decoder->records());
  }
}

}  // namespace

void fuzz::Run(Input input) {
  const abi::ChannelFormat& format =
      abi::kChannelFormats[input.TakeIndex(abi::kChannelFormats.size())];
  const ChipFacts& chip = kChips[input.TakeIndex(kChips.size())];
  DeviceInfo device;
  device.chip_id = static_cast<int>(chip.id);
  device.counter_hz = 50e6;
  device.channels = {format.id};
  const TimeBase time = TakeTimeBase(input);
  for (const CollectorEntry* entry : CollectorsOf(format.id)) {
    Feed(*entry, device, format.id, time, input);
  }
}

}  // namespace profd
