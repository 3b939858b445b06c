// Chrome's trace JSON, `msprof_<timestamp>.json`: one array, one event per line.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <set>

#include "base/mutex.h"
#include "export/decoder.h"
#include "export/formats.h"
#include "export/number_text.h"
#include "export/shared_file.h"
#include "export/trace/activity_slices.h"
#include "export/trace/json_text.h"
#include "export/trace/layer_json.h"
#include "export/trace/legacy_parts.h"
#include "export/trace/operator_layers.h"
#include "export/trace/process_ids.h"
#include "export/trace/series.h"
#include "export/trace/slices.h"
#include "export/trace/utilization.h"

namespace profd::exporting {
namespace {

constexpr size_t kBufferSize = 256 * 1024;
// Between a counter's timestamp and its args.
constexpr std::string_view kToArgs = "\",\"ph\":\"C\",\"args\":{";
constexpr std::string_view kEnd = "}}";

// A counter's text but for timestamp and values.
struct JsonArg {
  std::string key;  // "\"Rx(MB/s)\":"
  ArgSource source;
};
struct JsonCounter {
  std::string head;  // ",\n{\"name\":\"Rx\",\"pid\":1,\"tid\":0,\"ts\":\""
  std::vector<JsonArg> args;
  size_t size = 0;  // at most
};
using JsonSeries = std::vector<JsonCounter>;

// What the sinks share.
struct Shared {
  explicit Shared(const ExportPlan& export_plan) : plan(export_plan), ids(export_plan.dumps) {}

  // True for the first caller.
  bool IsNew(uint32_t pid, int64_t tid) {
    constexpr size_t kMaxNames = 1'000'000;  // later threads go without a name
    MutexLock lock(mutex);
    return named.size() < kMaxNames && named.insert({pid, tid}).second;
  }

  ExportPlan plan;
  ProcessIds ids;
  SharedFile file;
  std::atomic<uint64_t> events = 0;
  Mutex mutex;
  std::set<std::pair<uint32_t, int64_t>> named GUARDED_BY(mutex);
  std::unique_ptr<Shared> marks;  // a file of marks and ranges alone; null: not wanted
};

// One table of one device as this sink writes it.
struct TableState {
  const TableLayout* layout = nullptr;
  size_t keys = 0;
  uint32_t pid = 0;
  SeriesCache<JsonSeries> series;
  // Rows of one timestamp whose args are put together.
  struct Merge {
    int64_t t_ns = 0;
    std::vector<int64_t> seen;  // first keys
    std::vector<std::string> heads;
    std::vector<std::string> args;
  } merge;
};

class TraceSink final : public FormatSink, public LayerSink {
 public:
  TraceSink(Shared* shared, const ExportTask& task)
      : shared_(*shared),
        dump_(task.dump),
        begin_ns_(task.place->clock.begin_us * 1000),
        end_us_(task.place->clock.RecordedToUs()),
        v6_(IsV6(task.place->chip)),
        utilization_(task.place->aicore_mhz),
        activity_(*shared->plan.dumps[task.dump], *shared->plan.strings),
        marks_(shared->marks == nullptr ? nullptr : std::make_unique<TraceSink>(shared->marks.get(), task)),
        buffer_(std::make_unique<char[]>(kBufferSize)) {}

  void Take(const Batch& batch) override {
    if (!status_.ok()) return;
    if (IsActivity(batch.table->id)) {
      TakeActivity(batch);
    } else if (batch.table->id == TableId::kAicorePmu) {
      device_ = batch.device;
      TakeRows(utilization_.Convert(batch));
    } else {
      TakeRows(batch);
    }
  }

  void TakeEvent(const Event& event) override {
    if (!status_.ok()) return;
    const DumpInfo& dump = *shared_.plan.dumps[dump_];
    for (const Slice& slice : SlicesOf(event, dump)) Write(slice, event.device);
    const bool is_mark = event.kind == EventKind::kMark || event.kind == EventKind::kRange;
    if (marks_ != nullptr && is_mark) marks_->TakeEvent(event);
  }

  void Enter(const LayerThread& thread) override {
    const uint32_t pid = NameProcess(*thread.process, thread.device);
    NameThread(pid, thread.tid, thread.name);
    layer_place_ = fmt::format("\",\"pid\":{},\"tid\":{},", pid, thread.tid);
  }

  void Take(const LayerEvent& event) override {
    if (!status_.ok()) return;
    char number[40];
    const std::string_view duration(number, static_cast<size_t>(
        AppendShortest(number, (static_cast<double>(event.dur_ns) + static_cast<double>(event.rest_ns)) / 1000.0) - number));
    const std::string_view timestamp = micros_.Of(event.t_ns);
    layer_args_.clear();
    AppendLayerArgs(event.args, &layer_args_);
    const std::string_view category = event.category.empty() ? "" : "\"cat\":\"";
    layer_name_.clear();
    AppendJsonEscaped(&layer_name_, event.name);
    WriteText({",\n{\"name\":\"", layer_name_, layer_place_, "\"ts\":\"", timestamp, "\",\"dur\":", duration,
               ",\"ph\":\"X\",", category, event.category, category.empty() ? "" : "\",", "\"args\":{", layer_args_,
               kEnd});
    for (const LayerFlow& flow : event.flows) WriteFlow(flow, timestamp);
  }

  Status Finish() override {
    TakeRows(utilization_.Finish(device_));
    for (const ActivitySlices::Owned& range : activity_.OpenRanges(end_us_, shared_.plan.window)) Write(range.slice, range.owner.device);
    for (auto& [key, state] : tables_) FlushMerge(&state);
    Flush();
    shared_.events += events_;
    if (marks_ != nullptr && status_.ok()) status_ = marks_->Finish();
    return status_;
  }

 private:
  void TakeActivity(const Batch& batch) {
    for (size_t row = 0; row < batch.rows(); ++row) {
      if (batch.t_ns[row] < begin_ns_) continue;
      if (const std::optional<Slice> slice = activity_.Of(batch, row)) Write(*slice, batch.device);
    }
  }

  void TakeRows(const Batch& batch) {
    if (batch.rows() == 0) return;
    TableState& state = StateOf(batch);
    auto make = [&](std::span<const int64_t> keys) {
      return MakeSeries(state, *batch.table, keys);
    };
    for (size_t row = 0; row < batch.rows(); ++row) {
      int64_t t_ns = batch.t_ns[row];
      // Nothing before the begin of the collection, as the vendor's analyser has it.
      if (t_ns < begin_ns_) continue;
      const JsonSeries& series = state.series.Find(batch, row, state.keys, make);
      if (state.layout->merge) {
        Join(&state, series, batch, row);
        continue;
      }
      std::string_view timestamp = micros_.Of(t_ns);
      for (const JsonCounter& counter : series) WriteCounter(counter, timestamp, batch, row);
    }
  }

  TableState& StateOf(const Batch& batch) {
    constexpr size_t kMaxTables = 4096;  // devices of samples.tsv are untrusted
    if (tables_.size() >= kMaxTables) {
      for (auto& [key, state] : tables_) FlushMerge(&state);
      tables_.clear();
    }
    auto [it, added] = tables_.try_emplace({batch.table->id, batch.device});
    TableState& state = it->second;
    if (!added) return state;
    state.layout = &LayoutOf(batch.table->id, v6_);
    state.keys = std::min(kMaxKeys, KeyCount(*batch.table));
    state.pid = NameProcess(state.layout->process, batch.device);
    return state;
  }

  JsonSeries MakeSeries(const TableState& state, const TableSpec& table,
                        std::span<const int64_t> keys) {
    JsonSeries series;
    for (const NamedCounter& named : CountersOf(*state.layout, table, keys, shared_.plan.strings)) {
      JsonCounter counter;
      counter.head = fmt::format(",\n{{\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":\"",
                                 JsonEscaped(named.name), state.pid, named.tid);
      counter.size = counter.head.size() + kToArgs.size() + kEnd.size() + 32;
      for (const NamedArg& arg : named.args) {
        counter.args.push_back({fmt::format("\"{}\":", JsonEscaped(arg.key)), arg.source});
        counter.size += counter.args.back().key.size() + 33;
      }
      series.push_back(std::move(counter));
    }
    return series;
  }

  static char* Put(char* out, std::string_view text) {
    return std::ranges::copy(text, out).out;  // not memcpy, which takes no null pointer of an empty text
  }

  static char* PutValue(char* out, const ArgSource& source, const Batch& batch, size_t row) {
    ArgValue value = ValueOf(source, batch, row);
    return value.is_int ? std::to_chars(out, out + 32, value.integer).ptr
                        : AppendShortest(out, value.real);
  }

  void WriteCounter(const JsonCounter& counter, std::string_view timestamp, const Batch& batch,
                    size_t row) {
    char* out = Reserve(counter.size);
    out = Put(out, counter.head);
    out = Put(out, timestamp);
    out = Put(out, kToArgs);
    for (size_t i = 0; i < counter.args.size(); ++i) {
      if (i > 0) *out++ = ',';
      out = Put(out, counter.args[i].key);
      out = PutValue(out, counter.args[i].source, batch, row);
    }
    out = Put(out, kEnd);
    used_ = static_cast<size_t>(out - buffer_.get());
    ++events_;
  }

  void Join(TableState* state, const JsonSeries& series, const Batch& batch, size_t row) {
    TableState::Merge& merge = state->merge;
    int64_t key = batch.Ints(0)[row];
    bool seen = std::ranges::find(merge.seen, key) != merge.seen.end();
    if (merge.t_ns != batch.t_ns[row] || seen) FlushMerge(state);
    merge.t_ns = batch.t_ns[row];
    merge.seen.push_back(key);
    merge.heads.resize(series.size());
    merge.args.resize(series.size());
    for (size_t i = 0; i < series.size(); ++i) {
      std::string& args = merge.args[i];
      if (args.empty()) merge.heads[i] = series[i].head;
      for (const JsonArg& arg : series[i].args) {
        char value[40];
        if (!args.empty()) args += ',';
        args += arg.key;
        args.append(value, PutValue(value, arg.source, batch, row));
      }
    }
    constexpr size_t kMaxMerged = 8;  // dies
    if (merge.seen.size() >= kMaxMerged) FlushMerge(state);
  }

  void FlushMerge(TableState* state) {
    TableState::Merge& merge = state->merge;
    if (merge.seen.empty()) return;
    std::string_view timestamp = micros_.Of(merge.t_ns);
    for (size_t i = 0; i < merge.heads.size(); ++i) {
      WriteText({merge.heads[i], timestamp, kToArgs, merge.args[i], kEnd});
      merge.args[i].clear();
    }
    merge.seen.clear();
  }

  uint32_t NameProcess(const ProcessSpec& process, int device) {
    uint32_t pid = shared_.ids.Pid(dump_, device, process);
    if (!shared_.IsNew(pid, -1)) return pid;
    WriteMeta(pid, 0, "process_name", fmt::format("\"name\":\"{}\"", process.name));
    WriteMeta(pid, 0, "process_labels",
              fmt::format("\"labels\":\"{}\"", JsonEscaped(shared_.ids.Label(dump_, device))));
    WriteMeta(pid, 0, "process_sort_index", fmt::format("\"sort_index\":{}", process.sort_index));
    return pid;
  }

  void NameThread(uint32_t pid, int64_t tid, std::string_view name) {
    if (!shared_.IsNew(pid, tid)) return;
    WriteMeta(pid, tid, "thread_name", fmt::format("\"name\":\"{}\"", JsonEscaped(name)));
    WriteMeta(pid, tid, "thread_sort_index", fmt::format("\"sort_index\":{}", tid));
  }

  // The vendor's ids; where several dumps are in one file, also whose.
  void WriteFlow(const LayerFlow& flow, std::string_view timestamp) {
    const FlowNames& named = FlowNamesOf(flow.kind);
    const bool launch = flow.kind == LayerFlow::Kind::kLaunch;
    const bool shown = launch || flow.kind == LayerFlow::Kind::kMark;
    // That of a further dump is in the low half, where the first one's has 0.
    char number[24];
    const auto digits = [&number](uint64_t value) {
      return std::string_view(number, static_cast<size_t>(AppendUint(number, value) - number));
    };
    std::string several;
    if (!launch && shared_.plan.dumps.size() > 1) several = fmt::format("{}/{}", dump_, flow.id);
    const std::string_view id = !several.empty() ? several : digits(launch ? (flow.id << 32) + dump_ : flow.id);
    WriteText({",\n{\"name\":\"", named.name, shown ? std::string_view(id) : "", layer_place_, "\"ph\":\"",
               flow.from ? "s" : "f\",\"bp\":\"e", "\",\"cat\":\"", named.category, "\",\"id\":\"", id, "\",\"ts\":\"",
               timestamp, "\"}"});
  }

  void WriteMeta(uint32_t pid, int64_t tid, std::string_view name, std::string_view args) {
    WriteText(
        {fmt::format(",\n{{\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ph\":\"M\",\"args\":{{{}}}}}",
                     name, pid, tid, args)});
  }

  void Write(const Slice& slice, int device) {
    uint32_t pid = NameProcess(*slice.process, device);
    NameThread(pid, slice.tid, slice.thread);
    const std::string_view timestamp = micros_.Of(slice.t_ns);
    std::string text;
    switch (slice.kind) {
      case Slice::Kind::kSlice: {
        char number[40];
        text = fmt::format("\"ts\":\"{}\",\"dur\":", timestamp);
        text.append(number, AppendShortest(number, static_cast<double>(slice.dur_ns) / 1000.0));
        text += ",\"ph\":\"X\"";
        if (!slice.category.empty()) text += fmt::format(",\"cat\":\"{}\"", JsonEscaped(slice.category));
        break;
      }
      case Slice::Kind::kInstant:
        // Other viewers take "i", too; MindStudio Insight ignores that one.
        text = fmt::format("\"ts\":\"{}\",\"ph\":\"I\",\"s\":\"t\"", timestamp);
        break;
      case Slice::Kind::kFlowStart:
        text = FlowText("s", slice.category, fmt::format("{}_{}", pid, slice.tid), timestamp);
        break;
      case Slice::Kind::kFlowStep:
        text = FlowText("t", slice.category, fmt::format("{}_{}", pid, slice.tid), timestamp);
        break;
    }
    const std::string place = fmt::format("\"pid\":{},\"tid\":{},", pid, slice.tid);
    WriteText({",\n{\"name\":\"", JsonEscaped(slice.name), "\",", place, text, ",\"args\":{", ArgsOf(slice), kEnd});
    layer_place_ = "\"," + place;
    if (slice.mark) WriteFlow(MarkFlow(*slice.mark), timestamp);
    // Viewers take one begin of a flow only, and count each further one as damage.
    if (slice.flow_end == Slice::FlowEnd::kNone || slice.flow_end == Slice::FlowEnd::kAround) return;
    constexpr std::string_view kArrow = "HostToDevice";
    text = FlowText(slice.flow_end == Slice::FlowEnd::kFrom ? "s" : "f\",\"bp\":\"e", kArrow,
                    fmt::format("{} {}", dump_, slice.flow), timestamp);
    WriteText({",\n{\"name\":\"", kArrow, "\",", place, text, ",\"args\":{", kEnd});
  }

  static std::string FlowText(std::string_view phase, std::string_view category, std::string_view id,
                              std::string_view timestamp) {
    return fmt::format("\"ph\":\"{}\",\"cat\":\"{}\",\"id\":\"{} {}\",\"ts\":\"{}\"", phase, category, category, id,
                       timestamp);
  }

  static std::string ArgsOf(const Slice& slice) {
    std::string args;
    auto key = [&](const std::string& name) {
      if (!args.empty()) args += ',';
      args += fmt::format("\"{}\":", JsonEscaped(name));
    };
    for (const auto& [name, value] : slice.integers) {
      key(name);
      args += std::to_string(value);
    }
    for (const auto& [name, value] : slice.texts) {
      key(name);
      args += fmt::format("\"{}\"", JsonEscaped(value));
    }
    for (const auto& [name, value] : slice.numbers) {
      char number[40];
      key(name);
      args.append(number, AppendShortest(number, value));
    }
    return args;
  }

  // One event.
  void WriteText(std::initializer_list<std::string_view> parts) {
    size_t size = 0;
    for (std::string_view part : parts) size += part.size();
    char* out = Reserve(size);
    if (out == nullptr) return;
    for (std::string_view part : parts) out = Put(out, part);
    used_ += size;
    ++events_;
  }

  // Null, and the event left out, when it could never fit: args of an event are untrusted.
  char* Reserve(size_t size) {
    if (used_ + size > kBufferSize) Flush();
    return size > kBufferSize ? nullptr : buffer_.get() + used_;
  }

  void Flush() {
    if (status_.ok()) status_ = shared_.file.AppendItems({buffer_.get(), used_});
    used_ = 0;
  }

  Shared& shared_;
  const size_t dump_;
  const int64_t begin_ns_;
  const int64_t end_us_;
  const bool v6_;
  int device_ = -1;
  Utilization utilization_;
  ActivitySlices activity_;
  std::map<std::pair<TableId, int>, TableState> tables_;
  MicrosText micros_;
  std::string layer_place_;  // as an event has it behind its name
  std::string layer_args_;
  std::string layer_name_;
  std::unique_ptr<TraceSink> marks_;
  std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
  uint64_t events_ = 0;
  Status status_;
};

class TraceFormat final : public Format {
 public:
  std::string_view name() const override { return "trace"; }
  bool Wants(TableId) const override { return true; }
  FormatWants wants() const override { return {.events = true, .step_parts = true, .operators = true, .runtime_apis = true}; }

  Status Begin(const ExportPlan& plan) override {
    shared_ = std::make_unique<Shared>(plan);
    RETURN_IF_ERROR(Create(shared_.get(), fmt::format("msprof_{}", plan.timestamp)));
    for (const LegacyPart& part : kLegacyParts) {
      if (!plan.legacy_names) break;
      auto& shared = part.has == nullptr ? shared_->marks : parts_.emplace_back();
      shared = std::make_unique<Shared>(plan);
      RETURN_IF_ERROR(Create(shared.get(), fmt::format("{}{}{}", part.file, part.timestamped ? "_" : "",
                                                       part.timestamped ? plan.timestamp : "")));
    }
    return Status::Ok();
  }

  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    return std::unique_ptr<FormatSink>(std::make_unique<TraceSink>(shared_.get(), task));
  }

  Status TakeOperators(size_t dump, const operators::Model& model) override {
    const Place* place = shared_->plan.dumps[dump]->ClockPlace();
    if (place == nullptr) return Status::Ok();  // then there is no model
    const ExportTask task{dump, place, nullptr};
    for (size_t i = 0; i < parts_.size(); ++i) {
      const auto sink = std::make_unique<TraceSink>(parts_[i].get(), task);
      LegacyPartSink part(kLegacyParts[i], *sink);
      ShowOperators(model, shared_->plan.window, part);
      RETURN_IF_ERROR(sink->Finish());
    }
    const auto sink = std::make_unique<TraceSink>(shared_.get(), task);
    ShowOperators(model, shared_->plan.window, *sink);
    return sink->Finish();
  }

  Status End(bool complete, std::vector<OutputFile>* files) override {
    if (shared_ == nullptr) return Status::Ok();
    const std::unique_ptr<Shared> shared = std::move(shared_);
    std::vector<std::unique_ptr<Shared>> parts = std::move(parts_);
    if (!complete) return Status::Ok();
    RETURN_IF_ERROR(Complete(shared.get(), files));
    if (shared->marks != nullptr) parts.push_back(std::move(shared->marks));
    for (const std::unique_ptr<Shared>& part : parts) {
      if (part->events > 0) RETURN_IF_ERROR(Complete(part.get(), files));
    }
    return Status::Ok();
  }

 private:
  static Status Create(Shared* shared, const std::string& name) {
    RETURN_IF_ERROR(shared->file.Create(fmt::format("{}/{}.json", shared->plan.out_dir, name), shared->plan.go_on));
    return shared->file.Append("[");
  }
  static Status Complete(Shared* shared, std::vector<OutputFile>* files) {
    RETURN_IF_ERROR(shared->file.Append("\n]\n"));
    RETURN_IF_ERROR(shared->file.Commit());
    files->push_back({shared->file.path(), shared->file.bytes(), shared->events});
    return Status::Ok();
  }

  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Shared>> parts_;  // by kLegacyParts; empty: not wanted
};

}  // namespace

std::unique_ptr<Format> MakeTraceFormat() { return std::make_unique<TraceFormat>(); }

}  // namespace profd::exporting
