// WatchAdvice: what the live checks say, at every change and at an interval.
#include "base/clock.h"
#include "daemon/advice/advisor.h"
#include "daemon/rpc/rpc_internal.h"
#include "daemon/rpc/strand_writer.h"

namespace profd::rpc {
namespace {

class AdviceWatch final : public StrandWriter<v1::GetAdviceResponse> {
 public:
  AdviceWatch(Context& context, const Peer& peer, const v1::WatchAdviceRequest& request, Memory memory)
      : StrandWriter(context.deps.control, std::move(memory)),
        context_(context),
        peer_(peer),
        request_(request.what()),
        interval_ms_(request.has_interval_ms() ? request.interval_ms() : kDefaultWatchMs) {
    Begin();
  }

 private:
  void OnReady() override {
    if (timer_ != nullptr) {
      if (again_) {
        Show();
      } else {
        timer_->After(static_cast<int64_t>(interval_ms_) * kNsPerMs, [this] { Show(); });
      }
      return;
    }
    if (Status valid = CheckWatchInterval(interval_ms_); !valid.ok()) {
      End(ToGrpc(valid));
      return;
    }
    timer_ = std::make_unique<Timer>(control());
    if (Advisor* advisor = context_.deps.advisor_or_null) watch_ = advisor->Watch([this] { Show(); });
    Show();
  }

  void Show() {
    if (!idle()) {
      again_ = true;
      return;
    }
    again_ = false;
    v1::GetAdviceResponse advice;
    if (Status status = GetAdvice(context_.deps, peer_, request_, &advice); !status.ok()) {
      End(ToGrpc(status));
      return;
    }
    if (!GrowForMessage(advice.SpaceUsedLong() + advice.ByteSizeLong()).ok()) {
      timer_->After(static_cast<int64_t>(interval_ms_) * kNsPerMs, [this] { Show(); });
      return;
    }
    timer_->Cancel();
    Send(std::move(advice));
  }

  void OnClosed() override {
    timer_.reset();
    if (watch_ != 0) context_.deps.advisor_or_null->Unwatch(watch_);
  }

  Context& context_;
  const Peer peer_;
  const v1::GetAdviceRequest request_;
  const uint64_t interval_ms_;
  bool again_ = false;
  std::unique_ptr<Timer> timer_;
  uint64_t watch_ = 0;
};

}  // namespace

Status GetAdvice(const RpcDeps& deps, const Peer& peer, const v1::GetAdviceRequest& request, v1::GetAdviceResponse* out) {
  if (deps.advisor_or_null == nullptr) return FailedPrecondition("live advice is off here (advice.enabled)");
  return deps.advisor_or_null->Describe(peer, request, out);
}

grpc::ServerWriteReactor<v1::GetAdviceResponse>* NewAdviceWatch(Context& context, const Peer& peer,
                                                                const v1::WatchAdviceRequest& request,
                                                                Memory memory) {
  return new AdviceWatch(context, peer, request, std::move(memory));
}

}  // namespace profd::rpc
