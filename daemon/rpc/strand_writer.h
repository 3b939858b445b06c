// A server stream whose state lives on the control strand: gRPC's callbacks come on gRPC's threads
// and are posted there, one write at a time is under way, the object goes when gRPC is done with it
// and every task posted for it has run (the strand is first in, first out).
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/strand.h"
#include "daemon/rpc/call_limits.h"

namespace profd::rpc {

// What a call holds, as the ledger counts it.
using Memory = std::shared_ptr<CallHold>;

template <class Message>
class StrandWriter : public grpc::ServerWriteReactor<Message> {
 public:
  StrandWriter(Strand& control, Memory memory)
      : control_(control), memory_(std::move(memory)) {}

 protected:
  // All on the strand.
  //
  // The last write went out (or Begin was called): send more, or wait for something to happen.
  virtual void OnReady() = 0;
  // Nothing more can be sent: let go of what you hold. Called once.
  virtual void OnClosed() = 0;

  // Call at the end of the constructor.
  void Begin() {
    control_.Post([this] { OnReady(); });
  }
  bool idle() const { return !writing_ && !over_; }
  // Only while idle().
  void Send(Message message) {
    message_ = std::move(message);
    writing_ = true;
    this->StartWrite(&message_);
  }
  // Memory for the next message, until it has been sent.
  Status GrowForMessage(uint64_t bytes) {
    RETURN_IF_ERROR(memory_->Grow(bytes));
    message_bytes_ += bytes;
    return Status::Ok();
  }
  // There is no message after all.
  void DropMessageMemory() { memory_->Shrink(std::exchange(message_bytes_, 0)); }
  const Memory& memory() const { return memory_; }
  // Ends the stream, after the write under way.
  void End(const grpc::Status& status) {
    if (over_) return;
    end_ = status;
    if (!writing_ && !held_) Close();
  }
  // Keeps the object alive while another thread works for it; the end waits.
  void Hold() { held_ = true; }
  void Unhold() {
    held_ = false;
    if (end_ && !writing_) Close();
  }
  Strand& control() { return control_; }

 private:
  void OnWriteDone(bool ok) final {
    control_.Post([this, ok] {
      writing_ = false;
      message_ = Message();
      DropMessageMemory();
      if (!ok && !end_) end_ = grpc::Status::CANCELLED;
      if (end_) {
        if (!held_) Close();
      } else {
        OnReady();
      }
    });
  }
  void OnCancel() final {
    control_.Post([this] { End(grpc::Status::CANCELLED); });
  }
  void OnDone() final {
    control_.Post([this] { delete this; });
  }
  void Close() {
    if (over_) return;
    over_ = true;
    OnClosed();
    this->Finish(*end_);
  }

  Strand& control_;
  const Memory memory_;
  Message message_;
  uint64_t message_bytes_ = 0;
  bool writing_ = false;
  bool over_ = false;
  bool held_ = false;
  std::optional<grpc::Status> end_;
};

}  // namespace profd::rpc
