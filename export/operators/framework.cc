#include "export/operators/framework.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "export/operators/records.h"
#include "export/operators/sort_records.h"
#include "export/repaired_text.h"

namespace profd::exporting::operators {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kOldMindSporeRange = "op_range_";  // and the rank
constexpr size_t kHeaderBytes = 6;  // type u16, length u32
constexpr size_t kRangeBytes = 58;
constexpr size_t kOldRangeBytes = 57;  // without a scope
constexpr size_t kMarkBytes = 40;
constexpr size_t kCollectionBytes = 24;
constexpr size_t kPythonNameBytes = 8;
constexpr size_t kMindSporeRangeBytes = 54;
// With id, step and level; without level; without all three.
constexpr size_t kOldMindSporeRangeBytes[] = {74, 73, 57};
// Texts of an operator, and the types of the fields that have them.
constexpr std::array kRangeTexts = {&FrameworkOperator::name, &FrameworkOperator::types, &FrameworkOperator::shapes,
                                    &FrameworkOperator::stack, &FrameworkOperator::modules};
constexpr std::array<uint16_t, kRangeTexts.size()> kTorchTexts = {2, 3, 4, 8, 9};
constexpr std::array<uint16_t, kRangeTexts.size()> kOldMindSporeTexts = {3, 4, 5, 6, 7};
// A longer one means that its length is wrong.
constexpr size_t kMostRecordBytes = 1 << 20;
// Of a call stack, which is the longest text there is.
constexpr size_t kMaxFieldText = 65536;
constexpr uint64_t kMostTextBytes = uint64_t{512} << 20;

// `each` gets (type, body) of all that are complete; gives the bytes that are left over.
template <class Each>
size_t ForEachPart(Bytes bytes, Each each) {
  while (bytes.size() >= kHeaderBytes) {
    const auto type = LoadUnchecked<uint16_t>(bytes, 0);
    const auto length = LoadUnchecked<uint32_t>(bytes, sizeof type);
    if (length > bytes.size() - kHeaderBytes) break;
    each(type, bytes.subspan(kHeaderBytes, length));
    bytes = bytes.subspan(kHeaderBytes + length);
  }
  return bytes.size();
}

bool HasWholeFields(Bytes body, size_t fixed) {
  return body.size() >= fixed && ForEachPart(body.subspan(fixed), [](uint16_t, Bytes) {}) == 0;
}

bool HasField(Bytes body, size_t fixed, uint16_t wanted) {
  bool found = false;
  if (body.size() < fixed) return false;
  const size_t left = ForEachPart(body.subspan(fixed), [&](uint16_t type, Bytes) { found = found || type == wanted; });
  return found && left == 0;
}

}  // namespace

std::string Listed(std::string_view joined) {
  std::string lines;
  for (const char c : joined) {
    lines += c;
    if (c == ';') lines += "\r\n";
  }
  return lines;
}

FrameworkData::Reader FrameworkData::ReaderOf(std::string_view base) {
  struct KnownFile {
    std::string_view base;
    Reader reader;
  };
  static constexpr KnownFile kFiles[] = {
      {"torch.op_range", {&FrameworkData::TakeTorchRange}},
      {"torch.op_mark", {&FrameworkData::TakeTorchMark}},
      {"torch.memory_usage", {&FrameworkData::TakeTorchMemory}},
      {"torch.python_tracer_func", {&FrameworkData::TakePythonCall, PythonCalls::kRecordBytes}},
      {"torch.python_tracer_hash", {&FrameworkData::TakePythonName}},
      {"torch.gc_record", {&FrameworkData::TakeCollection, kCollectionBytes}},
      {"torch.param_tensor_info", {&FrameworkData::Pass}},  // of nothing that is shown
      {"mindspore.op_range", {&FrameworkData::TakeMindSporeRange}},
  };
  if (base.starts_with(kOldMindSporeRange)) return {&FrameworkData::TakeOldMindSporeRange};
  const auto known = std::ranges::find(kFiles, base, &KnownFile::base);
  return known == std::end(kFiles) ? Reader() : known->reader;
}

bool FrameworkData::IsFile(std::string_view base) { return ReaderOf(base).take != nullptr; }

void FrameworkData::Begin(std::string_view base) {
  reader_ = ReaderOf(base);
  lost_ = reader_.take == nullptr;
  carried_.clear();
}

// Of complete records; gives the bytes it has used.
size_t FrameworkData::Take(Bytes bytes) {
  const auto take = [this](Bytes body, size_t header) {
    ++records;
    if ((this->*reader_.take)(body)) return;
    ++bad_records;
    bad_bytes += header + body.size();
  };
  if (const size_t each = reader_.record_bytes; each > 0) {
    size_t used = 0;
    for (; bytes.size() - used >= each; used += each) take(bytes.subspan(used, each), 0);
    return used;
  }
  const size_t left = ForEachPart(bytes, [&](uint16_t, Bytes body) { take(body, kHeaderBytes); });
  const Bytes rest = bytes.last(left);
  lost_ = rest.size() >= kHeaderBytes && LoadUnchecked<uint32_t>(rest, sizeof(uint16_t)) > kMostRecordBytes;
  if (lost_) ++bad_records;
  return bytes.size() - left;
}

void FrameworkData::Feed(Bytes bytes) {
  if (!lost_) {
    if (!carried_.empty()) {
      carried_.insert(carried_.end(), bytes.begin(), bytes.end());
      const size_t used = Take(carried_);
      carried_.erase(carried_.begin(), carried_.begin() + static_cast<std::ptrdiff_t>(used));
    } else {
      const Bytes rest = bytes.subspan(Take(bytes));
      carried_.assign(rest.begin(), rest.end());
    }
    if (lost_) {
      bad_bytes += carried_.size();
      carried_.clear();
    }
  } else {
    bad_bytes += bytes.size();
  }
}

void FrameworkData::End() {
  if (carried_.empty()) return;
  ++bad_records;
  bad_bytes += carried_.size();
  carried_.clear();
}

int32_t FrameworkData::TextOf(Bytes field) {
  const size_t known = texts.size();
  if (text_bytes_ >= kMostTextBytes) {
    ++left_out_texts;
    return static_cast<int32_t>(texts.Intern(Strings::kOther));
  }
  const std::string text = RepairedText(AsText(field), kMaxFieldText);
  const int64_t id = texts.Intern(text);
  if (texts.size() > known) text_bytes_ += text.size();
  return static_cast<int32_t>(id);
}

bool FrameworkData::TakeTorchRange(Bytes body) {
  return TakeRange(body, HasWholeFields(body, kRangeBytes) ? kRangeBytes : kOldRangeBytes, kTorchTexts);
}

bool FrameworkData::TakeRange(Bytes body, size_t fixed, std::span<const uint16_t, 5> text_types) {
  if (!HasWholeFields(body, fixed)) return false;
  const RecordView record(body);
  FrameworkOperator made;
  made.begin = static_cast<int64_t>(record.U64(0));
  made.end = static_cast<int64_t>(record.U64(8));
  if (made.end < made.begin) return false;
  made.sequence = static_cast<int64_t>(record.U64(16));
  made.thread = record.U64(32);
  made.forward_thread = record.U64(48);
  ForEachPart(body.subspan(fixed), [&](uint16_t type, Bytes field) {
    const auto found = std::ranges::find(text_types, type);
    if (found != text_types.end()) made.*kRangeTexts[static_cast<size_t>(found - text_types.begin())] = TextOf(field);
  });
  operators.push_back(made);
  return true;
}

bool FrameworkData::TakeTorchMark(Bytes body) {
  if (!HasWholeFields(body, kMarkBytes)) return false;
  const RecordView record(body);
  if (record.U64(8) > static_cast<uint64_t>(QueueMark::Kind::kDequeueEnd)) return false;
  QueueMark made;
  made.time = static_cast<int64_t>(record.U64(0));
  made.kind = static_cast<QueueMark::Kind>(record.U64(8));
  made.correlation = record.U64(16);
  made.thread = record.U64(24);
  ForEachPart(body.subspan(kMarkBytes), [&](uint16_t type, Bytes field) {
    if (type == 1) made.name = TextOf(field);
  });
  marks.push_back(made);
  return true;
}

bool FrameworkData::TakeTorchMemory(Bytes body) {
  return HasWholeFields(body, FrameworkMemories::kRecordBytes) && memory.Take(body);
}

bool FrameworkData::TakePythonName(Bytes body) {
  if (!HasWholeFields(body, kPythonNameBytes)) return false;
  const uint64_t key = RecordView(body).U64(0);
  ForEachPart(body.subspan(kPythonNameBytes), [&](uint16_t type, Bytes field) {
    if (type == 1) python.Name(key, TextOf(field));
  });
  return true;
}

bool FrameworkData::TakeCollection(Bytes body) {
  const RecordView record(body);
  const GarbageCollection made{static_cast<int64_t>(record.U64(8)), static_cast<int64_t>(record.U64(16))};
  if (made.end < made.begin) return false;
  collections.push_back(made);
  return true;
}

// The versions between have the older layouts under either name.
bool FrameworkData::TakeMindSporeRange(Bytes body) {
  constexpr uint16_t kName = 13;
  if (!HasField(body, kMindSporeRangeBytes, kName) && TakeOldMindSporeRange(body)) return true;
  if (!HasWholeFields(body, kMindSporeRangeBytes)) return false;
  const RecordView record(body);
  FrameworkOperator made;
  made.thread = record.U64(0);
  made.begin = static_cast<int64_t>(record.U64(24));
  made.end = static_cast<int64_t>(record.U64(32));
  if (made.end < made.begin) return false;
  ForEachPart(body.subspan(kMindSporeRangeBytes), [&](uint16_t type, Bytes field) {
    if (type == kName) made.name = TextOf(field);
  });
  operators.push_back(made);
  return true;
}

bool FrameworkData::TakeOldMindSporeRange(Bytes body) {
  const auto fixed = std::ranges::find_if(kOldMindSporeRangeBytes,
                                          [&](size_t bytes) { return HasField(body, bytes, kOldMindSporeTexts.front()); });
  return fixed != std::end(kOldMindSporeRangeBytes) && TakeRange(body, *fixed, kOldMindSporeTexts);
}

void FrameworkData::Finish(const std::function<int64_t(int64_t)>& clock) {
  for (FrameworkOperator& op : operators) {
    op.begin = clock(op.begin);
    op.end = std::max(op.begin, clock(op.end));
  }
  for (QueueMark& mark : marks) mark.time = clock(mark.time);
  bad_times += std::erase_if(operators, [](const FrameworkOperator& op) { return op.begin < 0; });
  bad_times += std::erase_if(marks, [](const QueueMark& mark) { return mark.time < 0; });
  for (GarbageCollection& collection : collections) {
    collection.begin = clock(collection.begin);
    collection.end = std::max(collection.begin, clock(collection.end));
  }
  bad_times += std::erase_if(collections, [](const GarbageCollection& collection) { return collection.begin < 0; });
  std::ranges::stable_sort(collections, {}, &GarbageCollection::begin);
  python.Finish(clock);
  memory.Finish(clock);
  bad_times += python.bad_times + memory.bad_times;
  PairMarks();
  BuildTrees();
  FindSteps();
}

// The end of a half has the task's number, and its begin, too, but in the first half of torch_npu's: that belongs to the
// next end of its thread and name.
void FrameworkData::PairMarks() {
  using ByPlace = std::map<std::pair<uint64_t, int32_t>, QueueMark>;
  struct Begun {
    std::map<uint64_t, QueueMark> by_number;
    ByPlace by_place;
  };
  std::array<Begun, 2> begun;
  SortRecords(&marks, [](const QueueMark& a, const QueueMark& b) { return a.time < b.time; });
  for (const QueueMark& mark : marks) {
    const bool taken = mark.kind >= QueueMark::Kind::kDequeueBegin;
    auto& [by_number, by_place] = begun[taken ? 1 : 0];
    const std::pair place(mark.thread, mark.name);
    if (mark.kind == QueueMark::Kind::kEnqueueBegin || mark.kind == QueueMark::Kind::kDequeueBegin) {
      const bool is_first = mark.correlation != 0 ? by_number.try_emplace(mark.correlation, mark).second
                                                  : by_place.insert_or_assign(place, mark).second;
      unpaired_marks += is_first ? 0 : 1;
      continue;
    }
    const auto numbered = by_number.extract(mark.correlation);
    const auto placed = numbered.empty() ? by_place.extract(place) : ByPlace::node_type();
    if (numbered.empty() && placed.empty()) {
      ++unpaired_marks;
      continue;
    }
    const QueueMark& begin = numbered.empty() ? placed.mapped() : numbered.mapped();
    QueueTask& half = queue.emplace_back();
    half.correlation = mark.correlation;
    (taken ? half.taken : half.put) = {begin.time, mark.time, begin.thread, begin.name >= 0 ? begin.name : mark.name, true};
  }
  for (const Begun& left : begun) unpaired_marks += left.by_number.size() + left.by_place.size();
  Release(&marks);
  JoinHalves();
  for (size_t i = 0; i < queue.size(); ++i) {
    if (queue[i].taken.known) taken_.push_back(static_cast<uint32_t>(i));
  }
  std::ranges::sort(taken_, {}, [this](uint32_t task) {
    return std::tuple(queue[task].taken.thread, queue[task].taken.begin, task);
  });
}

// Of several halves of a kind with one number the first counts.
void FrameworkData::JoinHalves() {
  SortRecords(&queue, [](const QueueTask& a, const QueueTask& b) { return a.correlation < b.correlation; });
  size_t kept = 0;
  for (const QueueTask& half : queue) {
    if (kept == 0 || queue[kept - 1].correlation != half.correlation) {
      queue[kept++] = half;
      continue;
    }
    QueueTask::Half& joined = half.put.known ? queue[kept - 1].put : queue[kept - 1].taken;
    if (joined.known) {
      unpaired_marks += 2;
    } else {
      joined = half.put.known ? half.put : half.taken;
    }
  }
  queue.resize(kept);
}

void FrameworkData::BuildTrees() {
  SortRecords(&operators, [](const FrameworkOperator& a, const FrameworkOperator& b) {
    return std::tie(a.thread, a.begin, b.end) < std::tie(b.thread, b.begin, a.end);
  });
  std::vector<int32_t> open;
  for (size_t i = 0; i < operators.size(); ++i) {
    FrameworkOperator& op = operators[i];
    if (i > 0 && operators[i - 1].thread != op.thread) open.clear();
    while (!open.empty() && operators[static_cast<size_t>(open.back())].end < op.end) open.pop_back();
    op.parent = open.empty() ? -1 : open.back();
    open.push_back(static_cast<int32_t>(i));
  }
}

int32_t FrameworkData::TakerAt(uint64_t thread, int64_t t_ns) const {
  const auto is_of_the_allocator = [this](int32_t op) {
    const std::string_view name = texts.Text(operators[static_cast<size_t>(op)].name);
    return name == "empty_tensor" || name == "malloc_workspace";
  };
  int32_t op = LauncherAt(thread, t_ns);
  while (op >= 0 && is_of_the_allocator(op)) op = operators[static_cast<size_t>(op)].parent;
  return op;
}

std::string FrameworkData::NameOf(const PythonCall& call) const {
  return call.name >= 0 ? std::string(texts.Text(call.name)) : std::to_string(call.key);
}

std::optional<int64_t> FrameworkData::StepNumber(std::string_view name) {
  constexpr std::string_view kStep = "ProfilerStep#";
  int64_t number = 0;
  if (!name.starts_with(kStep) || !ParseNumber(name.substr(kStep.size()), &number)) return std::nullopt;
  return number;
}

void FrameworkData::FindSteps() {
  for (const FrameworkOperator& op : operators) {
    if (const auto number = StepNumber(texts.Text(op.name))) steps.push_back({*number, op.begin, op.end});
  }
  std::ranges::stable_sort(steps, {}, &FrameworkStep::begin);
}

std::optional<int64_t> FrameworkData::StepAt(int64_t t_ns) const {
  const auto after = std::ranges::upper_bound(steps, t_ns, {}, &FrameworkStep::begin);
  if (after == steps.begin() || std::prev(after)->end < t_ns) return std::nullopt;
  return std::prev(after)->number;
}

void FrameworkData::AddSteps(const TimeWindow& window, StepSpans* to) const {
  for (const FrameworkStep& step : steps) {
    if (window.Has(step.begin)) to->Add(StepSource::kFramework, {step.number, step.begin, step.end});
  }
}

std::vector<BackwardPair> FrameworkData::BackwardPairs() const {
  std::vector<BackwardPair> pairs;
  std::vector<uint32_t> order;
  for (size_t i = 0; i < operators.size(); ++i) {
    if (operators[i].sequence >= 0) order.push_back(static_cast<uint32_t>(i));
  }
  std::ranges::sort(order, {}, [this](uint32_t i) { return std::tuple(operators[i].sequence, operators[i].begin, i); });
  for (size_t i = 0; i < order.size();) {
    BackwardPair pair;
    pair.sequence = operators[order[i]].sequence;
    for (; i < order.size() && operators[order[i]].sequence == pair.sequence; ++i) {
      const bool forward = operators[order[i]].forward_thread == 0;
      if (forward) pair.forward = static_cast<int32_t>(order[i]);
      if (!forward && pair.backward < 0) pair.backward = static_cast<int32_t>(order[i]);
    }
    if (pair.forward >= 0 && pair.backward >= 0) pairs.push_back(pair);
  }
  return pairs;
}

int32_t FrameworkData::Innermost(uint64_t thread, int64_t t_ns) const {
  const auto after = std::ranges::upper_bound(operators, std::tuple(thread, t_ns), {}, [](const FrameworkOperator& op) {
    return std::tuple(op.thread, op.begin);
  });
  if (after == operators.begin() || std::prev(after)->thread != thread) return -1;
  auto at = static_cast<int32_t>(after - operators.begin()) - 1;
  while (at >= 0 && operators[static_cast<size_t>(at)].end < t_ns) at = operators[static_cast<size_t>(at)].parent;
  return at;
}

int32_t FrameworkData::LauncherAt(uint64_t thread, int64_t t_ns) const {
  const auto after = std::ranges::upper_bound(taken_, std::tuple(thread, t_ns), {}, [this](uint32_t task) {
    return std::tuple(queue[task].taken.thread, queue[task].taken.begin);
  });
  if (after != taken_.begin()) {
    const QueueTask& task = queue[*std::prev(after)];
    if (task.taken.thread == thread && t_ns <= task.taken.end) {
      return task.put.known ? Innermost(task.put.thread, task.put.begin) : -1;
    }
  }
  return Innermost(thread, t_ns);
}

}  // namespace profd::exporting::operators
