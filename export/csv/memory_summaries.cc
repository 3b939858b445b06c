// hbm, ddr, llc_read_write and llc_bandwidth.
#include <algorithm>
#include <array>
#include <cmath>

#include "export/csv/summaries.h"

namespace profd::exporting::csv {
namespace {

// Plain sums in the order of the rows: so do the queries of the vendor's analyser.
struct Sum {
  double sum = 0;
  uint64_t count = 0;

  void Add(double value) {
    sum += value;
    ++count;
  }
  void Merge(const Sum& later) {
    sum += later.sum;
    count += later.count;
  }
  double Average() const { return count > 0 ? sum / static_cast<double>(count) : 0; }
};

class HbmSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    auto ids = batch.Ints(0);
    auto directions = batch.Ints(1);
    auto bandwidths = batch.Reals(2);
    for (size_t row = 0; row < batch.rows(); ++row) {
      auto direction = static_cast<uint64_t>(directions[row]);
      Directions* series = direction < 2 ? series_.Get(ids[row]) : nullptr;
      if (series != nullptr) series->sums[direction].Add(bandwidths[row]);
    }
  }
  void Merge(Summary& later) override { series_.Merge(static_cast<HbmSummary&>(later).series_); }
  Status Write(std::string_view, CsvText* out) override {
    auto all = series_.Sorted();
    if (all.empty()) return Status::Ok();
    CsvRow average = NextRow(out);
    average.Text("Average");
    for (size_t i = 0; i < 2; ++i) {
      std::vector<double> averages;
      for (auto& [id, series] : all) {
        if (series->sums[i].count > 0) averages.push_back(series->sums[i].Average());
      }
      average.Text(DecimalAverage(averages, static_cast<int64_t>(averages.size())));
    }
    average.End();
    for (auto& [id, series] : all) {
      CsvRow row = NextRow(out);
      row.Int(id);
      for (const Sum& sum : series->sums) {
        if (sum.count > 0) {
          row.Fixed3(sum.Average());
        } else {
          row.Text("");
        }
      }
      row.End();
    }
    return Status::Ok();
  }

 private:
  struct Directions {
    std::array<Sum, 2> sums;  // read, write

    void Merge(const Directions& later) {
      for (size_t i = 0; i < sums.size(); ++i) sums[i].Merge(later.sums[i]);
    }
  };
  SeriesMap<Directions> series_;
};

class DdrSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    for (double value : batch.Reals(1)) read_.Add(value);
    for (double value : batch.Reals(2)) write_.Add(value);
  }
  void Merge(Summary& later) override {
    read_.Merge(static_cast<DdrSummary&>(later).read_);
    write_.Merge(static_cast<DdrSummary&>(later).write_);
  }
  Status Write(std::string_view, CsvText* out) override {
    if (read_.count == 0) return Status::Ok();
    NextRow(out).Text("Average").Fixed3(read_.Average()).Fixed3(write_.Average()).End();
    return Status::Ok();
  }

 private:
  Sum read_;
  Sum write_;
};

class LlcSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    auto ids = batch.Ints(0);
    auto hits = batch.Reals(2);
    auto throughputs = batch.Reals(3);
    for (size_t row = 0; row < batch.rows(); ++row) {
      Values* values = series_.Get(ids[row]);
      if (values == nullptr) continue;
      values->hit.Add(hits[row]);
      values->throughput.Add(throughputs[row]);
    }
  }
  void Merge(Summary& later) override { series_.Merge(static_cast<LlcSummary&>(later).series_); }
  Status Write(std::string_view, CsvText* out) override {
    struct Line {
      int64_t id;
      double hit;
      double throughput;
    };
    if (context_.place->chip == 0) return Status::Ok();  // has llc_bandwidth
    std::vector<Line> lines;
    double hit = 0;
    double throughput = 0;
    for (auto& [id, values] : series_.Sorted()) {
      Line line = {id, SqlRound(values->hit.Average(), 6) * 100,
                   SqlRound(values->throughput.Average(), 6)};
      hit += line.hit;
      throughput += line.throughput;
      lines.push_back(line);
    }
    if (lines.empty()) return Status::Ok();
    auto ids = static_cast<double>(lines.size());
    const std::string& mode = context_.place->llc_mode;
    NextRow(out).Text(mode).Text("Average").Fixed3(hit / ids).Fixed3(throughput / ids).End();
    for (const Line& line : lines) {
      NextRow(out).Text(mode).Int(line.id).Fixed3(line.hit).Fixed3(line.throughput).End();
    }
    return Status::Ok();
  }

 private:
  struct Values {
    Sum hit;
    Sum throughput;

    void Merge(const Values& later) {
      hit.Merge(later.hit);
      throughput.Merge(later.throughput);
    }
  };
  SeriesMap<Values> series_;
};

// Chip 0: traffic over the complete time, put together again from the rows' rates.
class LlcBandwidthSummary : public Summary {
 public:
  explicit LlcBandwidthSummary(const PartContext& context) : Summary(context) {
    start_ns_ = ClockMap(context.place->clock).DeviceNs(context.place->clock.device_ns);
    for (Operation& operation : operations_) operation.last_ns = start_ns_;
  }

  void Take(const Batch& batch) override {
    auto kinds = batch.Ints(1);
    for (size_t row = 0; row < batch.rows(); ++row) {
      if (kinds[row] != 0 && kinds[row] != 1) continue;
      int64_t t_ns = batch.t_ns[row];
      Operation& operation = operations_[static_cast<size_t>(kinds[row])];
      double seconds = static_cast<double>(t_ns - operation.last_ns) / 1e9;
      operation.last_ns = t_ns;
      double lines = std::round(batch.Reals(3)[row] * seconds * kMega / kLineBytes);
      operation.lines += lines;
      operation.hits += std::round(batch.Reals(2)[row] * lines);
      first_ns_ = any_ ? std::min(first_ns_, t_ns) : t_ns;
      last_ns_ = any_ ? std::max(last_ns_, t_ns) : t_ns;
      any_ = true;
    }
  }
  // One file per place: there is never a second one.
  void Merge(Summary&) override {}

  Status Write(std::string_view, CsvText* out) override {
    if (!any_ || context_.place->chip != 0) return Status::Ok();
    double seconds = static_cast<double>(last_ns_ - first_ns_) / 1e9;
    auto rate = [&](double lines) {
      return seconds > 0 ? lines * kLineBytes / seconds / kMega : 0;
    };
    auto write_row = [&](std::string_view metric, auto value) {
      CsvRow row = NextRow(out);
      row.Text(metric);
      for (const Operation& operation : operations_) row.Fixed3(value(operation));
      row.End();
    };
    write_row("BandWidth(MB/s)", [&](const Operation& o) { return rate(o.lines); });
    write_row("Hit_Rate(%)", [](const Operation& o) {
      return o.lines > 0 ? std::round(o.hits / o.lines * 1e6) / 1e6 * 100 : 0;
    });
    write_row("Hit_BandWidth(MB/s)", [&](const Operation& o) { return rate(o.hits); });
    return Status::Ok();
  }

 private:
  static constexpr double kLineBytes = 64;
  struct Operation {
    double lines = 0;
    double hits = 0;
    int64_t last_ns = 0;
  };

  std::array<Operation, 2> operations_;  // read, write
  int64_t start_ns_ = 0;
  bool any_ = false;
  int64_t first_ns_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace

std::span<const SummaryKind> MemorySummaries() {
  static constexpr auto kKinds = std::to_array<SummaryKind>({
      {"llc_read_write", TableId::kLlc, "Mode,Task,Hit Rate(%),Throughput(MB/s)", MakeSummary<LlcSummary>},
      {"llc_bandwidth", TableId::kLlc, "Metric,l3c_rd,l3c_wr", MakeSummary<LlcBandwidthSummary>},
      {"hbm", TableId::kHbm, "Metric,Read(MB/s),Write(MB/s)", MakeSummary<HbmSummary>},
      {"ddr", TableId::kDdr, "Metric,Read(MB/s),Write(MB/s)", MakeSummary<DdrSummary>},
  });
  return kKinds;
}

}  // namespace profd::exporting::csv
