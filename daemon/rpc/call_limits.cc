#include "daemon/rpc/call_limits.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "daemon/archive/archive_rule.h"
#include "daemon/jobs/stacks_service.h"

namespace profd::rpc {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

constexpr auto kLimits = std::to_array<CallLimit>({
    {CallKind::kUnary, "unary", "calls", "every method that answers once", 16 * kKiB, 32 * kMiB, 96 * kMiB, 512,
     2048, "the request, and the answer until the client has taken it",
     "wait for the answers of earlier calls and read them", "limits: test_unread_answers_of_one_user"},
    {CallKind::kWatch, "watch", "watches", "`WatchSession`, `WatchAdvice`", 16 * kKiB, 16 * kMiB, 64 * kMiB, 256, 1024,
     "the state that is being sent", "end watches that are not needed; ListSessions shows all sessions at once",
     "limits: test_watches_of_one_user"},
    {CallKind::kStream, "stream", "live streams", "`StreamSamples`", 32 * kKiB, 16 * kMiB, 64 * kMiB, 64, 256,
     "samples that wait for the client, the series it knows, the message being sent",
     "end streams that are not needed, name collectors and devices, read faster",
     "limits: test_streams_of_one_user"},
    {CallKind::kFetch, "fetch", "fetches of dumps", "`FetchDump`", 192 * kKiB, 16 * kMiB, 64 * kMiB, 16, 64,
     "the names of the files of the dump, a chunk of 64 KiB on its way",
     "fetch one dump after the other", "limits: test_fetches_of_one_user"},
});

const CallLimit& LimitOf(CallKind kind) { return kLimits[static_cast<size_t>(kind)]; }

static_assert([] {
  for (size_t i = 0; i < kLimits.size(); ++i) {
    if (kLimits[i].kind != static_cast<CallKind>(i)) return false;
  }
  return true;
}(), "the table is in the order of the kinds");

// Viewers have no uid: their certificate is who they are.
using User = std::pair<uint32_t, std::string>;
User UserOf(const Peer& peer) {
  return {peer.uid, peer.uid == UINT32_MAX ? peer.certificate : std::string()};
}
std::string NameOf(const User& user) {
  return user.second.empty() ? fmt::format("uid {}", user.first)
                             : fmt::format("certificate {}", user.second);
}

std::string Size(uint64_t bytes) {
  return bytes >= kMiB ? fmt::format("{:.4g} MiB", static_cast<double>(bytes) / kMiB)
                       : fmt::format("{} KiB", (bytes + kKiB - 1) / kKiB);
}

struct CallSum {
  uint64_t calls = 0;
  uint64_t bytes = 0;
};

}  // namespace

std::span<const CallLimit> CallLimits() { return kLimits; }

struct CallLedger::State {
  struct KindUsage {
    CallSum node;
    std::map<User, CallSum> users;
    uint64_t refused_user = 0;
    uint64_t refused_node = 0;
  };
  mutable Mutex mutex;
  std::array<KindUsage, kLimits.size()> kinds GUARDED_BY(mutex);

  // Adds both to what is held, or returns why not.
  Status Add(CallKind kind, const User& user, bool admin, uint64_t calls, uint64_t bytes);
  void Drop(CallKind kind, const User& user, uint64_t calls, uint64_t bytes);
};

Status CallLedger::State::Add(CallKind which, const User& user, bool admin, uint64_t calls,
                              uint64_t bytes) {
  const CallLimit& limit = LimitOf(which);
  MutexLock lock(mutex);
  KindUsage& kind = kinds[static_cast<size_t>(which)];
  const auto found = kind.users.find(user);
  const CallSum own = found == kind.users.end() ? CallSum{} : found->second;
  auto refuse = [&](uint64_t* counter, std::string why) {
    ++*counter;
    return ResourceExhausted(fmt::format("{}; {}", why, limit.advice));
  };
  if (own.calls + calls > limit.calls_per_user) {
    return refuse(&kind.refused_user,
                  fmt::format("too many {}: {} has {} open, the limit for one user", limit.what,
                              NameOf(user), own.calls));
  }
  if (own.bytes + bytes > limit.bytes_per_user) {
    return refuse(&kind.refused_user,
                  fmt::format("no memory for more {}: those of {} hold {} and {} more is needed, the limit "
                              "for one user is {}",
                              limit.what, NameOf(user), Size(own.bytes), Size(bytes),
                              Size(limit.bytes_per_user)));
  }
  if (!admin && kind.node.calls + calls > limit.calls_per_node) {
    return refuse(&kind.refused_node,
                  fmt::format("too many {}: {} are open on this node, the limit for all users together, "
                              "{} of them by {}; try again later",
                              limit.what, kind.node.calls, own.calls, NameOf(user)));
  }
  if (!admin && kind.node.bytes + bytes > limit.bytes_per_node) {
    return refuse(&kind.refused_node,
                  fmt::format("no memory for more {}: those of all users hold {} of the {} they may "
                              "together, {} of it by {}; try again later",
                              limit.what, Size(kind.node.bytes), Size(limit.bytes_per_node),
                              Size(own.bytes), NameOf(user)));
  }
  CallSum& held = kind.users[user];
  for (CallSum* sum : {&held, &kind.node}) {
    sum->calls += calls;
    sum->bytes += bytes;
  }
  return Status::Ok();
}

void CallLedger::State::Drop(CallKind which, const User& user, uint64_t calls, uint64_t bytes) {
  MutexLock lock(mutex);
  KindUsage& kind = kinds[static_cast<size_t>(which)];
  auto found = kind.users.find(user);
  for (CallSum* sum : {&found->second, &kind.node}) {
    sum->calls -= calls;
    sum->bytes -= bytes;
  }
  if (found->second.calls == 0) kind.users.erase(found);
}

struct CallHold::Account {
  Account(std::shared_ptr<CallLedger::State> of, CallKind of_kind, const User& of_user, bool is_admin, uint64_t held)
      : state(std::move(of)), kind(of_kind), user(of_user), admin(is_admin), bytes(held) {}
  std::shared_ptr<CallLedger::State> state;
  CallKind kind;
  User user;
  bool admin;
  Mutex mutex;
  uint64_t bytes GUARDED_BY(mutex);
};

CallHold::CallHold(std::unique_ptr<Account> account) : account_(std::move(account)) {}

CallHold::~CallHold() { account_->state->Drop(account_->kind, account_->user, 1, account_->bytes); }

Status CallHold::Grow(uint64_t bytes) {
  RETURN_IF_ERROR(account_->state->Add(account_->kind, account_->user, account_->admin, 0, bytes));
  MutexLock lock(account_->mutex);
  account_->bytes += bytes;
  return Status::Ok();
}

void CallHold::Shrink(uint64_t bytes) {
  {
    MutexLock lock(account_->mutex);
    account_->bytes -= bytes;
  }
  account_->state->Drop(account_->kind, account_->user, 0, bytes);
}

CallLedger::CallLedger() : state_(std::make_shared<State>()) {}
CallLedger::~CallLedger() = default;

Result<std::shared_ptr<CallHold>> CallLedger::Take(CallKind kind, const Peer& peer,
                                                   uint64_t bytes) {
  const User user = UserOf(peer);
  bytes += LimitOf(kind).base_bytes;
  RETURN_IF_ERROR(state_->Add(kind, user, peer.admin, 1, bytes));
  return std::shared_ptr<CallHold>(new CallHold(std::make_unique<CallHold::Account>(state_, kind, user, peer.admin, bytes)));
}

CallLedger::Usage CallLedger::usage(CallKind which) const {
  MutexLock lock(state_->mutex);
  const State::KindUsage& kind = state_->kinds[static_cast<size_t>(which)];
  return {kind.node.calls, kind.node.bytes, kind.refused_user, kind.refused_node};
}

std::string LimitsDocument() {
  std::string text =
      "\n## Limits of calls\n\n"
      "Limits of the memory that client calls hold in the daemon, per user and for all users of the node "
      "together. A call beyond a limit ends with `RESOURCE_EXHAUSTED` and a message with the limit, the user "
      "and what to do. Each limit holds for the unix socket and the TLS port together. A user is a uid, for "
      "viewers a certificate. Administrators have the limits of one user, and are not refused because of "
      "calls of others. `profd_rpc_held_calls`, `profd_rpc_held_bytes` and `profd_rpc_refused_total` on "
      "/metrics count what is held and what was refused.\n\n"
      "| calls | per user | memory per user | per node | memory per node | one call at least | counted beside "
      "that | test |\n|---|---|---|---|---|---|---|---|\n";
  for (const CallLimit& limit : kLimits) {
    text += fmt::format("| {} ({}) | {} | {} | {} | {} | {} | {} | `{}` |\n", limit.what, limit.methods,
                        limit.calls_per_user, Size(limit.bytes_per_user), limit.calls_per_node,
                        Size(limit.bytes_per_node), Size(limit.base_bytes), limit.held, limit.test);
  }
  text += "\nLimits of every call:\n\n| what | limit | beyond it | test |\n|---|---|---|---|\n";
  auto row = [&text](std::string_view what, std::string limit, std::string_view beyond,
                     std::string_view test) {
    text += fmt::format("| {} | {} | {} | `{}` |\n", what, limit, beyond, test);
  };
  row("a request", Size(kMaxReceiveBytes), "`RESOURCE_EXHAUSTED`", "limits: test_request_that_is_too_long");
  row("calls open on one connection of the unix socket", fmt::format("{}", kMaxStreamsPerConnection),
      "the client waits", "limits: test_calls_of_one_connection");
  row("the same over TLS", fmt::format("{}", kMaxTlsStreamsPerConnection), "the client waits",
      "tls: test_calls_of_one_connection");
  row("samples waiting for the client of one live stream", fmt::format("{}", kStreamRing),
      "the newest are dropped and counted in `dropped`", "metrics_test");
  row("files and directories of one fetched dump", fmt::format("{}", kMaxFetchEntries),
      "`RESOURCE_EXHAUSTED`", "limits: test_dump_with_too_many_files");
  row("bytes of their names", Size(kMaxFetchNameBytes), "`RESOURCE_EXHAUSTED`", "dump_test");
  row("processes in one answer of `GetStacks`", fmt::format("{}", StacksService::kMaxProcesses), "counted in the answer", "stacks_service_test");
  row("`GetStacks` at a time", fmt::format("{}, {} of one user", StacksService::kMaxLooks, StacksService::kMaxLooksOfUser),
      "`RESOURCE_EXHAUSTED`", "stacks_service_test");
  row("ids in one `ArchiveDumps`", fmt::format("{}", kMaxArchiveIds), "`INVALID_ARGUMENT`", "archive_test");
  row("dumps of one user that wait for the database by request", "half of `archive.max_waiting` and of `archive.max_waiting_mb`",
      "`RESOURCE_EXHAUSTED`", "archive_test");
  text +=
      "\nCalls of gRPC's own services, reflection and health, are bounded by the connections and the calls open "
      "on each: at about 14 KiB a call, 112 MiB for a user with all of the 128 connections that "
      "`daemon.max_connections` allows one user by default.\n"
      "\nConnections, sessions, attached processes and space for dumps have limits in "
      "the table above: `daemon.max_connections` (half of them for one user), "
      "`daemon.max_attached` and `limits.*`. Access rights: [security-model.md](security-model.md).\n";
  return text;
}

}  // namespace profd::rpc
