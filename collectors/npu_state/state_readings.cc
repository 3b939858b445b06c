#include "collectors/npu_state/state_readings.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "driver/rooted_fs.h"

namespace profd {
namespace {

// By number; the last one for faults without a severity: codes that are not among the events.
constexpr std::array<std::string_view, 5> kSeverities = {"warning", "minor", "major", "critical",
                                                         "unknown"};
constexpr size_t kUnknownSeverity = 4;
static_assert(kSeverities.size() == kDcmiSeverities);
// By DcmiFaultChange.
constexpr std::array<std::string_view, kDcmiFaultChanges> kAssertions = {"recovered", "raised",
                                                                         "one_off"};
constexpr uint8_t kRaised = 1;

// By DCMI's number (dcmi-and-metrics 1.2, topology).
constexpr std::array<std::string_view, 10> kTopologies = {
    "self", "sys", "phb", "hccs", "pxb", "pix", "sio", "hccs_sw", "ub", "unknown"};

std::string NumaNode(const RootedFs& sys, const DcmiDevice& device) {
  if (device.pci_bus_id.empty()) return {};
  auto text = sys.ReadFile(fmt::format("bus/pci/devices/{}/numa_node", device.pci_bus_id), 64);
  int node = -1;
  if (!text.ok() || !ParseNumber(Trim(*text), &node) || node < 0) return {};
  return std::to_string(node);
}

// A severity no driver knows gets a line only when one turns up, or if codes are all there is.
bool IsShown(size_t severity, uint64_t count, bool events_known, bool codes_known) {
  if (severity != kUnknownSeverity) return events_known;
  return events_known ? count > 0 : codes_known;
}

}  // namespace

StateReadings::StateReadings(SlotOwner& identity, SlotOwner& owner, const DcmiDevice& device,
                             const RootedFs& sys, const ProcessNames* names_or_null)
    : owner_(owner), faults_(owner), names_or_null_(names_or_null), processes_(owner) {
  for (size_t i = 0; i < fault_counts_.size(); ++i) {
    fault_counts_[i] = SeriesSlot(MetricByName("atlas_npu_faults_active"), kSeverities[i]);
  }
  for (size_t severity = 0; severity < kDcmiSeverities; ++severity) {
    for (size_t change = 0; change < kDcmiFaultChanges; ++change) {
      fault_events_[severity][change] = SeriesSlot(MetricByName("atlas_npu_fault_events_total"),
                                                   kSeverities[severity], kAssertions[change]);
    }
  }
  const std::string logic_id = std::to_string(device.logical_id);
  const std::string card = std::to_string(device.card);
  const std::string chip = std::to_string(device.chip);
  const std::string chip_name = device.chip_name.starts_with(device.chip_type)
                                    ? device.chip_name
                                    : device.chip_type + device.chip_name;
  // The label on a 310P's card names a board.
  const std::string& model = !device.product_type.empty() ? device.product_type
                             : !device.model.empty()      ? device.model
                             : !device.product.empty()    ? device.product
                                                          : device.npu_name;
  const std::string numa_node = NumaNode(sys, device);
  const std::array<std::string_view, 11> labels = {
      logic_id,
      card,
      chip,
      model,
      chip_name,
      device.chip_version,
      device.serial,
      device.pci_bus_id,
      device.board_id,
      "",  // firmware: libdcmi's query for it is not among those we know
      numa_node};
  info_ = identity.Intern(MetricByName("atlas_npu_info"), labels);
}

DcmiAnswer<unsigned> StateReadings::Medium(DevicePass& pass) {
  auto health = pass.Ask(&DcmiService::Health);
  pass.Put(health_, health);
  ReadFaults(pass);
  ReadProcesses(pass);
  return health;
}

void StateReadings::ReadFaults(DevicePass& pass) {
  constexpr MetricId kFault = MetricByName("atlas_npu_fault_active");
  auto codes = pass.Ask(&DcmiService::ErrorCodes);
  auto events = pass.Ask(&DcmiService::CurrentFaults);
  std::array<unsigned, kDcmiSeverities> counts{};
  faults_.BeginRound();
  auto emit = [&](uint32_t code, size_t severity, std::string_view name) {
    if (faults_.Seen({code, severity})) return false;
    const SeriesId series = faults_.Use({code, severity}, kFault, [&] {
      return std::array<std::string, 3>{fmt::format("0x{:08X}", code),
                                        std::string(kSeverities[severity]), std::string(name)};
    });
    pass.Emit(series, 1);
    return true;
  };
  // Faults that are still active keep what the last list of events said of them.
  auto with_severity = [&](uint32_t code) {
    bool known = false;
    for (size_t i = 0; i < kUnknownSeverity; ++i) known = known || faults_.Seen({code, i});
    if (known) return true;
    for (size_t i = 0; i < kUnknownSeverity; ++i) {
      if (!faults_.Knows({code, i})) continue;
      emit(code, i, "");
      ++counts[i];
      known = true;
    }
    return known;
  };
  for (size_t i = 0; events.ok() && i < events.value.count; ++i) {
    const DcmiFault& fault = events.value.faults[i];
    if (fault.assertion != kRaised) continue;
    const size_t severity = std::min<size_t>(fault.severity, kUnknownSeverity);
    ++counts[severity];
    emit(fault.code, severity, fault.name.data());
  }
  for (size_t i = 0; codes.ok() && i < codes.value.count; ++i) {
    const uint32_t code = codes.value.codes[i];
    if (!with_severity(code) && emit(code, kUnknownSeverity, "")) ++counts[kUnknownSeverity];
  }
  faults_.EndRound();
  for (size_t i = 0; i < counts.size(); ++i) {
    pass.Put(fault_counts_[i], IsShown(i, counts[i], events.ok(), codes.ok()), counts[i]);
  }
  PutFaultEvents(pass, events.ok(), codes.ok());
}

void StateReadings::PutFaultEvents(DevicePass& pass, bool events_known, bool codes_known) {
  if (pass.abandoned()) return;
  const DcmiFaultEventCounts counts = pass.dcmi().FaultEvents(pass.device());
  for (size_t severity = 0; severity < kDcmiSeverities; ++severity) {
    for (size_t change = 0; change < kDcmiFaultChanges; ++change) {
      const uint64_t count = counts[severity][change];
      const bool shown = IsShown(severity, count, events_known, codes_known);
      pass.PutCount(fault_events_[severity][change], shown, count);
    }
  }
}

void StateReadings::ReadProcesses(DevicePass& pass) {
  constexpr MetricId kMemory = MetricByName("atlas_npu_process_memory_bytes");
  auto list = pass.Ask(&DcmiService::Processes);
  pass.Put(process_count_, list.ok(), list.value.count);
  processes_.BeginRound();
  std::set<int> pids;
  for (size_t i = 0; list.ok() && i < list.value.count; ++i) {
    const abi::DcmiProcMemInfo& process = list.value.processes[i];
    if (process.proc_id <= 0 || !pids.insert(process.proc_id).second) continue;
    const ProcessName name =
        names_or_null_ == nullptr ? ProcessName{} : names_or_null_->Of(process.proc_id);
    std::array<std::string, 3> labels = {std::to_string(process.proc_id), name.job, name.container};
    const SeriesId series = processes_.Use(labels, kMemory, [&] { return labels; });
    pass.Emit(series, static_cast<double>(process.proc_mem_usage));
  }
  processes_.EndRound();
}

void StateReadings::Slow(DevicePass& pass, std::span<const DcmiDevice> all) {
  ReadTopology(pass, all);
}

void StateReadings::ReadTopology(DevicePass& pass, std::span<const DcmiDevice> all) {
  neighbours_.resize(all.size());
  for (const DcmiDevice& peer : all) {
    if (peer.index == pass.device().index) continue;
    Neighbour& neighbour = neighbours_[static_cast<size_t>(peer.index)];
    if (neighbour.epoch != owner_.epoch()) {
      auto topology = pass.AskTopology(peer);
      if (topology.code == abi::kDcmiNotSupported) neighbour = {kNoSeries, owner_.epoch()};
      if (!topology.ok()) continue;
      const size_t type = topology.value >= 0 && topology.value < 10
                              ? static_cast<size_t>(topology.value)
                              : kTopologies.size() - 1;
      const std::string peer_npu = std::to_string(peer.physical_id);
      const std::array<std::string_view, 2> labels = {peer_npu, kTopologies[type]};
      neighbour = {owner_.Intern(MetricByName("atlas_npu_topology_info"), labels), owner_.epoch()};
    }
    if (neighbour.series != kNoSeries) pass.Emit(neighbour.series, 1);
  }
}

}  // namespace profd
