// A session's feeds fed from the flight recorder.
#include <utility>

#include "daemon/data/dump_writer.h"

namespace profd {
namespace {

// Written before other sessions get their turn.
constexpr size_t kTurnBytes = 4 << 20;
constexpr std::string_view kEvicted = "recorder_evicted";

}  // namespace

void WriterSession::WriteReplayed(DumpFeed& feed, const ReplayBlock& block) {
  if (block.epoch != nullptr && block.epoch != feed.epoch_) {
    if (feed.epoch_ != nullptr) NoteRestart(feed, block.info.host_ns);
    feed.epoch_ = block.epoch;
    feed.fresh_start_ = false;
    feed.filter_.reset();
  }
  if (block.after_loss) NoteRestart(feed, block.info.host_ns, kEvicted);
  Write(feed, block.info, block.bytes);
}

void WriterSession::Replay(std::shared_ptr<BlockSource> source, DumpFeed* feed) {
  writer_.Post([this, self = shared_from_this(), source = std::move(source), feed] {
    if (dump_ == nullptr) return;
    // The run that the blocks to come belong to, which may be another than that of the past.
    std::shared_ptr<ChannelEpoch> present = std::exchange(feed->epoch_, nullptr);
    ReplayBlock block;
    while (source->Next(&block)) WriteReplayed(*feed, block);
    if (feed->epoch_ == present || present == nullptr) return;
    if (feed->epoch_ != nullptr) NoteRestart(*feed, writer_.clock_.MonotonicRawNs());
    feed->epoch_ = std::move(present);
    feed->filter_.reset();
  });
}

void WriterSession::ReplayAll(std::shared_ptr<BlockSource> source, FeedOfRoute feed_of,
                              std::function<void()> done) {
  writer_.Post([this, self = shared_from_this(), source = std::move(source),
                feed_of = std::move(feed_of), done = std::move(done)]() mutable {
    ReplayBlock block;
    size_t written = 0;
    while (dump_ != nullptr && written < kTurnBytes) {
      if (!source->Next(&block)) {
        done();
        return;
      }
      written += block.bytes.size();
      if (DumpFeed* feed = feed_of(block.route); feed != nullptr) WriteReplayed(*feed, block);
    }
    if (dump_ == nullptr) {
      done();
    } else {
      ReplayAll(std::move(source), std::move(feed_of), std::move(done));
    }
  });
}

}  // namespace profd
