// profctl health, faults, topology.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/health_view.h"
#include "client/test_support.h"
#include "proto/enum_word/enum_word.h"

namespace profd::client {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSince = 1'767'225'600'000'000'000;

class HealthTest : public ProfctlTest {
 protected:
  HealthTest() {
    daemon_.node.set_hostname("node17");
    for (uint32_t i = 0; i < 4; ++i) {
      v1::Device* device = daemon_.node.add_devices();
      device->set_id(i);
      device->set_physical_id(i + 4);
      device->set_chip("Ascend910B");
      device->mutable_health()->set_verdict(v1::Health::VERDICT_OK);
    }
    v1::Health& hot = Of(1, v1::Health::VERDICT_DEGRADED);
    for (const auto flag : {v1::Health::FLAG_FAULT, v1::Health::FLAG_THROTTLED, v1::Health::FLAG_ALARM}) hot.add_flags(flag);
    hot.add_reasons("the AI Core clock is lowered (bit0)");
    AddFault(&hot, "0x80C98009", "AI Core frequency reduced", "minor", kSince);
    v1::Health& ecc = Of(2, v1::Health::VERDICT_FAULTY);
    for (const auto flag : {v1::Health::FLAG_ECC, v1::Health::FLAG_FAULT, v1::Health::FLAG_ALARM}) ecc.add_flags(flag);
    ecc.set_health_status(2);
    AddFault(&ecc, "0x80E01801", "", "major", 0);
    Of(3, v1::Health::VERDICT_DOWN).add_flags(v1::Health::FLAG_GONE);
    daemon_.node.mutable_health()->set_verdict(v1::Health::VERDICT_DOWN);
  }

  v1::Health& Of(int device, v1::Health::Verdict verdict) {
    v1::Health& health = *daemon_.node.mutable_devices(device)->mutable_health();
    health.set_verdict(verdict);
    return health;
  }
  static void AddFault(v1::Health* health, const char* code, const char* name,
                       const char* severity, int64_t since_ns) {
    v1::Fault& fault = *health->add_faults();
    fault.set_code(code);
    fault.set_name(name);
    fault.set_severity(EnumOf<v1::Fault::Severity>(severity));
    fault.set_since_ns(since_ns);
  }
};

TEST_F(HealthTest, TheExitCodeIsTheWorstVerdict) {
  EXPECT_EQ(Run({"health"}), 8);
  EXPECT_THAT(out(), HasSubstr("node17: down\n"));
  EXPECT_THAT(out(), HasSubstr("0x80C98009 throttled"));
  EXPECT_THAT(out(), HasSubstr("ecc 0x80E01801"));
}

TEST_F(HealthTest, OnlyTheChosenDevicesCount) {
  const std::pair<const char*, int> cases[] = {{"0", 0}, {"1", 7}, {"0-2", 8}, {"3", 8}};
  for (const auto& [devices, code] : cases) {
    EXPECT_EQ(Run({"health", "--devices", devices}), code) << devices;
  }
  Of(0, v1::Health::VERDICT_UNKNOWN);
  EXPECT_EQ(Run({"health", "--devices", "0"}), 9);
  EXPECT_EQ(Run({"health", "--devices", "9"}), 4);
  EXPECT_EQ(Run({"health", "--devices", "x"}), 2);
}

TEST_F(HealthTest, Json) {
  EXPECT_EQ(Run({"health", "--json"}), 8);
  Json json = Json::parse(out());
  EXPECT_EQ(json["verdict"], "down");
  EXPECT_EQ(json["devices"][1]["verdict"], "degraded");
  EXPECT_EQ(json["devices"][1]["physical_id"], 5);
  EXPECT_EQ(json["devices"][2]["health_status"], 2);
  EXPECT_EQ(json["devices"][2]["faults"][0]["code"], "0x80E01801");
}

TEST_F(HealthTest, ANodeWithoutNpusIsUnknown) {
  daemon_.node.clear_devices();
  daemon_.node.mutable_health()->set_verdict(v1::Health::VERDICT_UNKNOWN);
  daemon_.node.mutable_health()->add_reasons("no usable NPU: no libascend_hal.so");
  EXPECT_EQ(Run({"health"}), 9);
  EXPECT_THAT(out(), HasSubstr("no libascend_hal.so"));
}

TEST_F(HealthTest, FaultsHaveCodeSeverityAndTime) {
  EXPECT_EQ(Run({"faults"}), 0);
  EXPECT_THAT(out(), HasSubstr("0x80C98009  minor     " + FormatTime(kSince) +
                               "  AI Core frequency reduced"));
  EXPECT_THAT(out(), HasSubstr("0x80E01801  major     before profd"));
  EXPECT_THAT(err(), HasSubstr("NPU 7 is down: its faults are not known"));
  EXPECT_EQ(Run({"faults", "--devices", "0"}), 0);
  EXPECT_EQ(out(), "no active faults\n");
  EXPECT_EQ(Run({"faults", "--json"}), 0);
  Json json = Json::parse(out());
  ASSERT_EQ(json["faults"].size(), 2u);
  EXPECT_EQ(json["faults"][0]["device"], 1);
  EXPECT_EQ(json["faults"][0]["since_ns"], kSince);
}

TEST_F(HealthTest, WithoutNpusTheFaultsAreNotKnown) {
  daemon_.node.clear_devices();
  daemon_.node.mutable_health()->set_verdict(v1::Health::VERDICT_UNKNOWN);
  daemon_.node.mutable_health()->add_reasons("no usable NPU: no libascend_hal.so");
  EXPECT_EQ(Run({"faults"}), 9);
  EXPECT_EQ(out(), "");
  EXPECT_THAT(err(), HasSubstr("the faults of this node's NPUs are not known: no usable NPU: no libascend_hal.so\n"));
  EXPECT_EQ(Run({"faults", "--json"}), 9);
  EXPECT_EQ(Json::parse(out())["faults"], Json::array());
  // libdcmi may know more: it is asked for the metrics.
  daemon_.node.mutable_driver()->set_dcmi_path("/usr/local/dcmi/libdcmi.so");
  ExpectMessage({"faults"}, 9, "in /metrics (atlas_npu_fault_active)");
  daemon_.node.mutable_driver()->set_dcmi_error("dcmi_init: -8007");
  EXPECT_EQ(Run({"faults"}), 9);
  EXPECT_THAT(err(), testing::Not(HasSubstr("/metrics")));
}

TEST(HealthViewTest, AnAlarmIsNamedWhereNothingElseIs) {
  v1::Health health;
  EXPECT_EQ(FlagsText(health), "-");
  health.add_flags(v1::Health::FLAG_ALARM);
  health.set_health_status(3);
  EXPECT_EQ(FlagsText(health), "alarm 3");
}

class TopologyTest : public ProfctlTest {
 protected:
  TopologyTest() {
    for (uint32_t i = 0; i < 2; ++i) {
      v1::DeviceTopology& device = *daemon_.topology.add_devices();
      device.set_id(i);
      device.set_physical_id(i + 4);
      device.set_numa_node(i);
      device.set_cpus(i == 0 ? "0-31" : "32-63");
      v1::Neighbour& neighbour = *device.add_neighbours();
      neighbour.set_physical_id(5 - i);
      neighbour.set_type(v1::Neighbour::TYPE_HCCS);
      v1::Link& link = *device.add_links();
      link.set_kind(v1::Link::KIND_HCCS);
      link.set_name("1");
      link.set_up(i == 0);
      link.set_lanes(4);
      (*link.mutable_errors())["crc"] = i * 7;
      v1::Link& port = *device.add_links();
      port.set_kind(v1::Link::KIND_NETWORK);
      port.set_bytes_per_second(25e9);
      (*port.mutable_errors())["link_ups"] = 3;
    }
  }
};

TEST_F(TopologyTest, MatrixWithNumaNodesAndCpus) {
  EXPECT_EQ(Run({"topology"}), 0);
  EXPECT_THAT(out(), HasSubstr("NPU  NPU4  NPU5  NUMA  CPUS   PCI\n"
                               "  4  self  HCCS     0  0-31   -\n"
                               "  5  HCCS  self     1  32-63  -\n"));
  EXPECT_THAT(out(), HasSubstr("HCCS: HCCS links\n"));
  EXPECT_THAT(out(), HasSubstr("links: 1 up, 1 down, 1 with errors"));
}

TEST_F(TopologyTest, TheRowOfAllLinksIsNoLink) {
  for (v1::DeviceTopology& device : *daemon_.topology.mutable_devices()) {
    v1::Link& all = *device.add_links();
    all.set_kind(v1::Link::KIND_HCCS);
    all.set_name("all");
    all.set_up(true);
    (*all.mutable_errors())["crc"] = 7;
  }
  EXPECT_EQ(Run({"topology"}), 0);
  EXPECT_THAT(out(), HasSubstr("links: 1 up, 1 down, 1 with errors"));
}

TEST_F(TopologyTest, LinksHaveStateSpeedAndErrors) {
  EXPECT_EQ(Run({"topology", "--links"}), 0);
  EXPECT_THAT(out(), HasSubstr("5  hccs 1   down          -      4  crc 7\n"));
  EXPECT_THAT(out(), HasSubstr("4  network  -      200 Gb/s      -  link_ups 3\n"));
  EXPECT_EQ(Run({"topology", "--json"}), 0);
  EXPECT_EQ(Json::parse(out())["devices"][1]["links"][0]["up"], false);
}

// As the documents write it.
TEST_F(HealthTest, TheSourceOfCollectorsIsAName) {
  v1::CollectorInfo& state = *daemon_.node.add_collectors();
  state.set_name("npu_state");
  state.set_source(v1::CollectorInfo::SOURCE_DCMI);
  EXPECT_EQ(Run({"collectors"}), 0);
  EXPECT_NE(out().find("\nnpu_state  DCMI "), std::string::npos) << out();
}

}  // namespace
}  // namespace profd::client
