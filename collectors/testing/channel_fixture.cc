#include "collectors/testing/channel_fixture.h"

#include <algorithm>
#include <random>
#include <sstream>

#include "base/testing/temp_dir.h"
#include "driver/abi/channels.h"
#include "driver/chips.h"

namespace profd::testing {
namespace {

std::string ReadFile(const std::string& path) {
  EXPECT_TRUE(std::filesystem::exists("collectors/" + path)) << "no collectors/" << path;
  return ReadText("collectors/" + path);
}

std::string SortLines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  std::string sorted;
  for (const std::string& line : lines) sorted += line + "\n";
  return sorted;
}

// Where the first record of `bytes` ends.
size_t FirstRecord(const abi::ChannelFormat& format, std::string_view bytes) {
  size_t length =
      format.framing == abi::Framing::kBinary ? format.record_size : bytes.find('\n') + 1;
  return std::min(length, bytes.size());
}

void FeedDamaged(DecoderRig& rig, std::string bytes, std::mt19937& random) {
  std::string lines = rig.Feed(bytes);
  EXPECT_EQ(lines.find("nan"), std::string::npos);
  EXPECT_EQ(lines.find("inf"), std::string::npos);
  for (int damage = 0; damage < 8; ++damage) {
    bytes[random() % bytes.size()] = static_cast<char>(random());
  }
  lines = rig.Feed(bytes);
  EXPECT_EQ(lines.find(" nan"), std::string::npos);
  EXPECT_EQ(lines.find(" inf"), std::string::npos);
}

}  // namespace

DeviceInfo MakeDevice(int chip_id) {
  DeviceInfo device;
  device.chip_id = chip_id;
  const ChipFacts* chip = FindChip(static_cast<uint32_t>(chip_id));
  if (chip != nullptr) device.chip_name = chip->name;
  device.counter_hz = 50e6;
  for (const abi::ChannelFormat& format : abi::kChannelFormats) {
    device.channels.push_back(format.id);
  }
  return device;
}

TimeBase MakeTimeBase() {
  TimeBase time{.host_ns = 5'000'000'000'000, .device_ns = 1'000'000'000'000, .device_count = 50'000'000'000,
                .device_counter_hz = 50e6, .host_count = 1'000'000'000, .host_counter_hz = 100e6};
  time.channel_start_ns = time.host_ns + 100'000'000;
  return time;
}

DecoderRig::DecoderRig(const CollectorEntry& entry, const DeviceInfo& device, uint32_t channel,
                       size_t registry_limit)
    : registry_(registry_limit) {
  decoder_ = entry.make_decoder(device, channel, registry_);
}

DecoderRig::~DecoderRig() {
  decoder_.reset();
  EXPECT_EQ(registry_.live(), 0u) << "the decoder kept series";
}

std::string DecoderRig::Feed(std::span<const std::byte> bytes) {
  batch_.Clear();
  decoder_->Decode(bytes, time_, batch_);
  return registry_.Print(batch_);
}

std::vector<std::byte> Concat(std::initializer_list<std::vector<std::byte>> parts) {
  std::vector<std::byte> all;
  for (const std::vector<std::byte>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

void ExpectGolden(const CollectorEntry& entry, const DeviceInfo& device, uint32_t channel,
                  const std::string& name) {
  SCOPED_TRACE(name);
  const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
  ASSERT_NE(format, nullptr);
  std::string input = ReadFile(name + ".in");
  std::string expected = SortLines(ReadFile(name + ".expected"));
  ASSERT_FALSE(input.empty());
  ASSERT_FALSE(expected.empty());

  DecoderRig at_once(entry, device, channel);
  EXPECT_EQ(SortLines(at_once.Feed(input)), expected);
  EXPECT_EQ(at_once.decoder().bad_records(), 0u);
  EXPECT_GT(at_once.decoder().records(), 0u);

  DecoderRig piecewise(entry, device, channel);
  std::string lines;
  for (std::string_view rest = input; !rest.empty();) {
    size_t length = FirstRecord(*format, rest);
    lines += piecewise.Feed(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  EXPECT_EQ(SortLines(lines), expected);
  EXPECT_EQ(piecewise.decoder().records(), at_once.decoder().records());
}

void ExpectSurvivesGarbage(const CollectorEntry& entry, const DeviceInfo& device, uint32_t channel,
                           const std::string& golden_name, size_t max_series) {
  std::mt19937 random(20240229);
  std::string good = ReadFile(golden_name + ".in");
  ASSERT_FALSE(good.empty());
  DecoderRig rig(entry, device, channel);
  for (int round = 0; round < 200; ++round) {
    FeedDamaged(rig, good, random);
    rig.Feed(std::string_view(good).substr(0, random() % good.size()));
    std::string noise(random() % 4096 + 1, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    FeedDamaged(rig, noise, random);
    std::string extreme(good.size(), round % 2 == 0 ? '\xFF' : '\x7F');
    FeedDamaged(rig, extreme, random);
  }
  rig.Feed(std::string_view{});
  EXPECT_GT(rig.decoder().bad_records(), 0u);
  EXPECT_LE(rig.decoder().bad_records(), rig.decoder().records());
  EXPECT_LE(rig.registry().total(), max_series);
}

Status ProbeWith(const CollectorEntry& entry, int chip_id, std::vector<uint32_t> channels) {
  NoHost nothing;
  DeviceInfo device = MakeDevice(chip_id);
  device.channels = std::move(channels);
  return ProbeDevice(entry, nothing.host, device);
}

}  // namespace profd::testing
