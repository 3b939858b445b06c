#include "daemon/web/credentials.h"

#include <crypt.h>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace profd {
namespace {

// "$2y$10$", 22 characters of salt, 31 of digest.
constexpr size_t kPrefixSize = 7;
constexpr size_t kHashSize = 60;
constexpr int kMinBcryptCost = 4;
constexpr size_t kSaltBytes = 32;

bool IsBcryptLetter(char c) {
  return IsLetterOrDigit(c) || c == '.' || c == '/';
}

// Padded or not.
std::optional<std::string> DecodeBase64(std::string_view text) {
  text = text.substr(0, text.find_last_not_of('=') + 1);
  if (text.size() % 4 == 1 || text.find('=') != std::string_view::npos) return std::nullopt;
  std::string padded(text);
  padded.resize((text.size() + 3) / 4 * 4, 'A');  // no bits
  std::string out(padded.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(padded.data()),
                                   static_cast<int>(padded.size()));
  // It passes over blanks and '-' at the end.
  if (size != static_cast<int>(out.size())) return std::nullopt;
  out.resize(text.size() * 3 / 4);
  return out;
}

bool StartsWithBasic(std::string_view header) {
  constexpr std::string_view kBasic = "basic ";
  return header.size() > kBasic.size() && SameIgnoringCase(header.substr(0, kBasic.size()), kBasic);
}

// Of everything that decides: a changed hash makes what was remembered worthless.
std::string DigestOf(const std::string& salt, const BasicLogin& login, const std::string& hash) {
  std::string text = fmt::format("{}{}:{}:{}{}{}", salt, login.user.size(), login.password.size(),
                                 login.user, hash, login.password);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  bool made = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1;
  OPENSSL_cleanse(text.data(), text.size());
  if (!made) return {};
  return {reinterpret_cast<const char*>(digest.data()), size};
}

// What an unknown user is compared with: a password that never matches, as expensive as the dearest there is.
std::string HashOfUnknownUser(const WebUsers& users) {
  int cost = kMinBcryptCost;
  for (const auto& [name, hash] : users) cost = std::max(cost, BcryptCost(hash).value_or(cost));
  return fmt::format("$2b${:02d}${}", cost, std::string(kHashSize - kPrefixSize, '.'));
}

}  // namespace

std::optional<int> BcryptCost(std::string_view hash) {
  if (hash.size() != kHashSize || !hash.starts_with("$2") || hash[3] != '$' || hash[6] != '$') {
    return std::nullopt;
  }
  if (hash[2] != 'a' && hash[2] != 'b' && hash[2] != 'y') return std::nullopt;
  int cost = 0;
  if (!ParseNumber(hash.substr(4, 2), &cost) || cost < kMinBcryptCost || cost > 31) {
    return std::nullopt;
  }
  std::string_view rest = hash.substr(kPrefixSize);
  if (!std::ranges::all_of(rest, IsBcryptLetter)) return std::nullopt;
  return cost;
}

bool MatchesBcrypt(const std::string& password, const std::string& hash) {
  auto data = std::make_unique<crypt_data>();
  const char* made = ::crypt_r(password.c_str(), hash.c_str(), data.get());
  bool same = made != nullptr && std::string_view(made).size() == hash.size() &&
              CRYPTO_memcmp(made, hash.data(), hash.size()) == 0;
  OPENSSL_cleanse(data.get(), sizeof *data);
  // crypt sees a password's text up to the first NUL only.
  return same && password.find('\0') == std::string::npos;
}

std::optional<BasicLogin> ParseBasicLogin(std::string_view header) {
  if (!StartsWithBasic(header)) return std::nullopt;
  std::optional<std::string> text = DecodeBase64(Trim(header.substr(6)));
  if (!text) return std::nullopt;
  size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return BasicLogin{text->substr(0, colon), text->substr(colon + 1)};
}

PasswordChecker::PasswordChecker(Post post) : post_(std::move(post)), salt_(kSaltBytes, '\0') {
  // Without randomness nothing is remembered, and every request costs a bcrypt.
  if (RAND_bytes(reinterpret_cast<unsigned char*>(salt_.data()), kSaltBytes) != 1) salt_.clear();
}

PasswordChecker::~PasswordChecker() = default;

void PasswordChecker::Stop() {
  strand_.reset();
  executor_.reset();
}

PasswordChecker::Answer PasswordChecker::Check(const WebUsers& users, const BasicLogin& login,
                                               const std::string& address, Done done) {
  auto user = users.find(login.user);
  bool known = user != users.end();
  std::string hash = known ? user->second : HashOfUnknownUser(users);
  std::string digest = DigestOf(salt_, login, hash);
  if (known && !salt_.empty() && remembered_.contains(digest)) return Answer::kRight;
  size_t& of_address = pending_of_[address];
  if (pending_ >= kMaxPending || of_address >= kMaxPendingPerAddress) {
    if (of_address == 0) pending_of_.erase(address);
    return Answer::kBusy;
  }
  ++pending_;
  ++of_address;
  if (executor_ == nullptr) {
    executor_ = std::make_unique<Executor>("profd-web-auth", 1);
    strand_ = std::make_unique<Strand>(*executor_);
  }
  strand_->Post([this, known, hash, digest, address, password = login.password,
                 done = std::move(done)]() mutable {
    bool right = MatchesBcrypt(password, hash) && known;
    OPENSSL_cleanse(password.data(), password.size());
    post_([this, right, digest, address, done = std::move(done)] {
      Finish(digest, address, right);
      done(right);
    });
  });
  return Answer::kPending;
}

void PasswordChecker::Finish(const std::string& digest, const std::string& address, bool right) {
  --pending_;
  auto of_address = pending_of_.find(address);
  if (of_address != pending_of_.end() && --of_address->second == 0) pending_of_.erase(of_address);
  if (!right || digest.empty() || salt_.empty()) return;
  // There are only as many right answers as users; more come with many changes of the file.
  if (remembered_.size() >= kMaxRemembered) remembered_.clear();
  remembered_.insert(digest);
}

}  // namespace profd
