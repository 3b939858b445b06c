// What only the samples of the hardware show: throttling, links, ports, memory, other processes.

#include <array>
#include <set>
#include <string>

#include "analysis/checks/counters.h"

namespace profd::analysis {

std::optional<Finding> CheckThrottle(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"throttle_reason", "", "share"}});
  const std::vector<SeriesMean> seen = SeriesOverLimit(input, "hardware_throttle", kWatched, {});
  // One cause, one finding: where operators were slower for it, that one has the reasons.
  if (seen.empty() || CheckAiCoreFrequency(input)) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.title = Text("The device lowers its clock", "器件降频");
  finding.evidence = Translate({"{:reason was|reasons were} set, the first for {:.0f} % of the samples", "出现 {} 种降频原因，首个占采样的 {:.0f} %"}, Counted{seen.size()}, seen.front().mean * 100);
  finding.advice = {Text("Look at power and temperature of the device (profctl top): cooling, power limit, neighbours in the chassis.", "查看器件的功耗和温度（profctl top）：散热、功耗上限、同机箱的其他器件。")};
  AddRows(seen, &finding);
  return finding;
}

std::optional<Finding> CheckHbm(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"hbm_bandwidth_utilization_ratio", "", "utilization"}});
  const Intervals& computing = input.rank.overlap[OverlapKind::kComputing];
  if (computing.empty()) return std::nullopt;
  const std::vector<SeriesMean> seen = SeriesOverLimit(input, "hardware_hbm", kWatched, computing);
  if (seen.empty()) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kLow;
  finding.title = Text("HBM is busy all the time that operators run", "算子运行期间 HBM 带宽持续占满");
  finding.evidence = Translate({"{:.0f} % of its bandwidth is in use while operators run", "算子运行期间带宽使用率为 {:.0f} %"}, seen.front().mean * 100);
  finding.advice = {Text("Move less: fused operators, smaller types, recomputation only where memory needs it.", "减少搬运：使用融合算子和更小的数据类型，仅在内存不足处使用重计算。")};
  AddRows(seen, &finding);
  return finding;
}

std::optional<Finding> CheckHccs(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"hccs_retries_total", "", "retries_per_s"}, {"hccs_crc_errors_total", "", "crc_errors_per_s"}});
  std::vector<SeriesMean> seen = SeriesOverLimit(input, "hardware_hccs", kWatched, {});
  size_t lanes_lost = 0;
  for (const auto& series : input.rank.hardware) {
    if (!series->name.starts_with("hccs_lanes_up") || series->min >= series->max) continue;
    seen.push_back({series.get(), series->sum / static_cast<double>(series->count)});
    ++lanes_lost;
  }
  if (seen.empty()) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.title = Text("HCCS links repeat data or lose lanes", "HCCS 链路重传或掉 lane");
  finding.evidence = Translate({"{:counter of links reports|counters of links report} retries or checksum errors, {:link} lost lanes", "{} 个链路计数器报告重传或校验错误，{} 条链路掉 lane"}, Counted{seen.size() - lanes_lost}, Counted{lanes_lost});
  finding.advice = {Text("Have the links of the named numbers checked; move the job to another node until then.", "请检修表中编号的链路；在此之前将作业迁移到其他节点。")};
  AddRows(seen, &finding);
  return finding;
}

std::optional<Finding> CheckRoce(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"roce_retransmits_total", "", "retransmits_per_s"},
                                                    {"netdev_roce_new_packet_retries_delta", "", "retransmits_per_s"},
                                                    {"Network Device", "new packet retries", "retransmits_per_s"},
                                                    {"network_pfc_frames_total", "", "pfc_frames_per_s"},
                                                    {"netdev_mac_pfc_packets_delta", "", "pfc_frames_per_s"},
                                                    {"Network Device", "PFC packets", "pfc_frames_per_s"},
                                                    {"network_port_errors_total", "layer=roce", "errors_per_s"},
                                                    {"network_port_dropped_total", "layer=roce", "errors_per_s"},
                                                    {"RoCE", " errors", "errors_per_s"},
                                                    {"RoCE", " dropped", "errors_per_s"},
                                                    {"network_fcs_errors_total", "", "errors_per_s"}});
  const std::vector<SeriesMean> seen = SeriesOverLimit(input, "hardware_roce", kWatched, {});
  if (seen.empty()) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.title = Text("The RoCE port sends again, is paused or drops", "RoCE 端口重传、被暂停或丢包");
  finding.evidence = Translate({"{:counter of the port is above its limit|counters of the port are above their limits}; the first: {}, {:.1f} on average", "端口有 {} 个计数器超过阈值；首个为 {}，平均 {:.1f}"}, Counted{seen.size()}, seen.front().series->name,
                         seen.front().mean);
  finding.advice = {Text("Check cable, optics and the switch's port (profctl top), and its settings of PFC and ECN.", "检查线缆、光模块和交换机端口（profctl top），以及 PFC 和 ECN 配置。"),
                    Text("See retransmission and bandwidth_imbalance for what it costs.", "影响程度见 retransmission 和 bandwidth_imbalance。")};
  AddRows(seen, &finding);
  return finding;
}

std::optional<Finding> CheckOtherProcess(const CheckInput& input) {
  constexpr auto kWatched = std::to_array<Watched>({{"process_memory_bytes", "", "least_bytes"}});
  const std::vector<SeriesMean> seen = SeriesOverLimit(input, "hardware_other_process", kWatched, {});
  std::set<std::string> pids;
  for (const SeriesMean& each : seen) {
    const std::string& name = each.series->name;
    const size_t at = name.find(" pid=");
    if (at != std::string::npos) pids.insert(name.substr(at + 1, name.find(' ', at + 1) - at - 1));
  }
  if (pids.size() < 2) return std::nullopt;
  Finding finding;
  finding.priority = Priority::kMedium;
  finding.title = Text("Several processes use the NPU", "多个进程占用同一 NPU");
  finding.evidence = Translate({"{:process} held memory of it", "{} 个进程占用其内存"}, Counted{pids.size()});
  finding.advice = {Text("Where they are not all of this training: end the others, or move one of them to another device.", "若不都属于本次训练：结束其他进程，或将其迁移到其他器件。")};
  AddRows(seen, &finding);
  return finding;
}

}  // namespace profd::analysis
