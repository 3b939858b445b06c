// One scrape: what is in the metric store as Prometheus families, and these as text. Reads nothing
// but the store, so it costs the same whatever the driver does.
#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

class MetricStore;

// Our own names. Windowed metrics cover [now - window, now].
std::vector<prometheus::MetricFamily> AtlasFamilies(const MetricStore& store, int64_t now_ns,
                                                    int64_t window_ns);

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
    std::string name;
    int64_t last_ns = 0;
  };
  std::array<Scraper, 32> scrapers_;
};

// Prometheus text format 0.0.4.
std::string FamiliesAsText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace profd
