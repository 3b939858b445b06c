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
  if (simAclTruth(truth.c_str()) != 0) return Unavailable(fmt::format("cannot write {}", truth));
  RETURN_IF_ERROR(Check(aclInit(nullptr), "aclInit"));
  RETURN_IF_ERROR(Check(aclrtSetDevice(options_.device), "aclrtSetDevice"));
  for (void*& stream : streams_)
    RETURN_IF_ERROR(Check(aclrtCreateStream(&stream), "aclrtCreateStream"));
  return Check(aclrtCreateEvent(&event_), "aclrtCreateEvent");
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
  for (const Action& action : PlanStep(job_, options_.rank, step)) RETURN_IF_ERROR(Do(action));
  profd_step_end(step);
  Write("step", std::to_string(step), begin);
  return Status::Ok();
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
    case Action::kAllocate: {
      void* memory = nullptr;
      RETURN_IF_ERROR(Check(aclrtMalloc(&memory, action.bytes, 0), "aclrtMalloc"));
      return Check(aclrtFree(memory), "aclrtFree");
    }
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
  // The AI CPU has a clock of its own.
  const bool is_aicpu = action.task_type == prof::kTaskAicpu;
  kernel.duration_ns =
      Longer(action.duration_ns, is_aicpu ? 1 : machine_.KernelFactor(options_.device));
  kernel.tensors = action.tensors->data();
  kernel.tensor_count = static_cast<uint32_t>(action.tensors->size());
  RETURN_IF_ERROR(Check(simAclLaunch(&kernel, streams_[action.stream]), "a launch"));
  Write("api", action.function, begin);
  while (clock_.MonotonicRawNs() - begin < job_.launch_ns) {
  }
  return Status::Ok();
}

Status Trainer::Communicate(const Action& action) {
  // As HCCL itself does.
  if (domain_ == nullptr) domain_ = mstx::DomainCreate("communication");
  mstx::DomainMark(domain_, action.name.c_str(), nullptr);
  Write("mstx", action.name, clock_.MonotonicRawNs());
  const int64_t begin = clock_.MonotonicRawNs();
  void* const group = GroupHandle(action.group);
  if (group == nullptr) return Unavailable(fmt::format("cannot make group {}", action.group.name));
  const acl::Communication communication = {
      .name = action.name.c_str(),
      .type = action.type.c_str(),
      .function = action.function.c_str(),
      .count = action.bytes / 4,
      .bytes = action.bytes,
      .duration_ns =
          Longer(action.duration_ns, machine_.LinkFactor(static_cast<int>(job_.ranks())))};
  RETURN_IF_ERROR(
      Check(simAclCommunicate(&communication, group, streams_[action.stream]), "a communication"));
  Write("api", action.function, begin);
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
