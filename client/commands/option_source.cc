#include "client/commands/option_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/text.h"
#include "client/commands/start_parse.h"
#include "client/parse.h"
#include "proto/options/options_message.h"
#include "proto/options/presets.h"

namespace profd::client {
namespace {

// All of it, or a byte more than is accepted: the daemon then reports the limit.
Result<std::string> ReadAll(int fd, const std::string& name) {
  std::string text;
  char buffer[4096];
  while (text.size() <= options::kMaxJsonBytes) {
    ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status::FromErrno(errno, name);
    if (count == 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

Result<std::string> ReadJsonFile(const std::string& path) {
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Status::FromErrno(errno, path);
  return ReadAll(file.get(), path);
}

bool LooksLikeJson(std::string_view text) {
  text = Trim(text);
  return text.empty() || text.front() == '{' || text.front() == '[' || text.front() == '"';
}

Result<std::string> ReadJson(const OptionSource& source) {
  const std::string& value = *source.json;
  if (value == "-") {
    if (source.no_stdin) return InvalidArgument("-: stdin is the command's; name a file");
    return ReadAll(STDIN_FILENO, "stdin");
  }
  if (value.starts_with('@')) return ReadJsonFile(value.substr(1));
  if (!LooksLikeJson(value)) return ReadJsonFile(value);
  return value;
}

void TakeJson(const OptionSource& source, VendorOptions* vendor, std::vector<std::string>* problems) {
  if (source.json && source.from_environment) {
    problems->emplace_back("--options-json and --options-env: give one of them");
    return;
  }
  if (source.from_environment) {
    if (source.environment_json.empty()) {
      problems->emplace_back("--options-env: PROFILING_OPTIONS is not set");
    }
    vendor->json = source.environment_json;
    return;
  }
  if (!source.json) return;
  auto text = ReadFlag("--options-json", ReadJson(source), problems);
  if (!text) return;
  if (Trim(*text).empty()) {
    // On the wire nothing would mean "not given".
    problems->emplace_back("--options-json is empty; write an object, as in {\"l2\":\"on\"}");
  } else {
    vendor->json = std::move(*text);
  }
}

void TakeAcl(const OptionSource& source, VendorOptions* vendor, std::vector<std::string>* problems) {
  for (const std::string& text : source.acl) {
    const auto pair = ReadFlag("--acl", ParsePair(text), problems);
    if (!pair) continue;
    auto [known, added] = vendor->acl.insert(*pair);
    if (!added && known->second != pair->second) {
      problems->push_back(fmt::format("--acl {}: given twice, as \"{}\" and \"{}\"", pair->first,
                                      known->second, pair->second));
    }
  }
}

// Options that are given by name win over the preset's.
void TakePreset(const OptionSource& source, VendorOptions* vendor, std::vector<std::string>* problems) {
  vendor->best_effort = source.best_effort || source.preset.has_value();
  if (!source.preset) return;
  const options::Preset* preset = options::FindPreset(*source.preset);
  if (preset == nullptr) {
    problems->push_back(fmt::format("--preset \"{}\": must be one of {}", *source.preset,
                                    options::PresetNames()));
    return;
  }
  std::vector<options::OptionInput> given = options::FromMessage(vendor->options);
  std::vector<Problem> ignored;
  std::vector<std::string> warnings;
  if (!vendor->json.empty()) options::ParseJson(vendor->json, &given, &ignored);
  options::FromAclSwitches(vendor->acl, /*with_defaults=*/false, &given, &ignored, &warnings);
  given.insert(given.end(), vendor->unfit.begin(), vendor->unfit.end());
  for (const auto& [key, value] : preset->options) {
    const bool named = std::ranges::any_of(given, [key = key](const options::OptionInput& one) { return one.key == key; });
    if (!named) (void)options::SetField(key, value, &vendor->options);
  }
}

// The value of `output`, where it is valid; problems of it are reported with those of the other options.
std::string GivenOutput(const VendorOptions& vendor) {
  options::CheckRequest request;
  std::vector<Problem> ignored;
  if (vendor.options.has_output()) {
    request.given.push_back({.key = "output", .value = vendor.options.output()});
  } else if (!vendor.json.empty()) {
    std::vector<options::OptionInput> given;
    options::ParseJson(vendor.json, &given, &ignored);
    for (options::OptionInput& one : given) {
      if (one.key == "output") request.given.push_back(std::move(one));
    }
  }
  return options::Check(request).options.Text("output");
}

std::string Absolute(const OptionSource& source, const std::string& path) {
  if (path.starts_with('/') || source.working_directory.empty()) return path;
  return source.working_directory + "/" + path;
}

std::string OutputOf(const OptionSource& source, const VendorOptions& vendor,
                     std::vector<std::string>* problems) {
  std::string output = GivenOutput(vendor);
  if (!output.empty()) return Absolute(source, output);
  if (source.ascend_work_path.empty()) return "";
  options::CheckRequest request;
  request.given = {{.key = "output", .value = source.ascend_work_path + "/profiling_data"}};
  options::CheckResult result = options::Check(request);
  for (const Problem& problem : result.problems) {
    problems->push_back("ASCEND_WORK_PATH: " + Describe(problem));
  }
  return result.ok() ? Absolute(source, result.options.Text("output")) : "";
}

}  // namespace

OptionSource::OptionSource() {
  for (const options::Option& option : options::Table()) flags[std::string(option.key)];
}

VendorOptions ReadOptions(const OptionSource& source, std::vector<std::string>* problems) {
  VendorOptions vendor;
  for (const options::Option& option : options::Table()) {
    auto flag = source.flags.find(std::string(option.key));
    if (flag == source.flags.end() || !flag->second) continue;
    if (!options::SetField(option.key, *flag->second, &vendor.options)) {
      vendor.unfit.push_back(
          {.key = std::string(option.key), .value = *flag->second, .via = options::OptionSyntax::kFlag});
    }
  }
  TakeJson(source, &vendor, problems);
  TakeAcl(source, &vendor, problems);
  TakePreset(source, &vendor, problems);
  vendor.output = OutputOf(source, vendor, problems);
  return vendor;
}

std::vector<Problem> UnfitProblems(const VendorOptions& vendor) {
  std::vector<Problem> problems;
  for (const options::OptionInput& given : vendor.unfit) {
    // One by one: what they need of each other is not the point.
    options::CheckRequest request;
    request.given = {given};
    options::CheckResult result = options::Check(request);
    problems.insert(problems.end(), result.problems.begin(), result.problems.end());
    if (result.ok()) {
      problems.push_back({.kind = Problem::Kind::kInvalid,
                          .field = given.key,
                          .text = "does not fit its field; must be " +
                                  options::RangeText(*options::Find(given.key))});
    }
  }
  return problems;
}

}  // namespace profd::client
