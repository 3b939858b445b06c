// A service over the fake library.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "driver/dcmi_service.h"
#include "driver/testing/fake_dcmi.h"

namespace profd {

class DcmiServiceTest : public ::testing::Test {
 protected:
  DcmiService& Start(int cards = 2) {
    fake.emplace(cards);
    return StartOver(fake->V1());
  }
  // A service over `library`.
  DcmiService& StartOver(DcmiLibrary library) {
    service.emplace(std::move(library), clock);
    EXPECT_TRUE(service->Start().ok());
    return *service;
  }
  const DcmiDevice& device(size_t i) { return service->devices()[i]; }

  ManualClock clock;
  std::optional<testing::FakeDcmi> fake;
  std::optional<DcmiService> service;
};

}  // namespace profd
