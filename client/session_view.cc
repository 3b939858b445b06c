#include "client/session_view.h"
#include "proto/enum_word/enum_word.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace profd::client {
namespace {

Cell ResultCell(v1::Outcome::Result result) {
  std::string word = EnumWord(result);
  if (word.empty()) return fmt::format("unknown {}", static_cast<int>(result));
  switch (result) {
    case v1::Outcome::RESULT_RUNNING:
    case v1::Outcome::RESULT_FINISHED:
      return {word, Tone::kGood};
    case v1::Outcome::RESULT_UNSUPPORTED:
      return {word, Tone::kFaint};
    case v1::Outcome::RESULT_DENIED:
    case v1::Outcome::RESULT_BUSY:
    case v1::Outcome::RESULT_PARTIAL:
      return {word, Tone::kWarning};
    case v1::Outcome::RESULT_FAILED:
      return {word, Tone::kBad};
    default:
      return word;
  }
}

// Equal answers of one collector.
struct Group {
  const v1::Outcome* first;
  std::vector<int32_t> devices;
  uint64_t records = 0;
  uint64_t bytes = 0;
  uint64_t dropped_records = 0;
  uint64_t dropped_bytes = 0;
  uint64_t garbage_bytes = 0;
};

bool SameAnswer(const v1::Outcome& a, const v1::Outcome& b) {
  return a.collector() == b.collector() && a.result() == b.result() && a.detail() == b.detail() &&
         a.hz() == b.hz() && a.thinned() == b.thinned() && a.rebased() == b.rebased() &&
         a.has_device() == b.has_device();
}

std::vector<Group> GroupOutcomes(const v1::Session& session) {
  std::vector<Group> groups;
  for (const v1::Outcome& outcome : session.status().outcomes()) {
    auto group = groups.begin();
    while (group != groups.end() && !SameAnswer(*group->first, outcome)) ++group;
    if (group == groups.end())
      group = groups.insert(group, Group{.first = &outcome, .devices = {}});
    group->devices.push_back(outcome.has_device() ? static_cast<int32_t>(outcome.device()) : -1);
    group->records += outcome.records();
    group->bytes += outcome.bytes();
    group->dropped_records += outcome.dropped_records();
    group->dropped_bytes += outcome.dropped_bytes();
    group->garbage_bytes += outcome.garbage_bytes();
  }
  return groups;
}

bool HasRate(v1::Outcome::Result result) {
  return result == v1::Outcome::RESULT_RUNNING || result == v1::Outcome::RESULT_FINISHED;
}

std::string Notes(const Group& group) {
  std::string notes = group.first->detail();
  auto add = [&notes](std::string_view note) {
    if (!notes.empty()) notes += "; ";
    notes += note;
  };
  if (group.first->thinned()) add("thinned from a faster session");
  if (group.first->rebased()) add("timestamps moved to this session's start");
  if (group.garbage_bytes > 0) {
    add(fmt::format("{} that were no records", FormatBytes(group.garbage_bytes)));
  }
  return notes;
}

bool WasNamed(const v1::Session& session, const std::string& collector) {
  return std::ranges::any_of(session.status().effective_options(), [&collector](const v1::EffectiveOption& effective) {
           return effective.key() == collector && !effective.asked().empty();
         }) ||
         std::ranges::any_of(session.spec().collectors(), [&collector](const v1::CollectorRequest& named) { return named.name() == collector; });
}

// What makes a session partial. What processes do not do, or in part only, does so once none can join any more; what the
// chip cannot, or no process was there for, if the request named it: a session without options takes what there is.
bool IsNotCollected(const v1::Session& session, const v1::Outcome& outcome) {
  switch (outcome.result()) {
    case v1::Outcome::RESULT_RUNNING:
    case v1::Outcome::RESULT_FINISHED:
      return false;
    case v1::Outcome::RESULT_NEEDS_PROCESS:
      return IsFinal(session.status().state()) && WasNamed(session, outcome.collector());
    case v1::Outcome::RESULT_UNSPECIFIED:
    case v1::Outcome::RESULT_WAITING:
    case v1::Outcome::RESULT_PARTIAL:
    case v1::Outcome::RESULT_OFF:
      return IsFinal(session.status().state());
    case v1::Outcome::RESULT_UNSUPPORTED:
      return WasNamed(session, outcome.collector());
    default:
      return true;
  }
}

std::string OfSession(const v1::Session& session, bool named) { return named ? fmt::format("session {}: ", session.session_id()) : ""; }

Cell DroppedCell(uint64_t records, uint64_t bytes) {
  if (records == 0 && bytes == 0) return "0";
  std::string text = std::to_string(records);
  if (records == 0) text = FormatBytes(bytes);
  return {text, Tone::kBad};
}

}  // namespace

int ExitForEnded(const v1::Session& session) {
  bool bad = session.status().state() == v1::Session::STATE_FAILED || session.status().state() == v1::Session::STATE_INTERRUPTED;
  return bad ? kExitPartial : kExitOk;
}

Cell StateCell(v1::Session::State state) {
  std::string word = EnumWord(state);
  if (word.empty()) return fmt::format("unknown {}", static_cast<int>(state));
  switch (state) {
    case v1::Session::STATE_RUNNING:
    case v1::Session::STATE_DONE:
      return {word, Tone::kGood};
    case v1::Session::STATE_FAILED:
      return {word, Tone::kBad};
    case v1::Session::STATE_INTERRUPTED:
      return {word, Tone::kWarning};
    default:
      return word;
  }
}

bool IsPartial(const v1::Session& session) {
  return session.status().state() != v1::Session::STATE_FAILED &&
         std::ranges::any_of(session.status().outcomes(), [&session](const v1::Outcome& outcome) { return IsNotCollected(session, outcome); });
}

Cell StateCell(const v1::Session& session) {
  Cell cell = StateCell(session.status().state());
  if (session.status().has_collecting_files()) return {cell.text + ", collecting files", cell.tone};
  if (IsPartial(session)) return {cell.text + ", partial", Tone::kWarning};
  return cell;
}

void PrintOutcomes(std::ostream& out, const v1::Session& session, bool with_counts, bool color) {
  std::vector<std::string> headers = {"COLLECTOR", "DEVICES", "RESULT", ">RATE"};
  if (with_counts) headers.insert(headers.end(), {">RECORDS", ">BYTES", ">DROPPED"});
  headers.emplace_back("DETAIL");
  Table table(std::move(headers));
  for (const Group& group : GroupOutcomes(session)) {
    const v1::Outcome& first = *group.first;
    std::vector<Cell> row = {first.collector(), FormatDevices(group.devices),
                             ResultCell(first.result()),
                             HasRate(first.result()) ? FormatHz(first.hz()) : ""};
    if (with_counts) {
      row.emplace_back(std::to_string(group.records));
      row.emplace_back(FormatBytes(group.bytes));
      row.push_back(DroppedCell(group.dropped_records, group.dropped_bytes));
    }
    row.emplace_back(Notes(group));
    table.AddRow(std::move(row));
  }
  if (!table.empty()) table.Print(out, color, "  ");
}

void PrintNotCollected(const Context& context, const v1::Session& session, bool named) {
  if (!IsFinal(session.status().state())) return;
  v1::Session left;
  for (const v1::Outcome& outcome : session.status().outcomes()) {
    if (IsNotCollected(session, outcome)) *left.mutable_status()->add_outcomes() = outcome;
  }
  if (left.status().outcomes().empty()) return;
  Warn(context, OfSession(session, named) + "not everything that was requested was collected:");
  PrintOutcomes(context.io.err, left, /*with_counts=*/false, context.io.err_color());
}

std::string RanFor(const v1::Session& session, int64_t now_ns) {
  const v1::SessionStatus& status = session.status();
  const bool end_known = status.ended_ns() != 0;
  if (status.started_ns() == 0 || (!end_known && IsFinal(status.state()))) return "-";
  return FormatSpan((end_known ? status.ended_ns() : now_ns) - status.started_ns());
}

namespace {

// Between the segments of a session that resumed.
int64_t UncoveredNs(const v1::Session& session) {
  int64_t gaps = 0;
  int64_t ended = 0;
  for (const v1::Segment& segment : session.status().segments()) {
    if (ended != 0) gaps += std::max<int64_t>(0, segment.started_ns() - ended);
    ended = segment.ended_ns();
  }
  return gaps;
}

}  // namespace

void PrintSessionHead(std::ostream& out, const v1::Session& session, const Cell& state, bool color) {
  out << "session " << Printable(session.session_id()) << "  " << Paint(state.text, state.tone, color);
  if (!session.status().reason().empty()) out << "  (" << Printable(session.status().reason()) << ")";
  out << '\n';
}

void PrintStatistics(std::ostream& out, const v1::Session& session, bool color) {
  if (session.status().statistics().empty()) return;
  Table table({">NPU", ">ENERGY", ">PEAK MEMORY", ">MEAN UTILISATION", ">ECC CORRECTED",
               ">ECC UNCORRECTED"});
  for (const v1::DeviceStatistics& one : session.status().statistics()) {
    auto count = [](bool known, uint64_t errors, Tone tone) {
      return !known ? Cell("-") : Cell(std::to_string(errors), errors > 0 ? tone : Tone::kPlain);
    };
    table.AddRow({std::to_string(one.device()),
                  one.has_energy_joules() ? fmt::format("{:.1f} kJ", one.energy_joules() / 1e3) : "-",
                  one.has_peak_memory_bytes() ? FormatBytes(one.peak_memory_bytes()) : "-",
                  one.has_mean_utilization_ratio()
                      ? fmt::format("{:.0f} %", one.mean_utilization_ratio() * 100)
                      : "-",
                  count(one.has_ecc_corrected(), one.ecc_corrected(), Tone::kWarning),
                  count(one.has_ecc_uncorrected(), one.ecc_uncorrected(), Tone::kBad)});
  }
  table.Print(out, color, "  ");
  if (const int64_t gaps = UncoveredNs(session); gaps > 0) {
    out << fmt::format("  these do not cover the {} between its segments, when profd did not run\n", FormatSpan(gaps));
  }
}

std::string StorageLimitText(std::string_view value, std::string_view asked, std::string_view note) {
  return fmt::format("storage_limit {}{}{}", value, asked.empty() && !note.empty() ? ", " : "", asked.empty() ? note : "");
}

std::string DroppedText(const v1::Session& session) {
  return DroppedCell(session.status().dropped_records(), session.status().dropped_bytes()).text + " dropped";
}

std::string RemovedText(uint64_t records, uint64_t for_space, std::string_view limit) {
  constexpr std::string_view kSpace = "because the volume was nearly full (dump.min_free_mb)";
  if (records == 0) return "";
  const std::string oldest = CountText(records, "record") + ", the oldest";
  if (for_space >= records) return fmt::format("{}, {}", oldest, kSpace);
  if (limit.empty()) limit = "the dump's limit";
  if (for_space == 0) return fmt::format("{}, to stay within {}", oldest, limit);
  return fmt::format("{}: {} {}, {} to stay within {}", oldest, for_space, kSpace, records - for_space, limit);
}

std::string RemovedText(const v1::Session& session) {
  std::string limit;
  for (const v1::EffectiveOption& option : session.status().effective_options()) {
    if (option.key() == "storage_limit") limit = StorageLimitText(option.value(), option.asked(), option.note());
  }
  return RemovedText(session.status().removed_records(), session.status().removed_for_space(), limit);
}

std::string MissingRanks(const v1::Session& session) {
  std::set<int32_t> attached;
  for (const v1::SessionProcess& process : session.status().processes()) {
    if (process.attached() && process.has_rank()) attached.insert(process.rank());
  }
  if (IsFinal(session.status().state()) || attached.size() >= session.status().expected_ranks()) return "";
  return fmt::format("{} of {} attached", attached.size(), CountText(session.status().expected_ranks(), "rank"));
}

std::string CollectingFiles(const v1::Session& session) {
  if (!session.status().has_collecting_files()) return "";
  const v1::CollectingFiles& files = session.status().collecting_files();
  return fmt::format("of {}, for at most {} s", CountText(files.processes(), "process"),
                     (files.left_ms() + 999) / 1000);
}

void PrintWarnings(std::ostream& out, const v1::Session& session, bool color, bool named) {
  for (const std::string& warning : session.status().warnings()) {
    out << Paint("warning: ", Tone::kWarning, color) << Printable(OfSession(session, named) + warning) << '\n';
  }
}

namespace {

// Of a session that was interrupted and went on; also where one segment is left.
void PrintSegments(std::ostream& out, const v1::Session& session, bool color) {
  const auto& segments = session.status().segments();
  if (segments.size() < 2 && (segments.empty() || segments[0].number() < 2)) return;
  Table table({"SEGMENT", "STATE", "FROM", "TO", ">RECORDS", ">BYTES", "DUMP"});
  uint32_t number = 0;
  for (const v1::Segment& segment : segments) {
    const std::string& path = segment.dump_path();
    number = segment.number() == 0 ? number + 1 : segment.number();
    table.AddRow({std::to_string(number), StateCell(segment.state()),
                  FormatTime(segment.started_ns()),
                  segment.ended_ns() == 0 ? "" : FormatTime(segment.ended_ns()),
                  std::to_string(segment.records()), FormatBytes(segment.bytes()),
                  path.substr(path.rfind('/') + 1)});
  }
  table.Print(out, color, "  ");
}

}  // namespace

void PrintSession(const Context& context, std::ostream& out, bool color,
                  const v1::Session& session) {
  PrintSessionHead(out, session, StateCell(session), color);
  auto line = [&out](std::string_view name, const std::string& value) {
    if (!value.empty()) out << fmt::format("  {:<9}{}\n", name, Printable(value));
  };
  std::string job = session.spec().target().job_id();
  if (session.spec().target().has_rank()) job += fmt::format("{}rank {}", job.empty() ? "" : ", ", session.spec().target().rank());
  line("job", job);
  line("ranks", MissingRanks(session));
  line("files", CollectingFiles(session));
  line("label", session.spec().label());
  line("owner", fmt::format("uid {}, pid {}", session.owner().uid(), session.owner().pid()));
  line("devices", FormatDevices({session.status().devices().begin(), session.status().devices().end()}));
  line("started", FormatTime(session.status().started_ns()));
  if (session.status().ended_ns() != 0) line("ended", FormatTime(session.status().ended_ns()));
  std::string ran = RanFor(session, DaemonNowNs(context));
  if (session.spec().schedule().duration_ms() != 0) {
    ran += " of " + FormatSpan(static_cast<int64_t>(session.spec().schedule().duration_ms()) * kNsPerMs);
  }
  line("ran for", ran);
  line("recorded",
       fmt::format("{}, {}", CountText(session.status().records(), "record"),
                   session.status().dump_path().empty() ? "no dump" : FormatBytes(session.status().dump_bytes())));
  if (session.status().dropped_records() != 0 || session.status().dropped_bytes() != 0) {
    line("dropped", fmt::format("{}, {}", CountText(session.status().dropped_records(), "record"),
                                FormatBytes(session.status().dropped_bytes())));
  }
  line("removed", RemovedText(session));
  if (session.status().marks() != 0 || session.status().dropped_marks() != 0) {
    line("marks", fmt::format("{}, {} dropped", session.status().marks(), session.status().dropped_marks()));
  }
  if (session.status().steps_done() != 0) line("steps", fmt::format("{}", session.status().steps_done()));
  line("dump", session.status().dump_path().empty()
                   ? ""
                   : session.status().dump_path() + (session.status().pinned() ? "  (pinned)" : ""));
  PrintSegments(out, session, color);
  PrintOutcomes(out, session, /*with_counts=*/true, color);
  PrintStatistics(out, session, color);
  PrintWarnings(out, session, color);
}

}  // namespace profd::client
