#include <array>
#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "export/decode/text_math.h"
#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// Lines `<ns> <7 numbers of /proc/<pid>/statm>`; pages are 4 KiB (dump-format 2.15). A row has the
// timestamp of one line and the usage of the next.
class HostMemDecoder final : public LineDecoder {
 public:
  HostMemDecoder(const DecodeContext& context, TableId table)
      : LineDecoder(context, table), total_kb_(context.dump->memory_total_kb) {}

 private:
  bool Line(std::string_view line) override {
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

  int64_t total_kb_;
  std::optional<int64_t> last_ns_;
};

// Lines of iotop, and when the first of them was taken in a line of its own, usually the last one
// (dump-format 2.15). So rows wait for the end of the file: 24 bytes each, and no more than
// kMaxRows.
class HostDiskDecoder final : public LineDecoder {
 public:
  HostDiskDecoder(const DecodeContext& context, TableId table)
      : LineDecoder(context, table),
        interval_ns_(context.place->host_disk_hz > 0 ? 1 / context.place->host_disk_hz * 1e9 : 0),
        start_ns_(context.place->clock.begin_raw_ns) {}

  void Finish() override {
    auto at = static_cast<double>(start_ns_);
    for (const Row& row : waiting_) {
      if (!(at < 9e18)) break;
      rows_.Add(clock_.HostNs(static_cast<int64_t>(at)), row.read, row.write, row.usage);
      at += interval_ns_;
    }
    waiting_ = {};
    TableDecoder::Finish();
  }

 private:
  static constexpr size_t kMaxRows = 2'000'000;  // 11 hours at 50 Hz
  static constexpr size_t kMaxWords = 11;
  struct Row {
    double read, write, usage;
  };

  bool Line(std::string_view line) override {
    TextScan scan(line);
    std::array<std::string_view, kMaxWords> words;
    size_t count = 0;
    while (count < words.size() && !scan.AtEnd()) words[count++] = scan.Word();
    // Others are headings and sums.
    uint64_t number = 0;
    if (count < 2 || !TextScan(words[1]).Uint(&number)) return true;
    if (words[0] == "start_time") {
      if (number < uint64_t{1} << 62) start_ns_ = static_cast<int64_t>(number);
      return true;
    }
    if (count < 8 || interval_ns_ <= 0 || waiting_.size() >= kMaxRows) return false;
    bool has_usage = count == kMaxWords && line.find("unavailable") == std::string_view::npos;
    Row row{Kilobytes(words[4], words[5]), Kilobytes(words[6], words[7]), 0};
    if (has_usage && !TextScan(words[10]).Real(&row.usage)) return false;
    ++stats_.records;
    waiting_.push_back(row);
    return true;
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

  double interval_ns_;
  int64_t start_ns_;
  std::deque<Row> waiting_;
};

// Samples of `time <ns>` and the lines of /proc/net/dev (dump-format 2.15). Between two samples:
// bytes both ways of the cards info.json names, summed up as a rate, and as a share of the speed of
// one card.
class HostNetworkDecoder final : public LineDecoder {
 public:
  HostNetworkDecoder(const DecodeContext& context, TableId table) : LineDecoder(context, table) {
    for (const DumpInfo::Card& card : context.dump->cards) {
      if (card.speed_mbps == -1 || cards_.size() >= kMaxCards) continue;
      cards_.push_back({card.name, static_cast<double>(card.speed_mbps) * 125000.0});
    }
    now_.counters.resize(cards_.size());
    before_.counters.resize(cards_.size());
  }

  void Finish() override {
    if (now_.has_time && before_.has_time && now_.last_card) Compare();
    TableDecoder::Finish();
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

  bool Line(std::string_view line) override {
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

  std::vector<Card> cards_;
  Sample now_;
  Sample before_;
};

}  // namespace

// Usage of the host by the watched process. All rows but the disk's have the timestamp of the sample before: they are about
// the time from there on.
std::span<const DecoderSpec> HostFileDecoders() {
  static constexpr std::array kSpecs = {
      TextSpec<HostMemDecoder, TableId::kHostMem>("host_mem.data", kAnyChip, Place::Kind::kHost),
      TextSpec<HostDiskDecoder, TableId::kHostDisk>("host_disk.data", kAnyChip, Place::Kind::kHost),
      TextSpec<HostNetworkDecoder, TableId::kHostNetwork>("host_network.data", kAnyChip, Place::Kind::kHost),
  };
  return kSpecs;
}

}  // namespace profd::exporting
