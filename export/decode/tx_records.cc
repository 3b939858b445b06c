// Marks of applications in the records of the vendor's in-process profiler: `additional.msproftx` (operator-data a.2).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "export/decode/text_parts.h"
#include "export/repaired_text.h"

namespace profd::exporting {
namespace {

constexpr uint16_t kMagic = 0x5A5A;
constexpr uint16_t kTxEx = 1;
constexpr size_t kTxRecordBytes = 256;
constexpr size_t kTextAt = 100;
constexpr size_t kTextBytes = kTxRecordBytes - kTextAt;
// How many other marks may be recorded between the parts of a text.
constexpr size_t kMaxOpenTexts = 256;
constexpr size_t kMaxStarted = 65536;

template <class T>
T At(std::span<const std::byte> record, size_t at) {
  T value;
  std::memcpy(&value, record.data() + at, sizeof value);
  return value;
}

class TxDecoder final : public EventDecoder {
 public:
  explicit TxDecoder(const DecodeContext& context)
      : EventDecoder(context), name_of_(context.name_of), on_device_(context.on_device) {}

  void Feed(std::span<const std::byte> bytes, bool) override {
    for (; bytes.size() >= kTxRecordBytes; bytes = bytes.subspan(kTxRecordBytes)) {
      const auto record = bytes.first(kTxRecordBytes);
      if (At<uint16_t>(record, 0) != kMagic || At<uint32_t>(record, 48) > Event::Recorded::kMarkerEx ||
          At<uint64_t>(record, 72) < At<uint64_t>(record, 64)) {
        ++stats_.bad_records;
        stats_.bad_bytes += kTxRecordBytes;
        continue;
      }
      ++stats_.records;
      Take(record);
    }
  }

  void Finish() override {
    while (!open_.empty()) CloseText(open_.begin());
    SendStarted();
  }

 private:
  // A text may go on in other records of the same process and mark, with numbers of their own. How much of its part a
  // record holds does not say whether it does.
  struct OpenText {
    Event event;
    std::map<uint16_t, std::string> segments;
  };
  using OpenTexts = std::list<OpenText>;
  using Key = std::pair<int64_t, uint64_t>;  // process and mark
  static Key KeyOf(const Event& event) { return {event.pid, event.recorded->mark}; }

  void Take(std::span<const std::byte> record) {
    const bool is_ex = At<uint16_t>(record, 24) == kTxEx;
    Event event = EventOf(record, is_ex);
    const auto* text = reinterpret_cast<const char*>(record.data()) + kTextAt;
    std::string message(text, ::strnlen(text, kTextBytes));
    if (!is_ex) {
      event.name = RepairedText(message);
      return Order(std::move(event));
    }
    const auto segment = At<uint16_t>(record, 26);
    const Key key = KeyOf(event);
    if (const auto same = by_mark_.find(key); same != by_mark_.end() && same->second->segments.contains(segment)) {
      CloseText(same->second);  // another one with the same number
    }
    const auto [open, is_new] = by_mark_.try_emplace(key);
    if (is_new) open->second = open_.insert(open_.end(), {std::move(event), {}});
    auto& segments = open->second->segments;
    if (segments.size() * kTextBytes <= kMaxText) segments[segment] = std::move(message);
    if (open_.size() > kMaxOpenTexts) CloseText(open_.begin());
  }

  Event EventOf(std::span<const std::byte> record, bool is_ex) const {
    Event event;
    Event::Recorded recorded;
    recorded.is_ex = is_ex;
    recorded.category = At<uint32_t>(record, 44);
    recorded.type = static_cast<Event::Recorded::Type>(At<uint32_t>(record, 48));
    recorded.payload_type = At<uint32_t>(record, 52);
    recorded.payload = At<uint64_t>(record, 56);
    recorded.mark = At<uint64_t>(record, 80);
    recorded.message_type = At<uint32_t>(record, 96);
    if (const auto domain = At<uint64_t>(record, 88); is_ex && domain != 0 && name_of_) {
      event.domain = RepairedText(name_of_(domain));
    }
    if (is_ex && on_device_) recorded.on_device = on_device_(recorded.mark);
    event.pid = At<uint32_t>(record, 36);
    event.tid = At<uint32_t>(record, 40);
    event.t_ns = clock_.HostRecord(At<uint64_t>(record, 64));
    event.dur_ns = SpanNs(event.t_ns, clock_.HostRecord(At<uint64_t>(record, 72)));
    const bool is_mark = recorded.type == Event::Recorded::kMarker || recorded.type == Event::Recorded::kMarkerEx;
    event.kind = is_mark ? EventKind::kMark : EventKind::kRange;
    if (is_mark) event.dur_ns = 0;
    event.value = static_cast<int64_t>(recorded.mark);
    event.recorded = recorded;
    return event;
  }

  void CloseText(OpenTexts::iterator open) {
    std::string message;
    for (const auto& [index, part] : open->segments) message += part;
    open->event.name = RepairedText(message);
    by_mark_.erase(KeyOf(open->event));
    Order(std::move(open->event));
    open_.erase(open);
  }

  // Ranges that need not nest wait for their lanes, which are given by start.
  void Order(Event event) {
    if (event.recorded->type != Event::Recorded::kStartEnd) return Send(event);
    started_.push_back(std::move(event));
    if (started_.size() >= kMaxStarted) SendStarted();
  }
  void SendStarted() {
    std::ranges::stable_sort(started_, {}, &Event::t_ns);
    for (Event& event : started_) {
      std::vector<int64_t>& ends = lanes_[{event.pid, event.domain}];
      const auto free = std::ranges::find_if(ends, [&event](int64_t end) { return end <= event.t_ns; });
      event.lane = static_cast<int>(free - ends.begin());
      if (free == ends.end()) ends.push_back(0);
      ends[static_cast<size_t>(*event.lane)] = event.t_ns + event.dur_ns;
      Send(event);
    }
    started_.clear();
  }

  std::function<std::string(uint64_t)> name_of_;
  std::function<std::optional<Event::Recorded::OnDevice>(uint64_t)> on_device_;
  OpenTexts open_;  // as their first records came
  std::map<Key, OpenTexts::iterator> by_mark_;
  std::vector<Event> started_;
  std::map<std::pair<int64_t, std::string>, std::vector<int64_t>> lanes_;  // ends, by process and domain
};

// Of the process, whatever devices are asked for.
constexpr DecoderSpec Tx(std::string_view base) {
  return {.base = base, .kind = Place::Kind::kHost, .chips = kAnyChip, .record_size = kTxRecordBytes, .record_size_v6 = 0,
          .tables = {}, .make = MakeDecoder<TxDecoder>, .rows_have_devices = true, .wants_names = true};
}

}  // namespace

std::span<const DecoderSpec> TxDecoders() {
  static constexpr std::array kSpecs = {Tx("aging.additional.msproftx"), Tx("unaging.additional.msproftx")};
  return kSpecs;
}

}  // namespace profd::exporting
