// fetch from many nodes: one folder per rank, nothing overwritten, nothing half left behind.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "base/count_text.h"
#include "base/fd.h"
#include "base/text.h"
#include "client/dump_sink.h"
#include "client/fleet/fleet.h"
#include "client/json.h"
#include "client/render.h"
#include "client/session_view.h"

namespace profd::client {
namespace {

constexpr mode_t kDirMode = 0750;
constexpr size_t kMaxFolderName = 100;
constexpr const char* kIndexName = "fleet.json";
// For the lock of the index, which another fetch holds for milliseconds: 3 s.
constexpr int kLockTries = 60;
constexpr auto kLockPause = std::chrono::milliseconds(50);
// Of an index that is there: what its entries are worth does not pay for more.
constexpr std::streamsize kMaxIndexBytes = std::streamsize{64} << 20;

Status MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), kDirMode) == 0 || errno == EEXIST) return Status::Ok();
  return Status::FromErrno(errno, "creating " + path);
}

// "node7:9470" -> "node7_9470", "unix:/run/n1/s" -> "run_n1_s"
std::string FolderOf(const std::string& node) {
  std::string_view text = node;
  if (text.starts_with("unix:/")) text.remove_prefix(6);
  std::string folder;
  for (char c : text.substr(0, kMaxFolderName)) {
    bool plain = IsLetterOrDigit(c) || c == '.' || c == '-';
    if (plain && !(folder.empty() && c == '.')) {
      folder += c;
    } else if (!folder.empty() && folder.back() != '_') {
      folder += '_';
    }
  }
  return folder.empty() ? "node" : folder;
}

// {0, 1, 2, 5} -> "0-2,5"; empty when no rank is known or the text would be no name for a folder.
std::string RanksOf(const v1::Session& session) {
  if (session.spec().target().has_rank()) return std::to_string(std::max(session.spec().target().rank(), 0));
  std::set<int32_t> ranks;
  for (const v1::SessionProcess& process : session.status().processes()) {
    if (process.has_rank() && process.rank() >= 0) ranks.insert(process.rank());
  }
  if (ranks.empty()) return "";
  std::string text = FormatDevices({ranks.begin(), ranks.end()});
  return text.size() <= kMaxFolderName ? text : "";
}

// The dump's own name, as the daemon gave it; empty unless it is one plain component.
std::string DumpNameOf(const v1::Session& session) {
  const std::string& path = session.status().dump_path();
  auto name = SplitDumpPath(path.substr(path.rfind('/') + 1));
  return name.ok() && name->size() == 1 ? name->front() : "";
}

// `kept`: a segment of the session, or a dump of it.
template <class Kept>
void SetDump(const Kept& kept, const std::string& path, v1::Session* session) {
  v1::SessionStatus& status = *session->mutable_status();
  status.set_dump_path(path);
  status.set_dump_bytes(kept.bytes());
  status.set_started_ns(kept.started_ns());
  status.set_ended_ns(kept.ended_ns());
}

class Fetcher {
 public:
  Fetcher(Fleet* fleet, const FleetFetch& wanted)
      : fleet_(*fleet), wanted_(wanted), report_(fleet->NewReport("fetch", wanted.job_id)) {}

  FleetReport Run() {
    report_.interrupted = !List();
    if (!report_.interrupted) {
      ChooseFolders();
      report_.interrupted = !Fetch();
    }
    for (NodeResult& result : report_.nodes) {
      for (const FetchedDump& dump : result.dumps) result.partial |= !dump.status.ok();
    }
    SayHowToContinue();
    WriteIndex();
    return std::move(report_);
  }

 private:
  bool List() {
    return fleet_.ForAll("asking", [this](size_t node, NodeCall* call) {
      v1::ListSessionsRequest request;
      request.set_job_id(wanted_.job_id);
      const auto sessions = call->api().ListSessions(request);
      const auto dumps = sessions.ok() ? call->api().ListDumps() : sessions.status();
      NodeResult& result = report_.nodes[node];
      result.status = call->Explain(dumps.status());
      if (dumps.ok()) Sort(*sessions, *dumps, &result);
    });
  }

  bool Means(const v1::Session& session) const {
    if (wanted_.ids.empty() || wanted_.ids.contains(session.session_id())) return true;
    auto fleet = session.spec().metadata().find(kFleetId);
    return fleet != session.spec().metadata().end() && wanted_.ids.contains(fleet->second);
  }

  // "job j42", "0123456789abcdef"
  std::string What() const {
    return wanted_.ids.empty() ? "job " + wanted_.job_id
                              : fmt::format("{}", fmt::join(wanted_.ids, ", "));
  }

  // What there is to fetch, and why the rest is not.
  void Sort(const v1::ListSessionsResponse& list, const v1::ListDumpsResponse& kept, NodeResult* result) const {
    for (const v1::Session& session : list.sessions()) {
      if (session.status().dump_path().empty() || !Means(session)) continue;
      if (!IsFinal(session.status().state())) {
        result->partial = true;
        result->note = fmt::format("session {0} has not ended: profctl stop {0}",
                                   session.session_id());
        continue;
      }
      // A session that was interrupted and went on has several.
      const int dumps = std::max(1, session.status().segments_size());
      for (int i = 0; i < dumps; ++i) {
        FetchedDump& dump = result->dumps.emplace_back();
        dump.session = session;
        dump.by_name = dumps > 1;
        if (dump.by_name) SetDump(session.status().segments(i), session.status().segments(i).dump_path(), &dump.session);
        dump.ranks = RanksOf(session);
        dump.status = {StatusCode::kCancelled, "not fetched: interrupted"};
      }
    }
    AddOthers(list, kept, result);
    if (!result->dumps.empty() || result->partial) return;
    result->none = true;
    const bool any = std::ranges::any_of(list.sessions(), [this](const v1::Session& session) { return Means(session); });
    result->note = any ? "its sessions of " + What() + " have no dump" : "no session of " + What();
  }

  // Dumps that are named, and those of sessions the list has forgotten: whose ranks and offsets are in their manifests only.
  void AddOthers(const v1::ListSessionsResponse& list, const v1::ListDumpsResponse& kept, NodeResult* result) const {
    std::map<std::string, const v1::Session*> sessions;
    for (const v1::Session& session : list.sessions()) sessions[session.session_id()] = &session;
    std::set<std::string> chosen;
    for (const FetchedDump& dump : result->dumps) chosen.insert(DumpNameOf(dump.session));
    for (const v1::Dump& dump : kept.dumps()) {
      const auto session = sessions.find(dump.session_id());
      const bool meant = wanted_.ids.empty() ? dump.job_id() == wanted_.job_id
                                             : wanted_.ids.contains(dump.session_id()) || wanted_.ids.contains(dump.fleet_id());
      const bool forgotten = session == sessions.end() && meant;
      if (!IsFinal(dump.state()) || chosen.contains(dump.name()) || !(forgotten || wanted_.ids.contains(dump.name()))) continue;
      FetchedDump& other = result->dumps.emplace_back();
      if (session != sessions.end()) other.session = *session->second;
      other.by_name = true;
      other.session.set_session_id(dump.session_id());
      other.session.mutable_spec()->mutable_target()->set_job_id(dump.job_id());
      SetDump(dump, dump.name(), &other.session);
      other.ranks = RanksOf(other.session);
      other.status = {StatusCode::kCancelled, "not fetched: interrupted"};
    }
    if (!kept.incomplete() || !(wanted_.ids.empty() || result->dumps.empty())) return;
    result->partial = true;
    if (result->note.empty()) result->note = "it still looks through dumps of an earlier run of profd: try again";
  }

  // "rank_3" where only one node has it, "rank_3_node7" where several claim it. Dumps of earlier fetches stay where they are.
  void ChooseFolders() {
    const std::map<std::string, std::string> fetched = FetchedBefore();
    std::map<std::string, std::set<size_t>> claims;
    for (size_t node = 0; node < report_.nodes.size(); ++node) {
      for (const FetchedDump& dump : report_.nodes[node].dumps) {
        claims[FolderName(node, dump)].insert(node);
      }
    }
    for (size_t node = 0; node < report_.nodes.size(); ++node) {
      for (FetchedDump& dump : report_.nodes[node].dumps) {
        std::string folder = FolderName(node, dump);
        if (claims[folder].size() > 1) {
          // Two nodes' names may become one folder ("a_b" and "a:b"): the place in the list decides.
          folder += dump.ranks.empty() ? fmt::format("_{}", node)
                                       : "_" + FolderOf(report_.nodes[node].node);
        }
        dump.path = folder + "/" + DumpNameOf(dump.session);
        if (auto before = fetched.find(KeyOf(report_.nodes[node].node, dump.path)); before != fetched.end()) dump.path = before->second;
      }
    }
  }

  // Of a dump, wherever it was put.
  static std::string KeyOf(const std::string& node, const std::string& path) { return node + path.substr(path.rfind('/')); }

  // Where the dumps of the index are, by KeyOf, as far as they are still there.
  std::map<std::string, std::string> FetchedBefore() const {
    std::map<std::string, std::string> fetched;
    for (const Json& entry : OldEntries({})) {
      if (!entry.contains("node") || !entry["node"].is_string()) continue;
      const std::string path = entry["dump"].get<std::string>();
      // Another may have written the index.
      const auto parts = SplitDumpPath(path);
      struct stat info = {};
      if (!parts.ok() || parts->size() != 2 || lstat((wanted_.out + "/" + path).c_str(), &info) != 0) continue;
      fetched.emplace(KeyOf(entry["node"].get<std::string>(), path), path);
    }
    return fetched;
  }

  std::string FolderName(size_t node, const FetchedDump& dump) const {
    return dump.ranks.empty() ? FolderOf(report_.nodes[node].node) : "rank_" + dump.ranks;
  }

  bool Fetch() {
    std::vector<size_t> which;
    for (size_t node = 0; node < report_.nodes.size(); ++node) {
      if (!report_.nodes[node].dumps.empty()) which.push_back(node);
    }
    // Of any length: what a dump's deadline bounds is the silence (ProfdApi's timeout).
    auto work = [this](size_t node, NodeCall* call) {
      NodeResult& result = report_.nodes[node];
      for (FetchedDump& dump : result.dumps) {
        if (!call->cancelled()) dump.status = FetchOne(call, &dump);
        if (!dump.status.ok() && result.dumps.size() == 1) result.status = dump.status;
      }
    };
    return fleet_.ForEach("fetching", which, work, Fleet::Deadline::kNone);
  }

  // Written beside its place under a unique name, and moved there when it is complete: what has
  // its name is complete.
  Status FetchOne(NodeCall* call, FetchedDump* dump) const {
    std::string name = DumpNameOf(dump->session);
    if (name.empty()) return DataLoss("the node's name of the dump is not acceptable");
    std::string target = wanted_.out + "/" + dump->path;
    std::string folder = target.substr(0, target.rfind('/'));
    struct stat info = {};
    if (lstat(target.c_str(), &info) == 0) {
      if (!S_ISDIR(info.st_mode)) return AlreadyExists(target + " exists and is not a dump");
      dump->was_there = true;
      dump->bytes = dump->session.status().dump_bytes();
      return Status::Ok();
    }
    RETURN_IF_ERROR(MakeDirectory(folder));
    std::random_device random;
    std::string staging = fmt::format("{}/.part-{:08x}{:08x}", folder, random(), random());
    DumpSink sink(staging);
    Status status = Receive(call, *dump, &sink);
    if (status.ok() && sink.name() != name) status = DataLoss("another dump than announced was received");
    if (status.ok() &&
        renameat2(AT_FDCWD, sink.path().c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) != 0) {
      // Another fetch was faster: what has its name is complete.
      dump->was_there = errno == EEXIST;
      if (!dump->was_there) status = Status::FromErrno(errno, "moving the dump to " + target);
    }
    if (!status.ok() || dump->was_there) sink.Discard();
    rmdir(staging.c_str());
    // Only when nothing else is in it.
    if (!status.ok()) rmdir(folder.c_str());
    dump->bytes = sink.received_bytes();
    dump->files = sink.files();
    return status;
  }

  static Status Receive(NodeCall* call, const FetchedDump& dump, DumpSink* sink) {
    v1::FetchDumpRequest request;
    if (dump.by_name) {
      request.set_dump(DumpNameOf(dump.session));
    } else {
      request.set_session_id(dump.session.session_id());
    }
    Status written;
    Status status = call->api().FetchDump(request, [&](const v1::DumpChunk& chunk) {
      written = sink->Write(chunk);
      return written.ok();
    });
    if (!written.ok()) return written;
    if (!status.ok()) return call->Explain(status);
    return sink->Finish();
  }

  // Where another try may get more.
  void SayHowToContinue() {
    size_t all = 0;
    size_t there = 0;
    bool again = report_.interrupted;
    for (const NodeResult& result : report_.nodes) {
      for (const FetchedDump& dump : result.dumps) {
        ++all;
        if (dump.status.ok()) ++there;
        again |= dump.status.code() == StatusCode::kCancelled || ExitCodeFor(dump.status.code()) == kExitUnreachable;
      }
    }
    if (!again) return;
    const std::string what = there == 0 ? std::string("no dump was fetched") : fmt::format("{} of {} are in {}", there, CountText(all, "dump"), wanted_.out);
    report_.warnings.push_back(what + ": fetch into the same directory again gets what is missing");
  }

  Json Entry(const NodeResult& result, const FetchedDump& dump) const {
    Json entry = {{"node", result.node},
                  {"ranks", dump.ranks.empty() ? Json() : Json(dump.ranks)},
                  {"job_id", dump.session.spec().target().job_id()},
                  {"session_id", dump.session.session_id()},
                  {"dump", dump.path},
                  {"started_ns", dump.session.status().started_ns()},
                  {"ended_ns", dump.session.status().ended_ns()}};
    for (const char* key : {"clock_offset_ns", "clock_offset_error_ns", "common_start_ns"}) {
      auto found = dump.session.spec().metadata().find(key);
      int64_t value = 0;
      bool known = found != dump.session.spec().metadata().end() && ParseNumber(found->second, &value);
      entry[key] = known ? Json(value) : Json();
    }
    return entry;
  }

  // Dumps of earlier fetches into the same directory stay listed.
  Json OldEntries(const std::set<std::string>& now) const {
    Json kept = Json::array();
    std::ifstream file(wanted_.out + "/" + kIndexName, std::ios::binary);
    if (!file) return kept;
    std::string text(static_cast<size_t>(kMaxIndexBytes), '\0');
    file.read(text.data(), kMaxIndexBytes);
    text.resize(static_cast<size_t>(file.gcount()));
    Json old = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!old.is_object() || !old.contains("dumps") || !old["dumps"].is_array()) return kept;
    for (const Json& entry : old["dumps"]) {
      if (!entry.is_object() || !entry.contains("dump") || !entry["dump"].is_string()) continue;
      if (!now.contains(entry["dump"].get<std::string>())) kept.push_back(entry);
    }
    return kept;
  }

  // While it is held, no other fetch into the same directory changes its index. Without it where the file system has no
  // locks, or another fetch that has stopped does not release it: entries of that one may be lost then.
  UniqueFd LockIndex() const {
    UniqueFd directory(open(wanted_.out.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (int tries = 0; tries < kLockTries && flock(directory.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++tries) {
      std::this_thread::sleep_for(kLockPause);
    }
    return directory;
  }

  void WriteIndex() {
    Json entries = Json::array();
    std::set<std::string> now;
    for (const NodeResult& result : report_.nodes) {
      for (const FetchedDump& dump : result.dumps) {
        if (!dump.status.ok()) continue;
        now.insert(dump.path);
        entries.push_back(Entry(result, dump));
      }
    }
    if (entries.empty()) return;
    const UniqueFd lock = LockIndex();
    for (Json& entry : OldEntries(now)) entries.push_back(std::move(entry));
    std::string path = wanted_.out + "/" + kIndexName;
    std::string unfinished = path + ".part";
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file << JsonText(Json{{"version", 1}, {"dumps", std::move(entries)}}, /*indent=*/true) << '\n';
    file.close();
    if (file.fail() || rename(unfinished.c_str(), path.c_str()) != 0) {
      report_.warnings.push_back("the index could not be written: " +
                                 Status::FromErrno(errno, path).message());
      report_.incomplete = true;
      unlink(unfinished.c_str());
    }
  }

  Fleet& fleet_;
  const FleetFetch& wanted_;
  FleetReport report_;
};

}  // namespace

Result<FleetReport> FetchFromAll(Fleet* fleet, const FleetFetch& wanted) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(wanted.out).parent_path(), error);
  // Whether they could be made is seen here.
  RETURN_IF_ERROR(MakeDirectory(wanted.out));
  // With the slash: a file of this name is no directory.
  if (access((wanted.out + "/").c_str(), W_OK | X_OK) != 0) return Status::FromErrno(errno, wanted.out);
  return Fetcher(fleet, wanted).Run();
}

}  // namespace profd::client
