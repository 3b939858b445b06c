// What the application marked: instants and ranges, by name.
#include <algorithm>
#include <map>

#include "analysis/views/views.h"

namespace profd::analysis {
namespace {

constexpr size_t kMostListed = 2000;  // the longest ones

struct OfName {
  uint64_t count = 0;
  uint64_t ranges = 0;
  int64_t total_ns = 0;
  int64_t min_ns = INT64_MAX;
  int64_t max_ns = 0;
};

Json MeanOf(const OfName& of) {
  return of.ranges == 0 ? Json() : Json(Ms(of.total_ns) / static_cast<double>(of.ranges));
}

}  // namespace

Json MarksView(const Rank& rank) {
  std::map<std::pair<TextId, TextId>, OfName> names;
  for (const Mark& mark : rank.marks) {
    OfName& of = names[{mark.name, mark.domain}];
    ++of.count;
    if (mark.is_instant) continue;
    const int64_t ns = mark.end_ns - mark.start_ns;
    ++of.ranges;
    of.total_ns += ns;
    of.min_ns = std::min(of.min_ns, ns);
    of.max_ns = std::max(of.max_ns, ns);
  }
  if (names.empty()) return nullptr;
  std::vector<std::pair<std::pair<TextId, TextId>, OfName>> sorted(names.begin(), names.end());
  std::ranges::stable_sort(sorted, std::greater<>(), [](const auto& each) { return each.second.total_ns; });
  Json json;
  json["names"] = Json::array();
  for (const auto& [key, of] : sorted) {
    const bool has = of.ranges > 0;
    json["names"].push_back({{"name", TextOrNull(rank, key.first)}, {"domain", TextOrNull(rank, key.second)},
                             {"count", of.count}, {"ranges", of.ranges}, {"total_ms", Ms(of.total_ns)},
                             {"min_ms", has ? Json(Ms(of.min_ns)) : Json()}, {"mean_ms", MeanOf(of)},
                             {"max_ms", has ? Json(Ms(of.max_ns)) : Json()}});
  }
  std::vector<const Mark*> longest;
  for (const Mark& mark : rank.marks) longest.push_back(&mark);
  std::ranges::stable_sort(longest, std::greater<>(), [](const Mark* mark) { return mark->end_ns - mark->start_ns; });
  json["left_out"] = longest.size() > kMostListed ? longest.size() - kMostListed : 0;
  longest.resize(std::min(longest.size(), kMostListed));
  std::ranges::stable_sort(longest, {}, [](const Mark* mark) { return mark->start_ns; });
  const int64_t begin = BeginOf(rank);
  json["list"] = Json::array();
  for (const Mark* mark : longest) {
    json["list"].push_back({{"name", TextOrNull(rank, mark->name)}, {"domain", TextOrNull(rank, mark->domain)},
                            {"start_ms", Ms(mark->start_ns - begin)},
                            {"duration_ms", mark->is_instant ? Json() : Json(Ms(mark->end_ns - mark->start_ns))}});
  }
  return json;
}

}  // namespace profd::analysis
