#include "daemon/metrics/npu_exporter_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "base/clock.h"
#include "collectors/metric_table.h"
#include "daemon/metrics/metric_store.h"
#include "daemon/metrics/npu_exporter_table.h"

namespace profd {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNow = 1000 * kNsPerSecond;

// "name|labels|unit" of every metric, ranges written out.
std::set<std::string> NamesOfTable() {
  std::set<std::string> names;
  for (const NpuExporterRow& row : NpuExporterTable()) {
    const NpuExporterName name = SplitNpuExporterName(row.name);
    for (int number = name.first; number <= name.last; ++number) {
      std::string full(name.stem);
      if (name.stem != row.name) full += std::to_string(number);
      full.append("|").append(NpuExporterLabelNames(row.labels)).append("|").append(row.unit);
      EXPECT_TRUE(names.insert(full).second) << "twice: " << full;
    }
  }
  return names;
}

TEST(NpuExporterTable, HoldsEveryMetricOfNpuExporterWithItsLabelsAndUnit) {
  std::ifstream file(PROFD_SOURCE_DIR "/tests/golden/npu_exporter_names.txt");
  ASSERT_TRUE(file);
  std::set<std::string> golden;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("#")) golden.insert(line);
  }
  EXPECT_THAT(NamesOfTable(), ::testing::ContainerEq(golden));
}

TEST(NpuExporterTable, EverySourceExistsAndCanMatch) {
  for (const NpuExporterRow& row : NpuExporterTable()) {
    EXPECT_TRUE(!SourcesOf(row).empty() || !row.note.empty()) << row.name << ": the note has no reason";
    for (const NpuExporterSource& source : SourcesOf(row)) {
      auto metric = std::ranges::find(kMetrics, source.metric, &MetricSpec::name);
      ASSERT_NE(metric, kMetrics.end()) << row.name << ": " << source.metric;
      const std::string labels = "," + std::string(metric->labels) + ",";
      for (std::string_view match = source.match; !match.empty();) {
        const size_t comma = std::min(match.find(','), match.size());
        const std::string label = "," + std::string(match.substr(0, match.find('='))) + ",";
        EXPECT_THAT(labels, HasSubstr(label)) << row.name;
        match.remove_prefix(std::min(comma + 1, match.size()));
      }
      if (!row.number.empty()) {
        EXPECT_THAT(labels, HasSubstr("," + std::string(row.number) + ",")) << row.name;
      }
    }
  }
}

class NpuExporter : public ::testing::Test {
 protected:
  NpuExporter() {
    store_.SetDeviceLabels(0, "0", "DIE0");
    store_.SetDeviceLabels(1, "1", "DIE1");
  }

  void Set(MetricId metric, int device, std::initializer_list<std::string_view> labels,
           double value, int64_t time_ns = kNow) {
    const SeriesId id = store_.Intern(metric, device, labels);
    store_.Write(std::vector<Sample>{{id, time_ns, value}});
  }
  void SetInfo(int device, std::string_view chip_name = "Ascend910B3") {
    Set(MetricByName("atlas_npu_info"), device,
        {"0", "0", "0", "Atlas 800T A2", chip_name, "V1", "SN1", "0000:c1:00.0", "0x34", "", "0"}, 1);
  }
  void AddContainer(int device, std::string_view pod, std::string_view container) {
    Set(MetricByName("atlas_npu_container_info"), device, {"train", pod, container, "c0ffee"}, 1);
  }
  std::string Text(int64_t now_ns = kNow) {
    return prometheus::TextSerializer().Serialize(NpuExporterFamilies(store_, now_ns, version_, &rates_));
  }
  // The line's labels besides the common ones, and its value.
  static std::string Line(std::string_view name, std::string_view value, int npu = 0,
                          std::string_view more = {}, std::string_view pod_labels = kNoPod) {
    return std::string(name) + "{id=\"" + std::to_string(npu) +
           "\",model_name=\"910B3-Ascend-V1\",vdie_id=\"DIE" + std::to_string(npu) +
           "\",pcie_bus_info=\"0000:C1:00.0\"," + std::string(pod_labels) + std::string(more) + "} " +
           std::string(value) + "\n";
  }

  static constexpr std::string_view kNoPod = R"(namespace="",pod_name="",container_name="")";

  MetricStore store_;
  NpuExporterRates rates_;
  std::string version_;
};

TEST_F(NpuExporter, NamesOfThe950KeepTheirType) {
  SetInfo(0, "Ascend950DT");
  EXPECT_THAT(Text(), HasSubstr("model_name=\"Ascend950DT-Ascend-V1\""));
}

TEST_F(NpuExporter, NamesThatSchedulersReadAreExact) {
  SetInfo(0);
  for (int percent = 0; percent <= 100; ++percent) {
    Set(MetricByName("atlas_npu_utilization_ratio"), 0, {"aicore"}, percent / 100.0);
    EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_info_utilization", std::to_string(percent))));
  }
  Set(MetricByName("atlas_npu_hbm_used_bytes"), 0, {}, 32123.0 * 1024 * 1024);
  Set(MetricByName("atlas_npu_hbm_size_bytes"), 0, {}, 65536.0 * 1024 * 1024);
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_info_hbm_used_memory", "32123")));
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_info_hbm_total_memory", "65536")));
  EXPECT_THAT(Text(), HasSubstr("# TYPE npu_chip_info_hbm_used_memory gauge\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("container_npu_")));
}

TEST_F(NpuExporter, UnitsAreThoseOfNpuExporter) {
  SetInfo(0);
  Set(MetricByName("atlas_npu_frequency_hertz"), 0, {"aicore"}, 1.85e9);
  Set(MetricByName("atlas_npu_hccs_bandwidth_bytes_per_second"), 0, {"3", "tx"}, 2147483648.0);
  Set(MetricByName("atlas_npu_hccs_bandwidth_bytes_per_second"), 0, {"all", "tx"}, 1610612736.0);
  Set(MetricByName("atlas_npu_hccs_bandwidth_bytes_per_second"), 0, {"0", "tx"}, 1);
  Set(MetricByName("atlas_npu_pcie_bandwidth_bytes_per_second"), 0, {"rx", "nonposted", "avg"},
      3.0 * 1024 * 1024 * 1000);
  Set(MetricByName("atlas_npu_network_speed_bytes_per_second"), 0, {"0"}, 25e9);
  Set(MetricByName("atlas_npu_optical_power_watts"), 0, {"0", "tx", "1"}, 0.0009095);
  Set(MetricByName("atlas_npu_optical_supply_volts"), 0, {"0"}, 3.3014);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_aicore_current_freq", "1850")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_hccs_bandwidth_info_tx_3", "2")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_hccs_bandwidth_info_total_tx", "1.5")));
  EXPECT_THAT(text, Not(HasSubstr("npu_chip_info_hccs_bandwidth_info_tx_0")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_pcie_rx_np_bw", "3", 0,
                                   ",pcie_bw_type=\"avgPcieBw\"")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_link_speed", "200000")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_optical_tx_power_1", "0.9095")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_optical_vcc", "3301.4")));
}

TEST_F(NpuExporter, HealthIsOneAndNotAnsweringIsMinusOne) {
  SetInfo(0);
  Set(MetricByName("atlas_npu_up"), 0, {}, 1);
  Set(MetricByName("atlas_npu_health_status"), 0, {}, 0);
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_info_health_status", "1")));
  Set(MetricByName("atlas_npu_health_status"), 0, {}, 2);
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_info_health_status", "0")));
  Set(MetricByName("atlas_npu_up"), 0, {}, 0);
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_info_health_status", "-1")));
}

TEST_F(NpuExporter, FaultCodesAreNumberedInAscendingOrder) {
  SetInfo(0);
  SetInfo(1);
  EXPECT_THAT(Text(), Not(HasSubstr("npu_chip_info_error_code")));
  constexpr MetricId kFault = MetricByName("atlas_npu_fault_active");
  Set(kFault, 0, {"0x80E18005", "major"}, 1);
  Set(kFault, 0, {"0x80E18005", "unknown"}, 1);
  Set(kFault, 0, {"0x00000010", "minor"}, 1);
  Set(kFault, 1, {"0x00000011", "minor"}, 1);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_error_code", "16")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_error_code_1", "2162262021")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_error_code", "17", 1)));
  EXPECT_THAT(text, Not(HasSubstr("npu_chip_info_error_code_2")));
  for (int i = 0; i < 20; ++i) {
    Set(kFault, 1, {"0x000001" + std::to_string(10 + i), "minor"}, 1);
  }
  EXPECT_THAT(Text(), HasSubstr("npu_chip_info_error_code_9{"));
  EXPECT_THAT(Text(), Not(HasSubstr("npu_chip_info_error_code_10")));
}

TEST_F(NpuExporter, PrioritiesAreSummed) {
  SetInfo(0);
  Set(MetricByName("atlas_npu_network_pfc_frames_total"), 0, {"rx", "0"}, 5);
  Set(MetricByName("atlas_npu_network_pfc_frames_total"), 0, {"rx", "7"}, 6);
  Set(MetricByName("atlas_npu_network_pfc_frames_total"), 0, {"tx", "7"}, 1);
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_mac_rx_pfc_pkt_num", "11")));
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_mac_tx_pfc_pkt_num", "1")));
}

TEST_F(NpuExporter, BandwidthIsTheGrowthOfTheByteCounterUntilAChannelKnowsIt) {
  SetInfo(0);
  constexpr MetricId kBytes = MetricByName("atlas_npu_network_bytes_total");
  Set(kBytes, 0, {"tx", "mac"}, 1e9);
  EXPECT_THAT(Text(), Not(HasSubstr("npu_chip_info_bandwidth_tx")));
  Set(kBytes, 0, {"tx", "mac"}, 4e9, kNow + 10 * kNsPerSecond);
  for (int scrape = 0; scrape < 2; ++scrape) {
    EXPECT_THAT(Text(kNow + 11 * kNsPerSecond),
                HasSubstr(Line("npu_chip_info_bandwidth_tx", "300")));
  }
  Set(kBytes, 0, {"tx", "mac"}, 5, kNow + 20 * kNsPerSecond);
  EXPECT_THAT(Text(kNow + 21 * kNsPerSecond), Not(HasSubstr("npu_chip_info_bandwidth_tx")));
  Set(MetricByName("atlas_npu_network_port_bandwidth_bytes_per_second"), 0, {"nic", "0", "tx"}, 7e6,
      kNow + 20 * kNsPerSecond);
  EXPECT_THAT(Text(kNow + 21 * kNsPerSecond), HasSubstr(Line("npu_chip_info_bandwidth_tx", "7")));
}

TEST_F(NpuExporter, PodsAreNamedWhileOneHasTheChip) {
  SetInfo(0);
  Set(MetricByName("atlas_npu_utilization_ratio"), 0, {"aicore"}, 0.5);
  Set(MetricByName("atlas_npu_process_memory_bytes"), 0, {"42", "", ""}, 3.0 * 1024 * 1024);
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_info_process_info", "3", 0,
                                     ",process_id=\"42\",container_id=\"\"")));
  AddContainer(0, "llama-0", "worker");
  const std::string one = Text();
  constexpr std::string_view kPod =
      R"(namespace="train",pod_name="llama-0",container_name="worker")";
  EXPECT_THAT(one, HasSubstr(Line("npu_chip_info_utilization", "50", 0, {}, kPod)));
  EXPECT_THAT(one, HasSubstr(Line("container_npu_utilization", "50", 0, {}, kPod)));
  EXPECT_THAT(one, HasSubstr("npu_container_info{npuID=\"0\",model_name=\"910B3-Ascend-V1\","));
  EXPECT_THAT(one, HasSubstr("containerID=\"c0ffee\",containerName=\"train_llama-0_worker\"} 1\n"));
  EXPECT_THAT(one, HasSubstr("container_name=\"train_llama-0_worker\",process_id=\"42\","
                             "container_id=\"c0ffee\"} 3\n"));
  AddContainer(0, "llama-1", "worker");
  EXPECT_THAT(Text(), HasSubstr(Line("npu_chip_info_utilization", "50", 0, {},
                                     R"(namespace="not_displayed_for_multi_pod",)"
                                     R"(pod_name="not_displayed_for_multi_pod",)"
                                     R"(container_name="not_displayed_for_multi_pod")")));
  EXPECT_THAT(Text(), HasSubstr("pod_name=\"llama-1\""));
  Set(MetricByName("atlas_npu_process_memory_bytes"), 0, {"43", "job", "worker"}, 1024.0 * 1024);
  EXPECT_THAT(Text(), HasSubstr("process_id=\"43\",container_id=\"c0ffee\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("process_id=\"42\",container_id=\"\"} 3\n"));
}

TEST_F(NpuExporter, PortsOfA5HaveLabelsAndDecibels) {
  SetInfo(0);
  Set(MetricByName("atlas_npu_network_link_up"), 0, {"1/4"}, 1);
  Set(MetricByName("atlas_npu_network_speed_bytes_per_second"), 0, {"1/4"}, 50e9);
  Set(MetricByName("atlas_npu_optical_power_watts"), 0, {"1/4", "rx", "2"}, 0.001);
  const std::string text = Text();
  constexpr std::string_view kPort = ",udie=\"1\",port=\"4\"";
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_link_status", "1", 0, kPort)));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_link_speed", "400", 0, kPort)));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_optical_rx_power_2", "0", 0, kPort)));
  EXPECT_THAT(text, Not(HasSubstr("npu_chip_link_speed")));
}

TEST_F(NpuExporter, UnifiedBusPortsAndSharesOfAnNpu) {
  SetInfo(0);
  Set(MetricByName("atlas_npu_ub_packets_total"), 0, {"1", "4", "rx", "ub_ipv4"}, 7);
  Set(MetricByName("atlas_npu_ub_packets_total"), 0, {"0", "4", "rx", "ub_ipv4"}, 8);
  Set(MetricByName("atlas_npu_ub_errors_total"), 0, {"1", "4", "tx", "length"}, 9);
  Set(MetricByName("atlas_npu_vnpu_memory_bytes"), 0, {"101", "used"}, 2048);
  Set(MetricByName("atlas_npu_vnpu_utilization_ratio"), 0, {"101"}, 0.07);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_ub_ipv4_pkt_cnt_rx", "7", 0,
                                   ",udie=\"1\",port=\"4\"")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_ub_ipv4_pkt_cnt_rx", "8", 0,
                                   ",udie=\"0\",port=\"4\"")));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_length_err_cnt_tx", "9", 0,
                                   ",udie=\"1\",port=\"4\"")));
  constexpr std::string_view kShare =
      "{id=\"0\",model_name=\"910B3-Ascend-V1\",v_dev_id=\"101\",aicore_count=\"\",namespace=\"\","
      "pod_name=\"\",container_name=\"\",is_virtual=\"true\"} ";
  EXPECT_THAT(text, HasSubstr("vnpu_pod_used_memory" + std::string(kShare) + "2\n"));
  EXPECT_THAT(text, HasSubstr("vnpu_pod_aicore_utilization" + std::string(kShare) + "7\n"));
}

TEST_F(NpuExporter, ProductsAreNamedOn310POnly) {
  SetInfo(0, "Ascend310P3");
  EXPECT_THAT(Text(), HasSubstr("product_type=\"Atlas 800T A2\"} 1\n"));
}

TEST_F(NpuExporter, NodeMetrics) {
  SetInfo(0);
  SetInfo(1);
  Set(MetricByName("atlas_npu_processes"), 0, {}, 0);
  version_ = "1.2.3";
  Set(MetricByName("atlas_driver_info"), kHostDevice, {"24.1", "dcmi-5", "v1"}, 1);
  Set(MetricByName("atlas_npus"), kHostDevice, {"present"}, 2);
  Set(MetricByName("atlas_npus"), kHostDevice, {"unknown"}, 1);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("npu_exporter_version_info{exporterVersion=\"1.2.3\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("node_base_info{exporterVersion=\"1.2.3\",driverVersion=\"dcmi-5\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("machine_npu_nums 2\n"));
  EXPECT_THAT(text, HasSubstr("machine_unknown_npu_nums 1\n"));
  EXPECT_THAT(text, HasSubstr("machine_card_nums 1\n"));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_process_info", "0", 0,
                                   ",process_id=\"\",container_id=\"\"")));
  EXPECT_THAT(text, HasSubstr("npu_chip_info_name{id=\"1\",name=\"910B3-Ascend-V1\""));
  EXPECT_THAT(text, HasSubstr(Line("npu_chip_info_serial_number", "1", 0,
                                   ",serial_number=\"SN1\"")));
  EXPECT_THAT(text, Not(HasSubstr("npu_chip_info_product_type")));
}

TEST_F(NpuExporter, StaleOrSilentDevicesAreAbsent) {
  EXPECT_EQ(Text(), "");
  Set(MetricByName("atlas_npu_processes"), 0, {}, 3);
  EXPECT_THAT(Text(), HasSubstr("npu_chip_info_process_info_num{id=\"0\",model_name=\"\""));
  EXPECT_EQ(Text(kNow + 3600 * kNsPerSecond), "");
}

}  // namespace
}  // namespace profd
