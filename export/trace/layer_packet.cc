#include "export/trace/layer_packet.h"

#include <fmt/format.h>

#include <algorithm>
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

size_t VarintSize(uint64_t value) { return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7; }

void AppendVarint(uint64_t value, std::string* out) {
  char bytes[10];
  size_t size = 0;
  for (; value >= 0x80; value >>= 7) bytes[size++] = static_cast<char>(value | 0x80);
  bytes[size++] = static_cast<char>(value);
  out->append(bytes, size);
}

void AppendTag(int field, WireType type, std::string* out) {
  AppendVarint(static_cast<uint32_t>(field) << 3 | type, out);
}

void AppendFixed64(uint64_t value, std::string* out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);  // little endian, as all targets are
  out->append(bytes, sizeof bytes);
}

void AppendText(int field, std::string_view text, std::string* out) {
  AppendTag(field, kBytes, out);
  AppendVarint(text.size(), out);
  out->append(text);
}

// Repaired where it must be; `repaired` keeps the text then.
std::string_view Valid(std::string_view text, size_t most, std::string* repaired) {
  text = text.substr(0, most);
  if (IsAscii(text)) return text;
  *repaired = RepairedText(text, most);
  return *repaired;
}

// The name comes behind the value: fields are by number.
void AppendArg(const LayerArg& arg, std::string* out) {
  constexpr size_t kTag = 1;
  const size_t name = kTag + VarintSize(arg.name.size()) + arg.name.size();
  AppendTag(TrackEvent::kDebugAnnotationsFieldNumber, kBytes, out);
  if (const auto* text = std::get_if<std::string_view>(&arg.value)) {
    std::string repaired;
    const std::string_view valid = Valid(*text, kMostArgText, &repaired);
    AppendVarint(kTag + VarintSize(valid.size()) + valid.size() + name, out);
    AppendText(Annotation::kStringValueFieldNumber, valid, out);
  } else if (const auto* real = std::get_if<double>(&arg.value)) {
    AppendVarint(kTag + sizeof(double) + name, out);
    AppendTag(Annotation::kDoubleValueFieldNumber, kFixed64, out);
    AppendFixed64(std::bit_cast<uint64_t>(*real), out);
  } else {
    const auto* number = std::get_if<uint64_t>(&arg.value);
    const uint64_t value = number != nullptr ? *number : static_cast<uint64_t>(std::get<int64_t>(arg.value));
    AppendVarint(kTag + VarintSize(value) + name, out);
    AppendTag(Annotation::kIntValueFieldNumber, kVarint, out);
    AppendVarint(value, out);
  }
  AppendText(Annotation::kNameFieldNumber, arg.name, out);
}

}  // namespace

std::string FlowText(const LayerFlow& flow) {
  if (flow.kind == LayerFlow::Kind::kLaunch) return fmt::to_string(flow.id);
  return fmt::format("{}/{}", static_cast<int>(flow.kind), flow.id);
}

void AppendTrackEvent(int type, uint64_t track, std::string* out) {
  AppendTag(TrackEvent::kTypeFieldNumber, kVarint, out);
  AppendVarint(static_cast<uint64_t>(type), out);
  AppendTag(TrackEvent::kTrackUuidFieldNumber, kVarint, out);
  AppendVarint(track, out);
}

void AppendTrackEvent(const LayerEvent& event, size_t dump, int type, uint64_t track, std::string* out) {
  for (const LayerArg& arg : event.args) AppendArg(arg, out);
  AppendTrackEvent(type, track, out);
  if (!event.category.empty()) AppendText(TrackEvent::kCategoriesFieldNumber, event.category, out);
  std::string repaired;
  AppendText(TrackEvent::kNameFieldNumber, Valid(event.name, kMaxText, &repaired), out);
  // Not ended where it arrives: a launch may have several tasks.
  for (const LayerFlow& flow : event.flows) {
    if (flow.id == kNoConnection) continue;
    AppendTag(TrackEvent::kFlowIdsFieldNumber, kFixed64, out);
    AppendFixed64(FlowId(dump, FlowText(flow)), out);
  }
}

}  // namespace profd::exporting
