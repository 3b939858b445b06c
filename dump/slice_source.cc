#include "dump/slice_source.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "dump/slice_journal.h"

namespace profd {
namespace {

// No slice of ours needs more; a file that needs more is not decompressed.
constexpr int kMaxWindowLog = 23;
// Every record has a time of its own, so records never become so much smaller. What does is no slice, and would fill
// the memory of those that read it.
constexpr uint64_t kMaxRatio = 1000;
constexpr uint64_t kAnyRatioBytes = 64u << 20;

}  // namespace

struct SliceSource::Zstd {
  struct Free {
    void operator()(ZSTD_DCtx* taken) const { ZSTD_freeDCtx(taken); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context{ZSTD_createDCtx()};
  std::vector<std::byte> stored = std::vector<std::byte>(ZSTD_DStreamInSize());
  ZSTD_inBuffer in = {stored.data(), 0, 0};
  bool file_ended = false;
  bool frame_open = false;  // the file may not end here
};

bool IsCompressedSlice(std::string_view path) { return path.ends_with(kCompressedSuffix); }

SliceSource::SliceSource(UniqueFd fd, std::string_view path, Sums sums)
    : fd_(std::move(fd)), sums_(sums == Sums::kYes) {
  if (!IsCompressedSlice(path)) return;
  zstd_ = std::make_unique<Zstd>();
  if (zstd_->context != nullptr) {
    ZSTD_DCtx_setParameter(zstd_->context.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }
}

SliceSource::~SliceSource() = default;

Result<size_t> SliceSource::ReadStored(std::span<std::byte> out) {
  if (!failed_.ok()) return failed_;
  for (;;) {
    ssize_t got = ::read(fd_.get(), out.data(), out.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Status::FromErrno(errno, "read slice");
    auto size = static_cast<size_t>(got);
    stored_bytes_ += size;
    if (sums_) stored_crc32c_ = Crc32c(out.first(size), stored_crc32c_);
    return size;
  }
}

Result<size_t> SliceSource::Decompress(std::span<std::byte> out) {
  Zstd& z = *zstd_;
  if (z.context == nullptr) return ResourceExhausted("no memory to decompress a slice");
  ZSTD_outBuffer to = {out.data(), out.size(), 0};
  while (to.pos < to.size && failed_.ok()) {
    if (z.in.pos == z.in.size && !z.file_ended) {
      Result<size_t> got = ReadStored(z.stored);
      if (!got.ok()) {
        failed_ = got.status();
        break;
      }
      z.file_ended = *got == 0;
      z.in = {z.stored.data(), *got, 0};
    }
    const bool no_input = z.in.pos == z.in.size;
    if (no_input && !z.frame_open) break;
    const size_t before = to.pos;
    // Also without input: the decompressor may hold back what did not fit.
    size_t left = ZSTD_decompressStream(z.context.get(), &to, &z.in);
    if (ZSTD_isError(left) != 0) {
      failed_ = DataLoss(std::string("compressed slice: ") + ZSTD_getErrorName(left));
    } else {
      z.frame_open = left != 0;
      const uint64_t all = bytes_ + to.pos;
      if (all > kAnyRatioBytes && all / kMaxRatio > stored_bytes_) {
        failed_ = DataLoss(fmt::format("compressed slice: more than {} times its size", kMaxRatio));
      }
      if (z.frame_open && no_input && to.pos == before) {
        failed_ = DataLoss("compressed slice is cut off");
      }
    }
  }
  if (to.pos == 0 && !failed_.ok()) return failed_;
  return to.pos;
}

Result<size_t> SliceSource::Read(std::span<std::byte> out) {
  size_t done = 0;
  while (done < out.size()) {
    Result<size_t> got =
        zstd_ != nullptr ? Decompress(out.subspan(done)) : ReadStored(out.subspan(done));
    if (!got.ok() && done == 0) return got;
    if (!got.ok()) {
      failed_ = got.status();
      break;
    }
    if (*got == 0) break;
    done += *got;
  }
  bytes_ += done;
  if (zstd_ == nullptr) {
    crc32c_ = stored_crc32c_;
  } else if (sums_) {
    crc32c_ = Crc32c(out.first(done), crc32c_);
  }
  return done;
}

}  // namespace profd
