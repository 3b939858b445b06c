// How fast a dump takes driver bytes: blocks of HBM records of eight devices go through the
// daemon's SessionDump for so long, with a storage limit, so that the dump stays as large as it is
// allowed to and the oldest goes. Prints one line of JSON: bytes, seconds, CPU, copies per byte
// (the one into the page cache included, counted where the bytes are handed over), and the same
// blocks through write(2) and nothing else.
//
// usage: ingest ROOT SECONDS [BLOCK_KIB [LIMIT_MIB [MB_PER_SECOND]]]
// MB_PER_SECOND 0 = as fast as it goes. ROOT on tmpfs measures the writer, not a disk.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "bench/counting_io.h"
#include "driver/abi/channels.h"
#include "dump/session_dump.h"

namespace profd::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr int kDevices = 8;

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// 1 for the kernel's own copy, and the share of the bytes that had been copied before.
double CopiesPerByte(const CountingIo& io) {
  return io.written == 0 ? 0 : 1 + static_cast<double>(io.copied) / static_cast<double>(io.written);
}

std::vector<std::byte> HbmBlock(size_t bytes) {
  std::vector<std::byte> block(bytes / 24 * 24);
  for (size_t i = 0; i < block.size() / 24; ++i) {
    std::span<std::byte> record = std::span(block).subspan(24 * i, 24);
    StoreUnchecked(record, 0, static_cast<uint64_t>(i / 8 * 10'000));
    StoreUnchecked(record, 8, static_cast<uint64_t>(i * 977));
    StoreUnchecked(record, 16, static_cast<uint32_t>(i & 1));
    StoreUnchecked(record, 20, static_cast<uint32_t>(i / 2 % 4));
  }
  return block;
}

struct Load {
  double seconds = 0;
  double bytes_per_second = 0;  // 0 = all there is
};

struct Run {
  uint64_t bytes = 0;
  double seconds = 0;
  double cpu = 0;
};

// `one` takes one block.
template <class One>
Run Drive(const Load& load, size_t block_bytes, One one) {
  Run run;
  const double cpu = CpuSeconds();
  const auto begin = SteadyClock::now();
  for (;;) {
    run.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
    if (run.seconds >= load.seconds) break;
    if (load.bytes_per_second > 0) {
      const double due = static_cast<double>(run.bytes) / load.bytes_per_second;
      if (due > run.seconds) {
        std::this_thread::sleep_for(std::chrono::duration<double>(due - run.seconds));
        continue;
      }
    }
    for (int i = 0; i < kDevices; ++i) one(i);
    run.bytes += block_bytes * kDevices;
  }
  run.cpu = CpuSeconds() - cpu;
  return run;
}

SessionDumpOptions Options(uint64_t limit) {
  SessionDumpOptions options;
  options.owner = {::getuid(), ::getgid()};
  options.host_clocks = {1000, 0, 0, 0, 0};
  options.sync_at_end = false;
  options.max_bytes = limit;
  options.age_at_limit = true;
  for (int id = 0; id < kDevices; ++id) {
    options.session.devices.push_back(id);
    options.devices.push_back({.facts = {.id = id, .chip_id = 5, .counter_hz = 50e6},
                               .clocks = DumpClocks{1000, 0, 0, 0, 100}});
  }
  return options;
}

[[noreturn]] void Die(const Status& status) {
  std::fprintf(stderr, "ingest: %s\n", status.message().c_str());
  std::exit(1);
}

// The same blocks into files that are begun anew before they grow too large.
Run Floor(const std::string& folder, const std::vector<std::byte>& block, const Load& load,
          uint64_t limit) {
  std::vector<UniqueFd> files;
  std::vector<std::string> names;
  for (int i = 0; i < kDevices; ++i) {
    names.push_back(fmt::format("{}/floor.{}", folder, i));
    files.emplace_back(::open(names.back().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600));
  }
  std::vector<uint64_t> sizes(kDevices);
  Run run = Drive(load, block.size(), [&](int i) {
    const auto index = static_cast<size_t>(i);
    if (sizes[index] > limit / kDevices) {
      if (::ftruncate(files[index].get(), 0) != 0) Die(Status::FromErrno(errno, "truncate"));
      if (::lseek(files[index].get(), 0, SEEK_SET) != 0) Die(Status::FromErrno(errno, "seek"));
      sizes[index] = 0;
    }
    if (::write(files[index].get(), block.data(), block.size()) !=
        static_cast<ssize_t>(block.size())) {
      Die(Status::FromErrno(errno, "write"));
    }
    sizes[index] += block.size();
  });
  for (const std::string& name : names) ::unlink(name.c_str());
  return run;
}

int Main(int argc, char** argv) {
  if (argc < 3 || argc > 6) {
    std::fprintf(stderr, "usage: ingest ROOT SECONDS [BLOCK_KIB [LIMIT_MIB [MB_PER_SECOND]]]\n");
    return 2;
  }
  Load load;
  load.seconds = std::atof(argv[2]);
  const size_t block_bytes = (argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 64) << 10;
  const uint64_t limit = (argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 2048) << 20;
  load.bytes_per_second = (argc > 5 ? std::atof(argv[5]) : 0) * 1e6;
  const std::vector<std::byte> block = HbmBlock(block_bytes);
  CountingIo io(block);
  Result<DumpRoot> root = DumpRoot::Open(argv[1]);
  if (!root.ok()) Die(root.status());
  auto dump = SessionDump::Create(*root, Options(limit), io);
  if (!dump.ok()) Die(dump.status());
  std::vector<SessionDump::Channel> channels;
  for (int id = 0; id < kDevices; ++id) channels.push_back((*dump)->OpenChannel(id, 1).value());
  int64_t host_ns = 1000;
  auto flushed = SteadyClock::now();
  Run run = Drive(load, block.size(), [&](int i) {
    host_ns += 1000;
    Status status =
        (*dump)->Append(channels[static_cast<size_t>(i)], block, block.size() / 24, host_ns);
    if (!status.ok()) Die(status);
    if (SteadyClock::now() - flushed < std::chrono::seconds(1)) return;
    flushed = SteadyClock::now();
    if (status = (*dump)->Flush(); !status.ok()) Die(status);
  });
  const std::string path = (*dump)->path();
  EndFacts end;
  end.raw_ns = host_ns;
  if (Status status = (*dump)->Finish(end); !status.ok()) Die(status);
  Run floor = Floor(argv[1], block, load, limit);
  fmt::print(
      "{{\"dump\": \"{}\", \"block_kib\": {}, \"bytes\": {}, \"seconds\": {:.3f}, \"cpu_s\": "
      "{:.3f}, "
      "\"copies_per_byte\": {:.3f}, \"floor_bytes\": {}, \"floor_seconds\": {:.3f}, "
      "\"floor_cpu_s\": {:.3f}}}\n",
      path, block_bytes >> 10, run.bytes, run.seconds, run.cpu, CopiesPerByte(io), floor.bytes,
      floor.seconds, floor.cpu);
  return 0;
}

}  // namespace
}  // namespace profd::bench

int main(int argc, char** argv) { return profd::bench::Main(argc, argv); }
