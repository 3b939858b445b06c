// Calls of Python functions (in-application 7.2, torch.python_tracer_func and torch.python_tracer_hash): begins and ends in
// the order of each thread, names by a key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace profd::exporting::operators {

struct PythonCall {
  int64_t begin = 0;
  int64_t end = 0;
  uint64_t thread = 0;
  uint64_t key = 0;
  int32_t name = -1;  // after Finish; -1: the key has none
};

class PythonCalls {
 public:
  static constexpr size_t kRecordBytes = 33;

  // One record; false: it makes no sense.
  bool Take(std::span<const std::byte> record);
  void Name(uint64_t key, int32_t name) { names_[key] = name; }
  // What has not ended does so with the last record. `clock`: timestamps to wall clock.
  void Finish(const std::function<int64_t(int64_t)>& clock);

  std::vector<PythonCall> calls;  // after Finish by thread and begin, outer before inner
  uint64_t unpaired = 0;          // ends without a begin
  uint64_t bad_times = 0;         // calls with wall clock times below 0: left out

 private:
  // Of a thread, what has not ended, and how many of each key: what is looked for is there.
  struct Open {
    std::vector<PythonCall> calls;
    std::unordered_map<uint64_t, uint32_t> of_key;
  };
  std::unordered_map<uint64_t, Open> open_;  // by thread
  std::unordered_set<uint64_t> called_;      // keys of calls
  std::unordered_map<uint64_t, int32_t> names_;
  int64_t last_ = 0;
};

}  // namespace profd::exporting::operators
