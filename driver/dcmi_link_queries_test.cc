#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "driver/dcmi_fault_counts.h"
#include "driver/testing/dcmi_service_fixture.h"

namespace profd {
namespace {

class DcmiLinkQueriesTest : public DcmiServiceTest {
 protected:
  void StartV1() { Start(1); }
  void StartV2() {
    fake.emplace(1);
    StartOver(fake->V2());
  }
  const DcmiDevice& device() { return service->devices()[0]; }
};

TEST_F(DcmiLinkQueriesTest, NetworkPortAndCredits) {
  StartV1();
  fake->devices[0].hccs_credits.credit_num[3] = 17;
  fake->devices[0].traffic_classes.tc_rx[7] = 9;
  fake->devices[0].pfc_duration.tx[4] = 11;
  fake->devices[0].extra.cw_total_correct_bit = 5;
  fake->devices[0].extra.correcting_bit_rate = 1e-9;
  EXPECT_EQ(service->Ask(device(), dcmi::kHccsCredits).value.credit_num[3], 17u);
  EXPECT_EQ(service->Ask(device(), dcmi::kTrafficClasses).value.tc_rx[7], 9u);
  EXPECT_EQ(service->Ask(device(), dcmi::kPfcDuration).value.tx[4], 11u);
  auto extra = service->Ask(device(), dcmi::kExtraStatistics);
  EXPECT_EQ(extra.value.cw_total_correct_bit, 5u);
  EXPECT_EQ(extra.value.correcting_bit_rate, 1e-9);
}

TEST_F(DcmiLinkQueriesTest, UnsupportedIsCalledOnce) {
  StartV1();
  fake->codes["hccs_credits"] = abi::kDcmiNotSupported;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(service->Ask(device(), dcmi::kHccsCredits).code, abi::kDcmiNotSupported);
  }
  EXPECT_EQ(fake->asked["0:hccs_credits"], 1);
}

TEST_F(DcmiLinkQueriesTest, SerdesByMacro) {
  StartV1();
  fake->devices[0].serdes[2].lane[5].snr = 28;
  EXPECT_EQ(service->SerdesQuality(device(), 2).value.lane[5].snr, 28u);
}

TEST_F(DcmiLinkQueriesTest, VirtualNpus) {
  StartV1();
  EXPECT_EQ(service->Vdevs(device()).value.count, 0u);
  abi::DcmiComputingResource& vdev = fake->devices[0].vdevs[101];
  vdev.vdev_aicore_utilization = 40;
  vdev.vdev_memory_total = 4096;
  vdev.vdev_memory_free = 1024;
  auto vdevs = service->Vdevs(device());
  ASSERT_EQ(vdevs.value.count, 1u);
  EXPECT_EQ(vdevs.value.ids[0], 101u);
  auto activity = service->VdevActivity(device(), 101);
  ASSERT_TRUE(activity.ok());
  EXPECT_EQ(activity.value.aicore_percent, 40u);
  EXPECT_EQ(activity.value.memory_total_kb, 4096u);
  EXPECT_EQ(activity.value.memory_free_kb, 1024u);
  EXPECT_FALSE(service->VdevActivity(device(), 102).ok());
}

TEST_F(DcmiLinkQueriesTest, AListOfVirtualNpusThatIsTooLongIsCut) {
  fake.emplace(1);
  DcmiLibrary library = fake->V1();
  library.functions.device_info.v1 = [](int, int, int, unsigned, void* out, unsigned* size) {
    std::memset(out, 0xFF, *size);
    return 0;
  };
  StartOver(library);
  EXPECT_EQ(service->Vdevs(device()).value.count, abi::kVdevMax);
}

TEST_F(DcmiLinkQueriesTest, UnifiedBusIsOfTheSecondGenerationOnly) {
  StartV1();
  EXPECT_EQ(service->UbPorts(device()).code, kDcmiSymbolMissing);
  EXPECT_EQ(service->Ask(device(), dcmi::kUbLinkStatus).code, kDcmiSymbolMissing);
  service.reset();
  StartV2();
  EXPECT_EQ(service->Ask(device(), dcmi::kHccsCredits).code, kDcmiSymbolMissing);
  EXPECT_EQ(service->UbPorts(device()).value.count, 0u);
}

TEST_F(DcmiLinkQueriesTest, UnifiedBusPortsAndTheirCounters) {
  StartV2();
  abi::DcmiUbPortList& list = fake->devices[0].ub_ports;
  list.die_nums = 2;
  list.die[0].die_index = 0;
  list.die[0].port_nums = 1;
  list.die[0].port[0] = {4, abi::kUbModeUb};
  list.die[1].die_index = 1;
  list.die[1].port_nums = 1;
  list.die[1].port[0] = {8, abi::kUbModeUboe};
  fake->devices[0].ub[1][8].pkt_num[39] = 3;
  auto ports = service->UbPorts(device());
  ASSERT_EQ(ports.value.count, 2u);
  EXPECT_EQ(ports.value.ports[0].port, 4);
  EXPECT_FALSE(ports.value.ports[0].uboe);
  EXPECT_EQ(ports.value.ports[1].udie, 1);
  EXPECT_TRUE(ports.value.ports[1].uboe);
  EXPECT_EQ(service->UbPortStatistics(device(), 1, 8).value.pkt_num[39], 3u);
  EXPECT_EQ(service->UbPortStatistics(device(), 0, 4).value.pkt_num[39], 0u);
}

TEST_F(DcmiLinkQueriesTest, AListOfPortsThatIsNonsenseIsBounded) {
  StartV2();
  abi::DcmiUbPortList& list = fake->devices[0].ub_ports;
  std::memset(static_cast<void*>(&list), 0x7F, sizeof list);
  EXPECT_EQ(service->UbPorts(device()).value.count, 0u);  // ids that do not exist
  list.die_nums = std::numeric_limits<int>::min();
  EXPECT_EQ(service->UbPorts(device()).value.count, 0u);
  list.die_nums = std::numeric_limits<int>::max();
  for (abi::DcmiUbDiePorts& die : list.die) {
    die.die_index = 1;
    die.port_nums = std::numeric_limits<int>::max();
    for (auto& port : die.port) port = {31, 7};
  }
  EXPECT_EQ(service->UbPorts(device()).value.count, 64u);
}

TEST_F(DcmiLinkQueriesTest, AHungCallIsGivenUpLikeAllOthers) {
  StartV1();
  fake->Close("0:extra_statistics");
  int late = 0;
  std::thread hung([&] { late = service->Ask(device(), dcmi::kExtraStatistics).code; });
  fake->AwaitHanging();
  EXPECT_TRUE(service->CheckStuck(clock.SteadyNs() + 5 * kNsPerSecond, 5 * kNsPerSecond));
  EXPECT_EQ(service->Ask(device(), dcmi::kTrafficClasses).code, kDcmiStuck);
  fake->Open();
  hung.join();
  EXPECT_EQ(late, kDcmiAbandoned);
}

// ---- fault events ----

abi::DcmiEvent Event(uint32_t code, uint8_t severity, uint8_t assertion, uint8_t node = 0) {
  abi::DcmiEvent event{};
  event.event.event_id = code;
  event.event.severity = severity;
  event.event.assertion = assertion;
  event.event.node_id = node;
  return event;
}

uint64_t Count(const DcmiFaultEventCounts& counts, size_t severity, DcmiFaultChange change) {
  return counts[severity][static_cast<size_t>(change)];
}

TEST(DcmiFaultCounter, CountsLinksThatAppearAndVanish) {
  DcmiFaultCounter counter;
  const std::array<abi::DcmiEvent, 1> old = {Event(1, 2, 1)};
  counter.Update(old);  // was there before us
  EXPECT_EQ(counter.counts(), DcmiFaultEventCounts{});
  const std::array<abi::DcmiEvent, 3> more = {Event(1, 2, 1), Event(2, 3, 1), Event(3, 0, 2)};
  counter.Update(more);
  counter.Update(more);
  EXPECT_EQ(Count(counter.counts(), 3, DcmiFaultChange::kRaised), 1u);
  EXPECT_EQ(Count(counter.counts(), 0, DcmiFaultChange::kOneOff), 1u);
  EXPECT_EQ(Count(counter.counts(), 2, DcmiFaultChange::kRaised), 0u);
  counter.Update({});
  EXPECT_EQ(Count(counter.counts(), 2, DcmiFaultChange::kRecovered), 1u);
  EXPECT_EQ(Count(counter.counts(), 3, DcmiFaultChange::kRecovered), 1u);
  EXPECT_EQ(Count(counter.counts(), 0, DcmiFaultChange::kRecovered), 0u);  // one-offs do not last
  counter.Update(old);
  EXPECT_EQ(Count(counter.counts(), 2, DcmiFaultChange::kRaised), 1u);
}

TEST(DcmiFaultCounter, SamePlaceOnceOtherPlacesApart) {
  DcmiFaultCounter counter;
  counter.Update({});
  const std::array<abi::DcmiEvent, 3> list = {Event(1, 1, 1, 0), Event(1, 1, 1, 0),
                                              Event(1, 1, 1, 4)};
  counter.Update(list);
  EXPECT_EQ(Count(counter.counts(), 1, DcmiFaultChange::kRaised), 2u);
}

TEST(DcmiFaultCounter, NonsenseIsCountedApart) {
  DcmiFaultCounter counter;
  counter.Update({});
  const std::array<abi::DcmiEvent, 2> list = {Event(1, 200, 77), Event(2, 1, 0)};
  counter.Update(list);
  EXPECT_EQ(Count(counter.counts(), 4, DcmiFaultChange::kRaised), 1u);
  EXPECT_EQ(Count(counter.counts(), 1, DcmiFaultChange::kRaised), 0u);  // says itself it is over
}

TEST(DcmiFaultCounter, CodesAloneHaveNoSeverity) {
  DcmiFaultCounter counter;
  const std::array<unsigned, 1> old = {1};
  counter.SetCodes(old);
  counter.Update({});
  EXPECT_EQ(counter.counts(), DcmiFaultEventCounts{});  // was there before us
  const std::array<unsigned, 2> more = {1, 2};
  counter.SetCodes(more);
  counter.UpdateWithoutList();
  counter.Update({});  // codes were not read
  EXPECT_EQ(Count(counter.counts(), 4, DcmiFaultChange::kRaised), 1u);
  EXPECT_EQ(Count(counter.counts(), 4, DcmiFaultChange::kRecovered), 0u);
  counter.SetCodes({});
  counter.Update({});
  EXPECT_EQ(Count(counter.counts(), 4, DcmiFaultChange::kRecovered), 2u);
}

TEST(DcmiFaultCounter, AFaultOfBothListsCountsOnce) {
  DcmiFaultCounter counter;
  counter.SetCodes({});
  counter.Update({});
  const std::array<unsigned, 1> code = {7};
  const std::array<abi::DcmiEvent, 1> list = {Event(7, 3, 1)};
  counter.SetCodes({});  // it begins between the lists
  counter.Update(list);
  counter.SetCodes(code);
  counter.Update(list);
  EXPECT_EQ(Count(counter.counts(), 3, DcmiFaultChange::kRaised), 1u);
  counter.SetCodes(code);  // and ends between them
  counter.Update({});
  EXPECT_EQ(Count(counter.counts(), 3, DcmiFaultChange::kRecovered), 0u);
  counter.SetCodes({});
  counter.Update({});
  EXPECT_EQ(Count(counter.counts(), 3, DcmiFaultChange::kRecovered), 1u);
  EXPECT_EQ(counter.counts()[4], DcmiFaultEventCounts{}[4]);
}

TEST(DcmiFaultCounter, ACodeThatGetsASeverityIsNoNewFault) {
  DcmiFaultCounter counter;
  const std::array<unsigned, 1> code = {7};
  const std::array<abi::DcmiEvent, 1> list = {Event(7, 3, 1)};
  counter.SetCodes(code);
  counter.Update({});
  counter.SetCodes(code);
  counter.Update(list);
  EXPECT_EQ(counter.counts(), DcmiFaultEventCounts{});
}

TEST_F(DcmiLinkQueriesTest, FaultEventsAreCountedByTheService) {
  StartV1();
  (void)service->CurrentFaults(device());
  fake->devices[0].faults = {Event(0x80E18005, 2, 1).event};
  (void)service->CurrentFaults(device());
  fake->codes["current_faults"] = abi::kDcmiDeviceMissing;
  fake->devices[0].faults.clear();
  (void)service->CurrentFaults(device());  // knows nothing
  EXPECT_EQ(Count(service->FaultEvents(device()), 2, DcmiFaultChange::kRaised), 1u);
  EXPECT_EQ(Count(service->FaultEvents(device()), 2, DcmiFaultChange::kRecovered), 0u);
  fake->codes.clear();
  (void)service->CurrentFaults(device());
  EXPECT_EQ(Count(service->FaultEvents(device()), 2, DcmiFaultChange::kRecovered), 1u);
  auto both = [&] {
    (void)service->ErrorCodes(device());
    (void)service->CurrentFaults(device());
  };
  both();
  fake->devices[0].error_codes = {0x81078603};
  both();
  EXPECT_EQ(Count(service->FaultEvents(device()), 4, DcmiFaultChange::kRaised), 1u);
}

}  // namespace
}  // namespace profd
