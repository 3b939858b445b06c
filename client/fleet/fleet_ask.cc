// Commands that only query, on many nodes: each node's answer is the command's answer for one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "client/fleet/fleet.h"
#include "client/json.h"
#include "client/render.h"

namespace profd::client {
namespace {

struct Answer {
  int exit_code = kExitPartial;
  std::string out;
  std::string err = "not called: interrupted before its turn";
};

// Texts of nodes in the order of the list, the same text once with all that gave it.
using Grouped = std::vector<std::pair<std::vector<std::string>, std::string>>;

void Add(Grouped* groups, const std::string& node, const std::string& text) {
  if (text.empty()) return;
  for (auto& [nodes, known] : *groups) {
    if (known == text) return nodes.push_back(node);
  }
  groups->push_back({{node}, text});
}

std::string Names(const std::vector<std::string>& nodes) {
  return Printable(fmt::format("{}", fmt::join(nodes, ", ")));
}

void PrintTexts(Io& io, const Grouped& groups) {
  bool first = true;
  for (const auto& [nodes, text] : groups) {
    io.out << (first ? "" : "\n") << Names(nodes) << ":\n" << text;
    first = false;
  }
  io.out.flush();
}

void PrintErrors(Io& io, const Grouped& groups) {
  constexpr std::string_view kPrefix = "profctl: ";
  for (const auto& [nodes, text] : groups) {
    std::string_view rest = text;
    for (std::string_view line; NextLine(&rest, &line);) {
      if (line.starts_with(kPrefix)) line.remove_prefix(kPrefix.size());
      io.err << "profctl: " << Names(nodes) << ": " << line << '\n';
    }
  }
  io.err.flush();
}

// That a node does not have what was requested is not an error if another has it.
int ExitCodeOf(const std::vector<Answer>& answers, bool interrupted) {
  std::map<int, size_t> codes;
  for (const Answer& answer : answers) ++codes[answer.exit_code];
  if (codes.contains(kExitOk)) codes.erase(kExitNotFound);
  if (interrupted || codes.size() > 1) return kExitPartial;
  return codes.empty() ? kExitOk : codes.begin()->first;
}

}  // namespace

int AskAll(Fleet* fleet, const FleetQuestion& question) {
  std::vector<Answer> answers(fleet->nodes().size());
  const bool interrupted = !fleet->ForAll("asking", [&](size_t node, NodeCall* call) {
    std::ostringstream out;
    std::ostringstream err;
    Io io{out, err};
    Context context{call->api(), io, fleet->clock(), fleet->nodes()[node].endpoint, question.json,
                    [&](std::optional<int64_t>) { return fleet->NewApi(node); }, {},
                    [&] { return !call->cancelled() && !call->expired(); }};
    Answer& answer = answers[node];
    answer.exit_code = question.run(context);
    // A call that the deadline ends is cancelled, which is no internal error.
    const bool unanswered = answer.exit_code == kExitInternal || answer.exit_code == kExitUnreachable;
    if (unanswered && call->expired() && !call->cancelled()) {
      out.str("");
      err.str("");
      answer.exit_code = FailWith(io, call->Explain({StatusCode::kCancelled, ""}), question.json);
    }
    answer.out = out.str();
    answer.err = err.str();
  });
  const int exit_code = ExitCodeOf(answers, interrupted);
  Grouped texts;
  Grouped errors;
  Json json = {{"command", question.command}, {"exit_code", exit_code}, {"interrupted", interrupted},
               {"nodes", Json::array()}};
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& name = fleet->nodes()[i].text;
    const Answer& answer = answers[i];
    Add(&errors, name, answer.err);
    if (!question.json) {
      Add(&texts, name, answer.out);
      continue;
    }
    Json parsed = Json::parse(answer.out, nullptr, /*allow_exceptions=*/false);
    json["nodes"].push_back({{"node", name},
                             {"exit_code", answer.exit_code},
                             {"answer", parsed.is_discarded() ? Json() : std::move(parsed)}});
  }
  Io& io = fleet->io();
  if (question.json) {
    io.out << JsonText(json, /*indent=*/true) << std::endl;
  } else {
    PrintTexts(io, texts);
  }
  PrintErrors(io, errors);
  return exit_code;
}

}  // namespace profd::client
