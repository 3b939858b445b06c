#include "sim/msprofiler/profiler.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <utility>

#include "base/text.h"
#include "sim/msprofiler/config.h"

namespace profd::sim::aclprof {
namespace {

constexpr uint32_t kMaxDevices = 64;
constexpr size_t kMaxPath = 4095, kMaxValue = 256;

// What the vendor adds to the requested bits.
uint64_t Derived(uint64_t bits) {
  if ((bits & kApiStats) != 0) return kApiStats;
  if ((bits & (kTaskTimeL2 | kOpAttr)) != 0) bits |= kTaskTime | kTaskTimeL0;
  if ((bits & kTaskTime) != 0) bits |= kTaskTimeL0 | kTrainingTrace;
  return bits | prof::kSwitchAicpuModel;
}

bool IsDirectory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

void WithRecording(const std::function<void(Recording&)>& body) {
  if (const auto recording = Profiler::The().recording()) body(*recording);
}

constexpr prof::Msprof kMsprof = {
    [](uint32_t aging, const prof::Api& api) { WithRecording([&](Recording& to) { to.OnApi(aging, api); }); },
    [](uint32_t aging, const prof::Event& event) { WithRecording([&](Recording& to) { to.OnEvent(aging, event); }); },
    [](uint32_t aging, const prof::Compact& record) {
      WithRecording([&](Recording& to) { to.OnCompact(aging, record); });
    },
    [](uint32_t aging, const prof::Additional& record) {
      WithRecording([&](Recording& to) { to.OnAdditional(aging, record); });
    },
    [](uint16_t level, uint32_t type, const char* name, size_t size) {
      WithRecording([&](Recording& to) { to.OnTypeName(level, type, {name, size}); });
    },
    [](uint64_t id, const char* text, size_t size) {
      WithRecording([&](Recording& to) { to.OnName(id, {text, size}); });
    },
    [](const prof::SetDevice& device) { Profiler::The().OnDevice(device); },
};

}  // namespace

// As the vendor's library does, be known to libprofapi as soon as it is loaded.
__attribute__((constructor)) void RegisterAtLoad() { simProfapiSetMsprof(&kMsprof); }

Profiler& Profiler::The() {
  static Profiler* const the = new Profiler;
  return *the;
}

std::shared_ptr<Recording> Profiler::recording() {
  MutexLock lock(recording_mutex_);
  return recording_;
}

int Profiler::InitIn(const std::string& path) {
  ::mkdir(path.c_str(), 0750);
  if (!IsDirectory(path)) return kInvalidParam;
  path_ = path;
  mode_ = Mode::kApi;
  storage_limit_mb_ = 0;
  return kOk;
}

int Profiler::Init(const char* path, size_t length) {
  MutexLock lock(mutex_);
  if (path == nullptr || length == 0 || length > kMaxPath || length != std::strlen(path)) return kInvalidParam;
  const char* const mode = std::getenv("PROFILING_MODE");
  if (mode != nullptr && std::string_view(mode) == "dynamic") return kUnsupported;
  if (mode_ == Mode::kCommand || Settings::The().commanded) return kAlreadyRun;
  if (mode_ == Mode::kApi) return kRepeatInitialize;
  return InitIn(path);
}

int Profiler::Finalize() {
  MutexLock lock(mutex_);
  if (mode_ != Mode::kApi) return Settings::The().lenient ? kOk : kUninitialized;
  bool disk_full = false;
  if (recording() != nullptr) End(&disk_full);
  mode_ = Mode::kOff;
  return kOk;
}

Config* Profiler::CreateConfig(const uint32_t* devices, uint32_t count, int metrics, const void* events,
                               uint64_t bits) {
  const bool no_devices = count == 0 && bits == kMsproftx;
  if ((devices == nullptr || count == 0 || count > kMaxDevices) && !no_devices) return nullptr;
  std::set<uint32_t> list;
  for (uint32_t i = 0; i < count; ++i) {
    if (devices[i] >= kMaxDevices || !list.insert(devices[i]).second) return nullptr;
  }
  const bool known_metrics = (metrics >= kArithmetic && metrics <= kMemoryAccess) || metrics == kNoMetrics;
  if (events != nullptr || ((bits & kAicoreMetrics) != 0 && !known_metrics)) return nullptr;
  return new Config{{std::move(list), Derived(bits), metrics}};
}

int Profiler::DestroyConfig(const Config* config) {
  if (config == nullptr) return kInvalidParam;
  delete config;
  return kOk;
}

int Profiler::SetConfig(int type, const char* value, size_t length) {
  MutexLock lock(mutex_);
  if (mode_ != Mode::kApi) return kUninitialized;
  if (type < kStorageLimit || type > kLastConfigType || type == 2) return kInvalidParam;
  if (value == nullptr || length > kMaxValue || length != std::strlen(value)) return kInvalidParam;
  if (type != kStorageLimit) return kOk;
  std::string_view text(value);
  uint64_t megabytes = 0;
  if (!text.ends_with("MB")) return kInvalidParam;
  text.remove_suffix(2);
  if (!ParseNumber(text, &megabytes) || megabytes < 200) return kInvalidParam;
  storage_limit_mb_ = megabytes;
  return kOk;
}

void Profiler::Send(prof::CommandType type, const RecordingRequest& wanted) {
  const auto command = std::make_unique<prof::Command>();
  command->type = type;
  command->switches = wanted.bits;
  if ((wanted.bits & kTaskTimeL0) != 0) command->switches |= prof::kSwitchTaskTrack;
  for (const uint32_t device : wanted.devices) command->devices[command->device_count++] = device;
  profSetProfCommand(command.get(), sizeof *command);
}

int Profiler::Start(const Config* config) {
  MutexLock lock(mutex_);
  const bool lenient = Settings::The().lenient;
  if (mode_ != Mode::kApi) {
    if (!lenient) return kUninitialized;
    if (const int made = InitIn("./"); made != kOk) return made;
  }
  if (config == nullptr && !lenient) return kInvalidParam;
  if (recording() != nullptr) return kAlreadyRun;
  RecordingRequest wanted = config != nullptr ? config->wanted : RecordingRequest{{}, Derived(kTaskTime), kNoMetrics};
  wanted.storage_limit_mb = storage_limit_mb_;
  auto begun = Recording::Begin(path_, wanted);
  if (!begun.ok()) return kFailure;
  const std::shared_ptr<Recording> recording = std::move(begun).value();
  int result = kOk;
  std::set<uint32_t> devices;
  {
    MutexLock held(recording_mutex_);
    devices = devices_;
  }
  if (Settings::The().unset_device_fails && !std::ranges::includes(devices, wanted.devices)) result = kFailure;
  for (const uint32_t device : devices) {
    if (result == kOk) result = recording->AddDevice(device);
  }
  if (result != kOk) return result;
  {
    MutexLock held(recording_mutex_);
    recording_ = recording;
  }
  Send(prof::kStart, wanted);
  return kOk;
}

void Profiler::End(bool* disk_full) {
  const std::shared_ptr<Recording> recording = this->recording();
  Send(prof::kStop, recording->wanted());
  // Over at once when it is set to 0 meanwhile.
  using std::chrono::milliseconds, std::chrono::steady_clock;
  for (const auto begin = steady_clock::now(); steady_clock::now() - begin < milliseconds(Settings::The().stop_ms);) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  {
    MutexLock held(recording_mutex_);
    recording_ = nullptr;
  }
  *disk_full = !recording->End();
}

int Profiler::Stop(const Config* config) {
  MutexLock lock(mutex_);
  const std::shared_ptr<Recording> running = recording();
  if (mode_ != Mode::kApi || running == nullptr) return kNotRun;
  if (config == nullptr && !Settings::The().lenient) return kInvalidParam;
  if (config != nullptr && config->wanted.bits != running->wanted().bits) return kInvalidConfig;
  bool disk_full = false;
  End(&disk_full);
  return disk_full ? kFailure : kOk;
}

void Profiler::OnDevice(const prof::SetDevice& device) {
  std::shared_ptr<Recording> recording;
  {
    MutexLock lock(recording_mutex_);
    if (device.is_open) {
      devices_.insert(device.device);
    } else {
      devices_.erase(device.device);
    }
    recording = recording_;
  }
  if (recording == nullptr) return;
  if (device.is_open) {
    // Its result is not a caller's: the vendor only logs it.
    recording->AddDevice(device.device);
  } else {
    recording->RemoveDevice(device.device);
  }
}

}  // namespace profd::sim::aclprof
