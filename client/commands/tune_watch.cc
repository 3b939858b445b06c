#include "client/commands/tune_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"

namespace profd::client {
namespace {

constexpr std::string_view kAdapterSign = "in tune mode, training graph handled by tools.";
constexpr std::string_view kToolSign = "Aoe tuning graph.";
constexpr size_t kMostEntries = 20'000;
constexpr size_t kMostFiles = 100;

}  // namespace

void TuneSigns::Feed(std::string_view bytes) {
  constexpr size_t kLongest = std::max(kAdapterSign.size(), kToolSign.size());
  tail_ += bytes;
  adapter_ = adapter_ || tail_.find(kAdapterSign) != std::string::npos;
  tool_ = tool_ || tail_.find(kToolSign) != std::string::npos;
  if (tail_.size() >= kLongest) tail_.erase(0, tail_.size() - kLongest + 1);
}

TuneResultWatch::TuneResultWatch(std::string folder) : folder_(std::move(folder)), before_(StateOf()) {}

TuneResultWatch::State TuneResultWatch::StateOf() const {
  namespace fs = std::filesystem;
  State state;
  std::error_code error;
  size_t entries = 0;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end && ++entries < kMostEntries; it.increment(error)) {
    if (!analysis::IsTuningResultName(it->path().filename().string(), nullptr, nullptr)) continue;
    struct stat facts {};
    if (::lstat(it->path().c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    state[it->path().string()] = {static_cast<uint64_t>(facts.st_size),
                                  int64_t{facts.st_mtim.tv_sec} * kNsPerSecond + facts.st_mtim.tv_nsec};
  }
  return state;
}

const analysis::TuningResults& TuneResultWatch::Look() {
  State now = StateOf();
  std::erase_if(now, [this](const auto& each) {
    const auto old = before_.find(each.first);
    return old != before_.end() && old->second == each.second;
  });
  if (now == seen_) return results_;
  seen_ = now;
  bytes_ = 0;
  std::vector<std::string> paths;
  for (const auto& [path, state] : now) {
    bytes_ += state.first;
    if (paths.size() < kMostFiles) paths.push_back(path);
  }
  results_ = analysis::ReadTuningResults(paths);
  return results_;
}

}  // namespace profd::client
