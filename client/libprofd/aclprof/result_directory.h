// The directory that the vendor's profiler writes into: made in this process's own view of the file system, handed over
// as a descriptor, and removed again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace profd::lib::aclprof {

class ResultDirectory {
 public:
  ResultDirectory() = default;
  ~ResultDirectory() { Remove(); }
  ResultDirectory(const ResultDirectory&) = delete;
  ResultDirectory& operator=(const ResultDirectory&) = delete;

  // In $PROFD_COLLECT_DIR, else $TMPDIR, else /tmp; 0700, with the session's id in its name. Empty: made. Otherwise why
  // not, and what to do. Removes what processes of this user that were killed have left there.
  std::string Make(const std::string& session, uint64_t least_free_bytes);
  // With everything below it, if this process made it. Links are removed, not followed.
  void Remove();

  bool made() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  uint64_t free_bytes() const { return free_bytes_; }  // on its volume when it was made
  int fd() const { return fd_; }
  // Whether a profiler has put anything into it.
  bool empty() const;

 private:
  std::string path_;
  uint64_t free_bytes_ = 0;
  int fd_ = -1;
  pid_t maker_ = 0;
};

}  // namespace profd::lib::aclprof
