// libmspti.so: graphs whose tasks come again, and communication in the way before that kind.
#include "sim/mspti/client_test_support.h"

namespace profd::sim::mspti {
namespace {

using testing::SizeIs;

// Of a graph: a kernel, and a communication on a stream of its own.
void LoadGraph(void* group) {
  void* const stream = NewStream();
  EXPECT_EQ(CALL(Acl(), simAclModelLoad)(7, "net"), 0);
  EXPECT_EQ(CALL(Acl(), simAclModelLoad)(8, "net"), acl::kInvalidParameter) << "one at a time";
  Launch("conv");
  const acl::Communication all_reduce = {.name = "hcom_allReduce__1", .type = "hcom_allReduce_", .duration_ns = 1'000};
  EXPECT_EQ(CALL(Acl(), simAclCommunicate)(&all_reduce, group, stream), 0);
  EXPECT_EQ(CALL(Acl(), simAclModelLoaded)(), 0);
}

TEST(MsptiRecords, TasksOfAGraphComeEachTimeItRuns) {
  for (const bool late : {false, true}) {
    EXPECT_TRUE(InChild([late] {
      CALL(Acl(), aclrtSetDevice)(0);
      void* const group = GroupOfOne();
      if (late) LoadGraph(group);
      Client::The().Begin({kKernel, kCommunication});
      if (!late) LoadGraph(group);
      EXPECT_EQ(CALL(Acl(), simAclModelExecute)(9, 1, nullptr, 0), acl::kModelNotLoaded);
      const std::vector<int64_t> durations[] = {{20'000, 5'000}, {30'000, 6'000}, {40'000, 7'000}};
      for (uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(CALL(Acl(), simAclModelExecute)(7, i + 1, durations[i].data(), 2), 0);
      }
      Synchronize();
      const auto kernels = Client::The().Wait(kKernel, 3);
      const auto communications = Client::The().Wait(kCommunication, 3);
      ASSERT_THAT(kernels, SizeIs(3));
      ASSERT_THAT(communications, SizeIs(3));
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(kernels[i].texts.at(44), "conv");
        EXPECT_EQ(kernels[i].Get<uint64_t>(28), kernels[0].Get<uint64_t>(28)) << "one launch on the host";
        EXPECT_EQ(Int(kernels[i].Get<uint64_t>(12) - kernels[i].Get<uint64_t>(4)), durations[i][0]);
        EXPECT_EQ(communications[i].texts.at(48), "hcom_allReduce__1");
        EXPECT_EQ(Int(communications[i].Get<uint64_t>(32) - communications[i].Get<uint64_t>(24)), durations[i][1]);
      }
    })) << (late ? "loaded before" : "loaded while it records");
  }
}

TEST_IN_CHILD(MsptiRecords, AGraphThatIsNotSaidAgainHasNoNames) {
  Settings("ascendcl.silent_models=1");
  CALL(Acl(), aclrtSetDevice)(0);
  LoadGraph(GroupOfOne());
  Client::The().Begin({kKernel});
  EXPECT_EQ(CALL(Acl(), simAclModelExecute)(7, 1, nullptr, 0), 0);
  Launch("eager");
  Synchronize();
  const auto kernels = Client::The().Wait(kKernel, 1);
  ASSERT_THAT(kernels, SizeIs(1));
  EXPECT_EQ(kernels[0].texts.at(44), "eager");
}

TEST_IN_CHILD(MsptiRecords, TheOldKindOfCommunicationIsWhatItTakesOver) {
  PretendPreload();
  CALL(Acl(), aclrtSetDevice)(1);
  Client::The().Begin({kHccl});
  void* const group = GroupOfOne();
  const acl::Communication all_reduce = {
      .name = "hcom_allReduce__1", .type = "hcom_allReduce_", .bytes = 4'000'000, .duration_ns = 100'000};
  // Marks and operation wait behind it: without it the first mark is over before the operation is launched,
  // and how long before is the machine's affair.
  Launch("before", nullptr, 500'000'000);
  EXPECT_EQ(CALL(Mspti(), simAclCommunicate)(&all_reduce, group, nullptr), 0);
  const Record record = Client::The().Wait(kHccl, 1).at(0);
  EXPECT_EQ(record.Get<uint32_t>(20), 1u);
  const uint64_t ns = record.Get<uint64_t>(12) - record.Get<uint64_t>(4);
  EXPECT_GE(ns, 100'000u) << "from mark to mark";
  EXPECT_LT(ns, 105'000u);
  EXPECT_NEAR(record.Get<double>(28), 4'000'000.0 / static_cast<double>(ns), 1e-9);
  EXPECT_EQ(record.texts.at(36), "hcom_allReduce__1");
  EXPECT_EQ(record.texts.at(44), "dp_0");
}

}  // namespace
}  // namespace profd::sim::mspti
