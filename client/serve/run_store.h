// The runs that are served: found again at every listing, loaded when one is requested, and kept a while.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/checks/translated_text.h"
#include "analysis/find_runs.h"
#include "analysis/run.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace profd::client {

// Thread-safe. A load blocks those who ask for the same run only.
class RunStore {
 public:
  static constexpr size_t kKept = 4;  // loaded runs; the least recently requested one is dropped

  struct Options {
    std::vector<std::string> folders;
    // More paths, asked at every listing, by one thread at a time; may be empty.
    std::function<std::vector<std::string>()> more;
    analysis::Progress go_on;  // false ends a load; asked by several threads at once
    size_t slices = 0;         // of a page's timelines
    analysis::Language language = analysis::Language::kEnglish;  // of the advice
    const Clock* clock = nullptr;
  };
  explicit RunStore(Options options) : options_(std::move(options)) {}

  const std::vector<std::string>& folders() const { return options_.folders; }
  std::vector<analysis::FoundRun> List();
  // As the last listing found them.
  std::vector<analysis::FoundRun> Listed();
  // As it is on the disk now: a run that has changed is read again.
  Result<std::shared_ptr<const analysis::Run>> Load(const std::string& id);
  // A page's data, gzip. `baseline`: the id of another run, or empty.
  Result<std::shared_ptr<const std::string>> Page(const std::string& id, const std::string& baseline);

 private:
  struct Loaded {
    Mutex mutex;
    uint64_t timestamp GUARDED_BY(mutex) = 0;
    std::shared_ptr<const analysis::Run> run GUARDED_BY(mutex);
    std::shared_ptr<const std::string> page GUARDED_BY(mutex);  // without a baseline
  };

  std::optional<analysis::FoundRun> Find(const std::string& id);
  std::shared_ptr<Loaded> EntryOf(const std::string& id);
  Status Refresh(const analysis::FoundRun& found, Loaded* entry) REQUIRES(entry->mutex);

  const Options options_;
  Mutex listing_;
  Mutex mutex_;
  std::vector<analysis::FoundRun> found_ GUARDED_BY(mutex_);
  std::list<std::pair<std::string, std::shared_ptr<Loaded>>> loaded_ GUARDED_BY(mutex_);  // the latest first
};

}  // namespace profd::client
