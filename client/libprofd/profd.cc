// The C API. Exceptions end here; the one exception of this project's rule against globals lives here
// too, because a C API without handles has one state per process.
#include "client/libprofd/profd.h"

#include <cxxabi.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/mutex.h"
#include "client/libprofd/last_error.h"
#include "client/libprofd/library.h"
#include "client/libprofd/profd_settings.h"

namespace profd::lib {
namespace {

using attach::MarkKind;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kStartMs = 10'000;
constexpr uint32_t kStopMs = 30'000;
constexpr int kShutdownMs = 2'000;

struct Process {
  HotState hot;
  // Null unless it runs.
  std::atomic<Library*> current{nullptr};

  Mutex mutex;  // of starting and stopping; held during a fork
  std::atomic<uint64_t> next_range{1};
  // A library is never freed: kept is started again, parents is left alone but for its settings
  // (and keeps what it had reachable).
  Library* kept GUARDED_BY(mutex) = nullptr;
  Library* parents GUARDED_BY(mutex) = nullptr;
  bool handles_forks GUARDED_BY(mutex) = false;
};
constinit Process g_process;

thread_local int32_t t_thread_id = 0;

void BeforeFork() ACQUIRE(g_process.mutex) {
  g_process.mutex.Lock();
  if (g_process.kept != nullptr) g_process.kept->LockForFork();
}
void InParent() RELEASE(g_process.mutex) {
  if (g_process.kept != nullptr) g_process.kept->UnlockAfterFork();
  g_process.mutex.Unlock();
}
// The child is a process of its own: it has neither the thread nor any business with its parent's
// socket and ring. Its next call begins afresh.
void InChild() RELEASE(g_process.mutex) {
  t_thread_id = 0;
  if (Library* parents = g_process.kept) {
    g_process.hot.ring = nullptr;
    g_process.hot.lost_without_ring = 0;
    g_process.hot.steps = 0;
    g_process.hot.last_step = INT64_MIN;
    if (g_process.current.exchange(nullptr) != nullptr) {
      g_process.hot.flags = HotState::kUninitialised;
    }
    parents->AbandonAfterFork(g_process.parents);
    g_process.parents = parents;
    g_process.kept = nullptr;
  }
  g_process.mutex.Unlock();
}

// Before the first call: a fork beside that one waits, too, and no lock of ours is held in its child.
[[gnu::constructor]] void AtLoad() {
  const MutexLock lock(g_process.mutex);
  g_process.handles_forks = ::pthread_atfork(BeforeFork, InParent, InChild) == 0;
  SetLastError({});  // makes its key, under a lock as well
}

Answer FromStatus(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return {};
    case StatusCode::kInvalidArgument:
      return {PROFD_INVALID, status.message()};
    case StatusCode::kResourceExhausted:
      return {PROFD_NO_MEMORY, status.message()};
    default:
      return {PROFD_REFUSED, status.message()};
  }
}

Answer InitLocked(const profd_config* config_or_null) REQUIRES(g_process.mutex) {
  if (IsDisabledByEnvironment()) {
    g_process.hot.flags = 0;
    return {PROFD_DISABLED, "PROFD_DISABLE is set"};
  }
  Result<Settings> settings = ReadSettings(config_or_null, g_process.parents != nullptr);
  if (!settings.ok()) return FromStatus(settings.status());
  if (const Library* running = g_process.current.load(std::memory_order_acquire)) {
    if (config_or_null == nullptr || running->settings().SaysTheSame(*settings)) return {};
    return {PROFD_REFUSED,
            "profd_init was called before (or by the first other call) with "
            "other settings: call profd_shutdown first"};
  }
  if (config_or_null == nullptr && g_process.parents != nullptr) {
    // The parent's settings are valid for its child, too.
    attach::Hello hello = g_process.parents->settings().hello;
    hello.options_json.clear();
    settings->hello = std::move(hello);
    settings->ring_slots = g_process.parents->settings().ring_slots;
  }
  if (!g_process.handles_forks) return {PROFD_NO_MEMORY, "atfork"};
  if (g_process.kept == nullptr) g_process.kept = new Library(g_process.hot);
  // From here on flags belong to the library, even if it cannot be started.
  g_process.hot.flags = 0;
  const Status started = g_process.kept->Start(*std::move(settings));
  if (!started.ok()) return FromStatus(started);
  g_process.current.store(g_process.kept, std::memory_order_release);
  return {};
}

Answer Init(const profd_config* config_or_null) {
  const MutexLock lock(g_process.mutex);
  return InitLocked(config_or_null);
}

bool IsUninitialised() {
  return (g_process.hot.flags.load(std::memory_order_relaxed) & HotState::kUninitialised) != 0;
}

// Only the first of several threads that come at once does it; the others wait until it is done.
void InitOnce() {
  const MutexLock lock(g_process.mutex);
  if (!IsUninitialised()) return;
  const Answer answer = InitLocked(nullptr);
  // Not again at every mark.
  if (answer.code != PROFD_OK) g_process.hot.flags = 0;
}

Library* Running() {
  if (Library* running = g_process.current.load(std::memory_order_acquire)) return running;
  InitOnce();
  return g_process.current.load(std::memory_order_acquire);
}

// The one that runs once a start of another thread is over; begins none, as profd_init may be going to say who the
// process is.
Library* RunningOrNone() {
  if (Library* running = g_process.current.load(std::memory_order_acquire)) return running;
  const MutexLock lock(g_process.mutex);
  return g_process.current.load(std::memory_order_acquire);
}

Answer NotRunning() {
  if (IsDisabledByEnvironment()) return {PROFD_DISABLED, "PROFD_DISABLE is set"};
  return {PROFD_DISABLED, "libprofd is not initialised: call profd_init"};
}

Deadline After(uint32_t ms, uint32_t if_zero = 0) {
  return Clock::now() + milliseconds(ms == 0 ? if_zero : ms);
}

// Runs what may answer an error; nothing is thrown across the C API but the end of a cancelled
// thread.
template <class Body>
int Guarded(Body body) {
  try {
    Answer answer = body();
    SetLastError(answer.text);
    return answer.code;
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return PROFD_NO_MEMORY;
  }
}

template <class Body>
void GuardedMark(Body body) {
  const int error_number = errno;
  try {
    body();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    // Without memory nothing can be reported.
  }
  errno = error_number;
}

constexpr size_t kMaxDomainBytes = 40;

// False: dropped and counted. `thread`: 0 = the caller's.
bool Publish(MarkKind kind, int64_t value, const char* name_or_null,
             const char* domain_or_null = nullptr, int32_t thread = 0) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  const attach::MarkRingWriter* ring = g_process.hot.ring.load(std::memory_order_acquire);
  if (ring == nullptr) {
    g_process.hot.lost_without_ring.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (t_thread_id == 0) t_thread_id = static_cast<int32_t>(::syscall(SYS_gettid));
  const std::string_view domain = attach::CutMarkName(domain_or_null, kMaxDomainBytes);
  const size_t taken = domain.empty() ? 0 : domain.size() + 1;
  return ring->Publish({kind, int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec, value,
                        thread == 0 ? t_thread_id : thread,
                        attach::CutMarkName(name_or_null, attach::kMarkNameBytes - taken), domain});
}

constexpr uint32_t kMarksOrFirst = HotState::kMarks | HotState::kUninitialised;
constexpr uint32_t kStepsOrFirst =
    HotState::kAttached | HotState::kStepsWatched | HotState::kUninitialised;

[[gnu::noinline]] void Mark(MarkKind kind, const char* name_or_null,
                            const char* domain_or_null = nullptr, uint64_t id = 0) {
  GuardedMark([=] {
    if (IsUninitialised()) InitOnce();
    if ((g_process.hot.flags.load(std::memory_order_relaxed) & HotState::kMarks) == 0) return;
    Publish(kind, static_cast<int64_t>(id), name_or_null, domain_or_null);
  });
}

[[gnu::noinline]] void Step(MarkKind kind, int64_t step) {
  GuardedMark([kind, step] {
    if (IsUninitialised()) InitOnce();
    const uint32_t flags = g_process.hot.flags.load(std::memory_order_relaxed);
    if ((flags & HotState::kAttached) == 0) return;
    Publish(kind, step, nullptr);
    if (kind == MarkKind::kStepBegin) {
      g_process.hot.steps.fetch_add(1, std::memory_order_relaxed);
      g_process.hot.last_step.store(step, std::memory_order_relaxed);
    }
    Library* library = g_process.current.load(std::memory_order_acquire);
    if ((flags & HotState::kStepsWatched) != 0 && library != nullptr) {
      library->OnStep(step, kind == MarkKind::kStepBegin);
    }
  });
}

bool IsWanted(uint32_t flags) {
  return (g_process.hot.flags.load(std::memory_order_relaxed) & flags) != 0;
}

int Invalid(const char* why) {
  return Guarded([why] { return Answer{PROFD_INVALID, why}; });
}

template <class Body>
int WithLibrary(Body body) {
  return Guarded([&body]() -> Answer {
    Library* library = Running();
    return library == nullptr ? NotRunning() : body(*library);
  });
}

// A process that ends sends Bye; one that is killed is noticed by its socket.
[[gnu::destructor]] void AtExit() {
  if (Library* library = g_process.current.exchange(nullptr)) library->StopAtExit();
}

}  // namespace
}  // namespace profd::lib

using profd::lib::Answer;
using profd::lib::HotState;
using profd::lib::Library;
using profd::lib::MarkKind;

extern "C" {

int profd_init(const profd_config* config) {
  return profd::lib::Guarded([config]() -> Answer {
    Answer answer = profd::lib::Init(config);
    Library* library = profd::lib::g_process.current.load(std::memory_order_acquire);
    const bool says = config != nullptr && config->size >= sizeof(profd_config);
    if (answer.code == PROFD_OK && says && config->wait_ms > 0 && library != nullptr) {
      library->WaitAttached(profd::lib::After(config->wait_ms));
    }
    return answer;
  });
}

int profd_attach(uint32_t timeout_ms) {
  return profd::lib::WithLibrary([timeout_ms](Library& library) {
    return library.WaitAttached(profd::lib::After(timeout_ms));
  });
}

void profd_shutdown(void) {
  profd::lib::GuardedMark([] {
    const profd::MutexLock lock(profd::lib::g_process.mutex);
    profd::lib::g_process.hot.flags.fetch_and(~uint32_t{HotState::kUninitialised});
    Library* library = profd::lib::g_process.current.exchange(nullptr);
    if (library != nullptr) library->Stop(profd::lib::kShutdownMs);
  });
}

int profd_start(const char* options_json) {
  profd_start_args args = PROFD_START_ARGS_INIT;
  args.options_json = options_json;
  return profd_start_with(&args);
}

int profd_start_with(const profd_start_args* args) {
  if (args == nullptr) return profd::lib::Invalid("no arguments");
  return profd::lib::WithLibrary([args](Library& library) {
    auto call = profd::lib::ReadStartArgs(*args);
    if (!call.ok()) return profd::lib::FromStatus(call.status());
    const uint32_t timeout_ms = args->size >= sizeof(profd_start_args) ? args->timeout_ms : 0;
    return library.StartSession(*std::move(call), profd::lib::After(timeout_ms, profd::lib::kStartMs));
  });
}

int profd_stop(void) { return profd_stop_within(0); }

int profd_stop_within(uint32_t timeout_ms) { return profd_stop_session(nullptr, timeout_ms); }

int profd_stop_session(const char* session_id, uint32_t timeout_ms) {
  return profd::lib::WithLibrary([=](Library& library) {
    return library.StopSession(session_id == nullptr ? "" : session_id, profd::lib::After(timeout_ms, profd::lib::kStopMs));
  });
}

void profd_step_begin(int64_t step) {
  if (!profd::lib::IsWanted(profd::lib::kStepsOrFirst)) return;
  profd::lib::Step(MarkKind::kStepBegin, step);
}

void profd_step_end(int64_t step) {
  if (!profd::lib::IsWanted(profd::lib::kStepsOrFirst)) return;
  profd::lib::Step(MarkKind::kStepEnd, step);
}

void profd_mark(const char* name) {
  if (!profd::lib::IsWanted(profd::lib::kMarksOrFirst)) return;
  profd::lib::Mark(MarkKind::kMark, name);
}

void profd_range_push(const char* name) {
  if (!profd::lib::IsWanted(profd::lib::kMarksOrFirst)) return;
  profd::lib::Mark(MarkKind::kRangePush, name);
}

void profd_range_pop(void) {
  if (!profd::lib::IsWanted(profd::lib::kMarksOrFirst)) return;
  profd::lib::Mark(MarkKind::kRangePop, nullptr);
}

void profd_mark_in(const char* domain, const char* name) {
  if (!profd::lib::IsWanted(profd::lib::kMarksOrFirst)) return;
  profd::lib::Mark(MarkKind::kMark, name, domain);
}

uint64_t profd_range_start(const char* domain, const char* name) {
  if (!profd::lib::IsWanted(profd::lib::kMarksOrFirst)) return 0;
  const uint64_t id = profd::lib::g_process.next_range.fetch_add(1, std::memory_order_relaxed);
  profd::lib::Mark(MarkKind::kRangeStart, name, domain, id);
  return id;
}

void profd_range_end(uint64_t id) {
  if (id == 0 || !profd::lib::IsWanted(profd::lib::kMarksOrFirst)) return;
  profd::lib::Mark(MarkKind::kRangeEnd, nullptr, nullptr, id);
}

int profd_stacks_wanted(int known, uint32_t timeout_ms) {
  return profd::lib::Guarded([=]() -> Answer {
    Library* library = profd::lib::RunningOrNone();
    if (library == nullptr) return profd::lib::NotRunning();
    return {library->WaitStacks(known, profd::lib::After(timeout_ms)), {}};
  });
}

int profd_stack_frame(uint32_t id, uint32_t caller, const char* name) {
  if (!profd::lib::IsWanted(HotState::kStacks)) return 0;
  const auto value = static_cast<int64_t>(uint64_t{id} | uint64_t{caller} << 32);
  return profd::lib::Publish(MarkKind::kFrame, value, name) ? 1 : 0;
}

int profd_stack_sample(uint32_t frame, int32_t thread) {
  if (!profd::lib::IsWanted(HotState::kStacks)) return 0;
  return profd::lib::Publish(MarkKind::kStack, int64_t{frame}, nullptr, nullptr, thread) ? 1 : 0;
}

int profd_stacks_asked(void) {
  return profd::lib::Guarded([]() -> Answer {
    Library* library = profd::lib::RunningOrNone();
    return {library != nullptr && library->StacksAsked() ? 1 : 0, {}};
  });
}

int profd_stacks_answer(const char* threads_json, int left_out) {
  return profd::lib::Guarded([=]() -> Answer {
    Library* library = profd::lib::g_process.current.load(std::memory_order_acquire);
    return library == nullptr ? profd::lib::NotRunning() : library->AnswerStacks(threads_json, left_out != 0);
  });
}

int profd_set_metadata(const char* key, const char* value) {
  if (key == nullptr) return profd::lib::Invalid("the key of metadata must not be NULL");
  return profd::lib::WithLibrary([=](Library& library) { return library.SetMetadata(key, value == nullptr ? "" : value); });
}

void profd_collect_allow(uint32_t providers) {
  profd::lib::GuardedMark([providers] {
    profd::lib::g_process.hot.collect_allowed.store(providers, std::memory_order_relaxed);
    Library* library = profd::lib::g_process.current.load(std::memory_order_acquire);
    if (library != nullptr) library->Wake();
  });
}

int profd_active(void) { return profd::lib::IsWanted(HotState::kMarks) ? 1 : 0; }

int profd_connected(void) { return profd::lib::IsWanted(HotState::kAttached) ? 1 : 0; }

int profd_session_json(char* buffer, size_t size, uint32_t refresh_ms) {
  if (buffer == nullptr && size > 0) return profd::lib::Invalid("no buffer");
  std::string text;
  const int code = profd::lib::WithLibrary([&](Library& library) {
    return library.SessionJson(refresh_ms > 0, profd::lib::After(refresh_ms), &text);
  });
  if (code != PROFD_OK) return code;
  if (size > 0) {
    const size_t copied = std::min(text.size(), size - 1);
    std::memcpy(buffer, text.data(), copied);
    buffer[copied] = '\0';
  }
  return static_cast<int>(text.size());
}

void profd_get_counters(profd_counters* counters) {
  if (counters == nullptr) return;
  *counters = {};
  profd::lib::GuardedMark([counters] {
    Library* library = profd::lib::g_process.current.load(std::memory_order_acquire);
    if (library != nullptr) *counters = library->Counters();
  });
}

const char* profd_last_error(void) { return profd::lib::LastError(); }

const char* profd_version(void) { return PROFD_VERSION; }

}  // extern "C"
