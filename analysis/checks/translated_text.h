// Texts of findings, in each language of the reports. A text stands beside its translation:
// one without does not compile, nor one whose arguments do not fit.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/count_text.h"

namespace profd::analysis {

enum class Language : uint8_t { kEnglish, kChinese };

// "en", "zh"
constexpr std::string_view LanguageWord(Language language) {
  return language == Language::kChinese ? "zh" : "en";
}
constexpr std::optional<Language> LanguageOf(std::string_view word) {
  for (const Language each : {Language::kEnglish, Language::kChinese}) {
    if (word == LanguageWord(each)) return each;
  }
  return std::nullopt;
}

// A text without arguments.
struct Text {
  consteval Text(const char* english, const char* chinese) : en(english), zh(chinese) {}
  constexpr std::string_view In(Language language) const {
    return language == Language::kChinese ? zh : en;
  }
  std::string_view en;
  std::string_view zh;
};

struct TranslatedText {
  TranslatedText() = default;
  TranslatedText(Text text) : en(text.en), zh(text.zh) {}
  TranslatedText(std::string english, std::string chinese) : en(std::move(english)), zh(std::move(chinese)) {}
  // In all languages the same: names, commands, and what a check has no translation of.
  TranslatedText(std::string any) : en(any), zh(std::move(any)) {}
  TranslatedText(const char* any) : en(any), zh(any) {}
  explicit TranslatedText(std::string_view any) : en(any), zh(any) {}

  const std::string& In(Language language) const {
    return language == Language::kChinese ? zh : en;
  }
  bool empty() const { return en.empty(); }
  TranslatedText& operator+=(const TranslatedText& more) {
    en += more.en;
    zh += more.zh;
    return *this;
  }
  bool operator==(const TranslatedText&) const = default;

  std::string en;
  std::string zh;
};

template <class... Args>
struct Pattern {
  consteval Pattern(const char* english, const char* chinese) : en(english), zh(chinese) {}
  fmt::format_string<Args...> en;
  fmt::format_string<Args...> zh;
};

// A number that English puts words behind: {:call} is "1 call" or "2 calls", {:call is|calls are} has a plural of its
// own, {} is the number alone.
struct Counted {
  size_t count = 0;
};

// Translate({"{} calls", "{} 次调用"}, count)
// Translate({"{:call} took long", "{} 次调用耗时较长"}, Counted{count})
template <class... Args>
TranslatedText Translate(Pattern<std::type_identity_t<Args>...> pattern, const Args&... args) {
  return {fmt::vformat(pattern.en, fmt::make_format_args(args...)),
          fmt::vformat(pattern.zh, fmt::make_format_args(args...))};
}

// A cell of a finding's table that is a text.
inline nlohmann::ordered_json CellOf(const TranslatedText& text) {
  return {{"en", text.en}, {"zh", text.zh}};
}

inline constexpr Text kBetweenSentences(". ", "。");

// Puts a separator between parts of a text.
inline void Join(TranslatedText* text, Text between, const TranslatedText& part) {
  if (!text->empty()) *text += between;
  *text += part;
}

}  // namespace profd::analysis

template <>
struct fmt::formatter<profd::analysis::Counted> {
  constexpr auto parse(format_parse_context& context) {
    const auto* const end = std::ranges::find(context, '}');
    words_ = {context.begin(), static_cast<size_t>(end - context.begin())};
    return end;
  }
  template <class Context>
  auto format(const profd::analysis::Counted& value, Context& context) const {
    if (words_.empty()) return fmt::format_to(context.out(), "{}", value.count);
    const size_t bar = std::min(words_.find('|'), words_.size());
    return fmt::format_to(context.out(), "{}", profd::CountText(value.count, words_.substr(0, bar), words_.substr(std::min(bar + 1, words_.size()))));
  }

 private:
  std::string_view words_;
};
