// What [archive] says of one dump: whether it is loaded into the database, and under which name. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

struct DaemonConfig;

// What rules and names look at.
struct ArchiveSubject {
  std::string_view kind;  // "sessions", "recorder", "sampling"
  std::string_view job_id;
  std::string_view label;
  // Of the session; of all that were started together on many nodes.
  std::string_view session;
  uint32_t uid = 0;
  uint32_t segment = 1;
};

// Whether one of `which` is "all", the kind, or "job=PATTERN" or "label=PATTERN" with * and ? as in a shell.
bool IsArchived(const std::vector<std::string>& which, const ArchiveSubject& subject);

// The run's name by `pattern`. A session that was resumed has several dumps of the same ranks, which would replace
// each other: from the second on they have ".2", ... behind it. No control characters, at most kMaxRunName bytes.
inline constexpr size_t kMaxRunName = 200;
std::string ArchiveRunName(std::string_view pattern, const ArchiveSubject& subject, std::string_view host);

// Appends what is wrong with [archive], each key of it.
void CheckArchive(const DaemonConfig& config, std::vector<std::string>* problems);

}  // namespace profd
