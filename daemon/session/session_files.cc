#include "daemon/session/session_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dump/data_name.h"

namespace profd {
namespace {

std::string ProblemOf(const attach::CollectorReport& report, const CopiedFiles& copied) {
  std::string problem = report.detail;
  const auto add = [&problem](const std::string& text) { problem += (problem.empty() ? "" : "; ") + text; };
  if (report.code != 0 && problem.empty()) add(fmt::format("aclprof: {}", report.code));
  if (!copied.status.ok()) add(copied.status.message());
  if (copied.left_out > 0) {
    add(fmt::format("{} left out, for instance {} ({})", copied.left_out, copied.examples.front().path,
                    copied.examples.front().why));
  }
  return problem;
}

void Describe(const attach::CollectorReport& report, const CopiedFiles& copied, ManifestProcessFiles* facts) {
  facts->files = copied.files;
  facts->bytes = copied.bytes;
  facts->refused = copied.left_out;
  facts->refused_bytes = copied.left_out_bytes;
  facts->examples = copied.examples;
  facts->problem = ProblemOf(report, copied);
  facts->state = facts->problem.empty() ? "complete" : copied.files > 0 ? "partial" : "failed";
}

}  // namespace

void SessionFiles::Take(const TrainingProcess& process, const attach::CollectorReport& report,
                        std::shared_ptr<UniqueFd> directory) {
  DCHECK_ON(deps_.control);
  auto copy = std::make_shared<Copy>();
  copy->attach_id = process.attach_id;
  copy->report = report;
  copy->user = process.uid;
  copy->directory = std::move(directory);
  copy->facts.pid = process.pid;
  copy->facts.rank = process.rank;
  if (abandoned_ || folders_ >= kMaxFolders) {
    CopiedFiles refused;
    refused.status = abandoned_ ? DeadlineExceeded("the session has ended meanwhile")
                                : ResourceExhausted("too many processes have left files");
    return End(copy, refused);
  }
  // A process may take part twice: the number of the folder keeps them apart.
  copy->facts.directory = fmt::format("aclprof_{}_{}", process.pid, ++folders_);
  waiting_.push_back(std::move(copy));
  Next();
}

// One at a time, so that they do not share what is left of the limit or the disk.
void SessionFiles::Next() {
  if (copying_ || waiting_.empty()) return;
  copying_ = true;
  std::shared_ptr<Copy> copy = std::move(waiting_.front());
  waiting_.pop_front();
  ManifestProcessFiles facts = copy->facts;
  deps_.dump->BeginProcessFiles(std::move(facts), [weak = weak_from_this(), &control = deps_.control, copy](Result<UniqueFd> folder) {
    auto made = std::make_shared<Result<UniqueFd>>(std::move(folder));
    control.Post([weak, copy, made] {
      if (const auto self = weak.lock()) self->Begin(copy, std::move(*made));
    });
  });
}

void SessionFiles::Begin(std::shared_ptr<Copy> copy, Result<UniqueFd> folder) {
  DCHECK_ON(deps_.control);
  CopiedFiles failed;
  if (!folder.ok()) failed.status = folder.status();
  if (abandoned_) failed.status = DeadlineExceeded("the session has ended meanwhile");
  if (!failed.status.ok()) return End(copy, std::move(failed));
  FileCopier::Request request;
  request.from = std::move(*copy->directory);
  request.user = copy->user;
  request.to = std::move(folder).value();
  request.owner = deps_.owner;
  request.limits.bytes = UINT64_MAX;
  request.limits.until_steady_ns = deps_.clock.SteadyNs() + kCopyNs;
  request.limits.cancelled = cancelled_;
  request.limits.reserve = [dump = deps_.dump, until_ns = request.limits.until_steady_ns](uint64_t bytes) {
    return dump->ReserveForFiles(bytes, until_ns);
  };
  deps_.copier.Copy(std::move(request), [weak = weak_from_this(), copy](CopiedFiles copied) {
    if (const auto self = weak.lock()) self->End(copy, std::move(copied));
  });
}

void SessionFiles::End(const std::shared_ptr<Copy>& copy, CopiedFiles copied) {
  DCHECK_ON(deps_.control);
  // In any case it is over for the process.
  deps_.directory.NotifyTaken(copy->attach_id, {copy->report.session_id, static_cast<int>(copied.status.code()),
                                                copied.status.message()});
  Describe(copy->report, copied, &copy->facts);
  deps_.dump->EndProcessFiles(copy->facts, copied.reserved - std::min(copied.reserved, copied.bytes), std::move(copied.list));
  if (!copy->facts.directory.empty()) {
    copy->facts.directory.insert(0, kOwnPrefix);
    copying_ = false;
  }
  results_.push_back(std::move(copy->facts));
  Next();
  if (idle() && !abandoned_) deps_.on_idle();
}

void SessionFiles::Abandon() {
  DCHECK_ON(deps_.control);
  abandoned_ = true;
  cancelled_->store(true, std::memory_order_relaxed);
  for (const auto& copy : std::exchange(waiting_, {})) {
    CopiedFiles late;
    late.status = DeadlineExceeded("the session has ended meanwhile");
    copy->facts.directory.clear();
    End(copy, std::move(late));
  }
}

}  // namespace profd
