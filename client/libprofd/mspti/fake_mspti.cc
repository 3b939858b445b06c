#include "client/libprofd/mspti/fake_mspti.h"

#include <cstring>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "client/libprofd/mspti/mspti_abi.h"

namespace profd::lib::mspti {
namespace {

thread_local bool t_inside = false;

struct Buffer {
  uint8_t* memory = nullptr;
  size_t size = 0;
  size_t used = 0;
};

struct Library {
  FakeMspti orders;
  Mutex mutex;  // of the current buffer; held while one is requested from the client
  RequestFunction request GUARDED_BY(mutex) = nullptr;
  CompleteFunction complete GUARDED_BY(mutex) = nullptr;
  Buffer current GUARDED_BY(mutex);
  std::list<std::string> strings GUARDED_BY(mutex);
  Mutex threads_mutex;
  std::vector<std::thread> threads GUARDED_BY(threads_mutex);
};

Library& TheLibrary() {
  static auto* const library = new Library;
  return *library;
}

struct LateObject {
  ~LateObject() {
    const MutexLock lock(TheLibrary().mutex);
    TheLibrary().current = {};
  }
};

void Note(const char* call) {
  FakeMspti& orders = TheLibrary().orders;
  if (t_inside) ++orders.calls_inside_callbacks;
  if (*call == '\0') return;
  std::strncat(orders.calls, call, sizeof orders.calls - std::strlen(orders.calls) - 1);
}

void HandOver(CompleteFunction complete, Buffer buffer) {
  t_inside = true;
  complete(buffer.memory, buffer.size, buffer.used);
  t_inside = false;
}

void Join() {
  Library& library = TheLibrary();
  std::vector<std::thread> threads;
  {
    const MutexLock lock(library.threads_mutex);
    threads.swap(library.threads);
  }
  for (std::thread& thread : threads) thread.join();
}

void Record(const void* record, size_t bytes, const size_t* strings) {
  Library& library = TheLibrary();
  const MutexLock lock(library.mutex);
  if (library.request == nullptr) return;
  Buffer& current = library.current;
  if (current.memory != nullptr && current.used > current.size / 5 * 4) {
    const MutexLock threads_lock(library.threads_mutex);
    library.threads.emplace_back(HandOver, library.complete, current);
    current = {};
  }
  if (current.memory == nullptr) {
    size_t records = 0;
    t_inside = true;
    library.request(&current.memory, &current.size, &records);
    t_inside = false;
    ++library.orders.requests;
    current.used = 0;
  }
  if (current.memory == nullptr || current.used + bytes > current.size) return;
  uint8_t* to = current.memory + current.used;
  std::memcpy(to, record, bytes);
  for (; *strings != 0; ++strings) {
    const char* text = nullptr;
    std::memcpy(&text, to + *strings, sizeof text);
    library.strings.emplace_back(text);
    text = library.strings.back().c_str();
    std::memcpy(to + *strings, &text, sizeof text);
  }
  current.used += bytes;
}

}  // namespace
}  // namespace profd::lib::mspti

using profd::MutexLock;
using profd::lib::mspti::CallbackFunction;
using profd::lib::mspti::CompleteFunction;
using profd::lib::mspti::FakeMspti;
using profd::lib::mspti::Note;
using profd::lib::mspti::RequestFunction;
using profd::lib::mspti::Subscriber;
using profd::lib::mspti::TheLibrary;

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED FakeMspti* fakeMspti() { return &TheLibrary().orders; }
EXPORTED void fakeRecord(const void* record, size_t bytes, const size_t* strings) {
  profd::lib::mspti::Record(record, bytes, strings);
}
EXPORTED void fakeJoin() { profd::lib::mspti::Join(); }

EXPORTED int msptiSubscribe(Subscriber** subscriber, CallbackFunction, void*) {
  Note("S");
  if (TheLibrary().orders.throws_on_subscribe) throw std::runtime_error("no such function");
  *subscriber = reinterpret_cast<Subscriber*>(&TheLibrary());
  return TheLibrary().orders.subscribe_result;
}
EXPORTED int msptiActivityRegisterCallbacks(RequestFunction request, CompleteFunction complete) {
  Note("R");
  profd::lib::mspti::Library& library = TheLibrary();
  const MutexLock lock(library.mutex);
  library.request = request;
  library.complete = complete;
  return 0;
}
EXPORTED int msptiActivityEnable(uint32_t kind) {
  const char call[] = {'+', static_cast<char>('a' + kind), 0};
  Note(call);
  FakeMspti& orders = TheLibrary().orders;
  orders.enabled[kind] = orders.enable_result[kind] == 0;
  return orders.enable_result[kind];
}
EXPORTED int msptiActivityDisable(uint32_t kind) {
  const char call[] = {'-', static_cast<char>('a' + kind), 0};
  Note(call);
  TheLibrary().orders.enabled[kind] = false;
  return 0;
}
#ifdef PROFD_FAKE_IS_ENABLED
EXPORTED bool msptiActivityIsEnabled(uint32_t kind) { return TheLibrary().orders.enabled[kind]; }
#endif
// Full buffers, then the threads, then the current buffer under the mutex.
EXPORTED int msptiActivityFlushAll(uint32_t) {
  profd::lib::mspti::Library& library = TheLibrary();
  Note("");
  if (library.orders.made_by_flush) static const profd::lib::mspti::LateObject kLate;
  ++library.orders.flushes;
  if (library.orders.throws_on_flush) throw 17;
  profd::lib::mspti::Join();
  const MutexLock lock(library.mutex);
  if (library.current.memory != nullptr) HandOver(library.complete, std::exchange(library.current, {}));
  if (library.orders.frees_strings) {
    for (std::string& text : library.strings) text.assign(text.size(), '#');
  }
  return 0;
}
EXPORTED int msptiUnsubscribe(Subscriber* subscriber) {
  Note("U");
  profd::lib::mspti::Library& library = TheLibrary();
  if (subscriber != reinterpret_cast<Subscriber*>(&library)) return 1;
  if (library.orders.unsubscribe_result != 0) return library.orders.unsubscribe_result;
  const MutexLock lock(library.mutex);
  if (library.orders.completes_late && library.complete != nullptr) library.complete(nullptr, 0, 0);
  return 0;
}
