// libmsprofiler.so: graphs with their iterations, and the tasks of a communication.
#include "sim/msprofiler/client_test_support.h"

namespace profd::sim::aclprof {
namespace {

using testing::HasSubstr;

// A graph of one kernel between the marks of an iteration, run twice.
std::map<std::string, std::string> RunGraph(const TempDir& folder) {
  Config* const config = Begin(folder, {0}, kTaskTime | kTrainingTrace);
  const auto trace = [](uint16_t tag) { EXPECT_EQ(CALL(Acl(), simAclTrace)(0, tag, nullptr), 0); };
  EXPECT_EQ(CALL(Acl(), simAclModelLoad)(3, "net"), 0);
  trace(acl::kModelStart);
  trace(acl::kForwardStart);
  Launch("conv");
  trace(acl::kBackwardEnd);
  trace(acl::kIterationEnd);
  trace(acl::kModelEnd);
  EXPECT_EQ(CALL(Acl(), simAclModelLoaded)(), 0);
  for (const uint32_t iteration : {1u, 2u}) EXPECT_EQ(CALL(Acl(), simAclModelExecute)(3, iteration, nullptr, 0), 0);
  Synchronize();
  EXPECT_EQ(Stop(config), kOk);
  EXPECT_EQ(Finalize(), kOk);
  return Read(folder.path());
}

TEST_IN_CHILD(AclprofFiles, AGraphIsSaidOnceAndItsIterationsEach) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  auto files = RunGraph(folder);
  const std::string& tracks = files["host/data/unaging.compact.task_track"];
  ASSERT_EQ(tracks.size(), 64u);
  EXPECT_EQ(files["host/data/unaging.compact.node_basic_info"].size(), 64u);
  EXPECT_EQ(files.count("host/data/aging.compact.task_track"), 0u);
  const std::string& map = files["host/data/unaging.additional.graph_id_map"];
  ASSERT_EQ(map.size(), 256u);
  EXPECT_EQ(At<uint16_t>(map, 2), 15000);
  EXPECT_EQ(At<uint32_t>(map, 36), 3u);
  // Load and executions: pairs of events with the model's number, executions with the iteration's.
  const std::string& api = files["host/data/aging.api_event.data"];
  std::vector<std::pair<uint32_t, uint32_t>> events;
  for (size_t at = 0; at < api.size(); at += 40) {
    if (At<uint16_t>(api, at + 2) != 15000) continue;
    EXPECT_EQ(At<uint64_t>(api, at + 24), UINT64_MAX) << "an event";
    EXPECT_EQ(At<uint64_t>(api, at + 32), 3u);
    events.emplace_back(At<uint32_t>(api, at + 4), At<uint32_t>(api, at + 12));
  }
  using Pair = std::pair<uint32_t, uint32_t>;
  EXPECT_THAT(events, testing::ElementsAre(Pair{2, 0}, Pair{2, 0}, Pair{1, 1}, Pair{1, 1}, Pair{1, 2}, Pair{1, 2}));
  // The device: the same task twice, and the marks of two iterations.
  const std::string& stars = files["device_0/data/stars_soc.data.0"];
  ASSERT_EQ(stars.size(), 4 * 64u);
  for (size_t at = 0; at < stars.size(); at += 64) EXPECT_EQ(At<uint16_t>(stars, at + 6), At<uint32_t>(tracks, 28));
  const std::string& marks = files["device_0/data/ts_track.data.0"];
  ASSERT_EQ(marks.size(), 10 * 40u);
  std::vector<uint16_t> tags;
  for (size_t at = 0; at < marks.size(); at += 40) {
    EXPECT_EQ(At<uint64_t>(marks, at + 16), at < 200 ? 1u : 2u);
    EXPECT_EQ(At<uint64_t>(marks, at + 24), 3u);
    tags.push_back(At<uint16_t>(marks, at + 36));
  }
  EXPECT_THAT(tags, testing::ElementsAre(0, 2, 3, 4, 1, 0, 2, 3, 4, 1));
}

// A START brings task time and HCCL at once: what graphs that were loaded before contain of both is reported.
TEST_IN_CHILD(AclprofFiles, CollectivesOfAGraphThatWasLoadedBefore) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  const TempDir meeting;
  void* const group = CALL(Acl(), simAclGroup)("dp", (meeting.path() + "/group").c_str(), 1, 0);
  EXPECT_EQ(CALL(Acl(), simAclModelLoad)(3, "net"), 0);
  const acl::Communication all_reduce = {
      .name = "hcom_allReduce__1", .type = "hcom_allReduce_", .bytes = 4'000'000, .duration_ns = 100'000};
  EXPECT_EQ(CALL(Acl(), simAclCommunicate)(&all_reduce, group, nullptr), 0);
  EXPECT_EQ(CALL(Acl(), simAclModelLoaded)(), 0);
  Config* const config = Begin(folder, {0}, kTaskTime | kHccl);
  EXPECT_EQ(CALL(Acl(), simAclModelExecute)(3, 1, nullptr, 0), 0);
  Synchronize();
  EXPECT_EQ(Stop(config), kOk);
  EXPECT_EQ(Finalize(), kOk);
  EXPECT_EQ(Read(folder.path())["host/data/unaging.additional.hccl_info"].size(), 3 * 256u);
}

TEST_IN_CHILD(AclprofFiles, EachTaskOfACommunication) {
  const TempDir folder;
  CALL(Acl(), aclrtSetDevice)(0);
  Config* const config = Begin(folder, {0}, kTaskTime | kHccl);
  const TempDir meeting;
  void* const group = CALL(Acl(), simAclGroup)("dp", (meeting.path() + "/group").c_str(), 1, 0);
  const acl::Communication all_reduce = {
      .name = "hcom_allReduce__1", .type = "hcom_allReduce_", .bytes = 4'000'000, .duration_ns = 100'000};
  EXPECT_EQ(CALL(Acl(), simAclCommunicate)(&all_reduce, group, nullptr), 0);
  Synchronize();
  EXPECT_EQ(Stop(config), kOk);
  EXPECT_EQ(Finalize(), kOk);
  auto files = Read(folder.path());
  const std::string& infos = files["host/data/aging.additional.hccl_info"];
  ASSERT_EQ(infos.size(), 3 * 256u);
  const std::string& names = files["host/data/unaging.additional.hash_dic"];
  const char* const kTasks[] = {"Notify_Wait", "Memcpy", "Notify_Record"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(names, HasSubstr(std::to_string(At<uint64_t>(infos, i * 256 + 24)) + ":" + kTasks[i] + "\n"));
    EXPECT_EQ(At<uint64_t>(infos, i * 256 + 112), i == 1 ? 4'000'000u : 0u) << "bytes";
  }
  const std::string& stars = files["device_0/data/stars_soc.data.0"];
  ASSERT_EQ(stars.size(), 6 * 64u) << "begin and end of each";
  EXPECT_THAT(At<uint64_t>(stars, 5 * 64 + 8) - At<uint64_t>(stars, 2 * 64 + 8), IsHundredUs());
}

}  // namespace
}  // namespace profd::sim::aclprof
