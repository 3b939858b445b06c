// Input: files (file_tree.h) of /proc/42, from which the threads of process 42 are read. Whatever is in them, texts can
// be shown and the list is bounded.
#include "daemon/jobs/thread_facts.h"
#include "driver/rooted_fs.h"
#include "tests/fuzz/file_tree.h"

namespace profd {
namespace {

void CheckShown(const std::string& text) {
  for (char c : text) FUZZ_EXPECT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

}  // namespace

void fuzz::Run(Input input) {
  static fuzz::TreeDirectory tree;
  tree.Clear();
  tree.Write("42/stat", "42 (train) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 700 0\n");
  fuzz::ForEachFile(input.rest(), [&](std::string_view path, std::string_view content) { tree.Write(path, content); });
  const auto proc = RootedFs::OpenRoot(tree.path());
  FUZZ_EXPECT(proc.ok());
  const auto threads = ReadThreads(*proc, 42, 700);
  if (!threads.ok()) return;
  FUZZ_EXPECT(threads->threads.size() <= kMaxShownThreads);
  for (const ThreadFacts& thread : threads->threads) {
    CheckShown(thread.name);
    CheckShown(thread.kernel_function);
    CheckShown(thread.system_call);
    CheckShown(thread.file);
    FUZZ_EXPECT(thread.file.empty() || !thread.system_call.empty());
  }
}

}  // namespace profd
