// Which of the readers a path is for.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "analysis/read/readers.h"
#include "base/fd.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

constexpr int kDepth = 4;
constexpr size_t kMostEntries = 100'000;

bool IsDirectory(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Of profd or of the vendor's collector.
bool IsDump(const fs::path& path) {
  std::error_code error;
  if (!path.filename().native().starts_with("PROF")) return false;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name == "host" || name == "profd" || name.starts_with("device_")) return true;
  }
  return false;
}

std::vector<fs::path> Entries(const fs::path& directory, bool directories) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end && found.size() < kMostEntries;
       it.increment(error)) {
    std::error_code ignored;
    if (it->symlink_status(ignored).type() == (directories ? fs::file_type::directory : fs::file_type::regular)) {
      found.push_back(it->path());
    }
  }
  std::ranges::sort(found);
  return found;
}

// What a framework's profiler analysed is better than what it was made of.
bool AddOutput(const fs::path& directory, std::vector<Source>* sources) {
  const size_t before = sources->size();
  for (const fs::path& file : Entries(directory, false)) {
    if (IsDatabase(file)) sources->push_back({SourceKind::kDatabase, file});
  }
  if (sources->size() == before && IsProfilerOutput(directory)) sources->push_back({SourceKind::kText, directory});
  return sources->size() > before;
}

void Find(const fs::path& path, int depth, std::vector<Source>* sources) {
  const std::string name = path.filename().string();
  if (name == "ASCEND_PROFILER_OUTPUT" || name == "mindstudio_profiler_output") {
    AddOutput(path, sources);
    return;
  }
  if (IsDirectory(path / "ASCEND_PROFILER_OUTPUT") && AddOutput(path / "ASCEND_PROFILER_OUTPUT", sources)) return;
  if (IsDump(path)) {
    const size_t before = sources->size();
    // A PROF directory without raw data has only what msprof made of it.
    const bool raw = !Entries(path / "host", false).empty() || std::ranges::any_of(Entries(path, true), [](const fs::path& each) {
      return each.filename().native().starts_with("device_") && IsDirectory(each / "data");
    });
    if (!raw && IsDirectory(path / "mindstudio_profiler_output")) AddOutput(path / "mindstudio_profiler_output", sources);
    for (const fs::path& device : Entries(path, true)) {
      // Older releases of msprof.
      const bool timeline = !raw && device.filename().native().starts_with("device_") && IsDirectory(device / "timeline");
      if (timeline && sources->size() == before) AddOutput(device / "timeline", sources);
    }
    if (sources->size() == before) sources->push_back({SourceKind::kDump, path});
    return;
  }
  if (IsCluster(path)) {
    sources->push_back({SourceKind::kCluster, path});
    return;
  }
  if (IsMindSpore(path)) {
    sources->push_back({SourceKind::kMindSpore, path});
    return;
  }
  if (AddOutput(path, sources) || depth == 0) return;
  for (const fs::path& each : Entries(path, true)) Find(each, depth - 1, sources);
}

}  // namespace

std::vector<Source> FindSources(const fs::path& path) {
  std::vector<Source> sources;
  if (IsDatabase(path) && !IsDirectory(path)) {
    sources.push_back({SourceKind::kDatabase, path});
  } else if (path.filename() == kClusterDatabase && !IsDirectory(path)) {
    sources.push_back({SourceKind::kCluster, fs::absolute(path).lexically_normal().parent_path()});
  } else {
    fs::path clean = path.lexically_normal();
    if (!clean.has_filename()) clean = clean.parent_path();
    Find(clean, kDepth, &sources);
  }
  // What was put together of ranks that are there is nothing new.
  const bool has_ranks = std::ranges::any_of(sources, [](const Source& each) { return each.kind != SourceKind::kCluster; });
  if (has_ranks) std::erase_if(sources, [](const Source& each) { return each.kind == SourceKind::kCluster; });
  return sources;
}

fs::path NamedPathOf(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path clean = (error ? path : absolute).lexically_normal();
  return clean.has_filename() ? clean : clean.parent_path();
}

Result<std::string> ReadWhole(const fs::path& file, uint64_t most) {
  UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat facts {};
  if (!fd.valid() || ::fstat(fd.get(), &facts) != 0) return Status::FromErrno(errno, file.string());
  if (!S_ISREG(facts.st_mode)) return InvalidArgument(file.string() + ": not a plain file");
  const auto bytes = static_cast<uint64_t>(facts.st_size);
  if (bytes > most) {
    return InvalidArgument(fmt::format("{}: {} bytes; at most {} are read", file.string(), bytes, most));
  }
  std::string text(bytes, '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t more = ::read(fd.get(), text.data() + got, text.size() - got);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return Status::FromErrno(errno, file.string());
    if (more == 0) break;
    got += static_cast<size_t>(more);
  }
  text.resize(got);
  return text;
}

}  // namespace profd::analysis
