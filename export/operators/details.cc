#include "export/operators/details.h"

#include <fmt/format.h>

#include "export/operators/numbers.h"

namespace profd::exporting::operators {

bool IsShown(const Model& model, const HostTask& task, std::string_view core_type) {
  if (core_type == "WRITE_BACK" || core_type == "INVALID") return false;
  if (core_type != kCommunicationOnCpu && core_type != "COMMUNICATION") return true;
  return model.OperatorName(task).ends_with("AivKernel");
}

void TensorTexts::Add(const Tensor& tensor) {
  if (count++ > 0) {
    shapes += ';';
    types += ';';
    formats += ';';
  }
  for (size_t i = 0; i < std::size(tensor.shape) && tensor.shape[i] != 0; ++i) {
    if (i > 0) shapes += ',';
    shapes += fmt::to_string(tensor.shape[i]);
  }
  types += DataTypeName(tensor.data_type);
  formats += FormatName(tensor.format);
}

std::pair<TensorTexts, TensorTexts> TensorsOf(const Model& model, const HostTask& task) {
  std::pair<TensorTexts, TensorTexts> texts;
  EachTensorRecord(model, task, [&](const TensorRecord& record) {
    for (const Tensor& tensor : model.host.tensors[record.tensors]) {
      (tensor.output ? texts.second : texts.first).Add(tensor);
    }
  });
  return texts;
}

std::optional<std::array<CoreCounters, 2>> CountersOf(const Model& model, const TaskRow& row, const HostTask& task) {
  const auto setup = model.device_pmu.find(row.device);
  if (row.pmu < 0 || setup == model.device_pmu.end()) return std::nullopt;
  const bool main_is_vector = model.pmu[static_cast<size_t>(row.pmu)].vector_core;
  const uint32_t blocks[2] = {main_is_vector ? task.mix_blocks : task.blocks,
                              main_is_vector ? task.blocks : task.mix_blocks};
  std::array<CoreCounters, 2> cores;
  cores[0].core = &setup->second.group.aic;
  cores[1].core = &setup->second.group.aiv;
  for (const int32_t index : {row.pmu, row.other_pmu}) {
    if (index < 0) continue;
    const PmuRecord& counted = model.pmu[static_cast<size_t>(index)];
    const size_t kind = counted.vector_core ? 1 : 0;
    cores[kind].counts = counted.counts;
    cores[kind].time_us = PmuTime(counted.counts, cores[kind].core->cores, counted.mhz, blocks[kind]);
  }
  return cores;
}

}  // namespace profd::exporting::operators
