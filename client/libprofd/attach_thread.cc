// The thread of Library: connects, sends Hello, hands packets over and takes them in, and begins
// anew when the daemon has gone.
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "client/libprofd/detached_thread.h"
#include "client/libprofd/dump_fetcher.h"
#include "client/libprofd/library.h"
#include "client/libprofd/profd_settings.h"

namespace profd::lib {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kFirstBackoff{100};
constexpr milliseconds kLastBackoff{5000};
// A connection that lasted so long was a good one: the next begins with the first backoff.
constexpr seconds kGoodConnection{5};
constexpr seconds kWelcomeWithin{30};
// A process that ends waits for its daemon no longer than this.
constexpr milliseconds kByeWithin{100};
// A daemon of a later version may send what we do not know; one that sends this much of it is none.
constexpr int kMaxWrongPackets = 16;
constexpr int kMaxPacketsAtOnce = 64;
constexpr size_t kMaxOpened = 16;
// A process that leaves has its last records flushed no longer than this, its files written and copied.
constexpr uint32_t kCollectorEndMs = 1000;
constexpr uint32_t kFilesWithinMs = 30'000;
constexpr seconds kCopyWithin{15};

int MsUntil(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
}

bool IsFinal(const std::string& state) {
  return state == "done" || state == "failed" || state == "interrupted" || state == "ended";
}

}  // namespace

Status Library::Start(Settings settings) {
  RETURN_IF_ERROR(descriptors_.Open());
  if (thread_runs_ && !descriptors_.WaitDone(0)) {
    return FailedPrecondition("the library is still shutting down");
  }
  Descriptors::Hush(descriptors_.done());
  Descriptors::Hush(descriptors_.wake());
  stopping_ = false;
  {
    const MutexLock lock(mutex_);
    settings_ = std::move(settings);
    phase_ = Phase::kTrying;
    why_not_attached_ = "not connected to " + settings_.socket + " yet";
    outbox_.clear();
    metadata_.clear();
    untold_metadata_.clear();
    opened_.clear();
    last_session_.reset();
    own_options_wanted_ = !settings_.hello.options_json.empty();
    own_options_sent_ = false;
    own_session_.clear();
    own_refusal_.clear();
    answers_stacks_ = false;
    stacks_news_ = true;  // a thread that waits since before asks again
    changed_.NotifyAll();
    backoff_ = milliseconds(0);
    random_.seed(static_cast<unsigned>(::getpid()) ^
                 static_cast<unsigned>(Clock::now().time_since_epoch().count()));
  }
  const int error = StartDetached(&Library::ThreadMain, this);
  thread_runs_ = error == 0;
  return thread_runs_ ? Status::Ok() : Status::FromErrno(error, "thread of libprofd");
}

void Library::Stop(int wait_ms) {
  stopping_ = true;
  descriptors_.Wake();
  if (descriptors_.WaitDone(wait_ms)) return;
  // It will see stopping_; no thread waits for it.
  hot_.flags.store(0, std::memory_order_relaxed);
}

void Library::StopAtExit() {
  constexpr int kAtMostMs = 200;
  stopping_ = true;
  descriptors_.Wake();
  descriptors_.WaitDone(kAtMostMs);
}

void* Library::ThreadMain(void* library) {
  auto* self = static_cast<Library*>(library);
  ::pthread_setname_np(::pthread_self(), "profd-attach");
  self->Run();
  self->descriptors_.SayDone();
  return nullptr;
}

void Library::Run() {
  collect_.SetMode(settings_.collect_mode);
  while (!stopping_) {
    // Only memory can be short; then this connection ends and the next attempt may do better.
    try {
      Attempt();
      if (!stopping_) WaitBeforeNextAttempt();
    } catch (...) {
      Lose(Phase::kAbsent, "");
      pollfd waited{descriptors_.wake(), POLLIN, 0};
      ::poll(&waited, 1, static_cast<int>(kFirstBackoff.count()));
    }
  }
  Lose(Phase::kStopped, "profd_shutdown was called");
}

void Library::Attempt() {
  welcomed_at_.reset();
  wrong_packets_ = 0;
  const Status connected = descriptors_.Connect(settings_.socket);
  if (!connected.ok()) return Lose(Phase::kAbsent, connected.message());
  if (Greet()) Serve();
}

bool Library::Greet() {
  const Status ring = descriptors_.MakeRing(settings_.ring_slots);
  if (!ring.ok()) Log(ring.message());
  attach::Hello hello = settings_.hello;
  hello.has_ring = ring.ok();
  hello.answers_stacks = true;
  if (hello.has_ring) {
    // The daemon before may have been killed while it took marks.
    descriptors_.writer().MendHead();
    hot_.ring.store(&descriptors_.writer(), std::memory_order_release);
  }
  Status status;
  {
    const MutexLock lock(mutex_);
    hello.metadata = metadata_;
    const bool tells_options = own_options_wanted_ && own_session_.empty();
    if (!tells_options) hello.options_json.clear();
    std::string packet = attach::Encode(attach::ToDaemon(hello));
    if (std::string unfit = WhyUnfit(hello.options_json, packet.size()); !unfit.empty()) {
      own_options_wanted_ = false;
      own_refusal_ = std::move(unfit);
      Log("PROFILING_OPTIONS was refused: " + own_refusal_);
      hello.options_json.clear();
      packet = attach::Encode(attach::ToDaemon(hello));
    }
    status = SendPacket(descriptors_.socket(), packet, ring.ok() ? descriptors_.ring() : -1);
    if (status.ok()) {
      own_options_sent_ = !hello.options_json.empty();
      untold_metadata_.clear();
      phase_ = Phase::kGreeting;
    }
  }
  welcome_by_ = Clock::now() + kWelcomeWithin;
  if (!status.ok()) Lose(Phase::kAbsent, status.message());
  return status.ok();
}

void Library::Serve() {
  for (;;) {
    if (stopping_) return SayBye();
    bool more = false;
    {
      const MutexLock lock(mutex_);
      more = !outbox_.empty() && phase_ == Phase::kAttached;
    }
    pollfd waited[2] = {
        {descriptors_.socket(), static_cast<short>(more ? POLLIN | POLLOUT : POLLIN), 0},
        {descriptors_.wake(), POLLIN, 0}};
    ::poll(waited, 2, welcomed_at_ ? -1 : MsUntil(welcome_by_));
    if (waited[1].revents != 0) Descriptors::Hush(descriptors_.wake());
    if ((waited[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && !ReceiveAll()) return;
    WarmUp();
    ReportCollector();
    if (!SendQueued()) return;
    if (!welcomed_at_ && Clock::now() >= welcome_by_) {
      return Lose(Phase::kAbsent, "the daemon has not answered the hello");
    }
  }
}

bool Library::ReceiveAll() {
  for (int i = 0; i < kMaxPacketsAtOnce; ++i) {
    Result<std::string> packet = ReceivePacket(descriptors_.socket());
    if (!packet.ok()) {
      if (packet.status().code() == StatusCode::kResourceExhausted) return true;
      Lose(Phase::kAbsent, packet.status().message());
      return false;
    }
    if (!OnPacket(*packet)) return false;
  }
  return true;
}

bool Library::SendQueued() {
  for (;;) {
    Outgoing next;
    {
      const MutexLock lock(mutex_);
      if (phase_ != Phase::kAttached || outbox_.empty()) return true;
      next = std::move(outbox_.front());
      outbox_.pop_front();
    }
    const Status sent = SendPacket(descriptors_.socket(), next.packet, next.fd);
    if (sent.ok()) continue;
    if (sent.code() != StatusCode::kResourceExhausted) {
      Lose(Phase::kAbsent, sent.message());
      return false;
    }
    const MutexLock lock(mutex_);
    outbox_.push_front(std::move(next));
    return true;
  }
}

bool Library::OnPacket(const std::string& packet) {
  Result<attach::ToProcess> read = attach::ParseToProcess(packet);
  if (!read.ok()) {
    Log("packet of the daemon: " + read.status().message());
    if (++wrong_packets_ < kMaxWrongPackets) return true;
    Lose(Phase::kAbsent, "the daemon sent a malformed packet");
    return false;
  }
  if (const auto* refused = std::get_if<attach::Refused>(&*read)) {
    Log("refused: " + refused->message);
    Lose(Phase::kRefused, refused->message);
    return false;
  }
  if (const auto* welcome = std::get_if<attach::Welcome>(&*read)) OnWelcome(*welcome);
  if (auto* reply = std::get_if<attach::Reply>(&*read)) OnReply(std::move(*reply));
  if (const auto* notice = std::get_if<attach::SessionNotice>(&*read)) OnNotice(*notice);
  if (const auto* stacks = std::get_if<attach::StacksCall>(&*read)) OnStacksCall(*stacks);
  if (const auto* taken = std::get_if<attach::FilesTaken>(&*read)) collect_.OnFilesTaken(*taken);
  return true;
}

void Library::OnWelcome(const attach::Welcome& welcome) {
  if (welcomed_at_) return;
  welcomed_at_ = Clock::now();
  collect_.OnWelcome(welcome);
  const MutexLock lock(mutex_);
  phase_ = Phase::kAttached;
  ++welcomes_;
  Log("attached to " + welcome.daemon + " as job \"" + welcome.job_id + "\"");
  for (const std::string& key : untold_metadata_) Queue(attach::MetadataCall{key, metadata_[key]});
  untold_metadata_.clear();
  // This may be another daemon than the one that had them.
  const std::string last =
      last_session_ && !IsFinal(last_session_->state) ? last_session_->session_id : "";
  if (!last.empty()) Recheck(last);
  if (own_options_wanted_ && !own_session_.empty() && own_session_ != last) Recheck(own_session_);
  UpdateFlags();
  changed_.NotifyAll();
}

void Library::Recheck(const std::string& session_id) {
  const uint64_t seq = next_seq_++;
  if (!Queue(attach::StatusCall{seq, session_id})) return;
  PendingCall& call = calls_[seq];
  call.kind = Kind::kRecheck;
  call.abandoned = true;
  call.session_id = session_id;
}

void Library::OnRechecked(const std::string& session_id, const attach::Reply& reply) {
  const bool last = last_session_ && last_session_->session_id == session_id;
  const bool known = reply.code == 0 && reply.session && reply.session->state != "interrupted";
  if (known) {
    if (last) last_session_ = reply.session;
    if (session_id == own_session_ && IsFinal(reply.session->state)) own_options_wanted_ = false;
    return;
  }
  if (reply.code != 0 && reply.code != static_cast<int>(StatusCode::kNotFound)) return;
  if (last) last_session_->state = "lost";
  opened_.erase(std::remove(opened_.begin(), opened_.end(), session_id), opened_.end());
  if (session_id != own_session_ || !own_options_wanted_) return;
  own_session_.clear();
  attach::StartCall start;
  start.seq = next_seq_++;
  start.options_json = settings_.hello.options_json;
  if (!Queue(start)) return;
  PendingCall& call = calls_[start.seq];
  call.kind = Kind::kOwnStart;
  call.abandoned = true;
  own_options_sent_ = true;
}

void Library::RememberSession(const attach::SessionSummary& session) {
  last_session_ = session;
  if (opened_.size() >= kMaxOpened) opened_.erase(opened_.begin());
  opened_.push_back(session.session_id);
}

void Library::OnOwnOptionsReply(const attach::Reply& reply) {
  if (!std::exchange(own_options_sent_, false)) return Log("reply of the daemon: " + reply.message);  // to an unknown packet
  if (reply.code == 0 && reply.session) {
    if (own_session_ != reply.session->session_id) to_fetch_ = reply.session->session_id;
    own_session_ = reply.session->session_id;
    RememberSession(*reply.session);
    return;
  }
  // Only what may have changed is requested again.
  own_options_wanted_ = reply.code == static_cast<int>(StatusCode::kUnavailable);
  own_refusal_ = reply.message;
  Log("PROFILING_OPTIONS was refused: " + reply.message);
}

// Not with the mutex held: a process is started.
void Library::FetchWhenDone(const std::string& session_id) {
  if (session_id.empty()) return;
  const std::string folder = OutputFolder(settings_.hello.options_json);
  if (folder.empty()) return;
  if (Status left = LeaveDumpFetcher(session_id, folder); !left.ok()) {
    Log("the dump of session " + session_id + " stays on the node (" + left.message() + "); profctl fetch copies it to " +
        folder);
  }
}

void Library::OnReply(attach::Reply reply) {
  TakeReply(std::move(reply));
  std::string to_fetch;
  {
    const MutexLock lock(mutex_);
    to_fetch = std::exchange(to_fetch_, {});
  }
  FetchWhenDone(to_fetch);
}

void Library::TakeReply(attach::Reply reply) {
  const MutexLock lock(mutex_);
  if (reply.seq == 0) {
    OnOwnOptionsReply(reply);
    return changed_.NotifyAll();
  }
  const auto found = calls_.find(reply.seq);
  if (found == calls_.end()) return;
  PendingCall& call = found->second;
  if (call.kind == Kind::kRecheck) {
    OnRechecked(call.session_id, reply);
  } else if (call.kind == Kind::kOwnStart) {
    OnOwnOptionsReply(reply);
  } else if (reply.session && reply.code == 0) {
    if (call.kind == Kind::kStart) {
      // No caller waits for it any more: it must not record until the process ends.
      if (!call.abandoned || !Queue(attach::StopCall{next_seq_++, reply.session->session_id})) RememberSession(*reply.session);
    } else if (call.kind == Kind::kStop ||
               (last_session_ && last_session_->session_id == reply.session->session_id)) {
      last_session_ = reply.session;
    }
  }
  if (call.abandoned) {
    calls_.erase(found);
  } else {
    call.reply = std::move(reply);
  }
  changed_.NotifyAll();
}

void Library::OnNotice(const attach::SessionNotice& notice) {
  collect_.OnNotice(notice);
  const MutexLock lock(mutex_);
  // What is collected already, or by no plug-in, is not waited for.
  if (notice.state == "running" && notice.collect && collect_.HasUnreported(notice.session_id)) {
    collector_awaited_.insert(notice.session_id);
  } else {
    collector_awaited_.erase(notice.session_id);
  }
  watch_.OnNotice(notice, hot_.last_step.load(std::memory_order_relaxed));
  if (last_session_ && last_session_->session_id == notice.session_id &&
      !IsFinal(last_session_->state)) {
    last_session_->state = notice.state;
  }
  if (notice.session_id == own_session_ && IsFinal(notice.state)) own_options_wanted_ = false;
  UpdateFlags();
  changed_.NotifyAll();  // call stacks may be wanted now, or no more
}

void Library::UpdateFlags() {
  uint32_t flags = 0;
  if (phase_ == Phase::kAttached && !stopping_) {
    flags = HotState::kAttached;
    if (watch_.wants_marks()) flags |= HotState::kMarks;
    if (watch_.wants_steps()) flags |= HotState::kStepsWatched;
    if (watch_.wants_stacks() != 0) flags |= HotState::kStacks;
  }
  if (const attach::MarkRingWriter* ring = hot_.ring.load(std::memory_order_acquire)) {
    ring->SetActive((flags & HotState::kMarks) != 0);
  }
  hot_.flags.store(flags, std::memory_order_relaxed);
}

void Library::Lose(Phase phase, const std::string& why) {
  descriptors_.Disconnect();
  collect_.OnDisconnected();
  const MutexLock lock(mutex_);
  if (phase_ == Phase::kAttached || phase == Phase::kRefused) Log((phase == Phase::kStopped ? "detached: " : "not attached: ") + why);
  phase_ = phase;
  why_not_attached_ = why;
  for (auto it = calls_.begin(); it != calls_.end();) {
    it->second.lost = true;
    it = it->second.abandoned ? calls_.erase(it) : std::next(it);
  }
  outbox_.clear();
  watch_.Clear();
  stacks_asked_ = 0;
  collector_awaited_.clear();
  own_options_sent_ = false;
  UpdateFlags();
  changed_.NotifyAll();
}

void Library::WaitBeforeNextAttempt() {
  const Deadline begin = Clock::now();
  const bool good = welcomed_at_ && begin - *welcomed_at_ >= kGoodConnection;
  backoff_ = good ? kFirstBackoff : std::clamp(backoff_ * 2, kFirstBackoff, kLastBackoff);
  // Between three quarters and five: the processes of a node do not come back all at once.
  const auto span = static_cast<unsigned>(backoff_.count() / 2);
  Deadline next = begin + backoff_ * 3 / 4 + milliseconds(random_() % (span + 1));
  while (!stopping_ && Clock::now() < next) {
    {
      const MutexLock lock(mutex_);
      if (waiters_ > 0) next = std::min(next, begin + kFirstBackoff);
    }
    pollfd waited{descriptors_.wake(), POLLIN, 0};
    if (::poll(&waited, 1, MsUntil(next)) > 0) Descriptors::Hush(descriptors_.wake());
  }
}

// Sessions whose step is the next one collect from here on, so that it is recorded from its begin.
void Library::WarmUp() {
  std::vector<std::string> due;
  {
    const MutexLock lock(mutex_);
    due = watch_.TakeDue();
  }
  for (const std::string& session : due) collect_.WarmUp(session);
}

void Library::ReportCollector() {
  collect_.Report([this](const attach::CollectorReport& report, int fd) {
    const MutexLock lock(mutex_);
    if (!Queue(report, fd)) return false;
    if (collector_awaited_.erase(report.session_id) > 0) changed_.NotifyAll();
    return true;
  });
}

void Library::WakeForCollector(void* library) { static_cast<Library*>(library)->Wake(); }

uint64_t Library::CountSteps(void* library) {
  return static_cast<Library*>(library)->hot_.steps.load(std::memory_order_relaxed);
}

void Library::WaitForCopy() {
  const Deadline end = Clock::now() + kCopyWithin;
  pollfd waited{descriptors_.socket(), POLLIN, 0};
  while (collect_.WaitsForCopy() && ::poll(&waited, 1, MsUntil(end)) > 0) {
    if (!ReceiveAll()) return;
  }
}

void Library::SayBye() {
  collect_.End(kCollectorEndMs, kFilesWithinMs);
  ReportCollector();
  {
    const MutexLock lock(mutex_);
    for (const std::string& id : opened_) Queue(attach::StopCall{next_seq_++, id});
  }
  // What is queued goes first, if it goes at once.
  if (!SendQueued()) return;
  WaitForCopy();
  if (descriptors_.socket() < 0) return;
  const int fd = descriptors_.socket();
  SendPacket(fd, attach::Encode(attach::ToDaemon(attach::Bye{})), -1).Ignore();
  // Closing a socket with packets unread would be a broken connection for the daemon, and the bye
  // lost: it is to close first, when it has read all.
  ::shutdown(fd, SHUT_WR);
  const Deadline end = Clock::now() + kByeWithin;
  for (pollfd waited{fd, POLLIN, 0}; ::poll(&waited, 1, MsUntil(end)) > 0;) {
    const auto packet = ReceivePacket(fd);
    if (!packet.ok() && packet.status().code() != StatusCode::kResourceExhausted) return;
    if (Clock::now() >= end) return;
  }
}

void Library::Log(const std::string& text) const {
  if (settings_.log) ::dprintf(STDERR_FILENO, "libprofd[%d]: %s\n", ::getpid(), text.c_str());
}

}  // namespace profd::lib
