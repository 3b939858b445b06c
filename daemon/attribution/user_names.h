// Users by their number, with a memory. The system's user database may sit behind a network that does
// not answer: it is asked on a thread of its own, and callers never wait. Control strand.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/strand.h"
#include "driver/guarded_thread.h"

namespace profd {

class UserNames {
 public:
  // Empty: no such user.
  using Lookup = std::function<Result<std::string>(uint32_t uid)>;
  UserNames(Strand& control, const Clock& clock, Lookup lookup);
  ~UserNames();

  // Nothing while it is being looked up for the first time; the number where there is no name.
  std::optional<std::string> Of(uint32_t uid);
  // About once a second: late lookups are answered, users not asked for since the last time forgotten.
  void Tick();
  // Lookups that were late or failed.
  uint64_t errors() const { return errors_; }
  bool up() const { return up_; }

  // The system's database. Waits.
  static Result<std::string> FromSystem(uint32_t uid);

 private:
  struct Entry {
    std::optional<std::string> name;
    bool asked = false;
    bool used = true;
    int64_t ask_again_ns = 0;
  };
  void Ask(uint32_t uid, Entry* entry);
  void OnAnswer(uint32_t uid, const Result<std::string>& name);

  Strand& control_;
  const Clock& clock_;
  const Lookup lookup_;
  std::map<uint32_t, Entry> entries_;
  uint64_t errors_ = 0;
  bool up_ = true;
  std::shared_ptr<UserNames*> self_;  // what a late answer finds, or not
  GuardedThread thread_;
};

}  // namespace profd
