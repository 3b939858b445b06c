// WatchSession and WatchAdvice: the state of a session, and what the live checks find, at every change and at an interval.
#include "base/clock.h"
#include "daemon/advice/advisor.h"
#include "daemon/rpc/rpc_internal.h"
#include "daemon/rpc/strand_writer.h"
#include "daemon/session/session_records.h"
#include "daemon/session/session_watches.h"

namespace profd::rpc {
namespace {

constexpr uint64_t kDefaultMs = 1000;

template <class Message>
class WatchWriter : public StrandWriter<Message> {
 protected:
  template <class Request>
  WatchWriter(Context& context, const Peer& peer, const Request& request, Memory memory)
      : StrandWriter<Message>(context.deps.control, std::move(memory)),
        context_(context),
        peer_(peer),
        interval_ms_(request.has_interval_ms() ? request.interval_ms() : kDefaultMs) {}

  // Show is called at every change until Unwatch.
  virtual void Watch() = 0;
  virtual void Unwatch() = 0;
  virtual Result<Message> State() const = 0;
  // Nothing of it will change any more.
  virtual bool IsLast(const Message& /*state*/) const { return false; }

  void Show() {
    again_ = !this->idle();
    if (again_) return;
    Result<Message> state = State();
    if (!state.ok()) return this->End(ToGrpc(state.status()));
    // As an object and in its serialised form, until the client has taken it.
    if (!this->GrowForMessage(state->SpaceUsedLong() + state->ByteSizeLong()).ok()) return ShowLater();
    timer_->Cancel();
    last_ = IsLast(*state);
    this->Send(std::move(state).value());
  }

  Context& context_;
  const Peer peer_;

 private:
  void OnReady() override {
    if (timer_ == nullptr) {
      if (Status valid = CheckInterval(); !valid.ok()) return this->End(ToGrpc(valid));
      timer_ = std::make_unique<Timer>(this->control());
      Watch();
      Show();
    } else if (last_) {
      this->End(grpc::Status::OK);
    } else {
      again_ ? Show() : ShowLater();
    }
  }

  Status CheckInterval() const {
    if (interval_ms_ >= 100 && interval_ms_ <= 60000) return {};
    return {StatusCode::kInvalidArgument,
            Problem{.field = "interval_ms", .value = std::to_string(interval_ms_), .text = "must be 100ms..60s"}};
  }

  void ShowLater() {
    timer_->After(static_cast<int64_t>(interval_ms_) * kNsPerMs, [this] { Show(); });
  }

  void OnClosed() override {
    if (timer_ != nullptr) Unwatch();
    timer_.reset();
  }

  const uint64_t interval_ms_;
  bool again_ = false;
  bool last_ = false;
  std::unique_ptr<Timer> timer_;  // once it is watched
};

class SessionWatch final : public WatchWriter<v1::Session> {
 public:
  SessionWatch(Context& context, const Peer& peer, const v1::WatchSessionRequest& request, Memory memory)
      : WatchWriter(context, peer, request, std::move(memory)), id_(request.session_id()) {
    Begin();
  }

 private:
  void Watch() override { watch_ = context_.deps.watches.Add(id_, [this] { Show(); }); }
  void Unwatch() override { context_.deps.watches.Remove(watch_); }
  Result<v1::Session> State() const override { return context_.deps.records.Get(peer_, id_); }
  bool IsLast(const v1::Session& session) const override { return IsFinal(session); }

  const std::string id_;
  uint64_t watch_ = 0;
};

class AdviceWatch final : public WatchWriter<v1::GetAdviceResponse> {
 public:
  AdviceWatch(Context& context, const Peer& peer, const v1::WatchAdviceRequest& request, Memory memory)
      : WatchWriter(context, peer, request, std::move(memory)), request_(request.what()) {
    Begin();
  }

 private:
  void Watch() override {
    if (Advisor* advisor = context_.deps.advisor_or_null) watch_ = advisor->Watch([this] { Show(); });
  }
  void Unwatch() override {
    if (watch_ != 0) context_.deps.advisor_or_null->Unwatch(watch_);
  }
  Result<v1::GetAdviceResponse> State() const override {
    v1::GetAdviceResponse advice;
    RETURN_IF_ERROR(GetAdvice(context_.deps, peer_, request_, &advice));
    return advice;
  }

  const v1::GetAdviceRequest request_;
  uint64_t watch_ = 0;
};

}  // namespace

Status GetAdvice(const RpcDeps& deps, const Peer& peer, const v1::GetAdviceRequest& request, v1::GetAdviceResponse* out) {
  if (deps.advisor_or_null == nullptr) return FailedPrecondition("live advice is off here (advice.enabled)");
  return deps.advisor_or_null->Describe(peer, request, out);
}

grpc::ServerWriteReactor<v1::Session>* NewWatch(Context& context, const Peer& peer,
                                                const v1::WatchSessionRequest& request, Memory memory) {
  return new SessionWatch(context, peer, request, std::move(memory));
}

grpc::ServerWriteReactor<v1::GetAdviceResponse>* NewAdviceWatch(Context& context, const Peer& peer,
                                                                const v1::WatchAdviceRequest& request, Memory memory) {
  return new AdviceWatch(context, peer, request, std::move(memory));
}

}  // namespace profd::rpc
