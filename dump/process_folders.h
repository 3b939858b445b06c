// The folders that the vendor's profilers left in processes of a session: from where they were copied to, to where the
// vendor's tools find them. A part of SessionDump, on its thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "dump/dump_files.h"
#include "dump/dump_folders.h"
#include "dump/dump_root.h"
#include "dump/manifest.h"
#include "dump/process_files.h"
#include "dump/slice_index.h"

namespace profd {

class ProcessFolders {
 public:
  // The dump they come into; outlives the object.
  ProcessFolders(DumpFolders& folders, DumpFiles& files, Manifest& manifest, SliceIndex& index)
      : folders_(folders), files_(files), manifest_(manifest), index_(index) {}

  // A new folder among our own files (`facts.directory` is its name), to be copied to.
  Result<UniqueFd> Begin(ManifestProcessFiles facts);
  // It is copied.
  void End(ManifestProcessFiles facts, std::vector<ProcessFile> files);
  // Those of one process go among the dump's own if both count by the same clocks; others become PROF directories beside
  // the dump, whose path is their parent then. `all_slices`: the dump's own data have all the slices that they will have.
  void Place(DumpRoot& root, bool all_slices);
  bool empty() const { return trees_.empty(); }

 private:
  struct Tree {          // of one process
    std::string folder;  // in our own
    int pid = 0;
    std::vector<ProcessFile> files;
    std::vector<bool> moved;  // of files: they are somewhere else now
  };
  struct Run {  // one PROF directory in it
    Tree* tree = nullptr;
    std::string prof;
    UniqueFd dir;
    std::map<std::string, std::vector<size_t>> places;  // files of the tree by "host", "device_<N>"
  };
  ManifestProcessFiles& FactsOf(const Tree& tree);
  std::vector<Run> FindRuns();
  Status CheckMerge(const Run& run);
  static Status CheckMerge(const Run& run, const std::string& name, DataFolder& place);
  void Merge(Run& run);
  void MergePlace(Run& run, const std::string& name, DataFolder& place);
  bool IsOurs(const DataFolder& place, std::string_view base);
  // Of the profiler's step trace beside profd's: the number of its first slice there; else why it stays apart.
  Result<uint64_t> FirstStepSlice(const Run& run, const std::string& folder, const DataFolder& place);
  bool MergeFile(Tree& tree, size_t file, int from, const Result<uint64_t>& step_slice, DataFolder& place);
  Status MergeControls(int from, DataFolder& place);
  bool MovePlace(Run& run, const std::string& name);
  Status PutBeside(Run& run, int parent, bool first);
  Status WriteBesideManifest(const Run& run, const ManifestProcessFiles& facts, int dir);
  void KeepApart(const Tree& tree, const std::string& path, std::string why);
  void NoteApart(const Tree& tree);
  void JournalFacts(const ManifestProcessFiles& facts);

  DumpFolders& folders_;
  DumpFiles& files_;
  Manifest& manifest_;
  SliceIndex& index_;
  bool all_slices_ = false;
  std::vector<Tree> trees_;
};

}  // namespace profd
