#include "daemon/config/daemon_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DaemonConfig, EveryProblemAtOnceWithItsLine) {
  std::vector<std::string> problems;
  ParseDaemonConfig(
      "[limits]\n"
      "max_sessions = 0\n"
      "max_sesions = 3\n"
      "[daemon]\n"
      "socket = 7\n"
      "log_level = \"loud\"\n"
      "[dumps]\n",
      "x.toml", &problems);
  EXPECT_THAT(problems,
              testing::UnorderedElementsAre(
                  AllOf(HasSubstr("x.toml:3"), HasSubstr("limits.max_sesions")),
                  AllOf(HasSubstr("x.toml:5"), HasSubstr("daemon.socket"), HasSubstr("string")),
                  AllOf(HasSubstr("x.toml:7"), HasSubstr("[dumps]")),
                  "x.toml:2: limits.max_sessions = 0 must be an integer 1..1024",
                  HasSubstr("x.toml:6: daemon.log_level = \"loud\" must be one of \"debug\", \"info\", \"warning\", \"error\"")));
}

TEST(DaemonConfig, MistypedNamesHaveTheNearestOnes) {
  std::vector<std::string> problems;
  ParseDaemonConfig("listen = \"127.0.0.1:9464\"\nspeed = 1\nmetrics = 1\n[recorder]\ntrigger = []\nxyz = 1\n[metrcs]\n[[limits]]\n", "x.toml", &problems);
  EXPECT_THAT(problems, testing::UnorderedElementsAre(
                            "x.toml:1: listen is a key without a section; it is one of [metrics], [tls]",
                            testing::StartsWith("x.toml:2: speed is a key without a section; there are daemon, driver, dump, metrics, "),
                            "x.toml:3: metrics is a section: its keys stand below [metrics]",
                            "x.toml:5: unknown key recorder.trigger; did you mean recorder.triggers?",
                            "x.toml:6: unknown key recorder.xyz",
                            AllOf(testing::StartsWith("x.toml:7: unknown section [metrcs]; there are daemon, "), testing::EndsWith(", limits; did you mean metrics?")),
                            "x.toml:8: limits is a section: its keys stand below [limits]"));
}

// The key that is in the file has the line, also where the problem is with the default of another.
TEST(DaemonConfig, ProblemsOfValuesHaveTheirLine) {
  std::vector<std::string> problems;
  ConfigPlaces places;
  ParseDaemonConfig(
      "daemon.max_connections = 5000\n"
      "[metrics]\n"
      "names = [\n"
      "  \"atlas\",\n"
      "  \"other\"]\n"
      "listen = \"nowhere\"\n"
      "[dump]\n"
      "root = \"dumps\"\n"
      "[recorder]\n"
      "activity = \"l1\"\n"
      "memory_mb = 32\n"
      "collectors = [\"hbn\"]\n"
      "[archive]\n"
      "to = \"clickhouse://db/profiles\"\n"
      "which = []\n",
      "x.toml", &problems, &places);
  EXPECT_THAT(problems,
              testing::UnorderedElementsAre(
                  testing::StartsWith("x.toml:1: daemon.max_connections = 5000 must be an integer 1..4096"),
                  testing::StartsWith("x.toml:3: metrics.names: \"other\""),
                  testing::StartsWith("x.toml:6: metrics.listen = \"nowhere\""),
                  testing::StartsWith("x.toml:8: dump.root = \"dumps\" must be an absolute path"),
                  testing::StartsWith("x.toml:11: recorder.activity_memory_mb = 32 must be less than"),
                  testing::StartsWith("x.toml:12: recorder.collectors: "),
                  testing::StartsWith("x.toml:15: archive.which must name something")));
  EXPECT_EQ(places["metrics.listen"], "x.toml:6");
  // What others find, and what is not of the file.
  std::vector<std::string> more = {"metrics.listen = \"nowhere\": must be ADDRESS:PORT", "tls.key = \"k\": x"};
  AddPlaces(places, &more);
  EXPECT_THAT(more, ElementsAre("x.toml:6: metrics.listen = \"nowhere\": must be ADDRESS:PORT", "tls.key = \"k\": x"));
}

TEST(DaemonConfig, ASyntaxErrorHasItsPlace) {
  std::vector<std::string> problems;
  ParseDaemonConfig("[daemon\n", "x.toml", &problems);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("x.toml:1")));
}

TEST(DaemonConfig, ReadsEveryKind) {
  std::vector<std::string> problems;
  DaemonConfig config = ParseDaemonConfig(
      "[metrics]\nenabled = false\ndisable = [\"host_net\", \"rdma\"]\n"
      "[dump]\nroot = \"/data/prof\"\nqueue_mb = 8\n",
      "x.toml", &problems);
  EXPECT_THAT(problems, IsEmpty());
  EXPECT_FALSE(config.metrics_enabled);
  EXPECT_THAT(config.metrics_disable, ElementsAre("host_net", "rdma"));
  EXPECT_EQ(config.dump_root, "/data/prof");
  EXPECT_EQ(config.queue_mb, 8);
}

TEST(DaemonConfig, ItemsOfACollectorAreCheckedByIt) {
  DaemonConfig config;
  config.metrics_npu_extra = {"serdes=1", "rdma_bandwidth=99", "pcie_bandwidth=", "hccs_bandwidth=501",
                              "sedres"};
  std::vector<std::string> problems;
  ValidateDaemonConfig(config, &problems);
  EXPECT_THAT(problems,
              ElementsAre("metrics.npu_extra: \"serdes=1\": serdes takes no number",
                          HasSubstr("100..500 ms"), HasSubstr("1..500 ms"),
                          HasSubstr("1..500 ms"), HasSubstr("\"sedres\": unknown")));
}

// A request with a collector named twice is refused, so no recording of such a list could start.
TEST(DaemonConfig, CollectorsOfRecordingsAreNamedOnce) {
  DaemonConfig config;
  config.sampling_collectors = {"hbm=10", "hbn", "hbm=20", "hccs"};
  std::vector<std::string> problems;
  ValidateDaemonConfig(config, &problems);
  EXPECT_THAT(problems, ElementsAre(testing::StartsWith("sampling.collectors: hbn: no collector hbn"),
                                    "sampling.collectors: \"hbm=20\": named twice"));
}

// The printed default file must be accepted and change nothing, also with every key switched on.
TEST(DaemonConfig, DefaultFileIsTheDefaults) {
  std::string text = DefaultConfigText();
  for (size_t at = 0; (at = text.find("\n#", at)) != std::string::npos; ++at) {
    if (text[at + 2] != ' ') text.erase(at + 1, 1);
  }
  std::vector<std::string> problems;
  DaemonConfig config = ParseDaemonConfig(text, "default", &problems);
  EXPECT_THAT(problems, IsEmpty()) << text;
  std::vector<std::string> changed;
  EXPECT_TRUE(OnlyReloadableDiffers(DaemonConfig(), config, &changed));
  EXPECT_EQ(config.max_sessions, DaemonConfig().max_sessions);
}

TEST(DaemonConfig, ReloadNamesWhatNeedsARestart) {
  DaemonConfig before;
  DaemonConfig after;
  after.max_sessions = 3;
  std::vector<std::string> restart;
  EXPECT_TRUE(OnlyReloadableDiffers(before, after, &restart));
  after.dump_root = "/elsewhere";
  EXPECT_FALSE(OnlyReloadableDiffers(before, after, &restart));
  EXPECT_THAT(restart, ElementsAre("dump.root"));
  DaemonConfig merged = WithReloadableOf(before, after);
  EXPECT_EQ(merged.max_sessions, 3);
  EXPECT_EQ(merged.dump_root, before.dump_root);
}

TEST(DaemonConfig, RecorderListsAreCheckedWithTheRest) {
  std::vector<std::string> problems;
  ParseDaemonConfig(
      "[recorder]\n"
      "seconds = 1\n"
      "collectors = [\"hbm=10\", \"hbn\"]\n"
      "triggers = [\"crash\", \"step > 1x median\"]\n",
      "x.toml", &problems);
  EXPECT_THAT(problems, testing::UnorderedElementsAre(HasSubstr("recorder.seconds = 1"),
                                                      HasSubstr("no collector hbn"),
                                                      HasSubstr("step > 2x median")));
}

std::vector<std::string> ProblemsOf(const DaemonConfig& config) {
  std::vector<std::string> problems;
  ValidateDaemonConfig(config, &problems);
  return problems;
}

TEST(DaemonConfig, ActivityIsAPartOfTheRecordersMemory) {
  DaemonConfig config;
  config.recorder_activity_memory_mb = config.recorder_memory_mb;
  EXPECT_THAT(ProblemsOf(config), testing::IsEmpty()) << "off";
  config.recorder_activity = "l1";
  EXPECT_THAT(ProblemsOf(config), testing::ElementsAre(HasSubstr("must be less than recorder.memory_mb = 64")));
  config.recorder_activity_memory_mb = config.recorder_memory_mb - 1;
  EXPECT_THAT(ProblemsOf(config), testing::IsEmpty());
  config.advice_limits = {"hang.least_s=60", "hang.least=60"};
  EXPECT_THAT(ProblemsOf(config), testing::ElementsAre(HasSubstr("advice.limits: \"hang.least=60\": there is no limit hang.least")));
  config.advice_limits.clear();
  config.recorder_activity = "l2";
  EXPECT_THAT(ProblemsOf(config), testing::ElementsAre(HasSubstr("recorder.activity = \"l2\"")));
}

TEST(DaemonConfig, AnAddressThatCannotBeServedIsAProblem) {
  DaemonConfig config;
  for (const char* bad : {"", "9464", ":9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999",
                          "127.0.0.1:-1", "127.0.0.1:http", "300.0.0.1:9464", "1.2.3.4.5:9464",
                          "::1:9464", "[::1", "[::1]", "[]:9464", "[::g]:9464", "a b:9464",
                          "http://node:9464"}) {
    config.metrics_listen = bad;
    EXPECT_THAT(ProblemsOf(config), ElementsAre(AllOf(HasSubstr("metrics.listen = \""), HasSubstr(bad),
                                                      HasSubstr("127.0.0.1:9464"))))
        << bad;
  }
  for (const char* good : {"127.0.0.1:0", "0.0.0.0:65535", "127.1:9464", "[::]:9464", "[fe80::1%eth0]:1",
                           "[127.0.0.1]:9464", "localhost:9464", "node-7.rack_1:9464"}) {
    config.metrics_listen = good;
    EXPECT_THAT(ProblemsOf(config), IsEmpty()) << good;
  }
}

TEST(DaemonConfig, TheFaultOfAnAddressIsNamed) {
  DaemonConfig config;
  config.metrics_listen = "127.0.0.1:99999";
  EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("0..65535")));
  config.metrics_listen = "300.0.0.1:9464";
  EXPECT_THAT(ProblemsOf(config), ElementsAre(HasSubstr("neither an IP address")));
}

TEST(DaemonConfig, TlsKeysAreCheckedAlsoWhereRpcDoesNot) {
  DaemonConfig config;
  config.tls_listen = "300.0.0.1:9465";
  EXPECT_THAT(ProblemsOf(config), ElementsAre(AllOf(HasSubstr("tls.listen"), HasSubstr(":9465"))));
  // CheckTls's.
  config.tls_listen = "0.0.0.0:99999";
  config.tls_users = {"alice"};
  EXPECT_THAT(ProblemsOf(config), IsEmpty());
  config.tls_listen = "";
  config.tls_users = {"alice", "bob=1000", "=1", "a=", "a=b=c"};
  EXPECT_THAT(ProblemsOf(config),
              ElementsAre(HasSubstr("\"alice\" must be CN=USER"), HasSubstr("\"=1\""),
                          HasSubstr("\"a=\""), HasSubstr("\"a=b=c\"")));
}

TEST(DaemonConfig, RelativePathsAreRefused) {
  DaemonConfig config;
  config.socket = "profd.sock";
  config.hal_library = "libascend_hal.so";
  std::vector<std::string> problems;
  ValidateDaemonConfig(config, &problems);
  EXPECT_THAT(problems, SizeIs(2));
}

// The daemon's directory under systemd is /, which is not what the operator has in mind.
TEST(DaemonConfig, RelativePathsOfOtherSocketsAreRefused) {
  DaemonConfig config;
  config.attach_socket = "attach.sock";
  config.job_map_dir = "jobs";
  config.pod_resources_socket = "kubelet.sock";
  config.cri_socket = "containerd.sock";
  EXPECT_THAT(ProblemsOf(config),
              ElementsAre("daemon.attach_socket = \"attach.sock\" must be an absolute path",
                          "attribution.job_map_dir = \"jobs\" must be an absolute path",
                          "attribution.pod_resources_socket = \"kubelet.sock\" must be an absolute path",
                          "attribution.cri_socket = \"containerd.sock\" must be an absolute path"));
  config = DaemonConfig();
  config.attach_socket = "off";
  config.pod_resources_socket = "";
  config.cri_socket = "";
  EXPECT_THAT(ProblemsOf(config), IsEmpty());
}

TEST(DaemonConfig, TheTwoSocketsDiffer) {
  DaemonConfig config;
  config.attach_socket = config.socket;
  EXPECT_THAT(ProblemsOf(config), ElementsAre("daemon.attach_socket = \"/run/profd/profd.sock\" must be another path "
                                              "than daemon.socket"));
}

// bind refuses the name of a directory, and no dump root is "/".
TEST(DaemonConfig, PathsThatEndWithoutANameAreRefused) {
  DaemonConfig config;
  config.socket = "/run/profd/";
  config.attach_socket = "/run/profd/..";
  config.dump_root = "/";
  config.state_dir = "//";
  EXPECT_THAT(ProblemsOf(config), ElementsAre("daemon.socket = \"/run/profd/\" must end with the name of a socket",
                                              "daemon.attach_socket = \"/run/profd/..\" must end with the name of a socket",
                                              "dump.root = \"/\" must end with the name of a directory",
                                              "dump.state_dir = \"/\" must end with the name of a directory"));
  config = DaemonConfig();
  config.dump_root = "/var/lib/profd//";
  config.state_dir = "/var/lib/state/";
  EXPECT_THAT(ProblemsOf(config), IsEmpty());
}

// unix(7): sun_path has 108 bytes, the last of which is 0.
TEST(DaemonConfig, PathsThatNoSocketCanHaveAreRefused) {
  const auto path = [](size_t bytes) { return "/" + std::string(bytes - 1, 's'); };
  DaemonConfig config;
  config.socket = path(107);
  config.attach_socket = "/" + std::string(106, 'a');
  EXPECT_THAT(ProblemsOf(config), IsEmpty());
  config.socket = path(108);
  config.attach_socket = "";
  EXPECT_THAT(ProblemsOf(config), ElementsAre("daemon.socket: \"" + path(108) + "\" has 108 bytes, a socket's path at most 107"));
  config.attach_socket = path(120);
  EXPECT_THAT(ProblemsOf(config),
              ElementsAre(testing::StartsWith("daemon.socket: "),
                          "daemon.attach_socket: \"" + path(120) + "\" has 120 bytes, a socket's path at most 107"));
}

// "attach.sock" is one byte longer than "profd.sock".
TEST(DaemonConfig, ThePathOfTheAttachSocketThatIsNotSetHasTheSameLimit) {
  DaemonConfig config;
  const std::string directory = "/" + std::string(95, 'd') + "/";
  config.socket = directory + "profd.sock";
  EXPECT_THAT(ProblemsOf(config),
              ElementsAre("daemon.socket: daemon.attach_socket in its directory: \"" + directory +
                          "attach.sock\" has 108 bytes, a socket's path at most 107"));
  config.attach_socket = "off";
  EXPECT_THAT(ProblemsOf(config), IsEmpty());
}

// CheckWebConfig, which runs while /metrics is served, refuses a relative path itself.
TEST(DaemonConfig, ARelativeWebConfigIsReportedOnce) {
  DaemonConfig config;
  config.metrics_web_config = "relative.yml";
  EXPECT_THAT(ProblemsOf(config), IsEmpty());
  config.metrics_enabled = false;
  EXPECT_THAT(ProblemsOf(config), ElementsAre("metrics.web_config = \"relative.yml\" must be an absolute path"));
}

}  // namespace
}  // namespace profd
