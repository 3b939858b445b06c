#include "dump/ageing.h"

#include <algorithm>
#include <array>

namespace profd {
namespace {

// Names with one of these in them (driver-abi 5.3).
constexpr std::array<std::string_view, 15> kNeverAged = {
    "model_load_info", "task_desc_info",  "id_map_info", "fusion_op_info", "tensor_data_info",
    "step_info",       "training_trace",  "info.json",   "hash_dic",       "start_info",
    "end_info",        "host_start",      "dev_start",   "sample.json",    "unaging"};

int PairOf(std::string_view base) {
  if (base == "aicore.data") return 1;
  return base == "hwts.data" ? 2 : 0;
}

}  // namespace

bool MayAge(std::string_view base) {
  return std::ranges::none_of(kNeverAged, [&](std::string_view name) {
    return base.find(name) != std::string_view::npos;
  });
}

Ageing::FileId Ageing::AddFile(size_t place, std::string_view base) {
  if (place >= places_.size()) places_.resize(place + 1);
  files_.push_back({place, MayAge(base), PairOf(base), 0});
  return static_cast<FileId>(files_.size() - 1);
}

void Ageing::Closed(FileId file, uint32_t slice, uint64_t bytes) {
  File& of = files_[file];
  DataFolder& place = places_[of.place];
  place.stored += bytes;
  ++of.closed;
  if (of.ages) place.queue.push_back({file, slice, bytes, next_number_});
  ++next_number_;
}

void Ageing::Resized(FileId file, uint32_t slice, uint64_t bytes) {
  DataFolder& place = places_[files_[file].place];
  for (Slice& one : place.queue) {
    if (one.file != file || one.slice != slice) continue;
    place.stored = place.stored - one.bytes + bytes;
    one.bytes = bytes;
    return;
  }
}

uint64_t Ageing::stored(size_t place) const {
  return place < places_.size() ? places_[place].stored : 0;
}

bool Ageing::MayGo(const Slice& slice) const {
  const File& file = files_[slice.file];
  return file.closed > 1 || has_open_(slice.file);
}

// What must stay is at most one slice per file, so this does not look far.
const Ageing::Slice* Ageing::OldestOf(const DataFolder& place) const {
  auto found = std::ranges::find_if(place.queue, [this](const Slice& slice) { return MayGo(slice); });
  return found == place.queue.end() ? nullptr : &*found;
}

std::optional<Ageing::Slice> Ageing::Oldest(std::optional<size_t> place) const {
  const Slice* oldest = nullptr;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (place && i != *place) continue;
    const Slice* one = OldestOf(places_[i]);
    if (one != nullptr && (oldest == nullptr || one->number < oldest->number)) oldest = one;
  }
  if (oldest == nullptr) return std::nullopt;
  return *oldest;
}

std::optional<Ageing::Slice> Ageing::PartnerOf(const Slice& slice) const {
  const File& file = files_[slice.file];
  if (file.pair == 0) return std::nullopt;
  for (const Slice& one : places_[file.place].queue) {
    const File& other = files_[one.file];
    if (other.pair != 0 && other.pair != file.pair && MayGo(one)) return one;
  }
  return std::nullopt;
}

void Ageing::Gone(const Slice& slice) {
  File& file = files_[slice.file];
  DataFolder& place = places_[file.place];
  auto found = std::ranges::find(place.queue, slice.number, &Slice::number);
  if (found == place.queue.end()) return;
  place.stored -= found->bytes;
  --file.closed;
  place.queue.erase(found);
}

}  // namespace profd
