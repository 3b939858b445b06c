// What the decoders of texts and of events share.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "export/decode/decoder_groups.h"
#include "export/decoder.h"
#include "export/text_scan.h"

namespace profd::exporting {

// So many lines in a row with a timestamp that does not go on from the ones before, and those were
// wrong: the series begins anew. One timestamp of garbage neither makes a rate nor silences the rest.
inline constexpr int kMaxEarlier = 8;

// A line without sense, for the counters; `line` is without its end.
inline void CountBad(std::string_view line, DecodeStats* stats) {
  ++stats->bad_records;
  stats->bad_bytes += line.size() + 1;
}

// Counts the lines of a file of profd's own, behind its heading; take(line) is false where a line has no sense.
template <class Take>
void ForEachOwnLine(std::span<const std::byte> bytes, DecodeStats* stats, Take&& take) {
  ForEachLine(bytes, [&](std::string_view line) {
    if (line.empty() || line.starts_with("time_ns\t")) return;
    if (take(line)) {
      ++stats->records;
    } else {
      CountBad(line, stats);
    }
  });
}

// What lines of profd's marks and stacks begin with: time_ns, pid, rank, thread, kind.
struct OwnLine {
  int64_t ns = 0;
  std::pair<int64_t, int64_t> thread;  // pid, thread
  std::optional<int> rank;
  std::string_view kind;

  // False: they make no sense. `scan` stands behind them.
  bool Scan(TextScan* scan) {
    TextScan time(scan->Field('\t'));
    TextScan pid(scan->Field('\t'));
    const std::string_view rank_text = scan->Field('\t');
    TextScan tid(scan->Field('\t'));
    kind = scan->Field('\t');
    int64_t number = -1;
    if (!rank_text.empty() && !TextScan(rank_text).Int(&number)) return false;
    if (number >= 0 && number <= INT32_MAX) rank = static_cast<int>(number);
    return time.Int(&ns) && pid.Int(&thread.first) && tid.Int(&thread.second);
  }
};

// A heading that contains `token`. What begins with a digit is a sample without its end and a heading behind it.
inline bool IsHeadingWith(std::string_view token, std::string_view line) {
  return !line.empty() && !IsDigit(line[0]) && line.find(token) != std::string_view::npos;
}

// From one timestamp to a later one; 0 when it is not later. Timestamps are untrusted, nothing overflows.
inline int64_t SpanNs(int64_t from_ns, int64_t to_ns) {
  if (to_ns <= from_ns) return 0;
  auto span = static_cast<int64_t>(static_cast<uint64_t>(to_ns) - static_cast<uint64_t>(from_ns));
  return span > 0 ? span : 0;
}
// Whether an event reaches into the window.
inline bool Touches(const TimeWindow& window, const Event& event) {
  return event.t_ns <= window.to_ns &&
         (event.t_ns >= window.from_ns || SpanNs(event.t_ns, window.from_ns) <= event.dur_ns);
}

// Of text whose lines stand alone; its rows are all of one table.
class LineDecoder : public TableDecoder {
 public:
  using TableDecoder::TableDecoder;

  void Feed(std::span<const std::byte> bytes, bool /*slice_start*/) final {
    ForEachLine(bytes, [this](std::string_view line) {
      if (!line.empty() && !Line(line)) CountBad(line, &stats_);
    });
  }

 protected:
  // `line` is not empty. False: it makes no sense.
  virtual bool Line(std::string_view line) = 0;
};

class EventDecoder : public Decoder {
 public:
  explicit EventDecoder(const DecodeContext& context)
      : clock_(context.clock), window_(context.window), event_(context.event) {}

 protected:
  void Send(const Event& event) {
    if (event_ && Touches(window_, event)) event_(event);
  }

  ClockMap clock_;
  TimeWindow window_;
  std::function<void(const Event&)> event_;
};

// Of text whose rows are all of one table; T is made of the context and the table.
template <class T, TableId table>
constexpr DecoderSpec TextSpec(std::string_view base, uint32_t chips, Place::Kind kind = Place::Kind::kDevice) {
  return {base, kind, chips, 0, 0, kTables<table>, MakeDecoder<T, table>};
}

}  // namespace profd::exporting
