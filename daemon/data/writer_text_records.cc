// What the writer does with text records of host files.
#include <utility>

#include "daemon/data/dump_writer.h"
#include "daemon/data/host_file_buffer.h"

namespace profd {

void WriterSession::PushTextRecords(DumpFeed* feed, BlockBuilder block, size_t used, uint64_t count) {
  BlockInfo info;
  info.records = static_cast<uint32_t>(count);
  Push(feed, std::move(block).Finish(info, used));
}

void WriterSession::CountLostTextRecords(DumpFeed* feed, size_t bytes, uint64_t records) {
  feed->CountLoss(LossReason::kNoBuffer, records, bytes);
  writer_.dropped_full_.fetch_add(bytes, std::memory_order_relaxed);
}

void WriterSession::WriteTextRecords(DumpFeed& feed, std::string_view text) {
  uint64_t records = 0;
  uint64_t bytes = 0;
  std::string_view file;
  std::string_view lines;
  const int64_t now = writer_.clock_.MonotonicRawNs();
  while (NextHostText(&text, &file, &lines)) {
    if (feed.renumber_) lines = Renumber(feed, file, lines);
    const size_t record_bytes = feed.options_.record_bytes;
    const bool counted = feed.same_poll_ && file.empty();
    const uint64_t count = counted ? 0 : record_bytes == 0 ? 1 : lines.size() / record_bytes;
    Status status = AppendText(feed, file, lines, {count, now, feed.options_.collector});
    if (!status.ok()) {
      if (status.code() == StatusCode::kOutOfRange) {
        LeaveOut(status, feed, lines.size());
      } else {
        Fail(status, feed, lines.size(), count);
      }
      continue;
    }
    records += count;
    bytes += lines.size();
  }
  feed.counters_.records.fetch_add(records, std::memory_order_relaxed);
  feed.counters_.bytes.fetch_add(bytes, std::memory_order_relaxed);
  writer_.written_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

Status WriterSession::AppendText(DumpFeed& feed, std::string_view file, std::string_view lines,
                                 const SessionDump::Batch& batch) {
  const FeedOptions& wish = feed.options_;
  if (!file.empty()) return AppendHostText(feed, file, lines, batch);
  if (wish.file.empty()) return dump_->AppendOwn(kOwnSamplesFile, lines);
  if (wish.device >= 0) return dump_->AppendDeviceFile(wish.device, wish.file, lines, batch);
  return dump_->AppendOwn(wish.file, lines);
}

// Looking a name up costs more than writing what is under it: it is searched where it was last time.
Status WriterSession::AppendHostText(DumpFeed& feed, std::string_view file, std::string_view lines,
                                     const SessionDump::Batch& batch) {
  std::vector<SessionDump::HostFile>& next = feed.next_file_;
  SessionDump::HostFile found = feed.last_file_ < next.size() ? next[feed.last_file_] : 0;
  if (!dump_->IsHostFile(found, file)) {
    Result<SessionDump::HostFile> opened = dump_->OpenHostFile(file, batch.collector);
    if (!opened.ok()) return opened.status();
    found = *opened;
    if (feed.last_file_ >= next.size()) next.resize(feed.last_file_ + 1, 0);
    next[feed.last_file_] = found;
  }
  feed.last_file_ = found;
  return dump_->AppendHostFile(found, lines, batch);
}

}  // namespace profd
