// StreamSamples: live samples.
#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "collectors/collector_hint.h"
#include "collectors/metric_table.h"
#include "daemon/node/node.h"
#include "daemon/rpc/rpc_internal.h"
#include "daemon/rpc/strand_writer.h"
#include "daemon/session/session_plan.h"

namespace profd::rpc {
namespace {

constexpr uint32_t kDefaultStreamMs = 200;
constexpr size_t kSamplesPerChunk = 8192;
constexpr size_t kSamplesAtOnce = 512;
// What a sample costs in a message that waits for the client: as an object and in its serialised form.
constexpr uint64_t kBytesOfSample = 96;
// What a series costs: its place in known_, and once its description in a message.
constexpr uint64_t kBytesOfSeries = 64;
constexpr uint64_t kSeriesAtOnce = 256;

class SampleStream final : public StrandWriter<v1::SampleChunk> {
 public:
  SampleStream(Context& context, const Peer& peer, const v1::StreamSamplesRequest& request,
               Memory memory)
      : StrandWriter(context.deps.control, std::move(memory)),
        context_(context),
        peer_(peer),
        request_(request) {
    Begin();
  }

 private:
  void OnReady() override {
    if (subscriber_ == nullptr && !Subscribe()) return;
    const uint64_t interval = request_.has_interval_ms() ? request_.interval_ms() : kDefaultStreamMs;
    timer_->After(static_cast<int64_t>(interval) * kNsPerMs, [this] { Flush(); });
  }

  bool Subscribe() {
    std::bitset<kMaxCollectors> wanted;
    ProblemList problems;
    for (const std::string& name : request_.collectors()) {
      const CollectorEntry* entry = FindCollector(name);
      if (entry == nullptr) {
        problems.Add({.field = "collector", .value = name, .text = "no such collector" + CollectorHint(name)});
      } else {
        wanted.set(static_cast<size_t>(entry - Collectors().data()));
      }
    }
    const auto& devices = context_.deps.node.host().devices;
    for (const uint32_t id : request_.devices()) {
      const bool is_here = std::ranges::any_of(devices, [id](const DeviceInfo& one) { return static_cast<uint32_t>(one.id) == id; });
      if (!is_here) problems.Add(NoSuchDevice(id, devices));
    }
    if (request_.has_max_samples() && request_.max_samples() == 0) {
      problems.Add({.field = "max_samples", .value = "0", .text = "must be above zero"});
    }
    if (request_.has_interval_ms() &&
        (request_.interval_ms() < 10 || request_.interval_ms() > 10000)) {
      problems.Add({.field = "interval_ms",
                    .value = std::to_string(request_.interval_ms()),
                    .text = "must be 10ms..10s"});
    }
    if (!problems.empty()) {
      End(ToGrpc({StatusCode::kInvalidArgument, std::move(problems).Take()}));
      return false;
    }
    subscriber_ = context_.deps.hub.Subscribe(wanted, kStreamRing, [hold = memory()](int64_t bytes) {
      if (bytes >= 0) return hold->Grow(static_cast<uint64_t>(bytes)).ok();
      hold->Shrink(static_cast<uint64_t>(-bytes));
      return true;
    });
    timer_ = std::make_unique<Timer>(control());
    return true;
  }

  // Series of single processes are for their owner. Checked once a series: a pid that is used again as
  // another user's is another series by then, the collectors let go of those that ended.
  bool MaySee(const SeriesDescription& description) const {
    for (const auto& [name, value] : description.labels) {
      pid_t pid = 0;
      if (name != "pid") continue;
      auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), pid);
      if (error != std::errc()) return false;
      const Result<uint32_t> owner = context_.deps.node.OwnerOf(pid);
      return owner.ok() ? peer_.Sees(*owner) : peer_.admin || peer_.viewer;
    }
    return true;
  }

  bool Wanted(int device) const {
    if (device == kHostDevice) return !request_.devices_only();
    const auto& devices = request_.devices();
    return devices.empty() || std::ranges::find(devices, static_cast<uint32_t>(device)) != devices.end();
  }

  void Flush() {
    if (!idle()) return;
    // Samples for which there is no memory stay where they are until the next time.
    size_t left = std::min(kSamplesPerChunk, subscriber_->waiting());
    if (left > 0 && !GrowForMessage(left * kBytesOfSample).ok()) left = 0;
    v1::SampleChunk chunk;
    while (left > 0 && !Enough()) {
      taken_.clear();
      subscriber_->Take(std::min(left, kSamplesAtOnce), &taken_);
      if (taken_.empty()) break;
      left -= taken_.size();
      for (const StreamedSample& streamed : taken_) {
        if (!Enough()) Add(streamed, &chunk);
      }
    }
    chunk.set_dropped(subscriber_->dropped() + unnamed_);
    if (chunk.samples().empty() && chunk.dropped() == last_dropped_ && !Enough()) {
      DropMessageMemory();
      OnReady();
      return;
    }
    last_dropped_ = chunk.dropped();
    chunk.set_wall_offset_ns(clock_.WallNs() - clock_.MonotonicRawNs());
    Send(std::move(chunk));
    if (Enough()) End(grpc::Status::OK);
  }

  bool Enough() const { return request_.has_max_samples() && sent_ >= request_.max_samples(); }

  // Space for one more series, counted in steps.
  bool KeepSeries() {
    if (known_.size() < series_paid_) return true;
    if (!memory()->Grow(kSeriesAtOnce * kBytesOfSeries).ok()) return false;
    series_paid_ += kSeriesAtOnce;
    return true;
  }

  void Add(const StreamedSample& streamed, v1::SampleChunk* chunk) {
    SeriesId id = streamed.sample.series;
    uint32_t generation = context_.deps.store.Generation(id);
    auto known = known_.find(id);
    if (known == known_.end() || known->second.generation != generation) {
      SeriesDescription description;
      if (!KeepSeries() || !context_.deps.store.Describe(id, &description)) {
        ++unnamed_;
        return;
      }
      bool shown = Wanted(description.device) && MaySee(description);
      known = known_.insert_or_assign(id, SentSeries{description.generation, shown}).first;
      if (shown) {
        v1::SeriesInfo& info = *chunk->add_series();
        info.set_id(id);
        info.set_metric(std::string(kMetrics[description.metric].name));
        if (description.device != kHostDevice) info.set_device(static_cast<uint32_t>(description.device));
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

  struct SentSeries {
    uint32_t generation;
    bool shown;
  };
  Context& context_;
  const Peer peer_;
  const v1::StreamSamplesRequest request_;
  const SystemClock clock_;
  std::shared_ptr<StreamSubscriber> subscriber_;
  std::unique_ptr<Timer> timer_;
  std::unordered_map<SeriesId, SentSeries> known_;
  size_t series_paid_ = 0;  // that memory has been taken for
  std::vector<StreamedSample> taken_;
  uint64_t sent_ = 0;
  uint64_t unnamed_ = 0;
  uint64_t last_dropped_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::SampleChunk>* NewSampleStream(
    Context& context, const Peer& peer, const v1::StreamSamplesRequest& request, Memory memory) {
  return new SampleStream(context, peer, request, std::move(memory));
}

}  // namespace profd::rpc
