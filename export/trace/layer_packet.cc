#include "export/trace/layer_packet.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <string_view>

#include "export/repaired_text.h"
#include "export/trace/packet_writer.h"
#include "perfetto/trace.pb.h"

namespace profd::exporting {
namespace {

using TrackEvent = ::perfetto::protos::TrackEvent;
using Annotation = ::perfetto::protos::DebugAnnotation;

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };

constexpr size_t kMostVarint = 10;
constexpr size_t kMostTag = 2;
constexpr size_t kMostField = kMostTag + kMostVarint;  // but for its text

size_t VarintSize(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

char* PutVarint(uint64_t value, char* out) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<char>(value | 0x80);
  *out++ = static_cast<char>(value);
  return out;
}

char* PutTag(int field, WireType type, char* out) { return PutVarint(static_cast<uint32_t>(field) << 3 | type, out); }

char* PutFixed64(uint64_t value, char* out) {
  std::memcpy(out, &value, sizeof value);  // little endian, as all targets are
  return out + sizeof value;
}

char* PutText(int field, std::string_view text, char* out) {
  out = PutVarint(text.size(), PutTag(field, kBytes, out));
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

// Repaired where it must be; `repaired` keeps the text then.
std::string_view Valid(std::string_view text, size_t most, std::string* repaired) {
  if (IsAscii(text.substr(0, most))) return text.substr(0, most);
  *repaired = RepairedText(text, most);
  return *repaired;
}

// Writes bytes behind the end of a text without checks, at most as many as were reserved.
class RawAppender {
 public:
  RawAppender(size_t most, std::string* out) : out_(*out), begin_(out->size()) { out->resize(begin_ + most); }
  char* Begin() { return out_.data() + begin_; }
  void Take(const char* end) { out_.resize(static_cast<size_t>(end - out_.data())); }

 private:
  std::string& out_;
  size_t begin_;
};

// The name is behind the value: fields are by number.
void AppendArg(const LayerArg& arg, std::string* out) {
  constexpr size_t kTag = 1;
  std::string repaired;
  std::string_view valid;
  const auto* text = std::get_if<std::string_view>(&arg.value);
  if (text != nullptr) valid = Valid(*text, kMostArgText, &repaired);
  RawAppender appender(3 * kMostField + valid.size() + arg.name.size(), out);
  const size_t name = kTag + VarintSize(arg.name.size()) + arg.name.size();
  char* end = PutTag(TrackEvent::kDebugAnnotationsFieldNumber, kBytes, appender.Begin());
  if (text != nullptr) {
    end = PutVarint(kTag + VarintSize(valid.size()) + valid.size() + name, end);
    end = PutText(Annotation::kStringValueFieldNumber, valid, end);
  } else if (const auto* real = std::get_if<double>(&arg.value)) {
    end = PutVarint(kTag + sizeof(double) + name, end);
    end = PutFixed64(std::bit_cast<uint64_t>(*real), PutTag(Annotation::kDoubleValueFieldNumber, kFixed64, end));
  } else {
    const auto* number = std::get_if<uint64_t>(&arg.value);
    const uint64_t value = number != nullptr ? *number : static_cast<uint64_t>(std::get<int64_t>(arg.value));
    end = PutVarint(kTag + VarintSize(value) + name, end);
    end = PutVarint(value, PutTag(Annotation::kIntValueFieldNumber, kVarint, end));
  }
  appender.Take(PutText(Annotation::kNameFieldNumber, arg.name, end));
}

}  // namespace

std::string FlowText(const LayerFlow& flow) {
  if (flow.kind == LayerFlow::Kind::kLaunch) return fmt::to_string(flow.id);
  return fmt::format("{}/{}", static_cast<int>(flow.kind), flow.id);
}

void AppendTrackEvent(int type, uint64_t track, std::string* out) {
  RawAppender appender(2 * kMostField, out);
  char* end = PutVarint(static_cast<uint64_t>(type), PutTag(TrackEvent::kTypeFieldNumber, kVarint, appender.Begin()));
  appender.Take(PutVarint(track, PutTag(TrackEvent::kTrackUuidFieldNumber, kVarint, end)));
}

void AppendTrackEvent(const LayerEvent& event, size_t dump, int type, uint64_t track, std::string* out) {
  for (const LayerArg& arg : event.args) AppendArg(arg, out);
  AppendTrackEvent(type, track, out);
  std::string repaired;
  const std::string_view name = Valid(event.name, kMaxText, &repaired);
  RawAppender appender((2 + event.flows.size()) * kMostField + event.category.size() + name.size(), out);
  char* end = appender.Begin();
  if (!event.category.empty()) end = PutText(TrackEvent::kCategoriesFieldNumber, event.category, end);
  end = PutText(TrackEvent::kNameFieldNumber, name, end);
  // Not ended where it arrives: a launch may have several tasks.
  for (const LayerFlow& flow : event.flows) {
    if (flow.id == kNoConnection) continue;
    end = PutFixed64(FlowId(dump, FlowText(flow)), PutTag(TrackEvent::kFlowIdsFieldNumber, kFixed64, end));
  }
  appender.Take(end);
}

}  // namespace profd::exporting
