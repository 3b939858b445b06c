// A session's feeds fed from the flight recorder.
#include <fmt/format.h>

#include <utility>

#include "base/text.h"
#include "daemon/data/dump_writer.h"

namespace profd {
namespace {

// Written before other sessions get their turn.
constexpr size_t kTurnBytes = 4 << 20;

// Takes "<key><number>\n" off the front.
bool TakeField(std::string_view key, std::string_view* rest, uint64_t* number) {
  if (!rest->starts_with(key)) return false;
  size_t end = rest->find('\n');
  if (end == std::string_view::npos) return false;
  if (!ParseNumber(rest->substr(key.size(), end - key.size()), number)) return false;
  rest->remove_prefix(end + 1);
  return true;
}

}  // namespace

// The vendor's blocks of /proc files carry a number that its reader wants to rise by one from 0
// (dump-format 2.14). What is no such block stays as it is.
std::string_view WriterSession::Renumber(DumpFeed& feed, std::string_view file,
                                         std::string_view lines) {
  constexpr std::string_view kTime = "TimeStamp:";
  if (file.empty() || !lines.starts_with(kTime)) return lines;
  auto next = feed.next_index_.find(file);
  if (next == feed.next_index_.end()) {
    next = feed.next_index_.emplace(std::string(file), 0).first;
  }
  std::string& out = feed.renumbered_;
  out.clear();
  while (!lines.empty()) {
    std::string_view rest = lines;
    uint64_t time = 0;
    uint64_t index = 0;
    uint64_t size = 0;
    bool good = TakeField(kTime, &rest, &time) && TakeField("Index:", &rest, &index) &&
                TakeField("DataLen:", &rest, &size) && size <= rest.size() &&
                rest.substr(size).starts_with("\n\n");
    if (!good) break;
    size += 2;
    out += fmt::format("{}{}\nIndex:{}\nDataLen:{}\n", kTime, time, next->second++, size - 2);
    out += rest.substr(0, size);
    lines = rest.substr(size);
  }
  out += lines;
  return out;
}

void WriterSession::WriteReplayed(DumpFeed& feed, const ReplayBlock& block) {
  if (block.epoch != nullptr && block.epoch != feed.epoch_) {
    EndRun(feed);
    if (feed.epoch_ != nullptr) feed.losses_.NoteRestart(PlaceOf(feed), block.info.host_ns, LossReason::kChannelRestart);
    feed.epoch_ = block.epoch;
  }
  if (block.after_loss) feed.losses_.NoteRestart(PlaceOf(feed), block.info.host_ns, LossReason::kRecorderEvicted);
  if (block.bytes.empty()) {
    const BlockLoss& loss = block.loss;
    feed.losses_.Lose(PlaceOf(feed), block.lost_for, loss.records, loss.bytes, loss.host_ns != 0 ? loss.host_ns : writer_.clock_.MonotonicRawNs());
    return;
  }
  if (feed.options_.format == nullptr) {
    feed.renumber_ = true;
    feed.same_poll_ = block.info.host_ns == std::exchange(feed.replayed_ns_, block.info.host_ns);
  }
  Write(feed, block.info, block.bytes);
  if (feed.options_.format == nullptr) {
    feed.same_poll_ = false;
    feed.losses_.NoteWritten(block.info.host_ns);
  }
}

void WriterSession::Replay(std::shared_ptr<BlockSource> source, DumpFeed* feed) {
  writer_.Post([this, self = shared_from_this(), source = std::move(source), feed] {
    if (dump_ == nullptr) return;
    // The run that the blocks to come belong to, which may be another than that of the past.
    std::shared_ptr<ChannelEpoch> present = std::exchange(feed->epoch_, nullptr);
    ReplayBlock block;
    while (source->Next(&block)) WriteReplayed(*feed, block);
    if (source->lost_end()) feed->losses_.NoteRestart(PlaceOf(*feed), writer_.clock_.MonotonicRawNs(), LossReason::kRecorderEvicted);
    if (feed->epoch_ == present || present == nullptr) return;
    EndRun(*feed);
    if (feed->epoch_ != nullptr) feed->losses_.NoteRestart(PlaceOf(*feed), writer_.clock_.MonotonicRawNs(), LossReason::kChannelRestart);
    feed->epoch_ = std::move(present);
  });
}

// Of several feeds' blocks, those that left may have been any's.
void WriterSession::NoteEvicted(int64_t now_ns) {
  MutexLock lock(mutex_);
  for (const auto& feed : feeds_) feed->losses_.NoteRestart(PlaceOf(*feed), now_ns, LossReason::kRecorderEvicted);
}

void WriterSession::ReplayHost(std::shared_ptr<BlockSource> source, DumpFeed* feed, double hz,
                               int64_t until_ns) {
  writer_.Post([feed, hz, until_ns, self = shared_from_this()] {
    feed->past_hz_ = hz;
    feed->past_until_ns_ = until_ns;
  });
  Replay(std::move(source), feed);
}

void WriterSession::ReplayAll(std::shared_ptr<BlockSource> source, FeedOfRoute feed_of,
                              std::function<void()> done) {
  writer_.Post([this, self = shared_from_this(), source = std::move(source),
                feed_of = std::move(feed_of), done = std::move(done)]() mutable {
    ReplayBlock block;
    size_t written = 0;
    while (dump_ != nullptr && written < kTurnBytes) {
      if (!source->Next(&block)) {
        if (source->lost_end()) NoteEvicted(writer_.clock_.MonotonicRawNs());
        done();
        return;
      }
      written += block.bytes.size();
      if (block.after_loss) NoteEvicted(block.info.host_ns);
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
