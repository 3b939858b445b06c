#include "dump/slice_compressor.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/crc32c.h"
#include "dump/slice_journal.h"

namespace profd {
namespace {

constexpr int kLowestPriority = 19;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

SliceCompressor::SliceCompressor(DumpIo& io, DumpOwner owner, int level)
    : io_(io), owner_(owner), level_(std::clamp(level, 1, 3)) {
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "profd-zstd");
    // Of this thread only (Linux). Where it is not allowed the thread is like any other.
    [[maybe_unused]] int ignored =
        ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestPriority);
    Run();
  });
}

SliceCompressor::~SliceCompressor() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    waiting_.clear();
  }
  wake_.NotifyOne();
  thread_.join();
}

bool SliceCompressor::Take(Job job) {
  {
    MutexLock lock(mutex_);
    if (stop_ || waiting_.size() >= kMaxWaiting) return false;
    waiting_.push_back(std::move(job));
  }
  wake_.NotifyOne();
  return true;
}

std::vector<SliceCompressor::Done> SliceCompressor::TakeDone() {
  MutexLock lock(mutex_);
  return std::exchange(done_, {});
}

bool SliceCompressor::Forget(uint64_t id) {
  MutexLock lock(mutex_);
  auto found = std::ranges::find(waiting_, id, &Job::id);
  if (found != waiting_.end()) {
    waiting_.erase(found);
    return true;
  }
  if (in_hand_bytes_ != 0 && in_hand_ == id) {
    forget_in_hand_ = true;
    return true;
  }
  return false;
}

void SliceCompressor::Finish(int64_t max_ns) {
  MutexLock lock(mutex_);
  auto idle = [this]() REQUIRES(mutex_) { return waiting_.empty() && in_hand_bytes_ == 0; };
  idle_.WaitFor(lock, std::chrono::nanoseconds(max_ns), idle);
  waiting_.clear();
  if (in_hand_bytes_ != 0) forget_in_hand_ = true;
  idle_.Wait(lock, idle);
  stop_ = true;
  wake_.NotifyOne();
}

uint64_t SliceCompressor::spare_bytes() const {
  MutexLock lock(mutex_);
  uint64_t most = in_hand_bytes_;
  for (const Job& job : waiting_) most = std::max(most, job.bytes);
  return most;
}

void SliceCompressor::Run() {
  for (;;) {
    Job job;
    {
      MutexLock lock(mutex_);
      wake_.Wait(lock, [this]() REQUIRES(mutex_) { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      in_hand_ = job.id;
      in_hand_bytes_ = std::max<uint64_t>(1, job.bytes);
      forget_in_hand_ = false;
    }
    Done done = Compress(job);
    const std::string temporary = fmt::format(".{}.zst.tmp", job.name);
    {
      // Under the lock, so that Forget is either before or after.
      MutexLock lock(mutex_);
      const std::string packed = job.name + std::string(kCompressedSuffix);
      if (forget_in_hand_ || done.bytes == 0 ||
          ::renameat(job.dir.get(), temporary.c_str(), job.dir.get(), packed.c_str()) != 0) {
        done.bytes = 0;
        ::unlinkat(job.dir.get(), temporary.c_str(), 0);
      } else {
        io_.Unlink(job.dir.get(), job.name);
      }
      if (!forget_in_hand_) done_.push_back(done);
      in_hand_bytes_ = 0;
    }
    idle_.NotifyAll();
  }
}

SliceCompressor::Done SliceCompressor::Compress(const Job& job) {
  Done done;
  done.id = job.id;
  const std::string temporary = fmt::format(".{}.zst.tmp", job.name);
  ::unlinkat(job.dir.get(), temporary.c_str(), 0);
  Result<UniqueFd> to = io_.Create(job.dir.get(), temporary, owner_);
  if (!to.ok()) return done;
  // Whatever goes wrong, the slice stays as it was, which loses nothing.
  Status status = CompressTo(job, to->get(), &done);
  // The plain one goes when this one is on the disk, not before.
  if (status.ok() && io_.Sync(to->get()) != 0) status = Status::FromErrno(errno, temporary);
  if (status.ok()) io_.DropCache(to->get());
  if (!status.ok() || done.bytes >= job.bytes) done.bytes = 0;
  return done;
}

Status SliceCompressor::CompressTo(const Job& job, int to, Done* done) {
  std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) return ResourceExhausted("no memory to compress");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level_);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setPledgedSrcSize(context.get(), job.bytes);
  Result<UniqueFd> from = OpenFileAt(job.dir.get(), job.name);
  if (!from.ok()) return from.status();
  std::vector<std::byte> in(ZSTD_CStreamInSize());
  std::vector<std::byte> out(ZSTD_CStreamOutSize());
  uint64_t read = 0;
  uint32_t sum = 0;
  while (read < job.bytes) {
    ssize_t got = ::read(from->get(), in.data(), std::min<uint64_t>(in.size(), job.bytes - read));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return DataLoss(fmt::format("{} is shorter than it was", job.name));
    read += static_cast<uint64_t>(got);
    sum = Crc32c(std::span(in).first(static_cast<size_t>(got)), sum);
    ZSTD_inBuffer input = {in.data(), static_cast<size_t>(got), 0};
    const bool last = read == job.bytes;
    for (size_t left = 1; last ? left != 0 : input.pos < input.size;) {
      ZSTD_outBuffer output = {out.data(), out.size(), 0};
      left = ZSTD_compressStream2(context.get(), &output, &input,
                                  last ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0) return Internal(ZSTD_getErrorName(left));
      auto piece = std::span(out).first(output.pos);
      // Never more beside the slice than the slice itself takes.
      if (done->bytes + piece.size() >= job.bytes) return OutOfRange("does not get smaller");
      RETURN_IF_ERROR(WriteAll(io_, to, piece, job.name));
      done->bytes += piece.size();
      done->crc32c = Crc32c(piece, done->crc32c);
    }
  }
  if (sum != job.crc32c) return DataLoss(fmt::format("{} differs from what was written", job.name));
  return {};
}

}  // namespace profd
