// What only the hardware beside the run says: throttling, links, ports, memory, other processes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "analysis/checks/counters.h"

namespace profd::analysis {
namespace {

const Intervals& PartOf(const Rank& rank, OverlapKind kind) { return rank.overlap[static_cast<size_t>(kind)]; }

}  // namespace

std::optional<Finding> CheckThrottle(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"throttle_reason", "", "share"}});
  const std::vector<Seen> seen = SeenIn(input, "hardware_throttle", kWatched, {});
  // One cause, one finding: where operators were slower for it, that one has the reasons.
  if (seen.empty() || CheckAiCoreFrequency(input)) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.title = "The device lowers its clock";
  finding.evidence = fmt::format("{} reasons were set, the first for {:.0f} % of the samples", seen.size(), seen.front().mean * 100);
  finding.advice = {"Look at power and temperature of the device (profctl top): cooling, power limit, neighbours in the chassis."};
  AddRows(seen, &finding);
  return finding;
}

std::optional<Finding> CheckHbm(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"hbm_bandwidth_utilization_ratio", "", "utilization"}});
  const Intervals& computing = PartOf(input.rank, OverlapKind::kComputing);
  if (computing.empty()) return std::nullopt;
  const std::vector<Seen> seen = SeenIn(input, "hardware_hbm", kWatched, computing);
  if (seen.empty()) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = "HBM is busy all the time that operators run";
  finding.evidence = fmt::format("{:.0f} % of its bandwidth is in use while operators run", seen.front().mean * 100);
  finding.advice = {"Move less: fused operators, smaller types, recomputation only where memory needs it."};
  AddRows(seen, &finding);
  return finding;
}

std::optional<Finding> CheckHccs(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"hccs_retries_total", "", "retries_per_s"}, {"hccs_crc_errors_total", "", "crc_errors_per_s"}});
  std::vector<Seen> seen = SeenIn(input, "hardware_hccs", kWatched, {});
  size_t lanes_lost = 0;
  for (const auto& series : input.rank.hardware) {
    if (!series->name.starts_with("hccs_lanes_up") || series->min >= series->max) continue;
    seen.push_back({series.get(), series->sum / static_cast<double>(series->count)});
    ++lanes_lost;
  }
  if (seen.empty()) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.title = "HCCS links repeat data or lose lanes";
  finding.evidence = fmt::format("{} counters of links report retries or checksum errors, {} links lost lanes", seen.size() - lanes_lost, lanes_lost);
  finding.advice = {"Have the links of the named numbers checked; move the job to another node until then."};
  AddRows(seen, &finding);
  return finding;
}

std::optional<Finding> CheckRoce(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"roce_retransmits_total", "", "retransmits_per_s"},
                                                    {"netdev_roce_new_packet_retries_delta", "", "retransmits_per_s"},
                                                    {"network_pfc_frames_total", "", "pfc_frames_per_s"},
                                                    {"netdev_mac_pfc_packets_delta", "", "pfc_frames_per_s"},
                                                    {"network_port_errors_total", "layer=roce", "errors_per_s"},
                                                    {"network_port_dropped_total", "layer=roce", "errors_per_s"},
                                                    {"network_fcs_errors_total", "", "errors_per_s"}});
  const std::vector<Seen> seen = SeenIn(input, "hardware_roce", kWatched, {});
  if (seen.empty()) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.title = "The RoCE port sends again, is paused or drops";
  finding.evidence = fmt::format("{} counters of the port are above their limits; the first: {}, {:.1f} on average", seen.size(), seen.front().series->name, seen.front().mean);
  finding.advice = {"Check cable, optics and the switch's port (profctl top, docs/metrics.md), and its settings of PFC and ECN.",
                    "See retransmission and slow_link for what it costs."};
  AddRows(seen, &finding);
  return finding;
}

std::optional<Finding> CheckOtherProcess(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"process_memory_bytes", "", "least_bytes"}});
  const std::vector<Seen> seen = SeenIn(input, "hardware_other_process", kWatched, {});
  std::set<std::string> pids;
  for (const Seen& each : seen) {
    const std::string& name = each.series->name;
    const size_t at = name.find(" pid=");
    if (at != std::string::npos) pids.insert(name.substr(at + 1, name.find(' ', at + 1) - at - 1));
  }
  if (pids.size() < 2) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kMedium;
  finding.title = "Several processes use the NPU";
  finding.evidence = fmt::format("{} processes held memory of it", pids.size());
  finding.advice = {"Where they are not all of this training: end the others, or move one of them to another device."};
  AddRows(seen, &finding);
  return finding;
}

}  // namespace profd::analysis
