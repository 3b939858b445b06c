#include "dump/session_dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "driver/abi/channels.h"

namespace profd {
namespace {

// Many processes, little from each.
constexpr size_t kDynamicBufferBytes = 8u << 10;
// Kept free under a limit for what the end of a dump needs: the manifest, end_info, last .done
// files.
constexpr uint64_t kReserveBytes = 128u << 10;
constexpr uint64_t kReservePerFile = 512;
constexpr uint64_t kReservePerChannel = 1024;  // of the manifest, likewise below
constexpr uint64_t kReservePerGap = 192;

// Host files of which the vendor's reader keeps only the last slice, or loses the sample at a cut
// (dump-format 1.1).
constexpr std::array<std::string_view, 3> kUncutFiles = {"host_cpu.data", "host_disk.data",
                                                         "host_network.data"};

// Remembers the first error of a sequence that goes on regardless.
void Keep(Status& first, Status next) {
  if (first.ok() && !next.ok()) first = std::move(next);
}

}  // namespace

SessionDump::SessionDump(DumpIo& io, SessionDumpOptions options)
    : io_(io), options_(std::move(options)), manifest_(std::move(options_.manifest)) {}

SessionDump::~SessionDump() {
  if (!finished_) Flush().Ignore();
}

Result<std::unique_ptr<SessionDump>> SessionDump::Create(DumpRoot& root, SessionDumpOptions options,
                                                         DumpIo& io) {
  std::unique_ptr<SessionDump> dump(new SessionDump(io, std::move(options)));
  Status built = dump->Build(root);
  if (built.ok()) return dump;
  dump->finished_ = true;
  if (!dump->name_.empty()) root.Remove(dump->name_).Ignore();
  return built;
}

Status SessionDump::Build(DumpRoot& root) {
  Result<DumpRoot::NewDump> made = root.CreateDump(options_.owner, options_.session.start_wall_ns);
  if (!made.ok()) return made.status();
  name_ = std::move(made->name);
  top_ = std::move(made->dir);
  path_ = fmt::format("{}/{}", root.path(), name_);
  if (options_.session.result_dir.empty()) options_.session.result_dir = path_;
  RETURN_IF_ERROR(BuildPlace(nullptr));
  for (const SessionDumpOptions::Device& device : options_.devices) {
    if (device.facts.id < 0 || FindPlace(device.facts.id)) {
      return InvalidArgument(fmt::format("device {} twice or not possible", device.facts.id));
    }
    RETURN_IF_ERROR(BuildPlace(&device));
  }
  CompleteManifest();
  return WriteManifest();
}

Status SessionDump::BuildPlace(const SessionDumpOptions::Device* device) {
  Place place;
  if (device) place.device = device->facts.id;
  std::string dir_name = device ? fmt::format("device_{}", place.device) : "host";
  Result<UniqueFd> dir = MakeDirAt(top_.get(), dir_name, options_.owner);
  if (!dir.ok()) return dir.status();
  place.dir = std::move(*dir);
  Result<UniqueFd> data = MakeDirAt(place.dir.get(), "data", options_.owner);
  if (!data.ok()) return data.status();
  place.data = std::move(*data);

  const SessionFacts& session = options_.session;
  RETURN_IF_ERROR(
      WriteControl(place, "start_info", StartInfo(session.start_wall_ns, session.start_raw_ns)));
  if (!device) {
    RETURN_IF_ERROR(WriteControl(place, "host_start.log",
                                 HostStartLog(options_.host_clocks, place.device)));
  } else if (!options_.clocks_later) {
    RETURN_IF_ERROR(WriteClocks(place, device->clocks));
  }
  RETURN_IF_ERROR(WriteControl(place, "sample.json", SampleJson(session, place.device)));
  RETURN_IF_ERROR(WriteControl(
      place, "info.json", InfoJson(options_.node, session, device ? &device->facts : nullptr)));
  places_.push_back(std::move(place));
  return {};
}

// `name` without the device's suffix; sample.json never has one.
Status SessionDump::WriteClocks(const Place& place, const std::optional<DumpClocks>& known) {
  DumpClocks clocks = known.value_or(options_.host_clocks);
  if (!known) {
    // The analyser gives up, or grows without bound, without the device's clocks. Let it take the
    // device's clock for the host's.
    clocks.device_ns = clocks.host_ns;
    clocks.device_count = clocks.host_count;
    manifest_.warnings.push_back(fmt::format(
        "the clocks of device {} could not be read; its time stamps are off by an unknown amount",
        place.device));
  }
  RETURN_IF_ERROR(WriteControl(place, "host_start.log", HostStartLog(clocks, place.device)));
  return WriteControl(place, "dev_start.log", DevStartLog(clocks));
}

Status SessionDump::SetClocks(int device, const std::optional<DumpClocks>& clocks) {
  Place* place = device == kVendorHostId ? nullptr : FindPlace(device);
  if (!place) return NotFound(fmt::format("device {} is not in this dump", device));
  if (clocks) manifest_.clocks.push_back({device, "start", *clocks});
  return WriteClocks(*place, clocks);
}

Status SessionDump::WriteControl(const Place& place, std::string name, std::string_view text) {
  if (place.device != kVendorHostId && name != "sample.json") {
    name += fmt::format(".{}", place.device);
  }
  RETURN_IF_ERROR(WriteNewFile(io_, place.dir.get(), name, text, options_.owner));
  std::string done = ControlDone(text.size());
  RETURN_IF_ERROR(WriteNewFile(io_, place.dir.get(), name + ".done", done, options_.owner));
  taken_bytes_ += text.size() + done.size();
  return {};
}

SessionDump::Place* SessionDump::FindPlace(int device) {
  for (Place& place : places_) {
    if (place.device == device) return &place;
  }
  return nullptr;
}

// Reuses one string: a session with processes looks a name up tens of thousands of times a second.
const std::string& SessionDump::KeyOf(int device, std::string_view base) {
  const fmt::format_int number(device);
  key_.assign(number.data(), number.size());
  key_ += '/';
  key_ += base;
  return key_;
}

Result<SessionDump::File*> SessionDump::AddFile(Place& place, SliceOptions options) {
  if (finished_) return FailedPrecondition("the dump is finished");
  if (!IsSafeName(options.base)) return InvalidArgument("not a possible file name");
  const std::string& key = KeyOf(place.device, options.base);
  if (by_name_.contains(key)) return AlreadyExists(fmt::format("{} is open already", key));
  options.slice_bytes = options_.slice_bytes;
  if (place.device != kVendorHostId) options.device = place.device;
  auto file = std::make_unique<File>();
  file->device = options.device;
  file->writer =
      std::make_unique<SliceWriter>(io_, place.data.get(), options_.owner, std::move(options));
  files_.push_back(std::move(file));
  by_name_[key] = files_.back().get();
  return files_.back().get();
}

Result<SessionDump::Channel> SessionDump::OpenChannel(int device, uint32_t channel_id,
                                                      std::string_view file) {
  Place* place = device == kVendorHostId ? nullptr : FindPlace(device);
  if (!place) return NotFound(fmt::format("device {} is not in this dump", device));
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
  Result<File*> added = AddFile(*place, std::move(options));
  if (!added.ok()) return added.status();
  (*added)->channel_id = channel_id;
  channels_.push_back(*added);
  return static_cast<Channel>(channels_.size() - 1);
}

Status SessionDump::Append(Channel channel, std::span<const std::byte> bytes, uint64_t records) {
  if (channel >= channels_.size()) return InvalidArgument("no such channel in the dump");
  return AppendTo(*channels_[channel], bytes, records);
}

Status SessionDump::AppendHostFile(std::string_view file, std::string_view lines,
                                   uint64_t records) {
  return AppendDynamic(kVendorHostId, file, lines, records);
}

Status SessionDump::AppendDeviceFile(int device, std::string_view file, std::string_view lines,
                                     uint64_t records) {
  if (device == kVendorHostId) return NotFound("no such device in the dump");
  return AppendDynamic(device, file, lines, records);
}

Status SessionDump::AppendDynamic(int device, std::string_view file, std::string_view lines,
                                  uint64_t records) {
  auto found = by_name_.find(KeyOf(device, file));
  if (found != by_name_.end()) return AppendTo(*found->second, AsBytes(lines), records);
  Place* place = FindPlace(device);
  if (!place) return NotFound(fmt::format("device {} is not in this dump", device));
  if (dynamic_files_ >= options_.max_dynamic_files) {
    return ResourceExhausted(fmt::format("more than {} host files", options_.max_dynamic_files));
  }
  SliceOptions options;
  options.base = file;
  options.buffer_bytes = kDynamicBufferBytes;
  options.single_slice =
      std::find(kUncutFiles.begin(), kUncutFiles.end(), file) != kUncutFiles.end();
  Result<File*> added = AddFile(*place, std::move(options));
  if (!added.ok()) return added.status();
  (*added)->dynamic = true;
  ++dynamic_files_;
  return AppendTo(**added, AsBytes(lines), records);
}

Status SessionDump::AppendOwn(std::string_view file, std::string_view lines, uint64_t records) {
  constexpr int kOwnPlace = -1;  // no device has it
  auto found = by_name_.find(KeyOf(kOwnPlace, file));
  if (found != by_name_.end()) return AppendTo(*found->second, AsBytes(lines), records);
  if (finished_) return FailedPrecondition("the dump is finished");
  std::string_view heading = OwnFileHeading(file);
  if (heading.empty()) return InvalidArgument("none of our own files");
  if (!own_dir_.valid()) {
    Result<UniqueFd> dir = MakeDirAt(top_.get(), "profd", options_.owner);
    if (!dir.ok()) return dir.status();
    own_dir_ = std::move(*dir);
  }
  SliceOptions options;
  options.base = file;
  options.plain = true;
  options.header = heading;
  auto own = std::make_unique<File>();
  own->writer =
      std::make_unique<SliceWriter>(io_, own_dir_.get(), options_.owner, std::move(options));
  files_.push_back(std::move(own));
  by_name_[KeyOf(kOwnPlace, file)] = files_.back().get();
  return AppendTo(*files_.back(), AsBytes(lines), records);
}

Status SessionDump::AppendTo(File& file, std::span<const std::byte> bytes, uint64_t records) {
  if (finished_) return FailedPrecondition("the dump is finished");
  RETURN_IF_ERROR(CheckLimit(bytes.size()));
  uint64_t before = SizeOf(file);
  Status result = file.writer->Append(bytes, records);
  file.idle = false;
  Account(file, before);
  return result;
}

uint64_t SessionDump::SizeOf(const File& file) {
  return file.writer->bytes() + file.writer->overhead_bytes();
}

void SessionDump::Account(File& file, uint64_t size_before) {
  taken_bytes_ += SizeOf(file) - size_before;
  if (!file.dynamic) return;
  if (file.writer->holds_fd() && !file.holds_fd && dynamic_fds_ >= options_.max_dynamic_fds) {
    file.writer->ReleaseFd();
  }
  if (file.writer->holds_fd() == file.holds_fd) return;
  file.holds_fd = file.writer->holds_fd();
  dynamic_fds_ = file.holds_fd ? dynamic_fds_ + 1 : dynamic_fds_ - 1;
}

Status SessionDump::CheckLimit(uint64_t more) const {
  if (options_.max_bytes == 0) return {};
  uint64_t needed = taken_bytes_ + more + kReserveBytes + files_.size() * kReservePerFile +
                    manifest_.channels.size() * kReservePerChannel + gap_bytes_;
  if (needed <= options_.max_bytes) return {};
  return ResourceExhausted(
      fmt::format("{}: the dump may hold {} bytes", kStorageLimit, options_.max_bytes));
}

Status SessionDump::Flush() {
  Status first;
  gap_bytes_ = 0;
  for (const ManifestChannel& channel : manifest_.channels) {
    gap_bytes_ += channel.gaps.size() * kReservePerGap;
  }
  for (auto& file : files_) {
    uint64_t before = SizeOf(*file);
    Keep(first, file->writer->Flush());
    if (file->dynamic && file->idle) {
      file->writer->ReleaseFd();
      file->writer->ReleaseBuffer();
    }
    file->idle = true;
    Account(*file, before);
  }
  return first;
}

uint64_t SessionDump::bytes_written() const { return taken_bytes_; }

SessionDump::ChannelStats SessionDump::Stats(Channel channel) const {
  if (channel >= channels_.size()) return {};
  const SliceWriter& writer = *channels_[channel]->writer;
  return {writer.records(), writer.bytes(), writer.lost_records(), writer.lost_bytes(),
          writer.slices()};
}

size_t SessionDump::open_fds() const {
  return static_cast<size_t>(std::count_if(
      files_.begin(), files_.end(), [](const auto& file) { return file->writer->holds_fd(); }));
}

void SessionDump::CompleteManifest() {
  const SessionFacts& session = options_.session;
  const NodeFacts& node = options_.node;
  if (manifest_.profd_version.empty()) manifest_.profd_version = node.profd_version;
  if (manifest_.hal_api_version == 0) manifest_.hal_api_version = node.hal_api_version;
  manifest_.state = DumpState::kRunning;
  manifest_.session_id = session.session_id;
  manifest_.uid = options_.owner.uid;
  manifest_.gid = options_.owner.gid;
  if (manifest_.pid == 0) manifest_.pid = session.pid;
  manifest_.job_id = session.job_id;
  if (!manifest_.rank && session.rank >= 0) manifest_.rank = session.rank;
  manifest_.start_wall_ns = session.start_wall_ns;
  manifest_.start_raw_ns = session.start_raw_ns;
  manifest_.hostname = node.hostname;
  manifest_.os = node.os;
  manifest_.machine = node.machine;
  manifest_.host_counter_hz = node.host_counter_hz;
  manifest_.clocks.push_back({-1, "start", options_.host_clocks});
  for (const SessionDumpOptions::Device& device : options_.devices) {
    const DeviceFacts& facts = device.facts;
    if (device.clocks) manifest_.clocks.push_back({facts.id, "start", *device.clocks});
    bool known = std::any_of(manifest_.devices.begin(), manifest_.devices.end(),
                             [&](const ManifestDevice& one) { return one.id == facts.id; });
    if (known) continue;
    ManifestDevice one;
    one.id = facts.id;
    one.physical_id = facts.id;
    one.chip_id = facts.chip_id;
    one.counter_hz = facts.counter_hz;
    one.aicore_mhz = facts.aicore_mhz;
    manifest_.devices.push_back(std::move(one));
  }
  if (node.net_speed_assumed) {
    manifest_.warnings.push_back("the speed of a network card is unknown; 10 Gb/s is assumed");
  }
}

void SessionDump::UpdateManifestCounts() {
  for (ManifestChannel& entry : manifest_.channels) {
    for (const File* file : channels_) {
      if (file->device != entry.device || file->channel_id != entry.channel) continue;
      entry.file = file->writer->options().base;
      entry.records = file->writer->records() - file->writer->lost_records();
      entry.bytes = file->writer->bytes() - file->writer->lost_bytes();
    }
  }
}

Status SessionDump::ListFiles() {
  manifest_.files.clear();
  manifest_.data_bytes = 0;
  return WalkTree(top_.get(), {}, [this](const TreeEntry& entry) {
    if (entry.is_dir || entry.other || entry.path.ends_with(".done") ||
        entry.path.starts_with(".") || entry.path == kManifestFile) {
      return Status();
    }
    manifest_.data_bytes += entry.bytes;
    manifest_.files.push_back({entry.path, entry.bytes});
    return Status();
  });
}

Status SessionDump::WriteManifest() {
  UpdateManifestCounts();
  return ReplaceFile(io_, top_.get(), std::string(kManifestFile), Serialize(manifest_),
                     options_.owner, false);
}

Status SessionDump::WriteEndInfo(const EndFacts& end) {
  Status first;
  for (const Place& place : places_) {
    Keep(first, WriteControl(place, "end_info", EndInfo(end.wall_ns, end.raw_ns)));
  }
  return first;
}

Status SessionDump::Finish(const EndFacts& end) {
  if (finished_) return FailedPrecondition("the dump is finished");
  Status first;
  for (auto& file : files_) {
    uint64_t before = SizeOf(*file);
    Keep(first, file->writer->Close());
    Account(*file, before);
    if (file->writer->lost_bytes() == 0) continue;
    for (ManifestChannel& entry : manifest_.channels) {
      if (entry.device != file->device || entry.channel != file->channel_id) continue;
      if (file->channel_id == 0 && entry.file != file->writer->options().base) continue;
      entry.AddLoss("write_error", file->writer->lost_records(), file->writer->lost_bytes());
    }
  }
  Keep(first, WriteEndInfo(end));
  manifest_.state = end.state;
  manifest_.reason = end.reason;
  manifest_.end_wall_ns = end.wall_ns;
  manifest_.end_raw_ns = end.raw_ns;
  Keep(first, ListFiles());
  Keep(first, WriteManifest());
  finished_ = true;
  if (options_.sync_at_end && io_.SyncFileSystem(top_.get()) != 0) {
    Keep(first, Status::FromErrno(errno, fmt::format("sync {}", name_)));
  }
  return first;
}

}  // namespace profd
