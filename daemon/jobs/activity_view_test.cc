#include "daemon/jobs/activity_view.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "profd/v1/profd.pb.h"

namespace profd {
namespace {

constexpr int64_t kSecond = kNsPerSecond;

Peer User(uint32_t uid) { return {.uid = uid}; }

// Processes 11 and 12 of user 1000, 13 of user 2000, all but 12 collected from: a kernel of 250 ms in each of
// the seconds 1001 and 1002, one of 100 ms of another name in 1002.
class ActivityViewTest : public ::testing::Test {
 protected:
  ActivityViewTest() {
    EXPECT_TRUE(names_.Learn(1, "MatMul").ok());
    EXPECT_TRUE(names_.Learn(2, std::string(255, 'x') + "\xC3\xA4").ok());
    for (uint64_t id : {1, 2, 3}) {
      TrainingProcess process{.pid = static_cast<pid_t>(10 + id), .uid = id == 3 ? 2000u : 1000u,
                              .job_id = id == 3 ? "b" : "a", .rank = static_cast<int>(id), .attach_id = id,
                              .lost_activity = 5, .lost_activity_bytes = 56, .unreadable_activity_bytes = 24};
      processes_.push_back(process);
      if (id != 2) Run(&windows_.emplace(id, ActivityWindow(1000 * kSecond)).first->second);
    }
  }

  static void Kernel(int64_t begin_ns, uint32_t ns, uint32_t name, ActivityWindow* window) {
    attach::KernelRecord record{};
    record.duration = ns;
    record.name = name;
    const ActivityFrame frame{attach::ActivityType::kKernel, 1, begin_ns, std::as_bytes(std::span(&record, 1))};
    window->Take({&frame, 1}, 0);
  }
  static void Run(ActivityWindow* window) {
    window->Advance(1003 * kSecond);
    Kernel(1001 * kSecond, 250'000'000, 1, window);
    Kernel(1002 * kSecond, 250'000'000, 1, window);
    Kernel(1002 * kSecond + kSecond / 2, 100'000'000, 2, window);
    window->AddStep(1002 * kSecond);
    window->Advance(1005 * kSecond);
  }

  v1::GetActivityResponse View(const Peer& peer, const v1::GetActivityRequest& request = {}) {
    v1::GetActivityResponse out;
    const auto find = [this](uint64_t id) {
      auto found = windows_.find(id);
      return found == windows_.end() ? LiveActivity() : LiveActivity{&found->second, &names_};
    };
    EXPECT_TRUE(DescribeActivity(peer, request, processes_, find, &out).ok());
    return out;
  }

  ActivityNameTable names_;
  std::map<uint64_t, ActivityWindow> windows_;
  std::vector<TrainingProcess> processes_;
};

TEST_F(ActivityViewTest, OneSpanOfTheLastSeconds) {
  const v1::GetActivityResponse out = View(User(1000));
  ASSERT_EQ(out.processes_size(), 1);
  const v1::ProcessActivity& process = out.processes(0);
  EXPECT_EQ(process.pid(), 11);
  EXPECT_EQ(process.uid(), 1000u);
  EXPECT_EQ(process.job_id(), "a");
  EXPECT_EQ(process.rank(), 1);
  EXPECT_EQ(process.lost_records(), 5u);
  EXPECT_EQ(process.lost_bytes(), 56u);
  EXPECT_EQ(process.unreadable_bytes(), 24u);
  EXPECT_TRUE(process.kernels().empty());
  ASSERT_EQ(process.spans_size(), 1);
  const v1::ActivitySpan& span = process.spans(0);
  EXPECT_EQ(span.begin_ns(), 1001 * kSecond);
  EXPECT_EQ(span.end_ns(), 1003 * kSecond);
  EXPECT_EQ(span.devices(), 1u);
  EXPECT_DOUBLE_EQ(span.computation_ratio(), 0.3);
  EXPECT_DOUBLE_EQ(span.communication_ratio(), 0);
  EXPECT_DOUBLE_EQ(span.not_overlapped_ratio(), 0);
  EXPECT_DOUBLE_EQ(span.free_ratio(), 0.7);
  EXPECT_EQ(span.kernels(), 3u);
  EXPECT_EQ(span.steps(), 1u);
  EXPECT_EQ(span.longest_kernel_ns(), 250'000'000u);
  EXPECT_EQ(span.longest_kernel(), "MatMul");
}

TEST_F(ActivityViewTest, EachSecondOnce) {
  v1::GetActivityRequest request;
  request.set_from_ns(0);
  const v1::GetActivityResponse all = View(User(1000), request);
  ASSERT_EQ(all.processes(0).spans_size(), 2);
  EXPECT_DOUBLE_EQ(all.processes(0).spans(0).computation_ratio(), 0.25);
  EXPECT_DOUBLE_EQ(all.processes(0).spans(1).computation_ratio(), 0.35);
  request.set_from_ns(all.processes(0).spans(0).end_ns());
  EXPECT_EQ(View(User(1000), request).processes(0).spans_size(), 1);
  request.set_from_ns(all.processes(0).spans(1).end_ns());
  EXPECT_EQ(View(User(1000), request).processes(0).spans_size(), 0);
}

TEST_F(ActivityViewTest, TheHottestKernels) {
  v1::GetActivityRequest request;
  request.set_kernels(1);
  v1::ProcessActivity process = View(User(1000), request).processes(0);
  ASSERT_EQ(process.kernels_size(), 1);
  EXPECT_EQ(process.kernels(0).name(), "MatMul");
  EXPECT_EQ(process.kernels(0).total_ns(), 500'000'000u);
  EXPECT_EQ(process.kernels(0).count(), 2u);
  EXPECT_EQ(process.kernels_total_ns(), 600'000'000u);
  EXPECT_EQ(process.kernels_span_ns(), static_cast<uint64_t>(5 * kSecond));
  request.set_kernels(100);
  process = View(User(1000), request).processes(0);
  ASSERT_EQ(process.kernels_size(), 2);
  EXPECT_EQ(process.kernels(1).name(), std::string(255, 'x')) << "cut before the character that would break";
}

TEST_F(ActivityViewTest, UsersSeeTheirOwnAndWhatTheyAskFor) {
  EXPECT_EQ(View(User(2000)).processes(0).pid(), 13);
  EXPECT_EQ(View(User(3000)).processes_size(), 0);
  Peer admin = User(0);
  admin.admin = true;
  EXPECT_EQ(View(admin).processes_size(), 2);
  v1::GetActivityRequest request;
  request.set_job_id("b");
  ASSERT_EQ(View(admin, request).processes_size(), 1);
  EXPECT_EQ(View(admin, request).processes(0).pid(), 13);
  request.add_pids(11);
  EXPECT_EQ(View(admin, request).processes_size(), 0);
  request.clear_job_id();
  EXPECT_EQ(View(admin, request).processes(0).pid(), 11);
}

TEST_F(ActivityViewTest, TooManyKernelsAreRefused) {
  v1::GetActivityRequest request;
  request.set_kernels(101);
  v1::GetActivityResponse out;
  const Status status = DescribeActivity(User(1000), request, processes_, [](uint64_t) { return LiveActivity(); }, &out);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(status.problems().size(), 1u);
  EXPECT_EQ(status.problems()[0].field, "kernels");
}

}  // namespace
}  // namespace profd
