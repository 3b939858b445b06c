// CSVs of calls, one by one or in sums, which earlier releases of the vendor's analyser wrote: ge_op_execute, acl,
// acl_statistic, runtime_api. Their columns are those of its public table msprof_export_data_config.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "export/csv/csv_row.h"
#include "export/csv/operator_parts.h"
#include "export/operators/numbers.h"
#include "export/operators/records.h"

namespace profd::exporting::csv {
namespace {

using operators::Api;
using operators::ApiTotal;
using operators::kNotKnown;
using operators::Model;

std::string_view AclClass(uint32_t type) {
  const std::string_view name = operators::AclClassName(type);
  return name.empty() ? kNotKnown : name;
}

using Calls = std::vector<const Api*>;

// By begin.
template <class Wants>
std::shared_ptr<const Calls> CallsOf(const Model& model, Wants wants) {
  const auto calls = std::make_shared<Calls>();
  for (const Api& api : model.host.apis) {
    if (!api.early && wants(api) && model.window.Has(model.host.WallNs(api.begin))) calls->push_back(&api);
  }
  std::ranges::stable_sort(*calls, {}, &Api::begin);
  return calls;
}

int64_t LengthOf(const Model& model, const Api& api) { return model.host.WallNs(api.end) - model.host.WallNs(api.begin); }

OperatorCsv AclCalls(const Model& model, int64_t pid, const std::shared_ptr<const Calls>& calls) {
  return {"acl", "Name,Type,Start Time,Duration(us),Process ID,Thread ID", calls->size(),
          [&model, calls, pid](size_t at, std::string* out) {
            const Api& api = *(*calls)[at];
            CsvRow row(*out);
            row.Text(model.host.ApiName(api)).Text(AclClass(api.type)).Time(model.host.WallNs(api.begin));
            row.Micros(LengthOf(model, api)).Int(pid).Int(api.thread).End();
          },
          false};
}

using CallKey = std::tuple<std::string_view, std::string_view, uint32_t>;  // name, class, thread

// Those that take longest first, with the time of all.
std::pair<std::vector<std::pair<CallKey, ApiTotal>>, double> TotalsOf(const Model& model, const Calls& calls) {
  std::map<CallKey, ApiTotal> totals;
  for (const Api* api : calls) {
    totals[{model.host.ApiName(*api), AclClass(api->type), api->thread}].Add(static_cast<uint64_t>(LengthOf(model, *api)));
  }
  std::vector<std::pair<CallKey, ApiTotal>> sorted(totals.begin(), totals.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.second.sum_ns > b.second.sum_ns; });
  double all = 0;
  for (const auto& [key, total] : sorted) all += static_cast<double>(total.sum_ns);
  return {std::move(sorted), all};
}

std::string Share(const ApiTotal& total, double all) {
  return ShortDecimal(all > 0 ? static_cast<double>(total.sum_ns) / all * 100 : 0);
}
double MeanOf(const ApiTotal& total) { return static_cast<double>(total.sum_ns) / static_cast<double>(total.count); }

OperatorCsv AclStatistic(const Model& model, int64_t pid, const Calls& calls) {
  std::vector<std::string> lines;
  const auto [totals, all] = TotalsOf(model, calls);
  const auto micros = [](double ns) { return ShortDecimal(ns / 1000); };
  for (const auto& [key, total] : totals) {
    const auto& [name, type, thread] = key;
    CsvRow row(lines.emplace_back());
    row.Text(name).Text(type).Text(Share(total, all)).Text(micros(static_cast<double>(total.sum_ns)));
    row.Int(static_cast<int64_t>(total.count)).Text(micros(MeanOf(total)));
    row.Text(micros(static_cast<double>(total.min_ns))).Text(micros(static_cast<double>(total.max_ns)));
    row.Int(pid).Int(thread).End();
  }
  return OfLines("acl_statistic", "Name,Type,Time(%),Time(us),Count,Avg(us),Min(us),Max(us),Process ID,Thread ID",
                 std::move(lines), false);
}

OperatorCsv RuntimeApi(const Model& model, int64_t pid) {
  std::vector<std::string> lines;
  const auto calls = CallsOf(model, [](const Api& api) { return api.level == operators::kRuntimeLevel; });
  const auto [totals, all] = TotalsOf(model, *calls);
  for (const auto& [key, total] : totals) {
    const auto& [name, type, thread] = key;
    CsvRow row(lines.emplace_back());
    row.Text(name).Text(kNotKnown).Text(Share(total, all)).Int(static_cast<int64_t>(total.sum_ns));  // records have no stream
    row.Int(static_cast<int64_t>(total.count)).Text(ShortDecimal(MeanOf(total)));
    row.Int(static_cast<int64_t>(total.min_ns)).Int(static_cast<int64_t>(total.max_ns)).Int(pid).Int(thread).End();
  }
  return OfLines("runtime_api", "Name,Stream ID,Time(%),Time(ns),Calls,Avg(ns),Min(ns),Max(ns),Process ID,Thread ID",
                 std::move(lines), false);
}

}  // namespace

OperatorCsv OperatorPhases(const Model& model) {
  constexpr uint32_t kLaunch = 5;
  constexpr uint32_t kFirstOfCommunication = 0x20000;
  const auto calls = CallsOf(model, [](const Api& api) {
    return api.level == operators::kNodeLevel && api.type != kLaunch && api.type < kFirstOfCommunication && api.item != 0;
  });
  const auto types = std::make_shared<std::unordered_map<uint64_t, uint64_t>>();  // by name, hashes
  if (!calls->empty()) {
    for (const operators::NodeRecord& node : model.host_tasks.nodes) types->emplace(node.name, node.type);
  }
  return {"ge_op_execute", "Thread ID,OP Name,OP Type,Event Type,Start Time,Duration(us)", calls->size(),
          [&model, calls, types](size_t at, std::string* out) {
            const Api& api = *(*calls)[at];
            const auto type = types->find(api.item);
            CsvRow row(*out);
            row.Int(api.thread).Text(model.host.NameOf(api.item));
            row.Text(type == types->end() ? std::string_view(kNotKnown) : model.host.NameOf(type->second));
            row.Text(model.host.TypeName(api.level, api.type)).Time(model.host.WallNs(api.begin));
            row.Micros(LengthOf(model, api)).End();
          },
          false};
}

std::vector<OperatorCsv> LegacyCsvs(const Model& model, int64_t pid) {
  const auto acl = CallsOf(model, [](const Api& api) { return api.level == operators::kAclLevel; });
  return {AclStatistic(model, pid, *acl), RuntimeApi(model, pid), AclCalls(model, pid, acl)};
}

}  // namespace profd::exporting::csv
