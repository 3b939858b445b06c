#include "export/trace/packet_writer.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <utility>

namespace profd::exporting {
namespace {

constexpr size_t kBufferSize = 256 * 1024;
constexpr uint32_t kSequenceClock = 64;  // ours, deltas; one per sequence

namespace pb = ::perfetto::protos;
using ::google::protobuf::io::CodedOutputStream;

}  // namespace

// FNV-1a.
uint64_t FlowId(size_t dump, std::string_view flow) {
  uint64_t hash = (14695981039346656037U ^ dump) * 1099511628211U;
  for (const char c : flow) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash;
}

PacketWriter::PacketWriter(uint32_t sequence, uint64_t begin_ns, std::function<Status(std::string_view)> append)
    : sequence_(sequence),
      append_(std::move(append)),
      last_ns_(begin_ns),
      buffer_(std::make_unique<uint8_t[]>(kBufferSize)) {
  PutFirst();
}

void PacketWriter::PutFirst() {
  pb::TracePacket packet;
  packet.set_timestamp(last_ns_);
  packet.set_timestamp_clock_id(pb::BUILTIN_CLOCK_BOOTTIME);
  packet.set_trusted_packet_sequence_id(sequence_);
  packet.set_sequence_flags(pb::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
  packet.mutable_trace_packet_defaults()->set_timestamp_clock_id(kSequenceClock);
  for (uint32_t id :
       {uint32_t{pb::BUILTIN_CLOCK_BOOTTIME}, uint32_t{pb::BUILTIN_CLOCK_REALTIME}, kSequenceClock}) {
    pb::ClockSnapshot::Clock* clock = packet.mutable_clock_snapshot()->add_clocks();
    clock->set_clock_id(id);
    clock->set_timestamp(last_ns_);
    if (id == kSequenceClock) clock->set_is_incremental(true);
  }
  PutPacket(packet);
}

void PacketWriter::PrepareEvent(pb::TracePacket* packet) const {
  packet->set_trusted_packet_sequence_id(sequence_);
  packet->set_sequence_flags(pb::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
}

void PacketWriter::PutDescriptor(pb::TracePacket* packet) {
  packet->set_trusted_packet_sequence_id(sequence_);
  PutPacket(*packet);
}

bool PacketWriter::PutPacket(const pb::TracePacket& packet) {
  const size_t size = packet.ByteSizeLong();
  uint8_t* out = Reserve(size + 16);
  if (out == nullptr) return false;
  constexpr uint32_t kPacketTag = pb::Trace::kPacketFieldNumber << 3 | 2;
  out = CodedOutputStream::WriteTagToArray(kPacketTag, out);
  out = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), out);
  out = packet.SerializeWithCachedSizesToArray(out);
  used_ = static_cast<size_t>(out - buffer_.get());
  return true;
}

void PacketWriter::PutEvent(int64_t t_ns, pb::TracePacket* packet) {
  auto now = static_cast<uint64_t>(std::max<int64_t>(0, t_ns));
  packet->clear_timestamp_clock_id();
  if (now >= last_ns_) {
    packet->set_timestamp(now - last_ns_);
  } else {
    packet->set_timestamp(now);
    packet->set_timestamp_clock_id(pb::BUILTIN_CLOCK_BOOTTIME);
  }
  if (!PutPacket(*packet)) return;
  last_ns_ = std::max(last_ns_, now);
  ++events_;
}

void PacketWriter::PutEvent(int64_t t_ns, std::string_view track_event) {
  constexpr size_t kMostFields = 64;  // of the packet, but for the event
  using Packet = pb::TracePacket;
  const auto now = static_cast<uint64_t>(std::max<int64_t>(0, t_ns));
  const bool late = now < last_ns_;
  uint8_t fields[kMostFields];
  uint8_t* end = fields;
  const auto varint = [&end](int field, uint64_t value) {
    end = CodedOutputStream::WriteTagToArray(static_cast<uint32_t>(field) << 3, end);
    end = CodedOutputStream::WriteVarint64ToArray(value, end);
  };
  varint(Packet::kTimestampFieldNumber, late ? now : now - last_ns_);
  varint(Packet::kTrustedPacketSequenceIdFieldNumber, sequence_);
  end = CodedOutputStream::WriteTagToArray(uint32_t{Packet::kTrackEventFieldNumber} << 3 | 2, end);
  end = CodedOutputStream::WriteVarint64ToArray(track_event.size(), end);
  const auto before = static_cast<size_t>(end - fields);
  varint(Packet::kSequenceFlagsFieldNumber, Packet::SEQ_NEEDS_INCREMENTAL_STATE);
  if (late) varint(Packet::kTimestampClockIdFieldNumber, pb::BUILTIN_CLOCK_BOOTTIME);
  const auto all = static_cast<size_t>(end - fields);
  const size_t size = all + track_event.size();
  uint8_t* out = Reserve(size + 16);
  if (out == nullptr) return;
  out = CodedOutputStream::WriteTagToArray(uint32_t{pb::Trace::kPacketFieldNumber} << 3 | 2, out);
  out = CodedOutputStream::WriteVarint64ToArray(size, out);
  out = std::copy_n(fields, before, out);
  out = std::copy_n(reinterpret_cast<const uint8_t*>(track_event.data()), track_event.size(), out);
  out = std::copy_n(fields + before, all - before, out);
  used_ = static_cast<size_t>(out - buffer_.get());
  last_ns_ = std::max(last_ns_, now);
  ++events_;
}

// Null, and the packet left out, when it could never fit: args of an event are untrusted.
uint8_t* PacketWriter::Reserve(size_t size) {
  if (used_ + size > kBufferSize) Flush();
  return size > kBufferSize ? nullptr : buffer_.get() + used_;
}

void PacketWriter::Flush() {
  if (status_.ok()) status_ = append_({reinterpret_cast<const char*>(buffer_.get()), used_});
  used_ = 0;
}

}  // namespace profd::exporting
