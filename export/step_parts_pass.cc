#include "export/step_parts_pass.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "export/fan_out.h"
#include "export/file_feeder.h"
#include "export/operators/model.h"

namespace profd::exporting {
namespace {

constexpr std::string_view kSteps = "ts_track.data";
constexpr std::string_view kKernels = "activity_kernel.data";
constexpr std::string_view kCommunications = "activity_communication.data";

const DataFile* FileOf(const Place& place, std::string_view base) {
  for (const DataFile& file : place.files) {
    if (file.base == base) return &file;
  }
  return nullptr;
}

bool Has(const DumpInfo& dump, std::string_view base) {
  for (const Place& place : dump.places) {
    if (FileOf(place, base) != nullptr) return true;
  }
  return false;
}

StepPoints PointsOf(const DumpInfo& dump) {
  StepPoints points;
  if (!dump.manifest) return points;
  for (const ManifestOption& option : dump.manifest->options) {
    if (option.key == "fp_point") points.fp = option.value;
    if (option.key == "bp_point") points.bp = option.value;
  }
  return points;
}

// Rows of kernels or communication: the name first, and how long.
class Rows : public BatchSink {
 public:
  using Take1 = std::function<void(int device, uint8_t name, int64_t begin_ns, int64_t end_ns)>;
  Rows(const StepPartFinder& finder, const Strings& strings, size_t duration, Take1 take)
      : finder_(finder), strings_(strings), duration_(duration), take_(std::move(take)) {}

  void Take(const Batch& batch) override {
    for (size_t row = 0; row < batch.rows(); ++row) {
      const auto name = static_cast<size_t>(batch.Ints(0)[row]);
      if (name >= classes_.size()) classes_.resize(name + 1, -1);
      if (classes_[name] < 0) classes_[name] = finder_.ClassOf(strings_.Text(static_cast<int64_t>(name)));
      take_(batch.device, static_cast<uint8_t>(classes_[name]), batch.t_ns[row],
            batch.t_ns[row] + batch.Ints(duration_)[row]);
    }
  }

 private:
  const StepPartFinder& finder_;
  const Strings& strings_;
  const size_t duration_;
  const Take1 take_;
  std::vector<int> classes_;  // by id; -1: not looked at yet
};

class Pass {
 public:
  explicit Pass(const StepPartsRequest& request) : request_(request), info_(request.dump->info()) {}

  std::unique_ptr<StepPartFinder> Run() {
    const bool recorded = Has(info_, kKernels);
    if (!Has(info_, kSteps) || (!recorded && !request_.operators)) return nullptr;
    auto finder = std::make_unique<StepPartFinder>(PointsOf(info_));
    Read(kSteps, nullptr, [&](const Event& event) {
      if (event.kind != EventKind::kDeviceStep || event.partial) return;
      finder->AddStep(event.device, event.t_ns, event.t_ns + event.dur_ns);
    });
    if (finder->empty()) return nullptr;
    finder->StepsDone();
    if (recorded) {
      AddRecorded(finder.get());
    } else if (!AddOperators(finder.get())) {
      return nullptr;
    }
    finder->Finish();
    return finder;
  }

 private:
  void AddRecorded(StepPartFinder* finder) {
    Rows communications(*finder, strings_, 3, [&](int device, uint8_t name, int64_t begin_ns, int64_t end_ns) {
      finder->AddCommunication(device, name, begin_ns, end_ns);
    });
    Read(kCommunications, &communications, {});
    Rows kernels(*finder, strings_, 2, [&](int device, uint8_t name, int64_t begin_ns, int64_t end_ns) {
      finder->AddKernel(device, name, begin_ns, end_ns);
    });
    Read(kKernels, &kernels, {});
    Rows again(*finder, strings_, 2, [&](int device, uint8_t name, int64_t begin_ns, int64_t) {
      finder->AddKernelAgain(device, name, begin_ns);
    });
    Read(kKernels, &again, {});
  }

  // Devices are this dump's own: one process has a device, so that its operators are complete in one dump. False: there
  // are none.
  bool AddOperators(StepPartFinder* finder) {
    bool found = false;
    for (const Dump& dump : request_.dumps) {
      if (request_.cancelled()) return false;
      if (AreOfOneSession(info_, dump.info())) found |= AddOperatorsOf(dump, finder);
    }
    return found;
  }

  bool AddOperatorsOf(const Dump& dump, StepPartFinder* finder) {
    const RowFilter all;
    operators::LoadReport unused;
    const std::unique_ptr<operators::Model> model = operators::LoadModel(
        {.reader = dump.reader(), .info = dump.info(), .filter = all, .runtime_apis = false, .details = false,
         .clock_of = request_.clock, .progress = [this](uint64_t) { return !request_.cancelled(); }},
        &unused);
    if (model == nullptr || model->rows.empty()) return false;
    AddCommunicationOf(*model, finder);
    std::map<std::string_view, uint8_t> classes;
    const auto each = [&](const std::function<void(const operators::TaskRow&, uint8_t)>& add) {
      for (const operators::TaskRow& row : model->rows) {
        const operators::HostTask* const host = model->HostOf(row);
        if (host == nullptr || !host->compute) continue;
        const std::string_view name = model->OperatorName(*host);
        const auto [known, is_new] = classes.try_emplace(name, uint8_t{0});
        if (is_new) known->second = finder->ClassOf(name);
        add(row, known->second);
      }
    };
    each([&](const operators::TaskRow& row, uint8_t name) { finder->AddKernel(row.device, name, row.start_ns, row.end_ns); });
    each([&](const operators::TaskRow& row, uint8_t name) { finder->AddKernelAgain(row.device, name, row.start_ns); });
    return true;
  }

  // A graph that was running when the recording began has operations that the vendor's rule makes of the end of one
  // iteration and the begin of the next: the tasks of one launch in one step are what it is here.
  static void AddCommunicationOf(const operators::Model& model, StepPartFinder* finder) {
    std::map<std::pair<int32_t, int64_t>, std::pair<int64_t, int64_t>> times;  // by launch and step
    for (const operators::CommunicationTask& task : model.communication.tasks) {
      const operators::CommunicationOp& op = model.communication.ops[static_cast<size_t>(task.op)];
      const std::optional<int64_t> step = finder->StepBegin(op.device, task.start_ns);
      if (!task.master || !step) continue;
      const auto [of, is_new] = times.try_emplace({op.launch, *step}, task.start_ns, task.end_ns);
      if (is_new) continue;
      of->second = {std::min(of->second.first, task.start_ns), std::max(of->second.second, task.end_ns)};
    }
    for (const operators::CommunicationOp& op : model.communication.ops) {
      for (auto it = times.lower_bound({op.launch, INT64_MIN}); it != times.end() && it->first.first == op.launch;) {
        finder->AddCommunication(op.device, finder->ClassOf(model.TypeOf(op)), it->second.first, it->second.second);
        it = times.erase(it);
      }
    }
  }

  // Damage is reported when the files are exported.
  void Read(std::string_view base, BatchSink* rows, const std::function<void(const Event&)>& event) {
    for (const Place& place : info_.places) {
      const DataFile* const file = FileOf(place, base);
      const DecoderSpec* const spec = file == nullptr ? nullptr : request_.find(base, place.kind, place.chip);
      if (spec == nullptr) continue;
      DecodeContext context;
      context.dump = &info_;
      context.place = &place;
      context.file = file;
      context.clock = request_.clock(place);
      context.strings = &strings_;
      context.rows = rows;
      context.event = event;
      const std::unique_ptr<Decoder> decoder = spec->make(context);
      FileFeeder feeder(request_.dump->reader(), RecordSizeOf(*spec, place), &buffer_,
                        [this](uint64_t) { return !request_.cancelled(); });
      feeder.Run(*file, decoder.get());
    }
  }

  const StepPartsRequest& request_;
  const DumpInfo& info_;
  Strings strings_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::unique_ptr<StepPartFinder> FindStepParts(const StepPartsRequest& request) { return Pass(request).Run(); }

}  // namespace profd::exporting
