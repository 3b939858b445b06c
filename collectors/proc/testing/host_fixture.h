// A host made of fake trees, and a polled collector on it: for the tests of the host collectors.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collectors/collector.h"
#include "collectors/proc/testing/count_allocations.h"
#include "collectors/proc/testing/fake_tree.h"
#include "collectors/testing/fake_registry.h"
#include "driver/rooted_fs.h"

namespace profd::testing {

// Keeps what a dump would hold.
class RecordingSink final : public RawSink {
 public:
  void WriteHostFile(std::string_view file, std::string_view lines) override {
    files[std::string(file)] += lines;
  }
  std::map<std::string, std::string> files;
};

class NullSink final : public RawSink {
 public:
  void WriteHostFile(std::string_view, std::string_view) override {}
};

// Instants of the tests: milliseconds after one second of the raw clock.
inline Tick TickAt(int64_t ms) {
  const int64_t ns = kNsPerSecond + ms * kNsPerMs;
  return {ns, ns, 0};
}

inline ProcessScope All() {
  ProcessScope scope;
  scope.all = true;
  return scope;
}
inline ProcessScope Roots(std::vector<int> pids) {
  ProcessScope scope;
  scope.pids = std::move(pids);
  return scope;
}
inline ProcessScope Job(std::string id) {
  ProcessScope scope;
  scope.job_id = std::move(id);
  return scope;
}
inline ProcessScope AndAll(ProcessScope scope) {
  scope.all = true;
  return scope;
}
inline ProcessScope OnlyOf(uint32_t uid, ProcessScope scope) {
  scope.only_uid = uid;
  return scope;
}

class FakeHost {
 public:
  FakeHost()
      : proc_fs(std::move(RootedFs::OpenRoot(proc.root()).value())),
        sys_fs(std::move(RootedFs::OpenRoot(sys.root()).value())) {}

  Host host() const { return {clock, proc_fs, sys_fs, nullptr, {}, 0}; }

  FakeTree proc;
  FakeTree sys;
  RootedFs proc_fs;
  RootedFs sys_fs;
  ManualClock clock;
};

// One instance of a collector with everything it writes to.
class PolledRig {
 public:
  PolledRig(const CollectorEntry& entry, const FakeHost& fake, const PollOptions& options = {})
      : host(fake.host()) {
    Result<std::unique_ptr<PolledCollector>> made = entry.make_poller(host, options, registry);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (made.ok()) collector = std::move(made).value();
  }
  // Polls into emptied batch and sink.
  Status PollAt(int64_t ms) {
    batch.Clear();
    sink.files.clear();
    PollOutput out{batch, sink};
    return collector->Poll(TickAt(ms), out);
  }
  std::string Samples() const { return registry.PrintValues(batch); }
  // Allocations of `polls` polls 5 ms apart, raw text thrown away. Warms up before.
  uint64_t AllocationsOf(int polls) {
    NullSink nowhere;
    PollOutput out{batch, nowhere};
    uint64_t before = 0;
    for (int i = 0; i < polls + 5; ++i) {
      if (i == 5) before = Allocations();
      batch.Clear();
      EXPECT_TRUE(collector->Poll(TickAt(i * 5), out).ok());
    }
    return Allocations() - before;
  }

  Host host;
  FakeRegistry registry;
  SampleBatch batch;
  RecordingSink sink;
  std::unique_ptr<PolledCollector> collector;
};

}  // namespace profd::testing
