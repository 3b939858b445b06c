// From a block to the file: the session's view of it, and the slice.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "bench/micro/bench_support.h"
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

// A folder that goes away again.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "profd_bench_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
    fd_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  UniqueFd fd_;
};

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

BENCHMARK(Append)->Name("slice_writer/append_hbm_records")->Arg(2)->Arg(64)->Arg(2048);

}  // namespace
}  // namespace profd::bench
