// Keeps what the next daemon needs, without waiting for the disk: StateStore on the writer's thread. Saves and drops happen
// in the order of the calls; what cannot be saved is logged. Lives on the control strand.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/strand.h"

namespace profd {

class DumpWriter;
class StateStore;

class StateSaver {
 public:
  virtual ~StateSaver() = default;
  // A session that has not ended: it is there before its dump is, and gone after the dump is complete.
  virtual void SaveSession(const std::string& id, std::string text) = 0;
  virtual void DropSession(const std::string& id) = 0;
  // `done` on the control strand, also where it could not be saved.
  virtual void SaveTuning(std::string text, std::function<void()> done) = 0;
  virtual void SaveReleases(std::string text) = 0;
  virtual void SaveArchive(std::string text) = 0;
};

// Everything that it is made of outlives it.
class WriterStateSaver final : public StateSaver {
 public:
  WriterStateSaver(Strand& control, DumpWriter& writer, StateStore& store) : control_(control), writer_(writer), store_(store) {}

  void SaveSession(const std::string& id, std::string text) override;
  void DropSession(const std::string& id) override;
  void SaveTuning(std::string text, std::function<void()> done) override;
  void SaveReleases(std::string text) override;
  void SaveArchive(std::string text) override;

 private:
  void Save(Status (StateStore::*save)(std::string_view), std::string text, std::string_view loss, std::function<void()> done);

  Strand& control_;
  DumpWriter& writer_;
  StateStore& store_;
};

}  // namespace profd
