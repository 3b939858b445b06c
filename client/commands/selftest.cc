#include "client/commands/selftest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "base/text.h"
#include "client/cli_message.h"
#include "client/commands/report.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/selftest/gather.h"
#include "client/selftest/probe.h"
#include "client/signals.h"

#ifndef PROFD_VERSION
#error "the build defines PROFD_VERSION"
#endif

namespace profd::client {

namespace selftest {
namespace {

constexpr int kReportVersion = 1;
// Shorter ones are parts of any text.
constexpr size_t kShortestName = 3;

// All texts in it.
void Redact(Json* json, const Facts& facts) {
  if (json->is_string()) {
    *json = Redacted(json->get<std::string>(), facts.node.hostname(), facts.job);
  } else if (json->is_structured()) {
    for (Json& each : *json) Redact(&each, facts);
  }
}

}  // namespace

std::string Redacted(std::string text, const std::string& host, const std::string& job) {
  for (const std::string_view home : {"/home/", "/Users/"}) {
    for (size_t at = text.find(home); at != std::string::npos; at = text.find(home, at + home.size())) {
      const size_t begin = at + home.size();
      text.replace(begin, std::min(text.find_first_of("/ \"':,;", begin), text.size()) - begin, "...");
    }
  }
  for (const auto& [name, instead] : {std::pair<const std::string&, std::string_view>(host, "HOST"), {job, "JOB"}}) {
    if (name.size() < kShortestName || instead.find(name) != std::string_view::npos) continue;
    for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + instead.size())) text.replace(at, name.size(), instead);
  }
  return text;
}

Json ReportJson(const Facts& facts, const std::vector<AnsweredQuestion>& asked) {
  Json answers = Json::array();
  for (const AnsweredQuestion& each : asked) {
    answers.push_back({{"id", each.question->id}, {"question", each.question->text}, {"place", each.question->place}, {"needs", WordOf(each.question->needs)},
                       {"answer", WordOf(each.answer.verdict)}, {"why", each.answer.why}, {"evidence", each.answer.evidence}});
  }
  const v1::DriverInfo& driver = facts.node.driver();
  Json report = {{"report", kReportVersion},
                 {"profctl", PROFD_VERSION},
                 {"profd", facts.node.version()},
                 {"build", facts.node.build()},
                 {"simulated", facts.node.simulated()},
                 {"active", facts.active},
                 {"with_job", !facts.job.empty()},
                 {"driver_version", driver.driver_version()},
                 {"hal_api_version", fmt::format("{:#08x}", driver.hal_api_version())},
                 {"dcmi_version", driver.dcmi_version()},
                 {"answers", std::move(answers)}};
  Redact(&report, facts);
  return report;
}

namespace {

// The questions of --only, or all; a problem for each id that is none.
std::vector<const Question*> Chosen(const std::optional<std::string>& only, std::vector<std::string>* problems) {
  std::set<std::string, std::less<>> wanted;
  std::vector<std::string_view> known;
  for (const Question& question : Questions()) known.push_back(question.id);
  Result<std::vector<std::string>> ids = ParseList(only.value_or(""));
  if (only && !ids.ok()) problems->push_back("--only: " + std::string(ids.status().message()));
  for (const std::string& id : ids.ok() ? *ids : std::vector<std::string>()) {
    if (std::ranges::find(known, id) == known.end()) {
      const std::string_view nearest = Nearest(id, known);
      problems->push_back(fmt::format("--only: there is no question \"{}\"{}; --list prints all", id, nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest)));
    }
    wanted.insert(id);
  }
  std::vector<const Question*> chosen;
  for (const Question& question : Questions()) {
    if (wanted.empty() || wanted.contains(question.id)) chosen.push_back(&question);
  }
  return chosen;
}

int PrintQuestions(const Context& context, const std::vector<const Question*>& questions) {
  if (context.json) {
    Json list = Json::array();
    for (const Question* each : questions) list.push_back({{"id", each->id}, {"question", each->text}, {"place", each->place}, {"needs", WordOf(each->needs)}});
    PrintJson(context, {{"questions", std::move(list)}});
    return kExitOk;
  }
  Table table({"ID", "NEEDS", "QUESTION", "PLACE"});
  for (const Question* each : questions) {
    table.AddRow({std::string(each->id), std::string(WordOf(each->needs)), std::string(each->text), std::string(each->place)});
  }
  table.Print(context.io.out, context.io.out_color());
  return kExitOk;
}

// Before anything starts. A daemon that does not answer is reported with what was asked all the same.
Status CheckJob(const Context& context, const std::string& job) {
  v1::ListJobsRequest request;
  request.set_job_id(job);
  const auto listed = context.api.ListJobs(request);
  if (!listed.ok()) return Status::Ok();
  const auto& jobs = listed->jobs();
  if (std::ranges::any_of(jobs, [&job](const v1::Job& each) { return each.job_id() == job; })) return Status::Ok();
  return SeeIfNotFound(NotFound(fmt::format("job {}: no process of it runs on this node", job)), "profctl jobs");
}

Tone ToneOf(Verdict verdict) { return verdict == Verdict::kYes ? Tone::kGood : verdict == Verdict::kNo ? Tone::kWarning : Tone::kFaint; }

void PrintAnswers(const Context& context, const Facts& facts, const std::vector<AnsweredQuestion>& asked) {
  Table table({"ID", "ANSWER", "QUESTION", "WHY"});
  size_t counts[3] = {};
  for (const AnsweredQuestion& each : asked) {
    ++counts[static_cast<size_t>(each.answer.verdict)];
    table.AddRow({std::string(each.question->id), Cell(std::string(WordOf(each.answer.verdict)), ToneOf(each.answer.verdict)), std::string(each.question->text),
                  Printable(each.answer.why)});
  }
  table.Print(context.io.out, context.io.out_color());
  context.io.out << fmt::format("{} yes, {} no, {} open{}\n", counts[0], counts[1], counts[2], facts.node.simulated() ? "; of the simulator: nothing to send back" : "");
}

}  // namespace
}  // namespace selftest

int RunSelftest(const Context& context, const SelftestOptions& options) {
  std::vector<std::string> problems;
  const std::vector<const selftest::Question*> questions = selftest::Chosen(options.only, &problems);
  if (options.job && !options.active) problems.emplace_back("--job needs --active: it starts sessions inside the job's processes");
  if (options.job && options.job->empty()) problems.emplace_back("--job: name the job");
  if (options.out && ::access(options.out->c_str(), F_OK) == 0) problems.push_back(fmt::format("-o {}: it exists; name another file", *options.out));
  if (!problems.empty()) return UsageError(context.io, "selftest", problems);
  if (options.list) return selftest::PrintQuestions(context, questions);
  if (options.out) {
    if (const Status writable = CheckWritable(*options.out, false); !writable.ok()) return Fail(context, writable);
  }
  if (options.job) {
    if (const Status there = selftest::CheckJob(context, *options.job); !there.ok()) return Fail(context, there);
  }
  SignalWatch signals;
  const auto go_on = [&signals] { return signals.Wait(100).si_signo == 0 && signals.caught() == 0; };
  const auto any = [&questions](selftest::Needs needs) {
    return std::ranges::any_of(questions, [needs](const selftest::Question* each) { return each->needs == needs; });
  };
  const bool is_root = ::geteuid() == 0;
  const selftest::GatherOptions gather{options.active, any(selftest::Needs::kNothing),
                                       any(selftest::Needs::kActive) && !is_root && !context.endpoint.remote(),
                                       any(selftest::Needs::kJob) ? options.job.value_or("") : ""};
  for (const std::string& line : selftest::PlanOf(gather)) context.io.err << "profctl: starts " << Printable(line) << '\n' << std::flush;
  selftest::Facts facts = selftest::Gather(context, gather, go_on);
  facts.probe = [is_root, program = selftest::FindProbe()](const std::vector<std::string>& arguments) {
    if (is_root) return selftest::ProbeAnswer{PermissionDenied("not as root: run profctl selftest as the user who trains")};
    return selftest::RunProbe(program, arguments);
  };
  for (const std::optional<selftest::Recorded>& session : {facts.channels, facts.mspti, facts.aclprof}) {
    if (session && !session->left.empty()) Warn(context, session->left);
  }
  std::vector<selftest::AnsweredQuestion> asked;
  for (const selftest::Question* question : questions) {
    if (signals.Poll() != 0 || signals.caught() != 0) break;
    asked.push_back({question, selftest::Ask(*question, facts)});
  }
  const Json report = selftest::ReportJson(facts, asked);
  if (context.json) {
    PrintJson(context, report);
  } else if (!asked.empty()) {
    selftest::PrintAnswers(context, facts, asked);
  }
  if (asked.size() < questions.size()) Warn(context, fmt::format("interrupted: {} of {} questions were asked", asked.size(), questions.size()));
  if (options.out) {
    if (Status written = WriteWhole(*options.out, JsonText(report, true) + "\n", false); !written.ok()) return Fail(context, written);
    if (!context.json) context.io.out << "report: " << Printable(*options.out) << "; it has no names of users, hosts or jobs in it\n";
  }
  if (asked.size() < questions.size()) return kExitPartial;
  if (facts.reached.ok()) return kExitOk;
  Warn(context, Explain(facts.reached, context.endpoint));
  return kExitUnreachable;
}

}  // namespace profd::client
