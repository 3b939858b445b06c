#include "dump/mark_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "driver/abi/hal_abi.h"
#include "dump/activity_files.h"

namespace profd {
namespace {

// dump-format section 4, step trace: training step start and end; steps belong to no graph model.
constexpr uint16_t kStepStartTag = 60000;
constexpr uint16_t kStepEndTag = 60001;
constexpr uint64_t kNoModel = 4294967295;
constexpr std::byte kStepTraceType{10};

// By layout. In the second the tag is before stream and task (dump-format 2.12, "v6").
constexpr std::array<size_t, kStepLayouts> kTagAt = {36, 32};

// The first five columns of a line.
void AppendWho(const MarkLine& mark, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{}\t{}\t", mark.time_ns, mark.pid);
  if (mark.rank) fmt::format_to(std::back_inserter(*out), "{}", *mark.rank);
  fmt::format_to(std::back_inserter(*out), "\t{}\t{}\t", mark.thread, mark.kind);
}

}  // namespace

void AppendStackLine(const MarkLine& mark, std::string* out) {
  AppendWho(mark, out);
  const auto value = static_cast<uint64_t>(mark.value);
  fmt::format_to(std::back_inserter(*out), "{}\t{}\t", value & UINT32_MAX, value >> 32);
  AppendCell(mark.name, out);
  *out += '\n';
}

void AppendCell(std::string_view text, std::string* out) {
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    *out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
}

std::string_view OwnFileHeading(std::string_view file) {
  if (file == kOwnSamplesFile) return kOwnSamplesHeading;
  if (file == kMarksFile) return kMarksHeading;
  if (file == kStacksFile) return kStacksHeading;
  if (file == kActivityNamesFile) return kActivityNamesHeading;
  return {};
}

void AppendMarkLine(const MarkLine& mark, std::string* out) {
  AppendWho(mark, out);
  AppendCell(mark.name, out);
  fmt::format_to(std::back_inserter(*out), "\t{}\t", mark.value);
  AppendCell(mark.domain, out);
  *out += '\n';
}

std::array<std::byte, kStepRecordBytes> StepRecord(uint32_t chip_id, uint64_t device_count,
                                                   int64_t step, bool begin) {
  std::array<std::byte, kStepRecordBytes> record{};
  record[1] = kStepTraceType;
  StoreUnchecked<uint16_t>(record, 2, kStepRecordBytes);
  StoreUnchecked<uint64_t>(record, 8, device_count);
  StoreUnchecked<uint64_t>(record, 16, static_cast<uint64_t>(step));
  StoreUnchecked<uint64_t>(record, 24, kNoModel);
  // Stream and task stay 0: a step is not a task.
  StoreUnchecked<uint16_t>(record, kTagAt[StepLayoutOf(chip_id)],
                           begin ? kStepStartTag : kStepEndTag);
  return record;
}

size_t StepLayoutOf(uint32_t chip_id) { return abi::Is950Class(chip_id) ? 1 : 0; }

Result<std::array<bool, kStepLayouts>> FindStepRecords(int fd, uint64_t first, const std::function<Status()>& check) {
  constexpr size_t kRecords = 4096;  // at once
  std::array<bool, kStepLayouts> found{};
  std::vector<std::byte> buffer(kRecords * kStepRecordBytes);
  for (uint64_t offset = first;;) {
    RETURN_IF_ERROR(check());
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::FromErrno(errno, "read the step trace");
    const size_t records = static_cast<size_t>(got) / kStepRecordBytes;
    for (size_t i = 0; i < records; ++i) {
      const std::span<const std::byte> record = std::span(buffer).subspan(i * kStepRecordBytes, kStepRecordBytes);
      if (record[1] != kStepTraceType) continue;
      for (size_t layout = 0; layout < kStepLayouts; ++layout) {
        const auto tag = LoadUnchecked<uint16_t>(record, kTagAt[layout]);
        found[layout] = found[layout] || tag == kStepStartTag || tag == kStepEndTag;
      }
    }
    if (records == 0 || found[0] + found[1] == kStepLayouts) return found;
    offset += records * kStepRecordBytes;
  }
}

}  // namespace profd
