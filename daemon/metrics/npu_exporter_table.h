// THE table of npu-exporter's metrics (dcmi-and-metrics 2.1): what each is called there, which of its
// labels it carries, its unit there, and which metric of ours it is made from or why it cannot be.
// docs/npu-exporter.md and the tests are printed from it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace profd {

// npu-exporter's label sets; NpuExporterLabelNames spells them.
enum class NpuExporterLabels : uint8_t {
  kNone,
  kVersion,
  kNode,
  kChip,         // what nearly all metrics of a chip carry
  kInContainer,  // the same, for chips a container has
  kChipName,
  kSerial,
  kProduct,
  kProcess,
  kContainer,
  kPcie,
  kPort,  // of A5, whose chips have several
  kVnpu,
};

// How the value of a series of ours becomes one of npu-exporter's.
enum class NpuExporterValue : uint8_t {
  kScaled,      // value * scale
  kSum,         // the sum of all series that match, * scale
  kOne,         // 1: the information is in the labels
  kOneIfZero,   // 1 for 0, 0 for anything else
  kIfZero,      // `scale` for 0, nothing for anything else
  kCode,        // the hexadecimal number in label code, in ascending order of the codes
  kPerSecond,   // growth of a counter between its last two samples, per second, * scale
  kDecibels,    // watts as dBm
  kCountCards,  // how many different values label card has
};

struct NpuExporterSource {
  std::string_view metric;  // of ours; looked up when the program runs
  // "label=value" the series must have, separated by commas; value "/" stands for any with a slash in
  // it, "!/" for any without.
  std::string_view match = {};
  double scale = 1;
  NpuExporterValue value = NpuExporterValue::kScaled;
};

struct NpuExporterRow {
  std::string_view group;
  std::string_view name;  // may end in "<1..7>": a metric for each number
  NpuExporterLabels labels = NpuExporterLabels::kChip;
  std::string_view unit;  // npu-exporter's
  // The first one that has a value serves; an empty metric ends the list.
  std::array<NpuExporterSource, 3> sources{};
  std::string_view number = {};  // our label that holds the number at the name's end
  std::string_view note = {};    // what differs, or why there is no source
};

std::span<const NpuExporterRow> NpuExporterTable();

// Comma-separated, in npu-exporter's order.
std::string_view NpuExporterLabelNames(NpuExporterLabels labels);

// The row's name without the range at its end, and the range; {0, 0} where it has none.
struct NpuExporterName {
  std::string_view stem;
  int first = 0;
  int last = 0;
};
NpuExporterName SplitNpuExporterName(std::string_view name);

// Ends both lists at their empty entry.
std::span<const NpuExporterSource> SourcesOf(const NpuExporterRow& row);

}  // namespace profd
