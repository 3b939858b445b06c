// docs/export.md and the database: every query of it runs, and gives the answer that stands below it.
#include <gtest/gtest.h>

#include <fstream>

#include "export/sqlite/operator_doc_model.h"
#include "export/sqlite/test_support.h"

namespace profd::exporting {
namespace {

struct DocQuery {
  std::string sql;
  std::string answer;
};

// Pairs of fenced blocks: ```sql and the one behind it.
std::vector<DocQuery> ReadQueries(const std::string& path) {
  std::ifstream file(path);
  std::vector<DocQuery> queries;
  std::string* block = nullptr;
  bool answer_next = false;
  for (std::string line; std::getline(file, line);) {
    if (block == nullptr && line == "```sql") {
      block = &queries.emplace_back().sql;
    } else if (block == nullptr && line == "```" && answer_next) {
      block = &queries.back().answer;
    } else if (block != nullptr && line == "```") {
      answer_next = block == &queries.back().sql;
      block = nullptr;
    } else if (block != nullptr) {
      *block += line + "\n";
    } else {
      answer_next = false;
    }
  }
  return queries;
}

void AddChannel(DumpInfo& dump) {
  ManifestChannel channel;
  channel.collector = "hbm";
  channel.device = 0;
  channel.file = "hbm.data";
  channel.state = "finished";
  channel.hz_effective = 100;
  channel.records = 1000;
  for (uint64_t records : {7u, 3u}) {
    ManifestLoss& loss = channel.dropped.emplace_back();
    loss.reason = records == 7 ? LossReason::kQueueFull : LossReason::kStorageLimit;
    loss.records = records;
    loss.bytes = records * 24;
  }
  Manifest& manifest = dump.manifest.emplace();
  manifest.channels.push_back(channel);
  channel.collector = "llc";
  channel.dropped.clear();
  manifest.channels.push_back(channel);
}

void FillDevice(MadeExport& made, size_t rank, int device) {
  auto sink = made.Open(rank, device);
  {
    Feed hccs(*sink, TableId::kHccs, device);
    Feed hbm(*sink, TableId::kHbm, device);
    Feed freq(*sink, TableId::kAicoreFreq, device);
    Feed module(*sink, TableId::kModuleMem, device);
    Feed roce(*sink, TableId::kRoce, device);
    Feed kernels(*sink, TableId::kKernel, device);
    const int64_t aicore = made.strings().Intern("KERNEL_AICORE");
    for (const auto& [name, us] : {std::pair("block/Conv2D", 300), {"block/Conv2D", 500}, {"head/MatMulV2", 200}}) {
      kernels.Row(kMadeBegin, made.strings().Intern(name), aicore, int64_t{us} * 1000, 5, 4242,
                  static_cast<int64_t>(rank), 4242, 1);
    }
    for (int i = 0; i < 50; ++i) {
      int64_t t = kMadeBegin + i * 10 * kMs;
      hccs.Row(t, 10000.0 * (1 + device), 10000.0 * (1 + device) * 2 / 3);
      for (int stack = 0; stack < 4; ++stack) {
        hbm.Row(t, stack, 0, i * 1000.0).Row(t, stack, 1, i * 1000.0 + 49500);
      }
    }
    bool slow = rank == 1 && device == 1;
    for (int i = 0; i < 3; ++i) {
      freq.Row(kMadeBegin + i * 60 * kMs, -1, slow && i == 1 ? 900.0 : 1800.0);
      module.Row(kMadeBegin + i, 3, (100 * int64_t{i} + 100) << 20).Row(kMadeBegin + i, 7, 50 << 20);
      double errors = rank == 1 && device == 0 ? i * 2.5 : 0.0;
      roce.Row(kMadeBegin + i, 0, 200000, 1.0, 1.0, 1.0, 1.0, errors, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0,
               1.0, 0.0, 0.0, 0.0, 0.0, 0.1, 0.1);
    }
  }
  EXPECT_TRUE(sink->Finish().ok());
}

void FillHost(MadeExport& made, size_t rank) {
  auto sink = made.Open(rank, -1);
  {
    Feed memory(*sink, TableId::kProcMem, -1);
    int64_t python = made.strings().Intern("python3");
    int64_t systemd = made.strings().Intern("systemd");
    for (int i = 0; i < 3; ++i) {
      int64_t t = kMadeBegin + i * kMs;
      memory.Row(t, 4242, python, 3000000, 1048576 - i, 100).Row(t, 1, systemd, 5000, 2048, 100);
    }
  }
  for (int64_t step = 1; step <= 4; ++step) {
    Event event;
    event.kind = EventKind::kStep;
    event.dur_ns = (rank == 0 ? 100 : 120) * kMs;
    event.t_ns = kMadeBegin + (step - 1) * event.dur_ns;
    event.pid = 4242;
    event.value = step;
    event.name = fmt::format("step {}", step);
    sink->TakeEvent(event);
    event.kind = EventKind::kRange;
    event.dur_ns = 40 * kMs;
    event.name = "forward";
    sink->TakeEvent(event);
    // The same step as a device has it, and one that the session cuts.
    event.kind = EventKind::kDeviceStep;
    event.device = 0;
    event.pid = 0;
    event.dur_ns = 90 * kMs;
    sink->TakeEvent(event);
    event.kind = EventKind::kStep;
    event.device = -1;
    event.pid = 4242;
    event.dur_ns = kMs;
    MarkPartial(&event);
    if (step == 4) sink->TakeEvent(event);
  }
  EXPECT_TRUE(sink->Finish().ok());
}

void Fill(MadeExport& made, size_t ranks) {
  for (size_t rank = 0; rank < ranks; ++rank) AddChannel(made.dump(rank));
  made.Begin();
  for (size_t rank = 0; rank < ranks; ++rank) {
    for (int device = 0; device < 2; ++device) FillDevice(made, rank, device);
    FillHost(made, rank);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(made.format().TakeOperators(rank, *MadeOperators(kMadeBegin, static_cast<int>(rank))).ok());
  }
  made.End();
}

std::string TextOf(const SqlCell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) return fmt::format("{}", *number);
  if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{:#.15g}", *real);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return "";
}

// Without zeros behind the last digit, as `sqlite3` prints doubles.
std::string Trimmed(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  while (number.ends_with("0") && !number.ends_with(".0")) number.pop_back();
  return number;
}

// As `sqlite3 -header` prints it.
std::string Answer(const std::string& path, const std::string& sql) {
  auto database = SqliteDatabase::Open(path);
  if (!database.ok()) return database.status().ToString();
  std::vector<std::string> names;
  auto rows = database->Query(sql, &names);
  if (!rows.ok()) return rows.status().ToString();
  std::string text = fmt::format("{}\n", fmt::join(names, "|"));
  for (const std::vector<SqlCell>& row : *rows) {
    std::vector<std::string> cells;
    for (const SqlCell& cell : row) {
      std::string shown = TextOf(cell);
      cells.push_back(std::holds_alternative<double>(cell) ? Trimmed(shown) : shown);
    }
    text += fmt::format("{}\n", fmt::join(cells, "|"));
  }
  return text;
}

TEST(SqlDoc, EveryQueryGivesTheAnswerInTheDocument) {
  std::vector<DocQuery> queries = ReadQueries("docs/export.md");
  ASSERT_GE(queries.size(), 10u) << "docs/export.md, run from the root of the tree";
  MadeExport made(2, 2);
  Fill(made, 2);
  for (const DocQuery& query : queries) {
    EXPECT_EQ(Answer(made.path(), query.sql), query.answer) << query.sql;
  }
}

TEST(SqlDoc, EveryQueryAlsoRunsOnASingleDump) {
  MadeExport made(1, 2);
  Fill(made, 1);
  for (const DocQuery& query : ReadQueries("docs/export.md")) {
    auto database = SqliteDatabase::Open(made.path());
    ASSERT_TRUE(database.ok());
    auto rows = database->Query(query.sql);
    EXPECT_TRUE(rows.ok()) << rows.status().ToString() << query.sql;
  }
}

}  // namespace
}  // namespace profd::exporting
