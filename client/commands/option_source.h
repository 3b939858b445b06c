// The vendor's options as the command line gives them: flags made from the option table,
// PROFILING_OPTIONS, ACL switches.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profd/v1/profd.pb.h"
#include "proto/options/options.h"

namespace profd::client {

struct OptionSource {
  OptionSource();

  // By key of the table; unset = not given.
  std::map<std::string, std::optional<std::string>> flags;
  // TEXT, FILE, @FILE or -.
  std::optional<std::string> json;
  // Take PROFILING_OPTIONS of the environment.
  bool from_environment = false;
  // NAME=VALUE each.
  std::vector<std::string> acl;
  // Of proto/options/presets.h: for options that are not given in another way.
  std::optional<std::string> preset;
  bool best_effort = false;
  // stdin belongs to a command, and is not read.
  bool no_stdin = false;

  // Of the process: $PROFILING_OPTIONS, $ASCEND_WORK_PATH, where it runs. Empty = unset.
  std::string environment_json;
  std::string ascend_work_path;
  std::string working_directory;
};

// The same, ready to be sent.
struct VendorOptions {
  v1::ProfilingOptions options;
  std::string json;
  std::map<std::string, std::string> acl;
  // What the chip lacks of a preset is not an error.
  bool best_effort = false;
  // Flags that do not fit their field's type: wrong in any case, and judged here.
  std::vector<options::OptionInput> unfit;
  // Absolute directory of the dump on the caller's side; empty = not requested.
  std::string output;
};

// Reads files and stdin as asked. `problems` are of the command line: what a value may be is the
// daemon's business. A --options-json that does not begin as JSON does names a file.
VendorOptions ReadOptions(const OptionSource& source, std::vector<std::string>* problems);

// What is wrong with the flags that cannot be sent.
std::vector<Problem> UnfitProblems(const VendorOptions& vendor);

}  // namespace profd::client
