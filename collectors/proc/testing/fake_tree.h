// A directory tree in a temporary place that plays /proc or /sys in tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/testing/temp_dir.h"

namespace profd::testing {

class FakeTree {
 public:
  const std::string& root() const { return root_.path(); }
  // Replaces the contents in place, so that open descriptors see them, as in /proc.
  void Write(std::string_view path, std::string_view text) {
    std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text;
    if (!out.flush()) ADD_FAILURE() << "cannot write " << file;
  }
  void Remove(std::string_view path) {
    std::filesystem::remove_all(root_ / path);
  }
  void MakeFolder(std::string_view path) {
    std::filesystem::create_directories(root_ / path);
  }
  void Link(std::string_view path, std::string_view target) {
    std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(target, file);
  }

 private:
  TempDir root_;
};

}  // namespace profd::testing
