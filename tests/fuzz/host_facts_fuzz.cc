// Input: files (file_tree.h) with absolute names, from which the host's info.json is made.
#include <map>
#include <string>

#include "dump/control_files.h"
#include "tests/fuzz/file_tree.h"

namespace profd {

void fuzz::Run(Input input) {
  std::map<std::string, std::string> files;
  fuzz::ForEachFile(input.rest(), [&](std::string_view path, std::string_view content) {
    files["/" + std::string(path)] = content;
  });
  HostFactSources sources;
  sources.read = [&](std::string_view path) -> Result<std::string> {
    auto found = files.find(std::string(path));
    if (found == files.end()) return NotFound(std::string(path));
    return found->second;
  };
  sources.list = [&](std::string_view path) {
    std::vector<std::string> names;
    const std::string prefix = std::string(path) + "/";
    for (const auto& [name, content] : files) {
      if (!name.starts_with(prefix)) continue;
      names.push_back(name.substr(prefix.size(), name.find('/', prefix.size()) - prefix.size()));
    }
    return names;
  };
  sources.machine = "aarch64";
  NodeFacts facts = CollectHostFacts(sources);
  SessionFacts session;
  session.session_id = "1";
  // The vendor's reader takes the first line only.
  const std::string info = InfoJson(facts, session, nullptr);
  FUZZ_EXPECT(info.find('\n') == std::string::npos || info.find('\n') == info.size() - 1);
  for (char c : info) FUZZ_EXPECT(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
}

}  // namespace profd
