// Protocol buffers' wire format, writing only, and the numbers of Perfetto's public trace format
// that are used here (protos/perfetto/trace of the Perfetto project; docs/export.md).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace profd::exporting {

namespace field {
inline constexpr uint32_t kTracePacket = 1;  // of Trace
// TracePacket
inline constexpr uint32_t kClockSnapshot = 6;
inline constexpr uint32_t kTimestamp = 8;
inline constexpr uint32_t kSequenceId = 10;
inline constexpr uint32_t kTrackEvent = 11;
inline constexpr uint32_t kSequenceFlags = 13;
inline constexpr uint32_t kTimestampClock = 58;  // also of TracePacketDefaults
inline constexpr uint32_t kPacketDefaults = 59;
inline constexpr uint32_t kTrackDescriptor = 60;
// ClockSnapshot and its Clock
inline constexpr uint32_t kClocks = 1;
inline constexpr uint32_t kClockId = 1;
inline constexpr uint32_t kClockTimestamp = 2;
inline constexpr uint32_t kClockIncremental = 3;
// TrackDescriptor
inline constexpr uint32_t kTrackUuid = 1;
inline constexpr uint32_t kTrackName = 2;
inline constexpr uint32_t kTrackProcess = 3;
inline constexpr uint32_t kTrackThread = 4;
inline constexpr uint32_t kTrackParent = 5;
inline constexpr uint32_t kTrackCounter = 8;
inline constexpr uint32_t kTrackChildOrder = 11;
inline constexpr uint32_t kTrackOrder = 12;  // among its siblings, where the parent is kOrderExplicit
// ProcessDescriptor
inline constexpr uint32_t kProcessPid = 1;
inline constexpr uint32_t kProcessSortIndex = 3;
inline constexpr uint32_t kProcessName = 6;
// CounterDescriptor
inline constexpr uint32_t kCounterUnitName = 6;
// TrackEvent
inline constexpr uint32_t kEventAnnotation = 4;
inline constexpr uint32_t kEventType = 9;
inline constexpr uint32_t kEventTrack = 11;
inline constexpr uint32_t kEventCategory = 22;
inline constexpr uint32_t kEventName = 23;
inline constexpr uint32_t kEventDouble = 44;
// DebugAnnotation
inline constexpr uint32_t kAnnotationInt = 4;
inline constexpr uint32_t kAnnotationDouble = 5;
inline constexpr uint32_t kAnnotationText = 6;
inline constexpr uint32_t kAnnotationName = 10;
}  // namespace field

inline constexpr uint64_t kSequenceCleared = 1;
inline constexpr uint64_t kSequenceNeedsState = 2;
inline constexpr uint64_t kOrderExplicit = 3;
inline constexpr uint64_t kTypeSliceBegin = 1;
inline constexpr uint64_t kTypeSliceEnd = 2;
inline constexpr uint64_t kTypeInstant = 3;
inline constexpr uint64_t kTypeCounter = 4;
inline constexpr uint64_t kClockRealtime = 1;
inline constexpr uint64_t kClockBoottime = 6;
inline constexpr uint64_t kClockSequence = 64;  // ours, deltas; one per sequence

// `out` has room for 10 bytes; returns the end.
inline char* PutVarint(char* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<char>(value);
  return out;
}

class ProtoText {
 public:
  ProtoText& Varint(uint32_t number, uint64_t value) {
    Raw(uint64_t{number} << 3);
    Raw(value);
    return *this;
  }
  ProtoText& Double(uint32_t number, double value) {
    Raw(uint64_t{number} << 3 | 1);
    static_assert(std::endian::native == std::endian::little);
    char bytes[8];
    std::memcpy(bytes, &value, 8);
    text_.append(bytes, 8);
    return *this;
  }
  ProtoText& Bytes(uint32_t number, std::string_view bytes) {
    Raw(uint64_t{number} << 3 | 2);
    Raw(bytes.size());
    text_.append(bytes);
    return *this;
  }
  ProtoText& Message(uint32_t number, const ProtoText& message) {
    return Bytes(number, message.text_);
  }
  const std::string& text() const { return text_; }

 private:
  void Raw(uint64_t value) {
    char bytes[10];
    text_.append(bytes, PutVarint(bytes, value));
  }
  std::string text_;
};

}  // namespace profd::exporting
