#include "client/cli_message.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

namespace profd::client {
namespace {

struct Flag {
  std::string_view field;
  std::string_view flag;
  std::optional<std::string> StartOptions::*written = nullptr;
};
constexpr auto kFlags = std::to_array<Flag>({
    {"start_at_ns", "--at", &StartOptions::at},
    {"start_in_ms", "--in", &StartOptions::in},
    {"start_step", "--start-step", &StartOptions::start_step},
    {"start_in_steps", "--start-step +N", &StartOptions::start_step},
    {"steps", "--steps", &StartOptions::steps},
    {"since_ms", "--since", &StartOptions::since},
    {"duration_ms", "--duration", &StartOptions::duration},
    {"lease_ms", "--lease", &StartOptions::lease},
    {"job_id", "--job", &StartOptions::job},
    {"all", "--all"},
    {"devices", "--devices"},
    {"pids", "--pid"},
    {"end_with_pid", "--end-with-pid", &StartOptions::end_with_pid},
    {"provider", "--provider"},
    {"no_dump", "--no-dump"},
});

}  // namespace

FieldNames NamesOf(const StartOptions& options) {
  return [&options](std::string_view field) -> std::optional<WrittenField> {
    const auto* known = std::ranges::find(kFlags, field, &Flag::field);
    if (known == kFlags.end()) return std::nullopt;
    WrittenField written = {.name = std::string(known->flag), .value = std::nullopt};
    if (known->written != nullptr) written.value = options.*known->written;
    // Of several the field with its value says which one is meant.
    if (field == "pids" && options.pids.size() == 1) written.value = options.pids.front();
    // "--start-step +20": the value has the sign.
    if (field == "start_in_steps" && written.value && written.value->starts_with('+')) written.name = "--start-step";
    return written;
  };
}

FieldNames NameOf(std::string_view field, std::string_view flag, const std::optional<std::string>& value) {
  return [field, flag, &value](std::string_view name) -> std::optional<WrittenField> {
    if (name != field) return std::nullopt;
    return WrittenField{.name = std::string(flag), .value = value};
  };
}

FieldNames NamesOf(const DumpOptions& options) {
  return [devices = NameOf("devices", "--devices", options.devices), last = NameOf("last_ms", "--last", options.last)](std::string_view field) {
    const std::optional<WrittenField> written = devices(field);
    return written ? written : last(field);
  };
}

Status ToCliMessage(const Status& status, const FieldNames& names) {
  if (status.problems().empty()) return status;
  return {status.code(), DescribeForCli(status.problems(), names)};
}

std::string DescribeForCli(std::span<const Problem> problems, const FieldNames& names) {
  std::string lines;
  for (const Problem& problem : problems) {
    if (!lines.empty()) lines += '\n';
    lines += Describe(problem, names);
    if (problem.kind == Problem::Kind::kNeedsProcess) lines += "; see `profctl jobs`";
    if (problem.field == "collector" && problem.kind == Problem::Kind::kInvalid) lines += "; see `profctl collectors`";
  }
  return lines;
}

Status SeeIfNotFound(const Status& status, std::string_view command) {
  if (status.code() != StatusCode::kNotFound || !status.problems().empty()) return status;
  return NotFound(fmt::format("{}; see `{}`", status.message(), command));
}

Status WithFetchHint(const Status& status, std::span<const std::string> paths) {
  constexpr size_t kIdLength = 12;
  const auto is_meant = [](const std::string& path) {
    const bool id = path.size() == kIdLength && path.find_first_not_of("0123456789abcdef") == std::string::npos;
    return (id || (path.starts_with("PROF_") && path.find('/') == std::string::npos)) && ::access(path.c_str(), F_OK) != 0;
  };
  const auto meant = std::ranges::find_if(paths, is_meant);
  if (status.code() != StatusCode::kNotFound || meant == paths.end()) return status;
  return NotFound(fmt::format("{}; `profctl fetch {}` copies it here from the node", status.message(), *meant));
}

}  // namespace profd::client
