#include "daemon/web/credentials.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>

namespace profd {
namespace {

// Stands for the serving thread: tasks run where and when the test says.
class Tasks {
 public:
  PasswordChecker::Post Poster() {
    return [this](std::function<void()> task) {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
      changed_.notify_one();
    };
  }
  void RunOne() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !tasks_.empty(); });
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
};

// "secret", made with crypt(3) as htpasswd does.
constexpr const char* kSecret = "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
using Answer = PasswordChecker::Answer;

const WebUsers kUsers = {{"ann", kSecret}};

TEST(Bcrypt, KnowsItsHashes) {
  EXPECT_EQ(BcryptCost(kSecret), 4);
  std::string hash = kSecret;
  for (size_t i : {0U, 1U, 3U, 6U}) {
    std::string broken = hash;
    broken[i] = 'x';
    EXPECT_FALSE(BcryptCost(broken)) << broken;
  }
  EXPECT_FALSE(BcryptCost(hash + "a"));
  EXPECT_FALSE(BcryptCost(hash.substr(1)));
  EXPECT_FALSE(BcryptCost("$2x$" + hash.substr(4)));
  hash.replace(4, 2, "03");
  EXPECT_FALSE(BcryptCost(hash));
  EXPECT_FALSE(BcryptCost("$6$salt$abc"));
}

TEST(Bcrypt, Matches) {
  EXPECT_TRUE(MatchesBcrypt("secret", kSecret));
  EXPECT_FALSE(MatchesBcrypt("Secret", kSecret));
  EXPECT_FALSE(MatchesBcrypt("", kSecret));
  EXPECT_FALSE(MatchesBcrypt(std::string("secret\0x", 8), kSecret));
  EXPECT_FALSE(MatchesBcrypt("secret", "*0"));
}

TEST(BasicLogin, Parsed) {
  std::optional<BasicLogin> login = ParseBasicLogin("Basic YW5uOnNlOmNyZXQ=");
  ASSERT_TRUE(login);
  EXPECT_EQ(login->user, "ann");
  EXPECT_EQ(login->password, "se:cret");
  EXPECT_TRUE(ParseBasicLogin("bAsIc YTpi"));
  for (const char* bad : {"", "Basic", "Basic ", "Basic YQ==", "Basic !!!!", "Basic Y", "Bearer YTpi",
                          "BasicYTpi"}) {
    EXPECT_FALSE(ParseBasicLogin(bad)) << bad;
  }
}

class Passwords : public ::testing::Test {
 protected:
  // What it says in the end.
  bool Login(const WebUsers& users, const std::string& user, const std::string& password) {
    bool right = false;
    Answer answer = checker_.Check(users, {user, password}, "10.0.0.1",
                                   [&right](bool r) { right = r; });
    if (answer == Answer::kPending) tasks_.RunOne();
    return answer == Answer::kRight || right;
  }
  Answer Ask(const std::string& user, const std::string& password,
             const std::string& address = "10.0.0.1") {
    return checker_.Check(kUsers, {user, password}, address, [](bool) {});
  }

  Tasks tasks_;
  PasswordChecker checker_{tasks_.Poster()};
};

TEST_F(Passwords, RightOnceIsRemembered) {
  EXPECT_TRUE(Login(kUsers, "ann", "secret"));
  EXPECT_EQ(Ask("ann", "secret"), Answer::kRight);
  EXPECT_EQ(checker_.pending(), 0U);
}

TEST_F(Passwords, WrongCostsABcryptEachTime) {
  EXPECT_FALSE(Login(kUsers, "ann", "wrong"));
  EXPECT_FALSE(Login(kUsers, "nobody", "secret"));
  EXPECT_EQ(Ask("ann", "wrong"), Answer::kPending);
  EXPECT_EQ(Ask("nobody", "secret"), Answer::kPending);
  tasks_.RunOne();
  tasks_.RunOne();
  EXPECT_EQ(checker_.pending(), 0U);
}

TEST_F(Passwords, ChangedHashIsCheckedAnew) {
  EXPECT_TRUE(Login(kUsers, "ann", "secret"));
  std::string other = kSecret;
  other.back() = other.back() == 'a' ? 'b' : 'a';
  EXPECT_FALSE(Login({{"ann", other}}, "ann", "secret"));
  EXPECT_FALSE(Login({{"bob", kSecret}}, "ann", "secret"));
  EXPECT_EQ(Ask("ann", "secret"), Answer::kRight);
}

TEST_F(Passwords, QueueIsBoundedAndFair) {
  for (size_t i = 0; i < PasswordChecker::kMaxPendingPerAddress; ++i) {
    EXPECT_EQ(Ask("ann", std::to_string(i)), Answer::kPending);
  }
  EXPECT_EQ(Ask("ann", "secret"), Answer::kBusy);
  EXPECT_EQ(Ask("ann", "secret", "10.0.0.2"), Answer::kPending);
  size_t waiting = PasswordChecker::kMaxPendingPerAddress + 1;
  for (int i = 0; waiting < PasswordChecker::kMaxPending; ++i, ++waiting) {
    EXPECT_EQ(Ask("ann", "x", "10.0.1." + std::to_string(i)), Answer::kPending);
  }
  EXPECT_EQ(Ask("ann", "x", "10.0.2.1"), Answer::kBusy);
  for (size_t i = 0; i < waiting; ++i) tasks_.RunOne();
  EXPECT_EQ(checker_.pending(), 0U);
  EXPECT_EQ(Ask("ann", "secret"), Answer::kRight);
}

TEST_F(Passwords, StopForgetsWhatWaits) {
  Ask("ann", "a");
  Ask("ann", "b");
  checker_.Stop();
}

}  // namespace
}  // namespace profd
