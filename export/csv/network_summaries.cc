// nic, roce and dvpp.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "export/csv/summaries.h"
#include "export/table.h"

namespace profd::exporting::csv {
namespace {

// Columns of a direction, from its first one on.
enum NetworkColumn : size_t { kPacketRate, kByteRate, kPackets, kBytes, kErrors, kDropped };
constexpr size_t kPerDirection = 8;
constexpr size_t kFirstDirection = 2;  // after port and bandwidth

struct Direction {
  double rate_sum = 0;              // of packets per second
  std::array<double, 6> last = {};  // cell by NetworkColumn
  std::array<double, 6> grown = {};

  void Add(const Batch& batch, size_t row, size_t first_column, bool has_last) {
    for (size_t i = 0; i < last.size(); ++i) {
      double value = batch.Reals(first_column + i)[row];
      // A counter that went down was reset: what it counted meanwhile is not known.
      if (has_last && value > last[i]) grown[i] += value - last[i];
      last[i] = value;
    }
    rate_sum += last[kPacketRate];
  }
};

struct Port {
  uint64_t rows = 0;
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  int64_t bandwidth = 0;  // Mb/s
  std::array<Direction, 2> directions;

  void Add(const Batch& batch, size_t row) {
    if (rows == 0) {
      first_ns = batch.t_ns[row];
      bandwidth = batch.Ints(1)[row];
    }
    for (size_t i = 0; i < 2; ++i) {
      directions[i].Add(batch, row, kFirstDirection + i * kPerDirection, rows > 0);
    }
    last_ns = std::max(rows == 0 ? batch.t_ns[row] : last_ns, batch.t_ns[row]);
    ++rows;
  }
};

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

class NetworkSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    auto ports = batch.Ints(0);
    for (size_t row = 0; row < batch.rows(); ++row) {
      if (Port* port = ports_.Get(ports[row])) port->Add(batch, row);
    }
  }
  // One file per place and table: there is never a second one.
  void Merge(Summary&) override {}

  Status Write(std::string_view, CsvText* out) override {
    for (auto& [id, port] : ports_.Sorted()) {
      CsvRow row = NextRow(out);
      row.Time(port->last_ns).Fixed3(static_cast<double>(port->bandwidth));
      for (const Direction& direction : port->directions) WriteDirection(*port, direction, &row);
      row.Int(id).End();
    }
    return Status::Ok();
  }

 private:
  static void WriteDirection(const Port& port, const Direction& direction, CsvRow* row) {
    double bits_per_s = static_cast<double>(port.bandwidth) * kMega;
    double seconds = static_cast<double>(port.last_ns - port.first_ns) / 1e9;
    bool one = port.rows == 1;  // all that is known are its own rates and totals
    const auto& counts = one ? direction.last : direction.grown;
    double bytes_per_s = one ? direction.last[kByteRate] : Ratio(counts[kBytes], seconds);
    row->Fixed3(Ratio(bytes_per_s * 8, bits_per_s));
    row->Fixed3(direction.rate_sum / static_cast<double>(port.rows));
    row->Fixed3(Ratio(counts[kErrors], counts[kPackets]) * 100);
    row->Fixed3(Ratio(counts[kDropped], counts[kPackets]) * 100);
  }

  SeriesMap<Port> ports_;
};

class DvppSummary : public Summary {
 public:
  using Summary::Summary;

  void Take(const Batch& batch) override {
    for (size_t row = 0; row < batch.rows(); ++row) {
      Key key = {batch.Ints(0)[row], batch.Ints(1)[row], batch.Ints(2)[row]};
      auto it = engines_.find(key);
      if (it == engines_.end()) {
        if (engines_.size() >= SeriesMap<int>::kMax) continue;
        it = engines_.emplace(key, Engine{}).first;
      }
      it->second.Add(batch.Reals(3)[row], batch.Reals(4)[row], batch.Reals(5)[row]);
    }
  }
  // Files of single engines beside dvpp.data, which comes first by its name.
  void Merge(Summary& later) override { engines_.merge(static_cast<DvppSummary&>(later).engines_); }

  Status Write(std::string_view, CsvText* out) override {
    const Column& engine_column = TableOf(TableId::kDvpp).columns[1];
    for (const auto& [key, engine] : engines_) {
      CsvRow row = NextRow(out);
      row.Int(key[0]).Text(UpperCase(KeyText(engine_column, key[1]))).Int(key[2]);
      row.SqlText(engine.max_time - engine.min_time).SqlText(engine.max_frame - engine.min_frame);
      row.Text(Percent(engine.utilization)).End();
    }
    return Status::Ok();
  }

 private:
  using Key = std::array<int64_t, 3>;  // dvpp, engine type, instance
  struct Engine {
    bool any = false;
    double min_time = 0;
    double max_time = 0;
    double min_frame = 0;
    double max_frame = 0;
    double utilization = 0;  // of the last row

    void Add(double time, double frame, double percent) {
      min_time = any ? std::min(min_time, time) : time;
      max_time = any ? std::max(max_time, time) : time;
      min_frame = any ? std::min(min_frame, frame) : frame;
      max_frame = any ? std::max(max_frame, frame) : frame;
      utilization = percent;
      any = true;
    }
  };

  // The driver's text without its %: "90", "12.5".
  static std::string Percent(double value) {
    std::array<char, 40> text;
    std::string_view all(text.data(),
                         static_cast<size_t>(AppendRepr(text.data(), value) - text.data()));
    if (all.ends_with(".0")) all.remove_suffix(2);
    return std::string(all);
  }

  std::map<Key, Engine> engines_;
};

constexpr std::string_view kNetworkColumns =
    "Timestamp(us),Bandwidth(MB/s),Rx Bandwidth efficiency(%),rxPacket/s,rxError rate(%),"
    "rxDropped rate(%),Tx Bandwidth efficiency(%),txPacket/s,txError rate(%),txDropped rate(%),"
    "funcId";

}  // namespace

std::span<const SummaryKind> NetworkSummaries() {
  static constexpr auto kKinds = std::to_array<SummaryKind>({
      {"nic", TableId::kNic, kNetworkColumns, MakeSummary<NetworkSummary>},
      {"roce", TableId::kRoce, kNetworkColumns, MakeSummary<NetworkSummary>},
      {"dvpp", TableId::kDvpp,
       "Dvpp Id,Engine Type,Engine ID,All Time(us),All Frame,All Utilization(%)", MakeSummary<DvppSummary>},
  });
  return kKinds;
}

}  // namespace profd::exporting::csv
