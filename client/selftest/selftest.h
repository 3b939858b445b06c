// What only a real node can answer: questions that the specifications of the driver and of the vendor's libraries leave
// open, each with a verdict and the evidence for it (profctl selftest).
//
// What is known is gathered first (gather.h); a question looks at it and decides. Only questions that need one of the
// vendor's libraries ask more: a process of its own opens it (probe.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/json.h"
#include "profd/v1/profd.pb.h"

namespace profd::client::selftest {

enum class Verdict { kYes, kNo, kOpen };
std::string_view WordOf(Verdict verdict);

struct Answer {
  Verdict verdict = Verdict::kOpen;
  // Why, or why it could not be found out and what to do for it.
  std::string why;
  // Numbers and names of the vendor's: what was seen, so that others can judge it.
  Json evidence = Json::object();
};

// What profd-probe printed: keys and values in their order.
struct ProbeAnswer {
  Status status;
  std::vector<std::pair<std::string, std::string>> lines = {};

  // Of the first line of that key; empty: there is none.
  std::string First(std::string_view key) const;
  std::vector<std::string> All(std::string_view key) const;
};

// A session of a few seconds that was started for this: as it ran, and its end.
struct Recorded {
  Status status;
  v1::Session running = {};
  v1::Session ended = {};
  // While it ran.
  v1::Node node = {};
  v1::GetActivityResponse activity = {};
  int64_t stop_ns = 0;
  // What of it stays on the node, and what to do about it; empty: nothing.
  std::string left = {};
};

struct Facts {
  // Whether profd answers; without it what follows is empty.
  Status reached;
  v1::Node node = {};
  std::vector<v1::Job> jobs = {};
  // profd is on another machine: what is found here is not about it.
  bool remote = false;
  // --active and --job.
  bool active = false;
  std::string job = {};
  // With --active: all devices, by the driver's channels.
  std::optional<Recorded> channels = {};
  // With --job: inside its processes, by MSPTI and by aclprof.
  std::optional<Recorded> mspti = {};
  std::optional<Recorded> aclprof = {};
  // Device nodes are below it.
  std::string dev = "/dev";
  std::function<ProbeAnswer(const std::vector<std::string>& arguments)> probe = {};
};

// What a question needs beside a daemon that answers.
enum class Needs { kNothing, kLibrary, kActive, kJob, kPerson };
std::string_view WordOf(Needs needs);

struct Question {
  std::string_view id;
  std::string_view text;
  // Where the specification leaves it open.
  std::string_view place;
  Needs needs = Needs::kNothing;
  Answer (*ask)(const Facts& facts) = nullptr;
};

// The table of all of them.
std::span<const Question> Questions();

// Answers one; what it needs and is missing is reported by the question's need.
Answer Ask(const Question& question, const Facts& facts);

// Open, with this reason.
Answer Open(std::string why);

// answers_node.cc: from what profd reports.
Answer AskHalIsReal(const Facts& facts);
Answer AskHalComplete(const Facts& facts);
Answer AskHalGates(const Facts& facts);
Answer AskChipsKnown(const Facts& facts);
Answer AskLogicalIds(const Facts& facts);
Answer AskTaskChannels(const Facts& facts);
Answer AskRecordLayouts(const Facts& facts);
Answer AskChannelsFree(const Facts& facts);
Answer AskClockPairs(const Facts& facts);
Answer AskCallsReturn(const Facts& facts);
Answer AskDeviceNodes(const Facts& facts);

// answers_library.cc: from the vendor's libraries, each in a process of its own.
Answer AskHalForUsers(const Facts& facts);
Answer AskWholeChips(const Facts& facts);
Answer AskMsptiThere(const Facts& facts);
Answer AskMsptiNew(const Facts& facts);
Answer AskAclprofThere(const Facts& facts);
Answer AskObserver(const Facts& facts);
Answer AskObserverTaken(const Facts& facts);
Answer AskOutsideStart(const Facts& facts);
Answer AskOutsideStartSet(const Facts& facts);

// answers_job.cc: from sessions inside a job's processes.
Answer AskMsptiLate(const Facts& facts);
Answer AskMsptiTwo(const Facts& facts);
Answer AskMsptiKeepsUp(const Facts& facts);
Answer AskMsptiRecords(const Facts& facts);
Answer AskMsptiBeside(const Facts& facts);
Answer AskAclprofThread(const Facts& facts);
Answer AskClockSteps(const Facts& facts);
Answer AskGraphMode(const Facts& facts);

}  // namespace profd::client::selftest
