#include "export/trace/layer_packet.h"

#include <fmt/format.h>

#include <string>

#include "export/repaired_text.h"
#include "export/trace/packet_writer.h"
#include "perfetto/trace.pb.h"

namespace profd::exporting {
namespace {

namespace pb = ::perfetto::protos;

}  // namespace

std::string FlowText(const LayerFlow& flow) {
  if (flow.kind == LayerFlow::Kind::kLaunch) return fmt::to_string(flow.id);
  return fmt::format("{}/{}", static_cast<int>(flow.kind), flow.id);
}

void FillTrackEvent(const LayerEvent& event, size_t dump, pb::TrackEvent* made) {
  made->set_name(RepairedText(event.name));
  if (!event.category.empty()) made->add_categories(std::string(event.category));
  for (const LayerArg& arg : event.args) {
    pb::DebugAnnotation* added = made->add_debug_annotations();
    added->set_name(std::string(arg.name));
    if (const auto* integer = std::get_if<uint64_t>(&arg.value)) added->set_int_value(static_cast<int64_t>(*integer));
    if (const auto* number = std::get_if<int64_t>(&arg.value)) added->set_int_value(*number);
    if (const auto* real = std::get_if<double>(&arg.value)) added->set_double_value(*real);
    if (const auto* text = std::get_if<std::string_view>(&arg.value)) {
      added->set_string_value(RepairedText(*text, kMostArgText));
    }
  }
  // Not ended where it arrives: a launch may have several tasks.
  for (const LayerFlow& flow : event.flows) {
    if (flow.id != kNoConnection) made->add_flow_ids(FlowId(dump, FlowText(flow)));
  }
}

}  // namespace profd::exporting
