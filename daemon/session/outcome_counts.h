// Sums of what was recorded and lost, in outcomes and in the status of a session.
#pragma once

#include <atomic>
#include <cstdint>

#include "daemon/data/dump_writer.h"
#include "profd/v1/profd.pb.h"

namespace profd {

template <class Counts>
void AddRecords(uint64_t records, const LossLedger::Amount& lost, Counts* into) {
  into->set_records(into->records() + records);
  into->set_dropped_records(into->dropped_records() + lost.records);
  into->set_dropped_bytes(into->dropped_bytes() + lost.bytes);
}

inline void AddRecordsOf(const v1::Outcome& outcome, v1::SessionStatus* into) {
  AddRecords(outcome.records(), {outcome.dropped_records(), outcome.dropped_bytes()}, into);
}

// What it has taken so far.
inline void AddRecordsOf(const DumpFeed& feed, v1::Outcome* into) {
  AddRecords(feed.counters().records.load(std::memory_order_relaxed), feed.losses().Total(), into);
  into->set_bytes(into->bytes() + feed.counters().bytes.load(std::memory_order_relaxed));
  if (feed.thinned()) into->set_thinned(true);
  if (feed.rebased()) into->set_rebased(true);
}

}  // namespace profd
