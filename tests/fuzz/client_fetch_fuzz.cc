// Input: the chunks of a fetched dump as they come over the wire, each with its length before it.
// Nothing may be written outside the directory of the dump.
#include <filesystem>

#include "client/dump_sink.h"
#include "client/json.h"
#include "tests/fuzz/file_tree.h"

namespace profd::client {
namespace {

void Run(fuzz::Input input) {
  static fuzz::TreeDirectory tree;
  tree.Clear();
  tree.Write("beside", "not the sink's");
  const std::string out_dir = tree.path() + "/out";
  {
    DumpSink sink(out_dir);
    Status status;
    for (int chunks = 0; !input.empty() && status.ok() && chunks < 64; ++chunks) {
      std::string_view bytes = input.TakePiece(input.Take<uint16_t>());
      v1::DumpChunk chunk;
      // Of what is not a message the part that could be read is as good as any.
      static_cast<void>(chunk.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
      for (char c : JsonText(ToJson(chunk), false)) FUZZ_EXPECT(c >= 0x20 && c < 0x7F);
      status = sink.Write(chunk);
    }
    if (status.ok()) status = sink.Finish();
    if (status.ok()) {
      FUZZ_EXPECT(sink.received_bytes() == sink.total_bytes());
    } else {
      sink.Discard();
      std::error_code ignored;
      FUZZ_EXPECT(std::filesystem::is_empty(out_dir, ignored) || ignored);
    }
  }
  // Nothing came beside it.
  size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tree.path())) {
    FUZZ_EXPECT(entry.path().filename() == "beside" || entry.path().filename() == "out");
    ++entries;
  }
  FUZZ_EXPECT(entries <= 2);
}

}  // namespace
}  // namespace profd::client

void profd::fuzz::Run(Input input) { client::Run(input); }
