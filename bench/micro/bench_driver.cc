// Framing, reading and decoding, channel by channel.
#include <algorithm>
#include <cstring>
#include <string>

#include "bench/micro/bench_support.h"
#include "collectors/channel_options.h"
#include "daemon/metrics/metric_store.h"
#include "driver/block.h"
#include "driver/channel_table.h"
#include "driver/framer.h"

namespace profd::bench {
namespace {

void Frame(benchmark::State& state, uint32_t channel) {
  const ChannelData& data = DataOf(channel);
  if (data.records == 0) return state.SkipWithError("the simulated chip has no such channel");
  std::vector<std::byte> buffer = data.bytes;
  for (auto _ : state) {
    // A framer of its own each time: the timestamps begin anew.
    Framer framer(*data.format);
    benchmark::DoNotOptimize(framer.Frame(buffer, true));
  }
  const auto records = static_cast<double>(data.records);
  Report(state, data.records, CopyNs(data.bytes) / records, "memcpy of the record");
}

void Decode(benchmark::State& state, const CollectorEntry* entry, uint32_t channel) {
  const ChannelData& data = DataOf(channel);
  if (data.records == 0) return state.SkipWithError("the simulated chip has no such channel");
  Bench& bench = TheBench();
  MetricStore store;
  auto decoder = entry->make_decoder(bench.devices[0], channel, store);
  SampleBatch batch;
  TimeBase time;
  time.device_counter_hz = 50e6;
  for (auto _ : state) {
    batch.Clear();
    decoder->Reset();  // or it would refuse the same timestamps a second time
    decoder->Decode(data.bytes, time, batch);
    benchmark::DoNotOptimize(batch.samples().data());
  }
  const auto records = static_cast<double>(data.records);
  Report(state, data.records, CopyNs(data.bytes) / records, "memcpy of the record");
  state.counters["samples_per_record"] = static_cast<double>(batch.samples().size()) / records;
}

void Pool(benchmark::State& state) {
  BlockPool pool(1 << 20);
  for (auto _ : state) {
    BlockRef block = pool.Get(4096).Finish({}, 100);
    benchmark::DoNotOptimize(block.bytes().data());
  }
  auto floor = [] {
    // Not DoNotOptimize(memory): with g++ 12 that loses the pointer's value.
    auto* memory = static_cast<volatile char*>(::operator new(4096));
    *memory = 1;
    ::operator delete(const_cast<char*>(memory));
  };
  Report(state, 1, FloorNs(floor), "new and delete of 4 KiB");
}

struct NullSink final : BlockSink {
  void OnBlock(BlockRef) override {}
  void OnLoss(const BlockLoss&) override {}
  void OnDeviceStuck(uint32_t, std::string_view) override {}
  void OnDeviceRecovered(uint32_t) override {}
};

// A driver whose every second read gives the next records, as one that is polled does.
std::span<const std::byte> g_chunk;
bool g_dry = false;
int ReadChunk(unsigned, unsigned, char* out, unsigned size) {
  g_dry = !g_dry;
  if (!g_dry || size < g_chunk.size()) return 0;
  std::memcpy(out, g_chunk.data(), g_chunk.size());
  return static_cast<int>(g_chunk.size());
}

// Find, lock, read until dry, frame, copy to a block, deliver: all the pump does for one hit.
void ReadHit(benchmark::State& state) {
  const ChannelData& data = DataOf(1);  // HBM
  if (data.records == 0) return state.SkipWithError("the simulated chip has no such channel");
  // A slow machine may have recorded fewer than asked for.
  const auto records = std::min(static_cast<size_t>(state.range(0)), size_t{data.records});
  g_chunk = std::span(data.bytes).first(records * data.format->record_size);
  HalSymbols symbols;
  symbols.prof_channel_read = ReadChunk;
  BlockPool pool(8 << 20);
  NullSink sink;
  ChannelTable table(std::make_shared<HalLibrary>(symbols), TheBench().clock, pool, sink, {});
  if (!table.Add(0, 1, data.format, 1).ok()) return state.SkipWithError("Add");
  std::vector<std::byte> scratch(256 * 1024);
  for (auto _ : state) benchmark::DoNotOptimize(table.Read(0, 1, scratch, nullptr));
  Report(state, 1, CopyNs(g_chunk), "memcpy of the chunk");
}

void PollHost(benchmark::State& state, const CollectorEntry* entry, const char* file) {
  Bench& bench = TheBench();
  MetricStore store;
  PollOptions options;
  options.hz = entry->spec->max_hz;
  auto poller = entry->make_poller(*bench.host, options, store);
  if (!poller.ok()) return state.SkipWithError(poller.status().message().c_str());
  struct Nowhere final : RawSink {
    void WriteHostFile(std::string_view, std::string_view) override {}
  } nowhere;
  SampleBatch batch;
  Tick tick;
  for (auto _ : state) {
    batch.Clear();
    tick.due_ns += kNsPerSecond / 50;
    tick.now_ns = tick.due_ns;
    PollOutput out{batch, nowhere};
    (*poller)->Poll(tick, out).Ignore();
  }
  Result<UniqueFd> fd = bench.proc.Open(file);
  std::vector<char> buffer(256 * 1024);
  auto floor = [&] {
    benchmark::DoNotOptimize(::pread(fd->get(), buffer.data(), buffer.size(), 0));
  };
  Report(state, 1, FloorNs(floor), std::string("pread of /proc/") + file);
}

void RegisterAll() {
  for (const abi::ChannelFormat& format : abi::kChannelFormats) {
    benchmark::RegisterBenchmark(("framer/" + std::string(format.name)).c_str(), Frame, format.id);
  }
  for (const CollectorEntry& entry : Collectors()) {
    if (entry.plan == nullptr) continue;
    ChannelOptions options;
    SetEverything(*entry.spec, 50, &options);
    for (const ChannelRequest& request : entry.plan(TheBench().devices[0], options)) {
      const abi::ChannelFormat* format = abi::FindChannelFormat(request.channel);
      if (format == nullptr) continue;
      benchmark::RegisterBenchmark(("decode/" + std::string(format->name)).c_str(), Decode, &entry,
                                   request.channel);
    }
  }
  benchmark::RegisterBenchmark("poll/host_cpu_system", PollHost, FindCollector("host_cpu"), "stat");
  benchmark::RegisterBenchmark("poll/host_mem_system", PollHost, FindCollector("host_mem"),
                               "meminfo");
}

const bool kRegistered = (RegisterAll(), true);

BENCHMARK(Pool)->Name("block_pool/get_finish_release");
BENCHMARK(ReadHit)->Name("read_hit/hbm_records")->Arg(2)->Arg(64)->Arg(2048);

}  // namespace
}  // namespace profd::bench
