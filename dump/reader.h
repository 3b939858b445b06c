// Reading a finished or running dump back: its files one by one, and its manifest. Treats
// everything in the directory as untrusted, for the owner may have put it there: links, pipes,
// devices and files that are not the owner's are never opened.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/dump_io.h"
#include "dump/dump_root.h"
#include "dump/manifest.h"

namespace profd {

class DumpReader {
 public:
  static Result<DumpReader> Open(const DumpRoot& root, std::string_view name);
  // Of a run all of its PROF directories.
  static Result<DumpReader> OpenWhole(const DumpRoot& root, std::string_view name);
  // Any directory: a dump that was fetched or copied.
  static Result<DumpReader> OpenPath(const std::string& path);

  struct File {
    std::string path;  // relative, '/'-separated, every component an IsSafeName; TodaysPath
    uint64_t bytes = 0;
  };
  // What a listing may become; more is kOutOfRange.
  struct ListLimits {
    size_t entries = TreeLimits().entries;  // files, folders and whatever else there is
    size_t name_bytes = SIZE_MAX;           // of the paths of files
  };
  // What Files leaves out.
  struct NotRead {
    uint64_t files = 0;  // regular ones, for what they hold may be another's
    std::string first;   // its path
    // Neither file nor folder, a name that no file of a dump has, or a folder beside those of a dump.
    std::vector<TreeEntry> strange;
    std::string What() const;
  };
  // Regular files in path order; others are left out.
  Result<std::vector<File>> Files(const ListLimits& limits, NotRead* not_read = nullptr) const;
  Result<std::vector<File>> Files(NotRead* not_read = nullptr) const { return Files(ListLimits(), not_read); }
  // Opens a file for reading beneath the dump, component by component.
  Result<UniqueFd> OpenFile(std::string_view path_untrusted) const;
  Result<Manifest> ReadManifest() const;
  // Is there a PROF directory of this name beside the dump?
  bool HasBeside(std::string_view name_untrusted) const;

 private:
  static Result<DumpReader> Of(Result<UniqueFd> dir);
  Result<UniqueFd> OpenBelow(std::string_view path_untrusted) const;
  DumpReader(UniqueFd dir, uid_t uid) : dir_(std::move(dir)), uid_(uid) {}

  UniqueFd dir_;
  uid_t uid_;  // of the dump's directory
};

}  // namespace profd
