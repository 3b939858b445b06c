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

}  // namespace

void SessionFiles::Take(const TrainingProcess& process, const attach::CollectorReport& report,
                        std::shared_ptr<UniqueFd> directory) {
  DCHECK_ON(deps_.control);
  auto copy = std::make_shared<Copy>();
  copy->attach_id = process.attach_id;
  copy->report = report;
  copy->user = process.uid;
  copy->directory = std::move(directory);
  copy->result.pid = process.pid;
  ++under_way_;
  if (abandoned_ || folders_ >= kMaxFolders) {
    CopiedFiles refused;
    refused.status = abandoned_ ? DeadlineExceeded("the session has ended meanwhile")
                                : ResourceExhausted("too many processes have left files");
    End(copy, refused);
    return;
  }
  ++folders_;
  // A process may take part twice: the number of the folder keeps them apart.
  const std::string name = fmt::format("aclprof_{}_{}", process.pid, folders_);
  copy->result.folder = std::string(kOwnPrefix) + name;
  deps_.make_folder(name, [weak = weak_from_this(), &control = deps_.control, copy](Result<UniqueFd> folder) {
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
  if (!failed.status.ok()) return End(copy, failed);
  FileCopier::Order order;
  order.from = std::move(*copy->directory);
  order.user = copy->user;
  order.to = std::move(folder).value();
  order.owner = deps_.owner;
  order.limits.bytes = deps_.max_bytes - std::min(deps_.max_bytes, bytes_);
  order.limits.until_steady_ns = deps_.clock.SteadyNs() + kCopyNs;
  deps_.copier.Copy(std::move(order), [weak = weak_from_this(), copy](CopiedFiles copied) {
    if (const auto self = weak.lock()) self->End(copy, std::move(copied));
  });
}

void SessionFiles::End(const std::shared_ptr<Copy>& copy, CopiedFiles copied) {
  DCHECK_ON(deps_.control);
  ProcessFiles& result = copy->result;
  result.files = copied.files;
  result.bytes = copied.bytes;
  result.left_out = copied.left_out;
  result.problem = ProblemOf(copy->report, copied);
  bytes_ += copied.bytes;
  // In any case it is over for the process.
  deps_.directory.NotifyTaken(copy->attach_id, {copy->report.session_id, static_cast<int>(copied.status.code()),
                                                copied.status.message()});
  results_.push_back(std::move(result));
  --under_way_;
  if (idle() && !abandoned_) deps_.on_idle();
}

void SessionFiles::Abandon() {
  DCHECK_ON(deps_.control);
  abandoned_ = true;
}

}  // namespace profd
