#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/utf8.h"
#include "client/fleet/fleet.h"
#include "client/health_view.h"
#include "client/json.h"
#include "client/render.h"
#include "client/session_view.h"

namespace profd::client {
namespace {

// Of an error in the table; all of it is in the JSON.
constexpr size_t kMaxErrorWidth = 160;

// What a node's failure is called, in the table and in the summary.
std::string WordOf(const Status& status) {
  switch (ExitCodeFor(status.code())) {
    case kExitOk:
      return "ok";
    case kExitRefused:
      return "refused";
    case kExitNotFound:
      return "not found";
    case kExitUnreachable:
      return "unreachable";
    case kExitPartial:
      return "incomplete";
    default:
      return status.code() == StatusCode::kCancelled || status.code() == StatusCode::kAborted
                 ? "not done"
                 : "failed";
  }
}

Cell StateOf(const NodeResult& result, const std::string& command) {
  if (!result.status.ok()) return {WordOf(result.status), Tone::kBad};
  if (result.undone) return {"stopped again", Tone::kWarning};
  if (result.none) return {command == "export" ? "no dump" : "no session", Tone::kFaint};
  if (command == "fetch" || command == "export") {
    return result.partial ? Cell("incomplete", Tone::kWarning) : Cell("ok", Tone::kGood);
  }
  if ((command == "start" || command == "stop" || command == "dump") && !result.sessions.empty()) {
    Cell state = StateCell(result.sessions.front().status().state());
    if (result.partial) return {state.text + ", partial", Tone::kWarning};
    return state;
  }
  return {"ok", Tone::kGood};
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (char c : text) {
    if (c == '\n') {
      if (line.ends_with('.')) line.pop_back();
      line += "; ";
    } else {
      line += c;
    }
  }
  while (line.ends_with("; ")) line.resize(line.size() - 2);
  return line;
}

std::string Remark(const NodeResult& result) {
  std::string text = result.status.ok() ? "" : OneLine(result.status.message());
  if (!result.note.empty()) text += (text.empty() ? "" : "; ") + OneLine(result.note);
  if (result.partial && text.empty()) text = "not everything that was requested works: profctl show";
  if (text.size() > kMaxErrorWidth) text = text.substr(0, BytesOfWholeCharacters(text, kMaxErrorWidth)) + "...";
  return text;
}

std::string OffsetText(const std::optional<ClockOffset>& offset) {
  if (!offset) return "-";
  return fmt::format("{:+.3f} +-{:.3f} ms", static_cast<double>(offset->offset_ns) / 1e6,
                     static_cast<double>(offset->error_ns) / 1e6);
}

Table StartTable(const FleetReport& report) {
  Table table({"NODE", "STATE", "SESSION", "DEVICES", ">CLOCK OFFSET", "DUMP", "REMARK"});
  for (const NodeResult& r : report.nodes) {
    v1::Session none;
    const v1::Session& s = r.sessions.empty() ? none : r.sessions.front();
    std::string devices = s.status().devices().empty()
                              ? "-"
                              : FormatDevices({s.status().devices().begin(), s.status().devices().end()});
    table.AddRow({r.node, StateOf(r, report.command), OrDash(s.session_id()), devices,
                  OffsetText(r.offset), OrDash(s.status().dump_path()), Remark(r)});
  }
  return table;
}

Table StopTable(const FleetReport& report) {
  Table table({"NODE", "STATE", "SESSION", "DEVICES", ">RECORDS", ">DROPPED", "DUMP", "REMARK"});
  for (const NodeResult& r : report.nodes) {
    Cell state = StateOf(r, report.command);
    if (r.sessions.empty()) {
      table.AddRow({r.node, state, "-", "-", "-", "-", "-", Remark(r)});
    }
    for (const v1::Session& s : r.sessions) {
      table.AddRow({r.node, r.status.ok() ? StateCell(s.status().state()) : state, s.session_id(),
                    FormatDevices({s.status().devices().begin(), s.status().devices().end()}),
                    std::to_string(s.status().records()), std::to_string(s.status().dropped_records()),
                    OrDash(s.status().dump_path()), Remark(r)});
    }
  }
  return table;
}

Table StatusTable(const FleetReport& report) {
  Table table({"NODE", "STATE", "DEVICES", ">SESSIONS", ">DUMPS FREE", "VERSION", "REMARK"});
  for (const NodeResult& r : report.nodes) {
    Cell state = StateOf(r, report.command);
    if (!r.description) {
      table.AddRow({r.node, state, "-", "-", "-", "-", Remark(r)});
      continue;
    }
    const v1::Node& node = *r.description;
    table.AddRow({r.node, state, OrDash(ChipsText(node)),
                  fmt::format("{} of {}", node.active_sessions(), node.max_sessions()),
                  FormatBytes(node.dump_free_bytes()), node.version(), Remark(r)});
  }
  return table;
}

Table ListTable(const FleetReport& report, const Clock& clock) {
  Table table({"NODE", "SESSION", "STATE", "JOB", ">UID", "DEVICES", "STARTED", ">RAN FOR", ">DUMP",
               "REMARK"});
  for (const NodeResult& r : report.nodes) {
    if (!r.status.ok()) {
      table.AddRow({r.node, "-", StateOf(r, report.command), "-", "-", "-", "-", "-", "-", Remark(r)});
    }
    for (const v1::Session& s : r.sessions) {
      table.AddRow({r.node, s.session_id(), StateCell(s.status().state()), OrDash(s.spec().target().job_id()),
                    std::to_string(s.owner().uid()), FormatDevices({s.status().devices().begin(), s.status().devices().end()}),
                    FormatTime(s.status().started_ns()), RanFor(s, clock.WallNs() + (r.offset ? r.offset->offset_ns : 0)),
                    s.status().dump_path().empty() ? "-" : FormatBytes(s.status().dump_bytes()), Remark(r)});
    }
  }
  return table;
}

Table FetchTable(const FleetReport& report) {
  Table table({"NODE", "STATE", "SESSION", "RANKS", ">SIZE", "DUMP", "REMARK"});
  for (const NodeResult& r : report.nodes) {
    if (r.dumps.empty()) {
      table.AddRow({r.node, StateOf(r, report.command), "-", "-", "-", "-", Remark(r)});
    }
    for (const FetchedDump& d : r.dumps) {
      std::string remark = d.status.ok() ? (d.was_there ? "was there already" : "")
                                         : OneLine(d.status.message());
      Cell state = d.status.ok() ? Cell("ok", Tone::kGood) : Cell(WordOf(d.status), Tone::kBad);
      table.AddRow({r.node, state, d.session.session_id(), OrDash(d.ranks),
                    FormatBytes(d.bytes), d.path, remark});
    }
    if (!r.dumps.empty() && !r.note.empty()) {
      table.AddRow({r.node, StateOf(r, report.command), "-", "-", "-", "-", r.note});
    }
  }
  return table;
}

Cell ArchivedCell(const v1::Dump& dump) {
  switch (dump.archive().state()) {
    case v1::ArchiveState::STATE_LOADED:
      return {"loaded", Tone::kGood};
    case v1::ArchiveState::STATE_WAITING:
      return {"waiting", Tone::kWarning};
    default:
      return {"not loaded", Tone::kBad};
  }
}

Table ExportTable(const FleetReport& report) {
  Table table({"NODE", "STATE", "SESSION", "RUN", ">ROWS", ">SIZE", "DUMP", "REMARK"});
  for (const NodeResult& r : report.nodes) {
    if (r.archived.empty()) table.AddRow({r.node, StateOf(r, report.command), "-", "-", "-", "-", "-", Remark(r)});
    for (const v1::Dump& dump : r.archived) {
      const v1::ArchiveState& state = dump.archive();
      const bool loaded = state.state() == v1::ArchiveState::STATE_LOADED;
      std::string remark = OneLine(state.problem());
      if (remark.empty() && !loaded) remark = OneLine(r.note);
      table.AddRow({r.node, ArchivedCell(dump), OrDash(dump.session_id()), OrDash(Printable(state.run())),
                    loaded ? std::to_string(state.rows()) : "-", FormatBytes(dump.bytes()), dump.name(), Printable(remark)});
    }
  }
  return table;
}

Json ErrorJson(const Status& status) {
  if (status.ok()) return nullptr;
  return {{"code", CodeWord(status.code())}, {"message", status.message()}};
}

Json NodeJson(const NodeResult& r, const std::string& command) {
  Json json = {{"node", r.node}, {"ok", r.ok() && !r.none}, {"state", StateOf(r, command).text},
               {"error", ErrorJson(r.status)}, {"note", r.note}};
  if (command == "start") {
    json["clock_offset_ns"] = r.offset ? Json(r.offset->offset_ns) : Json();
    json["clock_offset_error_ns"] = r.offset ? Json(r.offset->error_ns) : Json();
    json["late"] = r.late;
    json["undone"] = r.undone;
  }
  if (command == "status") {
    json["description"] = r.description ? ToJson(*r.description) : Json();
  }
  if (command == "fetch" || !r.dumps.empty()) {
    json["dumps"] = Json::array();
    for (const FetchedDump& d : r.dumps) {
      json["dumps"].push_back({{"session_id", d.session.session_id()}, {"ranks", d.ranks},
                               {"path", d.path}, {"files", d.files}, {"bytes", d.bytes},
                               {"was_there", d.was_there}, {"error", ErrorJson(d.status)}});
    }
  }
  if (command == "export") {
    json["dumps"] = Json::array();
    for (const v1::Dump& dump : r.archived) {
      const v1::ArchiveState& state = dump.archive();
      json["dumps"].push_back({{"dump", dump.name()}, {"session_id", dump.session_id()}, {"uid", dump.uid()}, {"bytes", dump.bytes()},
                               {"state", ArchivedCell(dump).text}, {"run", state.run()}, {"rows", state.rows()},
                               {"attempts", state.attempts()}, {"problem", state.problem()}});
    }
  }
  if (command != "status" && command != "fetch" && command != "export") {
    json["sessions"] = Json::array();
    for (const v1::Session& s : r.sessions) json["sessions"].push_back(ToJson(s));
  }
  return json;
}

void PrintJsonReport(Io& io, const FleetReport& report, int exit_code) {
  auto good = std::ranges::count_if(report.nodes, [](const NodeResult& r) { return r.ok() && !r.none; });
  Json json = {{"command", report.command}, {"job_id", report.job_id},
               {"fleet_id", report.fleet_id}, {"exit_code", exit_code},
               {"interrupted", report.interrupted}, {"ok", good},
               {"failed", std::ranges::count_if(report.nodes, [](const NodeResult& r) { return !r.ok(); })},
               {"common_start_ns", report.common_start_ns}, {"warnings", report.warnings},
               {"nodes", Json::array()}};
  for (const NodeResult& r : report.nodes) json["nodes"].push_back(NodeJson(r, report.command));
  io.out << JsonText(json, /*indent=*/true) << std::endl;
}

// Who failed, by what happened to them: "unreachable (2 of 64): n3, n9".
void PrintFailures(Io& io, const FleetReport& report) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const NodeResult& r : report.nodes) {
    if (r.ok()) continue;
    std::string word = !r.status.ok() ? WordOf(r.status)
                       : r.undone     ? "stopped again"
                                      : "partial";
    groups[word].push_back(r.node);
  }
  for (const auto& [word, nodes] : groups) {
    io.err << fmt::format("profctl: {} ({} of {}): {}\n", word, nodes.size(), report.nodes.size(),
                          Printable(fmt::format("{}", fmt::join(nodes, ", "))));
  }
  if (report.interrupted) io.err << "profctl: interrupted\n";
  for (const std::string& warning : report.warnings) {
    io.err << Paint("profctl: warning: ", Tone::kWarning, io.err_color()) << Printable(warning)
           << '\n';
  }
  io.err.flush();
}

}  // namespace

int ExitCodeOf(const FleetReport& report) {
  size_t good = 0;
  size_t none = 0;
  std::map<int, size_t> failed;
  for (const NodeResult& r : report.nodes) {
    if (r.ok()) {
      ++(r.none ? none : good);
    } else if (r.partial && r.status.ok()) {
      ++failed[kExitPartial];
    } else if (!r.undone && r.status.code() != StatusCode::kAborted) {
      ++failed[ExitCodeFor(r.status.code())];
    }
  }
  if (report.interrupted || report.incomplete) return kExitPartial;
  if (failed.empty() && good > 0) return kExitOk;
  // "No session here" is an answer; alone it is that there is none anywhere.
  if (failed.empty()) return kExitNotFound;
  if (good > 0 || failed.contains(kExitPartial)) return kExitPartial;
  // Where a session was stopped again the job is there, though not on the node that refused.
  const bool stopped_again = std::ranges::any_of(report.nodes, &NodeResult::undone);
  if (stopped_again && failed.contains(kExitNotFound)) return kExitRefused;
  for (int code : {kExitRefused, kExitNotFound, kExitUnreachable}) {
    if (failed.contains(code)) return none > 0 ? kExitPartial : code;
  }
  return kExitInternal;
}

int PrintReport(Io& io, const Clock& clock, bool json, const FleetReport& report) {
  int exit_code = ExitCodeOf(report);
  if (json) {
    PrintJsonReport(io, report, exit_code);
  } else if (report.command == "start") {
    StartTable(report).Print(io.out, io.out_color());
  } else if (report.command == "stop" || report.command == "dump") {
    StopTable(report).Print(io.out, io.out_color());
    const bool fetched = std::ranges::any_of(report.nodes, [](const NodeResult& r) { return !r.dumps.empty(); });
    if (fetched) FetchTable(report).Print(io.out, io.out_color());
  } else if (report.command == "status") {
    StatusTable(report).Print(io.out, io.out_color());
  } else if (report.command == "export") {
    ExportTable(report).Print(io.out, io.out_color());
  } else if (report.command == "fetch") {
    FetchTable(report).Print(io.out, io.out_color());
  } else {
    Table table = ListTable(report, clock);
    if (table.empty()) {
      io.out << "no sessions\n";
    } else {
      table.Print(io.out, io.out_color());
    }
  }
  if (!json && !report.fleet_id.empty()) {
    io.out << "fleet " << report.fleet_id << ": stop, fetch and export take it for the sessions' ids\n";
  }
  io.out.flush();
  PrintFailures(io, report);
  return exit_code;
}

}  // namespace profd::client
