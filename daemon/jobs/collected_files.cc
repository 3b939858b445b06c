#include "daemon/jobs/collected_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "base/crc32c.h"
#include "base/dir_stream.h"
#include "base/utf8.h"

namespace profd {
namespace {

constexpr size_t kChunk = 1 << 20;
constexpr size_t kMaxPath = 256;
// Bytes of the dump's limit are reserved in steps, and for each file's line in the manifest.
constexpr uint64_t kAhead = 4 << 20;
constexpr uint64_t kListed = 512;
// A thread that has not noticed the deadline by then is in a call that does not return.
constexpr int64_t kGraceNs = 2 * kNsPerSecond;

class TreeCopy {
 public:
  TreeCopy(const CopyPlaces& places, const CopyLimits& limits, const Clock& clock, DumpIo& io)
      : user_(places.user), owner_(places.owner), limits_(limits), clock_(clock), io_(io), chunk_(kChunk) {}

  CopiedFiles Run(int from, int to) {
    struct stat info {};
    // Where "." leads is not the name of the caller's, and a descriptor that only names a folder opens nothing.
    UniqueFd top(::openat(from, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!top.valid() || ::fstat(top.get(), &info) != 0) {
      result_.status = Status::FromErrno(errno, "the directory of the process");
    } else if (info.st_uid != user_) {
      result_.status =
          PermissionDenied(fmt::format("the directory belongs to uid {}, not to the process's {}", info.st_uid, user_));
    } else {
      device_ = info.st_dev;
      result_.status = CopyFolder(std::move(top), to, "", 0);
      if (result_.status.ok()) result_.status = refused_;
    }
    return std::move(result_);
  }

 private:
  void LeaveOut(const std::string& path, std::string why, uint64_t bytes = 0) {
    ++result_.left_out;
    result_.left_out_bytes += bytes;
    if (result_.examples.size() < CopiedFiles::kMaxExamples) {
      result_.examples.push_back({AsciiOnly(path, kMaxPath), std::move(why)});
    }
  }
  Status CheckTime() const {
    if (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) {
      return DeadlineExceeded("the session has ended meanwhile");
    }
    if (clock_.SteadyNs() < limits_.until_steady_ns) return Status::Ok();
    return DeadlineExceeded("the files were not copied in time");
  }

  // Folders last: what describes a folder is in its files, and a limit may be near.
  Status ReadNames(UniqueFd folder, std::vector<std::string>* names) {
    std::vector<std::string> folders;
    Status complete = ReadNames(std::move(folder), names, &folders);
    std::ranges::sort(*names);
    std::ranges::sort(folders);
    names->insert(names->end(), folders.begin(), folders.end());
    return complete;
  }

  Status ReadNames(UniqueFd folder, std::vector<std::string>* files, std::vector<std::string>* folders) {
    DirStream stream(std::move(folder));
    if (!stream.valid()) return Status::FromErrno(errno, "read a folder");
    while (const dirent* entry = stream.Next()) {
      if (++entries_ > limits_.entries) {
        return OutOfRange(fmt::format("there are more than {} files and folders", limits_.entries));
      }
      (entry->d_type == DT_DIR ? folders : files)->emplace_back(entry->d_name);
      RETURN_IF_ERROR(CheckTime());
    }
    if (errno != 0) return Status::FromErrno(errno, "read a folder");
    return Status::Ok();
  }

  Status CopyFolder(UniqueFd from, int to, const std::string& prefix, int depth) {
    std::vector<std::string> names;
    UniqueFd listed(::openat(from.get(), ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!listed.valid()) {
      LeaveOut(prefix, "the folder cannot be read");
      return Status::Ok();
    }
    // What was listed before the limit is copied; then it ends.
    Status complete = ReadNames(std::move(listed), &names);
    const size_t first = result_.list.size();
    for (const std::string& name : names) {
      RETURN_IF_ERROR(CheckTime());
      RETURN_IF_ERROR(CopyEntry(from.get(), name, to, prefix + name, depth));
    }
    // Here, because the thread that merges the files into the dump writes other dumps, too. A slice that cannot be
    // searched stays apart there.
    FindSteps(to, prefix, std::span(result_.list).subspan(first), [this] { return CheckTime(); }).Ignore();
    RETURN_IF_ERROR(CheckTime());
    return complete;
  }

  Status CopyEntry(int folder, const std::string& name, int to, const std::string& path, int depth) {
    if (!IsSafeName(name)) {
      LeaveOut(path, "the name cannot be in a dump");
      return Status::Ok();
    }
    // O_NONBLOCK: the open of a FIFO returns.
    UniqueFd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat info {};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
      LeaveOut(path, errno == ELOOP ? "a symbolic link" : Status::FromErrno(errno, "open").message());
      return Status::Ok();
    }
    if (info.st_uid != user_) {
      LeaveOut(path, fmt::format("belongs to uid {}", info.st_uid));
    } else if (info.st_dev != device_) {
      LeaveOut(path, "on another file system");
    } else if (S_ISDIR(info.st_mode)) {
      return CopyFolderEntry(std::move(fd), name, to, path, depth);
    } else if (!S_ISREG(info.st_mode)) {
      LeaveOut(path, "neither a file nor a folder");
    } else if (info.st_nlink != 1) {
      LeaveOut(path, "has another name besides");
    } else {
      return CopyFile(fd.get(), static_cast<uint64_t>(info.st_size), name, to, path);
    }
    return Status::Ok();
  }

  Status CopyFolderEntry(UniqueFd from, const std::string& name, int to, const std::string& path, int depth) {
    if (depth + 1 > limits_.depth) {
      LeaveOut(path, "nested too deep");
      return Status::Ok();
    }
    Result<UniqueFd> made = MakeDirAt(to, name, owner_);
    if (!made.ok()) return made.status();
    return CopyFolder(std::move(from), made->get(), path + "/", depth + 1);
  }

  // In the dump; a file takes a line of its manifest, too.
  Status Reserve(uint64_t bytes) {
    if (limits_.reserve == nullptr) return Status::Ok();
    const uint64_t needed = bytes + kListed;
    Status reserved;
    for (const uint64_t ask : {std::max(needed, kAhead), needed}) {
      if (needed <= granted_) break;
      reserved = limits_.reserve(ask);
      if (!reserved.ok()) continue;
      granted_ += ask;
      result_.reserved += ask;
    }
    if (needed > granted_) return reserved;
    granted_ -= needed;
    return Status::Ok();
  }

  Status CheckVolume(int to, uint64_t bytes) {
    if (result_.files >= limits_.files) return OutOfRange(fmt::format("there are more than {} files", limits_.files));
    struct statvfs volume {};
    if (::fstatvfs(to, &volume) != 0) return Status::FromErrno(errno, "free space");
    const uint64_t free = static_cast<uint64_t>(volume.f_bavail) * volume.f_frsize;
    if (free < limits_.free_bytes || free - limits_.free_bytes < bytes) {
      return ResourceExhausted("no space is left on the volume of the dump");
    }
    return Status::Ok();
  }

  // What is too large for a limit, while smaller ones may fit.
  Status CheckLimits(uint64_t bytes) {
    if (bytes > limits_.bytes - std::min(limits_.bytes, result_.bytes)) {
      return ResourceExhausted(fmt::format("the files have more than {} bytes", limits_.bytes));
    }
    return Reserve(bytes);
  }

  // As long as the file is now: one that grows meanwhile must not keep us.
  Status CopyFile(int from, uint64_t bytes, const std::string& name, int to, const std::string& path) {
    RETURN_IF_ERROR(CheckVolume(to, bytes));
    if (Status reserved = CheckLimits(bytes); !reserved.ok()) {
      if (reserved.code() != StatusCode::kResourceExhausted) return reserved;
      LeaveOut(path, reserved.message(), bytes);
      if (refused_.ok()) refused_ = std::move(reserved);
      return Status::Ok();
    }
    ProcessFile copied{path, 0, 0};
    Status status = CopyBytes(from, bytes, name, to, &copied);
    result_.list.push_back(std::move(copied));
    return status;
  }

  Status CopyBytes(int from, uint64_t bytes, const std::string& name, int to, ProcessFile* copied) {
    const std::string& path = copied->path;
    Result<UniqueFd> made = io_.Create(to, name, owner_);
    if (!made.ok()) return made.status();
    ++result_.files;
    for (uint64_t left = bytes; left > 0;) {
      const ssize_t got = ::read(from, chunk_.data(), std::min<uint64_t>(left, chunk_.size()));
      if (got < 0 && errno == EINTR) continue;
      RETURN_IF_ERROR(CheckTime());
      if (got <= 0) {
        LeaveOut(path, got < 0 ? Status::FromErrno(errno, "read").message() : "became shorter while it was copied");
        return Status::Ok();
      }
      const auto size = static_cast<size_t>(got);
      RETURN_IF_ERROR(WriteAll(io_, made->get(), {chunk_.data(), size}, path));
      copied->crc32c = Crc32c({chunk_.data(), size}, copied->crc32c);
      copied->bytes += size;
      result_.bytes += size;
      left -= size;
    }
    return Status::Ok();
  }

  const uid_t user_;
  const DumpOwner owner_;
  const CopyLimits& limits_;
  const Clock& clock_;
  DumpIo& io_;
  dev_t device_ = 0;
  uint64_t entries_ = 0;
  uint64_t granted_ = 0;
  Status refused_;
  std::vector<std::byte> chunk_;
  CopiedFiles result_;
};

}  // namespace

CopiedFiles CopyTree(const CopyPlaces& places, const CopyLimits& limits, const Clock& clock, DumpIo& io) {
  return TreeCopy(places, limits, clock, io).Run(places.from, places.to);
}

FileCopier::Worker* FileCopier::WorkerFor(uid_t user) {
  // A user whose copy does not come back gets no other thread.
  for (Worker& worker : workers_) {
    if (worker.user == user && (*worker.waiting > 0 || worker.thread->stuck())) return &worker;
  }
  for (Worker& worker : workers_) {
    if (*worker.waiting == 0 && !worker.thread->stuck()) return &worker;
  }
  if (workers_.size() == kMaxThreads) return nullptr;
  workers_.emplace_back().thread = std::make_unique<GuardedThread>("profd-files", clock_);
  return &workers_.back();
}

void FileCopier::Copy(Request request, std::function<void(CopiedFiles)> done) {
  DCHECK_ON(control_);
  Worker* const worker = WorkerFor(request.user);
  if (worker == nullptr) {
    CopiedFiles refused;
    refused.status = Unavailable("the files of other processes are being copied, and their file systems do not answer");
    control_.Post([done = std::move(done), refused] { done(refused); });
    return;
  }
  worker->user = request.user;
  ++*worker->waiting;
  // A thread that is left behind keeps what it works with.
  auto held = std::make_shared<Request>(std::move(request));
  auto copied = std::make_shared<CopiedFiles>();
  GuardedJob job;
  job.what = "copying the files of a process";
  job.run = [held, copied, &clock = clock_, &io = io_] {
    *copied = CopyTree({held->from.get(), held->user, held->to.get(), held->owner}, held->limits, clock, io);
    held->from.Reset();
    held->to.Reset();
  };
  job.deadline_steady_ns = held->limits.until_steady_ns + kGraceNs;
  job.done = [&control = control_, waiting = worker->waiting, copied, done = std::move(done)](const Status& status) {
    CopiedFiles result;
    // Of one that is late the thread still writes to *copied.
    if (status.ok()) {
      result = *copied;
    } else {
      result.status = status;
    }
    control.Post([waiting, done, result] {
      --*waiting;
      done(result);
    });
  };
  worker->thread->Submit(std::move(job)).Ignore();  // `done` gets the error
}

void FileCopier::CheckDeadlines(int64_t now_steady_ns) {
  DCHECK_ON(control_);
  for (const Worker& worker : workers_) worker.thread->CheckDeadlines(now_steady_ns);
}

bool FileCopier::stuck() const {
  return std::ranges::any_of(workers_, [](const Worker& worker) { return worker.thread->stuck(); });
}

}  // namespace profd
