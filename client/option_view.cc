#include "client/option_view.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "client/render.h"
#include "proto/options/options.h"

namespace profd::client {
namespace {

// As the daemon reports it.
std::string DefaultOf(const std::string& key) {
  const options::Option* option = options::Find(key);
  if (option == nullptr) return "";
  if (!option->default_value.empty()) return std::string(option->default_value);
  bool can_be_off = option->type != options::Type::kText && option->type != options::Type::kPath &&
                    option->type != options::Type::kSize;
  return can_be_off ? "off" : "";
}

bool IsPlain(const v1::EffectiveOption& option) {
  return option.asked().empty() &&
         (option.value().empty() || option.value() == DefaultOf(option.key()));
}

}  // namespace

void PrintEffective(std::ostream& out, const EffectiveOptions& options, bool all, bool color) {
  Table table({"OPTION", "VALUE", "ASKED", "NOTE"});
  for (const v1::EffectiveOption& option : options) {
    if (!all && IsPlain(option)) continue;
    table.AddRow({option.key(), OrDash(option.value()), option.asked(),
                  Cell(option.note(), Tone::kFaint)});
  }
  if (!table.empty()) table.Print(out, color, "  ");
}

void PrintTerms(std::ostream& out, const v1::Session& session, pid_t starter) {
  if (session.status().state() == v1::Session::STATE_SCHEDULED && session.spec().schedule().start_at_ns() != 0) {
    out << "starts " << FormatTime(session.spec().schedule().start_at_ns()) << '\n';
  }
  if (session.spec().schedule().has_start_step()) out << "starts with step " << session.spec().schedule().start_step() << '\n';
  if (session.spec().schedule().steps() != 0) {
    out << fmt::format("ends after {}\n", CountText(session.spec().schedule().steps(), "step"));
  }
  if (session.status().since_ns() != 0) {
    out << "begins at " << FormatTime(session.status().since_ns()) << ", from the flight recorder\n";
  }
  if (session.spec().lease().lease_ms() == 0) return;
  std::string after = starter == 0 ? std::string("the caller and the job exit")
                                   : fmt::format("process {} and its job exit", starter);
  out << fmt::format("lease: stops {} after {}\n",
                     FormatSpan(static_cast<int64_t>(session.spec().lease().lease_ms()) * kNsPerMs), after);
}

}  // namespace profd::client
