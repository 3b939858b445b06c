// A unix socket of the daemon and the kernel's word on who is at its other end. Shared by the gRPC
// socket and the one training processes attach to.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/status.h"
#include "base/strand.h"
#include "daemon/rpc/accept.h"
#include "daemon/session/peer.h"

namespace profd {

struct UnixListenerOptions {
  std::string path;
  std::string group;       // may connect; empty = root's group only
  int type = SOCK_STREAM;  // or SOCK_SEQPACKET
};

// Binds and listens, non-blocking. A socket file left behind by a dead daemon is replaced, one that
// answers is an error. Why its group may not connect goes to `*warning`; not that the machine has none of that name.
Result<UniqueFd> ListenUnix(const UnixListenerOptions& options, std::string* warning);

// The same, and accepts. Its file stays: a cleaner of temporary files may remove it, or another process replace it.
class UnixListener {
 public:
  // `name`: as the log calls it. Connections wait until Start.
  static Result<std::unique_ptr<UnixListener>> Listen(std::string name, UnixListenerOptions options, std::string* warning);

  // Both on the strand.
  void Start(Strand& strand, AcceptLoop::Take take);
  // Listens again where the file was removed or replaced, and logs how that ended, failures once; connections stay. Nothing
  // before Start.
  void CheckPath();
  // Once the strand's executor has stopped: stops listening and removes the file, if it is its own.
  void Close();

 private:
  struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const FileId&) const = default;
  };
  static std::optional<FileId> FileAt(const std::string& path);
  UnixListener(std::string name, UnixListenerOptions options, UniqueFd fd)
      : name_(std::move(name)), options_(std::move(options)), fd_(std::move(fd)), bound_(FileAt(options_.path)) {}
  bool lost() const { return FileAt(options_.path) != bound_; }
  void BindAgain();

  std::string name_;
  UnixListenerOptions options_;
  UniqueFd fd_;
  std::optional<FileId> bound_;
  std::string failure_;  // as logged last
  // On the strand.
  Strand* strand_ = nullptr;
  AcceptLoop::Take take_;
  std::optional<AcceptLoop> loop_;
};

// Nothing for an empty or unknown name.
std::optional<gid_t> GroupId(const std::string& name);

// A name or a number; nothing for an empty or unknown name.
std::optional<uid_t> UserId(const std::string& name);

// SO_PEERCRED and SO_PEERGROUPS. Administrators: root, the daemon's own user, `admin_group`.
Result<Peer> PeerOfSocket(int fd, std::optional<gid_t> admin_group);

}  // namespace profd
