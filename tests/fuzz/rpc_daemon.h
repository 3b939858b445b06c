// The daemon as it is, inside the fuzzer: the complete App on a folder of its own, on the simulated
// node behind the vendor's ABI, and who talks to it. One per process.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "daemon/config/daemon_config.h"
#include "tests/fuzz/file_tree.h"

namespace profd::fuzz {

class RpcDaemon {
 public:
  // Administrator and two users, as the kernel distinguishes them. All the same one where the fuzzer
  // does not run as root.
  static constexpr size_t kCallers = 3;

  static RpcDaemon& Get();

  grpc::GenericStub& As(size_t caller) { return *stubs_[caller % kCallers]; }
  // An attach connection of that caller.
  UniqueFd Attach(size_t caller) const;
  const DaemonConfig& config() const { return config_; }

 private:
  RpcDaemon();
  ~RpcDaemon();
  RpcDaemon(const RpcDaemon&) = delete;
  RpcDaemon& operator=(const RpcDaemon&) = delete;
  void Serve();

  TreeDirectory folder_;
  DaemonConfig config_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  std::array<std::unique_ptr<grpc::GenericStub>, kCallers> stubs_;
};

}  // namespace profd::fuzz
