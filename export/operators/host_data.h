// What one process did on the host, read from the files of its `host/data` (operator-data a.2): API intervals, the
// tasks it put on streams, what describes the operators, and the two dictionaries. Compact copies of the records; of
// tensors, which repeat, each distinct description once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "export/operators/records.h"

namespace profd::exporting::operators {

enum class HostFileKind : uint8_t {
  kApi,
  kTask,
  kNode,
  kTensors,
  kContexts,
  kStreamWidth,
  kHashes,
  kTypes,
};

struct HostFile {
  HostFileKind kind;
  bool unaging = false;
  size_t record_bytes = 0;  // 0: lines
};

// "unaging.compact.task_track"; none: no file that is read here.
std::optional<HostFile> HostFileOf(std::string_view base);

// begin and end, as all times here, are the host's counter.
struct Api {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t item = 0;
  uint32_t thread = 0;
  uint32_t type = 0;
  uint32_t request = 0;
  uint16_t level = 0;
};

// One put on a stream, or (flip) the wrap of a stream's task ids.
struct TaskRecord {
  uint64_t time = 0;
  uint64_t kernel = 0;  // hash of its name; 0 = none
  uint32_t thread = 0;
  uint32_t type = 0;
  uint16_t device = 0;
  uint16_t stream = 0;
  uint16_t task = 0;
  uint16_t flip = 0;  // number of the flip; of flips only
  uint16_t blocks = 0;
  uint8_t mix_ratio = 0;
  bool has_blocks = false;
};

struct NodeRecord {
  uint64_t time = 0;
  uint64_t name = 0;
  uint64_t type = 0;
  uint32_t thread = 0;
  uint32_t core_type = 0;
  uint16_t blocks = 0;
  uint16_t mix_ratio = 0;
  bool hf32 = false;
  bool unaging = false;
};

struct TensorRecord {
  uint64_t time = 0;
  uint64_t name = 0;
  uint32_t thread = 0;
  uint32_t tensors = 0;  // index of HostData::tensors
};

struct Tensor {
  bool output = false;
  uint32_t format = 0;
  uint32_t data_type = 0;
  uint32_t shape[8] = {};  // ends at the first 0
};

struct ContextRecord {
  uint64_t time = 0;
  uint64_t name = 0;
  uint32_t thread = 0;
  uint32_t contexts = 0;  // index of HostData::contexts
  uint16_t level = 0;
};

// All calls of one API together, in ns.
struct ApiTotal {
  uint64_t count = 0;
  uint64_t sum_ns = 0;
  double sum_squares = 0;
  uint64_t min_ns = UINT64_MAX;
  uint64_t max_ns = 0;
  void Add(uint64_t ns);
};

class HostData {
 public:
  // Host counter to wall clock, ns. `begin_ns`: of the collection.
  HostData(std::function<int64_t(uint64_t)> clock, int64_t begin_ns) : clock_(std::move(clock)), begin_ns_(begin_ns) {}

  // Whole records or lines of one file; what makes no sense is counted. Files in any order.
  void Feed(const HostFile& file, std::span<const std::byte> bytes);
  // After the last file: sorts, and settles what has waited for other files.
  void Finish();

  std::vector<Api> apis;  // of the levels that operators are found by: not of the runtime's
  std::vector<TaskRecord> tasks;
  std::vector<TaskRecord> flips;
  std::vector<NodeRecord> nodes;
  std::vector<TensorRecord> tensor_records;
  std::vector<ContextRecord> context_records;
  std::vector<std::vector<Tensor>> tensors;
  std::vector<std::vector<uint32_t>> contexts;
  bool wide_streams = false;  // ids above 2047 in use
  uint64_t records = 0;
  uint64_t bad_records = 0;

  // By level and name, as in the CSV.
  std::map<std::pair<std::string, std::string>, ApiTotal> ApiTotals() const;

  // The number in decimal where the dictionary has no entry.
  std::string NameOf(uint64_t hash) const;
  std::string TypeName(uint16_t level, uint32_t type) const;
  std::string ApiName(const Api& api) const;

 private:
  void FeedApi(const RecordView& record);
  void FeedTask(const RecordView& record);
  void FeedNode(const RecordView& record, bool unaging);
  void FeedTensors(const RecordView& record);
  void FeedContexts(const RecordView& record);
  void FeedLines(bool types, std::string_view text);
  void AddApi(const Api& api);
  void Count(const Api& api);

  std::function<int64_t(uint64_t)> clock_;
  int64_t begin_ns_;
  std::unordered_map<uint64_t, std::string> names_;
  std::map<std::pair<uint16_t, uint32_t>, std::string> types_;
  // Single events that wait for their other half.
  std::map<std::tuple<uint16_t, uint32_t, uint32_t, uint32_t, uint64_t>, uint64_t> events_;
  std::map<std::tuple<uint16_t, uint32_t, uint64_t>, ApiTotal> totals_;  // level, type, item where it names the API
  std::vector<Api> early_;  // ended before the collection began: count only within a load of a model
  std::map<std::vector<uint32_t>, uint32_t> known_tensors_;
  std::map<std::vector<uint32_t>, uint32_t> known_contexts_;
};

}  // namespace profd::exporting::operators
