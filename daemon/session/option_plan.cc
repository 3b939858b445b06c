#include "daemon/session/option_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/text.h"
#include "collectors/channel_options.h"
#include "driver/abi/hal_abi.h"
#include "profd/v1/profd.pb.h"
#include "proto/options/options_message.h"

namespace profd {
namespace {

using options::Option;
using options::Origin;
using options::Type;

// What a node without devices refuses beside everything that is measured at a device
// (driver-abi 4.3, "general server").
constexpr auto kNeedDevice =
    std::to_array<std::string_view>({"training_trace", "aicpu", "aic_metrics", "l2"});

bool ListsAny(std::span<const DeviceInfo> devices, std::initializer_list<uint32_t> channels) {
  return std::ranges::any_of(devices, [&](const DeviceInfo& device) {
    return std::ranges::any_of(channels, [&](uint32_t channel) {
      return std::ranges::find(device.channels, channel) != device.channels.end();
    });
  });
}

bool AreAll(std::span<const DeviceInfo> devices, unsigned chip_id) {
  return std::ranges::all_of(devices, [chip_id](const DeviceInfo& device) {
    return device.chip_id == static_cast<int>(chip_id);
  });
}

// Does the collector start a channel of the device for the option alone?
bool StartsFor(const CollectorEntry& entry, const Option& option, const DeviceInfo& device) {
  if (entry.plan == nullptr) return true;
  ChannelOptions alone;
  SetOption(*entry.spec, *FindOption(*entry.spec, option.key), 1, &alone);
  return !entry.plan(device, alone).empty();
}

// Why no collector does anything for the option here; empty when one does.
std::string WhyNot(const Option& option, std::span<const DeviceInfo> devices,
                   std::span<const CollectorEntry> collectors, const ProbeCollector& probe) {
  std::vector<std::string> reasons;
  auto can = [&](const CollectorEntry& entry, const DeviceInfo* device) {
    Status status = probe(entry, device);
    if (status.ok()) return true;
    if (std::ranges::find(reasons, status.message()) == reasons.end()) {
      reasons.push_back(status.message());
    }
    return false;
  };
  bool known = false;
  for (const CollectorEntry& entry : collectors) {
    if (FindOption(*entry.spec, option.key) == nullptr) continue;
    known = true;
    if (entry.spec->source != CollectorSource::kChannel) {
      if (can(entry, nullptr)) return {};
      continue;
    }
    for (const DeviceInfo& device : devices) {
      if (can(entry, &device) && StartsFor(entry, option, device)) return {};
    }
  }
  if (!known) return "this version of profd has no collector for it";
  return fmt::format("{}", fmt::join(reasons, "; "));
}

// Only of options that turn something on, or parameterise something, at devices or the host.
bool IsCollected(const Option& option) {
  if (option.origin == Origin::kDevice) return true;
  return option.origin == Origin::kHost && option.type == Type::kList;
}

// Effective rates, and who runs at them.
using Rates = std::map<double, std::set<std::string_view>>;

Rates RatesOf(const Option& option, double hz, std::span<const DeviceInfo> devices,
              std::span<const CollectorEntry> collectors) {
  Rates rates;
  for (const CollectorEntry& entry : collectors) {
    const CollectorOption* use = FindOption(*entry.spec, option.key);
    if (use == nullptr || use->use == OptionUse::kChoice || entry.plan == nullptr) continue;
    ChannelOptions channel;
    SetOption(*entry.spec, *use, hz, &channel);
    for (const DeviceInfo& device : devices) {
      for (const ChannelRequest& request : entry.plan(device, channel)) {
        if (request.effective_hz > 0) rates[request.effective_hz].insert(entry.spec->name);
      }
    }
  }
  return rates;
}

bool IsOff(std::string_view value) { return value.empty() || value == "off"; }

}  // namespace

ProbeCollector ProbeOn(const Host& host) {
  return [&host](const CollectorEntry& entry, const DeviceInfo* device) {
    if (device == nullptr) return entry.probe_host(host);
    return device->usable.ok() ? entry.probe_device(host, *device) : device->usable;
  };
}

options::NodeSupport SupportOf(std::span<const DeviceInfo> concerned,
                               std::span<const CollectorEntry> collectors,
                               const ProbeCollector& probe, std::string_view no_devices,
                               std::span<const DeviceInfo> maybe) {
  options::NodeSupport support;
  // A device of which nothing can be read, as one that is lost, must not forbid what the others can.
  std::vector<DeviceInfo> devices(concerned.begin(), concerned.end());
  if (std::erase_if(devices, [](const DeviceInfo& device) { return device.channels.empty(); }) == concerned.size()) {
    devices.assign(concerned.begin(), concerned.end());
  }
  const std::span<const DeviceInfo> of_processes = devices.empty() ? maybe : std::span<const DeviceInfo>(devices);
  for (const DeviceInfo& device : of_processes) {
    auto known = std::ranges::find(support.chip_ids, device.chip_id);
    if (known != support.chip_ids.end()) continue;
    support.chip_ids.push_back(device.chip_id);
    support.chip_names.push_back(device.chip_name.empty() ? "this chip" : device.chip_name);
  }
  auto lack = [&support](std::string_view key, std::string why) {
    if (!why.empty()) support.lacking.emplace(std::string(key), std::move(why));
  };
  for (const Option& option : options::Table()) {
    // What only one chip has is refused by the check itself, with a better reason.
    if (option.type == Type::kCycles && !AreAll(devices, abi::kChip910B)) continue;
    if (option.origin == Origin::kDevice && devices.empty()) {
      lack(option.key, std::string(no_devices));
    } else if (IsCollected(option)) {
      lack(option.key, WhyNot(option, devices, collectors, probe));
    }
  }
  if (of_processes.empty()) {
    for (std::string_view key : kNeedDevice) lack(key, std::string(no_devices));
  } else if (!ListsAny(of_processes, {abi::kChannelTsfwL2, abi::kChannelSocPmu})) {
    lack("l2", "no L2 cache channel (47 or 134)");
  }
  return support;
}

options::CheckResult CheckOptionsOf(const v1::SessionSpec& spec, const options::NodeSupport& support) {
  options::CheckRequest check;
  for (const v1::CollectorRequest& collector : spec.collectors()) check.collectors.push_back(collector.name());
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
  check.given = options::FromMessage(spec.options());
  if (!spec.options_json().empty()) {
    options::ParseJson(spec.options_json(), &check.given, &problems);
  }
  // The PyTorch switches stand for a set with defaults of its own, once one of them is given.
  if (!spec.acl_switches().empty()) {
    options::FromAclSwitches({spec.acl_switches().begin(), spec.acl_switches().end()}, true,
                             &check.given, &problems, &warnings);
  }
  check.has_process = !spec.target().pids().empty() || !spec.target().job_id().empty();
  check.node = &support;
  check.best_effort = spec.best_effort();
  options::CheckResult result = options::Check(check);
  problems.insert(problems.end(), std::make_move_iterator(result.problems.begin()),
                  std::make_move_iterator(result.problems.end()));
  warnings.insert(warnings.end(), std::make_move_iterator(result.warnings.begin()),
                  std::make_move_iterator(result.warnings.end()));
  result.problems = std::move(problems);
  result.warnings = std::move(warnings);
  return result;
}

OptionAims AimsOf(const options::OptionSet& set) {
  OptionAims aims;
  for (const options::Effective& effective : set.effective) {
    if (!set.Asked(effective.key)) continue;
    const Option* option = options::Find(effective.key);
    if (option != nullptr && IsCollected(*option) && option->type != Type::kChoice) {
      aims.node = true;
    }
    if (options::IsApplication(effective.key)) aims.application = true;
  }
  return aims;
}

std::vector<Problem> CheckUserRates(const options::OptionSet& set, double max_hz) {
  std::vector<Problem> problems;
  for (const Option& option : options::Table()) {
    if (option.type != Type::kFrequency || !set.Asked(option.key)) continue;
    if (max_hz <= 0 || set.Number(option.key) <= max_hz) continue;
    problems.push_back({.kind = Problem::Kind::kInvalid,
                        .field = std::string(option.key),
                        .value = set.Text(option.key),
                        .text = fmt::format("at most {} Hz here for users who are no "
                                            "administrators (limits.max_user_hz)",
                                            FormatHz(max_hz))});
  }
  return problems;
}

void RoundRates(std::span<const DeviceInfo> devices, std::span<const CollectorEntry> collectors,
                std::vector<options::Effective>* effective) {
  for (options::Effective& one : *effective) {
    const Option* option = options::Find(one.key);
    if (option == nullptr || option->origin != Origin::kDevice ||
        option->type != Type::kFrequency || IsOff(one.value)) {
      continue;
    }
    double hz = 0;
    if (!ParseNumber(one.value, &hz)) continue;
    Rates rates = RatesOf(*option, hz, devices, collectors);
    if (rates.empty() || (rates.size() == 1 && rates.begin()->first == hz)) continue;
    one.value = FormatHz(rates.begin()->first);
    std::string note = fmt::format("every {:.6g} ms", 1000 / rates.begin()->first);
    for (auto rate = std::next(rates.begin()); rate != rates.end(); ++rate) {
      note += fmt::format("; {} every {:.6g} ms", fmt::join(rate->second, ", "),
                          1000 / rate->first);
    }
    AddNote(note, &one);
  }
}

void AddNote(std::string_view note, options::Effective* effective) {
  if (note.empty()) return;
  effective->note.append(effective->note.empty() ? "" : "; ").append(note);
}

std::string FormatHz(double hz) { return fmt::format("{:.6g}", hz); }

std::map<std::string, std::string> ApplicationOptions(const options::OptionSet& set) {
  std::map<std::string, std::string> result;
  for (const options::Effective& effective : set.effective) {
    if (!options::IsApplication(effective.key) || IsOff(effective.value)) continue;
    result.emplace(effective.key, effective.value);
  }
  return result;
}

attach::CollectKinds CollectKindsOf(std::string_view option, std::string_view value) {
  using enum attach::CollectKind;
  if (option == "task_trace" || option == "task_time") {
    // Launch and execution; from l1 on what the operators are besides, collectives among them.
    if (value == "l0") return {kKernel, kNodeApi};
    return {kKernel, kNodeApi, kCommunication};
  }
  // The parts of the steps that processes mark are found in what ran in them (export/step_parts.h).
  if (option == "training_trace" || option == "fp_point" || option == "bp_point") return {kKernel, kCommunication};
  if (option == "hccl") return {kCommunication};
  if (option == "runtime_api") return {kRuntimeApi, kMemory};
  if (option == "ACL_PROF_ACL_API") return {kAclApi};
  if (option == kMarksOption) return {kMarker};
  return {};
}

constexpr std::string_view kDefaultOnly = "a default only: not recorded unless it is requested";

NotServed WhyNotServed(std::string_view option, std::string_view value, const v1::SessionSpec& spec) {
  constexpr auto kOfAclprof =
      std::to_array<std::string_view>({"aic_metrics", "aicpu", "l2"});
  const bool provider_off = spec.provider() == v1::SessionSpec::PROVIDER_OFF;
  if (option == "training_trace") {
    if (provider_off) return {true, "the steps that processes mark, without their parts: the session's provider is off"};
    // Implied by task_trace: requested itself it is collected.
    return {true, "the steps that processes mark; the iterations of GE only aclprof records: use provider aclprof, or request it"};
  }
  if (provider_off && !CollectKindsOf(option, "on").empty()) return {false, "the session's provider is off"};
  if (option == "fp_point" || option == "bp_point") {
    return {false, "names an operator, and the session records none: task_time is off"};
  }
  if (std::ranges::find(kOfAclprof, option) != kOfAclprof.end()) {
    if (options::NamesRegisters(option, value)) return {false, options::kNoRegisters};
    if (provider_off) return {false, "only aclprof measures it, and the session's provider is off"};
    if (spec.provider() == v1::SessionSpec::PROVIDER_MSPTI) {
      return {false, "only aclprof measures it, and the session's provider is mspti; use auto or aclprof"};
    }
    if (spec.no_dump()) return {false, "only aclprof measures it, into files, and the session has no dump"};
  }
  return {false, kDefaultOnly};
}

bool CanServe(std::string_view option, std::string_view value, const v1::SessionSpec& spec) {
  return WhyNotServed(option, value, spec).why == kDefaultOnly;
}

}  // namespace profd
