#include "proto/options/option_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/nearest.h"
#include "base/text.h"
#include "base/utf8.h"

namespace profd::options {
namespace {

constexpr size_t kMaxText = 1024;
constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxRegisters = 8;
constexpr size_t kMaxNumber = 20;

// False for what is not an integer, or does not fit the type.
bool Whole(std::string_view text, uint64_t* out) {
  return text.size() <= kMaxNumber && IsDigits(text) && ParseNumber(text, out);
}

bool InRange(const Option& option, uint64_t number) {
  return number >= option.min && number <= option.max;
}

std::string Advice(const Option& option) {
  if (!option.default_value.empty()) {
    return fmt::format("use one of these, or omit it for {}", option.default_value);
  }
  return "use one of these, or omit it to disable";
}

Status Refuse(const Option& option) {
  return InvalidArgument(fmt::format("must be {}; {}", RangeText(option), Advice(option)));
}

Result<std::string> CanonicalNumber(const Option& option, std::string_view value) {
  uint64_t number = 0;
  if (Whole(value, &number) && InRange(option, number)) return std::to_string(number);
  return InvalidArgument(fmt::format(
      "must be an integer from {} to {} {}; {}", option.min, option.max, option.unit,
      option.default_value.empty() ? std::string("omit to disable")
                                   : fmt::format("omit for {}", option.default_value)));
}

Result<std::string> CanonicalSize(const Option& option, std::string_view value) {
  std::string_view digits = value;
  if (digits.ends_with("MB")) digits.remove_suffix(2);
  uint64_t number = 0;
  if (Whole(digits, &number) && InRange(option, number)) return fmt::format("{}MB", number);
  return InvalidArgument(
      fmt::format("must be {}MB..{}MB; write an integer number of megabytes, for example 500MB, or "
                  "omit it for 90 % of the free space",
                  option.min, option.max));
}

Result<std::string> CanonicalList(const Option& option, std::string_view value) {
  std::vector<std::string_view> known = SplitList(option.choices);
  std::vector<bool> seen(known.size(), false);
  if (value.empty()) return InvalidArgument(fmt::format("is empty; must be {}; {}", RangeText(option), Advice(option)));
  for (std::string_view raw : SplitList(value)) {
    std::string_view item = TrimValue(option.type, raw);
    if (item.empty()) {
      return InvalidArgument(fmt::format("has an empty item; must be {}; remove the extra comma",
                                         RangeText(option)));
    }
    auto found = std::ranges::find(known, item);
    if (found == known.end()) {
      return InvalidArgument(fmt::format("item {} is unknown; must be {}; {}", Quoted(item),
                                         RangeText(option), Advice(option)));
    }
    seen[static_cast<size_t>(found - known.begin())] = true;
  }
  std::string canonical;
  for (size_t i = 0; i < known.size(); ++i) {
    if (!seen[i]) continue;
    if (!canonical.empty()) canonical += ',';
    canonical += known[i];
  }
  return canonical;
}

// Decimal or 0x hex.
bool ParseRegister(std::string_view text, uint64_t* out) {
  if (!text.starts_with("0x") && !text.starts_with("0X")) return Whole(text, out);
  text.remove_prefix(2);
  if (text.empty() || text.size() > 16) return false;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, 16);
  return error == std::errc() && end == text.data() + text.size();
}

Result<std::string> CanonicalMetrics(const Option& option, std::string_view value) {
  constexpr std::string_view kCustom = "Custom:";
  if (!value.starts_with(kCustom)) {
    for (std::string_view name : SplitList(option.choices)) {
      if (name == value) return std::string(value);
    }
    return Refuse(option);
  }
  const std::string range =
      fmt::format("1..{} registers, each 0x{:X}..0x{:X} ({}..{})", kMaxRegisters, option.min,
                  option.max, option.min, option.max);
  std::vector<std::string_view> items = SplitList(value.substr(kCustom.size()));
  if (items.size() > kMaxRegisters) {
    return InvalidArgument(
        fmt::format("names {} registers; must be {}; leave some out", items.size(), range));
  }
  std::string canonical(kCustom);
  for (std::string_view raw : items) {
    std::string_view item = TrimValue(option.type, raw);
    uint64_t number = 0;
    if (item.empty()) {
      return InvalidArgument(
          fmt::format("has an empty item; must be {}; write them as in Custom:0x49,0x8", range));
    }
    if (!ParseRegister(item, &number) || !InRange(option, number)) {
      return InvalidArgument(fmt::format("invalid register {}; must be {}; write decimal or 0x hex",
                                         Quoted(item), range));
    }
    canonical += fmt::format("{}0x{:x}", canonical.size() == kCustom.size() ? "" : ",", number);
  }
  return canonical;
}

Result<std::string> CanonicalPath(std::string_view value) {
  // The vendor's list; NUL and nonsense no path can have.
  constexpr std::string_view kForbidden = "\n\f\r\b\t\v\x7f";
  if (value.empty()) {
    return InvalidArgument(
        "is empty; must be an absolute path or one relative to the working directory; leave it out "
        "for the default");
  }
  if (value.find_first_of(kForbidden) != std::string_view::npos ||
      value.find('\0') != std::string_view::npos) {
    return InvalidArgument(
        "must not contain \\n \\f \\r \\b \\t \\v, U+007F or NUL; remove them from the path");
  }
  if (value.size() >= kMaxPath) {
    return InvalidArgument(fmt::format("is {} bytes long; must be at most {}; give a shorter path",
                                       value.size(), kMaxPath - 1));
  }
  if (!IsUtf8(value)) return InvalidArgument("must be UTF-8; give a path that is");
  return std::string(value);
}

Result<std::string> CanonicalText(std::string_view value) {
  if (value.size() > kMaxText) {
    return InvalidArgument(
        fmt::format("is {} bytes long; must be at most {}; give the operator's "
                    "name, or empty to have it found",
                    value.size(), kMaxText));
  }
  if (std::ranges::any_of(value, IsControl) || !IsUtf8(value)) {
    return InvalidArgument(
        "must be an operator name of printable characters, or empty = find automatically; remove the "
        "others");
  }
  return std::string(value);
}

}  // namespace

std::string Shown(std::string_view text, size_t max_bytes) {
  std::string out;
  size_t used = 0;
  while (used < text.size() && used < max_bytes) {
    const auto [value, length] = FirstCodePoint(text.substr(used));
    unsigned char c = static_cast<unsigned char>(text[used]);
    // C1 controls are two bytes, 0xC2 0x80..0x9F.
    bool c1 = value >= 0x80 && value < 0xa0;
    if (length == 0 || IsControl(text[used]) || c1) {
      out += fmt::format("\\x{:02x}", c);
      used += 1;
      if (c1) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[used++]));
      continue;
    }
    out += text.substr(used, length);
    used += length;
  }
  if (used < text.size()) out += "...";
  return out;
}

std::string Quoted(std::string_view text) { return '"' + Shown(text) + '"'; }

Problem MakeProblem(Problem::Kind kind, std::string_view key, std::string_view value,
                    std::string_view what) {
  return {.kind = kind, .field = Shown(key), .value = Shown(value), .text = std::string(what)};
}

Problem UnknownOption(std::string_view key, std::string_view value) {
  if (key.empty()) return MakeProblem(Problem::Kind::kInvalid, "", "", "PROFILING_OPTIONS: has an empty key; remove it");
  for (const AclSwitch& known : AclSwitches()) {
    if (known.name == key) {
      return MakeProblem(Problem::Kind::kInvalid, key, value,
                         fmt::format("is a switch of PyTorch's profiler, no key of PROFILING_OPTIONS; give {} in its place, or --acl {}=VALUE",
                                     known.equals, known.name));
    }
  }
  std::string_view nearest = Nearest(key);
  return {.kind = Problem::Kind::kInvalid,
          .field = Shown(key),
          .value = Shown(value),
          .text = nearest.empty() ? "unknown option" : fmt::format("unknown option; did you mean {}?", nearest)};
}

std::string_view TrimValue(Type type, std::string_view text) {
  const std::string_view blanks = type == Type::kPath ? " " : " \t";
  size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string_view OnOff(std::string_view value) {
  if (value == "on" || value == "True") return "on";
  if (value == "off" || value == "False") return "off";
  return {};
}

std::vector<std::string_view> SplitList(std::string_view list) {
  std::vector<std::string_view> items;
  for (;;) {
    size_t comma = list.find(',');
    items.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    list.remove_prefix(comma + 1);
  }
}

Result<std::string> Canonical(const Option& option, std::string_view value, std::string* warning) {
  switch (option.type) {
    case Type::kSwitch:
      if (value == "on" || value == "off") return std::string(value);
      if (option.key != "aicpu") return Refuse(option);
      *warning = fmt::format("{} = {}: is treated as off; valid values are on and off", option.key,
                             Quoted(value));
      return std::string("off");
    case Type::kLevel:
      if (value == "on") return std::string("l1");
      if (value == "off" || value == "l0" || value == "l1") return std::string(value);
      return Refuse(option);
    case Type::kChoice: {
      std::vector<std::string_view> known = SplitList(option.choices);
      if (std::ranges::find(known, value) != known.end()) return std::string(value);
      return Refuse(option);
    }
    case Type::kFrequency:
    case Type::kCycles:
      return CanonicalNumber(option, value);
    case Type::kSize:
      return CanonicalSize(option, value);
    case Type::kList:
      return CanonicalList(option, value);
    case Type::kMetrics:
      return CanonicalMetrics(option, value);
    case Type::kText:
      return CanonicalText(value);
    case Type::kPath:
      return CanonicalPath(value);
  }
  return Refuse(option);
}

std::string_view Nearest(std::string_view key) {
  std::vector<std::string_view> keys;
  for (const Option& option : Table()) keys.push_back(option.key);
  return profd::Nearest(key, keys);
}

}  // namespace profd::options
