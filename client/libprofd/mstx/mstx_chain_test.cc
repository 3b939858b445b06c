// libprofd_mstx.so before the vendor's profiler, which the simulator's libprofapi.so leads to.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <utility>

#include "client/libprofd/mstx/mstx_test_support.h"

namespace profd::mstx {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kMspti = 2;  // libprofapi's number of the receiver

std::vector<std::string> g_seen;
uint64_t g_next_id = 100;
bool g_gives_ids = true;

uint64_t SeeStart(const std::string& text) {
  g_seen.push_back("start " + text);
  return g_gives_ids ? g_next_id++ : 0;
}
std::function<void()> g_in_destroy;  // runs once, within the next call

size_t g_created = 0;
DomainHandle CreateOf(const char* name) {
  ++g_created;
  return new std::string(name);
}
std::string NameOf(DomainHandle domain) { return *static_cast<std::string*>(domain); }

// As libmspti does it.
int ReceiverInit(GetTable get_table) {
  Function** table = nullptr;
  unsigned size = 0;
  if (get_table(kCore, &table, &size) != 0) return 1;
  *table[kMark] = reinterpret_cast<Function>(
      +[](const char* message, Stream) { g_seen.push_back(std::string("mark ") + message); });
  *table[kRangeStart] =
      reinterpret_cast<Function>(+[](const char* message, Stream) { return SeeStart(message); });
  *table[kRangeEnd] = reinterpret_cast<Function>(
      +[](uint64_t id) { g_seen.push_back("end " + std::to_string(id)); });
  if (get_table(kDomain, &table, &size) != 0) return 1;
  *table[kCreate] = reinterpret_cast<Function>(&CreateOf);
  *table[kDestroy] = reinterpret_cast<Function>(
      +[](DomainHandle domain) {
        if (const auto body = std::exchange(g_in_destroy, nullptr)) body();
        g_seen.push_back(NameOf(domain) + " destroyed");
      });
  *table[kDomainMark] = reinterpret_cast<Function>(+[](DomainHandle domain, const char* message, Stream) {
    g_seen.push_back(NameOf(domain) + " mark " + message);
  });
  *table[kDomainRangeStart] =
      reinterpret_cast<Function>(+[](DomainHandle domain, const char* message, Stream) {
        return SeeStart(NameOf(domain) + " " + message);
      });
  *table[kDomainRangeEnd] = reinterpret_cast<Function>(+[](DomainHandle domain, uint64_t id) {
    g_seen.push_back(NameOf(domain) + " end " + std::to_string(id));
  });
  return 0;
}

class MstxChainTest : public MstxTest {
 protected:
  MstxChainTest() {
    void* profapi = ::dlopen(PROFD_SIM_PROFAPI, RTLD_LAZY | RTLD_LOCAL);
    EXPECT_NE(profapi, nullptr) << ::dlerror();
    auto add = reinterpret_cast<int (*)(Init, uint64_t)>(::dlsym(profapi, "ProfRegisterMstxFunc"));
    auto enable = reinterpret_cast<int (*)(uint64_t)>(::dlsym(profapi, "ProfEnableMstxFunc"));
    EXPECT_EQ(add(&ReceiverInit, kMspti), 0);
    EXPECT_EQ(enable(kMspti), 0);
    vendors_init_ = reinterpret_cast<Init>(::dlsym(profapi, "InitInjectionMstx"));
    EXPECT_EQ(object_.FillBy(LoadInjection()), 0);
    g_seen.clear();
    g_created = 0;
    g_next_id = 100;
    g_gives_ids = true;
  }
  MarkingObject object_;
  Init vendors_init_ = nullptr;
};

TEST_F(MstxChainTest, TheProfilerStillGetsEverything) {
  lib::FakeDaemon daemon(path_);
  Attach();
  const DomainHandle domain = object_.Create("communication");
  object_.Mark("no session");
  const uint64_t early = object_.Start("no session");
  EXPECT_EQ(early, 100u);
  Activate(daemon);
  object_.End(early);
  object_.DomainMark(domain, "m");
  const uint64_t range = object_.DomainStart(domain, "r");
  EXPECT_EQ(range, 101u) << "the profiler's own";
  object_.DomainEnd(domain, range);
  object_.DomainEnd(domain, range);  // again: what it makes of that is its business
  EXPECT_THAT(g_seen, ElementsAre("mark no session", "start no session", "end 100",
                                  "communication mark m", "start communication r",
                                  "communication end 101", "communication end 101"));
  const auto taken = daemon.Ring()->TakeAll();
  ASSERT_EQ(taken.size(), 3u);
  const std::string id = std::to_string(taken[1].value);
  EXPECT_THAT(Texts(taken), ElementsAre("1 0 communication|m", "6 " + id + " communication|r",
                                        "7 " + id + " "));
}

TEST_F(MstxChainTest, ARangeOfOursAloneHasAnIdToo) {
  lib::FakeDaemon daemon(path_);
  Attach();
  Activate(daemon);
  g_gives_ids = false;
  const uint64_t range = object_.Start("r");
  EXPECT_NE(range, 0u);
  object_.End(range);
  object_.End(0);
  EXPECT_THAT(g_seen, ElementsAre("start r"));
  EXPECT_EQ(daemon.Ring()->TakeAll().size(), 2u);
}

// An id of a profiler is any number but 0 (in-application 5.1).
TEST_F(MstxChainTest, IdsOfTheProfilerMayBeOfAnyWidth) {
  lib::FakeDaemon daemon(path_);
  Attach();
  g_next_id = (uint64_t{1} << 63) + 1;
  const uint64_t early = object_.Start("no session");
  EXPECT_EQ(early, (uint64_t{1} << 63) + 1);
  Activate(daemon);
  object_.End(early);
  const uint64_t range = object_.Start("r");
  object_.End(range);
  EXPECT_THAT(g_seen, ElementsAre("start no session", "end 9223372036854775809", "start r", "end 9223372036854775810"));
  g_gives_ids = false;
  const uint64_t own = object_.Start("ours");
  EXPECT_NE(own, 0u);
  object_.End(own);
  EXPECT_EQ(g_seen.back(), "start ours");
  const auto taken = daemon.Ring()->TakeAll();
  ASSERT_EQ(taken.size(), 4u);
  EXPECT_EQ(taken[0].value, taken[1].value);
  EXPECT_EQ(taken[2].value, taken[3].value);
}

// In the child each call of MSPTI hangs.
TEST_F(MstxChainTest, AForkedChildDoesNotCallTheProfiler) {
  const DomainHandle domain = object_.Create("communication");
  const uint64_t early = object_.Start("r");
  const uint64_t early_of_domain = object_.DomainStart(domain, "r");
  g_seen.clear();
  const pid_t child = ::fork();
  if (child == 0) {
    object_.Mark("m");
    object_.End(object_.Start("s"));
    object_.End(early);
    object_.DomainMark(domain, "m");
    object_.DomainMark(object_.Create("another"), "m");
    object_.DomainEnd(domain, object_.DomainStart(domain, "s"));
    object_.DomainEnd(domain, early_of_domain);
    MarkingObject late;
    const bool filled = late.FillBy(LoadInjection()) == 0;
    late.Mark("m");
    ::_exit(filled && g_seen.empty() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  object_.Mark("m");
  EXPECT_THAT(g_seen, ElementsAre("mark m")) << "the parent continues";
}

// in-application 5.3: each function is handed on. Domains are shared by their name.
TEST_F(MstxChainTest, ADomainIsDestroyedByItsLastUser) {
  MarkingObject other;
  ASSERT_EQ(other.FillBy(LoadInjection()), 0);
  const auto destroy = object_.Get<DestroyCall>(kDomain, kDestroy);
  const DomainHandle domain = object_.Create("data loader");
  ASSERT_EQ(other.Create("data loader"), domain);
  object_.DomainMark(domain, "both");
  destroy(domain);
  other.DomainMark(domain, "one");
  destroy(domain);
  destroy(domain);  // it has no user any more
  object_.DomainMark(object_.Create("data loader"), "again");
  EXPECT_THAT(g_seen, ElementsAre("data loader mark both", "data loader mark one", "data loader destroyed",
                                  "data loader mark again"));
  destroy(domain);
}

// A profiler that knows domains by their names would give the one out that another thread has it destroy.
TEST_F(MstxChainTest, ADomainIsNotCreatedForTheProfilerWhileItDestroysIt) {
  const auto destroy = object_.Get<DestroyCall>(kDomain, kDestroy);
  const DomainHandle domain = object_.Create("at once");
  DomainHandle second = nullptr;
  g_in_destroy = [&] {
    std::thread([&] {
      second = object_.Create("at once");
      object_.DomainMark(second, "within");
    }).join();
    EXPECT_EQ(g_created, 1u) << "that one is not gone yet";
  };
  destroy(domain);
  EXPECT_EQ(second, domain);
  object_.DomainMark(domain, "m");
  EXPECT_EQ(g_created, 2u);
  EXPECT_THAT(g_seen, ElementsAre("at once destroyed", "at once mark m"));
  destroy(domain);
}

TEST_F(MstxChainTest, HandlesOfOthersPassThrough) {
  // Of an object whose table the vendor's library has filled.
  MarkingObject object;
  ASSERT_EQ(object.FillBy(vendors_init_), 0);
  const DomainHandle theirs = object.Create("theirs");
  object_.DomainMark(theirs, "m");
  EXPECT_THAT(g_seen, ElementsAre("theirs mark m"));
}

}  // namespace
}  // namespace profd::mstx
