// Names and passwords of HTTP's basic authentication against bcrypt hashes. A hash takes tens of
// milliseconds on purpose, so it is never computed on the thread that serves: attempts wait in a
// bounded queue for a thread of their own, one at a time, and what was right once is remembered by a
// salted digest. A wrong password, or an unknown user, costs its sender the full time again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "base/strand.h"
#include "daemon/web/web_config.h"

namespace profd {

constexpr int kMaxBcryptCost = 14;  // about a second

// The cost of "$2y$10$...", where it is a complete bcrypt hash.
std::optional<int> BcryptCost(std::string_view hash);

// One bcrypt.
bool MatchesBcrypt(const std::string& password, const std::string& hash);

struct BasicLogin {
  std::string user;
  std::string password;
};
// The value of an Authorization header.
std::optional<BasicLogin> ParseBasicLogin(std::string_view header);

// Lives on the serving thread, its two edges excepted.
class PasswordChecker {
 public:
  // Runs a task on the serving thread, called from the checker's own.
  using Post = std::function<void(std::function<void()>)>;
  using Done = std::function<void(bool right)>;
  enum class Answer : uint8_t {
    kRight,    // remembered
    kPending,  // `done` will be called on the serving thread
    kBusy,     // too many wait already
  };
  static constexpr size_t kMaxPending = 32;
  static constexpr size_t kMaxPendingPerAddress = 4;
  static constexpr size_t kMaxRemembered = 256;

  explicit PasswordChecker(Post post);
  ~PasswordChecker();

  // Waits for the attempt that is being checked and forgets the others. After the serving thread has
  // ended, before what `post` refers to goes.
  void Stop();

  Answer Check(const WebUsers& users, const BasicLogin& login, const std::string& address,
               Done done);
  size_t pending() const { return pending_; }

 private:
  void Finish(const std::string& digest, const std::string& address, bool right);

  Post post_;
  std::string salt_;
  std::unordered_set<std::string> remembered_;
  size_t pending_ = 0;
  std::map<std::string, size_t> pending_of_;
  // Last: gone before what its tasks refer to. Made with the first attempt.
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Strand> strand_;
};

}  // namespace profd
