#include "daemon/dumps/state_saver.h"

#include <utility>

#include "base/log.h"
#include "daemon/data/dump_writer.h"

namespace profd {

void WriterStateSaver::SaveSession(const std::string& id, std::string text) { Keep(id, std::move(text)); }

void WriterStateSaver::DropSession(const std::string& id) { Keep(id, std::nullopt); }

void WriterStateSaver::Keep(const std::string& id, std::optional<std::string> text) {
  {
    MutexLock lock(newest_->mutex);
    if (!newest_->sessions.insert_or_assign(id, std::move(text)).second) return;
  }
  writer_.Post([newest = newest_, &store = store_, id] {
    std::optional<std::string> saved;
    {
      MutexLock lock(newest->mutex);
      saved = std::move(newest->sessions.extract(id).mapped());
    }
    const Status status = saved ? store.SaveSession(id, *saved) : store.DropSession(id);
    if (status.ok()) return;
    log::Warning(saved ? "session would not survive a crash of profd" : "state of a session not removed",
                 {{"session", id}, {"why", status.ToString()}});
  });
}

void WriterStateSaver::Save(const StateFile& file, std::string text, std::function<void()> done) {
  {
    MutexLock lock(newest_->mutex);
    auto [known, is_new] = newest_->files.try_emplace(file.name, SavedFile{file, {}, {}});
    known->second.text = std::move(text);
    if (done) known->second.done.push_back(std::move(done));
    if (!is_new) return;
  }
  writer_.Post([&control = control_, newest = newest_, &store = store_, name = std::string(file.name)] {
    SavedFile saved;
    {
      MutexLock lock(newest->mutex);
      saved = std::move(newest->files.extract(name).mapped());
    }
    if (Status status = store.Save(saved.file, saved.text); !status.ok()) {
      log::Warning(saved.file.loss, {{"why", status.ToString()}});
    }
    for (const auto& one : saved.done) control.Post(one);
  });
}

}  // namespace profd
