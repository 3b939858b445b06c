#include "export/trace/layer_json.h"

#include <charconv>

#include "export/trace/json_text.h"

namespace profd::exporting {

void AppendLayerArgs(std::span<const LayerArg> args, std::string* out) {
  char number[40];
  bool first = true;
  for (const LayerArg& arg : args) {
    if (!first) *out += ',';
    first = false;
    out->append("\"").append(arg.name).append("\":");
    if (const auto* text = std::get_if<std::string_view>(&arg.value)) {
      *out += '"';
      AppendJsonEscaped(out, *text, kMostArgText);
      *out += '"';
    } else if (const auto* integer = std::get_if<uint64_t>(&arg.value)) {
      out->append(number, std::to_chars(number, number + sizeof number, *integer).ptr);
    } else if (const auto* signed_integer = std::get_if<int64_t>(&arg.value)) {
      out->append(number, std::to_chars(number, number + sizeof number, *signed_integer).ptr);
    } else {
      out->append(number, AppendShortest(number, std::get<double>(arg.value)));
    }
  }
}

const FlowNames& FlowNamesOf(LayerFlow::Kind kind) {
  // By LayerFlow::Kind.
  static constexpr FlowNames kNames[] = {{"HostToDevice", "HostToDevice"},
                                         {"torch_to_npu", "async_npu"},
                                         {"enqueue_to_dequeue", "async_task_queue"},
                                         {"fwdbwd", "fwdbwd"},
                                         {"MsTx_", "MsTx"}};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace profd::exporting
