// One pass over one NPU: calls the library, notices when the NPU is gone, and puts answers into series.
#pragma once

#include <cmath>
#include <type_traits>

#include "collectors/npu_state/series_slot.h"
#include "driver/dcmi_service.h"

namespace profd {

class DevicePass {
 public:
  DevicePass(DcmiService& dcmi, const DcmiDevice& device, SlotOwner& owner, SampleBatch& out,
             int64_t now_ns)
      : dcmi_(dcmi), device_(device), owner_(owner), out_(out), now_ns_(now_ns) {}

  // The NPU does not answer: nothing more is asked in this pass.
  bool over() const { return over_; }
  // We run on a thread that was given up: return as soon as possible.
  bool abandoned() const { return abandoned_; }

  template <class T, class... P, class... A>
  DcmiAnswer<T> Ask(DcmiAnswer<T> (DcmiService::*query)(const DcmiDevice&, P...), A... args) {
    if (over_) return {kDcmiStuck, {}};
    DcmiAnswer<T> answer = (dcmi_.*query)(device_, args...);
    Note(answer.code);
    return answer;
  }

  // A row of the DCMI table.
  template <class T>
  DcmiAnswer<T> Ask(const DcmiQuery<T>& query) {
    DcmiAnswer<T> answer;
    answer.code = Ask(query, &answer.value);
    return answer;
  }
  int Ask(const DcmiQueryRow& query, void* out) {
    if (over_) return kDcmiStuck;
    const int code = dcmi_.Ask(device_, query, out);
    Note(code);
    return code;
  }

  DcmiAnswer<int> AskTopology(const DcmiDevice& peer) {
    if (over_) return {kDcmiStuck, {}};
    DcmiAnswer<int> answer = dcmi_.Topology(device_, peer);
    Note(answer.code);
    return answer;
  }

  // A value, or absence; what is not a number is none.
  void Put(SeriesSlot& slot, bool known, double value) {
    if (known && std::isfinite(value)) {
      out_.Emit(owner_.Use(slot), now_ns_, value);
    } else {
      owner_.Drop(slot);
    }
  }
  template <class T>
  void Put(SeriesSlot& slot, const DcmiAnswer<T>& answer, double unit = 1) {
    static_assert(std::is_arithmetic_v<T>);
    Put(slot, answer.ok(), static_cast<double>(answer.value) * unit);
  }
  // A counter; all bits set is how drivers fill in what they do not count.
  void PutCount(SeriesSlot& slot, bool known, uint64_t count) {
    Put(slot, known && count != UINT64_MAX, static_cast<double>(count));
  }
  void Emit(SeriesId series, double value) { out_.Emit(series, now_ns_, value); }
  DcmiService& dcmi() { return dcmi_; }
  const DcmiDevice& device() const { return device_; }

 private:
  // One call may time out by itself (a network port that is down); the NPU is gone only if the
  // simplest question fails the same way.
  void Note(int code) {
    if (code == kDcmiAbandoned) {
      abandoned_ = over_ = true;
      return;
    }
    if (checked_ || ClassifyDcmi(code) != DcmiErrorClass::kDeviceDown) return;
    checked_ = true;
    const int health = dcmi_.Health(device_).code;
    abandoned_ = health == kDcmiAbandoned;
    over_ = abandoned_ || ClassifyDcmi(health) == DcmiErrorClass::kDeviceDown;
  }

  DcmiService& dcmi_;
  const DcmiDevice& device_;
  SlotOwner& owner_;
  SampleBatch& out_;
  const int64_t now_ns_;
  bool checked_ = false;
  bool over_ = false;
  bool abandoned_ = false;
};

}  // namespace profd
