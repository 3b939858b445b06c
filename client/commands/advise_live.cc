#include "client/commands/advise_live.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "client/render.h"
#include "client/signals.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

std::string CostText(const v1::Advice& advice) {
  return advice.has_cost_ns() ? fmt::format("{:.3f}", static_cast<double>(advice.cost_ns()) / 1e6) : "-";
}

// "job j42, rank 3, device 3", as far as it is known.
std::string WhereOf(const v1::Advice& advice) {
  std::string text = advice.job_id().empty() ? fmt::format("process {}", advice.pid()) : "job " + advice.job_id();
  if (advice.has_rank()) text += fmt::format(", rank {}", advice.rank());
  if (advice.has_device()) text += fmt::format(", device {}", advice.device());
  return text;
}

// Commands that help with what a check has found, for the advice's own job; the daemon's texts name none.
std::vector<std::string> CommandsFor(const v1::Advice& advice) {
  const std::string job = advice.job_id().empty() ? "JOB" : advice.job_id();
  const std::string record = fmt::format("profctl start --job {} --task-time l1 --msproftx on", job);
  const std::string all_nodes = fmt::format("profctl advise --live --nodes LIST --job {}", job);
  const std::string& check = advice.check();
  if (check == "hang") return {"profctl stacks --job " + job, all_nodes};
  if (check == "steps_slower" || check == "free_time") return {record};
  if (check == "slow_rank" || check == "computation_slower") return {"profctl top", "profctl jobs", record};
  if (check == "communication_slower") return {all_nodes, "profctl topology --links", record};
  if (check == "device_memory") return {"profctl jobs"};
  return {};
}

void PrintDetails(const Io& io, const std::string& node, const v1::Advice& advice) {
  io.out << fmt::format("\n{}{}: {} ({})\n", node.empty() ? "" : Printable(node) + ": ", Printable(WhereOf(advice)),
                        Printable(advice.what()), Printable(advice.check()));
  for (const std::string& text : advice.evidence()) io.out << "  " << Printable(text) << '\n';
  for (const std::string& text : advice.advice()) io.out << "  - " << Printable(text) << '\n';
  for (const std::string& command : CommandsFor(advice)) io.out << "  $ " << Printable(command) << '\n';
}

// Changes between two answers.
class Changes {
 public:
  explicit Changes(const Context& context)
      : io_(context.io), clock_(context.clock), clock_offset_ns_(DaemonClockOffsetNs(context)), json_(context.json) {}

  bool Take(const v1::GetAdviceResponse& answer) {
    std::map<uint64_t, v1::Advice> now;
    for (const v1::Advice& advice : answer.advice()) now.emplace(advice.id(), advice);
    for (const auto& [id, advice] : now) {
      if (!known_.contains(id)) Print("raised", advice.raised_ns(), advice);
    }
    for (const auto& [id, advice] : known_) {
      if (!now.contains(id)) Print("cleared", clock_.WallNs() + clock_offset_ns_, advice);
    }
    known_ = std::move(now);
    io_.out.flush();
    return io_.out.good();
  }

 private:
  void Print(std::string_view change, int64_t wall_ns, const v1::Advice& advice) {
    if (json_) {
      io_.out << JsonText({{"change", change}, {"time_ns", wall_ns}, {"advice", ToJson(advice)}}, false) << '\n';
      return;
    }
    io_.out << fmt::format("{}  {:<8} {:<21} {}: {}\n", FormatTime(wall_ns), change, Printable(advice.check()),
                           Printable(WhereOf(advice)), Printable(advice.what()));
    if (change == "raised" && !advice.advice().empty()) io_.out << "    - " << Printable(advice.advice(0)) << '\n';
  }

  const Io& io_;
  const Clock& clock_;
  const int64_t clock_offset_ns_;
  const bool json_;
  std::map<uint64_t, v1::Advice> known_;
};

int Watch(const Context& context, const LiveAdviseOptions& options) {
  SignalWatch signals({SIGINT, SIGTERM});
  context.api.SetWaitHook(signals.go_on());
  v1::WatchAdviceRequest request;
  request.mutable_what()->set_job_id(options.job);
  Changes changes(context);
  const Status status =
      context.api.WatchAdvice(request, [&](const v1::GetAdviceResponse& answer) { return changes.Take(answer); });
  context.api.SetWaitHook(nullptr);
  return signals.caught() != 0 || status.ok() ? kExitOk : Fail(context, status);
}

}  // namespace

void PrintAdvice(const Io& io, const std::vector<NodeAdvice>& nodes) {
  const bool named = !nodes.empty() && !nodes.front().node.empty();
  std::vector<std::string> headers = {"CHECK", "JOB", ">RANK", ">DEVICE", "SINCE", ">STEP", ">MS PER STEP", "CONFIDENCE", "WHAT"};
  if (named) headers.insert(headers.begin(), "NODE");
  Table table(std::move(headers));
  size_t ranks = 0;
  for (const NodeAdvice& node : nodes) {
    ranks += static_cast<size_t>(node.answer.ranks_size());
    for (const v1::Advice& a : node.answer.advice()) {
      std::vector<Cell> cells = {a.check(), OrDash(a.job_id()), a.has_rank() ? std::to_string(a.rank()) : "-",
                                 a.has_device() ? std::to_string(a.device()) : "-", FormatTime(a.since_ns()),
                                 a.has_step() ? std::to_string(a.step()) : "-", CostText(a), EnumWord(a.confidence()), a.what()};
      if (named) cells.insert(cells.begin(), node.node);
      table.AddRow(std::move(cells));
    }
  }
  if (table.empty()) {
    io.out << (ranks > 0 ? fmt::format("nothing is wrong now; {} watched\n", CountText(ranks, "process is", "processes are"))
                         : std::string("no attached process of a job is here to be watched (profctl jobs)\n"));
    return;
  }
  table.Print(io.out, io.out_color());
  for (const NodeAdvice& node : nodes) {
    for (const v1::Advice& advice : node.answer.advice()) PrintDetails(io, node.node, advice);
  }
}

Result<v1::GetAdviceResponse> AskAdvice(ProfdApi& api, const std::string& job) {
  v1::GetAdviceRequest request;
  request.set_job_id(job);
  request.set_ranks(true);
  auto answer = api.GetAdvice(request);
  if (answer.ok() && !job.empty() && answer->ranks().empty() && answer->advice().empty()) {
    return NotFound("no attached process of job " + job + " is here to be watched, or it is not yours; see `profctl jobs`");
  }
  return answer;
}

int RunLiveAdvise(const Context& context, const LiveAdviseOptions& options) {
  if (options.watch) return Watch(context, options);
  auto answer = WithProgress(context, "asking profd", [&] { return AskAdvice(context.api, options.job); });
  if (!answer.ok()) return Fail(context, answer.status());
  if (context.json) {
    PrintJson(context, ToJson(*answer));
  } else {
    PrintAdvice(context.io, {{"", std::move(answer).value()}});
  }
  return kExitOk;
}

}  // namespace profd::client
