// Input: a command of profctl, flags, then what a hostile daemon answers: records of "which answer,
// length" (8 and 16 bits) and its message as it comes over the wire. Whatever it is, profctl ends
// and nothing that reaches the terminal can drive it.
#include <google/protobuf/stubs/logging.h>

#include <cstdlib>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include "client/test_support.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::client {
namespace {

constexpr const char* kId = "0123456789ab";

const std::vector<std::vector<std::string>>& Commands() {
  static const std::vector<std::vector<std::string>> commands = {
      {"status"},
      {"devices"},
      {"devices", "--channels"},
      {"collectors"},
      {"jobs"},
      {"jobs", "--job", "j"},
      {"list"},
      {"list", "--dumps"},
      {"show", kId},
      {"watch", kId},
      {"options"},
      {"check", "--sys-io-sampling-freq", "50"},
      {"stop", kId},
      {"rm", kId},
      {"pin", kId},
      {"stream"},
      {"stream", "--count", "5"},
      {"start", "--all", "--collector", "host_mem", "--detach"},
      {"stacks"},
      {"stacks", "--all"},
  };
  return commands;
}

template <class Message>
bool Parse(std::string_view bytes, Message* out) {
  return out->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}
template <class Message>
void Queue(std::string_view bytes, std::deque<Message>* out) {
  Message message;
  if (Parse(bytes, &message) && out->size() < 64) out->push_back(std::move(message));
}

void TakeAnswer(uint8_t which, std::string_view bytes, FakeDaemon* daemon) {
  v1::Session session;
  switch (which % 11) {
    case 0: Parse(bytes, &daemon->node); break;
    case 1: Parse(bytes, &daemon->jobs); break;
    case 2: Parse(bytes, &daemon->options); break;
    case 3: Parse(bytes, &daemon->checked); break;
    case 4: Parse(bytes, &daemon->dumps); break;
    case 5: Parse(bytes, &daemon->pinned); break;
    case 6: if (Parse(bytes, &session)) daemon->sessions[kId] = session; break;
    case 7: Queue(bytes, &daemon->watch); break;
    case 8: Queue(bytes, &daemon->samples); break;
    case 9: Parse(bytes, &daemon->stacks); break;
    default: daemon->error = {static_cast<StatusCode>(bytes.size() % 16 + 1), std::string(bytes)}; break;
  }
}

void CheckPrintable(std::string_view text) {
  for (char c : text)
    FUZZ_EXPECT((static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) || c == '\n');
  // Neither C1 controls nor text that runs backwards.
  for (size_t at = text.find('\xc2'); at != std::string_view::npos;
       at = text.find('\xc2', at + 1)) {
    FUZZ_EXPECT(at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0);
  }
  FUZZ_EXPECT(text.find("\xe2\x80\xae") == std::string_view::npos);
}

void Run(fuzz::Input input) {
  const std::vector<std::string>& command = Commands()[input.TakeIndex(Commands().size())];
  const auto flags = input.Take<uint8_t>();
  FakeDaemon daemon;
  while (!input.empty()) {
    const auto which = input.Take<uint8_t>();
    TakeAnswer(which, input.TakePiece(input.Take<uint16_t>()), &daemon);
  }
  daemon.on_start = [&daemon](const v1::SessionSpec&) -> Result<v1::Session> {
    return daemon.sessions[kId];
  };
  std::vector<std::string> arguments = command;
  if ((flags & 1) != 0) arguments.emplace_back("--json");
  std::ostringstream out;
  std::ostringstream err;
  Io io{out, err};
  ManualClock clock;
  Environment environment{io, clock,
                          [&daemon](const Endpoint&, std::optional<int64_t>) {
                            return std::make_unique<FakeApi>(daemon);
                          },
                          "", "/usr/bin:/bin"};
  const int code = RunProfctl(arguments, environment);
  FUZZ_EXPECT(code >= 0 && code < 128);
  CheckPrintable(out.str());
  CheckPrintable(err.str());
}

}  // namespace
}  // namespace profd::client

void profd::fuzz::Run(Input input) {
  // A line for every text that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  static const bool in_utc = ::setenv("TZ", "UTC", 1) == 0;
  if (in_utc) client::Run(input);
}
