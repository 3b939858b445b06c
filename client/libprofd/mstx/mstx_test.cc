// libprofd_mstx.so in a process without the vendor's libraries.
#include <thread>

#include "client/libprofd/mstx/mstx_test_support.h"

namespace profd::mstx {
namespace {

using ::testing::ElementsAre;

TEST_F(MstxTest, MarksAndRangesBecomeOurs) {
  lib::FakeDaemon daemon(path_);
  Attach();
  MarkingObject object;
  ASSERT_EQ(object.FillBy(LoadInjection()), 0);
  const DomainHandle domain = object.Create("communication");
  ASSERT_NE(domain, nullptr);
  // Before a session wants marks nothing is recorded, and a range that began then has no end.
  object.Mark("too early");
  const uint64_t early = object.Start("too early");
  EXPECT_EQ(early, 0u);
  Activate(daemon);
  object.End(early);
  object.Mark("now");
  const uint64_t outer = object.Start("outer");
  const uint64_t inner = object.DomainStart(domain, "inner");
  EXPECT_NE(outer, 0u);
  EXPECT_NE(inner, outer);
  object.DomainMark(domain, "in the domain");
  object.End(outer);  // before the inner one
  std::thread([&] { object.DomainEnd(domain, inner); }).join();
  const auto taken = daemon.Ring()->TakeAll();
  ASSERT_EQ(taken.size(), 6u);
  const std::string first = std::to_string(taken[1].value);
  const std::string second = std::to_string(taken[2].value);
  EXPECT_NE(first, second);
  EXPECT_THAT(Texts(taken),
              ElementsAre("1 0 now", "6 " + first + " outer", "6 " + second + " communication|inner",
                          "1 0 communication|in the domain", "7 " + first + " ", "7 " + second + " "));
  EXPECT_NE(taken[5].thread, taken[4].thread);
}

TEST_F(MstxTest, ObjectsShareDomainsByTheirName) {
  MarkingObject one;
  MarkingObject other;
  ASSERT_EQ(one.FillBy(LoadInjection()), 0);
  ASSERT_EQ(other.FillBy(LoadInjection()), 0);
  const DomainHandle domain = one.Create("data loader");
  EXPECT_EQ(other.Create("data loader"), domain);
  EXPECT_NE(other.Create("data"), domain);
  EXPECT_EQ(one.Create(nullptr), nullptr);
  one.Get<DestroyCall>(kDomain, kDestroy)(domain);
  lib::FakeDaemon daemon(path_);
  Attach();
  Activate(daemon);
  other.DomainMark(domain, "still there");
  other.DomainMark(&one, "no handle of ours");
  other.DomainMark(nullptr, "none");
  EXPECT_THAT(Texts(daemon.Ring()->TakeAll()),
              ElementsAre("1 0 data loader|still there", "1 0 no handle of ours", "1 0 none"));
}

TEST_F(MstxTest, ATableThatIsTooSmallIsFilledToItsSize) {
  MarkingObject object(kDomainMark + 1);
  ASSERT_EQ(object.FillBy(LoadInjection()), 0);
  EXPECT_TRUE(object.IsFilled(kDomain, kDomainMark));
  EXPECT_FALSE(object.IsFilled(kDomain, kDomainRangeStart));
  // Nothing of ours, and no profiler behind us.
  EXPECT_FALSE(object.IsFilled(kCore, kGetToolId));
  for (unsigned i = 1; i < kMemoryCount; ++i) EXPECT_FALSE(object.IsFilled(kMemory, i));
  EXPECT_NE(LoadInjection()(nullptr), 0);
  EXPECT_NE(LoadInjection()([](int, Function***, unsigned*) { return 1; }), 0);
}

// 40 bytes of the domain, and what is left of the name, cut between characters.
TEST_F(MstxTest, LongNamesAreCut) {
  lib::FakeDaemon daemon(path_);
  Attach();
  Activate(daemon);
  MarkingObject object;
  ASSERT_EQ(object.FillBy(LoadInjection()), 0);
  object.DomainMark(object.Create(std::string(50, 'd').c_str()), (std::string(46, 'n') + "ä").c_str());
  EXPECT_THAT(Texts(daemon.Ring()->TakeAll()),
              ElementsAre("1 0 " + std::string(40, 'd') + "|" + std::string(46, 'n')));
}

}  // namespace
}  // namespace profd::mstx
