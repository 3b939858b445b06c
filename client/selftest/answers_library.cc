// Answers from the vendor's libraries. Each is opened by a process of its own, which may crash, hang and print.
#include <fmt/format.h>

#include <algorithm>

#include "client/selftest/selftest.h"

namespace profd::client::selftest {
namespace {

// In a container, or as another user, there may be none of it. `verdict`: of a question that is about just that it is no.
std::optional<Answer> NotOpened(const ProbeAnswer& answer, std::string_view library, Verdict verdict = Verdict::kOpen) {
  if (!answer.status.ok()) return Open(answer.status.message());
  const std::string error = answer.First("error");
  if (error.empty()) return std::nullopt;
  return Answer{verdict, fmt::format("{} does not open here: run it as the user who trains, with the vendor's environment", library), {{"error", error}}};
}

Answer AskSymbols(const Facts& facts, const std::string& library, std::vector<std::string> symbols, Verdict not_opened = Verdict::kOpen) {
  symbols.insert(symbols.begin(), {"library", library});
  const ProbeAnswer answer = facts.probe(symbols);
  if (auto none = NotOpened(answer, library, not_opened)) return *std::move(none);
  const std::vector<std::string> lacks = answer.All("lacks");
  const Json evidence = {{"path", answer.First("path")}, {"has", answer.All("has")}, {"lacks", lacks}};
  if (lacks.empty()) return {Verdict::kYes, answer.First("path"), evidence};
  return {Verdict::kNo, fmt::format("{} lacks {}", library, lacks.front()), evidence};
}

// "3 version=0x500 code=0 physical=3 physical_code=0 split=0"
uint64_t Field(const std::string& line, std::string_view name) {
  const size_t at = line.find(fmt::format(" {}=", name));
  if (at == std::string::npos) return 0;
  const std::string text = line.substr(at + name.size() + 2, 20);
  return std::strtoull(text.c_str(), nullptr, 0);
}

Json DevicesJson(const std::vector<std::string>& devices) {
  Json list = Json::array();
  for (const std::string& line : devices) {
    list.push_back({{"device", std::strtoull(line.c_str(), nullptr, 10)}, {"version", Field(line, "version")}, {"chip_id", (Field(line, "version") >> 8) & 0xff},
                    {"code", Field(line, "code")}, {"physical", Field(line, "physical")}, {"split_mode", Field(line, "split")}});
  }
  return list;
}

Answer AskStart(const Facts& facts, bool set) {
  if (facts.node.devices().empty()) return Open("profd has no devices here, so none is tried");
  const v1::Device& first = facts.node.devices(0);
  const std::string device = std::to_string(first.id());
  Json starts = Json::array();
  size_t started = 0;
  size_t unanswered = 0;
  for (const v1::Channel& listed : first.channels()) {
    // What the driver does not list it refuses for that.
    if (listed.id() != 44 && listed.id() != 45 && listed.id() != 50) continue;
    const std::string channel = std::to_string(listed.id());
    std::vector<std::string> arguments = {"start", device, channel};
    if (set) arguments.emplace_back("set");
    const ProbeAnswer answer = facts.probe(arguments);
    if (auto none = NotOpened(answer, set ? "libascend_hal.so or libascendcl.so" : "libascend_hal.so")) return *std::move(none);
    const std::string code = answer.First("code");
    started += code == "0" ? 1 : 0;
    // Another program has it; a virtual function has none: neither is about this process.
    unanswered += code == "-10" || code == "-11" ? 1 : 0;
    starts.push_back({{"channel", channel}, {"code", code}, {"text", answer.First("text")}, {"stop", answer.First("stop")},
                      {"aclInit", answer.First("aclInit")}, {"aclrtSetDevice", answer.First("aclrtSetDevice")}});
  }
  if (starts.empty()) return Open("the driver lists none of them");
  std::string codes;
  for (const Json& start : starts) codes += fmt::format("{}{}: {}", codes.empty() ? "" : ", ", start["channel"].get<std::string>(), start["text"].get<std::string>());
  const Json evidence = {{"device", device}, {"starts", starts}};
  if (started == starts.size()) return {Verdict::kYes, codes, evidence};
  if (started + unanswered == starts.size()) return {Verdict::kOpen, codes, evidence};
  return {Verdict::kNo, codes, evidence};
}

}  // namespace

Answer AskHalForUsers(const Facts& facts) {
  const ProbeAnswer answer = facts.probe({"hal"});
  if (auto none = NotOpened(answer, "libascend_hal.so", Verdict::kNo)) return *std::move(none);
  const std::string devices = answer.First("devices");
  const Json evidence = {{"path", answer.First("path")}, {"api", answer.First("api")}, {"devices", DevicesJson(answer.All("device"))},
                         {"lacks", answer.All("lacks")}, {"code", answer.First("code")}};
  if (!facts.reached.ok()) return {Verdict::kOpen, fmt::format("it shows {}; profd does not answer to compare", devices), evidence};
  const bool same = devices == std::to_string(facts.node.devices_size());
  return {same ? Verdict::kYes : Verdict::kNo, fmt::format("it shows {}, profd has {}", devices, facts.node.devices_size()), evidence};
}

Answer AskWholeChips(const Facts& facts) {
  const ProbeAnswer answer = facts.probe({"hal"});
  if (auto none = NotOpened(answer, "libascend_hal.so")) return *std::move(none);
  const std::vector<std::string> devices = answer.All("device");
  if (devices.empty()) return Open("it shows no devices");
  const auto split = std::ranges::count_if(devices, [](const std::string& line) { return Field(line, "split") != 0; });
  return {split == 0 ? Verdict::kYes : Verdict::kNo, fmt::format("{} of {} are split", split, devices.size()), {{"devices", DevicesJson(devices)}}};
}

Answer AskMsptiThere(const Facts& facts) {
  return AskSymbols(facts, "libmspti.so", {"msptiSubscribe", "msptiUnsubscribe", "msptiActivityRegisterCallbacks", "msptiActivityEnable",
                                           "msptiActivityDisable", "msptiActivityFlushAll"}, Verdict::kNo);
}

// There is no version function; this one is there since 2026-05-28.
Answer AskMsptiNew(const Facts& facts) { return AskSymbols(facts, "libmspti.so", {"msptiActivityIsEnabled"}); }

Answer AskAclprofThere(const Facts& facts) {
  return AskSymbols(facts, "libmsprofiler.so", {"aclprofInit", "aclprofCreateConfig", "aclprofStart", "aclprofStop", "aclprofDestroyConfig", "aclprofFinalize"},
                    Verdict::kNo);
}

Answer AskObserver(const Facts& facts) {
  return AskSymbols(facts, "libprofapi.so", {"MsprofRegisterCallback", "MsprofRegisterProfileCallback", "profSetProfCommand"});
}

Answer AskObserverTaken(const Facts& facts) {
  const ProbeAnswer answer = facts.probe({"register"});
  if (auto none = NotOpened(answer, "libprofapi.so")) return *std::move(none);
  if (!answer.First("lacks").empty()) return {Verdict::kNo, "libprofapi.so lacks " + answer.First("lacks"), {{"path", answer.First("path")}}};
  const std::string code = answer.First("code");
  return {code == "0" ? Verdict::kYes : Verdict::kNo, "code " + code, {{"path", answer.First("path")}, {"code", code}}};
}

Answer AskOutsideStart(const Facts& facts) { return AskStart(facts, false); }

Answer AskOutsideStartSet(const Facts& facts) { return AskStart(facts, true); }

}  // namespace profd::client::selftest
