// What the simulator's tests share: a scenario written to a file, the two libraries loaded the way
// the daemon does it (each test its own copy, so that each has its own scenario), and start
// parameters for every channel.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "base/testing/temp_dir.h"
#include "driver/abi/channels.h"
#include "driver/abi/dcmi_table.h"
#include "driver/abi/hal_abi.h"
#include "sim/node.h"

namespace profd::sim {

// One library under one scenario. A copy of the file gives a copy of its state.
class LoadedLibrary {
 public:
  LoadedLibrary(const std::string& library_path, const std::string& scenario_toml) {
    const std::string scenario =
        scenario_toml.empty() ? "" : dir_.Write("scenario.toml", scenario_toml);
    const std::string copy = dir_.path() + "/library.so";
    std::filesystem::copy_file(library_path, copy);
    setenv("PROFD_SIM_SCENARIO", scenario.c_str(), 1);
    handle_ = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  template <class Fn>
  Fn Get(const char* symbol) const {
    void* const address = dlsym(handle_, symbol);
    EXPECT_NE(address, nullptr) << symbol;
    return reinterpret_cast<Fn>(address);
  }
  bool Has(const char* symbol) const { return dlsym(handle_, symbol) != nullptr; }

 private:
  TempDir dir_;
  void* handle_ = nullptr;
};

struct Hal {
  explicit Hal(const std::string& scenario_toml = "") : lib(PROFD_SIM_HAL, scenario_toml) {}
  LoadedLibrary lib;
  abi::ProfDrvGetChannelsFn get_channels =
      lib.Get<abi::ProfDrvGetChannelsFn>("prof_drv_get_channels");
  abi::ProfDrvStartFn start = lib.Get<abi::ProfDrvStartFn>("prof_drv_start");
  abi::ProfStopFn stop = lib.Get<abi::ProfStopFn>("prof_stop");
  abi::ProfChannelReadFn read = lib.Get<abi::ProfChannelReadFn>("prof_channel_read");
  abi::ProfChannelPollFn poll = lib.Get<abi::ProfChannelPollFn>("prof_channel_poll");
  abi::HalProfDataFlushFn flush = lib.Get<abi::HalProfDataFlushFn>("halProfDataFlush");
  abi::DrvGetDevNumFn dev_num = lib.Get<abi::DrvGetDevNumFn>("drvGetDevNum");
  abi::DrvGetDevIdsFn dev_ids = lib.Get<abi::DrvGetDevIdsFn>("drvGetDevIDs");
  abi::DrvDeviceStatusFn status = lib.Get<abi::DrvDeviceStatusFn>("drvDeviceStatus");
  abi::DrvGetPlatformInfoFn platform = lib.Get<abi::DrvGetPlatformInfoFn>("drvGetPlatformInfo");
  abi::HalGetDeviceInfoFn info = lib.Get<abi::HalGetDeviceInfoFn>("halGetDeviceInfo");
  abi::HalGetDeviceInfoByBuffFn info_by_buff =
      lib.Get<abi::HalGetDeviceInfoByBuffFn>("halGetDeviceInfoByBuff");
  abi::HalGetApiVersionFn api_version = lib.Get<abi::HalGetApiVersionFn>("halGetAPIVersion");
  abi::DrvGetDeviceSplitModeFn split_mode =
      lib.Get<abi::DrvGetDeviceSplitModeFn>("drvGetDeviceSplitMode");
  abi::DrvDeviceGetPhyIdByIndexFn phy_id =
      lib.Get<abi::DrvDeviceGetPhyIdByIndexFn>("drvDeviceGetPhyIdByIndex");
};

// All that driver/abi/dcmi_table.h has, of libdcmi.so.
struct DcmiLib : abi::DcmiFunctions {
  explicit DcmiLib(const std::string& scenario_toml = "") : lib(PROFD_SIM_DCMI, scenario_toml) {
    VisitDcmiSymbols<abi::DcmiFunctions>(*this, [this](const char* symbol, auto& function, const char*) {
      if (lib.Has(symbol)) function = lib.Get<std::remove_reference_t<decltype(function)>>(symbol);
    });
  }
  int Info(int card, int device, int cmd, unsigned sub, void* buf, unsigned size) const {
    return device_info.v1(card, device, cmd, sub, buf, &size);
  }
  LoadedLibrary lib;
};

// Start parameters with their user_data, as the vendor's collector fills them
// (driver-abi 3.2, 3.3).
class StartPara {
 public:
  StartPara(unsigned channel, uint32_t period_ms) {
    para_.channel_type = abi::kProfPeripheralType;
    para_.sample_period = period_ms;
    para_.real_time = abi::kProfReal;
    switch (channel) {
      case abi::kChannelHbm:
      case abi::kChannelDdr:
        Set(abi::MemEventCfg{period_ms, abi::kAllMasters, 2, {0, 1}});
        break;
      case abi::kChannelLlc:
        Set(abi::LlcCfg{period_ms, abi::kLlcSampleRead});
        break;
      case abi::kChannelNpuAppMem:
      case abi::kChannelNpuModuleMem:
        Set(abi::MemCfg{period_ms, 0, abi::kMemCfgEventApp, 0});
        break;
      case abi::kChannelNpuMem:
        Set(abi::MemCfg{period_ms, 0, abi::kMemCfgEventDevice, 0});
        break;
      case abi::kChannelLp:
        Set(abi::LpmCfg{100, 1});
        break;
      case abi::kChannelQos:
        Set(abi::QosProfileConfig{period_ms, 2, 0, {12, 13}});
        break;
      case abi::kChannelStarsSocProfile:
        Set(abi::SocProfileCfg{
            {1, period_ms}, {1, period_ms}, {1, period_ms}, {1, period_ms}, {}, {}, {}});
        break;
      default:
        if (const abi::ChannelFormat* format = abi::FindChannelFormat(channel);
            format != nullptr && format->name.starts_with("instr.")) {
          para_.channel_type = abi::kProfTsType;
          para_.sample_period = 0;
          Set(abi::InstrProfileCfg{1000, 0});
        }
        break;
    }
  }
  template <class T>
  StartPara& Set(const T& value) {
    data_.resize(sizeof value);
    std::memcpy(data_.data(), &value, sizeof value);
    return *this;
  }
  StartPara& Resize(size_t bytes) {
    data_.resize(bytes);
    return *this;
  }
  abi::ProfStartPara* get() {
    para_.user_data = data_.empty() ? nullptr : data_.data();
    para_.user_data_size = static_cast<uint32_t>(data_.size());
    return &para_;
  }

 private:
  abi::ProfStartPara para_{};
  std::vector<char> data_;
};

template <class T>
T At(const std::string& bytes, size_t offset) {
  T value{};
  EXPECT_LE(offset + sizeof value, bytes.size());
  if (offset + sizeof value <= bytes.size())
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  EXPECT_EQ(begin, text.size()) << "cut line: " << text.substr(begin);
  return lines;
}

inline std::vector<std::string> Words(const std::string& line) {
  std::vector<std::string> words;
  size_t begin = 0;
  while (begin < line.size()) {
    size_t end = line.find(' ', begin);
    if (end == std::string::npos) end = line.size();
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// "sec:nnnnnnnnn" in ns.
inline int64_t TimestampNs(const std::string& word) {
  const size_t colon = word.find(':');
  EXPECT_NE(colon, std::string::npos) << word;
  EXPECT_EQ(word.size() - colon, 10u) << word;
  return std::stoll(word.substr(0, colon)) * 1'000'000'000 + std::stoll(word.substr(colon + 1));
}

// Seconds since this process started: the time axis of fault entries.
inline double ScenarioSeconds() {
  return static_cast<double>(SystemClock().MonotonicRawNs() - ProcessStartRawNs()) / 1e9;
}

// The test and a library each measure the process start once; they agree far better than this, in
// seconds.
inline constexpr double kEpochSlack = 0.001;

}  // namespace profd::sim
