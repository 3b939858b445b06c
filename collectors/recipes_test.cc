// A toy collector of each kind, of nothing but what CONTRIBUTING.md lists: an entry and its metric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectors/channel_decoder.h"
#include "collectors/channel_plan.h"
#include "collectors/metric_table.h"
#include "collectors/proc/testing/host_fixture.h"
#include "collectors/testing/channel_fixture.h"

namespace profd {
namespace {

using testing::Bytes;
using testing::DecoderRig;
using testing::FakeHost;
using testing::MakeDevice;
using testing::PolledRig;
using testing::ProbeWith;

// ---- a host collector: one number of /proc/toy ----

constexpr CollectorSpec kHostSpec = {
    .name = "toy_host",
    .source = CollectorSource::kHost,
    .summary = "a number of the host",
    .default_hz = 1,
    .max_hz = 10,
    .always_on_hz = 1,
};

class ToyHost final : public PolledCollector {
 public:
  ToyHost(const Host& host, SeriesRegistry& registry) : host_(host), all_(registry) {
    series_ = all_.Add(MetricByName("atlas_host_pressure_waiting_seconds_total"), -1, {"toy"});
  }
  Status Poll(const Tick& tick, PollOutput& out) override {
    Result<std::string> text = host_.proc.ReadFile("toy", 64);
    if (!text.ok()) return text.status();
    uint64_t value = 0;
    if (!ParseNumber(Trim(*text), &value)) return Internal("/proc/toy is not a number");
    out.samples.Emit(series_, tick.now_ns, static_cast<double>(value));
    return Status::Ok();
  }

 private:
  const Host& host_;
  SeriesSet all_;  // released with the collector
  SeriesId series_;
};

constexpr CollectorEntry kToyHost = {
    .spec = &kHostSpec,
    .probe_host = [](const Host& host) { return host.proc.ReadFile("toy", 64).status(); },
    .make_poller = MakePollerOf<ToyHost>,
};

TEST(Recipes, AHostCollectorIsAnEntry) {
  FakeHost fake;
  EXPECT_EQ(kToyHost.probe_host(fake.host()).code(), StatusCode::kNotFound);
  fake.proc.Write("toy", "42\n");
  EXPECT_TRUE(kToyHost.probe_host(fake.host()).ok());
  PolledRig rig(kToyHost, fake);
  EXPECT_TRUE(rig.PollAt(0).ok());
  EXPECT_EQ(rig.Samples(), "atlas_host_pressure_waiting_seconds_total{resource=\"toy\"} 42\n");
  fake.proc.Write("toy", "x\n");
  EXPECT_EQ(rig.PollAt(1000).code(), StatusCode::kInternal);
}

// ---- a channel collector: what would be its header in driver/records, and a decoder ----

struct ToyRecord {
  uint64_t timestamp;  // us since the start
  uint64_t centivolts;

  bool IsPlausible() const { return centivolts <= 1000; }
};

constexpr uint32_t kToyChannel = 8;

constexpr CollectorSpec kChannelSpec = {
    .name = "toy_channel",
    .source = CollectorSource::kChannel,
    .summary = "a voltage of the NPU",
    .default_hz = 50,
    .max_hz = 100,
};

class ToyDecoder final : public BinaryDecoder<ToyDecoder, ToyRecord> {
 public:
  ToyDecoder(const DeviceInfo& device, SeriesRegistry& registry) : all_(registry) {
    series_ = all_.Add(MetricByName("atlas_npu_voltage_volts"), device.id, {"toy"});
  }
  bool DecodeRecord(const ToyRecord& record, const TimeBase& time, SampleBatch& out) {
    const auto timestamp = TimestampFromMicros(record.timestamp, time);
    if (!timestamp || !record.IsPlausible()) return false;
    out.Emit(series_, timestamp->host_ns, static_cast<double>(record.centivolts) / 100);
    return true;
  }
  void Reset() override {}

 private:
  SeriesSet all_;
  SeriesId series_;
};

constexpr CollectorEntry kToyEntry = {
    .spec = &kChannelSpec,
    .probe_device = ProbeChannel<kToyChannel>,
    .plan = PlanPeriodic<kToyChannel>,
    .make_decoder = MakeDecoderOf<ToyDecoder>,
};

TEST(Recipes, AChannelCollectorIsAnEntry) {
  EXPECT_TRUE(ProbeWith(kToyEntry, 5, {kToyChannel}).ok());
  EXPECT_EQ(ProbeWith(kToyEntry, 5, {1}).code(), StatusCode::kUnimplemented);
  const std::vector<ChannelRequest> plan = kToyEntry.plan(MakeDevice(5), {.hz = 50});
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0].channel, kToyChannel);
  EXPECT_EQ(plan[0].sample_period_ms, 20u);
  DecoderRig rig(kToyEntry, MakeDevice(5), kToyChannel);
  // The channel was started 100 ms after host ns 5e12.
  EXPECT_EQ(rig.Feed(Bytes(uint64_t{20'000}, uint64_t{81})),
            "atlas_npu_voltage_volts{npu=\"0\",rail=\"toy\"} 5000120000000 0.81\n");
  EXPECT_EQ(rig.Feed(Bytes(uint64_t{40'000}, uint64_t{1001})), "");
  EXPECT_EQ(rig.decoder().records(), 2u);
  EXPECT_EQ(rig.decoder().bad_records(), 1u);
}

}  // namespace
}  // namespace profd
