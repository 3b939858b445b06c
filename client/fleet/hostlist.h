// Lists of nodes as people of clusters write them: "host[1-64],other[01-10,12]:9465". Only the text;
// nothing is looked up. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/endpoint.h"

namespace profd::client {

// No list has more nodes; bounds what "a[0-999999999]" costs.
inline constexpr size_t kMaxNodes = 65536;

struct NodeName {
  // As tables show it: "node7", "node7:9470" (the port only where it was written), "unix:/run/s".
  std::string text;
  // Without TLS files, which are the same for all nodes.
  Endpoint endpoint;
};

struct NodeList {
  // In the order of the list, each once.
  std::vector<NodeName> nodes;
  // Written more than once, each once.
  std::vector<std::string> duplicates;
};

// Separated by commas, blanks or line breaks; '#' begins a comment that ends with its line. Each item
// is a host name, IPv4 or [IPv6] address with ":port" or without, or "unix:/path"; "[1-3,07-10]"
// within it stands for each of the numbers, as often as wanted ("rack[1-2]n[01-16]", also in ports).
// As in Slurm, a range has the width of its first number. `default_port` is for items without one.
// Every problem is added to `problems`.
NodeList ParseNodeList(std::string_view text, int default_port, std::vector<std::string>* problems);

// "node7", "node7:9470", "[fd00::7]", "unix:/run/s": one item without brackets for ranges.
Result<NodeName> ParseNodeName(const std::string& text, int default_port);

}  // namespace profd::client
