// What every output format is to the engine. The engine opens one sink per data file and feeds it on
// one thread; sinks of a format run on several threads at once, so what they share is the format's to
// guard. Nothing is kept per row: memory stays flat whatever the dump's size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "export/batch.h"
#include "export/dump_info.h"
#include "export/event.h"
#include "export/shared_file.h"
#include "export/step_spans.h"
#include "export/strings.h"

namespace profd::exporting {

// The complete request as formats see it.
struct ExportPlan {
  std::vector<const DumpInfo*> dumps;  // their order is their number
  std::string out_dir;                 // exists
  std::string timestamp;                   // YYYYMMDDhhmmss for file names
  TimeWindow window;
  Strings* strings = nullptr;
  bool gzip = false;  // Perfetto only
  bool compat_msprof = false;  // with the defects that docs/export.md lists under --compat msprof
  bool legacy_names = false;   // also the files that earlier releases of the vendor's analyser wrote
  unsigned threads = 1;  // a format may use at a time for what is large
  GoOn go_on;            // a format asks it while it writes operators and completes its files
  // Training steps of the session that the dump is of, as far as they have been read: all of them from the first
  // TakeOperators on. Any thread. Empty: there are none.
  std::function<StepSpans(const DumpInfo& dump)> steps_of;
  StepSpans StepsOf(size_t dump) const { return steps_of ? steps_of(*dumps[dump]) : StepSpans(); }
};

// One data file on its way through.
struct ExportTask {
  size_t dump = 0;  // index into ExportPlan::dumps
  const Place* place = nullptr;
  const DataFile* file = nullptr;
};

class FormatSink : public BatchSink {
 public:
  // void Take(const Batch&) of BatchSink: rows of this file, any of its decoder's tables.
  virtual void TakeEvent(const Event& event) = 0;
  // After the last row. The first error of this sink, if there was one.
  virtual Status Finish() = 0;
};

namespace operators {
class Model;
}

struct OutputFile {
  std::string path;
  uint64_t bytes = 0;
  uint64_t rows = 0;  // rows, events, samples
};

// What a format makes something of.
struct FormatWants {
  bool events = false;
  // Of steps also what ran in them: kernels and communication are then read once more, before all else. And operators,
  // where there are no such records.
  bool step_parts = false;
  bool step_parts_of_operators = true;
  // Operator-level records: it gets them, of each dump that has some, after all sinks are gone; the model does not
  // outlive the call.
  bool operators = false;
  bool operator_details = true;  // of those, counters and shapes; their files are not read where no format wants them
  bool runtime_apis = false;     // the runtime's API intervals one by one; else the model need not have them
  bool only_framework = false;   // nothing but the framework's operators and steps
};

class Format {
 public:
  virtual ~Format() = default;
  virtual std::string_view name() const = 0;  // as --format has it
  // Rows it has no use for are not decoded for it.
  virtual bool Wants(TableId table) const = 0;
  virtual FormatWants wants() const = 0;
  // Before any sink; makes its files.
  virtual Status Begin(const ExportPlan& plan) = 0;
  // Any thread.
  virtual Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) = 0;
  virtual Status TakeOperators(size_t /*dump*/, const operators::Model& /*model*/) { return Status::Ok(); }
  // After all sinks are gone; completes the files. Also called after errors, to clean up
  // (`complete` false): then unfinished files are removed.
  virtual Status End(bool complete, std::vector<OutputFile>* files) = 0;
};

// Null for an unknown name. Names: "csv", "trace", "perfetto", "sqlite", "jsonl", "samples",
// "openmetrics", "folded".
std::unique_ptr<Format> MakeFormat(std::string_view name);
std::vector<std::string_view> FormatNames();

}  // namespace profd::exporting
