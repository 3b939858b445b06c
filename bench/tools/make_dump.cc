// Writes a dump of a made-up run through the daemon's own writer, as large as asked for, as fast as
// it goes: what the export and verify benchmarks read. Every channel of an Atlas A2 at the highest
// rate its option allows, about 300 KB a second and device; values are a cheap random walk.
//
// usage: make_dump ROOT SECONDS [DEVICES]      prints the dump's path and what it holds
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "driver/abi/channels.h"
#include "dump/session_dump.h"

namespace profd::bench {
namespace {

constexpr int64_t kStartRawNs = 876'117'208'663'770;
constexpr int64_t kStartWallNs = 1'767'225'600'000'000'000;
constexpr int64_t kDeviceNs = 176'167'889'901'260;
constexpr uint64_t kDeviceCount = 8'808'394'495'063;
constexpr uint64_t kCountPerTick = 500'000;  // 50 MHz, 10 ms
constexpr int kTicksPerSecond = 100;

class Random {
 public:
  uint32_t Next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<uint32_t>(state_ >> 33);
  }
  uint32_t Below(uint32_t limit) { return Next() % limit; }

 private:
  uint64_t state_ = 42;
};

// One device's channels, tick by tick (10 ms).
class Device {
 public:
  Device(SessionDump& dump, int id) : dump_(dump), id_(id) {}

  void Tick(int64_t tick) {
    Memory(tick);
    Soc(tick);
    Network(tick);
    if (tick % 2 == 0) Links(tick);
    if (tick % 10 == 0) Modules(tick);
    if (tick % 50 == 0) Frequency(tick);
  }
  uint64_t records() const { return records_; }

 private:
  template <class... Fields>
  void Put(Fields... fields) {
    (PutOne(fields), ...);
  }
  template <class Field>
  void PutOne(Field field) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&field);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof field);
  }
  void PutText(std::string_view text) {
    std::span<const std::byte> bytes = AsBytes(text);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  void Hand(uint32_t channel, uint64_t records) {
    if (channel >= handles_.size()) handles_.resize(channel + 1, kNone);
    SessionDump::Channel& handle = handles_[channel];
    if (handle == kNone) handle = dump_.OpenChannel(id_, channel).value();
    if (Status status = dump_.Append(handle, bytes_, records); !status.ok()) {
      std::fprintf(stderr, "make_dump: %s\n", status.message().c_str());
      std::exit(1);
    }
    records_ += records;
    bytes_.clear();
  }

  void Memory(int64_t tick) {
    const auto us = static_cast<uint64_t>(tick) * 10'000 + 10'000;
    for (uint32_t k = 0; k < 8; ++k)
      Put(us, uint64_t{50'000'000} + random_.Below(9'000'000), k & 1u, k / 2);
    Hand(1, 8);
    constexpr uint32_t kEvents[] = {0x00, 0x01, 0x02, 0x13, 0x20, 0x22, 0x34, 0x36};
    for (uint32_t id = 0; id < 2; ++id) {
      for (uint32_t event : kEvents)
        Put(us, uint64_t{1'000'000} + random_.Below(500'000), event, id);
    }
    Hand(8, 16);
    for (uint32_t event = 0; event < 2; ++event) {
      Put(static_cast<uint32_t>(us), event, uint64_t{0}, uint64_t{0},
          uint64_t{3'000'000'000} + random_.Below(1'000'000));
    }
    Hand(131, 2);
  }

  void SocHead(uint32_t type, uint32_t sub, int64_t tick) {
    Put(static_cast<uint16_t>(type | (count_++ & 15u) << 6 | sub << 10), abi::kSocProfileMagic,
        uint32_t{0}, kDeviceCount + static_cast<uint64_t>(tick + 1) * kCountPerTick);
  }

  void Soc(int64_t tick) {
    for (uint16_t die = 0; die < 2; ++die) {
      SocHead(25, 0, tick);
      Put(uint16_t{0}, die, uint32_t{0});
      for (int i = 0; i < 10; ++i) Put(random_.Below(100'000'000));
    }
    for (uint16_t acc = 0; acc < 8; ++acc) {
      SocHead(26, 0, tick);
      Put(uint16_t{0}, acc, uint32_t{0}, uint32_t{0}, uint32_t{0});
      for (int i = 0; i < 4; ++i) Put(uint64_t{random_.Below(100'000)});
    }
    for (uint16_t link = 0; link < 6; ++link) {
      SocHead(27, link < 4 ? 0b111111 : 0b100010, tick);
      Put(uint16_t{0}, link, uint32_t{0}, uint32_t{0}, uint32_t{0}, uint64_t{random_.Below(50'000)},
          uint64_t{random_.Below(50'000)}, uint64_t{0}, uint64_t{0});
    }
    SocHead(28, 0, tick);
    Put(uint32_t{0}, uint32_t{0}, uint32_t{0}, uint32_t{0}, uint16_t{0}, uint16_t{0});
    for (int i = 0; i < 7; ++i) Put(random_.Below(2048));
    Hand(52, 17);
    Put(uint32_t{0}, uint32_t{0}, uint64_t{0},
        kDeviceCount + static_cast<uint64_t>(tick + 1) * kCountPerTick);
    for (int i = 0; i < 10; ++i) Put(random_.Below(4000));
    Hand(133, 1);
  }

  std::string Timestamp(int64_t tick) const {
    const int64_t ns = kDeviceNs + (tick + 1) * 10 * kNsPerMs;
    return fmt::format("{}:{:09}", ns / kNsPerSecond, ns % kNsPerSecond);
  }

  void Network(int64_t tick) {
    const std::string timestamp = Timestamp(tick);
    for (uint32_t channel : {4u, 129u}) {
      const uint64_t rate = 8'000'000'000 + random_.Below(1'000'000'000);
      total_ += rate / 100;
      PutText(fmt::format("{} 200000 {} {} {} {} 0 0 {} {} {} {} 0 0 0\n", timestamp, rate / 4096, rate,
                          total_ / 4096, total_, rate / 4096, rate, total_ / 4096, total_));
      Hand(channel, 1);
    }
    for (int engine = 0; engine < 7; ++engine) {
      PutText(fmt::format("{} 0 {} 0 {} {} {}% 0 0 0% 0 0\n", timestamp, engine, random_.Below(10'000),
                          random_.Below(60), random_.Below(100)));
    }
    Hand(6, 7);
  }

  void Links(int64_t tick) {
    total_ += random_.Below(1'000'000'000);
    PutText(fmt::format("{} {} {}\n", Timestamp(tick), total_, total_ / 2));
    Hand(9, 1);
    Put(static_cast<uint64_t>(kDeviceNs + (tick + 1) * 10 * kNsPerMs), static_cast<uint32_t>(id_));
    for (int group = 0; group < 7; ++group) {
      const uint32_t least = random_.Below(1000);
      Put(least, least + 800, least + 300);
    }
    Hand(3, 1);
  }

  void Modules(int64_t tick) {
    const auto count = static_cast<uint64_t>(tick + 1) * 1'000'000;
    for (uint32_t module = 0; module < 53; ++module) {
      Put(module, uint32_t{0}, count, uint64_t{880'096} + random_.Below(4096) * 4096ULL);
    }
    Hand(142, 53);
  }

  void Frequency(int64_t tick) {
    Put(uint32_t{1}, uint32_t{0});
    for (int i = 0; i < 55; ++i) {
      const bool used = i == 0;
      Put(used ? kDeviceCount + static_cast<uint64_t>(tick + 1) * kCountPerTick : uint64_t{0},
          used ? 1500 + random_.Below(300) : 0u, uint32_t{0});
    }
    Hand(132, 1);
  }

  static constexpr SessionDump::Channel kNone = ~SessionDump::Channel{0};
  SessionDump& dump_;
  const int id_;
  Random random_;
  uint32_t count_ = 0;
  uint64_t total_ = 410'297'995'834;
  uint64_t records_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<SessionDump::Channel> handles_;
};

SessionDumpOptions OptionsOf(int devices) {
  SessionDumpOptions options;
  options.owner = {::getuid(), ::getgid()};
  options.node.hostname = "bench";
  options.node.logical_cpus = 192;
  options.node.memory_total_kb = 1'583'221'744;
  options.node.host_counter_hz = 100e6;
  options.session.pid = 4242;
  options.session.start_wall_ns = kStartWallNs;
  options.session.start_raw_ns = kStartRawNs;
  options.host_clocks = {kStartRawNs, 0, 0, 0, 0};
  options.sync_at_end = false;
  for (int id = 0; id < devices; ++id) {
    options.session.devices.push_back(id);
    options.devices.push_back({.facts = {.id = id, .chip_id = 5, .counter_hz = 50e6, .aicore_mhz = 1800},
                               .clocks = DumpClocks{kStartRawNs, 0, kDeviceNs, kDeviceCount, 100}});
  }
  return options;
}

int Main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: make_dump ROOT SECONDS [DEVICES]\n");
    return 2;
  }
  const int seconds = std::atoi(argv[2]);
  const int devices = argc == 4 ? std::atoi(argv[3]) : 8;
  DumpRoot root = DumpRoot::Open(argv[1]).value();
  auto dump = SessionDump::Create(root, OptionsOf(devices)).value();
  std::vector<Device> all;
  for (int id = 0; id < devices; ++id) all.emplace_back(*dump, id);
  const auto begin = std::chrono::steady_clock::now();
  const int64_t ticks = int64_t{seconds} * kTicksPerSecond;
  for (int64_t tick = 0; tick < ticks; ++tick) {
    for (Device& device : all) device.Tick(tick);
  }
  EndFacts end;
  end.wall_ns = kStartWallNs + int64_t{seconds} * kNsPerSecond;
  end.raw_ns = kStartRawNs + int64_t{seconds} * kNsPerSecond;
  const std::string path = dump->path();
  if (Status status = dump->Finish(end); !status.ok()) {
    std::fprintf(stderr, "make_dump: %s\n", status.message().c_str());
    return 1;
  }
  uint64_t records = 0;
  for (const Device& device : all) records += device.records();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{}\n{} bytes, {} records, {:.1f} s\n", path, dump->bytes_written(), records,
             took.count());
  return 0;
}

}  // namespace
}  // namespace profd::bench

int main(int argc, char** argv) { return profd::bench::Main(argc, argv); }
