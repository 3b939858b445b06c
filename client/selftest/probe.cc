#include "client/selftest/probe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "client/fleet/run_program.h"

namespace profd::client::selftest {
namespace {

constexpr size_t kMaxOutput = 256 << 10;
constexpr size_t kMaxLines = 1000;

}  // namespace

std::string FindProbe() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return {};
  for (const std::filesystem::path& program : {folder / "profd-probe", folder.parent_path() / "libexec/profd/profd-probe"}) {
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

ProbeAnswer ParseProbe(const std::string& text) {
  ProbeAnswer answer;
  std::string_view rest = text;
  for (std::string_view line; NextLine(&rest, &line) && answer.lines.size() < kMaxLines;) {
    const size_t blank = std::min(line.find(' '), line.size());
    answer.lines.emplace_back(line.substr(0, blank), line.substr(std::min(blank + 1, line.size())));
  }
  return answer;
}

ProbeAnswer RunProbe(const std::string& program, const std::vector<std::string>& arguments, int64_t deadline_ms) {
  if (program.empty()) return {NotFound("profd-probe is not installed beside profctl (package profctl)")};
  std::vector<std::string> argv = {program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  Result<std::string> text = RunProgram(argv, "", {deadline_ms, kMaxOutput});
  if (!text.ok()) {
    const bool late = text.status().code() == StatusCode::kDeadlineExceeded;
    return {late ? DeadlineExceeded(fmt::format("the library did not answer in {:g} s, its process was ended", static_cast<double>(deadline_ms) / 1e3)) : text.status().Annotate("the library's process")};
  }
  return ParseProbe(*text);
}

}  // namespace profd::client::selftest
