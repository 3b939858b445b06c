// Input: a packet of the attach protocol, tried in both directions. What is understood must survive
// being written and read again, and what goes to a process must fit into a packet.
#include "proto/attach/attach_protocol.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::attach {
namespace {

template <class Any>
void Check(const Result<Any>& first, Result<Any> (*parse)(std::string_view)) {
  if (!first.ok()) {
    FUZZ_EXPECT(first.status().code() == StatusCode::kInvalidArgument);
    FUZZ_EXPECT(!first.status().message().empty());
    return;
  }
  const std::string text = Encode(*first);
  // Escaped anew a packet may have grown: only a reply is made to fit.
  if (text.size() > kMaxPacket) {
    FUZZ_EXPECT((std::is_same_v<Any, ToDaemon>));
    return;
  }
  const Result<Any> second = parse(text);
  FUZZ_EXPECT(second.ok());
  FUZZ_EXPECT(second.value().index() == first.value().index());
  FUZZ_EXPECT(Encode(*second) == text);
}

}  // namespace
}  // namespace profd::attach

void profd::fuzz::Run(Input input) {
  const std::string_view packet = input.rest();
  attach::Check(attach::ParseToDaemon(packet), attach::ParseToDaemon);
  attach::Check(attach::ParseToProcess(packet), attach::ParseToProcess);
  // As the process's own interpreter gives them.
  if (const auto threads = attach::ParseStackThreads(packet); threads.ok()) FUZZ_EXPECT(threads->size() <= attach::kMaxStackThreads);
}
