#include "analysis/rules/limits.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <toml++/toml.h>
#include <vector>

#include "base/log.h"
#include "base/nearest.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

// analysis 1.2 and 1.3
constexpr auto kLimits = std::to_array<Limit>({
    {"priority", "high", 0.05, "of the step", "what takes so much of a step is of high priority"},
    {"priority", "medium", 0.03, "of the step", "of medium priority"},
    {"slow_rank", "difference", 0.05, "of the mean", "largest less smallest of a part, by the mean of all parts together"},
    {"slow_rank", "votes", 0.1, "of operations", "collectives at which it arrives last, far behind the others (Dixon's test, 3 sigma)"},
    {"environment", "aclnn_cache_limit", 10000, "entries", "the least that ACLNN_CACHE_LIMIT should be"},
    {"aicpu", "longest_us", 20, "us", "the longest operator of the rank"},
    {"operator_no_bound", "ratio", 0.8, "of the time", "above it a unit bounds the operator"},
    {"operator_no_bound", "longest_us", 20, "us", "the longest operator that nothing bounds"},
    {"ai_core_frequency", "decrease", 0.05, "of the nominal", "mean decrease while an operator runs"},
    {"ai_core_performance", "cube_mb", 100, "MB", "tensors of all calls of a matrix multiplication, at least"},
    {"ai_core_performance", "cube_multiple", 256, "elements", "the inner axis of its inputs should be a multiple of"},
    {"ai_core_performance", "cube_bound", 0.95, "of the time", "mac or mte2 bounds it"},
    {"ai_core_performance", "mac_beside_mte2", 0.8, "of the time", "mac bounds it beside mte2"},
    {"ai_core_performance", "attention_multiple", 128, "elements", "head dimension and sequence should be multiples of"},
    {"ai_core_performance", "attention_mte2", 0.8, "of the time", "mte2 bounds attention"},
    {"ai_core_performance", "attention_unit", 0.75, "of the time", "vec (backward: fixpipe) bounds attention"},
    {"ai_core_performance", "vector_share", 0.01, "of all", "a type of vector operators is looked at"},
    {"ai_core_performance", "vector_us", 1000000, "us", "or from so much time on"},
    {"ai_core_performance", "vector_sum", 0.9, "of the time", "vec, mte2 and mte3 together bound it"},
    {"ai_core_performance", "vector_unit", 0.7, "of the time", "one of them bounds it"},
    {"fusible_operators", "occurrences", 5, "times", "a sequence occurs more often"},
    {"fusible_operators", "busy_share", 0.4, "of the sequence", "less of it busy: the host is the limit"},
    {"fusible_operators", "transfer_share", 0.8, "of the core's time", "more of it transfers: they are the limit"},
    {"fusible_operators", "share_of_all", 0.01, "of all", "all occurrences together, where the host is the limit"},
    {"fusible_operators", "high", 0.7, "of all", "all sequences together: of high priority above it"},
    {"fusible_operators", "low", 0.3, "of all", "all sequences together: of low priority below it"},
    {"stage_imbalance", "difference", 0.05, "of the mean", "largest less smallest computing of a pipeline's ranks"},
    {"wait_for_rank", "share", 0.05, "of the step", "the others wait for one rank"},
    {"wait_for_rank", "beside_mean", 1.5, "times", "as long as for a rank on average"},
    {"expert_imbalance", "difference", 0.2, "of the mean", "largest less mean data of a rank in all-to-all operations"},
    {"bandwidth_imbalance", "of_median", 0.8, "of the median", "less bandwidth of a rank than of the others"},
    {"bandwidth_imbalance", "deviations", 3, "deviations", "a link slower than the mean of its transport"},
    {"synchronize_stream", "share", 0.5, "of launches", "launches directly followed by a synchronisation"},
    {"gc", "least_us", 1000, "us", "a collection of garbage"},
    {"conjectured_gc", "gap_us", 200000, "us", "free time"},
    {"conjectured_gc", "api_share", 0.01, "of the gap", "time of API calls in it, less than"},
    {"conjectured_gc", "api_per_us", 0.0001, "1/us", "API calls in it, less than"},
    {"operator_dispatch", "count", 20, "calls", "compilations of operators"},
    {"sync_batch_norm", "count", 20, "calls", "calls of SyncBatchNorm"},
    {"packet", "sdma_mb", 16, "MB", "smaller ones are small packets of SDMA"},
    {"packet", "rdma_mb", 1, "MB", "smaller ones are small packets of RDMA"},
    {"packet", "share", 0.2, "of operations", "small ones"},
    {"bandwidth_contention", "sdma_gb_s", 14.4, "GB/s", "slower beside a matrix multiplication"},
    {"byte_alignment", "high", 0.7, "of the time", "transfers that are not aligned, at least"},
    {"byte_alignment", "medium", 0.2, "of the time", "of medium priority"},
    {"retransmission", "least_ms", 4000, "ms", "RDMA transit, and the operation on every rank"},
    {"memory", "least_us", 10000, "us", "all calls of one kind together"},
    {"hardware_throttle", "share", 0.01, "of the samples", "a reason is set"},
    {"hardware_hbm", "utilization", 0.9, "of the bandwidth", "mean while operators run"},
    {"hardware_other_process", "least_bytes", 1 << 20, "bytes", "of memory of the NPU held by a process that counts"},
    {"hardware_hccs", "retries_per_s", 1, "1/s", "retries of a link"},
    {"hardware_hccs", "crc_errors_per_s", 1, "1/s", "checksum errors of a link"},
    {"hardware_roce", "retransmits_per_s", 1, "1/s", "packets sent again (records that count since the last: in each)"},
    {"hardware_roce", "pfc_frames_per_s", 100, "1/s", "pause frames of one priority (the same)"},
    {"hardware_roce", "errors_per_s", 1, "1/s", "errors or drops of the port"},
    {"host_cpu", "waiting", 0.3, "of the free time", "a process waits for a CPU"},
    {"host_memory", "waiting", 0.1, "of the free time", "a process waits for memory"},
    {"host_storage", "waiting", 0.3, "of the free time", "a process waits for storage"},
    {"host_affinity", "far_share", 0.5, "of the CPUs", "that a process may run on are not next to its NPU"},
    {"hardware_pcie", "gb_s", 16, "GB/s", "mean in one direction while the device copies"},
    {"hardware_pcie", "errors_per_s", 1, "1/s", "errors of the link"},
    {"host_profiling", "cpus", 0.05, "CPUs", "mean of what profd takes, in the training process too"},
    {"dataloader", "least_us", 10000, "us", "one call of the data loader"},
    // Of the live checks of the daemon alone (docs/jobs.md); they use slow_rank, gc, dataloader, aicpu, hardware_*,
    // host_* and ai_core_frequency of those above, too.
    {"live", "raise_s", 3, "s", "a condition holds this long before it is raised"},
    {"live", "clear_s", 10, "s", "it has not held for this long before it is taken back"},
    {"live", "clear_share", 0.7, "of the limit", "down to it a condition that was raised holds"},
    {"live", "most_per_job", 6, "findings", "of one job at the same time"},
    {"live", "step_share", 0.03, "of the step", "what costs less is not raised"},
    {"live", "forget_s", 3600, "s", "what has stayed the same for this time is the new normal"},
    {"slow_rank", "steps_behind", 2, "steps", "a rank is behind the others"},
    {"steps_slower", "ratio", 0.15, "of its past", "a step takes longer"},
    {"computation_slower", "ratio", 0.08, "of their past", "the same kernels take longer"},
    {"communication_slower", "ratio", 0.2, "of its past", "communication of the rank that waits least takes longer"},
    {"free_time", "grown", 0.05, "of the step", "more free time than in the past"},
    {"free_time", "share", 0.4, "of the step", "free time"},
    {"hang", "multiple", 10, "steps", "no step ends for this many times the usual duration of a step"},
    {"hang", "least_s", 30, "s", "and for at least this time"},
    {"device_memory", "used", 0.95, "of the memory", "is in use"},
    {"aicpu", "share", 0.03, "of the step", "live: operators on the AI CPU"},
});

}  // namespace

std::span<const Limit> DefaultLimits() { return kLimits; }

Limits::Limits() {
  for (const Limit& limit : kLimits) values_[{std::string(limit.check), std::string(limit.name)}] = limit.value;
}

double Limits::At(std::string_view check, std::string_view name) const {
  return values_.at({std::string(check), std::string(name)});
}

std::string Limits::Change(std::string_view check, std::string_view name, const std::optional<double>& number) {
  const auto known = values_.find({std::string(check), std::string(name)});
  if (known == values_.end()) {
    std::vector<std::string> all;
    for (const Limit& limit : kLimits) all.push_back(fmt::format("{}.{}", limit.check, limit.name));
    const std::string wanted = fmt::format("{}.{}", check, name);
    return fmt::format("there is no limit {}{}", wanted, DidYouMean(wanted, std::vector<std::string_view>(all.begin(), all.end())));
  }
  if (!number || !(*number >= 0)) return fmt::format("{}.{}: a number from 0 on", check, name);
  known->second = *number;
  return {};
}

Status Limits::Parse(std::string_view text, const std::string& name) {
  toml::table file;
  try {
    file = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    return InvalidArgument(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
  std::multimap<uint32_t, std::string> wrong;  // by line
  const auto report = [&wrong](const toml::node& at, const std::string& what) {
    if (!what.empty()) wrong.emplace(at.source().begin.line, what);
  };
  for (const auto& [section, content] : file) {
    const toml::table* table = content.as_table();
    if (table == nullptr) {
      report(content, fmt::format("{} is no section: limits stand below [check]", section.str()));
      continue;
    }
    for (const auto& [key, value] : *table) report(value, Change(section.str(), key.str(), value.value<double>()));
  }
  std::string all;
  for (const auto& [line, what] : wrong) all += fmt::format("{}{}:{}: {}", all.empty() ? "" : "; ", name, line, what);
  return all.empty() ? Status::Ok() : InvalidArgument(all);
}

Status Limits::Set(std::string_view text) {
  const size_t equals = text.find('=');
  const size_t dot = text.substr(0, equals).find('.');
  if (equals == std::string_view::npos || dot == std::string_view::npos) {
    return InvalidArgument(fmt::format("{}: limits are written \"check.name=number\"", log::Quote(text)));
  }
  double number = 0;
  const bool is_number = ParseNumber(Trim(text.substr(equals + 1)), &number);
  const std::string wrong = Change(Trim(text.substr(0, dot)), Trim(text.substr(dot + 1, equals - dot - 1)),
                                   is_number ? std::optional(number) : std::nullopt);
  return wrong.empty() ? Status::Ok() : InvalidArgument(log::Quote(text) + ": " + wrong);
}

}  // namespace profd::analysis
