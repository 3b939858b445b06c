// Which of the bandwidth slots of QoS records are shown, and under which names.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "export/batch.h"
#include "export/decoder.h"
#include "export/strings.h"

namespace profd::exporting {

// Without names in sample.json the vendor's analyser shows nothing; here slots go by their numbers
// from the first one on that ever carried something.
class QosStreams {
 public:
  static constexpr size_t kMaxSlots = 10;

  QosStreams(const DecodeContext& context, size_t slots) : slots_(slots) {
    const auto& names = context.place->qos_events;
    for (size_t i = 0; i < slots_; ++i) {
      shown_[i] = i < names.size();
      if (shown_[i]) {
        names_[i] = context.strings->Intern(names[i]);
      } else if (names.empty()) {
        names_[i] = context.strings->Intern(std::to_string(i));
        unnamed_ = true;
      }
    }
  }

  // `slot(i)`: MB/s of slot i.
  template <class Slot>
  void Emit(int64_t t_ns, int64_t die, Slot slot, BatchBuilder& rows) {
    for (size_t i = 0; i < slots_; ++i) {
      uint32_t bandwidth = slot(i);
      if (unnamed_ && bandwidth > 0) shown_[i] = true;
      if (shown_[i]) rows.Add(t_ns, names_[i], die, bandwidth);
    }
  }

 private:
  size_t slots_;
  bool unnamed_ = false;
  std::array<bool, kMaxSlots> shown_{};
  std::array<int64_t, kMaxSlots> names_{};
};

}  // namespace profd::exporting
