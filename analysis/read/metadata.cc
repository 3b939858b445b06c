// What a framework's profiler kept of the training and of itself (analysis 2.3).
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "analysis/read/readers.h"
#include "dump/json_depth.h"

namespace profd::analysis {
namespace {

using Json = nlohmann::json;

// The name that operations have for a group: two hashes of 32 bits of its id.
std::string GroupNameOf(std::string_view id) {
  uint32_t high = 0;
  uint32_t low = 0;
  for (const char each : id) {
    const auto byte = static_cast<unsigned char>(each);
    high = high * 29 + byte;
    low = low * 131 + byte;
  }
  return std::to_string(uint64_t{high} << 32 | low);
}

// Null: there is none.
const Json* MemberOf(const Json* object, const char* name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

}  // namespace

void AddMetadata(std::string_view name, std::string_view text, Rank* rank) {
  constexpr int kMostRank = 1'000'000;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (name == "ENV_VARIABLES") {
      if (value.is_string()) rank->environment[key] = value.get<std::string>();
    } else if (name == "distributed_args") {
      if (value.is_number_integer()) rank->parallel_sizes[key] = value.get<int64_t>();
    } else if (value.is_object()) {
      GroupFacts group;
      group.id = key;
      if (const auto label = value.find("group_name"); label != value.end() && label->is_string()) group.label = label->get<std::string>();
      const auto ranks = value.find("global_ranks");
      if (ranks == value.end() || !ranks->is_array()) continue;
      for (const Json& each : *ranks) {
        if (each.is_number_integer() && each.get<int64_t>() >= 0 && each.get<int64_t>() <= kMostRank) group.ranks.push_back(each.get<int>());
      }
      rank->groups[GroupNameOf(key)] = std::move(group);
    }
  }
}

bool AddProfilerInfo(std::string_view text, Rank* rank) {
  constexpr auto kLowest = std::to_array<std::string_view>({"Level0", "Level_none"});
  const Json info = NestsTooDeep(text, kDeepestJson) ? Json() : Json::parse(text, nullptr, false);
  if (!info.is_object()) return false;
  if (const Json* version = MemberOf(&info, "cann_version"); version != nullptr && version->is_string()) rank->cann_version = version->get<std::string>();
  const Json* config = MemberOf(&info, "config");
  const Json* activities = MemberOf(MemberOf(config, "common_config"), "activities");
  const Json* level = MemberOf(MemberOf(config, "experimental_config"), "_profiler_level");
  if (activities == nullptr || !activities->is_array() || level == nullptr || !level->is_string()) return true;
  rank->only_device = std::ranges::find(kLowest, level->get<std::string>()) != kLowest.end();
  for (const Json& each : *activities) {
    if (each == "ProfilerActivity.CPU") rank->only_device = false;
  }
  return true;
}

}  // namespace profd::analysis
