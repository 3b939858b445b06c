// What a scrape shows: the series of the metric store as families of prometheus-cpp. Reads nothing but the
// store, so it costs the same whatever the driver does.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <array>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

class MetricStore;

// Our own names: all series that are fresh at `now_ns` (MONOTONIC_RAW); windowed metrics cover
// [now - window, now].
class StoreFamilies final : public prometheus::Collectable {
 public:
  StoreFamilies(const MetricStore& store, int64_t now_ns, int64_t window_ns)
      : store_(store), now_ns_(now_ns), window_ns_(window_ns) {}

  std::vector<prometheus::MetricFamily> Collect() const override;
  // The same through the library's serializer, one family at a time.
  void Write(std::ostream& out) const;

 private:
  enum class LabelForm : uint8_t { kSeparate, kJoined };
  using Take = std::function<void(prometheus::MetricFamily&)>;  // may move separate labels away, not joined ones
  void Visit(LabelForm form, const Take& take) const;

  const MetricStore& store_;
  const int64_t now_ns_;
  const int64_t window_ns_;
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
