// Marks of an object with a context of its own (this program) and of libms_tools_ext.so.
#include "sim/mstx/mstx.h"

#include <string>
#include <thread>
#include <vector>

#include "sim/child_test_support.h"

PROFD_SIM_EXPORT void mstxMarkA(const char* message, void* stream);
PROFD_SIM_EXPORT void* mstxDomainCreateA(const char* name);
PROFD_SIM_EXPORT void mstxDomainMarkA(void* domain, const char* message, void* stream);
PROFD_SIM_EXPORT uint64_t mstxRangeStartA(const char* message, void* stream);

namespace profd::sim::mstx {
namespace {

using testing::HasSubstr;
using testing::Not;

void InjectFrom(const char* path) { ::setenv("MSTX_INJECTION_PATH", path, 1); }
size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST_IN_CHILD(Mstx, WithoutAnInjectionMarksDoNothing) {
  Mark("unseen", nullptr);
  EXPECT_EQ(RangeStart("unseen", nullptr), 0u);
  RangeEnd(0);
  EXPECT_EQ(DomainCreate("unseen"), nullptr);
}

TEST(Mstx, AnInjectionBeforeTheFirstCallGetsThemAll) {
  const ChildResult result = RunChild([] {
    InjectFrom(PROFD_SIM_INJECTION);
    Mark("one", nullptr);
    void* const domain = DomainCreate("data");
    DomainMark(domain, "two", nullptr);
    const uint64_t id = RangeStart("three", nullptr);
    EXPECT_EQ(id, 17u);
    std::thread([id] { RangeEnd(id); }).join();  // ended on another thread
    DomainRangeEnd(domain, 5);                   // what the injection left out does nothing
  });
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output,
            "init once for each object\nmark one\ndomain data\nhandle two\n"
            "start three\nend 17\n");
}

TEST(Mstx, AnInjectionAfterTheFirstCallIsTooLateForTheObject) {
  const ChildResult result = RunChild([] {
    Mark("unseen", nullptr);
    InjectFrom(PROFD_SIM_INJECTION);
    Mark("unseen", nullptr);
    // Another object has a context of its own.
    const Library object(PROFD_SIM_MS_TOOLS);
    CALL(object, mstxMarkA)("seen", nullptr);
  });
  EXPECT_THAT(result.output, HasSubstr("mark seen"));
  EXPECT_THAT(result.output, Not(HasSubstr("unseen")));
}

TEST(Mstx, EachObjectIsInjectedOnceInEitherOrder) {
  const ChildResult result = RunChild([] {
    InjectFrom(PROFD_SIM_INJECTION);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([] { Mark("together", nullptr); });
    for (std::thread& thread : threads) thread.join();
    const Library object(PROFD_SIM_MS_TOOLS);
    CALL(object, mstxMarkA)("other", nullptr);
  });
  EXPECT_EQ(Count(result.output, "init once for each object"), 2u) << result.output;
  EXPECT_EQ(Count(result.output, "mark together"), 8u);
  EXPECT_EQ(Count(result.output, "mark other"), 1u);
}

std::atomic<int> g_marks{0};
int ReceiverInit(prof::MstxGetTable get_table) {
  prof::MstxFunction** table = nullptr;
  unsigned size = 0;
  if (get_table(prof::kMstxCore, &table, &size) != 0) return 1;
  void (*const mark)(const char*, void*) = [](const char*, void*) { ++g_marks; };
  *table[1] = reinterpret_cast<prof::MstxFunction>(mark);
  return 0;
}
void ReceiveInProfapi() {
  const Library profapi(PROFD_SIM_PROFAPI);  // visible to all
  EXPECT_EQ(CALL(profapi, ProfRegisterMstxFunc)(&ReceiverInit, prof::kMstxMspti), 0);
  EXPECT_EQ(CALL(profapi, ProfEnableMstxFunc)(prof::kMstxMspti), 0);
}

TEST_IN_CHILD(Mstx, WithoutThePathTheGlobalSymbolOfLibprofapiIsTaken) {
  ReceiveInProfapi();
  Mark("to libprofapi", nullptr);
  EXPECT_EQ(g_marks, 1);
}

TEST_IN_CHILD(Mstx, AMissingFileFallsBackToTheGlobalSymbol) {
  ReceiveInProfapi();
  InjectFrom("/nowhere/libnone.so");
  Mark("to libprofapi", nullptr);
  EXPECT_EQ(g_marks, 1);
}

TEST(Mstx, AnInjectionHidesLibprofapiUnlessItChains) {
  const ChildResult result = RunChild([] {
    ReceiveInProfapi();
    InjectFrom(PROFD_SIM_INJECTION);
    Mark("to the injection", nullptr);
    EXPECT_EQ(g_marks, 0);
  });
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("mark to the injection"));
}

TEST(Mstx, TablesMayBeSmallerThanExpected) {
  const ChildResult result = RunChild([] {
    ::setenv(kSizeEnv, "2", 1);
    InjectFrom(PROFD_SIM_INJECTION);
    Mark("fits", nullptr);
    EXPECT_EQ(RangeStart("does not", nullptr), 0u);
  });
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("mark fits"));
  EXPECT_THAT(result.output, Not(HasSubstr("does not")));
}

}  // namespace
}  // namespace profd::sim::mstx
