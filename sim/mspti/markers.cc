#include "sim/mspti/markers.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "sim/mspti/buffers.h"
#include "sim/mspti/config.h"
#include "sim/mspti/join.h"
#include "sim/mspti/real_time.h"
#include "sim/mspti/vendor.h"

namespace profd::sim::mspti {
namespace {

// Without a device, and with one.
enum Flag : uint32_t { kInstant = 1, kStart = 2, kEnd = 4 };
constexpr uint32_t kWithDevice = 8;  // times the flag
constexpr char kDefaultDomain[] = "default";
constexpr uint32_t kMarkTag = 11;

uint32_t Flagged(Flag flag, void* stream) {
  return stream == nullptr ? flag : static_cast<uint32_t>(flag) * kWithDevice;
}

const std::string& NameOfDomain(void* domain) { return *static_cast<std::string*>(domain); }

void MarkFunction(const char* message, void* stream) {
  Markers::The().Mark(kDefaultDomain, message, stream);
}
uint64_t StartFunction(const char* message, void* stream) {
  return Markers::The().Start(kDefaultDomain, message, stream);
}
void EndFunction(uint64_t id) { Markers::The().End(id); }
// Domains live as long as the library.
void* CreateFunction(const char* name) { return new std::string(name); }
void DestroyFunction(void*) {}
void DomainMarkFunction(void* domain, const char* message, void* stream) {
  Markers::The().Mark(NameOfDomain(domain), message, stream);
}
uint64_t DomainStartFunction(void* domain, const char* message, void* stream) {
  return Markers::The().Start(NameOfDomain(domain), message, stream);
}
void DomainEndFunction(void*, uint64_t id) { Markers::The().End(id); }

template <class Fn>
prof::MstxFunction Erased(Fn* function) {
  return reinterpret_cast<prof::MstxFunction>(function);
}

// The log has one word for both.
uint64_t Value(uint64_t id, uint32_t flag) { return id << 8 | flag; }

void PutMarker(MarkerRecord record, std::string_view name, std::string_view domain) {
  if (!Join::The().enabled(kMarker)) return;
  record.kind = kMarker;
  Buffers::The().Put(record, {{offsetof(MarkerRecord, name), name}, {offsetof(MarkerRecord, domain), domain}});
}

}  // namespace

Markers& Markers::The() {
  static Markers* const the = new Markers;
  return *the;
}

int Markers::Init(prof::MstxGetTable get_table) {
  prof::MstxFunction** table = nullptr;
  unsigned size = 0;
  if (get_table(prof::kMstxCore, &table, &size) != 0) return -1;
  *table[1] = Erased(&MarkFunction);
  *table[2] = Erased(&StartFunction);
  *table[3] = Erased(&EndFunction);
  if (get_table(prof::kMstxDomain, &table, &size) != 0) return -1;
  *table[1] = Erased(&CreateFunction);
  *table[2] = Erased(&DestroyFunction);
  *table[3] = Erased(&DomainMarkFunction);
  *table[4] = Erased(&DomainStartFunction);
  *table[5] = Erased(&DomainEndFunction);  // whatever size says: libprofapi's is one too small
  return 0;
}

bool Markers::Takes(const std::string& domain, const char* message) {
  if (message == nullptr || std::strlen(message) > kLongestMessage) return false;
  MutexLock lock(mutex_);
  return off_.count(domain) == 0;
}

void Markers::PutHost(uint32_t flag, uint64_t id, std::string_view name, std::string_view domain) {
  MarkerRecord record{};
  record.flag = flag;
  record.source = 0;
  record.time = RealTime::The().Now();
  record.id = id;
  record.object[0] = static_cast<uint32_t>(::getpid());
  record.object[1] = static_cast<uint32_t>(::syscall(SYS_gettid));
  PutMarker(record, name, domain);
}

void Markers::Mark(const std::string& domain, const char* message, void* stream) {
  if (!Takes(domain, message)) return;
  const uint64_t id = next_id_++;
  const uint32_t flag = Flagged(kInstant, stream);
  PutHost(flag, id, message, domain);
  if (stream != nullptr) ASCENDCL(simAclTrace)(Value(id, flag), kMarkTag, stream);
}

uint64_t Markers::Start(const std::string& domain, const char* message, void* stream) {
  if (!Takes(domain, message)) return 0;
  const uint64_t id = next_id_++;
  {
    MutexLock lock(mutex_);
    ranges_[id] = {domain, stream};
  }
  const uint32_t flag = Flagged(kStart, stream);
  PutHost(flag, id, message, domain);
  if (stream != nullptr) ASCENDCL(simAclTrace)(Value(id, flag), kMarkTag, stream);
  return id;
}

void Markers::End(uint64_t id) {
  Range range;
  {
    MutexLock lock(mutex_);
    const auto it = ranges_.find(id);
    if (it == ranges_.end()) return;
    range = it->second;
    ranges_.erase(it);
  }
  const uint32_t flag = Flagged(kEnd, range.stream);
  PutHost(flag, id, "", "");
  if (range.stream != nullptr) ASCENDCL(simAclTrace)(Value(id, flag), kMarkTag, range.stream);
}

int Markers::SetDomain(const char* name, bool on) {
  if (name == nullptr) return kInvalidParameter;
  MutexLock lock(mutex_);
  if (on) {
    off_.erase(name);
  } else {
    off_.insert(name);
  }
  return kOk;
}

void Markers::OnLog(uint32_t device, const acl::LogRecord& record) {
  if (record.tag != kMarkTag || !Config::The().device_marks) return;
  const int64_t delay = Config::The().device_mark_delay_ms;
  if (delay == 0) {
    PutDevice(device, record);
    return;
  }
  MutexLock lock(mutex_);
  held_.push_back({SystemClock().MonotonicRawNs() + delay * kNsPerMs, device, record});
}

void Markers::PutDue() {
  const int64_t now = SystemClock().MonotonicRawNs();
  std::vector<DueRecord> due;
  {
    MutexLock lock(mutex_);
    while (!held_.empty() && held_.front().due_ns <= now) {
      due.push_back(held_.front());
      held_.pop_front();
    }
  }
  for (const DueRecord& held : due) PutDevice(held.device, held.record);
}

void Markers::PutDevice(uint32_t device, const acl::LogRecord& log) {
  MarkerRecord record{};
  record.flag = static_cast<uint32_t>(log.value & 0xff);
  record.source = 1;
  record.time = RealTime::The().FromRaw(log.time_ns);
  record.id = log.value >> 8;
  record.object[0] = device;
  record.object[1] = log.stream;
  PutMarker(record, "", "");
}

}  // namespace profd::sim::mspti
