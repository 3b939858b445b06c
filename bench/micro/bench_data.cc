// The daemon's data path: latest values, live streams, routing to sessions, a session's own lines.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>

#include "bench/micro/bench_support.h"
#include "collectors/metric_table.h"
#include "daemon/data/channel_router.h"
#include "daemon/metrics/scrape.h"
#include "daemon/session/session_poll_sink.h"

namespace profd::bench {
namespace {

constexpr uint32_t kHbm = 1;
constexpr size_t kSamples = 64;

std::vector<Sample> InternedSamples(MetricStore& store) {
  std::vector<Sample> samples;
  for (size_t i = 0; i < kSamples; ++i) {
    const std::string cpu = std::to_string(i);
    SeriesId id =
        store.Intern(MetricByName("atlas_host_cpu_core_busy_seconds_total"), kHostDevice, {cpu});
    samples.push_back({id, 1'000'000'000, 1234.5 + static_cast<double>(i)});
  }
  return samples;
}

double TwoStoresNs() {
  static std::atomic<double> value{0};
  static std::atomic<int64_t> time{0};
  return FloorNs([] {
    value.store(1.5, std::memory_order_relaxed);
    time.store(7, std::memory_order_release);
  });
}

void StoreWrite(benchmark::State& state) {
  MetricStore store;
  std::vector<Sample> samples = InternedSamples(store);
  for (auto _ : state) {
    for (Sample& sample : samples) ++sample.time_ns;
    store.Write(samples);
  }
  Report(state, kSamples, TwoStoresNs(), "two atomic stores");
}

// Series with a window, sampled every 20 ms.
void StoreWriteWindowed(benchmark::State& state) {
  MetricStore store;
  std::vector<Sample> samples;
  for (int device = 0; device < 8; ++device) {
    for (size_t i = 0; i < kSamples / 8; ++i) {
      SeriesId id = store.Intern(MetricByName("atlas_npu_hbm_bandwidth_bytes_per_second"), device,
                                 {std::to_string(i), "read"});
      samples.push_back({id, 1'000'000'000, 1e9 + static_cast<double>(i)});
    }
  }
  double step = 1;
  for (auto _ : state) {
    for (Sample& sample : samples) {
      sample.time_ns += 20'000'000;
      sample.value += step;
    }
    step = -step;
    store.Write(samples);
  }
  Report(state, kSamples, TwoStoresNs(), "two atomic stores");
}

// All of one scrape; an eighth of the series has a window, as on a node with every channel running.
void Scrape(benchmark::State& state) {
  MetricStore store;
  SampleBatch batch;
  int64_t now = 1'000'000'000'000;
  for (int device = 0; device < 8; ++device) {
    store.SetDeviceLabels(device, std::to_string(device), "D4A1C2E0-20A0E9C2-93A4B1C0-104E0A1F");
    for (int i = 0; i < 256; ++i) {
      const bool windowed = i % 8 == 0;
      const std::string text = std::to_string(i);
      SeriesId id =
          windowed ? store.Intern(MetricByName("atlas_npu_hbm_bandwidth_bytes_per_second"), device,
                                  {text, "read"})
                   : store.Intern(MetricByName("atlas_npu_ecc_isolated_pages"), device,
                                  {text, "single", "active"});
      for (int second = 0; second < (windowed ? 16 : 1); ++second) {
        batch.Emit(id, now - second * 1'000'000'000LL, 1234.5 * i);
      }
    }
  }
  store.Write(batch.samples());
  int64_t lines = 0;
  for (auto _ : state) {
    std::string buffer;
    buffer.reserve(500000);
    std::ostringstream page(std::move(buffer));
    StoreFamilies(store, now, 15'000'000'000).Write(page);
    const std::string text = std::move(page).str();
    lines = std::count(text.begin(), text.end(), '\n');
    benchmark::DoNotOptimize(text.data());
  }
  const std::string line(160, 'x');
  double floor = FloorNs([&] { benchmark::DoNotOptimize(std::string(line)); });
  Report(state, static_cast<uint64_t>(lines), floor, "a std::string of the line");
}

void Publish(benchmark::State& state) {
  MetricStore store;
  StreamHub hub;
  std::vector<Sample> samples = InternedSamples(store);
  std::vector<std::shared_ptr<StreamSubscriber>> subscribers;
  for (int64_t i = 0; i < state.range(0); ++i) subscribers.push_back(hub.Subscribe({}, 4096));
  std::vector<StreamedSample> taken;
  for (auto _ : state) {
    hub.Publish(3, samples);
    // A subscriber reads, so that rings do not stay full.
    for (auto& subscriber : subscribers) {
      taken.clear();
      subscriber->Take(kSamples, &taken);
    }
  }
  static std::atomic<size_t> live{0};
  double floor = FloorNs([] { benchmark::DoNotOptimize(live.load(std::memory_order_relaxed)); });
  Report(state, 1, floor, "an atomic load");
}

// A writer with sessions whose dumps are real, in a folder that goes away.
class Writer {
 public:
  Writer() {
    Result<DumpRoot> root = DumpRoot::Open(folder_.path());
    if (!root.ok()) std::abort();
    writer_.emplace(std::move(root).value(), TheBench().clock, pool_, DumpWriter::Options());
  }
  ~Writer() {
    for (auto& session : sessions_) {
      session->Finish(
          {}, [](Manifest&) {}, [](const Status&) {});
    }
    writer_.reset();
  }
  std::shared_ptr<WriterSession> Open() {
    SessionDumpOptions options;
    options.owner = {::getuid(), ::getgid()};
    options.sync_at_end = false;
    options.devices.push_back({.facts = {.id = 0, .chip_id = 5}, .clocks = {}});
    sessions_.push_back(writer_->Open(std::move(options), 1, [](const Result<std::string>&) {}));
    Settle();
    return sessions_.back();
  }
  // Until everything pushed so far has been written.
  void Settle() {
    std::mutex mutex;
    std::condition_variable done;
    bool ran = false;
    writer_->Post([&] {
      std::lock_guard lock(mutex);
      ran = true;
      done.notify_one();
    });
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return ran; });
  }
  BlockPool& pool() { return pool_; }
  DumpWriter& writer() { return *writer_; }

 private:
  Folder folder_;
  BlockPool pool_{64 << 20};
  std::optional<DumpWriter> writer_;
  std::vector<std::shared_ptr<WriterSession>> sessions_;
};

// One block of two HBM records from the pump to every consumer, the writer's work included (it runs on
// a thread of its own: CPU time of the process).
void OnBlock(benchmark::State& state) {
  const ChannelData& data = DataOf(kHbm);
  if (data.records < 2) return state.SkipWithError("the simulated chip has no HBM");
  Bench& bench = TheBench();
  MetricStore store;
  StreamHub hub;
  auto stats = std::make_unique<CollectorStatsTable>();
  auto router = std::make_unique<ChannelRouter>(store, hub, *stats, nullptr);
  Writer writer;
  router->Declare(0, kHbm, 0);
  router->Begin(0, kHbm,
                FindCollector("hbm")->make_decoder(bench.devices[0], kHbm, store),
                TimeBase());
  for (int64_t i = 0; i < state.range(0); ++i) {
    std::shared_ptr<WriterSession> session = writer.Open();
    FeedOptions feed;
    feed.collector = "hbm";
    feed.device = 0;
    feed.channel = kHbm;
    feed.format = data.format;
    router->Attach(0, kHbm, {session, session->AddFeed(feed)});
  }
  const std::span<const std::byte> records = std::span(data.bytes).first(48);
  int64_t sent = 0;
  for (auto _ : state) {
    BlockBuilder builder = writer.pool().Get(records.size());
    std::memcpy(builder.buffer().data(), records.data(), records.size());
    BlockInfo info;
    info.channel = kHbm;
    info.records = 2;
    router->OnBlock(std::move(builder).Finish(info, records.size()));
    if (++sent % 4096 == 0) writer.Settle();
  }
  writer.Settle();
  Report(state, 1, CopyNs(records), "memcpy of the block");
}

void OwnLines(benchmark::State& state) {
  MetricStore store;
  std::vector<Sample> samples = InternedSamples(store);
  Writer writer;
  CollectorSpec spec = *FindCollector("npu_state")->spec;
  SessionPollSink sink(store, writer.Open(), spec, 10);
  int64_t sent = 0;
  for (auto _ : state) {
    sink.OnSamples(samples);
    if (++sent % 256 == 0) writer.Settle();
  }
  writer.Settle();
  char text[64];
  double floor = FloorNs([&] {
    std::to_chars_result at = std::to_chars(text, text + 24, samples[0].time_ns);
    benchmark::DoNotOptimize(std::to_chars(at.ptr, text + sizeof text, samples[0].value));
  });
  Report(state, kSamples, floor, "to_chars of time and value");
}

BENCHMARK(StoreWrite)->Name("metric_store/write");
BENCHMARK(StoreWriteWindowed)->Name("metric_store/write_windowed");
BENCHMARK(Scrape)->Name("metric_store/scrape_line");
BENCHMARK(Publish)->Name("stream_hub/publish_64_samples/subscribers")->Arg(0)->Arg(1)->Arg(4);
BENCHMARK(OnBlock)
    ->Name("router/on_block/sessions")
    ->Arg(0)
    ->Arg(1)
    ->Arg(4)
    ->MeasureProcessCPUTime();
BENCHMARK(OwnLines)->Name("session/own_line")->MeasureProcessCPUTime();

}  // namespace
}  // namespace profd::bench
