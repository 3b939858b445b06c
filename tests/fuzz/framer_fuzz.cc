// Input: channel, then runs of "length of the next read" and its bytes.
#include <vector>

#include "driver/framer.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

void CheckResult(const abi::ChannelFormat& format, const FrameResult& result, size_t offered,
                 const std::vector<std::byte>& buffer) {
  FUZZ_EXPECT(result.good_bytes + result.tail_bytes <= offered);
  FUZZ_EXPECT(result.tail_bytes <= Framer::kMaxTail);
  if (format.framing == abi::Framing::kBinary) {
    FUZZ_EXPECT(result.good_bytes == result.records * format.record_size);
    FUZZ_EXPECT(result.good_bytes + result.tail_bytes + result.garbage_bytes == offered);
  } else {
    FUZZ_EXPECT(format.opaque || result.good_bytes == 0 || buffer[result.good_bytes - 1] == std::byte{'\n'});
  }
}

}  // namespace

void fuzz::Run(Input input) {
  const abi::ChannelFormat& format =
      abi::kChannelFormats[input.TakeIndex(abi::kChannelFormats.size())];
  Framer framer(format);
  std::vector<std::byte> tail;
  while (true) {
    const bool last = input.empty();
    std::string_view piece = input.TakePiece(input.Take<uint16_t>() % 2048);
    std::vector<std::byte> buffer = tail;
    for (char c : piece) buffer.push_back(static_cast<std::byte>(c));
    FrameResult result = framer.Frame(buffer, last);
    CheckResult(format, result, tail.size() + piece.size(), buffer);
    if (last) {
      FUZZ_EXPECT(result.tail_bytes == 0);
      return;
    }
    auto begin = buffer.begin() + static_cast<std::ptrdiff_t>(result.good_bytes);
    tail.assign(begin, begin + static_cast<std::ptrdiff_t>(result.tail_bytes));
  }
}

}  // namespace profd
