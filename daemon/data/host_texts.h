// Texts for a session's host files on their way to the writer, many to a block: a reading of some
// hundred processes is some hundred short texts, and a block, a lock and a queue entry for each
// would cost more than reading the process.
//
// In a block: {uint32 bytes of lines, uint8 bytes of name}, name, lines; and so on. An empty name
// means our own samples file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "driver/block.h"

namespace profd {

class DumpFeed;
class WriterSession;

// Of one feed, on one thread.
class HostTexts {
 public:
  HostTexts(std::shared_ptr<WriterSession> session, DumpFeed* feed)
      : session_(std::move(session)), feed_(feed) {}

  // Whole lines for host file `file`; empty: our own samples. Longer than a block holds they are
  // cut at a line's end.
  void Add(std::string_view file, std::string_view lines);
  // Hands on what was added.
  void Flush();

 private:
  void AddPart(std::string_view file, std::string_view lines);

  const std::shared_ptr<WriterSession> session_;
  DumpFeed* const feed_;
  std::string texts_;
  uint64_t count_ = 0;
};

// Appends one text in that layout; `file` is cut to 255 bytes.
void AppendHostText(std::string_view file, std::string_view lines, std::string* out);

// Takes the next text off the front of `*rest`; false at the end, or if the rest is no text.
[[nodiscard]] bool NextHostText(std::string_view* rest, std::string_view* file,
                                std::string_view* lines);

}  // namespace profd
