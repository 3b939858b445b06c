#include "dump/slice_repair.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/text.h"
#include "driver/abi/channels.h"
#include "dump/activity_files.h"
#include "dump/data_name.h"
#include "dump/mark_files.h"

namespace profd {
namespace {

constexpr size_t kChunk = 256u << 10;
// No line of a dump is longer; what follows one is given up.
constexpr size_t kMaxLine = 1u << 20;

constexpr std::string_view kBlockHead = "TimeStamp:";
constexpr std::string_view kBlockLength = "DataLen:";
constexpr std::string_view kSampleHead = "time ";

Result<size_t> ReadAt(int fd, uint64_t at, char* out, size_t size) {
  for (;;) {
    ssize_t got = ::pread(fd, out, size, static_cast<off_t>(at));
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) return Status::FromErrno(errno, "read a slice");
  }
}

bool IsZero(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

Result<WholePart> WholeRecords(int fd, uint64_t size, uint32_t record_size, bool strip_zeros) {
  uint64_t records = size / record_size;
  std::string record(record_size, '\0');
  while (strip_zeros && records > 0) {
    Result<size_t> got = ReadAt(fd, (records - 1) * record_size, record.data(), record.size());
    if (!got.ok()) return got.status();
    if (*got == record.size() && !IsZero(record)) break;
    --records;
  }
  return WholePart{records * record_size, records};
}

// Takes a text file line by line and remembers the last place at which it could end.
class TextScan {
 public:
  explicit TextScan(const SliceShape& shape) : shape_(shape) {}

  // `line` with its '\n', which begins at `offset`. False: nothing behind it counts.
  bool Line(std::string_view line, uint64_t offset) {
    if (line.find('\0') != std::string_view::npos) return false;
    const uint64_t end = offset + line.size();
    line.remove_suffix(1);
    if (shape_.kind == SliceShape::Kind::kBlocks) return BlockLine(line, end);
    whole_.bytes = end;
    if (shape_.kind == SliceShape::Kind::kSamples) {
      if (!line.starts_with(kSampleHead)) return true;
      last_head_ = offset;
      ++whole_.records;
    } else if (shape_.header_token.empty() ||
               line.find(shape_.header_token) == std::string_view::npos) {
      ++whole_.records;
    }
    return true;
  }
  // Where the scan continues, if not behind the line.
  uint64_t skip_to() const { return skip_to_; }

  // `clean`: the file ended with a line.
  WholePart Result(bool clean) {
    if (shape_.kind == SliceShape::Kind::kSamples && !clean && whole_.records > 0) {
      whole_.bytes = last_head_;
      --whole_.records;
    }
    return whole_;
  }
  void EndOfBlock(uint64_t size) {
    if (skip_to_ == 0 || skip_to_ > size) return;
    whole_.bytes = skip_to_;
    ++whole_.records;
  }

 private:
  bool BlockLine(std::string_view line, uint64_t end) {
    skip_to_ = 0;
    if (line.starts_with(kBlockHead)) {
      in_head_ = true;
      return true;
    }
    if (!in_head_) return false;
    if (!line.starts_with(kBlockLength)) return true;
    uint64_t length = 0;
    if (!ParseNumber(line.substr(kBlockLength.size()), &length)) return false;
    if (length > UINT32_MAX) return false;
    in_head_ = false;
    skip_to_ = end + length + 2;
    return true;
  }

  const SliceShape shape_;
  WholePart whole_;
  uint64_t last_head_ = 0;
  uint64_t skip_to_ = 0;
  bool in_head_ = false;
};

// The lines of `text`, which begins at `at`; *used is how far they reach (beyond its end where a
// block does). False: nothing behind it counts.
bool ScanLines(TextScan& scan, std::string_view text, uint64_t at, uint64_t size, uint64_t* used) {
  *used = 0;
  while (*used < text.size()) {
    const size_t line = text.find('\n', *used);
    if (line == std::string_view::npos) return true;
    if (!scan.Line(text.substr(*used, line + 1 - *used), at + *used)) return false;
    *used = line + 1;
    if (scan.skip_to() == 0) continue;
    scan.EndOfBlock(size);
    *used = scan.skip_to() - at;
  }
  return true;
}

Result<WholePart> WholeText(int fd, uint64_t size, const SliceShape& shape) {
  TextScan scan(shape);
  std::vector<char> buffer;
  uint64_t at = 0;  // of buffer's first byte
  while (at + buffer.size() < size) {
    const size_t had = buffer.size();
    if (had > kMaxLine) return scan.Result(false);
    buffer.resize(had + kChunk);
    Result<size_t> got = ReadAt(fd, at + had, buffer.data() + had, kChunk);
    if (!got.ok()) return got.status();
    buffer.resize(had + *got);
    if (*got == 0) break;
    uint64_t used = 0;
    if (!ScanLines(scan, {buffer.data(), buffer.size()}, at, size, &used)) {
      return scan.Result(false);
    }
    buffer.erase(buffer.begin(),
                 buffer.begin() + static_cast<ptrdiff_t>(std::min<uint64_t>(used, buffer.size())));
    at += used;
  }
  return scan.Result(buffer.empty());
}

}  // namespace

SliceShape ShapeOf(std::string_view base, bool of_host) {
  using Kind = SliceShape::Kind;
  if (base == kStepTraceFile) return {Kind::kBinary, kStepRecordBytes, {}};
  if (base == "netdev_stats.data") return {};
  if (of_host) {
    if (const ActivityFile* activity = FindActivityFile(base)) {
      return {Kind::kBinary, static_cast<uint32_t>(activity->record_bytes), {}};
    }
    if (base == "host_cpu.data" || base == "host_network.data") return {Kind::kSamples, 0, {}};
    if (base == "host_sys_cpu.data" || base == "host_sys_mem.data" ||
        base.ends_with("-CpuUsage.data") || base.ends_with("-Memory.data")) {
      return {Kind::kBlocks, 0, {}};
    }
    if (base == "host_mem.data" || base == "host_disk.data") return {};
    return {Kind::kUnknown, 0, {}};
  }
  const abi::ChannelFormat* format = FormatOfFile(base);
  if (format == nullptr) return {Kind::kUnknown, 0, {}};
  if (format->framing == abi::Framing::kBinary) return {Kind::kBinary, format->record_size, {}};
  return {Kind::kLines, 0, format->header_token};
}

Result<WholePart> FindWholePart(int fd, uint64_t size, const SliceShape& shape,
                                bool trailing_zeros_untrue) {
  if (shape.kind == SliceShape::Kind::kBinary) {
    return WholeRecords(fd, size, shape.record_size, trailing_zeros_untrue);
  }
  if (shape.kind == SliceShape::Kind::kUnknown) return WholePart{size, 0};
  return WholeText(fd, size, shape);
}

}  // namespace profd
