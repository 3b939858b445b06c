// Input: an argument of profctl, and text of the daemon's that goes to a terminal.
#include "client/commands/export_parse.h"
#include "client/commands/start_parse.h"
#include "client/endpoint.h"
#include "client/parse.h"
#include "client/render.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::client {
namespace {

void CheckPrintable(std::string_view text, bool lines) {
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    FUZZ_EXPECT((byte >= 0x20 && byte != 0x7F) || (lines && c == '\n'));
  }
}

void Run(fuzz::Input input) {
  const std::string_view text = input.rest();
  if (Result<uint64_t> ms = ParseDurationMs(text); ms.ok()) FUZZ_EXPECT(*ms > 0);
  if (Result<std::vector<uint32_t>> devices = ParseDevices(text); devices.ok()) {
    // "0-4294967295" must not make a list of that length.
    FUZZ_EXPECT(!devices->empty() && devices->size() <= 65536 + text.size());
  }
  if (Result<NamedRate> rate = ParseNamedRate(text); rate.ok()) {
    FUZZ_EXPECT(!rate->name.empty() && rate->hz >= 0);
  }
  if (Result<std::vector<uint32_t>> ranks = ParseRanks(text); ranks.ok()) {
    FUZZ_EXPECT(!ranks->empty() && ranks->size() <= 65536);
  }
  if (Result<int64_t> instant = ParseInstant(text); instant.ok()) FUZZ_EXPECT(*instant > 0);
  if (Result<uint64_t> ago = ParseAgoMs(text); ago.ok()) FUZZ_EXPECT(*ago > 0);
  if (auto pair = ParsePair(text); pair.ok()) {
    FUZZ_EXPECT(pair->first.size() + 1 + pair->second.size() == text.size());
  }
  if (Result<int32_t> pid = ParsePid(text); pid.ok()) FUZZ_EXPECT(*pid > 0);
  if (Result<std::vector<std::string>> list = ParseList(text); list.ok()) {
    for (const std::string& item : *list) FUZZ_EXPECT(!item.empty());
  }
  if (Result<TimePoint> point = ParseTimePoint(text); point.ok()) FUZZ_EXPECT(!text.empty());
  if (Result<std::string> address = ParseAddress(std::string(text)); address.ok()) {
    FUZZ_EXPECT(!HostOf(*address).empty() && !PortOf(*address).empty());
    Result<std::string> again = ParseAddress(*address);
    FUZZ_EXPECT(again.ok() && *again == *address);
  }
  CheckPrintable(Printable(text), false);
  CheckPrintable(PrintableLines(text), true);
  FUZZ_EXPECT(DisplayWidth(Printable(text)) <= 8 * text.size());
}

}  // namespace
}  // namespace profd::client

void profd::fuzz::Run(Input input) { client::Run(input); }
