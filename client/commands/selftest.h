// `profctl selftest`: what only a real node can answer, and a report of it to send back.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/context.h"
#include "client/selftest/selftest.h"

namespace profd::client {

struct SelftestOptions {
  // Also what starts a session, opens a channel or registers something.
  bool active = false;
  std::optional<std::string> job;
  // Ids of questions; empty = all.
  std::optional<std::string> only;
  std::optional<std::string> out;
  // Prints the questions and queries nothing.
  bool list = false;
};

// kExitOk when it was asked, whatever the answers are; kExitUnreachable when profd did not answer, kExitPartial when it
// was interrupted.
int RunSelftest(const Context& context, const SelftestOptions& options);

namespace selftest {

struct AnsweredQuestion {
  const Question* question = nullptr;
  Answer answer;
};
// What is sent back: no environment, no names of users, hosts or jobs.
Json ReportJson(const Facts& facts, const std::vector<AnsweredQuestion>& asked);
// Without names of home directories, of this host and of the job.
std::string Redacted(std::string text, const std::string& host, const std::string& job);

}  // namespace selftest
}  // namespace profd::client
