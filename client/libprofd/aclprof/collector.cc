#include "client/libprofd/aclprof/collector.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "client/libprofd/profiler_observer.h"

namespace profd::lib::aclprof {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr char kMetMspti[] = "a client of MSPTI has subscribed meanwhile: what the host reported since then is missing";

// Lines "name=value".
std::map<std::string, std::string> ReadItems(const char* text) {
  std::map<std::string, std::string> items;
  std::string_view rest = text == nullptr ? std::string_view() : text;
  for (std::string_view line; NextLine(&rest, &line);) {
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos) items.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return items;
}

void AddTo(std::string* detail, const std::string& text) {
  if (!detail->empty()) *detail += "; ";
  *detail += text;
}

}  // namespace

int Collector::Start(const profd_collect_config& config) {
  if (dead()) return ECHILD;
  if ((config.aclprof_bits & kAllowedBits) == 0) return EINVAL;
  MutexLock lock(mutex_);
  if (stopping_) return EBUSY;
  if (running_) return 0;  // the vendor's profiler keeps the config it began with
  config_ = config;
  request_ = {config.session == nullptr ? "" : config.session, config.aclprof_bits & kAllowedBits,
            config.aclprof_metrics, ReadItems(config.aclprof_config)};
  config_.session = config_.aclprof_config = nullptr;
  taken_ = false;
  return StartThread();
}

void Collector::Run() {
  gave_up_ = false;
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (stopping_) break;
      carried_out_ = request_;
    }
    Milliseconds pause = pauses_.busy;
    try {
      if (collecting_) WatchMspti();
      if (!collecting_ && !gave_up_) pause = TryToBegin();
    } catch (const std::exception& thrown) {  // of memory; the vendor's are caught where it is called
      gave_up_ = true;
      SetState({PROFD_COLLECT_FAILED, kThrew, 0, thrown.what()});
    }
    MutexLock lock(mutex_);
    changed_.WaitFor(lock, pause, [this]() REQUIRES(mutex_) { return stopping_; });
  }
  EndAndHandOver();
  directory_.Remove();
}

PluginCollector::State Collector::Refusal(const char* call, const Called& called) {
  const std::string where = std::string(call) + ": " + std::to_string(called.code);
  switch (called.code) {
    case kRepeatInitialize:
      return {PROFD_COLLECT_BUSY, called.code, 0,
              "the application profiles itself through aclprof (" + where + "): switch its profiler off"};
    case kProfAlreadyRun:
      return {PROFD_COLLECT_BUSY, called.code, 0, "the msprof command profiles this process (" + where + ")"};
    case kProfApiConflict:
      return {PROFD_COLLECT_BUSY, called.code, 0, "another interface of the vendor's profiler is in use (" + where + ")"};
    case kFeatureUnsupported:
    case kProfModulesUnsupported:
      return {PROFD_COLLECT_UNSUPPORTED, called.code, 0, "this chip or CANN cannot do it (" + where + ")"};
    default:
      break;
  }
  std::string why = called.code == kThrew ? std::string(call) + " threw: " + called.why : where;
  if (called.code == kProfilingFailure) {
    why += ": the device's channels may belong to another process; see the vendor's log (~/ascend/log)";
  }
  return {PROFD_COLLECT_FAILED, called.code, 0, std::move(why)};
}

PluginCollector::State Collector::TakeBack(const char* call, const Called& called) {
  library_.Finalize();
  directory_.Remove();
  return Refusal(call, called);
}

// True: nothing stands in the way of Init.
bool Collector::Prepare() {
  if (const std::string other = ProfilerObserver::Others(); !other.empty()) {
    SetState({PROFD_COLLECT_BUSY, 0, 0, other});
    return false;
  }
  if (!loaded_) {
    if (const std::string why = AclprofLibrary::Load(&library_); !why.empty()) {
      gave_up_ = true;
      SetState({PROFD_COLLECT_UNSUPPORTED, 0, 0, why});
      return false;
    }
    loaded_ = true;
  }
  return true;
}

void Collector::ApplyItem(const std::string& name, const std::string& value, State* state) {
  const auto* found = std::ranges::find(kConfigNames, name, &ConfigName::name);
  // The others sample channels that belong to the daemon.
  const Called called =
      found == std::end(kConfigNames) ? Called{kInvalidParam, {}} : library_.SetConfig(found->type, value);
  if (called.ok()) return;
  state->state = PROFD_COLLECT_PARTIAL;
  if (state->code == 0) state->code = called.code;
  AddTo(&state->detail, "refused: " + name + "=" + value + " (" + std::to_string(called.code) + ")");
}

// The volume of the directory is not ours to fill: there always is a limit.
void Collector::Configure(State* state) {
  uint64_t limit_mb = directory_.free_bytes() / kMiB / 10 * 9;
  for (const auto& [name, value] : carried_out_.items) {
    uint64_t megabytes = 0;
    if (name != "storage_limit") {
      ApplyItem(name, value, state);
    } else if (ParseNumber(std::string_view(value).substr(0, value.find("MB")), &megabytes)) {
      limit_mb = std::min(limit_mb, megabytes);
    }
  }
  ApplyItem("storage_limit", std::to_string(std::max(limit_mb, kLeastStorageLimitMb)) + "MB", state);
}

Collector::Milliseconds Collector::TryToBegin() {
  if (!IsMapped("libascendcl.so")) {
    SetState({PROFD_COLLECT_WAITING, 0, 0, "the process has not loaded libascendcl.so"});
    return pauses_.waiting;
  }
  if (ProfilerObserver::Register()) Rest(pauses_.settle);
  if (!Prepare()) return pauses_.busy;
  ProfilerObserver::Register();  // where the vendor's profiler was the one to load libprofapi
  State state = Begin(AclprofLibrary::Devices());
  if (MayBeForADevice(state)) {
    // One of another process, or one that this process has not set, may be the reason.
    if (std::vector<uint32_t> own = AclprofLibrary::OwnDevice(); !own.empty()) {
      const std::string which = "device " + std::to_string(own.front()) + " only, since for all: " + state.detail;
      state = Begin(std::move(own));
      if (collecting_) AddTo(&state.detail, which);
    }
  }
  // What the driver refuses today it may grant when another process has ended.
  gave_up_ = !collecting_ && state.state != PROFD_COLLECT_BUSY && state.code != kProfilingFailure;
  begun_ = state;
  SetState(std::move(state));
  return pauses_.busy;
}

void Collector::WatchMspti() {
  if (!ProfilerObserver::MetMspti()) return;
  State state = begun_;
  state.state = PROFD_COLLECT_PARTIAL;
  AddTo(&state.detail, kMetMspti);
  SetState(std::move(state));
}

bool Collector::MayBeForADevice(const State& state) {
  return state.state == PROFD_COLLECT_FAILED && (state.code == kProfilingFailure || state.code == kInvalidParam);
}

PluginCollector::State Collector::Begin(std::vector<uint32_t> devices) {
  if (const std::string why = directory_.Make(carried_out_.session, kLeastStorageLimitMb * kMiB); !why.empty()) {
    return {PROFD_COLLECT_FAILED, 0, 0, why};
  }
  if (const Called called = library_.Init(directory_.path()); !called.ok()) {
    // Not ours to finalize.
    directory_.Remove();
    return Refusal("aclprofInit", called);
  }
  if (!exit_handler_) exit_handler_ = RegisterAtExit();
  State state{PROFD_COLLECT_ON, 0, 0, {}};
  Configure(&state);
  const auto metrics = static_cast<int>(carried_out_.metrics);
  if (const Called called = library_.CreateConfig(std::move(devices), metrics, carried_out_.bits); !called.ok()) {
    return TakeBack("aclprofCreateConfig", called);
  }
  ProfilerObserver::ExpectAclprof(true);
  if (const Called called = library_.Start(); !called.ok()) {
    state = TakeBack("aclprofStart", called);
    ProfilerObserver::ExpectAclprof(false);
    return state;
  }
  collecting_ = true;
  return state;
}

void Collector::EndAndHandOver() {
  if (!std::exchange(collecting_, false)) return;
  SetState({PROFD_COLLECT_STOPPING, 0, 0, "the vendor's profiler writes its files"});
  const Called stopped = library_.Stop();
  const Called finalized = library_.Finalize();
  ProfilerObserver::ExpectAclprof(false);
  if (directory_.empty()) return;
  State state{PROFD_COLLECT_FILES, 0, 0, {}};
  for (const auto& [call, called] : {std::pair("aclprofStop", &stopped), std::pair("aclprofFinalize", &finalized)}) {
    if (called->ok() || state.code != 0) continue;
    state.code = called->code;
    state.detail = std::string(call) + ": " + std::to_string(called->code) + (called->why.empty() ? "" : " " + called->why) +
                   ": some files may be missing; the volume may be full: " + directory_.path();
  }
  if (ProfilerObserver::MetMspti()) AddTo(&state.detail, kMetMspti);
  files_fd_.store(directory_.fd(), std::memory_order_release);
  SetState(std::move(state));
  {
    MutexLock lock(mutex_);
    changed_.WaitFor(lock, pauses_.untaken, [this]() REQUIRES(mutex_) { return taken_; });
  }
  files_fd_.store(-1, std::memory_order_release);
}

void Collector::FilesTaken() {
  if (dead()) return;
  const MutexLock lock(mutex_);
  taken_ = true;
  changed_.NotifyAll();
}

void Collector::AtExit() {
  if (dead() || !Stop(pauses_.last_stop)) return;
  MutexLock lock(mutex_);
  const auto ended = [this]() REQUIRES(mutex_) { return !running_; };
  if (changed_.WaitFor(lock, pauses_.last_copy, ended)) return;
  // Too late for the copy: the files go with the process.
  taken_ = true;
  changed_.NotifyAll();
  changed_.WaitFor(lock, pauses_.last_copy, ended);
}

}  // namespace profd::lib::aclprof
