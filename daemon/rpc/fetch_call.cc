// FetchDump: a dump's bytes, file after file. Everything that waits for the disk is a step on the threads
// of ReadQueue.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "daemon/archive/archive_queue.h"
#include "daemon/rpc/rpc_internal.h"
#include "daemon/rpc/strand_writer.h"
#include "dump/dump_root.h"
#include "dump/reader.h"

namespace profd::rpc {
namespace {

constexpr size_t kFetchChunk = 64 * 1024;
// What malloc adds to a name that does not fit into its string.
constexpr size_t kNameOverhead = 16;

DumpReader::ListLimits FetchLimits() {
  DumpReader::ListLimits limits;
  limits.entries = kMaxFetchEntries;
  limits.name_bytes = kMaxFetchNameBytes;
  return limits;
}

class Fetch final : public StrandWriter<v1::DumpChunk> {
 public:
  Fetch(Context& context, const Peer& peer, const v1::FetchDumpRequest& request, Memory memory)
      : StrandWriter(context.deps.control, std::move(memory)),
        context_(context),
        peer_(peer),
        request_(request) {
    Begin();
  }

 private:
  struct Dump {
    std::string name;
    std::vector<DumpReader::File> files;
  };

  void OnReady() override {
    if (!found_) {
      found_ = true;
      Result<std::vector<std::string>> names = DumpsToFetch();
      if (!names.ok()) {
        End(ToGrpc(names.status()));
        return;
      }
      for (std::string& name : *names) dumps_.push_back({std::move(name), {}});
    }
    if (listed_ < dumps_.size()) {
      Read([this] { return ListNext(); });
    } else if (!announced_) {
      announced_ = true;
      SendBegin();
    } else if (fd_.valid() || file_ < dumps_[dump_].files.size()) {
      Read([this] { return ReadNext(); });
    } else if (dump_ + 1 < dumps_.size()) {
      ++dump_;
      file_ = 0;
      reader_.reset();
      SendBegin();
    } else {
      End(grpc::Status::OK);
    }
  }

  // Directory names, oldest first. The user that archives: of all users' dumps those that wait, by name.
  Result<std::vector<std::string>> DumpsToFetch() const {
    const DumpRequests& dumps = context_.deps.dumps;
    if (!peer_.archiver) return dumps.DumpsOf(peer_, request_.session_id(), request_.dump());
    if (!context_.deps.archive.IsWaiting(request_.dump())) {
      return PermissionDenied("only dumps that wait for the database, by name");
    }
    const Peer administrator{.admin = true};
    return dumps.DumpsOf(administrator, "", request_.dump());
  }

  // Runs a step on a reader's thread and sends (or reports) what it made.
  void Read(std::function<Status()> step) {
    Hold();
    context_.readers.Post(peer_.uid, [this, step = std::move(step)] {
      Status status = step();
      control().Post([this, status] {
        Unhold();
        if (!idle()) return;
        if (!status.ok()) {
          End(ToGrpc(status));
        } else if (std::exchange(has_chunk_, false)) {
          Send(std::move(next_));
        } else {
          OnReady();
        }
      });
    });
  }

  // Opened by its path, as the operator would: what was mounted there since counts.
  Result<DumpReader> Open(const std::string& name) const {
    Result<DumpRoot> root = DumpRoot::Attach(context_.deps.dump_root);
    if (!root.ok()) return root.status();
    return DumpReader::OpenWhole(*root, name);
  }

  Status ListNext() {
    Dump& dump = dumps_[listed_++];
    Result<DumpReader> reader = Open(dump.name);
    if (!reader.ok()) return reader.status();
    Result<std::vector<DumpReader::File>> files = reader->Files(FetchLimits());
    if (files.status().code() == StatusCode::kOutOfRange) {
      return ResourceExhausted(fmt::format(
          "{}: {}; a dump that is fetched has at most {} entries with names of {} MiB: copy "
          "the directory itself, or remove what profd did not write",
          dump.name, files.status().message(), kMaxFetchEntries, kMaxFetchNameBytes >> 20));
    }
    if (!files.ok()) return files.status();
    uint64_t bytes = files->capacity() * sizeof(DumpReader::File);
    for (const DumpReader::File& file : *files) bytes += file.path.capacity() + kNameOverhead;
    RETURN_IF_ERROR(memory()->Grow(bytes));
    dump.files = std::move(files).value();
    return Status::Ok();
  }

  // The chunk that begins the present dump.
  void SendBegin() {
    v1::DumpChunk begin;
    begin.set_dump_name(dumps_[dump_].name);
    uint64_t total = 0;
    for (size_t i = dump_; i < dumps_.size(); ++i) {
      for (const DumpReader::File& file : dumps_[i].files) total += file.bytes;
    }
    begin.set_total_bytes(total);
    Send(std::move(begin));
  }

  Status ReadNext() {
    next_.Clear();
    const Dump& dump = dumps_[dump_];
    if (!reader_) {
      Result<DumpReader> reader = Open(dump.name);
      if (!reader.ok()) return reader.status();
      reader_ = std::make_unique<DumpReader>(std::move(reader).value());
    }
    if (!fd_.valid()) {
      Result<UniqueFd> fd = reader_->OpenFile(dump.files[file_].path);
      if (!fd.ok()) return fd.status().Annotate(dump.files[file_].path);
      fd_ = std::move(fd).value();
      next_.set_path(dump.files[file_].path);
      ++file_;
    }
    std::string& data = *next_.mutable_data();
    data.resize(kFetchChunk);
    ssize_t got = ::read(fd_.get(), data.data(), data.size());
    if (got < 0) return Status::FromErrno(errno, dump.files[file_ - 1].path);
    data.resize(static_cast<size_t>(got));
    if (static_cast<size_t>(got) < kFetchChunk) {
      next_.set_last(true);
      fd_.Reset();
    }
    has_chunk_ = true;
    return Status::Ok();
  }

  void OnClosed() override {}

  Context& context_;
  const Peer peer_;
  const v1::FetchDumpRequest request_;
  // The strand's, and lent to the step under way.
  bool found_ = false;
  bool announced_ = false;
  std::vector<Dump> dumps_;
  size_t listed_ = 0;  // of them
  size_t dump_ = 0;    // the one being sent
  size_t file_ = 0;
  std::unique_ptr<DumpReader> reader_;  // of that
  UniqueFd fd_;
  v1::DumpChunk next_;
  bool has_chunk_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::DumpChunk>* NewFetch(Context& context, const Peer& peer,
                                                  const v1::FetchDumpRequest& request,
                                                  Memory memory) {
  return new Fetch(context, peer, request, std::move(memory));
}

}  // namespace profd::rpc
