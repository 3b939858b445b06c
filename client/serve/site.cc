#include "client/serve/site.h"

#include <fmt/format.h>

#include <filesystem>

#include "analysis/report.h"
#include "base/text.h"
#include "client/connection.h"
#include "client/serve/error_answer.h"
#include "client/serve/mindinsight.h"

namespace profd::client {
namespace {

constexpr std::string_view kDataPath = "/api/run/";

WebAnswer ErrorOf(const Status& status) {
  const int http = status.code() == StatusCode::kNotFound ? 404 : status.code() == StatusCode::kInvalidArgument ? 422 : 500;
  return ErrorAnswer(http, CodeWord(status.code()), status.message());
}

// Takes as long for a token that is nearly right as for any other.
bool Same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= a[i] ^ b[i];
  return differs == 0;
}

// "a=1; b=2"
std::string_view CookieOf(std::string_view cookies, std::string_view name) {
  for (std::string_view one; NextPart(&cookies, ';', &one);) {
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.starts_with(name) && one.substr(name.size()).starts_with('=')) return one.substr(name.size() + 1);
  }
  return {};
}

bool IsLoopbackName(std::string_view host) {
  if (host.starts_with("[::1]")) return true;
  const std::string_view name = host.substr(0, host.rfind(':'));
  return name == "localhost" || name == "127.0.0.1";
}

// "./job/profiler/" as "job/profiler"
std::string_view Plain(std::string_view path) {
  if (path.starts_with("./")) path.remove_prefix(2);
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// Of its files and of what the list shows: the folder that several ranks are in, or a directory in a folder. The path of one
// part does not name a run of several.
std::vector<std::string> PathsOf(const analysis::FoundRun& run) {
  if (run.kind == "ranks") return {run.place};
  if (run.paths.size() != 1) return {};
  return {run.paths.front(), fmt::format("{}/{}", run.place, run.name)};
}

bool Names(std::string_view asked, const analysis::FoundRun& run) {
  if (asked == run.id || asked == run.name) return true;
  return std::ranges::any_of(PathsOf(run), [asked](const std::string& path) {
    return path == asked || (path.ends_with(asked) && path[path.size() - asked.size() - 1] == '/');
  });
}

// Those that MindInsight's calls name: a directory, or one below its training job. An id or a complete path names one.
std::vector<const analysis::FoundRun*> FindAsked(const std::vector<analysis::FoundRun>& runs, const WebRequest& request) {
  const std::string_view job = Plain(request.Query("train_id"));
  const std::string_view profile = Plain(request.Query("profile"));
  const std::string_view dir = Plain(request.Query("dir"));
  const std::string both = fmt::format("{}/{}", job, profile);
  std::vector<const analysis::FoundRun*> named;
  // Of another job no directory is meant, though it has the same name.
  for (const std::string_view asked : {dir, job.empty() || profile.empty() ? std::string_view() : std::string_view(both), job.empty() ? profile : job}) {
    if (asked.empty()) continue;
    for (const analysis::FoundRun& run : runs) {
      if (asked == run.id || (run.paths.size() == 1 && run.paths.front() == asked)) return {&run};
      if (Names(asked, run)) named.push_back(&run);
    }
    if (!named.empty()) return named;
  }
  if (dir.empty() && job.empty() && profile.empty() && runs.size() == 1) named.push_back(&runs.front());
  return named;
}

}  // namespace

bool Site::Allowed(const WebRequest& request) const {
  // Browsers send the origin of a request from another page.
  const std::string_view site = request.Header("sec-fetch-site");
  if (site == "cross-site" || site == "same-site") return false;
  if (token_.empty()) return IsLoopbackName(request.Header("host"));
  std::string_view shown = request.Header("authorization");
  if (shown.starts_with("Bearer ")) return Same(shown.substr(7), token_);
  return Same(CookieOf(request.Header("cookie"), cookie_), token_);
}

WebAnswer Site::Page(const WebRequest& request) const {
  if (request.method != "GET") return ErrorAnswer(405, "invalid_argument", "GET only");
  return {200, "text/html; charset=utf-8", analysis::PageHtml("")};
}

WebAnswer Site::Runs() {
  Json list = Json::array();
  for (const analysis::FoundRun& run : runs_.List()) {
    list.push_back({{"id", run.id}, {"name", run.name}, {"kind", run.kind}, {"path", run.place}, {"changed_s", run.changed_s},
                    {"parts", run.paths.size()}});
  }
  Json folders = Json::array();
  for (const std::string& folder : runs_.folders()) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(folder, error).lexically_normal();
    folders.push_back(error ? folder : whole.string());
  }
  return {200, "application/json", JsonText(Json{{"runs", std::move(list)}, {"folders", std::move(folders)}}, false)};
}

WebAnswer Site::Data(const std::string& id, const WebRequest& request) {
  const auto page = runs_.Page(id, std::string(request.Query("baseline")));
  if (!page.ok()) return ErrorOf(page.status());
  WebAnswer answer{200, "application/json", **page};
  answer.headers.emplace_back("Content-Encoding", "gzip");
  return answer;
}

WebAnswer Site::MindInsight(const WebRequest& request) {
  std::vector<analysis::FoundRun> runs = runs_.Listed();
  std::vector<const analysis::FoundRun*> found = FindAsked(runs, request);
  if (found.empty()) {
    runs = runs_.List();
    found = FindAsked(runs, request);
  }
  if (found.empty()) {
    return ErrorAnswer(404, "not_found", "no run is named by train_id, profile or dir; /api/runs has the names of all");
  }
  if (found.size() > 1) {
    return ErrorAnswer(400, "invalid_argument", fmt::format("{} runs are named by train_id, profile or dir, for example in {} and {}; give more of the path, or the id that /api/runs has",
                                                            found.size(), found[0]->place, found[1]->place));
  }
  const auto run = runs_.Load(found.front()->id);
  if (!run.ok()) return ErrorOf(run.status());
  const std::string path = request.path.substr(kMindInsightPrefix.size());
  std::optional<WebAnswer> answer = AnswerAsMindInsight(path, request, **run);
  return answer ? std::move(*answer) : ErrorAnswer(404, "not_found", "there is no such call");
}

WebAnswer Site::Answer(const WebRequest& request) {
  if (request.method != "GET" && request.method != "POST") return ErrorAnswer(405, "invalid_argument", "GET and POST only");
  if (request.path == "/" && !token_.empty() && Same(request.Query("token"), token_)) {
    WebAnswer answer{303, "text/plain", ""};
    answer.headers = {{"Location", "/"}, {"Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_, token_)}};
    return answer;
  }
  if (!Allowed(request)) {
    const std::string_view why = token_.empty()
                                     ? "for pages of this server only"
                                     : "Open the address that profctl serve printed; scripts send its token as Authorization: Bearer TOKEN.";
    if (request.path.starts_with("/api/") || request.path.starts_with(kMindInsightPrefix)) return ErrorAnswer(403, "permission_denied", why);
    return {403, "text/plain", fmt::format("{}\n", why)};
  }
  if (request.path == "/") return Page(request);
  if (request.path == "/api/runs") return Runs();
  if (request.path.starts_with(kDataPath)) return Data(request.path.substr(kDataPath.size()), request);
  if (request.path.starts_with(kMindInsightPrefix)) return MindInsight(request);
  return ErrorAnswer(404, "not_found", "there is nothing here");
}

}  // namespace profd::client
