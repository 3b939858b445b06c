#include "export/operators/details.h"

#include <fmt/format.h>

#include "export/operators/numbers.h"

namespace profd::exporting::operators {
namespace {

InputAndOutput TextsOf(const std::vector<Tensor>& tensors) {
  InputAndOutput texts;
  for (const Tensor& tensor : tensors) (tensor.output ? texts.second : texts.first).Add(tensor);
  return texts;
}

}  // namespace

bool IsShown(const Model& model, const HostTask& task, std::string_view core_type) {
  return core_type == "COMMUNICATION" ? IsOperator(core_type, model.OperatorName(task)) : IsOperator(core_type, {});
}

Alike AlikeOf(const Model& model, const HostTask& task) {
  Alike key{task.launch, task.type, task.kernel, {}};
  if (task.communication >= 0) key.communication = model.host.apis[static_cast<size_t>(task.communication)].item;
  return key;
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

InputAndOutput TensorsOf(const Model& model, const HostTask& task) {
  const int32_t number = TensorsNumber(model, task);
  return number < 0 ? InputAndOutput() : TextsOf(model.host.tensors[static_cast<size_t>(number)]);
}

TensorTable::TensorTable(const Model& model) : model_(model) {
  constexpr size_t kMostTexts = 65'536;
  if (model.host.tensors.size() > kMostTexts) return;
  texts_.reserve(model.host.tensors.size());
  for (const std::vector<Tensor>& tensors : model.host.tensors) texts_.push_back(TextsOf(tensors));
}

const InputAndOutput& TensorTable::Of(const HostTask& task) const {
  thread_local InputAndOutput made;
  const int32_t number = TensorsNumber(model_, task);
  if (number >= 0 && !texts_.empty()) return texts_[static_cast<size_t>(number)];
  made = TensorsOf(model_, task);
  return made;
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
    cores[kind].counts = model.pmu_counts.Of(counted);
    cores[kind].time_us =
        PmuTime(cores[kind].counts, cores[kind].core->cores, setup->second.MhzAt(counted.end), blocks[kind]);
  }
  return cores;
}

}  // namespace profd::exporting::operators
