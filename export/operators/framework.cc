#include "export/operators/framework.h"

#include "base/bytes.h"
#include "export/operators/records.h"
#include "export/repaired_text.h"

namespace profd::exporting::operators {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kTorchRange = "torch.op_range";
constexpr std::string_view kTorchMark = "torch.op_mark";
constexpr std::string_view kMindSporeRange = "mindspore.op_range";
constexpr size_t kHeaderBytes = 6;  // type u16, length u32
constexpr size_t kRangeBytes = 58;
constexpr size_t kOldRangeBytes = 57;  // without a scope
constexpr size_t kMarkBytes = 40;
constexpr size_t kMindSporeRangeBytes = 54;
// Of a call stack, which is the longest text there is.
constexpr size_t kMaxFieldText = 65536;

// `each` gets (type, body) of all that are whole; gives the bytes that are left over.
template <class Each>
size_t ForEachPart(Bytes bytes, Each each) {
  while (bytes.size() >= kHeaderBytes) {
    const auto type = LoadUnchecked<uint16_t>(bytes, 0);
    const auto length = LoadUnchecked<uint32_t>(bytes, sizeof type);
    if (length > bytes.size() - kHeaderBytes) break;
    each(type, bytes.subspan(kHeaderBytes, length));
    bytes = bytes.subspan(kHeaderBytes + length);
  }
  return bytes.size();
}

bool HasWholeFields(Bytes body, size_t fixed) {
  return body.size() >= fixed && ForEachPart(body.subspan(fixed), [](uint16_t, Bytes) {}) == 0;
}

int64_t TextOf(Bytes field, Strings* strings) {
  const std::string_view text(reinterpret_cast<const char*>(field.data()), field.size());
  return strings->Intern(RepairedText(text, kMaxFieldText));
}

bool ReadTorchRange(Bytes body, Strings* strings, FrameworkData* into) {
  const size_t fixed = HasWholeFields(body, kRangeBytes) ? kRangeBytes : kOldRangeBytes;
  if (!HasWholeFields(body, fixed)) return false;
  const RecordView record(body);
  FrameworkOperator made;
  made.begin = static_cast<int64_t>(record.U64(0));
  made.end = static_cast<int64_t>(record.U64(8));
  if (made.end < made.begin) return false;
  made.sequence = static_cast<int64_t>(record.U64(16));
  made.thread = record.U64(32);
  made.forward_thread = record.U64(48);
  ForEachPart(body.subspan(fixed), [&](uint16_t type, Bytes field) {
    switch (type) {
      case 2: made.name = TextOf(field, strings); break;
      case 3: made.types = TextOf(field, strings); break;
      case 4: made.shapes = TextOf(field, strings); break;
      case 8: made.stack = TextOf(field, strings); break;
      case 9: made.modules = TextOf(field, strings); break;
      default: break;
    }
  });
  into->operators.push_back(made);
  return true;
}

bool ReadTorchMark(Bytes body, Strings* strings, FrameworkData* into) {
  if (!HasWholeFields(body, kMarkBytes)) return false;
  const RecordView record(body);
  if (record.U64(8) > static_cast<uint64_t>(QueueMark::Kind::kDequeueEnd)) return false;
  QueueMark made;
  made.time = static_cast<int64_t>(record.U64(0));
  made.kind = static_cast<QueueMark::Kind>(record.U64(8));
  made.correlation = record.U64(16);
  made.thread = record.U64(24);
  ForEachPart(body.subspan(kMarkBytes), [&](uint16_t type, Bytes field) {
    if (type == 1) made.name = TextOf(field, strings);
  });
  into->marks.push_back(made);
  return true;
}

bool ReadMindSporeRange(Bytes body, Strings* strings, FrameworkData* into) {
  if (!HasWholeFields(body, kMindSporeRangeBytes)) return false;
  const RecordView record(body);
  FrameworkOperator made;
  made.thread = record.U64(0);
  made.begin = static_cast<int64_t>(record.U64(24));
  made.end = static_cast<int64_t>(record.U64(32));
  if (made.end < made.begin) return false;
  ForEachPart(body.subspan(kMindSporeRangeBytes), [&](uint16_t type, Bytes field) {
    if (type == 13) made.name = TextOf(field, strings);
  });
  into->operators.push_back(made);
  return true;
}

using Reader = bool (*)(Bytes body, Strings* strings, FrameworkData* into);

Reader ReaderOf(std::string_view base) {
  if (base == kTorchRange) return ReadTorchRange;
  if (base == kTorchMark) return ReadTorchMark;
  if (base == kMindSporeRange) return ReadMindSporeRange;
  return nullptr;
}

}  // namespace

bool FrameworkData::IsFile(std::string_view base) { return ReaderOf(base) != nullptr; }

bool FrameworkData::Read(std::string_view base, Bytes bytes) {
  const Reader read = ReaderOf(base);
  if (read == nullptr) return false;
  const size_t left = ForEachPart(bytes, [&](uint16_t, Bytes body) {
    ++records;
    if (read(body, strings_, this)) return;
    ++bad_records;
    bad_bytes += kHeaderBytes + body.size();
  });
  if (left > 0) {
    ++bad_records;
    bad_bytes += left;
  }
  return true;
}

}  // namespace profd::exporting::operators
