#include "client/commands/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "analysis/checks/advise.h"
#include "analysis/report.h"
#include "analysis/tuning/tuning_view.h"
#include "base/fd.h"
#include "base/text.h"
#include "client/commands/analyze.h"
#include "client/render.h"
#include "client/signals.h"
#include "export/spool.h"

namespace profd::client {
namespace {

// What was read for the page.
struct Read {
  size_t problems = 0;
  Json cost;  // null: no database was asked
};

Result<analysis::Json> MakeData(const Clock& clock, const ReportCommand& command, size_t slices, analysis::Language language, Read* read) {
  SignalWatch signals;
  RunReader reader(command.store, signals.go_on());
  const ReadHow how{true};
  Result<analysis::Run> run = reader.Read(command.runs, how);
  if (!run.ok()) return run.status();
  const auto baseline = reader.ReadBaseline(command.baseline, how);
  if (!baseline.ok()) return baseline.status();
  RETURN_IF_ERROR(signals.Release());
  *read = {run->problems.size(), reader.CostJson()};
  analysis::Json data =
      analysis::PageData(*run, baseline->get(), analysis::Advise(*run, baseline->get(), analysis::Limits(), language), slices,
                         clock.WallNs() / kNsPerSecond, language);
  if (command.tuning.empty()) return data;
  std::vector<std::string> paths = analysis::TuningResultsIn(command.runs);
  paths.insert(paths.end(), command.tuning.begin(), command.tuning.end());
  const Result<std::vector<std::string>> results = analysis::FindTuningResults(paths);
  if (!results.ok()) return results.status().Annotate("--tuning");
  data["tuning"] = analysis::TuningView(analysis::ReadTuningResults(*results));
  return data;
}

// An empty file beside `path`.
Result<std::string> CreateUnfinished(const std::string& path, bool replace) {
  struct stat facts {};
  const bool there = ::lstat(path.c_str(), &facts) == 0;
  // What a link names counts: /dev/stdout is one.
  if (there && ::stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) {
    return FailedPrecondition(path + (S_ISDIR(facts.st_mode) ? " is a directory; name a file" : " is not a regular file; name another one"));
  }
  if (there && !replace) return Status(StatusCode::kAlreadyExists, path + " is there already; --force replaces it");
  const std::string unfinished = fmt::format("{}.{}.unfinished", path, ::getpid());
  if (!UniqueFd(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640)).valid()) return Status::FromErrno(errno, path);
  return unfinished;
}

}  // namespace

Status CheckWritable(const std::string& path, bool replace) {
  const Result<std::string> unfinished = CreateUnfinished(path, replace);
  if (unfinished.ok()) ::unlink(unfinished->c_str());
  return unfinished.status();
}

// Under another name first.
Status WriteBy(const std::string& path, bool replace, const std::function<Status(const std::string& unfinished)>& write) {
  const Result<std::string> unfinished = CreateUnfinished(path, replace);
  if (!unfinished.ok()) return unfinished.status();
  SignalWatch signals;
  Status status = write(*unfinished);
  if (status.ok() && signals.Poll() != 0) status = Status(StatusCode::kCancelled, "interrupted");
  if (status.ok() && ::rename(unfinished->c_str(), path.c_str()) != 0) status = Status::FromErrno(errno, path);
  if (!status.ok()) ::unlink(unfinished->c_str());
  return status;
}

Status WriteWhole(const std::string& path, const std::string& text, bool replace) {
  return WriteBy(path, replace, [&](const std::string& unfinished) -> Status {
    UniqueFd fd(::open(unfinished.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid()) return Status::FromErrno(errno, path);
    return exporting::WriteAll(fd.get(), text, path);
  });
}

Result<size_t> ParseSlices(const std::optional<std::string>& text) {
  constexpr size_t kMost = 20'000'000;
  size_t slices = analysis::kReportSlices;
  if (!text || (ParseNumber(std::string_view(*text), &slices) && slices > 0 && slices <= kMost)) return slices;
  return InvalidArgument(fmt::format("--slices \"{}\": a number from 1 to {}", *text, kMost));
}

Result<analysis::Language> ParseLanguage(const std::string& word) {
  const auto language = analysis::LanguageOf(word);
  if (language) return *language;
  return InvalidArgument(fmt::format("--language \"{}\": en or zh", word));
}

int RunReport(const Io& io, const Clock& clock, const ReportCommand& command, bool json) {
  const auto fail = [&](const Status& status) { return FailWith(io, status, json); };
  const auto misused = [&](const Status& status) { return FailWith(io, status, kExitUsage, json); };
  const Result<size_t> slices = ParseSlices(command.slices);
  if (!slices.ok()) return misused(slices.status());
  const auto language = ParseLanguage(command.language);
  if (!language.ok()) return misused(language.status());
  if (const Status good = RunReader(command.store, {}).Check(command.runs); !good.ok()) return misused(good);
  const std::string out = command.out.value_or("report.html");
  if (const Status writable = CheckWritable(out, command.force); !writable.ok()) return fail(writable);
  Read read;
  Result<analysis::Json> data = MakeData(clock, command, *slices, *language, &read);
  if (!data.ok()) return fail(data.status());
  Result<std::string> packed = analysis::PackedJson(*data);
  if (!packed.ok()) return fail(packed.status());
  const std::string page = analysis::PageHtml(*packed);
  if (Status written = WriteWhole(out, page, command.force); !written.ok()) return fail(written);
  if (json) {
    Json made = {{"out", out}, {"bytes", page.size()}, {"ranks", (*data)["ranks"].size()}, {"problems", read.problems}};
    if (!read.cost.is_null()) made["store"] = read.cost;
    io.out << JsonText(made, true) << std::endl;
    return kExitOk;
  }
  io.out << fmt::format("{}: {}, {}; open it in a browser\n", Printable(out), FormatBytes(page.size()), CountText((*data)["ranks"].size(), "rank"));
  io.out.flush();
  if (read.problems > 0) io.err << fmt::format("profctl: warning: {} of the data could not be read; the page lists them\n", CountText(read.problems, "part"));
  if (!read.cost.is_null()) io.err << CostText(read.cost) << std::endl;
  return kExitOk;
}

}  // namespace profd::client
