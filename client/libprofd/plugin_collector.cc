#include "client/libprofd/plugin_collector.h"

#include <cxxabi.h>
#include <pthread.h>

#include <cstdlib>
#include <utility>

#include "client/libprofd/detached_thread.h"

namespace profd::lib {
namespace {

std::atomic<PluginCollector*> g_collector{nullptr};

extern "C" void ProfdCollectAtExit() {
  try {
    if (PluginCollector* collector = PluginCollector::Instance()) collector->AtExit();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    // No memory: the last records are lost with the process.
  }
}

void InForkedChild() {
  if (PluginCollector* collector = PluginCollector::Instance()) collector->AfterForkInChild();
}

}  // namespace

PluginCollector* PluginCollector::Instance() { return g_collector.load(std::memory_order_acquire); }

bool PluginCollector::RegisterAtExit() { return std::atexit(ProfdCollectAtExit) == 0; }

int PluginCollector::StartThread() {
  PluginCollector* none = nullptr;
  const bool first = g_collector.compare_exchange_strong(none, this);
  if (!first && none != this) return EBUSY;
  if (first && ::pthread_atfork(nullptr, nullptr, InForkedChild) != 0) return ENOMEM;
  const int error = StartDetached(&PluginCollector::ThreadMain, this);
  running_ = error == 0;
  return error;
}

void* PluginCollector::ThreadMain(void* self) {
  ::pthread_setname_np(::pthread_self(), "profd-collect");
  auto& collector = *static_cast<PluginCollector*>(self);
  collector.Run();
  collector.SetState({});
  {
    const MutexLock lock(collector.mutex_);
    collector.running_ = collector.stopping_ = false;
    collector.changed_.NotifyAll();
  }
  collector.CallOnChange();
  return nullptr;
}

void PluginCollector::SetState(State state) {
  {
    const MutexLock lock(mutex_);
    if (state == state_) return;
    state_ = std::move(state);
    changed_.NotifyAll();
  }
  CallOnChange();
}

void PluginCollector::CallOnChange() {
  void (*on_change)(void*) = nullptr;
  void* user = nullptr;
  {
    const MutexLock lock(mutex_);
    on_change = config_.on_change;
    user = config_.user;
  }
  if (on_change != nullptr) on_change(user);
}

void PluginCollector::Rest(Milliseconds pause) {
  MutexLock lock(mutex_);
  changed_.WaitFor(lock, pause, [] { return false; });
}

void PluginCollector::Report(profd_collect_report* report) {
  const size_t size = report->size;
  profd_collect_report full = {};
  full.size = size;
  if (!dead()) {
    const MutexLock lock(mutex_);
    full.state = state_.state;
    full.code = state_.code;
    full.kinds = state_.kinds;
    full.left_out = state_.left_out;
    full.silent = state_.silent;
    CopyText(state_.detail, full.detail);
    AddToReport(&full);
  }
  std::memcpy(report, &full, std::min(size, sizeof full));
}

bool PluginCollector::Stop(Milliseconds within) {
  if (dead()) return true;
  MutexLock lock(mutex_);
  if (!running_) return true;
  stopping_ = true;
  changed_.NotifyAll();
  return changed_.WaitFor(lock, within, [this]() REQUIRES(mutex_) {
    return !running_ || state_.state == PROFD_COLLECT_FILES;
  });
}

}  // namespace profd::lib
