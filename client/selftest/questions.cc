#include "client/selftest/selftest.h"

#include <array>

namespace profd::client::selftest {
namespace {

constexpr auto kQuestions = std::to_array<Question>({
    {"hal_is_real", "Is the HAL the driver's, and no stub of the toolkit?", "driver-abi 1.1", Needs::kNothing, AskHalIsReal},
    {"hal_complete", "Does the HAL have every function that profd calls?", "driver-abi 1.2, 1.3", Needs::kNothing, AskHalComplete},
    {"hal_gates", "Is the HAL new enough for the clocks' frequencies (0x071905)?", "driver-abi 1.5", Needs::kNothing, AskHalGates},
    {"chips_known", "Does profd know the chips by the HAL's number (A3 modules, 310B)?", "in-application 10.7; driver-abi 2.3", Needs::kNothing, AskChipsKnown},
    {"logical_ids", "Are logical and physical ids the same?", "in-application 10.10", Needs::kNothing, AskLogicalIds},
    {"task_channels", "Does the driver list 44 and 50, which MSPTI opens?", "in-application 2.6; driver-abi 2.4", Needs::kNothing, AskTaskChannels},
    {"record_layouts", "Are the bytes of channels the records of the specification?", "driver-abi 3.6", Needs::kNothing, AskRecordLayouts},
    {"channels_free", "Are all channels free of other programs?", "driver-abi 1.4 (-10)", Needs::kNothing, AskChannelsFree},
    {"clock_pairs", "Is a device's clock tied to the host's within 1 ms?", "driver-abi 5.5", Needs::kNothing, AskClockPairs},
    {"calls_return", "Does every call of the driver return?", "driver-abi 1.2", Needs::kNothing, AskCallsReturn},
    {"device_nodes", "May the caller open the device nodes?", "driver-abi 8", Needs::kNothing, AskDeviceNodes},
    {"hal_for_users", "Does the HAL show a user's process the devices that profd has?", "in-application 10.10", Needs::kLibrary, AskHalForUsers},
    {"whole_chips", "Are the devices complete chips, not virtual ones?", "in-application 10.10", Needs::kLibrary, AskWholeChips},
    {"mspti_there", "Is there an MSPTI for training processes?", "in-application 2.2", Needs::kLibrary, AskMsptiThere},
    {"mspti_new", "Is it of 2026-05 or later?", "in-application 2.2, 10.12", Needs::kLibrary, AskMsptiNew},
    {"aclprof_there", "Is there an aclprof with the functions that profd calls?", "in-application 3.1", Needs::kLibrary, AskAclprofThere},
    {"observer", "Can a module register with libprofapi?", "in-application 4.5, 10.8", Needs::kLibrary, AskObserver},
    {"observer_taken", "Does libprofapi take a module with a foreign number?", "in-application 4.5, 10.8", Needs::kActive, AskObserverTaken},
    {"outside_start", "Does a process without a device start 44, 45 or 50?", "in-application 6, 10.1", Needs::kActive, AskOutsideStart},
    {"outside_start_set", "Does a process that has set the device?", "in-application 6, 10.1", Needs::kActive, AskOutsideStartSet},
    {"mspti_late", "Do kernels with names come from a process that already runs?", "in-application 10.3", Needs::kJob, AskMsptiLate},
    {"mspti_two", "Do two processes of one device get their records?", "in-application 10.2", Needs::kJob, AskMsptiTwo},
    {"mspti_keeps_up", "Do all records come at this job's rate?", "in-application 10.4", Needs::kJob, AskMsptiKeepsUp},
    {"mspti_records", "Are its records those of the specification?", "in-application 2.4, 10.12", Needs::kJob, AskMsptiRecords},
    {"mspti_beside", "Do sampling channels and MSPTI run beside each other?", "in-application 10.6", Needs::kJob, AskMsptiBeside},
    {"aclprof_thread", "Does aclprof start from a thread of its own while the job trains?", "in-application 10.9", Needs::kJob, AskAclprofThread},
    {"clock_steps", "Do MSPTI's times stay within 10 us of CLOCK_MONOTONIC_RAW for an hour?", "in-application 10.5", Needs::kPerson, AskClockSteps},
    {"graph_mode", "Are kernels of captured graphs right?", "in-application 10.11", Needs::kPerson, AskGraphMode},
});

}  // namespace

std::span<const Question> Questions() { return kQuestions; }

std::string_view WordOf(Verdict verdict) { return verdict == Verdict::kYes ? "yes" : verdict == Verdict::kNo ? "no" : "open"; }

std::string_view WordOf(Needs needs) {
  switch (needs) {
    case Needs::kNothing:
      return "profd";
    case Needs::kLibrary:
      return "library";
    case Needs::kActive:
      return "active";
    case Needs::kJob:
      return "job";
    case Needs::kPerson:
      return "person";
  }
  return "";
}

Answer Open(std::string why) { return {Verdict::kOpen, std::move(why), Json::object()}; }

Answer Ask(const Question& question, const Facts& facts) {
  if (question.needs == Needs::kActive && !facts.active) return Open("it opens a channel or changes something: profctl selftest --active");
  if (question.needs == Needs::kJob && (!facts.active || facts.job.empty())) return Open("it needs a training job: profctl selftest --active --job JOB");
  const bool looks_here = question.needs == Needs::kLibrary || question.needs == Needs::kActive || question.ask == AskDeviceNodes;
  if (looks_here && facts.remote) return Open("it looks at the machine profctl runs on: run it on the node");
  const bool needs_profd = question.needs == Needs::kNothing || question.needs == Needs::kJob;
  if (needs_profd && !facts.reached.ok() && question.ask != AskDeviceNodes) return Open("profd does not answer");
  return question.ask(facts);
}

std::string ProbeAnswer::First(std::string_view key) const {
  for (const auto& [name, value] : lines) {
    if (name == key) return value;
  }
  return {};
}

std::vector<std::string> ProbeAnswer::All(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : lines) {
    if (name == key) values.push_back(value);
  }
  return values;
}

}  // namespace profd::client::selftest
