#include "base/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"

namespace profd {
namespace {

// Names and values are the client's, and the list has to fit whatever they are.
constexpr size_t kMaxFieldBytes = 96;
constexpr size_t kMaxValueBytes = 120;

// As part of a status message, in which gRPC sends all but printable ASCII as "%XX".
size_t BytesInMessage(std::string_view text) {
  const auto escaped = std::ranges::count_if(text, [](char c) { return c < 0x20 || c > 0x7e || c == '%'; });
  return text.size() + 2 * static_cast<size_t>(escaped);
}

bool IsPlainName(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return IsLetterOrDigit(c) || c == '_' || c == ',' || c == ' '; });
}

bool IsPlainValue(std::string_view value) {
  return value.find_first_not_of("0123456789.-") == std::string_view::npos;
}

// Cut at a character, without control characters.
void Clean(std::string* text, size_t max_bytes) {
  if (text->size() > max_bytes) {
    text->resize(BytesOfWholeCharacters(*text, max_bytes));
    *text += "...";
  }
  std::ranges::replace_if(*text, IsControl, '?');
}

// Replaces "{no_dump}".
std::string WithNames(std::string_view text, const FieldNames& names) {
  constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::string out;
  while (!text.empty()) {
    const size_t open = std::min(text.find('{'), text.size());
    out += text.substr(0, open);
    text.remove_prefix(open);
    if (text.empty()) break;
    const size_t end = text.find_first_not_of(kNameLetters, 1);
    if (end == std::string_view::npos || end == 1 || text[end] != '}') {
      out += text.front();
      text.remove_prefix(1);
      continue;
    }
    const std::string_view field = text.substr(1, end - 1);
    const std::optional<WrittenField> written = names ? names(field) : std::nullopt;
    out += written ? written->name : std::string(field);
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

std::string Describe(const Problem& problem, const FieldNames& names) {
  std::string text = WithNames(problem.text, names);
  if (problem.field.empty()) return text;
  const std::optional<WrittenField> written = names ? names(problem.field) : std::nullopt;
  if (written && written->value) {
    return written->value->empty() ? fmt::format("{}: {}", written->name, text)
                                   : fmt::format("{} {}: {}", written->name, *written->value, text);
  }
  // One that is not of the request's, and was sent all the same, may be anything.
  const std::string field = IsPlainName(problem.field) ? problem.field : '"' + problem.field + '"';
  if (problem.value.empty()) return fmt::format("{}: {}", field, text);
  if (IsPlainValue(problem.value)) return fmt::format("{} = {}: {}", field, problem.value, text);
  return fmt::format("{} = \"{}\": {}", field, problem.value, text);
}

std::string Describe(std::span<const Problem> problems, const FieldNames& names) {
  std::string lines;
  for (const Problem& problem : problems) {
    if (!lines.empty()) lines += '\n';
    lines += Describe(problem, names);
  }
  return lines;
}

void ProblemList::Add(Problem problem) {
  if (problem.left_out > 0 || problems_.size() == kMaxProblems || bytes_ >= kMaxBytes) {
    left_out_ += std::max<size_t>(1, problem.left_out);
    return;
  }
  Clean(&problem.field, kMaxFieldBytes);
  Clean(&problem.value, kMaxValueBytes);
  Clean(&problem.text, kMaxTextBytes);
  bytes_ += BytesInMessage(problem.field) + BytesInMessage(problem.value) + BytesInMessage(problem.text) + 8;
  problems_.push_back(std::move(problem));
}

void ProblemList::Append(std::span<const Problem> problems) {
  for (const Problem& problem : problems) Add(problem);
}

void ProblemList::Append(const ProblemList& other) {
  Append(other.problems_);
  left_out_ += other.left_out_;
}

std::vector<Problem> ProblemList::Take() && {
  if (left_out_ > 0) problems_.push_back({.text = fmt::format("and {} more", left_out_), .left_out = left_out_});
  return std::move(problems_);
}

}  // namespace profd
