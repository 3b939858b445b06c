// The three streaming calls: a session's progress, live samples, a dump's bytes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <vector>

#include "base/log.h"
#include "collectors/metric_table.h"
#include "daemon/rpc/rpc_internal.h"
#include "daemon/rpc/strand_writer.h"
#include "dump/reader.h"

namespace profd::rpc {
namespace {

constexpr uint32_t kDefaultWatchMs = 1000;
constexpr uint32_t kDefaultStreamMs = 200;
// About 2 s of everything an 8-device node can produce.
constexpr size_t kStreamRing = 65536;
constexpr size_t kSamplesPerChunk = 8192;
constexpr size_t kMaxSeriesPerStream = 65536;
constexpr size_t kFetchChunk = 64 * 1024;

class Watch final : public StrandWriter<v1::Session> {
 public:
  Watch(Context& context, const Peer& peer, const v1::WatchSessionRequest& request)
      : StrandWriter(context.deps.control),
        context_(context),
        peer_(peer),
        id_(request.session_id()),
        interval_ms_(request.interval_ms() == 0 ? kDefaultWatchMs : request.interval_ms()) {
    Begin();
  }

 private:
  void OnReady() override {
    if (interval_ms_ < 100 || interval_ms_ > 60000) {
      End({grpc::StatusCode::INVALID_ARGUMENT, "interval_ms: must be 100..60000"});
      return;
    }
    if (watch_ == 0) {
      watch_ = context_.deps.sessions.Watch(id_, [this] { Show(); });
      timer_ = std::make_unique<Timer>(control());
      Show();
      return;
    }
    if (last_) {
      End(grpc::Status::OK);
      return;
    }
    if (again_) {
      Show();
    } else {
      timer_->After(int64_t{interval_ms_} * kNsPerMs, [this] { Show(); });
    }
  }

  void Show() {
    if (!idle()) {
      again_ = true;
      return;
    }
    again_ = false;
    Result<v1::Session> session = context_.deps.sessions.Get(peer_, id_);
    if (!session.ok()) {
      End(ToGrpc(session.status()));
      return;
    }
    last_ = IsFinished(*session);
    Send(std::move(session).value());
  }

  void OnClosed() override {
    timer_.reset();
    if (watch_ != 0) context_.deps.sessions.Unwatch(watch_);
  }

  Context& context_;
  const Peer peer_;
  const std::string id_;
  const uint32_t interval_ms_;
  uint64_t watch_ = 0;
  bool again_ = false;
  bool last_ = false;
  std::unique_ptr<Timer> timer_;
};

class SampleStream final : public StrandWriter<v1::SampleChunk> {
 public:
  SampleStream(Context& context, const Peer& peer, const v1::StreamSamplesRequest& request)
      : StrandWriter(context.deps.control), context_(context), peer_(peer), request_(request) {
    Begin();
  }

 private:
  void OnReady() override {
    if (subscriber_ == nullptr && !Subscribe()) return;
    uint32_t interval = request_.interval_ms() == 0 ? kDefaultStreamMs : request_.interval_ms();
    timer_->After(int64_t{interval} * kNsPerMs, [this] { Flush(); });
  }

  bool Subscribe() {
    std::bitset<kMaxCollectors> wanted;
    std::string problems;
    for (const std::string& name : request_.collectors()) {
      const CollectorEntry* entry = FindCollector(name);
      if (entry == nullptr) {
        problems += fmt::format("collector {}: no such collector\n", log::Quote(name));
      } else {
        wanted.set(static_cast<size_t>(entry - Collectors().data()));
      }
    }
    if (request_.interval_ms() != 0 &&
        (request_.interval_ms() < 10 || request_.interval_ms() > 10000)) {
      problems += "interval_ms: must be 10..10000\n";
    }
    if (!problems.empty()) {
      problems.pop_back();
      End({grpc::StatusCode::INVALID_ARGUMENT, problems});
      return false;
    }
    subscriber_ = context_.deps.hub.Subscribe(wanted, kStreamRing);
    timer_ = std::make_unique<Timer>(control());
    return true;
  }

  // What is told of single processes is for their owner. Asked once a series: a pid that comes back as
  // somebody else's is another series by then, the collectors let go of those that ended.
  bool MaySee(const SeriesDescription& description) const {
    if (!context_.deps.may_see_process) return true;
    for (const auto& [name, value] : description.labels) {
      pid_t pid = 0;
      if (name != "pid") continue;
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), pid);
      return error == std::errc() && context_.deps.may_see_process(peer_, pid);
    }
    return true;
  }

  bool Wanted(int device) const {
    if (device == kHostDevice) return !request_.devices_only();
    const auto& devices = request_.devices();
    return devices.empty() || std::find(devices.begin(), devices.end(),
                                        static_cast<uint32_t>(device)) != devices.end();
  }

  void Flush() {
    if (!idle()) return;
    taken_.clear();
    subscriber_->Take(kSamplesPerChunk, &taken_);
    v1::SampleChunk chunk;
    for (const StreamedSample& streamed : taken_) {
      if (request_.max_samples() != 0 && sent_ >= request_.max_samples()) break;
      Add(streamed, &chunk);
    }
    chunk.set_dropped(subscriber_->dropped() + unnamed_);
    bool enough = request_.max_samples() != 0 && sent_ >= request_.max_samples();
    if (chunk.samples().empty() && chunk.dropped() == last_dropped_ && !enough) {
      OnReady();
      return;
    }
    last_dropped_ = chunk.dropped();
    Send(std::move(chunk));
    if (enough) End(grpc::Status::OK);
  }

  void Add(const StreamedSample& streamed, v1::SampleChunk* chunk) {
    SeriesId id = streamed.sample.series;
    uint32_t generation = context_.deps.store.Generation(id);
    auto known = known_.find(id);
    if (known == known_.end() || known->second.generation != generation) {
      SeriesDescription description;
      if (known_.size() >= kMaxSeriesPerStream ||
          !context_.deps.store.Describe(id, &description)) {
        ++unnamed_;
        return;
      }
      bool shown = Wanted(description.device) && MaySee(description);
      known = known_.insert_or_assign(id, Known{description.generation, shown}).first;
      if (shown) {
        v1::SeriesInfo& info = *chunk->add_series();
        info.set_id(id);
        info.set_metric(std::string(kMetrics[description.metric].name));
        info.set_device(description.device);
        for (const auto& [name, value] : description.labels) (*info.mutable_labels())[name] = value;
        info.set_collector(std::string(Collectors()[streamed.collector].spec->name));
      }
    }
    if (!known->second.shown) return;
    v1::SampleValue& value = *chunk->add_samples();
    value.set_series(id);
    value.set_time_ns(streamed.sample.time_ns);
    value.set_value(streamed.sample.value);
    ++sent_;
  }

  void OnClosed() override {
    timer_.reset();
    if (subscriber_ != nullptr) context_.deps.hub.Unsubscribe(subscriber_);
  }

  struct Known {
    uint32_t generation;
    bool shown;
  };
  Context& context_;
  const Peer peer_;
  const v1::StreamSamplesRequest request_;
  std::shared_ptr<StreamSubscriber> subscriber_;
  std::unique_ptr<Timer> timer_;
  std::unordered_map<SeriesId, Known> known_;
  std::vector<StreamedSample> taken_;
  uint64_t sent_ = 0;
  uint64_t unnamed_ = 0;
  uint64_t last_dropped_ = 0;
};

// Reads file after file, on the writer thread, which is used to waiting for the disk.
class Fetch final : public StrandWriter<v1::DumpChunk> {
 public:
  Fetch(Context& context, const Peer& peer, const v1::FetchDumpRequest& request)
      : StrandWriter(context.deps.control),
        context_(context),
        peer_(peer),
        request_(request) {
    Begin();
  }

 private:
  void OnReady() override {
    if (!opened_) {
      opened_ = true;
      Result<std::vector<std::string>> names = context_.deps.dumps_to_fetch(peer_, request_);
      if (!names.ok()) {
        End(ToGrpc(names.status()));
        return;
      }
      names_ = std::move(names).value();
      OnWriter([this] { return OpenAll(); });
      return;
    }
    if (file_ < dumps_[dump_].files.size() || fd_.valid()) {
      OnWriter([this] { return ReadNext(); });
    } else if (dump_ + 1 < dumps_.size()) {
      ++dump_;
      file_ = 0;
      Announce();
      has_chunk_ = false;
      Send(std::move(next_));
    } else {
      End(grpc::Status::OK);
    }
  }

  // Runs a step on the writer thread and sends (or reports) what it made.
  void OnWriter(std::function<Status()> step) {
    Hold();
    context_.deps.writer.Post([this, step = std::move(step)] {
      Status status = step();
      control().Post([this, status] {
        Unhold();
        if (!idle()) return;
        if (!status.ok()) {
          End(ToGrpc(status));
        } else if (has_chunk_) {
          has_chunk_ = false;
          Send(std::move(next_));
        } else {
          OnReady();
        }
      });
    });
  }

  Status OpenAll() {
    for (const std::string& name : names_) {
      Result<DumpReader> reader = DumpReader::Open(context_.deps.writer.root(), name);
      if (!reader.ok()) return reader.status();
      Result<std::vector<DumpReader::File>> files = reader->Files();
      if (!files.ok()) return files.status();
      dumps_.push_back({name, std::make_unique<DumpReader>(std::move(reader).value()),
                        std::move(files).value()});
    }
    Announce();
    return Status::Ok();
  }

  // The chunk that begins the present dump.
  void Announce() {
    next_.Clear();
    next_.set_dump_name(dumps_[dump_].name);
    uint64_t total = 0;
    for (size_t i = dump_; i < dumps_.size(); ++i) {
      for (const DumpReader::File& file : dumps_[i].files) total += file.bytes;
    }
    next_.set_total_bytes(total);
    has_chunk_ = true;
  }

  Status ReadNext() {
    next_.Clear();
    const Dump& dump = dumps_[dump_];
    if (!fd_.valid()) {
      Result<UniqueFd> fd = dump.reader->OpenFile(dump.files[file_].path);
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
  struct Dump {
    std::string name;
    std::unique_ptr<DumpReader> reader;
    std::vector<DumpReader::File> files;
  };
  bool opened_ = false;
  std::vector<std::string> names_;
  std::vector<Dump> dumps_;
  size_t dump_ = 0;  // the one being sent
  size_t file_ = 0;
  UniqueFd fd_;
  v1::DumpChunk next_;
  bool has_chunk_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::Session>* NewWatch(Context& context, const Peer& peer,
                                                const v1::WatchSessionRequest& request) {
  return new Watch(context, peer, request);
}

grpc::ServerWriteReactor<v1::SampleChunk>* NewSampleStream(
    Context& context, const Peer& peer, const v1::StreamSamplesRequest& request) {
  return new SampleStream(context, peer, request);
}

grpc::ServerWriteReactor<v1::DumpChunk>* NewFetch(Context& context, const Peer& peer,
                                                  const v1::FetchDumpRequest& request) {
  return new Fetch(context, peer, request);
}

}  // namespace profd::rpc
