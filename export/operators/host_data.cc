#include "export/operators/host_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

#include "base/text.h"
#include "export/beside.h"
#include "export/operators/sort_records.h"
#include "export/repaired_text.h"

namespace profd::exporting::operators {
namespace {

constexpr uint64_t kSingleEvent = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kModelLoad = 2;
constexpr size_t kTensorsPerRecord = 5;
constexpr size_t kContextsPerRecord = 55;
constexpr size_t kMostStreams = 65536;
// Beyond any job; only a damaged dump has more distinct ones.
constexpr size_t kMostNames = 4'000'000;
constexpr uint32_t kFlip = 98;
constexpr uint32_t kMaintenance = 6;
// Above every type of the runtime.
constexpr uint32_t kFirstHashedType = 0x8000'0000;
constexpr size_t kMostHashedTypes = 4096;

struct KnownFile {
  std::string_view name;
  HostFileKind kind;
  size_t record_bytes;
};
constexpr KnownFile kFiles[] = {
    {"api_event.data", HostFileKind::kApi, 40},
    {"compact.task_track", HostFileKind::kTask, 64},
    {"compact.node_basic_info", HostFileKind::kNode, 64},
    {"compact.expand_stream_spec", HostFileKind::kStreamWidth, 64},
    {"compact.capture_stream_info", HostFileKind::kCapture, 64},
    {"compact.hccl_op_info", HostFileKind::kCommunicationOp, 64},
    {"compact.memcpy_info", HostFileKind::kCopy, 64},
    {"additional.hccl_info", HostFileKind::kCommunication, 256},
    {"additional.task_memory_info", HostFileKind::kMemory, 256},
    {"additional.memory_application", HostFileKind::kMemory, 256},  // of earlier releases
    {"additional.static_op_mem", HostFileKind::kPlannedMemory, 256},
    {"additional.graph_id_map", HostFileKind::kGraphName, 256},
    {"additional.fusion_op_info", HostFileKind::kFused, 256},
    {"additional.mc2_comm_info", HostFileKind::kFusedCommunication, 256},
    {"compact.node_attr_info", HostFileKind::kAttributes, 64},
    {"additional.tensor_info", HostFileKind::kTensors, 256},
    {"additional.context_id_info", HostFileKind::kContexts, 256},
    {"additional.hash_dic", HostFileKind::kHashes, 0},
    {"additional.type_info_dic", HostFileKind::kTypes, 0},
};

// The API's own name: of communication and some classes of ACL the item's if it has one, else the type's.
bool IsNamedByItem(uint16_t level, uint32_t type, uint64_t item) {
  constexpr uint32_t kAclNn = 5;
  constexpr uint32_t kHostHccl = 7;
  const uint32_t api_class = type >> 16;
  const bool has_own = level == kCommunicationLevel || (level == kAclLevel && (api_class == kAclNn || api_class == kHostHccl));
  return has_own && item != 0;
}

std::string_view LevelName(uint16_t level) {
  switch (level) {
    case 30000: return "pytorch";
    case 25000: return "pta";
    case 20500: return "msproftx";
    case kAclLevel: return "acl";
    case kModelLevel: return "model";
    case kNodeLevel: return "node";
    case kCommunicationLevel: return "communication";
    case kRuntimeLevel: return "runtime";
    default: return {};
  }
}

}  // namespace

std::optional<HostFile> HostFileOf(std::string_view base) {
  const size_t dot = base.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view age = base.substr(0, dot);
  if (age != "aging" && age != "unaging") return std::nullopt;
  const auto known = std::ranges::find(kFiles, base.substr(dot + 1), &KnownFile::name);
  if (known == std::end(kFiles)) return std::nullopt;
  return HostFile{known->kind, age == "unaging", known->record_bytes};
}

const std::string& NumberTexts::Of(uint64_t number) const {
  MutexLock lock(mutex_);
  const auto [known, is_new] = texts_.try_emplace(number);
  if (is_new) known->second = fmt::to_string(number);
  return known->second;
}

void TextTable::Fill(const std::unordered_map<uint64_t, std::string>& texts) {
  slots_.assign(std::bit_ceil(2 * texts.size() + 1), Slot());
  for (const auto& [number, text] : texts) {
    size_t at = PlaceOf(number);
    while (slots_[at].text != nullptr) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {number, &text};
  }
}

void ApiTotal::Add(uint64_t ns) {
  ++count;
  sum_ns += ns;
  sum_squares += Square{ns} * ns;
  min_ns = std::min(min_ns, ns);
  max_ns = std::max(max_ns, ns);
}

double ApiTotal::Variance() const {
  const Square square = Square{sum_ns} * sum_ns;
  const auto calls = static_cast<double>(count);
  return (static_cast<double>(sum_squares - square / count) - static_cast<double>(square % count) / calls) / calls;
}

void HostData::Expect(const HostFile& file, uint64_t bytes) {
  const size_t more = file.record_bytes == 0 ? 0 : bytes / file.record_bytes;
  switch (file.kind) {
    case HostFileKind::kApi: apis.reserve(apis.size() + more); break;
    case HostFileKind::kTask: tasks.reserve(tasks.size() + more); break;
    case HostFileKind::kNode: nodes.reserve(nodes.size() + more); break;
    case HostFileKind::kTensors: tensor_records.reserve(tensor_records.size() + more); break;
    default: break;
  }
}

void HostData::Feed(const HostFile& file, std::span<const std::byte> bytes) {
  if (file.record_bytes == 0) {
    return FeedLines(file.kind == HostFileKind::kTypes,
                     {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  for (; bytes.size() >= file.record_bytes; bytes = bytes.subspan(file.record_bytes)) {
    const RecordView record(bytes);
    if (record.U16(0) != kHostMagic) {
      ++bad_records;
      continue;
    }
    ++records;
    ++counts_[static_cast<size_t>(file.kind)];
    switch (file.kind) {
      case HostFileKind::kApi: FeedApi(record); break;
      case HostFileKind::kTask: FeedTask(record); break;
      case HostFileKind::kNode: FeedNode(record, file.unaging); break;
      case HostFileKind::kTensors: FeedTensors(record); break;
      case HostFileKind::kContexts: FeedContexts(record); break;
      case HostFileKind::kStreamWidth: wide_streams = wide_streams || record.U8(24) == 1; break;
      case HostFileKind::kCapture: FeedCapture(record); break;
      case HostFileKind::kCommunication: communication.AddInfo(record); break;
      case HostFileKind::kCommunicationOp: communication.AddOpInfo(record); break;
      case HostFileKind::kCopy: communication.AddCopy(record); break;
      case HostFileKind::kMemory: memory.AddMemory(record); break;
      case HostFileKind::kPlannedMemory: memory.AddPlanned(record); break;
      case HostFileKind::kGraphName: FeedGraph(record); break;
      case HostFileKind::kFused: FeedFused(record); break;
      case HostFileKind::kAttributes:
        attributes.push_back({record.U64(16), record.U64(24), record.U64(36), record.U32(8)});
        break;
      case HostFileKind::kFusedCommunication:
        if (fused_communication_streams.size() < kMostStreams) fused_communication_streams.insert(record.U32(44));
        break;
      default: break;
    }
  }
}

void HostData::FeedApi(const RecordView& record) {
  constexpr uint32_t kDynamicEnable = 27;
  const HostHeader header(record);
  dynamic = dynamic || header.type == kDynamicEnable;
  Api api{record.U64(16), record.U64(24), record.U64(32), header.thread, header.type, record.U32(12), header.level};
  if (api.end != kSingleEvent) return AddApi(api);
  const auto [other, first] =
      events_.try_emplace({api.level, api.type, api.thread, api.request, api.item}, api.begin);
  if (first) return;
  api.end = std::max(other->second, api.begin);
  api.begin = std::min(other->second, api.begin);
  events_.erase(other);
  AddApi(api);
}

void HostData::AddApi(const Api& api) {
  const int64_t begin_ns = clock_(api.begin);
  const int64_t end_ns = clock_(api.end);
  if (api.end < api.begin || begin_ns < 0 || end_ns < begin_ns) {
    ++bad_records;
    return;
  }
  const bool early = end_ns < begin_ns_;
  if (!early) Count(api, begin_ns, end_ns);
  if (api.level == kRuntimeLevel && !keeps_runtime_apis_) return;
  apis.push_back(api);
  apis.back().early = early;
}

void HostData::Count(const Api& api, int64_t begin_ns, int64_t end_ns) {
  if (!counted.Has(begin_ns)) return;
  const uint64_t item = IsNamedByItem(api.level, api.type, api.item) ? api.item : 0;
  totals_[{api.level, api.type, item}].Add(static_cast<uint64_t>(end_ns - begin_ns));
}

void HostData::FeedTask(const RecordView& record) {
  constexpr uint32_t kBodyWithBlocks = 40;
  const std::optional<uint32_t> type = NumberOfType(record.U64(32));
  if (!type) {
    ++bad_records;
    return;
  }
  if (*type == kMaintenance) return;
  TaskRecord task;
  task.time = record.U64(16);
  task.kernel = record.U64(40);
  task.thread = record.U32(8);
  task.type = *type;
  task.device = record.U16(24);
  task.stream = record.U16(26);
  task.task = record.U16(28);
  task.batch = record.U16(30);
  task.has_blocks = record.U32(12) == kBodyWithBlocks;
  task.blocks = record.U16(48);
  task.mix_ratio = record.U8(52) & 7;
  (*type == kFlip ? flips : tasks).push_back(task);
}

std::optional<uint32_t> HostData::NumberOfType(uint64_t type) {
  if (type < kFirstHashedType) return static_cast<uint32_t>(type);
  const auto known = hashed_types_.find(type);
  if (known != hashed_types_.end()) return known->second;
  if (hashed_types_.size() >= kMostHashedTypes) return std::nullopt;
  const auto number = static_cast<uint32_t>(kFirstHashedType + hashed_types_.size());
  hashed_types_.emplace(type, number);
  return number;
}

void HostData::NameTypes() {
  for (const auto& [hash, number] : hashed_types_) {
    const std::string& name = types_[TypeKey(kRuntimeLevel, number)] = NameOf(hash);
    const auto is_it = [type = number](const TaskRecord& task) { return task.type == type; };
    if (name == "TASK_FLIP") std::ranges::copy_if(tasks, std::back_inserter(flips), is_it);
    if (name == "TASK_FLIP" || name == "MAINTENANCE") std::erase_if(tasks, is_it);
  }
}

void HostData::FeedNode(const RecordView& record, bool unaging) {
  nodes.push_back({record.U64(16), record.U64(24), record.U64(36), record.U32(8), record.U32(32), record.U16(44),
                   record.U16(46), (record.U32(48) & 1) != 0, unaging});
}

void HostData::FeedCapture(const RecordView& record) {
  captures.push_back({record.U64(16), record.U16(32), record.U16(26), record.U16(30), record.U16(24) != 0});
}

void HostData::FeedTensors(const RecordView& record) {
  constexpr size_t kFirst = 36;
  constexpr size_t kEach = 44;
  const uint32_t count = record.U32(32);
  if (count > kTensorsPerRecord) {
    ++bad_records;
    return;
  }
  const std::string_view bytes = record.Bytes(kFirst, count * kEach);
  auto known = known_tensors_.find(bytes);
  if (known == known_tensors_.end()) {
    known = known_tensors_.emplace(bytes, static_cast<uint32_t>(tensors.size())).first;
    std::vector<Tensor>& made = tensors.emplace_back(count);
    for (size_t i = 0; i < count; ++i) {
      const size_t at = kFirst + kEach * i;
      made[i].output = record.U32(at) != 0;
      made[i].format = record.U32(at + 4);
      made[i].data_type = record.U32(at + 8);
      for (size_t k = 0; k < 8; ++k) made[i].shape[k] = record.U32(at + 12 + 4 * k);
    }
  }
  tensor_records.push_back({record.U64(16), record.U64(24), record.U32(8), known->second});
}

void HostData::TakeDescriptions(HostData other) {
  if (tensor_records.empty()) {
    tensor_records = std::move(other.tensor_records);
    tensors = std::move(other.tensors);
  }
  if (nodes.empty()) nodes = std::move(other.nodes);
  for (const HostFileKind kind : {HostFileKind::kTensors, HostFileKind::kNode}) counts_[static_cast<size_t>(kind)] += other.RecordsOf(kind);
  records += other.records;
  bad_records += other.bad_records;
}

void HostData::FeedContexts(const RecordView& record) {
  const uint32_t count = record.U32(32);
  if (count > kContextsPerRecord) {
    ++bad_records;
    return;
  }
  std::vector<uint32_t> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = record.U32(36 + 4 * i);
  const auto [known, is_new] = known_contexts_.try_emplace(ids, static_cast<uint32_t>(contexts.size()));
  if (is_new) contexts.push_back(std::move(ids));
  context_records.push_back({record.U64(16), record.U64(24), record.U32(8), known->second, record.U16(2)});
}

void HostData::FeedGraph(const RecordView& record) {
  if (graphs_.size() >= kMostNames || models_.size() >= kMostNames) {
    ++bad_records;
    return;
  }
  graphs_[record.U32(32)] = record.U64(24);
  models_[record.U32(36)] = record.U64(24);
}

void HostData::FeedFused(const RecordView& record) {
  constexpr uint32_t kMostOriginals = 8;
  const uint32_t count = record.U32(32);
  if (count > kMostOriginals) {
    ++bad_records;
    return;
  }
  FusedOperator& made = fused.emplace_back();
  made.time = record.U64(16);
  made.name = record.U64(24);
  made.thread = record.U32(8);
  for (size_t i = 0; i < made.bytes.size(); ++i) made.bytes[i] = record.U64(36 + 8 * i);
  for (size_t i = 0; i < count; ++i) made.originals.push_back(record.U64(76 + 8 * i));
}

// "hash:text" or "level_type:text"; a later entry replaces one before. Readers of tables and databases stop at invalid
// UTF-8, so it is replaced.
void HostData::FeedLines(bool types, std::string_view text) {
  for (std::string_view line; NextLine(&text, &line);) {
    const size_t colon = line.find(':');
    uint64_t hash = 0;
    if (line.empty()) continue;
    if (colon == std::string_view::npos || names_.size() + types_.size() >= kMostNames) {
      ++bad_records;
      continue;
    }
    const std::string_view key = line.substr(0, colon);
    const std::string value = RepairedText(line.substr(colon + 1), line.size());
    const size_t bar = key.find('_');
    uint16_t level = 0;
    uint32_t type = 0;
    if (!types && ParseNumber(key, &hash)) {
      names_[hash] = value;
    } else if (types && bar != std::string_view::npos && ParseNumber(key.substr(0, bar), &level) &&
               ParseNumber(key.substr(bar + 1), &type)) {
      types_[TypeKey(level, type)] = value;
    } else {
      ++bad_records;
      continue;
    }
    ++records;
  }
}

void HostData::Finish() {
  RunBeside(2, [this](size_t part) { part == 0 ? FinishApis() : FinishRecords(); });
  known_tensors_.clear();
  known_contexts_.clear();
  name_table_.Fill(names_);
  type_table_.Fill(types_);
}

void HostData::FinishRecords() {
  const auto by_thread = [](const auto& a, const auto& b) {
    return std::tie(a.thread, a.time) < std::tie(b.thread, b.time);
  };
  NameTypes();
  NumberBatches();
  SortRecords(&tasks, by_thread);
  SortRecords(&nodes, by_thread);
  SortRecords(&tensor_records, by_thread);
  SortRecords(&context_records, by_thread);
  SortRecords(&attributes, by_thread);
  std::ranges::stable_sort(captures, {}, &CaptureRecord::time);
  communication.Sort();
}

void HostData::FinishApis() {
  SortRecords(&apis, [](const Api& a, const Api& b) {
    return std::tie(a.thread, a.begin, b.level) < std::tie(b.thread, b.begin, a.level);
  });
  std::vector<Api> loads;
  std::ranges::copy_if(apis, std::back_inserter(loads), [](const Api& api) {
    return api.level == kModelLevel && api.type == kModelLoad;
  });
  for (Api& api : apis) {
    const auto within = [&api](const Api& load) {
      return load.thread == api.thread && load.begin <= api.begin && api.end <= load.end;
    };
    if (!api.early || std::ranges::none_of(loads, within)) continue;
    api.early = false;
    Count(api, clock_(api.begin), clock_(api.end));
  }
}

void HostData::NumberBatches() {
  if (unique_tasks) return;
  constexpr size_t kMostFlips = 65535;
  using Stream = std::pair<uint16_t, uint16_t>;
  std::map<Stream, std::vector<TaskRecord>> wraps;
  for (const TaskRecord& flip : flips) wraps[{flip.device, flip.stream}].push_back(flip);
  std::map<Stream, Large<TaskRecord*>> streams;
  for (TaskRecord& task : tasks) {
    task.batch = 0;
    if (wraps.contains({task.device, task.stream})) streams[{task.device, task.stream}].push_back(&task);
  }
  for (auto& [stream, of_stream] : streams) {
    std::vector<TaskRecord>& of_wraps = wraps[stream];
    if (of_wraps.size() > kMostFlips) continue;
    std::ranges::stable_sort(of_wraps, {}, &TaskRecord::time);
    SortSmall(&of_stream, [](const TaskRecord* a, const TaskRecord* b) { return a->time < b->time; });
    uint16_t batch = 0;
    size_t next = 0;
    for (size_t i = 0; i < of_stream.size(); ++i) {
      for (; next < of_wraps.size() && of_stream[i]->time > of_wraps[next].time; ++next) {
        ++batch;
        if (of_wraps[next].batch == kStreamDestroyed) continue;
        // Threads that raced for the wrap: ids below the flip's are of the new batch already.
        for (size_t k = i; k > 0 && of_stream[k - 1]->task < of_wraps[next].task; --k) of_stream[k - 1]->batch = batch;
      }
      of_stream[i]->batch = batch;
    }
  }
}

std::map<std::pair<std::string, std::string>, ApiTotal> HostData::ApiTotals() const {
  std::map<std::pair<std::string, std::string>, ApiTotal> named;
  for (const auto& [key, total] : totals_) {
    const auto& [level, type, item] = key;
    Api api;
    api.level = level;
    api.type = type;
    api.item = item;
    std::string level_name(LevelName(level));
    if (level_name.empty()) level_name = fmt::to_string(level);
    ApiTotal& sum = named[{ApiName(api), level_name}];
    sum.count += total.count;
    sum.sum_ns += total.sum_ns;
    sum.sum_squares += total.sum_squares;
    sum.min_ns = std::min(sum.min_ns, total.min_ns);
    sum.max_ns = std::max(sum.max_ns, total.max_ns);
  }
  return named;
}

const std::string& HostData::NameOf(uint64_t hash) const {
  if (const std::string* known = name_table_.Find(hash)) return *known;
  const auto found = names_.find(hash);
  return found == names_.end() ? numbers_->Of(hash) : found->second;
}

std::string HostData::GraphName(uint32_t graph) const {
  const auto found = graphs_.find(graph);
  return found == graphs_.end() ? "N/A" : NameOf(found->second);
}

std::string HostData::ModelName(uint64_t model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? "N/A" : NameOf(found->second);
}

std::optional<uint64_t> HostData::ModelAt(uint32_t thread, uint64_t time) const {
  const auto [begin, end] = EqualRange(apis, thread, &Api::thread);
  const auto around = std::find_if(begin, end, [time](const Api& api) {
    return api.level == kModelLevel && api.begin < time && time <= api.end;
  });
  return around == end ? std::nullopt : std::optional(around->item);
}

const std::string& HostData::TypeName(uint16_t level, uint32_t type) const {
  if (const std::string* known = type_table_.Find(TypeKey(level, type))) return *known;
  const auto found = types_.find(TypeKey(level, type));
  return found == types_.end() ? numbers_->Of(type) : found->second;
}

const std::string& HostData::ApiName(const Api& api) const {
  return IsNamedByItem(api.level, api.type, api.item) ? NameOf(api.item) : TypeName(api.level, api.type);
}

}  // namespace profd::exporting::operators
