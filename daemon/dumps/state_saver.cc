#include "daemon/dumps/state_saver.h"

#include <utility>

#include "base/log.h"
#include "daemon/data/dump_writer.h"
#include "daemon/dumps/state_store.h"

namespace profd {

void WriterStateSaver::SaveSession(const std::string& id, std::string text) {
  writer_.Post([&store = store_, id, text = std::move(text)] {
    if (Status saved = store.SaveSession(id, text, false); !saved.ok()) {
      log::Warning("session would not survive a crash of profd", {{"session", id}, {"why", saved.ToString()}});
    }
  });
}

void WriterStateSaver::DropSession(const std::string& id) {
  writer_.Post([&store = store_, id] {
    if (Status dropped = store.DropSession(id); !dropped.ok()) {
      log::Warning("state of a session not removed", {{"session", id}, {"why", dropped.ToString()}});
    }
  });
}

void WriterStateSaver::SaveTuning(std::string text, std::function<void()> done) {
  Save(&StateStore::SaveTuning, std::move(text), "tuning leases would not survive a crash of profd", std::move(done));
}

void WriterStateSaver::SaveReleases(std::string text) {
  Save(&StateStore::SaveReleases, std::move(text), "released channels would be taken back by a restart", nullptr);
}

void WriterStateSaver::SaveArchive(std::string text) {
  Save(&StateStore::SaveArchive, std::move(text), "what waits for the database would not survive a crash of profd", nullptr);
}

void WriterStateSaver::Save(Status (StateStore::*save)(std::string_view), std::string text, std::string_view loss,
                            std::function<void()> done) {
  writer_.Post([&control = control_, &store = store_, save, text = std::move(text), loss, done = std::move(done)] {
    if (Status saved = (store.*save)(text); !saved.ok()) log::Warning(loss, {{"why", saved.ToString()}});
    if (done) control.Post(done);
  });
}

}  // namespace profd
