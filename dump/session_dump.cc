#include "dump/session_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "driver/abi/channels.h"
#include "dump/activity_files.h"
#include "dump/ageing.h"

namespace profd {
namespace {

// Many processes, little from each.
constexpr size_t kDynamicBufferBytes = 8u << 10;
// While there are not so many, what arrives between two flushes at 50 Hz goes out in one piece.
constexpr size_t kLargeBufferBytes = 16u << 10;
constexpr size_t kLargeBufferFiles = 1024;
// More than the control files of a device.
constexpr uint64_t kControlBytes = 16u << 10;
// Freed at once when the volume is full.
constexpr uint64_t kAgeingStep = 4u << 20;

// Host files of which the vendor's reader keeps only the last slice, or loses the sample at a cut
// (dump-format 1.1).
constexpr std::array<std::string_view, 3> kUncutFiles = {"host_cpu.data", "host_disk.data",
                                                         "host_network.data"};

bool AllAge(const std::vector<SessionDumpOptions::Device>& devices) {
  return std::ranges::none_of(devices, [](const auto& device) { return device.facts.chip_id == kChipWithoutAgeing; });
}

}  // namespace

SessionDump::SessionDump(DumpIo& io, SessionDumpOptions options)
    : options_(std::move(options)),
      manifest_(std::move(options_.manifest)),
      sync_(options_.sync_while_running ? options_.sync : nullptr),
      folders_(io, options_.owner, sync_),
      manifest_writer_(folders_, sync_, clock()),
      closed_({folders_, files_, manifest_, manifest_writer_, sync_, clock()},
              {AllAge(options_.devices), options_.compress, options_.max_bytes / 16}),
      files_(folders_, sync_, options_.max_dynamic_fds),
      space_({folders_, files_, closed_, manifest_writer_, manifest_},
             {options_.max_bytes, options_.age_at_limit, options_.place_bytes}),
      process_folders_(folders_, files_, manifest_, closed_.index()) {}

SessionDump::~SessionDump() {
  if (!finished_) Flush().Ignore();
}

Result<std::unique_ptr<SessionDump>> SessionDump::Create(DumpRoot& root, SessionDumpOptions options,
                                                         DumpIo& io) {
  std::unique_ptr<SessionDump> dump(new SessionDump(io, std::move(options)));
  Status built = dump->Build(root);
  if (built.ok()) return dump;
  dump->finished_ = true;
  if (!dump->name().empty()) root.Remove(dump->name()).Ignore();
  return built;
}

Status SessionDump::Build(DumpRoot& root) {
  RETURN_IF_ERROR(folders_.Make(root, options_.session.start_wall_ns));
  if (options_.session.result_dir.empty()) options_.session.result_dir = path();
  RETURN_IF_ERROR(BuildFolder(nullptr));
  RETURN_IF_ERROR(folders_.AddOwn());
  closed_.index().SetDir(folders_.own());
  for (const SessionDumpOptions::Device& device : options_.devices) RETURN_IF_ERROR(BuildFolder(&device));
  CompleteManifest();
  return WriteManifest();
}

Status SessionDump::BuildFolder(const SessionDumpOptions::Device* device) {
  const int id = device ? device->facts.id : kVendorHostId;
  if (id < 0 || folders_.Find(id)) return InvalidArgument(fmt::format("device {} twice or not possible", id));
  Result<DataFolder*> folder = folders_.Add(id);
  return folder.ok() ? WriteControls(**folder, device) : folder.status();
}

Status SessionDump::WriteControls(DataFolder& folder, const SessionDumpOptions::Device* device) {
  const SessionFacts& session = options_.session;
  RETURN_IF_ERROR(folders_.WriteControl(folder, "start_info", StartInfo(session.start_wall_ns, session.start_raw_ns)));
  if (!device) {
    RETURN_IF_ERROR(folders_.WriteControl(folder, "host_start.log", HostStartLog(options_.host_clocks, folder.device)));
  } else if (!options_.clocks_later) {
    RETURN_IF_ERROR(WriteClocks(folder, device->clocks));
  }
  RETURN_IF_ERROR(folders_.WriteControl(folder, "sample.json", SampleJson(session, folder.device)));
  return folders_.WriteControl(folder, "info.json",
                               InfoJson(options_.node, session, device ? &device->facts : nullptr));
}

// Of a device whose own could not be read.
DumpClocks SessionDump::ClocksOfHost() const {
  DumpClocks clocks = options_.host_clocks;
  clocks.device_ns = clocks.host_ns;
  clocks.device_count = clocks.host_count;
  return clocks;
}

Status SessionDump::WriteClocks(DataFolder& folder, const std::optional<DumpClocks>& known) {
  const DumpClocks clocks = known.value_or(ClocksOfHost());
  if (!known) {
    // The analyser gives up, or grows without bound, without the device's clocks. Let it take the
    // device's clock for the host's.
    manifest_.warnings.push_back(UnknownClocksText(folder.device));
  } else if (!known->Has(abi::TimeKind::kDeviceMonotonicNs)) {
    manifest_.warnings.push_back(UnknownClockText(folder.device));
  } else if (!known->Has(abi::TimeKind::kDeviceCounter)) {
    manifest_.warnings.push_back(UnknownCounterText(folder.device));
  }
  RETURN_IF_ERROR(folders_.WriteControl(folder, "host_start.log", HostStartLog(clocks, folder.device)));
  return folders_.WriteControl(folder, "dev_start.log", DevStartLog(clocks));
}

Result<DataFolder*> SessionDump::FindDevice(int device) {
  DataFolder* folder = device == kVendorHostId ? nullptr : folders_.Find(device);
  if (!folder) return NotFound(fmt::format("device {} is not in this dump", device));
  return folder;
}

Status SessionDump::SetClocks(int device, const std::optional<DumpClocks>& clocks) {
  Result<DataFolder*> folder = FindDevice(device);
  if (!folder.ok()) return folder.status();
  if (clocks) manifest_.clocks.push_back({device, "start", *clocks});
  return WriteClocks(**folder, clocks);
}

Status SessionDump::AddDevice(SessionDumpOptions::Device device, const SampleOptions& sample) {
  if (finished_) return FailedPrecondition("the dump is finished");
  if (device.facts.id < 0 || folders_.Find(device.facts.id)) {
    return InvalidArgument(fmt::format("device {} twice or not possible", device.facts.id));
  }
  RETURN_IF_ERROR(space_.Reserve(kControlBytes));
  space_.Forget();
  if (device.facts.chip_id == kChipWithoutAgeing) closed_.NeverAge();
  options_.session.options = sample;
  options_.devices.push_back(std::move(device));
  RETURN_IF_ERROR(BuildFolder(&options_.devices.back()));
  DescribeDevice(options_.devices.back());
  return WriteManifest();
}

// With a small limit they are shorter: Compress leaves out what is larger than a 16th of it, and ageing removes a complete slice.
uint64_t SessionDump::ActivitySliceBytes() const {
  constexpr uint64_t kLeastPart = 32;
  const uint64_t most = options_.max_bytes == 0 ? UINT64_MAX : options_.max_bytes / kLeastPart;
  return std::max(options_.slice_bytes, std::min(kActivitySlice * options_.slice_bytes, most));
}

Result<DumpFile*> SessionDump::AddFile(DataFolder* folder_or_null, SliceOptions options) {
  if (finished_) return FailedPrecondition("the dump is finished");
  options.slice_bytes = FindActivityFile(options.base) != nullptr ? ActivitySliceBytes() : options_.slice_bytes;
  Result<DumpFile*> added = files_.Add(folder_or_null, std::move(options));
  if (added.ok()) closed_.Watch(**added);
  return added;
}

Result<SessionDump::Channel> SessionDump::OpenChannel(int device, uint32_t channel_id,
                                                      std::string_view file) {
  Result<DataFolder*> folder = FindDevice(device);
  if (!folder.ok()) return folder.status();
  const abi::ChannelFormat* format = abi::FindChannelFormat(channel_id);
  if (!format) return Unimplemented(fmt::format("channel {} has no file", channel_id));
  SliceOptions options;
  options.base = file.empty() ? format->file : file;
  for (const SessionDumpOptions::Device& known : options_.devices) {
    if (known.facts.id != device) continue;
    options.header = abi::SliceHeader(*format, static_cast<uint32_t>(known.facts.chip_id));
  }
  if (!options.header.empty()) options.header_token = format->header_token;
  options.single_slice = format->single_slice;
  Result<DumpFile*> added = AddFile(*folder, std::move(options));
  if (!added.ok()) return added.status();
  (*added)->channel_id = channel_id;
  channels_.push_back(*added);
  return static_cast<Channel>(channels_.size() - 1);
}

Status SessionDump::Append(Channel channel, std::span<const std::byte> bytes, uint64_t records,
                           int64_t host_ns) {
  if (channel >= channels_.size()) return InvalidArgument("no such channel in the dump");
  return AppendTo(*channels_[channel], bytes, {records, host_ns});
}

Status SessionDump::AppendHostFile(std::string_view file, std::string_view lines,
                                   const Batch& batch) {
  return AppendDynamic(kVendorHostId, file, lines, batch);
}

Status SessionDump::AppendDeviceFile(int device, std::string_view file, std::string_view lines,
                                     const Batch& batch) {
  if (device == kVendorHostId) return NotFound("no such device in the dump");
  return AppendDynamic(device, file, lines, batch);
}

Result<SessionDump::HostFile> SessionDump::OpenHostFile(std::string_view file,
                                                        std::string_view collector) {
  Result<DumpFile*> opened = OpenDynamic(kVendorHostId, file, collector);
  if (!opened.ok()) return opened.status();
  return (*opened)->number;
}

bool SessionDump::IsHostFile(HostFile number, std::string_view file) const {
  if (number >= files_.size()) return false;
  const DumpFile& known = files_.at(number);
  return known.dynamic && known.device < 0 && known.writer->options().base == file;
}

Status SessionDump::AppendHostFile(HostFile file, std::string_view lines, const Batch& batch) {
  if (file >= files_.size()) return InvalidArgument("no such file in the dump");
  return AppendTo(files_.at(file), AsBytes(lines), batch);
}

Status SessionDump::AppendDynamic(int device, std::string_view file, std::string_view lines,
                                  const Batch& batch) {
  Result<DumpFile*> opened = OpenDynamic(device, file, batch.collector);
  if (!opened.ok()) return opened.status();
  return AppendTo(**opened, AsBytes(lines), batch);
}

Result<DumpFile*> SessionDump::OpenDynamic(int device, std::string_view file, std::string_view collector) {
  if (DumpFile* found = files_.Find(device, file)) return found;
  DataFolder* folder = folders_.Find(device);
  if (!folder) return NotFound(fmt::format("device {} is not in this dump", device));
  if (dynamic_files_ >= options_.max_dynamic_files) {
    return OutOfRange(fmt::format("more than {} host files", options_.max_dynamic_files));
  }
  SliceOptions options{.base = std::string(file),
                       .single_slice = std::ranges::find(kUncutFiles, file) != kUncutFiles.end(),
                       .buffer_bytes = dynamic_files_ < kLargeBufferFiles ? kLargeBufferBytes : kDynamicBufferBytes};
  Result<DumpFile*> added = AddFile(folder, std::move(options));
  if (!added.ok()) return added.status();
  (*added)->dynamic = true;
  (*added)->collector = collector;
  ++dynamic_files_;
  return added;
}

Status SessionDump::AppendOwn(std::string_view file, std::string_view lines) {
  if (DumpFile* found = files_.Find(DumpFiles::kOwn, file)) return AppendTo(*found, AsBytes(lines), {});
  SliceOptions options{.base = std::string(file), .header = std::string(OwnFileHeading(file)), .plain = true};
  if (options.header.empty()) return InvalidArgument("none of our own files");
  // Large blocks of records are written at once; their names must be in the file before them.
  if (file == kActivityNamesFile) options.buffer_bytes = 0;
  Result<DumpFile*> added = AddFile(nullptr, std::move(options));
  if (!added.ok()) return added.status();
  return AppendTo(**added, AsBytes(lines), {});
}

Status SessionDump::AppendTo(DumpFile& file, std::span<const std::byte> bytes, const Batch& batch) {
  if (finished_) return FailedPrecondition("the dump is finished");
  file.appending = true;
  Status result = space_.Reserve(file, bytes.size());
  if (result.ok()) {
    result = files_.Append(file, bytes, batch.records, batch.host_ns);
    // The volume is full: the oldest goes, as it would have at the next look at the volume.
    if (result.code() == StatusCode::kResourceExhausted && closed_.AgeFor(kAgeingStep) > 0) {
      result = files_.Append(file, bytes, batch.records, batch.host_ns);
    }
  }
  file.appending = false;
  space_.AgeFolders();
  return result;
}

}  // namespace profd
