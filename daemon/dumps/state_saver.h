// Keeps what the next daemon needs, without waiting for the disk: StateStore on the writer's thread. Saves and drops happen
// in the order of the calls; what cannot be saved is logged. Lives on the control strand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/strand.h"
#include "daemon/dumps/state_store.h"

namespace profd {

class DumpWriter;

class StateSaver {
 public:
  virtual ~StateSaver() = default;
  // A session that has not ended: it is there before its dump is, and gone after the dump is complete.
  virtual void SaveSession(const std::string& id, std::string text) = 0;
  virtual void DropSession(const std::string& id) = 0;
  // `done`, if any, on the control strand, also where it could not be saved.
  virtual void Save(const StateFile& file, std::string text, std::function<void()> done) = 0;
};

// Everything that it is made of outlives it. Of what waits for a disk that is slow only the newest is kept.
class WriterStateSaver final : public StateSaver {
 public:
  WriterStateSaver(Strand& control, DumpWriter& writer, StateStore& store)
      : control_(control), writer_(writer), store_(store), newest_(std::make_shared<Newest>()) {}

  void SaveSession(const std::string& id, std::string text) override;
  void DropSession(const std::string& id) override;
  void Save(const StateFile& file, std::string text, std::function<void()> done) override;

 private:
  struct SavedFile {
    StateFile file;
    std::string text;
    std::vector<std::function<void()>> done;
  };
  // Shared with the writer's thread: each entry has one task there, which takes it.
  struct Newest {
    Mutex mutex;
    std::map<std::string, std::optional<std::string>> sessions GUARDED_BY(mutex);  // nothing: drop it
    std::map<std::string, SavedFile> files GUARDED_BY(mutex);
  };
  void Keep(const std::string& id, std::optional<std::string> text);

  Strand& control_;
  DumpWriter& writer_;
  StateStore& store_;
  const std::shared_ptr<Newest> newest_;
};

}  // namespace profd
