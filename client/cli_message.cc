#include "client/cli_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "client/render.h"

namespace profd::client {
namespace {

struct Field {
  std::string_view name;
  std::string_view flag;
  std::optional<std::string> StartOptions::*typed;
};
constexpr auto kFields = std::to_array<Field>({
    {"start_at_ns", "--at", &StartOptions::at},
    {"start_in_ms", "--in", &StartOptions::in},
    {"start_step", "--start-step", &StartOptions::start_step},
    {"start_in_steps", "--start-step", &StartOptions::start_step},
    {"steps", "--steps", &StartOptions::steps},
    {"since_ms", "--since", &StartOptions::since},
    {"duration_ms", "--duration", &StartOptions::duration},
    {"lease_ms", "--lease", &StartOptions::lease},
});

// Behind a field.
struct Phrase {
  std::string_view wire;
  std::string_view ours;
};
constexpr auto kPhrases = std::to_array<Phrase>({
    {"no_dump is given", "--no-dump is given"},
    {"needs a job_id or pids", "needs --job or --pid"},
    {"start_in_steps counts from the present step", "--start-step +20 counts from the present step"},
    {"name the step with start_step", "name the step with --start-step N"},
});

// As it would be typed: 720h, not 30d.
std::string Typed(uint64_t ms) {
  struct Unit {
    uint64_t ms;
    std::string_view suffix;
  };
  for (const Unit& unit : {Unit{3'600'000, "h"}, Unit{60'000, "m"}, Unit{1000, "s"}}) {
    if (ms != 0 && ms % unit.ms == 0) return fmt::format("{}{}", ms / unit.ms, unit.suffix);
  }
  return fmt::format("{}ms", ms);
}

// Takes "1577836800", "217477148.620" off the front; empty when there is no number.
std::string_view TakeFigure(std::string_view* text) {
  size_t end = std::min(text->find_first_not_of("0123456789"), text->size());
  if (end == 0) return {};
  if (text->substr(end).starts_with('.')) {
    const size_t more =
        std::min(text->find_first_not_of("0123456789", end + 1), text->size());
    if (more > end + 1) end = more;
  }
  std::string_view figure = text->substr(0, end);
  text->remove_prefix(end);
  return figure;
}

// A unit, and not the beginning of a word.
bool TakeSeconds(std::string_view* text) {
  if (!text->starts_with(" s")) return false;
  if (text->size() > 2 && text->substr(2).find_first_of(" ,;:()") != 0) return false;
  text->remove_prefix(2);
  return true;
}

// The figure with what follows it, if that says which duration it is.
std::string Duration(std::string_view figure, std::string_view* rest, bool milliseconds) {
  uint64_t whole = 0;
  double seconds = 0;
  const bool is_whole = ParseNumber(figure, &whole);
  if (TakeSeconds(rest)) {
    constexpr uint64_t kMost = UINT64_MAX / 1000;
    if (is_whole && whole <= kMost) return Typed(whole * 1000);
    constexpr double kMostSpan = 9e9;
    // Under a minute the decimals are what matters.
    if (ParseNumber(figure, &seconds) && seconds >= 60 && seconds < kMostSpan) {
      return FormatSpan(static_cast<int64_t>(seconds * static_cast<double>(kNsPerSecond)));
    }
    return std::string(figure) + " s";
  }
  if (!milliseconds || !is_whole) return std::string(figure);
  // The same in seconds, in brackets.
  std::string_view bracket = *rest;
  if (bracket.starts_with(" (")) {
    bracket.remove_prefix(2);
    if (!TakeFigure(&bracket).empty() && bracket.starts_with(" s)")) *rest = bracket.substr(3);
  }
  return Typed(whole);
}

// "2592000000 (2592000 s)", "1000..60000" of milliseconds, "217477148.620 s": as durations are typed
// and shown.
std::string WithDurations(std::string_view text, bool milliseconds) {
  std::string out;
  while (!text.empty()) {
    // "node7" has no figure.
    const bool in_word = !out.empty() && std::isalpha(static_cast<unsigned char>(out.back())) != 0;
    const std::string_view figure = TakeFigure(&text);
    if (in_word) out += figure;
    if (!in_word && !figure.empty()) {
      out += Duration(figure, &text, milliseconds);
      continue;
    }
    if (text.empty()) break;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

std::string InPhrases(std::string text) {
  for (const Phrase& phrase : kPhrases) {
    if (size_t at = text.find(phrase.wire); at != std::string::npos) {
      text.replace(at, phrase.wire.size(), phrase.ours);
    }
  }
  return text;
}

// Nothing when the line is not about the field. A field that was not `typed` is not the caller's: a
// default, or an instant that was chosen for many nodes.
std::optional<std::string> LineInFlag(std::string_view line, std::string_view field,
                                      std::string_view flag,
                                      const std::optional<std::string>& typed) {
  if (!typed || !line.starts_with(field)) return std::nullopt;
  std::string_view rest = line.substr(field.size());
  if (!rest.starts_with(' ') && !rest.starts_with(':')) return std::nullopt;
  std::string words(flag);
  if (rest.starts_with(" = ")) {
    words += " " + *typed;
    rest.remove_prefix(std::min(rest.find_first_of(":;, ", 3), rest.size()));
  }
  return words + InPhrases(WithDurations(rest, field.ends_with("_ms")));
}

// `translate` says what a line becomes, or nothing.
template <class Translate>
Status EachLine(const Status& status, Translate translate) {
  if (status.ok()) return status;
  std::string text;
  std::string_view rest = status.message();
  for (std::string_view line; NextLine(&rest, &line);) {
    if (!text.empty()) text += '\n';
    text += translate(line).value_or(std::string(line));
  }
  return {status.code(), std::move(text)};
}

}  // namespace

Status ToCliMessage(const Status& status, const StartOptions& options) {
  return EachLine(status, [&](std::string_view line) {
    std::optional<std::string> words;
    for (const Field& field : kFields) {
      words = LineInFlag(line, field.name, field.flag, options.*field.typed);
      if (words) break;
    }
    return words;
  });
}

Status InWordsOfFlag(const Status& status, std::string_view field, std::string_view flag,
                     const std::optional<std::string>& typed) {
  return EachLine(status,
                  [&](std::string_view line) { return LineInFlag(line, field, flag, typed); });
}

}  // namespace profd::client
