// Input: which collector and which processes, then files (file_tree.h) below proc/ and sys/; a file
// called "tick" polls what has been written so far and 20 ms go by.
#include <memory>
#include <vector>

#include "collectors/collector.h"
#include "driver/rooted_fs.h"
#include "tests/fuzz/bounded_registry.h"
#include "tests/fuzz/file_tree.h"

namespace profd {
namespace {

// Devices and processes of a node are bounded, and so are their series.
constexpr size_t kMaxSeries = 100'000;

// A dump's file names: nothing that the host's text says may lead elsewhere.
class CheckingSink final : public RawSink {
 public:
  void WriteHostFile(std::string_view file, std::string_view lines) override {
    FUZZ_EXPECT(!file.empty() && file.find('/') == std::string_view::npos);
    FUZZ_EXPECT(lines.empty() || lines.back() == '\n');
  }
};

std::vector<const CollectorEntry*> HostCollectors() {
  std::vector<const CollectorEntry*> entries;
  for (const CollectorEntry& entry : Collectors()) {
    if (entry.spec->source == CollectorSource::kHost) entries.push_back(&entry);
  }
  return entries;
}

PollOptions TakeOptions(fuzz::Input& input) {
  const auto bits = input.Take<uint8_t>();
  PollOptions options;
  options.hz = 50;
  options.system = (bits & 1) == 0;
  options.processes.all = (bits & 2) != 0;
  if ((bits & 4) != 0) options.processes.pids = {42};
  if ((bits & 8) != 0) options.processes.job_id = "job-1";
  if ((bits & 16) != 0) options.processes.only_uid = 1000;
  return options;
}

}  // namespace

void fuzz::Run(Input input) {
  static fuzz::TreeDirectory tree;
  static const std::vector<const CollectorEntry*> entries = HostCollectors();
  tree.Clear();
  tree.Write("proc/version", "");
  tree.Write("sys/kernel/notes", "");
  Result<RootedFs> proc = RootedFs::OpenRoot(tree.path() + "/proc");
  Result<RootedFs> sys = RootedFs::OpenRoot(tree.path() + "/sys");
  FUZZ_EXPECT(proc.ok() && sys.ok());
  const ManualClock clock;
  const Host host{clock, *proc, *sys, nullptr, {}, 0};

  const CollectorEntry& entry = *entries[input.TakeIndex(entries.size())];
  fuzz::BoundedRegistry registry(kMaxSeries);
  Result<std::unique_ptr<PolledCollector>> collector =
      entry.make_poller(host, TakeOptions(input), registry);
  if (!collector.ok()) return;
  SampleBatch batch;
  CheckingSink sink;
  PollOutput out{batch, sink};
  int64_t now_ns = kNsPerSecond;
  auto poll = [&] {
    batch.Clear();
    (*collector)->Poll({now_ns, now_ns, 0}, out).Ignore();
    registry.Check(batch);
    now_ns += 20 * kNsPerMs;
  };
  int ticks = 0;
  fuzz::ForEachFile(input.rest(), [&](std::string_view path, std::string_view content) {
    if (path != "tick") {
      tree.Write(path, content);
    } else if (++ticks <= 4) {
      poll();
    }
  });
  poll();
  entry.probe_host(host).Ignore();
}

}  // namespace profd
