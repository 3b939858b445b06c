// Start, and what becomes of cards that do not answer it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "driver/testing/dcmi_service_fixture.h"
#include "driver/testing/no_threads.h"

namespace profd {
namespace {

using ::testing::HasSubstr;

TEST_F(DcmiServiceTest, FindsNpusAndLeavesOutTheirMcus) {
  fake.emplace(2);
  fake->devices[1].physical_id = 5;
  StartOver(fake->V1());
  EXPECT_EQ(service->api_name(), "v1");
  EXPECT_EQ(service->dcmi_version(), "24.1.0");
  EXPECT_EQ(service->driver_version(), "24.1.rc3");
  ASSERT_EQ(service->devices().size(), 2u);
  const DcmiDevice& d = device(1);
  EXPECT_EQ(d.index, 1);
  EXPECT_EQ(d.card, 1);
  EXPECT_EQ(d.logical_id, 1);
  EXPECT_EQ(d.physical_id, 5);
  EXPECT_EQ(d.uuid, "0A1B2C3D-00000011-00000022-00000033-00000001");
  EXPECT_EQ(d.chip_type + d.chip_name, "Ascend910B3");
  EXPECT_EQ(d.aicore_count, 20u);
  EXPECT_EQ(d.pci_bus_id, "0000:c2:00.0");
  EXPECT_EQ(d.board_id, "0x34");
  EXPECT_EQ(d.model, "Atlas 800T A2");
  EXPECT_EQ(d.serial, "SN0042");
  EXPECT_EQ(service->FindByLogicalId(1), &d);
  EXPECT_EQ(service->FindByLogicalId(7), nullptr);
}

// The labels of an NPU's metrics are read once; a driver that is busy at that moment must not cost them.
TEST_F(DcmiServiceTest, AnErrorThatPassesCostsNoIdentity) {
  fake.emplace(1);
  DcmiLibrary library = fake->V1();
  static int calls = 0;
  static DcmiLibrary real;
  calls = 0;
  real = library;
  library.functions.die.v1 = [](int card, int chip, int type, abi::DcmiDieId* out) {
    return ++calls <= 2 ? abi::kDcmiNotReady : real.functions.die.v1(card, chip, type, out);
  };
  StartOver(std::move(library));
  EXPECT_EQ(device(0).uuid, "0A1B2C3D-00000011-00000022-00000033-00000000");
  EXPECT_EQ(calls, 3);
}

TEST_F(DcmiServiceTest, AnErrorThatPassesCostsNoPhysicalId) {
  for (const bool v2 : {false, true}) {
    SCOPED_TRACE(v2);
    fake.emplace(1);
    DcmiLibrary library = v2 ? fake->V2() : fake->V1();
    static int calls = 0;
    calls = 0;
    (v2 ? library.functions.v2_chip_phy_id : library.functions.phyid_from_logicid) = [](unsigned, unsigned* physical_id) {
      *physical_id = 6;
      return ++calls <= 2 ? abi::kDcmiNotReady : abi::kDcmiOk;
    };
    StartOver(std::move(library));
    EXPECT_EQ(device(0).physical_id, 6);
  }
}

TEST_F(DcmiServiceTest, AnErrorThatStaysEndsTheQuestions) {
  fake.emplace(1);
  fake->codes["board_info"] = abi::kDcmiTimeout;
  StartOver(fake->V1());
  EXPECT_EQ(device(0).board_id, "");
  EXPECT_EQ(service->Statistics()[static_cast<size_t>(DcmiCall::kBoardInfo)].calls, 3u);
}

TEST_F(DcmiServiceTest, FallsBackToTheSecondGeneration) {
  fake.emplace(1);
  StartOver(fake->V2());
  EXPECT_EQ(service->api_name(), "v2");
  EXPECT_EQ(device(0).uuid, "00000001-00000002-00000003-00000004-00000005");  // DDIE
  EXPECT_EQ(device(0).board_id, "0x61");
  EXPECT_EQ(service->Ask(device(0), dcmi::kPower).value, 3105);
  EXPECT_EQ(service->Ask(device(0), dcmi::kTemperature).code, kDcmiSymbolMissing);
}

// -1 would be the host.
TEST_F(DcmiServiceTest, LeavesOutNumbersWithoutADevice) {
  fake.emplace(2);
  DcmiLibrary library = fake->V2();
  library.functions.v2_device_list = [](int* ids, int* count, int) {
    for (int id : {1, -1, 0, 1}) ids[(*count)++] = id;
    return 0;
  };
  library.functions.v2_chip_phy_id = [](unsigned, unsigned* physical_id) {
    *physical_id = 0xFFFFFFFF;
    return 0;
  };
  StartOver(std::move(library));
  ASSERT_EQ(service->devices().size(), 2U);
  for (int id : {0, 1}) {
    EXPECT_EQ(device(static_cast<size_t>(id)).logical_id, id);
    EXPECT_EQ(device(static_cast<size_t>(id)).physical_id, id);
  }
}

TEST_F(DcmiServiceTest, StartCanBeTriedAgain) {
  fake.emplace(1);
  fake->codes["init"] = abi::kDcmiInternal;
  service.emplace(fake->V1(), clock);
  Status status = service->Start();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("dcmi_init"));
  EXPECT_TRUE(service->devices().empty());
  fake->codes["init"] = abi::kDcmiNotSupported;
  EXPECT_FALSE(service->Start().ok());
  fake->codes.clear();
  EXPECT_TRUE(service->Start().ok());
  EXPECT_EQ(service->devices().size(), 1u);
}

// While the driver is being reset the first generation is not ready, and the second is none of this chip's.
TEST_F(DcmiServiceTest, IsTriedAgainThoughTheOtherGenerationIsNotSupported) {
  fake.emplace(1);
  fake->codes["init"] = abi::kDcmiNotReady;
  DcmiLibrary library = fake->V1();
  library.functions.v2_init = [] { return abi::kDcmiNotSupported; };
  service.emplace(std::move(library), clock);
  Status status = service->Start();
  EXPECT_THAT(status.message(), HasSubstr("-8012"));
  EXPECT_TRUE(service->IsPending());
}

TEST_F(DcmiServiceTest, WhatNeverWillWorkIsNotPending) {
  fake.emplace(1);
  fake->codes["init"] = abi::kDcmiNotSupported;
  service.emplace(fake->V1(), clock);
  EXPECT_FALSE(service->Start().ok());
  EXPECT_FALSE(service->IsPending());
  EXPECT_FALSE(service->HasSilentCards());
}

TEST_F(DcmiServiceTest, OtherLibrariesHaveOtherNamesForChipAndBoard) {
  fake.emplace(1);
  DcmiLibrary old = fake->V1();
  old.functions.old_chip_info = old.functions.chip_info.v1;
  old.functions.chip_info.v1 = nullptr;
  StartOver(std::move(old));
  EXPECT_EQ(device(0).chip_name, "910B3");

  DcmiLibrary v2 = fake->V2();
  v2.functions.v2_board_id = nullptr;
  v2.functions.v2_board_info = [](int, abi::DcmiBoardInfo* out) {
    out->board_id = 0x62;
    return 0;
  };
  StartOver(std::move(v2));
  EXPECT_EQ(device(0).board_id, "0x62");
}

TEST_F(DcmiServiceTest, OnlyA310PIsAskedForItsProduct) {
  fake.emplace(1);
  DcmiLibrary library = fake->V1();
  library.functions.product_type = [](int, int, char* out, int size) {
    std::strncpy(out, "Atlas 300I Pro", static_cast<size_t>(size));
    return 0;
  };
  StartOver(library);
  EXPECT_EQ(device(0).product_type, "");
  EXPECT_EQ(service->Statistics()[static_cast<size_t>(DcmiCall::kProductType)].calls, 0u);

  library.functions.chip_info.v1 = [](int, int, abi::DcmiChipInfoV2* out) {
    std::memcpy(out->chip_name, "310P3", 6);
    return 0;
  };
  StartOver(library);
  EXPECT_EQ(device(0).product_type, "Atlas 300I Pro");
  EXPECT_EQ(device(0).model, "Atlas 800T A2");
}

// ---- cards that hang from the beginning ----

class SilentCardTest : public DcmiServiceTest {
 protected:
  static constexpr std::chrono::milliseconds kShort{50};
  static constexpr DcmiService::Options kQuick{.start = {kShort, kShort, kShort}};

  // Card 1 of three hangs in `call`.
  void StartWithout(const std::string& call) {
    fake.emplace(3);
    fake->Close("1:" + call);
    service.emplace(fake->V1(), clock, kQuick);
    ASSERT_TRUE(service->Start().ok());
    AwaitDevices(2);
  }
  // More may come, each by the thread that searches for it.
  void AwaitDevices(size_t count) {
    CheckWhile([&] { return service->devices().size() < count; });
    EXPECT_EQ(service->devices().size(), count);
  }
  void AwaitQuiet() {
    CheckWhile([&] { return service->HasCallInFlight(); });
  }
  void AwaitStart() {
    CheckWhile([&] { return service->IsPending(); });
  }
  void Check() { (void)service->CheckCards(clock.SteadyNs()); }
  void CheckWhile(const std::function<bool()>& is_so) {
    while (is_so()) {
      Check();
      std::this_thread::yield();
    }
  }
  // Cards come in the order in which their threads find them.
  const DcmiDevice& OfCard(int card) {
    for (const DcmiDevice& found : service->devices()) {
      if (found.card == card) return found;
    }
    ADD_FAILURE() << "card " << card;
    return device(0);
  }
};

TEST_F(SilentCardTest, CostsOnlyItselfAndIsFoundWhenItAnswers) {
  for (const char* call : {"device_num_in_card", "device_logic_id", "chip_info", "elabel"}) {
    SCOPED_TRACE(call);
    StartWithout(call);
    EXPECT_EQ(OfCard(0).serial, "SN0042");
    EXPECT_EQ(OfCard(2).serial, "SN0042");
    EXPECT_TRUE(service->HasSilentCards());
    EXPECT_TRUE(service->HasCallInFlight());
    EXPECT_EQ(service->SilenceOf(1, 5), "npu 5 does not answer DCMI calls; retried every 30 s");
    EXPECT_EQ(service->SilenceOf(0, 0), "");
    EXPECT_TRUE(service->HangsSilently(1));
    EXPECT_FALSE(service->HangsSilently(0));
    // Those that answer are asked as if nothing were.
    EXPECT_EQ(service->Ask(OfCard(2), dcmi::kTemperature).value, 45);
    EXPECT_FALSE(service->CheckStuck(clock.SteadyNs() + 60 * kNsPerSecond, kNsPerSecond));

    const DcmiDevice* first = &device(0);
    fake->Open();
    AwaitDevices(3);
    EXPECT_EQ(&device(0), first);
    EXPECT_EQ(device(2).card, 1);
    EXPECT_EQ(device(2).index, 2);
    EXPECT_EQ(device(2).serial, "SN0042");
    EXPECT_EQ(service->SilenceOf(1, 5), "");
    EXPECT_EQ(service->Ask(device(2), dcmi::kTemperature).value, 45);
    AwaitQuiet();
    EXPECT_FALSE(service->HasSilentCards());
  }
}

TEST_F(SilentCardTest, IsTriedAgainOnAnotherThreadAFewTimes) {
  StartWithout("device_num_in_card");
  auto asked = [&] { return fake->Asked("1:device_num_in_card"); };
  while (asked() < 1) std::this_thread::yield();
  clock.Advance(29 * kNsPerSecond);
  Check();
  EXPECT_EQ(asked(), 1);
  for (int tries = 2; tries <= 4; ++tries) {
    clock.Advance(30 * kNsPerSecond);
    Check();
    while (asked() < tries) std::this_thread::yield();
  }
  EXPECT_THAT(service->SilenceOf(1, 1), HasSubstr("4 of them have not returned"));
  clock.Advance(30 * kNsPerSecond);
  Check();
  fake->Open();
  AwaitDevices(3);
  AwaitQuiet();
  EXPECT_EQ(asked(), 4);
  EXPECT_EQ(service->devices().size(), 3u);  // what all four found is one NPU
}

TEST_F(SilentCardTest, StartIsTriedAgainEveryTenSeconds) {
  fake.emplace(2);
  fake->SetCode("init", abi::kDcmiInternal);
  service.emplace(fake->V1(), clock, kQuick);
  ASSERT_FALSE(service->Start().ok());
  EXPECT_TRUE(service->IsPending());
  EXPECT_TRUE(service->HasSilentCards());
  EXPECT_EQ(service->SilenceOf(0, 0), "dcmi_init: internal error of the driver (-8005); tried again every 10 s");
  EXPECT_FALSE(service->HangsSilently(0));
  clock.Advance(9 * kNsPerSecond);
  Check();
  EXPECT_EQ(fake->Asked("init"), 1);
  clock.Advance(kNsPerSecond);
  Check();
  while (fake->Asked("init") < 2) std::this_thread::yield();
  fake->SetCode("init", abi::kDcmiOk);
  clock.Advance(10 * kNsPerSecond);
  while (service->IsPending()) {
    Check();
    clock.Advance(kNsPerSecond);
    std::this_thread::yield();
  }
  AwaitDevices(2);
  AwaitQuiet();
  EXPECT_FALSE(service->HasSilentCards());
  EXPECT_EQ(service->SilenceOf(0, 0), "");
  EXPECT_EQ(service->api(), DcmiApi::kV1);
  EXPECT_FALSE(service->dcmi_version().empty());
}

TEST_F(SilentCardTest, WithoutAThreadStartIsTriedAgain) {
  fake.emplace(2);
  service.emplace(fake->V1(), clock, kQuick);
  {
    const testing::NoThreads none;
    EXPECT_EQ(service->Start().code(), StatusCode::kUnavailable);
  }
  EXPECT_TRUE(service->IsPending());
  EXPECT_EQ(service->SilenceOf(0, 0), "dcmi_init: the system has no thread for it; tried again every 10 s");
  clock.Advance(9 * kNsPerSecond);
  Check();
  EXPECT_EQ(fake->Asked("init"), 0);
  clock.Advance(kNsPerSecond);
  AwaitStart();
  EXPECT_EQ(fake->Asked("init"), 1);
  AwaitDevices(2);
  AwaitQuiet();
}

// More often than a card may hang.
TEST_F(SilentCardTest, ACardWithoutAThreadIsTriedAgain) {
  fake.emplace(2);
  service.emplace(fake->V1(), clock, DcmiService::Options{.start = kQuick.start, .init_patience = kShort});
  fake->Close("-1:card_list");
  EXPECT_FALSE(service->Start().ok());
  fake->AwaitHanging();
  {
    const testing::NoThreads none;
    fake->Open();
    AwaitStart();
    for (int tries = 0; tries < 6; ++tries) {
      clock.Advance(30 * kNsPerSecond);
      EXPECT_TRUE(service->CheckCards(clock.SteadyNs()).empty());
    }
    EXPECT_FALSE(service->HangsSilently(0));
  }
  clock.Advance(30 * kNsPerSecond);
  AwaitDevices(2);
  AwaitQuiet();
}

TEST_F(SilentCardTest, AStartThatHangsGoesOnWhenItsCallReturns) {
  struct Case {
    const char* call;
    const char* function;
  };
  for (const Case& one : {Case{"init", "dcmi_init"}, Case{"card_list", "dcmi_get_card_list"},
                          Case{"dcmi_version", "dcmi_get_dcmi_version"}}) {
    SCOPED_TRACE(one.function);
    fake.emplace(2);
    fake->Close(std::string("-1:") + one.call);
    service.emplace(fake->V1(), clock, DcmiService::Options{.start = kQuick.start, .init_patience = kShort});
    EXPECT_EQ(service->Start().code(), StatusCode::kUnavailable);
    fake->AwaitHanging();
    EXPECT_TRUE(service->IsPending());
    EXPECT_TRUE(service->HasSilentCards());
    EXPECT_TRUE(service->HasCallInFlight());
    EXPECT_TRUE(service->IsAwaited(0));
    EXPECT_FALSE(service->HangsSilently(0));
    for (int i = 0; i < 4; ++i) {
      clock.Advance(10 * kNsPerSecond);
      EXPECT_TRUE(service->CheckCards(clock.SteadyNs()).empty());
    }
    EXPECT_EQ(service->SilenceOf(0, 0),
              std::string(one.function) + " has not returned for 40 s; profd uses libdcmi when it does");
    // The thread that asks questions has not hung: it is not given up.
    EXPECT_FALSE(service->CheckStuck(clock.SteadyNs(), 5 * kNsPerSecond));

    fake->Open();
    AwaitDevices(2);
    AwaitQuiet();
    EXPECT_FALSE(service->IsPending());
    EXPECT_FALSE(service->HasSilentCards());
    EXPECT_EQ(service->SilenceOf(0, 0), "");
    EXPECT_EQ(service->api(), DcmiApi::kV1);
    EXPECT_EQ(service->dcmi_version(), "24.1.0");
    EXPECT_EQ(fake->Asked("init"), 1) << "no other thread beside the one that hung";
    EXPECT_EQ(service->Ask(device(1), dcmi::kTemperature).value, 45);
  }
}

// Nothing is known of the NPUs of a library that has only just begun to answer.
TEST_F(SilentCardTest, CardsThatAreListedLateAreNotSilentAtOnce) {
  fake.emplace(2);
  fake->SetCode("init", abi::kDcmiInternal);
  service.emplace(fake->V1(), clock, kQuick);
  ASSERT_FALSE(service->Start().ok());
  EXPECT_TRUE(service->IsAwaited(0));
  fake->Close("0:device_num_in_card", "1:device_num_in_card");
  fake->SetCode("init", abi::kDcmiOk);
  clock.Advance(10 * kNsPerSecond);
  AwaitStart();
  EXPECT_TRUE(service->IsAwaited(0));
  EXPECT_FALSE(service->HangsSilently(0));
  EXPECT_EQ(service->SilenceOf(0, 5), "npu 5 has not answered DCMI calls yet");
  clock.Advance(kNsPerSecond);
  EXPECT_FALSE(service->IsAwaited(0));
  EXPECT_TRUE(service->HangsSilently(0));
  EXPECT_EQ(service->SilenceOf(0, 5), "npu 5 does not answer DCMI calls; retried every 30 s");
  fake->Open();
  AwaitDevices(2);
  AwaitQuiet();
  EXPECT_FALSE(service->IsAwaited(0));
}

TEST_F(SilentCardTest, OneThatIsGoneIsLookedForAgainAndHidesNoOther) {
  fake.emplace(3);
  fake->SetCode("1:device_logic_id", abi::kDcmiDeviceMissing);
  service.emplace(fake->V1(), clock, kQuick);
  ASSERT_TRUE(service->Start().ok());
  AwaitDevices(2);
  EXPECT_EQ(OfCard(2).card, 2);
  AwaitQuiet();
  EXPECT_TRUE(service->HasSilentCards());
  EXPECT_EQ(service->SilenceOf(1, 1), "npu 1 does not answer DCMI calls; retried every 30 s");
  EXPECT_FALSE(service->HangsSilently(1));
  fake->SetCode("1:device_logic_id", abi::kDcmiOk);
  clock.Advance(30 * kNsPerSecond);
  AwaitDevices(3);
  EXPECT_EQ(device(2).card, 1);
  EXPECT_FALSE(service->HasSilentCards());
}

// The vendor's library may let one caller in at a time.
TEST_F(SilentCardTest, CallsOfAProcessMayWaitForEachOther) {
  fake.emplace(2);
  fake->Close("0:device_num_in_card", "1:device_num_in_card");
  service.emplace(fake->V1(), clock, kQuick);
  ASSERT_TRUE(service->Start().ok());
  EXPECT_TRUE(service->devices().empty());
  EXPECT_THAT(service->SilenceOf(0, 0), HasSubstr("npu 0 does not answer"));
  EXPECT_THAT(service->SilenceOf(1, 1), HasSubstr("npu 1 does not answer"));
  fake->Open();
  AwaitDevices(2);
  AwaitQuiet();
}

}  // namespace
}  // namespace profd
