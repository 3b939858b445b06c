#include "daemon/attribution/user_names.h"

#include <pwd.h>

#include <cerrno>
#include <utility>
#include <vector>

namespace profd {
namespace {

constexpr int64_t kDeadlineNs = 2 * kNsPerSecond;
constexpr int64_t kKnownNs = 3600 * kNsPerSecond;
constexpr int64_t kUnknownNs = 60 * kNsPerSecond;
constexpr size_t kMaxEntry = 1 << 20;

}  // namespace

UserNames::UserNames(Strand& control, const Clock& clock, Lookup lookup)
    : control_(control),
      clock_(clock),
      lookup_(std::move(lookup)),
      self_(std::make_shared<UserNames*>(this)),
      thread_("profd-users", clock, {1024, kDeadlineNs}) {}

UserNames::~UserNames() = default;

std::optional<std::string> UserNames::Of(uint32_t uid) {
  DCHECK_ON(control_);
  Entry& entry = entries_[uid];
  entry.used = true;
  if (!entry.asked && clock_.SteadyNs() >= entry.ask_again_ns) Ask(uid, &entry);
  return entry.name;
}

void UserNames::Ask(uint32_t uid, Entry* entry) {
  entry->asked = true;
  auto answered = [&control = control_, self = std::weak_ptr(self_), uid](const Result<std::string>& answer) {
    control.Post([self, uid, answer] {
      if (auto names = self.lock()) (*names)->OnAnswer(uid, answer);
    });
  };
  GuardedJob job = AskingJob<std::string>("a look at the user database", [lookup = lookup_, uid] { return lookup(uid); }, answered);
  job.deadline_steady_ns = clock_.SteadyNs() + kDeadlineNs;
  thread_.Submit(std::move(job)).Ignore();  // `done` gets the error
}

void UserNames::OnAnswer(uint32_t uid, const Result<std::string>& name) {
  DCHECK_ON(control_);
  auto found = entries_.find(uid);
  up_ = name.ok();
  if (!name.ok()) ++errors_;
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.asked = false;
  bool known = name.ok() && !name->empty();
  entry.ask_again_ns = clock_.SteadyNs() + (known ? kKnownNs : kUnknownNs);
  if (known) {
    entry.name = *name;
  } else if (name.ok() || !entry.name) {
    entry.name = std::to_string(uid);
  }
}

void UserNames::Tick() {
  DCHECK_ON(control_);
  thread_.CheckDeadlines(clock_.SteadyNs());
  std::erase_if(entries_, [](const auto& entry) { return !entry.second.used && !entry.second.asked; });
  for (auto& [uid, entry] : entries_) entry.used = false;
}

Result<std::string> UserNames::FromSystem(uint32_t uid) {
  std::vector<char> buffer(4096);
  passwd entry{};
  passwd* found = nullptr;
  int error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  while (error == ERANGE && buffer.size() < kMaxEntry) {
    buffer.resize(buffer.size() * 2);
    error = ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  }
  // "Not found" is returned as any of these, by the database.
  if (error == ENOENT || error == ESRCH || error == EBADF || error == EPERM) return std::string();
  if (error != 0) return Status::FromErrno(error, "the user database");
  return found == nullptr ? std::string() : std::string(found->pw_name);
}

}  // namespace profd
