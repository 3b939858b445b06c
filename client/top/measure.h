// What a device's row shows, and the series of each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace profd {

namespace v1 {
class SeriesInfo;
}

namespace client::top {

enum class Measure : uint8_t {
  kUtilization,
  kHbmUsed,
  kHbmSize,
  kHbmBandwidth,
  kPower,
  kTemperature,
  kHbmTemperature,
  kFrequency,
  kHccs,
  kRoce,
  kPcie,
};
inline constexpr size_t kMeasures = 11;
// What devices can be sorted by and graphs show, in the order that keys go through them; of sorting the id is first.
inline constexpr std::array<Measure, 10> kSortable = {
    Measure::kUtilization,  Measure::kHbmUsed,       Measure::kPower, Measure::kTemperature,
    Measure::kFrequency,    Measure::kHccs,          Measure::kRoce,  Measure::kPcie,
    Measure::kHbmBandwidth, Measure::kHbmTemperature};

struct MeasureInfo {
  // Of JSON.
  std::string_view name;
  // Of --sort; empty = not sortable.
  std::string_view word;
  // Above a graph.
  std::string_view title;
  // As metric names end.
  std::string_view unit;
};
const MeasureInfo& InfoOf(Measure measure);

// "63%", "1.80G", "299W": what fits a narrow column. "-" for NaN.
std::string ShortText(Measure measure, double value);

// Where the samples of a series go.
struct Source {
  Measure measure = Measure::kUtilization;
  // Of several sources that are fresh the lowest counts; those of one rank add up (directions).
  uint8_t rank = 0;
  // Its rate counts, times `scale`.
  bool counter = false;
  double scale = 1;
};
std::optional<Source> SourceOf(const v1::SeriesInfo& series);

}  // namespace client::top
}  // namespace profd
