#include "client/serve/run_store.h"

#include <algorithm>

#include "analysis/checks/advise.h"
#include "analysis/report.h"

namespace profd::client {

std::vector<analysis::FoundRun> RunStore::List() {
  // One at a time: `more` may ask a daemon.
  MutexLock one(listing_);
  std::vector<std::string> paths = options_.folders;
  if (options_.more) std::ranges::move(options_.more(), std::back_inserter(paths));
  std::vector<analysis::FoundRun> found = analysis::FindRuns(paths);
  MutexLock lock(mutex_);
  found_ = found;
  return found;
}

std::vector<analysis::FoundRun> RunStore::Listed() {
  MutexLock lock(mutex_);
  return found_;
}

std::optional<analysis::FoundRun> RunStore::Find(const std::string& id) {
  const auto among = [&id](const std::vector<analysis::FoundRun>& runs) -> std::optional<analysis::FoundRun> {
    const auto found = std::ranges::find(runs, id, &analysis::FoundRun::id);
    return found == runs.end() ? std::nullopt : std::optional(*found);
  };
  std::optional<analysis::FoundRun> found = among(Listed());
  return found ? found : among(List());
}

std::shared_ptr<RunStore::Loaded> RunStore::EntryOf(const std::string& id) {
  MutexLock lock(mutex_);
  const auto found = std::ranges::find(loaded_, id, &decltype(loaded_)::value_type::first);
  if (found != loaded_.end()) {
    loaded_.splice(loaded_.begin(), loaded_, found);
  } else {
    loaded_.emplace_front(id, std::make_shared<Loaded>());
    if (loaded_.size() > kKept) loaded_.pop_back();
  }
  return loaded_.front().second;
}

Status RunStore::Refresh(const analysis::FoundRun& found, Loaded* entry) {
  const uint64_t timestamp = analysis::TimestampOf(found);
  if (entry->run != nullptr && entry->timestamp == timestamp) return Status::Ok();
  Result<analysis::Run> run = analysis::LoadRun(found.paths, options_.go_on);
  if (!run.ok()) return run.status();
  run->name = found.name;
  entry->timestamp = timestamp;
  entry->run = std::make_shared<const analysis::Run>(std::move(*run));
  entry->page = nullptr;
  return Status::Ok();
}

Result<std::shared_ptr<const analysis::Run>> RunStore::Load(const std::string& id) {
  const std::optional<analysis::FoundRun> found = Find(id);
  if (!found) return NotFound("there is no such run any more");
  const std::shared_ptr<Loaded> entry = EntryOf(id);
  MutexLock lock(entry->mutex);
  if (Status read = Refresh(*found, entry.get()); !read.ok()) return read;
  return entry->run;
}

Result<std::shared_ptr<const std::string>> RunStore::Page(const std::string& id, const std::string& baseline) {
  std::shared_ptr<const analysis::Run> other;
  if (!baseline.empty()) {
    auto loaded = Load(baseline);
    if (!loaded.ok()) return loaded.status();
    other = std::move(*loaded);
  }
  auto run = Load(id);
  if (!run.ok()) return run.status();
  const std::shared_ptr<Loaded> entry = EntryOf(id);
  if (other == nullptr) {
    MutexLock lock(entry->mutex);
    if (entry->page != nullptr && entry->run == *run) return entry->page;
  }
  const analysis::Json data = analysis::PageData(**run, other.get(), analysis::Advise(**run, other.get(), analysis::Limits(), options_.language), options_.slices,
                                                 options_.clock->WallNs() / kNsPerSecond, options_.language);
  Result<std::string> packed = analysis::PackedJson(data);
  if (!packed.ok()) return packed.status();
  auto page = std::make_shared<const std::string>(std::move(*packed));
  if (other == nullptr) {
    MutexLock lock(entry->mutex);
    if (entry->run == *run) entry->page = page;
  }
  return page;
}

}  // namespace profd::client
