// FRAMEWORK directories as torch_npu and MindSpore write them (in-application 7.2, 7.6), of a training loop that never
// ran: the same seed gives the same bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace profd::sim::framework {

enum class Layout {
  kTorch,          // 58 bytes with scope
  kTorchNoScope,   // 57
  kMindSpore,      // mindspore.op_range of 54 bytes
  kMindSpore57,    // op_range_<rank>: without id, step and level
  kMindSpore73,    // with id and step
  kMindSpore74,    // with level, too
};

enum class Damage {
  kNone,
  kCut,      // the last record of each file ends in its middle
  kLength,   // the last record of each file has a length beyond the file
  kNames,    // names that are no UTF-8
};

struct Spec {
  Layout layout = Layout::kTorch;
  Damage damage = Damage::kNone;
  bool counter = false;  // times are the CPU's counter, not CLOCK_MONOTONIC_RAW
  uint64_t seed = 1;
  uint32_t operators = 20;
  uint32_t rank = 0;
};

struct Directory {
  std::map<std::string, std::string> files;  // by path below the directory
  std::string truth;                         // lines of JSON: what a reader has to find
};

bool LayoutOf(std::string_view name, Layout* layout);
bool DamageOf(std::string_view name, Damage* damage);
Directory Make(const Spec& spec);

}  // namespace profd::sim::framework
