// Input: the files of a dump's directory (file_tree.h), links among them. The paths that its
// manifest names are opened too.
#include <unistd.h>

#include "dump/reader.h"
#include "tests/fuzz/file_tree.h"

namespace profd {

void fuzz::Run(Input input) {
  static fuzz::TreeDirectory tree;
  tree.Clear();
  fuzz::ForEachFile(input.rest(), [](std::string_view path, std::string_view content) {
    tree.Write(path, content);
  });
  Result<DumpReader> reader = DumpReader::OpenPath(tree.path());
  FUZZ_EXPECT(reader.ok());
  Result<std::vector<DumpReader::File>> files = reader->Files();
  if (files.ok()) {
    for (const DumpReader::File& file : *files) {
      // What is listed is a regular file of the dump: it opens and is as long as it says.
      Result<UniqueFd> fd = reader->OpenFile(file.path);
      FUZZ_EXPECT(fd.ok());
      FUZZ_EXPECT(::lseek(fd->get(), 0, SEEK_END) == static_cast<off_t>(file.bytes));
    }
  }
  Result<Manifest> manifest = reader->ReadManifest();
  if (!manifest.ok()) return;
  for (size_t i = 0; i < manifest->files.size() && i < 16; ++i) {
    reader->OpenFile(manifest->files[i].path).status().Ignore();
  }
}

}  // namespace profd
