// What of a recovery is not slices: control files, and the manifest's lists.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <utility>

#include "driver/abi/channels.h"
#include "dump/control_files.h"
#include "dump/data_name.h"
#include "dump/recovery_places.h"

namespace profd {
namespace {

Status WriteControl(const RepairContext& context, const RepairedPlace& place, std::string name,
                    std::string_view text) {
  if (place.device >= 0) name += fmt::format(".{}", place.device);
  RETURN_IF_ERROR(ReplaceFile(SystemDumpIo(), place.dir.get(), name, text, context.owner, false));
  return ReplaceFile(SystemDumpIo(), place.dir.get(), name + std::string(kDoneSuffix),
                     ControlDone(text.size()), context.owner, false);
}

bool HasControl(const RepairContext& context, const RepairedPlace& place, std::string name) {
  if (place.device >= 0) name += fmt::format(".{}", place.device);
  uint64_t reported = 0;
  if (!ReadDone(place.dir.get(), name + std::string(kDoneSuffix), context.owner.uid, &reported)) return false;
  struct stat st {};
  return ::fstatat(place.dir.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(st.st_mode) && static_cast<uint64_t>(st.st_size) == reported;
}

// What SessionDump::WriteClocks and CompleteClocks do, where the daemon crashed before them.
Status CompleteClocks(const RepairContext& context, const RepairedPlace& place,
                      Manifest* manifest) {
  const bool counted = CountClocksBack(place.device, manifest);
  if (!counted && HasControl(context, place, "host_start.log") && HasControl(context, place, "dev_start.log")) {
    return {};
  }
  DumpClocks clocks;
  bool known = false;
  for (const ManifestClock& one : manifest->clocks) {
    if (one.when != "start" || known) continue;
    if (one.device == place.device || one.device == -1) clocks = one.clocks;
    known = one.device == place.device;
  }
  if (!known) {
    clocks.device_ns = clocks.host_ns;
    clocks.device_count = clocks.host_count;
    manifest->warnings.push_back(fmt::format(
        "profd exited before the clocks of device {} were written; its timestamps are off by an "
        "unknown amount",
        place.device));
  }
  RETURN_IF_ERROR(WriteControl(context, place, "host_start.log",
                               HostStartLog(clocks, place.device)));
  return WriteControl(context, place, "dev_start.log", DevStartLog(clocks));
}

}  // namespace

Status EndPlaces(const RepairContext& context, const std::vector<RepairedPlace>& places,
                 int64_t wall_ns, int64_t raw_ns, Manifest* manifest) {
  for (const RepairedPlace& place : places) {
    if (place.device >= 0) RETURN_IF_ERROR(CompleteClocks(context, place, manifest));
    RETURN_IF_ERROR(WriteControl(context, place, "end_info", EndInfo(wall_ns, raw_ns)));
  }
  return {};
}

void CountFile(const RepairedFile& file, ManifestChannel* channel) {
  channel->records = file.records;
  channel->bytes = file.bytes;
  channel->aged = {};
  std::erase_if(channel->dropped, [](const ManifestLoss& loss) { return loss.reason == LossReason::kAged; });
  const size_t before = channel->gaps.size();
  std::erase_if(channel->gaps, [](const ManifestGap& gap) { return gap.reason == LossReason::kAged; });
  channel->gap_count -= std::min<uint64_t>(channel->gap_count, before - channel->gaps.size());
  for (const ForgottenSlices& gone : file.forgotten) {
    channel->AddAged(gone.records, gone.bytes, gone.from_ns, gone.to_ns);
    channel->aged.slices += gone.slices - std::min<uint64_t>(gone.slices, 1);
  }
  for (const SliceEntry& gone : file.aged) {
    channel->AddAged(gone.records, gone.bytes, gone.first_ns, gone.last_ns);
  }
}

void NameChannels(const std::vector<RepairedPlace>& places, Manifest* manifest) {
  auto has_device = [manifest](int id) {
    return std::ranges::any_of(manifest->devices, [id](const ManifestDevice& device) { return device.id == id; });
  };
  auto has_file = [manifest](int device, std::string_view base) {
    return std::ranges::any_of(manifest->channels, [&](const ManifestChannel& channel) {
      return channel.device == device && channel.file == base;
    });
  };
  for (const RepairedPlace& place : places) {
    if (place.device < 0) continue;
    if (!has_device(place.device)) {
      ManifestDevice device;
      device.id = device.physical_id = place.device;
      manifest->devices.push_back(std::move(device));
    }
    for (const auto& [base, file] : place.files) {
      if (has_file(place.device, base)) continue;
      const abi::ChannelFormat* format = FormatOfFile(base);
      if (format == nullptr) continue;
      ManifestChannel channel{.collector = std::string(format->name), .device = place.device, .channel = format->id,
                              .file = base};
      channel.state = "running";  // was; the end of the recovery settles it
      manifest->channels.push_back(std::move(channel));
    }
  }
}

Status ListRepaired(int top, const std::vector<RepairedPlace>& places, Manifest* manifest) {
  std::map<std::string, const ManifestFile*> known;
  for (const RepairedPlace& place : places) {
    for (const auto& [base, file] : place.files) {
      for (const RepairedFile::Slice& slice : file.slices) known[slice.file.path] = &slice.file;
    }
  }
  manifest->files.clear();
  manifest->data_bytes = 0;
  return WalkTree(top, {}, [&](const TreeEntry& entry) {
    if (entry.is_dir || entry.other || entry.path.ends_with(kDoneSuffix) ||
        entry.path.starts_with(".") || entry.path == kManifestFile) {
      return Status();
    }
    auto found = known.find(entry.path);
    ManifestFile file = found != known.end() ? *found->second : ManifestFile();
    file.path = entry.path;
    file.bytes = entry.bytes;
    manifest->data_bytes += entry.bytes;
    manifest->files.push_back(std::move(file));
    return Status();
  });
}

}  // namespace profd
