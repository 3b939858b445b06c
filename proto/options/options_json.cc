#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "proto/options/option_value.h"
#include "proto/options/options.h"

namespace profd::options {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;

struct JsonLocation {
  size_t line = 1;
  size_t column = 1;
};

// Of the byte before `offset`, where the parser stopped.
JsonLocation PlaceOf(std::string_view text, size_t offset) {
  JsonLocation place;
  offset = std::min(offset, text.size());
  for (size_t i = 0; i + 1 < offset; ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }
  return place;
}

bool TakesNumber(Type type) {
  return type == Type::kFrequency || type == Type::kCycles || type == Type::kSize;
}

std::string WantedType(Type type) {
  if (type == Type::kSize) return "a string, or an integer number of MB";
  return TakesNumber(type) ? "an integer, or its digits as a string" : "a string";
}

// Takes the events of nlohmann's parser; nothing is built of them, so depth costs nothing.
class Handler {
 public:
  Handler(std::string_view text, std::vector<OptionInput>* given, std::vector<Problem>* problems)
      : text_(text), given_(given), problems_(problems) {}

  bool null() { return Wrong("null", "null"); }
  bool boolean(bool value) { return Wrong(value ? "true" : "false", "boolean"); }
  bool number_integer(json::number_integer_t value) { return Number(std::to_string(value)); }
  bool number_unsigned(json::number_unsigned_t value) { return Number(std::to_string(value)); }
  bool number_float(json::number_float_t, const std::string& raw) {
    // What is too big for 64 bits is handled here too; the range check has the right message for it.
    if (raw.find_first_of(".eE") == std::string::npos) return Number(raw);
    return Wrong(raw, "floating-point number");
  }
  bool string(std::string& value) {
    if (Nested()) return true;
    if (depth_ == 0) return NoObject();
    Give(value);
    return true;
  }
  bool binary(json::binary_t&) { return Wrong("binary", "binary"); }
  bool start_object(size_t) {
    if (depth_ == 1) (void)Wrong("{...}", "object");
    return Deeper();
  }
  bool end_object() {
    --depth_;
    return true;
  }
  bool start_array(size_t) {
    if (depth_ == 0) return NoObject();
    if (depth_ == 1) (void)Wrong("[...]", "array");
    return Deeper();
  }
  bool end_array() { return end_object(); }
  bool key(std::string& name) {
    if (Nested()) return true;
    key_ = name;
    duplicated_ = !seen_.insert(name).second;
    return true;
  }
  bool parse_error(size_t position, const std::string& last_token, const json::exception& error) {
    Syntax(position, Reason(error.what(), last_token));
    return false;
  }

  void Syntax(size_t position, const std::string& reason) {
    JsonLocation place = PlaceOf(text_, position);
    AddAlways(
        {.kind = Problem::Kind::kInvalid,
         .text = fmt::format("PROFILING_OPTIONS, line {}, column {}: is not JSON: {}; must be "
                             "one object, as in {{\"aic_metrics\":\"PipeUtilization\"}}",
                             place.line, place.column, reason)});
  }
  void Finish() {
    if (left_out_ == 0) return;
    AddAlways({.kind = Problem::Kind::kInvalid,
               .text = fmt::format("PROFILING_OPTIONS: and {} more problems", left_out_),
               .left_out = left_out_});
  }

 private:
  bool Nested() const { return depth_ > 1; }

  bool Deeper() {
    if (++depth_ <= kMaxDepth) return true;
    AddAlways({.kind = Problem::Kind::kInvalid,
               .field = Shown(key_),
               .text = fmt::format("is nested deeper than {} in PROFILING_OPTIONS; values are strings "
                                   "and integers",
                                   kMaxDepth)});
    return false;
  }
  bool NoObject() {
    AddAlways({.kind = Problem::Kind::kInvalid,
               .text = "PROFILING_OPTIONS: must be one JSON object, as in "
                       "{\"aic_metrics\":\"PipeUtilization\"}"});
    return false;
  }
  bool Number(const std::string& digits) {
    if (Nested()) return true;
    if (depth_ == 0) return NoObject();
    const Option* option = Find(key_);
    if (option != nullptr && !TakesNumber(option->type)) return Wrong(digits, "number");
    Give(digits);
    return true;
  }
  // `type` as JSON calls it: a value is shown in quotes, in which true looks like a string.
  bool Wrong(const std::string& value, std::string_view type) {
    if (Nested()) return true;
    if (depth_ == 0) return NoObject();
    const Option* option = Find(key_);
    if (option == nullptr) {
      // The check of the keys reports it.
      Give(value);
      return true;
    }
    Add(MakeProblem(Problem::Kind::kInvalid, key_, value,
                    fmt::format("has the wrong JSON type, {}; must be {}: {}", type, WantedType(option->type),
                                RangeText(*option))));
    return true;
  }
  void Give(const std::string& value) {
    const Option* option = Find(key_);
    if (duplicated_) {
      // The first one counts.
      return Add(MakeProblem(
          Problem::Kind::kInvalid, key_, value,
          option == nullptr
              ? std::string("is given twice in PROFILING_OPTIONS; keep one of them")
              : fmt::format("is given twice in PROFILING_OPTIONS; keep one of them (allowed: {})",
                            RangeText(*option))));
    }
    // The rest of a text full of wrong keys is only counted.
    if (option == nullptr && ++unknown_ > kMaxProblems) {
      ++left_out_;
      return;
    }
    given_->push_back({.key = key_, .value = value, .via = OptionSyntax::kJson});
  }
  void Add(Problem problem) {
    if (added_ >= kMaxProblems) {
      ++left_out_;
      return;
    }
    AddAlways(std::move(problem));
  }
  void AddAlways(Problem problem) {
    ++added_;
    problems_->push_back(std::move(problem));
  }

  // nlohmann: "[...] parse error at line 1, column 2: syntax error while parsing object key - ...", and without a place
  // "[...] number overflow parsing '1e500'".
  static std::string Reason(std::string_view what, const std::string& last_token) {
    constexpr std::string_view kColumn = ", column ";
    size_t column = what.find(kColumn);
    size_t colon = column == std::string_view::npos ? column : what.find(": ", column);
    if (colon == std::string_view::npos) colon = what.find("] ");
    if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
    size_t last_read = what.find("; last read: '");
    if (last_read != std::string_view::npos) {
      return fmt::format("{} near {}", what.substr(0, last_read), Quoted(last_token));
    }
    return Shown(what, 200);
  }

  std::string_view text_;
  std::vector<OptionInput>* given_;
  std::vector<Problem>* problems_;
  std::set<std::string> seen_;
  std::string key_;
  bool duplicated_ = false;
  int depth_ = 0;
  size_t added_ = 0;
  size_t unknown_ = 0;
  size_t left_out_ = 0;
};

}  // namespace

void ParseJson(std::string_view text, std::vector<OptionInput>* given, std::vector<Problem>* problems) {
  if (text.size() > kMaxJsonBytes) {
    problems->push_back({.kind = Problem::Kind::kInvalid,
                         .text = fmt::format("PROFILING_OPTIONS: is {} bytes long; at most {} are "
                                             "read; leave some out",
                                             text.size(), kMaxJsonBytes)});
    return;
  }
  Handler handler(text, given, problems);
  // The parser would take it for the end of the text.
  if (size_t nul = text.find('\0'); nul != std::string_view::npos) {
    handler.Syntax(nul + 1, "a NUL byte");
    return;
  }
  (void)json::sax_parse(text.begin(), text.end(), &handler);
  handler.Finish();
}

}  // namespace profd::options
