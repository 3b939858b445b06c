// The values of one table of a TOML file of the simulator, checked.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace profd::sim {

// Reads typed, bounded values out of one TOML table; the first problem sticks.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string what) : table_(table), what_(std::move(what)) {}

  void CheckKeys(const std::vector<std::string_view>& known) {
    for (const auto& [key, node] : table_) {
      const bool found = std::ranges::find(known, key.str()) != known.end();
      if (!found) Fail(node, fmt::format("unknown key '{}'{}", key.str(), what_));
    }
  }
  bool Has(std::string_view key) const { return table_.contains(key); }

  int64_t Int(std::string_view key, int64_t fallback, int64_t low, int64_t high) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return fallback;
    const auto value = node->is_integer() ? node->value<int64_t>() : std::nullopt;
    if (!value || *value < low || *value > high) {
      Fail(*node, fmt::format("'{}' must be an integer in {}..{}", key, low, high));
      return fallback;
    }
    return *value;
  }
  double Number(std::string_view key, double fallback, double low, double high) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return fallback;
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value) || *value < low || *value > high) {
      Fail(*node, fmt::format("'{}' must be a number in {}..{}", key, low, high));
      return fallback;
    }
    return *value;
  }
  bool Bool(std::string_view key, bool fallback) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return fallback;
    if (!node->is_boolean()) {
      Fail(*node, fmt::format("'{}' must be true or false", key));
      return fallback;
    }
    return node->value<bool>().value_or(fallback);
  }
  std::string String(std::string_view key, std::string fallback) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return fallback;
    if (!node->is_string()) {
      Fail(*node, fmt::format("'{}' must be a string", key));
      return fallback;
    }
    return node->value<std::string>().value_or(fallback);
  }
  // The place of the word in `names`, whose first is taken where there is none.
  size_t OneOf(std::string_view key, const std::vector<std::string_view>& names) {
    const std::string word = String(key, std::string(names.front()));
    const auto found = std::ranges::find(names, word);
    if (found != names.end()) return static_cast<size_t>(found - names.begin());
    const auto last = names.end() - 1;
    Fail(fmt::format("'{}' must be \"{}\" or \"{}\"", key, fmt::join(names.begin(), last, "\", \""), *last));
    return 0;
  }
  void Fail(const toml::node& node, std::string message) {
    if (status_.ok()) {
      status_ = InvalidArgument(fmt::format("line {}: {}", node.source().begin.line, message));
    }
  }
  void Fail(std::string message) { Fail(table_, std::move(message)); }
  const Status& status() const { return status_; }

 protected:
  const toml::table& table_;

 private:
  std::string what_;
  Status status_;
};

// What read(root table) makes of the text; a syntax error says its line, too.
template <class Read>
auto ParseToml(std::string_view text, Read read) -> decltype(read(toml::table())) {
  try {
    return read(toml::parse(text));
  } catch (const toml::parse_error& error) {  // the only way toml++ reports a syntax error
    return InvalidArgument(fmt::format("line {}: {}", error.source().begin.line, error.description()));
  }
}

template <class Parse>
auto ParseFile(const std::string& path, Parse parse) -> decltype(parse(std::string())) {
  std::ifstream file(path);
  std::error_code ignored;
  // A directory opens, and its first read throws.
  if (!file || std::filesystem::is_directory(path, ignored)) return NotFound(fmt::format("cannot read {}", path));
  auto parsed = parse(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!parsed.ok()) return parsed.status().Annotate(path);
  return parsed;
}

}  // namespace profd::sim
