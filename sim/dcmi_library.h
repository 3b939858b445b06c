// What the exported functions of libdcmi.so share: the node, how (card, device) becomes a logic id,
// and the checks every call makes in the same order: arguments -8001, ids -8007, hanging card
// (waits), missing card -8008, dcmi_error fault.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "driver/abi/dcmi_table.h"
#include "sim/account.h"
#include "sim/dcmi_state.h"
#include "sim/fault_wait.h"
#include "sim/node.h"

#define PROFD_SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace profd::sim {

class DcmiLibrary {
 public:
  DcmiLibrary() : node_(NodeFromEnvironment("libdcmi.so")) {}

  const Node* node() const { return node_.get(); }
  // Enumeration queries the card too.
  void AwaitCard(int card) { wait_.WhileHanging(*node_, LogicId(card, 0), DropMode::kDcmiHang); }
  // The newest chips have the second generation of the interface only.
  bool IsV2Only() const { return node_ != nullptr && node_->chip().key == "950"; }
  int PerCard() const { return node_->chip().devices_per_card; }
  int Cards() const { return node_->devices() / PerCard(); }
  bool IsMcu(int card, int device) const {
    return card >= 0 && card < Cards() && device == PerCard();
  }
  // -1 when there is no such device.
  int LogicId(int card, int device) const {
    if (card < 0 || card >= Cards() || device < 0 || device >= PerCard()) return -1;
    return card * PerCard() + device;
  }
  // Calls query(DcmiView) for a v2 device once it may answer.
  template <class Query>
  int OnLogic(int logic_id, Query query) {
    const Accounted accounted;
    if (node_ == nullptr) return abi::kDcmiInternal;
    if (!node_->HasDevice(logic_id)) return abi::kDcmiInvalidDevice;
    wait_.WhileHanging(*node_, logic_id, DropMode::kDcmiHang);
    const int64_t now = node_->ScenarioNow();
    if (node_->faults().Drop(DropMode::kMissing, now, logic_id) != nullptr) {
      return abi::kDcmiDeviceMissing;
    }
    if (const Fault* fault = node_->faults().Find(FaultKind::kDcmiError, now, logic_id)) {
      return fault->code;
    }
    return query(DcmiView{*node_, static_cast<unsigned>(logic_id), now});
  }
  template <class Query>
  int OnDevice(int card, int device, Query query) {
    if (node_ == nullptr) return abi::kDcmiInternal;
    if (IsMcu(card, device) || IsV2Only()) return abi::kDcmiNotSupported;
    return OnLogic(LogicId(card, device), std::move(query));
  }
  // The blocking profiling calls: spends `ms`, then query(view at the end, scenario time of the
  // beginning).
  template <class Query>
  int Profile(const DcmiView& view, int64_t ms, Query query) {
    wait_.Spend(view.node, ms * 1'000'000);
    const DcmiView after{view.node, view.device, view.node.ScenarioNow()};
    return query(after, view.t_ns);
  }

 private:
  std::unique_ptr<Node> node_;
  FaultWait wait_;
};

// One per process, never torn down: threads may sit in a call that hangs.
DcmiLibrary& Dcmi();

// The common shape of an exported function: query(view, keys..., out), with one output. V2: by logic id.
template <class T, class Query, class... Keys>
int Ask(int card, int device, T* out, Query query, Keys... keys) {
  if (out == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnDevice(card, device, [&](const DcmiView& view) { return std::invoke(query, view, keys..., out); });
}
template <class T, class Query, class... Keys>
int AskV2(int device, T* out, Query query, Keys... keys) {
  if (out == nullptr) return abi::kDcmiInvalidParameter;
  return Dcmi().OnLogic(device, [&](const DcmiView& view) { return std::invoke(query, view, keys..., out); });
}
// An exported function that returns what one query of the device answers.
#define PROFD_SIM_ASK(name, Answer, query)                        \
  PROFD_SIM_EXPORT int name(int card, int device, Answer* out) {  \
    return profd::sim::Ask(card, device, out, query);             \
  }
#define PROFD_SIM_ASK_V2(name, Answer, query)           \
  PROFD_SIM_EXPORT int name(int device, Answer* out) {  \
    return profd::sim::AskV2(device, out, query);       \
  }
// A query with the same answer for all devices.
inline auto Always(int value) {
  return [value](const DcmiView&, int* out) {
    *out = value;
    return abi::kDcmiOk;
  };
}

}  // namespace profd::sim
