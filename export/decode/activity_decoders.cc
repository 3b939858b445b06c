// What training processes did: host/data/activity_*.data (dump/activity_files.h).
#include "dump/activity_files.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "export/decode/decoder_groups.h"
#include "export/decode/record_decoder.h"

namespace profd::exporting {
namespace {

constexpr uint16_t kNoDevice = 0xFFFF;
constexpr uint32_t kNoStream = 0xFFFFFFFF;
constexpr uint16_t kNoDataType = 0xFFFF;

int64_t StreamOf(uint32_t stream) { return stream == kNoStream ? -1 : int64_t{stream}; }
// All 64 bits, as they are: an address, a correlation.
int64_t Bits(uint64_t value) { return static_cast<int64_t>(value); }

// Names of the dump as ids of Strings.
class NameCells {
 public:
  explicit NameCells(const DecodeContext& context)
      : names_(context.dump->activity_names), strings_(*context.strings) {}

  int64_t Of(uint32_t id) {
    if (id > ActivityNames::kMaxNames) return strings_.Intern(names_.Text(id));
    if (id >= cells_.size()) cells_.resize(id + 1, -1);
    int64_t& cell = cells_[id];
    if (cell < 0) cell = strings_.Intern(names_.Text(id));
    return cell;
  }

 private:
  const ActivityNames& names_;
  Strings& strings_;
  std::vector<int64_t> cells_;
};

// By the manifest: what a physical device is called here, and which rank a process is.
class Owners {
 public:
  Owners(const DumpInfo& dump, const std::set<int>& requested) : whole_(dump.rank), requested_(requested) {
    if (!dump.manifest) return;
    for (const ManifestDevice& device : dump.manifest->devices) devices_[device.physical_id] = device.id;
    for (const ManifestProcess& process : dump.manifest->processes) {
      if (process.rank) ranks_[process.pid] = *process.rank;
    }
  }
  int Device(uint16_t physical) const {
    if (physical == kNoDevice) return -1;
    const auto found = devices_.find(physical);
    return found == devices_.end() ? physical : found->second;
  }
  // Records of a process mostly follow one another.
  int64_t Rank(uint32_t process) {
    if (process == last_process_) return last_rank_;
    const auto found = ranks_.find(process);
    last_process_ = process;
    last_rank_ = found != ranks_.end() ? found->second : whole_.value_or(-1);
    return last_rank_;
  }
  // One without a rank is of all.
  bool IsRequested(uint32_t process) {
    const int64_t rank = requested_.empty() ? -1 : Rank(process);
    return rank < 0 || requested_.contains(static_cast<int>(rank));
  }

 private:
  std::optional<int> whole_;
  std::set<int> requested_;  // ranks; empty = all
  std::map<int, int> devices_;
  std::unordered_map<int64_t, int> ranks_;
  int64_t last_process_ = -1;
  int64_t last_rank_ = -1;
};

template <class Record>
class ActivityDecoder final : public RecordDecoder<ActivityDecoder<Record>, Record> {
 public:
  ActivityDecoder(const DecodeContext& context, TableId table)
      : clock_(context.clock), names_(context), owners_(*context.dump, context.ranks), rows_(context, table) {}

  void FinishRows() {
    rows_.Flush();
    stats_.clipped += open_.size();
    stats_.unpaired += ended_.size();
  }

  bool DecodeRecord(const StoredKernel& r) {
    return Plausible(r.start_ns, r.duration_ns) &&
           Add(r, r.device, r.start_ns, names_.Of(r.name), names_.Of(r.type), Bits(r.duration_ns),
               StreamOf(r.stream), r.process, owners_.Rank(r.process), r.thread, Bits(r.correlation));
  }
  bool DecodeRecord(const StoredCommunication& r) {
    const int64_t type = r.data_type == kNoDataType ? -1 : int64_t{r.data_type};
    return Plausible(r.start_ns, r.duration_ns) &&
           Add(r, r.device, r.start_ns, names_.Of(r.name), names_.Of(r.communicator), names_.Of(r.algorithm),
               Bits(r.duration_ns), StreamOf(r.stream), r.process, owners_.Rank(r.process),
               Bits(r.correlation), Bits(r.count), type, r.bandwidth);
  }
  bool DecodeRecord(const StoredApi& r) {
    return Plausible(r.start_ns, r.duration_ns) &&
           Add(r, kNoDevice, r.start_ns, names_.Of(r.name), r.level, Bits(r.duration_ns), r.process,
               owners_.Rank(r.process), r.thread, Bits(r.correlation));
  }
  bool DecodeRecord(const StoredMarker& r) {
    const uint16_t flag = r.flag % 8 != 0 ? r.flag % 8 : r.flag / 8;
    if (!Plausible(r.time_ns, 0) || r.source > 1 || (flag != 1 && flag != 2 && flag != 4)) return false;
    const bool on_device = r.source == 1;
    CountHalf(r, flag);
    return Add(r, on_device ? r.device : kNoDevice, r.time_ns, names_.Of(r.name), names_.Of(r.domain), r.source,
               flag / 2, Bits(r.id), on_device ? StreamOf(r.stream) : -1, r.process, owners_.Rank(r.process),
               on_device ? 0 : r.thread);
  }
  bool DecodeRecord(const StoredMemory& r) {
    return Plausible(r.start_ns, r.duration_ns) &&
           Add(r, r.device, r.start_ns, r.operation, Bits(r.duration_ns), Bits(r.bytes), Bits(r.address),
               StreamOf(r.stream), r.process, owners_.Rank(r.process), Bits(r.correlation), r.is_async,
               r.detail);
  }

 private:
  using RecordDecoder<ActivityDecoder<Record>, Record>::stats_;
  static constexpr size_t kMaxOpen = 65'536;
  static constexpr uint16_t kBegins = 2;
  static constexpr uint16_t kEnds = 4;

  // Of ranges: those that nothing ends go to the end of the session; when one began whose end is all there is, and what
  // it is, is unknown. An end may be there before its begin: the vendor's buffers overtake each other (in-application 2.8).
  void CountHalf(const StoredMarker& r, uint16_t flag) {
    const std::tuple key(r.process, r.id, r.source);
    if (flag == kBegins) {
      const auto end = ended_.find(key);
      if (end != ended_.end() && end->second >= r.time_ns) {
        ended_.erase(end);
      } else if (open_.size() < kMaxOpen) {
        open_.insert(key);
      }
    } else if (flag == kEnds && open_.erase(key) == 0) {
      if (ended_.size() < kMaxOpen && ended_.emplace(key, r.time_ns).second) return;
      ++stats_.unpaired;
    }
  }

  static bool Plausible(int64_t start_ns, uint64_t duration_ns) {
    return start_ns >= 0 && static_cast<uint64_t>(start_ns) < kMaxPlausibleNs && duration_ns < kMaxPlausibleNs;
  }

  template <typename... Cells>
  bool Add(const Record& r, uint16_t physical, int64_t raw_ns, Cells... cells) {
    if (!owners_.IsRequested(r.process)) return true;
    BatchBuilder* rows = rows_.Of(owners_.Device(physical));
    if (rows == nullptr) return false;
    rows->Add(clock_.HostNs(raw_ns), cells...);
    return true;
  }
  ClockMap clock_;
  NameCells names_;
  Owners owners_;
  DeviceRows rows_;
  std::set<std::tuple<uint32_t, uint64_t, uint16_t>> open_;  // ranges by process, id and source
  std::map<std::tuple<uint32_t, uint64_t, uint16_t>, int64_t> ended_;  // ends without a begin before them: when
};

template <class Record, TableId table>
DecoderSpec Spec(ActivityFileId id) {
  const ActivityFile& file = FileOf(id);
  DecoderSpec spec = {file.file, Place::Kind::kHost, kAnyChip, static_cast<uint16_t>(file.record_bytes),
                      0, kTables<table>, MakeDecoder<ActivityDecoder<Record>, table>};
  spec.rows_have_devices = true;
  return spec;
}

}  // namespace

std::span<const DecoderSpec> ActivityDecoders() {
  using enum ActivityFileId;
  static const std::array<DecoderSpec, kActivityFiles> specs = {{
      Spec<StoredKernel, TableId::kKernel>(kKernel),
      Spec<StoredCommunication, TableId::kCommunication>(kCommunication),
      Spec<StoredApi, TableId::kApi>(kApi),
      Spec<StoredMarker, TableId::kMarker>(kMarker),
      Spec<StoredMemory, TableId::kMemory>(kMemory),
  }};
  return specs;
}

}  // namespace profd::exporting
