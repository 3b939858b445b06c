// Databases of PyTorch's and MindSpore's profilers and of msprof (analysis 2.5).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>
#include <utility>

#include "analysis/read/message_ends.h"
#include "analysis/read/readers.h"
#include "analysis/read/recorded.h"
#include "analysis/read/sqlite_file.h"
#include "analysis/times.h"
#include "base/count_text.h"
#include "base/text.h"
#include "export/operators/numbers.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

// Whose rows have a start and an end.
constexpr auto kTimedTables = std::to_array<std::string_view>({"STEP_TIME", "PROFD_STEP_ROWS", "TASK", "COMMUNICATION_OP", "PYTORCH_API", "CANN_API", "MSTX_EVENTS", "GC_RECORD"});

// That show which devices there are; the last one has all of the node (analysis 5.3).
struct DeviceTable {
  std::string_view name;
  std::string_view column;
};
constexpr auto kDeviceTables = std::to_array<DeviceTable>({{"TASK", "deviceId"}, {"HBM", "deviceId"}, {"AICORE_FREQ", "deviceId"}, {"NPU_MEM", "deviceId"}, {"NPU_INFO", "id"}});

struct DeviceOfDatabase {
  int device = 0;
  std::optional<int> rank;     // none: not known
  std::vector<int64_t> dumps;  // that its rows are of, in a database of several dumps
};

class DatabaseReader {
 public:
  DatabaseReader(const Database& database, std::string where, const ReadContext& context)
      : database_(database), where_(std::move(where)), context_(context) {}

  std::vector<DeviceOfDatabase> Devices() {
    std::vector<DeviceOfDatabase> devices;
    if (database_.Has("RANK_DEVICE_MAP")) {
      const bool several = database_.HasColumn("RANK_DEVICE_MAP", "dumpId");
      Run(fmt::format("SELECT deviceId, rankId, {} FROM RANK_DEVICE_MAP ORDER BY rankId, deviceId", several ? "dumpId" : "0"), [&](const Row& row) {
        const auto device = static_cast<int>(row.Int(0));
        const auto rank = static_cast<int>(row.Int(1));
        const auto same = std::ranges::find_if(devices, [&](const DeviceOfDatabase& each) { return each.rank == rank && each.device == device; });
        DeviceOfDatabase& one = several && same != devices.end() ? *same : devices.emplace_back();
        one.device = device;
        if (rank >= 0) one.rank = rank;
        if (several) one.dumps.push_back(row.Int(2));
      });
    }
    if (!devices.empty()) return devices;
    for (const DeviceTable& table : kDeviceTables) {
      if (!devices.empty() || !database_.Has(table.name)) continue;
      Run(fmt::format("SELECT DISTINCT {} FROM {} ORDER BY 1", table.column, table.name),
          [&](const Row& row) { devices.push_back({static_cast<int>(row.Int(0)), std::nullopt, {}}); });
    }
    return devices;
  }

  // Of all devices.
  void ReportRowsWithoutEnd() {
    for (const std::string_view table : kTimedTables) {
      if (!database_.Has(table) || !database_.HasColumn(table, "startNs") || !database_.HasColumn(table, "endNs")) continue;
      Run(fmt::format("SELECT count(*) FROM {} WHERE {} IS NOT 1", table, IsTimed()), [&](const Row& row) {
        if (row.Int(0) == 0) return;
        context_.AddProblem(where_, fmt::format("{}: {} start: left out", table, CountText(static_cast<uint64_t>(row.Int(0)), "row has no end, or one before its", "rows have no end, or one before their")));
      });
    }
  }

  void Read(int device, bool only_device, Rank* rank) {
    rank_ = rank;
    texts_.clear();
    Run("SELECT id, value FROM STRING_IDS", [this](const Row& row) { texts_[row.Int(0)] = rank_->Text(row.Text(1)); });
    ReadTasks(device);
    ReadDatabaseSteps(database_, where_, device, context_, rank_);
    ReadCommunication(device, only_device);
    ReadTransfers(device);
    ReadActivity(device, only_device);
    ReadApis();
    ReadFlows();
    ReadMemory(device);
    ReadEngineMemory(device);
    ReadDatabaseCounters(database_, where_, device, context_, &numbers_, rank_);
    ReadMarks();
    ReadFacts();
    for (std::string& text : numbers_.LeftOut()) context_.AddProblem(where_, std::move(text));
  }

  // Of what was read, and where it has no communication, of what was analysed of that.
  void AddOverlap() {
    if (communication_.empty()) AddAnalysed();
    Intervals computing;
    for (const Execution& each : rank_->executions) computing.push_back({each.start_ns, each.end_ns});
    rank_->span = SpanWithinSteps();
    if (computing.empty() && communication_.empty()) return;
    rank_->overlap = exporting::operators::MakeOverlap(std::move(computing), std::move(communication_), rank_->span);
    if (!OfFramework() && !rank_->steps.empty()) rank_->recorded = exporting::operators::ExtentOf(rank_->overlap);
  }

 private:
  template <class Take>
  void Run(const std::string& sql, const Take& take) {
    context_.AddProblem(where_, database_.Each(sql, take));
  }
  TextId Name(int64_t id) const {
    const auto found = texts_.find(id);
    return found == texts_.end() ? kNoText : found->second;
  }
  // Of shapes and types.
  TextId UnquotedName(int64_t id) {
    const TextId name = Name(id);
    const std::string_view quoted = rank_->TextOf(name);
    const std::string_view text = Unquoted(quoted);
    return text.size() == quoted.size() ? name : rank_->Text(text);
  }

  void ReadTasks(int device) {
    if (!database_.Has("TASK")) return;
    Run(fmt::format("SELECT startNs, endNs FROM TASK WHERE deviceId = {} AND {}", device, IsTimed()), [this](const Row& row) {
      tasks_.push_back({row.Time(0), row.Time(1)});
    });
    for (const std::string_view kind : kCopyTasks) {
      Run(fmt::format("SELECT t.startNs, t.endNs, t.streamId FROM TASK t JOIN STRING_IDS s ON s.id = t.taskType "
                      "WHERE s.value = '{}' AND t.deviceId = {} AND {}", kind, device, IsTimed("t.")),
          [this](const Row& row) { rank_->copies.push_back({row.Time(0), row.Time(1), rank_->LaneOf("Ascend Hardware", fmt::format("Stream {}", row.Int(2)))}); });
    }
    if (!database_.Has("COMPUTE_TASK_INFO")) return;
    // Older writers have other names.
    const std::string blocks = database_.HasColumn("COMPUTE_TASK_INFO", "blockNum") ? "i.blockNum" : database_.HasColumn("COMPUTE_TASK_INFO", "blockDim") ? "i.blockDim" : "NULL";
    const std::string mixed = database_.HasColumn("COMPUTE_TASK_INFO", "mixBlockNum") ? "i.mixBlockNum" : database_.HasColumn("COMPUTE_TASK_INFO", "mixBlockDim") ? "i.mixBlockDim" : "NULL";
    const std::string_view types = database_.HasColumn("COMPUTE_TASK_INFO", "outputDataTypes") ? "i.outputDataTypes" : "NULL";
    Run(fmt::format("SELECT t.startNs, t.endNs, t.streamId, i.name, i.opType, i.taskType, i.inputShapes, i.inputDataTypes, "
                    "i.outputShapes, t.connectionId, {}, {}, t.taskType, {} FROM TASK t JOIN COMPUTE_TASK_INFO i ON i.globalTaskId = t.globalTaskId "
                    "WHERE t.deviceId = {} AND {} ORDER BY t.startNs", blocks, mixed, types, device, IsTimed("t.")),
        [this](const Row& row) {
          if (!IsOperator(Name(row.Int(5)), Name(row.Int(3)))) return;
          const int32_t op = rank_->OperatorOf(Name(row.Int(3)), Name(row.Int(4)), CoreOf(Name(row.Int(5)), Name(row.Int(12))), UnquotedName(row.Int(6)));
          Operator& made = rank_->operators[static_cast<size_t>(op)];
          const TextId outputs = row.IsNull(13) ? kNoText : UnquotedName(row.Int(13));
          if (made.input_types == kNoText) {
            made.input_types = UnquotedName(row.Int(7));
            made.output_shapes = UnquotedName(row.Int(8));
            made.output_types = outputs;
          }
          if (rank_->TextOf(made.core) == kAiCpuCore) made.AddTypes(UnquotedName(row.Int(7)), outputs);
          launches_[row.Int(9)].push_back(static_cast<uint32_t>(rank_->executions.size()));
          rank_->executions.push_back({row.Time(0), row.Time(1), op,
                                       rank_->LaneOf("Ascend Hardware", fmt::format("Stream {}", row.Int(2))), BlocksOf(row, 10), BlocksOf(row, 11)});
        });
    ReadStates(device);
    ReadRatios(device);
  }

  bool IsOperator(TextId core, TextId name) const { return exporting::operators::IsOperator(rank_->TextOf(core), rank_->TextOf(name)); }

  // The kind of core; where the operator was not described, that of its task.
  TextId CoreOf(TextId described, TextId task) {
    if (rank_->TextOf(described) != "N/A") return described;
    const int core = exporting::operators::CoreOfKernel(rank_->TextOf(task));
    return core < 0 ? task : rank_->Text(exporting::operators::CoreTypeName(static_cast<uint32_t>(core)));
  }

  static uint16_t BlocksOf(const Row& row, int column) {
    const int64_t count = row.Int(column);
    return !row.IsNull(column) && count >= 0 && count < kNoBlocks ? static_cast<uint16_t>(count) : kNoBlocks;
  }

  // Older writers have no such column.
  void ReadStates(int device) {
    if (!database_.HasColumn("COMPUTE_TASK_INFO", "opState")) return;
    Run(fmt::format("SELECT DISTINCT i.opState FROM COMPUTE_TASK_INFO i JOIN TASK t ON t.globalTaskId = i.globalTaskId WHERE t.deviceId = {}", device), [this](const Row& row) {
      const std::string_view state = rank_->TextOf(Name(row.Int(0)));
      if (!state.empty() && state != "N/A") rank_->op_states.emplace(state);
    });
  }

  void ReadRatios(int device) {
    if (!database_.Has("TASK_PMU_INFO")) return;
    std::set<std::pair<int32_t, int64_t>> counted;  // operators and their tasks
    Run(fmt::format("SELECT i.name, i.opType, i.taskType, s.value, p.value, t.endNs - t.startNs, i.inputShapes, t.taskType, p.globalTaskId FROM TASK_PMU_INFO p "
                    "JOIN TASK t ON t.globalTaskId = p.globalTaskId JOIN COMPUTE_TASK_INFO i ON i.globalTaskId = t.globalTaskId "
                    "JOIN STRING_IDS s ON s.id = p.name WHERE t.deviceId = {} AND {} AND (s.value LIKE '%\\_ratio' ESCAPE '\\' OR s.value LIKE '%\\_time' ESCAPE '\\')",
                    device, IsTimed("t.")),
        [this, &counted](const Row& row) {
          if (!IsOperator(Name(row.Int(2)), Name(row.Int(0)))) return;
          const std::string_view column = row.Text(3);
          const bool is_time = column.ends_with("_time");
          const auto value = numbers_.Of("TASK_PMU_INFO", row, 4, 0, is_time ? static_cast<double>(kLatestNs) : kMostRatio);
          if (!value) return;
          const std::string_view name = column.substr(0, column.rfind('_'));
          const int32_t op = rank_->OperatorOf(Name(row.Int(0)), Name(row.Int(1)), CoreOf(Name(row.Int(2)), Name(row.Int(7))), UnquotedName(row.Int(6)));
          Operator& made = rank_->operators[static_cast<size_t>(op)];
          // ns; the core's own as the text form calls it.
          const std::string_view unit = name == "aic_total" ? "aicore" : name == "aiv_total" ? "aiv" : name;
          if (is_time) return Rank::AddTo(&made.unit_ns, Rank::NumberIn(&rank_->unit_names, unit), *value);
          const size_t index = Rank::NumberIn(&rank_->ratio_names, name);
          made.AddRatio(index, *value, row.Real(5));
          // A task has a row for each ratio, of some the first one not.
          if (counted.emplace(op, row.Int(8)).second) made.EndRatios(row.Real(5));
        });
  }

  // Which device an operation is of is known from its tasks, where they were recorded, else from those with its number of a
  // launch; with one device all are of it.
  void ReadCommunication(int device, bool only_device) {
    if (!database_.Has("COMMUNICATION_OP")) return;
    const std::string of_device =
        only_device ? ""
        : database_.Has("COMMUNICATION_TASK_INFO")
            ? fmt::format(" AND opId IN (SELECT c.opId FROM COMMUNICATION_TASK_INFO c JOIN TASK t ON t.globalTaskId = c.globalTaskId WHERE t.deviceId = {})", device)
            : fmt::format(" AND connectionId IN (SELECT connectionId FROM TASK WHERE deviceId = {})", device);
    // Older releases have no types.
    const std::string_view type = database_.HasColumn("COMMUNICATION_OP", "opType") ? "opType" : "NULL";
    Run(fmt::format("SELECT opName, groupName, {}, startNs, endNs FROM COMMUNICATION_OP WHERE {}{} ORDER BY startNs", type, IsTimed(), of_device),
        [this](const Row& row) {
          Collective& made = rank_->collectives.emplace_back();
          made.name = Name(row.Int(0));
          made.group = Name(row.Int(1));
          made.type = row.IsNull(2) ? rank_->Text(CollectiveTypeOf(rank_->TextOf(made.name))) : Name(row.Int(2));
          made.start_ns = row.Time(3);
          made.elapse_ms = Ms(row.Time(4) - row.Time(3));
          communication_.push_back({row.Time(3), row.Time(4)});
          rank_->longest_communication_ns = std::max(rank_->longest_communication_ns, row.Time(4) - row.Time(3));
          rank_->communication_sum_ns = BoundedTime(rank_->communication_sum_ns + row.Time(4) - row.Time(3));
          rank_->slices.push_back({row.Time(3), row.Time(4), made.name,
                                   rank_->LaneOf("Communication", fmt::format("Group {}", rank_->TextOf(made.group)))});
        });
  }

  // What collectives moved, and where they waited for others.
  void ReadTransfers(int device) {
    if (!database_.Has("COMMUNICATION_TASK_INFO")) return;
    const auto enumeration = [this](std::string_view table, std::string_view column) {
      return database_.Has(table) ? fmt::format("(SELECT name FROM {} WHERE id = c.{})", table, column) : fmt::format("CAST(c.{} AS TEXT)", column);
    };
    std::map<int64_t, size_t> groups;  // their numbers
    std::vector<PlaneTask> tasks;
    MessageEnds ends;
    const std::string_view both = database_.HasColumn("COMMUNICATION_TASK_INFO", "dstRank") ? "c.srcRank, c.dstRank" : "-1, -1";
    Run(fmt::format("SELECT t.startNs, t.endNs, c.name, c.groupName, c.planeId, c.taskType, c.size, {}, {}, {} FROM COMMUNICATION_TASK_INFO c "
                    "JOIN TASK t ON t.globalTaskId = c.globalTaskId WHERE t.deviceId = {} AND {} ORDER BY t.startNs",
                    enumeration("ENUM_HCCL_TRANSPORT_TYPE", "transportType"), enumeration("ENUM_HCCL_LINK_TYPE", "linkType"), both, device, IsTimed("t.")),
        [&](const Row& row) {
          ends.Add(Name(row.Int(2)), row.Int(9), row.Int(10));
          const size_t group = groups.try_emplace(row.Int(3), groups.size()).first->second;
          tasks.push_back({row.Time(0), row.Time(1), PlaneNumber(group, static_cast<uint64_t>(row.Int(4))), rank_->TextOf(Name(row.Int(5)))});
          if (row.Int(6) <= 0) return;
          rank_->transfers.push_back({row.Time(0), row.Time(1), static_cast<uint64_t>(row.Int(6)), Name(row.Int(2)), rank_->Text(row.Text(7)), rank_->Text(row.Text(8))});
        });
    rank_->AddWaits(std::move(tasks));
    ends.AddTo(rank_);
  }

  void ReadActivity(int device, bool only_device) {
    OfDevice recorded;
    std::vector<bool> are_node;
    // The vendor's profiler records the same tasks.
    if (rank_->executions.empty() && rank_->collectives.empty()) context_.AddProblem(where_, ReadKernelRows(database_, device, &recorded));
    context_.AddProblem(where_, ReadCallRows(database_, only_device ? "1" : fmt::format("rank = {}", rank_->rank.value_or(-1)), &recorded.calls, &are_node));
    RecordedOfRank of_rank([this](int64_t id) { return rank_->TextOf(Name(id)); }, rank_);
    of_rank.AddDevice(recorded, device, &tasks_, &communication_);
    const Launchers launchers(recorded.calls);
    for (size_t i = 0; i < recorded.calls.size(); ++i) of_rank.AddCall(recorded.calls[i], are_node[i], launchers);
  }

  void ReadApis() {
    struct Layer {
      std::string_view table;
      std::string_view group;
    };
    for (const Layer layer : {Layer{"PYTORCH_API", "Python"}, Layer{"CANN_API", "CANN"}}) {
      if (!database_.Has(layer.table)) continue;
      const bool python = layer.group == "Python";
      const bool has_stacks = python && database_.Has("PYTORCH_CALLCHAINS");
      const auto stacks = has_stacks ? ReadStacks() : std::unordered_map<int64_t, TextId>();
      // Functions and queues of the framework are there, too.
      const bool has_kinds = python && database_.HasColumn(layer.table, "type") && database_.Has("ENUM_API_TYPE");
      const std::string is_operator = !python ? "0" : has_kinds ? "type IN (SELECT id FROM ENUM_API_TYPE WHERE name = 'op')" : "1";
      Run(fmt::format("SELECT CAST(startNs AS INTEGER), CAST(endNs AS INTEGER), globalTid & 4294967295, name, connectionId, {}, {} "
                      "FROM {} WHERE {} ORDER BY 1", has_stacks ? "callchainId" : "NULL", is_operator, layer.table, IsTimed()),
          [this, &layer, &stacks, python](const Row& row) {
            const auto index = static_cast<uint32_t>(rank_->slices.size());
            rank_->slices.push_back({row.Time(0), row.Time(1), Name(row.Int(3)),
                                     rank_->LaneOf(layer.group, fmt::format("Thread {}", row.Int(2))), row.Int(6) != 0});
            if (!row.IsNull(4)) (python ? operators_ : callers_)[row.Int(4)] = index;
            const auto stack = row.IsNull(5) ? stacks.end() : stacks.find(row.Int(5));
            if (stack != stacks.end()) rank_->stacks.emplace(index, stack->second);
          });
    }
  }

  // By their number in PYTORCH_API, frames parted by ';'.
  std::unordered_map<int64_t, TextId> ReadStacks() {
    std::map<int64_t, std::string> texts;
    Run("SELECT id, stack FROM PYTORCH_CALLCHAINS ORDER BY id, stackDepth", [this, &texts](const Row& row) {
      const auto [it, is_new] = texts.try_emplace(row.Int(0));
      it->second += fmt::format("{}{}", is_new ? "" : ";", rank_->TextOf(Name(row.Int(1))));
    });
    std::unordered_map<int64_t, TextId> stacks;
    for (const auto& [id, text] : texts) stacks.emplace(id, rank_->Text(text));
    return stacks;
  }

  void ReadFlows() {
    const auto add = [this](const std::unordered_map<int64_t, uint32_t>& from, int64_t key, int64_t connection) {
      const auto caller = from.find(key);
      const auto launched = launches_.find(connection);
      if (caller == from.end() || launched == launches_.end()) return;
      for (const uint32_t execution : launched->second) rank_->flows.push_back({caller->second, execution});
    };
    for (const auto& [connection, executions] : launches_) add(callers_, connection, connection);
    // The framework numbers its operators' launches by itself.
    if (!database_.Has("CONNECTION_IDS")) return;
    Run("SELECT id, connectionId FROM CONNECTION_IDS", [this, &add](const Row& row) { add(operators_, row.Int(0), row.Int(1)); });
  }

  std::optional<double> MiB(std::string_view table, const Row& row, int column) {
    const auto bytes = numbers_.Of(table, row, column);
    return bytes ? std::optional(*bytes / (1024.0 * 1024)) : std::nullopt;
  }

  void ReadMemory(int device) {
    if (database_.Has("MEMORY_RECORD")) {
      Run(fmt::format("SELECT component, timestamp, totalAllocated, totalReserved, totalActive FROM MEMORY_RECORD "
                      "WHERE deviceId = {} ORDER BY timestamp", device),
          [this](const Row& row) {
            if (!numbers_.Of("MEMORY_RECORD", row, 1)) return;
            const auto mb = [&](int column) { return MiB("MEMORY_RECORD", row, column); };
            rank_->memory[std::string(rank_->TextOf(Name(row.Int(0))))].push_back({row.Time(1), mb(2), mb(3), mb(4)});
          });
    }
    if (database_.Has("OP_MEMORY")) {
      Run(fmt::format("SELECT name, size, allocationTime, releaseTime FROM OP_MEMORY WHERE deviceId = {}", device),
          [this](const Row& row) {
            const auto bytes = numbers_.Of("OP_MEMORY", row, 1);
            if (!bytes || !numbers_.Of("OP_MEMORY", row, 2)) return;
            rank_->blocks.push_back({Name(row.Int(0)), *bytes / 1024, row.Time(2),
                                     numbers_.Of("OP_MEMORY", row, 3) ? std::optional(row.Time(3)) : std::nullopt});
          });
    }
  }

  // Of the graph engine; what a framework wrote has it, too. A block is released by the next release of its address.
  void ReadEngineMemory(int device) {
    if (!database_.Has("NPU_OP_MEM") || database_.Has("MEMORY_RECORD") || database_.Has("OP_MEMORY")) return;
    const bool is_number = database_.Has("ENUM_MEMORY");  // of older writers
    std::unordered_map<int64_t, size_t> taken;            // blocks by address
    Run(fmt::format("SELECT timestampNs, totalAllocate, totalReserve, size, {}, component, operatorName, addr FROM NPU_OP_MEM WHERE deviceId = {} ORDER BY 1",
                    is_number ? "(SELECT name FROM ENUM_MEMORY WHERE id = type)" : "(SELECT value FROM STRING_IDS WHERE id = type)", device),
        [this, &taken](const Row& row) {
          const auto bytes = numbers_.Of("NPU_OP_MEM", row, 3);
          if (!bytes || !numbers_.Of("NPU_OP_MEM", row, 0)) return;
          rank_->memory[std::string(rank_->TextOf(Name(row.Int(5))))].push_back({row.Time(0), MiB("NPU_OP_MEM", row, 1), MiB("NPU_OP_MEM", row, 2), std::nullopt});
          if (row.Text(4) != "release") {
            taken[row.Int(7)] = rank_->blocks.size();
            rank_->blocks.push_back({Name(row.Int(6)), *bytes / 1024, row.Time(0), std::nullopt});
          } else if (const auto block = taken.extract(row.Int(7))) {
            rank_->blocks[block.mapped()].released_ns = row.Time(0);
          }
        });
  }

  void ReadMarks() {
    if (!database_.Has("MSTX_EVENTS")) return;
    // A dump may be of several ranks.
    const std::string of_process = RankOfProcess(database_, "MSTX_EVENTS", "t.globalTid >> 32");
    const std::string of_rank = rank_->rank ? fmt::format(" AND coalesce({0}, {1}) = {1}", of_process, *rank_->rank) : "";
    Run(fmt::format("SELECT startNs, endNs, message, domainId, eventType, globalTid & 4294967295 FROM MSTX_EVENTS t WHERE {}{} ORDER BY startNs", IsTimed(), of_rank), [this](const Row& row) {
      constexpr int64_t kMarker = 0;
      constexpr int64_t kMarkerEx = 3;
      const bool is_instant = row.Int(4) == kMarker || row.Int(4) == kMarkerEx;
      rank_->AddMark({row.Time(0), row.Time(1), Name(row.Int(2)), Name(row.Int(3)), is_instant});
      rank_->slices.push_back({row.Time(0), row.Time(1), Name(row.Int(2)), rank_->LaneOf("Marks", fmt::format("Thread {}", row.Int(5)))});
    });
  }

  void ReadFacts() {
    if (database_.Has("GC_RECORD")) {
      Run("SELECT startNs, endNs FROM GC_RECORD WHERE " + IsTimed() + " ORDER BY startNs", [this](const Row& row) {
        rank_->garbage.push_back({row.Time(0), row.Time(1)});
      });
    }
    if (database_.Has("HOST_INFO")) {
      Run("SELECT hostName, hostUid FROM HOST_INFO LIMIT 1", [this](const Row& row) {
        rank_->host = row.Text(0);
        rank_->host_uid = row.Text(1);
      });
    }
    if (!database_.Has("META_DATA")) return;
    Run("SELECT name, value FROM META_DATA WHERE name IN ('ENV_VARIABLES', 'parallel_group_info', 'distributed_args')", [this](const Row& row) {
      AddMetadata(row.Text(0), row.Text(1), rank_);
    });
  }

  // Of its profiler's databases only what lies within its steps counts.
  bool OfFramework() const { return database_.Has("STEP_TIME"); }

  // From the first task to the last one that lie within the steps of the framework, or all where there are none. Where tasks
  // of communication were not recorded, its operations stand for them.
  std::optional<Interval> SpanWithinSteps() const {
    std::optional<Interval> span;
    const bool has_steps = OfFramework() && !rank_->steps.empty();
    for (const Intervals* intervals : {&tasks_, &communication_}) {
      for (const Interval& each : *intervals) {
        const bool outside = has_steps &&
                             (each.start_ns < rank_->steps.front().start_ns || each.end_ns > rank_->steps.back().end_ns);
        if (outside) continue;
        if (!span) span = each;
        span->start_ns = std::min(span->start_ns, each.start_ns);
        span->end_ns = std::max(span->end_ns, each.end_ns);
      }
    }
    return span;
  }

  void AddAnalysed() {
    // Communication alone does not show the rest of a step.
    if (rank_->executions.empty() && !rank_->shares.empty()) return;
    for (const Collective& each : rank_->collectives) {
      if (each.start_ns > 0) communication_.push_back({each.start_ns, EndOf(each.start_ns, each.elapse_ms)});
    }
  }

  const Database& database_;
  std::string where_;
  const ReadContext& context_;
  Rank* rank_ = nullptr;
  std::unordered_map<int64_t, TextId> texts_;
  CheckedNumbers numbers_;
  Intervals tasks_;
  Intervals communication_;
  std::unordered_map<int64_t, std::vector<uint32_t>> launches_;  // executions by connection
  std::unordered_map<int64_t, uint32_t> callers_;                // slices by connection
  std::unordered_map<int64_t, uint32_t> operators_;              // of the framework, by number in CONNECTION_IDS
};

}  // namespace

bool IsDatabase(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".db") &&
         (name.starts_with("msprof_") || name.starts_with("ascend_pytorch_profiler") || name.starts_with("ascend_mindspore_profiler"));
}

Status ReadDatabase(const fs::path& file, const ReadContext& context, Ranks* ranks) {
  Result<Database> database = Database::Open(file, context.progress);
  if (!database.ok()) return database.status();
  DatabaseReader reader(*database, file.string(), context);
  const auto devices = reader.Devices();
  if (devices.empty()) return InvalidArgument("no table of a device (RANK_DEVICE_MAP, TASK, HBM, AICORE_FREQ, NPU_MEM, NPU_INFO) has a row");
  reader.ReportRowsWithoutEnd();
  const fs::path parent = AboveOf(file);
  const bool exported = parent.filename() == "ASCEND_PROFILER_OUTPUT";
  const fs::path above = exported ? parent.parent_path() : parent;
  for (const auto& [device, number, dumps] : devices) {
    if (!dumps.empty()) {  // other dumps have devices of the same numbers
      database = Database::Open(file, context.progress);
      Status status = database.ok() ? database->ShowOnly("dumpId", dumps) : database.status();
      if (!status.ok()) return status;
    }
    auto rank = std::make_unique<Rank>();
    const bool has_facts = devices.size() == 1 && (exported || above.filename().native().starts_with("PROF_"));
    if (has_facts) ReadDeviceFacts(above, context, rank.get());
    rank->path = file.string();
    rank->device = device;
    rank->rank = number;
    const std::string name = file.filename().string();
    rank->source = name.starts_with("msprof") ? "msprof, database"
                   : name.starts_with("ascend_mindspore") ? "MindSpore, database" : "PyTorch, database";
    DatabaseReader of_device(*database, file.string(), context);
    of_device.Read(device, devices.size() == 1, rank.get());
    if (has_facts) ReadShapeStates(above, context, rank.get());
    if (exported) {
      const std::optional<int> known = rank->rank;
      ReadProfilerInfo(above, context, rank.get());
      if (known) rank->rank = known;
    }
    const fs::path more = parent / "analysis.db";
    if (std::error_code error; devices.size() == 1 && fs::is_regular_file(more, error)) ReadAnalysisDatabase(more, context, rank.get());
    of_device.AddOverlap();
    ranks->push_back(std::move(rank));
  }
  return Status::Ok();
}

}  // namespace profd::analysis
