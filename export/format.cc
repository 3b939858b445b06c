#include "export/format.h"

#include <array>

#include "export/by_rank.h"
#include "export/formats.h"

namespace profd::exporting {
namespace {

struct FormatEntry {
  std::string_view name;
  std::unique_ptr<Format> (*make)();
};

constexpr auto kFormats = std::to_array<FormatEntry>({
    {"csv", [] { return MakeByRank(MakeCsvFormat, false); }},
    {"trace", [] { return MakeByRank(MakeTraceFormat, true); }},
    {"perfetto", [] { return MakeByRank(MakePerfettoFormat, true); }},
    {"sqlite", [] { return MakeByRank(MakeSqliteFormat, true); }},
    {"jsonl", MakeJsonLinesFormat},
    {"samples", MakeSamplesFormat},
    {"openmetrics", MakeOpenMetricsFormat},
    {"folded", MakeFoldedFormat},
});

}  // namespace

std::unique_ptr<Format> MakeFormat(std::string_view name) {
  for (const FormatEntry& entry : kFormats) {
    if (entry.name == name) return entry.make();
  }
  return nullptr;
}

std::vector<std::string_view> FormatNames() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kFormats));
  for (const FormatEntry& entry : kFormats) names.push_back(entry.name);
  return names;
}

}  // namespace profd::exporting
