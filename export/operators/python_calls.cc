#include "export/operators/python_calls.h"

#include <algorithm>
#include <tuple>

#include "export/operators/records.h"
#include "export/operators/sort_records.h"

namespace profd::exporting::operators {

bool PythonCalls::Take(std::span<const std::byte> bytes) {
  enum : uint8_t { kCall, kReturn, kNativeCall, kNativeReturn };
  const RecordView record(bytes);
  const uint8_t tag = record.U8(32);
  if (tag > kNativeReturn) return false;
  PythonCall call;
  call.begin = static_cast<int64_t>(record.U64(0));
  call.thread = record.U64(8);
  call.key = record.U64(24);
  last_ = std::max(last_, call.begin);
  Open& open = open_[call.thread];
  if (tag == kCall || tag == kNativeCall) {
    called_.insert(call.key);
    ++open.of_key[call.key];
    open.calls.push_back(call);
    return true;
  }
  const bool is_of_a_call = called_.contains(call.key);
  if (open.calls.empty() || (is_of_a_call && open.of_key[call.key] == 0)) {
    ++unpaired;
    return true;
  }
  // torch_npu gives all ends one key, which no call has: the innermost ends. One with the key of a call also ends what
  // was called within and has no end of its own.
  size_t own = open.calls.size() - 1;
  while (is_of_a_call && open.calls[own].key != call.key) --own;
  for (size_t i = own; i < open.calls.size(); ++i) {
    open.calls[i].end = call.begin;
    --open.of_key[open.calls[i].key];
    calls.push_back(open.calls[i]);
  }
  open.calls.resize(own);
  return true;
}

void PythonCalls::Finish(const std::function<int64_t(int64_t)>& clock) {
  for (auto& [thread, open] : open_) {
    for (PythonCall& call : open.calls) {
      call.end = last_;
      calls.push_back(call);
    }
  }
  open_.clear();
  for (PythonCall& call : calls) {
    call.begin = clock(call.begin);
    call.end = std::max(call.begin, clock(call.end));
    const auto known = names_.find(call.key);
    if (known != names_.end()) call.name = known->second;
  }
  bad_times = std::erase_if(calls, [](const PythonCall& call) { return call.begin < 0; });
  SortRecords(&calls, [](const PythonCall& a, const PythonCall& b) {
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);
  });
}

}  // namespace profd::exporting::operators
