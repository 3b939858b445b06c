// From a block to the file: the session's view of it, and the slice.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bench/counting_io.h"
#include "bench/micro/bench_support.h"
#include "dump/session_dump.h"
#include "dump/slice_writer.h"
#include "dump/stream_filter.h"

namespace profd::bench {
namespace {

constexpr uint32_t kHbm = 1;
constexpr uint32_t kPcie = 3;
constexpr uint32_t kHccs = 9;

enum View { kVerbatim, kThin, kRebase };

void Filter(benchmark::State& state, uint32_t channel, View view) {
  const ChannelData& data = DataOf(channel);
  if (data.records == 0) return state.SkipWithError("the simulated chip has no such channel");
  StreamFilterOptions options;
  options.format = data.format;
  options.channel_period_ns = 10 * kNsPerMs;
  options.session_period_ns = view == kThin ? 50 * kNsPerMs : options.channel_period_ns;
  options.rebase_us = view == kRebase ? 1000 : 0;
  for (auto _ : state) {
    StreamFilter filter(options);
    benchmark::DoNotOptimize(filter.Filter(data.bytes, data.records));
  }
  const auto records = static_cast<double>(data.records);
  Report(state, data.records, CopyNs(data.bytes) / records, "memcpy of the record");
}

void Append(benchmark::State& state) {
  const ChannelData& data = DataOf(kHbm);
  const auto records = static_cast<size_t>(state.range(0));
  const size_t size = records * 24;
  if (data.bytes.size() < size) return state.SkipWithError("too few records");
  Folder folder;
  SliceOptions options;
  options.base = "hbm.data";
  options.device = 0;
  SliceWriter writer(SystemDumpIo(), folder.fd(), {::getuid(), ::getgid()}, options);
  std::span<const std::byte> block = std::span(data.bytes).first(size);
  for (auto _ : state) {
    if (!writer.Append(block, records).ok()) return state.SkipWithError("Append");
  }
  writer.Close().Ignore();
  // The same bytes to one file, 64 KiB at a time.
  UniqueFd file(::openat(folder.fd(), "floor", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::vector<std::byte> full(64 * 1024);
  double floor =
      FloorNs([&] { benchmark::DoNotOptimize(::pwrite(file.get(), full.data(), full.size(), 0)); });
  Report(state, 1, floor * static_cast<double>(size) / static_cast<double>(full.size()),
         "pwrite of the bytes in pieces of 64 KiB");
}

// A plain write of `bytes` into new files of a slice's size.
double PlainWriteNs(const Folder& folder, std::span<const std::byte> bytes) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::max();
  for (int run = 0; run < 3; ++run) {
    const auto begin = Clock::now();
    for (size_t at = 0; at < bytes.size(); at += kDefaultSliceBytes) {
      auto slice = bytes.subspan(at, std::min<size_t>(kDefaultSliceBytes, bytes.size() - at));
      UniqueFd file(::openat(folder.fd(), "plain", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      while (!slice.empty()) {
        const ssize_t put = ::write(file.get(), slice.data(), std::min<size_t>(slice.size(), 256 << 10));
        if (put <= 0) std::abort();
        slice = slice.subspan(static_cast<size_t>(put));
      }
      ::unlinkat(folder.fd(), "plain", 0);
    }
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  }
  return best;
}

// A session's whole way from blocks of range(0) bytes to closed slices with check sums and journal,
// under a limit that ages all the time. Iteration = one pass over some 16 MB, a flush every 5 MB.
void Ingest(benchmark::State& state) {
  constexpr size_t kPass = 16u << 20;
  constexpr size_t kRecord = 24;
  constexpr uint64_t kFlushBytes = 5'000'000;
  const size_t block = static_cast<size_t>(state.range(0)) / kRecord * kRecord;
  std::vector<std::byte> source(kPass / block * block);
  const ChannelData& data = DataOf(kHbm);
  for (size_t at = 0; at < source.size(); at += data.bytes.size()) {
    std::memcpy(source.data() + at, data.bytes.data(), std::min(data.bytes.size(), source.size() - at));
  }
  Folder folder;
  CountingIo io(source);
  DumpRoot root = DumpRoot::Open(folder.path() + "/root").value();
  SessionDumpOptions options;
  options.devices.emplace_back().facts.chip_id = 5;
  options.owner = {::getuid(), ::getgid()};
  options.sync_at_end = false;
  options.max_bytes = 128u << 20;
  options.age_at_limit = true;
  auto dump = SessionDump::Create(root, std::move(options), io).value();
  const SessionDump::Channel channel = dump->OpenChannel(0, kHbm).value();
  uint64_t bytes = 0;
  uint64_t unflushed = 0;
  for (auto _ : state) {
    for (size_t at = 0; at < source.size(); at += block) {
      Status status = dump->Append(channel, std::span(source).subspan(at, block), block / kRecord, 1);
      if (!status.ok()) return state.SkipWithError(status.message().c_str());
      unflushed += block;
      if (unflushed < kFlushBytes) continue;
      dump->Flush().Ignore();
      unflushed = 0;
    }
    bytes += source.size();
  }
  dump->Finish({}).Ignore();
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  const double floor = PlainWriteNs(folder, source) / static_cast<double>(source.size());
  const auto all = static_cast<double>(bytes);
  state.counters["floor_MB/s"] = 1e3 / floor;
  // Each byte is copied once into the page cache; the rest is ours.
  state.counters["copies/byte"] = static_cast<double>(io.written + io.copied) / all;
  state.counters["bytes/call"] = all / static_cast<double>(io.calls);
  state.SetLabel("floor: plain write into new files");
}

void RegisterAll() {
  auto add = [](const char* name, uint32_t channel, View view) {
    benchmark::RegisterBenchmark(name, Filter, channel, view);
  };
  add("stream_filter/hbm_verbatim", kHbm, kVerbatim);
  add("stream_filter/hbm_sum", kHbm, kThin);
  add("stream_filter/hbm_rebase", kHbm, kRebase);
  add("stream_filter/pcie_pick", kPcie, kThin);
  add("stream_filter/hccs_text_pick", kHccs, kThin);
}

const bool kRegistered = (RegisterAll(), true);

BENCHMARK(Ingest)->Name("session_dump/ingest")->Arg(1 << 10)->Arg(8 << 10)->Arg(64 << 10)->Arg(256 << 10);
BENCHMARK(Append)->Name("slice_writer/append_hbm_records")->Arg(2)->Arg(64)->Arg(2048);

}  // namespace
}  // namespace profd::bench
