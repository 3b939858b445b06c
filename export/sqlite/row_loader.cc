#include "export/sqlite/row_loader.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "export/decoder.h"

namespace profd::exporting {
namespace {

constexpr double kTwo63 = 9223372036854775808.0;

// Toward zero; what fits no integer is 0, as is NaN.
uint64_t Whole(double value) {
  if (!(value > -kTwo63 && value < kTwo63)) return 0;
  return static_cast<uint64_t>(static_cast<int64_t>(value));
}

std::string DieName(bool v6, int64_t die) {
  if (!v6) return fmt::format("die {}", die);
  switch (die) {
    case 0:
      return "D-DIE0";
    case 2:
      return "U-DIE0";
    case 3:
      return "U-DIE1";
    default:
      return fmt::format("die {}", die);
  }
}

}  // namespace

Status CellLoader::NextBlock() {
  int64_t first = state_.rowids.Next(place_);
  if (first != next_) RETURN_IF_ERROR(leaf_.Flush());
  next_ = first;
  left_ = RowidBlocks::kBlock;
  return {};
}

Status CellLoader::Finish() {
  state_.rows += rows_;
  rows_ = 0;
  left_ = 0;
  return leaf_.Flush();
}

RowLoader::RowLoader(const SqlTable& table, TableState& state, const LoaderPlace& where)
    : table_(table),
      where_(where),
      begin_ns_(table.vendor && table.source != TableId::kUb ? where.place->clock.begin_us * 1000
                                                             : std::numeric_limits<int64_t>::min()),
      cells_(state, where.ordinal) {
  for (const SqlColumn& column : table.columns) lanes_.emplace_back().column = column;
  if (where.dump_id >= 0) {
    Lane& lane = lanes_.emplace_back();
    lane.column.name = "dumpId";
    lane.column.value = SqlValue::kDevice;
    lane.constant = static_cast<uint64_t>(where.dump_id);
  }
  columns_.resize(lanes_.size());
}

Status RowLoader::Take(const Batch& batch) {
  for (size_t from = 0; from < batch.rows(); from += kRows) {
    RETURN_IF_ERROR(TakePart(batch, from, std::min(kRows, batch.rows() - from)));
  }
  return {};
}

Status RowLoader::TakePart(const Batch& batch, size_t from, size_t rows) {
  SkipRows(batch, from, rows);
  for (size_t i = 0; i < lanes_.size(); ++i) Convert(batch, from, rows, i);
  for (size_t row = 0; row < rows; ++row) {
    if (skip_[row]) continue;
    RETURN_IF_ERROR(cells_.Add(columns_, row));
  }
  return {};
}

void RowLoader::SkipRows(const Batch& batch, size_t from, size_t rows) {
  const int64_t* timestamps = batch.t_ns.data() + from;
  for (size_t i = 0; i < rows; ++i) skip_[i] = timestamps[i] < begin_ns_;
  if (!table_.vendor) return;
  if (table_.source == TableId::kPcie) {
    // A minimum above the maximum: nothing was measured.
    const int64_t* min = batch.Ints(0).data() + from;
    const int64_t* max = batch.Ints(1).data() + from;
    for (size_t i = 0; i < rows; ++i) skip_[i] |= max[i] < min[i];
  } else if (table_.source == TableId::kHostCpu) {
    // The average of all is not a row of the vendor's.
    const int64_t* cpu = batch.Ints(0).data() + from;
    for (size_t i = 0; i < rows; ++i) skip_[i] |= cpu[i] < 0;
  } else if (table_.source == TableId::kAicoreFreq) {
    const int64_t* die = batch.Ints(0).data() + from;
    for (size_t i = 0; i < rows; ++i) skip_[i] |= die[i] < -1 || die[i] > 1;
  }
}

bool RowLoader::NeedsCopy(const Batch& batch, const SqlColumn& column) const {
  if (column.value != SqlValue::kPlain) return true;
  auto cell = static_cast<size_t>(column.cell);
  return column.factor != 1 || IsReal(batch.table->columns[cell].type);
}

void RowLoader::Convert(const Batch& batch, size_t from, size_t rows, size_t index) {
  Lane& lane = lanes_[index];
  const SqlColumn& column = lane.column;
  CellColumn& out = columns_[index];
  out = {&lane.constant, 0, CellKind::kInt};
  if (column.name == "dumpId") return;
  if (column.value == SqlValue::kDevice) {
    lane.constant = static_cast<uint64_t>(static_cast<int64_t>(batch.device));
    return;
  }
  if (column.value == SqlValue::kTime) {
    out = {reinterpret_cast<const uint64_t*>(batch.t_ns.data()) + from, 1, CellKind::kInt};
    return;
  }
  if (column.value == SqlValue::kAicoreMhz) {
    lane.constant = static_cast<uint64_t>(where_.place->aicore_mhz);
    return;
  }
  auto cell = static_cast<size_t>(column.cell);
  const uint64_t* in = batch.cells + cell * batch.stride + from;
  if (!NeedsCopy(batch, column)) {
    out = {in, 1, CellKind::kInt};
    return;
  }
  lane.values.resize(kRows);
  out = {lane.values.data(), 1, CellKind::kInt};
  const bool real = IsReal(batch.table->columns[cell].type);
  switch (column.value) {
    case SqlValue::kKeyText:
    case SqlValue::kQosName:
    case SqlValue::kDieName:
    case SqlValue::kCoreType:
      ConvertTexts(batch, {in, rows}, lane);
      return;
    case SqlValue::kUsage:
      out.kind = CellKind::kNumeric;
      ConvertUsage(batch, from, {in, rows}, lane);
      return;
    default:
      break;
  }
  if (!real) return ConvertInts(in, rows, lane);
  ConvertReals(reinterpret_cast<const double*>(in), rows, lane);
  if (column.value == SqlValue::kPlain) {
    out.kind = column.type == SqlType::kReal ? CellKind::kReal : CellKind::kNumeric;
  }
}

void RowLoader::ConvertReals(const double* in, size_t rows, Lane& lane) const {
  const double factor = lane.column.factor;
  uint64_t* out = lane.values.data();
  if (lane.column.value == SqlValue::kWhole) {
    for (size_t i = 0; i < rows; ++i) out[i] = Whole(in[i] * factor);
  } else {
    for (size_t i = 0; i < rows; ++i) out[i] = std::bit_cast<uint64_t>(in[i] * factor);
  }
}

void RowLoader::ConvertInts(const uint64_t* in, size_t rows, Lane& lane) {
  const auto factor = static_cast<uint64_t>(lane.column.factor);
  for (size_t i = 0; i < rows; ++i) lane.values[i] = in[i] * factor;
}

void RowLoader::ConvertTexts(const Batch& batch, std::span<const uint64_t> in, Lane& lane) {
  for (size_t i = 0; i < in.size(); ++i) {
    TextId& text = lane.ids[in[i] % lane.ids.size()];
    if (!text.known || text.cell != in[i]) {
      auto id = where_.strings->Intern(TextOf(batch, lane.column, in[i]));
      text = {in[i], static_cast<uint64_t>(id), true};
    }
    lane.values[i] = text.id;
  }
}

std::string RowLoader::TextOf(const Batch& batch, const SqlColumn& column, uint64_t cell) const {
  auto value = static_cast<int64_t>(cell);
  switch (column.value) {
    case SqlValue::kQosName: {
      std::string_view name = where_.strings->Text(value);
      return name.starts_with("QoS ") ? std::string(name) : fmt::format("QoS {}", name);
    }
    case SqlValue::kDieName:
      return DieName(IsV6(where_.place->chip), value);
    case SqlValue::kCoreType:
      return value == 0 ? "AIC" : "AIV";
    default: {
      std::string_view name =
          KeyText(batch.table->columns[static_cast<size_t>(column.cell)], value);
      return name.empty() ? fmt::format("{}", value) : std::string(name);
    }
  }
}

// Cycles against the clock's, between two samples of a core. Of a core's first sample the interval is not known; the
// vendor's analyser takes it for 1 ns.
void RowLoader::ConvertUsage(const Batch& batch, size_t from, std::span<const uint64_t> cycles,
                             Lane& lane) {
  const int64_t* timestamps = batch.t_ns.data() + from;
  const int64_t* core = batch.Ints(0).data() + from;
  const int64_t* type = batch.Ints(1).data() + from;
  const double mhz = where_.place->aicore_mhz > 0 ? static_cast<double>(where_.place->aicore_mhz)
                                                  : std::numeric_limits<double>::quiet_NaN();
  const double unknown = where_.compat_msprof ? 1.0 : std::numeric_limits<double>::quiet_NaN();
  for (size_t i = 0; i < cycles.size(); ++i) {
    auto key = static_cast<uint64_t>(type[i]) << 32 ^ static_cast<uint64_t>(core[i]);
    if (core_timestamps_.size() > 65536) core_timestamps_.clear();
    auto [it, fresh] = core_timestamps_.try_emplace(key, timestamps[i]);
    double interval = fresh ? unknown : static_cast<double>(timestamps[i] - it->second);
    it->second = timestamps[i];
    if (interval == 0) skip_[i] = true;
    if (interval < 0 && !where_.compat_msprof) interval = unknown;
    double usage = static_cast<double>(cycles[i] * 1000) / (mhz * interval) * 100;
    lane.values[i] = std::bit_cast<uint64_t>(usage);
  }
}

}  // namespace profd::exporting
