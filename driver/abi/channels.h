// The formats of the driver's sampling channels: THE table from which the pump frames bytes, dumps name
// their files, sessions thin and rebase, and decoders and tests know sizes. Layouts of binary records are
// in driver/records.
// Facts: ids driver-abi 2.1, records 3.6, file names 3.2 and 3.5; thinning and rebasing docs of dump/.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "driver/abi/channel_format.h"
#include "driver/abi/hal_abi.h"
#include "driver/records/ddr.h"
#include "driver/records/hbm.h"
#include "driver/records/instr.h"
#include "driver/records/llc.h"
#include "driver/records/lpm.h"
#include "driver/records/module_mem.h"
#include "driver/records/npu_mem.h"
#include "driver/records/pcie.h"
#include "driver/records/qos.h"
#include "driver/records/soc_profile.h"

namespace profd::abi {

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

// Whose clock their timestamps count is not known, so nothing is judged by them.
constexpr uint16_t InstrRecordSize(uint32_t core) {
  return core == 0 ? records::InstrCubeRecord::kSize : records::InstrVectorRecord::kSize;
}

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

// Lines of text. Words: hccs has its timestamp and two counters, ports may name themselves and their type,
// DVPP has an id on some chips. Engine types are numbers (dump-format 2.4), as exports read them.
constexpr ChannelFormat TextFormat(uint32_t id, std::string_view name, std::string_view file,
                                   std::string_view header_token, LineWords words,
                                   bool single_slice) {
  return {.id = id,
          .name = name,
          .file = file,
          .framing = Framing::kText,
          .time = TimeKind::kDeviceMonotonicNs,
          .thinning = Thinning::kPick,
          .header_token = header_token,
          .slice_header = id == kChannelHccs ? kHccsHeader : std::string_view(),
          .single_slice = single_slice,
          .words = words};
}
constexpr ChannelFormat PortFormat(uint32_t id, std::string_view name, std::string_view file,
                                   bool single_slice) {
  return TextFormat(id, name, file, "rxPacket/s", {14, 16}, single_slice);
}
constexpr ChannelFormat DvppFormat(uint32_t id, std::string_view name, std::string_view file) {
  ChannelFormat format = TextFormat(id, name, file, "engine_type", {11, 12}, true);
  format.opaque = id != kChannelDvpp;  // driver-abi 3.6: only this one's lines are known
  return format;
}

inline constexpr auto kPlainChannelFormats = std::to_array<ChannelFormat>({
    records::kHbmFormat,
    records::kPcieFormat,
    records::kDdrFormat,
    records::kLlcFormat,
    records::kSocProfileFormat,
    records::kNpuAppMemFormat,
    records::kNpuMemFormat,
    records::kLpmFormat,
    records::kQosFormat,
    records::kModuleMemFormat,
    TextFormat(kChannelHccs, "hccs", "hccs.data", "time_stamp", {3, 3}, false),
    PortFormat(kChannelNic, "nic", "nic.data", false),
    PortFormat(kChannelRoce, "roce", "roce.data", true),
    DvppFormat(kChannelDvpp, "dvpp", "dvpp.data"),
    DvppFormat(kChannelDvppVenc, "dvpp_venc", "dvpp.venc"),
    DvppFormat(kChannelDvppJpege, "dvpp_jpege", "dvpp.jpege"),
    DvppFormat(kChannelDvppVdec, "dvpp_vdec", "dvpp.vdec"),
    DvppFormat(kChannelDvppJpegd, "dvpp_jpegd", "dvpp.jpegd"),
    DvppFormat(kChannelDvppVpc, "dvpp_vpc", "dvpp.vpc"),
    DvppFormat(kChannelDvppPng, "dvpp_png", "dvpp.png"),
    DvppFormat(kChannelDvppScd, "dvpp_scd", "dvpp.scd"),
});

inline constexpr auto kChannelFormats = [] {
  std::array<ChannelFormat, kPlainChannelFormats.size() + kInstrNames.size()> all{};
  auto next = std::copy(kPlainChannelFormats.begin(), kPlainChannelFormats.end(), all.begin());
  for (uint32_t i = 0; i < kInstrNames.size(); ++i) {
    const std::string_view name = kInstrNames[i].view();
    const uint32_t core = i % kInstrCores;
    *next++ = {.id = InstrChannel(i / kInstrCores, core),
               .name = name,
               .file = name,
               .framing = Framing::kBinary,
               .record_size = InstrRecordSize(core),
               .time = TimeKind::kNone,
               .thinning = Thinning::kEvent};
  }
  std::ranges::sort(all, {}, &ChannelFormat::id);
  return all;
}();

// On chips whose LP channel carries voltages too (910B: AICORE_LPM_INFO), its file has another name.
inline constexpr std::string_view kLpInfoFile = "lpmInfoConv.data";

// Chips whose DVPP lines carry a dvpp_id: 12 columns instead of 11 (dump-format 2.4).
constexpr bool HasDvppId(uint32_t chip_id) {
  return chip_id == kChip910 || chip_id == kChip910B || chip_id == kChip310B || chip_id == kChipTinyV1 ||
         chip_id == kChipMdcMiniV3 || Is950Class(chip_id);
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
