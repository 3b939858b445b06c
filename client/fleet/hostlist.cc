#include "client/fleet/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "client/render.h"
#include "proto/options/option_value.h"

namespace profd::client {
namespace {

constexpr std::string_view kUnix = "unix:";
// As sockaddr_un takes them.
constexpr size_t kMaxSocketPath = 107;
constexpr size_t kMaxDigits = 9;
constexpr size_t kMaxItem = 4096;
// More brackets in one item than needed; bounds the recursion of none, the product of all.
constexpr size_t kMaxBrackets = 8;
// A list that is wrong throughout (a binary file) is described by its first problems.
constexpr size_t kMaxProblems = 20;

struct Range {
  uint32_t first = 0;
  uint32_t last = 0;
  size_t width = 0;
};

// Fixed text, then the numbers that follow it (none: the end of the item).
struct NamePart {
  std::string_view text;
  std::vector<Range> ranges;
};

Status Bad(std::string_view item, std::string why) {
  return InvalidArgument(fmt::format("\"{}\": {}", item.substr(0, 80), why));
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f'; }

// The next item off the front; commas within brackets are no separators. False at the end.
bool NextItem(std::string_view* rest, std::string_view* item) {
  size_t depth = 0;
  size_t end = 0;
  for (; end < rest->size(); ++end) {
    char c = (*rest)[end];
    if (c == '[') ++depth;
    if (c == ']' && depth > 0) --depth;
    if (IsSpace(c) || c == '#' || (c == ',' && depth == 0)) break;
  }
  *item = rest->substr(0, end);
  rest->remove_prefix(end);
  return !item->empty();
}

Result<Range> ParseRange(std::string_view text) {
  size_t dash = text.find('-');
  std::string_view first = text.substr(0, dash);
  std::string_view last = dash == std::string_view::npos ? first : text.substr(dash + 1);
  Range range;
  range.width = first.size();
  if (first.size() > kMaxDigits || last.size() > kMaxDigits || !ParseNumber(first, &range.first) ||
      !ParseNumber(last, &range.last)) {
    return InvalidArgument(fmt::format("\"{}\" is neither a number nor a range; write [1-64,80]",
                                       text));
  }
  if (range.first > range.last) {
    return InvalidArgument(fmt::format("\"{}\" runs backwards", text));
  }
  return range;
}

Result<std::vector<Range>> ParseRanges(std::string_view text) {
  std::vector<Range> ranges;
  for (const std::string_view item : options::SplitList(text)) {
    auto range = ParseRange(item);
    if (!range.ok()) return range.status();
    ranges.push_back(*range);
  }
  return ranges;
}

// "[fd00::7]" holds an address, "[1-3]" numbers.
bool IsAddress(std::string_view inside) { return inside.find(':') != std::string_view::npos; }

Result<std::vector<NamePart>> Split(std::string_view item) {
  std::vector<NamePart> parts;
  size_t text_begin = 0;
  for (size_t at = 0; at < item.size();) {
    if (item[at] == ']') return Bad(item, "there is a \"]\" without its \"[\"");
    if (item[at] != '[') {
      ++at;
      continue;
    }
    size_t close = item.find(']', at);
    if (close == std::string_view::npos) return Bad(item, "the \"[\" has no \"]\"");
    std::string_view inside = item.substr(at + 1, close - at - 1);
    if (IsAddress(inside)) {
      at = close + 1;
      continue;
    }
    auto ranges = ParseRanges(inside);
    if (!ranges.ok()) return Bad(item, ranges.status().message());
    parts.push_back({item.substr(text_begin, at - text_begin), std::move(*ranges)});
    if (parts.size() > kMaxBrackets) return Bad(item, "has too many brackets");
    at = text_begin = close + 1;
  }
  parts.push_back({item.substr(text_begin), {}});
  return parts;
}

// How many names the item stands for, at most kMaxNodes + 1.
size_t CountOf(const std::vector<NamePart>& parts) {
  size_t count = 1;
  for (const NamePart& part : parts) {
    if (part.ranges.empty()) continue;
    size_t here = 0;
    for (const Range& range : part.ranges) {
      here = std::min(here + (range.last - range.first) + size_t{1}, kMaxNodes + 1);
    }
    count = std::min(count * here, kMaxNodes + 1);
  }
  return count;
}

std::vector<std::string> Expand(const std::vector<NamePart>& parts) {
  std::vector<std::string> names = {""};
  for (const NamePart& part : parts) {
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      std::string stem = name + std::string(part.text);
      if (part.ranges.empty()) longer.push_back(stem);
      for (const Range& range : part.ranges) {
        for (uint32_t number = range.first;; ++number) {
          longer.push_back(fmt::format("{}{:0{}}", stem, number, range.width));
          if (number == range.last) break;
        }
      }
    }
    names = std::move(longer);
  }
  return names;
}

// Gathers nodes and problems of one list.
class Gatherer {
 public:
  Gatherer(int default_port, std::vector<std::string>* problems)
      : default_port_(default_port), problems_(problems) {}

  void Add(std::string_view item) {
    if (item.size() > kMaxItem) {
      Problem(Bad(item, fmt::format("is longer than {} characters", kMaxItem)));
      return;
    }
    auto parts = Split(item);
    if (!parts.ok()) {
      Problem(parts.status());
      return;
    }
    if (CountOf(*parts) + list_.nodes.size() > kMaxNodes) {
      Problem(Bad(item, fmt::format("makes the list longer than {} nodes", kMaxNodes)));
      return;
    }
    for (const std::string& name : Expand(*parts)) {
      auto node = ParseNodeName(name, default_port_);
      if (!node.ok()) {
        // The others of this item are as wrong.
        Problem(node.status());
        return;
      }
      Take(std::move(*node));
    }
  }
  void Problem(const Status& status) {
    ++found_;
    if (found_ <= kMaxProblems) problems_->push_back(status.message());
  }
  NodeList Finish() {
    if (found_ > kMaxProblems) {
      problems_->push_back("and " + CountText(found_ - kMaxProblems, "more problem"));
    }
    if (found_ == 0 && list_.nodes.empty()) problems_->push_back("the list of nodes is empty");
    return std::move(list_);
  }

 private:
  void Take(NodeName node) {
    int times = ++seen_[node.endpoint.name()];
    if (times == 2) list_.duplicates.push_back(node.text);
    if (times == 1) list_.nodes.push_back(std::move(node));
  }

  int default_port_;
  std::vector<std::string>* problems_;
  NodeList list_;
  std::unordered_map<std::string, int> seen_;
  size_t found_ = 0;
};

}  // namespace

Result<NodeName> ParseNodeName(const std::string& text, int default_port) {
  NodeName node;
  node.text = text;
  if (text.starts_with(kUnix)) {
    std::string path = text.substr(kUnix.size());
    if (!path.starts_with('/') || path.size() > kMaxSocketPath) {
      return Bad(text, fmt::format("a socket's path begins with \"/\" and has at most {} characters",
                                   kMaxSocketPath));
    }
    node.endpoint = Endpoint::OnSocket(std::move(path));
    return node;
  }
  // ParseAddress would take "a]" for a host of its own kind.
  auto address = ParseAddress(text);
  if (!address.ok() || text.starts_with('-')) {
    return Bad(text, "is not a node: use HOST, HOST:PORT, [IPV6]:PORT or unix:/PATH");
  }
  node.endpoint.address = *address;
  bool has_port = text.starts_with('[') ? !text.ends_with(']')
                                        : std::ranges::count(text, ':') == 1;
  if (!has_port && default_port != kDefaultTlsPort) {
    std::string host = HostOf(*address);
    bool v6 = host.find(':') != std::string::npos;
    node.endpoint.address = fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "",
                                        default_port);
  }
  return node;
}

NodeList ParseNodeList(std::string_view text, int default_port,
                       std::vector<std::string>* problems) {
  Gatherer gatherer(default_port, problems);
  // A comma is between two items: "a,,b" and "a," lack one.
  bool after_comma = false;
  bool after_item = false;
  while (!text.empty()) {
    char c = text.front();
    if (IsSpace(c)) {
      text.remove_prefix(1);
      continue;
    }
    if (c == '#') {
      text.remove_prefix(std::min(text.find('\n'), text.size()));
      continue;
    }
    if (c == ',') {
      if (!after_item) gatherer.Problem(InvalidArgument("there is nothing before a comma"));
      after_comma = true;
      after_item = false;
      text.remove_prefix(1);
      continue;
    }
    std::string_view item;
    NextItem(&text, &item);
    gatherer.Add(item);
    after_item = true;
    after_comma = false;
  }
  if (after_comma) gatherer.Problem(InvalidArgument("there is nothing behind the last comma"));
  return gatherer.Finish();
}

}  // namespace profd::client
