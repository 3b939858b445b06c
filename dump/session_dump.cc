#include "dump/session_dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "driver/abi/channels.h"
#include "dump/activity_files.h"
#include "dump/data_name.h"

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

}  // namespace

SessionDump::SessionDump(DumpIo& io, SessionDumpOptions options)
    : io_(io),
      options_(std::move(options)),
      manifest_(std::move(options_.manifest)),
      sync_outcome_(std::make_shared<std::atomic<int>>(0)),
      slice_index_(io, options_.owner),
      ageing_([this](Ageing::FileId id) { return WriteOpen(*by_id_[id]); }),
      process_folders_({io_, options_.owner, name_, top_, own_dir_, places_, manifest_, slice_index_, control_files_, taken_bytes_,
                        [this](int device, std::string_view base) { return by_name_.contains(KeyOf(device, base)); }}) {
  if (options_.clock == nullptr) options_.clock = &system_clock_;
  for (const SessionDumpOptions::Device& device : options_.devices) {
    if (device.facts.chip_id == kChipWithoutAgeing) ages_ = false;
  }
  if (options_.compress > 0) {
    compressor_ = std::make_unique<SliceCompressor>(io_, options_.owner, options_.compress);
  }
}

SessionDump::~SessionDump() {
  if (pending_manifest_ != nullptr) pending_manifest_->CallOff();
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
  Result<UniqueFd> own = MakeDirAt(places_.front().dir.get(), std::string(kOwnFolder), options_.owner);
  if (!own.ok()) return own.status();
  own_dir_ = std::move(*own);
  slice_index_.SetDir(own_dir_.get());
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
  DataFolder place;
  if (device) place.device = device->facts.id;
  place.name = device ? fmt::format("device_{}", place.device) : "host";
  Result<UniqueFd> dir = MakeTopFolderAt(top_.get(), place.name, options_.owner);
  if (!dir.ok()) return dir.status();
  place.dir = std::move(*dir);
  Result<UniqueFd> data = MakeDirAt(place.dir.get(), "data", options_.owner);
  if (!data.ok()) return data.status();
  place.data = std::move(*data);
  places_.push_back(std::move(place));
  return WriteControls(places_.back(), device);
}

Status SessionDump::WriteControls(DataFolder& place, const SessionDumpOptions::Device* device) {
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
  return WriteControl(place, "info.json",
                      InfoJson(options_.node, session, device ? &device->facts : nullptr));
}

// Of a device whose own could not be read.
DumpClocks SessionDump::ClocksOfHost() const {
  DumpClocks clocks = options_.host_clocks;
  clocks.device_ns = clocks.host_ns;
  clocks.device_count = clocks.host_count;
  return clocks;
}

// `name` without the device's suffix; sample.json never has one.
Status SessionDump::WriteClocks(DataFolder& place, const std::optional<DumpClocks>& known) {
  const DumpClocks clocks = known.value_or(ClocksOfHost());
  if (!known) {
    // The analyser gives up, or grows without bound, without the device's clocks. Let it take the
    // device's clock for the host's.
    manifest_.warnings.push_back(UnknownClocksText(place.device));
  }
  RETURN_IF_ERROR(WriteControl(place, "host_start.log", HostStartLog(clocks, place.device)));
  return WriteControl(place, "dev_start.log", DevStartLog(clocks));
}

Status SessionDump::SetClocks(int device, const std::optional<DumpClocks>& clocks) {
  DataFolder* place = device == kVendorHostId ? nullptr : FindPlace(device);
  if (!place) return NotFound(fmt::format("device {} is not in this dump", device));
  if (clocks) manifest_.clocks.push_back({device, "start", *clocks});
  return WriteClocks(*place, clocks);
}

Status SessionDump::AddDevice(SessionDumpOptions::Device device, const SampleOptions& sample) {
  if (finished_) return FailedPrecondition("the dump is finished");
  if (device.facts.id < 0 || FindPlace(device.facts.id)) {
    return InvalidArgument(fmt::format("device {} twice or not possible", device.facts.id));
  }
  RETURN_IF_ERROR(ReserveSpace(kControlBytes));
  space_known_ = 0;
  if (device.facts.chip_id == kChipWithoutAgeing) ages_ = false;
  options_.session.options = sample;
  options_.devices.push_back(std::move(device));
  RETURN_IF_ERROR(BuildPlace(&options_.devices.back()));
  DescribeDevice(options_.devices.back());
  return WriteManifest();
}

Status SessionDump::WriteControl(DataFolder& place, std::string name, std::string_view text) {
  if (place.device != kVendorHostId && name != "sample.json") {
    name += fmt::format(".{}", place.device);
  }
  RETURN_IF_ERROR(WriteNewFile(io_, place.dir.get(), name, text, options_.owner));
  std::string done = ControlDone(text.size());
  RETURN_IF_ERROR(WriteNewFile(io_, place.dir.get(), name + ".done", done, options_.owner));
  taken_bytes_ += text.size() + done.size();
  place.bytes += text.size() + done.size();
  ++final_entries_;
  if (running_sync() != nullptr) {
    unsynced_controls_.emplace_back(static_cast<size_t>(&place - places_.data()), name);
  }
  control_files_[fmt::format("{}/{}", place.name, name)] = {Crc32c(AsBytes(text))};
  return {};
}

DataFolder* SessionDump::FindPlace(int device) {
  for (DataFolder& place : places_) {
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

// With a small limit they are shorter: Compress leaves out what is larger than a 16th of it, and ageing removes a complete slice.
uint64_t SessionDump::ActivitySliceBytes() const {
  constexpr uint64_t kLeastPart = 32;
  const uint64_t most = options_.max_bytes == 0 ? UINT64_MAX : options_.max_bytes / kLeastPart;
  return std::max(options_.slice_bytes, std::min(kActivitySlice * options_.slice_bytes, most));
}

Result<SessionDump::File*> SessionDump::AddFile(DataFolder& place, SliceOptions options) {
  if (finished_) return FailedPrecondition("the dump is finished");
  if (!IsSafeName(options.base)) return InvalidArgument("not a possible file name");
  const std::string& key = KeyOf(place.device, options.base);
  if (by_name_.contains(key)) return AlreadyExists(fmt::format("{} is open already", key));
  options.slice_bytes = FindActivityFile(options.base) != nullptr ? ActivitySliceBytes() : options_.slice_bytes;
  if (place.device != kVendorHostId) options.device = place.device;
  place.singles += options.single_slice ? 1 : 0;
  singles_ += options.single_slice ? 1 : 0;
  auto file = std::make_unique<File>();
  file->device = options.device;
  file->place = static_cast<size_t>(&place - places_.data());
  file->id = ageing_.AddFile(*file->place, options.base);
  file->writer =
      std::make_unique<SliceWriter>(io_, place.data.get(), options_.owner, std::move(options));
  file->writer->SetObserver(this);
  file->number = static_cast<uint32_t>(files_.size());
  files_.push_back(std::move(file));
  File* added = files_.back().get();
  by_name_[key] = added;
  by_id_.push_back(added);
  by_writer_[added->writer.get()] = added;
  return added;
}

Result<SessionDump::Channel> SessionDump::OpenChannel(int device, uint32_t channel_id,
                                                      std::string_view file) {
  DataFolder* place = device == kVendorHostId ? nullptr : FindPlace(device);
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
  Result<File*> opened = OpenDynamic(kVendorHostId, file, collector);
  if (!opened.ok()) return opened.status();
  return (*opened)->number;
}

bool SessionDump::IsHostFile(HostFile number, std::string_view file) const {
  if (number >= files_.size()) return false;
  const File& known = *files_[number];
  return known.dynamic && known.device < 0 && known.writer->options().base == file;
}

Status SessionDump::AppendHostFile(HostFile file, std::string_view lines, const Batch& batch) {
  if (file >= files_.size()) return InvalidArgument("no such file in the dump");
  return AppendTo(*files_[file], AsBytes(lines), batch);
}

Status SessionDump::AppendDynamic(int device, std::string_view file, std::string_view lines,
                                  const Batch& batch) {
  Result<File*> opened = OpenDynamic(device, file, batch.collector);
  if (!opened.ok()) return opened.status();
  return AppendTo(**opened, AsBytes(lines), batch);
}

Result<SessionDump::File*> SessionDump::OpenDynamic(int device, std::string_view file,
                                                    std::string_view collector) {
  auto found = by_name_.find(KeyOf(device, file));
  if (found != by_name_.end()) return found->second;
  DataFolder* place = FindPlace(device);
  if (!place) return NotFound(fmt::format("device {} is not in this dump", device));
  if (dynamic_files_ >= options_.max_dynamic_files) {
    return OutOfRange(fmt::format("more than {} host files", options_.max_dynamic_files));
  }
  SliceOptions options;
  options.base = file;
  options.buffer_bytes =
      dynamic_files_ < kLargeBufferFiles ? kLargeBufferBytes : kDynamicBufferBytes;
  options.single_slice =
      std::find(kUncutFiles.begin(), kUncutFiles.end(), file) != kUncutFiles.end();
  Result<File*> added = AddFile(*place, std::move(options));
  if (!added.ok()) return added.status();
  (*added)->dynamic = true;
  (*added)->collector = collector;
  ++dynamic_files_;
  return added;
}

Status SessionDump::AppendOwn(std::string_view file, std::string_view lines, uint64_t records) {
  constexpr int kOwnPlace = -1;  // no device has it
  auto found = by_name_.find(KeyOf(kOwnPlace, file));
  if (found != by_name_.end()) return AppendTo(*found->second, AsBytes(lines), {records});
  if (finished_) return FailedPrecondition("the dump is finished");
  std::string_view heading = OwnFileHeading(file);
  if (heading.empty()) return InvalidArgument("none of our own files");
  SliceOptions options;
  options.base = file;
  options.plain = true;
  options.header = heading;
  // Large blocks of records are written at once; their names must be in the file before them.
  if (file == kActivityNamesFile) options.buffer_bytes = 0;
  auto own = std::make_unique<File>();
  own->writer =
      std::make_unique<SliceWriter>(io_, own_dir_.get(), options_.owner, std::move(options));
  own->writer->SetObserver(this);
  own->number = static_cast<uint32_t>(files_.size());
  files_.push_back(std::move(own));
  File* added = files_.back().get();
  by_name_[KeyOf(kOwnPlace, file)] = added;
  by_writer_[added->writer.get()] = added;
  return AppendTo(*added, AsBytes(lines), {records});
}

Status SessionDump::AppendTo(File& file, std::span<const std::byte> bytes, const Batch& batch) {
  if (finished_) return FailedPrecondition("the dump is finished");
  appending_ = &file;
  Status result = ReserveSpace(file, bytes.size());
  if (result.ok()) {
    const uint64_t before = SizeOf(file);
    result = file.writer->Append(bytes, batch.records, batch.host_ns);
    // The volume is full: the oldest goes, as it would have at the next look at the volume.
    if (result.code() == StatusCode::kResourceExhausted && AgeFor(kAgeingStep) > 0) {
      result = file.writer->Append(bytes, batch.records, batch.host_ns);
    }
    file.idle = false;
    Account(file, before);
  }
  appending_ = nullptr;
  if (space_known_ == 0) AgePlaces();
  return result;
}

uint64_t SessionDump::SizeOf(const File& file) {
  return file.writer->bytes() + file.writer->overhead_bytes();
}

void SessionDump::Account(File& file, uint64_t size_before) {
  taken_bytes_ += SizeOf(file) - size_before;
  if (file.place) places_[*file.place].bytes += SizeOf(file) - size_before;
  if (!file.dynamic) return;
  if (file.writer->holds_fd() && !file.holds_fd && dynamic_fds_ >= options_.max_dynamic_fds) {
    GiveFdBack(file);
  }
  if (file.writer->holds_fd() == file.holds_fd) return;
  file.holds_fd = file.writer->holds_fd();
  dynamic_fds_ = file.holds_fd ? dynamic_fds_ + 1 : dynamic_fds_ - 1;
}

void SessionDump::GiveFdBack(File& file) {
  if (running_sync() != nullptr && file.writer->unsynced_bytes() > 0) {
    options_.sync->Take(file.writer->CopyFd(), DumpSync::SyncMode::kSync, sync_outcome_);
    file.writer->MarkSynced();
  }
  file.writer->ReleaseFd();
}

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

}  // namespace profd
