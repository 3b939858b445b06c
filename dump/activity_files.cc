#include "dump/activity_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "dump/mark_files.h"

namespace profd {
namespace {

constexpr std::array<ActivityFile, kActivityFiles> kFiles{{
    {"activity_kernel", "activity_kernel.data", sizeof(StoredKernel)},
    {"activity_communication", "activity_communication.data", sizeof(StoredCommunication)},
    {"activity_api", "activity_api.data", sizeof(StoredApi)},
    {"activity_marker", "activity_marker.data", sizeof(StoredMarker)},
    {"activity_memory", "activity_memory.data", sizeof(StoredMemory)},
}};

}  // namespace

std::span<const ActivityFile, kActivityFiles> ActivityFiles() { return kFiles; }

const ActivityFile* FindActivityFile(std::string_view base) {
  const auto found = std::ranges::find(kFiles, base, &ActivityFile::file);
  return found == kFiles.end() ? nullptr : &*found;
}

void AppendActivityName(uint32_t id, std::string_view name, std::string* out) {
  fmt::format_to(std::back_inserter(*out), "{}\t", id);
  AppendCell(name, out);
  *out += '\n';
}

}  // namespace profd
