#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text.h"
#include "dump/data_name.h"
#include "dump/verify_run.h"

namespace profd {
namespace {

// Two clocks of one machine drift by less, whatever their crystals.
constexpr double kMaxDrift = 1e-3;
// Too short a time is not enough for a rate.
constexpr int64_t kShortNs = kNsPerSecond;

// Value of `key: <number>` in a *_start.log.
std::optional<uint64_t> LogValue(std::string_view text, std::string_view key) {
  std::string_view line;
  while (NextLine(&text, &line)) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    uint64_t number = 0;
    return ParseNumber(Trim(line.substr(key.size() + 1)), &number) ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

class ClockCheck {
 public:
  explicit ClockCheck(VerifyRun& run) : run_(run) {}

  void CheckPlace(const std::string& dir, int device) {
    const std::string suffix = device >= 0 ? fmt::format(".{}", device) : "";
    CheckJson(dir + "/info.json" + suffix, {"platform_version", "CPU", "DeviceInfo"});
    CheckJson(dir + "/sample.json", {"devices"});
    CheckJson(dir + "/start_info" + suffix, {"collectionTimeBegin", "clockMonotonicRaw"});
    if (run_.manifest && run_.manifest->state != DumpState::kRunning) {
      CheckJson(dir + "/end_info" + suffix, {"collectionTimeEnd", "clockMonotonicRaw"});
    }
    if (device >= 0) {
      CheckLog(dir + "/host_start.log" + suffix, device, true);
      CheckLog(dir + "/dev_start.log" + suffix, device, false);
    } else {
      CheckLog(dir + "/host_start.log", -1, true);
    }
  }

  // Clock pairs of one device in their order.
  void CheckPairs(int device, const std::vector<const ManifestClock*>& pairs) {
    double counter_hz = 0;
    for (const ManifestDevice& known : run_.manifest->devices) {
      if (known.id == device) counter_hz = known.counter_hz;
    }
    for (size_t i = 1; i < pairs.size(); ++i) {
      const DumpClocks& a = pairs[i - 1]->clocks;
      const DumpClocks& b = pairs[i]->clocks;
      const std::string where = fmt::format("clocks of device {}", device);
      if (b.host_ns < a.host_ns || b.device_ns < a.device_ns) {
        run_.Add(VerifyCheck::kClocks, where,
                 fmt::format("the \"{}\" pair is older than the one before it", pairs[i]->when));
        continue;
      }
      if (b.host_ns - a.host_ns < kShortNs) continue;
      const auto host = static_cast<double>(b.host_ns - a.host_ns);
      CheckRate(where, "clock", static_cast<double>(b.device_ns - a.device_ns) / host);
      if (counter_hz > 0 && b.device_count != 0) {
        const auto cycles = static_cast<double>(b.device_count - a.device_count);
        CheckRate(where, "counter", cycles * 1e9 / counter_hz / host);
      }
    }
  }

 private:
  void CheckRate(const std::string& where, std::string_view what, double rate) {
    if (std::abs(rate - 1) <= kMaxDrift) return;
    run_.Add(VerifyCheck::kClocks, where,
             fmt::format("the device's {} runs at {:.6f} of the host's clock", what, rate));
  }

  void CheckJson(const std::string& path, const std::vector<const char*>& keys) {
    std::optional<std::string> text = run_.Read(path);
    if (!text) {
      run_.Add(VerifyCheck::kClocks, path, "is missing");
      return;
    }
    if (text->find('\n') < text->size() - 1) {
      run_.Add(VerifyCheck::kClocks, path, "is not on one line");
    }
    auto json = nlohmann::json::parse(*text, nullptr, false);
    if (!json.is_object()) {
      run_.Add(VerifyCheck::kClocks, path, "is not a JSON object");
      return;
    }
    for (const char* key : keys) {
      if (!json.contains(key)) {
        run_.Add(VerifyCheck::kClocks, path, fmt::format("has no {}", key));
      }
    }
  }

  // A start log against the pair of the manifest it was written from.
  void CheckLog(const std::string& path, int device, bool host_side) {
    const ManifestClock* start = nullptr;
    if (run_.manifest) {
      for (const ManifestClock& clock : run_.manifest->clocks) {
        if (clock.device == device && clock.when == "start") start = &clock;
      }
    }
    std::optional<std::string> text = run_.Read(path);
    if (!text) {
      // A device whose clocks could not be read has the host's. They are read after the dump was made: while it is
      // written they may be to come.
      if (start != nullptr || !run_.running()) run_.Add(VerifyCheck::kClocks, path, "is missing");
      return;
    }
    std::optional<uint64_t> ns = LogValue(*text, "clock_monotonic_raw");
    std::optional<uint64_t> count = LogValue(*text, "cntvct");
    if (!ns || !count) {
      run_.Add(VerifyCheck::kClocks, path, "has no clock_monotonic_raw or no cntvct");
      return;
    }
    if (start == nullptr) return;
    const DumpClocks& clocks = start->clocks;
    const auto want_ns = static_cast<uint64_t>(host_side ? clocks.host_ns : clocks.device_ns);
    const uint64_t want_count = host_side ? clocks.host_count : clocks.device_count;
    if (*ns != want_ns || *count != want_count) {
      run_.Add(VerifyCheck::kClocks, path,
               fmt::format("has {} ns, {} cycles; the manifest {} ns, {} cycles", *ns, *count,
                           want_ns, want_count));
    }
  }

  VerifyRun& run_;
};

}  // namespace

void CheckClocks(VerifyRun& run) {
  run.Ran(VerifyCheck::kClocks);
  ClockCheck check(run);
  std::map<std::string, int> places;
  for (const auto& [path, bytes] : run.sizes) {
    std::string dir = path.substr(0, path.find('/'));
    const std::optional<int> device = DeviceOfFolder(dir);
    if (device) places[dir] = *device;
  }
  for (const auto& [dir, device] : places) check.CheckPlace(dir, device);
  if (!run.manifest) return;
  std::map<int, std::vector<const ManifestClock*>> pairs;
  for (const ManifestClock& clock : run.manifest->clocks) {
    if (clock.device >= 0) pairs[clock.device].push_back(&clock);
  }
  for (auto& [device, list] : pairs) {
    // Dumps of the flight recorder have the pair of their start behind those of the time since.
    std::ranges::stable_sort(list, {}, [](const ManifestClock* c) { return c->clocks.host_ns; });
    check.CheckPairs(device, list);
  }
}

}  // namespace profd
