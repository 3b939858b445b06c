// A directory tree in a temporary place that plays /proc or /sys in tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace profd::testing {

class FakeTree {
 public:
  FakeTree() {
    std::string pattern = (std::filesystem::temp_directory_path() / "profd_tree_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary directory";
    root_ = pattern;
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::string& root() const { return root_; }
  // Replaces the contents in place, so that open descriptors see them, as in /proc.
  void Write(std::string_view path, std::string_view text) {
    std::filesystem::path file = root_ / std::filesystem::path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text;
    if (!out.flush()) ADD_FAILURE() << "cannot write " << file;
  }
  void Remove(std::string_view path) {
    std::filesystem::remove_all(root_ / std::filesystem::path(path));
  }
  void MakeFolder(std::string_view path) {
    std::filesystem::create_directories(root_ / std::filesystem::path(path));
  }
  void Link(std::string_view path, std::string_view target) {
    std::filesystem::path file = root_ / std::filesystem::path(path);
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(target, file);
  }

 private:
  std::string root_;
};

}  // namespace profd::testing
