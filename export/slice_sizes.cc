#include "export/slice_sizes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>

#include "base/count_text.h"
#include "base/text.h"
#include "dump/control_files.h"
#include "dump/data_name.h"
#include "dump/slice_journal.h"

namespace profd::exporting {
namespace {

// Of one channel.
struct Lack {
  uint64_t slices = 0;
  uint64_t missing = 0;
  uint64_t missing_records = 0;
  uint64_t skipped = 0;  // numbers without a slice
  uint64_t cut = 0;
  uint64_t cut_bytes = 0;
  uint64_t longer = 0;

  void Compare(uint64_t written, uint64_t there) {
    if (there < written) {
      ++cut;
      cut_bytes += written - there;
    } else if (there > written) {
      ++longer;
    }
  }
  std::string Text() const {
    std::string what;
    const auto add = [&what](std::string text) { what += (what.empty() ? "" : ", ") + std::move(text); };
    if (missing > 0) add(fmt::format("{} of {} files missing ({} records)", missing, slices, missing_records));
    if (skipped > 0) add(CountText(skipped, "file") + " missing by the numbers of the others and of .done files");
    if (cut > 0) add(fmt::format("{} of {} files shorter than written ({} bytes)", cut, slices, cut_bytes));
    if (longer > 0) add(fmt::format("{} of {} files longer than written", longer, slices));
    return what;
  }
};
using Lacks = std::map<std::string, Lack>;
using Sizes = std::map<std::string_view, uint64_t>;

std::string ChannelOf(std::string_view path) {
  const size_t name = path.rfind('/') + 1;
  const std::optional<DataName> parsed = ParseDataName(path.substr(name));
  return std::string(path.substr(0, name)) + (parsed ? parsed->base : std::string(path.substr(name)));
}

// What was written, of the files that have records. A session that runs replaces its manifest now and then only.
Sizes CompareWithManifest(const DumpInfo& info, const Sizes& there, Lacks* lacks) {
  Sizes written;
  if (!info.manifest || info.manifest->state == DumpState::kRunning) return written;
  for (const ManifestFile& file : info.manifest->files) {
    if (!file.records) continue;
    written.emplace(file.path, file.bytes);
    Lack& lack = (*lacks)[ChannelOf(file.path)];
    ++lack.slices;
    const auto found = there.find(file.path);
    if (found != there.end()) {
      lack.Compare(file.bytes, found->second);
    } else {
      ++lack.missing;
      lack.missing_records += *file.records;
    }
  }
  return written;
}

// What a slice lacks by its .done, which is written behind it; 0 where that states no size.
uint64_t MissingByDone(const DumpReader& reader, const std::string& slice) {
  const Result<UniqueFd> done = reader.OpenFile(slice + std::string(kDoneSuffix));
  if (!done.ok()) return 0;
  char text[256];
  const ssize_t got = ::pread(done->get(), text, sizeof text, 0);
  const std::optional<uint64_t> written = SizeOfDone({text, static_cast<size_t>(std::max<ssize_t>(got, 0))});
  if (!written) return 0;
  // As it is now: it may have grown since it was listed.
  const Result<UniqueFd> file = reader.OpenFile(slice);
  struct stat st {};
  if (!file.ok() || ::fstat(file->get(), &st) != 0) return 0;
  const auto there = static_cast<uint64_t>(st.st_size);
  return *written > there ? *written - there : 0;
}

// Slices that lost all of their bytes, which are no data files, and those that are not there. `written`: by the manifest,
// which has what a limit removed. Without one, numbers go up by one; a limit removes the first slices, but those of
// "unaging" files never (operator-data a.1). Each has its .done, the last one may have.
void FindLostSlices(const DumpReader& reader, const std::vector<DumpReader::File>& files, const Sizes& written, bool has_manifest, Lacks* lacks) {
  constexpr std::string_view kFolder = "/data/";
  std::map<std::string, std::set<uint64_t>> numbers;
  std::map<std::string, uint64_t> last_done;
  for (const DumpReader::File& file : files) {
    std::string_view path = file.path;
    const bool is_done = path.ends_with(kDoneSuffix);
    if (is_done) path.remove_suffix(kDoneSuffix.size());
    const size_t folder = path.find(kFolder);
    if (folder == std::string_view::npos || folder != path.find('/')) continue;
    const std::optional<DataName> parsed = ParseDataName(path.substr(folder + kFolder.size()));
    if (!parsed) continue;
    const std::string channel = ChannelOf(path);
    if (is_done) {
      last_done[channel] = std::max(last_done[channel], parsed->slice);
      continue;
    }
    numbers[channel].insert(parsed->slice);
    if (file.bytes > 0 || written.contains(path)) continue;
    const uint64_t missing = MissingByDone(reader, file.path);
    if (missing == 0) continue;
    Lack& lack = (*lacks)[channel];
    ++lack.slices;
    lack.Compare(missing, 0);
  }
  if (has_manifest) return;
  for (const auto& [channel, there] : numbers) {
    const bool stays = BaseName(channel).starts_with("unaging.");
    uint64_t next = stays ? 0 : *there.begin();
    for (const uint64_t number : there) {
      if (number > next) (*lacks)[channel].skipped += number - next;
      next = number + 1;
    }
    if (const auto done = last_done.find(channel); done != last_done.end() && done->second >= next) (*lacks)[channel].skipped += done->second - next + 1;
  }
}

}  // namespace

std::map<std::string, std::string> CompareSizes(const DumpReader& reader, const std::vector<DumpReader::File>& files, DumpInfo* info) {
  Sizes there;
  for (const DumpReader::File& file : files) there.emplace(file.path, file.bytes);
  Lacks lacks;
  const Sizes written = CompareWithManifest(*info, there, &lacks);
  for (Place& place : info->places) {
    for (DataFile& file : place.files) {
      for (DataFile::Slice& slice : file.slices) {
        if (slice.compressed) continue;  // its end shows whether it is complete
        const auto known = written.find(slice.path);
        if (known != written.end()) {
          slice.missing = known->second - std::min(known->second, slice.bytes);
          continue;
        }
        slice.missing = there.contains(slice.path + std::string(kDoneSuffix)) ? MissingByDone(reader, slice.path) : 0;
        Lack& lack = lacks[ChannelOf(slice.path)];
        ++lack.slices;
        lack.Compare(slice.missing, 0);
      }
    }
  }
  FindLostSlices(reader, files, written, info->manifest.has_value(), &lacks);
  std::map<std::string, std::string> damaged;
  for (const auto& [channel, lack] : lacks) {
    if (std::string what = lack.Text(); !what.empty()) damaged.emplace(channel, "damaged: " + what);
  }
  return damaged;
}

}  // namespace profd::exporting
