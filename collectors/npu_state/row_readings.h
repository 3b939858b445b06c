// The series of one NPU that rows of the metric table describe (collectors/device_reading.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collectors/device_reading.h"
#include "collectors/npu_state/device_pass.h"

namespace profd {

class RowReadings {
 public:
  RowReadings();
  // For tests: rows of their own, which outlive this object.
  RowReadings(std::span<const ReadingRow> rows, std::span<const MetricId> metrics);

  // Forgets the answers of the pass before.
  void BeginPass() { asked_.fill(false); }
  // Calls each function at most once a pass.
  void Read(DevicePass& pass, ReadingPace pace);
  // What a question of this pass was answered; null: it was not asked, or not answered.
  template <class T>
  const T* AnswerTo(const DcmiQuery<T>& query) const {
    const size_t call = static_cast<size_t>(query.call);
    if (!asked_[call] || codes_[call] != abi::kDcmiOk) return nullptr;
    return reinterpret_cast<const T*>(At(query));
  }

 private:
  struct Row {
    const ReadingRow* reading;
    SeriesSlot slot;
  };

  void Add(std::span<const ReadingRow> rows, std::span<const MetricId> metrics);
  int Ask(DevicePass& pass, const DcmiQueryRow& query);
  void Put(DevicePass& pass, Row& row);
  const std::byte* At(const DcmiQueryRow& query) const {
    return answers_.data() + offsets_[static_cast<size_t>(query.call)];
  }

  std::vector<Row> rows_;
  // By call.
  std::array<bool, kDcmiCallCount> asked_{};
  std::array<int, kDcmiCallCount> codes_{};
  std::array<size_t, kDcmiCallCount> offsets_{};  // in answers_
  std::vector<std::byte> answers_ = std::vector<std::byte>(16);  // offset 0 is that of no answer
};

}  // namespace profd
