// What one process did on the host, read from the files of its `host/data` (operator-data a.2): API intervals, the
// tasks it put on streams, what describes the operators, and the two dictionaries. Compact copies of the records; of
// tensors, which repeat, each distinct description once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "export/batch.h"
#include "export/large.h"
#include "export/operators/communication_records.h"
#include "export/operators/memory_records.h"
#include "export/operators/records.h"

namespace profd::exporting::operators {

enum class HostFileKind : uint8_t {
  kApi,
  kTask,
  kNode,
  kTensors,
  kContexts,
  kStreamWidth,
  kCapture,
  kCommunication,
  kCommunicationOp,
  kCopy,
  kMemory,
  kPlannedMemory,
  kGraphName,
  kFused,
  kAttributes,
  kFusedCommunication,
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
  bool early = false;  // ended before the collection began, not within a load of a model: for the tree only
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
  uint16_t batch = 0;  // how often the stream's task ids have wrapped; of a flip its number
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

// compact.node_attr_info
struct AttributeRecord {
  uint64_t time = 0;
  uint64_t name = 0;  // hashes
  uint64_t text = 0;
  uint32_t thread = 0;
};

// An operator of a static graph that was made of several.
struct FusedOperator {
  uint64_t time = 0;
  uint64_t name = 0;  // hash
  uint32_t thread = 0;
  std::array<uint64_t, 5> bytes = {};  // of input, output, weight, workspace, and in all
  std::vector<uint64_t> originals;     // hashes
};

// Tasks of a stream belong to a captured graph from then on.
struct CaptureRecord {
  uint64_t time = 0;
  uint16_t device = 0;
  uint16_t stream = 0;
  uint16_t model = 0;
  bool ended = false;
};

// All calls of one API together, in ns.
struct ApiTotal {
  __extension__ using Square = unsigned __int128;
  uint64_t count = 0;
  uint64_t sum_ns = 0;
  Square sum_squares = 0;  // a double of long calls would have lost what their variance is made of
  uint64_t min_ns = UINT64_MAX;
  uint64_t max_ns = 0;
  void Add(uint64_t ns);
  double Variance() const;  // of all of them, not of a sample
};

// Numbers in decimal that stay where they are. Any thread.
class NumberTexts {
 public:
  const std::string& Of(uint64_t number) const;

 private:
  mutable Mutex mutex_;
  mutable std::unordered_map<uint64_t, std::string> texts_ GUARDED_BY(mutex_);
};

// Finds texts by number, once all are there: most of what is shown has some.
class TextTable {
 public:
  // Of a dictionary that stays as it is.
  void Fill(const std::unordered_map<uint64_t, std::string>& texts);
  // Null: there is none.
  const std::string* Find(uint64_t number) const {
    if (slots_.empty()) return nullptr;
    for (size_t at = PlaceOf(number);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.text == nullptr || slot.number == number) return slot.text;
    }
  }

 private:
  struct Slot {
    uint64_t number = 0;
    const std::string* text = nullptr;  // null: free
  };
  size_t PlaceOf(uint64_t number) const { return (number * 0x9E3779B97F4A7C15u >> 32) & (slots_.size() - 1); }

  std::vector<Slot> slots_;  // a power of two, at most half of them taken
};

class HostData {
 public:
  // Host counter to wall clock, ns. `begin_ns`: of the collection. The runtime's API intervals, a third of a process's
  // records, are kept only where they are shown one by one.
  HostData(std::function<int64_t(uint64_t)> clock, int64_t begin_ns, bool keeps_runtime_apis)
      : clock_(std::move(clock)), begin_ns_(begin_ns), keeps_runtime_apis_(keeps_runtime_apis) {}

  // Memory for the next file, of so many bytes.
  void Expect(const HostFile& file, uint64_t bytes);
  // Whole records or lines of one file; what makes no sense is counted. Files in any order.
  void Feed(const HostFile& file, std::span<const std::byte> bytes);
  // What another has read of tensors and nodes, on a thread of its own; this one has none of that kind. Before Finish.
  void TakeDescriptions(HostData other);
  // After the last file: sorts, and settles what has waited for other files.
  void Finish();

  Large<Api> apis;  // by thread, begin and level, outer before inner; the index is the API's connection id
  Large<TaskRecord> tasks;
  Large<TaskRecord> flips;
  Large<NodeRecord> nodes;
  Large<TensorRecord> tensor_records;
  std::vector<ContextRecord> context_records;
  CommunicationRecords communication;
  MemoryRecords memory;
  std::vector<CaptureRecord> captures;  // by time
  std::vector<AttributeRecord> attributes;
  std::vector<FusedOperator> fused;                // as recorded
  std::set<uint32_t> fused_communication_streams;  // of AI CPUs that serve collectives fused with computation (MC2)
  std::vector<std::vector<Tensor>> tensors;
  std::vector<std::vector<uint32_t>> contexts;
  // Chips 15 and 16: a task's number has 32 bits, of which `batch` is the upper half, and never repeats. Before Feed.
  bool unique_tasks = false;
  bool wide_streams = false;  // ids above 2047 in use
  bool dynamic = false;       // collecting was switched on and off while the process ran
  TimeWindow counted;         // ApiTotals are of the calls that begin in it. Before Feed
  uint64_t records = 0;
  uint64_t bad_records = 0;
  // Of one kind; most are gone once tasks are made of them.
  uint64_t RecordsOf(HostFileKind kind) const { return counts_[static_cast<size_t>(kind)]; }

  int64_t WallNs(uint64_t count) const { return clock_(count); }
  // By level and name, as in the CSV.
  std::map<std::pair<std::string, std::string>, ApiTotal> ApiTotals() const;

  // The number in decimal where the dictionary has no entry.
  const std::string& NameOf(uint64_t hash) const;
  std::string GraphName(uint32_t graph) const;  // "N/A" where no record has it
  std::string ModelName(uint64_t model) const;  // the same, by the number that APIs give
  bool HasModelNames() const { return !models_.empty(); }
  // The model that the thread loaded or ran then, after Finish; none: none.
  std::optional<uint64_t> ModelAt(uint32_t thread, uint64_t time) const;
  const std::string& TypeName(uint16_t level, uint32_t type) const;
  const std::string& ApiName(const Api& api) const;

 private:
  void FeedApi(const RecordView& record);
  void FeedTask(const RecordView& record);
  // Older writers give the hash of a task's type: a number of our own for it, which Finish names. None: too many.
  std::optional<uint32_t> NumberOfType(uint64_t type);
  void NameTypes();
  void FeedNode(const RecordView& record, bool unaging);
  void FeedCapture(const RecordView& record);
  void FeedTensors(const RecordView& record);
  void FeedContexts(const RecordView& record);
  void FeedFused(const RecordView& record);
  void FeedGraph(const RecordView& record);
  void FeedLines(bool types, std::string_view text);
  void AddApi(const Api& api);
  void FinishApis();
  void FinishRecords();  // all others
  void NumberBatches();
  void Count(const Api& api, int64_t begin_ns, int64_t end_ns);

  std::array<uint64_t, static_cast<size_t>(HostFileKind::kTypes) + 1> counts_ = {};
  std::function<int64_t(uint64_t)> clock_;
  int64_t begin_ns_;
  bool keeps_runtime_apis_;
  std::unordered_map<uint64_t, std::string> names_;
  TextTable name_table_;  // of names_, after Finish
  TextTable type_table_;  // of types_, the same
  std::unordered_map<uint32_t, uint64_t> graphs_;  // hash of the name
  std::unordered_map<uint64_t, uint64_t> models_;  // the same
  static uint64_t TypeKey(uint16_t level, uint32_t type) { return uint64_t{level} << 32 | type; }
  std::unordered_map<uint64_t, std::string> types_;  // by TypeKey
  std::unique_ptr<NumberTexts> numbers_ = std::make_unique<NumberTexts>();  // of what no dictionary has
  std::unordered_map<uint64_t, uint32_t> hashed_types_;
  // Single events that wait for their other half.
  std::map<std::tuple<uint16_t, uint32_t, uint32_t, uint32_t, uint64_t>, uint64_t> events_;
  using ApiKey = std::tuple<uint16_t, uint32_t, uint64_t>;  // level, type, item where it names the API
  struct ApiKeyHash {
    size_t operator()(const ApiKey& key) const {
      const auto& [level, type, item] = key;
      return ((item ^ type) * 0x9E3779B97F4A7C15u) ^ level;
    }
  };
  std::unordered_map<ApiKey, ApiTotal, ApiKeyHash> totals_;
  struct BytesHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, uint32_t, BytesHash, std::equal_to<>> known_tensors_;  // by the record's bytes
  std::map<std::vector<uint32_t>, uint32_t> known_contexts_;
};

}  // namespace profd::exporting::operators
