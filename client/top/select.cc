#include "client/top/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "client/json.h"
#include "client/health_view.h"
#include "client/render.h"
#include "client/user_names.h"

namespace profd::client::top {
namespace {

bool Matches(const Device& device, const std::string& filter) {
  if (filter.empty()) return true;
  return HoldsIgnoringCase(fmt::format("npu{} {} {} {} {} {}", device.id, device.chip, device.Problem(),
                                       VerdictWord(device.Verdict()), FlagsText(device.health), fmt::join(device.jobs, " ")),
                           filter);
}

bool OnDevices(const google::protobuf::RepeatedField<uint32_t>& devices, const View& view) {
  return view.devices.empty() || std::ranges::any_of(devices, [&](uint32_t id) {
           return view.devices.contains(id);
         });
}

// Rows without a value come last in either order.
bool Before(const Device& a, const Device& b, const View& view) {
  if (!view.sort) return view.descending ? a.id > b.id : a.id < b.id;
  double x = a.Now(*view.sort);
  double y = b.Now(*view.sort);
  if (std::isnan(x) || std::isnan(y)) {
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
    return a.id < b.id;
  }
  if (x != y) return view.descending ? x > y : x < y;
  return a.id < b.id;
}

double MemoryOf(const Model& model, const v1::JobProcess& process) {
  double sum = kNothing;
  for (const auto& [id, device] : model.devices()) {
    auto memory = device.process_memory.find(process.pid());
    if (memory != device.process_memory.end()) {
      sum = std::isnan(sum) ? memory->second : sum + memory->second;
    }
  }
  return sum;
}

std::string AdviceOf(const Model& model, const v1::Job& job, const v1::JobProcess& process) {
  std::string text;
  for (const v1::Advice& advice : model.advice().advice()) {
    const bool of_job = !advice.has_pid() && advice.job_id() == job.job_id() && advice.uid() == job.uid();
    if (of_job || (advice.has_pid() && advice.pid() == process.pid())) text += (text.empty() ? "" : ",") + advice.check();
  }
  return text;
}

bool Before(const ProcessRow& a, const ProcessRow& b, const View& view) {
  if (view.sort == Measure::kHbmUsed && a.memory != b.memory) {
    if (std::isnan(a.memory) || std::isnan(b.memory)) {
      if (std::isnan(a.memory) != std::isnan(b.memory)) return std::isnan(b.memory);
    } else {
      return view.descending ? a.memory > b.memory : a.memory < b.memory;
    }
  }
  auto key = [](const ProcessRow& row) {
    int64_t rank = row.process->has_rank() ? row.process->rank() : INT64_MAX;
    return std::make_tuple(row.job->job_id(), rank, row.process->pid());
  };
  return key(a) < key(b);
}

}  // namespace

std::vector<const Device*> SelectDevices(const Model& model, const View& view) {
  std::vector<const Device*> rows;
  for (const auto& [id, device] : model.devices()) {
    if (!view.devices.empty() && !view.devices.contains(id)) continue;
    if (!view.job.empty() && std::ranges::find(device.jobs, view.job) == device.jobs.end()) {
      continue;
    }
    if (Matches(device, view.filter)) rows.push_back(&device);
  }
  std::ranges::sort(rows, [&](const Device* a, const Device* b) { return Before(*a, *b, view); });
  return rows;
}

std::vector<ProcessRow> SelectProcesses(const Model& model, const View& view) {
  std::vector<ProcessRow> rows;
  for (const v1::Job& job : model.jobs().jobs()) {
    if (!view.job.empty() && job.job_id() != view.job) continue;
    for (const v1::JobProcess& process : job.processes()) {
      if (!OnDevices(process.devices(), view)) continue;
      std::string text = fmt::format("{} {} {} {} {} {} {}", job.job_id(), process.pid(),
                                     UserText(process.uid()), process.framework(), process.command(),
                                     process.pod_uid(), process.slurm_job());
      for (uint32_t id : process.devices()) text += fmt::format(" npu{}", id);
      if (HoldsIgnoringCase(text, view.filter)) {
        rows.push_back({&job, &process, MemoryOf(model, process), model.ActivityOf(process.pid()),
                        AdviceOf(model, job, process)});
      }
    }
  }
  std::ranges::sort(rows, [&](const ProcessRow& a, const ProcessRow& b) { return Before(a, b, view); });
  return rows;
}

const ProcessRow* SelectedProcess(const std::vector<ProcessRow>& rows, const View& view) {
  if (!view.process || rows.empty()) return nullptr;
  const auto count = static_cast<int>(rows.size());
  return &rows[static_cast<size_t>((*view.process % count + count) % count)];
}

double ProcessRow::KernelsPerSecond() const {
  const auto ns = static_cast<double>(span().end_ns()) - static_cast<double>(span().begin_ns());
  return ns > 0 ? static_cast<double>(span().kernels()) * 1e9 / ns : kNothing;
}

std::vector<const v1::Session*> SelectSessions(const Model& model, const View& view) {
  std::vector<const v1::Session*> rows;
  for (const v1::Session& session : model.sessions().sessions()) {
    if (!view.job.empty() && session.spec().target().job_id() != view.job) continue;
    if (!OnDevices(session.status().devices(), view)) continue;
    std::string text = fmt::format("{} {} {} {}", session.session_id(), session.spec().target().job_id(),
                                   session.spec().label(), UserText(session.owner().uid()));
    for (uint32_t id : session.status().devices()) text += fmt::format(" npu{}", id);
    if (HoldsIgnoringCase(text, view.filter)) rows.push_back(&session);
  }
  return rows;
}

std::array<std::string, 4> ActivityTexts(const ProcessRow& row) {
  if (row.activity == nullptr) return {"-", "-", "-", "-"};
  const auto percent = [](double ratio) {
    return std::isfinite(ratio) && ratio >= 0 && ratio <= 1 ? fmt::format("{:.0f}%", ratio * 100) : "-";
  };
  const double rate = row.KernelsPerSecond();
  return {percent(row.span().computation_ratio()), percent(row.span().communication_ratio()),
          percent(row.span().free_ratio()),
          !std::isfinite(rate) ? "-" : rate < 10'000 ? fmt::format("{:.0f}", rate) : fmt::format("{:.1f}k", rate / 1e3)};
}

std::string LivenessText(const v1::JobProcess& process) {
  if (process.attached()) return "attached";
  if (process.has_silent_ns()) {
    constexpr uint64_t kMost = 1'000'000'000'000'000'000;
    return "silent " + FormatSpan(static_cast<int64_t>(std::min(process.silent_ns(), kMost)));
  }
  return "not attached";
}

std::string DeviceText(const google::protobuf::RepeatedField<uint32_t>& devices) {
  if (devices.empty()) return "-";
  return FormatDevices(std::vector<int32_t>(devices.begin(), devices.end()));
}

std::string JobsText(const Device& device) {
  return device.jobs.empty() ? "-" : fmt::format("{}", fmt::join(device.jobs, ","));
}

}  // namespace profd::client::top
