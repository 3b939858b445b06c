// Keeps what the next daemon needs, without waiting for the disk: StateStore on the writer's thread. Saves and drops happen
// in the order of the calls; what cannot be saved is logged. Lives on the control strand.
#pragma once

#include <functional>
#include <string>

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

// Everything that it is made of outlives it.
class WriterStateSaver final : public StateSaver {
 public:
  WriterStateSaver(Strand& control, DumpWriter& writer, StateStore& store) : control_(control), writer_(writer), store_(store) {}

  void SaveSession(const std::string& id, std::string text) override;
  void DropSession(const std::string& id) override;
  void Save(const StateFile& file, std::string text, std::function<void()> done) override;

 private:
  Strand& control_;
  DumpWriter& writer_;
  StateStore& store_;
};

}  // namespace profd
