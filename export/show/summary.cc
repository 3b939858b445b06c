#include "export/show/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "export/operators/details.h"
#include "export/operators/model.h"

namespace profd::exporting {

int64_t Course::Last() const {
  for (size_t i = kBuckets; i > 0; --i) {
    if (buckets_[i - 1].count > 0) return base_ + static_cast<int64_t>(i) - 1;
  }
  return base_;
}

void Course::Widen() {
  std::vector<Bucket> wide(kBuckets);
  int64_t base = base_ >> 1;
  for (size_t i = 0; i < kBuckets; ++i) {
    int64_t index = ((base_ + static_cast<int64_t>(i)) >> 1) - base;
    Bucket& to = wide[static_cast<size_t>(index)];
    to.sum += buckets_[i].sum;
    to.count += buckets_[i].count;
  }
  buckets_ = std::move(wide);
  base_ = base;
  ++shift_;
}

void Course::Add(int64_t t_ns, double value) {
  if (buckets_.empty()) {
    buckets_.resize(kBuckets);
    base_ = t_ns >> shift_;
  }
  constexpr auto kCount = static_cast<int64_t>(kBuckets);
  int64_t index = t_ns >> shift_;
  while (index - base_ >= kCount || (index < base_ && Last() - index >= kCount)) {
    Widen();
    index = t_ns >> shift_;
  }
  if (index < base_) {
    auto by = static_cast<std::ptrdiff_t>(base_ - index);
    std::rotate(buckets_.begin(), buckets_.end() - by, buckets_.end());
    base_ = index;
  }
  Bucket& bucket = buckets_[static_cast<size_t>(index - base_)];
  bucket.sum += value;
  ++bucket.count;
}

std::vector<double> Course::Resample(int64_t from_ns, int64_t to_ns, size_t columns) const {
  std::vector<double> sums(columns, 0);
  std::vector<double> counts(columns, 0);
  double span = static_cast<double>(to_ns) - static_cast<double>(from_ns);
  double width = std::ldexp(1.0, static_cast<int>(shift_));
  for (size_t i = 0; i < buckets_.size() && columns > 0; ++i) {
    if (buckets_[i].count == 0) continue;
    // A bucket may be wider than a column: it stands in all it touches.
    double begin =
        static_cast<double>(base_ + static_cast<int64_t>(i)) * width - static_cast<double>(from_ns);
    double scale = span > 0 ? static_cast<double>(columns) / span : 0;
    double last_column = static_cast<double>(columns - 1);
    auto first = static_cast<size_t>(std::clamp(begin * scale, 0.0, last_column));
    auto last = static_cast<size_t>(std::clamp((begin + width) * scale - 1e-9, 0.0, last_column));
    for (size_t column = first; column <= std::max(first, last); ++column) {
      sums[column] += buckets_[i].sum;
      counts[column] += static_cast<double>(buckets_[i].count);
    }
  }
  std::vector<double> means(columns, std::numeric_limits<double>::quiet_NaN());
  for (size_t column = 0; column < columns; ++column) {
    if (counts[column] > 0) means[column] = sums[column] / counts[column];
  }
  return means;
}

namespace {

// Of one value column of a series while it is read.
struct ValueColumn {
  size_t column = 0;
  double scale = 1;
  bool known = false;
  int64_t last_ns = 0;  // counters: the sample before
  double last = 0;
  SeriesSummary summary;
};
using ValueColumns = std::vector<ValueColumn>;

class SummarySink : public FormatSink {
 public:
  // `of_dump`: what its files have together.
  SummarySink(DumpSummary* out, RecordedWork* of_dump, Mutex* mutex, const Strings& strings, const DumpInfo* dump)
      : out_(*out), of_dump_(*of_dump), mutex_(*mutex), strings_(strings), dump_(dump) {}

  void Take(const Batch& batch) override {
    const bool communication = batch.table->id == TableId::kCommunication;
    if (communication || batch.table->id == TableId::kKernel) {
      work_.Add(batch, communication);
      return Count(batch, communication ? &communication_ : &kernels_);
    }
    SeriesMap<size_t>& map = maps_.try_emplace({batch.table->id, batch.device}, *batch.table).first->second;
    for (size_t row = 0; row < batch.rows(); ++row) {
      size_t* index = map.Find(batch, row);
      if (index == nullptr) {
        if (map.size() >= DumpSummary::kMaxSeries) {
          ++left_out_;
          continue;
        }
        index = map.Add(Make(batch, map.keys()));
      }
      for (ValueColumn& value_column : value_columns_[*index]) Read(&value_column, batch, row);
    }
  }

  void TakeEvent(const Event& event) override {
    ++events_[static_cast<size_t>(event.kind)];
    durations_.Add(event, event.rank || dump_ == nullptr ? event.rank : dump_->RankOf(event.device));
  }

  Status Finish() override {
    MutexLock lock(mutex_);
    for (ValueColumns& value_columns : value_columns_) {
      for (ValueColumn& value_column : value_columns) {
        SeriesSummary& series = value_column.summary;
        if (series.count == 0) continue;
        out_.first_ns = std::min(out_.first_ns, series.first_ns);
        out_.last_ns = std::max(out_.last_ns, series.last_ns);
        if (out_.series.size() >= DumpSummary::kMaxSeries) {
          ++out_.left_out_series;
        } else {
          out_.series.push_back(std::move(series));
        }
      }
    }
    out_.left_out_series += left_out_;
    for (size_t i = 0; i < events_.size(); ++i) out_.events[i] += events_[i];
    out_.durations.Merge(durations_);
    of_dump_.Merge(std::move(work_));
    AddNamed(kernels_, &out_.kernels);
    AddNamed(communication_, &out_.communication);
    return {};
  }

 private:
  using Totals = ActivityTotals<std::pair<int, int64_t>>;  // by rank and name

  static void Count(const Batch& batch, Totals* totals) {
    const auto names = batch.Ints(0);
    const auto lengths = batch.Ints(static_cast<size_t>(ColumnIndex(*batch.table, "duration")));
    const auto ranks = batch.Ints(static_cast<size_t>(ColumnIndex(*batch.table, "rank")));
    for (size_t row = 0; row < batch.rows(); ++row) {
      totals->Add({static_cast<int>(ranks[row]), names[row]}, lengths[row]);
    }
  }
  void AddNamed(const Totals& from, DumpSummary::OperatorTotals* to) const {
    DumpSummary::OperatorTotals named;
    for (const auto& [key, total] : from.totals()) {
      named.Merge({key.first, std::string(strings_.Text(key.second))}, total);
    }
    named.Merge(from.rest());
    to->Merge(named);
  }

  size_t Make(const Batch& batch, std::span<const uint64_t> keys) {
    if (series_ >= DumpSummary::kMaxSeries) {
      ++left_out_;
      value_columns_.emplace_back();
      return value_columns_.size() - 1;
    }
    ValueColumns value_columns;
    for (MetricColumn& metric : MetricsOf(*batch.table, keys, strings_)) {
      ValueColumn& value_column = value_columns.emplace_back();
      value_column.column = metric.column;
      value_column.scale = metric.scale;
      value_column.summary.table = batch.table->id;
      value_column.summary.device = batch.device;
      value_column.summary.rate = metric.metric.ends_with("_total");
      value_column.summary.metric = std::move(metric.metric);
      value_column.summary.labels = std::move(metric.labels);
      ++series_;
    }
    value_columns_.push_back(std::move(value_columns));
    return value_columns_.size() - 1;
  }

  static void Read(ValueColumn* value_column, const Batch& batch, size_t row) {
    double value = batch.Number(value_column->column, row) * value_column->scale;
    int64_t t_ns = batch.t_ns[row];
    SeriesSummary& series = value_column->summary;
    if (!std::isfinite(value)) return;
    if (series.rate) {
      double delta = value - std::exchange(value_column->last, value);
      int64_t before = std::exchange(value_column->last_ns, t_ns);
      if (!std::exchange(value_column->known, true) || delta < 0 || t_ns <= before) return;
      value = delta * 1e9 / static_cast<double>(t_ns - before);
    }
    if (series.count == 0) {
      series.min = series.max = value;
      series.first_ns = series.last_ns = t_ns;
    }
    ++series.count;
    series.sum += value;
    series.min = std::min(series.min, value);
    series.max = std::max(series.max, value);
    series.first_ns = std::min(series.first_ns, t_ns);
    series.last_ns = std::max(series.last_ns, t_ns);
    series.course.Add(t_ns, value);
  }

  DumpSummary& out_ GUARDED_BY(mutex_);
  RecordedWork& of_dump_ GUARDED_BY(mutex_);
  Mutex& mutex_;
  const Strings& strings_;
  const DumpInfo* dump_;  // null: there is none
  std::map<std::pair<TableId, int>, SeriesMap<size_t>> maps_;
  std::vector<ValueColumns> value_columns_;
  size_t series_ = 0;
  uint64_t left_out_ = 0;
  std::array<uint64_t, kEventKinds> events_ = {};
  DurationStats durations_;
  RecordedWork work_;
  Totals kernels_;
  Totals communication_;
};

class SummaryFormat : public Format {
 public:
  explicit SummaryFormat(DumpSummary* out) : out_(*out) {}
  std::string_view name() const override { return "summary"; }
  bool Wants(TableId table) const override {
    return table == TableId::kKernel || table == TableId::kCommunication ||
           !MetricColumns(TableOf(table)).empty();
  }
  FormatWants wants() const override { return {.events = true, .operators = true}; }
  Status Begin(const ExportPlan& plan) override {
    plan_ = &plan;
    strings_ = plan.strings;
    window_ = plan.window;
    dumps_ = plan.dumps;
    work_.resize(dumps_.size() + 1);
    return {};
  }
  // After all sinks: nothing else writes.
  Status TakeOperators(size_t dump, const operators::Model& model) override {
    const auto add = [&](int device, const std::string& name, int64_t start_ns, int64_t end_ns,
                         DumpSummary::OperatorTotals* totals) {
      totals->Add({dumps_[dump]->RankOf(device).value_or(-1), name}, std::max<int64_t>(end_ns - start_ns, 0));
      out_.first_ns = std::min(out_.first_ns, start_ns);
      out_.last_ns = std::max(out_.last_ns, end_ns);
    };
    for (const operators::TaskRow& row : model.rows) {
      const operators::HostTask* host = model.HostOf(row);
      if (host == nullptr || !host->compute || !operators::IsShown(model, *host, model.CoreType(*host))) continue;
      add(row.device, std::string(model.OperatorName(*host)), row.start_ns, row.end_ns, &out_.kernels);
    }
    for (const operators::CommunicationOp& op : model.communication.ops) {
      if (op.shown) add(op.device, model.TypeOf(op), op.start_ns, op.end_ns, &out_.communication);
    }
    StepSpans steps = plan_->StepsOf(dump);
    if (model.framework != nullptr) model.framework->AddSteps(window_, &steps);
    out_.steps.Add(model, steps, [&](int device) { return dumps_[dump]->RankOf(device).value_or(-1); });
    return {};
  }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    const DumpInfo* dump = task.dump < dumps_.size() ? dumps_[task.dump] : nullptr;
    RecordedWork* of_dump = &work_[std::min(task.dump, dumps_.size())];
    return std::unique_ptr<FormatSink>(std::make_unique<SummarySink>(&out_, of_dump, &mutex_, *strings_, dump));
  }
  Status End(bool, std::vector<OutputFile>*) override {
    for (size_t i = 0; i < work_.size(); ++i) {
      work_[i].AddTo(&out_.steps, i < dumps_.size() ? plan_->StepsOf(i) : StepSpans(), *strings_);
    }
    std::ranges::stable_sort(out_.series, [](const SeriesSummary& a, const SeriesSummary& b) {
      return std::pair(a.table, a.device) < std::pair(b.table, b.device);
    });
    return {};
  }

 private:
  DumpSummary& out_;
  Mutex mutex_;
  const ExportPlan* plan_ = nullptr;
  const Strings* strings_ = nullptr;
  TimeWindow window_;
  std::vector<const DumpInfo*> dumps_;
  std::vector<RecordedWork> work_;  // by dump, and one for what is of no dump
};

}  // namespace

std::unique_ptr<Format> MakeSummaryFormat(DumpSummary* out) {
  return std::make_unique<SummaryFormat>(out);
}

}  // namespace profd::exporting
