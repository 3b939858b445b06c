// Parts of the timeline that earlier releases of the vendor's analyser wrote as files of their own.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "export/trace/operator_layers.h"

namespace profd::exporting {

struct LegacyPart {
  std::string_view file;  // without `_<timestamp>`
  bool timestamped = true;
  // Of operator-level records; null: marks and ranges of the application.
  bool (*has)(const ProcessSpec& process, const LayerEvent& event) = nullptr;
};
extern const std::array<LegacyPart, 6> kLegacyParts;

// Passes on what belongs to `part`.
class LegacyPartSink : public LayerSink {
 public:
  LegacyPartSink(const LegacyPart& part, LayerSink& to) : part_(part), to_(to) {}
  void Enter(const LayerThread& thread) override;
  void Take(const LayerEvent& event) override;

 private:
  const LegacyPart& part_;
  LayerSink& to_;
  LayerThread thread_;
  std::string name_;      // of thread_
  bool entered_ = false;  // to_ knows of it
};

}  // namespace profd::exporting
