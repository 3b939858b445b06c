// What is in a dump at a glance: of every series how many samples, min, mean, max and its course
// over time in a fixed number of buckets. Memory does not depend on how much there is.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "export/activity_stats.h"
#include "export/durations.h"
#include "export/format.h"
#include "export/rows/series.h"
#include "export/show/step_view.h"

namespace profd::exporting {

// Means over time. Buckets are powers of two of ns wide, aligned to the epoch; they widen as
// needed.
class Course {
 public:
  static constexpr size_t kBuckets = 256;

  void Add(int64_t t_ns, double value);
  // `columns` means over [from_ns, to_ns]; NaN where there is nothing.
  std::vector<double> Resample(int64_t from_ns, int64_t to_ns, size_t columns) const;

 private:
  struct Bucket {
    double sum = 0;
    uint64_t count = 0;
  };
  void Widen();
  int64_t Last() const;  // index of the last bucket in use

  std::vector<Bucket> buckets_;  // kBuckets, from the first sample on
  unsigned shift_ = 20;          // a bucket is 2^shift_ ns
  int64_t base_ = 0;             // t_ns >> shift_ of buckets_[0]
};

struct SeriesSummary {
  TableId table = TableId::kSample;
  int device = -1;
  std::string metric;
  std::vector<Label> labels;
  bool rate = false;  // of a counter, per second
  uint64_t count = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  Course course;
};

struct DumpSummary {
  static constexpr size_t kMaxSeries = 4096;

  std::vector<SeriesSummary> series;  // by table, device, in the order of appearance
  uint64_t left_out_series = 0;
  std::array<uint64_t, kEventKinds> events = {};  // by EventKind
  DurationStats durations;
  // Kernels and communication by rank (-1 = not known) and name.
  using OperatorTotals = ActivityTotals<std::pair<int, std::string>>;
  OperatorTotals kernels;
  OperatorTotals communication;
  StepView steps;                       // of dumps with operator-level records
  int64_t first_ns = INT64_MAX;         // of all samples; above last_ns if there is none
  int64_t last_ns = INT64_MIN;
};

// Fills `out`, which outlives it; complete after the export.
std::unique_ptr<Format> MakeSummaryFormat(DumpSummary* out);

}  // namespace profd::exporting
