#include <array>

#include "base/text.h"
#include "export/decode/text_parts.h"
#include "export/text_scan.h"

namespace profd::exporting {
namespace {

constexpr uint32_t kSysChips = Chips({0, 1, 2, 3, 4, 5, 7, 8, 11, 15, 16});

// Blocks of /proc texts (dump-format 2.14): `TimeStamp:<ns>`, `Index:`, `DataLen:`, body, empty line. A block
// begins at its TimeStamp and ends at an empty line or the next TimeStamp; DataLen is not believed, so a wrong
// one costs nothing.
class BlockDecoder : public TableDecoder {
 public:
  BlockDecoder(const DecodeContext& context, TableId table)
      : TableDecoder(context, table), device_(context.place->kind == Place::Kind::kDevice) {}

  void Feed(std::span<const std::byte> bytes, bool) override {
    ForEachLine(bytes, [this](std::string_view line) { Line(line); });
  }
  void Finish() override {
    End();
    TableDecoder::Finish();
  }

 protected:
  virtual void BeginBlock() {}
  // A line of the body. False: it makes no sense.
  virtual bool BodyLine(std::string_view line) = 0;
  virtual void EndBlock() {}

  // Of the block.
  int64_t t_ns() const { return t_ns_; }

 private:
  void Line(std::string_view line) {
    if (line.starts_with("TimeStamp:")) {
      End();
      TextScan scan(line.substr(sizeof("TimeStamp:") - 1));
      int64_t ns = 0;
      if (!scan.Int(&ns) || !scan.AtEnd()) {
        CountBad(line, &stats_);
        return;
      }
      t_ns_ = device_ ? clock_.DeviceNs(ns) : clock_.HostNs(ns);
      in_block_ = true;
      BeginBlock();
    } else if (line.empty()) {
      End();
    } else if (line.starts_with("Index:") || line.starts_with("DataLen:")) {
      return;
    } else if (!in_block_ || !BodyLine(line)) {
      CountBad(line, &stats_);
    }
  }
  void End() {
    if (in_block_) EndBlock();
    in_block_ = false;
  }

  bool device_;
  bool in_block_ = false;
  int64_t t_ns_ = 0;
};

// Lines of /proc/stat that begin with "cpu".
class SysCpuDecoder final : public BlockDecoder {
 public:
  using BlockDecoder::BlockDecoder;

 protected:
  bool BodyLine(std::string_view line) override {
    if (!line.starts_with("cpu")) return false;
    TextScan name(line.substr(3));
    std::array<uint64_t, 11> cells;
    uint64_t cpu = 0;
    bool total = line.size() > 3 && TextScan::IsBlank(line[3]);
    if (!total && (!name.Uint(&cpu) || cpu > 1'000'000)) return false;
    cells[0] = total ? BatchBuilder::ToCell(-1) : cpu;
    for (size_t i = 1; i < cells.size(); ++i) {
      if (!name.Uint(&cells[i])) return false;
    }
    ++stats_.records;
    rows_.AddCells(t_ns(), cells);
    return true;
  }
};

// Lines of /proc/meminfo.
class SysMemDecoder final : public BlockDecoder {
 public:
  using BlockDecoder::BlockDecoder;

 protected:
  void BeginBlock() override {
    cells_ = {};
    seen_ = false;
  }
  bool BodyLine(std::string_view line) override {
    TextScan scan(line);
    std::string_view name = scan.Field(':');
    for (size_t i = 0; i < kNames.size(); ++i) {
      if (name != kNames[i]) continue;
      uint64_t value = 0;
      if (!scan.Uint(&value)) return false;
      cells_[i] = value;
      seen_ = seen_ || i == 0;
      return true;
    }
    return true;  // /proc/meminfo has many more
  }
  // A block without its first line cannot be used.
  void EndBlock() override {
    if (!seen_) {
      ++stats_.bad_records;
      return;
    }
    ++stats_.records;
    rows_.AddCells(t_ns(), cells_);
  }

 private:
  static constexpr std::array<std::string_view, 9> kNames = {
      "MemTotal",    "MemFree",      "Buffers",         "Cached",        "Shmem",
      "CommitLimit", "Committed_AS", "HugePages_Total", "HugePages_Free"};

  std::array<uint64_t, kNames.size()> cells_{};
  bool seen_ = false;
};

// Blocks about one process: what both kinds of them have.
class ProcDecoder : public BlockDecoder {
 public:
  ProcDecoder(const DecodeContext& context, TableId table)
      : BlockDecoder(context, table), strings_(*context.strings) {
    TextScan scan(context.file->base);  // "4242-Memory.data"
    uint64_t pid = 0;
    if (scan.Digits(&pid) && pid <= 0x7fffffff) file_pid_ = static_cast<int64_t>(pid);
  }

 protected:
  bool NameLine(std::string_view line) {
    constexpr std::string_view kPrefix = "ProcessName:";
    if (!line.starts_with(kPrefix)) return false;
    line.remove_prefix(kPrefix.size());
    while (!line.empty() && TextScan::IsBlank(line.front())) line.remove_prefix(1);
    while (!line.empty() && TextScan::IsBlank(line.back())) line.remove_suffix(1);
    name_ = strings_.Intern(line);
    return true;
  }
  void NoName() { name_ = strings_.Intern(""); }
  int64_t file_pid() const { return file_pid_; }
  int64_t name() const { return name_; }

 private:
  Strings& strings_;
  int64_t file_pid_ = 0;
  int64_t name_ = 0;
};

// /proc/<pid>/stat, the name, and the total line of /proc/stat, which completes the row.
class ProcCpuDecoder final : public ProcDecoder {
 public:
  using ProcDecoder::ProcDecoder;

 protected:
  void BeginBlock() override {
    NoName();
    has_stat_ = false;
    done_ = false;
  }
  bool BodyLine(std::string_view line) override {
    if (NameLine(line)) return true;
    if (line.starts_with("cpu")) return CpuLine(line);
    if (!IsDigit(line.front())) return false;
    return StatLine(line);
  }
  void EndBlock() override {
    if (!done_) ++stats_.bad_records;
  }

 private:
  bool StatLine(std::string_view line) {
    TextScan head(line);
    if (!head.Uint(&pid_)) return false;
    // The name in brackets may hold blanks and brackets.
    size_t bracket = line.rfind(')');
    TextScan scan(bracket == std::string_view::npos ? head.rest() : line.substr(bracket + 1));
    if (bracket == std::string_view::npos && !scan.SkipWords(1)) return false;
    jiffies_ = 0;
    if (!scan.SkipWords(11)) return false;  // state .. cmajflt
    for (int i = 0; i < 4; ++i) {           // utime, stime, cutime, cstime
      uint64_t value = 0;
      if (!scan.Uint(&value)) return false;
      jiffies_ += value;
    }
    has_stat_ = true;
    return true;
  }
  bool CpuLine(std::string_view line) {
    TextScan scan(line);
    if (!has_stat_ || !scan.SkipWords(1)) return false;
    uint64_t total = 0;
    bool any = false;
    while (!scan.AtEnd()) {
      uint64_t value = 0;
      if (!scan.Uint(&value)) return false;
      total += value;
      any = true;
    }
    if (!any) return false;
    ++stats_.records;
    rows_.Add(t_ns(), pid_, name(), jiffies_, total);
    done_ = true;
    has_stat_ = false;
    return true;
  }

  uint64_t pid_ = 0;
  uint64_t jiffies_ = 0;
  bool has_stat_ = false;
  bool done_ = false;
};

// /proc/<pid>/statm and the name.
class ProcMemDecoder final : public ProcDecoder {
 public:
  using ProcDecoder::ProcDecoder;

 protected:
  void BeginBlock() override {
    NoName();
    has_pages_ = false;
  }
  bool BodyLine(std::string_view line) override {
    if (NameLine(line)) return true;
    TextScan scan(line);
    std::array<uint64_t, 7> pages;
    for (uint64_t& value : pages) {
      if (!scan.Uint(&value)) return false;
    }
    pages_ = pages;
    has_pages_ = true;
    return true;
  }
  void EndBlock() override {
    if (!has_pages_) {
      ++stats_.bad_records;
      return;
    }
    ++stats_.records;
    rows_.Add(t_ns(), file_pid(), name(), pages_[0], pages_[1], pages_[2]);
  }

 private:
  std::array<uint64_t, 7> pages_{};
  bool has_pages_ = false;
};

}  // namespace

// Of a device's own system, or of the host.
std::span<const DecoderSpec> HostBlockDecoders() {
  static constexpr std::array kSpecs = {
      TextSpec<SysCpuDecoder, TableId::kSysCpu>("SystemCpuUsage.data", kSysChips),
      TextSpec<SysMemDecoder, TableId::kSysMem>("Memory.data", kSysChips),
      TextSpec<ProcCpuDecoder, TableId::kProcCpu>("*-CpuUsage.data", kSysChips),
      TextSpec<ProcMemDecoder, TableId::kProcMem>("*-Memory.data", kSysChips),
      TextSpec<SysCpuDecoder, TableId::kSysCpu>("host_sys_cpu.data", kAnyChip, Place::Kind::kHost),
      TextSpec<SysMemDecoder, TableId::kSysMem>("host_sys_mem.data", kAnyChip, Place::Kind::kHost),
      TextSpec<ProcCpuDecoder, TableId::kProcCpu>("*-CpuUsage.data", kAnyChip, Place::Kind::kHost),
      TextSpec<ProcMemDecoder, TableId::kProcMem>("*-Memory.data", kAnyChip, Place::Kind::kHost),
  };
  return kSpecs;
}

}  // namespace profd::exporting
