// Input: the longest text that is shown, then a line of /proc.
#include "collectors/proc/proc_text.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd {
namespace {

// Neither control bytes nor broken UTF-8 sequences: lead bytes are followed by as many others as
// they say.
void CheckClean(std::string_view text) {
  int follow = 0;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (follow > 0) {
      FUZZ_EXPECT((byte & 0xC0) == 0x80);
      --follow;
      continue;
    }
    FUZZ_EXPECT(byte >= 0x20 && byte != 0x7F);
    FUZZ_EXPECT((byte & 0xC0) != 0x80 && byte < 0xF8);
    follow = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
  }
  FUZZ_EXPECT(follow == 0);
}

}  // namespace

void fuzz::Run(Input input) {
  const size_t most = input.Take<uint8_t>();
  const std::string_view text = input.rest();
  const std::string label = CleanLabel(text, most);
  CheckClean(label);
  FUZZ_EXPECT(label.size() <= most * 4);
  std::string word;
  AppendWord(text, most, &word);
  CheckClean(word);
  FUZZ_EXPECT(word.find_first_of(" \t\n") == std::string::npos);
  std::string line;
  AppendPrintableLine(text, &line);
  FUZZ_EXPECT(line.find('\n') == line.size() - 1);

  PidStat stat;
  if (!ParsePidStat(text, &stat)) return;
  FUZZ_EXPECT(stat.comm.size() + stat.tail.size() <= text.size());
  std::string again;
  AppendStatLine(stat, &again);
  FUZZ_EXPECT(again.find('\n') == again.size() - 1);
  // A carriage return separates fields, and is shown as '?'.
  if (text.find('\r') != std::string_view::npos) return;
  PidStat reread;
  FUZZ_EXPECT(ParsePidStat(again, &reread));
  FUZZ_EXPECT(reread.pid == stat.pid && reread.ppid == stat.ppid && reread.flags == stat.flags &&
              reread.utime_ticks == stat.utime_ticks && reread.start_ticks == stat.start_ticks);
}

}  // namespace profd
