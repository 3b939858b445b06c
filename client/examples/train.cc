// A training loop as small as one can be, with steps, ranges and marks. What it computes is
// simulated. PROFILING_OPTIONS profiles it without any of its flags; --profile-steps does it from
// inside.
#include <profd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Arguments {
  int64_t steps = 20;
  int64_t step_ms = 50;
  int64_t profile_from = -1;  // -1 = now
  int64_t profile_steps = 0;  // 0 = not from inside
  int64_t wait_ms = 5000;
  const char* options = nullptr;
};

bool Parse(int argc, char** argv, Arguments* arguments) {
  const struct {
    const char* name;
    int64_t* value;
  } numbers[] = {{"--steps", &arguments->steps},
                 {"--step-ms", &arguments->step_ms},
                 {"--profile-from", &arguments->profile_from},
                 {"--profile-steps", &arguments->profile_steps},
                 {"--wait-ms", &arguments->wait_ms}};
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    bool known = false;
    if (std::strcmp(argv[i], "--options") == 0) {
      arguments->options = argv[i + 1];
      known = true;
    }
    for (const auto& number : numbers) {
      if (std::strcmp(argv[i], number.name) != 0) continue;
      char* end = nullptr;
      *number.value = std::strtoll(argv[i + 1], &end, 10);
      known = *end == '\0' && end != argv[i + 1];
    }
    if (!known) return false;
  }
  return true;
}

// Stands for the device's work.
void Compute(const char* what, int64_t us) {
  const profd::Range range(what);
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// The ranks on this node wait for each other after every step, as real ones do in a collective
// operation: rank 0 listens on a socket that goes with it, the others begin with the step it is in.
// What cannot be reached is not waited for.
class Ranks {
 public:
  Ranks() {
    if (Number("WORLD_SIZE") < 2) return;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "profd-example-" + std::to_string(getuid()) + "-" + Job();
    // Behind a zero: a name that is not a file.
    const size_t length = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    const auto* where = reinterpret_cast<const sockaddr*>(&address);
    if (Number("RANK") == 0) {
      listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (bind(listener_, where, size) != 0 || listen(listener_, 64) != 0) listener_ = -1;
      return;
    }
    for (int tries = 0; tries < 500 && peers_.empty(); ++tries) {
      const int peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
      if (connect(peer, where, size) == 0) {
        Add(peer);
        first_ = Receive(peer, 0);
      } else {
        close(peer);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
  }

  int64_t first_step() const { return first_; }

  void After(int64_t step) {
    if (listener_ < 0) Send(step);
    for (const int peer : std::vector<int>(peers_)) Receive(peer, 0);
    if (listener_ < 0) return;
    for (int peer = 0; (peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) Add(peer);
    Send(step + 1);
  }

 private:
  static int64_t Number(const char* variable) {
    const char* text = std::getenv(variable);
    return text != nullptr ? std::strtoll(text, nullptr, 10) : 0;
  }
  static std::string Job() {
    for (const char* variable : {"PROFD_JOB_ID", "SLURM_JOB_ID"}) {
      if (const char* job = std::getenv(variable); job != nullptr && *job != '\0') return job;
    }
    return "job";
  }
  void Add(int peer) {
    const timeval patience{10, 0};
    setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    peers_.push_back(peer);
  }
  void Drop(int peer) {
    close(peer);
    peers_.erase(std::remove(peers_.begin(), peers_.end(), peer), peers_.end());
  }
  // What the other end sent; `otherwise` when it is gone.
  int64_t Receive(int peer, int64_t otherwise) {
    int64_t number = 0;
    if (recv(peer, &number, sizeof number, 0) == sizeof number) return number;
    Drop(peer);
    return otherwise;
  }
  void Send(int64_t number) {
    for (const int peer : std::vector<int>(peers_)) {
      if (send(peer, &number, sizeof number, MSG_NOSIGNAL) != sizeof number) Drop(peer);
    }
  }

  int listener_ = -1;  // of rank 0
  std::vector<int> peers_;
  int64_t first_ = 0;
};

void TrainStep(int64_t step, int64_t step_ms, Ranks* ranks) {
  const profd::Step scope(step);
  Compute("forward", step_ms * 400);
  Compute("backward", step_ms * 500);
  profd_mark("gradients ready");
  Compute("optimizer", step_ms * 100);
  ranks->After(step);
}

void PrintSession() {
  char text[16 * 1024];
  if (profd_session_json(text, sizeof text, 2000) > 0) {
    std::printf("session: %s\n", text);
  } else {
    std::printf("no session: %s\n", profd_last_error());
  }
}

// Training must not fail because it cannot be profiled.
bool StartProfile(const Arguments& arguments) {
  profd_start_args args = PROFD_START_ARGS_INIT;
  args.options_json = arguments.options;
  args.label = "train_example";
  args.start_step = arguments.profile_from;
  args.steps = static_cast<uint32_t>(arguments.profile_steps);
  if (profd_start_with(&args) == PROFD_OK) return true;
  std::fprintf(stderr, "not profiled: %s\n", profd_last_error());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "usage: %s [--steps N] [--step-ms N] [--profile-from STEP] [--profile-steps N]\n"
                 "          [--options JSON] [--wait-ms N]\n",
                 argv[0]);
    return 2;
  }
  profd_config config = PROFD_CONFIG_INIT;
  config.framework = "example";
  config.wait_ms = static_cast<uint32_t>(arguments.wait_ms);
  profd_init(&config);
  profd_set_metadata("model", "example");
  std::printf("attached: %s\n", profd_connected() != 0 ? "yes" : profd_last_error());

  const bool profiled = arguments.profile_steps > 0 && StartProfile(arguments);
  Ranks ranks;
  for (int64_t step = ranks.first_step(); step < arguments.steps; ++step) {
    TrainStep(step, arguments.step_ms, &ranks);
    std::printf("step %lld%s\n", static_cast<long long>(step),
                profd_active() != 0 ? " profiled" : "");
    std::fflush(stdout);
  }
  if (profiled && profd_stop() != PROFD_OK) std::fprintf(stderr, "stop: %s\n", profd_last_error());
  PrintSession();

  profd_counters counters;
  profd_get_counters(&counters);
  std::printf("marks: %llu published, %llu dropped\n",
              static_cast<unsigned long long>(counters.published),
              static_cast<unsigned long long>(counters.dropped));
  profd_shutdown();
  return 0;
}
