// Input: what a process does to its mark ring, and when the daemon reads: operations of a byte each with
// their operands. Whatever is in the ring, the reader stays inside it, takes no more than it was asked to,
// and what it hands on is a known kind with a printable name.

#include "daemon/jobs/ring_reader.h"
#include "daemon/jobs/test_support.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

constexpr int64_t kNow = 1'000'000'000'000;

void CheckMarks(const MarkScratch& scratch) {
  for (const Mark& mark : scratch.marks()) {
    FUZZ_EXPECT(mark.time_ns >= 0 && mark.time_ns <= kNow + 1'000'000'000);
    FUZZ_EXPECT(mark.kind >= attach::MarkKind::kMark && mark.kind <= attach::MarkKind::kStack);
    FUZZ_EXPECT(mark.name.size() <= attach::kMarkNameBytes);
    std::string again(mark.name);
    MakePrintable(again);
    FUZZ_EXPECT(again == mark.name);
  }
}

void Poke(fuzz::Input* input, TestRing* ring) {
  size_t at = input->Take<uint16_t>() % (attach::RingBytes(attach::kMinRingSlots) - 8);
  // Mostly where it hurts: the first slots and the header.
  auto value = input->Take<uint64_t>();
  auto* bytes = reinterpret_cast<std::byte*>(&ring->header());
  std::memcpy(bytes + at, &value, sizeof value);
}

}  // namespace

void fuzz::Run(Input input) {
  TestRing ring;
  MarkScratch scratch;
  std::unique_ptr<RingReader> reader;
  auto map = [&] {
    auto mapped = RingReader::Map(ring.fd());
    reader = mapped.ok() ? std::move(mapped).value() : nullptr;
  };
  bool early = (input.Take<uint8_t>() & 1) != 0;
  if (early) map();
  for (int i = 0; i < 64 && !input.empty(); ++i) {
    switch (input.TakeIndex(4)) {
      case 0:
        Poke(&input, &ring);
        break;
      case 1:
        map();
        break;
      case 2: {
        auto kind = static_cast<attach::MarkKind>(input.Take<uint8_t>());
        auto time = input.Take<int64_t>();
        ring.Put(kind, input.TakePiece(input.Take<uint8_t>() % 100), 1, time);
        break;
      }
      default: {
        if (reader == nullptr) break;
        size_t most = input.Take<uint8_t>();
        Result<RingReader::Round> round = reader->Take(most, kNow, &scratch);
        if (!round.ok()) {
          FUZZ_EXPECT(round.status().code() == StatusCode::kDataLoss);
          reader.reset();
          break;
        }
        FUZZ_EXPECT(round->slots <= most);
        FUZZ_EXPECT(scratch.marks().size() + round->bad == round->slots);
        FUZZ_EXPECT(reader->Waiting() <= reader->slots());
        CheckMarks(scratch);
      }
    }
  }
}

}  // namespace profd
