// Inputs that stand for a directory: text whose lines "=== PATH" each begin a file. Written below a
// temporary directory of the process, which is emptied for every input.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/text.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::fuzz {

inline constexpr std::string_view kFileMark = "=== ";

// Calls visit(path, content) for each file of the input.
template <class Visit>
void ForEachFile(std::string_view text, Visit visit) {
  while (!text.empty()) {
    std::string_view line;
    NextLine(&text, &line);
    if (!line.starts_with(kFileMark)) continue;
    size_t end = text.starts_with(kFileMark) ? 0 : text.find("\n=== ");
    std::string_view content = end == std::string_view::npos ? text
                               : end == 0                    ? text.substr(0, 0)
                                                             : text.substr(0, end + 1);
    visit(line.substr(kFileMark.size()), content);
    text.remove_prefix(content.size());
  }
}

class TreeDirectory {
 public:
  // More than this of one input is left out: the file system is not what is tried here.
  static constexpr int kMaxFiles = 64;

  TreeDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "profd_fuzz_XXXXXX").string();
    FUZZ_EXPECT(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TreeDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TreeDirectory(const TreeDirectory&) = delete;
  TreeDirectory& operator=(const TreeDirectory&) = delete;

  const std::string& path() const { return path_; }
  void Clear() {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
      std::filesystem::remove_all(entry.path(), ignored);
    }
    files_ = 0;
  }
  // Never leaves the directory; a path that cannot be is left out. "PATH -> TARGET" is a symlink.
  void Write(std::string_view where, std::string_view content) {
    size_t arrow = where.find(" -> ");
    std::string_view name = where.substr(0, arrow);
    if (!IsInside(name) || ++files_ > kMaxFiles) return;
    std::error_code failed;
    std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path(), failed);
    // A link that an earlier file made must not lead this one elsewhere.
    if (failed ||
        std::filesystem::weakly_canonical(file.parent_path(), failed) != file.parent_path() ||
        std::filesystem::is_symlink(file, failed)) {
      return;
    }
    if (arrow != std::string_view::npos) {
      std::filesystem::create_symlink(where.substr(arrow + 4), file, failed);
      return;
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
  }

 private:
  static bool IsInside(std::string_view name) {
    if (name.empty() || name.size() > 200 || name.find('\0') != std::string_view::npos)
      return false;
    for (const auto& part : std::filesystem::path(name)) {
      if (part == ".." || part == "/") return false;
    }
    return name.back() != '/';
  }

  std::string path_;
  int files_ = 0;
};

}  // namespace profd::fuzz
