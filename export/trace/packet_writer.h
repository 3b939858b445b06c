// One sequence of packets of a Perfetto trace.
//
// Timestamps are deltas of a clock of the sequence's own, which its first packet sets to the begin of
// the collection; that packet also states that trace time (BOOTTIME) is wall clock (REALTIME). A
// timestamp before its predecessor is written as it is, in BOOTTIME.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "perfetto/trace.pb.h"

namespace profd::exporting {

// Of a flow of a dump: the same for both ends, which are of different sequences.
uint64_t FlowId(size_t dump, std::string_view flow);

// One thread.
class PacketWriter {
 public:
  // `append` takes complete packets.
  PacketWriter(uint32_t sequence, uint64_t begin_ns, std::function<Status(std::string_view)> append);

  void PutDescriptor(::perfetto::protos::TracePacket* packet);
  // The event in `packet`, which PrepareEvent has seen once.
  void PutEvent(int64_t t_ns, ::perfetto::protos::TracePacket* packet);
  // The event whose bytes are `track_event`.
  void PutEvent(int64_t t_ns, std::string_view track_event);
  void PrepareEvent(::perfetto::protos::TracePacket* packet) const;
  void Flush();

  uint64_t events() const { return events_; }
  const Status& status() const { return status_; }

 private:
  void PutFirst();
  bool PutPacket(const ::perfetto::protos::TracePacket& packet);
  uint8_t* Reserve(size_t size);

  const uint32_t sequence_;
  const std::function<Status(std::string_view)> append_;
  uint64_t last_ns_;
  std::unique_ptr<uint8_t[]> buffer_;
  size_t used_ = 0;
  uint64_t events_ = 0;
  Status status_;
};

}  // namespace profd::exporting
