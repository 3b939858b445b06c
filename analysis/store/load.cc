#include "analysis/store/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "analysis/checks/advise.h"
#include "analysis/store/fetch.h"
#include "export/shared_file.h"

namespace profd::analysis {
namespace {

constexpr int64_t kFirstDate = 946'684'800 * kNsPerSecond;  // the year 2000: times below are of no clock
constexpr int kInsertTries = 8;
constexpr int kRetryMs = 1000;
constexpr int kCountTries = 60;  // of a replica that is behind
constexpr int kCountPauseMs = 500;
constexpr int kTableTries = 120;  // of a shard that is about to make its tables
constexpr int kTablePauseMs = 500;
constexpr std::string_view kNoTable = "There is no table";     // of a server that queried the others of a shard
constexpr std::string_view kTooManyParts = "Too many parts";  // the server merges; it takes rows again soon

void WriteFindings(const Json& findings, RowBlocks* blocks) {
  for (const Json& each : findings) {
    const Json& cost = each["cost_ms"];
    blocks->Row("findings").Text(each["check"].get<std::string>()).Text(each["priority"].get<std::string>())
        .FloatOrNull(cost.is_null() ? std::nullopt : std::optional(cost.get<double>())).Text(each["title"].get<std::string>())
        .Text(each["evidence"].get<std::string>()).Texts(each["advice"].get<std::vector<std::string>>()).End();
  }
}

bool IsBelow(const std::string& where, const std::string& path) { return !path.empty() && where.starts_with(path) && where.substr(path.size()).starts_with('/'); }

// Whose a problem is: of the first rank whose files it names, by their path or as files of a dump, or else of the first.
const Rank* OwnerOf(const Problem& problem, const Run& source) {
  const auto found = std::ranges::find_if(source.ranks, [&problem](const auto& rank) {
    return problem.where == rank->path || IsBelow(problem.where, rank->path) || IsBelow(problem.where, std::filesystem::path(rank->path).filename().string());
  });
  return found == source.ranks.end() ? source.ranks.front().get() : found->get();
}

}  // namespace

Status StoreLoader::Prepare() {
  layout_.database = server_.database();
  layout_.cluster = options_.cluster;
  RETURN_IF_ERROR(CheckStoreVersion(&server_, &layout_));
  RETURN_IF_ERROR(CheckStoreKind(&server_, layout_));
  const Result<bool> there = HasStoreTables(&server_, layout_);
  if (!there.ok()) return there.status();
  if (!*there) RETURN_IF_ERROR(MakeStoreTables(layout_, &changer_));
  return layout_.cluster.empty() ? ReadLoads() : ReadLoadsOfCluster(!*there);
}

// Each shard is queried: one that was added later has no tables yet, and where no command waited for it, that may take a moment. The
// table of the loads is the last that is made.
Status StoreLoader::ReadLoadsOfCluster(bool made) {
  Status read = ReadLoads();
  if (!made && read.message().find(kNoTable) != std::string::npos) {
    RETURN_IF_ERROR(MakeStoreTables(layout_, &changer_));
    read = ReadLoads();
  }
  for (int tries = 0; (read.code() == StatusCode::kNotFound || read.message().find(kNoTable) != std::string::npos) && tries < kTableTries; ++tries) {
    server_.Pause(kTablePauseMs);
    RETURN_IF_ERROR(exporting::IsInterrupted(options_.go_on));
    read = ReadLoads();
  }
  return read.Annotate("cluster " + layout_.cluster);
}

Status StoreLoader::ReadLoads() {
  const std::string select = fmt::format("SELECT who, load, state, source_stamp, source_ranks FROM {}.{} WHERE run = {}", layout_.database,
                                         kLoadsTable, Quoted(options_.run));
  return server_.Query(select, [this](const StoreRow& row) {
    LoadState& known = known_[row.Text(0)];
    const uint64_t load = row.Uint(1);
    known.loads.insert(load);
    last_load_ = std::max(last_load_, load);
    if (row.Uint(2) == 0 || load < known.latest) return;
    known.latest = load;
    known.timestamp = row.Uint(3);
    known.ranks = row.Uint(4);
  });
}

bool StoreLoader::IsLoaded(uint64_t source_stamp) const {
  uint64_t found = 0;
  uint64_t wanted = 1;
  for (const auto& [who, known] : known_) {
    if (known.latest == 0 || known.timestamp != source_stamp) continue;
    ++found;
    wanted = known.ranks;
  }
  return found == wanted;
}

Result<std::vector<Problem>> StoreLoader::ProblemsOf(const std::set<uint64_t>& source_stamps) {
  std::set<uint64_t> loads;
  for (const auto& [who, known] : known_) {
    if (known.latest > 0 && source_stamps.contains(known.timestamp)) loads.insert(known.latest);
  }
  std::vector<Problem> problems;
  if (loads.empty()) return problems;
  RETURN_IF_ERROR(AskProblems(&server_, "run = " + Quoted(options_.run), [&](uint64_t load, Problem problem) {
    if (loads.contains(load)) problems.push_back(std::move(problem));
  }));
  return problems;
}

std::string StoreLoader::Shown(const std::string& path) const {
  return !options_.work_folder.empty() && path.starts_with(options_.work_folder) ? path.substr(options_.work_folder.size()) : path;
}

// By what a load replaces an earlier one. Without a number it is the place that is known, and without a host the time
// of the recording, which no other has; the path, which may be another one the next time, only where that is not known.
std::string StoreLoader::WhoOf(const Rank& rank) {
  std::string plain;
  if (rank.rank) {
    plain = std::to_string(*rank.rank);
  } else if (!rank.host.empty()) {
    plain = fmt::format("{}/npu{}", rank.host, rank.device.value_or(0));
  } else if (const int64_t begin_ns = BeginOf(rank); begin_ns >= kFirstDate) {
    plain = fmt::format("npu{} at {}.{:09}", rank.device.value_or(0), begin_ns / kNsPerSecond, begin_ns % kNsPerSecond);
  } else {
    std::error_code error;
    const std::filesystem::path canonical = std::filesystem::weakly_canonical(rank.path, error);
    plain = fmt::format("npu{} of {}", rank.device.value_or(0), Shown(error ? rank.path : canonical.string()));
  }
  std::string who = plain;
  // What is there twice, such as text and database of the same profile, stays apart.
  for (int number = 2; loaded_.contains(who); ++number) who = fmt::format("{}#{}", plain, number);
  return who;
}

Status StoreLoader::Load(const Run& source, uint64_t source_stamp, std::vector<RankLoad>* done) {
  timestamp_ = source_stamp;
  of_source_ = static_cast<uint32_t>(source.ranks.size());
  const Json findings = Advise(source, nullptr, Limits());
  // Those of the run are the first rank's, and so are problems of no rank's own path.
  for (const auto& rank : source.ranks) {
    RETURN_IF_ERROR(exporting::IsInterrupted(options_.go_on));
    const std::string who = WhoOf(*rank);
    loaded_.insert(who);
    RankLoad load{who};
    const bool first = rank == source.ranks.front();
    OfRank beside;
    for (const Json& each : findings) {
      if (each["rank"].is_null() ? first : rank->rank == each["rank"].get<int>()) beside.findings.push_back(each);
    }
    for (const Problem& each : source.problems) {
      if (OwnerOf(each, source) == rank.get()) beside.problems.push_back({Shown(each.where), each.what});
    }
    const Status loaded = LoadRank(*rank, who, beside, &load);
    if (!loaded.ok()) return loaded.Annotate("rank " + who);
    done->push_back(std::move(load));
  }
  return {};
}

Status StoreLoader::LoadRank(const Rank& rank, const std::string& who, const OfRank& beside, RankLoad* load) {
  last_load_ = std::max(last_load_ + 1, static_cast<uint64_t>(options_.clock->WallNs()));
  const RowHead head{options_.run, rank.rank.value_or(-1), last_load_};
  known_[who].loads.insert(head.load);
  RETURN_IF_ERROR(WriteLoad(rank, who, head, 0, false));
  RowBlocks blocks(head, [this, load](const StoreTable& table, const std::string& rows, uint64_t) {
    RETURN_IF_ERROR(exporting::IsInterrupted(options_.go_on));
    load->bytes += rows.size();
    return Insert(table.name, rows);
  });
  WriteRank(rank, &blocks);
  WriteProblems(beside.problems, &blocks);
  WriteFindings(beside.findings, &blocks);
  RETURN_IF_ERROR(blocks.Finish());
  RETURN_IF_ERROR(CheckCounts(head, blocks));
  RETURN_IF_ERROR(WriteLoad(rank, who, head, blocks.rows(), true));
  known_[who].latest = head.load;
  load->rows = blocks.rows();
  return {};
}

Status StoreLoader::WriteLoad(const Rank& rank, const std::string& who, const RowHead& head, uint64_t rows, bool committed) {
  std::string text;
  RowText(&text).Text(head.run).Int(head.rank).Uint(head.load).Text(who).Uint(committed).Int(options_.clock->WallNs() / kNsPerSecond)
      .Int(rank.device.value_or(-1)).Text(rank.host).Text(rank.source).Text(Shown(rank.path)).Uint(rows).Uint(timestamp_).Uint(of_source_).End();
  return Insert(kLoadsTable, text);
}

// Another load of the same rank may have deleted them; and rows that a server took may be lost with it.
Status StoreLoader::CheckCounts(const RowHead& head, const RowBlocks& blocks) {
  std::string select;
  for (const auto& [table, count] : blocks.rows_by_table()) {
    if (count == 0) continue;
    select += fmt::format("{}SELECT '{}' AS name, count() AS number FROM {}.{} WHERE run = {} AND rank = {} AND load = {}",
                          select.empty() ? "" : " UNION ALL ", table, layout_.database, table, Quoted(head.run), head.rank, head.load);
  }
  std::string missing;
  for (int tries = 0; tries < kCountTries; ++tries) {
    if (tries > 0) server_.Pause(kCountPauseMs);
    RETURN_IF_ERROR(exporting::IsInterrupted(options_.go_on));
    std::map<std::string, uint64_t> found;
    RETURN_IF_ERROR(server_.Query(select, [&found](const StoreRow& row) { found[row.Text(0)] += row.Uint(1); }));
    missing.clear();
    for (const auto& [table, count] : blocks.rows_by_table()) {
      const uint64_t there = found[std::string(table)];
      if (there != count) missing = fmt::format("of {} rows of {} there are {}", count, table, there);
    }
    // Only a replica can be behind.
    if (missing.empty()) return {};
    if (layout_.cluster.empty()) break;
  }
  return Aborted(missing + ": did another load of the same rank run at the same time? load it again");
}

Status StoreLoader::Insert(std::string_view table, const std::string& rows) {
  const std::string statement = fmt::format("INSERT INTO {}.{} FORMAT TabSeparated", layout_.database, table);
  Status status;
  for (int tries = 0; tries < kInsertTries; ++tries) {
    if (tries > 0) server_.Pause(kRetryMs * tries);
    status = server_.Send(statement, rows).status();
    if (status.ok() || status.message().find(kTooManyParts) == std::string::npos || !exporting::IsInterrupted(options_.go_on).ok()) break;
  }
  return status;
}

Status StoreLoader::CleanUp() {
  std::vector<uint64_t> old;
  for (const std::string& who : loaded_) {
    const LoadState& known = known_[who];
    for (const uint64_t load : known.loads) {
      if (load < known.latest) old.push_back(load);
    }
  }
  if (old.empty()) return {};
  constexpr size_t kAtATime = 2000;  // numbers in one statement
  std::vector<const StoreTable*> tables;
  for (const StoreTable& table : StoreTables()) tables.push_back(&table);
  // The loads last: as long as rows are there, it is known of which load.
  std::rotate(tables.begin(), tables.begin() + 1, tables.end());
  for (size_t begin = 0; begin < old.size(); begin += kAtATime) {
    const auto end = old.begin() + static_cast<std::ptrdiff_t>(std::min(old.size(), begin + kAtATime));
    const std::string numbers = fmt::format("{}", fmt::join(old.begin() + static_cast<std::ptrdiff_t>(begin), end, ", "));
    for (const StoreTable* table : tables) {
      RETURN_IF_ERROR(changer_.Execute(fmt::format("ALTER TABLE {}{} DELETE WHERE run = {} AND load IN ({})", layout_.LocalName(table->name),
                                                   layout_.OnCluster(), Quoted(options_.run), numbers)));
    }
  }
  return {};
}

}  // namespace profd::analysis
