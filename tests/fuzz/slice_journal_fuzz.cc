// Input: host/profd/slices.tsv. What was understood of it, written again, is understood the same way.
#include "dump/slice_journal.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {

void fuzz::Run(Input input) {
  SliceJournal journal = ParseSliceJournal(input.rest());
  std::string again;
  for (const SliceEntry& slice : journal.slices) {
    FUZZ_EXPECT(journal.Find(slice.path) != nullptr);
    again += ClosedLine(slice);
    if (slice.compressed) again += CompressedLine(slice);
    if (slice.aged) again += AgedLine(slice);
  }
  for (const auto& [file, slices] : journal.forgotten) again += ForgottenLine(slices);
  SliceJournal copy = ParseSliceJournal(again);
  FUZZ_EXPECT(copy.bad_lines == 0 && !copy.torn);
  FUZZ_EXPECT(copy.slices.size() == journal.slices.size());
  FUZZ_EXPECT(copy.forgotten.size() == journal.forgotten.size());
  for (size_t i = 0; i < copy.slices.size(); ++i) {
    FUZZ_EXPECT(copy.slices[i].path == journal.slices[i].path);
    FUZZ_EXPECT(copy.slices[i].bytes == journal.slices[i].bytes);
    FUZZ_EXPECT(copy.slices[i].crc32c == journal.slices[i].crc32c);
    FUZZ_EXPECT(copy.slices[i].aged == journal.slices[i].aged);
  }
}

}  // namespace profd
