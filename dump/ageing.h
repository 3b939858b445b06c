// Which closed slices go when a dump nears its limit (driver-abi 5.3): the oldest first, of each
// directory (host/, device_<N>/) by itself and of the complete dump; never a file's last one, never
// files a reader cannot do without, aicore.data and hwts.data together. Arithmetic only: removes
// nothing itself. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace profd {

inline constexpr uint64_t kAgeingMargin = 20u << 20;
// Ascend310: the vendor's collector ages nothing there.
inline constexpr int kChipWithoutAgeing = 0;

// Half of the option in whole MiB: what one directory may hold.
constexpr uint64_t PlaceLimit(uint64_t storage_limit_bytes) {
  return (storage_limit_bytes >> 21) << 20;
}
// A directory with more closed slices than this is aged down to it. (No order's limit is so small
// that the margin is more than half of it.)
constexpr uint64_t PlaceThreshold(uint64_t place_limit) {
  return place_limit - (place_limit / 2 < kAgeingMargin ? place_limit / 2 : kAgeingMargin);
}

// False for what must stay.
bool MayAge(std::string_view base);

class Ageing {
 public:
  using FileId = uint32_t;
  struct Slice {
    FileId file = 0;
    uint32_t slice = 0;
    uint64_t bytes = 0;  // on disk, with its .done
    uint64_t number = 0;  // slices of all places in the order they were closed
  };

  // `has_open`: does the file have data in a slice that is not closed? It may write them to find out.
  explicit Ageing(std::function<bool(FileId)> has_open) : has_open_(std::move(has_open)) {}

  FileId AddFile(size_t place, std::string_view base);
  void Closed(FileId file, uint32_t slice, uint64_t bytes);
  // It was compressed.
  void Resized(FileId file, uint32_t slice, uint64_t bytes);

  // Bytes of a place's closed slices, those that may not go included.
  uint64_t stored(size_t place) const;
  // The next to go, of `place` or of all; the caller removes it and calls Gone. Nothing: all that is
  // left must stay.
  std::optional<Slice> Oldest(std::optional<size_t> place = std::nullopt) const;
  // What goes with it: the oldest slice of the other one of a pair.
  std::optional<Slice> PartnerOf(const Slice& slice) const;
  void Gone(const Slice& slice);

 private:
  struct File {
    size_t place = 0;
    bool ages = true;
    int pair = 0;  // 0 none, 1 aicore.data, 2 hwts.data
    size_t closed = 0;
  };
  struct DataFolder {
    uint64_t stored = 0;
    std::deque<Slice> queue;  // of files that age
  };
  bool MayGo(const Slice& slice) const;
  const Slice* OldestOf(const DataFolder& place) const;

  std::function<bool(FileId)> has_open_;
  std::vector<File> files_;
  std::vector<DataFolder> places_;
  uint64_t next_number_ = 0;
};

}  // namespace profd
