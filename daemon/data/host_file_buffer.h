// Text records for a session's host files on their way to the writer, many to a block: a poll of some
// hundred processes is some hundred short text records, and a block, a lock and a queue entry for each
// would cost more than reading the process.
//
// Text records are put into the block that will carry them, and nowhere before.
//
// In a block: {uint32 bytes of lines, uint8 bytes of name}, name, lines; and so on. An empty name
// means our own samples file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "driver/block.h"

namespace profd {

class DumpFeed;
class WriterSession;

// Of one feed, on one thread.
class HostFileBuffer {
 public:
  HostFileBuffer(std::shared_ptr<WriterSession> session, DumpFeed* feed)
      : session_(std::move(session)), feed_(feed) {}
  DumpFeed* feed() const { return feed_; }

  // Complete lines for host file `file`; empty: our own samples. Longer than a block holds they are
  // cut at a line's end.
  void Add(std::string_view file, std::string_view lines);
  // Where `bytes` bytes of complete lines or records of `file` are to be put instead, before anything else
  // is done with this. Null: nowhere; call Add, or count them with Lose.
  char* Reserve(std::string_view file, size_t bytes, uint64_t records = 1);
  void Lose(size_t bytes, uint64_t records = 1);
  // So many bytes come until the next Flush, where that is known: blocks are as large as it takes.
  void Expect(size_t bytes) { added_before_ = added_ + bytes; }
  // Hands on what was added.
  void Flush();

 private:
  void AddPart(std::string_view file, std::string_view lines);
  // Where records continue in the last text record, which is made longer; null: they need one of their own.
  char* Extend(std::string_view file, size_t bytes);
  void HandOn();

  const std::shared_ptr<WriterSession> session_;
  DumpFeed* const feed_;
  BlockBuilder block_;
  std::span<std::byte> buffer_;  // of block_
  size_t used_ = 0;            // of buffer_
  size_t last_ = 0;            // where the head of the last text is, if anything is used
  uint64_t count_ = 0;         // records in block_
  size_t added_ = 0;           // bytes since the last Flush, ...
  size_t added_before_ = 0;    // ... and what is expected: as many as before, or by Expect
};

// Appends one text in that layout; `file` is cut to 255 bytes.
void AppendHostText(std::string_view file, std::string_view lines, std::string* out);

// Takes the next text record off the front of `*rest`; false at the end, or if the rest is not a text record.
[[nodiscard]] bool NextHostText(std::string_view* rest, std::string_view* file,
                                std::string_view* lines);

}  // namespace profd
