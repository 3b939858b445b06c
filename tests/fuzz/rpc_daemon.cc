#include "tests/fuzz/rpc_daemon.h"

#include <fcntl.h>
#include <grp.h>
#include <google/protobuf/stubs/logging.h>
#include <grpcpp/create_channel_posix.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "daemon/app.h"
#include "tests/fuzz/fuzz_input.h"

namespace profd::fuzz {
namespace {

constexpr std::array<uid_t, RpcDaemon::kCallers> kUids = {0, 61001, 61002};
constexpr auto kPatience = std::chrono::seconds(60);

// Credentials are taken by connect(), and are the calling thread's: glibc would change them for
// all.
void BecomeOnThisThread(uid_t uid) {
  if (uid == 0 || ::geteuid() != 0) return;
  FUZZ_EXPECT(::syscall(SYS_setgroups, 0, nullptr) == 0);
  FUZZ_EXPECT(::syscall(SYS_setresgid, uid, uid, uid) == 0);
  FUZZ_EXPECT(::syscall(SYS_setresuid, uid, uid, uid) == 0);
}

// Users need not reach the socket's folder: a working directory can be a thread's own, too.
UniqueFd ConnectAs(uid_t uid, const std::filesystem::path& path, int type) {
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  std::thread([&] {
    FUZZ_EXPECT(::unshare(CLONE_FS) == 0 && ::chdir(path.parent_path().c_str()) == 0);
    BecomeOnThisThread(uid);
    const std::string name = path.filename();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.Reset();
  }).join();
  return fd;
}

DaemonConfig ConfigIn(const std::string& folder) {
  DaemonConfig config;
  config.socket = folder + "/s";
  config.socket_group = "";
  config.admin_group = "";
  const char* other = std::getenv("PROFD_FUZZ_SIM");
  const std::string simulator = other != nullptr ? other : PROFD_FUZZ_SIM_DIR;
  config.hal_library = simulator + "/libascend_hal.so";
  config.dcmi_library = simulator + "/libdcmi.so";
  config.require_safe_library = false;
  config.poll_interval_ms = 1;
  config.buffer_mb = 8;
  config.dump_root = folder + "/dumps";
  config.min_free_mb = 1;
  config.max_session_mb = 8;
  config.max_total_mb = 64;
  config.queue_mb = 4;
  config.flush_interval_ms = 50;
  config.sync_interval_ms = 0;
  config.resume = false;
  config.metrics_enabled = false;
  config.metrics_hccn_tool = "off";
  config.attribution_enabled = false;
  config.recorder_enabled = true;
  config.recorder_collectors = {"hbm=10", "host_mem=1"};
  config.recorder_seconds = 5;
  config.recorder_memory_mb = 2;
  config.archive_to = "clickhouse://127.0.0.1/fuzz";
  config.archive_user = "";
  config.archive_max_waiting = 4;
  config.max_sessions = 8;
  config.max_sessions_per_uid = 3;
  config.keep_finished = 16;
  config.stop_deadline_s = 5;
  config.max_starts_per_minute = 100000;
  config.max_pinned_mb_per_uid = 4;
  return config;
}

// The file is there before the socket listens, and its mode is set in between: only a connection shows that it is ready.
UniqueFd ConnectSoon(uid_t uid, const std::string& socket, int type) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (::chmod(socket.c_str(), 0666) == 0) {
      if (UniqueFd fd = ConnectAs(uid, socket, type); fd.valid()) return fd;
    }
    FUZZ_EXPECT(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

RpcDaemon& RpcDaemon::Get() {
  static RpcDaemon daemon;
  return daemon;
}

RpcDaemon::RpcDaemon() : config_(ConfigIn(folder_.path())) {
  // What App waits for; of libFuzzer's own, SIGINT stays as it is.
  sigset_t signals;
  ::sigemptyset(&signals);
  for (int number : {SIGTERM, SIGHUP, SIGUSR2}) ::sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  log::Setup(log::Level::kError, false);
  // A line for every text that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  FUZZ_EXPECT(::chmod(folder_.path().c_str(), 0755) == 0);
  folder_.Write("scenario.toml", "devices = 2\n");
  ::setenv("PROFD_SIM_SCENARIO", (folder_.path() + "/scenario.toml").c_str(), 1);
  std::filesystem::create_directory(config_.dump_root);
  thread_ = std::thread([this] { Serve(); });
  ConnectSoon(kUids.back(), AttachSocketOf(config_), SOCK_SEQPACKET);
  for (size_t caller = 0; caller < kCallers; ++caller) {
    UniqueFd fd = ConnectSoon(kUids[caller], config_.socket, SOCK_STREAM);
    FUZZ_EXPECT(::fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0);
    stubs_[caller] = std::make_unique<grpc::GenericStub>(
        grpc::CreateInsecureChannelFromFd("fuzz", fd.Release()));
  }
}

RpcDaemon::~RpcDaemon() {
  for (auto& stub : stubs_) stub.reset();
  stopping_ = true;
  ::pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void RpcDaemon::Serve() {
  AppOptions options;
  options.config = config_;
  options.simulated = true;
  options.simulator_only = true;
  options.reload = [this]() -> Result<DaemonConfig> { return config_; };
  Status status = App(std::move(options)).Run();
  if (stopping_) return;
  std::fprintf(stderr, "the daemon ended: %s\n", status.ToString().c_str());
  std::_Exit(status.ok() ? 0 : 77);
}

UniqueFd RpcDaemon::Attach(size_t caller) const {
  return ConnectAs(kUids[caller % kCallers], AttachSocketOf(config_), SOCK_SEQPACKET);
}

}  // namespace profd::fuzz
