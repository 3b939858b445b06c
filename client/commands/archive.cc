#include "client/commands/archive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "analysis/run.h"
#include "analysis/store/load.h"
#include "base/fd.h"
#include "client/clickhouse/run_source.h"
#include "client/commands/fetch.h"
#include "client/pace.h"
#include "client/parse.h"
#include "client/render.h"
#include "client/signals.h"

namespace profd::client {
namespace {

namespace fs = std::filesystem;

// Stays free where dumps lie while they are loaded: it may be the volume that profd writes on.
constexpr uint64_t kLeaveFree = 512u << 20;
// How often a report is tried, once a second: while the daemon is restarted.
constexpr int kReportTries = 600;

// The folder of one such process at a time. What one that was killed left in it goes first.
class WorkFolder {
 public:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  ~WorkFolder() {
    if (lock_.valid()) Clear();
  }

  Status Open() {
    std::error_code error;
    fs::create_directories(path_, error);
    if (error) return NotOpened(error.value(), path_);
    const std::string name = path_ + "/lock";
    lock_ = UniqueFd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_.valid()) return NotOpened(errno, name);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      const int why = errno;
      lock_.Reset();
      return why == EWOULDBLOCK ? FailedPrecondition(path_ + ": another profctl archive works there") : Status::FromErrno(why, name);
    }
    Clear();
    return ::mkdir(dumps().c_str(), 0700) == 0 ? Status() : Status::FromErrno(errno, dumps());
  }

  std::string dumps() const { return path_ + "/dumps"; }
  // An empty one for the next dump.
  void Empty() {
    Clear();
    (void)::mkdir(dumps().c_str(), 0700);  // the fetch reports what is wrong with it
  }
  Status CheckFreeSpace(uint64_t bytes) const {
    struct statvfs volume {};
    if (::statvfs(path_.c_str(), &volume) != 0) return Status::FromErrno(errno, path_);
    const uint64_t free = static_cast<uint64_t>(volume.f_bavail) * volume.f_frsize;
    if (free >= bytes + kLeaveFree) return {};
    return ResourceExhausted(fmt::format("{} has {} free; the dump has {}, and {} stay free", path_, FormatBytes(free), FormatBytes(bytes), FormatBytes(kLeaveFree)));
  }

 private:
  static Status NotOpened(int error_number, const std::string& path) {
    Status status = Status::FromErrno(error_number, path);
    if (status.code() != StatusCode::kPermissionDenied) return status;
    return PermissionDenied(status.message() + "; this command is for root, administrators and the user of archive.user; --work-dir names another folder");
  }
  void Clear() const {
    std::error_code error;
    fs::remove_all(dumps(), error);
  }

  std::string path_;
  UniqueFd lock_;
};

// The database, within the limit of bytes per second.
class PacedServer final : public analysis::StoreServer {
 public:
  PacedServer(analysis::StoreServer& server, Pace& pace) : server_(server), pace_(pace) {}

  Result<std::string> Send(std::string_view statement, std::string_view rows) override {
    if (!pace_.Take(statement.size() + rows.size())) return Status(StatusCode::kCancelled, "interrupted");
    sent_ += statement.size() + rows.size();
    return server_.Send(statement, rows);
  }
  Result<std::string> SendToCluster(std::string_view statement, int wait_s) override {
    if (!pace_.Take(statement.size())) return Status(StatusCode::kCancelled, "interrupted");
    sent_ += statement.size();
    return server_.SendToCluster(statement, wait_s);
  }
  const std::string& database() const override { return server_.database(); }
  void Pause(int ms) override { server_.Pause(ms); }
  uint64_t sent() const { return sent_; }

 private:
  analysis::StoreServer& server_;
  Pace& pace_;
  uint64_t sent_ = 0;
};

v1::ArchiveFailed Failed(v1::ArchiveFailed::Reason reason, const Status& status) {
  v1::ArchiveFailed failed;
  failed.set_reason(reason);
  failed.set_message(status.message());
  return failed;
}

v1::ArchiveFailed FailedAtServer(const Status& status) {
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kAborted:
      return Failed(v1::ArchiveFailed::REASON_UNREACHABLE, status);
    case StatusCode::kUnauthenticated:
    case StatusCode::kPermissionDenied:
      return Failed(v1::ArchiveFailed::REASON_DENIED, status);
    default:
      return Failed(v1::ArchiveFailed::REASON_REFUSED, status);
  }
}

// "2 parts could not be read: device_0/data/hbm.data.0: ..."; empty: nothing is damaged.
std::string DamageText(const std::vector<analysis::Problem>& problems) {
  if (problems.empty()) return "";
  return fmt::format("{} of it could not be read{}: {}: {}", CountText(problems.size(), "part"),
                     problems.size() == 1 ? "" : ", the first", problems.front().where, problems.front().what);
}

class Archiver {
 public:
  Archiver(const Context& context, const ArchiveOptions& options, int64_t every_ms)
      : context_(context),
        options_(options),
        every_ms_(every_ms),
        folder_(options.work_dir),
        pace_(context.clock, [this](int64_t ms) { return Wait(std::min<int64_t>(ms, 200)); }) {}

  int Run() {
    if (Status open = folder_.Open(); !open.ok()) return Fail(context_, open);
    while (GoOn()) {
      // A connection for each upload: while none waits the daemon has nothing to wake up for.
      const std::unique_ptr<ProfdApi> api = context_.make_api(std::nullopt);
      const auto taken = api->ClaimArchiveUpload();
      if (taken.ok() && taken->has_upload()) {
        Handle(*api, taken->upload());
        continue;
      }
      if (options_.once) return taken.ok() ? Ended(*taken) : Fail(context_, taken.status());
      LogProblem(taken.ok() ? "" : Explain(taken.status(), context_.endpoint));
      (void)Wait(every_ms_);
    }
    return failed_ > 0 || options_.once ? kExitPartial : kExitOk;
  }

 private:
  bool GoOn() { return signals_.Poll() == 0 && signals_.caught() == 0; }
  bool Wait(int64_t ms) {
    for (const int64_t until_ns = context_.clock.SteadyNs() + ms * kNsPerMs; GoOn();) {
      const int64_t left_ns = until_ns - context_.clock.SteadyNs();
      if (left_ns <= 0) return true;
      signals_.Wait(std::min<int64_t>(left_ns / kNsPerMs + 1, 1000));
    }
    return false;
  }

  // What keeps it from working, once.
  void LogProblem(const std::string& problem) {
    if (problem != reported_ && !problem.empty()) context_.io.err << "profctl: " << PrintableLines(problem) << std::endl;
    reported_ = problem;
  }

  int Ended(const v1::ClaimArchiveUploadResponse& last) const {
    if (!context_.json) {
      context_.io.out << fmt::format("{} archived, {} failed, {} wait\n", loaded_, failed_, last.waiting());
    }
    // What waits was not loaded: it pauses after a failure, or another process has it.
    return failed_ > 0 || last.waiting() > 0 ? kExitPartial : kExitOk;
  }

  void Handle(ProfdApi& api, const v1::ArchiveUpload& upload) {
    const int64_t begin_ns = context_.clock.SteadyNs();
    pace_.SetLimit(upload.max_bytes_per_s());
    v1::ReportArchiveRequest report;
    report.set_dump(upload.dump().name());
    Load(api, upload, &report);
    folder_.Empty();
    // Interrupted: the daemon sees that this process is gone, and the dump waits.
    if (report.outcome_case() == v1::ReportArchiveRequest::OUTCOME_NOT_SET) return;
    const Status reported = Report(report);
    Print(upload, report, reported, context_.clock.SteadyNs() - begin_ns);
  }

  void Load(ProfdApi& api, const v1::ArchiveUpload& upload, v1::ReportArchiveRequest* report) {
    const auto go_on = [this] { return GoOn(); };
    const auto fail = [this, report](const v1::ArchiveFailed& failed) {
      if (GoOn()) *report->mutable_failed() = failed;
    };
    Result<OpenedStore> store = OpenStore(upload.to(), upload.run(), options_.tls, go_on);
    if (!store.ok()) return fail(Failed(v1::ArchiveFailed::REASON_REFUSED, store.status()));
    PacedServer server(*store->server, pace_);
    analysis::StoreLoader loader(&server, {upload.run(), upload.cluster(), &context_.clock, go_on, folder_.dumps() + "/"});
    // Before anything is fetched: nothing need be where the database does not answer.
    if (const Status ready = loader.Prepare(); !ready.ok()) return fail(FailedAtServer(ready));
    Status fetched = folder_.CheckFreeSpace(upload.dump().bytes());
    std::vector<std::string> paths;
    if (fetched.ok()) {
      Context once{api, context_.io, context_.clock, context_.endpoint, context_.json};
      FetchResult result = FetchInto(once, upload.dump().name(), folder_.dumps(), false, go_on,
                                     [this](size_t bytes) { (void)pace_.Take(bytes); });
      fetched = result.status;
      paths = std::move(result.paths);
    }
    if (!fetched.ok()) return fail(Failed(v1::ArchiveFailed::REASON_FETCH, fetched));
    Status sent;
    std::vector<analysis::RankLoad> ranks;
    analysis::SourceCalls calls;
    calls.wants = [](uint64_t) { return true; };
    std::vector<analysis::Problem> damage;
    calls.take = [&](const analysis::Run& source, uint64_t timestamp) {
      for (const analysis::Problem& problem : source.problems) damage.push_back({loader.Shown(problem.where), problem.what});
      return sent = loader.Load(source, timestamp, &ranks);
    };
    const Status done = analysis::LoadBySource(paths, go_on, calls);
    if (!sent.ok()) return fail(FailedAtServer(sent));
    if (!done.ok()) return fail(Failed(v1::ArchiveFailed::REASON_UNREADABLE, done));
    // Rows that do not count any more go by and by: another load deletes what this one cannot.
    loader.CleanUp().Ignore();
    if (const std::string note = loader.Note(); !note.empty()) Warn(context_, note);
    v1::ArchiveLoaded& loaded = *report->mutable_loaded();
    loaded.set_ranks(static_cast<uint32_t>(ranks.size()));
    loaded.set_bytes(server.sent());
    loaded.set_damage(DamageText(damage));
    for (const analysis::RankLoad& rank : ranks) loaded.set_rows(loaded.rows() + rank.rows);
  }

  // A dump that is loaded and not reported would be loaded again, so a daemon that is restarted is waited for.
  Status Report(const v1::ReportArchiveRequest& report) {
    Status last;
    for (int tries = 0; tries < kReportTries; ++tries) {
      last = context_.make_api(std::nullopt)->ReportArchive(report).status();
      if (last.code() != StatusCode::kUnavailable && last.code() != StatusCode::kDeadlineExceeded) return last;
      if (!Wait(1000)) break;
    }
    return last;
  }

  void Print(const v1::ArchiveUpload& upload, const v1::ReportArchiveRequest& report, const Status& reported, int64_t took_ns) {
    const std::string& name = upload.dump().name();
    const bool loaded = report.has_loaded();
    ++(loaded ? loaded_ : failed_);
    if (context_.json) {
      Json json = {{"dump", name}, {"run", upload.run()}, {"loaded", loaded}, {"attempt", upload.attempt()}, {"reported", reported.ok()},
                   {"seconds", static_cast<double>(took_ns) / static_cast<double>(kNsPerSecond)}};
      if (loaded) {
        json.update({{"ranks", report.loaded().ranks()}, {"rows", report.loaded().rows()}, {"bytes", report.loaded().bytes()}});
        if (!report.loaded().damage().empty()) json["damage"] = report.loaded().damage();
      } else {
        json["problem"] = report.failed().message();
      }
      context_.io.out << JsonText(json, false) << std::endl;
    } else if (loaded) {
      context_.io.out << fmt::format("{} archived as {}: {} of {}, {} in {}", Printable(name), Printable(upload.run()), CountText(report.loaded().rows(), "row"),
                                     CountText(report.loaded().ranks(), "rank"), FormatBytes(report.loaded().bytes()), FormatSpan(took_ns))
                      << std::endl;
    } else {
      context_.io.err << fmt::format("profctl: {} not archived (attempt {}): {}", Printable(name), upload.attempt(), PrintableLines(report.failed().message())) << std::endl;
    }
    if (!context_.json && !report.loaded().damage().empty()) Warn(context_, fmt::format("{}: {}", name, report.loaded().damage()));
    if (!reported.ok()) Warn(context_, fmt::format("{}: profd did not take the report: {}", name, Explain(reported, context_.endpoint)));
  }

  const Context& context_;
  const ArchiveOptions& options_;
  const int64_t every_ms_;
  SignalWatch signals_;
  WorkFolder folder_;
  Pace pace_;
  std::string reported_;
  uint64_t loaded_ = 0;
  uint64_t failed_ = 0;
};

}  // namespace

int RunArchive(const Context& context, const ArchiveOptions& options) {
  const auto every_ms = ParseDurationMs(options.every);
  if (!every_ms.ok()) return UsageError(context.io, "archive", {"--every " + every_ms.status().message()});
  return Archiver(context, options, std::max<int64_t>(1, static_cast<int64_t>(*every_ms))).Run();
}

}  // namespace profd::client
