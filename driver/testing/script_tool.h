// Programs of a test's own making: shell scripts in a temporary folder that goes with the test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/testing/temp_dir.h"

namespace profd::testing {

class ScriptFolder {
 public:
  std::string Path(std::string_view name) const { return root_ / name; }
  std::string Write(std::string_view name, std::string_view body) const {
    const std::string path = root_.Write(name, "#!/bin/sh\n" + std::string(body) + "\n");
    std::filesystem::permissions(path, std::filesystem::perms{0755});
    return path;
  }
  std::string Read(std::string_view name) const { return ReadText(Path(name)); }

 private:
  TempDir root_;
};

}  // namespace profd::testing
