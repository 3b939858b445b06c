// What an OpenMetrics text holds, gathered in any order and written in the one it demands: families
// together, each series together, times ascending. The samples lie in a spool meanwhile; in
// memory are only the series and where their pieces are.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "export/rows/series.h"
#include "export/shared_file.h"
#include "export/spool.h"

namespace profd::exporting {

class MetricFamilies {
 public:
  // Series beyond are left out: their names are from the data.
  static constexpr size_t kMaxSeries = 100'000;

  struct Series {
    std::string labels;  // "{device=\"0\"}"
    struct Piece {
      uint64_t offset;
      uint64_t size;
    };
    std::vector<Piece> pieces;
  };

  // The spool is in `dir`.
  Status Begin(const std::string& dir);
  // Registers the series; null if it is registered already or there are too many. It stays this
  // caller's. `*prefix` becomes what its lines begin with: `name{labels} `. Any thread.
  Series* Add(std::string_view metric, const std::vector<Label>& labels, std::string* prefix);
  // Lines of a series, by who added it.
  Status Append(Series* series, std::string_view lines);
  // Everything into `out`, and the spool away. No thread uses it any more.
  Status Write(SharedFile* out);
  void AddLeftOut(uint64_t samples);

 private:
  struct Family {
    bool counter = false;
    std::deque<Series> series;
  };

  std::unique_ptr<Spool> spool_;
  Mutex mutex_;
  std::map<std::string, Family, std::less<>> families_ GUARDED_BY(mutex_);
  std::unordered_map<std::string, bool> known_ GUARDED_BY(mutex_);  // by prefix
  uint64_t left_out_ GUARDED_BY(mutex_) = 0;
};

// [a-zA-Z_:][a-zA-Z0-9_:]*; whatever else becomes '_'.
std::string MetricName(std::string_view text);
// "bytes_per_second" of "x_bytes_per_second"; empty: none that we know.
std::string_view UnitOf(std::string_view metric);

}  // namespace profd::exporting
