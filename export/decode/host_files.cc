#include <array>
#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "export/decode/host_parts.h"
#include "export/decode/text_math.h"
#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// Lines `<ns> <7 numbers of /proc/<pid>/statm>`; pages are 4 KiB (dump-format 2.15). A row has the
// timestamp of one line and the usage of the next.
class HostMemDecoder : public Decoder {
 public:
  explicit HostMemDecoder(const DecodeContext& context)
      : clock_(context.clock),
        total_kb_(context.dump->memory_total_kb),
        rows_(TableOf(TableId::kHostMem), -1, context.window, *context.rows) {}

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachLine(bytes, [this](std::string_view line) {
      if (!line.empty() && !Line(line)) CountBad(line, &stats_);
    });
  }
  void Finish() override { rows_.Flush(); }

 private:
  bool Line(std::string_view line) {
    TextScan scan(line);
    int64_t ns = 0;
    uint64_t resident = 0;
    if (!scan.Int(&ns) || !scan.SkipWords(1) || !scan.Uint(&resident)) return false;
    ++stats_.records;
    if (last_ns_ && total_kb_ > 0) {
      rows_.Add(clock_.HostNs(*last_ns_),
                RoundedQuotient(static_cast<WideInt>(resident) * 400, total_kb_, 6));
    }
    last_ns_ = ns;
    return true;
  }

  ClockMap clock_;
  int64_t total_kb_;
  BatchBuilder rows_;
  std::optional<int64_t> last_ns_;
};

// Lines of iotop, and when the first of them was taken in a line of its own, usually the last one
// (dump-format 2.15). So rows wait for the end of the file: 24 bytes each, and no more than
// kMaxRows.
class HostDiskDecoder : public Decoder {
 public:
  explicit HostDiskDecoder(const DecodeContext& context)
      : clock_(context.clock),
        interval_ns_(context.place->host_disk_hz > 0 ? 1 / context.place->host_disk_hz * 1e9 : 0),
        start_ns_(context.place->clock.begin_raw_ns),
        rows_(TableOf(TableId::kHostDisk), -1, context.window, *context.rows) {}

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachLine(bytes, [this](std::string_view line) { Line(line); });
  }
  void Finish() override {
    auto at = static_cast<double>(start_ns_);
    for (const Row& row : waiting_) {
      if (!(at < 9e18)) break;
      rows_.Add(clock_.HostNs(static_cast<int64_t>(at)), row.read, row.write, row.usage);
      at += interval_ns_;
    }
    waiting_ = {};
    rows_.Flush();
  }

 private:
  static constexpr size_t kMaxRows = 2'000'000;  // 11 hours at 50 Hz
  static constexpr size_t kMaxWords = 11;
  struct Row {
    double read, write, usage;
  };

  void Line(std::string_view line) {
    TextScan scan(line);
    std::array<std::string_view, kMaxWords> words;
    size_t count = 0;
    while (count < words.size() && !scan.AtEnd()) words[count++] = scan.Word();
    // Others are headings and sums.
    uint64_t number = 0;
    if (count < 2 || !TextScan(words[1]).Uint(&number)) return;
    if (words[0] == "start_time") {
      if (number < uint64_t{1} << 62) start_ns_ = static_cast<int64_t>(number);
      return;
    }
    if (count < 8 || interval_ns_ <= 0 || waiting_.size() >= kMaxRows) {
      CountBad(line, &stats_);
      return;
    }
    bool has_usage = count == kMaxWords && line.find("unavailable") == std::string_view::npos;
    Row row{Kilobytes(words[4], words[5]), Kilobytes(words[6], words[7]), 0};
    if (has_usage && !TextScan(words[10]).Real(&row.usage)) {
      CountBad(line, &stats_);
      return;
    }
    ++stats_.records;
    waiting_.push_back(row);
  }

  // A value that is not a number is 0, an unknown unit is K/s.
  static double Kilobytes(std::string_view text, std::string_view unit) {
    double value = 0;
    if (!TextScan(text).Real(&value)) return 0;
    if (unit == "B/s") return value * (1.0 / 1024.0);
    if (unit == "M/s") return value * 1024.0;
    if (unit == "G/s") return value * (1024.0 * 1024.0);
    return value;
  }

  ClockMap clock_;
  double interval_ns_;
  int64_t start_ns_;
  BatchBuilder rows_;
  std::deque<Row> waiting_;
};

// Samples of `time <ns>` and the lines of /proc/net/dev (dump-format 2.15). Between two samples:
// bytes both ways of the cards info.json names, summed up as a rate, and as a share of the speed of
// one card.
class HostNetworkDecoder : public Decoder {
 public:
  explicit HostNetworkDecoder(const DecodeContext& context)
      : clock_(context.clock),
        rows_(TableOf(TableId::kHostNetwork), -1, context.window, *context.rows) {
    for (const DumpInfo::Card& card : context.dump->cards) {
      if (card.speed_mbps == -1 || cards_.size() >= kMaxCards) continue;
      cards_.push_back({card.name, static_cast<double>(card.speed_mbps) * 125000.0});
    }
    now_.counters.resize(cards_.size());
    before_.counters.resize(cards_.size());
  }

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachLine(bytes, [this](std::string_view line) {
      if (!line.empty() && !Line(line)) CountBad(line, &stats_);
    });
  }
  void Finish() override {
    if (now_.has_time && before_.has_time && now_.last_card) Compare();
    rows_.Flush();
  }

 private:
  static constexpr size_t kMaxCards = 1024;
  struct Card {
    std::string name;
    double bytes_per_second = 0;
  };
  struct Counters {
    bool seen = false;
    uint64_t rx = 0;
    uint64_t tx = 0;
  };
  struct Sample {
    bool has_time = false;
    double seconds = 0;  // the analyser computes with seconds
    std::optional<size_t> last_card;
    std::vector<Counters> counters;
  };

  bool Line(std::string_view line) {
    TextScan scan(line);
    if (line.starts_with("time")) {
      uint64_t ns = 0;
      scan.Word();
      if (!scan.Uint(&ns) || ns >= uint64_t{1} << 62) return false;
      ++stats_.records;
      if (now_.has_time) {
        if (before_.has_time) Compare();
        std::swap(now_, before_);
      }
      now_.has_time = true;
      now_.seconds = static_cast<double>(ns) / 1e9;
      now_.last_card.reset();
      for (Counters& counters : now_.counters) counters.seen = false;
      return true;
    }
    return CardLine(line);
  }

  bool CardLine(std::string_view line) {
    size_t colon = line.find(':');
    if (colon == std::string_view::npos) return line.find('|') != std::string_view::npos;
    std::string_view name = TextScan(line.substr(0, colon)).Word();
    for (size_t i = 0; i < cards_.size(); ++i) {
      if (cards_[i].name != name) continue;
      TextScan scan(line.substr(colon + 1));
      Counters counters{true, 0, 0};
      if (!scan.Uint(&counters.rx) || !scan.SkipWords(7) || !scan.Uint(&counters.tx)) return false;
      if (!now_.counters[i].seen) now_.last_card = i;
      now_.counters[i] = counters;
    }
    return true;
  }

  void Compare() {
    double bytes = 0;
    double cards = 0;
    for (size_t i = 0; i < cards_.size(); ++i) {
      const Counters& now = now_.counters[i];
      const Counters& before = before_.counters[i];
      if (!now.seen || !before.seen || now.rx < before.rx || now.tx < before.tx) continue;
      bytes += static_cast<double>(now.rx - before.rx) + static_cast<double>(now.tx - before.tx);
      cards += 1;
    }
    double seconds = now_.seconds - before_.seconds;
    if (cards == 0 || !(seconds > 0) || !now_.last_card) return;
    double speed = cards_[*now_.last_card].bytes_per_second;
    if (!(speed > 0)) return;
    double per_card = ExactQuotient(bytes, seconds, cards);
    double usage = per_card * 100 / speed;
    if (usage < 1e9) usage = std::nearbyint(usage * 1e6) / 1e6;
    rows_.Add(clock_.HostNs(static_cast<int64_t>(before_.seconds * 1e9)), usage,
              per_card * cards / 1024.0);
  }

  ClockMap clock_;
  BatchBuilder rows_;
  std::vector<Card> cards_;
  Sample now_;
  Sample before_;
};

}  // namespace

std::unique_ptr<Decoder> MakeHostMemDecoder(const DecodeContext& context) {
  return std::make_unique<HostMemDecoder>(context);
}

std::unique_ptr<Decoder> MakeHostDiskDecoder(const DecodeContext& context) {
  return std::make_unique<HostDiskDecoder>(context);
}

std::unique_ptr<Decoder> MakeHostNetworkDecoder(const DecodeContext& context) {
  return std::make_unique<HostNetworkDecoder>(context);
}

}  // namespace profd::exporting
