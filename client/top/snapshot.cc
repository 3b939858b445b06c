#include "client/top/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/health_view.h"
#include "client/render.h"
#include "client/session_view.h"
#include "client/top/select.h"
#include "client/user_names.h"

namespace profd::client::top {
namespace {

Json DeviceJson(const Device& device) {
  Json json = {{"id", device.id},
               {"physical_id", device.physical_id},
               {"chip", device.chip},
               {"problem", device.Problem()},
               {"health", VerdictWord(device.Verdict())},
               {"flags", ToJson(device.health)["flags"]},
               {"faults", ToJson(device.health)["faults"]}};
  for (size_t i = 0; i < kMeasures; ++i) {
    json[std::string(InfoOf(static_cast<Measure>(i)).name)] = NumberJson(device.now[i]);
  }
  json["jobs"] = device.jobs;
  return json;
}

Json ProcessJson(const ProcessRow& row) {
  Json json = {{"job_id", row.job->job_id()}, {"memory_bytes", NumberJson(row.memory)}};
  json.update(ToJson(*row.process));
  json["advice"] = row.advice;
  json["activity"] = nullptr;
  if (row.activity == nullptr) return json;
  Json activity = ToJson(row.span());
  activity["kernels_per_second"] = NumberJson(row.KernelsPerSecond());
  activity["hottest_kernels"] = ToJson(*row.activity)["kernels"];
  activity["kernels_span_ns"] = row.activity->kernels_span_ns();
  activity["kernels_total_ns"] = row.activity->kernels_total_ns();
  json["activity"] = std::move(activity);
  return json;
}

Json SessionJson(const v1::Session& session) {
  Json json = ToJson(session);
  for (const char* part : {"outcomes", "effective_options", "processes", "metadata", "segments"}) {
    json.erase(part);
  }
  return json;
}

void PrintDevices(const Model& model, const View& view, bool color, std::ostream& out) {
  Table table({">NPU", "CHIP", ">UTIL", ">HBM", ">SIZE", ">BW", ">POWER", ">TEMP", ">FREQ", ">HCCS",
               ">ROCE", ">PCIE", "HEALTH", "FLAGS", "JOB"});
  for (const Device* device : SelectDevices(model, view)) {
    std::vector<Cell> cells = {std::to_string(device->id), OrDash(device->chip)};
    for (Measure measure : {Measure::kUtilization, Measure::kHbmUsed, Measure::kHbmSize,
                            Measure::kHbmBandwidth, Measure::kPower, Measure::kTemperature,
                            Measure::kFrequency, Measure::kHccs, Measure::kRoce, Measure::kPcie}) {
      cells.emplace_back(ShortText(measure, device->Now(measure)));
    }
    cells.push_back(VerdictCell(device->Verdict()));
    cells.emplace_back(FlagsText(device->health));
    cells.emplace_back(JobsText(*device));
    table.AddRow(std::move(cells));
  }
  if (table.empty()) {
    out << "no device\n";
    return;
  }
  table.Print(out, color);
  for (const Device* device : SelectDevices(model, view)) {
    if (device->Problem().empty()) continue;
    out << "NPU " << device->id << ": " << Printable(device->Problem()) << '\n';
  }
}

void PrintProcesses(const Model& model, const View& view, bool color, std::ostream& out) {
  const std::vector<ProcessRow> rows = SelectProcesses(model, view);
  const bool active = std::ranges::any_of(rows, [](const auto& row) { return row.activity; });
  std::vector<std::string> headers = {"JOB", ">RANK", ">PID", "USER", "NPU", ">MEMORY", ">STEP"};
  if (active) headers.insert(headers.end(), {">COMP", ">COMM", ">FREE", ">KERN/S"});
  const bool advised = std::ranges::any_of(rows, [](const auto& row) { return !row.advice.empty(); });
  if (advised) headers.emplace_back("ADVICE");
  headers.insert(headers.end(), {"STATE", "COMMAND"});
  Table table(std::move(headers));
  for (const ProcessRow& row : rows) {
    const v1::JobProcess& p = *row.process;
    std::vector<Cell> cells = {OrDash(row.job->job_id()), p.has_rank() ? std::to_string(p.rank()) : "-",
                               std::to_string(p.pid()), UserText(p.uid()), DeviceText(p.devices()),
                               ShortText(Measure::kHbmUsed, row.memory),
                               p.has_step() ? std::to_string(p.step()) : "-"};
    if (active) {
      for (std::string& text : ActivityTexts(row)) cells.emplace_back(std::move(text));
    }
    if (advised) cells.push_back(row.advice.empty() ? Cell("-") : Cell(row.advice, Tone::kWarning));
    cells.emplace_back(LivenessText(p));
    cells.emplace_back(OrDash(p.command()));
    table.AddRow(std::move(cells));
  }
  if (table.empty()) return;
  out << '\n';
  table.Print(out, color);
}

void PrintAdvice(const Model& model, std::ostream& out) {
  for (const v1::Advice& advice : model.advice().advice()) {
    out << (&advice == &model.advice().advice(0) ? "\n" : "") << Printable(advice.check()) << ": "
        << Printable(advice.job_id().empty() ? std::to_string(advice.pid()) : "job " + advice.job_id())
        << (advice.has_rank() ? fmt::format(", rank {}", advice.rank()) : "") << ": " << Printable(advice.what()) << '\n';
  }
}

void PrintSessions(const Model& model, const View& view, bool color, std::ostream& out) {
  Table table({"SESSION", "STATE", "JOB", "USER", "NPU", ">RECORDS", ">DROPPED", "LABEL"});
  for (const v1::Session* session : SelectSessions(model, view)) {
    table.AddRow({session->session_id(), StateCell(*session), OrDash(session->spec().target().job_id()),
                  UserText(session->owner().uid()), DeviceText(session->status().devices()),
                  std::to_string(session->status().records()),
                  std::to_string(session->status().dropped_records() + session->status().dropped_marks()),
                  OrDash(session->spec().label())});
  }
  if (table.empty()) return;
  out << '\n';
  table.Print(out, color);
}

}  // namespace

Json SnapshotJson(const Model& model, const View& view, int64_t wall_ns) {
  const Connection& connection = model.connection();
  Json json = {{"time_ns", wall_ns},
               {"hostname", model.node().hostname()},
               {"simulated", model.node().simulated()},
               {"connected", connection.up},
               {"problem", connection.problem},
               {"interval_ms", view.interval_ms},
               {"sort", SortWord(view)},
               {"descending", view.descending}};
  Json devices = Json::array();
  for (const Device* device : SelectDevices(model, view)) devices.push_back(DeviceJson(*device));
  Json processes = Json::array();
  for (const ProcessRow& row : SelectProcesses(model, view)) processes.push_back(ProcessJson(row));
  Json sessions = Json::array();
  for (const v1::Session* session : SelectSessions(model, view)) {
    sessions.push_back(SessionJson(*session));
  }
  json["devices"] = std::move(devices);
  json["processes"] = std::move(processes);
  json["sessions"] = std::move(sessions);
  json["advice"] = ToJson(model.advice())["advice"];
  json["dropped_records"] = model.dropped_records();
  json["dropped_samples"] = model.dropped_samples();
  return json;
}

void PrintSnapshot(const Model& model, const View& view, bool color, std::ostream& out) {
  out << Printable(model.node().hostname()) << ": " << CountText(model.devices().size(), "device") << ", "
      << CountText(static_cast<uint64_t>(model.jobs().jobs_size()), "job") << ", "
      << CountText(static_cast<uint64_t>(model.sessions().sessions_size()), "session") << " running, "
      << CountText(model.dropped_records(), "record") << " dropped\n";
  PrintDevices(model, view, color, out);
  PrintProcesses(model, view, color, out);
  PrintAdvice(model, out);
  PrintSessions(model, view, color, out);
}

}  // namespace profd::client::top
