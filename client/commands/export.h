// `profctl export DUMP...`: dumps as files other programs open. Reads directories of this machine;
// needs no daemon.
#pragma once

#include <string>

#include "client/commands/export_parse.h"
#include "client/context.h"

namespace profd::client {

// `directory`: where relative paths of outputs begin. kExitPartial when a format failed, a dump is
// damaged (but with --allow-damaged), or it was interrupted.
int RunExport(const Io& io, const Clock& clock, const std::string& directory,
              const ExportCommand& command, bool json);

// How far an export has come, in place on a terminal, gone at the end; nothing anywhere else.
class ExportProgressLine {
 public:
  ExportProgressLine(const Io& io, const Clock& clock, std::string what, bool wanted);
  ~ExportProgressLine();
  ExportProgressLine(const ExportProgressLine&) = delete;
  ExportProgressLine& operator=(const ExportProgressLine&) = delete;
  void Show(const exporting::ExportProgress& progress);

 private:
  const Io& io_;
  const Clock& clock_;
  std::string what_;
  bool on_;
  bool shown_ = false;
  int64_t begin_ns_;
};

// Damaged and skipped files, bad bytes: a line each, the many in few.
void WarnOfExport(const Io& io, const exporting::ExportReport& report);
// How many steps and ranges go on outside of the session: no damage.
void NoteClipped(const Io& io, const exporting::ExportReport& report);
Json ToJson(const exporting::ExportReport& report);

// Whether --to is a database's address.
bool IsExportToStore(const ExportCommand& command);

// What is given and is for files alone, as a sentence.
std::optional<std::string> UnfitForStore(const ExportCommand& command);

// `profctl export RUN... --to clickhouse://...`: runs of any kind into the tables of a database.
int RunExportToStore(const Io& io, const Clock& clock, const ExportCommand& command, bool json);

}  // namespace profd::client
