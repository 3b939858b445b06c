// Markers through the collector of libprofd_mspti.so: which half of a mark it records.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/integration/mspti_job_test_support.h"

namespace profd::lib::mspti {
namespace {

using testing::ElementsAre;

// As in a job whose marks libprofd_mstx.so takes.
void TakeMarksByMstx() {
  ::setenv("MSTX_INJECTION_PATH", PROFD_MSTX, 1);
  ::setenv("PROFD_ATTACH_SOCKET", "/nonexistent/attach.sock", 1);
}

void MarkWithMstx() {
  static const sim::Library mstx(PROFD_SIM_MS_TOOLS);
  void* stream = nullptr;
  CALL(sim::mspti::Acl(), aclrtCreateStream)(&stream);
  void* const domain = mstx.Get<void*(const char*)>("mstxDomainCreateA")("communication");
  mstx.Get<void(const char*, void*)>("mstxMarkA")("on the host", nullptr);
  mstx.Get<void(void*, const char*, void*)>("mstxDomainMarkA")(domain, "on a stream", stream);
  const uint64_t range =
      mstx.Get<uint64_t(void*, const char*, void*)>("mstxDomainRangeStartA")(domain, "range", stream);
  mstx.Get<void(void*, uint64_t)>("mstxDomainRangeEnd")(domain, range);
}

// "source flag name domain" of so many markers, in the order of their texts.
std::vector<std::string> Markers(Job& job, size_t count) {
  EXPECT_TRUE(Eventually([&] {
    job.view.Take();
    return job.view.markers.size() >= count;
  }));
  job.Stop();
  job.view.Take();
  std::vector<std::string> texts;
  for (const auto& [start_ns, marker] : job.view.markers) {
    texts.push_back(std::to_string(marker.source) + " " + std::to_string(marker.flag) + " " +
                    job.view.names[marker.name] + " " + job.view.names[marker.domain]);
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

TEST_IN_CHILD(MsptiMarkers, MarkersComeInTwoHalves) {
  Job job(PROFD_COLLECT_MARKER);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  MarkWithMstx();
  EXPECT_THAT(Markers(job, 7),
              ElementsAre("0 1 on the host default", "0 16 range communication", "0 32  ",
                          "0 8 on a stream communication", "1 16  ", "1 32  ", "1 8  "));
}

// What the injection records as marks of profd's own would come twice.
TEST_IN_CHILD(MsptiMarkers, TheHostsHalvesAreLeftOutWhereMarksComeByMstx) {
  TakeMarksByMstx();
  Job job(PROFD_COLLECT_MARKER);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  MarkWithMstx();
  EXPECT_THAT(Markers(job, 3), ElementsAre("1 16 range communication", "1 32  ",
                                           "1 8 on a stream communication"));
}

// As beside a flight recorder without a session: libprofd takes no marks then.
TEST_IN_CHILD(MsptiMarkers, TheHostsHalvesStayWhereLibprofdTakesNoMarks) {
  TakeMarksByMstx();
  g_takes_marks = 0;
  Job job(PROFD_COLLECT_MARKER);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  MarkWithMstx();
  EXPECT_EQ(Markers(job, 7).size(), 7u);  // both halves
}

// A session begins and ends beside a recorder: marks that are not flushed yet are of the time before.
TEST_IN_CHILD(MsptiMarkers, TheHostsHalvesAreOfTheTimeInWhichTheyWereMade) {
  TakeMarksByMstx();
  g_takes_marks = 0;
  Job job(PROFD_COLLECT_MARKER);
  ASSERT_TRUE(job.Is(PROFD_COLLECT_ON));
  const auto mark_and_then = [&job](int takes_marks, size_t markers) {
    MarkWithMstx();
    g_takes_marks = takes_marks;
    EXPECT_TRUE(Eventually([&] {
      job.view.Take();
      return job.view.markers.size() >= markers;
    }));
    const int looks = g_looks;
    EXPECT_TRUE(Eventually([&] { return g_looks >= looks + 2; }));
    job.view.Take();
    EXPECT_EQ(job.view.markers.size(), markers);
  };
  mark_and_then(0, 7);
  mark_and_then(1, 14);
  mark_and_then(0, 17);
  mark_and_then(0, 24);
}

}  // namespace
}  // namespace profd::lib::mspti
