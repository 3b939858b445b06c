// Prints docs/npu-exporter.md from the table. Needs no daemon.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "daemon/metrics/npu_exporter_table.h"

namespace profd {
namespace {

constexpr std::string_view kBefore =
    R"(# npu-exporter's names

Printed from the table by `scripts/print-npu-exporter-doc`; do not edit.

Dashboards, schedulers and scripts written for the vendor's npu-exporter can read profd: it serves that
exporter's metrics under their names, with their labels and units, from the values it has anyway.

    [metrics]
    names = ["atlas", "npu-exporter"]      # in addition to ours; ["npu-exporter"] instead of ours

`profd --compat npu-exporter` (`--compat npu-exporter=instead`) is the same for one start,
`/metrics?names=npu-exporter` for one scrape: a Prometheus job can ask for these names while another reads
ours ([metrics-guide.md](metrics-guide.md#http-endpoint)).

## Moving over

1. Run profd beside npu-exporter, both names on, profd scraped by a job of its own. Nothing is shared but
   the driver. npu-exporter asks it for PCIe and HCCS bandwidth with calls that block; profd's own such
   readings are off by default and should stay off meanwhile.
2. Point the old job's targets to profd with `params: {names: [npu-exporter]}`, on its port
   (9464; npu-exporter's is 8082: set `metrics.listen`, or change the target), and keep the job's name so
   that recorded series go on.
3. Compare a few panels, stop npu-exporter, and move dashboards and rules to the `atlas_npu_*` names
   ([metrics.md](metrics.md), [dashboards.md](dashboards.md)) as you touch them: those are counters where
   counting is meant, in base units, and join with jobs and pods.

## What differs

* Readings that fail are absent. npu-exporter writes -1 for many of them; here only
  `npu_chip_info_health_status` has -1, for an NPU that does not answer.
* Samples carry no timestamps. A value that is no longer read leaves the scrape after three and a half of
  its intervals (at least 10 s, at most 5 minutes) instead of standing still.
* Everything is a gauge, as there, counts too: `rate()` works, linters complain.
* `model_name` is `name-type-version` as there; `namespace`, `pod_name` and `container_name` come from
  `atlas_npu_container_info` ([jobs.md](jobs.md#attribution)) and are empty where no container is known.
  When several pods share an NPU all three are `not_displayed_for_multi_pod`, as there.
* Port metrics of A5 have the labels `udie` and `port`; the older names with `_X_Y` at their end
  (`-enableLegacyMetrics`) are not served, nor are metrics from text files and plugins.
* The exporter's own flags, its cache and its per-group intervals have no counterpart: values are as fresh
  as profd's own ([configuration.md](configuration.md)).

## The table

Labels: C stands for `id`, `model_name`, `vdie_id`, `pcie_bus_info`, `namespace`, `pod_name`,
`container_name`. Where several sources are given the first that has a value serves. A metric is absent
where its source is: what a chip does not have, and what is off by default (PCIe bandwidth, and HCCS
bandwidth outside of sessions).
)";

// "C + udie, port"
std::string LabelCell(NpuExporterLabels labels) {
  const std::string_view common = NpuExporterLabelNames(NpuExporterLabels::kChip);
  std::string text(NpuExporterLabelNames(labels));
  if (text.starts_with(common)) {
    text.erase(0, common.size() + (text.size() > common.size() ? 1 : 0));
    text = text.empty() ? "C" : "C," + text;
  }
  for (size_t comma = 0; (comma = text.find(',', comma)) != text.npos; comma += 2) {
    text.insert(comma + 1, 1, ' ');
  }
  return text;
}

std::string_view HowText(NpuExporterValue value) {
  switch (value) {
    case NpuExporterValue::kSum:
      return ", summed";
    case NpuExporterValue::kOne:
      return ", its labels";
    case NpuExporterValue::kOneIfZero:
      return ": 1 for 0, 0 for all else";
    case NpuExporterValue::kIfZero:
      return " when it is 0";
    case NpuExporterValue::kCode:
      return ", its codes";
    case NpuExporterValue::kPerSecond:
      return ", its growth";
    case NpuExporterValue::kDecibels:
      return " in dBm";
    case NpuExporterValue::kCountCards:
      return ", how many cards";
    case NpuExporterValue::kScaled:
      break;
  }
  return "";
}

std::string SourceCell(const NpuExporterRow& row) {
  std::string cell;
  for (const NpuExporterSource& source : SourcesOf(row)) {
    cell += fmt::format("{}`{}{}`{}", cell.empty() ? "" : "; else ", source.metric,
                        source.match.empty() ? "" : fmt::format("{{{}}}", source.match),
                        HowText(source.value));
  }
  return cell.empty() ? "not served" : cell;
}

void Print() {
  fmt::print("{}", kBefore);
  std::string_view group;
  for (const NpuExporterRow& row : NpuExporterTable()) {
    if (row.group != group) {
      group = row.group;
      fmt::print("\n### {}\n\n| metric | labels | unit | from | note |\n|---|---|---|---|---|\n",
                 group);
    }
    fmt::print("| `{}` | {} | {} | {} | {} |\n", row.name, LabelCell(row.labels), row.unit,
               SourceCell(row), row.note);
  }
}

}  // namespace
}  // namespace profd

int main() {
  profd::Print();
  return 0;
}
