// What the parts of the verifier share while one dump is read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/abi/channels.h"
#include "dump/slice_journal.h"
#include "dump/slice_repair.h"
#include "dump/verify.h"

namespace profd {

// One slice `<place>/data/<base>[.<device>].slice_<k>[.zst]`, or a file of our own.
struct VerifySlice {
  std::string path;
  uint64_t bytes = 0;
  uint64_t number = 0;
  bool compressed = false;
};

// All slices of one logical file.
struct VerifyFile {
  int device = -1;  // -1 = the host's or our own
  std::string base;
  bool own = false;  // in our folder
  SliceShape shape;  // kUnknown: its bytes are not judged
  bool foreign = false;       // of the vendor's profiler in a process, whose files only it can judge
  bool other_layout = false;  // not ChannelFormat's: sizes are judged, timestamps are not
  std::vector<VerifySlice> slices;
};

// Records that are missing without a gap in the manifest.
struct VerifyGap {
  std::string collector;
  int device = -1;
  uint32_t channel = 0;
  int64_t from_ns = 0;  // the host's clock
  int64_t to_ns = 0;
  uint64_t missing = 0;
};

struct VerifyRun {
  const DumpReader& reader;
  VerifyReport& report;
  const VerifyProgress& progress;
  std::optional<Manifest> manifest = {};
  std::vector<DumpReader::File> files = {};
  std::map<std::string, uint64_t, std::less<>> sizes = {};  // of all files by path
  SliceJournal journal = {};
  std::map<std::string_view, const ManifestFile*> listed = {};  // of the manifest, by path
  std::vector<VerifyFile> data = {};
  uint64_t total_bytes = 0;
  bool cancelled = false;
  struct Broken {
    size_t problem = 0;  // in the report
    uint32_t checks = 0;  // that found something
  };
  std::map<std::string, Broken, std::less<>> broken = {};  // by slice, without .zst
  std::vector<VerifyGap> gaps = {};  // at most kMaxManifestGaps

  void Add(VerifyCheck check, std::string where, std::string what) {
    report.Add(check, std::move(where), std::move(what));
  }
  // What is wrong with one slice, and what follows from that, is one problem: what the second check
  // and later ones find is added to what the first one found, once for each check.
  void AddOfSlice(VerifyCheck check, std::string_view path, std::string_view what);
  // A slice of this file (its path up to the slice's number) that has a problem; empty: none.
  std::string_view BrokenSliceOf(std::string_view stem) const;
  // The session still writes: files grow, come and go while they are read, and what was lost is not in
  // the manifest yet.
  bool running() const { return manifest && manifest->state == DumpState::kRunning; }
  // Of a running dump, by now.
  bool IsThere(std::string_view slice) const;
  void Ran(VerifyCheck check) { report.ran[static_cast<size_t>(check)] = true; }
  bool Has(std::string_view path) const { return sizes.contains(path); }
  bool HasBelow(std::string_view folder) const {  // with its slash
    const auto first = sizes.lower_bound(folder);
    return first != sizes.end() && first->first.starts_with(folder);
  }
  const ManifestFile* FindListed(std::string_view path) const {
    auto it = listed.find(path);
    return it == listed.end() ? nullptr : it->second;
  }
  void ReadJournal();
  // Text of a small file; nothing when it is not there or too long.
  std::optional<std::string> Read(std::string_view path) const;
};

// verify_files.cc: which files there are and how long.
void FindDataFiles(VerifyRun& run);
void CheckSizes(VerifyRun& run);
void CheckNotRead(VerifyRun& run, const DumpReader::NotRead& not_read);
// verify_channels.cc: reads the data; checksums, framing, order, accounting.
void CheckData(VerifyRun& run);
// verify_clocks.cc
void CheckClocks(VerifyRun& run);

}  // namespace profd
