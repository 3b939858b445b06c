#include "client/clickhouse/run_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/store/fetch.h"
#include "analysis/views/views.h"
#include "base/text.h"
#include "client/cli_message.h"
#include "client/parse.h"
#include "client/render.h"

namespace profd::client {

Result<OpenedStore> OpenStore(const std::string& text, const std::string& run, const TlsFiles& tls, const analysis::Progress& go_on) {
  Result<ClickHouseUrl> url = ParseClickHouseUrl(text);
  if (!url.ok()) return url.status();
  OpenedStore opened;
  opened.run = run.empty() ? url->run : run;
  if (opened.run.empty()) return InvalidArgument("which run of the database? name it with --run NAME, or as the last part of the address");
  if (!IsRunName(opened.run)) return InvalidArgument("--run: 1 to 200 bytes without control characters");
  opened.server = std::make_unique<ClickHouseServer>(std::move(*url), tls, go_on);
  return opened;
}

Result<std::set<int>> ParseRankList(const std::string& text) {
  constexpr uint32_t kMostRank = 1'000'000;
  constexpr size_t kMost = 100'000;
  std::set<int> ranks;
  std::string_view rest = text;
  for (std::string_view part; NextPart(&rest, ',', &part);) {
    uint32_t first = 0;
    uint32_t last = 0;
    if (!ParseRange(part, &first, &last) || last > kMostRank || ranks.size() + last - first > kMost) {
      return InvalidArgument(fmt::format("--ranks \"{}\": for example 0,4-7", text));
    }
    for (uint32_t rank = first; rank <= last; ++rank) ranks.insert(static_cast<int>(rank));
  }
  return ranks;
}

Status RunReader::Check(const std::vector<std::string>& paths) const {
  if (options_.from.empty()) {
    if (!options_.run.empty() || !options_.ranks.empty()) return InvalidArgument("--run and --ranks are for --from");
    return paths.empty() ? InvalidArgument("which run? its path, or --from with the address of a database") : Status();
  }
  if (!paths.empty()) return InvalidArgument("a run is either of a path or of --from");
  RETURN_IF_ERROR(OpenStore(options_.from, options_.run, options_.tls, progress_).status());
  return ParseRankList(options_.ranks).status();
}

namespace {

analysis::ReadDetail DetailFor(const ReadHow& how) {
  const bool all = how.complete || how.only.empty() || how.beside;
  const auto looks = [&how](const analysis::View& view) { return view.details && how.only.contains(view.name); };
  return {how.complete, all || std::ranges::any_of(analysis::Views(), looks)};
}

}  // namespace

Result<analysis::Run> RunReader::Read(const std::vector<std::string>& paths, const ReadHow& how) {
  if (!options_.from.empty()) return Fetch(options_.from, options_.run, how);
  Result<analysis::Run> run = analysis::LoadRun(paths, progress_, DetailFor(how));
  if (!run.ok()) return WithFetchHint(run.status(), paths);
  return run;
}

Result<std::unique_ptr<const analysis::Run>> RunReader::ReadBaseline(const std::string& where, const ReadHow& how) {
  if (where.empty()) return std::unique_ptr<const analysis::Run>();
  Result<analysis::Run> run = IsClickHouseUrl(where) ? Fetch(where, "", how) : analysis::LoadRun({where}, progress_, DetailFor(how));
  if (!run.ok()) return WithFetchHint(run.status(), {&where, 1});
  return std::make_unique<const analysis::Run>(std::move(*run));
}

Result<analysis::Run> RunReader::Fetch(const std::string& address, const std::string& run, const ReadHow& how) {
  const Result<OpenedStore> store = OpenStore(address, run, options_.tls, progress_);
  if (!store.ok()) return store.status();
  const Result<std::set<int>> ranks = ParseRankList(options_.ranks);
  if (!ranks.ok()) return ranks.status();
  Result<analysis::Run> fetched = analysis::FetchRun(store->server.get(), {store->run, *ranks, how.complete, how.only, how.beside, progress_});
  const analysis::StoreCost& cost = store->server->cost();
  if (!cost_) cost_.emplace();
  cost_->queries += cost.queries;
  cost_->rows += cost.rows;
  cost_->bytes += cost.bytes;
  cost_->seconds += cost.seconds;
  return fetched;
}

Json RunReader::CostJson() const { return cost_ ? client::CostJson(*cost_) : Json(); }

Json CostJson(const analysis::StoreCost& cost) {
  return {{"queries", cost.queries}, {"seconds", cost.seconds}, {"rows_read", cost.rows}, {"bytes_read", cost.bytes}};
}

std::string CostText(const Json& cost) {
  return fmt::format("ClickHouse: {}, {:.3f} s, {} and {} read", CountText(cost["queries"].get<uint64_t>(), "query"), cost["seconds"].get<double>(),
                     CountText(cost["rows_read"].get<uint64_t>(), "row"), FormatBytes(cost["bytes_read"].get<uint64_t>()));
}

}  // namespace profd::client
