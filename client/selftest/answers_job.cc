// Answers from sessions inside the processes of a job that trains.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "client/render.h"
#include "client/selftest/selftest.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client::selftest {
namespace {

// Why there is no answer from a session; unset: it ran, and processes were requested to collect.
std::optional<Answer> DidNotRun(const std::optional<Recorded>& recorded) {
  if (!recorded) return Open("no session was started");
  if (!recorded->status.ok()) return Open("the session did not run: " + recorded->status.message());
  const auto& processes = recorded->running.status().processes();
  const bool ordered = std::ranges::any_of(processes, [](const v1::SessionProcess& process) { return process.has_collector(); });
  if (ordered) return std::nullopt;
  return Open("no process of the job has attached: start it with libprofd (in Python profd.init())");
}

// Without what identifies a machine or user.
Json ProcessesJson(const Recorded& recorded) {
  Json list = Json::array();
  for (const v1::SessionProcess& process : recorded.running.status().processes()) {
    if (!process.has_collector()) continue;
    const v1::ProcessCollector& collector = process.collector();
    list.push_back({{"rank", process.has_rank() ? Json(process.rank()) : Json()}, {"provider", EnumWord(collector.provider())}, {"state", EnumWord(collector.state())},
                    {"code", collector.has_code() ? Json(collector.code()) : Json()}, {"detail", collector.detail()}, {"version", collector.version()}});
  }
  return list;
}

struct Kernels {
  uint64_t all = 0;
  uint64_t named = 0;
  uint64_t processes = 0;  // with any
  uint64_t lost_records = 0;
  uint64_t lost_bytes = 0;
  uint64_t unreadable_bytes = 0;  // part of lost_bytes
  double per_second = 0;
};

Kernels KernelsOf(const Recorded& recorded) {
  Kernels sum;
  for (const v1::ProcessActivity& process : recorded.activity.processes()) {
    uint64_t here = 0;
    int64_t span_ns = 0;
    for (const v1::ActivitySpan& span : process.spans()) {
      here += span.kernels();
      span_ns += span.end_ns() - span.begin_ns();
    }
    sum.all += here;
    sum.processes += here > 0 ? 1 : 0;
    if (span_ns > 0) sum.per_second += static_cast<double>(here) * 1e9 / static_cast<double>(span_ns);
    for (const v1::HotKernel& kernel : process.kernels()) sum.named += kernel.name().empty() ? 0 : kernel.count();
    sum.lost_records += process.lost_records();
    sum.lost_bytes += process.lost_bytes();
    sum.unreadable_bytes += process.unreadable_bytes();
  }
  return sum;
}

Json Evidence(const Recorded& recorded, const Kernels& kernels) {
  return {{"processes", ProcessesJson(recorded)}, {"kernels", kernels.all}, {"kernels_per_s", kernels.per_second}, {"named", kernels.named},
          {"processes_with_kernels", kernels.processes}, {"lost_records", kernels.lost_records}, {"lost_bytes", kernels.lost_bytes},
          {"unreadable_bytes", kernels.unreadable_bytes}};
}

std::string WhyNoKernels(const Recorded& recorded) {
  for (const v1::SessionProcess& process : recorded.running.status().processes()) {
    const v1::ProcessCollector& collector = process.collector();
    if (process.has_collector() && collector.state() != v1::ProcessCollector::STATE_ON) {
      return fmt::format("no kernel was recorded: {} is {}{}{}", EnumWord(collector.provider()), EnumWord(collector.state()), collector.detail().empty() ? "" : ", ", collector.detail());
    }
  }
  return "no kernel was recorded, although MSPTI is on";
}

}  // namespace

Answer AskMsptiLate(const Facts& facts) {
  if (auto none = DidNotRun(facts.mspti)) return *std::move(none);
  const Kernels kernels = KernelsOf(*facts.mspti);
  const Json evidence = Evidence(*facts.mspti, kernels);
  if (kernels.all == 0) return {Verdict::kNo, WhyNoKernels(*facts.mspti), evidence};
  if (kernels.named == 0) return {Verdict::kNo, CountText(kernels.all, "kernel") + " recorded, without names", evidence};
  return {Verdict::kYes, fmt::format("{:.0f} kernels/s", kernels.per_second), evidence};
}

Answer AskMsptiTwo(const Facts& facts) {
  if (auto none = DidNotRun(facts.mspti)) return *std::move(none);
  std::map<uint32_t, std::set<int32_t>> users;
  for (const v1::Job& job : facts.jobs) {
    for (const v1::JobProcess& process : job.processes()) {
      for (uint32_t device : process.devices()) {
        if (process.attached()) users[device].insert(process.pid());
      }
    }
  }
  const auto shared = std::ranges::find_if(users, [](const auto& each) { return each.second.size() > 1; });
  if (shared == users.end()) return Open("no two attached processes use one device");
  size_t with = 0;
  for (const v1::ProcessActivity& process : facts.mspti->activity.processes()) {
    const bool any = std::ranges::any_of(process.spans(), [](const v1::ActivitySpan& span) { return span.kernels() > 0; });
    with += any && shared->second.contains(process.pid()) ? 1 : 0;
  }
  const bool all = with == shared->second.size();
  return {all ? Verdict::kYes : Verdict::kNo, fmt::format("of {} processes on device {} kernels were recorded of {}", shared->second.size(), shared->first, with),
          Evidence(*facts.mspti, KernelsOf(*facts.mspti))};
}

Answer AskMsptiKeepsUp(const Facts& facts) {
  if (auto none = DidNotRun(facts.mspti)) return *std::move(none);
  const Kernels kernels = KernelsOf(*facts.mspti);
  if (kernels.all == 0) return Open(WhyNoKernels(*facts.mspti));
  const Json evidence = Evidence(*facts.mspti, kernels);
  if (const uint64_t without_buffer = kernels.lost_bytes - std::min(kernels.lost_bytes, kernels.unreadable_bytes); without_buffer > 0) {
    return {Verdict::kNo, fmt::format("{} records and {} bytes without a buffer lost at {:.0f} kernels/s", kernels.lost_records, without_buffer, kernels.per_second),
            evidence};
  }
  return {kernels.lost_records == 0 ? Verdict::kYes : Verdict::kNo,
          fmt::format("{} lost at {:.0f} kernels/s; what the driver drops is not counted anywhere", CountText(kernels.lost_records, "record"), kernels.per_second), evidence};
}

Answer AskMsptiRecords(const Facts& facts) {
  if (auto none = DidNotRun(facts.mspti)) return *std::move(none);
  const Kernels kernels = KernelsOf(*facts.mspti);
  if (kernels.all == 0) return Open(WhyNoKernels(*facts.mspti));
  const Json evidence = Evidence(*facts.mspti, kernels);
  if (kernels.unreadable_bytes > 0) {
    return {Verdict::kNo, fmt::format("{} bytes are of records of no known kind, or of incomplete ones", kernels.unreadable_bytes), evidence};
  }
  return {Verdict::kYes, "all of its buffers were of known kinds", evidence};
}

Answer AskMsptiBeside(const Facts& facts) {
  if (auto none = DidNotRun(facts.mspti)) return *std::move(none);
  const Kernels kernels = KernelsOf(*facts.mspti);
  Json evidence = Evidence(*facts.mspti, kernels);
  size_t running = 0;
  Json refused = Json::array();
  for (const v1::Device& device : facts.mspti->node.devices()) {
    for (const v1::Channel& channel : device.channels()) {
      running += channel.state() == v1::Channel::STATE_RUNNING ? 1 : 0;
      const bool bad = channel.state() == v1::Channel::STATE_BUSY || channel.state() == v1::Channel::STATE_FAILED;
      if (bad) refused.push_back({{"device", device.id()}, {"channel", channel.id()}, {"detail", channel.detail()}});
    }
  }
  evidence["channels_running"] = running;
  evidence["channels_refused"] = refused;
  if (running == 0) return {Verdict::kOpen, "no sampling channel ran at the same time", evidence};
  const bool both = kernels.all > 0 && refused.empty();
  return {both ? Verdict::kYes : Verdict::kNo, fmt::format("{} running, {} refused, {:.0f} kernels/s", CountText(running, "channel"), refused.size(), kernels.per_second), evidence};
}

Answer AskAclprofThread(const Facts& facts) {
  if (auto none = DidNotRun(facts.aclprof)) return *std::move(none);
  size_t ended = 0;
  std::string bad;
  std::string refused;
  for (const v1::SessionProcess& process : facts.aclprof->ended.status().processes()) {
    if (!process.has_collector()) continue;
    using Collector = v1::ProcessCollector;
    const Collector::State state = process.collector().state();
    const std::string text = fmt::format("{} {}", EnumWord(state), process.collector().detail());
    if (state == Collector::STATE_ENDED || state == Collector::STATE_ON) {
      ++ended;
    } else if (state == Collector::STATE_OFF) {  // the process does not let itself be collected from
      if (refused.empty()) refused = text;
    } else if (bad.empty()) {
      bad = text;
    }
  }
  Recorded last = *facts.aclprof;
  last.running = last.ended;
  const Json evidence = {{"processes", ProcessesJson(last)}, {"stop_ms", facts.aclprof->stop_ns / 1'000'000}};
  if (!bad.empty()) return {Verdict::kNo, bad, evidence};
  if (ended == 0) return {Verdict::kOpen, "no process has collected: " + refused, evidence};
  return {Verdict::kYes, fmt::format("in {}; stopping took {:.1f} s", CountText(ended, "process"), static_cast<double>(facts.aclprof->stop_ns) / 1e9), evidence};
}

Answer AskClockSteps(const Facts&) {
  return Open("record a job for an hour with --task-time l1 --msproftx on, export it (profctl export DUMP --format sqlite), and compare the times of kernels with the steps' marks");
}

Answer AskGraphMode(const Facts&) {
  return Open("record a job in graph mode (captured graphs, GE sink) with --task-time l1, and compare counts and names with those without");
}

}  // namespace profd::client::selftest
