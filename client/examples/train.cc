// A training loop as small as one can be, with steps, ranges and marks. What it computes is
// simulated. PROFILING_OPTIONS profiles it without any of its flags; --profile-steps does it from
// inside.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "client/libprofd/profd.h"

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

void TrainStep(int64_t step, int64_t step_ms) {
  const profd::Step scope(step);
  Compute("forward", step_ms * 400);
  Compute("backward", step_ms * 500);
  profd_mark("gradients ready");
  Compute("optimizer", step_ms * 100);
}

void PrintSession() {
  char text[16 * 1024];
  if (profd_session_json(text, sizeof text, 2000) > 0) {
    std::printf("session: %s\n", text);
  } else {
    std::printf("no session: %s\n", profd_last_error());
  }
}

// A profile is an extra: training goes on without it.
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
  for (int64_t step = 0; step < arguments.steps; ++step) {
    TrainStep(step, arguments.step_ms);
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
