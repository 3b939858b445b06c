#include "collectors/npu_state/row_readings.h"

#include "collectors/metric_table.h"

namespace profd {
namespace {

constexpr size_t kAlignment = alignof(std::max_align_t);

consteval size_t LabelCount(std::string_view names) {
  return names.empty() ? 0 : 1 + static_cast<size_t>(std::ranges::count(names, ','));
}

constexpr size_t LabelCount(const ReadingLabels& labels) {
  return labels.first.empty() ? 0 : labels.second.empty() ? 1 : 2;
}

// The metrics of the rows; does not compile for a row with an unknown metric or wrong labels.
template <size_t N>
consteval std::array<MetricId, N> MetricsOf(const std::array<ReadingRow, N>& rows) {
  std::array<MetricId, N> metrics{};
  for (size_t i = 0; i < N; ++i) {
    metrics[i] = MetricByName(rows[i].metric);
    if (LabelCount(rows[i].labels) != LabelCount(kMetrics[metrics[i]].labels)) {
      throw "a row has a value for each label of its metric";
    }
  }
  return metrics;
}

constexpr auto kDeviceRowMetrics = MetricsOf(kDeviceReadings);
constexpr auto kNetworkRowMetrics = MetricsOf(kNetworkReadings);

}  // namespace

RowReadings::RowReadings() {
  Add(kDeviceReadings, kDeviceRowMetrics);
  Add(kNetworkReadings, kNetworkRowMetrics);
}

RowReadings::RowReadings(std::span<const ReadingRow> rows, std::span<const MetricId> metrics) {
  Add(rows, metrics);
}

void RowReadings::Add(std::span<const ReadingRow> rows, std::span<const MetricId> metrics) {
  for (size_t i = 0; i < rows.size(); ++i) {
    SeriesSlot slot(metrics[i], rows[i].labels.first, rows[i].labels.second);
    slot.label_count = LabelCount(rows[i].labels);
    rows_.push_back({&rows[i], slot});
    for (const ReadingSource& source : rows[i].sources) {
      if (source.query == nullptr) continue;
      size_t& offset = offsets_[static_cast<size_t>(source.query->call)];
      if (offset == 0) {
        offset = answers_.size();
        answers_.resize(offset + (source.query->size + kAlignment - 1) / kAlignment * kAlignment);
      }
    }
  }
}

void RowReadings::Read(DevicePass& pass, ReadingPace pace) {
  for (Row& row : rows_) {
    if (row.reading->pace != pace) continue;
    const DcmiQueryRow* own = row.reading->unless_supported;
    if (own != nullptr && ClassifyDcmi(Ask(pass, *own)) != DcmiErrorClass::kUnsupported) continue;
    Put(pass, row);
  }
}

int RowReadings::Ask(DevicePass& pass, const DcmiQueryRow& query) {
  const size_t call = static_cast<size_t>(query.call);
  if (!asked_[call]) {
    codes_[call] = pass.Ask(query, answers_.data() + offsets_[call]);
    asked_[call] = true;
  }
  return codes_[call];
}

void RowReadings::Put(DevicePass& pass, Row& row) {
  for (const ReadingSource& source : row.reading->sources) {
    if (source.query == nullptr || (source.v1_only && pass.dcmi().api() != DcmiApi::kV1)) continue;
    if (Ask(pass, *source.query) != abi::kDcmiOk) continue;
    pass.Put(row.slot, true, source.value(At(*source.query)));
    return;
  }
  pass.Put(row.slot, false, 0);
}

}  // namespace profd
