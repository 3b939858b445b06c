#include "daemon/metrics/npu_exporter_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/metrics/npu_exporter_reader.h"
#include "daemon/metrics/npu_exporter_table.h"

namespace profd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using Labels = NpuExporterSeriesLabels;
using Reader = NpuExporterReader;

// What npu-exporter writes in place of a pod's name when several share an NPU.
constexpr std::string_view kSeveral = "not_displayed_for_multi_pod";
constexpr int kNoChip = -1;

double Scaled(double value, double scale) {
  return scale == 1 ? value : RoundedForNpuExporter(value * scale);
}

struct Container {
  std::string name_space, pod, name, id;
};

struct Chip {
  std::string npu;
  Labels info;  // of atlas_npu_info; empty before its first sample
  std::string uuid;
  std::vector<Container> containers;
  // id, model_name, vdie_id, pcie_bus_info, namespace, pod_name, container_name
  std::vector<ClientMetric::Label> labels;
};

struct Cell {
  uint16_t row = 0;
  uint8_t rank = 0;
  int chip = kNoChip;
  int number = 0;
  double value = 0;
  std::array<std::string, 2> extra;  // values of the labels that not all metrics have

  auto Series() const { return std::tie(row, number, chip, extra); }
};

// npu-exporter's "name-type-version": chip_name "Ascend910B3" is its type and name. Names of the 950 begin with the type
// themselves (dcmi-and-metrics 1.2).
std::string ModelName(const Labels& info) {
  constexpr std::string_view kType = "Ascend";
  constexpr std::string_view kTypeInName = "Ascend950";
  std::string_view name = LabelOf(info, "chip_name");
  if (name.empty()) return {};
  std::string_view type;
  if (name.starts_with(kType)) {
    type = kType;
    if (!name.starts_with(kTypeInName)) name.remove_prefix(kType.size());
  }
  return fmt::format("{}-{}-{}", name, type, LabelOf(info, "chip_version"));
}

// What stands in namespace, pod_name and container_name of a chip that has these containers.
Container Shown(const std::vector<Container>& containers) {
  if (containers.empty()) return {};
  Container shown = containers.front();
  for (const Container& other : containers) {
    const std::string several(kSeveral);
    if (other.name_space != shown.name_space || other.pod != shown.pod) {
      return {several, several, several, {}};
    }
    if (other.name != shown.name) shown.name = several;
  }
  return shown;
}

std::string FullName(const Container& container) {
  if (container.name.empty() && container.pod.empty()) return {};
  return fmt::format("{}_{}_{}", container.name_space, container.pod, container.name);
}

// The container of a process: `known` is its name or id. Where nothing is known of the process it is,
// as there, the one that has the complete NPU.
const Container* ContainerOf(const Chip& chip, std::string_view known) {
  if (known.empty()) return chip.containers.size() == 1 ? &chip.containers.front() : nullptr;
  for (const Container& container : chip.containers) {
    if (container.name == known || container.id == known) return &container;
  }
  return nullptr;
}

void FillLabels(Chip* chip) {
  const Labels& info = chip->info;
  const Container shown = Shown(chip->containers);
  chip->labels = {{"id", chip->npu},
                  {"model_name", ModelName(info)},
                  {"vdie_id", chip->uuid},
                  {"pcie_bus_info", UpperCase(LabelOf(info, "pci_bus_id"))},
                  {"namespace", shown.name_space},
                  {"pod_name", shown.pod},
                  {"container_name", shown.name}};
}

// One scrape: takes in the store's series, then hands out families.
class Scrape {
 public:
  Scrape(std::string_view version, NpuExporterRates* rates) : exporter_version_(version), rates_(rates) {}

  void Take(const SeriesValue& series);
  std::vector<MetricFamily> Families();

 private:
  int ChipOf(const Labels& labels);
  void TakeCell(const Reader& reader, const SeriesValue& series);
  bool Value(const Reader& reader, const SeriesValue& series, double* value);
  bool Number(const Reader& reader, const Labels& labels, Cell* cell) const;
  void AddNodeCells();
  void NumberCodes();
  void SortChips();
  void AddCell(const Cell& cell);
  std::vector<ClientMetric::Label> LabelsOf(const Cell& cell) const;
  static void AddContainers(const Chip& chip, MetricFamily* family);

  const std::string exporter_version_;
  NpuExporterRates* rates_;
  std::vector<Chip> chips_;
  std::vector<Cell> cells_;
  std::set<std::string, std::less<>> cards_;
  std::string dcmi_version_;
  std::unordered_map<std::string, size_t> places_;  // by name
  std::vector<MetricFamily> families_;
};

int Scrape::ChipOf(const Labels& labels) {
  if (labels.empty() || labels[0].first != "npu") return kNoChip;
  const std::string& npu = labels[0].second;
  auto chip = std::ranges::find(chips_, npu, &Chip::npu);
  if (chip == chips_.end()) {
    chips_.push_back({npu, {}, std::string(LabelOf(labels, "uuid")), {}, {}});
    return static_cast<int>(chips_.size()) - 1;
  }
  return static_cast<int>(chip - chips_.begin());
}

void Scrape::Take(const SeriesValue& series) {
  static constexpr MetricId kDriver = MetricByName("atlas_driver_info");
  static constexpr MetricId kInfo = MetricByName("atlas_npu_info");
  static constexpr MetricId kContainer = MetricByName("atlas_npu_container_info");
  const Labels& labels = *series.labels;
  const auto text = [&](std::string_view name) { return std::string(LabelOf(labels, name)); };
  if (series.metric == kDriver) dcmi_version_ = text("dcmi_version");
  if (series.metric == kInfo || series.metric == kContainer) {
    const int index = ChipOf(labels);
    if (index == kNoChip) return;
    Chip& chip = chips_[static_cast<size_t>(index)];
    if (series.metric == kInfo) {
      chip.info = labels;
      cards_.insert(text("card"));
    } else {
      chip.containers.push_back(
          {text("namespace"), text("pod"), text("container"), text("container_id")});
    }
  }
  for (const Reader& reader : NpuExporterReaders(series.metric)) {
    if (reader.Matches(labels)) TakeCell(reader, series);
  }
}

bool Scrape::Value(const Reader& reader, const SeriesValue& series, double* value) {
  const NpuExporterSource& source = *reader.source;
  switch (source.value) {
    case NpuExporterValue::kScaled:
    case NpuExporterValue::kSum:
      *value = Scaled(series.value, source.scale);
      return true;
    case NpuExporterValue::kOne:
      *value = 1;
      return true;
    case NpuExporterValue::kOneIfZero:
      *value = series.value == 0 ? 1 : 0;
      return true;
    case NpuExporterValue::kIfZero:
      *value = source.scale;
      return series.value == 0;
    case NpuExporterValue::kCode: {
      std::string_view text = LabelOf(*series.labels, "code");
      if (text.starts_with("0x")) text.remove_prefix(2);
      uint64_t code = 0;
      auto end = std::from_chars(text.data(), text.data() + text.size(), code, 16);
      *value = static_cast<double>(code);
      return end.ec == std::errc() && end.ptr == text.data() + text.size();
    }
    case NpuExporterValue::kPerSecond: {
      const std::string key = fmt::format("{}\x1f{}", reader.row, LabelOf(*series.labels, "npu"));
      const double rate = rates_->Note(key, series.time_ns, series.value);
      *value = Scaled(rate, source.scale);
      return rate >= 0;
    }
    case NpuExporterValue::kDecibels:
      *value = RoundedForNpuExporter(10 * std::log10(series.value * 1000));
      return series.value > 0;
    case NpuExporterValue::kCountCards:
      return false;  // AddNodeCells
  }
  return false;
}

// The number at the end of the name; false if it has none of the row's.
bool Scrape::Number(const Reader& reader, const Labels& labels, Cell* cell) const {
  const NpuExporterRow& row = NpuExporterTable()[reader.row];
  if (row.number.empty()) return true;
  return ParseNumber(LabelOf(labels, row.number), &cell->number) &&
         cell->number >= reader.name.first && cell->number <= reader.name.last;
}

void Scrape::TakeCell(const Reader& reader, const SeriesValue& series) {
  const NpuExporterRow& row = NpuExporterTable()[reader.row];
  const Labels& labels = *series.labels;
  Cell cell;
  cell.row = reader.row;
  cell.rank = reader.rank;
  if (!Number(reader, labels, &cell) || !Value(reader, series, &cell.value)) return;
  const auto text = [&](std::string_view name) { return std::string(LabelOf(labels, name)); };
  cell.chip = ChipOf(labels);
  switch (row.labels) {
    case NpuExporterLabels::kProcess:
      cell.extra = {text("pid"), text("container")};
      break;
    case NpuExporterLabels::kPcie:
      cell.extra[0] = text("stat") + "PcieBw";
      break;
    case NpuExporterLabels::kPort: {
      const std::string port = text("port");
      const size_t slash = port.find('/');
      cell.extra = slash == port.npos ? std::array{text("udie"), port}
                                      : std::array{port.substr(0, slash), port.substr(slash + 1)};
      break;
    }
    case NpuExporterLabels::kVnpu:
      cell.extra[0] = text("vnpu");
      break;
    case NpuExporterLabels::kProduct:
      // Elsewhere npu-exporter does not ask for it.
      if (LabelOf(labels, "chip_name").find("310P") == std::string_view::npos) return;
      break;
    default:
      break;
  }
  cells_.push_back(std::move(cell));
}

// What no series of the store is the source of.
void Scrape::AddNodeCells() {
  std::span<const NpuExporterRow> rows = NpuExporterTable();
  for (size_t row = 0; row < rows.size(); ++row) {
    Cell cell;
    cell.row = static_cast<uint16_t>(row);
    if (rows[row].labels == NpuExporterLabels::kVersion) cell.value = exporter_version_.empty() ? 0 : 1;
    if (rows[row].sources[0].value == NpuExporterValue::kCountCards) cell.value = static_cast<double>(cards_.size());
    if (cell.value > 0) cells_.push_back(std::move(cell));
  }
}

// Fault codes get their place in ascending order; what the row has no name for goes.
void Scrape::NumberCodes() {
  std::span<const NpuExporterRow> rows = NpuExporterTable();
  const auto is_code = [&](const Cell& cell) {
    return rows[cell.row].sources[0].value == NpuExporterValue::kCode;
  };
  const auto codes = std::stable_partition(cells_.begin(), cells_.end(),
                                           [&](const Cell& cell) { return !is_code(cell); });
  const auto key = [](const Cell& cell) { return std::tie(cell.row, cell.chip, cell.value); };
  std::sort(codes, cells_.end(), [&](const Cell& a, const Cell& b) { return key(a) < key(b); });
  cells_.erase(std::unique(codes, cells_.end(),
                           [&](const Cell& a, const Cell& b) { return key(a) == key(b); }),
               cells_.end());
  int place = 0;
  for (auto cell = codes; cell != cells_.end(); ++cell) {
    const bool first = cell == codes || std::prev(cell)->row != cell->row ||
                       std::prev(cell)->chip != cell->chip;
    place = first ? 0 : place + 1;
    cell->number = place;
  }
  cells_.erase(std::remove_if(codes, cells_.end(),
                              [&](const Cell& cell) {
                                const auto name = SplitNpuExporterName(rows[cell.row].name);
                                return cell.number < name.first || cell.number > name.last;
                              }),
               cells_.end());
}

void Scrape::SortChips() {
  std::vector<int> order(chips_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto number = [&](int chip) {
    int npu = INT32_MAX;
    return ParseNumber(chips_[static_cast<size_t>(chip)].npu, &npu) ? npu : INT32_MAX;
  };
  std::ranges::sort(order, [&](int a, int b) { return number(a) < number(b); });
  std::vector<int> place(order.size());
  std::vector<Chip> sorted;
  for (int chip : order) {
    place[static_cast<size_t>(chip)] = static_cast<int>(sorted.size());
    sorted.push_back(std::move(chips_[static_cast<size_t>(chip)]));
    FillLabels(&sorted.back());
  }
  chips_ = std::move(sorted);
  for (Cell& cell : cells_) {
    if (cell.chip != kNoChip) cell.chip = place[static_cast<size_t>(cell.chip)];
  }
}

std::vector<ClientMetric::Label> Scrape::LabelsOf(const Cell& cell) const {
  const NpuExporterLabels shape = NpuExporterTable()[cell.row].labels;
  if (shape == NpuExporterLabels::kNone) return {};
  if (shape == NpuExporterLabels::kVersion) return {{"exporterVersion", exporter_version_}};
  if (shape == NpuExporterLabels::kNode) {
    return {{"exporterVersion", exporter_version_}, {"driverVersion", dcmi_version_}};
  }
  const Chip& chip = chips_[static_cast<size_t>(cell.chip)];
  std::vector<ClientMetric::Label> labels = chip.labels;
  switch (shape) {
    case NpuExporterLabels::kChipName:
      labels[1].name = "name";
      break;
    case NpuExporterLabels::kSerial:
      labels.push_back({"serial_number", std::string(LabelOf(chip.info, "serial"))});
      break;
    case NpuExporterLabels::kProduct:
      labels.push_back({"product_type", std::string(LabelOf(chip.info, "model"))});
      break;
    case NpuExporterLabels::kProcess: {
      const Container* container = ContainerOf(chip, cell.extra[1]);
      labels[6].value = container == nullptr ? std::string() : FullName(*container);
      labels.push_back({"process_id", cell.extra[0]});
      labels.push_back({"container_id", container == nullptr ? cell.extra[1] : container->id});
      break;
    }
    case NpuExporterLabels::kPcie:
      labels.push_back({"pcie_bw_type", cell.extra[0]});
      break;
    case NpuExporterLabels::kPort:
      labels.push_back({"udie", cell.extra[0]});
      labels.push_back({"port", cell.extra[1]});
      break;
    case NpuExporterLabels::kVnpu:
      labels[2] = {"v_dev_id", cell.extra[0]};
      labels[3] = {"aicore_count", ""};
      labels.push_back({"is_virtual", "true"});
      break;
    default:
      break;
  }
  return labels;
}

void Scrape::AddContainers(const Chip& chip, MetricFamily* family) {
  for (const Container& container : chip.containers) {
    ClientMetric& metric = family->metric.emplace_back();
    metric.label = chip.labels;
    metric.label[0].name = "npuID";
    metric.label[4].value = container.name_space;
    metric.label[5].value = container.pod;
    metric.label[6].value = container.name;
    metric.label.push_back({"containerID", container.id});
    metric.label.push_back({"containerName", FullName(container)});
    metric.gauge.value = 1;
  }
}

void Scrape::AddCell(const Cell& cell) {
  const NpuExporterRow& row = NpuExporterTable()[cell.row];
  const bool of_container = row.labels == NpuExporterLabels::kInContainer ||
                            row.labels == NpuExporterLabels::kContainer;
  if (of_container && chips_[static_cast<size_t>(cell.chip)].containers.empty()) return;
  const NpuExporterName name = SplitNpuExporterName(row.name);
  std::string full(name.stem);
  if (name.stem != row.name) full += std::to_string(cell.number);
  // Names that A5 has for each port are in two rows.
  const auto [place, added] = places_.try_emplace(std::move(full), families_.size());
  if (added) {
    families_.push_back({place->first,
                         fmt::format("npu-exporter's name for {}, unit {}", row.sources[cell.rank].metric, row.unit),
                         prometheus::MetricType::Gauge, {}});
  }
  MetricFamily& family = families_[place->second];
  if (row.labels == NpuExporterLabels::kContainer) {
    AddContainers(chips_[static_cast<size_t>(cell.chip)], &family);
    return;
  }
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = LabelsOf(cell);
  metric.gauge.value = cell.value;
}

std::vector<MetricFamily> Scrape::Families() {
  AddNodeCells();
  NumberCodes();
  SortChips();
  std::ranges::stable_sort(cells_, [](const Cell& a, const Cell& b) {
    if (a.Series() != b.Series()) return a.Series() < b.Series();
    return a.rank < b.rank;
  });
  for (size_t i = 0; i < cells_.size();) {
    Cell cell = std::move(cells_[i]);
    const NpuExporterRow& row = NpuExporterTable()[cell.row];
    const bool sum = row.sources[cell.rank].value == NpuExporterValue::kSum;
    for (++i; i < cells_.size() && cells_[i].Series() == cell.Series(); ++i) {
      if (sum && cells_[i].rank == cell.rank) cell.value += cells_[i].value;
    }
    AddCell(cell);
  }
  return std::move(families_);
}

}  // namespace

double NpuExporterRates::Note(const std::string& series, int64_t time_ns, double value) {
  LastValue& seen = seen_[series];
  if (time_ns > seen.time_ns) {
    const double seconds = static_cast<double>(time_ns - seen.time_ns) / kNsPerSecond;
    const bool usable = seen.time_ns != 0 && value >= seen.value;
    seen = {time_ns, value, usable ? (value - seen.value) / seconds : -1};
  }
  return seen.rate;
}

std::vector<MetricFamily> NpuExporterFamilies(const MetricStore& store, int64_t now_ns, std::string_view version,
                                              NpuExporterRates* rates) {
  Scrape scrape(version, rates);
  store.VisitFresh(now_ns, [&](const SeriesValue& series) { scrape.Take(series); });
  return scrape.Families();
}

}  // namespace profd
