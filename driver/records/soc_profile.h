// Channel 52 (stars_soc_profile): records of several types, with a head in common. Chips 15 and 16
// ("v6") lay out some of them differently.
#pragma once

#include <array>

#include "driver/abi/soc_profile.h"
#include "driver/records/record.h"

namespace profd::records {

// The types' bodies, behind the head. Inter-die links: bytes since the die's last record, of
// requests, responses, snoops and data.
struct SocSio {
  uint16_t reserved_1;
  uint16_t die;
  uint32_t reserved_2[3];
  std::array<uint32_t, 4> rx;
  std::array<uint32_t, 4> tx;
};
struct SocSioV6 {  // its die is the head's sub type
  uint32_t reserved_1[3];
  std::array<uint32_t, 4> rx;
  uint32_t reserved_2;
  std::array<uint32_t, 4> tx;
};

struct SocAccPmu {
  uint16_t reserved_1;
  uint16_t id;
  uint32_t reserved_2[3];
  uint64_t write_bandwidth;
  uint64_t read_bandwidth;
  uint64_t write_outstanding;
  uint64_t read_outstanding;
};

// Instead of a transfer: none was read.
inline constexpr uint64_t kNoTransfer = UINT64_MAX;

// Links between chips and PCIe; which of these is in the head's sub type.
struct SocTransfer {
  uint16_t reserved_1;
  uint16_t id;  // see Link
  uint32_t reserved_2[3];
  uint64_t first;   // rx of links, write of PCIe
  uint64_t second;  // tx, read
  uint32_t reserved_3[4];

  static constexpr uint16_t Link(uint16_t id) { return id & 0x3F; }
};
struct SocTransferV6 {  // PCIe; its die is the head's sub type
  uint64_t first;
  uint64_t second;
  uint64_t reserved[4];
};

struct SocLevels {
  uint32_t reserved_1[4];
  uint16_t levels;
  uint16_t reserved_2[15];

  int mata() const { return levels & 0x7; }
  int l2_buffer() const { return (levels & 0x7F8) >> 3; }
};

// Neighbours are swapped: words 0-9 are hard values 1, 0, 3, 2 ..., 10-19 soft ones likewise.
struct SocLowPower {
  static constexpr size_t kAicoreMhz = 11;  // which word: soft value 0
  uint64_t reserved;
  std::array<uint16_t, 20> words;
};

struct SocQos {                          // MB/s by stream
  static constexpr size_t kFirstV6 = 2;  // words before the first stream
  static constexpr size_t kStreamsV6 = 8;
  uint64_t reserved;
  std::array<uint32_t, 10> words;
};

// The bodies differ, so it is read in place.
class SocRecord {
 public:
  struct Head {
    uint16_t types;  // see abi::SocProfileTypeOf
    uint16_t magic;
    uint32_t reserved;
    uint64_t timestamp;  // cycles of the device's counter
  };
  static constexpr size_t kSize = 64;
  static constexpr uint8_t kFirstType = static_cast<uint8_t>(abi::SocProfileType::kQos);
  static constexpr uint8_t kLastType = static_cast<uint8_t>(abi::SocProfileType::kLowPower);

  explicit SocRecord(Bytes record) : record_(record), head_(Read<Head>(record)) {}

  uint16_t magic() const { return head_.magic; }
  uint64_t timestamp() const { return head_.timestamp; }
  uint8_t type() const { return abi::SocProfileTypeOf(head_.types); }
  uint8_t subtype() const { return abi::SocProfileSubtypeOf(head_.types); }
  template <class Body>
  Body As() const {
    static_assert(sizeof(Head) + sizeof(Body) == kSize);
    return Read<Body>(record_.subspan(sizeof(Head)));
  }
  bool IsPlausible() const { return magic() == abi::kSocProfileMagic; }
  // Of a type that no reader makes anything of; later chips may have more of them.
  bool IsUnused() const { return IsPlausible() && (type() < kFirstType || type() > kLastType); }
  // What distinguishes the series of one type: which die, link or accelerator.
  uint32_t Source(bool v6) const;
  // With the type: what distinguishes all series of the channel.
  uint64_t SeriesKey(bool v6) const { return uint64_t{type()} << 32 | Source(v6); }

 private:
  Bytes record_;
  Head head_;
};
static_assert(sizeof(SocRecord::Head) == 16);

// A source that has both a sub type and a number.
constexpr uint32_t SocSource(uint8_t subtype, uint16_t number) {
  return uint32_t{subtype} << 16 | number;
}
constexpr uint8_t SubtypeOf(uint32_t source) { return static_cast<uint8_t>(source >> 16); }
constexpr uint16_t NumberOf(uint32_t source) { return static_cast<uint16_t>(source); }

inline uint32_t SocRecord::Source(bool v6) const {
  switch (static_cast<abi::SocProfileType>(type())) {
    case abi::SocProfileType::kSio:
      return v6 ? subtype() : As<SocSio>().die;
    case abi::SocProfileType::kAccPmu:
      return SocSource(subtype(), As<SocAccPmu>().id);
    case abi::SocProfileType::kChipTrans:
      return SocSource(subtype(), v6 ? uint16_t{0} : SocTransfer::Link(As<SocTransfer>().id));
    default:
      return subtype();  // die
  }
}

inline constexpr abi::ChannelFormat kSocProfileFormat = {
    .id = abi::kSocProfileChannel,
    .name = "soc_profile",
    .file = "stars_soc_profile.data",
    .framing = abi::Framing::kBinary,
    .record_size = SocRecord::kSize,
    .time = abi::TimeKind::kDeviceCounter,
    .timestamp = {offsetof(SocRecord::Head, timestamp), sizeof(SocRecord::Head::timestamp)},
    .thinning = abi::Thinning::kPick,
    .plausible = IsPlausible<SocRecord>,
    .marked = true,
};

}  // namespace profd::records
