#include "sim/app/trainer.h"

#include <fmt/format.h>
#include <profd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "sim/mstx/mstx.h"

namespace profd::sim::app {
namespace {

constexpr int64_t kSpinNs = 200'000;  // a sleep is not that exact
constexpr int64_t kMarkPeriodMs = 10;
constexpr uint32_t kGraph = 1;  // the model's number

Status Check(int result, const char* function) {
  if (result == 0) return Status::Ok();
  return Unavailable(fmt::format("{} answered {}", function, result));
}

int64_t Longer(int64_t ns, double factor) {
  return static_cast<int64_t>(static_cast<double>(ns) * factor);
}

// Threads of the host that have nothing to do with the steps.
class HostThreads {
 public:
  explicit HostThreads(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      threads_.emplace_back([this, name = fmt::format("host_thread_{}", i)] {
        while (!stop_) {
          profd_mark(name.c_str());
          std::this_thread::sleep_for(std::chrono::milliseconds(kMarkPeriodMs));
        }
      });
    }
  }
  ~HostThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace

Trainer::Trainer(const Job& job, const Machine& machine, RankOptions options)
    : job_(job), machine_(machine), options_(std::move(options)) {}

void Trainer::Write(const char* what, const std::string& name, int64_t begin_ns) {
  simAclTruthLine(fmt::format(R"({{"what":"{}","name":"{}","rank":{},"thread":{},"begin_ns":{},)"
                              R"("end_ns":{}}})",
                              what, name, options_.rank, ::syscall(SYS_gettid), begin_ns,
                              clock_.MonotonicRawNs())
                      .c_str());
}

Status Trainer::Prepare() {
  profd_config config = PROFD_CONFIG_INIT;
  config.job_id = options_.job_id.c_str();
  config.rank = static_cast<int32_t>(options_.rank);
  config.local_rank = config.rank;
  config.world_size = static_cast<int32_t>(job_.ranks());
  config.devices = &options_.device;
  config.device_count = 1;
  config.framework = job_.framework.c_str();
  const int result = profd_init(&config);
  if (result != PROFD_OK && result != PROFD_DISABLED) {
    return Unavailable(fmt::format("profd_init: {}", profd_last_error()));
  }
  const std::string truth = fmt::format("{}/truth_{}.jsonl", options_.folder, options_.rank);
  if (job_.truth && simAclTruth(truth.c_str()) != 0) return Unavailable(fmt::format("cannot write {}", truth));
  RETURN_IF_ERROR(Check(aclInit(nullptr), "aclInit"));
  RETURN_IF_ERROR(Check(aclrtSetDevice(options_.device), "aclrtSetDevice"));
  for (void*& stream : streams_)
    RETURN_IF_ERROR(Check(aclrtCreateStream(&stream), "aclrtCreateStream"));
  RETURN_IF_ERROR(Check(aclrtCreateEvent(&event_), "aclrtCreateEvent"));
  return job_.graph ? LoadGraph() : Status::Ok();
}

Status Trainer::Run() {
  RETURN_IF_ERROR(Prepare());
  {
    const HostThreads threads(job_.host_threads);
    for (int64_t step = 0; step < job_.steps; ++step) RETURN_IF_ERROR(Step(step));
  }
  RETURN_IF_ERROR(Check(aclrtSynchronizeDevice(), "aclrtSynchronizeDevice"));
  RETURN_IF_ERROR(Check(aclFinalize(), "aclFinalize"));
  profd_shutdown();
  return Status::Ok();
}

Status Trainer::Step(int64_t step) {
  const int64_t begin = clock_.MonotonicRawNs();
  profd_step_begin(step);
  // The loader began this batch when the step before began.
  if (loaded_ns_ > begin) Pause("dataloader", loaded_ns_ - begin);
  loaded_ns_ = clock_.MonotonicRawNs() + job_.data_ns;
  const std::vector<Action> actions = PlanStep(job_, options_.rank, step);
  for (const Action& action : actions) {
    if (!job_.graph || action.kind == Action::kPause || action.kind == Action::kCopy) {
      RETURN_IF_ERROR(Do(action));
    }
  }
  if (job_.graph) RETURN_IF_ERROR(ExecuteGraph(step, actions));
  profd_step_end(step);
  Write("step", std::to_string(step), begin);
  return Status::Ok();
}

// What of a step runs on the device; the rest is the host's.
Status Trainer::LoadGraph() {
  RETURN_IF_ERROR(Check(simAclModelLoad(kGraph, job_.name.c_str()), "a load"));
  for (const Action& action : PlanStep(job_, options_.rank, 0)) {
    const bool runs = action.kind == Action::kLaunch || action.kind == Action::kCommunication ||
                      action.kind == Action::kTrace || action.kind == Action::kWait;
    if (runs) RETURN_IF_ERROR(Do(action));
  }
  return Check(simAclModelLoaded(), "a load");
}

Status Trainer::ExecuteGraph(int64_t step, const std::vector<Action>& actions) {
  std::vector<int64_t> durations;
  for (const Action& action : actions) {
    const bool takes = action.kind == Action::kLaunch || action.kind == Action::kCommunication;
    if (takes) durations.push_back(DurationOf(action));
  }
  const int64_t begin = clock_.MonotonicRawNs();
  const auto iteration = static_cast<uint32_t>(step + 1);
  RETURN_IF_ERROR(Check(simAclModelExecute(kGraph, iteration, durations.data(), durations.size()), "an iteration"));
  Write("api", "aclmdlExecuteAsync", begin);
  return Do(actions.back());  // waits for its loss
}

int64_t Trainer::DurationOf(const Action& action) const {
  if (action.kind == Action::kCommunication) {
    return Longer(action.duration_ns, machine_.LinkFactor(static_cast<int>(job_.ranks())));
  }
  // The AI CPU has a clock of its own.
  const bool is_aicpu = action.task_type == prof::kTaskAicpu;
  return Longer(action.duration_ns, is_aicpu ? 1 : machine_.KernelFactor(options_.device));
}

Status Trainer::Do(const Action& action) {
  const int64_t begin = clock_.MonotonicRawNs();
  switch (action.kind) {
    case Action::kLaunch:
      return Launch(action);
    case Action::kCommunication:
      return Communicate(action);
    case Action::kWait:
      RETURN_IF_ERROR(Check(aclrtRecordEvent(event_, streams_[action.other]), "aclrtRecordEvent"));
      return Check(aclrtStreamWaitEvent(streams_[action.stream], event_), "aclrtStreamWaitEvent");
    case Action::kSynchronize: {
      const int result = aclrtSynchronizeStream(streams_[action.stream]);
      Write("api", "aclrtSynchronizeStream", begin);
      return Check(result, "aclrtSynchronizeStream");
    }
    case Action::kPause:
      Pause(action.name, action.duration_ns);
      return Status::Ok();
    case Action::kCopy:
      return Copy(action.bytes);
    case Action::kAllocate:
      return Allocate(action.bytes);
    case Action::kTrace:
      return Check(simAclTrace(0, action.tag, streams_[action.stream]), "a trace");
    case Action::kPush:
      profd_range_push(action.name.c_str());
      ranges_.emplace_back(action.name, begin);
      return Status::Ok();
    case Action::kPop:
      profd_range_pop();
      Write("range", ranges_.back().first, ranges_.back().second);
      ranges_.pop_back();
      return Status::Ok();
  }
  return Status::Ok();
}

Status Trainer::Launch(const Action& action) {
  const int64_t begin = clock_.MonotonicRawNs();
  acl::Kernel kernel{action.name.c_str(), action.type.c_str()};
  kernel.function = action.function.c_str();
  kernel.task_type = action.task_type;
  kernel.block_dim = action.block_dim;
  kernel.duration_ns = DurationOf(action);
  std::vector<acl::Tensor> tensors = *action.tensors;
  for (acl::Tensor& tensor : tensors) {
    if (action.rows != 0) tensor.shape[0] = action.rows;
  }
  kernel.tensors = tensors.data();
  kernel.tensor_count = static_cast<uint32_t>(tensors.size());
  RETURN_IF_ERROR(Check(simAclLaunch(&kernel, streams_[action.stream]), "a launch"));
  if (action.function.empty() || job_.graph) return Status::Ok();
  Write("api", action.function, begin);
  while (clock_.MonotonicRawNs() - begin < job_.launch_ns) {
  }
  return Status::Ok();
}

// As HCCL itself does.
void Trainer::MarkInMstx(const std::string& name) {
  if (domain_ == nullptr) domain_ = mstx::DomainCreate("communication");
  mstx::DomainMark(domain_, name.c_str(), nullptr);
  Write("mstx", name, clock_.MonotonicRawNs());
}

Status Trainer::Communicate(const Action& action) {
  if (!job_.graph) MarkInMstx(action.name);
  const int64_t begin = clock_.MonotonicRawNs();
  void* const group = GroupHandle(action.group);
  if (group == nullptr) return Unavailable(fmt::format("cannot make group {}", action.group.name));
  const acl::Communication communication = {
      .name = action.name.c_str(),
      .type = action.type.c_str(),
      .function = action.function.c_str(),
      .count = action.bytes / 4,
      .bytes = action.bytes,
      .duration_ns = DurationOf(action)};
  RETURN_IF_ERROR(
      Check(simAclCommunicate(&communication, group, streams_[action.stream]), "a communication"));
  if (!job_.graph) Write("api", action.function, begin);
  return Status::Ok();
}

Status Trainer::Copy(uint64_t bytes) {
  const int64_t begin = clock_.MonotonicRawNs();
  // Nothing is touched: the device's memory is only simulated.
  const int result =
      aclrtMemcpyAsync(nullptr, bytes, nullptr, bytes, acl::kHostToDevice, streams_[kCompute]);
  Write("api", "aclrtMemcpyAsync", begin);
  return Check(result, "aclrtMemcpyAsync");
}

Status Trainer::Allocate(uint64_t bytes) {
  const int64_t begin = clock_.MonotonicRawNs();
  void* memory = nullptr;
  RETURN_IF_ERROR(Check(aclrtMalloc(&memory, bytes, 0), "aclrtMalloc"));
  Write("api", "aclrtMalloc", begin);
  const int64_t release = clock_.MonotonicRawNs();
  RETURN_IF_ERROR(Check(aclrtFree(memory), "aclrtFree"));
  Write("api", "aclrtFree", release);
  return Status::Ok();
}

void Trainer::Pause(const std::string& name, int64_t ns) {
  const int64_t begin = clock_.MonotonicRawNs();
  profd_range_push(name.c_str());
  std::this_thread::sleep_for(std::chrono::nanoseconds(std::max<int64_t>(0, ns - kSpinNs)));
  while (clock_.MonotonicRawNs() - begin < ns) {
  }
  profd_range_pop();
  Write("pause", name, begin);
}

void* Trainer::GroupHandle(const GroupOf& group) {
  void*& handle = groups_[group.name];
  if (handle == nullptr) {
    const std::string path = fmt::format("{}/group_{}", options_.folder, group.name);
    handle = simAclGroup(group.name.c_str(), path.c_str(), group.members, group.rank);
  }
  return handle;
}

}  // namespace profd::sim::app
