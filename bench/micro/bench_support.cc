#include "bench/micro/bench_support.h"

#include <fcntl.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>

#include "collectors/channel_options.h"
#include "driver/abi/hal_abi.h"
#include "driver/framer.h"
#include "sim/hal_engine.h"
#include "sim/scenario.h"

namespace profd::bench {
namespace {

constexpr int kSteps = 80;  // of 100 ms

RootedFs Root(const char* path) {
  Result<RootedFs> root = RootedFs::OpenRoot(path);
  if (!root.ok()) std::abort();
  return std::move(root).value();
}

DeviceInfo SimulatedDevice() {
  DeviceInfo device;
  device.id = 0;
  device.chip_id = 5;
  device.chip_name = "Ascend910B";
  device.counter_hz = 50e6;
  device.aicore_mhz = 1800;
  for (const abi::ChannelFormat& format : abi::kChannelFormats) {
    device.channels.push_back(format.id);
  }
  return device;
}

// What the collector of this channel would start it with at its fastest.
ChannelRequest RequestOf(uint32_t channel) {
  ChannelOptions options;
  for (const CollectorEntry& entry : Collectors()) {
    if (entry.plan == nullptr) continue;
    SetEverything(*entry.spec, entry.spec->max_hz, &options);
    for (ChannelRequest& request : entry.plan(TheBench().devices[0], options)) {
      if (request.channel == channel) return std::move(request);
    }
  }
  return {};
}

ChannelData Sample(uint32_t channel) {
  ChannelData data;
  data.format = abi::FindChannelFormat(channel);
  ManualClock clock;
  sim::Node node(sim::Scenario(), clock, 0);
  sim::HalEngine engine(node);
  ChannelRequest request = RequestOf(channel);
  abi::ProfStartPara para{};
  para.channel_type = request.task_scheduler_owned ? abi::kProfTsType : abi::kProfPeripheralType;
  para.sample_period = request.sample_period_ms;
  para.real_time = abi::kProfReal;
  para.user_data = request.user_data.data();
  para.user_data_size = static_cast<uint32_t>(request.user_data.size());
  if (engine.Start(0, channel, &para) != abi::kProfOk) return data;
  std::vector<char> chunk(256 * 1024);
  for (int step = 0; step < kSteps; ++step) {
    clock.Advance(100 * kNsPerMs);
    for (int got;
         (got = engine.Read(0, channel, chunk.data(), static_cast<unsigned>(chunk.size()))) > 0;) {
      const auto* begin = reinterpret_cast<const std::byte*>(chunk.data());
      data.bytes.insert(data.bytes.end(), begin, begin + got);
    }
  }
  const FrameResult framed = Framer(*data.format).Frame(data.bytes, true);
  data.bytes.resize(framed.good_bytes);
  data.records = framed.records;
  return data;
}

}  // namespace

Bench::Bench() : proc(Root("/proc")), sys(Root("/sys")), devices{SimulatedDevice()} {
  host = std::make_unique<Host>(Host{clock, proc, sys, nullptr, devices, 0});
}

Bench& TheBench() {
  static Bench bench;
  return bench;
}

const ChannelData& DataOf(uint32_t channel) {
  static std::map<uint32_t, ChannelData> all;
  auto found = all.find(channel);
  if (found == all.end()) found = all.emplace(channel, Sample(channel)).first;
  return found->second;
}

Folder::Folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "profd_bench_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
  fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

double CopyNs(std::span<const std::byte> bytes) {
  std::vector<std::byte> to(bytes.size());
  return FloorNs([&] {
    std::memcpy(to.data(), bytes.data(), bytes.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  });
}

}  // namespace profd::bench
