#include "client/health_view.h"

#include <fmt/format.h>

#include <array>
#include <map>

#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

// The contract's number, except that what is not known is next to ok.
int RankOf(v1::Health::Verdict verdict) {
  if (verdict == v1::Health::VERDICT_OK) return 0;
  const bool known = verdict >= v1::Health::VERDICT_DEGRADED && verdict <= v1::Health::VERDICT_DOWN;
  return known ? static_cast<int>(verdict) : 1;
}

}  // namespace

std::string VerdictWord(v1::Health::Verdict verdict) {
  if (verdict == v1::Health::VERDICT_UNSPECIFIED) return "-";
  const std::string word = EnumWord(verdict);
  return word.empty() ? "unknown" : word;
}

Cell VerdictCell(v1::Health::Verdict verdict) {
  constexpr std::array<Tone, 5> kTones = {Tone::kGood, Tone::kFaint, Tone::kWarning, Tone::kBad,
                                          Tone::kBad};  // by rank
  return {VerdictWord(verdict), kTones[static_cast<size_t>(RankOf(verdict))]};
}

std::string FlagsText(const v1::Health& health) {
  std::string text;
  auto add = [&text](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (const int flag : health.flags()) {
    if (flag == v1::Health::FLAG_FAULT && !health.faults().empty()) {
      for (const v1::Fault& fault : health.faults()) add(fault.code());
    } else if (flag == v1::Health::FLAG_ALARM) {
      // Shown with what it is about, unless the driver reports the level only.
      if (health.flags_size() == 1) add("alarm " + std::to_string(health.health_status()));
    } else {
      add(EnumWord(static_cast<v1::Health::Flag>(flag)));
    }
  }
  return OrDash(text);
}

v1::Health::Verdict WorseVerdict(v1::Health::Verdict a, v1::Health::Verdict b) {
  return RankOf(a) < RankOf(b) ? b : a;
}

int ExitCodeOf(v1::Health::Verdict verdict) {
  constexpr std::array<int, 5> kCodes = {kExitOk, kExitUnknown, kExitDegraded, kExitFaulty,
                                         kExitFaulty};  // by rank
  return kCodes[static_cast<size_t>(RankOf(verdict))];
}

std::string ChipsText(const v1::Node& node) {
  std::map<std::string, int> chips;
  for (const v1::Device& device : node.devices()) ++chips[device.chip()];
  std::string text;
  for (const auto& [chip, count] : chips) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, chip);
  }
  return text;
}

}  // namespace profd::client
