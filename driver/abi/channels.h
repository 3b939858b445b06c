// The record formats of the driver's sampling channels: THE table from which the pump frames bytes,
// dumps name their files, sessions thin and rebase, and decoders and tests know sizes.
// Facts: ids driver-abi 2.1, records 3.6, file names 3.2 and 3.5; thinning and rebasing docs of dump/.
// Header-only and free of behaviour: any module may read it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace profd::abi {

enum class Framing : uint8_t {
  kBinary,  // fixed-size records, `record_size` bytes each
  kText,    // lines ending in '\n'; a line containing `header_token` is a header, not a record
};

// What a record's timestamp counts.
enum class TimeKind : uint8_t {
  kNone,
  kMicrosSinceStart,    // us since prof_drv_start of this channel (relative: rebased for late joiners)
  kDeviceMonotonicNs,   // ns of the device's CLOCK_MONOTONIC_RAW ("sec:nnnnnnnnn" in text channels)
  kDeviceCounter,       // cycles of the device's system counter
  kHostCounter,         // cycles of the host's counter (cntvct_el0 / TSC)
};

// How a slower session's view is made of a channel that runs faster.
enum class Thinning : uint8_t {
  kPick,   // gauges and cumulative counters: the record nearest the slower grid is kept
  kSum,    // counts per interval: counts of the intervals left out are added to the record kept
  kEvent,  // event driven: every record is kept
};

// A field inside a binary record; width 0 = absent.
struct Field {
  uint16_t offset = 0;
  uint8_t width = 0;  // bytes: 4 or 8
};

struct ChannelFormat {
  uint32_t id;
  std::string_view name;  // unique, as users see it: "hbm", "dvpp_venc"
  std::string_view file;  // base of the dump's file name: <file>.<device>.slice_<k>
  Framing framing;
  uint16_t record_size;  // binary only
  TimeKind time;
  Field stamp;  // binary only
  Thinning thinning;
  Field count;  // kSum only: what is added up
  // Of channels with several records per instant: records with equal key bytes form one series, whose
  // timestamps never go back. Offset and length of the key inside the record; length 0 = one series.
  uint16_t key_offset = 0;
  uint8_t key_length = 0;
  std::string_view header_token = {};  // text only
  std::string_view slice_header = {};  // text only: the line every slice must begin with
  bool single_slice = false;           // the vendor's reader keeps only the last slice
};

inline constexpr std::string_view kHccsHeader =
    "time_stamp(s):time_stamp(ns) send_amount receive_amount\n";

// What DVPP lines mean; the vendor's reader takes the number of columns from the chip, other readers
// from this line (dump-format 2.4).
inline constexpr std::string_view kDvppHeader =
    "time_stamp(s):time_stamp(ns) engine_type engine_id all_time all_frame all_utilization(%) "
    "proc_time proc_frame proc_utilization(%) last_time last_frame\n";
inline constexpr std::string_view kDvppIdHeader =
    "time_stamp(s):time_stamp(ns) dvpp_id engine_type engine_id all_time all_frame "
    "all_utilization(%) proc_time proc_frame proc_utilization(%) last_time last_frame\n";

// Channel 52 mixes record types; thinning and rates are per type (driver-abi 3.4, 3.6).
inline constexpr uint32_t kSocProfileChannel = 52;
inline constexpr uint16_t kSocProfileMagic = 0x6BD3;
enum class SocProfileType : uint8_t {
  kQos = 0b011000,
  kSio = 0b011001,
  kAccPmu = 0b011010,
  kChipTrans = 0b011011,
  kSocLevels = 0b011100,
  kLowPower = 0b011101,
};
// Record kind of channel 52 from its first 16-bit word.
constexpr uint8_t SocProfileTypeOf(uint16_t head) { return head & 0x3F; }
// Sub type (link kind or die) from the same word.
constexpr uint8_t SocProfileSubtypeOf(uint16_t head) { return static_cast<uint8_t>(head >> 10); }
inline constexpr uint8_t kChipTransPaLink = 0b111111;
inline constexpr uint8_t kChipTransPcie = 0b100010;

// Instruction profiling of the 910B: one channel for each core of a core group, 0 its AI Core (Cube),
// 1 and 2 its AI Vector cores.
inline constexpr uint32_t kInstrGroups = 25;
inline constexpr uint32_t kInstrCores = 3;

constexpr uint32_t InstrChannel(uint32_t group, uint32_t core) {
  constexpr uint32_t kGroup10[] = {41, 42, 55};
  constexpr uint32_t kGroup20[] = {83, 84, 86};
  if (group < 10) return 11 + kInstrCores * group + core;
  if (group == 10) return kGroup10[core];
  if (group < 20) return 56 + kInstrCores * (group - 11) + core;
  if (group == 20) return kGroup20[core];
  return 87 + kInstrCores * (group - 21) + core;
}
static_assert(InstrChannel(9, 2) == 40 && InstrChannel(19, 2) == 82 && InstrChannel(24, 2) == 98);

// Records are 96 bytes of an AI Core and 64 of an AI Vector core (what the vendor's analyser reads at a
// time); whose clock their timestamps count is not known, so nothing is judged by them.
constexpr uint16_t InstrRecordSize(uint32_t core) { return core == 0 ? 96 : 64; }

// "instr.group_24_aiv1": name and file of each of these channels.
struct InstrName {
  std::array<char, 20> text{};
  size_t size = 0;
  constexpr void Put(std::string_view part) {
    for (char c : part) text[size++] = c;
  }
  constexpr std::string_view view() const { return {text.data(), size}; }
};
inline constexpr auto kInstrNames = [] {
  constexpr std::string_view kCores[] = {"_aic", "_aiv0", "_aiv1"};
  std::array<InstrName, kInstrGroups * kInstrCores> names;
  for (uint32_t group = 0; group < kInstrGroups; ++group) {
    for (uint32_t core = 0; core < kInstrCores; ++core) {
      InstrName& name = names[group * kInstrCores + core];
      name.Put("instr.group_");
      if (group >= 10) name.text[name.size++] = static_cast<char>('0' + group / 10);
      name.text[name.size++] = static_cast<char>('0' + group % 10);
      name.Put(kCores[core]);
    }
  }
  return names;
}();

inline constexpr auto kPlainChannelFormats = std::to_array<ChannelFormat>({
    {1, "hbm", "hbm.data", Framing::kBinary, 24, TimeKind::kMicrosSinceStart, {0, 8},
     Thinning::kSum, {8, 8}, 16, 8},
    {3, "pcie", "pcie.data", Framing::kBinary, 96, TimeKind::kDeviceMonotonicNs, {0, 8},
     Thinning::kPick, {}, 8, 4},
    {4, "nic", "nic.data", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {}, Thinning::kPick, {},
     0, 0, "rxPacket/s"},
    {6, "dvpp", "dvpp.data", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {}, Thinning::kPick,
     {}, 0, 0, "engine_type", {}, true},
    {7, "ddr", "ddr.data", Framing::kBinary, 20, TimeKind::kMicrosSinceStart, {0, 4},
     Thinning::kSum, {4, 4}, 8, 8},
    {8, "llc", "llc.data", Framing::kBinary, 24, TimeKind::kMicrosSinceStart, {0, 8},
     Thinning::kSum, {8, 8}, 16, 8},
    {9, "hccs", "hccs.data", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {}, Thinning::kPick,
     {}, 0, 0, "time_stamp", kHccsHeader},
    {kSocProfileChannel, "soc_profile", "stars_soc_profile.data", Framing::kBinary, 64, TimeKind::kDeviceCounter,
     {8, 8}, Thinning::kPick, {}, 0, 0},
    {129, "roce", "roce.data", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {},
     Thinning::kPick, {}, 0, 0, "rxPacket/s", {}, true},
    {130, "npu_app_mem", "npu_mem.app", Framing::kBinary, 32, TimeKind::kMicrosSinceStart, {0, 4},
     Thinning::kPick, {}, 4, 4},
    {131, "npu_mem", "npu_mem.data", Framing::kBinary, 32, TimeKind::kMicrosSinceStart, {0, 4},
     Thinning::kPick, {}, 4, 4},
    {132, "lp", "lpmFreqConv.data", Framing::kBinary, 888, TimeKind::kDeviceCounter, {8, 8},
     Thinning::kEvent, {}, 4, 4},
    {133, "qos", "qos.data", Framing::kBinary, 64, TimeKind::kDeviceCounter, {16, 8},
     Thinning::kPick, {}},
    {135, "dvpp_venc", "dvpp.venc", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {},
     Thinning::kPick, {}, 0, 0, "engine_type", {}, true},
    {136, "dvpp_jpege", "dvpp.jpege", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {},
     Thinning::kPick, {}, 0, 0, "engine_type", {}, true},
    {137, "dvpp_vdec", "dvpp.vdec", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {},
     Thinning::kPick, {}, 0, 0, "engine_type", {}, true},
    {138, "dvpp_jpegd", "dvpp.jpegd", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {},
     Thinning::kPick, {}, 0, 0, "engine_type", {}, true},
    {139, "dvpp_vpc", "dvpp.vpc", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {},
     Thinning::kPick, {}, 0, 0, "engine_type", {}, true},
    {140, "dvpp_png", "dvpp.png", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {},
     Thinning::kPick, {}, 0, 0, "engine_type", {}, true},
    {141, "dvpp_scd", "dvpp.scd", Framing::kText, 0, TimeKind::kDeviceMonotonicNs, {},
     Thinning::kPick, {}, 0, 0, "engine_type", {}, true},
    {142, "npu_module_mem", "npu_module_mem.data", Framing::kBinary, 24, TimeKind::kHostCounter,
     {8, 8}, Thinning::kPick, {}, 0, 4},
});

inline constexpr auto kChannelFormats = [] {
  std::array<ChannelFormat, kPlainChannelFormats.size() + kInstrNames.size()> all{};
  auto next = std::copy(kPlainChannelFormats.begin(), kPlainChannelFormats.end(), all.begin());
  for (uint32_t i = 0; i < kInstrNames.size(); ++i) {
    const std::string_view name = kInstrNames[i].view();
    const uint32_t core = i % kInstrCores;
    *next++ = {InstrChannel(i / kInstrCores, core), name, name, Framing::kBinary, InstrRecordSize(core),
               TimeKind::kNone, {}, Thinning::kEvent, {}};
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return all;
}();

// On chips whose LP channel carries voltages too (910B: AICORE_LPM_INFO), its file has another name.
inline constexpr std::string_view kLpInfoFile = "lpmInfoConv.data";

// Chips whose DVPP lines carry a dvpp_id: 12 columns instead of 11 (dump-format 2.4).
constexpr bool HasDvppId(uint32_t chip_id) {
  return chip_id == 1 || chip_id == 5 || chip_id == 7 || chip_id == 8 || chip_id == 11 ||
         chip_id == 15 || chip_id == 16;
}

// The line every slice of the channel's file begins with; empty = none.
constexpr std::string_view SliceHeader(const ChannelFormat& format, uint32_t chip_id) {
  if (format.header_token == "engine_type") {
    return HasDvppId(chip_id) ? kDvppIdHeader : kDvppHeader;
  }
  return format.slice_header;
}

constexpr const ChannelFormat* FindChannelFormat(uint32_t id) {
  for (const ChannelFormat& format : kChannelFormats) {
    if (format.id == id) return &format;
  }
  return nullptr;
}

static_assert(std::adjacent_find(kChannelFormats.begin(), kChannelFormats.end(),
                                 [](const auto& a, const auto& b) { return a.id >= b.id; }) ==
              kChannelFormats.end());

}  // namespace profd::abi
