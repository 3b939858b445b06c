// What the tests of all channel collectors share: devices, a time base with round numbers, golden
// files and hostile input.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "collectors/collector.h"
#include "collectors/testing/fake_registry.h"
#include "driver/rooted_fs.h"

namespace profd::testing {

// Channel collectors must not read the host: what they get here has nothing in it.
struct NoHost {
  ManualClock clock;
  RootedFs root = RootedFs::OpenRoot(::testing::TempDir()).value();
  Host host{clock, root, root, nullptr, {}, 0};
};

// Device 0 of that chip; it lists every channel of kChannelFormats.
DeviceInfo MakeDevice(int chip_id);

// Device ns 1e12 and device count 5e10 (50 MHz) and host count 1e9 (100 MHz) are host ns 5e12;
// channels were started 100 ms later.
TimeBase MakeTimeBase();

// A decoder with its own registry, fed with bytes of the test.
class DecoderRig {
 public:
  DecoderRig(const CollectorEntry& entry, const DeviceInfo& device, uint32_t channel,
             size_t registry_limit = SIZE_MAX);
  ~DecoderRig();
  // The lines of what was decoded from these bytes, in order of emission.
  std::string Feed(std::span<const std::byte> bytes);
  std::string Feed(std::string_view text) { return Feed(AsBytes(text)); }
  ChannelDecoder& decoder() { return *decoder_; }
  FakeRegistry& registry() { return registry_; }
  TimeBase& time() { return time_; }

 private:
  FakeRegistry registry_;
  TimeBase time_ = MakeTimeBase();
  SampleBatch batch_;
  std::unique_ptr<ChannelDecoder> decoder_;
};

// Little-endian bytes, value after value: Bytes(uint64_t{1}, uint32_t{2}).
template <class... Values>
std::vector<std::byte> Bytes(Values... values) {
  std::vector<std::byte> bytes((sizeof(Values) + ... + 0));
  size_t at = 0;
  ((StoreUnchecked(std::span<std::byte>(bytes), at, values), at += sizeof values), ...);
  return bytes;
}
std::vector<std::byte> Concat(std::initializer_list<std::vector<std::byte>> parts);

// Decodes collectors/<name>.in at once and again record by record; both must give the lines of
// collectors/<name>.expected (in any order) and no bad record.
void ExpectGolden(const CollectorEntry& entry, const DeviceInfo& device, uint32_t channel,
                  const std::string& name);

// Garbage, damaged and truncated records of every kind: must neither crash nor make more series
// than `max_series`, nor give a sample that is not finite, and must say that records were bad.
void ExpectSurvivesGarbage(const CollectorEntry& entry, const DeviceInfo& device, uint32_t channel,
                           const std::string& golden_name, size_t max_series);

// The probe's answer on a device that lists only these channels.
Status ProbeWith(const CollectorEntry& entry, int chip_id, std::vector<uint32_t> channels);

}  // namespace profd::testing
