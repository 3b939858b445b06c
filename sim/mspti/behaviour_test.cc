// How libmspti.so behaves: subscription, buffers, threads, conflicts, and what it does wrong on
// command.
#include <algorithm>
#include <set>

#include "sim/mspti/client_test_support.h"

namespace profd::sim::mspti {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_IN_CHILD(MsptiSubscription, OneSubscriber) {
  const auto subscribe = CALL(Mspti(), msptiSubscribe);
  Subscriber *torch = nullptr, *ours = nullptr;
  EXPECT_EQ(subscribe(nullptr, nullptr, nullptr), kInvalidParameter);
  EXPECT_EQ(subscribe(&torch, nullptr, nullptr), kOk);
  EXPECT_EQ(subscribe(&ours, nullptr, nullptr), kMultipleSubscribers);
  EXPECT_EQ(CALL(Mspti(), msptiUnsubscribe)(torch), kOk);
  EXPECT_EQ(CALL(Mspti(), msptiUnsubscribe)(torch), kOk) << "without a subscription";
  EXPECT_EQ(subscribe(&ours, nullptr, nullptr), kOk);
  EXPECT_NE(ours, torch);
}

TEST_IN_CHILD(MsptiSubscription, AWrongHandleStopsTheDevicesAllTheSame) {
  BeginOn(0, {kKernel});
  EXPECT_EQ(CALL(Mspti(), msptiUnsubscribe)(nullptr), kInvalidParameter);
  EXPECT_EQ(CALL(Acl(), simAclOpenLog)(0), 0) << "the reader of the device has gone";
  Subscriber* other = nullptr;
  EXPECT_EQ(CALL(Mspti(), msptiSubscribe)(&other, nullptr, nullptr), kMultipleSubscribers);
}

TEST_IN_CHILD(MsptiSubscription, AgainNeedsTheKindsToBeEnabledAgain) {
  BeginOn(0, {kKernel});
  Launch("first");
  Client::The().Wait(kKernel, 1);
  Client::The().Unsubscribe();
  Launch("between");
  Synchronize();
  Client::The().Begin({kKernel});
  Launch("second");
  const auto kernels = Client::The().Wait(kKernel, 2);
  EXPECT_EQ(kernels[1].texts.at(44), "second");
  EXPECT_EQ(kernels[1].Get<uint64_t>(28), 2u) << "correlation continues";
}

TEST_IN_CHILD(MsptiSubscription, TheHostReportsUntilUnsubscribe) {
  BeginOn(0, {kKernel});
  EXPECT_EQ(CALL(Mspti(), msptiActivityDisable)(kKernel), kOk);
  const uint64_t before = ReadCounts().host_reports;
  Launch("kernel");
  const uint64_t disabled = ReadCounts().host_reports;
  EXPECT_GT(disabled, before);
  Client::The().Unsubscribe();
  Launch("kernel");
  EXPECT_EQ(ReadCounts().host_reports, disabled);
}

TEST_IN_CHILD(MsptiSubscription, AnotherProfilersStopSwitchesTheSourcesOff) {
  BeginOn(0, {kKernel});
  prof::Command stop;
  stop.type = prof::kStop;
  stop.switches = UINT64_MAX;
  const Library profapi(PROFD_SIM_PROFAPI);
  EXPECT_EQ(CALL(profapi, profSetProfCommand)(&stop, sizeof stop), 0);
  const uint64_t before = ReadCounts().host_reports;
  Launch("kernel");
  EXPECT_EQ(ReadCounts().host_reports, before);
}

TEST_IN_CHILD(MsptiBuffers, CallbacksMustBothBeThere) {
  EXPECT_EQ(CALL(Mspti(), msptiActivityRegisterCallbacks)(nullptr, nullptr), kInvalidParameter);
}

// Enough kernels to fill so many buffers of the client.
void FillBuffers(size_t count) {
  const size_t kernels = count * Client::The().buffer_size / 56 + 1;
  for (size_t i = 0; i < kernels; ++i) Launch("kernel", nullptr, 100);
  Synchronize();
  EXPECT_TRUE(Eventually([&] {
    const Counts counts = ReadCounts();
    return counts.recorded[kKernel] + counts.declined + counts.did_not_fit >= kernels;
  }));
}

TEST_IN_CHILD(MsptiBuffers, FlushAllDeliversTheCurrentOneOnTheCallersThread) {
  BeginOn(0, {kKernel});
  CALL(Mspti(), msptiActivityFlushPeriod)(1);
  Launch("kernel");
  EXPECT_TRUE(Eventually([] { return ReadCounts().recorded[kKernel] == 1; }));
  EXPECT_THAT(Client::The().Have(kKernel), IsEmpty()) << "FlushPeriod brings full ones only";
  Client::The().Flush();
  EXPECT_THAT(Client::The().Have(kKernel), SizeIs(1));
  EXPECT_THAT(Client::The().CompletedOn(), testing::ElementsAre(std::this_thread::get_id()));
}

TEST_IN_CHILD(MsptiBuffers, FullOnesComeByAThreadEachAtFourFifths) {
  Client::The().buffer_size = 65536;
  BeginOn(0, {kKernel});
  FillBuffers(3);
  EXPECT_TRUE(Eventually([] {
    MutexLock lock(Client::The().mutex);
    return Client::The().completed_on.size() >= 3;
  }));
  EXPECT_GE(ReadCounts().threads, 3u);
  // 65536 * 0.8 is reached by the 937th record of 56 bytes.
  EXPECT_EQ(Client::The().Have(kKernel).size() % 937, 0u) << Client::The().Have(kKernel).size();
  MutexLock lock(Client::The().mutex);
  const std::set<std::thread::id> threads(Client::The().completed_on.begin(),
                                          Client::The().completed_on.end());
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u);
  lock.Unlock();
  Client::The().Flush();  // joins them
}

TEST_IN_CHILD(MsptiBuffers, HandOversOverlapAndOvertake) {
  Settings("mspti.hand_over_delay_ms=300");
  Client::The().buffer_size = 8192;
  BeginOn(0, {kKernel});
  FillBuffers(12);
  EXPECT_TRUE(Eventually([] { return ReadCounts().threads >= 12; }));
  Client::The().Flush();
  MutexLock lock(Client::The().mutex);
  std::vector<uint64_t> order;
  for (const Record& record : Client::The().records) order.push_back(record.Get<uint64_t>(28));
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST_IN_CHILD(MsptiBuffers, ADeadHandOverThreadLeavesItToFlushAll) {
  Settings("mspti.dead_hand_over=1");
  Client::The().buffer_size = 8192;
  BeginOn(0, {kKernel});
  FillBuffers(2);
  EXPECT_THAT(Client::The().Have(kKernel), IsEmpty());
  EXPECT_EQ(ReadCounts().threads, 0u);
  Client::The().Flush();
  EXPECT_GT(Client::The().Have(kKernel).size(), 200u);
}

TEST_IN_CHILD(MsptiBuffers, ADeclinedRequestLosesTheRecordAndMakesAThread) {
  CALL(Acl(), aclrtSetDevice)(0);
  Client::The().decline = true;
  Client::The().Begin({kKernel});
  for (int i = 0; i < 5; ++i) Launch("kernel");
  Synchronize();
  EXPECT_TRUE(Eventually([] { return ReadCounts().declined == 5; }));
  EXPECT_EQ(ReadCounts().threads, 5u);
  Client::The().Flush();
  MutexLock lock(Client::The().mutex);
  EXPECT_EQ(Client::The().requests, 5u);
  EXPECT_EQ(Client::The().empty_completes, 5u);
}

TEST_IN_CHILD(MsptiBuffers, RecordsThatDoNotFitAreLost) {
  Client::The().buffer_size = 50;  // less than one
  BeginOn(0, {kKernel});
  Launch("kernel");
  EXPECT_TRUE(Eventually([] { return ReadCounts().did_not_fit == 1; }));
}

TEST_IN_CHILD(MsptiBuffers, MayBeAtAnyAddress) {
  Client::The().misalignment = 3;
  BeginOn(0, {kKernel, kAclApi});
  Launch("kernel");
  EXPECT_EQ(Client::The().Wait(kKernel, 1).at(0).texts.at(44), "kernel");
}

TEST_IN_CHILD(MsptiBuffers, RequestsComeOnForeignThreads) {
  CALL(Acl(), aclrtSetDevice)(0);
  std::thread::id asked;
  Client::The().in_request = [&asked] { asked = std::this_thread::get_id(); };
  Client::The().Begin({kAclApi});
  std::thread::id application;
  std::thread([&] {
    application = std::this_thread::get_id();
    CALL(Acl(), aclrtSetDevice)(0);
    Launch("kernel");
  }).join();
  EXPECT_EQ(asked, application);
}

TEST_IN_CHILD(MsptiBuffers, RecordingThreadsStandStillWhileFlushAllHandsOver) {
  BeginOn(0, {kAclApi});
  Launch("kernel");
  std::atomic<bool> launched{false}, inside{false}, go_on{false};
  Client::The().in_complete = [&] {
    inside = true;
    EXPECT_TRUE(Eventually([&] { return go_on.load(); }));
    EXPECT_FALSE(launched);
  };
  std::thread flush([] { CALL(Mspti(), msptiActivityFlushAll)(0); });
  EXPECT_TRUE(Eventually([&] { return inside.load(); }));
  std::thread application([&] {
    CALL(Acl(), aclrtSetDevice)(0);
    launched = true;
  });
  // The thread has time enough to come through if it could.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  go_on = true;
  flush.join();
  Client::The().in_complete = nullptr;
  application.join();
  EXPECT_TRUE(launched);
}

TEST(MsptiMisuse, EndsTheProcessWithAMessage) {
  const auto run = [](const std::function<void()>& in_request,
                      const std::function<void()>& in_complete, int request_limit_ms = 60'000) {
    return RunChild([&] {
      Settings("mspti.request_limit_ms=" + std::to_string(request_limit_ms));
      CALL(Acl(), aclrtSetDevice)(0);
      Client::The().in_request = in_request;
      Client::The().in_complete = in_complete;
      Client::The().Begin({kAclApi});
      Launch("kernel");
      Client::The().Flush();
    });
  };
  const auto flush = [] { CALL(Mspti(), msptiActivityFlushAll)(0); };
  EXPECT_THAT(run(nullptr, flush).output, HasSubstr("FlushAll in the complete callback"));
  EXPECT_THAT(run(nullptr,
                  [] {
                    CALL(Acl(), aclrtMemset)
                    (nullptr, 1, 0, 1);
                  })
                  .output,
              HasSubstr("a record was made in the complete callback"));
  EXPECT_THAT(run(flush, nullptr).output, HasSubstr("called in the request callback"));
  EXPECT_THAT(
      run([] { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }, nullptr, 200).output,
      HasSubstr("the request callback took too long"));
  EXPECT_EQ(run(flush, nullptr).signal, SIGABRT);
  EXPECT_EQ(run(nullptr, nullptr).exit_code, 0);
}

TEST(MsptiExit, LosesTheCurrentBufferWithoutFlushAll) {
  // The client's last word is written when its buffer comes.
  const auto run = [](bool flush) {
    return RunChild([flush] {
      CALL(Acl(), aclrtSetDevice)(0);
      Client::The().in_complete = [] { std::puts("delivered"); };
      Client::The().Begin({kAclApi});
      Launch("kernel");
      if (flush) Client::The().Flush();
      std::exit(0);  // static destructors run
    });
  };
  EXPECT_THAT(run(false).output, testing::Not(HasSubstr("delivered")));
  EXPECT_EQ(run(false).exit_code, 0);
  EXPECT_THAT(run(true).output, HasSubstr("delivered"));
}

TEST_IN_CHILD(MsptiExit, OneMoreBufferIsDeliveredAfterUnsubscribe) {
  Settings("mspti.late_complete=1");
  BeginOn(0, {kAclApi});
  Launch("kernel");
  EXPECT_EQ(Client::The().Unsubscribe(), kOk);
  EXPECT_TRUE(Eventually([] { return !Client::The().Have(kAclApi).empty(); }));
}

TEST_IN_CHILD(MsptiWalker, KeepsItsPositionInTheThread) {
  std::vector<uint8_t> first(56 * 2), second(56 * 2);
  for (size_t i : {0u, 56u}) first[i] = second[i] = kKernel;
  uint8_t* record = nullptr;
  const auto next = CALL(Mspti(), msptiActivityGetNextRecord);
  EXPECT_EQ(next(nullptr, 0, &record), kInvalidParameter);
  EXPECT_EQ(next(first.data(), first.size(), &record), kOk);
  EXPECT_EQ(record, first.data());
  EXPECT_EQ(next(second.data(), second.size(), &record), kOk);
  EXPECT_EQ(record, second.data() + 56) << "in the middle";
  EXPECT_EQ(next(second.data(), second.size(), &record), kEndOfBuffer);
  second[0] = 99;
  EXPECT_EQ(next(second.data(), second.size(), &record), kInner);
}

TEST_IN_CHILD(MsptiFaults, ThrowsThroughTheInterface) {
  Settings("mspti.throw=msptiActivityEnable");
  Subscriber* subscriber = nullptr;
  EXPECT_EQ(CALL(Mspti(), msptiSubscribe)(&subscriber, nullptr, nullptr), kOk);
  EXPECT_ANY_THROW(CALL(Mspti(), msptiActivityEnable)(kKernel));
}

TEST(MsptiFaults, PrintsWhenItIsLoaded) {
  EXPECT_THAT(RunChild([] { Mspti(); }).output, HasSubstr("libhccl.so: cannot open"));
}

TEST_IN_CHILD(MsptiFaults, AForkedChildHangsInAnyCall) {
  BeginOn(0, {kKernel});
  const ChildResult forked = RunChild(
      [] {
        CALL(Mspti(), msptiActivityFlushAll)
        (0);
      },
      std::chrono::milliseconds(300));
  EXPECT_TRUE(forked.timed_out);
  EXPECT_EQ(RunChild([] {}, std::chrono::seconds(60)).exit_code, 0) << "who calls nothing ends";
  Launch("in the parent");
  Client::The().Wait(kKernel, 1);
}

TEST_IN_CHILD(MsptiRate, MakesAsManyKernelsAsRequested) {
  Settings("mspti.rate=20000;mspti.rate_threads=4");
  const SystemClock clock;
  const int64_t before = clock.SteadyNs();
  Client::The().Begin({kKernel});
  EXPECT_TRUE(Eventually([] { return ReadCounts().recorded[kKernel] >= 2000; }));
  EXPECT_GE(clock.SteadyNs() - before, 90'000'000) << "not faster";
  Client::The().End();
  MutexLock lock(Client::The().mutex);
  std::set<uint32_t> streams;
  for (const Record& record : Client::The().records) streams.insert(record.Get<uint32_t>(24));
  EXPECT_THAT(streams, testing::ElementsAre(0, 1, 2, 3));
}

// Marks come through libprofapi's table.
prof::MstxFunction g_core[8], g_domain[8];
prof::MstxFunction *g_core_table[8], *g_domain_table[8];
int GetTable(int module, prof::MstxFunction*** table, unsigned* size) {
  const bool core = module == prof::kMstxCore;
  for (int i = 0; i < 8; ++i) {
    g_core_table[i] = &g_core[i];
    g_domain_table[i] = &g_domain[i];
  }
  *table = core ? g_core_table : g_domain_table;
  *size = core ? 5 : 6;
  return 0;
}
void BeginWithMarks() {
  BeginOn(1, {kMarker});
  const Library profapi(PROFD_SIM_PROFAPI);
  ASSERT_EQ(CALL(profapi, InitInjectionMstx)(&GetTable), 0);
}
void Mark(const char* message, void* stream) {
  reinterpret_cast<void (*)(const char*, void*)>(g_core[1])(message, stream);
}
uint64_t Start(const char* message, void* stream) {
  return reinterpret_cast<uint64_t (*)(const char*, void*)>(g_core[2])(message, stream);
}
void End(uint64_t id) { reinterpret_cast<void (*)(uint64_t)>(g_core[3])(id); }

TEST_IN_CHILD(MsptiMarks, HostHalvesComeAtOnce) {
  BeginWithMarks();
  Mark("here", nullptr);
  const uint64_t id = Start("range", nullptr);
  End(id);
  Mark(std::string(255, 'x').c_str(), nullptr);  // too long: refused
  EXPECT_EQ(Start(std::string(255, 'x').c_str(), nullptr), 0u);
  Mark(std::string(254, 'y').c_str(), nullptr);
  const auto marks = Client::The().Wait(kMarker, 4);
  ASSERT_THAT(marks, SizeIs(4));
  EXPECT_EQ(marks[0].texts.at(36), "here");
  EXPECT_EQ(marks[0].texts.at(44), "default");
  EXPECT_EQ(marks[0].Get<uint32_t>(4), 1u);
  EXPECT_EQ(marks[0].Get<uint32_t>(8), 0u);
  EXPECT_EQ(marks[0].Get<uint32_t>(28), static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(marks[1].Get<uint32_t>(4), 2u);
  EXPECT_EQ(marks[1].Get<uint64_t>(20), id);
  EXPECT_EQ(marks[2].Get<uint32_t>(4), 4u);
  EXPECT_EQ(marks[2].Get<uint64_t>(20), id);
  EXPECT_EQ(marks[2].texts.at(36), "");
  EXPECT_EQ(marks[2].texts.at(44), "");
}

TEST_IN_CHILD(MsptiMarks, TheDevicesHalfFollows) {
  BeginWithMarks();
  void* const stream = NewStream();
  const auto launched = static_cast<uint64_t>(SystemClock().WallNs());
  Launch("long", stream, 5'000'000);
  Mark("on the device", stream);
  const auto marks = Client::The().Wait(kMarker, 2);
  EXPECT_EQ(marks[0].Get<uint32_t>(4), 8u);
  EXPECT_EQ(marks[1].Get<uint32_t>(4), 8u);
  EXPECT_EQ(marks[1].Get<uint32_t>(8), 1u);
  EXPECT_EQ(marks[1].Get<uint32_t>(28), 1u);  // device
  EXPECT_EQ(marks[1].Get<uint32_t>(32), 1u);  // stream
  EXPECT_EQ(marks[1].Get<uint64_t>(20), marks[0].Get<uint64_t>(20));
  EXPECT_EQ(marks[1].texts.at(36), "");
  EXPECT_GE(marks[1].Get<uint64_t>(12), launched + 5'000'000);  // behind the kernel
}

TEST(MsptiMarks, TheDevicesHalfMayBeLateOrNeverCome) {
  EXPECT_TRUE(InChild([] {
    Settings("mspti.device_mark_delay_ms=200");
    BeginWithMarks();
    const SystemClock clock;
    const int64_t before = clock.SteadyNs();
    Mark("late", NewStream());
    Client::The().Wait(kMarker, 2);
    EXPECT_GE(clock.SteadyNs() - before, 200'000'000);
  }));
  EXPECT_TRUE(InChild([] {
    Settings("mspti.device_marks=0");
    BeginWithMarks();
    void* const stream = NewStream();
    Mark("never", stream);
    Synchronize();
    Client::The().End();
    EXPECT_THAT(Client::The().Have(kMarker), SizeIs(1));
  }));
}

TEST_IN_CHILD(MsptiMarks, DomainsCanBeSwitchedOff) {
  BeginWithMarks();
  const auto create = reinterpret_cast<void* (*)(const char*)>(g_domain[1]);
  const auto mark = reinterpret_cast<void (*)(void*, const char*, void*)>(g_domain[3]);
  EXPECT_EQ(CALL(Mspti(), msptiActivityDisableMarkerDomain)(nullptr), kInvalidParameter);
  EXPECT_EQ(CALL(Mspti(), msptiActivityDisableMarkerDomain)("communication"), kOk);
  mark(create("communication"), "unseen", nullptr);
  mark(create("loader"), "seen", nullptr);
  const auto marks = Client::The().Wait(kMarker, 1);
  ASSERT_THAT(marks, SizeIs(1));
  EXPECT_EQ(marks[0].texts.at(44), "loader");
  CALL(Mspti(), msptiActivityEnableMarkerDomain)("communication");
  mark(create("communication"), "seen again", nullptr);
  EXPECT_EQ(Client::The().Wait(kMarker, 2)[1].texts.at(36), "seen again");
}

}  // namespace
}  // namespace profd::sim::mspti
