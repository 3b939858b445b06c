// How many connections there may be at once: in total, and from one address, so that one client that
// opens and never closes does not shut the others out. Some of those beyond still get the reason; the rest
// is closed without a word. Lives on the serving thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace profd {

enum class Admission : uint8_t {
  kServe,
  kRefuseTotal,    // answer 503 and close
  kRefuseAddress,  // answer 429 and close
  kDropTotal,
  kDropAddress,
};

class ConnectionLimits {
 public:
  static constexpr size_t kMaxRefusals = 16;

  ConnectionLimits(size_t total, size_t per_address) : total_(total), per_address_(per_address) {}

  // A new connection; Leave with the same answer when it has gone.
  Admission Enter(const std::string& address);
  void Leave(const std::string& address, Admission admission);
  // Those that are served.
  size_t open() const { return open_; }

 private:
  size_t total_;
  size_t per_address_;
  size_t open_ = 0;
  size_t refusals_ = 0;
  std::map<std::string, size_t> of_address_;
};

}  // namespace profd
