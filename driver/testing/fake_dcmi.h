// A libdcmi made of function pointers, for tests: values per device, a return code per call, a gate
// that makes a call hang. One fake at a time (C functions carry no context).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "driver/dcmi_library.h"
#include "driver/testing/fake_dcmi_device.h"

namespace profd::testing {

class FakeDcmi {
 public:
  explicit FakeDcmi(int cards) : devices(static_cast<size_t>(cards)) {
    for (int i = 0; i < cards; ++i) devices[static_cast<size_t>(i)].physical_id = i;
    current_ = this;
  }
  ~FakeDcmi() { current_ = nullptr; }
  FakeDcmi(const FakeDcmi&) = delete;
  FakeDcmi& operator=(const FakeDcmi&) = delete;

  // Card i is device i; logical id = i.
  std::vector<FakeDcmiDevice> devices;
  // What calls answer instead of 0: "health" for all devices, "3:health" for one (wins).
  // Names are the members of DcmiFunctions; device_info adds "/main/sub", selectors "/n".
  std::map<std::string, int> codes;
  std::map<std::string, int> asked;  // how often, under the same names

  // Gives a question that has no member in FakeDcmiDevice an answer, on all devices; before V1 and V2.
  template <class T>
  void Set(const std::string& name, const T& answer) {
    const char* bytes = reinterpret_cast<const char*>(&answer);
    set_[name] = std::string(bytes, sizeof answer);
  }

  // Makes the call "3:health", and another, hang from now on until Open.
  void Close(const std::string& call, const std::string& other = "") {
    std::lock_guard lock(mutex_);
    closed_ = {call, other};
  }
  // `asked`, while other threads call.
  int Asked(const std::string& call) {
    std::lock_guard lock(mutex_);
    return asked[call];
  }
  // While calls may be under way.
  void SetCode(const std::string& call, int code) {
    std::lock_guard lock(mutex_);
    codes[call] = code;
  }
  void Open() {
    std::lock_guard lock(mutex_);
    closed_.clear();
    changed_.notify_all();
  }
  // Until a thread hangs in it.
  void AwaitHanging() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return hanging_; });
  }

  DcmiLibrary V1() const;
  DcmiLibrary V2() const;  // v2 functions only, as on the newest chips

 private:
  // Of a function, as a template's argument.
  template <size_t N>
  struct Name {
    char text[N];
    constexpr Name(const char (&name)[N]) { std::copy_n(name, N, text); }  // NOLINT(google-explicit-constructor)
  };

  static FakeDcmi& Get() { return *current_; }

  int CodeOf(int card, const std::string& name) {
    const std::string own = std::to_string(card) + ":" + name;
    std::unique_lock lock(mutex_);
    ++asked[name];
    ++asked[own];
    if (std::find(closed_.begin(), closed_.end(), own) != closed_.end()) {
      hanging_ = true;
      changed_.notify_all();
      changed_.wait(lock, [&] { return closed_.empty(); });
      hanging_ = false;
    }
    if (auto it = codes.find(own); it != codes.end()) return it->second;
    if (auto it = codes.find(name); it != codes.end()) return it->second;
    return card >= -1 && card < static_cast<int>(devices.size()) ? 0 : abi::kDcmiInvalidDevice;
  }
  template <class Fill>
  static int Answer(int card, const std::string& name, Fill fill) {
    if (int code = Get().CodeOf(card, name); code != 0) return code;
    fill(Get().devices[static_cast<size_t>(std::max(card, 0))]);
    return 0;
  }
  // Functions that answer what a member of the device has; a selector it has no value for is unsupported.
  template <Name kName, auto kMember, class T>
  static int Member(int card, int, T* out) {
    return Answer(card, kName.text, [&](auto& d) { *out = d.*kMember; });
  }
  template <Name kName, auto kMember, class T>
  static int MemberV2(int device, T* out) {
    return Member<kName, kMember>(device, 0, out);
  }
  template <Name kName, auto kMember, class Key, class T>
  static int Selected(int card, int, Key key, T* out) {
    if (int code = Get().CodeOf(card, kName.text + ("/" + std::to_string(key))); code != 0) return code;
    const auto& values = Get().devices[static_cast<size_t>(card)].*kMember;
    auto it = values.find(key);
    if (it == values.end()) return abi::kDcmiNotSupported;
    *out = it->second;
    return 0;
  }
  template <class T>
  static int Copy(const T& from, void* to, unsigned* size) {
    if (*size < sizeof from) return abi::kDcmiInvalidParameter;
    std::memcpy(to, &from, sizeof from);
    *size = sizeof from;
    return 0;
  }
  static int Bytes(const std::vector<uint8_t>& from, void* to, unsigned* size) {
    if (from.empty()) return abi::kDcmiNotSupported;
    *size = std::min(*size, static_cast<unsigned>(from.size()));
    std::memcpy(to, from.data(), *size);
    return 0;
  }
  // A function of the shape (device, ..., out) that was given an answer by Set.
  template <Name kName, class... Args>
  static int Given(Args... args) {
    const std::tuple<Args...> all(args...);
    if (int code = Get().CodeOf(std::get<0>(all), kName.text); code != 0) return code;
    auto* out = std::get<sizeof...(Args) - 1>(all);
    std::memcpy(out, Get().set_.at(kName.text).data(), sizeof *out);
    return 0;
  }
  template <Name kName, class... Args>
  static void FillGiven(int (*&slot)(Args...)) {
    using First = std::tuple_element_t<0, std::tuple<Args..., void>>;
    using Last = std::tuple_element_t<sizeof...(Args), std::tuple<void, Args...>>;
    if constexpr (std::is_same_v<First, int> && std::is_pointer_v<Last>) {
      if (slot == nullptr && Get().set_.contains(kName.text)) slot = &Given<kName, Args...>;
    }
  }
  static void FillGiven(DcmiFunctions& f);
  static int VdevInfo(const FakeDcmiDevice& d, unsigned sub, void* out, unsigned* size);
  static void FillUb(DcmiFunctions& f);
  static int DeviceInfo(int card, int, int command, unsigned sub, void* out, unsigned* size);
  static void FillNode(DcmiFunctions& f);
  static void FillIdentity(DcmiFunctions& f);
  static void FillState(DcmiFunctions& f);
  static void FillMemory(DcmiFunctions& f);
  static void FillLinks(DcmiFunctions& f);

  inline static FakeDcmi* current_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> closed_;
  bool hanging_ = false;
  std::map<std::string, std::string> set_;
};

inline void FakeDcmi::FillGiven(DcmiFunctions& f) {
#define PROFD_FAKE_ONE(member, type, symbol) FillGiven<#member>(f.member);
#define PROFD_FAKE_PAIR(member, type, v1_symbol, v2_symbol) FillGiven<#member>(f.member.v1);
  PROFD_DCMI_FUNCTIONS(PROFD_FAKE_ONE, PROFD_FAKE_PAIR)
#undef PROFD_FAKE_ONE
#undef PROFD_FAKE_PAIR
}

inline int FakeDcmi::VdevInfo(const FakeDcmiDevice& d, unsigned sub, void* out, unsigned* size) {
  if (sub == abi::kSubVdevTotal) {
    abi::DcmiSocTotalResource total{};
    for (const auto& [id, computing] : d.vdevs) total.vdev_id[total.vdev_num++] = id;
    return Copy(total, out, size);
  }
  if (sub != abi::kSubVdevActivity) return abi::kDcmiNotSupported;
  abi::DcmiVdevQuery query;
  std::memcpy(&query, out, sizeof query);
  auto it = d.vdevs.find(query.vdev_id);
  if (it == d.vdevs.end()) return abi::kDcmiInvalidParameter;
  query.computing = it->second;
  return Copy(query, out, size);
}

inline int FakeDcmi::DeviceInfo(int card, int, int command, unsigned sub, void* out,
                                unsigned* size) {
  const std::string name = "device_info/" + std::to_string(command) + "/" + std::to_string(sub);
  if (int code = Get().CodeOf(card, name); code != 0) return code;
  const FakeDcmiDevice& d = Get().devices[static_cast<size_t>(card)];
  switch (command) {
    case abi::kCmdHccs:
      if (sub == abi::kSubHccsStatus) return Copy(d.hccs_status, out, size);
      if (sub == abi::kSubHccsLanes) return Copy(d.hccs_lanes, out, size);
      if (sub == abi::kSubHccsStatisticU64) return Copy(d.hccs, out, size);
      break;
    case abi::kCmdVdevMng:
      return VdevInfo(d, sub, out, size);
    case abi::kCmdSio:
      return Copy(d.sio, out, size);
    case abi::kCmdPcie:
      return Copy(d.pcie_errors, out, size);
    case abi::kCmdTs:
      return Bytes(sub == abi::kSubTsVectorUtil ? d.vector_cores : d.cores, out, size);
    case abi::kCmdLp:
      if (sub == abi::kSubLpFreqReductionCause) return Copy(d.throttle, out, size);
      if (sub == abi::kSubLpPowerInfo) {
        return Copy(abi::DcmiLpPowerInfo{d.rated_power, {}}, out, size);
      }
      break;
    case abi::kCmdDvpp:
      if (auto it = d.dvpp.find(sub); it != d.dvpp.end()) return Copy(it->second, out, size);
      break;
    default:
      break;
  }
  const auto set = Get().set_.find(name);
  if (set == Get().set_.end() || *size < set->second.size()) return abi::kDcmiNotSupported;
  *size = static_cast<unsigned>(set->second.size());
  std::memcpy(out, set->second.data(), *size);
  return 0;
}

inline void FakeDcmi::FillNode(DcmiFunctions& f) {
  f.init = [] { return Get().CodeOf(-1, "init"); };
  f.dcmi_version = [](char* out, unsigned size) {
    std::strncpy(out, "24.1.0", size);
    return Get().CodeOf(-1, "dcmi_version");
  };
  f.driver_version = [](char* out, unsigned size) {
    std::strncpy(out, "24.1.rc3", size);
    return Get().CodeOf(-1, "driver_version");
  };
  f.driver_health = [](unsigned* out) {
    *out = 0;
    return Get().CodeOf(-1, "driver_health");
  };
  f.card_list = [](int* count, int* list, int size) {
    *count = std::min(static_cast<int>(Get().devices.size()), size);
    for (int i = 0; i < *count; ++i) list[i] = i;
    return Get().CodeOf(-1, "card_list");
  };
  f.device_num_in_card = [](int card, int* count) {
    *count = 2;  // chip 1 is the MCU
    return Get().CodeOf(card, "device_num_in_card");
  };
  f.device_type.v1 = [](int card, int chip, int* type) {
    *type = chip == 0 ? abi::kUnitNpu : abi::kUnitMcu;
    return Get().CodeOf(card, "device_type");
  };
  f.device_logic_id = [](int* id, int card, int) {
    *id = card;
    return Get().CodeOf(card, "device_logic_id");
  };
  f.phyid_from_logicid = [](unsigned id, unsigned* physical) {
    return Answer(static_cast<int>(id), "phyid_from_logicid",
                  [&](auto& d) { *physical = static_cast<unsigned>(d.physical_id); });
  };
}

inline void FakeDcmi::FillIdentity(DcmiFunctions& f) {
  f.chip_info.v1 = [](int card, int, abi::DcmiChipInfoV2* out) {
    return Answer(card, "chip_info", [&](auto&) {
      std::memcpy(out->chip_type, "Ascend", 7);
      std::memcpy(out->chip_name, "910B3", 6);
      std::memcpy(out->chip_ver, "V1", 3);
      out->aicore_cnt = 20;
    });
  };
  f.die.v1 = [](int card, int, int type, abi::DcmiDieId* out) {
    return Answer(card, "die/" + std::to_string(type), [&](auto&) {
      *out = {{0x0A1B2C3D, 0x11, 0x22, 0x33, static_cast<uint32_t>(card)}};
    });
  };
  f.pcie_info.v1 = [](int card, int, abi::DcmiPcieInfoAll* out) {
    return Answer(card, "pcie_info",
                  [&](auto&) { out->bdf_busid = 0xc1 + static_cast<uint32_t>(card); });
  };
  f.board_info = [](int card, int, abi::DcmiBoardInfo* out) {
    return Answer(card, "board_info", [&](auto&) { out->board_id = 0x34; });
  };
  f.mainboard_id = &Member<"mainboard_id", &FakeDcmiDevice::mainboard_id>;
  f.elabel = [](int card, abi::DcmiElabelInfo* out) {
    return Answer(card, "elabel", [&](auto&) {
      std::strncpy(out->model, "Atlas 800T A2", sizeof out->model);
      std::strncpy(out->serial_number, "SN0042  ", sizeof out->serial_number);
    });
  };
  f.compatibility.v1 = [](int card, int, int* out) {
    return Answer(card, "compatibility", [&](auto&) { *out = 1; });
  };
  f.boot_status.v1 = [](int card, int, int* out) {
    return Answer(card, "boot_status", [&](auto&) { *out = 16; });
  };
  f.topology = [](int card, int, int peer_card, int, int* out) {
    return Answer(card, "topology/" + std::to_string(peer_card), [&](auto&) { *out = 3; });
  };
}

inline void FakeDcmi::FillState(DcmiFunctions& f) {
  f.health.v1 = &Member<"health", &FakeDcmiDevice::health>;
  f.error_codes.v1 = [](int card, int, int* count, unsigned* list, unsigned size) {
    return Answer(card, "error_codes", [&](auto& d) {
      *count = static_cast<int>(std::min<size_t>(d.error_codes.size(), size));
      std::copy_n(d.error_codes.begin(), *count, list);
    });
  };
  f.current_faults.v1 = [](int card, int, abi::DcmiEvent* list, int size, int* count) {
    return Answer(card, "current_faults", [&](auto& d) {
      *count = std::min(static_cast<int>(d.faults.size()), size);
      for (int i = 0; i < *count; ++i) list[i].event = d.faults[static_cast<size_t>(i)];
    });
  };
  f.temperature.v1 = &Member<"temperature", &FakeDcmiDevice::temperature>;
  f.power.v1 = &Member<"power", &FakeDcmiDevice::power>;
  f.voltage.v1 = &Member<"voltage", &FakeDcmiDevice::voltage>;
  f.frequency.v1 = &Selected<"frequency", &FakeDcmiDevice::frequency>;
  f.aicore_info.v1 = &Member<"aicore_info", &FakeDcmiDevice::aicore>;
  f.aicpu_info.v1 = &Member<"aicpu_info", &FakeDcmiDevice::aicpu>;
  f.utilization.v1 = &Selected<"utilization", &FakeDcmiDevice::utilization>;
  f.multi_utilization.v1 = &Member<"multi_utilization", &FakeDcmiDevice::multi>;
  f.network_health.v1 = &Member<"network_health", &FakeDcmiDevice::network_health>;
  f.sensor_info.v1 = &Selected<"sensor_info", &FakeDcmiDevice::sensors>;
  f.device_info.v1 = &DeviceInfo;
}

inline void FakeDcmi::FillMemory(DcmiFunctions& f) {
  f.hbm_info.v1 = &Member<"hbm_info", &FakeDcmiDevice::hbm>;
  f.memory_info_v3 = &Member<"memory_info_v3", &FakeDcmiDevice::ddr>;
  f.cgroup_info.v1 = &Member<"cgroup_info", &FakeDcmiDevice::cgroup>;
  f.ecc_info.v1 = [](int card, int, int memory, abi::DcmiEccInfo* out) {
    return Answer(card, "ecc_info/" + std::to_string(memory),
                  [&](auto& d) { std::memcpy(out, &d.ecc, d.ecc_bytes); });
  };
  f.llc_perf.v1 = &Member<"llc_perf", &FakeDcmiDevice::llc>;
  f.processes.v1 = [](int card, int, abi::DcmiProcMemInfo* list, int* count) {
    return Answer(card, "processes", [&](auto& d) {
      const size_t fit = std::min<size_t>(d.processes.size(), 32);
      std::copy_n(d.processes.begin(), fit, list);
      *count = static_cast<int>(d.processes.size());
    });
  };
}

inline void FakeDcmi::FillLinks(DcmiFunctions& f) {
  f.pcie_error_counts.v1 = &Member<"pcie_error_counts", &FakeDcmiDevice::pcie_counts>;
  f.packet_statistics.v1 = [](int card, int, int, abi::DcmiNetworkPktStats* out) {
    return Answer(card, "packet_statistics", [&](auto& d) { *out = d.packets; });
  };
  f.pcie_bandwidth.v1 = [](int card, int, abi::DcmiPcieLinkBandwidthInfo* out) {
    return Answer(card, "pcie_bandwidth", [&](auto& d) {
      const int time = out->profiling_time;
      *out = d.pcie_bandwidth;
      out->profiling_time = time;
    });
  };
  f.hccs_bandwidth = [](int card, int, abi::DcmiHccsBandwidthInfo* out) {
    return Answer(card, "hccs_bandwidth", [&](auto& d) {
      // Adds, as the real one does.
      out->total_txbw += d.hccs_bandwidth.total_txbw;
      out->total_rxbw += d.hccs_bandwidth.total_rxbw;
      std::memcpy(out->tx_bandwidth, d.hccs_bandwidth.tx_bandwidth, sizeof out->tx_bandwidth);
      std::memcpy(out->rx_bandwidth, d.hccs_bandwidth.rx_bandwidth, sizeof out->rx_bandwidth);
    });
  };
  f.hccs_credits = &Member<"hccs_credits", &FakeDcmiDevice::hccs_credits>;
  f.traffic_classes = &Member<"traffic_classes", &FakeDcmiDevice::traffic_classes>;
  f.pfc_duration = &Member<"pfc_duration", &FakeDcmiDevice::pfc_duration>;
  f.extra_statistics = [](int card, int, int, abi::DcmiExtraStatistics* out) {
    return Answer(card, "extra_statistics", [&](auto& d) { *out = d.extra; });
  };
  f.serdes_quality.v1 = &Selected<"serdes_quality", &FakeDcmiDevice::serdes>;
  f.rdma_bandwidth.v1 = [](int card, int, int, unsigned ms, abi::DcmiRdmaBandwidthInfo* out) {
    return Answer(card, "rdma_bandwidth", [&](auto&) { *out = {ms, ms}; });
  };
}

inline void FakeDcmi::FillUb(DcmiFunctions& f) {
  f.v2_ub_port_list = &MemberV2<"ub_port_list", &FakeDcmiDevice::ub_ports>;
  f.v2_ub_port_statistics = [](int dev, abi::DcmiUbPortInfo* where, abi::DcmiPortPktStats* out) {
    return Answer(dev, "ub_port_statistics",
                  [&](auto& d) { *out = d.ub[where->udie_id][where->port_id]; });
  };
  f.v2_ub_link_status = &MemberV2<"ub_link_status", &FakeDcmiDevice::ub_links>;
}

inline DcmiLibrary FakeDcmi::V1() const {
  DcmiLibrary library;
  FillNode(library.functions);
  FillIdentity(library.functions);
  FillState(library.functions);
  FillMemory(library.functions);
  FillLinks(library.functions);
  FillGiven(library.functions);
  return library;
}

inline DcmiLibrary FakeDcmi::V2() const {
  DcmiLibrary library;
  DcmiFunctions& f = library.functions;
  f.v2_init = [] { return Get().CodeOf(-1, "v2_init"); };
  f.v2_device_list = [](int* list, int* count, int size) {
    *count = std::min(static_cast<int>(Get().devices.size()), size);
    for (int i = 0; i < *count; ++i) list[i] = i;
    return Get().CodeOf(-1, "v2_device_list");
  };
  f.v2_chip_phy_id = [](unsigned id, unsigned* physical) {
    return Answer(static_cast<int>(id), "v2_chip_phy_id",
                  [&](auto& d) { *physical = static_cast<unsigned>(d.physical_id); });
  };
  f.die.v2 = [](int dev, int type, abi::DcmiDieId* out) {
    if (type != abi::kDieDdie) return abi::kDcmiNotSupported;
    return Answer(dev, "die", [&](auto&) { *out = {{1, 2, 3, 4, 5}}; });
  };
  f.chip_info.v2 = [](int dev, abi::DcmiChipInfoV2* out) {
    return Answer(dev, "chip_info", [&](auto&) { std::memcpy(out->chip_name, "Ascend950", 10); });
  };
  f.v2_board_id = [](int dev, unsigned* out) {
    return Answer(dev, "board_id", [&](auto&) { *out = 0x61; });
  };
  f.health.v2 = &MemberV2<"health", &FakeDcmiDevice::health>;
  f.power.v2 = &MemberV2<"power", &FakeDcmiDevice::power>;
  FillUb(f);
  return library;
}

}  // namespace profd::testing
