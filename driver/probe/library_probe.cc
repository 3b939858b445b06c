// profd-probe: opens one of the vendor's libraries and reports what it is, so that the program that wants to know
// (profctl selftest) need not have it in its process. It lives for one question; the caller ends it when it hangs.
//
// Prints "key value" lines. What the libraries print is dropped. Never as root: the code is whatever the caller's
// search path finds.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "driver/abi/hal_abi.h"
#include "driver/dl_library.h"
#include "driver/hal_library.h"
#include "driver/inventory.h"

namespace profd {
namespace {

constexpr int kUsage = 2;
constexpr int kRefused = 3;
// An answer, too: an "error" line has the reason.
constexpr int kNotThere = 0;
constexpr const char* kUsageText =
    "usage: profd-probe library SONAME SYMBOL...   whether it is there, and has these functions\n"
    "       profd-probe hal                        what libascend_hal.so reports of the devices; reads only\n"
    "       profd-probe register                   registers a module with libprofapi.so\n"
    "       profd-probe start DEVICE CHANNEL [set] starts channel 44, 45 or 50 and stops it; set: after aclrtSetDevice\n"
    "Opens a library of the vendor's in this process and prints what it finds; profctl selftest runs it. Not as root.\n";
// That of libprofd (client/libprofd/profiler_observer.cc); none of the vendor's modules has it.
constexpr uint32_t kForeignModule = 200;

// The way out; standard output and error go nowhere, as the libraries write to them.
class Answer {
 public:
  Answer() : out_(::dup(STDOUT_FILENO)) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0) return;
    (void)::dup2(nowhere, STDOUT_FILENO);
    (void)::dup2(nowhere, STDERR_FILENO);
  }
  void Line(std::string_view key, std::string_view value) const {
    std::string text = fmt::format("{} {}\n", key, value);
    for (char& c : text) {
      if (c != '\n' && (c < ' ' || c > '~')) c = '?';
    }
    if (::write(out_, text.data(), text.size()) < 0) std::_Exit(1);
  }

 private:
  int out_;
};

// Ends at once, without what libraries do at exit.
[[noreturn]] void End(int code) { std::_Exit(code); }

Result<DlLibrary> OpenByName(const std::string& soname) {
  DlOptions options;
  options.soname = soname;
  options.trust_unsafe_path = true;  // not root: as any program of this user
  const char* home = std::getenv("ASCEND_HOME_PATH");
  const std::string toolkit = home != nullptr && *home != '\0' ? home : "/usr/local/Ascend/ascend-toolkit/latest";
  options.usual_folders = {toolkit + "/lib64", toolkit + "/tools/mspti/lib64", "/usr/local/Ascend/driver/lib64/driver",
                           "/usr/local/Ascend/driver/lib64/common", "/usr/local/Ascend/driver/lib64"};
  return DlLibrary::Open(options);
}

int Library(const Answer& answer, const std::vector<std::string>& arguments) {
  const auto library = OpenByName(arguments[1]);
  if (!library.ok()) {
    answer.Line("error", library.status().message());
    return kNotThere;
  }
  answer.Line("path", library->path());
  for (size_t i = 2; i < arguments.size(); ++i) {
    answer.Line(library->FindSymbol(arguments[i].c_str()) != nullptr ? "has" : "lacks", arguments[i]);
  }
  return 0;
}

int Hal(const Answer& answer) {
  const auto hal = HalLibrary::Load("", true);
  if (!hal.ok()) {
    answer.Line("error", hal.status().message());
    return kNotThere;
  }
  answer.Line("path", (*hal)->path());
  answer.Line("api", fmt::format("{:#08x}", (*hal)->ApiVersion()));
  for (const std::string& symbol : (*hal)->missing_symbols()) answer.Line("lacks", symbol);
  uint32_t count = 0;
  if (const int code = (*hal)->GetDeviceNum(&count); code != 0) answer.Line("code", fmt::format("drvGetDevNum {}", code));
  count = std::min(count, 64U);
  answer.Line("devices", std::to_string(count));
  std::array<uint32_t, 64> ids{};
  if (count == 0 || (*hal)->GetDeviceIds(ids.data(), count) != 0) return 0;
  for (uint32_t i = 0; i < count; ++i) {
    int64_t version = -1;
    const int code = (*hal)->GetDeviceInfo(ids[i], abi::kModuleSystem, abi::kInfoVersion, &version);
    uint32_t physical = ids[i];
    const int known = (*hal)->GetPhysicalId(ids[i], &physical);
    answer.Line("device", fmt::format("{} version={:#x} code={} physical={} physical_code={} split={}", ids[i], version, code, physical, known,
                                      (*hal)->SplitMode(ids[i])));
  }
  return 0;
}

int Register(const Answer& answer) {
  const auto library = OpenByName("libprofapi.so");
  if (!library.ok()) {
    answer.Line("error", library.status().message());
    return kNotThere;
  }
  answer.Line("path", library->path());
  using Callback = int32_t (*)(uint32_t type, void* data, uint32_t length);
  const auto register_callback = reinterpret_cast<int32_t (*)(uint32_t, Callback)>(library->FindSymbol("MsprofRegisterCallback"));
  if (register_callback == nullptr) {
    answer.Line("lacks", "MsprofRegisterCallback");
    return 0;
  }
  answer.Line("code", std::to_string(register_callback(kForeignModule, [](uint32_t, void*, uint32_t) -> int32_t { return 0; })));
  return 0;
}

// As the vendor's libraries start them (driver-abi 3.5).
abi::ProfStartPara ParaOf(uint32_t channel) {
  static std::array<uint32_t, 9> step_trace = {20, 0, 0, 0, 0, 0, 1, 0, 1};  // TsFwCfg: period, ts_keypoint, tsBlockdim
  static std::array<uint32_t, 11> stars_log = {1, 0, 0, 0, 0, 0, 1};         // StarsLogCfg: acsq_task, ffts_context_task
  static uint32_t task_log = 0;
  abi::ProfStartPara para{};
  para.channel_type = 0;
  para.real_time = abi::kProfReal;
  para.sample_period = channel == 45 ? 0 : 20;
  para.user_data = channel == 44 ? static_cast<void*>(step_trace.data()) : channel == 50 ? static_cast<void*>(stars_log.data()) : &task_log;
  para.user_data_size = channel == 44 ? sizeof step_trace : channel == 50 ? sizeof stars_log : sizeof task_log;
  return para;
}

int Start(const Answer& answer, uint32_t device, uint32_t channel, bool set) {
  if (set) {
    const auto acl = OpenByName("libascendcl.so");
    if (!acl.ok()) {
      answer.Line("error", acl.status().message());
      return kNotThere;
    }
    const auto init = reinterpret_cast<int (*)(const char*)>(acl->FindSymbol("aclInit"));
    const auto set_device = reinterpret_cast<int (*)(int32_t)>(acl->FindSymbol("aclrtSetDevice"));
    if (set_device == nullptr) {
      answer.Line("lacks", "aclrtSetDevice");
      return 0;
    }
    if (init != nullptr) answer.Line("aclInit", std::to_string(init(nullptr)));
    answer.Line("aclrtSetDevice", std::to_string(set_device(static_cast<int32_t>(device))));
  }
  const auto hal = HalLibrary::Load("", true);
  if (!hal.ok()) {
    answer.Line("error", hal.status().message());
    return kNotThere;
  }
  abi::ProfStartPara para = ParaOf(channel);
  const int code = (*hal)->ProfStart(device, channel, &para);
  answer.Line("code", std::to_string(code));
  answer.Line("text", ProfCodeText(code));
  if (code == abi::kProfOk) answer.Line("stop", std::to_string((*hal)->ProfStop(device, channel)));
  return 0;
}

int Run(const std::vector<std::string>& arguments) {
  const std::string_view what = arguments.empty() ? "" : std::string_view(arguments[0]);
  uint32_t device = 0;
  uint32_t channel = 0;
  const bool start = what == "start" && (arguments.size() == 3 || (arguments.size() == 4 && arguments[3] == "set")) && ParseNumber(arguments[1], &device) &&
                     ParseNumber(arguments[2], &channel) && (channel == 44 || channel == 45 || channel == 50);
  const bool library = what == "library" && arguments.size() >= 2 && arguments[1].find('/') == std::string::npos;
  if (!start && !library && !(arguments.size() == 1 && (what == "hal" || what == "register"))) {
    const bool help = what == "--help";
    (void)std::fputs(kUsageText, help ? stdout : stderr);
    return help ? 0 : kUsage;
  }
  if (::geteuid() == 0) {
    (void)std::fputs("profd-probe: not as root; run it as the user who trains\n", stderr);
    return kRefused;
  }
  const Answer answer;
  try {
    End(library ? Library(answer, arguments) : start ? Start(answer, device, channel, arguments.size() == 4) : what == "hal" ? Hal(answer) : Register(answer));
  } catch (const std::exception& thrown) {
    answer.Line("error", fmt::format("the library threw: {}", thrown.what()));
  } catch (...) {
    answer.Line("error", "the library threw");
  }
  End(kNotThere);
}

}  // namespace
}  // namespace profd

int main(int argc, char** argv) { return profd::Run({argv + 1, argv + argc}); }
