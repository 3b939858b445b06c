// Prints docs/npu-exporter.md from the table. Needs no daemon.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "daemon/metrics/npu_exporter_table.h"

namespace profd {
namespace {

constexpr std::string_view kBefore =
    R"(# npu-exporter's names

Printed from the table by `build/dev/tools/npu_exporter_doc`; do not edit.

For dashboards, schedulers and scripts written for the vendor's npu-exporter, profd serves that exporter's
metrics with their names, labels and units, from its own values.

    [metrics]
    names = ["atlas", "npu-exporter"]      # in addition to profd's names; ["npu-exporter"] instead of them

`profd --compat npu-exporter` (`--compat npu-exporter=instead`) does the same for one start,
`/metrics?names=npu-exporter` for one scrape: a Prometheus job can use these names while another uses
profd's ([metrics-guide.md](metrics-guide.md#http-endpoint)).

    scrape_configs:
      - job_name: npu-exporter
        params: {names: [npu-exporter]}
        static_configs: [{targets: ["node1:9464"]}]

## Migration

1. Run profd beside npu-exporter, with both names, and scrape profd with a separate job. They share only
   the driver. npu-exporter reads PCIe and HCCS bandwidth with calls that block; the same samples of profd
   are off by default and should stay off meanwhile.
2. Change the old job's targets to profd with `params: {names: [npu-exporter]}` and its port
   (9464; npu-exporter's is 8082: set `metrics.listen`, or change the target). Keep the job's name, so
   that recorded series continue.
3. Compare some panels, stop npu-exporter, and move dashboards and rules to the `atlas_npu_*` names
   ([metrics.md](metrics.md), [metrics-guide.md](metrics-guide.md#dashboards-and-alerts)) when you edit them: these are counters where
   values accumulate, in base units, and join with jobs and pods.

## Differences

* Values that cannot be read are absent. npu-exporter writes -1 for many of them; here only
  `npu_chip_info_health_status` has -1, for an NPU that does not answer.
* `npu_chip_info_sio_crc_*` count from 0 when profd starts, and continue from the device's new count after an NPU
  was lost; npu-exporter has the device's own count of 16 bits.
* Samples carry no timestamps. A value that is no longer read disappears after three and a half of
  its intervals (at least 10 s, at most 5 minutes); npu-exporter repeats the last value.
* All metrics are gauges, as in npu-exporter, also counts: `rate()` works, linters complain.
* `model_name` is `name-type-version` as in npu-exporter; `namespace`, `pod_name` and `container_name` come
  from `atlas_npu_container_info` ([jobs.md](jobs.md#attribution)) and are empty if no container is known.
  If several pods share an NPU all three are `not_displayed_for_multi_pod`, as in npu-exporter.
* Port metrics of A5 have the labels `udie` and `port`; the older names ending in `_X_Y`
  (`-enableLegacyMetrics`) are not served, nor are metrics from text files and plugins.
* The exporter's own flags, its cache and its per-group intervals have no counterpart: values are as current
  as profd's own ([configuration.md](configuration.md)).

## The table

Labels: C stands for `id`, `model_name`, `vdie_id`, `pcie_bus_info`, `namespace`, `pod_name`,
`container_name`. If several sources are given, the first with a value is used. A metric is absent
if its sources are: what a chip does not have, and what is off by default (PCIe bandwidth, and HCCS
bandwidth outside sessions).
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
  constexpr std::array<std::string_view, 9> kTexts = {"", ", summed", ", its labels", ": 1 for 0, else 0", " when it is 0",
                                                      ", its codes", ", its growth", " in dBm", ", how many cards"};
  return kTexts[static_cast<size_t>(value)];
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
