// Looks processes up in /proc on a thread of its own: reading an environment waits for the process's
// memory map, which a process that hangs in its driver may hold for as long as it hangs. The caller
// gets an answer in time in any case.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/strand.h"
#include "daemon/jobs/job_directory.h"
#include "daemon/jobs/process_facts.h"
#include "daemon/jobs/thread_facts.h"
#include "driver/guarded_thread.h"

namespace profd {

class RootedFs;

// A process as the driver lists it, and the logical ids of the devices it uses.
struct DeviceUse {
  pid_t pid = 0;
  std::vector<int> devices;
};

// Where the threads of a process stand. Implemented by ProcessProbe.
class ThreadProbe {
 public:
  // Of the one that started at `start_ticks`; `done` as with ProcessProbe::Lookup.
  virtual void LookupThreads(pid_t pid, uint64_t start_ticks, std::function<void(Result<ProcessThreads>)> done) = 0;

 protected:
  ~ThreadProbe() = default;
};

class ProcessProbe final : public ThreadProbe {
 public:
  // `proc` outlives the thread: see stuck().
  ProcessProbe(Strand& control, const RootedFs& proc, const Clock& clock);
  ~ProcessProbe();

  // `done` on the control strand, exactly once as long as that runs. kNotFound: no such process;
  // anything else: it could not be read in time.
  void Lookup(pid_t pid, std::function<void(Result<ProcessFacts>)> done);
  // What the uses come to: processes of this machine, those that could not be read left out. An error
  // means that nothing is known now.
  void LookupUsers(std::vector<DeviceUse> uses,
                   std::function<void(Result<std::vector<TrainingProcess>>)> done);
  void LookupThreads(pid_t pid, uint64_t start_ticks, std::function<void(Result<ProcessThreads>)> done) override;
  // Thread-safe: closes a descriptor that may be anything.
  void Dispose(UniqueFd descriptor);

  void CheckDeadlines(int64_t now_steady_ns) { thread_.CheckDeadlines(now_steady_ns); }
  // The thread sits in the kernel and will be left behind.
  bool stuck() const { return thread_.stuck(); }

 private:
  // Facts of processes that were listed before; on the thread only.
  using FactsByPid = std::map<pid_t, ProcessFacts>;

  // Runs `look` on the thread, within the deadline, and `done` with what it found.
  template <class Found>
  void Submit(const char* what, std::function<Result<Found>()> look, std::function<void(Result<Found>)> done);

  Strand& control_;
  const RootedFs& proc_;
  const Clock& clock_;
  std::shared_ptr<FactsByPid> known_ = std::make_shared<FactsByPid>();
  GuardedThread thread_;
};

// The facts as a process of the directory; devices and how it was found are the caller's.
TrainingProcess FromFacts(pid_t pid, const ProcessFacts& facts);

}  // namespace profd
