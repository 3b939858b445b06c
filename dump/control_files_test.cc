#include "dump/control_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "dump/test_support.h"

namespace profd {
namespace {

using Json = nlohmann::json;

NodeFacts Node() {
  NodeFacts node;
  node.hostname = "node-17";
  node.os = "Linux-5.10.0-182";
  node.machine = "aarch64";
  node.uptime = "876117.20 1682144.90";
  node.memory_total_kb = 1'583'221'744;
  node.logical_cpus = 192;
  node.cpu_cores = 192;
  node.clock_ticks_hz = 100;
  node.cpus = {{0, "Kunpeng-920", 192, "aarch64"}};
  node.net_cards = {{"eth0", 10'000}, {"eth1", 25'000}};
  node.host_counter_hz = 100e6;
  node.hal_api_version = 0x072419;
  return node;
}

DeviceFacts Device() {
  return {.id = 3, .chip_id = 5, .counter_hz = 50e6, .aicore_mhz = 1800, .ai_core_num = 24, .ai_vector_num = 48,
          .ctrl_cpus = {0}, .ai_cpus = {2, 3, 4, 5, 6, 7}, .ai_cpu_bitmap = 252};
}

SessionFacts Session() {
  SessionFacts session;
  session.session_id = "s-0042";
  session.pid = 4242;
  session.pid_name = "python3";
  session.job_id = "job-1";
  session.rank = 7;
  session.result_dir = "/var/lib/profd/PROF_000001_20260101000000000_ABCDEFGHABCDEFGH";
  session.devices = {3};
  SampleOptions& options = session.options;
  options.hardware_mem_hz = 50;
  options.io_hz = 100;
  options.interconnect_hz = 50;
  options.dvpp_hz = 10;
  options.collectors = {{"ai_core_lpm", "on"}, {"qosEvents", "SDMA,AIC,AIV,DVPP"}};
  options.host_usage_cpu = options.host_usage_mem = true;
  options.host_usage_hz = 50;
  options.storage_limit_mb = 2000;
  return session;
}

// The file on disk is what was agreed on; one line, or two, ending in a newline.
void ExpectGolden(const std::string& name, const std::string& text) {
  std::string path = "dump/testdata/" + name;
  if (::getenv("PROFD_UPDATE_GOLDEN")) WriteText(path, text);
  EXPECT_EQ(text, ReadText(path)) << path;
}

class ControlFiles : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

TEST_F(ControlFiles, Golden) {
  DeviceFacts device = Device();
  ExpectGolden("info.json", InfoJson(Node(), Session(), nullptr));
  ExpectGolden("info.json.3", InfoJson(Node(), Session(), &device));
  ExpectGolden("sample.json.device", SampleJson(Session(), 3));
  ExpectGolden("sample.json.host", SampleJson(Session(), kVendorHostId));
  ExpectGolden("start_info", StartInfo(1'767'225'600'000'000'000, 876'117'208'663'770));
  ExpectGolden("end_info", EndInfo(1'767'225'601'500'000'999, 876'118'708'664'769));
  DumpClocks clocks;
  clocks.host_ns = 876'117'208'663'770;
  clocks.host_count = 87'611'720'866'377;
  clocks.device_ns = 176'167'889'901'260;
  clocks.device_count = 8'808'394'495'063;
  ExpectGolden("host_start.log", HostStartLog(clocks, kVendorHostId));
  ExpectGolden("host_start.log.3", HostStartLog(clocks, 3));
  ExpectGolden("dev_start.log.3", DevStartLog(clocks));
  EXPECT_EQ(ControlDone(17), "filesize:17\n");
  EXPECT_EQ(SliceDone(2'097'160), "filesize:2097160\nstarttime:0\nendtime  :0\n");
}

TEST_F(ControlFiles, JsonIsOneLineWhateverIsInIt) {
  NodeFacts node = Node();
  SessionFacts session = Session();
  node.hostname = "two\nlines \"and\" quotes \xff\xfe";
  session.job_id = "a\r\nb";
  DeviceFacts device = Device();
  for (const std::string& text :
       {InfoJson(node, session, nullptr), InfoJson(node, session, &device), SampleJson(session, 3),
        StartInfo(1, 2), EndInfo(1, 2)}) {
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    EXPECT_TRUE(Json::accept(text)) << text;
  }
}

TEST_F(ControlFiles, SampleJsonHasTheCollectorsKeys) {
  // driver-abi 5.4, and the newer name of host_numa_profiling, which makes up its 136.
  std::istringstream names(ReadText("dump/testdata/sample_keys.txt"));
  std::set<std::string> expected{std::istream_iterator<std::string>(names), {}};
  ASSERT_EQ(expected.size(), 136u);
  expected.insert("profLevel");  // which readers take before prof_level (dump-format 1.5)
  std::set<std::string> found;
  Json json = Json::parse(SampleJson({}, 0));
  for (const auto& [key, value] : json.items()) found.insert(key);
  EXPECT_EQ(found, expected);
  // What exports need is there even when nothing was asked for.
  EXPECT_EQ(json["llc_profiling"], "read");
  EXPECT_EQ(json["hbm_profiling_events"], "read,write");
  EXPECT_EQ(json["ai_core_profiling_mode"], "task-based");
  EXPECT_EQ(json["qosEvents"], "");
  EXPECT_EQ(json["host_disk_freq"], 50);
}

TEST_F(ControlFiles, SampleJsonHasTheOptions) {
  Json json = Json::parse(SampleJson(Session(), 3));
  EXPECT_EQ(json["devices"], "3");
  EXPECT_EQ(json["hardware_mem_sampling_interval"], 20'000);
  EXPECT_EQ(json["hbmInterval"], 20);
  EXPECT_EQ(json["nicInterval"], 10);
  EXPECT_EQ(json["hccsInterval"], 20);
  EXPECT_EQ(json["dvpp_sampling_interval"], 100);
  EXPECT_EQ(json["qosEvents"], "SDMA,AIC,AIV,DVPP");
  EXPECT_EQ(json["hostSysUsage"], "cpu,mem");
  EXPECT_EQ(json["storageLimit"], "2000MB");
  SessionFacts fast = Session();
  fast.options.hardware_mem_hz = 100;
  fast.options.collectors["llc_profiling"] = "write";
  json = Json::parse(SampleJson(fast, 3));
  EXPECT_EQ(json["hbmInterval"], 10);
  EXPECT_EQ(json["llc_profiling"], "write");
}

TEST_F(ControlFiles, SampleJsonHasTheOptionsOfTheApplication) {
  const std::map<std::string, std::vector<std::string>> kKeys = {
      {"task_trace", {"taskTrace", "taskTime"}},
      {"task_time", {"taskTrace", "taskTime"}},
      {"training_trace", {"ts_fw_training", "ts_keypoint"}},
      {"hccl", {"hcclTrace"}},
      {"aicpu", {"aicpuTrace"}},
      {"aic_metrics", {"ai_core_profiling"}},
      {"l2", {"l2CacheTaskProfiling"}},
      {"msproftx", {"msproftx"}},
      {"runtime_api", {"runtimeApi"}},
      {"ACL_PROF_ACL_API", {"acl"}},
  };
  Json before = Json::parse(SampleJson(Session(), 3));
  for (const auto& [option, keys] : kKeys) {
    SCOPED_TRACE(option);
    SessionFacts session = Session();
    session.options.application = {{option, option == "aic_metrics" ? "MemoryUB" : "l0"}};
    Json json = Json::parse(SampleJson(session, 3));
    EXPECT_EQ(json.size(), before.size());
    for (const std::string& key : keys) {
      EXPECT_EQ(json[key], "on") << key;
      EXPECT_NE(before[key], "on") << key;
    }
    EXPECT_EQ(json["prof_level"], option.starts_with("task_") ? "l0" : "off");
    EXPECT_EQ(json["profLevel"], json["prof_level"]) << "two names of one value";
    EXPECT_EQ(json["ai_core_metrics"], option == "aic_metrics" ? "MemoryUB" : "");
    EXPECT_EQ(json["hardware_mem"], before["hardware_mem"]);
  }
  SessionFacts session = Session();
  session.options.asked = {{"dvpp_freq", "10"}, {"fp_point", "a\"b\n\xff"}};
  std::string text = SampleJson(session, 3);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  Json order = Json::parse(Json::parse(text)["profiling_options"].get<std::string>());
  EXPECT_EQ(order["dvpp_freq"], "10");
  EXPECT_EQ(order.size(), 2u);
}

TEST_F(ControlFiles, InfoJsonHasAllKeysButTheOneThatDoublesFrequencies) {
  const std::set<std::string> top = {
      "jobInfo",  "version",      "OS",          "hostname",        "hwtype",      "devices",
      "platform", "pid",          "pid_name",    "upTime",          "memoryTotal", "cpuNums",
      "cpuCores", "sysClockFreq", "netCard",     "netCardNums",     "rank_id",     "drvVersion",
      "CPU",      "DeviceInfo",   "cannVersion", "platform_version"};
  std::set<std::string> device_keys = {
      "id",          "env_type",        "ctrl_cpu_core_num", "ctrl_cpu_endian_little",
      "ctrl_cpu_id", "ts_cpu_core_num", "ai_cpu_core_num",   "ai_cpu_core_id",
      "ai_core_id",  "ai_core_num",     "aiv_num",           "aicpu_occupy_bitmap",
      "ctrl_cpu",    "ai_cpu",          "hwts_frequency",    "aic_frequency"};
  auto keys = [](const Json& json) {
    std::set<std::string> names;
    for (const auto& [key, value] : json.items()) names.insert(key);
    return names;
  };
  DeviceFacts device = Device();
  SessionFacts session = Session();
  Json json = Json::parse(InfoJson(Node(), session, &device));
  EXPECT_EQ(keys(json), top);
  EXPECT_EQ(keys(json["DeviceInfo"][0]), device_keys);
  EXPECT_EQ(json["drvVersion"], 0x072419);
  device_keys.insert("aiv_frequency");
  session.options.task_records = true;
  json = Json::parse(InfoJson(Node(), session, &device));
  EXPECT_EQ(keys(json["DeviceInfo"][0]), device_keys);
  EXPECT_EQ(json["DeviceInfo"][0]["aiv_frequency"], "1800");
  session.options.task_records = false;
  device.chip_id = 1;
  EXPECT_EQ(keys(Json::parse(InfoJson(Node(), session, &device))["DeviceInfo"][0]), device_keys);
  device.chip_id = -1;  // not known: the node's
  EXPECT_EQ(Json::parse(InfoJson(Node(), session, &device))["platform_version"], "5");
  EXPECT_EQ(Json::parse(InfoJson(Node(), session, &device))["DeviceInfo"][0]["aic_frequency"], "1800");
  Json host = Json::parse(InfoJson(Node(), session, nullptr));
  EXPECT_EQ(keys(host), top);
  EXPECT_TRUE(host["DeviceInfo"].empty());
  EXPECT_EQ(host["devices"], "64");
}

// The analyser needs both clocks of every device (dump-format 1.4).
TEST_F(ControlFiles, LostDeviceHasTheClocksOfTheNodesChip) {
  NodeFacts node = Node();
  node.counter_hz = 50e6;
  node.aicore_mhz = 800;
  DeviceFacts lost;
  lost.id = 1;
  const Json info = Json::parse(InfoJson(node, Session(), &lost))["DeviceInfo"][0];
  EXPECT_EQ(info["hwts_frequency"], "50");
  EXPECT_EQ(info["aic_frequency"], "800");
}

TEST_F(ControlFiles, PrintsMegahertz) {
  EXPECT_EQ(MhzText(50e6), "50");
  EXPECT_EQ(MhzText(38.4e6), "38.4");
  EXPECT_EQ(MhzText(49'999'001), "49.999001");
  EXPECT_EQ(MhzText(1000e6), "1000");
  EXPECT_EQ(MhzText(0), "");
  NodeFacts node = Node();
  node.host_counter_hz = 0;
  EXPECT_EQ(Json::parse(InfoJson(node, Session(), nullptr))["CPU"][0]["Frequency"], "");
}

HostFactSources Fake(std::map<std::string, std::string> files) {
  HostFactSources sources;
  sources.machine = "aarch64";
  sources.read = [files](std::string_view path) -> Result<std::string> {
    auto found = files.find(std::string(path));
    if (found == files.end()) return NotFound("no such file");
    return found->second;
  };
  sources.list = [files](std::string_view dir) {
    std::set<std::string> names;
    for (const auto& [path, text] : files) {
      if (!path.starts_with(std::string(dir) + "/")) continue;
      std::string rest = path.substr(dir.size() + 1);
      names.insert(rest.substr(0, rest.find('/')));
    }
    return std::vector<std::string>(names.begin(), names.end());
  };
  return sources;
}

TEST(HostFacts, ReadsTwoSockets) {
  std::string cpuinfo;
  for (int i = 0; i < 8; ++i) {
    cpuinfo += "processor\t: " + std::to_string(i) + "\nmodel name\t: Some CPU @ 2.6GHz\n" +
               "physical id\t: " + std::to_string(i % 2) +
               "\ncore id\t\t: " + std::to_string(i / 4) + "\n\n";
  }
  NodeFacts facts =
      CollectHostFacts(Fake({{"/proc/cpuinfo", cpuinfo},
                             {"/proc/meminfo", "MemTotal:  1583221744 kB\nMemFree: 1 kB\n"},
                             {"/proc/uptime", "12.5 30.1\n"},
                             {"/proc/sys/kernel/hostname", "n1\n"},
                             {"/proc/sys/kernel/ostype", "Linux\n"},
                             {"/proc/sys/kernel/osrelease", "5.10\n"},
                             {"/sys/class/net/lo/speed", "\n"},
                             {"/sys/class/net/eth0/speed", "25000\n"},
                             {"/sys/class/net/eth1/speed", "-1\n"},
                             {"/sys/class/net/eth1/device/vendor", "x"},
                             {"/sys/class/net/veth7/address", "x"}}));
  EXPECT_EQ(facts.logical_cpus, 8);
  EXPECT_EQ(facts.cpu_cores, 4);
  ASSERT_EQ(facts.cpus.size(), 2u);
  EXPECT_EQ(facts.cpus[1].logical_cpus, 4);
  EXPECT_EQ(facts.cpus[1].name, "Some CPU @ 2.6GHz");
  EXPECT_EQ(facts.memory_total_kb, 1'583'221'744);
  EXPECT_EQ(facts.hostname, "n1");
  EXPECT_EQ(facts.os, "Linux-5.10");
  EXPECT_EQ(facts.uptime, "12.5 30.1");
  ASSERT_EQ(facts.net_cards.size(), 2u);
  EXPECT_EQ(facts.net_cards[0].speed_mbps, 25'000);
  EXPECT_EQ(facts.net_cards[1].name, "eth1");
  EXPECT_TRUE(facts.net_speed_assumed);
}

TEST(HostFacts, AnArm64NodeNamesNoSockets) {
  NodeFacts facts = CollectHostFacts(
      Fake({{"/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 200\n\nprocessor\t: 1\n\n"}}));
  EXPECT_EQ(facts.logical_cpus, 2);
  EXPECT_EQ(facts.cpu_cores, 2);
  ASSERT_EQ(facts.cpus.size(), 1u);
  EXPECT_EQ(facts.cpus[0].type, "aarch64");
}

TEST(HostFacts, UnreadableFilesDoNotCrash) {
  NodeFacts facts =
      CollectHostFacts(Fake({{"/proc/cpuinfo", "processor"}, {"/proc/meminfo", ":"}}));
  EXPECT_EQ(facts.logical_cpus, 0);
  EXPECT_TRUE(Json::accept(InfoJson(facts, {}, nullptr)));
}

TEST(HostFacts, ReadsThisMachine) {
  NodeFacts facts = CollectHostFacts(SystemFactSources("/proc", "/sys"));
  EXPECT_GT(facts.logical_cpus, 0);
  EXPECT_GT(facts.memory_total_kb, 0);
  EXPECT_FALSE(facts.hostname.empty());
  EXPECT_FALSE(facts.uptime.empty());
}

}  // namespace
}  // namespace profd
