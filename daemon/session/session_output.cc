#include "daemon/session/session_output.h"

#include "base/log.h"

namespace profd {

void SessionOutput::Open(SessionDumpOptions options, size_t files, std::function<void(const Status&)> made) {
  dump_ = deps_.writer.Open(std::move(options), files, [this, made = std::move(made)](const Result<std::string>& path) {
    deps_.control.Post([this, made, path] {
      if (path.ok()) {
        path_ = *path;
      } else {
        dump_ = nullptr;
        closed_ = true;
      }
      made(path.status());
    });
  });
}

void SessionOutput::Close(EndFacts end, std::function<void(Manifest&)> last_edit, std::function<void(const Status&)> closed) {
  DCHECK_ON(deps_.control);
  closing_ = true;
  auto over = [this, closed = std::move(closed)](const Status& status) {
    closed_ = true;
    LogRemoved(true);
    closed(status);
  };
  if (dump_ == nullptr) return over(Status::Ok());
  dump_->Finish(std::move(end), std::move(last_edit), [this, over = std::move(over)](const Status& status) {
    deps_.control.Post([over, status] { over(status); });
  });
}

Status SessionOutput::Tick() {
  if (dump_ == nullptr) return Status::Ok();
  LogRemoved(false);
  return dump_->health();
}

void SessionOutput::Fill(v1::SessionStatus* out) const {
  const WriterSession::Removed removed = dump_ != nullptr ? dump_->removed() : WriterSession::Removed();
  out->set_dump_path(path_);
  out->set_dump_bytes(bytes());
  out->set_removed_records(removed.records);
  out->set_removed_for_space(removed.for_space);
}

// What a limit removed that the user did not ask for.
void SessionOutput::LogRemoved(bool last) {
  if (dump_ == nullptr) return;
  const WriterSession::Removed removed = dump_->removed();
  const uint64_t unasked = deps_.storage_limited ? removed.for_space : removed.records;
  const uint64_t more = unasked - removed_logged_;
  uint64_t left_out = 0;
  if (more == 0 || (!removals_logged_.Allow(0, deps_.clock.SteadyNs(), &left_out) && !last)) return;
  removed_logged_ = unasked;
  log::Warning("the oldest records of a dump were removed for lack of space",
               {{"session", deps_.session_id}, {"records", more}, {"total", unasked}, {"for_min_free_mb", removed.for_space}});
}

}  // namespace profd
