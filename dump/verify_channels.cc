#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/text.h"
#include "dump/data_name.h"
#include "dump/gap_detector.h"
#include "dump/mark_files.h"
#include "dump/slice_source.h"
#include "dump/verify_run.h"

namespace profd {
namespace {

constexpr size_t kReadBytes = 256u << 10;
// No line of any file is nearly as long.
constexpr size_t kMaxLine = 1u << 20;
// The daemon notices a loss up to a flush interval and a poll after it happened, and device clocks
// drift from the one pair they are placed by.
constexpr int64_t kSlackNs = 3 * kNsPerSecond;
// A channel may take this long to deliver its first record, and to be stopped.
constexpr int64_t kEdgeNs = 5 * kNsPerSecond;

// When a host file's line was taken; nothing for lines that do not say.
std::optional<int64_t> LineTimestamp(std::string_view base, std::string_view line) {
  auto number = [](std::string_view text) -> std::optional<int64_t> {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    return value;
  };
  if (line.starts_with("TimeStamp:")) return number(line.substr(10));
  if (base == "host_cpu.data" || base == "host_network.data") {
    return line.starts_with("time ") ? number(line.substr(5)) : std::nullopt;
  }
  if (base == "host_mem.data" || base == "netdev_stats.data") return number(line);
  return std::nullopt;
}

class FileCheck {
 public:
  FileCheck(VerifyRun& run, const VerifyFile& file)
      : run_(run),
        file_(file),
        format_(file.own || file.foreign || file.device < 0 || file.other_layout ? nullptr
                                                                                  : FormatOfFile(file.base)),
        record_bytes_(file.shape.kind == SliceShape::Kind::kBinary ? file.shape.record_size : 0),
        where_(file.device >= 0 ? fmt::format("{} of device {}", file.base, file.device)
                                : file.base),
        gaps_(HoleOptions(), [this](const GapDetector::Gap& gap) { OnGap(gap); }) {}

  void Run(uint64_t* done) {
    for (const VerifySlice& slice : file_.slices) {
      if (run_.cancelled) return;
      ReadSlice(slice, done);
    }
    gaps_.Finish();
    if (!run_.cancelled) Conclude();
  }

 private:
  GapDetector::Options HoleOptions();
  bool opaque() const { return format_ != nullptr && format_->opaque; }
  bool judged() const { return file_.shape.kind != SliceShape::Kind::kUnknown; }
  std::optional<UniqueFd> Open(VerifySlice& slice);
  void ReadSlice(VerifySlice slice, uint64_t* done);
  void TakeBytes(std::span<const std::byte> bytes, const VerifySlice& slice);
  void TakeWhole(std::span<const std::byte> whole);
  void TakeLines(std::string_view lines);
  void EndSlice(const VerifySlice& slice, const SliceSource& source);
  void CheckSum(const std::string& path, const SliceSource& source);
  void OnGap(const GapDetector::Gap& gap);
  bool IsExplained(int64_t from_ns, int64_t to_ns, const ManifestChannel& channel) const;
  bool IsExplained(int64_t from_ns, int64_t to_ns) const;
  int64_t ToHostNs(int64_t timestamp_ns) const;
  std::vector<int64_t> RunsNs() const;
  void Conclude();
  const ManifestChannel* FindChannel() const;
  void AddToAccount(std::string what);
  void CheckCounts(VerifyChannel& row);
  uint64_t LostAtEnd(const VerifyChannel& row, const ManifestChannel& channel) const;
  void CheckReadings(const VerifyChannel& row);
  void CheckEdges();

  VerifyRun& run_;
  const VerifyFile& file_;
  const abi::ChannelFormat* const format_;
  const size_t record_bytes_;
  const std::string where_;
  const ManifestChannel* known_ = nullptr;   // the channel whose file it is
  const ManifestChannel* poller_ = nullptr;  // the collector that wrote it among other files
  std::optional<DumpClocks> clocks_;
  int64_t seam_ns_ = 0;  // not 0: what is older is from the flight recorder
  GapDetector gaps_;
  std::vector<std::byte> carry_;
  uint64_t records_ = 0;
  uint64_t content_bytes_ = 0;
  uint64_t explained_ = 0;
  uint64_t unexplained_ = 0;
  bool slice_start_ = true;
  std::string first_unexplained_;
};

const ManifestChannel* FileCheck::FindChannel() const {
  const ManifestChannel* found = nullptr;
  for (const ManifestChannel& channel : run_.manifest->channels) {
    if (channel.device == file_.device && channel.file == file_.base) found = &channel;
  }
  return found;
}

// Finds what the manifest has about the file on the way.
GapDetector::Options FileCheck::HoleOptions() {
  GapDetector::Options options;
  options.format = format_;
  if (!run_.manifest) {
    // The counter's rate is unknown; how many steps are missing shows at any.
    options.device_counter_hz = 1e9;
    return options;
  }
  if (file_.foreign) return options;
  known_ = FindChannel();
  const std::string_view collector =
      file_.own || file_.device >= 0 ? std::string_view() : HostFileOf(file_.base).collector;
  for (const ManifestChannel& channel : run_.manifest->channels) {
    if (known_ != nullptr || channel.device >= 0 || channel.channel != 0) continue;
    if (!collector.empty() && channel.collector == collector) poller_ = &channel;
  }
  if (poller_ != nullptr && poller_->hz_effective > 0) {
    options.polled = true;
    seam_ns_ = poller_->past_hz > 0 ? poller_->past_until_ns : 0;
    options.period_ns = static_cast<int64_t>(1e9 / (seam_ns_ != 0 ? poller_->past_hz : poller_->hz_effective));
  }
  if (known_ != nullptr && known_->hz_effective > 0 && format_ != nullptr && format_->id != abi::kSocProfileChannel) {
    options.period_ns = std::llround(1e9 / known_->hz_effective);
    if (known_->thinned && known_->channel_hz > 0) options.source_period_ns = std::llround(1e9 / known_->channel_hz);
  }
  for (const ManifestDevice& device : run_.manifest->devices) {
    if (device.id != file_.device) continue;
    options.device_counter_hz = device.counter_hz;
    options.chip_id = static_cast<uint32_t>(std::max(device.chip_id, 0));
  }
  options.host_counter_hz = run_.manifest->host_counter_hz;
  for (const ManifestClock& clock : run_.manifest->clocks) {
    if (clock.device != file_.device || clock.when != "start" || clocks_) continue;
    if (format_ != nullptr && !clock.clocks.Has(format_->time)) continue;
    clocks_ = clock.clocks;
    const bool host = format_ != nullptr && format_->time == abi::TimeKind::kHostCounter;
    options.origin_count = host ? clock.clocks.host_count : clock.clocks.device_count;
  }
  options.runs_ns = RunsNs();
  return options;
}

// A session with a past has it at the rate of the flight recorder, up to where the channel was restarted for it.
std::vector<int64_t> FileCheck::RunsNs() const {
  std::vector<int64_t> runs_ns;
  if (known_ == nullptr || format_ == nullptr || !clocks_) return runs_ns;
  const int64_t shift_ns = ToHostNs(0);
  for (const ManifestGap& gap : known_->gaps) {
    if (gap.reason != LossReason::kChannelRestart && gap.reason != LossReason::kChannelReleased) continue;
    const int64_t host_ns = gap.from_ns == 0 ? gap.host_ns : std::midpoint(gap.from_ns, gap.host_ns);
    runs_ns.push_back(host_ns - shift_ns);
  }
  std::ranges::sort(runs_ns);
  return runs_ns;
}

// `slice` by the path it has by now; nothing if a limit has removed it.
std::optional<UniqueFd> FileCheck::Open(VerifySlice& slice) {
  Result<UniqueFd> fd = run_.reader.OpenFile(slice.path);
  if (run_.running() && fd.status().code() == StatusCode::kNotFound) {
    slice.path = fmt::format("{}{}", RecordedName(slice.path), kCompressedSuffix);
    fd = run_.reader.OpenFile(slice.path);
    if (fd.status().code() == StatusCode::kNotFound) return std::nullopt;
  }
  if (fd.ok()) return std::move(*fd);
  run_.AddOfSlice(VerifyCheck::kSizes, slice.path, "cannot be opened: " + fd.status().message());
  return std::nullopt;
}

void FileCheck::ReadSlice(VerifySlice slice, uint64_t* done) {
  std::optional<UniqueFd> fd = Open(slice);
  if (!fd) {
    if (run_.running()) gaps_.Resync();
    return;
  }
  SliceSource source(std::move(*fd), slice.path);
  std::vector<std::byte> buffer(kReadBytes);
  slice_start_ = true;
  for (;;) {
    Result<size_t> got = source.Read(buffer);
    if (!got.ok()) {
      run_.AddOfSlice(VerifyCheck::kFraming, slice.path, got.status().message());
      break;
    }
    if (*got == 0) break;
    TakeBytes({buffer.data(), *got}, slice);
  }
  *done += slice.bytes;
  if (run_.progress && !run_.progress(*done, run_.total_bytes)) run_.cancelled = true;
  EndSlice(slice, source);
}

void FileCheck::TakeBytes(std::span<const std::byte> bytes, const VerifySlice& slice) {
  if (!judged()) {
    content_bytes_ += bytes.size();
    return;
  }
  if (std::exchange(slice_start_, false) && format_ != nullptr && !format_->slice_header.empty() &&
      run_.manifest && !AsText(bytes).starts_with(format_->slice_header)) {
    run_.AddOfSlice(VerifyCheck::kFraming, slice.path, "does not begin with its header line");
  }
  carry_.insert(carry_.end(), bytes.begin(), bytes.end());
  size_t whole = 0;
  if (record_bytes_ != 0) {
    whole = carry_.size() / record_bytes_ * record_bytes_;
  } else {
    size_t end = AsText(carry_).rfind('\n');
    whole = end == std::string_view::npos ? 0 : end + 1;
    if (carry_.size() - whole > kMaxLine) {
      if (!opaque()) run_.AddOfSlice(VerifyCheck::kFraming, slice.path, "has a line longer than 1 MiB");
      whole = carry_.size();
    }
  }
  TakeWhole({carry_.data(), whole});
  carry_.erase(carry_.begin(), carry_.begin() + static_cast<std::ptrdiff_t>(whole));
}

void FileCheck::TakeWhole(std::span<const std::byte> whole) {
  content_bytes_ += whole.size();
  if (format_ != nullptr) {
    gaps_.Feed(whole);
  } else if (record_bytes_ != 0) {
    records_ += whole.size() / record_bytes_;
  } else {
    TakeLines(AsText(whole));
  }
}

void FileCheck::TakeLines(std::string_view lines) {
  std::string_view line;
  while (NextLine(&lines, &line)) {
    if (file_.own) {
      records_ += line.empty() || line.starts_with("time_ns\t") || line.starts_with("id\t") ? 0 : 1;
      continue;
    }
    std::optional<int64_t> timestamp = LineTimestamp(file_.base, line);
    if (!timestamp) continue;
    ++records_;
    // Up to here it was the flight recorder that read, at its own rate.
    if (seam_ns_ != 0 && *timestamp >= seam_ns_) {
      seam_ns_ = 0;
      gaps_.Restart(static_cast<int64_t>(1e9 / poller_->hz_effective));
    }
    gaps_.FeedTimestamp(0, *timestamp);
  }
}

void FileCheck::EndSlice(const VerifySlice& slice, const SliceSource& source) {
  const bool last = slice.number == file_.slices.back().number;
  // The vendor's collector cuts slices anywhere; the rest of a record is in the next one.
  if (!carry_.empty() && opaque()) TakeWhole(std::exchange(carry_, {}));
  if (!carry_.empty() && (run_.manifest || last)) {
    if (!run_.running() || !last) {
      run_.AddOfSlice(VerifyCheck::kFraming, slice.path,
                      fmt::format("ends inside of a {}, {} bytes of it are there",
                                  record_bytes_ != 0 ? "record" : "line", carry_.size()));
    }
    carry_.clear();
  }
  CheckSum(slice.path, source);
}

// Against the journal, and against the manifest, which is all there is for files without slices.
void FileCheck::CheckSum(const std::string& path, const SliceSource& source) {
  auto compare = [&](std::string_view whose, uint64_t bytes, uint32_t crc, uint64_t want_bytes,
                     uint32_t want_crc) {
    if (bytes != want_bytes) {
      run_.AddOfSlice(VerifyCheck::kSizes, path,
                      fmt::format("holds {} bytes, {} by the {}", bytes, want_bytes, whose));
    } else if (crc != want_crc) {
      run_.AddOfSlice(VerifyCheck::kChecksums, path,
                      fmt::format("CRC-32C is {:08x}, {:08x} by the {}", crc, want_crc, whose));
    }
  };
  bool compared = false;
  if (const SliceEntry* entry = run_.journal.Find(RecordedName(path)); entry != nullptr) {
    compare("journal", source.bytes(), source.crc32c(), entry->bytes, entry->crc32c);
    compared = true;
  }
  if (const ManifestFile* listed = run_.FindListed(path); listed != nullptr && listed->crc32c) {
    compare("manifest", source.stored_bytes(), source.stored_crc32c(), listed->bytes,
            *listed->crc32c);
    compared = true;
  }
  if (!compared) return;
  run_.Ran(VerifyCheck::kChecksums);
  ++run_.report.checksums;
}

// Of one instant on the timestamps' clock, on the host's.
int64_t FileCheck::ToHostNs(int64_t timestamp_ns) const {
  if (format_ == nullptr) return timestamp_ns;
  if (!clocks_) return timestamp_ns;
  switch (format_->time) {
    case abi::TimeKind::kDeviceMonotonicNs:
      return timestamp_ns - clocks_->device_ns + clocks_->host_ns;
    case abi::TimeKind::kHostCounter:
      return run_.manifest->host_counter_hz > 0 ? timestamp_ns + clocks_->host_ns : timestamp_ns;
    default:
      return timestamp_ns + clocks_->host_ns;
  }
}

bool FileCheck::IsExplained(int64_t from_ns, int64_t to_ns, const ManifestChannel& channel) const {
  // More gaps than are listed: the rest can be anywhere.
  if (channel.gap_count > channel.gaps.size()) return true;
  return std::ranges::any_of(channel.gaps, [&](const ManifestGap& gap) {
    return from_ns <= gap.host_ns + kSlackNs && to_ns >= gap.from_ns - kSlackNs;
  });
}

bool FileCheck::IsExplained(int64_t from_ns, int64_t to_ns) const {
  if (!run_.manifest) return true;
  if (known_ != nullptr) {
    // Without the device's clocks its timestamps cannot be put beside the gaps: any of them may be it.
    if (format_ != nullptr && !clocks_) return known_->gap_count > 0;
    return IsExplained(from_ns, to_ns, *known_);
  }
  if (poller_ != nullptr) return IsExplained(from_ns, to_ns, *poller_);
  // Of a file without owner: any of the host's.
  return std::ranges::any_of(run_.manifest->channels, [&](const ManifestChannel& channel) {
    return channel.channel == 0 && IsExplained(from_ns, to_ns, channel);
  });
}

void FileCheck::OnGap(const GapDetector::Gap& gap) {
  const int64_t from = ToHostNs(gap.from_ns);
  const int64_t to = ToHostNs(gap.to_ns);
  if (IsExplained(from, to)) {
    explained_ += gap.missing;
    return;
  }
  unexplained_ += gap.missing;
  const ManifestChannel* entry = known_ != nullptr ? known_ : poller_;
  if (entry != nullptr && run_.gaps.size() < kMaxManifestGaps) {
    run_.gaps.push_back({entry->collector, entry->device, entry->channel, from, to, gap.missing});
  }
  if (first_unexplained_.empty() && run_.manifest) {
    const auto since = static_cast<double>(from - run_.manifest->start_raw_ns) / 1e9;
    first_unexplained_ = fmt::format("the first {:.3f} s after the start, for {:.1f} ms", since,
                                     static_cast<double>(to - from) / 1e6);
  }
}

void FileCheck::Conclude() {
  VerifyChannel row{.device = file_.device, .file = file_.own ? "profd/" + file_.base : file_.base,
                    .slices = file_.slices.size(), .bytes = content_bytes_,
                    .received = format_ != nullptr ? gaps_.records() : records_, .missing = explained_,
                    .unexplained = unexplained_};
  if (known_ != nullptr) {
    row.collector = known_->collector;
    row.channel = known_->channel;
    row.hz = known_->hz_effective;
  }
  row.judged = judged();
  if (row.judged) {
    run_.Ran(VerifyCheck::kFraming);
    run_.Ran(VerifyCheck::kOrder);
  }
  if (gaps_.unreadable() > 0) {
    run_.Add(VerifyCheck::kFraming, where_,
             fmt::format("{} records have no readable timestamp", gaps_.unreadable()));
  }
  if (gaps_.backwards() > 0) {
    run_.Add(VerifyCheck::kOrder, where_,
             fmt::format("{} timestamps are older than the record before", gaps_.backwards()));
  }
  CheckCounts(row);
  if (run_.manifest && !run_.running()) CheckEdges();
  run_.report.channels.push_back(std::move(row));
}

void FileCheck::AddToAccount(std::string what) {
  const std::string_view broken = run_.BrokenSliceOf(FileOfSlice(file_.slices.front().path));
  if (broken.empty()) return run_.Add(VerifyCheck::kAccounting, where_, std::move(what));
  run_.AddOfSlice(VerifyCheck::kAccounting, broken, what);
}

void FileCheck::CheckCounts(VerifyChannel& row) {
  if (!run_.manifest || run_.running()) return;
  run_.Ran(VerifyCheck::kAccounting);
  if (unexplained_ > 0) {
    AddToAccount(fmt::format("{} of {} records are missing and not accounted for in the manifest; {}",
                             unexplained_, row.expected(), first_unexplained_));
  }
  const ManifestChannel* entry = known_ != nullptr ? known_ : poller_;
  if (entry == nullptr) return;
  for (const ManifestLoss& loss : entry->dropped) {
    row.lost += loss.records;
    // Records without a period do not show by their timestamps what is missing.
    if (entry->hz_effective <= 0 && explained_ + unexplained_ == 0 && IsDropped(loss)) row.missing += loss.records;
  }
  row.missing += LostAtEnd(row, *entry);
  if (poller_ != nullptr) CheckReadings(row);
  if (known_ != nullptr && row.received != known_->records) {
    AddToAccount(
        fmt::format("{} records are here, the manifest counts {}", row.received, known_->records));
  }
  const bool all_counted =
      std::ranges::none_of(entry->gaps, [](const ManifestGap& gap) { return gap.lost_records == 0; });
  // Of a thinned session losses are counted before, gaps after the thinning.
  if (all_counted && explained_ > row.lost + row.lost / 20 + 2) {
    AddToAccount(
        fmt::format("{} records are missing, the manifest knows of {}", explained_, row.lost));
  }
}

// What was lost behind the last record, as on a volume that was full to the end, does not show by the timestamps.
uint64_t FileCheck::LostAtEnd(const VerifyChannel& row, const ManifestChannel& channel) const {
  const bool placed = format_ == nullptr || clocks_;
  if (channel.hz_effective <= 0 || !placed || gaps_.records() == gaps_.unreadable()) return 0;
  const int64_t last_ns = ToHostNs(gaps_.last_ns());
  uint64_t lost = 0;
  for (const ManifestGap& gap : channel.gaps) {
    // Both ends may be off: the block that was lost last was read at one of them, and clocks drift.
    if (IsDropped({.reason = gap.reason}) && std::midpoint(gap.from_ns, gap.host_ns) >= last_ns) lost += gap.lost_records;
  }
  lost = std::min(lost, row.lost - std::min(row.lost, explained_));
  if (poller_ == nullptr) return lost;
  // The gap counts records of all files of the collector. Only files of the whole system have one for each reading.
  if (!HostFileOf(file_.base).system) return 0;
  return std::min(lost, channel.readings - std::min(channel.readings, row.received));
}

// What the collector read is in the file of what it reads of the system, or reported as lost. Losses
// are of all its files, so this many of this one may be among them.
void FileCheck::CheckReadings(const VerifyChannel& row) {
  if (!HostFileOf(file_.base).system || run_.manifest->state != DumpState::kDone) return;
  uint64_t lost = 0;
  for (const ManifestLoss& loss : poller_->dropped) {
    if (!IsNotRead(loss.reason)) lost += loss.records;
  }
  if (row.received + lost >= poller_->readings) return;
  AddToAccount(fmt::format("{} samples are here, {} was read {} times and {} are reported as lost",
                           row.received, poller_->collector, poller_->readings, lost));
}

// A channel must begin with its session and last as long.
void FileCheck::CheckEdges() {
  if (known_ == nullptr || format_ == nullptr || known_->hz_effective <= 0 || !clocks_ ||
      gaps_.records() == gaps_.unreadable() || run_.manifest->end_raw_ns == 0) {
    return;
  }
  const auto period = static_cast<int64_t>(1e9 / known_->hz_effective);
  const int64_t slack = kEdgeNs + 3 * period;
  const int64_t first = ToHostNs(gaps_.first_ns());
  const int64_t last = ToHostNs(gaps_.last_ns());
  int64_t start = run_.manifest->start_raw_ns;
  for (const ManifestDevice& device : run_.manifest->devices) {
    if (device.id == file_.device) start = std::max(start, device.joined_raw_ns);
  }
  // One channel's stop may hang for seconds; the others have ended by then.
  const int64_t stop = run_.manifest->stop_raw_ns;
  const int64_t end = stop > start ? std::min(stop, run_.manifest->end_raw_ns) : run_.manifest->end_raw_ns;
  if (first - start > slack && !IsExplained(start, first)) {
    AddToAccount(fmt::format("begins {:.1f} s after the session, without a gap in the manifest",
                             static_cast<double>(first - start) / 1e9));
  }
  if (end - last > slack && !IsExplained(last, end)) {
    AddToAccount(fmt::format("ends {:.1f} s before the session, without a gap in the manifest",
                             static_cast<double>(end - last) / 1e9));
  }
}

}  // namespace

void CheckData(VerifyRun& run) {
  uint64_t done = 0;
  for (const VerifyFile& file : run.data) {
    FileCheck(run, file).Run(&done);
    if (run.cancelled) return;
  }
}

}  // namespace profd
