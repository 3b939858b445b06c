// From the options of a request to what they turn on. Everything about the options themselves (keys,
// ranges, conflicts) is proto/options' business; here is what they mean on this node. Pure functions.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "collectors/collector.h"
#include "proto/attach/collecting.h"
#include "proto/options/options.h"

namespace profd {

namespace v1 {
class ProfilingOptions;
class SessionSpec;
}  // namespace v1

// Can the collector run on the device (null: on the host)?
using ProbeCollector = std::function<Status(const CollectorEntry&, const DeviceInfo* device)>;
// The real one; `host` outlives it.
ProbeCollector ProbeOn(const Host& host);

inline constexpr std::string_view kNoDevices = "no devices on this node";

// What these devices and this host can do for options; `no_devices` = why there are none, if so. Then what processes
// collect is checked against `maybe`: the devices that they may use, where theirs are not known.
options::NodeSupport SupportOf(std::span<const DeviceInfo> devices,
                               std::span<const CollectorEntry> collectors,
                               const ProbeCollector& probe,
                               std::string_view no_devices = kNoDevices,
                               std::span<const DeviceInfo> maybe = {});

// The one check behind StartSession and CheckOptions: all three forms of giving an option.
options::CheckResult CheckOptionsOf(const v1::SessionSpec& spec_untrusted, const options::NodeSupport& support);

// Does the request ask for anything at the devices or the host, or for data of the application?
struct OptionAims {
  bool node = false;
  bool application = false;
};
OptionAims AimsOf(const options::OptionSet& set);

// Rates that were asked for above what users may have (limits.max_user_hz); 0 = no limit.
std::vector<Problem> CheckUserRates(const options::OptionSet& set, double max_hz);

// Rates of options of the devices as these can carry them out: full milliseconds, and no less than
// the channel's floor (driver-abi 4.1).
void RoundRates(std::span<const DeviceInfo> devices, std::span<const CollectorEntry> collectors,
                std::vector<options::Effective>* effective);
void AddNote(std::string_view note, options::Effective* effective);
std::string FormatHz(double hz);

// What serves an option of the application with this value; empty: MSPTI has nothing for it.
attach::CollectKinds CollectKindsOf(std::string_view option, std::string_view value);
// Why an application that is attached does not serve an option that is on, with this value, and not collected: the first
// condition that fails.
struct NotServed {
  bool steps = false;  // but for the steps that processes mark
  std::string_view why;
};
NotServed WhyNotServed(std::string_view option, std::string_view value, const v1::SessionSpec& spec);
// Could one serve it in this session?
bool CanServe(std::string_view option, std::string_view value, const v1::SessionSpec& spec);

using options::kNeedsProcess;
// Of an application's data this much is recorded by profd itself.
inline constexpr std::string_view kMarksOption = "msproftx";
inline constexpr std::string_view kStacksOption = "TORCH_CALL_STACK";
inline constexpr std::string_view kStacksDetail = "ranges of modules, and sampled call stacks";
inline constexpr std::string_view kMarksDetail = "marks of attached processes";  // of its outcome

// The options whose data come from inside the application, with their values; those that are off
// are left out.
std::map<std::string, std::string> ApplicationOptions(const options::OptionSet& set);

}  // namespace profd
