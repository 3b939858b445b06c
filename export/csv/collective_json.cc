#include "export/csv/collective_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "export/csv/operator_parts.h"
#include "export/csv/vendor_math.h"
#include "export/operators/communication_names.h"
#include "export/repaired_text.h"

namespace profd::exporting::csv {
namespace {

using operators::CommunicationInfo;
using operators::CommunicationOp;
using operators::CommunicationTask;
using operators::Model;

enum Link : size_t { kRdma, kHccs, kPcie, kSdma, kSio, kLinks };
constexpr std::array<std::string_view, kLinks> kLinkNames = {"RDMA", "HCCS", "PCIE", "SDMA", "SIO"};
// MB a transfer must have to count as large.
constexpr double kLargeOnLink = 32;
constexpr double kLargeRdma = 0.5;

constexpr uint32_t kNoRank = 0xFFFFFFFF;
constexpr uint32_t kRdmaPayload = 1;

std::string Number(double value) {
  char text[32];
  return {text, AppendRepr(text, value)};
}

// Python's round(value, 4).
double Rounded(double value) { return std::strtod(fmt::format("{:.4f}", value).c_str(), nullptr); }
double Ratio(double part, double rest) { return part + rest > 0 ? Rounded(part / (part + rest)) : 0; }

double Ms(const CommunicationTask& task) { return static_cast<double>(task.end_ns - task.start_ns) / 1000 / 1000; }

// One transfer between two ranks, or within one.
struct Transfer {
  std::optional<Link> link;  // none: within the device
  std::string_view transport;
  double mb = 0;
  double ms = 0;
};

std::optional<Transfer> TransferOf(const Model& model, const CommunicationTask& task, const CommunicationInfo& info) {
  const std::string name = model.host.NameOf(info.name);
  const double mb = static_cast<double>(info.bytes) / 1e6;
  if (name == "RDMASend") {
    if (info.rdma != kRdmaPayload) return std::nullopt;
    // Payloads in a row share the time of all of them.
    return Transfer{kRdma, "RDMA", mb, task.gbps > 0 ? mb / task.gbps : Ms(task)};
  }
  if (name != "Memcpy" && name != "Reduce_Inline") return std::nullopt;
  const std::string link = operators::LinkTypeName(info.link);
  if (link == "ON_CHIP") return Transfer{std::nullopt, "LOCAL", mb, Ms(task)};
  if (link == "PCIE") return Transfer{kPcie, "PCIE", mb, Ms(task)};
  if (link == "SIO") return Transfer{kSio, "SIO", mb, Ms(task)};
  if (link.starts_with("HCCS")) return Transfer{kHccs, "HCCS", mb, Ms(task)};
  return std::nullopt;
}

struct LinkTotal {
  double mb = 0;
  double ms = 0;
  uint64_t count = 0;
  uint64_t large = 0;
  std::vector<std::pair<std::string, std::pair<uint64_t, double>>> sizes;  // MB as text: count, ms; in order of appearance

  void AddSize(const std::string& size, uint64_t more, double its_ms) {
    auto found = std::ranges::find(sizes, size, [](const auto& entry) { return entry.first; });
    if (found == sizes.end()) found = sizes.insert(sizes.end(), {size, {0, 0}});
    found->second.first += more;
    found->second.second += its_ms;
  }
  void Add(const Transfer& transfer, double large_from) {
    mb += transfer.mb;
    ms += transfer.ms;
    ++count;
    if (transfer.mb > large_from) ++large;
    AddSize(Number(transfer.mb), 1, transfer.ms);
  }
};

struct Times {
  double elapsed = 0;
  double transit = 0;
  double wait = 0;
  double synchronization = 0;
  double idle = 0;
  std::array<LinkTotal, kLinks> links;
};

// Of one plane of an operation.
struct PlaneTimes {
  double transit = 0;
  double wait = 0;
  double synchronization = 0;  // waited for before the first transfer
  bool waits_or_sends = false;
};

struct PairTotal {
  std::string_view transport;
  double mb = 0;
  double ms = 0;
  std::string op;
  double Speed() const { return ms > 0 ? Rounded(mb / ms) : 0; }
};
// "0-1": in order of appearance.
using Pairs = std::vector<std::pair<std::string, PairTotal>>;

std::string PairOf(const CommunicationInfo& info) {
  const uint32_t other = info.remote_rank == kNoRank ? info.local_rank : info.remote_rank;
  return fmt::format("{}-{}", info.local_rank, other);
}

// Adds up the tasks of one operation, by start.
void AddTasks(const Model& model, std::span<const CommunicationTask> tasks, Times* times, Pairs* pairs) {
  std::map<uint32_t, PlaneTimes> planes;
  for (const CommunicationTask& task : tasks) {
    const CommunicationInfo* info = model.InfoOf(task);
    if (info == nullptr) continue;
    PlaneTimes& plane = planes[info->plane];
    if (model.host.NameOf(info->name) == "Notify_Wait") {
      plane.wait += Ms(task);
      if (plane.transit == 0) plane.synchronization += Ms(task);
      plane.waits_or_sends = true;
    }
    const auto transfer = TransferOf(model, task, *info);
    if (!transfer) continue;
    auto pair = std::ranges::find(*pairs, PairOf(*info), [](const auto& entry) { return entry.first; });
    if (pair == pairs->end()) pair = pairs->insert(pairs->end(), {PairOf(*info), {transfer->transport, 0, 0, {}}});
    pair->second.mb += transfer->mb;
    pair->second.ms += transfer->ms;
    if (!transfer->link) continue;
    plane.transit += transfer->ms;
    plane.waits_or_sends = true;
    times->links[*transfer->link].Add(*transfer, *transfer->link == kRdma ? kLargeRdma : kLargeOnLink);
  }
  for (const Link link : {kHccs, kPcie, kSio}) {
    times->links[kSdma].mb += times->links[link].mb;
    times->links[kSdma].ms += times->links[link].ms;
  }
  // The first plane that has to do with other ranks stands for the operation.
  const auto main = std::ranges::find_if(planes, [](const auto& plane) { return plane.second.waits_or_sends; });
  if (main == planes.end()) return;
  times->transit = main->second.transit;
  times->wait = main->second.wait;
  times->synchronization = main->second.synchronization;
}

std::string TimeInfo(const Times& times) {
  return fmt::format(
      R"j("Elapse Time(ms)": {}, "Transit Time(ms)": {}, "Wait Time(ms)": {}, "Synchronization Time(ms)": {}, )j"
      R"j("Idle Time(ms)": {}, "Wait Time Ratio": {}, "Synchronization Time Ratio": {})j",
      Number(times.elapsed), Number(times.transit), Number(times.wait), Number(times.synchronization),
      Number(times.idle), Number(Ratio(times.wait, times.transit)),
      Number(Ratio(times.synchronization, times.transit)));
}

std::string Sizes(const LinkTotal& total) {
  std::string text = "{";
  for (const auto& [size, each] : total.sizes) {
    text += fmt::format(R"j({}"{}": [{}, {}])j", text.size() > 1 ? ", " : "", size, each.first, Number(each.second));
  }
  return text + "}";
}

// Without transfers 0, as the vendor's files have it, not 0.0.
std::string Links(const Times& times, bool total) {
  std::string text;
  for (size_t i = 0; i < kLinks; ++i) {
    const LinkTotal& link = times.links[i];
    const bool any = link.mb > 0 || link.ms > 0;
    const std::string mb = any ? Number(link.mb) : "0";
    const std::string ms = any ? Number(link.ms) : "0";
    text += fmt::format(R"j({}"{}": {{)j", i > 0 ? ", " : "", kLinkNames[i]);
    if (total) {
      text += fmt::format(R"j("Transit Time(ms)": {}, "Transit Size(MB)": {}, )j", ms, mb);
    } else {
      const std::string speed = any && link.ms > 0 ? Number(Rounded(link.mb / link.ms)) : "0";
      const std::string large =
          link.count > 0 ? Number(Rounded(static_cast<double>(link.large) / static_cast<double>(link.count))) : "0";
      text += fmt::format(R"j("Transit Size(MB)": {}, "Transit Time(ms)": {}, "Bandwidth(GB/s)": {}, )j"
                          R"j("Large Packet Ratio": {}, )j",
                          mb, ms, speed, large);
    }
    text += fmt::format(R"j("Size Distribution": {}}})j", Sizes(link));
  }
  return text;
}

// Between ranks two at a time, or among all of a group.
enum OpKind : size_t { kPointToPoint, kCollective, kOpKinds };
constexpr std::array<std::string_view, kOpKinds> kOpKindNames = {"p2p", "collective"};

OpKind KindOf(std::string_view lower) {
  return lower.find("send") != std::string::npos || lower.find("receive") != std::string::npos ? kPointToPoint
                                                                                               : kCollective;
}

// "allreduce" of "hcom_allReduce__241_19_1".
std::string ShortType(std::string_view lower) {
  constexpr std::string_view kPrefix = "hcom_";
  if (lower.starts_with(kPrefix)) lower.remove_prefix(kPrefix.size());
  return std::string(lower.substr(0, lower.find('_')));
}

// The links of all operations of a type and group, sorted out by speed.
class Matrix {
 public:
  void Add(const std::string& type_at_group, const Pairs& pairs, const std::string& op) {
    auto& links = of_.try_emplace(type_at_group).first->second;
    if (std::ranges::find(order_, type_at_group) == order_.end()) order_.push_back(type_at_group);
    for (const auto& [pair, total] : pairs) {
      auto found = std::ranges::find(links, pair, [](const auto& entry) { return entry.first; });
      if (found == links.end()) found = links.insert(links.end(), {pair, {}});
      found->second.push_back(total);
      found->second.back().op = op;
    }
  }
  std::string Text() {
    for (const std::string& key : order_) {
      const size_t at = key.find('@');
      for (auto& [pair, totals] : of_[key]) Sort(key.substr(0, at), key.substr(at), pair, &totals);
    }
    std::string text;
    for (const auto& [name, links] : out_) {
      text += fmt::format("{}{}: {{{}}}", text.empty() ? "" : ", ", Quoted(name), links);
    }
    return text;
  }
  static std::string Quoted(std::string_view name) { return nlohmann::json(RepairedText(name)).dump(); }

 private:
  void Put(const std::string& name, const std::string& pair, const PairTotal& total) {
    auto found = std::ranges::find(out_, name, [](const auto& entry) { return entry.first; });
    if (found == out_.end()) found = out_.insert(out_.end(), {name, {}});
    found->second += fmt::format(
        R"j({}"{}": {{"Transport Type": "{}", "Transit Size(MB)": {}, "Transit Time(ms)": {}, "Bandwidth(GB/s)": {})j",
        found->second.empty() ? "" : ", ", pair, total.transport, Number(total.mb), Number(total.ms),
        Number(total.Speed()));
    if (!total.op.empty()) found->second += fmt::format(R"j(, "Op Name": {})j", Quoted(total.op));
    found->second += "}";
  }
  void Sort(const std::string& type, const std::string& group, const std::string& pair,
            std::vector<PairTotal>* totals) {
    std::ranges::stable_sort(*totals, std::greater<>(), &PairTotal::Speed);
    PairTotal sum{totals->front().transport, 0, 0, {}};
    for (const PairTotal& each : *totals) {
      sum.mb += each.mb;
      sum.ms += each.ms;
    }
    Put(type + "-top1" + group, pair, totals->front());
    Put(type + "-middle" + group, pair, (*totals)[totals->size() / 2]);
    Put(type + "-bottom1" + group, pair, totals->back());
    Put(type + "-total" + group, pair, sum);
    for (size_t i = 2; i <= 3 && i <= totals->size(); ++i) {
      Put(fmt::format("{}-bottom{}{}", type, i, group), pair, (*totals)[totals->size() - i]);
    }
  }

  std::vector<std::string> order_;
  std::map<std::string, std::vector<std::pair<std::string, std::vector<PairTotal>>>> of_;
  std::vector<std::pair<std::string, std::string>> out_;
};

// The operations of one step and kind.
class KindText {
 public:
  void Add(const Model& model, const CommunicationOp& op, std::span<const CommunicationTask> tasks) {
    Times times;
    Pairs pairs;
    AddTasks(model, tasks, &times, &pairs);
    times.elapsed = static_cast<double>(op.end_ns - op.start_ns) / 1000 / 1000;
    times.idle = times.elapsed - times.transit - times.wait;
    const std::string name = model.NameOf(op);
    const std::string group = "@" + std::to_string(op.group);
    text_ += fmt::format(
        R"j({}{}: {{"Communication Time Info": {{"Start Timestamp(us)": {}, {}}}, )j"
        R"j("Communication Bandwidth Info": {{{}}}}})j",
        text_.empty() ? "" : ", ", Matrix::Quoted(name + group), Number(MicrosAsPrinted(op.start_ns)),
        TimeInfo(times), Links(times, false));
    matrix_.Add(ShortType(LowerCase(name)) + group, pairs, name);
    Merge(times);
  }
  std::string Text() const {
    if (text_.empty()) return "{}";
    return fmt::format(
        R"j({{{}, "Total Op Info": {{"Communication Time Info": {{{}}}, "Communication Bandwidth Info": {{{}}}}}}})j",
        text_, TimeInfo(total_), Links(total_, true));
  }
  std::string MatrixText() { return "{" + matrix_.Text() + "}"; }

 private:
  void Merge(const Times& times) {
    total_.elapsed += times.elapsed;
    total_.transit += times.transit;
    total_.wait += times.wait;
    total_.synchronization += times.synchronization;
    total_.idle += times.idle;
    for (size_t i = 0; i < kLinks; ++i) {
      total_.links[i].mb += times.links[i].mb;
      total_.links[i].ms += times.links[i].ms;
      for (const auto& [size, each] : times.links[i].sizes) total_.links[i].AddSize(size, each.first, each.second);
    }
  }

  std::string text_;
  Matrix matrix_;
  Times total_;
};

struct OpTasks {
  const CommunicationOp* op = nullptr;
  std::span<const CommunicationTask> tasks;
};

// Of the device, by start.
std::vector<OpTasks> OperationsOf(const Model& model, int device) {
  std::vector<OpTasks> found;
  const std::vector<CommunicationTask>& tasks = model.communication.tasks;
  for (size_t i = 0; i < model.communication.ops.size(); ++i) {
    const CommunicationOp& op = model.communication.ops[i];
    if (!op.shown || op.device != device) continue;
    const auto [begin, end] = operators::EqualRange(tasks, static_cast<int32_t>(i), &CommunicationTask::op);
    found.push_back({&op, {begin, end}});
  }
  std::ranges::stable_sort(found, {}, [](const OpTasks& each) { return each.op->start_ns; });
  return found;
}

}  // namespace

CollectiveJson CollectivesAsJson(const Model& model, int device, std::span<const StepSpan> steps) {
  const std::vector<OpTasks> operations = OperationsOf(model, device);
  CollectiveJson made;
  const auto add_step = [&](const StepSpan* step) {
    std::array<KindText, kOpKinds> kinds;
    const auto start_of = [](const OpTasks& each) { return each.op->start_ns; };
    auto begin = operations.begin();
    auto end = operations.end();
    if (step != nullptr) {
      begin = std::ranges::lower_bound(operations, step->start_ns, {}, start_of);
      end = std::ranges::lower_bound(begin, end, step->end_ns, {}, start_of);
    }
    for (const OpTasks& each : std::span(begin, end)) {
      kinds[KindOf(LowerCase(model.TypeOf(*each.op)))].Add(model, *each.op, each.tasks);
      ++made.operations;
    }
    for (std::string* text : {&made.times, &made.matrix}) {
      *text += fmt::format(R"j({}"step{}": {{)j", text->empty() ? "{" : ", ",
                           step == nullptr ? "" : std::to_string(step->number));
      for (size_t kind = 0; kind < kOpKinds; ++kind) {
        *text += fmt::format(R"j({}"{}": {})j", kind > 0 ? ", " : "", kOpKindNames[kind],
                             text == &made.times ? kinds[kind].Text() : kinds[kind].MatrixText());
      }
      *text += "}";
    }
  };
  if (steps.empty()) add_step(nullptr);
  for (const StepSpan& step : steps) add_step(&step);
  made.times += "}";
  made.matrix += "}";
  return made;
}

}  // namespace profd::exporting::csv
