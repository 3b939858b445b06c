// One file without a name for everything that does not fit into memory until the files of an export are put
// together. Any thread appends; a piece is read once, and its space freed then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/status.h"

namespace profd::exporting {

// In `dir`, gone with the descriptor. Not valid: errno says why.
UniqueFd OpenUnnamed(const std::string& dir);

class Spool {
 public:
  // In `dir`, so that it is on the file system of the results; gone with the descriptor.
  static Result<std::unique_ptr<Spool>> Create(const std::string& dir);

  // Where it is.
  Result<uint64_t> Append(std::span<const std::byte> bytes);
  Result<uint64_t> Append(std::string_view text) {
    return Append(std::as_bytes(std::span(text.data(), text.size())));
  }
  Status Read(uint64_t offset, std::span<std::byte> into) const;
  // To the end of the file `to`, within the kernel where it can.
  Status CopyTo(int to, uint64_t offset, uint64_t bytes) const;
  // These bytes are not read again.
  void Forget(uint64_t offset, uint64_t bytes) const;

 private:
  explicit Spool(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  std::atomic<uint64_t> end_{0};
};

// All of it to the end of `fd`; `what` begins the text of an error.
Status WriteAll(int fd, std::string_view text, std::string_view what = "writing");

}  // namespace profd::exporting
