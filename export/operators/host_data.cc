#include "export/operators/host_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/text.h"

namespace profd::exporting::operators {
namespace {

constexpr uint64_t kSingleEvent = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kModelLoad = 2;
constexpr size_t kTensorsPerRecord = 5;
constexpr size_t kContextsPerRecord = 55;
// Beyond any job; only a damaged dump has more distinct ones.
constexpr size_t kMostNames = 4'000'000;

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
    {"additional.tensor_info", HostFileKind::kTensors, 256},
    {"additional.context_id_info", HostFileKind::kContexts, 256},
    {"additional.hash_dic", HostFileKind::kHashes, 0},
    {"additional.type_info_dic", HostFileKind::kTypes, 0},
};

// The API's own name: of some classes of ACL the item's, else the type's.
bool IsNamedByItem(uint16_t level, uint32_t type) {
  constexpr uint32_t kAclNn = 5;
  constexpr uint32_t kHostHccl = 7;
  const uint32_t api_class = type >> 16;
  return level == kAclLevel && (api_class == kAclNn || api_class == kHostHccl);
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

void ApiTotal::Add(uint64_t ns) {
  ++count;
  sum_ns += ns;
  sum_squares += static_cast<double>(ns) * static_cast<double>(ns);
  min_ns = std::min(min_ns, ns);
  max_ns = std::max(max_ns, ns);
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
    switch (file.kind) {
      case HostFileKind::kApi: FeedApi(record); break;
      case HostFileKind::kTask: FeedTask(record); break;
      case HostFileKind::kNode: FeedNode(record, file.unaging); break;
      case HostFileKind::kTensors: FeedTensors(record); break;
      case HostFileKind::kContexts: FeedContexts(record); break;
      case HostFileKind::kStreamWidth: wide_streams = wide_streams || record.U8(24) == 1; break;
      default: break;
    }
  }
}

void HostData::FeedApi(const RecordView& record) {
  const HostHeader header(record);
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
  if (api.end < api.begin) {
    ++bad_records;
    return;
  }
  if (clock_(api.end) < begin_ns_) {
    early_.push_back(api);
  } else {
    Count(api);
  }
  if (api.level != kRuntimeLevel && api.end > api.begin) apis.push_back(api);
}

void HostData::Count(const Api& api) {
  const uint64_t item = IsNamedByItem(api.level, api.type) ? api.item : 0;
  totals_[{api.level, api.type, item}].Add(static_cast<uint64_t>(clock_(api.end) - clock_(api.begin)));
}

void HostData::FeedTask(const RecordView& record) {
  constexpr uint64_t kFlip = 98;
  constexpr uint64_t kMaintenance = 6;
  constexpr uint32_t kBodyWithBlocks = 40;
  const uint64_t type = record.U64(32);
  if (type == kMaintenance) return;
  if (type > std::numeric_limits<uint32_t>::max()) {  // a hash, by older writers
    ++bad_records;
    return;
  }
  TaskRecord task;
  task.time = record.U64(16);
  task.kernel = record.U64(40);
  task.thread = record.U32(8);
  task.type = static_cast<uint32_t>(type);
  task.device = record.U16(24);
  task.stream = record.U16(26);
  task.task = record.U16(28);
  task.flip = record.U16(30);
  task.has_blocks = record.U32(12) == kBodyWithBlocks;
  task.blocks = record.U16(48);
  task.mix_ratio = record.U8(52) & 7;
  (type == kFlip ? flips : tasks).push_back(task);
}

void HostData::FeedNode(const RecordView& record, bool unaging) {
  nodes.push_back({record.U64(16), record.U64(24), record.U64(36), record.U32(8), record.U32(32), record.U16(44),
                   record.U16(46), (record.U32(48) & 1) != 0, unaging});
}

void HostData::FeedTensors(const RecordView& record) {
  constexpr size_t kFirst = 36;
  constexpr size_t kEach = 44;
  const uint32_t count = record.U32(32);
  if (count > kTensorsPerRecord) {
    ++bad_records;
    return;
  }
  std::vector<uint32_t> words;
  for (size_t i = 0; i < count * kEach / 4; ++i) words.push_back(record.U32(kFirst + 4 * i));
  const auto [known, is_new] = known_tensors_.try_emplace(std::move(words), static_cast<uint32_t>(tensors.size()));
  if (is_new) {
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

// "hash:text" or "level_type:text"; a later entry replaces one before.
void HostData::FeedLines(bool types, std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    uint64_t hash = 0;
    if (line.empty()) continue;
    if (colon == std::string_view::npos || names_.size() + types_.size() >= kMostNames) {
      ++bad_records;
      continue;
    }
    const std::string_view key = line.substr(0, colon);
    const std::string value(line.substr(colon + 1));
    const size_t bar = key.find('_');
    uint16_t level = 0;
    uint32_t type = 0;
    if (!types && ParseNumber(key, &hash)) {
      names_[hash] = value;
    } else if (types && bar != std::string_view::npos && ParseNumber(key.substr(0, bar), &level) &&
               ParseNumber(key.substr(bar + 1), &type)) {
      types_[{level, type}] = value;
    } else {
      ++bad_records;
      continue;
    }
    ++records;
  }
}

void HostData::Finish() {
  std::ranges::sort(apis, [](const Api& a, const Api& b) {
    return std::tuple(a.thread, a.begin, b.level) < std::tuple(b.thread, b.begin, a.level);
  });
  const auto by_thread = [](const auto& a, const auto& b) {
    return std::tie(a.thread, a.time) < std::tie(b.thread, b.time);
  };
  std::ranges::stable_sort(tasks, by_thread);
  std::ranges::stable_sort(nodes, by_thread);
  std::ranges::stable_sort(tensor_records, by_thread);
  std::ranges::stable_sort(context_records, by_thread);
  std::vector<Api> loads;
  std::ranges::copy_if(apis, std::back_inserter(loads), [](const Api& api) {
    return api.level == kModelLevel && api.type == kModelLoad;
  });
  for (const Api& api : early_) {
    const auto within = [&api](const Api& load) {
      return load.thread == api.thread && load.begin <= api.begin && api.end <= load.end;
    };
    if (std::ranges::any_of(loads, within)) Count(api);
  }
  early_.clear();
  known_tensors_.clear();
  known_contexts_.clear();
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

std::string HostData::NameOf(uint64_t hash) const {
  const auto found = names_.find(hash);
  return found == names_.end() ? fmt::to_string(hash) : found->second;
}

std::string HostData::TypeName(uint16_t level, uint32_t type) const {
  const auto found = types_.find({level, type});
  return found == types_.end() ? fmt::to_string(type) : found->second;
}

std::string HostData::ApiName(const Api& api) const {
  return IsNamedByItem(api.level, api.type) ? NameOf(api.item) : TypeName(api.level, api.type);
}

}  // namespace profd::exporting::operators
