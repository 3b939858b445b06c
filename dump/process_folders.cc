#include "dump/process_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "dump/data_name.h"
#include "dump/mark_files.h"
#include "dump/slice_journal.h"

namespace profd {
namespace {

constexpr size_t kMaxControlText = 1u << 20;
constexpr size_t kMaxExamples = 16;
constexpr int kDepth = 8;

void AddText(std::string* to, const std::string& text) { *to += (to->empty() ? "" : "; ") + text; }

// Empty for what is not there, or is another user's under a second name.
std::string TextOf(int dir, std::string_view control, int device) {
  Result<UniqueFd> fd = OpenFileAt(dir, ControlName(control, device));
  struct stat folder {};
  struct stat file {};
  if (!fd.ok() || ::fstat(dir, &folder) != 0 || ::fstat(fd->get(), &file) != 0) return {};
  if (file.st_uid != folder.st_uid || file.st_nlink != 1) return {};
  return ReadWhole(fd->get(), kMaxControlText).value_or("");
}

StartClocks ClocksOf(int dir, int device) {
  StartClocks clocks{TextOf(dir, "info.json", device), TextOf(dir, "host_start.log", device), {}};
  if (device != kVendorHostId) clocks.dev_start = TextOf(dir, "dev_start.log", device);
  return clocks;
}

// Never over what is there.
Status Move(int from, const std::string& name, int to, const std::string& new_name) {
  if (::renameat2(from, name.c_str(), to, new_name.c_str(), RENAME_NOREPLACE) == 0) return Status::Ok();
  // Not every file system can do that.
  struct stat there {};
  const bool free = errno == EINVAL && ::fstatat(to, new_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  if (free && ::renameat(from, name.c_str(), to, new_name.c_str()) == 0) return Status::Ok();
  return Status::FromErrno(errno, fmt::format("move {}", name));
}

// `name` in `dir` and below it, as far as it holds no files.
void RemoveEmpty(int dir, const std::string& name, int depth) {
  Result<UniqueFd> folder = OpenDirAt(dir, name);
  if (!folder.ok()) return;
  Result<std::vector<std::string>> names = ListNames(folder->get());
  for (const std::string& below : names.value_or({})) {
    if (depth > 0) RemoveEmpty(folder->get(), below, depth - 1);
  }
  ::unlinkat(dir, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

void ProcessFolders::JournalFacts(const ManifestProcessFiles& facts) {
  JournalFiles line;
  line.folder = OwnFileName(facts.directory);
  if (line.folder.empty()) return;
  line.pid = facts.pid;
  line.rank = facts.rank.value_or(-1);
  line.state = facts.state;
  line.files = facts.files;
  line.bytes = facts.bytes;
  line.refused = facts.refused;
  index_.Files(line);
}

Result<UniqueFd> ProcessFolders::Begin(ManifestProcessFiles facts) {
  const std::string folder = facts.directory;
  if (!IsSafeName(folder)) return InvalidArgument(fmt::format("{} is not a name of a folder", folder));
  Result<UniqueFd> made = MakeDirAt(folders_.own(), folder, folders_.owner());
  if (!made.ok()) return made;
  facts.directory = std::string(kOwnPrefix) + folder;
  facts.layout = "apart";
  facts.state = "copying";
  JournalFacts(facts);
  trees_.push_back({folder, facts.pid, {}, {}});
  manifest_.process_files.push_back(std::move(facts));
  return made;
}

void ProcessFolders::End(ManifestProcessFiles facts, std::vector<ProcessFile> files) {
  const auto tree = std::ranges::find(trees_, facts.directory, &Tree::folder);
  facts.layout = "apart";
  if (tree == trees_.end()) {
    facts.directory.clear();  // there is none
    manifest_.process_files.push_back(std::move(facts));
    return;
  }
  folders_.AddEntries(files.size());
  tree->moved.assign(files.size(), false);
  tree->files = std::move(files);
  facts.directory = std::string(kOwnPrefix) + tree->folder;
  JournalFacts(facts);
  FactsOf(*tree) = std::move(facts);
}

ManifestProcessFiles& ProcessFolders::FactsOf(const Tree& tree) {
  const std::string directory = std::string(kOwnPrefix) + tree.folder;
  for (ManifestProcessFiles& facts : manifest_.process_files) {
    if (facts.directory == directory) return facts;
  }
  return manifest_.process_files.emplace_back();
}

// Places without info.json make the analyser's export fail.
std::vector<ProcessFolders::Run> ProcessFolders::FindRuns() {
  std::vector<Run> runs;
  for (Tree& tree : trees_) {
    std::set<std::pair<std::string, std::string>> informed;
    std::map<std::string, std::map<std::string, std::vector<size_t>>> found;
    for (size_t i = 0; i < tree.files.size(); ++i) {
      ProcessPath path;
      if (!ParseProcessPath(tree.files[i].path, &path)) continue;
      found[std::string(path.prof)][std::string(path.place)].push_back(i);
      if (path.rest == ControlName("info.json", path.device < 0 ? kVendorHostId : path.device)) {
        informed.emplace(path.prof, path.place);
      }
    }
    Result<UniqueFd> folder = OpenDirAt(folders_.own(), tree.folder);
    for (auto& [prof, places] : found) {
      std::erase_if(places, [&prof = prof, &informed](const auto& place) {
        return !informed.contains({prof, place.first});
      });
      if (places.empty() || !folder.ok()) continue;
      Result<UniqueFd> dir = OpenDirAt(folder->get(), prof);
      if (dir.ok()) runs.push_back({&tree, prof, std::move(*dir), std::move(places)});
    }
  }
  return runs;
}

Status ProcessFolders::CheckMerge(const Run& run) {
  for (const auto& [name, files] : run.places) {
    for (DataFolder& place : folders_.all()) {
      if (place.name == name) RETURN_IF_ERROR(CheckMerge(run, name, place));
    }
  }
  return Status::Ok();
}

Status ProcessFolders::CheckMerge(const Run& run, const std::string& name, DataFolder& place) {
  Result<UniqueFd> dir = OpenDirAt(run.dir.get(), name);
  if (!dir.ok()) return dir.status();
  return CheckSameClocks(ClocksOf(place.dir.get(), place.device), ClocksOf(dir->get(), place.device),
                         place.device == kVendorHostId ? -1 : place.device)
      .Annotate(name);
}

void ProcessFolders::KeepApart(const Tree& tree, const std::string& path, std::string why) {
  ManifestProcessFiles& facts = FactsOf(tree);
  if (facts.examples.size() < kMaxExamples) facts.examples.push_back({path, std::move(why)});
}

// Also where nothing has come yet.
bool ProcessFolders::IsOurs(const DataFolder& place, std::string_view base) {
  const int device = place.device == kVendorHostId ? -1 : place.device;
  const auto& channels = manifest_.channels;
  return files_.Find(place.device, base) != nullptr ||
         std::ranges::any_of(channels, [&](const ManifestChannel& channel) {
           return channel.device == device && channel.file == base;
         });
}

// The profiler's step trace (iterations, flips of task ids) becomes further slices of profd's, which has steps only:
// readers sort the records. A step that both have would be none for the analyser (dump-format 4).
Result<uint64_t> ProcessFolders::FirstStepSlice(const Run& run, const std::string& folder, const DataFolder& place) {
  const auto& devices = manifest_.devices;
  const auto device = std::ranges::find(devices, place.device, &ManifestDevice::id);
  if (device == devices.end() || !all_slices_) return AlreadyExists("profd records this itself");
  const size_t layout = StepLayoutOf(static_cast<uint32_t>(device->chip_id));
  for (const size_t file : run.places.at(folder)) {
    const ProcessFile& copied = run.tree->files[file];
    ProcessPath path;
    if (copied.path.ends_with(kDoneSuffix) || !ParseProcessPath(copied.path, &path) || !path.data()) continue;
    const std::optional<DataName> data = ParseDataName(BaseName(path.rest));
    if (!data || data->base != kStepTraceFile) continue;
    if (!copied.steps) return AlreadyExists("was not searched for training steps, which profd records itself");
    if ((*copied.steps)[layout]) return AlreadyExists("has training steps, which profd records itself");
  }
  uint64_t first = 0;
  for (const std::string& name : ListNames(place.data.get()).value_or({})) {
    const std::optional<DataName> ours = ParseDataName(name);
    if (ours && ours->base == kStepTraceFile) first = std::max(first, ours->slice + 1);
  }
  return first;
}

bool ProcessFolders::MergeFile(Tree& tree, size_t file, int from, const Result<uint64_t>& step_slice, DataFolder& place) {
  const std::string& path = tree.files[file].path;
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string_view note = name.ends_with(kDoneSuffix) ? kDoneSuffix : std::string_view();
  const std::optional<DataName> data = ParseDataName(std::string_view(name).substr(0, name.size() - note.size()));
  std::string there = name;
  Status moved;
  if (IsOurs(place, BaseOfProcessFile(name))) {
    const bool steps = data && data->base == kStepTraceFile && data->device == place.device && !data->compressed;
    moved = steps ? step_slice.status() : AlreadyExists("profd records this itself");
    if (moved.ok()) there = fmt::format("{}.{}{}{}{}", data->base, data->device, kSliceMark, *step_slice + data->slice, note);
  }
  if (moved.ok()) moved = Move(from, name, place.data.get(), there);
  if (!moved.ok()) {
    KeepApart(tree, path, moved.message());
    return false;
  }
  place.bytes += tree.files[file].bytes;
  tree.moved[file] = true;
  if (note.empty()) {
    folders_.listed()[fmt::format("{}/data/{}", place.name, there)] = {tree.files[file].crc32c, {}, tree.pid};
  }
  return true;
}

Status ProcessFolders::MergeControls(int from, DataFolder& place) {
  const bool host = place.device == kVendorHostId;
  for (const char* control : {"info.json", "sample.json"}) {
    const std::string ours = TextOf(place.dir.get(), control, place.device);
    const std::string theirs = TextOf(from, control, place.device);
    if (theirs.empty()) continue;
    Result<std::string> merged = control == std::string_view("info.json") ? MergeInfoJson(ours, theirs, host)
                                                                         : MergeSampleJson(ours, theirs);
    if (!merged.ok()) return merged.status();
    RETURN_IF_ERROR(folders_.ReplaceControl(place, control, *merged, ours.size()));
  }
  return Status::Ok();
}

void ProcessFolders::MergePlace(Run& run, const std::string& name, DataFolder& place) {
  Tree& tree = *run.tree;
  Result<UniqueFd> dir = OpenDirAt(run.dir.get(), name);
  if (!dir.ok()) return KeepApart(tree, run.prof + "/" + name, dir.status().message());
  if (Status merged = MergeControls(dir->get(), place); !merged.ok()) {
    return KeepApart(tree, run.prof + "/" + name, merged.message());
  }
  Result<UniqueFd> data = OpenDirAt(dir->get(), "data");
  const Result<uint64_t> step_slice = data.ok() ? FirstStepSlice(run, name, place) : data.status();
  for (const size_t file : run.places.at(name)) {
    ProcessPath path;
    if (!ParseProcessPath(tree.files[file].path, &path)) continue;
    const std::string_view rest = path.rest;
    if (path.data() && data.ok() && rest.find('/', 5) == std::string_view::npos) {
      MergeFile(tree, file, data->get(), step_slice, place);
    } else if (!ControlOfProcessFile(rest, path.device).empty()) {
      // Its content is in the dump's own by now.
      tree.moved[file] = folders_.io().Unlink(dir->get(), std::string(rest)) == 0;
    } else {
      KeepApart(tree, tree.files[file].path, "not a file that the vendor's analyser reads here");
    }
  }
}

// A device that the dump has no folder for.
bool ProcessFolders::MovePlace(Run& run, const std::string& name) {
  Tree& tree = *run.tree;
  if (Status moved = Move(run.dir.get(), name, folders_.top(), name); !moved.ok()) {
    KeepApart(tree, run.prof + "/" + name, moved.message());
    return false;
  }
  for (const size_t file : run.places.at(name)) {
    const std::string path = tree.files[file].path.substr(run.prof.size() + 1);
    tree.moved[file] = true;
    if (!path.ends_with(kDoneSuffix)) folders_.listed()[path] = {tree.files[file].crc32c, {}, tree.pid};
  }
  return true;
}

void ProcessFolders::Merge(Run& run) {
  for (const auto& [name, files] : run.places) {
    const auto place = std::ranges::find(folders_.all(), name, &DataFolder::name);
    place == folders_.all().end() ? static_cast<void>(MovePlace(run, name)) : MergePlace(run, name, *place);
  }
  NoteApart(*run.tree);
  ManifestProcessFiles& facts = FactsOf(*run.tree);
  const bool whole = facts.problem.empty();
  if (!whole && facts.state == "complete") facts.state = "partial";
  facts.layout = "merged";
  facts.directory = folders_.name();
  facts.files = 0;
  facts.bytes = 0;
  for (const ProcessFile& file : run.tree->files) {
    facts.files += 1;
    facts.bytes += file.bytes;
  }
}

// What stays where it was copied to.
void ProcessFolders::NoteApart(const Tree& tree) {
  size_t apart = 0;
  uint64_t bytes = 0;
  for (size_t i = 0; i < tree.files.size(); ++i) {
    if (tree.moved[i] || tree.files[i].path.ends_with(kDoneSuffix)) continue;
    ++apart;
    bytes += tree.files[i].bytes;
    folders_.listed()[fmt::format("{}{}/{}", kOwnPrefix, tree.folder, tree.files[i].path)] = {tree.files[i].crc32c, {},
                                                                                           tree.pid};
  }
  const bool any_moved = std::ranges::find(tree.moved, true) != tree.moved.end();
  if (apart == 0 || !any_moved) return;
  ManifestProcessFiles& facts = FactsOf(tree);
  facts.files = apart;
  facts.bytes = bytes;
  AddText(&facts.problem, fmt::format("{} files stay in {}{}: {}", apart, kOwnPrefix, tree.folder,
                                      facts.examples.empty() ? "their places are incomplete" : facts.examples.back().why));
}

Status ProcessFolders::WriteBesideManifest(const Run& run, const ManifestProcessFiles& facts, int dir) {
  Manifest manifest = manifest_;
  manifest.state = DumpState::kDone;
  manifest.reason = fmt::format("files of the vendor's profiler in process {}, of {}", facts.pid, folders_.name());
  manifest.pid = facts.pid;
  if (facts.rank) manifest.rank = facts.rank;
  std::erase_if(manifest.processes, [&](const ManifestProcess& process) { return process.pid != facts.pid; });
  manifest.channels.clear();
  manifest.clocks.clear();
  manifest.warnings.clear();
  manifest.files.clear();
  manifest.data_bytes = 0;
  manifest.process_files = {facts};
  for (const auto& [name, files] : run.places) {
    for (const size_t file : files) {
      const ProcessFile& copied = run.tree->files[file];
      if (!run.tree->moved[file] || copied.path.ends_with(kDoneSuffix)) continue;
      ManifestFile& one = manifest.files.emplace_back();
      one.path = copied.path.substr(run.prof.size() + 1);
      one.bytes = copied.bytes;
      one.crc32c = copied.crc32c;
      one.state = "closed";
      one.pid = facts.pid;
      manifest.data_bytes += copied.bytes;
    }
  }
  const std::string text = Serialize(manifest);
  folders_.Grow(nullptr, text.size());
  return WriteNewFile(folders_.io(), dir, std::string(kManifestFile), text, folders_.owner());
}

Status ProcessFolders::PutBeside(Run& run, int parent, bool first) {
  // Two processes may have chosen one name; the analyser wants digits, digits, letters.
  Result<UniqueFd> dir = run.prof == folders_.name() ? AlreadyExists(run.prof) : MakeDirAt(parent, run.prof, folders_.owner());
  std::string name = run.prof;
  if (dir.status().code() == StatusCode::kAlreadyExists) {
    name = fmt::format("PROF_{}_{}_{}", run.tree->pid, std::distance(trees_.data(), run.tree) + 1,
                       run.prof.substr(run.prof.rfind('_') + 1));
    dir = MakeDirAt(parent, name, folders_.owner());
  }
  if (!dir.ok()) return dir.status();
  uint64_t files = 0;
  uint64_t bytes = 0;
  for (const auto& [place, of_place] : run.places) {
    RETURN_IF_ERROR(Move(run.dir.get(), place, dir->get(), place));
    for (const size_t file : of_place) {
      run.tree->moved[file] = true;
      ++files;
      bytes += run.tree->files[file].bytes;
    }
  }
  ManifestProcessFiles facts = FactsOf(*run.tree);
  facts.layout = "beside";
  facts.directory = name;
  facts.files = files;
  facts.bytes = bytes;
  if (!first) facts.problem.clear();
  RETURN_IF_ERROR(WriteBesideManifest(run, facts, dir->get()));
  // Behind those of the folders, which are still looked for by their directory.
  manifest_.process_files.push_back(std::move(facts));
  return Status::Ok();
}

void ProcessFolders::Place(DumpRoot& root, bool all_slices) {
  all_slices_ = all_slices;
  for (ManifestProcessFiles& facts : manifest_.process_files) {
    if (facts.state != "copying") continue;
    facts.state = "partial";
    facts.problem = "the files were not copied in time";
  }
  std::vector<Run> runs = FindRuns();
  Status merge = runs.size() == 1 ? CheckMerge(runs.front()) : Status::Ok();
  if (runs.size() == 1 && merge.ok()) {
    Merge(runs.front());
  } else if (!runs.empty()) {
    if (!merge.ok()) AddText(&FactsOf(*runs.front().tree).problem, "not among the dump's own files: " + merge.message());
    Result<UniqueFd> parent = root.MakeRun(folders_.name(), folders_.owner());
    const Tree* before = nullptr;
    for (Run& run : runs) {
      const Status put = parent.ok() ? PutBeside(run, parent->get(), run.tree != before) : parent.status();
      if (!put.ok()) AddText(&FactsOf(*run.tree).problem, put.message());
      before = run.tree;
    }
  }
  std::set<std::string> emptied;
  for (const Tree& tree : trees_) {
    const bool merged = runs.size() == 1 && merge.ok() && runs.front().tree == &tree;
    if (!merged) NoteApart(tree);
    RemoveEmpty(folders_.own(), tree.folder, kDepth);
    if (!merged && !OpenDirAt(folders_.own(), tree.folder).ok()) emptied.insert(std::string(kOwnPrefix) + tree.folder);
  }
  std::erase_if(manifest_.process_files, [&](const ManifestProcessFiles& facts) {
    return emptied.contains(facts.directory);
  });
}

}  // namespace profd
