#include "sim/node.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include "base/text.h"

namespace profd::sim {

Node::Node(Scenario scenario, const Clock& clock, int64_t epoch_raw_ns)
    : scenario_(std::move(scenario)),
      chip_(*FindChip(scenario_.chip)),
      clock_(clock),
      played_(epoch_raw_ns, scenario_.time_scale),
      timeline_(scenario_, chip_),
      faults_(scenario_.faults) {
  for (int device = 0; device < scenario_.devices; ++device) {
    models_.push_back(std::make_unique<DeviceModel>(device, scenario_, chip_, timeline_, faults_));
    clocks_.emplace_back(scenario_.seed, device, chip_.counter_hz);
  }
}

namespace {

// Field 22 of the main thread's stat, ns since boot (kept in clock ticks, usually 10 ms). Not
// /proc/self/stat: qemu-user answers that one itself, with the start of the calling thread.
int64_t StartTimeBootNs(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const size_t paren = line.rfind(')');  // the command name may hold anything
  if (paren == std::string::npos) return ReadKernelClock(CLOCK_BOOTTIME);
  std::istringstream fields(line.substr(paren + 1));
  std::string field;
  constexpr int kStartTimeAfterName = 20;
  for (int i = 0; i < kStartTimeAfterName; ++i) fields >> field;
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  return static_cast<int64_t>(std::strtoull(field.c_str(), nullptr, 10)) *
         (kNsPerSecond / (ticks_per_second > 0 ? ticks_per_second : 100));
}

int64_t StartRawNs(const std::string& path) {
  const int64_t start = StartTimeBootNs(path);
  // Read the pair until nothing happened in between, so that two libraries get the same answer.
  int64_t best_gap = INT64_MAX;
  int64_t difference = 0;
  for (int i = 0; i < 8; ++i) {
    const int64_t before = ReadKernelClock(CLOCK_MONOTONIC_RAW);
    const int64_t boot = ReadKernelClock(CLOCK_BOOTTIME);
    const int64_t after = ReadKernelClock(CLOCK_MONOTONIC_RAW);
    if (after - before >= best_gap) continue;
    best_gap = after - before;
    difference = boot - (before + (after - before) / 2);
  }
  return start - difference;
}

}  // namespace

int64_t ProcessStartRawNs() {
  std::error_code failed;  // then its files do not exist either
  const std::string pid = std::filesystem::read_symlink("/proc/self", failed).string();
  return StartRawNs("/proc/self/task/" + pid + "/stat");
}

int64_t ProcessStartRawNs(int pid) { return StartRawNs("/proc/" + std::to_string(pid) + "/stat"); }

Result<int64_t> EpochFromEnvironment(int64_t otherwise) {
  const char* const text = std::getenv(kEpochEnv);
  if (text == nullptr || *text == '\0') return otherwise;
  int64_t epoch_ns = 0;
  if (ParseNumber(std::string_view(text), &epoch_ns)) return epoch_ns;
  return InvalidArgument(std::string(kEpochEnv) + " must be nanoseconds of CLOCK_MONOTONIC_RAW");
}

std::unique_ptr<Node> NodeFromEnvironment(const char* library) {
  Result<Scenario> scenario = ScenarioFromEnvironment();
  const Result<int64_t> epoch = EpochFromEnvironment(ProcessStartRawNs());
  const Status problem = scenario.ok() ? epoch.status() : scenario.status();
  if (!problem.ok()) {
    std::fprintf(stderr, "profd sim (%s): %s\n", library, problem.message().c_str());
    return nullptr;
  }
  // Never torn down, as the libraries are not.
  static const SystemClock* const real = new SystemClock;
  static const KernelClock* const kernel = new KernelClock;
  const Clock& clock = scenario->time_scale == 1 ? static_cast<const Clock&>(*real) : *kernel;
  return std::make_unique<Node>(std::move(scenario).value(), clock, *epoch);
}

}  // namespace profd::sim
