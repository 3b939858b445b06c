// What the tests of planning share: a node of four devices, a request, and what becomes of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/channel_options.h"
#include "daemon/session/session_plan.h"
#include "daemon/session/testing/fake_node.h"
#include "profd/v1/profd.pb.h"

namespace profd {

class SessionPlanTest : public ::testing::Test {
 protected:
  SessionPlanTest() {
    for (int id = 0; id < 4; ++id) devices_.push_back(Device(id, 5));
    peer_.uid = 1000;
    processes_.alive = {{10, {1000, 0}}, {20, {2000, 0}}};
  }

  // As the vendor's own simulator lists the channels of 910 (1) and 910B (5): driver-abi 2.4.
  static DeviceInfo Device(int id, int chip_id) {
    DeviceInfo device;
    device.id = device.physical_id = id;
    device.chip_id = chip_id;
    device.chip_name = chip_id == 1 ? "Ascend910" : "Ascend910B";
    auto add = [&device](uint32_t first, uint32_t last) {
      for (uint32_t channel = first; channel <= last; ++channel) device.channels.push_back(channel);
    };
    add(1, 1), add(3, 4), add(6, 6), add(8, 10);
    if (chip_id == 1) add(7, 7), add(43, 47), add(129, 131);
    if (chip_id == 5) add(11, 42), add(44, 44), add(47, 47), add(50, 50), add(52, 84), add(86, 98);
    if (chip_id == 5) add(129, 142);
    return device;
  }

  Result<SessionPlan> Plan() const {
    PlanContext context{config_,
                        devices_,
                        Collectors(),
                        peer_,
                        processes_,
                        node_devices_,
                        [](const CollectorEntry& entry, const DeviceInfo* device) {
                          if (device == nullptr) return Status::Ok();
                          ChannelOptions everything;
                          SetEverything(*entry.spec, 1, &everything);
                          return entry.plan(*device, everything).empty()
                                     ? Unimplemented("no channel")
                                     : Status::Ok();
                        },
                        free_bytes_,
                        kNoDevices,
                        false,
                        attached_,
                        maybe_devices_};
    return PlanSession(request_, context);
  }
  std::string Problems() const {
    Result<SessionPlan> plan = Plan();
    EXPECT_FALSE(plan.ok());
    return plan.status().ToString();
  }
  static std::vector<std::string> Named(const SessionPlan& plan) {
    std::vector<std::string> names;
    for (const PlannedCollector& planned : plan.collectors) {
      if (planned.named) names.emplace_back(Collectors()[planned.index].spec->name);
    }
    return names;
  }
  static const PlannedCollector& Of(const SessionPlan& plan, std::string_view name) {
    return *std::find_if(plan.collectors.begin(), plan.collectors.end(),
                         [name](const PlannedCollector& planned) {
                           return Collectors()[planned.index].spec->name == name;
                         });
  }

  static const options::Effective& Option(const SessionPlan& plan, std::string_view key) {
    return *std::ranges::find(plan.options, key, &options::Effective::key);
  }

  DaemonConfig config_;
  std::vector<DeviceInfo> devices_;
  std::vector<DeviceInfo> maybe_devices_;
  Peer peer_;
  testing::FakeProcesses processes_;
  testing::FakeDevices node_devices_;
  uint64_t free_bytes_ = 0;
  bool attached_ = false;
  v1::SessionSpec request_;
};

}  // namespace profd
