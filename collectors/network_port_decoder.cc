#include "collectors/network_port_decoder.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "collectors/channel_decoder.h"
#include "collectors/metric_table.h"
#include "driver/abi/hal_abi.h"

namespace profd {
namespace {

// Columns: 0 timestamp, 1 bandwidth (Mbit/s), then six of rx and six of tx, [14] port, [15] type id.
constexpr size_t kMinTokens = 14;
constexpr size_t kMaxTokens = 16;
constexpr size_t kPortColumn = 14;
constexpr size_t kFirstRx = 2;
constexpr size_t kFirstTx = 8;
constexpr std::array<std::string_view, 2> kDirections = {"rx", "tx"};

// One direction of a line, in the order of its columns.
struct Traffic {
  double packet_rate = 0;
  double byte_rate = 0;
  uint64_t packets = 0;
  uint64_t bytes = 0;
  uint64_t errors = 0;
  uint64_t dropped = 0;
};

bool ReadTraffic(const LineTokens& tokens, size_t first, Traffic* out) {
  return tokens.Get(first, &out->packet_rate) && tokens.Get(first + 1, &out->byte_rate) &&
         tokens.Get(first + 2, &out->packets) && tokens.Get(first + 3, &out->bytes) &&
         tokens.Get(first + 4, &out->errors) && tokens.Get(first + 5, &out->dropped);
}

struct DirectionSeries {
  SeriesId packet_rate = kNoSeries;
  SeriesId byte_rate = kNoSeries;
  SeriesId utilization = kNoSeries;
  SeriesId packets = kNoSeries;
  SeriesId bytes = kNoSeries;
  SeriesId errors = kNoSeries;
  SeriesId dropped = kNoSeries;
};

struct Port {
  SeriesId speed = kNoSeries;
  std::array<DirectionSeries, 2> directions;
  std::array<Traffic, 2> last;
  IntervalTimer timer;  // refuses repeated timestamps
};

class NetworkPortDecoder final : public TextDecoder<NetworkPortDecoder> {
 public:
  NetworkPortDecoder(std::string_view layer, int device, SeriesRegistry& registry)
      : TextDecoder("rxPacket/s"), layer_(layer), device_(device), series_(registry) {
    constexpr MetricId kBytes = MetricByName("atlas_npu_network_bytes_total");
    constexpr MetricId kPackets = MetricByName("atlas_npu_network_packets_total");
    for (size_t i = 0; i < kDirections.size(); ++i) {
      total_bytes_[i] = series_.Add(kBytes, device, {kDirections[i], layer});
      total_packets_[i] = series_.Add(kPackets, device, {kDirections[i], layer});
    }
  }

  bool DecodeLine(const LineTokens& tokens, const TimeBase& time, SampleBatch& out) {
    if (tokens.size() < kMinTokens || tokens.size() > kMaxTokens) return false;
    double megabits = 0;
    std::array<Traffic, 2> traffic;
    uint64_t port_id = 0;  // absent: port 0
    if (!tokens.Get(1, &megabits) || !ReadTraffic(tokens, kFirstRx, &traffic[0]) ||
        !ReadTraffic(tokens, kFirstTx, &traffic[1])) {
      return false;
    }
    if (tokens.size() > kPortColumn && !tokens.Get(kPortColumn, &port_id)) return false;
    std::optional<Timestamp> timestamp = tokens.GetTimestamp(0, time);
    if (!timestamp) return false;
    Port* port = ports_.FindOrAdd(port_id, [&] { return MakePort(port_id); });
    double seconds = 0;
    if (port == nullptr || port->timer.Next(*timestamp, &seconds) == IntervalTimer::Step::kNotLater) {
      return false;
    }
    if (instant_.Begin(timestamp->source_ns)) EmitTotals(instant_host_ns_, out);
    instant_host_ns_ = timestamp->host_ns;
    port->last = traffic;
    EmitPort(*port, megabits, timestamp->host_ns, out);
    if (instant_.Add()) EmitTotals(timestamp->host_ns, out);
    return true;
  }

  void Reset() override {
    for (Port& port : ports_.states()) port.timer.Reset();
    instant_.Reset();
  }

 private:
  Port MakePort(uint64_t id) {
    auto metric = [](size_t i) {
      constexpr std::array kIds = {
          MetricByName("atlas_npu_network_port_packets_per_second"),
          MetricByName("atlas_npu_network_port_bandwidth_bytes_per_second"),
          MetricByName("atlas_npu_network_port_utilization_ratio"),
          MetricByName("atlas_npu_network_port_packets_total"),
          MetricByName("atlas_npu_network_port_bytes_total"),
          MetricByName("atlas_npu_network_port_errors_total"),
          MetricByName("atlas_npu_network_port_dropped_total"),
      };
      return kIds[i];
    };
    const std::string label = std::to_string(id);
    Port port;
    port.speed = series_.Add(MetricByName("atlas_npu_network_port_speed_bytes_per_second"), device_,
                             {layer_, label});
    for (size_t i = 0; i < kDirections.size(); ++i) {
      auto add = [&](size_t m) {
        return series_.Add(metric(m), device_, {layer_, label, kDirections[i]});
      };
      port.directions[i] = {add(0), add(1), add(2), add(3), add(4), add(5), add(6)};
    }
    return port;
  }

  static void EmitPort(const Port& port, double megabits, int64_t host_ns, SampleBatch& out) {
    out.Emit(port.speed, host_ns, megabits * 1e6 / 8);
    for (size_t i = 0; i < kDirections.size(); ++i) {
      const DirectionSeries& series = port.directions[i];
      const Traffic& traffic = port.last[i];
      out.Emit(series.packet_rate, host_ns, traffic.packet_rate);
      out.Emit(series.byte_rate, host_ns, traffic.byte_rate);
      if (megabits > 0) {
        // 2^20: as the vendor's analyser does, so that both show the same share.
        out.Emit(series.utilization, host_ns, traffic.byte_rate * 8 / (megabits * kMebi));
      }
      out.Emit(series.packets, host_ns, static_cast<double>(traffic.packets));
      out.Emit(series.bytes, host_ns, static_cast<double>(traffic.bytes));
      out.Emit(series.errors, host_ns, static_cast<double>(traffic.errors));
      out.Emit(series.dropped, host_ns, static_cast<double>(traffic.dropped));
    }
  }

  // Sums of the last counters of every port, so that a port that missed an instant does not make a
  // total go down.
  void EmitTotals(int64_t host_ns, SampleBatch& out) {
    for (size_t i = 0; i < kDirections.size(); ++i) {
      double bytes = 0;
      double packets = 0;
      for (const Port& port : ports_.states()) {
        bytes += static_cast<double>(port.last[i].bytes);
        packets += static_cast<double>(port.last[i].packets);
      }
      out.Emit(total_bytes_[i], host_ns, bytes);
      out.Emit(total_packets_[i], host_ns, packets);
    }
  }

  std::string_view layer_;
  int device_;
  SeriesSet series_;
  IdTable<Port> ports_;
  InstantGroup instant_;
  int64_t instant_host_ns_ = 0;
  std::array<SeriesId, 2> total_bytes_;
  std::array<SeriesId, 2> total_packets_;
};

}  // namespace

std::unique_ptr<ChannelDecoder> MakeNetworkPortDecoder(const DeviceInfo& device, uint32_t channel,
                                                       SeriesRegistry& registry) {
  return std::make_unique<NetworkPortDecoder>(channel == abi::kChannelRoce ? "roce" : "nic", device.id, registry);
}

}  // namespace profd
