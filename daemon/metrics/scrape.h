// One scrape: what is in the metric store as Prometheus's text. Reads nothing but the store, so it
// costs the same whatever the driver does.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace profd {

class MetricStore;
struct SeriesValue;
struct WindowStats;

// Our own names. Keeps its buffers, so that a scrape of the same series as before allocates nothing.
// One thread.
class AtlasWriter {
 public:
  // Appends all series that are fresh at `now_ns` (MONOTONIC_RAW); windowed metrics cover
  // [now - window, now].
  void Append(const MetricStore& store, int64_t now_ns, int64_t window_ns, std::string* out);
  // How many series had to be spelled so far: those that were new.
  uint64_t spelled() const { return spelled_; }

 private:
  // A histogram whose buckets are being written; its sum and count follow them.
  struct Histogram {
    bool open = false;
    std::string labels;  // its own: `{a="x"`, or empty
    double sum = 0;
    double count = 0;
  };

  std::string_view SpellingOf(const SeriesValue& series);
  void AddHistogramPart(const SeriesValue& series, std::string_view spelling, std::string* out);
  void EndHistogram(std::string* out);
  void AddWindow(const SeriesValue& series, std::string_view labels, const WindowStats& stats);

  std::string spelling_;
  std::string windows_;  // windowed metrics come last
  Histogram histogram_;
  int current_ = -1;  // metric whose head has been written
  bool has_window_head_ = false;
  uint64_t spelled_ = 0;
};

// How long ago each scraper was last answered, so that windows reach back exactly to its previous
// scrape. A scraper is an address and a User-Agent; the least recent is forgotten. One thread.
class ScraperTable {
 public:
  static constexpr int64_t kDefaultWindowNs = 15'000'000'000;  // of a scraper not seen before
  static constexpr int64_t kMinWindowNs = 1'000'000'000;
  static constexpr int64_t kMaxWindowNs = 60'000'000'000;
  // Notes the scrape; the time since its previous one, within the limits.
  int64_t Window(std::string_view peer, std::string_view agent, int64_t now_ns);

 private:
  struct Scraper {
    std::string peer;
    std::string agent;
    int64_t last_ns = 0;
  };
  std::array<Scraper, 32> scrapers_;
};

}  // namespace profd
