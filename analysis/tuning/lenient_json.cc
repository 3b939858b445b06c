#include "analysis/tuning/lenient_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/text.h"
#include "base/utf8.h"

namespace profd::analysis {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool IsOfWord(char c) {
  return IsLetterOrDigit(c) || c == '.' || c == '+' || c == '-';
}

void Append(std::string* out, char c) {
  if (out->size() < LenientJson::kMaxString) *out += c;
}

}  // namespace

void LenientJson::Stop(std::string_view why) {
  if (stopped_) return;
  stopped_ = true;
  why_ = at_ >= text_.size() ? fmt::format("ends in line {}: {}", Line(), why) : fmt::format("line {}: {}", Line(), why);
}

size_t LenientJson::Line() const {
  const auto end = text_.begin() + static_cast<ptrdiff_t>(std::min(at_, text_.size()));
  return 1 + static_cast<size_t>(std::count(text_.begin(), end, '\n'));
}

void LenientJson::SkipBlanks() {
  while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
}

char LenientJson::Peek() {
  SkipBlanks();
  return stopped_ || at_ >= text_.size() ? '\0' : text_[at_];
}

bool LenientJson::Enter() {
  if (++depth_ <= kMaxDepth) return true;
  Stop(fmt::format("more than {} levels", kMaxDepth));
  --depth_;
  return false;
}

bool LenientJson::Next(char close, bool first) {
  bool comma = first;
  while (Peek() == ',') {
    comma = true;
    ++at_;
  }
  if (stopped_) return false;
  if (at_ >= text_.size()) {
    Stop(close == '}' ? "the object has no end" : "the list has no end");
    return false;
  }
  if (text_[at_] == close) {
    ++at_;
    return false;
  }
  if (!comma) ++missing_commas_;
  return true;
}

void LenientJson::TakeOne(const std::function<void()>& take) {
  SkipBlanks();
  const size_t before = at_;
  take();
  if (!stopped_ && at_ == before) Skip();
}

void LenientJson::Members(const TakeMember& take, bool braces) {
  if (Peek() == '{') {
    ++at_;
  } else if (braces || Peek() != '"') {
    return Skip();
  }
  if (!Enter()) return;
  for (bool first = true; Next('}', first); first = false) {
    if (text_[at_] != '"') {
      Stop("a key was expected");
      break;
    }
    std::string key;
    ReadString(&key);
    if (Peek() != ':') {
      Stop("a key without a value");
      break;
    }
    ++at_;
    TakeOne([&] { take(key); });
    if (stopped_) break;
  }
  --depth_;
}

void LenientJson::Items(const std::function<void()>& take) {
  if (Peek() != '[') return Skip();
  ++at_;
  if (!Enter()) return;
  for (bool first = true; Next(']', first); first = false) {
    TakeOne(take);
    if (stopped_) break;
  }
  --depth_;
}

// A number or a literal: at the end of the text it may be a part of one.
bool LenientJson::Word(std::string* word) {
  SkipBlanks();
  const size_t begin = at_;
  while (at_ < text_.size() && IsOfWord(text_[at_])) ++at_;
  // Of the last two Python writes what is no number.
  constexpr std::array<std::string_view, 5> kWords = {"true", "false", "null", "NaN", "Infinity"};
  *word = text_.substr(begin, std::min<size_t>(at_ - begin, 400));
  if (word->empty()) {
    Stop(at_ >= text_.size() ? "a value is missing" : "this is not a value");
  } else if (at_ >= text_.size()) {
    Stop("a value has no end");
  } else if (std::ranges::find(kWords, *word) == kWords.end() && word->front() != '-' && (word->front() < '0' || word->front() > '9')) {
    Stop("this is not a value");
  }
  return !stopped_;
}

std::optional<double> LenientJson::Number() {
  const char first = Peek();
  if (first != '-' && (first < '0' || first > '9')) {
    Skip();
    return std::nullopt;
  }
  std::string word;
  if (!Word(&word)) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::string> LenientJson::Text() {
  if (Peek() != '"') {
    Skip();
    return std::nullopt;
  }
  std::string text;
  ReadString(&text);
  if (stopped_) return std::nullopt;
  return text;
}

void LenientJson::Skip() {
  std::string ignored;
  switch (Peek()) {
    case '{': return Members([](const std::string&) {});
    case '[': return Items([] {});
    case '"': return ReadString(&ignored);
    default: (void)Word(&ignored);
  }
}

void LenientJson::ReadString(std::string* out) {
  for (++at_; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return;
    }
    if (c == '\\') {
      ReadEscape(out);
    } else {
      Append(out, c);
    }
  }
  Stop("a text has no end");
}

// Leaves at_ at its last character.
void LenientJson::ReadEscape(std::string* out) {
  if (at_ + 1 >= text_.size()) return;
  constexpr std::string_view kEscapes = "nrtbf", kMeant = "\n\r\t\b\f";
  const char kind = text_[++at_];
  if (kind == 'u') {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(at_ + 1, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc()) return Append(out, '?');
    std::string character;
    AppendUtf8(code, &character);
    for (const char byte : character) Append(out, byte);
    at_ += static_cast<size_t>(end - digits.data());
    return;
  }
  const size_t index = kEscapes.find(kind);
  Append(out, index == std::string_view::npos ? kind : kMeant[index]);
}

}  // namespace profd::analysis
