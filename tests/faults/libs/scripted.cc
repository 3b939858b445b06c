// A driver that misbehaves on a test's word: PROFD_FAULT_SCRIPT names a file, looked at in every call,
// with lines "FUNCTION DEVICE ACTION [VALUE]"; FUNCTION and DEVICE may be "*". Actions: hang (until the
// line is gone), code VALUE (answered in place of the driver's), short VALUE (no read gives more bytes),
// garbage (every byte read is turned over), slow_start VALUE (that channel's prof_drv_start takes 400 ms more).
// prof_channel_poll and what asks for the node is device -1. With PROFD_FAULT_STARTS=FILE every start adds a
// line "DEVICE CHANNEL BEFORE AFTER" there, CLOCK_MONOTONIC_RAW in ns around the simulator's own call.
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tests/faults/libs/forward.h"

namespace abi = profd::abi;
using fault::Real;

namespace {

struct Rule {
  std::string function;
  std::string device;
  std::string action;
  int value = 0;
};

class Script {
 public:
  std::optional<Rule> Find(const char* function, int device, const char* action) {
    std::lock_guard<std::mutex> lock(mutex_);
    Load();
    for (const Rule& rule : rules_) {
      if (rule.action == action && (rule.function == "*" || rule.function == function) &&
          (rule.device == "*" || rule.device == std::to_string(device))) {
        return rule;
      }
    }
    return std::nullopt;
  }

 private:
  // The test puts another file in its place, so the inode identifies it.
  void Load() {
    const char* path = std::getenv("PROFD_FAULT_SCRIPT");
    struct stat now {};
    if (path == nullptr || ::stat(path, &now) != 0) {
      rules_.clear();
      inode_ = 0;
      return;
    }
    if (now.st_ino == inode_ && now.st_mtim.tv_nsec == changed_) return;
    inode_ = now.st_ino;
    changed_ = now.st_mtim.tv_nsec;
    rules_.clear();
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      Rule rule;
      std::istringstream words(line);
      words >> rule.function >> rule.device >> rule.action >> rule.value;
      rules_.push_back(rule);
    }
  }

  std::mutex mutex_;
  std::vector<Rule> rules_;
  ino_t inode_ = 0;
  long changed_ = 0;
};

int64_t RawNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Script& TheScript() {
  static Script* const script = new Script;  // calls may still be inside at exit
  return *script;
}

// Waits while the call is to hang; the code it is to answer, if there is one.
std::optional<int> Meet(const char* function, int device) {
  while (TheScript().Find(function, device, "hang")) ::usleep(5000);
  if (auto rule = TheScript().Find(function, device, "code")) return rule->value;
  return std::nullopt;
}

template <class Fn, class... Args>
int Pass(const char* function, int device, Args... args) {
  if (auto code = Meet(function, device)) return *code;
  return Real<Fn>(function)(args...);
}

}  // namespace

FAULT_EXPORT int prof_drv_get_channels(unsigned device, abi::ChannelList* out) {
  return Pass<abi::ProfDrvGetChannelsFn>("prof_drv_get_channels", int(device), device, out);
}
FAULT_EXPORT int prof_drv_start(unsigned device, unsigned channel, abi::ProfStartPara* para) {
  if (auto rule = TheScript().Find("prof_drv_start", int(device), "slow_start");
      rule && rule->value == int(channel)) {
    ::usleep(400'000);
  }
  const int64_t before = RawNs();
  const int code = Pass<abi::ProfDrvStartFn>("prof_drv_start", int(device), device, channel, para);
  if (const char* path = std::getenv("PROFD_FAULT_STARTS"); path != nullptr && code == 0) {
    std::ofstream(path, std::ios::app)
        << device << ' ' << channel << ' ' << before << ' ' << RawNs() << std::endl;
  }
  return code;
}
FAULT_EXPORT int prof_stop(unsigned device, unsigned channel) {
  const auto code = Meet("prof_stop", int(device));
  // -4 means that the channel does not run any more, and then it does not.
  if (code && *code != -4) return *code;
  const int result = Real<abi::ProfStopFn>("prof_stop")(device, channel);
  return code.value_or(result);
}
FAULT_EXPORT int prof_channel_read(unsigned device, unsigned channel, char* out, unsigned size) {
  const int number = int(device);
  if (auto rule = TheScript().Find("prof_channel_read", number, "short")) {
    size = std::min(size, unsigned(rule->value));
  }
  const int got =
      Pass<abi::ProfChannelReadFn>("prof_channel_read", number, device, channel, out, size);
  if (TheScript().Find("prof_channel_read", number, "garbage")) {
    for (int i = 0; i < got; ++i) out[i] = static_cast<char>(~out[i]);
  }
  return got;
}
FAULT_EXPORT int prof_channel_poll(abi::ProfPollInfo* out, int num, int timeout) {
  if (auto code = Meet("prof_channel_poll", -1)) {
    // -2 is "nothing within the timeout"; the others come at once.
    if (*code == -2) ::usleep(20000);
    return *code;
  }
  return Real<abi::ProfChannelPollFn>("prof_channel_poll")(out, num, timeout);
}
FAULT_EXPORT int halGetDeviceInfo(uint32_t device, int32_t module, int32_t info, int64_t* value) {
  return Pass<abi::HalGetDeviceInfoFn>("halGetDeviceInfo", int(device), device, module, info,
                                       value);
}
FAULT_EXPORT int halGetDeviceInfoByBuff(uint32_t device, int32_t module, int32_t info, void* buffer,
                                        int32_t* size) {
  return Pass<abi::HalGetDeviceInfoByBuffFn>("halGetDeviceInfoByBuff", int(device), device, module,
                                             info, buffer, size);
}
FAULT_EXPORT int halProfDataFlush(unsigned device, unsigned channel, unsigned* length) {
  return Pass<abi::HalProfDataFlushFn>("halProfDataFlush", int(device), device, channel, length);
}
FAULT_EXPORT int drvDeviceStatus(uint32_t device, int* status) {
  return Pass<abi::DrvDeviceStatusFn>("drvDeviceStatus", int(device), device, status);
}
