// The dump that a session writes, from its making to its end. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/log_limit.h"
#include "base/strand.h"
#include "daemon/data/dump_writer.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SessionOutput {
 public:
  // References outlive the object.
  struct Deps {
    Strand& control;
    const Clock& clock;
    DumpWriter& writer;
    std::string session_id;
    bool storage_limited;  // the user expects that the oldest records go
  };
  explicit SessionOutput(Deps deps) : deps_(std::move(deps)) {}

  // What is given to these two keeps the object alive, and runs once. `made`: with the error if there is no dump.
  void Open(SessionDumpOptions options, size_t files, std::function<void(const Status&)> made);
  // Completes the dump. Where there is none, `closed` is called at once.
  void Close(EndFacts end, std::function<void(Manifest&)> last_edit, std::function<void(const Status&)> closed);
  // About once a second while it is written: the first error of writing there was.
  Status Tick();

  bool opening() const { return dump_ != nullptr && path_.empty(); }
  bool closing() const { return closing_; }
  // Nothing of it is being written any more.
  bool closed() const { return closed_; }
  // Null without a dump; while it is being made it exists.
  const std::shared_ptr<WriterSession>& dump() const { return dump_; }
  // Empty before it is made, and without one.
  const std::string& path() const { return path_; }
  uint64_t bytes() const { return dump_ != nullptr ? dump_->bytes() : 0; }
  uint64_t queued_bytes() const { return dump_ != nullptr ? dump_->queued_bytes() : 0; }
  // What its manifest would have contained, had the end been written; null: it was.
  const Manifest* unended() const { return dump_ != nullptr && dump_->unended() ? &*dump_->unended() : nullptr; }
  void Fill(v1::SessionStatus* out) const;

 private:
  void LogRemoved(bool last);

  const Deps deps_;
  std::shared_ptr<WriterSession> dump_;
  std::string path_;
  bool closing_ = false;
  bool closed_ = false;
  LogLimit removals_logged_;
  uint64_t removed_logged_ = 0;  // records
};

}  // namespace profd
