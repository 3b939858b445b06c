#include <array>

#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

// Lines of nic.data and roce.data (dump-format 2.3): timestamp, 13 numbers, then port and type if there
// are any.
class NetworkDecoder final : public LineDecoder {
 public:
  using LineDecoder::LineDecoder;

  bool IsLine(std::string_view line) const override {
    Sample sample;
    return IsHeading(line) || Scan(line, &sample);
  }

 private:
  // Of one direction, in the order of the line.
  struct Counters {
    double packet_rate, byte_rate, packets, bytes, errors, dropped;
    bool Scan(TextScan* scan) {
      return scan->Real(&packet_rate) && scan->Real(&byte_rate) && scan->Real(&packets) &&
             scan->Real(&bytes) && scan->Real(&errors) && scan->Real(&dropped);
    }
  };

  struct Sample {
    int64_t ns = 0;
    double bandwidth = 0;
    int64_t port = 0;
    int64_t type = 0;
    Counters rx;
    Counters tx;
  };

  static bool IsHeading(std::string_view line) { return IsHeadingWith("rxPacket/s", line); }
  static bool Scan(std::string_view line, Sample* sample) {
    TextScan scan(line);
    return scan.SecondsAndNs(&sample->ns) && scan.Real(&sample->bandwidth) && sample->rx.Scan(&scan) &&
           sample->tx.Scan(&scan) && (scan.AtEnd() || scan.Int(&sample->port)) &&
           (scan.AtEnd() || scan.Int(&sample->type)) && scan.AtEnd() &&
           sample->bandwidth >= 0 && sample->bandwidth < 9e15;
  }

  bool Line(std::string_view line) override {
    Sample sample;
    if (!Scan(line, &sample)) return IsHeading(line);
    ++stats_.records;
    std::array<uint64_t, 20> cells;
    auto mbps = static_cast<int64_t>(sample.bandwidth);
    cells[0] = BatchBuilder::ToCell(sample.port);
    cells[1] = BatchBuilder::ToCell(mbps);
    Fill(sample.rx, cells.data() + 2);
    Fill(sample.tx, cells.data() + 10);
    cells[18] = BatchBuilder::ToCell(Utilization(sample.rx, mbps));
    cells[19] = BatchBuilder::ToCell(Utilization(sample.tx, mbps));
    rows_.AddCells(clock_.DeviceNs(sample.ns), cells);
    return true;
  }

  // A ratio to nothing is 0, and so is the utilization of a port without bandwidth.
  static double Utilization(const Counters& counters, int64_t mbps) {
    double bandwidth = static_cast<double>(mbps) * 1024.0 * 1024.0;
    return bandwidth > 0 ? std::trunc(counters.byte_rate) * 8 / bandwidth : 0.0;
  }
  static void Fill(const Counters& counters, uint64_t* out) {
    double per_packet = counters.packets;
    const std::array<double, 8> values = {
        counters.packet_rate,
        counters.byte_rate,
        counters.packets,
        counters.bytes,
        counters.errors,
        counters.dropped,
        per_packet != 0 ? counters.errors / per_packet : 0.0,
        per_packet != 0 ? counters.dropped / per_packet : 0.0,
    };
    for (double value : values) *out++ = BatchBuilder::ToCell(value);
  }
};

}  // namespace

std::span<const DecoderSpec> NetworkDecoders() {
  static constexpr std::array kSpecs = {
      TextSpec<NetworkDecoder, TableId::kNic>("nic.data", Chips({0, 1, 5, 7, 8, 11})),
      TextSpec<NetworkDecoder, TableId::kRoce>("roce.data", Chips({0, 1, 5})),
  };
  return kSpecs;
}

}  // namespace profd::exporting
