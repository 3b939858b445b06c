#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectors/collector_list.h"
#include "collectors/proc/testing/host_fixture.h"

namespace profd {
namespace {

using testing::FakeHost;
using ::testing::HasSubstr;
using testing::PolledRig;

void WritePressure(FakeHost& fake) {
  fake.proc.Write("pressure/cpu",
                  "some avg10=1.53 avg60=1.87 avg300=1.73 total=1500000\n"
                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  fake.proc.Write("pressure/memory",
                  "some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n"
                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=125000\n");
  fake.proc.Write("pressure/io",
                  "some avg10=0.00 avg60=0.00 avg300=0.00 total=4000001\n"
                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=3\n");
}

TEST(HostPressure, GivesTheTotals) {
  FakeHost fake;
  WritePressure(fake);
  PolledRig rig(kHostPressureCollector, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.registry.Print(rig.batch),
            "atlas_host_pressure_waiting_seconds_total{resource=\"cpu\"} 1000000000 1.5\n"
            "atlas_host_pressure_waiting_seconds_total{resource=\"memory\"} 1000000000 0.25\n"
            "atlas_host_pressure_stalled_seconds_total{resource=\"memory\"} 1000000000 0.125\n"
            "atlas_host_pressure_waiting_seconds_total{resource=\"io\"} 1000000000 4.000001\n"
            "atlas_host_pressure_stalled_seconds_total{resource=\"io\"} 1000000000 3e-06\n");
  EXPECT_TRUE(rig.sink.files.empty());
}

TEST(HostPressure, OneUnreadableResourceDoesNotHideTheOthers) {
  FakeHost fake;
  WritePressure(fake);
  fake.proc.Remove("pressure/cpu");
  fake.proc.Write("pressure/memory", "some total=x\n\xff\xfe some total=1\nsome\n");
  PolledRig rig(kHostPressureCollector, fake);
  EXPECT_EQ(rig.PollAt(0).code(), StatusCode::kNotFound);
  EXPECT_EQ(rig.batch.samples().size(), 2u);
  fake.proc.Write("pressure/cpu", "some total=1000000\n");
  Status status = rig.PollAt(1000);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("pressure/memory"));
  EXPECT_EQ(rig.batch.samples().size(), 3u);
}

TEST(HostPressure, ProbeReportsWhyNot) {
  FakeHost fake;
  Status status = kHostPressureCollector.probe_host(fake.host());
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(status.message(), HasSubstr("/proc/pressure/cpu"));
  WritePressure(fake);
  EXPECT_TRUE(kHostPressureCollector.probe_host(fake.host()).ok());
}

TEST(HostPressure, ReleasesItsSeriesAndAllocatesNothingPerPoll) {
  FakeHost fake;
  WritePressure(fake);
  PolledRig rig(kHostPressureCollector, fake);
  EXPECT_EQ(rig.AllocationsOf(100), 0u);
  EXPECT_EQ(rig.registry.live(), 5u);
  rig.collector.reset();
  EXPECT_EQ(rig.registry.live(), 0u);
}

}  // namespace
}  // namespace profd
