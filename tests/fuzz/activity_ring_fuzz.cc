// Input: what a process does to its activity ring, and when the daemon reads: operations of a byte each
// with their operands. Whatever is in the ring, the reader stays inside it, takes no more than it was
// asked to, and what it hands on has known types, whole records, names of known numbers and printable text.
#include <string>

#include "daemon/jobs/activity_reader.h"
#include "daemon/jobs/ring_reader.h"
#include "daemon/jobs/test_support.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

constexpr int64_t kNow = 1'000'000'000'000;

void CheckFrame(const ActivityFrame& frame) {
  FUZZ_EXPECT(frame.count > 0);
  FUZZ_EXPECT(reinterpret_cast<uintptr_t>(frame.records.data()) % 8 == 0);
  if (frame.type == attach::ActivityType::kNames) return;
  const size_t each = attach::ActivityRecordBytes(static_cast<uint16_t>(frame.type));
  FUZZ_EXPECT(each > 0 && frame.records.size() == each * frame.count);
  FUZZ_EXPECT(frame.base_ns >= 0 && frame.base_ns <= kNow + 1'000'000'000);
  for (const auto& kernel : frame.As<attach::KernelRecord>()) {
    FUZZ_EXPECT(kernel.name <= attach::kMaxActivityNames);
  }
  for (const auto& marker : frame.As<attach::MarkerRecord>()) {
    FUZZ_EXPECT(marker.domain <= attach::kMaxActivityNames);
  }
}

void CheckNames(const ActivityReader& reader) {
  for (uint32_t id = 0; id < 16; ++id) {
    std::string name(reader.names().Find(id));
    std::string again = name;
    MakePrintable(again);
    FUZZ_EXPECT(again == name);
  }
}

// Mostly where it hurts: the header and the first frames.
void Poke(fuzz::Input* input, TestActivityRing* ring) {
  size_t at = input->Take<uint16_t>() % (2 * attach::kActivityHeaderBytes);
  if (at >= attach::kActivityHeaderBytes / 2) at += attach::kActivityHeaderBytes / 2;
  auto value = input->Take<uint64_t>();
  size_t bytes = input->TakeIndex(8) + 1;
  std::memcpy(reinterpret_cast<std::byte*>(&ring->header()) + at, &value, bytes);
}

template <class Record>
void Put(fuzz::Input* input, TestActivityRing* ring) {
  Record record{};
  const std::string bytes(input->TakePiece(sizeof record));
  std::memcpy(&record, bytes.data(), bytes.size());
  ring->writer().Add(record, kNow);
}

void PutAny(fuzz::Input* input, TestActivityRing* ring) {
  switch (input->TakeIndex(9)) {
    case 0:
      return ring->PutKernel(input->Take<int64_t>(),
                             std::string(input->TakePiece(input->Take<uint8_t>() % 64)).c_str());
    case 1:
      return Put<attach::KernelRecord>(input, ring);
    case 2:
      return Put<attach::CommunicationRecord>(input, ring);
    case 3:
      return Put<attach::ApiRecord>(input, ring);
    case 4:
      return Put<attach::MarkerRecord>(input, ring);
    case 5:
      return Put<attach::ExternalCorrelationRecord>(input, ring);
    case 6:
      return Put<attach::MemoryRecord>(input, ring);
    case 7:
      return Put<attach::LossRecord>(input, ring);
    default:
      for (int i = input->Take<uint16_t>() % 8192; i > 0; --i) ring->PutKernel(kNow);
  }
}

}  // namespace

void fuzz::Run(Input input) {
  TestActivityRing ring;
  ActivityScratch scratch;
  std::unique_ptr<ActivityReader> reader;
  auto map = [&] {
    auto mapped = ActivityReader::Map(UniqueFd(::dup(ring.fd().get())));
    reader = mapped.ok() ? std::move(mapped).value() : nullptr;
  };
  map();
  for (int i = 0; i < 64 && !input.empty(); ++i) {
    switch (input.TakeIndex(5)) {
      case 0:
        Poke(&input, &ring);
        break;
      case 1:
        map();
        break;
      case 2:
        PutAny(&input, &ring);
        break;
      case 3:
        ring.writer().Flush();
        break;
      default: {
        if (reader == nullptr) break;
        size_t most = attach::kMaxFrameBytes << (input.Take<uint8_t>() % 5);
        Result<ActivityReader::Round> round = reader->Take(most, kNow, &scratch);
        if (!round.ok()) {
          FUZZ_EXPECT(round.status().code() == StatusCode::kDataLoss);
          reader.reset();
          break;
        }
        FUZZ_EXPECT(reader->Waiting() <= reader->capacity());
        size_t bytes = 0;
        for (const ActivityFrame& frame : scratch.frames()) {
          CheckFrame(frame);
          bytes += frame.records.size() + attach::kFrameHeadBytes;
        }
        FUZZ_EXPECT(bytes <= most && bytes <= round->bytes);
        CheckNames(*reader);
      }
    }
  }
}

}  // namespace profd
