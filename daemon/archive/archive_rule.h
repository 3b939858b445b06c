// What [archive] means for one dump: whether it is loaded into the database, and under which name. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace profd {

struct DaemonConfig;

// What rules and names look at.
struct ArchiveSubject {
  std::string_view kind = {};  // "sessions", "recorder", "sampling"
  std::string_view job_id = {};
  std::string_view label = {};
  // Of the session; of all that were started together on many nodes.
  std::string_view session = {};
  uint32_t uid = 0;
  uint32_t segment = 1;
};

// Whether one of `which` is "all", the kind, or "job=PATTERN" or "label=PATTERN" with * and ? as in a shell.
bool IsArchived(const std::vector<std::string>& which, const ArchiveSubject& subject);

// The run's name by `pattern`. A session that was resumed has several dumps of the same ranks, which would replace
// each other: from the second on they have ".2", ... behind it. No control characters, at most kMaxRunName bytes.
inline constexpr size_t kMaxRunName = 200;
std::string ArchiveRunName(std::string_view pattern, const ArchiveSubject& subject, std::string_view host);

// "clickhouse://db.example.com:8123/profiles": an address without user, with the port; empty: it is none.
std::string DatabaseOf(std::string_view address);

// Ids of one request of a user's, and the part of the queue that may wait by requests of one user.
inline constexpr int kMaxArchiveIds = 256;
inline constexpr int kArchiveShareOfUser = 2;

// What is wrong with a name, with the variables of archive.run in it; empty: nothing.
std::string FaultOfRunName(std::string_view name);

// The pattern of a run that a user gives the name of. Where the operator's pattern keeps users apart, so does this.
std::string NamedRun(std::string_view pattern, std::string_view name);

// Appends what is wrong with [archive], each key of it.
void CheckArchive(const DaemonConfig& config, std::vector<std::string>* problems);

}  // namespace profd
