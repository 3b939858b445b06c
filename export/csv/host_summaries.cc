// cpu_usage, sys_mem, process_* of devices and the host, and host_*.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "export/csv/quantile.h"
#include "export/csv/summaries.h"

namespace profd::exporting::csv {
namespace {

// Shares of the time since boot, summed over all samples, as the vendor's analyser has them.
class CpuUsageSummary : public Summary {
 public:
  explicit CpuUsageSummary(const PartContext& context) : Summary(context) {
    if (context.place->kind == Place::Kind::kHost) return;
    for (int cpu : context.place->ai_cpus) kinds_[cpu] = kAi;
    for (int cpu : context.place->ctrl_cpus) kinds_[cpu] = kControl;
  }

  void Take(const Batch& batch) override {
    auto cpus = batch.Ints(0);
    for (size_t row = 0; row < batch.rows(); ++row) {
      int kind = KindOf(cpus[row]);
      if (kind < 0) continue;
      for (size_t i = 0; i < kFields; ++i) {
        auto value = static_cast<double>(batch.Ints(i + 1)[row]);
        sums_[static_cast<size_t>(kind)][i] += value;
      }
      seen_[static_cast<size_t>(kind)] = true;
    }
  }
  void Merge(Summary& later) override {
    auto& other = static_cast<CpuUsageSummary&>(later);
    for (size_t kind = 0; kind < kKinds; ++kind) {
      seen_[kind] = seen_[kind] || other.seen_[kind];
      for (size_t i = 0; i < kFields; ++i) sums_[kind][i] += other.sums_[kind][i];
    }
  }
  Status Write(std::string_view, CsvText* out) override {
    constexpr std::array<std::string_view, kKinds> kNames = {"aicpu", "ctrlcpu", "host"};
    // user, system, iowait, irq, softirq, idle by their places in /proc/stat.
    constexpr std::array<size_t, 6> kShown = {0, 2, 4, 5, 6, 3};
    for (size_t kind = 0; kind < kKinds; ++kind) {
      if (!seen_[kind]) continue;
      double total = 0;
      for (double sum : sums_[kind]) total += sum;
      CsvRow row = NextRow(out);
      row.Text(kNames[kind]);
      for (size_t i : kShown) row.Fixed3(total > 0 ? sums_[kind][i] / total * 100 : 0);
      row.End();
    }
    return Status::Ok();
  }

 private:
  static constexpr size_t kFields = 10;
  static constexpr size_t kKinds = 3;
  static constexpr int kAi = 0;
  static constexpr int kControl = 1;
  static constexpr int kHost = 2;

  int KindOf(int64_t cpu) const {
    if (context_.place->kind == Place::Kind::kHost) return kHost;
    auto it = kinds_.find(cpu);
    return it == kinds_.end() ? -1 : it->second;
  }

  std::map<int64_t, int> kinds_;
  std::array<bool, kKinds> seen_ = {};
  std::array<std::array<double, kFields>, kKinds> sums_ = {};
};

class ProcessCpuSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    for (size_t row = 0; row < batch.rows(); ++row) {
      Process* process = processes_.Get(batch.Ints(0)[row]);
      auto total = static_cast<double>(batch.Ints(3)[row]);
      if (process == nullptr) continue;
      process->name = batch.Ints(1)[row];
      if (total > 0) process->sum += static_cast<double>(batch.Ints(2)[row]) / total;
      ++process->rows;
    }
  }
  void Merge(Summary& later) override { processes_.Merge(static_cast<ProcessCpuSummary&>(later).processes_); }
  Status Write(std::string_view, CsvText* out) override {
    auto all = processes_.Sorted();
    auto percent = [](const Process& p) { return 100 * p.sum / static_cast<double>(p.rows); };
    std::ranges::stable_sort(
        all, [&](const auto& a, const auto& b) { return percent(*a.second) > percent(*b.second); });
    for (auto& [pid, process] : all) {
      NextRow(out).Int(pid).Text(context_.strings->Text(process->name)).Fixed3(percent(*process)).End();
    }
    return Status::Ok();
  }

 private:
  struct Process {
    int64_t name = -1;
    double sum = 0;
    uint64_t rows = 0;

    void Merge(const Process& later) {
      name = later.name;
      sum += later.sum;
      rows += later.rows;
    }
  };
  SeriesMap<Process> processes_;
};

// Averages of integers, cut off as the integers they are in the vendor's queries.
int64_t WholeAverage(int64_t sum, int64_t rows) { return rows > 0 ? sum / rows : 0; }

class SysMemSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    for (size_t i = 0; i < kFields; ++i) {
      for (int64_t value : batch.Ints(i)) AddTo(&sums_[i], value);
    }
    rows_ += static_cast<int64_t>(batch.rows());
  }
  void Merge(Summary& later) override {
    auto& other = static_cast<SysMemSummary&>(later);
    for (size_t i = 0; i < kFields; ++i) AddTo(&sums_[i], other.sums_[i]);
    rows_ += other.rows_;
  }
  Status Write(std::string_view, CsvText* out) override {
    if (rows_ == 0) return Status::Ok();
    CsvRow row = NextRow(out);
    for (int64_t sum : sums_) row.Int(WholeAverage(sum, rows_));
    row.End();
    return Status::Ok();
  }

 private:
  static constexpr size_t kFields = 9;
  std::array<int64_t, kFields> sums_ = {};
  int64_t rows_ = 0;
};

class ProcessMemSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    for (size_t row = 0; row < batch.rows(); ++row) {
      Process* process = processes_.Get(batch.Ints(0)[row]);
      if (process == nullptr) continue;
      process->name = batch.Ints(1)[row];
      for (size_t i = 0; i < kFields; ++i) AddTo(&process->sums[i], batch.Ints(i + 2)[row]);
      ++process->rows;
    }
  }
  void Merge(Summary& later) override { processes_.Merge(static_cast<ProcessMemSummary&>(later).processes_); }
  Status Write(std::string_view, CsvText* out) override {
    auto all = processes_.Sorted();
    std::ranges::stable_sort(all, [](const auto& a, const auto& b) {
      return a.second->AllPages() > b.second->AllPages();
    });
    for (auto& [pid, process] : all) {
      CsvRow row = NextRow(out);
      row.Int(pid).Text(context_.strings->Text(process->name));
      for (int64_t sum : process->sums) row.Int(WholeAverage(sum, process->rows));
      row.End();
    }
    return Status::Ok();
  }

 private:
  static constexpr size_t kFields = 3;
  struct Process {
    int64_t name = -1;
    std::array<int64_t, kFields> sums = {};
    int64_t rows = 0;

    void Merge(const Process& later) {
      name = later.name;
      for (size_t i = 0; i < kFields; ++i) AddTo(&sums[i], later.sums[i]);
      rows += later.rows;
    }
    double AllPages() const {
      double pages = 0;
      for (int64_t sum : sums) pages += static_cast<double>(WholeAverage(sum, rows));
      return pages;
    }
  };
  SeriesMap<Process> processes_;
};

class HostCpuSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    auto cpus = batch.Ints(0);
    auto usages = batch.Reals(1);
    for (size_t row = 0; row < batch.rows(); ++row) {
      any_ = true;
      if (cpus[row] < 0) continue;  // the average of all
      double* peak = peaks_.Get(cpus[row]);
      if (peak != nullptr) *peak = std::max(*peak, usages[row]);
    }
  }
  void Merge(Summary& later) override {
    auto& other = static_cast<HostCpuSummary&>(later);
    any_ = any_ || other.any_;
    for (auto& [cpu, value] : other.peaks_.Sorted()) {
      double* peak = peaks_.Get(cpu);
      if (peak != nullptr) *peak = std::max(*peak, *value);
    }
  }
  Status Write(std::string_view, CsvText* out) override {
    if (!any_) return Status::Ok();
    auto all = peaks_.Sorted();
    auto used = std::ranges::count_if(all, [](const auto& cpu) { return *cpu.second > 0; });
    NextRow(out).Int(context_.dump->cpu_count).Int(static_cast<int64_t>(all.size())).Int(used).End();
    return Status::Ok();
  }

 private:
  bool any_ = false;
  SeriesMap<double> peaks_;
};

// Peak and recommendation of one column: the 98th percentile of its values above 0, by 0.8.
class Recommendation {
 public:
  explicit Recommendation(Spool& spool) : values_(spool) {}

  void Add(double value) {
    peak_ = rows_ == 0 ? value : std::max(peak_, value);
    ++rows_;
    values_.Add(value);
  }
  void Finish() { values_.Finish(); }
  void Merge(Recommendation& later) {
    if (later.rows_ > 0) peak_ = rows_ == 0 ? later.peak_ : std::max(peak_, later.peak_);
    rows_ += later.rows_;
    values_.Merge(later.values_);
  }
  uint64_t rows() const { return rows_; }
  double peak() const { return peak_; }
  Result<double> Recommended() const {
    if (values_.size() == 0) return 0.0;
    auto rank = std::ceil(static_cast<double>(values_.size() - 1) * 0.98);
    auto value = values_.Smallest(static_cast<uint64_t>(rank));
    if (!value.ok()) return value.status();
    return *value / 0.8;
  }

 private:
  ExactQuantile values_;
  uint64_t rows_ = 0;
  double peak_ = 0;
};

// Of columns next to each other.
class RecommendationSummary : public Summary {
 public:
  RecommendationSummary(const PartContext& context, size_t first, size_t columns) : Summary(context), first_(first) {
    for (size_t i = 0; i < columns; ++i) columns_.emplace_back(*context.spool);
  }

  void Take(const Batch& batch) override {
    for (size_t i = 0; i < columns_.size(); ++i) {
      for (double value : batch.Reals(first_ + i)) columns_[i].Add(value);
    }
  }
  Status Finish() override {
    for (Recommendation& column : columns_) column.Finish();
    return Status::Ok();
  }
  void Merge(Summary& later) override {
    auto& other = static_cast<RecommendationSummary&>(later);
    for (size_t i = 0; i < columns_.size(); ++i) columns_[i].Merge(other.columns_[i]);
  }
  Status Write(std::string_view, CsvText* out) override {
    if (columns_.front().rows() == 0) return Status::Ok();
    std::vector<double> recommended;
    for (const Recommendation& column : columns_) {
      auto value = column.Recommended();
      if (!value.ok()) return value.status();
      recommended.push_back(*value);
    }
    WriteRow(recommended, out);
    return Status::Ok();
  }

 protected:
  double Peak(size_t column) const { return columns_[column].peak(); }

 private:
  virtual void WriteRow(std::span<const double> recommended, CsvText* out) = 0;

  size_t first_;
  std::vector<Recommendation> columns_;
};

class HostMemSummary : public RecommendationSummary {
 public:
  explicit HostMemSummary(const PartContext& context) : RecommendationSummary(context, 0, 1) {}

 private:
  void WriteRow(std::span<const double> recommended, CsvText* out) override {
    if (context_.dump->memory_total_kb <= 0) return;
    auto total = static_cast<double>(context_.dump->memory_total_kb);
    CsvRow row = NextRow(out);
    row.Int(context_.dump->memory_total_kb).Fixed3(Peak(0) * total / 100);
    row.Fixed3(recommended[0] * total / 100).End();
  }
};

class HostNetworkSummary : public RecommendationSummary {
 public:
  explicit HostNetworkSummary(const PartContext& context) : RecommendationSummary(context, 1, 1) {}

 private:
  void WriteRow(std::span<const double> recommended, CsvText* out) override {
    double cards = 0;
    for (const auto& card : context_.dump->cards) {
      if (card.speed_mbps != -1) cards += static_cast<double>(card.speed_mbps) * 125000 / 1024;
    }
    NextRow(out).Repr(cards).Repr(Peak(0)).Repr(recommended[0]).End();
  }
};

// Read and write.
class HostDiskSummary : public RecommendationSummary {
 public:
  explicit HostDiskSummary(const PartContext& context) : RecommendationSummary(context, 0, 2) {}

 private:
  void WriteRow(std::span<const double> recommended, CsvText* out) override {
    NextRow(out).Repr(Peak(0)).Repr(recommended[0]).Repr(Peak(1)).Repr(recommended[1]).End();
  }
};

}  // namespace

std::span<const SummaryKind> HostSummaries() {
  static constexpr auto kKinds = std::to_array<SummaryKind>({
      {"cpu_usage", TableId::kSysCpu, "Cpu Type,User(%),Sys(%),IoWait(%),Irq(%),Soft(%),Idle(%)",
       MakeSummary<CpuUsageSummary>},
      {"process_cpu_usage", TableId::kProcCpu, "PID,Name,CPU(%)", MakeSummary<ProcessCpuSummary>},
      {"sys_mem", TableId::kSysMem,
       "Memory Total(kB),Memory Free(kB),Buffers(kB),Cached(kB),Share Memory(kB),Commit Limit(kB),"
       "Committed AS(kB),Huge Pages Total(pages),Huge Pages Free(pages)",
       MakeSummary<SysMemSummary>},
      {"process_mem", TableId::kProcMem, "PID,Name,Size(pages),Resident(pages),Shared(pages)",
       MakeSummary<ProcessMemSummary>},
      {"host_cpu_usage", TableId::kHostCpu,
       "Total Cpu Numbers,Occupied Cpu Numbers,Recommend Cpu Numbers", MakeSummary<HostCpuSummary>},
      {"host_mem_usage", TableId::kHostMem,
       "Total Memory(KB),Peak Used Memory(KB),Recommend Memory(KB)", MakeSummary<HostMemSummary>},
      {"host_network_usage", TableId::kHostNetwork,
       "Netcard Speed(KB/s),Peak Used Speed(KB/s),Recommend Speed(KB/s)", MakeSummary<HostNetworkSummary>},
      {"host_disk_usage", TableId::kHostDisk,
       "Peak Disk Read(KB/s),Recommend Disk Read(KB/s),Peak Disk Write(KB/s),"
       "Recommend Disk Write(KB/s)",
       MakeSummary<HostDiskSummary>},
  });
  return kKinds;
}

}  // namespace profd::exporting::csv
