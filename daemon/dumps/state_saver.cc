#include "daemon/dumps/state_saver.h"

#include <utility>

#include "base/log.h"
#include "daemon/data/dump_writer.h"

namespace profd {

void WriterStateSaver::SaveSession(const std::string& id, std::string text) {
  writer_.Post([&store = store_, id, text = std::move(text)] {
    if (Status saved = store.SaveSession(id, text); !saved.ok()) {
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

void WriterStateSaver::Save(const StateFile& file, std::string text, std::function<void()> done) {
  writer_.Post([&control = control_, &store = store_, file, text = std::move(text), done = std::move(done)] {
    if (Status saved = store.Save(file, text); !saved.ok()) log::Warning(file.loss, {{"why", saved.ToString()}});
    if (done) control.Post(done);
  });
}

}  // namespace profd
