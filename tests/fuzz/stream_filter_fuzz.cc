// Input: channel and options, then runs of "length of the block" and its bytes.

#include "base/bytes.h"
#include "dump/stream_filter.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

// A counter's frequency comes from the driver, who may say nothing or nonsense above zero.
double TakeHz(fuzz::Input& input) { return input.Take<uint32_t>(); }
// Periods come from validated options (1..100 Hz) and the arbiter: milliseconds to seconds.
int64_t TakePeriodNs(fuzz::Input& input) { return input.Take<uint16_t>() * int64_t{100'000}; }

StreamFilterOptions TakeOptions(fuzz::Input& input) {
  StreamFilterOptions options;
  options.format = &abi::kChannelFormats[input.TakeIndex(abi::kChannelFormats.size())];
  options.channel_period_ns = TakePeriodNs(input);
  options.session_period_ns = TakePeriodNs(input);
  options.rebase_us = input.Take<int32_t>() * int64_t{1000};
  options.channel_age_us = input.Take<uint32_t>() * int64_t{1000};
  options.device_counter_hz = TakeHz(input);
  options.host_counter_hz = TakeHz(input);
  options.chip_id = input.Take<uint8_t>();
  for (SocRate& rate : options.soc) {
    rate.channel_period_ns = TakePeriodNs(input);
    rate.session_period_ns = TakePeriodNs(input);
    rate.wanted = input.Take<uint8_t>() % 4 != 0;
  }
  return options;
}

void CheckOutput(const StreamFilter& filter, const StreamFilterOptions& options,
                 const StreamFilter::Output& output, std::span<const std::byte> block) {
  FUZZ_EXPECT(output.bytes.size() <= block.size());
  if (filter.verbatim()) return;
  const StreamFilter::Counters& counters = filter.counters();
  FUZZ_EXPECT(counters.records_in ==
              counters.records_out + counters.thinned + counters.before_start + counters.malformed);
  if (options.format->framing == abi::Framing::kBinary) {
    FUZZ_EXPECT(output.bytes.size() == output.records * options.format->record_size);
  }
}

}  // namespace

void fuzz::Run(Input input) {
  const StreamFilterOptions options = TakeOptions(input);
  StreamFilter filter(options);
  while (!input.empty()) {
    std::span<const std::byte> block = AsBytes(input.TakePiece(input.Take<uint16_t>()));
    CheckOutput(filter, options, filter.Filter(block, 1), block);
  }
}

}  // namespace profd
