#include "export/operators/cpu_records.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace profd::exporting::operators {
namespace {

enum : uint32_t { kNode = 0, kPipeline = 1, kQueueWait = 3 };

std::string TextOf(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::string(text.substr(0, text.find('\0')));
}

// Clocks of several cores: what seems to end before it begins took no time.
uint64_t Between(uint64_t begin, uint64_t end) { return end > begin ? end - begin : 0; }

}  // namespace

void CpuRecords::Feed(std::span<const std::byte> bytes) {
  for (; bytes.size() >= kCpuRecordBytes; bytes = bytes.subspan(kCpuRecordBytes)) {
    const RecordView record(bytes);
    if (record.U16(0) != kHostMagic) {
      ++bad_records;
      continue;
    }
    ++records;
    switch (record.U32(4)) {
      case kNode: {
        CpuNode node;
        node.stream = record.U16(24);
        node.task = record.U16(26);
        node.start = record.U64(40);
        node.compute_us = Between(record.U64(48), record.U64(56));
        node.copy_us = Between(record.U64(56), record.U64(64));
        node.end = record.U64(80);
        node.submitted = record.U64(96);
        node.after_run = record.U64(120);
        node.dispatch_us = record.U32(132);
        if (node.start != 0 && node.end != 0) nodes.push_back(node);
        break;
      }
      case kPipeline:
        pipeline.push_back({record.U64(16), record.U64(112), TextOf(bytes.subspan(24, 16)), TextOf(bytes.subspan(40, 64))});
        break;
      case kQueueWait: waits.push_back({record.U64(40), record.U64(48), record.U64(32), record.U32(24), {}}); break;
      default: break;  // of fused communication and of helpers: not read
    }
  }
}

void CpuRecords::FeedWaits(std::string_view text) {
  constexpr size_t kLongest = 4096;
  for (size_t end = text.find('\0'); end != std::string_view::npos; end = text.find('\0')) {
    if (rest_.empty()) {
      AddWait(text.substr(0, end));
    } else {
      AddWait(rest_.append(text.substr(0, std::min(end, kLongest))));
      rest_.clear();
    }
    text.remove_prefix(end + 1);
  }
  rest_.append(text.substr(0, rest_.size() < kLongest ? kLongest : 0));
}

void CpuRecords::EndWaits() {
  if (!rest_.empty()) AddWait(rest_);
  rest_.clear();
}

// "Node:<name>, Run start:<us>, Run end:<us>, queue size:<n>", the fields in any order.
void CpuRecords::AddWait(std::string_view text) {
  if (text.empty()) return;
  QueueWait wait;
  bool whole = true;
  size_t fields = 0;
  for (std::string_view field; NextPart(&text, ',', &field);) {
    while (field.starts_with(' ')) field.remove_prefix(1);
    std::string_view value = field;
    std::string_view name;
    NextPart(&value, ':', &name);
    uint64_t* number = name == "Run start" ? &wait.start_us : name == "Run end" ? &wait.end_us : name == "queue size" ? &wait.queued : nullptr;
    if (name == "Node") {
      wait.name = value;
      ++fields;
    } else if (number != nullptr) {
      whole = ParseNumber(value, number) && whole;
      ++fields;
    }
  }
  constexpr size_t kFields = 4;
  if (!whole || fields != kFields || wait.name.empty()) {
    ++bad_records;
    return;
  }
  ++records;
  waits.push_back(std::move(wait));
}

}  // namespace profd::exporting::operators
