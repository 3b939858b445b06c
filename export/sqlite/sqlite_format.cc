#include "export/sqlite/sqlite_format.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <tuple>

#include <fmt/format.h>

#include "export/formats.h"
#include "export/sqlite/pmu_summary.h"
#include "export/sqlite/sql_schema.h"
#include "export/sqlite/sqlite_database.h"

namespace profd::exporting {
namespace {

// What the vendor's analyser writes where there is no such thing.
constexpr int64_t kNoConnection = 4000000000;
constexpr int64_t kMarker = 0;   // ENUM_MSTX_EVENT_TYPE
constexpr int64_t kPushPop = 1;
constexpr int64_t kStartEnd = 2;

// Small dumps: little slack in tables of few rows. Large ones: few leaves to remember.
uint32_t PageSizeFor(uint64_t input_bytes) {
  if (input_bytes < 32u << 20) return 4096;
  return input_bytes < 1u << 30 ? 16384 : 65536;
}

class SqliteSink : public FormatSink {
 public:
  // All outlive the sink.
  struct Shared {
    const std::vector<SqlTable>* tables;
    const std::vector<std::unique_ptr<TableState>>* states;
    std::atomic<int64_t>* last_ns;
    ProcessRanks* ranks;
  };
  SqliteSink(const Shared& shared, const LoaderPlace& where)
      : shared_(shared), where_(where), row_(where.dump_id), loaders_(shared.tables->size()), pmu_(where_) {}

  void Take(const Batch& batch) override {
    if (!status_.ok() || batch.rows() == 0) return;
    last_ns_ = std::max(last_ns_, batch.t_ns.back());
    if (batch.table->id == TableId::kAicorePmu) pmu_.Take(batch);
    for (size_t i = 0; i < loaders_.size() && status_.ok(); ++i) {
      const SqlTable& table = (*shared_.tables)[i];
      if (table.source != batch.table->id) continue;
      if (loaders_[i] == nullptr) {
        loaders_[i] = std::make_unique<RowLoader>(table, *(*shared_.states)[i], where_);
      }
      status_ = loaders_[i]->Take(batch);
    }
  }

  void TakeEvent(const Event& event) override;

  Status Finish() override {
    if (status_.ok() && !pmu_.empty()) status_ = pmu_.Write(Events(EventTable::kPmuSummary));
    for (auto& loader : loaders_) {
      if (loader != nullptr && status_.ok()) status_ = loader->Finish();
    }
    for (auto& events : events_) {
      if (events != nullptr && status_.ok()) status_ = events->Finish();
    }
    int64_t seen = shared_.last_ns->load();
    while (seen < last_ns_ && !shared_.last_ns->compare_exchange_weak(seen, last_ns_)) {
    }
    return status_;
  }

 private:
  CellLoader& Events(EventTable table);
  void AddEvent(EventTable table, std::initializer_list<int64_t> cells);
  int64_t Id(std::string_view text) { return where_.strings->Intern(text); }

  Shared shared_;
  LoaderPlace where_;
  RowCells row_;
  std::vector<std::unique_ptr<RowLoader>> loaders_;
  std::array<std::unique_ptr<CellLoader>, kEventTables> events_;
  PmuSummary pmu_;
  int64_t last_ns_ = 0;
  Status status_;
};

CellLoader& SqliteSink::Events(EventTable table) {
  auto index = static_cast<size_t>(table);
  if (events_[index] == nullptr) {
    TableState& state = *(*shared_.states)[shared_.tables->size() + index];
    events_[index] = std::make_unique<CellLoader>(state, where_.ordinal);
  }
  return *events_[index];
}

void SqliteSink::AddEvent(EventTable table, std::initializer_list<int64_t> cells) {
  if (!status_.ok()) return;
  row_.Begin();
  for (const int64_t cell : cells) row_.Int(cell);
  status_ = Events(table).Add(row_.End(), 0);
}

void SqliteSink::TakeEvent(const Event& event) {
  const int64_t end = event.t_ns + event.dur_ns;
  last_ns_ = std::max(last_ns_, end);
  if (event.rank) {
    shared_.ranks->Add(std::max<int64_t>(where_.dump_id, 0), event.pid, *event.rank);
  }
  switch (event.kind) {
    case EventKind::kMark:
    case EventKind::kRange: {
      int64_t type = event.kind == EventKind::kMark ? kMarker : event.lane ? kStartEnd : kPushPop;
      int64_t tid = event.pid << 32 | (event.tid & kNoId32);
      int64_t category = kNoId32;
      int64_t connection = kNoConnection;
      if (const auto& recorded = event.recorded) {
        type = recorded->type;
        if (!recorded->is_ex) category = recorded->category;
        if (recorded->is_ex) connection = MarkConnection(recorded->mark);
      }
      AddEvent(EventTable::kMstx, {event.t_ns, end, type, kNoId32, category, Id(event.name), tid, tid,
                                   Id(event.domain.empty() ? "default" : event.domain), connection});
      return;
    }
    case EventKind::kStep:
    case EventKind::kDeviceStep:
    case EventKind::kIteration: {
      const std::string_view kind = event.kind == EventKind::kStep         ? "step"
                                    : event.kind == EventKind::kDeviceStep ? "device_step"
                                                                           : "iteration";
      AddEvent(EventTable::kSteps, {event.t_ns, end, event.device, Id(kind), Id(event.name),
                                    event.value, event.pid, event.tid, event.partial ? 1 : 0});
      for (const Event::Arg& arg : event.args) {
        AddEvent(EventTable::kStepArgs, {event.t_ns, event.device, event.value, Id(arg.name),
                                         static_cast<int64_t>(arg.value)});
      }
      return;
    }
    case EventKind::kLoss:
      AddEvent(EventTable::kGaps, {event.t_ns, end, event.device, Id(event.name), event.value});
      return;
    case EventKind::kFrame:  // stacks.tsv is a table already; the vendor's schema has none for it
      return;
  }
}

}  // namespace

Status SqliteFormat::Begin(const ExportPlan& plan) {
  plan_ = plan;
  path_ = fmt::format("{}/msprof_{}.db", plan.out_dir, plan.timestamp);
  part_path_ = path_ + ".part";
  ::unlink(part_path_.c_str());
  uint64_t bytes = 0;
  for (const DumpInfo* dump : plan.dumps) bytes += dump->bytes;
  Result<SqliteDatabase> database = SqliteDatabase::Open(part_path_);
  if (!database.ok()) return database.status();
  // Some table must be there for the first page to be; it goes when the others come.
  RETURN_IF_ERROR(database->Run(
      fmt::format("PRAGMA page_size={}; CREATE TABLE unfinished (x)", PageSizeFor(bytes))));
  database = Internal("closed");
  RETURN_IF_ERROR(OpenPages());
  last_ns_.resize(plan.dumps.size());
  NumberPlaces();
  tables_ = SqlRowTables();
  for (size_t i = 0; i < tables_.size() + kEventTables + kOperatorTables; ++i) {
    states_.push_back(std::make_unique<TableState>(*pages_, places_.size() + 1));
  }
  return {};
}

Status SqliteFormat::OpenPages() {
  UniqueFd fd(::open(part_path_.c_str(), O_RDWR | O_CLOEXEC));
  struct stat info = {};
  std::array<unsigned char, 18> header{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 ||
      ::pread(fd.get(), header.data(), header.size(), 0) != ssize_t{header.size()}) {
    return Status::FromErrno(errno, part_path_);
  }
  uint32_t page_size = static_cast<uint32_t>(header[16]) << 8 | header[17];
  if (page_size == 1) page_size = 65536;
  auto pages = static_cast<uint64_t>(info.st_size) / page_size;
  pages_ = std::make_unique<PageFile>(std::move(fd), page_size, static_cast<uint32_t>(pages), kSqliteLockByte,
                                      plan_.go_on);
  return {};
}

// By dump, then device, the host first.
void SqliteFormat::NumberPlaces() {
  std::vector<std::tuple<size_t, int, const Place*>> order;
  for (size_t i = 0; i < plan_.dumps.size(); ++i) {
    for (const Place& place : plan_.dumps[i]->places) order.emplace_back(i, place.device, &place);
  }
  std::ranges::sort(order);
  for (const auto& entry : order) places_.emplace(std::get<const Place*>(entry), places_.size());
}

LoaderPlace SqliteFormat::LoaderOf(size_t dump, const Place* place) const {
  const auto known = places_.find(place);
  return {.place = place,
          .ordinal = known == places_.end() ? places_.size() : known->second,
          .dump_id = plan_.dumps.size() > 1 ? static_cast<int64_t>(dump) : -1,
          .strings = plan_.strings,
          .compat_msprof = plan_.compat_msprof};
}

Result<std::unique_ptr<FormatSink>> SqliteFormat::Open(const ExportTask& task) {
  SqliteSink::Shared shared{&tables_, &states_, &last_ns_[task.dump], &ranks_};
  return std::unique_ptr<FormatSink>(std::make_unique<SqliteSink>(shared, LoaderOf(task.dump, task.place)));
}

Status SqliteFormat::MakeSchema() {
  Result<SqliteDatabase> database = SqliteDatabase::Open(part_path_);
  if (!database.ok()) return database.status();
  const bool merged = plan_.dumps.size() > 1;
  RETURN_IF_ERROR(database->Run("BEGIN; DROP TABLE unfinished"));
  const std::vector<int64_t> last_ns(last_ns_.begin(), last_ns_.end());
  RETURN_IF_ERROR(WriteSmallTables(*database, plan_, last_ns, ranks_));
  std::vector<const SqlTable*> filled;
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (states_[i]->tree.empty()) continue;
    filled.push_back(&tables_[i]);
    RETURN_IF_ERROR(database->Run(CreateSql(tables_[i], merged)));
  }
  for (size_t i = 0; i < kEventTables; ++i) {
    const EventTableSpec& table = EventTableOf(static_cast<EventTable>(i));
    if (!table.always && states_[tables_.size() + i]->tree.empty()) continue;
    RETURN_IF_ERROR(database->Run(CreateSql(table, merged)));
  }
  std::array<bool, kOperatorTables> with_operators{};
  for (size_t i = 0; i < kOperatorTables; ++i) {
    with_operators[i] = !OperatorStates()[i]->tree.empty();
    const OperatorTableSpec& table = OperatorTableOf(static_cast<OperatorTable>(i));
    if (with_operators[i]) RETURN_IF_ERROR(database->Run(CreateSql(table.name, table.columns, merged)));
  }
  RETURN_IF_ERROR(database->Run(OperatorViewsSql(with_operators, merged)));
  RETURN_IF_ERROR(database->Run(SamplesViewSql(filled, merged)));
  RETURN_IF_ERROR(database->Run(EventViewsSql(merged)));
  RETURN_IF_ERROR(database->Run(ActivityViewsSql(filled, merged)));
  return database->Run("COMMIT");
}

std::string SqliteFormat::TableName(size_t state) const {
  if (state < tables_.size()) return tables_[state].name;
  state -= tables_.size();
  if (state < kEventTables) return std::string(EventTableOf(static_cast<EventTable>(state)).name);
  return std::string(OperatorTableOf(static_cast<OperatorTable>(state - kEventTables)).name);
}

Status SqliteFormat::FinishTrees() {
  std::unordered_map<std::string, uint32_t> roots;
  {
    Result<SqliteDatabase> database = SqliteDatabase::Open(part_path_);
    if (!database.ok()) return database.status();
    auto rows = database->Query("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table'");
    if (!rows.ok()) return rows.status();
    for (const std::vector<SqlCell>& row : *rows) {
      roots[std::get<std::string>(row[0])] = static_cast<uint32_t>(std::get<int64_t>(row[1]));
    }
  }
  RETURN_IF_ERROR(OpenPages());
  for (size_t i = 0; i < states_.size(); ++i) {
    TableTree& tree = states_[i]->tree;
    if (!tree.empty()) RETURN_IF_ERROR(tree.Finish(*pages_, roots[TableName(i)]));
  }
  return pages_->PatchHeader();
}

// Over finished tables.
Status SqliteFormat::MakeIndexes() {
  Result<SqliteDatabase> database = SqliteDatabase::Open(part_path_);
  if (!database.ok()) return database.status();
  for (size_t i = 0; i < kOperatorTables; ++i) {
    const std::string sql = IndexSql(OperatorTableOf(static_cast<OperatorTable>(i)));
    if (!sql.empty() && !OperatorStates()[i]->tree.empty()) RETURN_IF_ERROR(database->Run(sql));
  }
  return {};
}

Status SqliteFormat::TakeOperators(size_t dump, const operators::Model& model) {
  const DumpInfo& info = *plan_.dumps[dump];
  const LoaderPlace where = LoaderOf(dump, info.ClockPlace());
  for (const operators::TaskRow& row : model.rows) last_ns_[dump] = std::max<int64_t>(last_ns_[dump], row.end_ns);
  return WriteOperatorRows({model, where, info.pid, OperatorStates(), operator_ids_});
}

Status SqliteFormat::FinishDatabase() {
  // The leaves first become part of the file, so that the library puts its pages behind them.
  RETURN_IF_ERROR(pages_->PatchHeader());
  RETURN_IF_ERROR(MakeSchema());
  RETURN_IF_ERROR(FinishTrees());
  pages_.reset();
  RETURN_IF_ERROR(MakeIndexes());
  if (::rename(part_path_.c_str(), path_.c_str()) != 0) return Status::FromErrno(errno, path_);
  return {};
}

Status SqliteFormat::End(bool complete, std::vector<OutputFile>* files) {
  Status status;
  if (complete && pages_ != nullptr) status = FinishDatabase();
  if (!complete || !status.ok()) {
    ::unlink(part_path_.c_str());
    pages_.reset();
    return status;
  }
  struct stat info = {};
  OutputFile file{path_, 0, 0};
  if (::stat(path_.c_str(), &info) == 0) file.bytes = static_cast<uint64_t>(info.st_size);
  for (const auto& state : states_) file.rows += state->rows;
  files->push_back(std::move(file));
  pages_.reset();
  return {};
}

std::unique_ptr<Format> MakeSqliteFormat() { return std::make_unique<SqliteFormat>(); }

}  // namespace profd::exporting
